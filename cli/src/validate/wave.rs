//! Table c5: a wave stencil of 25 points, columns of growing depth (Jacquelin and others, CS-2).

use dflow_ir::target::TargetId;

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const TABLE: Table = Table {
    name: "c5",
    about: "Wave stencil of 25 points on CS-2 at 850 MHz, cycles per step: a PE in the middle of 10 x 10, built as \
            the vendor's published program of this stencil is; slots are the published 69.6 % of the \
            cycles per cell and 11.6 % in which memory is waited for, and further cells those from 100 to 400, in one \
            block",
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

/// Cycles per further cell, how many of them the core works or waits for its memory (81.2 % of 64.7), and cycles of a
/// step beside them.
const SLOPE: f64 = 64.04;
const SLOTS: f64 = 52.5;
const INTERCEPT: f64 = 928.0;

/// PEs along each side, and one in the middle.
const WIDTH: u32 = 10;
const MIDDLE: u16 = 4;
const MIDDLE_NUMBER: u32 = 44;

/// A step: cycles, and slots that the core uses.
#[derive(Clone, Copy)]
struct Step {
    cells: f64,
    cycles: f64,
    slots: f64,
}

fn rows(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let (mut rows, mut whole) = (Vec::new(), Vec::new());
    for &(nz, block, published) in DEPTHS.iter().filter(|&&(nz, ..)| !bench.quick || nz == 100) {
        let step = step(bench, nz, block)?;
        let blocks = if nz == block { String::new() } else { format!(" in blocks of {block}") };
        let what = format!("{nz} cells{blocks}");
        rows.push(row(what, "cycles", published, step.cycles, Some(Within::percent(10.0))));
        if nz == block {
            whole.push(step);
        }
    }
    if let [first, .., last] = whole[..] {
        let slope = |of: fn(&Step) -> f64| (of(&last) - of(&first)) / (last.cells - first.cells);
        let (slots, each) = (slope(|step| step.slots), slope(|step| step.cycles));
        let beside = first.cycles - each * first.cells;
        let within = Some(Within::percent(6.0));
        rows.push(row("each further cell, slots".into(), "slots", SLOTS, slots, within));
        rows.push(row("each further cell".into(), "cycles", SLOPE, each, None));
        rows.push(row("beside the cells".into(), "cycles", INTERCEPT, beside, None));
    }
    Ok(rows)
}

/// A step that is not the first.
fn step(bench: &Bench, nz: u32, block: u32) -> Result<Step, Failure> {
    let (mut total, mut slots) = ([0.0; 2], [0.0; 2]);
    for ((total, slots), rounds) in total.iter_mut().zip(&mut slots).zip([1, 2]) {
        let params = [("width", WIDTH), ("nz", nz), ("block", block), ("rounds", rounds)];
        let mut run = bench.run_watched(PROGRAM, TargetId::Wse2, &params)?;
        (*total, *slots) = (run.span(MIDDLE, MIDDLE)?, run.slots(MIDDLE_NUMBER));
    }
    Ok(Step { cells: nz.into(), cycles: total[1] - total[0], slots: slots[1] - slots[0] })
}

fn row(what: String, unit: &'static str, published: f64, ours: f64, within: Option<Within>) -> Row {
    let (family, basis, changes) = ("depth", Basis::Predicted, Vec::new());
    Row { table: "c5", family, what, unit, published, ours, basis, within, changes }
}
