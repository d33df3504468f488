//! Programs: what the PEs of a region run, or what the host runs.

use cranelift_entity::{PrimaryMap, entity_impl};
use serde::{Deserialize, Serialize};

use crate::dsd::Dsd;
use crate::dsd::DsrRef;
use crate::func::{Func, Signature};
use crate::inst::{Priority, VectorOptions};
use crate::loc::Loc;
use crate::mesh::{Color, ColorConfig, Port};
use crate::ty::{ElementType, Ty};

/// A global variable of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GlobalId(u32);
entity_impl!(GlobalId, "g");

/// A function of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FuncId(u32);
entity_impl!(FuncId, "fn");

/// A constant that differs between the PEs of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SlotId(u32);
entity_impl!(SlotId, "slot");

/// A mem4d shape of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ShapeId(u32);
entity_impl!(ShapeId, "shape");

/// A FIFO of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FifoId(u32);
entity_impl!(FifoId, "fifo");

/// A signature of indirect calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SigId(u32);
entity_impl!(SigId, "sig");

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Profile {
    /// On a PE: 16-bit pointers into 48 KiB.
    Pe,
    /// On the host: 64-bit pointers into the host program's own memory.
    Host,
}

impl Profile {
    /// The type of pointers.
    pub fn pointer(self) -> Ty {
        match self {
            Profile::Pe => Ty::I16,
            Profile::Host => Ty::I64,
        }
    }
}

/// A program, complete: PEs of a region share it; only slots differ between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Name for reports: the tile or file name.
    pub name: String,
    /// Where it runs.
    pub profile: Profile,
    /// Types of the per-PE constants.
    pub slots: PrimaryMap<SlotId, Ty>,
    /// Global variables.
    pub globals: PrimaryMap<GlobalId, Global>,
    /// Shapes of mem4d descriptors.
    pub shapes: PrimaryMap<ShapeId, Shape>,
    /// FIFOs.
    pub fifos: PrimaryMap<FifoId, Fifo>,
    /// Functions; tasks are functions too.
    pub funcs: PrimaryMap<FuncId, Func>,
    /// Signatures of indirect calls.
    pub signatures: PrimaryMap<SigId, Signature>,
    /// Bound tasks.
    pub tasks: Vec<TaskBinding>,
    /// Queues bound to colors.
    pub queues: Vec<QueueBinding>,
    /// The table of control tasks, if it is apart from that of other tasks.
    pub control_table: Option<ControlTable>,
    /// Data tasks that take turns with another.
    pub rotations: Vec<Rotation>,
    /// Flags set before the program starts, in order of execution.
    pub initial_flags: Vec<InitialFlag>,
    /// Registers loaded before the program starts.
    pub initial_dsrs: Vec<InitialDsr>,
    /// Configuration registers written before the program starts, in order.
    pub initial_config: Vec<InitialConfig>,
    /// Colors configured by the program itself (merged with the layout's by placing).
    pub colors: Vec<LocalColorConfig>,
    /// Links of this PE that are joined to the host.
    pub host_links: Vec<HostLink>,
    /// What the host can name: index into [`crate::image::Image::exports`] and what is bound.
    pub exports: Vec<ExportBinding>,
    /// Entry of a host program: no parameters, no result.
    pub entry: Option<FuncId>,
}

impl Program {
    /// A program that holds nothing yet.
    pub fn empty(name: String, profile: Profile) -> Program {
        Program {
            name,
            profile,
            slots: PrimaryMap::new(),
            globals: PrimaryMap::new(),
            shapes: PrimaryMap::new(),
            fifos: PrimaryMap::new(),
            funcs: PrimaryMap::new(),
            signatures: PrimaryMap::new(),
            tasks: Vec::new(),
            queues: Vec::new(),
            control_table: None,
            rotations: Vec::new(),
            initial_flags: Vec::new(),
            initial_dsrs: Vec::new(),
            initial_config: Vec::new(),
            colors: Vec::new(),
            host_links: Vec::new(),
            exports: Vec::new(),
            entry: None,
        }
    }
}

/// A global variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Global {
    /// Name for reports, symbol tables and memory maps: `module.name` or `name`.
    pub name: String,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes, a power of two.
    pub align: u32,
    /// Initial bytes; shorter than `size` means zeros follow. Without any the variable has no
    /// initial value: it is zero, and reading it before it is written is odd.
    pub init: Vec<u8>,
    /// Addresses to be added into `init` when the program is linked.
    pub relocs: Vec<Reloc>,
    /// Slots written into the initial value per PE: byte offset and slot.
    pub slots: Vec<(u32, SlotId)>,
    /// Readable by name from outside (`export`).
    pub exported: bool,
    /// Place of the declaration.
    pub loc: Loc,
}

/// Adds the address of a global or function into a pointer-sized field of an initial value.
/// The field holds the addend. In a packed descriptor the base address is at its offset 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloc {
    /// Byte offset of the field.
    pub offset: u32,
    /// Whose address.
    pub symbol: Symbol,
}

/// Something with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Symbol {
    /// A global's byte address.
    Global(GlobalId),
    /// A function's code pointer (index plus one).
    Func(FuncId),
}

/// Extents and strides of a mem4d descriptor, outermost dimension first, 1 to 4 of them.
/// Strides are in elements of the operation, each the plain distance between neighbors in
/// that dimension (not the hardware's delta form).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Shape {
    /// Extent and stride per dimension.
    pub dims: Vec<(u16, i16)>,
}

impl Shape {
    /// Number of elements (as the length register counts: modulo nothing, at most 2^64).
    pub fn count(&self) -> u64 {
        self.dims.iter().map(|&(extent, _)| u64::from(extent)).product()
    }
}

/// A FIFO over a global buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fifo {
    /// The buffer.
    pub buffer: GlobalId,
    /// Capacity in elements.
    pub capacity: u16,
    /// Size of an element in bytes: 2 or 4.
    pub element: u8,
    /// Local task activated by a pop after the FIFO was found full.
    pub activate_pop: Option<u8>,
    /// Local task activated by a push after the FIFO was found empty.
    pub activate_push: Option<u8>,
    /// What a pop from the empty FIFO does.
    pub empty: FifoAction,
    /// What a push to the full FIFO does.
    pub full: FifoAction,
    /// Issue priority of asynchronous operations that have none of their own.
    pub priority: Option<Priority>,
    /// Keeps the elements of an operation apart: one per wavelet.
    pub single: bool,
}

/// What an operation does at a full or empty FIFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FifoAction {
    /// A synchronous operation ends, and says so; an asynchronous one waits.
    #[default]
    TestOrSuspend,
    /// The operation ends as if it were complete.
    Terminate,
    /// The operation waits.
    Suspend,
    /// The run ends.
    Fault,
}

/// Binds a function to a task id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskBinding {
    /// How it is started.
    pub kind: TaskKind,
    /// Task id (local, control), color (data task, wse2) or input queue (data task, wse3).
    pub id: u8,
    /// The function: no parameters (local); 0 to 2 scalar parameters (data, control).
    pub func: FuncId,
    /// Place of the binding.
    pub loc: Loc,
}

/// How a task is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaskKind {
    /// By activation.
    Local,
    /// By a data wavelet.
    Data,
    /// By a control wavelet's entry point.
    Control,
}

/// Binds a queue to a color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueBinding {
    /// Input (offramp) or output (onramp) queue.
    pub input: bool,
    /// Queue id.
    pub queue: u8,
    /// The color.
    pub color: Color,
    /// Issue priority of asynchronous operations on it that have none of their own.
    pub priority: Option<Priority>,
    /// Which part of the table of control tasks its wavelets start.
    pub control_table: u8,
    /// Place of the binding.
    pub loc: Loc,
}

impl QueueBinding {
    /// A binding without further settings.
    pub fn new(input: bool, queue: u8, color: Color, loc: Loc) -> QueueBinding {
        QueueBinding { input, queue, color, priority: None, control_table: 0, loc }
    }
}

/// A table of control tasks of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlTable {
    /// Instructions per entry: 2, 4 or 8. Says how much memory it takes.
    pub instructions: u8,
    /// Entries from one queue's part to the next: 1 to 7.
    pub stride: u8,
}

/// A data task that gives way to another at times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// Data task id.
    pub id: u8,
    /// Task that runs instead: a control task id.
    pub other: u8,
    /// Starts of the data task before it does.
    pub limit: u16,
    /// Starts counted before the first.
    pub initial: u16,
}

/// A flag operation done before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitialFlag {
    /// Which.
    pub op: crate::inst::FlagOp,
    /// Task id or channel.
    pub id: u8,
    /// Place.
    pub loc: Loc,
}

/// A register load done before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitialDsr {
    /// The register.
    pub dsr: DsrRef,
    /// The descriptor; a memory base is relative to `symbol`.
    pub dsd: Dsd,
    /// Whose address is added to the base.
    pub symbol: Option<GlobalId>,
    /// Asynchronous settings; `index` is `None`.
    pub options: VectorOptions,
    /// The register's base moves past what an operation covered.
    pub save_address: bool,
    /// Loaded for `@map`.
    pub single_step: bool,
    /// Extended register that holds the rest of it.
    pub xdsr: Option<u8>,
}

/// A write to a configuration register done before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitialConfig {
    /// Word address.
    pub address: u16,
    /// The value.
    pub value: u16,
    /// Place.
    pub loc: Loc,
}

/// A color configured by the program for all its PEs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalColorConfig {
    /// The color.
    pub color: Color,
    /// Its routes and switches.
    pub config: ColorConfig,
    /// Place.
    pub loc: Loc,
}

/// A link joined to the host: wavelets of a color that leave the PE's router through `port`
/// reach the host, or the host injects there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostLink {
    /// Which side of the PE.
    pub port: Port,
    /// The color.
    pub color: Color,
    /// Whether the host sends (true) or receives (false).
    pub to_mesh: bool,
}

/// Binds an export to a program's symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportBinding {
    /// Index into the image's export table: the id that the host sends.
    pub export: u32,
    /// What it names here. A variable export names the global that *holds the pointer* or the
    /// scalar.
    pub symbol: Symbol,
}

/// What a host program can ask for (host profile). Slices are a pointer and a length (`i64`
/// each); rectangles are x, y, width, height (`i64` each).
#[expect(missing_docs, reason = "the line above each form explains its fields")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum HostOp {
    /// `(ptr, len) = input(name)`, elements of `ty`. Sub-operation `HasInput` asks first.
    Input { name: String, ty: ElementType },
    /// `(i8) = has_input(name)`.
    HasInput { name: String },
    /// `output(name, ptr, len)`, elements of `ty`.
    Output { name: String, ty: ElementType },
    /// `(value) = setting(name, default)` of the result's type: `--set name=value`.
    Setting { name: String, ty: ElementType },
    /// `(i8) = has_setting(name)`.
    HasSetting { name: String },
    /// `copy_in(rect, ptr, len)` into the memory behind an exported pointer, elements of `ty`.
    CopyIn { export: u32, ty: Ty },
    /// `(ptr, len) = copy_out(rect, n)`: `n` elements per PE, row by row.
    CopyOut { export: u32, ty: Ty },
    /// `launch(args…)`: runs an exported function on all PEs; returns when all have unblocked.
    Launch { export: u32 },
    /// `stream_in(rect, ptr, len)`: queues wavelets for a streaming color; does not wait.
    StreamIn { color: Color, ty: Ty },
    /// `stream_out(rect, ptr, len)`: queues the reception of `len` wavelets in all (an equal
    /// share per PE of the rectangle) into memory; does not wait.
    StreamOut { color: Color, ty: Ty },
    /// `stream_out_rows(rect, ptr, capacity, counts)`: queues, per row of the rectangle, the
    /// reception of wavelets until a control wavelet ends the row, at most `capacity` elements,
    /// row `r` at `ptr[r * capacity..]`; `counts[r]` (`i64`) is set when the row has ended. Does
    /// not wait.
    StreamOutRows { color: Color, ty: Ty },
    /// Waits until all queued transfers are done.
    Wait,
    /// `(ptr) = alloc(bytes)`, zeroed, 64-byte aligned, freed when the program ends.
    Alloc,
    /// `print(args…)` with the format's pieces; one argument between two pieces.
    Print { pieces: Vec<String>, args: Vec<HostArg> },
    /// `expect(cond)`: a test fails, a run ends with exit code 1, unless it holds. Same
    /// format as `Print` for the message.
    Expect { pieces: Vec<String>, args: Vec<HostArg> },
    /// `(i64) = cycles()` since the start.
    Cycles,
    /// `(f64) = clock()`: the target's clock in Hz.
    ClockRate,
    /// `(i64) = wavelets()` delivered so far.
    Wavelets,
    /// `(f64) = math(x)`: a deterministic function of doubles.
    Math(HostMath),
    /// `(f64) = assumed_share()`: part of the cycles charged so far that rests on assumed constants.
    AssumedShare,
}

/// Functions of doubles offered to host programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostMath {
    /// Base-10 logarithm.
    Log10,
    /// Natural logarithm.
    Log,
    /// Natural exponential.
    Exp,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
}

/// How an argument of a format is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostArg {
    /// Signed integer.
    Signed,
    /// Unsigned integer.
    Unsigned,
    /// Float.
    Float,
    /// Boolean.
    Bool,
    /// Bytes: pointer and length.
    Text,
}
