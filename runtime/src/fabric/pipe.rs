//! Pipes: the channels of the `flow` engine, in which words move as packets.
//!
//! A packet is a stretch of words that one operation sends at an even pace: when the first and
//! the last of them are at the last router, and the words. Contention for the ramps of the two
//! PEs is not modelled word by word (spec/flow.md).
//!
//! Invariants: packets keep the order in which they were sent; a pipe holds no more words than
//! the output queue, the way and the input queue have places for, and those that the operation
//! at its end is bound to take.

use std::collections::VecDeque;

use super::channel::Route;
use crate::sched::plan::Latencies;

/// Words that follow one another at an even pace.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// When the first and the last word are at the last router.
    first: u64,
    last: u64,
    words: Vec<u32>,
    taken: usize,
}

impl Packet {
    /// Words sent in cycles `start` to `end`, a way of so many cycles before the last router.
    pub(crate) fn new((start, end): (u64, u64), transit: u64, words: Vec<u32>) -> Packet {
        Packet { first: start + transit, last: end + transit, words, taken: 0 }
    }

    /// When a word is at the last router.
    fn time(&self, at: usize) -> u64 {
        let gaps = self.words.len().saturating_sub(1).max(1) as u64;
        self.first + (self.last - self.first) * at as u64 / gaps
    }
}

/// A pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    packets: VecDeque<Packet>,
    route: Route,
    /// Cycles from the output queue to the last router, and from there back to the source.
    transit: u64,
    credit: u64,
    /// Words in it, and words of it that stand in the input queue.
    held: u32,
    queued: u32,
    /// Words that it takes in if nobody takes them out; of these, on the way alone.
    places: u32,
    on_the_way: u32,
    /// What the operation at its end is still bound to take, and cycles per word for that.
    open: u32,
    gap: u64,
    /// The source waits for a place.
    wanted: bool,
    /// Links that it may have to share.
    shared: Box<[u32]>,
}

impl Pipe {
    /// An empty one, between queues of so many places.
    pub(crate) fn new(timing: &Latencies, route: Route, queues: u32, shared: Box<[u32]>) -> Pipe {
        let hops = u64::from(route.hops);
        let on_the_way = timing.ramp_places + route.hops * timing.link_places;
        Pipe {
            packets: VecDeque::new(),
            route,
            transit: 1 + timing.ramp_up + hops * timing.hop,
            credit: (hops + 1) * timing.credit,
            held: 0,
            queued: 0,
            places: on_the_way + queues,
            on_the_way,
            open: 0,
            gap: 1,
            wanted: false,
            shared,
        }
    }

    /// Its way.
    pub(crate) fn route(&self) -> Route {
        self.route
    }

    /// Links that it may have to share.
    pub(crate) fn shared(&self) -> &[u32] {
        &self.shared
    }

    /// Words that it takes now, and of these without waiting for whoever takes them out.
    pub(crate) fn room(&self) -> (u32, u32) {
        let used = self.held + self.queued;
        let free = self.places.saturating_sub(used);
        ((self.places + self.open).saturating_sub(used), free)
    }

    /// Whether a single word may go up the ramp.
    pub(crate) fn takes_one(&self) -> bool {
        self.held < self.on_the_way
    }

    /// Cycles per word of whoever takes them out.
    pub(crate) fn gap(&self) -> u64 {
        self.gap
    }

    /// The source waits for a place.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    /// When the first word is at the last router.
    pub(crate) fn arrival(&self) -> Option<u64> {
        self.packets.front().map(|packet| packet.time(packet.taken))
    }

    /// Takes in words that leave their operation in cycles `start` to `end`.
    pub(crate) fn push(&mut self, (start, end): (u64, u64), words: Vec<u32>) {
        self.held += words.len() as u32;
        self.packets.push_back(Packet::new((start, end), self.transit, words));
    }

    /// Words of the first packet, at most so many, and when the last of them is at the router.
    pub(crate) fn front(&self, most: usize) -> (&[u32], u64) {
        let Some(packet) = self.packets.front() else { return (&[], 0) };
        let rest = &packet.words[packet.taken..];
        let words = &rest[..rest.len().min(most)];
        (words, packet.time(packet.taken + words.len().saturating_sub(1)))
    }

    /// Lets go of words that stand in front; from how many cycles on the source may use their
    /// places, if it waits for some.
    pub(crate) fn take(&mut self, count: usize) -> Option<u64> {
        self.held -= count as u32;
        self.open = self.open.saturating_sub(count as u32);
        let packet = self.packets.front_mut()?;
        packet.taken += count;
        if packet.taken == packet.words.len() {
            self.packets.pop_front();
        }
        std::mem::take(&mut self.wanted).then_some(self.credit)
    }

    /// The first word goes into the input queue.
    pub(crate) fn queue_one(&mut self) -> Option<u64> {
        self.queued += 1;
        let open = self.open;
        let credit = self.take(1);
        self.open = open;
        credit
    }

    /// A word has left the input queue; from how many cycles on the source may use its place, if
    /// it waits for one.
    pub(crate) fn leave_queue(&mut self) -> Option<u64> {
        self.queued = self.queued.saturating_sub(1);
        self.open = self.open.saturating_sub(1);
        std::mem::take(&mut self.wanted).then_some(self.credit)
    }

    /// An operation is bound to take so many words at a pace; from how many cycles on the source
    /// sees it, if it waits.
    pub(crate) fn open(&mut self, words: u32, gap: u64) -> Option<u64> {
        (self.open, self.gap) = (words, gap);
        (words != 0 && std::mem::take(&mut self.wanted)).then_some(self.credit)
    }

    /// The words in it, oldest first.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> {
        self.packets.iter().flat_map(|packet| packet.words[packet.taken..].iter().copied())
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        (self.held, self.open) = (0, 0);
        self.packets.clear();
    }

    /// Number of words in it.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }
}
