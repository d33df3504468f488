//! The command `dflowc`.

use std::ffi::OsString;

use clap::Parser as _;

use crate::args::Cli;
use crate::{commands, process};

/// Runs `dflowc`. The first of `args` is the name of the tool. Gives the exit code; Ctrl-C and
/// panics are handled from here on, so it is for a process that does nothing else.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    match Cli::try_parse_from(args) {
        Ok(cli) => process::run("dflowc", || commands::execute(cli)),
        Err(error) => process::refuse(&error),
    }
}
