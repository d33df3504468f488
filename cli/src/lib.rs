//! The command lines `dflowc` and `cslc`, and the folder that `cslc` writes.
//!
//! The only crate that opens files, reads the environment, talks to a terminal and chooses exit
//! codes. Invariants: a fault of the user ends with one clear message and the right code; a
//! closed pipe is quiet; no output file is ever half-written.

#![forbid(unsafe_code)]

mod account;
mod args;
pub mod artifact;
mod commands;
mod conform;
pub mod cslc;
mod data;
pub mod dflowc;
mod diagnostics;
mod exit;
mod faults;
mod interrupt;
pub mod layout;
mod library;
pub mod limit;
mod machine;
pub mod memory;
mod near;
mod patience;
mod process;
mod progress;
mod report;
mod source;
mod stats;
mod term;
mod validate;
mod ways;
mod world;

pub use library::{Built, compile, save};
