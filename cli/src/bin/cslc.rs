//! The command `cslc`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(dflow_cli::cslc::main(std::env::args_os()))
}
