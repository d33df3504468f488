//! Showing diagnostics: for people on standard error, for programs as JSON.

use dflow_syntax::diagnostic::render;
use dflow_syntax::{Diagnostic, FileId, Severity, SourceMap};
use serde_json::Value;

use crate::term;

/// After so many diagnostics the rest is only counted; errors are shown before warnings then.
const MAX_SHOWN: usize = 100;

/// Shows diagnostics on standard error, with a line of totals if there are errors.
pub(crate) fn show(sources: &SourceMap, diagnostics: &[Diagnostic]) {
    let color = term::color();
    let errors = count(diagnostics, Severity::Error);
    let warnings = count(diagnostics, Severity::Warning);
    let room = MAX_SHOWN.saturating_sub(errors);
    let is_error = |diagnostic: &Diagnostic| diagnostic.severity() == Severity::Error;
    let mut others = 0;
    let shown = diagnostics.iter().filter(|diagnostic| {
        others += usize::from(!is_error(diagnostic));
        is_error(diagnostic) || others <= room
    });
    for diagnostic in shown.take(MAX_SHOWN) {
        term::complain(render::human(sources, diagnostic, color).trim_end_matches('\n'));
        term::complain("");
    }
    if diagnostics.len() > MAX_SHOWN {
        term::complain(&format!("... {} more are not shown", diagnostics.len() - MAX_SHOWN));
    }
    if errors > 0 {
        let also = match warnings {
            0 => String::new(),
            n => format!(" and {}", plural(n, "warning")),
        };
        term::complain(&format!("{}{also}", plural(errors, "error")));
    }
}

/// The paths of all texts that were read.
pub(crate) fn files(sources: &SourceMap) -> impl Iterator<Item = &str> + Clone {
    (0..u32::try_from(sources.len()).unwrap_or(u32::MAX)).map(|file| sources.path(FileId(file)))
}

/// All diagnostics as JSON.
pub(crate) fn json(sources: &SourceMap, diagnostics: &[Diagnostic]) -> Value {
    diagnostics.iter().map(|diagnostic| render::json(sources, diagnostic)).collect()
}

/// How many are of a severity.
pub(crate) fn count(diagnostics: &[Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|diagnostic| diagnostic.severity() == severity).count()
}

/// `1 error`, `2 errors`.
pub(crate) fn plural(n: usize, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}
