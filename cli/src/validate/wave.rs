//! Table c5: a wave stencil of 25 points, columns of growing depth (Jacquelin and others, CS-2).

use dflow_ir::target::TargetId;

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const TABLE: Table = Table {
    name: "c5",
    about: "Wave stencil of 25 points on CS-2 at 850 MHz, cycles per step: the PE in the middle of 9 x 9, each \
            sender with its own color in place of the published switches; busy is the published 69.6 % of \
            the cycles per cell",
    target: TargetId::Wse2,
    rows,
};

const PROGRAM: Program = Program { name: "wave.dfl", text: include_str!("programs/wave.dfl") };

/// Depth of a column and cycles per step.
const DEPTHS: &[(u32, f64)] = &[(100, 7341.0), (200, 13713.0), (300, 20159.0), (400, 26540.0)];

/// Cycles per further cell, and how many of them are busy.
const SLOPE: f64 = 64.04;
const BUSY: f64 = 45.0;

/// Number of the PE in the middle of 9 x 9.
const MIDDLE: u32 = 40;

fn rows(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut steps = Vec::new();
    for &(nz, published) in DEPTHS.iter().filter(|&&(nz, _)| !bench.quick || nz == 100) {
        let (mut total, mut slots) = ([0.0; 2], [0.0; 2]);
        for ((total, slots), rounds) in total.iter_mut().zip(&mut slots).zip([1, 3]) {
            let params = [("nz", nz), ("rounds", rounds)];
            let mut run = bench.run_watched(PROGRAM, TargetId::Wse2, &params)?;
            (*total, *slots) = (run.span(4, 4)?, run.slots(MIDDLE));
        }
        let ours = (total[1] - total[0]) / 2.0;
        steps.push([f64::from(nz), ours, (slots[1] - slots[0]) / 2.0]);
        rows.push(row("depth", format!("{nz} cells"), "cycles", published, ours, None));
    }
    if let [first, .., last] = steps[..] {
        let slope = |at: usize| (last[at] - first[at]) / (last[0] - first[0]);
        let within = Some(Within::percent(6.0));
        rows.push(row("depth", "each further cell, busy".into(), "slots", BUSY, slope(2), within));
        rows.push(row("depth", "each further cell".into(), "cycles", SLOPE, slope(1), None));
    }
    Ok(rows)
}

fn row(
    family: &'static str,
    what: String,
    unit: &'static str,
    published: f64,
    ours: f64,
    within: Option<Within>,
) -> Row {
    let (basis, changes) = (Basis::Predicted, Vec::new());
    Row { table: "c5", family, what, unit, published, ours, basis, within, changes }
}
