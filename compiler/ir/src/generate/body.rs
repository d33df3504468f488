//! Bodies that end and seldom trap.

use cranelift_entity::EntityRef;

use super::{Choices, GLOBAL_BYTES};
use crate::builder::FuncBuilder;
use crate::dsd::op::{DsdOp, Form, RowState};
use crate::func::{Func, Local};
use crate::inst::{Bounded, InstData, Operand, Terminator, VectorInst, VectorOptions};
use crate::program::{FuncId, GlobalId, Program};
use crate::scalar::{BinaryOp, Convert, UnaryOp};
use crate::ty::Ty;

/// Bytes from which results of the main function are written.
const WINDOW: u32 = 128;

/// A plain float value for float types, the number itself for integers.
pub(super) fn plain_float(ty: Ty, number: u32) -> u64 {
    let value = (f64::from(number) - 500.0) / 8.0;
    match ty {
        Ty::F16 => u64::from(half::f16::from_f64(value).to_bits()),
        Ty::Bf16 => u64::from(half::bf16::from_f64(value).to_bits()),
        Ty::F32 => u64::from((value as f32).to_bits()),
        Ty::F64 => value.to_bits(),
        Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 => u64::from(number),
    }
}

/// A function that calls earlier functions only.
pub(super) fn func(
    program: &Program,
    choices: &mut Choices<'_>,
    name: &str,
    params: &[Ty],
    ret: Option<Ty>,
) -> Func {
    let builder = FuncBuilder::new(name.to_owned(), params, ret, choices.loc());
    let mut body = Body { builder, choices, program, locals: Vec::new(), calls: 2, hidden: false };
    body.locals.extend((0..params.len()).map(|index| body.builder.param(index)));
    for ty in Ty::ALL {
        let bits = body.choices.value(ty);
        let local = body.builder.constant(ty, bits);
        body.locals.push(local);
    }
    body.statements(0);
    body.leave_results();
    let result = ret.map(|ty| body.local(ty));
    body.builder.terminate(Terminator::Return(result));
    body.builder.finish()
}

struct Body<'a, 'b> {
    builder: FuncBuilder,
    choices: &'a mut Choices<'b>,
    program: &'a Program,
    /// Locals that statements may read and write; loop counters and the like are not in it.
    locals: Vec<Local>,
    /// Calls that may still be made.
    calls: u32,
    /// Inside a loop in a loop: no calls.
    hidden: bool,
}

impl Body<'_, '_> {
    /// A local of a type that statements may change.
    fn local(&mut self, ty: Ty) -> Local {
        let fitting: Vec<Local> =
            self.locals.iter().copied().filter(|&local| self.builder.ty(local) == ty).collect();
        self.choices.one(&fitting)
    }

    fn any_ty(&mut self) -> Ty {
        self.choices.one(&Ty::ALL)
    }

    fn int_ty(&mut self) -> Ty {
        self.choices.one(&[Ty::I16, Ty::I32, Ty::I8, Ty::I64])
    }

    fn float_ty(&mut self) -> Ty {
        self.choices.one(&[Ty::F32, Ty::F16, Ty::F64, Ty::Bf16])
    }

    fn statements(&mut self, depth: u32) {
        let count = 1 + self.choices.below(24 >> (2 * depth));
        for _ in 0..count {
            if self.choices.is_exhausted() {
                return;
            }
            self.builder.at(self.choices.loc());
            match self.choices.below(16) {
                0..4 => self.binary(),
                4 => self.unary(),
                5 => self.convert(),
                6 | 7 => self.memory(),
                8 => self.blocks_of_memory(),
                9 | 10 => self.vector(),
                11 => self.call(),
                12 if depth < 2 => self.repeat(depth),
                13 if depth < 3 => self.choose(depth),
                14 if depth < 3 => self.switch(depth),
                _other => self.fresh(),
            }
        }
    }

    fn fresh(&mut self) {
        let ty = self.any_ty();
        let bits = self.choices.value(ty);
        let local = self.builder.constant(ty, bits);
        self.locals.push(local);
    }

    fn binary(&mut self) {
        use BinaryOp as Op;
        let (ty, op) = match self.choices.below(3) {
            0 => {
                let ops = [Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Max, Op::Min];
                (self.float_ty(), self.choices.one(&ops))
            }
            1 => {
                let compare =
                    [Op::Eq, Op::Ne, Op::LtF, Op::LeF, Op::LtS, Op::LtU, Op::LeS, Op::LeU];
                let op = self.choices.one(&compare);
                match op {
                    Op::LtF | Op::LeF => (self.float_ty(), op),
                    _equal_or_integer => (self.int_ty(), op),
                }
            }
            _integer => {
                let ops = [
                    Op::Add,
                    Op::Sub,
                    Op::Mul,
                    Op::And,
                    Op::Or,
                    Op::Xor,
                    Op::Shl,
                    Op::ShrS,
                    Op::ShrU,
                    Op::DivS,
                    Op::DivU,
                    Op::RemS,
                    Op::RemU,
                ];
                (self.int_ty(), self.choices.one(&ops))
            }
        };
        let (lhs, mut rhs) = (self.local(ty), self.local(ty));
        let divides = matches!(op, Op::DivS | Op::DivU | Op::RemS | Op::RemU);
        if divides && self.choices.below(32) != 31 {
            rhs = self.with_constant(Op::Or, rhs, 1);
        }
        if matches!(op, Op::Shl | Op::ShrS | Op::ShrU) && self.choices.below(4) != 3 {
            rhs = self.with_constant(Op::And, rhs, u64::from(ty.bits() - 1));
        }
        let dst = self.local(if op.is_comparison() { Ty::I8 } else { ty });
        self.builder.inst(InstData::Binary { dst, op, lhs, rhs });
    }

    /// A new local, hidden from statements: `local op constant`.
    fn with_constant(&mut self, op: BinaryOp, local: Local, bits: u64) -> Local {
        let ty = self.builder.ty(local);
        let rhs = self.builder.constant(ty, bits);
        let dst = self.builder.local(ty);
        self.builder.inst(InstData::Binary { dst, op, lhs: local, rhs });
        dst
    }

    fn unary(&mut self) {
        use UnaryOp as Op;
        let ops = [
            Op::Neg,
            Op::Abs,
            Op::BitNot,
            Op::Not,
            Op::Sqrt,
            Op::Floor,
            Op::Ceil,
            Op::Clz,
            Op::Ctz,
            Op::Popcnt,
        ];
        let op = self.choices.one(&ops);
        let ty = match op {
            Op::Neg | Op::Abs => self.any_ty(),
            Op::BitNot | Op::Clz | Op::Ctz | Op::Popcnt => self.int_ty(),
            Op::Not => Ty::I8,
            Op::Sqrt | Op::Floor | Op::Ceil => self.float_ty(),
        };
        let (dst, src) = (self.local(ty), self.local(ty));
        self.builder.inst(InstData::Unary { dst, op, src });
    }

    fn convert(&mut self) {
        let (from, to) = (self.any_ty(), self.any_ty());
        let mut kinds = vec![];
        if from.bits() == to.bits() {
            kinds.push(Convert::Bitcast);
        }
        if to == Ty::I8 {
            kinds.push(Convert::Bool);
        }
        match (from.is_float(), to.is_float()) {
            (false, false) if to.bits() < from.bits() => kinds.push(Convert::Truncate),
            (false, false) if to.bits() > from.bits() => {
                kinds.extend([Convert::SignExtend, Convert::ZeroExtend]);
            }
            (false, false) => {}
            (false, true) => kinds.extend([Convert::FloatFromSigned, Convert::FloatFromUnsigned]),
            (true, false) => kinds.extend([Convert::SignedFromFloat, Convert::UnsignedFromFloat]),
            (true, true) if from != to => kinds.push(Convert::FloatFromFloat),
            (true, true) => {}
        }
        let kind = self.choices.one(&kinds);
        let (dst, src) = (self.local(to), self.local(from));
        self.builder.inst(InstData::Convert { dst, kind, src });
    }

    /// The address of a global plus a constant, in a new local.
    fn global(&mut self, offset: u32) -> Local {
        let global = GlobalId::new(self.choices.below(2) as usize);
        let dst = self.builder.local(self.program.profile.pointer());
        self.builder.inst(InstData::GlobalAddress { dst, global, offset: offset as i32 });
        dst
    }

    /// A load or store at a constant or computed address, in a global or on the stack.
    fn memory(&mut self) {
        let ty = self.any_ty();
        let offset = (self.choices.below(GLOBAL_BYTES / 8) * 8) as i32;
        let (addr, offset) = match self.choices.below(3) {
            0 => (self.global(0), offset),
            1 => {
                let index = self.local(Ty::I16);
                let masked = self.with_constant(BinaryOp::And, index, u64::from(WINDOW - 8));
                self.bound(masked);
                let base = self.global(0);
                let addr = self.builder.local(Ty::I16);
                let op = BinaryOp::Add;
                self.builder.inst(InstData::Binary { dst: addr, op, lhs: base, rhs: masked });
                (addr, offset % (GLOBAL_BYTES - WINDOW) as i32)
            }
            _stack => {
                let slot = self.builder.stack_slot(16, 8);
                let dst = self.builder.local(Ty::I16);
                self.builder.inst(InstData::StackAddress { dst, slot, offset: 8 });
                (dst, offset % 16 - 8)
            }
        };
        let local = self.local(ty);
        self.builder.inst(match self.choices.yes() {
            true => InstData::Load { dst: local, addr, offset },
            false => InstData::Store { addr, offset, src: local },
        });
    }

    /// Holds an index below the window against a length, which one in 32 may exceed.
    fn bound(&mut self, index: Local) {
        let len = self.builder.local(Ty::I16);
        let small = self.choices.below(32) == 0;
        let bits = if small { self.choices.below(WINDOW) } else { WINDOW };
        self.builder.inst(InstData::Const { dst: len, bits: bits.into() });
        let what = self.choices.one(&[Bounded::Unsigned, Bounded::Signed, Bounded::Address]);
        self.builder.inst(InstData::Bound { index, len, what });
    }

    fn blocks_of_memory(&mut self) {
        let at = self.choices.below(16) * 8;
        let dst = self.global(at);
        if self.choices.yes() {
            let from = self.choices.below(16) * 8;
            let src = self.global(from);
            let bytes = self.choices.below(GLOBAL_BYTES / 2);
            self.builder.inst(InstData::CopyMemory { dst, src, bytes });
            return;
        }
        let ty = self.any_ty();
        let (value, count) = (self.local(ty), self.choices.below(GLOBAL_BYTES / 16));
        self.builder.inst(InstData::FillMemory { dst, value, count });
    }

    /// A mem1d descriptor that stays in its global: at most 16 elements, strides up to 3.
    fn descriptor(&mut self) -> Local {
        let middle = GLOBAL_BYTES / 2 + self.choices.below(8) * 4;
        let base = self.global(middle);
        let number = self.choices.below(17);
        let extent = self.builder.constant(Ty::I16, u64::from(number));
        let stride = i64::from(self.choices.below(7)) - 3;
        let stride = self.builder.constant(Ty::I16, stride.cast_unsigned());
        let dst = self.builder.local(Ty::I64);
        self.builder.inst(InstData::MakeMem1d { dst, base, extent, stride, indexed: false });
        dst
    }

    /// A vector operation over memory and scalars.
    fn vector(&mut self) {
        let rows: Vec<DsdOp> = DsdOp::all()
            .filter(|op| matches!(op.row().state, RowState::Full | RowState::Assumed(_)))
            .collect();
        let op = self.choices.one(&rows);
        let row = op.row();
        let form = self.choices.one(row.forms);
        if row.swapped(form) {
            return;
        }
        let dest = match form {
            Form::Ps | Form::Pk | Form::Pks | Form::Pki => {
                let at = self.choices.below(64) * 4;
                Operand::Pointer(self.global(at))
            }
            Form::Ds | Form::Dk | Form::Dss | Form::Dks | Form::Dsk | Form::Dssk => {
                Operand::Memory(self.descriptor())
            }
        };
        let mut sources = Vec::new();
        for (letter, ty) in form.letters().chars().skip(1).zip(row.sources) {
            sources.push(match letter {
                's' => Operand::Memory(self.descriptor()),
                _scalar => Operand::Scalar(self.local(ty)),
            });
        }
        let result = self.choices.yes().then(|| self.local(Ty::I8));
        let options = VectorOptions::default();
        let vector = VectorInst { op, dest, sources, options, result };
        self.builder.inst(InstData::Vector(Box::new(vector)));
    }

    fn call(&mut self) {
        if self.hidden || self.calls == 0 || self.program.funcs.is_empty() {
            return;
        }
        self.calls -= 1;
        let func = FuncId::new(self.choices.below(self.program.funcs.len() as u32) as usize);
        let signature = self.program.funcs[func].signature();
        let args = signature.params.iter().map(|&ty| self.local(ty)).collect();
        let dst = signature.ret.map(|ty| self.local(ty));
        self.builder.inst(InstData::Call { dst, func, args });
    }

    /// A loop of up to four turns.
    fn repeat(&mut self, depth: u32) {
        let turns = 1 + self.choices.below(4);
        let counter = self.builder.constant(Ty::I16, u64::from(turns));
        let one = self.builder.constant(Ty::I16, 1);
        let (body, end) = (self.builder.block(), self.builder.block());
        self.builder.terminate(Terminator::Jump(body));
        self.builder.switch_to(body);
        let hidden = std::mem::replace(&mut self.hidden, depth > 0);
        self.statements(depth + 1);
        self.hidden = hidden;
        let op = BinaryOp::Sub;
        self.builder.inst(InstData::Binary { dst: counter, op, lhs: counter, rhs: one });
        let zero = self.builder.constant(Ty::I16, 0);
        let cond = self.builder.local(Ty::I8);
        let op = BinaryOp::Ne;
        self.builder.inst(InstData::Binary { dst: cond, op, lhs: counter, rhs: zero });
        self.builder.terminate(Terminator::Branch { cond, then: body, otherwise: end });
        self.builder.switch_to(end);
    }

    fn choose(&mut self, depth: u32) {
        let cond = self.local(Ty::I8);
        let (then, otherwise) = (self.builder.block(), self.builder.block());
        let end = self.builder.block();
        self.builder.terminate(Terminator::Branch { cond, then, otherwise });
        for block in [then, otherwise] {
            self.builder.switch_to(block);
            self.statements(depth + 1);
            self.builder.terminate(Terminator::Jump(end));
        }
        self.builder.switch_to(end);
    }

    fn switch(&mut self, depth: u32) {
        let ty = self.int_ty();
        let value = self.local(ty);
        let value = self.with_constant(BinaryOp::And, value, 7);
        let end = self.builder.block();
        let mut cases = Vec::new();
        let mut targets = Vec::new();
        for case in 0..self.choices.below(4) {
            let block = self.builder.block();
            cases.push((u64::from(case) * 2, block));
            targets.push(block);
        }
        self.builder.terminate(Terminator::Switch { value, cases, otherwise: end });
        for block in targets {
            self.builder.switch_to(block);
            self.statements(depth + 1);
            self.builder.terminate(Terminator::Jump(end));
        }
        self.builder.switch_to(end);
    }

    /// Stores a local of each type, so that a difference between two engines shows.
    fn leave_results(&mut self) {
        let addr = self.builder.local(self.program.profile.pointer());
        let global = GlobalId::new(0);
        self.builder.inst(InstData::GlobalAddress { dst: addr, global, offset: 0 });
        for (at, ty) in (0..).step_by(8).zip(Ty::ALL) {
            let src = self.local(ty);
            self.builder.inst(InstData::Store { addr, offset: at, src });
        }
    }
}
