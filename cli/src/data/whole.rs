//! Files that are written whole or not at all.
//!
//! A file is written to a temporary one in its own folder, which takes its place by being renamed. Invariants: a link
//! keeps pointing where it points, rights are kept, and what is no regular file (a device, a pipe) is written directly
//! and never replaced.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::Input;
use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// Bytes between two looks at the interrupt flag.
const CHUNK: usize = 1 << 20;

/// Why a file is not written.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// The system does not let us.
    System(PathBuf, io::Error),
    /// The user gave up.
    Interrupted,
}

impl From<Unwritten> for Failure {
    fn from(unwritten: Unwritten) -> Failure {
        match unwritten {
            Unwritten::System(path, error) => {
                let why = Input::reason(&error);
                Failure::program(format!("cannot write {}: {why}", path.display()))
            }
            Unwritten::Interrupted => Failure::interrupted(),
        }
    }
}

/// A file that is complete but not in its place yet.
pub(crate) enum Pending {
    /// Beside its place.
    Ready(NamedTempFile, PathBuf),
    /// What is no regular file has its bytes already.
    Done,
}

impl Pending {
    /// Writes the bytes of a file.
    ///
    /// # Errors
    /// The system does not let us, or the user gave up.
    pub(crate) fn write(
        path: &Path,
        parts: &[&[u8]],
        interrupt: &Interrupt,
    ) -> Result<Pending, Unwritten> {
        let fail = |error| Unwritten::System(path.to_path_buf(), error);
        if is_special(path) {
            let mut file = std::fs::OpenOptions::new().write(true).open(path).map_err(fail)?;
            return match copy(&mut file, parts, interrupt)? {
                Ok(()) => Ok(Pending::Done),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Pending::Done),
                Err(error) => Err(fail(error)),
            };
        }
        // A link keeps pointing where it points.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let mut file = temporary(&folder_of(&target)).map_err(fail)?;
        interrupt.remove_on_exit(file.path());
        copy(file.as_file_mut(), parts, interrupt)?.map_err(fail)?;
        if let Ok(old) = std::fs::metadata(&target) {
            // Rights of the file that is replaced are kept where the system lets us.
            let _ = file.as_file().set_permissions(old.permissions());
        }
        Ok(Pending::Ready(file, target))
    }

    /// Waits until the bytes are on the disk.
    ///
    /// # Errors
    /// The system does not let us.
    pub(crate) fn sync(&self) -> Result<(), Unwritten> {
        let Pending::Ready(file, target) = self else { return Ok(()) };
        file.as_file().sync_all().map_err(|error| Unwritten::System(target.clone(), error))
    }

    /// Puts the file into its place.
    ///
    /// # Errors
    /// The system does not let us.
    pub(crate) fn finish(self) -> Result<(), Unwritten> {
        let Pending::Ready(file, target) = self else { return Ok(()) };
        let renamed = file.persist(&target);
        renamed.map(drop).map_err(|error| Unwritten::System(target, error.error))
    }
}

fn copy(
    file: &mut std::fs::File,
    parts: &[&[u8]],
    interrupt: &Interrupt,
) -> Result<io::Result<()>, Unwritten> {
    for chunk in parts.iter().flat_map(|part| part.chunks(CHUNK)) {
        if interrupt.is_set() {
            return Err(Unwritten::Interrupted);
        }
        if let Err(error) = file.write_all(chunk) {
            return Ok(Err(error));
        }
    }
    if interrupt.is_set() { Err(Unwritten::Interrupted) } else { Ok(Ok(())) }
}

/// A new file in a folder, which is gone when it is dropped.
pub(super) fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".dflow-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As any new file: the user's mask takes its share.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// The folder that a file is in.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// Whether something is there that is neither a file nor a folder.
pub(super) fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}
