//! The buffers of a router as others see them: what they hold, and those that go and come back (`merge`, `flight`).

use super::{Lane, NONE, Router};
use crate::fabric::ring::{NEVER, Ring, Slot};
use crate::sched::plan::Plan;

impl Router {
    /// Whether a lane holds a word.
    pub(crate) fn holds(&self, color: u8, port: u8) -> bool {
        let lane = self.lane_of[usize::from(color)][usize::from(port)];
        lane != NONE && !self.lanes[usize::from(lane)].ring.is_empty()
    }

    /// Whether a lane holds a word that may go over a link.
    pub(crate) fn holds_for(&self, plan: &Plan, port: u8) -> bool {
        self.leading(plan, port).next().is_some()
    }

    /// Lanes that hold words which may go over a link.
    fn leading<'a>(&'a self, plan: &'a Plan, port: u8) -> impl Iterator<Item = &'a Lane> {
        let table = self.table(plan);
        let leads = move |lane: &&Lane| table.may_leave_by(lane.color) >> port & 1 != 0;
        self.lanes.iter().filter(|lane| !lane.ring.is_empty()).filter(leads)
    }

    /// Whether a word of a color at a port, which could be seen before cycle `t`, is held up, or is known to be.
    pub(in crate::fabric) fn holds_up_before(&self, color: u8, port: u8, t: u64) -> bool {
        let lane = self.lane_of[usize::from(color)][usize::from(port)];
        let first = self.lanes.get(usize::from(lane)).map_or(NEVER, |lane| lane.ring.first());
        first < t || first != NEVER && self.blocked.has(lane)
    }

    /// Whether there is a buffer for a color at a port.
    pub(in crate::fabric) fn has_lane(&self, color: u8, port: u8) -> bool {
        self.lane_of[usize::from(color)][usize::from(port)] != NONE
    }

    /// Whether all words of a color are data that moves no switch, and nothing keeps them but places.
    pub(in crate::fabric) fn is_plain(&self, color: u8) -> bool {
        let is_plain = |lane: &Lane| {
            lane.rest == 0 && lane.ring.words().all(|word| !word.control && !word.advance)
        };
        !self.is_torn(color) && self.lanes.iter().filter(|lane| lane.color == color).all(is_plain)
    }

    /// Whether a lane of another color holds a word that may go over a link.
    pub(in crate::fabric) fn others_hold_for(&self, plan: &Plan, port: u8, color: u8) -> bool {
        self.leading(plan, port).any(|lane| lane.color != color)
    }

    /// Gives a buffer away, with its words, if there is one for a color at a port.
    pub(in crate::fabric) fn lend_buffer(&mut self, color: u8, port: u8) -> Option<Ring<3>> {
        let index = self.lane_of[usize::from(color)][usize::from(port)];
        let lane = self.lanes.get_mut(usize::from(index))?;
        self.waiting.remove(index);
        self.blocked.remove(index);
        Some(std::mem::take(&mut lane.ring))
    }

    /// Has a buffer for a color at a port back.
    pub(in crate::fabric) fn take_back(
        &mut self,
        plan: &Plan,
        (color, port): (u8, u8),
        ring: Ring<3>,
    ) {
        let mut index = self.lane_of[usize::from(color)][usize::from(port)];
        if index == NONE {
            index = self.add_lane(plan, color, port, 0);
        }
        self.blocked.remove(index);
        if !ring.is_empty() {
            self.waiting.add(index);
        }
        self.lanes[usize::from(index)].ring = ring;
    }

    /// A word comes to a lane of `places` places before those that can be seen later than it.
    pub(in crate::fabric) fn insert(
        &mut self,
        plan: &Plan,
        way: (u8, u8),
        places: u32,
        word: Slot,
    ) {
        let (color, port) = way;
        let mut lane = self.lane_of[usize::from(color)][usize::from(port)];
        if lane == NONE {
            lane = self.add_lane(plan, color, port, places);
        }
        self.lanes[usize::from(lane)].ring.insert(word);
        self.waiting.add(lane);
    }
}
