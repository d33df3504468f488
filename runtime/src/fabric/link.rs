//! Links: channels with the queues at both ends, along which a word moves in every cycle.
//!
//! If the words and the places of a ring are stamped one cycle apart each, and the next word and
//! the next place may be used now, then one word goes in and one comes out now, and a cycle
//! later the ring is the same, with all stamps one greater. So of a link whose ends both do an
//! element per cycle the rings are left as they were in some cycle, and moved by as many cycles as have
//! passed when somebody wants them ([`Region::settle_link`]); its words go from end to end in one row.
//!
//! Invariants: a link is there while one of its ends at least is steady (`pe::steady`). Its rings
//! stand where they stood before cycle `since`. While both ends are steady, `words` are those that the
//! receiver has not computed with, the last `under_way` of them in the rings. While only the
//! sender is, `words` have not come into its output queue; while only the receiver is, they have left the
//! input queue before `since`.

use super::ring::Slot;
use crate::pe::code::Code;
use crate::pe::core::{Input, Outgoing};
use crate::sched::plan::Plan;
use crate::sched::record::Event;
use crate::sched::region::Region;
use crate::ways::Way;

/// What is put off of a channel and its queues.
#[derive(Debug)]
pub(crate) struct Link {
    /// Which of the ends are steady.
    pub(crate) sender: bool,
    pub(crate) receiver: bool,
    /// The sender's output queue.
    pub(crate) output: u8,
    pub(crate) since: u64,
    /// Words that the receiver had taken from the queue before a cycle, while it is not steady.
    pub(crate) taken: (u64, u32),
    pub(crate) words: Row,
    /// Words in the rings, and those of them in the input queue.
    under_way: usize,
    landed: usize,
    /// If events are recorded: all words from the first in the rings on.
    trace: Option<Vec<u32>>,
}

/// A row of words that grows at one end and is taken from the other; what was taken goes when it is
/// empty, or with the link (a few thousand words at most).
#[derive(Debug, Default)]
pub(crate) struct Row {
    words: Vec<u32>,
    taken: usize,
}

impl Row {
    /// Number of words.
    pub(crate) fn len(&self) -> usize {
        self.words.len() - self.taken
    }

    /// Moves the first words into `to`, at most so many.
    pub(crate) fn take(&mut self, count: usize, to: &mut Vec<u32>) {
        let end = self.taken + count.min(self.len());
        to.extend_from_slice(&self.words[self.taken..end]);
        self.taken = end;
        if end == self.words.len() {
            self.words.clear();
            self.taken = 0;
        }
    }

    /// Takes the last words, which are so many at most.
    fn split_off(&mut self, count: usize) -> Vec<u32> {
        self.words.split_off(self.words.len() - count.min(self.len()))
    }
}

impl Link {
    /// Of a channel whose sender is steady from cycle `since` on, and whose receiver has taken so many
    /// words.
    pub(crate) fn new(output: u8, since: u64, taken: (u64, u32)) -> Link {
        Link {
            sender: true,
            receiver: false,
            output,
            since,
            taken,
            words: Row::default(),
            under_way: 0,
            landed: 0,
            trace: None,
        }
    }

    /// Whether its words come from a steady sender and go to a receiver that is not.
    pub(crate) fn is_fed(&self) -> bool {
        self.sender && !self.receiver
    }

    /// Takes in what the sender has computed.
    pub(crate) fn send(&mut self, words: &[u32]) {
        self.words.words.extend_from_slice(words);
        if let Some(trace) = &mut self.trace {
            trace.extend_from_slice(words);
        }
    }
}

impl<C: Code> Region<C> {
    /// Whether a word moves in every part of a channel and its queues in each cycle from `now` on as
    /// long as both ends go on. The source has been through the cycles before `now`, the
    /// destination through no fewer.
    pub(crate) fn is_even(&self, plan: &Plan, id: u32, output: u8, now: u64) -> bool {
        let channel = &self.channels[id as usize];
        let (timing, route) = (&plan.timing, channel.route());
        let source = self.cores[route.source as usize].as_deref();
        let dest = self.cores[route.dest as usize].as_deref();
        let (Some(source), Some(dest), Some(queue)) = (source, dest, route.queue) else {
            return false;
        };
        let Some(last) = channel.landed_evenly().filter(|&last| last + 1 >= now) else {
            return false;
        };
        let Some(Outgoing { ring: out, .. }) = source.outputs.get(usize::from(output)) else {
            return false;
        };
        let Input { ring: input, last: arrived, .. } = &dest.inputs[usize::from(queue)];
        out.is_even(now, now)
            && out.first().max(out.free_from()) <= now
            && out.words().all(|word| word.color == route.color && !word.advance)
            && channel.is_even(now - 1, last)
            && channel.free_from() <= now
            && channel.arrival().is_some_and(|arrival| arrival <= last + 1)
            && self.landings[route.dest as usize].is_at(last + 1)
            && dest.until >= now
            && *arrived == Some(last + timing.ramp_down)
            && input.is_even(last + timing.ramp_down, dest.until - 1 + timing.credit)
            && input.free_from() <= last + 1
    }

    /// The receiver of a link whose sender is steady becomes steady too.
    pub(crate) fn join_link(&mut self, id: u32) {
        let channel = &mut self.channels[id as usize];
        let route = channel.route();
        let Some(mut link) = channel.link.take() else { return };
        let queue = usize::from(route.queue.unwrap_or_default());
        link.receiver = true;
        let words = &mut link.words.words;
        if let Some(dest) = self.cores[route.dest as usize].as_deref() {
            words.extend(dest.inputs[queue].ring.words().map(|word| word.payload));
        }
        link.landed = words.len();
        words.extend(channel.words().map(|word| word.payload));
        if let Some(source) = self.cores[route.source as usize].as_deref() {
            let ring = &source.outputs[usize::from(link.output)].ring;
            words.extend(ring.words().map(|word| word.payload));
        }
        link.under_way = words.len();
        link.trace = self.events.is_some().then(|| words.clone());
        self.channels[id as usize].link = Some(link);
    }

    /// Brings the rings of a link with two steady ends to where they stand before cycle `t`; how many
    /// words are in them. The sender has computed what it does before `t`.
    pub(crate) fn settle_link(&mut self, id: u32, t: u64) -> u64 {
        let channel = &mut self.channels[id as usize];
        let Some(mut link) = channel.link.take() else { return 0 };
        let mut down = 0;
        let (route, by) = (channel.route(), t - link.since);
        let queue = usize::from(route.queue.unwrap_or_default());
        let mut payloads = link.words.split_off(link.under_way).into_iter();
        if let Some(dest) = self.cores[route.dest as usize].as_deref_mut() {
            down = dest.ramp_down;
            let input = &mut dest.inputs[queue];
            input.ring.shift(by, &mut payloads);
            input.last = input.last.map(|last| last + by);
        }
        channel.shift(by, &mut payloads);
        if let Some(source) = self.cores[route.source as usize].as_deref_mut() {
            source.outputs[usize::from(link.output)].ring.shift(by, &mut payloads);
        }
        self.landings[route.dest as usize].shift(id, by);
        self.stats.delivered += by;
        self.stats.hops += by * u64::from(route.hops);
        self.count_sent(id, link.output, by);
        if let (Some(events), Some(trace)) = (&mut self.events, link.trace.take()) {
            let first = link.since + down;
            let landed = trace[link.landed..].iter().take(by as usize);
            for (cycle, &payload) in (first..).zip(landed) {
                let (pe, queue) = (route.number, queue as u8);
                events.push(Event::Arrival { cycle, pe, queue, payload, control: false });
            }
        }
        link.since = t;
        let under_way = link.under_way as u64;
        self.channels[id as usize].link = Some(link);
        under_way
    }

    /// Brings a link whose sender alone is steady to where it stands before cycle `t`.
    pub(crate) fn feed_link(&mut self, plan: &Plan, code: &C, id: u32, t: u64) {
        let route = self.channels[id as usize].route();
        let waits = |link: &Link| link.is_fed() && link.since < t;
        if !self.channels[id as usize].link.as_deref().is_some_and(waits) {
            return;
        }
        self.advance(plan, code, route.source, t);
        let channel = &mut self.channels[id as usize];
        let Some(mut link) = channel.link.take() else { return };
        let mut words = std::mem::take(&mut self.moved);
        link.words.take(usize::MAX, &mut words);
        if let Some(source) = self.cores[route.source as usize].as_deref_mut() {
            let ring = &mut source.outputs[usize::from(link.output)].ring;
            for (cycle, &payload) in (link.since..t).zip(&words) {
                let word = ring.pop(cycle + 1);
                debug_assert!(word.stamp <= cycle && channel.free_from() <= cycle);
                channel.push(word, cycle);
                ring.push(Slot { stamp: cycle + 1, payload, ..word });
            }
        }
        let count = t - link.since;
        link.since = t;
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Fed);
        words.clear();
        self.moved = words;
        let output = link.output;
        channel.link = Some(link);
        self.count_sent(id, output, count);
    }

    /// Brings all links that a steady sender feeds and that end at a PE to where they stand now.
    pub(crate) fn feed_links(&mut self, plan: &Plan, code: &C, pe: u32) {
        let mut at = 0;
        while let Some(id) = self.landings.get(pe as usize).and_then(|it| it.channel(at)) {
            self.feed_link(plan, code, id, self.now);
            at += 1;
        }
    }

    /// So many words have gone up the ramp into a channel.
    pub(super) fn count_sent(&mut self, id: u32, output: u8, count: u64) {
        let route = self.channels[id as usize].route();
        self.stats.sent += count;
        self.ways.count(route.color, Way::Channel, count);
        if let Some(source) = self.cores[route.source as usize].as_deref_mut()
            && let Some(sent) =
                source.outputs.get_mut(output.into()).and_then(|it| it.sent.as_mut())
        {
            sent.words += if sent.color == route.color { count } else { 0 };
        }
    }
}
