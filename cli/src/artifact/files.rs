//! Files of a folder: written whole or not at all.

use std::path::{Path, PathBuf};

use super::ArtifactError;
use crate::data::{self, Input, Unwritten};
use crate::interrupt::Interrupt;

fn fault(path: &Path, error: &std::io::Error) -> ArtifactError {
    ArtifactError::File { path: path.display().to_string(), reason: Input::reason(error) }
}

/// Makes a folder with its parents.
pub(super) fn make_folder(path: &Path) -> Result<(), ArtifactError> {
    std::fs::create_dir_all(path).map_err(|error| {
        let file = path.ancestors().find(|above| above.exists() && !above.is_dir());
        match file {
            Some(file) => ArtifactError::File {
                path: file.display().to_string(),
                reason: "is a file, and a folder is to be written".to_owned(),
            },
            None => fault(path, &error),
        }
    })
}

/// Writes all files or none, unless Ctrl-C is pressed before they are complete.
pub(super) fn write_all(
    parts: &[(PathBuf, Vec<u8>)],
    interrupt: &Interrupt,
) -> Result<(), ArtifactError> {
    let bytes: Vec<[&[u8]; 1]> = parts.iter().map(|(_, bytes)| [bytes.as_slice()]).collect();
    let files: Vec<(&Path, &[&[u8]])> = std::iter::zip(parts, &bytes)
        .map(|((path, _), bytes)| (path.as_path(), bytes.as_slice()))
        .collect();
    data::write_all(&files, interrupt).map_err(|unwritten: Unwritten| match unwritten.fault() {
        Some((path, reason)) => ArtifactError::File { path: path.display().to_string(), reason },
        None => ArtifactError::Interrupted,
    })
}

/// Removes a file that may not be there.
pub(super) fn remove(path: &Path) -> Result<(), ArtifactError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(fault(path, &error)),
    }
}

/// The bytes of a file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ArtifactError> {
    std::fs::read(path).map_err(|error| fault(path, &error))
}

/// The text of a file, parsed.
pub(super) fn read_text<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, ArtifactError> {
    let bytes = read(path)?;
    let damaged =
        |reason: String| ArtifactError::Damaged { path: path.display().to_string(), reason };
    let text = std::str::from_utf8(&bytes).map_err(|_| damaged("it is not text".into()))?;
    parse(text).map_err(damaged)
}

/// Whether a folder holds ELF files: another compiler's output.
pub(super) fn has_elf(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.path().extension().is_some_and(|end| end == "elf"))
}
