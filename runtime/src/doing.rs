//! What a machine was doing when something from outside ended its run.
//!
//! Invariant: it is the same for every engine, code engine and number of threads, as it is read from the
//! state at the end; equal PEs are one line.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::Coord;

use crate::outcome::{Waiter, more_groups, place};

/// Most groups of PEs that are told.
const LINES: usize = 4;

/// What was going on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doing {
    /// The cycle at which the run ended.
    pub cycle: u64,
    /// PEs that have state.
    pub touched: u64,
    /// Bytes that the state of all PEs takes once they have run, estimated.
    pub bytes: u64,
    /// PEs that computed, equal ones folded, most PEs first.
    pub busy: Vec<Busy>,
    /// PEs that waited, likewise.
    pub waiting: Vec<Waiter>,
}

/// PEs that ran the same task at the same place of the same program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// How many PEs.
    pub count: usize,
    /// The first of them in row order.
    pub first: Coord,
    /// The last of them in row order.
    pub last: Coord,
    /// Program.
    pub program: String,
    /// The task.
    pub task: Option<String>,
    /// Source place: where the task yields next, else where the task is declared.
    pub loc: Loc,
}

impl Busy {
    fn text(&self, files: &[String]) -> String {
        let Busy { count, first, last, program, task, loc } = self;
        let mut text = match count {
            1 => format!("PE ({}, {})", first.x, first.y),
            _ => format!("{count} PEs, ({}, {}) to ({}, {}),", first.x, first.y, last.x, last.y),
        };
        text.push_str(&format!(" of `{program}`"));
        if let Some(task) = task {
            text.push_str(&format!(" in `{task}`"));
        }
        if loc.line != 0 {
            text.push_str(&format!(" {}", place(*loc, files)));
        }
        format!("{text}: computes")
    }
}

impl Doing {
    /// A few lines, each after a line break: who computes, then who waits. `files` are the names that
    /// source places refer to.
    pub fn text(&self, files: &[String]) -> String {
        let busy = self.busy.iter().map(|busy| busy.text(files));
        let waiting = self.waiting.iter().map(|waiter| waiter.text(files));
        let lines: Vec<String> = busy.chain(waiting).collect();
        let mut text: String = lines.iter().take(LINES).map(|line| format!("\n  {line}")).collect();
        if lines.len() > LINES {
            text.push_str(&more_groups(lines.len() - LINES));
        }
        text
    }
}
