//! The words of a line, put into the routers where they are.

use super::line::Line;
use crate::fabric::ring::{NEVER, Slot};
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

impl<C: Code> Region<C> {
    /// Whether words of the host are on their way in lines or fans.
    pub(crate) fn deals(&self) -> bool {
        self.lines.iter().flatten().any(|line| line.held != 0 || self.has_packets(line))
            || self.fans.words().any(|(.., words)| words != 0)
            || !self.held_up.is_empty()
    }

    /// Puts the words of all lines into routers, as none of them moves any more.
    pub(crate) fn settle_lines(&mut self, plan: &Plan) {
        for id in 0..self.lines.len() {
            let Some(mut line) = self.lines[id].take() else { continue };
            // Behind packets that have no place they stay where they are.
            if line.held != 0 && !self.has_packets(&line) {
                // By then the last one has come as far as it can.
                let way = plan.timing.hop * u64::from(line.nodes);
                self.cut_line(plan, &mut line, self.active_until + way, false);
            }
            self.lines[id] = Some(line);
        }
        self.settle_fans(plan);
    }

    /// Puts the words of a line into the routers where they are in cycle `t`; positions are what they were
    /// before words that are still to come. `moves`: something may happen by itself.
    pub(super) fn cut_line(&mut self, plan: &Plan, line: &mut Line, t: u64, moves: bool) {
        debug_assert!(!self.has_packets(line), "they would be overtaken");
        let (hop, places) = (plan.timing.hop, plan.timing.link_places);
        let placed = line.places(hop, places, t);
        let words = line.parts.drain(..).flat_map(|part| part.words);
        let words: Vec<_> = words.zip(placed).collect();
        for (dealt, (node, _)) in words.iter().rev() {
            for it in dealt.moves.iter().filter(|it| it.node >= *node) {
                self.turn(plan, line, it.node, it.old);
                self.stats.hidden -= u64::from(it.hidden);
                self.stats.copies -= u64::from(it.hidden && it.goes_on);
            }
        }
        let mut from = 0;
        while let Some((_, (node, _))) = words.get(from) {
            let here = words[from..].iter().take_while(|(_, (at, _))| at == node);
            let here: Vec<Slot> =
                here.map(|(dealt, (_, stamp))| Slot { stamp: *stamp, ..dealt.word }).collect();
            from += here.len();
            self.put_back(plan, line, *node, here, moves.then_some(t));
        }
        (line.held, line.room) = (0, None);
        (line.mixed, line.followed) = (true, false);
        let sources = self.router(plan, line.root).sources.iter_mut();
        for source in sources.filter(|it| it.color == line.color && it.next == NEVER) {
            source.next = 0;
        }
        if moves {
            self.wakes.router(line.root, t + 1);
        }
    }

    /// Puts words into a router, before those that have come behind them.
    fn put_back(
        &mut self,
        plan: &Plan,
        line: &Line,
        node: u32,
        words: Vec<Slot>,
        moves: Option<u64>,
    ) {
        let (color, from, pe) = (line.color, line.from, line.pe(node));
        self.stats.hops += u64::from(node) * words.len() as u64;
        let router = self.router(plan, pe);
        let behind = router.take_all(color, from);
        let mut last = 0;
        for word in words.into_iter().chain(behind) {
            last = word.stamp.max(last + 1);
            let advance = word.advance && word.control;
            let word = Slot { stamp: last, advance, ..word };
            router.push(plan, color, from, plan.timing.link_places, word);
        }
        router.unblock_all();
        if let Some(t) = moves {
            self.wakes.router(pe, t + 1);
        }
    }
}
