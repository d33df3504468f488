//! Table c2: one vector instruction on one PE (SpMM_Cerebras logs, WSE-2 simulator).

use dflow_ir::target::TargetId;

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

/// What, length, shift, whether it is a sum, whether descriptors are built, cycles.
const ROWS: &[(&str, u32, u32, bool, bool, f64)] = &[
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
    for &(what, n, shift, sum, built, published) in ROWS {
        let flags = [("sum", u32::from(sum)), ("built", u32::from(built))];
        let params = [("n", n), ("shift", shift), flags[0], flags[1]];
        let ours = bench.run(PROGRAM, TargetId::Wse2, &params)?.span(0, 0)?;
        rows.push(Row {
            table: "c2",
            family: "vector instruction",
            what: format!("{what}, {n} elements"),
            unit: "cycles",
            published,
            ours,
            basis: Basis::Fitted,
            within: Some(Within::percent(1.0)),
            changes: Vec::new(),
        });
    }
    Ok(rows)
}
