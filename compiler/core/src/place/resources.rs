//! Task ids and queues of each program, against the target and one another.

use std::collections::BTreeMap;

use cranelift_entity::PrimaryMap;
use dflow_ir::image::ProgramId;
use dflow_ir::mesh::Color;
use dflow_ir::program::TaskKind;
use dflow_ir::target::{CONTROL_TASKS, Target};
use dflow_syntax::{Diagnostic, Span, codes};

use super::Tile;
use crate::session::Session;
use crate::typed::{QueueBinding, TaskBinding};

/// Judges every program.
pub(super) fn check(
    cx: &mut Session<'_>,
    tiles: &PrimaryMap<ProgramId, Tile<'_>>,
    target: &Target,
) {
    for tile in tiles.values() {
        check_tasks(cx, tile, target);
        check_queues(cx, tile, target);
    }
}

fn check_tasks(cx: &mut Session<'_>, tile: &Tile<'_>, target: &Target) {
    let mut bound: BTreeMap<(bool, u8), &TaskBinding> = BTreeMap::new();
    let apart = tile.typed.control_table.is_some();
    for task in &tile.typed.tasks {
        check_task_id(cx, tile, task, target);
        let key = (apart && task.kind == TaskKind::Control, task.id);
        match bound.get(&key) {
            // One `@bind_task` binds for several kinds.
            Some(first) if first.func == task.func && first.span == task.span => {}
            Some(first) => task_clash(cx, tile, first, task, target),
            None => {
                bound.insert(key, task);
            }
        }
    }
}

fn check_task_id(cx: &mut Session<'_>, tile: &Tile<'_>, task: &TaskBinding, target: &Target) {
    let ids = match task.kind {
        TaskKind::Local => target.local_task_first..=target.local_task_last,
        TaskKind::Data if target.data_task_by_queue => 0..=last(target.input_queues.len()),
        TaskKind::Data => 0..=last(Color::COUNT),
        TaskKind::Control => 0..=CONTROL_TASKS - 1,
    };
    if ids.contains(&task.id) {
        return;
    }
    let (name, kind) = (target.id.name(), kind_name(task.kind));
    let message = format!("{name} has no {kind} task id {}", task.id);
    let label = format!("{kind} task ids are {} to {}", ids.start(), ids.end());
    cx.emit(
        Diagnostic::new(codes::TASK_ID_OUT_OF_RANGE, message, task.span)
            .label(label)
            .frame(tile.pes.frame(task.span, tile.span)),
    );
}

/// Ids that reports suggest: those below 8 exist on wse2 only, those above 26 are used by memcpy
/// and teardown.
const SUGGESTED: std::ops::RangeInclusive<u8> = 8..=26;

fn task_clash(
    cx: &mut Session<'_>,
    tile: &Tile<'_>,
    first: &TaskBinding,
    second: &TaskBinding,
    target: &Target,
) {
    let name = |task: &TaskBinding| {
        let func = tile.typed.funcs.get(task.func.0 as usize);
        let name = func.map_or("", |func| func.name.as_str());
        format!("{} task `{name}`", kind_name(task.kind))
    };
    let message = match owner(cx, first.span, second.span) {
        Some(library) => format!("task id {} belongs to {library}", second.id),
        None => format!("task id {} is bound twice", second.id),
    };
    let (mine, theirs) = users_first(cx, (first, first.span), (second, second.span));
    let (a, b) = if mine.span == first.span { ("first", "second") } else { ("second", "first") };
    let mut diagnostic = Diagnostic::new(codes::TASK_ID_CLASH, message, mine.span)
        .label(format!("{a}: {}", name(mine)))
        .secondary(theirs.span, format!("{b}: {}", name(theirs)));
    if first.kind != second.kind {
        diagnostic =
            diagnostic.help("data, local and control tasks share one table: use another id");
    }
    if mine.kind == TaskKind::Local {
        let (first, last) = (SUGGESTED.start(), SUGGESTED.end());
        let ids = target.local_task_first.max(*first)..=target.local_task_last.min(*last);
        let used = |id: &u8| tile.typed.tasks.iter().any(|task| task.id == *id);
        let free: Vec<String> =
            ids.filter(|id| !used(id)).take(4).map(|id| id.to_string()).collect();
        if !free.is_empty() {
            diagnostic = diagnostic.help(format!("free in this program: {}, …", free.join(", ")));
        }
    }
    cx.emit(diagnostic.frame(tile.pes.frame(mine.span, tile.span)));
}

/// The library that one of two places is in, if the other is the user's.
fn owner(cx: &Session<'_>, a: Span, b: Span) -> Option<String> {
    let library = match (cx.in_library(a), cx.in_library(b)) {
        (true, false) => a,
        (false, true) => b,
        (true, true) | (false, false) => return None,
    };
    Some(format!("the library {}", cx.file_name(library.file)))
}

/// Two that clash, the one whose place is to be looked at first: the second, unless that is in a
/// library.
fn users_first<T>(cx: &Session<'_>, first: (T, Span), second: (T, Span)) -> (T, T) {
    match cx.in_library(second.1) && !cx.in_library(first.1) {
        true => (first.0, second.0),
        false => (second.0, first.0),
    }
}

fn kind_name(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::Local => "local",
        TaskKind::Data => "data",
        TaskKind::Control => "control",
    }
}

fn check_queues(cx: &mut Session<'_>, tile: &Tile<'_>, target: &Target) {
    let mut bound: BTreeMap<(bool, u8), &QueueBinding> = BTreeMap::new();
    for queue in &tile.typed.queues {
        check_queue_id(cx, tile, queue, target);
        match bound.get(&(queue.input, queue.queue)) {
            Some(_) if queue.further => {}
            Some(first) => queue_clash(cx, tile, first, queue, target),
            None => {
                bound.insert((queue.input, queue.queue), queue);
            }
        }
    }
}

/// A color that comes to a core goes to one queue there. `to_cores` are such colors, as bits.
pub(super) fn check_colors(
    cx: &mut Session<'_>,
    tiles: &PrimaryMap<ProgramId, Tile<'_>>,
    to_cores: u32,
) {
    for tile in tiles.values() {
        let mut taken: BTreeMap<u8, &QueueBinding> = BTreeMap::new();
        let inputs = tile.typed.queues.iter().filter(|queue| queue.input);
        for queue in inputs.filter(|queue| to_cores >> queue.color.index() & 1 != 0) {
            let first = taken.entry(queue.color.index()).or_insert(queue);
            if first.queue != queue.queue {
                color_clash(cx, tile, first, queue);
            }
        }
    }
}

fn color_clash(cx: &mut Session<'_>, tile: &Tile<'_>, first: &QueueBinding, second: &QueueBinding) {
    let color = second.color.index();
    let message = format!("words of color {color} cannot go to two input queues");
    cx.emit(
        Diagnostic::new(codes::QUEUE_CLASH, message, second.span)
            .label(format!("queue {} for color {color}", second.queue))
            .secondary(first.span, format!("queue {} for the same color", first.queue))
            .help("give all operations and tasks that receive this color the same queue")
            .frame(tile.pes.frame(second.span, tile.span)),
    );
}

fn check_queue_id(cx: &mut Session<'_>, tile: &Tile<'_>, queue: &QueueBinding, target: &Target) {
    let queues = if queue.input { &target.input_queues } else { &target.output_queues };
    if usize::from(queue.queue) < queues.len() {
        return;
    }
    let (name, kind) = (target.id.name(), queue_kind(queue));
    let message = format!("{name} has no {kind} queue {}", queue.queue);
    cx.emit(
        Diagnostic::new(codes::QUEUE_OUT_OF_RANGE, message, queue.span)
            .label(format!("{kind} queues are 0 to {}", last(queues.len())))
            .frame(tile.pes.frame(queue.span, tile.span)),
    );
}

fn queue_clash(
    cx: &mut Session<'_>,
    tile: &Tile<'_>,
    first: &QueueBinding,
    second: &QueueBinding,
    target: &Target,
) {
    let (kind, number) = (queue_kind(second), second.queue);
    let message = match owner(cx, first.span, second.span) {
        Some(library) => format!("{kind} queue {number} belongs to {library}"),
        None => format!("{kind} queue {number} is initialized twice"),
    };
    let color = |queue: &QueueBinding| format!("for color {}", queue.color.index());
    let (mine, theirs) = users_first(cx, (first, first.span), (second, second.span));
    let is_first = std::ptr::eq(mine, first);
    let (a, b) = if is_first { ("first", "second") } else { ("second", "first") };
    let mut diagnostic = match (mine.import, theirs.import) {
        // Two imports of libraries: these are what can be changed.
        (Some(mine_at), Some(theirs_at)) if mine_at != theirs_at => {
            Diagnostic::new(codes::QUEUE_CLASH, message, mine_at)
                .label(format!("{a}, {}", color(mine)))
                .secondary(theirs_at, format!("{b}, {}", color(theirs)))
                .secondary(mine.span, "where the library does it")
        }
        _ => Diagnostic::new(codes::QUEUE_CLASH, message, mine.span)
            .label(format!("{a}, {}", color(mine)))
            .secondary(theirs.span, format!("{b}, {}", color(theirs))),
    };
    if !second.input && target.output_queue_bound && first.color != second.color {
        let name = target.id.name();
        diagnostic = diagnostic.help(format!(
            "an output queue of {name} carries one color: give each color its own queue"
        ));
    }
    let queues = if second.input { &target.input_queues } else { &target.output_queues };
    let used = |number: &u8| {
        let mut all = tile.typed.queues.iter();
        all.any(|queue| queue.input == second.input && queue.queue == *number)
    };
    // The first two are memcpy's, wherever it is used.
    let free = (2..=last(queues.len())).filter(|number| !used(number));
    let free: Vec<String> = free.map(|number| number.to_string()).collect();
    if !free.is_empty() {
        diagnostic = diagnostic
            .help(format!("{kind} queues that are free in this program: {}", free.join(", ")));
    }
    let place = diagnostic.span().unwrap_or(mine.span);
    cx.emit(diagnostic.frame(tile.pes.frame(place, tile.span)));
}

fn queue_kind(queue: &QueueBinding) -> &'static str {
    if queue.input { "input" } else { "output" }
}

fn last(n: usize) -> u8 {
    u8::try_from(n.saturating_sub(1)).unwrap_or(u8::MAX)
}
