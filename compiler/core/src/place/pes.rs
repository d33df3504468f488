//! Folding: the same fault on many PEs is one report.

use std::fmt;

use dflow_ir::mesh::Coord;
use dflow_syntax::{Frame, Span};

/// How many PEs something happened on, and the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pes {
    pub(super) first: Coord,
    pub(super) count: u32,
}

impl Pes {
    /// One PE.
    pub(super) fn one(first: Coord) -> Pes {
        Pes { first, count: 1 }
    }

    /// And another.
    pub(super) fn add(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// The frame of a fault in the code of these PEs: `fault` is its place, `tile` where they
    /// were given the code.
    pub(super) fn frame(self, fault: Span, tile: Span) -> Frame {
        let first_pe = Some((u32::from(self.first.x), u32::from(self.first.y)));
        Frame::Instance { file: fault.file, span: tile, first_pe, count: self.count }
    }
}

impl fmt::Display for Pes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pes { first: Coord { x, y }, count } = *self;
        match count {
            1 => write!(f, "on PE ({x}, {y})"),
            _ => write!(f, "on {count} PEs, first ({x}, {y})"),
        }
    }
}
