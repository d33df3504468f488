//! What concerns all operands of an `@map` together: which may stand beside each other, how many elements there are,
//! what is done when all are.

use dflow_ir::dsd::op::cleared;
use dflow_ir::scalar::{BinaryOp, Convert};
use dflow_ir::ty::Ty;
use dflow_syntax::{Diagnostic, Span, codes};

use super::fabric::Fabric;
use super::walk::{Limit, Walk};
use super::{Input, InputKind, Loop, Output, move_of};
use crate::builtins::dsd::constant;
use crate::builtins::vector::operand;
use crate::sema::address::typed;
use crate::sema::{R, Sema};
use crate::typed::{self, Expr, ExprKind, Stmt, StmtKind, Vector};

/// The operands of a call.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    pub(super) inputs: &'a [Input],
    pub(super) output: Option<&'a Output>,
}

impl<'a> Operands<'a> {
    fn fabric_inputs(self) -> impl Iterator<Item = &'a Fabric> {
        self.inputs.iter().filter_map(|input| match &input.kind {
            InputKind::Fabric(fabric) => Some(fabric),
            InputKind::Memory(_) | InputKind::Register { .. } | InputKind::Same(_) => None,
        })
    }

    fn fabric_output(self) -> Option<&'a Fabric> {
        match self.output {
            Some(Output::Fabric(fabric)) => Some(fabric),
            _ => None,
        }
    }

    fn fabrics(self) -> impl Iterator<Item = &'a Fabric> {
        self.fabric_inputs().chain(self.fabric_output())
    }

    fn has_register(self) -> bool {
        let is_register = |input: &Input| matches!(input.kind, InputKind::Register { .. });
        self.inputs.iter().any(is_register) || matches!(self.output, Some(Output::Register(_)))
    }

    /// Whether elements of 16 bits share words: all that come and go do, or none.
    pub(super) fn packed(self) -> bool {
        let mut fabrics = self.fabrics().peekable();
        fabrics.peek().is_some() && fabrics.all(Fabric::packs)
    }

    /// Refuses operands that cannot stand beside each other.
    pub(super) fn check(self, sema: &mut Sema<'_, '_>, span: Span) -> R<()> {
        self.check_inputs(sema, span)?;
        if !self.has_register() {
            return Ok(());
        }
        let Some(fabric) = self.fabrics().find(|it| self.packed() || it.has_end()) else {
            return Ok(());
        };
        let (option, help) = match fabric.has_end() {
            true => ("`.advance_switch`", "name the descriptors themselves"),
            false => ("a `.simd_mode` that packs", "give it `.simd_off`, or no `.simd_mode`"),
        };
        let message = format!(
            "{option} beside a register is not supported in `@map` yet: what is in the register is not known here"
        );
        Err(sema.report(
            Diagnostic::new(codes::NOT_SUPPORTED, message, fabric.span)
                .label("this descriptor")
                .help(help),
        ))
    }

    /// Each input has a queue of its own, and the target a port.
    fn check_inputs(self, sema: &mut Sema<'_, '_>, span: Span) -> R<()> {
        let inputs: Vec<&Fabric> = self.fabric_inputs().collect();
        operand::check_ports(sema, inputs.len(), span)?;
        let [first, second] = inputs[..] else { return Ok(()) };
        if let (Some(one), Some(other)) = (first.known, second.known) {
            return operand::check_queues(sema, (first.span, one), (second.span, other));
        }
        let differ = ExprKind::Binary(BinaryOp::Ne, first.queue(), second.queue());
        let cond = typed(differ, Ty::I8, span);
        let message = "both inputs of `@map` read one queue".to_owned();
        sema.emit(StmtKind::Assert { cond, message }, span);
        Ok(())
    }

    /// Whether it has to be known which element is the last one.
    fn needs_total(self) -> bool {
        self.fabric_output().is_some_and(|output| output.has_end() || self.packed())
    }

    /// How many elements there are, 32 bits, where somebody wants to know; none if there is no end.
    pub(super) fn total(self, sema: &mut Sema<'_, '_>, span: Span) -> Option<Expr> {
        if !self.needs_total() {
            return None;
        }
        let walks = self.inputs.iter().filter_map(|input| match &input.kind {
            InputKind::Memory(walk) => Some(&walk.limit),
            InputKind::Fabric(fabric) => Some(&fabric.limit),
            InputKind::Register { .. } | InputKind::Same(_) => None,
        });
        let limits = walks.chain(self.output.and_then(Output::limit));
        let mut known: Option<u32> = None;
        let mut late = Vec::new();
        for limit in limits {
            match limit {
                Limit::Known(count) => known = Some(known.map_or(*count, |it| it.min(*count))),
                Limit::Computed(count) => late.push(count.clone()),
                Limit::Endless => {}
            }
        }
        let known = known.map(|count| typed(ExprKind::Const(count.into()), Ty::I32, span));
        known.into_iter().chain(late).reduce(|least, count| lesser(sema, least, count, span))
    }

    /// Clears what the output's `.zero` says, if an element was done.
    pub(super) fn clear(self, sema: &mut Sema<'_, '_>, state: &Loop) -> R<()> {
        let chosen = self.fabric_output().and_then(|output| output.known?.zero);
        let Some(chosen) = chosen else { return Ok(()) };
        let is_vector = |at: &usize| !matches!(self.inputs[*at].kind, InputKind::Same(_));
        let vectors: Vec<usize> = (0..self.inputs.len()).filter(is_vector).collect();
        let Some(at) = cleared(chosen, &vectors, self.inputs.len()) else { return Ok(()) };
        let span = self.inputs[at].span;
        match &self.inputs[at].kind {
            InputKind::Memory(walk) => {
                constant::check(sema, &walk.dsd, span, "the source that `.zero` clears")?;
                clear(sema, walk, state)
            }
            InputKind::Register { .. } => {
                let message = "`.zero` of what is in a register is not supported in `@map` yet";
                sema.fail(codes::NOT_SUPPORTED, message, span, "to be cleared")
            }
            InputKind::Fabric(_) | InputKind::Same(_) => Ok(()),
        }
    }
}

fn lesser(sema: &mut Sema<'_, '_>, least: Expr, count: Expr, span: Span) -> Expr {
    let total = sema.new_scalar(None, Ty::I32);
    sema.emit(StmtKind::Set(total, least.clone()), span);
    let cond = typed(ExprKind::Binary(BinaryOp::LtU, count.clone(), least), Ty::I8, span);
    let then = vec![Stmt { kind: StmtKind::Set(total, count), span }];
    sema.emit(StmtKind::If { cond, then, otherwise: Vec::new() }, span);
    typed(ExprKind::Local(total), Ty::I32, span)
}

/// Writes zeros over the elements that were read: as many as a vector of one zero, again and again.
fn clear(sema: &mut Sema<'_, '_>, walk: &Walk, state: &Loop) -> R<()> {
    let span = state.span;
    let zero = sema.new_memory(None, sema.types.common.u32, span)?;
    let address = ExprKind::LocalAddress { local: zero, offset: 0 };
    let base = typed(address, sema.profile().pointer(), span);
    let constant = |bits: u64, ty: Ty| typed(ExprKind::Const(bits), ty, span);
    let extent = typed(ExprKind::Convert(Convert::Truncate, state.count()), Ty::I16, span);
    let zeros = ExprKind::Mem1d {
        base: base.clone(),
        extent,
        stride: constant(0, Ty::I16),
        indexed: false,
        constant: true,
    };
    let word = if walk.machine.bytes() == 2 { Ty::I16 } else { Ty::I32 };
    let dsd = sema.scalar_of(walk.dsd.clone(), span)?;
    let vector = Vector {
        op: move_of(sema, word, span)?,
        dest: typed::Operand::Memory(dsd),
        sources: vec![typed::Operand::Memory(typed(zeros, Ty::I64, span))],
        options: typed::Options::default(),
    };
    let clear = typed(ExprKind::Vector(Box::new(vector)), Ty::I8, span);
    let then = vec![
        Stmt {
            kind: StmtKind::Store { address: base, offset: 0, value: constant(0, Ty::I32) },
            span,
        },
        Stmt { kind: StmtKind::Expr(clear), span },
    ];
    let some = ExprKind::Binary(BinaryOp::Ne, state.count(), constant(0, Ty::I32));
    let cond = typed(some, Ty::I8, span);
    sema.emit(StmtKind::If { cond, then, otherwise: Vec::new() }, span);
    Ok(())
}
