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
    /// Threads of the `exact` and `flow` engines; 0 counts as 1.
    pub threads: usize,
    /// Side of a region in PEs, which cycles of `flow` depend on a little; 0: bands of rows or columns.
    pub region: u16,
    /// Keeps arrivals, task starts and issue slots for comparison; costs time and memory.
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
