//! Who computes, for the report of a run that something from outside ended.

use std::collections::BTreeMap;

use dflow_ir::loc::Loc;

use super::plan::Plan;
use super::region::Region;
use crate::doing::Busy;
use crate::exec::Stop;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::pe::main::{Main, Next};

/// Names of program and task, place: equal to a user.
type Key<'a> = (&'a str, Option<&'a str>, Loc);

/// PEs whose main thread has a task that waits for nothing.
pub(crate) fn busy<C: Code>(plan: &Plan, code: &C, regions: &[Region<C>]) -> Vec<Busy> {
    let mut groups: BTreeMap<Key<'_>, (usize, usize, usize)> = BTreeMap::new();
    for region in regions {
        for core in region.cores.iter().flatten() {
            let Some(suspended) = computes(core) else { continue };
            let number = core.at.number as usize;
            let program = &plan.programs[usize::from(core.at.program)];
            let task = program.tasks.get(usize::from(core.task));
            let place = suspended.then(|| code.place(core.at, &core.state)).flatten();
            let loc = place.or(task.map(|task| task.loc)).unwrap_or_default();
            let key = (program.name.as_str(), task.map(|task| task.name.as_str()), loc);
            let group = groups.entry(key).or_insert((0, number, number));
            *group = (group.0 + 1, group.1.min(number), group.2.max(number));
        }
    }
    let mut all: Vec<Busy> = groups
        .into_iter()
        .map(|((program, task, loc), (count, first, last))| Busy {
            count,
            first: plan.coord(first),
            last: plan.coord(last),
            program: program.to_owned(),
            task: task.map(str::to_owned),
            loc,
        })
        .collect();
    all.sort_by_key(|busy| (std::cmp::Reverse(busy.count), busy.first.y, busy.first.x));
    all
}

/// Whether a main thread has slots to spend, and if so whether its code stands at a suspension point.
pub(super) fn computes<C: Code>(core: &Core<C>) -> Option<bool> {
    match &core.main {
        Main::Idle | Main::Vector(_) | Main::Launch(_) => None,
        Main::Ready { next: Next::Start { .. }, .. } => Some(false),
        Main::Ready { next: Next::Resume { .. }, .. } => Some(true),
        Main::Counting { .. } => Some(!matches!(core.segment.stop, Stop::Return | Stop::Trap(_))),
    }
}
