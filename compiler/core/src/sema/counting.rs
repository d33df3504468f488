//! How the counter of an emitted loop ends: a range's end is no number of its walk, and the number
//! behind the last one may be none of its type.

use dflow_ir::scalar::BinaryOp as Ir;
use dflow_ir::ty::Ty;
use dflow_syntax::Span;

use super::Operand;
use super::address::typed;
use super::value::Data;
use crate::typed::{Expr, ExprKind};

/// A walk of a counter, as far as it is known.
pub(super) struct Walk {
    pub(super) start: Option<i128>,
    pub(super) stop: Option<i128>,
    /// Not 0.
    pub(super) step: i128,
    /// The type that the counter has in the machine.
    pub(super) machine: Ty,
    pub(super) signed: bool,
    /// The least and the greatest number of its type.
    pub(super) range: (i128, i128),
}

impl Walk {
    /// Whether the number behind a last one may be more than the counter holds.
    pub(super) fn may_wrap(&self) -> bool {
        let count = 1i128 << self.machine.bits();
        let least = if self.signed { -count / 2 } else { 0 };
        let greatest = least + count - 1;
        // Downwards is upwards with all signs changed.
        let up = self.step > 0;
        let ahead = |number: i128| if up { number } else { -number };
        let (step, bound) = (self.step.abs(), ahead(if up { greatest } else { least }));
        let stop = ahead(self.stop.unwrap_or(if up { self.range.1 } else { self.range.0 }));
        let last = match self.start.map(ahead) {
            Some(start) if start >= stop => return false,
            Some(start) => start + (stop - 1 - start) / step * step,
            None => stop - 1,
        };
        last + step > bound
    }

    /// Whether both bounds are known; if it may wrap, the end then lies ahead of the start.
    pub(super) fn is_known(&self) -> bool {
        self.start.is_some() && self.stop.is_some()
    }

    /// Whether `lhs` comes before `rhs`.
    pub(super) fn before(&self, lhs: Expr, rhs: Expr, span: Span) -> Expr {
        let less = if self.signed { Ir::LtS } else { Ir::LtU };
        let (lhs, rhs) = if self.step > 0 { (lhs, rhs) } else { (rhs, lhs) };
        typed(ExprKind::Binary(less, lhs, rhs), Ty::I8, span)
    }

    /// Whether another step stays before the end: to be asked in front of the step.
    pub(super) fn goes_on(&self, current: Expr, stop: Expr, span: Span) -> Expr {
        if let Some((start, stop)) = self.start.zip(self.stop) {
            // One step before the end; one that is not behind the start makes the first round the last.
            let limit = stop - self.step;
            let limit = if self.step > 0 { limit.max(start) } else { limit.min(start) };
            return self.before(current, self.number(limit, span), span);
        }
        let (near, far) = if self.step > 0 { (current, stop) } else { (stop, current) };
        let left = typed(ExprKind::Binary(Ir::Sub, far, near), self.machine, span);
        let step = self.number(self.step.abs(), span);
        typed(ExprKind::Binary(Ir::LtU, step, left), Ty::I8, span)
    }

    fn number(&self, number: i128, span: Span) -> Expr {
        typed(ExprKind::Const(self.machine.mask(number as u64)), self.machine, span)
    }
}

/// The number that a bound is on all PEs.
pub(super) fn known_bound(operand: &Operand) -> Option<i128> {
    match operand {
        Operand::Const(value) if value.prov == 0 => match value.data {
            Data::Int(int) => Some(int),
            _ => None,
        },
        _ => None,
    }
}

/// How many rounds a loop has whose bounds are known.
pub(super) fn rounds(start: Option<i128>, stop: Option<i128>, step: i128) -> Option<i128> {
    let (start, stop) = start.zip(stop)?;
    let way = if step > 0 { stop.saturating_sub(start) } else { start.saturating_sub(stop) };
    let step = i128::try_from(step.unsigned_abs()).ok().filter(|&step| step > 0)?;
    Some(way.max(0) / step + i128::from(way > 0 && way % step > 0))
}
