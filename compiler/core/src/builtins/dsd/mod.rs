//! Descriptors: made, changed, loaded into registers, turned into FIFOs.
//!
//! Invariants: a descriptor whose parts are all known is a value and costs nothing until it is
//! used; any other is an expression of 64 bits. Extents and strides keep their provenance, so
//! that descriptors that differ between PEs only in them share one program; offsets of known
//! descriptors are part of their address and are fixed.

mod change;
pub(super) mod constant;
mod dsr;
mod fabric;
mod fifo;
mod memory;

pub(super) use change::{increment_offset, set_base, set_length, set_stride};
pub(super) use dsr::{
    load_to_dsr, load_to_dsr_xdsr, load_to_dsr_xdsr_sr, set_dsr_base, set_dsr_length,
};
pub(super) use fifo::{allocate_fifo, set_fifo_read_length, set_fifo_write_length};

use std::rc::Rc;

use dflow_ir::scalar::BinaryOp;
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::Call;
use crate::sema::address::typed;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, DsdValue, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind};

/// `@get_dsd(type, options)`.
pub(super) fn get_dsd(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let ty = sema.type_expr(call.args[0])?;
    let span = sema.expr_span(call.args[0]);
    if sema.is_host() {
        let message = "a host has no descriptors: they say where vectors lie in a PE";
        return sema.fail(codes::BUILTIN_CONTEXT, message, call.span, "made here");
    }
    match sema.types.get(ty) {
        Type::Mem1dDsd => memory::mem1d(sema, call.args[1], call.span),
        Type::Mem4dDsd => memory::mem4d(sema, call.args[1], call.span),
        Type::FabinDsd => fabric::make(sema, true, call.args[1], call.span),
        Type::FaboutDsd => fabric::make(sema, false, call.args[1], call.span),
        Type::CircbufDsd => memory::ring(sema, call.args[1], call.span),
        _ => {
            let message = format!("`{}` is no type of descriptors", sema.type_name(ty));
            let types = "`mem1d_dsd`, `mem4d_dsd`, `circbuf_dsd`, `fabin_dsd` or `fabout_dsd`";
            Err(sema.report(
                Diagnostic::new(codes::INVALID_ARGUMENT, message, span)
                    .label("this type")
                    .help(format!("write {types}")),
            ))
        }
    }
}

/// A known descriptor.
fn known(ty: TypeId, dsd: DsdValue) -> Operand {
    Operand::Const(Value::new(ty, Data::Dsd(Rc::new(dsd))))
}

/// A descriptor that is known only at run time.
fn computed(ty: TypeId, kind: ExprKind, span: Span) -> Operand {
    Operand::Scalar { ty, expr: typed(kind, Ty::I64, span) }
}

/// The descriptor in a value.
fn dsd_of(operand: &Operand) -> Option<DsdValue> {
    match operand {
        Operand::Const(Value { data: Data::Dsd(dsd), .. }) => Some((**dsd).clone()),
        _ => None,
    }
}

/// Bytes of an element that memory descriptors, FIFOs and `@map` can walk over.
pub(super) fn element_bytes(sema: &mut Sema<'_, '_>, ty: TypeId, span: Span) -> R<i64> {
    let common = sema.types.common;
    if [common.i16, common.u16, sema.half()].contains(&ty) {
        return Ok(2);
    }
    if [common.i32, common.u32, common.f32].contains(&ty) {
        return Ok(4);
    }
    let message = format!(
        "elements of a vector are 16- or 32-bit numbers, these are `{}`",
        sema.type_name(ty)
    );
    sema.fail(codes::INVALID_DSD, message, span, "of the wrong element type")
}

/// An argument as a number of a type; the place of the argument.
fn number(sema: &mut Sema<'_, '_>, arg: ExprId, ty: TypeId) -> R<(Operand, Span)> {
    sema.arg_as(arg, ty)
}

/// A number as an expression of 16 bits.
fn word(sema: &mut Sema<'_, '_>, operand: Operand, span: Span) -> R<Expr> {
    match operand {
        Operand::Const(value) => sema.const_expr(&value, Ty::I16, span),
        other => sema.scalar_of(other, span),
    }
}

/// A distance in elements (`i16`).
enum Distance {
    /// In bytes.
    Known(i64),
    /// In bytes, 16 bits.
    Computed(Expr),
}

/// A distance in elements as one in bytes. One that differs between PEs stays an expression
/// where code may be emitted, and is fixed elsewhere.
fn distance(sema: &mut Sema<'_, '_>, operand: Operand, bytes: i64, span: Span) -> R<Distance> {
    if let Operand::Const(value) = &operand
        && (value.prov == 0 || !sema.is_runtime())
    {
        let Some(elements) = sema.fix_int(value) else { return sema.undefined(span) };
        return Ok(Distance::Known(elements as i64 * bytes));
    }
    let elements = word(sema, operand, span)?;
    let bytes = typed(ExprKind::Const(Ty::I16.mask(bytes as u64)), Ty::I16, span);
    let product = ExprKind::Binary(BinaryOp::Mul, elements, bytes);
    Ok(Distance::Computed(typed(product, Ty::I16, span)))
}

/// An argument that is a descriptor of one of some types.
fn dsd_arg(
    sema: &mut Sema<'_, '_>,
    arg: ExprId,
    allowed: &[TypeId],
    name: &str,
) -> R<(Operand, TypeId, Span)> {
    let span = sema.expr_span(arg);
    let operand = sema.expr(arg, None)?;
    let ty = sema.operand_type(&operand);
    if !allowed.contains(&ty) {
        let types: Vec<String> =
            allowed.iter().map(|&ty| format!("`{}`", sema.type_name(ty))).collect();
        let message =
            format!("`@{name}` takes {}, this is `{}`", types.join(" or "), sema.type_name(ty));
        return sema.fail(codes::TYPE_MISMATCH, message, span, "of the wrong type");
    }
    if matches!(&operand, Operand::Const(value) if matches!(value.data, Data::Undef)) {
        return sema.undefined(span);
    }
    Ok((operand, ty, span))
}
