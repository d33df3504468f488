//! What leaps want to know of a router.

use super::{Lane, NONE, Place, Router};
use crate::fabric::plan::ColorPlan;
use crate::sched::plan::Plan;

impl Router {
    /// The buffer of a color and port, made if need be.
    pub(in crate::fabric) fn lane_for(
        &mut self,
        plan: &Plan,
        color: u8,
        port: u8,
        places: u32,
    ) -> u8 {
        match self.lane_of[usize::from(color)][usize::from(port)] {
            NONE => self.add_lane(plan, color, port, places),
            lane => lane,
        }
    }

    /// A leap ends at a buffer.
    pub(in crate::fabric) fn end_leap(&mut self, lane: u8, end: Place) {
        self.lanes[usize::from(lane)].end = end;
    }

    /// Where a buffer stands in a leap, and which one ends at it.
    pub(in crate::fabric) fn leaps_of(&self, lane: u8) -> (Place, Place) {
        let Lane { place, end, .. } = self.lanes[usize::from(lane)];
        (place, end)
    }

    /// Number of words in a buffer.
    pub(in crate::fabric) fn words_in(&self, lane: u8) -> usize {
        self.lanes[usize::from(lane)].ring.len()
    }

    /// From which cycle a word may be pushed to a buffer.
    pub(in crate::fabric) fn free_in(&self, lane: u8) -> u64 {
        self.lanes[usize::from(lane)].ring.free_from()
    }

    /// Whether words of a color that come by a port stop here.
    pub(in crate::fabric) fn stops(&self, plan: &Plan, color: u8, port: u8) -> bool {
        let takes = |row: &ColorPlan| row.rx[usize::from(self.position(color))] == 1 << port;
        self.is_torn(color)
            || self.holds(color, port)
            || !self.table(plan).row(color).is_some_and(takes)
    }
}
