//! The command line: `dflowc`.
//!
//! The only crate that opens files, reads the environment, talks to a terminal and chooses exit
//! codes. Invariants: a fault of the user ends with one clear message and the right code; a
//! closed pipe is quiet; no output file is ever half-written.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod data;
mod diagnostics;
mod exit;
mod interrupt;
mod machine;
mod progress;
mod report;
mod source;
mod term;
mod world;

use std::process::ExitCode;

use clap::Parser as _;

use args::Cli;
use exit::{Exit, Failure};

/// Parsing and comptime evaluation recurse as deep as their limits allow: far less than this,
/// more than a platform's smallest main thread.
const STACK: usize = 256 << 20;

fn main() -> ExitCode {
    let cli = Cli::parse();
    std::panic::set_hook(Box::new(|info| {
        term::complain(&format!("dflowc: internal error: {info}\nplease report this"));
    }));
    let worker = std::thread::Builder::new().stack_size(STACK);
    let result = worker
        .spawn(move || commands::execute(cli))
        .map_err(|error| Failure::program(format!("no thread can be started: {error}")))
        .and_then(|thread| thread.join().unwrap_or(Ok(Exit::Program)));
    match result {
        Ok(exit) => exit.into(),
        Err(failure) => {
            term::complain(&format!("dflowc: {}", failure.message));
            failure.exit.into()
        }
    }
}
