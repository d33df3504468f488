//! How threads keep in step: promises, mail, and a place to wait.
//!
//! A thread promises "nothing from me has a stamp before P". Promises only rise. A thread
//! that can do nothing waits; when all wait and no mail is on its way, the least next event of
//! all is known, and everybody may promise the cycle after it. So idle stretches are jumped
//! over. A thread that waits longer than it takes to be woken sleeps.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use super::super::region::Message;
use super::super::run::lock;
use super::share::WHOLE;

/// The end of time.
pub(crate) const FOREVER: u64 = u64::MAX >> 1;

/// Looks before a thread sleeps: tens of microseconds, since to be woken takes a host longer.
const SPINS: u32 = 2000;

/// What the threads of a run share.
pub(crate) struct Sync {
    /// Promise of each thread, times two, plus one if it was made after doing something.
    promises: Vec<AtomicU64>,
    mail: Vec<Mutex<Vec<Message>>>,
    has_mail: Vec<AtomicBool>,
    waiting: AtomicU64,
    /// The threads are to leave off, the run is not over.
    over: AtomicBool,
    /// What each thread does of its time, and that all are slower than one alone would be.
    shares: Vec<AtomicU32>,
    slow: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
    /// The last thread and the first one are neighbors too.
    ring: bool,
    /// Least distance of a stamp from the cycle that makes it.
    lead: u64,
}

struct State {
    /// Next event of each thread that waits or has ended; `None` while it works.
    next: Vec<Option<u64>>,
    /// Threads that have ended; their mail waits for the next run.
    left: Vec<bool>,
}

impl Sync {
    /// For `count` threads; `flow`: their bands are dealt in turn; `lead`: the least distance of a stamp from
    /// the cycle that makes it.
    pub(crate) fn new(count: usize, flow: bool, lead: u64) -> Sync {
        Sync {
            lead,
            ring: flow,
            promises: (0..count).map(|_| AtomicU64::new(0)).collect(),
            mail: (0..count).map(|_| Mutex::default()).collect(),
            has_mail: (0..count).map(|_| AtomicBool::new(false)).collect(),
            waiting: AtomicU64::new(0),
            over: AtomicBool::new(false),
            shares: (0..count).map(|_| AtomicU32::new(WHOLE)).collect(),
            slow: AtomicBool::new(false),
            state: Mutex::new(State { next: vec![None; count], left: vec![false; count] }),
            changed: Condvar::new(),
        }
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.promises.len()
    }

    fn neighbors(&self, me: usize) -> impl Iterator<Item = usize> {
        let count = self.promises.len();
        let around = |other: usize| self.ring.then_some(other).filter(|&other| other != me);
        let before = me.checked_sub(1).or_else(|| around(count - 1));
        let after = Some(me + 1).filter(|&next| next < count).or_else(|| around(0));
        [before, after].into_iter().flatten()
    }

    /// The least promise of the neighbors, and whether one of them did something before it.
    pub(crate) fn bound(&self, me: usize) -> (u64, bool) {
        let mut bound = FOREVER;
        let mut acted = false;
        for other in self.neighbors(me) {
            let promise = self.promises[other].load(Ordering::SeqCst);
            bound = bound.min(promise >> 1);
            acted |= promise & 1 != 0;
        }
        (bound, acted)
    }

    /// The promise of a thread.
    pub(crate) fn has_promised(&self, me: usize) -> u64 {
        self.promises[me].load(Ordering::SeqCst) >> 1
    }

    /// Raises the promise of a thread.
    pub(crate) fn promise(&self, me: usize, cycle: u64, acted: bool) {
        let value = cycle.min(FOREVER) << 1 | u64::from(acted);
        let old = self.promises[me].load(Ordering::SeqCst);
        if value >> 1 > old >> 1 {
            self.promises[me].fetch_max(value, Ordering::SeqCst);
            self.notify();
        }
    }

    /// All threads are to leave off, to be divided anew.
    pub(crate) fn end_stint(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.notify();
    }

    /// Whether all threads are to leave off.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// All threads are to leave off, as they are slower than one alone would be.
    pub(crate) fn end_slow_stint(&self) {
        self.slow.store(true, Ordering::SeqCst);
        self.end_stint();
    }

    /// Whether the threads have left off because they are slower than one alone would be.
    pub(crate) fn is_slow(&self) -> bool {
        self.slow.load(Ordering::SeqCst)
    }

    /// What a thread does of its time, in thousandths; that of all.
    pub(crate) fn tell_share(&self, me: usize, share: u32) -> u32 {
        self.shares[me].store(share, Ordering::Relaxed);
        self.shares.iter().map(|share| share.load(Ordering::Relaxed)).sum()
    }

    /// Sends to a thread.
    pub(crate) fn send(&self, to: usize, messages: &mut Vec<Message>) {
        if messages.is_empty() {
            return;
        }
        lock(&self.mail[to]).append(messages);
        self.has_mail[to].store(true, Ordering::SeqCst);
        self.notify();
    }

    /// Takes a thread's mail.
    pub(crate) fn collect(&self, me: usize, into: &mut Vec<Message>) {
        if self.has_mail[me].load(Ordering::SeqCst) {
            self.has_mail[me].store(false, Ordering::SeqCst);
            into.append(&mut lock(&self.mail[me]));
        }
    }

    /// All mail that is left.
    pub(crate) fn take_all(&self) -> Vec<Message> {
        self.mail.iter().flat_map(|mail| std::mem::take(&mut *lock(mail))).collect()
    }

    /// Wakes those that wait.
    pub(crate) fn notify(&self) {
        if self.waiting.load(Ordering::SeqCst) != 0 {
            let _state = lock(&self.state);
            self.changed.notify_all();
        }
    }

    /// Waits until the bound is not `bound` any more or mail has come; `next` is the caller's
    /// next event. How long it has slept, if it has.
    pub(crate) fn wait(&self, me: usize, bound: u64, next: u64) -> Option<Duration> {
        let moved = || self.bound(me).0 != bound || self.has_mail[me].load(Ordering::SeqCst);
        let news = || moved() || self.is_over();
        let mut state = lock(&self.state);
        state.next[me] = Some(next);
        if !news() {
            self.resolve(&state);
        }
        drop(state);
        let came = (0..SPINS).any(|_| {
            std::hint::spin_loop();
            news()
        });
        let slept = (!came).then(Instant::now);
        let mut state = lock(&self.state);
        if !came {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            if !news() {
                // The time limit lets the caller look at the run's limits.
                let wait = self.changed.wait_timeout(state, Duration::from_millis(20));
                state = match wait {
                    Ok((state, _)) => state,
                    Err(poisoned) => poisoned.into_inner().0,
                };
            }
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        state.next[me] = None;
        slept.map(|since| since.elapsed())
    }

    /// If all wait and no mail is under way, raises all promises beyond the least next event.
    fn resolve(&self, state: &State) {
        let mut least = FOREVER;
        for next in &state.next {
            let Some(next) = next else { return };
            least = least.min(*next);
        }
        let mail = self.has_mail.iter().zip(&state.left);
        if mail.into_iter().any(|(mail, left)| !left && mail.load(Ordering::SeqCst)) {
            return;
        }
        let value = least.saturating_add(self.lead).min(FOREVER) << 1;
        for promise in &self.promises {
            promise.fetch_max(value, Ordering::SeqCst);
        }
        self.changed.notify_all();
    }

    /// A thread ends; it will send nothing more.
    pub(crate) fn leave(&self, me: usize) {
        self.promises[me].fetch_max(FOREVER << 1, Ordering::SeqCst);
        let mut state = lock(&self.state);
        state.next[me] = Some(FOREVER);
        state.left[me] = true;
        self.resolve(&state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::{Sync, lock};

    #[test]
    fn the_last_one_to_wait_tells_what_comes_next() {
        let sync = Sync::new(2, false, 3);
        lock(&sync.state).next[0] = Some(50);
        assert!(sync.wait(1, sync.bound(1).0, 70).is_none(), "it has not slept");
        assert_eq!([sync.has_promised(0), sync.has_promised(1)], [53, 53]);
        // With mail under way nobody knows what comes next.
        sync.has_mail[0].store(true, Ordering::SeqCst);
        lock(&sync.state).next[0] = Some(53);
        assert!(sync.wait(1, 53, 70).is_some(), "it has slept");
        assert_eq!(sync.has_promised(0), 53);
    }

    #[test]
    fn threads_whose_bands_are_dealt_in_turn_stand_in_a_ring() {
        let of = |count: usize, flow: bool, me: usize| {
            Sync::new(count, flow, 1).neighbors(me).collect::<Vec<usize>>()
        };
        assert_eq!(of(4, false, 0), [1]);
        assert_eq!(of(4, false, 3), [2]);
        assert_eq!(of(4, true, 0), [3, 1]);
        assert_eq!(of(4, true, 1), [0, 2]);
        assert_eq!(of(4, true, 3), [2, 0]);
        assert_eq!(of(2, true, 0), [1, 1]);
        assert!(of(1, true, 0).is_empty() && of(1, false, 0).is_empty());
    }
}
