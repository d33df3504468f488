//! What visits to come will look at is fetched ahead: with many PEs a visit costs less than the
//! host's memory takes to answer.

use super::{Lane, NONE, Router};
use crate::jit::prefetch;
use crate::pe::code::Code;
use crate::sched::region::Region;

impl Router {
    /// The lanes that hold words which may go.
    fn open(&self) -> impl Iterator<Item = &Lane> {
        let mut left = self.waiting & !self.blocked;
        std::iter::from_fn(move || {
            let lane = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            self.lanes.get(lane)
        })
    }
}

impl<C: Code> Region<C> {
    /// Has the host fetch what visits to come will look at: cores; routers, then their buffers, then
    /// those behind their links.
    #[inline]
    pub(crate) fn fetch_words(&self, visits: &[u32]) {
        let pe_of = |ahead: usize, kind: u32| {
            let visit = visits.get(ahead).filter(|visit| *visit % 2 == kind)?;
            Some(visit / 2)
        };
        if let Some(pe) = pe_of(9, 1) {
            self.cores[pe as usize].as_deref().into_iter().for_each(prefetch);
        }
        let at = |pe: u32| self.routers[pe as usize].as_deref();
        let visited = |ahead| at(pe_of(ahead, 0)?);
        if let Some(router) = visited(9) {
            prefetch(router);
        }
        if let Some(router) = visited(6) {
            router.open().for_each(prefetch);
        }
        let next = |ahead| {
            let lanes = visited(ahead).into_iter().flat_map(Router::open);
            let next = lanes.map(|lane| lane.next).filter(|next| next.port != NONE);
            next.filter_map(|next| Some((at(next.pe)?, next.lane)))
        };
        for (router, _) in next(4) {
            prefetch(&router.lanes);
        }
        for (router, lane) in next(2) {
            router.lanes.get(usize::from(lane)).into_iter().for_each(prefetch);
        }
    }
}
