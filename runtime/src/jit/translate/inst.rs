//! One arm per instruction.

use cranelift_codegen::ir::{InstBuilder, types};
use dflow_ir::dsd::Dsd;
use dflow_ir::func::{Inst, Local};
use dflow_ir::inst::{FlagOp, InstData};
use dflow_ir::loc::Loc;

use super::data::{EXTENT, STRIDE};
use super::{Translator, clif, field};
use crate::jit::bodies::TrapCode;
use crate::jit::helpers::Helper;

impl Translator<'_> {
    #[expect(clippy::too_many_lines, reason = "one arm per instruction")]
    pub(super) fn inst(&mut self, inst: Inst) {
        let func = self.func;
        let cost = self.plan.inst_cost[inst];
        self.pending = self.pending.wrapping_add(cost.packed());
        match &func.insts[inst] {
            InstData::Const { dst, bits } => {
                let value = self.constant(self.ty(*dst), *bits);
                self.set(*dst, value);
            }
            InstData::Slot { dst, slot } => {
                let slots = self.load_field(types::I64, field!(slots));
                let offset = slot.as_u32() as i32 * 8;
                let flags = self.context_flags();
                let ty = clif(self.ty(*dst));
                let value = self.b.ins().load(ty, flags, slots, offset);
                self.set(*dst, value);
            }
            InstData::Copy { dst, src } => {
                let value = self.get(*src);
                self.set(*dst, value);
            }
            InstData::Unary { dst, op, src } => {
                self.watch(inst, *src, *src, *src);
                self.unary(*dst, *op, *src);
            }
            InstData::Binary { dst, op, lhs, rhs } => {
                self.watch(inst, *lhs, *rhs, *lhs);
                self.binary(inst, *dst, *op, *lhs, *rhs);
            }
            InstData::Convert { dst, kind, src } => {
                self.watch(inst, *src, *src, *dst);
                self.convert(*dst, *kind, *src);
            }
            InstData::Load { dst, addr, offset } => self.load(inst, *dst, *addr, *offset),
            InstData::Store { addr, offset, src } => self.store(inst, *addr, *offset, *src),
            InstData::CopyMemory { dst, src, bytes: _ } => {
                let (dst, src) = (self.raw(*dst), self.raw(*src));
                self.with_place(inst, Helper::Copy, &[dst, src]);
            }
            InstData::FillMemory { dst, value, count: _ } => {
                let (dst, value) = (self.raw(*dst), self.raw(*value));
                self.with_place(inst, Helper::Fill, &[dst, value]);
            }
            InstData::GlobalAddress { dst, global, offset } => {
                let address = i64::from(self.program.address(*global)) + i64::from(*offset);
                let value = self.constant(self.ty(*dst), address as u64);
                self.set(*dst, value);
            }
            InstData::StackAddress { dst, slot, offset } => {
                let within = i64::from(self.plan.slot_offsets[slot.as_u32() as usize]);
                let base = self.b.use_var(self.stack_base);
                let address = self.b.ins().iadd_imm_s(base, within + i64::from(*offset));
                let value = super::from_raw(&mut self.b, address, func.locals[*dst]);
                self.set(*dst, value);
            }
            InstData::FuncAddress { dst, func } => {
                let value = self.constant(self.ty(*dst), u64::from(func.as_u32()) + 1);
                self.set(*dst, value);
            }
            InstData::Call { dst, func, args } => self.call(inst, *dst, *func, args),
            InstData::CallIndirect { dst, callee, sig, args } => {
                self.call_indirect(inst, *dst, *callee, *sig, args);
            }
            InstData::MakeMem1d { dst, base, extent, stride, indexed } => {
                let bits = Dsd::mem1d(0, 0, 0, *indexed).0;
                self.pack(*dst, bits, &[(*base, 0), (*extent, EXTENT), (*stride, STRIDE)]);
            }
            InstData::MakeMem4d { dst, base, shape, indexed } => {
                self.pack(*dst, Dsd::mem4d(0, *shape, *indexed).0, &[(*base, 0)]);
            }
            InstData::MakeFabric { dst, desc, extent } => {
                self.pack(*dst, Dsd::fabric(*desc, 0).0, &[(*extent, EXTENT)]);
            }
            InstData::MakeRing { dst, base, extent, wrap } => {
                let bits = Dsd::ring(0, 0, 0).0;
                self.pack(*dst, bits, &[(*base, 0), (*extent, EXTENT), (*wrap, STRIDE)]);
            }
            InstData::DsdMoveBase { dst, src, delta } => self.move_base(*dst, *src, *delta),
            InstData::DsdSetBase { dst, src, base } => self.replace_field(*dst, *src, *base, 0),
            InstData::DsdSetExtent { dst, src, extent } => {
                self.replace_field(*dst, *src, *extent, EXTENT);
            }
            InstData::DsdSetStride { dst, src, stride } => {
                self.replace_field(*dst, *src, *stride, STRIDE);
            }
            InstData::Vector(vector) => self.vector(inst, vector),
            InstData::LoadDsr { dsr: _, dsd, options, .. } => {
                let (dsd, index) = (self.raw(*dsd), self.word(options.index));
                self.with_place(inst, Helper::LoadDsr, &[dsd, index]);
            }
            InstData::SetDsr { dsr: _, field: _, value } => {
                let value = self.raw(*value);
                self.with_place(inst, Helper::SetDsr, &[value]);
            }
            InstData::SetFifoLength { fifo: _, write_side: _, length } => {
                let length = self.raw(*length);
                self.with_place(inst, Helper::FifoLength, &[length]);
            }
            InstData::Flag { op: FlagOp::Exceptions, id } => {
                let id = self.raw(*id);
                let id = self.b.ins().ireduce(types::I32, id);
                self.call_helper(Helper::Unmask, &[id]);
            }
            InstData::Flag { op, id } => {
                let id = self.raw(*id);
                let id = self.b.ins().ireduce(types::I32, id);
                let id = self.b.ins().band_imm_u(id, 0xffff);
                let what = self.b.ins().bor_imm_u(id, (*op as i64) << 16);
                let now = self.cycles_now();
                let now = self.b.ins().ireduce(types::I32, now);
                let slot = self.b.ins().iadd_imm_s(now, -i64::from(cost.all));
                let Loc { file, line, column } = func.locs[inst];
                let place = [self.int(file), self.int(line), self.int(column)];
                let args = [what, slot, place[0], place[1], place[2]];
                self.call_helper(Helper::Flag, &args);
            }
            InstData::Random { dst } => {
                let value = self.call_helper(Helper::Random, &[]);
                let value = self.b.ins().ireduce(types::I16, value);
                self.set(*dst, value);
            }
            InstData::SetConfig { addr, src } => {
                let (addr, src) = (self.raw(*addr), self.raw(*src));
                self.with_place(inst, Helper::SetConfig, &[addr, src]);
            }
            InstData::SetRandom { id } => {
                let id = self.raw(*id);
                let id = self.b.ins().ireduce(types::I32, id);
                self.call_helper(Helper::SetRandom, &[id]);
            }
            InstData::Clock { .. }
            | InstData::GetConfig { .. }
            | InstData::Queues { .. }
            | InstData::Host { .. } => {
                self.stop(inst);
            }
            InstData::Bound { index, len, what: _ } => self.bound(inst, *index, *len),
            InstData::Assert { cond, message: _ } => {
                let cond = self.get(*cond);
                let fails = self.b.ins().icmp_imm_s(
                    cranelift_codegen::ir::condcodes::IntCC::Equal,
                    cond,
                    0,
                );
                self.trap_if(fails, TrapCode::Assertion, inst.as_u32());
            }
        }
    }

    /// Looks for exceptions of an instruction with floats, in programs that may unmask some.
    fn watch(&mut self, inst: Inst, first: Local, second: Local, other: Local) {
        let floats = self.ty(first).is_float() || self.ty(other).is_float();
        if self.program.raises() && floats {
            let operands = [self.raw(first), self.raw(second)];
            self.with_place(inst, Helper::Watch, &operands);
        }
    }

    /// A helper that may trap, told where it is.
    fn with_place(&mut self, inst: Inst, helper: Helper, args: &[cranelift_codegen::ir::Value]) {
        self.store_cycles();
        let mut all = args.to_vec();
        all.extend(self.place(inst));
        let status = self.call_helper(helper, &all);
        self.leave_if_failed(status);
    }
}
