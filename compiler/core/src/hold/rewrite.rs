//! Holds become what was decided.

use std::collections::{BTreeMap, BTreeSet};

use dflow_ir::scalar::BinaryOp;

use crate::typed::{
    Expr, ExprKind, Func, HoldIdx, Local, LocalIdx, LocalKind, Operand, Stmt, StmtKind,
};

/// Where the copies are.
type Copies = BTreeMap<HoldIdx, LocalIdx>;

/// Makes copies of some values; the others are read where they lie.
pub(super) fn apply(func: &mut Func, copied: &BTreeSet<HoldIdx>) {
    if func.passing.holds == 0 {
        return;
    }
    func.passing.holds = 0;
    let mut copies = Copies::new();
    let mut lists = vec![&mut func.body];
    while let Some(list) = lists.pop() {
        list.retain_mut(|stmt| settled(stmt, copied, &mut copies, &mut func.locals));
        for stmt in list {
            nested(stmt, &mut lists);
        }
    }
    let mut lists = vec![&mut func.body];
    while let Some(list) = lists.pop() {
        for stmt in list {
            exprs(stmt, &copies);
            nested(stmt, &mut lists);
        }
    }
}

/// Makes a hold a copy; false if there is none to make.
fn settled(
    stmt: &mut Stmt,
    copied: &BTreeSet<HoldIdx>,
    copies: &mut Copies,
    locals: &mut Vec<Local>,
) -> bool {
    let StmtKind::Hold { hold, source, bytes, align } = &stmt.kind else { return true };
    if !copied.contains(hold) {
        return false;
    }
    let local = LocalIdx(locals.len() as u32);
    locals.push(Local { name: None, kind: LocalKind::Memory { size: *bytes, align: *align } });
    copies.insert(*hold, local);
    let dest = ExprKind::LocalAddress { local, offset: 0 };
    let dest = Expr { kind: Box::new(dest), ty: source.ty, span: source.span };
    stmt.kind = StmtKind::Copy { dest, source: source.clone(), bytes: *bytes };
    true
}

/// The lists of statements within a statement.
fn nested<'a>(stmt: &'a mut Stmt, lists: &mut Vec<&'a mut Vec<Stmt>>) {
    match &mut stmt.kind {
        StmtKind::If { then, otherwise, .. } => lists.extend([then, otherwise]),
        StmtKind::While { step, body, .. } => lists.extend([body, step]),
        StmtKind::Block { body, .. } => lists.push(body),
        StmtKind::Switch { cases, otherwise, .. } => {
            lists.extend(cases.iter_mut().map(|(_, body)| body));
            lists.push(otherwise);
        }
        _ => {}
    }
}

/// Settles the expressions of a statement that stand in no other.
fn exprs(stmt: &mut Stmt, copies: &Copies) {
    let mut open: Vec<&mut Expr> = Vec::new();
    match &mut stmt.kind {
        StmtKind::Store { address, offset, value } => {
            take_offset(address, offset, copies);
            open.extend([address, value]);
        }
        StmtKind::Copy { dest: first, source: second, .. }
        | StmtKind::Fill { dest: first, value: second, .. }
        | StmtKind::SetConfig { addr: first, value: second } => open.extend([first, second]),
        StmtKind::LoadDsr { dsd, options, .. } => {
            open.push(dsd);
            open.extend(&mut options.index);
        }
        StmtKind::Host { args, .. } => open.extend(args),
        StmtKind::Expr(value)
        | StmtKind::Set(_, value)
        | StmtKind::If { cond: value, .. }
        | StmtKind::While { cond: value, .. }
        | StmtKind::Switch { value, .. }
        | StmtKind::Return(Some(value))
        | StmtKind::Flag { id: value, .. }
        | StmtKind::SetDsr { value, .. }
        | StmtKind::SetRandom(value)
        | StmtKind::SetFifoLength { length: value, .. }
        | StmtKind::Assert { cond: value, .. }
        | StmtKind::Hold { source: value, .. } => open.push(value),
        StmtKind::Block { .. }
        | StmtKind::Break(_)
        | StmtKind::Continue(_)
        | StmtKind::Return(None)
        | StmtKind::Clock(_) => {}
    }
    // Without recursion: operator chains nest as deep as they are long.
    while let Some(expr) = open.pop() {
        while settle(expr, copies) {}
        parts(expr, copies, &mut open);
    }
}

/// Replaces a part of a hold by where it is; false if it is none.
fn settle(expr: &mut Expr, copies: &Copies) -> bool {
    let ExprKind::Held { hold, source, offset, index } = &mut *expr.kind else { return false };
    let (ty, span) = (source.ty, source.span);
    let part = match copies.get(hold) {
        None => source.clone(),
        Some(&local) => {
            let start = ExprKind::LocalAddress { local, offset: *offset };
            let start = Expr { kind: Box::new(start), ty, span };
            match index.take() {
                None => start,
                Some(index) => {
                    let sum = ExprKind::Binary(BinaryOp::Add, start, index);
                    Expr { kind: Box::new(sum), ty, span }
                }
            }
        }
    };
    *expr = part;
    true
}

/// What a load or store adds to the address of a copy's part goes into that.
fn take_offset(address: &mut Expr, rest: &mut i32, copies: &Copies) {
    if let ExprKind::Held { hold, offset, .. } = &mut *address.kind
        && copies.contains_key(hold)
    {
        *offset += std::mem::take(rest);
    }
}

/// The expressions within an expression.
fn parts<'a>(expr: &'a mut Expr, copies: &Copies, open: &mut Vec<&'a mut Expr>) {
    match &mut *expr.kind {
        ExprKind::Load { address, offset } => {
            take_offset(address, offset, copies);
            open.push(address);
        }
        ExprKind::Unary(_, part)
        | ExprKind::Convert(_, part)
        | ExprKind::GetConfig(part)
        | ExprKind::Mem4d { base: part, .. }
        | ExprKind::Fabric { extent: part, .. } => open.push(part),
        ExprKind::Binary(_, first, second)
        | ExprKind::Bound(_, first, second)
        | ExprKind::MoveBase { dsd: first, delta: second }
        | ExprKind::SetBase { dsd: first, base: second, .. }
        | ExprKind::SetExtent { dsd: first, extent: second }
        | ExprKind::SetStride { dsd: first, stride: second } => open.extend([first, second]),
        ExprKind::Mem1d { base, extent: second, stride: third, .. }
        | ExprKind::Ring { base, extent: second, wrap: third, .. } => {
            open.extend([base, second, third]);
        }
        ExprKind::Call { args, .. } => open.extend(args),
        ExprKind::CallIndirect { callee, args, .. } => {
            open.push(callee);
            open.extend(args);
        }
        ExprKind::Vector(vector) => {
            open.extend(&mut vector.options.index);
            let operands = vector.sources.iter_mut().chain([&mut vector.dest]);
            open.extend(operands.filter_map(in_operand));
        }
        ExprKind::Held { .. } => unreachable!("settled before its parts are looked at"),
        ExprKind::Const(_)
        | ExprKind::Slot(_)
        | ExprKind::Local(_)
        | ExprKind::GlobalAddress { .. }
        | ExprKind::LocalAddress { .. }
        | ExprKind::FuncAddress(_)
        | ExprKind::Random
        | ExprKind::ClockRead(_)
        | ExprKind::Queues(_) => {}
    }
}

fn in_operand(operand: &mut Operand) -> Option<&mut Expr> {
    match operand {
        Operand::Memory(expr)
        | Operand::Fabric(expr)
        | Operand::Scalar(expr)
        | Operand::Pointer(expr) => Some(expr),
        Operand::Dsr(_) | Operand::Fifo(_) => None,
    }
}
