//! Queues and the colors bound to them.

use dflow_ir::inst::Priority;
use dflow_ir::mesh::Color;
use dflow_ir::program::TaskKind;
use dflow_syntax::ast::Expr as Ast;
use dflow_syntax::{Diagnostic, Span, codes};

use super::args::Options;
use super::vector::settings;
use super::{Call, old};
use crate::dialect::QueueBinding::{ByOperation, Once};
use crate::sema::program::ProgramCx;
use crate::sema::{Operand, R, Sema};
use crate::typed::{FuncIdx, QueueBinding};

pub(super) fn initialize(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let common = sema.types.common;
    let queues = [common.input_queue, common.output_queue];
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let input = value.ty != common.output_queue;
    let queue = match sema.fix_int(&value) {
        Some(queue) if queues.contains(&value.ty) => queue as u8,
        _ => old::queue_number(sema, &value, input, span)?,
    };
    if let Some(color) = old_color(sema, call)? {
        let (priority, control_table, further, span) = (None, 0, false, call.span);
        let import = sema.library_import(span);
        let binding =
            QueueBinding { input, queue, color, further, priority, control_table, span, import };
        bind(sema, binding);
        return Ok(sema.void_operand());
    }
    let options = match call.args.get(1) {
        Some(&arg) => Options::read(sema, arg, &["color", "priority", "ctrl_table_id"], "a queue")?,
        None => Options::none(call.span),
    };
    let priority = queue_priority(sema, &options)?;
    let control_table = control_table_id(sema, &options, input)?;
    let color = match options.value(sema, "color")? {
        Some((value, span)) => Some(color_value(sema, &value, span)?),
        None => None,
    };
    match color {
        Some(color) => {
            let span = call.span;
            let (further, import) = (false, sema.library_import(span));
            let binding = QueueBinding {
                input,
                queue,
                color,
                priority,
                control_table,
                further,
                span,
                import,
            };
            bind(sema, binding);
        }
        None if input || sema.target.output_queue_bound => {
            return Err(sema.report(
                Diagnostic::new(codes::WRONG_QUEUE, "this queue needs a color", call.span)
                    .label("bound to nothing")
                    .help("write `@initialize_queue(queue, .{ .color = color })`"),
            ));
        }
        None => {}
    }
    Ok(sema.void_operand())
}

/// `.priority`, which wse2 has.
fn queue_priority(sema: &mut Sema<'_, '_>, options: &Options) -> R<Option<Priority>> {
    let priority = settings::priority(sema, options)?;
    if let (Some(_), Some((_, span))) = (priority, options.get("priority"))
        && sema.target.data_task_by_queue
    {
        let name = sema.target.id.name();
        let message = format!("queues of {name} have no `.priority`");
        return Err(sema.report(
            Diagnostic::new(codes::WRONG_TARGET, message, span)
                .label("given here")
                .help("give it to the descriptor: `@get_dsd(fabin_dsd, .{ .priority = … })`"),
        ));
    }
    Ok(priority)
}

/// `.ctrl_table_id`, which input queues of wse3 have.
fn control_table_id(sema: &mut Sema<'_, '_>, options: &Options, input: bool) -> R<u8> {
    let Some(id) = options.int(sema, "ctrl_table_id", 0, 7)? else { return Ok(0) };
    if !input || !sema.target.data_task_by_queue {
        let message = "only input queues of wse3 have a `.ctrl_table_id`";
        return sema.fail(codes::WRONG_TARGET, message, options.span, "given here");
    }
    Ok(id as u8)
}

/// The color in place of the options, as programs of SDK 0.7 write it.
fn old_color(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Option<Color>> {
    let Some(&arg) = call.args.get(1) else { return Ok(None) };
    let file = std::rc::Rc::clone(&sema.frame().file);
    if matches!(file.file.expr(arg), Ast::StructLiteral { .. } | Ast::TupleLiteral { .. }) {
        return Ok(None);
    }
    let (value, span) = sema.arg_value(arg, None)?;
    if value.ty != sema.types.common.color {
        return Ok(None);
    }
    let version = crate::dialect::SdkVersion::new(0, 8);
    let instead = "write `@initialize_queue(queue, .{ .color = color })`";
    sema.cx.old_spelling("a color in place of a queue's options", version, instead, call.span);
    color_value(sema, &value, span).map(Some)
}

/// Binds a queue as the program says, whatever a descriptor implied before.
fn bind(sema: &mut Sema<'_, '_>, binding: QueueBinding) {
    let is_same =
        |&(input, queue, _): &(bool, u8, usize)| (input, queue) == (binding.input, binding.queue);
    let Some(at) = sema.layout.implicit_queues.iter().position(is_same) else {
        sema.program_mut().typed.queues.push(binding);
        return;
    };
    let (_, _, at) = sema.layout.implicit_queues.swap_remove(at);
    let (color, span) = (binding.color, binding.span);
    let implied = std::mem::replace(&mut sema.program_mut().typed.queues[at], binding);
    if implied.color != color {
        other_color(sema, implied.color, implied.span, color, span);
    }
}

/// A descriptor names a color that its queue does not carry.
fn other_color(sema: &mut Sema<'_, '_>, named: Color, span: Span, carried: Color, bound: Span) {
    let (named, carried) = (named.index(), carried.index());
    let message =
        format!("this descriptor names color {named}, and its queue carries color {carried}");
    sema.report(
        Diagnostic::new(codes::QUEUE_COLOR, message, span)
            .label("has no effect")
            .secondary(bound, "the queue is bound here")
            .help("leave `.fabric_color` out, or use a queue of this color"),
    );
}

/// A descriptor names another color than its input queue was bound to, and so its operations bind it anew.
fn rebound(sema: &mut Sema<'_, '_>, named: Color, span: Span, carried: Color, bound: Span) {
    if sema.cx.in_library(span) {
        return;
    }
    let (named, carried) = (named.index(), carried.index());
    let message =
        format!("this descriptor names color {named}, and its queue is bound to color {carried}");
    sema.report(
        Diagnostic::new(codes::QUEUE_COLOR, message, span)
            .label("operations take this color; since SDK 2.10 they take the queue's")
            .secondary(bound, "the queue is bound here")
            .help("use a queue of this color"),
    );
}

/// A color from a value: a color, or its number.
pub(crate) fn color_value(
    sema: &mut Sema<'_, '_>,
    value: &crate::sema::value::Value,
    span: Span,
) -> R<Color> {
    if value.ty != sema.types.common.color && !sema.types.is_int(value.ty) {
        return super::args::wrong_type(sema, value, "a color", span);
    }
    let number = sema.fix_int(value).unwrap_or(-1);
    match u8::try_from(number).ok().and_then(Color::new) {
        Some(color) => Ok(color),
        None => {
            let message = format!("color {number} does not exist: there are 0 to 23");
            let diagnostic =
                Diagnostic::new(codes::COLOR_OUT_OF_RANGE, message, span).label("out of range");
            Err(sema.report(
                diagnostic.help("use one that nothing else uses; memcpy has 21, 22 and 23"),
            ))
        }
    }
}

/// Notes a binding that a descriptor implies.
fn implied(
    sema: &mut Sema<'_, '_>,
    (input, queue): (bool, u8),
    color: Color,
    further: bool,
    span: Span,
) {
    let (priority, control_table, import) = (None, 0, sema.library_import(span));
    let binding =
        QueueBinding { input, queue, color, priority, control_table, further, span, import };
    sema.program_mut().typed.queues.push(binding);
}

/// Binds a queue as a descriptor implies; the same binding again changes nothing. Whether the
/// descriptor must name the color at each operation, since the queue has several.
pub(super) fn bind_implicitly(
    sema: &mut Sema<'_, '_>,
    input: bool,
    queue: u8,
    color: Color,
    span: Span,
) -> R<bool> {
    if sema.program.is_none() {
        return Ok(false);
    }
    let queues = &sema.program_mut().typed.queues;
    let known = queues.iter().position(|binding| (binding.input, binding.queue) == (input, queue));
    let Some(at) = known else {
        let at = queues.len();
        sema.layout.implicit_queues.push((input, queue, at));
        implied(sema, (input, queue), color, false, span);
        return Ok(false);
    };
    let (carried, bound) = (queues[at].color, queues[at].span);
    if carried == color {
        return Ok(false);
    }
    let by_operation = sema.cx.dialect.queue_binding == ByOperation;
    let takes_any = input && by_operation && !sema.target.data_task_by_queue;
    if !takes_any && !sema.layout.implicit_queues.contains(&(input, queue, at)) {
        other_color(sema, color, span, carried, bound);
        return Ok(false);
    }
    if takes_any {
        if !sema.layout.implicit_queues.contains(&(input, queue, at)) {
            rebound(sema, color, span, carried, bound);
        }
        let same = |it: &QueueBinding| (it.input, it.queue, it.color) == (input, queue, color);
        if !sema.program_mut().typed.queues.iter().any(same) {
            implied(sema, (input, queue), color, true, span);
        }
        return Ok(true);
    }
    let (old, new) = (carried.index(), color.index());
    let message = format!("queue {queue} carries color {old}, and color {new} here");
    Err(sema.report(
        Diagnostic::new(codes::QUEUE_CLASH, message, span)
            .label("second color")
            .secondary(bound, "first color"),
    ))
}

/// The input queue of a color: the one that has it, or the highest that has none.
pub(super) fn free_input(sema: &mut Sema<'_, '_>, color: Color) -> Option<u8> {
    let count = sema.target.input_queues.len() as u8;
    let queues = &sema.program_mut().typed.queues;
    let of = |queue: u8| queues.iter().find(|known| known.input && known.queue == queue);
    let carries = |&queue: &u8| of(queue).is_some_and(|known| known.color == color);
    (0..count).find(carries).or_else(|| (0..count).rev().find(|&queue| of(queue).is_none()))
}

/// The color that an output queue was bound to, where it need not be bound to any.
pub(super) fn output_color(sema: &mut Sema<'_, '_>, queue: u8, span: Span) -> R<Color> {
    let known = sema.program.as_ref().and_then(|program| {
        let mut queues = program.typed.queues.iter();
        queues.find(|binding| !binding.input && binding.queue == queue)
    });
    if let Some(binding) = known {
        return Ok(binding.color);
    }
    Err(sema.report(
        Diagnostic::new(codes::WRONG_QUEUE, "this descriptor needs a color", span)
            .label("sends to no color")
            .help("give it one: `.fabric_color = color`"),
    ))
}

impl Sema<'_, '_> {
    /// Warns of what uses queues that no color is bound to, once per queue: an operation that runs is a trap, a data
    /// task never starts. Likewise of queues that only a descriptor's `.fabric_color` binds, where the SDK does not.
    pub(crate) fn check_queues(&mut self) {
        let needs_output = self.target.output_queue_bound;
        let by_hand = needs_output || self.cx.dialect.queue_binding == Once;
        let implied = std::mem::take(&mut self.layout.implicit_queues);
        let Some(program) = &mut self.program else { return };
        let used = std::mem::take(&mut program.used_queues);
        if !needs_output {
            self.check_shared(&used);
        }
        let Some(program) = &mut self.program else { return };
        if program.rebinds {
            return;
        }
        let heard = if self.target.data_task_by_queue { data_tasks(program) } else { Vec::new() };
        let mut told = Vec::new();
        for (input, queue, _, span) in used {
            if !(input || needs_output) || told.contains(&(input, queue)) {
                continue;
            }
            told.push((input, queue));
            match self.color_of_queue(input, queue) {
                None => self.unbound_queue(input, queue, span),
                Some(color)
                    if by_hand && implied.iter().any(|it| (it.0, it.1) == (input, queue)) =>
                {
                    self.implied_queue(input, queue, color, span);
                }
                Some(_) => {}
            }
        }
        for (queue, name, span) in heard {
            if self.color_of_queue(true, queue).is_none() {
                self.silent_queue(queue, &name, span);
            }
        }
    }

    /// Notes output queues through which a library sends, and the program something else: where the two are under
    /// way at once, one waits for the microthread of the other.
    fn check_shared(&mut self, used: &[(bool, u8, Option<Color>, Span)]) {
        let mut outputs: Vec<_> = used.iter().filter(|(input, ..)| !input).collect();
        outputs.sort_by_key(|(_, queue, ..)| *queue);
        for uses in outputs.chunk_by(|a, b| a.1 == b.1) {
            let (libraries, own): (Vec<_>, Vec<_>) =
                uses.iter().copied().partition(|(.., span)| self.cx.in_library(*span));
            let known = |color| libraries.iter().any(|(_, _, other, _)| *other == color);
            let other = own.iter().find(|(_, _, color, _)| color.is_some() && !known(*color));
            let (Some((_, queue, _, span)), Some((.., there))) = (other, libraries.first()) else {
                continue;
            };
            let library = self.cx.file_name(there.file);
            let message = format!("the library {library} sends through output queue {queue}, too");
            self.report(
                Diagnostic::new(codes::QUEUE_SHARED, message, *span)
                    .label("may wait for it for ever, or it for this")
                    .help("send through a queue that no library uses"),
            );
        }
    }

    fn color_of_queue(&self, input: bool, queue: u8) -> Option<Color> {
        let mut queues = self.program.as_ref()?.typed.queues.iter();
        queues.find(|it| (it.input, it.queue) == (input, queue)).map(|it| it.color)
    }

    fn unbound_queue(&mut self, input: bool, queue: u8, span: Span) {
        let kind = kind_of(input);
        let message = format!("{kind} queue {queue} is used here, and no color is bound to it");
        self.report(
            Diagnostic::new(codes::QUEUE_UNBOUND, message, span)
                .label("ends the run if it is executed")
                .help(how_to_bind(input, queue)),
        );
    }

    fn implied_queue(&mut self, input: bool, queue: u8, color: Color, span: Span) {
        let (kind, color) = (kind_of(input), color.index());
        let message =
            format!("{kind} queue {queue} is used here, and no `@initialize_queue` binds it");
        self.report(
            Diagnostic::new(codes::QUEUE_UNBOUND, message, span)
                .label(format!("has color {color} here, and none on the machine"))
                .help(how_to_bind(input, queue)),
        );
    }

    fn silent_queue(&mut self, queue: u8, task: &str, span: Span) {
        let message =
            format!("no color is bound to input queue {queue}, whose words start `{task}`");
        self.report(
            Diagnostic::new(codes::QUEUE_UNBOUND, message, span)
                .label("this task never starts")
                .help(how_to_bind(true, queue)),
        );
    }
}

/// Data tasks: id, name, where they are bound.
fn data_tasks(program: &ProgramCx) -> Vec<(u8, String, Span)> {
    let name = |func: FuncIdx| {
        program.typed.funcs.get(func.0 as usize).map_or(String::new(), |func| func.name.clone())
    };
    let tasks = program.typed.tasks.iter().filter(|task| task.kind == TaskKind::Data);
    tasks.map(|task| (task.id, name(task.func), task.span)).collect()
}

fn kind_of(input: bool) -> &'static str {
    if input { "input" } else { "output" }
}

fn how_to_bind(input: bool, queue: u8) -> String {
    let kind = kind_of(input);
    format!(
        "write `@initialize_queue(@get_{kind}_queue({queue}), .{{ .color = color }})` in a `comptime` block"
    )
}
