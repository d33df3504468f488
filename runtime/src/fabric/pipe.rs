//! Pipes: the channels of the `flow` engine, in which words move as packets.
//!
//! A packet is a stretch of words that one operation sends, or several short ones that follow one
//! another at once: when the first and the last of them are at the last router, and the words.
//! They are evenly spaced but for *bends*: words whose times are known because the operation's
//! pace changed behind them, or it stood still. The times after the last bend may still change,
//! while the operation sends: what depends on them looks again. Contention for the ramps of the
//! two PEs is not modeled word by word (spec/flow.md).
//!
//! Invariants: packets keep the order in which they were sent; words are numbered in that order,
//! from 0 (those of a multicast from more on, `multicast`); a pipe holds no more words than the output queue, the way and
//! the input queue have places for, and those that the operation at its end is bound to take.

mod bends;
mod multicast;
mod pass;
mod places;
mod rounds;
mod wanted;

pub(in crate::fabric) use multicast::{Fork, Limit, Multicast};

use std::cell::Cell;
use std::collections::VecDeque;

use self::wanted::Wanted;
use super::channel::Route;
use super::ring::NEVER;
use super::router::RAMP;
use crate::sched::plan::Latencies;

/// Most words of a packet to which others were added.
const JOINED: u64 = 64;

/// Words that follow one another at an even pace: their numbers, and two times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    /// Number of the first word.
    pub(super) base: u64,
    pub(super) count: u64,
    pub(super) first: u64,
    pub(super) last: u64,
}

/// Bends that a pipe has memory for when it has been in use for a while: its list has grown twice.
const BENDS: usize = 8;

/// A word whose time is known, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bend {
    number: u64,
    time: u64,
}

impl Bend {
    /// Whether words come one per cycle from here to another.
    fn leads_to(self, other: Bend) -> bool {
        other.time.checked_sub(self.time) == other.number.checked_sub(self.number)
    }
}

/// The time of a word between two others.
fn between(from: Bend, to: Bend, number: u64) -> u64 {
    let gaps = to.number.saturating_sub(from.number).max(1);
    let at = number.saturating_sub(from.number).min(gaps);
    let cycles = to.time.saturating_sub(from.time);
    // Most are a word per cycle: no need to divide.
    from.time + if cycles == gaps { at } else { cycles * at / gaps }
}

impl Span {
    /// The time of a word.
    fn time(&self, number: u64) -> u64 {
        between(self.begin(), self.last(), number)
    }

    fn begin(&self) -> Bend {
        Bend { number: self.base, time: self.first }
    }

    fn last(&self) -> Bend {
        Bend { number: self.base + self.count.saturating_sub(1), time: self.last }
    }

    /// The time of a word of one with bends; those of others may stand among them.
    #[inline]
    fn bent(&self, bends: &[Bend], number: u64) -> u64 {
        if bends.last().is_none_or(|last| last.number <= self.base) {
            return self.time(number);
        }
        if number <= self.base {
            return self.first;
        }
        let after = bends.partition_point(|bend| bend.number < number);
        let own = |bend: &&Bend| bend.number > self.base && bend.number + 1 < self.end();
        let from = after.checked_sub(1).and_then(|before| bends.get(before)).filter(own);
        let to = bends.get(after).filter(own);
        between(from.copied().unwrap_or(self.begin()), to.copied().unwrap_or(self.last()), number)
    }

    /// Number of the word after the last.
    fn end(&self) -> u64 {
        self.base + self.count
    }
}

/// Words of one stretch, or of short ones in a row, that have not all been taken.
#[derive(Clone, Debug)]
struct Packet {
    span: Span,
    words: Vec<u32>,
    taken: usize,
}

/// A pipe that ends at a PE, and the input queue that takes its words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inflow {
    pub(crate) pipe: u32,
    pub(crate) queue: Option<u8>,
}

/// A pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    packets: VecDeque<Packet>,
    route: Route,
    /// Cycles from the output queue to the last router, and from a place in the input queue to one behind the output
    /// queue that follows from it.
    transit: u64,
    credit: u32,
    /// The last words that were sent, by arrival at the last router, and the last that were taken,
    /// by when they are.
    sent: Span,
    taken: Span,
    /// When the first word is at the last router; [`NEVER`] if that has not been asked since anything
    /// about it changed.
    first: Cell<u64>,
    /// Bends of the packets and of the last words that were sent, by number.
    bends: Vec<Bend>,
    /// Words in it, and words of it that stand in the input queue.
    held: u32,
    queued: u32,
    /// Words that it takes in if nobody takes them out; of these, in the output queue.
    places: u32,
    output: u16,
    /// What the operation at its end is still bound to take, and from which cycle on it may.
    open: u32,
    open_from: u64,
    /// What part of its core's slots that operation could use for them: less than all, or the greatest number.
    pace: u16,
    /// The source waits until so many places are free, or any word has been taken.
    wanted: Wanted,
    /// Links that it may have to share.
    shared: Box<[u32]>,
    /// What else there is to its ends, if anything is.
    pub(super) end: Option<Box<End>>,
}

/// Which end of a pipe that leads into another region is here, or of what multicast a pipe is.
#[derive(Debug)]
pub(crate) enum End {
    /// That of the sender: no packets are kept.
    Sender,
    /// That of the taker.
    Taker(Taker),
    /// Both; there are others from the same sender ([`multicast`](super::multicast)).
    Multicast(Multicast),
}

/// The end of a pipe where words from another region are taken.
#[derive(Debug)]
pub(crate) struct Taker {
    /// Where they come from: region, and number of the pipe there.
    pub(super) region: u32,
    pub(super) pipe: u32,
    /// The sender is to be told what has been taken, and from when on a place is free.
    pub(super) noted: bool,
    pub(super) free: Option<u64>,
}

impl End {
    /// Words of another region's pipe are taken here.
    pub(super) fn taker(region: u32, pipe: u32) -> End {
        End::Taker(Taker { region, pipe, noted: false, free: None })
    }
}

/// What a sender knows of the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Number of the first word that has not been taken out of the pipe.
    next: u64,
    queued: u32,
    open: u32,
    open_from: u64,
    last: Span,
}

impl Pipe {
    /// An empty one, between an output and an input queue of so many places.
    pub(crate) fn new(
        timing: &Latencies,
        route: Route,
        (output, input): (u32, u32),
        end: Option<End>,
        shared: Box<[u32]>,
    ) -> Pipe {
        let hops = u64::from(route.hops);
        // From a core, or by a link from the host.
        let (entry, first, links) = match route.entry {
            RAMP => (1 + timing.ramp_up, timing.ramp_places, route.hops + 2),
            _link => (timing.hop, timing.link_places, route.hops + 1),
        };
        let behind_output = first + route.hops * timing.link_places + input;
        Pipe {
            // Most hold one at a time.
            packets: VecDeque::with_capacity(1),
            route,
            transit: entry + hops * timing.hop,
            credit: links * timing.credit as u32,
            sent: Span::default(),
            taken: Span::default(),
            first: Cell::new(NEVER),
            bends: Vec::new(),
            held: 0,
            queued: 0,
            places: behind_output + output,
            output: output as u16,
            open: 0,
            open_from: 0,
            pace: u16::MAX,
            wanted: Wanted::default(),
            shared,
            end: end.map(Box::new),
        }
    }

    /// Estimated bytes without its words, whose buffers go from pipe to pipe.
    pub(crate) fn bytes(&self) -> u64 {
        let packets = self.packets.capacity() * size_of::<Packet>();
        let end = self.end.as_deref().map_or(0, size_of_val) + size_of_val(&*self.shared);
        (size_of::<Pipe>() + packets + BENDS * size_of::<Bend>() + end) as u64
    }

    /// An empty one behind a line of the host, whose words wait before it for what its input queue has no places for.
    pub(crate) fn from_line(timing: &Latencies, route: Route, input: u32) -> Pipe {
        let pipe = Pipe::new(timing, route, (0, input), None, Box::default());
        Pipe { places: input, ..pipe }
    }

    /// Whether its words are taken in another region.
    pub(crate) fn leads_abroad(&self) -> bool {
        matches!(self.end.as_deref(), Some(End::Sender))
    }

    /// The other region that its words come from, if they do.
    pub(crate) fn comes_from(&self) -> Option<u32> {
        match self.end.as_deref()? {
            End::Taker(taker) => Some(taker.region),
            End::Sender | End::Multicast(_) => None,
        }
    }

    /// So many words leave for another region; the number of the one after them.
    pub(super) fn send(&mut self, count: usize) -> u64 {
        self.follow_last();
        self.held += count as u32;
        self.sent = Span { base: self.sent.end(), count: count as u64, ..Span::default() };
        self.sent.end()
    }

    /// What its sender has to know.
    pub(super) fn taken(&self) -> Taken {
        let next = self.sent.end() - u64::from(self.held);
        Taken {
            next,
            queued: self.queued,
            open: self.open,
            open_from: self.open_from,
            last: self.taken,
        }
    }

    /// What another region has taken.
    pub(super) fn know(&mut self, taken: Taken) {
        self.held = (self.sent.end() - taken.next) as u32;
        (self.queued, self.taken) = (taken.queued, taken.last);
        (self.open, self.open_from) = (taken.open, taken.open_from);
    }

    /// Its way.
    pub(crate) fn route(&self) -> Route {
        self.route
    }

    /// Links that it may have to share.
    pub(crate) fn shared(&self) -> &[u32] {
        &self.shared
    }

    /// What the operation at its end is bound to take, and from which cycle on, if it is.
    pub(crate) fn opened(&self) -> Option<(u32, u64)> {
        (self.open != 0).then_some((self.open, self.open_from))
    }

    /// Cycles from the operation to the last router.
    pub(crate) fn transit(&self) -> u64 {
        self.transit
    }

    /// Number of the next word that is sent.
    pub(crate) fn sent_before(&self) -> u64 {
        self.sent.end()
    }

    /// When the last word that was sent is at the last router.
    pub(crate) fn last_sent(&self) -> u64 {
        self.sent.last
    }

    /// Whether it has words.
    pub(crate) fn is_used(&self) -> bool {
        self.held != 0
    }

    /// When the first word is at the last router.
    pub(crate) fn arrival(&self) -> Option<u64> {
        let packet = self.packets.front()?;
        let look = || packet.span.bent(&self.bends, packet.span.base + packet.taken as u64);
        if self.first.get() == NEVER {
            self.first.set(look());
        }
        debug_assert_eq!(self.first.get(), look());
        if self.multicast().is_none() {
            return Some(self.first.get());
        }
        let kept = self.kept_until(packet.span.base + packet.taken as u64);
        (self.passed() != 0).then(|| self.first.get().max(kept))
    }

    /// When the last word of the first packet is at the last router.
    pub(crate) fn last_arrival(&self) -> Option<u64> {
        self.packets.front().map(|packet| packet.span.last)
    }

    /// The words of the first packet, and when they are at the last router.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = (u64, u32)> {
        self.packets.front().into_iter().flat_map(|packet| self.arrivals_of(packet))
    }

    /// Those of all packets.
    pub(crate) fn all_arrivals(&self) -> impl Iterator<Item = (u64, u32)> {
        self.packets.iter().flat_map(|packet| self.arrivals_of(packet))
    }

    fn arrivals_of(&self, packet: &Packet) -> impl Iterator<Item = (u64, u32)> {
        let (span, from, bends) = (packet.span, packet.taken, &self.bends);
        let words = packet.words[from..].iter().enumerate();
        words.map(move |(at, &word)| (span.bent(bends, span.base + (from + at) as u64), word))
    }

    /// Takes in words that leave their operation in cycles `start` to `end`; the number of the
    /// word after them, and their buffer if it is not needed.
    pub(crate) fn push(
        &mut self,
        (start, end): (u64, u64),
        words: Vec<u32>,
    ) -> (u64, Option<Vec<u32>>) {
        let span = Span {
            base: self.sent.end(),
            count: words.len() as u64,
            first: start + self.transit,
            last: end + self.transit,
        };
        self.follow_last();
        self.held += words.len() as u32;
        self.first.set(NEVER);
        // Those of packets that have been taken whole say nothing any more.
        let first = self.packets.front().map_or(span.base, |packet| packet.span.base);
        let past = self.bends.partition_point(|bend| bend.number < first);
        self.bends.drain(..past);
        self.sent = span;
        let spare = self.join(span, words);
        (span.end(), spare)
    }

    /// Words that follow the last packet at once become part of it, if both are short: whoever takes
    /// them takes all at once. The host takes a packet when its last word has come, and is not to
    /// wait for more. Gives back a buffer that is not needed.
    fn join(&mut self, span: Span, mut words: Vec<u32>) -> Option<Vec<u32>> {
        let to_host = self.route.link.is_some();
        let fits = |back: &&mut Packet| {
            back.span.last + 1 == span.first && back.words.len() as u64 + span.count <= JOINED
        };
        let Some(back) = self.packets.back_mut().filter(|back| !to_host && fits(back)) else {
            self.packets.push_back(Packet { span, words, taken: 0 });
            return None;
        };
        let (first, last) = (back.span.begin(), back.span.last());
        back.words.append(&mut words);
        back.span.count += span.count;
        back.span.last = span.last;
        let even = self.bends.last().is_none_or(|bend| bend.number <= first.number);
        if !(even && span.count == 1 && first.leads_to(last)) {
            self.keep_bend(first.number, last);
            self.keep_bend(first.number, span.begin());
        }
        Some(words)
    }

    /// Notes a bend behind those of a packet that begins with word `base`, of which one says nothing
    /// that lies between two others on a line of a word per cycle.
    fn keep_bend(&mut self, base: u64, bend: Bend) {
        let last = self.bends.last().map_or(base, |last| last.number.max(base));
        if bend.number <= last {
            return;
        }
        if let [.., one, two] = self.bends[..]
            && one.number > base
            && one.leads_to(two)
            && two.leads_to(bend)
        {
            self.bends.pop();
        }
        self.bends.push(bend);
    }

    /// Words of the first packet, at most so many.
    pub(crate) fn front(&self, most: usize) -> &[u32] {
        let Some(packet) = self.packets.front() else { return &[] };
        let rest = &packet.words[packet.taken..];
        let most = most.min(self.passed().min(usize::MAX as u64) as usize);
        &rest[..rest.len().min(most)]
    }

    /// When the word before `number` is at the last router, as far as that may still change.
    pub(crate) fn late(&self, number: u64) -> Option<u64> {
        let late = |number| self.sent.bent(&self.bends, number).max(self.kept_until(number));
        (number > self.sent.base).then(|| late(number - 1))
    }

    /// Lets go of `count` words that stand in front; the number of the word after them, when the
    /// last of them is at the last router, and the buffer if nothing is left in it.
    pub(crate) fn take(&mut self, count: usize) -> (u64, u64, Option<Vec<u32>>) {
        self.open = self.open.saturating_sub(count as u32);
        let Some(packet) = self.packets.front() else { return (self.taken.end(), 0, None) };
        let end = packet.span.base + (packet.taken + count) as u64;
        let last = packet.span.bent(&self.bends, end - 1).max(self.kept_until(end - 1));
        (end, last, self.leave(count))
    }

    /// `count` words that stand in front leave it; the buffer if nothing is left in it.
    fn leave(&mut self, count: usize) -> Option<Vec<u32>> {
        self.first.set(NEVER);
        let packet = self.packets.front_mut()?;
        self.held -= count as u32;
        packet.taken += count;
        if packet.taken < packet.words.len() {
            return None;
        }
        let mut words = self.packets.pop_front()?.words;
        words.clear();
        Some(words)
    }

    /// The `count` words before `end` are taken from cycle `first` on.
    pub(crate) fn drain(&mut self, (end, count): (u64, u64), first: u64) {
        self.taken = Span { base: end - count, count, first, last: first + count - 1 };
    }

    /// Of the words before `end`, `left` are taken after cycle `then`; the others have been.
    pub(crate) fn drain_rest(&mut self, end: u64, left: u64, then: u64) {
        let base = end.saturating_sub(left);
        if self.taken.end() == end && left != 0 && base >= self.taken.base {
            let first = then + 1;
            self.taken = Span { base, count: left, first, last: self.taken.last.max(first) };
        }
    }

    /// The words before `end` are taken until cycle `last`.
    pub(crate) fn redrain(&mut self, end: u64, last: u64) {
        if self.taken.end() == end {
            self.taken.last = last.max(self.taken.first);
        }
    }

    /// Words that have left it and the input queue.
    fn gone(&self) -> u64 {
        self.sent.end().saturating_sub(u64::from(self.held + self.queued))
    }

    /// The first word goes into the input queue; the buffer if nothing is left in it.
    pub(crate) fn queue_one(&mut self) -> Option<Vec<u32>> {
        self.queued += 1;
        self.leave(1)
    }

    /// A word has left the input queue in cycle `t`, at a visit in cycle `now`.
    pub(crate) fn leave_queue(&mut self, t: u64, now: u64) {
        self.open = self.open.saturating_sub(1);
        if self.queued == 0 {
            // It came by routers.
            return;
        }
        let number = self.gone();
        if self.taken.end() == number && self.taken.last >= now && self.taken.count != 0 {
            (self.taken.count, self.taken.last) = (self.taken.count + 1, t.max(self.taken.last));
        } else {
            self.taken = Span { base: number, count: 1, first: t, last: t };
        }
        self.queued -= 1;
    }

    /// An operation is bound to take so many words, from cycle `t` on.
    pub(crate) fn open(&mut self, words: u32, t: u64) {
        (self.open, self.open_from) = (words, t);
        if words == 0 {
            self.pace = u16::MAX;
        }
    }

    /// Of `count` words that leave from cycle `t` on, how many pass its links before anybody takes words:
    /// all, if somebody does by the time they come.
    pub(crate) fn pass_at_once(&self, count: u64, t: u64) -> u64 {
        let taken = self.open != 0 && self.open_from <= t + self.transit;
        let free = self.places.saturating_sub(self.standing());
        if taken { count } else { count.min(free.into()) }
    }

    /// Words in it that have no place until others are taken.
    pub(crate) fn without_place(&self) -> u32 {
        self.standing().saturating_sub(self.places)
    }

    /// The words in it, oldest first.
    pub(crate) fn words(&self) -> impl Iterator<Item = u32> {
        self.packets.iter().flat_map(|packet| packet.words[packet.taken..].iter().copied())
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.open = 0;
        self.clear_words();
    }

    /// Lets go of its words, which stand elsewhere now: the operation at its end takes them there.
    pub(crate) fn clear_words(&mut self) {
        self.first.set(NEVER);
        self.held = 0;
        self.packets.clear();
    }

    /// Number of words in it.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }
}

#[cfg(test)]
mod tests;
