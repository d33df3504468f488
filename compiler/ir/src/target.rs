//! Targets: limits and timing per hardware generation, read from data files.
//!
//! Nobody tests for a generation by name; ask the target for a limit or a capability. Every
//! number of the data files `targets/*.json` carries its source and how sure it is.

use serde::{Deserialize, Serialize};

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
}

/// Limits and capabilities of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Microthreads.
    pub microthreads: u8,
    /// Registers per file.
    pub dsrs: u8,
    /// Timing.
    pub timing: Timing,
}

/// Cycle costs (spec/time.md says what each means).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl Target {
    /// The target of an id.
    pub fn get(id: TargetId) -> &'static Target {
        let _ = id;
        unimplemented!()
    }
}
