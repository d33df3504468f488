//! What a word that enters a line will meet.

use dflow_ir::mesh::wavelet::Command;
use dflow_ir::mesh::{PopMode, Port, Wavelet};

use super::line::{Line, Move};
use crate::fabric::control;
use crate::fabric::plan::ColorPlan;
use crate::fabric::registers::Current;
use crate::fabric::router::RAMP;
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// Where a word goes.
pub(super) struct Fate {
    pub(super) target: u32,
    pub(super) moves: Vec<Move>,
}

/// Where a word is on its walk, and what has become of it.
struct Walk {
    node: u32,
    moves: Vec<Move>,
    heard: bool,
    cores: u32,
}

impl<C: Code> Region<C> {
    /// The line behind a link into the mesh, if routers there do no more than their switches say.
    pub(in crate::fabric) fn new_deal(
        &self,
        plan: &Plan,
        root: u32,
        (color, from): (u8, u8),
    ) -> Option<Line> {
        let onward = from ^ 1;
        let (mut pe, mut nodes, mut switched) = (root, 1, false);
        loop {
            let row = self.dealing(plan, pe, (color, from), pe == root)?;
            switched |= row.positions > 1;
            if row.any_tx >> onward & 1 == 0 {
                break;
            }
            (pe, nodes) = (self.near(plan, pe, onward).ok()?, nodes + 1);
        }
        // What has no switches is a pipe.
        if !switched {
            return None;
        }
        // Rows are visited from this side.
        let step = self.near(plan, root, onward).ok()?.checked_sub(root)?;
        Some(Line::new(root, (color, from), step, nodes))
    }

    /// How a router deals a color, if it does no more.
    pub(super) fn dealing<'a>(
        &'a self,
        plan: &'a Plan,
        pe: u32,
        (color, from): (u8, u8),
        is_root: bool,
    ) -> Option<&'a ColorPlan> {
        let number = self.number(plan, pe);
        plan.program(number)?;
        let linked = |port: &Port| plan.link(number, *port, color).is_some();
        let links = Port::ALL.iter().filter(|port| linked(port)).count();
        let torn = self.routers[pe as usize].as_deref().is_some_and(|it| it.is_torn(color));
        let table = self.table_at(plan, pe);
        let row = table.fixed(color).filter(|_| !torn)?;
        let ways = 1 << RAMP | 1 << (from ^ 1);
        let positions = ..usize::from(row.positions);
        let plain = row.rx[positions].iter().all(|&rx| rx == 1 << from)
            && row.tx[positions].iter().all(|&tx| tx & !ways == 0 && tx != 0)
            && row.filter.is_none()
            && !row.teardown
            && !row.ring
            && row.pop == PopMode::None;
        (plain && links == usize::from(is_root)).then_some(row)
    }

    /// Where a word goes that enters now; none if routers have to find that out.
    pub(super) fn walk(&mut self, plan: &Plan, line: &Line, word: Wavelet) -> Option<Fate> {
        let command = if word.control { control::first(word.payload) } else { Command::Nop };
        if command == Command::Teardown {
            return None;
        }
        let resets = command == Command::Reset;
        let node = if resets { 0 } else { line.passing };
        let mut walk = Walk { node, moves: Vec::new(), heard: node != 0, cores: 0 };
        while self.walk_on(plan, line, word, command, &mut walk)? {
            walk.node += 1;
        }
        let Walk { node, moves, heard, .. } = walk;
        // One that nobody hears is told of where it ends.
        (!word.control || heard).then_some(Fate { target: node, moves })
    }

    /// Whether a word goes on behind the router where it is; none if several cores take it.
    fn walk_on(
        &mut self,
        plan: &Plan,
        line: &Line,
        word: Wavelet,
        command: Command,
        walk: &mut Walk,
    ) -> Option<bool> {
        let router = self.router(plan, line.pe(walk.node));
        let Current { position: old, torn } = router.current(line.color);
        if torn {
            return None;
        }
        let row = router.table(plan).row(line.color)?;
        let tx = row.tx[usize::from(old)];
        let (to_core, goes_on) = (tx >> RAMP & 1 != 0, tx >> (line.from ^ 1) & 1 != 0);
        let hidden = word.control && to_core && control::hidden(word.payload);
        walk.cores += u32::from(to_core && !hidden);
        if walk.cores > u32::from(!word.control) {
            return None;
        }
        let new = row.after(old, command);
        walk.heard |= command != Command::Nop && row.positions > 1;
        if hidden || new != old {
            walk.moves.push(Move { node: walk.node, old, new, hidden, goes_on });
        }
        // A word for a core that goes on would have to be in two places.
        if to_core && !hidden && goes_on { None } else { Some(goes_on) }
    }

    /// Routers at the front of a line that do nothing but hand on.
    pub(super) fn passing(&self, plan: &Plan, line: &Line, from: u32) -> u32 {
        let passes = |&node: &u32| {
            let pe = line.pe(node);
            let Some(router) = self.routers[pe as usize].as_deref() else { return false };
            let Current { position, torn } = router.current(line.color);
            let row = router.table(plan).row(line.color);
            !torn && row.is_some_and(|row| row.passes(position, line.from))
        };
        (from..line.nodes).find(|node| !passes(node)).unwrap_or(line.nodes)
    }
}
