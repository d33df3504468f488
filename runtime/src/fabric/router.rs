//! One router in one cycle: R3 to R7.
//!
//! Invariant: a lane that holds a word has a wake at its head's stamp, or is blocked on a place
//! or a position whose change wakes the router.

mod arrive;
mod visit;

use std::collections::VecDeque;

use dflow_ir::mesh::{Color, Port, Wavelet};

use super::control;
use super::filter::FilterState;
use super::plan::{ColorPlan, NONE, RouterPlan};
use super::registers::Current;
use super::ring::{Ring, Slot};
use crate::sched::plan::Plan;
use crate::sched::region::Way;

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
    /// Lane by color and port.
    lane_of: [[u8; 5]; Color::COUNT],
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
    /// Where its data words go, if that never changes; else none.
    fixed: u8,
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
#[derive(Clone, Copy, Debug, Default)]
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
    /// A data word whose way never changes.
    is_fixed: bool,
    /// The channel or pipe that it leaves.
    channel: Option<u32>,
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
            lane_of: [[NONE; 5]; Color::COUNT],
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
        self.own(plan).add(ColorPlan::unknown(color))
    }

    /// Position and teardown of a color.
    pub(crate) fn current(&self, plan: &Plan, color: u8) -> Current {
        let index = self.table(plan).index_of[usize::from(color)];
        let position = self.position.get(usize::from(index)).copied().unwrap_or(0);
        Current { position, torn: self.torn >> color & 1 != 0 }
    }

    /// Whether a lane holds a word.
    pub(crate) fn holds(&self, color: u8, port: u8) -> bool {
        let lane = self.lane_of[usize::from(color)][usize::from(port)];
        lane != NONE && !self.lanes[usize::from(lane)].ring.is_empty()
    }

    /// Whether a lane holds a word that may go over a link.
    pub(crate) fn holds_for(&self, plan: &Plan, port: u8) -> bool {
        let table = self.table(plan);
        let leads = |lane: &&Lane| {
            let row = table.row(lane.color);
            row.is_some_and(|row| row.tx.iter().any(|tx| tx >> port & 1 != 0))
        };
        self.lanes.iter().filter(|lane| !lane.ring.is_empty()).any(|lane| leads(&lane))
    }

    /// Whether a visit finds anything that could move.
    pub(crate) fn is_busy(&self) -> bool {
        self.waiting != 0 || self.sources.iter().any(|source| !source.words.is_empty())
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
    pub(crate) fn free_from(&self, color: u8, port: u8) -> u64 {
        match self.lane_of[usize::from(color)][usize::from(port)] {
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
        let mut lane = self.lane_of[usize::from(color)][usize::from(port)];
        if lane == NONE {
            lane = self.add_lane(plan, color, port, places);
        }
        let ring = &mut self.lanes[usize::from(lane)].ring;
        let was_empty = ring.is_empty();
        ring.push(word);
        self.waiting |= 1 << lane;
        was_empty
    }

    fn add_lane(&mut self, plan: &Plan, color: u8, port: u8, places: u32) -> u8 {
        let (lane, index) = (self.lanes.len() as u8, self.index(plan, color));
        let fixed = self.fixed(plan, color, port);
        self.lane_of[usize::from(color)][usize::from(port)] = lane;
        self.lanes.push(Lane { ring: Ring::new(places), color, index, port, rest: 0, fixed });
        lane
    }

    /// Where data words of a color go from a port as long as no register is written and the
    /// color is not in teardown; none if they may wait, or if a filter judges them.
    fn fixed(&self, plan: &Plan, color: u8, port: u8) -> u8 {
        let table = self.table(plan);
        let row = table.row(color).filter(|row| row.known && row.positions == 1 && !table.swaps);
        let row = row.filter(|row| row.rx[0] >> port & 1 != 0 && self.filter(color).is_none());
        row.map_or(0, |row| row.tx[0])
    }

    /// Its configuration has changed.
    pub(crate) fn refresh(&mut self, plan: &Plan) {
        for lane in 0..self.lanes.len() {
            let Lane { color, port, .. } = self.lanes[lane];
            self.lanes[lane].fixed = self.fixed(plan, color, port);
        }
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
            is_fixed: false,
            channel: None,
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
