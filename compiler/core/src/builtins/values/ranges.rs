//! Ranges as values. A range with run-time bounds exists only in a loop's head, which reads it
//! itself.

use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use crate::builtins::Call;
use crate::builtins::args::wrong_type;
use crate::sema::types::TypeId;
use crate::sema::value::{Data, RangeValue, Value};
use crate::sema::{Operand, R, Sema};

/// `@range(T, stop)` or `@range(T, start, stop, step)`.
pub(crate) fn range(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let ty = sema.range_type(call.args[0])?;
    let (start, stop, step) = match *call.args {
        [_, stop] => (Value::int(ty, 0), bound(sema, stop, ty)?, Value::int(ty, 1)),
        [_, start, stop, step] => {
            let (start, stop) = (bound(sema, start, ty)?, bound(sema, stop, ty)?);
            let step_span = sema.expr_span(step);
            let step = bound(sema, step, ty)?;
            if sema.fix_int(&step) == Some(0) {
                let message = "a range with step 0 never ends";
                return sema.fail(codes::VALUE_OUT_OF_RANGE, message, step_span, "this step");
            }
            (start, stop, step)
        }
        _ => return odd_count(sema, call.span),
    };
    Ok(Operand::Const(sema.range_value(ty, start, stop, step)))
}

fn odd_count<T>(sema: &mut Sema<'_, '_>, span: Span) -> R<T> {
    Err(sema.report(
        Diagnostic::new(
            codes::WRONG_ARGUMENT_COUNT,
            "`@range` takes 2 or 4 arguments, 3 given",
            span,
        )
        .label("this call")
        .help("write `@range(T, start, stop, step)`"),
    ))
}

/// A bound, which must be known.
fn bound(sema: &mut Sema<'_, '_>, arg: ExprId, ty: TypeId) -> R<Value> {
    let (operand, span) = sema.arg_as(arg, ty)?;
    match operand {
        Operand::Const(value) => Ok(value),
        Operand::Scalar { .. } | Operand::Memory { .. } | Operand::Void => Err(sema.report(
            Diagnostic::new(
                codes::NOT_COMPTIME,
                "a range with run-time bounds can stand only in the head of a `for`",
                span,
            )
            .label("known only at run time"),
        )),
    }
}

fn parts(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<RangeValue> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    match &value.data {
        Data::Range(range) => Ok((**range).clone()),
        _ => wrong_type(sema, &value, "a range", span),
    }
}

/// `@range_start(r)`.
pub(crate) fn range_start(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    parts(sema, call).map(|range| Operand::Const(range.start))
}

/// `@range_stop(r)`.
pub(crate) fn range_stop(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    parts(sema, call).map(|range| Operand::Const(range.stop))
}

/// `@range_step(r)`.
pub(crate) fn range_step(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    parts(sema, call).map(|range| Operand::Const(range.step))
}
