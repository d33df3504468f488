//! `dflowc run`: a program's host block on an emulated mesh.

use std::time::Instant;

use dflow_runtime::config::{Config, Limit};
use dflow_runtime::profile::{Profile, Profiler};
use serde_json::json;

use super::names::{check_bindings, check_fixed, check_settings};
use super::{compile, options, refused, say_json};
use crate::account::Told;
use crate::args::{RunArgs, StatsPlace};
use crate::data::{Input, Outputs, check_not_read, check_place, same_place};
use crate::dflowc::TOOL;
use crate::diagnostics;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::machine::{self, Around, Ended, Env};
use crate::memory;
use crate::patience::Patience;
use crate::progress::Line;
use crate::source::{Root, Runnable};
use crate::stats::{self, Cause};
use crate::term;

/// Runs a program; writes its outputs only if it ends well.
///
/// # Errors
/// Wrong use, inputs that cannot be read, or outputs that cannot be written.
pub(crate) fn execute(args: &RunArgs) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let root = Root::find(&args.file)?;
    machine::check(&args.machine)?;
    let interrupt = Interrupt::install(TOOL)?;
    let json = args.compile.json;
    let (image, diagnostics) = match root.open()? {
        Runnable::Image(image) => {
            check_outputs(args, [root.path()])?;
            check_fixed(&image, &args.compile.given.settings)?;
            if args.compile.given.target.is_some_and(|target| image.target != target.into()) {
                let built = image.target.name();
                return Err(Failure::usage(format!("the image was built for {built}")));
            }
            if args.compile.given.check_bounds {
                let message = "--check-bounds is for sources: give it to `dflowc build`";
                return Err(Failure::usage(message));
            }
            (*image, json!([]))
        }
        Runnable::Source(root) => {
            let patience = Patience::new(&interrupt).until(begun, args.machine.timeout);
            let compiled = compile(root, options(&args.compile.given)?, json, &patience)?;
            let shown = diagnostics::json(&compiled.sources, &compiled.diagnostics);
            check_outputs(args, diagnostics::files(&compiled.sources))?;
            match compiled.image {
                Some(image) => (image, shown),
                None => return refused(&compiled, json),
            }
        }
    };
    check_settings(&image, &args.compile.given.settings)?;
    check_bindings(&image, &args.inputs, &args.outputs)?;
    let host = image.host.as_ref().ok_or_else(|| nothing_to_run(root.path()))?;
    let outputs = Outputs::new(&args.outputs)?;
    let limit = args.machine.max_memory.unwrap_or_else(memory::default_limit);
    let inputs = args.inputs.iter().map(|input| Input::read(input, limit));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let line = Line::new(json, args.machine.max_cycles, image.placement.rect.area() as u64);
    let profiler = args.profile.then(Profiler::start);
    let profile = profiler.as_ref().map(Profiler::phases);
    let config = Config { profile, ..machine::config(&args.machine) };
    let front = begun.elapsed();
    let env = Env::new(inputs, outputs, args.compile.given.settings.clone(), &line, json);
    let is_for_more = args.stats.is_some() || args.profile || args.machine.account;
    let env = env.for_readers(&interrupt, is_for_more);
    let around = Around { begun, interrupt: &interrupt, line: &line, rest: std::mem::forget };
    let (ended, env) = machine::run(&image, host, &args.machine, &config, env, &around)?;
    line.clear();
    let profile = profiler.as_ref().map(Profiler::finish);
    let (figures, total) = (&ended.figures, begun.elapsed());
    let written = keep(&ended, &env, &interrupt);
    let cause = cause(&ended, &written);
    let told = stats::Told { image: &image, config: &config, figures, cause, front, total };
    if let (false, Some(account)) = (json, &ended.account) {
        account.lines().iter().for_each(|line| term::complain(line));
    }
    let counted = tell_stats(args, &told, profile.as_ref(), &interrupt);
    let exit = written.and(counted).and_then(|()| finish(&ended, &env));
    let exit = exit.map_err(|failure| but_statistics(args, failure));
    if json {
        let (status, message) = match &exit {
            Ok(exit) => (*exit, &ended.message),
            Err(failure) => (failure.exit, &failure.message),
        };
        let said = say_json(&json!({
            "status": status.word(),
            "message": message,
            "printed": env.printed(),
            "account": ended.account.as_ref().map(Told::json),
            "report": ended.report.as_ref().map(crate::report::Report::json),
            "diagnostics": diagnostics,
            "stats": args.stats.is_some().then(|| told.json()),
            "profile": profile.as_ref().map(|profile| told.profile_json(profile)),
        }));
        return exit.map_err(Failure::told).and_then(|exit| said.map(|()| exit));
    }
    if let (Ok(Exit::Success), Some(report)) = (&exit, &ended.report) {
        term::complain(&format!("{}: done\n{}", root.stem(), report.text()));
    }
    exit
}

/// Of a program without a host block.
fn nothing_to_run(name: &str) -> Failure {
    Failure::usage(format!(
        "{name} has no host block: nothing says what to run; write `host {{ … }}` in a .dfl file, \
         or compile with cslc and run a host script with cs_python"
    ))
}

/// Statistics to where they were asked for, and the profile; with `--json` they are part of the result.
fn tell_stats(
    args: &RunArgs,
    told: &stats::Told<'_>,
    profile: Option<&Profile>,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let json = args.compile.json;
    match &args.stats {
        Some(StatsPlace::Standard) if json => {}
        Some(place) => stats::write(place, &told.json(), interrupt)?,
        None => {}
    }
    if let (false, Some(profile)) = (json, profile) {
        term::complain(&told.profile_text(profile));
    }
    Ok(())
}

/// No output may take the place of what the program was read from, and no statistics that of inputs and outputs.
fn check_outputs<'p>(
    args: &RunArgs,
    read: impl IntoIterator<Item = &'p str> + Clone,
) -> Result<(), Failure> {
    args.outputs.iter().try_for_each(|output| check_not_read(&output.path, read.clone()))?;
    if let Some(StatsPlace::File(path)) = &args.stats {
        check_place(path)?;
        check_not_read(path, read)?;
        let inputs = args.inputs.iter().map(|binding| ("input", binding));
        let mut all = inputs.chain(args.outputs.iter().map(|binding| ("output", binding)));
        if let Some((what, binding)) = all.find(|(_, binding)| same_place(&binding.path, path)) {
            let (name, place) = (&binding.name, path.display());
            return Err(Failure::usage(format!(
                "the statistics and {what} `{name}` have one place: {place}"
            )));
        }
    }
    Ok(())
}

/// Keeps the outputs of a run that ended well.
fn keep(ended: &Ended, env: &Env<'_>, interrupt: &Interrupt) -> Result<(), Failure> {
    env.check()?;
    match ended.exit {
        Exit::Success => env.outputs().write(interrupt),
        _ => Ok(()),
    }
}

/// Why a run ended, whose outputs are written or not.
fn cause(ended: &Ended, written: &Result<(), Failure>) -> Cause {
    match written {
        Ok(()) => ended.cause,
        Err(Failure { exit: Exit::Interrupted, .. }) => Cause::Limit(Limit::Interrupted),
        Err(_) => Cause::Failed,
    }
}

/// Who gives up is told of the file that is there all the same.
fn but_statistics(args: &RunArgs, failure: Failure) -> Failure {
    match (&args.stats, failure.exit) {
        (Some(StatsPlace::File(_)), Exit::Interrupted) => {
            let message = format!("{} but the statistics", failure.message);
            Failure { message, ..failure }
        }
        _ => failure,
    }
}

/// Says why a run ended that did not end well.
fn finish(ended: &Ended, env: &Env<'_>) -> Result<Exit, Failure> {
    match ended.exit {
        Exit::Success => Ok(Exit::Success),
        Exit::Interrupted if env.is_for_nobody() => Ok(Exit::Success),
        Exit::Interrupted if env.is_json() => Ok(Exit::Interrupted),
        Exit::Interrupted => {
            say_why(ended);
            Err(Failure::interrupted())
        }
        Exit::Program
        | Exit::Usage
        | Exit::Trap
        | Exit::Deadlock
        | Exit::Limit
        | Exit::Internal => {
            if !env.is_json() {
                say_why(ended);
            }
            Ok(ended.exit)
        }
    }
}

fn say_why(ended: &Ended) {
    term::complain(&format!("{TOOL}: {}", ended.message));
}
