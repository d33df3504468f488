//! The language spoken between the compiler and the runtime.
//!
//! Absences first: this crate knows no syntax, no spans (only [`loc::Loc`]), no files and no
//! engine. It depends on nothing of ours.
//!
//! # Rules of the IR
//!
//! The validator ([`validate`]) checks rule 1 first, then the others that can be broken (2 to 5 and
//! 8); `spec/ir.md` says in full what it checks.
//!
//! 1. **Indices.** Every index in a program (local, block, instruction, global, function, shape,
//!    FIFO, slot, signature, string) is in range. Blocks of a function are reached from block 0;
//!    instructions are numbered in block order and stand in one block each.
//! 2. **Locals are mutable and typed.** A function has locals of eight machine types
//!    ([`ty::Ty`]); its parameters are its first locals. There is no SSA form. A local read
//!    before it is written holds zero.
//! 3. **Types are exact.** Each instruction names locals of the types it asks for; nothing
//!    converts by itself. Booleans are `i8`, 0 or 1. Pointers are [`program::Profile::pointer`]:
//!    `i16` byte addresses on a PE, `i64` on the host. Descriptors ([`dsd::Dsd`]) are packed in
//!    an `i64`. Colors, queue and task ids are `i16`.
//! 4. **Aggregates live in memory.** Arrays and structs are globals or stack slots; they are
//!    passed and returned by address.
//! 5. **A block ends in one terminator**, which has no effect but the transfer of control.
//! 6. **Visible acts are instructions of their own.** [`inst::InstData::suspends`] tells which
//!    may stop the main thread: vector operations with a fabric, register or FIFO operand or
//!    started asynchronously, clock instructions, reads of configuration registers, questions
//!    about queues, host operations, indirect calls, and calls of functions that contain one of
//!    these or a loop ([`suspend`]). Loop back edges are suspension points too.
//! 7. **Memory-only vector operations do not suspend**; their data effect is that of the naive
//!    loop over [`dsd::op`]'s kernel, in order of the elements.
//! 8. **Profiles.** Vector, task, descriptor, slot, clock, register, queue and random instructions
//!    occur in PE programs only, host instructions in host programs only.
//! 9. **Integer arithmetic wraps; division by zero traps; shifts by the width or more give 0
//!    (or the sign).** Float results that are NaN are the canonical NaN. [`scalar`] is the one
//!    definition.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod builder;
pub mod cost;
pub mod dsd;
pub mod func;
#[cfg(any(test, feature = "generate"))]
pub mod generate;
pub mod image;
pub mod inst;
pub mod loc;
pub mod mesh;
pub mod operands;
pub mod program;
pub mod registers;
pub mod scalar;
pub mod sealed;
pub mod suspend;
pub mod target;
pub mod text;
pub mod ty;
pub mod validate;
pub mod written;
