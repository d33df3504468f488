//! What queues and control tasks of wse3 can do beyond those of wse2.

use dflow_ir::inst::{FlagOp, QueueState};
use dflow_ir::mesh::Color;
use dflow_ir::program::{ControlTable, Rotation, TaskKind};
use dflow_ir::scalar::BinaryOp;
use dflow_ir::target::TEARDOWN_TASK;
use dflow_ir::ty::Ty;
use dflow_syntax::{Diagnostic, Span, codes};

use super::Call;
use super::args::{Options, handler, in_range};
use super::task;
use crate::sema::address::typed;
use crate::sema::program::Turn;
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind, Func, FuncIdx, Passing, Stmt, StmtKind, TaskBinding};

/// These builtins are for targets whose data tasks belong to queues.
fn only_there(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<()> {
    if sema.target.data_task_by_queue {
        return Ok(());
    }
    let (name, target) = (call.name, sema.target.id.name());
    Err(sema.report(
        Diagnostic::new(codes::WRONG_TARGET, format!("{target} has no `@{name}`"), call.span)
            .label("used here")
            .help("put it behind `if (@is_arch(\"wse3\"))`"),
    ))
}

/// `@queue_flush(queue)`: the teardown task is activated when the queue is empty.
pub(super) fn queue_flush(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    only_there(sema, call)?;
    let span = sema.expr_span(call.args[0]);
    let operand = sema.expr(call.args[0], None)?;
    let (ty, common) = (sema.operand_type(&operand), sema.types.common);
    let op = if ty == common.input_queue {
        FlagOp::FlushInput
    } else if ty == common.output_queue {
        FlagOp::FlushOutput
    } else {
        let name = sema.type_name(ty);
        let message = format!("`@queue_flush` takes a queue, this is `{name}`");
        return sema.fail(codes::TYPE_MISMATCH, message, span, "of the wrong type");
    };
    let id = number(sema, operand, span)?;
    sema.emit(StmtKind::Flag { op, id }, call.span);
    Ok(Operand::Void)
}

/// A 16-bit number, known or not.
fn number(sema: &mut Sema<'_, '_>, operand: Operand, span: Span) -> R<Expr> {
    match operand {
        Operand::Const(value) => sema.const_expr(&value, Ty::I16, span),
        other => sema.scalar_of(other, span),
    }
}

/// `@set_empty_queue_handler(function, queue)`.
pub(super) fn set_empty_queue_handler(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    only_there(sema, call)?;
    let func = handler(sema, call)?;
    let common = sema.types.common;
    let queues = [common.input_queue, common.output_queue];
    let (queue, ty, span) = sema.arg_id(call.args[1], &queues, "a queue")?;
    let input = ty == common.input_queue;
    let handlers = &sema.program_mut().queue_handlers;
    let known = handlers.iter().find(|known| (known.0, known.1) == (input, queue)).copied();
    if let Some((.., first)) = known {
        return Err(sema.report(
            Diagnostic::new(codes::QUEUE_CLASH, "this queue has a handler already", span)
                .label("second handler")
                .secondary(first, "first handler"),
        ));
    }
    sema.program_mut().queue_handlers.push((input, queue, func, call.span));
    Ok(sema.void_operand())
}

/// `@set_control_task_table(settings)`.
pub(super) fn set_control_task_table(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    only_there(sema, call)?;
    let options = match call.args.first() {
        Some(&arg) => Options::read(sema, arg, &["instructions", "stride"], "a table of tasks")?,
        None => Options::none(call.span),
    };
    let instructions = options.int(sema, "instructions", 2, 8)?.unwrap_or(4) as u8;
    if !matches!(instructions, 2 | 4 | 8) {
        let message = format!("an entry has 2, 4 or 8 instructions, not {instructions}");
        return sema.fail(codes::VALUE_OUT_OF_RANGE, message, options.span, "given here");
    }
    let stride = options.int(sema, "stride", 1, 7)?.unwrap_or(1) as u8;
    let table = &mut sema.program_mut().typed.control_table;
    if table.replace(ControlTable { instructions, stride }).is_some() {
        let message = "the table of control tasks is made once";
        return sema.fail(codes::INVALID_ARGUMENT, message, call.span, "made again here");
    }
    Ok(sema.void_operand())
}

/// `@bind_rotating_tasks(main, other, id, settings)`.
pub(super) fn bind_rotating_tasks(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    only_there(sema, call)?;
    let options = Options::read(sema, call.args[3], &["limit", "init"], "a rotation")?;
    let limit = options.int(sema, "limit", 0, 0xffff)?;
    let Some(limit) = limit else {
        let message = "a rotation needs `.limit`: the starts before the other task runs";
        return sema.fail(codes::MISSING_FIELD, message, options.span, "it is not given here");
    };
    let initial = options.int(sema, "init", 0, limit)?.unwrap_or(0);
    let other = task::payload_task(sema, call.args[1], 16)?;
    task::bind_data(sema, Call { args: &[call.args[0], call.args[2]], ..call })?;
    let ty = sema.types.common.data_task_id;
    let (id, _, _) = sema.arg_id(call.args[2], &[ty], "a data task id")?;
    let turns = &mut sema.program_mut().turns;
    turns.push(Turn { id, other, limit: limit as u16, initial: initial as u16, span: call.span });
    if turns.len() > 2 {
        let message = "a program has at most two pairs of rotating tasks";
        return sema.fail(codes::RESOURCE_EXHAUSTED, message, call.span, "the third pair");
    }
    Ok(sema.void_operand())
}

/// `@machine_flag(name, number)`, for libraries: a change of the core's state that has no builtin
/// of its own.
pub(super) fn machine_flag(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (name, span) = sema.arg_string(call.args[0], "the name of a flag")?;
    let op = match name.as_str() {
        "raise_task" => FlagOp::RaiseTask,
        "lower_task" => FlagOp::LowerTask,
        "raise_channel" => FlagOp::RaiseChannel,
        "lower_channel" => FlagOp::LowerChannel,
        "main_priority" => FlagOp::MainPriority,
        "end_flush_input" => FlagOp::EndFlushInput,
        "end_flush_output" => FlagOp::EndFlushOutput,
        "transform_mask" => FlagOp::TransformMask,
        "exceptions" => FlagOp::Exceptions,
        "bind_input" => FlagOp::BindInput,
        "bind_output" => FlagOp::BindOutput,
        "answer_ahead" => FlagOp::AnswerAhead,
        _ => {
            let message = format!("there is no flag \"{name}\"");
            return sema.fail(codes::INVALID_ARGUMENT, message, span, "named here");
        }
    };
    if matches!(op, FlagOp::BindInput | FlagOp::BindOutput)
        && let Some(program) = &mut sema.program
    {
        program.rebinds = true;
    }
    let ty = sema.types.common.u16;
    let (operand, span) = sema.arg_as(call.args[1], ty)?;
    if !sema.is_runtime() {
        return before_start(sema, op, operand, call.span);
    }
    let id = number(sema, operand, span)?;
    sema.emit(StmtKind::Flag { op, id }, call.span);
    Ok(Operand::Void)
}

/// A flag that is in force when the program starts.
fn before_start(sema: &mut Sema<'_, '_>, op: FlagOp, operand: Operand, span: Span) -> R<Operand> {
    let value = sema.need_const(operand, span)?;
    let most = match op {
        FlagOp::BindInput | FlagOp::BindOutput | FlagOp::EndFlushInput | FlagOp::EndFlushOutput => {
            let message = "queues are bound by `@initialize_queue` before the start, and empty";
            return sema.fail(codes::BUILTIN_CONTEXT, message, span, "asked for at comptime");
        }
        FlagOp::AnswerAhead => {
            let message = "nothing is answered before the start";
            return sema.fail(codes::BUILTIN_CONTEXT, message, span, "asked for at comptime");
        }
        FlagOp::RaiseChannel | FlagOp::LowerChannel if sema.target.data_task_by_queue => {
            sema.target.input_queues.len() as u8 - 1
        }
        FlagOp::RaiseChannel | FlagOp::LowerChannel => Color::COUNT as u8 - 1,
        FlagOp::MainPriority => 3,
        FlagOp::Activate
        | FlagOp::BlockTask
        | FlagOp::UnblockTask
        | FlagOp::BlockChannel
        | FlagOp::UnblockChannel
        | FlagOp::BlockMicrothread
        | FlagOp::UnblockMicrothread
        | FlagOp::RaiseTask
        | FlagOp::LowerTask
        | FlagOp::FlushInput
        | FlagOp::FlushOutput
        | FlagOp::TransformMask => 63,
        FlagOp::Exceptions => u8::MAX,
    };
    let id = in_range(sema, &value, 0, most.into(), "the number of a flag", span)?;
    sema.program_mut().typed.initial_flags.push((op, id as u8, span));
    Ok(sema.void_operand())
}

/// `@machine_queues(state)`, for libraries: a bit set of queues.
pub(super) fn machine_queues(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (name, span) = sema.arg_string(call.args[0], "a state of queues")?;
    let state = match name.as_str() {
        "input_empty" => QueueState::InputEmpty,
        "input_full" => QueueState::InputFull,
        "output_empty" => QueueState::OutputEmpty,
        "output_full" => QueueState::OutputFull,
        "input_flushed" => QueueState::InputFlushed,
        "output_flushed" => QueueState::OutputFlushed,
        _ => {
            let message = format!("there is no state of queues \"{name}\"");
            return sema.fail(codes::INVALID_ARGUMENT, message, span, "named here");
        }
    };
    let expr = typed(ExprKind::Queues(state), Ty::I16, call.span);
    let expr = sema.pin(expr, call.span);
    Ok(Operand::Scalar { ty: sema.types.common.u16, expr })
}

impl Sema<'_, '_> {
    /// What a program's comptime blocks asked for together, once all of them have run: the task
    /// that calls handlers of empty queues, and rotations with the ids of their other tasks.
    pub(crate) fn finish_queues(&mut self) {
        let Some(program) = &mut self.program else { return };
        let table = program.typed.control_table;
        for turn in std::mem::take(&mut program.turns) {
            let of_queue = program.typed.queues.iter().find(|it| it.input && it.queue == turn.id);
            let part = of_queue.map_or(0, |binding| binding.control_table);
            let other = part * table.map_or(0, |table| table.stride);
            let Turn { id, other: func, limit, initial, span } = turn;
            let kind = TaskKind::Control;
            program.typed.tasks.push(TaskBinding { kind, id: other, func, span });
            program.typed.rotations.push(Rotation { id, other, limit, initial });
        }
        let handlers = std::mem::take(&mut program.queue_handlers);
        let Some(&(.., span)) = handlers.first() else { return };
        let calls = handlers.into_iter().map(call_if_flushed).collect();
        self.in_teardown_task(calls, span);
    }

    /// Adds statements to the task that the machine starts for flushed queues and colors in
    /// teardown; the first ones make it.
    pub(crate) fn in_teardown_task(&mut self, stmts: Vec<Stmt>, span: Span) {
        let program = self.program_mut();
        let known = program.teardown.and_then(|func| program.typed.funcs.get_mut(func.0 as usize));
        if let Some(func) = known {
            func.body.extend(stmts);
            return;
        }
        let func = FuncIdx(program.typed.funcs.len() as u32);
        program.teardown = Some(func);
        program.typed.funcs.push(Func {
            name: "teardown".to_owned(),
            params: 0,
            ret: None,
            locals: Vec::new(),
            labels: 0,
            passing: Passing::default(),
            body: stmts,
            span,
        });
        let kind = TaskKind::Local;
        program.typed.tasks.push(TaskBinding { kind, id: TEARDOWN_TASK, func, span });
    }
}

/// `if (the queue was flushed) handler();`
fn call_if_flushed((input, queue, func, span): (bool, u8, FuncIdx, Span)) -> Stmt {
    let state = if input { QueueState::InputFlushed } else { QueueState::OutputFlushed };
    let set = typed(ExprKind::Queues(state), Ty::I16, span);
    let bit = typed(ExprKind::Const(1 << queue), Ty::I16, span);
    let both = typed(ExprKind::Binary(BinaryOp::And, set, bit.clone()), Ty::I16, span);
    let cond = typed(ExprKind::Binary(BinaryOp::Eq, both, bit), Ty::I8, span);
    let call = ExprKind::Call { func, args: Vec::new() };
    let call = StmtKind::Expr(Expr { kind: Box::new(call), ty: None, span });
    let then = vec![Stmt { kind: call, span }];
    Stmt { kind: StmtKind::If { cond, then, otherwise: Vec::new() }, span }
}
