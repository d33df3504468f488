//! Who is looked at in which cycle.
//!
//! [`step`] looks at everything in every cycle and defines the results; [`exact`] looks only at
//! what has been woken; `flow` runs as `exact` does, and goes by stretches of elements and packets
//! of words where it can, so that its cycles are approximate. All three use the same visits
//! ([`region`], `fabric::router`, `pe::core`). What a machine does again and again is done in
//! [`rounds`], in `exact` and `flow`.

pub(crate) mod account;
pub(crate) mod borders;
mod doing;
pub(crate) mod engine;
pub(crate) mod exact;
mod orders;
pub(crate) mod plan;
#[cfg(test)]
pub(crate) mod reached;
pub(crate) mod record;
pub(crate) mod region;
pub(crate) mod report;
pub(crate) mod rounds;
pub(crate) mod run;
pub(crate) mod step;
pub(crate) mod wheel;

#[cfg(test)]
mod tests;
