//! Shortest ways: best-first search with a lower bound, ties in the order of discovery.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use dflow_ir::mesh::{Color, Coord, Port};

use super::{Cells, Request};

/// PEs, one after the other.
pub(super) type Way = Vec<Coord>;

/// Cost of a PE, of each net that is there, and of code.
const STEP: u32 = 4;
const CROSSING: u32 = 1;
const CODE: u32 = 24;

const SIDES: [Port; 4] = [Port::West, Port::East, Port::North, Port::South];

/// The mesh with what has been laid so far.
pub(super) struct Search {
    width: u16,
    height: u16,
    /// Cost of each PE.
    cost: Vec<u32>,
    /// Nets that use each PE.
    nets: Vec<u8>,
    /// Cost so far, by PE; only those of the search numbered `round` count.
    best: Vec<(u32, u32)>,
    /// From where each PE was reached.
    from: Vec<u32>,
    round: u32,
}

/// Where a search ends.
enum Goal<'a> {
    At(Coord),
    Edge(&'a BTreeSet<(Coord, Port)>),
}

impl Search {
    pub(super) fn new(request: &Request, nets: &[Cells]) -> Search {
        let (width, height) = request.size;
        let area = usize::from(width) * usize::from(height);
        let mut search = Search {
            width,
            height,
            cost: vec![STEP; area],
            nets: vec![0; area],
            best: vec![(0, 0); area],
            from: vec![0; area],
            round: 0,
        };
        for y in 0..height {
            for x in 0..width {
                let at = Coord { x, y };
                let users = nets.iter().filter(|net| net.contains(at)).count();
                let index = search.index(at);
                search.nets[index] = u8::try_from(users).unwrap_or(u8::MAX);
                search.cost[index] += CROSSING * users as u32;
                if request.code.contains(at) {
                    search.cost[index] += CODE;
                }
            }
        }
        search
    }

    /// The neighbor at a side, if the mesh has one.
    pub(super) fn step(&self, at: Coord, side: Port) -> Option<Coord> {
        at.neighbor(side, (self.width, self.height))
    }

    /// A wire goes through a PE.
    pub(super) fn cross(&mut self, at: Coord) {
        let index = self.index(at);
        self.nets[index] = self.nets[index].saturating_add(1);
        self.cost[index] += CROSSING;
    }

    /// The way from a PE to another, both included, around what is taken.
    pub(super) fn between(&mut self, taken: &Cells, first: Coord, last: Coord) -> Option<Way> {
        self.search(taken, first, &Goal::At(last)).map(|(way, _)| way)
    }

    /// The way from a PE to an edge, and the side there that the host is joined to: one that
    /// joins no other wire.
    pub(super) fn edge_from(
        &mut self,
        taken: &Cells,
        joined: &BTreeSet<(Coord, Port)>,
        first: Coord,
    ) -> Option<(Way, (Coord, Port))> {
        let (way, side) = self.search(taken, first, &Goal::Edge(joined))?;
        let last = *way.last()?;
        Some((way, (last, side)))
    }

    fn search(&mut self, taken: &Cells, first: Coord, goal: &Goal<'_>) -> Option<(Way, Port)> {
        if !self.is_open(taken, first) {
            return None;
        }
        self.round += 1;
        let (mut heap, mut found) = (BinaryHeap::new(), 0_u32);
        let start = self.index(first);
        self.reach(start, start, self.cost[start]);
        heap.push(Reverse((self.cost[start] + bound(first, goal), found, start as u32)));
        while let Some(Reverse((estimate, _, index))) = heap.pop() {
            let at = self.coord(index as usize);
            let (_, cost) = self.best[index as usize];
            if estimate > cost + bound(at, goal) {
                continue;
            }
            if let Some(side) = self.reached(at, goal) {
                return Some((self.trace(start, index as usize), side));
            }
            for side in SIDES {
                let Some(next) = self.step(at, side) else { continue };
                if !self.is_open(taken, next) {
                    continue;
                }
                let place = self.index(next);
                let cost = cost + self.cost[place];
                let (round, best) = self.best[place];
                if round == self.round && best <= cost {
                    continue;
                }
                self.reach(place, index as usize, cost);
                found += 1;
                heap.push(Reverse((cost + bound(next, goal), found, place as u32)));
            }
        }
        None
    }

    /// Whether a wire may go through a PE.
    fn is_open(&self, taken: &Cells, at: Coord) -> bool {
        !taken.contains(at) && usize::from(self.nets[self.index(at)]) < Color::COUNT
    }

    /// The side at which a search ends at a PE, if it does.
    fn reached(&self, at: Coord, goal: &Goal<'_>) -> Option<Port> {
        match goal {
            Goal::At(last) => (at == *last).then_some(Port::Ramp),
            Goal::Edge(joined) => SIDES
                .into_iter()
                .find(|&side| self.step(at, side).is_none() && !joined.contains(&(at, side))),
        }
    }

    fn reach(&mut self, index: usize, from: usize, cost: u32) {
        self.best[index] = (self.round, cost);
        self.from[index] = from as u32;
    }

    fn trace(&self, start: usize, end: usize) -> Way {
        let mut way = vec![self.coord(end)];
        let mut index = end;
        while index != start {
            index = self.from[index] as usize;
            way.push(self.coord(index));
        }
        way.reverse();
        way
    }

    fn index(&self, at: Coord) -> usize {
        usize::from(at.y) * usize::from(self.width) + usize::from(at.x)
    }

    fn coord(&self, index: usize) -> Coord {
        let width = usize::from(self.width);
        Coord { x: (index % width) as u16, y: (index / width) as u16 }
    }
}

/// At least so much is still to pay.
fn bound(at: Coord, goal: &Goal<'_>) -> u32 {
    match goal {
        Goal::At(last) => {
            STEP * (u32::from(at.x.abs_diff(last.x)) + u32::from(at.y.abs_diff(last.y)))
        }
        Goal::Edge(_) => 0,
    }
}
