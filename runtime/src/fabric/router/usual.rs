//! The usual visit to a router: one word may go, and it is a data word, of which the switch and at
//! most a filter say where it goes: down the ramp, over one link, or both.
//!
//! It does what [`super::visit`] and [`super::grant`] do with such a word, and looks up once what
//! those ask for several times.

use super::lanes::Lanes;
use super::visit::Here;
use super::{Lane, NOBODY, OTHERS, RAMP, Router};
use crate::fabric::ring::{NEVER, Slot};
use crate::pe::code::Code;
use crate::sched::region::Region;

/// Where a word goes.
#[derive(Clone, Copy)]
struct Way {
    /// The input queue of the core that takes it.
    queue: Option<u8>,
    /// The neighbour and the buffer behind the link.
    link: Option<(u32, u8)>,
    /// From which cycle all of them have a place.
    free: u64,
    /// A filter has judged it, and keeps it from the core.
    judged: bool,
    filtered: bool,
}

impl<C: Code> Region<C> {
    /// Visits a router in which no channel ends, if its visit is a usual one; else does nothing but
    /// arrange looks at words to come.
    #[inline]
    pub(super) fn visit_usual(&mut self, here: &Here<'_, C>, router: &mut Router) -> bool {
        if !self.wakes.are_kept() {
            return false;
        }
        let (mut left, mut only) = (router.waiting.without(router.blocked), None);
        while let Some(index) = left.pop() {
            let first = router.lanes[usize::from(index)].ring.first();
            if first > here.t {
                self.wakes.router(here.pe, first);
            } else if only.replace(index).is_some() {
                return false;
            }
        }
        only.is_none_or(|index| self.go_usual(here, router, index))
    }

    /// The head of a lane goes if it has its places; false if it is not a usual one.
    #[inline]
    fn go_usual(&mut self, here: &Here<'_, C>, router: &mut Router, index: u8) -> bool {
        let Some(way) = self.usual_way(here, router, index) else { return false };
        #[cfg(test)]
        note(router, way);
        if way.free > here.t {
            if way.free == NEVER {
                router.blocked.add(index);
            } else {
                self.wakes.router(here.pe, way.free);
            }
            return true;
        }
        self.active_until = self.active_until.max(here.t + 1);
        let lane = &router.lanes[usize::from(index)];
        let (judge, color) = (lane.judge, lane.color);
        let word = Slot { color, ..self.leave_lane(here, router, index) };
        let ways = u64::from(way.queue.is_some()) + u64::from(way.link.is_some());
        self.stats.copies += ways + u64::from(way.filtered) - 1;
        let is_full = self.hand_on_usual(here, word, way);
        if way.judged {
            self.count_judged(here, router, (judge, color), way.filtered);
        }
        if !router.waiting.has(index) {
            return true;
        }
        // Those behind it are not looked at before there is a place. A control wavelet may need none,
        // and a filter may say something else of the next one.
        let next = router.lanes[usize::from(index)].ring.head();
        if is_full && !way.judged && next.is_some_and(|next| !next.control && !next.advance) {
            router.blocked.add(index);
        } else {
            self.look_at_next(here, router, index);
        }
        true
    }

    /// Where the head of a lane goes; none if it is not a usual one. A word that the switch does not take
    /// has a place never.
    #[inline]
    fn usual_way(&self, here: &Here<'_, C>, router: &Router, index: u8) -> Option<Way> {
        let Lane { ring, color, judge, outs, next, place, .. } = &router.lanes[usize::from(index)];
        let head = ring.head()?;
        if *judge == OTHERS || head.control || head.advance || place.is_any() {
            return None;
        }
        let mut way = Way { queue: None, link: None, free: 0, judged: false, filtered: false };
        let outs = outs[usize::from(router.position(*color))];
        if outs == 0 || router.is_torn(*color) {
            return Some(Way { free: NEVER, ..way });
        }
        if outs >> RAMP & 1 != 0 {
            let core = self.cores[here.pe as usize].as_deref();
            if core.is_some_and(|core| !core.bound.are_planned()) {
                return None;
            }
            way.judged = *judge != NOBODY;
            way.filtered = way.judged && {
                let filter = &router.filters[usize::from(*judge)];
                !filter.passes(head.payload, false)
            };
            if !way.filtered {
                let core = core?;
                let program = &here.plan.programs[usize::from(core.at.program)];
                match program.queue_of(*color) {
                    Some(queue) => way.free = core.inputs[queue].ring.free_from(),
                    None => way.free = NEVER,
                }
                way.queue = program.queue_of(*color).map(|queue| queue as u8);
            }
        }
        let links = outs & !(1 << RAMP);
        if links != 0 {
            if !links.is_power_of_two()
                || (next.port, next.color) != (links.trailing_zeros() as u8, *color)
            {
                return None;
            }
            let neighbour = self.routers[next.pe as usize].as_deref()?;
            way.free = way.free.max(neighbour.lanes[usize::from(next.lane)].ring.free_from());
            way.link = Some((next.pe, next.lane));
        }
        Some(way)
    }

    /// A word that has left its lane goes its way; whether it took the last place of one of its buffers.
    #[inline]
    fn hand_on_usual(&mut self, here: &Here<'_, C>, word: Slot, way: Way) -> bool {
        let mut is_full = false;
        if let Some(queue) = way.queue.map(usize::from)
            && let Some(core) = self.cores[here.pe as usize].as_deref_mut()
        {
            let word = Slot { stamp: here.t + here.plan.timing.ramp_down, ..word };
            let (number, is_news) = (core.at.number, core.is_news(queue, &word));
            core.take_in(queue, word);
            is_full = core.inputs[queue].ring.is_full();
            self.announce_word(here.pe, word.stamp, is_news);
            self.delivered(number, queue, word);
        }
        if let Some((pe, lane)) = way.link
            && let Some(neighbour) = self.routers[pe as usize].as_deref_mut()
        {
            let stamp = here.t + here.plan.timing.hop;
            let was_empty = neighbour.add(lane, Slot { stamp, ..word });
            is_full |= neighbour.lanes[usize::from(lane)].ring.is_full();
            if was_empty {
                self.wakes.router(pe, stamp);
            }
            self.stats.hops += 1;
            self.trespass(here.plan, pe, word.color);
        }
        is_full
    }

    /// A filter has judged a data word of its color that has gone: what waits may go now.
    fn count_judged(
        &mut self,
        here: &Here<'_, C>,
        router: &mut Router,
        (filter, color): (u8, u8),
        filtered: bool,
    ) {
        let state = &mut router.filters[usize::from(filter)];
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
