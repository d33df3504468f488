//! `dflowc test`: test blocks, each on a fresh machine.

mod folder;
mod verdict;

use std::time::Instant;

use dflow_compiler::Compiled;
use dflow_ir::image::Image;

use super::names::check_settings;
use super::{compile, options, refused, say_json};
use crate::args::TestArgs;
use crate::artifact;
use crate::data::Outputs;
use crate::dflowc::TOOL;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::machine::{self, Around, Env};
use crate::patience::Patience;
use crate::progress::Line;
use crate::source::Root;
use crate::term;
use verdict::{Score, Verdict};

/// Runs the tests of a program in the order in which they are written; of a folder, those of all programs below.
///
/// # Errors
/// The source cannot be found, no test is wanted, or the user gave up.
pub(crate) fn execute(args: &TestArgs) -> Result<Exit, Failure> {
    machine::check(&args.machine)?;
    let path = args.file.as_ref();
    if std::path::Path::is_dir(path) && !artifact::is_artifact(path) {
        return folder::execute(args);
    }
    let root = Root::source(&args.file)?;
    let interrupt = Interrupt::install(TOOL)?;
    let json = args.compile.json;
    let compiled = compiled(root, args, &interrupt)?;
    let Some(image) = &compiled.image else { return refused(&compiled, json) };
    check_settings(image, &args.compile.given.settings)?;
    let verdicts = verdicts(image, args, &interrupt)?;
    let score = Score::of(&verdicts);
    check_ended(score, args)?;
    if json {
        say_json(&verdict::json(&verdicts))?;
    } else {
        term::say(&format!("{}\n", score.text()))?;
    }
    Ok(score.exit())
}

/// A run without a test is no test that passed. One that was given up is a result in JSON: it tells of the tests before.
fn check_ended(score: Score, args: &TestArgs) -> Result<(), Failure> {
    let file = &args.file;
    match score {
        Score { interrupted: true, .. } if !args.compile.json => Err(Failure::interrupted()),
        Score { passed: 0, failed: 0, interrupted: false } => {
            Err(Failure::usage(match &args.filter {
                Some(filter) => format!("no test of {file} has `{filter}` in its name"),
                None => format!("{file} has no test block"),
            }))
        }
        Score { .. } => Ok(()),
    }
}

/// Compiles one file, for as long as a test of it may take.
fn compiled(root: Root<'_>, args: &TestArgs, interrupt: &Interrupt) -> Result<Compiled, Failure> {
    let mut options = options(&args.compile.given)?;
    options.tests = true;
    let patience = Patience::new(interrupt).until(Instant::now(), args.machine.timeout);
    compile(root, options, args.compile.json, &patience)
}

/// Runs the wanted tests of an image, until the user gives up; says each verdict at once (unless JSON is asked for).
fn verdicts(
    image: &Image,
    args: &TestArgs,
    interrupt: &Interrupt,
) -> Result<Vec<Verdict>, Failure> {
    let json = args.compile.json;
    let line = Line::new(json, args.machine.max_cycles, image.placement.rect.area() as u64);
    let config = machine::config(&args.machine);
    let wanted = args.filter.as_deref().unwrap_or_default();
    let mut verdicts = Vec::new();
    for (name, program) in image.tests.iter().filter(|(name, _)| name.contains(wanted)) {
        let env = Env::new(
            Vec::new(),
            Outputs::default(),
            args.compile.given.settings.clone(),
            &line,
            true,
        );
        let around = Around { begun: Instant::now(), interrupt, line: &line, rest: drop };
        let (ended, env) = machine::run(image, program, &args.machine, &config, env, &around)?;
        let interrupted = ended.exit == Exit::Interrupted;
        let verdict = Verdict {
            name: name.clone(),
            exit: ended.exit,
            message: ended.message,
            printed: env.printed().to_vec(),
            cycles: ended.cycles,
            account: ended.account,
        };
        if !json && !interrupted {
            line.suspend(|| term::say(&verdict.text()))?;
        }
        verdicts.push(verdict);
        if interrupted {
            break;
        }
    }
    line.clear();
    Ok(verdicts)
}
