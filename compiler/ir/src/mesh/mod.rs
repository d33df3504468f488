//! The mesh as geometry, and what its routers are told.

pub mod color;
pub mod wavelet;

pub use color::{Color, ColorConfig, Filter, PopMode, Port, PortSet, Route, Switch, SwitchEntry};
pub use wavelet::{Command, Control, ControlCommand, Wavelet};

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

impl Coord {
    /// The neighbor at a side, if a mesh of `(columns, rows)` has one.
    pub fn neighbor(self, side: Port, (width, height): (u16, u16)) -> Option<Coord> {
        let (dx, dy) = side.step();
        let x = self.x.checked_add_signed(dx as i16).filter(|&x| x < width)?;
        let y = self.y.checked_add_signed(dy as i16).filter(|&y| y < height)?;
        Some(Coord { x, y })
    }
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

impl<T> RectMap<T> {
    /// The value of a PE. Looks at the rectangles that start in its row or above, nearest first.
    pub fn get(&self, at: Coord) -> Option<&T> {
        let above = self.entries.partition_point(|(rect, _)| rect.y <= at.y);
        let mut candidates = self.entries[..above].iter().rev();
        candidates.find(|(rect, _)| rect.contains(at)).map(|(_, value)| value)
    }

    /// All PEs that have a value, rectangle by rectangle, row by row within each.
    pub fn iter_pes(&self) -> impl Iterator<Item = (Coord, &T)> {
        self.entries.iter().flat_map(|(rect, value)| rect.coords().map(move |at| (at, value)))
    }

    /// Number of PEs that have a value.
    pub fn area(&self) -> usize {
        self.entries.iter().map(|(rect, _)| rect.area()).sum()
    }
}

impl<T: Eq> RectMap<T> {
    /// The values of a grid, given PE by PE, merged: neighbors in a row into the longest runs
    /// of equal values, and a run with an equal one exactly below it into a rectangle.
    pub fn from_grid(
        width: u16,
        height: u16,
        mut value: impl FnMut(Coord) -> Option<T>,
    ) -> RectMap<T> {
        let mut entries: Vec<(Rect, T)> = Vec::new();
        // Indices of the rectangles that end in the row above, and in this row, by column.
        let (mut above, mut here) = (Vec::new(), Vec::new());
        for y in 0..height {
            let mut candidates = above.iter().copied().peekable();
            for_each_run(y, width, &mut value, |run, value| {
                while candidates.next_if(|&index: &usize| entries[index].0.x < run.x).is_some() {}
                let joins = candidates.next_if(|&index| {
                    let (rect, other) = &entries[index];
                    rect.x == run.x && rect.width == run.width && *other == value
                });
                here.push(joins.unwrap_or(entries.len()));
                match joins {
                    Some(index) => entries[index].0.height += 1,
                    None => entries.push((run, value)),
                }
            });
            std::mem::swap(&mut above, &mut here);
            here.clear();
        }
        RectMap { entries }
    }
}

/// Calls `found` for each longest run of equal values in a row.
fn for_each_run<T: Eq>(
    y: u16,
    width: u16,
    value: &mut impl FnMut(Coord) -> Option<T>,
    mut found: impl FnMut(Rect, T),
) {
    let mut open: Option<(Rect, T)> = None;
    for x in 0..width {
        let here = value(Coord { x, y });
        match (&mut open, here) {
            (Some((run, value)), Some(here)) if *value == here => run.width += 1,
            (_, here) => {
                let fresh = here.map(|here| (Rect { x, y, width: 1, height: 1 }, here));
                if let Some((run, value)) = std::mem::replace(&mut open, fresh) {
                    found(run, value);
                }
            }
        }
    }
    if let Some((run, value)) = open {
        found(run, value);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn unfolding_gives_the_grid_back(width in 0u16..9, height in 0u16..9, cells in proptest::collection::vec(proptest::option::of(0u8..3), 64)) {
            let cell = |at: Coord| cells[usize::from(at.y) * 8 + usize::from(at.x)];
            let (width, height) = (width.min(8), height.min(8));
            let map = RectMap::from_grid(width, height, cell);
            let unfolded: BTreeMap<Coord, u8> = map.iter_pes().map(|(at, &value)| (at, value)).collect();
            // No two rectangles overlap.
            prop_assert_eq!(unfolded.len(), map.area());
            for at in (Rect { x: 0, y: 0, width, height }).coords() {
                prop_assert_eq!(unfolded.get(&at).copied(), cell(at));
                prop_assert_eq!(map.get(at).copied(), cell(at));
            }
            prop_assert_eq!(map.get(Coord { x: width, y: 0 }), None);
            prop_assert!(map.entries.is_sorted_by_key(|(rect, _)| (rect.y, rect.x)));
        }
    }

    #[test]
    fn equal_rows_become_one_rectangle() {
        let map = RectMap::from_grid(750, 994, |at| Some(at.x == 0));
        let rects: Vec<Rect> = map.entries.iter().map(|&(rect, _)| rect).collect();
        let first = Rect { x: 0, y: 0, width: 1, height: 994 };
        assert_eq!(rects, [first, Rect { x: 1, y: 0, width: 749, height: 994 }]);
        assert_eq!(map.area(), 745_500);
        assert_eq!(map.get(Coord { x: 749, y: 993 }), Some(&false));
    }

    #[test]
    fn a_checkerboard_is_built_in_one_pass() {
        let map = RectMap::from_grid(750, 994, |at| Some((at.x ^ at.y) & 1));
        assert_eq!(map.entries.len(), 745_500);
        assert_eq!(map.get(Coord { x: 748, y: 993 }), Some(&1));
    }
}
