//! Files that are written whole or not at all, and several of them all or none.
//!
//! A file is written to a temporary one in its own folder and synced; when all are there, each takes its place by being
//! renamed. Should the system refuse one of several, those before it get back what they were. Invariants: a link to
//! a file keeps pointing there, rights are kept, and what is no regular file (a device, a pipe) is written directly and
//! never replaced, nor can it give back what it has taken.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use super::Input;
use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// Bytes between two looks at the interrupt flag.
const CHUNK: usize = 1 << 20;

/// Links that are followed one after the other before they count as a circle: Linux follows as many.
const LINKS: usize = 40;

/// Why a file is not written.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// The system does not let us.
    System(PathBuf, io::Error),
    /// The system does not let us, and does not let us put back another file, which is the new one.
    Torn(PathBuf, io::Error, Torn),
    /// The user gave up.
    Interrupted,
}

/// A file that is written and cannot be put back.
#[derive(Debug)]
pub(crate) struct Torn {
    new: PathBuf,
    /// Where what it was lies now, if it was there.
    old: Option<PathBuf>,
}

impl Unwritten {
    /// The file, if it is not the user who gave up, and why it is not written.
    pub(crate) fn fault(&self) -> Option<(&Path, String)> {
        match self {
            Unwritten::System(path, error) => Some((path, Input::reason(error))),
            Unwritten::Torn(path, error, other) => {
                let (why, new) = (Input::reason(error), other.new.display());
                let old = match &other.old {
                    Some(old) => format!(", what it was is {}", old.display()),
                    None => String::new(),
                };
                Some((path, format!("{why}; {new} is written and cannot be put back{old}")))
            }
            Unwritten::Interrupted => None,
        }
    }
}

impl From<Unwritten> for Failure {
    fn from(unwritten: Unwritten) -> Failure {
        unwritten.fault().map_or_else(Failure::interrupted, |(path, why)| {
            Failure::program(format!("cannot write {}: {why}", path.display()))
        })
    }
}

/// Writes files, each with the bytes of its parts: all of them or none. What is no regular file has its bytes at once.
///
/// # Errors
/// The system does not let us, or the user gave up before all were complete.
pub(crate) fn write_all(
    files: &[(&Path, &[&[u8]])],
    interrupt: &Interrupt,
) -> Result<(), Unwritten> {
    let mut ready = Vec::new();
    for (path, parts) in files {
        ready.extend(Pending::write(path, parts, interrupt)?);
    }
    put(ready, |from, to| std::fs::hard_link(from, to))
}

/// A file that is complete and on the disk, beside its place.
struct Pending {
    file: NamedTempFile,
    target: PathBuf,
}

impl Pending {
    /// Writes the bytes of a file, and waits until they are on the disk. None if it is no regular one, which has them
    /// then.
    fn write(
        path: &Path,
        parts: &[&[u8]],
        interrupt: &Interrupt,
    ) -> Result<Option<Pending>, Unwritten> {
        let fail = |error| Unwritten::System(path.to_path_buf(), error);
        if path.is_dir() {
            return Err(fail(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        if is_special(path) {
            let mut file = std::fs::OpenOptions::new().write(true).open(path).map_err(fail)?;
            return match copy(&mut file, parts, interrupt)? {
                Ok(()) => Ok(None),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(None),
                Err(error) => Err(fail(error)),
            };
        }
        // A link to a file keeps pointing there.
        let target = destination(path).map_err(fail)?;
        check_size(parts).map_err(fail)?;
        let mut file = temporary(&folder_of(&target)).map_err(fail)?;
        interrupt.remove_on_exit(file.path());
        copy(file.as_file_mut(), parts, interrupt)?.map_err(fail)?;
        if let Ok(old) = std::fs::metadata(&target) {
            // Rights of the file that is replaced are kept where the system lets us.
            let _ = file.as_file().set_permissions(old.permissions());
        }
        // Else a crash might leave the name without the bytes.
        file.as_file().sync_all().map_err(fail)?;
        Ok(Some(Pending { file, target }))
    }
}

/// Puts files into their places. `link` gives a file a second name.
fn put(
    ready: Vec<Pending>,
    link: impl Fn(&Path, &Path) -> io::Result<()>,
) -> Result<(), Unwritten> {
    let alone = ready.len() == 1;
    let mut placed = Vec::new();
    for Pending { file, target } in ready {
        // Nothing can be half done with one.
        let old = if alone { Ok(None) } else { set_aside(&target, &link) };
        let moved = old.and_then(|old| {
            placed.push((target.clone(), old));
            file.persist(&target).map_err(|error| error.error)
        });
        if let Err(error) = moved {
            return Err(match put_back(placed) {
                Some(torn) => Unwritten::Torn(target, error, torn),
                None => Unwritten::System(target, error),
            });
        }
    }
    Ok(())
}

/// Keeps what is at a place under another name, which is gone when it is dropped. Where the file system knows no second
/// names, it is moved there.
fn set_aside(
    target: &Path,
    link: impl Fn(&Path, &Path) -> io::Result<()>,
) -> io::Result<Option<TempPath>> {
    if !target.try_exists()? {
        return Ok(None);
    }
    if target.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let folder = folder_of(target);
    if let Ok(old) = beside().make_in(&folder, |path| link(target, path)) {
        return Ok(Some(old.into_temp_path()));
    }
    let old = beside().make_in(&folder, |path| std::fs::rename(target, path))?;
    Ok(Some(old.into_temp_path()))
}

/// Gives places back what was there. One that cannot have it is told; what it was stays beside it.
fn put_back(placed: Vec<(PathBuf, Option<TempPath>)>) -> Option<Torn> {
    let mut torn = None;
    for (target, old) in placed.into_iter().rev() {
        let done = match old {
            Some(old) => {
                let aside = old.to_path_buf();
                old.persist(&target).map_err(|error| error.path.keep().ok()).map(|()| {
                    // Two names of one file are left alone by a rename.
                    let _ = std::fs::remove_file(aside);
                })
            }
            None => match std::fs::remove_file(&target) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(None),
                Ok(()) | Err(_) => Ok(()),
            },
        };
        if let Err(old) = done {
            torn = Some(Torn { new: target, old });
        }
    }
    torn
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
    let mut builder = beside();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As any new file: the user's mask takes its share.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// How files beside others are called.
fn beside() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".dflow-").suffix(".part");
    builder
}

/// The folder that a file is in.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// Where a file of this name will be: at the end of links, whether it is there or not.
///
/// # Errors
/// Links lead in a circle.
pub(super) fn destination(path: &Path) -> io::Result<PathBuf> {
    if let Ok(place) = path.canonicalize() {
        return Ok(place);
    }
    let mut place = path.to_path_buf();
    for _ in 0..=LINKS {
        let Ok(next) = place.read_link() else {
            let there = || Some(folder_of(&place).canonicalize().ok()?.join(place.file_name()?));
            return Ok(there().unwrap_or(place));
        };
        place = folder_of(&place).join(next);
    }
    Err(io::Error::other("its links lead in a circle"))
}

/// Refuses what is more than a file may have here: the system would end the process for trying.
fn check_size(parts: &[&[u8]]) -> io::Result<()> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if let Some(most) = getrlimit(Resource::Fsize).current.filter(|most| bytes > *most) {
            let why = format!("a file may have {most} bytes here (`ulimit -f`), it needs {bytes}");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
    }
    Ok(())
}

/// Whether something is there that is neither a file nor a folder.
pub(super) fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Link = fn(&Path, &Path) -> io::Result<()>;

    /// The second of three files has nothing that could take its place; what is there then, by name.
    fn after_a_failure(link: Link) -> io::Result<Vec<(String, String)>> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        for name in ["b", "c"] {
            std::fs::write(at(name), "old")?;
        }
        let never = Interrupt::never();
        let write = |name: &str| Pending::write(&at(name), &[b"new"], &never).ok().flatten();
        let ready: Vec<Pending> = ["a", "b", "c"].iter().filter_map(|name| write(name)).collect();
        std::fs::remove_file(ready[2].file.path())?;
        let failure = put(ready, link).expect_err("one file is not there");
        assert!(
            matches!(&failure, Unwritten::System(path, _) if path.ends_with("c")),
            "{failure:?}"
        );
        let mut left = Vec::new();
        for entry in std::fs::read_dir(folder.path())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            left.push((name, std::fs::read_to_string(entry.path())?));
        }
        left.sort();
        Ok(left)
    }

    #[test]
    fn files_before_one_that_fails_are_what_they_were() {
        let links: [Link; 2] = [
            |from, to| std::fs::hard_link(from, to),
            |_, _| Err(io::Error::from(io::ErrorKind::Unsupported)),
        ];
        let old = |name: &str| (name.to_owned(), "old".to_owned());
        for link in links {
            let left = after_a_failure(link).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(left, [old("b"), old("c")]);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nothing_yet_leads_to_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, at(name)).expect("a link");
        link("b", "a");
        link("c", "b");
        link("circle", "circle");
        let (a, circle) = (at("a"), at("circle"));
        let new: &[&[u8]] = &[b"new"];
        assert!(write_all(&[(&a, new)], &Interrupt::never()).is_ok());
        assert_eq!(std::fs::read(at("c")).expect("a file"), b"new");
        assert!(a.is_symlink() && at("b").is_symlink());
        assert!(write_all(&[(&circle, new)], &Interrupt::never()).is_err());
        assert!(circle.is_symlink());
    }

    #[test]
    fn what_was_there_is_kept_for_the_time_of_writing_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), "old").expect("a file");
        let (a, b) = (at("a"), at("b"));
        let new: &[&[u8]] = &[b"n", b"ew"];
        let done = write_all(&[(&a, new), (&b, new)], &Interrupt::never());
        assert!(done.is_ok(), "{done:?}");
        assert_eq!(std::fs::read(&a).expect("a file"), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).map_or(0, Iterator::count), 2);
    }
}
