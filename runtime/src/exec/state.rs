//! What code sees of one PE: memory, frames, descriptor registers, FIFOs, random numbers.
//!
//! Invariants: nothing of a suspended main thread is on the native stack; frames are laid out
//! as [`FuncPlan`](super::program::FuncPlan) says, the same for every engine. An untouched PE
//! owns no heap memory.

use dflow_ir::dsd::{Dsd, DsrFile, DsrRef};
use dflow_ir::func::Local;
use dflow_ir::inst::VectorOptions;
use dflow_ir::program::FifoId;

use super::fifo::FifoState;
use super::memory::Memory;
use super::program::LoadedProgram;

/// Words of a frame before its locals: function and resume index, base of its stack slots,
/// stack pointer to go back to.
pub const FRAME_HEADER: u32 = 3;

/// Smallest frame in words; with [`FRAME_LIMIT`] it bounds the depth of calls.
pub const FRAME_MIN: u32 = 8;

/// Words that all frames of a main thread may take together.
pub const FRAME_LIMIT: u32 = 1 << 15;

const PRNG_MASK: u32 = (1 << 23) - 1;
const PRNG_SEED: u32 = 0xdead_beef;

/// A descriptor register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dsr {
    /// The descriptor.
    pub dsd: Dsd,
    /// Settings of the load; its `index` is a local and void here.
    pub options: VectorOptions,
    /// Value of `.index` at the load.
    pub index: Option<u16>,
    /// The base moves past what an operation covered.
    pub save_address: bool,
    /// Loaded for `@map`.
    pub single_step: bool,
}

/// The part of a PE's state that code touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeState {
    pub(crate) memory: Memory,
    pub(crate) frames: Vec<u64>,
    /// Word offset of the innermost suspended frame.
    pub(crate) top: u32,
    /// PE stack pointer.
    pub(crate) sp: u64,
    pub(crate) dsrs: Vec<Dsr>,
    pub(crate) fifos: Vec<FifoState>,
    pub(crate) prng: u32,
    ready: bool,
}

impl PeState {
    /// The state of a PE that nothing has run on yet.
    pub fn new(program: &LoadedProgram) -> PeState {
        PeState {
            memory: Memory::new(program.memory_limit()),
            frames: Vec::new(),
            top: 0,
            sp: 0,
            dsrs: Vec::new(),
            fifos: Vec::new(),
            prng: PRNG_SEED & PRNG_MASK,
            ready: false,
        }
    }

    /// Writes the initial memory and registers, once. `slots` are this PE's slot values.
    pub fn prepare(&mut self, program: &LoadedProgram, slots: &[u64]) {
        if self.ready {
            return;
        }
        self.ready = true;
        self.memory.start(program.image(), program.slab_bytes());
        for &(address, bytes, slot) in program.slot_patches() {
            let raw = slots[slot.as_u32() as usize].to_le_bytes();
            let at = address as usize;
            if let Some(field) = self.memory.bytes_mut().get_mut(at..at + bytes as usize) {
                field.copy_from_slice(&raw[..bytes as usize]);
            }
        }
        self.sp = program.stack().0;
        self.fifos = vec![FifoState::default(); program.program().fifos.len()];
        if program.uses_dsrs() {
            self.dsrs = vec![Dsr::default(); DsrFile::ALL.len() * REGISTERS];
            for &(at, dsr) in program.initial_dsrs() {
                self.load_dsr(at, dsr);
            }
        }
    }

    /// The memory; empty until [`PeState::prepare`].
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The memory; empty until [`PeState::prepare`].
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// A register; one that does not exist is unset.
    pub fn dsr(&self, at: DsrRef) -> Dsr {
        self.dsrs.get(register(at)).copied().unwrap_or_default()
    }

    pub(crate) fn load_dsr(&mut self, at: DsrRef, dsr: Dsr) {
        if let Some(register) = self.dsrs.get_mut(register(at)) {
            *register = dsr;
        }
    }

    pub(crate) fn set_fifo_length(&mut self, fifo: FifoId, write_side: bool, length: u16) {
        let Some(held) = self.fifos.get_mut(fifo.as_u32() as usize) else {
            return;
        };
        if write_side {
            held.write_length = length;
        } else {
            held.read_length = length;
        }
    }

    /// Value of a local of the innermost suspended frame.
    pub fn suspended_local(&self, local: Local) -> Option<u64> {
        self.frames.get((self.top + FRAME_HEADER + local.as_u32()) as usize).copied()
    }

    /// Next pseudo-random word: the generator `x^23 + x^18 + 1`, 128 steps per use.
    pub(crate) fn random(&mut self) -> u16 {
        let mut bits = self.prng;
        for _ in 0..128 {
            let new = (bits >> 22 ^ bits >> 17) & 1;
            bits = (bits << 1 | new) & PRNG_MASK;
        }
        self.prng = bits;
        bits as u16
    }

    /// Makes room for `words` frame words in all.
    pub(crate) fn reserve_frames(&mut self, words: u32) {
        if self.frames.len() < words as usize {
            self.frames.resize(words as usize, 0);
        }
    }
}

/// Registers per file.
pub(crate) const REGISTERS: usize = 16;

fn register(at: DsrRef) -> usize {
    let file = match at.file {
        DsrFile::Dest => 0,
        DsrFile::Src0 => REGISTERS,
        DsrFile::Src1 => 2 * REGISTERS,
    };
    file + usize::from(at.index).min(REGISTERS - 1)
}

/// Writes the results of a host operation into the suspended frame, before the resume.
/// `values` are raw, one per local of `dsts`.
pub fn finish_host_call(state: &mut PeState, dsts: &[Local], values: &[u64]) {
    for (local, &value) in dsts.iter().zip(values) {
        let at = (state.top + FRAME_HEADER + local.as_u32()) as usize;
        if let Some(word) = state.frames.get_mut(at) {
            *word = value;
        }
    }
}
