//! The closing report of a run.

use std::time::Duration;

use dflow_ir::image::Image;
use dflow_ir::target::Target;
use dflow_runtime::config::{CodeKind, Config, EngineKind};
use dflow_runtime::stats::Stats;
use serde_json::{Value, json};

/// What a run cost.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Extent of the rectangle.
    pub(crate) mesh: (u16, u16),
    /// Name of the target.
    pub(crate) target: &'static str,
    /// The target's clock in Hz.
    pub(crate) clock: u64,
    /// Cycles from start to end.
    pub(crate) cycles: u64,
    /// Whether nobody has published that clock.
    pub(crate) clock_assumed: bool,
    /// Cycles charged to cores: issue slots, and the starts of tasks.
    pub(crate) charged: u64,
    /// Of these: what rests on constants that nobody has published.
    pub(crate) assumed: u64,
    /// Threads that the mesh ran on.
    pub(crate) threads: usize,
    /// Wavelets delivered.
    pub(crate) wavelets: u64,
    /// Time on this computer.
    pub(crate) host: Duration,
    /// How it was run.
    pub(crate) config: Config,
}

impl Report {
    /// A report of a run of `image`.
    pub(crate) fn new(
        image: &Image,
        config: &Config,
        cycles: u64,
        stats: &Stats,
        (threads, host): (usize, Duration),
    ) -> Report {
        let rect = image.placement.rect;
        // A machine was made with these constants, so they can have their values.
        let target = Target::custom(image.target, &config.timing);
        let target = target.unwrap_or_else(|_| Target::get(image.target));
        let starts = |cycles: u32| stats.tasks * u64::from(cycles);
        Report {
            mesh: (rect.width, rect.height),
            target: image.target.name(),
            clock: target.clock_hz,
            clock_assumed: target.assumed.clock,
            cycles,
            charged: stats.slots + starts(target.timing.task_start),
            assumed: stats.assumed + starts(target.assumed.timing.task_start),
            threads,
            wavelets: stats.delivered,
            host,
            config: config.clone(),
        }
    }

    fn pes(&self) -> u64 {
        u64::from(self.mesh.0) * u64::from(self.mesh.1)
    }

    /// Emulated seconds.
    fn seconds(&self) -> f64 {
        self.cycles as f64 / self.clock.max(1) as f64
    }

    /// Part of the charged cycles that rests on constants that nobody has published.
    fn assumed_share(&self) -> f64 {
        self.assumed.min(self.charged) as f64 / self.charged.max(1) as f64
    }

    /// For people: five lines, without a line break at the end.
    pub(crate) fn text(&self) -> String {
        let (width, height) = self.mesh;
        let clock = self.clock as f64 / 1e6;
        let threads = match self.threads {
            1 => "1 thread".to_owned(),
            n => format!("{n} threads"),
        };
        [
            format!("  mesh      {} PEs ({width} x {height}, {})", group(self.pes()), self.target),
            format!("  cycles    {}", group(self.cycles)),
            format!(
                "  emulated  {} at {clock} MHz ({}{:.0} % of charged cycles rest on assumed constants)",
                duration(self.seconds()),
                if self.clock_assumed { "clock assumed; " } else { "" },
                100.0 * self.assumed_share(),
            ),
            format!("  wavelets  {} delivered", group(self.wavelets)),
            format!(
                "  host      {} ({} engine, {}, {threads})",
                duration(self.host.as_secs_f64()),
                engine(self.config.engine),
                code(self.config.code)
            ),
        ]
        .into_iter()
        .chain(self.changed())
        .collect::<Vec<_>>()
        .join("\n")
    }

    /// The constants that were given other values.
    fn changed(&self) -> Option<String> {
        let all: Vec<String> =
            self.config.timing.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!all.is_empty()).then(|| format!("  constants {}", all.join(", ")))
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "pes": self.pes(),
            "width": self.mesh.0,
            "height": self.mesh.1,
            "target": self.target,
            "clock_hz": self.clock,
            "clock_assumed": self.clock_assumed,
            "cycles": self.cycles,
            "charged_cycles": self.charged,
            "assumed_cycles": self.assumed.min(self.charged),
            "constants": self.config.timing.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
            "emulated_seconds": self.seconds(),
            "wavelets": self.wavelets,
            "host_seconds": self.host.as_secs_f64(),
            "engine": engine(self.config.engine),
            "code": code(self.config.code),
            "threads": self.threads,
        })
    }
}

/// Its name on the command line.
pub(crate) fn engine(kind: EngineKind) -> &'static str {
    match kind {
        EngineKind::Step => "step",
        EngineKind::Exact => "exact",
        EngineKind::Flow => "flow",
    }
}

/// Its name on the command line.
pub(crate) fn code(kind: CodeKind) -> &'static str {
    match kind {
        CodeKind::Interpreter => "interpreter",
        CodeKind::Jit => "jit",
    }
}

/// `1,234,567`.
pub(crate) fn group(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds with a unit that suits them, three or four digits.
pub(crate) fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    let digits = if value >= 100.0 { 0 } else { 2 };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(group(0), "0");
        assert_eq!(group(999), "999");
        assert_eq!(group(1_234_567), "1,234,567");
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration(0.0145), "14.50 ms");
        assert_eq!(duration(2.5), "2.50 s");
        assert_eq!(duration(0.0), "0.00 ns");
        assert_eq!(duration(150e-6), "150 µs");
    }
}
