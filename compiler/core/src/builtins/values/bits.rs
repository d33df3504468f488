//! Conversions of scalars and pointers, square root, and what only a PE knows.

use std::rc::Rc;

use dflow_ir::scalar::{self, Convert, UnaryOp};
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use crate::builtins::Call;
use crate::resolve::{Res, ResolvedFile};
use crate::sema::address::typed;
use crate::sema::control::Wish;
use crate::sema::ops;
use crate::sema::types::{Repr, Type, TypeId};
use crate::sema::value::{Data, Node, Pointer, PointerBase, Scalar, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind, StmtKind};

/// `@as(T, value)`.
pub(crate) fn as_(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let file = Rc::clone(&sema.frame().file);
    if is_type_name(sema, &file, call.args[1]) && !is_type_name(sema, &file, call.args[0]) {
        let [value, ty] = [0, 1].map(|at| sema.source_of(sema.expr_span(call.args[at])));
        let message = "`@as` takes the type first, then the value";
        return Err(sema.report(
            Diagnostic::new(codes::INVALID_ARGUMENT, message, call.span)
                .label("the other way round")
                .help(format!("write `@as({ty}, {value})`")),
        ));
    }
    let ty = sema.type_expr(call.args[0])?;
    let span = sema.expr_span(call.args[1]);
    let number = sema.types.is_int(ty) || sema.types.is_float(ty);
    // A number has a type of its own; what has none takes the one that is made.
    let wish = match number {
        true => Wish { hint: None, wanted: Some(ty) },
        false => Wish { hint: Some(ty), wanted: None },
    };
    let operand = sema.wished(call.args[1], wish)?;
    sema.convert(operand, ty, span)
}

/// Whether an expression is the name of a type that every file knows.
fn is_type_name(sema: &Sema<'_, '_>, file: &ResolvedFile, id: ExprId) -> bool {
    match file.res(id) {
        Res::Prelude(name) => {
            sema.cx.names.resolve(name).starts_with(|first: char| first.is_ascii_lowercase())
        }
        Res::None | Res::Local(_) | Res::Decl { .. } => false,
    }
}

/// `@bitcast(T, value)`: the same bits as another type of the same width.
pub(crate) fn bitcast(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let to = sema.type_expr(call.args[0])?;
    let span = sema.expr_span(call.args[1]);
    let operand = sema.expr(call.args[1], None)?;
    let dest = castable(sema, to, call.span)?;
    let operand = sized(sema, operand, dest, span)?;
    let from = sema.operand_type(&operand);
    let source = castable(sema, from, span)?;
    let (from_bits, to_bits) = (width(sema, from, source), width(sema, to, dest));
    if from_bits != to_bits {
        let (from, to) = (sema.type_name(from), sema.type_name(to));
        let message = format!(
            "`{from}` has {from_bits} bits and `{to}` has {to_bits}: `@bitcast` keeps the width"
        );
        return sema.fail(codes::INVALID_ARGUMENT, message, span, "of another width");
    }
    let packed = sema.packed_info(from).is_some() || sema.packed_info(to).is_some();
    match operand {
        Operand::Const(value) if packed => match sema.value_bits(&value) {
            Some(raw) => match sema.value_of_bits(raw, to) {
                Some(value) => Ok(Operand::Const(value)),
                None => sema.undefined(span),
            },
            None => sema.undefined(span),
        },
        Operand::Const(value) => bitcast_value(sema, &value, to, (source, dest), span),
        other => {
            sema.machine_ty(to, span)?;
            let expr = sema.scalar_of(other, span)?;
            let expr = reinterpret(sema, expr, to, source, dest, span);
            Ok(Operand::Scalar { ty: to, expr: sema.normal(expr, to, span) })
        }
    }
}

/// Bits that `@bitcast` keeps.
fn width(sema: &Sema<'_, '_>, ty: TypeId, machine: Ty) -> u32 {
    let exact = matches!(sema.types.get(ty), Type::Int { .. } | Type::Struct(_));
    let bits = sema.types.bits(ty, sema.profile()).filter(|_| exact);
    bits.unwrap_or(machine.bits())
}

/// The machine type of a type whose bits can be read as another's.
fn castable(sema: &mut Sema<'_, '_>, ty: TypeId, span: Span) -> R<Ty> {
    let plain = matches!(
        sema.types.get(ty),
        Type::Bool | Type::Int { .. } | Type::Float(_) | Type::Pointer { .. }
    ) || sema.packed_info(ty).is_some();
    match sema.types.repr(ty, sema.profile()) {
        Repr::Scalar(machine) if plain => Ok(machine),
        _ => {
            let name = sema.type_name(ty);
            let message =
                format!("`@bitcast` is between numbers, bools and pointers, this is `{name}`");
            sema.fail(codes::INVALID_ARGUMENT, message, span, "has no such bits")
        }
    }
}

/// An untyped number takes a type of the wanted width.
fn sized(sema: &mut Sema<'_, '_>, operand: Operand, dest: Ty, span: Span) -> R<Operand> {
    let common = sema.types.common;
    let from = sema.operand_type(&operand);
    let bits = dest.bits() as u16;
    if from == common.comptime_int {
        let negative =
            matches!(&operand, Operand::Const(Value { data: Data::Int(int), .. }) if *int < 0);
        let ty = sema.types.int(negative, bits);
        return sema.coerce(operand, ty, span);
    }
    if from == common.comptime_float {
        let ty = match bits {
            16 => sema.half(),
            32 => common.f32,
            _ => common.f64,
        };
        return sema.coerce(operand, ty, span);
    }
    Ok(operand)
}

fn bitcast_value(
    sema: &mut Sema<'_, '_>,
    value: &Value,
    to: TypeId,
    (source, dest): (Ty, Ty),
    span: Span,
) -> R<Operand> {
    let to_pointer = matches!(sema.types.get(to), Type::Pointer { .. });
    match value.data {
        Data::Pointer(_) if to_pointer => Ok(Operand::Const(Value { ty: to, ..value.clone() })),
        Data::Pointer(ref pointer) if pointer.base == PointerBase::Address => {
            Ok(Operand::Const(Value::int(to, ops::wrap(&sema.types, to, pointer.offset.into()))))
        }
        Data::Pointer(_) => {
            if !sema.is_runtime() {
                let message = "an address is known only at run time, and is needed at compile time";
                return sema.fail(codes::NOT_COMPTIME, message, span, "an address");
            }
            let expr = sema.const_expr(value, source, span)?;
            let expr = reinterpret(sema, expr, to, source, dest, span);
            Ok(Operand::Scalar { ty: to, expr })
        }
        Data::Int(_) if to_pointer => plain_address(sema, value, to, dest, span),
        Data::Int(_) | Data::Float(_) => bitcast_scalar(sema, value, to, (source, dest), span),
        _ => sema.undefined(span),
    }
}

/// A number as an address.
fn plain_address(
    sema: &mut Sema<'_, '_>,
    value: &Value,
    to: TypeId,
    dest: Ty,
    span: Span,
) -> R<Operand> {
    if value.prov != 0 && sema.is_runtime() {
        let expr = sema.const_expr(value, dest, span)?;
        return Ok(Operand::Scalar { ty: to, expr });
    }
    let offset = sema.fix_int(value).unwrap_or(0) as i64;
    let pointer = Pointer { base: PointerBase::Address, offset };
    Ok(Operand::Const(Value::new(to, Data::Pointer(Rc::new(pointer)))))
}

fn bitcast_scalar(
    sema: &mut Sema<'_, '_>,
    value: &Value,
    to: TypeId,
    (source, dest): (Ty, Ty),
    span: Span,
) -> R<Operand> {
    let from = value.ty;
    let to_bool = to == sema.types.common.bool;
    let scalar = match value.data {
        Data::Int(int) => Scalar::Int(int),
        Data::Float(float) => Scalar::Float(float),
        _ => return sema.undefined(span),
    };
    let result = ops::bitcast(&sema.types, to, source, dest, scalar);
    if to_bool {
        sema.fix(value);
        let truth = !matches!(result, Scalar::Int(0));
        return Ok(Operand::Const(sema.bool_value(truth)));
    }
    let prov = sema.derive(value, |arg| Node::Bitcast { from, to, arg });
    Ok(Operand::Const(Value { ty: to, data: result.data(), prov }))
}

/// A run-time scalar's bits as another machine type of the same width.
fn reinterpret(
    sema: &Sema<'_, '_>,
    expr: Expr,
    to: TypeId,
    source: Ty,
    dest: Ty,
    span: Span,
) -> Expr {
    if to == sema.types.common.bool {
        return typed(ExprKind::Convert(Convert::Bool, expr), Ty::I8, span);
    }
    if source == dest {
        return expr;
    }
    typed(ExprKind::Convert(Convert::Bitcast, expr), dest, span)
}

/// `@ptrcast(T, pointer)`: the same address as a pointer of another type.
pub(crate) fn ptrcast(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let to = sema.type_expr(call.args[0])?;
    let to_span = sema.expr_span(call.args[0]);
    let span = sema.expr_span(call.args[1]);
    let operand = sema.expr(call.args[1], None)?;
    let from = sema.operand_type(&operand);
    real_pointer(sema, to, to_span)?;
    real_pointer(sema, from, span)?;
    keeps_const(sema, from, to, span)?;
    match operand {
        Operand::Const(value) if matches!(value.data, Data::Pointer(_)) => {
            Ok(Operand::Const(Value { ty: to, ..value }))
        }
        Operand::Const(_) => sema.undefined(span),
        other => {
            let expr = sema.scalar_of(other, span)?;
            Ok(Operand::Scalar { ty: to, expr })
        }
    }
}

/// Fails if what may not be written could be by way of the new pointer.
fn keeps_const(sema: &mut Sema<'_, '_>, from: TypeId, to: TypeId, span: Span) -> R<()> {
    let (Type::Pointer { constant: true, .. }, &Type::Pointer { many, constant: false, pointee }) =
        (sema.types.get(from), sema.types.get(to))
    else {
        return Ok(());
    };
    let reader = sema.types.pointer(many, true, pointee);
    let (from, to, reader) = (sema.type_name(from), sema.type_name(to), sema.type_name(reader));
    let message = format!("`@ptrcast` does not take `const` away: `{to}` of a `{from}`");
    let source = sema.source_of(span);
    Err(sema.report(
        Diagnostic::new(codes::TYPE_MISMATCH, message, span)
            .label("what is behind it is not written")
            .help(format!("read it: `@ptrcast({reader}, {source})`; what is written is a `var`")),
    ))
}

/// Fails unless a type is a pointer to something that exists at run time.
fn real_pointer(sema: &mut Sema<'_, '_>, ty: TypeId, span: Span) -> R<()> {
    let name = sema.type_name(ty);
    let Type::Pointer { .. } = sema.types.get(ty) else {
        let message = format!("`@ptrcast` is between pointers, this is `{name}`");
        return sema.fail(codes::INVALID_ARGUMENT, message, span, "no pointer");
    };
    if sema.types.repr(ty, sema.profile()) == Repr::Comptime {
        let message = format!("what a `{name}` points to exists at compile time only");
        return sema.fail(codes::INVALID_ARGUMENT, message, span, "has no address");
    }
    Ok(())
}

/// `@sqrt(x)`: the IEEE square root.
pub(crate) fn sqrt(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let span = sema.expr_span(call.args[0]);
    let mut operand = sema.wished(call.args[0], Wish { hint: None, wanted: call.hint })?;
    let common = sema.types.common;
    if sema.operand_type(&operand) == common.comptime_int {
        operand = sema.convert(operand, common.comptime_float, span)?;
    }
    let ty = sema.operand_type(&operand);
    if !sema.types.is_float(ty) {
        let name = sema.type_name(ty);
        let message = format!("`@sqrt` takes a float, this is `{name}`");
        return sema.fail(codes::TYPE_MISMATCH, message, span, "of the wrong type");
    }
    match operand {
        Operand::Const(value) if value.prov == 0 || !sema.is_runtime() => {
            sqrt_value(sema, &value, span).map(Operand::Const)
        }
        other => {
            let machine = sema.machine_ty(ty, span)?;
            let expr = sema.scalar_of(other, span)?;
            let expr = typed(ExprKind::Unary(UnaryOp::Sqrt, expr), machine, call.span);
            Ok(Operand::Scalar { ty, expr })
        }
    }
}

fn sqrt_value(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<Value> {
    let Some(Scalar::Float(float)) = sema.fix(value) else { return sema.undefined(span) };
    let machine = ops::float_ty(&sema.types, value.ty);
    let raw = scalar::unary(UnaryOp::Sqrt, machine, ops::to_raw(machine, float));
    let result = ops::from_raw(machine, raw);
    if value.ty == sema.types.common.comptime_float && result.is_nan() {
        let message = format!("{float} has no square root");
        return sema.fail(codes::VALUE_OUT_OF_RANGE, message, span, "negative");
    }
    Ok(Value::new(value.ty, Data::Float(result)))
}

/// `@set_active_prng(id)`.
pub(crate) fn set_active_prng(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let ty = sema.types.common.u16;
    let (operand, span) = sema.arg_as(call.args[0], ty)?;
    let id = match operand {
        Operand::Const(value) => sema.const_expr(&value, Ty::I16, span)?,
        other => sema.scalar_of(other, span)?,
    };
    sema.emit(StmtKind::SetRandom(id), call.span);
    Ok(Operand::Void)
}

/// `@random16()`: taken where it stands.
pub(crate) fn random16(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let word = typed(ExprKind::Random, Ty::I16, call.span);
    let expr = sema.pin(word, call.span);
    Ok(Operand::Scalar { ty: sema.types.common.u16, expr })
}

/// `@pe_coord_x()`.
pub(crate) fn pe_coord_x(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    coordinates(sema, call).map(|(x, _)| Operand::Const(x))
}

/// `@pe_coord_y()`.
pub(crate) fn pe_coord_y(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    coordinates(sema, call).map(|(_, y)| Operand::Const(y))
}

fn coordinates(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<(Value, Value)> {
    if let Some(coords) = &sema.layout.pe_coords {
        return Ok(coords.clone());
    }
    let message =
        format!("`@{}` asks for the place of a PE, and this is no code of one", call.name);
    Err(sema.report(
        Diagnostic::new(codes::BUILTIN_CONTEXT, message, call.span)
            .label("used here")
            .help("a layout block gives coordinates as params"),
    ))
}
