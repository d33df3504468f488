//! Variables of single PEs, read from outside.
//!
//! Absences first: nothing here changes the machine; it is for inspection, not for programs.

use dflow_ir::mesh::Coord;

use super::session::Session;
use super::{HostError, Mesh};

impl<M: Mesh> Session<M> {
    /// The bytes of a variable of a PE, by the name it has in the memory map; also of an exported
    /// pointer by the name of the variable.
    ///
    /// # Errors
    /// The PE lies outside the rectangle, or its program has no such variable.
    pub fn read_variable(&mut self, at: Coord, name: &str) -> Result<Vec<u8>, HostError> {
        self.symbols.region(at.x.into(), at.y.into(), 1, 1)?;
        let missing = || HostError::NoVariable { name: name.to_owned(), at };
        let (address, bytes) = self.symbols.variable(at, name).ok_or_else(missing)?;
        self.mesh.read(at, address, bytes).ok_or_else(missing)
    }

    /// The bytes of a PE's memory from `address` on; `None` outside the rectangle or the memory.
    pub fn read_memory(&mut self, at: Coord, address: u32, bytes: u32) -> Option<Vec<u8>> {
        self.mesh.read(at, address, bytes)
    }
}
