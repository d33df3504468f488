//! Running a host program: the command line's settings in, the runtime's outcome out.

use std::time::{Duration, Instant};

use dflow_ir::image::Image;
use dflow_ir::loc::Loc;
use dflow_ir::program::Program;
use dflow_ir::ty::ElementType;
use dflow_runtime::account::Account;
use dflow_runtime::config::{Config, Limit, Limits};
use dflow_runtime::host::{self, Figures, HostEnv, HostError, HostOutcome, Output, Run, RunError};
use dflow_runtime::load::LoadError;
use dflow_runtime::machine::{Machine, Running};

use crate::account::Told;
use crate::args::MachineArgs;
use crate::data::{Dtype, Input, Outputs, split_type};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::progress::Line;
use crate::report::Report;
use crate::stats::Cause;
use crate::term::{self, Reader};
use crate::{faults, limit, memory};

/// Copies that there are of what was printed when it is told as JSON: the lines, the value, its text.
const COPIES: u64 = 3;

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// The exit code that goes with it.
    pub(crate) exit: Exit,
    /// Why, if not well.
    pub(crate) message: String,
    /// Cycles until the host had what it waited for, or the run ended otherwise.
    pub(crate) cycles: u64,
    /// What it cost, if it ended well.
    pub(crate) report: Option<Report>,
    /// What became of its words, if the host program ended by itself.
    pub(crate) account: Option<Told>,
    /// What it took, however it ended.
    pub(crate) figures: Figures,
    /// Why it ended.
    pub(crate) cause: Cause,
}

impl Ended {
    fn new(exit: Exit, message: String, cause: Cause) -> Ended {
        let (report, account, figures) = (None, None, Figures::default());
        Ended { exit, message, cycles: 0, report, account, figures, cause }
    }
}

/// Looks at what the command line says of machines.
///
/// # Errors
/// A constant is given two values.
pub(crate) fn check(args: &MachineArgs) -> Result<(), Failure> {
    let given = |name: &str| args.timing.iter().filter(|(other, _)| other == name).count();
    match args.timing.iter().find(|(name, _)| given(name) > 1) {
        Some((name, _)) => Err(Failure::usage(format!("--timing {name} is given twice"))),
        None => Ok(()),
    }
}

/// How machines are run, as the command line says.
pub(crate) fn config(args: &MachineArgs) -> Config {
    Config {
        engine: args.engine.into(),
        code: args.code.into(),
        threads: args.threads.map_or(0, usize::from),
        strict: args.strict,
        track: args.track_uninitialized,
        timing: args.timing.clone(),
        ..Config::default()
    }
}

/// The world as a host program sees it.
pub(crate) struct Env<'a> {
    inputs: Vec<Input>,
    outputs: Outputs,
    settings: Vec<(String, String)>,
    line: &'a Line,
    /// Keep what is printed instead of showing it.
    quiet: bool,
    printed: Vec<String>,
    /// Bytes that these lines will have taken when they are told.
    kept: u64,
    gone: bool,
    fault: Option<Failure>,
    /// What ends the run if there is nobody any more for whom it is done.
    stop: Option<&'a Interrupt>,
    more: bool,
}

impl<'a> Env<'a> {
    /// With inputs that are read already and outputs whose places are checked.
    pub(crate) fn new(
        inputs: Vec<Input>,
        outputs: Outputs,
        settings: Vec<(String, String)>,
        line: &'a Line,
        quiet: bool,
    ) -> Env<'a> {
        Env {
            inputs,
            outputs,
            settings,
            line,
            quiet,
            printed: Vec::new(),
            kept: 0,
            gone: false,
            fault: None,
            stop: None,
            more: false,
        }
    }

    /// The same, for a run that ends when what it prints cannot be written, or nobody reads it and it is for nothing
    /// else: no outputs, and no `more` about the run.
    pub(crate) fn for_readers(self, stop: &'a Interrupt, more: bool) -> Env<'a> {
        Env { stop: Some(stop), more, ..self }
    }

    /// Whether nobody reads what it prints any more, and that was all it was for.
    pub(crate) fn is_for_nobody(&self) -> bool {
        self.gone && self.fault.is_none() && self.outputs.are_none() && !self.more
    }

    /// What the program gave.
    pub(crate) fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// What it printed, if that was kept.
    pub(crate) fn printed(&self) -> &[String] {
        &self.printed
    }

    /// Whether results go out as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.quiet
    }

    /// A fault of printing, found while the program ran.
    ///
    /// # Errors
    /// That fault.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.fault.clone().map_or(Ok(()), Err)
    }
}

impl HostEnv for Env<'_> {
    fn has_input(&self, name: &str) -> bool {
        let (name, dtype) = split_type(name);
        self.inputs
            .iter()
            .any(|input| input.name() == name && (dtype.is_none() || input.dtype() == dtype))
    }

    fn input(&mut self, name: &str) -> Result<host::Input, String> {
        let found = self.inputs.iter().find(|input| input.name() == name);
        let input = found.ok_or_else(|| format!("not given: use --input {name}=FILE"))?;
        Ok(host::Input { bytes: input.values().to_vec(), ty: input.element() })
    }

    fn type_hint(&self, name: &str, wanted: ElementType) -> Option<String> {
        let input = self.inputs.iter().find(|input| input.name() == name)?;
        let wanted = Dtype::of(wanted)?.name();
        input.by_ending().then(|| {
            format!("its type is that of its ending: `:{wanted}` behind the path says otherwise")
        })
    }

    fn setting(&self, name: &str) -> Option<String> {
        let found = self.settings.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.clone())
    }

    fn output(&mut self, output: Output) -> Result<(), String> {
        let Output { name, bytes, ty } = output;
        self.outputs.give(&name, ty, bytes)
    }

    fn kept(&self) -> u64 {
        self.kept
    }

    fn print(&mut self, line: &str) {
        if self.quiet {
            self.kept += COPIES * (line.len() + size_of::<String>()) as u64;
            self.printed.push(line.to_owned());
        } else if !self.gone {
            match self.line.suspend(|| term::say(&format!("{line}\n"))) {
                Ok(Reader::Listening) => {}
                Ok(Reader::Gone) => self.gone = true,
                Err(fault) => {
                    self.gone = true;
                    self.fault = Some(fault);
                }
            }
            if self.is_for_nobody() || self.fault.is_some() {
                self.stop.into_iter().for_each(Interrupt::set);
            }
        }
    }
}

/// What a run has around it.
pub(crate) struct Around<'a> {
    /// When the time began that the run may take.
    pub(crate) begun: Instant,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) line: &'a Line,
    /// What becomes of the machine: giving its memory back takes a while, which is for nothing
    /// where the process ends.
    pub(crate) rest: fn(Machine<Running>),
}

/// Runs a host program of an image on a fresh machine; Ctrl-C is heard from now on.
///
/// # Errors
/// A constant of the target cannot have the value that it is given.
pub(crate) fn run<'a>(
    image: &Image,
    program: &Program,
    args: &MachineArgs,
    config: &Config,
    mut env: Env<'a>,
    around: &Around<'_>,
) -> Result<(Ended, Env<'a>), Failure> {
    let start = Instant::now();
    faults::at("host");
    let Around { begun, interrupt, line, rest } = *around;
    interrupt.listen();
    let limits = Limits {
        cycle: args.max_cycles.unwrap_or(u64::MAX),
        memory: args.max_memory.unwrap_or_else(memory::default_limit),
        deadline: args.timeout.map(|seconds| begun + Duration::from_secs_f64(seconds)),
        interrupt: Some(interrupt.flag()),
        progress: line.callback(),
        exhausted: Some(memory::probe()),
    };
    let mut figures = Figures::default();
    let result = host::run_measured(image, program, config, &limits, &mut env, &mut figures, rest);
    let ended = match result {
        Ok(Run { outcome: HostOutcome::Done, cycles, stats, account }) => {
            let report =
                Report::new(image, config, cycles, &stats, (figures.threads, start.elapsed()));
            let account = Some(Told::new(&account, &image.files, args.account));
            let ended = Ended::new(Exit::Success, String::new(), Cause::Done);
            Ended { cycles, report: Some(report), account, ..ended }
        }
        Ok(Run { outcome: HostOutcome::Failed { message, loc }, cycles, account, .. }) => {
            let account = Some(Told::new(&account, &image.files, args.account));
            let place = place(image, loc);
            let message = match message.is_empty() {
                true => format!("{place}an expectation does not hold"),
                false => format!("{place}{message}"),
            };
            Ended { cycles, account, ..Ended::new(Exit::Program, message, Cause::Failed) }
        }
        Err(RunError::Load(LoadError::Timing(error))) => {
            return Err(Failure::usage(error.to_string()));
        }
        Err(RunError::Load(error)) => Ended::new(Exit::Program, error.to_string(), Cause::Failed),
        Err(RunError::Run(failure, after)) => {
            let told = |account: &Account| Told::after(account, &image.files, args.account);
            let account = after.account.as_ref().map(told);
            let ended = failed(image, &failure);
            let message = match (&*failure, &after.doing) {
                (host::Failure::Limit(limit), Some(doing)) => {
                    let own_memory = args.max_memory.is_some();
                    let set = limit::Set { limits: &limits, by: limit::OPTIONS, own_memory };
                    limit::with_doing(&set.reached(image, *limit, doing), doing, &image.files)
                }
                _ => ended.message,
            };
            Ended { cycles: figures.cycles, account, message, ..ended }
        }
    };
    Ok((Ended { figures, ..ended }, env))
}

/// A run that failed: the exit code that goes with it, and what to say.
fn failed(image: &Image, failure: &host::Failure) -> Ended {
    let (exit, message) = match failure {
        host::Failure::Host { error, loc } => {
            // An input or a setting that the program cannot read is wrong use; all else is the program's doing.
            let exit = match error {
                HostError::Input { .. } | HostError::Setting { .. } => Exit::Usage,
                HostError::Memory { .. } => Exit::Limit,
                _ => Exit::Program,
            };
            (exit, format!("{}{error}", place(image, *loc)))
        }
        host::Failure::HostTrap(trap) => {
            (Exit::Trap, format!("trap in the host block: {}{failure}", place(image, trap.loc)))
        }
        host::Failure::Trap(trap) => {
            (Exit::Trap, format!("trap: {}{trap}", place(image, trap.place())))
        }
        host::Failure::Deadlock(deadlock) => {
            (Exit::Deadlock, format!("deadlock: {}", deadlock.text(&image.files)))
        }
        host::Failure::Broken(_) => (Exit::Internal, failure.to_string()),
        host::Failure::Limit(Limit::Interrupted) => (Exit::Interrupted, "interrupted".into()),
        host::Failure::Limit(limit @ (Limit::Cycles | Limit::Memory | Limit::Time)) => {
            (Exit::Limit, limit.to_string())
        }
    };
    let cause = match failure {
        host::Failure::Host { .. } => Cause::Failed,
        host::Failure::HostTrap(_) | host::Failure::Trap(_) => Cause::Trap,
        host::Failure::Deadlock(_) => Cause::Deadlock,
        host::Failure::Limit(limit) => Cause::Limit(*limit),
        host::Failure::Broken(_) => Cause::Internal,
    };
    Ended::new(exit, message, cause)
}

/// `path:line:column: `, or nothing if the place is not known.
fn place(image: &Image, loc: Loc) -> String {
    let file = image.files.get(loc.file as usize);
    match (loc.line, file) {
        (0, _) | (_, None) => String::new(),
        (line, Some(file)) => format!("{file}:{line}:{}: ", loc.column),
    }
}
