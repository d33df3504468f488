//! `dflowc conform`: runs the command scripts of a code base with our tools.
//!
//! Invariants: nothing is written below the folder that is looked at; every script ends, by itself, by
//! its time limit or by Ctrl-C, and takes all processes it started with it; the order of the
//! results is that of the paths, whatever ended first. Method and patterns: `spec/conform.md`.

mod copy;
mod find;
mod outside;
mod python;
mod run;
mod stage;
mod table;
mod tools;
mod verdict;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dflow_ir::target::TargetId;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::data::check_place;
use crate::dflowc::TOOL;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::term;
use find::Script;
use run::Limits;
use stage::Stage;
use tools::Tools;
use verdict::Verdict;

/// What the command line asks for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) folder: PathBuf,
    pub(crate) jobs: usize,
    pub(crate) timeout: Duration,
    pub(crate) target: Option<TargetId>,
    pub(crate) filter: Option<String>,
    pub(crate) scripts: Vec<String>,
    pub(crate) json: Option<PathBuf>,
    pub(crate) python: Option<PathBuf>,
    pub(crate) venv: Option<PathBuf>,
    pub(crate) wheel: Option<PathBuf>,
    pub(crate) keep: Option<PathBuf>,
    pub(crate) verbose: bool,
}

/// A script that was run.
#[derive(Clone, Debug)]
struct Row {
    script: Script,
    verdict: Verdict,
    /// Why, if it did not pass; one line.
    reason: String,
    seconds: f64,
    /// Of all machines that the script ran; none if none told.
    cycles: Option<u64>,
    /// What it printed, or the end of it.
    output: String,
}

/// Runs all scripts, shows the table.
///
/// # Errors
/// Wrong use, or the system does not let us.
pub(crate) fn execute(request: &Request) -> Result<Exit, Failure> {
    let scripts = find::scripts(&request.folder, &request.scripts)?;
    let scripts: Vec<Script> = scripts.into_iter().filter(|s| wanted(request, s)).collect();
    if scripts.is_empty() {
        let folder = request.folder.display();
        return Err(Failure::usage(format!("no command script below {folder} is asked for")));
    }
    let json = request.json.as_ref().filter(|path| path.as_os_str() != "-");
    json.map_or(Ok(()), |path| check_place(path))?;
    let interrupt = Interrupt::install(TOOL)?;
    interrupt.listen();
    let scratch = tempfile::Builder::new().prefix("dflow-conform-").tempdir();
    let scratch = scratch
        .map_err(|error| Failure::program(format!("no scratch folder can be made: {error}")))?;
    let python = python::choose(request, &interrupt)?;
    let tools = Tools::make(&scratch.path().join("tools"), &python)?;
    let stage = Stage::of(&request.folder)?;
    let rows = all(request, &scripts, &stage, &tools, scratch.path(), &interrupt)?;
    if interrupt.is_set() {
        return Err(Failure { message: "interrupted".into(), ..Failure::interrupted() });
    }
    let written = request
        .json
        .as_ref()
        .map_or(Ok(()), |path| table::write_json(path, &request.folder, &rows, &interrupt));
    // What the scripts came to is told, whatever became of the file.
    if request.json.is_none() || json.is_some() {
        term::say(&table::text(&rows, request.verbose))?;
    }
    written?;
    let good = rows.iter().all(|row| row.verdict == Verdict::Pass);
    Ok(if good { Exit::Success } else { Exit::Program })
}

fn wanted(request: &Request, script: &Script) -> bool {
    request.target.is_none_or(|target| script.target == target)
        && request.filter.as_ref().is_none_or(|text| script.name().contains(text.as_str()))
}

/// Runs the scripts on several threads, each with a copy of the folder of its own.
fn all(
    request: &Request,
    scripts: &[Script],
    stage: &Stage,
    tools: &Tools,
    scratch: &std::path::Path,
    interrupt: &Interrupt,
) -> Result<Vec<Row>, Failure> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let progress = Progress::new(scripts.len());
    let jobs = request.jobs.clamp(1, scripts.len());
    let worker = |number: usize| -> Result<(), Failure> {
        let root = scratch.join(format!("copy{number}"));
        stage.copy_to(&root)?;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(script) = scripts.get(at).filter(|_| !interrupt.is_set()) else {
                return Ok(());
            };
            progress.start(script);
            let row = one(request, script, stage, tools, &root, interrupt)?;
            progress.end(&row);
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, row));
        }
    };
    let results: Vec<Result<(), Failure>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|number| scope.spawn(move || worker(number))).collect();
        let failed = || Err(Failure::program("a worker failed"));
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|_| failed())).collect()
    });
    progress.bar.finish_and_clear();
    results.into_iter().collect::<Result<(), _>>()?;
    let mut rows = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    rows.sort_by_key(|(at, _)| *at);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// Runs one script in its place of a copy, then makes that place new again.
fn one(
    request: &Request,
    script: &Script,
    stage: &Stage,
    tools: &Tools,
    root: &std::path::Path,
    interrupt: &Interrupt,
) -> Result<Row, Failure> {
    let place = stage.place(root, &script.folder);
    let limits = Limits { time: request.timeout, interrupt: interrupt.flag() };
    let ran = run::script(&place, &script.file, tools, &root.with_extension("log"), &limits)?;
    let (verdict, reason) = verdict::judge(&ran);
    match &request.keep {
        Some(keep) => stage.keep(&place, &keep.join(&script.folder).join(script.stem()))?,
        None => stage.clear(&place)?,
    }
    stage.renew(root, &script.folder)?;
    Ok(Row {
        script: script.clone(),
        verdict,
        reason,
        seconds: ran.seconds,
        cycles: ran.cycles,
        output: ran.output,
    })
}

/// What can be seen while scripts run: a line that moves, or a line per script if no person watches.
struct Progress {
    bar: ProgressBar,
    watched: bool,
}

impl Progress {
    fn new(scripts: usize) -> Progress {
        let bar = ProgressBar::new(scripts as u64);
        let watched = term::watched();
        bar.set_draw_target(match watched {
            true => ProgressDrawTarget::stderr_with_hz(5),
            false => ProgressDrawTarget::hidden(),
        });
        if let Ok(style) = ProgressStyle::with_template("{pos}/{len} {elapsed} {msg}") {
            bar.set_style(style);
        }
        Progress { bar, watched }
    }

    fn start(&self, script: &Script) {
        self.bar.set_message(format!("{} ({})", script.name(), script.target.name()));
    }

    fn end(&self, row: &Row) {
        self.bar.inc(1);
        let (name, target) = (row.script.name(), row.script.target.name());
        let line = format!("{:<13} {target} {:>7.1} s  {name}", row.verdict.word(), row.seconds);
        match (self.watched, row.verdict) {
            (true, Verdict::Pass) => {}
            (true, _) => self.bar.suspend(|| term::complain(&line)),
            (false, _) => term::complain(&line),
        }
    }
}
