//! Temporaries that are never in use together share memory.
//!
//! A temporary is written as a whole before it is read, each time that control comes by, and is in use until what was
//! read from it last, or to the end of the loop in which that is if the loop begins in between. Temporaries that a
//! variable leads to, whose address somebody got hold of, or that an operation may use when the function has ended,
//! have memory of their own; so have variables, which keep from one round of a loop to the next what was written.

use std::collections::{BTreeMap, BTreeSet};

use super::effects::World;
use super::events::Event;
use super::region::{Spans, Uses};
use super::roots::Root;
use crate::typed::{ExprKind, Func, LocalIdx, LocalKind};

/// Whether a function has temporaries that might share.
pub(super) fn may_share(func: &Func) -> bool {
    (0..)
        .map(LocalIdx)
        .zip(&func.locals)
        .filter(|&(local, _)| is_temporary(func, local))
        .nth(1)
        .is_some()
}

fn is_temporary(func: &Func, local: LocalIdx) -> bool {
    let local = &func.locals[local.0 as usize];
    local.name.is_none() && matches!(local.kind, LocalKind::Memory { .. })
}

/// Which locals of a function are to lie in the memory of another, which comes before them.
pub(super) fn shared(world: &World<'_>, func: usize, typed: &Func) -> Vec<(LocalIdx, LocalIdx)> {
    let mut ranges = ranges(world, func, typed);
    ranges.sort_unstable();
    // Temporaries that lie in one place, and until when that is in use.
    let mut places: Vec<(Vec<LocalIdx>, usize)> = Vec::new();
    for (first, last, local) in ranges {
        match places.iter_mut().find(|(_, until)| *until < first) {
            Some((locals, until)) => {
                locals.push(local);
                *until = last;
            }
            None => places.push((vec![local], last)),
        }
    }
    let within = places.into_iter().flat_map(|(mut locals, _)| {
        locals.sort_unstable();
        let place = locals[0];
        locals.into_iter().skip(1).map(move |local| (local, place))
    });
    within.collect()
}

/// From where to where the temporaries of a function that may share are in use.
fn ranges(world: &World<'_>, func: usize, typed: &Func) -> Vec<(usize, usize, LocalIdx)> {
    let seen = &world.funcs[func];
    let spans = Spans::of(&seen.events);
    let mut uses: BTreeMap<LocalIdx, (usize, Uses)> = BTreeMap::new();
    let mut kept: BTreeSet<Root> = world.lent(seen);
    for (at, event) in seen.events.iter().enumerate() {
        let (Event::Reach(leaf) | Event::Leak(leaf)) = event else { continue };
        match *leaf.kind {
            ExprKind::LocalAddress { local, .. } if is_temporary(typed, local) => {
                uses.entry(local).or_insert((at, Uses::default())).1.last = at;
            }
            // A variable may lead there in the next round of a loop, too.
            ExprKind::Local(_) => kept.extend(seen.flow.roots(leaf)),
            _ => {}
        }
    }
    let own = |local: LocalIdx| World::is_leaked(seen, local) || kept.contains(&Root::Local(local));
    let uses = uses.into_iter().filter(|&(local, _)| !own(local));
    uses.map(|(local, (first, uses))| (first, spans.end(first, &uses), local)).collect()
}

/// Puts them there.
pub(super) fn apply(func: &mut Func, shared: &[(LocalIdx, LocalIdx)]) {
    for &(local, place) in shared {
        let kind =
            std::mem::replace(&mut func.locals[local.0 as usize].kind, LocalKind::Within(place));
        if let (
            LocalKind::Memory { size, align },
            LocalKind::Memory { size: all, align: strictest },
        ) = (kind, &mut func.locals[place.0 as usize].kind)
        {
            *all = size.max(*all);
            *strictest = align.max(*strictest);
        }
    }
}
