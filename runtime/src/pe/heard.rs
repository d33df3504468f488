//! Words that start data tasks, in the `flow` engine: they stay in their pipe until the core takes
//! them, as it can see how many there are only by the tasks that they start.
//!
//! A core that does nothing but tasks runs on from one to the next as long as it knows the next word
//! of each queue, and [`SOON`] cycles further at most, as a word that is not known yet could be first.
//! Beside an operation it does so for [`BESIDE`] cycles at most, and never beyond an end of one of these that
//! could start or unblock a task.
//!
//! Invariant: when a task is picked by `pick` the first word of each queue stands there, if it can be seen.

mod ears;

#[cfg(test)]
pub(crate) use ears::Hears;
pub(crate) use ears::TaskSlots;

use super::ahead::AHEAD;
use super::code::Code;
use super::core::{Core, bits};
use super::main::Main;
use super::op::Op;
use super::stretch::SOON;
use super::visit::Visit;
use crate::fabric::channel::Outlet;
use crate::fabric::ring::{NEVER, Slot};
use crate::sched::region::Region;

/// Cycles by which tasks go on beside operations, which have the slots in between, if these are many and
/// all words that start tasks are known; beside several as many times less, as how they share these is not known yet.
const BESIDE: u64 = 128;

impl<C: Code> Core<C> {
    /// Words go through an input queue that is empty, one after the other: the last one can be seen from a cycle on,
    /// the place of the first is free again from cycle `free` on, and those of the others `period` cycles later each.
    #[inline]
    fn pass_inputs(&mut self, queue: usize, (from, count): (u64, u64), (free, period): (u64, u64)) {
        let input = &mut self.inputs[queue];
        if !input.ring.is_open() {
            input.ring.open();
        }
        input.taken = input.taken.wrapping_add(count as u32);
        for word in 0..count {
            let from = if word + 1 == count { from } else { 0 };
            input.last = Some(input.ring.go_through(from, free + word * period));
        }
    }

    /// Cycles by which tasks go on, when those since the visit began have had so many slots by a cycle; `known`: there
    /// is a word in each queue that could start one.
    #[inline]
    fn far_ahead(&self, known: bool, (slots, by): (u64, u64)) -> u64 {
        match (known, u64::from(self.threads.count())) {
            (true, 0) => AHEAD,
            (true, count) if self.tasks_leave_slots(slots, by) => (BESIDE / count).max(SOON),
            (true | false, _) => SOON,
        }
    }
}

impl<C: Code> Region<C> {
    /// The first word of each queue that starts data tasks comes down if it would stand there by the
    /// visit's cycle; those behind it can as well be in the pipe.
    #[inline(always)]
    pub(super) fn draw_heard(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) {
        if at.program.pulls != 0 {
            self.draw_pulled(at, core);
        }
    }

    fn draw_pulled(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) {
        for queue in bits(self.pulled(at, core) & !core.arrived) {
            let Some(id) = self.pipe_of(at.pe, queue as u8) else { continue };
            let Some(arrival) = self.pipes[id as usize].arrival() else { continue };
            if arrival + at.plan.timing.ramp_down <= at.t {
                self.draw_one(at, core, (queue, id), arrival);
            }
        }
    }

    /// Words that have stayed in the pipe to a queue come down as far as they would stand in it by now.
    pub(super) fn draw_queue(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, queue: usize) {
        let Some(id) = self.pipe_of(at.pe, queue as u8) else { return };
        while !core.inputs[queue].ring.is_full()
            && let Some(arrival) = self.pipes[id as usize].arrival()
            && arrival + at.plan.timing.ramp_down <= at.t
        {
            self.draw_one(at, core, (queue, id), arrival);
        }
    }

    /// The first word of a pipe, which has arrived at the last router, comes down.
    fn draw_one(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (queue, id): (usize, u32),
        arrival: u64,
    ) {
        let word = self.leave_pipe(id, at.t.max(self.now));
        let free = core.inputs[queue].ring.free_from();
        let stamp = (arrival + at.plan.timing.ramp_down).max(free + 1);
        let word = Slot { stamp, ..word };
        core.take_in(queue, word);
        self.delivered(core.at.number, queue, word);
    }

    /// Queues whose words the core takes out of their pipes to start data tasks, as bits.
    fn pulled(&self, at: &Visit<'_, C>, core: &Core<C>) -> u64 {
        if at.program.pulls == 0 || !core.bound.are_planned() || core.is_flushing() {
            return 0;
        }
        at.program.pulls & !core.owned_in
    }

    /// From which cycle on a core whose main thread is idle may pick a task, as far as is known;
    /// [`NEVER`] if nothing is there that it could pick.
    pub(super) fn next_task(&self, at: &Visit<'_, C>, core: &Core<C>) -> u64 {
        let from = core.main_from.max(at.t);
        if core.activated & !core.task_blocked != 0 {
            return from;
        }
        if !at.program.hears {
            return NEVER;
        }
        let heads = bits(core.arrived & !core.owned_in);
        let first = heads.map(|queue| core.inputs[queue].ring.first()).min();
        first.unwrap_or(NEVER).min(self.next_heard(at, core)).max(from)
    }

    /// When the first word of a pipe can be seen by the core at its end.
    #[inline]
    fn in_view(&self, at: &Visit<'_, C>, pipe: u32) -> u64 {
        let pipe = self.pipes.get(pipe as usize);
        let arrival = pipe.and_then(|pipe| pipe.arrival());
        arrival.map_or(NEVER, |arrival| arrival + at.plan.timing.ramp_down)
    }

    /// When the next word that starts a data task can be seen, of those that stand in their pipes.
    pub(super) fn next_heard(&self, at: &Visit<'_, C>, core: &Core<C>) -> u64 {
        let mut next = NEVER;
        for queue in bits(self.pulled(at, core) & !core.arrived) {
            let Some(id) = self.pipe_of(at.pe, queue as u8) else { continue };
            next = next.min(self.in_view(at, id));
        }
        next
    }

    /// When the next word that starts a data task comes in view after cycle `t`.
    pub(super) fn next_seen(&self, at: &Visit<'_, C>, core: &Core<C>, t: u64) -> u64 {
        let heads = bits(self.pulled(at, core) & core.arrived);
        let heads = heads.map(|queue| core.inputs[queue].ring.first());
        let next = heads.chain([self.next_heard(at, core)]).filter(|&next| next > t);
        next.min().unwrap_or(NEVER)
    }

    /// Whether the main thread may begin a task in a cycle to come: nothing else can say what the next one is.
    pub(super) fn may_go_on(&self, at: &Visit<'_, C>, core: &Core<C>, t: u64) -> bool {
        let known = |queue: usize| {
            let pipe = self.pipe_of(at.pe, queue as u8);
            core.arrived >> queue & 1 != 0
                || pipe.is_some_and(|id| self.pipes[id as usize].at_hand() != 0)
        };
        let program = at.program;
        let still = self.still_until(at, core);
        let far = if core.knows_next(program, t) {
            AHEAD
        } else if program.pulls == 0 || still <= at.t {
            0
        } else {
            let known = program.hears_data_only && bits(program.pulls).all(known);
            core.far_ahead(known, (core.tasks_ahead.slots(), core.main_from))
        };
        t < (at.t + far).min(still)
    }

    /// Before which cycle nothing but the main thread and words can say which task is next: no act of it
    /// is to come, no operation ends that starts or unblocks something.
    fn still_until(&self, at: &Visit<'_, C>, core: &Core<C>) -> u64 {
        if !core.due.is_empty() || !core.later.is_empty() {
            return at.t;
        }
        let ends = |op: &Op<C::Op>| {
            if !op.flows || op.needs.inputs != 0 && !op.ignores_control() {
                return at.t;
            }
            let (done, length) = at.code.progress(&op.code);
            let left = length.map_or(0, |length| u64::from(length - done));
            (op.stretch.least_until(at.t) + left).max(self.last_goes(at, core, op, left))
        };
        core.threads.iter().filter(|op| op.tells()).map(ends).min().unwrap_or(NEVER)
    }

    /// Before which cycle the last of the words that an operation has left cannot go into its pipe, if those at its end
    /// start tasks: none of these begins before the main thread there is through, and each takes a slot.
    fn last_goes(&self, at: &Visit<'_, C>, core: &Core<C>, op: &Op<C::Op>, left: u64) -> u64 {
        let way = op.output.map(|output| core.outlet(output.color));
        let alone = op.needs.inputs == 0 && !core.threads.any_beside(op);
        let Some(Outlet::Pipe(id)) = way.filter(|_| alone) else { return 0 };
        let Some(hearer) = self.hearer(at, id) else { return 0 };
        let wait = left.saturating_sub(self.pipes[id as usize].room().into());
        match wait.checked_sub(1) {
            Some(before) => hearer.main_from.max(at.t) + before * (at.plan.timing.task_start + 1),
            None => 0,
        }
    }

    /// The core at the end of a pipe, if the words that come out there start tasks, and no operation has ever taken any.
    pub(super) fn hearer(&self, at: &Visit<'_, C>, id: u32) -> Option<&Core<C>> {
        let pipe = &self.pipes[id as usize];
        let route = pipe.route();
        let queue = route.queue.filter(|_| !pipe.leads_abroad() && pipe.others().is_empty())?;
        let core = self.cores[route.dest as usize].as_deref()?;
        let program = &at.plan.programs[usize::from(core.at.program)];
        let input = core.inputs.get(usize::from(queue))?;
        let hears = program.pulls >> queue & 1 != 0 && !input.is_read;
        (hears && core.bound.are_planned() && !core.is_flushing()).then_some(core)
    }

    /// Before which cycle a core takes no words of a queue: they start tasks, and it is through with others later.
    pub(super) fn hears_from(&self, pe: u32, queue: Option<u8>) -> u64 {
        let core = self.cores[pe as usize].as_deref();
        let idle = core.filter(|core| matches!(core.main, Main::Idle)).zip(queue);
        let hears = idle.filter(|(core, queue)| core.owned_in >> queue & 1 == 0);
        hears.map_or(0, |(core, _)| core.main_from)
    }
}
