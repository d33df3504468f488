//! A router as `sched::rounds` sees it: its state in time, and how it is some rounds later.

use dflow_ir::mesh::Color;

use super::{Lane, NOBODY, NONE, RAMP, Router, Shadow};
use crate::fabric::filter::FilterState;
use crate::fabric::plan::ColorPlan;
use crate::fabric::ring::Ring;
use crate::sched::plan::Plan;
use crate::sched::region::Way;
use crate::sched::rounds::Noter;

impl Router {
    /// Where words of a color go that come in by a port, as port bits; none where more than the switch as it
    /// stands has a say, or nothing is taken.
    pub(crate) fn hands_on(&self, plan: &Plan, color: u8, port: u8) -> Option<u8> {
        let (judge, outs) = self.ways_of(plan, color, port);
        let out = outs[usize::from(self.position(color))];
        (judge == NOBODY && out != 0 && !self.is_torn(color)).then_some(out)
    }

    /// The switch of a color, and its position; none where more than that has a say in where words go.
    pub(crate) fn switch<'a>(&'a self, plan: &'a Plan, color: u8) -> Option<(&'a ColorPlan, u8)> {
        let (judge, _) = self.ways_of(plan, color, RAMP);
        let row = self.table(plan).row(color).filter(|_| judge == NOBODY && !self.is_torn(color));
        Some((row?, self.position(color)))
    }

    /// What is behind a port of a router of a region.
    pub(crate) fn behind(&self, plan: &Plan, region: u32, port: u8, color: u8) -> Way {
        self.way(plan, region, port, color)
    }

    /// The buffer of a color and port, if it is there.
    pub(crate) fn buffer(&mut self, color: u8, port: u8) -> Option<&mut Ring<3>> {
        let lane = self.lane_of[usize::from(color)][usize::from(port)];
        self.lanes.get_mut(usize::from(lane)).map(|lane| &mut lane.ring)
    }

    /// Words in its buffers.
    pub(crate) fn words(&self) -> usize {
        self.lanes.iter().map(|lane| lane.ring.len()).sum()
    }

    /// Notes its state before a cycle.
    pub(crate) fn note(&self, noter: &mut Noter<'_>) {
        // What is left out does not change, follows from the rest, or is another engine's.
        let Router {
            plan: _,
            own: _,
            number: _,
            sides: _,
            has_links: _,
            positions,
            torn,
            filters,
            lane_of,
            lanes,
            shadows,
            sources,
            gathers: _,
            leaps: _,
            holds_up: _,
            flown: _,
            waiting: _,
            blocked: _,
        } = self;
        noter.value((positions, torn));
        noter.only(sources.iter().all(|source| source.words.is_empty()));
        for filter in filters {
            let FilterState { counter, limit, max, open, closed, kept, .. } = filter;
            noter.value((counter, limit, max, open, closed));
            noter.counter(*kept);
        }
        for (color, ports) in (0..Color::COUNT).zip(lane_of) {
            for (port, &lane) in ports.iter().enumerate().filter(|(_, lane)| **lane != NONE) {
                let Lane { ring, rest, .. } = &lanes[usize::from(lane)];
                if !ring.is_empty() || ring.to_come(noter.now()).next().is_some() {
                    noter.value((color, port, rest));
                    noter.ring(ring, false);
                }
            }
        }
        for Shadow { color, port, ring } in shadows {
            if !ring.is_empty() || ring.to_come(noter.now()).next().is_some() {
                noter.value((color, port));
                noter.ring(ring, false);
            }
        }
    }

    /// It is as it was, so many cycles later; counters are taken in the order in which they were noted.
    pub(crate) fn put_off(&mut self, by: u64, counters: &mut impl Iterator<Item = u64>) {
        for filter in &mut self.filters {
            filter.kept = filter.kept.wrapping_add(counters.next().unwrap_or_default());
        }
        self.lanes.iter_mut().for_each(|lane| lane.ring.put_off(by));
        self.shadows.iter_mut().for_each(|shadow| shadow.ring.put_off(by));
        // None has words: no cycle in which one enters.
        self.sources.iter_mut().for_each(|source| source.next = source.next.saturating_add(by));
    }
}
