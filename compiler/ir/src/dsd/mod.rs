//! Descriptors: packed values that say where a vector lives.

pub mod access;
pub mod late;
pub mod op;

use serde::{Deserialize, Serialize};

use crate::inst::Priority;
use crate::mesh::Color;
use crate::program::ShapeId;
use crate::ty::Ty;

/// A descriptor packed into 64 bits, as locals, memory and registers hold it.
///
/// | bits | memory | fabric |
/// |---|---|---|
/// | 0..16 | base address in bytes (offset included) | queue (0..8), color or 255 (8..16) |
/// | 16..32 | extent in elements | extent in elements |
/// | 32..48 | stride in elements (mem1d), shape (mem4d), wrap (ring) | settings |
/// | 48..56 | flags: bit 0 indexed | bit 0 indexed, bit 1 control, bit 2 advance switch |
/// | 56..60 | kind | kind |
///
/// The settings of a fabric descriptor: bit 0 packed, bit 1 transform, bits 2 and 3 priority plus
/// one, bits 4 and 5 the source to be cleared plus one.
///
/// The base is at offset 0 so that the linker can relocate a descriptor in memory like a pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dsd(pub u64);

/// What a descriptor describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DsdKind {
    /// Nothing: an unset variable or register.
    Unset,
    /// A strided vector in memory.
    Mem1d,
    /// Up to four dimensions in memory.
    Mem4d,
    /// Wavelets from the fabric.
    FabIn,
    /// Wavelets to the fabric.
    FabOut,
    /// A vector in memory that starts again after some elements; in registers only.
    Ring,
}

/// The constant part of a fabric descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FabricDsd {
    /// `true` for fabin, `false` for fabout.
    pub input: bool,
    /// Input or output queue.
    pub queue: u8,
    /// Color; none: the one that the queue is bound to when an operation begins.
    pub color: Option<Color>,
    /// fabout: wavelets carry the control bit.
    pub control: bool,
    /// `.wavelet_index_offset`.
    pub indexed: bool,
    /// fabout: advance the local switch after the last wavelet.
    pub advance_switch: bool,
    /// Two elements of 16 bits share a wavelet where the whole operation can.
    pub packed: bool,
    /// `.control_transform`: control wavelets pass as marked data.
    pub transform: bool,
    /// Issue priority.
    pub priority: Option<Priority>,
    /// fabout: vector source to be cleared when the operation is complete (0 or 1).
    pub zero: Option<u8>,
}

impl FabricDsd {
    /// Whether two of its elements of a type share a wavelet, if the other operands have theirs do so.
    pub fn packs(&self, ty: Ty) -> bool {
        ty.bytes() == 2 && self.packed && !self.indexed && !self.control
    }

    /// The bits of a descriptor that this one has set beside those of [`FabricDsd::default`].
    pub fn bits(self) -> u64 {
        Dsd::fabric(self, 0).0 ^ Dsd::fabric(FabricDsd::default(), 0).0
    }
}

/// An extent that means "without end".
pub const INFINITE: u16 = 0x7fff;

impl Dsd {
    /// [`Dsd::color`] of a fabric descriptor that names none.
    pub const COLOR_OF_QUEUE: u8 = 0xff;

    /// A mem1d descriptor.
    pub fn mem1d(base: u16, extent: u16, stride: i16, indexed: bool) -> Dsd {
        Dsd::pack(DsdKind::Mem1d, base, extent, stride as u16, u8::from(indexed))
    }

    /// A mem4d descriptor; its extent comes from the shape.
    pub fn mem4d(base: u16, shape: ShapeId, indexed: bool) -> Dsd {
        Dsd::pack(DsdKind::Mem4d, base, 0, shape.as_u32() as u16, u8::from(indexed))
    }

    /// A fabric descriptor.
    pub fn fabric(desc: FabricDsd, extent: u16) -> Dsd {
        let kind = if desc.input { DsdKind::FabIn } else { DsdKind::FabOut };
        let color = desc.color.map_or(Dsd::COLOR_OF_QUEUE, Color::index);
        let base = u16::from(desc.queue) | u16::from(color) << 8;
        let flags = u8::from(desc.indexed)
            | u8::from(desc.control) << 1
            | u8::from(desc.advance_switch) << 2;
        let priority = desc.priority.map_or(0, |priority| priority as u16 + 1);
        let zero = desc.zero.map_or(0, |source| u16::from(source & 1) + 1);
        let settings =
            u16::from(desc.packed) | u16::from(desc.transform) << 1 | priority << 2 | zero << 4;
        Dsd::pack(kind, base, extent, settings, flags)
    }

    /// A vector that starts again at its base after `wrap` elements.
    pub fn ring(base: u16, extent: u16, wrap: u16) -> Dsd {
        Dsd::pack(DsdKind::Ring, base, extent, wrap, 0)
    }

    fn pack(kind: DsdKind, base: u16, extent: u16, third: u16, flags: u8) -> Dsd {
        Dsd(u64::from(base)
            | u64::from(extent) << 16
            | u64::from(third) << 32
            | u64::from(flags) << 48
            | (kind as u64) << 56)
    }

    /// The kind; an unknown code counts as unset.
    pub fn kind(self) -> DsdKind {
        match self.0 >> 56 & 0xf {
            1 => DsdKind::Mem1d,
            2 => DsdKind::Mem4d,
            3 => DsdKind::FabIn,
            4 => DsdKind::FabOut,
            5 => DsdKind::Ring,
            _ => DsdKind::Unset,
        }
    }

    /// Base address in bytes (memory kinds).
    pub fn base(self) -> u16 {
        self.0 as u16
    }

    /// Extent in elements or wavelets; mem4d descriptors ask their shape.
    pub fn extent(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Stride in elements (mem1d).
    pub fn stride(self) -> i16 {
        (self.0 >> 32) as i16
    }

    /// Shape (mem4d).
    pub fn shape(self) -> ShapeId {
        ShapeId::from_u32((self.0 >> 32) as u16 as u32)
    }

    /// Queue (fabric kinds).
    pub fn queue(self) -> u8 {
        self.0 as u8
    }

    /// Color (fabric kinds), or [`Dsd::COLOR_OF_QUEUE`].
    pub fn color(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// `.wavelet_index_offset`.
    pub fn indexed(self) -> bool {
        self.0 >> 48 & 1 != 0
    }

    /// Sends control wavelets (fabout).
    pub fn control(self) -> bool {
        self.0 >> 49 & 1 != 0
    }

    /// Advances the local switch after the last wavelet (fabout).
    pub fn advance_switch(self) -> bool {
        self.0 >> 50 & 1 != 0
    }

    /// Elements after which it starts again (ring).
    pub fn wrap(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Whether elements may share wavelets (fabric kinds).
    pub fn packed(self) -> bool {
        self.0 >> 32 & 1 != 0
    }

    /// Whether control wavelets pass as marked data (fabric kinds).
    pub fn transform(self) -> bool {
        self.0 >> 33 & 1 != 0
    }

    /// Issue priority (fabric kinds).
    pub fn priority(self) -> Option<Priority> {
        match self.0 >> 34 & 3 {
            1 => Some(Priority::Low),
            2 => Some(Priority::Medium),
            3 => Some(Priority::High),
            _ => None,
        }
    }

    /// Source that is cleared when the operation is complete (fabout).
    pub fn zero(self) -> Option<u8> {
        match self.0 >> 36 & 3 {
            1 => Some(0),
            2 => Some(1),
            _ => None,
        }
    }

    /// With another base address.
    #[must_use]
    pub fn with_base(self, base: u16) -> Dsd {
        Dsd(self.0 & !0xffff | u64::from(base))
    }

    /// With another extent.
    #[must_use]
    pub fn with_extent(self, extent: u16) -> Dsd {
        Dsd(self.0 & !0xffff_0000 | u64::from(extent) << 16)
    }

    /// With another stride.
    #[must_use]
    pub fn with_stride(self, stride: i16) -> Dsd {
        Dsd(self.0 & !0xffff_0000_0000 | u64::from(stride as u16) << 32)
    }
}

/// A descriptor register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DsrRef {
    /// Which file.
    pub file: DsrFile,
    /// Number within the file.
    pub index: u8,
}

/// The register files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DsrFile {
    /// Destinations.
    Dest,
    /// First sources (and destinations that are read).
    Src0,
    /// Second sources.
    Src1,
}

impl DsrFile {
    /// All files, in order.
    pub const ALL: [DsrFile; 3] = [DsrFile::Dest, DsrFile::Src0, DsrFile::Src1];

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            DsrFile::Dest => "dest",
            DsrFile::Src0 => "src0",
            DsrFile::Src1 => "src1",
        }
    }
}
