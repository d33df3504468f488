//! What the files of a folder name outside of it: words with `..` in sources and scripts that lead
//! to something that is there.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Endings of files that name others.
const ENDINGS: [&str; 5] = ["csl", "dfl", "py", "sh", "json"];

/// Larger files are data.
const MAX_BYTES: u64 = 1 << 20;

/// Files that are looked at, at most.
const MAX_FILES: usize = 20_000;

/// Files and folders outside of `folder`, each once, none inside another.
pub(super) fn named(folder: &Path) -> Vec<PathBuf> {
    let mut known = BTreeSet::new();
    let mut queue = files(folder);
    let mut looked_at = 0;
    while let Some(file) = queue.pop() {
        looked_at += 1;
        if looked_at > MAX_FILES {
            break;
        }
        for path in named_by(&file) {
            let inside = path.starts_with(folder)
                || known.iter().any(|other: &PathBuf| path.starts_with(other));
            if inside {
                continue;
            }
            for part in needed(&path, folder) {
                queue.extend(files(&part));
                known.insert(part);
            }
        }
    }
    let all: Vec<PathBuf> = known.into_iter().collect();
    let inner = |path: &PathBuf| all.iter().any(|other| other != path && path.starts_with(other));
    all.iter().filter(|path| !inner(path)).cloned().collect()
}

/// What to copy for a path: its folder. Of a folder that holds the one that is looked at, only the
/// files in it.
fn needed(path: &Path, folder: &Path) -> Vec<PathBuf> {
    let own = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    if !folder.starts_with(own) {
        return vec![own.to_path_buf()];
    }
    let entries = std::fs::read_dir(own).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

/// The source files of a path.
fn files(path: &Path) -> Vec<PathBuf> {
    let is_source = |path: &Path| {
        path.extension().is_some_and(|end| ENDINGS.iter().any(|known| end == *known))
            && std::fs::metadata(path).is_ok_and(|data| data.len() <= MAX_BYTES)
    };
    if path.is_file() {
        return if is_source(path) { vec![path.to_path_buf()] } else { Vec::new() };
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let kind = entry.file_type();
        if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) {
            found.extend(files(&entry.path()));
        } else if kind.is_ok_and(|kind| kind.is_file()) && is_source(&entry.path()) {
            found.push(entry.path());
        }
    }
    found
}

/// Paths with `..` that a file names and that exist.
fn named_by(file: &Path) -> Vec<PathBuf> {
    let Ok(bytes) = std::fs::read(file) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let folder = file.parent().unwrap_or(Path::new("/"));
    let ends = |c: char| c.is_whitespace() || "\"'`=,:;()[]{}<>|&".contains(c);
    let words = text.split(ends).filter(|word| word.split('/').any(|part| part == ".."));
    let paths = words.filter(|word| !word.starts_with('/')).map(|word| fold(&folder.join(word)));
    paths.filter(|path| path.exists()).collect()
}

/// A path without `.` and `..`.
fn fold(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                folded.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => folded.push(part),
        }
    }
    folded
}
