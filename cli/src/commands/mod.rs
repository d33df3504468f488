//! One file per command.

mod build;
mod check;
mod conform;
mod dump;
mod explain;
mod names;
pub(crate) use names::check_settings;
mod run;
mod test;
mod validate;

use std::ffi::OsString;

use dflow_compiler::{Compiled, Options};
use dflow_syntax::{Severity, codes};
use serde_json::{Value, json};

use crate::args::{Cli, Command, GivenArgs};
use crate::cslc::environment_version;
use crate::dflowc::TOOL;
use crate::diagnostics;
use crate::exit::{Exit, Failure};
use crate::patience::Patience;
use crate::process;
use crate::source::Root;
use crate::term;

/// Runs a command; where results are to be JSON, so is why it cannot go on.
///
/// # Errors
/// It cannot go on; the message says why.
pub(crate) fn execute(cli: Cli) -> Result<Exit, Failure> {
    let json = cli.command.is_json();
    let ended = process::guarded(|| run(cli.command));
    if let (true, Err(failure)) = (json, &ended) {
        tell(failure, say_json);
    }
    ended
}

/// Says why a command line is not taken, as JSON too if it asks for that; gives the exit code.
pub(crate) fn refuse(error: &clap::Error, args: &[OsString]) -> u8 {
    // Help and the version are no faults.
    if error.use_stderr() && asks_for_json(args) {
        tell(&Failure::usage(fault(error)), say_json);
    }
    process::refuse(TOOL, error)
}

/// Whether results are to be JSON on standard output, as far as the words of a command line that is not taken tell.
fn asks_for_json(args: &[OsString]) -> bool {
    let mut words = args.iter().skip(1).take_while(|word| *word != "--");
    // They have no such option, or it names a file that gets the results.
    let others = ["dump", "explain", "conform"];
    let is_other = args.get(1).is_some_and(|word| others.iter().any(|other| word == other));
    !is_other && words.any(|word| word == "--json")
}

/// What is wrong with a command line: the text for people without what they may read next.
fn fault(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let end = ["\n\nUsage:", "\n\nFor more information"].map(|next| text.find(next));
    let end = end.into_iter().flatten().min().unwrap_or(text.len());
    let text = text[..end].trim_end();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

/// Says as JSON why a command cannot go on, unless that is told already or standard output takes nothing.
fn tell(failure: &Failure, say: impl FnOnce(&Value) -> Result<(), Failure>) {
    let Failure { exit, message, is_told: false } = failure else { return };
    // It is told on standard error in any case, and the exit code is that of the first fault.
    let _ = say(&json!({ "status": exit.word(), "message": message }));
}

fn run(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Build(args) => build::execute(&args),
        Command::Check(args) => check::execute(&args),
        Command::Run(args) => run::execute(&args),
        Command::Test(args) => test::execute(&args),
        Command::Dump(args) => dump::execute(&args),
        Command::Explain(args) => explain::execute(&args),
        Command::Validate(args) => validate::execute(&args),
        Command::Conform(args) => conform::execute(&args),
    }
}

/// The compiler's options as the command line and the environment give them.
///
/// # Errors
/// `DFLOW_SDK_VERSION` names no version.
fn options(args: &GivenArgs) -> Result<Options, Failure> {
    let (params, check_bounds) = (args.settings.clone(), args.check_bounds);
    let sdk_version = environment_version().map_err(Failure::usage)?;
    let mut options = Options { params, check_bounds, sdk_version, ..Options::default() };
    if let Some(target) = args.target {
        options.target = target.into();
    }
    Ok(options)
}

/// Compiles and shows what there is to say (unless JSON is asked for, which comes at the end).
///
/// # Errors
/// Patience is at its end.
fn compile(
    root: Root<'_>,
    options: Options,
    json: bool,
    patience: &Patience,
) -> Result<Compiled, Failure> {
    let compiled = patience.compile(root, options)?;
    if !json {
        diagnostics::show(&compiled.sources, &compiled.diagnostics);
    }
    Ok(compiled)
}

/// One line of JSON on standard output.
fn say_json(value: &Value) -> Result<(), Failure> {
    term::say(&format!("{value}\n")).map(|_| ())
}

/// The end of a command whose program does not compile.
fn refused(compiled: &Compiled, json: bool) -> Result<Exit, Failure> {
    let exit = whose_fault(compiled);
    if json {
        let diagnostics = diagnostics::json(&compiled.sources, &compiled.diagnostics);
        say_json(&json!({ "status": exit.word(), "diagnostics": diagnostics }))?;
    }
    Ok(exit)
}

/// How a command ends whose program has errors: it was used wrongly if nothing but values of the command line is wrong.
fn whose_fault(compiled: &Compiled) -> Exit {
    let mut errors =
        compiled.diagnostics.iter().filter(|one| one.severity() == Severity::Error).peekable();
    let is_usage = errors.peek().is_some() && errors.all(|one| one.code() == codes::PARAM_VALUE);
    if is_usage { Exit::Usage } else { Exit::Program }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_nothing_is_told_nothing() {
        let mut told = Vec::new();
        for failure in [Failure::deaf("the disk is full"), Failure::usage("no such file")] {
            tell(&failure, |value| {
                told.push(value["message"].clone());
                Ok(())
            });
        }
        assert_eq!(told, ["no such file"]);
    }
}
