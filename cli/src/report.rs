//! The closing report of a run.

use std::time::Duration;

use dflow_ir::image::Image;
use dflow_ir::target::Target;
use dflow_runtime::config::{CodeKind, Config, EngineKind};
use dflow_runtime::stats::{Charges, Stats};
use serde_json::{Value, json};

/// What a run cost.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Extent of the rectangle.
    pub(crate) mesh: (u16, u16),
    /// Name of the target.
    pub(crate) target: &'static str,
    /// Cycles from start to end.
    pub(crate) cycles: u64,
    /// What their seconds rest on.
    pub(crate) charges: Charges,
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
        Report {
            mesh: (rect.width, rect.height),
            target: image.target.name(),
            cycles,
            charges: charges(image, config, stats),
            threads,
            wavelets: stats.delivered,
            host,
            config: config.clone(),
        }
    }

    fn pes(&self) -> u64 {
        u64::from(self.mesh.0) * u64::from(self.mesh.1)
    }

    /// For people: five lines, without a line break at the end.
    pub(crate) fn text(&self) -> String {
        let (width, height) = self.mesh;
        let clock = self.charges.clock_hz as f64 / 1e6;
        let threads = match self.threads {
            1 => "1 thread".to_owned(),
            n => format!("{n} threads"),
        };
        [
            format!("  mesh      {} PEs ({width} x {height}, {})", group(self.pes()), self.target),
            format!("  cycles    {}", group(self.cycles)),
            format!(
                "  emulated  {} at {clock} MHz ({}{:.0} % of charged cycles rest on assumed constants)",
                duration(self.charges.seconds(self.cycles)),
                if self.charges.clock_assumed { "clock assumed; " } else { "" },
                100.0 * self.charges.assumed_share(),
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
            "clock_hz": self.charges.clock_hz,
            "clock_assumed": self.charges.clock_assumed,
            "cycles": self.cycles,
            "charged_cycles": self.charges.charged,
            "assumed_cycles": self.charges.assumed,
            "constants": self.config.timing.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
            "emulated_seconds": self.charges.seconds(self.cycles),
            "wavelets": self.wavelets,
            "host_seconds": self.host.as_secs_f64(),
            "engine": engine(self.config.engine),
            "code": code(self.config.code),
            "threads": self.threads,
        })
    }
}

/// What the seconds of a run rest on.
pub(crate) fn charges(image: &Image, config: &Config, stats: &Stats) -> Charges {
    // Nothing is told of a run whose constants cannot have their values: that is wrong use.
    let target = Target::custom(image.target, &config.timing);
    Charges::new(target.unwrap_or_else(|_| Target::get(image.target)), stats)
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
