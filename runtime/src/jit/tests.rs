//! Generated code against the interpreter: directed programs, then random ones.

mod random;

use dflow_ir::builder::FuncBuilder;
use dflow_ir::dsd::{DsrFile, DsrRef, FabricDsd};
use dflow_ir::func::{Func, Local};
use dflow_ir::image::MemoryMap;
use dflow_ir::inst::{ClockOp, FlagOp, InstData, Operand, Terminator, VectorInst, VectorOptions};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::Color;
use dflow_ir::program::{
    Fifo, FifoAction, FifoId, FuncId, GlobalId, HostOp, Profile, Program, SigId,
};
use dflow_ir::scalar::{BinaryOp, Convert, UnaryOp};
use dflow_ir::target::{Target, TargetId};
use dflow_ir::ty::Ty;
use proptest::prelude::*;

use super::Jit;
use crate::exec::interp::Interpreter;
use crate::exec::program::LoadedProgram;
use crate::exec::state::FRAME_HEADER;
use crate::exec::{
    ActKind, CodeEngine, CodeTrapKind, ConfigRead, Entry, FifoCheck, PeState, Registers, Segment,
    Stop, VectorStart, VectorState, finish_host_call,
};

/// Registers that hold something of their own.
struct Addresses;

impl Registers for Addresses {
    fn read(&self, address: u16) -> Option<u16> {
        Some(address.wrapping_mul(31))
    }
}

/// Runs a program on both engines side by side and compares all that can be seen.
struct Pair {
    program: LoadedProgram,
    jit: Jit,
    plain: PeState,
    native: PeState,
    slots: Vec<u64>,
}

impl Pair {
    fn new(program: Program) -> Pair {
        let map = MemoryMap { data_end: 1024, stack: 512, ..MemoryMap::default() };
        Pair::load(LoadedProgram::new(program, &map, Target::get(TargetId::Wse2)))
    }

    fn load(program: LoadedProgram) -> Pair {
        let jit = Jit::compile(&program).unwrap();
        let (plain, native) = (PeState::new(&program), PeState::new(&program));
        let slots = (0..program.program().slots.len() as u64).map(|at| at * 77 + 5).collect();
        Pair { program, jit, plain, native, slots }
    }

    fn of(funcs: Vec<Func>) -> Pair {
        let mut program = Program::empty("test".to_owned(), Profile::Pe);
        program.funcs = funcs.into_iter().collect();
        Pair::new(program)
    }

    fn start(&mut self, func: u32, args: &[u64]) -> Segment {
        self.run(Entry::Start { func: FuncId::from_u32(func), args })
    }

    fn resume(&mut self, value: u64) -> Segment {
        self.run(Entry::Resume { value })
    }

    fn run(&mut self, entry: Entry<'_>) -> Segment {
        let (mut first, mut second) = (Segment::default(), Segment::default());
        let (program, slots) = (&self.program, &self.slots);
        Interpreter.run_with(program, &mut self.plain, slots, entry, &Addresses, &mut first);
        self.jit.run_with(program, &mut self.native, slots, entry, &Addresses, &mut second);
        assert_eq!(first, second);
        self.compare(&first.stop);
        first
    }

    fn compare(&self, stop: &Stop) {
        let (plain, native) = (&self.plain, &self.native);
        assert!(plain.memory == native.memory, "memory differs");
        assert_eq!(plain.dsrs, native.dsrs);
        assert_eq!(plain.fifos, native.fifos);
        assert_eq!(plain.generators, native.generators);
        assert_eq!(plain.xdsrs, native.xdsrs);
        if matches!(stop, Stop::Trap(_)) {
            return;
        }
        assert_eq!(plain.sp, native.sp);
        if matches!(stop, Stop::Return) {
            return;
        }
        assert_eq!(plain.top, native.top);
        let mut base = 0;
        loop {
            let word = plain.frames[base as usize];
            assert_eq!(word, native.frames[base as usize]);
            let func = FuncId::from_u32((word >> 32) as u32);
            let plan = self.program.plan(func);
            let points = &self.program.suspension().funcs[func].points;
            for local in &points[(word as u32 - 1) as usize].live {
                let at = (base + FRAME_HEADER + local.as_u32()) as usize;
                assert_eq!(plain.frames[at], native.frames[at], "{func} {local} {word:#x}");
            }
            if base == plain.top {
                return;
            }
            base += plan.frame_words;
        }
    }

    /// Does a vector operation on both sides, with made-up inputs; the value to resume with.
    fn vector(&mut self, start: &VectorStart) -> u64 {
        let first = drive(&self.program, &mut self.plain, start);
        assert_eq!(first, drive(&self.program, &mut self.native, start));
        first
    }

    /// Runs to the end or a trap, resuming with made-up values.
    fn finish(&mut self, func: u32, args: &[u64]) -> Vec<Segment> {
        let mut segments = vec![self.start(func, args)];
        for turn in 0..200 {
            let value = match &segments[segments.len() - 1].stop {
                Stop::Return | Stop::Trap(_) => break,
                Stop::Vector(start) if start.asynchronous => 0,
                Stop::Vector(start) => {
                    let start = start.clone();
                    self.vector(&start)
                }
                Stop::Clock(_) | Stop::Queues(_) => 1000 + turn * 13,
                Stop::Config(read) => u64::from(read.address) + turn,
                Stop::Yield => 0,
                Stop::Host(call) => {
                    let values: Vec<u64> = (0..call.dsts.len() as u64).map(|v| v + turn).collect();
                    finish_host_call(&mut self.plain, &call.dsts, &values);
                    finish_host_call(&mut self.native, &call.dsts, &values);
                    0
                }
            };
            segments.push(self.resume(value));
        }
        segments
    }
}

fn drive(program: &LoadedProgram, state: &mut PeState, start: &VectorStart) -> u64 {
    let mut running = VectorState::new(program, start.clone());
    let mut word = 3u32;
    for _ in 0..100 {
        if running.is_done() || running.fifo_check(program, state) != FifoCheck::Ready {
            break;
        }
        word = word.wrapping_mul(0x0101_6b2d).wrapping_add(7);
        if running.step(program, state, [word, !word]).is_err() {
            break;
        }
    }
    let complete = running.is_done();
    running.finish(program, state, complete).unwrap_or(0)
}

fn function(params: &[Ty], ret: Option<Ty>) -> FuncBuilder {
    FuncBuilder::new("f".to_owned(), params, ret, Loc::default())
}

/// A function that computes into locals and stores each at its place in memory.
fn stores(b: &mut FuncBuilder, at: u64, value: Local) {
    let addr = b.constant(Ty::I16, at);
    b.inst(InstData::Store { addr, offset: 0, src: value });
}

const SAMPLES: [u64; 14] = [
    0,
    1,
    2,
    7,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
];

fn samples(ty: Ty) -> Vec<u64> {
    let mut all: Vec<u64> = SAMPLES.iter().map(|&raw| ty.mask(raw)).collect();
    let floats = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        0.1,
        3e4,
        -7e4,
        2.5e9,
        1e19,
        -1e19,
        1e300,
        1e-42,
        1e-310,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    if ty.is_float() {
        all.extend(floats.map(|value| {
            dflow_ir::scalar::convert(Convert::FloatFromFloat, Ty::F64, ty, f64::to_bits(value))
        }));
        // Signalling and negative NaNs.
        all.extend([0x7c01, 0xfe00, 0x7f80_0001, 0xffc0_0000].map(|raw| ty.mask(raw)));
        all.push(ty.mask(0xfff0_0000_0000_0001));
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn allowed_unary(op: UnaryOp, ty: Ty) -> bool {
    match op {
        UnaryOp::Neg | UnaryOp::Abs => true,
        UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil => ty.is_float(),
        UnaryOp::Not => ty == Ty::I8,
        UnaryOp::BitNot | UnaryOp::Clz | UnaryOp::Ctz | UnaryOp::Popcnt => !ty.is_float(),
    }
}

fn allowed_binary(op: BinaryOp, ty: Ty) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Eq | BinaryOp::Ne => true,
        BinaryOp::Div | BinaryOp::Max | BinaryOp::Min | BinaryOp::LtF | BinaryOp::LeF => {
            ty.is_float()
        }
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
        | BinaryOp::LeU => !ty.is_float(),
    }
}

#[test]
fn every_scalar_operation_on_every_type_and_edge_value() {
    let mut funcs = Vec::new();
    let mut kinds = Vec::new();
    for ty in Ty::ALL {
        for op in UnaryOp::ALL.into_iter().filter(|&op| allowed_unary(op, ty)) {
            let mut b = function(&[ty, ty], None);
            let dst = b.local(ty);
            let src = b.param(0);
            b.inst(InstData::Unary { dst, op, src });
            stores(&mut b, 64, dst);
            b.terminate(Terminator::Return(None));
            funcs.push(b.finish());
            kinds.push(ty);
        }
        for op in BinaryOp::ALL.into_iter().filter(|&op| allowed_binary(op, ty)) {
            let mut b = function(&[ty, ty], None);
            let dst = b.local(if op.is_comparison() { Ty::I8 } else { ty });
            let (lhs, rhs) = (b.param(0), b.param(1));
            b.inst(InstData::Binary { dst, op, lhs, rhs });
            stores(&mut b, 64, dst);
            b.terminate(Terminator::Return(None));
            funcs.push(b.finish());
            kinds.push(ty);
        }
        for (kind, to) in Convert::ALL.into_iter().flat_map(|kind| Ty::ALL.map(|to| (kind, to))) {
            let mut b = function(&[ty, ty], None);
            let dst = b.local(to);
            let src = b.param(0);
            b.inst(InstData::Convert { dst, kind, src });
            stores(&mut b, 64, dst);
            b.terminate(Terminator::Return(None));
            funcs.push(b.finish());
            kinds.push(ty);
        }
    }
    let mut pair = Pair::of(funcs);
    for (func, ty) in kinds.into_iter().enumerate() {
        let samples = samples(ty);
        for &left in &samples {
            for &right in &samples {
                let segment = pair.start(func as u32, &[left, right]);
                assert!(matches!(segment.stop, Stop::Return | Stop::Trap(_)));
            }
        }
    }
}

#[test]
fn memory_of_every_type_with_offsets_wraps_grows_and_traps() {
    let mut funcs = Vec::new();
    for ty in Ty::ALL {
        for offset in [0, 6, -3] {
            let mut b = function(&[Ty::I16, ty], None);
            let (addr, src) = (b.param(0), b.param(1));
            b.inst(InstData::Store { addr, offset, src });
            let dst = b.local(ty);
            b.inst(InstData::Load { dst, addr, offset: offset - 1 });
            stores(&mut b, 512, dst);
            b.terminate(Terminator::Return(None));
            funcs.push(b.finish());
        }
    }
    let count = funcs.len() as u32;
    let mut pair = Pair::of(funcs);
    for func in 0..count {
        for addr in [0, 4, 1000, 1533, 1540, 40_000, 49_140, 49_149, 49_152, 0xfffd, 0xffff] {
            pair.start(func, &[addr, 0x0123_4567_89ab_cdef]);
        }
    }
}

#[test]
fn a_pointer_call_may_wait_and_checks_the_signature() {
    let mut inner = function(&[Ty::F32, Ty::I64], Some(Ty::F32));
    let time = inner.local(Ty::I64);
    inner.inst(InstData::Clock { op: ClockOp::Read, dst: Some(time) });
    let (scale, add) = (inner.param(0), inner.param(1));
    let sum = inner.local(Ty::I64);
    inner.inst(InstData::Binary { dst: sum, op: BinaryOp::Add, lhs: time, rhs: add });
    let value = inner.local(Ty::F32);
    inner.inst(InstData::Convert { dst: value, kind: Convert::FloatFromSigned, src: sum });
    inner.inst(InstData::Binary { dst: value, op: BinaryOp::Mul, lhs: value, rhs: scale });
    inner.terminate(Terminator::Return(Some(value)));
    let mut outer = function(&[Ty::I16], None);
    let callee = outer.param(0);
    let scale = outer.constant(Ty::F32, u64::from(1.5f32.to_bits()));
    let add = outer.constant(Ty::I64, 1 << 40);
    let dst = outer.local(Ty::F32);
    let sig = SigId::from_u32(0);
    outer.inst(InstData::CallIndirect { dst: Some(dst), callee, sig, args: vec![scale, add] });
    stores(&mut outer, 64, dst);
    stores(&mut outer, 72, add);
    outer.terminate(Terminator::Return(None));
    let mut program = Program::empty("test".to_owned(), Profile::Pe);
    program.signatures.push(inner_signature());
    program.funcs = [inner.finish(), outer.finish()].into_iter().collect();
    let mut pair = Pair::new(program);
    let segments = pair.finish(1, &[1]);
    assert_eq!(segments.len(), 2);
    for bad in [0, 2, 3, 0xffff] {
        assert!(matches!(pair.start(1, &[bad]).stop, Stop::Trap(_)));
    }
}

fn inner_signature() -> dflow_ir::func::Signature {
    dflow_ir::func::Signature { params: vec![Ty::F32, Ty::I64], ret: Some(Ty::F32) }
}

#[test]
fn stack_slots_are_fresh_in_each_call_and_end_in_a_trap() {
    let mut b = function(&[Ty::I16], None);
    let n = b.param(0);
    let slot = b.stack_slot(20, 8);
    let (at, old) = (b.local(Ty::I16), b.local(Ty::I32));
    b.inst(InstData::StackAddress { dst: at, slot, offset: 4 });
    b.inst(InstData::Load { dst: old, addr: at, offset: 0 });
    b.inst(InstData::Flag { op: FlagOp::Activate, id: at });
    let mark = b.constant(Ty::I32, 0xdead_beef);
    b.inst(InstData::Store { addr: at, offset: 0, src: mark });
    b.inst(InstData::Clock { op: ClockOp::Enable, dst: None });
    stores(&mut b, 64, old);
    let (again, end) = (b.block(), b.block());
    let more = b.local(Ty::I8);
    b.inst(InstData::Convert { dst: more, kind: Convert::Bool, src: n });
    b.terminate(Terminator::Branch { cond: more, then: again, otherwise: end });
    b.switch_to(again);
    let one = b.constant(Ty::I16, 1);
    b.inst(InstData::Binary { dst: n, op: BinaryOp::Sub, lhs: n, rhs: one });
    b.inst(InstData::Call { dst: None, func: FuncId::from_u32(0), args: vec![n] });
    b.inst(InstData::StackAddress { dst: at, slot, offset: 4 });
    b.inst(InstData::Load { dst: old, addr: at, offset: 0 });
    stores(&mut b, 68, old);
    b.terminate(Terminator::Jump(end));
    b.switch_to(end);
    b.terminate(Terminator::Return(None));
    let mut pair = Pair::of(vec![b.finish()]);
    assert_eq!(pair.finish(0, &[5]).last().unwrap().stop, Stop::Return);
    let last = pair.finish(0, &[100]);
    assert!(matches!(last.last().unwrap().stop, Stop::Trap(_)));
}

#[test]
fn recursion_without_end_is_the_same_trap_on_a_small_native_stack() {
    let mut b = function(&[Ty::I32], Some(Ty::I32));
    let n = b.param(0);
    let one = b.constant(Ty::I32, 1);
    let dst = b.local(Ty::I32);
    b.inst(InstData::Binary { dst: n, op: BinaryOp::Add, lhs: n, rhs: one });
    b.inst(InstData::Call { dst: Some(dst), func: FuncId::from_u32(0), args: vec![n] });
    b.inst(InstData::Binary { dst, op: BinaryOp::Add, lhs: dst, rhs: n });
    b.terminate(Terminator::Return(Some(dst)));
    let func = b.finish();
    let run = move || Pair::of(vec![func]).start(0, &[0]);
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
    assert!(matches!(thread.join().unwrap().stop, Stop::Trap(_)));
}

#[test]
fn recursion_that_doubles_ends_in_a_trap_before_it_takes_minutes() {
    let mut b = function(&[Ty::I32], None);
    let n = b.param(0);
    let (again, end) = (b.block(), b.block());
    let more = b.local(Ty::I8);
    b.inst(InstData::Convert { dst: more, kind: Convert::Bool, src: n });
    b.terminate(Terminator::Branch { cond: more, then: again, otherwise: end });
    b.switch_to(again);
    let one = b.constant(Ty::I32, 1);
    b.inst(InstData::Binary { dst: n, op: BinaryOp::Sub, lhs: n, rhs: one });
    for _ in 0..2 {
        b.inst(InstData::Call { dst: None, func: FuncId::from_u32(0), args: vec![n] });
    }
    b.terminate(Terminator::Jump(end));
    b.switch_to(end);
    b.terminate(Terminator::Return(None));
    let mut program = Program::empty("test".to_owned(), Profile::Pe);
    program.funcs = [b.finish()].into_iter().collect();
    let map = MemoryMap { data_end: 64, stack: 64, ..MemoryMap::default() };
    let program = LoadedProgram::new(program, &map, Target::get(TargetId::Wse2));
    let jit = Jit::compile(&program).unwrap();
    let (mut state, mut out) = (PeState::new(&program), Segment::default());
    let entry = Entry::Start { func: FuncId::from_u32(0), args: &[100] };
    jit.run(&program, &mut state, &[], entry, &mut out);
    let Stop::Trap(trap) = out.stop else { panic!("no trap") };
    assert_eq!(trap.kind, crate::exec::CodeTrapKind::SegmentTooLong);
}

#[test]
fn registers_fabric_operations_and_their_results() {
    let mut b = function(&[], None);
    let dsr = DsrRef { file: DsrFile::Src1, index: 3 };
    let desc = FabricDsd { input: true, queue: 2, color: Color::new(4), ..FabricDsd::default() };
    let five = b.constant(Ty::I16, 5);
    let one = b.constant(Ty::I16, 1);
    let base = b.constant(Ty::I16, 100);
    let (input, memory) = (b.local(Ty::I64), b.local(Ty::I64));
    b.inst(InstData::MakeFabric { dst: input, desc, extent: five });
    b.inst(InstData::MakeMem1d { dst: memory, base, extent: five, stride: one, indexed: false });
    let load = |dsd| InstData::LoadDsr {
        dsr,
        dsd,
        options: VectorOptions::default(),
        save_address: true,
        single_step: false,
        xdsr: None,
    };
    let result = b.local(Ty::I8);
    let vector = |result| {
        InstData::Vector(Box::new(VectorInst {
            op: dflow_ir::dsd::op::DsdOp::by_name("mov32").unwrap(),
            dest: Operand::Memory(memory),
            sources: vec![Operand::Dsr(dsr)],
            options: VectorOptions::default(),
            result,
        }))
    };
    b.inst(load(input));
    b.inst(vector(Some(result)));
    stores(&mut b, 64, result);
    b.inst(load(memory));
    b.inst(vector(None));
    b.inst(vector(Some(result)));
    stores(&mut b, 65, result);
    b.inst(InstData::Random { dst: one });
    stores(&mut b, 66, one);
    b.terminate(Terminator::Return(None));
    let mut pair = Pair::of(vec![b.finish()]);
    let segments = pair.finish(0, &[]);
    assert!(matches!(segments[0].stop, Stop::Vector(_)));
    assert_eq!(segments[1].stop, Stop::Return);
}

#[test]
fn host_operations_write_their_results_into_the_frame() {
    let mut b = function(&[Ty::I64], None);
    let size = b.param(0);
    let (ptr, kept) = (b.local(Ty::I64), b.constant(Ty::F64, 1.25f64.to_bits()));
    b.inst(InstData::Host { op: HostOp::Alloc, dsts: vec![ptr], args: vec![size] });
    let base = b.constant(Ty::I64, 256);
    b.inst(InstData::Store { addr: base, offset: 0, src: ptr });
    b.inst(InstData::Store { addr: base, offset: 8, src: kept });
    b.inst(InstData::Store { addr: base, offset: 1 << 21, src: kept });
    b.inst(InstData::Load { dst: ptr, addr: base, offset: -300 });
    b.terminate(Terminator::Return(None));
    let mut program = Program::empty("host".to_owned(), Profile::Host);
    program.funcs = [b.finish()].into_iter().collect();
    let program = LoadedProgram::host(program, Target::get(TargetId::Wse2));
    let mut pair = Pair::load(program.with_memory_limit(4 << 20));
    let segments = pair.finish(0, &[4096]);
    assert!(matches!(segments[0].stop, Stop::Host(_)));
    assert!(matches!(segments[1].stop, Stop::Trap(_)));
    assert_eq!(pair.native.memory_mut().load(264, 8), Ok(1.25f64.to_bits()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_run_alike_on_both_engines(seed in any::<u64>()) {
        let program = random::program(seed);
        let last = program.funcs.len() as u32 - 1;
        let mut pair = Pair::new(program);
        pair.finish(last, &[seed & 0xff, seed >> 8, seed >> 16]);
        pair.finish(last, &[3, 1, seed]);
    }
}

fn linked(program: Program) -> LoadedProgram {
    let target = Target::get(TargetId::Wse2);
    if program.profile == Profile::Host {
        return LoadedProgram::host(program, target).with_memory_limit(1 << 20);
    }
    let mut map = MemoryMap { data_end: 64, stack: 1024, ..MemoryMap::default() };
    for (id, global) in &program.globals {
        let at = map.data_end.next_multiple_of(global.align.max(1));
        map.globals.push((id, at));
        map.data_end = at + global.size;
    }
    LoadedProgram::new(program, &map, target)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn generated_programs_run_alike_on_both_engines(
        numbers in proptest::collection::vec(any::<u32>(), 0..300),
        args in [any::<u64>(), any::<u64>(), any::<u64>()],
    ) {
        let program = dflow_ir::generate::program(&numbers);
        let last = program.funcs.len() as u32 - 1;
        Pair::load(linked(program)).finish(last, &args);
        for exhibit in [
            dflow_ir::generate::exhibit(&numbers),
            dflow_ir::generate::host_exhibit(&numbers),
        ] {
            let count = exhibit.funcs.len() as u32;
            let mut pair = Pair::load(linked(exhibit));
            for func in 0..count {
                pair.finish(func, &args);
            }
        }
    }
}

/// The programs of the tests above, a fixed number of them: no form of instruction is left out.
#[test]
fn every_form_of_instruction_runs_on_both_engines() {
    let mut seed = 7u32;
    for round in 0..100u64 {
        let numbers: Vec<u32> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 7
        })
        .take(120)
        .collect();
        let program = random::program(round);
        let last = program.funcs.len() as u32 - 1;
        Pair::new(program).finish(last, &[round, 2, 3]);
        for program in [
            dflow_ir::generate::program(&numbers),
            dflow_ir::generate::exhibit(&numbers),
            dflow_ir::generate::host_exhibit(&numbers),
        ] {
            let count = program.funcs.len() as u32;
            let mut pair = Pair::load(linked(program));
            for func in 0..count {
                pair.finish(func, &[round, 5, 1]);
            }
        }
    }
    fifo_lengths_and_unreachable_code();
    assert_eq!(crate::exec::seen::missing(), [""; 0]);
}

/// Both sides of a FIFO get a length; then comes a block that nothing may reach.
fn fifo_lengths_and_unreachable_code() {
    let mut program = dflow_ir::generate::program(&[]);
    program.fifos.push(Fifo {
        buffer: GlobalId::from_u32(0),
        capacity: 8,
        element: 2,
        activate_pop: None,
        activate_push: None,
        empty: FifoAction::default(),
        full: FifoAction::default(),
        priority: None,
        single: false,
    });
    let mut b = function(&[], None);
    for (length, write_side) in [(3, true), (2, false)] {
        let length = b.constant(Ty::I16, length);
        b.inst(InstData::SetFifoLength { fifo: FifoId::from_u32(0), write_side, length });
    }
    b.terminate(Terminator::Unreachable);
    let func = program.funcs.push(b.finish());
    let mut pair = Pair::load(linked(program));
    let segments = pair.finish(func.as_u32(), &[]);
    assert!(
        matches!(&segments[0].stop, Stop::Trap(trap) if trap.kind == CodeTrapKind::Unreachable)
    );
    let fifo = &pair.native.fifos[0];
    assert_eq!((fifo.write_length, fifo.read_length), (3, 2));
}

/// An image may hold any bits in a descriptor: the operand's kind decides whether to wait.
#[test]
fn a_fabric_descriptor_in_place_of_memory_traps() {
    let mut b = function(&[], None);
    let five = b.constant(Ty::I16, 5);
    let dest = b.local(Ty::I64);
    let desc = FabricDsd { queue: 2, color: Color::new(3), ..FabricDsd::default() };
    b.inst(InstData::MakeFabric { dst: dest, desc, extent: five });
    b.inst(InstData::Vector(Box::new(VectorInst {
        op: dflow_ir::dsd::op::DsdOp::by_name("mov16").unwrap(),
        dest: Operand::Memory(dest),
        sources: vec![Operand::Scalar(five)],
        options: VectorOptions::default(),
        result: None,
    })));
    b.terminate(Terminator::Return(None));
    let segments = Pair::of(vec![b.finish()]).finish(0, &[]);
    assert!(
        matches!(&segments[0].stop, Stop::Trap(trap) if matches!(trap.kind, CodeTrapKind::BadVector(_)))
    );
}

/// How often each kind of segment end comes up: a generator that traps at once tests nothing.
#[test]
fn random_programs_reach_every_kind_of_stop() {
    let mut counts = [0; 6];
    for seed in 0..400u64 {
        let program = random::program(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let last = program.funcs.len() as u32 - 1;
        for segment in Pair::new(program).finish(last, &[seed, 2, 3]) {
            let kind = match segment.stop {
                Stop::Return => 0,
                Stop::Vector(_) => 1,
                Stop::Clock(_) | Stop::Queues(_) => 2,
                Stop::Yield => 3,
                Stop::Trap(_) => 4,
                Stop::Config(_) => 5,
                Stop::Host(_) => continue,
            };
            counts[kind] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count >= 10), "{counts:?}");
}

/// Loads and stores beyond the memory, and the instructions for registers.
#[test]
fn registers_are_words_that_a_segment_writes_in_slots_of_their_own() {
    let mut b = function(&[], Some(Ty::I32));
    let route = b.constant(Ty::I16, 0x7f23);
    let bytes = b.constant(Ty::I16, 2 * 0x7f23);
    let value = b.constant(Ty::I16, 0x1234);
    let both = b.local(Ty::I32);
    b.inst(InstData::Store { addr: bytes, offset: 2, src: value });
    b.inst(InstData::Load { dst: both, addr: bytes, offset: 0 });
    b.inst(InstData::SetConfig { addr: route, src: value });
    b.inst(InstData::GetConfig { dst: value, addr: route });
    b.terminate(Terminator::Return(Some(both)));
    let mut pair = Pair::of(vec![b.finish()]);
    let segment = pair.start(0, &[]);
    let writes: Vec<(u32, ActKind)> = segment.acts.iter().map(|act| (act.slot, act.what)).collect();
    let write = |address| ActKind::Write { address, value: 0x1234 };
    assert_eq!(writes, [(0, write(0x7f24)), (2, write(0x7f23))]);
    assert!(matches!(segment.stop, Stop::Config(ConfigRead { address: 0x7f23, .. })));
    // The load saw its own write above the other register.
    let seen = u32::from(0x7f23u16.wrapping_mul(31)) | 0x1234 << 16;
    assert_eq!(pair.plain.suspended_local(both), Some(seen.into()));
}

#[test]
fn what_is_neither_memory_nor_a_register_traps_by_name() {
    let kind = |address: u64, ty: Ty| {
        let mut b = function(&[], None);
        let addr = b.constant(Ty::I16, address);
        let value = b.local(ty);
        b.inst(InstData::Load { dst: value, addr, offset: 0 });
        b.terminate(Terminator::Return(None));
        match Pair::of(vec![b.finish()]).start(0, &[]).stop {
            Stop::Trap(trap) => trap.kind,
            stop => panic!("{stop:?}"),
        }
    };
    let outside = |address, bytes| CodeTrapKind::OutsideMemory { address, bytes };
    assert_eq!(kind(0xfe70, Ty::I16), outside(0xfe70, 2));
    assert_eq!(kind(0xd000, Ty::I16), outside(0xd000, 2));
    assert_eq!(kind(2 * 0x7f37, Ty::I32), CodeTrapKind::NoRegister { address: 0x7f38 });
    for (address, ty) in [(0xfe41, Ty::I16), (0xfe40, Ty::I8)] {
        let why = "is read and written as a whole word";
        assert_eq!(kind(address, ty), CodeTrapKind::BadRegister { address: 0x7f20, why });
    }
}
