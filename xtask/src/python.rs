//! The Python package: its wheel, and its tests in an environment of their own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::chores::Count;
use crate::{complain, say, tidy};

/// What builds the wheel.
const BUILDER: &str = "maturin==1.16.0";
/// What the tests need.
const TEST_PACKAGES: [&str; 2] = ["numpy>=1.21", "pytest>=8"];
/// Arguments of a command.
type Args<'a> = &'a [&'a OsStr];

/// Builds the wheel; `--dev` with the profile of the tests.
pub(crate) fn wheel(args: &[String]) -> ExitCode {
    let development = match args {
        [] => false,
        [one] if one == "--dev" => true,
        _ => {
            complain("cargo xtask wheel takes --dev or nothing\n");
            return ExitCode::from(2);
        }
    };
    match build(development) {
        Ok(path) => {
            say(&format!("{}\n", path.display()));
            ExitCode::SUCCESS
        }
        Err(fault) => {
            complain(&format!("{fault}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Builds the wheel for tests, installs it, and runs the package's tests.
pub(crate) fn test() -> Count {
    match run_tests() {
        Ok(count) => count,
        Err(fault) => {
            complain(&format!("{fault}\n"));
            Count::one(false)
        }
    }
}

fn run_tests() -> Result<Count, String> {
    let wheel = build(true)?;
    let python = environment("test-venv", &TEST_PACKAGES)?;
    let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall"];
    let mut install = command(&python, &pip.map(OsStr::new));
    run(install.arg(wheel), "pip")?;
    let folder = tidy::root().join("python/tests");
    let mut tests = command(&python, &[]);
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).current_dir(folder);
    let output = tests.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("pytest cannot be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    say(&text);
    let mut count = text.lines().rev().find_map(counted).unwrap_or_default();
    if !output.status.success() && count.failed == 0 {
        count.failed = 1;
    }
    Ok(count)
}

/// Reads `1 failed, 12 passed, 2 skipped in 0.12s`.
fn counted(line: &str) -> Option<Count> {
    let (head, _) = line.split_once(" in ")?;
    let words: Vec<&str> = head.split([' ', ',', '=']).filter(|word| !word.is_empty()).collect();
    let number = |wanted: &[&str]| -> u64 {
        let pairs = words.windows(2).filter(|pair| wanted.contains(&pair[1]));
        pairs.filter_map(|pair| pair[0].parse::<u64>().ok()).sum()
    };
    let (passed, failed) = (number(&["passed"]), number(&["failed", "error", "errors"]));
    let count = Count { passed, failed, skipped: number(&["skipped"]) };
    (count != Count::default()).then_some(count)
}

/// Builds a wheel; gives its path.
fn build(development: bool) -> Result<PathBuf, String> {
    let python = environment("build-venv", &[BUILDER])?;
    let folder = match development {
        true => home().join("wheels-dev"),
        false => target().join("wheels"),
    };
    // A wheel of an earlier build would be taken for the new one.
    let _ = std::fs::remove_dir_all(&folder);
    let profile = if development { "dev" } else { "release" };
    let mut command = command(&python, &["-m", "maturin", "build"].map(OsStr::new));
    command.args(["--profile", profile, "--interpreter"]).arg(&python).arg("--out").arg(&folder);
    // The wheel's stripping is for users; symbols help with a test that fails.
    run(command.current_dir(tidy::root().join("python")), "maturin")?;
    let entries = std::fs::read_dir(&folder).map_err(|error| error.to_string())?;
    let mut wheels = entries.flatten().map(|entry| entry.path());
    let found = wheels.find(|path| path.extension().is_some_and(|end| end == "whl"));
    found.ok_or_else(|| format!("maturin left no wheel in {}", folder.display()))
}

/// A virtual environment with some packages; gives its Python. Made once per list of packages.
fn environment(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let folder = home().join(name);
    let python = match cfg!(windows) {
        true => folder.join("Scripts/python.exe"),
        false => folder.join("bin/python"),
    };
    let stamp = folder.join("packages");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    let _ = std::fs::remove_dir_all(&folder);
    let system = system_python()?;
    let mut make = command(&system, &["-m", "venv"].map(OsStr::new));
    run(make.arg(&folder), "python3 -m venv")?;
    let mut install = command(&python, &["-m", "pip", "install", "--quiet"].map(OsStr::new));
    run(install.args(packages), "pip")?;
    std::fs::write(&stamp, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

/// `DFLOW_PYTHON`, or `python3`.
fn system_python() -> Result<PathBuf, String> {
    let python = std::env::var_os("DFLOW_PYTHON").unwrap_or_else(|| "python3".into());
    let check = "import sys, venv; sys.exit(sys.version_info < (3, 9))";
    let status = Command::new(&python).args(["-c", check]).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(python.into()),
        Ok(_) | Err(_) => Err(format!(
            "the Python package needs Python 3.9 or later with the module venv, and `{}` is not \
             that: install it, or name one in DFLOW_PYTHON",
            Path::new(&python).display()
        )),
    }
}

fn target() -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    chosen.unwrap_or_else(|| tidy::root().join("target"))
}

/// Where environments and wheels for tests are.
fn home() -> PathBuf {
    target().join("python")
}

fn command(python: &Path, args: Args<'_>) -> Command {
    let mut command = Command::new(python);
    // A build must not depend on what the user's shell has for Python.
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").args(args);
    command
}

fn run(command: &mut Command, what: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("{what} failed")),
        Err(error) => Err(format!("{what} cannot be started: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_pytest_are_read() {
        let count = |passed, failed, skipped| Some(Count { passed, failed, skipped });
        assert_eq!(counted("12 passed in 0.12s"), count(12, 0, 0));
        assert_eq!(counted("=== 1 failed, 12 passed, 1 error in 3.1s ==="), count(12, 2, 0));
        assert_eq!(counted("12 passed, 3 skipped in 0.12s"), count(12, 0, 3));
        assert_eq!(counted("3 skipped in 0.12s"), count(0, 0, 3));
        assert_eq!(counted("no tests ran in 0.01s"), None);
        assert_eq!(counted("collected 3 items"), None);
    }
}
