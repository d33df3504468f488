//! Which routers are a leap.

use std::collections::VecDeque;

use dflow_ir::mesh::Port;

use super::{Leap, Place};
use crate::fabric::router::RAMP;
use crate::pe::code::Code;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Why;

/// What is known of a router.
const NO_LEAP: u32 = 1;
const FIRST: u32 = 2;

impl<C: Code> Region<C> {
    /// Where a router stands in the leap by which a color leaves it over a link, if there is one.
    pub(in crate::fabric) fn place_in_leap(
        &mut self,
        plan: &Plan,
        pe: u32,
        color: u8,
        port: u8,
    ) -> Place {
        let count = self.routers.len();
        let bytes = &mut self.bytes;
        let nodes = self.leaps.nodes.entry(color).or_insert_with(|| {
            *bytes += (count * size_of::<u32>()) as u64;
            vec![0; count].into()
        });
        let mut known = nodes[pe as usize];
        if known == 0 {
            let mut walked = vec![pe];
            let leap = self.find_leap(plan, &mut walked, (color, port));
            known = leap.map_or(NO_LEAP, |leap| leap + FIRST);
            // What ends the way of one ends that of all behind it.
            if let (None, Some(nodes)) = (leap, self.leaps.nodes.get_mut(&color)) {
                walked.into_iter().for_each(|pe| nodes[pe as usize] = known);
            }
        }
        let Some(leap) = known.checked_sub(FIRST) else { return Place::NONE };
        let Leap { root, step, port: from, .. } = self.leaps.all[leap as usize];
        // Nodes may lie in either direction of the root.
        let node = (pe.wrapping_sub(root) as i32) / step as i32;
        let leaps = from ^ 1 == port && node != 0;
        if leaps { Place { leap, node: node as u32 } } else { Place::NONE }
    }

    /// The leap that a router is in, which is made; none if it is in none. Routers that were looked
    /// at follow the one in `walked`.
    fn find_leap(
        &mut self,
        plan: &Plan,
        walked: &mut Vec<u32>,
        (color, onward): (u8, u8),
    ) -> Option<u32> {
        let from = onward ^ 1;
        let mut root = *walked.first()?;
        if !self.only_hands_on(plan, root, (color, from)) {
            return None;
        }
        let is_border = loop {
            match self.near(plan, root, onward) {
                Ok(next) => root = next,
                // The last router before another region ends it.
                Err(Why::Region) => break true,
                Err(_) => return None,
            }
            if !self.only_hands_on(plan, root, (color, from)) {
                break false;
            }
            walked.push(root);
            // Its way is known to end in no leap.
            if self.leaps.nodes.get(&color).is_some_and(|known| known[root as usize] == NO_LEAP) {
                return None;
            }
        };
        if is_border && walked.len() == 1 {
            // The one that asks would be the root, and is out on a visit: those behind it will find the leap.
            walked.clear();
            return None;
        }
        // A link of the host does not matter: the root's buffer has words of its leap alone, and they
        // leave the root as they do without one.
        if self.is_odd(plan, root, color) {
            return None;
        }
        let first = self.near(plan, root, from).ok()?;
        let (mut last, mut nodes) = (first, 1);
        while let Ok(next) = self.near(plan, last, from)
            && self.only_hands_on(plan, next, (color, from))
        {
            (last, nodes) = (next, nodes + 1);
        }
        let is_switched =
            |pe| self.table_at(plan, pe).row(color).is_some_and(|it| it.positions > 1);
        let step = first.wrapping_sub(root);
        let all = (1..=nodes).map(|node: u32| root.wrapping_add(node.wrapping_mul(step)));
        // What has no switches is a pipe.
        if nodes < 2 || !all.clone().any(is_switched) {
            return None;
        }
        let id = self.new_leap(plan, (color, from), root, (step, nodes));
        if let Some(known) = self.leaps.nodes.get_mut(&color) {
            all.chain(is_border.then_some(root)).for_each(|pe| known[pe as usize] = id + FIRST);
        }
        Some(id)
    }

    /// Makes a leap.
    fn new_leap(
        &mut self,
        plan: &Plan,
        (color, port): (u8, u8),
        root: u32,
        (step, nodes): (u32, u32),
    ) -> u32 {
        let id = self.leaps.all.len() as u32;
        let router = self.router(plan, root);
        let lane = router.lane_for(plan, color, port, plan.timing.link_places);
        router.end_leap(lane, Place { leap: id, node: 0 });
        let stops = vec![0; nodes as usize / 64 + 1].into();
        let mut leap = Leap {
            color,
            port,
            lane,
            root,
            step,
            nodes,
            stops,
            queue: VecDeque::new(),
            last: 0,
            packets: VecDeque::new(),
            waiting: Vec::new(),
        };
        for node in 1..=nodes {
            let stops = self.stops_at(plan, leap.pe(node), (color, port));
            leap.set_stop(node, stops);
        }
        self.bytes += (size_of::<Leap>() + size_of_val(&*leap.stops)) as u64;
        self.leaps.all.push(leap);
        id
    }

    /// Whether a router does no more with a color than to hand it on, from the core or from one
    /// side, to the other side.
    fn only_hands_on(&self, plan: &Plan, pe: u32, (color, from): (u8, u8)) -> bool {
        let Some(row) = self.table_at(plan, pe).row(color) else { return false };
        let positions = ..usize::from(row.positions);
        !self.is_odd(plan, pe, color)
            && !self.is_linked(plan, pe, color)
            && row.rx[positions].iter().all(|&rx| rx == 1 << from || rx == 1 << RAMP)
            && row.tx[positions].iter().all(|&tx| tx == 1 << (from ^ 1))
    }

    /// Whether more than switches has a say in what a router does with a color.
    fn is_odd(&self, plan: &Plan, pe: u32, color: u8) -> bool {
        let row = plan.program(self.number(plan, pe)).and(self.table_at(plan, pe).fixed(color));
        row.is_none_or(|row| row.teardown || row.filter.is_some())
    }

    /// Whether a router has a link of the host for a color.
    fn is_linked(&self, plan: &Plan, pe: u32, color: u8) -> bool {
        let number = self.number(plan, pe);
        let linked = |port: &Port| plan.link(number, *port, color).is_some();
        plan.has_links(number) && Port::ALL.iter().any(linked)
    }

    /// Whether words of a color that come from one side stop at a router.
    pub(super) fn stops_at(&self, plan: &Plan, pe: u32, (color, from): (u8, u8)) -> bool {
        match self.routers[pe as usize].as_deref() {
            Some(router) => router.stops(plan, color, from),
            None => {
                let row = self.table_at(plan, pe).row(color);
                row.is_none_or(|row| row.rx[usize::from(row.initial)] != 1 << from)
            }
        }
    }
}
