//! One router in one cycle: R3 to R7.
//!
//! Invariant: a lane that holds a word has a wake at its head's stamp, or is blocked on a place
//! or a position whose change wakes the router.

use std::collections::VecDeque;

use dflow_ir::loc::Loc;
use dflow_ir::mesh::wavelet::Command;
use dflow_ir::mesh::{Color, PopMode, Port, Wavelet};

use super::control;
use super::filter::FilterState;
use super::plan::{ColorPlan, NONE, RouterPlan};
use super::registers::Current;
use super::ring::{NEVER, Ring, Slot};
use crate::exec::odd::Odd;
use crate::pe::code::Code;
use crate::pe::plan::NO_TASK;
use crate::sched::plan::Plan;
use crate::sched::region::{Message, Region, Way};
use crate::trap::TrapKind;

/// Bit and index of the ramp port.
pub(crate) const RAMP: u8 = Port::Ramp as u8;

/// State of a router, made when the first word comes.
#[derive(Debug)]
pub(crate) struct Router {
    /// Index of the plan it shares.
    plan: u32,
    /// Its own plan, once registers have been written or words of a strange color have come.
    own: Option<Box<RouterPlan>>,
    /// Number of its PE in the whole rectangle.
    number: u32,
    /// What is behind each link, by port.
    sides: [Side; 4],
    /// Whether its PE has links to the host.
    has_links: bool,
    /// Switch position per color of the plan.
    position: Vec<u8>,
    /// Colors in teardown, as bits by color number.
    torn: u32,
    /// Its filters, by color.
    filters: Vec<FilterState>,
    lane_of: Vec<[u8; 5]>,
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
}

/// Buffer of one color and input port.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) ring: Ring<3>,
    /// The color as which words come over the link.
    pub(crate) color: u8,
    /// Index into the plan's colors.
    index: u8,
    /// Input port.
    pub(crate) port: u8,
    /// Receptions that the head is still to have, once it has had one (color swaps only).
    rest: u8,
}

/// Receptions of a word: as its own color, as the other color of the pair.
const AS_IT_IS: u8 = 1;
const SWAPPED: u8 = 2;

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
    /// Index of the color it is received as.
    index: u8,
    outs: u8,
    /// This reception, and all that the word has.
    reception: u8,
    receptions: u8,
    /// It is one that a filter judges, and the filter keeps it from the core.
    judged: bool,
    filtered: bool,
    /// It says itself that the core shall not see it.
    hidden: bool,
}

impl Router {
    /// A router without words, of the PE at `(x, y)`.
    pub(crate) fn new(plan: &Plan, x: u32, y: u32) -> Router {
        let number = plan.number(x, y);
        let id = plan.router_of[number];
        let colors = &plan.routers[id as usize].colors;
        let side = |port: Port| match plan.neighbour(x, y, port) {
            Some((x, y)) => {
                let (region, pe) = plan.locate(x, y);
                Side { exists: true, region, pe }
            }
            None => Side { exists: false, region: 0, pe: 0 },
        };
        let torn = colors.iter().filter(|row| row.teardown);
        let filter = |row: &ColorPlan| Some(FilterState::new(row.color, row.filter?));
        Router {
            plan: id,
            own: None,
            number: number as u32,
            sides: [Port::West, Port::East, Port::South, Port::North].map(side),
            has_links: plan.has_links(number),
            position: colors.iter().map(|color| color.initial).collect(),
            torn: torn.fold(0, |torn, row| torn | 1 << row.color),
            filters: colors.iter().filter_map(filter).collect(),
            lane_of: vec![[NONE; 5]; colors.len()],
            lanes: Vec::new(),
            shadows: Vec::new(),
            sources: Vec::new(),
            waiting: 0,
        }
    }

    /// Its configuration.
    pub(crate) fn table<'a>(&'a self, plan: &'a Plan) -> &'a RouterPlan {
        match &self.own {
            Some(own) => own,
            None => &plan.routers[self.plan as usize],
        }
    }

    /// Its configuration, to be changed.
    pub(crate) fn own(&mut self, plan: &Plan) -> &mut RouterPlan {
        self.own.get_or_insert_with(|| Box::new(plan.routers[self.plan as usize].clone()))
    }

    /// The index of a color; one that is not configured gets one.
    pub(crate) fn index(&mut self, plan: &Plan, color: u8) -> u8 {
        let index = self.table(plan).index_of[usize::from(color)];
        if index != NONE {
            return index;
        }
        self.position.push(0);
        self.lane_of.push([NONE; 5]);
        self.own(plan).add(ColorPlan::unknown(color))
    }

    /// Position and teardown of a color.
    pub(crate) fn current(&self, plan: &Plan, color: u8) -> Current {
        let index = self.table(plan).index_of[usize::from(color)];
        let position = self.position.get(usize::from(index)).copied().unwrap_or(0);
        Current { position, torn: self.torn >> color & 1 != 0 }
    }

    /// Whether a color is in teardown.
    pub(crate) fn is_torn(&self, color: u8) -> bool {
        self.torn >> color & 1 != 0
    }

    /// The position of a color that takes nothing from a port, if another of its positions does.
    pub(crate) fn shut(&self, plan: &Plan, color: u8, port: u8) -> Option<u8> {
        let row = self.table(plan).row(color)?;
        let position = self.current(plan, color).position;
        let takes = |rx: &u8| rx >> port & 1 != 0;
        let rx = &row.rx[..usize::from(row.positions)];
        let shut = !rx.get(usize::from(position)).is_some_and(takes);
        (shut && rx.iter().any(takes)).then_some(position)
    }

    /// Sets position and teardown of a color.
    pub(crate) fn set_current(&mut self, index: u8, color: u8, current: Current) {
        self.position[usize::from(index)] = current.position;
        self.torn = self.torn & !(1 << color) | u32::from(current.torn) << color;
    }

    /// The filter of a color.
    pub(crate) fn filter(&self, color: u8) -> Option<&FilterState> {
        self.filters.iter().find(|state| state.color == color)
    }

    /// The filter of a color.
    pub(crate) fn filter_mut(&mut self, color: u8) -> Option<&mut FilterState> {
        self.filters.iter_mut().find(|state| state.color == color)
    }

    /// Colors of the configuration, known or not.
    pub(crate) fn color_count(&self) -> usize {
        self.position.len()
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
        let port = port ^ 1;
        if side.region == region {
            Way::Near { pe: side.pe, port }
        } else {
            Way::Far { region: side.region, pe: side.pe, port }
        }
    }

    /// From which cycle a word of a color may be pushed at a port.
    pub(crate) fn free_from(&self, plan: &Plan, color: u8, port: u8) -> u64 {
        let index = self.table(plan).index_of[usize::from(color)];
        let lanes = self.lane_of.get(usize::from(index));
        match lanes.map_or(NONE, |lanes| lanes[usize::from(port)]) {
            NONE => 0,
            lane => self.lanes[usize::from(lane)].ring.free_from(),
        }
    }

    /// Appends a word of a color to a lane of `places` places; whether the lane was empty.
    pub(crate) fn push(
        &mut self,
        plan: &Plan,
        color: u8,
        port: u8,
        places: u32,
        word: Slot,
    ) -> bool {
        let index = self.index(plan, color);
        let lane = &mut self.lane_of[usize::from(index)][usize::from(port)];
        if *lane == NONE {
            *lane = self.lanes.len() as u8;
            self.lanes.push(Lane { ring: Ring::new(places), color, index, port, rest: 0 });
        }
        let lane = usize::from(*lane);
        let was_empty = self.lanes[lane].ring.is_empty();
        self.lanes[lane].ring.push(word);
        self.waiting |= 1 << lane;
        was_empty
    }

    /// As what the head of a lane is received, as far as its colors listen at the port; none if
    /// no color of it is configured. What nobody listens to is received as it waits.
    fn receptions(&self, plan: &Plan, lane: &Lane) -> u8 {
        let table = self.table(plan);
        let own = &table.colors[usize::from(lane.index)];
        if !table.swaps {
            return if own.known { AS_IT_IS } else { 0 };
        }
        let partner = table.row(lane.color ^ 1).filter(|row| row.known);
        let swapped = partner.filter(|row| row.swaps(lane.port));
        let both = if swapped.is_none() {
            AS_IT_IS
        } else if own.known && own.swaps(lane.port) {
            SWAPPED
        } else {
            AS_IT_IS | SWAPPED
        };
        let hears = |row: &ColorPlan| {
            let index = usize::from(table.index_of[usize::from(row.color)]);
            row.rx[usize::from(self.position[index])] >> lane.port & 1 != 0
        };
        let mut known = both & if own.known { !0 } else { !AS_IT_IS };
        if known == AS_IT_IS | SWAPPED {
            // Of two, one that does not listen does not keep the other waiting.
            known &= if hears(own) { !0 } else { !AS_IT_IS };
            known &= if swapped.is_some_and(hears) { !0 } else { !SWAPPED };
            if known == 0 {
                known = both;
            }
        }
        known
    }

    /// What a head word at a port would do as a word of a color, if that color takes it now.
    /// `unfiltered`: its queue passes by the color's filter.
    fn candidate(
        &self,
        plan: &Plan,
        head: &Slot,
        (color, port): (u8, u8),
        unfiltered: bool,
    ) -> Option<Candidate> {
        let table = self.table(plan);
        let index = table.index_of[usize::from(color)];
        let row = table.colors.get(usize::from(index))?;
        let position = usize::from(self.position[usize::from(index)]);
        let tx = row.tx[position];
        if row.rx[position] >> port & 1 == 0 || tx == 0 || self.torn >> color & 1 != 0 {
            return None;
        }
        let hidden = head.control && control::hidden(head.payload);
        let judged = tx >> RAMP & 1 != 0 && !hidden && !unfiltered;
        let filter = if judged { self.filter(color) } else { None };
        let filtered = filter.is_some_and(|state| !state.passes(head.payload, head.control));
        let outs = tx & if hidden || filtered { !(1 << RAMP) } else { !0 };
        let (lane, reception, receptions) = (0, AS_IT_IS, AS_IT_IS);
        let stamp = head.stamp;
        Some(Candidate {
            stamp,
            color,
            port,
            lane,
            index,
            outs,
            reception,
            receptions,
            judged,
            filtered,
            hidden: hidden && tx >> RAMP & 1 != 0,
        })
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
            let from = cycle.max(source.next).max(router.free_from(plan, color, port));
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
                let free = self.free_from(plan, code, router, pe, color, candidate.outs, t);
                if free <= t {
                    candidates.push(candidate);
                } else if free != NEVER {
                    self.wakes.router(pe, free);
                }
            }
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
    fn queue_of(&self, plan: &Plan, router: &Router, pe: u32, color: u8, t: u64) -> Option<usize> {
        let program = plan.program(router.number as usize)?;
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
                Way::Core => match self.queue_of(plan, router, pe, color, t) {
                    Some(queue) => self.core(plan, code, pe).inputs[queue].ring.free_from(),
                    None => NEVER,
                },
                Way::Near { pe, port } => match &self.routers[pe as usize] {
                    Some(neighbour) => neighbour.free_from(plan, color, port),
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
            self.trap(plan, pe, t, fault.kind, fault.color);
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
        let (color, port, was_full) = (lane.color, lane.port, lane.ring.is_full());
        let word = lane.ring.pop(t + plan.timing.credit);
        if lane.ring.is_empty() {
            router.waiting &= !(1 << granted.lane);
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
                if let Some(queue) = self.queue_of(plan, router, pe, word.color, t) {
                    self.deliver(plan, code, pe, queue, word);
                }
            }
            Way::Near { pe, port } => {
                self.stats.hops += 1;
                let neighbour = self.router(plan, pe);
                if neighbour.push(plan, word.color, port, places, word) {
                    self.wakes.router(pe, word.stamp);
                }
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
