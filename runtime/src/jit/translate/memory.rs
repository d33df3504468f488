//! Loads and stores: a bounds check against the slab, a slow path that grows it or traps.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use dflow_ir::func::{Inst, Local};
use dflow_ir::program::Profile;

use super::{Translator, clif, field};
use crate::jit::helpers::Helper;

impl Translator<'_> {
    pub(super) fn load(&mut self, inst: Inst, dst: Local, addr: Local, offset: i32) {
        let ty = self.ty(dst);
        let address = self.checked(inst, addr, offset, ty.bytes());
        let flags = self.memory_flags();
        let value = self.b.ins().load(clif(ty), flags, address, 0);
        self.set(dst, value);
    }

    pub(super) fn store(&mut self, inst: Inst, addr: Local, offset: i32, src: Local) {
        let address = self.checked(inst, addr, offset, self.ty(src).bytes());
        let flags = self.memory_flags();
        let value = self.get(src);
        self.b.ins().store(flags, value, address, 0);
    }

    fn memory_flags(&self) -> MemFlagsData {
        MemFlagsData::new().with_notrap().with_alias_region(Some(self.memory_region))
    }

    /// Native address of an access of `bytes` bytes that is known to be inside the slab.
    fn checked(&mut self, inst: Inst, addr: Local, offset: i32, bytes: u32) -> Value {
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
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, address, last);
        let slow = self.b.create_block();
        let access = self.b.create_block();
        self.b.set_cold_block(slow);
        self.b.ins().brif(inside, access, &[], slow, &[]);
        self.b.switch_to_block(slow);
        self.store_cycles();
        let bytes = self.int(bytes);
        let [func, at] = self.place(inst);
        let status = self.call_helper(Helper::Ensure, &[address, bytes, func, at]);
        self.b.ins().brif(status, self.trapped, &[], access, &[]);
        self.b.switch_to_block(access);
        let memory = self.load_field(types::I64, field!(memory));
        self.b.ins().iadd(memory, address)
    }
}
