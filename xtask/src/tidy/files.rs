//! Finding the files that rules look at.

use std::path::Path;

use super::File;

/// Folders that hold nothing of ours.
const SKIPPED: [&str; 4] = ["target", ".git", "node_modules", "findings"];
/// Endings of files that rules look at.
const ENDINGS: [&str; 9] =
    [".rs", ".toml", ".md", ".csl", ".dfl", ".lalrpop", ".json", ".py", "/run"];

/// Every text file of ours below `root`, sorted by path.
pub(crate) fn collect(root: &Path) -> Vec<File> {
    let mut files = Vec::new();
    visit(root, "", &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn visit(folder: &Path, prefix: &str, files: &mut Vec<File>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                visit(&entry.path(), &path, files);
            }
        } else if ENDINGS.iter().any(|ending| path.ends_with(ending))
            && let Ok(text) = std::fs::read_to_string(entry.path())
        {
            files.push(File { path, text });
        }
    }
}
