//! From IR functions to native code.
//!
//! Shape of a native function: `(context, frame, params…) -> (status, result)`, where `frame` is
//! the byte offset of its frame and, in the upper half, where it would be if frames held all locals
//! (which bounds the depth). It starts fresh or, if the context says so, at the suspension
//! point that its frame names. Invariants: total on validated programs; issue slots are summed
//! per block at translation and kept in a variable; locals become SSA variables and are written
//! to the frame only when the function suspends.

mod data;
mod inst;
mod memory;
mod scalar;
mod wait;
mod ways;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{
    self, AbiParam, AliasRegion, AliasRegionData, FuncRef, InstBuilder, MemFlagsData, Signature,
    Type, Value, types,
};
use cranelift_entity::{PrimaryMap, SecondaryMap};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Switch, Variable};
use cranelift_jit::JITModule;
use cranelift_module::{FuncId as ModuleFunc, Linkage, Module, ModuleError};
use dflow_ir::func::{Block, Func, Inst, Local};
use dflow_ir::inst::Terminator;
use dflow_ir::program::FuncId;
use dflow_ir::suspend::FuncSuspension;
use dflow_ir::ty::Ty;

use super::bodies::TrapCode;
use super::helpers::{DONE, Helper, TRAPPED};
use super::shared::Shared;
use crate::exec::program::{FuncPlan, LoadedProgram};
use crate::exec::state::FRAME_LIMIT;
use crate::exec::{SEGMENT_BUDGET, SEGMENT_LIMIT};

/// Offsets of context fields.
macro_rules! field {
    ($name:ident) => {
        std::mem::offset_of!(crate::jit::context::PeContext, $name) as i32
    };
}
use field;

/// Declared symbols of a module.
struct Symbols {
    functions: Vec<ModuleFunc>,
    helpers: Vec<ModuleFunc>,
}

type Result<T> = std::result::Result<T, Box<ModuleError>>;

/// A program's functions in a module.
pub(super) struct Functions {
    /// Each function's code, and the entry for its signature.
    pub(super) codes: Vec<ModuleFunc>,
    pub(super) entries: Vec<ModuleFunc>,
    /// How many of the functions had not been compiled before.
    pub(super) compiled: usize,
}

/// Puts all functions into a module, and compiles those that `shared` does not have.
pub(super) fn program(
    module: &mut JITModule,
    program: &LoadedProgram,
    shared: &mut Shared,
) -> Result<Functions> {
    let symbols = declare(module, program)?;
    let mut builders = FunctionBuilderContext::new();
    let mut context = module.make_context();
    let mut compiled = 0;
    for (id, func) in &program.program().funcs {
        let native = symbols.functions[id.as_u32() as usize];
        context.func.signature = signature(module, func);
        Translator::new(module, program, &symbols, id, &mut context.func, &mut builders).run();
        compiled += usize::from(shared.define(module, native, &mut context)?);
        module.clear_context(&mut context);
    }
    let mut by_signature = SecondaryMap::<FuncNumber, Option<ModuleFunc>>::new();
    let mut entries = Vec::with_capacity(symbols.functions.len());
    for (id, func) in &program.program().funcs {
        let number = FuncNumber::from_u32(program.plan(id).signature);
        let entry = match by_signature[number] {
            Some(entry) => entry,
            None => {
                let native = trampoline(module, func, number, &mut context, &mut builders)?;
                shared.define(module, native, &mut context)?;
                module.clear_context(&mut context);
                native
            }
        };
        by_signature[number] = Some(entry);
        entries.push(entry);
    }
    Ok(Functions { codes: symbols.functions, entries, compiled })
}

/// Number of a signature within a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct FuncNumber(u32);
cranelift_entity::entity_impl!(FuncNumber, "sig");

fn declare(module: &mut JITModule, program: &LoadedProgram) -> Result<Symbols> {
    let mut functions = Vec::with_capacity(program.program().funcs.len());
    for (id, func) in &program.program().funcs {
        let signature = signature(module, func);
        let name = format!("f{}", id.as_u32());
        let native = module.declare_function(&name, Linkage::Local, &signature);
        functions.push(native.map_err(Box::new)?);
    }
    let mut helpers = Vec::with_capacity(Helper::ALL.len());
    for helper in Helper::ALL {
        let mut signature = module.make_signature();
        signature.params.push(AbiParam::new(types::I64));
        signature.params.extend(helper.params().iter().map(|&ty| AbiParam::new(ty)));
        signature.returns.push(AbiParam::new(helper.returns()));
        let native = module.declare_function(helper.name(), Linkage::Import, &signature);
        helpers.push(native.map_err(Box::new)?);
    }
    Ok(Symbols { functions, helpers })
}

/// The code generator's type of a machine type. Halves travel as their bits.
fn clif(ty: Ty) -> Type {
    match ty {
        Ty::I8 => types::I8,
        Ty::I16 | Ty::F16 | Ty::Bf16 => types::I16,
        Ty::I32 => types::I32,
        Ty::I64 => types::I64,
        Ty::F32 => types::F32,
        Ty::F64 => types::F64,
    }
}

fn native_signature(module: &JITModule, params: &[Ty], ret: Option<Ty>) -> Signature {
    let mut signature = module.make_signature();
    signature.params.push(AbiParam::new(types::I64));
    signature.params.push(AbiParam::new(types::I64));
    signature.params.extend(params.iter().map(|&ty| AbiParam::new(clif(ty))));
    signature.returns.push(AbiParam::new(types::I32));
    signature.returns.extend(ret.map(|ty| AbiParam::new(clif(ty))));
    signature
}

fn signature(module: &JITModule, func: &Func) -> Signature {
    let signature = func.signature();
    native_signature(module, &signature.params, signature.ret)
}

/// `(context, code) -> status`: calls code of one signature with the arguments in the context.
fn trampoline(
    module: &mut JITModule,
    func: &Func,
    number: FuncNumber,
    context: &mut cranelift_codegen::Context,
    builders: &mut FunctionBuilderContext,
) -> Result<ModuleFunc> {
    let mut entry = module.make_signature();
    entry.params.push(AbiParam::new(types::I64));
    entry.params.push(AbiParam::new(types::I64));
    entry.returns.push(AbiParam::new(types::I32));
    let name = format!("entry{}", number.as_u32());
    let native = module.declare_function(&name, Linkage::Local, &entry).map_err(Box::new)?;
    let callee = signature(module, func);
    context.func.signature = entry;
    let mut b = FunctionBuilder::new(&mut context.func, builders);
    let block = b.create_block();
    b.append_block_params_for_function_params(block);
    b.switch_to_block(block);
    let (cx, code) = (b.block_params(block)[0], b.block_params(block)[1]);
    let buffer = b.ins().load(types::I64, MemFlagsData::trusted(), cx, field!(args));
    let mut args = vec![cx, b.ins().iconst(types::I64, 0)];
    for (at, ty) in func.signature().params.into_iter().enumerate() {
        let raw = b.ins().load(types::I64, MemFlagsData::trusted(), buffer, at as i32 * 8);
        args.push(from_raw(&mut b, raw, ty));
    }
    let callee = b.import_signature(callee);
    let call = b.ins().call_indirect(callee, code, &args);
    let status = b.inst_results(call)[0];
    b.ins().return_(&[status]);
    b.seal_all_blocks();
    b.finalize(module.target_config());
    Ok(native)
}

/// The value of a raw word.
fn from_raw(b: &mut FunctionBuilder<'_>, raw: Value, ty: Ty) -> Value {
    match ty {
        Ty::I64 => raw,
        Ty::F64 => b.ins().bitcast(types::F64, MemFlagsData::new(), raw),
        Ty::F32 => {
            let bits = b.ins().ireduce(types::I32, raw);
            b.ins().bitcast(types::F32, MemFlagsData::new(), bits)
        }
        Ty::I8 | Ty::I16 | Ty::F16 | Ty::Bf16 | Ty::I32 => b.ins().ireduce(clif(ty), raw),
    }
}

/// The raw word of a value: its bits, upper bits zero.
fn to_raw(b: &mut FunctionBuilder<'_>, value: Value, ty: Ty) -> Value {
    match ty {
        Ty::I64 => value,
        Ty::F64 => b.ins().bitcast(types::I64, MemFlagsData::new(), value),
        Ty::F32 => {
            let bits = b.ins().bitcast(types::I32, MemFlagsData::new(), value);
            b.ins().uextend(types::I64, bits)
        }
        Ty::I8 | Ty::I16 | Ty::F16 | Ty::Bf16 | Ty::I32 => b.ins().uextend(types::I64, value),
    }
}

/// Translates one function.
struct Translator<'a> {
    module: &'a mut JITModule,
    program: &'a LoadedProgram,
    symbols: &'a Symbols,
    id: FuncId,
    func: &'a Func,
    plan: &'a FuncPlan,
    points: &'a FuncSuspension,
    b: FunctionBuilder<'a>,
    locals: PrimaryMap<Local, Variable>,
    blocks: PrimaryMap<Block, ir::Block>,
    /// Where each suspension point is re-entered.
    resumes: Vec<ir::Block>,
    /// Returns the trapped status.
    trapped: ir::Block,
    context: Value,
    frame: Value,
    /// Issue slots so far, without `pending`.
    cycles: Variable,
    /// Slots of this block that are not in `cycles` yet.
    pending: u64,
    stack_base: Variable,
    stack_previous: Variable,
    helpers: Vec<Option<FuncRef>>,
    callees: SecondaryMap<FuncId, Option<FuncRef>>,
    context_region: AliasRegion,
    memory_region: AliasRegion,
}

impl<'a> Translator<'a> {
    fn new(
        module: &'a mut JITModule,
        program: &'a LoadedProgram,
        symbols: &'a Symbols,
        id: FuncId,
        native: &'a mut ir::Function,
        builders: &'a mut FunctionBuilderContext,
    ) -> Translator<'a> {
        let mut region = |user_id, name: &'static str| {
            let data = AliasRegionData { user_id, description: name.into() };
            native.dfg.alias_regions.insert(data)
        };
        let context_region = region(0, "context");
        let memory_region = region(1, "memory");
        let mut b = FunctionBuilder::new(native, builders);
        let func = &program.program().funcs[id];
        let points = &program.suspension().funcs[id];
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let (context, frame) = (b.block_params(entry)[0], b.block_params(entry)[1]);
        let locals = func.locals.values().map(|&ty| b.declare_var(clif(ty))).collect();
        let blocks = func.blocks.keys().map(|_| b.create_block()).collect();
        let resumes = points.points.iter().map(|_| b.create_block()).collect();
        let trapped = b.create_block();
        b.set_cold_block(trapped);
        Translator {
            cycles: b.declare_var(types::I64),
            stack_base: b.declare_var(types::I64),
            stack_previous: b.declare_var(types::I64),
            helpers: vec![None; Helper::ALL.len()],
            callees: SecondaryMap::new(),
            plan: program.plan(id),
            pending: 0,
            module,
            program,
            symbols,
            id,
            func,
            points,
            b,
            locals,
            blocks,
            resumes,
            trapped,
            context,
            frame,
            context_region,
            memory_region,
        }
    }

    fn run(mut self) {
        self.entry();
        for block in self.func.blocks.keys() {
            self.b.switch_to_block(self.blocks[block]);
            self.pending = 0;
            for &inst in &self.func.blocks[block].insts {
                self.inst(inst);
            }
            self.end(block);
        }
        self.b.switch_to_block(self.trapped);
        self.return_status(TRAPPED);
        self.b.seal_all_blocks();
        self.b.finalize(self.module.target_config());
    }

    /// Parameters, zeroes for the other locals, then fresh start or re-entry.
    fn entry(&mut self) {
        let Some(block) = self.b.current_block() else {
            return;
        };
        let params: Vec<Value> = self.b.block_params(block)[2..].to_vec();
        for (at, (local, &ty)) in self.func.locals.iter().enumerate() {
            let value = params.get(at).copied().unwrap_or_else(|| self.zero(ty));
            self.b.def_var(self.locals[local], value);
        }
        let cycles = self.load_field(types::I64, field!(cycles));
        self.b.def_var(self.cycles, cycles);
        let zero = self.b.ins().iconst(types::I64, 0);
        self.b.def_var(self.stack_base, zero);
        self.b.def_var(self.stack_previous, zero);
        let fresh = self.b.create_block();
        if self.resumes.is_empty() {
            self.b.ins().jump(fresh, &[]);
        } else {
            let again = self.b.create_block();
            let resuming = self.load_field(types::I32, field!(resuming));
            self.b.ins().brif(resuming, again, &[], fresh, &[]);
            self.b.switch_to_block(again);
            self.dispatch();
        }
        self.b.switch_to_block(fresh);
        self.check_limits(cycles);
        let first = self.blocks[self.func.entry()];
        self.b.ins().jump(first, &[]);
    }

    /// Re-entry: to the point that the frame names.
    fn dispatch(&mut self) {
        let frame = self.frame_address();
        if self.plan.stack_bytes > 0 {
            let base = self.load_frame(frame, 1);
            self.b.def_var(self.stack_base, base);
            let previous = self.load_frame(frame, 2);
            self.b.def_var(self.stack_previous, previous);
        }
        let word = self.load_frame(frame, 0);
        let index = self.b.ins().ireduce(types::I32, word);
        let mut switch = Switch::new();
        for (at, &block) in self.resumes.iter().enumerate() {
            switch.set_entry(at as u128 + 1, block);
        }
        switch.emit(&mut self.b, index, self.trapped);
    }

    /// Depth, length of the segment, stack.
    fn check_limits(&mut self, cycles: Value) {
        let room = (i64::from(FRAME_LIMIT) - i64::from(self.plan.frame_words)) * 8;
        let room = room << 32 | i64::from(u32::MAX);
        let too_deep = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, self.frame, room);
        self.trap_if(too_deep, TrapCode::StackOverflow, 0);
        let limit = i64::from(SEGMENT_LIMIT);
        let cycles = self.b.ins().ireduce(types::I32, cycles);
        let too_long = self.b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, cycles, limit);
        self.trap_if(too_long, TrapCode::SegmentTooLong, 0);
        if self.plan.stack_bytes > 0 {
            let previous = self.load_field(types::I64, field!(sp));
            self.b.def_var(self.stack_previous, previous);
            let func = self.int(self.id.as_u32());
            let status = self.call_helper(Helper::EnterStack, &[func]);
            self.leave_if_failed(status);
            let base = self.load_field(types::I64, field!(result));
            self.b.def_var(self.stack_base, base);
        }
    }

    fn ty(&self, local: Local) -> Ty {
        self.func.locals[local]
    }

    fn get(&mut self, local: Local) -> Value {
        self.b.use_var(self.locals[local])
    }

    fn set(&mut self, local: Local, value: Value) {
        self.b.def_var(self.locals[local], value);
    }

    fn raw(&mut self, local: Local) -> Value {
        let value = self.get(local);
        let ty = self.ty(local);
        to_raw(&mut self.b, value, ty)
    }

    fn int(&mut self, value: u32) -> Value {
        self.b.ins().iconst(types::I32, i64::from(value))
    }

    fn constant(&mut self, ty: Ty, bits: u64) -> Value {
        let bits = ty.mask(bits);
        match ty {
            Ty::F32 => self.b.ins().f32const(Ieee32::with_bits(bits as u32)),
            Ty::F64 => self.b.ins().f64const(Ieee64::with_bits(bits)),
            Ty::I8 | Ty::I16 | Ty::F16 | Ty::Bf16 | Ty::I32 | Ty::I64 => {
                self.b.ins().iconst(clif(ty), bits as i64)
            }
        }
    }

    fn zero(&mut self, ty: Ty) -> Value {
        self.constant(ty, 0)
    }

    fn context_flags(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.context_region))
    }

    fn load_field(&mut self, ty: Type, offset: i32) -> Value {
        let flags = self.context_flags();
        self.b.ins().load(ty, flags, self.context, offset)
    }

    fn store_field(&mut self, value: Value, offset: i32) {
        let flags = self.context_flags();
        self.b.ins().store(flags, value, self.context, offset);
    }

    fn frame_address(&mut self) -> Value {
        let frames = self.load_field(types::I64, field!(frames));
        let offset = self.b.ins().ireduce(types::I32, self.frame);
        let offset = self.b.ins().uextend(types::I64, offset);
        self.b.ins().iadd(frames, offset)
    }

    /// What to add to the own frame for that of a function which is called.
    fn frame_behind(&self) -> i64 {
        let [kept, all] =
            [self.plan.kept_words, self.plan.frame_words].map(|words| i64::from(words) * 8);
        all << 32 | kept
    }

    fn load_frame(&mut self, frame: Value, word: u32) -> Value {
        self.b.ins().load(types::I64, MemFlagsData::trusted(), frame, word as i32 * 8)
    }

    /// Moves pending slots into the variable.
    fn flush(&mut self) {
        let cycles = self.cycles_now();
        self.b.def_var(self.cycles, cycles);
        self.pending = 0;
    }

    /// Slots so far, all included.
    fn cycles_now(&mut self) -> Value {
        let cycles = self.b.use_var(self.cycles);
        if self.pending == 0 {
            return cycles;
        }
        self.b.ins().iadd_imm_s(cycles, self.pending as i64)
    }

    fn store_cycles(&mut self) {
        let cycles = self.cycles_now();
        self.store_field(cycles, field!(cycles));
    }

    /// After code that may have added slots of its own.
    fn reload_cycles(&mut self) {
        let cycles = self.load_field(types::I64, field!(cycles));
        self.b.def_var(self.cycles, cycles);
        self.pending = 0;
    }

    fn call_helper(&mut self, helper: Helper, args: &[Value]) -> Value {
        let at = helper as usize;
        let func = match self.helpers[at] {
            Some(func) => func,
            None => self.module.declare_func_in_func(self.symbols.helpers[at], self.b.func),
        };
        self.helpers[at] = Some(func);
        let mut all = vec![self.context];
        all.extend_from_slice(args);
        let call = self.b.ins().call(func, &all);
        self.b.inst_results(call)[0]
    }

    /// Leaves with the trapped status unless the helper is done.
    fn leave_if_failed(&mut self, status: Value) {
        let go_on = self.b.create_block();
        self.b.ins().brif(status, self.trapped, &[], go_on, &[]);
        self.b.switch_to_block(go_on);
    }

    /// Traps here; the block ends.
    fn trap(&mut self, code: TrapCode, at: u32) {
        self.store_cycles();
        let args = [code as u32, self.id.as_u32(), at].map(|arg| self.int(arg));
        self.call_helper(Helper::Trap, &args);
        self.b.ins().jump(self.trapped, &[]);
    }

    fn trap_if(&mut self, cond: Value, code: TrapCode, at: u32) {
        self.fail_if(cond, |func| func.trap(code, at));
    }

    /// Goes on unless the condition holds; `fails` ends the block where it does.
    fn fail_if(&mut self, cond: Value, fails: impl FnOnce(&mut Self)) {
        let failed = self.b.create_block();
        let go_on = self.b.create_block();
        self.b.set_cold_block(failed);
        self.b.ins().brif(cond, failed, &[], go_on, &[]);
        self.b.switch_to_block(failed);
        fails(self);
        self.b.switch_to_block(go_on);
    }

    /// Traps unless `index` is below `len`.
    fn bound(&mut self, inst: Inst, index: Local, len: Local) {
        let (at, end) = (self.get(index), self.get(len));
        let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, at, end);
        self.fail_if(outside, |func| {
            func.store_cycles();
            let place = [func.id.as_u32(), inst.as_u32()].map(|arg| func.int(arg));
            let args = [func.raw(index), func.raw(len), place[0], place[1]];
            func.call_helper(Helper::OutsideArray, &args);
            func.b.ins().jump(func.trapped, &[]);
        });
    }
}
