//! From where a value is read to where it is used last.

use std::collections::{BTreeMap, BTreeSet};

use super::effects::{Seen, World};
use super::events::Event;
use super::roots::Root;
use crate::typed::{Expr, ExprKind, HoldIdx, LocalIdx};

/// The uses of a hold.
#[derive(Clone, Copy, Default)]
pub(super) struct Uses {
    count: u32,
    pub(super) last: usize,
    /// Its address became a value: it may be used to the end of the list that it stands in.
    leaked: bool,
}

/// The values of a function that need a copy.
pub(super) fn copied(world: &World<'_>, func: usize) -> BTreeSet<HoldIdx> {
    let seen = &world.funcs[func];
    let holds = seen.events.iter().enumerate().filter_map(|(at, event)| match *event {
        Event::Hold { hold, source } => Some((at, hold, source)),
        _ => None,
    });
    let mut holds = holds.peekable();
    if holds.peek().is_none() {
        return BTreeSet::new();
    }
    let uses = uses(seen);
    let spans = Spans::of(&seen.events);
    let lent = world.lent(seen);
    let needs = holds.filter(|&(at, hold, source)| {
        if lent.contains(&Root::Held(hold)) {
            return false;
        }
        let Some(uses) = uses.get(&hold) else { return false };
        let end = spans.end(at, uses);
        needs_copy(world, seen, source, uses, &seen.events[at + 1..=end])
    });
    needs.map(|(_, hold, _)| hold).collect()
}

fn uses(seen: &Seen<'_>) -> BTreeMap<HoldIdx, Uses> {
    let mut all: BTreeMap<HoldIdx, Uses> = BTreeMap::new();
    for (at, event) in seen.events.iter().enumerate() {
        let (leaf, leaked) = match event {
            Event::Reach(leaf) => (leaf, false),
            Event::Leak(leaf) => (leaf, true),
            _ => continue,
        };
        if !matches!(*leaf.kind, ExprKind::Local(_) | ExprKind::Held { .. }) {
            continue;
        }
        for root in seen.flow.roots(leaf) {
            if let Root::Held(hold) = root {
                let uses = all.entry(hold).or_default();
                uses.count += 1;
                uses.last = at;
                uses.leaked |= leaked;
            }
        }
    }
    all
}

/// Loops and lists by their first and last event, in the order of the first.
pub(super) struct Spans {
    loops: Vec<(usize, usize)>,
    lists: Vec<(usize, usize)>,
}

impl Spans {
    pub(super) fn of(events: &[Event<'_>]) -> Spans {
        let (mut loops, mut lists) = (Vec::new(), Vec::new());
        let (mut open_loops, mut open_lists) = (Vec::new(), Vec::new());
        for (at, event) in events.iter().enumerate() {
            match event {
                Event::Loop => open_loops.push(at),
                Event::List => open_lists.push(at),
                Event::EndLoop => loops.extend(open_loops.pop().map(|from| (from, at))),
                Event::EndList => lists.extend(open_lists.pop().map(|from| (from, at))),
                _ => {}
            }
        }
        loops.sort_unstable();
        lists.sort_unstable();
        Spans { loops, lists }
    }

    /// The last event at which a hold that is read at an event may be in use. A loop that begins in between does all
    /// that is in it once more.
    pub(super) fn end(&self, at: usize, uses: &Uses) -> usize {
        let mut end = uses.last.max(at);
        if uses.leaked {
            let around = self.lists.iter().filter(|&&(from, to)| from < at && at < to);
            end = around.map(|&(_, to)| to).min().unwrap_or(end).max(end);
        }
        for &(from, to) in &self.loops {
            if at < from && from <= end {
                end = end.max(to);
            }
        }
        end
    }
}

/// Whether something between the reading of a value and its last use changes it, or the way to it.
fn needs_copy(
    world: &World<'_>,
    seen: &Seen<'_>,
    source: &Expr,
    uses: &Uses,
    events: &[Event<'_>],
) -> bool {
    let way = Way::to(seen, source);
    if way.once && uses.count > 1 {
        return true;
    }
    let hit = |written: &Root| way.roots.iter().any(|&root| world.overlap(seen, *written, root));
    events.iter().any(|event| match *event {
        Event::Set(local, _) => way.locals.contains(&local),
        Event::Write(place) => seen.flow.roots(place).iter().any(hit),
        Event::WriteGlobal(global) => hit(&Root::Global(global)),
        Event::WriteAny => hit(&Root::Unknown),
        Event::Call(func, _) => world.writes(Some(func)).iter().any(hit),
        Event::CallAny => world.writes(None).iter().any(hit),
        Event::Lend(_)
        | Event::Hold { .. }
        | Event::Reach(_)
        | Event::Leak(_)
        | Event::Loop
        | Event::EndLoop
        | Event::List
        | Event::EndList => false,
    })
}

/// What an address is made of.
#[derive(Default)]
struct Way {
    /// Where it leads, and memory that is read on the way.
    roots: BTreeSet<Root>,
    locals: BTreeSet<LocalIdx>,
    /// Something on the way gives another value each time.
    once: bool,
}

impl Way {
    fn to<'a>(seen: &Seen<'a>, source: &'a Expr) -> Way {
        let mut way = Way { roots: seen.flow.roots(source), ..Way::default() };
        let mut open = vec![source];
        while let Some(expr) = open.pop() {
            match &*expr.kind {
                ExprKind::Local(local) => {
                    way.locals.insert(*local);
                }
                ExprKind::Load { address, .. } => {
                    way.roots.extend(seen.flow.roots(address));
                    open.push(address);
                }
                ExprKind::Unary(_, part) | ExprKind::Convert(_, part) => open.push(part),
                ExprKind::Binary(_, lhs, rhs) | ExprKind::Bound(_, lhs, rhs) => {
                    open.extend([lhs, rhs])
                }
                ExprKind::Held { source, .. } => open.push(source),
                ExprKind::Const(_)
                | ExprKind::Slot(_)
                | ExprKind::GlobalAddress { .. }
                | ExprKind::LocalAddress { .. }
                | ExprKind::FuncAddress(_) => {}
                _ => way.once = true,
            }
        }
        way
    }
}
