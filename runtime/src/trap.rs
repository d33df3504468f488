//! Traps: what a program may not do, as a table of kinds, and where it was done.
//!
//! A trap is a result of a run, not an error of the emulator. Of several traps the one with the
//! least (cycle, row, column) counts, whatever engine or number of threads.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, Coord, Port};

use crate::exec::CodeTrapKind;

/// A trap: the act, and who did it where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// What happened.
    pub kind: TrapKind,
    /// On which PE.
    pub pe: Coord,
    /// Program of the PE, if it has one.
    pub program: Option<String>,
    /// Task that ran, if one did.
    pub task: Option<String>,
    /// Source place, if known (line 0 otherwise).
    pub loc: Loc,
    /// In which cycle.
    pub cycle: u64,
    /// On which color, if one is concerned.
    pub color: Option<Color>,
    /// Who sent the word that a router could not pass on, as far as routes and queues tell.
    pub sender: Option<Box<Sender>>,
}

/// The operation that last sent on a color, on the nearest PE that sends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The PE.
    pub pe: Coord,
    /// The task that started the operation.
    pub task: Option<String>,
    /// Source place of the operation (line 0: not known).
    pub loc: Loc,
}

impl Trap {
    /// Where in the source: the act itself, or else the operation that sent the word.
    pub fn place(&self) -> Loc {
        match &self.sender {
            Some(sender) if self.loc.line == 0 => sender.loc,
            Some(_) | None => self.loc,
        }
    }
}

/// What a program may not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrapKind {
    /// Raised by the code itself.
    Code(CodeTrapKind),
    /// A word came to a router that has no route for its color.
    NoRoute { from: Port },
    /// An operation began on a queue that another operation still uses.
    QueueBusy { input: bool, queue: u8, other: Loc },
    /// An operation names a queue that is not there, or carries no color or another.
    BadQueue { input: bool, queue: u8 },
    /// Both sources of an operation read the same input queue.
    QueueTwice { queue: u8 },
    /// A task that is not bound was activated.
    UnboundTask { id: u16 },
    /// A flag operation on an id that does not exist.
    BadId { id: u16 },
    /// An operation found a FIFO full or empty that must not be.
    FifoFault,
    /// A queue that holds words was bound to another color.
    QueueNotEmpty { input: bool, queue: u8 },
    /// Something legal and odd, in a strict run; what was done.
    Odd(String),
}

impl std::fmt::Display for TrapKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TrapKind::Code(kind) => write!(f, "{kind}"),
            TrapKind::NoRoute { from: Port::Ramp } => {
                f.write_str("a wavelet was sent on a color that has no route here")
            }
            TrapKind::NoRoute { from } => {
                write!(
                    f,
                    "a wavelet came in from {} on a color that has no route here",
                    from.name()
                )
            }
            TrapKind::QueueBusy { input, queue, other } => {
                let kind = if *input { "input" } else { "output" };
                write!(f, "{kind} queue {queue} is still used by another operation")?;
                if other.line == 0 { Ok(()) } else { write!(f, " (line {})", other.line) }
            }
            TrapKind::QueueTwice { queue } => write!(
                f,
                "both sources read input queue {queue}: an element takes one word of a queue"
            ),
            TrapKind::BadQueue { input, queue } => {
                let kind = if *input { "input" } else { "output" };
                write!(f, "{kind} queue {queue} is not bound to a color, or not to this one")
            }
            TrapKind::UnboundTask { id } => {
                write!(f, "task id {id} was activated but no task is bound to it")
            }
            TrapKind::BadId { id } => write!(f, "there is no task, channel or microthread {id}"),
            TrapKind::FifoFault => {
                f.write_str("a FIFO that faults was found full or empty by this operation")
            }
            TrapKind::QueueNotEmpty { input, queue } => {
                let kind = if *input { "input" } else { "output" };
                write!(f, "{kind} queue {queue} was bound to another color while it held words")
            }
            TrapKind::Odd(text) => f.write_str(text),
        }
    }
}

impl std::fmt::Display for Trap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on PE ({}, {})", self.kind, self.pe.x, self.pe.y)?;
        if let Some(color) = self.color {
            write!(f, ", color {}", color.index())?;
        }
        if let Some(task) = &self.task {
            write!(f, ", task `{task}`")?;
        }
        write!(f, ", cycle {}", self.cycle)?;
        if let Some(sender) = &self.sender {
            let Sender { pe, task, loc } = &**sender;
            write!(f, "; last sent by PE ({}, {})", pe.x, pe.y)?;
            if let Some(task) = task {
                write!(f, " in `{task}`")?;
            }
            if loc.line != 0 {
                write!(f, " line {}", loc.line)?;
            }
        }
        Ok(())
    }
}
