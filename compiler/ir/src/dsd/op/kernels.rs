//! The kernels: the meaning of each operation on one element, by [`crate::scalar`].
//!
//! Each takes raw elements in the kernel's order, upper bits ignored, and gives a raw element.

use crate::scalar::{self, BinaryOp, Convert, UnaryOp, float};
use crate::ty::Ty;

/// The element unchanged, in its low 16 bits.
pub(super) fn word(src: [u32; 3], _: &mut u32) -> u32 {
    src[0] & 0xffff
}

/// The element unchanged.
pub(super) fn double_word(src: [u32; 3], _: &mut u32) -> u32 {
    src[0]
}

#[inline(always)]
fn binary(op: BinaryOp, ty: Ty, [a, b, _]: [u32; 3]) -> u32 {
    // No row divides integers, so there always is a result.
    scalar::binary(op, ty, u64::from(a), u64::from(b)).unwrap_or(0) as u32
}

#[inline(always)]
fn unary(op: UnaryOp, ty: Ty, [a, _, _]: [u32; 3]) -> u32 {
    scalar::unary(op, ty, u64::from(a)) as u32
}

#[inline(always)]
fn convert(kind: Convert, from: Ty, to: Ty, [a, _, _]: [u32; 3]) -> u32 {
    scalar::convert(kind, from, to, u64::from(a)) as u32
}

macro_rules! kernels {
    ($($name:ident = $call:ident($($arg:expr),*);)*) => {
        $(pub(in crate::dsd::op) fn $name(src: [u32; 3], _: &mut u32) -> u32 {
            $call($($arg,)* src)
        })*
    };
}

kernels! {
    add16 = binary(BinaryOp::Add, Ty::I16);
    sub16 = binary(BinaryOp::Sub, Ty::I16);
    and16 = binary(BinaryOp::And, Ty::I16);
    or16 = binary(BinaryOp::Or, Ty::I16);
    xor16 = binary(BinaryOp::Xor, Ty::I16);
    sar16 = binary(BinaryOp::ShrS, Ty::I16);
    sll16 = binary(BinaryOp::Shl, Ty::I16);
    slr16 = binary(BinaryOp::ShrU, Ty::I16);
    clz = unary(UnaryOp::Clz, Ty::I16);
    ctz = unary(UnaryOp::Ctz, Ty::I16);
    popcnt = unary(UnaryOp::Popcnt, Ty::I16);
    faddh = binary(BinaryOp::Add, Ty::F16);
    fsubh = binary(BinaryOp::Sub, Ty::F16);
    fmulh = binary(BinaryOp::Mul, Ty::F16);
    fmaxh = binary(BinaryOp::Max, Ty::F16);
    fadds = binary(BinaryOp::Add, Ty::F32);
    fsubs = binary(BinaryOp::Sub, Ty::F32);
    fmuls = binary(BinaryOp::Mul, Ty::F32);
    fmaxs = binary(BinaryOp::Max, Ty::F32);
    fabsh = unary(UnaryOp::Abs, Ty::F16);
    fnegh = unary(UnaryOp::Neg, Ty::F16);
    fabss = unary(UnaryOp::Abs, Ty::F32);
    fnegs = unary(UnaryOp::Neg, Ty::F32);
    fmach = mul_add(Ty::F16);
    fmacs = mul_add(Ty::F32);
    fh2s = convert(Convert::FloatFromFloat, Ty::F16, Ty::F32);
    fs2h = convert(Convert::FloatFromFloat, Ty::F32, Ty::F16);
    xp162fh = convert(Convert::FloatFromSigned, Ty::I16, Ty::F16);
    xp162fs = convert(Convert::FloatFromSigned, Ty::I16, Ty::F32);
    fh2xp16 = nearest_integer(Ty::F16);
    fs2xp16 = nearest_integer(Ty::F32);
    fscaleh = scale(Ty::F16);
    fscales = scale(Ty::F32);
    faddhs = add_mixed(Ty::F16);
    fmachs = mul_add_mixed(Ty::F16);
}

/// Kernels on `bf16` in the place of `f16`.
pub(super) mod bf16 {
    use super::*;

    kernels! {
        faddh = binary(BinaryOp::Add, Ty::Bf16);
        fsubh = binary(BinaryOp::Sub, Ty::Bf16);
        fmulh = binary(BinaryOp::Mul, Ty::Bf16);
        fmaxh = binary(BinaryOp::Max, Ty::Bf16);
        fabsh = unary(UnaryOp::Abs, Ty::Bf16);
        fnegh = unary(UnaryOp::Neg, Ty::Bf16);
        fmach = mul_add(Ty::Bf16);
        fh2s = convert(Convert::FloatFromFloat, Ty::Bf16, Ty::F32);
        fs2h = convert(Convert::FloatFromFloat, Ty::F32, Ty::Bf16);
        xp162fh = convert(Convert::FloatFromSigned, Ty::I16, Ty::Bf16);
        fh2xp16 = nearest_integer(Ty::Bf16);
        fscaleh = scale(Ty::Bf16);
        faddhs = add_mixed(Ty::Bf16);
        fmachs = mul_add_mixed(Ty::Bf16);
    }
}

/// Sum with the carry out of the element before.
pub(super) fn addc16([a, b, _]: [u32; 3], carry: &mut u32) -> u32 {
    let sum = (a & 0xffff) + (b & 0xffff) + (*carry & 1);
    *carry = sum >> 16;
    sum & 0xffff
}

/// `a + b * k` with one rounding.
#[inline(always)]
fn mul_add(ty: Ty, src: [u32; 3]) -> u32 {
    let [a, b, k] = src.map(u64::from);
    scalar::fma(ty, b, k, a) as u32
}

/// Single plus half.
fn add_mixed(half: Ty, [wide, narrow, _]: [u32; 3]) -> u32 {
    let narrow = float::to_f64(half, u64::from(narrow)) as f32;
    float::f32_bits(f32::from_bits(wide) + narrow)
}

/// Single plus the product of two halves, with one rounding.
#[inline(always)]
fn mul_add_mixed(half: Ty, [wide, b, k]: [u32; 3]) -> u32 {
    float::add_product(half, wide, u64::from(b), u64::from(k))
}

/// To the nearest integer, ties to even, saturating; NaN gives 0.
fn nearest_integer(ty: Ty, [a, _, _]: [u32; 3]) -> u32 {
    let value = float::to_f64(ty, u64::from(a)).round_ties_even();
    scalar::convert(Convert::SignedFromFloat, Ty::F64, Ty::I16, value.to_bits()) as u32
}

/// Times a power of two, with one rounding.
fn scale(ty: Ty, [a, exponent, _]: [u32; 3]) -> u32 {
    scalar::scale(ty, u64::from(a), exponent as u16 as i16) as u32
}
