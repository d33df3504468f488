//! Where times decide what comes first, of all regions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use dflow_ir::mesh::Color;

use super::plan::Plan;
use super::region::Region;
use crate::fabric::plan::RouterPlan;
use crate::order::{Order, OrderPlace};
use crate::pe::code::Code;
use crate::pe::core::bits;
use crate::pe::order::Place;

/// The places that are known, ordered; the first of several.
pub(super) fn places<C: Code>(plan: &Plan, regions: &[Region<C>]) -> Vec<OrderPlace> {
    // Instances of a program are one to people.
    let name = |program: usize, task: usize| {
        let of = &plan.programs[program];
        (of.name.as_str(), of.tasks[task].name.as_str())
    };
    let tasks = regions.iter().flat_map(|region| region.orders.places());
    let tasks = firsts(tasks.map(|(program, task, place)| (name(program, task), (place, program))));
    let tasks = tasks.into_iter().map(|((program, task), (place, number))| {
        let (program, task) = (program.to_owned(), task.to_owned());
        let Place { cycle, pe, other } = place;
        let other = plan.programs[number].tasks.get(usize::from(other));
        let what = Order::Tasks { program, task, other: other.map(|it| it.name.clone()) };
        OrderPlace { what, pe: plan.coord(pe as usize), cycle: Some(cycle) }
    });
    let clocks = regions.iter().flat_map(|region| region.orders.clocks());
    let clocks = firsts(clocks.map(|(program, task, place)| (name(program, task), place)));
    let clocks = clocks.into_iter().map(|((program, task), (cycle, pe))| {
        let what = Order::Clock { program: program.to_owned(), task: task.to_owned() };
        OrderPlace { what, pe: plan.coord(pe as usize), cycle: Some(cycle) }
    });
    let may_meet: Vec<u32> = plan.routers.iter().map(RouterPlan::meetings).collect();
    let met = regions.iter().flat_map(|region| region.meetings(plan, &may_meet));
    let several = regions.iter().flat_map(|region| region.orders.senders());
    let meetings = firsts(met.chain(several));
    let meetings = meetings.into_iter().filter_map(|(color, pe)| {
        let what = Order::Senders { color: Color::new(color)? };
        Some(OrderPlace { what, pe: plan.coord(pe as usize), cycle: None })
    });
    let commands = firsts(regions.iter().flat_map(|region| region.orders.commands()));
    let commands = commands.into_iter().filter_map(|(color, (cycle, pe))| {
        let what = Order::Commands { color: Color::new(color)? };
        Some(OrderPlace { what, pe: plan.coord(pe as usize), cycle: Some(cycle) })
    });
    let mut all: Vec<OrderPlace> = tasks.chain(clocks).chain(meetings).chain(commands).collect();
    all.sort();
    all
}

/// The least value of each key.
fn firsts<K: Ord, V: Ord>(all: impl Iterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut firsts = BTreeMap::new();
    for (key, value) in all {
        match firsts.entry(key) {
            Entry::Vacant(entry) => drop(entry.insert(value)),
            Entry::Occupied(mut entry) if value < *entry.get() => drop(entry.insert(value)),
            Entry::Occupied(_) => {}
        }
    }
    firsts
}

impl<C: Code> Region<C> {
    /// Colors, and numbers of PEs in whose routers words of them, or of those that are swapped with them, have come from
    /// several sides, as far as these may meet there: colors as bits, by router plan.
    fn meetings(&self, plan: &Plan, may_meet: &[u32]) -> Vec<(u8, u32)> {
        let configures = plan.programs.iter().any(|program| program.configures);
        let is_written = configures || self.rewritten != 0;
        if !is_written && may_meet.iter().all(|&colors| colors == 0) {
            return Vec::new();
        }
        let at = |pe: u32| {
            let number = self.number(plan, pe);
            (number as u32, may_meet[plan.router_of[number] as usize])
        };
        let mut found = Vec::new();
        for (pe, router) in (0..).zip(&self.routers) {
            let (number, colors) = at(pe);
            let Some(router) = router.as_deref().filter(|_| is_written || colors != 0) else {
                continue;
            };
            let table = router.table(plan);
            let met = bits(table.meetings().into()).map(|color| color as u8).filter(|&color| {
                let partner = if table.is_swapped(color) { router.sides_of(color ^ 1) } else { 0 };
                router.sides_of(color) + partner > 1
            });
            found.extend(met.map(|color| (color, number)));
        }
        for (color, pe) in self.gathers.passed() {
            let (number, colors) = at(pe);
            if colors >> color & 1 != 0 {
                found.push((color, number));
            }
        }
        found
    }
}
