//! From source text to an image.
//!
//! Absences first: the compiler opens no files (it asks its [`World`]), prints nothing, reads no
//! environment. Phases are functions between immutable types; [`compile`] is their list.

#![forbid(unsafe_code)]

mod dump;
mod link;
mod lower;
mod place;
mod plan;
mod session;
mod typed;
mod world;

#[doc(hidden)]
pub use place::Wafer;
pub use session::Options;
pub use world::{MemoryWorld, World};
