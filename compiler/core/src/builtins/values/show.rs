//! Known values as text, close to how one would write them.

use crate::sema::Sema;
use crate::sema::place::DIRECTIONS;
use crate::sema::types::{Float, StructType, Type};
use crate::sema::value::{Data, Pointer, PointerBase, Value};

/// Elements shown of an aggregate.
const MAX_SHOWN: usize = 64;

/// The text of a value.
pub(crate) fn show(sema: &Sema<'_, '_>, value: &Value) -> String {
    match &value.data {
        Data::Undef => "undefined".to_owned(),
        Data::Void => "{}".to_owned(),
        Data::Int(int) => integer(sema, value, *int),
        Data::Float(float) => match sema.types.get(value.ty) {
            Type::Float(Float::F16 | Float::Bf16 | Float::F32) => (*float as f32).to_string(),
            _ => float.to_string(),
        },
        Data::Str(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Data::Type(ty) => sema.type_name(*ty),
        Data::Func(func) => sema.decl_name(func.module, func.decl),
        Data::Module(module) => {
            let prefix = &sema.modules[module.0 as usize].prefix;
            if prefix.is_empty() { "module".to_owned() } else { format!("module {prefix}") }
        }
        Data::Tile(..) => "tile".to_owned(),
        Data::Fields(fields) => aggregate(sema, value, fields),
        Data::Union(active) => {
            let name = match sema.types.get(value.ty) {
                Type::Struct(info) => sema.spell(info.fields[active.0].0),
                _ => String::new(),
            };
            format!(".{{ .{name} = {} }}", show(sema, &active.1))
        }
        Data::Splat(element) => {
            format!("{}{{ {}, … }}", sema.type_name(value.ty), show(sema, element))
        }
        Data::Range(range) => {
            let [start, stop, step] = [&range.start, &range.stop, &range.step];
            let parts = [start, stop, step].map(|part| show(sema, part));
            format!("@range({}, {})", sema.type_name(start.ty), parts.join(", "))
        }
        Data::Pointer(pointer) => address(sema, pointer),
        Data::Dsd(_) | Data::Dsr(_) | Data::Fifo(_) => sema.type_name(value.ty),
    }
}

fn integer(sema: &Sema<'_, '_>, value: &Value, int: i128) -> String {
    match sema.types.get(value.ty) {
        Type::Bool => (int != 0).to_string(),
        Type::Direction => {
            let name = usize::try_from(int).ok().and_then(|at| DIRECTIONS.get(at));
            name.map_or_else(|| int.to_string(), |name| (*name).to_owned())
        }
        Type::Enum(info) => match info.elems.iter().find(|&&(_, known)| known == int) {
            Some(&(name, _)) => sema.spell(name),
            None => int.to_string(),
        },
        _ if sema.types.is_id(value.ty) => format!("{} {int}", sema.type_name(value.ty)),
        _ => int.to_string(),
    }
}

fn aggregate(sema: &Sema<'_, '_>, value: &Value, fields: &[Value]) -> String {
    let (head, info): (String, Option<&StructType>) = match sema.types.get(value.ty) {
        Type::Struct(info) => (".".to_owned(), Some(info)),
        _ => (sema.type_name(value.ty), None),
    };
    let named = info.filter(|info| !info.tuple);
    let mut parts: Vec<String> = Vec::new();
    for (at, field) in fields.iter().take(MAX_SHOWN).enumerate() {
        let text = match &field.data {
            Data::Str(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
            _ => show(sema, field),
        };
        parts.push(match named.and_then(|info| info.fields.get(at)) {
            Some(&(name, _)) => format!(".{} = {text}", sema.spell(name)),
            None => text,
        });
    }
    if fields.len() > MAX_SHOWN {
        parts.push("…".to_owned());
    }
    if parts.is_empty() {
        format!("{head}{{}}")
    } else {
        format!("{head}{{ {} }}", parts.join(", "))
    }
}

fn address(sema: &Sema<'_, '_>, pointer: &Pointer) -> String {
    let base = match pointer.base {
        PointerBase::Global { module, decl } => format!("&{}", sema.decl_name(module, decl)),
        PointerBase::Constant(_) => "&constant".to_owned(),
        PointerBase::Func(func) => format!("&{}", sema.decl_name(func.module, func.decl)),
        PointerBase::Address => return format!("address {}", pointer.offset),
    };
    if pointer.offset == 0 { base } else { format!("{base} + {} bytes", pointer.offset) }
}
