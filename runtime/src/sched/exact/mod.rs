//! The same cycles as `step`, looking only at what has been woken.
//!
//! Regions run on one thread or several; each thread owns a band of regions and keeps in step
//! with its neighbors by promises ([`worker`]).

pub(crate) mod pace;
mod share;
pub(crate) mod sync;
pub(crate) mod worker;

use super::borders;
use super::region::Region;
use super::run::{Run, Told};
use crate::pe::code::Code;
use pace::{Ended, Gauge, Pace};
use sync::Sync;
use worker::Worker;

/// Runs all regions up to the run's stop; regions are in the order of their numbers.
pub(crate) fn run<C: Code>(
    run: &Run<'_, C>,
    regions: &mut [Region<C>],
    threads: usize,
    pace: &mut Pace,
) {
    let flow = regions.iter().any(|region| region.flow);
    let bands = bands(run, threads, flow);
    let count = bands.iter().max().map_or(1, |&last| last + 1);
    let one = vec![0; bands.len()];
    loop {
        run.hold(Told::of(&*regions));
        let gauge = pace.gauge(count);
        let owners = if pace.together { &bands } else { &one };
        let Some(ended) = stint(run, regions, (owners, &bands), gauge) else { break };
        pace.turn(ended);
    }
}

/// Runs regions on the threads that own them; none if the run is over, else what became of the stint.
/// `bands`: who owns them where all threads work.
fn stint<C: Code>(
    run: &Run<'_, C>,
    regions: &mut [Region<C>],
    (owners, bands): (&[usize], &[usize]),
    gauge: Gauge,
) -> Option<Ended> {
    let count = owners.iter().max().map_or(1, |&last| last + 1);
    let flow = regions.iter().any(|region| region.flow);
    let sync = Sync::new(count, flow, run.plan.timing.lead());
    let mut workers: Vec<Worker<'_, '_, C>> =
        (0..count).map(|id| Worker::new(run, &sync, (owners, bands), id, gauge.clone())).collect();
    for (region, &owner) in regions.iter_mut().zip(owners) {
        workers[owner].add(region);
    }
    let mut workers = workers.into_iter();
    let mut first = workers.next()?;
    std::thread::scope(|scope| {
        for (mut worker, id) in workers.zip(1..) {
            let work = move || run.guarded(|| worker.run());
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                // The computer has no thread left: one does everything.
                sync.end_slow_stint();
                sync.leave(id);
            }
        }
        run.guarded(|| first.run());
    });
    let ended = match (sync.is_slow(), first.has_paid()) {
        (true, _) => Ended::Slow,
        (false, true) => Ended::Paid,
        (false, false) => Ended::Unpaid,
    };
    // What was still under way when the threads stopped.
    for message in sync.take_all() {
        let region = &mut regions[worker::region_of(&message) as usize];
        region.accept(run.plan, run.code, message);
    }
    (sync.is_over() && !run.aborted()).then_some(ended)
}

/// Thread of each region: bands of whole rows or columns of regions, so that a thread has at
/// most two neighbors. Those of `flow`, where work moves over the mesh in waves, are dealt in turn.
fn bands<C: Code>(run: &Run<'_, C>, threads: usize, flow: bool) -> Vec<usize> {
    let (columns, regions) = (run.plan.columns() as usize, run.plan.regions() as usize);
    let rows = regions.checked_div(columns).unwrap_or(0);
    let along = rows.max(columns).max(1);
    let threads = borders::bands(threads, columns, rows);
    let line = |region: usize| if rows >= columns { region / columns } else { region % columns };
    let band = |line: usize| if flow { line % threads } else { line * threads / along };
    (0..regions).map(|region| band(line(region))).collect()
}
