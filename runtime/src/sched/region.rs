//! A rectangle of PEs with its own wakes and state, and what crosses its edges.
//!
//! Invariants: nothing is shared with other regions; what crosses an edge is a message with a
//! stamp after the cycle in which it is sent. State of a PE is made at its first use.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, Coord, Rect, Wavelet};

use super::account;
use super::plan::{Latencies, Plan};
use super::record::Event;
use super::rounds::{Refrain, Tape};
use super::wheel::Wakes;
use crate::exec::odd::Odd;
use crate::fabric::abroad::News;
use crate::fabric::channel::Channel;
use crate::fabric::deal::fan::Fans;
use crate::fabric::deal::line::Line;
use crate::fabric::flight::Flights;
use crate::fabric::gather::Gathers;
use crate::fabric::landing::Landing;
use crate::fabric::leap::Leaps;
use crate::fabric::merge::Merges;
use crate::fabric::pipe::{Inflow, Pipe};
use crate::fabric::ring::{NEVER, Slot};
use crate::fabric::router::{Candidate, Router};
use crate::outcome::ConsoleLine;
use crate::pe::code::{Code, Pe};
use crate::pe::core::{Core, Fault};
#[cfg(test)]
use crate::pe::heard::Hears;
use crate::pe::heard::TaskSlots;
use crate::pe::op::Op;
use crate::pe::order::Orders;
use crate::pe::stretch::Load;
use crate::pe::turns;
use crate::stats::Stats;
use crate::trap::{Trap, TrapKind};
use crate::ways::Ways;

/// A region.
pub(crate) struct Region<C: Code> {
    /// Its number.
    pub(crate) id: u32,
    /// Its PEs.
    pub(crate) rect: Rect,
    pub(crate) routers: Vec<Option<Box<Router>>>,
    pub(crate) cores: Vec<Option<Box<Core<C>>>>,
    pub(crate) wakes: Wakes,
    /// For other regions.
    pub(crate) messages: Vec<Message>,
    /// For the host: link, cycle, word.
    pub(crate) to_host: Vec<(u32, u64, Wavelet)>,
    /// What the host still takes, per link with a bound.
    rooms: Vec<Room>,
    pub(crate) stats: Stats,
    pub(crate) ways: Box<Ways>,
    /// Tasks of which times decide which is first (`flow`).
    pub(crate) orders: Orders,
    /// What was odd, by place.
    pub(crate) odd: BTreeMap<OddPlace, OddTimes>,
    /// The cycle that is visited.
    pub(crate) now: u64,
    /// Cycles that a core may be ahead of the region, and the cycle before which all is to stop.
    pub(crate) ahead: u64,
    /// Cycles that a core which does nothing but run code may be ahead.
    pub(crate) alone: u64,
    pub(crate) end: u64,
    /// The cycle after the last one in which anything happened.
    pub(crate) active_until: u64,
    /// Lines for the user, in order of cycles.
    pub(crate) printed: Vec<ConsoleLine>,
    /// Characters of lines that have no end yet, by number of the PE.
    pub(crate) unfinished: BTreeMap<usize, Vec<u8>>,
    /// First trap by (cycle, PE).
    pub(crate) trap: Option<(usize, Trap)>,
    pub(crate) events: Option<Vec<Event>>,
    /// Estimated bytes of state.
    pub(crate) bytes: u64,
    /// What the host watches of its streams.
    pub(crate) watch: Watch,
    /// Streams move in stretches.
    pub(crate) flow: bool,
    /// Ways that are one buffer, the numbers of those that are not used, and those that are to be
    /// cut when the cycle is over, with their routers.
    pub(crate) channels: Vec<Channel>,
    /// Ways that hold packets of words, in the `flow` engine.
    pub(crate) pipes: Vec<Pipe>,
    /// Links that several pipes may use, by four times the PE and the port, and what is on each.
    pub(crate) links: BTreeMap<u32, u32>,
    pub(crate) loads: Vec<Vec<Load>>,
    /// Words on their way to the host, in the `flow` engine.
    pub(crate) gathers: Gathers,
    /// Words on their way to the host, in the `exact` engine.
    pub(crate) merges: Merges,
    /// Words on their way from the host, in the `exact` engine.
    pub(crate) flights: Flights,
    /// Words on their way from the host in the `flow` engine, and those that wait for a place in the core of a PE.
    pub(crate) lines: Vec<Option<Box<Line>>>,
    pub(crate) held_up: BTreeSet<(u32, u32)>,
    /// Those for all PEs of a row.
    pub(crate) fans: Fans,
    /// Words that pass routers as those stand, likewise.
    pub(crate) leaps: Leaps,
    /// Buffers of packets that are not used.
    pub(crate) buffers: Vec<Vec<u32>>,
    /// What cores are watched with: those that are not used.
    #[expect(clippy::vec_box, reason = "a core holds one as a box")]
    pub(crate) watches: Vec<Box<turns::Watch>>,
    /// Numbers of channels that are not used.
    pub(crate) unused: Vec<u32>,
    /// Colors whose words from the host, and to it, go through routers always, as bits.
    pub(crate) routed: u32,
    /// Colors, as bits, of which a register that nobody foresaw has been written (`flow`).
    pub(crate) rewritten: u32,
    /// Pipes that have been closed.
    pub(crate) closed: u32,
    /// PEs and colors whose words are copied but not by a multicast.
    pub(crate) not_copied: BTreeSet<(u32, u8)>,
    pub(crate) cuts: Vec<(u32, Vec<(u32, u8)>)>,
    /// Number of steady cores, and PEs at which something comes to pass that steady cores have no
    /// part in: it ends with the cycle.
    pub(crate) steady: u32,
    /// Number of cores that take turns.
    pub(crate) turning: u32,
    pub(crate) disturbed: Vec<u32>,
    /// Cores that are to be visited before the cycle is over.
    pub(crate) woken: Vec<u32>,
    /// A buffer for words of links.
    pub(crate) moved: Vec<u32>,
    /// One more than the channel (or merge, or flight) that has a link, by four times the PE and the port, if there are
    /// links that several colors may use.
    pub(crate) claims: Vec<u32>,
    /// Words of cut channels that go up the ramp in a later cycle: cycle, PE, word.
    pub(crate) late: Vec<(u64, u32, Slot)>,
    /// Channels that end at each PE, in the `exact` engine.
    pub(crate) landings: Vec<Landing>,
    /// Ends of pipes that words from other regions come by, by these and the numbers of the pipes there;
    /// those from which words have been taken in this cycle; and what has been told of pipes.
    pub(crate) from_abroad: BTreeMap<(u32, u32), u32>,
    pub(crate) taken_abroad: Vec<u32>,
    pub(crate) news: Vec<News>,
    /// When the first of these is known.
    pub(crate) next_news: u64,
    /// When the shares of a visit's core were last found to have changed.
    pub(crate) unshared_from: u64,
    /// When forks that keep words are looked at, and of which multicast, as far as that holds still; and when the next ones
    /// are.
    pub(crate) forks_due: BinaryHeap<Reverse<(u64, u32)>>,
    pub(crate) next_forks: u64,
    /// Latencies of the mesh.
    pub(crate) timing: Latencies,
    /// Whether a router has ever been made, as for a leap.
    has_routers: bool,
    /// Pipes that end at each PE, in the `flow` engine.
    pub(crate) incoming: Option<Vec<Vec<Inflow>>>,
    /// Boxes of operations that are over.
    pub(crate) spare: Vec<Box<Op<C::Op>>>,
    pub(crate) candidates: Vec<Candidate>,
    pub(crate) visits: Vec<u32>,
    /// Slots of tasks that words start, in the `flow` engine.
    pub(crate) task_slots: TaskSlots,
    /// For tests: how words start tasks.
    #[cfg(test)]
    pub(crate) hears: Hears,
    /// Whether a PE does the same again and again, and what all do (`sched::rounds`).
    pub(crate) refrain: Option<Box<Refrain>>,
    pub(crate) tape: Option<Box<Tape>>,
}

/// As many words as come.
const UNBOUNDED: u64 = u64::MAX;

/// Words that the host still takes over a link: from which cycle on, and how many ([`UNBOUNDED`]: all).
#[derive(Debug)]
struct Room {
    link: u32,
    words: VecDeque<(u64, u64)>,
}

/// Words of the host's streams that have come to rest (spec/time.md, section 8).
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Colors of streams into the mesh, as bits.
    pub(crate) to_mesh: u32,
    /// Colors of streams to the host, as bits.
    pub(crate) to_host: u32,
    /// By row and color: words that have come to rest.
    pub(crate) rested: BTreeMap<(u16, u8), u64>,
}

impl Watch {
    /// Whether a word that an operation takes from one color and sends on by another is still
    /// under way.
    pub(crate) fn passes(&self, from: u8, to: u8) -> bool {
        self.to_mesh >> from & 1 != 0 && self.to_host >> to & 1 != 0
    }
}

/// What is told once: program, task, place, and what is the same each time.
pub(crate) type OddPlace = (u16, u16, Loc, Odd);

/// When it was first done and by whom, in full, and how often since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OddTimes {
    pub(crate) cycle: u64,
    pub(crate) number: u32,
    pub(crate) odd: Odd,
    pub(crate) count: u64,
}

impl OddTimes {
    /// With other times of the same: the first of both is that by (cycle, PE).
    pub(crate) fn add(&mut self, other: OddTimes) {
        let count = self.count + other.count;
        let first = |it: &OddTimes| (it.cycle, it.number, it.odd);
        let earlier = if first(&other) < first(self) { other } else { *self };
        *self = OddTimes { count, ..earlier };
    }
}

/// What crosses an edge.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// A word for a router's lane; its color stands in the slot.
    Word { region: u32, pe: u32, port: u8, word: Slot },
    /// A place of a lane behind this router's output port is free from `free` on.
    Credit { region: u32, pe: u32, color: u8, port: u8, free: u64 },
    /// What the other end of a pipe has done.
    News(News),
}

impl Message {
    /// The first cycle of which the region that gets it may know.
    pub(crate) fn stamp(&self) -> u64 {
        match self {
            Message::Word { word, .. } => word.stamp,
            Message::Credit { free, .. } => *free,
            Message::News(news) => news.at,
        }
    }
}

/// Where a link leads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// To a router of this region: PE, port.
    Near { pe: u32, port: u8 },
    /// To a router of another region.
    Far { region: u32, pe: u32, port: u8 },
    /// To the host.
    Host { link: u32 },
    /// Out of the rectangle.
    Outside,
}

impl<C: Code> Region<C> {
    /// A region without state.
    pub(crate) fn new(plan: &Plan, id: u32, wakes: fn(u32) -> Wakes) -> Region<C> {
        let (across, down) = plan.extent;
        let (x, y) = (id % plan.columns() * across, id / plan.columns() * down);
        let (width, height) = (across.min(plan.width - x), down.min(plan.height - y));
        let count = width * height;
        let wakes = wakes(count);
        let incoming = wakes.are_kept().then(|| vec![Vec::new(); count as usize]);
        let ends = if wakes.are_kept() { count as usize } else { 0 };
        let landings = std::iter::repeat_with(Landing::default).take(ends).collect();
        Region {
            id,
            rect: Rect { x: x as u16, y: y as u16, width: width as u16, height: height as u16 },
            routers: (0..count).map(|_| None).collect(),
            cores: (0..count).map(|_| None).collect(),
            wakes,
            messages: Vec::new(),
            to_host: Vec::new(),
            rooms: Vec::new(),
            stats: Stats::default(),
            ways: Box::default(),
            orders: Orders::default(),
            odd: BTreeMap::new(),
            now: 0,
            ahead: 0,
            alone: 0,
            end: NEVER,
            active_until: 0,
            printed: Vec::new(),
            unfinished: BTreeMap::new(),
            trap: None,
            events: plan.record.then(Vec::new),
            bytes: 0,
            watch: Watch::default(),
            channels: Vec::new(),
            pipes: Vec::new(),
            links: BTreeMap::new(),
            loads: Vec::new(),
            gathers: Gathers::default(),
            merges: Merges::default(),
            flights: Flights::default(),
            lines: Vec::new(),
            held_up: BTreeSet::new(),
            fans: Fans::default(),
            leaps: Leaps::default(),
            buffers: Vec::new(),
            watches: Vec::new(),
            flow: false,
            unused: Vec::new(),
            routed: 0,
            rewritten: 0,
            closed: 0,
            not_copied: BTreeSet::new(),
            cuts: Vec::new(),
            steady: 0,
            turning: 0,
            disturbed: Vec::new(),
            woken: Vec::new(),
            moved: Vec::new(),
            claims: Vec::new(),
            late: Vec::new(),
            landings,
            from_abroad: BTreeMap::new(),
            taken_abroad: Vec::new(),
            news: Vec::new(),
            next_news: NEVER,
            unshared_from: 0,
            forks_due: BinaryHeap::new(),
            next_forks: NEVER,
            timing: plan.timing,
            has_routers: false,
            incoming,
            spare: Vec::new(),
            candidates: Vec::new(),
            visits: Vec::new(),
            task_slots: TaskSlots::default(),
            #[cfg(test)]
            hears: Hears::default(),
            refrain: None,
            tape: None,
        }
    }

    /// Bytes of what has an entry per PE.
    pub(crate) fn table_bytes(&self) -> usize {
        size_of_val(&*self.routers) + size_of_val(&*self.cores) + self.wakes.table_bytes()
    }

    /// Number of a PE in the whole rectangle.
    pub(crate) fn number(&self, plan: &Plan, pe: u32) -> usize {
        let (x, y) = place(self.rect, pe);
        plan.number(x, y)
    }

    /// Place of a PE in the whole rectangle.
    pub(crate) fn place(&self, pe: u32) -> (u32, u32) {
        place(self.rect, pe)
    }

    /// The router of a PE, made if need be.
    pub(crate) fn router(&mut self, plan: &Plan, pe: u32) -> &mut Router {
        let (rect, bytes) = (self.rect, &mut self.bytes);
        self.has_routers = true;
        self.routers[pe as usize].get_or_insert_with(|| {
            let (x, y) = place(rect, pe);
            let router = Router::new(plan, x, y);
            *bytes += router.bytes(plan);
            Box::new(router)
        })
    }

    /// The core of a PE that has a program, made if need be.
    pub(crate) fn core(&mut self, plan: &Plan, code: &C, pe: u32) -> &mut Core<C> {
        let (rect, bytes, stats) = (self.rect, &mut self.bytes, &mut self.stats);
        self.cores[pe as usize].get_or_insert_with(|| {
            let (x, y) = place(rect, pe);
            let number = plan.number(x, y);
            let program = plan.program_of[number];
            let at = Pe { number: number as u32, program };
            let core = Core::new(&plan.programs[usize::from(program)], at, code);
            *bytes += core.bytes() + code.bytes(at);
            stats.touched += 1;
            Box::new(core)
        })
    }

    /// From which cycle the host takes a word over a link.
    pub(crate) fn room(&self, link: u32) -> u64 {
        let room = self.room_index(link).ok().map(|index| &self.rooms[index]);
        room.map_or(0, |room| room.words.front().map_or(NEVER, |&(from, _)| from))
    }

    /// A data word takes a place at the host's end.
    pub(crate) fn fill(&mut self, link: u32) {
        let Ok(index) = self.room_index(link) else { return };
        let room = &mut self.rooms[index];
        let Some((_, words)) = room.words.front_mut() else { return };
        *words -= u64::from(*words != UNBOUNDED);
        if *words == 0 {
            room.words.pop_front();
        }
    }

    /// The host takes so many words more over a link, from a cycle on. A link has no bound until
    /// this is said of it.
    pub(crate) fn make_room(&mut self, link: u32, from: u64, words: u64) {
        let index = self.room_index(link).unwrap_or_else(|index| {
            self.rooms.insert(index, Room { link, words: VecDeque::new() });
            index
        });
        if words != 0 {
            self.rooms[index].words.push_back((from, words));
        }
    }

    /// The host takes so many words over a link from a cycle on, whatever was said before;
    /// `None`: as many as come.
    pub(crate) fn set_room(&mut self, link: u32, from: u64, words: Option<u64>) {
        if words.is_none() && !self.is_bounded(link, from) {
            return;
        }
        if let Ok(index) = self.room_index(link) {
            self.rooms.remove(index);
        }
        if words.is_some() {
            self.gathers.bound(link);
        }
        self.make_room(link, from, words.unwrap_or(UNBOUNDED));
    }

    /// Whether the host limits what it takes over a link from cycle `t` on.
    pub(crate) fn is_bounded(&self, link: u32, t: u64) -> bool {
        let room = self.room_index(link).ok().map(|index| &self.rooms[index]);
        let takes_all = |&(from, words): &(u64, u64)| from <= t && words == UNBOUNDED;
        room.is_some_and(|room| !room.words.front().is_some_and(takes_all))
    }

    /// Rooms are kept in the order of their links.
    fn room_index(&self, link: u32) -> Result<usize, usize> {
        self.rooms.binary_search_by_key(&link, |room| room.link)
    }

    /// The next cycle in which something happens, as far as is known; the end of time if nothing does.
    pub(crate) fn next(&self) -> u64 {
        self.wakes.next().min(self.next_news).min(self.next_forks)
    }

    /// Cycles after which another region may know at the earliest what comes to pass here.
    pub(crate) fn least_lead(&self) -> u64 {
        if self.flow && !self.has_routers {
            self.timing.lead_of_pipes(1)
        } else {
            self.timing.lead()
        }
    }

    /// Takes a message from another region.
    pub(crate) fn accept(&mut self, plan: &Plan, code: &C, message: Message) {
        match message {
            Message::Word { pe, port, word, .. } => {
                let places = plan.timing.link_places;
                if self.router(plan, pe).push(plan, word.color, port, places, word) {
                    self.wakes.router(pe, word.stamp);
                }
                self.trespass(plan, pe, word.color);
                if !self.cuts.is_empty() {
                    // Nothing happens here before one of these cycles.
                    let next = self.wakes.next().min(word.stamp).min(self.end);
                    self.cut_marked(plan, code, next.max(self.now + 1));
                }
            }
            Message::Credit { pe, color, port, free, .. } => {
                let places = plan.timing.link_places;
                let shadow = self.router(plan, pe).shadow(color, port, places);
                let was_full = shadow.is_full();
                shadow.pop(free);
                if was_full {
                    self.unblock(pe, free);
                }
            }
            Message::News(news) => self.add_news(news),
        }
    }

    /// A word has come down the ramp into a queue.
    pub(crate) fn deliver(&mut self, plan: &Plan, code: &C, pe: u32, queue: usize, word: Slot) {
        let core = self.core(plan, code, pe);
        let (number, is_news) = (core.at.number, core.is_news(queue, &word));
        core.take_in(queue, word);
        self.announce_word(pe, word.stamp, is_news);
        self.delivered(number, queue, word);
    }

    /// A word of this stamp has come to a core: it is looked at then if that is news, as
    /// [`Core::is_news`] says. Other engines than `exact` look always.
    #[inline]
    pub(crate) fn announce_word(&mut self, pe: u32, stamp: u64, is_news: bool) {
        if is_news || !self.wakes.are_kept() {
            self.wakes.core(pe, stamp);
        }
    }

    /// Counts a word that a PE's queue has taken in.
    pub(crate) fn delivered(&mut self, number: u32, queue: usize, word: Slot) {
        self.stats.delivered += 1;
        if let Some(events) = &mut self.events {
            let Slot { stamp: cycle, payload, control, .. } = word;
            let queue = queue as u8;
            events.push(Event::Arrival { cycle, pe: number, queue, payload, control });
        }
    }

    /// A word that the host sent by a color has come to rest on a PE, or gone back to the host.
    pub(crate) fn rests(&mut self, plan: &Plan, pe: u32, color: u8) {
        self.all_rest(plan, pe, color, 1);
    }

    /// So many words have.
    pub(crate) fn all_rest(&mut self, plan: &Plan, pe: u32, color: u8, count: u64) {
        if self.watch.to_mesh >> color & 1 != 0 {
            let row = plan.coord(self.number(plan, pe)).y;
            *self.watch.rested.entry((row, color)).or_insert(0) += count;
        }
    }

    /// Notes something odd that a PE's task (or none) has done.
    ///
    /// # Errors
    /// The run is strict: it is a trap.
    pub(crate) fn odd(
        &mut self,
        plan: &Plan,
        (number, task): (u32, u16),
        odd: Odd,
        loc: Loc,
        cycle: u64,
    ) -> Result<(), Fault> {
        let program = plan.program_of[number as usize];
        if plan.strict {
            let program = plan.programs.get(usize::from(program));
            let kind = TrapKind::Odd(account::text(program, odd));
            return Err(Fault { kind: Box::new(kind), task, loc, color: odd.color() });
        }
        let new = OddTimes { cycle, number, odd, count: 1 };
        match self.odd.entry((program, task, loc, odd.kind())) {
            Entry::Vacant(entry) => {
                entry.insert(new);
            }
            Entry::Occupied(mut entry) => entry.get_mut().add(new),
        }
        Ok(())
    }

    /// Notes a trap without a source place on a PE of the region.
    pub(crate) fn trap(
        &mut self,
        plan: &Plan,
        pe: u32,
        cycle: u64,
        kind: TrapKind,
        color: Option<Color>,
    ) {
        let number = self.number(plan, pe);
        self.trap_at(plan, number, cycle, kind, color);
    }

    /// Notes a trap without a source place on any PE of the mesh.
    pub(crate) fn trap_at(
        &mut self,
        plan: &Plan,
        number: usize,
        cycle: u64,
        kind: TrapKind,
        color: Option<Color>,
    ) {
        let program = plan.program(number).map(|program| program.name.clone());
        let pe: Coord = plan.coord(number);
        let (task, loc, sender) = (None, Loc::default(), None);
        let trap = Trap { kind, pe, program, task, loc, cycle, color, sender };
        self.note_trap(number, trap);
    }

    /// Keeps the first trap by (cycle, PE).
    pub(crate) fn note_trap(&mut self, number: usize, trap: Trap) {
        let earlier =
            self.trap.as_ref().is_some_and(|(pe, old)| (old.cycle, *pe) <= (trap.cycle, number));
        if !earlier {
            self.trap = Some((number, trap));
        }
    }
}

/// Place of PE `pe` of a rectangle.
fn place(rect: Rect, pe: u32) -> (u32, u32) {
    let width = u32::from(rect.width);
    (u32::from(rect.x) + pe % width, u32::from(rect.y) + pe / width)
}
