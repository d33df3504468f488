//! Any text compiles or is refused with diagnostics, in bounded time; what compiles survives the
//! way to disk and back.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use dflow_compiler::{MemoryWorld, Options};
use dflow_fuzz::{Target, WORDS, main as fuzz, sources};
use dflow_ir::image::Image;
use dflow_syntax::diagnostic::render::{self, Color};

/// Enough for every program of the suite, and little enough for thousands of endless ones.
const STEPS: u64 = 300_000;

fn main() -> ExitCode {
    fuzz(Target { name: "compile", seeds: sources(), words: WORDS, run })
}

fn run(bytes: &[u8]) -> bool {
    let world = MemoryWorld::new().with("fuzz.dfl", bytes);
    let options = Options { comptime_steps: STEPS, tests: true, ..Options::default() };
    let compiled = dflow_compiler::compile(&world, "fuzz.dfl", options);
    for diagnostic in &compiled.diagnostics {
        let human = render::human(&compiled.sources, diagnostic, Color::Never);
        assert!(!human.is_empty(), "a diagnostic must say something");
        assert!(diagnostic.code().id() != "internal-error", "{human}");
    }
    if let Some(image) = &compiled.image {
        let again = Image::decode(&image.encode());
        assert_eq!(again.as_ref(), Ok(image), "an image must survive its own file");
    } else {
        assert!(!compiled.diagnostics.is_empty(), "a refusal must say why");
    }
    compiled.image.is_some()
}
