//! Random programs: arithmetic, memory, loops, calls, pointers, vectors, waits.
//!
//! Every program ends: loops count down, calls go to earlier functions only.

use dflow_ir::builder::FuncBuilder;
use dflow_ir::dsd::op::DsdOp;
use dflow_ir::dsd::{DsrFile, DsrRef, FabricDsd, late};
use dflow_ir::func::{Func, Local, Signature};
use dflow_ir::inst::{
    ClockOp, DsrField, InstData, Operand, QueueState, Terminator, VectorInst, VectorOptions,
};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::Color;
use dflow_ir::program::{FuncId, Profile, Program, Shape, ShapeId, SigId, SlotId};
use dflow_ir::scalar::{BinaryOp, Convert, UnaryOp};
use dflow_ir::ty::Ty;

use super::scalar::{allowed_binary, allowed_unary};

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A random program; its last function calls the others.
pub(super) fn program(seed: u64) -> Program {
    let mut rng = Rng(seed | 1);
    let mut program = Program::empty("random".to_owned(), Profile::Pe);
    program.slots.push(Ty::I16);
    program.slots.push(Ty::F32);
    program.shapes.push(Shape { dims: vec![(2, 9), (3, 2)] });
    for _ in 0..1 + rng.below(4) {
        let func = Gen::new(&mut rng, &program).func();
        program.signatures.push(func.signature());
        program.funcs.push(func);
    }
    program
}

struct Gen<'a> {
    rng: &'a mut Rng,
    program: &'a Program,
    b: FuncBuilder,
    locals: [Vec<Local>; 8],
    ret: Option<Ty>,
    dsds: Vec<Local>,
}

impl<'a> Gen<'a> {
    fn new(rng: &'a mut Rng, program: &'a Program) -> Gen<'a> {
        let params: Vec<Ty> = (0..rng.below(4)).map(|_| rng.pick(&Ty::ALL)).collect();
        let ret = (rng.below(2) == 0).then(|| rng.pick(&Ty::ALL));
        let mut b = FuncBuilder::new("f".to_owned(), &params, ret, Loc::default());
        let mut locals: [Vec<Local>; 8] = Default::default();
        for (at, ty) in params.iter().enumerate() {
            locals[*ty as usize].push(b.param(at));
        }
        for ty in Ty::ALL {
            for _ in 0..2 {
                locals[ty as usize].push(b.local(ty));
            }
            let bits = rng.next();
            locals[ty as usize].push(b.constant(ty, bits));
        }
        Gen { rng, program, b, locals, ret, dsds: Vec::new() }
    }

    fn func(mut self) -> Func {
        self.body(2);
        if !self.b.is_terminated() {
            let value = self.ret.map(|ty| self.any(ty));
            self.b.terminate(Terminator::Return(value));
        }
        self.b.finish()
    }

    fn any(&mut self, ty: Ty) -> Local {
        self.rng.pick(&self.locals[ty as usize])
    }

    /// A pointer into the first 900 bytes, mostly.
    fn address(&mut self) -> Local {
        if self.rng.below(40) == 0 {
            return self.any(Ty::I16);
        }
        let at = self.rng.below(900) as u64;
        self.b.constant(Ty::I16, at)
    }

    fn body(&mut self, depth: usize) {
        for _ in 0..2 + self.rng.below(8) {
            match self.rng.below(14) {
                0 if depth > 0 => self.branch(depth - 1),
                1 if depth > 0 => self.repeat(depth - 1),
                2 if depth > 0 => self.switch(depth - 1),
                3 => self.call(),
                4 => self.wait(),
                5 => self.vector(),
                6 | 7 => self.memory(),
                8 => self.odd(),
                _ => self.scalar(),
            }
        }
    }

    fn scalar(&mut self) {
        let ty = self.rng.pick(&Ty::ALL);
        match self.rng.below(4) {
            0 => {
                let op = self.rng.pick(&UnaryOp::ALL);
                if allowed_unary(op, ty) {
                    let (dst, src) = (self.any(ty), self.any(ty));
                    self.b.inst(InstData::Unary { dst, op, src });
                }
            }
            1 => {
                let to = self.rng.pick(&Ty::ALL);
                let kind = self.rng.pick(&Convert::ALL);
                let (dst, src) = (self.any(to), self.any(ty));
                self.b.inst(InstData::Convert { dst, kind, src });
            }
            _ => {
                let op = self.rng.pick(&BinaryOp::ALL);
                if allowed_binary(op, ty) {
                    let to = if op.is_comparison() { Ty::I8 } else { ty };
                    let (dst, lhs, rhs) = (self.any(to), self.any(ty), self.any(ty));
                    self.b.inst(InstData::Binary { dst, op, lhs, rhs });
                }
            }
        }
    }

    fn memory(&mut self) {
        let ty = self.rng.pick(&Ty::ALL);
        let addr = self.address();
        let offset = self.rng.below(16) as i32;
        match self.rng.below(6) {
            0 | 1 => {
                let dst = self.any(ty);
                self.b.inst(InstData::Load { dst, addr, offset });
            }
            2 | 3 => {
                let src = self.any(ty);
                self.b.inst(InstData::Store { addr, offset, src });
            }
            4 => {
                let src = self.address();
                let bytes = self.rng.below(40) as u32;
                self.b.inst(InstData::CopyMemory { dst: addr, src, bytes });
            }
            _ => {
                let (value, count) = (self.any(ty), self.rng.below(9) as u32);
                self.b.inst(InstData::FillMemory { dst: addr, value, count });
            }
        }
    }

    /// Configuration registers, by instruction and through a pointer; some addresses hold none.
    fn register(&mut self) {
        let word = 0x7f20 + self.rng.below(25) as u64;
        let (kind, value) = (self.rng.below(4), self.any(Ty::I16));
        if kind < 2 {
            let addr = self.b.constant(Ty::I16, word);
            self.b.inst(match kind {
                0 => InstData::GetConfig { dst: value, addr },
                _ => InstData::SetConfig { addr, src: value },
            });
            return;
        }
        let ty = self.rng.pick(&[Ty::I16, Ty::I32, Ty::F16, Ty::Bf16, Ty::F32, Ty::I8]);
        let value = self.any(ty);
        let offset = self.rng.below(5) as i32;
        let addr = self.b.constant(Ty::I16, 2 * word - 4);
        self.b.inst(match kind {
            2 => InstData::Load { dst: value, addr, offset },
            _ => InstData::Store { addr, offset, src: value },
        });
    }

    fn odd(&mut self) {
        match self.rng.below(7) {
            6 => self.register(),
            0 => {
                let dst = self.any(Ty::I16);
                self.b.inst(InstData::Random { dst });
            }
            1 => {
                let id = self.any(Ty::I16);
                let op = self.rng.pick(&crate::jit::bodies::FLAG_OPS);
                self.b.inst(InstData::Flag { op, id });
            }
            2 => {
                let dst = self.any(Ty::I16);
                self.b.inst(InstData::Slot { dst, slot: SlotId::from_u32(0) });
                let dst = self.any(Ty::F32);
                self.b.inst(InstData::Slot { dst, slot: SlotId::from_u32(1) });
            }
            3 => {
                let size = 1 + self.rng.below(30) as u32;
                let align = 1 << self.rng.below(5);
                let slot = self.b.stack_slot(size, align);
                let dst = self.any(Ty::I16);
                self.b.inst(InstData::StackAddress { dst, slot, offset: 0 });
                let src = self.any(Ty::I8);
                self.b.inst(InstData::Store { addr: dst, offset: 0, src });
            }
            5 => {
                let id = self.any(Ty::I16);
                self.b.inst(InstData::SetRandom { id });
            }
            4 => {
                let cond = self.any(Ty::I8);
                let one = self.b.constant(Ty::I8, 1);
                let dst = self.b.local(Ty::I8);
                self.b.inst(InstData::Binary { dst, op: BinaryOp::Or, lhs: cond, rhs: one });
                self.b.inst(InstData::Assert { cond: dst, message: "never".to_owned() });
            }
            _ => {
                let ty = self.rng.pick(&Ty::ALL);
                let (dst, src) = (self.any(ty), self.any(ty));
                self.b.inst(InstData::Copy { dst, src });
            }
        }
    }

    fn wait(&mut self) {
        if self.rng.below(3) == 0 {
            let dst = self.any(Ty::I16);
            let state = self.rng.pick(&[QueueState::InputEmpty, QueueState::OutputFull]);
            self.b.inst(InstData::Queues { dst, state });
            return;
        }
        let ops = [ClockOp::Enable, ClockOp::Reset, ClockOp::Read, ClockOp::Resume, ClockOp::Total];
        let op = self.rng.pick(&ops);
        let dst = op.reads().then(|| self.any(Ty::I64));
        self.b.inst(InstData::Clock { op, dst });
    }

    fn call(&mut self) {
        let count = self.program.funcs.len();
        if count == 0 {
            return;
        }
        let at = self.rng.below(count) as u32;
        let func = FuncId::from_u32(at);
        let Signature { params, ret } = self.program.funcs[func].signature();
        let args = params.iter().map(|&ty| self.any(ty)).collect();
        let dst = match ret {
            Some(ty) if self.rng.below(3) > 0 => Some(self.any(ty)),
            _ => None,
        };
        if self.rng.below(2) == 0 {
            self.b.inst(InstData::Call { dst, func, args });
        } else {
            let callee = self.b.local(Ty::I16);
            self.b.inst(InstData::FuncAddress { dst: callee, func });
            let sig = SigId::from_u32(at);
            self.b.inst(InstData::CallIndirect { dst, callee, sig, args });
        }
    }

    fn dsd(&mut self) -> Local {
        if !self.dsds.is_empty() && self.rng.below(3) == 0 {
            return self.rng.pick(&self.dsds);
        }
        let dst = self.b.local(Ty::I64);
        let base = self.rng.below(400) as u64 * 2;
        let base = self.b.constant(Ty::I16, base);
        if self.rng.below(5) == 0 {
            let shape = ShapeId::from_u32(0);
            self.b.inst(InstData::MakeMem4d { dst, base, shape, indexed: false });
        } else {
            let extent = self.rng.below(20) as u64;
            let extent = self.b.constant(Ty::I16, extent);
            let stride = self.rng.pick(&[1, 1, 2, 0xffff, 0]);
            let stride = self.b.constant(Ty::I16, stride);
            let indexed = self.rng.below(4) == 0;
            self.b.inst(InstData::MakeMem1d { dst, base, extent, stride, indexed });
        }
        self.dsds.push(dst);
        self.change(dst);
        dst
    }

    fn ring(&mut self) -> Local {
        let dst = self.b.local(Ty::I64);
        let [base, extent, wrap] = [self.rng.below(400) as u64 * 2, 12, 5];
        let [base, extent, wrap] =
            [base, extent, wrap].map(|value| self.b.constant(Ty::I16, value));
        self.b.inst(InstData::MakeRing { dst, base, extent, wrap });
        dst
    }

    fn change(&mut self, dsd: Local) {
        let small = self.rng.below(12) as u64;
        let small = self.b.constant(Ty::I16, small);
        let inst = match self.rng.below(8) {
            0 => InstData::DsdMoveBase { dst: dsd, src: dsd, delta: small },
            1 => InstData::DsdSetBase { dst: dsd, src: dsd, base: small },
            2 => InstData::DsdSetExtent { dst: dsd, src: dsd, extent: small },
            3 => InstData::DsdSetStride { dst: dsd, src: dsd, stride: small },
            _ => return,
        };
        self.b.inst(inst);
    }

    fn fabric(&mut self, input: bool) -> Local {
        let dst = self.b.local(Ty::I64);
        let queue = self.rng.below(6) as u8;
        let desc = FabricDsd {
            input,
            queue,
            color: Color::new(queue),
            indexed: self.rng.below(2) == 0,
            ..FabricDsd::default()
        };
        let extent = self.rng.below(9) as u64;
        let extent = self.b.constant(Ty::I16, extent);
        self.b.inst(InstData::MakeFabric { dst, desc, extent });
        dst
    }

    fn operand(&mut self, input: bool) -> Operand {
        match self.rng.below(6) {
            0 => Operand::Fabric(self.fabric(input)),
            1 => {
                let file = if input { DsrFile::Src1 } else { DsrFile::Dest };
                let dsr = DsrRef { file, index: self.rng.below(3) as u8 };
                let dsd = match self.rng.below(4) {
                    0 => self.fabric(input),
                    1 | 2 => self.ring(),
                    _ => self.dsd(),
                };
                let index = (self.rng.below(3) == 0).then(|| self.index());
                self.b.inst(InstData::LoadDsr {
                    dsr,
                    dsd,
                    options: VectorOptions { index, ..VectorOptions::default() },
                    save_address: self.rng.below(2) == 0,
                    single_step: false,
                    xdsr: None,
                });
                if self.rng.below(4) == 0 {
                    let field = self.rng.pick(&[DsrField::Base, DsrField::Extent]);
                    let value = self.rng.below(12) as u64 * 2;
                    let value = self.b.constant(Ty::I16, value);
                    self.b.inst(InstData::SetDsr { dsr, field, value });
                }
                Operand::Dsr(dsr)
            }
            _ => Operand::Memory(self.dsd()),
        }
    }

    /// An index, or a word with settings too.
    fn index(&mut self) -> Local {
        if self.rng.below(2) == 0 {
            return self.any(Ty::I16);
        }
        let ids = (self.rng.next() & 0x3f) << late::COMPLETION
            | (self.rng.next() & 0x3f) << late::CONTROL;
        let rest = self.rng.next() & 0x807f_0000_0000_ffff;
        self.b.constant(Ty::I64, ids | rest)
    }

    fn vector(&mut self) {
        let op = DsdOp(self.rng.below(DsdOp::all().count()) as u8);
        let row = op.row();
        let form = row.forms[self.rng.below(row.forms.len())];
        let types = row.written_types(form);
        let letters = form.letters().as_bytes();
        let dest = if letters[0] == b'p' {
            let at = self.rng.below(200) as u64 * 4;
            Operand::Pointer(self.b.constant(Ty::I16, at))
        } else {
            self.operand(false)
        };
        let mut sources: Vec<Operand> = Vec::new();
        for (letter, ty) in letters[1..].iter().zip(types) {
            sources.push(match letter {
                b's' => self.operand(true),
                _ => Operand::Scalar(self.any(ty)),
            });
        }
        if row.swapped(form) {
            sources.swap(0, 1);
        }
        let index = (self.rng.below(3) == 0).then(|| self.index());
        let result = (self.rng.below(2) == 0).then(|| self.any(Ty::I8));
        let options = VectorOptions { index, ..VectorOptions::default() };
        let inst = VectorInst { op, dest, sources, options, result };
        self.b.inst(InstData::Vector(Box::new(inst)));
    }

    fn branch(&mut self, depth: usize) {
        let cond = self.any(Ty::I8);
        let (then, otherwise, join) = (self.b.block(), self.b.block(), self.b.block());
        self.b.terminate(Terminator::Branch { cond, then, otherwise });
        for side in [then, otherwise] {
            self.b.switch_to(side);
            self.body(depth);
            self.b.terminate(Terminator::Jump(join));
        }
        self.b.switch_to(join);
    }

    fn repeat(&mut self, depth: usize) {
        let most = self.rng.pick(&[4, 4, 60]);
        let turns = 1 + self.rng.below(most) as u64;
        let (count, one) = (self.b.constant(Ty::I32, turns), self.b.constant(Ty::I32, 1));
        let (head, end) = (self.b.block(), self.b.block());
        self.b.terminate(Terminator::Jump(head));
        self.b.switch_to(head);
        self.body(depth);
        self.b.inst(InstData::Binary { dst: count, op: BinaryOp::Sub, lhs: count, rhs: one });
        let more = self.b.local(Ty::I8);
        self.b.inst(InstData::Convert { dst: more, kind: Convert::Bool, src: count });
        self.b.terminate(Terminator::Branch { cond: more, then: head, otherwise: end });
        self.b.switch_to(end);
    }

    fn switch(&mut self, depth: usize) {
        let ty = self.rng.pick(&[Ty::I8, Ty::I16, Ty::I32]);
        let value = self.any(ty);
        let mask = self.b.constant(ty, 3);
        let low = self.b.local(ty);
        self.b.inst(InstData::Binary { dst: low, op: BinaryOp::And, lhs: value, rhs: mask });
        let blocks: Vec<_> = (0..3).map(|_| self.b.block()).collect();
        let join = self.b.block();
        let cases = vec![(0, blocks[0]), (2, blocks[1]), (2, blocks[2])];
        self.b.terminate(Terminator::Switch { value: low, cases, otherwise: blocks[2] });
        for block in blocks {
            self.b.switch_to(block);
            self.body(depth);
            self.b.terminate(Terminator::Jump(join));
        }
        self.b.switch_to(join);
    }
}
