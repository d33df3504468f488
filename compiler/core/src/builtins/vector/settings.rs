//! Settings of vector operations and register loads.

use dflow_ir::inst::{OnControl, Priority};
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Span, codes};

use super::scalar::scalar_as;
use crate::builtins::args::{Options, wrong_type};
use crate::builtins::task::{local_id_of, unblock_target};
use crate::sema::value::Value;
use crate::sema::{R, Sema};
use crate::typed;

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
    let options = Options::read(sema, arg, allowed, what)?;
    let activate = match options.value(sema, "activate")? {
        Some((value, span)) => Some(local_id_of(sema, &value, span)?),
        None => None,
    };
    let unblock = match options.value(sema, "unblock")? {
        Some((value, span)) => Some(unblock_target(sema, &value, span)?),
        None => None,
    };
    if activate.is_some() && unblock.is_some() {
        let message = "an operation activates or unblocks when it is done, not both";
        return sema.fail(codes::INVALID_ARGUMENT, message, options.span, "both are given here");
    }
    let index = match options.get("index") {
        Some((operand, span)) => Some(scalar_as(sema, operand, Ty::I16, false, span)?),
        None => None,
    };
    Ok(typed::Options {
        asynchronous: options.flag(sema, "async")?,
        activate,
        unblock,
        microthread: microthread(sema, &options)?,
        priority: priority(sema, &options)?,
        index,
        on_control: on_control(sema, &options)?,
        save_address: options.flag(sema, "save_address")?,
        single_step: options.flag(sema, "single_step")?,
        xdsr: None,
    })
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

fn on_control(sema: &mut Sema<'_, '_>, options: &Options) -> R<OnControl> {
    let Some((value, span)) = options.value(sema, "on_control")? else {
        return Ok(OnControl::default());
    };
    let names = ["terminate", "activate", "unblock"];
    let fields = Options::of_value(sema, &value, span, &names, "`.on_control`")?;
    if fields.fields().count() != 1 {
        let message = "`.on_control` has one of `.terminate`, `.activate`, `.unblock`";
        return sema.fail(codes::INVALID_ARGUMENT, message, span, "given here");
    }
    if let Some((value, span)) = fields.value(sema, "activate")? {
        return local_id_of(sema, &value, span).map(OnControl::Activate);
    }
    if let Some((value, span)) = fields.value(sema, "unblock")? {
        return unblock_target(sema, &value, span).map(OnControl::Unblock);
    }
    let terminate = fields.flag(sema, "terminate")?;
    Ok(if terminate { OnControl::Terminate } else { OnControl::Ignore })
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
