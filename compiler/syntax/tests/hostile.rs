//! Texts made to waste time end soon, and in few messages.

use std::time::{Duration, Instant};

use dflow_syntax::{Dialect, Interner, SourceMap, ast, parse};

/// Generous for an unoptimized build on a busy machine; quadratic work would take hours.
const LIMIT: Duration = Duration::from_secs(20);

fn ends_soon(name: &str, text: &str) {
    let start = Instant::now();
    let mut sources = SourceMap::new();
    let mut interner = Interner::new();
    let file = sources.add(name, text);
    let parsed = parse(file, text, Dialect::Dfl, &mut interner);
    let _tree = ast::dump(&parsed.file, &interner);
    let took = start.elapsed();
    assert!(took < LIMIT, "{name} took {took:?}");
    assert!(parsed.diagnostics.len() <= 102, "{name}: {} messages", parsed.diagnostics.len());
}

/// Bytes from a fixed generator, so that a failure can be repeated.
fn noise(len: usize, alphabet: &[u8]) -> String {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap_or(0)
    };
    (0..len).map(|_| char::from(alphabet[next() % alphabet.len()])).collect()
}

#[test]
fn noise_ends_soon() {
    let printable: Vec<u8> = (b' '..=b'~').chain([b'\n']).collect();
    ends_soon("ten megabytes of printable noise", &noise(10 << 20, &printable));
    ends_soon("words and symbols", &noise(2 << 20, b"abc 01;{}()[].,=+-*/<>|&\n"));
    ends_soon("flat words", &noise(2 << 20, b"ab 1;.,=+-*/\n"));
    ends_soon("brackets", &noise(2 << 20, b"{}()[];"));
    ends_soon("quotes", &noise(2 << 20, b"\"'\\\n a/*"));
    ends_soon("braces only", &noise(2 << 20, b"{}a;"));
}

#[test]
fn one_huge_item_with_many_faults_ends_soon() {
    ends_soon(
        "a million bad statements",
        &format!("fn f() void {{ {} }}", "a b; ".repeat(1_000_000)),
    );
    ends_soon("missing semicolons", &format!("fn f() void {{ {} }}", "a()\n".repeat(500_000)));
    ends_soon("bad elements", &format!("const x = .{{ {} }};", "a b, ".repeat(500_000)));
    ends_soon("a good long block", &format!("fn f() void {{ {} }}", "a();\n".repeat(500_000)));
    ends_soon("many good items", &"const a = 1;\n".repeat(200_000));
    ends_soon("many bad items", &"const = 1;\n".repeat(200_000));
    ends_soon("unclosed", &"fn f() void { ".repeat(200_000));
    ends_soon("half a tile", &"tile t { var x: u16; ".repeat(50_000));
    ends_soon("parens then semicolons", &format!("fn f() void {{ {} }}", "(;".repeat(50_000)));
}
