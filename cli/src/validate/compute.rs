//! Tables c3 and c4: a product of matrices, and the operator of a finite-volume solver.

use dflow_ir::target::{Override, TargetId};

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const GEMM: Table = Table {
    name: "c3",
    about: "Products of tiles, f32, one PE of the published mesh, WSE-2 simulator; tiles of larger wholes with the \
            arrival of B and the sum of two PEs' C",
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

const COO_PROGRAM: Program = Program { name: "coo.dfl", text: include_str!("programs/coo.dfl") };

/// M, K, N, the whole whose tile it is (where that is more than 2 x 2), and cycles.
const TILES: &[(u32, u32, u32, &str, f64)] = &[
    (8, 8, 32, "", 9756.0),
    (32, 32, 32, "", 88795.0),
    (8, 8, 128, "", 38844.0),
    (32, 32, 128, "", 357_853.0),
    (64, 48, 64, ", of 768 x 768 on 16 x 12 PEs", 476_866.0),
    (64, 48, 64, ", of 3072 x 768 on 16 x 48 PEs", 477_315.0),
    (128, 8, 64, ", of 1024 x 1024 on 128 x 8 PEs", 150_760.0),
    (128, 8, 64, ", of 1024 x 4096 on 512 x 8 PEs", 150_759.0),
];

/// Rows and columns of a full tile, elements of a row, whether they are added, and cycles.
const LISTS: &[(u32, u32, bool, f64)] = &[
    (8, 36, true, 7179.0),
    (8, 132, true, 19659.0),
    (32, 36, true, 112_779.0),
    (8, 36, false, 2237.0),
    (32, 36, false, 34877.0),
];

fn gemm(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for &(m, k, n, of, published) in TILES.iter().filter(|&&(m, ..)| !bench.quick || m == 8) {
        let part = u32::from(!of.is_empty());
        let params = [("m", m), ("k", k), ("n", n), ("part", part)];
        let ours = bench.run(GEMM_PROGRAM, TargetId::Wse2, &params)?.span(0, 0)?;
        rows.push(Row {
            basis: Basis::Shaped,
            within: Some(Within::percent(5.0)),
            ..product("product of tiles", format!("{m} x {k} x {n}{of}"), published, ours)
        });
    }
    for &(side, length, adds, published) in LISTS.iter().filter(|_| !bench.quick) {
        let params = [("side", side), ("length", length), ("adds", u32::from(adds))];
        let ours = bench.run(COO_PROGRAM, TargetId::Wse2, &params)?.span(0, 0)?;
        let part = if adds { "" } else { ", the list's reading alone" };
        let what = format!("{} nonzeros, rows of {length}{part}", side * side);
        rows.push(product("product by a list of nonzeros", what, published, ours));
    }
    Ok(rows)
}

fn product(family: &'static str, what: String, published: f64, ours: f64) -> Row {
    Row {
        table: "c3",
        family,
        what,
        unit: "cycles",
        published,
        ours,
        basis: Basis::Predicted,
        within: None,
        changes: Vec::new(),
    }
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
        what: "two per round, out and back; published seconds at 850 MHz".to_owned(),
        unit: "cycles per PE",
        published: SLOPE,
        ours: 2.0 * (total[1] - total[0]) / 32.0,
        basis: Basis::Shaped,
        within: Some(Within::percent(10.0)),
        changes: Vec::new(),
    });
    Ok(rows)
}
