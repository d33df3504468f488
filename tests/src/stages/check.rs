//! `check`: the diagnostics are those that the source announces.

use dflow_syntax::Severity;
use dflow_syntax::diagnostic::render;

use super::{on_targets, options};
use crate::annotations;
use crate::collect::Case;

/// Compiles and compares diagnostics with annotations; an image comes out exactly if there is no
/// error.
pub(super) fn check(case: &Case) -> Result<(), String> {
    on_targets(case, |target| {
        let compiled = dflow_compiler::compile(&case.world(), &case.path, options(case, target));
        let shown = |fault: String| {
            let lines = compiled.diagnostics.iter().map(|d| render::short(&compiled.sources, d));
            format!("{fault}\nthe compiler says:\n{}", lines.collect::<Vec<_>>().join("\n"))
        };
        annotations::compare(&compiled.sources, &compiled.diagnostics, &case.header.errors)
            .map_err(shown)?;
        let errors = compiled.diagnostics.iter().any(|d| d.severity() == Severity::Error);
        match (errors, compiled.image.is_some()) {
            (true, true) => Err("there are errors and there is an image".into()),
            (false, false) => Err("there is neither an error nor an image".into()),
            (true, false) | (false, true) => Ok(()),
        }
    })
}
