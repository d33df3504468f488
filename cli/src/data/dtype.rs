//! Element types of files.

use dflow_ir::ty::Ty;

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

/// Type, its name on the command line, its name in `.npy` headers, its machine type.
const TABLE: [(Dtype, &str, &str, Ty); 11] = [
    (Dtype::I8, "i8", "|i1", Ty::I8),
    (Dtype::I16, "i16", "<i2", Ty::I16),
    (Dtype::I32, "i32", "<i4", Ty::I32),
    (Dtype::I64, "i64", "<i8", Ty::I64),
    (Dtype::U8, "u8", "|u1", Ty::I8),
    (Dtype::U16, "u16", "<u2", Ty::I16),
    (Dtype::U32, "u32", "<u4", Ty::I32),
    (Dtype::U64, "u64", "<u8", Ty::I64),
    (Dtype::F16, "f16", "<f2", Ty::F16),
    (Dtype::F32, "f32", "<f4", Ty::F32),
    (Dtype::F64, "f64", "<f8", Ty::F64),
];

impl Dtype {
    fn row(self) -> (Dtype, &'static str, &'static str, Ty) {
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

    /// A type for values of a machine type; integers count as signed.
    pub(crate) fn of(ty: Ty) -> Dtype {
        TABLE.iter().find(|row| row.3 == ty).map_or(Dtype::I8, |row| row.0)
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        self.row().1
    }

    /// Its description in `.npy` headers.
    pub(crate) fn npy(self) -> &'static str {
        self.row().2
    }

    /// Its machine type.
    pub(crate) fn ty(self) -> Ty {
        self.row().3
    }

    /// Size of an element.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.ty().bytes())
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
            assert_eq!(Dtype::of(row.3).ty(), row.3);
        }
    }
}
