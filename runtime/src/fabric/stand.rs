//! Why words stand in a router, as far as its configuration tells.

use super::router::{RAMP, Router};
use crate::sched::plan::Plan;

/// Why a color is not received from a port.
pub(crate) enum Shut {
    /// Its switch is at this position, and receives from there at another.
    Now(u8),
    /// No position receives from there.
    Always,
}

impl Router {
    /// Why a color is not received from a port, if its configuration says so.
    pub(crate) fn shut(&self, plan: &Plan, color: u8, port: u8) -> Option<Shut> {
        let table = self.table(plan);
        let row = table.row(color).filter(|row| row.known && !table.is_swapped(color))?;
        let position = self.position(color);
        let takes = |rx: &u8| rx >> port & 1 != 0;
        let rx = &row.rx[..usize::from(row.positions)];
        match rx.get(usize::from(position)).is_some_and(takes) {
            true => None,
            false if rx.iter().any(takes) => Some(Shut::Now(position)),
            false => Some(Shut::Always),
        }
    }

    /// Whether words of a color go to the core (and perhaps elsewhere), and no filter judges them.
    pub(crate) fn feeds_core(&self, plan: &Plan, color: u8) -> bool {
        let table = self.table(plan);
        let row = table.row(color).filter(|row| row.known && !table.is_swapped(color));
        let tx = row.and_then(|row| row.tx.get(usize::from(self.position(color))));
        tx.is_some_and(|tx| tx >> RAMP & 1 != 0) && self.filter(color).is_none()
    }
}
