//! How values of types look at run time: sizes, alignments, places of fields.

use dflow_ir::program::Profile;
use dflow_ir::ty::Ty;

use super::{Layout, Repr, StructType, Type, TypeId, TypePool};

impl TypePool {
    /// How the machine holds values of a type.
    pub(crate) fn repr(&self, id: TypeId, profile: Profile) -> Repr {
        match self.get(id) {
            Type::Void => Repr::Void,
            Type::Bool => Repr::Scalar(Ty::I8),
            Type::Int { bits, .. } => container(u32::from(*bits)),
            Type::Float(float) => Repr::Scalar(float.ty()),
            Type::Direction
            | Type::Color
            | Type::DataTaskId
            | Type::LocalTaskId
            | Type::ControlTaskId
            | Type::InputQueue
            | Type::OutputQueue
            | Type::UtId => Repr::Scalar(Ty::I16),
            Type::Mem1dDsd
            | Type::Mem4dDsd
            | Type::CircbufDsd
            | Type::FabinDsd
            | Type::FaboutDsd => Repr::Scalar(Ty::I64),
            Type::Pointer { pointee, .. } => match self.get(*pointee) {
                Type::Fn { .. } | Type::Pending(_) => Repr::Scalar(profile.pointer()),
                _ if self.recursive.contains(pointee) => Repr::Scalar(profile.pointer()),
                _ if self.repr(*pointee, profile) == Repr::Comptime
                    && !matches!(self.get(*pointee), Type::AnyOpaque) =>
                {
                    Repr::Comptime
                }
                _ => Repr::Scalar(profile.pointer()),
            },
            Type::Slice { .. } => Repr::Memory { size: 16, align: 8 },
            Type::Rect => Repr::Memory { size: 32, align: 8 },
            Type::Enum(info) => self.repr(info.backing, profile),
            Type::Array { elem, .. } => match self.size_align(*elem, profile) {
                Some((size, align)) => {
                    Repr::Memory { size: size.saturating_mul(self.element_count(id)), align }
                }
                None => Repr::Comptime,
            },
            Type::Struct(info) if info.is_packed() => {
                self.bits(id, profile).map_or(Repr::Comptime, container)
            }
            Type::Struct(info) => self.struct_repr(info, profile),
            Type::Pending(_)
            | Type::ComptimeInt
            | Type::ComptimeFloat
            | Type::ComptimeString
            | Type::ComptimeStruct
            | Type::Meta
            | Type::Module
            | Type::Tile
            | Type::Range(_)
            | Type::DsrDest
            | Type::DsrSrc0
            | Type::DsrSrc1
            | Type::DsrFifoDest
            | Type::DsrFifoSrc1
            | Type::Xdsr
            | Type::Sr
            | Type::Fifo
            | Type::AnyOpaque
            | Type::Fn { .. } => Repr::Comptime,
        }
    }

    fn struct_repr(&self, info: &StructType, profile: Profile) -> Repr {
        let (mut size, mut max_align) = (0u64, 1u32);
        for &(_, field) in &info.fields {
            let Some((bytes, align)) = self.size_align(field, profile) else {
                return Repr::Comptime;
            };
            size = match info.layout {
                Layout::Union => size.max(bytes),
                Layout::InOrder | Layout::Packed | Layout::PackedUnion => {
                    aligned(size, align).saturating_add(bytes)
                }
            };
            max_align = max_align.max(align);
        }
        Repr::Memory { size: aligned(size, max_align), align: max_align }
    }

    /// Byte offset of a struct field; what no memory reaches is the greatest number.
    pub(crate) fn field_offset(&self, info: &StructType, index: usize, profile: Profile) -> u64 {
        if info.is_union() {
            return 0;
        }
        let mut offset = 0u64;
        for (at, &(_, field)) in info.fields.iter().enumerate() {
            let (bytes, align) = self.size_align(field, profile).unwrap_or((0, 1));
            offset = aligned(offset, align);
            if at == index {
                break;
            }
            offset = offset.saturating_add(bytes);
        }
        offset
    }

    /// Bytes and alignment in memory; `None` for comptime-only types.
    pub(crate) fn size_align(&self, id: TypeId, profile: Profile) -> Option<(u64, u32)> {
        match self.repr(id, profile) {
            Repr::Void => Some((0, 1)),
            Repr::Scalar(ty) => Some((u64::from(ty.bytes()), ty.bytes())),
            Repr::Memory { size, align } => Some((size, align)),
            Repr::Comptime => None,
        }
    }

    /// Bits of a type's values inside a packed struct and for `@bitcast`; `None` if they have none.
    pub(crate) fn bits(&self, id: TypeId, profile: Profile) -> Option<u32> {
        match self.get(id) {
            Type::Bool => Some(1),
            Type::Int { bits, .. } => Some(u32::from(*bits)),
            Type::Enum(info) => self.bits(info.backing, profile),
            Type::Struct(info) if info.is_packed() => {
                let widths = info.fields.iter().map(|&(_, field)| self.bits(field, profile));
                match info.is_union() {
                    true => widths.max().unwrap_or(Some(0)),
                    false => widths.sum(),
                }
            }
            _ => match self.repr(id, profile) {
                Repr::Scalar(ty) => Some(ty.bits()),
                Repr::Void | Repr::Memory { .. } | Repr::Comptime => None,
            },
        }
    }

    /// Lowest bit of a packed struct's field.
    pub(crate) fn field_shift(&self, info: &StructType, index: usize, profile: Profile) -> u32 {
        if info.is_union() {
            return 0;
        }
        let before = info.fields[..index].iter();
        before.map(|&(_, field)| self.bits(field, profile).unwrap_or(0)).sum()
    }
}

/// The machine integer that holds so many bits.
fn container(bits: u32) -> Repr {
    match bits {
        0..=8 => Repr::Scalar(Ty::I8),
        9..=16 => Repr::Scalar(Ty::I16),
        17..=32 => Repr::Scalar(Ty::I32),
        33..=64 => Repr::Scalar(Ty::I64),
        _ => Repr::Comptime,
    }
}

/// The next multiple of an alignment; sizes end at the greatest number.
fn aligned(bytes: u64, align: u32) -> u64 {
    bytes.checked_next_multiple_of(u64::from(align)).unwrap_or(u64::MAX)
}
