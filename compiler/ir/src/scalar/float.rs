//! Float arithmetic on raw bits: each result is rounded once, to nearest even, and a NaN result
//! is the canonical one. Subnormals are kept.
//!
//! Half precision is computed in doubles and rounded once. That is exact: sums and products of
//! halves are exact in a double, and a quotient or square root of halves is either a midpoint of
//! two halves exactly or further from it (relative 2^-23) than a double's rounding moves it. Of the
//! wider range of `bf16` sums may be rounded in doubles: a double has more than twice as many bits, so
//! the second rounding gives what one would.

use half::f16;

use super::{BinaryOp, UnaryOp};
use crate::ty::Ty;

/// The canonical NaN of a float type (0 for integers).
#[inline]
pub fn canonical_nan(ty: Ty) -> u64 {
    match ty {
        Ty::F16 => 0x7e00,
        Ty::Bf16 => 0x7fc0,
        Ty::F32 => 0x7fc0_0000,
        Ty::F64 => 0x7ff8_0000_0000_0000,
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => 0,
    }
}

/// Raw bits of a single, canonical if NaN.
#[inline]
pub fn f32_bits(value: f32) -> u32 {
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() }
}

/// The exact value of a float as a double (raw integers: 0).
#[inline]
pub fn to_f64(ty: Ty, raw: u64) -> f64 {
    match ty {
        Ty::F16 => f16::from_bits(raw as u16).to_f64(),
        Ty::Bf16 => f64::from(f32::from_bits((raw as u32 & 0xffff) << 16)),
        Ty::F32 => f64::from(f32::from_bits(raw as u32)),
        Ty::F64 => f64::from_bits(raw),
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => 0.0,
    }
}

/// Rounds a double once to a float type (integer types: 0).
#[inline]
pub fn round(ty: Ty, value: f64) -> u64 {
    if value.is_nan() {
        return canonical_nan(ty);
    }
    match ty {
        Ty::F16 => u64::from(f16_from_f64(value)),
        Ty::Bf16 => u64::from(narrowed(value, 7, 127)),
        Ty::F32 => u64::from((value as f32).to_bits()),
        Ty::F64 => value.to_bits(),
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => 0,
    }
}

/// The half nearest to a double, ties to even. (The `half` crate goes through a single and may
/// round twice.)
pub fn f16_from_f64(value: f64) -> u16 {
    narrowed(value, 10, 15)
}

/// The float of 16 bits nearest to a double, ties to even: so many bits behind the point, and the
/// exponent's bias.
fn narrowed(value: f64, fraction: i32, bias: i32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 48) as u16 & 0x8000;
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    let infinity = ((2 * bias + 1) as u16) << fraction;
    if value.is_nan() {
        return infinity | 1 << (fraction - 1);
    }
    if exponent > bias {
        return sign | infinity;
    }
    let least = 1 - bias;
    if exponent < least - fraction - 1 {
        return sign;
    }
    // Units of the result's last place: those of the least normal number for subnormals. Adding
    // the rounded significand to the exponent field lets a carry move into the next binade.
    let significand = bits & ((1 << 52) - 1) | 1 << 52;
    let normal = exponent >= least;
    let dropped = 52 - fraction + if normal { 0 } else { least - exponent };
    let kept = round_half_even(significand, dropped as u32);
    let base = if normal { ((exponent - least) as u16) << fraction } else { 0 };
    sign | (base + kept as u16)
}

/// `significand / 2^dropped`, nearest, ties to even; `dropped` is 1 to 53.
fn round_half_even(significand: u64, dropped: u32) -> u64 {
    let kept = significand >> dropped;
    let rest = significand & ((1 << dropped) - 1);
    let half = 1 << (dropped - 1);
    kept + u64::from(rest > half || rest == half && kept & 1 == 1)
}

/// A signed integer, rounded once.
#[inline]
pub(super) fn from_signed(to: Ty, value: i64) -> u64 {
    match to {
        Ty::F32 => u64::from((value as f32).to_bits()),
        Ty::F64 => (value as f64).to_bits(),
        Ty::F16 | Ty::Bf16 => from_integer(to, i128::from(value)),
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => 0,
    }
}

/// An unsigned integer, rounded once.
#[inline]
pub(super) fn from_unsigned(to: Ty, value: u64) -> u64 {
    match to {
        Ty::F32 => u64::from((value as f32).to_bits()),
        Ty::F64 => (value as f64).to_bits(),
        Ty::F16 | Ty::Bf16 => from_integer(to, i128::from(value)),
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => 0,
    }
}

/// An integer of any size, rounded once (integer types: 0).
#[inline]
pub fn from_integer(to: Ty, value: i128) -> u64 {
    match to {
        Ty::F32 => u64::from((value as f32).to_bits()),
        Ty::F64 => (value as f64).to_bits(),
        Ty::F16 | Ty::Bf16 => round(to, odd_integer(value)),
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => 0,
    }
}

/// An integer as a double rounded to odd: see [`odd_sum`].
#[inline]
fn odd_integer(value: i128) -> f64 {
    let size = value.unsigned_abs();
    let excess = (u128::BITS - size.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
    if excess == 0 {
        return value as f64;
    }
    let kept = size >> excess;
    let odd = kept | u128::from(kept << excess != size);
    let rounded = (odd << excess) as f64;
    if value < 0 { -rounded } else { rounded }
}

#[inline]
pub(super) fn unary(op: UnaryOp, ty: Ty, src: u64) -> u64 {
    let sign = 1 << (ty.bits() - 1);
    match op {
        UnaryOp::Neg => src ^ sign,
        UnaryOp::Abs => src & !sign,
        UnaryOp::Sqrt if ty == Ty::F32 => u64::from(f32_bits(f32::from_bits(src as u32).sqrt())),
        UnaryOp::Sqrt => round(ty, to_f64(ty, src).sqrt()),
        UnaryOp::Floor => round(ty, to_f64(ty, src).floor()),
        UnaryOp::Ceil => round(ty, to_f64(ty, src).ceil()),
        UnaryOp::BitNot | UnaryOp::Not | UnaryOp::Clz | UnaryOp::Ctz | UnaryOp::Popcnt => 0,
    }
}

#[inline]
pub(super) fn binary(op: BinaryOp, ty: Ty, lhs: u64, rhs: u64) -> u64 {
    if ty == Ty::F32 {
        let (a, b) = (f32::from_bits(lhs as u32), f32::from_bits(rhs as u32));
        match op {
            BinaryOp::Add => return u64::from(f32_bits(a + b)),
            BinaryOp::Sub => return u64::from(f32_bits(a - b)),
            BinaryOp::Mul => return u64::from(f32_bits(a * b)),
            BinaryOp::Div => return u64::from(f32_bits(a / b)),
            // The rest is exact in doubles.
            _ => {}
        }
    }
    in_doubles(op, ty, lhs, rhs)
}

fn in_doubles(op: BinaryOp, ty: Ty, lhs: u64, rhs: u64) -> u64 {
    let (a, b) = (to_f64(ty, lhs), to_f64(ty, rhs));
    match op {
        BinaryOp::Add => round(ty, a + b),
        BinaryOp::Sub => round(ty, a - b),
        BinaryOp::Mul => round(ty, a * b),
        BinaryOp::Div => round(ty, a / b),
        BinaryOp::Max => round(ty, larger(a, b)),
        BinaryOp::Min => round(ty, -larger(-a, -b)),
        BinaryOp::Eq => u64::from(a == b),
        BinaryOp::Ne => u64::from(a != b),
        BinaryOp::LtF => u64::from(a < b),
        BinaryOp::LeF => u64::from(a <= b),
        BinaryOp::DivS
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

/// A number wins over NaN, +0 over -0. (`f64::max` leaves the zeros open.)
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b > a || (a == b && a.is_sign_negative()) { b } else { a }
}

#[inline]
pub(super) fn fma(ty: Ty, a: u64, b: u64, c: u64) -> u64 {
    match ty {
        Ty::F16 | Ty::Bf16 => round(ty, odd_sum(to_f64(ty, a) * to_f64(ty, b), to_f64(ty, c))),
        Ty::F32 => {
            let [a, b, c] = [a, b, c].map(|raw| f32::from_bits(raw as u32));
            u64::from(f32_bits(a.mul_add(b, c)))
        }
        Ty::F64 => {
            let [a, b, c] = [a, b, c].map(f64::from_bits);
            round(ty, a.mul_add(b, c))
        }
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => 0,
    }
}

/// The single `wide + b * k` with one rounding, `b` and `k` of a type of 16 bits.
#[inline]
pub fn add_product(ty: Ty, wide: u32, b: u64, k: u64) -> u32 {
    let product = to_f64(ty, b) * to_f64(ty, k);
    let single = product as f32;
    // Products of halves always are singles, of `bf16` those within their range.
    if ty == Ty::F16 || f64::from(single) == product {
        return f32_bits(f32::from_bits(wide) + single);
    }
    round(Ty::F32, odd_sum(product, to_f64(Ty::F32, u64::from(wide)))) as u32
}

/// The sum of two doubles rounded to odd: exact, or else the neighbor with an odd last bit.
/// Rounding that once more to a type of at least two bits less rounds the exact sum.
fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    if !sum.is_finite() {
        return sum;
    }
    // What the sum lost, exactly (Knuth's two-sum).
    let a_part = sum - b;
    let lost = (a - a_part) + (b - (sum - a_part));
    if lost == 0.0 || sum.to_bits() & 1 == 1 {
        sum
    } else if lost > 0.0 {
        sum.next_up()
    } else {
        sum.next_down()
    }
}

#[inline]
pub(super) fn scale(ty: Ty, src: u64, exponent: i16) -> u64 {
    let value = to_f64(ty, src);
    if ty == Ty::F64 {
        return round(ty, scale_double(value, i32::from(exponent)));
    }
    round(ty, times_power_of_two(value, exponent))
}

/// A single times `2^exponent`, exactly; beyond 400 either way as for 400, where every single is
/// out of range.
#[inline]
pub(super) fn times_power_of_two(value: f64, exponent: i16) -> f64 {
    value * power_of_two(i32::from(exponent).clamp(-400, 400))
}

/// `value * 2^exponent` with one rounding.
fn scale_double(value: f64, exponent: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Normalize first, then at most one step may be inexact.
    let (value, shift) =
        if value.abs() < f64::MIN_POSITIVE { (value * power_of_two(64), -64) } else { (value, 0) };
    let own = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
    let significand = value * power_of_two(-(own / 2)) * power_of_two(-(own - own / 2));
    let total = (own + shift + exponent).clamp(-1200, 1200);
    if total > 1023 {
        return significand * power_of_two(1023) * 2.0;
    }
    if total >= -1022 {
        return significand * power_of_two(total);
    }
    significand * power_of_two(total + 200) * power_of_two(-200)
}

/// `2^exponent` for -1022 to 1023.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}
