//! Issue slots of code: one table for all engines (`spec/time-costs.md`).
//!
//! Vector operations cost their start-up here; slots of elements are added where operands are
//! known ([`crate::dsd::op`]). Invariants: a cost depends on the program and the target only;
//! it is a sum over the target's constants, so that the same code over [`Target::assumed`]
//! gives the part of it that nobody has published.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

use crate::dsd::DsrRef;
use crate::func::{Block, Func, Inst, Local};
use crate::inst::{InstData, Operand, Terminator, VectorInst};
use crate::operands::Access;
use crate::program::{FuncId, Program};
use crate::scalar::{BinaryOp, Convert, UnaryOp};
use crate::target::{Target, Timing};

#[cfg(test)]
mod tests;

/// Issue slots, and how many of them rest on constants that nobody has published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// All.
    pub all: u32,
    /// Assumed ones; at most `all`.
    pub assumed: u32,
}

impl Slots {
    /// Both in one number: `all` in its low half. Sums of packed numbers are those of the parts, as
    /// long as each stays below 2^32.
    pub fn packed(self) -> u64 {
        u64::from(self.assumed) << 32 | u64::from(self.all)
    }

    /// What was packed.
    pub fn unpacked(packed: u64) -> Slots {
        Slots { all: packed as u32, assumed: (packed >> 32) as u32 }
    }
}

/// Slots of a function's parts.
#[derive(Clone, Debug, Default)]
pub struct FuncCost {
    /// Of each instruction, without a vector operation's elements.
    pub inst: SecondaryMap<Inst, Slots>,
    /// Of each block's terminator, wherever it leads.
    pub end: SecondaryMap<Block, Slots>,
    /// What a conditional branch costs in addition if it does not go on with the next block.
    pub taken: Slots,
}

/// Slots of all functions of a program.
pub fn program(program: &Program, target: &Target) -> PrimaryMap<FuncId, FuncCost> {
    let inlined = inlined(program, target);
    program.funcs.iter().map(|(id, func)| FuncCost::of(func, id, &inlined, target)).collect()
}

impl FuncCost {
    fn of(
        func: &Func,
        id: FuncId,
        inlined: &SecondaryMap<FuncId, bool>,
        target: &Target,
    ) -> FuncCost {
        let (timing, assumed) = (&target.timing, &target.assumed.timing);
        let both = |cost: &dyn Fn(&Timing) -> u32| {
            let all = cost(timing);
            Slots { all, assumed: cost(assumed).min(all) }
        };
        let known = Constants::of(func);
        let mut costs = FuncCost {
            taken: both(&|timing| timing.branch_taken.saturating_sub(timing.branch_not_taken)),
            ..FuncCost::default()
        };
        for (block, data) in &func.blocks {
            let mut waits = Waits::default();
            for &inst in &data.insts {
                let what = &func.insts[inst];
                let inlined_call = matches!(what, InstData::Call { func, .. } if inlined[*func]);
                let tests = is_test(what, &data.terminator) && data.insts.last() == Some(&inst);
                let free =
                    tests || inlined_call || known.names_words(what) || known.is_descriptor(what);
                let own = if free { Slots::default() } else { both(&|t| cost(what, func, t)) };
                let wait = both(&|timing| waits.before(what, timing));
                costs.inst[inst] =
                    Slots { all: own.all + wait.all, assumed: own.assumed + wait.assumed };
                waits.after(what, func, own.all);
            }
            let returns = matches!(data.terminator, Terminator::Return(_));
            costs.end[block] = match returns && inlined[id] {
                true => Slots::default(),
                false => both(&|timing| end(block, &data.terminator, timing)),
            };
            if is_free_loop(block, &data.terminator, costs.end[block], costs.taken) {
                costs.end[block].all = 1;
            }
        }
        costs
    }
}

/// Issue slots of an instruction by itself, without a vector operation's elements.
pub fn inst(data: &InstData, func: &Func, target: &Target) -> u32 {
    cost(data, func, &target.timing)
}

/// Issue slots of the terminator of `block`, wherever it leads: a jump to the block that
/// follows is free.
pub fn terminator(block: Block, data: &Terminator, target: &Target) -> u32 {
    end(block, data, &target.timing)
}

fn cost(data: &InstData, func: &Func, timing: &Timing) -> u32 {
    match data {
        InstData::Const { .. }
        | InstData::Copy { .. }
        | InstData::Slot { .. }
        | InstData::GlobalAddress { .. }
        | InstData::StackAddress { .. }
        | InstData::FuncAddress { .. }
        | InstData::Assert { .. }
        | InstData::Bound { .. } => 0,
        InstData::Unary { op, .. } => match op {
            UnaryOp::Sqrt => timing.divide,
            UnaryOp::Neg
            | UnaryOp::BitNot
            | UnaryOp::Not
            | UnaryOp::Abs
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Clz
            | UnaryOp::Ctz
            | UnaryOp::Popcnt => timing.scalar,
        },
        InstData::Binary { op, .. } => {
            if divides(*op) {
                timing.divide
            } else {
                timing.scalar
            }
        }
        InstData::CopyMemory { bytes, .. } => {
            bytes.div_ceil(4).saturating_mul(2).saturating_mul(timing.scalar)
        }
        InstData::FillMemory { value, count, .. } => {
            let bytes = u64::from(func.locals[*value].bytes()) * u64::from(*count);
            u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX).saturating_mul(timing.scalar)
        }
        InstData::Call { .. } | InstData::CallIndirect { .. } => timing.scalar + timing.call,
        InstData::Vector(vector) => start_up(descriptors(vector), timing),
        InstData::LoadDsr { .. } => timing.register_load,
        InstData::Clock { op, .. } if op.reads() => timing.clock_read,
        InstData::Clock { .. }
        | InstData::Convert { .. }
        | InstData::Load { .. }
        | InstData::Store { .. }
        | InstData::MakeMem1d { .. }
        | InstData::MakeMem4d { .. }
        | InstData::MakeFabric { .. }
        | InstData::MakeRing { .. }
        | InstData::DsdMoveBase { .. }
        | InstData::DsdSetBase { .. }
        | InstData::DsdSetExtent { .. }
        | InstData::DsdSetStride { .. }
        | InstData::SetDsr { .. }
        | InstData::SetRandom { .. }
        | InstData::Queues { .. }
        | InstData::SetFifoLength { .. }
        | InstData::Flag { .. }
        | InstData::Random { .. }
        | InstData::GetConfig { .. }
        | InstData::SetConfig { .. }
        | InstData::Host { .. } => timing.scalar,
    }
}

/// Whether a terminator closes a loop and would take no slot: a back edge takes one, so that every loop ends its
/// segments.
fn is_free_loop(block: Block, end: &Terminator, slots: Slots, taken: Slots) -> bool {
    let more = if matches!(end, Terminator::Branch { .. }) { taken.all } else { 0 };
    slots.all + more == 0 && end.successors().iter().any(|to| to.as_u32() <= block.as_u32())
}

/// A loop whose test stands at its head has a branch there and a jump back: together they are
/// the loop's edge.
fn end(block: Block, end: &Terminator, timing: &Timing) -> u32 {
    match end {
        Terminator::Jump(to) if to.as_u32() == block.as_u32() + 1 => 0,
        Terminator::Jump(to) if to.as_u32() <= block.as_u32() => {
            timing.loop_edge.saturating_sub(timing.branch_not_taken)
        }
        Terminator::Jump(_) | Terminator::Switch { .. } => timing.branch_taken,
        Terminator::Branch { .. } => timing.branch_not_taken,
        Terminator::Return(_) => timing.scalar,
        Terminator::Unreachable => 0,
    }
}

/// Start-up of a vector operation that loads so many descriptors.
pub fn start_up(descriptors: u32, timing: &Timing) -> u32 {
    let loads = if descriptors == 0 {
        0
    } else {
        timing.descriptor_load * descriptors + timing.descriptor_use
    };
    timing.vector_start + loads
}

/// Descriptors of an operation that stand in no register.
fn descriptors(vector: &VectorInst) -> u32 {
    let loads = |operand: &&Operand| match operand {
        Operand::Memory(_) | Operand::Fabric(_) => true,
        Operand::Dsr(_) | Operand::Fifo(_) | Operand::Scalar(_) | Operand::Pointer(_) => false,
    };
    std::iter::once(&vector.dest).chain(&vector.sources).filter(loads).count() as u32
}

/// Whether an instruction is the comparison that the branch behind it asks for: it is part of the
/// branch.
fn is_test(data: &InstData, end: &Terminator) -> bool {
    let (InstData::Binary { dst, op, .. }, Terminator::Branch { cond, .. }) = (data, end) else {
        return false;
    };
    let compares = matches!(
        op,
        BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::LtS
            | BinaryOp::LtU
            | BinaryOp::LtF
            | BinaryOp::LeS
            | BinaryOp::LeU
            | BinaryOp::LeF
    );
    compares && dst == cond
}

/// What instructions wait for that stand close behind others, within a block.
#[derive(Default)]
struct Waits {
    /// Results of the float instruction just before, and copies of it.
    floats: Vec<Local>,
    /// Registers that were loaded, and the slots since.
    loaded: Vec<(DsrRef, u32)>,
}

impl Waits {
    /// Slots that `data` waits.
    fn before(&self, data: &InstData, timing: &Timing) -> u32 {
        let mut uses = false;
        data.visit_locals(|local, access| {
            uses |= access == Access::Read && self.floats.contains(&local);
        });
        let copies = matches!(data, InstData::Copy { .. });
        let float = if uses && !copies { timing.float_latency.saturating_sub(1) } else { 0 };
        let InstData::Vector(vector) = data else { return float };
        let since = |operand: &Operand| {
            let loaded = self.loaded.iter().rev();
            let mut loaded = loaded.filter(|(dsr, _)| *operand == Operand::Dsr(*dsr));
            loaded.next().map(|&(_, since)| since)
        };
        let operands = std::iter::once(&vector.dest).chain(&vector.sources);
        let least = operands.filter_map(since).min();
        float + least.map_or(0, |since| timing.descriptor_use.saturating_sub(since))
    }

    /// Notes what `data` of so many slots leaves.
    fn after(&mut self, data: &InstData, func: &Func, slots: u32) {
        if let InstData::Copy { dst, src } = data
            && self.floats.contains(src)
        {
            self.floats.push(*dst);
        }
        if slots > 0 {
            self.floats.clear();
            self.loaded.iter_mut().for_each(|(_, since)| *since += slots);
        }
        match data {
            InstData::LoadDsr { dsr, .. } => self.loaded.push((*dsr, 0)),
            InstData::Call { .. } | InstData::CallIndirect { .. } => self.loaded.clear(),
            InstData::Unary { dst, op, .. } if *op != UnaryOp::Sqrt => self.float(*dst, func),
            InstData::Binary { dst, op, .. } if !divides(*op) => self.float(*dst, func),
            _ => {}
        }
    }

    fn float(&mut self, dst: Local, func: &Func) {
        if func.locals[dst].is_float() {
            self.floats.push(dst);
        }
    }
}

/// Locals that are constants: written once, by a constant or (`None` within) an address.
struct Constants(SecondaryMap<Local, Option<Option<u64>>>);

impl Constants {
    fn of(func: &Func) -> Constants {
        let mut writes: SecondaryMap<Local, u32> = SecondaryMap::new();
        let mut values = SecondaryMap::new();
        for data in func.insts.values() {
            data.visit_locals(|local, access| {
                writes[local] += u32::from(access == Access::Write);
            });
            match data {
                InstData::Const { dst, bits } => values[*dst] = Some(Some(*bits)),
                InstData::GlobalAddress { dst, .. } | InstData::Slot { dst, .. } => {
                    values[*dst] = Some(None);
                }
                _ => {}
            }
        }
        for local in func.locals.keys() {
            if writes[local] > 1 || local.index() < func.params as usize {
                values[local] = None;
            }
        }
        Constants(values)
    }

    /// Whether an instruction only says which 16-bit words of a value are meant: truncation of an
    /// integer, a shift by whole words, a mask of the low word.
    fn names_words(&self, data: &InstData) -> bool {
        match data {
            InstData::Convert { kind: Convert::Truncate, .. } => true,
            InstData::Binary { op: BinaryOp::ShrU, rhs, .. } => {
                self.0[*rhs].flatten().is_some_and(|by| by % 16 == 0)
            }
            InstData::Binary { op: BinaryOp::And, rhs, .. } => {
                self.0[*rhs].flatten() == Some(0xffff)
            }
            _ => false,
        }
    }

    /// Whether an instruction makes a descriptor of which all is known: it is loaded as it is.
    fn is_descriptor(&self, data: &InstData) -> bool {
        let known = |local: &Local| self.0[*local].is_some();
        match data {
            InstData::MakeMem1d { base, extent, stride, .. } => {
                [base, extent, stride].into_iter().all(known)
            }
            InstData::MakeRing { base, extent, wrap, .. } => {
                [base, extent, wrap].into_iter().all(known)
            }
            InstData::MakeMem4d { base: known_one, .. }
            | InstData::MakeFabric { extent: known_one, .. } => known(known_one),
            _ => false,
        }
    }
}

/// Functions that stand in place of their calls: small ones that call nothing else, and are no
/// tasks.
fn inlined(program: &Program, target: &Target) -> SecondaryMap<FuncId, bool> {
    let mut small = SecondaryMap::new();
    let mut sizes: SecondaryMap<FuncId, u32> = SecondaryMap::new();
    let is_task = |id: FuncId| program.tasks.iter().any(|task| task.func == id);
    loop {
        let mut found = false;
        for (id, func) in &program.funcs {
            if small[id] || is_task(id) {
                continue;
            }
            let size = size(func, &small, &sizes, target);
            if let Some(size) = size.filter(|&size| size <= target.timing.inline_size) {
                (small[id], sizes[id], found) = (true, size, true);
            }
        }
        if !found {
            return small;
        }
    }
}

/// Instructions of a function that calls nothing but functions that stand in place.
fn size(
    func: &Func,
    small: &SecondaryMap<FuncId, bool>,
    sizes: &SecondaryMap<FuncId, u32>,
    target: &Target,
) -> Option<u32> {
    let mut all = 0u32;
    for data in func.insts.values() {
        all += match data {
            InstData::Call { func, .. } if small[*func] => sizes[*func],
            InstData::Call { .. } | InstData::CallIndirect { .. } => return None,
            _ => u32::from(inst(data, func, target) > 0),
        };
    }
    Some(all)
}

fn divides(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Div | BinaryOp::DivS | BinaryOp::DivU | BinaryOp::RemS | BinaryOp::RemU => true,
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl
        | BinaryOp::ShrS
        | BinaryOp::ShrU
        | BinaryOp::Max
        | BinaryOp::Min
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::LtS
        | BinaryOp::LtU
        | BinaryOp::LtF
        | BinaryOp::LeS
        | BinaryOp::LeU
        | BinaryOp::LeF => false,
    }
}
