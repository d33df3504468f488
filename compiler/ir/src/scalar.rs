//! Scalar operations: the one definition of arithmetic.
//!
//! Comptime evaluation, the interpreter, constant folding and the tests call these functions;
//! generated code is held to them bit by bit. Values travel as raw bits in a `u64`, low bits
//! first, the rest zero ([`Ty::mask`]). Invariants: no panic for any input; no function whose
//! result depends on the host (no libm); NaN results are canonical.

use serde::{Deserialize, Serialize};

use crate::ty::Ty;

pub mod exception;
pub mod float;
#[cfg(test)]
mod tests;

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum UnaryOp {
    /// Integer: two's complement negation. Float: sign bit flipped.
    Neg,
    /// Integer: all bits flipped.
    BitNot,
    /// `i8`: 0 becomes 1, all else 0.
    Not,
    /// Float: sign bit cleared. Integer: two's complement absolute value (wraps).
    Abs,
    /// Float: IEEE square root.
    Sqrt,
    /// Float: towards minus infinity.
    Floor,
    /// Float: towards plus infinity.
    Ceil,
    /// Integer: leading zeros within the type.
    Clz,
    /// Integer: trailing zeros within the type (the width for 0).
    Ctz,
    /// Integer: number of ones.
    Popcnt,
}

/// Operations of two operands of one type. Suffix `S` is signed, `U` unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BinaryOp {
    /// Sum; integers wrap.
    Add,
    /// Difference; integers wrap.
    Sub,
    /// Product; integers wrap.
    Mul,
    /// Float quotient.
    Div,
    /// Signed quotient towards zero; minimum by -1 wraps; by 0 traps.
    DivS,
    /// Unsigned quotient; by 0 traps.
    DivU,
    /// Signed remainder, sign of the dividend; by 0 traps.
    RemS,
    /// Unsigned remainder; by 0 traps.
    RemU,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left; a count (unsigned) of the width or more gives 0.
    Shl,
    /// Arithmetic shift right; a count of the width or more gives the sign.
    ShrS,
    /// Logical shift right; a count of the width or more gives 0.
    ShrU,
    /// Larger float: of a NaN and a number the number, of two NaNs the canonical NaN, of zeros +0 if any is.
    Max,
    /// Smaller float, likewise; of zeros -0 if any is.
    Min,
    /// Equal (floats: ordered). Result `i8`, as for all that follow.
    Eq,
    /// Not equal (floats: unordered or different).
    Ne,
    /// Signed less.
    LtS,
    /// Unsigned less.
    LtU,
    /// Float less, false with NaN.
    LtF,
    /// Signed less or equal.
    LeS,
    /// Unsigned less or equal.
    LeU,
    /// Float less or equal, false with NaN.
    LeF,
}

/// Conversions between types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Convert {
    /// Integer to narrower integer: low bits.
    Truncate,
    /// Integer to wider integer, sign extended.
    SignExtend,
    /// Integer to wider integer, zero extended.
    ZeroExtend,
    /// Same width, same bits.
    Bitcast,
    /// Signed integer to float, round to nearest even.
    FloatFromSigned,
    /// Unsigned integer to float, round to nearest even.
    FloatFromUnsigned,
    /// Float to signed integer, towards zero, saturating; NaN gives 0.
    SignedFromFloat,
    /// Float to unsigned integer, towards zero, saturating; NaN gives 0.
    UnsignedFromFloat,
    /// Float to float, round to nearest even.
    FloatFromFloat,
    /// Anything to `i8`: 1 unless zero (a NaN gives 1).
    Bool,
}

/// Why a scalar operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScalarError {
    /// Integer division or remainder by zero.
    #[error("division by zero")]
    DivideByZero,
}

/// `op src`. An operation that has no meaning for the type gives 0; the validator refuses it.
#[inline]
pub fn unary(op: UnaryOp, ty: Ty, src: u64) -> u64 {
    let src = ty.mask(src);
    if ty.is_float() { float::unary(op, ty, src) } else { ty.mask(integer_unary(op, ty, src)) }
}

/// `lhs op rhs`, both of type `ty`. An operation that has no meaning for the type gives 0; the
/// validator refuses it.
///
/// # Errors
///
/// Integer division and remainder by zero.
#[inline]
pub fn binary(op: BinaryOp, ty: Ty, lhs: u64, rhs: u64) -> Result<u64, ScalarError> {
    let (lhs, rhs) = (ty.mask(lhs), ty.mask(rhs));
    if ty.is_float() {
        Ok(float::binary(op, ty, lhs, rhs))
    } else {
        integer_binary(op, ty, lhs, rhs).map(|raw| ty.mask(raw))
    }
}

/// `a * b + c` of floats with one rounding; integers wrap.
#[inline]
pub fn fma(ty: Ty, a: u64, b: u64, c: u64) -> u64 {
    match ty {
        Ty::F16 | Ty::F32 | Ty::F64 | Ty::Bf16 => {
            float::fma(ty, ty.mask(a), ty.mask(b), ty.mask(c))
        }
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => ty.mask(a.wrapping_mul(b).wrapping_add(c)),
    }
}

/// A float times `2^exponent` with one rounding; integers are shifted left (right if negative,
/// towards minus infinity) and wrap.
#[inline]
pub fn scale(ty: Ty, src: u64, exponent: i16) -> u64 {
    match ty {
        Ty::F16 | Ty::F32 | Ty::F64 | Ty::Bf16 => float::scale(ty, ty.mask(src), exponent),
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => {
            let count = u64::from(exponent.unsigned_abs());
            let op = if exponent < 0 { BinaryOp::ShrS } else { BinaryOp::Shl };
            // A count beyond the type's range is at least its width.
            let count = count.min(u64::from(ty.bits()));
            integer_binary(op, ty, ty.mask(src), count).map_or(0, |raw| ty.mask(raw))
        }
    }
}

/// Converts `src` of type `from` to `to`. A pair of types that the conversion does not allow
/// gives some value, never a panic; the validator refuses it.
#[inline]
pub fn convert(kind: Convert, from: Ty, to: Ty, src: u64) -> u64 {
    let src = from.mask(src);
    match kind {
        Convert::Truncate | Convert::ZeroExtend | Convert::Bitcast => to.mask(src),
        Convert::SignExtend => to.mask(signed(from, src) as u64),
        Convert::FloatFromSigned => float::from_signed(to, signed(from, src)),
        Convert::FloatFromUnsigned => float::from_unsigned(to, src),
        Convert::SignedFromFloat => to.mask(saturate_signed(to, float::to_f64(from, src))),
        Convert::UnsignedFromFloat => saturate_unsigned(to, float::to_f64(from, src)),
        Convert::FloatFromFloat => float::round(to, float::to_f64(from, src)),
        Convert::Bool if from.is_float() => u64::from(float::to_f64(from, src) != 0.0),
        Convert::Bool => u64::from(src != 0),
    }
}

/// The value of raw bits as a signed integer of the type's width.
#[inline]
pub fn signed(ty: Ty, raw: u64) -> i64 {
    let unused = 64 - ty.bits();
    ((raw << unused) as i64) >> unused
}

fn integer_unary(op: UnaryOp, ty: Ty, src: u64) -> u64 {
    match op {
        UnaryOp::Neg => src.wrapping_neg(),
        UnaryOp::BitNot => !src,
        UnaryOp::Not => u64::from(src == 0),
        UnaryOp::Abs => signed(ty, src).wrapping_abs() as u64,
        UnaryOp::Clz => u64::from(src.leading_zeros() - (64 - ty.bits())),
        UnaryOp::Ctz => u64::from(src.trailing_zeros().min(ty.bits())),
        UnaryOp::Popcnt => u64::from(src.count_ones()),
        UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil => 0,
    }
}

/// The caller masks the result.
#[inline]
fn integer_binary(op: BinaryOp, ty: Ty, lhs: u64, rhs: u64) -> Result<u64, ScalarError> {
    let (left, right) = (signed(ty, lhs), signed(ty, rhs));
    Ok(match op {
        BinaryOp::Add => lhs.wrapping_add(rhs),
        BinaryOp::Sub => lhs.wrapping_sub(rhs),
        BinaryOp::Mul => lhs.wrapping_mul(rhs),
        BinaryOp::DivS | BinaryOp::DivU | BinaryOp::RemS | BinaryOp::RemU if rhs == 0 => {
            return Err(ScalarError::DivideByZero);
        }
        BinaryOp::DivS => left.wrapping_div(right) as u64,
        BinaryOp::DivU => lhs / rhs,
        BinaryOp::RemS => left.wrapping_rem(right) as u64,
        BinaryOp::RemU => lhs % rhs,
        BinaryOp::And => lhs & rhs,
        BinaryOp::Or => lhs | rhs,
        BinaryOp::Xor => lhs ^ rhs,
        BinaryOp::Shl if rhs >= u64::from(ty.bits()) => 0,
        BinaryOp::Shl => lhs << rhs,
        BinaryOp::ShrS => (left >> rhs.min(63)) as u64,
        BinaryOp::ShrU if rhs >= u64::from(ty.bits()) => 0,
        BinaryOp::ShrU => lhs >> rhs,
        BinaryOp::Eq => u64::from(lhs == rhs),
        BinaryOp::Ne => u64::from(lhs != rhs),
        BinaryOp::LtS => u64::from(left < right),
        BinaryOp::LtU => u64::from(lhs < rhs),
        BinaryOp::LeS => u64::from(left <= right),
        BinaryOp::LeU => u64::from(lhs <= rhs),
        BinaryOp::Div | BinaryOp::Max | BinaryOp::Min | BinaryOp::LtF | BinaryOp::LeF => 0,
    })
}

/// Rust's cast goes towards zero, saturates and maps NaN to 0; narrower types clamp after it.
fn saturate_signed(to: Ty, value: f64) -> u64 {
    let high = i64::MAX >> (64 - to.bits());
    (value as i64).clamp(-high - 1, high) as u64
}

fn saturate_unsigned(to: Ty, value: f64) -> u64 {
    (value as u64).min(to.mask(u64::MAX))
}

impl UnaryOp {
    /// All operations, in declaration order.
    pub const ALL: [UnaryOp; 10] = [
        UnaryOp::Neg,
        UnaryOp::BitNot,
        UnaryOp::Not,
        UnaryOp::Abs,
        UnaryOp::Sqrt,
        UnaryOp::Floor,
        UnaryOp::Ceil,
        UnaryOp::Clz,
        UnaryOp::Ctz,
        UnaryOp::Popcnt,
    ];
}

impl BinaryOp {
    /// All operations, in declaration order.
    pub const ALL: [BinaryOp; 24] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::DivS,
        BinaryOp::DivU,
        BinaryOp::RemS,
        BinaryOp::RemU,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Xor,
        BinaryOp::Shl,
        BinaryOp::ShrS,
        BinaryOp::ShrU,
        BinaryOp::Max,
        BinaryOp::Min,
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::LtS,
        BinaryOp::LtU,
        BinaryOp::LtF,
        BinaryOp::LeS,
        BinaryOp::LeU,
        BinaryOp::LeF,
    ];

    /// Whether the result is a truth value (`i8`) rather than of the operands' type.
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::LtS
                | BinaryOp::LtU
                | BinaryOp::LtF
                | BinaryOp::LeS
                | BinaryOp::LeU
                | BinaryOp::LeF
        )
    }
}

impl Convert {
    /// All conversions, in declaration order.
    pub const ALL: [Convert; 10] = [
        Convert::Truncate,
        Convert::SignExtend,
        Convert::ZeroExtend,
        Convert::Bitcast,
        Convert::FloatFromSigned,
        Convert::FloatFromUnsigned,
        Convert::SignedFromFloat,
        Convert::UnsignedFromFloat,
        Convert::FloatFromFloat,
        Convert::Bool,
    ];
}
