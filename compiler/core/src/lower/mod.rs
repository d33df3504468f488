//! Typed programs become IR. Cannot fail: what could be wrong was said while checking.
//!
//! Absences first: no diagnostics, no knowledge of the target, no optimization but the obvious
//! (a scalar local is used where it lives, an expression is computed where it is wanted).
//!
//! Invariants: entities keep their order, so index `n` of the typed program is index `n` of the
//! IR program. No recursion follows the length of the source: long operator chains and `else if`
//! ladders are walked, only bracket nesting is recursed into.

mod expr;
mod func;
mod locs;
mod program;
mod stmt;
mod vector;

#[cfg(test)]
mod tests;

pub(crate) use locs::LocTable;
pub(crate) use program::program;
