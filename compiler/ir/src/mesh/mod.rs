//! The mesh as geometry, and what its routers are told.

pub mod color;
pub mod wavelet;

pub use color::{Color, ColorConfig, Filter, PopMode, Port, PortSet, Route, Switch, SwitchEntry};
pub use wavelet::Wavelet;

use serde::{Deserialize, Serialize};

/// A PE's place: `x` is the column, `y` the row, (0, 0) the north-west corner of the program's
/// rectangle.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Coord {
    /// Column.
    pub x: u16,
    /// Row.
    pub y: u16,
}

/// A rectangle of PEs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Rect {
    /// First column.
    pub x: u16,
    /// First row.
    pub y: u16,
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

impl Rect {
    /// Number of PEs.
    pub fn area(self) -> usize {
        usize::from(self.width) * usize::from(self.height)
    }

    /// Whether a PE lies inside.
    pub fn contains(self, at: Coord) -> bool {
        at.x >= self.x
            && at.y >= self.y
            && at.x - self.x < self.width
            && at.y - self.y < self.height
    }

    /// All PEs, row by row.
    pub fn coords(self) -> impl Iterator<Item = Coord> {
        let Rect { x, y, width, height } = self;
        (0..height).flat_map(move |dy| (0..width).map(move |dx| Coord { x: x + dx, y: y + dy }))
    }
}

/// A value per PE, stored as rectangles. Invariant: no two rectangles overlap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RectMap<T> {
    /// Rectangles and their values, ordered by (y, x) of the first corner.
    pub entries: Vec<(Rect, T)>,
}

impl<T> Default for RectMap<T> {
    fn default() -> RectMap<T> {
        RectMap { entries: Vec::new() }
    }
}
