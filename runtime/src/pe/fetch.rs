//! What visits to cores that flow will look at is fetched ahead: with many PEs a visit costs less than
//! the host's memory takes to answer.
//!
//! A core says where its operations stand: it is asked some visits after it was sent for. Pipes and their words are not
//! sent for: these are many lines, and to send for all takes as long as to wait for the few that are looked at.

use super::code::Code;
use super::core::{Core, bits};
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
        }
        core(5).into_iter().for_each(|core| core.fetch(code));
    }
}
