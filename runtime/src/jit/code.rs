//! Generated code and its memory, and the one place that enters it.
//!
//! Invariants: a code address never leaves this file except as a word in the table that
//! generated code itself indexes; the memory lives as long as the addresses.

#![expect(unsafe_code, reason = "entering generated code and freeing its memory")]

use std::mem::ManuallyDrop;

use cranelift_jit::JITModule;
use cranelift_module::FuncId as ModuleFunc;

use super::context::PeContext;
use super::helpers::{DONE, STOPPED, TRAPPED};

/// An entry: takes the context and a function's address, returns the status.
type Trampoline = extern "C" fn(*mut PeContext, usize) -> u32;

/// Executable code of one program.
pub(super) struct Code {
    /// Address of each function, by index.
    functions: Vec<usize>,
    /// Entry of each function's signature, by function index.
    trampolines: Vec<usize>,
    module: ManuallyDrop<JITModule>,
}

/// How a run of generated code ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The entered function returned.
    Returned,
    /// It stopped or trapped; the segment says how.
    Stopped,
}

impl Code {
    /// Takes over a module whose definitions are finalized. `functions` and `trampolines` are
    /// per function of the program.
    pub(super) fn new(
        module: JITModule,
        functions: &[ModuleFunc],
        trampolines: &[ModuleFunc],
    ) -> Code {
        let address = |func: &ModuleFunc| module.get_finalized_function(*func) as usize;
        Code {
            functions: functions.iter().map(address).collect(),
            trampolines: trampolines.iter().map(address).collect(),
            module: ManuallyDrop::new(module),
        }
    }

    /// The table of addresses for [`PeContext`].
    pub(super) fn table(&self) -> &[usize] {
        &self.functions
    }

    /// Enters a function. The context's program must be the one that this code was made from.
    pub(super) fn enter(&self, func: usize, context: &mut PeContext) -> Ended {
        let (address, trampoline) = (self.functions[func], self.trampolines[func]);
        // SAFETY: `trampoline` is the address of finalized code (`new`), compiled by
        // `translate::trampoline` with exactly this signature, and alive as long as `self`. It
        // follows pointers of `context` only, which `PeContext::new` made from live references
        // and whose lengths generated code checks.
        let status = unsafe {
            let enter = std::mem::transmute::<usize, Trampoline>(trampoline);
            enter(context, address)
        };
        match status {
            DONE => Ended::Returned,
            STOPPED | TRAPPED => Ended::Stopped,
            _ => unreachable!("generated code returns a status"),
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: dropped once, here; the addresses die with `self`, and no code of it runs,
        // since running borrows `self`.
        unsafe { ManuallyDrop::take(&mut self.module).free_memory() }
    }
}

// SAFETY: after `new` the module is never touched again but to free its memory; the code is
// immutable and reads and writes nothing but what its context points at.
unsafe impl Send for Code {}
// SAFETY: as above: `&Code` gives access to immutable words and immutable code only.
unsafe impl Sync for Code {}
