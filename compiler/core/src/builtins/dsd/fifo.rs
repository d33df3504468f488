//! FIFOs over global arrays.

use dflow_ir::program::{Fifo, GlobalId};
use dflow_syntax::{Diagnostic, Span, codes};

use super::{element_bytes, number, word};
use crate::builtins::Call;
use crate::builtins::args::{Options, wrong_type};
use crate::builtins::task::local_id_of;
use crate::builtins::vector::settings::choice;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, PointerBase, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::StmtKind;

const FIELDS: &[&str] = &[
    "activate_pop",
    "activate_push",
    "empty_action",
    "full_action",
    "priority",
    "simd_mode",
    "dest",
    "src",
    "xdsr",
];
const ACTIONS: &[&str] = &["test_or_suspend", "terminate", "suspend", "fault"];

/// `@allocate_fifo(buffer, settings)`: the value is the FIFO's number in the program.
pub(in crate::builtins) fn allocate_fifo(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    if sema.program.is_none() || sema.is_host() {
        let message = "a FIFO belongs to the program of a PE";
        return sema.fail(codes::BUILTIN_CONTEXT, message, call.span, "made here");
    }
    let span = sema.expr_span(call.args[0]);
    let (base, array) = buffer(sema, call, span)?;
    let Type::Array { dims, elem } = sema.types.shared(array).as_ref().clone() else {
        let message = format!("a FIFO lies in an array, this is `{}`", sema.type_name(array));
        return sema.fail(codes::INVALID_ARGUMENT, message, span, "no array");
    };
    let element = element_bytes(sema, elem, span)? as u8;
    let count: u64 = dims.iter().product();
    let Some(capacity) = u16::try_from(count).ok().filter(|&capacity| capacity > 0) else {
        let message = format!("a FIFO holds 1 to 65535 elements, this array has {count}");
        return sema.fail(codes::INVALID_ARGUMENT, message, span, "this buffer");
    };
    sema.need_program(call.span)?;
    if sema.program_mut().fifos.contains_key(&base) {
        let message = "this array is the buffer of another FIFO";
        return sema.fail(codes::INVALID_ARGUMENT, message, span, "used twice");
    }
    let (activate_pop, activate_push) = actions(sema, call)?;
    let global = sema.program_global(base, span)?;
    let buffer = GlobalId::from_u32(global.0);
    let program = sema.program_mut();
    let idx = program.typed.fifos.len() as u32;
    program.fifos.insert(base, idx);
    program.typed.fifos.push(Fifo { buffer, capacity, element, activate_pop, activate_push });
    Ok(Operand::Const(Value::new(sema.types.common.fifo, Data::Fifo(idx))))
}

/// The global array (or a pointer to it) in the first argument, and its type.
fn buffer(sema: &mut Sema<'_, '_>, call: Call<'_>, span: Span) -> R<(PointerBase, TypeId)> {
    let place = sema.place(call.args[0])?;
    let ty = sema.place_type(&place);
    let (address, mutable, array) = match *sema.types.get(ty) {
        Type::Pointer { constant, pointee, .. } => {
            let pointer = sema.load(place, span)?;
            (sema.pointer_address(pointer, span)?, !constant, pointee)
        }
        _ => {
            let (address, mutable) = sema.memory_of(place, span)?;
            (address, mutable, ty)
        }
    };
    match address.known() {
        Some(pointer) if mutable && pointer.offset == 0 => match pointer.base {
            base @ PointerBase::Global { .. } => return Ok((base, array)),
            PointerBase::Constant(_) | PointerBase::Func(_) | PointerBase::Address => {}
        },
        _ => {}
    }
    Err(sema.report(
        Diagnostic::new(codes::INVALID_ARGUMENT, "the buffer of a FIFO is a global `var`", span)
            .label("something else")
            .help("write `var buffer = @zeros([16]u32);` at the top level"),
    ))
}

/// Tasks activated by pops and pushes. What happens at an empty or full FIFO is always the
/// default: asynchronous operations wait, others end.
fn actions(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<(Option<u8>, Option<u8>)> {
    let options = match call.args.get(1) {
        Some(&arg) => Options::read(sema, arg, FIELDS, "a FIFO")?,
        None => return Ok((None, None)),
    };
    for name in ["empty_action", "full_action"] {
        if let Some((value, span)) = options.value(sema, name)?
            && choice(sema, &value, span, ACTIONS, &format!("`.{name}`"))? != "test_or_suspend"
        {
            let message = format!("`.{name}` is not supported yet but for `.test_or_suspend`");
            return sema.fail(codes::NOT_SUPPORTED, message, span, "this action");
        }
    }
    for name in ["priority", "simd_mode", "dest", "src", "xdsr"] {
        if let Some((_, span)) = options.get(name) {
            let message = format!("`.{name}` of a FIFO is not supported yet");
            return sema.fail(codes::NOT_SUPPORTED, message, span, "given here");
        }
    }
    let mut task = |name| match options.value(sema, name)? {
        Some((value, span)) => local_id_of(sema, &value, span).map(Some),
        None => Ok(None),
    };
    Ok((task("activate_pop")?, task("activate_push")?))
}

/// `@set_fifo_read_length(fifo, elements)`.
pub(in crate::builtins) fn set_fifo_read_length(
    sema: &mut Sema<'_, '_>,
    call: Call<'_>,
) -> R<Operand> {
    set_length(sema, call, false)
}

/// `@set_fifo_write_length(fifo, elements)`.
pub(in crate::builtins) fn set_fifo_write_length(
    sema: &mut Sema<'_, '_>,
    call: Call<'_>,
) -> R<Operand> {
    set_length(sema, call, true)
}

fn set_length(sema: &mut Sema<'_, '_>, call: Call<'_>, write_side: bool) -> R<Operand> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let Data::Fifo(fifo) = value.data else {
        return wrong_type(sema, &value, "a FIFO", span);
    };
    let ty = sema.types.common.u16;
    let (length, length_span) = number(sema, call.args[1], ty)?;
    let length = word(sema, length, length_span)?;
    sema.emit(StmtKind::SetFifoLength { fifo, write_side, length }, call.span);
    Ok(Operand::Void)
}
