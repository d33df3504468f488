//! The command lines of the package: the very same as the native tools.

use std::ffi::OsString;

use pyo3::prelude::*;

/// `dflowc`; gives the exit code. The first argument is the tool's name.
#[pyfunction]
pub(crate) fn dflowc(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| dflow_cli::dflowc::main(args))
}

/// `cslc`; gives the exit code. The first argument is the tool's name.
#[pyfunction]
pub(crate) fn cslc(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| dflow_cli::cslc::main(args))
}
