//! Files of the suite as the compiler sees them.

use std::path::{Path, PathBuf};

use dflow_compiler::World;

/// A folder; paths are read relative to it, so that diagnostics are the same everywhere.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl World for Folder {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.0.join(path)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "no such file".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
