//! Where channels end: how their words go down the ramp.
//!
//! Nobody looks at the end of a channel for every word. Which word goes down in which cycle
//! follows from stamps, so a PE is brought up to date when somebody wants to know: its core, which
//! sees a word `ramp_down` cycles later; its router, when other words want the ramp; a source that
//! finds no place in its channel, which then has the router looked at until there is one.
//!
//! Invariants: all cycles before a landing's `until` have had their word; a core that sleeps has a
//! wake before it could see the next one.

use super::channel::Route;
use super::ring::NEVER;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::sched::rounds::Noter;

/// The channels that end at a PE.
#[derive(Debug)]
pub(crate) struct Landing {
    until: u64,
    /// When the next word is at the last router, of those of which that is known; [`NEVER`] without one.
    next: u64,
    /// Its core has a wake for the cycle that it does next.
    pub(crate) awake: bool,
    /// Number of links among the channels (`fabric::link`).
    pub(crate) links: u8,
    /// Number of those whose senders take turns.
    pub(crate) fed: u8,
    /// Its core takes turns, and sees to all that goes down.
    pub(crate) in_turn: bool,
    ends: Vec<End>,
}

/// The end of a channel.
#[derive(Clone, Copy, Debug)]
struct End {
    channel: u32,
    /// When its first word is at the last router; [`NEVER`] without one.
    arrival: u64,
    color: u8,
    port: u8,
    /// Input queue that takes the words, as long as the program binds none anew.
    queue: Option<u8>,
}

impl End {
    /// The order in which words go down that may go in the same cycle (R4).
    fn key(&self) -> (u64, u8, u8) {
        (self.arrival, self.color, self.port)
    }
}

impl Default for Landing {
    fn default() -> Landing {
        Landing {
            until: 0,
            next: NEVER,
            awake: false,
            links: 0,
            fed: 0,
            in_turn: false,
            ends: Vec::new(),
        }
    }
}

impl Landing {
    /// A channel ends here.
    pub(super) fn add(&mut self, channel: u32, route: &Route) {
        let Route { color, port, queue, .. } = *route;
        self.ends.push(End { channel, arrival: NEVER, color, port, queue });
    }

    /// It does no more.
    pub(super) fn remove(&mut self, channel: u32) {
        self.ends.retain(|end| end.channel != channel);
        self.look_again();
    }

    /// The first word of a channel is at the last router from a cycle on.
    fn announce(&mut self, channel: u32, arrival: u64) {
        if let Some(end) = self.ends.iter_mut().find(|end| end.channel == channel) {
            end.arrival = arrival;
            self.next = self.next.min(arrival);
        }
    }

    /// When the first word of a channel is at the last router, or that it has none.
    pub(crate) fn foresee(&mut self, channel: u32, arrival: u64) {
        if let Some(end) = self.ends.iter_mut().find(|end| end.channel == channel) {
            end.arrival = arrival;
        }
        self.look_again();
    }

    /// All cycles before `t` have had their word.
    pub(crate) fn passed(&mut self, t: u64) {
        self.until = t;
    }

    /// All is as it is, so many cycles later.
    pub(crate) fn put_off(&mut self, by: u64) {
        self.until += by;
        for end in self.ends.iter_mut().filter(|end| end.arrival != NEVER) {
            end.arrival += by;
        }
        self.look_again();
    }

    /// Notes from which cycle on words go down, if there are any.
    pub(crate) fn note(&self, noter: &mut Noter<'_>) {
        if self.next != NEVER {
            noter.from(self.until);
        }
    }

    /// The channels.
    pub(crate) fn channels(&self) -> impl Iterator<Item = u32> {
        self.ends.iter().map(|end| end.channel)
    }

    /// One of the channels, by its place among them.
    pub(crate) fn channel(&self, at: usize) -> Option<u32> {
        Some(self.ends.get(at)?.channel)
    }

    /// The channel that ends in a queue, if words come by no other; or that none come, without a queue.
    pub(crate) fn sole(&self, queue: Option<u8>) -> Option<Option<u32>> {
        let own = |end: &&End| queue.is_some() && end.queue == queue;
        let mut ends = self.ends.iter();
        let quiet = self.ends.iter().all(|end| own(&end) || end.arrival == NEVER);
        let channel = ends.find(own).map(|end| end.channel);
        (quiet && channel.is_some() == queue.is_some()).then_some(channel)
    }

    /// Whether all cycles before `t` have had their word, and no later one.
    pub(crate) fn is_at(&self, t: u64) -> bool {
        self.until == t
    }

    /// What happened to a channel happened so many cycles later.
    pub(super) fn shift(&mut self, channel: u32, by: u64) {
        self.until += by;
        if let Some(end) = self.ends.iter_mut().find(|end| end.channel == channel) {
            end.arrival += by;
        }
        self.look_again();
    }

    /// Finds out which arrival is the next.
    fn look_again(&mut self) {
        self.next = self.ends.iter().fold(NEVER, |next, end| next.min(end.arrival));
    }
}

impl<C: Code> Region<C> {
    /// Nothing has happened from cycle `t` on.
    pub(crate) fn rest_from(&mut self, t: u64) {
        self.now = self.now.min(t);
        for landing in &mut self.landings {
            landing.until = landing.until.min(t);
        }
    }

    /// Words of channels go down the ramp of a PE in all cycles up to `t`.
    #[inline]
    pub(crate) fn descend(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        if let Some(landing) = self.landings.get(pe as usize)
            && (landing.fed != 0 || landing.in_turn)
            && self.feed_from_turns(plan, code, pe, t)
        {
            return;
        }
        if self.steady == 0 || !self.feed_from_steady(plan, code, pe) {
            self.descend_now(plan, code, pe, t);
        }
    }

    /// What cores that take turns send to a PE is sent; whether its own core is one.
    #[inline(never)]
    fn feed_from_turns(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) -> bool {
        self.feed_in_turn(plan, code, pe, t);
        self.landings[pe as usize].in_turn
    }

    /// What steady cores send to a PE is sent; whether nothing else is to be done there, since its
    /// core is one.
    #[inline(never)]
    fn feed_from_steady(&mut self, plan: &Plan, code: &C, pe: u32) -> bool {
        if !self.has_links(pe) {
            return false;
        }
        let is_steady = self.cores[pe as usize].as_deref().is_some_and(Core::is_steady);
        if !is_steady {
            self.feed_links(plan, code, pe);
        }
        is_steady
    }

    /// Whether links end at a PE.
    pub(crate) fn has_links(&self, pe: u32) -> bool {
        self.landings.get(pe as usize).is_some_and(|landing| landing.links != 0)
    }

    /// Words of channels go down the ramp of a PE in all cycles up to `t`; no steady core has anything
    /// to do with it, or all that it does is done.
    #[inline]
    pub(crate) fn descend_now(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let Some(landing) = self.landings.get_mut(pe as usize) else { return };
        if landing.until > t {
            return;
        }
        let from = std::mem::replace(&mut landing.until, t + 1);
        if landing.next <= t {
            self.descend_from(plan, code, pe, (from, t));
        }
    }

    #[inline(never)]
    fn descend_from(&mut self, plan: &Plan, code: &C, pe: u32, (from, t): (u64, u64)) {
        if self.cores[pe as usize].is_none() {
            let ends = &self.landings[pe as usize].ends;
            if !ends.iter().any(|end| end.arrival <= t && end.queue.is_some()) {
                return;
            }
            self.core(plan, code, pe);
            self.wakes.core(pe, self.now + 1);
        }
        let Some(mut core) = self.cores[pe as usize].take() else { return };
        let mut ends = std::mem::take(&mut self.landings[pe as usize].ends);
        let mut cycle = from;
        while cycle <= t {
            // The first that may go now, and when the next may.
            let (mut best, mut next): (Option<&mut End>, u64) = (None, NEVER);
            for end in &mut ends {
                if end.arrival > t {
                    continue;
                }
                let ready = core.ready(plan, end, t);
                if ready > cycle {
                    next = next.min(ready);
                    continue;
                }
                match &mut best {
                    None => best = Some(end),
                    Some(best) => {
                        next = cycle + 1;
                        if end.key() < best.key() {
                            *best = end;
                        }
                    }
                }
            }
            if let Some(end) = best {
                self.land(plan, &mut core, end, cycle);
                next = next.min(core.ready(plan, end, t));
            }
            cycle = next.max(cycle + 1);
        }
        let landing = &mut self.landings[pe as usize];
        landing.ends = ends;
        landing.look_again();
        self.cores[pe as usize] = Some(core);
    }

    /// The first word of a channel goes down the ramp in cycle `t`.
    #[inline]
    fn land(&mut self, plan: &Plan, core: &mut Core<C>, end: &mut End, t: u64) {
        #[cfg(test)]
        if t < self.now {
            crate::sched::reached::note(crate::sched::reached::Reached::Past);
        }
        let channel = &mut self.channels[end.channel as usize];
        let (mut word, wanted) = channel.pop(&plan.timing, t);
        if let Some(watch) = &mut core.watched {
            watch.down(t, end.channel, word.stamp - channel.transit());
        }
        end.arrival = channel.arrival().unwrap_or(NEVER);
        let route = channel.route();
        let early = channel.rhythm.as_mut().is_some_and(|rhythm| !rhythm.falls(t));
        let free = t + channel.credit();
        self.stats.hops += u64::from(route.hops);
        if let Some(free) = wanted {
            self.tell_source(route.source, free);
        }
        if early {
            // A source looks so often that it knows of it in time (`Region::sure_until`).
            debug_assert!(free >= self.now);
            self.tell_source(route.source, free);
        }
        word.stamp = t + plan.timing.ramp_down;
        self.active_until = self.active_until.max(t + 1);
        if let Some(queue) = core.queue_at(plan, end, t) {
            core.take_in(queue, word);
            self.delivered(core.at.number, queue, word);
        }
    }

    /// A source finds a place for which it waited from a cycle on.
    pub(super) fn tell_source(&mut self, source: u32, free: u64) {
        let at = free.max(self.now + 1);
        self.wakes.core(source, at);
        if self.turning != 0 {
            self.end_turns(source, free);
        }
    }

    /// From which cycle on a word of a channel can next be in view of a core that waits, `t` at the
    /// least; [`NEVER`] if none is on its way or its queue has no place.
    pub(crate) fn next_landing(&self, plan: &Plan, core: &Core<C>, pe: u32, t: u64) -> u64 {
        let Some(landing) = self.landings.get(pe as usize) else { return NEVER };
        let ready = landing.ends.iter().map(|end| core.ready(plan, end, NEVER));
        let first = ready.min().unwrap_or(NEVER);
        if first == NEVER { NEVER } else { (first + plan.timing.ramp_down).max(t) }
    }

    /// The first word of an empty channel has gone up the ramp of a PE.
    pub(crate) fn announce(&mut self, plan: &Plan, id: u32, source: u32) {
        let channel = &self.channels[id as usize];
        let (dest, arrival) = (channel.route().dest, channel.arrival().unwrap_or(NEVER));
        let landing = &mut self.landings[dest as usize];
        landing.announce(id, arrival);
        if self.steady != 0 || self.turning != 0 {
            self.disturbed.push(dest);
        }
        // That cycle is not after the one in which the word is in view.
        if landing.awake && dest != source {
            return;
        }
        // A core that has not been made is when the first word comes.
        if dest == source || self.cores[dest as usize].is_some() {
            self.wakes.core(dest, arrival + plan.timing.ramp_down);
        } else {
            self.wakes.router(dest, arrival);
        }
    }

    /// A source has found no place in a channel: what has gone down before the region's cycle is
    /// found out, and somebody looks from then on. Up to which cycle there will be none if there
    /// is none now.
    #[inline]
    pub(crate) fn want(&mut self, plan: &Plan, code: &C, id: u32) -> u64 {
        let channel = &self.channels[id as usize];
        // A queue that is full has no place before its core has taken a word.
        if self.steady == 0
            && channel.rhythm.is_none()
            && channel.is_wanted()
            && self.place_at(channel.way()) == NEVER
        {
            return self.now + plan.timing.credit + channel.credit() - 1;
        }
        self.want_now(plan, code, id)
    }

    /// Likewise, where more than a glance is needed.
    #[inline(never)]
    fn want_now(&mut self, plan: &Plan, code: &C, id: u32) -> u64 {
        let dest = self.channels[id as usize].route().dest;
        if self.steady != 0 {
            self.advance(plan, code, dest, self.now);
        }
        if let Some(down) = self.next_down(plan, code, id) {
            return self.want_in_turn(id, down);
        }
        let channel = &self.channels[id as usize];
        let (route, credit, wanted) = (channel.route(), channel.credit(), channel.is_wanted());
        // As at a glance.
        if wanted && self.place_at(&route) == NEVER {
            return self.now + plan.timing.credit + credit - 1;
        }
        if let Some(before) = self.now.checked_sub(1)
            && self.cores[route.dest as usize].is_some()
        {
            self.descend(plan, code, route.dest, before);
        }
        let channel = &mut self.channels[id as usize];
        if channel.free_from() != NEVER {
            return self.now;
        }
        let arrival = channel.arrival().unwrap_or(NEVER).max(self.now);
        if !channel.is_wanted() {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Wanted);
            channel.want();
            self.wakes.router(route.dest, arrival.max(self.now + 1));
        }
        let place = self.place_at(&route).min(self.now + plan.timing.credit);
        arrival.max(place) + credit - 1
    }

    /// Likewise, where the words go to a core that takes turns, which may take no more at any time: the next
    /// one goes down in cycle `down` if all is as foreseen.
    fn want_in_turn(&mut self, id: u32, down: u64) -> u64 {
        let channel = &mut self.channels[id as usize];
        if channel.free_from() != NEVER {
            return self.now;
        }
        channel.want();
        // Its place is of use two cycles later at the earliest: a way has a link at least.
        self.wakes.router(channel.route().dest, down + 1);
        self.now + channel.credit() - 1
    }

    /// From which cycle the queue at the end of a way has a place, as far as that is known.
    fn place_at(&self, route: &Route) -> u64 {
        let dest = self.cores[route.dest as usize].as_deref();
        let queue = dest.filter(|core| core.bound.are_planned()).zip(route.queue);
        queue.map_or(0, |(core, queue)| core.inputs[usize::from(queue)].ring.free_from())
    }

    /// Looks at a router again when words can go down that sources wait for.
    pub(super) fn rearm_wanted(&mut self, plan: &Plan, pe: u32, t: u64) {
        let Some(landing) = self.landings.get(pe as usize) else { return };
        let Some(core) = self.cores[pe as usize].as_deref() else { return };
        let wanted = |end: &&End| self.channels[end.channel as usize].is_wanted();
        let ready = landing.ends.iter().filter(wanted).map(|end| core.ready(plan, end, NEVER));
        let first = ready.min().unwrap_or(NEVER);
        if first != NEVER {
            self.wakes.router(pe, first.max(t + 1));
        }
    }

    /// Whether channels end at a PE.
    pub(super) fn lands_at(&self, pe: u32) -> bool {
        self.landings.get(pe as usize).is_some_and(|landing| !landing.ends.is_empty())
    }

    /// The heads of channels that may go down in cycle `t`, for a router in which others may too:
    /// channel, arrival, color, port.
    pub(super) fn landing_at(
        &self,
        plan: &Plan,
        pe: u32,
        t: u64,
    ) -> impl Iterator<Item = (u32, u64, u8, u8)> {
        let core = self.cores[pe as usize].as_deref();
        let ends = self.landings.get(pe as usize).map_or(&[][..], |landing| &landing.ends);
        ends.iter().filter_map(move |end| {
            let alone = if end.queue.is_some() { end.arrival } else { NEVER };
            let ready = core.map_or(alone, |core| core.ready(plan, end, t));
            (ready <= t).then_some((end.channel, end.arrival, end.color, end.port))
        })
    }

    /// The first word of a channel goes down the ramp in cycle `t`, chosen among those of routers.
    pub(super) fn land_one(&mut self, plan: &Plan, code: &C, pe: u32, t: u64, id: u32) {
        self.core(plan, code, pe);
        let Some(mut core) = self.cores[pe as usize].take() else { return };
        let mut ends = std::mem::take(&mut self.landings[pe as usize].ends);
        if let Some(end) = ends.iter_mut().find(|end| end.channel == id) {
            self.land(plan, &mut core, end, t);
            self.wakes.core(pe, t + plan.timing.ramp_down);
        }
        let landing = &mut self.landings[pe as usize];
        landing.ends = ends;
        landing.look_again();
        self.cores[pe as usize] = Some(core);
    }

    /// The router of a PE has settled who goes down the ramp in cycle `t`.
    pub(super) fn landed(&mut self, pe: u32, t: u64) {
        if let Some(landing) = self.landings.get_mut(pe as usize) {
            landing.until = landing.until.max(t + 1);
        }
    }
}

impl<C: Code> Core<C> {
    /// The queue that takes the words of a channel in cycle `t`.
    #[inline]
    fn queue_at(&self, plan: &Plan, end: &End, t: u64) -> Option<usize> {
        if self.bound.are_planned() {
            return end.queue.map(usize::from);
        }
        let program = &plan.programs[usize::from(self.at.program)];
        self.bound.queue_of(program, end.color, t)
    }

    /// From which cycle the first word of a channel may go down; [`NEVER`] if not by `t`, or for
    /// want of a place.
    #[inline]
    fn ready(&self, plan: &Plan, end: &End, t: u64) -> u64 {
        if end.arrival > t || end.arrival == NEVER {
            return NEVER;
        }
        let queue = self.queue_at(plan, end, t);
        queue.map_or(NEVER, |queue| self.inputs[queue].ring.free_from().max(end.arrival))
    }
}
