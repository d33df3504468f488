//! The command `dflowc`.

use std::ffi::OsString;

use clap::Parser as _;

use crate::args::Cli;
use crate::{commands, process};

/// The name of the tool.
pub(crate) const TOOL: &str = "dflowc";

/// Runs `dflowc`. The first of `args` is the name of the tool. Gives the exit code; Ctrl-C and
/// panics are handled from here on, so it is for a process that does nothing else.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    let mut args: Vec<OsString> = args.into_iter().collect();
    // One program is both: `dflowc cslc ...` is what scripts of `dflowc conform` call.
    if args.get(1).is_some_and(|word| word == "cslc") {
        args.remove(0);
        return crate::cslc::main(args);
    }
    match Cli::try_parse_from(&args) {
        Ok(cli) => process::run(TOOL, || commands::execute(cli)),
        Err(error) => commands::refuse(&error, &args),
    }
}
