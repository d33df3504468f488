//! Statements.
//!
//! Statements after a jump are not lowered. Every construct leaves the builder in the block
//! where control goes on; if nothing reaches it, it disappears when the function is finished.

use dflow_ir::func::Block;
use dflow_ir::inst::{InstData, Terminator};
use dflow_ir::program::FifoId;

use super::func::{Lower, Targets};
use crate::typed::{Expr, ExprKind, LabelIdx, Stmt, StmtKind};

impl Lower<'_> {
    /// Statements in order, up to one that control does not come back from.
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            if self.builder.is_terminated() {
                return;
            }
            self.at(stmt.span);
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let inst = match &stmt.kind {
            StmtKind::Expr(expr) => return self.effects(expr),
            StmtKind::Set(local, value) => {
                let dst = self.scalar(*local);
                return self.into(dst, value);
            }
            StmtKind::If { cond, then, otherwise } => return self.ladder(cond, then, otherwise),
            StmtKind::While { label, cond, step, body } => {
                return self.while_loop(*label, cond, step, body);
            }
            StmtKind::Block { label, body } => return self.block(*label, body),
            StmtKind::Switch { value, cases, otherwise } => {
                return self.switch(value, cases, otherwise);
            }
            StmtKind::Break(label) => return self.leave(self.label(*label).map(|to| to.after)),
            StmtKind::Continue(label) => {
                return self.leave(self.label(*label).and_then(|to| to.next));
            }
            StmtKind::Return(value) => return self.give_back(value.as_ref(), stmt),
            StmtKind::Store { address, offset, value } => {
                let (addr, src) = (self.value(address), self.value(value));
                InstData::Store { addr, offset: *offset, src }
            }
            StmtKind::Copy { dest, source, bytes } => {
                let (dst, src) = (self.value(dest), self.value(source));
                InstData::CopyMemory { dst, src, bytes: *bytes }
            }
            StmtKind::Hold { .. } => unreachable!("holds are settled before"),
            StmtKind::Fill { dest, value, count } => {
                let (dst, value) = (self.value(dest), self.value(value));
                InstData::FillMemory { dst, value, count: *count }
            }
            StmtKind::Flag { op, id } => InstData::Flag { op: *op, id: self.value(id) },
            StmtKind::LoadDsr { dsr, dsd, options } => {
                return self.load_dsr(*dsr, dsd, options, stmt.span);
            }
            StmtKind::SetDsr { dsr, field, value } => {
                InstData::SetDsr { dsr: *dsr, field: *field, value: self.value(value) }
            }
            StmtKind::SetRandom(id) => InstData::SetRandom { id: self.value(id) },
            StmtKind::SetFifoLength { fifo, write_side, length } => {
                let (fifo, length) = (FifoId::from_u32(*fifo), self.value(length));
                InstData::SetFifoLength { fifo, write_side: *write_side, length }
            }
            StmtKind::SetConfig { addr, value } => {
                let (addr, src) = (self.value(addr), self.value(value));
                InstData::SetConfig { addr, src }
            }
            StmtKind::Clock(op) => InstData::Clock { op: *op, dst: None },
            StmtKind::Assert { cond, message } => {
                InstData::Assert { cond: self.value(cond), message: message.clone() }
            }
            StmtKind::Host { op, dests, args } => {
                let args = self.values(args);
                let dsts = dests.iter().map(|&dest| self.scalar(dest)).collect();
                InstData::Host { op: op.clone(), dsts, args }
            }
        };
        self.emit(stmt.span, inst);
    }

    fn give_back(&mut self, value: Option<&Expr>, stmt: &Stmt) {
        let value = value.map(|value| self.value(value));
        self.at(stmt.span);
        self.builder.terminate(Terminator::Return(value));
    }

    fn jump(&mut self, target: Block) {
        self.builder.terminate(Terminator::Jump(target));
    }

    fn leave(&mut self, target: Option<Block>) {
        debug_assert!(target.is_some(), "jumps stay within their label");
        self.builder.terminate(target.map_or(Terminator::Unreachable, Terminator::Jump));
    }

    /// `if … else if … else`, as long as it may be: each `else` that holds nothing but another
    /// `if` is a further rung.
    fn ladder(&mut self, cond: &Expr, then: &[Stmt], otherwise: &[Stmt]) {
        let after = self.builder.block();
        let (mut cond, mut then, mut otherwise) = (cond, then, otherwise);
        loop {
            let (direct, other) = (self.direct(then, after), self.direct(otherwise, after));
            let yes = direct.unwrap_or_else(|| self.builder.block());
            let no = other.unwrap_or_else(|| self.builder.block());
            self.branch(cond, yes, no);
            if direct.is_none() {
                self.arm(yes, then, after);
            }
            if other.is_some() {
                break;
            }
            self.builder.switch_to(no);
            if let [Stmt { kind: StmtKind::If { cond: c, then: t, otherwise: o }, span }] =
                otherwise
            {
                self.at(*span);
                (cond, then, otherwise) = (c, t, o);
                continue;
            }
            self.stmts(otherwise);
            self.jump(after);
            break;
        }
        self.builder.switch_to(after);
    }

    /// Ends the block by a truth value; a constant one needs no branch.
    fn branch(&mut self, cond: &Expr, then: Block, otherwise: Block) {
        if let ExprKind::Const(bits) = &*cond.kind {
            return self.jump(if *bits != 0 { then } else { otherwise });
        }
        let value = self.value(cond);
        self.at(cond.span);
        self.builder.terminate(Terminator::Branch { cond: value, then, otherwise });
    }

    fn while_loop(&mut self, label: LabelIdx, cond: &Expr, step: &[Stmt], body: &[Stmt]) {
        let head = self.builder.block();
        let inside = self.builder.block();
        let next = if step.is_empty() { head } else { self.builder.block() };
        let after = self.builder.block();
        self.jump(head);
        self.builder.switch_to(head);
        self.branch(cond, inside, after);
        self.bind_label(label, Targets { after, next: Some(next) });
        self.builder.switch_to(inside);
        self.stmts(body);
        self.jump(next);
        if next != head {
            self.builder.switch_to(next);
            self.stmts(step);
            self.jump(head);
        }
        self.builder.switch_to(after);
    }

    fn block(&mut self, label: LabelIdx, body: &[Stmt]) {
        let after = self.builder.block();
        self.bind_label(label, Targets { after, next: None });
        self.stmts(body);
        self.jump(after);
        self.builder.switch_to(after);
    }

    fn switch(&mut self, value: &Expr, cases: &[(Vec<u64>, Vec<Stmt>)], otherwise: &[Stmt]) {
        let local = self.value(value);
        let ty = self.builder.ty(local);
        let after = self.builder.block();
        let bodies = cases.iter().map(|(_, body)| body.as_slice()).chain([otherwise]);
        let arms: Vec<(&[Stmt], Option<Block>, Block)> = bodies
            .map(|body| {
                let direct = self.direct(body, after);
                (body, direct, direct.unwrap_or_else(|| self.builder.block()))
            })
            .collect();
        let fallback = arms.last().map_or(after, |arm| arm.2);
        let targets = cases.iter().zip(&arms).flat_map(|((values, _), &(_, _, block))| {
            values.iter().map(move |&bits| (ty.mask(bits), block))
        });
        let cases_to = targets.collect();
        self.at(value.span);
        let terminator = Terminator::Switch { value: local, cases: cases_to, otherwise: fallback };
        self.builder.terminate(terminator);
        for (body, _, block) in arms.into_iter().filter(|arm| arm.1.is_none()) {
            self.arm(block, body, after);
        }
        self.builder.switch_to(after);
    }

    /// Where a body leads that does nothing but go somewhere; a jump to it can go there at once.
    fn direct(&self, body: &[Stmt], after: Block) -> Option<Block> {
        match body {
            [] => Some(after),
            [Stmt { kind: StmtKind::Break(label), span: _ }] => {
                self.label(*label).map(|to| to.after)
            }
            [Stmt { kind: StmtKind::Continue(label), span: _ }] => {
                self.label(*label).and_then(|to| to.next)
            }
            _ => None,
        }
    }

    fn arm(&mut self, block: Block, body: &[Stmt], after: Block) {
        self.builder.switch_to(block);
        self.stmts(body);
        self.jump(after);
    }
}
