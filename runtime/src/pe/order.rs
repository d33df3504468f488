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
    /// Whether the task of teardowns and flushes could have been started when another was picked, and whether it was.
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

/// How a task is picked.
struct Picked {
    /// Its queue, if a word starts it, and its id, if it is a local task, as bits.
    by: u64,
    own: u64,
    /// It has been activated more than once.
    is_twice: bool,
    /// Local tasks that could be picked as well, and queues that could start others if words came.
    ready: u64,
    open: u64,
    /// It is the task of teardowns and flushes; there is one, and it is another.
    is_teardown: bool,
    may_tear: bool,
    /// What the end of an operation that is under way starts.
    end: Option<u16>,
}

impl Seen {
    /// A task that might have been before the one that is picked; [`NO_TASK`] if it is not known which.
    fn before(&self, picked: &Picked, program: &PePlan, inputs: &[InputPlan]) -> Option<u16> {
        let &Picked { by, own, ready, open, end, .. } = picked;
        let ended = self.ended | program.fifo_events;
        let heard = open & self.heard;
        if end.is_some() {
            end
        } else if ready != 0 && (by != 0 || (ready | own) & ended != 0) {
            Some(program.local[ready.trailing_zeros() as usize])
        } else if heard != 0 {
            Some(inputs[heard.trailing_zeros() as usize].task)
        } else if picked.may_tear && self.torn {
            Some(program.local[TEARDOWN_TASK])
        } else {
            let waited = by & self.waited & !self.heard != 0;
            let tears = picked.is_teardown && self.tear_waited;
            let lost = picked.is_twice && own & ended != 0;
            (waited || tears || lost).then_some(NO_TASK)
        }
    }

    /// Keeps what is to be known when others are picked; `late`: words could have come by now.
    fn note(&mut self, picked: &Picked, late: bool) {
        if late {
            self.waited |= picked.open;
            self.tear_waited |= picked.may_tear;
        }
        self.heard |= picked.by;
        self.torn |= picked.is_teardown;
    }
}

/// What is known of a list's items, with their numbers.
fn known<T: Copy>(list: &[Option<T>]) -> impl Iterator<Item = (usize, T)> {
    list.iter().enumerate().filter_map(|(at, item)| Some((at, (*item)?)))
}

/// Tasks that have been activated more than once before they ran: the id of one, or a mark for none or several, in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Twice(u8);

impl Twice {
    pub(super) const NONE: Twice = Twice(u8::MAX);
    const SEVERAL: Twice = Twice(u8::MAX - 1);

    /// These, and one more.
    pub(super) fn and(self, id: u8) -> Twice {
        let one = Twice(id);
        if self == Twice::NONE || self == one { one } else { Twice::SEVERAL }
    }

    /// A task of this id may be one of them.
    fn may_be(self, id: u8) -> bool {
        self == Twice::SEVERAL || self == Twice(id)
    }

    /// What is left when one has been picked, and these are activated.
    pub(super) fn without(self, id: u8, activated: u64) -> Twice {
        if activated == 0 || self == Twice(id) { Twice::NONE } else { self }
    }
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
            && core.twice == Twice::NONE
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
        let own = if queue.is_none() { 1 << core.picked } else { 0 };
        let teardown = 1 << TEARDOWN_TASK;
        let picked = Picked {
            by,
            own,
            is_twice: own != 0 && core.twice.may_be(core.picked),
            ready: core.activated & !core.task_blocked,
            open: core.open_queues(program) & !by,
            is_teardown: own == teardown,
            may_tear: program.may_tear() && own != teardown,
            end: core.task_of_an_end(program),
        };
        let seen = self.orders.of(core.at.program.into(), program.tasks.len());
        if program.tasks[task].reads_times {
            seen.clocks[task].get_or_insert((at.t, core.at.number));
        }
        if let Some(other) = seen.before(&picked, program, core.bound.inputs(program)) {
            seen.places[task] = Some(Place { cycle: at.t, pe: core.at.number, other });
        }
        // No word comes sooner.
        let timing = &at.plan.timing;
        seen.note(&picked, at.t >= timing.hop + timing.ramp_down);
    }
}
