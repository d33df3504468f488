//! Functions of doubles for host programs: the same bits on every machine.
//!
//! Sums and products in a fixed order, no libm. Accuracy: exp, log and log10 within 2 units in the
//! last place; sin and cos within 2 units or 2^-60 for |x| <= 2^20, beyond that the argument is
//! first reduced by the double nearest to a full turn.

use dflow_ir::program::HostMath;

/// Natural logarithm of 2 in two parts; the first has 21 zero bits at its end.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
/// Base-10 logarithm of 2 in two parts.
const LOG10_2_HIGH: f64 = f64::from_bits(0x3fd3_4413_509f_6000);
const LOG10_2_LOW: f64 = f64::from_bits(0x3d59_fef3_11f1_2b36);
/// A quarter turn in three parts of 33 bits.
const QUARTER: [f64; 3] = [
    f64::from_bits(0x3ff9_21fb_5440_0000),
    f64::from_bits(0x3dd0_b461_1a60_0000),
    f64::from_bits(0x3ba3_198a_2e03_7073),
];

/// Largest argument of sin and cos that is reduced exactly.
const REDUCED: f64 = 1_048_576.0;

/// A function of a double.
pub(super) fn apply(function: HostMath, x: f64) -> f64 {
    let value = match function {
        HostMath::Log10 => log10(x),
        HostMath::Log => log(x),
        HostMath::Exp => exp(x),
        HostMath::Sin => circular(x, 0),
        HostMath::Cos => circular(x, 1),
    };
    if value.is_nan() { f64::NAN } else { value }
}

fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > 710.0 {
        return f64::INFINITY;
    }
    if x < -746.0 {
        return 0.0;
    }
    let turns = (x * std::f64::consts::LOG2_E + 0.5).floor();
    let r = (x - turns * LN2_HIGH) - turns * LN2_LOW;
    let mut sum = 0.0;
    for n in (2..=14).rev() {
        sum = (1.0 + sum) * r / f64::from(n);
    }
    let near_one = 1.0 + (r + r * sum);
    let k = turns as i64;
    near_one * power_of_two(k / 2) * power_of_two(k - k / 2)
}

/// `x = 2^k m` with `m` in `[1, 2)`, for positive finite `x`.
fn split(x: f64) -> (i64, f64) {
    let (bits, base) = if x < f64::MIN_POSITIVE {
        ((x * power_of_two(54)).to_bits(), -54)
    } else {
        (x.to_bits(), 0)
    };
    let k = (bits >> 52) as i64 - 1023 + base;
    (k, f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000))
}

/// What a logarithm is where it is no sum.
fn log_edge(x: f64) -> Option<f64> {
    if x == 0.0 {
        Some(f64::NEG_INFINITY)
    } else if x < 0.0 || x.is_nan() {
        Some(f64::NAN)
    } else if x.is_infinite() {
        Some(x)
    } else {
        None
    }
}

fn log(x: f64) -> f64 {
    if let Some(value) = log_edge(x) {
        return value;
    }
    let (mut k, mut m) = split(x);
    if m > std::f64::consts::SQRT_2 {
        (k, m) = (k + 1, m / 2.0);
    }
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut tail = 0.0;
    for n in (1..=11).rev() {
        tail = z * (2.0 / f64::from(2 * n + 1) + tail);
    }
    let half = 0.5 * f * f;
    let k = k as f64;
    k * LN2_HIGH - ((half - (s * (half + tail) + k * LN2_LOW)) - f)
}

fn log10(x: f64) -> f64 {
    if let Some(value) = log_edge(x) {
        return value;
    }
    let (mut k, mut m) = split(x);
    if k < 0 {
        (k, m) = (k + 1, m / 2.0);
    }
    let k = k as f64;
    (k * LOG10_2_LOW + std::f64::consts::LOG10_E * log(m)) + k * LOG10_2_HIGH
}

fn sin_near_zero(r: f64) -> f64 {
    let z = r * r;
    let mut sum = 0.0;
    for n in (1..=9).rev() {
        sum = z * (-1.0 - sum) / f64::from(2 * n * (2 * n + 1));
    }
    r + r * sum
}

fn cos_near_zero(r: f64) -> f64 {
    let z = r * r;
    let mut sum = 0.0;
    for n in (2..=10).rev() {
        sum = z * (-1.0 - sum) / f64::from((2 * n - 1) * 2 * n);
    }
    1.0 - (0.5 * z + 0.5 * z * sum)
}

/// `sin(x + quarters * pi / 2)`.
fn circular(x: f64, quarters: i64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let x = if x.abs() > REDUCED { x % std::f64::consts::TAU } else { x };
    let turns = (x * std::f64::consts::FRAC_2_PI + 0.5).floor();
    let r = QUARTER.iter().fold(x, |r, part| r - turns * part);
    let quadrant = (turns as i64 + quarters) & 3;
    let value = if quadrant & 1 == 0 { sin_near_zero(r) } else { cos_near_zero(r) };
    if quadrant & 2 == 0 { value } else { -value }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "another library is what these are compared with")]
mod tests {
    use super::*;

    fn check(function: HostMath, model: fn(f64) -> f64, from: f64, to: f64, floor: f64) {
        for step in 0..=20_000 {
            let x = from + (to - from) * (f64::from(step) / 20_000.0);
            let (value, wanted) = (apply(function, x), model(x));
            let unit = (wanted.abs() * f64::EPSILON).max(floor);
            assert!(
                (value - wanted).abs() <= 2.0 * unit,
                "{function:?}({x}) = {value}, not {wanted}"
            );
        }
    }

    #[test]
    fn values_agree_with_another_library() {
        check(HostMath::Exp, f64::exp, -700.0, 700.0, 0.0);
        check(HostMath::Exp, f64::exp, -1.0, 1.0, 0.0);
        check(HostMath::Log, f64::ln, 1e-3, 3.0, 0.0);
        check(HostMath::Log, f64::ln, 1.0, 1e9, 0.0);
        check(HostMath::Log10, f64::log10, 1e-3, 3.0, 0.0);
        check(HostMath::Log10, f64::log10, 1.0, 1e9, 0.0);
        check(HostMath::Sin, f64::sin, -10.0, 10.0, 1e-18);
        check(HostMath::Sin, f64::sin, -1e6, 1e6, 1e-18);
        check(HostMath::Cos, f64::cos, -10.0, 10.0, 1e-18);
        check(HostMath::Cos, f64::cos, -1e6, 1e6, 1e-18);
    }

    #[test]
    fn powers_of_ten_have_whole_logarithms() {
        let mut power = 1.0;
        for n in 0..=22 {
            assert_eq!(apply(HostMath::Log10, power), f64::from(n));
            power *= 10.0;
        }
    }

    #[test]
    fn edges() {
        assert_eq!(apply(HostMath::Exp, f64::NEG_INFINITY), 0.0);
        assert_eq!(apply(HostMath::Exp, 1e9), f64::INFINITY);
        assert_eq!(apply(HostMath::Log, 0.0), f64::NEG_INFINITY);
        assert!(apply(HostMath::Log, -1.0).is_nan());
        assert!(apply(HostMath::Sin, f64::INFINITY).is_nan());
        assert!((apply(HostMath::Log, 5e-324) + 744.440_071_921_381_3).abs() < 1e-12);
        assert!(apply(HostMath::Sin, 1e300).abs() <= 1.0);
    }
}
