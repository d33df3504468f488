//! The words of closed sets: one list serves both directions.

use crate::inst::{Bounded, ClockOp, DsrField, FlagOp, Priority, QueueState};
use crate::mesh::{PopMode, Port};
use crate::program::{FifoAction, HostArg, HostMath, Profile, TaskKind};
use crate::scalar::{BinaryOp, Convert, UnaryOp};

/// A set whose members have a word each.
pub(super) trait Word: Copy + Sized + 'static {
    /// What a member is called in an error.
    const WHAT: &'static str;
    /// All members.
    const ALL: &'static [Self];
    /// The word.
    fn word(self) -> &'static str;
    /// The member of a word.
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|member| member.word() == word)
    }
}

macro_rules! words {
    ($what:literal $set:ty { $($member:ident = $word:literal),* $(,)? }) => {
        impl Word for $set {
            const WHAT: &'static str = $what;
            const ALL: &'static [$set] = &[$(<$set>::$member),*];
            fn word(self) -> &'static str {
                match self { $(<$set>::$member => $word),* }
            }
        }
    };
}

words!("unary operation" UnaryOp {
    Neg = "neg", BitNot = "bitnot", Not = "not", Abs = "abs", Sqrt = "sqrt", Floor = "floor",
    Ceil = "ceil", Clz = "clz", Ctz = "ctz", Popcnt = "popcnt",
});

words!("binary operation" BinaryOp {
    Add = "add", Sub = "sub", Mul = "mul", Div = "div", DivS = "div_s", DivU = "div_u",
    RemS = "rem_s", RemU = "rem_u", And = "and", Or = "or", Xor = "xor", Shl = "shl",
    ShrS = "shr_s", ShrU = "shr_u", Max = "max", Min = "min", Eq = "eq", Ne = "ne", LtS = "lt_s",
    LtU = "lt_u", LtF = "lt_f", LeS = "le_s", LeU = "le_u", LeF = "le_f",
});

words!("conversion" Convert {
    Truncate = "truncate", SignExtend = "extend_s", ZeroExtend = "extend_u", Bitcast = "bitcast",
    FloatFromSigned = "float_from_s", FloatFromUnsigned = "float_from_u",
    SignedFromFloat = "s_from_float", UnsignedFromFloat = "u_from_float",
    FloatFromFloat = "float_from_float", Bool = "bool",
});

words!("flag operation" FlagOp {
    Activate = "activate", BlockTask = "block_task", UnblockTask = "unblock_task",
    BlockChannel = "block_channel", UnblockChannel = "unblock_channel",
    BlockMicrothread = "block_microthread", UnblockMicrothread = "unblock_microthread",
    RaiseTask = "raise_task", LowerTask = "lower_task", RaiseChannel = "raise_channel",
    LowerChannel = "lower_channel", MainPriority = "main_priority", FlushInput = "flush_input",
    FlushOutput = "flush_output", EndFlushInput = "end_flush_input",
    EndFlushOutput = "end_flush_output", TransformMask = "transform_mask", Exceptions = "exceptions", BindInput = "bind_input", BindOutput = "bind_output", AnswerAhead = "answer_ahead",
});

words!("clock operation" ClockOp {
    Enable = "enable", Disable = "disable", Reset = "reset", Read = "read", Resume = "resume", Total = "total",
});

words!("state of queues" QueueState {
    InputEmpty = "input_empty", InputFull = "input_full", OutputEmpty = "output_empty",
    OutputFull = "output_full", InputFlushed = "input_flushed", OutputFlushed = "output_flushed",
});

words!("field of a register" DsrField { Base = "base", Extent = "extent", Steps = "steps" });

words!("kind of bound" Bounded {
    Unsigned = "unsigned", Signed = "signed", Address = "address",
});

words!("action of a FIFO" FifoAction {
    TestOrSuspend = "test_or_suspend", Terminate = "terminate", Suspend = "suspend",
    Fault = "fault",
});

words!("priority" Priority { Low = "low", Medium = "medium", High = "high" });

words!("function of doubles" HostMath {
    Log10 = "log10", Log = "log", Exp = "exp", Sin = "sin", Cos = "cos",
});

words!("kind of argument" HostArg {
    Signed = "signed", Unsigned = "unsigned", Float = "float", Bool = "bool", Text = "text",
});

words!("kind of task" TaskKind { Local = "local", Data = "data", Control = "control" });

words!("profile" Profile { Pe = "pe", Host = "host" });

words!("port" Port {
    West = "WEST", East = "EAST", South = "SOUTH", North = "NORTH", Ramp = "RAMP",
});

words!("pop mode" PopMode {
    None = "never", Always = "always", OnAdvance = "on_advance",
    OnAdvanceOrNop = "on_advance_or_nop",
});
