//! When threads work together, and when one of them does everything.
//!
//! Threads keep in step cycle by cycle. That pays where each has enough to do per cycle; while
//! there is little, or only one of them has it, handing cycles over costs more than the work. So a
//! run is a row of stints, of all threads or of one. Results do not depend on who works.

use crate::config::EngineKind;

/// Cycles after which a thread looks at what it did.
const CYCLES: u32 = 256;

/// Work per cycle of a thread that makes up for keeping in step: visits, and nanoseconds in `flow`.
const WORTH: u64 = 32;
const FLOW_WORTH: u64 = 1000;

/// So many times as much is worth it whatever came of working together lately: there are bursts.
const BURST: u64 = 16;

/// Times that a thread slept after which it looks at what it did, and visits that make up for each.
const SLEEPS: u32 = 64;
const REST: u64 = 300;

/// Most times that the stint of one thread is doubled.
const LONGEST: u32 = 8;

/// Who works, kept from run to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// All threads do, else one.
    pub(super) together: bool,
    /// How often working together has not paid lately.
    doubts: u32,
    /// Cycles between looks.
    cycles: u32,
    /// Work per cycle that is worth it.
    worth: u64,
    /// A stint is over at each look, whatever was done.
    restless: bool,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { together: true, doubts: 0, cycles: CYCLES, worth: WORTH, restless: false }
    }
}

impl Pace {
    /// That of an engine.
    pub(crate) fn new(kind: EngineKind) -> Pace {
        match kind {
            EngineKind::Step | EngineKind::Exact => Pace::default(),
            EngineKind::Flow => Pace { worth: FLOW_WORTH, ..Pace::default() },
        }
    }

    /// One that tries what happens where stints meet.
    #[cfg(test)]
    pub(crate) fn restless(cycles: u32) -> Pace {
        Pace { together: true, doubts: 0, cycles, worth: WORTH, restless: true }
    }

    /// The stint is over; `paid`: it was one of all threads, and long.
    pub(super) fn turn(&mut self, paid: bool) {
        if self.together {
            self.doubts = if paid { 0 } else { (self.doubts + 1).min(LONGEST) };
        }
        self.together = !self.together;
    }

    /// What a thread of the next stint watches; `threads`: of the run.
    pub(super) fn gauge(&self, threads: usize) -> Gauge {
        let work = match (threads, self.together) {
            (0 | 1, _) => Work::Any,
            (_, true) => Work::Together { sleeps: 0, visits: [0; 2], looks: 0 },
            (_, false) => Work::Alone { visits: vec![0; threads] },
        };
        let wait = if self.together || self.restless { 0 } else { self.doubts };
        Gauge {
            left: self.cycles,
            cycles: self.cycles,
            looks: 1 << wait,
            worth: self.worth,
            restless: self.restless,
            work,
        }
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
    worth: u64,
    restless: bool,
    work: Work,
}

/// Who works, and what was done since the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Work {
    /// There is no other way.
    Any,
    /// Sleeps since the last look at them, visits since each kind of look, and looks.
    Together { sleeps: u32, visits: [u64; 2], looks: u32 },
    /// Visits by the thread that would make them.
    Alone { visits: Vec<u64> },
}

impl Gauge {
    /// Whether anybody asks what was done.
    pub(super) fn is_read(&self) -> bool {
        self.work != Work::Any
    }

    /// So much was done in a region of the `owner`th thread.
    pub(super) fn worked(&mut self, owner: usize, count: u64) {
        match &mut self.work {
            Work::Any => {}
            Work::Together { visits, .. } => visits.iter_mut().for_each(|it| *it += count),
            Work::Alone { visits } => visits[owner] += count,
        }
    }

    /// A cycle is over; whether the stint ought to be.
    pub(super) fn cycle(&mut self) -> bool {
        self.left -= 1;
        if self.left != 0 {
            return false;
        }
        self.left = self.cycles;
        let worth = self.worth * u64::from(self.cycles);
        match &mut self.work {
            Work::Any => false,
            Work::Together { visits: [visits, _], looks, .. } => {
                *looks = looks.saturating_add(1);
                std::mem::take(visits) < worth || self.restless
            }
            Work::Alone { visits } => {
                let most = visits.iter().copied().max().unwrap_or(0);
                let all: u64 = visits.iter().sum();
                visits.fill(0);
                // What the others would take off the one that has most to do.
                let others = all - most;
                self.looks = self.looks.saturating_sub(1);
                let least = if self.looks == 0 { 4 } else { BURST } * worth;
                others >= (all / 4).max(least) || self.restless
            }
        }
    }

    /// The thread has slept; whether the stint ought to be over.
    pub(super) fn slept(&mut self) -> bool {
        let Work::Together { sleeps, visits: [_, visits], .. } = &mut self.work else {
            return false;
        };
        *sleeps += 1;
        if *sleeps < SLEEPS {
            return false;
        }
        *sleeps = 0;
        std::mem::take(visits) * WORTH < REST * u64::from(SLEEPS) * self.worth
    }

    /// Whether working together has gone on for a while.
    pub(super) fn has_paid(&self) -> bool {
        matches!(self.work, Work::Together { looks: 16.., .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cycles of a stint until it is over, if each thread makes so many visits in each.
    fn cycles(mut gauge: Gauge, visits: &[u64]) -> Option<u32> {
        (1..1 << 20).find(|_| {
            for (owner, &count) in visits.iter().enumerate() {
                gauge.worked(owner, count);
            }
            gauge.cycle()
        })
    }

    #[test]
    fn one_works_while_there_is_little_to_do_or_only_one_has_it() {
        let together = Pace::default();
        let mut alone = together;
        alone.turn(true);
        assert_eq!(cycles(together.gauge(2), &[31]), Some(CYCLES));
        assert_eq!(cycles(together.gauge(2), &[32]), None);
        assert_eq!(cycles(alone.gauge(2), &[1000, 10]), None);
        assert_eq!(cycles(alone.gauge(2), &[120, 120]), None);
        assert_eq!(cycles(alone.gauge(2), &[200, 200]), Some(CYCLES));
        assert_eq!(cycles(together.gauge(1), &[1]), None);
        // A thread that only sleeps.
        let mut gauge = together.gauge(2);
        assert_eq!((1..1000).find(|_| gauge.slept()), Some(SLEEPS));
    }

    #[test]
    fn what_did_not_pay_is_tried_again_later_and_later() {
        let mut pace = Pace::default();
        let mut waited = Vec::new();
        for paid in [false, false, false, true] {
            pace.turn(paid);
            waited.push(cycles(pace.gauge(2), &[200, 200]).unwrap_or(0) / CYCLES);
            pace.turn(false);
        }
        assert_eq!(waited, [2, 4, 8, 1]);
    }
}
