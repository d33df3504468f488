//! Operations whose words leap to the host: in the `flow` engine, as packets.
//!
//! Routers whose switches say who sends to a link of the host are a leap that ends at the link's router
//! ([`leap`](crate::fabric::leap)). While all of them are switched towards an operation of the main thread, and
//! the host takes whatever comes, nothing can hold up its words or come between them: they are a
//! stretch, and its words go to the host as those of a pipe do. Words of it that stand in the output
//! queue, or on the ramp, go before them as a packet of their own.
//!
//! A word that moves a switch, the operation's last, goes from router to router.

use super::code::Code;
use super::core::{Core, Fault};
use super::flow::LONGEST;
use super::op::Op;
use super::ramp::way;
use super::stretch::{Reach, Sink};
use super::visit::Visit;
use crate::fabric::channel::Outlet;
use crate::fabric::ring::Slot;
use crate::sched::region::Region;

/// Fewer words than these go one by one.
const LEAST: u32 = 4;

impl<C: Code> Core<C> {
    /// Whether the words in an output queue are of one color, and do no more than to pass routers.
    fn only_passes(&self, queue: u8) -> bool {
        let Some(output) = self.outputs.get(usize::from(queue)) else { return true };
        let color = output.sent.map(|sent| sent.color);
        let passes = |word: &Slot| {
            Some(word.color) == color && !word.control && !word.advance && word.origin == 0
        };
        output.ring.words().all(passes)
    }
}

impl<C: Code> Region<C> {
    /// Begins a stretch of the main thread's operation if its words can leap to the host now; whether it
    /// did. The caller then notes that the slots are to be shared anew.
    pub(super) fn go_onward(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
    ) -> Result<bool, Fault> {
        let Some(output) = op.output.filter(|output| !output.control && !output.transform) else {
            return Ok(false);
        };
        if !matches!(core.outlet(output.color), Outlet::Routers(_)) || op.needs.inputs != 0 {
            return Ok(false);
        }
        let (done, length) = at.code.progress(&op.code);
        let left = length.map_or(LONGEST, |length| length - done).min(LONGEST);
        let count = left - u32::from(output.advance && left != 0);
        let simple = op.is_plain() && at.code.is_plain(&op.code) && core.bound.are_planned();
        if count < LEAST || !simple || at.plan.track || !core.only_passes(output.queue) {
            return Ok(false);
        }
        let Some((place, id)) = self.onward(at.plan, at.pe, output.color) else {
            return Ok(false);
        };
        let before = self.stands_before(at, core, (output.queue, output.color));
        self.send_before(at.plan, (place, id), before, at.t);
        let reach = Reach {
            begin: at.t,
            floor: 0,
            leaves: self.passes_from(place, id),
            count: count as usize,
            inputs: [None; 2],
            output: Some(Sink::Pipe(id)),
        };
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Onward);
        self.begin_stretch(at, core, op, reach)?;
        self.leapt(place, id);
        Ok(true)
    }

    /// Takes the words of a color out that are to go up the ramp, and those that stand on it.
    fn stands_before(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (queue, color): (u8, u8),
    ) -> Vec<u32> {
        let mut before = self.buffers.pop().unwrap_or_default();
        let router = self.router(at.plan, at.pe);
        before.extend(router.take_ramp(color).into_iter().map(|word| word.payload));
        let queue = usize::from(queue);
        while core.leaving >> queue & 1 != 0 {
            self.ways.count(color, way(core.outlet(color)), 1);
            before.push(self.leave_queue(core, queue, at.t).payload);
        }
        before
    }
}
