//! The compiler's only door to files.

use std::collections::BTreeMap;

/// What the compiler may ask of its surroundings.
pub trait World: Sync {
    /// The bytes of a file. Paths are as written, joined to the importing file's folder with `/`.
    ///
    /// # Errors
    /// A short reason, for the diagnostic.
    fn read(&self, path: &str) -> Result<Vec<u8>, String>;
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
