//! Vector operations: time per element by shape and length, in blocks of a running operation and
//! as whole operations on memory, against plain loops.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dflow_ir::dsd::Dsd;
use dflow_ir::dsd::op::DsdOp;
use dflow_ir::image::MemoryMap;
use dflow_ir::inst::OnControl;
use dflow_ir::loc::Loc;
use dflow_ir::program::{Profile, Program};
use dflow_ir::target::{Target, TargetId};
use dflow_runtime::exec::{LoadedProgram, MemoryStream, PeState, Stream, VectorStart, VectorState};

const LENGTHS: [u16; 4] = [1, 16, 64, 900];

fn program() -> LoadedProgram {
    let program = Program::empty("bench".to_owned(), Profile::Pe);
    let map = MemoryMap { data_end: 16384, ..MemoryMap::default() };
    LoadedProgram::new(program, &map, Target::get(TargetId::Wse2))
}

fn memory(base: u16, length: u16, element: u8) -> Stream {
    let dsd = Dsd::mem1d(base, length, 1, false);
    Stream::Memory(MemoryStream { dsd, element, moved: 0, save: None })
}

const INPUT: Stream = Stream::Input { queue: 3, color: 6, transform: false };
const OUTPUT: Stream = Stream::Output {
    queue: 2,
    color: 5,
    control: false,
    index: 0,
    advance_switch: false,
    transform: false,
};

fn start(name: &str, dest: Stream, sources: [Stream; 3], length: u16) -> VectorStart {
    VectorStart {
        op: DsdOp::by_name(name).expect("a row"),
        dest,
        sources,
        length: Some(u32::from(length)),
        asynchronous: true,
        microthread: 0,
        activate: None,
        unblock: None,
        priority: None,
        packed: false,
        zero: None,
        on_control: OnControl::Ignore,
        loc: Loc::default(),
    }
}

/// The shapes: name, row, destination and sources for a length.
fn shapes(length: u16) -> Vec<(&'static str, VectorStart)> {
    let at = |base| memory(base, length, 4);
    let half = |base| memory(base, length, 2);
    let none = Stream::None;
    let two = Stream::Scalar(2.0_f32.to_bits());
    let zero = Stream::Scalar(0);
    let pointer = Stream::Pointer { address: 8192 };
    vec![
        ("fabric = memory", start("fmovs", OUTPUT, [at(0), none, none], length)),
        ("memory = fabric", start("fmovs", at(0), [INPUT, none, none], length)),
        ("memory = memory + fabric", start("fadds", at(0), [at(0), INPUT, none], length)),
        ("fabric = fabric + memory", start("fadds", OUTPUT, [at(0), INPUT, none], length)),
        ("memory = memory + fabric * k", start("fmacs", at(0), [at(0), INPUT, two], length)),
        ("memory = memory + memory * k", start("fmacs", at(0), [at(0), at(4096), two], length)),
        ("memory = memory * memory", start("fmuls", at(0), [at(4096), at(8192), none], length)),
        ("sum of memory", start("fadds", pointer, [zero, at(0), none], length)),
        ("halves: memory + memory", start("faddh", half(0), [half(0), half(4096), none], length)),
        ("integers: memory + memory", start("add16", half(0), [half(0), half(4096), none], length)),
    ]
}

/// A block of a running operation, its set-up included.
fn blocks(c: &mut Criterion) {
    let program = program();
    let mut state = PeState::new(&program);
    state.prepare(&program, &[]);
    let words = vec![1.0_f32.to_bits(); 900];
    for length in LENGTHS {
        let mut group = c.benchmark_group(format!("block of {length}"));
        group.throughput(Throughput::Elements(length.into()));
        for (name, start) in shapes(length) {
            let begin = VectorState::new(&program, start);
            let mut out = Vec::with_capacity(1000);
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter(|| {
                    out.clear();
                    let mut op = begin.clone();
                    let inputs = [&words[..], &words[..]];
                    op.block(&program, black_box(&mut state), inputs, length.into(), &mut out)
                });
            });
        }
        group.finish();
    }
}

/// The same as plain code.
fn plain(c: &mut Criterion) {
    for length in LENGTHS {
        let mut group = c.benchmark_group(format!("plain loop of {length}"));
        group.throughput(Throughput::Elements(length.into()));
        let (mut a, b) = (vec![1.0_f32; length.into()], vec![1.0_f32; length.into()]);
        group.bench_function("a + b * k", |bench| {
            bench.iter(|| {
                for (a, b) in black_box(&mut a).iter_mut().zip(black_box(&b)) {
                    *a += b * 2.0;
                }
            });
        });
        group.bench_function("sum", |bench| bench.iter(|| black_box(&b).iter().sum::<f32>()));
        group.finish();
    }
}

criterion_group!(benches, blocks, plain);
criterion_main!(benches);
