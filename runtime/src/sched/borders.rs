//! How the rectangle is cut into regions, of which a thread has one or several.
//!
//! In `exact` a way that leads into another thread's band goes router by router, where within one it would be
//! a channel. Whether bands pay is therefore asked of the program's ways before the run: cut where
//! the fewest long ways cross, into so many bands that what a thread has to do is least.
//!
//! Invariant: results of `exact` do not depend on regions, so this is about time only. Those of `flow` do, a little
//! (pipes into other regions are told of later, `fabric::abroad`): its regions do not depend on the number of threads.

use dflow_ir::mesh::Port;

use super::plan::Plan;
use crate::config::{Config, EngineKind};
use crate::fabric::plan::{ColorPlan, RouterPlan};
use crate::fabric::router::RAMP;

/// Routers of a way that are looked at: a longer one counts as so long.
const FAR: u32 = 2048;

/// Rows or columns that a band has at least.
const BAND: u32 = 8;

/// Rows or columns that a band of `flow` has at least, and most bands.
const FLOW_BAND: u32 = 32;
const FLOW_BANDS: u32 = 16;

/// Ways cross the borders of these if there is so much more to do: a word of such a way costs several times as much.
const FEW: u64 = 8;

/// As so many ways counts one whose words are copied: by multicasts, which there are only within a region, they go much
/// faster than through routers.
const FORKED: u64 = 32;

/// Most threads: they may drift apart by two cycles per neighbor, which must stay well below
/// the cycles that are run beyond the one that ends a run (`sched::run::SLACK`).
const MAX_THREADS: u32 = 24;

/// Divides the rectangle into regions.
pub(crate) fn divide(plan: &mut Plan, config: &Config) {
    plan.extent = extent(plan, config);
    plan.crossing = leaving(plan, plan.extent).fold(0, |colors, row| colors | 1 << row.color);
}

/// Width and height of regions.
fn extent(plan: &Plan, config: &Config) -> (u32, u32) {
    let whole = (plan.width.max(1), plan.height.max(1));
    let side = u32::from(config.region);
    match config.engine {
        EngineKind::Step => whole,
        EngineKind::Exact | EngineKind::Flow if side != 0 => (side.min(whole.0), side.min(whole.1)),
        EngineKind::Exact => banded(plan, config.threads as u32, whole),
        EngineKind::Flow => flowing(plan, whole),
    }
}

/// Threads that so many columns and rows of regions give work to: bands of whole rows or columns.
pub(crate) fn bands(threads: usize, columns: usize, rows: usize) -> usize {
    threads.clamp(1, MAX_THREADS as usize).min(columns.max(rows).max(1))
}

/// The cut that leaves a thread the least to do; of equals the one with more bands, then along the
/// longer side.
fn banded(plan: &Plan, threads: u32, whole: (u32, u32)) -> (u32, u32) {
    let work = work(plan);
    let (mut best, mut least) = (whole, work);
    let mut count = threads.min(MAX_THREADS).min(whole.0.max(whole.1) / BAND);
    while count > 1 {
        let rows = (count <= whole.1 / BAND).then(|| (whole.0, whole.1.div_ceil(count)));
        let columns = (count <= whole.0 / BAND).then(|| (whole.0.div_ceil(count), whole.1));
        let cuts = if whole.1 >= whole.0 { [rows, columns] } else { [columns, rows] };
        for cut in cuts.into_iter().flatten() {
            let share = (work + crossing(plan, cut)).div_ceil(u64::from(count));
            if share < least {
                (best, least) = (cut, share);
            }
        }
        count /= 2;
    }
    best
}

/// The regions of `flow`, on which its cycles depend a little: the same for any number of threads. As many bands
/// as are large enough that few ways cross their borders.
fn flowing(plan: &Plan, whole: (u32, u32)) -> (u32, u32) {
    let work = work(plan);
    let mut count = FLOW_BANDS;
    while count > 1 {
        let rows = (count <= whole.1 / FLOW_BAND).then(|| (whole.0, whole.1.div_ceil(count)));
        let columns = (count <= whole.0 / FLOW_BAND).then(|| (whole.0.div_ceil(count), whole.1));
        let cuts = if whole.1 >= whole.0 { [rows, columns] } else { [columns, rows] };
        let ways = |cut: (u32, u32)| Some((ways_over(plan, cut)?, cut));
        let best = cuts.into_iter().flatten().filter_map(ways).min_by_key(|&(ways, _)| ways);
        if let Some((_, cut)) = best.filter(|(ways, _)| ways * FEW <= work) {
            return cut;
        }
        count /= 2;
    }
    whole
}

/// Ways that cross the borders of regions of this extent; none if the host's words are among them, which
/// go by lines only within a region.
fn ways_over(plan: &Plan, cut: (u32, u32)) -> Option<u64> {
    let host = plan.links.iter().fold(0u32, |colors, link| colors | 1 << link.color.index());
    let count = |row: &ColorPlan| if row.forks() { FORKED } else { 1 };
    leaving(plan, cut)
        .try_fold(0, |ways, row| (host >> row.color & 1 == 0).then(|| ways + count(row)))
}

/// The color of each way that crosses a border of regions of this extent, whatever the switches, as the router
/// before the border has it.
fn leaving(plan: &Plan, (across, down): (u32, u32)) -> impl Iterator<Item = &ColorPlan> {
    let rows = (down..plan.height).step_by(down as usize);
    let columns = (across..plan.width).step_by(across as usize);
    let rows = rows.flat_map(|y| {
        (0..plan.width).flat_map(move |x| [((x, y - 1), Port::South), ((x, y), Port::North)])
    });
    let columns = columns.flat_map(|x| {
        (0..plan.height).flat_map(move |y| [((x - 1, y), Port::East), ((x, y), Port::West)])
    });
    rows.chain(columns).flat_map(|(at, port)| {
        let leaves = move |row: &&ColorPlan| row.any_tx >> port as u8 & 1 != 0;
        router(plan, at).colors.iter().filter(leaves)
    })
}

/// What there is to do on one thread: PEs that run something, and ways that begin at one.
fn work(plan: &Plan) -> u64 {
    let begins = |index: &u32| {
        let colors = plan.routers[*index as usize].colors.iter();
        colors.filter(|row| row.rx[0] == 1 << RAMP).count() as u64
    };
    let runs = |&program: &u16| {
        let program = plan.programs.get(usize::from(program));
        u64::from(program.is_some_and(|program| !program.tasks.is_empty()))
    };
    plan.router_of.iter().map(begins).sum::<u64>() + plan.program_of.iter().map(runs).sum::<u64>()
}

/// Routers of all ways that would be channels but for the borders that regions of this extent have.
fn crossing(plan: &Plan, (across, down): (u32, u32)) -> u64 {
    let mut routers = 0;
    for y in (down..plan.height).step_by(down as usize) {
        for x in 0..plan.width {
            routers += over(plan, (x, y - 1), Port::South) + over(plan, (x, y), Port::North);
        }
    }
    for x in (across..plan.width).step_by(across as usize) {
        for y in 0..plan.height {
            routers += over(plan, (x - 1, y), Port::East) + over(plan, (x, y), Port::West);
        }
    }
    routers
}

/// Routers of the ways that leave a PE by a port and would be channels.
fn over(plan: &Plan, at: (u32, u32), port: Port) -> u64 {
    let ways = router(plan, at).colors.iter().filter(|row| row.tx[0] == 1 << port as u8);
    ways.filter_map(|row| length(plan, at, row.color)).map(u64::from).sum()
}

/// Links of the way of a color through a PE, from core to core, if all its routers only hand on.
fn length(plan: &Plan, at: (u32, u32), color: u8) -> Option<u32> {
    // Back to where its words come from, then on to where they go.
    let (mut here, mut back) = (at, 0);
    let mut from = source(plan, here, color)?;
    while from != RAMP && back < FAR {
        here = plan.neighbor(here.0, here.1, Port::ALL[usize::from(from)])?;
        let before = source(plan, here, color)?;
        if router(plan, here).hands_on(color, before).ok()?.0 != from ^ 1 {
            return None;
        }
        (from, back) = (before, back + 1);
    }
    (here, from) = (at, source(plan, at, color)?);
    let mut on = 0;
    loop {
        let (port, _) = router(plan, here).hands_on(color, from).ok()?;
        if port == RAMP || on == FAR {
            return Some(back + on);
        }
        here = plan.neighbor(here.0, here.1, Port::ALL[usize::from(port)])?;
        (from, on) = (port ^ 1, on + 1);
    }
}

/// The first port by which a router takes a color.
fn source(plan: &Plan, at: (u32, u32), color: u8) -> Option<u8> {
    let ports = router(plan, at).row(color)?.rx[0];
    (ports != 0).then(|| ports.trailing_zeros() as u8)
}

fn router(plan: &Plan, at: (u32, u32)) -> &RouterPlan {
    &plan.routers[plan.router_of[plan.number(at.0, at.1)] as usize]
}
