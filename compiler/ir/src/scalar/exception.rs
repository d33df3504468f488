//! Exceptions of float operations: what the machine notices beside the result.
//!
//! As IEEE 754 defines them; a result is tiny before rounding, and underflow is a tiny result
//! that is inexact too. Doubles, which no PE has, raise nothing. Invariants: no panic for any
//! input; nothing depends on the host.

use super::float::{self, to_f64};
use super::{BinaryOp, Convert, UnaryOp};
use crate::ty::Ty;

/// An exception, by its bit in the mask register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exception {
    /// No result: of no number, or of infinities; an integer that does not fit.
    Invalid,
    /// A finite number divided by zero.
    DivideByZero,
    /// Too large for the type.
    Overflow,
    /// Too small for the type's normal numbers, and not exact.
    Underflow,
    /// Rounded.
    Inexact,
}

impl Exception {
    /// All, the first of which is reported of several.
    pub const ALL: [Exception; 5] = [
        Exception::Invalid,
        Exception::DivideByZero,
        Exception::Overflow,
        Exception::Underflow,
        Exception::Inexact,
    ];

    /// Its bit.
    pub fn bit(self) -> u8 {
        match self {
            Exception::Underflow => 0x08,
            Exception::Overflow => 0x10,
            Exception::Inexact => 0x20,
            Exception::Invalid => 0x40,
            Exception::DivideByZero => 0x80,
        }
    }

    /// The name that programs use.
    pub fn name(self) -> &'static str {
        match self {
            Exception::Invalid => "FP_INVALID",
            Exception::DivideByZero => "FP_DIV_BY_0",
            Exception::Overflow => "FP_OVERFLOW",
            Exception::Underflow => "FP_UNDERFLOW",
            Exception::Inexact => "FP_INEXACT",
        }
    }

    /// What it means, for messages.
    pub fn meaning(self) -> &'static str {
        match self {
            Exception::Invalid => "the result is not a number, or no integer of the type",
            Exception::DivideByZero => "a number was divided by zero",
            Exception::Overflow => "the result is too large for its type",
            Exception::Underflow => "the result is too small for its type",
            Exception::Inexact => "the result was rounded",
        }
    }

    /// The one to report of a set.
    pub fn first(raised: u8) -> Option<Exception> {
        Exception::ALL.into_iter().find(|exception| raised & exception.bit() != 0)
    }
}

const INVALID: u8 = 0x40;
const DIVIDE_BY_ZERO: u8 = 0x80;
const OVERFLOW: u8 = 0x10;
const UNDERFLOW: u8 = 0x08;
const INEXACT: u8 = 0x20;

/// Bits of what [`super::unary`] raises.
pub fn unary(op: UnaryOp, ty: Ty, src: u64) -> u8 {
    match op {
        UnaryOp::Sqrt if watched(ty) => root(ty, ty.mask(src)),
        UnaryOp::Sqrt
        | UnaryOp::Neg
        | UnaryOp::BitNot
        | UnaryOp::Not
        | UnaryOp::Abs
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Clz
        | UnaryOp::Ctz
        | UnaryOp::Popcnt => 0,
    }
}

/// Bits of what [`super::binary`] raises.
pub fn binary(op: BinaryOp, ty: Ty, lhs: u64, rhs: u64) -> u8 {
    if !watched(ty) {
        return 0;
    }
    let (lhs, rhs) = (ty.mask(lhs), ty.mask(rhs));
    let signaling = if is_signaling(ty, lhs) || is_signaling(ty, rhs) { INVALID } else { 0 };
    let (a, b) = (to_f64(ty, lhs), to_f64(ty, rhs));
    signaling
        | match op {
            BinaryOp::Add => sum(ty, a, b),
            BinaryOp::Sub => sum(ty, a, -b),
            BinaryOp::Mul => product(ty, a, b),
            BinaryOp::Div => quotient(ty, a, b),
            BinaryOp::LtF | BinaryOp::LeF if a.is_nan() || b.is_nan() => INVALID,
            BinaryOp::LtF
            | BinaryOp::LeF
            | BinaryOp::Max
            | BinaryOp::Min
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::DivS
            | BinaryOp::DivU
            | BinaryOp::RemS
            | BinaryOp::RemU
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::ShrS
            | BinaryOp::ShrU
            | BinaryOp::LtS
            | BinaryOp::LtU
            | BinaryOp::LeS
            | BinaryOp::LeU => 0,
        }
}

/// Bits of what [`super::convert`] raises.
pub fn convert(kind: Convert, from: Ty, to: Ty, src: u64) -> u8 {
    let src = from.mask(src);
    match kind {
        Convert::FloatFromSigned if watched(to) => {
            integer(to, i128::from(super::signed(from, src)))
        }
        Convert::FloatFromUnsigned if watched(to) => integer(to, i128::from(src)),
        Convert::SignedFromFloat if watched(from) => {
            let most = (1i128 << (to.bits() - 1)) - 1;
            to_integer(to_f64(from, src).trunc(), to_f64(from, src), -most - 1, most)
        }
        Convert::UnsignedFromFloat if watched(from) => {
            to_integer(to_f64(from, src).trunc(), to_f64(from, src), 0, (1i128 << to.bits()) - 1)
        }
        Convert::FloatFromFloat if watched(from) && watched(to) => {
            let signaling = if is_signaling(from, src) { INVALID } else { 0 };
            signaling | rounded(to, to_f64(from, src), false)
        }
        Convert::Truncate
        | Convert::SignExtend
        | Convert::ZeroExtend
        | Convert::Bitcast
        | Convert::FloatFromSigned
        | Convert::FloatFromUnsigned
        | Convert::SignedFromFloat
        | Convert::UnsignedFromFloat
        | Convert::FloatFromFloat
        | Convert::Bool => 0,
    }
}

/// Bits of `a + b` of numbers of two types, `to` the wider.
pub fn mixed_sum(to: Ty, (a, a_ty): (u64, Ty), (b, b_ty): (u64, Ty)) -> u8 {
    signaling_of(&[(a, a_ty), (b, b_ty)]) | sum(to, to_f64(a_ty, a), to_f64(b_ty, b))
}

/// Bits of `a + b * k` with one rounding, `a` of type `to`, the others of type `ty`.
pub fn mul_add(to: Ty, ty: Ty, a: u64, b: u64, k: u64) -> u8 {
    let signaling = signaling_of(&[(a, to), (b, ty), (k, ty)]);
    let (a, b, k) = (to_f64(to, a), to_f64(ty, b), to_f64(ty, k));
    if [a, b, k].iter().any(|value| value.is_nan()) {
        return signaling;
    }
    // Exact: significands of 24 bits.
    let product = b * k;
    if product.is_nan() { INVALID } else { signaling | sum(to, a, product) }
}

/// Bits of a number times `2^exponent`.
pub fn scale(ty: Ty, src: u64, exponent: i16) -> u8 {
    let signaling = signaling_of(&[(src, ty)]);
    let value = to_f64(ty, src);
    if !value.is_finite() || value == 0.0 {
        return signaling;
    }
    signaling | rounded(ty, float::times_power_of_two(value, exponent), false)
}

/// Bits of a number made an integer of 16 bits, to nearest.
pub fn nearest_i16(ty: Ty, src: u64) -> u8 {
    let value = to_f64(ty, src);
    to_integer(value.round_ties_even(), value, i128::from(i16::MIN), i128::from(i16::MAX))
}

fn watched(ty: Ty) -> bool {
    ty.is_float() && ty != Ty::F64
}

fn is_signaling(ty: Ty, raw: u64) -> bool {
    let quiet = match ty {
        Ty::F16 => 0x0200,
        Ty::Bf16 => 0x0040,
        Ty::F32 => 0x0040_0000,
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::F64 => return false,
    };
    to_f64(ty, raw).is_nan() && raw & quiet == 0
}

fn signaling_of(operands: &[(u64, Ty)]) -> u8 {
    if operands.iter().any(|&(raw, ty)| is_signaling(ty, raw)) { INVALID } else { 0 }
}

/// Smallest normal number.
fn least_normal(ty: Ty) -> f64 {
    match ty {
        Ty::F16 => 6.103515625e-5,
        Ty::F32 | Ty::Bf16 => f64::from(f32::MIN_POSITIVE),
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::F64 => 0.0,
    }
}

/// Of an exact result, or one that is `off` it by less than a double's rounding.
fn rounded(to: Ty, exact: f64, off: bool) -> u8 {
    if !exact.is_finite() {
        return 0;
    }
    let got = to_f64(to, float::round(to, exact));
    if got.is_infinite() {
        return OVERFLOW | INEXACT;
    }
    match got != exact || off {
        true if exact != 0.0 && exact.abs() < least_normal(to) => UNDERFLOW | INEXACT,
        true => INEXACT,
        false => 0,
    }
}

fn sum(to: Ty, a: f64, b: f64) -> u8 {
    if a.is_nan() || b.is_nan() {
        return 0;
    }
    let total = a + b;
    if total.is_nan() {
        return INVALID;
    }
    if total.is_infinite() {
        return 0;
    }
    // What the double lost: T. J. Dekker 1971, "A floating-point technique for extending the
    // available precision".
    let second = total - a;
    let lost = (a - (total - second)) + (b - second);
    rounded(to, total, lost != 0.0)
}

fn product(ty: Ty, a: f64, b: f64) -> u8 {
    if a.is_nan() || b.is_nan() {
        return 0;
    }
    let exact = a * b;
    if exact.is_nan() { INVALID } else { rounded(ty, exact, false) }
}

fn quotient(ty: Ty, a: f64, b: f64) -> u8 {
    if a.is_nan() || b.is_nan() {
        return 0;
    }
    let near = a / b;
    if near.is_nan() {
        return INVALID;
    }
    if b == 0.0 {
        return if a.is_finite() { DIVIDE_BY_ZERO } else { 0 };
    }
    if a.is_infinite() || b.is_infinite() {
        return 0;
    }
    // The product of two significands of 24 bits is exact.
    let got = to_f64(ty, float::round(ty, near));
    rounded(ty, near, got * b != a)
}

fn root(ty: Ty, raw: u64) -> u8 {
    let value = to_f64(ty, raw);
    if value < 0.0 || is_signaling(ty, raw) {
        return INVALID;
    }
    let got = to_f64(ty, super::unary(UnaryOp::Sqrt, ty, raw));
    if !value.is_finite() || got * got == value { 0 } else { INEXACT }
}

fn integer(to: Ty, value: i128) -> u8 {
    let near = float::from_integer(to, value);
    let got = to_f64(to, near);
    if got.is_infinite() {
        OVERFLOW | INEXACT
    } else if got as i128 == value {
        0
    } else {
        INEXACT
    }
}

fn to_integer(whole: f64, value: f64, least: i128, most: i128) -> u8 {
    // `as` saturates, far beyond the limits here.
    if value.is_nan() || (whole as i128) < least || (whole as i128) > most {
        INVALID
    } else if whole != value {
        INEXACT
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(op: BinaryOp, a: f32, b: f32) -> u8 {
        binary(op, Ty::F32, u64::from(a.to_bits()), u64::from(b.to_bits()))
    }

    fn half(op: BinaryOp, a: u64, b: u64) -> u8 {
        binary(op, Ty::F16, a, b)
    }

    #[test]
    fn quotients() {
        assert_eq!(single(BinaryOp::Div, 42.0, 0.0), DIVIDE_BY_ZERO);
        assert_eq!(single(BinaryOp::Div, 0.0, 0.0), INVALID);
        assert_eq!(single(BinaryOp::Div, f32::INFINITY, 0.0), 0);
        assert_eq!(single(BinaryOp::Div, 1.0, 4.0), 0);
        assert_eq!(single(BinaryOp::Div, 1.0, 3.0), INEXACT);
        assert_eq!(single(BinaryOp::Div, 1.0e38, 1.0e-3), OVERFLOW | INEXACT);
        assert_eq!(single(BinaryOp::Div, 3.0e-38, 7.1), UNDERFLOW | INEXACT);
        assert_eq!(single(BinaryOp::Div, f32::MIN_POSITIVE, 2.0), 0);
    }

    #[test]
    fn sums_and_products() {
        assert_eq!(single(BinaryOp::Add, 1.0, 1.0e-9), INEXACT);
        assert_eq!(single(BinaryOp::Add, 1.0e20, 1.0e-20), INEXACT);
        assert_eq!(single(BinaryOp::Sub, f32::INFINITY, f32::INFINITY), INVALID);
        assert_eq!(single(BinaryOp::Add, f32::MAX, f32::MAX), OVERFLOW | INEXACT);
        assert_eq!(single(BinaryOp::Mul, 1.0e-30, 1.0e-30), UNDERFLOW | INEXACT);
        assert_eq!(single(BinaryOp::Mul, 1.5, 3.0), 0);
        // 65504 + 65504, 2^-14 * 0.5.
        assert_eq!(half(BinaryOp::Add, 0x7bff, 0x7bff), OVERFLOW | INEXACT);
        assert_eq!(half(BinaryOp::Mul, 0x0400, 0x3800), 0);
    }

    #[test]
    fn numbers_that_are_none() {
        let quiet = u64::from(f32::NAN.to_bits());
        let signaling = 0x7f80_0001;
        assert_eq!(binary(BinaryOp::Add, Ty::F32, quiet, quiet), 0);
        assert_eq!(binary(BinaryOp::Add, Ty::F32, signaling, 0), INVALID);
        assert_eq!(binary(BinaryOp::LtF, Ty::F32, quiet, 0), INVALID);
        assert_eq!(binary(BinaryOp::Eq, Ty::F32, quiet, 0), 0);
        assert_eq!(half(BinaryOp::Max, 0x7c01, 0), INVALID);
        assert_eq!(half(BinaryOp::Max, 0x7e00, 0), 0);
        assert_eq!(unary(UnaryOp::Sqrt, Ty::F32, u64::from((-1.0f32).to_bits())), INVALID);
        assert_eq!(unary(UnaryOp::Sqrt, Ty::F32, u64::from(2.0f32.to_bits())), INEXACT);
        assert_eq!(unary(UnaryOp::Sqrt, Ty::F32, u64::from(4.0f32.to_bits())), 0);
    }

    #[test]
    fn conversions() {
        let of = |kind, from, to, raw| convert(kind, from, to, raw);
        let single = |value: f32| u64::from(value.to_bits());
        assert_eq!(of(Convert::SignedFromFloat, Ty::F32, Ty::I16, single(1.5)), INEXACT);
        assert_eq!(of(Convert::SignedFromFloat, Ty::F32, Ty::I16, single(40000.0)), INVALID);
        assert_eq!(of(Convert::SignedFromFloat, Ty::F32, Ty::I16, single(-32768.5)), INEXACT);
        assert_eq!(of(Convert::UnsignedFromFloat, Ty::F32, Ty::I16, single(-1.0)), INVALID);
        assert_eq!(
            of(Convert::FloatFromFloat, Ty::F32, Ty::F16, single(1.0e6)),
            OVERFLOW | INEXACT
        );
        assert_eq!(
            of(Convert::FloatFromFloat, Ty::F32, Ty::F16, single(1.0e-7)),
            UNDERFLOW | INEXACT
        );
        assert_eq!(of(Convert::FloatFromUnsigned, Ty::I32, Ty::F32, 0x0100_0001), INEXACT);
        assert_eq!(of(Convert::FloatFromSigned, Ty::I16, Ty::F32, 0xffff), 0);
        assert_eq!(nearest_i16(Ty::F32, single(32767.5)), INVALID);
        assert_eq!(scale(Ty::F32, single(1.0), 200), OVERFLOW | INEXACT);
        assert_eq!(scale(Ty::F32, single(1.0), -149), 0);
        assert_eq!(scale(Ty::F32, single(1.5), -149), UNDERFLOW | INEXACT);
        assert_eq!(mul_add(Ty::F32, Ty::F16, single(1.0), 0x3c00, 0x3c00), 0);
    }
}
