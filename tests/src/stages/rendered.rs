//! `rendered`: what users see of the diagnostics, as a snapshot.

use dflow_syntax::diagnostic::render::{self, Color};

use super::options;
use crate::collect::Case;
use crate::snapshot;

/// Renders all diagnostics in the full form, on the first target.
pub(super) fn rendered(case: &Case) -> Result<(), String> {
    let target = case.header.targets.first().copied().ok_or("no target")?;
    let compiled = dflow_compiler::compile(&case.world(), &case.path, options(case, target));
    if compiled.diagnostics.is_empty() {
        return Err("there is nothing to show".into());
    }
    let text: String = compiled
        .diagnostics
        .iter()
        .map(|diagnostic| render::human(&compiled.sources, diagnostic, Color::Never))
        .collect();
    snapshot::compare(&case.file(), "rendered", &text)
}
