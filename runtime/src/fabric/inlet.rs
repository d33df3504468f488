//! Pipes that begin at the host, or end there.
//!
//! In the `flow` engine the host's end of a color's way that only hands words on is one end of a
//! pipe: the host sends a packet of as many words as there are places for, and takes each packet
//! when its last word is there. Where the host itself says how many words it takes, or wants to
//! know when its words are at rest, they go through routers as in `exact` (`Region::routed`).
//!
//! Invariant: words of a link enter in their order; one that must go through routers waits until
//! the pipe before it is empty.

use dflow_ir::mesh::Wavelet;

use super::channel::{Outlet, Route};
use super::pipe::End;
use super::ring::NEVER;
use super::router::{RAMP, Router, Source};
use crate::pe::code::Code;
use crate::pe::core::bits;
use crate::pe::flow::LONGEST;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Way;

impl<C: Code> Region<C> {
    /// The next words of a source enter by a pipe, if there is one; false if they go through
    /// the router.
    pub(super) fn enter_pipe(
        &mut self,
        plan: &Plan,
        (router, pe): (&mut Router, u32),
        index: usize,
        t: u64,
    ) -> bool {
        let source = &mut router.sources[index];
        let (color, entry) = (source.color, source.port);
        let is_control = source.words.front().is_some_and(|(_, word)| word.control);
        if source.outlet == Outlet::Unknown && !is_control {
            let clear = !router.holds(color, entry);
            let route = self.route(plan, (pe, entry), color);
            let route = route.ok().filter(|route| clear && self.is_clear(plan, route));
            let queued = route.and_then(|route| self.words_at_end(&route, None));
            let source = &mut router.sources[index];
            let route = route.filter(|_| !source.counted && self.routed >> color & 1 == 0);
            match route.zip(queued) {
                Some((route, queued)) => source.outlet = self.new_pipe(plan, route, (0, queued)),
                None => return false,
            }
        }
        let source = &mut router.sources[index];
        match source.outlet {
            Outlet::Pipe(id) if !is_control => {
                self.enter_words(plan, source, id, (pe, t));
                true
            }
            Outlet::Pipe(id) | Outlet::Closing(id) => {
                source.outlet = Outlet::Closing(id);
                let is_used = self.pipes[id as usize].is_used();
                if is_used {
                    self.pipes[id as usize].want(0);
                } else {
                    source.outlet = Outlet::Unknown;
                    self.drop_pipe(id);
                }
                is_used
            }
            Outlet::Unknown
            | Outlet::Routers(_)
            | Outlet::Channel(_)
            | Outlet::Gathered(_)
            | Outlet::Merged(_) => false,
        }
    }

    /// As many words of a source as may enter now become a packet.
    fn enter_words(&mut self, plan: &Plan, source: &mut Source, id: u32, (pe, t): (u32, u64)) {
        let most = self.pipes[id as usize].room().min(LONGEST) as usize;
        if most == 0 {
            return self.pipes[id as usize].want(0);
        }
        let count = source.ready(t).take(most).count();
        let mut words = self.buffers.pop().unwrap_or_default();
        words.extend(source.words.drain(..count).map(|(_, word)| word.payload));
        let way = if count > 1 { Way::Stretch } else { Way::Single };
        self.ways.count(source.color, way, count as u64);
        self.stats.entered += count as u64;
        self.send_words(plan, id, (t, t + count as u64 - 1), words);
        source.next = t + count as u64;
        self.active_until = self.active_until.max(source.next);
        if !source.words.is_empty() {
            self.wakes.router(pe, source.next);
        }
    }

    /// The host takes the packets that have come to it whole by cycle `t`.
    pub(super) fn hand_over(&mut self, plan: &Plan, pe: u32, t: u64) {
        for at in 0..self.incoming_at(pe).len() {
            let id = self.incoming_at(pe)[at].pipe;
            let route = self.pipes[id as usize].route();
            if route.link.is_none() {
                continue;
            }
            let next = loop {
                let pipe = &self.pipes[id as usize];
                let Some(last) = pipe.last_arrival() else { break NEVER };
                if last > t {
                    break last;
                }
                self.hand_over_one(plan, id, t);
            };
            if next != NEVER {
                self.wakes.router(pe, next);
            }
        }
    }

    /// The host takes the first packet of a pipe in cycle `t`.
    pub(super) fn hand_over_one(&mut self, plan: &Plan, id: u32, t: u64) {
        let pipe = &mut self.pipes[id as usize];
        let Route { link, hops, .. } = pipe.route();
        let words = pipe.arrivals().map(|(arrival, payload)| {
            let word = Wavelet { payload, control: false };
            (link.unwrap_or_default(), arrival + plan.timing.hop, word)
        });
        let before = self.to_host.len();
        self.to_host.extend(words);
        let count = self.to_host.len() - before;
        let (.., buffer) = pipe.take(count);
        self.keep_buffer(buffer);
        self.stats.hops += count as u64 * u64::from(hops);
        self.stats.delivered += count as u64;
        self.stats.to_host += count as u64;
        self.active_until = self.active_until.max(t + 1);
        self.wake_sender(id, t);
    }

    /// A place of a pipe is free from cycle `t` on: who waits for one looks again when it sees it.
    pub(crate) fn wake_sender(&mut self, id: u32, t: u64) {
        if self.tell_sender(id, Some(t)) {
            return;
        }
        let pipe = &mut self.pipes[id as usize];
        let Some(credit) = pipe.credit() else { return };
        // Of a place beyond a border it is told later.
        let (route, seen) = (pipe.route(), (t + credit).max(self.now));
        if route.entry == RAMP {
            self.wakes.core(route.source, seen);
        } else {
            self.wakes.router(route.source, seen);
        }
    }

    /// A pipe without words is none any more.
    pub(super) fn drop_pipe(&mut self, id: u32) {
        let pipe = &mut self.pipes[id as usize];
        pipe.clear();
        if let Some(incoming) = self.incoming.as_mut().filter(|_| !pipe.leads_abroad()) {
            incoming[pipe.route().dest as usize].retain(|inflow| inflow.pipe != id);
        }
        if let Some(End::Taker(taker)) = pipe.end.take().as_deref() {
            self.from_abroad.remove(&(taker.region, taker.pipe));
        }
        self.unused.push(id);
        self.closed = self.closed.wrapping_add(1);
    }

    /// Words of some colors (as bits) that come from the host, or go there, go through routers from
    /// now on.
    pub(crate) fn route_host_words(&mut self, colors: u32) {
        let new = colors & !self.routed;
        self.routed |= new;
        if !self.flow || new == 0 {
            return;
        }
        for core in self.cores.iter_mut().flatten() {
            for color in bits(u64::from(new)) {
                if let Some(outlet) = core.outlets.get_mut(color)
                    && let Outlet::Pipe(id) = *outlet
                    && self.pipes[id as usize].route().link.is_some()
                {
                    *outlet = Outlet::Closing(id);
                }
            }
        }
        for source in self.routers.iter_mut().flatten().flat_map(|router| &mut router.sources) {
            if let Outlet::Pipe(id) = source.outlet
                && new >> source.color & 1 != 0
            {
                source.outlet = Outlet::Closing(id);
            }
        }
    }
}
