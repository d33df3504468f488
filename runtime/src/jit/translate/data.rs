//! Descriptor arithmetic: fields of a packed word.

use cranelift_codegen::ir::{InstBuilder, Value, types};
use dflow_ir::func::Local;

use super::Translator;

/// Bit position of the extent.
pub(super) const EXTENT: i64 = 16;
/// Bit position of the stride.
pub(super) const STRIDE: i64 = 32;

impl Translator<'_> {
    /// The low 16 bits of a local, moved to a field.
    pub(super) fn in_field(&mut self, local: Local, at: i64) -> Value {
        let value = self.get(local);
        let wide = self.b.ins().uextend(types::I64, value);
        if at == 0 { wide } else { self.b.ins().ishl_imm_u(wide, at) }
    }

    /// `dst = src` with one 16-bit field replaced.
    pub(super) fn replace_field(&mut self, dst: Local, src: Local, value: Local, at: i64) {
        let field = self.in_field(value, at);
        self.put_field(dst, src, field, at);
    }

    fn put_field(&mut self, dst: Local, src: Local, field: Value, at: i64) {
        let src = self.get(src);
        let kept = self.b.ins().band_imm_s(src, !(0xffff << at));
        let whole = self.b.ins().bor(kept, field);
        self.set(dst, whole);
    }

    /// `dst = src` with its base moved, wrapping at 16 bits.
    pub(super) fn move_base(&mut self, dst: Local, src: Local, delta: Local) {
        let dsd = self.get(src);
        let base = self.b.ins().ireduce(types::I16, dsd);
        let delta = self.get(delta);
        let moved = self.b.ins().iadd(base, delta);
        let field = self.b.ins().uextend(types::I64, moved);
        self.put_field(dst, src, field, 0);
    }

    /// `dst = constant bits | fields`.
    pub(super) fn pack(&mut self, dst: Local, bits: u64, fields: &[(Local, i64)]) {
        let mut whole = self.b.ins().iconst(types::I64, bits as i64);
        for &(local, at) in fields {
            let field = self.in_field(local, at);
            whole = self.b.ins().bor(whole, field);
        }
        self.set(dst, whole);
    }
}
