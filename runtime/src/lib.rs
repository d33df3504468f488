//! The machine: runs images.
//!
//! Absences first: the runtime knows no source text, no syntax and no library; it never prints,
//! reads no environment and opens no file. `unsafe` lives in `jit/{context,helpers,code}.rs`.

#![deny(unsafe_code)]

pub mod account;
pub mod config;
pub mod doing;
pub mod exec;
pub mod host;
pub mod jit;
pub mod load;
pub mod machine;
pub mod order;
pub mod outcome;
pub mod profile;
pub mod stats;
pub mod trap;
pub mod ways;

mod fabric;
mod pe;
mod rare;
mod sched;
