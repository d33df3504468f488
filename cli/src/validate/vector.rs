//! Table c2: one vector instruction on one PE (SpMM_Cerebras logs, WSE-2 simulator), and what
//! table c8 has of them (FABRICA performance notes, WSE-3 simulator).

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

pub(super) const RATES: Table = Table {
    name: "c8-vectors",
    about: "Vector instructions and loops on one PE, WSE-3 simulator; how operands lie is not published: \
            in different banks, but for the f32 multiply-add, whose rate is that of equal ones",
    target: TargetId::Wse3,
    rows: rates,
};

const RATES_PROGRAM: Program =
    Program { name: "rates.dfl", text: include_str!("programs/rates.dfl") };

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
    let product = |&&(_, n, _, sum, built, _): &&One| !sum && (!bench.quick || n == 5124 && !built);
    for &one in ROWS.iter().filter(product) {
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

/// What a row of the rates is about.
#[derive(Clone, Copy)]
enum Of {
    /// Cycles between two readings of the counter.
    Bracket(u32),
    /// The same without the readings.
    Inside(u32),
    /// Cycles of each further element.
    Each,
    /// Elements per cycle.
    Rate,
}

/// What, `kind` and `shift` of the program, of what the number is, and the number.
const RATE_ROWS: &[(&str, u32, u32, Of, f64)] = &[
    ("copy, f16", 1, 4, Of::Rate, 8.0),
    ("copy, f32", 2, 4, Of::Rate, 4.0),
    ("multiply-add, f16", 3, 4, Of::Rate, 4.0),
    ("multiply-add, f32, equal banks", 4, 0, Of::Rate, 0.5),
    ("multiply-add, f16", 3, 4, Of::Bracket(4096), 1040.0),
    ("sum, i16", 5, 4, Of::Inside(2048), 514.0),
    ("product and reduction, f16", 6, 4, Of::Each, 2.25),
    ("product and reduction, f16", 6, 4, Of::Inside(1024), 2324.0),
    ("loop over elements, f16 dot product, 22 to 25", 7, 4, Of::Each, 23.5),
    ("loop over multiply-adds of 16 f16", 8, 4, Of::Bracket(4096), 4617.0),
];

fn rates(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let span = |kind: u32, shift: u32, n: u32| {
        let params = [("kind", kind), ("shift", shift), ("n", n)];
        bench.run(RATES_PROGRAM, TargetId::Wse3, &params)?.span(0, 0)
    };
    let mut rows = Vec::new();
    for &(what, kind, shift, of, published) in RATE_ROWS.iter().filter(|_| !bench.quick) {
        let each = || -> Result<f64, Failure> {
            Ok((span(kind, shift, 3072)? - span(kind, shift, 1024)?) / 2048.0)
        };
        let (what, unit, ours) = match of {
            Of::Bracket(n) => (format!("{what}, {n} elements"), "cycles", span(kind, shift, n)?),
            Of::Inside(n) => {
                let ours = span(kind, shift, n)? - span(0, shift, n)?;
                (format!("{what}, {n} elements, without readings"), "cycles", ours)
            }
            Of::Each => (format!("{what}, each"), "cycles", each()?),
            Of::Rate => (format!("{what}, each cycle"), "elements", 1.0 / each()?),
        };
        // Ports, start-up and reduction are from the instructions; loops had no part in that.
        let (family, basis, within) = match kind {
            7.. => ("loop", Basis::Predicted, None),
            _ => ("vector instruction", Basis::Fitted, Some(Within::percent(1.0))),
        };
        rows.push(Row {
            table: "c8-vectors",
            family,
            what,
            unit,
            published,
            ours,
            basis,
            within,
            changes: Vec::new(),
        });
    }
    Ok(rows)
}
