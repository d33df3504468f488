//! Why the host cannot do what it was asked, and how a run can fail.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, Coord};
use dflow_ir::ty::Ty;

use super::region::Elements;
use crate::config::Limit;
use crate::exec::CodeTrap;
use crate::outcome::Deadlock;
use crate::trap::Trap;

/// A request that cannot be carried out. Nothing has been sent for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The program is not joined to the host.
    #[error("row {row} of the program has no link to the host for color {}: does every PE take part in copies and launches?", color.index())]
    NoLink {
        /// First row without it.
        row: u16,
        /// Color of the link.
        color: Color,
    },
    /// No such export.
    #[error("nothing is exported as `{name}`{}", list_known(.known))]
    UnknownSymbol {
        /// The name asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// An export of another kind.
    #[error("`{name}` is {found}, not {wanted}")]
    Kind {
        /// The export.
        name: String,
        /// What it is.
        found: &'static str,
        /// What the request needs.
        wanted: &'static str,
    },
    /// The host may only read it.
    #[error("`{name}` is exported as constant: the host cannot write it")]
    Constant {
        /// The export.
        name: String,
    },
    /// Another element type.
    #[error("`{name}` points to elements of type {found} ({} bits), the host has {given}", found.bits())]
    ElementType {
        /// The export.
        name: String,
        /// Its elements.
        found: Ty,
        /// The host's.
        given: Elements,
    },
    /// Elements of this size cannot travel.
    #[error("{0} cannot be copied or streamed: 16-, 32- and 64-bit elements can")]
    ElementSize(Elements),
    /// Not a whole number of elements per PE or row.
    #[error("{elements} elements cannot be shared equally by {pes} PEs or rows")]
    Count {
        /// Elements given.
        elements: u64,
        /// PEs, or rows, of the region.
        pes: u64,
    },
    /// More than a PE's memory can hold.
    #[error("{elements} elements per PE are more than its memory holds")]
    TooMany {
        /// Per PE.
        elements: u64,
    },
    /// More than the array behind a pointer holds.
    #[error("`{name}` of PE ({}, {}) points to {room} elements, the host asks for {elements} per PE", at.x, at.y)]
    Room {
        /// The export.
        name: String,
        /// First such PE.
        at: Coord,
        /// Elements there are.
        room: u64,
        /// Per PE.
        elements: u64,
    },
    /// A region that is empty or leaves the program's rectangle.
    #[error(
        "the region at ({x}, {y}) of {width} x {height} PEs is empty or leaves the program's {columns} x {rows} PEs"
    )]
    Region {
        /// First column.
        x: i64,
        /// First row.
        y: i64,
        /// Columns.
        width: i64,
        /// Rows.
        height: i64,
        /// Columns of the program.
        columns: u16,
        /// Rows of the program.
        rows: u16,
    },
    /// A PE of the region does not have it.
    #[error("PE ({}, {}) has no `{name}`", at.x, at.y)]
    Missing {
        /// The export.
        name: String,
        /// First such PE.
        at: Coord,
    },
    /// Wrong number of launch arguments.
    #[error("`{name}` takes {wanted} arguments, the host gives {given}")]
    Arguments {
        /// The export.
        name: String,
        /// Parameters.
        wanted: usize,
        /// Arguments.
        given: usize,
    },
    /// A launch argument that is no truth value.
    #[error("argument {number} of `{name}` is a bool: {value} is neither 0 (false) nor 1 (true)")]
    Bool {
        /// The export.
        name: String,
        /// Which argument, from 1 on.
        number: usize,
        /// Its value.
        value: u64,
    },
    /// A launch argument with more bits than its type has.
    #[error("argument {number} of `{name}` is of type {ty}: {value} has more than {bits} bits")]
    Range {
        /// The export.
        name: String,
        /// Which argument, from 1 on.
        number: usize,
        /// Its type in sources.
        ty: String,
        /// Bits of the type.
        bits: u32,
        /// Its raw value.
        value: u64,
    },
    /// A color that is no stream in this direction.
    #[error("color {} is no stream {} in every row of the region: no link joins it", color.index(), if *.to_mesh { "to the mesh" } else { "to the host" })]
    NoStream {
        /// The color.
        color: Color,
        /// Direction.
        to_mesh: bool,
    },
    /// No stream has the name.
    #[error("there is no stream `{name}`{}", list_known(.known))]
    UnknownStream {
        /// The name asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A stream used the wrong way round.
    #[error("stream `{name}` leads {}: the host can only {} it", if *.to_mesh { "into the mesh" } else { "to the host" }, if *.to_mesh { "send over" } else { "receive from" })]
    StreamDirection {
        /// The stream.
        name: String,
        /// Where it leads.
        to_mesh: bool,
    },
    /// Words of several columns could not be told apart.
    #[error("color {} brings words of {columns} columns per row to the host, which cannot tell them apart here: use a region of one column", color.index())]
    SeveralColumns {
        /// The color.
        color: Color,
        /// Columns of the region.
        columns: u16,
    },
    /// A row sent more than the program made room for.
    #[error("row {row} of color {} sent more than the {capacity} elements there is room for", color.index())]
    RowTooLong {
        /// The color.
        color: Color,
        /// The row.
        row: u16,
        /// Room per row.
        capacity: u64,
    },
    /// Words on a reserved color that nobody asked for.
    #[error("row {row} sent words on color {} that the host did not ask for: the color is reserved", color.index())]
    Unexpected {
        /// The row.
        row: u16,
        /// The color.
        color: Color,
    },
    /// A ticket of another session, or one whose result has been taken.
    #[error("there is no such request, or its result has been taken")]
    NoRequest,
    /// A name that no PE's program has.
    #[error("PE ({}, {}) has no variable `{name}` that can be read: `export var` makes one readable", at.x, at.y)]
    NoVariable {
        /// The name.
        name: String,
        /// The PE.
        at: Coord,
    },
    /// An input that cannot be had.
    #[error("input `{name}`: {reason}")]
    Input {
        /// The input.
        name: String,
        /// Why.
        reason: String,
    },
    /// An output that could not be kept.
    #[error("output `{name}`: {reason}")]
    Output {
        /// The output.
        name: String,
        /// Why.
        reason: String,
    },
    /// A setting whose text is no value of the type.
    #[error("setting `{name}`: `{text}` is no {ty}")]
    Setting {
        /// The setting.
        name: String,
        /// What was given.
        text: String,
        /// What the program wants.
        ty: String,
    },
    /// Memory of the host program is used up.
    #[error("the host program asks for {bytes} more bytes of memory, beyond its limit")]
    Memory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// A slice that lies outside the host program's memory.
    #[error("a slice of {len} elements at {ptr:#x} lies outside the host program's memory")]
    Slice {
        /// Address.
        ptr: u64,
        /// Elements.
        len: i64,
    },
    /// A negative or absurd number where a size is needed.
    #[error("{value} is no size")]
    Size {
        /// The number.
        value: i64,
    },
    /// Not a host program, or it does what only PEs do.
    #[error("the host program is not valid: {0}")]
    Program(&'static str),
}

fn list_known(names: &[String]) -> String {
    match names {
        [] => "; nothing is".to_owned(),
        names => {
            let quoted: Vec<String> =
                names.iter().take(8).map(|name| format!("`{name}`")).collect();
            let more = if names.len() > quoted.len() { ", …" } else { "" };
            format!("; there is {}{more}", quoted.join(", "))
        }
    }
}

/// How a run fails.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The host was asked for something it cannot do.
    #[error("{error}")]
    Host {
        /// What.
        error: HostError,
        /// Where in the host program (line 0: not known).
        loc: Loc,
    },
    /// The host program itself did something forbidden.
    #[error("{}", .0.kind)]
    HostTrap(CodeTrap),
    /// A PE did something forbidden.
    #[error("{0}")]
    Trap(Trap),
    /// Nothing can move and the host waits.
    #[error("{0}")]
    Deadlock(Box<Deadlock>),
    /// A limit was reached.
    #[error("{0}")]
    Limit(Limit),
    /// The emulator itself failed.
    #[error(
        "internal-error: the emulator itself failed: {0}; please report this with the program that shows it"
    )]
    Broken(String),
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        Failure::Host { error, loc: Loc::default() }
    }
}

impl Failure {
    /// With the place of the host program that asked, unless one is known.
    #[must_use]
    pub fn at(self, place: Loc) -> Failure {
        match self {
            Failure::Host { error, loc } if loc == Loc::default() => {
                Failure::Host { error, loc: place }
            }
            Failure::Deadlock(deadlock) if deadlock.host == Loc::default() => {
                Failure::Deadlock(Box::new(Deadlock { host: place, ..*deadlock }))
            }
            other => other,
        }
    }
}
