//! Where the words of pipes stand when nothing moves any more.

use dflow_ir::mesh::Wavelet;

use super::channel::{Outlet, Route};
use super::ring::{Ring, Slot};
use super::router::{RAMP, Source};
use crate::pe::code::Code;
use crate::pe::core::{Core, Sent};
use crate::sched::plan::Plan;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// Puts the words of pipes, of which none can move any more, where they stand: as far ahead
    /// as there are places.
    pub(crate) fn settle_pipes(&mut self, plan: &Plan, code: &C) {
        let t = self.active_until;
        for id in 0..self.pipes.len() as u32 {
            if self.pipes[id as usize].held() == 0 {
                continue;
            }
            let route = self.pipes[id as usize].route();
            if route.link.is_some() {
                continue;
            }
            let nodes = self.nodes(plan, &route);
            let words: Vec<u32> = self.pipes[id as usize].words().collect();
            if words.len() > self.places_of(plan, code, &route, &nodes) {
                continue;
            }
            self.drop_pipe(id);
            if let Some(source) = self.host_of(&route) {
                source.outlet = Outlet::Unknown;
            } else if let Some(core) = &mut self.cores[route.source as usize] {
                core.outlets[usize::from(route.color)] = Outlet::Unknown;
            }
            self.settle(plan, code, &route, &nodes, words, t);
        }
    }

    /// Places for words between two cores.
    fn places_of(&mut self, plan: &Plan, code: &C, route: &Route, nodes: &[(u32, u8)]) -> usize {
        let input = route.queue.map_or(0, |queue| {
            let ring = &self.core(plan, code, route.dest).inputs[usize::from(queue)].ring;
            ring.places() - ring.len()
        });
        if route.entry != RAMP {
            return usize::MAX;
        }
        let links = (nodes.len() - 1) * plan.timing.link_places as usize;
        let output = self.sender_of(route).map_or(0, |(core, queue)| {
            let places = plan.programs[usize::from(core.at.program)].outputs[queue].places;
            places as usize - core.outputs[queue].len()
        });
        input + links + plan.timing.ramp_places as usize + output
    }

    /// The host's source of a way, if it is one's.
    fn host_of(&mut self, route: &Route) -> Option<&mut Source> {
        if route.entry == RAMP {
            return None;
        }
        let router = self.routers[route.source as usize].as_deref_mut()?;
        let mut sources = router.sources.iter_mut();
        sources.find(|source| (source.color, source.port) == (route.color, route.entry))
    }

    /// The core that sends on a way, and the queue by which it does.
    fn sender_of(&mut self, route: &Route) -> Option<(&mut Core<C>, usize)> {
        let core = self.cores[route.source as usize].as_deref_mut()?;
        let sends = |sent: &Option<Sent>| sent.is_some_and(|sent| sent.color == route.color);
        let queue = core.sent.iter().position(sends)?;
        Some((core, queue))
    }

    fn settle(
        &mut self,
        plan: &Plan,
        code: &C,
        route: &Route,
        nodes: &[(u32, u8)],
        words: Vec<u32>,
        t: u64,
    ) {
        let mut words = words.into_iter().map(|payload| Slot {
            stamp: t,
            payload,
            color: route.color,
            ..Slot::default()
        });
        if let Some(queue) = route.queue.map(usize::from) {
            let ring = &self.core(plan, code, route.dest).inputs[queue].ring;
            for word in words.by_ref().take(ring.places() - ring.len()) {
                let word = after(word, &self.core(plan, code, route.dest).inputs[queue].ring);
                self.stats.hops += u64::from(route.hops);
                self.core(plan, code, route.dest).take_in(queue, word);
                self.delivered(route.number, queue, word);
            }
        }
        for (node, &(pe, port)) in nodes.iter().enumerate().rev() {
            let ramp = port == RAMP;
            let places = if ramp { plan.timing.ramp_places } else { plan.timing.link_places };
            for word in words.by_ref().take(places as usize) {
                self.stats.hops += node as u64;
                let router = self.router(plan, pe);
                let stamp = word.stamp.max(router.free_from(route.color, port) + 1);
                router.push(plan, route.color, port, places, Slot { stamp, ..word });
            }
        }
        let words: Vec<Slot> = words.collect();
        if let Some(source) = self.host_of(route) {
            for word in words.iter().rev() {
                let wavelet = Wavelet { payload: word.payload, control: false };
                source.words.push_front((t, wavelet));
            }
            self.stats.entered -= words.len() as u64;
            return self.ways.take_back(route.color, words.len() as u64);
        }
        self.stats.sent -= words.len() as u64;
        self.ways.take_back(route.color, words.len() as u64);
        let Some((core, queue)) = self.sender_of(route) else { return };
        let places = plan.programs[usize::from(core.at.program)].outputs[queue].places;
        for word in words {
            core.send_again(queue, places, word);
        }
    }
}

/// A word that may take the next place of a buffer.
fn after(word: Slot, ring: &Ring) -> Slot {
    Slot { stamp: word.stamp.max(ring.free_from() + 1), ..word }
}
