//! Words of channels at the last router of their way: they go down the ramp as all others do.

use super::{Candidate, RAMP};
use crate::fabric::ring::NEVER;
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// R4 for a router in which only channels end, and whose lanes are empty.
    pub(super) fn descend(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let mut best: Option<(u64, u8, u8, u32)> = None;
        let (mut later, mut more) = (NEVER, false);
        for at in 0..self.incoming_at(pe).len() {
            let id = self.incoming_at(pe)[at];
            let Some(arrival) = self.channels[id as usize].arrival() else { continue };
            let from =
                arrival.max(if arrival <= t { self.place_from(plan, code, id, t) } else { 0 });
            if from > t {
                later = later.min(from);
                continue;
            }
            let route = self.channels[id as usize].route();
            let key = (arrival, route.color, route.port, id);
            more |= best.is_some();
            if best.is_none_or(|best| key < best) {
                best = Some(key);
            }
        }
        if let Some((.., id)) = best {
            self.active_until = self.active_until.max(t + 1);
            self.leave(plan, code, pe, t, id);
            let next = self.channels[id as usize].arrival().map_or(NEVER, |next| next.max(t + 1));
            later = later.min(if more { t + 1 } else { next });
        }
        if later != NEVER {
            self.wakes.router(pe, later);
        }
    }

    fn incoming_at(&self, pe: u32) -> &[u32] {
        self.incoming.as_ref().map_or(&[], |incoming| &incoming[pe as usize])
    }

    /// From which cycle the queue at the end of a channel has a place.
    fn place_from(&mut self, plan: &Plan, code: &C, id: u32, t: u64) -> u64 {
        let route = self.channels[id as usize].route();
        match self.queue_of(plan, route.number, route.dest, route.color, t) {
            Some(queue) => self.core(plan, code, route.dest).inputs[queue].ring.free_from(),
            None => NEVER,
        }
    }

    /// The words of channels that could go down the ramp.
    pub(super) fn arrivals(
        &mut self,
        plan: &Plan,
        code: &C,
        pe: u32,
        t: u64,
        candidates: &mut Vec<Candidate>,
    ) {
        for at in 0..self.incoming_at(pe).len() {
            let id = self.incoming_at(pe)[at];
            let arrival = self.channels[id as usize].arrival();
            let Some(stamp) = arrival.filter(|&arrival| arrival <= t) else { continue };
            let free = self.place_from(plan, code, id, t);
            if free <= t {
                let route = self.channels[id as usize].route();
                let (color, port, outs) = (route.color, route.port, 1 << RAMP);
                let channel = Some(id);
                candidates.push(Candidate {
                    stamp,
                    color,
                    port,
                    outs,
                    channel,
                    ..Candidate::default()
                });
            } else if free != NEVER {
                self.wakes.router(pe, free);
            }
        }
    }

    /// The first word of a channel goes down the ramp.
    pub(super) fn leave(&mut self, plan: &Plan, code: &C, pe: u32, t: u64, id: u32) {
        let channel = &mut self.channels[id as usize];
        let route = channel.route();
        let (mut word, credit) = channel.pop(&plan.timing, t);
        self.stats.hops += u64::from(route.hops);
        if let Some(free) = credit {
            self.wakes.core(route.source, free);
        }
        word.stamp = t + plan.timing.ramp_down;
        if let Some(queue) = self.queue_of(plan, route.number, pe, route.color, t) {
            self.deliver(plan, code, pe, queue, word);
        }
    }

    /// Looks again when the next words of channels come.
    pub(super) fn rearm_arrivals(&mut self, pe: u32, t: u64, any_moved: bool) {
        for at in 0..self.incoming_at(pe).len() {
            let id = self.incoming_at(pe)[at];
            let Some(arrival) = self.channels[id as usize].arrival() else { continue };
            if arrival > t {
                self.wakes.router(pe, arrival);
            } else if any_moved {
                self.wakes.router(pe, t + 1);
            }
        }
    }
}
