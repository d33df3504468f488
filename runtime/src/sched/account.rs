//! The loss account, from the regions' counters and what stands where.

use std::collections::BTreeMap;

use dflow_ir::loc::Loc;
use dflow_ir::program::GlobalId;

use super::plan::Plan;
use super::region::{OddPlace, OddTimes, Region};
use crate::account::{Account, Remark};
use crate::exec::odd::Odd;
use crate::outcome::Deadlock;
use crate::pe::code::Code;
use crate::pe::plan::PePlan;
use crate::stats::Stats;

/// The account of a machine that stands, with what is known of it.
pub(crate) fn account<C: Code>(
    plan: &Plan,
    regions: &[Region<C>],
    stats: &Stats,
    waiting: Deadlock,
) -> Account {
    let mut odd: BTreeMap<Place<'_>, (OddPlace, OddTimes)> = BTreeMap::new();
    for (&at, &times) in regions.iter().flat_map(|region| &region.odd) {
        let all = odd.entry(place(plan, at)).or_insert((at, OddTimes { count: 0, ..times }));
        let count = all.1.count + times.count;
        if (times.cycle, times.number) < (all.1.cycle, all.1.number) {
            *all = (at, times);
        }
        all.1.count = count;
    }
    let Deadlock { cycle, waiters, stuck, host_waiting, host: _, host_wait: _ } = waiting;
    let in_queues: u64 = stuck.iter().filter(|it| it.place.is_input()).map(|it| it.words).sum();
    let came = stats.delivered - stats.to_host;
    Account {
        cycle,
        sent: stats.sent,
        entered: stats.entered,
        copies: stats.copies,
        taken: came.saturating_sub(in_queues + stats.dropped_controls),
        to_host: stats.to_host,
        filtered: stats.filtered,
        hidden: stats.hidden,
        dropped: stats.dropped_controls,
        gone: stats.gone,
        left: stuck,
        outside: host_waiting,
        waiters,
        busy: false,
        remarks: odd.into_values().map(|(at, times)| remark(plan, at, times)).collect(),
    }
}

/// What is one place to a user, in whatever program of the mesh: source place, names of program,
/// task and variable, and what else tells one odd act from another.
type Place<'a> = (Loc, Option<&'a str>, Option<&'a str>, Option<&'a str>, Odd);

fn place(plan: &Plan, (program, task, loc, odd): OddPlace) -> Place<'_> {
    let program = plan.programs.get(usize::from(program));
    let task = program.and_then(|program| program.tasks.get(usize::from(task)));
    let (variable, odd) = match odd {
        Odd::LeftArray { global, .. } => {
            let global = program.and_then(|it| it.globals.get(global.as_u32() as usize));
            let nobody = Odd::LeftArray { global: GlobalId::from_u32(0), from: 0, to: 0 };
            (global.map(|(name, _)| name.as_str()), nobody)
        }
        Odd::Unwritten { global, .. } => {
            let global = program.and_then(|it| it.globals.get(global.as_u32() as usize));
            let nobody = Odd::Unwritten { global: GlobalId::from_u32(0), byte: 0 };
            (global.map(|(name, _)| name.as_str()), nobody)
        }
        Odd::Unheard { .. } | Odd::LeftMesh { .. } | Odd::AnswerAhead => (None, odd),
    };
    (loc, program.map(|it| it.name.as_str()), task.map(|it| it.name.as_str()), variable, odd)
}

fn remark(plan: &Plan, (program, task, loc, _): OddPlace, times: OddTimes) -> Remark {
    let program = plan.programs.get(usize::from(program));
    let task = program.and_then(|program| program.tasks.get(usize::from(task)));
    Remark {
        text: text(program, times.odd),
        program: program.map(|program| program.name.clone()),
        task: task.map(|task| task.name.clone()),
        loc,
        pe: plan.coord(times.number as usize),
        cycle: times.cycle,
        count: times.count,
    }
}

/// What was done, as a sentence.
pub(crate) fn text(program: Option<&PePlan>, odd: Odd) -> String {
    match odd {
        Odd::LeftArray { global, from, to } => {
            let global = program.and_then(|it| it.globals.get(global.as_u32() as usize));
            let (name, size) = global.map_or(("?", 0), |(name, size)| (name.as_str(), *size));
            let side = if to > size as i32 { "past the end" } else { "before the start" };
            format!(
                "a vector operation walks {side} of `{name}`: over bytes {from} to {} of {size}",
                to - 1
            )
        }
        Odd::LeftMesh { color, port } => format!(
            "a word of color {} left the program's rectangle to the {}: nobody takes it there",
            color.index(),
            port.name()
        ),
        Odd::AnswerAhead => {
            let call = "`unblock_cmd_stream` is called where each launch has been answered";
            format!("{call}: the next one does not wait for this PE")
        }
        Odd::Unwritten { global, byte } => {
            let global = program.and_then(|it| it.globals.get(global.as_u32() as usize));
            let name = global.map_or("?", |(name, _)| name.as_str());
            format!("`{name}` is read at byte {byte}, and nothing has written it: it is zero")
        }
        Odd::Unheard { color, entry, table } => {
            let color = color.index();
            let why = match entry {
                Some(entry) if table == 0 => {
                    format!("no task is bound to its entry point {entry}")
                }
                Some(entry) => {
                    let task = u16::from(entry) + u16::from(table);
                    format!(
                        "no task is bound to control task {task} (entry point {entry} of its queue's table, which \
                         begins at {table})"
                    )
                }
                None => "it names no task".to_owned(),
            };
            format!(
                "a control wavelet of color {color} was lost: {why}, no switch heard it, and no operation ended with it"
            )
        }
    }
}
