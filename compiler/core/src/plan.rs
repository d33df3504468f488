//! What the layout block asked for, with the places where it did. A later phase judges it.
//!
//! The plan is data: the same one can be made from Rust or Python. Per-PE facts are vectors in
//! row-major order of the rectangle, uses are interned, so that a whole wafer stays small.

use dflow_ir::image::{ExportKind, HostStream, MemcpyInfo};
use dflow_ir::mesh::{Color, ColorConfig, Coord, Rect};
use dflow_syntax::Span;
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// The layout's requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// `@set_rectangle`; offsets on the fabric are `x`, `y`.
    pub rect: Rect,
    /// Where it was set.
    pub rect_span: Option<Span>,
    /// Code of each PE (row-major), if set.
    pub tiles: Vec<Option<TileUse>>,
    /// Distinct (program, place) pairs.
    pub tile_uses: IndexSet<(ProgramIdx, Span), FxBuildHasher>,
    /// Slot values, per program: filled in the order in which PEs were given the program.
    pub slots: Vec<Vec<u64>>,
    /// Color configurations: PE index and use.
    pub colors: Vec<(u32, ColorUse)>,
    /// Distinct configurations with their place.
    pub color_uses: IndexSet<(Color, ColorConfig, Span), FxBuildHasher>,
    /// Declared exports; the index is the id.
    pub exports: Vec<PlanExport>,
    /// Values of the layout's params, for reports.
    pub params: Vec<(String, String)>,
    /// What memcpy was given, if the program imports it.
    pub memcpy: Option<MemcpyInfo>,
    /// Streams between the host and routers.
    pub streams: Vec<HostStream>,
    /// PEs without code are wanted: they only pass words on.
    pub sparse: bool,
}

/// Index into the elaborated programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ProgramIdx(pub u32);

/// Index into [`Plan::color_uses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ColorUse(pub u32);

/// One PE's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileUse {
    /// Index into [`Plan::tile_uses`].
    pub tile: u32,
    /// Which block of `slots[program]` (each as long as the program has slots) is this PE's.
    pub slot_block: u32,
}

/// A declared export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlanExport {
    /// The name.
    pub name: String,
    /// What it is.
    pub kind: ExportKind,
    /// Type as the user wrote it, for messages.
    pub type_name: String,
    /// Where.
    pub span: Span,
}

impl Plan {
    /// Row-major index of a PE.
    pub(crate) fn index(&self, at: Coord) -> u32 {
        u32::from(at.y) * u32::from(self.rect.width) + u32::from(at.x)
    }

    /// The inverse of [`Plan::index`].
    pub(crate) fn coord(&self, index: u32) -> Coord {
        let width = u32::from(self.rect.width).max(1);
        Coord { x: (index % width) as u16, y: (index / width) as u16 }
    }
}
