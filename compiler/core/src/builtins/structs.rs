//! Structs by name, and module instances.

use std::rc::Rc;

use dflow_syntax::ast::{Expr as Ast, ExprId, Ident, VarKind};
use dflow_syntax::{Diagnostic, Span, Symbol, codes};

use super::Call;
use super::args::wrong_type;
use crate::dialect::SdkVersion;
use crate::load::SourceIdx;
use crate::resolve::DeclKind;
use crate::sema::place::Place;
use crate::sema::types::{StructType, Type, TypeId};
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema, TraceStep};

/// `@concat_structs(a, b)`: one anonymous struct of two.
pub(crate) fn concat(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let instead = "write a struct with all the fields";
    sema.cx.old_spelling("`@concat_structs`", SdkVersion::NEW, instead, call.span);
    let (a, a_span) = sema.arg_value(call.args[0], None)?;
    let (b, b_span) = sema.arg_value(call.args[1], None)?;
    let (first, second) = (anonymous(sema, &a, a_span)?, anonymous(sema, &b, b_span)?);
    if first.fields.is_empty() {
        return Ok(Operand::Const(b));
    }
    if second.fields.is_empty() {
        return Ok(Operand::Const(a));
    }
    if first.tuple != second.tuple {
        let message = "one of these has names for its fields and the other has none";
        return sema.fail(codes::TYPE_MISMATCH, message, call.span, "cannot be one struct");
    }
    for &(name, _) in &second.fields {
        if !second.tuple && first.fields.iter().any(|&(known, _)| known == name) {
            let message = format!("both structs have a field `{}`", sema.spell(name));
            return sema.fail(codes::DUPLICATE_FIELD, message, b_span, "again here");
        }
    }
    let fields = first.fields.iter().chain(&second.fields).copied().collect();
    let ty = sema.types.anonymous(fields, first.tuple);
    let ty = sema.shallow(ty, call.span)?;
    let mut values = Vec::new();
    for (value, info) in [(&a, &first), (&b, &second)] {
        values.extend((0..info.fields.len()).filter_map(|at| value.element(at)));
    }
    Ok(Operand::Const(Value::new(ty, Data::Fields(Rc::new(values)))))
}

fn anonymous(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<Rc<StructType>> {
    match sema.types.get(value.ty) {
        Type::Struct(info) if info.nominal.is_none() => Ok(Rc::clone(info)),
        _ => wrong_type(sema, value, "an anonymous struct", span),
    }
}

/// `@field(s, name)` as a place, which may be assigned to.
pub(crate) fn field_place(sema: &mut Sema<'_, '_>, args: &[ExprId], span: Span) -> R<Place> {
    let (name, _) = sema.arg_string(args[1], "the name of a field as a string")?;
    let base = sema.place(args[0])?;
    let name = sema.symbol(&name);
    sema.field_place(base, name, span)
}

/// `@field(s, name)`.
pub(crate) fn field(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let place = field_place(sema, call.args, call.span)?;
    sema.load(place, call.span)
}

/// `@has_field(s, name)`.
pub(crate) fn has_field(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (name, _) = sema.arg_string(call.args[1], "the name of a field as a string")?;
    let name = sema.symbol(&name);
    let place = sema.place(call.args[0])?;
    let known = match &place {
        Place::Const { value: Value { data: Data::Module(module), .. }, .. } => {
            sema.member(*module, name).is_some()
        }
        Place::Const { value: Value { data: Data::Type(ty), .. }, .. } => {
            has_member(sema, *ty, name)
        }
        _ => {
            let ty = sema.place_type(&place);
            let ty = match *sema.types.get(ty) {
                Type::Pointer { many: false, pointee, .. } => pointee,
                _ => ty,
            };
            has_member(sema, ty, name)
        }
    };
    Ok(Operand::Const(sema.bool_value(known)))
}

fn has_member(sema: &Sema<'_, '_>, ty: TypeId, name: Symbol) -> bool {
    match sema.types.get(ty) {
        // The fields of a tuple are called by their places.
        Type::Struct(info) if info.tuple => {
            sema.spell(name).parse::<usize>().is_ok_and(|at| at < info.fields.len())
        }
        Type::Struct(info) => info.fields.iter().any(|&(known, _)| known == name),
        Type::Enum(info) => info.elems.iter().any(|&(known, _)| known == name),
        _ => false,
    }
}

/// `@import_module(path[, params])`: a new instance each time.
pub(crate) fn import_module(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (path, path_span) = sema.arg_string(call.args[0], "a path as a string")?;
    let params = match call.args.get(1) {
        Some(&params) => given_params(sema, params)?,
        None => Vec::new(),
    };
    let from = sema.modules[sema.frame().module.0 as usize].source;
    let source = {
        let Sema { files, cx, .. } = sema;
        files.import(cx, from, &path, path_span)?
    };
    check_cycle(sema, source, &path, path_span)?;
    // Of structs that are passed on as a whole, libraries take what they need.
    let written = call.args.get(1).is_some_and(|&arg| literal(sema, arg).is_some());
    if written || !path.starts_with('<') {
        warn_unknown(sema, source, &params);
    }
    let module = sema.instantiate(source, 0, None, stem(&path).to_owned(), params);
    sema.modules[module.0 as usize].imported = Some(call.span);
    let file = sema.files.get(source).file.id;
    sema.layout.importing.push(source);
    sema.trace.push(TraceStep::Instance { file, span: call.span, pe: None });
    let ran = sema.run_top_level(module);
    sema.trace.pop();
    sema.layout.importing.pop();
    ran?;
    Ok(Operand::Const(Value::new(sema.types.common.module, Data::Module(module))))
}

/// The fields of a params struct.
fn given_params(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<Vec<(Symbol, Value, Span)>> {
    let (value, span) = sema.arg_value(arg, None)?;
    let shared = sema.types.shared(value.ty);
    let Type::Struct(info) = shared.as_ref() else {
        return wrong_type(sema, &value, "a struct of params", span);
    };
    if info.tuple && !info.fields.is_empty() {
        return wrong_type(sema, &value, "a struct of params with names", span);
    }
    let places = literal(sema, arg).unwrap_or_default();
    let place = |name: Symbol| {
        places.iter().find(|place| place.name == name).map_or(span, |place| place.span)
    };
    let fields = info.fields.iter().enumerate();
    let given = fields.filter_map(|(at, &(name, _))| Some((name, value.element(at)?, place(name))));
    Ok(given.collect())
}

/// The names of the fields of a struct that is written out.
fn literal(sema: &Sema<'_, '_>, arg: ExprId) -> Option<Vec<Ident>> {
    match sema.frame().file.file.expr(arg) {
        Ast::StructLiteral { fields } => Some(fields.iter().map(|field| field.name).collect()),
        _ => None,
    }
}

fn check_cycle(sema: &mut Sema<'_, '_>, source: SourceIdx, path: &str, span: Span) -> R<()> {
    let Some(at) = sema.layout.importing.iter().position(|&known| known == source) else {
        return Ok(());
    };
    let way: Vec<String> = sema.layout.importing[at..]
        .iter()
        .map(|&known| sema.cx.sources.path(sema.files.get(known).file.id).to_owned())
        .collect();
    let message = format!(
        "`{path}` is imported while it is read: {} imports it again",
        way.join(" imports ")
    );
    sema.fail(codes::IMPORT_CYCLE, message, span, "imported while it is being imported")
}

/// Params that a module does not have are odd, not wrong: structs of params are often passed on
/// as a whole.
fn warn_unknown(sema: &mut Sema<'_, '_>, source: SourceIdx, params: &[(Symbol, Value, Span)]) {
    let file = sema.files.get(source);
    for &(name, _, span) in params {
        let decl = file.scopes[0].by_name.get(&name).map(|&at| &file.scopes[0].decls[at as usize]);
        let known = decl.is_some_and(
            |decl| matches!(&decl.kind, DeclKind::Var(var) if var.kind == VarKind::Param),
        );
        if !known {
            let message = format!("the module has no param `{}`", sema.spell(name));
            let help = crate::params::help(sema, &file, 0, &sema.spell(name));
            let diagnostic = Diagnostic::new(codes::UNKNOWN_PARAM, message, span);
            sema.report(diagnostic.label("given here").help(help));
        }
    }
}

/// A file's name without folders and ending.
fn stem(path: &str) -> &str {
    let path = path.trim_start_matches('<').trim_end_matches('>');
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split_once('.').map_or(name, |(stem, _)| stem)
}
