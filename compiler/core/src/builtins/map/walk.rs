//! The operands of `@map` that have elements: where they start, how they go on, where they end.

use dflow_ir::dsd::INFINITE;
use dflow_ir::inst::Bounded;
use dflow_ir::scalar::{BinaryOp, Convert};
use dflow_ir::ty::Ty;
use dflow_syntax::{Span, codes};

use crate::builtins::dsd::element_bytes;
use crate::builtins::vector::odd;
use crate::sema::address::{Address, typed};
use crate::sema::types::TypeId;
use crate::sema::value::{Data, DsdValue, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind, LocalIdx, Stmt, StmtKind};

/// A vector in memory and the element we stand at.
pub(super) struct Walk {
    /// The descriptor.
    pub(super) dsd: Operand,
    ty: TypeId,
    pub(super) machine: Ty,
    /// Address of the element, 16 bits.
    pointer: LocalIdx,
    /// Dimensions, innermost first.
    dims: Vec<Dim>,
    pub(super) limit: Limit,
    span: Span,
}

struct Dim {
    extent: u16,
    /// Bytes from element to element, 16 bits.
    step: Expr,
    /// Elements behind us: of all dimensions but the outermost.
    position: Option<LocalIdx>,
}

/// How many elements an operand has.
pub(super) enum Limit {
    Known(u32),
    /// 32 bits.
    Computed(Expr),
    /// Its extent means "without end".
    Endless,
}

/// Prepares a vector in memory with elements of a type.
pub(super) fn memory(sema: &mut Sema<'_, '_>, operand: Operand, ty: TypeId, span: Span) -> R<Walk> {
    let bytes = element_bytes(sema, ty, span)?;
    let machine = sema.machine_ty(ty, span)?;
    let (name, help) =
        (sema.type_name(ty), "use a callback of this type, or describe another array");
    let takes = ("map", &*format!("`{name}`"), help);
    odd::element_size(sema, &operand, machine, takes, span)?;
    let pointer = sema.new_scalar(None, Ty::I16);
    let dsd = match operand {
        Operand::Scalar { ty, expr } => Operand::Scalar { ty, expr: sema.pin(expr, span) },
        other => other,
    };
    let (base, dims, limit) = match dsd.clone() {
        Operand::Const(Value { data: Data::Dsd(dsd), .. }) => known(sema, &dsd, bytes, span)?,
        Operand::Scalar { ty, expr } if ty == sema.types.common.mem1d_dsd => {
            computed(sema, expr, bytes, span)
        }
        Operand::Scalar { .. } => {
            let message = "a `mem4d_dsd` that is known only at run time is not supported in \
                           `@map` yet: its shape must be known";
            return sema.fail(codes::NOT_SUPPORTED, message, span, "this descriptor");
        }
        Operand::Const(_) | Operand::Memory { .. } | Operand::Void => {
            return sema.undefined(span);
        }
    };
    sema.emit(StmtKind::Set(pointer, base), span);
    Ok(Walk { dsd, ty, machine, pointer, dims, limit, span })
}

type Parts = (Expr, Vec<Dim>, Limit);

fn known(sema: &mut Sema<'_, '_>, dsd: &DsdValue, bytes: i64, span: Span) -> R<Parts> {
    match dsd {
        DsdValue::Mem1d { base, extent, stride, .. } => {
            let base = sema.address_expr(&Address::of_pointer(base), span)?;
            let stride = sema.const_expr(stride, Ty::I16, span)?;
            let step = times(stride, bytes, span);
            let step = sema.pin(step, span);
            let limit = limit_of(sema, extent, span)?;
            Ok((base, vec![Dim { extent: 0, step, position: None }], limit))
        }
        DsdValue::Mem4d { base, dims, .. } => {
            let base = sema.address_expr(&Address::of_pointer(base), span)?;
            let count = dims.iter().map(|&(extent, _)| u64::from(extent)).product::<u64>();
            let mut walk = Vec::with_capacity(dims.len());
            for (at, &(extent, stride)) in dims.iter().enumerate().rev() {
                let step = constant(i64::from(stride) * bytes, span);
                let position = (at > 0).then(|| zeroed(sema, span));
                walk.push(Dim { extent, step, position });
            }
            Ok((base, walk, Limit::Known(u32::try_from(count).unwrap_or(u32::MAX))))
        }
        DsdValue::Fabric { .. } => {
            let message = "a fabric descriptor has no memory";
            sema.fail(codes::INVALID_DSD, message, span, "used as memory")
        }
        DsdValue::Ring { .. } => {
            let message = "a `circbuf_dsd` is walked through a register: load it into one";
            sema.fail(codes::INVALID_DSD, message, span, "used as memory")
        }
    }
}

/// The parts of a packed mem1d descriptor: base, extent and stride are its three low words.
fn computed(sema: &mut Sema<'_, '_>, dsd: Expr, bytes: i64, span: Span) -> Parts {
    let base = word_of(&dsd, 0, span);
    let limit = computed_limit(sema, word_of(&dsd, 16, span), span);
    let step = times(word_of(&dsd, 32, span), bytes, span);
    let step = sema.pin(step, span);
    (base, vec![Dim { extent: 0, step, position: None }], limit)
}

pub(super) fn word_of(dsd: &Expr, shift: u64, span: Span) -> Expr {
    let shifted = if shift == 0 {
        dsd.clone()
    } else {
        let count = typed(ExprKind::Const(shift), Ty::I64, span);
        typed(ExprKind::Binary(BinaryOp::ShrU, dsd.clone(), count), Ty::I64, span)
    };
    typed(ExprKind::Convert(Convert::Truncate, shifted), Ty::I16, span)
}

pub(super) fn limit_of(sema: &mut Sema<'_, '_>, extent: &Value, span: Span) -> R<Limit> {
    if extent.prov != 0 {
        let extent = sema.const_expr(extent, Ty::I16, span)?;
        return Ok(computed_limit(sema, extent, span));
    }
    Ok(match sema.fix_int(extent) {
        Some(count) if count == i128::from(INFINITE) => Limit::Endless,
        Some(count) => Limit::Known(count as u32),
        None => return sema.undefined(span),
    })
}

/// A run-time extent; "without end" becomes more than anyone counts.
pub(super) fn computed_limit(sema: &mut Sema<'_, '_>, extent: Expr, span: Span) -> Limit {
    let limit = sema.new_scalar(None, Ty::I32);
    let wide = typed(ExprKind::Convert(Convert::ZeroExtend, extent), Ty::I32, span);
    sema.emit(StmtKind::Set(limit, wide), span);
    let value = typed(ExprKind::Local(limit), Ty::I32, span);
    let infinite = typed(ExprKind::Const(u64::from(INFINITE)), Ty::I32, span);
    let cond = typed(ExprKind::Binary(BinaryOp::Eq, value.clone(), infinite), Ty::I8, span);
    let endless = typed(ExprKind::Const(u64::from(u32::MAX)), Ty::I32, span);
    let then = vec![Stmt { kind: StmtKind::Set(limit, endless), span }];
    sema.emit(StmtKind::If { cond, then, otherwise: Vec::new() }, span);
    Limit::Computed(value)
}

fn constant(value: i64, span: Span) -> Expr {
    typed(ExprKind::Const(Ty::I16.mask(value as u64)), Ty::I16, span)
}

/// A distance in elements as one in bytes.
fn times(elements: Expr, bytes: i64, span: Span) -> Expr {
    match *elements.kind {
        ExprKind::Const(count) => constant((count as i64).wrapping_mul(bytes), span),
        _ => {
            let product = ExprKind::Binary(BinaryOp::Mul, elements, constant(bytes, span));
            typed(product, Ty::I16, span)
        }
    }
}

fn zeroed(sema: &mut Sema<'_, '_>, span: Span) -> LocalIdx {
    let local = sema.new_scalar(None, Ty::I16);
    sema.emit(StmtKind::Set(local, constant(0, span)), span);
    local
}

impl Walk {
    /// Where the element lies: in the memory, and in none of the registers behind it.
    fn address(&self, sema: &Sema<'_, '_>) -> Expr {
        let address = typed(ExprKind::Local(self.pointer), Ty::I16, self.span);
        let end = sema.target.memory + 1 - self.machine.bytes();
        if end > u32::from(u16::MAX) {
            return address;
        }
        let end = constant(end.into(), self.span);
        typed(ExprKind::Bound(Bounded::Address, address, end), Ty::I16, self.span)
    }

    /// The element we stand at, read now: the callback may change the memory.
    pub(super) fn element(&self, sema: &mut Sema<'_, '_>, span: Span) -> R<Operand> {
        let load = ExprKind::Load { address: self.address(sema), offset: 0 };
        let expr = sema.pin(typed(load, self.machine, span), span);
        Ok(Operand::Scalar { ty: self.ty, expr })
    }

    pub(super) fn store(&self, sema: &mut Sema<'_, '_>, value: Expr, span: Span) {
        let address = self.address(sema);
        sema.emit(StmtKind::Store { address, offset: 0, value }, span);
    }

    /// Emits the step to the next element.
    pub(super) fn advance(&self, sema: &mut Sema<'_, '_>) {
        for stmt in self.steps(&self.dims) {
            sema.emit(stmt.kind, stmt.span);
        }
    }

    fn set(&self, local: LocalIdx, op: BinaryOp, by: Expr) -> Stmt {
        let old = typed(ExprKind::Local(local), Ty::I16, self.span);
        let value = typed(ExprKind::Binary(op, old, by), Ty::I16, self.span);
        Stmt { kind: StmtKind::Set(local, value), span: self.span }
    }

    /// A step in the first of these dimensions; at its end, back to its start and a step in the
    /// next one.
    fn steps(&self, dims: &[Dim]) -> Vec<Stmt> {
        let Some((dim, outer)) = dims.split_first() else { return Vec::new() };
        let span = self.span;
        let mut stmts = vec![self.set(self.pointer, BinaryOp::Add, dim.step.clone())];
        let Some(position) = dim.position else { return stmts };
        stmts.push(self.set(position, BinaryOp::Add, constant(1, span)));
        let covered = times(dim.step.clone(), i64::from(dim.extent), span);
        let mut then = vec![
            Stmt { kind: StmtKind::Set(position, constant(0, span)), span },
            self.set(self.pointer, BinaryOp::Sub, covered),
        ];
        then.extend(self.steps(outer));
        let (value, end) = (
            typed(ExprKind::Local(position), Ty::I16, span),
            constant(i64::from(dim.extent), span),
        );
        let cond = typed(ExprKind::Binary(BinaryOp::Eq, value, end), Ty::I8, span);
        stmts.push(Stmt { kind: StmtKind::If { cond, then, otherwise: Vec::new() }, span });
        stmts
    }
}
