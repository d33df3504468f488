//! Loads and stores: a bounds check against the slab, a slow path that grows it, reaches a
//! register, or traps.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use dflow_ir::func::{Inst, Local};
use dflow_ir::program::Profile;

use super::{Translator, clif, field, from_raw};
use crate::jit::helpers::Helper;

impl Translator<'_> {
    pub(super) fn load(&mut self, inst: Inst, dst: Local, addr: Local, offset: i32) {
        let ty = self.ty(dst);
        let (address, inside) = self.bounds(addr, offset, ty.bytes());
        let [fast, slow, done] = [(); 3].map(|()| self.b.create_block());
        let value = self.b.append_block_param(done, clif(ty));
        self.b.set_cold_block(slow);
        self.b.ins().brif(inside, fast, &[], slow, &[]);
        self.b.switch_to_block(slow);
        self.store_cycles();
        let bytes = self.int(ty.bytes());
        let [func, at] = self.place(inst);
        let status = self.call_helper(Helper::Load, &[address, bytes, func, at]);
        self.leave_if_failed(status);
        let raw = self.load_field(types::I64, field!(result));
        let found = from_raw(&mut self.b, raw, ty);
        self.b.ins().jump(done, &[found.into()]);
        self.b.switch_to_block(fast);
        let native = self.native(address);
        let flags = self.memory_flags();
        let found = self.b.ins().load(clif(ty), flags, native, 0);
        self.b.ins().jump(done, &[found.into()]);
        self.b.switch_to_block(done);
        self.set(dst, value);
    }

    pub(super) fn store(&mut self, inst: Inst, addr: Local, offset: i32, src: Local) {
        let bytes = self.ty(src).bytes();
        let (address, inside) = self.bounds(addr, offset, bytes);
        let [fast, slow, done] = [(); 3].map(|()| self.b.create_block());
        self.b.set_cold_block(slow);
        self.b.ins().brif(inside, fast, &[], slow, &[]);
        self.b.switch_to_block(slow);
        self.store_cycles();
        let raw = self.raw(src);
        let bytes = self.int(bytes);
        let [func, at] = self.place(inst);
        let status = self.call_helper(Helper::Store, &[address, raw, bytes, func, at]);
        self.b.ins().brif(status, self.trapped, &[], done, &[]);
        self.b.switch_to_block(fast);
        let native = self.native(address);
        let flags = self.memory_flags();
        let value = self.get(src);
        self.b.ins().store(flags, value, native, 0);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(done);
    }

    fn memory_flags(&self) -> MemFlagsData {
        MemFlagsData::new().with_notrap().with_alias_region(Some(self.memory_region))
    }

    /// The address of an access of `bytes` bytes, and whether it is inside the slab.
    fn bounds(&mut self, addr: Local, offset: i32, bytes: u32) -> (Value, Value) {
        let base = self.get(addr);
        let address = match self.program.program().profile {
            Profile::Pe => {
                let sum = if offset == 0 {
                    base
                } else {
                    self.b.ins().iadd_imm_s(base, i64::from(offset as i16))
                };
                self.b.ins().uextend(types::I64, sum)
            }
            Profile::Host => self.b.ins().iadd_imm_s(base, i64::from(offset)),
        };
        let len = self.load_field(types::I64, field!(memory_len));
        // The slab is never shorter than the widest access.
        let last = self.b.ins().iadd_imm_s(len, -i64::from(bytes));
        (address, self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, address, last))
    }

    /// Native address of a byte of the slab.
    fn native(&mut self, address: Value) -> Value {
        let memory = self.load_field(types::I64, field!(memory));
        self.b.ins().iadd(memory, address)
    }
}
