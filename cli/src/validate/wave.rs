//! Table c5: a wave stencil of 25 points, columns of growing depth (Jacquelin and others, CS-2).

use dflow_ir::target::TargetId;

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const TABLE: Table = Table {
    name: "c5",
    about: "Wave stencil of 25 points on CS-2 at 850 MHz, cycles per step: a PE in the middle of 10 x 10, built as \
            the vendor's published program of this stencil is; busy are the published 69.6 % of the \
            cycles per cell, 11.6 % wait for memory, ours where two accesses meet in a bank; further cells are those from \
            100 to 400, in one block",
    target: TargetId::Wse2,
    rows,
};

const PROGRAM: Program = Program { name: "wave.dfl", text: include_str!("programs/wave.dfl") };

/// Depth of a column, of its blocks, and cycles per step.
const DEPTHS: &[(u32, u32, f64)] = &[
    (100, 100, 7341.0),
    (200, 200, 13713.0),
    (300, 300, 20159.0),
    (400, 400, 26540.0),
    (500, 250, 32591.0),
    (700, 350, 45172.0),
    (1000, 334, 64195.0),
];

/// Cycles per further cell, in how many of them the core works or waits for its memory (69.6 % and 11.6 % of 64.7), and
/// cycles of a step beside them.
const SLOPE: f64 = 64.04;
const BUSY: f64 = 45.0;
const MEMORY: f64 = 7.5;
const INTERCEPT: f64 = 928.0;

/// PEs along each side, and one in the middle.
const WIDTH: u32 = 10;
const MIDDLE: u16 = 4;
const MIDDLE_NUMBER: u32 = 44;

/// A step: cycles, slots that the core uses, and how many of these it would use if memory had as many banks as accesses.
#[derive(Clone, Copy)]
struct Step {
    cells: f64,
    cycles: f64,
    slots: f64,
    busy: f64,
}

fn rows(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let (mut rows, mut whole) = (Vec::new(), Vec::new());
    for &(nz, block, published) in DEPTHS.iter().filter(|&&(nz, ..)| !bench.quick || nz == 100) {
        let step = step(bench, nz, block)?;
        let blocks = if nz == block { String::new() } else { format!(" in blocks of {block}") };
        rows.push(row(format!("{nz} cells{blocks}"), "cycles", published, step.cycles, Some(10.0)));
        if nz == block {
            whole.push(step);
        }
    }
    if let [first, .., last] = whole[..] {
        let slope = |of: fn(&Step) -> f64| (of(&last) - of(&first)) / (last.cells - first.cells);
        let (busy, slots) = (slope(|step| step.busy), slope(|step| step.slots));
        let each = slope(|step| step.cycles);
        let beside = first.cycles - each * first.cells;
        rows.push(row("each further cell, busy".into(), "slots", BUSY, busy, Some(6.0)));
        rows.push(row("each further cell, memory".into(), "slots", MEMORY, slots - busy, None));
        rows.push(row("each further cell".into(), "cycles", SLOPE, each, Some(10.0)));
        rows.push(row("beside the cells".into(), "cycles", INTERCEPT, beside, None));
    }
    Ok(rows)
}

/// A step that is not the first.
fn step(bench: &Bench, nz: u32, block: u32) -> Result<Step, Failure> {
    let free = [("simd.bank_conflict".to_owned(), 0)];
    let (mut cycles, mut slots, mut busy) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    for (at, rounds) in [1, 2].into_iter().enumerate() {
        let params = [("width", WIDTH), ("nz", nz), ("block", block), ("rounds", rounds)];
        let mut run = bench.run_watched(PROGRAM, TargetId::Wse2, &params, &[])?;
        (cycles[at], slots[at]) = (run.span(MIDDLE, MIDDLE)?, run.slots(MIDDLE_NUMBER));
        // Of depths in several blocks nobody asks.
        if nz == block {
            let run = bench.run_watched(PROGRAM, TargetId::Wse2, &params, &free)?;
            busy[at] = run.slots(MIDDLE_NUMBER);
        }
    }
    let [cycles, slots, busy] = [cycles, slots, busy].map(|[one, two]| two - one);
    Ok(Step { cells: nz.into(), cycles, slots, busy })
}

fn row(what: String, unit: &'static str, published: f64, ours: f64, percent: Option<f64>) -> Row {
    let within = percent.map(Within::percent);
    let (family, basis, changes) = ("depth", Basis::Predicted, Vec::new());
    Row { table: "c5", family, what, unit, published, ours, basis, within, changes }
}
