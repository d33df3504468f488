//! The command `dflowc`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(dflow_cli::dflowc::main(std::env::args_os()))
}
