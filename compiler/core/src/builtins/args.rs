//! Reading arguments: types, numbers, options structs, with good messages.

use std::rc::Rc;

use dflow_syntax::ast::{Expr as Ast, ExprId};
use dflow_syntax::{Diagnostic, Span, Symbol, codes};

use super::Call;
use crate::resolve::nearest;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::FuncIdx;

/// The fields of an options struct, with the places of their values.
pub(crate) struct Options {
    fields: Vec<(&'static str, Operand, Span)>,
    /// Options that are structs themselves, written out: their fields may be known at run time only.
    nested: Vec<(&'static str, Options)>,
    pub(crate) span: Span,
}

/// Fields of `.on_control`.
pub(crate) const OF_CONTROL: &[&str] = &["terminate", "activate", "unblock"];

/// Options whose fields may be known at run time only, with their fields.
const NESTED: (&str, &[&str]) = ("on_control", OF_CONTROL);

impl Options {
    /// No options at all.
    pub(crate) fn none(span: Span) -> Options {
        Options { fields: Vec::new(), nested: Vec::new(), span }
    }

    /// Reads an argument that is a struct; fields may be known at run time only. Unknown fields
    /// are errors.
    pub(crate) fn read(
        sema: &mut Sema<'_, '_>,
        arg: ExprId,
        allowed: &[&'static str],
        what: &str,
    ) -> R<Options> {
        let file = Rc::clone(&sema.frame().file);
        let span = file.file.expr_span(arg);
        let mut nested = Vec::new();
        let fields = match file.file.expr(arg) {
            Ast::StructLiteral { fields } => {
                let mut read = Vec::with_capacity(fields.len());
                for field in fields {
                    let value_span = file.file.expr_span(field.value);
                    let name = known_name(sema, field.name.name, allowed, what, field.name.span)?;
                    let inner = file.file.expr(field.value);
                    if name == NESTED.0 && matches!(inner, Ast::StructLiteral { .. }) {
                        let what = format!("`.{name}`");
                        nested.push((name, Options::read(sema, field.value, NESTED.1, &what)?));
                        continue;
                    }
                    let operand = sema.expr(field.value, None)?;
                    read.push((name, operand, value_span));
                }
                read
            }
            _ => {
                let operand = sema.expr(arg, None)?;
                let value = sema.need_const(operand, span)?;
                struct_fields(sema, &value, span, allowed, what)?
            }
        };
        Ok(Options { fields, nested, span })
    }

    /// Takes an option that is a struct itself.
    pub(crate) fn take_nested(&mut self, name: &str) -> Option<Options> {
        let at = self.nested.iter().position(|(known, _)| *known == name)?;
        Some(self.nested.swap_remove(at).1)
    }

    /// Reads a known struct value.
    pub(crate) fn of_value(
        sema: &mut Sema<'_, '_>,
        value: &Value,
        span: Span,
        allowed: &[&'static str],
        what: &str,
    ) -> R<Options> {
        let fields = struct_fields(sema, value, span, allowed, what)?;
        Ok(Options { fields, nested: Vec::new(), span })
    }

    /// An option's operand and place.
    pub(crate) fn get(&self, name: &str) -> Option<(Operand, Span)> {
        self.fields
            .iter()
            .find(|(known, _, _)| *known == name)
            .map(|(_, operand, span)| (operand.clone(), *span))
    }

    /// An option whose value must be known.
    pub(crate) fn value(&self, sema: &mut Sema<'_, '_>, name: &str) -> R<Option<(Value, Span)>> {
        match self.get(name) {
            Some((operand, span)) => Ok(Some((sema.need_const(operand, span)?, span))),
            None => Ok(None),
        }
    }

    /// A truth value option; absent is false.
    pub(crate) fn flag(&self, sema: &mut Sema<'_, '_>, name: &str) -> R<bool> {
        let Some((value, span)) = self.value(sema, name)? else { return Ok(false) };
        match sema.fix_bool(&value) {
            Some(truth) => Ok(truth),
            None => wrong_type(sema, &value, "a bool", span),
        }
    }

    /// An integer option within a range.
    pub(crate) fn int(
        &self,
        sema: &mut Sema<'_, '_>,
        name: &str,
        low: i128,
        high: i128,
    ) -> R<Option<i128>> {
        let Some((value, span)) = self.value(sema, name)? else { return Ok(None) };
        in_range(sema, &value, low, high, &format!("`.{name}`"), span).map(Some)
    }

    /// The fields of these names become one struct, an option of its own, unless there are none.
    pub(crate) fn group(
        &mut self,
        sema: &mut Sema<'_, '_>,
        names: &[&str],
        option: &'static str,
    ) -> R<bool> {
        let (inner, outer): (Vec<_>, Vec<_>) = std::mem::take(&mut self.fields)
            .into_iter()
            .partition(|(name, _, _)| names.contains(name));
        self.fields = outer;
        if inner.is_empty() {
            return Ok(false);
        }
        let mut fields = Vec::with_capacity(inner.len());
        let mut values = Vec::with_capacity(inner.len());
        for (name, operand, span) in inner {
            let value = sema.need_const(operand, span)?;
            fields.push((sema.symbol(name), value.ty));
            values.push(value);
        }
        let ty = sema.types.anonymous(fields, false);
        let value = Value::new(ty, Data::Fields(Rc::new(values)));
        self.fields.push((option, Operand::Const(value), self.span));
        Ok(true)
    }

    /// All fields, in order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Operand, Span)> {
        self.fields.iter().map(|(name, operand, span)| (*name, operand, *span))
    }
}

/// The option that a field's name means.
fn known_name(
    sema: &mut Sema<'_, '_>,
    name: Symbol,
    allowed: &[&'static str],
    what: &str,
    span: Span,
) -> R<&'static str> {
    let text = sema.cx.names.resolve(name);
    if let Some(known) = allowed.iter().copied().find(|known| *known == text) {
        return Ok(known);
    }
    let message = format!("{what} has no option `.{text}`");
    let known: Vec<String> = allowed.iter().map(|name| format!("`.{name}`")).collect();
    let near = nearest(text, allowed.iter().copied());
    let diagnostic = Diagnostic::new(codes::UNKNOWN_OPTION, message, span).label("given here");
    Err(sema.report(match near {
        Some(near) => diagnostic.help(format!("did you mean `.{near}`?")),
        None => diagnostic.help(format!("it has {}", known.join(", "))),
    }))
}

/// The fields of a struct value (an empty tuple counts as one without fields).
fn struct_fields(
    sema: &mut Sema<'_, '_>,
    value: &Value,
    span: Span,
    allowed: &[&'static str],
    what: &str,
) -> R<Vec<(&'static str, Operand, Span)>> {
    let shared = sema.types.shared(value.ty);
    let Type::Struct(info) = shared.as_ref() else {
        return wrong_type(sema, value, &format!("a struct of settings for {what}"), span);
    };
    if info.tuple && !info.fields.is_empty() {
        return wrong_type(sema, value, "a struct with named fields", span);
    }
    let mut read = Vec::with_capacity(info.fields.len());
    for (at, &(name, _)) in info.fields.iter().enumerate() {
        if let Some(field) = value.element(at) {
            let name = known_name(sema, name, allowed, what, span)?;
            read.push((name, Operand::Const(field), span));
        }
    }
    Ok(read)
}

/// Reports a value of the wrong type.
pub(crate) fn wrong_type<T>(
    sema: &mut Sema<'_, '_>,
    value: &Value,
    want: &str,
    span: Span,
) -> R<T> {
    let name = sema.type_name(value.ty);
    let message = format!("{want} is needed here, this is `{name}`");
    let diagnostic =
        Diagnostic::new(codes::TYPE_MISMATCH, message, span).label("of the wrong type");
    Err(sema.report(match sema.how_to_make(want, value, span) {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }))
}

/// A known integer within a range.
pub(crate) fn in_range(
    sema: &mut Sema<'_, '_>,
    value: &Value,
    low: i128,
    high: i128,
    what: &str,
    span: Span,
) -> R<i128> {
    let int = match sema.fix_int(value) {
        Some(int) if sema.types.is_int(value.ty) || sema.types.is_id(value.ty) => int,
        _ => return wrong_type(sema, value, "an integer", span),
    };
    if int < low || int > high {
        let message = format!("{what} is {int}, and can be {low} to {high}");
        return sema.fail(codes::VALUE_OUT_OF_RANGE, message, span, "out of range");
    }
    Ok(int)
}

impl Sema<'_, '_> {
    /// An argument that must be known.
    pub(crate) fn arg_value(&mut self, arg: ExprId, hint: Option<TypeId>) -> R<(Value, Span)> {
        let span = self.expr_span(arg);
        let operand = self.expr(arg, hint)?;
        Ok((self.need_const(operand, span)?, span))
    }

    /// An argument as a known integer within a range.
    pub(crate) fn arg_int(&mut self, arg: ExprId, low: i128, high: i128, what: &str) -> R<i128> {
        let (value, span) = self.arg_value(arg, None)?;
        in_range(self, &value, low, high, what, span)
    }

    /// An argument as a string.
    pub(crate) fn arg_string(&mut self, arg: ExprId, what: &str) -> R<(String, Span)> {
        let (value, span) = self.arg_value(arg, None)?;
        match &value.data {
            Data::Str(bytes) => Ok((String::from_utf8_lossy(bytes).into_owned(), span)),
            _ => wrong_type(self, &value, what, span),
        }
    }

    /// An argument as an operand of a type.
    pub(crate) fn arg_as(&mut self, arg: ExprId, ty: TypeId) -> R<(Operand, Span)> {
        let span = self.expr_span(arg);
        let operand = self.expr(arg, Some(ty))?;
        Ok((self.coerce(operand, ty, span)?, span))
    }

    /// An argument that must be a known value of an id type (color, queue, task id).
    pub(crate) fn arg_id(
        &mut self,
        arg: ExprId,
        want: &[TypeId],
        what: &str,
    ) -> R<(u8, TypeId, Span)> {
        let (value, span) = self.arg_value(arg, None)?;
        if !want.contains(&value.ty) {
            return wrong_type(self, &value, what, span);
        }
        let id = self.fix_int(&value).unwrap_or(0);
        Ok((id as u8, value.ty, span))
    }

    /// A symbol's spelling interned.
    pub(crate) fn symbol(&mut self, text: &str) -> Symbol {
        self.cx.names.intern(text)
    }
}

/// The first argument as a handler: a function without parameters and result.
pub(super) fn handler(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<FuncIdx> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let Data::Func(func) = value.data else {
        return wrong_type(sema, &value, "a function", span);
    };
    let void = sema.types.common.void;
    match sema.types.get(value.ty) {
        Type::Fn { is_task: false, params, ret } if params.is_empty() && *ret == void => {}
        _ => {
            let message = "a handler is a function without parameters and result: `fn () void`";
            return sema.fail(codes::INVALID_SIGNATURE, message, span, "this handler");
        }
    }
    sema.program_func(func, span)
}
