//! Scalar operations, held bit by bit to `ir::scalar`.
//!
//! What has no instruction of the same meaning (halves, and what the validator refuses) goes to
//! a helper that calls `ir::scalar` itself.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use dflow_ir::func::{Inst, Local};
use dflow_ir::scalar::{BinaryOp, Convert, UnaryOp, float};
use dflow_ir::ty::Ty;

use super::{Translator, clif, from_raw, to_raw};
use crate::jit::bodies::TrapCode;
use crate::jit::helpers::Helper;

/// A native float, as opposed to halves, which are integers here.
fn is_native_float(ty: Ty) -> bool {
    matches!(ty, Ty::F32 | Ty::F64)
}

fn is_integer(ty: Ty) -> bool {
    !ty.is_float()
}

impl Translator<'_> {
    pub(super) fn unary(&mut self, dst: Local, op: UnaryOp, src: Local) {
        let (ty, to) = (self.ty(src), self.ty(dst));
        let value = self.get(src);
        let b = &mut self.b;
        let result = match op {
            UnaryOp::Neg if is_integer(ty) => Some(b.ins().ineg(value)),
            UnaryOp::Neg if is_native_float(ty) => Some(b.ins().fneg(value)),
            UnaryOp::BitNot if is_integer(ty) => Some(b.ins().bnot(value)),
            UnaryOp::Not if is_integer(ty) && to == Ty::I8 => {
                Some(b.ins().icmp_imm_s(IntCC::Equal, value, 0))
            }
            UnaryOp::Abs if is_integer(ty) => Some(b.ins().iabs(value)),
            UnaryOp::Abs if is_native_float(ty) => Some(b.ins().fabs(value)),
            UnaryOp::Sqrt if is_native_float(ty) => Some(b.ins().sqrt(value)),
            UnaryOp::Floor if is_native_float(ty) => Some(b.ins().floor(value)),
            UnaryOp::Ceil if is_native_float(ty) => Some(b.ins().ceil(value)),
            UnaryOp::Clz if is_integer(ty) => Some(b.ins().clz(value)),
            UnaryOp::Ctz if is_integer(ty) => Some(b.ins().ctz(value)),
            UnaryOp::Popcnt if is_integer(ty) => Some(b.ins().popcnt(value)),
            UnaryOp::Neg
            | UnaryOp::BitNot
            | UnaryOp::Not
            | UnaryOp::Abs
            | UnaryOp::Sqrt
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Clz
            | UnaryOp::Ctz
            | UnaryOp::Popcnt => None,
        };
        let fits = |this: &Self, value: Value| this.b.func.dfg.value_type(value) == clif(to);
        let result = match result {
            Some(result) if fits(self, result) => result,
            Some(_) | None => {
                let raw = to_raw(&mut self.b, value, ty);
                let (op, code) = (self.int(op as u32), self.int(ty as u32));
                let raw = self.call_helper(Helper::Unary, &[op, code, raw]);
                from_raw(&mut self.b, raw, to)
            }
        };
        self.set(dst, result);
    }

    pub(super) fn binary(&mut self, inst: Inst, dst: Local, op: BinaryOp, lhs: Local, rhs: Local) {
        let (ty, to) = (self.ty(lhs), self.ty(dst));
        let (left, right) = (self.get(lhs), self.get(rhs));
        let result = if is_integer(ty) {
            self.integer(inst, op, ty, left, right)
        } else if is_native_float(ty) {
            self.native_float(op, ty, left, right)
        } else {
            None
        };
        let result = match result {
            Some(result) => result,
            None => {
                let (left, right) = (to_raw(&mut self.b, left, ty), to_raw(&mut self.b, right, ty));
                let (op, code) = (self.int(op as u32), self.int(ty as u32));
                let raw = self.call_helper(Helper::Binary, &[op, code, left, right]);
                from_raw(&mut self.b, raw, to)
            }
        };
        self.set(dst, result);
    }

    fn integer(
        &mut self,
        inst: Inst,
        op: BinaryOp,
        ty: Ty,
        left: Value,
        right: Value,
    ) -> Option<Value> {
        let compare = |this: &mut Self, cc| Some(this.b.ins().icmp(cc, left, right));
        match op {
            BinaryOp::Add => Some(self.b.ins().iadd(left, right)),
            BinaryOp::Sub => Some(self.b.ins().isub(left, right)),
            BinaryOp::Mul => Some(self.b.ins().imul(left, right)),
            BinaryOp::And => Some(self.b.ins().band(left, right)),
            BinaryOp::Or => Some(self.b.ins().bor(left, right)),
            BinaryOp::Xor => Some(self.b.ins().bxor(left, right)),
            BinaryOp::DivS | BinaryOp::DivU | BinaryOp::RemS | BinaryOp::RemU => {
                Some(self.divide(inst, op, ty, left, right))
            }
            BinaryOp::Shl | BinaryOp::ShrU => {
                let shifted = if op == BinaryOp::Shl {
                    self.b.ins().ishl(left, right)
                } else {
                    self.b.ins().ushr(left, right)
                };
                let width = i64::from(ty.bits());
                let fits = self.b.ins().icmp_imm_s(IntCC::UnsignedLessThan, right, width);
                let zero = self.b.ins().iconst(clif(ty), 0);
                Some(self.b.ins().select(fits, shifted, zero))
            }
            BinaryOp::ShrS => {
                let most = self.b.ins().iconst(clif(ty), i64::from(ty.bits()) - 1);
                let count = self.b.ins().umin(right, most);
                Some(self.b.ins().sshr(left, count))
            }
            BinaryOp::Eq => compare(self, IntCC::Equal),
            BinaryOp::Ne => compare(self, IntCC::NotEqual),
            BinaryOp::LtS => compare(self, IntCC::SignedLessThan),
            BinaryOp::LtU => compare(self, IntCC::UnsignedLessThan),
            BinaryOp::LeS => compare(self, IntCC::SignedLessThanOrEqual),
            BinaryOp::LeU => compare(self, IntCC::UnsignedLessThanOrEqual),
            BinaryOp::Div | BinaryOp::Max | BinaryOp::Min | BinaryOp::LtF | BinaryOp::LeF => None,
        }
    }

    /// Division by zero traps; the minimum by -1 wraps.
    fn divide(&mut self, inst: Inst, op: BinaryOp, ty: Ty, left: Value, right: Value) -> Value {
        let by_zero = self.b.ins().icmp_imm_s(IntCC::Equal, right, 0);
        self.trap_if(by_zero, TrapCode::DivideByZero, inst.as_u32());
        match op {
            BinaryOp::DivU => self.b.ins().udiv(left, right),
            BinaryOp::RemU => self.b.ins().urem(left, right),
            _ => {
                let by_minus_one = self.b.ins().icmp_imm_s(IntCC::Equal, right, -1);
                let one = self.b.ins().iconst(clif(ty), 1);
                let safe = self.b.ins().select(by_minus_one, one, right);
                if op == BinaryOp::RemS {
                    return self.b.ins().srem(left, safe);
                }
                let quotient = self.b.ins().sdiv(left, safe);
                let negated = self.b.ins().ineg(left);
                self.b.ins().select(by_minus_one, negated, quotient)
            }
        }
    }

    fn native_float(&mut self, op: BinaryOp, ty: Ty, left: Value, right: Value) -> Option<Value> {
        let compare = |this: &mut Self, cc| Some(this.b.ins().fcmp(cc, left, right));
        match op {
            BinaryOp::Add => Some(self.b.ins().fadd(left, right)),
            BinaryOp::Sub => Some(self.b.ins().fsub(left, right)),
            BinaryOp::Mul => Some(self.b.ins().fmul(left, right)),
            BinaryOp::Div => Some(self.b.ins().fdiv(left, right)),
            BinaryOp::Max | BinaryOp::Min => Some(self.extreme(op, ty, left, right)),
            BinaryOp::Eq => compare(self, FloatCC::Equal),
            BinaryOp::Ne => compare(self, FloatCC::NotEqual),
            BinaryOp::LtF => compare(self, FloatCC::LessThan),
            BinaryOp::LeF => compare(self, FloatCC::LessThanOrEqual),
            BinaryOp::DivS
            | BinaryOp::DivU
            | BinaryOp::RemS
            | BinaryOp::RemU
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::ShrS
            | BinaryOp::ShrU
            | BinaryOp::LtS
            | BinaryOp::LtU
            | BinaryOp::LeS
            | BinaryOp::LeU => None,
        }
    }

    /// Larger or smaller; a number wins over NaN.
    fn extreme(&mut self, op: BinaryOp, ty: Ty, left: Value, right: Value) -> Value {
        let nan = self.constant(ty, float::canonical_nan(ty));
        let no_left = self.b.ins().fcmp(FloatCC::Unordered, left, left);
        let no_right = self.b.ins().fcmp(FloatCC::Unordered, right, right);
        let both = if op == BinaryOp::Max {
            self.b.ins().fmax(left, right)
        } else {
            self.b.ins().fmin(left, right)
        };
        let without_right = self.b.ins().select(no_left, nan, left);
        let with_right = self.b.ins().select(no_left, right, both);
        self.b.ins().select(no_right, without_right, with_right)
    }

    pub(super) fn convert(&mut self, dst: Local, kind: Convert, src: Local) {
        let (from, to) = (self.ty(src), self.ty(dst));
        let value = self.get(src);
        let result = match self.native_convert(kind, from, to, value) {
            Some(result) => result,
            None => {
                let raw = to_raw(&mut self.b, value, from);
                let codes = from as u32 + 8 * to as u32;
                let (kind, codes) = (self.int(kind as u32), self.int(codes));
                let raw = self.call_helper(Helper::Convert, &[kind, codes, raw]);
                from_raw(&mut self.b, raw, to)
            }
        };
        self.set(dst, result);
    }

    fn native_convert(&mut self, kind: Convert, from: Ty, to: Ty, value: Value) -> Option<Value> {
        let integers = is_integer(from) && is_integer(to);
        match kind {
            Convert::Truncate if integers && to.bits() < from.bits() => {
                Some(self.b.ins().ireduce(clif(to), value))
            }
            Convert::SignExtend if integers && to.bits() > from.bits() => {
                Some(self.b.ins().sextend(clif(to), value))
            }
            Convert::ZeroExtend if integers && to.bits() > from.bits() => {
                Some(self.b.ins().uextend(clif(to), value))
            }
            Convert::Bitcast if from.bits() == to.bits() => Some(if clif(from) == clif(to) {
                value
            } else {
                self.b.ins().bitcast(clif(to), MemFlagsData::new(), value)
            }),
            Convert::FloatFromSigned if is_integer(from) && is_native_float(to) => {
                let wide =
                    if from == Ty::I64 { value } else { self.b.ins().sextend(types::I64, value) };
                Some(self.b.ins().fcvt_from_sint(clif(to), wide))
            }
            Convert::FloatFromUnsigned if is_integer(from) && is_native_float(to) => {
                let wide =
                    if from == Ty::I64 { value } else { self.b.ins().uextend(types::I64, value) };
                Some(self.b.ins().fcvt_from_uint(clif(to), wide))
            }
            Convert::SignedFromFloat if is_native_float(from) && is_integer(to) => {
                Some(self.saturate_signed(to, value))
            }
            Convert::UnsignedFromFloat if is_native_float(from) && is_integer(to) => {
                Some(self.saturate_unsigned(to, value))
            }
            Convert::FloatFromFloat if from == Ty::F32 && to == Ty::F64 => {
                Some(self.b.ins().fpromote(types::F64, value))
            }
            Convert::FloatFromFloat if from == Ty::F64 && to == Ty::F32 => {
                Some(self.b.ins().fdemote(types::F32, value))
            }
            Convert::Bool if is_integer(from) && to == Ty::I8 => {
                Some(self.b.ins().icmp_imm_s(IntCC::NotEqual, value, 0))
            }
            Convert::Bool if is_native_float(from) && to == Ty::I8 => {
                let zero = self.zero(from);
                Some(self.b.ins().fcmp(FloatCC::NotEqual, value, zero))
            }
            Convert::Truncate
            | Convert::SignExtend
            | Convert::ZeroExtend
            | Convert::Bitcast
            | Convert::FloatFromSigned
            | Convert::FloatFromUnsigned
            | Convert::SignedFromFloat
            | Convert::UnsignedFromFloat
            | Convert::FloatFromFloat
            | Convert::Bool => None,
        }
    }

    /// Narrow results saturate after a wider saturating conversion.
    fn saturate_signed(&mut self, to: Ty, value: Value) -> Value {
        if matches!(to, Ty::I32 | Ty::I64) {
            return self.b.ins().fcvt_to_sint_sat(clif(to), value);
        }
        let wide = self.b.ins().fcvt_to_sint_sat(types::I32, value);
        let high = (1i64 << (to.bits() - 1)) - 1;
        let (low, high) =
            (self.b.ins().iconst(types::I32, -high - 1), self.b.ins().iconst(types::I32, high));
        let bounded = self.b.ins().smin(wide, high);
        let bounded = self.b.ins().smax(bounded, low);
        self.b.ins().ireduce(clif(to), bounded)
    }

    fn saturate_unsigned(&mut self, to: Ty, value: Value) -> Value {
        if matches!(to, Ty::I32 | Ty::I64) {
            return self.b.ins().fcvt_to_uint_sat(clif(to), value);
        }
        let wide = self.b.ins().fcvt_to_uint_sat(types::I32, value);
        let high = self.b.ins().iconst(types::I32, (1i64 << to.bits()) - 1);
        let bounded = self.b.ins().umin(wide, high);
        self.b.ins().ireduce(clif(to), bounded)
    }
}
