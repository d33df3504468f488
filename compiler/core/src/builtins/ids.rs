//! Colors, task ids, queues, registers by number.

use dflow_ir::dsd::{DsrFile, DsrRef};
use dflow_ir::target::CONTROL_TASKS;
use dflow_syntax::{Code, Diagnostic, codes};

use super::allocate::{self, Resource};
use super::args::{in_range, wrong_type};
use super::{Call, old};
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema};

/// An id from its number: known ones are checked, run-time ones only renamed.
fn id(
    sema: &mut Sema<'_, '_>,
    call: Call<'_>,
    ty: TypeId,
    last: i128,
    code: Code,
    what: &str,
) -> R<Operand> {
    let span = sema.expr_span(call.args[0]);
    let operand = sema.expr(call.args[0], None)?;
    let Operand::Const(value) = operand else {
        let from = sema.operand_type(&operand);
        if from != sema.types.common.u16 {
            let name = sema.type_name(from);
            let message = format!("a run-time number of {what} is `u16`, this is `{name}`");
            return sema.fail(codes::TYPE_MISMATCH, message, span, "of the wrong type");
        }
        let expr = sema.scalar_of(operand, span)?;
        return Ok(Operand::Scalar { ty, expr });
    };
    if !sema.types.is_int(value.ty) {
        return wrong_type(sema, &value, "an integer", span);
    }
    let number = sema.fix_int(&value).unwrap_or(-1);
    if number < 0 || number > last {
        let target = sema.target.id.name();
        let last = if ty == sema.types.common.color { 23 } else { last };
        let message = format!("{what} {number} does not exist: {target} has 0 to {last}");
        return sema.fail(code, message, span, "out of range");
    }
    Ok(Operand::Const(Value::int(ty, number)))
}

/// An id whose number is not to be given to somebody else.
fn noted(
    sema: &mut Sema<'_, '_>,
    operand: Operand,
    resource: Resource,
    call: Call<'_>,
) -> R<Operand> {
    if let Operand::Const(Value { data: Data::Int(number), .. }) = operand {
        allocate::named(sema, resource, number, call.span)?;
    }
    Ok(operand)
}

pub(super) fn get_color(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let ty = sema.types.common.color;
    let operand = id(sema, call, ty, 63, codes::COLOR_OUT_OF_RANGE, "color")?;
    if let Operand::Const(Value { data: Data::Int(number @ 24..), .. }) = operand {
        old::task_color(sema, number, call.span);
        return Ok(operand);
    }
    noted(sema, operand, Resource::Color, call)
}

pub(super) fn get_control_task_id(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let ty = sema.types.common.control_task_id;
    let last = i128::from(CONTROL_TASKS) - 1;
    id(sema, call, ty, last, codes::TASK_ID_OUT_OF_RANGE, "control task id")
}

pub(super) fn get_local_task_id(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (first, last) = (sema.target.local_task_first, sema.target.local_task_last);
    let ty = sema.types.common.local_task_id;
    let operand =
        id(sema, call, ty, i128::from(last), codes::TASK_ID_OUT_OF_RANGE, "local task id")?;
    if let Operand::Const(Value { data: Data::Int(number), .. }) = operand
        && number < i128::from(first)
    {
        let target = sema.target.id.name();
        let message = format!("local task id {number} is too low: {target} has {first} to {last}");
        return sema.fail(codes::TASK_ID_OUT_OF_RANGE, message, call.span, "out of range");
    }
    noted(sema, operand, Resource::LocalTask, call)
}

pub(super) fn get_data_task_id(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let common = sema.types.common;
    let (want, what) = if sema.target.data_task_by_queue {
        (common.input_queue, "an input queue")
    } else {
        (common.color, "a color")
    };
    let span = sema.expr_span(call.args[0]);
    let operand = sema.expr(call.args[0], None)?;
    let ty = sema.operand_type(&operand);
    if ty != want {
        let (name, target) = (sema.type_name(ty), sema.target.id.name());
        let message = format!("a data task id of {target} is made from {what}, this is `{name}`");
        let help = match sema.target.data_task_by_queue {
            true => {
                "bind an input queue to the color with `@initialize_queue`, and write `@get_data_task_id(queue)`"
            }
            false => "write `@get_data_task_id(color)`, with the color that the words have",
        };
        return Err(sema.report(
            Diagnostic::new(codes::WRONG_TARGET, message, span)
                .label("of the wrong type")
                .help(help),
        ));
    }
    Ok(match operand {
        Operand::Const(value) => {
            let number = sema.fix_int(&value).unwrap_or(0);
            if value.ty == common.color {
                super::color_value(sema, &value, span)?;
            }
            Operand::Const(Value::int(common.data_task_id, number))
        }
        other => {
            let expr = sema.scalar_of(other, span)?;
            Operand::Scalar { ty: common.data_task_id, expr }
        }
    })
}

pub(super) fn get_input_queue(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (ty, last) = (sema.types.common.input_queue, sema.target.input_queues.len() as i128 - 1);
    let operand = id(sema, call, ty, last, codes::QUEUE_OUT_OF_RANGE, "input queue")?;
    noted(sema, operand, Resource::InputQueue, call)
}

pub(super) fn get_output_queue(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (ty, last) = (sema.types.common.output_queue, sema.target.output_queues.len() as i128 - 1);
    let operand = id(sema, call, ty, last, codes::QUEUE_OUT_OF_RANGE, "output queue")?;
    noted(sema, operand, Resource::OutputQueue, call)
}

pub(super) fn get_ut_id(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (ty, last) = (sema.types.common.ut_id, i128::from(sema.target.microthreads) - 1);
    id(sema, call, ty, last, codes::QUEUE_OUT_OF_RANGE, "microthread")
}

pub(super) fn get_xdsr(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (ty, last) = (sema.types.common.xdsr, i128::from(sema.target.xdsrs) - 1);
    let index = sema.arg_int(call.args[0], 0, last, "an extended register's number")?;
    Ok(Operand::Const(Value::int(ty, index)))
}

pub(super) fn get_sr(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (ty, last) = (sema.types.common.sr, i128::from(sema.target.srs) - 1);
    let index = sema.arg_int(call.args[0], 0, last, "a stride register's number")?;
    Ok(Operand::Const(Value::int(ty, index)))
}

/// The register in an argument that turns it into one that holds a FIFO.
fn fifo_register(sema: &mut Sema<'_, '_>, call: Call<'_>, file: DsrFile) -> R<Option<DsrRef>> {
    let (value, span) = sema.arg_value(call.args[1], None)?;
    match value.data {
        Data::Dsr(dsr) if dsr.file == file => Ok(Some(dsr)),
        Data::Dsr(_) => wrong_type(sema, &value, "a register of the same file", span),
        _ => Ok(None),
    }
}

pub(super) fn get_dsr(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let ty = sema.type_expr(call.args[0])?;
    let file = match sema.types.get(ty) {
        Type::DsrDest => DsrFile::Dest,
        Type::DsrSrc0 => DsrFile::Src0,
        Type::DsrSrc1 => DsrFile::Src1,
        Type::DsrFifoDest | Type::DsrFifoSrc1 => {
            let is_dest = matches!(sema.types.get(ty), Type::DsrFifoDest);
            let file = if is_dest { DsrFile::Dest } else { DsrFile::Src1 };
            if let Some(dsr) = fifo_register(sema, call, file)? {
                return Ok(Operand::Const(Value::new(ty, Data::Dsr(dsr))));
            }
            file
        }
        _ => {
            let (name, span) = (sema.type_name(ty), sema.expr_span(call.args[0]));
            let message = format!("`{name}` is no register type");
            return sema.fail(codes::INVALID_ARGUMENT, message, span, "this type");
        }
    };
    let (value, span) = sema.arg_value(call.args[1], None)?;
    let last = i128::from(sema.target.dsrs) - 1;
    let index = in_range(sema, &value, 0, last, "a register's number", span)? as u8;
    Ok(Operand::Const(Value::new(ty, Data::Dsr(DsrRef { file, index }))))
}

pub(super) fn get_int(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let span = sema.expr_span(call.args[0]);
    let operand = sema.expr(call.args[0], None)?;
    let from = sema.operand_type(&operand);
    if let Operand::Const(Value { data: Data::Dsr(dsr), .. }) = &operand {
        let number = i128::from(dsr.index);
        return Ok(Operand::Const(Value::int(sema.types.common.u16, number)));
    }
    let to = match sema.types.get(from) {
        Type::Int { .. } | Type::ComptimeInt => return Ok(operand),
        Type::Enum(info) => info.backing,
        _ if sema.types.is_id(from) => sema.types.common.u16,
        _ => {
            let name = sema.type_name(from);
            let message = format!("a value of type `{name}` has no number");
            return sema.fail(codes::INVALID_ARGUMENT, message, span, "this value");
        }
    };
    match operand {
        Operand::Const(value) => Ok(Operand::Const(Value { ty: to, ..value })),
        other => {
            let expr = sema.scalar_of(other, span)?;
            Ok(Operand::Scalar { ty: to, expr })
        }
    }
}
