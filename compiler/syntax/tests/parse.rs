//! Texts to trees and messages.

#![expect(clippy::disallowed_methods, reason = "tests read their inputs")]

use dflow_syntax::diagnostic::render::{Color, human};
use dflow_syntax::{Dialect, Interner, Parsed, SourceMap, ast, parse};

fn read(path: &str, text: &str) -> (SourceMap, Interner, Parsed) {
    let mut sources = SourceMap::new();
    let mut interner = Interner::new();
    let file = sources.add(path, text);
    let parsed = parse(file, text, Dialect::of_path(path), &mut interner);
    (sources, interner, parsed)
}

/// The messages about a text, as users see them.
fn messages(path: &str, text: &str) -> String {
    let (sources, _, parsed) = read(path, text);
    parsed.diagnostics.iter().map(|d| human(&sources, d, Color::Never)).collect()
}

/// The codes of the messages about a text.
fn codes(text: &str) -> Vec<&'static str> {
    let (_, _, parsed) = read("a.csl", text);
    parsed.diagnostics.iter().map(|d| d.code().id()).collect()
}

fn tree(path: &str, text: &str) -> String {
    let (_, interner, parsed) = read(path, text);
    assert_eq!(messages(path, text), "");
    ast::dump(&parsed.file, &interner)
}

/// Every file of a folder of inputs: its name and text, in order of name.
fn inputs(folder: &str) -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut inputs: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder of inputs")
        .map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name");
            (name, std::fs::read_to_string(entry.path()).expect("a text"))
        })
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn good_programs() {
    for (name, text) in inputs("good") {
        insta::assert_snapshot!(format!("good_{name}"), tree(&name, &text));
    }
}

#[test]
fn bad_programs() {
    for (name, text) in inputs("bad") {
        let (_, interner, parsed) = read(&name, &text);
        let tree = ast::dump(&parsed.file, &interner);
        let report = format!("{}---- tree\n{tree}", messages(&name, &text));
        insta::assert_snapshot!(format!("bad_{name}"), report);
    }
}

#[test]
fn every_habit_has_its_message() {
    let statements = [
        "defer f();",
        "const y = try f();",
        "x = f() catch 0;",
        "x++;",
        "x = a ++ b;",
        "x = c ? 1 : 2;",
        "if (a && b) {}",
        "if (a || b) {}",
        "for (0..n) |i| {}",
        "f(a[0..4]);",
        "let y = 3;",
        "var y: ?u16;",
        "x = undefined;",
        "x = null;",
        "/* words */ x = 1;",
        "f([]u16);",
    ];
    for statement in statements {
        let text = format!("fn f() void {{\n  {statement}\n  g();\n}}\n");
        assert_eq!(codes(&text), ["zig-habit"], "{statement}");
    }
    assert_eq!(codes("fn f(x: u16) -> u16 { return x; }"), ["zig-habit"]);
    assert_eq!(codes("pub fn f() void {}"), ["zig-habit"]);
    assert_eq!(codes("const undefined = 1; const x = undefined;"), [""; 0]);
}

#[test]
fn additions_belong_to_dfl() {
    for text in ["tile t { var x: u16; }", "host { f(); }", "test \"t\" { f(); }"] {
        assert_eq!(codes(text), ["dfl-only"], "{text}");
        assert_eq!(messages("a.dfl", text), "", "{text}");
    }
    assert_eq!(codes("fn f() void { for (a) |*e| g(); }"), ["dfl-only"]);
}

#[test]
fn long_and_deep_texts_end_with_one_message() {
    let many = |unit: &str, n: usize| unit.repeat(n);
    let deep = [
        format!("const x = {}1;", many("(", 100_000)),
        format!("const x = {}a;", many("a + ", 100_000)),
        format!("const x = {}1;", many("-", 100_000)),
        format!("const x = {}1;", many("comptime ", 100_000)),
        format!("const x = a{};", many(".a", 100_000)),
        format!("const x = a{};", many("()", 100_000)),
        format!("const x: {}u8 = a;", many("*", 100_000)),
        format!("const x: {}u8 = a;", many("[1]", 100_000)),
        format!("const x = {}1;", many("if (a) 1 else ", 100_000)),
        format!("fn f() void {{ {}; }}", many("if (a) ", 100_000)),
        format!("fn f() void {{ {}f(); }}", many("for (a) |b| ", 100_000)),
    ];
    for text in deep {
        assert_eq!(codes(&text), ["nesting-too-deep"], "{}", &text[..40]);
        let (_, interner, parsed) = read("a.csl", &text);
        assert!(!ast::dump(&parsed.file, &interner).is_empty() || parsed.file.items.is_empty());
    }
    assert_eq!(codes(&many("a b ", 1_000_000)).len(), 1);
    assert!(codes(&format!("fn f() void {{ {} }}", many("a b; ", 1_000_000))).len() <= 102);
    assert!(codes(&many("a b; ", 1_000_000)).len() <= 102);
    assert_eq!(codes(&many("a + b;\n", 200)).len(), 101);
}

#[test]
fn an_empty_text_is_an_empty_tree() {
    for text in ["", " ", "// only words", "\u{feff}", ";;;"] {
        assert_eq!(tree("a.csl", text), "");
    }
}

/// The pages about errors of words and grammar show a text with the error, and one without.
#[test]
fn pages_show_their_error() {
    let pages = [
        "unexpected-character",
        "unclosed-string",
        "invalid-escape",
        "invalid-character-literal",
        "invalid-number",
        "integer-too-large",
        "invalid-float",
        "unexpected-token",
        "missing-semicolon",
        "unclosed-bracket",
        "dfl-only",
        "zig-habit",
        "chained-comparison",
    ];
    for id in pages {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = folder.join(format!("../../spec/diagnostics/{id}.md"));
        let page = std::fs::read_to_string(path).expect("a page");
        let mut examples =
            page.split("```csl\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
        let wrap = |text: &str| match text.split_whitespace().next() {
            Some("if") => format!("fn f() void {{\n{text}}}"),
            _ => text.to_owned(),
        };
        let (bad, good) = (examples.next().map(wrap), examples.next().map(wrap));
        let bad = codes(&bad.expect("a bad example"));
        assert!(!bad.is_empty() && bad.iter().all(|code| *code == id), "{id}: {bad:?}");
        let good = good.expect("a good example");
        assert_eq!(messages("a.dfl", &good), "", "{id}");
    }
}

mod random {
    use super::*;
    use proptest::prelude::*;

    /// Words that meet one another in every order.
    const WORDS: &[&str] = &[
        "fn", "task", "f", "x", "void", "u16", "(", ")", "{", "}", "[", "]", ";", ",", ":", ".",
        ".*", "=", "+=", "+", "-", "*", "&", "|", "<", "==", "->", "=>", "if", "else", "for",
        "while", "switch", "return", "break", "continue", "const", "var", "param", "comptime",
        "layout", "tile", "host", "test", "\"s\"", "'c'", "1", "2.5", "@zeros", "struct", "enum",
        "export", "extern", "inline", "..", "?", "++", "\n", "anytype", "align", "asm", "defer",
        "$",
    ];

    fn soup() -> impl Strategy<Value = String> {
        proptest::collection::vec(proptest::sample::select(WORDS), 0..80)
            .prop_map(|words| words.join(" "))
    }

    /// A good program with one word changed.
    fn damaged() -> impl Strategy<Value = String> {
        let text = inputs("good").into_iter().map(|(_, text)| text).collect::<String>();
        let cuts: Vec<usize> = text.match_indices(' ').map(|(at, _)| at).collect();
        (proptest::sample::select(cuts), proptest::sample::select(WORDS)).prop_map(
            move |(at, word)| {
                let (before, after) = text.split_at(at);
                let rest = after[1..].find(' ').map_or("", |end| &after[1 + end..]);
                format!("{before} {word}{rest}")
            },
        )
    }

    fn survives(text: &str) {
        for path in ["a.csl", "a.dfl"] {
            let (sources, interner, parsed) = read(path, text);
            let _tree = ast::dump(&parsed.file, &interner);
            for diagnostic in &parsed.diagnostics {
                let _text = human(&sources, diagnostic, Color::Always);
                let span = diagnostic.span().expect("every fault has a place");
                assert!(text.get(span.range()).is_some(), "{span:?} is no place of the text");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

        #[test]
        fn word_soup_is_read(text in soup()) {
            survives(&text);
        }

        #[test]
        fn any_text_is_read(text in "\\PC{0,200}") {
            survives(&text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn one_bad_word_costs_at_most_a_few_messages(text in damaged()) {
            survives(&text);
        }
    }
}
