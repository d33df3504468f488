//! Assertions and printing while compiling.

use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::show;
use crate::builtins::Call;
use crate::sema::address::typed;
use crate::sema::{Operand, R, Sema};
use crate::typed::{ExprKind, StmtKind};

/// `@assert(cond[, message])`: in code, ends the run when it is reached and does not hold.
pub(crate) fn assert(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    if !sema.is_runtime() {
        return comptime_assert(sema, call);
    }
    let (cond, span) = (call.args[0], sema.expr_span(call.args[0]));
    let message = match call.args.get(1) {
        Some(&text) => sema.arg_string(text, "a message as a string")?.0,
        None => match excerpt(sema, span) {
            Some(text) => format!("`{text}` does not hold"),
            None => "an assertion does not hold".to_owned(),
        },
    };
    let cond = match sema.condition(cond)? {
        Ok(true) => return Ok(Operand::Void),
        Ok(false) => typed(ExprKind::Const(0), Ty::I8, span),
        Err(cond) => cond,
    };
    sema.emit(StmtKind::Assert { cond, message }, call.span);
    Ok(Operand::Void)
}

/// `@comptime_assert(cond[, message])`.
pub(crate) fn comptime_assert(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (cond, span) = (call.args[0], sema.expr_span(call.args[0]));
    let held = sema.at_comptime(|sema| match sema.condition(cond)? {
        Ok(held) => Ok(held),
        Err(_) => sema.fail(
            codes::NOT_COMPTIME,
            "this condition is known only at run time",
            span,
            "asserted at compile time",
        ),
    })?;
    if held {
        return Ok(sema.void_operand());
    }
    let message = match call.args.get(1) {
        Some(&text) => {
            let (text, _) =
                sema.at_comptime(|sema| sema.arg_string(text, "a message as a string"))?;
            format!("assertion failed: {text}")
        }
        None => "assertion failed".to_owned(),
    };
    sema.fail(codes::ASSERTION_FAILED, message, span, "this is false")
}

/// A short condition as the user wrote it.
pub(crate) fn excerpt(sema: &Sema<'_, '_>, span: Span) -> Option<String> {
    let text = sema.cx.sources.slice(span);
    let short = !text.is_empty() && text.len() <= 100 && !text.contains('\n');
    short.then(|| text.to_owned())
}

/// `@comptime_print(values…)`: a note with their text.
pub(crate) fn comptime_print(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let mut texts = Vec::with_capacity(call.args.len());
    for &arg in call.args {
        texts.push(printed(sema, arg)?);
    }
    let text = texts.join(" ");
    let text = if text.is_empty() { "(nothing)".to_owned() } else { text };
    sema.report(Diagnostic::new(codes::COMPTIME_OUTPUT, text, call.span).label("printed here"));
    Ok(sema.void_operand())
}

/// The text of a value; a run-time value has only its type.
fn printed(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<String> {
    // What the value takes to compute is not part of the program.
    if sema.is_runtime() {
        sema.open_list();
    }
    let operand = sema.expr(arg, None);
    if sema.is_runtime() {
        sema.close_list();
    }
    let operand = operand?;
    Ok(match &operand {
        Operand::Const(value) => show::show(sema, value),
        Operand::Scalar { ty, .. } | Operand::Memory { ty, .. } => {
            format!("(a run-time `{}`)", sema.type_name(*ty))
        }
        Operand::Void => "{}".to_owned(),
    })
}
