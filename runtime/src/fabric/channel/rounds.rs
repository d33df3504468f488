//! A channel as `sched::rounds` sees it.

use super::Channel;
use crate::sched::rounds::Noter;

impl Channel {
    /// Notes its state before a cycle; the PE that it begins at, if it is used.
    pub(crate) fn note(&self, noter: &mut Noter<'_>) -> Option<u32> {
        let Channel {
            ring,
            route,
            transit: _,
            credit: _,
            gone,
            linked,
            wanted: _,
            shared: _,
            link,
            rhythm,
        } = self;
        noter.only(link.is_none() && rhythm.is_none());
        let is_free = || ring.to_come(noter.now()).next().is_none() && *linked <= noter.now();
        if !self.is_used() || ring.is_empty() && is_free() {
            return None;
        }
        noter.value(route.color);
        // Where its words are, should they have to go through routers.
        if !ring.is_empty() {
            gone.iter().for_each(|&gone| noter.stamp(gone));
        }
        noter.ring(ring, false);
        noter.from(*linked);
        Some(route.source)
    }

    /// All that happened in it happened so many cycles later.
    pub(crate) fn put_off(&mut self, by: u64) {
        self.ring.put_off(by);
        self.gone = self.gone.map(|gone| if gone == 0 { 0 } else { gone + by });
        self.linked += if self.linked == 0 { 0 } else { by };
    }

    /// The payloads of its words, first word first.
    pub(crate) fn payloads(&mut self, each: &mut impl FnMut(&mut u32)) {
        self.ring.payloads(|_| true, each);
    }

    /// Number of its words.
    pub(crate) fn held(&self) -> usize {
        self.ring.len()
    }
}
