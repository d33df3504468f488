//! The chores themselves: they call cargo and count.

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::{complain, python, say, tidy};

/// Where fuzz targets are, a file for each.
const FUZZ_TARGETS: &str = "fuzz/src/bin";
/// What the gate gives each fuzz target.
const FUZZ_SECONDS: &str = "60";

/// How many tests passed and failed, and how many had to be skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    pub(crate) fn one(good: bool) -> Count {
        Count { passed: u64::from(good), failed: u64::from(!good), skipped: 0 }
    }

    /// The line of totals, as the gate reads it.
    fn line(self) -> String {
        let Count { passed, failed, skipped } = self;
        let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
        format!("{passed} passed, {failed} failed{skipped}\n")
    }

    fn code(self) -> ExitCode {
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Every test of the workspace and, unless arguments choose some, of the Python package. Ends with
/// a line of totals.
pub(crate) fn test(args: &[String]) -> ExitCode {
    let mut count = run_tests(args);
    if args.is_empty() {
        count.add(python::test());
    }
    say(&count.line());
    count.code()
}

/// The tests of the Python package. Ends with a line of totals.
pub(crate) fn pytest() -> ExitCode {
    let count = python::test();
    say(&count.line());
    count.code()
}

/// The house rules.
pub(crate) fn tidy() -> ExitCode {
    let faults = tidy::check(&tidy::root());
    for fault in &faults {
        complain(&format!("{fault}\n"));
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The suite, accepting what it prints. Arguments go to the suite (a name to filter by).
pub(crate) fn bless(args: &[String]) -> ExitCode {
    let mut command = cargo(&["test", "--package", "dflow-tests", "--test", "suite", "--"]);
    command.args(args).env("UPDATE_SNAPSHOTS", "1");
    if succeeds(&mut command) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Each fuzz target for some seconds.
pub(crate) fn fuzz(args: &[String]) -> ExitCode {
    let seconds = args.first().map_or(FUZZ_SECONDS, String::as_str);
    run_fuzz(seconds, args.get(1).map(String::as_str)).code()
}

/// Formatting, clippy and documentation.
pub(crate) fn lint() -> ExitCode {
    run_lints().code()
}

fn run_lints() -> Count {
    let mut count = Count::default();
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let doc = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    count.add(Count::one(succeeds(&mut cargo(&["fmt", "--all", "--check"]))));
    count.add(Count::one(succeeds(&mut cargo(&clippy))));
    count.add(Count::one(succeeds(cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"))));
    count
}

/// Runs the tests and adds up what the test programs say about themselves. A test program that
/// dies without a word counts as one failure.
fn run_tests(args: &[String]) -> Count {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    command.args(args).stdout(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            complain(&format!("cargo cannot be started: {error}\n"));
            return Count::one(false);
        }
    };
    let mut count = Count::default();
    if let Some(output) = child.stdout.take() {
        let lines = std::io::BufRead::lines(std::io::BufReader::new(output));
        for line in lines.map_while(Result::ok) {
            say(&format!("{line}\n"));
            count.add(parse_result(&line).unwrap_or_default());
        }
    }
    let ended_well = child.wait().is_ok_and(|status| status.success());
    if !ended_well && count.failed == 0 {
        count.failed = 1;
    }
    count
}

/// Reads `test result: ok. 12 passed; 1 failed; …`.
fn parse_result(line: &str) -> Option<Count> {
    let rest = line.trim().strip_prefix("test result: ")?;
    let number = |word: &str| {
        let before = rest.split(word).next()?;
        before.split_whitespace().last()?.parse().ok()
    };
    Some(Count { passed: number(" passed")?, failed: number(" failed")?, skipped: 0 })
}

fn run_fuzz(seconds: &str, seed: Option<&str>) -> Count {
    let mut count = Count::default();
    if !succeeds(&mut cargo(&["build", "--package", "dflow-fuzz", "--bins"])) {
        return Count::one(false);
    }
    let targets = fuzz_targets();
    if targets.is_empty() {
        complain(&format!("{FUZZ_TARGETS} has no fuzz targets\n"));
        return Count::one(false);
    }
    for target in &targets {
        let mut command = cargo(&["run", "--quiet", "--package", "dflow-fuzz", "--bin", target]);
        command.args(["--", "--seconds", seconds]);
        if let Some(seed) = seed {
            command.args(["--seed", seed]);
        }
        let limit = Duration::from_secs(seconds.parse::<u64>().unwrap_or(60) * 3 + 60);
        count.add(Count::one(succeeds_within(&mut command, limit)));
    }
    count
}

/// Names of all fuzz targets, in the order in which they run.
fn fuzz_targets() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(tidy::root().join(FUZZ_TARGETS)) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let sources = paths.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let mut names: Vec<String> =
        sources.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

fn cargo(args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(tidy::root());
    command
}

fn succeeds(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            complain(&format!("cargo cannot be started: {error}\n"));
            false
        }
    }
}

/// As [`succeeds`]; a command that takes longer is ended and has failed.
fn succeeds_within(command: &mut Command, limit: Duration) -> bool {
    let Ok(mut child) = command.spawn() else { return false };
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(100)),
            Ok(None) | Err(_) => {
                complain("a fuzz target did not end in time\n");
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_from_both_harnesses() {
        let std = "test result: ok. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(parse_result(std), Some(Count { passed: 12, failed: 3, skipped: 0 }));
        assert_eq!(parse_result("running 3 tests"), None);
    }

    /// The gate takes its own list from the same folder, and cargo has a test for each.
    #[test]
    fn fuzz_targets_are_the_files_of_their_folder() {
        let targets = fuzz_targets();
        assert!(targets.contains(&"parse".to_owned()), "{targets:?}");
        let read = |path: &str| std::fs::read_to_string(tidy::root().join(path)).expect(path);
        assert!(read(".ci/run").contains(&format!("in {FUZZ_TARGETS}/*.rs")));
        let tests = read("fuzz/tests/targets.rs");
        for target in &targets {
            assert!(tests.contains(&format!("CARGO_BIN_EXE_{target}\"")), "{target} has no test");
        }
        assert_eq!(tests.matches("CARGO_BIN_EXE_").count(), targets.len());
    }

    #[test]
    fn the_line_of_totals_names_what_was_skipped() {
        let count = Count { passed: 12, failed: 3, skipped: 0 };
        assert_eq!(count.line(), "12 passed, 3 failed\n");
        assert_eq!(Count { skipped: 2, ..count }.line(), "12 passed, 3 failed, 2 skipped\n");
    }
}
