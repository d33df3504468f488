//! A pipe as `sched::rounds` sees it: its state in time, its words, and how it is some rounds later.

use super::{Bend, End, Limit, Packet, Pipe, Span};
use crate::sched::rounds::Noter;

impl Pipe {
    /// A word's number, seen from the last that was sent: words have been sent since then, or are to come.
    pub(crate) fn since(&self, number: u64) -> u64 {
        self.sent.end().wrapping_sub(number)
    }

    /// When the first of the words is there that were sent last, and was taken of those that were.
    pub(crate) fn begun(&self) -> [u64; 2] {
        [self.sent.first, self.taken.first]
    }

    /// Notes its state before a cycle.
    pub(crate) fn note(&self, noter: &mut Noter<'_>) {
        // What is left out does not change, or follows from the rest.
        let Pipe {
            packets,
            route,
            transit: _,
            credit: _,
            sent,
            taken,
            first: _,
            bends,
            held,
            queued,
            places: _,
            output: _,
            open,
            open_from,
            pace,
            wanted,
            shared: _,
            end,
        } = self;
        noter.value((route.source, route.color, held, queued, open, pace, wanted));
        if *open != 0 {
            noter.stamp(*open_from);
        }
        for Packet { span, words, taken } in packets {
            noter.value((words.len(), taken, packets.len()));
            self.note_span(span, noter);
        }
        self.note_span(sent, noter);
        self.note_span(taken, noter);
        let first = packets.front().map_or(sent.base, |packet| packet.span.base);
        let known = if noter.is_old(sent.last) { &[] } else { &bends[..] };
        for Bend { number, time } in known.iter().filter(|bend| bend.number >= first) {
            noter.value(self.since(*number));
            noter.cycle(*time);
        }
        match end.as_deref() {
            Some(End::Taker(taker)) => noter.only(!taker.noted && taker.free.is_none()),
            Some(End::Multicast(multicast)) => {
                noter.only(!multicast.keeps);
                let Limit { number, by, places, lag } = multicast.passed;
                noter.value((number.wrapping_sub(sent.end()), by, places, lag));
                for kept in [&multicast.kept, &multicast.kept_before] {
                    if kept.end() + u64::from(*held) > sent.end() {
                        self.note_span(kept, noter);
                    }
                }
            }
            Some(End::Sender) | None => {}
        }
    }

    /// Notes some of its words; of those that have long been somewhere it does not matter since when.
    fn note_span(&self, span: &Span, noter: &mut Noter<'_>) {
        noter.value((self.since(span.base), span.count));
        if !noter.is_old(span.last) {
            noter.cycle(span.first);
            noter.cycle(span.last);
        }
    }

    /// All that happens in it happens so many cycles later.
    pub(crate) fn put_off(&mut self, by: u64) {
        let spans = self.packets.iter_mut().map(|packet| &mut packet.span);
        for span in spans.chain([&mut self.sent, &mut self.taken]) {
            (span.first, span.last) = (span.first + by, span.last + by);
        }
        for bend in &mut self.bends {
            bend.time += by;
        }
        if let Some(multicast) = self.multicast_mut() {
            for kept in [&mut multicast.kept, &mut multicast.kept_before] {
                (kept.first, kept.last) = (kept.first + by, kept.last + by);
            }
        }
        self.open_from += by;
        self.first.set(super::NEVER);
    }

    /// Its words, oldest first.
    pub(crate) fn payloads(&mut self, each: &mut impl FnMut(&mut u32)) {
        for packet in &mut self.packets {
            packet.words[packet.taken..].iter_mut().for_each(&mut *each);
        }
    }
}
