//! The scratch copy of a code base: the folder that is looked at, and what its files name outside
//! of it, in the same places relative to each other.

use std::path::{Path, PathBuf};

use super::{copy, outside};
use crate::data::Input;
use crate::exit::Failure;

/// What is copied.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// The nearest folder that holds all that is copied.
    base: PathBuf,
    /// The folder that is looked at, relative to the base.
    inner: PathBuf,
    /// Further files and folders, relative to the base.
    others: Vec<PathBuf>,
}

impl Stage {
    /// Looks what the files of `folder` name outside of it.
    pub(super) fn of(folder: &Path) -> Result<Stage, Failure> {
        let real = std::fs::canonicalize(folder).map_err(|error| fault(folder, &error))?;
        let others = outside::named(&real);
        let base = others.iter().fold(real.clone(), |base, other| common(&base, other));
        let below = |path: &Path| path.strip_prefix(&base).unwrap_or(path).to_path_buf();
        Ok(Stage {
            inner: below(&real),
            others: others.iter().map(|other| below(other)).collect(),
            base,
        })
    }

    /// Makes a copy below `root`.
    pub(super) fn copy_to(&self, root: &Path) -> Result<(), Failure> {
        for part in self.others.iter().chain([&self.inner]) {
            self.copy_part(root, part)?;
        }
        Ok(())
    }

    fn copy_part(&self, root: &Path, part: &Path) -> Result<(), Failure> {
        let (from, to) = (self.base.join(part), root.join(part));
        copy::tree(&from, &to, &self.base, root).map_err(|(path, error)| fault(&path, &error))
    }

    /// Where a program of the folder is in a copy.
    pub(super) fn place(&self, root: &Path, program: &Path) -> PathBuf {
        root.join(&self.inner).join(program)
    }

    /// Moves a used program folder out of the copy.
    pub(super) fn keep(&self, place: &Path, kept: &Path) -> Result<(), Failure> {
        if kept.exists() {
            std::fs::remove_dir_all(kept).map_err(|error| fault(kept, &error))?;
        }
        let tree = copy::tree(place, kept, place, kept);
        tree.map_err(|(path, error)| fault(&path, &error))?;
        self.clear(place)
    }

    /// Removes a used program folder.
    pub(super) fn clear(&self, place: &Path) -> Result<(), Failure> {
        std::fs::remove_dir_all(place).map_err(|error| fault(place, &error))
    }

    /// Copies a program folder again.
    pub(super) fn renew(&self, root: &Path, program: &Path) -> Result<(), Failure> {
        self.copy_part(root, &self.inner.join(program))
    }
}

/// The nearest folder that holds both.
fn common(a: &Path, b: &Path) -> PathBuf {
    let same = a.components().zip(b.components()).take_while(|(a, b)| a == b);
    same.map(|(part, _)| part).collect()
}

fn fault(path: &Path, error: &std::io::Error) -> Failure {
    Failure::program(format!("{}: {}", path.display(), Input::reason(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_folder_holds_both() {
        assert_eq!(common(Path::new("/a/b/c"), Path::new("/a/b/d/e")), Path::new("/a/b"));
        assert_eq!(common(Path::new("/a/b"), Path::new("/a/b/d")), Path::new("/a/b"));
    }

    #[test]
    fn what_is_named_outside_comes_along() {
        let there = tempfile::tempdir().expect("a folder");
        let put = |name: &str, text: &str| {
            let path = there.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        put("code/prog/layout.csl", "const a = @import_module(\"../../libs/x/a.csl\");");
        put("code/prog/run.py", "sys.path.append('../../py')");
        put("libs/x/a.csl", "const b = @import_module(\"../y/b.csl\");");
        put("libs/y/b.csl", "");
        put("libs/z/c.csl", "");
        put("py/util.py", "");
        let stage = Stage::of(&there.path().join("code")).expect("a stage");
        let root = there.path().join("copy");
        stage.copy_to(&root).expect("a copy");
        for (name, copied) in [
            ("code/prog/layout.csl", true),
            ("libs/x/a.csl", true),
            ("libs/y/b.csl", true),
            ("libs/z/c.csl", false),
            ("py/util.py", true),
        ] {
            assert_eq!(root.join(name).is_file(), copied, "{name}");
        }
        let place = stage.place(&root, Path::new("prog"));
        std::fs::write(place.join("junk"), "").expect("a file");
        stage.clear(&place).expect("gone");
        stage.renew(&root, Path::new("prog")).expect("new");
        assert!(place.join("run.py").is_file() && !place.join("junk").exists());
    }
}
