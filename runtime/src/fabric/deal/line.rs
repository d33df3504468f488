//! A line: its words, and when they are where they go.

use std::collections::{BTreeMap, VecDeque};

use dflow_ir::mesh::Port;

use crate::fabric::ring::{NEVER, Slot};

/// Routers in a row behind a link of the host.
#[derive(Debug)]
pub(crate) struct Line {
    /// The first router, the port by which words enter each, and the color.
    pub(super) root: u32,
    pub(super) from: u8,
    pub(super) color: u8,
    /// From one PE to the next, and how many there are.
    pub(in crate::fabric) step: u32,
    pub(in crate::fabric) nodes: u32,
    /// Routers at the front that do nothing but hand on, unless they are reset.
    pub(super) passing: u32,
    /// Words in the order in which they entered; in each part no word goes less far than those before it.
    pub(super) parts: VecDeque<Part>,
    /// Number of words.
    pub(super) held: u32,
    /// If words stand for which their cores have no place: how many more may come behind them.
    pub(super) room: Option<u32>,
    /// Words have gone through the routers, which may hold some; and those came behind words of the line.
    pub(super) mixed: bool,
    pub(super) followed: bool,
    /// Pipes to the cores that packets go to, by router (`packet`).
    pub(super) pipes: BTreeMap<u32, u32>,
}

/// Words of which none goes less far than those before it.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) words: VecDeque<Dealt>,
    /// When the last word that has left was where it went, and where that was.
    left: Option<(u64, u32)>,
}

/// A word.
#[derive(Debug)]
pub(super) struct Dealt {
    /// Its stamp is the cycle in which it entered.
    pub(super) word: Slot,
    /// The last router it comes to.
    pub(super) target: u32,
    /// What it does to switches on its way.
    pub(super) moves: Box<[Move]>,
}

/// What a word does in a router.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) node: u32,
    /// The position before, and after.
    pub(super) old: u8,
    pub(super) new: u8,
    /// It is hidden from the core, and goes on.
    pub(super) hidden: bool,
    pub(super) goes_on: bool,
}

impl Dealt {
    /// Whether it is a word for the core of a router.
    fn is_for(&self, target: u32) -> bool {
        !self.word.control && self.target == target
    }
}

impl Part {
    /// When the first word is where it goes, as far as words of this part decide, and where that is.
    pub(super) fn due(&self, hop: u64) -> Option<(u64, u32)> {
        let first = self.words.front()?;
        let free = first.word.stamp + hop * u64::from(first.target + 1);
        let behind = self
            .left
            .map_or(0, |(t, node)| t + 1 + hop * u64::from(first.target.saturating_sub(node)));
        Some((free.max(behind), first.target))
    }

    /// The first word leaves in cycle `t`.
    pub(super) fn leave(&mut self, t: u64) -> Option<Dealt> {
        let first = self.words.pop_front()?;
        self.left = Some((t, first.target));
        Some(first)
    }
}

impl Line {
    /// A line without words.
    pub(super) fn new(root: u32, (color, from): (u8, u8), step: u32, nodes: u32) -> Line {
        Line {
            root,
            from,
            color,
            step,
            nodes,
            passing: 0,
            parts: VecDeque::new(),
            held: 0,
            room: None,
            mixed: true,
            followed: false,
            pipes: BTreeMap::new(),
        }
    }

    /// The PE of a router.
    pub(super) fn pe(&self, node: u32) -> u32 {
        self.root + node * self.step
    }

    /// Whether a word more has a place.
    pub(super) fn has_room(&self) -> bool {
        self.room != Some(0)
    }

    /// How many words have places behind one that stands in the router where it goes, the first of a part, in links of
    /// so many places.
    pub(super) fn room_behind(&self, part: usize, node: u32, places: u32) -> u32 {
        let words: usize = self.parts.range(part..).map(|part| part.words.len()).sum();
        (places * (node + 1)).saturating_sub(words as u32)
    }

    /// A word enters.
    pub(super) fn enter(&mut self, dealt: Dealt) {
        let last = self.parts.back().and_then(|part| part.words.back());
        if self.parts.is_empty() || last.is_some_and(|last| last.target > dealt.target) {
            self.parts.push_back(Part::default());
        }
        if let Some(part) = self.parts.back_mut() {
            part.words.push_back(dealt);
        }
        self.held += 1;
        self.room = self.room.map(|room| room.saturating_sub(1));
    }

    /// How many words for the core of a router entered last, if none of its words are before others.
    pub(super) fn last_for(&self, target: u32) -> Option<usize> {
        let words = || self.parts.iter().flat_map(|part| &part.words).rev();
        let last = words().take_while(|word| word.is_for(target)).count();
        words().skip(last).all(|word| !word.is_for(target)).then_some(last)
    }

    /// The last words, which go to one core, are no longer among its own: when each entered, and what it is.
    pub(super) fn take_last(&mut self, count: usize) -> Vec<(u64, u32)> {
        let Some(part) = self.parts.back_mut() else { return Vec::new() };
        let words = part.words.split_off(part.words.len() - count);
        self.held -= count as u32;
        self.trim();
        words.into_iter().map(|dealt| (dealt.word.stamp, dealt.word.payload)).collect()
    }

    /// Forgets parts without words.
    pub(super) fn trim(&mut self) {
        self.parts.retain(|part| !part.words.is_empty());
    }

    /// Where its words enter: PE, port, color.
    pub(crate) fn entry(&self) -> (u32, Port, u8) {
        (self.root, Port::ALL[usize::from(self.from)], self.color)
    }

    /// Words for cores.
    pub(crate) fn waiting(&self) -> u64 {
        let words = self.parts.iter().flat_map(|part| &part.words);
        words.filter(|dealt| !dealt.word.control).count() as u64
    }

    /// Where each word stands in cycle `t`, the first one first: the router, and its stamp there.
    pub(super) fn places(&self, hop: u64, places: u32, t: u64) -> Vec<(u32, u64)> {
        let (mut placed, mut last, mut count) = (Vec::new(), u32::MAX, 0);
        for dealt in self.parts.iter().flat_map(|part| &part.words) {
            let entered = dealt.word.stamp;
            let come = (t.saturating_sub(entered).div_ceil(hop)).saturating_sub(1) as u32;
            let mut node = come.min(dealt.target).min(last);
            if node == last && count == places {
                node = node.saturating_sub(1);
            }
            count = if node == last { count + 1 } else { 1 };
            last = node;
            placed.push((node, entered + hop * u64::from(node + 1)));
        }
        placed
    }
}

/// The least of two cycles, of which the second may not be known.
pub(super) fn sooner(one: u64, other: Option<u64>) -> u64 {
    one.min(other.unwrap_or(NEVER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dealt(stamp: u64, target: u32) -> Dealt {
        Dealt { word: Slot { stamp, ..Slot::default() }, target, moves: Box::default() }
    }

    fn line(words: &[(u64, u32)]) -> Line {
        let mut line = Line::new(0, (0, 0), 1, 9);
        words.iter().for_each(|&(stamp, target)| line.enter(dealt(stamp, target)));
        line
    }

    #[test]
    fn words_come_a_hop_per_router_and_in_order() {
        let mut line = line(&[(0, 2), (1, 2), (2, 5), (3, 1)]);
        assert_eq!(line.parts.len(), 2);
        let part = &mut line.parts[0];
        assert_eq!(part.due(1), Some((3, 2)));
        // The first waits for a place: the others come behind it.
        part.leave(10);
        assert_eq!(part.due(1), Some((11, 2)));
        part.leave(11);
        assert_eq!(part.due(1), Some((15, 5)));
        assert_eq!(line.parts[1].due(1), Some((5, 1)));
    }

    #[test]
    fn words_that_are_held_up_fill_the_routers() {
        let words: Vec<(u64, u32)> = (0..6).map(|t| (t, 2)).collect();
        let line = line(&words);
        let nodes = |t| line.places(1, 2, t).into_iter().map(|(node, _)| node).collect::<Vec<_>>();
        assert_eq!(nodes(20), [2, 2, 1, 1, 0, 0]);
        assert_eq!(nodes(7), [2, 2, 1, 1, 0, 0]);
        assert_eq!(line.places(1, 2, 3)[..2], [(2, 3), (1, 3)]);
    }

    #[test]
    fn a_line_that_is_held_up_has_as_many_places_as_its_routers() {
        let mut line = line(&[(0, 1), (1, 1), (2, 1)]);
        assert!(line.has_room());
        line.room = Some(line.room_behind(0, 1, 2));
        assert!(line.has_room());
        line.enter(dealt(3, 1));
        assert!(!line.has_room());
    }

    #[test]
    fn words_that_stand_farther_on_take_no_places_from_those_behind() {
        let line = line(&[(0, 5), (1, 5), (2, 5), (3, 0), (4, 0)]);
        assert_eq!(line.room_behind(0, 5, 3), 13);
        assert_eq!(line.room_behind(1, 0, 3), 1);
    }
}
