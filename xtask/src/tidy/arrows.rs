//! Rules about who may name whom: between crates, and between the modules of the compiler.

use super::File;

/// Which of our crates each crate may use. Arrows point downwards only.
const CRATES: [(&str, &[&str]); 9] = [
    ("compiler/syntax/", &[]),
    ("compiler/ir/", &[]),
    ("stdlib/", &[]),
    ("compiler/core/", &["syntax", "ir", "stdlib"]),
    ("runtime/", &["ir"]),
    ("cli/", &["syntax", "ir", "stdlib", "compiler", "runtime"]),
    ("python/", &["syntax", "ir", "compiler", "runtime", "cli"]),
    ("tests/", &["syntax", "ir", "stdlib", "compiler", "runtime"]),
    ("fuzz/", &["syntax", "ir", "stdlib", "compiler", "runtime"]),
];

/// Which modules of the compiler a module must never name: what comes after it, and for pure
/// data all phases.
const MODULES: [(&str, &[&str]); 9] = [
    ("typed", &["resolve", "sema", "builtins", "elaborate", "lower", "place", "link", "load"]),
    ("plan", &["resolve", "sema", "builtins", "elaborate", "lower", "place", "link", "load"]),
    ("session", &["resolve", "sema", "builtins", "elaborate", "lower", "place", "link", "load"]),
    ("world", &["session", "resolve", "sema", "builtins", "elaborate", "lower", "place", "link"]),
    ("load", &["sema", "builtins", "elaborate", "lower", "place", "link"]),
    ("resolve", &["sema", "elaborate", "lower", "place", "link", "typed", "plan"]),
    ("lower", &["resolve", "sema", "builtins", "elaborate", "place", "link", "load", "world"]),
    ("place", &["resolve", "sema", "builtins", "elaborate", "link", "load"]),
    ("link", &["resolve", "sema", "builtins", "elaborate", "lower", "load", "world"]),
];

/// Crates that name a crate above or beside them, in their manifest or their code.
pub(crate) fn crates(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files {
        let Some((home, allowed)) = CRATES.iter().find(|(home, _)| file.path.starts_with(home))
        else {
            continue;
        };
        let own = home.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let own = if own == "core" { "compiler" } else { own };
        for (line, text) in file.text.lines().enumerate() {
            for name in named_crates(file, text) {
                if name != own && !allowed.contains(&name) {
                    let at = format!("{}:{}", file.path, line + 1);
                    faults.push(format!("{at}: {home} may not use dflow-{name}"));
                }
            }
        }
    }
    faults
}

/// Crates of ours that a line of a manifest or of Rust names.
fn named_crates<'a>(file: &File, line: &'a str) -> Vec<&'a str> {
    let marker = if file.path.ends_with("Cargo.toml") {
        "dflow-"
    } else if file.is_rust() && !line.trim_start().starts_with("//") {
        "dflow_"
    } else {
        return Vec::new();
    };
    if file.path.ends_with("Cargo.toml") && !line.contains(".workspace") && !line.contains("path") {
        return Vec::new();
    }
    let known = ["syntax", "ir", "stdlib", "compiler", "runtime", "cli"];
    line.match_indices(marker)
        .filter_map(|(at, _)| {
            let rest = &line[at + marker.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            known.contains(&&rest[..end]).then_some(&rest[..end])
        })
        .collect()
}

/// Modules of the compiler that name a later one.
pub(crate) fn modules(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        let Some(inner) = file.path.strip_prefix("compiler/core/src/") else { continue };
        let module = inner.split(['/', '.']).next().unwrap_or_default();
        let Some((_, forbidden)) = MODULES.iter().find(|(name, _)| *name == module) else {
            continue;
        };
        for (line, text) in file.text.lines().enumerate() {
            for name in forbidden.iter().filter(|name| names_module(text, name)) {
                let at = format!("{}:{}", file.path, line + 1);
                faults.push(format!("{at}: `{module}` may not name `{name}`"));
            }
        }
    }
    faults
}

fn names_module(line: &str, name: &str) -> bool {
    if line.trim_start().starts_with("//") {
        return false;
    }
    line.match_indices("crate::").any(|(at, marker)| {
        let rest = &line[at + marker.len()..];
        let next = rest.strip_prefix(name).and_then(|rest| rest.chars().next());
        rest.starts_with(name) && next.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        let manifest =
            file("runtime/Cargo.toml", "[dependencies]\ndflow-compiler.workspace = true\n");
        assert_eq!(crates(&[manifest]).len(), 1);
        let code = file("runtime/src/a.rs", "use dflow_syntax::Span;\n// dflow_syntax\n");
        assert_eq!(crates(&[code]).len(), 1);
        let library = file("stdlib/src/lib.rs", "use dflow_syntax::SourceMap;\n");
        assert_eq!(crates(&[library]).len(), 1);
        let good = file("compiler/core/src/a.rs", "use dflow_ir::ty::Ty;\n");
        assert!(crates(&[good]).is_empty());
    }

    #[test]
    fn a_phase_does_not_name_a_later_one() {
        let bad = file("compiler/core/src/lower/expr.rs", "use crate::sema::Value;\n");
        assert_eq!(modules(&[bad]).len(), 1);
        let good = file("compiler/core/src/lower/expr.rs", "use crate::typed::Expr;\n");
        assert!(modules(&[good]).is_empty());
    }
}
