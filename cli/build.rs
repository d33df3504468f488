//! Embeds the manual's pages of diagnostics: `PAGES`, sorted by id.

use std::fmt::Write as _;
use std::path::Path;
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
    Ok(())
}

fn emit(line: &str) {
    use io::Write as _;
    let _ = writeln!(io::stdout(), "{line}");
}
