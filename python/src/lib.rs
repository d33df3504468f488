//! `dflow._native`: what the Python package needs from Rust.
//!
//! Elements travel as bytes, little endian, row by row: shapes, orders and types of arrays are
//! the package's affair (`python/dflow`). Invariants: the interpreter is free while the mesh
//! runs; a signal ends a run; no call can panic over what a user gives.

#![forbid(unsafe_code)]

mod attend;
mod errors;
mod layout;
mod life;
mod machine;
mod program;
mod state;
mod tools;

use pyo3::pymodule;

/// The native half of the package `dflow`.
#[pymodule]
#[pyo3(name = "_native")]
mod native {
    #[pymodule_export]
    use crate::layout::Layout;
    #[pymodule_export]
    use crate::machine::Machine;
    #[pymodule_export]
    use crate::program::{Program, compile, read_artifact, read_image};
    #[pymodule_export]
    use crate::state::{State, read_state};
    #[pymodule_export]
    use crate::tools::{cslc, dflowc};
}
