//! Suspension: saving and restoring frames, visible acts, calls.
//!
//! Invariant: what a frame holds at a suspension point is what the interpreter's frame holds for
//! the locals that live across it.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, MemFlagsData, SigRef, Value, types};
use cranelift_module::Module;
use dflow_ir::func::{Inst, Local};
use dflow_ir::inst::{InstData, VectorInst};
use dflow_ir::program::{FuncId, SigId};

use super::{Translator, field, from_raw, native_signature, to_raw};
use crate::jit::helpers::{Helper, STOPPED};

impl Translator<'_> {
    /// Writes the frame for a point and returns the stopped status; the block ends.
    pub(super) fn save_and_stop(&mut self, point: u32) {
        let frame = self.frame_address();
        let word = u64::from(self.id.as_u32()) << 32 | u64::from(point);
        let word = self.b.ins().iconst(types::I64, word as i64);
        self.store_frame(word, frame, 0);
        if self.plan.stack_bytes > 0 {
            let base = self.b.use_var(self.stack_base);
            self.store_frame(base, frame, 1);
            let previous = self.b.use_var(self.stack_previous);
            self.store_frame(previous, frame, 2);
        }
        for &local in &self.points.points[point as usize - 1].live {
            let raw = self.raw(local);
            self.store_frame(raw, frame, self.plan.word(local));
        }
        self.return_status(STOPPED);
    }

    fn store_frame(&mut self, value: Value, frame: Value, word: u32) {
        self.b.ins().store(MemFlagsData::trusted(), value, frame, word as i32 * 8);
    }

    /// Begins the block where a point is re-entered for good: restores what lives across it and
    /// `extra` locals that the act itself has written.
    pub(super) fn resume_at(&mut self, point: u32, extra: &[Local]) {
        self.restore(point, extra);
        let zero = self.int(0);
        self.store_field(zero, field!(resuming));
    }

    fn restore(&mut self, point: u32, extra: &[Local]) {
        self.b.switch_to_block(self.resumes[point as usize - 1]);
        self.pending = 0;
        let frame = self.frame_address();
        for &local in self.points.points[point as usize - 1].live.iter().chain(extra) {
            let raw = self.load_frame(frame, self.plan.word(local));
            let ty = self.ty(local);
            let value = from_raw(&mut self.b, raw, ty);
            self.set(local, value);
        }
    }

    /// Goes on if the status is done; saves and stops if stopped; leaves if trapped.
    fn split(
        &mut self,
        status: Value,
        point: u32,
        done: cranelift_codegen::ir::Block,
        args: &[BlockArg],
    ) {
        let not_done = self.b.create_block();
        self.b.set_cold_block(not_done);
        self.b.ins().brif(status, not_done, &[], done, args);
        self.b.switch_to_block(not_done);
        if point == 0 {
            self.b.ins().jump(self.trapped, &[]);
            return;
        }
        let stops = self.b.create_block();
        self.b.set_cold_block(stops);
        let stopped = self.b.ins().icmp_imm_s(IntCC::Equal, status, i64::from(STOPPED));
        self.b.ins().brif(stopped, stops, &[], self.trapped, &[]);
        self.b.switch_to_block(stops);
        self.save_and_stop(point);
    }

    pub(super) fn vector(&mut self, inst: Inst, vector: &VectorInst) {
        let mut operands = [None; 5];
        operands[0] = vector.dest.local();
        for (place, source) in operands[1..4].iter_mut().zip(&vector.sources) {
            *place = source.local();
        }
        operands[4] = vector.options.index;
        self.store_args(operands.iter().copied());
        self.store_cycles();
        let func = self.int(self.id.as_u32());
        let number = self.int(self.plan.vectors[inst]);
        let status = self.call_helper(Helper::Vector, &[func, number, self.frame]);
        let point = self.plan.resume_inst[inst];
        let go_on = self.b.create_block();
        let result = self.b.append_block_param(go_on, types::I8);
        let cycles = self.b.append_block_param(go_on, types::I64);
        let done = self.b.create_block();
        self.split(status, point, done, &[]);
        self.b.switch_to_block(done);
        let complete = self.load_field(types::I64, field!(result));
        let complete = self.b.ins().ireduce(types::I8, complete);
        let now = self.load_field(types::I64, field!(cycles));
        self.b.ins().jump(go_on, &[complete.into(), now.into()]);
        if point != 0 {
            self.resume_at(point, &[]);
            let value = self.load_field(types::I64, field!(value));
            let value = self.b.ins().ireduce(types::I8, value);
            let now = self.b.use_var(self.cycles);
            self.b.ins().jump(go_on, &[value.into(), now.into()]);
        }
        self.b.switch_to_block(go_on);
        self.b.def_var(self.cycles, cycles);
        self.pending = 0;
        if let Some(local) = vector.result {
            self.set(local, result);
        }
    }

    /// A clock access, the read of a register, a question about queues or a host operation: always
    /// stops.
    pub(super) fn stop(&mut self, inst: Inst) {
        let mut before = Vec::new();
        let (helper, value, dsts): (Helper, Option<Local>, &[Local]) = match &self.func.insts[inst]
        {
            InstData::Host { op: _, dsts, args } => {
                self.store_args(args.iter().map(|&arg| Some(arg)));
                (Helper::Host, None, dsts)
            }
            InstData::Clock { op: _, dst } => (Helper::Clock, *dst, &[]),
            InstData::GetConfig { dst, addr } => {
                before.push(self.raw(*addr));
                (Helper::GetConfig, Some(*dst), &[])
            }
            InstData::Queues { dst, state: _ } => (Helper::Queues, Some(*dst), &[]),
            _ => return,
        };
        self.store_cycles();
        let [func, at] = self.place(inst);
        before.extend([func, at, self.frame]);
        self.call_helper(helper, &before);
        let point = self.plan.resume_inst[inst];
        if point == 0 {
            // Only in blocks that nothing reaches.
            self.b.ins().jump(self.trapped, &[]);
            let rest = self.b.create_block();
            self.b.switch_to_block(rest);
            return;
        }
        self.save_and_stop(point);
        self.resume_at(point, dsts);
        if let Some(dst) = value {
            let raw = self.load_field(types::I64, field!(value));
            let ty = self.ty(dst);
            let value = from_raw(&mut self.b, raw, ty);
            self.set(dst, value);
        }
    }

    fn store_args(&mut self, args: impl Iterator<Item = Option<Local>>) {
        let buffer = self.load_field(types::I64, field!(args));
        for (at, local) in args.enumerate() {
            let raw = match local {
                Some(local) => self.raw(local),
                None => self.b.ins().iconst(types::I64, 0),
            };
            self.b.ins().store(MemFlagsData::trusted(), raw, buffer, at as i32 * 8);
        }
    }

    /// Function and instruction, for helpers.
    pub(super) fn place(&mut self, inst: Inst) -> [Value; 2] {
        [self.int(self.id.as_u32()), self.int(inst.as_u32())]
    }

    pub(super) fn call(&mut self, inst: Inst, dst: Option<Local>, func: FuncId, args: &[Local]) {
        let callee = match self.callees[func] {
            Some(callee) => callee,
            None => {
                let native = self.symbols.functions[func.as_u32() as usize];
                self.module.declare_func_in_func(native, self.b.func)
            }
        };
        self.callees[func] = Some(callee);
        let args: Vec<Value> = args.iter().map(|&arg| self.get(arg)).collect();
        let kinds: Vec<_> = {
            let signature = self.program.program().funcs[func].signature();
            signature.params.iter().map(|&ty| super::clif(ty)).collect()
        };
        self.invoke(inst, dst, &kinds, args, None, |this, values| {
            this.b.ins().call(callee, values)
        });
    }

    pub(super) fn call_indirect(
        &mut self,
        inst: Inst,
        dst: Option<Local>,
        callee: Local,
        sig: SigId,
        args: &[Local],
    ) {
        let pointer = self.raw(callee);
        self.store_cycles();
        let [func, at] = self.place(inst);
        let status = self.call_helper(Helper::Callee, &[pointer, func, at]);
        self.leave_if_failed(status);
        let index = self.load_field(types::I64, field!(result));
        let code = self.code_of(index);
        let signature = &self.program.program().signatures[sig];
        let native = native_signature(self.module, &signature.params, signature.ret);
        let native: SigRef = self.b.import_signature(native);
        let args: Vec<Value> = args.iter().map(|&arg| self.get(arg)).collect();
        let kinds: Vec<_> = signature.params.iter().map(|&ty| super::clif(ty)).collect();
        self.invoke(inst, dst, &kinds, args, Some(code), |this, values| {
            this.b.ins().call_indirect(
                native,
                values[values.len() - 1],
                &values[..values.len() - 1],
            )
        });
    }

    /// Address of the code of the function with this index.
    fn code_of(&mut self, index: Value) -> Value {
        let table = self.load_field(types::I64, field!(codes));
        let offset = self.b.ins().ishl_imm_u(index, 3);
        let entry = self.b.ins().iadd(table, offset);
        self.b.ins().load(types::I64, MemFlagsData::trusted(), entry, 0)
    }

    /// A call, entered afresh or again. `code` is passed to `emit` as the last value.
    fn invoke(
        &mut self,
        inst: Inst,
        dst: Option<Local>,
        kinds: &[cranelift_codegen::ir::Type],
        args: Vec<Value>,
        code: Option<Value>,
        emit: impl FnOnce(&mut Self, &[Value]) -> cranelift_codegen::ir::Inst,
    ) {
        self.store_cycles();
        let point = self.plan.resume_inst[inst];
        let behind = self.frame_behind();
        let mut values = args;
        values.extend(code);
        if point != 0 {
            let enter = self.b.create_block();
            let fresh: Vec<BlockArg> = values.iter().map(|&value| value.into()).collect();
            self.b.ins().jump(enter, &fresh);
            self.restore(point, &[]);
            let mut again: Vec<BlockArg> = Vec::with_capacity(values.len());
            for &kind in kinds {
                again.push(self.zero_of(kind).into());
            }
            if code.is_some() {
                let frame = self.frame_address();
                let word = self.load_frame(frame, self.plan.kept_words);
                let index = self.b.ins().ushr_imm_u(word, 32);
                again.push(self.code_of(index).into());
            }
            self.b.ins().jump(enter, &again);
            for value in &mut values {
                let kind = self.b.func.dfg.value_type(*value);
                *value = self.b.append_block_param(enter, kind);
            }
            self.b.switch_to_block(enter);
        }
        let frame = self.b.ins().iadd_imm_s(self.frame, behind);
        let mut all = vec![self.context, frame];
        all.append(&mut values);
        let call = emit(self, &all);
        let results = self.b.inst_results(call);
        let (status, result) = (results[0], results.get(1).copied());
        let done = self.b.create_block();
        self.split(status, point, done, &[]);
        self.b.switch_to_block(done);
        self.reload_cycles();
        if let (Some(dst), Some(result)) = (dst, result) {
            self.set(dst, result);
        }
    }

    fn zero_of(&mut self, kind: cranelift_codegen::ir::Type) -> Value {
        if kind == types::F32 {
            self.b.ins().f32const(0.0)
        } else if kind == types::F64 {
            self.b.ins().f64const(0.0)
        } else {
            self.b.ins().iconst(kind, 0)
        }
    }

    /// Stores a raw argument-like value for helpers that take words.
    pub(super) fn word(&mut self, local: Option<Local>) -> Value {
        match local {
            Some(local) => {
                let value = self.get(local);
                let ty = self.ty(local);
                to_raw(&mut self.b, value, ty)
            }
            None => self.b.ins().iconst(types::I64, 0),
        }
    }
}
