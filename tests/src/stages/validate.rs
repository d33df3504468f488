//! `validate`: IR text, parsed, checked, printed; the verdict and the text are the snapshot.

use std::fmt::Write as _;

use dflow_ir::text::{PrintOptions, parse_program, print_program};
use dflow_ir::validate;

use crate::collect::Case;
use crate::snapshot;

/// The text must parse; what it prints as must parse to the same program.
pub(super) fn validate(case: &Case) -> Result<(), String> {
    let program = parse_program(&case.text).map_err(|error| error.to_string())?;
    let text = print_program(&program, PrintOptions::default());
    let again = parse_program(&text).map_err(|error| format!("printed text: {error}"))?;
    if again != program {
        return Err("the printed text is another program".into());
    }
    let mut shown = String::new();
    for &target in &case.header.targets {
        let verdict = validate::check_program(&program, target);
        let verdict = verdict.map_or_else(|error| error.to_string(), |()| "valid".into());
        let _ = writeln!(shown, "{}: {verdict}", target.name());
    }
    snapshot::compare(&case.file(), "validate", &format!("{shown}\n{text}"))
}
