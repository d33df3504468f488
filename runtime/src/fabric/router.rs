//! One router in one cycle: R3 to R7.
//!
//! Invariant: a lane that holds a word has a wake at its head's stamp, or is blocked on a place
//! or a position whose change wakes the router.

use std::collections::VecDeque;

use dflow_ir::mesh::wavelet::Command;
use dflow_ir::mesh::{Color, PopMode, Port, Wavelet};

use super::control;
use super::plan::{ColorPlan, NONE};
use super::ring::{NEVER, Ring, Slot};
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::{Message, Region, Way};
use crate::trap::TrapKind;

/// Bit and index of the ramp port.
pub(crate) const RAMP: u8 = Port::Ramp as u8;

/// State of a router, made when the first word comes.
#[derive(Debug)]
pub(crate) struct Router {
    /// Index of its plan.
    pub(crate) plan: u32,
    /// Number of its PE in the whole rectangle.
    number: u32,
    /// What is behind each link, by port.
    sides: [Side; 4],
    /// Whether its PE has links to the host.
    has_links: bool,
    /// Switch position per color of the plan.
    pub(crate) position: Box<[u8]>,
    lane_of: Box<[[u8; 5]]>,
    pub(crate) lanes: Vec<Lane>,
    /// Free places of neighbours that other regions own.
    pub(crate) shadows: Vec<Shadow>,
    /// Source queues of the host.
    pub(crate) sources: Vec<Source>,
    /// Lanes that hold words (bit set).
    waiting: u128,
}

/// What is behind a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    /// Whether there is a PE.
    exists: bool,
    /// Its region, and its number there.
    region: u32,
    pe: u32,
    /// Its number in the whole rectangle.
    number: u32,
    /// Its router's plan.
    plan: u32,
}

/// Buffer of one color and input port.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) ring: Ring<3>,
    /// Index into the plan's colors.
    pub(crate) color: u8,
    /// Input port.
    pub(crate) port: u8,
}

/// Sender's view of a lane in another region.
#[derive(Debug)]
pub(crate) struct Shadow {
    pub(crate) color: u8,
    pub(crate) port: u8,
    pub(crate) ring: Ring,
}

/// A source queue of the host.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) link: u32,
    pub(crate) color: u8,
    pub(crate) port: u8,
    /// Words and the cycle from which each may enter.
    pub(crate) words: VecDeque<(u64, Wavelet)>,
    /// No word enters before this cycle.
    pub(crate) next: u64,
    /// The host wants to know when words enter.
    pub(crate) counted: bool,
}

/// A head word that could go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    stamp: u64,
    /// Color number, then port: the rest of the order of R4.
    color: u8,
    port: u8,
    lane: u8,
    outs: u8,
}

impl Router {
    /// A router without words, of the PE at `(x, y)`.
    pub(crate) fn new(plan: &Plan, x: u32, y: u32) -> Router {
        let number = plan.number(x, y);
        let id = plan.router_of[number];
        let colors = &plan.routers[id as usize].colors;
        let side = |port: Port| match plan.neighbour(x, y, port) {
            Some((x, y)) => {
                let ((region, pe), number) = (plan.locate(x, y), plan.number(x, y));
                let plan = plan.router_of[number];
                Side { exists: true, region, pe, number: number as u32, plan }
            }
            None => Side { exists: false, region: 0, pe: 0, number: 0, plan: 0 },
        };
        Router {
            plan: id,
            number: number as u32,
            sides: [Port::West, Port::East, Port::South, Port::North].map(side),
            has_links: plan.has_links(number),
            position: colors.iter().map(|color| color.initial).collect(),
            lane_of: vec![[NONE; 5]; colors.len()].into_boxed_slice(),
            lanes: Vec::new(),
            shadows: Vec::new(),
            sources: Vec::new(),
            waiting: 0,
        }
    }

    /// The input queue of its core that takes a color.
    fn queue_of(&self, plan: &Plan, color: u8) -> Option<usize> {
        plan.program(self.number as usize)?.queue_of(color)
    }

    /// Where an output port leads for a color; `region` is the router's own.
    fn way(&self, plan: &Plan, region: u32, port: u8, color: u8) -> Way {
        if port == RAMP {
            return Way::Core;
        }
        if self.has_links
            && let Some(link) = plan.link(self.number as usize, Port::ALL[usize::from(port)], color)
            && !plan.links[link as usize].to_mesh
        {
            return Way::Host { link };
        }
        let side = self.sides[usize::from(port)];
        if !side.exists {
            return Way::Outside;
        }
        // West and east, south and north differ in the lowest bit.
        let entry = port ^ 1;
        let index = plan
            .routers
            .get(side.plan as usize)
            .map_or(NONE, |plan| plan.index_of[usize::from(color)]);
        if index == NONE {
            Way::NoRoute { at: side.number as usize, from: entry }
        } else if side.region == region {
            Way::Near { pe: side.pe, index, port: entry }
        } else {
            Way::Far { region: side.region, pe: side.pe, port: entry }
        }
    }

    /// From which cycle a word may be pushed into a lane.
    pub(crate) fn free_from(&self, color: u8, port: u8) -> u64 {
        match self.lane_of[usize::from(color)][usize::from(port)] {
            NONE => 0,
            lane => self.lanes[usize::from(lane)].ring.free_from(),
        }
    }

    /// Appends a word to a lane of `places` places; whether the lane was empty.
    pub(crate) fn push(&mut self, color: u8, port: u8, places: u32, word: Slot) -> bool {
        let lane = &mut self.lane_of[usize::from(color)][usize::from(port)];
        if *lane == NONE {
            *lane = self.lanes.len() as u8;
            self.lanes.push(Lane { ring: Ring::new(places), color, port });
        }
        let index = usize::from(*lane);
        let was_empty = self.lanes[index].ring.is_empty();
        self.lanes[index].ring.push(word);
        self.waiting |= 1 << index;
        was_empty
    }

    /// The free places of a neighbour in another region.
    pub(crate) fn shadow(&mut self, color: u8, port: u8, places: u32) -> &mut Ring {
        let found = self.shadows.iter().position(|it| (it.color, it.port) == (color, port));
        let index = found.unwrap_or_else(|| {
            self.shadows.push(Shadow { color, port, ring: Ring::new(places) });
            self.shadows.len() - 1
        });
        &mut self.shadows[index].ring
    }
}

impl<C: Code> Region<C> {
    /// Visits a router in cycle `t`.
    pub(crate) fn visit_router(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let Some(mut router) = self.routers[pe as usize].take() else { return };
        self.inject(plan, &mut router, pe, t);
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        self.gather(plan, code, &mut router, pe, t, &mut candidates);
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
            self.grant(plan, code, &mut router, pe, t, candidate);
        }
        self.candidates = candidates;
        if moved != 0 {
            self.active_until = self.active_until.max(t + 1);
        }
        self.rearm(&router, pe, t, moved != 0);
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
            if router.push(color, port, plan.timing.link_places, slot) {
                self.wakes.router(pe, stamp);
            }
            self.active_until = self.active_until.max(t + 1);
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
            let row = &plan.routers[router.plan as usize].colors[usize::from(color)];
            let position = usize::from(router.position[usize::from(color)]);
            if row.rx[position] >> port & 1 == 0 || row.tx[position] == 0 {
                continue;
            }
            let hidden = head.control && control::hidden(head.payload);
            let outs = row.tx[position] & if hidden { !(1 << RAMP) } else { !0 };
            let free = self.free_from(plan, code, router, pe, color, row.color, outs);
            if free <= t {
                let lane = index as u8;
                candidates.push(Candidate {
                    stamp: head.stamp,
                    color: row.color,
                    port,
                    lane,
                    outs,
                });
            } else if free != NEVER {
                self.wakes.router(pe, free);
            }
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
        index: u8,
        color: u8,
        outs: u8,
    ) -> u64 {
        let mut free = 0;
        for port in (0..5).filter(|port| outs >> port & 1 != 0) {
            let one = match router.way(plan, self.id, port, color) {
                Way::Core => match router.queue_of(plan, color) {
                    Some(queue) => self.core(plan, code, pe).inputs[queue].ring.free_from(),
                    None => NEVER,
                },
                Way::Near { pe, index, port } => match &self.routers[pe as usize] {
                    Some(neighbour) => neighbour.free_from(index, port),
                    None => 0,
                },
                Way::Far { .. } => router.shadow(index, port, plan.timing.link_places).free_from(),
                Way::Host { link } => self.room(link),
                Way::Outside | Way::NoRoute { .. } => 0,
            };
            free = free.max(one);
        }
        free
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
        let lane = &mut router.lanes[usize::from(granted.lane)];
        let (index, was_full) = (lane.color, lane.ring.is_full());
        let mut word = lane.ring.pop(t + plan.timing.credit);
        if lane.ring.is_empty() {
            router.waiting &= !(1 << granted.lane);
        }
        self.credit(plan, router, pe, granted, was_full, t + plan.timing.credit);
        let row = &plan.routers[router.plan as usize].colors[usize::from(index)];
        if word.control {
            self.command(plan, router, pe, t, row, index, &mut word);
        } else if word.advance {
            let position = &mut router.position[usize::from(index)];
            *position = row.next(*position);
        }
        word.advance = false;
        word.color = granted.color;
        for port in (0..5).filter(|port| granted.outs >> port & 1 != 0) {
            self.forward(plan, code, router, pe, t, index, port, word);
        }
    }

    /// Tells whoever fills a lane that one of its places is free from `free` on.
    fn credit(
        &mut self,
        plan: &Plan,
        router: &Router,
        pe: u32,
        granted: Candidate,
        was_full: bool,
        free: u64,
    ) {
        let Candidate { color, port, .. } = granted;
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

    /// R6: executes the first command and pops the list.
    #[expect(clippy::too_many_arguments, reason = "split borrows of one router's surroundings")]
    fn command(
        &mut self,
        plan: &Plan,
        router: &mut Router,
        pe: u32,
        t: u64,
        row: &ColorPlan,
        index: u8,
        word: &mut Slot,
    ) {
        let position = &mut router.position[usize::from(index)];
        let old = *position;
        let command = control::first(word.payload);
        match command {
            Command::Nop => {}
            Command::Advance => *position = row.next(old),
            Command::Reset => *position = 0,
            Command::Teardown => {
                self.trap(plan, pe, t, TrapKind::Teardown, Color::new(row.color));
            }
        }
        let changed = *position != old;
        let pops = match row.pop {
            PopMode::None => false,
            PopMode::Always => true,
            PopMode::OnAdvance => changed,
            PopMode::OnAdvanceOrNop => changed || command == Command::Nop,
        };
        if pops {
            word.payload = control::pop(word.payload);
        }
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
        index: u8,
        port: u8,
        mut word: Slot,
    ) {
        let (hop, places) = (plan.timing.hop, plan.timing.link_places);
        let color = Color::new(word.color);
        word.stamp = t + hop;
        match router.way(plan, self.id, port, word.color) {
            Way::Core => {
                word.stamp = t + plan.timing.ramp_down;
                if let Some(queue) = router.queue_of(plan, word.color) {
                    self.deliver(plan, code, pe, queue, word);
                }
            }
            Way::Near { pe, index, port } => {
                self.stats.hops += 1;
                let neighbour = self.router(plan, pe);
                if neighbour.push(index, port, places, word) {
                    self.wakes.router(pe, word.stamp);
                }
            }
            Way::Far { region, pe, port: entry } => {
                self.stats.hops += 1;
                router
                    .shadow(index, port, places)
                    .push(Slot { stamp: word.stamp, ..Slot::default() });
                self.messages.push(Message::Word { region, pe, port: entry, word });
            }
            Way::Host { link } => {
                self.stats.delivered += 1;
                if !word.control {
                    self.fill(link);
                }
                let wavelet = Wavelet { payload: word.payload, control: word.control };
                self.to_host.push((link, word.stamp, wavelet));
            }
            Way::Outside => {
                let port = Port::ALL[usize::from(port)];
                self.trap(plan, pe, t, TrapKind::LeftTheMesh { port }, color);
            }
            Way::NoRoute { at, from } => {
                let from = Port::ALL[usize::from(from)];
                self.trap_at(plan, at, t, TrapKind::NoRoute { from }, color);
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
