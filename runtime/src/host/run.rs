//! A host program of an image on a fresh machine, from loading to the end.

use dflow_ir::image::Image;
use dflow_ir::program::Program;
use dflow_ir::target::Target;

use super::program::{HostOutcome, run_program};
use super::{Failure, HostEnv, Session};
use crate::account::{Account, Remark};
use crate::config::{Config, Limits};
use crate::exec::LoadedProgram;
use crate::load::{self, LoadError};
use crate::machine::{Machine, Running};
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
    /// What became of every word when all had come to rest, or was given a while for it.
    pub account: Account,
}

/// Why there is no [`Run`].
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The machine cannot be made.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// The run failed; what was odd before.
    #[error("{0}")]
    Run(Box<Failure>, Vec<Remark>),
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
    let outcome = run_program(&host, engine.as_ref(), &mut session, env);
    let outcome = outcome.map_err(|failure| failed(&session, failure))?;
    let cycles = session.cycles();
    let stats = session.mesh().stats();
    let rested = session.come_to_rest();
    session.printed().iter().for_each(|line| env.printed(line));
    let busy = match &outcome {
        HostOutcome::Done => rested.map_err(|failure| failed(&session, failure))?,
        // What comes after a failure is told only as far as it goes.
        HostOutcome::Failed { .. } => rested.unwrap_or(true),
    };
    let account = Account { busy, ..session.mesh().account() };
    Ok(Run { outcome, cycles, stats, account })
}

/// A failure, with what was odd before it: that may be why.
fn failed(session: &Session<Machine<Running>>, failure: Failure) -> RunError {
    RunError::Run(Box::new(failure), session.mesh().account().remarks)
}
