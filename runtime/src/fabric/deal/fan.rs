//! Words of the host for all PEs of a row: what a fan is, and which routers are one.
//!
//! Routers behind a link of the host that hand a color to the core and on are a *fan*. Words that the host has at
//! hand enter as a burst, and each PE takes a whole burst at once, each word with its own stamp
//! ([`spread`](super::spread)). So a word costs by burst and PE, whatever the routers are.
//!
//! Invariants: of the words that have passed a router, those that the cores behind have no place for have
//! places in the routers behind; control wavelets go through routers, when the fan is empty.

use std::collections::{BTreeSet, VecDeque};

use dflow_ir::mesh::Port;

use crate::fabric::ring::NEVER;
use crate::fabric::router::RAMP;
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// All of a region.
#[derive(Debug, Default)]
pub(crate) struct Fans {
    pub(super) all: Vec<Option<Box<Fan>>>,
    /// Fans that wait for a place in the core of a PE.
    pub(super) held_up: BTreeSet<(u32, u32)>,
}

/// Routers in a row behind a link of the host.
#[derive(Debug)]
pub(crate) struct Fan {
    /// The first router, the port by which words enter each, and the color.
    pub(super) root: u32,
    pub(super) from: u8,
    pub(super) color: u8,
    /// From one PE to the next, and how many there are.
    pub(super) step: u32,
    pub(super) nodes: u32,
    /// Words in the order in which they entered; none is behind one that entered after it.
    pub(super) bursts: VecDeque<Burst>,
    /// Cycle of the next look.
    pub(super) armed: u64,
    /// Routers hold words, or may.
    pub(super) mixed: bool,
}

/// Words that go together.
#[derive(Debug)]
pub(super) struct Burst {
    /// The router where they stand, or come next.
    pub(super) node: u32,
    /// They wait there.
    pub(super) stands: bool,
    pub(super) words: VecDeque<Spread>,
}

/// A word: it is at router `n` a cycle and `n` hops after it would have entered for that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) entered: u64,
    pub(super) payload: u32,
}

impl Fan {
    /// The PE of a router.
    pub(super) fn pe(&self, node: u32) -> u32 {
        self.root + node * self.step
    }

    /// When the first word of a burst is where it comes next.
    pub(super) fn due(&self, burst: usize, hop: u64) -> u64 {
        let burst = &self.bursts[burst];
        let entered = burst.words.front().map_or(NEVER, |word| word.entered);
        entered.saturating_add(hop * u64::from(burst.node + 1))
    }

    /// Whether all words have places in the routers where they are.
    pub(super) fn fits(&self, places: usize) -> bool {
        let at = |node| self.bursts.iter().filter(move |burst| burst.node == node);
        let words = |node| at(node).map(|burst| burst.words.len()).sum::<usize>();
        self.bursts.iter().all(|burst| words(burst.node) <= places)
    }

    /// Words that have not come to all cores.
    pub(super) fn held(&self) -> u64 {
        self.bursts.iter().map(|burst| burst.words.len() as u64).sum()
    }
}

impl Fans {
    /// Words under way: the PE where they entered, port, color, how many.
    pub(crate) fn words(&self) -> impl Iterator<Item = (u32, Port, u8, u64)> {
        let all = self.all.iter().flatten();
        all.map(|fan| (fan.root, Port::ALL[usize::from(fan.from)], fan.color, fan.held()))
    }
}

impl<C: Code> Region<C> {
    /// The fan behind a link into the mesh, if routers there do no more than to hand words to their
    /// cores and on.
    pub(super) fn new_fan(&self, plan: &Plan, root: u32, (color, from): (u8, u8)) -> Option<Fan> {
        let onward = from ^ 1;
        let both = 1 << RAMP | 1 << onward;
        let (mut pe, mut nodes) = (root, 1);
        loop {
            let row = self.dealing(plan, pe, (color, from), pe == root)?;
            match row.tx[0] {
                _ if row.positions != 1 => return None,
                tx if tx == both => {}
                tx if tx == 1 << RAMP => break,
                _ => return None,
            }
            (pe, nodes) = (self.near(plan, pe, onward).ok()?, nodes + 1);
        }
        // What has one taker is a pipe.
        if nodes == 1 {
            return None;
        }
        let step = self.near(plan, root, onward).ok()?.checked_sub(root)?;
        let (bursts, armed) = (VecDeque::new(), NEVER);
        Some(Fan { root, from, color, step, nodes, bursts, armed, mixed: false })
    }
}
