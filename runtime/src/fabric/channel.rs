//! Channels: a color's way from one core to another, all its buffers as one.
//!
//! A way qualifies where routers do nothing but hand on: one fixed port in, one fixed port out
//! that no other color uses at that time (`claims`), no filter, no swap. Buffers that sustain a word per cycle (R2) then
//! behave as one: with `k` links, a word that goes up the ramp in `u` reaches the last router in
//! `f = max(u + ramp_up + k hop, d' + credit + hop)`, `d'` being when the word `link_places`
//! before it left that router; and it may go up once the word as many places before it as the
//! way has in all has left the last router `(k + 1) credit` cycles ago. Words of all colors still
//! compete for both ramps.
//!
//! Invariants: between runs, and wherever somebody looks at routers, no channel holds a word:
//! [`Region::cut`] puts each into the router where it is at that time. (`sched::rounds`, for which a run pauses, knows
//! of words in channels.) Control wavelets, and data that move a switch, never enter a channel; whoever writes a
//! router's registers cuts first.

mod cut;
mod rounds;

use dflow_ir::mesh::Port;

use super::link::Link;
use super::pattern::{Pattern, common_period};
use super::plan::RouterPlan;
use super::rhythm::Rhythm;
use super::ring::{NEVER, Ring, Slot};
use super::router::RAMP;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::sched::plan::{Latencies, Plan};
use crate::sched::region::Region;
use crate::ways::Why;

/// What a core knows of its color's way: a channel, nothing yet, or that it leads through routers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Outlet {
    /// Not looked at.
    #[default]
    Unknown,
    /// Through routers.
    Routers(Why),
    /// Channel of this number.
    Channel(u32),
    /// Pipe of this number, in the `flow` engine.
    Pipe(u32),
    /// Through routers, as soon as this pipe is empty or its words have been put there.
    Closing(u32),
    /// To the host as this sender of a line (`gather`), in the `flow` engine.
    Gathered(u32),
    /// To the host as this sender of a merge (`merge`), in the `exact` engine.
    Merged(u32),
}

/// A channel.
#[derive(Debug)]
pub(crate) struct Channel {
    /// Words by arrival at the last router; places by when the source may use them again.
    ring: Ring,
    route: Route,
    /// Cycles from up the ramp to the last router, and from there back to the source.
    transit: u64,
    credit: u64,
    /// When the last words left the last router, latest first.
    gone: [u64; HISTORY],
    /// From which cycle the last link has brought the next word.
    linked: u64,
    /// The source waits for a place.
    wanted: bool,
    /// Links of its way that other colors may use, as four times the PE and the port.
    shared: Box<[u32]>,
    /// What is put off while one of its ends at least is steady.
    pub(crate) link: Option<Box<Link>>,
    /// Likewise, while one of its ends at least takes turns.
    pub(crate) rhythm: Option<Box<Rhythm>>,
}

/// Departures that are remembered: the places of a link at most.
const HISTORY: usize = 4;

/// A way from core to core; in the `flow` engine from the host or to it, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) source: u32,
    /// Port by which words come into the first router: the ramp, if they are not the host's.
    pub(crate) entry: u8,
    pub(crate) dest: u32,
    /// The destination's region, and borders of regions on the way there (`flow` only).
    pub(crate) region: u32,
    pub(crate) borders: u32,
    /// The link by which they leave the last one, if they are for the host.
    pub(crate) link: Option<u32>,
    /// Number of the destination in the whole rectangle.
    pub(crate) number: u32,
    pub(crate) color: u8,
    /// Port by which the last router gets its words.
    pub(crate) port: u8,
    pub(crate) hops: u32,
    /// Input queue that takes the words, as long as the program binds none anew.
    pub(crate) queue: Option<u8>,
}

impl Channel {
    fn new(timing: &Latencies, route: Route, shared: Box<[u32]>) -> Channel {
        let hops = u64::from(route.hops);
        Channel {
            ring: Ring::new(timing.ramp_places + route.hops * timing.link_places),
            route,
            transit: timing.ramp_up + hops * timing.hop,
            credit: (hops + 1) * timing.credit,
            gone: [0; HISTORY],
            linked: 0,
            wanted: false,
            shared,
            link: None,
            rhythm: None,
        }
    }

    /// Its way.
    pub(crate) fn route(&self) -> Route {
        self.route
    }

    /// Its way, to look at.
    pub(crate) fn way(&self) -> &Route {
        &self.route
    }

    /// Whether it holds no word.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Whether a word that stands in the source's router could be kept there by other colors, which
    /// nobody can know before the region's next cycle, and has to leave for another to go up.
    pub(crate) fn may_be_held(&self, timing: &Latencies) -> bool {
        self.is_shared() && self.ring.len() >= timing.ramp_places as usize
    }

    /// Whether other colors may use links of its way.
    pub(crate) fn is_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Whether it has not been cut.
    fn is_used(&self) -> bool {
        self.ring.places() != 0
    }

    /// Cycles from the last router's taking a word to its place being free for the source.
    pub(crate) fn credit(&self) -> u64 {
        self.credit
    }

    /// From which cycle a word may go up the ramp.
    pub(crate) fn free_from(&self) -> u64 {
        self.ring.free_from()
    }

    /// When the first word is, or was, at the last router; or is going to be, if its sender takes turns.
    pub(crate) fn arrival(&self) -> Option<u64> {
        let next = || Some(self.rhythm.as_ref()?.source?.ramp.next() + self.transit);
        let head = self.ring.head().map(|head| head.stamp).or_else(next);
        head.map(|stamp| stamp.max(self.linked))
    }

    /// Takes a word that goes up the ramp in cycle `t`; whether it is the first.
    #[inline]
    pub(crate) fn push(&mut self, word: Slot, t: u64) -> bool {
        let was_empty = self.ring.is_empty();
        self.ring.push(Slot { stamp: t + self.transit, ..word });
        was_empty
    }

    /// The source waits for a place.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// The source need not be told of a place: it looks when it needs one.
    pub(crate) fn want_no_more(&mut self) {
        self.wanted = false;
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// The first word leaves the last router in cycle `t`; also from which cycle the source may
    /// use its place, if it waits for one.
    #[inline]
    pub(super) fn pop(&mut self, timing: &Latencies, t: u64) -> (Slot, Option<u64>) {
        let wanted = std::mem::take(&mut self.wanted);
        let word = self.ring.pop(t + self.credit);
        self.has_left(timing, t);
        (word, wanted.then_some(t + self.credit))
    }

    /// A word has left the last router in cycle `t`.
    #[inline]
    fn has_left(&mut self, timing: &Latencies, t: u64) {
        self.gone.rotate_right(1);
        self.gone[0] = t;
        if self.route.hops != 0 {
            let before = self.gone[timing.link_places as usize - 1];
            self.linked = if before == 0 { 0 } else { before + timing.credit + timing.hop };
        }
    }

    /// Its words, first word first.
    pub(super) fn words(&self) -> impl Iterator<Item = &Slot> {
        self.ring.words()
    }

    /// When the last word left the last router, if as many as are remembered left one per cycle.
    pub(super) fn landed_evenly(&self) -> Option<u64> {
        let [last, ..] = self.gone;
        let mut gone = (0..).zip(self.gone);
        gone.all(|(ago, gone)| gone + ago == last).then_some(last)
    }

    /// Whether its words went up one per cycle up to cycle `up`, and left so up to cycle `left`.
    pub(super) fn is_even(&self, up: u64, left: u64) -> bool {
        self.ring.is_even(up + self.transit, left + self.credit)
    }

    /// When the last word left the last router.
    pub(crate) fn last_gone(&self) -> u64 {
        self.gone[0]
    }

    /// When the last words left the last router before cycle `t`, latest first: of those that are remembered.
    pub(crate) fn gone_before(&self, t: u64) -> impl Iterator<Item = u64> {
        self.gone.into_iter().filter(move |&gone| gone < t && gone != 0)
    }

    /// From which cycles places are free that are not yet in cycle `t`, of words that have gone before it, last
    /// one first.
    pub(crate) fn places_to_come(&self, t: u64) -> impl Iterator<Item = u64> {
        self.ring.to_come(t).skip_while(move |&free| free >= t + self.credit)
    }

    /// Words that had gone up and not left when all cycles before `t` had passed.
    pub(crate) fn held_before(&self, t: u64) -> usize {
        let up = self.ups().take_while(|&up| up < t).count();
        up + self.gone.iter().filter(|&&gone| gone >= t).count()
    }

    /// How many words may go up in cycles of a pattern, if none leaves.
    pub(crate) fn room(&self, ups: &Pattern) -> u64 {
        self.ring.room(ups)
    }

    /// Whether words may go up in the cycles of a pattern for ever, if they leave in those of another.
    pub(crate) fn may_go_on(&self, (ups, downs): (&Pattern, &Pattern)) -> bool {
        let places = (self.ring.places() - self.ring.len()) as u64;
        let length = common_period([ups, downs]);
        let count = ups.among(length);
        let finds_place = |at| downs.after(at) + self.credit <= ups.after(places + at);
        self.room(ups) == places && downs.among(length) == count && (0..count).all(finds_place)
    }

    /// `count` words go up and leave, in cycles of these patterns.
    pub(super) fn pass(
        &mut self,
        timing: &Latencies,
        count: u64,
        (ups, downs): (Pattern, Pattern),
        payloads: &mut impl Iterator<Item = u32>,
    ) {
        let like = Slot { color: self.route.color, ..Slot::default() };
        let (transit, credit) = (self.transit, self.credit);
        let stamp = |at| ups.after(at) + transit;
        let place = |at| downs.after(at) + credit;
        self.ring.pass(count, like, (stamp, place), payloads);
        for at in count.saturating_sub(HISTORY as u64)..count {
            self.has_left(timing, downs.after(at));
        }
    }

    /// Cycles from up the ramp to the last router.
    pub(crate) fn transit(&self) -> u64 {
        self.transit
    }

    /// When words went up that have not left, first word first.
    pub(crate) fn ups(&self) -> impl Iterator<Item = u64> {
        self.ring.words().map(|word| self.up(word))
    }

    /// From which cycle the last link has brought the next word.
    pub(crate) fn linked(&self) -> u64 {
        self.linked
    }

    /// All that happened in it happened so many cycles later, with other payloads.
    pub(super) fn shift(&mut self, by: u64, payloads: &mut impl Iterator<Item = u32>) {
        self.ring.shift(by, payloads);
        self.gone = self.gone.map(|gone| gone + by);
        self.linked += if self.linked == 0 { 0 } else { by };
    }

    /// When a word went up the ramp.
    fn up(&self, word: &Slot) -> u64 {
        word.stamp - self.transit
    }

    /// Where each of its words that are up the ramp is when all cycles before `t` have passed,
    /// first word first: the node (0 is the source's router), its stamp there, and the word.
    fn places(&self, timing: &Latencies, t: u64) -> Vec<(u32, Slot)> {
        let mut placed: Vec<(u32, Slot)> = Vec::with_capacity(self.ring.len());
        let words = self.ring.words().take_while(|word| self.up(word) < t);
        for (at, word) in words.enumerate() {
            let up = self.up(word);
            let mut node = 0;
            let mut stamp = up + timing.ramp_up;
            while node < self.route.hops
                && let Some(left) = self.departure(timing, (at, up), node)
                && left < t
            {
                node += 1;
                stamp = left + timing.hop;
            }
            let before = placed.last().filter(|(other, _)| *other == node);
            let stamp = before.map_or(stamp, |(_, before)| stamp.max(before.stamp + 1));
            placed.push((node, Slot { stamp, ..*word }));
        }
        placed
    }

    /// Whether a word leaves a node in cycle `t` or later, if none leaves the last router.
    fn moves_from(&self, timing: &Latencies, t: u64) -> bool {
        let nodes = |t| self.places(timing, t).into_iter().map(|(node, _)| node);
        !nodes(t).eq(nodes(NEVER))
    }

    /// When the word at place `at`, which went up in cycle `up`, leaves a node; none if a word
    /// before it has to leave the last router first.
    fn departure(&self, timing: &Latencies, (at, up): (usize, u64), node: u32) -> Option<u64> {
        let links = self.route.hops - node;
        let free = timing.ramp_up + u64::from(node) * timing.hop + up;
        // The word whose leaving makes the place behind the link free.
        let back = (links * timing.link_places) as usize;
        let pops = back.checked_sub(at).filter(|&pops| pops != 0)?;
        // If its place is in use again it left so long ago that it holds nobody up.
        let freed = || self.ring.freed(pops).map_or(0, |freed| freed.saturating_sub(self.credit));
        let left = self.gone.get(pops - 1).copied().unwrap_or_else(freed);
        let last = if left == 0 { 0 } else { left + u64::from(links) * timing.credit };
        Some(free.max(last))
    }
}

/// A router of a way: the port by which words come, and the one by which they leave, if it still
/// hands them on, with whether another color may leave by it.
#[derive(Clone, Copy, Debug)]
struct Step {
    pe: u32,
    from: u8,
    onward: Option<(u8, bool)>,
}

impl RouterPlan {
    /// The one port by which a color that enters by `from` always leaves, and whether another
    /// color may leave by it; or what else happens to the color.
    pub(crate) fn hands_on(&self, color: u8, from: u8) -> Result<(u8, bool), Why> {
        if self.is_written(color) {
            return Err(Why::RunTime);
        }
        let row = self.row(color).filter(|row| row.known).ok_or(Why::Unknown)?;
        let more = [
            (self.is_swapped(color), Why::Swap),
            (row.positions != 1, Why::Switch),
            (row.teardown, Why::Teardown),
            (row.filter.is_some(), Why::Filter),
            (row.rx[0] != 1 << from, Why::Senders),
            (row.tx[0].count_ones() > 1, Why::FanOut),
            (row.tx[0] == 0, Why::Outside),
        ];
        if let Some(&(_, why)) = more.iter().find(|(applies, _)| *applies) {
            return Err(why);
        }
        let port = row.tx[0].trailing_zeros() as u8;
        Ok((port, port != RAMP && self.shares(color, row.tx[0])))
    }

    /// The ports, as bits, by which a color that enters by `from` always leaves, and by nothing else; none if more
    /// happens to it.
    pub(super) fn copies(&self, color: u8, from: u8) -> Option<u8> {
        let row = self.fixed(color)?;
        let plain = row.positions == 1 && !row.teardown && row.filter.is_none();
        (plain && row.rx[0] == 1 << from && row.tx[0] != 0).then_some(row.tx[0])
    }
}

impl<C: Code> Region<C> {
    /// The way of a color's words that come into a router by a port, if nobody else has a say in
    /// it; else why not.
    pub(super) fn route(
        &self,
        plan: &Plan,
        (source, entry): (u32, u8),
        color: u8,
    ) -> Result<Route, Why> {
        let (mut pe, mut from, mut hops) = (source, entry, 0);
        loop {
            let number = self.number(plan, pe);
            let program = plan.program(number);
            let link = |port: u8| plan.link(number, Port::ALL[usize::from(port)], color);
            let has_links = plan.has_links(number);
            if has_links && (pe, from) != (source, entry) && link(from).is_some() {
                return Err(Why::HostLink);
            }
            let router = self.routers[pe as usize].as_deref();
            if router.is_some_and(|router| router.is_torn(color)) {
                return Err(Why::Teardown);
            }
            let table = self.table_at(plan, pe);
            let (port, _) = table.hands_on(color, from)?;
            let mut route = Route {
                source,
                entry,
                dest: pe,
                region: self.id,
                borders: 0,
                link: None,
                number: number as u32,
                color,
                port: from,
                hops,
                queue: None,
            };
            if port == RAMP {
                let program = program.ok_or(Why::Outside)?;
                route.queue = program.queue_of(color).map(|queue| queue as u8);
                return Ok(route);
            }
            if has_links && let Some(link) = link(port) {
                let may_end = self.flow && self.routed >> color & 1 == 0;
                route.link = Some(link);
                return if may_end { Ok(route) } else { Err(Why::HostLink) };
            }
            match self.near(plan, pe, port) {
                Ok(next) => (pe, from, hops) = (next, port ^ 1, hops + 1),
                Err(Why::Region) if self.flow && entry == RAMP => {
                    return self.route_abroad(plan, &route, port);
                }
                Err(why) => return Err(why),
            }
        }
    }

    /// The configuration of a router, made or not.
    pub(super) fn table_at<'a>(&'a self, plan: &'a Plan, pe: u32) -> &'a RouterPlan {
        match &self.routers[pe as usize] {
            Some(router) => router.table(plan),
            None => &plan.routers[plan.router_of[self.number(plan, pe)] as usize],
        }
    }

    /// The neighbor in a direction, if it is in the region.
    pub(super) fn near(&self, plan: &Plan, pe: u32, port: u8) -> Result<u32, Why> {
        let (x, y) = self.place(pe);
        let next = plan.neighbor(x, y, Port::ALL[usize::from(port)]);
        let (x, y) = next.ok_or(Why::Outside)?;
        let (region, pe) = plan.locate(x, y);
        if region == self.id { Ok(pe) } else { Err(Why::Region) }
    }

    /// What the way of a color's words from a core is; its channel is made.
    /// `depth`: places of its output queue.
    pub(crate) fn outlet(
        &mut self,
        plan: &Plan,
        core: &mut Core<C>,
        pe: u32,
        (color, depth): (u8, u32),
    ) -> Outlet {
        if self.incoming.is_none() {
            return Outlet::Routers(Why::Engine);
        }
        if self.rewritten >> color & 1 != 0 {
            return Outlet::Routers(Why::RunTime);
        }
        // In crowded ways whose places come back late a channel is not always what routers are.
        let is_late = !self.flow && plan.timing.credit > 1;
        if plan.timing.link_places as usize > HISTORY || is_late {
            return self.merged(plan, core, (pe, color), Why::Links);
        }
        let route = match self.route(plan, (pe, RAMP), color) {
            Ok(route) => route,
            Err(why) if self.flow => return self.gathered(plan, pe, (color, depth), why),
            Err(why) => return self.merged(plan, core, (pe, color), why),
        };
        let clear = self.is_clear(plan, &route);
        if self.flow {
            let queued = self.words_at_end(&route, Some(core));
            return match queued.filter(|_| clear) {
                Some(queued) => self.new_pipe(plan, route, (depth, queued)),
                // What stands beyond the border cannot be seen.
                None if route.borders != 0 => Outlet::Routers(Why::Behind),
                None => Outlet::Unknown,
            };
        }
        let shared = self.shared_links(plan, &route);
        if !clear || !self.can_claim(plan, core, &route, &shared) {
            core.retry |= 1 << color;
            return Outlet::Routers(if clear { Why::SharedLink } else { Why::Behind });
        }
        self.new_channel(plan, route, shared)
    }

    fn new_channel(&mut self, plan: &Plan, route: Route, shared: Box<[u32]>) -> Outlet {
        // A number that stands in `cuts` keeps its meaning up to the end of the cycle.
        let known = if self.cuts.is_empty() { self.unused.pop() } else { None };
        let id = known.unwrap_or(self.channels.len() as u32);
        self.claim_links(id, &shared);
        let channel = Channel::new(&plan.timing, route, shared);
        match self.channels.get_mut(id as usize) {
            Some(old) => *old = channel,
            None => {
                self.bytes += (size_of::<Channel>() + channel.ring.bytes()) as u64;
                self.channels.push(channel);
            }
        }
        self.landings[route.dest as usize].add(id, &route);
        Outlet::Channel(id)
    }

    /// A channel is not used any more; its way.
    pub(super) fn drop_channel(&mut self, id: u32) -> Route {
        let channel = &mut self.channels[id as usize];
        let route = channel.route;
        channel.ring = Ring::new(0);
        let shared = std::mem::take(&mut channel.shared);
        self.release_links(&shared);
        self.unused.push(id);
        self.landings[route.dest as usize].remove(id);
        route
    }

    /// The routers of a way, in its order.
    fn steps(&self, plan: &Plan, route: &Route) -> impl Iterator<Item = Step> {
        let (mut next, mut left) = (Some((route.source, route.entry)), route.hops);
        std::iter::from_fn(move || {
            let (pe, from) = next?;
            let onward = self.table_at(plan, pe).hands_on(route.color, from).ok();
            let near = |(port, _)| Some((self.near(plan, pe, port).ok()?, port ^ 1));
            next = onward.filter(|_| left != 0).and_then(near);
            left = left.saturating_sub(1);
            Some(Step { pe, from, onward })
        })
    }

    /// The routers of a way with the ports by which its words come.
    pub(super) fn nodes(&self, plan: &Plan, route: &Route) -> Vec<(u32, u8)> {
        self.steps(plan, route).map(|step| (step.pe, step.from)).collect()
    }

    /// Links of a way that other colors may use too, as four times the PE and the port.
    pub(crate) fn shared_links(&self, plan: &Plan, route: &Route) -> Box<[u32]> {
        let (mut links, mut last) = (Vec::new(), (route.source, route.entry));
        for Step { pe, from, onward } in self.steps(plan, route) {
            last = (pe, from);
            if let Some((port, true)) = onward {
                links.push(4 * pe + u32::from(port));
            }
        }
        if route.borders != 0 {
            links.extend(self.links_abroad(plan, route, last));
        }
        links.into()
    }

    /// Whether no router of a way holds a word of it.
    pub(crate) fn is_clear(&self, plan: &Plan, route: &Route) -> bool {
        let holds = |Step { pe, from, .. }: Step| {
            let router = self.routers[pe as usize].as_deref();
            router.is_some_and(|router| router.holds(route.color, from))
        };
        !self.steps(plan, route).any(holds)
    }
}
