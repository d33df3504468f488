//! Questions about types, the target and the side of evaluation.

use std::rc::Rc;

use dflow_ir::target::TargetId;
use dflow_syntax::ast::{Expr as Ast, ExprId};
use dflow_syntax::{Diagnostic, codes};

use crate::builtins::Call;
use crate::dialect::SdkVersion;
use crate::sema::types::TypeId;
use crate::sema::value::{Data, Value};
use crate::sema::{BodyKind, Operand, R, Sema};

fn type_value(sema: &Sema<'_, '_>, ty: TypeId) -> Operand {
    Operand::Const(Value::new(sema.types.common.type_, Data::Type(ty)))
}

/// `@type_of(expr)`: the expression is analyzed and not evaluated.
pub(crate) fn type_of(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let arg = call.args[0];
    let ty = match sema.frame().kind {
        BodyKind::Code { .. } | BodyKind::Inline(_) => type_in_code(sema, arg)?,
        BodyKind::Layout | BodyKind::TopLevel | BodyKind::Value => type_here(sema, arg)?,
    };
    Ok(type_value(sema, ty))
}

/// The type of an expression where it stands.
fn type_here(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<TypeId> {
    let file = Rc::clone(&sema.frame().file);
    match file.file.expr(arg) {
        // Places need not be readable now: a variable has a type at compile time, too.
        Ast::Name(_) | Ast::Field { .. } | Ast::Index { .. } | Ast::Deref(_) => {
            let place = sema.place(arg)?;
            Ok(sema.place_type(&place))
        }
        _ => {
            let operand = sema.expr(arg, None)?;
            Ok(sema.operand_type(&operand))
        }
    }
}

/// In code: as if it ran, with the statements thrown away. Functions asked for on the way are
/// forgotten again where nothing else can refer to them.
fn type_in_code(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<TypeId> {
    let before = marks(sema);
    let comptime = std::mem::replace(&mut sema.frame_mut().comptime, false);
    sema.open_list();
    let result = type_here(sema, arg);
    sema.close_list();
    sema.frame_mut().comptime = comptime;
    let after = marks(sema);
    if after[1..] == before[1..] {
        let known = before[0];
        let program = sema.program_mut();
        program.typed.funcs.truncate(known);
        program.funcs.retain(|_, idx| (idx.0 as usize) < known);
        program.pending.retain(|(idx, _)| (idx.0 as usize) < known);
    }
    result
}

/// Counts of functions, and of all that may refer to functions.
fn marks(sema: &mut Sema<'_, '_>) -> [usize; 5] {
    let program = sema.program_mut();
    let typed = &program.typed;
    [
        typed.funcs.len(),
        typed.globals.len(),
        typed.tasks.len(),
        program.exports.len(),
        typed.initial_dsrs.len(),
    ]
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
