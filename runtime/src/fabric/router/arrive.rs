//! Words of channels at the last router of their way: they go down the ramp as all others do.

use super::{Candidate, RAMP};
use crate::fabric::channel::Route;
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
            let channel = &self.channels[id as usize];
            let Some(arrival) = channel.arrival() else { continue };
            let route = channel.route();
            let place = if arrival > t { arrival } else { self.place_from(plan, code, &route, t) };
            if place > t {
                later = later.min(place);
                continue;
            }
            more |= best.is_some();
            let key = (arrival, route.color, route.port, id);
            if best.is_none_or(|best| key < best) {
                best = Some(key);
            }
        }
        if let Some((.., id)) = best {
            self.active_until = self.active_until.max(t + 1);
            let next = self.leave(plan, code, pe, t, id);
            later = later.min(if more { t + 1 } else { next.max(t + 1) });
        }
        if later != NEVER {
            self.wakes.router(pe, later);
        }
    }

    fn incoming_at(&self, pe: u32) -> &[u32] {
        self.incoming.as_ref().map_or(&[], |incoming| &incoming[pe as usize])
    }

    /// From which cycle the queue at the end of a channel has a place.
    fn place_from(&mut self, plan: &Plan, code: &C, route: &Route, t: u64) -> u64 {
        match self.end_of(plan, route, t) {
            Some(queue) => self.core(plan, code, route.dest).inputs[queue].ring.free_from(),
            None => NEVER,
        }
    }

    /// The queue at the end of a channel in cycle `t`.
    fn end_of(&self, plan: &Plan, route: &Route, t: u64) -> Option<usize> {
        match &self.cores[route.dest as usize] {
            Some(core) if !core.bound.are_planned() => {
                self.queue_of(plan, route.number, route.dest, route.color, t)
            }
            Some(_) | None => route.queue.map(usize::from),
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
            let channel = &self.channels[id as usize];
            let (arrival, route) = (channel.arrival(), channel.route());
            let Some(stamp) = arrival.filter(|&arrival| arrival <= t) else { continue };
            let free = self.place_from(plan, code, &route, t);
            if free <= t {
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

    /// The first word of a channel goes down the ramp; when the next one comes.
    pub(super) fn leave(&mut self, plan: &Plan, code: &C, pe: u32, t: u64, id: u32) -> u64 {
        let channel = &mut self.channels[id as usize];
        let route = channel.route();
        let (mut word, credit) = channel.pop(&plan.timing, t);
        let next = channel.arrival().unwrap_or(NEVER);
        self.stats.hops += u64::from(route.hops);
        if let Some(free) = credit {
            self.wakes.core(route.source, free);
        }
        word.stamp = t + plan.timing.ramp_down;
        if let Some(queue) = self.end_of(plan, &route, t) {
            self.deliver(plan, code, pe, queue, word);
        }
        next
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
