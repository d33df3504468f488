//! Targets: limits and timing per hardware generation, read from data files.
//!
//! Nobody tests for a generation by name; ask the target for a limit or a capability. Every
//! number of the data files `targets/*.json` carries its source and how sure it is.

mod custom;
mod load;
mod manual;

use serde::{Deserialize, Serialize};

pub use custom::{Override, OverrideError};
pub use manual::manual;

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

/// Control task ids are below this: entry points of control wavelets have six bits.
pub const CONTROL_TASKS: u8 = 64;

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
    /// Costs with everything 0 that somebody has published: what of each cost is assumed.
    #[serde(skip)]
    pub assumed: Assumed,
}

/// The parts of costs that nobody has published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assumed {
    /// Costs; what is known is 0.
    pub timing: Timing,
    /// Whether the lanes of f32 multiplications are.
    pub fmuls_lanes: bool,
    /// Whether the clock is.
    pub clock: bool,
}

/// What bounds the elements of a vector operation in memory per issue slot ([`crate::dsd::op`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simd {
    /// Which of the operation table's widths is this target's.
    pub column: u8,
    /// Elements of an f32 multiplication per slot; public figures fit 1 and 2.
    pub fmuls_lanes: u8,
    /// Bits that can be read from memory per slot: so many 16-bit banks.
    pub read_bits: u32,
    /// Bits that can be written to memory per slot.
    pub write_bits: u32,
    /// Slots that each further access to one bank takes.
    pub bank_conflict: u32,
}

/// Cycle costs (spec/time.md and spec/time-costs.md say what each means).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Cycles over a link.
    pub hop: u32,
    /// Cycles until a freed buffer slot may be refilled.
    pub credit: u32,
    /// Places of a router's buffer of a link beside those that a word per cycle takes.
    pub router_spare: u32,
    /// Cycles from output queue to router.
    pub ramp_up: u32,
    /// Cycles from router to input queue.
    pub ramp_down: u32,
    /// Cycles from picking a task to its first instruction.
    pub task_start: u32,
    /// Cycles from the last element to the completion's effect.
    pub completion: u32,
    /// Start-up of any vector operation.
    pub vector_start: u32,
    /// What each descriptor adds that is not in a register.
    pub descriptor_load: u32,
    /// From the last load of a register to the operation that uses it.
    pub descriptor_use: u32,
    /// Loading a descriptor register.
    pub register_load: u32,
    /// Least slots per element of a reduction of floats into a scalar.
    pub reduction: u32,
    /// Cost of one scalar instruction.
    pub scalar: u32,
    /// Slots from a float instruction to one that uses its result.
    pub float_latency: u32,
    /// Integer and float division, square root.
    pub divide: u32,
    /// A conditional branch that goes on with the block that follows.
    pub branch_not_taken: u32,
    /// A jump, or a branch elsewhere.
    pub branch_taken: u32,
    /// Branches of a loop per round.
    pub loop_edge: u32,
    /// Reading the clock, beside the stores of its words.
    pub clock_read: u32,
    /// Extra cost of a call.
    pub call: u32,
    /// Instructions of the largest function that stands in place of its calls.
    pub inline_size: u32,
    /// Estimated code bytes per IR instruction (assumed).
    pub code_bytes: u32,
}

/// A number of a data file, and how it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// Path in the data file, as `timing.hop`.
    pub name: String,
    /// The value, as JSON.
    pub value: String,
    /// What it counts.
    pub unit: String,
    /// A public source by its short name.
    pub source: String,
    /// How sure it is.
    pub confidence: Confidence,
}

impl Provenance {
    /// Whether nobody has published it.
    pub fn is_assumed(&self) -> bool {
        self.confidence == Confidence::Assumed
    }
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

impl Confidence {
    /// As the data files spell it.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Published => "published",
            Confidence::Measured => "measured",
            Confidence::Derived => "derived",
            Confidence::Assumed => "assumed",
        }
    }
}

impl Target {
    /// The target of an id.
    pub fn get(id: TargetId) -> &'static Target {
        &load::loaded(id).target
    }

    /// Where each number of the target comes from, in the order of the data file.
    pub fn provenance(id: TargetId) -> &'static [Provenance] {
        &load::loaded(id).numbers
    }
}

#[cfg(test)]
mod tests;
