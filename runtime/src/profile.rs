//! Where the host's time goes: a thread that looks, every so often, at what the others are doing.
//!
//! What a thread does is one number per thread, written where the kind of work changes and only if
//! somebody asked. Invariant: a profile changes no result, and a run without one pays a branch per visit.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the threads are looked at.
const INTERVAL: Duration = Duration::from_millis(1);

/// Threads that are told apart; more share the last place.
const THREADS: usize = 32;

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Work {
    /// None: the thread is not there.
    Absent,
    /// The host program, and the host's side of launches.
    Host,
    /// The host's side of copies and streams.
    Copies,
    /// Programs are compiled and the machine is made.
    Load,
    /// Code of tasks.
    Tasks,
    /// Elements of vector operations.
    Vectors,
    /// Routers.
    Fabric,
    /// Cores apart from code: what to look at next, picks, queues, completions.
    Cores,
    /// Waiting for other threads.
    Waiting,
}

impl Work {
    /// All kinds that are shown, in the order of a run.
    pub const SHOWN: [Work; 8] = [
        Work::Host,
        Work::Copies,
        Work::Load,
        Work::Tasks,
        Work::Vectors,
        Work::Fabric,
        Work::Cores,
        Work::Waiting,
    ];

    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Work::Absent => "absent",
            Work::Host => "host",
            Work::Copies => "copies",
            Work::Load => "load",
            Work::Tasks => "tasks",
            Work::Vectors => "vectors",
            Work::Fabric => "fabric",
            Work::Cores => "cores",
            Work::Waiting => "waiting",
        }
    }
}

thread_local! {
    /// Place of this thread among those of a run.
    static THREAD: Cell<usize> = const { Cell::new(0) };
}

/// What a thread is doing: a [`Work`] in a line of its own of the computer's caches, as it is written often.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Now(AtomicU8);

/// What all threads are doing, and how often each kind of work was seen.
#[derive(Debug, Default)]
pub struct Phases {
    now: [Now; THREADS],
    seen: [AtomicU64; 9],
    /// Nanoseconds in which code was compiled, and those of them in which another thread made the machine.
    jit: AtomicU64,
    beside: AtomicU64,
    looks: AtomicU64,
    over: AtomicBool,
}

impl Phases {
    /// This thread does something else from now on.
    pub(crate) fn set(&self, work: Work) {
        self.now[THREAD.get()].0.store(work as u8, Ordering::Relaxed);
    }

    /// Code has been compiled since then; `beside`: while another thread made the machine.
    pub(crate) fn compiled(&self, since: Instant, beside: bool) {
        let spent = since.elapsed().as_nanos() as u64;
        self.jit.fetch_add(spent, Ordering::Relaxed);
        self.beside.fetch_add(if beside { spent } else { 0 }, Ordering::Relaxed);
    }

    /// This thread is number `thread` of a run, and works for it until the result is dropped.
    pub(crate) fn enter(&self, thread: usize) -> Entered<'_> {
        let before = THREAD.replace(thread.min(THREADS - 1));
        let did = self.now[THREAD.get()].0.load(Ordering::Relaxed);
        let entered = Entered { phases: self, thread: before, did };
        self.set(Work::Cores);
        entered
    }

    fn look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        for now in &self.now {
            let work = usize::from(now.0.load(Ordering::Relaxed));
            if let Some(seen) = self.seen.get(work).filter(|_| work != Work::Absent as usize) {
                seen.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// A thread's part of a run; before, it had another place, and in this one something was done: the first thread is
/// the host's own.
pub(crate) struct Entered<'p> {
    phases: &'p Phases,
    thread: usize,
    did: u8,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.phases.now[THREAD.get()].0.store(self.did, Ordering::Relaxed);
        THREAD.set(self.thread);
    }
}

/// A profile that is being taken.
#[derive(Debug)]
pub struct Profiler {
    phases: Arc<Phases>,
    sampler: Mutex<Option<JoinHandle<()>>>,
}

impl Profiler {
    /// Begins to look. If no thread can be started, the profile is empty.
    pub fn start() -> Profiler {
        let phases = Arc::new(Phases::default());
        phases.set(Work::Host);
        let looked = Arc::clone(&phases);
        let look = move || {
            while !looked.over.load(Ordering::Relaxed) {
                std::thread::sleep(INTERVAL);
                looked.look();
            }
        };
        let sampler = std::thread::Builder::new().name("profile".into()).spawn(look).ok();
        Profiler { phases, sampler: Mutex::new(sampler) }
    }

    /// What a machine is to tell its threads' work to.
    pub fn phases(&self) -> Arc<Phases> {
        Arc::clone(&self.phases)
    }

    /// Looks no more; how often each kind of work was seen, in the order of [`Work::SHOWN`].
    pub fn finish(&self) -> Profile {
        self.phases.over.store(true, Ordering::Relaxed);
        let sampler = self.sampler.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        // A sampler that failed leaves what it has seen.
        let _ended = sampler.map(JoinHandle::join);
        let seen = |work: Work| self.phases.seen[work as usize].load(Ordering::Relaxed);
        Profile {
            samples: Work::SHOWN.map(|work| (work, seen(work))).to_vec(),
            interval: INTERVAL,
            looks: self.phases.looks.load(Ordering::Relaxed),
            jit: Duration::from_nanos(self.phases.jit.load(Ordering::Relaxed)),
            beside: Duration::from_nanos(self.phases.beside.load(Ordering::Relaxed)),
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Kinds of work, and how many threads were seen at it, summed over all looks.
    pub samples: Vec<(Work, u64)>,
    /// Time between looks, at least.
    pub interval: Duration,
    /// How often was looked.
    pub looks: u64,
    /// Time in which code was compiled, of all threads; measured.
    pub jit: Duration,
    /// That part of it in which another thread made the machine.
    pub beside: Duration,
}

impl Profile {
    /// Samples of all kinds.
    pub fn total(&self) -> u64 {
        self.samples.iter().map(|(_, samples)| samples).sum()
    }
}

/// Tells of a kind of work for as long as it lives, then of what is done around it.
pub(crate) struct During<'p> {
    phases: &'p Phases,
    around: Work,
}

impl<'p> During<'p> {
    /// Begins, if somebody looks; then the core goes on.
    #[inline]
    pub(crate) fn new(phases: Option<&'p Phases>, work: Work) -> Option<During<'p>> {
        During::within(phases, work, Work::Cores)
    }

    /// Begins work within other work, which goes on then.
    #[inline]
    pub(crate) fn within(
        phases: Option<&'p Phases>,
        work: Work,
        around: Work,
    ) -> Option<During<'p>> {
        let phases = phases?;
        phases.set(work);
        Some(During { phases, around })
    }
}

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.phases.set(self.around);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_do_is_counted() {
        let phases = Phases::default();
        phases.set(Work::Host);
        phases.look();
        {
            let _first = phases.enter(0);
            let _tasks = During::new(Some(&phases), Work::Tasks);
            phases.look();
            drop(During::within(Some(&phases), Work::Vectors, Work::Tasks));
            phases.look();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _second = phases.enter(1);
                phases.look();
            });
        });
        phases.look();
        let seen: Vec<u64> = Work::SHOWN
            .iter()
            .map(|&work| phases.seen[work as usize].load(Ordering::Relaxed))
            .collect();
        // Host thrice (it stays while the second thread works), tasks twice, cores once.
        assert_eq!(seen, [3, 0, 0, 2, 0, 0, 1, 0]);
    }
}
