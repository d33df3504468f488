//! What visits to come will look at is fetched ahead: with many PEs a visit costs less than the
//! host's memory takes to answer.

use super::{Lane, NONE, Router};
use crate::jit::prefetch;
use crate::pe::code::Code;
use crate::pe::core::bits;
use crate::sched::region::Region;

/// Bytes of state from which on a region is not in the host's nearer caches.
pub(crate) const LARGE: u64 = 4 << 20;

/// How many visits behind the current one are asked for; routers are sent for first.
const FORESEEN: usize = 10;

impl Router {
    /// Lanes that hold words which may go: the first ones of them, which are nearly always all.
    fn open(&self) -> impl Iterator<Item = &Lane> {
        bits(self.waiting.first_without(self.blocked)).filter_map(|lane| self.lanes.get(lane))
    }
}

impl<C: Code> Region<C> {
    /// Appends visits of cycles to come to those of one, if there are any: what they will look at is fetched in this one.
    /// Where PEs drift apart few are visited in the same cycle.
    #[inline]
    pub(crate) fn foresee_visits(&self, visits: &mut Vec<u32>) {
        if self.bytes >= LARGE && !visits.is_empty() {
            self.wakes.foresee(FORESEEN, visits);
        }
    }

    /// Has the host fetch what stands in routers of PEs after this one, where all are looked at: routers, then their buffers.
    pub(crate) fn fetch_standing(&self, pe: u32) {
        let router =
            |ahead: usize| -> Option<&Router> { self.routers.get(pe as usize + ahead)?.as_deref() };
        router(16).into_iter().for_each(prefetch);
        router(8).into_iter().flat_map(|router| &router.lanes).for_each(prefetch);
    }

    /// Has the host fetch what visits to come will look at: cores (`flow` does that elsewhere); routers, then
    /// their buffers, then those behind their links.
    #[inline]
    pub(crate) fn fetch_words(&self, visits: &[u32]) {
        if self.bytes >= LARGE {
            self.fetch_now(visits);
        }
    }

    /// Out of the way of the loop over visits, which most machines go through without it.
    #[inline(never)]
    fn fetch_now(&self, visits: &[u32]) {
        if let Some(&visit) = visits.get(FORESEEN - 1) {
            let pe = visit as usize / 2;
            if visit % 2 == 0 {
                self.routers[pe].as_deref().into_iter().for_each(prefetch);
            } else if !self.flow {
                self.cores[pe].as_deref().into_iter().for_each(prefetch);
            }
        }
        if let Some(router) = self.router_of(visits.get(6)) {
            router.open().for_each(prefetch);
        }
        for lane in self.router_of(visits.get(4)).into_iter().flat_map(Router::open) {
            if let Some(next) = self.behind(lane) {
                prefetch(&next.lanes);
            }
        }
        for lane in self.router_of(visits.get(2)).into_iter().flat_map(Router::open) {
            if let Some(next) = self.behind(lane) {
                next.lanes.get(usize::from(lane.next.lane)).into_iter().for_each(prefetch);
            }
        }
    }

    /// The router that a visit is to.
    #[inline]
    fn router_of(&self, visit: Option<&u32>) -> Option<&Router> {
        let visit = visit.filter(|visit| *visit % 2 == 0)?;
        self.routers[*visit as usize / 2].as_deref()
    }

    /// The router behind the link that a lane's words took last.
    #[inline]
    fn behind(&self, lane: &Lane) -> Option<&Router> {
        if lane.next.port == NONE { None } else { self.routers[lane.next.pe as usize].as_deref() }
    }
}
