//! The table of constants, made from the data files.

use std::fmt::Write;

use super::custom::bounds;
use super::{Provenance, Target, TargetId};

/// Every number of both targets, and which values `--timing` takes for it, as a table in Markdown.
pub fn manual() -> String {
    let mut page = String::from(
        "| constant | wse2 | wse3 | unit | `--timing` | source on wse2 | source on wse3 |\n",
    );
    page.push_str("|---|--:|--:|---|---|---|---|\n");
    let three = Target::provenance(TargetId::Wse3);
    for (two, three) in Target::provenance(TargetId::Wse2).iter().zip(three) {
        let Provenance { name, value, unit, .. } = two;
        let known = |row: &Provenance| format!("{} ({})", row.source, row.confidence.name());
        let (first, second) = (known(two), known(three));
        // Writing to a string cannot fail.
        let other = &three.value;
        let taken = bounds(name).map_or_else(String::new, |(from, to)| format!("{from} to {to}"));
        let row =
            format!("| `{name}` | {value} | {other} | {unit} | {taken} | {first} | {second} |");
        let _ = writeln!(page, "{row}");
    }
    page
}
