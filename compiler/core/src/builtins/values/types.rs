//! Questions about types, the target and the side of evaluation.

use dflow_ir::target::TargetId;
use dflow_syntax::{Diagnostic, codes};

use crate::builtins::Call;
use crate::dialect::SdkVersion;
use crate::sema::types::TypeId;
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema};

fn type_value(sema: &Sema<'_, '_>, ty: TypeId) -> Operand {
    Operand::Const(Value::new(sema.types.common.type_, Data::Type(ty)))
}

/// `@type_of(expr)`: the expression is analyzed and not evaluated.
pub(crate) fn type_of(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let ty = sema.type_of(call.args[0], None)?;
    Ok(type_value(sema, ty))
}

/// `@is_same_type(A, B)`.
pub(crate) fn is_same_type(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let instead = "compare types with `==`";
    sema.cx.old_spelling("`@is_same_type`", SdkVersion::NEW, instead, call.span);
    let (a, b) = (sema.type_expr(call.args[0])?, sema.type_expr(call.args[1])?);
    Ok(Operand::Const(sema.bool_value(a == b)))
}

/// `@fp16()`.
pub(crate) fn fp16(sema: &mut Sema<'_, '_>, _: Call<'_>) -> R<Operand> {
    Ok(type_value(sema, sema.half()))
}

/// `@is_arch(name)`.
pub(crate) fn is_arch(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (name, span) = sema.arg_string(call.args[0], "the name of a target")?;
    if TargetId::from_name(&name).is_none() && name != "wse1" {
        let known: Vec<String> =
            TargetId::ALL.iter().map(|id| format!("\"{}\"", id.name())).collect();
        return Err(sema.report(
            Diagnostic::new(
                codes::INVALID_ARGUMENT,
                format!("there is no target \"{name}\""),
                span,
            )
            .label("named here")
            .help(format!("targets are {}", known.join(" and "))),
        ));
    }
    let same = name == sema.target.id.name();
    Ok(Operand::Const(sema.bool_value(same)))
}

/// `@is_comptime()`.
pub(crate) fn is_comptime(sema: &mut Sema<'_, '_>, _: Call<'_>) -> R<Operand> {
    let known = !sema.is_runtime();
    Ok(Operand::Const(sema.bool_value(known)))
}
