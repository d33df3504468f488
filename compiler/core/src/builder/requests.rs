//! What can be requested, as data.

use std::fmt;

use dflow_ir::mesh::{Color, Coord, Port, PortSet, Rect};

use super::notes::Mark;

/// A request that cannot be, judged by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildError {
    message: String,
    help: Option<String>,
}

impl BuildError {
    pub(super) fn new(message: impl Into<String>) -> BuildError {
        BuildError { message: message.into(), help: None }
    }

    #[must_use]
    pub(super) fn help(mut self, help: impl Into<String>) -> BuildError {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, ": {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for BuildError {}

/// Names a region of a builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(pub(super) u32);

/// Names a color of a builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColorId(pub(super) u32);

/// Names a port of a builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub(super) u32);

impl ColorId {
    /// Position in [`super::Built::colors`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An edge of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Edge {
    /// The first row.
    Top,
    /// The last row.
    Bottom,
    /// The first column.
    Left,
    /// The last column.
    Right,
}

impl Edge {
    /// The side of its PEs that leads out.
    #[must_use]
    pub fn side(self) -> Port {
        match self {
            Edge::Top => Port::North,
            Edge::Bottom => Port::South,
            Edge::Left => Port::West,
            Edge::Right => Port::East,
        }
    }

    /// As users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Edge::Top => "top",
            Edge::Bottom => "bottom",
            Edge::Left => "left",
            Edge::Right => "right",
        }
    }

    /// Its PEs in a region of this extent.
    pub(super) fn of(self, (width, height): (u16, u16)) -> Rect {
        let all = Rect { x: 0, y: 0, width, height };
        match self {
            Edge::Top => Rect { height: 1, ..all },
            Edge::Bottom => Rect { y: height - 1, height: 1, ..all },
            Edge::Left => Rect { width: 1, ..all },
            Edge::Right => Rect { x: width - 1, width: 1, ..all },
        }
    }
}

/// The direction of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// Into the region, or from the host into the mesh.
    In,
    /// Out of it.
    Out,
}

/// Along which regions are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// From west to east.
    Horizontal,
    /// From north to south.
    Vertical,
}

/// Where one position of a switch takes words from, and where it sends them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RoutingPosition {
    /// From these ports.
    pub input: PortSet,
    /// To these.
    pub output: PortSet,
}

/// The value of a param.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamValue {
    /// A number, or a bool as 0 or 1.
    Int(i128),
    /// A number.
    Float(f64),
    /// A color: its number, once it has one.
    Color(ColorId),
}

/// Data for an array on every PE of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The array.
    pub name: &'a str,
    /// Bytes of an element, 2 or 4.
    pub element: u32,
    /// Elements of all PEs as one matrix, row by row, little endian.
    pub data: &'a [u8],
    /// Columns of the matrix.
    pub columns: usize,
    /// Its rows.
    pub rows: usize,
}

/// PEs that run one source.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) name: String,
    pub(super) source: String,
    /// A tile block of the source; else the file itself.
    pub(super) tile: Option<String>,
    pub(super) size: (u16, u16),
    pub(super) at: Option<Coord>,
    pub(super) params: Vec<Param>,
    pub(super) paints: Vec<Paint>,
    pub(super) symbols: Vec<SymbolData>,
    pub(super) mark: Mark,
}

#[derive(Clone, Debug)]
pub(super) struct Param {
    pub(super) area: Rect,
    pub(super) name: String,
    pub(super) value: ParamValue,
    pub(super) mark: Mark,
}

#[derive(Clone, Debug)]
pub(super) struct Paint {
    pub(super) area: Rect,
    pub(super) color: ColorId,
    pub(super) positions: Vec<RoutingPosition>,
    pub(super) mark: Mark,
}

#[derive(Clone, Debug)]
pub(super) struct SymbolData {
    pub(super) name: String,
    pub(super) element: u32,
    /// Bytes per PE, the PEs row by row.
    pub(super) bytes: Vec<Vec<u8>>,
    pub(super) mark: Mark,
}

#[derive(Clone, Debug)]
pub(super) struct ColorDef {
    pub(super) name: String,
    pub(super) region: Option<RegionId>,
    pub(super) fixed: Option<Color>,
    pub(super) mark: Mark,
}

#[derive(Clone, Debug)]
pub(super) struct PortDef {
    pub(super) name: String,
    pub(super) region: RegionId,
    pub(super) flow: Flow,
    pub(super) color: ColorId,
    pub(super) edge: Edge,
    /// Complete: the edge's own side is filled in.
    pub(super) positions: Vec<RoutingPosition>,
    pub(super) size: u64,
    pub(super) joined: Option<Mark>,
    pub(super) mark: Mark,
}

/// What is joined to what.
#[derive(Clone, Debug)]
pub(super) enum Joint {
    Connect { from: PortId, to: PortId, mark: Mark },
    Stream { port: PortId, via: Option<Coord>, stream: Stream },
    StreamAt { at: Coord, color: ColorId, stream: Stream },
}

/// A stream's end at the host.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) name: String,
    pub(super) flow: Flow,
    pub(super) buffer: u32,
    pub(super) mark: Mark,
}

impl Joint {
    /// The stream, if it is one.
    pub(super) fn stream(&self) -> Option<&Stream> {
        match self {
            Joint::Connect { .. } => None,
            Joint::Stream { stream, .. } | Joint::StreamAt { stream, .. } => Some(stream),
        }
    }

    pub(super) fn mark(&self) -> Mark {
        match self {
            Joint::Connect { mark, .. } => *mark,
            Joint::Stream { stream, .. } | Joint::StreamAt { stream, .. } => stream.mark,
        }
    }
}
