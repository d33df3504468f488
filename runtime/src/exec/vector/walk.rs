//! Walking a memory descriptor element by element.
//!
//! Invariants: addresses wrap at 16 bits; the outermost dimension has no end of its own (the
//! operation's length decides), so walking past the extent goes on with the same stride.

use dflow_ir::dsd::op::Lie;
use dflow_ir::dsd::{Dsd, DsdKind};

use super::plan::Line;
use crate::exec::MemoryStream;
use crate::exec::program::LoadedProgram;

/// A cursor over the byte addresses of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walk {
    address: u16,
    /// Byte step per dimension, outermost first.
    steps: [u16; 4],
    extents: [u16; 4],
    counts: [u16; 4],
    dims: u8,
    /// A ring: its base, and elements after which it starts there again. It counts in `counts[0]`.
    ring: Option<(u16, u16)>,
}

impl Walk {
    /// The walk over an operand.
    pub(super) fn of(program: &LoadedProgram, memory: &MemoryStream) -> Walk {
        let mut walk = Walk::new(program, memory.dsd, memory.element);
        if walk.ring.is_some() {
            walk.counts[0] = memory.moved;
        }
        if walk.ring.is_some() || walk.linear().is_some() {
            walk.address = walk.address.wrapping_add(walk.steps[0].wrapping_mul(memory.moved));
        } else {
            (0..memory.moved).for_each(|_| walk.advance());
        }
        walk
    }

    /// A walk from the descriptor's base, with elements of `bytes` bytes.
    fn new(program: &LoadedProgram, dsd: Dsd, bytes: u8) -> Walk {
        let mut walk = Walk { address: dsd.base(), dims: 1, ..Walk::default() };
        let step = |stride: i16| (stride as u16).wrapping_mul(u16::from(bytes));
        if dsd.kind() == DsdKind::Ring {
            walk.steps[0] = u16::from(bytes);
            walk.ring = Some((dsd.base(), dsd.wrap()));
        } else if dsd.kind() == DsdKind::Mem4d {
            let dims = program.program().shapes.get(dsd.shape()).map_or(&[][..], |s| &s.dims);
            walk.dims = dims.len().clamp(1, 4) as u8;
            for (at, &(extent, stride)) in dims.iter().take(4).enumerate() {
                walk.steps[at] = step(stride);
                walk.extents[at] = extent;
            }
        } else {
            walk.steps[0] = step(dsd.stride());
        }
        walk
    }

    /// Address of the next element.
    pub(super) fn address(&self) -> u16 {
        self.address
    }

    /// Byte step, if every step is the same.
    pub(super) fn linear(&self) -> Option<i16> {
        (self.dims == 1 && self.ring.is_none()).then_some(self.steps[0] as i16)
    }

    /// The same as a line, if every step is the same.
    pub(super) fn line(&self, bytes: u8) -> Option<Line> {
        let step = self.linear()?;
        Some(Line { at: self.address.into(), step: step.into(), bytes: bytes.into() })
    }

    /// Where it starts and the step of its innermost dimension of more than one element.
    pub(super) fn lie(&self, bytes: u8) -> Lie {
        let inner = (0..usize::from(self.dims)).rev().find(|&dim| self.extents[dim] != 1);
        let step = self.steps[inner.unwrap_or(0)] as i16;
        Lie { address: self.address, step, bytes }
    }

    /// To the next element: the innermost dimension first.
    pub(super) fn advance(&mut self) {
        let mut dim = usize::from(self.dims) - 1;
        self.address = self.address.wrapping_add(self.steps[dim]);
        if let Some((base, wrap)) = self.ring {
            self.counts[0] = self.counts[0].wrapping_add(1);
            if self.counts[0] == wrap {
                (self.address, self.counts[0]) = (base, 0);
            }
            return;
        }
        while dim > 0 {
            self.counts[dim] += 1;
            if self.counts[dim] < self.extents[dim] {
                return;
            }
            let back = self.steps[dim].wrapping_mul(self.counts[dim]);
            self.counts[dim] = 0;
            dim -= 1;
            self.address = self.address.wrapping_sub(back).wrapping_add(self.steps[dim]);
        }
    }

    /// Elements from a ring's base to where it stands.
    pub(super) fn moved(&self) -> Option<u16> {
        self.ring.map(|_| self.counts[0])
    }

    /// `count` elements on (linear walks).
    pub(super) fn skip(&mut self, count: u16) {
        self.address = self.address.wrapping_add(self.steps[0].wrapping_mul(count));
    }
}
