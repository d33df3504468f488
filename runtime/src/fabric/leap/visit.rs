//! Words go by leaps.

use super::{Leap, Place};
use crate::fabric::ring::{NEVER, Slot};
use crate::fabric::router::Router;
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// From which cycle the head of a buffer in a leap has a place at the root, [`NEVER`] if not
    /// before a word has left it; none if it goes to the next router.
    pub(in crate::fabric) fn free_in_leap(
        &mut self,
        plan: &Plan,
        (pe, place): (u32, Place),
        control: bool,
    ) -> Option<u64> {
        let leap = &mut self.leaps.all[place.leap as usize];
        let places = plan.timing.link_places;
        let leaps = leap.is_open(place.node) && (!control || place.node == 1);
        let has_room = if leaps {
            let root = self.routers[leap.root as usize].as_deref();
            let first = root.map_or(0, |root| root.words_in(leap.lane)) as u32;
            first + (leap.queue.len() as u32) < places * place.node
        } else {
            // Words that wait for the root's buffer have places of the next router too.
            let next = place.node - 1;
            let waiting = leap.standing(next, places);
            let router = self.routers[leap.pe(next) as usize].as_deref();
            let here = router.map_or(0, |router| router.words_of(leap.color, leap.port)) as u32;
            waiting == 0 || waiting + here < places
        };
        if !has_room {
            leap.waiting.push(pe);
            return Some(NEVER);
        }
        leaps.then_some(0)
    }

    /// A word that leaves a node in cycle `t` goes to the root; false if it goes to the next router,
    /// where it stops.
    pub(in crate::fabric) fn leaps(
        &mut self,
        plan: &Plan,
        place: Place,
        word: Slot,
        t: u64,
    ) -> bool {
        let leap = &mut self.leaps.all[place.leap as usize];
        let Place { node, .. } = place;
        if !leap.is_open(node) || word.control && node > 1 {
            leap.set_stop(node - 1, true);
            return false;
        }
        let stamp = (t + u64::from(node) * plan.timing.hop).max(leap.last + 1);
        leap.last = stamp;
        leap.queue.push_back(Slot { stamp, ..word });
        self.stats.hops += u64::from(node);
        self.fill_root(plan, place.leap, t);
        true
    }

    /// Words go on into the root's buffer, as far as it has places in cycle `t`.
    fn fill_root(&mut self, plan: &Plan, id: u32, t: u64) {
        let Leap { root, lane, .. } = self.leaps.all[id as usize];
        if let Some(mut router) = self.routers[root as usize].take() {
            self.fill_end(plan, &mut router, (id, lane), t);
            self.routers[root as usize] = Some(router);
        }
    }

    /// Likewise, the root being at hand.
    fn fill_end(&mut self, plan: &Plan, router: &mut Router, (id, lane): (u32, u8), t: u64) {
        let leap = &mut self.leaps.all[id as usize];
        while let Some(&word) = leap.queue.front() {
            let free = router.free_in(lane);
            if free == NEVER {
                break;
            }
            // A word that has stood sees the place first.
            let stamp = if free > t { word.stamp.max(free + plan.timing.hop) } else { word.stamp };
            leap.queue.pop_front();
            leap.last = leap.last.max(stamp);
            if router.add(lane, Slot { stamp, ..word }) {
                self.wakes.router(leap.root, stamp);
            }
        }
    }

    /// A word has left a buffer that stands in a leap, or ends it, in cycle `t`.
    pub(in crate::fabric) fn left_leap(
        &mut self,
        plan: &Plan,
        router: &mut Router,
        (index, free): (u8, u64),
        t: u64,
    ) {
        let (place, end) = router.leaps_of(index);
        if place.is_any() {
            self.look_for_stop(plan, router, place);
        }
        if !end.is_any() {
            return;
        }
        self.fill_end(plan, router, (end.leap, index), t);
        let leap = &mut self.leaps.all[end.leap as usize];
        for pe in leap.waiting.drain(..) {
            if let Some(waits) = self.routers[pe as usize].as_deref_mut() {
                waits.unblock_color(leap.color);
            }
            self.wakes.router(pe, free);
        }
    }

    /// What stands in a router of a leap, or its switch, has changed.
    pub(in crate::fabric) fn look_for_stop(&mut self, plan: &Plan, router: &Router, place: Place) {
        let leap = &mut self.leaps.all[place.leap as usize];
        leap.set_stop(place.node, router.stops(plan, leap.color, leap.port));
    }

    /// Puts the words of all leaps into routers, as none of them moves any more: before others that
    /// stand there, which came after them.
    pub(crate) fn settle_leaps(&mut self, plan: &Plan) {
        let places = plan.timing.link_places;
        for id in 0..self.leaps.all.len() {
            let Leap { color, port, nodes, .. } = self.leaps.all[id];
            for node in 1..=nodes {
                let pe = self.leaps.all[id].pe(node);
                let count = self.leaps.all[id].standing(1, places) as usize;
                if count == 0 {
                    break;
                }
                let router = self.router(plan, pe);
                let behind = router.words_of(color, port);
                let count = count.min((places as usize).saturating_sub(behind));
                let behind = router.take_all(color, port);
                let is_last = !behind.is_empty();
                let queue = &mut self.leaps.all[id].queue;
                let words: Vec<Slot> = queue.drain(..count).chain(behind).collect();
                let (router, mut last) = (self.router(plan, pe), 0);
                for word in words {
                    last = word.stamp.max(router.free_from(color, port) + 1).max(last);
                    router.push(plan, color, port, places, Slot { stamp: last, ..word });
                }
                self.stats.hops -= count as u64 * u64::from(node);
                self.leaps.all[id].set_stop(node, true);
                if is_last {
                    break;
                }
            }
        }
    }
}
