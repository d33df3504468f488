//! Reading the data files.
//!
//! Invariant: every number has a unit, a source and a confidence; a row that is missing or that
//! nobody reads is refused.

use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Assumed, Confidence, Provenance, Target, TargetId};

/// A data file, read.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) target: Target,
    pub(super) numbers: Vec<Provenance>,
    /// The numbers alone, as a tree.
    pub(super) values: Value,
}

/// The data file of a target, read once. It is part of the program text, so a broken one is a
/// broken build: a test reads both.
pub(super) fn loaded(id: TargetId) -> &'static Loaded {
    static WSE2: OnceLock<Loaded> = OnceLock::new();
    static WSE3: OnceLock<Loaded> = OnceLock::new();
    let (cell, text) = match id {
        TargetId::Wse2 => (&WSE2, include_str!("../../targets/wse2.json")),
        TargetId::Wse3 => (&WSE3, include_str!("../../targets/wse3.json")),
    };
    cell.get_or_init(|| parse(text).expect("the target's data file is tested"))
}

pub(super) fn parse(text: &str) -> Result<Loaded, serde_json::Error> {
    let mut values: Value = serde_json::from_str(text)?;
    let mut numbers = Vec::new();
    strip(&mut values, "", &mut numbers)?;
    let target = target(&values, &numbers)?;
    Ok(Loaded { target, numbers, values })
}

/// The target that a tree of values describes.
pub(super) fn target(values: &Value, numbers: &[Provenance]) -> Result<Target, serde_json::Error> {
    let mut target: Target = serde_json::from_value(values.clone())?;
    let assumed = |name: &str| numbers.iter().any(|it| it.name == name && it.is_assumed());
    let mut timing = Map::new();
    if let Some(Value::Object(rows)) = values.get("timing") {
        for (name, value) in rows {
            let kept = assumed(&format!("timing.{name}"));
            timing.insert(name.clone(), if kept { value.clone() } else { Value::from(0) });
        }
    }
    target.assumed = Assumed {
        timing: serde_json::from_value(Value::Object(timing))?,
        fmuls_lanes: assumed("simd.fmuls_lanes"),
        clock: assumed("clock_hz"),
    };
    // Which functions stand in place of their calls is a decision, not a cost.
    target.assumed.timing.inline_size = target.timing.inline_size;
    Ok(target)
}

/// An entry of a data file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    value: Value,
    unit: String,
    source: String,
    confidence: Confidence,
}

/// Replaces every entry by its value and notes where it came from.
fn strip(
    tree: &mut Value,
    path: &str,
    numbers: &mut Vec<Provenance>,
) -> Result<(), serde_json::Error> {
    let Value::Object(fields) = tree else { return Ok(()) };
    if fields.contains_key("value") {
        let Entry { value, unit, source, confidence } = serde_json::from_value(tree.take())?;
        let name = path.to_owned();
        numbers.push(Provenance { name, value: value.to_string(), unit, source, confidence });
        *tree = value;
        return Ok(());
    }
    for (key, child) in fields {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        strip(child, &path, numbers)?;
    }
    Ok(())
}
