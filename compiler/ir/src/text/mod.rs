//! Text form of programs, placements and images: printed for eyes and diffs, parsed back for tests.
//!
//! `spec/ir.md` holds the grammar. Printing a valid program and parsing the text gives the
//! program again (without places, unless they are printed: [`PrintOptions`]). Invariants: both
//! directions are total, whatever the input; parsing checks the text and not the rules of the IR
//! ([`crate::validate`] does). The picture of a mesh is not here.

mod lex;
mod names;
mod parse;
mod parse_image;
mod parse_inst;
mod print;
mod print_image;
mod print_inst;

pub use parse::{parse_image, parse_placement, parse_program};
pub use print::{PrintOptions, print_func, print_program};
pub use print_image::{print_image, print_placement};

/// Why a text is no program, placement or image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TextError {
    /// Line, from 1.
    pub line: u32,
    /// What was expected, and what is there.
    pub reason: String,
}

#[cfg(test)]
mod tests;
