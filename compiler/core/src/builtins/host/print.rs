//! `@print` and `@expect`: a format with `{}` for each value, `{{` and `}}` for braces.
//!
//! Known values other than floats become text now; floats are spelled by the runtime, so that
//! known and computed ones look alike.

use std::rc::Rc;

use dflow_ir::program::{HostArg, HostOp};
use dflow_ir::ty::Ty;
use dflow_syntax::ast::{Expr as Ast, ExprId};
use dflow_syntax::{Diagnostic, Span, codes};

use super::{ensure, known, perform, slice_of};
use crate::builtins::Call;
use crate::builtins::values::{checks, show};
use crate::sema::address::typed;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind};

/// A message ready for the runtime.
struct Message {
    pieces: Vec<String>,
    kinds: Vec<HostArg>,
    args: Vec<Expr>,
}

/// A value of a format.
enum Shown {
    Text(String),
    Value(HostArg, Vec<Expr>),
}

/// `@print(format[, values])`.
pub(crate) fn print(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let Message { pieces, kinds, args } = message(sema, call.args[0], call.args.get(1).copied())?;
    perform(sema, HostOp::Print { pieces, args: kinds }, &[], args, call.span);
    Ok(Operand::Void)
}

/// `@expect(cond[, format[, values]])`. The message is made only if the condition fails.
pub(crate) fn expect(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let span = sema.expr_span(call.args[0]);
    let cond = match sema.condition(call.args[0])? {
        Ok(held) => typed(ExprKind::Const(u64::from(held)), Ty::I8, span),
        Err(cond) => sema.pin(cond, span),
    };
    sema.open_list();
    sema.frame_mut().depth += 1;
    let message = match call.args.get(1) {
        Some(&format) => message(sema, format, call.args.get(2).copied()),
        None => Ok(default_message(sema, span)),
    };
    sema.frame_mut().depth -= 1;
    let before = sema.close_list();
    let Message { pieces, kinds, args } = message?;
    if !matches!(*cond.kind, ExprKind::Const(1)) {
        let op = HostOp::Expect { pieces, args: kinds };
        ensure(sema, cond, op, args, before, call.span);
    }
    Ok(Operand::Void)
}

/// The condition and its place in the source.
fn default_message(sema: &Sema<'_, '_>, span: Span) -> Message {
    let place = sema.cx.sources.place(span);
    let shown = match checks::excerpt(sema, span) {
        Some(text) => format!("`{text}` does not hold ({place})"),
        None => format!("an expectation does not hold ({place})"),
    };
    Message { pieces: vec![shown], kinds: Vec::new(), args: Vec::new() }
}

fn message(sema: &mut Sema<'_, '_>, format: ExprId, values: Option<ExprId>) -> R<Message> {
    let (format, span) = sema.arg_string(format, "a format as a string")?;
    let chunks = match split(&format) {
        Ok(chunks) => chunks,
        Err(reason) => return sema.fail(codes::INVALID_ARGUMENT, reason, span, "in this format"),
    };
    let (values, values_span) = match values {
        Some(values) => (operands(sema, values)?, sema.expr_span(values)),
        None => (Vec::new(), span),
    };
    let places = chunks.len() - 1;
    if places != values.len() {
        let message = format!(
            "the format has {places} place{} for values, {} given",
            if places == 1 { "" } else { "s" },
            values.len()
        );
        return sema.fail(codes::WRONG_ARGUMENT_COUNT, message, values_span, "these values");
    }
    let mut chunks = chunks.into_iter();
    let mut message = Message {
        pieces: vec![chunks.next().unwrap_or_default()],
        kinds: Vec::new(),
        args: Vec::new(),
    };
    for ((operand, span), chunk) in values.into_iter().zip(chunks) {
        match shown(sema, operand, span)? {
            Shown::Text(text) => {
                if let Some(last) = message.pieces.last_mut() {
                    last.push_str(&text);
                    last.push_str(&chunk);
                }
            }
            Shown::Value(kind, exprs) => {
                message.kinds.push(kind);
                message.args.extend(exprs);
                message.pieces.push(chunk);
            }
        }
    }
    Ok(message)
}

/// The texts around the places of a format: one more than places.
fn split(format: &str) -> Result<Vec<String>, String> {
    let mut chunks = vec![String::new()];
    let mut rest = format.chars().peekable();
    while let Some(next) = rest.next() {
        match (next, rest.peek()) {
            ('{', Some('}')) => {
                rest.next();
                chunks.push(String::new());
                continue;
            }
            ('{', Some('{')) | ('}', Some('}')) => {
                rest.next();
            }
            ('{' | '}', _) => {
                return Err(format!(
                    "a single `{next}` in a format: write `{next}{next}` for the brace itself, `{{}}` for a value"
                ));
            }
            _ => {}
        }
        if let Some(last) = chunks.last_mut() {
            last.push(next);
        }
    }
    Ok(chunks)
}

/// The elements of a tuple of values.
fn operands(sema: &mut Sema<'_, '_>, values: ExprId) -> R<Vec<(Operand, Span)>> {
    let file = Rc::clone(&sema.frame().file);
    let span = file.file.expr_span(values);
    if let Ast::TupleLiteral { elems } = file.file.expr(values) {
        let mut read = Vec::with_capacity(elems.len());
        for &elem in elems {
            let operand = sema.expr(elem, None)?;
            read.push((operand, file.file.expr_span(elem)));
        }
        return Ok(read);
    }
    let operand = sema.expr(values, None)?;
    let ty = sema.operand_type(&operand);
    let shared = sema.types.shared(ty);
    let info = match shared.as_ref() {
        Type::Struct(info) if info.tuple => Rc::clone(info),
        _ => return no_tuple(sema, ty, span),
    };
    let place = sema.value_place(operand);
    let mut read = Vec::with_capacity(info.fields.len());
    for (at, &(_, elem)) in info.fields.iter().enumerate() {
        let offset = sema.types.field_offset(&info, at, sema.profile());
        let element = sema.element_place(place.clone(), at, elem, offset, span)?;
        read.push((sema.load(element, span)?, span));
    }
    Ok(read)
}

fn no_tuple<T>(sema: &mut Sema<'_, '_>, ty: TypeId, span: Span) -> R<T> {
    let name = sema.type_name(ty);
    Err(sema.report(
        Diagnostic::new(
            codes::TYPE_MISMATCH,
            format!("the values of a format are a tuple, this is `{name}`"),
            span,
        )
        .label("of the wrong type")
        .help("write `.{ a, b }`"),
    ))
}

fn shown(sema: &mut Sema<'_, '_>, operand: Operand, span: Span) -> R<Shown> {
    if let Some(value) = known(&operand) {
        return known_text(sema, value, span);
    }
    let ty = sema.operand_type(&operand);
    let kind = match sema.types.get(ty) {
        Type::Slice { elem } if *elem == sema.types.common.u8 => {
            let slice = slice_of(sema, operand, span)?;
            return Ok(Shown::Value(HostArg::Text, vec![slice.ptr, slice.len]));
        }
        Type::Bool => HostArg::Bool,
        Type::Float(_) => HostArg::Float,
        Type::Int { .. } | Type::Enum(_) if sema.types.is_signed(ty) => HostArg::Signed,
        Type::Int { .. } | Type::Enum(_) | Type::Pointer { .. } => HostArg::Unsigned,
        _ if sema.types.is_id(ty) => HostArg::Unsigned,
        _ => {
            let name = sema.type_name(ty);
            let message = format!("a run-time value of type `{name}` cannot be printed");
            return sema.fail(codes::INVALID_ARGUMENT, message, span, "this value");
        }
    };
    let expr = sema.scalar_of(operand, span)?;
    Ok(Shown::Value(kind, vec![expr]))
}

fn known_text(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<Shown> {
    if let Data::Float(float) = value.data {
        let machine = match sema.types.get(value.ty) {
            Type::Float(known) => known.ty(),
            _ => Ty::F64,
        };
        let raw = crate::sema::ops::to_raw(machine, float);
        let expr = typed(ExprKind::Const(raw), machine, span);
        return Ok(Shown::Value(HostArg::Float, vec![expr]));
    }
    Ok(Shown::Text(show::show(sema, value)))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn formats_split_at_places() {
        assert_eq!(split("a {} b").unwrap(), ["a ", " b"]);
        assert_eq!(split("").unwrap(), [""]);
        assert_eq!(split("{}{}").unwrap(), ["", "", ""]);
        assert_eq!(split("{{}} {}").unwrap(), ["{} ", ""]);
        assert!(split("{").is_err());
        assert!(split("a } b").is_err());
        assert!(split("{x}").is_err());
    }
}
