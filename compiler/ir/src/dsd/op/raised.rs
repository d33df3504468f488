//! What an element of each operation raises, by [`crate::scalar::exception`].
//!
//! Each takes raw elements in the kernel's order, as the kernel does.

use crate::scalar::exception::{binary, convert, mixed_sum, mul_add, nearest_i16, scale};
use crate::scalar::{BinaryOp, Convert};
use crate::ty::Ty::{Bf16, F16, F32, I16};

/// Operations that raise nothing.
pub(super) fn nothing(_: [u32; 3]) -> u8 {
    0
}

macro_rules! raised {
    ($($name:ident = |$a:ident, $b:ident, $k:ident| $bits:expr;)*) => {
        $(pub(in crate::dsd::op) fn $name(sources: [u32; 3]) -> u8 {
            let [$a, $b, $k] = sources.map(u64::from);
            $bits
        })*
    };
}

raised! {
    faddh = |a, b, _k| binary(BinaryOp::Add, F16, a, b);
    fadds = |a, b, _k| binary(BinaryOp::Add, F32, a, b);
    faddhs = |a, b, _k| mixed_sum(F32, (a, F32), (F16.mask(b), F16));
    fsubh = |a, b, _k| binary(BinaryOp::Sub, F16, a, b);
    fsubs = |a, b, _k| binary(BinaryOp::Sub, F32, a, b);
    fmulh = |a, b, _k| binary(BinaryOp::Mul, F16, a, b);
    fmuls = |a, b, _k| binary(BinaryOp::Mul, F32, a, b);
    fmaxh = |a, b, _k| binary(BinaryOp::Max, F16, a, b);
    fmaxs = |a, b, _k| binary(BinaryOp::Max, F32, a, b);
    fmach = |a, b, k| mul_add(F16, F16, F16.mask(a), F16.mask(b), F16.mask(k));
    fmacs = |a, b, k| mul_add(F32, F32, a, b, k);
    fmachs = |a, b, k| mul_add(F32, F16, a, F16.mask(b), F16.mask(k));
    fh2s = |a, _b, _k| convert(Convert::FloatFromFloat, F16, F32, a);
    fs2h = |a, _b, _k| convert(Convert::FloatFromFloat, F32, F16, a);
    fh2xp16 = |a, _b, _k| nearest_i16(F16, F16.mask(a));
    fs2xp16 = |a, _b, _k| nearest_i16(F32, a);
    xp162fh = |a, _b, _k| convert(Convert::FloatFromSigned, I16, F16, a);
    xp162fs = |a, _b, _k| convert(Convert::FloatFromSigned, I16, F32, a);
    fscaleh = |a, b, _k| scale(F16, F16.mask(a), b as u16 as i16);
    fscales = |a, b, _k| scale(F32, a, b as u16 as i16);
}

/// Of operations on `bf16` in the place of `f16`.
pub(super) mod bf16 {
    use super::*;

    raised! {
        faddh = |a, b, _k| binary(BinaryOp::Add, Bf16, a, b);
        faddhs = |a, b, _k| mixed_sum(F32, (a, F32), (Bf16.mask(b), Bf16));
        fsubh = |a, b, _k| binary(BinaryOp::Sub, Bf16, a, b);
        fmulh = |a, b, _k| binary(BinaryOp::Mul, Bf16, a, b);
        fmaxh = |a, b, _k| binary(BinaryOp::Max, Bf16, a, b);
        fmach = |a, b, k| mul_add(Bf16, Bf16, Bf16.mask(a), Bf16.mask(b), Bf16.mask(k));
        fmachs = |a, b, k| mul_add(F32, Bf16, a, Bf16.mask(b), Bf16.mask(k));
        fh2s = |a, _b, _k| convert(Convert::FloatFromFloat, Bf16, F32, a);
        fs2h = |a, _b, _k| convert(Convert::FloatFromFloat, F32, Bf16, a);
        fh2xp16 = |a, _b, _k| nearest_i16(Bf16, Bf16.mask(a));
        xp162fh = |a, _b, _k| convert(Convert::FloatFromSigned, I16, Bf16, a);
        fscaleh = |a, b, _k| scale(Bf16, Bf16.mask(a), b as u16 as i16);
    }
}
