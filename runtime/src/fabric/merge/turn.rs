//! When buffers stand side by side, and when in their routers: they do the former while nobody else wants the
//! links, or asks what routers hold.

use super::{MERGED, Merge, Node};
use crate::fabric::channel::Outlet;
use crate::fabric::ring::{NEVER, Ring};
use crate::pe::code::Code;
use crate::pe::core::{Core, bits};
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Why;

/// Cycles for which a merge is put off at most, and for each of its routers.
const MOST: (u64, u64) = (1 << 12, 1 << 4);

/// A PE whose core is being visited.
type Visited<'a, C> = Option<(u32, &'a mut Core<C>)>;

impl<C: Code> Region<C> {
    /// Begins the merges that were asked for; all cycles before `t` have passed.
    pub(crate) fn begin_merges(&mut self, plan: &Plan, t: u64) {
        for id in std::mem::take(&mut self.merges.asked) {
            self.merges.all[id as usize].asked = false;
            if self.may_merge(plan, id, t) {
                self.begin_merge(plan, id, t);
            } else {
                self.merges.all[id as usize].put_off(t);
            }
        }
    }

    /// Whether there is nothing in the routers of a merge that it could not hold, and its links are free.
    fn may_merge(&mut self, plan: &Plan, id: u32, t: u64) -> bool {
        let merge = &self.merges.all[id as usize];
        let (color, shared) = (merge.color, merge.shared.clone());
        if merge.closed || merge.is_on || self.is_bounded(merge.link, t) {
            return false;
        }
        let commands = |node: &Node| {
            let core = self.cores[node.pe as usize].as_deref();
            core.is_some_and(|core| core.outlet(color) == Outlet::Routers(Why::Commands))
        };
        let is_plain = |node: &Node| {
            let router = self.routers[node.pe as usize].as_deref();
            router.is_none_or(|router| router.is_plain(color))
        };
        if merge.nodes.iter().any(commands) {
            // What has commanded routers once is not taken for plain any more.
            self.merges.all[id as usize].closed = true;
            return false;
        }
        if !merge.nodes.iter().all(is_plain) {
            return false;
        }
        self.make_claims(&shared);
        shared.iter().all(|&link| {
            let router = self.routers[link as usize / 4].as_deref();
            let used =
                router.is_some_and(|router| router.others_hold_for(plan, (link % 4) as u8, color));
            !used && self.give_up(plan, None, link)
        })
    }

    fn begin_merge(&mut self, plan: &Plan, id: u32, t: u64) {
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Merged);
        let nodes = std::mem::take(&mut self.merges.all[id as usize].nodes);
        let color = self.merges.all[id as usize].color;
        let mut buffers = Vec::with_capacity(self.merges.all[id as usize].places);
        for node in &nodes {
            self.take_buffers(plan, (node.pe, color), &mut buffers);
            self.lead_into(id, node.pe, color);
        }
        let shared = self.merges.all[id as usize].shared.clone();
        self.claim_links(id | MERGED, &shared);
        let merge = &mut self.merges.all[id as usize];
        (merge.nodes, merge.buffers) = (nodes, buffers);
        (merge.is_on, merge.until, merge.last, merge.armed) = (true, t, 0, NEVER);
        merge.left = 0;
        merge.count();
        if merge.held != 0 {
            self.look_at_merge(id, t);
        }
    }

    /// Takes the buffers of a color out of a router, or makes them.
    fn take_buffers(&mut self, plan: &Plan, (pe, color): (u32, u8), buffers: &mut Vec<Ring<3>>) {
        let rx = self.table_at(plan, pe).row(color).map_or(0, |row| row.rx[0]);
        for port in bits(rx.into()) {
            let port = port as u8;
            let router = self.routers[pe as usize].as_deref_mut();
            let ring = router.and_then(|router| router.lend_buffer(color, port));
            buffers.push(ring.unwrap_or_else(|| Ring::new(plan.timing.places_at(port))));
        }
    }

    /// The words of a core, if it has sent any, are merged from now on.
    fn lead_into(&mut self, id: u32, pe: u32, color: u8) {
        let sender = self.merges.known.get(&color).map_or(0, |known| known[pe as usize]);
        let senders = &self.merges.senders;
        let is_sender =
            |sender: &u32| senders.get(*sender as usize).is_some_and(|it| it.merge == id);
        let Some(sender) = sender.checked_sub(1).filter(is_sender) else { return };
        let core = self.cores[pe as usize].as_deref_mut();
        if let Some(core) = core
            && core.outlet(color) != Outlet::Unknown
        {
            *core.outlets.entry(color.into()) = Outlet::Merged(sender);
            core.retry &= !(1 << color);
        }
    }

    /// Ends a merge if it has begun: its buffers go back into their routers. All cycles before `t` have passed.
    pub(in crate::fabric) fn end_merge(
        &mut self,
        plan: &Plan,
        id: u32,
        (t, moves): (u64, bool),
        mut visited: Visited<'_, C>,
    ) {
        if !self.merges.all[id as usize].is_on {
            return;
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Unmerged);
        self.pass_merge(plan, id, t);
        let merge = &mut self.merges.all[id as usize];
        let (color, nodes) = (merge.color, std::mem::take(&mut merge.nodes));
        let mut buffers = std::mem::take(&mut merge.buffers).into_iter();
        for &Node { pe, .. } in &nodes {
            let rx = self.table_at(plan, pe).row(color).map_or(0, |row| row.rx[0]);
            for port in bits(rx.into()) {
                if let Some(ring) = buffers.next() {
                    self.put_buffer(plan, (pe, port as u8, color), ring, (t, moves));
                }
            }
            let core = match &mut visited {
                Some((visited, core)) if *visited == pe => Some(&mut **core),
                _ => self.cores[pe as usize].as_deref_mut(),
            };
            if let Some(core) = core.filter(|core| matches!(core.outlet(color), Outlet::Merged(_)))
            {
                core.look_again(color);
            }
        }
        let merge = &mut self.merges.all[id as usize];
        merge.nodes = nodes;
        let shared = std::mem::take(&mut merge.shared);
        merge.stop(t);
        self.release_links(&shared);
        self.merges.all[id as usize].shared = shared;
    }

    /// Puts a buffer back into a router, where its words are looked at from cycle `t` on.
    fn put_buffer(
        &mut self,
        plan: &Plan,
        (pe, port, color): (u32, u8, u8),
        ring: Ring<3>,
        (t, moves): (u64, bool),
    ) {
        let says_nothing = ring.is_empty() && ring.to_come(t - 1).next().is_none();
        if says_nothing
            && !self.routers[pe as usize].as_deref().is_some_and(|it| it.has_lane(color, port))
        {
            return;
        }
        let first = ring.first();
        self.router(plan, pe).take_back(plan, (color, port), ring);
        if first != NEVER && moves {
            self.wakes.router(pe, first.max(t));
        }
    }

    /// Ends the merge of a PE's words of a color when the cycle is over, for good: some that command routers
    /// are to come.
    pub(crate) fn close_merge(&mut self, pe: u32, color: u8) {
        let Some(known) = self.merges.known.get(&color) else { return };
        let Some(sender) = known[pe as usize].checked_sub(1) else { return };
        let Some(sender) = self.merges.senders.get(sender as usize) else { return };
        let id = sender.merge;
        self.merges.all[id as usize].closed = true;
        self.cuts.push((id | MERGED, Vec::new()));
    }

    /// Likewise, of all words that pass a router whose registers are written.
    pub(in crate::fabric) fn close_merges(&mut self, pe: u32) {
        for (id, merge) in (0..).zip(&mut self.merges.all) {
            if merge.nodes.iter().any(|node| node.pe == pe) {
                merge.closed = true;
                self.cuts.push((id | MERGED, Vec::new()));
            }
        }
    }

    /// Moves all merged words in all cycles before `t`.
    pub(crate) fn pass_merges(&mut self, plan: &Plan, t: u64) {
        for id in 0..self.merges.all.len() as u32 {
            if self.merges.all[id as usize].is_on {
                self.pass_merge(plan, id, t);
            }
        }
    }

    /// Moves all merged words at the end of a run, where all cycles before `t` have passed, and puts those that have
    /// not left into routers.
    pub(crate) fn end_merges(&mut self, plan: &Plan, (t, moves): (u64, bool)) {
        self.pass_merges(plan, t);
        for id in 0..self.merges.all.len() as u32 {
            let merge = &self.merges.all[id as usize];
            if merge.is_on && merge.held != 0 {
                self.end_merge(plan, id, (t, moves), None);
                self.merges.all[id as usize].patience.reset();
            }
        }
    }

    /// Ends the merge whose words leave by a link, as the host looks at what it takes.
    pub(crate) fn unmerge(&mut self, plan: &Plan, link: u32, t: u64) {
        for id in 0..self.merges.all.len() as u32 {
            if self.merges.all[id as usize].link == link {
                self.end_merge(plan, id, (t, true), None);
            }
        }
    }

    /// Gives up the links of a merge that holds no words; whether it did.
    pub(in crate::fabric) fn give_up_merge(
        &mut self,
        plan: &Plan,
        id: u32,
        visited: Visited<'_, C>,
    ) -> bool {
        let t = self.now + 1;
        self.pass_merge(plan, id, t);
        let gives = self.merges.all[id as usize].held == 0;
        if gives {
            self.end_merge(plan, id, (t, true), visited);
        }
        gives
    }
}

impl Merge {
    /// Finds out which nodes hold words, and how many there are. Cores may wait wherever a ramp is full.
    fn count(&mut self) {
        let words = self.nodes.len().div_ceil(64);
        (self.busy, self.waits) = (vec![0; words], vec![0; words]);
        (self.held, self.waiting) = (0, 0);
        self.feeders = vec![0; self.places];
        for index in 0..self.nodes.len() {
            let node = self.nodes[index];
            self.feeders[node.buffers()].fill(index as u32);
            if let Some(feeder) = self.feeders.get_mut(node.to as usize) {
                *feeder = index as u32;
            }
            let words: usize = node.buffers().map(|buffer| self.buffers[buffer].len()).sum();
            self.held += words as u32;
            if words != 0 {
                self.set_busy(index);
            }
            if node.has_ramp && self.ramp(index as u32).is_full() {
                self.wait(index);
            }
        }
    }

    /// Its buffers stand in their routers.
    fn stop(&mut self, t: u64) {
        // To begin and to end costs as much as some words of each router.
        if self.held == 0 && self.left >= self.nodes.len() as u64 {
            self.patience.reset();
        } else {
            self.put_off(t);
        }
        (self.is_on, self.armed) = (false, NEVER);
        (self.held, self.waiting) = (0, 0);
    }

    /// It does not begin for a while.
    fn put_off(&mut self, t: u64) {
        let (most, by_router) = MOST;
        self.patience.put_off(t, most.max(by_router * self.nodes.len() as u64));
    }
}
