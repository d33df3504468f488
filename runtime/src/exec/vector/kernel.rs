//! Kernels in a form that becomes SIMD code: pure functions without branches.
//!
//! Each equals its row's kernel on every element (a property test holds them together). A row
//! without one here goes through the table's kernel, element by element. Bits of a source above
//! its element type are ignored.

use std::sync::OnceLock;

use dflow_ir::dsd::op::DsdOp;

use super::fast::{self, Runner};
use super::short;

/// A row's meaning on raw elements.
pub(super) trait Kernel {
    /// Which sources count.
    const USED: [bool; 3];
    /// Whether all operands are words in memory.
    const WORDS: bool;

    /// The result, but that a NaN need not be the one that counts. With `FUSED` the host has a
    /// multiply-add with one rounding.
    fn raw<const FUSED: bool>(a: u32, b: u32, k: u32) -> u32;

    /// What is kept of a result. In a chain of results it may be done at the end alone.
    fn keep(raw: u32) -> u32;
}

/// The ways of a row: over elements, as a reduction, and short ones, if all are words.
#[derive(Clone, Copy)]
pub(super) struct Ways {
    pub(super) each: Runner,
    pub(super) fold: Runner,
    pub(super) short: Option<short::Runner>,
}

/// The ways of a row, if it has them.
pub(super) fn ways(op: u8) -> Option<Ways> {
    static WAYS: OnceLock<Vec<Option<Ways>>> = OnceLock::new();
    let ways = WAYS.get_or_init(|| DsdOp::all().map(|op| by_name(op.row().name)).collect());
    ways.get(usize::from(op)).copied().flatten()
}

macro_rules! kernels {
    ($($type:ident($arity:literal, $words:ident): $($name:literal)|+ = |$a:ident, $b:ident, $k:ident| $raw:expr, $keep:expr;)*) => {
        $(struct $type;

        impl Kernel for $type {
            const USED: [bool; 3] = [true, $arity > 1, $arity > 2];
            const WORDS: bool = $words;

            #[inline(always)]
            fn raw<const FUSED: bool>($a: u32, $b: u32, $k: u32) -> u32 {
                let _ = ($b, $k);
                $raw
            }

            #[inline(always)]
            fn keep(raw: u32) -> u32 {
                $keep(raw)
            }
        })*

        fn by_name(name: &str) -> Option<Ways> {
            match name {
                $($($name)|+ => Some(of::<$type>()),)*
                _ => None,
            }
        }
    };
}

fn of<K: Kernel>() -> Ways {
    let short = if K::WORDS { Some(short::each::<K> as short::Runner) } else { None };
    Ways { each: fast::each::<K>, fold: fast::fold::<K>, short }
}

/// All operands are words, or some are halves.
const WORDS: bool = true;
const HALVES: bool = false;

kernels! {
    Fadds(2, WORDS): "fadds" = |a, b, k| (single(a) + single(b)).to_bits(), one_nan;
    Fsubs(2, WORDS): "fsubs" = |a, b, k| (single(a) - single(b)).to_bits(), one_nan;
    Fmuls(2, WORDS): "fmuls" = |a, b, k| (single(a) * single(b)).to_bits(), one_nan;
    Fmaxs(2, WORDS): "fmaxs" = |a, b, k| larger(a, b), one_nan;
    Fmacs(3, WORDS): "fmacs" = |a, b, k| multiply_add::<FUSED>(a, b, k), one_nan;
    Fnegs(1, WORDS): "fnegs" = |a, b, k| a ^ 0x8000_0000, same;
    Fabss(1, WORDS): "fabss" = |a, b, k| a & 0x7fff_ffff, same;
    Words(1, WORDS): "fmovs" | "mov32" = |a, b, k| a, same;
    Halves(1, HALVES): "mov16" | "fmovh" = |a, b, k| a, low;
    Add16(2, HALVES): "add16" = |a, b, k| a.wrapping_add(b), low;
    Sub16(2, HALVES): "sub16" = |a, b, k| a.wrapping_sub(b), low;
    And16(2, HALVES): "and16" = |a, b, k| a & b, low;
    Or16(2, HALVES): "or16" = |a, b, k| a | b, low;
    Xor16(2, HALVES): "xor16" = |a, b, k| a ^ b, low;
    Fnegh(1, HALVES): "fnegh" = |a, b, k| a ^ 0x8000, low;
    Fabsh(1, HALVES): "fabsh" = |a, b, k| a & 0x7fff, same;
    Faddh(2, HALVES): "faddh" = |a, b, k| to_half(of_half(a) + of_half(b)), same;
    Fsubh(2, HALVES): "fsubh" = |a, b, k| to_half(of_half(a) - of_half(b)), same;
    Fmulh(2, HALVES): "fmulh" = |a, b, k| to_half(of_half(a) * of_half(b)), same;
    Fs2h(1, HALVES): "fs2h" = |a, b, k| to_half(single(a)), same;
    Fh2s(1, HALVES): "fh2s" = |a, b, k| of_half(a).to_bits(), one_nan;
    Faddhs(2, HALVES): "faddhs" = |a, b, k| (single(a) + of_half(b)).to_bits(), one_nan;
    Fmachs(3, HALVES): "fmachs" = |a, b, k| (single(a) + of_half(b) * of_half(k)).to_bits(), one_nan;
    Xp162fs(1, HALVES): "xp162fs" = |a, b, k| f32::from(a as i16).to_bits(), same;
    Xp162fh(1, HALVES): "xp162fh" = |a, b, k| to_half(f32::from(a as i16)), same;
}

#[inline(always)]
fn single(raw: u32) -> f32 {
    f32::from_bits(raw)
}

#[inline(always)]
fn same(raw: u32) -> u32 {
    raw
}

#[inline(always)]
fn low(raw: u32) -> u32 {
    raw & 0xffff
}

/// With the one NaN.
#[inline(always)]
fn one_nan(raw: u32) -> u32 {
    if single(raw).is_nan() { 0x7fc0_0000 } else { raw }
}

/// The larger one: a number wins over NaN, +0 over -0.
#[inline(always)]
fn larger(a: u32, b: u32) -> u32 {
    let (x, y) = (single(a), single(b));
    let tie = if x == y { a & b } else { b };
    if x > y || y.is_nan() { a } else { tie }
}

/// The value of a half, which is exact. A subnormal is scaled up by a multiplication.
#[inline(always)]
fn of_half(raw: u32) -> f32 {
    let shifted = (raw & 0x7fff) << 13;
    let scaled = (single(shifted) * single(0x7780_0000)).to_bits();
    let special = if shifted >= 0x0f80_0000 { shifted | 0x7f80_0000 } else { scaled };
    single(special | (raw & 0x8000) << 16)
}

/// The nearest half, ties to even. Halves of normal size are rounded by adding just below half of
/// their last place, subnormals by the addition of 1/2, whose last place is theirs.
#[inline(always)]
fn to_half(value: f32) -> u32 {
    let bits = value.to_bits();
    let size = bits & 0x7fff_ffff;
    let normal = size.wrapping_add(0xc800_0fff).wrapping_add(size >> 13 & 1) >> 13;
    let small = (single(size) + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let finite = if size < 0x3880_0000 { small } else { normal };
    let all = if size >= 0x4780_0000 { 0x7c00 } else { finite };
    let signed = all | bits >> 16 & 0x8000;
    if size > 0x7f80_0000 { 0x7e00 } else { signed }
}

/// `a + b * k` with one rounding.
#[inline(always)]
pub(super) fn multiply_add<const FUSED: bool>(a: u32, b: u32, k: u32) -> u32 {
    if FUSED { single(b).mul_add(single(k), single(a)).to_bits() } else { unfused(a, b, k) }
}

/// Without a fused instruction: the product is exact in double precision, the sum is rounded to
/// odd there (its error from the two-sum of Knuth decides), and rounding an odd double to single
/// rounds right (Boldo and Melquiond, 2008).
#[inline(always)]
fn unfused(a: u32, b: u32, k: u32) -> u32 {
    let product = f64::from(single(b)) * f64::from(single(k));
    let addend = f64::from(single(a));
    let sum = product + addend;
    let shadow = sum - product;
    let error = (product - (sum - shadow)) + (addend - shadow);
    let bits = sum.to_bits();
    let inexact = error != 0.0 && sum.is_finite() && bits & 1 == 0;
    let away = (error > 0.0) == (sum > 0.0);
    let odd = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    (f64::from_bits(if inexact { odd } else { bits }) as f32).to_bits()
}
