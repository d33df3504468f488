//! Which functions may suspend, and what lives across each suspension point.
//!
//! A function may suspend if it holds an instruction for which [`crate::inst::InstData::suspends`] says so, a
//! loop (a block whose terminator leads to itself or an earlier block in reverse post-order: a
//! back edge), or a call of such a function. The result is the same for every engine.

use cranelift_entity::{PrimaryMap, SecondaryMap};

use crate::func::{Inst, Local};
use crate::program::FuncId;

/// What the analysis knows of a program.
#[derive(Clone, Debug)]
pub struct Suspension {
    /// Whether each function may suspend.
    pub may_suspend: SecondaryMap<FuncId, bool>,
    /// Details of those that may.
    pub funcs: PrimaryMap<FuncId, FuncSuspension>,
}

/// Suspension points of one function, in block and instruction order.
#[derive(Clone, Debug, Default)]
pub struct FuncSuspension {
    /// The points; resume index `i + 1` belongs to point `i` (0 means "from the start").
    pub points: Vec<Point>,
}

/// One suspension point.
#[derive(Clone, Debug)]
pub struct Point {
    /// Where.
    pub at: PointAt,
    /// Locals that live after it, without those it defines, in index order.
    pub live: Vec<Local>,
}

/// Kind and place of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointAt {
    /// At an instruction (a visible act or a call).
    Inst(Inst),
    /// At the end of a block, before control goes along a back edge to its target: the yield
    /// of a long loop. One point per block whose terminator has a back edge.
    BackEdge(crate::func::Block),
}
