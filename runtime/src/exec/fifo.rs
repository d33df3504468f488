//! FIFOs over a PE's memory.
//!
//! Invariants: `len` is at most the capacity; elements live in the program's buffer, so code
//! that reads the buffer sees them.

use dflow_ir::program::Fifo;

use super::CodeTrapKind;
use super::memory::Memory;

/// State of one FIFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FifoState {
    /// Index of the oldest element.
    pub head: u16,
    /// Elements held.
    pub len: u16,
    /// Length set for the popping side (0: the other operand decides).
    pub read_length: u16,
    /// Length set for the pushing side.
    pub write_length: u16,
    /// A push found it full since the last pop that told so.
    pub hit_full: bool,
    /// A pop found it empty since the last push that told so.
    pub hit_empty: bool,
}

impl FifoState {
    /// Appends an element; the task to activate, if any. The caller has checked for room.
    pub(crate) fn push(
        &mut self,
        fifo: &Fifo,
        buffer: u32,
        memory: &mut Memory,
        value: u32,
    ) -> Result<Option<u8>, CodeTrapKind> {
        let index = (u32::from(self.head) + u32::from(self.len)) % u32::from(fifo.capacity.max(1));
        let at = buffer + index * u32::from(fifo.element);
        memory.store(u64::from(at), u32::from(fifo.element), u64::from(value))?;
        self.len += 1;
        Ok(if std::mem::take(&mut self.hit_empty) { fifo.activate_push } else { None })
    }

    /// Takes the oldest element; it, and the task to activate. The caller has checked that
    /// there is one.
    pub(crate) fn pop(
        &mut self,
        fifo: &Fifo,
        buffer: u32,
        memory: &mut Memory,
    ) -> Result<(u32, Option<u8>), CodeTrapKind> {
        let at = buffer + u32::from(self.head) * u32::from(fifo.element);
        let value = memory.load(u64::from(at), u32::from(fifo.element))? as u32;
        self.head = if self.head + 1 >= fifo.capacity { 0 } else { self.head + 1 };
        self.len -= 1;
        Ok((value, if std::mem::take(&mut self.hit_full) { fifo.activate_pop } else { None }))
    }
}
