//! Chores of the repository: `cargo xtask <chore>`.
//!
//! No dependencies, so that it builds in a moment. What a machine can check is a test here
//! ([`tidy`]), so that reviews can be about design.

#![forbid(unsafe_code)]

mod chores;
mod python;
mod tidy;

use std::io::Write as _;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test    build and run every test: the workspace, then the Python package
cargo xtask tidy    check the house rules (also part of test)
cargo xtask bless   run the suite and accept its new snapshots
cargo xtask fuzz    run each fuzz target for a while: cargo xtask fuzz [seconds] [seed]
cargo xtask pytest  build the Python package and run its tests only
cargo xtask wheel   build the wheel of the Python package: cargo xtask wheel [--dev]
cargo xtask lint    format check, clippy and documentation with warnings denied
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let rest = args.get(1..).unwrap_or_default();
    match args.first().map(String::as_str) {
        Some("test") => chores::test(rest),
        Some("tidy") => chores::tidy(),
        Some("bless") => chores::bless(rest),
        Some("fuzz") => chores::fuzz(rest),
        Some("pytest") => chores::pytest(),
        Some("wheel") => python::wheel(rest),
        Some("lint") => chores::lint(),
        Some("help" | "--help" | "-h") => {
            say(HELP);
            ExitCode::SUCCESS
        }
        Some(_) | None => {
            complain(HELP);
            ExitCode::from(2)
        }
    }
}

/// Prints to stdout; a closed pipe is nobody's fault.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints to stderr.
fn complain(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
