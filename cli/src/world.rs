//! Files as the compiler sees them: on disk, or in the library that is part of this program.

use std::io::Read as _;

use dflow_compiler::{World, fold};
use dflow_syntax::MAX_SOURCE_BYTES;

use crate::data::Input;

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskWorld;

impl World for DiskWorld {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        read(path)
    }

    fn locate(&self, path: &str) -> Option<String> {
        let real = std::fs::canonicalize(path).ok().filter(|real| real.is_file())?;
        let folded = fold(path);
        // Behind a link `..` leads elsewhere than the text says.
        let same = std::fs::canonicalize(&folded).is_ok_and(|other| other == real);
        Some(if same { folded } else { real.to_string_lossy().into_owned() })
    }
}

/// Reads a source file or image, but no folder, and no more than the compiler takes.
pub(crate) fn read(path: &str) -> Result<Vec<u8>, String> {
    read_at_most(path, MAX_SOURCE_BYTES as u64 + 1)
}

/// The first bytes of a file, at most `limit`.
pub(crate) fn read_at_most(path: &str, limit: u64) -> Result<Vec<u8>, String> {
    let data = std::fs::metadata(path).map_err(|error| Input::reason(&error))?;
    if data.is_dir() {
        return Err("is a folder".into());
    }
    let file = std::fs::File::open(path).map_err(|error| Input::reason(&error))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).map_err(|error| Input::reason(&error))?;
    Ok(bytes)
}
