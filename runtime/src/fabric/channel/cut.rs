//! Cuts: a channel's words go into the routers where they are, and it is no channel any more.

use super::Outlet;
use crate::fabric::flight::FLOWN;
use crate::fabric::merge::MERGED;
use crate::fabric::ring::Slot;
use crate::fabric::router::RAMP;
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Why;

impl<C: Code> Region<C> {
    /// A register of a color is about to be written: has the channels that pass the router cut when the cycle is
    /// over, and what else is known of it forgotten. Of a color that may be written at any time there is nothing of
    /// the kind, and others know that it may want any link.
    pub(crate) fn cut_through(&mut self, plan: &Plan, pe: u32, color: u8) {
        if self.table_at(plan, pe).is_written(color) {
            return;
        }
        if self.flow {
            self.go_by_routers(color);
        }
        self.close_merges(pe);
        self.close_flights(pe);
        for id in 0..self.channels.len() as u32 {
            let channel = &self.channels[id as usize];
            if !channel.is_used() {
                continue;
            }
            let nodes = self.nodes(plan, &channel.route);
            if nodes.iter().any(|&(node, _)| node == pe) {
                self.cuts.push((id, nodes));
            }
        }
    }

    /// Words of a color that cores send go by routers from now on, when those in their pipes have been taken.
    fn go_by_routers(&mut self, color: u8) {
        self.rewritten |= 1 << color;
        for core in self.cores.iter_mut().flatten() {
            core.close_pipes(self.rewritten);
        }
    }

    /// Has the channel of a core's color, if it is one, cut when the cycle is over.
    pub(crate) fn cut_later(&mut self, plan: &Plan, outlet: Outlet) {
        if let Outlet::Channel(id) = outlet {
            let nodes = self.nodes(plan, &self.channels[id as usize].route);
            self.cuts.push((id, nodes));
        }
    }

    /// Cuts what is to be cut; all cycles before `t` have passed.
    pub(crate) fn cut_marked(&mut self, plan: &Plan, code: &C, t: u64) {
        for (id, nodes) in std::mem::take(&mut self.cuts) {
            if id & MERGED != 0 {
                self.end_merge(plan, id & !MERGED, (t, true), None);
                continue;
            }
            if id & FLOWN != 0 {
                self.cut_flight(plan, id & !FLOWN, (t, true));
                continue;
            }
            let source = self.channels[id as usize].route.source;
            let color = self.channels[id as usize].route.color;
            if let Some(core) = &mut self.cores[source as usize] {
                let outlet = core.outlets.entry(color.into());
                // Not so if words will come that command routers.
                core.retry |= u32::from(*outlet == Outlet::Channel(id)) << color;
                if !matches!(outlet, Outlet::Routers(_)) {
                    let taken = !self.channels[id as usize].shared.is_empty();
                    let why = if taken { Why::SharedLink } else { Why::RunTime };
                    *outlet = Outlet::Routers(why);
                }
            }
            let dest = self.channels[id as usize].route.dest;
            self.leave_channel(plan, code, id, t);
            self.descend(plan, code, dest, t - 1);
            self.cut(plan, id, &nodes, t, true);
        }
    }

    /// Words of channels that were cut before they were up the ramp: cores ahead of cycle `t` had
    /// sent them. They go up in the cycle in which they do.
    pub(crate) fn send_late(&mut self, plan: &Plan, t: u64) {
        let (due, late) = std::mem::take(&mut self.late).into_iter().partition(|it| it.0 <= t);
        self.late = late;
        let words: Vec<(u64, u32, Slot)> = due;
        for (up, pe, word) in words {
            let stamp = up + plan.timing.ramp_up;
            let (places, word) = (plan.timing.ramp_places, Slot { stamp, ..word });
            if self.router(plan, pe).push(plan, word.color, RAMP, places, word) {
                self.wakes.router(pe, stamp);
            }
            self.trespass(plan, pe, word.color);
        }
    }

    /// Cuts all channels with words at the end of a run, where the next thing happens in cycle
    /// `next` or nothing does before `stop`. Words that are still under way then move on afterwards: nobody had
    /// waited for them. Their ways may be channels again. If the run only `pauses` those stay whose links no other color
    /// may use: a stream without end would go through routers from then on.
    pub(crate) fn cut_all(
        &mut self,
        plan: &Plan,
        code: &C,
        (next, stop): (u64, u64),
        pauses: bool,
    ) {
        if let Some(last) = next.min(stop).checked_sub(1) {
            self.now = last;
            self.leave_all(plan, code, last + 1);
            for pe in 0..self.landings.len() as u32 {
                self.descend(plan, code, pe, last);
            }
            // What stands still waits for something that wakes it.
            self.end_merges(plan, (last + 1, next != u64::MAX));
            self.cut_flights(plan, (last + 1, next != u64::MAX));
        }
        for id in 0..self.channels.len() as u32 {
            let channel = &self.channels[id as usize];
            if channel.ring.is_empty() || pauses && !channel.is_shared() {
                continue;
            }
            let route = self.channels[id as usize].route;
            let nodes = self.nodes(plan, &route);
            if let Some(core) = &mut self.cores[route.source as usize] {
                *core.outlets.entry(route.color.into()) = Outlet::Unknown;
            }
            let moves =
                next != u64::MAX || self.channels[id as usize].moves_from(&plan.timing, stop);
            self.cut(plan, id, &nodes, next.min(stop), moves);
        }
    }

    /// Puts the words of a channel into the routers where they are when all cycles before `t`
    /// have passed; the channel is not used any more. `moves`: something may happen by itself.
    fn cut(&mut self, plan: &Plan, id: u32, nodes: &[(u32, u8)], t: u64, moves: bool) {
        let channel = &mut self.channels[id as usize];
        let (timing, route) = (&plan.timing, channel.route);
        if !channel.is_used() {
            // Two writes in one cycle ask for the same cut.
            return;
        }
        let placed = channel.places(timing, t);
        for word in channel.ring.words().skip(placed.len()) {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Late);
            let up = channel.up(word);
            self.late.push((up, route.source, *word));
            self.wakes.router(route.source, up);
        }
        self.drop_channel(id);
        // The place that the source waits for is another one now.
        if let Some(core) = self.cores[route.source as usize].as_deref_mut() {
            core.look_for_places();
            if moves && !placed.is_empty() {
                self.wakes.core(route.source, t.max(core.until));
            }
        }
        for (node, word) in placed {
            self.stats.hops += u64::from(node);
            let (pe, port) = nodes[node as usize];
            let places = timing.places_at(port);
            let was_empty = self.router(plan, pe).push(plan, route.color, port, places, word);
            if node != 0 {
                self.active_until = self.active_until.max(word.stamp + 1 - timing.hop);
            }
            if was_empty && moves {
                self.wakes.router(pe, word.stamp.max(t));
            }
        }
    }
}
