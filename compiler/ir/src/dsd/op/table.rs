//! The rows, sorted by name.
//!
//! Names, operand forms and widths are those of the language guide; `spec/dsd-ops.md` is made
//! from here. To add an operation: one row, and at most one kernel; if it computes with floats, a
//! function in [`raised`]; if its elements are `f16`, a row in [`BF16_TABLE`] with a kernel
//! and function of its own where it computes.

use super::OpShape::{
    self, Binary, Carry, Convert, Move, MulAdd, Normalize, Reduce, Scale, Shift, Unary,
};
use super::kernels as k;
use super::{Form, OpRow, RowState, raised};
use crate::ty::Ty::{self, Bf16, F16, F32, I16, I32};

const BINARY: &[Form] = &[Form::Dss, Form::Dks, Form::Dsk];
const REDUCE: &[Form] = &[Form::Dss, Form::Dks, Form::Dsk, Form::Pks];
const UNARY: &[Form] = &[Form::Ds, Form::Dk];
const MOVE: &[Form] = &[Form::Ds, Form::Ps, Form::Dk];

const SHIFT_COUNT: RowState =
    RowState::Assumed("counts of 16 or more, read as unsigned, shift everything out");
const ZERO_COUNT: RowState = RowState::Assumed("0 has 16 zeros");
const FUSED: RowState = RowState::Assumed("one rounding (fused)");
const MAX_RULES: RowState = RowState::Assumed("a number wins over NaN, +0 over -0");
const NORMAL_FORM: RowState = RowState::NotYet("no public text says what the normalized form is");
const SCALING: RowState = RowState::Assumed("one rounding, also into subnormals");
const TO_INTEGER: RowState = RowState::Assumed("to nearest, ties to even; saturates; NaN gives 0");
const FROM_INTEGER: RowState = RowState::Assumed("the integer is signed");

type Kernel = fn([u32; 3], &mut u32) -> u32;

/// A documented row on elements of one type; the rest is said by the methods below.
const fn row(
    name: &'static str,
    shape: OpShape,
    forms: &'static [Form],
    ty: Ty,
    width: [u8; 2],
    kernel: Kernel,
    doc: &'static str,
) -> OpRow {
    let integer = matches!(ty, I16 | I32);
    OpRow {
        name,
        shape,
        forms,
        dest: ty,
        sources: [ty; 3],
        integer,
        width,
        kernel,
        raised: raised::nothing,
        state: RowState::Full,
        doc,
    }
}

impl OpRow {
    /// With other element types of the sources.
    const fn from(self, sources: [Ty; 3]) -> OpRow {
        let integer = self.integer || matches!((self.shape, sources[0]), (Convert, I16));
        OpRow { sources, integer, ..self }
    }

    /// With the exceptions that its elements raise.
    const fn raising(self, raised: fn([u32; 3]) -> u8) -> OpRow {
        OpRow { raised, ..self }
    }

    const fn state(self, state: RowState) -> OpRow {
        OpRow { state, ..self }
    }
}

/// The rows themselves.
const ROWS: &[OpRow] = &[
    row("add16", Binary, BINARY, I16, [4, 8], k::add16, "dest[i] = a[i] + b[i], wrapping"),
    row(
        "addc16",
        Carry,
        BINARY,
        I16,
        [1, 8],
        k::addc16,
        "dest[i] = a[i] + b[i] + carry of element i - 1",
    )
    .state(RowState::Assumed("the carry starts at 0 in each operation")),
    row("and16", Binary, BINARY, I16, [4, 8], k::and16, "dest[i] = a[i] & b[i]"),
    row("clz", Unary, UNARY, I16, [1, 1], k::clz, "dest[i] = number of leading zeros of a[i]")
        .state(ZERO_COUNT),
    row("ctz", Unary, UNARY, I16, [1, 1], k::ctz, "dest[i] = number of trailing zeros of a[i]")
        .state(ZERO_COUNT),
    row("fabsh", Unary, UNARY, F16, [4, 8], k::fabsh, "dest[i] = |a[i]|"),
    row("fabss", Unary, UNARY, F32, [2, 4], k::fabss, "dest[i] = |a[i]|"),
    row("faddh", Reduce, REDUCE, F16, [4, 8], k::faddh, "dest[i] = a[i] + b[i]")
        .raising(raised::faddh),
    row(
        "faddhs",
        Reduce,
        REDUCE,
        F32,
        [2, 4],
        k::faddhs,
        "dest[i] = a[i] + b[i], a single and b half",
    )
    .raising(raised::faddhs)
    .from([F32, F16, F16])
    .state(RowState::Assumed("of two vectors the first is the wide one")),
    row("fadds", Reduce, REDUCE, F32, [2, 4], k::fadds, "dest[i] = a[i] + b[i]")
        .raising(raised::fadds),
    row("fh2s", Convert, UNARY, F32, [1, 4], k::fh2s, "dest[i] = a[i] as a single")
        .raising(raised::fh2s)
        .from([F16, F16, F16]),
    row(
        "fh2xp16",
        Convert,
        &[Form::Ds, Form::Dk, Form::Pk],
        I16,
        [1, 8],
        k::fh2xp16,
        "dest[i] = a[i] as a signed integer",
    )
    .raising(raised::fh2xp16)
    .from([F16, F16, F16])
    .state(TO_INTEGER),
    row("fmach", MulAdd, &[Form::Dssk], F16, [4, 8], k::fmach, "dest[i] = a[i] + b[i] * k")
        .raising(raised::fmach)
        .state(FUSED),
    row(
        "fmachs",
        MulAdd,
        &[Form::Dssk],
        F32,
        [2, 4],
        k::fmachs,
        "dest[i] = a[i] + b[i] * k, a single, b and k half",
    )
    .raising(raised::fmachs)
    .from([F32, F16, F16])
    .state(RowState::Assumed("the product is exact")),
    row("fmacs", MulAdd, &[Form::Dssk], F32, [1, 1], k::fmacs, "dest[i] = a[i] + b[i] * k")
        .raising(raised::fmacs)
        .state(FUSED),
    row("fmaxh", Reduce, REDUCE, F16, [1, 8], k::fmaxh, "dest[i] = larger of a[i] and b[i]")
        .raising(raised::fmaxh)
        .state(MAX_RULES),
    row("fmaxs", Reduce, REDUCE, F32, [1, 4], k::fmaxs, "dest[i] = larger of a[i] and b[i]")
        .raising(raised::fmaxs)
        .state(MAX_RULES),
    row("fmovh", Move, MOVE, F16, [4, 8], k::word, "dest[i] = a[i]"),
    row("fmovs", Move, MOVE, F32, [2, 4], k::double_word, "dest[i] = a[i]"),
    row("fmulh", Reduce, REDUCE, F16, [4, 8], k::fmulh, "dest[i] = a[i] * b[i]")
        .raising(raised::fmulh),
    row("fmuls", Reduce, REDUCE, F32, [0, 0], k::fmuls, "dest[i] = a[i] * b[i]")
        .raising(raised::fmuls),
    row("fnegh", Unary, UNARY, F16, [4, 8], k::fnegh, "dest[i] = -a[i]"),
    row("fnegs", Unary, UNARY, F32, [2, 4], k::fnegs, "dest[i] = -a[i]"),
    row("fnormh", Normalize, &[Form::Pk], F16, [4, 8], k::word, "*p = k, normalized")
        .state(NORMAL_FORM),
    row("fnorms", Normalize, &[Form::Pk], F32, [2, 4], k::double_word, "*p = k, normalized")
        .state(NORMAL_FORM),
    row(
        "fs2h",
        Convert,
        UNARY,
        F16,
        [1, 4],
        k::fs2h,
        "dest[i] = a[i] as a half, to nearest, ties to even",
    )
    .raising(raised::fs2h)
    .from([F32, F32, F32]),
    row(
        "fs2xp16",
        Convert,
        &[Form::Ds, Form::Dk, Form::Pk],
        I16,
        [1, 4],
        k::fs2xp16,
        "dest[i] = a[i] as a signed integer",
    )
    .raising(raised::fs2xp16)
    .from([F32, F32, F32])
    .state(TO_INTEGER),
    row("fscaleh", Scale, &[Form::Pki], F16, [4, 8], k::fscaleh, "*p = k * 2^i")
        .raising(raised::fscaleh)
        .from([F16, I16, I16])
        .state(SCALING),
    row("fscales", Scale, &[Form::Pki], F32, [2, 4], k::fscales, "*p = k * 2^i")
        .raising(raised::fscales)
        .from([F32, I16, I16])
        .state(SCALING),
    row("fsubh", Reduce, REDUCE, F16, [4, 8], k::fsubh, "dest[i] = a[i] - b[i]")
        .raising(raised::fsubh),
    row("fsubs", Reduce, REDUCE, F32, [2, 4], k::fsubs, "dest[i] = a[i] - b[i]")
        .raising(raised::fsubs),
    row("mov16", Move, MOVE, I16, [4, 8], k::word, "dest[i] = a[i]"),
    row("mov32", Move, MOVE, I32, [2, 4], k::double_word, "dest[i] = a[i]"),
    row("or16", Binary, BINARY, I16, [4, 8], k::or16, "dest[i] = a[i] | b[i]"),
    row("popcnt", Unary, UNARY, I16, [1, 1], k::popcnt, "dest[i] = number of ones of a[i]"),
    row("sar16", Shift, BINARY, I16, [1, 4], k::sar16, "dest[i] = a[i] >> b[i], sign extended")
        .state(SHIFT_COUNT),
    row("sll16", Shift, BINARY, I16, [1, 4], k::sll16, "dest[i] = a[i] << b[i]").state(SHIFT_COUNT),
    row("slr16", Shift, BINARY, I16, [1, 4], k::slr16, "dest[i] = a[i] >> b[i], zero extended")
        .state(SHIFT_COUNT),
    row(
        "sub16",
        Binary,
        &[Form::Dss, Form::Dsk],
        I16,
        [4, 8],
        k::sub16,
        "dest[i] = a[i] - b[i], wrapping",
    ),
    row("xor16", Binary, BINARY, I16, [4, 8], k::xor16, "dest[i] = a[i] ^ b[i]"),
    row(
        "xp162fh",
        Convert,
        UNARY,
        F16,
        [1, 8],
        k::xp162fh,
        "dest[i] = a[i], a signed integer, as a float",
    )
    .raising(raised::xp162fh)
    .from([I16, I16, I16])
    .state(FROM_INTEGER),
    row(
        "xp162fs",
        Convert,
        UNARY,
        F32,
        [1, 4],
        k::xp162fs,
        "dest[i] = a[i], a signed integer, as a float",
    )
    .raising(raised::xp162fs)
    .from([I16, I16, I16])
    .state(FROM_INTEGER),
];

/// All operations, sorted by name.
pub static TABLE: &[OpRow] = ROWS;

/// A row of [`TABLE`] on `bf16` in the place of `f16`, with its kernel.
const fn on_bf16(name: &str, kernel: Kernel, raised: fn([u32; 3]) -> u8) -> OpRow {
    const fn other(ty: Ty) -> Ty {
        if matches!(ty, F16) { Bf16 } else { ty }
    }
    let mut at = 0;
    while !same(ROWS[at].name, name) {
        at += 1;
    }
    let row = ROWS[at];
    let [a, b, c] = row.sources;
    OpRow { dest: other(row.dest), sources: [other(a), other(b), other(c)], kernel, raised, ..row }
}

/// Whether two names are the same.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// The operations on `f16` of [`TABLE`], on `bf16`, sorted by name.
pub static BF16_TABLE: &[OpRow] = &[
    on_bf16("fabsh", k::bf16::fabsh, raised::nothing),
    on_bf16("faddh", k::bf16::faddh, raised::bf16::faddh),
    on_bf16("faddhs", k::bf16::faddhs, raised::bf16::faddhs),
    on_bf16("fh2s", k::bf16::fh2s, raised::bf16::fh2s),
    on_bf16("fh2xp16", k::bf16::fh2xp16, raised::bf16::fh2xp16),
    on_bf16("fmach", k::bf16::fmach, raised::bf16::fmach),
    on_bf16("fmachs", k::bf16::fmachs, raised::bf16::fmachs),
    on_bf16("fmaxh", k::bf16::fmaxh, raised::bf16::fmaxh),
    on_bf16("fmovh", k::word, raised::nothing),
    on_bf16("fmulh", k::bf16::fmulh, raised::bf16::fmulh),
    on_bf16("fnegh", k::bf16::fnegh, raised::nothing),
    on_bf16("fnormh", k::word, raised::nothing),
    on_bf16("fs2h", k::bf16::fs2h, raised::bf16::fs2h),
    on_bf16("fscaleh", k::bf16::fscaleh, raised::bf16::fscaleh),
    on_bf16("fsubh", k::bf16::fsubh, raised::bf16::fsubh),
    on_bf16("xp162fh", k::bf16::xp162fh, raised::bf16::xp162fh),
];
