//! Running code of a PE's main thread, up to the next act that others can see.
//!
//! A code engine (interpreter or generated code) runs a *segment*: everything from where the
//! main thread stands to its next visible act ([`Stop`]). The segment's memory effects happen
//! at once, at its first issue slot; its cycles are then spent slot by slot by the scheduler,
//! which applies the recorded flag operations at their offsets and finally performs the stop.
//! Invariants: a segment's result depends on the PE's own state only; both engines give the
//! same segment bit for bit (cycles, flags, stop, memory, frames).

use dflow_ir::cost::Slots;
use dflow_ir::dsd::op::DsdOp;
use dflow_ir::func::Local;
use dflow_ir::inst::{Bounded, ClockOp, FlagOp, OnControl, Priority, QueueState, Unblock};
use dflow_ir::loc::Loc;
use dflow_ir::program::FuncId;
use dflow_ir::scalar::exception::Exception;
use dflow_ir::ty::Ty;

pub(crate) mod dsrs;
pub mod fifo;
pub mod interp;
pub mod memory;
pub mod odd;
pub mod program;
pub(crate) mod random;
pub mod registers;
#[cfg(test)]
pub(crate) mod seen;
pub mod state;
pub mod vector;

pub use program::LoadedProgram;
pub use registers::{NoRegisters, Passing, Registers};
pub use state::{PeState, finish_host_call};
pub use vector::{Block, FifoCheck, SharedStart, Stepped, VectorArgs, VectorState};

/// Runs segments of one program on any PE. Engines are interchangeable, also between two
/// segments of one main thread.
pub trait CodeEngine: Send + Sync {
    /// Runs from `entry` to the next visible act; the segment is written into `out`, whose
    /// buffers are used again. `slots` are the PE's slot values, as many as the program has;
    /// `registers` what loads beyond the memory see.
    fn run_with(
        &self,
        program: &LoadedProgram,
        state: &mut PeState,
        slots: &[u64],
        entry: Entry<'_>,
        registers: &dyn Registers,
        out: &mut Segment,
    );

    /// Runs a function from its start with these arguments, one after the other, as long as each run comes to
    /// its end in as many slots as are expected, without an act. How many were run; what the last of them came
    /// to stands in `out` then.
    fn run_each(
        &self,
        program: &LoadedProgram,
        state: &mut PeState,
        slots: &[u64],
        each: Each<'_>,
        registers: &dyn Registers,
        out: &mut Segment,
    ) -> usize {
        each_like(each, out, |entry, out| {
            self.run_with(program, state, slots, entry, registers, out);
        })
    }

    /// Functions that were compiled to native code for it.
    fn compiled(&self) -> usize {
        0
    }

    /// The same for code without configuration registers.
    fn run(
        &self,
        program: &LoadedProgram,
        state: &mut PeState,
        slots: &[u64],
        entry: Entry<'_>,
        out: &mut Segment,
    ) {
        self.run_with(program, state, slots, entry, &NoRegisters, out);
    }
}

/// Runs of one function, with raw argument values: as many of each as it has.
#[derive(Clone, Copy, Debug)]
pub struct Each<'a> {
    /// The function.
    pub func: FuncId,
    /// Arguments of each run.
    pub args: &'a [[u64; 2]],
    /// Number of arguments.
    pub count: usize,
    /// Slots that each is expected to take.
    pub like: Slots,
}

impl<'a> Each<'a> {
    /// The arguments of each run.
    pub(crate) fn runs(self) -> impl Iterator<Item = &'a [u64]> {
        self.args.iter().map(move |args| &args[..self.count])
    }
}

/// [`CodeEngine::run_each`], one run at a time.
pub(crate) fn each_like(
    each: Each<'_>,
    out: &mut Segment,
    mut run: impl FnMut(Entry<'_>, &mut Segment),
) -> usize {
    for (count, args) in (1..).zip(each.runs()) {
        run(Entry::Start { func: each.func, args }, out);
        if !out.is_plain(each.like) {
            return count;
        }
    }
    each.args.len()
}

/// Where a run of code begins.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// At the start of a task's function, with raw argument values.
    Start { func: FuncId, args: &'a [u64] },
    /// After the visible act that stopped it; `value` goes to the act's destination, if it has
    /// one (whether a vector operation ran to its end, the clock, nothing).
    Resume { value: u64 },
}

/// Cycles a main thread may run before it must yield at the next loop back edge
/// (spec/time.md). Part of the semantics: the same for every engine.
pub const SEGMENT_BUDGET: u32 = 1024;

/// Cycles a segment may take in all; only calls without end get there (loops yield).
pub const SEGMENT_LIMIT: u32 = 1 << 26;

/// Something a segment does that takes effect in a slot of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotAct {
    /// Slot offset from the segment's start.
    pub slot: u32,
    /// What is done.
    pub what: ActKind,
    /// Where in the source.
    pub loc: Loc,
}

/// What a [`SlotAct`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActKind {
    /// A flag operation on a task, channel or microthread.
    Flag {
        /// What is done.
        op: FlagOp,
        /// To which.
        id: u16,
    },
    /// A write to a configuration register.
    Write {
        /// Its word address.
        address: u16,
        /// The value.
        value: u16,
    },
    /// Something legal and odd has been done.
    Odd(odd::Odd),
}

impl ActKind {
    /// A flag operation; one that changes nothing is told.
    pub(crate) fn of_flag(op: FlagOp, id: u16) -> ActKind {
        match op {
            FlagOp::AnswerAhead => ActKind::Odd(odd::Odd::AnswerAhead),
            _ => ActKind::Flag { op, id },
        }
    }
}

/// What running code gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Issue slots that the segment takes.
    pub cycles: u32,
    /// Those of them that rest on constants which nobody has published.
    pub assumed: u32,
    /// What takes effect in a slot of its own, in order.
    pub acts: Vec<SlotAct>,
    /// Why it stopped.
    pub stop: Stop,
}

impl Default for Segment {
    fn default() -> Segment {
        Segment { cycles: 0, assumed: 0, acts: Vec::new(), stop: Stop::Return }
    }
}

impl Segment {
    /// Its issue slots.
    pub(crate) fn slots(&self) -> Slots {
        Slots { all: self.cycles, assumed: self.assumed }
    }

    /// Whether it is a function's end after so many slots, without an act.
    pub(crate) fn is_plain(&self, slots: Slots) -> bool {
        matches!(self.stop, Stop::Return) && self.acts.is_empty() && self.slots() == slots
    }

    /// It ends with a return, as most do that are emptied: then there is nothing to drop.
    #[inline]
    pub(crate) fn returns(&mut self) {
        if !matches!(self.stop, Stop::Return) {
            self.stop = Stop::Return;
        }
    }

    /// Empties it for another run; buffers stay.
    #[inline]
    pub(crate) fn clear(&mut self) {
        (self.cycles, self.assumed) = (0, 0);
        self.acts.clear();
        self.returns();
    }
}

/// The visible act that ended a segment.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The task's function has returned.
    Return,
    /// A vector operation that others can see starts.
    Vector(SharedStart),
    /// A clock register access.
    Clock(ClockOp),
    /// A configuration register is read.
    Config(ConfigRead),
    /// A question about the queues.
    Queues(QueueState),
    /// The budget is used up inside a loop; resume after one slot.
    Yield,
    /// A host operation (host programs): index of the function and instruction, and raw
    /// arguments; results are given by the resume.
    Host(HostCall),
    /// The program did something forbidden.
    Trap(CodeTrap),
}

/// A read of a configuration register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigRead {
    /// Its word address.
    pub address: u16,
    /// Where in the source.
    pub loc: Loc,
}

/// A host operation asked for by a host program.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCall {
    /// Function that holds the instruction.
    pub func: FuncId,
    /// The instruction (its `HostOp` says what is asked).
    pub inst: dflow_ir::func::Inst,
    /// Raw argument values.
    pub args: Vec<u64>,
    /// Where the results go (locals of the suspended function).
    pub dsts: Vec<Local>,
}

/// A trap raised by code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeTrap {
    /// What happened.
    pub kind: CodeTrapKind,
    /// Where in the source.
    pub loc: Loc,
}

/// What code can do wrong by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeTrapKind {
    /// An access at this byte address, outside the PE's memory.
    OutsideMemory { address: u64, bytes: u32 },
    /// No configuration register at this word address.
    NoRegister { address: u16 },
    /// An access that a configuration register does not take; its word address, and why.
    BadRegister { address: u16, why: &'static str },
    /// Integer division by zero.
    DivideByZero,
    /// An exception that the program does not mask.
    Exception(Exception),
    /// `@assert` failed; its message.
    Assertion(String),
    /// An index (of 64 bits, with its sign if it has one) that is not below the length of what it is an index of; or
    /// the address of an element behind the memory.
    Outside { what: Bounded, index: u64, len: u64 },
    /// A call through something that is no function of that signature.
    BadCall { pointer: u64 },
    /// The stack would run into the data.
    StackOverflow,
    /// A vector operation on a register, FIFO or descriptor that does not fit it; says why.
    BadVector(&'static str),
    /// Control reached a place it cannot reach.
    Unreachable,
    /// Calls went on for [`SEGMENT_LIMIT`] cycles without a visible act.
    SegmentTooLong,
}

impl CodeTrapKind {
    /// What is not below a bound, both of type `ty`.
    pub(crate) fn outside(what: Bounded, index: u64, len: u64, ty: Ty) -> CodeTrapKind {
        let above = 64 - ty.bits();
        let index = match what {
            Bounded::Signed => ((index << above) as i64 >> above) as u64,
            Bounded::Unsigned | Bounded::Address => index,
        };
        CodeTrapKind::Outside { what, index, len }
    }
}

impl std::fmt::Display for CodeTrapKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CodeTrapKind::OutsideMemory { address, bytes } => {
                write!(f, "access of {bytes} bytes at address {address:#x}, outside the memory")
            }
            CodeTrapKind::NoRegister { address } => {
                write!(f, "there is no configuration register at word address {address:#06x}")
            }
            CodeTrapKind::BadRegister { address, why } => {
                write!(f, "configuration register {address:#06x} {why}")
            }
            CodeTrapKind::DivideByZero => f.write_str("integer division by zero"),
            CodeTrapKind::Exception(exception) => {
                write!(f, "exception {} ({})", exception.name(), exception.meaning())
            }
            CodeTrapKind::Assertion(message) => write!(f, "assertion failed: {message}"),
            CodeTrapKind::Outside { what: Bounded::Address, index: address, .. } => {
                write!(f, "an element at address {address:#x}, outside the memory")
            }
            CodeTrapKind::Outside { what, index, len } => {
                match what {
                    Bounded::Signed => write!(f, "index {}", *index as i64)?,
                    Bounded::Unsigned | Bounded::Address => write!(f, "index {index}")?,
                }
                let elements = if *len == 1 { "element" } else { "elements" };
                write!(f, " is outside an array of {len} {elements}")
            }
            CodeTrapKind::BadCall { pointer } => {
                write!(f, "call through {pointer:#x}, which is no function of this type")
            }
            CodeTrapKind::StackOverflow => f.write_str("stack overflow"),
            CodeTrapKind::BadVector(why) => write!(f, "bad vector operation: {why}"),
            CodeTrapKind::Unreachable => f.write_str("unreachable code was reached"),
            CodeTrapKind::SegmentTooLong => f.write_str("calls went on without end"),
        }
    }
}

/// A vector operation ready to go: operands resolved, length known.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorStart {
    /// Row of the operation table.
    pub op: DsdOp,
    /// Destination.
    pub dest: Stream,
    /// Sources in written order; unused ones are [`Stream::None`].
    pub sources: [Stream; 3],
    /// Elements to do; `None` is without end.
    pub length: Option<u32>,
    /// Runs as a microthread.
    pub asynchronous: bool,
    /// Microthread it occupies (asynchronous operations).
    pub microthread: u8,
    /// Local task activated on completion.
    pub activate: Option<u8>,
    /// Unblocked on completion.
    pub unblock: Option<Unblock>,
    /// Issue priority, if the operation or an operand names one.
    pub priority: Option<Priority>,
    /// Two elements share a wavelet.
    pub packed: bool,
    /// Vector in memory that is cleared at the end: index into `sources`.
    pub zero: Option<u8>,
    /// What a control wavelet on the input does.
    pub on_control: OnControl,
    /// Where in the source.
    pub loc: Loc,
}

/// Where the elements of an operand come from or go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stream {
    /// No operand.
    None,
    /// Memory, walked by a cursor.
    Memory(MemoryStream),
    /// An input queue. With `transform` control wavelets are elements too, and marked.
    Input { queue: u8, color: u8, transform: bool },
    /// An output queue. `index` fills the upper half of 16-bit elements. With `transform` marked
    /// elements leave as control wavelets.
    Output {
        queue: u8,
        color: u8,
        control: bool,
        index: u16,
        advance_switch: bool,
        transform: bool,
    },
    /// A FIFO: push as destination, pop as source.
    Fifo { fifo: u16 },
    /// A scalar, raw.
    Scalar(u32),
    /// Memory at one address: reduction accumulator and last value.
    Pointer { address: u16 },
}

/// A walk over memory, and the register it came from (written back at the end if it saves its
/// address).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryStream {
    /// Packed descriptor at the start.
    pub dsd: dflow_ir::dsd::Dsd,
    /// Element size in bytes.
    pub element: u8,
    /// Where in a ring it starts, in elements from the base.
    pub moved: u16,
    /// Register that is moved past what was covered.
    pub save: Option<dflow_ir::dsd::DsrRef>,
}
