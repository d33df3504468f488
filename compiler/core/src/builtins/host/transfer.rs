//! Words to and from the mesh: copies, launches, streams, and the rectangles they are about.

use std::rc::Rc;

use dflow_ir::image::{ElementKind, ElementType, ExportKind};
use dflow_ir::mesh::Color;
use dflow_ir::program::HostOp;
use dflow_ir::scalar::BinaryOp;
use dflow_ir::ty::Ty;
use dflow_syntax::ast::{Expr as Ast, ExprId};
use dflow_syntax::{Diagnostic, Span, codes};

use super::{
    Slice, binary, ensure_sizes, load, new_slice, perform, size_arg, size_of, slice_arg,
    target_arg, word,
};
use crate::builtins::Call;
use crate::builtins::args::Options;
use crate::builtins::export::element_type;
use crate::plan::PlanExport;
use crate::resolve::edit_distance;
use crate::sema::address::Address;
use crate::sema::types::{Type, TypeId};
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, StmtKind};

/// Fields of a rectangle, in their order in memory.
const PARTS: [&str; 4] = ["x", "y", "w", "h"];

/// A rectangle's numbers, and their values where they are known.
type Parts = Vec<(Expr, Option<i64>)>;

/// A rectangle in fresh memory.
fn new_rect(sema: &mut Sema<'_, '_>, parts: Parts, span: Span) -> R<Operand> {
    let ty = sema.types.common.rect;
    let local = sema.new_memory(None, ty, span)?;
    let address = Address::of_local(local);
    for (at, (value, _)) in parts.into_iter().enumerate() {
        let (address, offset) = sema.split_address(&address.clone().plus(8 * at as i64), span)?;
        sema.emit(StmtKind::Store { address, offset, value }, span);
    }
    Ok(Operand::Memory { ty, address })
}

/// `@all()`: the program's rectangle.
pub(crate) fn all(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let rect = sema.layout.plan.rect;
    let sizes = [0, 0, i64::from(rect.width), i64::from(rect.height)];
    let parts = sizes.iter().map(|&size| (word(size, call.span), Some(size))).collect();
    new_rect(sema, parts, call.span)
}

/// `@rect(x, y, w, h)`.
pub(crate) fn rect(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let mut parts = Vec::with_capacity(4);
    for (&arg, name) in call.args.iter().zip(PARTS) {
        parts.push(size_arg(sema, arg, &format!("`{name}`"))?);
    }
    check_rect(sema, &parts, call.span)?;
    new_rect(sema, parts, call.span)
}

/// A rectangle argument: a value of `@all` or `@rect`, or a struct of `x`, `y`, `w`, `h`.
fn rect_arg(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<Vec<Expr>> {
    let file = Rc::clone(&sema.frame().file);
    let span = file.file.expr_span(arg);
    let parts = match file.file.expr(arg) {
        Ast::StructLiteral { .. } => {
            let options = Options::read(sema, arg, &PARTS, "a rectangle")?;
            rect_options(sema, &options)?
        }
        _ => {
            let operand = sema.expr(arg, None)?;
            rect_operand(sema, operand, span)?
        }
    };
    check_rect(sema, &parts, span)?;
    Ok(parts.into_iter().map(|(expr, _)| expr).collect())
}

fn rect_options(sema: &mut Sema<'_, '_>, options: &Options) -> R<Parts> {
    let mut parts = Vec::with_capacity(4);
    for name in PARTS {
        let Some((operand, span)) = options.get(name) else {
            let message = format!("the rectangle has no `.{name}`");
            return sema.fail(codes::MISSING_FIELD, message, options.span, "this rectangle");
        };
        parts.push(size_of(sema, operand, &format!("`.{name}`"), span)?);
    }
    Ok(parts)
}

fn rect_operand(sema: &mut Sema<'_, '_>, operand: Operand, span: Span) -> R<Parts> {
    let ty = sema.operand_type(&operand);
    match operand {
        Operand::Const(value) => {
            let options = Options::of_value(sema, &value, span, &PARTS, "a rectangle")?;
            rect_options(sema, &options)
        }
        Operand::Memory { address, .. } if ty == sema.types.common.rect => {
            let (address, offset) = sema.split_address(&address, span)?;
            let address = sema.pin(address, span);
            let parts = (0..4).map(|at| (load(address.clone(), offset + 8 * at, span), None));
            Ok(parts.collect())
        }
        memory @ Operand::Memory { .. } if matches!(sema.types.get(ty), Type::Struct(_)) => {
            let place = sema.value_place(memory);
            let mut parts = Vec::with_capacity(4);
            for name in PARTS {
                let symbol = sema.symbol(name);
                let field = sema.field_place(place.clone(), symbol, span)?;
                let operand = sema.load(field, span)?;
                parts.push(size_of(sema, operand, &format!("`.{name}`"), span)?);
            }
            Ok(parts)
        }
        Operand::Memory { .. } | Operand::Scalar { .. } | Operand::Void => {
            let name = sema.type_name(ty);
            Err(sema.report(
                Diagnostic::new(
                    codes::TYPE_MISMATCH,
                    format!("a rectangle is needed here, this is `{name}`"),
                    span,
                )
                .label("of the wrong type")
                .help("write `@all()` or `.{ .x = 0, .y = 0, .w = 1, .h = 1 }`"),
            ))
        }
    }
}

/// A known rectangle lies within the program's.
fn check_rect(sema: &mut Sema<'_, '_>, parts: &Parts, span: Span) -> R<()> {
    let all = sema.layout.plan.rect;
    let known = |at: usize| parts.get(at).and_then(|&(_, known)| known);
    for (at, limit, what) in [(0, all.width, "columns"), (1, all.height, "rows")] {
        let (start, size) = (known(at), known(at + 2));
        let end = start.unwrap_or(0) + size.unwrap_or(1);
        if size == Some(0) || end > i64::from(limit) {
            let start = start.unwrap_or(0);
            let message = match size {
                Some(0) => format!("the rectangle has no {what}"),
                _ => format!(
                    "the rectangle covers {what} {start} to {}, and the program's last is {}",
                    end - 1,
                    limit - 1
                ),
            };
            return sema.fail(codes::OUTSIDE_RECTANGLE, message, span, "this rectangle");
        }
    }
    Ok(())
}

/// The declared export of a name argument.
fn exported(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<(u32, PlanExport, Span)> {
    let (name, span) = super::name_arg(sema, arg)?;
    let exports = &sema.layout.exports;
    if let Some((id, _, Some(export))) = exports.get_full(&name) {
        return Ok((id as u32, export.clone(), span));
    }
    let near = exports
        .keys()
        .map(|known| (edit_distance(known, &name), known))
        .filter(|&(distance, _)| distance <= 2)
        .min()
        .map(|(_, known)| format!("did you mean `{known}`?"));
    let message = format!("the layout declares no export `{name}`");
    let mut diagnostic = Diagnostic::new(codes::HOST_SYMBOL, message, span).label("named here");
    if let Some(near) = near {
        diagnostic = diagnostic.help(near);
    } else if !exports.is_empty() && exports.len() <= 12 {
        let known: Vec<&str> = exports.keys().map(String::as_str).collect();
        diagnostic = diagnostic.help(format!("it declares {}", known.join(", ")));
    }
    Err(sema.report(diagnostic))
}

/// The elements behind an exported pointer.
fn exported_elements(sema: &mut Sema<'_, '_>, arg: ExprId, write: bool) -> R<(u32, ElementType)> {
    let (id, export, span) = exported(sema, arg)?;
    let PlanExport { name, kind, type_name, span: declared } = export;
    let fault = match kind {
        ExportKind::Pointer { mutable: false, .. } if write => {
            format!("`{name}` is declared as a constant and cannot be copied to")
        }
        ExportKind::Pointer { element, .. } if element.ty.bits() == 8 => {
            format!("`{name}` is `{type_name}`: copies move elements of 16, 32 or 64 bits")
        }
        ExportKind::Pointer { element, .. } => return Ok((id, element)),
        ExportKind::Scalar { .. } | ExportKind::Function { .. } => {
            format!("`{name}` is `{type_name}`: copies need a pointer")
        }
    };
    Err(sema.report(
        Diagnostic::new(codes::HOST_TYPE, fault, span)
            .label("copied here")
            .secondary(declared, "declared here"),
    ))
}

/// The language's type of a host element.
fn type_of(sema: &mut Sema<'_, '_>, element: ElementType) -> TypeId {
    let common = sema.types.common;
    match element.ty {
        Ty::I8 if element.kind == ElementKind::Bool => common.bool,
        Ty::F16 => common.f16,
        Ty::Bf16 => common.bf16,
        Ty::F32 => common.f32,
        Ty::F64 => common.f64,
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => {
            let signed = element.kind == ElementKind::Signed;
            sema.types.int(signed, element.ty.bits() as u16)
        }
    }
}

/// `@copy_in(symbol, rect, slice)`.
pub(crate) fn copy_in(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (export, element) = exported_elements(sema, call.args[0], true)?;
    let mut args = rect_arg(sema, call.args[1])?;
    let (slice, span) = slice_arg(sema, call.args[2])?;
    if element_type(sema, slice.elem) != Some(element) {
        let wanted = type_of(sema, element);
        let (wanted, given) = (sema.type_name(wanted), sema.type_name(slice.elem));
        let message = format!("the mesh's elements are `{wanted}`, these are `{given}`");
        return Err(sema.report(
            Diagnostic::new(codes::HOST_TYPE, message, span)
                .label("of another element type")
                .help(format!("make the values as `{wanted}`: `@alloc({wanted}, n)`")),
        ));
    }
    args.extend([slice.ptr, slice.len]);
    perform(sema, HostOp::CopyIn { export, ty: element.ty }, &[], args, call.span);
    Ok(Operand::Void)
}

/// `@copy_out(symbol, rect, n)`: `n` elements of each PE.
pub(crate) fn copy_out(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (export, element) = exported_elements(sema, call.args[0], false)?;
    let mut args = rect_arg(sema, call.args[1])?;
    args.push(size_arg(sema, call.args[2], "the number of elements")?.0);
    let op = HostOp::CopyOut { export, ty: element.ty };
    let results = perform(sema, op, &[Ty::I64, Ty::I64], args, call.span);
    let elem = type_of(sema, element);
    match <[_; 2]>::try_from(results) {
        Ok([ptr, len]) => new_slice(sema, elem, ptr, len, call.span),
        Err(_) => Ok(Operand::Void),
    }
}

/// `@launch(symbol, args…)`.
pub(crate) fn launch(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (export, declared, span) = exported(sema, call.args[0])?;
    let ExportKind::Function { params } = declared.kind else {
        let (name, type_name) = (declared.name, declared.type_name);
        let message = format!("`{name}` is `{type_name}` and cannot be launched");
        return sema.fail(codes::HOST_TYPE, message, span, "no function");
    };
    let given = &call.args[1..];
    if given.len() != params.len() {
        let name = declared.name;
        let wanted = crate::builtins::counted(params.len());
        let message = format!("`{name}` takes {wanted}, {} given", given.len());
        return sema.fail(codes::WRONG_ARGUMENT_COUNT, message, call.span, "this launch");
    }
    let mut args = Vec::with_capacity(given.len());
    for (&arg, param) in given.iter().zip(params) {
        args.push(launch_arg(sema, arg, param)?);
    }
    perform(sema, HostOp::Launch { export }, &[], args, call.span);
    Ok(Operand::Void)
}

/// A launch's argument in its parameter's type.
fn launch_arg(sema: &mut Sema<'_, '_>, arg: ExprId, param: ElementType) -> R<Expr> {
    let ty = type_of(sema, param);
    let (operand, span) = sema.arg_as(arg, ty)?;
    sema.scalar_of(operand, span)
}

fn color_arg(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<Color> {
    let wanted = [sema.types.common.color];
    let (id, _, span) = sema.arg_id(arg, &wanted, "a color")?;
    match Color::new(id) {
        Some(color) => Ok(color),
        None => {
            let message = format!("there is no color {id}");
            sema.fail(codes::COLOR_OUT_OF_RANGE, message, span, "this color")
        }
    }
}

/// Elements that travel as wavelets.
fn stream_type(sema: &mut Sema<'_, '_>, slice: &Slice, span: Span) -> R<Ty> {
    match element_type(sema, slice.elem) {
        Some(element) if matches!(element.ty.bits(), 16 | 32) => Ok(element.ty),
        _ => {
            let name = sema.type_name(slice.elem);
            let message = format!("streams carry numbers of 16 or 32 bits, not `{name}`");
            sema.fail(codes::HOST_TYPE, message, span, "of this element type")
        }
    }
}

/// `@stream_in(color, rect, slice)`.
pub(crate) fn stream_in(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let color = color_arg(sema, call.args[0])?;
    let mut args = rect_arg(sema, call.args[1])?;
    let (slice, span) = slice_arg(sema, call.args[2])?;
    let ty = stream_type(sema, &slice, span)?;
    args.extend([slice.ptr, slice.len]);
    perform(sema, HostOp::StreamIn { color, ty }, &[], args, call.span);
    Ok(Operand::Void)
}

/// `@stream_out(color, rect, slice)`.
pub(crate) fn stream_out(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let color = color_arg(sema, call.args[0])?;
    let mut args = rect_arg(sema, call.args[1])?;
    let (slice, span) = target_arg(sema, call.args[2])?;
    let ty = stream_type(sema, &slice, span)?;
    args.extend([slice.ptr, slice.len]);
    perform(sema, HostOp::StreamOut { color, ty }, &[], args, call.span);
    Ok(Operand::Void)
}

/// `@stream_out_rows(color, rect, slice, capacity, counts)`.
pub(crate) fn stream_out_rows(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let color = color_arg(sema, call.args[0])?;
    let mut args = rect_arg(sema, call.args[1])?;
    let (slice, span) = target_arg(sema, call.args[2])?;
    let ty = stream_type(sema, &slice, span)?;
    let (capacity, _) = size_arg(sema, call.args[3], "the capacity of a row")?;
    let (counts, counts_span) = target_arg(sema, call.args[4])?;
    let wanted = [sema.types.common.i64, sema.types.common.u64];
    if !wanted.contains(&counts.elem) {
        let name = sema.type_name(counts.elem);
        let message = format!("the counts of rows are `i64`, these are `{name}`");
        return sema.fail(codes::HOST_TYPE, message, counts_span, "of another element type");
    }
    let rows = sema.pin(args[3].clone(), call.span);
    args[3] = rows.clone();
    let needed = binary(BinaryOp::Mul, rows.clone(), capacity.clone(), span);
    let room = binary(BinaryOp::LeU, needed, slice.len.clone(), span);
    let pieces = ["", " rows of ", " elements do not fit a slice of ", ""];
    let sizes = vec![rows.clone(), capacity.clone(), slice.len.clone()];
    ensure_sizes(sema, room, &pieces, sizes, span);
    let enough = binary(BinaryOp::LeU, rows.clone(), counts.len.clone(), counts_span);
    let pieces = ["the counts of ", " rows do not fit a slice of ", ""];
    ensure_sizes(sema, enough, &pieces, vec![rows, counts.len], counts_span);
    args.extend([slice.ptr, capacity, counts.ptr]);
    perform(sema, HostOp::StreamOutRows { color, ty }, &[], args, call.span);
    Ok(Operand::Void)
}

/// `@wait()`.
pub(crate) fn wait(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    perform(sema, HostOp::Wait, &[], Vec::new(), call.span);
    Ok(Operand::Void)
}
