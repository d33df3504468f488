//! How much of its time a thread works, where several keep in step.
//!
//! A thread that waits for others uses a processor as one that works does, and one that the computer does
//! not run seems to work. So the share is what a thread was at work of the time in which it did not sleep, of the
//! processor time that it got. Threads whose shares make less than a whole are slower together than one alone
//! is: there is too little to do per cycle, or the computer has other things to do.

use std::time::{Duration, Instant};

/// All of a thread's time.
pub(super) const WHOLE: u32 = 1000;

/// Time over which a share is taken, at least, and how many times one is asked for before it looks at the clock.
const WINDOW: Duration = Duration::from_millis(2);
const ASKED: u32 = 32;

/// A thread's time since a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    since: Instant,
    /// Processor time of the thread at that moment, if it can be told.
    processor: Option<Duration>,
    worked: Duration,
    slept: Duration,
    /// Times that it has been asked for.
    asked: u32,
}

impl Share {
    /// From now on, of the thread that asks.
    pub(super) fn begin() -> Share {
        Share::since(Instant::now(), processor_time())
    }

    fn since(since: Instant, processor: Option<Duration>) -> Share {
        Share { since, processor, worked: Duration::ZERO, slept: Duration::ZERO, asked: 0 }
    }

    /// It was at work.
    pub(super) fn worked(&mut self, time: Duration) {
        self.worked += time;
    }

    /// It was asleep, waiting.
    pub(super) fn slept(&mut self, time: Duration) {
        self.slept += time;
    }

    /// The share in thousandths, if the time has passed over which it is taken: the next one begins.
    #[inline]
    pub(super) fn take(&mut self) -> Option<u32> {
        self.asked += 1;
        let is_asked = self.asked.is_multiple_of(ASKED) && self.since.elapsed() >= WINDOW;
        is_asked.then(|| self.take_at(Instant::now(), processor_time()))
    }

    /// The share up to a moment at which the thread has had so much processor time.
    fn take_at(&mut self, now: Instant, processor: Option<Duration>) -> u32 {
        let next = Share::since(now, processor);
        let passed = now.saturating_duration_since(self.since);
        let got = next.processor.zip(self.processor).map(|(now, then)| now.saturating_sub(then));
        let share = share(passed, self.slept, self.worked, got);
        *self = next;
        share
    }
}

/// What was worked of the time that passed, in thousandths; `got`: processor time.
fn share(passed: Duration, slept: Duration, worked: Duration, got: Option<Duration>) -> u32 {
    let awake = passed.saturating_sub(slept).as_nanos().max(1);
    let got = got.map_or(awake, |got| got.as_nanos().min(awake));
    let worked = worked.as_nanos().min(awake) * got / awake;
    (worked * u128::from(WHOLE) / passed.as_nanos().max(1)) as u32
}

/// Processor time of the thread that asks.
#[cfg(unix)]
fn processor_time() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Some(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(not(unix))]
fn processor_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_a_processor_is_no_work() {
        let ms = Duration::from_millis;
        assert_eq!(share(ms(10), ms(0), ms(10), Some(ms(10))), WHOLE);
        // Half of the time it waited, without sleep or in it.
        assert_eq!(share(ms(10), ms(0), ms(5), Some(ms(10))), 500);
        assert_eq!(share(ms(10), ms(5), ms(5), Some(ms(5))), 500);
        // The computer did something else for half of the time.
        assert_eq!(share(ms(10), ms(0), ms(10), Some(ms(5))), 500);
        assert_eq!(share(ms(10), ms(0), ms(6), Some(ms(5))), 300);
        // Where nobody tells, all of it was got; clocks that differ a little.
        assert_eq!(share(ms(10), ms(0), ms(10), None), WHOLE);
        assert_eq!(share(ms(10), ms(0), ms(11), Some(ms(11))), WHOLE);
        assert_eq!(share(ms(10), ms(11), ms(1), Some(ms(1))), 0);
    }

    #[test]
    fn each_share_is_of_its_own_time() {
        let ms = Duration::from_millis;
        let begin = Instant::now();
        let mut share = Share::since(begin, Some(ms(100)));
        share.worked(ms(2));
        share.slept(ms(5));
        // Awake for five, of which it got four, and at work for two of the five.
        assert_eq!(share.take_at(begin + ms(10), Some(ms(104))), 160);
        share.worked(ms(3));
        assert_eq!(share.take_at(begin + ms(14), Some(ms(108))), 750);
        assert_eq!(share.take_at(begin + ms(18), Some(ms(112))), 0);
    }

    #[test]
    fn the_clock_is_looked_at_now_and_then() {
        let mut share = Share::since(Instant::now() - 2 * WINDOW, None);
        let at = (1..2 * ASKED).find(|_| share.take().is_some());
        assert_eq!(at, Some(ASKED));
    }
}
