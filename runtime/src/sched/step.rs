//! The definition of time: every router and every core in every cycle.
//!
//! Plain on purpose: no wakes decide anything, nothing is skipped. It ends when a cycle passes
//! in which nothing happened and nothing is stamped with a later cycle.

use super::region::Region;
use super::run::{Run, Told, VISITS};
use crate::pe::code::Code;
use crate::profile::Work;

/// How often limits are looked at, in PEs looked at.
const CHECK: usize = 1 << 18;

/// Runs from cycle `from` on; whether nothing can happen any more.
pub(crate) fn run<C: Code>(run: &Run<'_, C>, region: &mut Region<C>, from: u64) -> bool {
    // The first look comes before the first cycle: the state may be too large already.
    let (mut told, mut visits, mut looked) = (Told::of([&*region]), 0, CHECK);
    run.hold(told);
    let mut t = from;
    while t < run.stop() {
        if looked >= CHECK || region.bytes - told.bytes >= run.growth() {
            looked = 0;
            let now = Told { visits, ..Told::of([&*region]) };
            run.check(t, now.since(&mut told));
        }
        if run.aborted() {
            return false;
        }
        let bytes = region.bytes;
        for pe in 0..region.routers.len() as u32 {
            if pe as usize % VISITS == VISITS - 1 && run.ends_within(region.bytes - bytes) {
                break;
            }
            run.at(Work::Fabric);
            region.visit_router(run.plan, run.code, pe, t);
            run.at(Work::Cores);
            region.visit_core(run.plan, run.code, pe, t);
        }
        run.after_cycle(region);
        t += 1;
        looked += region.routers.len() + 64;
        visits += 2 * region.routers.len() as u64;
        if rests(region, t) {
            return true;
        }
    }
    // It may have come to rest in the cycles that were run beyond the end of the run before.
    rests(region, t)
}

/// Whether nothing is to happen from cycle `t` on.
fn rests<C: Code>(region: &Region<C>, t: u64) -> bool {
    region.active_until < t && region.wakes.latest < t
}
