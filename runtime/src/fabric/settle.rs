//! Where the words of pipes stand when nothing moves any more, or before commands that follow them.

mod multicast;
mod spill;

use dflow_ir::mesh::{Port, Wavelet};

use super::channel::{Outlet, Route};
use super::ring::{Ring, Slot};
use super::router::{Dealing, RAMP, Source};
use crate::pe::code::Code;
use crate::pe::core::{Core, Sent, bits};
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Why;

/// A router of a way: its region, its PE there, and the port by which words come.
type Node = (u32, u32, u8);

/// Puts the words of pipes, of which none can move any more, where they stand: as far ahead
/// as there are places.
pub(crate) fn settle_pipes<C: Code>(plan: &Plan, code: &C, regions: &mut [Region<C>]) {
    let t = regions.iter().map(|region| region.active_until).max().unwrap_or(0);
    let next = regions.iter().fold(t, |next, region| next.max(region.wakes.base()));
    for home in 0..regions.len() {
        for id in 0..regions[home].pipes.len() as u32 {
            let pipe = &regions[home].pipes[id as usize];
            let route = pipe.route();
            if let Some(multicast) = pipe.multicast() {
                let settles = !multicast.others.is_empty() && regions[home].is_way_used(id);
                if settles && regions[home].settle_multicast(plan, code, id, t).is_some() {
                    regions[home].wake_behind(&route, next);
                }
                continue;
            }
            if pipe.held() == 0 || pipe.comes_from().is_some() || route.link.is_some() {
                continue;
            }
            let is_abroad = pipe.leads_abroad();
            let taker = match is_abroad {
                true => regions[route.region as usize].taker_of(home as u32, id),
                false => Some(id),
            };
            let Some(taker) = taker else { continue };
            let words: Vec<u32> =
                regions[route.region as usize].pipes[taker as usize].words().collect();
            let nodes = nodes(plan, regions, (home as u32, &route));
            if words.len() > places_of(plan, code, regions, (home, &route), &nodes) {
                continue;
            }
            regions[home].drop_pipe(id);
            if is_abroad {
                #[cfg(test)]
                crate::sched::reached::note(crate::sched::reached::Reached::Settled);
                regions[route.region as usize].drop_pipe(taker);
            }
            regions[home].look_again(&route);
            settle(plan, code, regions, (home, &route), &nodes, (words, t));
            regions[home].wake_behind(&route, next);
        }
    }
}

/// The routers of a way that begins in a region.
fn nodes<C: Code>(plan: &Plan, regions: &[Region<C>], (home, route): (u32, &Route)) -> Vec<Node> {
    let mut nodes = vec![(home, route.source, route.entry)];
    let (mut at, mut from) = ((home, route.source), route.entry);
    while nodes.len() <= route.hops as usize {
        let region = &regions[at.0 as usize];
        let Ok((port, _)) = region.table_at(plan, at.1).hands_on(route.color, from) else { break };
        let (x, y) = region.place(at.1);
        let Some((x, y)) = plan.neighbor(x, y, Port::ALL[usize::from(port)]) else { break };
        (at, from) = (plan.locate(x, y), port ^ 1);
        nodes.push((at.0, at.1, from));
    }
    nodes
}

/// Places for words between two cores.
fn places_of<C: Code>(
    plan: &Plan,
    code: &C,
    regions: &mut [Region<C>],
    (home, route): (usize, &Route),
    nodes: &[Node],
) -> usize {
    let input = route.queue.map_or(0, |queue| {
        let core = regions[route.region as usize].core(plan, code, route.dest);
        let ring = &core.inputs[usize::from(queue)].ring;
        ring.places() - ring.len()
    });
    if let Some(source) = regions[home].host_of(route) {
        // What packets of a line still hold has no place.
        return if matches!(source.dealing, Dealing::Line(_)) { 0 } else { usize::MAX };
    }
    let links = (nodes.len() - 1) * plan.timing.link_places as usize;
    let output = regions[home].sender_of(route).map_or(0, |(core, queue)| {
        let places = plan.programs[usize::from(core.at.program)].outputs[queue].places;
        places as usize - core.outputs.get(queue).map_or(0, |output| output.ring.len())
    });
    input + links + plan.timing.ramp_places as usize + output
}

/// Puts words of a way that begins in a region where they stand.
fn settle<C: Code>(
    plan: &Plan,
    code: &C,
    regions: &mut [Region<C>],
    (home, route): (usize, &Route),
    nodes: &[Node],
    (words, t): (Vec<u32>, u64),
) {
    let slot = |payload| Slot { stamp: t, payload, color: route.color, ..Slot::default() };
    let mut words = words.into_iter().map(slot);
    regions[route.region as usize].fill_queue(plan, code, route, &mut words);
    for (node, &(region, pe, port)) in nodes.iter().enumerate().rev() {
        let filled = regions[region as usize].fill_router(plan, (pe, port), node, &mut words);
        if let Some(&(before, pe, _)) = node.checked_sub(1).and_then(|before| nodes.get(before))
            && before != region
        {
            // The router before it counts the places of another region's.
            regions[before as usize].fill_shadow(plan, (pe, port ^ 1), route.color, &filled);
        }
    }
    regions[home].fill_source(plan, route, words.collect(), t);
}

impl<C: Code> Region<C> {
    /// The sender of a way, whose pipe is no more, has to find out what it is.
    fn look_again(&mut self, route: &Route) {
        // What stands in routers of another region cannot be seen. What follows commands goes where they go.
        let new = |old| match (old, route.borders) {
            (Outlet::Closing(_), _) => Outlet::Routers(Why::Commands),
            (_, 0) => Outlet::Unknown,
            _ => Outlet::Routers(Why::Behind),
        };
        if let Some(source) = self.host_of(route) {
            source.outlet = Outlet::Unknown;
        } else if let Some(core) = &mut self.cores[route.source as usize] {
            let outlet = core.outlets.entry(route.color.into());
            *outlet = new(*outlet);
        }
    }

    /// What a core has sent behind the words of a way, which stand now, may go on from cycle `next` on. An operation that
    /// has found no place in a queue without words finds none there now: all places of the way are taken.
    fn wake_behind(&mut self, route: &Route, next: u64) {
        let Some(core) = self.cores[route.source as usize].as_deref() else { return };
        let heads = bits(core.leaving).filter_map(|queue| core.outputs[queue].ring.head());
        if route.entry == RAMP && heads.into_iter().any(|head| head.color == route.color) {
            self.wakes.core(route.source, next);
        }
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
        let queue =
            core.outputs.iter().find(|(_, output)| sends(&output.sent)).map(|(queue, _)| queue)?;
        Some((core, queue))
    }

    /// Words go into the queue at the end of a way.
    fn fill_queue(
        &mut self,
        plan: &Plan,
        code: &C,
        route: &Route,
        words: &mut impl Iterator<Item = Slot>,
    ) {
        let Some(queue) = route.queue.map(usize::from) else { return };
        let ring = &self.core(plan, code, route.dest).inputs[queue].ring;
        for word in words.take(ring.places() - ring.len()) {
            let word = after(word, &self.core(plan, code, route.dest).inputs[queue].ring);
            self.stats.hops += u64::from(route.hops);
            self.core(plan, code, route.dest).take_in(queue, word);
            self.delivered(route.number, queue, word);
        }
    }

    /// Words went into the router of another region behind a link.
    fn fill_shadow(&mut self, plan: &Plan, (pe, port): (u32, u8), color: u8, words: &[Slot]) {
        let shadow = self.router(plan, pe).shadow(color, port, plan.timing.link_places);
        for word in words {
            shadow.push(Slot { stamp: word.stamp, ..Slot::default() });
        }
    }

    /// Words go into a router of a way, so many hops from where it begins; those that did.
    fn fill_router(
        &mut self,
        plan: &Plan,
        (pe, port): (u32, u8),
        hops: usize,
        words: &mut impl Iterator<Item = Slot>,
    ) -> Vec<Slot> {
        let places = plan.timing.places_at(port);
        let mut filled = Vec::new();
        for word in words.take(places as usize) {
            self.stats.hops += hops as u64;
            let router = self.router(plan, pe);
            let stamp = word.stamp.max(router.free_from(word.color, port) + 1);
            let word = Slot { stamp, ..word };
            router.push(plan, word.color, port, places, word);
            filled.push(word);
        }
        filled
    }

    /// Words go back to where a way begins.
    fn fill_source(&mut self, plan: &Plan, route: &Route, words: Vec<Slot>, t: u64) {
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
        if let Some(sent) = core.outputs.get_mut(queue).and_then(|output| output.sent.as_mut()) {
            sent.words = sent.words.saturating_sub(words.len() as u64);
        }
        for word in words {
            core.send_again(queue, places, word);
        }
    }
}

/// A word that may take the next place of a buffer.
fn after(word: Slot, ring: &Ring) -> Slot {
    Slot { stamp: word.stamp.max(ring.free_from() + 1), ..word }
}
