//! From source text to an image.
//!
//! Absences first: the compiler opens no files (it asks its [`World`]), prints nothing, reads no
//! environment. Phases are functions between immutable types; [`compile`] is their list.

#![forbid(unsafe_code)]

pub mod builder;
mod builtins;
mod dialect;
mod driver;
mod dump;
mod elaborate;
mod estimate;
mod hold;
mod link;
mod load;
mod lower;
mod params;
mod place;
mod plan;
mod resolve;
mod sema;
mod session;
mod typed;
mod world;

pub use dialect::{Dialect, Mark, Origin, QueueBinding, SdkVersion};
pub use driver::{Compiled, Stage, builtin_table, compile, dump, routes};
#[doc(hidden)]
pub use place::Wafer;
pub use resolve::edit_distance;
pub use session::{Options, ParamsFrom, Stop};
pub use world::{MemoryWorld, World, fold};
