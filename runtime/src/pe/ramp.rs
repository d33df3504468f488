//! Up the ramp: R11.

use super::code::Code;
use super::core::{Core, bits};
use crate::fabric::channel::Outlet;
use crate::fabric::ring::{NEVER, Slot};
use crate::fabric::router::RAMP;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// R11: one word up the ramp.
    pub(super) fn ascend(&mut self, plan: &Plan, core: &mut Core<C>, pe: u32, t: u64) {
        let Some(queue) = self.departure(plan, core, pe, t) else { return };
        core.acted.acted = true;
        self.stats.sent += 1;
        let mut word = core.outputs[queue].pop(t + 1);
        if let Some(Some(sent)) = core.sent.get_mut(queue) {
            sent.words += u64::from(sent.color == word.color);
        }
        core.full &= !(1 << queue);
        if core.outputs[queue].is_empty() {
            core.leaving &= !(1 << queue);
        }
        if let Outlet::Channel(id) = core.outlets[usize::from(word.color)] {
            let channel = &mut self.channels[id as usize];
            if channel.push(word, t)
                && let Some(arrival) = channel.arrival()
            {
                self.wakes.router(channel.route().dest, arrival);
            }
            return;
        }
        if let Outlet::Pipe(id) = core.outlets[usize::from(word.color)] {
            self.send_words(plan, id, (t - 1, t - 1), vec![word.payload]);
            return;
        }
        word.stamp = t + plan.timing.ramp_up;
        let places = plan.timing.ramp_places;
        if self.router(plan, pe).push(plan, word.color, RAMP, places, word) {
            self.wakes.router(pe, word.stamp);
        }
    }

    /// The output queue whose head goes up the ramp in cycle `t`; a look is arranged for when one
    /// could, if none can now.
    fn departure(&mut self, plan: &Plan, core: &mut Core<C>, pe: u32, t: u64) -> Option<usize> {
        let mut best: Option<(u64, usize)> = None;
        let mut later = NEVER;
        for queue in bits(core.leaving) {
            let Some(&Slot { stamp, color, .. }) = core.outputs[queue].head() else { continue };
            let from = self.free_ramp(plan, core, pe, (queue, color)).max(stamp);
            if from > t {
                later = later.min(from);
            } else if best.is_none_or(|best| (stamp, queue) < best) {
                best = Some((stamp, queue));
            }
        }
        if best.is_none() && later != NEVER {
            self.wakes.core(pe, later);
        }
        best.map(|(_, queue)| queue)
    }

    /// Where a color's words lead that leave by a queue.
    pub(super) fn known_outlet(
        &mut self,
        plan: &Plan,
        core: &mut Core<C>,
        pe: u32,
        color: u8,
        queue: usize,
    ) -> Outlet {
        let mut outlet = core.outlets[usize::from(color)];
        if outlet == Outlet::Unknown {
            let program = &plan.programs[usize::from(core.at.program)];
            outlet = self.outlet(plan, pe, color, program.outputs[queue].places);
            core.outlets[usize::from(color)] = outlet;
        }
        outlet
    }

    /// From which cycle a word of a color may go up the ramp.
    fn free_ramp(
        &mut self,
        plan: &Plan,
        core: &mut Core<C>,
        pe: u32,
        (queue, color): (usize, u8),
    ) -> u64 {
        match self.known_outlet(plan, core, pe, color, queue) {
            Outlet::Pipe(id) if self.pipes[id as usize].takes_one() => 0,
            Outlet::Pipe(id) => {
                self.pipes[id as usize].want();
                NEVER
            }
            Outlet::Channel(id) => self.channels[id as usize].free_from(),
            Outlet::Closing(id) if self.pipes[id as usize].held() != 0 => {
                self.pipes[id as usize].want();
                NEVER
            }
            Outlet::Routers | Outlet::Unknown | Outlet::Closing(_) => {
                let router = self.routers[pe as usize].as_deref();
                router.map_or(0, |router| router.free_from(color, RAMP))
            }
        }
    }
}
