//! Any bytes give a tree and diagnostics, in bounded time.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use dflow_fuzz::{Target, main as fuzz, sources};
use dflow_syntax::diagnostic::render::{self, Color};
use dflow_syntax::{Dialect, Interner, SourceMap, parse};

const WORDS: &[&str] = &[
    "layout {",
    "comptime {",
    "fn f() void {",
    "task t(x: u16) void {",
    "const a = ",
    "var b: [4]f32;",
    "param p: u16;",
    "if (",
    ") |i| {",
    "for (@range(u16, 4))",
    "while (true)",
    "switch (x) {",
    "else =>",
    "@get_dsd(mem1d_dsd, .{",
    ".tensor_access = |i|{4} -> a[i]",
    "tile t {",
    "host {",
    "test \"x\" {",
    "struct {",
    "enum(u8) {",
    "\"",
    "'",
    "//",
    "0x",
    "1e",
    "[*]const",
    ".*",
    "=>",
    "->",
    "...",
    "}",
    ")",
    "]",
    ";",
];

fn main() -> ExitCode {
    fuzz(Target { name: "parse", seeds: sources(), words: WORDS, run })
}

fn run(bytes: &[u8]) {
    let mut sources = SourceMap::new();
    let Ok(file) = sources.add_bytes("fuzz.dfl", bytes) else { return };
    let text = sources.shared_text(file);
    let mut names = Interner::default();
    for dialect in [Dialect::Csl, Dialect::Dfl] {
        let parsed = parse(file, &text, dialect, &mut names);
        for diagnostic in &parsed.diagnostics {
            // Rendering looks at every place: places outside the text show themselves here.
            let human = render::human(&sources, diagnostic, Color::Never);
            assert!(!human.is_empty(), "a diagnostic must say something");
        }
    }
}
