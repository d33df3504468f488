//! House rules that a machine can check. Each rule is a function from the files of the
//! repository to faults; all of them run as a test.

mod arrows;
mod files;
mod papers;
mod text;

use std::path::{Path, PathBuf};

/// A file that rules look at.
pub(crate) struct File {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    /// Its text; files that are no text are left out.
    pub(crate) text: String,
}

impl File {
    /// Whether it holds tests only: those may look at what they test from anywhere.
    pub(crate) fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Every fault, one line each, in order of the rules.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let files = files::collect(root);
    let mut faults = Vec::new();
    if files.is_empty() {
        faults.push(format!("{}: no files found", root.display()));
    }
    faults.extend(files.iter().flat_map(text::too_long));
    faults.extend(files.iter().flat_map(text::misplaced_unsafe));
    faults.extend(files.iter().flat_map(text::unfinished));
    let libraries = text::libraries(&files);
    faults.extend(files.iter().flat_map(|file| text::library_names(file, &libraries)));
    faults.extend(text::missing_forbid(&files));
    faults.extend(arrows::crates(&files));
    faults.extend(arrows::modules(&files));
    faults.extend(papers::check(&files));
    faults
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_repository_is_tidy() {
        let faults = super::check(&super::root());
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
