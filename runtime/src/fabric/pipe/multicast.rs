//! A pipe of a multicast as its forks see it: how far they can pass words, and until when they have kept them.

use super::{End, Pipe, Span};
use crate::fabric::ring::NEVER;
use crate::sched::plan::Latencies;

/// Cycles after which a word has been taken by one that keeps up with those that send.
const PACE: u64 = 32;

/// Number of the first word of a multicast: some stand in the queues of its takers before it.
const BEFORE: u64 = 1 << 16;

/// A pipe of a multicast.
#[derive(Debug)]
pub(crate) struct Multicast {
    /// Number of the first pipe; the other ones and the forks, if it is that.
    pub(in crate::fabric) first: u32,
    pub(in crate::fabric) others: Box<[u32]>,
    pub(in crate::fabric) forks: Box<[Fork]>,
    /// Whether routers keep any of its words from a taker; when that is looked at again, if nothing is told before.
    pub(in crate::fabric) keeps: bool,
    pub(in crate::fabric) due: u64,
    /// Whether its taker is one of those for want of whose places forks pass no more.
    pub(in crate::fabric) limits: bool,
    /// The last fork on its way, by number, and links and places behind that.
    pub(in crate::fabric) fork: u32,
    pub(in crate::fabric) hops: u32,
    pub(in crate::fabric) behind: u32,
    /// How far routers have passed words; when the last ones that had been kept are at the last router, and those
    /// that had been before.
    pub(in crate::fabric) passed: Limit,
    pub(in crate::fabric) kept: Span,
    pub(in crate::fabric) kept_before: Span,
    /// Links of its way that are not on the way of one before it.
    pub(in crate::fabric) links: u32,
}

/// A router that copies the words of a multicast.
#[derive(Clone, Copy, Debug)]
pub(in crate::fabric) struct Fork {
    /// The one before it, itself if there is none, and links and places from there to here.
    pub(in crate::fabric) before: u32,
    pub(in crate::fabric) hops: u32,
    pub(in crate::fabric) places: u32,
    pub(in crate::fabric) limit: Limit,
}

/// How far a fork can pass words.
#[derive(Clone, Copy, Debug)]
pub(in crate::fabric) struct Limit {
    /// Number of the first word that it cannot pass.
    pub(in crate::fabric) number: u64,
    /// The pipe whose taker has to take words for that, places from here to there, and cycles after which a word that
    /// waits for one of them is where it is asked for.
    pub(in crate::fabric) by: u32,
    pub(in crate::fabric) places: u64,
    pub(in crate::fabric) lag: u64,
}

impl Limit {
    /// It passes all, or nothing.
    pub(in crate::fabric) const NONE: Limit = Limit { number: u64::MAX, by: 0, places: 0, lag: 0 };
    pub(in crate::fabric) const NOTHING: Limit = Limit { number: 0, by: 0, places: 0, lag: 0 };

    /// What holds before so many links and places with this one behind them.
    pub(in crate::fabric) fn before(self, hops: u64, places: u32, timing: &Latencies) -> Limit {
        let places = u64::from(places);
        Limit {
            number: self.number.saturating_add(places),
            places: self.places + places,
            lag: self.lag + hops * timing.credit,
            ..self
        }
    }

    /// What holds behind so many links.
    pub(in crate::fabric) fn behind(self, hops: u32, timing: &Latencies) -> Limit {
        Limit { lag: self.lag + u64::from(hops) * timing.hop, ..self }
    }
}

impl Span {
    /// Words whose time has come by a cycle.
    pub(super) fn count_by(&self, cycle: u64) -> u64 {
        if cycle >= self.last {
            return self.count;
        }
        // Those whose `time`, which is rounded down, is not later.
        let gaps = self.count.saturating_sub(1).max(1);
        let by = |cycles: u64| ((cycles + 1) * gaps).div_ceil(self.last - self.first);
        cycle.checked_sub(self.first).map_or(0, |cycles| by(cycles).min(self.count))
    }
}

impl Pipe {
    /// It as one of a multicast; so many words stand in the queue at its end.
    pub(in crate::fabric) fn of_multicast(mut self, multicast: Multicast, queued: u32) -> Pipe {
        // Under the same numbers in all of its pipes.
        self.sent.base = BEFORE;
        self.queued = queued;
        self.end = Some(Box::new(End::Multicast(multicast)));
        self
    }

    /// The multicast that it is of.
    pub(in crate::fabric) fn multicast(&self) -> Option<&Multicast> {
        match self.end.as_deref()? {
            End::Multicast(multicast) => Some(multicast),
            End::Sender | End::Taker(_) => None,
        }
    }

    /// Likewise, to change it.
    pub(in crate::fabric) fn multicast_mut(&mut self) -> Option<&mut Multicast> {
        match self.end.as_deref_mut()? {
            End::Multicast(multicast) => Some(multicast),
            End::Sender | End::Taker(_) => None,
        }
    }

    /// The last fork on its way, and how far that can pass words by a cycle, as far as it has a say in that.
    pub(in crate::fabric) fn limit(
        &self,
        id: u32,
        by: u64,
        timing: &Latencies,
    ) -> Option<(u32, Limit)> {
        let Multicast { fork, hops, behind, .. } = *self.multicast()?;
        // One that leaves words where they are, or takes them slowly, may be kept for long from those that it is bound
        // to take.
        let leaves = self.arrival().is_some_and(|it| it.max(self.taken.last) + PACE < by);
        let number = if self.open_from <= by && !leaves && !self.lags() {
            self.gone() + u64::from(self.open)
        } else {
            let later = self.taken.count - self.taken.count_by(by);
            self.gone().saturating_sub(later)
        };
        let limit = Limit { number, by: id, places: 0, lag: 0 };
        Some((fork, limit.before(u64::from(hops) + 1, behind, timing)))
    }

    /// When a word leaves the queue at its end, at the soonest; 0 if that is long ago, [`NEVER`] if it is not known.
    pub(in crate::fabric) fn gone_in(&self, number: u64) -> u64 {
        if (self.taken.base..self.taken.end()).contains(&number) {
            self.taken.time(number)
        } else if number < self.gone() {
            0
        } else if self.open != 0 {
            self.open_from
        } else {
            NEVER
        }
    }

    /// Whether the last word that was taken, or is to be, stands there for long before.
    fn lags(&self) -> bool {
        let Some(number) = self.taken.end().checked_sub(1) else { return false };
        let span = self.packets.front().map_or(self.sent, |packet| packet.span);
        // Of those kept longer ago it is only known that they were not for longer.
        let older = |it: &Multicast| it.kept_before.first * u64::from(number < it.kept_before.base);
        let kept = || self.kept_until(number).max(self.multicast().map_or(0, older));
        let arrival = || span.bent(&self.bends, number).max(kept());
        number >= span.base && self.taken.last > arrival() + PACE
    }

    /// Its taker, which is bound to take words, does not begin before a cycle.
    pub(in crate::fabric) fn put_off_taker(&mut self, from: u64) {
        self.open_from = self.open_from.max(from);
    }

    /// Whether its taker is bound to take words.
    pub(in crate::fabric) fn is_open(&self) -> bool {
        self.open != 0
    }

    /// Until when a word of it is kept by routers, as far as it matters.
    pub(super) fn kept_until(&self, number: u64) -> u64 {
        let Some(Multicast { kept, kept_before, .. }) = self.multicast() else { return 0 };
        let has = |kept: &&Span| (kept.base..kept.end()).contains(&number);
        [kept, kept_before].into_iter().find(has).map_or(0, |kept| kept.time(number))
    }

    /// Words in it that its taker may have, however many are in it.
    pub(super) fn passed(&self) -> u64 {
        match self.end.as_deref() {
            Some(End::Multicast(multicast)) => {
                (multicast.passed.number + u64::from(self.held)).saturating_sub(self.sent.end())
            }
            Some(End::Sender | End::Taker(_)) | None => u64::MAX,
        }
    }

    /// Words in it that its taker may have.
    pub(crate) fn at_hand(&self) -> u32 {
        self.passed().min(self.held.into()) as u32
    }

    /// The other pipes of its multicast, if it is the first one.
    pub(crate) fn others(&self) -> &[u32] {
        self.multicast().map_or(&[], |it| &it.others)
    }

    /// Links that words of it are counted on.
    pub(crate) fn links(&self) -> u32 {
        self.multicast().map_or(self.route.hops, |it| it.links)
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn words_that_are_counted_by_a_cycle_are_those_whose_time_has_come() {
        for (count, last) in (1..20).flat_map(|count| (0..60).map(move |last| (count, last))) {
            if (count == 1) != (last == 0) {
                continue;
            }
            let span = Span { base: 7, count, first: 100, last: 100 + last };
            for cycle in 90..170 {
                let come = (7..7 + count).filter(|&number| span.time(number) <= cycle).count();
                assert_eq!(span.count_by(cycle), come as u64, "{span:?} {cycle}");
            }
        }
    }
}
