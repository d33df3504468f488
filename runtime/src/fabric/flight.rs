//! Flights: words that the host deals out to the PEs of a row, in the `exact` engine.
//!
//! Where the switches of routers in a row decide who gets a word, and words come from one side only (`deal`),
//! a word that goes to one core passes routers that do nothing but hand it on. As long as nobody else wants their
//! links it is on its way for a hop each, and is put into the last router one hop before it is there, where it is
//! a word like others: who goes down the ramp in which cycle is R4's to say. If a word of the color does not leave
//! a router in the cycle in which it can be seen there, or one of another color comes to a link, all that are on
//! their way are put into the routers where they are at the end of that cycle ([`cut`]).
//!
//! Invariants: `positions` are those of the switches when all words that have entered have been where they go, as
//! nobody else moves them; routers before `clear` are watched, and their links are had; those before `passing`
//! hand on only. Words of the color enter at the first router alone, so none overtakes another.

mod cut;

use std::collections::VecDeque;

use dflow_ir::mesh::Wavelet;
use dflow_ir::mesh::wavelet::Command;

use super::control;
use super::patience::Patience;
use super::ring::Slot;
use super::router::{Dealing, RAMP, Router};
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Way;

/// In `claims` and `cuts`, numbers with this bit are those of flights.
pub(super) const FLOWN: u32 = 1 << 30;

/// All of a region.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    all: Vec<Flight>,
}

/// Routers in a row behind a link of the host.
#[derive(Debug)]
struct Flight {
    /// The first router, the port by which words enter each, and the color.
    root: u32,
    from: u8,
    color: u8,
    /// From one PE to the next, and how many there are.
    step: u32,
    nodes: u32,
    /// The first router that has switch positions.
    switched: u32,
    positions: Box<[u8]>,
    passing: u32,
    clear: u32,
    /// A word has come that this does not follow: all go through routers.
    closed: bool,
    /// Words on their way, in the order in which they come to where they go.
    words: VecDeque<Flown>,
    /// When words may fly.
    patience: Patience,
}

/// A word on its way.
#[derive(Clone, Copy, Debug)]
struct Flown {
    /// Its stamp in the router where it goes.
    due: u64,
    target: u32,
    payload: u32,
    control: bool,
}

impl Flight {
    /// The PE of a router.
    fn pe(&self, node: u32) -> u32 {
        self.root + node * self.step
    }

    /// A word in a router, where it can be seen from cycle `stamp` on.
    fn slot(&self, word: &Flown, node: u32, stamp: u64) -> Slot {
        let Flown { payload, control, .. } = *word;
        // Routers with positions have done what a control wavelet commands.
        let commands = control && control::first(payload) != Command::Nop;
        let advance = commands && node > self.switched;
        Slot { stamp, payload, color: self.color, control, advance, origin: 0 }
    }
}

impl Flights {
    /// Whether there are any.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether a flight is one of words of a color.
    pub(super) fn are_of(&self, id: u32, color: u8) -> bool {
        self.all.get(id as usize).is_some_and(|flight| flight.color == color)
    }

    /// Whether words are on their way.
    pub(crate) fn hold_words(&self) -> bool {
        self.all.iter().any(|flight| !flight.words.is_empty())
    }
}

impl<C: Code> Region<C> {
    /// What flies to routers behind a link of the host goes on in cycle `t`, and the next words of its sources take off
    /// if they can.
    pub(super) fn visit_flights(&mut self, plan: &Plan, pe: u32, t: u64) {
        let sources = self.routers[pe as usize].as_deref().map_or(0, |it| it.sources.len());
        for index in 0..sources {
            if let Some(id) = self.flight_of(plan, pe, index) {
                self.land_flown(plan, id, t);
                if self.takes_off(plan, id, (pe, index), t) {
                    self.enters(pe, index, t, Way::Line);
                    self.land_flown(plan, id, t);
                }
            }
        }
    }

    /// The flight of a source, which is found out if it is not known.
    fn flight_of(&mut self, plan: &Plan, pe: u32, index: usize) -> Option<u32> {
        let source = &self.routers[pe as usize].as_deref()?.sources[index];
        match source.dealing {
            Dealing::Flight(id) => return Some(id),
            Dealing::Unknown => {}
            Dealing::Routers | Dealing::Line(_) | Dealing::Fan(_) => return None,
        }
        let way = (source.color, source.port);
        // Places of routers that are flown over are not stamped, which with late ones could be told.
        let flight = if plan.timing.credit > 1 { None } else { self.new_flight(plan, pe, way) };
        let id = self.flights.all.len() as u32;
        let found = flight.map(|flight| {
            self.bytes += size_of::<Flight>() as u64;
            self.flights.all.push(flight);
            id
        });
        let source = &mut self.routers[pe as usize].as_deref_mut()?.sources[index];
        source.dealing = found.map_or(Dealing::Routers, Dealing::Flight);
        found
    }

    fn new_flight(&self, plan: &Plan, root: u32, way: (u8, u8)) -> Option<Flight> {
        let line = self.new_deal(plan, root, way)?;
        let (step, nodes, (color, from)) = (line.step, line.nodes, way);
        let counts = |node| {
            let row = self.table_at(plan, root + node * step).row(color);
            row.map_or(0, |row| row.positions)
        };
        let position = |node| self.position_at(plan, root + node * step, color);
        let is_usual = |node| {
            let router = self.routers[(root + node * step) as usize].as_deref();
            // What has been written into registers is not at hand when words enter.
            let differs = |router: &Router| router.differs(plan, color);
            let is_odd = |router: &Router| router.holds(color, from) || differs(router);
            !router.is_some_and(is_odd) && position(node) < counts(node)
        };
        (0..nodes).all(is_usual).then(|| Flight {
            root,
            from,
            color,
            step,
            nodes,
            switched: (0..nodes).find(|&node| counts(node) > 1).unwrap_or(nodes),
            positions: (0..nodes).map(position).collect(),
            passing: 0,
            clear: 0,
            closed: false,
            words: VecDeque::new(),
            patience: Patience::default(),
        })
    }

    /// The position of a switch.
    fn position_at(&self, plan: &Plan, pe: u32, color: u8) -> u8 {
        match self.routers[pe as usize].as_deref() {
            Some(router) => router.current(color).position,
            None => self.table_at(plan, pe).row(color).map_or(0, |row| row.initial),
        }
    }

    /// Words come to the routers where they go that are there a hop after cycle `t`.
    fn land_flown(&mut self, plan: &Plan, id: u32, t: u64) {
        let (hop, places) = (plan.timing.hop, plan.timing.link_places);
        while let Some(&word) = self.flights.all[id as usize].words.front() {
            let flight = &mut self.flights.all[id as usize];
            if word.due - hop > t {
                self.wakes.router(flight.root, word.due - hop);
                return;
            }
            flight.words.pop_front();
            if flight.words.is_empty() {
                flight.patience.reset();
            }
            let (pe, color, from) = (flight.pe(word.target), flight.color, flight.from);
            let slot = flight.slot(&word, word.target, word.due);
            self.stats.hops += u64::from(word.target);
            self.active_until = self.active_until.max(word.due - hop + 1);
            self.router(plan, pe).push(plan, color, from, places, slot);
            self.wakes.router(pe, word.due);
            self.trespass(plan, pe, color);
        }
    }

    /// Whether the next word of a source takes off in cycle `t`.
    fn takes_off(&mut self, plan: &Plan, id: u32, (pe, index): (u32, usize), t: u64) -> bool {
        let Some(router) = self.routers[pe as usize].as_deref() else { return false };
        let source = &router.sources[index];
        let Some(&(cycle, word)) = source.words.front() else { return false };
        if cycle.max(source.next) > t || !self.flights.all[id as usize].patience.is_over(t) {
            return false;
        }
        let Some(target) = self.target(plan, id, word, t) else { return false };
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Flown);
        let hop = plan.timing.hop;
        self.moves_switches(plan, id, word);
        let flight = &mut self.flights.all[id as usize];
        let (due, Wavelet { payload, control }) = (t + hop * u64::from(target + 1), word);
        // Behind a reset the next ones go less far.
        let place = flight.words.partition_point(|other| other.due < due);
        flight.words.insert(place, Flown { due, target, payload, control });
        if place == 0 && due - hop > t {
            self.wakes.router(pe, due - hop);
        }
        true
    }

    /// The router to which a word flies that takes off in cycle `t`: one core, or none, takes it there, and it passes
    /// those before it.
    fn target(&mut self, plan: &Plan, id: u32, word: Wavelet, t: u64) -> Option<u32> {
        let flight = &self.flights.all[id as usize];
        let target = flight.passing;
        let command = control::first(word.payload);
        let flies = !word.control || matches!(command, Command::Advance | Command::Nop);
        let &position = flight.positions.get(target as usize)?;
        let row = self.table_at(plan, flight.pe(target)).row(flight.color)?;
        if flight.closed || !flies || row.tx[usize::from(position)] != 1 << RAMP {
            return None;
        }
        while self.flights.all[id as usize].clear <= target {
            if !self.clears(plan, id, t) {
                return None;
            }
        }
        Some(target)
    }

    /// Whether the next router is watched from now on: no word of the color is held up there, and its link can be had.
    fn clears(&mut self, plan: &Plan, id: u32, t: u64) -> bool {
        let flight = &self.flights.all[id as usize];
        let (pe, color, from) = (flight.pe(flight.clear), flight.color, flight.from);
        let onward = from ^ 1;
        let watched = self.router(plan, pe).flown;
        if watched != 0 && !self.give_up_flight(watched - 1) {
            return false;
        }
        let Some(router) = self.routers[pe as usize].as_deref() else { return false };
        if router.holds_up_before(color, from, t) {
            return false;
        }
        if self.table_at(plan, pe).shares(color, 1 << onward) {
            let link = 4 * pe + u32::from(onward);
            let used = router.others_hold_for(plan, onward, color);
            self.make_claims(&[link]);
            if used || !self.give_up(plan, None, link) {
                return false;
            }
            self.claim_links(id | FLOWN, &[link]);
        }
        self.router(plan, pe).flown = id + 1;
        self.flights.all[id as usize].clear += 1;
        true
    }

    /// A word of a source enters the first router.
    pub(super) fn walks(&mut self, plan: &Plan, dealing: Dealing, word: Wavelet) {
        if let Dealing::Flight(id) = dealing {
            self.moves_switches(plan, id, word);
        }
    }

    /// Notes what a word that enters does to switches.
    fn moves_switches(&mut self, plan: &Plan, id: u32, word: Wavelet) {
        let Flight { nodes, from, color, passing, .. } = self.flights.all[id as usize];
        let (command, onward) = (control::first(word.payload), 1 << (from ^ 1));
        let mut node = if word.control && command == Command::Reset { 0 } else { passing };
        let first = node;
        while word.control && node < nodes {
            let flight = &self.flights.all[id as usize];
            let old = flight.positions[node as usize];
            let Some(row) = self.table_at(plan, flight.pe(node)).row(color) else { break };
            let goes_on = row.tx[usize::from(old)] & onward != 0;
            let new = row.after(old, command);
            let flight = &mut self.flights.all[id as usize];
            flight.positions[node as usize] = new;
            flight.closed |= command == Command::Teardown;
            if !goes_on {
                break;
            }
            node += 1;
        }
        if word.control {
            self.flights.all[id as usize].passing = self.passing_from(plan, id, first);
        }
    }

    /// The first router from one on that does more than to hand on, whatever comes but a reset.
    fn passing_from(&self, plan: &Plan, id: u32, first: u32) -> u32 {
        let flight = &self.flights.all[id as usize];
        let passes = |node: &u32| {
            let position = flight.positions[*node as usize];
            let row = self.table_at(plan, flight.pe(*node)).row(flight.color);
            row.is_some_and(|row| row.passes(position, flight.from))
        };
        (first..flight.nodes).find(|node| !passes(node)).unwrap_or(flight.nodes)
    }

    /// A router has been visited in cycle `t` that is watched: if a word of the color is still there, those behind it
    /// have to wait.
    pub(super) fn check_flown(&mut self, pe: u32, t: u64) {
        let Some(router) = self.routers[pe as usize].as_deref() else { return };
        let Some(id) = router.flown.checked_sub(1) else { return };
        let Flight { color, from, .. } = self.flights.all[id as usize];
        if router.holds_up_before(color, from, t + 1) {
            self.cuts.push((id | FLOWN, Vec::new()));
        }
    }
}
