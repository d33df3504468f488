//! The vector operations: one row each.
//!
//! A row says the mnemonic, the shape (how operands pair up and how the engine walks), the
//! element types and the kernel. The kernel is the meaning: checker, lowering, interpreter,
//! generated code and tests all go through it.

use serde::{Deserialize, Serialize};

use crate::ty::Ty;

/// Index of a row of [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DsdOp(pub u8);

/// How many operands, and how the engine walks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpShape {
    /// `dest = f(a)`: `(d,s)`, `(p,s)`, `(d,k)`.
    Move,
    /// `dest = f(a)`: `(d,s)`, `(d,k)`.
    Unary,
    /// `dest = f(a, b)`: `(d,s,s)`, `(d,k,s)`, `(d,s,k)`.
    Binary,
    /// As `Binary`, and `(p,k,s)` reduces: the accumulator starts at `k`, `acc = f(acc, s[i])`.
    Reduce,
    /// `dest = a + b * k`: `(d,s,s,k)`.
    MulAdd,
    /// As `Unary` with another element type on either side.
    Convert,
    /// `dest = a shifted by b`: as `Binary`.
    Shift,
    /// `*p = f(k, i16)`: `(p,k,i)`.
    Scale,
    /// `*p = f(k)`: `(p,k)`.
    Normalize,
    /// As `Binary`, with a carry from element to element (starts at 0).
    Carry,
}

/// A row.
#[derive(Clone, Copy)]
pub struct OpRow {
    /// The builtin's name without `@`.
    pub name: &'static str,
    /// Operand shape.
    pub shape: OpShape,
    /// Element type of the result.
    pub dest: Ty,
    /// Element types of the sources in written order (two or three; unused ones repeat the last).
    pub sources: [Ty; 3],
    /// Whether the element type may also be read as unsigned (`i16/u16`), for the checker.
    pub integer: bool,
    /// Elements per issue slot on wse2 and wse3 (memory operands; `wse-timing.md` a2 table).
    pub width: [u8; 2],
    /// The meaning: raw source elements in written order, and the carry state, to raw result.
    pub kernel: fn([u32; 3], &mut u32) -> u32,
    /// One line for the manual, as a formula.
    pub doc: &'static str,
}
