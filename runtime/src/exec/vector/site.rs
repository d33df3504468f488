//! The vector instructions of a program, as they are asked each time that they are issued.
//!
//! Invariants: a site is of one instruction of one program, and holds a copy of it whose address stands for it; what
//! is known of it depends on nothing else, and so is the same whoever finds it first.

use std::sync::OnceLock;

use dflow_ir::func::{Func, Inst};
use dflow_ir::inst::{InstData, Operand, VectorInst};
use dflow_ir::loc::Loc;
use dflow_ir::program::{FuncId, Program};

use super::VectorArgs;
use super::known::Entry;
use crate::exec::dsrs::{DsrPlace, DsrSet};
use crate::exec::state::PeState;

/// The descriptors of an operation, its destination's first, and zeros for sources of another kind, which
/// may be anything.
pub(super) type Described = [u64; 4];

/// A vector instruction. What most operations ask lies side by side.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct VectorSite {
    /// The first common operation that it issued; one that issues others has those elsewhere.
    pub(super) first: OnceLock<Box<Entry>>,
    /// Which operands are descriptors of memory, the destination first: ones where one is.
    masks: Described,
    /// The registers that operands stand in, the destination's first.
    places: [Option<DsrPlace>; 4],
    /// Whether any does.
    is_held: bool,
    is_asynchronous: bool,
    /// The instruction, its function, and its place in the source.
    pub(crate) inst: VectorInst,
    pub(crate) func: FuncId,
    pub(crate) loc: Loc,
}

impl VectorSite {
    /// An instruction, with where it stands; `named`: the registers that its PEs keep.
    pub(crate) fn new(inst: &VectorInst, (func, loc): (FuncId, Loc), named: DsrSet) -> VectorSite {
        let (mut masks, mut places) = ([0; 4], [None; 4]);
        let operands = std::iter::once(&inst.dest).chain(&inst.sources);
        for ((mask, place), operand) in masks.iter_mut().zip(&mut places).zip(operands) {
            *mask = match *operand {
                Operand::Dsr(at) => {
                    *place = Some(named.place_of(at));
                    u64::MAX
                }
                Operand::Memory(_) => u64::MAX,
                Operand::Fabric(_)
                | Operand::Fifo(_)
                | Operand::Scalar(_)
                | Operand::Pointer(_) => 0,
            };
        }
        VectorSite {
            first: OnceLock::new(),
            masks,
            places,
            is_held: places.iter().any(Option::is_some),
            is_asynchronous: inst.options.asynchronous,
            inst: inst.clone(),
            func,
            loc,
        }
    }

    /// Whether its operations are asynchronous.
    #[inline]
    pub(crate) fn is_asynchronous(&self) -> bool {
        self.is_asynchronous
    }

    /// The descriptors of an operation with these arguments.
    #[inline]
    pub(super) fn described(&self, args: &VectorArgs) -> Described {
        let ([dest, first, second, third], [a, b, k]) = (self.masks, args.sources);
        [args.dest & dest, a & first, b & second, k & third]
    }

    /// The arguments with descriptors in place of the registers that hold them; none if one says more.
    #[inline]
    pub(super) fn with_registers(&self, state: &PeState, args: &VectorArgs) -> Option<VectorArgs> {
        let mut held = *args;
        let [dest, sources @ ..] = &self.places;
        if let Some(at) = *dest {
            held.dest = state.plain_descriptor(at)?.0;
        }
        for (value, place) in held.sources.iter_mut().zip(sources) {
            if let Some(at) = *place {
                *value = state.plain_descriptor(at)?.0;
            }
        }
        Some(held)
    }

    /// Whether any operand stands in a register.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }
}

/// The vector instructions of a program, those of a function side by side.
#[derive(Debug, Default)]
pub(crate) struct VectorSites {
    /// The first one of each function.
    firsts: Vec<u32>,
    sites: Vec<VectorSite>,
}

/// The vector instructions of a function, in the order of their numbers.
pub(crate) fn vectors_of(func: &Func) -> impl Iterator<Item = (Inst, &VectorInst)> {
    func.insts.iter().filter_map(|(inst, data)| match data {
        InstData::Vector(vector) => Some((inst, &**vector)),
        _ => None,
    })
}

impl VectorSites {
    /// Those of a program; `named`: the registers that its PEs keep.
    pub(crate) fn new(program: &Program, named: DsrSet) -> VectorSites {
        let mut sites = VectorSites::default();
        for (id, func) in &program.funcs {
            sites.firsts.push(sites.sites.len() as u32);
            for (inst, vector) in vectors_of(func) {
                sites.sites.push(VectorSite::new(vector, (id, func.locs[inst]), named));
            }
        }
        sites
    }

    /// One of a function's, by its number among them.
    #[inline]
    pub(crate) fn get(&self, func: u32, number: u32) -> Option<&VectorSite> {
        let first = *self.firsts.get(func as usize)?;
        self.sites.get((first + number) as usize)
    }
}
