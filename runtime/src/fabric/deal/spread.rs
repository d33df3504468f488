//! Words enter fans, and come to their cores.

use std::collections::VecDeque;

use super::fan::{Burst, Fan, Spread};
use super::visit::RETRY;
use crate::fabric::ring::{NEVER, Slot};
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Way;

/// Most words of a burst.
const BURST: usize = 16;

/// What a core took of a burst.
#[derive(Clone, Copy, Debug)]
struct Taken {
    words: usize,
    /// It has no place for more.
    is_full: bool,
}

impl<C: Code> Region<C> {
    /// Does something with a fan.
    pub(super) fn with_fan(&mut self, id: u32, act: impl FnOnce(&mut Region<C>, &mut Fan)) {
        if let Some(mut fan) = self.fans.all[id as usize].take() {
            act(self, &mut fan);
            self.fans.all[id as usize] = Some(fan);
        }
    }

    /// What a fan does in cycle `t` at its first router.
    pub(super) fn visit_fan(&mut self, plan: &Plan, code: &C, (id, index): (u32, usize), t: u64) {
        self.with_fan(id, |region, fan| {
            if fan.armed <= t {
                region.spread(plan, code, (id, fan), t);
            }
            region.enter_fan(plan, fan, index, t);
        });
    }

    /// Cores take the words that have come to them by cycle `t`.
    pub(super) fn spread(&mut self, plan: &Plan, code: &C, (id, fan): (u32, &mut Fan), t: u64) {
        let (hop, mut at) = (plan.timing.hop, 0);
        while at < fan.bursts.len() {
            let is_due = fan.due(at, hop) <= t;
            at += if is_due { self.spread_one(plan, code, (id, fan), at, t) } else { 1 };
        }
        fan.bursts.retain(|burst| burst.node < fan.nodes);
        let moving = (0..fan.bursts.len()).filter(|&at| !fan.bursts[at].stands);
        fan.armed = moving.map(|at| fan.due(at, hop)).min().unwrap_or(NEVER);
        if fan.armed != NEVER {
            self.wakes.router(fan.root, fan.armed);
        }
        // A word that waits outside may have a place now.
        let router = self.routers[fan.root as usize].as_deref();
        let sources = router.map(|router| router.sources.iter()).into_iter().flatten();
        if sources.filter(|source| source.next == NEVER).count() != 0 {
            self.wakes.router(fan.root, t + 1);
        }
    }

    /// The core where a burst is takes what it has places for; how many bursts it is now.
    fn spread_one(
        &mut self,
        plan: &Plan,
        code: &C,
        (id, fan): (u32, &mut Fan),
        at: usize,
        t: u64,
    ) -> usize {
        let Burst { node, ref words, .. } = fan.bursts[at];
        let stopped = at.checked_sub(1).is_some_and(|before| fan.bursts[before].node == node);
        let most = match stopped {
            true => 0,
            false => self.room_behind(plan, fan, at, (node + 1, words.len())),
        };
        let Taken { words: taken, is_full } = self.take_burst(plan, code, fan, (at, most), t);
        let burst = &mut fan.bursts[at];
        if taken == burst.words.len() {
            (burst.node, burst.stands) = (node + 1, false);
            return 1;
        }
        // Those that have not come yet may find a place when they do.
        let way = plan.timing.hop * u64::from(node + 1);
        burst.stands = burst.words[taken].entered + way <= t;
        if burst.stands && is_full {
            self.router(plan, fan.pe(node)).holds_up = true;
            self.fans.held_up.insert((fan.pe(node), id));
        }
        if taken == 0 {
            return 1;
        }
        let burst = &mut fan.bursts[at];
        let gone: VecDeque<Spread> = burst.words.drain(..taken).collect();
        fan.bursts.insert(at, Burst { node: node + 1, stands: false, words: gone });
        2
    }

    /// A core takes words of a burst, `most` at most.
    fn take_burst(
        &mut self,
        plan: &Plan,
        code: &C,
        fan: &mut Fan,
        (at, most): (usize, usize),
        t: u64,
    ) -> Taken {
        let nothing = Taken { words: 0, is_full: true };
        let (node, color) = (fan.bursts[at].node, fan.color);
        let (pe, way) = (fan.pe(node), plan.timing.hop * u64::from(node + 1));
        let number = self.number(plan, pe) as u32;
        let Some(queue) = self.queue_of(plan, number, pe, color, t) else { return nothing };
        let ramp_down = plan.timing.ramp_down;
        let core = self.core(plan, code, pe);
        let ring = &core.inputs[queue].ring;
        let first = ring.is_empty();
        let mut taken = nothing;
        for word in fan.bursts[at].words.iter_mut().take(most) {
            let input = &core.inputs[queue];
            let free = input.ring.free_from();
            if free == NEVER {
                break;
            }
            let behind = input.last.map_or(0, |last| (last + 1).saturating_sub(ramp_down));
            let granted = (word.entered + way).max(free).max(behind).max(t);
            word.entered = granted - way;
            let stamp = granted + ramp_down;
            core.take_in(queue, Slot { stamp, payload: word.payload, color, ..Slot::default() });
            taken.words += 1;
        }
        taken.is_full = core.inputs[queue].ring.is_full();
        let come = core.inputs[queue].ring.first();
        if first && taken.words != 0 {
            self.wakes.core(pe, come);
        }
        self.note_taken(taken.words as u64, node + 1 < fan.nodes);
        if taken.words != 0 {
            self.active_until = self.active_until.max(t + 1);
        }
        taken
    }

    /// Counts words that a core has taken, and that go on.
    fn note_taken(&mut self, words: u64, goes_on: bool) {
        self.stats.delivered += words;
        if goes_on {
            self.stats.hops += words;
            self.stats.copies += words;
        }
    }

    /// How many of the words before router `first` have a place behind it whatever cores do from now
    /// on, the fan's first `earlier` bursts being before them.
    fn room_behind(
        &self,
        plan: &Plan,
        fan: &Fan,
        mut earlier: usize,
        (first, words): (u32, usize),
    ) -> usize {
        let places = plan.timing.link_places as usize;
        let (mut most, mut ahead, mut links) = (words, 0, 0);
        for node in first..fan.nodes {
            links += places;
            let mut jam = false;
            while let Some(before) = earlier.checked_sub(1).map(|it| &fan.bursts[it])
                && before.node <= node
            {
                earlier -= 1;
                ahead += before.words.len();
                jam |= before.stands;
            }
            if jam {
                return most.min(links.saturating_sub(ahead));
            }
            most = most.min((links + self.room_at(plan, fan, node)).saturating_sub(ahead));
            if links >= words + ahead {
                break;
            }
        }
        most
    }

    /// Free places for words of a fan in a core.
    fn room_at(&self, plan: &Plan, fan: &Fan, node: u32) -> usize {
        let pe = fan.pe(node);
        let number = self.number(plan, pe);
        match self.queue_of(plan, number as u32, pe, fan.color, self.now) {
            None => 0,
            Some(queue) => match self.cores[pe as usize].as_deref() {
                Some(core) => {
                    let ring = &core.inputs[queue].ring;
                    ring.places() - ring.len()
                }
                None => plan.program(number).map_or(0, |it| it.inputs[queue].places as usize),
            },
        }
    }

    /// Lets words of a fan's source enter that may.
    fn enter_fan(&mut self, plan: &Plan, fan: &mut Fan, index: usize, t: u64) {
        let Some(router) = self.routers[fan.root as usize].as_deref_mut() else { return };
        let source = &mut router.sources[index];
        if source.next == NEVER {
            source.next = t;
        }
        let Some(&(cycle, word)) = source.words.front() else { return };
        if cycle.max(source.next) > t {
            return;
        }
        if fan.mixed {
            if t.is_multiple_of(RETRY) && !word.control {
                let pes = (0..fan.nodes).map(|node| fan.pe(node));
                fan.mixed = !self.is_dry(pes, (fan.color, fan.from));
            }
            if fan.mixed {
                return;
            }
        }
        if word.control {
            // Nobody overtakes.
            fan.mixed = fan.bursts.is_empty();
            if !fan.mixed {
                self.hold_source((fan.root, index), NEVER);
            }
            return;
        }
        let router = self.routers[fan.root as usize].as_deref();
        let ready = router.into_iter().flat_map(|router| router.sources[index].ready(t));
        let mut words: VecDeque<Spread> = (t..)
            .zip(ready.take(BURST))
            .map(|(entered, payload)| Spread { entered, payload })
            .collect();
        words.truncate(self.room_behind(plan, fan, fan.bursts.len(), (0, words.len())));
        if words.is_empty() {
            return self.hold_source((fan.root, index), NEVER);
        }
        for word in &words {
            self.enters(fan.root, index, word.entered, Way::Line);
        }
        fan.bursts.push_back(Burst { node: 0, stands: false, words });
        let come = t + plan.timing.hop;
        fan.armed = fan.armed.min(come);
        self.wakes.router(fan.root, come);
    }

    /// No word of a source enters before a cycle, or before something has changed ([`NEVER`]).
    pub(super) fn hold_source(&mut self, (root, index): (u32, usize), from: u64) {
        if let Some(router) = self.routers[root as usize].as_deref_mut() {
            router.sources[index].next = from;
        }
        if from != NEVER {
            self.wakes.router(root, from);
        }
    }

    /// Puts the words of all fans into routers, as none of them moves any more.
    pub(super) fn settle_fans(&mut self, plan: &Plan) {
        let places = plan.timing.link_places;
        for id in 0..self.fans.all.len() as u32 {
            self.with_fan(id, |region, fan| {
                if fan.fits(places as usize) {
                    region.settle_fan(plan, fan);
                }
            });
        }
    }

    /// Likewise, of one.
    fn settle_fan(&mut self, plan: &Plan, fan: &mut Fan) {
        let (color, from) = (fan.color, fan.from);
        fan.mixed |= !fan.bursts.is_empty();
        for Burst { node, words, .. } in std::mem::take(&mut fan.bursts) {
            let router = self.router(plan, fan.pe(node));
            for word in words {
                let come = word.entered + plan.timing.hop * u64::from(node + 1);
                let stamp = come.max(router.free_from(color, from) + 1);
                let slot = Slot { stamp, payload: word.payload, ..Slot::default() };
                router.push(plan, color, from, plan.timing.link_places, slot);
            }
        }
    }
}
