//! Table of codes, manual pages and test files belong together: each code has a page in
//! `spec/diagnostics/` and a test in `tests/suite/diagnostics/`.

use std::collections::BTreeSet;

use dflow_syntax::Code;

use crate::world::repository;

/// Codes that no source can reach, or not yet, and why. An entry that has a test is stale.
const WITHOUT_TEST: &[(&str, &str)] = &[
    ("internal-error", "a fault of ours; one that a test could reach would be mended"),
    ("source-too-large", "a file of 256 MiB would be needed"),
    ("resource-exhausted", "allocation by need is not there yet: nothing can run out"),
    ("host-missing", "the program is well: it is the command that needs a host block"),
    ("host-input-missing", "found when the program runs, by the host"),
];

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
    let excused: BTreeSet<_> = WITHOUT_TEST.iter().map(|(id, _)| (*id).to_owned()).collect();
    let missing: Vec<_> = Code::all()
        .filter(|code| !tests.contains(code.id()) && !excused.contains(code.id()))
        .collect();
    assert!(missing.is_empty(), "no test in tests/suite/diagnostics: {missing:?}");
}

#[test]
fn no_excuse_is_stale() {
    let tests = names("tests/suite/diagnostics", &["csl", "dfl"]);
    for (id, _) in WITHOUT_TEST {
        assert!(Code::from_id(id).is_some(), "`{id}` is no code");
        assert!(!tests.contains(*id), "`{id}` has a test: it needs no excuse");
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
        assert!(Code::from_id(code).is_some(), "tests/suite/diagnostics/{id}: no such code");
    }
}
