//! Table c8: words and tasks on WSE-3.

use dflow_ir::target::TargetId;

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const TABLE: Table = Table {
    name: "c8",
    about: "Words along a row of PEs, WSE-3 simulator",
    target: TargetId::Wse3,
    rows,
};

const PROGRAM: Program =
    Program { name: "message.dfl", text: include_str!("programs/message.dfl") };

/// Kinds of runs of the program.
const ARRIVALS: u32 = 0;
const MESSAGE: u32 = 1;
const RELAY: u32 = 2;

fn rows(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let params = [("width", 16), ("n", 1), ("kind", ARRIVALS)];
    let mut run = bench.run(PROGRAM, TargetId::Wse3, &params)?;
    let from = run.at(0, 0, "start")?;
    for x in 1..16 {
        let published = 28.0 + 2.0 * f64::from(x);
        let ours = run.at(x, 0, "end")? - from;
        rows.push(row("arrival of a word", format!("x = {x}"), published, ours, 3.0));
    }
    let params = [("width", 2), ("n", 8), ("kind", MESSAGE)];
    let mut run = bench.run(PROGRAM, TargetId::Wse3, &params)?;
    let ours = run.at(1, 0, "end")? - run.at(0, 0, "start")?;
    rows.push(row("message", "8 words to the neighbour's task".into(), 36.0, ours, 3.0));
    for n in [64, 512] {
        let mut total = [0.0; 2];
        for (total, stages) in total.iter_mut().zip([1, 8]) {
            let params = [("width", stages + 1), ("n", n), ("kind", RELAY)];
            let mut run = bench.run(PROGRAM, TargetId::Wse3, &params)?;
            *total = run.at(stages as u16, 0, "end")? - run.at(0, 0, "start")?;
        }
        let published = 1.001 * f64::from(n) + 16.1;
        let ours = (total[1] - total[0]) / 7.0;
        rows.push(row("relay, each stage", format!("{n} words"), published, ours, 3.0));
    }
    Ok(rows)
}

fn row(family: &'static str, what: String, published: f64, ours: f64, cycles: f64) -> Row {
    // The ramps were fitted on the message.
    let basis = if family == "message" { Basis::Fitted } else { Basis::Shaped };
    Row {
        table: "c8",
        family,
        what,
        unit: "cycles",
        published,
        ours,
        basis,
        within: Some(Within::cycles(cycles)),
        changes: Vec::new(),
    }
}
