//! A channel without words as `sched::rounds` sees it.

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
            gone: _,
            linked,
            wanted: _,
            shared: _,
            link,
            rhythm,
        } = self;
        noter.only(ring.is_empty() && link.is_none() && rhythm.is_none());
        if !self.is_used() || ring.to_come(noter.now()).next().is_none() && *linked <= noter.now() {
            return None;
        }
        noter.value(route.color);
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
}
