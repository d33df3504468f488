//! Table c2: one vector instruction on one PE (SpMM_Cerebras logs, WSE-2 simulator).

use dflow_ir::target::{Override, TargetId};

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const TABLE: Table = Table {
    name: "c2",
    about: "One vector instruction on f32 in memory between two counter readings, WSE-2 simulator",
    target: TargetId::Wse2,
    rows,
};

const PROGRAM: Program = Program { name: "vector.dfl", text: include_str!("programs/vector.dfl") };

const ROWS: &[One] = &[
    ("product, equal banks, registers", 5124, 0, false, false, 10254.0),
    ("product, registers", 5124, 1, false, false, 5130.0),
    ("product, descriptors built", 5124, 2, false, true, 5158.0),
    ("sum two at a time, descriptors built", 5124, 2, true, true, 2597.0),
    ("product, equal banks, registers", 1028, 0, false, false, 2062.0),
    ("product, registers", 1028, 2, false, false, 1034.0),
    ("product, equal banks, descriptors built", 1028, 0, false, true, 2089.0),
];

fn rows(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for &one in ROWS {
        rows.push(row(bench, one, Vec::new())?);
    }
    // The other reading of the finite volumes' figures does not fit these.
    for &one in ROWS.iter().filter(|&&(_, n, _, sum, built, _)| n == 5124 && !sum && !built) {
        let two_lanes = row(bench, one, vec![("fmuls_lanes".to_owned(), 2)])?;
        rows.push(Row { basis: Basis::Predicted, within: None, ..two_lanes });
    }
    Ok(rows)
}

/// What, length, shift, whether it is a sum, whether descriptors are built, cycles.
type One = (&'static str, u32, u32, bool, bool, f64);

fn row(bench: &Bench, one: One, changes: Vec<Override>) -> Result<Row, Failure> {
    let (what, n, shift, sum, built, published) = one;
    let flags = [("sum", u32::from(sum)), ("built", u32::from(built))];
    let params = [("n", n), ("shift", shift), flags[0], flags[1]];
    let ours = bench.run_with(PROGRAM, TargetId::Wse2, &params, &changes)?.span(0, 0)?;
    Ok(Row {
        table: "c2",
        family: "vector instruction",
        what: format!("{what}, {n} elements"),
        unit: "cycles",
        published,
        ours,
        basis: Basis::Fitted,
        within: Some(Within::percent(1.0)),
        changes,
    })
}
