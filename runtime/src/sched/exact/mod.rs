//! The same cycles as `step`, looking only at what has been woken.
//!
//! Regions run on one thread or several; each thread owns a band of regions and keeps in step
//! with its neighbours by promises ([`worker`]).

pub(crate) mod sync;
pub(crate) mod worker;

use super::region::Region;
use super::run::Run;
use crate::config;
use crate::pe::code::Code;
use sync::Sync;
use worker::Worker;

/// Runs all regions up to the run's stop; regions are in the order of their numbers.
pub(crate) fn run<C: Code>(run: &Run<'_, C>, regions: &mut [Region<C>], threads: usize) {
    let owners = bands(run, threads);
    let count = owners.iter().max().map_or(1, |&last| last + 1);
    let sync = Sync::new(count);
    let mut workers: Vec<Worker<'_, '_, C>> =
        (0..count).map(|id| Worker::new(run, &sync, &owners, id)).collect();
    for (region, &owner) in regions.iter_mut().zip(&owners) {
        workers[owner].add(region);
    }
    let mut workers = workers.into_iter();
    let Some(mut first) = workers.next() else { return };
    std::thread::scope(|scope| {
        for mut worker in workers {
            scope.spawn(move || run.guarded(|| worker.run()));
        }
        run.guarded(|| first.run());
    });
    // What was still under way when the threads stopped.
    for message in sync.take_all() {
        let region = &mut regions[worker::region_of(&message) as usize];
        region.accept(run.plan, run.code, message);
    }
}

/// Thread of each region: bands of whole rows or columns of regions, so that a thread has at
/// most two neighbours.
fn bands<C: Code>(run: &Run<'_, C>, threads: usize) -> Vec<usize> {
    let (columns, regions) = (run.plan.columns() as usize, run.plan.regions() as usize);
    let rows = regions.checked_div(columns).unwrap_or(0);
    let along = rows.max(columns).max(1);
    let threads = config::bands(threads, columns, rows);
    let line = |region: usize| if rows >= columns { region / columns } else { region % columns };
    (0..regions).map(|region| line(region) * threads / along).collect()
}
