//! What a run took, in the words that users of the vendor's simulator know, and where the time went.
//!
//! Invariant: a field is defined in `spec/stats.md`; what we cannot tell is left out.

use std::path::Path;
use std::time::Duration;

use dflow_ir::image::Image;
use dflow_runtime::config::{Config, Limit};
use dflow_runtime::host::Figures;
use dflow_runtime::profile::Profile;
use serde_json::{Value, json};

use crate::args::StatsPlace;
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::report::{charges, code, duration, engine};
use crate::{term, ways};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// By itself.
    Done,
    /// An expectation did not hold, or the host asked for what cannot be done.
    Failed,
    /// A trap.
    Trap,
    /// Nothing could move.
    Deadlock,
    /// A limit.
    Limit(Limit),
    /// A fault of ours.
    Internal,
}

impl Cause {
    fn word(self) -> &'static str {
        match self {
            Cause::Done => "done",
            Cause::Failed => "failed",
            Cause::Trap => "trap",
            Cause::Deadlock => "deadlock",
            Cause::Limit(Limit::Cycles) => "cycle-limit",
            Cause::Limit(Limit::Memory) => "memory-limit",
            Cause::Limit(Limit::Time) => "time-limit",
            Cause::Limit(Limit::Interrupted) => "interrupted",
            Cause::Internal => "internal-error",
        }
    }
}

/// Everything that is told of a run.
pub(crate) struct Told<'a> {
    pub(crate) image: &'a Image,
    pub(crate) config: &'a Config,
    pub(crate) figures: &'a Figures,
    pub(crate) cause: Cause,
    /// Time to read and compile the program, or to read its image.
    pub(crate) front: Duration,
    /// Time from the start of the command to the end of the run.
    pub(crate) total: Duration,
}

impl Told<'_> {
    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let Figures {
            cycles,
            stats,
            ways,
            orders,
            events: _,
            load,
            mesh,
            threads,
            functions,
            table_bytes,
            state_bytes,
        } = self.figures;
        let rect = self.image.placement.rect;
        let threads = (*threads).max(1);
        let seconds = mesh.as_secs_f64();
        let rate = |number: f64| if seconds > 0.0 { number / seconds } else { 0.0 };
        let tile_cycles = *cycles as f64 * stats.touched as f64;
        let charges = charges(self.image, self.config, stats);
        json!({
            "cycle_count": cycles,
            "cycles_per_second": rate(*cycles as f64),
            "fabric_x": rect.width,
            "fabric_y": rect.height,
            "hwtile_count": rect.area(),
            "simulated_tile_count": stats.touched,
            "init_time": (self.front + *load).as_secs_f64(),
            "sim_time": seconds,
            "total_time": self.total.as_secs_f64(),
            "threads": threads,
            "tile_cycles_per_second": rate(tile_cycles),
            "tile_cycles_per_second_per_thread": rate(tile_cycles) / threads as f64,
            "idle_ce_cycles": (cycles * stats.touched).saturating_sub(stats.slots),
            "sim_stop_cause": self.cause.word(),
            "compile_time": self.front.as_secs_f64(),
            "load_time": load.as_secs_f64(),
            "host_time": self.host().as_secs_f64(),
            "target": self.image.target.name(),
            "clock_hz": charges.clock_hz,
            "clock_assumed": charges.clock_assumed,
            "emulated_time": charges.seconds(*cycles),
            "charged_cycles": charges.charged,
            "assumed_cycles": charges.assumed,
            "engine": engine(self.config.engine),
            "code": code(self.config.code),
            "programs": self.image.programs.len(),
            "compiled_functions": functions,
            "ce_cycles": stats.slots,
            "tasks": stats.tasks,
            "wavelets_sent": stats.sent,
            "wavelets_delivered": stats.delivered,
            "wavelets_entered": stats.entered,
            "wavelets_to_host": stats.to_host,
            "hops": stats.hops,
            "table_bytes": table_bytes,
            "state_bytes": state_bytes,
            "ways": ways::rows_json(ways),
            "stretches": ways::stretches_json(&ways.stretches),
            "rounds": ways::rounds_json(&ways.rounds),
            "orders": ways::orders_json(orders),
        })
    }

    /// Time that was neither compiling, nor loading, nor the mesh's.
    fn host(&self) -> Duration {
        self.total.saturating_sub(self.front + self.figures.load + self.figures.mesh)
    }

    /// Where the time went: what it was, seconds, share of the time of all threads; most first. Front end, JIT and
    /// loading are measured, the rest is what was seen by looking now and then.
    fn shares(&self, profile: &Profile) -> Vec<(&'static str, f64, f64)> {
        let run = self.total.saturating_sub(self.front + self.figures.load).as_secs_f64();
        let looks = profile.looks.max(1) as f64;
        // Looks during loading are no part of the run.
        let load = profile.samples.iter().find(|(work, _)| work.name() == "load");
        let looks = (looks - load.map_or(0, |&(_, seen)| seen) as f64).max(1.0);
        let mut all: Vec<(&'static str, f64)> = vec![
            ("front end", self.front.as_secs_f64()),
            ("JIT", profile.jit.as_secs_f64()),
            (
                "loading",
                self.figures
                    .load
                    .saturating_sub(profile.jit.saturating_sub(profile.beside))
                    .as_secs_f64(),
            ),
        ];
        let seen = profile.samples.iter().filter(|(work, _)| work.name() != "load");
        all.extend(seen.map(|&(work, seen)| (name(work.name()), seen as f64 / looks * run)));
        let sum: f64 = all.iter().map(|(_, seconds)| seconds).sum();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all.into_iter().map(|(what, s)| (what, s, if sum > 0.0 { s / sum } else { 0.0 })).collect()
    }

    /// The profile, for people: a table.
    pub(crate) fn profile_text(&self, profile: &Profile) -> String {
        let mut text = "where the time went (seconds of all threads)".to_owned();
        for (what, seconds, share) in self.shares(profile) {
            let share = format!("{:.1} %", 100.0 * share);
            text.push_str(&format!("\n  {what:<18} {:>10} {share:>8}", duration(seconds)));
        }
        text.push_str(&ways::text(&self.figures.ways, self.figures.stats.delivered));
        text.push_str(&ways::orders_text(&self.figures.orders));
        text
    }

    /// The profile, for programs.
    pub(crate) fn profile_json(&self, profile: &Profile) -> Value {
        let shares = self.shares(profile).into_iter();
        let rows: Vec<Value> = shares
            .map(|(what, seconds, share)| json!({ "what": what, "seconds": seconds, "share": share }))
            .collect();
        let Figures { ways, orders, .. } = self.figures;
        json!({
            "rows": rows,
            "looks": profile.looks,
            "interval": profile.interval.as_secs_f64(),
            "ways": ways::rows_json(ways),
            "stretches": ways::stretches_json(&ways.stretches),
            "rounds": ways::rounds_json(&ways.rounds),
            "orders": ways::orders_json(orders),
        })
    }
}

/// What people read for a kind of work.
fn name(work: &'static str) -> &'static str {
    match work {
        "host" => "host program",
        "copies" => "host copies",
        "tasks" => "tasks",
        "vectors" => "vector operations",
        "fabric" => "fabric (routers)",
        "cores" => "cores (schedule)",
        "waiting" => "threads waiting",
        other => other,
    }
}

/// Writes the statistics to where they were asked for: whole or not at all.
///
/// # Errors
/// The place cannot be written.
pub(crate) fn write(
    place: &StatsPlace,
    stats: &Value,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    match place {
        StatsPlace::Standard => term::say(&format!("{stats}\n")).map(|_| ()),
        StatsPlace::File(path) => write_file(path, stats, interrupt),
    }
}

fn write_file(path: &Path, stats: &Value, interrupt: &Interrupt) -> Result<(), Failure> {
    // Those of a run that was interrupted are wanted, too.
    crate::data::write_file(path, format!("{stats:#}\n").as_bytes(), &interrupt.twice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_interrupt_would_remove_what_is_not_whole() {
        let Ok(folder) = tempfile::tempdir() else { return };
        let (path, interrupt) = (folder.path().join("stats.json"), Interrupt::already());
        assert_eq!(write(&StatsPlace::File(path.clone()), &json!({}), &interrupt), Ok(()));
        assert!(path.exists() && interrupt.temporary_files() == 1);
    }
}
