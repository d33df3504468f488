//! One router in one cycle: R3 to R7.
//!
//! Invariant: a lane that holds a word has a wake at its head's stamp, or is blocked on a place
//! or a position whose change wakes the router; what such a change ends is no longer `blocked`.

mod arrive;
mod buffers;
mod enter;
mod fetch;
mod grant;
mod lanes;
mod leaps;
mod outputs;
mod rounds;
mod usual;
mod visit;

pub(crate) use fetch::LARGE;

use std::collections::VecDeque;

use dflow_ir::mesh::{Color, Port, Wavelet};

use self::lanes::Lanes;
use super::channel::Outlet;
use super::control;
use super::filter::FilterState;
use super::leap::Place;
use super::plan::{ColorPlan, NONE, RouterPlan};
use super::registers::Current;
use super::ring::{Ring, Slot};
use crate::pe::code::Code;
use crate::rare::Rare;
use crate::sched::plan::Plan;
use crate::sched::region::{Region, Way};

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
    /// Switch position of each color, two bits by color number.
    positions: u64,
    /// Colors in teardown, as bits by color number.
    torn: u32,
    /// Its filters, by color.
    filters: Rare<FilterState>,
    /// Lane by color and port.
    lane_of: [[u8; 5]; Color::COUNT],
    pub(crate) lanes: Vec<Lane>,
    /// Free places of neighbors that other regions own.
    pub(crate) shadows: Rare<Shadow>,
    /// Source queues of the host.
    pub(crate) sources: Rare<Source>,
    /// Lines of the `flow` engine that end at its links (`gather`), or merges of `exact` (`merge`).
    pub(crate) gathers: Rare<u32>,
    /// Leaps that end here, of which packets go to the host (`leap::host`).
    pub(crate) leaps: Rare<u32>,
    /// A line waits for a place in its core (`deal`).
    pub(crate) holds_up: bool,
    /// One more than the flight that watches it (`flight`).
    pub(super) flown: u32,
    /// Lanes that hold words.
    waiting: Lanes,
    /// Of these, lanes whose heads wait for something that ends it with [`Region::unblock`].
    blocked: Lanes,
}

/// What is behind a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    /// The region of the PE that is there, or [`NOWHERE`], and its number in that.
    region: u32,
    pe: u32,
}

/// The region of PEs that are not there.
const NOWHERE: u32 = u32::MAX;

impl Side {
    /// Whether there is a PE.
    fn exists(self) -> bool {
        self.region != NOWHERE
    }
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
    /// What has a say besides the switch in where its words go: the filter of this number,
    /// [`NOBODY`], or [`OTHERS`].
    judge: u8,
    /// Where they go by the switch's position; none where it takes nothing from this port.
    outs: [u8; 4],
    /// The buffer behind the link that its words took last.
    next: Next,
    /// Where it stands in a leap (`leap`), if that is known; and which leap ends here.
    place: Place,
    end: Place,
}

/// Nothing but the switch says where words go; a swap does, or nobody knows.
const NOBODY: u8 = NONE;
const OTHERS: u8 = NONE - 1;

/// A neighbor's buffer behind an output.
#[derive(Clone, Copy, Debug)]
struct Next {
    /// The output port, or [`NONE`]: not looked up.
    port: u8,
    /// The color as which words took it.
    color: u8,
    /// The lane of the neighbor's router.
    lane: u8,
    /// The neighbor, in the same region.
    pe: u32,
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
    /// How its words go on.
    pub(crate) dealing: Dealing,
    /// The pipe by which they enter if not by a line, in the `flow` engine.
    pub(crate) outlet: Outlet,
}

impl Source {
    /// The first words, as far as they may enter by a cycle and command no routers.
    pub(crate) fn ready(&self, t: u64) -> impl Iterator<Item = u32> {
        let enters = move |(cycle, word): &&(u64, Wavelet)| *cycle <= t && !word.control;
        self.words.iter().take_while(enters).map(|(_, word)| word.payload)
    }
}

/// How words of the host go on behind their link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dealing {
    /// Not looked at.
    Unknown,
    Routers,
    /// By this line, if they can.
    Line(u32),
    /// By this fan.
    Fan(u32),
    /// By this flight, if they can (`exact`).
    Flight(u32),
}

/// A head word that could go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidate {
    stamp: u64,
    /// The channel or pipe that it leaves, or [`FROM_LANE`].
    channel: u32,
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
    /// A data word for which there is no more to do than to hand it on.
    is_plain: bool,
}

/// A word that leaves no channel.
const FROM_LANE: u32 = u32::MAX;

impl Router {
    /// A router without words, of the PE at `(x, y)`.
    pub(crate) fn new(plan: &Plan, x: u32, y: u32) -> Router {
        let number = plan.number(x, y);
        let id = plan.router_of[number];
        let colors = &plan.routers[id as usize].colors;
        let side = |port: Port| match plan.neighbor(x, y, port) {
            Some((x, y)) => {
                let (region, pe) = plan.locate(x, y);
                Side { region, pe }
            }
            None => Side { region: NOWHERE, pe: 0 },
        };
        let torn = colors.iter().filter(|row| row.teardown);
        let filter = |row: &ColorPlan| Some(FilterState::new(row.color, row.filter?));
        Router {
            plan: id,
            own: None,
            number: number as u32,
            sides: [Port::West, Port::East, Port::South, Port::North].map(side),
            has_links: plan.has_links(number),
            positions: colors.iter().fold(0, |all, row| with_position(all, row.color, row.initial)),
            torn: torn.fold(0, |torn, row| torn | 1 << row.color),
            filters: colors.iter().filter_map(filter).collect(),
            lane_of: [[NONE; 5]; Color::COUNT],
            lanes: Vec::new(),
            shadows: Rare::default(),
            sources: Rare::default(),
            gathers: Rare::default(),
            leaps: Rare::default(),
            holds_up: false,
            flown: 0,
            waiting: Lanes::default(),
            blocked: Lanes::default(),
        }
    }

    /// Estimated bytes: as if each of its colors came from one side, by a link. Some have more sides, some none.
    pub(crate) fn bytes(&self, plan: &Plan) -> u64 {
        let lane = size_of::<Lane>() + Ring::<3>::unopened(plan.timing.link_places).bytes();
        (size_of::<Router>() + lane * self.table(plan).colors.len()) as u64
    }

    /// From how many sides words of a color have come.
    pub(crate) fn sides_of(&self, color: u8) -> usize {
        self.lane_of[usize::from(color)].iter().filter(|&&lane| lane != NONE).count()
    }

    /// Its configuration.
    pub(crate) fn table<'a>(&'a self, plan: &'a Plan) -> &'a RouterPlan {
        match &self.own {
            Some(own) => own,
            None => &plan.routers[self.plan as usize],
        }
    }

    /// Whether its configuration of a color is not that of the program any more.
    pub(super) fn differs(&self, plan: &Plan, color: u8) -> bool {
        let first = &plan.routers[self.plan as usize];
        let differs = |own: &RouterPlan| {
            own.is_swapped(color) != first.is_swapped(color) || own.row(color) != first.row(color)
        };
        self.own.as_deref().is_some_and(differs)
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
        self.own(plan).add(ColorPlan::unknown(color))
    }

    /// Position and teardown of a color.
    pub(crate) fn current(&self, color: u8) -> Current {
        Current { position: self.position(color), torn: self.is_torn(color) }
    }

    /// Whether a visit finds anything that could move.
    pub(crate) fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.sources.iter().any(|source| !source.words.is_empty())
    }

    /// Whether a color is in teardown.
    pub(crate) fn is_torn(&self, color: u8) -> bool {
        self.torn >> color & 1 != 0
    }

    /// The switch position of a color.
    pub(super) fn position(&self, color: u8) -> u8 {
        (self.positions >> (2 * color) & 3) as u8
    }

    fn set_position(&mut self, color: u8, position: u8) {
        self.positions = with_position(self.positions, color, position);
    }

    /// Sets position and teardown of a color.
    pub(crate) fn set_current(&mut self, color: u8, current: Current) {
        self.set_position(color, current.position);
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

    /// Where a link leads for a color; `region` is the router's own.
    fn way(&self, plan: &Plan, region: u32, port: u8, color: u8) -> Way {
        if self.has_links
            && let Some(link) = plan.link(self.number as usize, Port::ALL[usize::from(port)], color)
            && !plan.links[link as usize].to_mesh
        {
            return Way::Host { link };
        }
        let side = self.sides[usize::from(port)];
        if !side.exists() {
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
        self.add(lane, word)
    }

    /// Appends a word to a lane; whether the lane was empty.
    #[inline]
    pub(super) fn add(&mut self, lane: u8, word: Slot) -> bool {
        let ring = &mut self.lanes[usize::from(lane)].ring;
        let was_empty = ring.is_empty();
        ring.push(word);
        self.waiting.add(lane);
        was_empty
    }

    /// Takes the words of a color out that stand at a port.
    pub(super) fn take_all(&mut self, color: u8, port: u8) -> Vec<Slot> {
        let lane = self.lane_of[usize::from(color)][usize::from(port)];
        let Some(ring) = self.lanes.get_mut(usize::from(lane)).map(|lane| &mut lane.ring) else {
            return Vec::new();
        };
        (0..ring.len()).map(|_| ring.pop(0)).collect()
    }

    /// All words are looked at again.
    pub(super) fn unblock_all(&mut self) {
        self.blocked = Lanes::default();
    }

    fn add_lane(&mut self, plan: &Plan, color: u8, port: u8, places: u32) -> u8 {
        let (lane, index) = (self.lanes.len() as u8, self.index(plan, color));
        let (judge, outs) = self.ways_of(plan, color, port);
        let next = Next { port: NONE, color: NONE, lane: 0, pe: 0 };
        self.lane_of[usize::from(color)][usize::from(port)] = lane;
        let ring = Ring::new(places);
        let (place, end) = (Place::NONE, Place::NONE);
        // Most routers have two or three.
        self.lanes.reserve_exact(1);
        self.lanes.push(Lane { ring, color, index, port, rest: 0, judge, outs, next, place, end });
        lane
    }

    /// Where words of a color go from a port by the switch's position, and what else has a say,
    /// as long as no register is written.
    fn ways_of(&self, plan: &Plan, color: u8, port: u8) -> (u8, [u8; 4]) {
        let table = self.table(plan);
        let Some(row) = table.row(color).filter(|row| row.known && !table.is_swapped(color)) else {
            return (OTHERS, [0; 4]);
        };
        let way = |at: usize| if row.rx[at] >> port & 1 != 0 { row.tx[at] } else { 0 };
        let judges = |state: &FilterState| state.color == color && !state.lets_all_pass();
        let filter = self.filters.iter().position(judges);
        (filter.map_or(NOBODY, |filter| filter as u8), [0, 1, 2, 3].map(way))
    }

    /// A place for a word of a color has come free behind a link.
    pub(super) fn unblock_color(&mut self, color: u8) {
        let mut left = self.blocked;
        while let Some(lane) = left.pop() {
            if self.lanes[usize::from(lane)].color == color {
                self.blocked.remove(lane);
            }
        }
    }

    /// Its configuration has changed.
    pub(crate) fn refresh(&mut self, plan: &Plan) {
        self.blocked = Lanes::default();
        for lane in 0..self.lanes.len() {
            let Lane { color, port, .. } = self.lanes[lane];
            (self.lanes[lane].judge, self.lanes[lane].outs) = self.ways_of(plan, color, port);
        }
    }

    /// As what the head of a lane is received, as far as its colors listen at the port; none if
    /// no color of it is configured. What nobody listens to is received as it waits.
    fn receptions(&self, plan: &Plan, lane: &Lane) -> u8 {
        let table = self.table(plan);
        let own = &table.colors[usize::from(lane.index)];
        if !table.is_swapped(lane.color) {
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
        let hears =
            |row: &ColorPlan| row.rx[usize::from(self.position(row.color))] >> lane.port & 1 != 0;
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

    /// What the head of a plain lane would do, if the switch lets it.
    #[inline]
    fn plain_candidate(&self, index: u8, lane: &Lane, head: &Slot) -> Option<Candidate> {
        let outs = lane.outs[usize::from(self.position(lane.color))];
        if outs == 0 || self.torn >> lane.color & 1 != 0 {
            return None;
        }
        let hidden = head.control && outs >> RAMP & 1 != 0 && control::hidden(head.payload);
        Some(Candidate {
            stamp: head.stamp,
            channel: FROM_LANE,
            color: lane.color,
            port: lane.port,
            lane: index,
            index: lane.index,
            outs: if hidden { outs & !(1 << RAMP) } else { outs },
            reception: AS_IT_IS,
            receptions: AS_IT_IS,
            judged: false,
            filtered: false,
            hidden,
            is_plain: !head.control && !head.advance,
        })
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
        let position = usize::from(self.position(color));
        let tx = row.tx[position];
        if row.rx[position] >> port & 1 == 0 || tx == 0 || self.torn >> color & 1 != 0 {
            return None;
        }
        let hidden = head.control && control::hidden(head.payload);
        let judged = tx >> RAMP & 1 != 0 && !hidden && !unfiltered;
        let filter = if judged { self.filter(color) } else { None };
        let filtered = filter.is_some_and(|state| !state.passes(head.payload, head.control));
        let outs = tx & if hidden || filtered { !(1 << RAMP) } else { !0 };
        Some(Candidate {
            stamp: head.stamp,
            channel: FROM_LANE,
            color,
            port,
            lane: 0,
            index,
            outs,
            reception: AS_IT_IS,
            receptions: AS_IT_IS,
            judged,
            filtered,
            hidden: hidden && tx >> RAMP & 1 != 0,
            is_plain: false,
        })
    }

    /// The free places of a neighbor in another region.
    pub(crate) fn shadow(&mut self, color: u8, port: u8, places: u32) -> &mut Ring {
        let found = self.shadows.iter().position(|it| (it.color, it.port) == (color, port));
        let index = found.unwrap_or_else(|| {
            self.shadows.push(Shadow { color, port, ring: Ring::new(places) });
            self.shadows.len() - 1
        });
        &mut self.shadows[index].ring
    }
}

/// Switch positions with another one for a color.
fn with_position(positions: u64, color: u8, position: u8) -> u64 {
    positions & !(3 << (2 * color)) | u64::from(position & 3) << (2 * color)
}

impl<C: Code> Region<C> {
    /// Words of a color that wait in a router are looked at again in cycle `at`.
    pub(crate) fn unblock_color(&mut self, pe: u32, color: u8, at: u64) {
        if let Some(router) = self.routers[pe as usize].as_deref_mut() {
            router.unblock_color(color);
        }
        self.wakes.router(pe, at);
    }

    /// All words that wait in a router are looked at again in cycle `at`.
    pub(crate) fn unblock(&mut self, pe: u32, at: u64) {
        if let Some(router) = self.routers[pe as usize].as_deref_mut() {
            router.blocked = Lanes::default();
        }
        self.wakes.router(pe, at);
    }
}
