//! Merged words: what many PEs send to the host over one link, in the `exact` engine.
//!
//! Where routers do no more than merge a color's words towards a link to the host ([`find`]), and nobody else
//! wants their links at that time ([`turn`]), their buffers of that color stand side by side, and the words in
//! them move for some cycles at a time: what happens in each cycle is what R3 to R5 say, but nobody looks in
//! between. The host is told of a word up to [`LATE`] cycles after it has come, which no run can tell, as all
//! go on for `SLACK` cycles; for a core that waits for a place on its ramp the words move cycle by cycle.
//!
//! Invariants: a buffer stands in its router or here, with all its stamps; while it stands here nobody but
//! this module fills it or takes from it. Control wavelets, and data that moves a switch, never enter. Whether
//! buffers stand here changes no cycle.

mod find;
mod turn;

use std::collections::BTreeMap;

use super::patience::Patience;
use super::ring::{NEVER, Ring, Slot};
use crate::pe::code::Code;
use crate::pe::core::bits;
use crate::sched::plan::{Latencies, Plan};
use crate::sched::region::Region;
use crate::sched::run::LATE;

/// In `claims` and `cuts`, numbers from here on are those of merges.
pub(super) const MERGED: u32 = 1 << 31;

/// All of a region.
#[derive(Debug, Default)]
pub(crate) struct Merges {
    all: Vec<Merge>,
    senders: Vec<Sender>,
    /// By color and PE: its sender and one more, 0 if it is not known, or [`REFUSED`].
    known: BTreeMap<u8, Box<[u32]>>,
    /// Those that are to begin when the cycle is over.
    asked: Vec<u32>,
    /// A buffer for what comes of words that move.
    passed: Passed,
}

/// No words of a PE are merged.
const REFUSED: u32 = u32::MAX;

/// A PE that sends a color to a link.
#[derive(Clone, Copy, Debug)]
struct Sender {
    merge: u32,
    node: u32,
}

/// The buffers of a color on all ways to a link.
#[derive(Debug)]
struct Merge {
    color: u8,
    /// The PE that is joined to the host, and the link.
    root: u32,
    link: u32,
    /// Nearer ones first.
    nodes: Vec<Node>,
    /// By node, then by port, and how many there are where they stand here.
    buffers: Vec<Ring<3>>,
    places: usize,
    /// By buffer: the node whose words come into it; of a ramp, or where none come, the node itself.
    feeders: Vec<u32>,
    /// Nodes that hold words which may go, once these can be seen; nodes whose cores wait for a place on the ramp. As
    /// bits.
    busy: Vec<u64>,
    waits: Vec<u64>,
    waiting: u32,
    /// Links that other colors may use, as four times the PE and the port.
    shared: Box<[u32]>,
    /// The buffers stand here.
    is_on: bool,
    /// Never again.
    closed: bool,
    asked: bool,
    /// When it may begin; and how many words have left since it did last.
    patience: Patience,
    left: u64,
    /// All cycles before it have passed here.
    until: u64,
    /// The last cycle in which a word moved.
    last: u64,
    /// Cycle of the next look.
    armed: u64,
    held: u32,
}

/// A router.
#[derive(Clone, Copy, Debug)]
struct Node {
    pe: u32,
    /// Its buffers.
    first: u32,
    count: u8,
    /// The last of them is that of the ramp.
    has_ramp: bool,
    /// The node behind its link and the buffer there; [`HOST`] at the root.
    next: u32,
    to: u32,
}

/// Behind the root's link is the host.
const HOST: u32 = u32::MAX;

/// What comes of words that move.
#[derive(Debug, Default)]
struct Passed {
    hops: u64,
    /// Words that leave by the link, stamped as they come to the host.
    out: Vec<Slot>,
    /// Cores that find a place, and from when on.
    told: Vec<(u32, u64)>,
}

impl Node {
    /// A router whose buffers are not known.
    fn new(pe: u32, next: u32, to: u32) -> Node {
        Node { pe, first: 0, count: 0, has_ramp: false, next, to }
    }

    /// The places of its buffers.
    fn buffers(&self) -> std::ops::Range<usize> {
        let first = self.first as usize;
        first..first + usize::from(self.count)
    }
}

impl Merge {
    /// Its words move in all cycles before `until`.
    fn pass(&mut self, timing: &Latencies, until: u64, passed: &mut Passed) {
        while self.until < until && self.held != 0 {
            for word in 0..self.busy.len() {
                for bit in bits(self.busy[word]) {
                    self.pass_one(timing, 64 * word + bit, self.until, passed);
                }
            }
            self.until += 1;
        }
        self.until = self.until.max(until);
    }

    /// R3 to R5 for a node in cycle `t`: the oldest head goes, if there is a place behind the link.
    #[inline]
    fn pass_one(&mut self, timing: &Latencies, index: usize, t: u64, passed: &mut Passed) {
        let node = self.nodes[index];
        let place = if node.to == HOST { 0 } else { self.buffers[node.to as usize].free_from() };
        let (mut oldest, mut from) = (NEVER, 0);
        for buffer in node.buffers() {
            let stamp = self.buffers[buffer].first();
            if stamp < oldest {
                (oldest, from) = (stamp, buffer);
            }
        }
        let from_when = oldest.max(place);
        if from_when > t {
            if from_when == NEVER {
                self.busy[index / 64] &= !(1 << (index % 64));
            }
            return;
        }
        let free = t + timing.credit;
        let was_full = self.buffers[from].is_full();
        let word = self.buffers[from].pop(free);
        if was_full {
            if node.has_ramp && from + 1 == node.buffers().end {
                if self.take_wait(index) {
                    passed.told.push((node.pe, free));
                }
            } else if let Some(&feeder) = self.feeders.get(from) {
                self.set_busy(feeder as usize);
            }
        }
        let word = Slot { stamp: t + timing.hop, color: self.color, ..word };
        if node.to == HOST {
            passed.out.push(word);
            self.held -= 1;
            self.left += 1;
        } else {
            self.buffers[node.to as usize].push(word);
            self.set_busy(node.next as usize);
            passed.hops += 1;
        }
        self.last = t;
    }

    fn set_busy(&mut self, node: usize) {
        self.busy[node / 64] |= 1 << (node % 64);
    }

    /// A core waits for a place on its ramp.
    fn wait(&mut self, node: usize) {
        let (word, bit) = (&mut self.waits[node / 64], 1 << (node % 64));
        self.waiting += u32::from(*word & bit == 0);
        *word |= bit;
    }

    /// Whether the core of a node waited for a place: now there is one.
    fn take_wait(&mut self, node: usize) -> bool {
        let (word, bit) = (&mut self.waits[node / 64], 1 << (node % 64));
        let waited = *word & bit != 0;
        *word &= !bit;
        self.waiting -= u32::from(waited);
        waited
    }

    /// Its next look comes after one in cycle `t`.
    fn next_look(&self, t: u64) -> u64 {
        match (self.held, self.waiting) {
            (0, _) => NEVER,
            (_, 0) => t + LATE,
            (..) => t + 1,
        }
    }

    fn ramp(&mut self, node: u32) -> &mut Ring<3> {
        let last = self.nodes[node as usize].buffers().end - 1;
        &mut self.buffers[last]
    }
}

impl Merges {
    /// Whether there are any.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether some are to begin when the cycle is over.
    #[inline]
    pub(crate) fn are_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Whether nothing here moves, or says more of places than that they are free, from a cycle on.
    pub(crate) fn rest(&self, timing: &Latencies, from: u64) -> bool {
        let rests = |merge: &Merge| {
            !merge.is_on
                || merge.held == 0 && (merge.last == 0 || merge.last + timing.credit <= from)
        };
        self.asked.is_empty() && self.all.iter().all(rests)
    }

    /// From which cycle a word of a sender may go up the ramp, as far as is known.
    #[inline]
    pub(crate) fn free_from(&self, sender: u32) -> u64 {
        let Sender { merge, node } = self.senders[sender as usize];
        let merge = &self.all[merge as usize];
        let last = merge.nodes[node as usize].buffers().end - 1;
        merge.buffers[last].free_from()
    }
}

impl<C: Code> Region<C> {
    /// From which cycle a word of a sender may go up the ramp, when the region's cycle has passed in all routers; its
    /// core is told when that changes.
    pub(crate) fn free_to_merge(&mut self, plan: &Plan, sender: u32) -> u64 {
        let free = self.merges.free_from(sender);
        if free != NEVER {
            return free;
        }
        let Sender { merge: id, node } = self.merges.senders[sender as usize];
        self.pass_merge(plan, id, self.now + 1);
        let free = self.merges.free_from(sender);
        if free == NEVER {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::MergeWaits);
            let merge = &mut self.merges.all[id as usize];
            merge.wait(node as usize);
            self.look_at_merge(id, self.now + 1);
        }
        free
    }

    /// A word of a sender goes up the ramp in cycle `t`.
    pub(crate) fn send_merged(&mut self, timing: &Latencies, sender: u32, word: Slot, t: u64) {
        let Sender { merge: id, node } = self.merges.senders[sender as usize];
        let merge = &mut self.merges.all[id as usize];
        if merge.held == 0 {
            merge.until = self.now + 1;
            merge.armed = NEVER;
        }
        let stamp = t + timing.ramp_up;
        merge.ramp(node).push(Slot { stamp, ..word });
        merge.set_busy(node as usize);
        merge.held += 1;
        self.look_at_merge(id, stamp + LATE);
    }

    /// Words of a merge move in a cycle at the latest.
    fn look_at_merge(&mut self, id: u32, at: u64) {
        let merge = &mut self.merges.all[id as usize];
        if at < merge.armed {
            merge.armed = at;
            self.wakes.router(merge.root, at);
        }
    }

    /// Words move that leave the mesh at a router, if it is time.
    pub(super) fn visit_merges(&mut self, plan: &Plan, pe: u32, t: u64) {
        let count = self.routers[pe as usize].as_deref().map_or(0, |it| it.gathers.len());
        for at in 0..count {
            let Some(router) = self.routers[pe as usize].as_deref() else { return };
            let id = router.gathers[at];
            if self.merges.all[id as usize].armed > t {
                continue;
            }
            self.pass_merge(plan, id, t + 1);
            let merge = &mut self.merges.all[id as usize];
            let next = merge.next_look(t);
            merge.armed = NEVER;
            if next != NEVER {
                self.look_at_merge(id, next);
            }
        }
    }

    /// Words of a merge move in all cycles before `until`.
    fn pass_merge(&mut self, plan: &Plan, id: u32, until: u64) {
        let merge = &mut self.merges.all[id as usize];
        let (root, link) = (merge.root, merge.link);
        let mut passed = std::mem::take(&mut self.merges.passed);
        merge.pass(&plan.timing, until, &mut passed);
        let last = merge.last;
        if !passed.out.is_empty() || passed.hops != 0 {
            self.active_until = self.active_until.max(last + 1);
        }
        self.stats.hops += std::mem::take(&mut passed.hops);
        for word in passed.out.drain(..) {
            self.go_to_host(plan, root, link, word);
        }
        for (pe, free) in passed.told.drain(..) {
            self.wakes.core(pe, free);
        }
        self.merges.passed = passed;
    }
}
