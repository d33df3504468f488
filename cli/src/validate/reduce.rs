//! Table c1: reductions along a row of PEs (SpMM_Cerebras logs, WSE-2 simulator).

use dflow_ir::target::TargetId;

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const TABLE: Table = Table {
    name: "c1",
    about: "Sums of f32 vectors along a row of 512 PEs, WSE-2 simulator; 29 cycles for their counter readings (fitted on the chain of 4 PEs) are in ours",
    target: TargetId::Wse2,
    rows,
};

const CHAIN: Program = Program { name: "chain.dfl", text: include_str!("programs/chain.dfl") };
const TREE: Program = Program { name: "tree.dfl", text: include_str!("programs/tree.dfl") };

/// Elements, then cycles of the chain, of groups of 32, and of the tree.
const SWEEP: &[(u32, f64, f64, f64)] = &[
    (1, 3128.0, 819.0, 742.0),
    (2, 3129.0, 821.0, 748.0),
    (4, 3131.0, 825.0, 760.0),
    (8, 3135.0, 833.0, 784.0),
    (16, 3143.0, 849.0, 832.0),
    (32, 3159.0, 881.0, 931.0),
    (64, 3191.0, 945.0, 1155.0),
    (128, 3255.0, 1073.0, 1646.0),
    (256, 3383.0, 1329.0, 2681.0),
    (512, 3639.0, 1841.0, 4977.0),
    (1024, 4151.0, 2865.0, 9585.0),
    (2048, 5175.0, 4913.0, 18801.0),
    (4096, 7223.0, 9009.0, 37233.0),
    (8192, 11319.0, 17201.0, 74097.0),
];

/// Size of the groups and cycles, for 4096 elements and registers loaded.
const GROUPS: &[(u32, f64)] = &[
    (2, 10055.0),
    (4, 9421.0),
    (8, 9117.0),
    (16, 8989.0),
    (32, 8973.0),
    (64, 9061.0),
    (128, 9297.0),
    (256, 9800.0),
    (512, 7218.0),
];

/// Cycles that their readings and start take beside ours, in all of these programs: fitted on the
/// chain of 4 PEs.
const HARNESS: f64 = 29.0;

/// "Exact to a constant": what the published sweeps take beside formulas goes from 56 to 76.
const CONSTANT: Within = Within { share: 0.0, cycles: 20.0 };

/// PEs of the row.
const WIDTH: u32 = 512;

fn rows(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = vec![row("chain", "4 PEs, 16 elements", 95.0, chain(bench, 4, 4, 16, true)?)];
    for &(n, published, ..) in SWEEP.iter().filter(|&&(n, ..)| !bench.quick || n == 16) {
        let ours = chain(bench, WIDTH, WIDTH, n, true)?;
        rows.push(row("chain", &format!("{n} elements"), published, ours));
    }
    for &(n, _, published, _) in SWEEP.iter().filter(|&&(n, ..)| !bench.quick || n == 16) {
        let ours = chain(bench, WIDTH, 32, n, true)?;
        rows.push(row("groups of 32", &format!("{n} elements"), published, ours));
    }
    for &(n, _, _, published) in SWEEP.iter().filter(|&&(n, ..)| !bench.quick || n == 16) {
        let params = [("levels", WIDTH.ilog2()), ("n", n)];
        let ours = bench.run(TREE, TargetId::Wse2, &params)?.span(0, 0)?;
        let row = row("tree", &format!("{n} elements"), published, ours);
        let within = if n < LONG[0] { Within::percent(5.0) } else { CONSTANT };
        rows.push(Row { within: Some(within), ..row });
    }
    for &(group, published) in GROUPS.iter().filter(|_| !bench.quick) {
        let ours = chain(bench, WIDTH, group, 4096, false)?;
        rows.push(row("group sweep", &format!("groups of {group}"), published, ours));
    }
    if !bench.quick {
        rows.extend(
            SWEPT.iter().flat_map(|&(family, law)| laws(&rows, family, law)).collect::<Vec<_>>(),
        );
    }
    Ok(rows)
}

/// Cycles per element that the sweeps of lengths come to.
const SWEPT: [(&str, f64); 3] = [("chain", 1.0), ("groups of 32", 2.0), ("tree", 9.0)];

/// Lengths from which the tree's operations follow their elements and nothing else.
const LONG: [u32; 2] = [512, 8192];

/// What a sweep comes to for long vectors: cycles of each further element, and those beside that.
fn laws(rows: &[Row], family: &'static str, law: f64) -> [Row; 2] {
    let of = |n: u32, pick: fn(&Row) -> f64| {
        let what = format!("{n} elements");
        rows.iter().find(|row| row.family == family && row.what == what).map_or(f64::NAN, pick)
    };
    let numbers: [fn(&Row) -> f64; 2] = [|row| row.published, |row| row.ours];
    let [first, last] = LONG;
    let each = numbers.map(|pick| (of(last, pick) - of(first, pick)) / f64::from(last - first));
    let rest = numbers.map(|pick| of(first, pick) - law * f64::from(first));
    let law_row = |what: &str, [published, ours]: [f64; 2], within| {
        let row = row(family, what, published, ours);
        Row { ours, within, ..row }
    };
    [
        law_row("each further element, from 512 on", each, Some(Within::cycles(0.01))),
        law_row(&format!("512 elements, beside {law} for each"), rest, None),
    ]
}

fn chain(bench: &Bench, width: u32, group: u32, n: u32, built: bool) -> Result<f64, Failure> {
    let params = [("width", width), ("group", group), ("n", n), ("built", u32::from(built))];
    bench.run(CHAIN, TargetId::Wse2, &params)?.span(0, 0)
}

fn row(family: &'static str, what: &str, published: f64, ours: f64) -> Row {
    let (basis, within) = match family {
        // Ramp and hop were fitted on the chain.
        "chain" => (Basis::Fitted, CONSTANT),
        "group sweep" => (Basis::Shaped, Within::percent(2.0)),
        _ => (Basis::Shaped, CONSTANT),
    };
    Row {
        table: "c1",
        family,
        what: what.to_owned(),
        unit: "cycles",
        published,
        ours: ours + HARNESS,
        basis,
        within: Some(within),
        changes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a sweep that takes 9 for each element and some more, published and ours.
    fn sweep(more: [f64; 2], slope: f64) -> Vec<Row> {
        let made = |&n: &u32| {
            let published = 9.0 * f64::from(n) + more[0];
            let ours = slope * f64::from(n) + more[1];
            Row { ours, ..row("tree", &format!("{n} elements"), published, 0.0) }
        };
        LONG.iter().map(made).collect()
    }

    #[test]
    fn a_constant_is_shown_apart_from_the_slope() {
        let [each, rest] = laws(&sweep([369.0, 382.0], 9.0), "tree", 9.0);
        assert_eq!((each.published, each.ours, each.is_inside()), (9.0, 9.0, true));
        assert_eq!((rest.published, rest.ours, rest.within), (369.0, 382.0, None));
    }

    #[test]
    fn a_slope_that_is_not_exact_is_outside() {
        let [each, _] = laws(&sweep([369.0, 369.0], 9.02), "tree", 9.0);
        assert!(!each.is_inside(), "{each:?}");
    }
}
