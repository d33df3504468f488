//! Tasks that words start one after the other, in the `flow` engine: the next one is found among queues
//! that were looked up once, and runs of the same task are done together.
//!
//! Invariant: as long as each task runs to its end in one segment and does nothing that others could see,
//! the same words start the same tasks in the same cycles as if each were picked by itself. But words that do not
//! start one yet stay in their pipes, where that would have them come down, and their times may still change.

use dflow_ir::cost::Slots;

use crate::fabric::ring::NEVER;
use crate::pe::ahead::{AHEAD, Came};
use crate::pe::code::Code;
use crate::pe::core::{Core, Fault, bits};
use crate::pe::main::{Main, run_alike};
use crate::pe::plan::{NO_TASK, TaskPlan};
use crate::pe::visit::Visit;
use crate::sched::region::Region;

/// Most queues that are looked up.
const MOST: usize = 8;

/// Most tasks that are run together.
const TOGETHER: usize = 16;

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

/// A word of a queue, by number, starts a task in a cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Heard {
    ear: usize,
    t: u64,
}

impl Heard {
    /// Another word of the same queue does, so many cycles later.
    fn later(self, by: u64) -> Heard {
        Heard { t: self.t + by, ..self }
    }
}

/// Words that start tasks, and the arguments that they become.
#[derive(Debug)]
struct Row {
    starts: [Heard; TOGETHER],
    args: [[u64; 2]; TOGETHER],
    count: usize,
    /// Arguments of each, and one of the tasks.
    params: usize,
    task: u16,
}

impl Row {
    fn new(task: u16, params: usize) -> Row {
        let (starts, args) = ([Heard::default(); TOGETHER], [[0; 2]; TOGETHER]);
        Row { starts, args, count: 0, params, task }
    }

    fn push(&mut self, start: Heard, args: [u64; 2]) {
        (self.starts[self.count], self.args[self.count]) = (start, args);
        self.count += 1;
    }
}

/// The queues of a core.
#[derive(Clone, Debug)]
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
        let all = self.all[..self.count].iter().enumerate();
        let turn = |ear: &Ear| (ear.raised, ear.channel.wrapping_sub(last) % 64, ear.queue);
        let first = all.filter(|(_, ear)| ear.next <= t).max_by_key(|(_, ear)| turn(ear));
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

impl<C: Code> Region<C> {
    /// Has words start tasks, one after the other, where nothing but these words can say which is next, as long as
    /// that is so; whether any did. The main thread is idle.
    pub(in crate::pe) fn hear(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
    ) -> Result<bool, Fault> {
        let Some(mut ears) = self.ears(at, core) else { return Ok(false) };
        let mut any = false;
        loop {
            let next = ears.next();
            let t = next.max(core.main_from).max(at.t);
            let until = ears.until(at, core, (core.tasks_ahead.slots(), core.main_from));
            if next == NEVER || t > at.t && t >= until {
                return Ok(any);
            }
            let Some(number) = ears.pick(core.picked, t) else { return Ok(any) };
            let ear = &mut ears.all[number];
            let payload = self.take_heard(&Visit { t, ..*at }, core, ear);
            if let Some(tape) = &mut self.tape {
                tape.word(at.pe, ear.queue.into());
            }
            self.begin_heard(at, core, ear, (t, payload));
            any = true;
            if !self.run_ahead(at, core)? || !self.hear_more(at, core, &mut ears, number)? {
                return Ok(true);
            }
        }
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
        let from = self.begin_task(&Visit { t, ..*at }, core, payload);
        core.tasks_ahead.begin(from);
    }

    /// Has words start tasks together that come to what the one before them came to, as far as words that are known
    /// say which they are; whether nothing else came of any.
    fn hear_more(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ears: &mut Ears,
        number: usize,
    ) -> Result<bool, Fault> {
        let total = core.segment.cycles.max(1);
        let waits = core.slots_before_main(u64::MAX, core.main_from, total.into()) != 0;
        // What is taped is so one by one.
        if waits || self.tape.is_some() {
            return Ok(true);
        }
        let Some(row) = self.row(at, core, ears, (number, total)) else { return Ok(true) };
        let slots = core.segment.slots();
        let router = self.routers[at.pe as usize].as_deref();
        core.task = row.task;
        let done = run_alike(at, core, router, (&row.args[..row.count], row.params));
        let same = core.segment.is_plain(slots);
        let plain = done - usize::from(!same);
        self.heard_alike(at, core, ears, (slots, &row.starts[..plain]));
        if same {
            core.end_task();
            return Ok(true);
        }
        // The last one came to something else.
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::HeardOther);
        let Heard { ear, t } = row.starts[plain];
        let ear = &mut ears.all[ear];
        let payload = self.take_heard(&Visit { t, ..*at }, core, ear);
        self.begin_heard(at, core, ear, (t, payload));
        let Main::Ready { from: now, .. } = core.main else { return Ok(false) };
        let (total, assumed) = (core.segment.cycles.max(1), core.segment.assumed);
        self.takes_slots(core, now, (total, assumed));
        Ok(match self.came_ahead(at, core, (now, total))? {
            Came::On => self.run_ahead(at, core).map(|_| false)?,
            Came::Through => core.segment.acts.is_empty(),
            Came::Rests => false,
        })
    }

    /// Words that start tasks one after the other, of the function that the last word of a queue has started, if each
    /// of these takes so many slots; none if there are fewer than two. Of each queue no more than the first packet
    /// in its pipe.
    fn row(
        &self,
        at: &Visit<'_, C>,
        core: &Core<C>,
        ears: &Ears,
        (number, total): (usize, u32),
    ) -> Option<Row> {
        let (plan, start) = (at.program, at.plan.timing.task_start);
        let task = plan.inputs[usize::from(ears.all[number].queue)].task;
        let TaskPlan { func, looks, ref params, .. } = plan.tasks[usize::from(task)];
        if looks {
            return None;
        }
        let mut row = Row::new(task, params.len().min(2));
        let (mut ears, mut last, mut taken) = (ears.clone(), core.picked, [0; MOST]);
        // When all words of each can be seen.
        let mut seen = [None; MOST];
        let (mut slots, mut by) = (core.tasks_ahead.slots(), core.main_from);
        while row.count < TOGETHER {
            let (next, until) = (ears.next(), ears.until(at, core, (slots, by)));
            let t = next.max(by);
            if next == NEVER || t >= until || t + start > at.t + AHEAD {
                break;
            }
            let number = ears.pick(last, t)?;
            let ear = &mut ears.all[number];
            let input = &plan.inputs[usize::from(ear.queue)];
            let task = &plan.tasks[usize::from(input.task)];
            if ear.is_down || task.func != func || input.rotation.is_some() {
                break;
            }
            let pipe = &self.pipes[ear.pipe as usize];
            let words = pipe.front(TOGETHER);
            row.push(Heard { ear: number, t }, task.args(words[taken[number]]).0);
            taken[number] += 1;
            if taken[number] == words.len() {
                break;
            }
            (last, slots, by) =
                (ear.channel, slots + u64::from(total), t + start + u64::from(total));
            let down = at.plan.timing.ramp_down;
            let all = seen[number].get_or_insert_with(|| pipe.all_arrived() + down);
            ear.next = if *all <= by { by } else { pipe.arrival_of(taken[number]) + down };
        }
        (row.count > 1).then_some(row)
    }

    /// Words have each started a task that took so many slots and did nothing that others see.
    fn heard_alike(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ears: &mut Ears,
        (slots, mut starts): (Slots, &[Heard]),
    ) {
        let (start, total) = (at.plan.timing.task_start, slots.all.max(1));
        let period = start + u64::from(total);
        self.stats.tasks += starts.len() as u64;
        self.stats.delivered += starts.len() as u64;
        self.stats.slots += starts.len() as u64 * u64::from(total);
        while let Some(&first @ Heard { ear: number, .. }) = starts.first() {
            // Those of one queue, without a pause.
            let follows = |(after, start): &(u64, &Heard)| **start == first.later(after * period);
            let count = (0..).zip(starts).take_while(follows).count();
            starts = &starts[count..];
            self.heard_evenly(at, core, &ears.all[number], (first.t, count as u64), slots);
        }
        for ear in ears.all[..ears.count].iter_mut().filter(|ear| !ear.is_down) {
            ear.next = self.in_view(at, ear.pipe);
        }
        self.active_until = self.active_until.max(core.main_from);
        core.acted.acted = true;
    }

    /// So many words of one queue have, the first from a cycle on and the others as soon as they could.
    fn heard_evenly(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ear: &Ear,
        (t, count): (u64, u64),
        slots: Slots,
    ) {
        let (start, credit) = (at.plan.timing.task_start, at.plan.timing.credit);
        let (total, queue) = (slots.all.max(1), usize::from(ear.queue));
        let (period, task) = (start + u64::from(total), at.program.inputs[queue].task);
        let pipe = &mut self.pipes[ear.pipe as usize];
        let route = pipe.route();
        // Since when it could be seen is remembered of the last word.
        let seen = pipe.arrival_of(count as usize - 1) + at.plan.timing.ramp_down;
        let (told, buffer) = pipe.pass(count as u32, (t, period), self.now);
        self.keep_buffer(buffer);
        self.wake_sender(ear.pipe, told);
        self.all_rest(at.plan, at.pe, route.color, count);
        self.stats.hops += count * u64::from(route.hops);
        for word in 0..count {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::HeardAlike);
            let t = t + word * period;
            let seen = if word + 1 == count { seen } else { 0 };
            core.pass_input(queue, (seen, t + credit));
            if let Some(refrain) = &mut self.refrain {
                refrain.note(at.pe, t, task);
            }
            self.takes_slots(core, t + start, (total, slots.assumed));
        }
        core.tasks_ahead.begin_alike((t + start, period), total, count);
        core.main_from = t + count * period;
        core.picked = ear.channel;
    }

    /// The queues whose words start tasks, where they are all that can.
    fn ears(&self, at: &Visit<'_, C>, core: &Core<C>) -> Option<Ears> {
        #[cfg(test)]
        if self.hears_singly {
            return None;
        }
        let pulled = self.pulled(at, core);
        let heads = core.arrived & !core.owned_in;
        let others = core.activated & !core.task_blocked | heads & !pulled | core.sight.controls;
        // With credits of one cycle and two places, that of a word is free before the next but one needs it.
        if pulled == 0 || others != 0 || at.plan.timing.credit > 1 || self.events.is_some() {
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
        let (payload, color) = if ear.is_down {
            let word = self.take_input(at, core, queue);
            ear.is_down = core.arrived >> queue & 1 != 0;
            (word.payload, word.color)
        } else {
            self.pass_down(at, core, (queue, ear.pipe), ear.next)
        };
        ear.next =
            if ear.is_down { core.inputs[queue].ring.first() } else { self.in_view(at, ear.pipe) };
        self.rests(at.plan, at.pe, color);
        payload
    }

    /// The first word of a pipe, which can be seen from a cycle on, goes through the queue behind it, which is
    /// empty; it and its color.
    #[inline]
    fn pass_down(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (queue, id): (usize, u32),
        from: u64,
    ) -> (u32, u8) {
        let pipe = &mut self.pipes[id as usize];
        let route = pipe.route();
        let (payload, buffer) = pipe.pass_one(at.t, self.now);
        self.keep_buffer(buffer);
        self.stats.hops += u64::from(route.hops);
        self.stats.delivered += 1;
        core.pass_input(queue, (from, at.t + at.plan.timing.credit));
        self.wake_sender(id, at.t);
        (payload, route.color)
    }
}
