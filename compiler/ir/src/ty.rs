//! Machine types of locals and memory accesses.

use serde::{Deserialize, Serialize};

/// A machine type. Signedness is a property of operations, not of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ty {
    /// 8 bits; also booleans (0 or 1).
    I8,
    /// 16 bits: the machine's word; also PE pointers, colors, queue and task ids.
    I16,
    /// 32 bits: one wavelet payload.
    I32,
    /// 64 bits; also packed descriptors and host pointers.
    I64,
    /// IEEE half.
    F16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// The upper half of an IEEE single; takes the place of `F16` in programs that ask for it.
    Bf16,
}

impl Ty {
    /// All types, in declaration order.
    pub const ALL: [Ty; 8] =
        [Ty::I8, Ty::I16, Ty::I32, Ty::I64, Ty::F16, Ty::F32, Ty::F64, Ty::Bf16];

    /// Size in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Ty::I8 => 1,
            Ty::I16 | Ty::F16 | Ty::Bf16 => 2,
            Ty::I32 | Ty::F32 => 4,
            Ty::I64 | Ty::F64 => 8,
        }
    }

    /// Size in bits.
    pub fn bits(self) -> u32 {
        self.bytes() * 8
    }

    /// Whether values are floats.
    pub fn is_float(self) -> bool {
        matches!(self, Ty::F16 | Ty::F32 | Ty::F64 | Ty::Bf16)
    }

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Ty::I8 => "i8",
            Ty::I16 => "i16",
            Ty::I32 => "i32",
            Ty::I64 => "i64",
            Ty::F16 => "f16",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
            Ty::Bf16 => "bf16",
        }
    }

    /// The inverse of [`Ty::name`].
    pub fn from_name(name: &str) -> Option<Ty> {
        Ty::ALL.into_iter().find(|ty| ty.name() == name)
    }

    /// The low [`Ty::bits`] of `raw`, the rest zero: the canonical raw form of a value.
    pub fn mask(self, raw: u64) -> u64 {
        match self.bits() {
            64 => raw,
            bits => raw & ((1 << bits) - 1),
        }
    }
}

/// A scalar type as sources have it, for the host's checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElementType {
    /// Machine type.
    pub ty: Ty,
    /// What its values are.
    pub kind: ElementKind,
}

/// What the values of a scalar type are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ElementKind {
    /// Numbers from 0 on.
    Unsigned,
    /// Numbers of both signs, floats among them.
    Signed,
    /// `false` and `true`, 0 and 1 in an `i8`.
    Bool,
}

impl ElementType {
    /// Numbers of a machine type.
    pub fn number(ty: Ty, signed: bool) -> ElementType {
        ElementType { ty, kind: if signed { ElementKind::Signed } else { ElementKind::Unsigned } }
    }

    /// The type of truth values.
    pub fn bool() -> ElementType {
        ElementType { ty: Ty::I8, kind: ElementKind::Bool }
    }

    /// Whether there is such a type: truth values stand in a byte.
    pub fn is_valid(self) -> bool {
        self.kind != ElementKind::Bool || self.ty == Ty::I8
    }

    /// Whether both are the same numbers, or both truth values; floats have no kind.
    pub fn is_same(self, other: ElementType) -> bool {
        self.ty == other.ty && (self.ty.is_float() || self.kind == other.kind)
    }

    /// The name in sources.
    pub fn name(self) -> String {
        match self.kind {
            ElementKind::Bool => "bool".to_owned(),
            ElementKind::Unsigned if !self.ty.is_float() => format!("u{}", self.ty.bits()),
            ElementKind::Unsigned | ElementKind::Signed => self.ty.name().to_owned(),
        }
    }
}

impl std::fmt::Display for Ty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
