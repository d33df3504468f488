//! Configuration registers by word address (spec/registers.md).

use dflow_ir::registers;
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::Call;
use super::args::wrong_type;
use crate::sema::address::typed;
use crate::sema::types::{Repr, Type, TypeId};
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind, StmtKind};

pub(super) fn get(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    read(sema, call, true)
}

pub(super) fn get_unchecked(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    read(sema, call, false)
}

pub(super) fn set(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    write(sema, call, true)
}

pub(super) fn set_unchecked(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    write(sema, call, false)
}

/// A register's address: known, or as code.
enum Address {
    Known(u16),
    Code(Expr),
}

fn read(sema: &mut Sema<'_, '_>, call: Call<'_>, checked: bool) -> R<Operand> {
    let address = address(sema, call, checked, false)?;
    ranges(sema, &address, call.args.get(1))?;
    if sema.is_runtime() {
        let address = code_address(address, call.span);
        let read = typed(ExprKind::GetConfig(address), Ty::I16, call.span);
        let expr = sema.pin(read, call.span);
        return Ok(Operand::Scalar { ty: sema.types.common.u16, expr });
    }
    let address = known(sema, address, call.span)?;
    let set = sema.program_mut().typed.initial_config.iter();
    let value = set.rev().find(|&&(at, _, _)| at == address).map(|&(_, value, _)| value);
    match value {
        Some(value) => Ok(Operand::Const(Value::int(sema.types.common.u16, value.into()))),
        None => Err(sema.report(
            Diagnostic::new(
                codes::INVALID_ARGUMENT,
                format!("nothing has been written to register {address:#06x} before the start"),
                call.span,
            )
            .label("read here")
            .help("read it at run time, in a function or task"),
        )),
    }
}

fn write(sema: &mut Sema<'_, '_>, call: Call<'_>, checked: bool) -> R<Operand> {
    let address = address(sema, call, checked, true)?;
    let span = sema.expr_span(call.args[1]);
    let value = word(sema, call.args[1], "a register's value")?;
    ranges(sema, &address, call.args.get(2))?;
    if sema.is_runtime() {
        let addr = code_address(address, call.span);
        let value = sema.scalar_of(value, span)?;
        sema.emit(StmtKind::SetConfig { addr, value }, call.span);
        return Ok(Operand::Void);
    }
    let address = known(sema, address, call.span)?;
    let value = sema.need_const(value, span)?;
    let value = sema.fix_int(&value).unwrap_or(0) as u16;
    sema.program_mut().typed.initial_config.push((address, value, call.span));
    Ok(sema.void_operand())
}

/// The address; a known one must name a register, before the start none that the compiler sets
/// up itself, unless the program insists.
fn address(sema: &mut Sema<'_, '_>, call: Call<'_>, checked: bool, writes: bool) -> R<Address> {
    let span = sema.expr_span(call.args[0]);
    let operand = word(sema, call.args[0], "a register's address")?;
    let value = match operand {
        // What differs between PEs is looked at when it is used.
        Operand::Const(value) if value.prov == 0 || !sema.is_runtime() => value,
        operand => return Ok(Address::Code(sema.scalar_of(operand, span)?)),
    };
    let address = sema.fix_int(&value).unwrap_or(0) as u16;
    let target = sema.target.id;
    let Some((bank, _)) = registers::find(target, address) else {
        let name = target.name();
        let message =
            format!("{name} has no configuration register at word address {address:#06x}");
        return Err(sema.report(
            Diagnostic::new(codes::INVALID_ARGUMENT, message, span)
                .label("this address")
                .help("`<tile_config>` gives the addresses of all registers"),
        ));
    };
    let refused = if writes && !bank.writable {
        Some("can only be read")
    } else if checked && bank.reserved && !sema.is_runtime() {
        Some("is set up by the compiler before the start")
    } else {
        None
    };
    let Some(why) = refused else { return Ok(Address::Known(address)) };
    let message = format!("register {address:#06x} ({}) {why}", bank.name);
    let diagnostic = Diagnostic::new(codes::INVALID_ARGUMENT, message, span).label("this address");
    Err(sema.report(match (writes, bank.writable) {
        (true, true) => diagnostic
            .help("use it at run time, or `@set_config_unchecked` if you know what you overwrite"),
        (false, _) => diagnostic.help("use it at run time"),
        (true, false) => diagnostic,
    }))
}

/// An argument of 16 bits: an integer, an enum, a pointer.
fn word(sema: &mut Sema<'_, '_>, arg: ExprId, what: &str) -> R<Operand> {
    let span = sema.expr_span(arg);
    let operand = sema.expr(arg, None)?;
    let ty = sema.operand_type(&operand);
    if is_word(sema, ty) {
        return Ok(operand);
    }
    if let Operand::Const(Value { data: Data::Int(number), .. }) = operand
        && sema.types.is_int(ty)
    {
        let common = sema.types.common;
        return sema.coerce(operand, if number < 0 { common.i16 } else { common.u16 }, span);
    }
    let name = sema.type_name(ty);
    let message = format!("{what} has 16 bits, this is `{name}`");
    sema.fail(codes::TYPE_MISMATCH, message, span, "of the wrong type")
}

fn is_word(sema: &Sema<'_, '_>, ty: TypeId) -> bool {
    matches!(sema.types.repr(ty, sema.profile()), Repr::Scalar(Ty::I16))
}

/// The ranges that an address is promised to lie in, as one pair or a tuple of pairs: an address that
/// is known must; others are looked at when they are used.
fn ranges(sema: &mut Sema<'_, '_>, address: &Address, arg: Option<&ExprId>) -> R<()> {
    let Some(&arg) = arg else { return Ok(()) };
    let (value, span) = sema.arg_value(arg, None)?;
    let pairs = match value.element(0) {
        Some(first) if first.element(0).is_some() => elements(&value),
        Some(_) => vec![value],
        None if matches!(sema.types.get(value.ty), Type::Struct(_)) => Vec::new(),
        None => return wrong_type(sema, &value, "a range of registers", span),
    };
    let mut within = pairs.is_empty();
    for pair in &pairs {
        let [first, last] = &elements(pair)[..] else {
            let message = "a range of registers is a first and a last address";
            return sema.fail(codes::INVALID_ARGUMENT, message, span, "given here");
        };
        let (Some(first), Some(last)) = (sema.fix_int(first), sema.fix_int(last)) else {
            let message = "a range of registers is two integers";
            return sema.fail(codes::INVALID_ARGUMENT, message, span, "given here");
        };
        if first > last {
            let message = format!("a range from {first:#06x} to {last:#06x} is empty");
            return sema.fail(codes::INVALID_ARGUMENT, message, span, "given here");
        }
        within |= matches!(address, Address::Known(at) if (first..=last).contains(&(*at).into()));
    }
    if let Address::Known(at) = address
        && !within
    {
        let message = format!("register {at:#06x} lies outside of the given ranges");
        return sema.fail(codes::INVALID_ARGUMENT, message, span, "promised here");
    }
    Ok(())
}

/// The parts of a tuple; nobody writes more than a few.
fn elements(tuple: &Value) -> Vec<Value> {
    (0..64).map_while(|index| tuple.element(index)).collect()
}

fn code_address(address: Address, span: Span) -> Expr {
    match address {
        Address::Known(address) => typed(ExprKind::Const(address.into()), Ty::I16, span),
        Address::Code(expr) => expr,
    }
}

fn known(sema: &mut Sema<'_, '_>, address: Address, span: Span) -> R<u16> {
    match address {
        Address::Known(address) => Ok(address),
        Address::Code(_) => sema.fail(
            codes::NOT_COMPTIME,
            "before the start the address of a register must be known",
            span,
            "a run-time value",
        ),
    }
}
