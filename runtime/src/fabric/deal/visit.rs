//! Words of lines enter, and come to where they go.

use dflow_ir::mesh::wavelet::Command;

use super::fan::Fan;
use super::line::{Dealt, Line, sooner};
use super::walk::Fate;
use crate::fabric::control;
use crate::fabric::registers::Current;
use crate::fabric::ring::{NEVER, Slot};
use crate::fabric::router::Dealing;
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Way;

/// How often it is looked whether routers behind which a line waits are empty.
pub(super) const RETRY: u64 = 32;

impl<C: Code> Region<C> {
    /// What lines do in cycle `t` that begin at a router, or wait for a place in its core.
    pub(in crate::fabric) fn visit_lines(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let Some(router) = self.routers[pe as usize].as_deref_mut() else { return };
        let sources = router.sources.len();
        if std::mem::take(&mut router.holds_up) {
            let all = (pe, 0)..=(pe, u32::MAX);
            for (_, id) in self.held_up.range(all.clone()).copied().collect::<Vec<_>>() {
                self.held_up.remove(&(pe, id));
                self.with_line(id, |region, line| region.arrive(plan, code, (id, line), t));
            }
            for (_, id) in self.fans.held_up.range(all).copied().collect::<Vec<_>>() {
                self.fans.held_up.remove(&(pe, id));
                self.with_fan(id, |region, fan| region.spread(plan, code, (id, fan), t));
            }
        }
        for index in 0..sources {
            match self.dealing_of(plan, pe, index) {
                Dealing::Line(id) => self.with_line(id, |region, line| {
                    region.arrive(plan, code, (id, line), t);
                    region.enter_line(plan, code, (line, index), t);
                }),
                Dealing::Fan(id) => self.visit_fan(plan, code, (id, index), t),
                Dealing::Unknown | Dealing::Routers | Dealing::Flight(_) => {}
            }
        }
    }

    /// Does something with a line.
    fn with_line(&mut self, id: u32, act: impl FnOnce(&mut Region<C>, &mut Line)) {
        if let Some(mut line) = self.lines[id as usize].take() {
            act(self, &mut line);
            self.lines[id as usize] = Some(line);
        }
    }

    /// How words of a source go on, which is found out if it is not known.
    fn dealing_of(&mut self, plan: &Plan, pe: u32, index: usize) -> Dealing {
        let Some(router) = self.routers[pe as usize].as_deref() else { return Dealing::Unknown };
        let source = &router.sources[index];
        if source.dealing != Dealing::Unknown {
            return source.dealing;
        }
        let way = (source.color, source.port);
        let dealing = if let Some(mut line) = self.new_deal(plan, pe, way) {
            line.passing = self.passing(plan, &line, 0);
            self.bytes += size_of::<Line>() as u64;
            self.lines.push(Some(Box::new(line)));
            Dealing::Line(self.lines.len() as u32 - 1)
        } else if let Some(fan) = self.new_fan(plan, pe, way) {
            self.bytes += size_of::<Fan>() as u64;
            self.fans.all.push(Some(Box::new(fan)));
            Dealing::Fan(self.fans.all.len() as u32 - 1)
        } else {
            Dealing::Routers
        };
        if let Some(router) = self.routers[pe as usize].as_deref_mut() {
            router.sources[index].dealing = dealing;
        }
        dealing
    }

    /// Words of a line that are where they go are taken, as far as there are places.
    fn arrive(&mut self, plan: &Plan, code: &C, (id, line): (u32, &mut Line), t: u64) {
        if line.held == 0 {
            return;
        }
        let hop = plan.timing.hop;
        let (was_blocked, before) = (line.room.take().is_some(), line.held);
        let mut stand = Vec::new();
        let (mut next, mut ahead) = (NEVER, u32::MAX);
        for index in 0..line.parts.len() {
            while let Some((due, target)) = line.parts[index].due(hop) {
                // Nobody overtakes.
                if due > t || target >= ahead {
                    next = sooner(next, (due > t).then_some(due));
                    break;
                }
                let control = line.parts[index].words.front().is_some_and(|it| it.word.control);
                let packets = match control {
                    true => None,
                    false => self.clear_packets(plan, code, (line, target), t),
                };
                let place = packets.unwrap_or_else(|| self.land_dealt(plan, code, line, index, t));
                if place > t {
                    stand.push((index, target));
                    next = next.min(place);
                    if place == NEVER && packets.is_none() {
                        self.hold_up(plan, line.pe(target), id);
                    }
                    break;
                }
                line.parts[index].leave(if control { due } else { t });
                line.held -= 1;
                self.stats.hops += u64::from(target);
                self.active_until = self.active_until.max(t + 1);
            }
            let first = line.parts[index].words.front();
            ahead = ahead.min(first.map_or(u32::MAX, |first| first.target));
        }
        let places = plan.timing.link_places;
        line.room = stand.iter().map(|&(part, node)| line.room_behind(part, node, places)).min();
        line.trim();
        if line.room.is_some() && line.followed {
            self.cut_line(plan, line, t, true);
        }
        // A word that waits outside may have a place now.
        if was_blocked && line.held < before {
            next = next.min(t + 1);
        }
        if next != NEVER {
            self.wakes.router(line.root, next.max(t + 1));
        }
    }

    /// The first word of a part goes to its core, if it is for one and there is a place; from when
    /// there is.
    fn land_dealt(&mut self, plan: &Plan, code: &C, line: &Line, part: usize, t: u64) -> u64 {
        let Some(first) = line.parts[part].words.front().filter(|it| !it.word.control) else {
            return 0;
        };
        let (pe, stamp) = (line.pe(first.target), t + plan.timing.ramp_down);
        let word = Slot { stamp, ..first.word };
        let number = self.number(plan, pe) as u32;
        let Some(queue) = self.queue_of(plan, number, pe, line.color, t) else { return NEVER };
        let free = self.core(plan, code, pe).inputs[queue].ring.free_from();
        if free <= t {
            self.deliver(plan, code, pe, queue, word);
        }
        free
    }

    /// A line waits for a place in a core.
    fn hold_up(&mut self, plan: &Plan, pe: u32, id: u32) {
        self.router(plan, pe).holds_up = true;
        self.held_up.insert((pe, id));
    }

    /// Lets the first word of a line's source enter, if it is time and one that may go by it.
    fn enter_line(&mut self, plan: &Plan, code: &C, (line, index): (&mut Line, usize), t: u64) {
        let Some(router) = self.routers[line.root as usize].as_deref_mut() else { return };
        let source = &mut router.sources[index];
        let room = line.has_room();
        if source.next == NEVER && room {
            source.next = t;
        }
        let Some(&(cycle, word)) = source.words.front() else { return };
        if cycle.max(source.next) > t {
            return;
        }
        if !room {
            source.next = NEVER;
            return;
        }
        if line.mixed && (word.control || t.is_multiple_of(RETRY)) && self.is_line_dry(line) {
            (line.mixed, line.followed) = (false, false);
            line.passing = self.passing(plan, line, 0);
        }
        let fate = if line.mixed { None } else { self.walk(plan, line, word) };
        let Some(Fate { target, moves }) = fate else {
            if !line.mixed
                && let Some(from) = self.clear_all_packets(plan, code, line, t)
            {
                return self.hold_source((line.root, index), from);
            }
            if line.room.is_some() {
                self.cut_line(plan, line, t, true);
            }
            line.followed |= line.held != 0;
            line.mixed = true;
            return;
        };
        if !word.control && moves.is_empty() && self.enter_packet(plan, line, (index, target), t) {
            return;
        }
        for it in &moves {
            self.stats.hidden += u64::from(it.hidden);
            self.stats.copies += u64::from(it.hidden && it.goes_on);
            self.turn(plan, line, it.node, it.new);
        }
        if word.control {
            let resets = control::first(word.payload) == Command::Reset;
            line.passing = self.passing(plan, line, if resets { 0 } else { line.passing });
        }
        let (payload, control, color) = (word.payload, word.control, line.color);
        let word = Slot { stamp: t, payload, control, color, advance: control, origin: 0 };
        line.enter(Dealt { word, target, moves: moves.into() });
        let hop = plan.timing.hop;
        let next = line.parts.back().and_then(|part| part.due(hop)).map(|(due, _)| due);
        self.wakes.router(line.root, sooner(t + hop * u64::from(target + 1), next).max(t + 1));
        self.enters(line.root, index, t, Way::Line);
    }

    /// Sets the position of a switch of a line.
    pub(super) fn turn(&mut self, plan: &Plan, line: &Line, node: u32, position: u8) {
        let router = self.router(plan, line.pe(node));
        router.set_current(line.color, Current { position, torn: false });
    }

    fn is_line_dry(&self, line: &Line) -> bool {
        self.is_dry((0..line.nodes).map(|node| line.pe(node)), (line.color, line.from))
    }

    /// Whether none of some routers holds a word of a color that has come by a port.
    pub(super) fn is_dry(&self, pes: impl Iterator<Item = u32>, (color, from): (u8, u8)) -> bool {
        pes.into_iter().all(|pe| {
            let router = self.routers[pe as usize].as_deref();
            !router.is_some_and(|router| router.holds(color, from))
        })
    }
}
