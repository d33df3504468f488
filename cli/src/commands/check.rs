//! `dflowc check`: diagnostics and nothing else.

use dflow_syntax::Severity;
use serde_json::json;

use super::{compile, options, say_json, whose_fault};
use crate::args::CheckArgs;
use crate::dflowc::TOOL;
use crate::diagnostics::{self, count};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::patience::Patience;
use crate::source::Root;

/// Checks a program, its tests included.
///
/// # Errors
/// The source cannot be found, or nothing of the program has the name of a `--set`.
pub(crate) fn execute(args: &CheckArgs) -> Result<Exit, Failure> {
    let root = Root::source(&args.file)?;
    let mut options = options(&args.compile.given)?;
    options.tests = true;
    let patience = Patience::new(&Interrupt::install(TOOL)?);
    let compiled = compile(root, options, args.compile.json, &patience)?;
    let bad = compiled.image.is_none() || count(&compiled.diagnostics, Severity::Error) > 0;
    if let Some(image) = &compiled.image {
        super::names::check_settings(image, &args.compile.given.settings)?;
    }
    let exit = if bad { whose_fault(&compiled) } else { Exit::Success };
    if args.compile.json {
        let diagnostics = diagnostics::json(&compiled.sources, &compiled.diagnostics);
        say_json(&json!({ "status": exit.word(), "diagnostics": diagnostics }))?;
    }
    Ok(exit)
}
