//! Codecs and solvers written a second time, plainly and without the mesh, so that programs of the
//! standard library and of the benches can be held against something that shares no code with them.
//!
//! Nothing of the compiler or the runtime is used here, and nothing there uses this.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ceresz;
pub mod cg;
