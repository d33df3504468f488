//! Routers and links: rules R1 to R7 of spec/time.md.
//!
//! Invariants: a visit to a router in cycle `t` reads only stamps `<= t` and writes only stamps
//! `> t`, so visits of one cycle may happen in any order; no word is lost or doubled, and words
//! of a color keep their order on a link.

pub(crate) mod abroad;
pub(crate) mod channel;
mod claims;
pub(crate) mod control;
pub(crate) mod deal;
pub(crate) mod filter;
pub(crate) mod flight;
pub(crate) mod gather;
pub(crate) mod inlet;
pub(crate) mod landing;
pub(crate) mod leap;
pub(crate) mod link;
pub(crate) mod merge;
pub(crate) mod multicast;
mod patience;
pub(crate) mod pattern;
pub(crate) mod pipe;
pub(crate) mod plan;
pub(crate) mod registers;
pub(crate) mod rhythm;
pub(crate) mod ring;
pub(crate) mod router;
pub(crate) mod settle;
pub(crate) mod stand;
