//! Where the words of a multicast stand when nothing moves any more: a router passes a word when all that it leads to
//! have a place for it.

use super::after;
use crate::fabric::channel::Route;
use crate::fabric::ring::Slot;
use crate::fabric::router::RAMP;
use crate::pe::code::Code;
use crate::pe::core::bits;
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// A router of a multicast.
struct Node {
    pe: u32,
    from: u8,
    /// The one before it, which comes first; the first one stands before itself.
    before: usize,
    /// In how many ways it hands words on.
    outputs: u32,
    /// The pipe to its core, and the one that counts the words on the link to it: that of the first output.
    pipe: Option<u32>,
    counts: u32,
    /// Number of the first word that it cannot pass.
    passed: u64,
}

impl<C: Code> Region<C> {
    /// Puts the words of a multicast, of which none can move any more, where they stand; none of them if a core has
    /// taken some that routers would have kept from it.
    pub(super) fn settle_multicast(
        &mut self,
        plan: &Plan,
        code: &C,
        first: u32,
        t: u64,
    ) -> Option<()> {
        let way = self.pipes[first as usize].route();
        let end = self.pipes[first as usize].sent_before();
        let mut nodes = self.nodes_of(plan, first)?;
        self.find_passed(plan, code, &mut nodes, end);
        let free = self.sender_of(&way).map_or(0, |(core, queue)| {
            let places = plan.programs[usize::from(core.at.program)].outputs[queue].places;
            places as usize - core.outputs.get(queue).map_or(0, |output| output.ring.len())
        });
        let up = end.min(nodes[0].passed + u64::from(plan.timing.ramp_places));
        let into = |at: usize| if at == 0 { up } else { nodes[nodes[at].before].passed };
        let ahead = (0..nodes.len()).any(|at| {
            let node = &nodes[at];
            node.pipe.is_some_and(|id| self.taken_of(id) > node.passed)
                || self.taken_of(node.counts) > into(at)
        });
        if ahead || end - up > free as u64 {
            return None;
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::MulticastSettled);
        // Of the core that has taken the fewest all are there.
        let pipes: Vec<u32> = nodes.iter().filter_map(|node| node.pipe).collect();
        let all = pipes.iter().copied().max_by_key(|&id| self.pipes[id as usize].held())?;
        let words: Vec<u32> = self.pipes[all as usize].words().collect();
        let slot = |number: u64| {
            let payload = words[words.len() - (end - number) as usize];
            Slot { stamp: t, payload, color: way.color, ..Slot::default() }
        };
        for (at, node) in nodes.iter().enumerate() {
            if at != 0 {
                self.stats.hops += into(at) - self.taken_of(node.counts);
            }
            self.stats.copies -= u64::from(node.outputs - 1) * (end - node.passed);
            let standing = (node.passed..into(at)).map(slot);
            self.fill_router(plan, (node.pe, node.from), 0, &mut standing.into_iter());
        }
        for Node { pipe, passed, .. } in &nodes {
            let Some(id) = *pipe else { continue };
            for number in self.taken_of(id)..*passed {
                self.settle_in_queue(plan, code, id, slot(number));
            }
        }
        pipes.into_iter().for_each(|id| self.drop_pipe(id));
        self.look_again(&way);
        self.fill_source(plan, &way, (up..end).map(slot).collect(), t);
        Some(())
    }

    /// Number of the first word of a pipe that is still in it.
    fn taken_of(&self, id: u32) -> u64 {
        let pipe = &self.pipes[id as usize];
        pipe.sent_before() - u64::from(pipe.held())
    }

    /// A word of a pipe goes into the input queue at its end.
    pub(super) fn settle_in_queue(&mut self, plan: &Plan, code: &C, id: u32, word: Slot) {
        let Route { dest, number, queue, .. } = self.pipes[id as usize].route();
        let Some(queue) = queue.map(usize::from) else { return };
        let word = after(word, &self.core(plan, code, dest).inputs[queue].ring);
        self.core(plan, code, dest).take_in(queue, word);
        self.delivered(number, queue, word);
    }

    /// How far each router can pass words of which `end` have been sent.
    fn find_passed(&mut self, plan: &Plan, code: &C, nodes: &mut [Node], end: u64) {
        for at in (0..nodes.len()).rev() {
            let mut passed = nodes[at].passed.min(end);
            if let Some(id) = nodes[at].pipe {
                let (route, taken) = (self.pipes[id as usize].route(), self.taken_of(id));
                let free = route.queue.map_or(0, |queue| {
                    let ring = &self.core(plan, code, route.dest).inputs[usize::from(queue)].ring;
                    ring.places() - ring.len()
                });
                passed = passed.min(taken + free as u64);
            }
            nodes[at].passed = passed;
            let before = nodes[at].before;
            if before != at {
                let room = passed + u64::from(plan.timing.link_places);
                nodes[before].passed = nodes[before].passed.min(room);
            }
        }
        // None passes what has not come to it.
        for at in 1..nodes.len() {
            nodes[at].passed = nodes[at].passed.min(nodes[nodes[at].before].passed);
        }
    }

    /// The routers of a multicast, each behind the one that it has its words from.
    fn nodes_of(&self, plan: &Plan, first: u32) -> Option<Vec<Node>> {
        let way = self.pipes[first as usize].route();
        let pipes: Vec<u32> = (0..).map_while(|before| self.pipe_at(first, before)).collect();
        let to =
            |pe: u32| pipes.iter().copied().find(|&id| self.pipes[id as usize].route().dest == pe);
        let mut nodes: Vec<Node> = Vec::new();
        let mut firsts = Vec::new();
        let mut open = vec![(way.source, RAMP, 0, false)];
        while let Some((pe, from, before, is_first)) = open.pop() {
            let at = nodes.len();
            firsts.extend(is_first.then_some(at));
            let ports = self.table_at(plan, pe).copies(way.color, from)?;
            let pipe = if ports >> RAMP & 1 != 0 { Some(to(pe)?) } else { None };
            nodes.push(Node {
                pe,
                from,
                before,
                outputs: ports.count_ones(),
                pipe,
                counts: pipe.unwrap_or(first),
                passed: u64::MAX,
            });
            for port in bits(u64::from(ports) & !(1 << RAMP)) {
                let is_first = port as u32 == ports.trailing_zeros();
                open.push((self.near(plan, pe, port as u8).ok()?, port as u8 ^ 1, at, is_first));
            }
            if nodes.len() > self.routers.len() {
                return None;
            }
        }
        // Those behind others come after them.
        for at in firsts.into_iter().rev() {
            let (before, counts) = (nodes[at].before, nodes[at].counts);
            nodes[before].counts = counts;
        }
        Some(nodes)
    }
}
