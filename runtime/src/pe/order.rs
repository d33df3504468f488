//! Where times decide which task is first (`flow`: spec/flow.md, section 5).
//!
//! Of a PE's program, what each task does is given by the words that it finds, in the order of their colors; which
//! task comes next is, too, while one thing alone can start it. So whenever a task is picked it is asked: may another
//! be first in a run with other times, or may it have been activated once and not twice? Of a task of which that is known,
//! nothing is looked for any more.
//!
//! Invariants: what is kept is by program, as PEs of a program do the same; a task is noted rather once too often.

use dflow_ir::inst::Unblock;
use dflow_ir::mesh::Color;

use super::code::Code;
use super::core::{Completion, Core, Outgoing, bits};
use super::op::{Op, Output};
use super::plan::{InputPlan, NO_TASK, PePlan};
use super::queues::TEARDOWN_TASK;
use super::visit::Visit;
use crate::sched::region::Region;

/// What is known.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    programs: Vec<Seen>,
    /// By color: cycle, and number of a PE in the whole rectangle, of a control wavelet that ended an operation, or that
    /// nobody heard. It is the one or the other by whether it comes before the operation has begun.
    commands: [Option<(u64, u32)>; Color::COUNT],
    /// By color: number of a PE whose operations send it from several queues.
    senders: [Option<u32>; Color::COUNT],
}

/// Of a program.
#[derive(Debug)]
struct Seen {
    /// By task: where another might have been first.
    places: Vec<Option<Place>>,
    /// By task: where it read the clock, or asked about queues: cycle, and number of the PE.
    clocks: Vec<Option<(u64, u32)>>,
    /// Local ids that ends of operations have activated or unblocked, as bits.
    ended: u64,
    /// Input queues, as bits: those that could have started a task when another was picked, and
    /// those whose words have started any.
    waited: u64,
    heard: u64,
    /// Likewise, of the task of teardowns and flushes.
    tear_waited: bool,
    torn: bool,
}

/// Where and when a task was picked first, and beside what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) cycle: u64,
    /// Number of the PE in the whole rectangle.
    pub(crate) pe: u32,
    /// The task that might have been first; [`NO_TASK`] for one of several.
    pub(crate) other: u16,
}

impl Seen {
    fn new(tasks: usize) -> Seen {
        let (places, clocks) = (vec![None; tasks], vec![None; tasks]);
        let (tear_waited, torn) = (false, false);
        Seen { places, clocks, ended: 1 << TEARDOWN_TASK, waited: 0, heard: 0, tear_waited, torn }
    }
}

/// What is known of a list's items, with their numbers.
fn known<T: Copy>(list: &[Option<T>]) -> impl Iterator<Item = (usize, T)> {
    list.iter().enumerate().filter_map(|(at, item)| Some((at, (*item)?)))
}

impl Orders {
    /// Tasks before which others might have been, with program and task.
    pub(crate) fn places(&self) -> impl Iterator<Item = (usize, usize, Place)> {
        self.programs.iter().enumerate().flat_map(|(program, seen)| {
            known(&seen.places).map(move |(task, place)| (program, task, place))
        })
    }

    /// Tasks that read clocks, likewise: cycle and PE.
    pub(crate) fn clocks(&self) -> impl Iterator<Item = (usize, usize, (u64, u32))> {
        self.programs.iter().enumerate().flat_map(|(program, seen)| {
            known(&seen.clocks).map(move |(task, place)| (program, task, place))
        })
    }

    /// Control wavelets, by color: cycle and PE.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (u8, (u64, u32))> {
        (0..).zip(self.commands).filter_map(|(color, first)| Some((color, first?)))
    }

    /// Colors that a PE sends from several queues.
    pub(crate) fn senders(&self) -> impl Iterator<Item = (u8, u32)> {
        (0..).zip(self.senders).filter_map(|(color, pe)| Some((color, pe?)))
    }

    /// A control wavelet ends an operation, or nobody hears it.
    pub(super) fn note_command(&mut self, color: u8, cycle: u64, pe: u32) {
        if let Some(first) = self.commands.get_mut(usize::from(color)) {
            first.get_or_insert((cycle, pe));
        }
    }

    fn knows(&self, program: u16, task: u16) -> bool {
        let seen = self.programs.get(usize::from(program));
        seen.and_then(|seen| seen.places.get(usize::from(task))).is_some_and(Option::is_some)
    }

    fn of(&mut self, program: usize, tasks: usize) -> &mut Seen {
        if self.programs.len() <= program {
            self.programs.resize_with(program + 1, || Seen::new(0));
        }
        let seen = &mut self.programs[program];
        if seen.places.len() < tasks {
            *seen = Seen::new(tasks);
        }
        seen
    }
}

impl<C: Code> Core<C> {
    /// Input queues of which a word, if it came, could start a task.
    fn open_queues(&self, program: &PePlan) -> u64 {
        // Those that operations use as well: these end, and control wavelets may pass them.
        let may = match (program.hears, program.hears_data_only) {
            (false, _) => 0,
            (true, true) => program.heard,
            (true, false) => u64::MAX,
        };
        let open = |input: &InputPlan| {
            input.color.is_some() && self.channel_blocked >> input.channel & 1 == 0
        };
        let inputs = self.bound.inputs(program);
        let all = 1u64.checked_shl(inputs.len() as u32).map_or(u64::MAX, |end| end - 1);
        bits(may & all)
            .filter(|&queue| open(&inputs[queue]))
            .fold(0, |open, queue| open | 1 << queue)
    }

    /// An operation that has begun, and whose end starts or unblocks a task.
    fn task_of_an_end(&self, program: &PePlan) -> Option<u16> {
        let local = &program.local;
        let task = |activate: Option<u8>, unblock: Option<Unblock>| match (activate, unblock) {
            (Some(id), _) | (None, Some(Unblock::Task(id))) => local.get(usize::from(id)).copied(),
            (None, _) => None,
        };
        let tells = |done: &Completion| done.activate.is_some() || done.unblock.is_some();
        let due = self.due.iter().map(|(_, done)| done).find(|done| tells(done));
        let may = |op: &Op<C::Op>| op.tells() || op.has_fifo && program.fifo_events != 0;
        let begun = || self.threads.iter().find(|op| !op.ended && may(op));
        match due {
            Some(done) => Some(task(done.activate, done.unblock).unwrap_or(NO_TASK)),
            None => begun().map(|op| task(op.activate, op.unblock).unwrap_or(NO_TASK)),
        }
    }
}

impl<C: Code> Region<C> {
    /// What is due in the visit's cycle starts and unblocks tasks.
    pub(super) fn note_ends(&mut self, at: &Visit<'_, C>, core: &Core<C>) {
        // Ids are judged when they are used.
        let bit = |id: u8| 1u64.checked_shl(id.into()).unwrap_or(0);
        let due = core.due.iter().take_while(|(due, _)| *due <= at.t);
        let ended = due.fold(0, |ended, (_, done)| {
            let unblocked = match done.unblock {
                Some(Unblock::Task(id)) => bit(id),
                Some(Unblock::Channel(_)) | None => 0,
            };
            ended | unblocked | done.activate.map_or(0, bit)
        });
        self.orders.of(core.at.program.into(), at.program.tasks.len()).ended |= ended;
    }

    /// An operation that sends is to begin.
    #[inline]
    pub(super) fn note_sender(&mut self, core: &Core<C>, output: Output) {
        let Output { queue, color, .. } = output;
        let has_sent = |(other, output): (usize, &Outgoing)| {
            other != usize::from(queue) && output.sent.is_some_and(|sent| sent.color == color)
        };
        let sends = |other: Output| other.queue != queue && other.color == color;
        let others = core.owned_out & !(1 << queue) != 0;
        if core.outputs.iter().any(has_sent)
            || others && core.operations().filter_map(|op| op.output).any(sends)
        {
            let first = &mut self.orders.senders[usize::from(color)];
            *first = Some(first.map_or(core.at.number, |first| first.min(core.at.number)));
        }
    }

    /// A task has been picked, for a word of a queue if one is named.
    #[inline]
    pub(super) fn note_order(&mut self, at: &Visit<'_, C>, core: &Core<C>, queue: Option<usize>) {
        let program = at.program;
        let alone = core.threads.is_empty() && core.due.is_empty() && core.activated == 0;
        if alone
            && core.twice == 0
            && !program.may_tear()
            && !program.hears
            && !program.tasks[usize::from(core.task)].reads_times
        {
            return;
        }
        if !self.orders.knows(core.at.program, core.task) {
            self.look_at_order(at, core, queue);
        }
    }

    fn look_at_order(&mut self, at: &Visit<'_, C>, core: &Core<C>, queue: Option<usize>) {
        let (program, task) = (at.program, usize::from(core.task));
        let by = queue.map_or(0, |queue| 1 << queue);
        let inputs = core.bound.inputs(program);
        let open = core.open_queues(program) & !by;
        let ready = core.activated & !core.task_blocked;
        let seen = self.orders.of(core.at.program.into(), program.tasks.len());
        let local = |ids: u64| program.local[ids.trailing_zeros() as usize];
        let task_of = |queues: u64| inputs[queues.trailing_zeros() as usize].task;
        let own = if by == 0 { 1 << core.picked } else { 0 };
        if program.tasks[task].reads_times {
            seen.clocks[task].get_or_insert((at.t, core.at.number));
        }
        let teardown = program.local[TEARDOWN_TASK];
        let is_teardown = by == 0 && usize::from(core.picked) == TEARDOWN_TASK;
        let ended = seen.ended | program.fifo_events;
        let other = if let Some(other) = core.task_of_an_end(program) {
            Some(other)
        } else if ready != 0 && (by != 0 || (ready | own) & ended != 0) {
            Some(local(ready))
        } else if open & seen.heard != 0 {
            Some(task_of(open & seen.heard))
        } else if by & seen.waited & !seen.heard != 0
            || is_teardown && seen.tear_waited
            || core.twice & own & ended != 0
        {
            Some(NO_TASK)
        } else if seen.torn && !is_teardown {
            Some(teardown)
        } else {
            None
        };
        // No word comes so soon.
        let timing = &at.plan.timing;
        if at.t >= timing.hop + timing.ramp_down {
            seen.waited |= open;
            seen.tear_waited |= teardown != NO_TASK && !is_teardown;
        }
        seen.heard |= by;
        seen.torn |= is_teardown;
        if let Some(other) = other {
            seen.places[task] = Some(Place { cycle: at.t, pe: core.at.number, other });
        }
    }
}
