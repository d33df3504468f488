//! Vector operations: their start-up, and the slots of their elements as engines count them (`spec/time-costs.md`),
//! as far as descriptors are constants.
//!
//! Variables have no addresses yet. Invariant: operands within one variable lie apart as they will; what else lies
//! where its variable's alignment allows, for which the kindest case counts.

use dflow_ir::cost;
use dflow_ir::dsd::op::{Lie, OpShape};
use dflow_ir::ty::Ty;

use super::{Walk, constant, sum};
use crate::typed::{Expr, ExprKind, Operand, Vector};

/// Bytes of all banks of the memory: addresses that differ by as much lie in the same bank.
const ROW: u16 = 16;

/// Elements that are looked at as one: a whole number of any row's groups.
const MANY: u64 = 1 << 16;

/// What an address is counted from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    /// The memory's begin.
    Zero,
    Global(u32),
    /// Another place, of the operand with this index alone.
    Unknown(usize),
}

/// Where an operand lies.
#[derive(Clone, Copy)]
struct Place {
    base: Base,
    /// Alignment of the base in bytes, at most a row.
    align: u16,
    /// With an address that counts from the base.
    lie: Lie,
}

impl Walk<'_> {
    /// Issue slots of an operation, its elements and what its operands are made of.
    pub(super) fn vector(&mut self, vector: &Vector) -> u64 {
        let builds = |operand: &Operand| matches!(operand, Operand::Memory(_) | Operand::Fabric(_));
        let all = || vector.sources.iter().chain([&vector.dest]);
        let descriptors = all().filter(|operand| builds(operand)).count() as u32;
        let start = cost::start_up(descriptors, &self.target.timing);
        let length = all().find_map(|operand| self.elements(operand)).unwrap_or(1);
        let slots = match streams(vector) {
            Some(packed) => length.div_ceil(if packed { 2 } else { 1 }),
            None => self.in_memory(vector, length),
        };
        let index = vector.options.index.as_ref().map_or(0, |index| self.expr(index));
        let made = all().fold(index, |cost, operand| match operand {
            Operand::Memory(expr)
            | Operand::Fabric(expr)
            | Operand::Scalar(expr)
            | Operand::Pointer(expr) => cost.saturating_add(self.expr(expr)),
            Operand::Dsr(_) | Operand::Fifo(_) => cost,
        });
        sum([made, u64::from(start), slots])
    }

    /// Slots of the elements of an operation that has no operand on the fabric.
    fn in_memory(&self, vector: &Vector, length: u64) -> u64 {
        let row = vector.op.row();
        let place = |at: usize, operand: &Operand, bytes: u32| match operand {
            Operand::Memory(dsd) => Some(self.place(dsd, bytes as u8, Base::Unknown(at))),
            Operand::Fabric(_)
            | Operand::Dsr(_)
            | Operand::Fifo(_)
            | Operand::Scalar(_)
            | Operand::Pointer(_) => None,
        };
        let mut sources = [None; 3];
        for (at, (source, operand)) in sources.iter_mut().zip(&vector.sources).enumerate() {
            *source = place(at, operand, row.sources[at].bytes());
        }
        // No bank serves a source and the destination at once: where this one lies by itself does not count.
        let dest = place(3, &vector.dest, row.dest.bytes()).map(|place| place.lie);
        let sums = matches!(
            (&vector.dest, vector.sources.first()),
            (Operand::Pointer(_), Some(Operand::Scalar(_)))
        );
        let reduces = sums && row.shape == OpShape::Reduce;
        let slots = |length: u64, sources: &[Option<Lie>; 3]| {
            u64::from(row.slots(self.target, length as u32, dest, sources, reduces).all)
        };
        let least = shifted(&sources)
            .map(|sources| (slots(MANY, &sources), slots(length % MANY, &sources)))
            .min();
        least.map_or(0, |(many, rest)| sum([many.saturating_mul(length / MANY), rest]))
    }

    /// Where the elements of a descriptor lie; what is not known counts from `unknown`, one beside the other.
    fn place(&self, dsd: &Expr, bytes: u8, unknown: Base) -> Place {
        let step = |stride: i16| stride.wrapping_mul(i16::from(bytes));
        let constant = |expr: &Expr| Some(constant(expr)?.read(false) as u16);
        match &*dsd.kind {
            ExprKind::Mem1d { base, stride, .. } => {
                let stride = constant(stride).map_or(1, |stride| stride as i16);
                self.at(base, unknown, Lie { address: 0, step: step(stride), bytes })
            }
            ExprKind::Mem4d { base, shape, .. } => {
                let dims = self.program.shapes.get(*shape as usize).map(|shape| &shape.dims[..]);
                let inner = dims.and_then(|dims| {
                    dims.iter().rfind(|&&(extent, _)| extent != 1).or(dims.first())
                });
                let step = step(inner.map_or(1, |&(_, stride)| stride));
                self.at(base, unknown, Lie { address: 0, step, bytes })
            }
            ExprKind::Ring { base, .. } => {
                self.at(base, unknown, Lie { address: 0, step: step(1), bytes })
            }
            ExprKind::SetExtent { dsd, .. } => self.place(dsd, bytes, unknown),
            ExprKind::SetBase { dsd, base, .. } => {
                self.at(base, unknown, self.place(dsd, bytes, unknown).lie)
            }
            ExprKind::SetStride { dsd, stride } => {
                let mut place = self.place(dsd, bytes, unknown);
                place.lie.step = step(constant(stride).map_or(1, |stride| stride as i16));
                place
            }
            ExprKind::MoveBase { dsd, delta } => {
                let mut place = self.place(dsd, bytes, unknown);
                match constant(delta) {
                    Some(delta) => place.lie.address = place.lie.address.wrapping_add(delta),
                    None => (place.base, place.align) = (unknown, 2),
                }
                place
            }
            _ => Place { base: unknown, align: 2, lie: Lie { address: 0, step: step(1), bytes } },
        }
    }

    /// What lies so, from an address on.
    fn at(&self, address: &Expr, unknown: Base, lie: Lie) -> Place {
        let (base, align, address) = match (&*address.kind, constant(address)) {
            (ExprKind::GlobalAddress { global, offset }, _) => {
                let global = (global.0, self.program.globals.get(global.0 as usize));
                let align = global.1.map_or(2, |global| global.align.clamp(2, u32::from(ROW)));
                (Base::Global(global.0), align as u16, *offset as u16)
            }
            (_, Some(address)) => (Base::Zero, ROW, address.read(false) as u16),
            _ => (unknown, 2, 0),
        };
        let base = if align == ROW { Base::Zero } else { base };
        Place { base, align, lie: Lie { address, ..lie } }
    }

    /// Elements of an operand, if they are known.
    fn elements(&self, operand: &Operand) -> Option<u64> {
        match operand {
            Operand::Memory(dsd) | Operand::Fabric(dsd) => self.length(dsd),
            Operand::Dsr(_) | Operand::Fifo(_) | Operand::Scalar(_) | Operand::Pointer(_) => None,
        }
    }

    fn length(&self, dsd: &Expr) -> Option<u64> {
        match &*dsd.kind {
            ExprKind::Mem1d { extent, .. }
            | ExprKind::Fabric { extent, .. }
            | ExprKind::SetExtent { extent, .. } => constant(extent)?.read(false).try_into().ok(),
            ExprKind::Mem4d { shape, .. } => {
                let shape = self.program.shapes.get(*shape as usize)?;
                let extents = shape.dims.iter().map(|&(extent, _)| u64::from(extent));
                Some(extents.fold(1, u64::saturating_mul))
            }
            ExprKind::MoveBase { dsd, .. }
            | ExprKind::SetBase { dsd, .. }
            | ExprKind::SetStride { dsd, .. } => self.length(dsd),
            _ => None,
        }
    }
}

/// Whether an operation has an operand on the fabric or in a FIFO, and its elements share wavelets: a FIFO counts as one
/// that leaves this to the others.
fn streams(vector: &Vector) -> Option<bool> {
    let row = vector.op.row();
    let sources = vector.sources.iter().zip(row.source_types().iter().copied());
    let all = || sources.clone().chain([(&vector.dest, row.dest)]);
    let packed = all().filter_map(|(operand, ty)| match operand {
        Operand::Fabric(dsd) => Some(is_packed(dsd, ty)),
        _ => None,
    });
    let in_fifo = || all().any(|(operand, _)| matches!(operand, Operand::Fifo(_)));
    packed.reduce(|one, other| one && other).or_else(|| in_fifo().then_some(false))
}

/// Whether two elements of a known fabric descriptor share a wavelet.
fn is_packed(dsd: &Expr, ty: Ty) -> bool {
    match &*dsd.kind {
        ExprKind::Fabric { desc, .. } => desc.packs(ty),
        ExprKind::SetExtent { dsd, .. } => is_packed(dsd, ty),
        _ => false,
    }
}

/// How sources may lie, with each base at each place that its alignment allows.
fn shifted(sources: &[Option<Place>; 3]) -> impl Iterator<Item = [Option<Lie>; 3]> {
    let words = ROW / 2;
    (0..words.pow(3)).filter_map(move |all| {
        let shift = |at: usize| 2 * (all / words.pow(at as u32) % words);
        let mut lies = [None; 3];
        for (at, place) in sources.iter().enumerate() {
            let Some(place) = place else {
                if shift(at) > 0 {
                    return None;
                }
                continue;
            };
            let same = |other: &Option<Place>| other.is_some_and(|other| other.base == place.base);
            let first = sources.iter().position(same).unwrap_or(at);
            if shift(at) != shift(first) || shift(at) % place.align > 0 {
                return None;
            }
            let address = place.lie.address.wrapping_add(shift(at));
            lies[at] = Some(Lie { address, ..place.lie });
        }
        Some(lies)
    })
}
