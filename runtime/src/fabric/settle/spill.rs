//! What stands in a pipe, put where it would be if it had gone from router to router: commands follow it, which go that
//! way themselves.
//!
//! A word is as far as it would have come by itself, and as there are places before it.

use crate::fabric::channel::Route;
use crate::fabric::ring::{NEVER, Slot};
use crate::fabric::router::RAMP;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::pe::visit::Visit;
use crate::sched::region::Region;

/// Where the words of a way are, with the cycles in which they would be at the last router.
struct Standing {
    /// In the queue at its end; in routers, the last of them first, by how many come before it; behind these.
    queued: Vec<(u64, u32)>,
    routed: Vec<(usize, Vec<(u64, u32)>)>,
    rest: Vec<(u64, u32)>,
}

impl<C: Code> Region<C> {
    /// Puts the words of a pipe into the routers of its way, the queue at its end, and back into the output queue before
    /// what stands there. If it does not: the cycle in which that may be tried again, [`NEVER`] for when words have
    /// been taken. They may not all be in this region, not have left their operation, or be more than there are places
    /// for, as an operation is bound to take those.
    pub(crate) fn spill(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (queue, id): (usize, u32),
    ) -> Result<(), u64> {
        let (plan, pipe) = (at.plan, &self.pipes[id as usize]);
        let route = pipe.route();
        let is_here = route.entry == RAMP && route.region == self.id && route.borders == 0;
        let is_plain = route.link.is_none() && pipe.multicast().is_none() && route.dest != at.pe;
        let waiting = core.outputs.get(queue).map_or(0, |output| output.ring.len() as u32);
        if !is_here || !is_plain || pipe.held() + waiting > pipe.places() {
            return Err(NEVER);
        }
        let left = pipe.last_sent().saturating_sub(pipe.transit());
        if left > at.t {
            return Err(left);
        }
        // Until then more of them may have come farther.
        let arrived = pipe.last_sent() + plan.timing.ramp_down;
        let nodes = self.nodes(plan, &route);
        if nodes.len() != route.hops as usize + 1 || !self.is_clear(plan, &route) {
            return Err(NEVER);
        }
        let standing = self.standing(at, id, &nodes);
        let places = at.program.outputs[queue].places;
        if standing.rest.len() as u32 + waiting > places {
            return Err(if at.t <= arrived { at.t + 1 } else { NEVER });
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Spilled);
        self.put_down(at, (id, &nodes), &standing);
        self.stats.sent -= standing.rest.len() as u64;
        self.ways.take_back(route.color, standing.rest.len() as u64);
        let back = standing.rest.iter().map(|&(arrival, payload)| {
            let stamp = (arrival + 1).saturating_sub(self.pipes[id as usize].transit());
            Slot { stamp, payload, color: route.color, ..Slot::default() }
        });
        core.send_before(queue, places, back.collect());
        self.pipes[id as usize].clear_words();
        self.wakes.core(at.pe, self.now + 1);
        Ok(())
    }

    /// Where the words of a pipe are by now, whose way goes through these routers.
    fn standing(&mut self, at: &Visit<'_, C>, id: u32, nodes: &[(u32, u8)]) -> Standing {
        let timing = at.plan.timing;
        let Route { dest, queue, hops, .. } = self.pipes[id as usize].route();
        let words: Vec<(u64, u32)> = self.pipes[id as usize].all_arrivals().collect();
        // The farthest ones come first.
        let mut rest = &words[..];
        let mut take = |places: usize, before: u64| {
            let there = rest.iter().take(places).take_while(|(arrival, _)| *arrival < before);
            let (here, others) = rest.split_at(there.count());
            rest = others;
            here.to_vec()
        };
        let queued = queue.map_or_else(Vec::new, |queue| {
            let ring = &self.core(at.plan, at.code, dest).inputs[usize::from(queue)].ring;
            take(ring.places() - ring.len(), (at.t + 1).saturating_sub(timing.ramp_down))
        });
        let mut routed = Vec::with_capacity(nodes.len());
        for (node, &(_, port)) in nodes.iter().enumerate().rev() {
            let entry = if node == 0 { timing.ramp_up } else { timing.hop };
            let before = at.t + timing.hop * (u64::from(hops) - node as u64) + entry;
            routed.push((node, take(timing.places_at(port) as usize, before)));
        }
        Standing { queued, routed, rest: rest.to_vec() }
    }

    /// Puts words into the queue at the end of a pipe and into the routers of its way.
    fn put_down(
        &mut self,
        at: &Visit<'_, C>,
        (id, nodes): (u32, &[(u32, u8)]),
        standing: &Standing,
    ) {
        let (plan, timing) = (at.plan, at.plan.timing);
        let Route { dest, color, hops, .. } = self.pipes[id as usize].route();
        for &(arrival, _) in &standing.queued {
            // Whoever waits for its place is told now.
            let word = self.leave_pipe(id, (arrival + timing.ramp_down).max(self.now));
            let word = Slot { stamp: arrival + timing.ramp_down, ..word };
            self.settle_in_queue(plan, at.code, id, word);
            self.wakes.core(dest, self.now + 1);
        }
        for (node, words) in &standing.routed {
            let (pe, port) = nodes[*node];
            // A word's way from its operation to the last router takes longer than from there.
            let behind = timing.hop * (u64::from(hops) - *node as u64);
            let slot = |&(arrival, payload): &(u64, u32)| Slot {
                stamp: arrival - behind,
                payload,
                color,
                ..Slot::default()
            };
            let filled = self.fill_router(plan, (pe, port), *node, &mut words.iter().map(slot));
            if let Some(first) = filled.first() {
                self.wakes.router(pe, first.stamp.max(self.now + 1));
            }
        }
    }
}
