//! Table c6: stencils in two dimensions (stencil study, WSE-2 and WSE-3 simulators).

use dflow_ir::target::TargetId;

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const TABLE: Table = Table {
    name: "c6",
    about: "Stencils in two dimensions, f32, cycles per round; of tiles the inner PE of 3 x 3, \
            since the published rounds do not depend on the mesh",
    target: TargetId::Wse2,
    rows,
};

const CELLS: Program = Program { name: "stencil.dfl", text: include_str!("programs/stencil.dfl") };
const TILES: Program = Program { name: "tiles.dfl", text: include_str!("programs/tiles.dfl") };

/// Rows and columns of a tile, radius, and cycles on wse2 and wse3 (0: not published).
const SIZES: &[(u32, u32, u32, f64, f64)] = &[
    (1, 1, 1, 126.0, 156.0),
    (2, 2, 1, 141.0, 177.0),
    (3, 3, 1, 188.0, 197.0),
    (4, 4, 1, 220.0, 131.0),
    (5, 5, 1, 285.0, 191.0),
    (6, 6, 1, 338.0, 244.0),
    (8, 8, 1, 551.0, 356.0),
    (10, 10, 1, 783.0, 558.0),
    (20, 20, 1, 2669.0, 1788.0),
    (64, 64, 1, 25270.0, 16924.0),
    (10, 10, 2, 1679.0, 1712.0),
    (20, 20, 2, 4548.0, 4570.0),
    (25, 25, 2, 0.0, 8149.0),
    (30, 30, 2, 0.0, 12431.0),
    (40, 40, 2, 0.0, 16880.0),
    (50, 50, 2, 0.0, 33546.0),
    (60, 60, 2, 0.0, 37207.0),
    (64, 64, 2, 42358.0, 42238.0),
];

fn rows(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (target, published) in [(TargetId::Wse2, 16.0), (TargetId::Wse3, 23.0)] {
        let mut total = [0.0; 2];
        for (total, rounds) in total.iter_mut().zip([64, 192]) {
            let params = [("width", 7), ("rounds", rounds)];
            *total = bench.run(CELLS, target, &params)?.span(3, 3)?;
        }
        let ours = (total[1] - total[0]) / 128.0;
        rows.push(row("one cell per PE", target, String::new(), published, ours));
    }
    let first_tile = rows.len();
    for &(height, width, radius, two, three) in SIZES {
        if bench.quick && (height != 10 || radius != 1) {
            continue;
        }
        for (target, published) in [(TargetId::Wse2, two), (TargetId::Wse3, three)] {
            if published > 0.0 {
                let ours = tiles(bench, target, [height, width, radius])?;
                let family = if radius == 1 { "tiles, radius 1" } else { "tiles, radius 2" };
                let what = format!("{height} x {width}, ");
                rows.push(Row { within: None, ..row(family, target, what, published, ours) });
            }
        }
    }
    if !bench.quick {
        let laws = laws(&rows[first_tile..]);
        rows.extend(laws);
    }
    Ok(rows)
}

/// What the sizes show together: the slope per cell, and the two classes of widths.
fn laws(tiles: &[Row]) -> Vec<Row> {
    let of = |radius: u32, cells: u32, target: TargetId, pick: fn(&Row) -> f64| {
        let family = format!("tiles, radius {radius}");
        let what = format!("{cells} x {cells}, {}", target.name());
        let found = tiles.iter().find(|row| row.family == family && row.what == what);
        found.map_or(f64::NAN, pick)
    };
    let numbers: [fn(&Row) -> f64; 2] = [|row| row.published, |row| row.ours];
    let mut rows = Vec::new();
    for target in TargetId::ALL {
        let slope = |pick| (of(1, 64, target, pick) - of(1, 20, target, pick)) / 3696.0;
        let [published, ours] = numbers.map(slope);
        let what = "each cell from 20 x 20 to 64 x 64, ".to_owned();
        rows.push(row("tiles, radius 1", target, what, published, ours));
    }
    let target = TargetId::Wse3;
    for (sizes, what) in [(&[40, 60, 64][..], "pitch 1 modulo 4"), (&[25, 30, 50], "pitch 2 or 3")]
    {
        let mean = |pick| {
            let each = |&cells: &u32| of(2, cells, target, pick) / f64::from(cells * cells);
            sizes.iter().map(each).sum::<f64>() / sizes.len() as f64
        };
        let [published, ours] = numbers.map(mean);
        rows.push(row("tiles, radius 2", target, format!("each cell, {what}, "), published, ours));
    }
    rows
}

fn tiles(bench: &Bench, target: TargetId, size: [u32; 3]) -> Result<f64, Failure> {
    let [rows, columns, radius] = size;
    let mut total = [0.0; 2];
    for (total, rounds) in total.iter_mut().zip([2, 6]) {
        let params = [("rows", rows), ("columns", columns), ("radius", radius), ("rounds", rounds)];
        *total = bench.run(TILES, target, &params)?.span(1, 1)?;
    }
    Ok((total[1] - total[0]) / 4.0)
}

fn row(family: &'static str, target: TargetId, what: String, published: f64, ours: f64) -> Row {
    Row {
        table: "c6",
        family,
        what: format!("{what}{}", target.name()),
        unit: "cycles",
        published,
        ours,
        basis: Basis::Shaped,
        within: Some(Within::percent(10.0)),
        changes: Vec::new(),
    }
}
