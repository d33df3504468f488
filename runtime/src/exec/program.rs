//! A linked program, ready to run on any number of PEs.
//!
//! Invariants: made from a validated program; immutable; everything an engine asks per
//! instruction (cost, resume index, frame layout) is computed here once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cranelift_entity::{PrimaryMap, SecondaryMap};
use dflow_ir::cost::{self, FuncCost, Slots};
use dflow_ir::dsd::DsrRef;
use dflow_ir::func::{Block, Func, Inst, Local};
use dflow_ir::image::MemoryMap;
use dflow_ir::inst::{FlagOp, InstData, Operand};
use dflow_ir::loc::Loc;
use dflow_ir::program::{FuncId, GlobalId, Profile, Program, SigId, SlotId, Symbol};
use dflow_ir::suspend::{FuncSuspension, PointAt, Suspension};
use dflow_ir::target::Target;
use dflow_ir::ty::Ty;
use indexmap::IndexSet;

use super::dsrs::DsrSet;
use super::fifo::FifoState;
use super::memory::Unwritten;
use super::odd::{Odd, Owners};
use super::state::{Dsr, FRAME_HEADER, FRAME_MIN};
use super::vector::{VectorSites, vectors_of};
use crate::profile::{During, Phases, Work};

/// Most bytes a host program's memory may grow to, unless told otherwise.
pub const HOST_MEMORY: u64 = 4 << 30;

/// Stack of a host program, in bytes.
const HOST_STACK: u32 = 1 << 20;

/// A place inside a function: an instruction of a block, or (one past the last) its terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeAt {
    /// The block.
    pub block: Block,
    /// Index into the block's instructions.
    pub index: u32,
}

/// Layout and costs of one function.
#[derive(Debug)]
pub struct FuncPlan {
    /// Words of its frame: header, then one per local.
    pub frame_words: u32,
    /// Of these, the first ones, which a suspension keeps.
    pub kept_words: u32,
    /// Word of each local: those that live across a suspension come first.
    words: Vec<u32>,
    /// Bytes of its stack slots together.
    pub stack_bytes: u32,
    /// Alignment of its stack area.
    pub stack_align: u32,
    /// Byte offset of each stack slot in that area.
    pub slot_offsets: Vec<u32>,
    /// Whether it may suspend.
    pub may_suspend: bool,
    /// Resume index of each instruction, 0 if it is no suspension point.
    pub resume_inst: SecondaryMap<Inst, u32>,
    /// Resume index of each block's end, 0 likewise.
    pub resume_end: SecondaryMap<Block, u32>,
    /// Place of each resume index, from 1.
    pub places: Vec<CodeAt>,
    /// Number of each vector instruction among those of the function.
    pub(crate) vectors: SecondaryMap<Inst, u32>,
    /// Issue slots of each instruction, without a vector operation's elements.
    pub inst_cost: SecondaryMap<Inst, Slots>,
    /// Issue slots of each terminator.
    pub end_cost: SecondaryMap<Block, Slots>,
    /// What a branch costs in addition that does not go on with the block that follows.
    pub taken: Slots,
    /// Number of its signature among all of the program: equal signatures, equal numbers.
    pub signature: u32,
}

/// A program with its addresses, frame layouts and costs.
#[derive(Debug)]
pub struct LoadedProgram {
    id: u64,
    program: Program,
    target: &'static Target,
    suspension: Suspension,
    funcs: PrimaryMap<FuncId, FuncPlan>,
    call_signatures: PrimaryMap<SigId, u32>,
    globals: PrimaryMap<GlobalId, u32>,
    owners: Owners,
    /// Reads of what nothing has written are told.
    tracked: bool,
    /// Who is told what the threads are doing.
    phases: Option<Arc<Phases>>,
    image: Vec<u8>,
    slot_patches: Vec<(u32, u32, SlotId)>,
    stack: (u64, u64),
    memory_limit: u64,
    initial_dsrs: Vec<(DsrRef, Dsr)>,
    /// Descriptor registers that a PE keeps: those that an instruction names.
    registers: DsrSet,
    vectors: VectorSites,
    raises: bool,
    args_len: usize,
}

impl LoadedProgram {
    /// Links a validated PE program at the addresses of its memory map.
    pub fn new(program: Program, memory: &MemoryMap, target: &'static Target) -> LoadedProgram {
        let mut globals = PrimaryMap::with_capacity(program.globals.len());
        for id in program.globals.keys() {
            let place = memory.globals.iter().find(|(global, _)| *global == id);
            globals.push(place.map_or(0, |&(_, address)| address));
        }
        let limit = u64::from(target.memory);
        LoadedProgram::build(program, globals, memory.data_end, memory.stack, limit, target)
    }

    /// Lays out and links a validated host program.
    pub fn host(program: Program, target: &'static Target) -> LoadedProgram {
        let mut globals = PrimaryMap::with_capacity(program.globals.len());
        let mut end = 64u32;
        for global in program.globals.values() {
            end = end.next_multiple_of(global.align.clamp(1, 1 << 16));
            globals.push(end);
            end = end.saturating_add(global.size);
        }
        LoadedProgram::build(program, globals, end, HOST_STACK, HOST_MEMORY, target)
    }

    fn build(
        program: Program,
        globals: PrimaryMap<GlobalId, u32>,
        data_end: u32,
        stack: u32,
        memory_limit: u64,
        target: &'static Target,
    ) -> LoadedProgram {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let suspension = Suspension::analyze(&program);
        let mut costs = cost::program(&program, target);
        let mut signatures = IndexSet::new();
        let funcs = program
            .funcs
            .iter()
            .map(|(id, func)| {
                let number = signatures.insert_full(func.signature()).0 as u32;
                FuncPlan::new(
                    func,
                    suspension.may_suspend[id],
                    &suspension.funcs[id],
                    number,
                    std::mem::take(&mut costs[id]),
                )
            })
            .collect();
        let call_signatures = program
            .signatures
            .values()
            .map(|signature| signatures.insert_full(signature.clone()).0 as u32)
            .collect();
        let registers = registers(&program);
        let stack_start = u64::from(data_end.next_multiple_of(8));
        let owners = match program.profile {
            Profile::Pe => Owners::new(&program, |global| globals[global]),
            Profile::Host => Owners::default(),
        };
        LoadedProgram {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            image: initial_image(&program, &globals, data_end),
            slot_patches: slot_patches(&program, &globals),
            initial_dsrs: initial_dsrs(&program, &globals),
            vectors: VectorSites::new(&program, registers),
            registers,
            raises: raises(&program),
            args_len: args_len(&program),
            stack: (stack_start, stack_start + u64::from(stack)),
            program,
            target,
            suspension,
            funcs,
            call_signatures,
            globals,
            owners,
            tracked: false,
            phases: None,
            memory_limit,
        }
    }

    /// The same program with another bound on its memory (host programs).
    #[must_use]
    pub fn with_memory_limit(mut self, bytes: u64) -> LoadedProgram {
        self.memory_limit = bytes;
        self
    }

    /// The same program, whose vector operations and copies are told as such to who looks where the time goes.
    #[must_use]
    pub(crate) fn with_phases(mut self, phases: Option<Arc<Phases>>) -> LoadedProgram {
        self.phases = phases;
        self
    }

    /// Code of the program does another kind of work for as long as what is given lives.
    #[inline]
    pub(crate) fn during(&self, work: Work, around: Work) -> Option<During<'_>> {
        During::within(self.phases.as_deref(), work, around)
    }

    /// A number that no other loaded program of this process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The IR.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The target it runs on.
    pub fn target(&self) -> &'static Target {
        self.target
    }

    /// Where it may suspend.
    pub fn suspension(&self) -> &Suspension {
        &self.suspension
    }

    /// Layout and costs of a function.
    pub fn plan(&self, func: FuncId) -> &FuncPlan {
        &self.funcs[func]
    }

    /// Source place of a suspended frame, from its first word: that of the instruction, or of the last
    /// one before the end of a block. A block without any, as the body of an empty loop, has the place where it ends,
    /// and a function of which nothing else is known that of its declaration.
    pub(crate) fn suspended_at(&self, word: u64) -> Option<Loc> {
        let id = FuncId::from_u32((word >> 32) as u32);
        let (func, plan) = (self.program.funcs.get(id)?, self.funcs.get(id)?);
        let CodeAt { block, index } = *plan.places.get((word as u32).checked_sub(1)? as usize)?;
        let block = func.blocks.get(block)?;
        let until = block.insts.get(..=index as usize).unwrap_or(&block.insts);
        let locs = until.iter().rev().map(|&inst| func.locs[inst]);
        locs.chain([block.loc, func.loc]).find(|loc| loc.line != 0)
    }

    /// Byte address of a global.
    pub fn address(&self, global: GlobalId) -> u32 {
        self.globals[global]
    }

    /// The same program, which tells of reads of variables that nothing has written. Only the
    /// interpreter does.
    #[must_use]
    pub fn tracked(mut self, tracked: bool) -> LoadedProgram {
        self.tracked = tracked;
        self
    }

    /// Whether it tells of reads of variables that nothing has written.
    pub(crate) fn is_tracked(&self) -> bool {
        self.tracked
    }

    /// Bytes that nothing has written at the start, if that is told.
    pub(crate) fn unwritten(&self) -> Option<Unwritten> {
        if !self.tracked {
            return None;
        }
        let mut unwritten = Unwritten::default();
        for (id, global) in &self.program.globals {
            // An initial value has a byte at least.
            let is_open = global.init.is_empty() && global.slots.is_empty();
            if is_open && global.relocs.is_empty() {
                unwritten.add(self.globals[id], self.globals[id] + global.size);
            }
        }
        Some(unwritten)
    }

    /// What a read of a byte that nothing has written is to be told as.
    pub(crate) fn odd_read(&self, byte: u32) -> Option<Odd> {
        let (global, start, _) = self.owners.find(byte as u16)?;
        Some(Odd::Unwritten { global, byte: byte.saturating_sub(start as u32) })
    }

    /// Which variable an address belongs to.
    pub(crate) fn owners(&self) -> &Owners {
        &self.owners
    }

    /// The type of pointers.
    pub fn pointer(&self) -> Ty {
        self.program.profile.pointer()
    }

    /// First byte of the stack and the byte after its last.
    pub fn stack(&self) -> (u64, u64) {
        self.stack
    }

    /// Bytes that memory may grow to.
    pub fn memory_limit(&self) -> u64 {
        self.memory_limit
    }

    /// Bytes of memory that a started PE has: its data. The stack behind them comes with the first function
    /// that needs one. A host program, of which there is one, has its stack from the start.
    pub fn slab_bytes(&self) -> usize {
        match self.program.profile {
            Profile::Pe => self.stack.0 as usize,
            Profile::Host => self.stack.1 as usize,
        }
    }

    /// Bytes of memory that a PE takes once it has run, if nothing reaches behind what was linked.
    pub(crate) fn used_bytes(&self) -> usize {
        let stacks = self.funcs.values().any(|func| func.stack_bytes != 0);
        if stacks { self.stack.1 as usize } else { self.slab_bytes() }
    }

    pub(crate) fn image(&self) -> &[u8] {
        &self.image
    }

    pub(crate) fn slot_patches(&self) -> &[(u32, u32, SlotId)] {
        &self.slot_patches
    }

    pub(crate) fn initial_dsrs(&self) -> &[(DsrRef, Dsr)] {
        &self.initial_dsrs
    }

    /// Its vector instructions.
    #[inline]
    pub(crate) fn vectors(&self) -> &VectorSites {
        &self.vectors
    }

    pub(crate) fn registers(&self) -> DsrSet {
        self.registers
    }

    /// Bytes of a PE's state once it has run, without frames.
    pub(crate) fn state_bytes(&self) -> usize {
        let fifos = self.program.fifos.len() * size_of::<FifoState>();
        let registers = self.registers.count();
        let xdsrs = if registers == 0 { 0 } else { self.target.xdsrs.into() };
        let registers = registers * size_of::<Dsr>() + xdsrs * size_of::<Option<DsrRef>>();
        block_bytes(self.used_bytes()) + fifos + registers
    }

    /// Whether the program may unmask exceptions: if not, none is looked for.
    pub(crate) fn raises(&self) -> bool {
        self.raises
    }

    /// The exceptions that are not masked at the start.
    pub(crate) fn unmasked(&self) -> u8 {
        let mut flags = self.program.initial_flags.iter().rev();
        flags.find(|flag| flag.op == FlagOp::Exceptions).map_or(0, |flag| flag.id)
    }

    /// Words that the arguments of any entry, vector or host operation take at most.
    pub(crate) fn args_len(&self) -> usize {
        self.args_len
    }

    /// The function behind a code pointer, if it has the signature that the call expects.
    pub(crate) fn callee(&self, pointer: u64, sig: SigId) -> Option<FuncId> {
        let index = u32::try_from(pointer.checked_sub(1)?).ok()?;
        let func = FuncId::from_u32(index);
        let plan = self.funcs.get(func)?;
        (plan.signature == self.call_signatures[sig]).then_some(func)
    }
}

impl FuncPlan {
    /// The word of a local in its frame.
    #[inline]
    pub fn word(&self, local: Local) -> u32 {
        self.words[local.as_u32() as usize]
    }

    fn new(
        func: &Func,
        may_suspend: bool,
        suspension: &FuncSuspension,
        signature: u32,
        costs: FuncCost,
    ) -> FuncPlan {
        let (kept_words, words) = frame(func, suspension);
        let mut plan = FuncPlan {
            frame_words: (FRAME_HEADER + func.locals.len() as u32).max(FRAME_MIN),
            kept_words,
            words,
            stack_bytes: 0,
            stack_align: 1,
            slot_offsets: Vec::with_capacity(func.stack_slots.len()),
            may_suspend,
            resume_inst: SecondaryMap::new(),
            resume_end: SecondaryMap::new(),
            places: Vec::with_capacity(suspension.points.len()),
            vectors: SecondaryMap::new(),
            inst_cost: costs.inst,
            end_cost: costs.end,
            taken: costs.taken,
            signature,
        };
        for slot in func.stack_slots.values() {
            let offset = plan.stack_bytes.next_multiple_of(slot.align.max(1));
            plan.slot_offsets.push(offset);
            plan.stack_bytes = offset.saturating_add(slot.size);
            plan.stack_align = plan.stack_align.max(slot.align);
        }
        for ((inst, _), number) in vectors_of(func).zip(0..) {
            plan.vectors[inst] = number;
        }
        let mut places = SecondaryMap::new();
        for (block, data) in &func.blocks {
            for (index, &inst) in data.insts.iter().enumerate() {
                places[inst] = Some(CodeAt { block, index: index as u32 });
            }
        }
        for (point, index) in suspension.points.iter().zip(1..) {
            let at = match point.at {
                PointAt::Inst(inst) => {
                    plan.resume_inst[inst] = index;
                    places[inst].unwrap_or(CodeAt { block: func.entry(), index: 0 })
                }
                PointAt::BackEdge(block) => {
                    plan.resume_end[block] = index;
                    CodeAt { block, index: func.blocks[block].insts.len() as u32 }
                }
            };
            plan.places.push(at);
        }
        plan
    }
}

/// How many words of a function's frame a suspension keeps, and the word of each local.
fn frame(func: &Func, suspension: &FuncSuspension) -> (u32, Vec<u32>) {
    let mut kept = vec![false; func.locals.len()];
    let live = suspension.points.iter().flat_map(|point| &point.live);
    // What the host writes when it has done what was asked of it.
    let written = func.insts.values().flat_map(|inst| match inst {
        InstData::Host { dsts, .. } => &**dsts,
        _ => &[],
    });
    live.chain(written).for_each(|&local| kept[local.as_u32() as usize] = true);
    let mut order: Vec<usize> = (0..kept.len()).collect();
    order.sort_by_key(|&local| !kept[local]);
    let mut words = vec![0; kept.len()];
    for (&local, word) in order.iter().zip(FRAME_HEADER..) {
        words[local] = word;
    }
    let count = kept.iter().filter(|&&kept| kept).count();
    (FRAME_HEADER + count as u32, words)
}

/// Whether anything sets which exceptions stop the PE.
fn raises(program: &Program) -> bool {
    let sets = |inst: &InstData| matches!(inst, InstData::Flag { op: FlagOp::Exceptions, .. });
    program.initial_flags.iter().any(|flag| flag.op == FlagOp::Exceptions)
        || program.funcs.values().any(|func| func.insts.values().any(sets))
}

/// Globals with their relocations applied; slot fields hold zero.
fn initial_image(program: &Program, globals: &PrimaryMap<GlobalId, u32>, data_end: u32) -> Vec<u8> {
    let mut image = vec![0; data_end as usize];
    let pointer = program.profile.pointer().bytes() as usize;
    for (id, global) in &program.globals {
        let at = globals[id] as usize;
        let len = global.init.len().min(global.size as usize);
        if let Some(field) = image.get_mut(at..at + len) {
            field.copy_from_slice(&global.init[..len]);
        }
        for reloc in &global.relocs {
            let value = match reloc.symbol {
                Symbol::Global(target) => u64::from(globals[target]),
                Symbol::Func(func) => u64::from(func.as_u32()) + 1,
            };
            let start = at + reloc.offset as usize;
            if let Some(field) = image.get_mut(start..start + pointer) {
                let mut raw = [0; 8];
                raw[..pointer].copy_from_slice(field);
                let sum = u64::from_le_bytes(raw).wrapping_add(value);
                field.copy_from_slice(&sum.to_le_bytes()[..pointer]);
            }
        }
    }
    image
}

/// Address, size and slot of each field that differs between PEs.
fn slot_patches(program: &Program, globals: &PrimaryMap<GlobalId, u32>) -> Vec<(u32, u32, SlotId)> {
    let mut patches = Vec::new();
    for (id, global) in &program.globals {
        for &(offset, slot) in &global.slots {
            patches.push((globals[id] + offset, program.slots[slot].bytes(), slot));
        }
    }
    patches
}

fn initial_dsrs(program: &Program, globals: &PrimaryMap<GlobalId, u32>) -> Vec<(DsrRef, Dsr)> {
    let load = |initial: &dflow_ir::program::InitialDsr| {
        let address = initial.symbol.map_or(0, |global| globals[global] as u16);
        let dsr = Dsr {
            dsd: initial.dsd.with_base(initial.dsd.base().wrapping_add(address)),
            options: initial.options,
            index: None,
            save_address: initial.save_address,
            single_step: initial.single_step,
            xdsr: initial.xdsr,
            moved: 0,
            steps: 0,
        };
        let fabric = initial.symbol.is_none();
        (initial.dsr, if fabric { Dsr { dsd: initial.dsd, ..dsr } } else { dsr })
    };
    program.initial_dsrs.iter().map(load).collect()
}

/// Registers that an instruction names; PEs of programs that name none keep none.
fn registers(program: &Program) -> DsrSet {
    let mut named = DsrSet::default();
    if program.profile != Profile::Pe {
        return named;
    }
    let mut add = |operand: &Operand| {
        if let Operand::Dsr(dsr) = operand {
            named.add(*dsr);
        }
    };
    for inst in program.funcs.values().flat_map(|func| func.insts.values()) {
        match inst {
            InstData::LoadDsr { dsr, .. } | InstData::SetDsr { dsr, .. } => {
                add(&Operand::Dsr(*dsr));
            }
            InstData::Vector(vector) => {
                add(&vector.dest);
                vector.sources.iter().for_each(&mut add);
            }
            _ => {}
        }
    }
    named
}

/// At least five: a vector operation's operands and index.
fn args_len(program: &Program) -> usize {
    let host_args = |inst: &InstData| match inst {
        InstData::Host { args, .. } => args.len(),
        _ => 0,
    };
    let widest = |func: &Func| func.insts.values().map(host_args).max().unwrap_or(0);
    let words = program.funcs.values().map(|func| widest(func).max(func.params as usize));
    words.max().unwrap_or(0).max(5)
}

/// What a block of memory takes: allocators have four sizes of blocks between two powers of two, and put as many as fit
/// into a page.
fn block_bytes(bytes: usize) -> usize {
    const SMALL: usize = 8 << 10;
    let size = bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(1)).max(1);
    let page: usize = if size <= SMALL { 64 << 10 } else { 512 << 10 };
    page.checked_div(page / size).unwrap_or(size).max(size)
}

#[cfg(test)]
mod block_tests {
    use super::block_bytes;

    #[test]
    fn blocks_are_as_large_as_allocators_make_them() {
        for (bytes, block) in
            [(0, 1), (2000, 2048), (28_000, 29_127), (36_000, 43_690), (47_200, 52_428)]
        {
            assert_eq!(block_bytes(bytes), block);
        }
        // Larger than a page.
        assert_eq!(block_bytes(600 << 10), 640 << 10);
    }
}
