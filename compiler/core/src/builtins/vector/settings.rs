//! Settings of vector operations and register loads.

use dflow_ir::dsd::late::{self, Doing};
use dflow_ir::inst::{OnControl, Priority, Unblock};
use dflow_ir::scalar::{BinaryOp, Convert};
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Span, codes};

use super::scalar::scalar_as;
use crate::builtins::args::{OF_CONTROL, Options, wrong_type};
use crate::builtins::old;
use crate::builtins::task::{local_id_of, unblock_target};
use crate::sema::address::typed;
use crate::sema::value::Value;
use crate::sema::{Operand, R, Sema};
use crate::typed::{self, Expr, ExprKind};

/// Settings that a vector operation has.
pub(crate) const OF_OPERATION: &[&str] =
    &["async", "activate", "unblock", "on_control", "priority", "index", "ut_id"];

/// Settings that a register load has.
pub(crate) const OF_LOAD: &[&str] = &[
    "async",
    "activate",
    "unblock",
    "on_control",
    "priority",
    "ut_id",
    "save_address",
    "single_step",
];

/// Reads an argument that holds settings.
pub(crate) fn read(
    sema: &mut Sema<'_, '_>,
    arg: ExprId,
    allowed: &[&'static str],
    what: &str,
) -> R<typed::Options> {
    let mut options = Options::read(sema, arg, allowed, what)?;
    let activate = completion(sema, &options, "activate")?;
    let unblock = completion(sema, &options, "unblock")?;
    if activate.is_some() && unblock.is_some() {
        let message = "an operation activates or unblocks when it is done, not both";
        return sema.fail(codes::INVALID_ARGUMENT, message, options.span, "both are given here");
    }
    let index = match options.get("index") {
        Some((operand, span)) => Some(scalar_as(sema, operand, Ty::I16, false, span)?),
        None => None,
    };
    let control = on_control(sema, &mut options)?;
    let mut settings = typed::Options {
        asynchronous: options.flag(sema, "async")?,
        microthread: microthread(sema, &options)?,
        priority: priority(sema, &options)?,
        save_address: options.flag(sema, "save_address")?,
        single_step: options.flag(sema, "single_step")?,
        ..typed::Options::default()
    };
    let mut late = Late::new(index);
    match activate.or(unblock) {
        Some(Done::Now(Target::Task(id))) => settings.activate = Some(id),
        Some(Done::Now(Target::Unblock(unblock))) => settings.unblock = Some(unblock),
        Some(Done::Late(doing, id)) => late.completion(doing, id, options.span),
        None => {}
    }
    match control {
        Control::Now(control) => settings.on_control = control,
        Control::Late(doing, id) => late.control(doing, id, options.span),
    }
    settings.index = late.word;
    Ok(settings)
}

/// Whether an operation has an index; settings of run time ride with it.
pub(super) fn has_index(options: &typed::Options) -> bool {
    options.index.as_ref().is_some_and(|index| index.ty != Some(Ty::I64))
}

/// Whether control wavelets have an effect on an operation.
pub(super) fn has_control(options: &typed::Options) -> bool {
    options.on_control != OnControl::default()
}

/// What is activated or unblocked.
enum Target {
    Task(u8),
    Unblock(Unblock),
}

/// What is done with an id that is known now, or only when the operation begins.
enum Done {
    Now(Target),
    Late(Doing, Expr),
}

enum Control {
    Now(OnControl),
    Late(Doing, Expr),
}

/// The index, and settings that are known only at run time ([`dflow_ir::dsd::late`]).
struct Late {
    word: Option<Expr>,
}

impl Late {
    fn new(index: Option<Expr>) -> Late {
        Late { word: index }
    }

    fn completion(&mut self, doing: Doing, id: Expr, span: Span) {
        self.add(late::on_completion(doing), late::COMPLETION, id, span);
    }

    fn control(&mut self, doing: Doing, id: Expr, span: Span) {
        self.add(late::on_control(doing), late::CONTROL, id, span);
    }

    fn add(&mut self, bits: u64, shift: u32, id: Expr, span: Span) {
        let wide = |expr: Expr| match expr.ty {
            Some(Ty::I64) => expr,
            _ => typed(ExprKind::Convert(Convert::ZeroExtend, expr), Ty::I64, span),
        };
        let constant = |bits| typed(ExprKind::Const(bits), Ty::I64, span);
        let binary = |op, a, b| typed(ExprKind::Binary(op, a, b), Ty::I64, span);
        let word = match self.word.take() {
            None => constant(late::MARK | bits),
            Some(index) if index.ty == Some(Ty::I64) => binary(BinaryOp::Or, index, constant(bits)),
            Some(index) => {
                let mark = constant(late::MARK | late::HAS_INDEX | bits);
                binary(BinaryOp::Or, wide(index), mark)
            }
        };
        let id = binary(BinaryOp::Shl, wide(id), constant(u64::from(shift)));
        self.word = Some(binary(BinaryOp::Or, word, id));
    }
}

/// `.activate` or `.unblock`, if it is there.
fn completion(sema: &mut Sema<'_, '_>, options: &Options, name: &str) -> R<Option<Done>> {
    let Some((operand, span)) = options.get(name) else { return Ok(None) };
    let known = match operand {
        Operand::Const(value) => value,
        operand => return late_id(sema, operand, name, span).map(Some),
    };
    Ok(Some(Done::Now(match name {
        "activate" => Target::Task(local_id_of(sema, &known, span)?),
        _ => Target::Unblock(unblock_target(sema, &known, span)?),
    })))
}

/// An id that is known only at run time.
fn late_id(sema: &mut Sema<'_, '_>, operand: Operand, name: &str, span: Span) -> R<Done> {
    let ty = sema.operand_type(&operand);
    let common = sema.types.common;
    let channel = if sema.target.data_task_by_queue { common.input_queue } else { common.color };
    // Older programs name a task by a color, where both are one set of numbers.
    let by_color = ty == common.color && name == "activate" && !sema.target.data_task_by_queue;
    let named = ty == common.local_task_id || by_color;
    let doing = if name == "activate" && named {
        Doing::Activate
    } else if name == "unblock" && ty == common.local_task_id {
        Doing::UnblockTask
    } else if name == "unblock" && (ty == channel || ty == common.data_task_id) {
        Doing::UnblockChannel
    } else {
        let wanted = match (name, sema.target.data_task_by_queue) {
            ("activate", _) => "a `local_task_id`",
            (_, true) => "a `local_task_id`, `data_task_id` or `input_queue`",
            (_, false) => "a `local_task_id`, `data_task_id` or `color`",
        };
        let message = format!("`.{name}` is {wanted}, this is `{}`", sema.type_name(ty));
        return sema.fail(codes::TYPE_MISMATCH, message, span, "of the wrong type");
    };
    if by_color {
        old::color_named_task(sema, span);
    }
    Ok(Done::Late(doing, sema.scalar_of(operand, span)?))
}

fn microthread(sema: &mut Sema<'_, '_>, options: &Options) -> R<Option<u8>> {
    let Some((value, span)) = options.value(sema, "ut_id")? else { return Ok(None) };
    if !sema.target.microthread_choice {
        let message =
            format!("{} chooses microthreads by queue: it has no `.ut_id`", sema.target.id.name());
        return sema.fail(codes::WRONG_TARGET, message, span, "given here");
    }
    match sema.fix_int(&value) {
        Some(id) if value.ty == sema.types.common.ut_id => Ok(Some(id as u8)),
        _ => wrong_type(sema, &value, "a microthread id", span),
    }
}

/// `.priority = .{ .high = true }`, if it is there.
pub(crate) fn priority(sema: &mut Sema<'_, '_>, options: &Options) -> R<Option<Priority>> {
    let Some((value, span)) = options.value(sema, "priority")? else { return Ok(None) };
    let names = ["low", "medium", "high"];
    Ok(Some(match choice(sema, &value, span, &names, "`.priority`")? {
        "high" => Priority::High,
        "medium" => Priority::Medium,
        _ => Priority::Low,
    }))
}

fn on_control(sema: &mut Sema<'_, '_>, options: &mut Options) -> R<Control> {
    let fields = match (options.take_nested("on_control"), options.value(sema, "on_control")?) {
        (Some(fields), _) => fields,
        (None, Some((value, span))) => {
            Options::of_value(sema, &value, span, OF_CONTROL, "`.on_control`")?
        }
        (None, None) => return Ok(Control::Now(OnControl::default())),
    };
    if fields.fields().count() != 1 {
        let message = "`.on_control` has one of `.terminate`, `.activate`, `.unblock`";
        return sema.fail(codes::INVALID_ARGUMENT, message, fields.span, "given here");
    }
    let done = match completion(sema, &fields, "activate")? {
        Some(done) => Some(done),
        None => completion(sema, &fields, "unblock")?,
    };
    match done {
        Some(Done::Now(Target::Task(id))) => return Ok(Control::Now(OnControl::Activate(id))),
        Some(Done::Now(Target::Unblock(target))) => {
            return Ok(Control::Now(OnControl::Unblock(target)));
        }
        Some(Done::Late(doing, id)) => return Ok(Control::Late(doing, id)),
        None => {}
    }
    match fields.get("terminate") {
        Some((operand, span)) if !matches!(operand, Operand::Const(_)) => {
            let truth = sema.types.common.bool;
            let operand = sema.coerce(operand, truth, span)?;
            Ok(Control::Late(Doing::Terminate, sema.scalar_of(operand, span)?))
        }
        _ => {
            let terminate = fields.flag(sema, "terminate")?;
            Ok(Control::Now(if terminate { OnControl::Terminate } else { OnControl::Ignore }))
        }
    }
}

/// The name that is chosen by `.{ .name = true }`.
pub(crate) fn choice(
    sema: &mut Sema<'_, '_>,
    value: &Value,
    span: Span,
    names: &[&'static str],
    what: &str,
) -> R<&'static str> {
    let fields = Options::of_value(sema, value, span, names, what)?;
    let mut chosen = None;
    for &name in names {
        if fields.flag(sema, name)? && chosen.replace(name).is_some() {
            return no_choice(sema, names, what, span);
        }
    }
    match chosen {
        Some(name) => Ok(name),
        None => no_choice(sema, names, what, span),
    }
}

fn no_choice<T>(sema: &mut Sema<'_, '_>, names: &[&str], what: &str, span: Span) -> R<T> {
    let names: Vec<String> = names.iter().map(|name| format!("`.{name} = true`")).collect();
    let message = format!("{what} is one of {}", names.join(", "));
    sema.fail(codes::INVALID_ARGUMENT, message, span, "not one of them")
}
