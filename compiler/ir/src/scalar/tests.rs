//! Integers against wide integers; halves against exact rationals.

#![expect(clippy::disallowed_methods, reason = "powers of two are exact everywhere")]

use half::f16;
use proptest::prelude::*;

use super::float::{canonical_nan, f16_from_f64, to_f64};
use super::*;

const INTEGERS: [Ty; 4] = [Ty::I8, Ty::I16, Ty::I32, Ty::I64];
const FLOATS: [Ty; 4] = [Ty::F16, Ty::F32, Ty::F64, Ty::Bf16];

/// Raw bits with the interesting ones frequent.
fn raw() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        any::<u64>().prop_map(|raw| raw & 0xff),
        any::<u64>().prop_map(|raw| !(raw & 0xff)),
        Just(0),
        Just(0x8000),
        Just(0x8000_0000),
        Just(1 << 63),
        any::<f32>().prop_map(|value| u64::from(value.to_bits())),
        any::<f64>().prop_map(f64::to_bits),
    ]
}

/// Integers, those close to a middle between two floats frequent.
fn integer() -> impl Strategy<Value = i128> {
    let near = (0u32..12, 0i128..4096, 0u32..115, -3i128..4)
        .prop_map(|(bits, high, shift, off)| ((high >> bits) << shift) + off);
    let signed = |value: i128| prop_oneof![Just(value), Just(-value)];
    prop_oneof![
        near.prop_flat_map(signed),
        any::<i64>().prop_map(i128::from),
        any::<u64>().prop_map(i128::from),
        any::<i128>().prop_map(|value| value / 2),
        -70_000i128..70_000,
    ]
}

/// The float of 16 bits nearest to an integer, ties to even, by search.
fn nearest_of_16_bits(to: Ty, value: i128) -> u64 {
    let infinity = if to == Ty::F16 { 0x7c00u64 } else { 0x7f80 };
    let size = value.unsigned_abs();
    // Twice the values of floats: exact from 1/2 on. What would be the one behind the greatest stands for infinity.
    let twice = |raw: u64| {
        let value = if raw == infinity {
            let (last, before) = (to_f64(to, raw - 1), to_f64(to, raw - 2));
            last + (last - before)
        } else {
            to_f64(to, raw)
        };
        (value * 2.0) as u128
    };
    let all: Vec<u64> = (0..=infinity).collect();
    let above = all.partition_point(|&raw| twice(raw) < size * 2) as u64;
    let found = match above {
        0 => 0,
        above if above > infinity => infinity,
        above => {
            let (up, down) = (twice(above) - size * 2, size * 2 - twice(above - 1));
            if up < down || up == down && above & 1 == 0 { above } else { above - 1 }
        }
    };
    if value < 0 { found | 0x8000 } else { found }
}

fn wide(ty: Ty, raw: u64) -> (i128, i128) {
    (i128::from(signed(ty, raw)), i128::from(raw))
}

/// The model of integer operations; `None` where there is no result or no meaning.
fn model(op: BinaryOp, ty: Ty, lhs: u64, rhs: u64) -> Option<i128> {
    let ((ls, lu), (rs, ru)) = (wide(ty, lhs), wide(ty, rhs));
    let width = i128::from(ty.bits());
    Some(match op {
        BinaryOp::Add => lu + ru,
        BinaryOp::Sub => lu - ru,
        BinaryOp::Mul => ((lu as u128).wrapping_mul(ru as u128)) as i128,
        BinaryOp::DivS => ls.checked_div(rs)?,
        BinaryOp::DivU => lu.checked_div(ru)?,
        BinaryOp::RemS => ls.checked_rem(rs)?,
        BinaryOp::RemU => lu.checked_rem(ru)?,
        BinaryOp::And => lu & ru,
        BinaryOp::Or => lu | ru,
        BinaryOp::Xor => lu ^ ru,
        BinaryOp::Shl => {
            if ru >= width {
                0
            } else {
                lu << ru
            }
        }
        BinaryOp::ShrS => ls >> ru.min(100),
        BinaryOp::ShrU => lu >> ru.min(100),
        BinaryOp::Eq => i128::from(lu == ru),
        BinaryOp::Ne => i128::from(lu != ru),
        BinaryOp::LtS => i128::from(ls < rs),
        BinaryOp::LtU => i128::from(lu < ru),
        BinaryOp::LeS => i128::from(ls <= rs),
        BinaryOp::LeU => i128::from(lu <= ru),
        BinaryOp::Div | BinaryOp::Max | BinaryOp::Min | BinaryOp::LtF | BinaryOp::LeF => {
            return None;
        }
    })
}

/// A finite half in units of 2^-24.
fn units(bits: u16) -> i128 {
    let magnitude = match bits >> 10 & 0x1f {
        0 => i128::from(bits & 0x3ff),
        exponent => i128::from(bits & 0x3ff | 0x400) << (exponent - 1),
    };
    if bits & 0x8000 != 0 { -magnitude } else { magnitude }
}

/// The half nearest to `num / den` units, ties to even; zero is +0.
fn nearest(num: i128, den: i128) -> u16 {
    let sign = if (num < 0) != (den < 0) && num != 0 { 0x8000 } else { 0 };
    let (num, den) = (num.abs(), den.abs());
    let floor = (0u16..0x7c00).collect::<Vec<_>>().partition_point(|&bits| units(bits) * den <= num)
        as u16
        - 1;
    // Infinity stands where the next number would be.
    let next = if floor == 0x7bff { 1 << 40 } else { units(floor + 1) };
    let (below, above) = (num - units(floor) * den, next * den - num);
    let up = above < below || above == below && floor & 1 == 1;
    sign | (floor + u16::from(up))
}

fn finite_half() -> impl Strategy<Value = u16> {
    any::<u16>().prop_filter("finite", |bits| bits & 0x7c00 != 0x7c00)
}

proptest! {
    #[test]
    fn integers_match_wide_arithmetic(lhs in raw(), rhs in raw()) {
        for ty in INTEGERS {
            let (l, r) = (ty.mask(lhs), ty.mask(rhs));
            for op in BinaryOp::ALL {
                match (binary(op, ty, l, r), model(op, ty, l, r)) {
                    (Ok(got), Some(want)) => prop_assert_eq!(got, ty.mask(want as u64), "{:?} {}", op, ty),
                    (Err(_), None) => {}
                    (Ok(0), None) => {}
                    (got, want) => prop_assert!(false, "{op:?} {ty}: {got:?} {want:?}"),
                }
            }
        }
    }

    #[test]
    fn integer_conversions_match_wide_arithmetic(src in raw()) {
        for from in INTEGERS {
            let (s, u) = wide(from, from.mask(src));
            for to in INTEGERS {
                prop_assert_eq!(convert(Convert::SignExtend, from, to, src), to.mask(s as u64));
                prop_assert_eq!(convert(Convert::ZeroExtend, from, to, src), to.mask(u as u64));
            }
            prop_assert_eq!(convert(Convert::FloatFromSigned, from, Ty::F64, src), (s as f64).to_bits());
            prop_assert_eq!(convert(Convert::FloatFromUnsigned, from, Ty::F32, src), u64::from((u as f32).to_bits()));
            if s.abs() < 65520 {
                prop_assert_eq!(to_f64(Ty::F16, convert(Convert::FloatFromSigned, from, Ty::F16, src)),
                    to_f64(Ty::F16, u64::from(nearest(s << 24, 1))));
            }
        }
    }

    /// The nearest of all floats of 16 bits, told by distances that are exact.
    #[test]
    fn integers_become_the_nearest_float_of_16_bits(value in integer(), to in prop_oneof![Just(Ty::F16), Just(Ty::Bf16)]) {
        let got = float::from_integer(to, value);
        prop_assert_eq!(got, nearest_of_16_bits(to, value), "{} {}", value, to);
        if let Ok(signed) = i64::try_from(value) {
            prop_assert_eq!(convert(Convert::FloatFromSigned, Ty::I64, to, signed as u64), got);
        }
        if let Ok(unsigned) = u64::try_from(value) {
            prop_assert_eq!(convert(Convert::FloatFromUnsigned, Ty::I64, to, unsigned), got);
        }
    }

    #[test]
    fn float_to_integer_goes_towards_zero_and_saturates(value in any::<f64>()) {
        for to in INTEGERS {
            let (low, high) = (-(1i128 << (to.bits() - 1)), (1i128 << (to.bits() - 1)) - 1);
            let exact = value as i128;
            prop_assert_eq!(convert(Convert::SignedFromFloat, Ty::F64, to, value.to_bits()), to.mask(exact.clamp(low, high) as u64));
            prop_assert_eq!(convert(Convert::UnsignedFromFloat, Ty::F64, to, value.to_bits()), exact.clamp(0, (1i128 << to.bits()) - 1) as u64);
        }
    }

    #[test]
    fn halves_are_rounded_once(a in finite_half(), b in finite_half(), c in finite_half()) {
        let (x, y, z) = (units(a), units(b), units(c));
        let [a, b, c] = [a, b, c].map(u64::from);
        let got = |op| binary(op, Ty::F16, a, b).unwrap() as u16;
        // Exact zeros have signs that rationals do not; they are tested below.
        if x + y != 0 { prop_assert_eq!(got(BinaryOp::Add), nearest(x + y, 1)); }
        if x != y { prop_assert_eq!(got(BinaryOp::Sub), nearest(x - y, 1)); }
        if x != 0 && y != 0 {
            let sign = ((a ^ b) & 0x8000) as u16;
            prop_assert_eq!(got(BinaryOp::Mul), nearest(x * y, 1 << 24) | sign);
            prop_assert_eq!(got(BinaryOp::Div), nearest(x << 24, y) | sign);
        }
        let exact = x * y + (z << 24);
        if exact != 0 {
            let sign = if exact < 0 { 0x8000 } else { 0 };
            prop_assert_eq!(fma(Ty::F16, a, b, c) as u16, nearest(exact, 1 << 24) | sign);
        }
    }

    #[test]
    fn doubles_become_the_nearest_half(significand in 1u64 << 52..1 << 53, exponent in -30i32..18, negative: bool, tail in 0u64..3) {
        // Near midpoints too: keep 12 leading bits and a tail of -1, 0, 1.
        for significand in [significand, ((significand >> 41) << 41) + tail - 1] {
            let value = significand as f64 * 2f64.powi(exponent - 52);
            let (num, den) = (i128::from(significand) << 20, 1i128 << (20 + 28 - exponent));
            let want = nearest(num, den) | if negative { 0x8000 } else { 0 };
            prop_assert_eq!(f16_from_f64(if negative { -value } else { value }), want);
        }
    }

    #[test]
    fn fused_multiply_add_of_doubles_and_singles(a: f32, b: f32, c: f32) {
        let raw = [a, b, c].map(|value| u64::from(value.to_bits()));
        let got = f32::from_bits(fma(Ty::F32, raw[0], raw[1], raw[2]) as u32);
        prop_assert!(got == a.mul_add(b, c) || got.is_nan());
        let [a, b, c] = [a, b, c].map(f64::from);
        let exact = a * b;
        let wide = fma(Ty::F64, a.to_bits(), b.to_bits(), c.to_bits());
        // The product of singles is exact in a double, so one rounding remains.
        prop_assert!(f64::from_bits(wide) == exact + c || (exact + c).is_nan());
    }

    #[test]
    fn everything_is_total_and_canonical(a in raw(), b in raw(), exponent: i16) {
        for ty in Ty::ALL {
            for op in UnaryOp::ALL {
                let got = unary(op, ty, a);
                prop_assert_eq!(got, ty.mask(got));
            }
            for op in BinaryOp::ALL {
                if let Ok(got) = binary(op, ty, a, b) {
                    prop_assert_eq!(got, ty.mask(got));
                    if ty.is_float() && to_f64(ty, got).is_nan() && !op.is_comparison() {
                        prop_assert_eq!(got, canonical_nan(ty), "{:?} {}", op, ty);
                    }
                }
            }
            for got in [fma(ty, a, b, a), scale(ty, a, exponent)] {
                prop_assert_eq!(got, ty.mask(got));
                prop_assert!(!ty.is_float() || !to_f64(ty, got).is_nan() || got == canonical_nan(ty));
            }
            for to in Ty::ALL {
                for kind in Convert::ALL {
                    let got = convert(kind, ty, to, a);
                    prop_assert_eq!(got, to.mask(got));
                }
            }
        }
    }

    #[test]
    fn moves_keep_the_bits_of_a_nan(raw in any::<u16>()) {
        let raw = u64::from(raw | 0x7c01);
        prop_assert_eq!(unary(UnaryOp::Neg, Ty::F16, raw), raw ^ 0x8000);
        prop_assert_eq!(unary(UnaryOp::Abs, Ty::F16, raw), raw & 0x7fff);
        prop_assert_eq!(convert(Convert::Bitcast, Ty::F16, Ty::I16, raw), raw);
    }

    /// The upper half of a single, rounded by its lower half.
    #[test]
    fn bf16_is_the_nearest_upper_half_of_a_single(bits: u32) {
        let value = f32::from_bits(bits);
        let got = convert(Convert::FloatFromFloat, Ty::F32, Ty::Bf16, u64::from(bits)) as u32;
        if value.is_nan() {
            prop_assert_eq!(got, 0x7fc0);
        } else {
            prop_assert_eq!(got, (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        }
        prop_assert_eq!(convert(Convert::FloatFromFloat, Ty::Bf16, Ty::F32, u64::from(got)), u64::from(got << 16));
    }

    /// Sums and fused products of numbers within 2^40 of each other are exact in integers.
    #[test]
    fn bf16_arithmetic_is_rounded_once(a in -255i64..256, b in -255i64..256, c in -255i64..256, shift in 0u32..40) {
        let float = |value: i64, shift: u32| float::round(Ty::Bf16, value as f64 * 2f64.powi(shift as i32));
        let nearest = |exact: i128| float::from_signed(Ty::F64, exact as i64);
        let (small, wide) = (float(a, 0), float(b, shift));
        let sum = i128::from(a) + (i128::from(b) << shift);
        prop_assert_eq!(binary(BinaryOp::Add, Ty::Bf16, small, wide),
            Ok(float::round(Ty::Bf16, f64::from_bits(nearest(sum)))));
        let fused = i128::from(a) * i128::from(c) + (i128::from(b) << shift.min(30));
        prop_assert_eq!(fma(Ty::Bf16, small, float(c, 0), float(b, shift.min(30))),
            float::round(Ty::Bf16, f64::from_bits(nearest(fused))));
    }

    #[test]
    fn scaling_is_one_multiplication(value: f32, exponent in -300i16..300) {
        let raw = u64::from(value.to_bits());
        let exact = f64::from(value) * 2f64.powi(i32::from(exponent));
        let got = f32::from_bits(scale(Ty::F32, raw, exponent) as u32);
        prop_assert!(got == exact as f32 || value.is_nan());
        let wide = f64::from_bits(scale(Ty::F64, f64::from(value).to_bits(), exponent));
        prop_assert!(wide == exact || value.is_nan());
    }
}

#[test]
fn square_roots_of_halves_are_nearest() {
    for bits in 1u16..0x7c00 {
        let root = unary(UnaryOp::Sqrt, Ty::F16, u64::from(bits)) as u16;
        // Compare the square with those of the midpoints, in units of 2^-48, times four.
        let square = units(bits) << 26;
        let (low, here, high) = (units(root - 1), units(root), units(root + 1));
        assert!((low + here).pow(2) <= square && square <= (here + high).pow(2), "{bits:#x}");
    }
}

#[test]
fn special_values() {
    let nan = f16::NAN.to_bits().into();
    let (zero, minus_zero, infinity) = (0, 0x8000, 0x7c00);
    let op = |op, a, b| binary(op, Ty::F16, a, b).unwrap();
    assert_eq!(op(BinaryOp::Add, zero, minus_zero), zero);
    assert_eq!(op(BinaryOp::Add, minus_zero, minus_zero), minus_zero);
    assert_eq!(op(BinaryOp::Sub, infinity, infinity), 0x7e00);
    assert_eq!(op(BinaryOp::Max, minus_zero, zero), zero);
    assert_eq!(op(BinaryOp::Max, zero, minus_zero), zero);
    assert_eq!(op(BinaryOp::Min, zero, minus_zero), minus_zero);
    assert_eq!(op(BinaryOp::Max, nan, 0xbc00), 0xbc00);
    assert_eq!(op(BinaryOp::Min, 0xbc00, nan), 0xbc00);
    assert_eq!(op(BinaryOp::Max, 0xfe01, 0x7c01), 0x7e00);
    assert_eq!(op(BinaryOp::Eq, nan, nan), 0);
    assert_eq!(op(BinaryOp::Ne, nan, nan), 1);
    assert_eq!(op(BinaryOp::LeF, minus_zero, zero), 1);
    assert_eq!(unary(UnaryOp::Sqrt, Ty::F16, minus_zero), minus_zero);
    assert_eq!(
        unary(UnaryOp::Floor, Ty::F32, u64::from((-0.5f32).to_bits())),
        u64::from((-1f32).to_bits())
    );
    assert_eq!(convert(Convert::Bool, Ty::F16, Ty::I8, nan), 1);
    assert_eq!(convert(Convert::Bool, Ty::F16, Ty::I8, minus_zero), 0);
    assert_eq!(convert(Convert::SignedFromFloat, Ty::F16, Ty::I16, nan), 0);
    assert_eq!(unary(UnaryOp::Clz, Ty::I16, 0), 16);
    assert_eq!(unary(UnaryOp::Ctz, Ty::I16, 0), 16);
    assert_eq!(unary(UnaryOp::Abs, Ty::I8, 0x80), 0x80);
    assert_eq!(binary(BinaryOp::DivS, Ty::I8, 0x80, 0xff), Ok(0x80));
    assert_eq!(binary(BinaryOp::RemU, Ty::I8, 1, 0x100), Err(ScalarError::DivideByZero));
    assert_eq!(fma(Ty::F16, infinity, 0, 0x3c00), 0x7e00);
    for ty in FLOATS {
        assert_eq!(
            unary(UnaryOp::Abs, ty, canonical_nan(ty) | 1 << (ty.bits() - 1)),
            canonical_nan(ty)
        );
    }
}

#[test]
fn half_fma_differs_from_two_roundings() {
    // (1 + 2^-10)^2 - (1 + 2^-9) = 2^-20 is lost by rounding the product first.
    let a = 0x3c01;
    assert_eq!(to_f64(Ty::F16, fma(Ty::F16, a, a, 0xbc02)), 2f64.powi(-20));
}

/// Rounded to a double first, it would be in the middle between two and go to the even one.
#[test]
fn a_little_more_than_the_middle_goes_up() {
    let middle = (1i64 << 60) + (1 << 52);
    let bf16 = |value: i64| convert(Convert::FloatFromSigned, Ty::I64, Ty::Bf16, value as u64);
    assert_eq!(to_f64(Ty::Bf16, bf16(middle)), 2f64.powi(60));
    assert_eq!(to_f64(Ty::Bf16, bf16(middle + 1)), 2f64.powi(60) + 2f64.powi(53));
    assert_eq!(to_f64(Ty::Bf16, bf16(-middle - 1)), -2f64.powi(60) - 2f64.powi(53));
}
