//! What generated code calls: declared once here, for signatures, symbols and shims.
//!
//! A shim turns the context pointer into a reference, catches panics (they may not pass through
//! generated code) and renews the context's pointers; the work is done by the safe function of
//! the same name in [`super::bodies`].

#![expect(unsafe_code, reason = "shims follow the context pointer")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use cranelift_codegen::ir::{Type, types};

use super::bodies;
use super::context::{Parts, PeContext};

/// Status of a function or helper: done.
pub(super) const DONE: u32 = 0;
/// Status: stopped at a visible act; the caller saves its locals and returns the same.
pub(super) const STOPPED: u32 = 1;
/// Status: trapped; the caller returns the same.
pub(super) const TRAPPED: u32 = 2;

/// A type that passes between generated code and helpers.
trait Passed {
    const TYPE: Type;
    /// What a helper that panicked returns.
    const FAILED: Self;
}

impl Passed for u32 {
    const TYPE: Type = types::I32;
    const FAILED: u32 = TRAPPED;
}

impl Passed for u64 {
    const TYPE: Type = types::I64;
    const FAILED: u64 = 0;
}

/// Does something; should it panic, the context keeps that, and code hears that it failed.
fn guard<R: Passed>(context: &mut PeContext, body: impl FnOnce(&mut Parts<'_>) -> R) -> R {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut parts = context.parts();
        body(&mut parts)
    }));
    context.sync();
    result.unwrap_or_else(|payload| {
        context.keep_panic(payload);
        R::FAILED
    })
}

/// Does what neither panics nor moves what the context points at.
fn note<R>(context: &mut PeContext, body: impl FnOnce(&mut Parts<'_>) -> R) -> R {
    body(&mut context.parts())
}

macro_rules! around {
    () => {
        super::guard
    };
    ($around:ident) => {
        super::$around
    };
}

macro_rules! helpers {
    ($($(#[$doc:meta])* $variant:ident = $name:ident($($arg:ident: $ty:ident),*) -> $ret:ident $(in $around:ident)?;)*) => {
        /// A function that generated code may call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Helper {
            $($(#[$doc])* $variant,)*
        }

        impl Helper {
            /// All helpers, in declaration order.
            pub(super) const ALL: &[Helper] = &[$(Helper::$variant),*];

            /// The symbol's name.
            pub(super) fn name(self) -> &'static str {
                match self {
                    $(Helper::$variant => concat!("dflow_", stringify!($name)),)*
                }
            }

            /// Types of the arguments after the context.
            pub(super) fn params(self) -> &'static [Type] {
                match self {
                    $(Helper::$variant => &[$(<$ty as Passed>::TYPE),*],)*
                }
            }

            /// Type of the result.
            pub(super) fn returns(self) -> Type {
                match self {
                    $(Helper::$variant => <$ret as Passed>::TYPE,)*
                }
            }

            /// Address of the shim.
            pub(super) fn address(self) -> *const u8 {
                match self {
                    $(Helper::$variant => shims::$name as *const u8,)*
                }
            }
        }

        mod shims {
            use super::{PeContext, bodies};
            $(
                pub(super) extern "C" fn $name(context: *mut PeContext $(, $arg: $ty)*) -> $ret {
                    // SAFETY: generated code passes on the context pointer that it was entered
                    // with, which `code.rs` made from a live, unshared `&mut PeContext`.
                    let context = unsafe { &mut *context };
                    around!($($around)?)(context, |parts| bodies::$name(parts $(, $arg)*))
                }
            )*
        }
    };
}

helpers! {
    /// Loads from outside the slab: memory not made yet, or registers; the value is in `result`.
    Load = load(address: u64, bytes: u32, func: u32, inst: u32) -> u32;
    /// Stores to outside the slab.
    Store = store(address: u64, value: u64, bytes: u32, func: u32, inst: u32) -> u32;
    /// Records a write to a configuration register.
    SetConfig = set_config(address: u64, value: u64, func: u32, inst: u32) -> u32;
    /// Stops for the read of a configuration register.
    GetConfig = get_config(address: u64, func: u32, inst: u32, frame: u64) -> u32;
    /// Traps.
    Trap = trap(kind: u32, func: u32, inst: u32) -> u32;
    /// Traps at an index that is too large.
    OutsideArray = outside_array(index: u64, len: u64, func: u32, inst: u32) -> u32;
    /// Issues the operation of a function's vector instruction of this number; operands are in `args`.
    Vector = vector(func: u32, number: u32, frame: u64) -> u32;
    /// Stops for a clock access.
    Clock = clock(func: u32, inst: u32, frame: u64) -> u32;
    /// Stops for a question about the queues.
    Queues = queues(func: u32, inst: u32, frame: u64) -> u32;
    /// Stops for a host operation; arguments are in `args`.
    Host = host(func: u32, inst: u32, frame: u64) -> u32;
    /// Stops at a back edge.
    Yield = pause(func: u32, frame: u64) -> u32;
    /// Records a flag operation at an issue slot.
    Flag = flag(what: u32, slot: u32, file: u32, line: u32, column: u32) -> u32 in note;
    /// Sets which exceptions stop the PE.
    Unmask = unmask(bits: u32) -> u32;
    /// Looks whether a scalar instruction raises one of them.
    Watch = watch(first: u64, second: u64, func: u32, inst: u32) -> u32;
    /// Next pseudo-random word.
    Random = random() -> u32;
    /// Chooses the random generator.
    SetRandom = set_random(id: u32) -> u32;
    /// Copies memory.
    Copy = copy(dst: u64, src: u64, func: u32, inst: u32) -> u32;
    /// Fills memory.
    Fill = fill(dst: u64, value: u64, func: u32, inst: u32) -> u32;
    /// Loads a register.
    LoadDsr = load_dsr(dsd: u64, index: u64, func: u32, inst: u32) -> u32;
    /// Changes a field of a register's descriptor.
    SetDsr = set_dsr(value: u64, func: u32, inst: u32) -> u32;
    /// Sets the length of a FIFO's side.
    FifoLength = fifo_length(length: u64, func: u32, inst: u32) -> u32;
    /// Takes a function's stack slots; their base is in `result`.
    EnterStack = enter_stack(func: u32) -> u32;
    /// The function behind a code pointer; its index is in `result`.
    Callee = callee(pointer: u64, func: u32, inst: u32) -> u32;
    /// A unary operation that has no instruction.
    Unary = unary(op: u32, ty: u32, src: u64) -> u64;
    /// A binary operation that has no instruction.
    Binary = binary(op: u32, ty: u32, lhs: u64, rhs: u64) -> u64;
    /// A conversion that has no instruction.
    Convert = convert(kind: u32, types: u32, src: u64) -> u64;
}

/// Work that is the same on every host and may use wide instructions. `run` is to be marked
/// `#[inline(always)]`: what is not inlined is not made for them.
pub(crate) trait Wide {
    /// Does it; with `FUSED`, [`f32::mul_add`] is one instruction.
    fn run<const FUSED: bool>(self);
}

/// Has the host fetch what a reference leads to into its caches, before it is looked at.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn prefetch<T>(what: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    let first = std::ptr::from_ref(what).cast::<i8>();
    // What is not aligned to a line may end in one more.
    let more = usize::from(align_of::<T>() < 64);
    for line in 0..size_of::<T>().div_ceil(64) + more {
        let at = (64 * line).min(size_of::<T>().saturating_sub(1));
        // SAFETY: a prefetch reads nothing; the address is inside of `what`.
        unsafe { _mm_prefetch(first.add(at), _MM_HINT_T0) };
    }
}

/// Likewise, on hosts that do without.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch<T>(_: &T) {}

/// Does work with the host's wide instructions, if it has them.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn wide(work: impl Wide) {
    #[target_feature(enable = "avx2,fma")]
    fn inner(work: impl Wide) {
        work.run::<true>();
    }
    let wide = std::arch::is_x86_feature_detected!("avx2");
    if wide && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: both features were detected.
        unsafe { inner(work) }
    } else {
        work.run::<false>();
    }
}

/// Does work with the host's instructions.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn wide(work: impl Wide) {
    work.run::<false>();
}
