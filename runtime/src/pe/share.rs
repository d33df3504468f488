//! How stretches and microthreads that go element by element share the slots of a core.
//!
//! What stretches use is known ahead; what the others would use depends on words and places, cycle by
//! cycle. So they are asked for what they used of the last cycles, and the slots of stretches are
//! kept from them.

/// All slots of a core, or all cycles of a link.
pub(super) const WHOLE: u64 = 1 << 16;
/// Cycles over which slots of operations that go element by element are counted.
pub(super) const WINDOW: u64 = 64;

/// A fair share of the slots, with these demands.
pub(super) fn fair(demands: &mut [u64]) -> u64 {
    demands.sort_unstable();
    let (mut rest, mut count) = (WHOLE, demands.len() as u64);
    for &mut demand in demands {
        if demand * count > rest {
            break;
        }
        (rest, count) = (rest - demand, count - 1);
    }
    rest.checked_div(count).unwrap_or(WHOLE)
}

/// Microthreads that go element by element, beside stretches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    /// Slots that they took or would have taken since a cycle, and what part of all that was last
    /// time.
    wanted: u64,
    since: u64,
    rate: u64,
    /// What stretches use of the slots, and what of that has come together.
    used: u64,
    owed: u64,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps { wanted: 0, since: 0, rate: WHOLE, used: 0, owed: 0 }
    }
}

impl Steps {
    /// One of them could take a slot; whether it does, and does not leave it to a stretch.
    pub(super) fn take(&mut self) -> bool {
        self.wanted += 1;
        self.owed += self.used;
        let takes = self.owed < WHOLE;
        if !takes {
            self.owed -= WHOLE;
        }
        takes
    }

    /// Whether they have been looked at for a while.
    pub(super) fn is_due(&self, t: u64) -> bool {
        t >= self.since + WINDOW
    }

    /// What each of so many asks for from cycle `t` on: all that it gets until they have been looked
    /// at, and if they take nearly all slots.
    pub(super) fn demand(&mut self, t: u64, count: u64) -> u64 {
        if count == 0 {
            *self = Steps { since: t, ..Steps::default() };
        } else if self.is_due(t) {
            self.rate = (self.wanted * WHOLE / (t - self.since)).min(WHOLE);
            (self.wanted, self.since) = (0, t);
        }
        if self.rate > WHOLE - WHOLE / 8 { WHOLE } else { self.rate / count.max(1) }
    }

    /// Whether they took slots when they were looked at last.
    pub(super) fn are_busy(&self) -> bool {
        self.rate != 0
    }

    /// Stretches use so much of the slots.
    pub(super) fn share_with(&mut self, used: u64) {
        self.used = used.min(WHOLE);
    }
}

#[cfg(test)]
mod tests {
    use super::{Steps, WHOLE, WINDOW, fair};

    #[test]
    fn what_one_does_not_need_goes_to_the_others() {
        assert_eq!(fair(&mut [WHOLE, WHOLE]), WHOLE / 2);
        assert_eq!(fair(&mut [WHOLE, WHOLE / 4, 0]), WHOLE * 3 / 4);
    }

    #[test]
    fn those_that_wait_for_words_ask_for_what_they_took() {
        let mut steps = Steps::default();
        assert_eq!(steps.demand(0, 2), WHOLE);
        for _ in 0..WINDOW / 2 {
            assert!(steps.take());
        }
        assert_eq!(steps.demand(WINDOW, 2), WHOLE / 4);
        assert_eq!(steps.demand(2 * WINDOW, 2), 0);
        assert!(!steps.are_busy());
    }

    #[test]
    fn stretches_keep_their_slots() {
        let mut steps = Steps::default();
        steps.share_with(WHOLE / 4);
        let taken = (0..100).filter(|_| steps.take()).count();
        assert_eq!(taken, 75);
    }
}
