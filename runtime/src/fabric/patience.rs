//! When something is tried again that could not be done, or had to end: later each time.

/// Cycles that pass before the first time.
const LEAST: u64 = 1 << 6;

/// From when on it is tried again, and how long that was put off last.
#[derive(Debug, Default)]
pub(super) struct Patience {
    again: u64,
    last: u64,
}

impl Patience {
    /// Whether it is tried in cycle `t`.
    pub(super) fn is_over(&self, t: u64) -> bool {
        self.again <= t
    }

    /// It is not tried for a while after cycle `t`, twice as long as the last time and `most` cycles at most.
    pub(super) fn put_off(&mut self, t: u64, most: u64) {
        self.last = (2 * self.last).clamp(LEAST, most.max(LEAST));
        self.again = t + self.last;
    }

    /// It has been worth it: it is tried at once.
    pub(super) fn reset(&mut self) {
        *self = Patience::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_put_off_for_longer_each_time() {
        let mut patience = Patience::default();
        assert!(patience.is_over(0));
        patience.put_off(10, 200);
        assert!(!patience.is_over(73) && patience.is_over(74));
        patience.put_off(100, 200);
        patience.put_off(300, 200);
        assert!(!patience.is_over(499) && patience.is_over(500));
        patience.reset();
        assert!(patience.is_over(0));
    }
}
