//! The memory of a machine that has stopped, read from its file.

use std::path::PathBuf;

use dflow_cli::artifact;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;

/// A state file.
#[pyclass(frozen, module = "dflow._native")]
pub(crate) struct State(artifact::State);

#[pymethods]
impl State {
    /// Columns and rows of PEs.
    #[getter]
    fn size(&self) -> (u16, u16) {
        self.0.size
    }

    /// Where on the fabric the first PE is.
    #[getter]
    fn offsets(&self) -> (u32, u32) {
        self.0.offsets
    }

    /// Cycles that the run took.
    #[getter]
    fn cycles(&self) -> u64 {
        self.0.cycles
    }

    /// Names of the variables of a PE, by its place on the fabric.
    fn names(&self, x: u32, y: u32) -> Option<Vec<String>> {
        let at = self.0.on_fabric(x, y)?;
        let index = usize::from(at.y) * usize::from(self.0.size.0) + usize::from(at.x);
        let (program, _) = self.0.pes.get(index)?;
        let symbols = &self.0.programs.get((*program)? as usize)?.symbols;
        Some(symbols.iter().map(|symbol| symbol.name.clone()).collect())
    }

    /// The bytes of a variable of a PE, by its place on the fabric; nothing if there is none, or if
    /// several have the name.
    fn read<'py>(
        &self,
        py: Python<'py>,
        x: u32,
        y: u32,
        name: &str,
    ) -> Option<Bound<'py, PyBytes>> {
        let at = self.0.on_fabric(x, y)?;
        let symbol = self.0.symbol(at, name)?;
        let bytes = self.0.memory(at, symbol.address, symbol.size)?;
        Some(PyBytes::new(py, &bytes))
    }

    /// Bytes of a PE's memory, by its place on the fabric; nothing if there is no PE.
    fn memory<'py>(
        &self,
        py: Python<'py>,
        x: u32,
        y: u32,
        address: u32,
        bytes: u16,
    ) -> Option<Bound<'py, PyBytes>> {
        let at = self.0.on_fabric(x, y)?;
        let bytes = self.0.memory(at, address, bytes.into())?;
        Some(PyBytes::new(py, &bytes))
    }
}

/// Reads the state that a run left in the folder of its program.
///
/// # Errors
/// It is not there or damaged.
#[pyfunction]
pub(crate) fn read_state(py: Python<'_>, path: PathBuf) -> PyResult<State> {
    let path = if path.is_dir() { artifact::state_path(&path) } else { path };
    let state = py.detach(|| artifact::read_state(&path));
    state.map(State).map_err(|error| errors::host(py, &error.to_string()))
}
