//! Params given as text on the command line, read as the types that the layout declares.

use dflow_ir::mesh::Color;
use dflow_ir::scalar;
use dflow_ir::target::CONTROL_TASKS;
use dflow_syntax::ast::VarKind;
use dflow_syntax::{Diagnostic, Span, Symbol, codes};

use crate::load::SourceIdx;
use crate::resolve::{DeclKind, ResolvedFile, nearest};
use crate::sema::ops;
use crate::sema::place::DIRECTIONS;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, ModuleId, Value};
use crate::sema::{R, Sema};
use crate::session::ParamsFrom;

/// A param as it was given.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) name: Symbol,
    decl: u32,
    text: String,
    /// As the user wrote it.
    written: String,
}

/// Finds the layout's params among what was given; the last of a name counts.
pub(crate) fn find(sema: &mut Sema<'_, '_>, source: SourceIdx) -> Vec<Given> {
    let file = sema.files.get(source);
    let options = &sema.cx.options;
    let from = options.params_from;
    let params = options.params.iter().map(|given| (false, given.clone()));
    let all: Vec<_> =
        params.chain(options.colors.iter().map(|given| (true, given.clone()))).collect();
    let mut given = Vec::new();
    for (color, (name, text)) in all.into_iter().rev() {
        let symbol = sema.cx.names.lookup(&name);
        let decl = symbol.and_then(|symbol| file.scopes[0].by_name.get(&symbol).copied());
        match (symbol, decl) {
            (Some(symbol), Some(decl)) => {
                let written = match color {
                    true => format!("--colors {name}:{text}"),
                    false => from.written(&name, &text),
                };
                given.push(Given { name: symbol, decl, text, written });
            }
            _ if from == ParamsFrom::Params => report_unknown(sema, &file, &name),
            _ => {}
        }
    }
    given
}

/// Reads all params that were given: a bad value is an error even if nothing asks for it.
pub(crate) fn check(sema: &mut Sema<'_, '_>, module: ModuleId) {
    let file = sema.files.get(sema.modules[module.0 as usize].source);
    for given in sema.given.clone().iter().rev() {
        let declared = &file.scopes[0].decls[given.decl as usize];
        let is_param = matches!(&declared.kind, DeclKind::Var(var) if var.kind == VarKind::Param);
        if is_param {
            // What fails is reported and remembered.
            let _ = sema.decl(module, given.decl, declared.name.span);
        }
    }
}

/// A param was given that the layout does not have.
fn report_unknown(sema: &mut Sema<'_, '_>, file: &ResolvedFile, name: &str) {
    let has = help(sema, file, 0, name);
    let path = sema.cx.sources.path(file.file.id).to_owned();
    let message = format!("`{name}` is given on the command line and {path} has no such param");
    let diagnostic = Diagnostic::without_place(codes::UNKNOWN_PARAM, message).help(has);
    sema.report(diagnostic);
}

/// Which params a file, or a tile in it, has in the place of one that it has not.
pub(crate) fn help(sema: &Sema<'_, '_>, file: &ResolvedFile, scope: u32, name: &str) -> String {
    let params = file.scopes[scope as usize].decls.iter().filter_map(|decl| match &decl.kind {
        DeclKind::Var(var) if var.kind == VarKind::Param => Some(sema.spell(decl.name.name)),
        DeclKind::Var(_) | DeclKind::Fn(_) | DeclKind::Tile(_) => None,
    });
    let params: Vec<String> = params.collect();
    let near = nearest(name, params.iter().map(String::as_str));
    match (near, params.is_empty()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, true) => "it has none".to_owned(),
        (None, false) => format!("it has {}", params.join(", ")),
    }
}

/// A given text as the declared type; without one, as what it looks like: an integer, a float, a
/// bool, else a string.
pub(crate) fn value(
    sema: &mut Sema<'_, '_>,
    given: &Given,
    ty: Option<TypeId>,
    declared: Span,
) -> R<Value> {
    let Some(ty) = ty else { return Ok(looks_like(sema, &given.text)) };
    match read(sema, &given.text, ty) {
        Ok(value) => Ok(value),
        Err(needed) => {
            let name = sema.type_name(ty);
            let message = format!("`{}`: a param of type `{name}` takes {needed}", given.written);
            Err(sema.report(
                Diagnostic::new(codes::PARAM_VALUE, message, declared).label("declared here"),
            ))
        }
    }
}

/// The text as a type, or what the type takes.
fn read(sema: &Sema<'_, '_>, text: &str, ty: TypeId) -> Result<Value, String> {
    let int = integer(text);
    let last = |count: usize| count as i128 - 1;
    let within = |low: i128, high: i128| match int {
        Some(int) if int >= low && int <= high => Ok(Value::int(ty, int)),
        _ => Err(format!("an integer from {low} to {high}")),
    };
    match sema.types.get(ty) {
        Type::Int { .. } => {
            let (low, high) = ops::int_range(&sema.types, ty).unwrap_or((0, 0));
            within(low, high)
        }
        Type::ComptimeInt => {
            int.map(|int| Value::int(ty, int)).ok_or_else(|| "an integer".to_owned())
        }
        Type::Float(_) | Type::ComptimeFloat => {
            let machine = ops::float_ty(&sema.types, ty);
            // As a float, zero has a sign; all other integers are rounded once.
            let raw = match (int.filter(|&int| int != 0), float(text)) {
                (Some(int), _) => Some(scalar::float::from_integer(machine, int)),
                (None, Some(float)) => Some(ops::to_raw(machine, float)),
                (None, None) => int.map(|_| 0),
            };
            let raw = raw.ok_or_else(|| "a finite number".to_owned())?;
            let rounded = ops::from_raw(machine, raw);
            let finite = Some(rounded).filter(|rounded| rounded.is_finite());
            let rounded = finite.ok_or_else(|| "a number that it can hold".to_owned())?;
            Ok(Value::new(ty, Data::Float(rounded)))
        }
        Type::Bool => match text {
            "true" | "1" => Ok(sema.bool_value(true)),
            "false" | "0" => Ok(sema.bool_value(false)),
            _ => Err("`true` or `false`".to_owned()),
        },
        Type::Color => within(0, last(Color::COUNT)),
        Type::InputQueue => within(0, last(sema.target.input_queues.len())),
        Type::OutputQueue => within(0, last(sema.target.output_queues.len())),
        Type::UtId => within(0, last(sema.target.microthreads.into())),
        Type::LocalTaskId => {
            let (first, last) = (sema.target.local_task_first, sema.target.local_task_last);
            within(first.into(), last.into())
        }
        Type::DataTaskId if sema.target.data_task_by_queue => {
            within(0, last(sema.target.input_queues.len()))
        }
        Type::DataTaskId => within(0, last(Color::COUNT)),
        Type::ControlTaskId => within(0, last(CONTROL_TASKS.into())),
        Type::Direction => {
            let code = DIRECTIONS.iter().position(|&known| known == text);
            let value = code.map(|code| Value::int(ty, code as i128));
            value.ok_or_else(|| format!("one of {}", DIRECTIONS.join(", ")))
        }
        Type::Enum(info) => {
            let elem = info
                .elems
                .iter()
                .find(|&&(name, value)| sema.cx.names.resolve(name) == text || Some(value) == int);
            let names: Vec<String> = info.elems.iter().map(|&(name, _)| sema.spell(name)).collect();
            let value = elem.map(|&(_, value)| Value::int(ty, value));
            value.ok_or_else(|| format!("one of {}", names.join(", ")))
        }
        Type::ComptimeString => Ok(Value::new(ty, Data::Str(text.as_bytes().into()))),
        Type::Meta => {
            let named = sema.types.by_name(text).map(|named| Value::new(ty, Data::Type(named)));
            named.ok_or_else(|| "the name of a type, such as `f32`".to_owned())
        }
        _ => Err("no value from the command line".to_owned()),
    }
}

/// An integer, a truth value, a direction or a name of an enum as the command line has it.
pub(crate) fn text_of(sema: &Sema<'_, '_>, ty: TypeId, value: i128) -> String {
    match sema.types.get(ty) {
        Type::Bool => (value != 0).to_string(),
        Type::Direction => {
            let name = usize::try_from(value).ok().and_then(|code| DIRECTIONS.get(code));
            name.map_or_else(|| value.to_string(), |&name| name.to_owned())
        }
        Type::Enum(info) => {
            let elem = info.elems.iter().find(|&&(_, other)| other == value);
            elem.map_or_else(|| value.to_string(), |&(name, _)| sema.spell(name))
        }
        _ => value.to_string(),
    }
}

fn looks_like(sema: &Sema<'_, '_>, text: &str) -> Value {
    let common = sema.types.common;
    if let Some(int) = integer(text) {
        return Value::int(common.comptime_int, int);
    }
    if let Some(float) = float(text) {
        return Value::new(common.comptime_float, Data::Float(float));
    }
    match text {
        "true" => sema.bool_value(true),
        "false" => sema.bool_value(false),
        _ => Value::new(common.comptime_string, Data::Str(text.as_bytes().into())),
    }
}

/// An integer as it is written in sources, with a sign.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let plain = digits.replace('_', "");
    let (digits, radix) = match plain.get(..2) {
        Some("0x" | "0X") => (&plain[2..], 16),
        Some("0b") => (&plain[2..], 2),
        Some("0o") => (&plain[2..], 8),
        _ => (plain.as_str(), 10),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    i128::from_str_radix(digits, radix).ok().map(|int| sign * int)
}

/// A finite float, unless it is only a word.
fn float(text: &str) -> Option<f64> {
    let number = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    text.parse().ok().filter(|float: &f64| number && float.is_finite())
}
