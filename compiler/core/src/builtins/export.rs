//! Names that the host can use: declared by the layout, bound by programs, found by id at run
//! time.
//!
//! Invariant: an export's id is its place among the names mentioned so far; only names that a
//! program binds or the layout declares are ever mentioned.

use dflow_ir::image::{ElementType, ExportKind};
use dflow_ir::scalar::Convert;
use dflow_ir::ty::Ty;
use dflow_syntax::ast::{Expr as Ast, ExprId};
use dflow_syntax::{Diagnostic, Span, codes};

use super::Call;
use super::args::wrong_type;
use crate::plan::PlanExport;
use crate::sema::address::typed;
use crate::sema::place::Place;
use crate::sema::program::BoundExport;
use crate::sema::types::{Repr, Type, TypeId};
use crate::sema::value::{Data, Pointer, PointerBase, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{self, Expr, ExprKind, LocalIdx, Stmt, StmtKind};

/// `@set_symbol_name(pointer, name)`: the variable behind the pointer is exported under the name,
/// as `export var` exports it under its own.
pub(super) fn set_symbol_name(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let (name, _) = sema.arg_string(call.args[1], "a name as a string")?;
    let base = match &value.data {
        Data::Pointer(pointer) if pointer.offset == 0 => pointer.base,
        _ => return wrong_type(sema, &value, "a pointer to a variable", span),
    };
    if !matches!(base, PointerBase::Global { .. }) {
        return wrong_type(sema, &value, "a pointer to a variable", span);
    }
    let global = sema.program_global(base, span)?;
    let globals = &mut sema.program_mut().typed.globals;
    if let Some(first) = globals.iter().find(|global| global.exported && global.name == name) {
        let first = first.span;
        return Err(sema.report(
            Diagnostic::new(
                codes::EXPORT_DUPLICATE,
                format!("two variables of one program are exported as `{name}`"),
                call.span,
            )
            .label("named here")
            .secondary(first, "the other one"),
        ));
    }
    let global = &mut globals[global.0 as usize];
    global.name = name;
    global.exported = true;
    Ok(sema.void_operand())
}

/// Parameters that an exported function may have: what one command carries.
const MAX_PARAMS: usize = 15;

/// A scalar type as the host knows it: numbers and bools.
pub(crate) fn element_type(sema: &Sema<'_, '_>, ty: TypeId) -> Option<ElementType> {
    if !matches!(sema.types.get(ty), Type::Bool | Type::Int { .. } | Type::Float(_)) {
        return None;
    }
    match sema.types.repr(ty, sema.profile()) {
        Repr::Scalar(machine) => {
            if *sema.types.get(ty) == Type::Bool {
                return Some(ElementType::bool());
            }
            let signed = sema.types.is_signed(ty) || machine.is_float();
            Some(ElementType::number(machine, signed))
        }
        Repr::Void | Repr::Memory { .. } | Repr::Comptime => None,
    }
}

/// Structs are words to the host: of 32 bits, or of 16 where that does not divide their size.
fn struct_words(sema: &Sema<'_, '_>, ty: TypeId) -> Option<ElementType> {
    let (Type::Struct(_), Some((size, _))) =
        (sema.types.get(ty), sema.types.size_align(ty, sema.profile()))
    else {
        return None;
    };
    let ty = if size % 4 == 0 { Ty::I32 } else { Ty::I16 };
    Some(ElementType::number(ty, false))
}

/// What a type is to the host, if it may be exported.
fn export_kind(sema: &mut Sema<'_, '_>, ty: TypeId, mutable: bool, span: Span) -> R<ExportKind> {
    let shared = sema.types.shared(ty);
    match shared.as_ref() {
        Type::Fn { is_task: false, params, ret } => function_kind(sema, params, *ret, span),
        Type::Pointer { pointee, .. } => {
            let target = match sema.types.get(*pointee) {
                Type::Array { elem, .. } => *elem,
                _ => *pointee,
            };
            match element_type(sema, target).or_else(|| struct_words(sema, target)) {
                Some(element) => Ok(ExportKind::Pointer { element, mutable }),
                None => not_exportable(sema, ty, span),
            }
        }
        _ => match element_type(sema, ty) {
            Some(element) => Ok(ExportKind::Scalar { element, mutable }),
            None => not_exportable(sema, ty, span),
        },
    }
}

fn not_exportable<T>(sema: &mut Sema<'_, '_>, ty: TypeId, span: Span) -> R<T> {
    let name = sema.type_name(ty);
    let mut diagnostic = Diagnostic::new(
        codes::INVALID_TYPE,
        format!(
            "`{name}` cannot be exported: numbers, functions and pointers to numbers or structs can"
        ),
        span,
    )
    .label("of this type");
    if let Type::Array { elem, .. } = *sema.types.get(ty) {
        let elem = sema.type_name(elem);
        diagnostic = diagnostic.help(format!(
            "export a pointer to it: `var pointer: [*]{elem} = &{};`",
            sema.source_of(span)
        ));
    }
    Err(sema.report(diagnostic))
}

fn function_kind(
    sema: &mut Sema<'_, '_>,
    params: &[TypeId],
    ret: TypeId,
    span: Span,
) -> R<ExportKind> {
    if params.len() > MAX_PARAMS {
        let message = format!(
            "an exported function has at most {MAX_PARAMS} parameters, not {}",
            params.len()
        );
        return sema.fail(codes::INVALID_SIGNATURE, message, span, "this function type");
    }
    let mut elements = Vec::with_capacity(params.len());
    for &param in params {
        match element_type(sema, param) {
            Some(element) if element.ty.bits() <= 32 => elements.push(element),
            _ => {
                return no_parameter(sema, param, span);
            }
        }
    }
    if ret != sema.types.common.void && element_type(sema, ret).is_none() {
        let name = sema.type_name(ret);
        let message = format!("an exported function returns nothing or a number, not `{name}`");
        return sema.fail(codes::INVALID_SIGNATURE, message, span, "this function type");
    }
    Ok(ExportKind::Function { params: elements })
}

/// A type of which a launch has no value.
fn no_parameter<T>(sema: &mut Sema<'_, '_>, param: TypeId, span: Span) -> R<T> {
    let name = sema.type_name(param);
    let message = format!(
        "parameters of an exported function are numbers of up to 32 bits and bools, this is `{name}`"
    );
    let diagnostic =
        Diagnostic::new(codes::INVALID_SIGNATURE, message, span).label("this function type");
    let is_wide = element_type(sema, param).is_some();
    let instead = match sema.types.get(param) {
        Type::Pointer { .. } => {
            "the host has no pointers: export the variable, and let the function name it"
        }
        _ if is_wide => "take two of 32 bits, or let the host copy the number into a variable",
        _ => return Err(sema.report(diagnostic)),
    };
    Err(sema.report(diagnostic.help(instead)))
}

/// `@export_name(name, type[, mutable])`.
pub(crate) fn export_name(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (name, name_span) = sema.arg_string(call.args[0], "a name as a string")?;
    let ty = sema.type_expr(call.args[1])?;
    let ty_span = sema.expr_span(call.args[1]);
    let is_function = matches!(sema.types.get(ty), Type::Fn { .. });
    let mutable = match call.args.get(2) {
        Some(&flag) => {
            let (value, span) = sema.arg_value(flag, None)?;
            match sema.fix_bool(&value) {
                Some(mutable) => mutable,
                None => return wrong_type(sema, &value, "a bool", span),
            }
        }
        None if is_function => false,
        None => {
            return Err(sema.report(
                Diagnostic::new(
                    codes::WRONG_ARGUMENT_COUNT,
                    format!("`{name}` is a variable: say whether the host may change it"),
                    call.span,
                )
                .label("a third argument is missing")
                .help("write `true` if the symbol is a `var`, `false` if it is a `const`"),
            ));
        }
    };
    let kind = export_kind(sema, ty, mutable, ty_span)?;
    let id = sema.layout.export_id(&name);
    let type_name = sema.type_name(ty);
    let export = PlanExport { name: name.clone(), kind, type_name, span: call.span };
    if let Err(first) = sema.layout.declare_export(id, export) {
        return Err(sema.report(
            Diagnostic::new(
                codes::EXPORT_DUPLICATE,
                format!("the name `{name}` is declared twice"),
                name_span,
            )
            .label("again here")
            .secondary(first, "first declared here"),
        ));
    }
    Ok(sema.void_operand())
}

/// What an expression names: type, whether it can change, and how the program knows it.
struct Named {
    ty: TypeId,
    mutable: bool,
    symbol: typed::Symbol,
}

/// The variable, constant or function that an argument names.
fn named(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<Named> {
    let span = sema.expr_span(arg);
    let place = sema.place(arg)?;
    let (base, ty, mutable) = match place {
        Place::Const { value: Value { data: Data::Func(func), .. }, .. } => {
            let ty = sema.func_type(func, span)?;
            if let Type::Fn { is_task: true, .. } = sema.types.get(ty) {
                let message = "a task cannot be exported: the host starts functions";
                return Err(sema.report(
                    Diagnostic::new(codes::INVALID_ARGUMENT, message, span)
                        .label("a task")
                        .help("export a `fn` that activates it, or make it a `fn`"),
                ));
            }
            let symbol = typed::Symbol::Func(sema.program_func(func, span)?);
            return Ok(Named { ty, mutable: false, symbol });
        }
        Place::Memory { ref address, ty, mutable } => (address.known(), ty, mutable),
        Place::Const { value, home } => (home, value.ty, false),
        Place::Slot { .. } | Place::Local { .. } | Place::Value(_) | Place::Bits { .. } => {
            (None, sema.types.common.void, false)
        }
    };
    match base {
        Some(Pointer { base: base @ PointerBase::Global { .. }, offset: 0 }) => {
            let symbol = typed::Symbol::Global(sema.program_global(base, span)?);
            Ok(Named { ty, mutable, symbol })
        }
        _ => sema.fail(
            codes::INVALID_ARGUMENT,
            "a global variable, a global constant or a function is needed here",
            span,
            "has no symbol",
        ),
    }
}

/// The name under which a symbol stands in the source.
fn own_name(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<(String, Span)> {
    let span = sema.expr_span(arg);
    let file = std::rc::Rc::clone(&sema.frame().file);
    match file.file.expr(arg) {
        Ast::Name(name) => Ok((sema.spell(*name), span)),
        Ast::Field { name, .. } => Ok((sema.spell(name.name), span)),
        _ => sema.fail(
            codes::INVALID_ARGUMENT,
            "this symbol needs a name for the host as second argument",
            span,
            "has no name of its own",
        ),
    }
}

/// `@export_symbol(symbol[, name])`.
pub(crate) fn export_symbol(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    if sema.program.is_none() {
        let message = "`@export_symbol` stands in the code of a PE: the layout has no symbols";
        return sema.fail(codes::BUILTIN_CONTEXT, message, call.span, "used here");
    }
    let (name, name_span) = match call.args.get(1) {
        Some(&name) => sema.arg_string(name, "a name as a string")?,
        None => own_name(sema, call.args[0])?,
    };
    let Named { ty, mutable, symbol } = named(sema, call.args[0])?;
    let span = sema.expr_span(call.args[0]);
    export_kind(sema, ty, mutable, span)?;
    let known = sema.program_mut().exports.iter().find(|known| known.name == name);
    if let Some(first) = known.map(|known| known.span) {
        return Err(sema.report(
            Diagnostic::new(
                codes::EXPORT_DUPLICATE,
                format!("the name `{name}` is exported twice by this program"),
                name_span,
            )
            .label("again here")
            .secondary(first, "first exported here"),
        ));
    }
    let bound = BoundExport { name, ty, mutable, symbol, span: call.span };
    sema.program_mut().exports.push(bound);
    Ok(sema.void_operand())
}

/// `@get_symbol_id(symbol)`: of a symbol, or of a name as a string; `u16`.
pub(crate) fn get_symbol_id(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (arg, span) = (call.args[0], sema.expr_span(call.args[0]));
    let is_text = {
        let file = std::rc::Rc::clone(&sema.frame().file);
        matches!(file.file.expr(arg), Ast::Str(_)) || names_text(sema, arg)?
    };
    let name = if is_text {
        sema.arg_string(arg, "a name as a string")?.0
    } else {
        symbol_name(sema, arg, span)?
    };
    let bound = sema
        .program
        .as_ref()
        .is_some_and(|program| program.exports.iter().any(|known| known.name == name));
    if !bound && !sema.layout.exports.contains_key(&name) {
        let message = format!("nothing exports `{name}`");
        return sema.fail(codes::UNRESOLVED_EXPORT, message, span, "asked for here");
    }
    let id = sema.layout.export_id(&name);
    Ok(Operand::Const(Value::int(sema.types.common.u16, i128::from(id))))
}

/// Whether an argument is a string value rather than a symbol.
fn names_text(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<bool> {
    let place = sema.place(arg)?;
    Ok(sema.place_type(&place) == sema.types.common.comptime_string)
}

/// The first name under which the program exports a symbol.
fn symbol_name(sema: &mut Sema<'_, '_>, arg: ExprId, span: Span) -> R<String> {
    if sema.program.is_none() {
        let message = "the layout has no symbols: ask in the code of a PE, or by name";
        return sema.fail(codes::BUILTIN_CONTEXT, message, span, "asked for here");
    }
    let symbol = named(sema, arg)?.symbol;
    let known = sema.program_mut().exports.iter().find(|known| known.symbol == symbol);
    match known.map(|known| known.name.clone()) {
        Some(name) => Ok(name),
        None => sema.fail(
            codes::UNRESOLVED_EXPORT,
            "this symbol is not exported",
            span,
            "its id is asked for here",
        ),
    }
}

/// `@has_exported_tensors()`: whether the program exports a pointer.
pub(crate) fn has_exported_tensors(sema: &mut Sema<'_, '_>, _: Call<'_>) -> R<Operand> {
    let types = &sema.types;
    let any = sema.program.as_ref().is_some_and(|program| {
        program.exports.iter().any(|export| matches!(types.get(export.ty), Type::Pointer { .. }))
    });
    Ok(Operand::Const(sema.bool_value(any)))
}

/// An export with its id.
struct Candidate {
    id: u32,
    ty: TypeId,
    symbol: typed::Symbol,
}

/// The program's exports that `wanted` takes.
fn candidates(
    sema: &mut Sema<'_, '_>,
    wanted: impl Fn(&Sema<'_, '_>, TypeId) -> bool,
) -> Vec<Candidate> {
    let exports: Vec<(String, TypeId, typed::Symbol)> = sema
        .program_mut()
        .exports
        .iter()
        .map(|export| (export.name.clone(), export.ty, export.symbol))
        .collect();
    let mut found = Vec::new();
    for (name, ty, symbol) in exports {
        if wanted(sema, ty) {
            found.push(Candidate { id: sema.layout.export_id(&name), ty, symbol });
        }
    }
    found
}

/// Emits a choice by id; an id that no case has ends the run.
fn choose(sema: &mut Sema<'_, '_>, id: Expr, cases: Vec<(u32, Vec<Stmt>)>, what: &str, span: Span) {
    let never = typed(ExprKind::Const(0), Ty::I8, span);
    let message = format!("the program has no {what} of this id");
    let otherwise = vec![Stmt { kind: StmtKind::Assert { cond: never, message }, span }];
    if cases.is_empty() {
        sema.append(otherwise);
        return;
    }
    let cases = cases.into_iter().map(|(id, stmts)| (vec![u64::from(id)], stmts)).collect();
    sema.emit(StmtKind::Switch { value: id, cases, otherwise }, span);
}

/// The id argument, a `u16`.
fn id_arg(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<Expr> {
    let u16_ty = sema.types.common.u16;
    let (operand, span) = sema.arg_as(arg, u16_ty)?;
    let id = sema.scalar_of(operand, span)?;
    Ok(sema.pin(id, span))
}

/// A read of each candidate's variable into one local.
fn read_one(
    sema: &mut Sema<'_, '_>,
    id: Expr,
    found: &[Candidate],
    machine: Ty,
    span: Span,
) -> LocalIdx {
    let result = sema.new_scalar(None, machine);
    let pointer = sema.profile().pointer();
    let mut cases = Vec::with_capacity(found.len());
    for candidate in found {
        let typed::Symbol::Global(global) = candidate.symbol else { continue };
        let address = typed(ExprKind::GlobalAddress { global, offset: 0 }, pointer, span);
        let value = typed(ExprKind::Load { address, offset: 0 }, machine, span);
        cases.push((candidate.id, vec![Stmt { kind: StmtKind::Set(result, value), span }]));
    }
    choose(sema, id, cases, "exported variable", span);
    result
}

/// `@get_tensor_ptr(id)`: `[*]u16`.
pub(crate) fn get_tensor_ptr(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let id = id_arg(sema, call.args[0])?;
    let found = candidates(sema, |sema, ty| matches!(sema.types.get(ty), Type::Pointer { .. }));
    let pointer = sema.profile().pointer();
    let local = read_one(sema, id, &found, pointer, call.span);
    let u16_ty = sema.types.common.u16;
    let ty = sema.types.pointer(true, false, u16_ty);
    Ok(Operand::Scalar { ty, expr: typed(ExprKind::Local(local), pointer, call.span) })
}

/// `@get_symbol_value(T, id)`.
pub(crate) fn get_symbol_value(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let ty = sema.type_expr(call.args[0])?;
    let ty_span = sema.expr_span(call.args[0]);
    let machine = sema.machine_ty(ty, ty_span)?;
    let id = id_arg(sema, call.args[1])?;
    let found = candidates(sema, |_, known| known == ty);
    let local = read_one(sema, id, &found, machine, call.span);
    Ok(Operand::Scalar { ty, expr: typed(ExprKind::Local(local), machine, call.span) })
}

/// `@rpc(id)`: older programs ask for the server of the host's calls and name the channel it
/// listens to. It is part of memcpy, on a channel of its own.
pub(crate) fn rpc(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    sema.report(
        Diagnostic::new(codes::DEPRECATED, "`@rpc` has no effect", call.span)
            .label("memcpy starts functions by itself")
            .help("leave it out"),
    );
    Ok(sema.void_operand())
}

/// `@launch_export(id, args)`: calls an exported function with arguments from consecutive
/// 32-bit words.
pub(crate) fn launch_export(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let id = id_arg(sema, call.args[0])?;
    let u32_ty = sema.types.common.u32;
    let words = sema.types.pointer(true, true, u32_ty);
    let (operand, span) = sema.arg_as(call.args[1], words)?;
    let args = sema.scalar_of(operand, span)?;
    let args = sema.pin(args, span);
    let found = candidates(sema, |sema, ty| matches!(sema.types.get(ty), Type::Fn { .. }));
    let mut cases = Vec::with_capacity(found.len());
    for candidate in &found {
        let shared = sema.types.shared(candidate.ty);
        let (Type::Fn { params, ret, .. }, typed::Symbol::Func(func)) =
            (shared.as_ref(), candidate.symbol)
        else {
            continue;
        };
        let mut values = Vec::with_capacity(params.len());
        for (at, &param) in params.iter().enumerate() {
            values.push(argument(sema, &args, at, param, call.span)?);
        }
        let ty = match sema.types.repr(*ret, sema.profile()) {
            Repr::Scalar(machine) => Some(machine),
            Repr::Void | Repr::Memory { .. } | Repr::Comptime => None,
        };
        let kind = Box::new(ExprKind::Call { func, args: values });
        let run = StmtKind::Expr(Expr { kind, ty, span: call.span });
        cases.push((candidate.id, vec![Stmt { kind: run, span: call.span }]));
    }
    choose(sema, id, cases, "exported function", call.span);
    Ok(Operand::Void)
}

/// Argument `at` from its word.
fn argument(
    sema: &mut Sema<'_, '_>,
    words: &Expr,
    at: usize,
    param: TypeId,
    span: Span,
) -> R<Expr> {
    let machine = sema.machine_ty(param, span)?;
    let load = ExprKind::Load { address: words.clone(), offset: 4 * at as i32 };
    let word = typed(load, Ty::I32, span);
    let convert = |kind, expr, ty| typed(ExprKind::Convert(kind, expr), ty, span);
    Ok(match machine {
        Ty::I8 if param == sema.types.common.bool => convert(Convert::Bool, word, Ty::I8),
        Ty::I8 | Ty::I16 => convert(Convert::Truncate, word, machine),
        Ty::F16 | Ty::Bf16 => {
            convert(Convert::Bitcast, convert(Convert::Truncate, word, Ty::I16), machine)
        }
        Ty::F32 => convert(Convert::Bitcast, word, Ty::F32),
        Ty::I32 => word,
        Ty::I64 | Ty::F64 => {
            let message = "an argument of a launch has at most 32 bits";
            return sema.fail(codes::INVALID_SIGNATURE, message, span, "launched here");
        }
    })
}
