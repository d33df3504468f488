//! Stages: what can be done with an input. One short file each; a header names them.

mod check;
mod dump;
mod rendered;
mod run;
mod validate;

use dflow_compiler::Options;
use dflow_ir::target::TargetId;

use crate::collect::Case;

/// A stage: it looks at an input and says what is wrong.
pub type Stage = fn(&Case) -> Result<(), String>;

/// Name and work of every stage.
const STAGES: [(&str, Stage); 11] = [
    ("tokens", dump::tokens),
    ("ast", dump::ast),
    ("plan", dump::plan),
    ("typed", dump::typed),
    ("ir", dump::ir),
    ("layout", dump::layout),
    ("image", dump::image),
    ("check", check::check),
    ("rendered", rendered::rendered),
    ("run", run::run),
    ("validate", validate::validate),
];

/// The stage of this name.
pub fn by_name(name: &str) -> Option<Stage> {
    STAGES.iter().find(|(known, _)| *known == name).map(|(_, stage)| *stage)
}

/// All names, for messages.
pub fn names() -> String {
    STAGES.map(|(name, _)| name).join(", ")
}

/// Comptime steps of an input: far fewer than users have, so that endless loops end soon.
const STEPS: u64 = 20_000_000;

/// The compiler's options for an input on a target. Test blocks are compiled too.
fn options(case: &Case, target: TargetId) -> Options {
    Options {
        target,
        params: case.header.args.clone(),
        half: case.header.half,
        comptime_steps: STEPS,
        check_bounds: case.header.bounds,
        tests: true,
        ..Options::default()
    }
}

/// Does something for each target of an input; faults name the target.
fn on_targets(case: &Case, work: impl Fn(TargetId) -> Result<(), String>) -> Result<(), String> {
    for &target in &case.header.targets {
        work(target).map_err(|fault| format!("on {}: {fault}", target.name()))?;
    }
    Ok(())
}
