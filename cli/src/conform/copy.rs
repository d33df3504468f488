//! Copying trees. Where the file system shares blocks between copies, no data move.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders that no program needs.
const SKIPPED: [&str; 3] = [".git", "__pycache__", ".venv"];

/// A file and why it cannot be copied.
pub(super) type Fault = (PathBuf, io::Error);

/// Copies a file or folder. Links into `base` become links to the same place of `root`; others
/// keep pointing where they point.
pub(super) fn tree(from: &Path, to: &Path, base: &Path, root: &Path) -> Result<(), Fault> {
    let at = |error: io::Error| (from.to_path_buf(), error);
    let kind = fs::symlink_metadata(from).map_err(at)?.file_type();
    if kind.is_symlink() {
        return link(from, to, base, root).map_err(at);
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent).map_err(at)?;
    }
    if !kind.is_dir() {
        // Pipes and devices are nothing to copy.
        return if kind.is_file() { file(from, to).map_err(at) } else { Ok(()) };
    }
    fs::create_dir_all(to).map_err(at)?;
    for entry in fs::read_dir(from).map_err(at)? {
        let name = entry.map_err(at)?.file_name();
        if !SKIPPED.iter().any(|skipped| name == *skipped) {
            tree(&from.join(&name), &to.join(&name), base, root)?;
        }
    }
    Ok(())
}

fn file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    #[cfg(unix)]
    {
        // Scripts may write over what they were given.
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(to)?.permissions().mode();
        fs::set_permissions(to, fs::Permissions::from_mode(mode | 0o200))?;
    }
    Ok(())
}

#[cfg(unix)]
fn link(from: &Path, to: &Path, base: &Path, root: &Path) -> io::Result<()> {
    let text = fs::read_link(from)?;
    let target = match fs::canonicalize(from) {
        // A link inside the tree stays one: written as it was, or to the copy.
        Ok(real) => match real.strip_prefix(base) {
            Ok(_) if text.is_relative() => text,
            Ok(inner) => root.join(inner),
            Err(_) => real,
        },
        Err(_) => text,
    };
    if fs::symlink_metadata(to).is_ok() {
        fs::remove_file(to)?;
    }
    std::os::unix::fs::symlink(target, to)
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path, _: &Path, _: &Path) -> io::Result<()> {
    fs::copy(from, to).map(drop)
}
