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
        rows.push(row("tree", &format!("{n} elements"), published, ours));
    }
    for &(group, published) in GROUPS.iter().filter(|_| !bench.quick) {
        let ours = chain(bench, WIDTH, group, 4096, false)?;
        rows.push(row("group sweep", &format!("groups of {group}"), published, ours));
    }
    Ok(rows)
}

fn chain(bench: &Bench, width: u32, group: u32, n: u32, built: bool) -> Result<f64, Failure> {
    let params = [("width", width), ("group", group), ("n", n), ("built", u32::from(built))];
    bench.run(CHAIN, TargetId::Wse2, &params)?.span(0, 0)
}

fn row(family: &'static str, what: &str, published: f64, ours: f64) -> Row {
    let (basis, within) = match family {
        // Ramp and hop were fitted on the chain.
        "chain" => (Basis::Fitted, Within::cycles(20.0)),
        "groups of 32" => (Basis::Shaped, Within::cycles(20.0)),
        "group sweep" => (Basis::Shaped, Within::percent(2.0)),
        // The tree is built as its authors' program is.
        _ => (Basis::Predicted, Within::percent(5.0)),
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
