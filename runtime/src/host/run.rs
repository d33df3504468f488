//! A host program of an image on a fresh machine, from loading to the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dflow_ir::image::Image;
use dflow_ir::program::Program;
use dflow_ir::target::Target;

use super::program::{HostOutcome, run_program};
use super::wire::{COMMANDS, TO_HOST, reserved};
use super::{Failure, HostEnv, Session};
use crate::account::{Account, Remark};
use crate::config::{Config, Limits};
use crate::doing::Doing;
use crate::exec::{CodeEngine, LoadedProgram};
use crate::jit::Shared;
use crate::load::{self, LoadError};
use crate::machine::{Event, Loaded, Machine, Running};
use crate::order::{Order, OrderPlace};
use crate::profile::Work;
use crate::stats::Stats;
use crate::ways::Ways;

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

/// What a run took and did, however it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Where the mesh's clock stood at the end.
    pub cycles: u64,
    /// Counters of the machine.
    pub stats: Stats,
    /// By which ways words went.
    pub ways: Ways,
    /// Where times decided what came first (`flow`).
    pub orders: Vec<OrderPlace>,
    /// What happened in which cycle, if that is kept ([`Config::record`]), ordered by PE and kind.
    pub events: Vec<Event>,
    /// Time to compile the image's programs and to make the machine.
    pub load: Duration,
    /// Time that the mesh ran.
    pub mesh: Duration,
    /// Threads that the mesh ran on.
    pub threads: usize,
    /// Functions that were compiled to native code for PEs.
    pub functions: usize,
    /// Bytes of tables that every PE has.
    pub table_bytes: u64,
    /// Bytes of the state of touched PEs, estimated.
    pub state_bytes: u64,
}

/// What is known of a run that failed, beside why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aftermath {
    /// What became of all words until then, and what was odd; none where the machine cannot be trusted.
    pub account: Option<Account>,
    /// What was going on when a limit was reached.
    pub doing: Option<Doing>,
}

impl Aftermath {
    /// What was odd before.
    pub fn odd(&self) -> &[Remark] {
        self.account.as_ref().map_or(&[], |account| &account.remarks)
    }
}

/// Why there is no [`Run`].
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The machine cannot be made.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// The run failed; what was odd before, and what was going on if something from outside ended it.
    #[error("{0}")]
    Run(Box<Failure>, Box<Aftermath>),
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
    run_measured(image, program, config, limits, env, &mut Figures::default(), drop)
}

/// Runs `program` as [`run_image`] does, and says what it took. The machine goes to `rest`: a process that ends anyway
/// need not wait until the state of each PE is given back.
///
/// # Errors
/// The machine cannot be made, or the run fails.
pub fn run_measured(
    image: &Image,
    program: &Program,
    config: &Config,
    limits: &Limits,
    env: &mut dyn HostEnv,
    figures: &mut Figures,
    rest: fn(Machine<Running>),
) -> Result<Run, RunError> {
    let begun = Instant::now();
    load::check(image, config)?;
    let target = Target::custom(image.target, &config.timing).map_err(LoadError::from)?;
    let host = LoadedProgram::host(program.clone(), target);
    let host = host.with_memory_limit(limits.memory).with_phases(config.profile.clone());
    let both = load_both(image, &host, config, limits);
    let late = |limit| {
        let after = Aftermath { account: None, doing: Some(Doing::default()) };
        RunError::Run(Box::new(Failure::Limit(limit)), Box::new(after))
    };
    let (machine, engine) = match both {
        Err(LoadError::Limit(limit)) => return Err(late(limit)),
        both => both?,
    };
    let machine = machine.start();
    if let Some(limit) = limits.outside() {
        rest(machine);
        return Err(late(limit));
    }
    let mut session = Session::new(machine, image, limits.clone());
    figures.load = begun.elapsed();
    if let Some(phases) = &config.profile {
        phases.set(Work::Host);
    }
    let ended = attend(&host, engine.as_ref(), &mut session, env);
    let machine = session.into_mesh();
    *figures = Figures {
        cycles: machine.now(),
        stats: machine.stats(),
        ways: machine.ways(),
        orders: orders(&machine),
        events: machine.events(),
        load: figures.load,
        mesh: machine.run_time(),
        threads: machine.threads(),
        functions: machine.compiled_functions(),
        table_bytes: machine.table_bytes(),
        state_bytes: machine.state_bytes(),
    };
    rest(machine);
    ended
}

/// Makes the machine of a valid image, and code of the host program at the same time.
fn load_both(
    image: &Image,
    host: &LoadedProgram,
    config: &Config,
    limits: &Limits,
) -> Result<(Machine<Loaded>, Arc<dyn CodeEngine>), LoadError> {
    let compile = |beside| load::compile(host, config, &mut Shared::default(), beside);
    std::thread::scope(|scope| {
        let engine = std::thread::Builder::new().spawn_scoped(scope, || compile(true));
        let machine = Machine::load_checked(image, config, limits);
        let engine = match engine {
            Ok(made) => made.join().unwrap_or_else(|fault| std::panic::resume_unwind(fault)),
            // The computer has no thread left.
            Err(_) => compile(false),
        };
        Ok((machine?, engine?))
    })
}

/// Runs the host program, then lets the mesh come to rest.
fn attend(
    host: &LoadedProgram,
    engine: &dyn CodeEngine,
    session: &mut Session<Machine<Running>>,
    env: &mut dyn HostEnv,
) -> Result<Run, RunError> {
    let outcome = run_program(host, engine, session, env);
    let outcome = outcome.map_err(|failure| failed(session, failure))?;
    let cycles = session.cycles();
    let stats = session.mesh().stats();
    let rested = session.come_to_rest();
    session.printed().iter().for_each(|line| env.printed(line));
    let busy = match &outcome {
        HostOutcome::Done => rested.map_err(|failure| failed(session, failure))?,
        // What comes after a failure is told only as far as it goes.
        HostOutcome::Failed { .. } => rested.unwrap_or(true),
    };
    let mut account = Account { busy, ..session.mesh().account() };
    if matches!(outcome, HostOutcome::Failed { .. }) && account.is_without_host() {
        // Nobody has asked anything of the PEs: that they wait says nothing about the failure.
        account.waiters.clear();
    }
    Ok(Run { outcome, cycles, stats, account })
}

/// A failure, with what was odd before it: that may be why.
fn failed(session: &Session<Machine<Running>>, failure: Failure) -> RunError {
    let (mesh, mut after) = (session.mesh(), Aftermath::default());
    match failure {
        // Its state cannot be trusted.
        Failure::Broken(_) => {}
        Failure::Limit(_) => {
            after = Aftermath { account: Some(mesh.account()), doing: Some(mesh.doing()) };
        }
        Failure::Host { .. } | Failure::HostTrap(_) | Failure::Trap(_) | Failure::Deadlock(_) => {
            after.account = Some(mesh.account());
        }
    }
    RunError::Run(Box::new(failure), Box::new(after))
}

/// Where times decided what came first, but for memcpy's words to the host: those say where they come from.
fn orders(machine: &Machine<Running>) -> Vec<OrderPlace> {
    let mut all = machine.orders();
    if machine.links().iter().any(|link| link.color == reserved(COMMANDS)) {
        let to_host = Order::Senders { color: reserved(TO_HOST) };
        all.retain(|place| place.what != to_host);
    }
    all
}
