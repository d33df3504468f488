//! Element types of files.

use dflow_ir::ty::{ElementType, Ty};

/// An element type with its signedness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

/// Type, its name on the command line, its name in `.npy` headers, its machine type, whether numbers may be negative.
const TABLE: [(Dtype, &str, &str, Ty, bool); 11] = [
    (Dtype::I8, "i8", "|i1", Ty::I8, true),
    (Dtype::I16, "i16", "<i2", Ty::I16, true),
    (Dtype::I32, "i32", "<i4", Ty::I32, true),
    (Dtype::I64, "i64", "<i8", Ty::I64, true),
    (Dtype::U8, "u8", "|u1", Ty::I8, false),
    (Dtype::U16, "u16", "<u2", Ty::I16, false),
    (Dtype::U32, "u32", "<u4", Ty::I32, false),
    (Dtype::U64, "u64", "<u8", Ty::I64, false),
    (Dtype::F16, "f16", "<f2", Ty::F16, true),
    (Dtype::F32, "f32", "<f4", Ty::F32, true),
    (Dtype::F64, "f64", "<f8", Ty::F64, true),
];

impl Dtype {
    fn row(self) -> (Dtype, &'static str, &'static str, Ty, bool) {
        // The table is in the order of the declaration; a test holds them together.
        TABLE[self as usize]
    }

    /// The type of this name.
    pub(crate) fn parse(name: &str) -> Option<Dtype> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The type of a `.npy` description.
    pub(crate) fn from_npy(descr: &str) -> Option<Dtype> {
        TABLE.iter().find(|row| row.2 == descr).map(|row| row.0)
    }

    /// The type of these elements, if files have it: there are none of `bf16`.
    pub(crate) fn of(element: ElementType) -> Option<Dtype> {
        TABLE.iter().map(|row| row.0).find(|dtype| dtype.element().is_same(element))
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        self.row().1
    }

    /// Its description in `.npy` headers.
    pub(crate) fn npy(self) -> &'static str {
        self.row().2
    }

    /// The elements that it says.
    pub(crate) fn element(self) -> ElementType {
        let (.., ty, signed) = self.row();
        ElementType::number(ty, signed)
    }

    /// Size of an element.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.row().3.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_type() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, index);
            assert_eq!(Dtype::parse(row.1), Some(row.0));
            assert_eq!(Dtype::from_npy(row.2), Some(row.0));
            assert_eq!(Dtype::of(row.0.element()), Some(row.0));
        }
        assert_eq!(Dtype::of(ElementType::number(Ty::Bf16, true)), None);
    }
}
