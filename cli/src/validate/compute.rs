//! Tables c3 and c4: a product of matrices, and the operator of a finite-volume solver.

use dflow_ir::target::{Override, TargetId};

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const GEMM: Table = Table {
    name: "c3",
    about: "Product of tiles M x K x N by columns, f32, one PE of the published 2 x 2, WSE-2 simulator",
    target: TargetId::Wse2,
    rows: gemm,
};

pub(super) const VOLUME: Table = Table {
    name: "c4",
    about: "Finite volumes on CS-2: the operator per cell and round (the inner PE of 3 x 3, columns of 922), \
            and what a sum over the fabric takes per PE of width and height and round",
    target: TargetId::Wse2,
    rows: volume,
};

const GEMM_PROGRAM: Program = Program { name: "gemm.dfl", text: include_str!("programs/gemm.dfl") };
const VOLUME_PROGRAM: Program =
    Program { name: "volume.dfl", text: include_str!("programs/volume.dfl") };
const RELAY_PROGRAM: Program =
    Program { name: "relay.dfl", text: include_str!("programs/relay.dfl") };

/// M, K, N and cycles.
const TILES: &[(u32, u32, u32, f64)] =
    &[(8, 8, 32, 9756.0), (32, 32, 32, 88795.0), (8, 8, 128, 38844.0), (32, 32, 128, 357_853.0)];

fn gemm(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for &(m, k, n, published) in TILES.iter().filter(|&&(m, ..)| !bench.quick || m == 8) {
        let params = [("m", m), ("k", k), ("n", n)];
        rows.push(Row {
            table: "c3",
            family: "product of tiles",
            what: format!("{m} x {k} x {n}"),
            unit: "cycles",
            published,
            ours: bench.run(GEMM_PROGRAM, TargetId::Wse2, &params)?.span(0, 0)?,
            basis: Basis::Shaped,
            within: Some(Within::percent(5.0)),
            changes: Vec::new(),
        });
    }
    Ok(rows)
}

/// Cells of a column.
const DEPTH: u32 = 922;

/// Seconds of 225 rounds of the operator, on every mesh.
const OPERATOR_SECONDS: f64 = 0.0122;

/// Lanes of f32 products, and the clock with which they go together.
const READINGS: &[(u32, f64)] = &[(1, 1.1e9), (2, 0.85e9)];

/// Cycles per PE of width and height and round, from the full runs at 850 MHz.
const SLOPE: f64 = 81.93;

fn volume(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for &(lanes, clock) in READINGS {
        let changes: Vec<Override> = vec![("fmuls_lanes".to_owned(), lanes)];
        let mut total = [0.0; 2];
        for (total, rounds) in total.iter_mut().zip([2, 6]) {
            let params = [("nz", DEPTH), ("rounds", rounds)];
            let mut run = bench.run_with(VOLUME_PROGRAM, TargetId::Wse2, &params, &changes)?;
            *total = run.span(1, 1)?;
        }
        rows.push(Row {
            table: "c4",
            family: "operator",
            what: format!("at {} MHz", clock / 1e6),
            unit: "cycles per cell",
            published: OPERATOR_SECONDS * clock / 225.0 / f64::from(DEPTH),
            ours: (total[1] - total[0]) / 4.0 / f64::from(DEPTH),
            basis: Basis::Predicted,
            within: Some(Within::percent(8.0)),
            changes,
        });
    }
    let mut total = [0.0; 2];
    for (total, width) in total.iter_mut().zip([8, 40]) {
        let mut run = bench.run(RELAY_PROGRAM, TargetId::Wse2, &[("width", width)])?;
        *total = run.span(width as u16 - 1, 0)?;
    }
    rows.push(Row {
        table: "c4",
        family: "sums over the fabric",
        what: "two per round, out and back".to_owned(),
        unit: "cycles per PE",
        published: SLOPE,
        ours: 2.0 * (total[1] - total[0]) / 32.0,
        basis: Basis::Shaped,
        within: Some(Within::percent(10.0)),
        changes: Vec::new(),
    });
    Ok(rows)
}
