//! Finding inputs and making trials of them.

use std::path::{Path, PathBuf};

use crate::header::{self, Header};
use crate::operations;
use crate::stages::{self, Stage};
use crate::world::{Folder, repository};

/// Files that make the folder they stand in one program.
const MAINS: [&str; 2] = ["layout.csl", "main.dfl"];
/// Endings of inputs.
const ENDINGS: [&str; 3] = ["csl", "dfl", "ir"];

/// An input with its header.
#[derive(Clone, Debug)]
pub struct Case {
    /// Folder that paths are relative to: the suite's, or the examples'.
    pub root: PathBuf,
    /// Path of the input below it, with `/`.
    pub path: String,
    /// The input's text.
    pub text: String,
    /// What to do.
    pub header: Header,
}

impl Case {
    /// The input's path on disk.
    pub fn file(&self) -> PathBuf {
        self.root.join(&self.path)
    }

    /// The files around it.
    pub fn world(&self) -> Folder {
        Folder(self.root.clone())
    }
}

/// Something to run.
pub struct Trial {
    /// Its name: the input's path and the stage.
    pub name: String,
    work: Work,
}

enum Work {
    Stage(Box<Case>, Stage),
    Operation(dflow_ir::dsd::op::DsdOp),
    Fault(String),
}

impl Trial {
    /// Runs it.
    ///
    /// # Errors
    /// Why it failed.
    pub fn run(&self) -> Result<(), String> {
        match &self.work {
            Work::Stage(case, stage) => on_deep_stack(|| stage(case)),
            Work::Operation(op) => on_deep_stack(|| operations::check(*op)),
            Work::Fault(fault) => Err(fault.clone()),
        }
    }
}

/// Every trial: inputs of the suite, the examples and the libraries, and each vector operation.
pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for folder in ["tests/suite", "examples", "stdlib/tests"] {
        let root = repository().join(folder);
        let mut inputs = Vec::new();
        if let Err(fault) = find(&root, &root, &mut inputs) {
            trials.push(Trial { name: format!("{folder} [folder]"), work: Work::Fault(fault) });
        }
        inputs.sort();
        trials.extend(inputs.iter().flat_map(|path| trials_of(&root, folder, path)));
    }
    trials.extend(
        operations::all()
            .map(|op| Trial { name: format!("operations/{op}"), work: Work::Operation(op) }),
    );
    trials
}

fn trials_of(root: &Path, folder: &str, path: &str) -> Vec<Trial> {
    let shown = path.strip_prefix("./").unwrap_or(path);
    let prefix = match folder {
        "tests/suite" => String::new(),
        _ => format!("{folder}/"),
    };
    let name = |stage: &str| format!("{prefix}{shown} [{stage}]");
    let fault = |text: String| vec![Trial { name: name("header"), work: Work::Fault(text) }];
    let text = match std::fs::read(root.join(path)) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return fault(error.to_string()),
    };
    let header = match header::parse(&text) {
        Ok(header) => header,
        Err(message) => return fault(message),
    };
    let mut names = header.stages.clone();
    if path.starts_with("diagnostics/") && !names.iter().any(|stage| stage == "rendered") {
        names.push("rendered".into());
    }
    let case = Case { root: root.to_path_buf(), path: path.to_owned(), text, header };
    names
        .iter()
        .map(|stage| match stages::by_name(stage) {
            Some(work) => {
                Trial { name: name(stage), work: Work::Stage(Box::new(case.clone()), work) }
            }
            None => {
                let text = format!("unknown stage `{stage}`: there are {}", stages::names());
                Trial { name: name(stage), work: Work::Fault(text) }
            }
        })
        .collect()
}

/// Inputs below a folder. A folder with a main file is one input.
///
/// # Errors
/// A folder cannot be read.
fn find(root: &Path, folder: &Path, inputs: &mut Vec<String>) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(fail)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>();
    let paths = paths.map_err(fail)?;
    let relative = |path: &Path| {
        let inner = path.strip_prefix(root).unwrap_or(path);
        inner.to_string_lossy().replace('\\', "/")
    };
    if folder != root
        && let Some(main) = MAINS.iter().map(|name| folder.join(name)).find(|path| path.is_file())
    {
        inputs.push(relative(&main));
        return Ok(());
    }
    for path in paths {
        if path.is_dir() {
            find(root, &path, inputs)?;
        } else if path.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known)) {
            inputs.push(relative(&path));
        }
    }
    Ok(())
}

/// Test threads have small stacks; the compiler may recurse as deep as its limits allow.
fn on_deep_stack(work: impl FnOnce() -> Result<(), String> + Send) -> Result<(), String> {
    const STACK: usize = 256 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        match thread {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err("panicked".into())),
            Err(error) => Err(error.to_string()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_read_is_a_fault() {
        let root = repository().join("tests/suite/no such folder");
        let fault = find(&root, &root, &mut Vec::new()).expect_err("no folder");
        assert!(fault.contains("no such folder cannot be read"), "{fault}");
    }
}
