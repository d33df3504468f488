//! How a run ends, and why a machine stands still.
//!
//! Invariant: a deadlock is a result; its report names who waits where for what, folded over
//! equal PEs.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, Coord, Port};

use crate::config::Limit;
use crate::trap::Trap;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEnd {
    /// All goals hold; the cycle at which the last of them came true.
    Reached {
        /// That cycle.
        cycle: u64,
    },
    /// No goal was open and nothing can move any more.
    Idle {
        /// The cycle after the last act.
        cycle: u64,
    },
    /// The program did something forbidden.
    Trap(Trap),
    /// A goal is open and nothing can move any more.
    Deadlock(Box<Deadlock>),
    /// A limit ended the run.
    Limit(Limit),
}

/// Why nothing moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlock {
    /// The cycle after the last act.
    pub cycle: u64,
    /// Who waits, equal ones folded, most PEs first.
    pub waiters: Vec<Waiter>,
    /// Words that stand in routers and queues, folded by color and place.
    pub stuck: Vec<StuckWords>,
    /// Host links with words that cannot enter.
    pub host_waiting: Vec<(Coord, Color, u64)>,
}

/// PEs that wait for the same thing at the same place of the same program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiter {
    /// How many PEs.
    pub count: usize,
    /// The first of them in row order; the details below are its own.
    pub first: Coord,
    /// The last of them in row order.
    pub last: Coord,
    /// Program.
    pub program: String,
    /// Task that started the operation.
    pub task: Option<String>,
    /// Source place of the operation.
    pub loc: Loc,
    /// For what.
    pub wait: Wait,
}

/// What an operation waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A word on a color.
    Receive {
        /// The color.
        color: Color,
        /// Input queue.
        queue: u8,
        /// Cycle at which the last word came, if any did.
        last: Option<u64>,
        /// PEs that inject this color on the way here (at most four), as far as routes tell.
        senders: Vec<Coord>,
        /// A router on the way where a word of the color stands, and the port it came from.
        stands: Option<(Coord, Port)>,
        /// Where the chain of PEs that wait for each other's words ends: one that waits for
        /// nothing and sends nothing.
        idle: Option<Coord>,
    },
    /// Room for a word on a color.
    Send {
        /// The color.
        color: Color,
        /// Output queue.
        queue: u8,
    },
    /// Elements in, or room in, a FIFO.
    Fifo,
    /// A microthread that another operation occupies.
    Microthread(u8),
}

/// Words of one color that stand in one kind of place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckWords {
    /// The color.
    pub color: Color,
    /// Where.
    pub place: StuckPlace,
    /// How many words in all.
    pub words: u64,
    /// On how many PEs.
    pub count: usize,
    /// The first of them.
    pub first: Coord,
}

/// Where words can stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StuckPlace {
    /// In a router, having come in through this port.
    Router(Port),
    /// In an input queue.
    Input,
    /// In an output queue.
    Output,
}

const LINES: usize = 5;

impl std::fmt::Display for Deadlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "nothing can move any more from cycle {} on", self.cycle)?;
        let shown =
            self.waiters.iter().take(LINES.saturating_sub(usize::from(!self.stuck.is_empty())));
        for waiter in shown {
            write!(f, "\n  {waiter}")?;
        }
        if let Some(stuck) = self.stuck.first() {
            write!(f, "\n  {stuck}")?;
        }
        Ok(())
    }
}

impl std::fmt::Display for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Waiter { count, first, last, program, task, loc, wait } = self;
        match count {
            1 => write!(f, "PE ({}, {})", first.x, first.y)?,
            _ => write!(f, "{count} PEs, ({}, {}) to ({}, {}),", first.x, first.y, last.x, last.y)?,
        }
        write!(f, " of `{program}`")?;
        if let Some(task) = task {
            write!(f, " in `{task}`")?;
        }
        if loc.line != 0 {
            write!(f, " line {}", loc.line)?;
        }
        write!(f, ": {wait}")
    }
}

impl std::fmt::Display for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wait::Receive { color, queue, last, senders, stands, idle } => {
                write!(f, "waits for a word on color {} (queue {queue})", color.index())?;
                match last {
                    Some(cycle) => write!(f, "; the last came at cycle {cycle}")?,
                    None => f.write_str("; none ever came")?,
                }
                if let Some((at, port)) = stands {
                    write!(f, "; one stands at ({}, {}) from {}", at.x, at.y, port.name())?;
                }
                for (index, at) in senders.iter().enumerate() {
                    f.write_str(if index == 0 { "; should come from " } else { " or " })?;
                    write!(f, "({}, {})", at.x, at.y)?;
                }
                match idle {
                    Some(at) if senders.contains(at) => f.write_str(", which does nothing"),
                    Some(at) => write!(f, "; in the end ({}, {}) does nothing", at.x, at.y),
                    None => Ok(()),
                }
            }
            Wait::Send { color, queue } => {
                write!(f, "waits for room to send on color {} (queue {queue})", color.index())
            }
            Wait::Fifo => f.write_str("waits on a FIFO"),
            Wait::Microthread(id) => write!(f, "waits for microthread {id}"),
        }
    }
}

impl std::fmt::Display for StuckWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let StuckWords { color, place, words, count, first } = self;
        write!(f, "{words} words of color {} stand in ", color.index())?;
        match place {
            StuckPlace::Router(port) => write!(f, "routers (from {})", port.name())?,
            StuckPlace::Input => f.write_str("input queues")?,
            StuckPlace::Output => f.write_str("output queues")?,
        }
        write!(f, " of {count} PEs, first ({}, {})", first.x, first.y)
    }
}
