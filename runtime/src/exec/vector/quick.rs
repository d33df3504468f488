//! The common vector operation without detours: synchronous, over scalars and descriptors of
//! memory in one dimension, which may stand in registers.
//!
//! Invariant: the same as [`resolve`](super::resolve) and [`whole`](super::whole) give; what is
//! not common is left to them. Short operations are bound by what surrounds their elements.

use dflow_ir::cost::Slots;
use dflow_ir::dsd::op::{Lie, OpRow, OpShape, RowState};
use dflow_ir::dsd::{Dsd, DsdKind, INFINITE};
use dflow_ir::inst::{Operand, VectorInst};
use dflow_ir::ty::Ty;

use super::VectorArgs;
use super::fast::{self, Runner};
use super::plan::{Dest, FEW, Line, Place, Plan};
use super::running::store_pointer;
use super::short::Short;
use crate::exec::CodeTrapKind;
use crate::exec::odd;
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;

/// An operand: a descriptor of memory and where its elements lie, or a value (the address of a
/// pointer) that is another each time.
#[derive(Clone, Copy)]
enum Plain {
    Memory(Dsd, Line),
    Value,
}

/// A common operation.
pub(super) struct Quick {
    row: &'static OpRow,
    op: u8,
    dest: Plain,
    sources: [Plain; 3],
    length: u32,
    /// Issue slots of its elements, beyond the start-up.
    pub(super) slots: Slots,
    /// Bytes of memory that its elements lie in, if they may be done in chunks, and how these are done.
    chunks_in: Option<u32>,
    runner: Runner,
    /// How they are done if it is short, and they lie one after the other.
    short: Option<Short>,
}

impl Quick {
    /// The operation, if it is a common one; in the arguments are the descriptors that registers hold.
    #[inline]
    pub(super) fn new(inst: &VectorInst, args: &VectorArgs) -> Option<Quick> {
        let row = inst.op.row();
        if inst.options.asynchronous
            || inst.options.index.is_some()
            || inst.options.tells()
            || matches!(row.state, RowState::NotYet(_))
        {
            return None;
        }
        let mut length = Length::default();
        let mut sources = [Plain::Value; 3];
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
        let (slots, chunks_in, runner) = (Slots::default(), None, fast::table as Runner);
        Some(Quick {
            row,
            op: inst.op.0,
            dest,
            sources,
            length: length.elements(),
            slots,
            chunks_in,
            runner,
            short: None,
        })
    }

    /// It, with what follows from its descriptors; none if there is something odd about it.
    pub(super) fn look(mut self, program: &LoadedProgram) -> Option<Quick> {
        if !self.stays(program) {
            return None;
        }
        self.slots = self.slots(program);
        let plan = self.plan(&VectorArgs::default());
        (self.chunks_in, self.runner) = (plan.chunks_in(), plan.runner());
        self.short = self.chunks_in.and_then(|_| Short::of(&plan));
        Some(self)
    }

    /// The value of a source that is one.
    #[inline]
    fn value(&self, args: &VectorArgs, at: usize) -> u32 {
        self.row.sources[at].mask(args.sources[at]) as u32
    }

    /// Runs it; issue slots beyond the start-up are [`Quick::slots`].
    #[inline]
    pub(super) fn run(&self, args: &VectorArgs, state: &mut PeState) -> Result<(), CodeTrapKind> {
        if let Some(short) = &self.short
            && self.may_chunk(state)
        {
            short.run(&args.sources, state.memory.bytes_mut());
            Ok(())
        } else if self.length == 1 && state.unmasked == 0 {
            self.single(args, state)
        } else {
            self.many(args, state)
        }
    }

    /// Issue slots of its elements.
    #[inline]
    fn slots(&self, program: &LoadedProgram) -> Slots {
        let lie = |operand: Plain, ty: Ty| match operand {
            Plain::Memory(dsd, _) => {
                let (address, bytes) = (dsd.base(), ty.bytes() as u8);
                let step = dsd.stride().wrapping_mul(bytes.into());
                Some(Lie { address, step, bytes })
            }
            Plain::Value => None,
        };
        let sources = [0, 1, 2].map(|at| lie(self.sources[at], self.row.sources[at]));
        let dest = lie(self.dest, self.row.dest);
        let seeded = matches!((self.dest, self.sources[0]), (Plain::Value, Plain::Value));
        let reduces = seeded && self.row.shape == OpShape::Reduce;
        self.row.slots(program.target(), self.length, dest, &sources, reduces)
    }

    /// The only element.
    #[inline]
    fn single(&self, args: &VectorArgs, state: &mut PeState) -> Result<(), CodeTrapKind> {
        let mut values = [0; 3];
        for (at, source) in self.sources.iter().enumerate() {
            values[at] = match *source {
                Plain::Value => self.value(args, at),
                Plain::Memory(dsd, _) => {
                    let wide = self.row.sources[at].bytes() == 4;
                    state.memory.load_word(u64::from(dsd.base()), wide)?
                }
            };
        }
        let value = self.row.apply(values, &mut 0);
        let address = match self.dest {
            Plain::Value => u64::from(args.dest as u16),
            Plain::Memory(dsd, _) => u64::from(dsd.base()),
        };
        state.memory.store_word(address, self.row.dest.bytes() == 4, value)
    }

    /// Whether its elements may be done in chunks: they lie in memory that is there, and nobody wants to know what
    /// is read and written, nor how numbers come out.
    #[inline]
    fn may_chunk(&self, state: &PeState) -> bool {
        let there = self.chunks_in.is_some_and(|end| end as usize <= state.memory.bytes().len());
        there && state.unmasked == 0 && !state.memory.is_tracked()
    }

    /// All elements.
    #[inline]
    fn many(&self, args: &VectorArgs, state: &mut PeState) -> Result<(), CodeTrapKind> {
        let mut plan = self.plan(args);
        if plan.length >= FEW && self.may_chunk(state) {
            (self.runner)(&mut plan, state.memory.bytes_mut());
        } else {
            plan.naive(state)?;
        }
        match self.dest {
            Plain::Value if plan.length > 0 => {
                store_pointer(state, self.row.dest, args.dest as u16, plan.value)
            }
            Plain::Value | Plain::Memory(..) => Ok(()),
        }
    }

    #[inline]
    fn plan(&self, args: &VectorArgs) -> Plan<'static> {
        let mut sources = [Place::Value(0); 3];
        for (at, source) in self.sources.iter().enumerate() {
            sources[at] = match *source {
                Plain::Value => Place::Value(self.value(args, at)),
                Plain::Memory(_, line) => Place::Memory(line),
            };
        }
        let (dest, seed) = match (self.dest, self.sources[0]) {
            (Plain::Memory(_, line), _) => (Dest::Memory(line), None),
            (Plain::Value, Plain::Value) if self.row.shape == OpShape::Reduce => {
                (Dest::None, Some(self.value(args, 0)))
            }
            (Plain::Value, Plain::Value | Plain::Memory(..)) => (Dest::None, None),
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

    /// Whether each operand stays in the variable that it begins in.
    fn stays(&self, program: &LoadedProgram) -> bool {
        let stays = |operand: Plain, ty: Ty| match operand {
            Plain::Value => true,
            Plain::Memory(dsd, _) => odd::stays(program, dsd, ty.bytes(), self.length),
        };
        let mut sources = self.sources.into_iter().zip(self.row.sources);
        self.length == 0
            || stays(self.dest, self.row.dest) && sources.all(|(source, ty)| stays(source, ty))
    }
}

#[inline]
fn plain(operand: Operand, value: u64, ty: Ty, length: &mut Length) -> Option<Plain> {
    match operand {
        Operand::Memory(_) | Operand::Dsr(_) => {
            let dsd = Dsd(value);
            if dsd.kind() != DsdKind::Mem1d || dsd.extent() == INFINITE {
                return None;
            }
            length.ask(dsd.extent());
            let step = i32::from(dsd.stride().wrapping_mul(ty.bytes() as i16));
            let line = Line { at: dsd.base().into(), step, bytes: ty.bytes() };
            Some(Plain::Memory(dsd, line))
        }
        Operand::Scalar(_) | Operand::Pointer(_) => Some(Plain::Value),
        Operand::Fabric(_) | Operand::Fifo(_) => None,
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
