//! Code engines: interpreter against generated code, and how fast code is generated.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dflow_ir::builder::FuncBuilder;
use dflow_ir::dsd::op::DsdOp;
use dflow_ir::func::Func;
use dflow_ir::image::MemoryMap;
use dflow_ir::inst::{InstData, Operand, Terminator, VectorInst, VectorOptions};
use dflow_ir::loc::Loc;
use dflow_ir::program::{FuncId, Profile, Program};
use dflow_ir::scalar::BinaryOp;
use dflow_ir::target::{Target, TargetId};
use dflow_ir::ty::Ty;
use dflow_runtime::exec::interp::Interpreter;
use dflow_runtime::exec::{CodeEngine, Entry, LoadedProgram, PeState, Segment, Stop};
use dflow_runtime::jit::{Jit, Shared};

/// Elements of both kernels.
const N: u64 = 1024;

/// `for i in 0..N: b[i] = (a[i] ^ i) * 3 + b[i]`, 32-bit, one element per turn.
fn scalar_loop() -> Func {
    let mut b = FuncBuilder::new("scalar".to_owned(), &[], None, Loc::default());
    let at = b.constant(Ty::I16, 0);
    let end = b.constant(Ty::I16, 4 * N);
    let four = b.constant(Ty::I16, 4);
    let three = b.constant(Ty::I32, 3);
    let (head, done) = (b.block(), b.block());
    b.terminate(Terminator::Jump(head));
    b.switch_to(head);
    let (x, y, i) = (b.local(Ty::I32), b.local(Ty::I32), b.local(Ty::I32));
    let more = b.local(Ty::I8);
    b.inst(InstData::Load { dst: x, addr: at, offset: 0 });
    b.inst(InstData::Load { dst: y, addr: at, offset: 4 * N as i32 });
    b.inst(InstData::Convert { dst: i, kind: dflow_ir::scalar::Convert::ZeroExtend, src: at });
    b.inst(InstData::Binary { dst: x, op: BinaryOp::Xor, lhs: x, rhs: i });
    b.inst(InstData::Binary { dst: x, op: BinaryOp::Mul, lhs: x, rhs: three });
    b.inst(InstData::Binary { dst: x, op: BinaryOp::Add, lhs: x, rhs: y });
    b.inst(InstData::Store { addr: at, offset: 4 * N as i32, src: x });
    b.inst(InstData::Binary { dst: at, op: BinaryOp::Add, lhs: at, rhs: four });
    b.inst(InstData::Binary { dst: more, op: BinaryOp::LtU, lhs: at, rhs: end });
    b.terminate(Terminator::Branch { cond: more, then: head, otherwise: done });
    b.switch_to(done);
    b.terminate(Terminator::Return(None));
    b.finish()
}

/// `b = b + a * k`, single precision, as one vector operation.
fn vector_kernel() -> Func {
    let mut b = FuncBuilder::new("vector".to_owned(), &[], None, Loc::default());
    let extent = b.constant(Ty::I16, N);
    let stride = b.constant(Ty::I16, 1);
    let mut dsd = |base| {
        let base = b.constant(Ty::I16, base);
        let dst = b.local(Ty::I64);
        b.inst(InstData::MakeMem1d { dst, base, extent, stride, indexed: false });
        dst
    };
    let (source, dest) = (dsd(0), dsd(4 * N));
    let k = b.constant(Ty::F32, u64::from(0.5f32.to_bits()));
    let op = DsdOp::by_name("fmacs").expect("a row");
    b.inst(InstData::Vector(Box::new(VectorInst {
        op,
        dest: Operand::Memory(dest),
        sources: vec![Operand::Memory(dest), Operand::Memory(source), Operand::Scalar(k)],
        options: VectorOptions::default(),
        result: None,
    })));
    b.terminate(Terminator::Return(None));
    b.finish()
}

fn load(funcs: Vec<Func>) -> LoadedProgram {
    let mut program = Program::empty("bench".to_owned(), Profile::Pe);
    program.funcs = funcs.into_iter().collect();
    let map = MemoryMap { data_end: 8 * N as u32, stack: 256, ..MemoryMap::default() };
    LoadedProgram::new(program, &map, Target::get(TargetId::Wse2))
}

fn finish(
    engine: &dyn CodeEngine,
    program: &LoadedProgram,
    state: &mut PeState,
    out: &mut Segment,
) {
    let entry = Entry::Start { func: FuncId::from_u32(0), args: &[] };
    engine.run(program, state, &[], entry, out);
    while out.stop == Stop::Yield {
        engine.run(program, state, &[], Entry::Resume { value: 0 }, out);
    }
    assert_eq!(out.stop, Stop::Return);
}

fn engines(c: &mut Criterion) {
    for (name, func) in [("scalar_loop", scalar_loop()), ("vector", vector_kernel())] {
        let program = load(vec![func]);
        let jit = Jit::compile(&program, &mut Shared::default()).expect("a code generator");
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(N));
        for (engine, which) in [(&Interpreter as &dyn CodeEngine, "interpreter"), (&jit, "jit")] {
            let (mut state, mut out) = (PeState::new(&program), Segment::default());
            group.bench_function(BenchmarkId::from_parameter(which), |b| {
                b.iter(|| finish(engine, &program, black_box(&mut state), &mut out));
            });
        }
        group.finish();
    }
}

/// An empty task: what entering and leaving costs.
fn entry(c: &mut Criterion) {
    let mut b = FuncBuilder::new("empty".to_owned(), &[], None, Loc::default());
    b.terminate(Terminator::Return(None));
    let program = load(vec![b.finish()]);
    let jit = Jit::compile(&program, &mut Shared::default()).expect("a code generator");
    let (mut state, mut out) = (PeState::new(&program), Segment::default());
    c.bench_function("empty_task/jit", |b| {
        b.iter(|| finish(&jit, &program, black_box(&mut state), &mut out));
    });
}

fn compile(c: &mut Criterion) {
    let funcs = 100;
    let program = load((0..funcs).map(|_| scalar_loop()).collect());
    let insts: usize = program.program().funcs.values().map(|func| func.insts.len()).sum();
    let mut group = c.benchmark_group("compile");
    group.sample_size(10).throughput(Throughput::Elements(insts as u64));
    group.bench_function("scalar_loops", |b| {
        b.iter(|| {
            Jit::compile(black_box(&program), &mut Shared::default()).expect("a code generator")
        });
    });
    group.finish();
}

criterion_group!(benches, engines, entry, compile);
criterion_main!(benches);
