//! Programs after checking: every comptime-known part is a constant, untaken comptime branches
//! are gone, every operation is exact about its machine types.
//!
//! Invariants: nothing here can be wrong for the user any more, so lowering cannot fail.
//! Aggregates are handled by address; functions that return one take a hidden first parameter
//! with the address of the result. Signedness is in the operators.

use dflow_ir::dsd::op::DsdOp;
use dflow_ir::dsd::{Dsd, DsrRef, FabricDsd};
use dflow_ir::inst::{
    Bounded, ClockOp, DsrField, FlagOp, OnControl, Priority, QueueState, Unblock,
};
use dflow_ir::mesh::{Color, ColorConfig};
use dflow_ir::program::{ControlTable, Fifo, HostLink, HostOp, Profile, Rotation, Shape, TaskKind};
use dflow_ir::scalar::{BinaryOp, Convert, UnaryOp};
use dflow_ir::ty::Ty;
use dflow_syntax::Span;

/// Index of a global of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GlobalIdx(pub u32);

/// Index of a function of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FuncIdx(pub u32);

/// Index of a local of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LocalIdx(pub u32);

/// Index of a per-PE constant of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SlotIdx(pub u32);

/// A jump target within a function: a loop or labeled block. Unique within the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LabelIdx(pub u32);

/// A value of several words that code reads where it lies or from a copy. Unique within the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct HoldIdx(pub u32);

/// A checked program. Field for field what [`dflow_ir::program::Program`] holds, with bodies as
/// trees.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Tile or file name.
    pub name: String,
    /// Where it runs.
    pub profile: Profile,
    /// Types of the per-PE constants.
    pub slots: Vec<Ty>,
    /// Global variables.
    pub globals: Vec<Global>,
    /// Shapes of mem4d descriptors.
    pub shapes: Vec<Shape>,
    /// FIFOs; their buffer is a [`GlobalIdx`] as number.
    pub fifos: Vec<Fifo>,
    /// Functions reached from tasks, exports and the entry.
    pub funcs: Vec<Func>,
    /// Bound tasks.
    pub tasks: Vec<TaskBinding>,
    /// Queues bound to colors.
    pub queues: Vec<QueueBinding>,
    /// The table of control tasks, if it is apart.
    pub control_table: Option<ControlTable>,
    /// Data tasks that take turns with others.
    pub rotations: Vec<Rotation>,
    /// Flags set before the start, in order.
    pub initial_flags: Vec<(FlagOp, u8, Span)>,
    /// Registers loaded before the start.
    pub initial_dsrs: Vec<InitialDsr>,
    /// Colors whose filter's id the program asks for.
    pub filter_uses: Vec<(Color, Span)>,
    /// Configuration registers written before the start: word address and value.
    pub initial_config: Vec<(u16, u16, Span)>,
    /// Colors configured by the program itself.
    pub colors: Vec<(Color, ColorConfig, Span)>,
    /// Links joined to the host.
    pub host_links: Vec<(HostLink, Span)>,
    /// Bound exports.
    pub exports: Vec<ExportBinding>,
    /// Entry of a host program.
    pub entry: Option<FuncIdx>,
}

impl Program {
    /// A program that holds nothing.
    pub(crate) fn empty(name: String, profile: Profile) -> Program {
        Program {
            name,
            profile,
            slots: Vec::new(),
            globals: Vec::new(),
            shapes: Vec::new(),
            fifos: Vec::new(),
            funcs: Vec::new(),
            tasks: Vec::new(),
            queues: Vec::new(),
            control_table: None,
            rotations: Vec::new(),
            initial_flags: Vec::new(),
            initial_dsrs: Vec::new(),
            initial_config: Vec::new(),
            filter_uses: Vec::new(),
            colors: Vec::new(),
            host_links: Vec::new(),
            exports: Vec::new(),
            entry: None,
        }
    }
}

/// A global variable.
#[derive(Clone, Debug)]
pub(crate) struct Global {
    /// `module.name` or `name`.
    pub name: String,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Initial bytes; zeros follow.
    pub init: Vec<u8>,
    /// Addresses added into pointer-sized fields: byte offset and symbol.
    pub relocs: Vec<(u32, Symbol)>,
    /// Per-PE constants written at byte offsets.
    pub slots: Vec<(u32, SlotIdx)>,
    /// `export`.
    pub exported: bool,
    /// `linksection`.
    pub section: Option<String>,
    /// The declaration.
    pub span: Span,
}

/// Something with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    /// A global.
    Global(GlobalIdx),
    /// A function.
    Func(FuncIdx),
}

/// A task binding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskBinding {
    /// How it starts.
    pub kind: TaskKind,
    /// Task id, color or queue (see [`dflow_ir::program::TaskBinding::id`]).
    pub id: u8,
    /// The function.
    pub func: FuncIdx,
    /// The binding.
    pub span: Span,
}

/// A queue binding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueBinding {
    /// Input or output queue.
    pub input: bool,
    /// Queue id.
    pub queue: u8,
    /// Color.
    pub color: Color,
    /// Issue priority of asynchronous operations on it.
    pub priority: Option<Priority>,
    /// Which part of the table of control tasks its wavelets start.
    pub control_table: u8,
    /// A further color of the queue, bound while an operation names it (wse2).
    pub further: bool,
    /// The binding.
    pub span: Span,
    /// The import of the library in which it is.
    pub import: Option<Span>,
}

/// A register load before the start.
#[derive(Clone, Debug)]
pub(crate) struct InitialDsr {
    /// The register.
    pub dsr: DsrRef,
    /// Descriptor; a memory base is relative to `symbol`.
    pub dsd: Dsd,
    /// Whose address is added.
    pub symbol: Option<GlobalIdx>,
    /// Settings.
    pub options: Options,
}

/// An export bound to a symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportBinding {
    /// Index into the plan's exports.
    pub export: u32,
    /// What it names.
    pub symbol: Symbol,
    /// The binding.
    pub span: Span,
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct Func {
    /// `module.name` or `name`.
    pub name: String,
    /// Parameters: the first locals, all scalar.
    pub params: u32,
    /// Result.
    pub ret: Option<Ty>,
    /// Locals.
    pub locals: Vec<Local>,
    /// Number of labels used.
    pub labels: u32,
    /// How arrays and structs come and go.
    pub passing: Passing,
    /// Code.
    pub body: Vec<Stmt>,
    /// The declaration.
    pub span: Span,
}

/// How a function takes and gives arrays and structs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passing {
    /// The first parameter is the address of the result: fresh memory of the caller.
    pub result: bool,
    /// Parameters that are addresses of values, which nobody writes while the function runs.
    pub values: Vec<LocalIdx>,
    /// Number of [`HoldIdx`] used; none after [`crate::hold::settle`].
    pub holds: u32,
}

/// A local variable.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    /// Name for dumps; temporaries have none.
    pub name: Option<String>,
    /// Scalar, or memory of a size and alignment.
    pub kind: LocalKind,
}

/// Where a local lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalKind {
    /// In an IR local.
    Scalar(Ty),
    /// On the stack: aggregates, and scalars whose address is taken. Zero at function entry.
    Memory {
        /// Bytes.
        size: u32,
        /// Bytes, a power of two.
        align: u32,
    },
    /// In the memory of an earlier one, which is out of use while this one is in use.
    Within(LocalIdx),
}

/// A statement and its place.
#[derive(Clone, Debug)]
pub(crate) struct Stmt {
    /// What.
    pub kind: StmtKind,
    /// Where.
    pub span: Span,
}

/// The statements.
#[derive(Clone, Debug)]
pub(crate) enum StmtKind {
    /// Evaluates and drops (calls, vector operations; `ty` may be `None`).
    Expr(Expr),
    /// Writes a scalar local.
    Set(LocalIdx, Expr),
    /// Writes `value` to memory at `address + offset`.
    Store { address: Expr, offset: i32, value: Expr },
    /// Copies `bytes` bytes between addresses (may overlap).
    Copy { dest: Expr, source: Expr, bytes: u32 },
    /// From here on the hold stands for what is at `source` now. Gone after [`crate::hold::settle`].
    Hold { hold: HoldIdx, source: Expr, bytes: u32, align: u32 },
    /// Stores `value` `count` times from `dest` on.
    Fill { dest: Expr, value: Expr, count: u32 },
    /// Two ways.
    If { cond: Expr, then: Vec<Stmt>, otherwise: Vec<Stmt> },
    /// `while (cond) : (step) body`; `continue` goes to the step.
    While { label: LabelIdx, cond: Expr, step: Vec<Stmt>, body: Vec<Stmt> },
    /// A block that `break` leaves.
    Block { label: LabelIdx, body: Vec<Stmt> },
    /// Cases with raw values.
    Switch { value: Expr, cases: Vec<(Vec<u64>, Vec<Stmt>)>, otherwise: Vec<Stmt> },
    /// Leaves a loop or block.
    Break(LabelIdx),
    /// To the step of a loop.
    Continue(LabelIdx),
    /// Leaves the function.
    Return(Option<Expr>),
    /// Activates, blocks, unblocks.
    Flag { op: FlagOp, id: Expr },
    /// Loads a register.
    LoadDsr { dsr: DsrRef, dsd: Expr, options: Options },
    /// Changes a field of the descriptor in a register.
    SetDsr { dsr: DsrRef, field: DsrField, value: Expr },
    /// Chooses the random generator.
    SetRandom(Expr),
    /// Length of one side of a FIFO.
    SetFifoLength { fifo: u32, write_side: bool, length: Expr },
    /// Clock control (not `Read`).
    Clock(ClockOp),
    /// Writes a configuration register.
    SetConfig { addr: Expr, value: Expr },
    /// Traps unless true.
    Assert { cond: Expr, message: String },
    /// A host operation with any number of results.
    Host { op: HostOp, dests: Vec<LocalIdx>, args: Vec<Expr> },
}

impl Stmt {
    /// The lists of statements within it, in the order in which they run.
    pub(crate) fn bodies(&self) -> Vec<&[Stmt]> {
        match &self.kind {
            StmtKind::If { then, otherwise, .. } => vec![then, otherwise],
            StmtKind::While { step, body, .. } => vec![body, step],
            StmtKind::Block { body, .. } => vec![body],
            StmtKind::Switch { cases, otherwise, .. } => {
                cases.iter().map(|(_, body)| body).chain([otherwise]).map(Vec::as_slice).collect()
            }
            StmtKind::Expr(_)
            | StmtKind::Set(..)
            | StmtKind::Store { .. }
            | StmtKind::Copy { .. }
            | StmtKind::Hold { .. }
            | StmtKind::Fill { .. }
            | StmtKind::Break(_)
            | StmtKind::Continue(_)
            | StmtKind::Return(_)
            | StmtKind::Flag { .. }
            | StmtKind::LoadDsr { .. }
            | StmtKind::SetDsr { .. }
            | StmtKind::SetRandom(_)
            | StmtKind::SetFifoLength { .. }
            | StmtKind::Clock(_)
            | StmtKind::SetConfig { .. }
            | StmtKind::Assert { .. }
            | StmtKind::Host { .. } => Vec::new(),
        }
    }

    /// Does something with each of these lists.
    pub(crate) fn change_bodies(&mut self, change: &mut dyn FnMut(&mut Vec<Stmt>)) {
        match &mut self.kind {
            StmtKind::If { then, otherwise, .. } => [then, otherwise].into_iter().for_each(change),
            StmtKind::While { step, body, .. } => [body, step].into_iter().for_each(change),
            StmtKind::Block { body, .. } => change(body),
            StmtKind::Switch { cases, otherwise, .. } => {
                cases.iter_mut().map(|(_, body)| body).chain([otherwise]).for_each(change);
            }
            _ => {}
        }
    }
}

/// An expression: always scalar (or without value, for calls).
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    /// What.
    pub kind: Box<ExprKind>,
    /// Machine type; `None` for calls without result.
    pub ty: Option<Ty>,
    /// Where.
    pub span: Span,
}

/// The expressions.
#[derive(Clone, Debug)]
pub(crate) enum ExprKind {
    /// Raw bits.
    Const(u64),
    /// A per-PE constant.
    Slot(SlotIdx),
    /// A scalar local.
    Local(LocalIdx),
    /// Memory at `address + offset`.
    Load { address: Expr, offset: i32 },
    /// Address of a global.
    GlobalAddress { global: GlobalIdx, offset: i32 },
    /// Address of a memory local.
    LocalAddress { local: LocalIdx, offset: i32 },
    /// Address of a part of a hold: `source` if that is read where it lies, else `offset` (and `index`, bytes both)
    /// from the copy's start. Gone after [`crate::hold::settle`].
    Held { hold: HoldIdx, source: Expr, offset: i32, index: Option<Expr> },
    /// Code pointer.
    FuncAddress(FuncIdx),
    /// One operand.
    Unary(UnaryOp, Expr),
    /// Two operands of one type.
    Binary(BinaryOp, Expr, Expr),
    /// To `ty`.
    Convert(Convert, Expr),
    /// The first, an index or an address, which is held against the second, a length or an end: compared without signs,
    /// of one integer type.
    Bound(Bounded, Expr, Expr),
    /// A direct call.
    Call { func: FuncIdx, args: Vec<Expr> },
    /// A call through a pointer.
    CallIndirect { callee: Expr, params: Vec<Ty>, args: Vec<Expr> },
    /// A mem1d descriptor: base address, extent, stride (elements). Here and below nothing is written through one that
    /// is `constant`.
    Mem1d { base: Expr, extent: Expr, stride: Expr, indexed: bool, constant: bool },
    /// A mem4d descriptor: base address, index into the program's shapes.
    Mem4d { base: Expr, shape: u32, indexed: bool, constant: bool },
    /// A fabric descriptor.
    Fabric { desc: FabricDsd, extent: Expr },
    /// A vector that starts again: base address, extent, elements to the next start.
    Ring { base: Expr, extent: Expr, wrap: Expr, constant: bool },
    /// A descriptor with its base moved by bytes.
    MoveBase { dsd: Expr, delta: Expr },
    /// With another base.
    SetBase { dsd: Expr, base: Expr, constant: bool },
    /// With another extent.
    SetExtent { dsd: Expr, extent: Expr },
    /// With another stride.
    SetStride { dsd: Expr, stride: Expr },
    /// A vector operation; its value is whether it ran to its end.
    Vector(Box<Vector>),
    /// The next pseudo-random word.
    Random,
    /// The cycle counter, or what it has counted in all, `i64`.
    ClockRead(ClockOp),
    /// A configuration register, `i16`.
    GetConfig(Expr),
    /// A bit set of queues, `i16`.
    Queues(QueueState),
}

/// A vector operation.
#[derive(Clone, Debug)]
pub(crate) struct Vector {
    /// The row.
    pub op: DsdOp,
    /// Destination.
    pub dest: Operand,
    /// Sources in written order.
    pub sources: Vec<Operand>,
    /// Settings.
    pub options: Options,
}

/// An operand of a vector operation.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    /// A memory descriptor.
    Memory(Expr),
    /// A fabric descriptor.
    Fabric(Expr),
    /// A register.
    Dsr(DsrRef),
    /// A FIFO.
    Fifo(u32),
    /// A scalar.
    Scalar(Expr),
    /// A pointer to one element.
    Pointer(Expr),
}

/// Settings of a vector operation or register load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Runs as a microthread.
    pub asynchronous: bool,
    /// Activated on completion.
    pub activate: Option<u8>,
    /// Unblocked on completion.
    pub unblock: Option<Unblock>,
    /// Microthread id.
    pub microthread: Option<u8>,
    /// Issue priority.
    pub priority: Option<Priority>,
    /// `.index`.
    pub index: Option<Expr>,
    /// Control wavelets on the input.
    pub on_control: OnControl,
    /// Register loads: the base moves past what an operation covered.
    pub save_address: bool,
    /// Register loads: for `@map`.
    pub single_step: bool,
    /// Register loads: the extended register.
    pub xdsr: Option<u8>,
}
