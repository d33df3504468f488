//! What generated code sees: one structure, read and written at fixed offsets.
//!
//! Invariants: the layout is C's and every offset used by generated code comes from
//! [`std::mem::offset_of`]; the pointers are those of the state behind the context and are
//! renewed ([`PeContext::sync`]) after anything that may move what they point at; a context
//! lives for one call of the engine, which runs one segment or several, one after the other.

#![expect(unsafe_code, reason = "the context's pointers are followed here")]

use std::any::Any;
use std::mem::offset_of;

use dflow_ir::cost::Slots;

use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;
use crate::exec::{Registers, Segment, VectorArgs};

/// The context of a run. Fields above the line are read by generated code. Fields that are copied from two which lie
/// side by side in a state are kept apart here: one wide store that is read in halves at once would hold the host up.
#[repr(C)]
pub(super) struct PeContext {
    /// First byte of the PE's memory.
    pub(super) memory: *mut u8,
    /// First word of the frames.
    pub(super) frames: *mut u64,
    /// Bytes of memory there, at least 8.
    pub(super) memory_len: u64,
    /// The PE's slot values.
    pub(super) slots: *const u64,
    /// Address of each function.
    pub(super) codes: *const usize,
    /// Buffer for arguments of helpers and entries.
    pub(super) args: *mut u64,
    /// Value that a resume brings.
    pub(super) value: u64,
    /// Result of a helper.
    pub(super) result: u64,
    /// PE stack pointer.
    pub(super) sp: u64,
    /// Issue slots so far, packed ([`Slots::packed`]).
    pub(super) cycles: u64,
    /// 1 while frames are re-entered.
    pub(super) resuming: u32,
    // ---- below: helpers only ----
    state: *mut PeState,
    program: *const LoadedProgram,
    out: *mut Segment,
    registers: *const (dyn Registers + 'static),
    panic: Option<Box<dyn Any + Send>>,
}

/// The parts of a context that helpers work on, borrowed apart from each other.
pub(super) struct Parts<'a> {
    pub(super) program: &'a LoadedProgram,
    pub(super) state: &'a mut PeState,
    pub(super) out: &'a mut Segment,
    pub(super) registers: &'a dyn Registers,
    pub(super) args: &'a [u64],
    pub(super) cycles: &'a mut u64,
    pub(super) result: &'a mut u64,
    pub(super) sp: &'a mut u64,
}

impl<'a> Parts<'a> {
    /// Operands of a vector instruction, where generated code has put them: a host that loads two at once, to copy
    /// them, waits until both stores are through.
    #[inline]
    pub(super) fn vector_args(&self) -> Option<&'a VectorArgs> {
        const {
            assert!(size_of::<VectorArgs>() == size_of::<[u64; 5]>());
            assert!(offset_of!(VectorArgs, dest) == 0 && offset_of!(VectorArgs, sources) == 8);
            assert!(offset_of!(VectorArgs, index) == 32);
        };
        let words: &[u64; 5] = self.args.first_chunk()?;
        // SAFETY: `VectorArgs` is of C's layout and consists of five `u64` (the assertion above), like `words`.
        Some(unsafe { &*std::ptr::from_ref(words).cast() })
    }
}

/// What a run sees beside program and state.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    /// The PE's slot values.
    pub(super) slots: &'a [u64],
    /// Address of each function.
    pub(super) codes: &'a [usize],
    /// What loads beyond the memory see.
    pub(super) registers: &'a dyn Registers,
}

impl PeContext {
    /// A context for one call of the engine. `args` holds at least `program.args_len()` words.
    pub(super) fn new(
        program: &LoadedProgram,
        state: &mut PeState,
        around: Around<'_>,
        args: &mut [u64],
        out: &mut Segment,
    ) -> PeContext {
        let Around { slots, codes, registers } = around;
        assert!(slots.len() >= program.program().slots.len(), "a value per slot");
        assert!(args.len() >= program.args_len(), "room for arguments");
        let mut context = PeContext {
            memory: std::ptr::null_mut(),
            memory_len: 0,
            frames: std::ptr::null_mut(),
            slots: slots.as_ptr(),
            codes: codes.as_ptr(),
            args: args.as_mut_ptr(),
            value: 0,
            result: 0,
            sp: state.sp,
            cycles: 0,
            resuming: 0,
            state,
            program,
            out,
            // SAFETY: only the lifetime changes, between pointers of one layout; the context lives
            // for one call, and what it was made from outlives that.
            registers: unsafe {
                std::mem::transmute::<*const (dyn Registers + '_), *const (dyn Registers + 'static)>(
                    registers,
                )
            },
            panic: None,
        };
        context.sync();
        context
    }

    /// Another run begins, with these arguments.
    pub(super) fn start(&mut self, sp: u64, args: &[u64]) {
        // SAFETY: `args` points to `args_len` words (the assertion in `new`) of a buffer that the caller of `new` holds
        // for as long as the context lives; no other reference to them is alive: `Parts` never leave the call that
        // made them.
        let buffer = unsafe {
            let program = &*self.program;
            std::slice::from_raw_parts_mut(self.args, program.args_len())
        };
        for (word, &arg) in buffer.iter_mut().zip(args) {
            *word = arg;
        }
        (self.sp, self.cycles) = (sp, 0);
    }

    /// Whether the run that returned took so many slots and left no acts.
    pub(super) fn is_plain(&mut self, slots: Slots) -> bool {
        self.cycles == slots.packed() && self.parts().out.acts.is_empty()
    }

    /// Renews the pointers into the state.
    pub(super) fn sync(&mut self) {
        // SAFETY: `state` was made from a `&mut PeState` that outlives the context (`new`), and
        // no other reference to it is alive: `Parts` never leave the call that made them.
        let state = unsafe { &mut *self.state };
        let bytes = state.memory.bytes_mut();
        self.memory_len = bytes.len() as u64;
        self.memory = bytes.as_mut_ptr();
        self.frames = state.frames.as_mut_ptr();
    }

    /// Borrows the parts for the length of a helper call.
    pub(super) fn parts(&mut self) -> Parts<'_> {
        // SAFETY: the four pointers were made from references that outlive the context (`new`)
        // to four different objects; `args` points to `args_len` words by the assertion there.
        // `&mut self` keeps the borrow alone.
        unsafe {
            let program = &*self.program;
            Parts {
                program,
                state: &mut *self.state,
                out: &mut *self.out,
                registers: &*self.registers,
                args: std::slice::from_raw_parts(self.args, program.args_len()),
                cycles: &mut self.cycles,
                result: &mut self.result,
                sp: &mut self.sp,
            }
        }
    }

    /// Keeps a panic of a helper until generated code has returned.
    pub(super) fn keep_panic(&mut self, payload: Box<dyn Any + Send>) {
        self.panic = Some(payload);
    }

    /// Ends the run: what is kept here goes back to the state and the segment.
    pub(super) fn finish(&mut self, returned: bool) {
        if let Some(payload) = self.panic.take() {
            std::panic::resume_unwind(payload);
        }
        let parts = self.parts();
        parts.state.sp = *parts.sp;
        let Slots { all, assumed } = Slots::unpacked(*parts.cycles);
        (parts.out.cycles, parts.out.assumed) = (all, assumed);
        if returned {
            parts.out.returns();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PeContext;
    use std::mem::{offset_of, size_of};

    #[test]
    fn the_fields_generated_code_uses_lie_where_it_expects_them() {
        assert_eq!(size_of::<usize>(), 8);
        let offsets = [
            offset_of!(PeContext, memory),
            offset_of!(PeContext, frames),
            offset_of!(PeContext, memory_len),
            offset_of!(PeContext, slots),
            offset_of!(PeContext, codes),
            offset_of!(PeContext, args),
            offset_of!(PeContext, value),
            offset_of!(PeContext, result),
            offset_of!(PeContext, sp),
            offset_of!(PeContext, cycles),
            offset_of!(PeContext, resuming),
        ];
        assert_eq!(offsets, [0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80]);
    }
}
