//! Words of channels and pipes at the last router of their way: they go down the ramp as all
//! others do.

use super::{Candidate, RAMP};
use crate::fabric::channel::Route;
use crate::fabric::pipe::Inflow;
use crate::fabric::ring::{NEVER, Slot};
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// R4 for a router in which only pipes end, and whose lanes are empty.
    pub(super) fn descend_pipes(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        self.hand_over(plan, pe, t);
        let mut best: Option<(u64, u8, u8, u32)> = None;
        let (mut later, mut more) = (NEVER, false);
        for at in 0..self.incoming_at(pe).len() {
            let inflow = self.incoming_at(pe)[at];
            let Some((arrival, route)) = self.head_of(plan, inflow) else { continue };
            let id = inflow.pipe;
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
            let next = self.land_from_pipe(plan, code, pe, t, id);
            later = later.min(if more { t + 1 } else { next.max(t + 1) });
        }
        if later != NEVER {
            self.wakes.router(pe, later);
        }
    }

    pub(in crate::fabric) fn incoming_at(&self, pe: u32) -> &[Inflow] {
        self.incoming.as_ref().map_or(&[], |incoming| &incoming[pe as usize])
    }

    /// When the first word of a pipe comes, and its way. Those that nobody sees in its queue do not
    /// come down one by one.
    fn head_of(&self, plan: &Plan, inflow: Inflow) -> Option<(u64, Route)> {
        let pipe = &self.pipes[inflow.pipe as usize];
        let route = pipe.route();
        let arrival = pipe.arrival().filter(|_| route.link.is_none())?;
        (!self.stays(plan, route.dest, route.number, inflow.queue)).then_some((arrival, route))
    }

    /// From which cycle the queue at the end of a pipe has a place.
    fn place_from(&mut self, plan: &Plan, code: &C, route: &Route, t: u64) -> u64 {
        match self.end_of(plan, route, t) {
            Some(queue) => self.core(plan, code, route.dest).inputs[queue].ring.free_from(),
            None => NEVER,
        }
    }

    /// The queue at the end of a pipe in cycle `t`.
    fn end_of(&self, plan: &Plan, route: &Route, t: u64) -> Option<usize> {
        match &self.cores[route.dest as usize] {
            Some(core) if !core.bound.are_planned() => {
                self.queue_of(plan, route.number, route.dest, route.color, t)
            }
            Some(_) | None => route.queue.map(usize::from),
        }
    }

    /// Whether channels or pipes end at a router.
    pub(super) fn ends_at(&self, pe: u32) -> bool {
        if self.flow { !self.incoming_at(pe).is_empty() } else { self.lands_at(pe) }
    }

    /// The words of channels and pipes that could go down the ramp.
    pub(super) fn arrivals(
        &mut self,
        plan: &Plan,
        code: &C,
        pe: u32,
        t: u64,
        candidates: &mut Vec<Candidate>,
    ) {
        let offer = |(id, stamp, color, port)| Candidate {
            stamp,
            channel: id,
            color,
            port,
            outs: 1 << RAMP,
            ..Candidate::default()
        };
        candidates.extend(self.landing_at(plan, pe, t).map(offer));
        self.hand_over(plan, pe, t);
        for at in 0..self.incoming_at(pe).len() {
            let inflow = self.incoming_at(pe)[at];
            let id = inflow.pipe;
            let head = self.head_of(plan, inflow).filter(|&(arrival, _)| arrival <= t);
            let Some((stamp, route)) = head else { continue };
            let free = self.place_from(plan, code, &route, t);
            if free <= t {
                candidates.push(offer((id, stamp, route.color, route.port)));
            } else if free != NEVER {
                self.wakes.router(pe, free);
            }
        }
    }

    /// The first word of a channel or pipe goes down the ramp.
    pub(super) fn leave(&mut self, plan: &Plan, code: &C, pe: u32, t: u64, id: u32) {
        if self.flow {
            self.land_from_pipe(plan, code, pe, t, id);
        } else {
            self.land_one(plan, code, pe, t, id);
        }
    }

    /// The first word of a pipe goes down the ramp; when the next one comes.
    fn land_from_pipe(&mut self, plan: &Plan, code: &C, pe: u32, t: u64, id: u32) -> u64 {
        let word = self.leave_pipe(id, t);
        let pipe = &self.pipes[id as usize];
        let (route, next) = (pipe.route(), pipe.arrival().unwrap_or(NEVER));
        if let Some(queue) = self.end_of(plan, &route, t) {
            let stamp = t + plan.timing.ramp_down;
            self.deliver(plan, code, pe, queue, Slot { stamp, ..word });
        }
        next
    }

    /// Looks again when the next words of channels and pipes come that somebody waits for.
    pub(super) fn rearm_arrivals(&mut self, plan: &Plan, pe: u32, t: u64, any_moved: bool) {
        self.landed(pe, t);
        self.rearm_wanted(plan, pe, t);
        for at in 0..self.incoming_at(pe).len() {
            let inflow = self.incoming_at(pe)[at];
            let Some((arrival, _)) = self.head_of(plan, inflow) else { continue };
            if arrival > t {
                self.wakes.router(pe, arrival);
            } else if any_moved {
                self.wakes.router(pe, t + 1);
            }
        }
    }
}
