//! Gathered words: what many PEs send to the host over one link, in the `flow` engine.
//!
//! Where routers do no more than merge a color's words towards a link to the host, that link alone decides
//! when words come: a tree of links that pass a word per cycle each keeps its last link busy in the
//! same cycles as if all words queued there, each after the latency of its way. So a word that goes
//! up the ramp gets the first cycle of the link that is free from when it could be there, and
//! stands in its PE's router until it has to leave for that. Which of several words goes first may differ
//! from R4, and words of other colors on the same links are not felt (spec/flow.md).
//!
//! Invariants: words of a PE keep their order; the host takes what comes over the link, so that
//! nothing stays here for ever; control wavelets, and data that moves a switch, never enter.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dflow_ir::mesh::Port;

use super::channel::Outlet;
use super::plan::RouterPlan;
use super::ring::{NEVER, Slot};
use super::router::RAMP;
use crate::pe::code::Code;
use crate::sched::plan::{Latencies, Plan};
use crate::sched::region::Region;
use crate::sched::run::LATE;
use crate::ways::Why;

/// Cycles for which all operations that send to a line may fill it ahead, and words that each may put
/// into it at once, whatever their number.
const SPAN: u32 = 2048;
const FEWEST: u32 = 4;
const MOST: u32 = 64;

/// All of a region.
#[derive(Debug, Default)]
pub(crate) struct Gathers {
    lines: Vec<Gather>,
    senders: Vec<Sender>,
    /// By sender: when its last words left its router, as many as the ramp has places, and went up the
    /// ramp, as many as its output queue has.
    times: Vec<u64>,
    /// By color and PE: what is known of the way from there.
    nodes: BTreeMap<u8, Box<[Node]>>,
    /// Links of which the host has ever limited what it takes.
    bounded: BTreeSet<u32>,
}

/// Words of a color on their way to one link.
#[derive(Debug)]
struct Gather {
    /// The PE that is joined to the host, and the link.
    root: u32,
    link: u32,
    /// Words by the cycle in which they leave by the link, from cycle `base` on.
    cycles: VecDeque<Option<Gathered>>,
    base: u64,
    /// All cycles from `base` to this one are taken.
    full: u64,
    /// Cycle of the next look.
    armed: u64,
    held: u32,
    /// PEs that have a way to it.
    senders: u32,
    /// No word enters any more.
    closed: bool,
    /// Cores that wait until it is closed and empty.
    waiting: Vec<u32>,
}

/// A word, and where it comes from.
#[derive(Clone, Copy, Debug)]
struct Gathered {
    word: Slot,
    hops: u32,
    source: u32,
}

/// A PE that sends a color to a link.
#[derive(Clone, Copy, Debug)]
struct Sender {
    line: u32,
    hops: u32,
    source: u32,
    /// The cycle after its last word's on the link, and after it went up the ramp.
    after: u64,
    up: u64,
    /// When its last words left its router, and went up the ramp.
    left: Lately,
    ups: Lately,
}

/// When the last of some words did something: entries in a table, the oldest of which is used anew.
#[derive(Clone, Copy, Debug)]
struct Lately {
    first: u32,
    count: u32,
    oldest: u32,
}

impl Lately {
    /// Entries for `count` words, which have done nothing yet.
    fn new(times: &mut Vec<u64>, count: u32) -> Lately {
        let first = times.len() as u32;
        times.resize(times.len() + count as usize, 0);
        Lately { first, count, oldest: 0 }
    }

    /// When the oldest did it; 0 if none has.
    fn oldest(self, times: &[u64]) -> u64 {
        times[(self.first + self.oldest) as usize]
    }

    /// One more does it in cycle `t`.
    fn note(&mut self, times: &mut [u64], t: u64) {
        times[(self.first + self.oldest) as usize] = t;
        self.oldest = if self.oldest + 1 == self.count { 0 } else { self.oldest + 1 };
    }
}

/// Where a color goes from a router.
#[derive(Clone, Copy, Debug)]
pub(super) enum Onward {
    /// Over a link of the host.
    Host(u32),
    /// To another router of the region, and the port there.
    Router(u32, u8),
}

/// What is known of the way from a router.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// One more than the line, if it is known.
    line: u32,
    hops: u32,
}

impl Gather {
    fn new(root: u32, link: u32) -> Gather {
        let (cycles, waiting) = (VecDeque::new(), Vec::new());
        let (base, full, held, senders) = (0, 0, 0, 0);
        Gather {
            root,
            link,
            cycles,
            base,
            full,
            armed: NEVER,
            held,
            senders,
            closed: false,
            waiting,
        }
    }

    /// Gives a word the first free cycle of the link from `from` on, which is after cycle `now`.
    fn place(&mut self, from: u64, now: u64, word: Gathered) -> u64 {
        if self.held == 0 {
            self.cycles.clear();
            // Words of later cycles may have left.
            self.base = self.base.max(now);
            self.full = self.base;
        }
        let mut at = from.max(self.full);
        while self.cycles.get((at - self.base) as usize).is_some_and(Option::is_some) {
            at += 1;
        }
        self.full += u64::from(at == self.full);
        let index = (at - self.base) as usize;
        if index >= self.cycles.len() {
            self.cycles.resize(index + 1, None);
        }
        self.cycles[index] = Some(word);
        self.held += 1;
        at
    }

    /// The word that leaves in cycle `t`; those before have left.
    fn leave(&mut self, t: u64) -> Option<Gathered> {
        let mut word = None;
        while self.base <= t {
            word = self.cycles.pop_front().flatten();
            self.base += 1;
        }
        self.full = self.full.max(self.base);
        self.held -= u32::from(word.is_some());
        word
    }

    /// Up to which cycle from `t` on, [`LATE`] at most, one word leaves after the other, and no other can take the turn of
    /// one. When the last word of one that is closed leaves is told in its cycle.
    fn sure_until(&self, t: u64) -> u64 {
        if self.closed {
            return t;
        }
        let from = t.saturating_sub(self.base) as usize;
        let taken = self.cycles.iter().skip(from).take(LATE as usize).take_while(|it| it.is_some());
        t + (taken.count() as u64).saturating_sub(1)
    }

    /// When the next word leaves.
    fn next(&self) -> u64 {
        match self.cycles.iter().position(Option::is_some) {
            Some(index) => self.base + index as u64,
            None => NEVER,
        }
    }
}

impl Gathers {
    /// The host limits what it takes over a link, now or later.
    pub(crate) fn bound(&mut self, link: u32) {
        self.bounded.insert(link);
        self.lines.iter_mut().filter(|line| line.link == link).for_each(|line| line.closed = true);
    }

    /// PEs that a color goes by.
    pub(crate) fn passed(&self) -> impl Iterator<Item = (u8, u32)> {
        self.nodes.iter().flat_map(|(&color, nodes)| {
            let on_way = nodes.iter().enumerate().filter(|(_, node)| node.line != 0);
            on_way.map(move |(pe, _)| (color, pe as u32))
        })
    }

    /// Words that are under way: PE that has sent them, color.
    pub(crate) fn words(&self) -> impl Iterator<Item = (u32, u8)> {
        let words = self.lines.iter().flat_map(|line| line.cycles.iter().flatten());
        words.map(|it| (it.source, it.word.color))
    }
}

impl RouterPlan {
    /// The one port by which a color that comes from `from` leaves, to be merged with others.
    fn merges(&self, color: u8, from: u8) -> Option<u8> {
        let row = self.fixed(color)?;
        let plain = row.positions == 1 && !row.teardown && row.rx[0] >> from & 1 != 0;
        let one = row.tx[0].count_ones() == 1 && row.tx[0] != 1 << RAMP;
        (plain && one).then(|| row.tx[0].trailing_zeros() as u8)
    }
}

impl<C: Code> Region<C> {
    /// The way of a core's words to the host, if nothing but merging happens on it; `why` if not.
    /// `depth`: places of its output queue.
    pub(super) fn gathered(
        &mut self,
        plan: &Plan,
        source: u32,
        (color, depth): (u8, u32),
        why: Why,
    ) -> Outlet {
        let Some((line, hops)) = self.line_of(plan, source, color) else {
            return Outlet::Routers(why);
        };
        let Gathers { lines, senders, times, .. } = &mut self.gathers;
        if lines[line as usize].closed {
            return Outlet::Routers(Why::Commands);
        }
        lines[line as usize].senders += 1;
        let places = plan.timing.ramp_places;
        let (left, ups) = (Lately::new(times, places), Lately::new(times, depth.max(1)));
        senders.push(Sender { line, hops, source, after: 0, up: 0, left, ups });
        self.bytes += (size_of::<Sender>() + (places + depth) as usize * size_of::<u64>()) as u64;
        Outlet::Gathered(senders.len() as u32 - 1)
    }

    /// The line that a core's words go by, and their hops; the way is followed as far as it is not
    /// known, and known from then on.
    fn line_of(&mut self, plan: &Plan, source: u32, color: u8) -> Option<(u32, u32)> {
        let (mut pe, mut from, mut way) = (source, RAMP, Vec::new());
        let (line, mut hops) = loop {
            let onward = self.merges_to(plan, pe, color, from)?;
            let known = self.gathers.nodes.get(&color).map(|nodes| nodes[pe as usize]);
            if let Some(Node { line: 1.., .. }) = known {
                break known.map(|node| (node.line - 1, node.hops))?;
            }
            match onward {
                Onward::Host(link) => {
                    let line = self.new_line(plan, pe, link)?;
                    self.note_node(color, pe, line, 0);
                    break (line, 0);
                }
                // A way that leads round has no end.
                Onward::Router(..) if way.len() > self.routers.len() => return None,
                Onward::Router(near, port) => {
                    way.push(pe);
                    (pe, from) = (near, port);
                }
            }
        };
        for pe in way.into_iter().rev() {
            hops += 1;
            self.note_node(color, pe, line, hops);
        }
        Some((line, hops))
    }

    fn note_node(&mut self, color: u8, pe: u32, line: u32, hops: u32) {
        let count = self.routers.len();
        let bytes = &mut self.bytes;
        let nodes = self.gathers.nodes.entry(color).or_insert_with(|| {
            *bytes += (count * size_of::<Node>()) as u64;
            vec![Node::default(); count].into()
        });
        nodes[pe as usize] = Node { line: line + 1, hops };
    }

    /// Where a color goes from a router that only merges it; none if that is neither a router of the region nor the host.
    pub(super) fn merges_to(&self, plan: &Plan, pe: u32, color: u8, from: u8) -> Option<Onward> {
        let port = self.merges_at(plan, pe, color, from)?;
        let number = self.number(plan, pe);
        if let Some(link) = plan.link(number, Port::ALL[usize::from(port)], color) {
            return Some(Onward::Host(link));
        }
        Some(Onward::Router(self.near(plan, pe, port).ok()?, port ^ 1))
    }

    /// The port by which a color leaves a router that only merges it.
    pub(super) fn merges_at(&self, plan: &Plan, pe: u32, color: u8, from: u8) -> Option<u8> {
        let number = self.number(plan, pe);
        let torn = self.routers[pe as usize].as_deref().is_some_and(|it| it.is_torn(color));
        let enters = |port: &Port| {
            let link = plan.link(number, *port, color);
            link.is_some_and(|link| plan.links[link as usize].to_mesh)
        };
        let fed = plan.has_links(number) && Port::ALL.iter().any(enters);
        if torn || fed {
            return None;
        }
        self.table_at(plan, pe).merges(color, from)
    }

    /// A line to a link over which the host takes whatever comes.
    fn new_line(&mut self, plan: &Plan, root: u32, link: u32) -> Option<u32> {
        let stream = plan.rooms.get(link as usize).copied().flatten().is_some();
        // Words of other regions would come to the link from routers.
        let is_cut = plan
            .links
            .get(link as usize)
            .is_some_and(|it| plan.crossing >> it.color.index() & 1 != 0);
        if stream || is_cut || self.gathers.bounded.contains(&link) {
            return None;
        }
        let line = self.gathers.lines.len() as u32;
        self.gathers.lines.push(Gather::new(root, link));
        self.router(plan, root).gathers.push(line);
        self.bytes += size_of::<Gather>() as u64;
        Some(line)
    }

    /// From which cycle the next word of a sender may go up the ramp; none if it has to go through
    /// routers. `pe` is told when that may have changed.
    pub(crate) fn gathers_from(&mut self, timing: &Latencies, sender: u32) -> Option<u64> {
        let Gathers { lines, senders, times, .. } = &mut self.gathers;
        let Sender { line, source, left, .. } = senders[sender as usize];
        let line = &mut lines[line as usize];
        if line.closed {
            // The host may have been told of words that have not left yet.
            let last = line.base.saturating_sub(1);
            if line.held == 0 && last <= self.now {
                return None;
            }
            if line.held == 0 && last < line.armed {
                line.armed = last;
                self.wakes.router(line.root, last);
            }
            if line.waiting.last() != Some(&source) {
                line.waiting.push(source);
            }
            return Some(NEVER);
        }
        let before = left.oldest(times);
        Some(if before == 0 { 0 } else { before + timing.credit })
    }

    /// Words that an operation of a sender may put into its line at once, and from when on its output queue has a
    /// place for the first; none if the line is closed. All senders together do not fill it for longer than
    /// [`SPAN`] cycles, or [`FEWEST`] words each.
    pub(crate) fn line_takes(&self, sender: u32) -> Option<(u32, u64)> {
        let Gathers { lines, senders, times, .. } = &self.gathers;
        let Sender { line, ups, .. } = senders[sender as usize];
        let line = &lines[line as usize];
        let most = (SPAN / line.senders.max(1)).clamp(FEWEST, MOST);
        (!line.closed).then(|| (most, ups.oldest(times) + 1))
    }

    /// Words of an operation of a sender go up the ramp as soon as each can, their elements having issued evenly
    /// from cycle `begin` up to cycle `end`, or later for want of places.
    /// When the last element has issued.
    pub(crate) fn send_to_line(
        &mut self,
        timing: &Latencies,
        sender: u32,
        words: impl ExactSizeIterator<Item = Slot>,
        (begin, end): (u64, u64),
    ) -> u64 {
        let (steps, mut issue) = (words.len().saturating_sub(1).max(1) as u64, 0);
        for (at, word) in words.enumerate() {
            let Sender { up, ups, .. } = self.gathers.senders[sender as usize];
            let due = begin + end.saturating_sub(begin) * at as u64 / steps;
            issue = due.max(issue + 1).max(ups.oldest(&self.gathers.times) + 1);
            let free = self.gathers_from(timing, sender).unwrap_or_default();
            self.send_gathered(timing, sender, word, up.max(free).max(issue + 1));
        }
        issue
    }

    /// A word of a sender goes up the ramp in cycle `t`.
    pub(crate) fn send_gathered(&mut self, timing: &Latencies, sender: u32, word: Slot, t: u64) {
        let Gathers { lines, senders, times, .. } = &mut self.gathers;
        let sender = &mut senders[sender as usize];
        let line = &mut lines[sender.line as usize];
        let latency = u64::from(sender.hops) * timing.hop;
        let from = (t + timing.ramp_up + latency).max(sender.after);
        let (hops, source) = (sender.hops, sender.source);
        let room = line.cycles.capacity();
        let at = line.place(from, self.now, Gathered { word, hops, source });
        let more = line.cycles.capacity() - room;
        self.bytes += (more * size_of::<Option<Gathered>>()) as u64;
        (sender.after, sender.up) = (at + 1, t + 1);
        sender.left.note(times, at - latency);
        sender.ups.note(times, t);
        if at < line.armed {
            line.armed = at;
            self.wakes.router(line.root, at);
        }
    }

    /// Words of a color that command routers are to come from a PE: nobody's go by the line any more
    /// that passes it.
    pub(crate) fn close_gather(&mut self, pe: u32, color: u8) {
        let node = self.gathers.nodes.get(&color).map(|nodes| nodes[pe as usize]);
        if let Some(line) = node.and_then(|node| node.line.checked_sub(1)) {
            self.gathers.lines[line as usize].closed = true;
        }
    }

    /// Words leave by the links of a router in cycle `t`.
    pub(super) fn leave_gathers(&mut self, plan: &Plan, pe: u32, t: u64) {
        let count = self.routers[pe as usize].as_deref().map_or(0, |it| it.gathers.len());
        for at in 0..count {
            let Some(router) = self.routers[pe as usize].as_deref() else { return };
            let id = router.gathers[at] as usize;
            let line = &mut self.gathers.lines[id];
            if line.armed != t {
                continue;
            }
            // Not beyond the end of the run: one that is not known yet is further off.
            let last = line.sure_until(t).min(self.end.saturating_sub(1)).max(t);
            #[cfg(test)]
            if last > t {
                crate::sched::reached::note(crate::sched::reached::Reached::ToldAhead);
            }
            let link = line.link;
            for t in t..=last {
                let left = self.gathers.lines[id].leave(t);
                let Some(Gathered { word, hops, .. }) = left else { continue };
                self.stats.hops += u64::from(hops);
                self.active_until = self.active_until.max(t + 1);
                self.go_to_host(plan, pe, link, Slot { stamp: t + plan.timing.hop, ..word });
            }
            let line = &mut self.gathers.lines[id];
            line.armed = line.next();
            if line.armed != NEVER {
                self.wakes.router(pe, line.armed);
            }
            if line.held == 0 {
                for core in std::mem::take(&mut self.gathers.lines[id].waiting) {
                    self.wakes.core(core, t + 1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(payload: u32) -> Gathered {
        Gathered { word: Slot { payload, ..Slot::default() }, hops: 0, source: 0 }
    }

    /// Places words, and gives what leaves when.
    fn leave(froms: &[u64]) -> Vec<(u64, u32)> {
        let mut line = Gather::new(0, 0);
        for (at, &from) in froms.iter().enumerate() {
            line.place(from, 0, word(at as u32));
        }
        let mut left = Vec::new();
        while line.next() != NEVER {
            let t = line.next();
            left.extend(line.leave(t).map(|it| (t, it.word.payload)));
        }
        assert_eq!(line.held, 0);
        left
    }

    #[test]
    fn the_link_is_busy_whenever_a_word_could_be_there() {
        assert_eq!(leave(&[9, 3, 3, 4]), [(3, 1), (4, 2), (5, 3), (9, 0)]);
        assert_eq!(leave(&[4, 3, 3, 3]), [(3, 1), (4, 0), (5, 2), (6, 3)]);
    }

    #[test]
    fn the_busy_cycles_do_not_depend_on_who_asks_first() {
        let froms = [5u64, 1, 2, 2, 2, 7, 8, 8, 20];
        let cycles = |froms: &[u64]| leave(froms).into_iter().map(|(t, _)| t).collect::<Vec<_>>();
        let forwards = cycles(&froms);
        let backwards: Vec<u64> = froms.into_iter().rev().collect();
        assert_eq!(forwards, cycles(&backwards));
        assert_eq!(forwards, [1, 2, 3, 4, 5, 7, 8, 9, 20]);
    }
}
