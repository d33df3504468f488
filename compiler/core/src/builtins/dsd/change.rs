//! Descriptors made from others.

use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::memory::{check_stride, pointee_bytes};
use super::{Distance, computed, distance, dsd_arg, dsd_of, element_bytes, known, number, word};
use crate::builtins::Call;
use crate::sema::address::Address;
use crate::sema::types::Type;
use crate::sema::value::DsdValue;
use crate::sema::{Operand, R, Sema};
use crate::typed::ExprKind;

/// `@increment_dsd_offset(dsd, elements, type)`: the base moves by elements of a type, whatever
/// type the descriptor was made from.
pub(in crate::builtins) fn increment_offset(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let common = sema.types.common;
    let allowed = [common.mem1d_dsd, common.mem4d_dsd];
    let (dsd, ty, span) = dsd_arg(sema, call.args[0], &allowed, call.name)?;
    let (elements, elements_span) = number(sema, call.args[1], common.i16)?;
    let elem = sema.type_expr(call.args[2])?;
    let elem_span = sema.expr_span(call.args[2]);
    let bytes = element_bytes(sema, elem, elem_span)?;
    let delta = match distance(sema, elements, bytes, elements_span)? {
        Distance::Computed(delta) => delta,
        Distance::Known(bytes) => match dsd_of(&dsd) {
            Some(DsdValue::Mem1d { mut base, extent, stride, indexed, constant }) => {
                base = base.plus(bytes);
                let moved = DsdValue::Mem1d { base, extent, stride, indexed, constant };
                return Ok(known(ty, moved));
            }
            Some(DsdValue::Mem4d { mut base, dims, indexed, constant }) => {
                base = base.plus(bytes);
                return Ok(known(ty, DsdValue::Mem4d { base, dims, indexed, constant }));
            }
            Some(DsdValue::Fabric { .. } | DsdValue::Ring { .. }) | None => {
                constant_word(bytes, elements_span)
            }
        },
    };
    let dsd = sema.scalar_of(dsd, span)?;
    Ok(computed(ty, ExprKind::MoveBase { dsd, delta }, call.span))
}

fn constant_word(value: i64, span: Span) -> crate::typed::Expr {
    use dflow_ir::ty::Ty;
    crate::sema::address::typed(ExprKind::Const(Ty::I16.mask(value as u64)), Ty::I16, span)
}

/// `@set_dsd_base_addr(dsd, array or pointer)`: replaces base and offset.
pub(in crate::builtins) fn set_base(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let common = sema.types.common;
    let allowed = [common.mem1d_dsd, common.mem4d_dsd];
    let (dsd, ty, span) = dsd_arg(sema, call.args[0], &allowed, call.name)?;
    let (address, constant) = address_arg(sema, call.args[1])?;
    match (address.known(), dsd_of(&dsd)) {
        (Some(base), Some(DsdValue::Mem1d { extent, stride, indexed, .. })) => {
            Ok(known(ty, DsdValue::Mem1d { base, extent, stride, indexed, constant }))
        }
        (Some(base), Some(DsdValue::Mem4d { dims, indexed, .. })) => {
            Ok(known(ty, DsdValue::Mem4d { base, dims, indexed, constant }))
        }
        (None, Some(DsdValue::Mem1d { extent, stride, indexed, .. })) => {
            let base = sema.address_expr(&address, call.span)?;
            let extent = word(sema, Operand::Const(extent), span)?;
            let stride = word(sema, Operand::Const(stride), span)?;
            let kind = ExprKind::Mem1d { base, extent, stride, indexed, constant };
            Ok(computed(ty, kind, call.span))
        }
        _ => {
            let base = sema.address_expr(&address, call.span)?;
            let dsd = sema.scalar_of(dsd, span)?;
            Ok(computed(ty, ExprKind::SetBase { dsd, base, constant }, call.span))
        }
    }
}

/// The address in an argument: an array's, or a pointer. Whether nobody writes there.
pub(super) fn address_arg(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<(Address, bool)> {
    let span = sema.expr_span(arg);
    let place = sema.place(arg)?;
    let ty = sema.place_type(&place);
    match *sema.types.get(ty) {
        Type::Array { elem, .. } => {
            pointee_bytes(sema, elem, span)?;
            let (address, mutable) = sema.lasting_memory_of(place, span)?;
            Ok((address, !mutable))
        }
        Type::Pointer { pointee, constant, .. } => {
            pointee_bytes(sema, pointee, span)?;
            let pointer = sema.load(place, span)?;
            Ok((sema.pointer_address(pointer, span)?, constant))
        }
        _ => {
            let message = format!(
                "the base of a vector is an array or a pointer, this is `{}`",
                sema.type_name(ty)
            );
            Err(sema.report(
                Diagnostic::new(codes::TYPE_MISMATCH, message, span).label("of the wrong type"),
            ))
        }
    }
}

/// `@set_dsd_length(dsd, elements)`: any kind but mem4d.
pub(in crate::builtins) fn set_length(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let common = sema.types.common;
    let allowed = [common.mem1d_dsd, common.fabin_dsd, common.fabout_dsd];
    let (dsd, ty, span) = dsd_arg(sema, call.args[0], &allowed, call.name)?;
    let (length, length_span) = number(sema, call.args[1], common.u16)?;
    match (&length, dsd_of(&dsd)) {
        (Operand::Const(extent), Some(DsdValue::Mem1d { base, stride, indexed, constant, .. })) => {
            let extent = extent.clone();
            return Ok(known(ty, DsdValue::Mem1d { base, extent, stride, indexed, constant }));
        }
        (Operand::Const(extent), Some(DsdValue::Fabric { desc, .. })) => {
            return Ok(known(ty, DsdValue::Fabric { desc, extent: extent.clone() }));
        }
        (_, Some(DsdValue::Mem1d { base, stride, indexed, constant, .. })) => {
            let base = sema.address_expr(&Address::of_pointer(&base), span)?;
            let extent = word(sema, length, length_span)?;
            let stride = word(sema, Operand::Const(stride), span)?;
            let kind = ExprKind::Mem1d { base, extent, stride, indexed, constant };
            return Ok(computed(ty, kind, call.span));
        }
        (_, Some(DsdValue::Fabric { desc, .. })) => {
            let extent = word(sema, length, length_span)?;
            return Ok(computed(ty, ExprKind::Fabric { desc, extent }, call.span));
        }
        (_, Some(DsdValue::Mem4d { .. } | DsdValue::Ring { .. }) | None) => {}
    }
    let dsd = sema.scalar_of(dsd, span)?;
    let extent = word(sema, length, length_span)?;
    Ok(computed(ty, ExprKind::SetExtent { dsd, extent }, call.span))
}

/// `@set_dsd_stride(dsd, elements)`: mem1d only. The language says `i8`; wider strides work too.
pub(in crate::builtins) fn set_stride(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let common = sema.types.common;
    let (dsd, ty, span) = dsd_arg(sema, call.args[0], &[common.mem1d_dsd], call.name)?;
    let (stride, stride_span) = number(sema, call.args[1], common.i16)?;
    check_stride(sema, &stride, stride_span);
    match (&stride, dsd_of(&dsd)) {
        (Operand::Const(stride), Some(DsdValue::Mem1d { base, extent, indexed, constant, .. })) => {
            let stride = stride.clone();
            Ok(known(ty, DsdValue::Mem1d { base, extent, stride, indexed, constant }))
        }
        _ => {
            let dsd = sema.scalar_of(dsd, span)?;
            let stride = word(sema, stride, stride_span)?;
            Ok(computed(ty, ExprKind::SetStride { dsd, stride }, call.span))
        }
    }
}
