//! `@import_comptime_value`: JSON files as known values.

use std::rc::Rc;

use dflow_syntax::{Diagnostic, Span, codes};

use crate::builtins::Call;
use crate::load::find;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema};

/// What a file holds.
#[derive(Clone, Debug, PartialEq)]
enum Json {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// Lists and objects that may be nested in each other.
const MAX_DEPTH: u32 = 128;

/// `@import_comptime_value(T, "file.json")`.
pub(crate) fn import_comptime_value(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let ty = sema.type_expr(call.args[0])?;
    let (path, span) = sema.arg_string(call.args[1], "a path as a string")?;
    let text = read(sema, &path, span)?;
    sema.charge(text.len() as u64, span)?;
    let mut reader = Reader { text: &text, at: 0 };
    let json = match reader.file() {
        Ok(json) => json,
        Err(fault) => {
            let line =
                text[..reader.at.min(text.len())].iter().filter(|&&b| b == b'\n').count() + 1;
            let message = format!("`{path}` is no JSON: line {line}: {fault}");
            return sema.fail(codes::INVALID_ARGUMENT, message, span, "read here");
        }
    };
    value_of(sema, &json, ty, &path, span).map(Operand::Const)
}

fn read(sema: &mut Sema<'_, '_>, path: &str, span: Span) -> R<Vec<u8>> {
    let from = sema.cx.sources.path(sema.frame().file.file.id).to_owned();
    let first = dflow_syntax::FileId(0);
    let top = sema.cx.sources.path(first).to_owned();
    let place = find(sema.cx, &from, &top, path);
    match sema.cx.world.read(&place) {
        Ok(bytes) => Ok(bytes),
        Err(reason) => {
            let message = format!("`{place}` cannot be read: {reason}");
            Err(sema
                .report(Diagnostic::new(codes::FILE_NOT_FOUND, message, span).label("named here")))
        }
    }
}

/// A value of the file as a type.
fn value_of(sema: &mut Sema<'_, '_>, json: &Json, ty: TypeId, path: &str, span: Span) -> R<Value> {
    let shared = sema.types.shared(ty);
    let common = sema.types.common;
    match (json, shared.as_ref()) {
        (Json::Object(fields), Type::ComptimeStruct) => anonymous(sema, fields, path, span),
        (Json::Object(fields), Type::Struct(_)) => {
            let value = anonymous(sema, fields, path, span)?;
            sema.coerce_value(value, ty, span)
        }
        (Json::List(items), Type::Array { dims, elem }) => {
            let mut flat = Vec::new();
            if !flatten(items, dims, &mut flat) {
                return mismatch(sema, json, ty, path, span);
            }
            let mut values = Vec::with_capacity(flat.len());
            for item in flat {
                values.push(value_of(sema, item, *elem, path, span)?);
            }
            Ok(Value::new(ty, Data::Fields(Rc::new(values))))
        }
        (Json::Bool(truth), Type::Bool) => Ok(sema.bool_value(*truth)),
        (Json::Text(text), Type::ComptimeString) => {
            Ok(Value::new(ty, Data::Str(text.as_bytes().into())))
        }
        (Json::Text(text), Type::Enum(info)) => {
            let elem = info.elems.iter().find(|&&(name, _)| sema.cx.names.resolve(name) == text);
            match elem {
                Some(&(_, value)) => Ok(Value::int(ty, value)),
                None => mismatch(sema, json, ty, path, span),
            }
        }
        (Json::Int(int), Type::Int { .. } | Type::ComptimeInt | Type::Float(_)) => {
            sema.coerce_value(Value::int(common.comptime_int, *int), ty, span)
        }
        (Json::Int(int), Type::ComptimeFloat) => Ok(Value::new(ty, Data::Float(*int as f64))),
        (Json::Int(int), Type::Color) => {
            let value = Value::int(common.comptime_int, *int);
            let color = crate::builtins::color_value(sema, &value, span)?;
            Ok(Value::int(ty, color.index().into()))
        }
        (Json::Float(float), Type::Float(_) | Type::ComptimeFloat) => {
            let value = Value::new(common.comptime_float, Data::Float(*float));
            sema.coerce_value(value, ty, span)
        }
        _ => mismatch(sema, json, ty, path, span),
    }
}

fn mismatch<T>(sema: &mut Sema<'_, '_>, json: &Json, ty: TypeId, path: &str, span: Span) -> R<T> {
    let what = match json {
        Json::Null => "null",
        Json::Bool(_) => "a bool",
        Json::Int(_) => "an integer",
        Json::Float(_) => "a float",
        Json::Text(_) => "a string",
        Json::List(_) => "a list",
        Json::Object(_) => "an object",
    };
    let name = sema.type_name(ty);
    let message = format!("`{path}` has {what} where a value of type `{name}` is needed");
    sema.fail(codes::TYPE_MISMATCH, message, span, "read here")
}

/// Rows of lists as one list, if they have the sizes.
fn flatten<'j>(items: &'j [Json], dims: &[u64], flat: &mut Vec<&'j Json>) -> bool {
    let Some((&size, rest)) = dims.split_first() else { return false };
    if items.len() as u64 != size {
        return false;
    }
    if rest.is_empty() {
        flat.extend(items);
        return true;
    }
    items.iter().all(|item| match item {
        Json::List(row) => flatten(row, rest, flat),
        _ => false,
    })
}

/// An object as an anonymous struct: keys are `name:type`, or a name alone, whose type its value tells.
fn anonymous(
    sema: &mut Sema<'_, '_>,
    object: &[(String, Json)],
    path: &str,
    span: Span,
) -> R<Value> {
    let mut names: Vec<(dflow_syntax::Symbol, TypeId)> = Vec::with_capacity(object.len());
    let mut values = Vec::with_capacity(object.len());
    for (key, json) in object {
        let (name, ty) = match key.split_once(':') {
            Some((name, ty)) => (name.trim(), named_type(sema, ty.trim(), key, path, span)?),
            None => (key.as_str(), natural(sema, json, path, span)?),
        };
        let value = value_of(sema, json, ty, path, span)?;
        let symbol = sema.symbol(name);
        if names.iter().any(|&(known, _)| known == symbol) {
            let message = format!("`{path}` has the key `{name}` twice in one object");
            return sema.fail(codes::DUPLICATE_FIELD, message, span, "read here");
        }
        names.push((symbol, value.ty));
        values.push(value);
    }
    let ty = sema.types.anonymous(names, false);
    Ok(Value::new(ty, Data::Fields(Rc::new(values))))
}

/// The type that a value has if its key names none.
fn natural(sema: &mut Sema<'_, '_>, json: &Json, path: &str, span: Span) -> R<TypeId> {
    let common = sema.types.common;
    Ok(match json {
        Json::Bool(_) => common.bool,
        Json::Int(_) => common.comptime_int,
        Json::Float(_) => common.comptime_float,
        Json::Text(_) => common.comptime_string,
        Json::Object(_) => common.comptime_struct,
        Json::List(items) => {
            let elem = match items.first() {
                Some(first) => natural(sema, first, path, span)?,
                None => common.comptime_int,
            };
            // Lists in a list are rows of one array.
            let (dims, elem) = match sema.types.get(elem) {
                Type::Array { dims, elem } => (dims.to_vec(), *elem),
                _ => (Vec::new(), elem),
            };
            sema.types.array(&[vec![items.len() as u64], dims].concat(), elem)
        }
        Json::Null => {
            let message = format!("`{path}` has a null, which is no value");
            return sema.fail(codes::TYPE_MISMATCH, message, span, "read here");
        }
    })
}

/// The type that a key names: a type without parts, or `[n, m]T`.
fn named_type(sema: &mut Sema<'_, '_>, text: &str, key: &str, path: &str, span: Span) -> R<TypeId> {
    if let Some(ty) = sema.types.by_name(text) {
        return Ok(ty);
    }
    let array = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    if let Some((dims, elem)) = array {
        let dims: Option<Vec<u64>> = dims.split(',').map(|dim| dim.trim().parse().ok()).collect();
        if let (Some(dims), Some(elem)) = (dims, sema.types.by_name(elem.trim())) {
            return Ok(sema.types.array(&dims, elem));
        }
    }
    let message = format!("`{path}`: the key `{key}` names no type");
    let help = "write `name:type` with a type such as `i16` or `[4]f32`";
    Err(sema
        .report(Diagnostic::new(codes::UNKNOWN_TYPE, message, span).label("read here").help(help)))
}

/// Reads JSON text.
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

type Read<T> = Result<T, &'static str>;

impl Reader<'_> {
    fn file(&mut self) -> Read<Json> {
        let json = self.value(0)?;
        self.blank();
        if self.at == self.text.len() { Ok(json) } else { Err("something follows the value") }
    }

    fn blank(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Takes a byte if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        self.blank();
        let next = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(next);
        next
    }

    fn word(&mut self, word: &str) -> bool {
        let next = self.text[self.at..].starts_with(word.as_bytes());
        self.at += if next { word.len() } else { 0 };
        next
    }

    fn value(&mut self, depth: u32) -> Read<Json> {
        if depth > MAX_DEPTH {
            return Err("lists and objects are nested too deep");
        }
        self.blank();
        match self.text.get(self.at) {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.text().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.word("true") => Ok(Json::Bool(true)),
            _ if self.word("false") => Ok(Json::Bool(false)),
            _ if self.word("null") => Ok(Json::Null),
            Some(_) => Err("a value is expected"),
            None => Err("the file ends too early"),
        }
    }

    fn object(&mut self, depth: u32) -> Read<Json> {
        self.at += 1;
        let mut fields = Vec::new();
        if self.take(b'}') {
            return Ok(Json::Object(fields));
        }
        loop {
            self.blank();
            if self.text.get(self.at) != Some(&b'"') {
                return Err("a key in quotes is expected");
            }
            let key = self.text()?;
            if !self.take(b':') {
                return Err("`:` is expected behind a key");
            }
            fields.push((key, self.value(depth + 1)?));
            if self.take(b'}') {
                return Ok(Json::Object(fields));
            }
            if !self.take(b',') {
                return Err("`,` or `}` is expected");
            }
        }
    }

    fn list(&mut self, depth: u32) -> Read<Json> {
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Json::List(items));
            }
            if !self.take(b',') {
                return Err("`,` or `]` is expected");
            }
        }
    }

    fn text(&mut self) -> Read<String> {
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let byte = *self.text.get(self.at).ok_or("a string does not end")?;
            self.at += 1;
            match byte {
                b'"' => return String::from_utf8(bytes).map_err(|_| "a string is no UTF-8"),
                b'\\' => self.escape(&mut bytes)?,
                byte => bytes.push(byte),
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Read<()> {
        let byte = *self.text.get(self.at).ok_or("a string does not end")?;
        self.at += 1;
        bytes.push(match byte {
            b'"' | b'\\' | b'/' => byte,
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'b' => 8,
            b'f' => 12,
            b'u' => {
                let hex = self.text.get(self.at..self.at + 4);
                let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
                let code = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok());
                let read = code.and_then(char::from_u32).ok_or("an escape is no character")?;
                self.at += 4;
                bytes.extend(read.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err("an escape is not known"),
        });
        Ok(())
    }

    fn number(&mut self) -> Read<Json> {
        let start = self.at;
        let part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        while self.text.get(self.at).is_some_and(part) {
            self.at += 1;
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if let Ok(int) = text.parse() {
            return Ok(Json::Int(int));
        }
        text.parse().map(Json::Float).map_err(|_| "a number is malformed")
    }
}
