//! The suite's entry: a trial per input and stage.
//!
//! `UPDATE_SNAPSHOTS=1` (or insta's own variables) accepts what the stages print.

#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    if let Some(code) = bless() {
        return code;
    }
    let args = Arguments::from_args();
    let trials = dflow_tests::collect::trials()
        .into_iter()
        .map(|trial| {
            let name = trial.name.clone();
            Trial::test(name, move || trial.run().map_err(Failed::from))
        })
        .collect();
    libtest_mimic::run(&args, trials).exit_code()
}

/// Blessing is insta's business: the same program again, told so by its variable.
fn bless() -> Option<ExitCode> {
    let asked = ["UPDATE_SNAPSHOTS", "BLESS"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0"));
    if !asked || std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let mut again = Command::new(program);
    again.args(std::env::args_os().skip(1)).env("INSTA_UPDATE", "always");
    let status = again.status().ok()?;
    Some(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
