//! Targets: limits and timing per hardware generation, read from data files.
//!
//! Nobody tests for a generation by name; ask the target for a limit or a capability. Every
//! number of the data files `targets/*.json` carries its source and how sure it is.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A hardware generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TargetId {
    /// Second generation.
    Wse2,
    /// Third generation.
    Wse3,
}

impl TargetId {
    /// The name on the command line and for `@is_arch`.
    pub fn name(self) -> &'static str {
        match self {
            TargetId::Wse2 => "wse2",
            TargetId::Wse3 => "wse3",
        }
    }

    /// Both.
    pub const ALL: [TargetId; 2] = [TargetId::Wse2, TargetId::Wse3];

    /// The inverse of [`TargetId::name`].
    pub fn from_name(name: &str) -> Option<TargetId> {
        TargetId::ALL.into_iter().find(|id| id.name() == name)
    }
}

/// The local task that starts when colors enter teardown.
pub const TEARDOWN_TASK: u8 = 29;

/// Limits and capabilities of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Which.
    pub id: TargetId,
    /// PEs of the largest program rectangle: columns, rows.
    pub max_rect: (u16, u16),
    /// PE memory in bytes.
    pub memory: u32,
    /// Clock in Hz, for converting cycles to seconds in reports.
    pub clock_hz: u64,
    /// Data task ids are input queues (true) or colors (false).
    pub data_task_by_queue: bool,
    /// First local task id.
    pub local_task_first: u8,
    /// Last local task id.
    pub local_task_last: u8,
    /// Input queue depths; their number is the number of queues.
    pub input_queues: Vec<u8>,
    /// Output queue depths.
    pub output_queues: Vec<u8>,
    /// An output queue carries one color only.
    pub output_queue_bound: bool,
    /// A color may be received from one port only.
    pub single_rx: bool,
    /// Fabric inputs per vector operation.
    pub fabric_inputs: u8,
    /// Color swap exists.
    pub color_swap: bool,
    /// Colors with switches (bit set).
    pub switch_colors: u32,
    /// A switch position may change receive and transmit ports both.
    pub switch_both: bool,
    /// Filters per PE.
    pub filters: u8,
    /// Router registers can be read and written through pointers above the memory.
    pub router_registers: bool,
    /// Microthreads.
    pub microthreads: u8,
    /// The program may choose the microthread of an operation.
    pub microthread_choice: bool,
    /// Registers per file.
    pub dsrs: u8,
    /// Extended descriptor registers.
    pub xdsrs: u8,
    /// Stride registers.
    pub srs: u8,
    /// Random generators.
    pub generators: u8,
    /// Element rates of vector operations.
    pub simd: Simd,
    /// Timing.
    pub timing: Timing,
}

/// What bounds the elements of a vector operation per issue slot
/// ([`crate::dsd::op::OpRow::elements_per_slot`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simd {
    /// Which of the operation table's widths is this target's.
    pub column: u8,
    /// Bits that can be read from memory per cycle.
    pub read_bits: u32,
    /// Bits that can be written to memory per cycle.
    pub write_bits: u32,
}

/// Cycle costs (spec/time.md says what each means).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Cycles over a link.
    pub hop: u32,
    /// Cycles until a freed buffer slot may be refilled.
    pub credit: u32,
    /// Cycles from output queue to router.
    pub ramp_up: u32,
    /// Cycles from router to input queue.
    pub ramp_down: u32,
    /// Cycles from picking a task to its first instruction.
    pub task_start: u32,
    /// Cycles from the last element to the completion's effect.
    pub completion: u32,
    /// Start-up of a vector operation whose operands are all in registers.
    pub vector_registers: u32,
    /// Start-up of a vector operation that builds descriptors.
    pub vector_descriptors: u32,
    /// Cost of one scalar instruction.
    pub scalar: u32,
    /// Integer and float division, square root.
    pub divide: u32,
    /// Extra cost of a taken jump.
    pub branch: u32,
    /// Extra cost of a call.
    pub call: u32,
    /// Estimated code bytes per IR instruction (assumed).
    pub code_bytes: u32,
    /// Names of the entries above that nobody has published.
    pub assumed: Vec<String>,
}

/// A number of a data file, and how it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// Path in the data file, as `timing.hop`.
    pub name: String,
    /// The value, as JSON.
    pub value: String,
    /// A public source by its short name.
    pub source: String,
    /// How sure it is.
    pub confidence: Confidence,
}

/// How sure a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The vendor says so.
    Published,
    /// Somebody measured it.
    Measured,
    /// Follows from what was measured.
    Derived,
    /// Nobody has published it.
    Assumed,
}

impl Target {
    /// The target of an id.
    pub fn get(id: TargetId) -> &'static Target {
        &loaded(id).0
    }

    /// Where each number of the target comes from, in the order of the names.
    pub fn provenance(id: TargetId) -> &'static [Provenance] {
        &loaded(id).1
    }
}

/// The data file of a target, read once. It is part of the program text, so a broken one is a
/// broken build: a test reads both.
fn loaded(id: TargetId) -> &'static (Target, Vec<Provenance>) {
    static WSE2: OnceLock<(Target, Vec<Provenance>)> = OnceLock::new();
    static WSE3: OnceLock<(Target, Vec<Provenance>)> = OnceLock::new();
    let (cell, text) = match id {
        TargetId::Wse2 => (&WSE2, include_str!("../targets/wse2.json")),
        TargetId::Wse3 => (&WSE3, include_str!("../targets/wse3.json")),
    };
    cell.get_or_init(|| parse(text).expect("the target's data file is tested"))
}

fn parse(text: &str) -> Result<(Target, Vec<Provenance>), serde_json::Error> {
    let mut tree: Value = serde_json::from_str(text)?;
    let mut numbers = Vec::new();
    strip(&mut tree, "", &mut numbers)?;
    let is_assumed = |number: &&Provenance| number.confidence == Confidence::Assumed;
    let assumed: Vec<&str> = numbers
        .iter()
        .filter(is_assumed)
        .filter_map(|number| number.name.strip_prefix("timing."))
        .collect();
    tree["timing"]["assumed"] = serde_json::to_value(assumed)?;
    Ok((serde_json::from_value(tree)?, numbers))
}

/// An entry of a data file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    value: Value,
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
        let Entry { value, source, confidence } = serde_json::from_value(tree.take())?;
        let name = path.to_owned();
        numbers.push(Provenance { name, value: value.to_string(), source, confidence });
        *tree = value;
        return Ok(());
    }
    for (key, child) in fields {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        strip(child, &path, numbers)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_files_are_complete() {
        for id in TargetId::ALL {
            let target = Target::get(id);
            assert_eq!(target.id, id);
            assert_eq!(TargetId::from_name(id.name()), Some(id));
            assert_eq!(target.memory, 48 * 1024);
            assert!(target.input_queues.len() <= 8 && target.output_queues.len() <= 8);
            assert!(usize::from(target.simd.column) < 2);
            assert!(target.timing.assumed.contains(&"call".to_owned()));
            let sources = Target::provenance(id);
            assert!(sources.iter().all(|number| !number.source.is_empty()));
            assert!(sources.iter().all(|number| !number.source.contains('/')));
            // Every field but `id` and `assumed` has a source.
            let timing = sources.iter().filter(|number| number.name.starts_with("timing.")).count();
            assert_eq!((sources.len() - timing, timing), (25, 13));
        }
        assert_eq!(TargetId::from_name("wse1"), None);
    }

    #[test]
    fn what_differs_between_the_generations() {
        let (two, three) = (Target::get(TargetId::Wse2), Target::get(TargetId::Wse3));
        assert_eq!((two.timing.hop, three.timing.hop), (1, 2));
        assert_eq!((two.local_task_first, three.local_task_first), (0, 8));
        assert_eq!(three.switch_colors & 1 << 10, 0);
        // A chained reduction advances one PE per 1 + up + hop + down cycles: 6, as measured.
        assert_eq!(1 + two.timing.ramp_up + two.timing.hop + two.timing.ramp_down, 6);
    }

    #[test]
    fn a_broken_file_is_refused() {
        assert!(parse("{}").is_err());
        let text = include_str!("../targets/wse2.json");
        assert!(parse(&text.replace("\"hop\"", "\"hops\"")).is_err());
        assert!(parse(&text.replace("\"measured\"", "\"sure\"")).is_err());
    }
}
