//! Rules about single files: length, `unsafe`, unfinished parts, names of libraries.

use std::collections::BTreeSet;

use super::File;

/// No file has more lines than this.
const MAX_LINES: usize = 700;
/// The only files that may hold `unsafe`.
const UNSAFE: [&str; 3] =
    ["runtime/src/jit/context.rs", "runtime/src/jit/helpers.rs", "runtime/src/jit/code.rs"];
/// Where libraries are listed: `source!("name", …)`, and programs behind them.
const LIST: &str = "stdlib/src/lib.rs";
/// Libraries are also called as other things are: those of these names are found by how they are imported alone.
const ORDINARY: [&str; 13] = [
    "control",
    "debug",
    "directions",
    "empty",
    "kernels",
    "layout",
    "math",
    "random",
    "report",
    "schedule",
    "string",
    "time",
    "types",
];
/// What tells releases of the vendor's SDK from one another by the libraries that sources import.
const MARKS: &str = "compiler/core/src/dialect/marks.rs";
/// Crates that libraries are nothing special to.
const BLIND: [&str; 6] = [
    "compiler/core/src/",
    "compiler/ir/src/",
    "compiler/syntax/src/",
    "runtime/src/",
    "cli/src/",
    "python/src/",
];
/// `memcpy` is also the host's side of its protocol.
const HOST: &str = "runtime/src/host/";

/// Files that nobody reads to the end.
pub(crate) fn too_long(file: &File) -> Option<String> {
    let source = [".rs", ".lalrpop", ".csl", ".dfl"].iter().any(|end| file.path.ends_with(end));
    let lines = file.text.lines().count();
    let allowed = !source || lines <= MAX_LINES;
    (!allowed).then(|| format!("{}: {lines} lines, more than {MAX_LINES}: split it", file.path))
}

/// `unsafe` outside the three files that may hold it.
pub(crate) fn misplaced_unsafe(file: &File) -> Vec<String> {
    if !file.is_rust() || UNSAFE.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let found = code_lines(&file.text).filter(|(_, code)| has_word(code, "unsafe"));
    found.map(|(line, _)| format!("{}:{line}: unsafe outside {UNSAFE:?}", file.path)).collect()
}

/// Parts that say they are not there yet by panicking, and tests that are not run.
pub(crate) fn unfinished(file: &File) -> Vec<String> {
    if !file.is_rust() || file.path.starts_with("xtask/") {
        return Vec::new();
    }
    let macros = ["todo!(", "unimplemented!("];
    let holds = |code: &str, words: &[&str]| words.iter().any(|word| code.contains(word));
    let mut faults = Vec::new();
    for (line, code) in code_lines(&file.text) {
        if holds(&code, &macros) {
            faults.push(format!("{}:{line}: not there yet: give a diagnostic instead", file.path));
        }
        if holds(&code, &["#[ignore"]) {
            faults.push(format!("{}:{line}: a test that nobody runs", file.path));
        }
    }
    faults
}

/// Names of all libraries, as they are imported.
pub(crate) fn libraries(files: &[File]) -> Vec<&str> {
    let list = files.iter().find(|file| file.path == LIST).map_or("", |file| &file.text);
    let libraries = list.split("pub const PROGRAMS").next().unwrap_or_default();
    let sources = libraries.split("source!(").skip(1);
    sources.filter_map(|source| source.trim_start().strip_prefix('"')?.split('"').next()).collect()
}

/// Names of libraries in the machine: they would be a back door. So would an import that Rust code waits for; what
/// diagnostics say to people is none.
pub(crate) fn library_names(file: &File, libraries: &[&str]) -> Vec<String> {
    if !BLIND.iter().any(|home| file.path.starts_with(home)) || file.is_test() {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for (line, text) in file.text.lines().enumerate() {
        let at = format!("{}:{}", file.path, line + 1);
        let import = libraries.iter().find(|name| text.contains(&format!("\"<{name}>\"")));
        if let Some(name) = import.filter(|_| file.is_rust() && file.path != MARKS) {
            faults.push(format!("{at}: code that waits for the library <{name}>"));
        }
        if file.path.starts_with("runtime/src/") {
            let known = words_of(libraries).into_iter().filter(|name| is_named(file, text, name));
            faults.extend(known.map(|name| format!("{at}: the machine knows `{name}`")));
        }
    }
    faults
}

/// What libraries are called beside ordinary words, each once: the first such part of each name.
fn words_of<'a>(libraries: &[&'a str]) -> BTreeSet<&'a str> {
    let part = |name: &&'a str| name.split('/').find(|part| !ORDINARY.contains(part));
    libraries.iter().filter_map(part).collect()
}

fn is_named(file: &File, line: &str, name: &str) -> bool {
    let at_home = name == "memcpy" && file.path.starts_with(HOST);
    line.to_lowercase().contains(name) && !at_home
}

/// Crates that do not forbid `unsafe`.
pub(crate) fn missing_forbid(files: &[File]) -> Vec<String> {
    let roots = files.iter().filter(|file| {
        let root = file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
        root && !file.path.starts_with("runtime/") && !file.path.starts_with("examples/")
    });
    roots
        .filter(|file| !file.text.contains("#![forbid(unsafe_code)]"))
        .map(|file| format!("{}: does not forbid unsafe_code", file.path))
        .collect()
}

/// Lines without comments and string literals, numbered from 1. Good enough for searching words:
/// a literal over several lines is not seen as one.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, without_comment(line)))
}

fn without_comment(line: &str) -> String {
    let mut code = String::new();
    let mut in_string = false;
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' => in_string = !in_string,
            '\\' if in_string => {
                characters.next();
            }
            '/' if !in_string && characters.peek() == Some(&'/') => break,
            other if !in_string => code.push(other),
            _ => {}
        }
    }
    code
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn unsafe_is_found_in_code_only() {
        let text = "// unsafe\nlet a = \"unsafe\";\n#![forbid(unsafe_code)]\nunsafe { f() }\n";
        assert_eq!(misplaced_unsafe(&file("cli/src/a.rs", text)).len(), 1);
        assert!(misplaced_unsafe(&file(UNSAFE[0], text)).is_empty());
    }

    const SOME: [&str; 4] = ["ceresz/pe", "kernels/tally/pe", "memcpy/memcpy", "time"];

    #[test]
    fn the_machine_knows_memcpy_at_the_host_only() {
        let names = |path, text| library_names(&file(path, text), &SOME).len();
        assert_eq!(names("runtime/src/sched/a.rs", "// memcpy"), 1);
        assert_eq!(names("runtime/src/host/a.rs", "// memcpy"), 0);
        assert_eq!(names("runtime/src/host/a.rs", "ceresz"), 1);
        assert_eq!(names("runtime/src/host/a.rs", "tally"), 1);
        assert_eq!(names("runtime/src/host/a.rs", "the time of kernels"), 0);
    }

    #[test]
    fn imports_are_waited_for_by_marks_alone() {
        let names = |path, text| library_names(&file(path, text), &SOME).len();
        let waits = "if path == \"<time>\" {";
        assert_eq!(names("compiler/core/src/a.rs", waits), 1);
        assert_eq!(names("cli/src/a.rs", waits), 1);
        assert_eq!(names(MARKS, waits), 0);
        assert_eq!(names("compiler/core/src/a.rs", "\"it is in `<time>`\""), 0);
    }

    #[test]
    fn names_are_those_of_the_library() {
        let files = super::super::files::collect(&super::super::root());
        let names = libraries(&files);
        for name in ["allreduce/choice", "kernels/tally/pe", "simprint"] {
            assert!(names.contains(&name), "{name} of {names:?}");
        }
        for word in ORDINARY {
            let is_part = names.iter().any(|name| name.split('/').any(|part| part == word));
            assert!(is_part, "no library is called {word}");
        }
    }

    #[test]
    fn long_files_are_found() {
        assert!(too_long(&file("a.rs", &"x\n".repeat(1001))).is_some());
        assert!(too_long(&file("a.md", &"x\n".repeat(1001))).is_none());
    }
}
