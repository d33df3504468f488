//! The folder that `cslc -o D` writes and host scripts run.
//!
//! ```text
//! D/out.json          params and colors as strings; version, target and dialect of the compiler
//! D/bin/program.dfi   the image
//! D/bin/fabric.json   where on the fabric the program sits, and what surrounds it
//! D/bin/state.dfs     the machine's memory after a run (`State`), written by who ran it
//! ```
//!
//! Invariants: a file is there whole or not at all, and a folder whose image cannot be written
//! keeps what it had; what is read is checked before use.

mod fabric;
mod files;
mod meta;
mod state;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use dflow_ir::image::{Image, ImageError};

use crate::interrupt::Interrupt;

pub use fabric::Fabric;
pub use meta::{Dialect, Meta};
pub use state::{ProgramSymbols, State, StateError, Symbol, only};

/// Everything that `cslc` writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    /// `out.json`.
    pub meta: Meta,
    /// `bin/fabric.json`.
    pub fabric: Fabric,
    /// `bin/program.dfi`.
    pub image: Image,
}

/// Why a folder cannot be written or read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArtifactError {
    /// There is no such folder.
    #[error("{0} is not a folder: compile with `cslc -o {0} layout.csl` first")]
    NoFolder(String),
    /// A folder without the files of a compiled program.
    #[error(
        "{folder} holds no compiled program ({missing} is missing): compile with `cslc -o {folder} layout.csl` first"
    )]
    NotOurs {
        /// The folder.
        folder: String,
        /// The first file that is not there.
        missing: &'static str,
    },
    /// A folder of the vendor's compiler.
    #[error(
        "{0} was written by another compiler (it holds ELF files): compile again with this `cslc`"
    )]
    Foreign(String),
    /// A folder of another build of the compiler.
    #[error(
        "{0} was compiled by another build of dflow, and programs of one build only fit together: compile again, or install the `cslc` and the Python package of the same build"
    )]
    OtherBuild(String),
    /// The system does not let us.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// The user gave up.
    #[error("interrupted")]
    Interrupted,
    /// A text file of the folder is damaged.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The image is damaged or of another version.
    #[error("{path}: {error}")]
    Image {
        /// The file.
        path: String,
        /// What is wrong.
        error: ImageError,
    },
    /// The state is damaged or of another version.
    #[error("{path}: {error}")]
    State {
        /// The file.
        path: String,
        /// What is wrong.
        error: StateError,
    },
    /// No run has left a state here.
    #[error("{0} is missing: it is written when a run is stopped")]
    NoState(String),
}

/// Fingerprint of the sources that this program was built from.
pub const BUILD: &str = env!("DFLOW_BUILD");

const META: &str = "out.json";
const IMAGE: &str = "bin/program.dfi";
const FABRIC: &str = "bin/fabric.json";
const STATE: &str = "bin/state.dfs";

/// The image of a folder.
pub fn image_path(folder: &Path) -> PathBuf {
    folder.join(IMAGE)
}

/// The state of a folder.
pub fn state_path(folder: &Path) -> PathBuf {
    folder.join(STATE)
}

/// Whether this is a folder that [`write()`] made.
pub fn is_artifact(folder: &Path) -> bool {
    image_path(folder).is_file() && folder.join(FABRIC).is_file()
}

/// Writes a folder; makes it and its parents if they are not there. A state of an earlier program
/// is removed.
///
/// # Errors
/// The system does not let us; then no file is changed, or, should the disk fail within the last
/// renames and not let us put back what was there, the error names a file that is.
pub fn write(folder: &Path, artifact: &Artifact) -> Result<(), ArtifactError> {
    write_unless(folder, artifact, &Interrupt::default())
}

/// Writes a folder as [`write()`] does, unless the user gives up before all files are complete.
///
/// # Errors
/// The same, or the user gave up.
pub(crate) fn write_unless(
    folder: &Path,
    artifact: &Artifact,
    interrupt: &Interrupt,
) -> Result<(), ArtifactError> {
    files::make_folder(&folder.join("bin"))?;
    let parts = [
        (image_path(folder), artifact.image.encode()),
        (folder.join(FABRIC), artifact.fabric.to_text().into_bytes()),
        (folder.join(META), artifact.meta.to_text().into_bytes()),
    ];
    files::write_all(&parts, interrupt)?;
    files::remove(&state_path(folder))
}

/// Writes the text of `out.json` to another place, whole or not at all.
///
/// # Errors
/// The system does not let us, or the user gave up.
pub(crate) fn write_meta(
    path: &Path,
    meta: &Meta,
    interrupt: &Interrupt,
) -> Result<(), ArtifactError> {
    files::write_all(&[(path.to_path_buf(), meta.to_text().into_bytes())], interrupt)
}

/// Writes a text file of a folder, whole or not at all.
///
/// # Errors
/// The system does not let us.
pub fn write_text(path: &Path, text: &str) -> Result<(), ArtifactError> {
    files::write_all(&[(path.to_path_buf(), text.as_bytes().to_vec())], &Interrupt::default())
}

/// Reads a folder.
///
/// # Errors
/// It is not there, not ours, or damaged.
pub fn read(folder: &Path) -> Result<Artifact, ArtifactError> {
    let shown = || folder.display().to_string();
    if !folder.is_dir() {
        return Err(ArtifactError::NoFolder(shown()));
    }
    for missing in [IMAGE, FABRIC, META] {
        if !folder.join(missing).is_file() {
            return Err(match files::has_elf(&folder.join("bin")) {
                true => ArtifactError::Foreign(shown()),
                false => ArtifactError::NotOurs { folder: shown(), missing },
            });
        }
    }
    let meta = files::read_text(&folder.join(META), Meta::from_text)?;
    if meta.build != BUILD {
        return Err(ArtifactError::OtherBuild(shown()));
    }
    let path = image_path(folder);
    let image = Image::decode(&files::read(&path)?)
        .map_err(|error| ArtifactError::Image { path: path.display().to_string(), error })?;
    let fabric = files::read_text(&folder.join(FABRIC), Fabric::from_text)?;
    Ok(Artifact { meta, fabric, image })
}

/// Writes the state of a machine that has stopped, whole or not at all.
///
/// # Errors
/// The system does not let us, or there is no such folder.
pub fn write_state(path: &Path, state: &State) -> Result<(), ArtifactError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(ArtifactError::File {
            path: path.display().to_string(),
            reason: "its folder does not exist".to_owned(),
        });
    }
    files::write_all(&[(path.to_path_buf(), state.encode())], &Interrupt::default())
}

/// The same, at its place in the folder of the program.
///
/// # Errors
/// The system does not let us.
pub fn keep_state(folder: &Path, state: &State) -> Result<(), ArtifactError> {
    let path = state_path(folder);
    path.parent().map_or(Ok(()), files::make_folder)?;
    write_state(&path, state)
}

/// Reads a state that [`write_state`] wrote.
///
/// # Errors
/// It is not there, cannot be read, or is damaged.
pub fn read_state(path: &Path) -> Result<State, ArtifactError> {
    if !path.is_file() {
        return Err(ArtifactError::NoState(path.display().to_string()));
    }
    State::decode(&files::read(path)?)
        .map_err(|error| ArtifactError::State { path: path.display().to_string(), error })
}
