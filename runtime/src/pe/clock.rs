//! The counter of cycles.

use dflow_ir::inst::ClockOp;

use crate::fabric::ring::NEVER;

/// A PE's counter: what `<time>` stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Counts since this cycle; [`NEVER`] while it stands.
    since: u64,
    /// What it showed then.
    base: u64,
    /// What it has counted in all less what it shows, and wraps as that may be less.
    unseen: u64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { since: NEVER, base: 0, unseen: 0 }
    }
}

impl Clock {
    /// Does what a clock instruction asks in cycle `t`; the value it reads.
    pub(super) fn act(&mut self, op: ClockOp, t: u64) -> u64 {
        let (counted, runs) = (self.counted(t), self.runs());
        let mut read = counted;
        match op {
            ClockOp::Read => {}
            ClockOp::Total => read = counted.wrapping_add(self.unseen),
            ClockOp::Enable => self.set(t, true, 0),
            ClockOp::Disable => self.set(t, false, counted),
            ClockOp::Resume => self.set(t, true, counted),
            ClockOp::Reset => self.set(t, runs, 0),
        }
        read & 0xffff_ffff_ffff
    }

    /// Has it show a number in cycle `t`, and run on or not.
    fn set(&mut self, t: u64, runs: bool, shown: u64) {
        let total = self.counted(t).wrapping_add(self.unseen);
        let unseen = total.wrapping_sub(shown);
        *self = Clock { since: if runs { t } else { NEVER }, base: shown, unseen };
    }

    /// What it shows in cycle `t`.
    pub(crate) fn counted(&self, t: u64) -> u64 {
        self.base + if self.runs() { t - self.since } else { 0 }
    }

    /// Whether it counts.
    pub(crate) fn runs(&self) -> bool {
        self.since != NEVER
    }

    /// Lets it run on or stops it.
    pub(crate) fn switch(&mut self, t: u64, runs: bool) {
        self.set(t, runs, self.counted(t));
    }

    /// Sets one of its three words.
    pub(crate) fn write(&mut self, t: u64, word: u16, value: u16) {
        let at = 16 * u32::from(word);
        let base = self.counted(t) & !(0xffff << at) | u64::from(value) << at;
        self.set(t, self.runs(), base);
    }
}
