//! Words of a line that go to one core together.
//!
//! Of a block of words for a core the first says where all go: they enter as a packet, in a pipe from the host's link to
//! that core, and operations take them by stretches. A word by itself costs a look at its line when it enters, one when it
//! is there, and one at its core.
//!
//! Invariants: a pipe holds no more words than the core's queue has places for and its operation is bound to take, so that
//! none of them is in the way of others; while it has words no other word for the core comes to the queue by the line, and
//! none enters the line that goes through routers.

use super::line::Line;
use crate::fabric::channel::Route;
use crate::fabric::pipe::Pipe;
use crate::fabric::ring::{NEVER, Slot};
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Way;

/// Words of a packet.
const LEAST: usize = 8;
const MOST: usize = 256;

impl<C: Code> Region<C> {
    /// The next words of a line's source, which go to the core of one router, enter as a packet, with those that entered
    /// last, if there are places for enough of them; whether nothing else is to enter now.
    pub(super) fn enter_packet(
        &mut self,
        plan: &Plan,
        line: &mut Line,
        (index, target): (usize, u32),
        t: u64,
    ) -> bool {
        if line.room.is_some() || self.ready(line, index, t).take(LEAST).count() < LEAST {
            return false;
        }
        let Some(id) = self.packets_to(plan, line, target) else { return false };
        let (room, later) = self.packet_room(id, t);
        if room < LEAST {
            if let Some(from) = later {
                self.hold_source((line.root, index), from);
            }
            return later.is_some();
        }
        let Some(last) = line.last_for(target).filter(|last| last + LEAST <= room) else {
            return false;
        };
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Packet);
        let most = MOST.min(room - last);
        let mut words = self.buffers.pop().unwrap_or_default();
        words.extend(self.ready(line, index, t).take(most));
        for (entered, payload) in line.take_last(last) {
            self.send_words(plan, id, (entered, entered), vec![payload]);
        }
        let next = t + words.len() as u64;
        if let Some(router) = self.routers[line.root as usize].as_deref_mut() {
            let source = &mut router.sources[index];
            source.words.drain(..words.len());
            source.next = next;
            if !source.words.is_empty() {
                self.wakes.router(line.root, next);
            }
        }
        self.ways.count(line.color, Way::Line, words.len() as u64);
        self.stats.entered += words.len() as u64;
        self.send_words(plan, id, (t, next - 1), words);
        self.active_until = self.active_until.max(next);
        true
    }

    /// The words of a source that may enter a line from cycle `t` on, one after the other, if nobody wants to see each.
    fn ready(&self, line: &Line, index: usize, t: u64) -> impl Iterator<Item = u32> {
        let source = self.routers[line.root as usize].as_deref().map(|it| &it.sources[index]);
        let color = line.color;
        let sees = self.routed >> color & 1 != 0;
        let source = source.filter(|source| !sees && !source.counted);
        source.into_iter().flat_map(move |source| source.ready(t))
    }

    /// Words that a pipe of a line takes from cycle `t` on; and if more when its operation begins, from when on these may
    /// enter.
    fn packet_room(&self, id: u32, t: u64) -> (usize, Option<u64>) {
        let pipe = &self.pipes[id as usize];
        let Route { dest, queue, .. } = pipe.route();
        let core = self.cores[dest as usize].as_deref();
        let ring = core.zip(queue).map(|(core, queue)| &core.inputs[usize::from(queue)].ring);
        // Some in the queue may have come by themselves.
        let stand = pipe.held() as usize + ring.map_or(0, |ring| ring.len());
        let places = pipe.places() as usize;
        let Some(((open, from), queue)) = pipe.opened().zip(queue) else {
            return (places.saturating_sub(stand), None);
        };
        let begins = self.takes_from(dest, queue, from);
        if begins <= t + pipe.transit() {
            return ((places + open as usize).saturating_sub(stand), None);
        }
        (places.saturating_sub(stand), Some(begins - pipe.transit()))
    }

    /// The pipe from a line's link to the core of a router, which is made if need be and its queue is the one that the
    /// program says.
    fn packets_to(&mut self, plan: &Plan, line: &mut Line, target: u32) -> Option<u32> {
        let dest = line.pe(target);
        let core = self.cores[dest as usize].as_deref();
        if core.is_some_and(|core| !core.bound.are_planned() || core.is_flushing()) {
            return None;
        }
        if let Some(&id) = line.pipes.get(&target) {
            return Some(id);
        }
        let number = self.number(plan, dest);
        let queue = plan.program(number)?.queue_of(line.color)? as u8;
        if self.pipe_of(dest, queue).is_some() {
            return None;
        }
        let route = Route {
            source: line.root,
            entry: line.from,
            dest,
            region: self.id,
            borders: 0,
            link: None,
            number: number as u32,
            color: line.color,
            port: line.from,
            hops: target,
            queue: Some(queue),
        };
        let places = self.input_places(plan, &route);
        let id = self.add_pipe(Pipe::from_line(&plan.timing, route, places));
        line.pipes.insert(target, id);
        Some(id)
    }

    /// Packets to the core of a router go into its queue, if all of their words are there and have places, so that others
    /// may follow; from when on to look again, if not.
    pub(super) fn clear_packets(
        &mut self,
        plan: &Plan,
        code: &C,
        (line, target): (&Line, u32),
        t: u64,
    ) -> Option<u64> {
        let id = *line.pipes.get(&target)?;
        let pipe = &self.pipes[id as usize];
        let (Route { dest, .. }, held, last) = (pipe.route(), pipe.held(), pipe.last_sent());
        if held == 0 {
            return None;
        }
        if last > t {
            return Some(last);
        }
        let free = self.packet_places(plan, code, id, t);
        if free < held as usize {
            self.pipes[id as usize].want(0);
            return Some(NEVER);
        }
        let come = self.draw_packets(plan, code, (id, held), t);
        self.wakes.core(dest, come.max(t + 1));
        None
    }

    /// Likewise, all packets of a line.
    pub(super) fn clear_all_packets(
        &mut self,
        plan: &Plan,
        code: &C,
        line: &Line,
        t: u64,
    ) -> Option<u64> {
        let targets = line.pipes.keys();
        targets.filter_map(|&target| self.clear_packets(plan, code, (line, target), t)).min()
    }

    /// Free places in the queue at the end of a pipe.
    fn packet_places(&mut self, plan: &Plan, code: &C, id: u32, t: u64) -> usize {
        let Route { dest, number, color, .. } = self.pipes[id as usize].route();
        let Some(queue) = self.queue_of(plan, number, dest, color, t) else { return 0 };
        let ring = &self.core(plan, code, dest).inputs[queue].ring;
        ring.places() - ring.len()
    }

    /// So many words of a pipe, for which there are places, go into the queue at its end; from when on the first of them
    /// can be seen.
    fn draw_packets(&mut self, plan: &Plan, code: &C, (id, count): (u32, u32), t: u64) -> u64 {
        let Route { dest, number, color, .. } = self.pipes[id as usize].route();
        let Some(queue) = self.queue_of(plan, number, dest, color, t) else { return NEVER };
        let mut come = NEVER;
        for _ in 0..count {
            let arrival = self.pipes[id as usize].arrival().unwrap_or(t);
            let word = self.leave_pipe(id, t);
            let core = self.core(plan, code, dest);
            let free = core.inputs[queue].ring.free_from();
            let stamp = (arrival + plan.timing.ramp_down).max(free + 1).max(t + 1);
            let word = Slot { stamp, ..word };
            core.take_in(queue, word);
            self.delivered(number, queue, word);
            come = come.min(stamp);
        }
        come
    }

    /// What packets hold when nothing moves any more goes into the queues, as far as there are places.
    pub(crate) fn settle_packets(&mut self, plan: &Plan, code: &C) {
        let ids: Vec<u32> =
            self.lines.iter().flatten().flat_map(|line| line.pipes.values().copied()).collect();
        for id in ids {
            let (held, come) =
                (self.pipes[id as usize].held(), self.pipes[id as usize].last_sent());
            if held != 0 {
                let t = self.active_until.max(come);
                let free = self.packet_places(plan, code, id, t) as u32;
                self.draw_packets(plan, code, (id, held.min(free)), t);
            }
        }
    }

    /// Whether words of packets have not come to their queues.
    pub(super) fn has_packets(&self, line: &Line) -> bool {
        line.pipes.values().any(|&id| self.pipes[id as usize].is_used())
    }
}
