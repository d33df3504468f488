//! The results as a table, and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::Row;
use super::find::HARNESS_MACRO;
use super::verdict::Verdict;
use crate::data::write_file;
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::report::group;
use crate::term;

/// Lines of a failure's output that are shown.
const TAIL: usize = 12;

/// The whole report: what failures printed, the table, totals.
pub(super) fn text(rows: &[Row], verbose: bool) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| verbose || row.verdict != Verdict::Pass) {
        write_output(&mut text, row, verbose);
    }
    write_table(&mut text, rows);
    text.push('\n');
    text.push_str(&totals(rows));
    text
}

fn write_output(text: &mut String, row: &Row, whole: bool) {
    let (name, target, word) = (row.script.name(), row.script.target.name(), row.verdict.word());
    let _ = writeln!(text, "--- {name} ({target}): {word}");
    let lines: Vec<&str> = row.output.trim_end().lines().collect();
    let skipped = if whole { 0 } else { lines.len().saturating_sub(TAIL) };
    if skipped > 0 {
        let _ = writeln!(text, "    [{skipped} lines]");
    }
    for line in &lines[skipped..] {
        let _ = writeln!(text, "    {}", line.trim_end());
    }
    text.push('\n');
}

fn write_table(text: &mut String, rows: &[Row]) {
    let widest = rows.iter().map(|row| row.script.name().chars().count()).max().unwrap_or(0);
    let widest = widest.max("program".len());
    let _ = writeln!(
        text,
        "{:<widest$}  target  {:<13}  {:>7}  {:>13}",
        "program", "verdict", "seconds", "cycles"
    );
    for row in rows {
        let cycles = row.cycles.map_or_else(|| "-".to_owned(), group);
        let mark = if row.script.harness { " *" } else { "" };
        let reason = match row.reason.as_str() {
            "" => String::new(),
            reason => format!("  {reason}"),
        };
        let _ = writeln!(
            text,
            "{:<widest$}  {:<6}  {:<13}  {:>7.1}  {cycles:>13}{mark}{reason}",
            row.script.name(),
            row.script.target.name(),
            row.verdict.word(),
            row.seconds
        );
    }
}

/// How many rows have a verdict.
fn count(rows: &[Row], verdict: Verdict) -> usize {
    rows.iter().filter(|row| row.verdict == verdict).count()
}

fn totals(rows: &[Row]) -> String {
    let parts: Vec<String> = Verdict::ALL
        .into_iter()
        .map(|verdict| (count(rows, verdict), verdict))
        .filter(|(n, verdict)| *n > 0 || *verdict == Verdict::Pass)
        .map(|(n, verdict)| format!("{n} {}", verdict.word()))
        .collect();
    let scripts = crate::diagnostics::plural(rows.len(), "script");
    let mut text = format!("{scripts}: {}\n", parts.join(", "));
    let harness: Vec<&Row> = rows.iter().filter(|row| row.script.harness).collect();
    if !harness.is_empty() {
        let good = harness.iter().filter(|row| row.verdict == Verdict::Pass).count();
        let _ = writeln!(
            text,
            "* {} of them {} a line `{HARNESS_MACRO}`, a macro of the vendor's test harness that was not \
             expanded: run as `cs_python run.py`; {good} pass",
            harness.len(),
            if harness.len() == 1 { "holds" } else { "hold" }
        );
    }
    text
}

/// Writes the results as JSON; to standard output if the path is `-`.
///
/// # Errors
/// It cannot be written.
pub(super) fn write_json(
    path: &Path,
    folder: &Path,
    rows: &[Row],
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let text = format!("{:#}\n", json(folder, rows));
    match path.as_os_str().to_str() {
        Some("-") => term::say(&text).map(drop),
        Some(_) | None => write_file(path, text.as_bytes(), interrupt),
    }
}

fn json(folder: &Path, rows: &[Row]) -> Value {
    let totals: serde_json::Map<String, Value> = Verdict::ALL
        .into_iter()
        .map(|verdict| (verdict.word().to_owned(), count(rows, verdict).into()))
        .collect();
    let harness = rows.iter().filter(|row| row.script.harness).count();
    json!({
        "folder": folder.display().to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "results": rows.iter().map(row_json).collect::<Vec<_>>(),
        "totals": totals,
        "scripts": rows.len(),
        "harness_macro": harness,
    })
}

fn row_json(row: &Row) -> Value {
    let lines: Vec<&str> = row.output.trim_end().lines().collect();
    let tail = &lines[lines.len().saturating_sub(TAIL)..];
    json!({
        "program": row.script.folder.to_string_lossy(),
        "script": row.script.file,
        "target": row.script.target.name(),
        "verdict": row.verdict.word(),
        "reason": row.reason,
        "seconds": (row.seconds * 1e3).round() / 1e3,
        "cycles": row.cycles,
        "harness_macro": row.script.harness,
        "output": tail.join("\n"),
    })
}
