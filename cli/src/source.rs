//! What the user names: a source file, an image, or a program of the library.

use dflow_compiler::World;
use dflow_ir::image::{Image, ImageError};

use crate::artifact;
use crate::exit::Failure;
use crate::world::{self, DiskWorld};

/// The first bytes of an image.
const IMAGE_MAGIC: &[u8] = b"DFLI";

/// Something to compile.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Root<'a> {
    /// A file on disk.
    File(&'a str),
    /// A program that is part of this one.
    Library(&'static dflow_stdlib::Source),
}

/// Something to run.
pub(crate) enum Runnable<'a> {
    /// Sources.
    Source(Root<'a>),
    /// An image.
    Image(Box<Image>),
}

impl<'a> Root<'a> {
    /// Finds what a command line names. A word without path separators and ending is a program
    /// of the library if there is one of that name, unless a file is called so.
    ///
    /// # Errors
    /// Nothing is named so, or it cannot be read.
    pub(crate) fn find(name: &'a str) -> Result<Root<'a>, Failure> {
        let plain = !name.contains(['/', '\\', '.']);
        if plain && let Some(program) = program(name) {
            return Ok(Root::Library(program));
        }
        Root::file(name).map_err(|mut failure| {
            let programs: Vec<_> = dflow_stdlib::PROGRAMS.iter().map(|p| p.name).collect();
            if plain && !programs.is_empty() && !std::path::Path::new(name).exists() {
                let hint = format!("; programs of the library: {}", programs.join(", "));
                failure.message.push_str(&hint);
            }
            failure
        })
    }

    /// Finds what is to be compiled.
    ///
    /// # Errors
    /// Nothing is named so, it cannot be read, or it is an image.
    pub(crate) fn source(name: &'a str) -> Result<Root<'a>, Failure> {
        let root = Root::find(name)?;
        // What is no regular file is read once.
        let is_file = matches!(root, Root::File(path) if std::path::Path::new(path).is_file());
        if is_file && root.is_image()? {
            return Err(Failure::usage(format!(
                "{name} is an image, which is compiled already: name the source that it was built \
                 from, or run it with `dflowc run {name}`"
            )));
        }
        Ok(root)
    }

    /// Finds a file.
    ///
    /// # Errors
    /// There is none, or it is a folder.
    pub(crate) fn file(name: &'a str) -> Result<Root<'a>, Failure> {
        match std::fs::metadata(name) {
            Ok(data) if data.is_dir() && artifact::is_artifact(name.as_ref()) => {
                Err(Failure::usage(format!(
                    "{name} was written by cslc: run its host script, as in `cs_python run.py \
                     --name {name}`, or its host block with `dflowc run {name}/bin/program.dfi`"
                )))
            }
            Ok(data) if data.is_dir() => Err(Failure::usage(format!("{name} is a folder"))),
            Ok(_) => Ok(Root::File(name)),
            Err(error) => {
                let why = crate::data::Input::reason(&error);
                Err(Failure::usage(format!("{name}: {why}")))
            }
        }
    }

    /// The path that the compiler starts from.
    pub(crate) fn path(self) -> &'a str {
        match self {
            Root::File(path) => path,
            Root::Library(program) => program.path,
        }
    }

    /// The name for reports and default file names.
    pub(crate) fn stem(self) -> &'a str {
        let path = self.path();
        let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
        file.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or(file)
    }

    /// What is an image, is decoded; anything else is a source.
    ///
    /// # Errors
    /// The image is damaged or of another version.
    pub(crate) fn open(self) -> Result<Runnable<'a>, Failure> {
        if !self.is_image()? {
            return Ok(Runnable::Source(self));
        }
        let path = self.path();
        let bytes = world::read_at_most(path, u64::MAX);
        let bytes = bytes.map_err(|why| Failure::usage(format!("{path}: {why}")))?;
        let image = Image::decode(&bytes).map_err(|error| image_failure(path, &error))?;
        Ok(Runnable::Image(Box::new(image)))
    }

    /// Whether it is an image, or is called like one.
    fn is_image(self) -> Result<bool, Failure> {
        let Root::File(path) = self else { return Ok(false) };
        let start = world::read_at_most(path, IMAGE_MAGIC.len() as u64);
        let start = start.map_err(|why| Failure::usage(format!("{path}: {why}")))?;
        Ok(start == IMAGE_MAGIC || path.ends_with(".dfi"))
    }
}

impl World for Root<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self {
            Root::File(_) => DiskWorld.read(path),
            // Programs of the library are one file each; libraries are found by name, not here.
            Root::Library(program) if program.path == path => Ok(program.text.as_bytes().to_vec()),
            Root::Library(_) => Err("no such file in the library".into()),
        }
    }

    fn locate(&self, path: &str) -> Option<String> {
        match self {
            Root::File(_) => DiskWorld.locate(path),
            Root::Library(_) => self.read(path).is_ok().then(|| path.to_owned()),
        }
    }
}

fn program(name: &str) -> Option<&'static dflow_stdlib::Source> {
    dflow_stdlib::PROGRAMS.iter().find(|program| program.name == name)
}

fn image_failure(path: &str, error: &ImageError) -> Failure {
    Failure::usage(format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_name_programs() {
        assert_eq!(Root::File("a/b/heat.dfl").stem(), "heat");
        assert_eq!(Root::File(".dfl").stem(), ".dfl");
        assert_eq!(Root::File("heat").stem(), "heat");
    }

    #[test]
    fn missing_files_are_wrong_use() {
        let failure = Root::find("no/such/file.dfl").unwrap_err();
        assert_eq!(failure.exit.code(), 2);
        assert_eq!(failure.message, "no/such/file.dfl: no such file");
    }
}
