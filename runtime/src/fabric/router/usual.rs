//! The usual visit to a router: all that may go are data words, of which the switch and at most a
//! filter say where they go, in the same region.
//!
//! It does what [`super::visit`] and [`super::grant`] do with such words, and looks up once what
//! those ask for several times.

use super::lanes::Lanes;
use super::visit::Here;
use super::{Lane, NOBODY, NONE, OTHERS, RAMP, Router};
use crate::fabric::ring::{NEVER, Slot};
use crate::pe::code::Code;
use crate::pe::core::bits;
use crate::sched::region::Region;

/// Heads that may go in the same cycle, at most.
const HEADS: usize = 4;

/// A head that may go: its place in the order of R4 (stamp, color, port), its lane, its way and all
/// outputs that it takes.
#[derive(Clone, Copy, Default)]
struct Head {
    order: u64,
    color: u8,
    lane: u8,
    outs: u8,
    way: Way,
}

/// Where a word goes.
#[derive(Clone, Copy, Default)]
struct Way {
    /// From which cycle all buffers have a place.
    free: u64,
    /// The neighbor behind its first link, and the buffer there, or [`NONE`].
    pe: u32,
    lane: u8,
    /// Its further links, as bits.
    more: u8,
    /// The input queue of the core that takes it, or [`NONE`].
    queue: u8,
    /// A filter has judged it, and keeps it from the core.
    judged: bool,
    filtered: bool,
}

impl Way {
    /// To how many buffers it leads.
    #[inline]
    fn count(&self) -> u32 {
        let first = u32::from(self.lane != NONE) + u32::from(self.queue != NONE);
        first + self.more.count_ones()
    }
}

impl<C: Code> Region<C> {
    /// Visits a router in which no channel ends, if its visit is a usual one; else does nothing but
    /// arrange looks at words to come.
    #[inline]
    pub(super) fn visit_usual(&mut self, here: &Here<'_, C>, router: &mut Router) -> bool {
        if !self.wakes.are_kept() || !router.waiting.are_few() {
            return false;
        }
        let mut only = NONE;
        let mut left = router.waiting.first_without(router.blocked);
        while left != 0 {
            let index = left.trailing_zeros() as u8;
            left &= left - 1;
            let stamp = router.lanes[usize::from(index)].ring.first();
            if stamp > here.t {
                self.wakes.router(here.pe, stamp);
            } else if only != NONE {
                return self.visit_several(here, router);
            } else {
                only = index;
            }
        }
        if only == NONE {
            return true;
        }
        let Some(way) = self.usual_way(here, router, &router.lanes[usize::from(only)]) else {
            return false;
        };
        #[cfg(test)]
        note(router, way);
        if way.free > here.t {
            self.waits(here, router, only, way.free);
        } else {
            self.go_usual(here, router, only, way);
        }
        true
    }

    /// Likewise, where several words may go. R4: the oldest go first, and what needs the way of one that
    /// has gone waits.
    #[inline(never)]
    fn visit_several(&mut self, here: &Here<'_, C>, router: &mut Router) -> bool {
        let (mut heads, mut count) = ([Head::default(); HEADS], 0);
        let mut left = router.waiting.first_without(router.blocked);
        while left != 0 {
            let index = left.trailing_zeros() as u8;
            left &= left - 1;
            let lane = &router.lanes[usize::from(index)];
            let stamp = lane.ring.first();
            if stamp > here.t {
                self.wakes.router(here.pe, stamp);
                continue;
            }
            let Some(way) = self.usual_way(here, router, lane) else { return false };
            if way.free > here.t {
                self.waits(here, router, index, way.free);
                continue;
            }
            let Some(head) = heads.get_mut(count) else { return false };
            let lane = &router.lanes[usize::from(index)];
            let (color, outs) = (lane.color, lane.outs[usize::from(router.position(lane.color))]);
            let outs = if way.filtered { outs & !(1 << RAMP) } else { outs };
            let order = stamp << 8 | u64::from(color) << 3 | u64::from(lane.port);
            *head = Head { order, color, lane: index, outs, way };
            count += 1;
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Ordered);
        let heads = &mut heads[..count];
        if count > 1 {
            heads.sort_unstable_by_key(|head| head.order);
        }
        let (mut moved, mut taken, mut waits) = (0u32, 0u8, false);
        for head in heads {
            if moved >> head.color & 1 != 0 || taken & head.outs != 0 {
                waits = true;
                continue;
            }
            moved |= 1 << head.color;
            taken |= head.outs;
            // Those that have gone before it are of other colors: its way is as it was.
            self.go_one_of(here, router, head.lane, head.way);
        }
        if waits {
            self.wakes.router(here.pe, here.t + 1);
        }
        true
    }

    /// The head of a lane has no place before cycle `free`.
    #[inline]
    fn waits(&mut self, here: &Here<'_, C>, router: &mut Router, index: u8, free: u64) {
        if free == NEVER {
            router.blocked.add(index);
        } else {
            self.wakes.router(here.pe, free);
        }
    }

    /// One of several heads goes, as [`Region::go_usual`] says.
    #[inline(never)]
    fn go_one_of(&mut self, here: &Here<'_, C>, router: &mut Router, lane: u8, way: Way) {
        self.go_usual(here, router, lane, way);
    }

    /// The head of a lane goes, as there are places.
    #[inline(always)]
    fn go_usual(&mut self, here: &Here<'_, C>, router: &mut Router, index: u8, way: Way) {
        self.active_until = self.active_until.max(here.t + 1);
        let color = router.lanes[usize::from(index)].color;
        let word = Slot { color, ..self.leave_lane(here, router, index) };
        self.stats.copies += u64::from(way.count()) + u64::from(way.filtered) - 1;
        let mut is_full = self.hand_on_usual(here, word, way);
        if way.more != 0 {
            is_full |= self.hand_on_more(here, router, (index, way.more), word);
        }
        if way.judged {
            self.count_judged(here, router, index, way.filtered);
        }
        if !router.waiting.has(index) {
            return;
        }
        // Those behind it are not looked at before there is a place. A control wavelet may need none,
        // and a filter may say something else of the next one.
        let next = router.lanes[usize::from(index)].ring.head();
        if is_full && !way.judged && next.is_some_and(|next| !next.control && !next.advance) {
            router.blocked.add(index);
        } else {
            self.look_at_next(here, router, index);
        }
    }

    /// Where the head of a lane goes; none if it is not a usual one. A word that the switch does not take
    /// has a place never.
    #[inline(always)]
    fn usual_way(&self, here: &Here<'_, C>, router: &Router, lane: &Lane) -> Option<Way> {
        let head = lane.ring.head()?;
        if lane.judge == OTHERS || head.control || head.advance || lane.place.is_any() {
            return None;
        }
        let mut outs = lane.outs[usize::from(router.position(lane.color))];
        let mut way = Way {
            free: 0,
            pe: 0,
            lane: NONE,
            more: 0,
            queue: NONE,
            judged: false,
            filtered: false,
        };
        if outs == 0 || router.is_torn(lane.color) {
            way.free = NEVER;
            return Some(way);
        }
        if outs >> RAMP & 1 != 0 {
            outs &= !(1 << RAMP);
            let core = self.cores[here.pe as usize].as_deref()?;
            if !core.bound.are_planned() {
                return None;
            }
            if lane.judge != NOBODY {
                way.judged = true;
                let filter = &router.filters[usize::from(lane.judge)];
                way.filtered = !filter.passes(head.payload, false);
            }
            if !way.filtered {
                let program = &here.plan.programs[usize::from(core.at.program)];
                match program.queue_of(lane.color) {
                    Some(queue) => {
                        way.free = core.inputs[queue].ring.free_from();
                        way.queue = queue as u8;
                    }
                    None => way.free = NEVER,
                }
            }
        }
        if outs != 0 {
            let first = outs.trailing_zeros() as u8;
            (way.pe, way.lane) = self.behind_usual(router, lane, first)?;
            way.more = outs & (outs - 1);
            way.free = way.free.max(self.free_at((way.pe, way.lane))?);
        }
        if way.more != 0 {
            way.free = way.free.max(self.free_of_more(router, lane, way.more)?);
        }
        Some(way)
    }

    /// From which cycle a neighbor's buffer has a place.
    #[inline(always)]
    fn free_at(&self, (pe, lane): (u32, u8)) -> Option<u64> {
        let neighbor = self.routers[pe as usize].as_deref()?;
        Some(neighbor.lanes[usize::from(lane)].ring.free_from())
    }

    /// From which cycle the buffers behind further links have places.
    #[inline(never)]
    fn free_of_more(&self, router: &Router, lane: &Lane, more: u8) -> Option<u64> {
        let mut free = 0;
        for port in bits(more.into()) {
            free = free.max(self.free_at(self.behind_usual(router, lane, port as u8)?)?);
        }
        Some(free)
    }

    /// The neighbor behind a link of a router, and its buffer for the words of a lane, if it is in the
    /// same region and has one.
    #[inline(always)]
    fn behind_usual(&self, router: &Router, lane: &Lane, port: u8) -> Option<(u32, u8)> {
        if (lane.next.port, lane.next.color) == (port, lane.color) {
            return Some((lane.next.pe, lane.next.lane));
        }
        let side = router.sides[usize::from(port)];
        if router.has_links || side.region != self.id {
            return None;
        }
        let neighbor = self.routers[side.pe as usize].as_deref()?;
        let to = neighbor.lane_of[usize::from(lane.color)][usize::from(port ^ 1)];
        (to != NONE).then_some((side.pe, to))
    }

    /// A word that has left its lane goes down the ramp, or over its first link, or both; whether it took
    /// the last place of one of the buffers.
    #[inline(always)]
    fn hand_on_usual(&mut self, here: &Here<'_, C>, word: Slot, way: Way) -> bool {
        let mut is_full = false;
        if way.queue != NONE
            && let Some(core) = self.cores[here.pe as usize].as_deref_mut()
        {
            let queue = usize::from(way.queue);
            let word = Slot { stamp: here.t + here.plan.timing.ramp_down, ..word };
            let (number, is_news) = (core.at.number, core.is_news(queue, &word));
            core.take_in(queue, word);
            is_full = core.inputs[queue].ring.is_full();
            self.announce_word(here.pe, word.stamp, is_news);
            self.delivered(number, queue, word);
        }
        if way.lane != NONE {
            is_full |= self.pass_over(here, word, (way.pe, way.lane));
        }
        is_full
    }

    /// It goes over further links.
    #[inline(never)]
    fn hand_on_more(
        &mut self,
        here: &Here<'_, C>,
        router: &Router,
        (lane, more): (u8, u8),
        word: Slot,
    ) -> bool {
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Split);
        let mut is_full = false;
        for port in bits(more.into()) {
            let behind = self.behind_usual(router, &router.lanes[usize::from(lane)], port as u8);
            is_full |= behind.is_some_and(|behind| self.pass_over(here, word, behind));
        }
        is_full
    }

    /// It goes into a neighbor's buffer; whether it took the last place.
    #[inline]
    fn pass_over(&mut self, here: &Here<'_, C>, word: Slot, (pe, lane): (u32, u8)) -> bool {
        let Some(neighbor) = self.routers[pe as usize].as_deref_mut() else { return false };
        let stamp = here.t + here.plan.timing.hop;
        let was_empty = neighbor.add(lane, Slot { stamp, ..word });
        let is_full = neighbor.lanes[usize::from(lane)].ring.is_full();
        if was_empty {
            self.wakes.router(pe, stamp);
        }
        self.stats.hops += 1;
        self.trespass(here.plan, pe, word.color);
        is_full
    }

    /// A filter has judged a data word of its color that has gone: what waits may go now.
    fn count_judged(&mut self, here: &Here<'_, C>, router: &mut Router, lane: u8, filtered: bool) {
        let Lane { judge, color, .. } = router.lanes[usize::from(lane)];
        let state = &mut router.filters[usize::from(judge)];
        state.count(false);
        state.kept += u64::from(filtered);
        if filtered {
            self.stats.filtered += 1;
            self.rests(here.plan, here.pe, color);
        }
        if !router.blocked.is_empty() {
            router.blocked = Lanes::default();
            self.wakes.router(here.pe, here.t + 1);
        }
    }
}

/// For tests: such visits are counted.
#[cfg(test)]
fn note(router: &Router, way: Way) {
    use crate::sched::reached::{self, Reached};
    reached::note(Reached::Usual);
    if way.judged {
        reached::note(Reached::Judged);
    }
    if !router.blocked.is_empty() {
        reached::note(Reached::PassedOver);
    }
}
