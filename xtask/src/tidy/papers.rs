//! Rules about documents: what must be there, and that commands shown exist.

use super::File;

/// Documents that the repository must have, and a word that each must hold.
const NEEDED: [(&str, &str); 5] = [
    ("README.md", "cargo xtask test"),
    ("ARCHITECTURE.md", "runtime"),
    ("CONTRIBUTING.md", "cargo xtask bless"),
    ("CHANGELOG.md", "## Unreleased"),
    ("spec/language.md", "@get_dsd"),
];
/// Commands of the tool that are no file below `cli/src/commands`.
const BUILT_IN: [&str; 1] = ["help"];

/// Missing documents and commands that do not exist.
pub(crate) fn check(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, word) in NEEDED {
        match files.iter().find(|file| file.path == path) {
            None => faults.push(format!("{path}: missing")),
            Some(file) if !file.text.contains(word) => {
                faults.push(format!("{path}: does not mention `{word}`"));
            }
            Some(_) => {}
        }
    }
    let documents = files.iter().filter(|file| {
        file.path.ends_with(".md") && !file.path.starts_with("spec/") && file.path != "CHANGELOG.md"
    });
    for file in documents {
        for (line, text) in shown_commands(&file.text) {
            if let Some(fault) = unknown_command(files, text) {
                faults.push(format!("{}:{line}: {fault}", file.path));
            }
        }
    }
    faults
}

/// Lines inside fenced blocks marked `sh`, numbered from 1.
fn shown_commands(text: &str) -> Vec<(usize, &str)> {
    let mut shown = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = !inside && line == "```sh";
        } else if inside {
            shown.push((index + 1, line.trim()));
        }
    }
    shown
}

fn unknown_command(files: &[File], line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |marker: &str| {
        let at = words.iter().position(|word| *word == marker)?;
        words.get(at + 1).copied()
    };
    if words.starts_with(&["cargo", "xtask"]) {
        let name = words.get(2)?;
        let known = files.iter().any(|file| {
            file.path == "xtask/src/main.rs" && file.text.contains(&format!("Some(\"{name}\""))
        });
        return (!known).then(|| format!("`cargo xtask {name}` does not exist"));
    }
    let name = match words.first() {
        Some(&"dflowc") => words.get(1).copied()?,
        Some(&"cargo") if words.get(1) == Some(&"run") => after("--")?,
        Some(_) | None => return None,
    };
    let paths = ["", "/mod"].map(|end| format!("cli/src/commands/{name}{end}.rs"));
    let known = BUILT_IN.contains(&name) || files.iter().any(|file| paths.contains(&file.path));
    (!known).then(|| format!("`dflowc {name}` does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_commands_are_found() {
        let files = [
            File { path: "cli/src/commands/run.rs".into(), text: String::new() },
            File { path: "xtask/src/main.rs".into(), text: "Some(\"test\") =>".into() },
        ];
        assert_eq!(unknown_command(&files, "cargo run --release -- run ceresz"), None);
        assert!(unknown_command(&files, "dflowc walk").is_some());
        assert_eq!(unknown_command(&files, "cargo xtask test"), None);
        assert!(unknown_command(&files, "cargo xtask dance").is_some());
    }

    #[test]
    fn only_shell_blocks_are_read() {
        let text = "```sh\na\n```\nb\n```text\nc\n```\n";
        assert_eq!(shown_commands(text), [(2, "a")]);
    }
}
