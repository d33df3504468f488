//! What keeps a stretch from beginning: slots of the main thread, words that have not come, places that are taken.

use super::{Core, Op, bits};
use crate::fabric::channel::Outlet;
use crate::pe::code::Code;
use crate::pe::main::Main;
use crate::pe::visit::Visit;
use crate::sched::region::Region;

impl<C: Code> Core<C> {
    /// Whether the main thread's operation, which takes words, has slots before microthreads that are
    /// in a stretch, or wait to begin one when it has words: it goes word by word then, since how fast
    /// its words come may depend on theirs.
    pub(in crate::pe) fn crowds_out(&self, op: &Op<C::Op>) -> bool {
        let others = if op.by_words { self.threads.idle() } else { 0 } | self.threads.busy();
        let after = |id| {
            self.threads.get(id as u8).is_some_and(|Op { stretch, priority, .. }| {
                // Others have all slots once the last element has its own.
                (!stretch.is_on || stretch.left != 0) && !self.is_before_main(*priority)
            })
        };
        others != 0 && !op.asynchronous && op.needs.inputs != 0 && bits(others).any(after)
    }
}

impl<C: Code> Region<C> {
    /// Whether the main thread's operation has all slots when a microthread after it would begin a stretch: one
    /// that makes words of memory, until its stretch is over; one that has words goes on word by word.
    pub(in crate::pe) fn keeps_slots(
        &self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        from: u64,
    ) -> bool {
        let main_from = core.main_from;
        let Main::Vector(op) = &mut core.main else { return false };
        if op.asynchronous || !op.flows {
            return false;
        }
        if op.stretch.is_on() || op.needs.inputs == 0 {
            return op.needs.inputs == 0 && op.stretch.has_all_slots(at.t);
        }
        let begin = from.max(at.t).max(main_from);
        let seen = |id: u32| {
            let arrival = self.pipes[id as usize].arrival();
            arrival.is_some_and(|arrival| arrival + at.plan.timing.ramp_down <= begin)
        };
        let pipes = self.pipes_of(at.pe, op);
        let has = pipes.is_some_and(|pipes| pipes.into_iter().flatten().all(seen));
        op.by_words |= has;
        has
    }

    /// If an operation finds no word, or no place, no stretch of it can begin: until when it is not to be
    /// looked at for want of places.
    #[inline]
    pub(in crate::pe) fn starves(&mut self, t: u64, core: &Core<C>, op: &Op<C::Op>) -> Option<u64> {
        (t < op.patience && self.is_starved(core, op)).then_some(op.patience)
    }

    #[inline]
    fn is_starved(&mut self, core: &Core<C>, op: &Op<C::Op>) -> bool {
        if op.feeds.known != Some(self.closed) {
            return false;
        }
        let stopped = op.needs.inputs & core.arrived | op.needs.output & core.leaving != 0;
        let empty = |id: u32| self.pipes[id as usize].at_hand() == 0;
        let [first, second] = op.feeds.pipes;
        if stopped || first.is_some_and(empty) || second.is_some_and(empty) {
            return true;
        }
        let Some(output) = op.output else { return false };
        let Outlet::Pipe(id) = core.outlet(output.color) else { return false };
        self.room_for_words(id, op.least) == 0
    }
}
