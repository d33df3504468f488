//! The manual page of the vector operations, made from the table.

use std::fmt::Write;

use super::{OpRow, RowState, TABLE};

const HEAD: &str = "\
# Vector operations

Made from the operation table (`compiler/ir/src/dsd/op/table.rs`); do not edit. A test compares;
`UPDATE_SPEC=1 cargo test -p dflow-ir` writes it anew.

An operation works element by element, in increasing order, each element read, computed and written
before the next. Operands are written destination first: `d` a descriptor as destination (memory,
fabric, register, FIFO), `p` a pointer to one element, `s` a descriptor as source, `k` a scalar of the
element type, `i` a scalar `i16`. Below, `a` is the first source and `b` the second; a scalar stands
for all its elements.

- `(p,s)` leaves the last value. `(p,k,s)` is a reduction: the accumulator starts at `k`, each element
  does `acc = acc op s[i]`, and the last `acc` is stored. Over no elements nothing is stored (assumed).
- Integers wrap. `i16` and `u16` (`i32` and `u32`) are both accepted where the table says `i16` (`i32`).
- Floats follow IEEE 754, to nearest, ties to even. Assumed, since nothing public says it: subnormals
  are kept; a NaN result is the positive quiet NaN with no payload (`7e00`, `7fc00000`), except that
  moves, `fabs` and `fneg` keep the bits.
- A program that computes in `bf16` has it in the place of `f16` in all of them (its NaN is `7fc0`).
- In `(d,k,s)` of `faddhs` the scalar is the half and the vector the single; in `(p,k,s)` the
  accumulator is the single.
- Width is the number of elements per issue slot on wse2 / wse3, where neither ports nor banks of the memory limit
  it (`time-costs.md`); `f` stands for the target's `fmuls_lanes`. An operand on the fabric moves one element per
  cycle.

\"Assumed\" marks what we chose where public texts are silent. \"Not yet\" is refused by the compiler.

| operation | operands | elements | width | effect | remark |
|---|---|---|---|---|---|
";

/// The manual page, `spec/dsd-ops.md`.
pub fn manual() -> String {
    TABLE.iter().fold(HEAD.to_owned(), |mut page, row| {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "{}", line(row));
        page
    })
}

fn line(row: &OpRow) -> String {
    let forms: Vec<String> = row
        .forms
        .iter()
        .map(|form| {
            let letters: Vec<String> = form.letters().chars().map(String::from).collect();
            format!("({})", letters.join(","))
        })
        .collect();
    let sources: Vec<&str> = row.source_types().iter().map(|ty| ty.name()).collect();
    let remark = match row.state {
        RowState::Full => String::new(),
        RowState::Assumed(what) => format!("assumed: {what}"),
        RowState::NotYet(why) => format!("not yet: {why}"),
    };
    format!(
        "| `@{}` | {} | {} from {} | {} / {} | `{}` | {} |",
        row.name,
        forms.join(" "),
        row.dest,
        sources.join(", "),
        width(row.width[0]),
        width(row.width[1]),
        row.doc.replace('|', "\\|"),
        remark,
    )
}

/// A width of the table.
fn width(elements: u8) -> String {
    if elements == 0 { "f".to_owned() } else { elements.to_string() }
}
