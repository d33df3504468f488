//! What code sees of one PE: memory, frames, descriptor registers, FIFOs, random numbers.
//!
//! Invariants: nothing of a suspended main thread is on the native stack; frames are laid out
//! as [`FuncPlan`] says; native code, whose locals are its own while it runs,
//! keeps no more of one than outlives the suspension. An untouched PE
//! owns no heap memory.

use dflow_ir::dsd::{Dsd, DsdKind, DsrRef};
use dflow_ir::func::Local;
use dflow_ir::inst::{DsrField, VectorOptions};
use dflow_ir::program::FifoId;
use dflow_ir::scalar::exception::Exception;

use super::dsrs::{DsrPlace, Dsrs};
use super::fifo::FifoState;
use super::memory::Memory;
use super::program::{FuncPlan, LoadedProgram};
use super::random::Generators;
use super::{CodeTrapKind, HostCall};
use crate::jit::prefetch;
use crate::rare::Rare;

/// Words of a frame before its locals: function and resume index, base of its stack slots,
/// stack pointer to go back to.
pub const FRAME_HEADER: u32 = 3;

/// Smallest frame in words; with [`FRAME_LIMIT`] it bounds the depth of calls.
pub const FRAME_MIN: u32 = 8;

/// Words that all frames of a main thread may take together.
pub const FRAME_LIMIT: u32 = 1 << 15;

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
    /// Extended register that holds the rest of the descriptor.
    pub xdsr: Option<u8>,
    /// Elements from the base to where it stands: of a ring, or after single steps.
    pub moved: u16,
    /// Single steps made.
    pub steps: u16,
}

impl Dsr {
    /// Why it is not for steps by elements of so many bytes, if it is not. A register that was never loaded is found
    /// at the first step.
    fn no_steps(&self, bytes: u16) -> Option<&'static str> {
        let Dsr { dsd, options, .. } = self;
        let (input, output) = match dsd.kind() {
            DsdKind::Unset => return None,
            DsdKind::FabIn => (true, false),
            DsdKind::FabOut => (false, true),
            DsdKind::Mem1d | DsdKind::Mem4d | DsdKind::Ring => (false, false),
        };
        let packs = dsd.packed() && bytes == 2 && !dsd.indexed() && !dsd.control();
        match () {
            () if !self.single_step => {
                Some("a register in `@map` that was loaded without `.single_step`")
            }
            () if options.asynchronous => {
                Some("a register in `@map` that was loaded with `.async`")
            }
            () if (input || output) && packs => {
                Some("a register in `@map` with a `.simd_mode` that packs: `.simd_off` does not")
            }
            () if input && dsd.transform() => {
                Some("a register in `@map` with `.control_transform`")
            }
            () if output && dsd.advance_switch() => {
                Some("a register in `@map` with `.advance_switch`")
            }
            () if output && dsd.zero().is_some() => Some("a register in `@map` with `.zero`"),
            () => None,
        }
    }
}

/// The part of a PE's state that code touches.
#[derive(Debug, PartialEq, Eq)]
pub struct PeState {
    pub(crate) memory: Memory,
    pub(crate) frames: Vec<u64>,
    /// Word offset of the innermost suspended frame.
    pub(crate) top: u32,
    /// PE stack pointer.
    pub(crate) sp: u64,
    pub(crate) dsrs: Dsrs,
    pub(crate) fifos: Rare<FifoState>,
    /// Registers that the extended registers belong to.
    pub(crate) xdsrs: Rare<Option<DsrRef>>,
    pub(crate) generators: Generators,
    /// Exceptions that stop the PE: bits of [`dflow_ir::scalar::exception`].
    pub(crate) unmasked: u8,
    ready: bool,
}

impl Clone for PeState {
    fn clone(&self) -> PeState {
        PeState {
            memory: self.memory.clone(),
            frames: self.frames.clone(),
            dsrs: self.dsrs.clone(),
            fifos: self.fifos.clone(),
            xdsrs: self.xdsrs.clone(),
            ..*self
        }
    }

    fn clone_from(&mut self, from: &PeState) {
        // What is large is copied to where it lies.
        let (mut memory, mut frames) =
            (std::mem::take(&mut self.memory), std::mem::take(&mut self.frames));
        memory.clone_from(&from.memory);
        frames.clone_from(&from.frames);
        let (dsrs, fifos, xdsrs) = (from.dsrs.clone(), from.fifos.clone(), from.xdsrs.clone());
        *self = PeState { memory, frames, dsrs, fifos, xdsrs, ..*from };
    }
}

impl PeState {
    /// The state of a PE that nothing has run on yet.
    pub fn new(program: &LoadedProgram) -> PeState {
        PeState {
            memory: Memory::new(program.memory_limit()),
            frames: Vec::new(),
            top: 0,
            sp: 0,
            dsrs: Dsrs::default(),
            fifos: Rare::default(),
            xdsrs: Rare::default(),
            generators: Generators::default(),
            unmasked: 0,
            ready: false,
        }
    }

    /// Writes the initial memory and registers, once. `slots` are this PE's slot values.
    #[inline]
    pub fn prepare(&mut self, program: &LoadedProgram, slots: &[u64]) {
        if !self.ready {
            self.make_ready(program, slots);
        }
    }

    #[cold]
    fn make_ready(&mut self, program: &LoadedProgram, slots: &[u64]) {
        self.ready = true;
        self.memory.start(program.image(), program.slab_bytes());
        if let Some(unwritten) = program.unwritten() {
            self.memory.track(unwritten);
        }
        for &(address, bytes, slot) in program.slot_patches() {
            let raw = slots[slot.as_u32() as usize].to_le_bytes();
            let at = address as usize;
            if let Some(field) = self.memory.bytes_mut().get_mut(at..at + bytes as usize) {
                field.copy_from_slice(&raw[..bytes as usize]);
            }
        }
        self.sp = program.stack().0;
        self.unmasked = program.unmasked();
        self.fifos = program.program().fifos.keys().map(|_| FifoState::default()).collect();
        if program.registers().count() != 0 {
            self.dsrs = Dsrs::new(program.registers());
            self.xdsrs = (0..program.target().xdsrs).map(|_| None).collect();
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
        self.dsrs.get(at).copied().unwrap_or_default()
    }

    /// The descriptor in a register that holds nothing else of consequence to an operation on memory.
    #[inline]
    pub(crate) fn plain_descriptor(&self, at: DsrPlace) -> Option<Dsd> {
        let dsr = self.dsrs.at(at)?;
        let moves = dsr.save_address || dsr.single_step || dsr.moved != 0;
        let plain = !moves && !dsr.options.tells() && dsr.index.is_none() && dsr.xdsr.is_none();
        plain.then_some(dsr.dsd)
    }

    /// Loads a register; it takes its extended register from whoever had it.
    pub(crate) fn load_dsr(&mut self, at: DsrRef, dsr: Dsr) {
        if let Some(owner) = dsr.xdsr.and_then(|number| self.xdsrs.get_mut(usize::from(number))) {
            *owner = Some(at);
        }
        self.store_dsr(at, dsr);
    }

    /// Writes back a register that moves on.
    pub(crate) fn store_dsr(&mut self, at: DsrRef, dsr: Dsr) {
        if let Some(register) = self.dsrs.get_mut(at) {
            *register = dsr;
        }
    }

    /// Whether the extended register of a register was loaded for another one since.
    pub(crate) fn lost_xdsr(&self, at: DsrRef, dsr: &Dsr) -> bool {
        let owner = dsr.xdsr.and_then(|number| self.xdsrs.get(usize::from(number)));
        owner.is_some_and(|owner| *owner != Some(at))
    }

    /// Changes a field of the descriptor in a register. A ring begins at its new base.
    pub(crate) fn set_dsr(
        &mut self,
        at: DsrRef,
        field: DsrField,
        value: u16,
    ) -> Result<(), CodeTrapKind> {
        let dsr = self.dsr(at);
        if let (DsrField::Steps, Some(why)) = (field, dsr.no_steps(value)) {
            return Err(CodeTrapKind::BadVector(why));
        }
        let changed = match field {
            DsrField::Base => Dsr { dsd: dsr.dsd.with_base(value), moved: 0, ..dsr },
            DsrField::Steps if dsr.save_address => Dsr { steps: 0, ..dsr },
            DsrField::Steps => Dsr { moved: 0, steps: 0, ..dsr },
            DsrField::Extent => Dsr { dsd: dsr.dsd.with_extent(value), ..dsr },
        };
        self.store_dsr(at, changed);
        Ok(())
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

    /// Has the host fetch the innermost frame, ahead of its use.
    pub(crate) fn fetch(&self) {
        let frame = self.frames.get(self.top as usize..).unwrap_or_default();
        frame.chunks(8).take(4).filter_map(|line| line.first()).for_each(prefetch);
    }

    /// Function and resume index of the innermost suspended frame, as the frame holds them.
    pub(crate) fn suspended_word(&self) -> Option<u64> {
        self.frames.get(self.top as usize).copied()
    }

    /// Value of a local of the innermost suspended frame.
    pub fn suspended_local(&self, plan: &FuncPlan, local: Local) -> Option<u64> {
        self.frames.get((self.top + plan.word(local)) as usize).copied()
    }

    /// Next pseudo-random word of the active generator.
    pub(crate) fn random(&mut self) -> u16 {
        self.generators.next()
    }

    /// What came of an operation that raised these exceptions.
    ///
    /// # Errors
    /// One of them is not masked.
    #[inline]
    pub(crate) fn raise(&self, raised: u8) -> Result<(), CodeTrapKind> {
        match Exception::first(raised & self.unmasked) {
            None => Ok(()),
            Some(exception) => Err(CodeTrapKind::Exception(exception)),
        }
    }

    /// Makes room for `words` frame words in all.
    pub(crate) fn reserve_frames(&mut self, words: u32) {
        if self.frames.len() < words as usize {
            self.frames.resize(words as usize, 0);
        }
    }
}

/// Writes the results of a host operation into the suspended frame, before the resume.
/// `values` are raw, one per local that the call defines.
pub fn finish_host_call(
    program: &LoadedProgram,
    state: &mut PeState,
    call: &HostCall,
    values: &[u64],
) {
    let plan = program.plan(call.func);
    for (&local, &value) in call.dsts.iter().zip(values) {
        let at = (state.top + plan.word(local)) as usize;
        if let Some(word) = state.frames.get_mut(at) {
            *word = value;
        }
    }
}
