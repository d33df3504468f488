//! FIFOs over global arrays.

use dflow_ir::dsd::{DsrFile, DsrRef};
use dflow_ir::program::{Fifo, FifoAction, GlobalId};
use dflow_syntax::{Diagnostic, Span, codes};

use super::fabric::MODES;
use super::{element_bytes, number, word};
use crate::builtins::Call;
use crate::builtins::args::{Options, wrong_type};
use crate::builtins::task::local_id_of;
use crate::builtins::vector::settings::{self as vector, choice};
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
    let settings = settings(sema, call)?;
    let global = sema.program_global(base, span)?;
    let buffer = GlobalId::from_u32(global.0);
    let program = sema.program_mut();
    let idx = program.typed.fifos.len() as u32;
    program.fifos.insert(base, idx);
    program.typed.fifos.push(Fifo { buffer, capacity, element, ..settings.fifo });
    if let Some(registers) = settings.registers {
        sema.program_mut().fifo_registers.extend(registers.map(|dsr| (dsr, idx)));
    }
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

/// What the settings say of a FIFO, but for its buffer.
struct Settings {
    fifo: Fifo,
    /// Registers that hold it: as destination and as source.
    registers: Option<[DsrRef; 2]>,
}

fn settings(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Settings> {
    let options = match call.args.get(1) {
        Some(&arg) => Options::read(sema, arg, FIELDS, "a FIFO")?,
        None => Options::none(call.span),
    };
    let mut task = |name| match options.value(sema, name)? {
        Some((value, span)) => local_id_of(sema, &value, span).map(Some),
        None => Ok(None),
    };
    let (activate_pop, activate_push) = (task("activate_pop")?, task("activate_push")?);
    let (empty, full) =
        (action(sema, &options, "empty_action")?, action(sema, &options, "full_action")?);
    if options.get("priority").is_some() && !sema.target.data_task_by_queue {
        wrong_target(sema, &options, "priority", "give it to the operation")?;
    }
    let single = match options.value(sema, "simd_mode")? {
        Some((value, span)) => choice(sema, &value, span, MODES, "`.simd_mode`")? == "simd_off",
        None => false,
    };
    let fifo = Fifo {
        buffer: GlobalId::from_u32(0),
        capacity: 1,
        element: 2,
        activate_pop,
        activate_push,
        empty,
        full,
        priority: vector::priority(sema, &options)?,
        single,
    };
    Ok(Settings { fifo, registers: registers(sema, &options)? })
}

/// What happens at an empty or full FIFO; wse2 knows less of it.
fn action(sema: &mut Sema<'_, '_>, options: &Options, name: &str) -> R<FifoAction> {
    let Some((value, span)) = options.value(sema, name)? else {
        return Ok(FifoAction::default());
    };
    let action = match choice(sema, &value, span, ACTIONS, &format!("`.{name}`"))? {
        "terminate" => FifoAction::Terminate,
        "suspend" => FifoAction::Suspend,
        "fault" => FifoAction::Fault,
        _ => FifoAction::TestOrSuspend,
    };
    let only_there =
        name == "full_action" || matches!(action, FifoAction::Suspend | FifoAction::Fault);
    if only_there && !sema.target.data_task_by_queue {
        let can = "`.empty_action` can be `.test_or_suspend` or `.terminate` here";
        wrong_target(sema, options, name, can)?;
    }
    Ok(action)
}

/// A setting that the target does not have.
fn wrong_target(sema: &mut Sema<'_, '_>, options: &Options, name: &str, instead: &str) -> R<()> {
    let Some((_, span)) = options.get(name) else { return Ok(()) };
    let target = sema.target.id.name();
    Err(sema.report(
        Diagnostic::new(
            codes::WRONG_TARGET,
            format!("{target} has no such `.{name}` of a FIFO"),
            span,
        )
        .label("given here")
        .help(instead.to_owned()),
    ))
}

/// The registers that a program chose for a FIFO: all three of them, with one number for both
/// sides.
fn registers(sema: &mut Sema<'_, '_>, options: &Options) -> R<Option<[DsrRef; 2]>> {
    let (dest, src, xdsr) =
        (options.value(sema, "dest")?, options.value(sema, "src")?, options.value(sema, "xdsr")?);
    let (Some((dest, _)), Some((src, _)), Some((xdsr, _))) = (&dest, &src, &xdsr) else {
        if dest.is_none() && src.is_none() && xdsr.is_none() {
            return Ok(None);
        }
        let message = "registers of a FIFO are chosen together: `.dest`, `.src` and `.xdsr`";
        return sema.fail(codes::INVALID_ARGUMENT, message, options.span, "not all are given");
    };
    let ok = xdsr.ty == sema.types.common.xdsr;
    match (&dest.data, &src.data) {
        (Data::Dsr(dest), Data::Dsr(src))
            if ok
                && dest.file == DsrFile::Dest
                && src.file == DsrFile::Src1
                && dest.index == src.index =>
        {
            Ok(Some([*dest, *src]))
        }
        _ => {
            let message = "a FIFO lies in a `dsr_dest` and the `dsr_src1` of the same number, \
                           and an `xdsr`";
            sema.fail(codes::INVALID_ARGUMENT, message, options.span, "other registers")
        }
    }
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
