//! The compiler's only door to files.

use std::collections::BTreeMap;

/// What the compiler may ask of its surroundings.
pub trait World: Sync {
    /// The bytes of a file. Paths are as written, joined to the importing file's folder with `/`.
    ///
    /// # Errors
    /// A short reason, for the diagnostic.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;

    /// The one name of the file that `path` leads to, or `None` if no file is there. `path` may hold
    /// `..`; a world with links must follow them as its system does.
    fn locate(&self, path: &str) -> Option<String> {
        let path = fold(path);
        self.read(&path).is_ok().then_some(path)
    }
}

/// `path` with `.` and `..` taken out as far as its own text allows.
#[must_use]
pub fn fold(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for (at, part) in path.split('/').enumerate() {
        match part {
            "" if at == 0 => parts.push(""),
            "." | "" => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, ".." | "")) => {
                parts.pop();
            }
            ".." if parts.last() == Some(&"") => {}
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// Files in memory, for tests.
#[derive(Clone, Debug, Default)]
pub struct MemoryWorld {
    files: BTreeMap<String, Vec<u8>>,
}

impl MemoryWorld {
    /// No files.
    pub fn new() -> MemoryWorld {
        MemoryWorld::default()
    }

    /// With a file.
    #[must_use]
    pub fn with(mut self, path: &str, text: impl Into<Vec<u8>>) -> MemoryWorld {
        self.files.insert(path.to_owned(), text.into());
        self
    }
}

impl World for MemoryWorld {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.files.get(path).cloned().ok_or_else(|| "no such file".to_owned())
    }
}
