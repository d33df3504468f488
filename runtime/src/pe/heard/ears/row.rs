//! Rows of words that start tasks of one function: as long as each takes as many slots as the last one that ran,
//! it is known in which cycle the next one begins, so all are run together.
//!
//! Invariant: how many slots they take is a guess until they have run; where it is wrong, the row ends with the
//! task that came to something else, which began in its cycle all the same.

use dflow_ir::cost::Slots;
use dflow_ir::program::FuncId;

#[cfg(test)]
use super::Hears;
use super::{Ear, Ears, MOST};
use crate::fabric::pipe::Pipe;
use crate::pe::ahead::{AHEAD, Came};
use crate::pe::code::Code;
use crate::pe::core::{Core, Fault};
use crate::pe::main::{Main, run_alike};
use crate::pe::plan::TaskPlan;
use crate::pe::visit::Visit;
use crate::sched::region::Region;

/// Most tasks that are run together.
const TOGETHER: usize = 32;

/// A word of a queue, by number, starts a task in a cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    ear: usize,
    t: u64,
}

/// Words that start tasks, and the arguments that they become.
#[derive(Debug, Default)]
pub(super) struct Row {
    starts: [Heard; TOGETHER],
    args: [[u64; 2]; TOGETHER],
    count: usize,
    /// Arguments of each, and the task of the first.
    params: usize,
    task: u16,
    /// Slots of each.
    slots: Slots,
    /// All are of one queue, and begin so many cycles after each other.
    period: Option<u64>,
}

impl Row {
    /// Nothing is in it, and tasks like this one may be.
    fn begin(&mut self, task: u16, params: usize, slots: Slots) {
        (self.count, self.task, self.params, self.slots) = (0, task, params, slots);
        self.period = None;
    }

    fn push(&mut self, start: Heard, args: [u64; 2]) {
        (self.starts[self.count], self.args[self.count]) = (start, args);
        self.count += 1;
    }

    /// The first cycle, the distance and the number of some of its tasks, from the first on, if that is known.
    fn alike(&self, starts: &[Heard]) -> Option<(u64, u64, u64)> {
        let (first, period) = starts.first().zip(self.period)?;
        let count = starts.len() as u64;
        Some((first.t, if count > 1 { period } else { 0 }, count))
    }

    fn is_full(&self) -> bool {
        self.count == TOGETHER
    }
}

/// The words of a queue that may be in a row: those of the first packet in its pipe.
struct Line<'a> {
    pipe: &'a Pipe,
    words: &'a [u32],
    /// How many of them are in the row, and when all of the packet can be seen.
    taken: usize,
    all: u64,
    task: &'a TaskPlan,
}

impl<C: Code> Region<C> {
    /// Puts words in a row that start tasks one after the other, the first one of a queue in cycle `t`, if each of
    /// these tasks takes as many slots as the last one of its kind; whether there are any: not if that is not known, or
    /// somebody else may have slots before the main thread. Of each queue no more than the first packet in its
    /// pipe. When words can be seen is foreseen in `ears` until the row has been heard.
    pub(super) fn row(
        &self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ears: &mut Ears,
        (mut number, mut t): (usize, u64),
        row: &mut Row,
    ) -> bool {
        let Some(func) = self.begin_row(at, core, &ears.all[number], (t, row)) else {
            return false;
        };
        let (timing, total) = (&at.plan.timing, u64::from(row.slots.all.max(1)));
        let (mut all, mut by) = (core.tasks_ahead.slots(), core.main_from);
        let mut lines: [Option<Line<'_>>; MOST] = [const { None }; MOST];
        if ears.count == 1 {
            if let Some(line) = self.line(at, &ears.all[0], func) {
                self.row_of_one(at, core, (ears, &line), t, row);
            }
            return row.count != 0;
        }
        while !row.is_full() && t < ears.until(at, core, (all, by)) {
            if t + timing.task_start > at.t + AHEAD {
                break;
            }
            let (line, ear) = (&mut lines[number], &mut ears.all[number]);
            if line.is_none() {
                *line = self.line(at, ear, func);
            }
            let Some(line) = line else { break };
            row.push(Heard { ear: number, t }, line.task.args(line.words[line.taken]).0);
            line.taken += 1;
            if line.taken == line.words.len() {
                break;
            }
            (all, by) = (all + total, t + timing.task_start + total);
            let seen = || line.pipe.arrival_of(line.taken) + timing.ramp_down;
            ear.next = if line.all <= by { by } else { seen() };
            let last = ear.channel;
            t = ears.next().max(by);
            let Some(next) = ears.pick(last, t) else { break };
            number = next;
        }
        row.count != 0
    }

    /// Likewise, where there is but one queue that a task could be for.
    fn row_of_one(
        &self,
        at: &Visit<'_, C>,
        core: &Core<C>,
        (ears, line): (&Ears, &Line<'_>),
        mut t: u64,
        row: &mut Row,
    ) {
        let (timing, total) = (&at.plan.timing, u64::from(row.slots.all.max(1)));
        let (mut all, mut by) = (core.tasks_ahead.slots(), core.main_from);
        let far = (at.t + AHEAD + 1).saturating_sub(timing.task_start);
        let period = timing.task_start + total;
        row.period = Some(period);
        for (word, number) in line.words.iter().zip(1..) {
            if row.is_full() || t >= ears.until(at, core, (all, by)).min(far) {
                return;
            }
            row.push(Heard { ear: 0, t }, line.task.args(*word).0);
            (all, by) = (all + total, t + period);
            t = by;
            if line.all > by && number < line.words.len() {
                t = by.max(line.pipe.arrival_of(number) + timing.ramp_down);
            }
            if t != by {
                row.period = None;
            }
        }
    }

    /// Empties a row whose first task would begin in cycle `t` for a word of a queue; its function.
    fn begin_row(
        &self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        first: &Ear,
        (t, row): (u64, &mut Row),
    ) -> Option<FuncId> {
        #[cfg(test)]
        if self.hears != Hears::InRows {
            return None;
        }
        let task = at.program.inputs[usize::from(first.queue)].task;
        let TaskPlan { func, looks, ref params, .. } = at.program.tasks[usize::from(task)];
        // What looks at registers does so in its own cycle, and what is taped is so one by one. Until the slots are
        // shared anew it is not known who has some before the main thread.
        if first.is_down || looks || self.tape.is_some() || core.unshared {
            return None;
        }
        let slots = self.task_slots.last(core.at.program, task)?;
        let free = core.slots_before_main(u64::MAX, t, slots.all.max(1).into()) == 0;
        row.begin(task, params.len().min(2), slots);
        free.then_some(func)
    }

    /// The words of a queue that may be in a row, if they start tasks of a function.
    fn line<'a>(&'a self, at: &Visit<'a, C>, ear: &Ear, func: FuncId) -> Option<Line<'a>> {
        let input = &at.program.inputs[usize::from(ear.queue)];
        let task = &at.program.tasks[usize::from(input.task)];
        let alike = !ear.is_down && task.func == func && input.rotation.is_none();
        let pipe = alike.then(|| &self.pipes[ear.pipe as usize])?;
        let all = pipe.all_arrived() + at.plan.timing.ramp_down;
        Some(Line { pipe, words: pipe.front(TOGETHER), taken: 0, all, task })
    }

    /// Has words start tasks together, as far as each comes to what is expected, and the first one that does not;
    /// whether others see nothing of them.
    pub(super) fn hear_row(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ears: &mut Ears,
        row: &Row,
    ) -> Result<bool, Fault> {
        core.task = row.task;
        let router = self.routers[at.pe as usize].as_deref();
        let done = run_alike(at, core, router, (&row.args[..row.count], row.params), row.slots);
        let same = core.segment.is_plain(row.slots);
        let plain = done - usize::from(!same);
        self.note_row(at, core, (ears, row), plain);
        self.heard_alike(at, core, ears, (row, &row.starts[..plain]));
        if same {
            core.end_task();
            return Ok(true);
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::HeardOther);
        let Heard { ear, t } = row.starts[plain];
        let ear = &mut ears.all[ear];
        let payload = self.take_heard(&Visit { t, ..*at }, core, ear);
        self.begin_heard(at, core, ear, (t, payload));
        self.heard_other(at, core)
    }

    /// So many tasks of a row have been picked.
    fn note_row(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (ears, row): (&Ears, &Row),
        count: usize,
    ) {
        for &Heard { ear, t } in &row.starts[..count] {
            let queue = usize::from(ears.all[ear].queue);
            core.task = at.program.inputs[queue].task;
            self.note_order(&Visit { t, ..*at }, core, Some(queue));
            if ears.count == 1 {
                break;
            }
        }
        core.task = row.task;
    }

    /// A task that a word started has run its first segment, whose slots it is yet to take; whether others see
    /// nothing of it.
    fn heard_other(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Result<bool, Fault> {
        let Main::Ready { from: now, .. } = core.main else { return Ok(false) };
        let (key, slots) = ((core.at.program, core.task), core.segment.slots());
        let total = slots.all.max(1);
        self.takes_slots(core, now, (total, slots.assumed));
        let unseen = match self.came_ahead(at, core, (now, total))? {
            Came::On => self.run_ahead(at, core).map(|_| false)?,
            Came::Through => core.segment.acts.is_empty(),
            Came::Rests => false,
        };
        self.task_slots.note(key, unseen.then_some(slots));
        Ok(unseen)
    }

    /// Words have each started a task that took so many slots and did nothing that others see.
    fn heard_alike(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ears: &mut Ears,
        (row, starts): (&Row, &[Heard]),
    ) {
        let (start, slots) = (at.plan.timing.task_start, row.slots);
        let total = slots.all.max(1);
        let all = row.alike(starts);
        for number in 0..ears.count {
            let pass = |t, period, count| {
                self.pass_down(at, core, &ears.all[number], (t, period), count);
            };
            let of_it = starts.iter().filter(|start| start.ear == number).map(|start| start.t);
            evenly(all, of_it, pass);
            let ear = &mut ears.all[number];
            if !ear.is_down {
                ear.next = self.in_view(at, ear.pipe);
            }
        }
        evenly(all, starts.iter().map(|start| start.t), |t, period, count| {
            self.take_slots_evenly(core, (t + start, period), count, (total, slots.assumed));
            core.tasks_ahead.begin_alike((t + start, period), total, count);
        });
        if let Some(refrain) = &mut self.refrain {
            let task = |ear: usize| at.program.inputs[usize::from(ears.all[ear].queue)].task;
            refrain.note_all(
                at.pe,
                self.now,
                starts.iter().map(|start| (start.t, task(start.ear))),
            );
        }
        let Some(last) = starts.last() else { return };
        let count = starts.len() as u64;
        self.stats.tasks += count;
        self.stats.slots += count * u64::from(total);
        #[cfg(test)]
        starts.iter().for_each(|_| {
            crate::sched::reached::note(crate::sched::reached::Reached::HeardAlike);
        });
        core.main_from = last.t + start + u64::from(total);
        core.picked = ears.all[last.ear].channel;
        self.active_until = self.active_until.max(core.main_from);
        core.acted.acted = true;
    }
}

/// Has what follows from cycles told for as many of them at once as are the same number of cycles apart: the first, how
/// far apart, and how many; `all`: that is known of all of them.
fn evenly(
    all: Option<(u64, u64, u64)>,
    cycles: impl Iterator<Item = u64>,
    mut of: impl FnMut(u64, u64, u64),
) {
    if let Some((first, period, count)) = all {
        return of(first, period, count);
    }
    let mut now = None;
    for cycle in cycles {
        now = match now {
            Some((first, _, 1)) => Some((first, cycle - first, 2)),
            Some((first, period, count)) if first + period * count == cycle => {
                Some((first, period, count + 1))
            }
            Some((first, period, count)) => {
                of(first, period, count);
                Some((cycle, 0, 1))
            }
            None => Some((cycle, 0, 1)),
        };
    }
    if let Some((first, period, count)) = now {
        of(first, period, count);
    }
}
