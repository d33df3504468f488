//! Stretches: many elements at once, for operations that flow.
//!
//! A stretch is all that an operation can do when it has a word and a place: as many elements as
//! are on their way and find a place. Its data are computed when it begins; when it ends may
//! change until then. Those in a stretch share the issue slots of their core evenly, but none
//! goes faster than its words come and its places become free; whenever a stretch begins or ends,
//! the shares of the others change, and so do the times of the words that they send.
//!
//! Invariants: an operation in a stretch takes no slot until it is over; a stretch that ends later
//! than its taker believed is found out when the taker's stretch would end (or when the taker shares
//! its slots anew, `takers.rs`), one that ends sooner wakes the taker.

mod ends;
mod held_up;
mod loads;
mod rounds;
mod sink;

use std::num::NonZeroU32;

pub(super) use sink::Sink;

use super::code::Code;
use super::core::{Core, Fault, bits};
use super::flow::LONGEST;
use super::main::{End, Main};
use super::op::Op;
use super::share::{WHOLE, WINDOW};
use super::threads::COUNT;
use super::visit::Visit;
use crate::fabric::channel::Outlet;
use crate::fabric::ring::NEVER;
use crate::sched::region::Region;
use crate::trap::TrapKind;

/// Parts of an element.
pub(super) const PARTS: u64 = 1 << 8;
/// Takers of words are told of stretches that end so many cycles sooner than they were told.
pub(super) const SOONER: u64 = 4;
/// Operations wait for more places than one for so many cycles.
const PATIENCE: u64 = 32;
/// Stretches may begin so many cycles ahead.
pub(super) const SOON: u64 = 16;
/// A stretch waits for somebody to take its words.
pub(super) const WAITS: u64 = u64::MAX >> 1;

/// Words of a stretch in a pipe: the pipe, the number of the word after the last, and from when
/// on that one is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// One more than its number: a stretch has room for three of these, or none.
    pipe: NonZeroU32,
    pub(super) end: u64,
    at: u64,
}

impl Words {
    fn new(pipe: u32, end: u64, at: u64) -> Words {
        Words { pipe: NonZeroU32::MIN.saturating_add(pipe), end, at }
    }

    /// The number of the pipe.
    pub(super) fn pipe(&self) -> u32 {
        self.pipe.get() - 1
    }
}

/// A stretch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stretch {
    is_on: bool,
    /// When its last element issues.
    pub(super) until: u64,
    /// In this cycle so many elements are left before the last, in parts, and issue at so much of
    /// the slots from then on.
    pub(super) mark: u64,
    pub(super) left: u64,
    pub(super) rate: u64,
    /// It does not end before, whatever its share.
    floor: u64,
    /// The operation goes on after it; cycles that its end takes if not.
    goes_on: bool,
    tail: u64,
    pub(super) inputs: [Option<Words>; 2],
    pub(super) output: Option<Words>,
}

impl Stretch {
    /// Whether the operation is in one.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// When the operation may take a slot again, or end.
    pub(super) fn over(&self) -> u64 {
        let next = match self.rate {
            _ if !self.goes_on => self.tail,
            WHOLE => 1,
            // One that goes on more slowly than in turn with all others has waited for something else than slots.
            rate => WHOLE.div_ceil(rate.max(1)).min(COUNT as u64 + 1),
        };
        self.until + next
    }

    /// All its elements have issued, and its words wait for places until its end.
    fn waits_for_places(&self) -> bool {
        self.left == 0 && self.output.is_some() && self.floor == self.until
    }

    /// It issues an element in each cycle from `t` on up to its end.
    fn has_all_slots(&self, t: u64) -> bool {
        self.is_on
            && self.rate == WHOLE
            && self.until >= t
            && self.bound() <= self.until
            && self.mark + self.left.div_ceil(PARTS) >= self.until
    }

    /// From cycle `t` on it is over in this one at the soonest.
    pub(super) fn least_until(&self, t: u64) -> u64 {
        if self.is_on { t.max(self.mark + self.left / PARTS) } else { t }
    }

    /// It does not end before this cycle.
    fn bound(&self) -> u64 {
        let there = |words: &Option<Words>| words.as_ref().map_or(0, |words| words.at);
        let [first, second] = &self.inputs;
        self.floor.max(there(first)).max(there(second))
    }

    /// What has been done until cycle `t`.
    pub(super) fn settle(&mut self, t: u64) {
        if t > self.mark {
            let done = (t - self.mark) * self.rate * PARTS / WHOLE;
            (self.left, self.mark) = (self.left.saturating_sub(done), t);
        }
    }

    /// What it can use of the slots from its mark on.
    pub(super) fn demand(&self) -> u64 {
        match self.bound().saturating_sub(self.mark) {
            0 if self.left == 0 => 0,
            0 => WHOLE,
            // Most need all: no need to divide.
            cycles if self.left > cycles * PARTS => WHOLE,
            cycles => (self.left * (WHOLE / PARTS)).div_ceil(cycles).min(WHOLE),
        }
    }

    /// What it uses of the slots.
    pub(super) fn used(&self) -> u64 {
        if self.left == 0 { 0 } else { self.rate }
    }

    /// It has a fair share from its mark on, of which it can use so much; the cycle in which it ends.
    pub(super) fn go(&mut self, demand: u64, fair: u64) -> u64 {
        let most = if self.left == 0 { WHOLE } else { demand };
        self.rate = most.min(fair).max(1);
        if self.left == 0 {
            // The last element has issued, or does so now.
            return self.until.min(self.mark).max(self.bound());
        }
        let cycles = match self.rate {
            WHOLE => self.left.div_ceil(PARTS),
            rate => (self.left * (WHOLE / PARTS)).div_ceil(rate),
        };
        (self.mark + cycles).max(self.bound())
    }

    /// It stands still for some of the cycles from `t` on in which the main thread uses all slots:
    /// those that slots which nobody else uses do not make up for.
    pub(super) fn delay(&mut self, t: u64, cycles: u64, spare: u64) {
        if self.mark >= t {
            // It has not begun.
            self.mark = self.mark.max((t + cycles).saturating_sub(1));
            return;
        }
        // Its own element would have had that slot.
        self.settle(t.saturating_sub(1));
        let made_up = self.until.saturating_sub(t) * spare / WHOLE;
        self.mark += cycles.saturating_sub(made_up);
    }
}

/// What a stretch may do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// When its first element issues, and before which cycle the last one does not.
    pub(super) begin: u64,
    pub(super) floor: u64,
    /// Before which cycle its first word does not leave.
    pub(super) leaves: u64,
    pub(super) count: usize,
    /// Pipes of its inputs, in their order, and where its words go.
    pub(super) inputs: [Option<u32>; 2],
    pub(super) output: Option<Sink>,
}

impl<C: Code> Core<C> {
    /// An operation in a stretch, by its microthread or that of the main thread.
    pub(super) fn streamed(&mut self, id: usize) -> Option<&mut Op<C::Op>> {
        if id < COUNT {
            return self.threads.get_mut(id as u8);
        }
        match &mut self.main {
            Main::Vector(op) => Some(op),
            Main::Idle | Main::Ready { .. } | Main::Counting { .. } | Main::Launch(_) => None,
        }
    }

    /// Slots that stretches `of` some microthreads take before the main thread while it uses so many
    /// from cycle `t` on.
    #[inline]
    pub(super) fn slots_before_main(&mut self, of: u64, t: u64, slots: u64) -> u64 {
        let busy = self.threads.busy() & of;
        if busy == 0 {
            return 0;
        }
        let first = self.before_main();
        let (mut rate, mut left) = (0, 0);
        for id in bits(busy) {
            let Some(op) = self.streamed(id).filter(|op| first.contains(&op.priority)) else {
                continue;
            };
            let mut stretch = op.stretch;
            stretch.settle(t);
            rate += stretch.used();
            left += stretch.left / PARTS;
        }
        match WHOLE.saturating_sub(rate) {
            0 => left,
            free => left.min(slots * rate / free),
        }
    }

    /// Who is in a stretch, as bits: microthreads, and the main thread behind them.
    pub(super) fn stretches(&self) -> u64 {
        let main = matches!(&self.main, Main::Vector(op) if op.stretch.is_on);
        self.threads.busy() | u64::from(main) << COUNT
    }
}

impl<C: Code> Region<C> {
    /// Begins a stretch of an operation, now or soon, if it can flow; whether it did. The caller then
    /// notes that the slots are to be shared anew.
    pub(super) fn stretch(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
    ) -> Result<bool, Fault> {
        let Some(reach) = self.reach(at, core, op) else { return Ok(false) };
        self.begin_stretch(at, core, op, reach)?;
        Ok(true)
    }

    /// Begins a stretch that goes so far. The caller then notes that the slots are to be shared anew.
    #[inline]
    pub(super) fn begin_stretch(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
        Reach { begin: t, floor, leaves, count, inputs, output }: Reach,
    ) -> Result<(), Fault> {
        let plan = at.plan;
        let (task, loc) = (op.task, op.loc);
        let mut outputs = self.buffers.pop().unwrap_or_default();
        let [first, second] = inputs;
        let front = |id: Option<u32>| id.map_or(&[][..], |id| self.pipes[id as usize].front(count));
        let words = [front(first), front(second)];
        let elements = count as u32;
        if let Some(tape) = &mut self.tape {
            tape.elements(at.pe, op, elements);
        }
        let block =
            at.code.block(core.at, &mut core.state, &mut op.code, words, elements, &mut outputs);
        if let Some(trap) = block.trap {
            let kind = Box::new(TrapKind::Code(trap));
            return Err(Fault { kind, task, loc, color: None });
        }
        // What does not fit between tasks that the main thread has run ahead over stands still until it is through.
        let ahead = floor > core.main_from && core.main_from > t;
        let still = if ahead { floor.saturating_sub(t + count as u64 - 1) } else { 0 };
        op.stretch = Stretch {
            is_on: true,
            tail: if op.asynchronous { plan.timing.completion } else { 0 },
            // Its first element takes a slot as the others do; one that stands still has issued it.
            mark: if still == 0 { t.saturating_sub(1) } else { t + still },
            left: (count as u64 - u64::from(still != 0)) * PARTS,
            rate: WHOLE,
            floor,
            goes_on: !at.code.is_done(&op.code),
            ..Stretch::default()
        };
        for (at, (words, id)) in op.stretch.inputs.iter_mut().zip(inputs).enumerate() {
            let Some(pipe) = id else { continue };
            let waited = self.pipes[pipe as usize].without_place();
            let (end, last) = self.take_words(pipe, count, t);
            let there = last + plan.timing.ramp_down;
            *words = Some(Words::new(pipe, end, there));
            if let Some(&queue) = op.ends.inputs().get(at) {
                core.inputs[usize::from(queue)].last = Some(there);
            }
            if waited != 0 {
                let follow = self.follow(plan, pipe, (t, count as u64), waited.into());
                op.stretch.floor = op.stretch.floor.max(follow);
            }
        }
        if inputs.iter().all(Option::is_some) {
            // A word per cycle comes down the ramp: both of an element take two.
            op.stretch.floor = op.stretch.floor.max(t + 2 * (count as u64 - 1));
        }
        self.send_stretch(at, core, op, output, (t, leaves, count as u64), outputs);
        op.stretch.until = (t + count as u64 - 1).max(op.stretch.bound());
        if still != 0 {
            self.bend(&op.stretch, t);
        }
        core.busy_in |= op.needs.inputs;
        self.promise(at, core, op);
        self.stats.slots += count as u64 - 1;
        self.ways.stretches.stretches += 1;
        self.ways.stretches.elements += count as u64;
        Ok(())
    }

    /// How far an operation can go, and from when on it has words, a place, and slots that the main
    /// thread does not take; none if not by a stretch, or not soon.
    #[inline]
    fn reach(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
    ) -> Option<Reach> {
        if op.needs.inputs & core.arrived != 0 || op.needs.output & core.leaving != 0 {
            return None;
        }
        if core.crowds_out(op) {
            return None;
        }
        let mut begin = op.from.max(at.t);
        let inputs = self.pipes_of(at.pe, op)?;
        for id in inputs.into_iter().flatten() {
            let arrival = self.pipes[id as usize].arrival()?;
            begin = begin.max(arrival + at.plan.timing.ramp_down);
        }
        let after_main = !core.is_before_main(op.priority);
        if after_main {
            begin = core.slots_from(begin);
        }
        let (done, length) = at.code.progress(&op.code);
        let left = length.map_or(LONGEST, |length| length - done);
        let (mut count, mut output) = (left.min(LONGEST) as usize, None);
        if let Some(out) = op.output {
            let queue = usize::from(out.queue);
            let id = match self.known_outlet(at.plan, core, at.pe, out.color, queue) {
                Outlet::Pipe(id) => id,
                Outlet::Gathered(id) => return self.reach_line(at, core, op, (id, count, begin)),
                Outlet::Unknown
                | Outlet::Routers(_)
                | Outlet::Channel(_)
                | Outlet::Closing(_)
                | Outlet::Merged(_) => return None,
            };
            let waited = at.t >= op.patience;
            let since = op.patience.saturating_sub(PATIENCE);
            let room = self.room_for(at, core, op, (id, left));
            count = count.min(room as usize);
            if count == 0 {
                return None;
            }
            if waited && since != 0 && begin == at.t && core.main_from <= since {
                #[cfg(test)]
                crate::sched::reached::note(crate::sched::reached::Reached::InVain);
                // Had it known that no more places would become free, it would not have waited.
                begin = since.max(op.from);
            }
            begin = self.begin_with_place(core, op, at.t, (id, begin))?;
            output = Some(Sink::Pipe(id));
        }
        if begin > at.t + SOON {
            core.begins = core.begins.min(begin);
            return None;
        }
        for id in inputs.into_iter().flatten() {
            count = self.pipes[id as usize].front(count).len();
        }
        let floor = if after_main { core.behind_tasks(begin, count as u64) } else { 0 };
        (count != 0).then_some(Reach { begin, floor, leaves: 0, count, inputs, output })
    }

    /// When a stretch that could begin in some cycle, in `t` at the soonest, has a place for its first word; not yet,
    /// if others have the slots of the core until then.
    fn begin_with_place(
        &self,
        core: &mut Core<C>,
        op: &Op<C::Op>,
        t: u64,
        (id, begin): (u32, u64),
    ) -> Option<u64> {
        let place = self.next_place(id);
        if place > begin.max(t) && core.threads.any_beside(op) {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Placeless);
            core.begins = core.begins.min(place);
            return None;
        }
        Some(begin.max(place))
    }

    /// Places of a pipe for the words that an operation has left. One that has all its words at hand waits until
    /// half of the pipe is free, as long as that goes on: those at its end have enough to do until
    /// then, and a stretch for each place that becomes free would be none.
    fn room_for(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
        (id, left): (u32, u32),
    ) -> u32 {
        let room = self.room_of(id);
        op.least = if op.needs.inputs == 0 { left.min(self.half_of(id)) } else { 1 };
        if room == 0 || room >= op.least {
            // Then it begins to be patient.
            (op.least, op.patience) = (1, NEVER);
            return self.room_for_words(id, 1);
        }
        if op.patience == NEVER {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Patient);
            op.patience = at.t + PATIENCE;
        }
        if at.t >= op.patience {
            (op.least, op.patience) = (1, NEVER);
        } else {
            core.begins = core.begins.min(op.patience);
        }
        self.room_for_words(id, op.least)
    }

    /// Words of a pipe are taken from cycle `t` on; the number of the one after them, and when the
    /// last of them is there.
    fn take_words(&mut self, id: u32, count: usize, t: u64) -> (u64, u64) {
        let pipe = &mut self.pipes[id as usize];
        self.stats.hops += count as u64 * u64::from(pipe.links());
        self.stats.delivered += count as u64;
        self.ways.stretches.taken += count as u64;
        let (end, last, buffer) = pipe.take(count);
        pipe.drain((end, count as u64), t);
        self.keep_buffer(buffer);
        self.wake_sender(id, t);
        (end, last)
    }

    /// Looks at stretches: ends those that are over, and operations with them.
    pub(super) fn end_stretches(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
    ) -> Result<(), Fault> {
        let on = core.stretches();
        if on == 0 {
            return Ok(());
        }
        let counted = core.threads.steppers() != 0 && core.steps.is_due(at.t);
        let retimed = self.wakes.were_retimed(at.pe);
        debug_assert!(retimed || !self.look_at_words(at, core, on));
        if retimed && self.look_at_words(at, core, on) || core.unshared || core.delayed || counted {
            self.share(core, at.t);
        }
        let (mut over, mut now) = (0, false);
        for id in bits(on) {
            let Some(op) = core.streamed(id) else { continue };
            if self.is_over(at, &mut op.stretch) {
                op.stretch.is_on = false;
                // What was over before has not happened now.
                now |= op.stretch.over() >= at.t;
                self.active_until = self.active_until.max(op.stretch.until + 1);
                let inputs = op.needs.inputs;
                core.busy_in &= !inputs;
                over |= 1 << id;
            }
        }
        if over == 0 {
            return Ok(());
        }
        core.acted.acted |= now;
        for id in bits(over & ((1 << COUNT) - 1)) {
            core.threads.rests(id as u8);
        }
        if over != on {
            self.unshare(core, at.t);
        }
        core.steps.share_with(0);
        for id in bits(over) {
            self.end_streamed(at, core, id)?;
        }
        Ok(())
    }

    /// After a visit in cycle `t`: when the core looks at its stretches again; `looks_then`: when it looks for its next
    /// task is among what it `begins`, so words that are not in view yet need not be asked for.
    pub(super) fn arrange_look(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (t, looks_then): (u64, bool),
    ) {
        if core.unshared || core.delayed {
            self.share(core, t);
        }
        let mut look = std::mem::replace(&mut core.begins, NEVER);
        let on = core.stretches();
        for id in bits(on) {
            let Some(op) = core.streamed(id) else { continue };
            if op.stretch.until != WAITS {
                let over = op.stretch.over();
                // One that has no place for more can wait for what comes next.
                if over < look && (over + SOON < look || !self.is_full_behind(at, op)) {
                    look = over;
                }
            }
        }
        if on != 0 && core.threads.steppers() != 0 && core.steps.are_busy() {
            look = look.min(t + WINDOW);
        }
        if at.program.pulls != 0 && !looks_then && matches!(core.main, Main::Idle) {
            // Those that come before are found when the main thread is through.
            look = look.min(self.next_seen(at, core, t.max(core.main_from)));
        }
        self.wakes.look(at.pe, look.max(t + 1));
    }

    /// Whether an operation goes on after its stretch, but not before tasks that its words start make place.
    fn is_full_behind(&self, at: &Visit<'_, C>, op: &Op<C::Op>) -> bool {
        let sends =
            op.stretch.output.as_ref().filter(|_| op.stretch.goes_on && op.needs.inputs == 0);
        let pipe = sends.map(Words::pipe).filter(|&pipe| self.room_of(pipe) == 0);
        pipe.is_some_and(|pipe| self.hearer(at, pipe).is_some())
    }

    /// Ends an operation whose stretch is over, if it was the last.
    fn end_streamed(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        id: usize,
    ) -> Result<(), Fault> {
        let Some(op) = core.streamed(id) else { return Ok(()) };
        let end = op.stretch.until;
        if !at.code.is_done(&op.code) {
            return Ok(());
        }
        if id < COUNT {
            let Some(mut op) = core.threads.take(id as u8) else { return Ok(()) };
            let result = self.end_thread(at.plan, at.code, core, at.pe, end, &mut op, true);
            core.threads.put(op);
            return result;
        }
        match std::mem::replace(&mut core.main, Main::Idle) {
            Main::Vector(op) => self.end_main(at.plan, at.code, core, at.pe, end, op, End::WHOLE),
            main => {
                core.main = main;
                Ok(())
            }
        }
    }
}

/// Words of a pipe on a link that others may use too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pipe: u32,
    until: u64,
    /// Of the cycles of the link.
    rate: u64,
    /// What they have met on one of their links leaves them no more than that, there and on the others.
    slowed: Slowed,
}

/// Words that go no faster than this until a cycle.
#[derive(Clone, Copy, Debug, Default)]
struct Slowed {
    until: u64,
    rate: u64,
}

#[cfg(test)]
mod tests {
    use super::{COUNT, Stretch, WHOLE};

    #[test]
    fn one_that_waited_for_words_goes_on_when_others_have_had_a_slot() {
        let stretch = |rate| Stretch { until: 100, rate, goes_on: true, ..Stretch::default() };
        assert_eq!(stretch(WHOLE).over(), 101);
        assert_eq!(stretch(WHOLE / 2).over(), 102);
        assert_eq!(stretch(1).over(), 101 + COUNT as u64);
    }
}
