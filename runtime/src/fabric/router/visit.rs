//! A visit to a router in one cycle: what may go, and in which order (R3 and R4).

use dflow_ir::mesh::{Color, Port};

use super::lanes::Lanes;
use super::{AS_IT_IS, Candidate, FROM_LANE, NOBODY, Router, SWAPPED};
use crate::fabric::ring::NEVER;
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::trap::TrapKind;

/// Which router is visited in which cycle.
pub(super) struct Here<'a, C> {
    pub(super) plan: &'a Plan,
    pub(super) code: &'a C,
    pub(super) pe: u32,
    pub(super) t: u64,
}

impl<C: Code> Region<C> {
    /// Visits a router in cycle `t`.
    pub(crate) fn visit_router(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        if self.flow {
            self.leave_gathers(plan, pe, t);
            self.leave_leaps(plan, pe, t);
            self.visit_lines(plan, code, pe, t);
        } else if self.wakes.are_kept() {
            if self.merges.any() {
                self.visit_merges(plan, pe, t);
            }
            self.visit_flights(plan, pe, t);
        }
        let busy = self.is_busy(pe);
        if self.turning != 0 && self.visit_turns(plan, code, (pe, busy), t) {
            return;
        }
        if self.steady != 0 && self.visit_steady(plan, code, (pe, busy), t) {
            return self.rearm_wanted(plan, pe, t);
        }
        if !busy {
            if self.flow {
                return self.descend_pipes(plan, code, pe, t);
            }
            self.descend(plan, code, pe, t);
            return self.rearm_wanted(plan, pe, t);
        }
        let ends = self.ends_at(pe);
        if ends && let Some(before) = t.checked_sub(1) {
            self.descend(plan, code, pe, before);
        }
        let Some(mut router) = self.routers[pe as usize].take() else { return };
        let here = Here { plan, code, pe, t };
        if !router.sources.is_empty() {
            self.inject(plan, &mut router, pe, t);
        }
        if ends || !self.visit_usual(&here, &mut router) {
            self.visit_any(&here, &mut router, ends);
        }
        self.routers[pe as usize] = Some(router);
        if self.flights.any() {
            self.check_flown(pe, t);
        }
    }

    /// Whether a router has words that could move, or are to come from the host.
    fn is_busy(&self, pe: u32) -> bool {
        self.routers[pe as usize].as_deref().is_some_and(Router::is_busy)
    }

    /// Whether all looks that are left when a run is ended before cycle `t` are at routers that hold no word, for merges
    /// whose words have left (`exact`).
    pub(crate) fn looks_for_nothing(&self, plan: &Plan, t: u64) -> bool {
        let is_idle = |visit: u32| visit.is_multiple_of(2) && !self.is_busy(visit / 2);
        let rests = self.late.is_empty() && self.merges.rest(&plan.timing, t);
        !self.flow && rests && !self.flights.hold_words() && self.wakes.all().all(is_idle)
    }

    /// Of the looks at routers that are left when a run is ended before cycle `t`, and all words stand in routers, keeps those
    /// that something may come of (`exact`): words that channels and merges held may stand as they are for good.
    ///
    /// That loses nothing, as what lets a word move without a look of its own has happened before `t`: places that
    /// become free later have stamps, which are looked at anew, bindings and registers act in the cycle after they are
    /// written, and a merge that words come to arranges its look.
    pub(crate) fn drop_idle_looks(&mut self, plan: &Plan, code: &C, t: u64) {
        if self.flow || !self.late.is_empty() {
            return;
        }
        for (pe, at) in self.wakes.take_routers() {
            if self.look_anew(&Here { plan, code, pe, t }) {
                self.wakes.router(pe, at);
            }
        }
    }

    /// Looks at a router without letting anything pass, and arranges looks for what may move later; whether something may in
    /// this cycle, or can be seen from then on only.
    fn look_anew(&mut self, here: &Here<'_, C>) -> bool {
        if !self.is_busy(here.pe) {
            return false;
        }
        let Some(mut router) = self.routers[here.pe as usize].take() else { return false };
        let is_plain = router.sources.iter().all(|source| source.words.is_empty())
            && router.lanes.iter().all(|lane| {
                let first = lane.ring.first();
                lane.judge == NOBODY && (first < here.t || first == NEVER)
            });
        let mut candidates = Vec::new();
        if is_plain {
            self.gather(here, &mut router, &mut candidates);
        }
        self.routers[here.pe as usize] = Some(router);
        !is_plain || !candidates.is_empty()
    }

    /// A visit to a router in which words may be in each other's way; `ends`: channels end there.
    fn visit_any(&mut self, here: &Here<'_, C>, router: &mut Router, ends: bool) {
        let Here { plan, code, pe, t } = *here;
        let mut candidates = std::mem::take(&mut self.candidates);
        self.gather(here, router, &mut candidates);
        if ends {
            self.arrivals(plan, code, pe, t, &mut candidates);
        }
        let moved = match &candidates[..] {
            [] => false,
            [one] => {
                self.go(here, router, one);
                true
            }
            _several => {
                self.arbitrate(here, router, &mut candidates);
                true
            }
        };
        candidates.clear();
        self.candidates = candidates;
        if moved {
            self.active_until = self.active_until.max(t + 1);
        }
        if ends {
            self.rearm_arrivals(plan, pe, t, moved);
        }
    }

    /// R4: the oldest go first, and what needs the way of one that has gone waits.
    fn arbitrate(&mut self, here: &Here<'_, C>, router: &mut Router, candidates: &mut [Candidate]) {
        candidates.sort_unstable_by_key(|it| (it.stamp, it.color, it.port));
        let (mut moved, mut taken, mut waits) = (0u32, 0u8, false);
        for candidate in candidates {
            if moved >> candidate.color & 1 != 0 || taken & candidate.outs != 0 {
                waits = true;
                continue;
            }
            moved |= 1 << candidate.color;
            taken |= candidate.outs;
            self.go(here, router, candidate);
        }
        if waits {
            self.wakes.router(here.pe, here.t + 1);
        }
    }

    /// A word goes.
    #[inline]
    fn go(&mut self, here: &Here<'_, C>, router: &mut Router, granted: &Candidate) {
        if granted.channel != FROM_LANE {
            self.leave(here.plan, here.code, here.pe, here.t, granted.channel);
        } else if granted.is_plain {
            self.pass(here, router, granted);
        } else {
            self.grant(here, router, granted);
        }
    }

    /// R3: the candidates.
    #[inline]
    fn gather(&mut self, here: &Here<'_, C>, router: &mut Router, candidates: &mut Vec<Candidate>) {
        if !self.wakes.are_kept() {
            router.blocked = Lanes::default();
        }
        #[cfg(test)]
        if !router.blocked.is_empty() {
            crate::sched::reached::note(crate::sched::reached::Reached::PassedOver);
        }
        let mut left = router.waiting.without(router.blocked);
        while let Some(index) = left.pop() {
            let lane = &router.lanes[usize::from(index)];
            let Some(head) = lane.ring.visible(here.t) else {
                self.wakes.router(here.pe, lane.ring.first());
                continue;
            };
            if lane.judge != NOBODY {
                self.gather_judged(here, router, index, candidates);
                continue;
            }
            let candidate = router.plain_candidate(index, lane, head);
            if candidate.is_none_or(|it| self.offer(here, router, it, candidates) == NEVER) {
                router.blocked.add(index);
            }
        }
    }

    /// R3 for the head of a lane whose words a filter or a swap has a say in.
    fn gather_judged(
        &mut self,
        here: &Here<'_, C>,
        router: &mut Router,
        index: u8,
        candidates: &mut Vec<Candidate>,
    ) {
        let lane = &router.lanes[usize::from(index)];
        let (color, port, rest) = (lane.color, lane.port, lane.rest);
        let Some(&head) = lane.ring.head() else { return };
        let receptions = if rest != 0 { rest } else { router.receptions(here.plan, lane) };
        if receptions == 0 {
            self.strange(here, router, color, port);
        }
        for (reception, color) in [(AS_IT_IS, color), (SWAPPED, color ^ 1)] {
            if receptions & reception == 0 {
                continue;
            }
            let core = self.cores[here.pe as usize].as_deref();
            let unfiltered = core.is_some_and(|core| core.bound.unfiltered(color, here.t));
            let found = router.candidate(here.plan, &head, (color, port), unfiltered);
            if let Some(found) = found {
                let candidate = Candidate { lane: index, reception, receptions, ..found };
                self.offer(here, router, candidate, candidates);
            }
        }
    }

    /// Makes a candidate of a head word for which there is a place; from when there is.
    #[inline]
    fn offer(
        &mut self,
        here: &Here<'_, C>,
        router: &mut Router,
        candidate: Candidate,
        candidates: &mut Vec<Candidate>,
    ) -> u64 {
        let free = self.free_from(here, router, &candidate);
        if free <= here.t {
            candidates.push(candidate);
        } else if free != NEVER {
            self.wakes.router(here.pe, free);
        }
        free
    }

    /// A word of a color that is not configured: a trap, unless the program may do that yet.
    fn strange(&mut self, here: &Here<'_, C>, router: &Router, color: u8, port: u8) {
        let program = here.plan.program(router.number as usize);
        if program.is_some_and(|program| program.configures) {
            return;
        }
        let from = Port::ALL[usize::from(port)];
        self.trap(here.plan, here.pe, here.t, TrapKind::NoRoute { from }, Color::new(color));
    }
}
