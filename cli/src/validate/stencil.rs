//! Table c6: stencils in two dimensions (stencil study and CStencil, WSE-2 and WSE-3 simulators).

use dflow_ir::target::{Override, TargetId};

use super::bench::Program;
use super::{Basis, Bench, Row, Table, Within};
use crate::exit::Failure;

pub(super) const TABLE: Table = Table {
    name: "c6",
    about: "Stencils in two dimensions, f32, cycles per round; of tiles the inner PE of 3 x 3, \
            since the published rounds do not depend on the mesh; of four PEs all rounds at once",
    target: TargetId::Wse2,
    rows,
};

const CELLS: Program = Program { name: "stencil.dfl", text: include_str!("programs/stencil.dfl") };
const TILES: Program = Program { name: "tiles.dfl", text: include_str!("programs/tiles.dfl") };

/// PEs of a side, what is told of them (nothing of 5 x 5 and more, which are all the same), and
/// cycles on wse2 and wse3.
const GRIDS: &[(u16, &str, f64, f64)] =
    &[(3, "3 x 3 PEs, ", 12.0, 17.0), (4, "4 x 4 PEs, ", 15.0, 21.0), (7, "", 16.0, 23.0)];

/// Rows and columns of a tile, radius, and cycles on wse2 and wse3 (0: not published). Of ranges
/// the middle, of numbers that the source gives twice the smaller one.
const SIZES: &[(u32, u32, u32, f64, f64)] = &[
    (1, 1, 1, 126.0, 156.0),
    (2, 1, 1, 131.0, 162.0),
    (2, 2, 1, 141.0, 177.0),
    (3, 3, 1, 188.0, 197.0),
    (4, 4, 1, 220.0, 131.0),
    (4, 5, 1, 240.0, 151.0),
    (5, 5, 1, 285.0, 191.0),
    (6, 6, 1, 338.0, 244.0),
    (7, 7, 1, 0.0, 297.0),
    (8, 8, 1, 551.0, 356.0),
    (10, 10, 1, 783.0, 558.0),
    (14, 1, 1, 232.0, 243.0),
    (11, 2, 1, 279.0, 283.0),
    (14, 9, 1, 841.0, 676.0),
    (15, 15, 1, 0.0, 1078.0),
    (20, 20, 1, 2669.0, 1788.0),
    (25, 25, 1, 0.0, 2852.0),
    (30, 30, 1, 0.0, 3988.0),
    (86, 14, 1, 7741.0, 5299.0),
    (40, 40, 1, 0.0, 6748.0),
    (50, 50, 1, 0.0, 10627.0),
    (60, 60, 1, 0.0, 14907.0),
    (64, 64, 1, 25270.0, 16924.0),
    (2, 2, 2, 271.0, 339.0),
    (3, 3, 2, 371.0, 419.0),
    (5, 5, 2, 590.0, 635.0),
    (10, 10, 2, 1679.0, 1712.0),
    (15, 15, 2, 0.0, 3418.0),
    (20, 20, 2, 4548.0, 4570.0),
    (25, 25, 2, 0.0, 8149.0),
    (30, 30, 2, 0.0, 12431.0),
    (40, 40, 2, 0.0, 16880.0),
    (50, 50, 2, 0.0, 33546.0),
    (60, 60, 2, 0.0, 37207.0),
    (64, 64, 2, 42358.0, 42238.0),
    (3, 3, 3, 449.0, 507.0),
    (4, 5, 3, 625.0, 679.0),
    (5, 5, 3, 842.0, 886.0),
    (6, 6, 3, 888.0, 939.0),
    (64, 64, 3, 71647.0, 71460.0),
    (4, 4, 4, 0.0, 808.0),
    (10, 10, 4, 0.0, 2747.0),
    (20, 20, 4, 0.0, 9754.0),
    (30, 30, 4, 0.0, 20182.0),
    (40, 40, 4, 0.0, 36805.0),
    (50, 50, 4, 0.0, 54425.0),
    (60, 60, 4, 0.0, 81445.0),
    (64, 64, 4, 0.0, 92532.0),
    (10, 10, 5, 3352.0, 3375.0),
    (6, 6, 6, 1739.0, 1770.0),
    (10, 10, 6, 0.0, 4179.0),
    (20, 20, 6, 0.0, 13355.0),
    (30, 30, 6, 0.0, 31526.0),
    (40, 40, 6, 0.0, 50378.0),
    (50, 50, 6, 0.0, 85330.0),
    (60, 60, 6, 0.0, 111_297.0),
    (7, 7, 7, 2775.0, 2790.0),
];

/// Families by radius.
const FAMILIES: [&str; 7] = [
    "tiles, radius 1",
    "tiles, radius 2",
    "tiles, radius 3",
    "tiles, radius 4",
    "tiles, radius 5",
    "tiles, radius 6",
    "tiles, radius 7",
];

/// Families with whose numbers the programs were chosen; the others came after that.
const SHAPED: [&str; 3] = ["one cell per PE", FAMILIES[0], FAMILIES[1]];

/// Radius, rounds and cycles of 16 x 16 cells on 2 x 2 PEs of wse3, from seconds at 875 MHz.
const FOUR: &[(u32, u32, f64)] = &[
    (1, 1, 906.0),
    (1, 4, 3598.0),
    (2, 1, 2127.0),
    (2, 3, 6362.0),
    (3, 1, 2407.0),
    (3, 3, 7253.0),
];

/// What the second reading of public figures for finite volumes says of f32 products.
const TWO_LANES: (&str, u32) = ("fmuls_lanes", 2);

fn rows(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for &(width, what, two, three) in GRIDS.iter().filter(|grid| !bench.quick || grid.1.is_empty())
    {
        for (target, published) in [(TargetId::Wse2, two), (TargetId::Wse3, three)] {
            let ours = cells(bench, target, width)?;
            let found = row("one cell per PE", target, what.to_owned(), published, ours);
            rows.push(if what.is_empty() { found } else { free(found) });
        }
    }
    let is_quick = |size: [u32; 3]| !bench.quick || size == [10, 10, 1];
    let tiles = sizes(bench, &is_quick, &[])?;
    rows.extend(tiles.iter().cloned());
    if bench.quick {
        return Ok(rows);
    }
    for &(radius, rounds, published) in FOUR {
        let ours = run_tiles(bench, TargetId::Wse3, [8, 8, radius, rounds, 2], &[])?;
        let what = format!("radius {radius}, rounds: {rounds}, ");
        rows.push(free(row("2 x 2 PEs, 8 x 8 cells", TargetId::Wse3, what, published, ours)));
    }
    let two_lanes: Vec<Override> = vec![(TWO_LANES.0.to_owned(), TWO_LANES.1)];
    let is_large = |[height, width, _]: [u32; 3]| height == width && height >= LEAST;
    let others = laws(&sizes(bench, &is_large, &two_lanes)?);
    for (law, other) in laws(&tiles).into_iter().zip(others) {
        rows.extend([law, Row { changes: two_lanes.clone(), ..free(other) }]);
    }
    Ok(rows)
}

/// The tiles that are wanted, on both targets.
fn sizes(
    bench: &Bench,
    is_wanted: &dyn Fn([u32; 3]) -> bool,
    changes: &[Override],
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for &(height, width, radius, two, three) in SIZES {
        let size = [height, width, radius];
        for (target, published) in [(TargetId::Wse2, two), (TargetId::Wse3, three)] {
            if published > 0.0 && is_wanted(size) {
                let ours = tiles(bench, target, size, changes)?;
                let family = FAMILIES[radius as usize - 1];
                rows.push(free(row(
                    family,
                    target,
                    format!("{height} x {width}, "),
                    published,
                    ours,
                )));
            }
        }
    }
    Ok(rows)
}

/// Cells of a side from which a square tile has a part in a law.
const LEAST: u32 = 20;

/// What the large squares show together: slopes per cell, and the two classes of widths.
fn laws(tiles: &[Row]) -> Vec<Row> {
    let mut rows = Vec::new();
    for target in TargetId::ALL {
        let slope =
            |pick| (of(tiles, 1, 64, target, pick) - of(tiles, 1, LEAST, target, pick)) / 3696.0;
        let [published, ours] = NUMBERS.map(slope);
        let what = "each cell from 20 x 20 to 64 x 64, ".to_owned();
        rows.push(row(FAMILIES[0], target, what, published, ours));
    }
    for target in TargetId::ALL {
        rows.push(free(class(tiles, 3, target, &[64], "at 64 x 64")));
    }
    for (radius, even, odd) in CLASSES {
        for (sizes, what) in [(even, "pitch 1 modulo 4"), (odd, "pitch 2 or 3")] {
            let law = class(tiles, radius, TargetId::Wse3, sizes, what);
            rows.push(if radius == 2 { law } else { free(law) });
        }
    }
    rows
}

/// Radius, and sizes of which the pitch is 1 modulo 4, and is not.
const CLASSES: [(u32, &[u32], &[u32]); 3] = [
    (2, &[40, 60, 64], &[25, 30, 50]),
    (4, &[40, 60, 64], &[30, 50]),
    (6, &[20, 40, 60], &[30, 50]),
];

const NUMBERS: [fn(&Row) -> f64; 2] = [|row| row.published, |row| row.ours];

/// A number of a square tile's row.
fn of(rows: &[Row], radius: u32, cells: u32, target: TargetId, pick: fn(&Row) -> f64) -> f64 {
    let family = FAMILIES[radius as usize - 1];
    let what = format!("{cells} x {cells}, {}", target.name());
    let found = rows.iter().find(|row| row.family == family && row.what == what);
    found.map_or(f64::NAN, pick)
}

/// The mean of what each cell takes in square tiles of some sizes.
fn class(tiles: &[Row], radius: u32, target: TargetId, sizes: &[u32], what: &str) -> Row {
    let [published, ours] = NUMBERS.map(|pick| {
        let each = |&cells: &u32| of(tiles, radius, cells, target, pick) / f64::from(cells * cells);
        sizes.iter().map(each).sum::<f64>() / sizes.len() as f64
    });
    row(FAMILIES[radius as usize - 1], target, format!("each cell, {what}, "), published, ours)
}

/// Cycles per round of the PE in the middle of a square of PEs with one cell each.
fn cells(bench: &Bench, target: TargetId, width: u16) -> Result<f64, Failure> {
    let mut total = [0.0; 2];
    for (total, rounds) in total.iter_mut().zip([64, 192]) {
        let params = [("width", u32::from(width)), ("rounds", rounds)];
        *total = bench.run(CELLS, target, &params)?.span(width / 2, width / 2)?;
    }
    Ok((total[1] - total[0]) / 128.0)
}

/// Cycles per round of a tile of so many rows and columns, with a radius.
fn tiles(
    bench: &Bench,
    target: TargetId,
    size: [u32; 3],
    changes: &[Override],
) -> Result<f64, Failure> {
    let [rows, columns, radius] = size;
    let mut total = [0.0; 2];
    for (total, rounds) in total.iter_mut().zip([2, 6]) {
        *total = run_tiles(bench, target, [rows, columns, radius, rounds, 3], changes)?;
    }
    Ok((total[1] - total[0]) / 4.0)
}

/// Cycles of all rounds of the PE in the middle: rows, columns, radius, rounds, and PEs of a side.
fn run_tiles(
    bench: &Bench,
    target: TargetId,
    [rows, columns, radius, rounds, width]: [u32; 5],
    changes: &[Override],
) -> Result<f64, Failure> {
    let mesh = [("rounds", rounds), ("width", width)];
    let params = [("rows", rows), ("columns", columns), ("radius", radius), mesh[0], mesh[1]];
    bench.run_with(TILES, target, &params, changes)?.span(1, 1)
}

/// Without a bound: its fixed costs are not described, or nobody says how far it should be off.
fn free(row: Row) -> Row {
    Row { within: None, ..row }
}

fn row(family: &'static str, target: TargetId, what: String, published: f64, ours: f64) -> Row {
    Row {
        table: "c6",
        family,
        what: format!("{what}{}", target.name()),
        unit: "cycles",
        published,
        ours,
        basis: if SHAPED.contains(&family) { Basis::Shaped } else { Basis::Predicted },
        within: Some(Within::percent(10.0)),
        changes: Vec::new(),
    }
}
