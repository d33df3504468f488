//! Scalar operations: the one definition of arithmetic.
//!
//! Comptime evaluation, the interpreter, constant folding and the tests call these functions;
//! generated code is held to them bit by bit. Values travel as raw bits in a `u64`, low bits
//! first, the rest zero ([`Ty::mask`]). Invariants: no panic for any input; no function whose
//! result depends on the host (no libm); NaN results are canonical.

use serde::{Deserialize, Serialize};

use crate::ty::Ty;

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

/// `op src`.
pub fn unary(op: UnaryOp, ty: Ty, src: u64) -> u64 {
    let _ = (op, ty);
    src
}

/// `lhs op rhs`, both of type `ty`.
pub fn binary(op: BinaryOp, ty: Ty, lhs: u64, rhs: u64) -> Result<u64, ScalarError> {
    let _ = (op, ty, rhs);
    Ok(lhs)
}

/// Converts `src` of type `from` to `to`.
pub fn convert(kind: Convert, from: Ty, to: Ty, src: u64) -> u64 {
    let _ = (kind, from, to);
    src
}

impl BinaryOp {
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
