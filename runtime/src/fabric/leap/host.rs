//! Words that leap to the host many at a time: the end of a leap hands them to a link of the host.
//!
//! Invariant: words leave by the link in the order in which they would be there. A packet is there with its last
//! word, whatever leaves a node later is there later, and what stands at the end of the leap before
//! it goes first.

use super::{Leap, Place};
use crate::fabric::channel::Route;
use crate::fabric::pipe::Pipe;
use crate::fabric::router::RAMP;
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// Where the router of a PE stands in the leap of a color, and the pipe to the host for its words, if
    /// nothing is in the way of those that come up the ramp.
    pub(crate) fn onward(&mut self, plan: &Plan, pe: u32, color: u8) -> Option<(Place, u32)> {
        let place = self.routers[pe as usize].as_deref()?.leaps_up(color)?;
        let leap = &self.leaps.all[place.leap as usize];
        // What commands routers may shut the end before others come there.
        if !leap.is_open(place.node) || leap.queue.iter().any(|word| word.control) {
            return None;
        }
        let root = self.routers[leap.root as usize].as_deref()?;
        let link = root.hands_to_host(plan, leap.lane)?;
        if self.routed >> color & 1 != 0 {
            return None;
        }
        Some((place, self.leap_pipe(plan, (pe, color), place, link)))
    }

    /// The pipe from a node of a leap to the host, which is made if need be.
    fn leap_pipe(&mut self, plan: &Plan, (pe, color): (u32, u8), place: Place, link: u32) -> u32 {
        if let Some(&id) = self.leaps.pipes.get(&(place.leap, place.node)) {
            return id;
        }
        let leap = &self.leaps.all[place.leap as usize];
        let (dest, port) = (leap.root, leap.port);
        let route = Route {
            source: pe,
            entry: RAMP,
            dest,
            region: self.id,
            borders: 0,
            link: Some(link),
            number: self.number(plan, dest) as u32,
            color,
            port,
            hops: place.node,
            queue: None,
        };
        let id = self.keep_pipe(Pipe::new(&plan.timing, route, (0, 0), None, Box::default()));
        self.leaps.pipes.insert((place.leap, place.node), id);
        let leaps = &mut self.router(plan, dest).leaps;
        if !leaps.contains(&place.leap) {
            leaps.push(place.leap);
        }
        id
    }

    /// Packets of leaps that end at a router go to the host in cycle `t`, if all of their words are there.
    pub(in crate::fabric) fn leave_leaps(&mut self, plan: &Plan, pe: u32, t: u64) {
        let count = self.routers[pe as usize].as_deref().map_or(0, |router| router.leaps.len());
        for at in 0..count {
            let Some(router) = self.routers[pe as usize].as_deref() else { return };
            let leap = router.leaps[at] as usize;
            while let Some(&id) = self.leaps.all[leap].packets.front() {
                let pipe = &self.pipes[id as usize];
                let Some((first, last)) = pipe.arrival().zip(pipe.last_arrival()) else { break };
                if last > t || self.stands_at_end(leap, first) {
                    self.wakes.router(pe, last.max(t + 1));
                    break;
                }
                self.leaps.all[leap].packets.pop_front();
                self.hand_over_one(plan, id, t);
            }
        }
    }

    /// Whether a word stands at the end of a leap that came there before cycle `t`.
    fn stands_at_end(&self, leap: usize, t: u64) -> bool {
        let Leap { root, lane, queue, .. } = &self.leaps.all[leap];
        let root = self.routers[*root as usize].as_deref();
        let head = root.and_then(|root| root.head_in(*lane)).or(queue.front());
        head.is_some_and(|word| word.stamp < t)
    }

    /// Words that stand before those of a packet leave a node in cycle `t`, as soon as the leap has them pass.
    pub(crate) fn send_before(
        &mut self,
        plan: &Plan,
        (place, id): (Place, u32),
        words: Vec<u32>,
        t: u64,
    ) {
        let Some(more) = words.len().checked_sub(1) else {
            return self.keep_buffer(Some(words));
        };
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Before);
        let first = t.saturating_sub(more as u64 + 1).max(self.passes_from(place, id));
        self.send_words(plan, id, (first, first + more as u64), words);
        self.leapt(place, id);
    }

    /// From which cycle on a word may leave a node for a pipe to be behind all that have leapt.
    pub(crate) fn passes_from(&self, place: Place, id: u32) -> u64 {
        let last = self.leaps.all[place.leap as usize].last;
        (last + 1).saturating_sub(self.pipes[id as usize].transit())
    }

    /// The words of a pipe's last packet have leapt.
    pub(crate) fn leapt(&mut self, place: Place, id: u32) {
        let leap = &mut self.leaps.all[place.leap as usize];
        leap.last = leap.last.max(self.pipes[id as usize].last_sent());
        leap.packets.push_back(id);
    }
}
