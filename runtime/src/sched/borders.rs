//! How the rectangle is cut into regions, a band for each thread.
//!
//! A way that leads into another thread's band goes router by router, where within one it would be
//! a channel. Whether bands pay is therefore asked of the program's ways before the run: cut where
//! the fewest long ways cross, into so many bands that what a thread has to do is least.
//!
//! Invariant: results do not depend on regions, so this is about time only.

use dflow_ir::mesh::Port;

use super::plan::Plan;
use crate::config::{Config, EngineKind};
use crate::fabric::plan::RouterPlan;
use crate::fabric::router::RAMP;

/// Routers of a way that are looked at: a longer one counts as so long.
const FAR: u32 = 2048;

/// Rows or columns that a band has at least.
const BAND: u32 = 8;

/// Most threads: they may drift apart by two cycles per neighbour, which must stay well below
/// the cycles that are run beyond the one that ends a run (`sched::run::SLACK`).
const MAX_THREADS: u32 = 24;

/// Width and height of regions.
pub(crate) fn extent(plan: &Plan, config: &Config) -> (u32, u32) {
    let whole = (plan.width.max(1), plan.height.max(1));
    let side = u32::from(config.region);
    match config.engine {
        EngineKind::Step | EngineKind::Flow => whole,
        EngineKind::Exact if side != 0 => (side.min(whole.0), side.min(whole.1)),
        EngineKind::Exact => banded(plan, config.threads as u32, whole),
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
        here = plan.neighbour(here.0, here.1, Port::ALL[usize::from(from)])?;
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
        here = plan.neighbour(here.0, here.1, Port::ALL[usize::from(port)])?;
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
