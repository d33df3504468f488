//! The runner of the suite. A test is a file below `tests/suite` (or an example) whose first
//! lines say what to do with it:
//!
//! ```text
//! //# stages: check, run
//! //# target: wse3
//! //# args: width=4 height=2
//! ```
//!
//! A program of several files is a folder with the header in its `layout.csl` or `main.dfl`.
//! Expected diagnostics stand in the source: `//~ code` on the line, `//~^ code` below it.
//! What a stage prints stands beside the input, in `<input>.<stage>.snap`.
//!
//! Invariant: nothing is skipped in silence. An input without a header, a key that is not
//! known, an expectation that is not met: each fails.

#![forbid(unsafe_code)]

pub mod annotations;
pub mod collect;
pub mod header;
pub mod matrix;
pub mod operations;
pub mod snapshot;
pub mod stages;
pub mod world;

#[cfg(test)]
mod checklist;
#[cfg(test)]
mod codes;
#[cfg(test)]
mod layouts;
#[cfg(test)]
mod library;
#[cfg(test)]
mod mistakes;
#[cfg(test)]
mod readme;
