//! Cores: rules R8 to R11 of spec/time.md.
//!
//! Invariants: a core has at most one running task and one issue slot per cycle; a visit in
//! cycle `t` reads stamps `<= t` and writes stamps `> t`; every change that a later cycle could
//! act on is followed by a wake at that cycle.

pub(crate) mod ahead;
pub(crate) mod alone;
mod behind;
pub(crate) mod bind;
pub(crate) mod calm;
pub(crate) mod clock;
pub(crate) mod code;
pub(crate) mod core;
pub(crate) mod exec;
mod fetch;
pub(crate) mod flow;
pub(crate) mod heard;
pub(crate) mod issue;
mod looks;
pub(crate) mod main;
mod onward;
pub(crate) mod op;
pub(crate) mod order;
pub(crate) mod pick;
pub(crate) mod plan;
pub(crate) mod queues;
pub(crate) mod ramp;
pub(crate) mod registers;
mod rounds;
pub(crate) mod share;
pub(crate) mod sparse;
pub(crate) mod steady;
pub(crate) mod stretch;
mod takers;
pub(crate) mod threads;
pub(crate) mod turns;
pub(crate) mod visit;
