//! From Rust's errors to the exceptions of `dflow.errors`.

use dflow_ir::image::Image;
use dflow_ir::loc::Loc;
use dflow_runtime::host::Failure;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

const MODULE: &str = "dflow.errors";

/// An exception of the package, made from its arguments.
fn raise<'py, A>(py: Python<'py>, class: &str, arguments: A) -> PyErr
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    A::Error: Into<PyErr>,
{
    let arguments = match arguments.into_pyobject(py) {
        Ok(arguments) => arguments,
        Err(error) => return error.into(),
    };
    let made = py
        .import(MODULE)
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The host was asked for what it cannot do.
pub(crate) fn host(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "HostError", (message,))
}

/// A limit ended a run, or what comes before it.
pub(crate) fn limit(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "LimitReached", (message,))
}

/// A program that does not compile; `report` are its diagnostics.
pub(crate) fn compile(py: Python<'_>, message: &str, report: &str) -> PyErr {
    raise(py, "CompileError", (message, report))
}

/// A fault of ours.
pub(crate) fn internal(py: Python<'_>) -> PyErr {
    raise(py, "Error", ("internal error: please report this with the program that shows it",))
}

/// How a run failed; `odd` are lines of what was odd before. Of a limit it is all that is to be told.
pub(crate) fn failure(py: Python<'_>, image: &Image, failure: &Failure, odd: &str) -> PyErr {
    match failure {
        Failure::Host { error, loc } => host(py, &format!("{}{error}", place(image, *loc))),
        Failure::HostTrap(trap) => {
            raise(py, "Trap", (format!("{}{failure}", place(image, trap.loc)),))
        }
        Failure::Trap(trap) => {
            raise(py, "Trap", (format!("{}{trap}{odd}", place(image, trap.place())),))
        }
        Failure::Deadlock(deadlock) => {
            let report = format!("{}{odd}", deadlock.text(&image.files));
            raise(py, "Deadlock", (format!("deadlock: {report}"), report))
        }
        Failure::Limit(limit) if odd.is_empty() => self::limit(py, &limit.to_string()),
        Failure::Limit(_) => limit(py, odd),
        Failure::Broken(_) => raise(py, "Error", (failure.to_string(),)),
    }
}

/// `path:line:column: `, or nothing if the place is not known.
fn place(image: &Image, loc: Loc) -> String {
    let file = image.files.get(loc.file as usize);
    match (loc.line, file) {
        (0, _) | (_, None) => String::new(),
        (line, Some(file)) => format!("{file}:{line}:{}: ", loc.column),
    }
}
