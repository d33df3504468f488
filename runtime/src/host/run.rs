//! A host program of an image on a fresh machine, from loading to the end.

use dflow_ir::image::Image;
use dflow_ir::program::Program;
use dflow_ir::target::Target;

use super::program::{HostOutcome, run_program};
use super::{Failure, HostEnv, Session};
use crate::config::{Config, Limits};
use crate::exec::LoadedProgram;
use crate::load::{self, LoadError};
use crate::machine::Machine;
use crate::stats::Stats;

/// What a run that the host program itself ended gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// How the host program ended.
    pub outcome: HostOutcome,
    /// Cycle of the last event that the host waited for.
    pub cycles: u64,
    /// Counters of the machine.
    pub stats: Stats,
}

/// Why there is no [`Run`].
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The machine cannot be made.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// The run failed.
    #[error("{0}")]
    Run(#[from] Failure),
}

/// Runs `program`, the host block or a test block of `image`, on a machine of its own.
///
/// # Errors
/// The machine cannot be made, or the run fails.
pub fn run_image(
    image: &Image,
    program: &Program,
    config: &Config,
    limits: &Limits,
    env: &mut dyn HostEnv,
) -> Result<Run, RunError> {
    let machine = Machine::load(image, config)?.start();
    let host = LoadedProgram::host(program.clone(), Target::get(image.target));
    let host = host.with_memory_limit(limits.memory);
    let engine = load::compile(&host, config)?;
    let mut session = Session::new(machine, image, limits.clone());
    let outcome = run_program(&host, engine.as_ref(), &mut session, env)?;
    let cycles = session.cycles();
    let stats = session.mesh().stats();
    Ok(Run { outcome, cycles, stats })
}
