//! By which ways words went, for people and programs.

use dflow_runtime::order::{Order, OrderPlace};
use dflow_runtime::ways::{Rounds, Stretches, Ways};
use serde_json::{Value, json};

/// A table: a line per color and way; behind it, what `flow` approximated. `delivered`: words that
/// came to queues and the host.
pub(crate) fn text(ways: &Ways, delivered: u64) -> String {
    let mut text = String::new();
    for (at, (color, way, words)) in ways.rows().enumerate() {
        if at == 0 {
            text.push_str("\nby which ways words went (words that cores and the host sent)");
        }
        let why = way.why().map_or(String::new(), |why| format!(": {}", why.name()));
        text.push_str(&format!("\n  color {color:<4} {words:>14}  {}{why}", way.name()));
    }
    let Stretches { operations, flowing, stretches, elements, taken } = ways.stretches;
    if operations != 0 {
        let single = delivered.saturating_sub(taken);
        text.push_str("\nwhat went by stretches (cycles approximated)");
        for (what, number, of) in [
            ("operations", flowing, format!("of {operations} on queues")),
            ("elements", elements, format!("in {stretches} stretches")),
            ("words taken", taken, format!("in stretches, {single} one by one")),
        ] {
            text.push_str(&format!("\n  {what:<11} {number:>13}  {of}"));
        }
    }
    let Rounds { count, cycles } = ways.rounds;
    if count != 0 {
        text.push_str("\nwhat was done again as before, without looking at cycles");
        text.push_str(&format!("\n  rounds      {count:>13}  of {cycles} cycles in all"));
    }
    text
}

/// The rows of the table.
pub(crate) fn rows_json(ways: &Ways) -> Value {
    let row = |(color, way, words): (usize, dflow_runtime::ways::Way, u64)| {
        let why = way.why().map(|why| why.name());
        json!({ "color": color, "words": words, "way": way.name(), "why": why })
    };
    ways.rows().map(row).collect()
}

/// What was done again.
pub(crate) fn rounds_json(rounds: &Rounds) -> Value {
    let Rounds { count, cycles } = rounds;
    json!({ "rounds": count, "cycles": cycles })
}

/// What went by stretches.
pub(crate) fn stretches_json(stretches: &Stretches) -> Value {
    let Stretches { operations, flowing, stretches, elements, taken } = stretches;
    json!({
        "operations": operations,
        "operations_in_stretches": flowing,
        "stretches": stretches,
        "elements_in_stretches": elements,
        "words_taken_in_stretches": taken,
    })
}

/// Most places that are shown to people.
const MOST_PLACES: usize = 12;

/// Where times decided what came first: a line each.
pub(crate) fn orders_text(orders: &[OrderPlace]) -> String {
    let mut text = String::new();
    if !orders.is_empty() {
        text.push_str(
            "\nwhere times decided what came first (data may differ from those of `exact`)",
        );
    }
    for OrderPlace { what, pe, cycle } in orders.iter().take(MOST_PLACES) {
        let what = match what {
            Order::Tasks { program, task, other: Some(other) } if task != other => {
                format!("tasks `{task}` and `{other}` of `{program}`")
            }
            Order::Tasks { program, task, .. } => format!("task `{task}` of `{program}`"),
            Order::Clock { program, task } => {
                format!("task `{task}` of `{program}` reads the clock or the state of queues")
            }
            Order::Commands { color } => {
                format!(
                    "control wavelets of color {} that end operations, or find none",
                    color.index()
                )
            }
            Order::Senders { color } => {
                format!("words of color {} from several sides or queues", color.index())
            }
        };
        let when = cycle.map_or(String::new(), |cycle| format!(" in cycle {cycle}"));
        text.push_str(&format!("\n  {what}, as on PE ({}, {}){when}", pe.x, pe.y));
    }
    if orders.len() > MOST_PLACES {
        text.push_str(&format!("\n  and {} more: --stats json", orders.len() - MOST_PLACES));
    }
    text
}

/// Likewise, for programs.
pub(crate) fn orders_json(orders: &[OrderPlace]) -> Value {
    let place = |OrderPlace { what, pe, cycle }: &OrderPlace| {
        let (kind, color, program, task, other) = match what {
            Order::Tasks { program, task, other } => {
                ("tasks", None, Some(program), Some(task), other.as_ref())
            }
            Order::Clock { program, task } => ("clock", None, Some(program), Some(task), None),
            Order::Commands { color } => ("commands", Some(color.index()), None, None, None),
            Order::Senders { color } => ("senders", Some(color.index()), None, None, None),
        };
        json!({
            "what": kind, "color": color, "program": program, "task": task, "other": other,
            "pe": [pe.x, pe.y], "cycle": cycle,
        })
    };
    orders.iter().map(place).collect()
}
