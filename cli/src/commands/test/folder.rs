//! `dflowc test FOLDER`: the tests of all programs below it.

use std::path::Path;
use std::time::Instant;

use dflow_syntax::{Dialect, FileId, Interner, ast::ItemKind};
use serde_json::{Value, json};

use super::verdict::{self, Score};
use super::{compiled, verdicts};
use crate::args::TestArgs;
use crate::commands::say_json;
use crate::data::Input;
use crate::dflowc::TOOL;
use crate::diagnostics;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::report::duration;
use crate::source::Root;
use crate::{term, world};

/// What became of the tests of one file.
struct Tested {
    score: Score,
    json: Value,
}

/// Runs the tests of all files below a folder that have some, by path.
///
/// # Errors
/// The folder cannot be read, holds no test or a program whose name is no text, settings are given, or the user
/// gave up.
pub(super) fn execute(args: &TestArgs) -> Result<Exit, Failure> {
    let begun = Instant::now();
    if let Some((name, _)) = args.compile.given.settings.first() {
        let message =
            format!("--set {name}: the programs of a folder have params of their own; name a file");
        return Err(Failure::usage(message));
    }
    let mut files = Vec::new();
    collect(args.file.as_ref(), &mut files)?;
    if files.is_empty() {
        return Err(Failure::usage(format!("no file below {} has a test block", args.file)));
    }
    let interrupt = Interrupt::install(TOOL)?;
    let mut total = Score::default();
    let mut told = Vec::new();
    for file in &files {
        if !args.compile.json {
            term::say(&format!("{file}\n"))?;
        }
        let tested = test(file, args, &interrupt)?;
        total.add(tested.score);
        told.push(tested.json);
        if total.interrupted {
            break;
        }
    }
    super::check_ended(total, args)?;
    if args.compile.json {
        let (status, Score { passed, failed, .. }) = (total.exit().word(), total);
        say_json(&json!({ "status": status, "passed": passed, "failed": failed, "files": told }))?;
    } else {
        let (score, files, time) =
            (total.text(), files.len(), duration(begun.elapsed().as_secs_f64()));
        term::say(&format!("{score} in {files} files ({time})\n"))?;
    }
    Ok(total.exit())
}

/// A file that does not compile, or not in time, counts as a test that failed.
fn test(file: &str, args: &TestArgs, interrupt: &Interrupt) -> Result<Tested, Failure> {
    let compiled = match compiled(Root::file(file)?, args, interrupt) {
        Ok(compiled) => compiled,
        Err(Failure { exit: exit @ (Exit::Interrupted | Exit::Limit), message, .. }) => {
            let interrupted = exit == Exit::Interrupted;
            if !interrupted && !args.compile.json {
                term::complain(&format!("{TOOL}: {message}"));
            }
            let json = json!({ "file": file, "status": exit.word(), "message": message });
            let failed = usize::from(!interrupted);
            return Ok(Tested { score: Score { failed, interrupted, ..Score::default() }, json });
        }
        Err(failure) => return Err(failure),
    };
    // The verdicts so far are told if this file is given up, too.
    interrupt.listen();
    let Some(image) = &compiled.image else {
        let shown = diagnostics::json(&compiled.sources, &compiled.diagnostics);
        let json = json!({ "file": file, "status": Exit::Program.word(), "diagnostics": shown });
        return Ok(Tested { score: Score { failed: 1, ..Score::default() }, json });
    };
    let verdicts = verdicts(image, args, interrupt)?;
    let mut json = verdict::json(&verdicts);
    json["file"] = file.into();
    Ok(Tested { score: Score::of(&verdicts), json })
}

/// Adds the files below a folder that have test blocks, in the order of their names.
fn collect(folder: &Path, files: &mut Vec<String>) -> Result<(), Failure> {
    let fail = |error: &std::io::Error| {
        Failure::usage(format!("{}: {}", folder.display(), Input::reason(error)))
    };
    let entries = std::fs::read_dir(folder).map_err(|error| fail(&error))?;
    let entries = entries.collect::<Result<Vec<_>, _>>();
    let mut entries = entries.map_err(|error| fail(&error))?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        // Links to folders are not followed: they may lead in a circle.
        let kind = entry.file_type().map_err(|error| fail(&error))?;
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if kind.is_dir() && !hidden {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "dfl") && path.is_file() {
            // (A pipe would have somebody write to it first.)
            let Some(text) = path.to_str() else {
                let place = path.display();
                return Err(Failure::usage(format!("{place}: its name is not UTF-8: rename it")));
            };
            if has_tests(text) {
                files.push(text.to_owned());
            }
        }
    }
    Ok(())
}

/// Only a host's text has test blocks; what cannot be read here is told when it is compiled.
fn has_tests(path: &str) -> bool {
    let Ok(bytes) = world::read(path) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    let parsed = dflow_syntax::parse(FileId(0), &text, Dialect::Dfl, &mut Interner::default());
    parsed.file.items.iter().any(|item| matches!(item.kind, ItemKind::Test(_)))
}
