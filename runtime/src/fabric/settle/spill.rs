//! What stands in a pipe, put where it would be if it had gone from router to router: commands follow it, which go that
//! way themselves.
//!
//! A word is as far as it would have come by itself, and as there are places before it.

use crate::fabric::channel::Route;
use crate::fabric::ring::Slot;
use crate::fabric::router::RAMP;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::pe::visit::Visit;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// Puts the words of a pipe into the routers of its way, the queue at its end, and back into the output queue before
    /// what stands there; whether it did. Not if they are not all in this region, have not left their operation, or
    /// are more than there are places for: an operation is bound to take those.
    pub(crate) fn spill(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (queue, id): (usize, u32),
    ) -> bool {
        let (plan, timing, pipe) = (at.plan, at.plan.timing, &self.pipes[id as usize]);
        let route @ Route { dest, color, hops, .. } = pipe.route();
        let is_here = route.entry == RAMP && route.region == self.id && route.borders == 0;
        let is_plain = route.link.is_none() && pipe.multicast().is_none() && dest != at.pe;
        if !is_here || !is_plain || pipe.last_sent() > at.t + pipe.transit() {
            return false;
        }
        let words: Vec<(u64, u32)> = pipe.all_arrivals().collect();
        let nodes = self.nodes(plan, &route);
        if nodes.len() != hops as usize + 1 || !self.is_clear(plan, &route) {
            return false;
        }
        // The farthest ones come first.
        let mut rest = &words[..];
        let mut split = |places: usize, is_there: &dyn Fn(u64) -> bool| {
            let there = rest.iter().take(places).take_while(|(arrival, _)| is_there(*arrival));
            let (here, behind) = rest.split_at(there.count());
            rest = behind;
            here
        };
        let queued = route.queue.map_or(&[][..], |queue| {
            let ring = &self.core(plan, at.code, dest).inputs[usize::from(queue)].ring;
            let places = ring.places() - ring.len();
            split(places, &|arrival| arrival + timing.ramp_down <= at.t)
        });
        let behind = |node: usize| timing.hop * (u64::from(hops) - node as u64);
        let mut routed = Vec::with_capacity(nodes.len());
        for (node, &(_, port)) in nodes.iter().enumerate().rev() {
            let entry = if node == 0 { timing.ramp_up } else { timing.hop };
            let is_there = |arrival: u64| arrival < at.t + behind(node) + entry;
            routed.push((node, split(timing.places_at(port) as usize, &is_there)));
        }
        let places = at.program.outputs[queue].places as usize;
        if rest.len() + core.outputs.get(queue).map_or(0, |output| output.ring.len()) > places {
            return false;
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Spilled);
        let slot = |stamp, payload| Slot { stamp, payload, color, ..Slot::default() };
        for &(arrival, _) in queued {
            let word = self.leave_pipe(id, arrival + timing.ramp_down);
            self.settle_in_queue(plan, at.code, id, word);
            self.wakes.core(dest, self.now + 1);
        }
        for (node, words) in routed {
            let (pe, port) = nodes[node];
            let mut words = words.iter().map(|&(arrival, word)| slot(arrival - behind(node), word));
            let filled = self.fill_router(plan, (pe, port), node, &mut words);
            if let Some(first) = filled.first() {
                self.wakes.router(pe, first.stamp.max(self.now + 1));
            }
        }
        let back = rest.iter().map(|&(arrival, payload)| {
            slot(arrival.saturating_sub(behind(0) + timing.ramp_up), payload)
        });
        self.stats.sent -= rest.len() as u64;
        self.ways.take_back(color, rest.len() as u64);
        core.send_before(queue, places as u32, back.collect());
        self.pipes[id as usize].clear_words();
        self.wakes.core(at.pe, self.now + 1);
        true
    }
}
