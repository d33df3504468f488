//! The vector operations: one row each.
//!
//! A row says the mnemonic, the shape (how operands pair up and how the engine walks), the
//! element types and the kernel. The kernel is the meaning: checker, lowering, interpreter,
//! generated code and tests all go through it. Kernels are total, and pure but for the carry.

mod kernels;
mod manual;
mod raised;
mod rate;
mod table;
#[cfg(test)]
mod tests;

pub use manual::manual;
pub use rate::Lie;
pub use table::{BF16_TABLE, TABLE};

use serde::{Deserialize, Serialize};

use crate::ty::Ty;

/// Index of a row of [`TABLE`], or behind it of [`BF16_TABLE`].
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

/// Which kinds of operands an operation takes, in written order: `d` a descriptor (memory, fabric,
/// register, FIFO) as destination, `p` a pointer to one element, `s` a descriptor as source, `k` a
/// scalar of the element type, `i` a scalar `i16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `(d,s)`.
    Ds,
    /// `(d,k)`.
    Dk,
    /// `(p,s)`: the last value remains.
    Ps,
    /// `(p,k)`.
    Pk,
    /// `(d,s,s)`.
    Dss,
    /// `(d,k,s)`.
    Dks,
    /// `(d,s,k)`.
    Dsk,
    /// `(p,k,s)`: a reduction.
    Pks,
    /// `(d,s,s,k)`.
    Dssk,
    /// `(p,k,i)`.
    Pki,
}

/// How much of a row's meaning is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    /// All of it is documented.
    Full,
    /// It works; what is named here was chosen by us, since nothing public says it.
    Assumed(&'static str),
    /// Refused with this reason.
    NotYet(&'static str),
}

/// A row.
#[derive(Clone, Copy)]
pub struct OpRow {
    /// The builtin's name without `@`.
    pub name: &'static str,
    /// Operand shape.
    pub shape: OpShape,
    /// The operand forms that are allowed.
    pub forms: &'static [Form],
    /// Element type of the result.
    pub dest: Ty,
    /// Element types of the sources in the kernel's order (two or three; unused ones repeat the
    /// last). [`OpRow::written_types`] gives those of a form in written order.
    pub sources: [Ty; 3],
    /// Whether the element type may also be read as unsigned (`i16/u16`), for the checker.
    pub integer: bool,
    /// Elements per issue slot on wse2 and wse3, as far as memory lets them
    /// ([`OpRow::slots`]); 0 for the target's `fmuls_lanes`.
    pub width: [u8; 2],
    /// The meaning: raw source elements in the kernel's order, and the carry state (0 before the
    /// first element), to the raw result.
    pub kernel: fn([u32; 3], &mut u32) -> u32,
    /// Bits of the float exceptions ([`crate::scalar::exception`]) that an element raises.
    pub raised: fn([u32; 3]) -> u8,
    /// Whether the meaning is known.
    pub state: RowState,
    /// One line for the manual, as a formula.
    pub doc: &'static str,
}

impl DsdOp {
    /// All operations, in the order of the table.
    pub fn all() -> impl Iterator<Item = DsdOp> {
        (0..TABLE.len()).map(|index| DsdOp(index as u8))
    }

    /// The operations on `bf16`, in the order of their table.
    pub fn all_on_bf16() -> impl Iterator<Item = DsdOp> {
        (0..BF16_TABLE.len()).map(|index| DsdOp((TABLE.len() + index) as u8))
    }

    /// The operation of a builtin's name (without `@`).
    pub fn by_name(name: &str) -> Option<DsdOp> {
        let index = TABLE.binary_search_by(|row| row.name.cmp(name)).ok()?;
        Some(DsdOp(index as u8))
    }

    /// The operation whose text form (`Display`) is `text`.
    pub fn from_text(text: &str) -> Option<DsdOp> {
        match text.strip_suffix(ON_BF16) {
            Some(name) => Some(DsdOp::by_name(name)?.on(Ty::Bf16)),
            None => DsdOp::by_name(text),
        }
    }

    /// The same operation where 16-bit floats are of the given type.
    pub fn on(self, half: Ty) -> DsdOp {
        let name = self.row().name;
        let found = BF16_TABLE.binary_search_by(|row| row.name.cmp(name));
        match (half, found) {
            (Ty::Bf16, Ok(index)) => DsdOp((TABLE.len() + index) as u8),
            (_, Ok(_) | Err(_)) => DsdOp::by_name(name).unwrap_or(self),
        }
    }

    fn is_on_bf16(self) -> bool {
        usize::from(self.0) >= TABLE.len()
    }

    /// The row, if the index is one (images come from disk).
    pub fn get(self) -> Option<&'static OpRow> {
        let index = usize::from(self.0);
        TABLE.get(index).or_else(|| BF16_TABLE.get(index - TABLE.len()))
    }

    /// The row. Validated programs hold indices of rows only; any other counts as the last row.
    #[inline]
    pub fn row(self) -> &'static OpRow {
        let index = usize::from(self.0);
        match TABLE.get(index) {
            Some(row) => row,
            None => &BF16_TABLE[(index - TABLE.len()).min(BF16_TABLE.len() - 1)],
        }
    }
}

/// What the text form adds to the name of an operation on `bf16`.
const ON_BF16: &str = ".bf16";

impl std::fmt::Display for DsdOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row().name)?;
        f.write_str(if self.is_on_bf16() { ON_BF16 } else { "" })
    }
}

impl OpShape {
    /// Number of sources.
    pub fn arity(self) -> usize {
        match self {
            OpShape::Move | OpShape::Unary | OpShape::Convert | OpShape::Normalize => 1,
            OpShape::Binary
            | OpShape::Reduce
            | OpShape::Shift
            | OpShape::Scale
            | OpShape::Carry => 2,
            OpShape::MulAdd => 3,
        }
    }
}

impl Form {
    /// All forms, in declaration order.
    pub const ALL: [Form; 10] = [
        Form::Ds,
        Form::Dk,
        Form::Ps,
        Form::Pk,
        Form::Dss,
        Form::Dks,
        Form::Dsk,
        Form::Pks,
        Form::Dssk,
        Form::Pki,
    ];

    /// The operands in written order, destination first, one letter each.
    pub fn letters(self) -> &'static str {
        match self {
            Form::Ds => "ds",
            Form::Dk => "dk",
            Form::Ps => "ps",
            Form::Pk => "pk",
            Form::Dss => "dss",
            Form::Dks => "dks",
            Form::Dsk => "dsk",
            Form::Pks => "pks",
            Form::Dssk => "dssk",
            Form::Pki => "pki",
        }
    }

    /// Number of sources.
    pub fn arity(self) -> usize {
        self.letters().len() - 1
    }
}

/// Which vector among the `sources` the `.zero` of a fabric destination clears, 0 being the first and 1 the second;
/// `vectors` are the places of those there are. Beside a scalar both names mean the only vector, and a single source
/// counts as the second (spec/language.md, section 11).
pub fn cleared(chosen: u8, vectors: &[usize], sources: usize) -> Option<usize> {
    match *vectors {
        [only] => (chosen == 1 || sources > 1).then_some(only),
        [first, second, ..] => Some(if chosen == 0 { first } else { second }),
        [] => None,
    }
}

impl OpRow {
    /// [`cleared`] of an operation of this row.
    pub fn cleared(&self, chosen: u8, vectors: &[usize]) -> Option<usize> {
        cleared(chosen, vectors, self.source_types().len())
    }

    /// Element types of the sources.
    pub fn source_types(&self) -> &[Ty] {
        &self.sources[..self.shape.arity()]
    }

    /// Element types of the sources as they are written in a form; see [`OpRow::swapped`].
    pub fn written_types(&self, form: Form) -> [Ty; 3] {
        let [first, second, third] = self.sources;
        if self.swapped(form) { [second, first, third] } else { self.sources }
    }

    /// Whether the first two sources of this form must be exchanged to stand in the kernel's
    /// order. In `(d,k,s)` of a sum of mixed precision the scalar is the narrow operand, while
    /// the kernel takes the wide one first. [`crate::inst::VectorInst`] and all that read it
    /// use the kernel's order; lowering exchanges.
    pub fn swapped(&self, form: Form) -> bool {
        form == Form::Dks && self.sources[0] != self.sources[1]
    }

    /// Applies the kernel to one element; `carry` is 0 before the first.
    #[inline]
    pub fn apply(&self, sources: [u32; 3], carry: &mut u32) -> u32 {
        (self.kernel)(sources, carry)
    }
}
