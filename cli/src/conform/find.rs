//! Finding programs: folders with command scripts.

use std::path::{Path, PathBuf};

use dflow_ir::target::TargetId;

use crate::data::Input;
use crate::exit::Failure;

/// A line that begins so stands for `cs_python run.py` in some published scripts: a macro of the
/// vendor's test harness that was not expanded.
pub(super) const HARNESS_MACRO: &str = "%python_sdk_paint";

/// A command script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// Its folder, relative to the one that is looked at.
    pub(super) folder: PathBuf,
    /// Its file name.
    pub(super) file: String,
    /// By its name; if that does not tell, by what it says.
    pub(super) target: TargetId,
    /// It holds a line of [`HARNESS_MACRO`].
    pub(super) harness: bool,
}

impl Script {
    /// The folder; with the script if its name is not one of the usual.
    pub(super) fn name(&self) -> String {
        let folder = match self.folder.to_string_lossy() {
            folder if folder.is_empty() => ".".into(),
            folder => folder,
        };
        match self.file.as_str() {
            "commands.sh" | "commands_wse2.sh" | "commands_wse3.sh" => folder.into_owned(),
            file => format!("{folder}/{file}"),
        }
    }

    /// The file's name without its ending.
    pub(super) fn stem(&self) -> &str {
        self.file.strip_suffix(".sh").unwrap_or(&self.file)
    }
}

/// All scripts below a folder, by path and target: those of the usual names, or of `names` if there are some.
///
/// # Errors
/// It is no folder, cannot be read, or holds none.
pub(super) fn scripts(root: &Path, names: &[String]) -> Result<Vec<Script>, Failure> {
    if !root.is_dir() {
        return Err(Failure::usage(format!("{} is not a folder", root.display())));
    }
    let mut found = Vec::new();
    visit(root, Path::new(""), names, &mut found)?;
    if found.is_empty() {
        return Err(Failure::usage(format!(
            "no program below {}: a program is a folder with a script commands_wse2.sh, \
             commands_wse3.sh or commands.sh; name others with --script",
            root.display()
        )));
    }
    found.sort_by(|a: &Script, b| {
        (&a.folder, a.target.name(), &a.file).cmp(&(&b.folder, b.target.name(), &b.file))
    });
    Ok(found)
}

fn visit(
    root: &Path,
    inner: &Path,
    names: &[String],
    found: &mut Vec<Script>,
) -> Result<(), Failure> {
    let folder = root.join(inner);
    let fail = |error: &std::io::Error| {
        Failure::usage(format!("{}: {}", folder.display(), Input::reason(error)))
    };
    for entry in std::fs::read_dir(&folder).map_err(|error| fail(&error))? {
        let entry = entry.map_err(|error| fail(&error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Links to folders are not followed: they may lead in a circle.
        let kind = entry.file_type().map_err(|error| fail(&error))?;
        if kind.is_dir() && !name.starts_with('.') {
            visit(root, &inner.join(entry.file_name()), names, found)?;
        } else if is_wanted(&name, names) && entry.path().is_file() {
            let bytes = std::fs::read(entry.path()).map_err(|error| fail(&error))?;
            let text = String::from_utf8_lossy(&bytes);
            found.push(Script {
                folder: inner.to_path_buf(),
                target: target(&name, &text),
                harness: text.lines().any(|line| line.trim_start().starts_with(HARNESS_MACRO)),
                file: name,
            });
        }
    }
    Ok(())
}

fn is_wanted(name: &str, names: &[String]) -> bool {
    if names.is_empty() { is_script(name) } else { names.iter().any(|other| other == name) }
}

/// `commands.sh`, `commands_wse2.sh` and the like.
fn is_script(name: &str) -> bool {
    let middle = name.strip_prefix("commands").and_then(|rest| rest.strip_suffix(".sh"));
    middle.is_some_and(|middle| middle.is_empty() || middle.starts_with(['_', '-', '.']))
}

fn target(name: &str, text: &str) -> TargetId {
    if name.contains("wse3") {
        return TargetId::Wse3;
    }
    let only = text.contains("wse3") && !text.contains("wse2");
    if only && !name.contains("wse2") { TargetId::Wse3 } else { TargetId::Wse2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_scripts_and_targets() {
        assert!(is_script("commands.sh") && is_script("commands_wse3.sh"));
        assert!(is_script("commands_large.sh"));
        assert!(
            !is_script("commands.py") && !is_script("my_commands.sh") && !is_script("commandsx.sh")
        );
        assert_eq!(target("commands_wse2.sh", "--arch=wse3"), TargetId::Wse2);
        assert_eq!(target("commands_wse3.sh", ""), TargetId::Wse3);
        assert_eq!(target("commands.sh", "cslc --arch wse3 a.csl"), TargetId::Wse3);
        assert_eq!(target("commands.sh", "cslc a.csl"), TargetId::Wse2);
    }
}
