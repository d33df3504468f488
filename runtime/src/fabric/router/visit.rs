//! A visit to a router in one cycle: what enters, what may go, and where it goes.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::wavelet::Command;
use dflow_ir::mesh::{Color, PopMode, Port, Wavelet};

use super::{AS_IT_IS, Candidate, RAMP, Router, SWAPPED};
use crate::exec::odd::Odd;
use crate::fabric::control;
use crate::fabric::ring::{NEVER, Slot};
use crate::pe::code::Code;
use crate::pe::plan::NO_TASK;
use crate::sched::plan::Plan;
use crate::sched::region::{Message, Region, Way};
use crate::trap::TrapKind;
use crate::ways::{self, Why};

impl<C: Code> Region<C> {
    /// Visits a router in cycle `t`.
    pub(crate) fn visit_router(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let busy = self.routers[pe as usize].as_deref().is_some_and(Router::is_busy);
        if !busy {
            if self.flow {
                return self.descend_pipes(plan, code, pe, t);
            }
            self.descend(plan, code, pe, t);
            return self.rearm_wanted(plan, pe, t);
        }
        if let Some(before) = t.checked_sub(1) {
            self.descend(plan, code, pe, before);
        }
        let Some(mut router) = self.routers[pe as usize].take() else { return };
        self.inject(plan, &mut router, pe, t);
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        self.gather(plan, code, &mut router, pe, t, &mut candidates);
        self.arrivals(plan, code, pe, t, &mut candidates);
        if candidates.len() > 1 {
            candidates.sort_unstable_by_key(|it| (it.stamp, it.color, it.port));
        }
        let (mut moved, mut taken) = (0u32, 0u8);
        for &candidate in &candidates {
            if moved >> candidate.color & 1 != 0 || taken & candidate.outs != 0 {
                continue;
            }
            moved |= 1 << candidate.color;
            taken |= candidate.outs;
            if let Some(id) = candidate.channel {
                self.leave(plan, code, pe, t, id);
            } else if candidate.is_fixed {
                self.pass(plan, code, &mut router, pe, t, candidate);
            } else {
                self.grant(plan, code, &mut router, pe, t, candidate);
            }
        }
        self.candidates = candidates;
        if moved != 0 {
            self.active_until = self.active_until.max(t + 1);
        }
        self.rearm(&router, pe, t, moved != 0);
        self.rearm_arrivals(plan, pe, t, moved != 0);
        self.routers[pe as usize] = Some(router);
    }

    /// Lets host words enter (spec/time.md, section 8).
    fn inject(&mut self, plan: &Plan, router: &mut Router, pe: u32, t: u64) {
        for index in 0..router.sources.len() {
            let source = &router.sources[index];
            let Some(&(cycle, word)) = source.words.front() else { continue };
            let (color, port) = (source.color, source.port);
            let from = cycle.max(source.next).max(router.free_from(color, port));
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
            self.active_until = self.active_until.max(t + 1);
            self.stats.entered += 1;
            self.ways.count(color, ways::Way::Routers(Why::Host), 1);
            let source = &mut router.sources[index];
            if source.counted {
                self.to_host.push((source.link, t, word));
            }
            source.words.pop_front();
            source.next = t + 1;
            if !source.words.is_empty() {
                self.wakes.router(pe, t + 1);
            }
        }
    }

    /// R3: the candidates.
    fn gather(
        &mut self,
        plan: &Plan,
        code: &C,
        router: &mut Router,
        pe: u32,
        t: u64,
        candidates: &mut Vec<Candidate>,
    ) {
        let mut left = router.waiting;
        while left != 0 {
            let index = left.trailing_zeros();
            left &= left - 1;
            let lane = &router.lanes[index as usize];
            let Some(&head) = lane.ring.visible(t) else { continue };
            let (color, port) = (lane.color, lane.port);
            if lane.fixed != 0 && !head.control && router.torn >> color & 1 == 0 {
                let candidate = Candidate {
                    stamp: head.stamp,
                    color,
                    port,
                    lane: index as u8,
                    index: lane.index,
                    outs: lane.fixed,
                    reception: AS_IT_IS,
                    receptions: AS_IT_IS,
                    is_fixed: true,
                    ..Candidate::default()
                };
                self.offer(plan, code, router, pe, t, candidate, candidates);
                continue;
            }
            let receptions = if lane.rest != 0 { lane.rest } else { router.receptions(plan, lane) };
            if receptions == 0 {
                self.strange(plan, router, pe, t, color, port);
            }
            for (reception, color) in [(AS_IT_IS, color), (SWAPPED, color ^ 1)] {
                if receptions & reception == 0 {
                    continue;
                }
                let core = self.cores[pe as usize].as_deref();
                let unfiltered = core.is_some_and(|core| core.bound.unfiltered(color, t));
                let found = router.candidate(plan, &head, (color, port), unfiltered);
                let Some(mut candidate) = found else {
                    continue;
                };
                (candidate.lane, candidate.reception) = (index as u8, reception);
                candidate.receptions = receptions;
                self.offer(plan, code, router, pe, t, candidate, candidates);
            }
        }
    }

    /// Makes a candidate of a head word for which there is a place.
    #[expect(clippy::too_many_arguments, reason = "split borrows of one router's surroundings")]
    fn offer(
        &mut self,
        plan: &Plan,
        code: &C,
        router: &mut Router,
        pe: u32,
        t: u64,
        candidate: Candidate,
        candidates: &mut Vec<Candidate>,
    ) {
        let free = self.free_from(plan, code, router, pe, candidate.color, candidate.outs, t);
        if free <= t {
            candidates.push(candidate);
        } else if free != NEVER {
            self.wakes.router(pe, free);
        }
    }

    /// A word of a color that is not configured: a trap, unless the program may do that yet.
    fn strange(&mut self, plan: &Plan, router: &Router, pe: u32, t: u64, color: u8, port: u8) {
        if plan.program(router.number as usize).is_some_and(|program| program.configures) {
            return;
        }
        let from = Port::ALL[usize::from(port)];
        self.trap(plan, pe, t, TrapKind::NoRoute { from }, Color::new(color));
    }

    /// The input queue of a PE's core that takes a color in cycle `t`.
    pub(super) fn queue_of(
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

    /// From which cycle all of a set of outputs have a place.
    #[expect(clippy::too_many_arguments, reason = "split borrows of one router's surroundings")]
    fn free_from(
        &mut self,
        plan: &Plan,
        code: &C,
        router: &mut Router,
        pe: u32,
        color: u8,
        outs: u8,
        t: u64,
    ) -> u64 {
        let mut free = 0;
        for port in (0..5).filter(|port| outs >> port & 1 != 0) {
            let one = match router.way(plan, self.id, port, color) {
                Way::Core => match self.queue_of(plan, router.number, pe, color, t) {
                    Some(queue) => self.core(plan, code, pe).inputs[queue].ring.free_from(),
                    None => NEVER,
                },
                Way::Near { pe, port } => match &self.routers[pe as usize] {
                    Some(neighbour) => neighbour.free_from(color, port),
                    None => 0,
                },
                Way::Far { .. } => router.shadow(color, port, plan.timing.link_places).free_from(),
                Way::Host { link } => self.room(link),
                Way::Outside => 0,
            };
            free = free.max(one);
        }
        free
    }

    /// R4 and R5 for a data word whose way never changes.
    fn pass(
        &mut self,
        plan: &Plan,
        code: &C,
        router: &mut Router,
        pe: u32,
        t: u64,
        granted: Candidate,
    ) {
        self.stats.copies += u64::from(granted.outs.count_ones()) - 1;
        let mut word = self.pop(plan, router, pe, t, granted.lane);
        (word.advance, word.color) = (false, granted.color);
        let mut outs = granted.outs;
        while outs != 0 {
            self.forward(plan, code, router, pe, t, outs.trailing_zeros() as u8, word);
            outs &= outs - 1;
        }
    }

    /// R4 to R7: moves a word.
    fn grant(
        &mut self,
        plan: &Plan,
        code: &C,
        router: &mut Router,
        pe: u32,
        t: u64,
        granted: Candidate,
    ) {
        let kept = u64::from(granted.filtered) + u64::from(granted.hidden);
        self.stats.copies += u64::from(granted.outs.count_ones()) + kept;
        self.stats.hidden += u64::from(granted.hidden);
        let mut word = self.take(plan, router, pe, t, granted);
        let index = usize::from(granted.index);
        if let Some(state) = router.filter_mut(granted.color).filter(|_| granted.judged) {
            state.count(word.control);
            state.kept += u64::from(granted.filtered);
            self.stats.filtered += u64::from(granted.filtered);
        }
        if granted.filtered && !word.control {
            self.rests(plan, pe, granted.color);
        }
        if word.control {
            let torn = self.command(plan, router, granted, &mut word);
            if torn {
                self.tear(plan, code, router, pe, t, granted.color);
            }
        } else if word.advance {
            let next = router.table(plan).colors[index].next(router.position[index]);
            router.position[index] = next;
        }
        word.advance &= word.control;
        word.color = granted.color;
        if granted.hidden && granted.outs == 0 && !word.advance {
            self.unheard(plan, router, pe, t, word.color);
        }
        for port in (0..5).filter(|port| granted.outs >> port & 1 != 0) {
            self.forward(plan, code, router, pe, t, port, word);
        }
    }

    /// A control wavelet for routers alone has ended, and none has done what it commands.
    fn unheard(&mut self, plan: &Plan, router: &Router, pe: u32, t: u64, color: u8) {
        let Some(color) = Color::new(color) else { return };
        self.odd_at_router(plan, router, pe, t, Odd::Unheard { color, entry: None });
    }

    /// Notes something odd that no task of the PE has done.
    fn odd_at_router(&mut self, plan: &Plan, router: &Router, pe: u32, t: u64, odd: Odd) {
        let at = (router.number, NO_TASK);
        if let Err(fault) = self.odd(plan, at, odd, Loc::default(), t) {
            self.trap(plan, pe, t, *fault.kind, fault.color);
        }
    }

    /// The word that is granted; it leaves its lane with the last of its receptions.
    fn take(
        &mut self,
        plan: &Plan,
        router: &mut Router,
        pe: u32,
        t: u64,
        granted: Candidate,
    ) -> Slot {
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
        self.pop(plan, router, pe, t, granted.lane)
    }

    /// A word leaves its lane.
    fn pop(&mut self, plan: &Plan, router: &mut Router, pe: u32, t: u64, index: u8) -> Slot {
        let lane = &mut router.lanes[usize::from(index)];
        let (color, port, was_full) = (lane.color, lane.port, lane.ring.is_full());
        let word = lane.ring.pop(t + plan.timing.credit);
        if lane.ring.is_empty() {
            router.waiting &= !(1 << index);
        }
        self.credit(plan, router, pe, (color, port), was_full, t + plan.timing.credit);
        word
    }

    /// A color enters teardown: its core hears of it as of a word that comes down the ramp.
    fn tear(&mut self, plan: &Plan, code: &C, router: &mut Router, pe: u32, t: u64, color: u8) {
        router.torn |= 1 << color;
        if plan.program(router.number as usize).is_some() {
            let due = t + plan.timing.ramp_down;
            self.core(plan, code, pe).registers.tear(due, color);
            self.wakes.core(pe, due);
        }
    }

    /// Tells whoever fills a lane that one of its places is free from `free` on.
    fn credit(
        &mut self,
        plan: &Plan,
        router: &Router,
        pe: u32,
        (color, port): (u8, u8),
        was_full: bool,
        free: u64,
    ) {
        if port == RAMP {
            if was_full {
                self.wakes.core(pe, free);
            }
            return;
        }
        let number = router.number as usize;
        if router.has_links && plan.link(number, Port::ALL[usize::from(port)], color).is_some() {
            self.wakes.router(pe, free);
            return;
        }
        let side = router.sides[usize::from(port)];
        if side.exists && side.region != self.id {
            let (region, pe, port) = (side.region, side.pe, port ^ 1);
            self.messages.push(Message::Credit { region, pe, color, port, free });
        } else if side.exists && was_full {
            self.wakes.router(side.pe, free);
        }
    }

    /// R6: executes the first command and pops the list; whether it tears the color down.
    fn command(
        &mut self,
        plan: &Plan,
        router: &mut Router,
        granted: Candidate,
        word: &mut Slot,
    ) -> bool {
        let index = usize::from(granted.index);
        let row = &router.table(plan).colors[index];
        let (old, pop) = (router.position[index], row.pop);
        let command = control::first(word.payload);
        let new = match command {
            Command::Nop | Command::Teardown => old,
            Command::Advance => row.next(old),
            Command::Reset => 0,
        };
        // Somebody has heard it.
        word.advance |= match command {
            Command::Nop => false,
            Command::Teardown => true,
            Command::Advance | Command::Reset => row.positions > 1,
        };
        router.position[index] = new;
        let pops = match pop {
            PopMode::None => false,
            PopMode::Always => true,
            PopMode::OnAdvance => new != old,
            PopMode::OnAdvanceOrNop => new != old || command == Command::Nop,
        };
        if pops {
            word.payload = control::pop(word.payload);
        }
        command == Command::Teardown
    }

    /// R5: a word goes out by one port.
    #[expect(clippy::too_many_arguments, reason = "split borrows of one router's surroundings")]
    fn forward(
        &mut self,
        plan: &Plan,
        code: &C,
        router: &mut Router,
        pe: u32,
        t: u64,
        port: u8,
        mut word: Slot,
    ) {
        let (hop, places) = (plan.timing.hop, plan.timing.link_places);
        let color = Color::new(word.color);
        word.stamp = t + hop;
        match router.way(plan, self.id, port, word.color) {
            Way::Core => {
                word.stamp = t + plan.timing.ramp_down;
                if let Some(queue) = self.queue_of(plan, router.number, pe, word.color, t) {
                    self.deliver(plan, code, pe, queue, word);
                }
            }
            Way::Near { pe, port } => {
                self.stats.hops += 1;
                let neighbour = self.router(plan, pe);
                if neighbour.push(plan, word.color, port, places, word) {
                    self.wakes.router(pe, word.stamp);
                }
                self.trespass(plan, pe, word.color);
            }
            Way::Far { region, pe, port: entry } => {
                self.stats.hops += 1;
                router
                    .shadow(word.color, port, places)
                    .push(Slot { stamp: word.stamp, ..Slot::default() });
                self.messages.push(Message::Word { region, pe, port: entry, word });
            }
            Way::Host { link } => {
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
            Way::Outside => {
                self.stats.gone += 1;
                if let Some(color) = color {
                    let odd = Odd::LeftMesh { color, port: Port::ALL[usize::from(port)] };
                    self.odd_at_router(plan, router, pe, t, odd);
                }
            }
        }
    }

    /// Wakes the router again for what it could not do.
    fn rearm(&mut self, router: &Router, pe: u32, t: u64, any_moved: bool) {
        let mut left = router.waiting;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let Some(head) = router.lanes[index].ring.head() else { continue };
            if head.stamp > t {
                self.wakes.router(pe, head.stamp);
            } else if any_moved {
                self.wakes.router(pe, t + 1);
            }
        }
    }
}
