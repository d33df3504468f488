//! Spellings of older releases, and what they mean now.

use dflow_ir::mesh::Color;
use dflow_ir::program::TaskKind;
use dflow_syntax::ast::{Expr as Ast, ExprId};
use dflow_syntax::{Diagnostic, Span, codes};

use super::Call;
use super::args::{Options, in_range, wrong_type};
use super::task::{bind, task_arg};
use crate::dialect::SdkVersion;
use crate::sema::types::Type;
use crate::sema::value::Value;
use crate::sema::{Operand, R, Sema};

/// Colors were task ids, queues plain numbers until this release.
const TYPED_IDS: SdkVersion = SdkVersion::new(1, 0);

/// `@bind_task(task, id)`: under one number for activation, data and control wavelets, as far as the task's
/// parameters allow.
pub(super) fn bind_task(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (func, params) = task_arg(sema, call)?;
    only_wse2(sema, "`@bind_task`", call.span)?;
    let (value, span) = sema.arg_value(call.args[1], None)?;
    let id = in_range(sema, &value, 0, 63, "a task id", span)? as u8;
    let instead = "write `@bind_local_task`, `@bind_data_task` or `@bind_control_task`";
    sema.cx.old_spelling("`@bind_task`", TYPED_IDS, instead, call.span);
    if params > 2 {
        let message = "a task takes at most 2 parameters";
        return sema.fail(codes::INVALID_TASK, message, call.span, "bound here");
    }
    let target = sema.target;
    sema.program_mut().binds_old_tasks = true;
    let local = target.local_task_first..=target.local_task_last;
    if local.contains(&id) {
        bind(sema, TaskKind::Local, id, func, call.span)?;
    }
    if params > 0 && usize::from(id) < Color::COUNT {
        bind(sema, TaskKind::Data, id, func, call.span)?;
    }
    if params == 0 || takes_half(sema, call)? {
        bind(sema, TaskKind::Control, id, func, call.span)?;
    }
    Ok(sema.void_operand())
}

/// Whether all parameters of a task have 16 bits, as those of control tasks.
fn takes_half(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<bool> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let shared = sema.types.shared(value.ty);
    let Type::Fn { params, .. } = shared.as_ref() else { return Ok(false) };
    for &param in params.iter() {
        if sema.machine_ty(param, span)?.bits() != 16 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The number of a color that stands for a local task id.
pub(super) fn color_as_task(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<u8> {
    only_wse2(sema, "a color", span)?;
    let (first, last) = (sema.target.local_task_first, sema.target.local_task_last);
    let (first, last) = (i128::from(first), i128::from(last));
    let id = in_range(sema, value, first, last, "a local task id", span)?;
    color_named_task(sema, span);
    Ok(id as u8)
}

/// Notes that a color stands where a task id is meant.
pub(super) fn color_named_task(sema: &mut Sema<'_, '_>, span: Span) {
    let instead = "name the task or its id: `@activate(@get_local_task_id(n))`";
    sema.cx.old_spelling("a color as a task id", TYPED_IDS, instead, span);
}

/// On wse3 colors and task ids have nothing in common.
fn only_wse2(sema: &mut Sema<'_, '_>, what: &str, span: Span) -> R<()> {
    if !sema.target.data_task_by_queue {
        return Ok(());
    }
    let name = sema.target.id.name();
    Err(sema.report(
        Diagnostic::new(
            codes::WRONG_TARGET,
            format!("{what} names no task on {name}: colors are no task ids there"),
            span,
        )
        .label("used here")
        .help("bind the task to an id, `@bind_local_task(task, @get_local_task_id(n))`, and activate that"),
    ))
}

/// A color's number above the last color: a task id of older programs, which no route has.
pub(super) fn task_color(sema: &mut Sema<'_, '_>, number: i128, span: Span) {
    let message = format!(
        "no wavelet has color {number}: there are 0 to 23, and greater numbers were task ids"
    );
    let instead = "for a task id write `@get_local_task_id(n)` or `@get_control_task_id(n)`";
    let version = SdkVersion::new(1, 2);
    sema.cx.old_note("a color above 23", version, &message, instead, span);
}

/// A queue given by its number.
pub(super) fn queue_number(
    sema: &mut Sema<'_, '_>,
    value: &Value,
    input: bool,
    span: Span,
) -> R<u8> {
    if !sema.types.is_int(value.ty) {
        return wrong_type(sema, value, "a queue", span);
    }
    let target = sema.target;
    let (queues, what, instead) = if input {
        (target.input_queues.len(), "an input queue", "write `@get_input_queue(n)`")
    } else {
        (target.output_queues.len(), "an output queue", "write `@get_output_queue(n)`")
    };
    let queue = in_range(sema, value, 0, queues as i128 - 1, what, span)?;
    sema.cx.old_spelling("a number as a queue", TYPED_IDS, instead, span);
    Ok(queue as u8)
}

/// `@get_color_id(c)`.
pub(super) fn get_color_id(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let version = SdkVersion::new(1, 2);
    sema.cx.old_spelling("`@get_color_id`", version, "write `@get_int(color)`", call.span);
    super::ids::get_int(sema, call)
}

/// What stood side by side in a color's configuration before it was nested.
const FLAT_ROUTES: &[&str] = &["rx", "tx", "color_swap_x", "color_swap_y", "pop_mode"];
const FLAT_SWITCHES: &[&str] = &["pos1", "pos2", "pos3", "current_switch_pos", "ring_mode"];

/// The options of a color's configuration, nested as they are today.
pub(super) fn color_options(
    sema: &mut Sema<'_, '_>,
    arg: ExprId,
    allowed: &[&'static str],
) -> R<Options> {
    const WHAT: &str = "a color configuration";
    if !is_flat(sema, arg)? {
        return Options::read(sema, arg, allowed, WHAT);
    }
    let all: Vec<&'static str> =
        [allowed, FLAT_ROUTES, FLAT_SWITCHES].into_iter().flatten().copied().collect();
    let mut options = Options::read(sema, arg, &all, WHAT)?;
    options.group(sema, FLAT_ROUTES, "routes")?;
    options.group(sema, FLAT_SWITCHES, "switches")?;
    let version = SdkVersion::new(0, 7);
    let instead = "write `.{ .routes = .{ .rx = …, .tx = … }, .switches = .{ … } }`";
    sema.cx.old_spelling("a color configuration without `.routes`", version, instead, options.span);
    Ok(options)
}

/// Whether a configuration has its ways side by side with the rest.
fn is_flat(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<bool> {
    let file = std::rc::Rc::clone(&sema.frame().file);
    let names: Vec<String> = match file.file.expr(arg) {
        Ast::StructLiteral { fields } => {
            fields.iter().map(|field| sema.spell(field.name.name)).collect()
        }
        _ => {
            let (value, _) = sema.arg_value(arg, None)?;
            match sema.types.get(value.ty) {
                Type::Struct(info) if !info.tuple => {
                    info.fields.iter().map(|&(name, _)| sema.spell(name)).collect()
                }
                _ => return Ok(false),
            }
        }
    };
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    Ok(!has("routes") && (has("rx") || has("tx")))
}
