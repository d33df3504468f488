//! Words that enter a router from the host.

use super::{Dealing, Router};
use crate::fabric::ring::{NEVER, Slot};
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::{Way, Why};

impl<C: Code> Region<C> {
    /// Lets host words enter (spec/time.md, section 8).
    pub(super) fn inject(&mut self, plan: &Plan, router: &mut Router, pe: u32, t: u64) {
        for index in 0..router.sources.len() {
            let source = &router.sources[index];
            let Some(&(cycle, word)) = source.words.front() else { continue };
            let (color, port) = (source.color, source.port);
            let from = cycle.max(source.next).max(router.free_from(color, port));
            if self.flow
                && source.dealing == Dealing::Routers
                && cycle.max(source.next) <= t
                && self.enter_pipe(plan, (router, pe), index, t)
            {
                continue;
            }
            if from > t {
                if from != NEVER {
                    self.wakes.router(pe, from);
                }
                continue;
            }
            let stamp = t + plan.timing.hop;
            let slot =
                Slot { stamp, payload: word.payload, control: word.control, ..Slot::default() };
            if router.push(plan, color, port, plan.timing.link_places, slot) {
                self.wakes.router(pe, stamp);
            }
            self.trespass(plan, pe, color);
            self.walks(plan, router.sources[index].dealing, word);
            self.entered(router, pe, index, t, Way::Routers(Why::Host));
        }
    }

    /// Likewise, of a router that is not being visited.
    pub(in crate::fabric) fn enters(&mut self, pe: u32, index: usize, t: u64, way: Way) {
        if let Some(mut router) = self.routers[pe as usize].take() {
            self.entered(&mut router, pe, index, t, way);
            self.routers[pe as usize] = Some(router);
        }
    }

    /// The first word of a source has entered in cycle `t`.
    fn entered(&mut self, router: &mut Router, pe: u32, index: usize, t: u64, way: Way) {
        let source = &mut router.sources[index];
        source.next = t + 1;
        let Some((_, word)) = source.words.pop_front() else { return };
        self.active_until = self.active_until.max(t + 1);
        self.stats.entered += 1;
        self.ways.count(source.color, way, 1);
        if source.counted {
            self.to_host.push((source.link, t, word));
        }
        if !source.words.is_empty() {
            self.wakes.router(pe, t + 1);
        }
    }
}
