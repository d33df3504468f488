//! `dflowc explain`: the manual's page of a diagnostic.

use std::fmt::Write as _;

use dflow_syntax::Code;

use crate::args::ExplainArgs;
use crate::exit::{Exit, Failure};
use crate::near::nearest;
use crate::term;

// `PAGES: &[(&str, &str)]`, id and text, sorted by id: the folder `spec/diagnostics`.
include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Prints the page of a code, or all codes with a line each.
///
/// # Errors
/// There is no such code.
pub(crate) fn execute(args: &ExplainArgs) -> Result<Exit, Failure> {
    let text = match &args.code {
        Some(id) => page(id)?,
        None => list(),
    };
    term::say(&text)?;
    Ok(Exit::Success)
}

fn page(id: &str) -> Result<String, Failure> {
    let Some(code) = Code::from_id(id) else {
        let near = nearest(id, Code::all().map(Code::id), 3);
        let hint = near.map_or_else(String::new, |other| format!("; did you mean {other}?"));
        return Err(Failure::usage(format!("there is no diagnostic `{id}`{hint}")));
    };
    let found = PAGES.iter().find(|(name, _)| *name == id);
    Ok(found.map_or_else(
        || format!("{id} ({}): {}\n", code.severity().name(), code.summary()),
        |(_, text)| (*text).to_owned(),
    ))
}

fn list() -> String {
    let mut text = String::new();
    for code in Code::all() {
        let _ =
            writeln!(text, "{:<26} {:<8} {}", code.id(), code.severity().name(), code.summary());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained() {
        for code in Code::all() {
            assert!(page(code.id()).is_ok_and(|text| text.contains(code.id())));
        }
    }

    #[test]
    fn a_slip_is_answered() {
        let failure = page("route-conflikt").unwrap_err();
        assert!(failure.message.ends_with("did you mean route-conflict?"));
    }

    #[test]
    fn every_page_belongs_to_a_code() {
        for (id, _) in PAGES {
            assert!(Code::from_id(id).is_some(), "spec/diagnostics/{id}.md explains nothing");
        }
    }
}
