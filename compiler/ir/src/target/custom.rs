//! Targets with some numbers changed, for sweeps.
//!
//! Invariant: only numbers that say how long something takes or how deep a queue is can be
//! changed, within bounds in which every engine works.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::Value;

use super::{Target, TargetId, load};

/// A number to be changed: its name in the data file and its new value. For the depths of
/// queues the value counts for all of them.
pub type Override = (String, u32);

/// Why a number cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// No number of that name.
    #[error("no constant `{0}` can be changed; they are {list}", list = names().join(", "))]
    Unknown(String),
    /// Outside its bounds.
    #[error("`{name}` must be from {least} to {most}")]
    Bounds {
        /// The number.
        name: String,
        /// Least value.
        least: u32,
        /// Greatest value.
        most: u32,
    },
}

/// What can be changed, with its bounds. Latencies are at least 1, since nothing acts on a
/// neighbor in the same cycle, and small against the latency of the host.
const ROWS: &[(&str, u32, u32)] = &[
    ("clock_hz", 1_000_000, u32::MAX),
    ("input_queues", 1, 64),
    ("output_queues", 1, 64),
    ("simd.bank_conflict", 0, 64),
    ("simd.fmuls_lanes", 1, 4),
    ("simd.read_bits", 32, 128),
    ("simd.write_bits", 32, 128),
    ("timing.branch_not_taken", 0, 1000),
    ("timing.branch_taken", 0, 1000),
    ("timing.call", 0, 1000),
    ("timing.clock_read", 0, 1000),
    ("timing.completion", 1, 32),
    ("timing.credit", 1, 16),
    ("timing.descriptor_load", 0, 1000),
    ("timing.descriptor_use", 0, 1000),
    ("timing.divide", 0, 1000),
    ("timing.float_latency", 1, 1000),
    ("timing.hop", 1, 16),
    ("timing.inline_size", 0, 1000),
    ("timing.loop_edge", 0, 1000),
    ("timing.ramp_down", 1, 16),
    ("timing.ramp_up", 1, 16),
    ("timing.reduction", 1, 1000),
    ("timing.register_load", 0, 1000),
    ("timing.router_spare", 0, 64),
    ("timing.scalar", 0, 1000),
    ("timing.task_start", 1, 32),
    ("timing.vector_start", 0, 1000),
];

fn names() -> Vec<&'static str> {
    ROWS.iter().map(|&(name, ..)| name).collect()
}

/// Within which bounds a number can be changed, by its name in the data file.
pub(super) fn bounds(name: &str) -> Option<(u32, u32)> {
    ROWS.iter().find(|(row, ..)| *row == name).map(|&(_, least, most)| (least, most))
}

type Known = BTreeMap<(TargetId, Vec<Override>), &'static Target>;

impl Target {
    /// The target with numbers changed. Each distinct set of changes is made once and kept for
    /// the rest of the process.
    ///
    /// # Errors
    /// A name that cannot be changed, or a value outside its bounds.
    pub fn custom(id: TargetId, changes: &[Override]) -> Result<&'static Target, OverrideError> {
        static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
        if changes.is_empty() {
            return Ok(Target::get(id));
        }
        let made = changed(id, changes)?;
        let mut known = KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(known.entry((id, changes.to_vec())).or_insert_with(|| Box::leak(Box::new(made))))
    }
}

fn changed(id: TargetId, changes: &[Override]) -> Result<Target, OverrideError> {
    let loaded = load::loaded(id);
    let mut values = loaded.values.clone();
    for (name, value) in changes {
        let unknown = || OverrideError::Unknown(name.clone());
        let row = ROWS.iter().find(|(row, ..)| row == name || short(row) == name);
        let &(row, least, most) = row.ok_or_else(unknown)?;
        if !(least..=most).contains(value) {
            return Err(OverrideError::Bounds { name: name.clone(), least, most });
        }
        let at = values.pointer_mut(&format!("/{}", row.replace('.', "/"))).ok_or_else(unknown)?;
        match at {
            Value::Array(all) => all.fill(Value::from(*value)),
            one => *one = Value::from(*value),
        }
    }
    let first = changes.first().map_or_else(String::new, |(name, _)| name.clone());
    let mut target =
        load::target(&values, &loaded.numbers).map_err(|_| OverrideError::Unknown(first))?;
    // Who gives it knows it.
    target.assumed.clock &= !changes.iter().any(|(name, _)| name == "clock_hz");
    Ok(target)
}

/// The name without its group.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
