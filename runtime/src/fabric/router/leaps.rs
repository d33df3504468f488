//! What leaps want to know of a router.

use super::{Lane, NOBODY, NONE, Place, RAMP, Router};
use crate::fabric::plan::ColorPlan;
use crate::fabric::ring::Slot;
use crate::sched::plan::Plan;
use crate::sched::region::Way;

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

    /// Number of words of a color that stand at a port.
    pub(in crate::fabric) fn words_of(&self, color: u8, port: u8) -> usize {
        let lane = self.lane_of[usize::from(color)][usize::from(port)];
        self.lanes.get(usize::from(lane)).map_or(0, |lane| lane.ring.len())
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

    /// Where the words of a color stand in a leap that come up the ramp, if they leave as they come: the
    /// switch takes them, and none on the ramp does more than to pass.
    pub(in crate::fabric) fn leaps_up(&self, color: u8) -> Option<Place> {
        let lane =
            self.lanes.get(usize::from(self.lane_of[usize::from(color)][usize::from(RAMP)]))?;
        let passes = |word: &Slot| !word.control && !word.advance && word.origin == 0;
        let leaves = self.leave(lane) != 0 && lane.ring.words().all(passes);
        (leaves && lane.place.is_any()).then_some(lane.place)
    }

    /// The word at the head of a buffer.
    pub(in crate::fabric) fn head_in(&self, lane: u8) -> Option<&Slot> {
        self.lanes[usize::from(lane)].ring.head()
    }

    /// The link to the host by which words of a buffer leave as they come, and those behind it: nothing turns the
    /// switch.
    pub(in crate::fabric) fn hands_to_host(&self, plan: &Plan, lane: u8) -> Option<u32> {
        let lane = &self.lanes[usize::from(lane)];
        let outs = self.leave(lane);
        let others =
            |row: &ColorPlan| row.rx[usize::from(self.position(lane.color))] != 1 << lane.port;
        if !outs.is_power_of_two()
            || outs == 1 << RAMP
            || self.table(plan).row(lane.color).is_none_or(others)
            || lane.ring.words().any(|word| word.control)
        {
            return None;
        }
        // That no way is another region's: the link is the router's own.
        match self.way(plan, u32::MAX, outs.trailing_zeros() as u8, lane.color) {
            Way::Host { link } => Some(link),
            Way::Near { .. } | Way::Far { .. } | Way::Outside => None,
        }
    }

    /// Where words of a buffer go now by the switch, if nothing else has a say.
    fn leave(&self, lane: &Lane) -> u8 {
        let plain = lane.judge == NOBODY && !self.is_torn(lane.color);
        if plain { lane.outs[usize::from(self.position(lane.color))] } else { 0 }
    }

    /// Takes the words of a color that stand on the ramp.
    pub(crate) fn take_ramp(&mut self, color: u8) -> Vec<Slot> {
        let lane = self.lane_of[usize::from(color)][usize::from(RAMP)];
        if lane == NONE || self.lanes[usize::from(lane)].ring.is_empty() {
            return Vec::new();
        }
        self.waiting.remove(lane);
        self.blocked.remove(lane);
        self.take_all(color, RAMP)
    }
}
