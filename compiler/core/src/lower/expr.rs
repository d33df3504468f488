//! Expressions.
//!
//! Scalar locals change only between expressions (calls cannot see them), so a use of one is
//! the local itself, and the outermost operation of an expression writes where its value is
//! wanted. Operands are evaluated in written order.

use dflow_ir::func::Local;
use dflow_ir::inst::{Bounded, InstData};
use dflow_ir::program::ShapeId;
use dflow_ir::scalar::{BinaryOp, Convert, UnaryOp};
use dflow_ir::ty::Ty;
use dflow_syntax::Span;

use super::func::Lower;
use super::program::{func_id, global_id, slot_id};
use crate::typed::{Expr, ExprKind, LocalIdx};

/// An operation whose first operand is already there.
enum Step<'e> {
    Load(i32),
    Unary(UnaryOp),
    Binary(BinaryOp, &'e Expr),
    Convert(Convert),
    Bound(Bounded, &'e Expr),
}

impl Lower<'_> {
    /// A local that holds the value: the variable itself, or a fresh one.
    pub(super) fn value(&mut self, expr: &Expr) -> Local {
        if let ExprKind::Local(local) = &*expr.kind {
            return self.scalar(*local);
        }
        let dst = self.fresh(expr);
        self.into(dst, expr);
        dst
    }

    /// Values of several expressions, in order.
    pub(super) fn values(&mut self, exprs: &[Expr]) -> Vec<Local> {
        exprs.iter().map(|expr| self.value(expr)).collect()
    }

    /// Evaluates for the effects; traps count as such.
    pub(super) fn effects(&mut self, expr: &Expr) {
        if let ExprKind::Vector(vector) = &*expr.kind {
            self.vector(vector, None, expr.span);
        } else if expr.ty.is_some() {
            self.value(expr);
        } else if let ExprKind::Call { .. } | ExprKind::CallIndirect { .. } = &*expr.kind {
            self.call(None, expr);
        }
    }

    /// Computes the value into `dst`, which has the expression's type.
    pub(super) fn into(&mut self, dst: Local, expr: &Expr) {
        let inst = match &*expr.kind {
            ExprKind::Local(local) => return self.copy(dst, *local, expr.span),
            ExprKind::Load { .. }
            | ExprKind::Unary(_, _)
            | ExprKind::Binary(_, _, _)
            | ExprKind::Convert(_, _)
            | ExprKind::Bound(_, _, _) => return self.chain(dst, expr),
            ExprKind::Call { .. } | ExprKind::CallIndirect { .. } => {
                return self.call(Some(dst), expr);
            }
            ExprKind::Vector(vector) => return self.vector(vector, Some(dst), expr.span),
            ExprKind::Const(bits) => {
                InstData::Const { dst, bits: self.builder.ty(dst).mask(*bits) }
            }
            ExprKind::Slot(slot) => InstData::Slot { dst, slot: slot_id(*slot) },
            ExprKind::GlobalAddress { global, offset } => {
                InstData::GlobalAddress { dst, global: global_id(*global), offset: *offset }
            }
            ExprKind::LocalAddress { local, offset } => {
                InstData::StackAddress { dst, slot: self.stack_slot(*local), offset: *offset }
            }
            ExprKind::Held { .. } => unreachable!("holds are settled before"),
            ExprKind::FuncAddress(func) => InstData::FuncAddress { dst, func: func_id(*func) },
            ExprKind::Random => InstData::Random { dst },
            ExprKind::GetConfig(addr) => InstData::GetConfig { dst, addr: self.value(addr) },
            ExprKind::Queues(state) => InstData::Queues { dst, state: *state },
            ExprKind::Ring { base, extent, wrap, .. } => InstData::MakeRing {
                dst,
                base: self.value(base),
                extent: self.value(extent),
                wrap: self.value(wrap),
            },
            ExprKind::ClockRead(op) => InstData::Clock { op: *op, dst: Some(dst) },
            ExprKind::Mem1d { base, extent, stride, indexed, .. } => InstData::MakeMem1d {
                dst,
                base: self.value(base),
                extent: self.value(extent),
                stride: self.value(stride),
                indexed: *indexed,
            },
            ExprKind::Mem4d { base, shape, indexed, .. } => {
                let (base, shape) = (self.value(base), ShapeId::from_u32(*shape));
                InstData::MakeMem4d { dst, base, shape, indexed: *indexed }
            }
            ExprKind::Fabric { desc, extent } => {
                InstData::MakeFabric { dst, desc: *desc, extent: self.value(extent) }
            }
            ExprKind::MoveBase { dsd, delta } => {
                InstData::DsdMoveBase { dst, src: self.value(dsd), delta: self.value(delta) }
            }
            ExprKind::SetBase { dsd, base, .. } => {
                InstData::DsdSetBase { dst, src: self.value(dsd), base: self.value(base) }
            }
            ExprKind::SetExtent { dsd, extent } => {
                InstData::DsdSetExtent { dst, src: self.value(dsd), extent: self.value(extent) }
            }
            ExprKind::SetStride { dsd, stride } => {
                InstData::DsdSetStride { dst, src: self.value(dsd), stride: self.value(stride) }
            }
        };
        self.emit(expr.span, inst);
    }

    /// Appends an instruction that was written at `span`.
    pub(super) fn emit(&mut self, span: Span, inst: InstData) {
        self.at(span);
        self.builder.inst(inst);
    }

    /// A new local of the expression's type.
    fn fresh(&mut self, expr: &Expr) -> Local {
        debug_assert!(expr.ty.is_some(), "only calls have no value");
        self.builder.local(expr.ty.unwrap_or(Ty::I16))
    }

    fn copy(&mut self, dst: Local, source: LocalIdx, span: Span) {
        let src = self.scalar(source);
        if src != dst {
            self.emit(span, InstData::Copy { dst, src });
        }
    }

    /// Walks down the first operands and computes on the way back: `a + b + c + …` and
    /// `!!!…a` nest as deep as they are long.
    fn chain(&mut self, dst: Local, expr: &Expr) {
        let mut steps = Vec::new();
        let mut inner = expr;
        while let Some((step, first)) = step(inner) {
            steps.push((step, inner));
            inner = first;
        }
        let mut src = self.value(inner);
        while let Some((step, whole)) = steps.pop() {
            let dst = match step {
                Step::Bound(_, _) => src,
                _ if steps.is_empty() => dst,
                _ => self.fresh(whole),
            };
            let inst = match step {
                Step::Bound(what, len) => {
                    InstData::Bound { index: src, len: self.value(len), what }
                }
                Step::Load(offset) => InstData::Load { dst, addr: src, offset },
                Step::Unary(op) => InstData::Unary { dst, op, src },
                Step::Convert(kind) => InstData::Convert { dst, kind, src },
                Step::Binary(op, right) => {
                    InstData::Binary { dst, op, lhs: src, rhs: self.value(right) }
                }
            };
            self.emit(whole.span, inst);
            src = dst;
        }
        if src != dst {
            self.emit(expr.span, InstData::Copy { dst, src });
        }
    }

    fn call(&mut self, dst: Option<Local>, expr: &Expr) {
        if let ExprKind::Call { func, args } = &*expr.kind {
            let args = self.values(args);
            self.emit(expr.span, InstData::Call { dst, func: func_id(*func), args });
        } else if let ExprKind::CallIndirect { callee, params, args } = &*expr.kind {
            let callee = self.value(callee);
            let args = self.values(args);
            let sig = self.signature(params.clone(), expr.ty);
            self.emit(expr.span, InstData::CallIndirect { dst, callee, sig, args });
        }
    }
}

/// The outermost operation and its first operand, for operations that form chains.
fn step(expr: &Expr) -> Option<(Step<'_>, &Expr)> {
    match &*expr.kind {
        ExprKind::Load { address, offset } => Some((Step::Load(*offset), address)),
        ExprKind::Unary(op, operand) => Some((Step::Unary(*op), operand)),
        ExprKind::Binary(op, lhs, rhs) => Some((Step::Binary(*op, rhs), lhs)),
        ExprKind::Convert(kind, operand) => Some((Step::Convert(*kind), operand)),
        ExprKind::Bound(what, index, len) => Some((Step::Bound(*what, len), index)),
        ExprKind::Const(_)
        | ExprKind::Slot(_)
        | ExprKind::Local(_)
        | ExprKind::GlobalAddress { .. }
        | ExprKind::LocalAddress { .. }
        | ExprKind::Held { .. }
        | ExprKind::FuncAddress(_)
        | ExprKind::Call { .. }
        | ExprKind::CallIndirect { .. }
        | ExprKind::Mem1d { .. }
        | ExprKind::Mem4d { .. }
        | ExprKind::Fabric { .. }
        | ExprKind::Ring { .. }
        | ExprKind::Queues(_)
        | ExprKind::MoveBase { .. }
        | ExprKind::SetBase { .. }
        | ExprKind::SetExtent { .. }
        | ExprKind::SetStride { .. }
        | ExprKind::Vector(_)
        | ExprKind::Random
        | ExprKind::GetConfig(_)
        | ExprKind::ClockRead(_) => None,
    }
}
