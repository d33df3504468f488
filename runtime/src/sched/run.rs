//! A run from the outside: goals, limits, where to stop. Shared by all engines and threads.
//!
//! Invariant: whatever ends a run (goal or trap at cycle `c`) ends it for all PEs before cycle
//! `c + SLACK`, exactly, so that state and counters at the end do not depend on who noticed
//! first. Threads are never further apart than [`SLACK`] less [`LATE`], and it is less than HOST_LATENCY.
//! Words of a link come in the order of their cycles; the host may be told of some up to [`LATE`] cycles ahead.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dflow_ir::mesh::Wavelet;

use super::plan::Plan;
use super::region::Region;
use crate::config::{Limit, Limits, Pulse};
use crate::machine::Goal;
use crate::pe::code::Code;
use crate::profile::{Phases, Work};

/// Cycles that are run beyond the one that ends a run.
pub(crate) const SLACK: u64 = 64;

/// Cycles by which the run is told late of words for the host (`fabric::merge`).
pub(crate) const LATE: u64 = 16;

/// How often the computer's memory is looked at: in between each thread may take some tens of MiB.
const PROBE: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 10 });

/// Visits of a cycle between two looks at limits: each may be a PE's first, which takes its memory then.
pub(crate) const VISITS: usize = if cfg!(test) { 16 } else { 512 };

/// New state after which limits are looked at, however little time that took: so much, or such a part of the memory
/// limit.
const GROWTH: u64 = 64 << 20;
const GROWTH_PARTS: u64 = 8;

/// Why all threads leave off: one of them has failed.
const BROKEN: u8 = 4;

/// What has come over a link to the host.
#[derive(Debug, Default)]
pub(crate) struct LinkState {
    /// Words not yet taken by the host.
    pub(crate) received: Vec<(u64, Wavelet)>,
    words: u64,
    controls: u64,
    /// Cycle, and both counts including that word, of words the host's clock has not reached.
    recent: VecDeque<(u64, u64, u64)>,
    /// Both counts before the first of them.
    before: (u64, u64),
    goal: Option<Counts>,
}

/// Counts that a goal asks for.
#[derive(Clone, Copy, Debug)]
struct Counts {
    words: u64,
    controls: u64,
}

impl LinkState {
    /// Words that come before a cycle. (The host is told of some ahead.)
    pub(super) fn words_before(&self, cycle: u64) -> u64 {
        let later = self.recent.iter().rev().take_while(|recent| recent.0 >= cycle);
        self.words - later.count() as u64
    }

    /// Takes the words that come before a cycle.
    pub(super) fn take_before(&mut self, cycle: u64) -> Vec<(u64, Wavelet)> {
        let later = self.received.iter().rev().take_while(|word| word.0 >= cycle).count();
        let later = self.received.split_off(self.received.len() - later);
        std::mem::replace(&mut self.received, later)
    }

    fn holds(&self, goal: Counts) -> bool {
        self.words >= goal.words && self.controls >= goal.controls
    }

    /// Forgets cycles that the host's clock has passed.
    fn settle(&mut self, now: u64) {
        while self.recent.front().is_some_and(|recent| recent.0 <= now) {
            self.forget();
        }
        self.goal = None;
    }

    fn forget(&mut self) {
        if let Some((_, words, controls)) = self.recent.pop_front() {
            self.before = (words, controls);
        }
    }

    /// The cycle at which a goal that holds came true, not before `now`.
    fn reached(&self, goal: Counts, now: u64) -> u64 {
        if self.before.0 >= goal.words && self.before.1 >= goal.controls {
            return now;
        }
        let held = |recent: &&(u64, u64, u64)| recent.1 >= goal.words && recent.2 >= goal.controls;
        self.recent.iter().find(held).map_or(now, |recent| recent.0)
    }
}

/// What a thread tells of its regions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// Bytes of state, estimated.
    pub(crate) bytes: u64,
    /// PEs with state.
    pub(crate) touched: u64,
    /// Routers and cores looked at.
    pub(crate) visits: u64,
    /// Issue slots that cores have used.
    pub(crate) slots: u64,
}

impl Told {
    /// What regions hold.
    pub(crate) fn of<'a, C: Code>(regions: impl IntoIterator<Item = &'a Region<C>>) -> Told
    where
        Region<C>: 'a,
    {
        let mut told = Told::default();
        for region in regions {
            told.bytes += region.bytes;
            told.touched += region.stats.touched;
            told.slots += region.stats.slots;
        }
        told
    }

    /// What all this is more than what was told before, which it takes the place of.
    pub(crate) fn since(self, before: &mut Told) -> Told {
        let Told { bytes, touched, visits, slots } = std::mem::replace(before, self);
        Told {
            bytes: self.bytes - bytes,
            touched: self.touched - touched,
            visits: self.visits - visits,
            slots: self.slots - slots,
        }
    }
}

/// One run.
pub(crate) struct Run<'a, C: Code> {
    pub(crate) plan: &'a Plan,
    pub(crate) code: &'a C,
    pub(crate) limits: &'a Limits,
    links: &'a [Mutex<LinkState>],
    now: u64,
    /// No cycle from this one on is run.
    stop: AtomicU64,
    /// No cycle from this one on is run for a while: the run goes on from there.
    pause: AtomicU64,
    open: AtomicUsize,
    goals: usize,
    reached: AtomicU64,
    abort: AtomicU8,
    /// What a thread said that panicked.
    broken: Mutex<Option<String>>,
    bytes: AtomicU64,
    touched: AtomicU64,
    visits: AtomicU64,
    slots: AtomicU64,
    /// Words that goals asked for and that had not come at the start.
    missing: u64,
    /// Who is told what the threads are doing.
    pub(crate) phases: Option<&'a Phases>,
    last_report: Mutex<Instant>,
    last_probe: Mutex<Option<Instant>>,
}

impl<'a, C: Code> Run<'a, C> {
    /// Prepares a run from cycle `now` on.
    pub(crate) fn new(
        plan: &'a Plan,
        code: &'a C,
        limits: &'a Limits,
        links: &'a [Mutex<LinkState>],
        now: u64,
        goals: &[Goal],
    ) -> Run<'a, C> {
        for link in links {
            lock(link).settle(now);
        }
        let mut run = Run {
            plan,
            code,
            limits,
            links,
            now,
            stop: AtomicU64::new(limits.cycle),
            pause: AtomicU64::new(u64::MAX),
            open: AtomicUsize::new(0),
            goals: goals.len(),
            reached: AtomicU64::new(now),
            abort: AtomicU8::new(0),
            broken: Mutex::new(None),
            bytes: AtomicU64::new(0),
            touched: AtomicU64::new(0),
            visits: AtomicU64::new(0),
            slots: AtomicU64::new(0),
            missing: 0,
            phases: None,
            last_report: Mutex::new(Instant::now()),
            last_probe: Mutex::new(None),
        };
        run.open_goals(goals);
        if limits.progress.is_some() {
            run.missing = run.missing_words();
        }
        run
    }

    fn open_goals(&self, goals: &[Goal]) {
        for goal in goals {
            let (link, asked) = match *goal {
                Goal::Words(link, words) => (link, Counts { words, controls: 0 }),
                Goal::Controls(link, controls) => (link, Counts { words: 0, controls }),
            };
            let Some(state) = self.links.get(link.0 as usize) else {
                // A goal on no link never holds.
                self.open.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            let mut state = lock(state);
            let old = state.goal.unwrap_or(Counts { words: 0, controls: 0 });
            let both = Counts {
                words: old.words.max(asked.words),
                controls: old.controls.max(asked.controls),
            };
            state.goal = Some(both);
        }
        for state in self.links {
            let state = lock(state);
            let Some(goal) = state.goal else { continue };
            if state.holds(goal) {
                self.reached.fetch_max(state.reached(goal, self.now), Ordering::Relaxed);
            } else {
                self.open.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Words that goals ask for and that have not come yet.
    fn missing_words(&self) -> u64 {
        let missing = |state: &Mutex<LinkState>| {
            let state = lock(state);
            state.goal.map_or(0, |goal| goal.words.saturating_sub(state.words))
        };
        self.links.iter().map(missing).sum()
    }

    /// The cycle at which all goals held, if they do (and there are any).
    pub(crate) fn goals_reached(&self) -> Option<u64> {
        let done = self.goals != 0 && self.open.load(Ordering::SeqCst) == 0;
        done.then(|| self.reached.load(Ordering::SeqCst))
    }

    /// No cycle from this one on is run before the run goes on, if it does.
    pub(crate) fn stop(&self) -> u64 {
        self.end().min(self.pause.load(Ordering::SeqCst))
    }

    /// No cycle from this one on is run, however often the run pauses.
    pub(crate) fn end(&self) -> u64 {
        self.stop.load(Ordering::SeqCst)
    }

    /// All stops before a cycle, which is [`SLACK`] cycles from the present one at least.
    pub(crate) fn pause_at(&self, cycle: u64) {
        self.pause.fetch_min(cycle, Ordering::SeqCst);
    }

    /// Whether it stopped to go on; if so it may.
    pub(crate) fn goes_on(&self) -> bool {
        let pause = self.pause.swap(u64::MAX, Ordering::SeqCst);
        pause < self.end() && !self.aborted()
    }

    /// Something at `cycle` ends the run.
    pub(crate) fn stop_after(&self, cycle: u64) {
        self.stop.fetch_min(cycle.saturating_add(SLACK), Ordering::SeqCst);
    }

    /// This thread does another kind of work from now on.
    #[inline]
    pub(crate) fn at(&self, work: Work) {
        if let Some(phases) = self.phases {
            phases.set(work);
        }
    }

    /// Whether threads are to leave off at once.
    pub(crate) fn aborted(&self) -> bool {
        self.abort.load(Ordering::Relaxed) != 0
    }

    /// Does a thread's part of the run. A fault of ours that unwinds it ends the run for all threads; nothing
    /// is given then.
    pub(crate) fn guarded<T>(&self, part: impl FnOnce() -> T) -> Option<T> {
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(part)) {
            Ok(done) => Some(done),
            Err(what) => {
                let what = what
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| what.downcast_ref::<&str>().map(|&what| what.to_owned()));
                lock(&self.broken)
                    .get_or_insert(what.unwrap_or_else(|| "a thread panicked".into()));
                self.abort.store(BROKEN, Ordering::Relaxed);
                None
            }
        }
    }

    /// What the first thread said that failed.
    pub(crate) fn broken(&self) -> Option<String> {
        lock(&self.broken).clone()
    }

    /// Which limit from outside ended the run.
    pub(crate) fn limit(&self) -> Option<Limit> {
        match self.abort.load(Ordering::Relaxed) {
            1 => Some(Limit::Time),
            2 => Some(Limit::Interrupted),
            3 => Some(Limit::Memory),
            _ => None,
        }
    }

    /// Hands words to the host; ends the run when the goals hold.
    pub(crate) fn receive(&self, words: &mut Vec<(u32, u64, Wavelet)>) {
        for words in words.chunk_by(|one, next| one.0 == next.0) {
            let link = words[0].0 as usize;
            let mut state = lock(&self.links[link]);
            for &(_, cycle, word) in words {
                let held = state.goal.is_some_and(|goal| state.holds(goal));
                state.words += 1;
                state.controls += u64::from(word.control);
                let counts = (cycle, state.words, state.controls);
                state.recent.push_back(counts);
                // Old entries matter only to goals set later than they came.
                if state.recent.len() > 4 * SLACK as usize {
                    state.forget();
                }
                if !self.plan.links[link].to_mesh {
                    state.received.push((cycle, word));
                }
                if !held && state.goal.is_some_and(|goal| state.holds(goal)) {
                    self.reached.fetch_max(cycle, Ordering::SeqCst);
                    if self.open.fetch_sub(1, Ordering::SeqCst) == 1 {
                        self.stop_after(self.reached.load(Ordering::SeqCst));
                    }
                }
            }
        }
        words.clear();
    }

    /// Whether somebody says that the computer's memory is used up; asked now and then.
    fn exhausted(&self) -> bool {
        let Some(probe) = &self.limits.exhausted else { return false };
        let Ok(mut last) = self.last_probe.try_lock() else { return false };
        if last.is_some_and(|last| last.elapsed() < PROBE) {
            return false;
        }
        *last = Some(Instant::now());
        (probe.0)()
    }

    /// Regions hold so much, whatever was told.
    pub(crate) fn hold(&self, held: Told) {
        self.bytes.store(held.bytes, Ordering::Relaxed);
        self.touched.store(held.touched, Ordering::Relaxed);
        self.slots.store(held.slots, Ordering::Relaxed);
    }

    /// Cores have used so many slots, those included that regions do not count yet.
    pub(crate) fn have_used(&self, slots: u64) {
        self.slots.fetch_max(slots, Ordering::Relaxed);
    }

    /// Bytes of new state of all threads after which limits are to be looked at.
    pub(crate) fn growth(&self) -> u64 {
        (self.limits.memory / GROWTH_PARTS).clamp(1, GROWTH)
    }

    /// Looks at limits and tells the progress; called now and then with what came to the caller's regions since
    /// it last told.
    pub(crate) fn check(&self, cycle: u64, new: Told) {
        let bytes = self.bytes.fetch_add(new.bytes, Ordering::Relaxed) + new.bytes;
        let touched = self.touched.fetch_add(new.touched, Ordering::Relaxed) + new.touched;
        let visits = self.visits.fetch_add(new.visits, Ordering::Relaxed) + new.visits;
        let slots = self.slots.fetch_add(new.slots, Ordering::Relaxed) + new.slots;
        self.judge(bytes);
        if let Some(progress) = &self.limits.progress
            && let Ok(mut last) = self.last_report.try_lock()
            && last.elapsed() > Duration::from_millis(100)
        {
            *last = Instant::now();
            let missing = || self.missing - self.missing_words().min(self.missing);
            let words = (self.missing != 0).then(|| (missing(), self.missing));
            (progress.0)(&Pulse { cycle, touched, visits, slots, words });
        }
    }

    /// Looks at limits in the middle of a cycle, so many bytes having come to the caller's regions since it
    /// last told; whether threads are to leave off.
    #[cold]
    pub(crate) fn ends_within(&self, new: u64) -> bool {
        self.judge(self.bytes.load(Ordering::Relaxed).saturating_add(new));
        self.aborted()
    }

    /// Ends the run if a limit is reached, regions holding so many bytes.
    fn judge(&self, bytes: u64) {
        let code = match self.limits.outside() {
            Some(Limit::Time) => 1,
            Some(Limit::Interrupted) => 2,
            Some(Limit::Memory) => 3,
            Some(Limit::Cycles) | None if bytes > self.limits.memory || self.exhausted() => 3,
            Some(Limit::Cycles) | None => 0,
        };
        if code != 0 {
            // A fault is not covered up.
            let free = |now: u8| (now != BROKEN).then_some(code);
            let _kept = self.abort.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free);
        }
    }

    /// After each cycle of a region: what it has for the host, and its trap.
    pub(crate) fn after_cycle(&self, region: &mut Region<C>) {
        if !region.to_host.is_empty() {
            let mut words = std::mem::take(&mut region.to_host);
            self.receive(&mut words);
            region.to_host = words;
        }
        if region.refrain.as_ref().is_some_and(|refrain| refrain.found().is_some()) {
            self.pause_at(region.now + SLACK);
        }
        if let Some((_, trap)) = &region.trap {
            self.stop_after(trap.cycle);
        }
    }
}

/// Locks a mutex; a poisoned one still holds whole values here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
