//! How much memory there is, and how it is told.

use std::sync::Arc;

use dflow_runtime::config::Probe;

use crate::faults;

/// Bytes that a run may take where the system does not say what is free.
const UNKNOWN: u64 = 32 << 30;

/// Bytes of mesh state that a run may take unless the command line says otherwise: nine tenths of what
/// the system says is available, so that nothing is swapped out.
pub fn default_limit() -> u64 {
    available().map_or(UNKNOWN, |bytes| bytes / 10 * 9)
}

/// Bytes that must be left, or a run ends: the estimate of what it takes is rough.
const LEAST: u64 = 256 << 20;

/// What engines ask during a run.
pub fn probe() -> Probe {
    Probe(Arc::new(|| {
        faults::at("mesh");
        is_exhausted()
    }))
}

/// Whether so little is left that the system would begin to swap.
pub(crate) fn is_exhausted() -> bool {
    available().is_some_and(|bytes| bytes < LEAST)
}

/// What Linux says is available without swapping.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    available_in(&text)
}

fn available_in(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

/// `36.4 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    match unit {
        0 => format!("{bytes} bytes"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(7), "7 bytes");
        assert_eq!(size(48 << 10), "48.0 KiB");
        assert_eq!(size(39_084_000_000), "36.4 GiB");
    }

    #[test]
    fn what_the_system_says_is_read() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   1024 kB\nBuffers: 1 kB\n";
        assert_eq!(available_in(text), Some(1 << 20));
        assert_eq!(available_in("MemTotal: 1 kB\n"), None);
    }
}
