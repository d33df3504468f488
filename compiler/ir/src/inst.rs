//! Instructions and terminators: the closed set of things a body can do.

use serde::{Deserialize, Serialize};

use crate::dsd::op::DsdOp;
use crate::dsd::{DsrRef, FabricDsd};
use crate::func::{Block, Local, StackSlot};
use crate::program::{FifoId, FuncId, GlobalId, HostOp, ShapeId, SigId, SlotId};
use crate::scalar::{BinaryOp, Convert, UnaryOp};

/// One instruction. Destinations come first.
#[expect(missing_docs, reason = "the line above each form explains its fields")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum InstData {
    /// `dst = bits`, the raw form of the local's type.
    Const { dst: Local, bits: u64 },
    /// `dst =` the PE's value of a slot (a constant that differs between PEs of one program).
    Slot { dst: Local, slot: SlotId },
    /// `dst = src`, same type.
    Copy { dst: Local, src: Local },
    /// `dst = op src`, type of `src`; logical results are `i8`.
    Unary { dst: Local, op: UnaryOp, src: Local },
    /// `dst = lhs op rhs`; comparisons give `i8`. Shift counts are of the left type too.
    Binary { dst: Local, op: BinaryOp, lhs: Local, rhs: Local },
    /// `dst = convert src`; the pair of types must be one that the conversion allows.
    Convert { dst: Local, kind: Convert, src: Local },
    /// `dst = memory[addr + offset]`, of `dst`'s type; `addr` is a pointer. `offset` wraps with
    /// the pointer type.
    Load { dst: Local, addr: Local, offset: i32 },
    /// `memory[addr + offset] = src`.
    Store { addr: Local, offset: i32, src: Local },
    /// Copies `bytes` bytes from `src` to `dst` (pointers); the ranges may overlap (memmove).
    CopyMemory { dst: Local, src: Local, bytes: u32 },
    /// Stores `value` `count` times from `dst` on, step by its size.
    FillMemory { dst: Local, value: Local, count: u32 },
    /// `dst = address of global + offset`.
    GlobalAddress { dst: Local, global: GlobalId, offset: i32 },
    /// `dst = address of stack slot + offset`.
    StackAddress { dst: Local, slot: StackSlot, offset: i32 },
    /// `dst =` code pointer of a function (its index plus one, as pointer).
    FuncAddress { dst: Local, func: FuncId },
    /// Direct call. Suspends if the callee may.
    Call { dst: Option<Local>, func: FuncId, args: Vec<Local> },
    /// Call through a code pointer; traps unless the callee has exactly this signature.
    CallIndirect { dst: Option<Local>, callee: Local, sig: SigId, args: Vec<Local> },
    /// `dst = mem1d{base, extent, stride}`: base `ptr`, extent and stride `i16` (elements).
    MakeMem1d { dst: Local, base: Local, extent: Local, stride: Local, indexed: bool },
    /// `dst = mem4d{base, shape}`.
    MakeMem4d { dst: Local, base: Local, shape: ShapeId, indexed: bool },
    /// `dst =` a fabric descriptor with run-time extent (`i16`).
    MakeFabric { dst: Local, desc: FabricDsd, extent: Local },
    /// `dst = ring{base, extent, wrap}`: walks memory from `base`, and starts there again after
    /// `wrap` elements (`i16`).
    MakeRing { dst: Local, base: Local, extent: Local, wrap: Local },
    /// `dst = src` with its base address moved by `delta` bytes (`i16`), wrapping.
    DsdMoveBase { dst: Local, src: Local, delta: Local },
    /// `dst = src` with another base address (`ptr`).
    DsdSetBase { dst: Local, src: Local, base: Local },
    /// `dst = src` with another extent (`i16`).
    DsdSetExtent { dst: Local, src: Local, extent: Local },
    /// `dst = src` with another stride (`i16`, elements).
    DsdSetStride { dst: Local, src: Local, stride: Local },
    /// A vector operation (rules 6 and 7).
    Vector(Box<VectorInst>),
    /// Loads a descriptor and its settings into a register.
    LoadDsr {
        dsr: DsrRef,
        dsd: Local,
        options: VectorOptions,
        save_address: bool,
        single_step: bool,
        xdsr: Option<u8>,
    },
    /// Changes one field of the descriptor in a register (`i16`).
    SetDsr { dsr: DsrRef, field: DsrField, value: Local },
    /// Sets the length of one side of a FIFO (`i16`).
    SetFifoLength { fifo: FifoId, write_side: bool, length: Local },
    /// Activates, blocks or unblocks; `id` is an `i16` task id, or channel (color or queue).
    Flag { op: FlagOp, id: Local },
    /// `dst` (`i16`) `=` next pseudo-random word of this PE.
    Random { dst: Local },
    /// The random generator that `Random` asks from now on: `id` (`i16`) modulo their number.
    SetRandom { id: Local },
    /// Clock register access. `Read` gives the 48-bit counter as `i64`.
    Clock { op: ClockOp, dst: Option<Local> },
    /// `dst` (`i16`) `=` the configuration register at word address `addr` (`i16`), as of now.
    GetConfig { dst: Local, addr: Local },
    /// Writes `src` (`i16`) to the configuration register at word address `addr` (`i16`).
    SetConfig { addr: Local, src: Local },
    /// `dst` (`i16`) `=` a bit set of queues, as of this cycle.
    Queues { dst: Local, state: QueueState },
    /// Ends the run with a trap (`@assert` and the like) unless `cond` (`i8`) holds.
    Assert { cond: Local, message: String },
    /// Ends the run with a trap unless `index` is less than `len`, compared without signs, both of one
    /// integer type: an index and a length, or an address and an end. Takes no time: the machine looks
    /// at neither.
    Bound { index: Local, len: Local, what: Bounded },
    /// A host operation (host profile only).
    Host { op: HostOp, dsts: Vec<Local>, args: Vec<Local> },
}

/// What is held against a bound, for who is told that it is outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Bounded {
    /// An index that was unsigned, and the elements that there are.
    Unsigned,
    /// An index that had a sign.
    Signed,
    /// The address of an element in bytes, and the first one that is no memory.
    Address,
}

/// What ends a block.
#[expect(missing_docs, reason = "the line above each form explains its fields")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Terminator {
    /// Continue at a block.
    Jump(Block),
    /// Continue at `then` if `cond` (`i8`) is not 0.
    Branch { cond: Local, then: Block, otherwise: Block },
    /// Continue at the block of the case equal to `value` (raw form), else at `otherwise`.
    Switch { value: Local, cases: Vec<(u64, Block)>, otherwise: Block },
    /// Return from the function.
    Return(Option<Local>),
    /// Never reached; reaching it is a trap.
    Unreachable,
}

/// Activation state changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FlagOp {
    /// `@activate` of a local task id.
    Activate,
    /// `@block` of a task id (data tasks: by data task id).
    BlockTask,
    /// `@unblock` of a task id.
    UnblockTask,
    /// `@block` of a channel: a color (wse2) or an input queue (wse3).
    BlockChannel,
    /// `@unblock` of a channel.
    UnblockChannel,
    /// `@block` of a microthread (wse3).
    BlockMicrothread,
    /// `@unblock` of a microthread (wse3).
    UnblockMicrothread,
    /// A task id is picked before those of low priority.
    RaiseTask,
    /// A task id is picked after those of high priority.
    LowerTask,
    /// As `RaiseTask`, for what a channel starts.
    RaiseChannel,
    /// As `LowerTask`, for what a channel starts.
    LowerChannel,
    /// The main thread's place among the priorities of microthreads: a [`MainPriority`] as number.
    MainPriority,
    /// `@queue_flush` of an input queue.
    FlushInput,
    /// `@queue_flush` of an output queue.
    FlushOutput,
    /// Forgets that an input queue was flushed.
    EndFlushInput,
    /// Forgets that an output queue was flushed.
    EndFlushOutput,
    /// What is exclusive-ored to the entry points of control wavelets that pass as data.
    TransformMask,
    /// Which exceptions stop the PE: bits of [`crate::scalar::exception`]. In force for what the
    /// code does next, not from a slot on.
    Exceptions,
    /// An empty input queue takes another color: queue in bits 0 to 7, color in bits 8 to 14, bit
    /// 15 set where the color's filter is passed by.
    BindInput,
    /// An empty output queue carries another color: queue in bits 0 to 7, color in bits 8 to 15.
    BindOutput,
    /// Changes nothing: the PE answers the host before it was asked, which is told. The number is not used.
    AnswerAhead,
}

/// What [`InstData::Queues`] asks of all queues of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum QueueState {
    /// Input queues without a word.
    InputEmpty,
    /// Input queues without a place.
    InputFull,
    /// Output queues without a word.
    OutputEmpty,
    /// Output queues without a place.
    OutputFull,
    /// Input queues that were found empty after a flush.
    InputFlushed,
    /// Output queues that were found empty after a flush.
    OutputFlushed,
}

/// Where the main thread stands among the microthreads' priorities; at the same place it goes
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MainPriority {
    /// After medium, before low.
    #[default]
    MediumLow,
    /// With medium.
    Medium,
    /// Before medium.
    MediumHigh,
    /// With high.
    High,
}

impl MainPriority {
    /// The inverse of `as u16`.
    pub fn from_number(number: u16) -> Option<MainPriority> {
        use MainPriority::{High, Medium, MediumHigh, MediumLow};
        [MediumLow, Medium, MediumHigh, High].get(usize::from(number)).copied()
    }
}

/// A field of the descriptor in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DsrField {
    /// Its base address.
    Base,
    /// Its extent.
    Extent,
    /// No field: single steps through it begin anew, of elements of so many bytes. A trap if the register was not
    /// loaded for them, or its descriptor does with an operation what single steps cannot.
    Steps,
}

/// Clock operations of `<time>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ClockOp {
    /// Start counting, from zero.
    Enable,
    /// Stop counting.
    Disable,
    /// Counter to zero.
    Reset,
    /// Read the counter.
    Read,
    /// Go on counting, from where the counter stands.
    Resume,
    /// Read how many cycles were counted in all: what sets the counter leaves that as it is.
    Total,
}

impl ClockOp {
    /// Whether it reads a number; the others set the counter.
    pub fn reads(self) -> bool {
        match self {
            ClockOp::Read | ClockOp::Total => true,
            ClockOp::Enable | ClockOp::Disable | ClockOp::Reset | ClockOp::Resume => false,
        }
    }
}

/// A vector operation: `dest = op(sources)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VectorInst {
    /// Row of the operation table.
    pub op: DsdOp,
    /// Where results go.
    pub dest: Operand,
    /// As many as the row's shape asks for, in the order they are written in the source.
    pub sources: Vec<Operand>,
    /// Asynchronous settings and the like.
    pub options: VectorOptions,
    /// Receives whether the operation ran to its end (`i8`), if asked for.
    pub result: Option<Local>,
}

/// An operand of a vector operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operand {
    /// A memory descriptor (`i64` local: mem1d or mem4d).
    Memory(Local),
    /// A fabric descriptor (`i64` local: fabin or fabout).
    Fabric(Local),
    /// A descriptor register.
    Dsr(DsrRef),
    /// A FIFO.
    Fifo(FifoId),
    /// A scalar of the element type, broadcast.
    Scalar(Local),
    /// A pointer to one element (destinations only): the last value, or a reduction.
    Pointer(Local),
}

impl Operand {
    /// Whether an operation with this operand may wait for the fabric.
    pub fn may_wait(self) -> bool {
        match self {
            Operand::Fabric(_) | Operand::Dsr(_) | Operand::Fifo(_) => true,
            Operand::Memory(_) | Operand::Scalar(_) | Operand::Pointer(_) => false,
        }
    }
}

/// Options of a vector operation or a register load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VectorOptions {
    /// Runs as a microthread; the main thread goes on.
    pub asynchronous: bool,
    /// Local task activated on completion.
    pub activate: Option<u8>,
    /// What is unblocked on completion.
    pub unblock: Option<Unblock>,
    /// Microthread id, where the target lets the program choose.
    pub microthread: Option<u8>,
    /// Issue priority; without one the operands' or the queue's counts.
    pub priority: Option<Priority>,
    /// `.index`: `i16` local added to indexed descriptors; an `i64` local may hold further settings
    /// ([`crate::dsd::late`]).
    pub index: Option<Local>,
    /// What a control wavelet on the input does to the operation.
    pub on_control: OnControl,
}

impl VectorOptions {
    /// Whether the end of an operation starts or unblocks something.
    #[inline]
    pub fn tells(&self) -> bool {
        self.activate.is_some() || self.unblock.is_some()
    }
}

/// What a completed operation unblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unblock {
    /// A task id.
    Task(u8),
    /// A color (wse2) or an input queue (wse3).
    Channel(u8),
}

/// Issue priority of a microthread against the main thread.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum Priority {
    /// The last.
    #[default]
    Low,
    /// Before low.
    Medium,
    /// The first.
    High,
}

/// `.on_control` of a fabric input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnControl {
    /// Control wavelets go to the control task, the operation goes on.
    #[default]
    Ignore,
    /// The operation ends.
    Terminate,
    /// They are the elements: data are taken and dropped, and nothing is kept of either.
    Count,
    /// The operation ends and activates a local task.
    Activate(u8),
    /// The operation ends and unblocks.
    Unblock(Unblock),
}

impl InstData {
    /// Whether this instruction by itself may stop the main thread (rule 6). Calls are judged
    /// by [`crate::suspend`].
    pub fn suspends(&self) -> bool {
        match self {
            InstData::Vector(vector) => {
                vector.options.asynchronous
                    || vector.dest.may_wait()
                    || vector.sources.iter().any(|source| source.may_wait())
            }
            InstData::Clock { .. }
            | InstData::Queues { .. }
            | InstData::GetConfig { .. }
            | InstData::Host { .. } => true,
            InstData::CallIndirect { .. } => true,
            InstData::Const { .. }
            | InstData::Slot { .. }
            | InstData::Copy { .. }
            | InstData::Unary { .. }
            | InstData::Binary { .. }
            | InstData::Convert { .. }
            | InstData::Load { .. }
            | InstData::Store { .. }
            | InstData::CopyMemory { .. }
            | InstData::FillMemory { .. }
            | InstData::GlobalAddress { .. }
            | InstData::StackAddress { .. }
            | InstData::FuncAddress { .. }
            | InstData::Call { .. }
            | InstData::MakeMem1d { .. }
            | InstData::MakeMem4d { .. }
            | InstData::MakeFabric { .. }
            | InstData::MakeRing { .. }
            | InstData::DsdMoveBase { .. }
            | InstData::DsdSetBase { .. }
            | InstData::DsdSetExtent { .. }
            | InstData::DsdSetStride { .. }
            | InstData::LoadDsr { .. }
            | InstData::SetDsr { .. }
            | InstData::SetRandom { .. }
            | InstData::SetFifoLength { .. }
            | InstData::Flag { .. }
            | InstData::Random { .. }
            | InstData::SetConfig { .. }
            | InstData::Assert { .. }
            | InstData::Bound { .. } => false,
        }
    }
}
