//! A set of PEs of a mesh.

use dflow_ir::mesh::{Coord, Rect};

/// One bit per PE, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    width: u16,
    bits: Vec<u64>,
}

impl Cells {
    /// No PE of a mesh of so many columns and rows.
    pub(crate) fn none((width, height): (u16, u16)) -> Cells {
        let area = usize::from(width) * usize::from(height);
        Cells { width, bits: vec![0; area.div_ceil(64)] }
    }

    /// Whether a PE is in the set; PEs beyond the mesh are not.
    pub(crate) fn contains(&self, at: Coord) -> bool {
        let index = self.index(at);
        at.x < self.width
            && self.bits.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 != 0)
    }

    /// Adds a PE; PEs beyond the mesh are left out.
    pub(crate) fn insert(&mut self, at: Coord) {
        let index = self.index(at);
        if at.x < self.width
            && let Some(word) = self.bits.get_mut(index / 64)
        {
            *word |= 1 << (index % 64);
        }
    }

    /// Adds a rectangle.
    pub(crate) fn insert_all(&mut self, rect: Rect) {
        rect.coords().for_each(|at| self.insert(at));
    }

    /// The first PE that two sets share.
    pub(crate) fn common(&self, other: &Cells) -> Option<Coord> {
        let words = self.bits.iter().zip(&other.bits);
        let (index, both) = words.map(|(a, b)| a & b).enumerate().find(|(_, both)| *both != 0)?;
        let number = index * 64 + both.trailing_zeros() as usize;
        let width = usize::from(self.width);
        Some(Coord { x: (number % width) as u16, y: (number / width) as u16 })
    }

    fn index(&self, at: Coord) -> usize {
        usize::from(at.y) * usize::from(self.width) + usize::from(at.x)
    }
}
