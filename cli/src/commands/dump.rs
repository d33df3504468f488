//! `dflowc dump`: what a phase made of a program.

use dflow_compiler::{Options, Stage};
use dflow_syntax::Severity;

use super::{check_settings, options, whose_fault};
use crate::args::{DumpArgs, StageArg};
use crate::dflowc::TOOL;
use crate::diagnostics::{self, count};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::patience::Patience;
use crate::source::Root;
use crate::term;

/// Prints a stage, or the table of builtins.
///
/// # Errors
/// The source cannot be found.
pub(crate) fn execute(args: &DumpArgs) -> Result<Exit, Failure> {
    if args.builtins {
        term::say(&dflow_compiler::builtin_table())?;
        return Ok(Exit::Success);
    }
    if args.timing {
        term::say(&dflow_ir::target::manual())?;
        return Ok(Exit::Success);
    }
    // The command line has both unless it asks for the table.
    let (Some(file), Some(stage)) = (&args.file, args.stage) else {
        return Err(Failure::usage("dump needs a file and a --stage"));
    };
    let root = Root::source(file)?;
    let mut options = options(&args.given)?;
    options.tests = true;
    let patience = Patience::new(&Interrupt::install(TOOL)?);
    check_names(root, &options, &patience)?;
    let (text, compiled) = patience.dump(root, options, stage.into())?;
    term::say(&text)?;
    diagnostics::show(&compiled.sources, &compiled.diagnostics);
    let bad = count(&compiled.diagnostics, Severity::Error) > 0;
    Ok(if bad { whose_fault(&compiled) } else { Exit::Success })
}

/// What is set must be there, as for other commands. Which names a program has is known when all of it is compiled,
/// whatever stage is asked for; of one that does not compile that is told.
fn check_names(root: Root<'_>, options: &Options, patience: &Patience) -> Result<(), Failure> {
    let settings = &options.params;
    if settings.is_empty() {
        return Ok(());
    }
    let compiled = patience.compile(root, options.clone())?;
    compiled.image.map_or(Ok(()), |image| check_settings(&image, settings))
}

impl From<StageArg> for Stage {
    fn from(arg: StageArg) -> Stage {
        match arg {
            StageArg::Tokens => Stage::Tokens,
            StageArg::Ast => Stage::Ast,
            StageArg::Plan => Stage::Plan,
            StageArg::Typed => Stage::Typed,
            StageArg::Ir => Stage::Ir,
            StageArg::Layout => Stage::Layout,
            StageArg::Image => Stage::Image,
        }
    }
}
