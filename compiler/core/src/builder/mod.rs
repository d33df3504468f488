//! Layouts that a host program builds, in place of a layout block: regions of PEs with their code,
//! colors, routes, ports at their edges, connections, streams to and from the host.
//!
//! A [`LayoutBuilder`] collects requests; [`LayoutBuilder::compile`] makes the same plan of them that a
//! layout block makes, and the same phases follow. `spec/sdklayout.md` says what each request means.
//! Absences first: nothing is evaluated while requests come in, nothing is read, and what can be
//! judged from the request alone is refused at once as a [`BuildError`]. Invariants: requests keep
//! their order and each has a place, a line of the caller's file or of a text made of the requests;
//! coordinates of regions count from the north-west corner of the mesh, coordinates in a region from its
//! own.

mod code;
mod compile;
mod geometry;
mod notes;
mod port;
mod region;
mod requests;
mod symbol;
mod wires;

pub use compile::Built;
pub use port::PortRequest;
pub use requests::{
    Axis, BuildError, ColorId, Edge, Flow, ParamValue, PortId, RegionId, RoutingPosition, Symbol,
};

use dflow_ir::target::TargetId;

use notes::Notes;
use requests::{ColorDef, Joint, PortDef, Region};

/// Most words that the host's end of a stream holds.
pub const MAX_BUFFER: u32 = 0xffff;

/// Words that it holds unless told otherwise.
pub const BUFFER: u32 = 1024;

/// Collects what a layout shall be.
#[derive(Clone, Debug)]
pub struct LayoutBuilder {
    target: TargetId,
    /// Columns and rows, if they are given.
    size: Option<(u16, u16)>,
    regions: Vec<Region>,
    colors: Vec<ColorDef>,
    ports: Vec<PortDef>,
    joints: Vec<Joint>,
    notes: Notes,
}

impl LayoutBuilder {
    /// A layout without anything.
    #[must_use]
    pub fn new(target: TargetId) -> LayoutBuilder {
        LayoutBuilder {
            target,
            size: None,
            regions: Vec::new(),
            colors: Vec::new(),
            ports: Vec::new(),
            joints: Vec::new(),
            notes: Notes::default(),
        }
    }

    /// The target.
    #[must_use]
    pub fn target(&self) -> TargetId {
        self.target
    }

    /// The mesh has so many columns and rows; otherwise it is as large as the regions need, and two
    /// PEs larger to the east and south.
    pub fn set_size(&mut self, columns: u16, rows: u16) {
        self.size = Some((columns, rows));
        self.notes.add(format!("// mesh of {columns} x {rows} PEs"));
    }

    /// Requests from now on are made by this line of a file (counted from 1), which diagnostics show
    /// if the file can be read.
    pub fn at(&mut self, file: &str, line: u32) {
        self.notes.at(file, line);
    }

    /// Requests from now on are made by no file.
    pub fn at_no_file(&mut self) {
        self.notes.nowhere();
    }

    /// The requests as text, one per line.
    #[must_use]
    pub fn text(&self) -> String {
        self.notes.text()
    }
}
