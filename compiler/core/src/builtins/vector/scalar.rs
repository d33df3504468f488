//! Scalars as elements of vectors.

use dflow_ir::scalar::Convert;
use dflow_ir::ty::Ty;
use dflow_syntax::Span;

use crate::sema::address::typed;
use crate::sema::ops::int_range;
use crate::sema::types::TypeId;
use crate::sema::value::Data;
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind};

/// A number as an element of a machine type. Integer elements take signed and unsigned numbers;
/// with `reinterpret` also floats of the same width, by their bits.
pub(crate) fn scalar_as(
    sema: &mut Sema<'_, '_>,
    operand: Operand,
    want: Ty,
    reinterpret: bool,
    span: Span,
) -> R<Expr> {
    let from = sema.operand_type(&operand);
    if reinterpret && !want.is_float() && from == float_of(sema, want.bits()) {
        let expr = sema.scalar_of(operand, span)?;
        return Ok(same_bits(expr, want, span));
    }
    let ty = element_type(sema, &operand, want);
    let operand = sema.coerce(operand, ty, span)?;
    match operand {
        Operand::Const(value) => sema.const_expr(&value, want, span),
        other => sema.scalar_of(other, span),
    }
}

/// The language's type of an element that is nearest to the operand's.
fn element_type(sema: &Sema<'_, '_>, operand: &Operand, want: Ty) -> TypeId {
    let common = sema.types.common;
    let (signed, unsigned) = match want {
        Ty::I8 => (common.i8, common.u8),
        Ty::I16 => (common.i16, common.u16),
        Ty::I32 => (common.i32, common.u32),
        Ty::I64 => (common.i64, common.u64),
        Ty::F16 => return common.f16,
        Ty::Bf16 => return common.bf16,
        Ty::F32 => return common.f32,
        Ty::F64 => return common.f64,
    };
    let from = sema.operand_type(operand);
    let beyond = match operand {
        Operand::Const(value) if from == common.comptime_int => match value.data {
            Data::Int(int) => int_range(&sema.types, signed).is_some_and(|(_, high)| int > high),
            _ => false,
        },
        _ => sema.types.is_int(from) && !sema.types.is_signed(from),
    };
    if beyond { unsigned } else { signed }
}

/// The float type of a width.
pub(super) fn float_of(sema: &Sema<'_, '_>, bits: u32) -> TypeId {
    let common = sema.types.common;
    match bits {
        16 => sema.half(),
        32 => common.f32,
        _ => common.f64,
    }
}

fn same_bits(expr: Expr, want: Ty, span: Span) -> Expr {
    match *expr.kind {
        ExprKind::Const(bits) => typed(ExprKind::Const(bits), want, span),
        _ => typed(ExprKind::Convert(Convert::Bitcast, expr), want, span),
    }
}
