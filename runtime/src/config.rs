//! What a run is told from outside: engines, threads, limits.
//!
//! Invariant: nothing here changes a result, except that a limit may end a run, that a strict
//! run ends where another one tells of something odd, and that other constants give other cycles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::profile::Phases;
use dflow_ir::target::Override;

/// Cycles between an event that the host sees and the first effect of its answer on the mesh
/// (assumed; spec/time.md, section 9). Engines may run ahead by less than this.
pub const HOST_LATENCY: u64 = 100;

/// Who decides what happens in which cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// Word by word, cycle by cycle: the definition of time.
    Step,
    /// The same cycles, visiting only what acts; any number of threads.
    #[default]
    Exact,
    /// Streams in stretches of words: cycles are an approximation, data are not; any number of threads.
    Flow,
}

/// Who runs the code of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CodeKind {
    /// The interpreter: the definition of code.
    Interpreter,
    /// Generated code.
    #[default]
    Jit,
}

/// How a machine is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The scheduler.
    pub engine: EngineKind,
    /// The code engine.
    pub code: CodeKind,
    /// Threads of the `exact` and `flow` engines, at most; 0: one for each 512 PEs, up to the cores and 8. One by default: who
    /// uses the library says when others may be used.
    pub threads: usize,
    /// Side of a region in PEs, which cycles of `flow` depend on a little; 0: bands of rows or columns.
    pub region: u16,
    /// Keeps arrivals, task starts and issue slots for comparison; costs time and memory. `flow` keeps only some,
    /// and its results are the same with and without.
    pub record: bool,
    /// What is legal and odd is a trap.
    pub strict: bool,
    /// Reads of variables that nothing has written are odd. The interpreter runs the code.
    pub track: bool,
    /// Who is told what the threads are doing.
    pub profile: Option<Arc<Phases>>,
    /// Constants of the target that have another value in this run.
    pub timing: Vec<Override>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            engine: EngineKind::default(),
            code: CodeKind::default(),
            threads: 1,
            region: 0,
            record: false,
            strict: false,
            track: false,
            profile: None,
            timing: Vec::new(),
        }
    }
}

impl Config {
    /// With a number of threads, for a mesh of so many PEs.
    pub(crate) fn settled(&self, pes: u64) -> Config {
        let threads = if self.threads == 0 { worthwhile(pes, cores()) } else { self.threads };
        Config { threads, ..self.clone() }
    }
}

/// PEs that make a thread of their own worth it: on 16x16 PEs exchanges take 0.8 of the time on two threads and conjugate
/// gradient 1.3 times as long, on 32x32 PEs matrix products 0.57 of it and conjugate gradient as long
/// (`tests/reference/benches/README.md`).
const PES_PER_THREAD: u64 = 512;

/// Most threads that are taken unasked: more have not been measured.
const MOST_UNASKED: usize = 8;

/// Threads that a mesh of so many PEs is worth on a computer with so many cores.
fn worthwhile(pes: u64, cores: usize) -> usize {
    let most = cores.clamp(1, MOST_UNASKED);
    usize::try_from(pes / PES_PER_THREAD).unwrap_or(most).clamp(1, most)
}

/// Cores that this process may use.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What ends a run that would go on.
#[derive(Clone, Debug)]
pub struct Limits {
    /// No cycle from this one on is run.
    pub cycle: u64,
    /// Bytes of PE state, estimated.
    pub memory: u64,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Set from outside to end the run.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Told now and then how far the run is.
    pub progress: Option<Progress>,
    /// Asked now and then whether the computer's memory is used up.
    pub exhausted: Option<Probe>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// The cycle that the thread that tells it has reached.
    pub cycle: u64,
    /// PEs that have state.
    pub touched: u64,
    /// Routers and cores looked at since the run of the machine began.
    pub visits: u64,
    /// Issue slots that cores have used so far. What a task counts that looks at nothing comes with its next look.
    pub slots: u64,
    /// Words that the host waits for, if it waits for a number of them: how many have come since it does, and how many
    /// were missing then.
    pub words: Option<(u64, u64)>,
}

/// A callback that is told how far a run is; called a few times per second from the engine.
#[derive(Clone)]
pub struct Progress(pub Arc<dyn Fn(&Pulse) + Send + Sync>);

/// A question that is asked a few times per second from the engine.
#[derive(Clone)]
pub struct Probe(pub Arc<dyn Fn() -> bool + Send + Sync>);

impl std::fmt::Debug for Probe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Probe")
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            cycle: u64::MAX,
            memory: u64::MAX,
            deadline: None,
            interrupt: None,
            progress: None,
            exhausted: None,
        }
    }
}

/// Which limit ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Limit {
    /// The cycle limit.
    #[error("the cycle limit was reached")]
    Cycles,
    /// The memory limit.
    #[error("the memory limit was reached")]
    Memory,
    /// The deadline.
    #[error("the time limit was reached")]
    Time,
    /// Ended from outside.
    #[error("interrupted")]
    Interrupted,
}

impl Limits {
    /// The limit that ends the run now, judged by host time and the interrupt flag.
    pub(crate) fn outside(&self) -> Option<Limit> {
        if self.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Some(Limit::Interrupted);
        }
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        late.then_some(Limit::Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mesh_has_threads_if_it_is_large_enough() {
        let threads = [1, 1023, 1024, 1535, 745_500, u64::MAX].map(|pes| worthwhile(pes, 4));
        assert_eq!(threads, [1, 1, 2, 2, 4, 4]);
        assert_eq!((worthwhile(1 << 20, 1), worthwhile(1 << 20, 64)), (1, MOST_UNASKED));
        assert_eq!(worthwhile(1 << 20, 0), 1);
    }

    #[test]
    fn threads_that_were_asked_for_stay() {
        let asked = |threads| Config { threads, ..Config::default() }.settled(1).threads;
        assert_eq!([asked(0), asked(1), asked(7)], [1, 1, 7]);
    }
}
