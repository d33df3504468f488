//! `spec/mistakes.md`: the index of typical mistakes, made from `tests/suite/mistakes`.
//!
//! A program there has a header line `//# mistake: …`; what the compiler or the machine says of it,
//! and what it says to do, goes into the index. `UPDATE_SNAPSHOTS=1` writes the page anew.

use std::fmt::Write as _;
use std::path::Path;

use dflow_compiler::{Compiled, Options};
use dflow_syntax::diagnostic::render;
use dflow_syntax::{Diagnostic, Severity};

use crate::header::{self, Header};
use crate::world::{Folder, repository};

/// As the suite has them: an endless loop is to end soon.
const STEPS: u64 = 20_000_000;

const PAGE: &str = "spec/mistakes.md";

/// Folders of `tests/suite/mistakes` and their titles.
const GROUPS: &[(&str, &str)] = &[
    ("values", "Values and types"),
    ("descriptors", "Descriptors and vector operations"),
    ("tasks", "Tasks, colors and queues"),
    ("layout", "The layout"),
    ("modules", "Params, modules, exports"),
    ("host", "The host's side"),
    ("run", "While the program runs"),
];

const INTRODUCTION: &str = "\
# Typical mistakes

What people get wrong, what they are told, and what to do. Every entry is a small program of `tests/suite/mistakes`, and this page is made from
them (`UPDATE_SNAPSHOTS=1 cargo test -p dflow-tests mistakes`); the whole report of each, with the source line and the marks under it, stands in
the snapshot beside it. `dflowc explain <code>` shows a code's page.
";

fn sources(folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(repository().join("tests/suite").join(folder));
    let mut paths: Vec<String> = entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".csl") || name.ends_with(".dfl"))
        .map(|name| format!("{folder}/{name}"))
        .collect();
    paths.sort();
    paths
}

/// What an entry shows.
struct Entry {
    line: String,
    message: String,
    help: Vec<String>,
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for (folder, title) in GROUPS {
        let _ = write!(page, "\n## {title}\n");
        for path in sources(&format!("mistakes/{folder}")) {
            let text = read(&path);
            let header = header::parse(&text).unwrap_or_else(|fault| panic!("{path}: {fault}"));
            let Some(mistake) = &header.mistake else { panic!("{path} has no `mistake`") };
            let entry = match header.stages.iter().any(|stage| stage == "run") {
                true => of_run(&path, &text),
                false => of_compilation(&path, &header),
            };
            let _ = write!(page, "\n**{}** ([source](../tests/suite/{path}))\n", upper(mistake));
            show(&mut page, &entry);
        }
    }
    page += "\n## Host scripts in Python\n";
    page += &host_scripts();
    page += "\n## Habits of other languages\n\n| what is written | what is said | instead |\n| --- | --- | --- |\n";
    for path in sources("diagnostics/habits") {
        let text = read(&path);
        let header = header::parse(&text).unwrap_or_else(|fault| panic!("{path}: {fault}"));
        let Entry { line, message, help } = of_compilation(&path, &header);
        let cell = |text: &str| text.replace('|', "\\|");
        let _ = writeln!(
            page,
            "| `{}` | {} | {} |",
            cell(&line.replace('`', "'")),
            cell(&message),
            cell(&help.join("; "))
        );
    }
    page
}

fn show(page: &mut String, entry: &Entry) {
    let _ = write!(page, "\n```text\n{}\n{}\n", entry.line, entry.message);
    for help in &entry.help {
        let _ = writeln!(page, "help: {help}");
    }
    page.push_str("```\n");
}

fn upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

fn read(path: &str) -> String {
    let file = repository().join("tests/suite").join(path);
    String::from_utf8_lossy(&std::fs::read(file).unwrap_or_default()).into_owned()
}

/// The first error, else the first warning, of a program.
fn of_compilation(path: &str, header: &Header) -> Entry {
    let target = header.targets.first().copied().unwrap_or_else(|| panic!("{path}: no target"));
    let params = header.args.clone();
    let options =
        Options { target, params, tests: true, comptime_steps: STEPS, ..Options::default() };
    let world = Folder(repository().join("tests/suite"));
    let compiled = dflow_compiler::compile(&world, path, options);
    let found = |severity| compiled.diagnostics.iter().find(|d| d.severity() == severity);
    let diagnostic = found(Severity::Error)
        .or_else(|| found(Severity::Warning))
        .or_else(|| found(Severity::Note))
        .unwrap_or_else(|| panic!("{path}: nothing is said"));
    Entry {
        line: line_of(&compiled, diagnostic),
        message: format!(
            "{}[{:?}]: {}",
            diagnostic.severity().name(),
            diagnostic.code(),
            diagnostic.message()
        ),
        help: diagnostic.help_texts().to_vec(),
    }
}

/// The line that a diagnostic points to.
fn line_of(compiled: &Compiled, diagnostic: &Diagnostic) -> String {
    let Some(span) = diagnostic.span() else {
        return render::short(&compiled.sources, diagnostic);
    };
    let line = compiled.sources.position(span.file, span.start).line as usize;
    let text = compiled.sources.text(span.file).lines().nth(line - 1).unwrap_or_default();
    text.trim().to_owned()
}

/// How a run ends, from its snapshot, and the line that it names first.
fn of_run(path: &str, text: &str) -> Entry {
    let snapshot = read(&format!("{path}.run.snap"));
    let Some((before, end)) = snapshot.split_once("\nend: ") else {
        panic!("{path}: no snapshot of the run: cargo xtask bless {path}")
    };
    let end = end.trim_end();
    // A run that ends well has warnings and notes, which come first.
    let said = before.rsplit_once("---\n").map_or("", |(_, said)| said);
    let message = end.split_once('\n').map_or(said, |(_, message)| message);
    let named = format!("{path}:");
    let number = message.split(named.as_str()).skip(1).find_map(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<usize>().ok()
    });
    let line = number.and_then(|number| text.lines().nth(number - 1)).unwrap_or_default();
    Entry {
        line: line.trim().to_owned(),
        message: message.replace(&format!("{path}:"), "line "),
        help: Vec::new(),
    }
}

/// What the Python tests compare with.
fn host_scripts() -> String {
    let file = repository().join("python/tests/mistakes.txt");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut page = String::new();
    for block in text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let (mistake, rest) = block.split_once('\n').unwrap_or((block, ""));
        let _ = write!(page, "\n**{}**\n\n```text\n{rest}\n```\n", upper(mistake));
    }
    page
}

#[test]
fn the_index_of_mistakes_is_that_of_the_programs() {
    let file = repository().join(PAGE);
    let page = page();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some_and(|value| !value.is_empty() && value != "0") {
        write(&file, &page);
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == page,
        "{PAGE} is not what the programs say now: UPDATE_SNAPSHOTS=1 cargo test -p dflow-tests mistakes"
    );
}

fn write(file: &Path, page: &str) {
    if let Err(error) = std::fs::write(file, page) {
        panic!("{}: {error}", file.display());
    }
}

#[test]
fn there_are_more_than_forty_typical_mistakes() {
    let folders = GROUPS.iter().map(|(folder, _)| sources(&format!("mistakes/{folder}")).len());
    assert!(folders.sum::<usize>() >= 55);
}
