//! Words that leap: over routers that hand them on as they stand, in the `flow` engine.
//!
//! Routers in a row that send a color on in one direction only, and whose switches say whether it comes from the
//! core or from the router behind, are a *leap*, up to the first router that does something else, its
//! root. A word that leaves such a router goes to the root at once if all between are open: their switches are towards
//! the router behind, and no word stands there. It is there when it would be, in the order in which words pass.
//! The root's buffer takes as many as it has places for; the others wait in the leap, as many as the
//! routers in between have places for ([`visit`]).
//! Where a router is shut, and control wavelets, words go from router to router, into places that those which wait
//! leave.
//!
//! Invariants: a router behind which a word of the leap stands is a stop, and so is one that is shut; words
//! come into the root's buffer from its leap alone, in their order; those that wait and those in a router have no more
//! of its places than there are; when nothing moves any more the words of a leap are put into the routers where they
//! are, before others that came after them.

use std::collections::{BTreeMap, VecDeque};

use dflow_ir::mesh::Port;

use super::ring::Slot;
use crate::pe::code::Code;
use crate::sched::region::Region;
use crate::sched::rounds::Noter;

mod find;
mod host;
mod visit;

/// All of a region.
#[derive(Debug, Default)]
pub(crate) struct Leaps {
    all: Vec<Leap>,
    /// By color and PE: 0 if it is not known, 1 if there is none, else two more than the leap.
    nodes: BTreeMap<u8, Box<[u32]>>,
    /// By leap and node: the pipe by which packets of its words go to the host.
    pipes: BTreeMap<(u32, u32), u32>,
}

impl Leaps {
    /// Notes what is on its way in them.
    pub(crate) fn note(&self, noter: &mut Noter<'_>) {
        for Leap { queue, packets, waiting, stops, last, .. } in &self.all {
            noter.only(queue.is_empty() && packets.is_empty() && waiting.is_empty());
            noter.value(stops);
            noter.stamp(*last);
        }
    }

    /// All that happens in them happens so many cycles later.
    pub(crate) fn put_off(&mut self, by: u64) {
        self.all.iter_mut().for_each(|leap| leap.last += by);
    }
}

#[cfg(test)]
impl Leaps {
    /// How many have been found.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }
}

/// Routers in a row, and words on their way to the one that ends it.
#[derive(Debug)]
struct Leap {
    color: u8,
    /// The port by which words enter each, and the root's buffer for them.
    port: u8,
    lane: u8,
    /// The root is node 0; from one to the next behind it, and how many there are behind it.
    root: u32,
    step: u32,
    nodes: u32,
    /// Nodes that no word passes now, as bits.
    stops: Box<[u64]>,
    /// Words that the root's buffer has had no place for.
    queue: VecDeque<Slot>,
    /// When the last word is there.
    last: u64,
    /// Pipes of which packets are on their way to the host, in the order in which they are there.
    packets: VecDeque<u32>,
    /// Routers that wait until a word more has a place.
    waiting: Vec<u32>,
}

/// Where a buffer stands in a leap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    leap: u32,
    node: u32,
}

impl Place {
    /// In none.
    pub(super) const NONE: Place = Place { leap: u32::MAX, node: 0 };

    /// Whether it stands in one.
    #[inline]
    pub(super) fn is_any(self) -> bool {
        self.leap != u32::MAX
    }
}

impl Leap {
    /// The PE of a node.
    fn pe(&self, node: u32) -> u32 {
        self.root.wrapping_add(node.wrapping_mul(self.step))
    }

    /// Whether a word that leaves a node goes to the root.
    fn is_open(&self, node: u32) -> bool {
        let (word, bit) = (node as usize / 64, node % 64);
        self.stops[..word].iter().all(|&stops| stops == 0)
            && self.stops[word] & ((1 << bit) - 1) == 0
    }

    /// Words pass a node, or do not.
    fn set_stop(&mut self, node: u32, stops: bool) {
        let word = &mut self.stops[node as usize / 64];
        *word = *word & !(1 << (node % 64)) | u64::from(stops) << (node % 64);
    }

    /// How many places of a node words have that wait for the root's buffer: they stand as far ahead as there
    /// are places.
    fn standing(&self, node: u32, places: u32) -> u32 {
        (self.queue.len() as u32).saturating_sub(places * (node - 1)).min(places)
    }
}

impl<C: Code> Region<C> {
    /// Words for cores in lines, fans and leaps: the PE where they are counted, port, color, how many.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = (u32, Port, u8, u64)> {
        let lines = self.lines.iter().flatten().map(|line| {
            let (pe, port, color) = line.entry();
            (pe, port, color, line.waiting())
        });
        let leaps = self.leaps.all.iter().map(|leap| {
            let port = Port::ALL[usize::from(leap.port)];
            (leap.root, port, leap.color, leap.queue.len() as u64)
        });
        lines.chain(self.fans.words()).chain(leaps).filter(|(.., words)| *words != 0)
    }
}
