//! When threads work together, and when one of them does everything.
//!
//! Threads keep in step cycle by cycle. That pays where each has enough to do per cycle; while
//! there is little, or only one of them has it, handing cycles over costs more than the work. So a
//! run is a row of stints, of all threads or of one. A computer that has other things to do makes threads wait for
//! one that it does not run: those are slower than one alone, and leave off (`share`). Results do not depend on who works.

use super::share::WHOLE;

/// Cycles after which a thread looks at what it did.
const CYCLES: u32 = 256;

/// Nanoseconds of work per cycle of a thread that make up for keeping in step.
const WORTH: u64 = 1000;

/// So many times as much is worth it whatever came of working together lately: there are bursts.
const BURST: u64 = 16;

/// Times that a thread rested after which it looks at what it did, and nanoseconds of work that make up for
/// each.
const RESTS: u32 = 64;
const REST: u64 = 10_000;

/// Who waits rests, even if it does not sleep, when its next cycle with work is so far away.
const LONG: u64 = 64;

/// Most times that the stint of one thread is doubled.
const LONGEST: u32 = 8;

/// Times in a row that shares make less than a whole, after which threads have been slower than one alone; how many
/// nanoseconds one works at least after that, and how often that is doubled at most.
const SLOW: u32 = 2;
const RESPITE: u64 = 20_000_000;
const MOST_SLOW: u32 = 6;

/// What became of a stint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was one of all threads, and long.
    Paid,
    /// It was one of a thread, or short.
    Unpaid,
    /// Threads were slower than one alone.
    Slow,
}

/// Who works, kept from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// All threads do, else one.
    pub(super) together: bool,
    /// How often working together has not paid lately.
    doubts: u32,
    /// How often threads were slower than one lately.
    slow_stints: u32,
    /// Cycles between looks.
    cycles: u32,
    /// A stint is over at each look, whatever was done.
    restless: bool,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { together: true, doubts: 0, slow_stints: 0, cycles: CYCLES, restless: false }
    }
}

impl Pace {
    /// One that tries what happens where stints meet.
    #[cfg(test)]
    pub(crate) fn restless(cycles: u32) -> Pace {
        Pace { together: true, doubts: 0, slow_stints: 0, cycles, restless: true }
    }

    /// The stint is over.
    pub(super) fn turn(&mut self, ended: Ended) {
        if self.together {
            self.doubts = match ended {
                Ended::Paid => 0,
                Ended::Unpaid | Ended::Slow => (self.doubts + 1).min(LONGEST),
            };
            self.slow_stints = match ended {
                Ended::Paid | Ended::Unpaid => 0,
                Ended::Slow => (self.slow_stints + 1).min(MOST_SLOW),
            };
        }
        self.together = !self.together;
    }

    /// What a thread of the next stint watches; `threads`: of the run.
    pub(super) fn gauge(&self, threads: usize) -> Gauge {
        let work = match (threads, self.together) {
            (0 | 1, _) => Work::Any,
            (_, true) => Work::Together { rests: 0, spent: [0; 2], looks: 0 },
            (_, false) => Work::Alone { spent: vec![0; threads], respite: self.respite() },
        };
        let wait = if self.together || self.restless { 0 } else { self.doubts };
        Gauge {
            left: self.cycles,
            cycles: self.cycles,
            looks: 1 << wait,
            restless: self.restless,
            work,
            slow_shares: 0,
        }
    }

    /// Nanoseconds that one thread works at least.
    fn respite(&self) -> u64 {
        self.slow_stints.checked_sub(1).map_or(0, |doubled| RESPITE << doubled)
    }
}

/// What a thread knows of its stint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gauge {
    /// Cycles until the next look, and between looks.
    left: u32,
    cycles: u32,
    /// Looks until one in the stint of one thread says more than that there is a burst.
    looks: u32,
    restless: bool,
    work: Work,
    /// How often in a row all threads have done less than one alone does.
    slow_shares: u32,
}

/// Who works, and what was done since the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Work {
    /// There is no other way.
    Any,
    /// Rests since the last look at them, time spent since each kind of look, and looks.
    Together { rests: u32, spent: [u64; 2], looks: u32 },
    /// Time spent by the thread whose work it would be, and what is to be spent before the others are asked.
    Alone { spent: Vec<u64>, respite: u64 },
}

impl Gauge {
    /// Whether anybody asks what was done.
    pub(super) fn is_read(&self) -> bool {
        self.work != Work::Any
    }

    /// So many nanoseconds went into a region of the `owner`th thread.
    pub(super) fn worked(&mut self, owner: usize, time: u64) {
        match &mut self.work {
            Work::Any => {}
            Work::Together { spent, .. } => spent.iter_mut().for_each(|it| *it += time),
            Work::Alone { spent, .. } => spent[owner] += time,
        }
    }

    /// Whether threads work together: their shares say whether they should.
    pub(super) fn is_shared(&self) -> bool {
        matches!(self.work, Work::Together { .. })
    }

    /// The shares of all threads make so much; whether they are slower than one alone.
    pub(super) fn note_shares(&mut self, shares: u32) -> bool {
        self.slow_shares = if shares < WHOLE { self.slow_shares + 1 } else { 0 };
        self.slow_shares >= SLOW
    }

    /// A cycle is over; whether the stint ought to be.
    pub(super) fn cycle(&mut self) -> bool {
        self.left -= 1;
        if self.left != 0 {
            return false;
        }
        self.left = self.cycles;
        let worth = WORTH * u64::from(self.cycles);
        match &mut self.work {
            Work::Any => false,
            Work::Together { spent: [spent, _], looks, .. } => {
                *looks = looks.saturating_add(1);
                std::mem::take(spent) < worth || self.restless
            }
            Work::Alone { spent, respite } => {
                let most = spent.iter().copied().max().unwrap_or(0);
                let all: u64 = spent.iter().sum();
                spent.fill(0);
                *respite = respite.saturating_sub(all);
                // What the others would take off the one that has most to do.
                let others = all - most;
                self.looks = self.looks.saturating_sub(1);
                let least = if self.looks == 0 { 4 } else { BURST } * worth;
                others >= (all / 4).max(least) && *respite == 0 || self.restless
            }
        }
    }

    /// The thread has waited, and has nothing to do for so many cycles yet; whether the stint ought to be over.
    pub(super) fn waited(&mut self, slept: bool, idle: u64) -> bool {
        let Work::Together { rests, spent: [_, spent], .. } = &mut self.work else {
            return false;
        };
        if !slept && idle <= LONG {
            return false;
        }
        *rests += 1;
        if *rests < RESTS {
            return false;
        }
        *rests = 0;
        std::mem::take(spent) < REST * u64::from(RESTS)
    }

    /// Whether working together has gone on for a while.
    pub(super) fn has_paid(&self) -> bool {
        matches!(self.work, Work::Together { looks: 16.., .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cycles of a stint until it is over, if each thread works so long in each.
    fn cycles(mut gauge: Gauge, times: &[u64]) -> Option<u32> {
        (1..1 << 20).find(|_| {
            for (owner, &time) in times.iter().enumerate() {
                gauge.worked(owner, time);
            }
            gauge.cycle()
        })
    }

    #[test]
    fn one_works_while_there_is_little_to_do_or_only_one_has_it() {
        let together = Pace::default();
        let mut alone = together;
        alone.turn(Ended::Paid);
        assert_eq!(cycles(together.gauge(2), &[999]), Some(CYCLES));
        assert_eq!(cycles(together.gauge(2), &[1000]), None);
        assert_eq!(cycles(alone.gauge(2), &[30_000, 300]), None);
        assert_eq!(cycles(alone.gauge(2), &[3900, 3900]), None);
        assert_eq!(cycles(alone.gauge(2), &[4100, 4100]), Some(CYCLES));
        assert_eq!(cycles(together.gauge(1), &[1]), None);
        // A thread that has nothing to do.
        let mut gauge = together.gauge(2);
        assert_eq!((1..1000).find(|_| gauge.waited(true, 0)), Some(RESTS));
        assert_eq!((1..1000).find(|_| gauge.waited(false, LONG + 1)), Some(RESTS));
        assert_eq!((1..1000).find(|_| gauge.waited(false, LONG)), None);
    }

    #[test]
    fn what_did_not_pay_is_tried_again_later_and_later() {
        let mut pace = Pace::default();
        let mut waited = Vec::new();
        for ended in [Ended::Unpaid, Ended::Unpaid, Ended::Unpaid, Ended::Paid] {
            pace.turn(ended);
            waited.push(cycles(pace.gauge(2), &[4100, 4100]).unwrap_or(0) / CYCLES);
            pace.turn(Ended::Unpaid);
        }
        assert_eq!(waited, [2, 4, 8, 1]);
    }

    #[test]
    fn threads_that_were_slower_than_one_leave_it_alone_for_longer_each_time() {
        let mut pace = Pace::default();
        let mut gauge = pace.gauge(2);
        assert!(gauge.is_shared());
        let slow = [900, 1100, 900, 900].map(|shares| gauge.note_shares(shares));
        assert_eq!(slow, [false, false, false, true]);
        // A burst does not end it sooner.
        let burst = [20_000, 20_000];
        let mut waited = Vec::new();
        for ended in [Ended::Slow, Ended::Slow, Ended::Slow, Ended::Paid] {
            pace.turn(ended);
            let gauge = pace.gauge(2);
            assert!(!gauge.is_shared());
            waited.push(u64::from(cycles(gauge, &burst).unwrap_or(0)) * 40_000 / RESPITE);
            pace.turn(Ended::Unpaid);
        }
        assert_eq!(waited, [1, 2, 4, 0]);
    }
}
