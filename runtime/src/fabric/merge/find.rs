//! Which routers do no more than merge a color's words towards a link to the host.

use super::{HOST, Merge, Node, REFUSED, Sender};
use crate::fabric::channel::Outlet;
use crate::fabric::gather::Onward;
use crate::fabric::patience::Patience;
use crate::fabric::ring::{NEVER, Ring};
use crate::fabric::router::RAMP;
use crate::pe::code::Code;
use crate::pe::core::{Core, bits};
use crate::sched::plan::{Latencies, Plan};
use crate::sched::region::Region;
use crate::ways::Why;

impl<C: Code> Region<C> {
    /// The way of a core's words to the host, if nothing but merging happens on it; `why` if not, or not yet.
    pub(in crate::fabric) fn merged(
        &mut self,
        plan: &Plan,
        core: &mut Core<C>,
        (pe, color): (u32, u8),
        why: Why,
    ) -> Outlet {
        let sender = if self.flow { None } else { self.merged_as(plan, pe, color) };
        let Some(sender) = sender else { return Outlet::Routers(why) };
        let id = self.merges.senders[sender as usize].merge;
        let merge = &mut self.merges.all[id as usize];
        if merge.is_on {
            return Outlet::Merged(sender);
        }
        if !merge.closed {
            core.retry |= 1 << color;
            if !merge.asked && merge.patience.is_over(self.now) {
                merge.asked = true;
                self.merges.asked.push(id);
            }
        }
        Outlet::Routers(why)
    }

    /// As which sender a PE's words of a color are merged; its merge is made.
    fn merged_as(&mut self, plan: &Plan, pe: u32, color: u8) -> Option<u32> {
        match self.merges.known.get(&color).map_or(0, |known| known[pe as usize]) {
            0 => {}
            REFUSED => return None,
            sender => return Some(sender - 1),
        }
        // PEs whose words would go the same way.
        let mut way = Vec::new();
        let merge = self.root_of(plan, pe, color, &mut way).and_then(|(root, link)| {
            self.new_merge(plan, Merge::new(color, (root, link)), &mut way)
        });
        let Some(merge) = merge else {
            let known = self.known_of(color);
            way.into_iter().for_each(|pe| known[pe as usize] = REFUSED);
            return None;
        };
        self.keep_merge(plan, merge);
        let sender = self.known_of(color)[pe as usize];
        (sender != 0 && sender != REFUSED).then(|| sender - 1)
    }

    fn known_of(&mut self, color: u8) -> &mut [u32] {
        let (count, bytes) = (self.routers.len(), &mut self.bytes);
        self.merges.known.entry(color).or_insert_with(|| {
            *bytes += (count * size_of::<u32>()) as u64;
            vec![0; count].into()
        })
    }

    /// The last router on the way of a PE's words, and the link there; `way` is what lies on it.
    fn root_of(
        &self,
        plan: &Plan,
        mut pe: u32,
        color: u8,
        way: &mut Vec<u32>,
    ) -> Option<(u32, u32)> {
        let mut from = RAMP;
        loop {
            let known = self.merges.known.get(&color).map_or(0, |known| known[pe as usize]);
            if known != 0 {
                return None;
            }
            way.push(pe);
            match self.merges_to(plan, pe, color, from)? {
                Onward::Host(link) => return Some((pe, link)),
                // A way that leads round has no end.
                Onward::Router(..) if way.len() > self.routers.len() => return None,
                Onward::Router(near, port) => (pe, from) = (near, port),
            }
        }
    }

    /// All routers from which words come to the root, if all of them only merge; `seen` are those that have been
    /// looked at.
    fn new_merge(&self, plan: &Plan, mut merge: Merge, seen: &mut Vec<u32>) -> Option<Merge> {
        let (color, mut index, mut buffers) = (merge.color, 0, 0);
        while let Some(&Node { pe, .. }) = merge.nodes.get(index) {
            seen.push(pe);
            let rx = self.table_at(plan, pe).row(color)?.rx[0];
            let first = buffers;
            for port in bits(u64::from(rx)) {
                let port = port as u8;
                if port != RAMP
                    && let Some(before) = self.merges_into(plan, (pe, port), color)?
                {
                    let (next, to) = (index as u32, buffers);
                    merge.nodes.push(Node::new(before, next, to));
                }
                buffers += 1;
            }
            let count = (buffers - first) as u8;
            let node = &mut merge.nodes[index];
            (node.first, node.count, node.has_ramp) = (first, count, rx >> RAMP & 1 != 0);
            index += 1;
            if index > self.routers.len() {
                return None;
            }
        }
        merge.places = buffers as usize;
        merge.shared = self.shared_by(plan, &merge);
        Some(merge)
    }

    /// The router from which a color comes into one by a port, if any does and only merges; none if
    /// there is more to it.
    fn merges_into(&self, plan: &Plan, (pe, port): (u32, u8), color: u8) -> Option<Option<u32>> {
        let before = match self.near(plan, pe, port) {
            Ok(before) => before,
            Err(Why::Outside) => return Some(None),
            Err(_) => return None,
        };
        let table = self.table_at(plan, before);
        if table.is_written(color) {
            return None;
        }
        let Some(row) = table.row(color) else { return Some(None) };
        if row.any_tx >> (port ^ 1) & 1 == 0 {
            return Some(None);
        }
        let from = row.rx[0].checked_ilog2()? as u8;
        let merges = self.merges_at(plan, before, color, from)? == port ^ 1;
        merges.then_some(Some(before))
    }

    /// Links of a merge that other colors may use.
    fn shared_by(&self, plan: &Plan, merge: &Merge) -> Box<[u32]> {
        let link = |node: &Node| {
            let table = self.table_at(plan, node.pe);
            let tx = table.row(merge.color)?.tx[0];
            table.shares(merge.color, tx).then(|| 4 * node.pe + tx.trailing_zeros())
        };
        merge.nodes.iter().filter_map(link).collect()
    }

    fn keep_merge(&mut self, plan: &Plan, merge: Merge) {
        let id = self.merges.all.len() as u32;
        let first = self.merges.senders.len() as u32;
        let senders = (0..merge.nodes.len() as u32).map(|node| Sender { merge: id, node });
        self.merges.senders.extend(senders);
        let known = self.known_of(merge.color);
        for (sender, node) in (first..).zip(&merge.nodes) {
            known[node.pe as usize] = if node.has_ramp { sender + 1 } else { REFUSED };
        }
        self.router(plan, merge.root).gathers.push(id);
        self.bytes += merge.bytes(&plan.timing) + (merge.nodes.len() * size_of::<Sender>()) as u64;
        self.merges.all.push(merge);
    }
}

impl Merge {
    /// One of a root alone.
    fn new(color: u8, (root, link): (u32, u32)) -> Merge {
        let nodes = vec![Node::new(root, 0, HOST)];
        Merge {
            color,
            root,
            link,
            nodes,
            buffers: Vec::new(),
            places: 0,
            feeders: Vec::new(),
            busy: Vec::new(),
            waits: Vec::new(),
            waiting: 0,
            shared: Box::default(),
            is_on: false,
            closed: false,
            asked: false,
            patience: Patience::default(),
            left: 0,
            until: 0,
            last: 0,
            armed: NEVER,
            held: 0,
        }
    }

    /// Estimated bytes.
    fn bytes(&self, timing: &Latencies) -> u64 {
        let nodes = self.nodes.len() * size_of::<Node>();
        // Some ramps have more places than stand in a buffer.
        let ramps = self.nodes.iter().filter(|node| node.has_ramp).count();
        let ramps = ramps * Ring::<3>::unopened(timing.ramp_places).bytes();
        (size_of::<Merge>()
            + nodes
            + ramps
            + self.places * (size_of::<Ring<3>>() + size_of::<u32>())) as u64
    }
}
