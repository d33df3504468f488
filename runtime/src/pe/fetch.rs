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
use crate::fabric::router::LARGE;
use crate::jit::prefetch;
use crate::sched::region::Region;

impl<C: Code> Core<C> {
    /// Fetches what it keeps elsewhere.
    fn fetch(&self, code: &C) {
        for op in self.threads.iter() {
            prefetch(op);
        }
        if let Some(op) = self.main.operation() {
            prefetch(op);
        }
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

    /// Calls a function with the pipes that its operations take words from and put words into, as far
    /// as is known.
    #[inline]
    fn each_pipe(&self, mut f: impl FnMut(u32)) {
        let mut each = |op: &Op<C::Op>| {
            for id in op.feeds.pipes.into_iter().flatten() {
                f(id);
            }
            if let Some(output) = op.output
                && let Some(&Outlet::Pipe(id)) = self.outlets.get(output.color.into())
            {
                f(id);
            }
        };
        for op in self.threads.iter() {
            each(op);
        }
        if let Some(op) = self.main.operation() {
            each(op);
        }
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
        let pipe = |id: u32| self.pipes.get(id as usize).into_iter();
        if let Some(core) = core(3) {
            core.each_pipe(|id| pipe(id).for_each(prefetch));
        }
        if let Some(core) = core(1) {
            core.each_pipe(|id| pipe(id).for_each(Pipe::fetch));
        }
    }
}
