//! What visits to cores that flow will look at is fetched ahead: with many PEs a visit costs less than
//! the host's memory takes to answer.
//!
//! A core says where its operations stand, these say which pipes they use, and these where their words
//! are: each is asked one visit or two after it was sent for.

use super::code::Code;
use super::core::{Core, bits};
use super::op::Op;
use crate::fabric::channel::Outlet;
use crate::fabric::pipe::Pipe;
use crate::jit::prefetch;
use crate::sched::region::Region;

/// Bytes of state from which on a region is not in the host's nearest caches.
const LARGE: u64 = 1 << 20;

impl<C: Code> Core<C> {
    /// Fetches what it keeps elsewhere.
    fn fetch(&self, code: &C) {
        self.operations().for_each(prefetch);
        for queue in bits(self.flowing_in | self.arrived) {
            self.inputs.get(queue).into_iter().for_each(prefetch);
        }
        for queue in bits(self.flowing_out | self.leaving) {
            self.outputs.get(queue).into_iter().for_each(prefetch);
        }
        self.outlets.first().into_iter().for_each(prefetch);
        self.due.front().into_iter().for_each(prefetch);
        self.later.front().into_iter().for_each(prefetch);
        code.fetch(&self.state);
    }

    /// The pipes that an operation takes words from and puts words into, as far as is known.
    fn pipes_by(&self, op: &Op<C::Op>) -> impl Iterator<Item = u32> {
        let output = op.output.and_then(|output| match self.outlets.get(output.color.into()) {
            Some(&Outlet::Pipe(id)) => Some(id),
            _ => None,
        });
        op.feeds.pipes.into_iter().flatten().chain(output)
    }
}

impl<C: Code> Region<C> {
    /// Has the host fetch what visits to come will look at.
    #[inline]
    pub(crate) fn fetch(&self, code: &C, visits: &[u32]) {
        if self.bytes >= LARGE {
            self.fetch_cores(code, visits);
        }
    }

    /// Out of the way of the loop over visits, which most machines go through without it.
    #[inline(never)]
    fn fetch_cores(&self, code: &C, visits: &[u32]) {
        let core = |ahead: usize| self.cores[*visits.get(ahead)? as usize / 2].as_deref();
        core(8).into_iter().for_each(prefetch);
        if let Some(&visit) = visits.get(5) {
            self.wakes.fetch(visit / 2);
            self.incoming.iter().for_each(|of| prefetch(&of[visit as usize / 2]));
        }
        core(5).into_iter().for_each(|core| core.fetch(code));
        if let (Some(&visit), Some(incoming)) = (visits.get(3), &self.incoming) {
            incoming[visit as usize / 2].first().into_iter().for_each(prefetch);
        }
        let pipes = |ahead: usize| {
            let used = core(ahead).map(|it| it.operations().flat_map(|op| it.pipes_by(op)));
            used.into_iter().flatten().filter_map(|id| self.pipes.get(id as usize))
        };
        pipes(3).for_each(prefetch);
        pipes(1).for_each(Pipe::fetch);
    }
}
