//! Arrays of one value, and what array types say.

use std::rc::Rc;

use dflow_syntax::ast::ExprId;
use dflow_syntax::codes;

use crate::builtins::Call;
use crate::sema::address::Address;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::StmtKind;

/// An argument that names an array type: the type, its dimensions and its element type.
fn array_type(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<(TypeId, Rc<[u64]>, TypeId)> {
    let ty = sema.type_expr(arg)?;
    if let Type::Array { dims, elem } = sema.types.get(ty) {
        return Ok((ty, Rc::clone(dims), *elem));
    }
    let (name, span) = (sema.type_name(ty), sema.expr_span(arg));
    let message = format!("an array type is needed here, this is `{name}`");
    sema.fail(codes::INVALID_ARGUMENT, message, span, "no array type")
}

/// `@zeros(T)`.
pub(crate) fn zeros(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (ty, _, elem) = array_type(sema, call.args[0])?;
    let zero = match sema.types.get(elem) {
        Type::Int { .. } | Type::ComptimeInt => Value::int(elem, 0),
        Type::Float(_) | Type::ComptimeFloat => Value::new(elem, Data::Float(0.0)),
        _ => {
            let name = sema.type_name(elem);
            let message = format!("`@zeros` makes arrays of numbers, not of `{name}`");
            let diagnostic =
                dflow_syntax::Diagnostic::new(codes::INVALID_ARGUMENT, message, call.span)
                    .label("this array")
                    .help("fill it with `@constants(T, value)`");
            return Err(sema.report(diagnostic));
        }
    };
    Ok(Operand::Const(Value::new(ty, Data::Splat(Rc::new(zero)))))
}

/// `@constants(T, value)`; the value may be known at run time only.
pub(crate) fn constants(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (ty, _, elem) = array_type(sema, call.args[0])?;
    let (operand, span) = sema.arg_as(call.args[1], elem)?;
    match operand {
        Operand::Const(value) => Ok(Operand::Const(Value::new(ty, Data::Splat(Rc::new(value))))),
        other => {
            let value = sema.scalar_of(other, span)?;
            let local = sema.new_memory(None, ty, call.span)?;
            let address = Address::of_local(local);
            let dest = sema.address_expr(&address, call.span)?;
            let count = sema.types.element_count(ty) as u32;
            sema.emit(StmtKind::Fill { dest, value, count }, call.span);
            Ok(Operand::Memory { ty, address })
        }
    }
}

/// `@dimensions(T)`: `[rank]u32`.
pub(crate) fn dimensions(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (_, dims, _) = array_type(sema, call.args[0])?;
    let u32_ty = sema.types.common.u32;
    let sizes = dims.iter().map(|&dim| Value::int(u32_ty, i128::from(dim))).collect();
    let ty = sema.types.array(&[dims.len() as u64], u32_ty);
    Ok(Operand::Const(Value::new(ty, Data::Fields(Rc::new(sizes)))))
}

/// `@element_count(T)`: `u32`.
pub(crate) fn element_count(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (ty, _, _) = array_type(sema, call.args[0])?;
    let count = sema.types.element_count(ty);
    if u32::try_from(count).is_err() {
        let message = format!("{count} elements do not fit the `u32` that `@element_count` gives");
        return sema.fail(codes::VALUE_OUT_OF_RANGE, message, call.span, "this array type");
    }
    Ok(Operand::Const(Value::int(sema.types.common.u32, i128::from(count))))
}

/// `@element_type(T)`.
pub(crate) fn element_type(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (_, _, elem) = array_type(sema, call.args[0])?;
    Ok(Operand::Const(Value::new(sema.types.common.type_, Data::Type(elem))))
}

/// `@rank(T)`: `u16`.
pub(crate) fn rank(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (_, dims, _) = array_type(sema, call.args[0])?;
    Ok(Operand::Const(Value::int(sema.types.common.u16, dims.len() as i128)))
}
