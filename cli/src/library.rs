//! Compiling for another program: the same as the commands do, with the text they would print.

use std::path::{Component, Path, PathBuf};

use dflow_compiler::Options;
use dflow_ir::image::Image;
use dflow_syntax::diagnostic::render::{self, Color};

use crate::cslc::environment_version;
use crate::data::{check_not_read, check_place, write_file};
use crate::diagnostics;
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::source::Root;

/// What a compilation gave.
pub struct Built {
    /// The image, if there was no error.
    pub image: Option<Image>,
    /// Errors and warnings, as the commands print them, without colors.
    pub report: String,
    /// The files that the program was read from, wherever the process goes.
    pub files: Vec<PathBuf>,
}

/// Compiles a source file, or a program of the library, with its test blocks.
///
/// # Errors
/// There is no such file, or `DFLOW_SDK_VERSION` names no version; a sentence that says so.
pub fn compile(name: &str, options: Options) -> Result<Built, String> {
    let root = Root::find(name).map_err(|failure| failure.message)?;
    let params = options.params.clone();
    let sdk_version = match options.sdk_version {
        Some(named) => Some(named),
        None => environment_version()?,
    };
    let options = Options { tests: true, sdk_version, ..options };
    let compiled = dflow_compiler::compile(&root, root.path(), options);
    if let Some(image) = &compiled.image {
        crate::commands::check_settings(image, &params).map_err(|failure| failure.message)?;
    }
    let human = |diagnostic| render::human(&compiled.sources, diagnostic, Color::Never);
    let report = compiled.diagnostics.iter().map(human).collect();
    let files = diagnostics::files(&compiled.sources);
    let files = files.filter_map(|file| std::fs::canonicalize(file).ok()).collect();
    Ok(Built { image: compiled.image, report, files })
}

/// Writes an image whole or not at all, and not over what the program was `read` from. Of one that was loaded, for
/// which that is not known, not over what looks like a source that the image names.
///
/// # Errors
/// It cannot be written; a sentence that says why.
pub fn save(path: &Path, image: &Image, read: &[PathBuf]) -> Result<(), String> {
    let known = read.iter().filter_map(|file| file.to_str());
    let saved = check_not_read(path, known)
        .and_then(|()| if read.is_empty() { check_no_source(path, image) } else { Ok(()) })
        .and_then(|()| check_place(path))
        .and_then(|()| write_file(path, &image.encode(), &Interrupt::default()));
    saved.map_err(|failure| failure.message)
}

/// Refuses a file that is there and called as a source of the image is: in which folder that was compiled an image does
/// not say.
fn check_no_source(path: &Path, image: &Image) -> Result<(), Failure> {
    let Ok(real) = std::fs::canonicalize(path) else { return Ok(()) };
    let named = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_called = |file: &&String| {
        let parts = Path::new(file).components();
        let tail: PathBuf = parts.filter(|part| matches!(part, Component::Normal(_))).collect();
        tail.file_name().is_some() && (real.ends_with(&tail) || named.ends_with(&tail))
    };
    match image.files.iter().find(is_called) {
        None => Ok(()),
        Some(file) => Err(Failure::usage(format!(
            "cannot write {}: a source of the program is called {file}; give the image a name of its own, with .dfi",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_like_that_of_a_source_is_taken_where_the_sources_are_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, other) = (folder.path().join("p.dfl"), folder.path().join("other"));
        let text = "layout { @set_rectangle(1, 1); @set_tile_code(0, 0); } host {}";
        std::fs::write(&source, text).expect("a file");
        std::fs::create_dir(&other).expect("a folder");
        let built = compile(source.to_str().expect("a path"), Options::default());
        let Built { image, report, files } = built.expect("it is there");
        let image = Image { files: vec!["p.dfl".into()], ..image.expect(&report) };
        let other = other.join("p.dfl");
        std::fs::write(&other, "old").expect("a file");
        assert!(save(&other, &image, &[]).is_err());
        assert!(save(&source, &image, &files).is_err());
        assert_eq!(save(&other, &image, &files), Ok(()));
        assert_ne!(std::fs::read(&other).expect("a file"), b"old");
    }
}
