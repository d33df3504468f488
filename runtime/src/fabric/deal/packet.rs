//! Words of a line that go to one core together.
//!
//! Of a block of words for a core the first says where all go: they enter as a packet, in a pipe from the host's link to
//! that core, and operations take them by stretches. A word by itself costs a look at its line when it enters, one when it
//! is there, and one at its core.
//!
//! Invariants: a pipe holds no more words than the core's queue has places for and its operation is bound to take, so that
//! none of them is in the way of others; while it has words no other word for the core comes to the queue by the line, and
//! none enters the line that goes through routers.

use dflow_ir::mesh::Wavelet;

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
    /// last, if there are places for enough of them; whether they did.
    pub(super) fn enter_packet(
        &mut self,
        plan: &Plan,
        line: &mut Line,
        (index, target): (usize, u32),
        t: u64,
    ) -> bool {
        let Some(router) = self.routers[line.root as usize].as_deref() else { return false };
        let source = &router.sources[index];
        // Whoever counts words wants to see each.
        let counts = source.counted || self.watch.to_mesh >> line.color & 1 != 0;
        if counts || self.routed >> line.color & 1 != 0 || line.blocked.is_some() {
            return false;
        }
        let enters = |&&(cycle, word): &&(u64, Wavelet)| cycle <= t && !word.control;
        if source.words.iter().take(LEAST).take_while(enters).count() < LEAST {
            return false;
        }
        let Some(id) = self.packets_to(plan, line, target) else { return false };
        let pipe = &self.pipes[id as usize];
        let (Route { dest, queue, .. }, transit) = (pipe.route(), pipe.transit());
        let opens = pipe.opens().zip(queue).map(|(from, queue)| self.takes_from(dest, queue, from));
        // What comes before the operation takes words fills the queue.
        let later = opens.filter(|&from| from > t + transit);
        let room = if later.is_some() { pipe.free_places() } else { pipe.room() } as usize;
        if let Some(from) = later.filter(|_| room < LEAST) {
            self.hold_entry((line.root, index), (from - transit).max(t + 1));
            return true;
        }
        if room < LEAST {
            return false;
        }
        let Some(last) = line.last_for(target).filter(|last| last + LEAST <= room) else {
            return false;
        };
        let Some(router) = self.routers[line.root as usize].as_deref() else { return false };
        let words = &router.sources[index].words;
        let count = words.iter().take(MOST.min(room - last)).take_while(enters).count();
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Packet);
        for (entered, payload) in line.take_last(last) {
            self.send_words(plan, id, (entered, entered), vec![payload]);
        }
        let Some(router) = self.routers[line.root as usize].as_deref_mut() else { return false };
        let source = &mut router.sources[index];
        let mut words = self.buffers.pop().unwrap_or_default();
        words.extend(source.words.drain(..count).map(|(_, word)| word.payload));
        let next = t + count as u64;
        source.next = next;
        if !source.words.is_empty() {
            self.wakes.router(line.root, next);
        }
        self.ways.count(line.color, Way::Line, count as u64);
        self.stats.entered += count as u64;
        self.send_words(plan, id, (t, next - 1), words);
        self.active_until = self.active_until.max(next);
        true
    }

    /// The pipe from a line's link to the core of a router, which is made if need be and its queue is the one that the
    /// program says.
    fn packets_to(&mut self, plan: &Plan, line: &mut Line, target: u32) -> Option<u32> {
        if let Some(&id) = line.pipes.get(&target) {
            return Some(id);
        }
        let dest = line.pe(target);
        let number = self.number(plan, dest);
        let queue = plan.program(number)?.queue_of(line.color)? as u8;
        let core = self.cores[dest as usize].as_deref();
        if core.is_some_and(|core| !core.bound.are_planned()) || self.pipe_of(dest, queue).is_some()
        {
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

    /// From when on it is to be looked again whether a word of a line that goes to the core of a router is behind all
    /// packets to it; none if it is. What is there stands in the core's queue then.
    pub(super) fn packets_until(
        &mut self,
        plan: &Plan,
        code: &C,
        (line, target): (&Line, u32),
        t: u64,
    ) -> Option<u64> {
        let id = *line.pipes.get(&target)?;
        self.draw_packets(plan, code, id, t);
        let pipe = &mut self.pipes[id as usize];
        if !pipe.is_used() {
            return None;
        }
        let last = pipe.last_sent();
        if last > t {
            return Some(last);
        }
        pipe.want(0);
        Some(NEVER)
    }

    /// Likewise, of all packets of a line.
    pub(super) fn all_packets_until(
        &mut self,
        plan: &Plan,
        code: &C,
        line: &Line,
        t: u64,
    ) -> Option<u64> {
        let targets = line.pipes.keys();
        targets.filter_map(|&target| self.packets_until(plan, code, (line, target), t)).min()
    }

    /// Words of a packet that have come by cycle `t` go into the queue at the end of its pipe, if there are places for all.
    fn draw_packets(&mut self, plan: &Plan, code: &C, id: u32, t: u64) {
        let pipe = &self.pipes[id as usize];
        let (route, held) = (pipe.route(), pipe.held() as usize);
        if held == 0 || pipe.last_sent() > t {
            return;
        }
        let Some(queue) = self.queue_of(plan, route.number, route.dest, route.color, t) else {
            return;
        };
        let ring = &self.core(plan, code, route.dest).inputs[queue].ring;
        if ring.places() - ring.len() < held {
            return;
        }
        for _ in 0..held {
            let arrival = self.pipes[id as usize].arrival().unwrap_or(t);
            let word = self.leave_pipe(id, t);
            let free = self.core(plan, code, route.dest).inputs[queue].ring.free_from();
            let stamp = (arrival + plan.timing.ramp_down).max(free + 1).max(t + 1);
            self.deliver(plan, code, route.dest, queue, Slot { stamp, ..word });
        }
    }

    /// What packets hold when nothing moves any more goes into the queues, as far as there are places.
    pub(crate) fn settle_packets(&mut self, plan: &Plan, code: &C) {
        let ids: Vec<u32> =
            self.lines.iter().flatten().flat_map(|line| line.pipes.values().copied()).collect();
        for id in ids {
            let come = self.pipes[id as usize].last_sent();
            self.draw_packets(plan, code, id, self.active_until.max(come));
        }
    }

    /// No word of a source enters before a cycle, or before something has changed.
    pub(super) fn hold_entry(&mut self, (root, index): (u32, usize), from: u64) {
        if let Some(router) = self.routers[root as usize].as_deref_mut() {
            router.sources[index].next = from;
        }
        if from != NEVER {
            self.wakes.router(root, from);
        }
    }
}
