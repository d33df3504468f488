//! One stage per phase: what the phase made, as a snapshot.

use dflow_compiler::Stage;
use dflow_syntax::Severity;
use dflow_syntax::diagnostic::render;

use super::options;
use crate::collect::Case;
use crate::snapshot;

pub(super) fn tokens(case: &Case) -> Result<(), String> {
    dump(case, Stage::Tokens, "tokens")
}

pub(super) fn ast(case: &Case) -> Result<(), String> {
    dump(case, Stage::Ast, "ast")
}

pub(super) fn plan(case: &Case) -> Result<(), String> {
    dump(case, Stage::Plan, "plan")
}

pub(super) fn typed(case: &Case) -> Result<(), String> {
    dump(case, Stage::Typed, "typed")
}

pub(super) fn ir(case: &Case) -> Result<(), String> {
    dump(case, Stage::Ir, "ir")
}

pub(super) fn layout(case: &Case) -> Result<(), String> {
    dump(case, Stage::Layout, "layout")
}

pub(super) fn image(case: &Case) -> Result<(), String> {
    dump(case, Stage::Image, "image")
}

/// Dumps a stage on the first target. Errors fail it, unless the input also asks for `check`,
/// which judges them: a tree comes out of a faulty text too.
fn dump(case: &Case, stage: Stage, name: &str) -> Result<(), String> {
    let target = case.header.targets.first().copied().ok_or("no target")?;
    let (text, compiled) =
        dflow_compiler::dump(&case.world(), &case.path, options(case, target), stage);
    let judged = case.header.stages.iter().any(|stage| stage == "check");
    let errors: Vec<_> = compiled
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity() == Severity::Error)
        .map(|diagnostic| render::short(&compiled.sources, diagnostic))
        .collect();
    if !errors.is_empty() && !judged {
        return Err(errors.join("\n"));
    }
    snapshot::compare(&case.file(), name, &text)
}
