//! Cycles that come again after a period, some per period, for ever.

use super::ring::NEVER;

/// The cycles from `next` on. Two that are equal are the same cycles: the period is the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    next: u64,
    /// Which cycles of the period that begins with `next`, as bits; the first is among them.
    mask: u16,
    period: u8,
}

/// Longest period.
pub(crate) const LONGEST: u64 = 16;

impl Pattern {
    /// The cycles of a period, in order, and those that come as long after them again and again; none
    /// without cycles or if they are not in one period.
    pub(crate) fn new(cycles: impl IntoIterator<Item = u64>, period: u64) -> Option<Pattern> {
        let mut cycles = cycles.into_iter();
        let (next, mut mask, mut last) = (cycles.next()?, 1, 0);
        if period == 0 || period > LONGEST {
            return None;
        }
        for cycle in cycles {
            let at = cycle.checked_sub(next).filter(|&at| last < at && at < period)?;
            mask |= 1 << at;
            last = at;
        }
        Some(Pattern { next, mask, period: period as u8 }.reduced())
    }

    /// With the shortest period.
    fn reduced(self) -> Pattern {
        let whole = u32::from(self.period);
        let same = |by: &u32| whole.is_multiple_of(*by) && self.rotated(*by) == self.mask;
        let period = (1..whole).find(same).filter(|_| self.mask != 1).unwrap_or(whole);
        let mask = u32::from(self.mask) & ((1 << period) - 1);
        Pattern { mask: mask as u16, period: period as u8, ..self }
    }

    /// The cycles of the period that begins so many cycles later, as bits.
    #[inline]
    fn rotated(&self, by: u32) -> u16 {
        let (mask, period) = (u32::from(self.mask), u32::from(self.period));
        ((mask >> by | mask << (period - by)) & ((1 << period) - 1)) as u16
    }

    /// The first cycle.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Cycles from one to the same of the next period.
    pub(crate) fn period(&self) -> u64 {
        self.period.into()
    }

    /// Number of cycles in a period.
    fn count(&self) -> u64 {
        self.mask.count_ones().into()
    }

    /// The cycle after so many.
    #[inline]
    pub(crate) fn after(&self, count: u64) -> u64 {
        if self.mask == 1 {
            return self.next + count * self.period();
        }
        let (periods, left) = (count / self.count(), count % self.count());
        let rest = (0..left).fold(self.mask, |mask, _| mask & (mask - 1));
        self.next + periods * self.period() + u64::from(rest.trailing_zeros())
    }

    /// The first is over.
    #[inline]
    pub(crate) fn advance(&mut self) {
        let by = (u32::from(self.mask) & !1 | 1 << self.period).trailing_zeros();
        self.next += u64::from(by);
        self.mask = self.rotated(by);
    }

    /// So many whole periods of `length` cycles are over, which has a whole number of its own.
    pub(crate) fn pass(&mut self, count: u64, length: u64) {
        self.next += count * length;
    }

    /// All come as much later as the first does.
    pub(crate) fn put_off(&mut self, next: u64) {
        self.next = self.next.max(next);
    }

    /// The cycle before the first.
    pub(crate) fn previous(&self) -> u64 {
        (self.next + u64::from(15 - self.mask.leading_zeros())).saturating_sub(self.period())
    }

    /// Cycles in `length` cycles, which have a whole number of periods.
    pub(crate) fn among(&self, length: u64) -> u64 {
        self.count() * (length / self.period())
    }
}

/// When the first comes of a pattern that may not be there.
pub(crate) fn next_of(pattern: Option<Pattern>) -> u64 {
    pattern.map_or(NEVER, |pattern| pattern.next)
}

/// The shortest time that has a whole number of periods of all of these.
pub(crate) fn common_period<'a>(of: impl IntoIterator<Item = &'a Pattern>) -> u64 {
    let mut common: u64 = 1;
    for pattern in of {
        let step = common;
        while !common.is_multiple_of(pattern.period()) {
            common += step;
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(pattern: Pattern, count: usize) -> Vec<u64> {
        let mut pattern = pattern;
        let mut cycles = Vec::new();
        for _ in 0..count {
            cycles.push(pattern.next());
            pattern.advance();
        }
        cycles
    }

    #[test]
    fn cycles_come_again() {
        let uneven = Pattern::new([100, 101, 103], 6).expect("in order");
        assert_eq!(first(uneven, 7), [100, 101, 103, 106, 107, 109, 112]);
        assert_eq!([0, 1, 5, 6].map(|count| uneven.after(count)), [100, 101, 109, 112]);
        let whole = Pattern::new([7, 8, 20], 16).expect("in order");
        assert_eq!(first(whole, 7), [7, 8, 20, 23, 24, 36, 39]);
        assert_eq!(Pattern::new([3, 3], 4), None);
        assert_eq!(Pattern::new([3, 7], 4), None);
        assert_eq!(Pattern::new([3], 17), None);
        assert_eq!(Pattern::new([], 4), None);
    }

    #[test]
    fn the_same_cycles_are_equal() {
        let even = Pattern::new([5, 7, 9], 6);
        assert_eq!(even, Pattern::new([5], 2));
        let mut later = Pattern::new([5, 6, 11], 8).expect("in order");
        let at_first = later;
        later.advance();
        assert_eq!(Some(later), Pattern::new([6, 11, 13], 8));
        assert_eq!((later.previous(), at_first.previous()), (5, 3));
        later.advance();
        later.advance();
        later.advance();
        assert_eq!(first(later, 3), [14, 19, 21]);
    }

    #[test]
    fn periods_have_one_in_common() {
        let of = |period| Pattern::new([9], period).expect("a period");
        assert_eq!(common_period(&[of(6), of(4), of(1)]), 12);
        assert_eq!(Pattern::new([9, 10], 4).expect("in order").among(12), 6);
    }
}
