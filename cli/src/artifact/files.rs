//! Files of a folder: written whole or not at all.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::ArtifactError;
use crate::data::Input;

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

/// Writes all files beside their places, then moves them there in order.
pub(super) fn write_all(parts: &[(PathBuf, Vec<u8>)]) -> Result<(), ArtifactError> {
    let mut ready = Vec::new();
    for (path, bytes) in parts {
        ready.push((path, temporary(path, bytes).map_err(|error| fault(path, &error))?));
    }
    ready.into_iter().try_for_each(|(path, file)| {
        file.persist(path).map(drop).map_err(|error| fault(path, &error.error))
    })
}

fn temporary(path: &Path, bytes: &[u8]) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".dflow-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As any new file: the user's mask takes its share.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    Ok(file)
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
