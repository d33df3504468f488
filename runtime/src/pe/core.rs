//! A core's state.

use std::collections::VecDeque;

use dflow_ir::inst::{FlagOp, MainPriority, Unblock};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::Color;

use super::ahead::{LaterAct, TasksAhead};
use super::bind::Bindings;
use super::clock::Clock;
use super::code::{Code, Pe};
use super::main::Main;
use super::op::Op;
use super::order::Twice;
use super::plan::{IDS, InputPlan, NO_TASK, PePlan};
use super::queues::Flushes;
use super::queues::TEARDOWN_TASK;
use super::registers::CoreRegisters;
use super::share::Steps;
use super::sparse::Sparse;
use super::steady::Steady;
use super::threads::Threads;
use super::turns::{CALM, Turns, Watch};
use crate::exec::Segment;
use crate::fabric::channel::Outlet;
use crate::fabric::ring::{NEVER, Ring, Slot};
use crate::rare::Rare;
use crate::trap::TrapKind;

/// State of a core, made at its first use.
pub(crate) struct Core<C: Code> {
    /// It has been through all cycles before this one.
    pub(crate) until: u64,
    /// The last of these it has been through alone (`pe::alone`).
    pub(crate) alone: bool,
    /// It does an element in every cycle, and nobody looks; visits in a row in which it did.
    pub(super) steady: Option<Box<Steady>>,
    pub(super) busy_visits: u8,
    /// Its microthreads take turns, and nobody looks; visits in a row that were calm, after how many it is
    /// watched, and what it does then.
    pub(super) in_turn: Option<Box<Turns>>,
    pub(super) calm_visits: u8,
    pub(super) patience: u8,
    pub(crate) watched: Option<Box<Watch>>,
    pub(crate) at: Pe,
    pub(crate) state: C::State,
    /// Up to the last that has a color.
    pub(crate) inputs: Box<[Input]>,
    /// Those that operations have used.
    pub(crate) outputs: Sparse<Outgoing>,
    /// Queues that hold words, as bits.
    pub(crate) arrived: u64,
    pub(crate) leaving: u64,
    /// Output queues without a place, as bits.
    pub(crate) full: u64,
    /// No word goes up the ramp before this cycle.
    pub(super) departs: u64,
    /// Ways of its words, by color.
    pub(crate) outlets: Sparse<Outlet>,
    /// Colors that go through routers because others used their way, as bits.
    pub(crate) retry: u32,
    /// What the current visit sees.
    pub(crate) sight: Sight,
    pub(crate) main: Main<C::Op>,
    /// The main thread has run ahead: it does nothing before this cycle, and acts of it are to come.
    pub(crate) main_from: u64,
    /// The tasks that it has run ahead over.
    pub(super) tasks_ahead: TasksAhead,
    pub(crate) later: VecDeque<LaterAct>,
    /// Task that the main thread runs.
    pub(crate) task: u16,
    pub(crate) segment: Segment,
    pub(crate) threads: Threads<C::Op>,
    /// Queues used by operations, as bits.
    pub(crate) owned_in: u64,
    pub(crate) owned_out: u64,
    /// Of these, queues of operations that go by stretches (`flow`).
    pub(crate) flowing_in: u64,
    pub(crate) flowing_out: u64,
    /// Of those that would, if a pipe led there.
    pub(crate) awaits_pipes: u64,
    /// Input queues of those in a stretch.
    pub(crate) busy_in: u64,
    /// The slots are to be shared anew among those in a stretch, before the visit ends.
    pub(super) unshared: bool,
    /// The slots are to be shared anew, but the number of those in a stretch is the same.
    pub(super) delayed: bool,
    /// What operations that go element by element use of the slots.
    pub(super) steps: Steps,
    /// When one that waits may begin a stretch, or the main thread a task.
    pub(super) begins: u64,
    /// Microthread that issued last.
    pub(crate) last_thread: u8,
    /// Id of the task that was picked last.
    pub(super) picked: u8,
    /// Activated tasks that have been activated more than once.
    pub(super) twice: Twice,
    pub(crate) activated: u64,
    pub(crate) task_blocked: u64,
    pub(crate) channel_blocked: u64,
    pub(crate) thread_blocked: u64,
    /// Task ids and channels that are picked before others.
    pub(crate) raised_tasks: u64,
    pub(crate) raised_channels: u64,
    /// Where the main thread stands among the microthreads.
    pub(crate) main_priority: MainPriority,
    /// Flushes of input and output queues.
    pub(crate) flushes: [Flushes; 2],
    /// Counters of the rotations.
    pub(crate) turns: Rare<u16>,
    pub(crate) bound: Bindings,
    /// Exclusive or of marked entry points, shifted to its place in a payload.
    pub(crate) transform_mask: u32,
    /// Cycles down the ramp.
    pub(crate) ramp_down: u64,
    /// Completions to come, by cycle.
    pub(crate) due: VecDeque<(u64, Completion)>,
    pub(crate) clock: Clock,
    pub(crate) registers: CoreRegisters,
    /// A trap ended it.
    pub(crate) dead: bool,
    /// What the current visit has done.
    pub(crate) acted: Acted,
}

/// An output queue's state.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// Without places until a word comes.
    pub(crate) ring: Ring,
    /// Its head finds no place on the ramp up to this cycle.
    pub(super) held: u64,
    pub(crate) sent: Option<Sent>,
}

/// The operation that used an output queue last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) color: u8,
    pub(crate) task: u16,
    pub(crate) loc: Loc,
    /// Words of the color that have left the queue, by this operation and those before.
    pub(crate) words: u64,
}

/// An input queue's state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    pub(crate) ring: Ring,
    /// Stamp of the last data word that came.
    pub(crate) last: Option<u64>,
    /// Words that have been taken from it.
    pub(crate) taken: u32,
    /// An operation has read it, some time.
    pub(crate) is_read: bool,
}

impl Input {
    /// A queue of so many places.
    pub(super) fn new(places: u32) -> Input {
        Input { ring: Ring::unopened(places), last: None, taken: 0, is_read: false }
    }
}

/// What an ended operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Microthread that becomes free.
    pub(crate) microthread: Option<u8>,
    pub(crate) activate: Option<u8>,
    pub(crate) unblock: Option<Unblock>,
    pub(crate) task: u16,
    pub(crate) loc: Loc,
}

/// What a core sees of its queues in a cycle, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Input queues with a word at the head, and those where it is a control wavelet.
    pub(crate) words: u64,
    pub(crate) controls: u64,
    /// Output queues that had no place when the cycle began.
    pub(crate) full: u64,
}

/// What a visit did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acted {
    /// Something that others in the core may have waited for.
    pub(crate) acted: bool,
    /// The main thread counted, no more.
    pub(crate) counted: bool,
    /// A queue takes another color from the next cycle on.
    pub(crate) bound: bool,
}

/// A trap to be raised, without the PE's coordinates.
pub(crate) struct Fault {
    pub(crate) kind: Box<TrapKind>,
    pub(crate) task: u16,
    pub(crate) loc: Loc,
    pub(crate) color: Option<Color>,
}

impl<C: Code> Core<C> {
    /// A core on which nothing has happened; initial flags are in force.
    pub(crate) fn new(program: &PePlan, at: Pe, code: &C) -> Core<C> {
        let input = |input: &super::plan::InputPlan| {
            Input::new(if input.color.is_some() { input.places } else { 0 })
        };
        let bound = program.inputs.iter().rposition(|input| input.color.is_some());
        let bound = bound.map_or(0, |last| last + 1);
        let mut core = Core {
            until: 0,
            alone: false,
            steady: None,
            busy_visits: 0,
            in_turn: None,
            calm_visits: 0,
            patience: CALM,
            watched: None,
            at,
            state: code.state(at),
            inputs: program.inputs[..bound].iter().map(input).collect(),
            outputs: Sparse::default(),
            arrived: 0,
            leaving: 0,
            full: 0,
            departs: 0,
            outlets: Sparse::default(),
            retry: 0,
            sight: Sight::default(),
            main: Main::Idle,
            main_from: 0,
            tasks_ahead: TasksAhead::default(),
            later: VecDeque::new(),
            task: NO_TASK,
            segment: Segment::default(),
            threads: Threads::default(),
            owned_in: 0,
            owned_out: 0,
            flowing_in: 0,
            flowing_out: 0,
            awaits_pipes: 0,
            busy_in: 0,
            unshared: false,
            delayed: false,
            steps: Steps::default(),
            begins: NEVER,
            last_thread: 0,
            picked: 0,
            activated: 0,
            twice: Twice::NONE,
            task_blocked: 0,
            channel_blocked: 0,
            thread_blocked: 0,
            raised_tasks: 0,
            raised_channels: 0,
            main_priority: MainPriority::default(),
            flushes: [Flushes::default(); 2],
            turns: program.rotations.iter().map(|rotation| rotation.initial).collect(),
            bound: Bindings::default(),
            transform_mask: 0,
            ramp_down: program.ramp_down,
            due: VecDeque::new(),
            clock: Clock::default(),
            registers: CoreRegisters::default(),
            dead: false,
            acted: Acted::default(),
        };
        for &(op, id) in &program.initial {
            // Load has checked the ids.
            let _checked = core.flag(program, op, u16::from(id), 0);
        }
        core
    }

    /// Estimated bytes, without the code's state.
    pub(crate) fn bytes(&self) -> u64 {
        let rings: usize = self.inputs.iter().map(|input| input.ring.bytes() + 32).sum();
        // Queues and ways that are used later: as most PEs do.
        let used = 2 * size_of::<Outgoing>() + 4 * size_of::<Outlet>();
        (size_of::<Core<C>>() + rings + used) as u64
    }

    /// Applies a flag operation in cycle `t`.
    pub(crate) fn flag(
        &mut self,
        program: &PePlan,
        op: FlagOp,
        id: u16,
        t: u64,
    ) -> Result<(), TrapKind> {
        match op {
            FlagOp::BindInput => return self.bind_input(program, id, t),
            FlagOp::BindOutput => return self.bind_output(program, id, t),
            // The code's own state.
            FlagOp::Exceptions => return Ok(()),
            _ if usize::from(id) >= IDS => return Err(TrapKind::BadId { id }),
            _ => {}
        }
        let bit = 1u64 << id;
        // A data task and its channel are blocked alike (spec/time.md, section 5).
        let is_data = program.data & bit != 0;
        match op {
            FlagOp::Activate if program.local[usize::from(id)] == NO_TASK => {
                return Err(TrapKind::UnboundTask { id });
            }
            FlagOp::Activate => self.activate_bit(bit),
            FlagOp::BlockTask if !is_data => self.task_blocked |= bit,
            FlagOp::UnblockTask if !is_data => self.task_blocked &= !bit,
            FlagOp::BlockTask | FlagOp::BlockChannel => {
                self.channel_blocked |= bit;
                self.task_blocked |= bit & program.shared;
            }
            FlagOp::UnblockTask | FlagOp::UnblockChannel => {
                self.channel_blocked &= !bit;
                self.task_blocked &= !(bit & program.shared);
            }
            FlagOp::BlockMicrothread => self.thread_blocked |= bit,
            FlagOp::UnblockMicrothread => self.thread_blocked &= !bit,
            FlagOp::RaiseTask if !is_data => self.raised_tasks |= bit,
            FlagOp::LowerTask if !is_data => self.raised_tasks &= !bit,
            FlagOp::RaiseTask | FlagOp::RaiseChannel => self.raised_channels |= bit,
            FlagOp::LowerTask | FlagOp::LowerChannel => self.raised_channels &= !bit,
            FlagOp::MainPriority => {
                let priority = MainPriority::from_number(id);
                self.main_priority = priority.ok_or(TrapKind::BadId { id })?;
            }
            FlagOp::FlushInput => self.flushes[0].ask(id),
            FlagOp::FlushOutput => self.flushes[1].ask(id),
            FlagOp::EndFlushInput => self.flushes[0].end(id),
            FlagOp::EndFlushOutput => self.flushes[1].end(id),
            FlagOp::TransformMask => self.transform_mask = u32::from(id) << 16,
            FlagOp::BindInput | FlagOp::BindOutput | FlagOp::Exceptions | FlagOp::AnswerAhead => {}
        }
        Ok(())
    }

    /// R8 (a): what is due in cycle `t`. Boxes of operations that are over go to the spare ones.
    pub(super) fn complete(
        &mut self,
        program: &PePlan,
        t: u64,
        spare: &mut Vec<Box<Op<C::Op>>>,
    ) -> Result<(), Fault> {
        if self.registers.torn(t) {
            self.acted.acted = true;
            // Nobody need listen.
            if program.local[TEARDOWN_TASK] != NO_TASK {
                self.activated |= 1 << TEARDOWN_TASK;
            }
        }
        while let Some(&(_, completion)) = self.due.front().filter(|(due, _)| *due <= t) {
            self.due.pop_front();
            self.acted.acted = true;
            let Completion { microthread, activate, unblock, task, loc } = completion;
            if let Some(id) = microthread
                && let Some(op) = self.threads.take(id)
            {
                self.owned_in &= !op.input_mask();
                self.owned_out &= !op.output_mask();
                spare.push(op);
            }
            let fault = |kind| Fault { kind: Box::new(kind), task, loc, color: None };
            if let Some(id) = activate
                && !self.activate(program, id.into())
            {
                self.flag(program, FlagOp::Activate, id.into(), t).map_err(fault)?;
            }
            match unblock {
                Some(Unblock::Task(id)) => {
                    self.flag(program, FlagOp::UnblockTask, id.into(), t).map_err(fault)?;
                }
                Some(Unblock::Channel(id)) => {
                    self.flag(program, FlagOp::UnblockChannel, id.into(), t).map_err(fault)?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The operations that used its output queues last, by queue.
    pub(crate) fn sent(&self) -> impl Iterator<Item = &Sent> {
        self.outputs.iter().filter_map(|(_, output)| output.sent.as_ref())
    }

    /// Its operations, those of microthreads first.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &Op<C::Op>> {
        self.threads.iter().chain(self.main.operation())
    }

    /// Looks at the queues in cycle `t`. A head that has come in view stays so until it is taken.
    #[inline]
    pub(super) fn look(&mut self, t: u64) {
        self.sight.full = self.full;
        for queue in bits(self.arrived & !self.sight.words) {
            self.look_at(queue, t);
        }
    }

    /// Looks at the head of an input queue that was not in view.
    #[inline]
    fn look_at(&mut self, queue: usize, t: u64) {
        if let Some(head) = self.inputs[queue].ring.visible(t) {
            self.sight.words |= 1 << queue;
            self.sight.controls |= u64::from(head.control) << queue;
        }
    }

    /// Takes the head of an input queue in cycle `t`, its place being free `credit` cycles later;
    /// also whether there was no place.
    #[inline]
    pub(super) fn pop(&mut self, queue: usize, t: u64, credit: u64) -> (Slot, bool) {
        let Input { ring, taken, .. } = &mut self.inputs[queue];
        *taken = taken.wrapping_add(1);
        let was_full = ring.is_full();
        let word = ring.pop(t + credit);
        let bit = 1 << queue;
        if ring.is_empty() {
            self.arrived &= !bit;
        }
        self.sight.words &= !bit;
        self.sight.controls &= !bit;
        self.look_at(queue, t);
        (word, was_full)
    }

    /// Takes the payload of the head of an input queue likewise; also its color if there was no place.
    #[inline]
    pub(super) fn pop_word(&mut self, queue: usize, t: u64, credit: u64) -> (u32, Option<u8>) {
        let Input { ring, taken, .. } = &mut self.inputs[queue];
        *taken = taken.wrapping_add(1);
        let was_full = ring.is_full();
        let word = ring.pop(t + credit);
        let (first, marked) = (ring.first(), ring.is_marked());
        if first > t || marked {
            self.arrived &= !(u64::from(first == NEVER) << queue);
            self.sight.words &= !(1 << queue);
            self.sight.controls &= !(1 << queue);
            if marked {
                self.look_at(queue, t);
            }
        }
        (word.payload, was_full.then_some(word.color))
    }

    /// Whether a word that comes down the ramp into a queue is anything to look at: one that stands
    /// behind others is seen when those have been taken.
    #[inline]
    pub(crate) fn is_news(&self, queue: usize, word: &Slot) -> bool {
        self.arrived >> queue & 1 == 0 || word.control || self.is_steady()
    }

    /// A word has come down the ramp into a queue.
    #[inline]
    pub(crate) fn take_in(&mut self, queue: usize, word: Slot) {
        let input = &mut self.inputs[queue];
        if !input.ring.is_open() {
            return self.take_in_first(queue, word);
        }
        input.last = if word.control { input.last } else { Some(word.stamp) };
        input.ring.push(word);
        self.arrived |= 1 << queue;
    }

    #[cold]
    #[inline(never)]
    fn take_in_first(&mut self, queue: usize, word: Slot) {
        self.inputs[queue].ring.open();
        self.take_in(queue, word);
    }

    /// Puts a word into an output queue of so many places.
    #[inline]
    pub(super) fn push(&mut self, queue: usize, places: u32, word: Slot) {
        let ring = match self.outputs.get_mut(queue) {
            Some(Outgoing { ring, .. }) if ring.places() != 0 => ring,
            _ => open(&mut self.outputs, queue, places),
        };
        if ring.is_empty() {
            self.departs = self.departs.min(word.stamp);
        }
        ring.push(word);
        self.leaving |= 1 << queue;
        self.full |= u64::from(ring.is_full()) << queue;
    }

    /// Whether the words of a color go into a channel.
    pub(crate) fn leads_to(&self, color: u8, channel: u32) -> bool {
        self.outlet(color) == Outlet::Channel(channel)
    }

    /// What is known of the way of a color's words.
    #[inline]
    pub(crate) fn outlet(&self, color: u8) -> Outlet {
        self.outlets.get(color.into()).copied().unwrap_or_default()
    }

    /// What the way of a color is has to be found out again.
    pub(crate) fn look_again(&mut self, color: u8) {
        if let Some(outlet) = self.outlets.get_mut(color.into()) {
            *outlet = Outlet::Unknown;
        }
        self.retry &= !(1 << color);
    }

    /// Puts a word back into an output queue of so many places.
    pub(crate) fn send_again(&mut self, queue: usize, places: u32, word: Slot) {
        let ring = self.outputs.get(queue).map(|output| &output.ring);
        let free = ring.filter(|ring| ring.places() != 0).map_or(0, Ring::free_from);
        self.push(queue, places, Slot { stamp: word.stamp.max(free + 1), ..word });
    }

    /// The task that a data wavelet of a queue starts: its data task, or the one that it takes
    /// turns with.
    pub(super) fn next_in_turn(&mut self, program: &PePlan, input: &InputPlan) -> u16 {
        let Some(number) = input.rotation.map(usize::from) else { return input.task };
        let (rotation, count) = (program.rotations[number], &mut self.turns[number]);
        if *count == rotation.limit {
            *count = 0;
            return rotation.other;
        }
        *count += 1;
        input.task
    }

    /// Up to when a core that has been through all cycles before `t` does nothing but count, or wait
    /// for code to begin, if no word wakes it.
    pub(super) fn rests(&self, t: u64) -> Option<u64> {
        let until = match &self.main {
            Main::Ready { from, .. } if !self.threads.any() => *from,
            Main::Counting { slot, next, .. } if self.threads.none_of(self.before_main()) => {
                t + u64::from(*next - *slot)
            }
            Main::Idle
            | Main::Ready { .. }
            | Main::Counting { .. }
            | Main::Vector(_)
            | Main::Launch(_) => return None,
        };
        let quiet = self.leaving == 0 && self.sight.controls == 0 && !self.is_flushing();
        (quiet && until > t).then_some(until)
    }

    /// Whether a control wavelet waits in one of its queues.
    pub(super) fn is_marked(&self) -> bool {
        bits(self.arrived).any(|queue| self.inputs[queue].ring.is_marked())
    }

    /// Whether an operation that reads a queue lets control wavelets pass.
    pub(super) fn passes_control(&self, queue: usize) -> bool {
        let reads = |op: &Op<C::Op>| op.input_mask() >> queue & 1 != 0;
        let main = match &self.main {
            Main::Vector(op) => Some(&**op),
            Main::Idle | Main::Ready { .. } | Main::Counting { .. } | Main::Launch(_) => None,
        };
        let mut all = self.threads.iter().chain(main);
        all.find(|op| reads(op)).is_none_or(Op::ignores_control)
    }
}

/// An output queue is used for the first time.
#[cold]
#[inline(never)]
fn open(outputs: &mut Sparse<Outgoing>, queue: usize, places: u32) -> &mut Ring {
    let ring = &mut outputs.entry(queue).ring;
    *ring = Ring::new(places);
    ring
}

/// The numbers of the bits of a set, in order.
pub(crate) fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(bit)
    })
}
