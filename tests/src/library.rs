//! The sources of `stdlib`: all of them are listed, and each one parses. What is in `stdlib/tests` is an input of the
//! suite.

use std::collections::BTreeSet;
use std::path::Path;

use dflow_stdlib::{LIBRARIES, PROGRAMS};
use dflow_syntax::{Dialect, Interner, SourceMap};

use crate::world::repository;

/// Sources below a folder of the repository.
fn sources(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "dfl" || ending == "csl") {
            let inner = path.strip_prefix(repository()).expect("a path of the repository");
            found.push(inner.to_string_lossy().replace('\\', "/"));
        }
    }
    found
}

#[test]
fn every_source_of_the_library_is_listed() {
    let listed: BTreeSet<_> = LIBRARIES.iter().chain(PROGRAMS).map(|one| one.path).collect();
    let there = sources(&repository().join("stdlib"));
    let there: BTreeSet<_> = there
        .iter()
        .map(String::as_str)
        .filter(|path| !path.starts_with("stdlib/tests/"))
        .collect();
    assert_eq!(listed, there);
}

#[test]
fn every_source_of_the_library_parses() {
    for source in LIBRARIES.iter().chain(PROGRAMS) {
        let file = SourceMap::new().add(source.path, source.text);
        let dialect = Dialect::of_path(source.path);
        let parsed = dflow_syntax::parse(file, source.text, dialect, &mut Interner::new());
        let messages: Vec<_> = parsed.diagnostics.iter().map(|one| format!("{one:?}")).collect();
        assert!(messages.is_empty(), "{}: {messages:#?}", source.path);
    }
}
