//! Multicasts: pipes for words that routers copy on their way to several cores, in the `flow` engine.
//!
//! Each core has a pipe of its own. The first one stands for all of them where the source is concerned: what the
//! source sends goes into every one, and it has a place where all of them have one.
//!
//! A router passes a word when all that it leads to have a place for it. So a word in a pipe is its taker's once there
//! is a place for it behind each fork before that taker, on every way ([`Fork`]). Which words routers pass, and
//! when nobody can go on, is as if they went from router to router; how long one is kept is known less well
//! (spec/flow.md).
//!
//! Invariants: all pipes of a multicast have been sent the same words, under the same numbers; all their ends are in
//! the region of the source. A link of the tree is counted by one of them ([`Pipe::links`]).

use std::cmp::Reverse;

use dflow_ir::mesh::Port;

use super::channel::{Outlet, Route};
use super::pipe::{Fork, Limit, Multicast, Pipe, Span};
use super::ring::NEVER;
use super::router::RAMP;
use crate::pe::code::Code;
use crate::pe::core::bits;
use crate::pe::main::Main;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// Cycles ahead in which takers are seen to take words.
const SEEN: u64 = 16;

/// The way of a color's words from a core to several.
struct Tree {
    /// The ways to the cores.
    ways: Vec<Branch>,
    forks: Vec<Fork>,
    /// Links that other colors may use, as four times the PE and the port.
    shared: Vec<u32>,
    /// No router of it holds a word of the color.
    is_clear: bool,
}

/// The way to a core: how many links of it are not of one before it, its last fork, and links behind that.
struct Branch {
    route: Route,
    links: u32,
    fork: u32,
    hops: u32,
}

/// A router that is to be looked at: by which port words come, and the links up to here: in all, of no other way, and
/// behind the last fork, if there is one.
struct Reached {
    pe: u32,
    from: u8,
    hops: u32,
    links: u32,
    fork: Option<u32>,
    behind: u32,
}

impl Tree {
    /// Words are copied where they have come to.
    fn fork(&mut self, here: &mut Reached, link_places: u32) {
        let number = self.forks.len() as u32;
        let (hops, places) = (here.behind, here.behind * link_places);
        let before = here.fork.unwrap_or(number);
        self.forks.push(Fork { before, hops, places, limit: Limit::NONE });
        (here.fork, here.behind) = (Some(number), 0);
    }
}

impl<C: Code> Region<C> {
    /// The multicast of a core's words that routers copy, if nothing else happens to them and none are there now.
    /// `depth`: places of its output queue.
    pub(crate) fn multicast(
        &mut self,
        plan: &Plan,
        source: u32,
        (color, depth): (u8, u32),
    ) -> Option<Outlet> {
        if self.rewritten >> color & 1 != 0 || self.not_copied.contains(&(source, color)) {
            return None;
        }
        let Some(Tree { ways, forks, shared, is_clear }) = self.tree(plan, source, color) else {
            self.not_copied.insert((source, color));
            return None;
        };
        if !is_clear {
            return None;
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Multicast);
        let mut shared = self.number_links(shared.into());
        let mut ids = Vec::with_capacity(ways.len());
        for branch in ways {
            // Those of all of them are the first one's.
            let shared = std::mem::take(&mut shared);
            let first = ids.first().copied();
            ids.push(self.add_branch(plan, branch, (first, depth), shared));
        }
        let (&first, others) = ids.split_first()?;
        self.bytes += (size_of_val(others) + size_of_val(&*forks)) as u64;
        if let Some(multicast) = self.pipes[first as usize].multicast_mut() {
            (multicast.first, multicast.others) = (first, others.into());
            multicast.forks = forks.into();
        }
        Some(Outlet::Pipe(first))
    }

    /// Adds the pipe of a multicast to one of its takers.
    fn add_branch(
        &mut self,
        plan: &Plan,
        Branch { route, links, fork, hops }: Branch,
        (first, depth): (Option<u32>, u32),
        shared: Box<[u32]>,
    ) -> u32 {
        let input = self.input_places(plan, &route);
        let behind = hops * plan.timing.link_places + input;
        let pipe = Pipe::new(&plan.timing, route, (depth, input), None, shared);
        let multicast = Multicast {
            first: first.unwrap_or_default(),
            others: Box::default(),
            forks: Box::default(),
            keeps: false,
            limits: false,
            due: NEVER,
            fork,
            hops,
            behind,
            passed: Limit::NOTHING,
            kept: Span::default(),
            kept_before: Span::default(),
            links,
        };
        let taker = self.cores[route.dest as usize].as_deref();
        let queue = taker.zip(route.queue).map(|(core, queue)| &core.inputs[usize::from(queue)]);
        let queued = queue.map_or(0, |queue| queue.ring.len() as u32);
        self.add_pipe(pipe.of_multicast(multicast, queued))
    }

    /// A multicast without words is none any more, and there is none of its source's color from now on.
    pub(crate) fn end_multicast(&mut self, first: u32) {
        let Route { source, color, .. } = self.pipes[first as usize].route();
        let others: Vec<u32> = self.pipes[first as usize].others().into();
        std::iter::once(first).chain(others).for_each(|id| self.drop_pipe(id));
        self.not_copied.insert((source, color));
    }

    /// All routers that a core's words go through, if these only hand them on or copy them.
    fn tree(&self, plan: &Plan, source: u32, color: u8) -> Option<Tree> {
        let (ways, shared) = (Vec::new(), Vec::new());
        let mut tree = Tree { ways, forks: Vec::new(), shared, is_clear: true };
        let mut open =
            vec![Reached { pe: source, from: RAMP, hops: 0, links: 0, fork: None, behind: 0 }];
        let mut seen = 0;
        while let Some(mut here) = open.pop() {
            seen += 1;
            let ports =
                self.copied_to(plan, &here, color).filter(|_| seen <= self.routers.len())?;
            let router = self.routers[here.pe as usize].as_deref();
            tree.is_clear &= !router.is_some_and(|router| router.holds(color, here.from));
            if ports.count_ones() > 1 {
                tree.fork(&mut here, plan.timing.link_places);
            }
            for port in bits(ports.into()) {
                let (port, links) = (port as u8, std::mem::take(&mut here.links));
                if port == RAMP {
                    let route = self.way_to(plan, source, &here, color)?;
                    let (fork, hops) = (here.fork?, here.behind);
                    tree.ways.push(Branch { route, links, fork, hops });
                    continue;
                }
                if self.table_at(plan, here.pe).shares(color, 1 << port) {
                    tree.shared.push(4 * here.pe + u32::from(port));
                }
                open.push(Reached {
                    pe: self.near(plan, here.pe, port).ok()?,
                    from: port ^ 1,
                    hops: here.hops + 1,
                    links: links + 1,
                    fork: here.fork,
                    behind: here.behind + 1,
                });
            }
        }
        (tree.ways.len() > 1).then_some(tree)
    }

    /// The ports, as bits, by which words of a color leave a router of its tree, if nothing else happens to them there
    /// and none goes back to the core that has sent it.
    fn copied_to(&self, plan: &Plan, &Reached { pe, from, .. }: &Reached, color: u8) -> Option<u8> {
        let router = self.routers[pe as usize].as_deref();
        let ports = self.table_at(plan, pe).copies(color, from)?;
        let number = self.number(plan, pe);
        let linked = |port: usize| plan.link(number, Port::ALL[port], color).is_some();
        let by_links = plan.has_links(number)
            && (bits(ports.into()).any(linked) || from != RAMP && linked(from.into()));
        let comes_back = from == RAMP && ports >> RAMP & 1 != 0;
        let is_torn = router.is_some_and(|router| router.is_torn(color));
        (!is_torn && !by_links && !comes_back).then_some(ports)
    }

    /// The way of a color's words to the core of a router of its tree.
    fn way_to(&self, plan: &Plan, source: u32, here: &Reached, color: u8) -> Option<Route> {
        let number = self.number(plan, here.pe);
        let queue = plan.program(number)?.queue_of(color)? as u8;
        Some(Route {
            source,
            entry: RAMP,
            dest: here.pe,
            region: self.id,
            borders: 0,
            link: None,
            number: number as u32,
            color,
            port: here.from,
            hops: here.hops,
            queue: Some(queue),
        })
    }

    /// Each pipe of a multicast, or the one pipe, by how many come before it.
    pub(crate) fn pipe_at(&self, first: u32, before: usize) -> Option<u32> {
        match before.checked_sub(1) {
            None => Some(first),
            Some(before) => self.pipes[first as usize].others().get(before).copied(),
        }
    }

    /// The pipes of a multicast, or the one pipe.
    fn pipes_from(&self, first: u32) -> impl Iterator<Item = &Pipe> {
        let others = self.pipes[first as usize].others();
        std::iter::once(first).chain(others.iter().copied()).map(|id| &self.pipes[id as usize])
    }

    /// Does something with each pipe of a multicast, or with the one pipe.
    #[inline]
    pub(crate) fn each_pipe(&mut self, first: u32, mut act: impl FnMut(&mut Pipe)) {
        let mut before = 0;
        while let Some(id) = self.pipe_at(first, before) {
            act(&mut self.pipes[id as usize]);
            before += 1;
        }
    }

    /// Likewise, with what changes when its words come.
    #[inline]
    pub(crate) fn retime_each(&mut self, first: u32, mut act: impl FnMut(&mut Pipe)) {
        let mut before = 0;
        while let Some(id) = self.pipe_at(first, before) {
            let pipe = &mut self.pipes[id as usize];
            act(pipe);
            self.wakes.retimed(pipe.route().dest);
            before += 1;
        }
    }

    /// Words that a way takes now.
    #[inline]
    pub(crate) fn room_of(&self, first: u32) -> u32 {
        self.pipes_from(first).map(Pipe::room).min().unwrap_or(0)
    }

    /// Words that it takes now, if these are so many at least; if not the source waits for that, where there are
    /// fewest.
    pub(crate) fn room_for_words(&mut self, first: u32, least: u32) -> u32 {
        // Most are alone.
        if self.pipes[first as usize].others().is_empty() {
            return self.pipes[first as usize].room_for(least);
        }
        let (mut fewest, mut room, mut before) = (first, u32::MAX, 0);
        while let Some(id) = self.pipe_at(first, before) {
            before += 1;
            let its = self.pipes[id as usize].room();
            if its <= room {
                (fewest, room) = (id, its);
            }
        }
        self.pipes[fewest as usize].room_for(least)
    }

    /// Half of the words that it takes in if nobody takes them out.
    pub(crate) fn half_of(&self, first: u32) -> u32 {
        self.pipes_from(first).map(Pipe::half).min().unwrap_or(1)
    }

    /// From which cycle a single word may go up the ramp, as far as that is known: none if nobody takes yet what stands
    /// before it.
    pub(crate) fn climbs_from(&self, first: u32) -> Option<u64> {
        self.pipes_from(first).try_fold(0, |from, pipe| Some(from.max(pipe.climbs_from()?)))
    }

    /// Whether it has words.
    pub(crate) fn is_way_used(&self, first: u32) -> bool {
        self.pipes_from(first).any(Pipe::is_used)
    }

    /// From which cycle so many words more have places, as far as that is known.
    pub(crate) fn places_from(&self, first: u32, count: u64) -> u64 {
        let places =
            self.pipes_from(first).filter_map(|pipe| pipe.place_from(pipe.sent_before() + count));
        places.max().unwrap_or(0)
    }

    /// Number of the first word that has no place by cycle `t`, as far as is known.
    pub(crate) fn placed_by(&self, first: u32, t: u64) -> Option<u64> {
        self.pipes_from(first).filter_map(|pipe| pipe.placed_by(t)).min()
    }

    /// What part of their cores' slots the operations at its ends could take words with: that of the slowest.
    pub(crate) fn pace_of(&self, first: u32) -> u64 {
        self.pipes_from(first).map(Pipe::pace).min().unwrap_or(u64::MAX)
    }

    /// From which cycle the next word has a place, as far as that is known.
    pub(crate) fn next_place(&self, first: u32) -> u64 {
        let takes = |route: Route, from: u64| {
            let here = route.queue.filter(|_| route.region == self.id);
            here.map_or(from, |queue| self.takes_from(route.dest, queue, from))
        };
        self.pipes_from(first).map(|pipe| pipe.next_place(takes)).max().unwrap_or(0)
    }

    /// From which cycle the word before `number` has a place in it: none if nobody takes yet what stands there.
    pub(crate) fn place_in(&self, first: u32, number: u64) -> Option<u64> {
        self.pipes_from(first).try_fold(0, |from, pipe| Some(from.max(pipe.place_from(number)?)))
    }

    /// The taker at the end of a multicast's pipe has taken words, or is bound to: if forks keep words for want of
    /// that, they are looked at when all of the cycle is done.
    #[inline]
    pub(super) fn look_at_forks(&mut self, id: u32, t: u64) {
        let multicast = self.pipes[id as usize].multicast();
        if let Some(first) = multicast.filter(|it| it.limits).map(|it| it.first) {
            let due = self.pipes[first as usize].multicast().map_or(NEVER, |it| it.due);
            self.look_later(first, due.min(t.max(self.now)));
        }
    }

    /// Finds out which words of a multicast its routers pass, of those before number `end`, and when to look again if
    /// some are kept.
    fn pass_forks(&mut self, first: u32, end: u64) {
        let by = self.now + SEEN;
        let forks = self.find_limits(first, by);
        let (mut kept, mut at) = (NEVER, 0);
        while let Some(id) = self.pipe_at(first, at) {
            at += 1;
            kept = kept.min(self.pass_words(id, &forks, end));
        }
        // Those that are seen to take words, or to begin to, later than that say when.
        let mut due = NEVER;
        for Fork { limit, .. } in &forks {
            let pipe = &mut self.pipes[limit.by as usize];
            let next = pipe.gone_in(kept.max(limit.number).saturating_sub(limit.places));
            if next > by && next != NEVER {
                due = due.min(next);
            }
            if let Some(multicast) = pipe.multicast_mut() {
                multicast.limits = true;
            }
        }
        if let Some(multicast) = self.pipes[first as usize].multicast_mut() {
            (multicast.forks, multicast.keeps) = (forks, kept != NEVER);
        }
        self.look_later(first, due);
    }

    /// The forks of a multicast, which are taken out, and how far they can pass words by a cycle.
    fn find_limits(&mut self, first: u32, by: u64) -> Box<[Fork]> {
        let timing = self.timing;
        let multicast = self.pipes[first as usize].multicast_mut();
        let mut forks = multicast.map(|it| std::mem::take(&mut it.forks)).unwrap_or_default();
        forks.iter_mut().for_each(|fork| fork.limit = Limit::NONE);
        let least = |a: Limit, b: Limit| if b.number < a.number { b } else { a };
        let mut at = 0;
        while let Some(id) = self.pipe_at(first, at) {
            let pipe = &self.pipes[id as usize];
            if pipe.is_open() {
                let from = self.busy_until(pipe.route().dest);
                self.pipes[id as usize].put_off_taker(from);
            }
            if let Some((fork, limit)) = self.pipes[id as usize].limit(id, by, &timing) {
                let fork = &mut forks[fork as usize].limit;
                *fork = least(*fork, limit);
            }
            at += 1;
        }
        // Those behind others come after them.
        for at in (1..forks.len()).rev() {
            let Fork { before, hops, places, limit } = forks[at];
            let limit = limit.before(hops.into(), places, &timing);
            let before = &mut forks[before as usize].limit;
            *before = least(*before, limit);
        }
        for at in 1..forks.len() {
            let before = forks[forks[at].before as usize].limit.behind(forks[at].hops, &timing);
            forks[at].limit = least(forks[at].limit, before);
        }
        forks
    }

    /// Whether an operation that takes words of a pipe is in a stretch: it looks for others when that is over.
    fn is_in_stretch(&self, id: u32) -> bool {
        let Route { dest, queue, .. } = self.pipes[id as usize].route();
        let core = self.cores[dest as usize].as_deref();
        core.zip(queue).is_some_and(|(core, queue)| {
            core.busy_in >> queue & 1 != 0 && core.bound.are_planned() && !core.is_flushing()
        })
    }

    /// Until when code keeps the slots of a core from its operations, as far as is known.
    fn busy_until(&self, pe: u32) -> u64 {
        let Some(core) = self.cores[pe as usize].as_deref() else { return 0 };
        match core.main {
            Main::Counting { .. } => self.now + SEEN + 1,
            Main::Idle | Main::Ready { .. } | Main::Vector(_) | Main::Launch(_) => core.main_from,
        }
    }

    /// Forks of a multicast are looked at in a cycle, if they keep words.
    fn look_later(&mut self, first: u32, due: u64) {
        let Some(multicast) = self.pipes[first as usize].multicast_mut() else { return };
        let due = if multicast.keeps { due } else { NEVER };
        let before = std::mem::replace(&mut multicast.due, due);
        if due != NEVER && due != before {
            self.forks_due.push(Reverse((due, first)));
        }
        self.next_forks = self.next_forks.min(due);
    }

    /// Looks at all forks that are due by cycle `t`.
    pub(crate) fn look_at_all_forks(&mut self, t: u64) {
        let mut firsts = Vec::new();
        while let Some((due, first)) = self.next_due()
            && due <= t
        {
            self.forks_due.pop();
            if let Some(multicast) = self.pipes[first as usize].multicast_mut() {
                multicast.due = NEVER;
            }
            firsts.push(first);
        }
        firsts.sort_unstable();
        self.next_forks = self.next_due().map_or(NEVER, |(due, _)| due);
        for first in firsts {
            self.pass_forks(first, self.pipes[first as usize].sent_before());
        }
    }

    /// When forks are to be looked at next, and of which multicast. Others may have been asked for since.
    fn next_due(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((due, first))) = self.forks_due.peek() {
            let multicast = self.pipes[first as usize].multicast();
            if multicast.is_some_and(|it| it.due == due) {
                return Some((due, first));
            }
            self.forks_due.pop();
        }
        None
    }

    /// A taker of a multicast may have the words that routers pass; number of the first one before number `end` that
    /// is kept from it, [`NEVER`] without one.
    fn pass_words(&mut self, id: u32, forks: &[Fork], end: u64) -> u64 {
        let pipe = &self.pipes[id as usize];
        let Some(&Multicast { fork, hops, passed, .. }) = pipe.multicast() else { return NEVER };
        let limit = forks[fork as usize].limit.behind(hops, &self.timing);
        let (dest, waits) = (pipe.route().dest, pipe.is_used() && pipe.at_hand() == 0);
        if let Some(multicast) = self.pipes[id as usize].multicast_mut() {
            multicast.limits = false;
        }
        if limit.number > passed.number {
            // The first of them waited for the place that was the last one before.
            let at = |number: u64, Limit { by, places, lag, .. }: Limit| {
                let gone = self.pipes[by as usize].gone_in(number.saturating_sub(places));
                if gone == NEVER { self.now } else { gone + lag }
            };
            let base = passed.number;
            let count = limit.number.min(end).saturating_sub(base);
            let last = at((base + count).saturating_sub(1), limit);
            let kept = Span { base, count, first: at(base, passed).min(last), last };
            if let Some(multicast) = self.pipes[id as usize].multicast_mut() {
                multicast.passed = limit;
                self.wakes.retimed(dest);
                if count != 0 {
                    multicast.kept_before = std::mem::replace(&mut multicast.kept, kept);
                }
            }
            if waits && !self.is_in_stretch(id) {
                let from = kept.first.max(self.now + 1);
                self.wakes.router(dest, from);
                self.wakes.core(dest, from + self.timing.ramp_down);
            }
        }
        let next = limit.number.max(passed.number);
        if next < end { next } else { NEVER }
    }

    /// What is sent into the first pipe of a multicast goes into the others too.
    pub(crate) fn send_copies(&mut self, plan: &Plan, first: u32, span: (u64, u64), words: &[u32]) {
        let end = self.pipes[first as usize].sent_before() + words.len() as u64;
        self.pass_forks(first, end);
        let mut before = 1;
        while let Some(id) = self.pipe_at(first, before) {
            let mut copy = self.buffers.pop().unwrap_or_default();
            copy.extend_from_slice(words);
            self.stats.copies += words.len() as u64;
            self.send_words(plan, id, span, copy);
            before += 1;
        }
    }
}
