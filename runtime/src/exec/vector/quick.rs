//! The common vector operation without detours: synchronous, over scalars and descriptors of
//! memory in one dimension.
//!
//! Invariant: the same as [`resolve`](super::resolve) and [`whole`](super::whole) give; what is
//! not common is left to them. Short operations are bound by what surrounds their elements.

use dflow_ir::cost::Slots;
use dflow_ir::dsd::op::{Lie, OpRow, OpShape, RowState};
use dflow_ir::dsd::{Dsd, DsdKind, INFINITE};
use dflow_ir::inst::{Operand, VectorInst};
use dflow_ir::ty::Ty;

use super::VectorArgs;
use super::plan::{Dest, FEW, Line, Place, Plan};
use super::running::store_pointer;
use crate::exec::odd::{self, Odd};
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;
use crate::exec::{CodeTrapKind, MemoryStream};

/// An operand: a descriptor of memory, or a value (the address of a pointer).
#[derive(Clone, Copy)]
enum Plain {
    Memory(Dsd),
    Value(u32),
}

/// A common operation.
pub(super) struct Quick {
    row: &'static OpRow,
    op: u8,
    dest: Plain,
    sources: [Plain; 3],
    length: u32,
}

impl Quick {
    /// The operation, if it is a common one.
    #[inline]
    pub(super) fn new(inst: &VectorInst, args: &VectorArgs) -> Option<Quick> {
        let row = inst.op.row();
        if inst.options.asynchronous
            || inst.options.index.is_some()
            || matches!(row.state, RowState::NotYet(_))
        {
            return None;
        }
        let mut length = Length::default();
        let mut sources = [Plain::Value(0); 3];
        for (at, &operand) in inst.sources.iter().enumerate().take(3) {
            if matches!(operand, Operand::Pointer(_)) {
                return None;
            }
            sources[at] = plain(operand, args.sources[at], row.sources[at], &mut length)?;
        }
        if matches!(inst.dest, Operand::Scalar(_)) {
            return None;
        }
        let dest = plain(inst.dest, args.dest, row.dest, &mut length)?;
        Some(Quick { row, op: inst.op.0, dest, sources, length: length.elements() })
    }

    /// Runs it; issue slots beyond the start-up, and what was odd.
    #[inline]
    pub(super) fn run(
        &self,
        program: &LoadedProgram,
        state: &mut PeState,
    ) -> Result<(Slots, Option<Odd>), CodeTrapKind> {
        let odd = self.leaves(program);
        if self.length == 1 && state.unmasked == 0 {
            self.single(state)?;
        } else {
            self.many(state)?;
        }
        Ok((self.slots(program), odd))
    }

    /// Issue slots of its elements.
    #[inline]
    fn slots(&self, program: &LoadedProgram) -> Slots {
        let lie = |operand: Plain, ty: Ty| match operand {
            Plain::Memory(dsd) => {
                let (address, bytes) = (dsd.base(), ty.bytes() as u8);
                let step = dsd.stride().wrapping_mul(bytes.into());
                Some(Lie { address, step, bytes })
            }
            Plain::Value(_) => None,
        };
        let sources = [0, 1, 2].map(|at| lie(self.sources[at], self.row.sources[at]));
        let dest = lie(self.dest, self.row.dest);
        let seeded = matches!((self.dest, self.sources[0]), (Plain::Value(_), Plain::Value(_)));
        let reduces = seeded && self.row.shape == OpShape::Reduce;
        self.row.slots(program.target(), self.length, dest, &sources, reduces)
    }

    /// The only element.
    #[inline]
    fn single(&self, state: &mut PeState) -> Result<(), CodeTrapKind> {
        let mut values = [0; 3];
        for (at, source) in self.sources.iter().enumerate() {
            values[at] = match *source {
                Plain::Value(value) => value,
                Plain::Memory(dsd) => {
                    let bytes = self.row.sources[at].bytes();
                    state.memory.load(u64::from(dsd.base()), bytes)? as u32
                }
            };
        }
        let value = self.row.apply(values, &mut 0);
        let address = match self.dest {
            Plain::Value(address) => u64::from(address),
            Plain::Memory(dsd) => u64::from(dsd.base()),
        };
        state.memory.store(address, self.row.dest.bytes(), u64::from(value))
    }

    /// All elements.
    fn many(&self, state: &mut PeState) -> Result<(), CodeTrapKind> {
        let mut plan = self.plan();
        let plain = plan.length >= FEW && state.unmasked == 0 && !state.memory.is_tracked();
        if plain && plan.may_chunk(state.memory.bytes().len()) {
            plan.fast(state.memory.bytes_mut());
        } else {
            plan.naive(state)?;
        }
        match self.dest {
            Plain::Value(address) if plan.length > 0 => {
                store_pointer(state, self.row.dest, address as u16, plan.value)
            }
            Plain::Value(_) | Plain::Memory(_) => Ok(()),
        }
    }

    fn plan(&self) -> Plan<'static> {
        let line = |dsd: Dsd, ty: Ty| {
            let step = i32::from(dsd.stride().wrapping_mul(ty.bytes() as i16));
            Line { at: dsd.base().into(), step, bytes: ty.bytes() }
        };
        let mut sources = [Place::Value(0); 3];
        for (at, source) in self.sources.iter().enumerate() {
            sources[at] = match *source {
                Plain::Value(value) => Place::Value(value),
                Plain::Memory(dsd) => Place::Memory(line(dsd, self.row.sources[at])),
            };
        }
        let (dest, seed) = match (self.dest, self.sources[0]) {
            (Plain::Memory(dsd), _) => (Dest::Memory(line(dsd, self.row.dest)), None),
            (Plain::Value(_), Plain::Value(seed)) if self.row.shape == OpShape::Reduce => {
                (Dest::None, Some(seed))
            }
            (Plain::Value(_), Plain::Value(_) | Plain::Memory(_)) => (Dest::None, None),
        };
        Plan {
            row: self.row,
            op: self.op,
            dest,
            sources,
            length: self.length,
            value: seed.unwrap_or(0),
            carry: 0,
            reduces: seed.is_some(),
        }
    }

    /// The first operand that leaves the variable that it begins in.
    #[inline]
    fn leaves(&self, program: &LoadedProgram) -> Option<Odd> {
        if self.length == 0 {
            return None;
        }
        let stays = |operand: Plain, ty: Ty| match operand {
            Plain::Value(_) => true,
            Plain::Memory(dsd) => odd::stays(program, dsd, ty.bytes(), self.length),
        };
        let types = &self.row.sources;
        let sources = || self.sources.into_iter().zip(*types);
        if stays(self.dest, self.row.dest) && sources().all(|(source, ty)| stays(source, ty)) {
            return None;
        }
        let leaves = |operand: Plain, ty: Ty| match operand {
            Plain::Value(_) => None,
            Plain::Memory(dsd) => {
                let element = ty.bytes() as u8;
                let memory = MemoryStream { dsd, element, moved: 0, save: None };
                odd::leaves_by(program, &memory, self.length)
            }
        };
        leaves(self.dest, self.row.dest)
            .or_else(|| sources().find_map(|(source, ty)| leaves(source, ty)))
    }
}

#[inline]
fn plain(operand: Operand, value: u64, ty: Ty, length: &mut Length) -> Option<Plain> {
    match operand {
        Operand::Memory(_) => {
            let dsd = Dsd(value);
            if dsd.kind() != DsdKind::Mem1d || dsd.extent() == INFINITE {
                return None;
            }
            length.ask(dsd.extent());
            Some(Plain::Memory(dsd))
        }
        Operand::Scalar(_) => Some(Plain::Value(ty.mask(value) as u32)),
        Operand::Pointer(_) => Some(Plain::Value(u32::from(value as u16))),
        Operand::Fabric(_) | Operand::Dsr(_) | Operand::Fifo(_) => None,
    }
}

/// The length rule: the first extent that is not 0, the sources before the destination; 1 if no
/// operand has one.
#[derive(Default)]
struct Length {
    found: u16,
    seen: bool,
}

impl Length {
    #[inline]
    fn ask(&mut self, extent: u16) {
        self.seen = true;
        if self.found == 0 {
            self.found = extent;
        }
    }

    fn elements(&self) -> u32 {
        if self.seen { u32::from(self.found) } else { 1 }
    }
}
