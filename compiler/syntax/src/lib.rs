//! Text in, tree and diagnostics out.
//!
//! This crate knows the words and the grammar of the language and nothing of its meaning: no
//! names are resolved here, no types are known, no files are opened.
//!
//! - A tree comes out of every text; faults are [`Diagnostic`]s beside it.
//! - Nothing here prints: diagnostics are rendered to strings for whoever owns the terminal.
//! - No global state: identifiers live in the caller's [`Interner`], texts in its [`SourceMap`].
#![forbid(unsafe_code)]

pub mod ast;
pub mod diagnostic;
pub mod lexer;
mod literal;
mod parse;
mod source;
mod span;
mod symbol;
mod token;

pub use diagnostic::{Code, Diagnostic, Frame, Label, Reported, Severity, Sink, codes};
pub use parse::{Parsed, parse};
pub use source::{FileId, MAX_SOURCE_BYTES, Position, SourceMap};
pub use span::{Span, Spanned};
pub use symbol::{Interner, Symbol};

/// Which of the two languages a file is written in; its ending decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `.csl`: the documented language and nothing more.
    Csl,
    /// `.dfl`: with tile, host and test blocks.
    Dfl,
}

impl Dialect {
    /// The dialect of a file of this name: `.dfl` allows the additions, anything else does not.
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        if path.ends_with(".dfl") { Self::Dfl } else { Self::Csl }
    }
}
