//! Words that fly are put into the routers where they are.

use super::{FLOWN, Flown};
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// Cycles for which flights are put off at most.
const MOST: u64 = 1 << 12;

impl<C: Code> Region<C> {
    /// Puts words into the routers where they are when all cycles before `t` have passed, and gives the links
    /// back. `moves`: something may happen by itself.
    pub(in crate::fabric) fn cut_flight(&mut self, plan: &Plan, id: u32, (t, moves): (u64, bool)) {
        let flight = &mut self.flights.all[id as usize];
        let mut words = std::mem::take(&mut flight.words);
        if !words.is_empty() {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Landed);
            flight.patience.put_off(t, MOST);
        }
        self.release_flight(id);
        let hop = plan.timing.hop;
        let entered = |word: &Flown| word.due - hop * u64::from(word.target + 1);
        words.make_contiguous().sort_by_key(entered);
        for word in words {
            let (flight, entered) = (&self.flights.all[id as usize], entered(&word));
            let node = ((t - 1 - entered) / hop) as u32;
            let stamp = entered + hop * u64::from(node + 1);
            let (pe, slot) = (flight.pe(node), flight.slot(&word, node, stamp));
            let way = (flight.color, flight.from);
            self.stats.hops += u64::from(node);
            if node != 0 {
                self.active_until = self.active_until.max(stamp - hop + 1);
            }
            let router = self.router(plan, pe);
            router.insert(plan, way, plan.timing.link_places, slot);
            if moves {
                self.wakes.router(pe, stamp.max(t));
            }
        }
    }

    /// Gives the links back.
    pub(super) fn release_flight(&mut self, id: u32) {
        let flight = &mut self.flights.all[id as usize];
        let clear = std::mem::take(&mut flight.clear);
        let onward = u32::from(flight.from ^ 1);
        let pes: Vec<u32> = (0..clear).map(|node| flight.pe(node)).collect();
        for pe in pes {
            if let Some(router) = self.routers[pe as usize].as_deref_mut() {
                router.flown = 0;
            }
            let link = 4 * pe + onward;
            if self.claims.get(link as usize) == Some(&((id | FLOWN) + 1)) {
                self.release_links(&[link]);
            }
        }
    }

    /// Cuts all flights, at the end of a run.
    pub(crate) fn cut_flights(&mut self, plan: &Plan, (t, moves): (u64, bool)) {
        for id in 0..self.flights.all.len() as u32 {
            if !self.flights.all[id as usize].words.is_empty() {
                self.cut_flight(plan, id, (t, moves));
                self.flights.all[id as usize].patience.reset();
            }
        }
    }

    /// No word flies over a router any more, or to it.
    pub(in crate::fabric) fn close_flights(&mut self, pe: u32) {
        for (id, flight) in (0..).zip(&mut self.flights.all) {
            if (0..flight.nodes).any(|node| flight.pe(node) == pe) {
                flight.closed = true;
                self.cuts.push((id | FLOWN, Vec::new()));
            }
        }
    }

    /// Gives up the links of a flight without words; whether it did.
    pub(in crate::fabric) fn give_up_flight(&mut self, id: u32) -> bool {
        let gives = self.flights.all[id as usize].words.is_empty();
        if gives {
            self.release_flight(id);
        }
        gives
    }
}
