//! Where words go that leave a router: whether there is a place, and handing them on (R5).

use dflow_ir::mesh::{Color, Port, Wavelet};

use super::visit::Here;
use super::{Candidate, Lane, Next, RAMP, Router};
use crate::exec::odd::Odd;
use crate::fabric::ring::{NEVER, Slot};
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::{Message, Region, Way};

impl<C: Code> Region<C> {
    /// The input queue of a PE's core that takes a color in cycle `t`.
    pub(in crate::fabric) fn queue_of(
        &self,
        plan: &Plan,
        number: u32,
        pe: u32,
        color: u8,
        t: u64,
    ) -> Option<usize> {
        let program = plan.program(number as usize)?;
        match &self.cores[pe as usize] {
            Some(core) => core.bound.queue_of(program, color, t),
            None => program.queue_of(color),
        }
    }

    /// From which cycle all outputs of a word have a place.
    #[inline]
    pub(super) fn free_from(
        &mut self,
        here: &Here<'_, C>,
        router: &mut Router,
        word: &Candidate,
    ) -> u64 {
        let (mut free, mut outs) = (0, word.outs);
        while outs != 0 {
            let port = outs.trailing_zeros() as u8;
            outs &= outs - 1;
            let Lane { next, place, .. } = router.lanes[usize::from(word.lane)];
            let one = if port == RAMP {
                self.free_in_core(here, router.number, word.color)
            } else if place.is_any()
                && let Some(free) = self.free_to_leap(here, router, word.lane)
            {
                free
            } else if (next.port, next.color) == (port, word.color) {
                let neighbor = self.routers[next.pe as usize].as_deref();
                neighbor.map_or(0, |it| it.lanes[usize::from(next.lane)].ring.free_from())
            } else {
                self.free_behind(here, router, word, port)
            };
            free = free.max(one);
        }
        free
    }

    /// From which cycle the core has a place for a word of a color.
    fn free_in_core(&mut self, here: &Here<'_, C>, number: u32, color: u8) -> u64 {
        match self.queue_of(here.plan, number, here.pe, color, here.t) {
            Some(queue) => self.core(here.plan, here.code, here.pe).inputs[queue].ring.free_from(),
            None => NEVER,
        }
    }

    /// From which cycle the head of a lane that stands in a leap has a place, if it leaps.
    fn free_to_leap(&mut self, here: &Here<'_, C>, router: &Router, lane: u8) -> Option<u64> {
        let Lane { place, ring, .. } = &router.lanes[usize::from(lane)];
        let control = ring.head().is_some_and(|head| head.control);
        self.free_in_leap(here.plan, (here.pe, *place), control)
    }

    /// From which cycle there is a place behind a link that has not been looked up.
    fn free_behind(
        &mut self,
        here: &Here<'_, C>,
        router: &mut Router,
        word: &Candidate,
        port: u8,
    ) -> u64 {
        let Candidate { color, lane, .. } = *word;
        if self.flow && !router.lanes[usize::from(lane)].place.is_any() {
            let place = self.place_in_leap(here.plan, here.pe, color, port);
            router.lanes[usize::from(lane)].place = place;
            if place.is_any()
                && let Some(free) = self.free_to_leap(here, router, lane)
            {
                return free;
            }
        }
        match router.way(here.plan, self.id, port, color) {
            Way::Near { pe, port } => {
                let neighbor = self.routers[pe as usize].as_deref();
                neighbor.map_or(0, |neighbor| neighbor.free_from(color, port))
            }
            Way::Far { .. } => router.shadow(color, port, here.plan.timing.link_places).free_from(),
            Way::Host { link } => self.room(link),
            Way::Outside => 0,
        }
    }

    /// Hands a word that has left lane `lane` on to its outputs.
    #[inline]
    pub(super) fn hand_on(
        &mut self,
        here: &Here<'_, C>,
        router: &mut Router,
        lane: u8,
        mut outs: u8,
        word: Slot,
    ) {
        while outs != 0 {
            let port = outs.trailing_zeros() as u8;
            outs &= outs - 1;
            let Lane { next, place, .. } = router.lanes[usize::from(lane)];
            if place.is_any() && self.leaps(here.plan, place, word, here.t) {
                continue;
            }
            if port == RAMP {
                self.go_down(here, router, word);
            } else if (next.port, next.color) == (port, word.color)
                && let Some(neighbor) = self.routers[next.pe as usize].as_deref_mut()
            {
                self.stats.hops += 1;
                let stamp = here.t + here.plan.timing.hop;
                if neighbor.add(next.lane, Slot { stamp, ..word }) {
                    self.wakes.router(next.pe, stamp);
                }
                self.trespass(here.plan, next.pe, word.color);
            } else {
                self.forward(here, router, lane, port, word);
            }
        }
    }

    /// A word goes down the ramp.
    fn go_down(&mut self, here: &Here<'_, C>, router: &Router, word: Slot) {
        let queue = self.queue_of(here.plan, router.number, here.pe, word.color, here.t);
        if let Some(queue) = queue {
            let stamp = here.t + here.plan.timing.ramp_down;
            self.deliver(here.plan, here.code, here.pe, queue, Slot { stamp, ..word });
        }
    }

    /// A word goes over a link that has not been looked up.
    fn forward(
        &mut self,
        here: &Here<'_, C>,
        router: &mut Router,
        lane: u8,
        port: u8,
        mut word: Slot,
    ) {
        let plan = here.plan;
        word.stamp = here.t + plan.timing.hop;
        match router.way(plan, self.id, port, word.color) {
            Way::Near { pe, port: entry } => {
                self.stats.hops += 1;
                let neighbor = self.router(plan, pe);
                if neighbor.push(plan, word.color, entry, plan.timing.link_places, word) {
                    self.wakes.router(pe, word.stamp);
                }
                if let Some(neighbor) = &self.routers[pe as usize] {
                    let to = neighbor.lane_of[usize::from(word.color)][usize::from(entry)];
                    let next = Next { port, color: word.color, lane: to, pe };
                    router.lanes[usize::from(lane)].next = next;
                }
                self.trespass(plan, pe, word.color);
            }
            Way::Far { region, pe, port: entry } => {
                self.stats.hops += 1;
                router
                    .shadow(word.color, port, plan.timing.link_places)
                    .push(Slot { stamp: word.stamp, ..Slot::default() });
                self.messages.push(Message::Word { region, pe, port: entry, word });
            }
            Way::Host { link } => self.go_to_host(plan, here.pe, link, word),
            Way::Outside => {
                self.stats.gone += 1;
                if let Some(color) = Color::new(word.color) {
                    let odd = Odd::LeftMesh { color, port: Port::ALL[usize::from(port)] };
                    self.odd_at_router(here, router, odd);
                }
            }
        }
    }

    /// A word leaves by a link of a router to the host, where its stamp is when it comes.
    pub(in crate::fabric) fn go_to_host(&mut self, plan: &Plan, pe: u32, link: u32, word: Slot) {
        self.stats.delivered += 1;
        self.stats.to_host += 1;
        if !word.control {
            self.fill(link);
        }
        if word.origin != 0 {
            self.rests(plan, pe, word.origin - 1);
        }
        let wavelet = Wavelet { payload: word.payload, control: word.control };
        self.to_host.push((link, word.stamp, wavelet));
    }
}
