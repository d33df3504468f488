//! Inputs, outputs and settings by name; clocks and counters; functions of doubles.

use dflow_ir::program::{HostMath, HostOp};
use dflow_ir::ty::{ElementType, Ty};
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Span, codes};

use super::{name_arg, new_slice, perform, perform_one, slice_arg};
use crate::builtins::Call;
use crate::builtins::export::element_type;
use crate::sema::types::{Type, TypeId};
use crate::sema::{Operand, R, Sema};

/// A type whose values files and settings hold.
fn number_type(sema: &mut Sema<'_, '_>, ty: TypeId, bools: bool, span: Span) -> R<ElementType> {
    let fits = match sema.types.get(ty) {
        Type::Int { .. } | Type::Float(_) => true,
        Type::Bool => bools,
        _ => false,
    };
    if fits {
        sema.machine_ty(ty, span)?;
        if let Some(known) = element_type(sema, ty) {
            return Ok(known);
        }
    }
    let name = sema.type_name(ty);
    let message = format!("elements are sized numbers here, not `{name}`");
    sema.fail(codes::HOST_TYPE, message, span, "of this type")
}

/// `@input(name, T)`: `[]T`.
pub(crate) fn input(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (name, _) = name_arg(sema, call.args[0])?;
    let elem = sema.type_expr(call.args[1])?;
    let span = sema.expr_span(call.args[1]);
    let ty = number_type(sema, elem, false, span)?;
    let op = HostOp::Input { name, ty };
    let results = perform(sema, op, &[Ty::I64, Ty::I64], Vec::new(), call.span);
    match <[_; 2]>::try_from(results) {
        Ok([ptr, len]) => new_slice(sema, elem, ptr, len, call.span),
        Err(_) => Ok(Operand::Void),
    }
}

/// `@output(name, slice)`.
pub(crate) fn output(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (name, _) = name_arg(sema, call.args[0])?;
    let (slice, span) = slice_arg(sema, call.args[1])?;
    let ty = number_type(sema, slice.elem, false, span)?;
    perform(sema, HostOp::Output { name, ty }, &[], vec![slice.ptr, slice.len], call.span);
    Ok(Operand::Void)
}

/// `@setting(name, T, default)`.
pub(crate) fn setting(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (name, _) = name_arg(sema, call.args[0])?;
    let wanted = sema.type_expr(call.args[1])?;
    let span = sema.expr_span(call.args[1]);
    let ty = number_type(sema, wanted, true, span)?;
    let (default, default_span) = sema.arg_as(call.args[2], wanted)?;
    let default = sema.scalar_of(default, default_span)?;
    let op = HostOp::Setting { name, ty };
    perform_one(sema, op, wanted, vec![default], call.span)
}

/// `@has_input(name)`.
pub(crate) fn has_input(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (name, _) = name_arg(sema, call.args[0])?;
    let ty = sema.types.common.bool;
    perform_one(sema, HostOp::HasInput { name }, ty, Vec::new(), call.span)
}

/// `@has_setting(name)`.
pub(crate) fn has_setting(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (name, _) = name_arg(sema, call.args[0])?;
    let ty = sema.types.common.bool;
    perform_one(sema, HostOp::HasSetting { name }, ty, Vec::new(), call.span)
}

/// `@cycles()`: `u64`.
pub(crate) fn cycles(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    perform_one(sema, HostOp::Cycles, sema.types.common.u64, Vec::new(), call.span)
}

/// `@wavelets()`: `u64`.
pub(crate) fn wavelets(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    perform_one(sema, HostOp::Wavelets, sema.types.common.u64, Vec::new(), call.span)
}

/// `@clock_rate()`: `f64`.
pub(crate) fn clock_rate(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    perform_one(sema, HostOp::ClockRate, sema.types.common.f64, Vec::new(), call.span)
}

/// `@assumed_share()`: `f64`.
pub(crate) fn assumed_share(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    perform_one(sema, HostOp::AssumedShare, sema.types.common.f64, Vec::new(), call.span)
}

fn math(sema: &mut Sema<'_, '_>, function: HostMath, arg: ExprId, span: Span) -> R<Operand> {
    let f64_ty = sema.types.common.f64;
    let (operand, arg_span) = sema.arg_as(arg, f64_ty)?;
    let x = sema.scalar_of(operand, arg_span)?;
    perform_one(sema, HostOp::Math(function), f64_ty, vec![x], span)
}

/// `@log10(x)`.
pub(crate) fn log10(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    math(sema, HostMath::Log10, call.args[0], call.span)
}

/// `@log(x)`.
pub(crate) fn log(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    math(sema, HostMath::Log, call.args[0], call.span)
}

/// `@exp(x)`.
pub(crate) fn exp(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    math(sema, HostMath::Exp, call.args[0], call.span)
}

/// `@sin(x)`.
pub(crate) fn sin(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    math(sema, HostMath::Sin, call.args[0], call.span)
}

/// `@cos(x)`.
pub(crate) fn cos(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    math(sema, HostMath::Cos, call.args[0], call.span)
}
