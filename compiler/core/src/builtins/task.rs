//! Tasks: binding, activation, blocking; the cycle counter.

use dflow_ir::inst::{ClockOp, FlagOp, OnControl, Unblock};
use dflow_ir::mesh::Color;
use dflow_ir::program::TaskKind;
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::args::wrong_type;
use super::{Call, old};
use crate::dialect::SdkVersion;
use crate::sema::address::typed;
use crate::sema::program::NamedEarly;
use crate::sema::types::Type;
use crate::sema::value::{Data, FuncRef, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{ExprKind, FuncIdx, Program, QueueBinding, StmtKind, TaskBinding};

/// The task function in an argument.
pub(super) fn task_arg(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<(FuncRef, usize)> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let Data::Func(func) = value.data else {
        return wrong_type(sema, &value, "a task", span);
    };
    let void = sema.types.common.void;
    match sema.types.get(value.ty) {
        Type::Fn { is_task: true, params, ret } if *ret == void => Ok((func, params.len())),
        Type::Fn { is_task: true, .. } => {
            let message = "a task gives no result: its type is `void`";
            let diagnostic = Diagnostic::new(codes::INVALID_SIGNATURE, message, span)
                .label("this task")
                .help("leave the value in a variable: whatever runs next reads it there");
            Err(sema.report(declared(sema, diagnostic, func)))
        }
        _ => Err(sema.report(
            Diagnostic::new(codes::INVALID_TASK, "a function cannot be bound as a task", span)
                .label("declared with `fn`")
                .help("declare it with `task name() void { … }`"),
        )),
    }
}

/// A report about a task that also shows its declaration.
fn declared(sema: &Sema<'_, '_>, diagnostic: Diagnostic, func: FuncRef) -> Diagnostic {
    match sema.func_decl(func) {
        Some(decl) => diagnostic.secondary(decl.name.span, "declared here"),
        None => diagnostic,
    }
}

pub(super) fn bind(
    sema: &mut Sema<'_, '_>,
    kind: TaskKind,
    id: u8,
    func: FuncRef,
    span: Span,
) -> R<Operand> {
    let func = sema.program_func(func, span)?;
    sema.program_mut().typed.tasks.push(TaskBinding { kind, id, func, span });
    Ok(sema.void_operand())
}

/// A task that takes a payload in parameters of at most `widest` bits, or nothing.
pub(super) fn payload_task(sema: &mut Sema<'_, '_>, arg: ExprId, widest: u32) -> R<FuncIdx> {
    let span = sema.expr_span(arg);
    let call = Call { name: "bind_rotating_tasks", args: &[arg], span, hint: None };
    let (func, params) = task_arg(sema, call)?;
    if params > 2 {
        let message = "a control task takes at most 2 parameters";
        return sema.fail(codes::INVALID_TASK, message, span, "bound here");
    }
    check_payload(sema, call, widest)?;
    sema.program_func(func, span)
}

pub(super) fn bind_local(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (func, params) = task_arg(sema, call)?;
    let ty = sema.types.common.local_task_id;
    let (id, _, _) = sema.arg_id(call.args[1], &[ty], "a local task id")?;
    if params != 0 {
        let message =
            "a local task has no parameters: it is activated, and no word comes with that";
        let diagnostic =
            Diagnostic::new(codes::INVALID_TASK, message, call.span).label("bound here").help(
                "read a variable instead; a task that takes words is bound with `@bind_data_task`",
            );
        return Err(sema.report(declared(sema, diagnostic, func)));
    }
    bind(sema, TaskKind::Local, id, func, call.span)
}

pub(super) fn bind_data(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (func, params) = task_arg(sema, call)?;
    let ty = sema.types.common.data_task_id;
    let (id, _, _) = sema.arg_id(call.args[1], &[ty], "a data task id")?;
    if !(1..=2).contains(&params) {
        return Err(sema.report(
            Diagnostic::new(
                codes::INVALID_TASK,
                format!("a data task takes the wavelet as 1 or 2 parameters, this has {params}"),
                call.span,
            )
            .label("bound here")
            .help(match params {
                0 => "declare it as `task name(value: f32) void { … }`",
                _ => "a word has 32 bits: `(value: f32)`, or two halves `(low: u16, high: u16)`",
            }),
        ));
    }
    check_payload(sema, call, 32)?;
    bind(sema, TaskKind::Data, id, func, call.span)
}

/// What a control wavelet has in the place of a task's id if it starts none.
const NO_TASK: u8 = 31;

pub(super) fn bind_control(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (func, params) = task_arg(sema, call)?;
    let ty = sema.types.common.control_task_id;
    let (id, _, _) = sema.arg_id(call.args[1], &[ty], "a control task id")?;
    if params > 2 {
        let message = "a control task takes at most 2 parameters";
        return sema.fail(codes::INVALID_TASK, message, call.span, "bound here");
    }
    check_payload(sema, call, 16)?;
    if id == NO_TASK {
        let message = "control task id 31 stands for no task: no wavelet starts this one";
        sema.report(
            Diagnostic::new(codes::TASK_NEVER_STARTS, message, call.span)
                .label("never started")
                .help("bind it to another id, and send that one"),
        );
    }
    bind(sema, TaskKind::Control, id, func, call.span)
}

/// Parameters split the payload: one of up to `widest` bits, or two of 16.
fn check_payload(sema: &mut Sema<'_, '_>, call: Call<'_>, widest: u32) -> R<()> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let Type::Fn { params, .. } = sema.types.shared(value.ty).as_ref().clone() else {
        return Ok(());
    };
    let limit = if params.len() == 2 { 16 } else { widest };
    for &param in params.iter() {
        let bits = sema.machine_ty(param, span)?.bits();
        if bits > limit || bits < 16 {
            let name = sema.type_name(param);
            let message = format!("a task parameter of type `{name}` takes no part of a wavelet");
            let diagnostic = Diagnostic::new(codes::INVALID_TASK, message, span).label("this task");
            return Err(sema.report(match widest {
                16 => diagnostic.help(
                    "a control wavelet has 16 bits for its task: take one or two parameters of 16 bits",
                ),
                _ => diagnostic.help("take one parameter of 32 bits, or two of 16"),
            }));
        }
    }
    Ok(())
}

pub(super) fn activate(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let span = sema.expr_span(call.args[0]);
    let operand = sema.expr(call.args[0], None)?;
    let ty = sema.operand_type(&operand);
    if let Operand::Const(value) = &operand {
        let id = local_id_of(sema, value, span)?;
        return flag(sema, FlagOp::Activate, Ok(id), span);
    }
    if ty != sema.types.common.local_task_id {
        let name = sema.type_name(ty);
        let message = format!("a local task id is activated, this is `{name}`");
        return sema.fail(codes::TYPE_MISMATCH, message, span, "of the wrong type");
    }
    flag(sema, FlagOp::Activate, Err(operand), span)
}

pub(super) fn block(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    hold(sema, call, true)
}

pub(super) fn unblock(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    hold(sema, call, false)
}

fn hold(sema: &mut Sema<'_, '_>, call: Call<'_>, block: bool) -> R<Operand> {
    let span = sema.expr_span(call.args[0]);
    let operand = sema.expr(call.args[0], None)?;
    let ty = sema.operand_type(&operand);
    let common = sema.types.common;
    let channel = if sema.target.data_task_by_queue { common.input_queue } else { common.color };
    let pick = |blocks, unblocks| if block { blocks } else { unblocks };
    let beyond = matches!(&operand, Operand::Const(Value { data: Data::Int(24..), .. }));
    let op = if ty == common.color && beyond {
        pick(FlagOp::BlockTask, FlagOp::UnblockTask)
    } else if ty == channel || ty == common.data_task_id {
        pick(FlagOp::BlockChannel, FlagOp::UnblockChannel)
    } else if ty == common.local_task_id {
        pick(FlagOp::BlockTask, FlagOp::UnblockTask)
    } else if ty == common.ut_id && sema.target.data_task_by_queue {
        pick(FlagOp::BlockMicrothread, FlagOp::UnblockMicrothread)
    } else {
        let (name, target) = (sema.type_name(ty), sema.target.id.name());
        let what = if sema.target.data_task_by_queue { "input queues" } else { "colors" };
        let message = format!("{target} blocks {what}, data and local task ids, this is `{name}`");
        let diagnostic =
            Diagnostic::new(codes::TYPE_MISMATCH, message, span).label("of the wrong type");
        let help = id_help(sema, &operand, span)?;
        return Err(sema.report(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }));
    };
    match operand {
        Operand::Const(value) => {
            let id = sema.fix_int(&value).unwrap_or(0) as u8;
            flag(sema, op, Ok(id), span)
        }
        other => flag(sema, op, Err(other), span),
    }
}

/// What to write for a task that is named in the place of its id.
fn id_help(sema: &mut Sema<'_, '_>, operand: &Operand, span: Span) -> R<Option<String>> {
    let Operand::Const(Value { ty, data: Data::Func(func), .. }) = *operand else {
        return Ok(None);
    };
    if !matches!(sema.types.get(ty), Type::Fn { is_task: true, .. }) {
        return Ok(None);
    }
    let idx = sema.program_func(func, span)?;
    let id = bound(sema, idx, TaskKind::Local);
    let help = "give the id that the task is bound to";
    Ok(Some(id.map_or(help.to_owned(), |id| format!("{help}: `@get_local_task_id({id})`"))))
}

/// A flag operation: before the start, or as code.
fn flag(sema: &mut Sema<'_, '_>, op: FlagOp, id: Result<u8, Operand>, span: Span) -> R<Operand> {
    if !sema.is_runtime() {
        match id {
            Ok(id) => sema.program_mut().typed.initial_flags.push((op, id, span)),
            Err(operand) => {
                sema.need_const(operand, span)?;
            }
        }
        return Ok(sema.void_operand());
    }
    let id = match id {
        Ok(id) => typed(ExprKind::Const(u64::from(id)), Ty::I16, span),
        Err(operand) => sema.scalar_of(operand, span)?,
    };
    sema.emit(StmtKind::Flag { op, id }, span);
    Ok(Operand::Void)
}

/// The local task id in a value: an id, or a task that is bound to one.
pub(super) fn local_id_of(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<u8> {
    if value.ty == sema.types.common.local_task_id {
        return Ok(sema.fix_int(value).unwrap_or(0) as u8);
    }
    if let Data::Func(func) = value.data {
        return bound_id(sema, func, false, span);
    }
    if value.ty == sema.types.common.color {
        return old::color_as_task(sema, value, span);
    }
    if value.ty == sema.types.common.data_task_id {
        let message = "a data task is started by words, and not activated";
        return Err(sema.report(
            Diagnostic::new(codes::TYPE_MISMATCH, message, span)
                .label("the id of a data task")
                .help("let words start it: `@unblock` it if it was blocked"),
        ));
    }
    wrong_type(sema, value, "a local task id", span)
}

/// First of the numbers that stand for tasks that are bound later; no task has such an id.
const EARLY: u8 = 64;

/// The id that a task is bound to. At comptime one that is not bound yet gets a number that
/// [`finish_early`] replaces.
fn bound_id(sema: &mut Sema<'_, '_>, func: FuncRef, or_data: bool, span: Span) -> R<u8> {
    if sema.func_decl(func).is_some_and(|decl| !decl.is_task) {
        let name = sema.decl_name(func.module, func.decl);
        let message = format!("`{name}` is a function, and only tasks are activated");
        let diagnostic = Diagnostic::new(codes::INVALID_TASK, message, span)
            .label("named here")
            .help("declare it with `task` and bind it to an id with `@bind_local_task`");
        return Err(sema.report(declared(sema, diagnostic, func)));
    }
    let idx = sema.program_func(func, span)?;
    if let Some(bound) = bound(sema, idx, TaskKind::Local) {
        return Ok(bound);
    }
    let count = sema.program_mut().named_early.len();
    if sema.is_runtime() || count > usize::from(u8::MAX - EARLY) {
        return not_bound(sema, func, span);
    }
    sema.program_mut().named_early.push(NamedEarly { task: func, or_data, span });
    Ok(EARLY + count as u8)
}

fn bound(sema: &mut Sema<'_, '_>, func: FuncIdx, kind: TaskKind) -> Option<u8> {
    let tasks = &sema.program_mut().typed.tasks;
    tasks.iter().find(|task| task.func == func && task.kind == kind).map(|task| task.id)
}

fn not_bound<T>(sema: &mut Sema<'_, '_>, func: FuncRef, span: Span) -> R<T> {
    let name = sema.decl_name(func.module, func.decl);
    Err(sema.report(
        Diagnostic::new(codes::INVALID_TASK, format!("`{name}` is bound to no task id"), span)
            .label("named here")
            .help(format!(
                "bind it in a `comptime` block: `@bind_local_task({name}, @get_local_task_id(n));`"
            )),
    ))
}

/// After all comptime blocks: puts ids in place of tasks that were named before they were bound.
pub(crate) fn finish_early(sema: &mut Sema<'_, '_>) -> R<()> {
    let mut found = Vec::new();
    for NamedEarly { task, or_data, span } in std::mem::take(&mut sema.program_mut().named_early) {
        let idx = sema.program_func(task, span)?;
        let data = if or_data { bound(sema, idx, TaskKind::Data) } else { None };
        found.push(match (data, bound(sema, idx, TaskKind::Local)) {
            (Some(id), _) => Unblock::Channel(id),
            (None, Some(id)) => Unblock::Task(id),
            (None, None) => return not_bound(sema, task, span),
        });
    }
    let later = |id: u8| found.get(usize::from(id.wrapping_sub(EARLY))).copied();
    let local = |id: &mut u8| {
        if let Some(Unblock::Task(known) | Unblock::Channel(known)) = later(*id) {
            *id = known;
        }
    };
    let unblocked = |target: &mut Unblock| {
        if let Unblock::Task(id) = *target
            && let Some(known) = later(id)
        {
            *target = known;
        }
    };
    let typed = &mut sema.program_mut().typed;
    for load in &mut typed.initial_dsrs {
        load.options.activate.iter_mut().for_each(local);
        load.options.unblock.iter_mut().for_each(unblocked);
        match &mut load.options.on_control {
            OnControl::Activate(id) => local(id),
            OnControl::Unblock(target) => unblocked(target),
            OnControl::Ignore | OnControl::Terminate | OnControl::Count => {}
        }
    }
    for fifo in &mut typed.fifos {
        fifo.activate_pop.iter_mut().chain(&mut fifo.activate_push).for_each(local);
    }
    let activated = typed.initial_flags.iter_mut().filter(|(op, ..)| *op == FlagOp::Activate);
    activated.for_each(|(_, id, _)| local(id));
    Ok(())
}

/// What `.unblock = value` unblocks.
pub(super) fn unblock_target(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<Unblock> {
    let common = sema.types.common;
    let channel = if sema.target.data_task_by_queue { common.input_queue } else { common.color };
    if value.ty == channel || value.ty == common.data_task_id {
        return Ok(Unblock::Channel(sema.fix_int(value).unwrap_or(0) as u8));
    }
    if let Data::Func(func) = value.data {
        let idx = sema.program_func(func, span)?;
        let tasks = &sema.program_mut().typed.tasks;
        let data = tasks.iter().find(|task| task.func == idx && task.kind == TaskKind::Data);
        if let Some(task) = data {
            return Ok(Unblock::Channel(task.id));
        }
        return bound_id(sema, func, true, span).map(Unblock::Task);
    }
    local_id_of(sema, value, span).map(Unblock::Task)
}

fn clock(sema: &mut Sema<'_, '_>, call: Call<'_>, op: ClockOp) -> R<Operand> {
    sema.emit(StmtKind::Clock(op), call.span);
    Ok(Operand::Void)
}

pub(super) fn clock_enable(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    clock(sema, call, ClockOp::Enable)
}

pub(super) fn clock_disable(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    clock(sema, call, ClockOp::Disable)
}

pub(super) fn clock_reset(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    clock(sema, call, ClockOp::Reset)
}

pub(super) fn clock_resume(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    clock(sema, call, ClockOp::Resume)
}

pub(super) fn clock_read(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    read_clock(sema, call, ClockOp::Read)
}

pub(super) fn clock_total(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    read_clock(sema, call, ClockOp::Total)
}

fn read_clock(sema: &mut Sema<'_, '_>, call: Call<'_>, op: ClockOp) -> R<Operand> {
    let local = sema.new_scalar(None, Ty::I64);
    let read = typed(ExprKind::ClockRead(op), Ty::I64, call.span);
    sema.emit(StmtKind::Set(local, read), call.span);
    let expr = typed(ExprKind::Local(local), Ty::I64, call.span);
    Ok(Operand::Scalar { ty: sema.types.common.u64, expr })
}

impl Sema<'_, '_> {
    /// After all comptime blocks: channels that start nothing by themselves are blocked before the start, but for
    /// those that a comptime block blocks or unblocks. It was not so before SDK 1.0.
    pub(crate) fn close_channels(&mut self) {
        let named = self.cx.dialect.named;
        let by_queue = self.target.data_task_by_queue;
        let queues = self.target.input_queues.len();
        let Some(program) = &mut self.program else { return };
        let old = named.map_or(program.binds_old_tasks, |named| named < SdkVersion::new(1, 0));
        if old {
            return;
        }
        let all = if by_queue { queues } else { Color::COUNT } as u8;
        let typed = &mut program.typed;
        for channel in 0..all {
            let carried = |queue: &QueueBinding| {
                queue.input && channel == if by_queue { queue.queue } else { queue.color.index() }
            };
            let bound = typed.queues.iter().find(|queue| carried(queue)).map(|queue| queue.span);
            // What is bound at run time may be any of them.
            let any =
                program.rebinds.then(|| typed.queues.first().map(|queue| queue.span)).flatten();
            if let Some(span) = bound.or(any)
                && !is_open(typed, channel, by_queue)
            {
                typed.initial_flags.push((FlagOp::BlockChannel, channel, span));
            }
        }
    }
}

/// Whether something has the say in the state that a channel starts in: a task of its number, or a comptime block.
fn is_open(typed: &Program, channel: u8, by_queue: bool) -> bool {
    // Where colors are channels, what blocks one blocks the local task of its number.
    let starts = |task: &TaskBinding| match task.kind {
        TaskKind::Data => task.id == channel,
        TaskKind::Local => !by_queue && task.id == channel,
        TaskKind::Control => false,
    };
    let held = |op: FlagOp| matches!(op, FlagOp::BlockChannel | FlagOp::UnblockChannel);
    typed.tasks.iter().any(starts)
        || typed.initial_flags.iter().any(|&(op, id, _)| held(op) && id == channel)
}
