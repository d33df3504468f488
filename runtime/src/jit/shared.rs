//! Code of functions that several programs of an image have.
//!
//! Programs of different tiles differ in a few params, so most of their functions are the same, but for the numbers of
//! those that they call. What the code generator makes of a function depends on its stencil alone (signature,
//! instructions, constants, its own number among them); whom it calls is filled in afterwards. So each stencil is compiled
//! once.
//!
//! Invariant: whether code was made before is not to be told from it.

use std::collections::hash_map::Entry;

use cranelift_codegen::ir::function::FunctionStencil;
use cranelift_codegen::{Context, FinalizedMachReloc};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId as ModuleFunc, Module, ModuleError, ModuleReloc};
use rustc_hash::FxHashMap;

type Result<T> = std::result::Result<T, Box<ModuleError>>;

/// What has been compiled.
#[derive(Default)]
pub struct Shared {
    functions: FxHashMap<Stencil, Native>,
}

/// A function but for its name and whom it calls.
#[derive(PartialEq, Hash)]
struct Stencil(FunctionStencil);

/// It has no part that differs from itself: floats are held as their bits.
impl Eq for Stencil {}

/// A function's code.
struct Native {
    alignment: u64,
    bytes: Vec<u8>,
    /// What is to be filled in; callees by their number in the function.
    relocs: Vec<FinalizedMachReloc>,
}

impl Shared {
    /// Gives a function of a module the code of the context's function; whether that had to be compiled.
    ///
    /// # Errors
    /// The code generator refuses it.
    pub(super) fn define(
        &mut self,
        module: &mut JITModule,
        id: ModuleFunc,
        context: &mut Context,
    ) -> Result<bool> {
        let (native, is_new) = match self.functions.entry(Stencil(context.func.stencil.clone())) {
            Entry::Occupied(entry) => (entry.into_mut(), false),
            Entry::Vacant(entry) => (entry.insert(compile(module, context)?), true),
        };
        let callees = |reloc| ModuleReloc::from_mach_reloc(reloc, &context.func, id);
        let relocs: Vec<ModuleReloc> = native.relocs.iter().map(callees).collect();
        module
            .define_function_bytes(id, native.alignment, &native.bytes, &relocs)
            .map_err(Box::new)?;
        Ok(is_new)
    }
}

fn compile(module: &JITModule, context: &mut Context) -> Result<Native> {
    let compiled = context.compile(module.isa(), &mut Default::default());
    let compiled = compiled.map_err(|error| Box::new(ModuleError::Compilation(error.inner)))?;
    Ok(Native {
        alignment: u64::from(compiled.buffer.alignment),
        bytes: compiled.code_buffer().to_vec(),
        relocs: compiled.buffer.relocs().to_vec(),
    })
}
