//! `dflowc validate`: how far the model's cycles are from published ones.

use std::fmt::Write as _;
use std::path::Path;

use dflow_ir::target::Target;
use dflow_runtime::config::Config;
use serde_json::{Value, json};

use super::say_json;
use crate::args::ValidateArgs;
use crate::data::{Input, write_file};
use crate::dflowc::TOOL;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::term;
use crate::validate::{Bench, Row, TABLES, Table, Within};

/// Runs the programs of the validation and prints the table.
///
/// # Errors
/// No table is called so, or a constant cannot have its value.
pub(crate) fn execute(args: &ValidateArgs) -> Result<Exit, Failure> {
    let chosen = |table: &&Table| args.table.as_deref().is_none_or(|name| name == table.name);
    let tables: Vec<&Table> = TABLES.iter().filter(chosen).collect();
    if tables.is_empty() {
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        return Err(Failure::usage(format!("the tables are {}", names.join(", "))));
    }
    for table in &tables {
        let made = Target::custom(table.target, &args.timing);
        made.map_err(|error| Failure::usage(error.to_string()))?;
    }
    let config = Config { threads: args.threads.map_or(0, usize::from), ..Config::default() };
    let interrupt = Interrupt::install(TOOL)?;
    let bench = Bench::new(args.quick, args.timing.clone(), config, &interrupt);
    let mut all = Vec::new();
    let mut page = String::new();
    for table in tables {
        let rows = (table.rows)(&bench)?;
        if args.write.is_some() {
            page.push_str(&text(table, &rows, true));
        } else if !args.json {
            term::say(&text(table, &rows, args.markdown))?;
        }
        all.extend(rows);
    }
    if let Some(path) = &args.write {
        write(path, &page, &interrupt)?;
    }
    let outside = all.iter().filter(|row| !row.is_inside()).count();
    let exit = if outside == 0 { Exit::Success } else { Exit::Program };
    let free = all.iter().filter(|row| row.within.is_none()).count();
    let inside = all.len() - outside - free;
    if args.json {
        let rows: Vec<Value> = all.iter().map(object).collect();
        say_json(&json!({
            "status": exit.word(), "rows": rows,
            "inside": inside, "outside": outside, "without_expectation": free,
        }))?;
    } else {
        let (rows, runs) = (all.len(), bench.runs());
        term::complain(&format!(
            "{rows} rows from {runs} runs: {inside} within what is expected of them, {outside} outside, \
             {free} without an expectation"
        ));
    }
    Ok(exit)
}

/// Puts the tables between the marks of a page, all of them or none.
fn write(path: &Path, tables: &str, interrupt: &Interrupt) -> Result<(), Failure> {
    let fault = |what: &str| Failure::usage(format!("{}: {what}", path.display()));
    let page = std::fs::read_to_string(path).map_err(|error| fault(&Input::reason(&error)))?;
    let [head, tail] = ["<!-- validation -->\n", "<!-- end of validation -->"];
    let parts = page.split_once(head).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(tail)?;
        Some((before, after))
    });
    let (before, after) = parts.ok_or_else(|| fault("the marks of the tables are not there"))?;
    let made = format!("{before}{head}{tables}{tail}{after}");
    write_file(path, made.as_bytes(), interrupt)
}

fn object(row: &Row) -> Value {
    json!({
        "table": row.table,
        "family": row.family,
        "configuration": row.what,
        "unit": row.unit,
        "published": row.published,
        "ours": row.ours,
        "error": row.error(),
        "basis": row.basis.word(),
        "expected_share": row.within.map(|within| within.share),
        "expected_cycles": row.within.map(|within| within.cycles),
        "inside": row.within.map(|_| row.is_inside()),
        "constants": row.changes.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
    })
}

/// A table for people, or in Markdown.
fn text(table: &Table, rows: &[Row], markdown: bool) -> String {
    let heads = ["family", "configuration", "published", "ours", "error", "expected", "basis", ""];
    let mut lines = vec![heads.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut page = match markdown {
        true => format!("### {}\n\n{}\n\n", table.name, table.about),
        false => format!("{}: {}\n", table.name, table.about),
    };
    for (at, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
        let cells: Vec<String> = cells.collect();
        // Writing to a string cannot fail.
        let _ = match markdown {
            true => writeln!(page, "| {} |", line.join(" | ")),
            false => writeln!(page, "  {}", cells.join("  ").trim_end()),
        };
        if markdown && at == 0 {
            page.push_str("|---|---|--:|--:|--:|--:|---|---|\n");
        }
    }
    page.push('\n');
    page
}

fn cells(row: &Row) -> [String; 8] {
    let changes: String =
        row.changes.iter().map(|(name, value)| format!(", {name} {value}")).collect();
    let expected = match row.within {
        None => "-".to_owned(),
        Some(Within { share: 0.0, cycles }) => format!("±{cycles} {}", row.unit),
        Some(Within { share, cycles: 0.0 }) => format!("±{:.0} %", share * 100.0),
        Some(Within { share, cycles }) => format!("±{:.0} % and {cycles}", share * 100.0),
    };
    [
        row.family.to_owned(),
        format!("{}{changes}", row.what),
        number(row.published),
        number(row.ours),
        format!("{:+.1} %", row.error() * 100.0),
        expected,
        row.basis.word().to_owned(),
        if row.is_inside() { String::new() } else { "outside".to_owned() },
    ]
}

/// With as many digits as are worth it.
fn number(value: f64) -> String {
    if value.abs() >= 1000.0 || value.fract().abs() < 1e-9 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}
