//! Rules about single files: length, `unsafe`, unfinished parts, names of libraries.

use super::File;

/// No file has more lines than this.
const MAX_LINES: usize = 700;
/// The only files that may hold `unsafe`.
const UNSAFE: [&str; 3] =
    ["runtime/src/jit/context.rs", "runtime/src/jit/helpers.rs", "runtime/src/jit/code.rs"];
/// Libraries that the machine must not know.
const LIBRARIES: [&str; 9] = [
    "memcpy",
    "collectives",
    "ceresz",
    "tally",
    "allreduce",
    "kernels/fft",
    "message_passing",
    "tile_config",
    "simprint",
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

/// Names of libraries in the machine: they would be a back door.
pub(crate) fn library_names(file: &File) -> Vec<String> {
    if !file.path.starts_with("runtime/src/") || file.is_test() {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for (line, text) in file.text.lines().enumerate() {
        let lower = text.to_lowercase();
        for name in LIBRARIES {
            let at_home = name == "memcpy" && file.path.starts_with(HOST);
            if lower.contains(name) && !at_home {
                faults.push(format!("{}:{}: the machine knows `{name}`", file.path, line + 1));
            }
        }
    }
    faults
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

    #[test]
    fn the_machine_knows_memcpy_at_the_host_only() {
        assert_eq!(library_names(&file("runtime/src/sched/a.rs", "// memcpy")).len(), 1);
        assert!(library_names(&file("runtime/src/host/a.rs", "// memcpy")).is_empty());
        assert_eq!(library_names(&file("runtime/src/host/a.rs", "ceresz")).len(), 1);
    }

    #[test]
    fn long_files_are_found() {
        assert!(too_long(&file("a.rs", &"x\n".repeat(1001))).is_some());
        assert!(too_long(&file("a.md", &"x\n".repeat(1001))).is_none());
    }
}
