//! The commands that scripts find on their path: `cslc` is this program, `cs_python` the chosen Python.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::find::HARNESS_MACRO;
use super::python::Python;
use crate::exit::Failure;

/// A folder with the commands, and the environment that goes with them.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    folder: PathBuf,
    python_folder: Option<PathBuf>,
}

/// Where the exit codes of `cslc` are noted, a line each.
pub(super) const CODES: &str = "DFLOW_CONFORM_CODES";
/// Where the runtime notes what a run cost.
pub(super) const STATS: &str = "DFLOW_STATS_FILE";
/// Threads of a machine.
const THREADS: &str = "DFLOW_THREADS";

impl Tools {
    /// Writes the commands into `folder`.
    ///
    /// # Errors
    /// They cannot be written, or this program does not know where it is.
    pub(super) fn make(folder: &Path, python: &Python) -> Result<Tools, Failure> {
        let fault =
            |error: std::io::Error| Failure::program(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(fault)?;
        let program = quoted(&python.program);
        let paths = quoted(&python.paths);
        write(folder, "cslc", &compiler(&program)?).map_err(fault)?;
        let python_text = format!(
            "#!/bin/sh\nPYTHONPATH={paths}\"${{PYTHONPATH:+:$PYTHONPATH}}\"\nexport PYTHONPATH\nexec {program} \"$@\"\n"
        );
        write(folder, "cs_python", &python_text).map_err(fault)?;
        let aliases =
            format!("shopt -s expand_aliases\nalias {HARNESS_MACRO}='cs_python run.py'\n");
        write(folder, "aliases", &aliases).map_err(fault)?;
        let python_folder = python.venv.clone();
        Ok(Tools { folder: folder.to_path_buf(), python_folder })
    }

    /// The variables that a script is run with.
    pub(super) fn environment(&self, codes: &Path, stats: &Path) -> Vec<(&str, OsString)> {
        let before = std::env::var_os("PATH").unwrap_or_default();
        let own = [Some(self.folder.clone()), self.python_folder.clone()];
        let paths = own.into_iter().flatten().chain(std::env::split_paths(&before));
        let mut all = vec![
            (CODES, codes.into()),
            (STATS, stats.into()),
            ("BASH_ENV", self.folder.join("aliases").into()),
            // A script that draws has no screen.
            ("MPLBACKEND", "Agg".into()),
        ];
        // Scripts run beside each other; one has a thread, whatever it asks for.
        if std::env::var_os(THREADS).is_none() {
            all.push((THREADS, "1".into()));
        }
        if let Ok(paths) = std::env::join_paths(paths) {
            all.push(("PATH", paths));
        }
        all
    }
}

/// The script `cslc`: this program; in the Python package, that of the chosen Python.
fn compiler(python: &str) -> Result<String, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure::program(format!("this program does not know where it is: {error}"))
    })?;
    let is_ours = own.file_stem().is_some_and(|stem| stem == "dflowc");
    let call = match is_ours {
        true => format!("{} cslc", quoted(&own.to_string_lossy())),
        false => format!("{python} -c 'import sys, dflow.tools; sys.exit(dflow.tools.cslc())'"),
    };
    Ok(format!(
        "#!/bin/sh\n{call} \"$@\"\ncode=$?\n[ -z \"${CODES}\" ] || echo $code >> \"${CODES}\"\nexit $code\n"
    ))
}

/// A word of the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn write(folder: &Path, name: &str, text: &str) -> std::io::Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, text)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}
