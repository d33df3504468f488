//! The code generator: a program's functions as native code, shared by all PEs and threads.
//!
//! Invariants: same segments and memory as the interpreter, bit for bit, and of frames what outlives a suspension; a suspended
//! main thread leaves nothing on the native stack; native depth is bounded by the frame limit.
//! `unsafe` lives in `context`, `helpers` and `code`.

mod bodies;
mod code;
mod context;
mod helpers;
mod shared;
mod translate;

use cranelift_codegen::settings::{self, Configurable};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::ModuleError;
use dflow_ir::program::FuncId;

use self::code::{Code, Ended};
use self::context::{Around, PeContext};
use self::helpers::Helper;
pub(crate) use self::helpers::{Wide, prefetch, wide};
pub use self::shared::Shared;
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;
use crate::exec::{CodeEngine, Each, Entry, Registers, Segment};

/// Why a program has no native code.
#[derive(Debug, thiserror::Error)]
pub enum JitError {
    /// There is no code generator for this machine.
    #[error("no code generator for this machine: {0}")]
    Host(String),
    /// The code generator refused the code; a bug of ours.
    #[error("the code generator refused a function: {0}")]
    Module(#[from] Box<ModuleError>),
}

/// Native code of one program.
pub struct Jit {
    code: Code,
    program: u64,
    compiled: usize,
}

impl Jit {
    /// Makes native code of a program. Functions that stand in `shared` are not compiled again; others are put there.
    ///
    /// # Errors
    /// The host machine is not supported, or the code generator refuses the code.
    pub fn compile(program: &LoadedProgram, shared: &mut Shared) -> Result<Jit, JitError> {
        let mut module = JITModule::new(builder()?);
        let functions = translate::program(&mut module, program, shared)?;
        module.finalize_definitions().map_err(Box::new)?;
        let code = Code::new(module, &functions.codes, &functions.entries);
        Ok(Jit { code, program: program.id(), compiled: functions.compiled })
    }
}

impl std::fmt::Debug for Jit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jit").field("program", &self.program).finish_non_exhaustive()
    }
}

impl CodeEngine for Jit {
    fn compiled(&self) -> usize {
        self.compiled
    }

    fn run_with(
        &self,
        program: &LoadedProgram,
        state: &mut PeState,
        slots: &[u64],
        entry: Entry<'_>,
        registers: &dyn Registers,
        out: &mut Segment,
    ) {
        assert_eq!(program.id(), self.program, "code of another program");
        out.clear();
        state.prepare(program, slots);
        with_args(program.args_len(), |buffer| {
            let func = match entry {
                Entry::Start { func, args } => {
                    state.sp = program.stack().0;
                    for (word, &arg) in buffer.iter_mut().zip(args) {
                        *word = arg;
                    }
                    func
                }
                Entry::Resume { .. } => FuncId::from_u32((state.frames[0] >> 32) as u32),
            };
            let around = Around { slots, codes: self.code.table(), registers };
            let mut context = PeContext::new(program, state, around, buffer, out);
            if let Entry::Resume { value } = entry {
                context.resuming = 1;
                context.value = value;
            }
            let ended = self.code.enter(func.as_u32() as usize, &mut context);
            context.finish(ended == Ended::Returned);
        });
    }

    fn run_each(
        &self,
        program: &LoadedProgram,
        state: &mut PeState,
        slots: &[u64],
        each: Each<'_>,
        registers: &dyn Registers,
        out: &mut Segment,
    ) -> usize {
        assert_eq!(program.id(), self.program, "code of another program");
        let mut count = 0;
        out.clear();
        state.prepare(program, slots);
        with_args(program.args_len(), |buffer| {
            let around = Around { slots, codes: self.code.table(), registers };
            let mut context = PeContext::new(program, state, around, buffer, out);
            for args in each.runs() {
                context.start(program.stack().0, args);
                let ended = self.code.enter(each.func.as_u32() as usize, &mut context);
                count += 1;
                let returned = ended == Ended::Returned;
                if !returned || !context.is_plain(each.like) {
                    return context.finish(returned);
                }
            }
            context.finish(true);
        });
        count
    }
}

/// Arguments that fit on the native stack.
const SMALL: usize = 8;

#[inline]
fn with_args(len: usize, body: impl FnOnce(&mut [u64])) {
    let (mut small, mut large);
    // The body stands here once, so that it is not called.
    let buffer: &mut [u64] = if len <= SMALL {
        small = [0; SMALL];
        &mut small
    } else {
        large = vec![0; len];
        &mut large
    };
    body(buffer);
}

fn builder() -> Result<JITBuilder, JitError> {
    let mut flags = settings::builder();
    let options = [
        ("opt_level", "speed"),
        ("enable_nan_canonicalization", "true"),
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("unwind_info", "false"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ];
    for (name, value) in options {
        flags.set(name, value).map_err(|error| JitError::Host(error.to_string()))?;
    }
    let isa = cranelift_native::builder()
        .map_err(|message| JitError::Host(message.to_owned()))?
        .finish(settings::Flags::new(flags))
        .map_err(|error| JitError::Host(error.to_string()))?;
    let mut builder = JITBuilder::with_isa(isa, cranelift_module::default_libcall_names());
    for &helper in Helper::ALL {
        builder.symbol(helper.name(), helper.address());
    }
    Ok(builder)
}

#[cfg(test)]
mod tests;
