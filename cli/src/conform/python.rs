//! The Python that host scripts run on.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::Request;
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::term;

/// What scripts usually need beside our package.
const PACKAGES: [&str; 3] = ["numpy", "scipy", "matplotlib"];

/// A Python that has our package.
#[derive(Clone, Debug)]
pub(super) struct Python {
    /// The program.
    pub(super) program: String,
    /// What goes in front of `PYTHONPATH`: the modules of the vendor's names.
    pub(super) paths: String,
    /// The folder of the virtual environment's programs.
    pub(super) venv: Option<PathBuf>,
}

/// The Python of `--venv` (made if it is not there), `--python`, `DFLOW_PYTHON`, or `python3`.
///
/// # Errors
/// It cannot be started, made, or lacks what scripts need; the message says what to run.
pub(super) fn choose(request: &Request, interrupt: &Interrupt) -> Result<Python, Failure> {
    let named = request.python.as_ref().map(|path| path.display().to_string());
    let variable = || std::env::var("DFLOW_PYTHON").ok().filter(|name| !name.is_empty());
    let base = named.or_else(variable).unwrap_or_else(|| "python3".to_owned());
    let (program, venv) = match &request.venv {
        Some(folder) => {
            let programs = environment(folder, &base, request.wheel.as_deref(), interrupt)?;
            (programs.join("python").display().to_string(), Some(programs))
        }
        None => (base, None),
    };
    let paths = check(&program)?;
    Ok(Python { program, paths, venv })
}

/// Holds a Python against what scripts need; gives the paths of the vendor's names.
fn check(program: &str) -> Result<String, Failure> {
    let ask = "from dflow.tools import python_path; print(python_path(''))";
    let output = output(Command::new(program).args(["-c", ask]), program)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        let paths = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        return match paths.is_empty() {
            true => {
                Err(Failure::usage(format!("{program} has a package `dflow` that is not ours")))
            }
            false => check_build(program).map(|()| paths),
        };
    }
    let missing = |module: &str| said.contains(&format!("No module named '{module}"));
    let why = match (missing("numpy"), missing("dflow")) {
        (true, _) => format!("has no numpy: run `{program} -m pip install numpy scipy matplotlib`"),
        (false, true) => format!(
            "has no package dflow: run `cargo xtask wheel` and `{program} -m pip install \
             target/wheels/dflow-*.whl`"
        ),
        (false, false) => {
            let last =
                said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no reason given");
            format!("cannot load the package dflow: {last}")
        }
    };
    Err(Failure::usage(format!(
        "{program} {why}; or give `--venv DIR`, which is made with all of it"
    )))
}

/// The package must be of the build of this program: what one compiles the other runs.
fn check_build(program: &str) -> Result<(), Failure> {
    let ask = "import sys; from dflow import tools; sys.argv = ['cslc', '--version']; sys.exit(tools.cslc())";
    let output = output(Command::new(program).args(["-c", ask]), program)?;
    if output.status.success() && String::from_utf8_lossy(&output.stdout) == crate::cslc::version()
    {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the package dflow of {program} is of another build than this dflowc: run `cargo xtask wheel` and \
         install it there; or give `--venv DIR`, which does that"
    )))
}

/// Makes a virtual environment, or brings one up to date. Gives the folder of its programs.
fn environment(
    folder: &Path,
    base: &str,
    wheel: Option<&Path>,
    interrupt: &Interrupt,
) -> Result<PathBuf, Failure> {
    let wheel = match wheel {
        Some(file) if file.is_file() => file.to_path_buf(),
        Some(file) => return Err(Failure::usage(format!("{}: no such wheel", file.display()))),
        None => newest_wheel()?,
    };
    let folder = std::path::absolute(folder)
        .map_err(|error| Failure::usage(format!("{}: {error}", folder.display())))?;
    let programs = folder.join("bin");
    let python = programs.join("python");
    if !python.exists() {
        tell(&format!("making {}", folder.display()));
        run(Command::new(base).args(["-m", "venv"]).arg(&folder), base)?;
    }
    if interrupt.is_set() {
        return Err(Failure::interrupted());
    }
    let there = format!("import {}", PACKAGES.join(", "));
    let name = python.display().to_string();
    if !output(Command::new(&python).args(["-c", &there]), &name)?.status.success() {
        tell(&format!("installing {}", PACKAGES.join(", ")));
        run(pip(&python).args(PACKAGES), &name)?;
    }
    tell(&format!("installing {}", wheel.display()));
    run(pip(&python).args(["--force-reinstall", "--no-deps"]).arg(&wheel), &name)?;
    Ok(programs)
}

fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    command
}

/// The newest wheel of ours below `target/wheels`, here or beside this program.
fn newest_wheel() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe().ok();
    let beside =
        own.as_deref().and_then(|path| path.ancestors().nth(2)).map(|up| up.join("wheels"));
    let folders = [Some(PathBuf::from("target/wheels")), beside];
    let mut found = Vec::new();
    for folder in folders.into_iter().flatten() {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("dflow-") && name.ends_with(".whl") {
                let age = entry.metadata().and_then(|data| data.modified()).ok();
                found.push((age, entry.path()));
            }
        }
    }
    let newest = found.into_iter().max();
    newest.map(|(_, path)| path).ok_or_else(|| {
        Failure::usage(
            "there is no wheel below target/wheels: run `cargo xtask wheel`, or give --wheel FILE",
        )
    })
}

fn output(command: &mut Command, name: &str) -> Result<Output, Failure> {
    command.output().map_err(|error| {
        let why = crate::data::Input::reason(&error);
        Failure::usage(format!("{name} cannot be started: {why}; give --python PY or --venv DIR"))
    })
}

fn run(command: &mut Command, name: &str) -> Result<(), Failure> {
    let output = output(command, name)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    Err(Failure::program(format!("{name}: {last}")))
}

fn tell(what: &str) {
    term::complain(&format!("dflowc: {what}"));
}
