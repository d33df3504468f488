//! Where times decide what comes first: what `dflowc run --profile` tells of the `flow` engine
//! (spec/flow.md, section 5).
//!
//! Cycles of `flow` are approximations, so at these places its data may differ from those of `exact`.
//! On a real machine they may as well, from one run to another.

use dflow_ir::mesh::{Color, Coord};

/// A place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderPlace {
    /// What may be first.
    pub what: Order,
    /// A PE that came there.
    pub pe: Coord,
    /// Cycle in which it did, if it is known.
    pub cycle: Option<u64>,
}

/// What may be first or later.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// Tasks of a PE.
    Tasks {
        /// Program of the PE.
        program: String,
        /// The task that was first.
        task: String,
        /// The one that might have been, if it is known.
        other: Option<String>,
    },
    /// What a task reads of the clock, or is told of queues.
    Clock {
        /// Program of the PE.
        program: String,
        /// The task.
        task: String,
    },
    /// Control wavelets of a color, by whether an operation that they end has begun when they come.
    Commands {
        /// Their color.
        color: Color,
    },
    /// Words of a color that come to a router from several sides.
    Senders {
        /// Their color.
        color: Color,
    },
}
