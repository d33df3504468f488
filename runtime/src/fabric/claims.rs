//! Links that several colors may use, and the channels, merges and flights that hold them.
//!
//! A way whose links other colors may use is a channel as long as nobody else wants them. It takes
//! them when its first word goes up the ramp and no other word is there. A word that comes into a
//! router from where it may go over such a link ends that: it can want the link in the next cycle
//! at the earliest, and before that the channel is cut. Its color tries again with its next
//! operation. A channel without words gives its links up to whoever asks.
//!
//! Likewise merges (`merge`) and flights (`flight`). A color whose registers the program of a PE may write may want
//! any link there.
//!
//! Invariant: while one of these has a link, no lane from where the link may be used holds a word, but for those of a
//! flight's own color.

use super::channel::Route;
use super::flight::FLOWN;
use super::merge::MERGED;
use crate::pe::code::Code;
use crate::pe::core::{Core, bits};
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// Ports of links, as bits.
const LINKS: u64 = 0xf;

impl<C: Code> Region<C> {
    /// Whether a channel may have these links, as four times the PE and the port: nobody uses them
    /// now. Channels that have them without need lose them; `core` is that of the source.
    pub(super) fn can_claim(
        &mut self,
        plan: &Plan,
        core: &mut Core<C>,
        route: &Route,
        links: &[u32],
    ) -> bool {
        if links.is_empty() {
            return true;
        }
        self.make_claims(links);
        links.iter().all(|&link| {
            let (pe, port) = (link / 4, link % 4);
            let router = self.routers[pe as usize].as_deref();
            let used = router.is_some_and(|router| router.holds_for(plan, port as u8));
            !used && self.give_up(plan, Some((route.source, core)), link)
        })
    }

    /// Has a table of who has which link, if there are links that may be had.
    pub(super) fn make_claims(&mut self, links: &[u32]) {
        if self.claims.is_empty() && !links.is_empty() {
            self.claims = vec![0; 4 * self.routers.len()];
            self.bytes += size_of_val(&*self.claims) as u64;
        }
    }

    /// Whether a link is free, or was had by a channel, a merge or a flight without words, which gives it up. `visited`: a
    /// PE whose core is being visited.
    pub(super) fn give_up(
        &mut self,
        plan: &Plan,
        visited: Option<(u32, &mut Core<C>)>,
        link: u32,
    ) -> bool {
        let Some(id) = self.claims[link as usize].checked_sub(1) else { return true };
        if id & MERGED != 0 {
            return self.give_up_merge(plan, id & !MERGED, visited);
        }
        if id & FLOWN != 0 {
            return self.give_up_flight(id & !FLOWN);
        }
        let channel = &self.channels[id as usize];
        if !channel.is_empty() || channel.rhythm.is_some() {
            return false;
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::GivenUp);
        let route = self.drop_channel(id);
        let source = match visited {
            Some((visited, core)) if visited == route.source => Some(core),
            _ => self.cores[route.source as usize].as_deref_mut(),
        };
        if let Some(source) = source.filter(|source| source.leads_to(route.color, id)) {
            source.look_again(route.color);
        }
        true
    }

    /// A channel, a merge or a flight has its links.
    pub(super) fn claim_links(&mut self, id: u32, links: &[u32]) {
        for &link in links {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Claimed);
            self.claims[link as usize] = id + 1;
        }
    }

    /// They are given back.
    pub(super) fn release_links(&mut self, links: &[u32]) {
        for &link in links {
            self.claims[link as usize] = 0;
        }
    }

    /// A word of a color has come into a router: what has links which it may want is cut when the cycle is
    /// over.
    #[inline]
    pub(crate) fn trespass(&mut self, plan: &Plan, pe: u32, color: u8) {
        let at = 4 * pe as usize;
        let Some(&claims) = self.claims.get(at..).and_then(<[u32]>::first_chunk::<4>) else {
            return;
        };
        if claims == [0; 4] {
            return;
        }
        let ports = u64::from(self.table_at(plan, pe).may_leave_by(color)) & LINKS;
        for port in bits(ports) {
            if let Some(id) = claims[port].checked_sub(1)
                && (id & FLOWN == 0 || !self.flights.are_of(id & !FLOWN, color))
            {
                #[cfg(test)]
                crate::sched::reached::note(crate::sched::reached::Reached::Trespass);
                let channel = self.channels.get(id as usize);
                let nodes = channel.map_or_else(Vec::new, |it| self.nodes(plan, it.way()));
                self.cuts.push((id, nodes));
            }
        }
    }
}
