//! Tasks that words start one after the other, in the `flow` engine: the next one is found among queues
//! that were looked up once, and runs of the same task are done together ([`row`]).
//!
//! Invariant: as long as each task runs to its end in one segment and does nothing that others could see,
//! the same words start the same tasks in the same cycles as if each were picked by itself. But words that do not
//! start one yet stay in their pipes, where that would have them come down, and their times may still change.

mod row;

use dflow_ir::cost::Slots;

use self::row::Row;
use crate::fabric::ring::NEVER;
use crate::pe::code::Code;
use crate::pe::core::{Core, Fault, bits};
use crate::pe::main::Main;
use crate::pe::plan::NO_TASK;
use crate::pe::visit::Visit;
use crate::sched::region::Region;

/// Most queues that are looked up.
const MOST: usize = 8;

/// A queue whose words start tasks.
#[derive(Clone, Copy, Debug, Default)]
struct Ear {
    queue: u8,
    channel: u8,
    raised: bool,
    /// The pipe that its words stand in.
    pipe: u32,
    /// Its first word stands in the queue and not in the pipe.
    is_down: bool,
    /// When that can be seen, if there is one.
    next: u64,
}

/// The queues of a core.
#[derive(Debug)]
struct Ears {
    all: [Ear; MOST],
    count: usize,
    /// They are all that can start a task; before this cycle nothing else can say which is next.
    are_all: bool,
    still: u64,
}

impl Ears {
    /// When the next word can be seen.
    #[inline]
    fn next(&self) -> u64 {
        self.all[..self.count].iter().fold(NEVER, |next, ear| next.min(ear.next))
    }

    /// Of those with a word in cycle `t`, the one whose turn it is; ids count from the one before that picked
    /// last, downwards and around.
    #[inline]
    fn pick(&self, last: u8, t: u64) -> Option<usize> {
        let all = self.all[..self.count].iter().enumerate().filter(|(_, ear)| ear.next <= t);
        let first = all.max_by_key(|(_, ear)| {
            // In one number, which is compared at once.
            let around = u32::from(ear.channel.wrapping_sub(last) % 64);
            u32::from(ear.raised) << 16 | around << 8 | u32::from(ear.queue)
        });
        first.map(|(number, _)| number)
    }

    /// Before which cycle a task may begin if those before it have had so many slots by a cycle, in a visit that is
    /// not over: see [`Region::may_go_on`].
    #[inline]
    fn until<C: Code>(&self, at: &Visit<'_, C>, core: &Core<C>, so_far: (u64, u64)) -> u64 {
        if self.still <= at.t {
            return at.t;
        }
        let known = self.are_all && self.all[..self.count].iter().all(|ear| ear.next != NEVER);
        self.still.min(at.t + core.far_ahead(known, so_far))
    }
}

/// For tests: how words start tasks.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Hears {
    /// Each is picked by itself.
    Picked,
    /// Each is run by itself.
    Singly,
    #[default]
    InRows,
}

/// What tasks that words start came to last, by program and task: so many slots, if they ran to their end in one
/// segment and others saw nothing of them.
#[derive(Debug, Default)]
pub(crate) struct TaskSlots(Vec<Vec<Option<Slots>>>);

impl TaskSlots {
    #[inline]
    fn last(&self, program: u16, task: u16) -> Option<Slots> {
        *self.0.get(usize::from(program))?.get(usize::from(task))?
    }

    fn note(&mut self, (program, task): (u16, u16), slots: Option<Slots>) {
        let (program, task) = (usize::from(program), usize::from(task));
        if self.0.len() <= program {
            self.0.resize_with(program + 1, Vec::new);
        }
        let tasks = &mut self.0[program];
        if tasks.len() <= task {
            tasks.resize(task + 1, None);
        }
        tasks[task] = slots;
    }
}

impl<C: Code> Region<C> {
    /// Has words start tasks, one after the other, where nothing but these words can say which is next, as long as
    /// that is so; whether any did. The main thread is idle.
    pub(in crate::pe) fn hear(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
    ) -> Result<bool, Fault> {
        let Some(mut ears) = self.ears(at, core) else { return Ok(false) };
        let (mut row, mut any) = (Row::default(), false);
        loop {
            let next = ears.next();
            let t = next.max(core.main_from).max(at.t);
            let until = ears.until(at, core, (core.tasks_ahead.slots(), core.main_from));
            if next == NEVER || t > at.t && t >= until {
                return Ok(any);
            }
            let Some(number) = ears.pick(core.picked, t) else { return Ok(any) };
            any = true;
            let goes_on = if self.row(at, core, &mut ears, (number, t), &mut row) {
                self.hear_row(at, core, &mut ears, &row)?
            } else {
                self.hear_one(at, core, &mut ears, (number, t))?
            };
            if !goes_on {
                return Ok(true);
            }
        }
    }

    /// A word of a queue starts a task in cycle `t`; whether others see nothing of it.
    fn hear_one(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ears: &mut Ears,
        (number, t): (usize, u64),
    ) -> Result<bool, Fault> {
        let ear = &mut ears.all[number];
        let payload = self.take_heard(&Visit { t, ..*at }, core, ear);
        if let Some(tape) = &mut self.tape {
            tape.word(at.pe, ear.queue.into());
        }
        self.begin_heard(at, core, ear, (t, payload));
        let key = (core.at.program, core.task);
        let unseen = self.run_ahead(at, core)?;
        if !matches!(core.main, Main::Ready { .. }) {
            self.task_slots.note(key, unseen.then(|| core.segment.slots()));
        }
        Ok(unseen)
    }

    /// A task has been picked in cycle `t` for a word of a queue.
    #[inline]
    fn begin_heard(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ear: &Ear,
        (t, payload): (u64, u32),
    ) {
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Heard);
        core.picked = ear.channel;
        let input = at.program.inputs[usize::from(ear.queue)];
        core.task = core.next_in_turn(at.program, &input);
        let by = Some(usize::from(ear.queue));
        let from = self.begin_task(&Visit { t, ..*at }, core, (by, payload));
        core.tasks_ahead.begin(from);
    }

    /// The queues whose words start tasks, where they are all that can.
    fn ears(&self, at: &Visit<'_, C>, core: &Core<C>) -> Option<Ears> {
        #[cfg(test)]
        if self.hears == Hears::Picked {
            return None;
        }
        let pulled = self.pulled(at, core);
        let heads = core.arrived & !core.owned_in;
        let others = core.activated & !core.task_blocked | heads & !pulled | core.sight.controls;
        // With credits of one cycle and two places, that of a word is free before the next but one needs it.
        if pulled == 0 || others != 0 || at.plan.timing.credit > 1 {
            return None;
        }
        let (mut all, mut count) = ([Ear::default(); MOST], 0);
        for queue in bits(pulled) {
            let input = &at.program.inputs[queue];
            let blocked = core.channel_blocked >> input.channel & 1 != 0;
            let places = core.inputs[queue].ring.places();
            // A control wavelet may start another task.
            let marked = core.inputs[queue].ring.is_marked();
            if blocked || marked || input.task == NO_TASK || places < 2 || count == MOST {
                return None;
            }
            let ear = &mut all[count];
            count += 1;
            (ear.queue, ear.channel) = (queue as u8, input.channel);
            ear.raised = core.raised_channels >> input.channel & 1 != 0;
            ear.pipe = self.pipe_of(at.pe, queue as u8).unwrap_or(u32::MAX);
            let pipe = self.pipes.get(ear.pipe as usize);
            // What a core sends to itself may change its times while tasks run.
            if pipe.is_some_and(|pipe| pipe.comes_from().is_none() && pipe.route().source == at.pe)
            {
                return None;
            }
            ear.is_down = heads >> queue & 1 != 0;
            ear.next = if ear.is_down {
                core.inputs[queue].ring.first()
            } else {
                self.in_view(at, ear.pipe)
            };
        }
        let are_all = at.program.hears_data_only && pulled == at.program.pulls;
        Some(Ears { all, count, are_all, still: self.still_until(at, core) })
    }

    /// Takes the first word of a queue, in the visit's cycle.
    #[inline]
    fn take_heard(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, ear: &mut Ear) -> u32 {
        let queue = usize::from(ear.queue);
        let payload = if ear.is_down {
            let word = self.take_input(at, core, queue);
            ear.is_down = core.arrived >> queue & 1 != 0;
            self.rests(at.plan, at.pe, word.color);
            word.payload
        } else {
            let first = self.pipes[ear.pipe as usize].front(1).first().copied();
            self.pass_down(at, core, ear, (at.t, 0), 1);
            first.unwrap_or_default()
        };
        ear.next =
            if ear.is_down { core.inputs[queue].ring.first() } else { self.in_view(at, ear.pipe) };
        payload
    }

    /// So many words of the first packet in a pipe go through the queue behind it, which is empty: the first in cycle
    /// `t` and the others `period` cycles later each.
    fn pass_down(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ear: &Ear,
        (t, period): (u64, u64),
        count: u64,
    ) {
        let pipe = &mut self.pipes[ear.pipe as usize];
        let (route, links) = (pipe.route(), pipe.links());
        // Since when it could be seen is remembered of the last word.
        let seen = pipe.arrival_of(count as usize - 1) + at.plan.timing.ramp_down;
        let (told, buffer) = pipe.pass(count as u32, (t, period), self.now);
        self.keep_buffer(buffer);
        self.wake_sender(ear.pipe, told);
        self.all_rest(at.plan, at.pe, route.color, count);
        self.stats.hops += count * u64::from(links);
        self.stats.delivered += count;
        let free = t + at.plan.timing.credit;
        core.pass_inputs(ear.queue.into(), (seen, count), (free, period));
    }
}
