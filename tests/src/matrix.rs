//! Every host program is run in `step` and `exact`, on both code engines and several threads: all
//! must give the same text, outputs, cycles and end. In `flow` it must give the same but for
//! cycles, which may be off by 5 % or 12.

use std::io::Write as _;
use std::time::{Duration, Instant};

use dflow_ir::image::Image;
use dflow_ir::loc::Loc;
use dflow_ir::program::Program;
use dflow_ir::ty::ElementType;
use dflow_runtime::account::Account;
use dflow_runtime::config::{CodeKind, Config, EngineKind, Limits};
use dflow_runtime::host::{self, Failure, Figures, HostEnv, HostOutcome, Output};

use crate::header::{End, Header};

/// A test that takes longer than this on one engine has gone wrong.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of mesh state that a test may take.
const MEMORY: u64 = 4 << 30;

/// What a run gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Lines printed.
    pub printed: Vec<String>,
    /// Outputs: name, type, bytes.
    pub outputs: Vec<(String, ElementType, Vec<u8>)>,
    /// How it ended.
    pub end: End,
    /// Why, if not well.
    pub message: String,
    /// Cycles, if it ended well.
    pub cycles: u64,
    /// What the run tells of its words at the end.
    pub notes: Vec<String>,
    /// Where the mesh's clock stood at the end.
    pub clock: u64,
}

/// What a host program is given.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Inputs: name, type, bytes.
    pub inputs: Vec<(String, ElementType, Vec<u8>)>,
    /// Settings.
    pub settings: Vec<(String, String)>,
    /// No cycle from this one on is run.
    pub max_cycles: u64,
    /// What is odd is a trap.
    pub strict: bool,
    /// Reads of what nothing has written are told.
    pub track: bool,
}

impl Given {
    /// What the header of an input says.
    ///
    /// # Errors
    /// An input of it is not understood.
    pub fn new(header: &Header) -> Result<Given, String> {
        let inputs = header
            .inputs
            .iter()
            .map(|input| input.bytes().map(|(ty, bytes)| (input.name.clone(), ty, bytes)));
        Ok(Given {
            inputs: inputs.collect::<Result<_, _>>()?,
            settings: header.args.clone(),
            max_cycles: header.max_cycles,
            strict: header.strict,
            track: header.track,
        })
    }
}

/// The ways to run, the reference first.
fn ways() -> Vec<(String, Config)> {
    let mut ways = Vec::new();
    let (plain, jit) = ((CodeKind::Interpreter, "interpreter"), (CodeKind::Jit, "jit"));
    for (engine, name, (code, code_name), threads) in [
        (EngineKind::Step, "step", plain, &[1][..]),
        (EngineKind::Step, "step", jit, &[1]),
        (EngineKind::Exact, "exact", plain, &[1, 2]),
        (EngineKind::Exact, "exact", jit, &[1, 2, 3, 8]),
    ] {
        for &threads in threads {
            // Small regions, so that small meshes have borders.
            let config = Config { engine, code, threads, region: 2, ..Config::default() };
            ways.push((format!("{name}, {code_name}, {threads} threads"), config));
        }
    }
    ways
}

/// Runs a host program in every way.
///
/// # Errors
/// Two ways differ.
pub fn run(image: &Image, program: &Program, given: &Given) -> Result<Record, String> {
    let mut reference: Option<(String, Record)> = None;
    for (name, config) in ways() {
        let config = Config { strict: given.strict, track: given.track, ..config };
        let record = run_once(image, program, given, &config);
        match &reference {
            None => reference = Some((name, record)),
            Some((first, expected)) => {
                if let Some(difference) = difference(expected, &record) {
                    return Err(format!("`{first}` and `{name}` differ: {difference}"));
                }
            }
        }
    }
    let (_, reference) = reference.ok_or("there is no way to run")?;
    stops(image, program, given, reference.clock)?;
    traces(image, program, given, reference.clock)?;
    flow(image, program, given, &reference)?;
    Ok(reference)
}

/// Cycles of runs that are ended around their last one.
const SHORT: u64 = 4000;

/// Limits in the middle of a run, and around the cycle in which it comes to rest, end it likewise in `step` and in
/// `exact`. Longer runs would take too long in `step`.
fn stops(image: &Image, program: &Program, given: &Given, clock: u64) -> Result<(), String> {
    if clock > SHORT {
        return Ok(());
    }
    for max_cycles in [clock / 2, clock.saturating_sub(1), clock, clock + 1, clock + 2, clock + 9] {
        let given = Given { max_cycles, ..given.clone() };
        let run = |engine, region, threads| {
            let (strict, track) = (given.strict, given.track);
            let config = Config { engine, strict, track, region, threads, ..Config::default() };
            run_once(image, program, &given, &config)
        };
        let step = run(EngineKind::Step, 0, 1);
        for (region, threads) in [(0, 1), (2, 2)] {
            let exact = run(EngineKind::Exact, region, threads);
            if let Some(difference) = difference(&step, &exact) {
                let before = format!("ended before cycle {max_cycles}");
                return Err(format!("{before}, `exact` on {threads} threads: {difference}"));
            }
        }
    }
    Ok(())
}

/// What happens in which cycle is the same in `step` and in `exact`: words in view, tasks, and slots of threads. Of
/// longer runs it would take too much memory.
fn traces(image: &Image, program: &Program, given: &Given, clock: u64) -> Result<(), String> {
    if clock > SHORT {
        return Ok(());
    }
    let run = |engine, region, threads| {
        let (strict, track) = (given.strict, given.track);
        let config =
            Config { engine, strict, track, region, threads, record: true, ..Config::default() };
        let mut figures = Figures::default();
        let _record = run_measured(image, program, given, &config, &mut figures);
        figures.events
    };
    let step = run(EngineKind::Step, 0, 1);
    for (region, threads) in [(0, 1), (2, 3)] {
        let exact = run(EngineKind::Exact, region, threads);
        if let Some((step, exact)) = step.iter().zip(&exact).find(|(step, exact)| step != exact) {
            return Err(format!("`step` has {step:?}, `exact` on {threads} threads {exact:?}"));
        }
        if step.len() != exact.len() {
            let (step, exact) = (step.len(), exact.len());
            return Err(format!("`step` has {step} events, `exact` on {threads} threads {exact}"));
        }
    }
    Ok(())
}

/// Runs a host program in the engine that approximates cycles: the same data, the same end, and
/// cycles not far off. With small regions likewise, and alike for any number of threads.
fn flow(image: &Image, program: &Program, given: &Given, exact: &Record) -> Result<(), String> {
    let run = |region, threads| {
        let config = Config {
            engine: EngineKind::Flow,
            strict: given.strict,
            track: given.track,
            region,
            threads,
            ..Config::default()
        };
        run_once(image, program, given, &config)
    };
    let whole = run(0, 1);
    let name = image.files.first().map_or("", String::as_str);
    measure(name, exact.cycles, whole.cycles);
    is_close("`flow`", &whole, exact)?;
    let parts = run(SMALL, 1);
    for threads in [2, 3, 8] {
        if let Some(difference) = difference(&parts, &run(SMALL, threads)) {
            return Err(format!("`flow` differs on one thread and {threads}: {difference}"));
        }
    }
    is_close("`flow` in small regions", &parts, exact)
}

/// Side of regions of `flow` that give small meshes borders.
const SMALL: u16 = 3;

/// Whether a run of `flow` is as exact as it has to be.
fn is_close(which: &str, flow: &Record, exact: &Record) -> Result<(), String> {
    if is_far(flow.cycles, exact.cycles) {
        let (cycles, expected, message) = (flow.cycles, exact.cycles, &flow.message);
        return Err(format!("{which} takes {cycles} cycles instead of {expected} {message}"));
    }
    let notes = exact.notes.iter().zip(&flow.notes).map(|(exact, flow)| near(flow, exact));
    let notes = notes.chain(flow.notes.iter().skip(exact.notes.len()).cloned()).collect();
    let message = near(&flow.message, &exact.message);
    let Record { cycles, clock, .. } = *exact;
    let same = Record { cycles, clock, notes, message, ..flow.clone() };
    match difference(exact, &same) {
        Some(difference) => Err(format!("{which} differs: {difference}")),
        None => Ok(()),
    }
}

/// By how much `flow` may be off.
const PERCENT: u64 = 5;
const MARGIN: u64 = 12;

fn is_far(cycles: u64, exact: u64) -> bool {
    let far = cycles.abs_diff(exact);
    far > MARGIN && far * 100 > exact * PERCENT
}

/// A text of `flow` with the cycles that `exact` names in its place, where they are not far off.
fn near(flow: &str, exact: &str) -> String {
    const BEFORE: &str = "cycle ";
    let mut given = exact.split(BEFORE).skip(1);
    let mut pieces = flow.split(BEFORE);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let cycle = |piece: &str| {
            let digits = piece.len() - piece.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = piece.split_at(digits);
            number.parse::<u64>().ok().map(|number| (number, rest.to_owned()))
        };
        text.push_str(BEFORE);
        match (cycle(piece), given.next().and_then(cycle)) {
            (Some((own, rest)), Some((theirs, _))) if !is_far(own, theirs) => {
                text.push_str(&format!("{theirs}{rest}"));
            }
            _ => text.push_str(piece),
        }
    }
    text
}

/// Appends what `flow` made of a program to the file that `DFLOW_FLOW` names.
fn measure(name: &str, exact: u64, flow: u64) {
    let Some(path) = std::env::var_os("DFLOW_FLOW").filter(|_| exact != 0) else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    if let Ok(mut file) = file {
        let _written = writeln!(file, "{exact} {flow} {name}");
    }
}

fn difference(a: &Record, b: &Record) -> Option<String> {
    if a.printed != b.printed {
        return Some(format!("printed {:?} against {:?}", a.printed, b.printed));
    }
    if (a.end, &a.message) != (b.end, &b.message) {
        return Some(format!(
            "ended {:?} {:?} against {:?} {:?}",
            a.end, a.message, b.end, b.message
        ));
    }
    if a.notes != b.notes {
        return Some(format!("tell {:?} against {:?}", a.notes, b.notes));
    }
    if a.cycles != b.cycles {
        return Some(format!("{} cycles against {}", a.cycles, b.cycles));
    }
    if a.clock != b.clock {
        return Some(format!("a clock at {} against {}", a.clock, b.clock));
    }
    (a.outputs != b.outputs).then(|| "outputs".into())
}

fn run_once(image: &Image, program: &Program, given: &Given, config: &Config) -> Record {
    run_measured(image, program, given, config, &mut Figures::default())
}

/// Runs a program once; `figures` are what it took and did.
fn run_measured(
    image: &Image,
    program: &Program,
    given: &Given,
    config: &Config,
    figures: &mut Figures,
) -> Record {
    let limits = Limits {
        cycle: given.max_cycles,
        memory: MEMORY,
        deadline: Some(Instant::now() + PATIENCE),
        ..Limits::default()
    };
    let mut env = Env { given, record: Record::default() };
    let result = host::run_measured(image, program, config, &limits, &mut env, figures, drop);
    let mut record = Record { clock: figures.cycles, ..env.record };
    let (counted, stats) = (figures.ways.total(), figures.stats);
    if counted != stats.sent + stats.entered {
        let message = format!("{counted} words have a way, of {} + {}", stats.sent, stats.entered);
        return Record { end: End::Failed, message, ..record };
    }
    match result {
        Ok(run) => {
            record.notes = notes(image, &run.account);
            match run.outcome {
                HostOutcome::Done => record.cycles = run.cycles,
                HostOutcome::Failed { message, loc } => {
                    record.end = End::Failed;
                    record.message = format!("{}{message}", place(image, loc));
                }
            }
        }
        Err(error @ host::RunError::Load(_)) => {
            record.end = End::Failed;
            record.message = error.to_string();
        }
        Err(host::RunError::Run(failure, after)) => {
            record.notes = after
                .odd()
                .iter()
                .map(|it| format!("warning: {}", it.line(&image.files)))
                .collect();
            record.end = match &*failure {
                Failure::Host { .. } | Failure::HostTrap(_) => End::Failed,
                Failure::Trap(_) => End::Trap,
                Failure::Deadlock(_) => End::Deadlock,
                Failure::Limit(_) => End::Limit,
                Failure::Broken(_) => End::Failed,
            };
            let loc = match &*failure {
                Failure::Host { loc, error: _ } => *loc,
                Failure::HostTrap(trap) => trap.loc,
                Failure::Trap(trap) => trap.place(),
                Failure::Deadlock(_) | Failure::Limit(_) | Failure::Broken(_) => Loc::default(),
            };
            let text = match &*failure {
                Failure::Deadlock(deadlock) => deadlock.text(&image.files),
                Failure::Host { .. }
                | Failure::HostTrap(_)
                | Failure::Trap(_)
                | Failure::Limit(_)
                | Failure::Broken(_) => failure.to_string(),
            };
            record.message = format!("{}{text}", place(image, loc));
        }
    }
    record
}

/// What is odd or not as expected; a balance that does not hold is a fault of ours.
fn notes(image: &Image, account: &Account) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    if !account.is_balanced() {
        notes.push(format!("the account of words does not balance: {account:?}"));
    }
    let warnings =
        account.remarks.iter().map(|remark| format!("warning: {}", remark.line(&image.files)));
    notes.extend(warnings);
    notes.extend(account.notes(&image.files).iter().map(|note| format!("note: {note}")));
    notes
}

/// `path:line: `, or nothing if the place is not known.
fn place(image: &Image, loc: Loc) -> String {
    match (loc.line, image.files.get(loc.file as usize)) {
        (0, _) | (_, None) => String::new(),
        (line, Some(path)) => format!("{path}:{line}: "),
    }
}

struct Env<'a> {
    given: &'a Given,
    record: Record,
}

impl HostEnv for Env<'_> {
    fn has_input(&self, name: &str) -> bool {
        self.given.inputs.iter().any(|(other, _, _)| other == name)
    }

    fn input(&mut self, name: &str) -> Result<host::Input, String> {
        let found = self.given.inputs.iter().find(|(other, _, _)| other == name);
        let (_, ty, bytes) = found.ok_or("not given")?;
        Ok(host::Input { bytes: bytes.clone(), ty: Some(*ty) })
    }

    fn setting(&self, name: &str) -> Option<String> {
        let found = self.given.settings.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.clone())
    }

    fn output(&mut self, output: Output) -> Result<(), String> {
        let Output { name, bytes, ty } = output;
        self.record.outputs.push((name, ty, bytes));
        Ok(())
    }

    fn print(&mut self, line: &str) {
        self.record.printed.push(line.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn cycles_in_texts_of_flow_may_be_a_little_off() {
        let exact = "stops from cycle 1000 on; the last came at cycle 90";
        assert_eq!(near("stops from cycle 1040 on; the last came at cycle 99", exact), exact);
        let far = "stops from cycle 1060 on; the last came at cycle 90";
        assert_eq!(near(far, exact), far);
        let other = "ends from cycle 1000 on; the last came at cycle 90";
        assert_eq!(near(other, exact), other);
        assert_eq!(near("stops", exact), "stops");
    }
}
