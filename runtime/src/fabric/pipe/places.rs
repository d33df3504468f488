//! How many words a pipe takes, and when.

use super::{Pipe, RAMP, Route, Span};
use crate::pe::share::WHOLE;

impl Pipe {
    /// Words that it takes now.
    pub(crate) fn room(&self) -> u32 {
        if self.route.link.is_some() {
            return u32::MAX;
        }
        (self.places + self.open).saturating_sub(self.standing())
    }

    /// Words that it takes if nobody takes them out.
    pub(crate) fn places(&self) -> u32 {
        self.places
    }

    /// Half of the words that it takes in if nobody takes them out.
    pub(crate) fn half(&self) -> u32 {
        (self.places / 2).max(1)
    }

    /// From which cycle a single word may go up the ramp, as far as that is known: none if nobody takes yet what stands
    /// before it.
    pub(crate) fn climbs_from(&self) -> Option<u64> {
        self.freed((self.sent.end() + 1, self.places - u32::from(self.output)), 0)
    }

    /// It begins where so many words that came otherwise stand in the queue at its end: as if they had gone through it.
    pub(crate) fn begin_behind(&mut self, queued: u32) {
        let base = self.sent.end().max(queued.into());
        self.queued = queued;
        self.sent = Span { base, ..Span::default() };
        self.taken = Span { base: base - u64::from(queued), ..Span::default() };
        self.bends.clear();
    }

    /// Words that are not gone. A queue that the program binds later has no places that are known.
    pub(super) fn standing(&self) -> u32 {
        self.held + self.route.queue.map_or(0, |_| self.queued)
    }

    /// Number of the first word that is not gone.
    fn out(&self) -> u64 {
        self.sent.end().saturating_sub(self.standing().into())
    }

    /// From which cycle the word before `number` has a place in it: none if nobody takes yet what
    /// stands there.
    pub(crate) fn place_from(&self, number: u64) -> Option<u64> {
        self.freed((number, self.places), self.later())
    }

    /// From which cycle the next word has a place, if the operation at its end takes those that it is bound to take one
    /// after the other, from a cycle on.
    pub(crate) fn next_place(&self, takes: impl FnOnce(Route, u64) -> u64) -> u64 {
        let number = self.sent.end() + 1;
        let bound_to_take = || {
            let before = number.saturating_sub(u64::from(self.places) + 1);
            let taken = takes(self.route, self.open_from)
                + before.saturating_sub(self.taken.end().max(self.out()));
            taken + u64::from(self.credit) + self.later()
        };
        self.place_from(number).unwrap_or_else(bound_to_take)
    }

    /// Number of the first word that has no place by cycle `t`, if it is known what has been taken by then.
    pub(crate) fn placed_by(&self, t: u64) -> Option<u64> {
        let seen = t.saturating_sub(u64::from(self.credit) + self.later());
        let known = self.route.link.is_none() && self.taken.last >= seen;
        let taken = || self.taken.base + self.taken.count_by(seen);
        (known && self.taken.end() >= self.out()).then(|| taken() + u64::from(self.places))
    }

    /// The operation at its end could take words with such a part of its core's slots; with what part before.
    pub(crate) fn set_pace(&mut self, pace: u64) -> u64 {
        let before = self.pace();
        self.pace = pace.min(u16::MAX.into()) as u16;
        before
    }

    /// What part of its core's slots the operation at its end could take words with.
    pub(crate) fn pace(&self) -> u64 {
        if self.pace == u16::MAX { WHOLE } else { self.pace.into() }
    }

    /// A core sees in the cycle after what leaves its output queue.
    pub(super) fn later(&self) -> u64 {
        u64::from(self.route.entry == RAMP)
    }

    /// From when on a word of this number has a place, of so many, if whoever puts it there sees what becomes free so
    /// much later; none if that is not known.
    fn freed(&self, (number, places): (u64, u32), later: u64) -> Option<u64> {
        if self.route.link.is_some() {
            return Some(0);
        }
        let Some(before) = number.checked_sub(u64::from(places) + 1) else { return Some(0) };
        if before < self.taken.base {
            return Some(0);
        }
        if before < self.taken.end() {
            return Some(self.taken.time(before) + u64::from(self.credit) + later);
        }
        (before < self.out()).then_some(0)
    }
}
