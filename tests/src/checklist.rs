//! What public documentation names has a test of ours: each builtin, each member of a library and
//! each option stands in a program that is run, and what can be used wrongly stands in a test that
//! is refused or ends badly.
//!
//! The lists in `tests/checklist` hold names and nothing else; builtins of our own come from the
//! compiler's table, and functions that a library has for nobody but its user come from its source.
//! Invariants: comments and strings do not count as a use; an exception that is not needed fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::header::{self, End};
use crate::world::repository;

/// Programs of the suite that are run, folders counted once.
const RUN_PROGRAMS: usize = 150;

/// Builtins that no program can run, and why.
const NEVER_RUN: &[(&str, &str)] = &[
    ("fnormh", "refused: nothing public says what the normalized form is"),
    ("fnorms", "likewise"),
];

/// Builtins that nothing can be wrong with.
const NEVER_WRONG: &[(&str, &str)] = &[];

/// Members that are not there or cannot be used, and why.
const NO_MEMBER: &[(&str, &str, &str)] =
    &[("<dsd_ops>", "norm", "as `@fnormh` and `@fnorms`, which it is made of")];

/// Functions of libraries that take something and refuse nothing, and why.
const TAKES_ALL: &[(&str, &str, &str)] = &[
    ("<types>", "has_dsd_type", "false is the answer for what is none"),
    ("<types>", "has_dsr_type", "likewise"),
];

/// Options that no program of the suite has, and why.
const NO_OPTION: &[(&str, &str)] = &[];

/// Texts of a kind: without comments and strings.
struct Texts(Vec<String>);

impl Texts {
    fn uses_builtin(&self, name: &str) -> bool {
        self.0.iter().any(|text| has_word(text, '@', name))
    }

    fn uses_field(&self, name: &str) -> bool {
        self.0.iter().any(|text| has_word(text, '.', name))
    }
}

/// Whether a name stands behind a mark, as a whole word.
fn has_word(text: &str, mark: char, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(at, _)| text[..at].ends_with(mark) && !text[at + name.len()..].starts_with(part))
}

/// A line without its comment and without what is in quotes.
fn code_of(line: &str) -> String {
    let mut code = String::new();
    let mut quoted = None;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match quoted {
            Some(_) if c == '\\' => drop(rest.next()),
            Some(end) if c == end => quoted = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quoted = Some(c),
            None if c == '/' && rest.peek() == Some(&'/') => break,
            None => code.push(c),
        }
    }
    code
}

fn whole(text: &str) -> String {
    text.lines().map(code_of).collect::<Vec<_>>().join("\n")
}

/// Lines that an annotation belongs to: what is refused there.
fn refused(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((_, note)) = line.split_once("//~") else { continue };
        let up = note.len() - note.trim_start_matches('^').len();
        out.push_str(&code_of(lines[at.saturating_sub(up)]));
        out.push('\n');
    }
    out
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "csl" || end == "dfl") {
            found.push(path);
        }
    }
}

fn texts_below(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    files(&repository().join(folder), &mut found);
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap_or_default();
        (path, String::from_utf8_lossy(&bytes).into_owned())
    };
    found.into_iter().map(read).collect()
}

/// Whether the program that a file belongs to is run, and ends well. A file without a header is a
/// part of the program of its folder.
fn is_run(path: &Path, text: &str, end: impl Fn(End) -> bool) -> bool {
    let main = ["layout.csl", "main.dfl"].iter().find_map(|main| {
        let main = path.parent().unwrap_or(path).join(main);
        std::fs::read_to_string(main).ok()
    });
    let header = header::parse(text).ok().or_else(|| header::parse(&main?).ok());
    header.is_some_and(|h| h.stages.iter().any(|stage| stage == "run") && end(h.end))
}

fn programs() -> Texts {
    let folders = ["tests/suite/run", "stdlib/tests", "examples"];
    let all = folders.iter().flat_map(|folder| texts_below(folder));
    let run = all.filter(|(path, text)| is_run(path, text, |_| true)).map(|(_, t)| whole(&t));
    // `tests/reference/tests/programs.rs` runs each of these.
    let library = dflow_stdlib::PROGRAMS.iter().map(|program| whole(program.text));
    Texts(run.chain(library).collect())
}

fn faults() -> Texts {
    let mut texts = Vec::new();
    for (path, text) in texts_below("tests/suite") {
        texts.push(refused(&text));
        if is_run(&path, &text, |end| end != End::Ok) {
            texts.push(whole(&text));
        }
        // What is wrong inside a library is shown, and cannot be announced.
        let rendered = path.with_file_name(format!(
            "{}.rendered.snap",
            path.file_name().unwrap_or_default().to_string_lossy()
        ));
        if std::fs::read_to_string(rendered).is_ok_and(|shown| shown.contains("error[")) {
            let only_shown = header::parse(&text).is_ok_and(|h| h.stages == ["rendered"]);
            if only_shown {
                texts.push(whole(&text));
            }
        }
    }
    Texts(texts)
}

fn list(name: &str) -> Vec<(String, Vec<String>)> {
    let path = repository().join("tests/checklist").join(name);
    let text = std::fs::read_to_string(&path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let mut rows = Vec::new();
    for line in lines {
        let mut words = line.split_whitespace().map(str::to_owned);
        if let Some(first) = words.next() {
            rows.push((first, words.collect()));
        }
    }
    rows
}

fn documented_builtins() -> Vec<String> {
    list("builtins.txt")
        .into_iter()
        .flat_map(|(first, rest)| [vec![first], rest].concat())
        .collect()
}

fn builtins() -> BTreeSet<String> {
    let table = dflow_compiler::builtin_table();
    let name = |line: &str| line.strip_prefix('@')?.split_whitespace().next().map(str::to_owned);
    table.lines().filter_map(name).collect()
}

/// Source of a library by its name in angle brackets.
fn library(name: &str) -> Option<String> {
    let name = name.trim_start_matches('<').trim_end_matches('>');
    dflow_stdlib::LIBRARIES.iter().find(|source| source.name == name).map(|s| whole(s.text))
}

/// Functions at file level: name, and whether they take something.
fn functions(source: &str) -> Vec<(String, bool)> {
    let line = |line: &str| {
        let head = line.strip_prefix("inline fn ").or(line.strip_prefix("fn "))?;
        let (name, rest) = head.split_once('(')?;
        Some((name.to_owned(), !rest.trim_start().starts_with(')')))
    };
    source.lines().filter_map(line).collect()
}

fn declares(source: &str, name: &str) -> bool {
    source.lines().any(|line| {
        let line = line.strip_prefix("inline ").unwrap_or(line);
        ["fn ", "const ", "var ", "param ", "task "].iter().any(|kind| {
            let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let rest = line.strip_prefix(kind).and_then(|rest| rest.strip_prefix(name));
            rest.is_some_and(|rest| !rest.starts_with(part))
        })
    })
}

fn members() -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (library, names) in list("members.txt") {
        all.entry(library).or_default().extend(names);
    }
    all
}

#[test]
fn every_documented_builtin_is_there() {
    let known = builtins();
    let missing: Vec<_> =
        documented_builtins().into_iter().filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "documented builtins that are not in the table: {missing:?}");
}

#[test]
fn every_builtin_is_run() {
    let texts = programs();
    let excused: BTreeSet<&str> = NEVER_RUN.iter().map(|&(name, _)| name).collect();
    let all = builtins();
    let unused: Vec<_> = all
        .iter()
        .filter(|name| !excused.contains(name.as_str()) && !texts.uses_builtin(name))
        .collect();
    assert!(unused.is_empty(), "no program of the suite uses {unused:?}");
    for (name, _) in NEVER_RUN {
        assert!(all.contains(*name) && !texts.uses_builtin(name), "`{name}` needs no excuse");
    }
}

#[test]
fn every_builtin_is_refused_somewhere() {
    let texts = faults();
    let excused: BTreeSet<&str> = NEVER_WRONG.iter().map(|&(name, _)| name).collect();
    let untried: Vec<_> = builtins()
        .into_iter()
        .filter(|name| !excused.contains(name.as_str()) && !texts.uses_builtin(name))
        .collect();
    assert!(untried.is_empty(), "no test of what goes wrong has {untried:?}");
    for (name, _) in NEVER_WRONG {
        assert!(!texts.uses_builtin(name), "`{name}` needs no excuse");
    }
}

#[test]
fn every_member_is_there_and_run() {
    let texts = programs();
    let excused =
        |library: &str, name: &str| NO_MEMBER.iter().any(|row| (row.0, row.1) == (library, name));
    let mut missing = Vec::new();
    for (library_name, names) in members() {
        let source = library(&library_name).unwrap_or_default();
        for name in names {
            let fine = declares(&source, &name) && texts.uses_field(&name);
            match (fine, excused(&library_name, &name)) {
                (false, false) => missing.push(format!("{library_name}.{name}")),
                (true, true) => panic!("`{library_name}.{name}` needs no excuse"),
                (true, false) | (false, true) => {}
            }
        }
    }
    assert!(missing.is_empty(), "members without a program, or not there: {missing:?}");
}

/// A function that nothing in the libraries calls is there for users.
#[test]
fn every_function_for_users_is_run() {
    let texts = programs();
    let sources: Vec<(&str, String)> =
        dflow_stdlib::LIBRARIES.iter().map(|source| (source.name, whole(source.text))).collect();
    let mut missing = Vec::new();
    for (library, source) in &sources {
        for (name, _) in functions(source) {
            let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let own = source.match_indices(name.as_str()).filter(|(at, _)| {
                !source[..*at].ends_with(part) && !source[at + name.len()..].starts_with(part)
            });
            let called = own.count() > 1
                || sources
                    .iter()
                    .any(|(other, text)| other != library && has_word(text, '.', &name));
            let full = format!("<{library}>");
            let excused = NO_MEMBER.iter().any(|row| (row.0, row.1) == (&full, &name));
            if !called && !excused && !texts.uses_field(&name) {
                missing.push(format!("{full}.{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "functions that nobody uses: {missing:?}");
}

#[test]
fn every_function_of_a_library_is_refused_something() {
    let texts = faults();
    let excused =
        |library: &str, name: &str| TAKES_ALL.iter().any(|row| (row.0, row.1) == (library, name));
    let mut untried = Vec::new();
    for (library_name, names) in members() {
        let source = library(&library_name).unwrap_or_default();
        for (name, takes) in functions(&source) {
            if takes && names.contains(&name) {
                match (texts.uses_field(&name), excused(&library_name, &name)) {
                    (false, false) => untried.push(format!("{library_name}.{name}")),
                    (true, true) => panic!("`{library_name}.{name}` needs no excuse"),
                    (true, false) | (false, true) => {}
                }
            }
        }
    }
    assert!(untried.is_empty(), "no test of what goes wrong has {untried:?}");
}

#[test]
fn every_option_is_run() {
    let texts = programs();
    let excused: BTreeSet<&str> = NO_OPTION.iter().map(|&(name, _)| name).collect();
    let mut unused = BTreeSet::new();
    for (builtin, names) in list("options.txt") {
        for name in names {
            if !texts.uses_field(&name) && !excused.contains(name.as_str()) {
                unused.insert(format!("{builtin}: .{name}"));
            }
        }
    }
    assert!(unused.is_empty(), "no program of the suite has {unused:?}");
    for (name, _) in NO_OPTION {
        assert!(!texts.uses_field(name), "`.{name}` needs no excuse");
    }
}

#[test]
fn there_are_enough_programs() {
    let mut programs = BTreeSet::new();
    for (path, text) in texts_below("tests/suite/run") {
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let many = ["layout.csl", "main.dfl"].iter().any(|main| folder.join(main).is_file());
        if is_run(&path, &text, |_| true) {
            programs.insert(if many { folder } else { path });
        }
    }
    assert!(programs.len() >= RUN_PROGRAMS, "{} programs are run", programs.len());
}

#[test]
fn comments_and_strings_are_no_uses() {
    let text = "const a = \"@zeros\"; // @rank(x)\nb = @as(u16, '\\''); @asx(c.extent);";
    let texts = Texts(vec![whole(text)]);
    assert!(texts.uses_builtin("as") && texts.uses_field("extent"));
    assert!(!texts.uses_builtin("zeros") && !texts.uses_builtin("rank"));
    assert!(!texts.uses_builtin("asx2") && !texts.uses_field("ext"));
    assert_eq!(refused("a //~ x\nb\n//~^ y\n").trim(), "a \nb");
}
