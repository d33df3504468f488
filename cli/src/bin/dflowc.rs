//! The command `dflowc`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Machines are millions of small blocks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(dflow_cli::dflowc::main(std::env::args_os()))
}
