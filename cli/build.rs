//! Embeds the manual's pages of diagnostics (`PAGES`, sorted by id) and a fingerprint of the sources
//! (`DFLOW_BUILD`): programs of one build understand each other, and others are told apart.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let folder = Path::new(&here).join("../spec/diagnostics");
    let mut pages = Vec::new();
    if let Ok(entries) = fs::read_dir(&folder) {
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "md")
                && let Some(stem) = path.file_stem()
            {
                pages.push((stem.to_string_lossy().into_owned(), fs::canonicalize(&path)?));
            }
        }
    }
    pages.sort();
    let mut text = String::from("const PAGES: &[(&str, &str)] = &[\n");
    for (id, path) in pages {
        let _ = writeln!(text, "    ({id:?}, include_str!({path:?})),");
    }
    text.push_str("];\n");
    let out = env::var_os("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&out).join("pages.rs"), text)?;
    // A folder that is not there yet would be looked for at every build: watch its parent then.
    let watched = if folder.is_dir() { folder } else { Path::new(&here).join("..").join("spec") };
    if watched.is_dir() {
        // Cargo wants a path; `display` is what it reads.
        emit(&format!("cargo::rerun-if-changed={}", watched.display()));
    }
    emit("cargo::rerun-if-changed=build.rs");
    fingerprint(&Path::new(&here).join(".."))
}

/// What compiles programs and runs them.
const SOURCES: [&str; 4] = ["cli/src", "compiler", "runtime", "stdlib"];
/// Folders below that have no part in it.
const SKIPPED: [&str; 4] = ["tests", "benches", "snapshots", "target"];

/// FNV-1a, 64 bits, over the names and texts of all sources.
fn fingerprint(root: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for folder in SOURCES {
        emit(&format!("cargo::rerun-if-changed={}", root.join(folder).display()));
        collect(root, Path::new(folder), &mut files)?;
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let name = file.to_string_lossy().replace('\\', "/");
        for byte in name.into_bytes().into_iter().chain(fs::read(root.join(file))?) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    emit(&format!("cargo::rustc-env=DFLOW_BUILD={hash:016x}"));
    Ok(())
}

fn collect(root: &Path, inner: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(inner))? {
        let entry = entry?;
        let path = inner.join(entry.file_name());
        let kind = entry.file_type()?;
        let ends = ["rs", "dfl", "csl", "lalrpop", "toml", "json"];
        if kind.is_dir() && !SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
            collect(root, &path, files)?;
        } else if kind.is_file()
            && path.extension().is_some_and(|end| ends.iter().any(|e| end == *e))
        {
            files.push(path);
        }
    }
    Ok(())
}

fn emit(line: &str) {
    use io::Write as _;
    let _ = writeln!(io::stdout(), "{line}");
}
