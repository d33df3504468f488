//! What a word does that goes (R4 to R7).

use dflow_ir::loc::Loc;
use dflow_ir::mesh::wavelet::Command;
use dflow_ir::mesh::{Color, Port};

use super::lanes::Lanes;
use super::visit::Here;
use super::{Candidate, Lane, RAMP, Router};
use crate::exec::odd::Odd;
use crate::fabric::control;
use crate::fabric::ring::Slot;
use crate::pe::code::Code;
use crate::pe::plan::NO_TASK;
use crate::sched::region::{Message, Region};

impl<C: Code> Region<C> {
    /// R4 and R5 for a data word for which there is no more to do than to hand it on.
    #[inline]
    pub(super) fn pass(&mut self, here: &Here<'_, C>, router: &mut Router, granted: &Candidate) {
        self.stats.copies += u64::from(granted.outs.count_ones()) - 1;
        let word = self.leave_lane(here, router, granted.lane);
        let word = Slot { color: granted.color, ..word };
        self.hand_on(here, router, granted.lane, granted.outs, word);
        if !router.waiting.has(granted.lane) {
            return;
        }
        if self.took_last_place(here, router, granted) {
            router.blocked.add(granted.lane);
        } else {
            self.look_at_next(here, router, granted.lane);
        }
    }

    /// Whether a word that has gone took the last place for those behind it, which are then not
    /// looked at before there is one. A control wavelet may need none, and is looked at.
    fn took_last_place(&self, here: &Here<'_, C>, router: &Router, gone: &Candidate) -> bool {
        let Lane { ring, color, next, place, .. } = &router.lanes[usize::from(gone.lane)];
        let is_plain = ring.head().is_some_and(|head| !head.control && !head.advance);
        if !is_plain || place.is_any() || !gone.outs.is_power_of_two() {
            return false;
        }
        let port = gone.outs.trailing_zeros() as u8;
        if port == RAMP {
            let queue = self.queue_of(here.plan, router.number, here.pe, *color, here.t);
            let core = self.cores[here.pe as usize].as_deref();
            return core.zip(queue).is_some_and(|(core, queue)| core.inputs[queue].ring.is_full());
        }
        let neighbor = self.routers[next.pe as usize].as_deref();
        (next.port, next.color) == (port, *color)
            && neighbor.is_some_and(|it| it.lanes[usize::from(next.lane)].ring.is_full())
    }

    /// R4 to R7: moves a word.
    pub(super) fn grant(&mut self, here: &Here<'_, C>, router: &mut Router, granted: &Candidate) {
        let kept = u64::from(granted.filtered) + u64::from(granted.hidden);
        self.stats.copies += u64::from(granted.outs.count_ones()) + kept;
        self.stats.hidden += u64::from(granted.hidden);
        let mut word = self.take(here, router, granted);
        let index = usize::from(granted.index);
        if let Some(state) = router.filter_mut(granted.color).filter(|_| granted.judged) {
            state.count(word.control);
            state.kept += u64::from(granted.filtered);
            self.stats.filtered += u64::from(granted.filtered);
        }
        if granted.filtered && !word.control {
            self.rests(here.plan, here.pe, granted.color);
        }
        if word.control {
            let torn = command(here, router, granted, &mut word);
            if torn {
                self.tear(here, router, granted.color);
            }
        } else if word.advance {
            let row = &router.table(here.plan).colors[index];
            let next = row.next(router.position(granted.color));
            router.set_position(granted.color, next);
        }
        word.advance &= word.control;
        word.color = granted.color;
        let place = router.lanes[usize::from(granted.lane)].place;
        if place.is_any() {
            self.look_for_stop(here.plan, router, place);
        }
        if granted.hidden && granted.outs == 0 && !word.advance {
            self.unheard(here, router, word.color);
        }
        self.hand_on(here, router, granted.lane, granted.outs, word);
        // What could not go by the position, or the state of a filter, may go now.
        router.blocked = Lanes::default();
        if !router.waiting.is_empty() {
            self.wakes.router(here.pe, here.t + 1);
        }
    }

    /// A control wavelet for routers alone has ended, and none has done what it commands.
    fn unheard(&mut self, here: &Here<'_, C>, router: &Router, color: u8) {
        let Some(color) = Color::new(color) else { return };
        self.odd_at_router(here, router, Odd::Unheard { color, entry: None, table: 0 });
    }

    /// Notes something odd that no task of the PE has done.
    pub(super) fn odd_at_router(&mut self, here: &Here<'_, C>, router: &Router, odd: Odd) {
        let at = (router.number, NO_TASK);
        if let Err(fault) = self.odd(here.plan, at, odd, Loc::default(), here.t) {
            self.trap(here.plan, here.pe, here.t, *fault.kind, fault.color);
        }
    }

    /// The word that is granted; it leaves its lane with the last of its receptions.
    fn take(&mut self, here: &Here<'_, C>, router: &mut Router, granted: &Candidate) -> Slot {
        let lane = &mut router.lanes[usize::from(granted.lane)];
        if lane.rest == 0 {
            lane.rest = granted.receptions;
        }
        lane.rest &= !granted.reception;
        let head = lane.ring.head().copied();
        if lane.rest != 0
            && let Some(head) = head
        {
            return head;
        }
        // What leaves by one way is no copy.
        self.stats.copies -= 1;
        self.pop(here, router, granted.lane)
    }

    /// A word leaves its lane; the next one is looked at when it can be seen.
    fn pop(&mut self, here: &Here<'_, C>, router: &mut Router, index: u8) -> Slot {
        let word = self.leave_lane(here, router, index);
        if router.waiting.has(index) {
            self.look_at_next(here, router, index);
        }
        word
    }

    /// Looks at the head of a lane when it can be seen, in the next cycle at the earliest.
    #[inline]
    pub(super) fn look_at_next(&mut self, here: &Here<'_, C>, router: &Router, lane: u8) {
        let first = router.lanes[usize::from(lane)].ring.first();
        self.wakes.router(here.pe, first.max(here.t + 1));
    }

    /// A word leaves its lane.
    #[inline]
    pub(super) fn leave_lane(
        &mut self,
        here: &Here<'_, C>,
        router: &mut Router,
        index: u8,
    ) -> Slot {
        let free = here.t + here.plan.timing.credit;
        let lane = &mut router.lanes[usize::from(index)];
        let (color, port, was_full) = (lane.color, lane.port, lane.ring.is_full());
        let word = lane.ring.pop(free);
        if lane.ring.is_empty() {
            router.waiting.remove(index);
        }
        self.credit(here, router, (color, port), was_full, free);
        if self.flow {
            self.left_leap(here.plan, router, (index, free), here.t);
        }
        word
    }

    /// A color enters teardown: its core hears of it as of a word that comes down the ramp.
    fn tear(&mut self, here: &Here<'_, C>, router: &mut Router, color: u8) {
        router.torn |= 1 << color;
        if here.plan.program(router.number as usize).is_some() {
            let due = here.t + here.plan.timing.ramp_down;
            self.core(here.plan, here.code, here.pe).registers.tear(due, color);
            self.wakes.core(here.pe, due);
        }
    }

    /// Tells whoever fills a lane that one of its places is free from `free` on.
    #[inline]
    fn credit(
        &mut self,
        here: &Here<'_, C>,
        router: &Router,
        (color, port): (u8, u8),
        was_full: bool,
        free: u64,
    ) {
        if port == RAMP {
            if was_full {
                self.wakes.core(here.pe, free);
            }
            return;
        }
        let number = router.number as usize;
        let from = Port::ALL[usize::from(port)];
        if router.has_links && here.plan.link(number, from, color).is_some() {
            self.wakes.router(here.pe, free);
            return;
        }
        let side = router.sides[usize::from(port)];
        if side.exists() && side.region != self.id {
            let (region, pe, port) = (side.region, side.pe, port ^ 1);
            self.messages.push(Message::Credit { region, pe, color, port, free });
        } else if side.exists() && was_full {
            if let Some(before) = self.routers[side.pe as usize].as_deref_mut() {
                before.unblock_color(color);
            }
            self.wakes.router(side.pe, free);
        }
    }
}

/// R6: executes the first command and pops the list; whether it tears the color down.
fn command<C>(
    here: &Here<'_, C>,
    router: &mut Router,
    granted: &Candidate,
    word: &mut Slot,
) -> bool {
    let index = usize::from(granted.index);
    let row = &router.table(here.plan).colors[index];
    let command = control::first(word.payload);
    // Somebody has heard it.
    word.advance |= match command {
        Command::Nop => false,
        Command::Teardown => true,
        Command::Advance | Command::Reset => row.positions > 1,
    };
    let (new, payload) = row.obey(router.position(granted.color), word.payload);
    word.payload = payload;
    router.set_position(granted.color, new);
    command == Command::Teardown
}
