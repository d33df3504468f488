//! Table c8: words and tasks on WSE-3.

use dflow_ir::target::TargetId;

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const TABLE: Table = Table {
    name: "c8",
    about: "Words between PEs, WSE-3 simulator; arrivals and voices are counted from the first PE's reading of its \
            counter, messages between readings, the trace from the sending operation's first slot to the task's",
    target: TargetId::Wse3,
    rows,
};

const MESSAGE: Program =
    Program { name: "message.dfl", text: include_str!("programs/message.dfl") };
const VOICES: Program = Program { name: "voices.dfl", text: include_str!("programs/voices.dfl") };
const CORNER: Program = Program { name: "corner.dfl", text: include_str!("programs/corner.dfl") };

/// Kinds of runs of the program of messages.
const ARRIVALS: u32 = 0;
const TO_TASK: u32 = 1;
const RELAY: u32 = 2;
const TRACED: u32 = 3;

/// Sides of squares, and when the last PE has had the word.
const CORNERS: &[(u32, f64)] = &[(4, 67.0), (8, 75.0), (16, 91.0), (32, 126.0)];

/// PEs of the row, and when they have had all voices: PE 4 is the bridge; PE 6 has them with PE 5.
const LAST_VOICES: &[(u16, f64)] =
    &[(1, 41.0), (2, 69.0), (3, 100.0), (4, 146.0), (5, 190.0), (7, 223.0), (8, 257.0), (9, 289.0)];

fn rows(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = arrivals(bench)?;
    rows.extend(corners(bench)?);
    rows.extend(voices(bench)?);
    rows.extend(messages(bench)?);
    rows.extend(relays(bench)?);
    Ok(rows)
}

/// A word to all PEs of a row.
fn arrivals(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let params = [("width", 16), ("n", 1), ("kind", ARRIVALS)];
    let mut run = bench.run(MESSAGE, TargetId::Wse3, &params)?;
    let from = run.at(0, 0, "start")?;
    let row = |x: u16| {
        let published = 28.0 + 2.0 * f64::from(x);
        let ours = run.at(x, 0, "end")? - from;
        Ok(row("arrival of a word", format!("x = {x}"), published, ours, Some(3.0)))
    };
    (1..16).map(row).collect()
}

/// A word to all PEs of a square, down the first column and along each row.
fn corners(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for &(width, published) in CORNERS.iter().filter(|&&(width, _)| !bench.quick || width == 4) {
        let mut run = bench.run(CORNER, TargetId::Wse3, &[("width", width)])?;
        let last = width as u16 - 1;
        let ours = run.at(last, last, "end")? - run.at(0, 0, "start")?;
        rows.push(row("corner of a square", format!("{width} x {width}"), published, ours, None));
    }
    Ok(rows)
}

/// Words of all PEs of a row in two segments: how long a data task takes for each.
fn voices(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut run = bench.run(VOICES, TargetId::Wse3, &[])?;
    let from = run.at(0, 0, "start")?;
    let row = |&(x, published): &(u16, f64)| {
        let ours = run.at(x, 0, "end")? - from;
        Ok(row("voices of a row", format!("PE {x} has had {x}"), published, ours, None))
    };
    LAST_VOICES.iter().map(row).collect()
}

/// Eight words to the neighbor's task.
fn messages(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let params = [("width", 2), ("n", 8), ("kind", TO_TASK)];
    let mut run = bench.run(MESSAGE, TargetId::Wse3, &params)?;
    let read = run.at(1, 0, "end")? - run.at(0, 0, "start")?;
    let params = [("width", 2), ("n", 8), ("kind", TRACED)];
    let run = bench.run_watched(MESSAGE, TargetId::Wse3, &params, &[])?;
    let traced = run.last_task_slot(1) - run.first_microthread_slot(0);
    let what = "8 words to the neighbor's task".to_owned();
    Ok(vec![
        row("message", what.clone(), 36.0, read, Some(3.0)),
        row("message", format!("{what}, trace"), 19.0, traced, Some(3.0)),
    ])
}

/// Stages that store what comes, and send it on.
fn relays(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for n in [64, 512] {
        let mut total = [0.0; 2];
        for (total, stages) in total.iter_mut().zip([1, 8]) {
            let params = [("width", stages + 1), ("n", n), ("kind", RELAY)];
            let mut run = bench.run(MESSAGE, TargetId::Wse3, &params)?;
            *total = run.at(stages as u16, 0, "end")? - run.at(0, 0, "start")?;
        }
        let words = 1.001 * f64::from(n);
        let ours = (total[1] - total[0]) / 7.0;
        let stage = words + 16.1;
        rows.push(row("relay", format!("each stage, {n} words"), stage, ours, Some(3.0)));
        let beside = total[0] - ours;
        rows.push(row("relay", format!("beside the stages, {n} words"), 16.5, beside, Some(3.0)));
    }
    Ok(rows)
}

fn row(family: &'static str, what: String, published: f64, ours: f64, cycles: Option<f64>) -> Row {
    // The ramps were fitted on the message, and what a reading of the counter takes.
    let basis = if family == "message" { Basis::Fitted } else { Basis::Shaped };
    let within = cycles.map(Within::cycles);
    let unit = "cycles";
    Row { table: "c8", family, what, unit, published, ours, basis, within, changes: Vec::new() }
}
