//! What the state of a machine is in time: all that has a say in when things happen, seen from a
//! cycle, without values.
//!
//! Invariant: two machines with equal images do the same in the same number of cycles, as long as
//! their code comes to the same.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::exec::{Stop, Stream, VectorStart};
use crate::fabric::ring::{NEVER, Ring};
use crate::pe::code::Code;
use crate::sched::region::Region;

/// Notes what it is told, seen from a cycle.
pub(crate) struct Noter {
    cycle: u64,
    hasher: DefaultHasher,
    counters: Vec<u64>,
    /// Whether a machine in this state can be told without times.
    fits: bool,
}

impl Noter {
    /// Something that is not a cycle.
    pub(crate) fn value(&mut self, value: impl Hash) {
        value.hash(&mut self.hasher);
    }

    /// A cycle, however long ago.
    pub(crate) fn cycle(&mut self, cycle: u64) {
        self.value(if cycle == NEVER { NEVER } else { cycle.wrapping_sub(self.cycle) });
    }

    /// A cycle from which something is so: since when does not matter.
    pub(crate) fn from(&mut self, cycle: u64) {
        self.cycle(cycle.max(self.cycle));
    }

    /// The cycle that all is seen from.
    pub(crate) fn now(&self) -> u64 {
        self.cycle
    }

    /// A counter that nothing depends on.
    pub(crate) fn counter(&mut self, count: u64) {
        self.counters.push(count);
    }

    /// This must hold.
    pub(crate) fn only(&mut self, fits: bool) {
        self.fits &= fits;
    }

    /// How a piece of code ends, whatever the values.
    pub(crate) fn stop(&mut self, stop: &Stop) {
        let Stop::Vector(start) = stop else { return self.value(format!("{stop:?}")) };
        let mut start = VectorStart::clone(start);
        for source in &mut start.sources {
            if let Stream::Scalar(value) = source {
                *value = 0;
            }
        }
        self.value(format!("{start:?}"));
    }

    /// Words and places of a buffer; `in_view`: of words that can be seen it does not matter since when.
    pub(crate) fn ring<const N: usize>(&mut self, ring: &Ring<N>, in_view: bool) {
        self.only(!ring.is_marked());
        self.value((ring.len(), ring.places()));
        for word in ring.words() {
            if in_view {
                self.from(word.stamp)
            } else {
                self.cycle(word.stamp)
            }
            self.value((word.color, word.advance, word.origin));
        }
        let now = self.cycle;
        ring.to_come(now).for_each(|free| self.cycle(free));
    }
}

/// The state of some regions in time, before a cycle.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// By PE.
    states: Vec<u64>,
}

/// Counters that nothing depends on.
pub(super) type Counters = Vec<u64>;

impl Image {
    /// Notes the state before a cycle; none if it has to do with more than cycles and words.
    pub(super) fn of<C: Code>(
        code: &C,
        regions: &[Region<C>],
        cycle: u64,
    ) -> Option<(Image, Counters)> {
        let (mut states, mut counters) = (Vec::new(), Vec::new());
        for region in regions {
            let quiet = region.cuts.is_empty()
                && region.late.is_empty()
                && region.to_host.is_empty()
                && region.printed.is_empty()
                && region.watch.to_mesh == 0
                && region.news.is_empty();
            if !quiet || region.trap.is_some() {
                return None;
            }
            let first = states.len();
            for pe in 0..region.cores.len() {
                let mut noter = Noter { cycle, hasher: DefaultHasher::new(), counters, fits: true };
                if let Some(router) = &region.routers[pe] {
                    router.note(&mut noter);
                }
                if let Some(core) = &region.cores[pe] {
                    core.note(code, &mut noter);
                }
                if !noter.fits {
                    return None;
                }
                states.push(noter.hasher.finish());
                counters = noter.counters;
            }
            for channel in &region.channels {
                let mut noter = Noter { cycle, hasher: DefaultHasher::new(), counters, fits: true };
                // Channels have no order.
                if let Some(pe) = channel.note(&mut noter) {
                    let state = &mut states[first + pe as usize];
                    *state = state.wrapping_add(noter.hasher.finish());
                }
                counters = noter.counters;
            }
        }
        Some((Image { states }, counters))
    }
}
