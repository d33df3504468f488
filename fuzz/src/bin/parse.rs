//! Any bytes give a tree and diagnostics, in bounded time.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use dflow_fuzz::{Target, WORDS, main as fuzz, sources};
use dflow_syntax::diagnostic::render::{self, Color};
use dflow_syntax::{Dialect, Interner, SourceMap, parse};

fn main() -> ExitCode {
    fuzz(Target { name: "parse", seeds: sources(), words: WORDS, run })
}

fn run(bytes: &[u8]) -> bool {
    let mut sources = SourceMap::new();
    let Ok(file) = sources.add_bytes("fuzz.dfl", bytes) else { return false };
    let text = sources.shared_text(file);
    let mut names = Interner::default();
    let mut clean = false;
    for dialect in [Dialect::Csl, Dialect::Dfl] {
        let parsed = parse(file, &text, dialect, &mut names);
        clean |= parsed.diagnostics.is_empty();
        for diagnostic in &parsed.diagnostics {
            // Rendering looks at every place: places outside the text show themselves here.
            let human = render::human(&sources, diagnostic, Color::Never);
            assert!(!human.is_empty(), "a diagnostic must say something");
        }
    }
    clean
}
