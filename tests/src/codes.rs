//! Table of codes, manual pages and test files belong together: each code has a page in
//! `spec/diagnostics/` and a test in `tests/suite/diagnostics/`.

use std::collections::BTreeSet;

use dflow_syntax::Code;

use crate::world::repository;

/// Codes that no source of a test can reach, and why. An entry that has a test is stale.
const OUT_OF_REACH: &[(&str, &str)] = &[
    ("internal-error", "a fault of ours; one that a test could reach would be mended"),
    ("no-thread", "limits of the computer; `cli/tests/surroundings.rs` has them"),
    ("section-address", "an option of `cslc` gives addresses; the tests of that have it"),
    ("section-unused", "likewise"),
    ("no-path", "only layouts built by host programs ask for ways: tests/src/layouts"),
    ("unknown-tile", "only such layouts name tiles by a string: tests/src/layouts"),
    ("source-too-large", "a file of 256 MiB would be needed"),
];

/// Folders of tests that belong together, whatever their codes.
const GROUPS: &[&str] = &["builtins", "habits", "libraries", "parameters", "remedies"];

fn names(folder: &str, endings: &[&str]) -> BTreeSet<String> {
    let entries = std::fs::read_dir(repository().join(folder));
    let files = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .filter(|path| {
            path.is_dir() || path.extension().is_some_and(|end| endings.iter().any(|e| end == *e))
        })
        .filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect()
}

#[test]
fn every_code_has_a_page() {
    let pages = names("spec/diagnostics", &["md"]);
    let missing: Vec<_> = Code::all().filter(|code| !pages.contains(code.id())).collect();
    assert!(missing.is_empty(), "no page in spec/diagnostics: {missing:?}");
}

#[test]
fn every_code_has_a_test() {
    let tests = names("tests/suite/diagnostics", &["csl", "dfl"]);
    let excused = |id: &str| OUT_OF_REACH.iter().any(|(other, _)| *other == id);
    let missing: Vec<_> =
        Code::all().filter(|code| !tests.contains(code.id()) && !excused(code.id())).collect();
    assert!(missing.is_empty(), "no test in tests/suite/diagnostics: {missing:?}");
}

#[test]
fn no_excuse_is_stale() {
    let tests = names("tests/suite/diagnostics", &["csl", "dfl"]);
    for (id, _) in OUT_OF_REACH {
        assert!(Code::from_id(id).is_some(), "`{id}` is no code");
        assert!(!tests.contains(*id), "`{id}` has a test: it needs no excuse");
    }
}

#[test]
fn every_code_is_given_somewhere() {
    let mut sources = String::new();
    for folder in ["compiler/syntax/src", "compiler/core/src"] {
        read_sources(&repository().join(folder), &mut sources);
    }
    for code in Code::all() {
        let constant = format!("codes::{}", code.id().replace('-', "_").to_uppercase());
        let given = sources.match_indices(&constant).any(|(at, _)| {
            let next = sources[at + constant.len()..].chars().next();
            next.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
        });
        assert!(given, "nothing gives `{code:?}`");
    }
}

fn read_sources(folder: &std::path::Path, text: &mut String) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            read_sources(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

#[test]
fn pages_and_tests_belong_to_codes() {
    for id in names("spec/diagnostics", &["md"]) {
        assert!(Code::from_id(&id).is_some(), "spec/diagnostics/{id}.md explains nothing");
    }
    for id in names("tests/suite/diagnostics", &["csl", "dfl"]) {
        // A second test of a code is named `<code>.<what>`.
        let code = id.split('.').next().unwrap_or_default();
        let known = GROUPS.contains(&code) || Code::from_id(code).is_some();
        assert!(known, "tests/suite/diagnostics/{id}: no such code");
    }
}
