//! Which PEs a transfer concerns, and how the host's elements are shared among them.

use dflow_ir::mesh::{Coord, Rect};
use dflow_ir::ty::Ty;

use super::HostError;
use super::wire::Columns;

/// Every `column_step`th column and `row_step`th row of a rectangle, from its first ones on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The rectangle.
    pub rect: Rect,
    /// From a column to the next, at least 1.
    pub column_step: u16,
    /// From a row to the next, at least 1.
    pub row_step: u16,
}

impl From<Rect> for Region {
    fn from(rect: Rect) -> Region {
        Region { rect, column_step: 1, row_step: 1 }
    }
}

impl Region {
    /// Columns that take part.
    pub fn columns(&self) -> u16 {
        self.rect.width.div_ceil(self.column_step.max(1))
    }

    /// Rows that take part.
    pub fn rows(&self) -> u16 {
        self.rect.height.div_ceil(self.row_step.max(1))
    }

    /// PEs that take part.
    pub fn area(&self) -> usize {
        usize::from(self.columns()) * usize::from(self.rows())
    }

    /// Numbers of the rows that take part.
    pub(super) fn row_numbers(self) -> impl Iterator<Item = u16> {
        let Rect { y, height, .. } = self.rect;
        (y..y + height).step_by(self.row_step.max(1).into())
    }

    /// The PE of the region's column `column` in row `row` of the mesh.
    pub(super) fn place(self, column: u16, row: u16) -> Coord {
        Coord { x: self.rect.x + self.column_step.max(1) * column, y: row }
    }

    pub(super) fn dealt(self) -> Columns {
        Columns { first: self.rect.x, step: self.column_step.max(1), count: self.columns() }
    }

    /// Whether every PE of `other` is surely one of its own.
    pub(super) fn covers(self, other: Region) -> bool {
        let whole = self.column_step == 1 && self.row_step == 1;
        self == other || whole && around(self.rect, other.rect) == self.rect
    }

    /// The smallest region known that holds both.
    pub(super) fn with(self, other: Region) -> Region {
        if self == other { self } else { around(self.rect, other.rect).into() }
    }

    pub(super) fn check(self) -> Result<(), HostError> {
        match [self.column_step, self.row_step].into_iter().find(|&step| step == 0) {
            Some(step) => Err(HostError::Size { value: step.into() }),
            None => Ok(()),
        }
    }
}

/// The smallest rectangle that holds two others.
fn around(one: Rect, other: Rect) -> Rect {
    let (x, y) = (one.x.min(other.x), one.y.min(other.y));
    let right = (one.x + one.width).max(other.x + other.width);
    let bottom = (one.y + one.height).max(other.y + other.height);
    Rect { x, y, width: right - x, height: bottom - y }
}

/// How a host array is shared by the PEs of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Each PE has its own block, PEs row by row.
    #[default]
    Each,
    /// A block per row, for all PEs of the row.
    Rows,
    /// A block per column, for all PEs of the column.
    Columns,
}

impl Spread {
    /// Blocks that an array for a region holds.
    pub fn blocks(self, region: Region) -> usize {
        match self {
            Spread::Each => region.area(),
            Spread::Rows => region.rows().into(),
            Spread::Columns => region.columns().into(),
        }
    }

    /// Which block the PE in the region's row `row` and column `column` gets.
    pub(super) fn block(self, region: Region, row: usize, column: u16) -> usize {
        match self {
            Spread::Each => row * usize::from(region.columns()) + usize::from(column),
            Spread::Rows => row,
            Spread::Columns => column.into(),
        }
    }
}

/// What the host knows of the elements it copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Their type, which must be the export's.
    Type(Ty),
    /// Their size in bytes, which must be that of the export's.
    Bytes(u32),
}

impl Elements {
    /// Bytes per element.
    pub fn bytes(self) -> u32 {
        match self {
            Elements::Type(ty) => ty.bytes(),
            Elements::Bytes(bytes) => bytes,
        }
    }

    /// Whether elements of `ty` are meant.
    pub(super) fn fit(self, ty: Ty) -> bool {
        match self {
            Elements::Type(own) => own == ty,
            Elements::Bytes(bytes) => bytes == ty.bytes(),
        }
    }
}

impl From<Ty> for Elements {
    fn from(ty: Ty) -> Elements {
        Elements::Type(ty)
    }
}

impl std::fmt::Display for Elements {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Elements::Type(ty) => write!(f, "elements of type {ty}"),
            Elements::Bytes(bytes) => write!(f, "{}-bit elements", 8 * bytes),
        }
    }
}
