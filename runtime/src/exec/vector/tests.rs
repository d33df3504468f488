//! The fast ways against the naive loop, and the rules of operands, lengths and registers.

mod again;
mod blocks;
mod direct;

use dflow_ir::dsd::op::DsdOp;
use dflow_ir::dsd::{Dsd, DsrFile, DsrRef, FabricDsd, INFINITE};
use dflow_ir::func::Local;
use dflow_ir::image::MemoryMap;
use dflow_ir::inst::{OnControl, Operand, VectorInst, VectorOptions};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::Color;
use dflow_ir::program::{
    Fifo, FifoAction, FifoId, FuncId, Global, GlobalId, Profile, Program, Shape, ShapeId,
};
use dflow_ir::target::{Target, TargetId};
use proptest::prelude::*;

use super::whole;
use super::{FifoCheck, Issued, SharedStart, VectorArgs, VectorSite, VectorState, issue};
use crate::exec::dsrs::{DsrSet, Dsrs};
use crate::exec::program::LoadedProgram;
use crate::exec::state::{Dsr, PeState};
use crate::exec::{CodeTrapKind, MemoryStream, Stream, VectorStart};

const BYTES: u32 = 2048;

fn program() -> LoadedProgram {
    let mut program = Program::empty("test".to_owned(), Profile::Pe);
    program.shapes.push(Shape { dims: vec![(3, 20), (4, 2)] });
    program.globals.push(Global {
        name: "buffer".to_owned(),
        size: 8,
        align: 4,
        init: Vec::new(),
        relocs: Vec::new(),
        slots: Vec::new(),
        exported: false,
        loc: Loc::default(),
    });
    program.fifos.push(Fifo {
        buffer: GlobalId::from_u32(0),
        capacity: 2,
        element: 4,
        activate_pop: Some(9),
        activate_push: Some(8),
        empty: FifoAction::default(),
        full: FifoAction::default(),
        priority: None,
        single: false,
    });
    let map = MemoryMap {
        globals: vec![(GlobalId::from_u32(0), 1024)],
        data_end: BYTES,
        ..MemoryMap::default()
    };
    LoadedProgram::new(program, &map, Target::get(TargetId::Wse2))
}

fn state(program: &LoadedProgram) -> PeState {
    let mut state = PeState::new(program);
    state.prepare(program, &[]);
    state.dsrs = Dsrs::new(all_registers());
    state
}

/// An instruction of a program whose PEs keep all registers.
fn site(inst: &VectorInst) -> VectorSite {
    VectorSite::new(inst, (FuncId::from_u32(0), Loc::default()), all_registers())
}

fn all_registers() -> DsrSet {
    let mut named = DsrSet::default();
    for file in DsrFile::ALL {
        (0..16).for_each(|index| named.add(DsrRef { file, index }));
    }
    named
}

fn vector(name: &str, dest: Operand, sources: &[Operand]) -> VectorInst {
    VectorInst {
        op: DsdOp::by_name(name).unwrap(),
        dest,
        sources: sources.to_vec(),
        options: VectorOptions::default(),
        result: None,
    }
}

fn memory() -> Operand {
    Operand::Memory(Local::from_u32(0))
}

fn dsr(file: DsrFile, index: u8) -> DsrRef {
    DsrRef { file, index }
}

fn words(state: &PeState, at: usize, count: usize) -> Vec<u32> {
    let bytes = &state.memory.bytes()[at..at + 4 * count];
    bytes.chunks(4).map(|raw| u32::from_le_bytes(raw.try_into().unwrap())).collect()
}

fn put(state: &mut PeState, at: u64, values: &[u32]) {
    for (index, &value) in values.iter().enumerate() {
        state.memory.store(at + 4 * index as u64, 4, u64::from(value)).unwrap();
    }
}

fn done(
    program: &LoadedProgram,
    state: &mut PeState,
    inst: &VectorInst,
    dest: Dsd,
    sources: [u64; 3],
) -> u32 {
    let args = VectorArgs { dest: dest.0, sources, index: 0 };
    match issue(program, state, &site(inst), &args).unwrap().0 {
        Issued::Done { slots, .. } => slots.all,
        Issued::Starts(start) => panic!("started {start:?}"),
    }
}

fn start(
    program: &LoadedProgram,
    state: &mut PeState,
    inst: &VectorInst,
    dest: u64,
    sources: [u64; 3],
) -> VectorStart {
    let args = VectorArgs { dest, sources, index: 0 };
    match issue(program, state, &site(inst), &args).unwrap().0 {
        Issued::Done { .. } => panic!("done at once"),
        Issued::Starts(start) => VectorStart::clone(&start),
    }
}

fn fabric(input: bool, extent: u16) -> Dsd {
    let desc = FabricDsd { input, queue: 3, color: Color::new(5), ..FabricDsd::default() };
    Dsd::fabric(desc, extent)
}

#[derive(Clone, Debug)]
enum Given {
    Memory(u16, i16),
    Shape(u16),
    Scalar(u32),
}

fn given() -> impl Strategy<Value = Given> {
    let near = (0u16..120).prop_map(|at| at * 2);
    let stride = prop_oneof![4 => Just(1i16), 1 => -4i16..5];
    prop_oneof![
        6 => (near.clone(), stride.clone()).prop_map(|(at, step)| Given::Memory(at + 400, step)),
        2 => (any::<u16>(), -300i16..300).prop_map(|(at, step)| Given::Memory(at, step)),
        1 => near.prop_map(Given::Shape),
        2 => any::<u32>().prop_map(Given::Scalar),
        1 => any::<f32>().prop_map(|value| Given::Scalar(value.to_bits())),
    ]
}

fn stream(given: &Given, bytes: u32, extent: u16, is_dest: bool) -> Stream {
    let dsd = match *given {
        Given::Memory(at, stride) => Dsd::mem1d(at, extent, stride, false),
        Given::Shape(at) => Dsd::mem4d(at, ShapeId::from_u32(0), false),
        Given::Scalar(value) if is_dest => return Stream::Pointer { address: value as u16 % 900 },
        Given::Scalar(value) => return Stream::Scalar(value),
    };
    Stream::Memory(crate::exec::MemoryStream { dsd, element: bytes as u8, moved: 0, save: None })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_row_equals_its_naive_loop(
        op in 0..DsdOp::all().count() as u8,
        dest in given(),
        sources in [given(), given(), given()],
        length in 0u16..200,
        content in proptest::collection::vec(any::<u8>(), BYTES as usize),
    ) {
        let program = program();
        let op = DsdOp(op);
        let row = op.row();
        let mut streams = [Stream::None; 3];
        for at in 0..row.shape.arity() {
            streams[at] = stream(&sources[at], row.sources[at].bytes(), length, false);
            if let Stream::Scalar(value) = &mut streams[at] {
                *value = row.sources[at].mask(u64::from(*value)) as u32;
            }
        }
        let start = VectorStart {
            op,
            dest: stream(&dest, row.dest.bytes(), length, true),
            sources: streams,
            length: Some(u32::from(length)),
            asynchronous: false,
            microthread: 0,
            activate: None,
            unblock: None,
            priority: None,
            packed: false,
            zero: None,
            on_control: dflow_ir::inst::OnControl::Ignore,
            loc: Loc::default(),
        };
        let mut fast = state(&program);
        fast.memory.bytes_mut().copy_from_slice(&content);
        let mut slow = fast.clone();
        let mut stepped = fast.clone();
        let first = whole::run(&program, &mut fast, &start).map(drop);
        let second = whole::run_naive(&program, &mut slow, &start);
        prop_assert_eq!(&first, &second);
        if first.is_ok() {
            prop_assert_eq!(&fast, &slow);
        }
        let mut running = VectorState::new(&program, start);
        let mut third = Ok(());
        while !running.is_done() && third.is_ok() {
            third = running.step(&program, &mut stepped, [0; 2]).map(drop);
        }
        if third.is_ok() && length > 0 {
            third = running.finish(&program, &mut stepped, true).map(drop);
        }
        prop_assert_eq!(&second, &third);
        if third.is_ok() {
            prop_assert_eq!(&slow, &stepped);
        }
    }
}

#[test]
fn multiply_add_rounds_once_with_and_without_a_fused_instruction() {
    let op = DsdOp::by_name("fmacs").unwrap();
    let mut bits = 1u32;
    let mut next = || {
        bits ^= bits << 13;
        bits ^= bits >> 17;
        bits ^= bits << 5;
        bits
    };
    let one_nan = |raw: u32| if f32::from_bits(raw).is_nan() { 0x7fc0_0000 } else { raw };
    for turn in 0..1_000_000 {
        let [mut a, b, k] = [next(), next(), next()];
        if turn % 2 == 0 {
            // Near cancellation.
            a = (-f32::from_bits(b) * f32::from_bits(k)).to_bits() ^ a & 3;
        }
        let unfused = one_nan(super::kernel::multiply_add::<false>(a, b, k));
        assert_eq!(unfused, op.row().apply([a, b, k], &mut 0), "{a:x} {b:x} {k:x}");
    }
}

#[test]
fn the_length_is_that_of_the_first_source_that_has_one() {
    let program = program();
    let mut state = state(&program);
    put(&mut state, 0, &[1, 2, 3, 4, 5]);
    let inst = vector("mov32", memory(), &[memory()]);
    let short = Dsd::mem1d(0, 3, 1, false).0;
    done(&program, &mut state, &inst, Dsd::mem1d(100, 1, 1, false), [short, 0, 0]);
    assert_eq!(words(&state, 100, 4), [1, 2, 3, 0]);
    let fill = vector("mov32", memory(), &[Operand::Scalar(Local::from_u32(1))]);
    done(&program, &mut state, &fill, Dsd::mem1d(200, 2, 1, false), [7, 0, 0]);
    assert_eq!(words(&state, 200, 3), [7, 7, 0]);
    done(&program, &mut state, &fill, Dsd::mem1d(300, 0, 1, false), [7, 0, 0]);
    assert_eq!(words(&state, 300, 1), [0]);
}

#[test]
fn a_reduction_starts_at_its_scalar_and_stores_the_last_value() {
    let program = program();
    let mut state = state(&program);
    put(&mut state, 0, &[1.5f32.to_bits(), 9.0f32.to_bits(), (-2.0f32).to_bits()]);
    let inst = vector(
        "fmaxs",
        Operand::Pointer(Local::from_u32(2)),
        &[Operand::Scalar(Local::from_u32(1)), memory()],
    );
    let source = Dsd::mem1d(0, 3, 1, false).0;
    let seed = u64::from(f32::NEG_INFINITY.to_bits());
    done(&program, &mut state, &inst, Dsd(64), [seed, source, 0]);
    assert_eq!(words(&state, 64, 1), [9.0f32.to_bits()]);
}

#[test]
fn shapes_go_last_dimension_fastest() {
    let program = program();
    let mut state = state(&program);
    let values: Vec<u32> = (0..60).collect();
    put(&mut state, 0, &values);
    let inst = vector("mov32", memory(), &[memory()]);
    let source = Dsd::mem4d(0, ShapeId::from_u32(0), false).0;
    done(&program, &mut state, &inst, Dsd::mem1d(400, 12, 1, false), [source, 0, 0]);
    assert_eq!(words(&state, 400, 12), [0, 2, 4, 6, 20, 22, 24, 26, 40, 42, 44, 46]);
}

#[test]
fn a_register_that_saves_its_address_goes_on_where_it_stopped() {
    let program = program();
    let mut state = state(&program);
    put(&mut state, 0, &[10, 20, 30, 40]);
    let at = dsr(DsrFile::Src1, 2);
    let loaded = Dsr { dsd: Dsd::mem1d(0, 2, 1, false), save_address: true, ..Dsr::default() };
    state.load_dsr(at, loaded);
    let inst = vector("mov32", memory(), &[Operand::Dsr(at)]);
    done(&program, &mut state, &inst, Dsd::mem1d(100, 2, 1, false), [0; 3]);
    done(&program, &mut state, &inst, Dsd::mem1d(108, 2, 1, false), [0; 3]);
    assert_eq!(words(&state, 100, 4), [10, 20, 30, 40]);
}

#[test]
fn a_register_decides_whether_an_operation_is_asynchronous() {
    let program = program();
    let mut state = state(&program);
    let at = dsr(DsrFile::Src1, 0);
    let options =
        VectorOptions { asynchronous: true, activate: Some(12), ..VectorOptions::default() };
    state.load_dsr(at, Dsr { dsd: fabric(true, INFINITE), options, ..Dsr::default() });
    let inst = vector("mov32", memory(), &[Operand::Dsr(at)]);
    let dest = Dsd::mem1d(0, 4, 1, false).0;
    let started = start(&program, &mut state, &inst, dest, [0; 3]);
    assert!(started.asynchronous);
    assert_eq!((started.activate, started.microthread, started.length), (Some(12), 3, None));
}

#[test]
fn a_descriptor_that_was_never_set_is_a_trap() {
    let program = program();
    let mut state = state(&program);
    let inst = vector("mov32", memory(), &[memory()]);
    let args = VectorArgs { dest: Dsd::mem1d(0, 1, 1, false).0, ..VectorArgs::default() };
    let issued = issue(&program, &mut state, &site(&inst), &args);
    assert!(matches!(issued, Err(CodeTrapKind::BadVector(_))));
}

#[test]
fn an_output_steps_word_by_word_and_puts_the_index_into_the_upper_half() {
    let program = program();
    let mut state = state(&program);
    put(&mut state, 0, &[0x0002_0001]);
    let mut inst = vector("mov16", Operand::Fabric(Local::from_u32(0)), &[memory()]);
    inst.options.index = Some(Local::from_u32(3));
    let desc = fabric(false, 1).0 | 1 << 48;
    let source = Dsd::mem1d(0, 2, 1, false).0;
    let args = VectorArgs { dest: desc, sources: [source, 0, 0], index: 0xabcd };
    let Ok((Issued::Starts(started), None)) = issue(&program, &mut state, &site(&inst), &args)
    else {
        panic!("not started");
    };
    let mut running = VectorState::new(&program, started);
    assert_eq!((running.inputs(), running.output()), ([None, None], Some(3)));
    let first = running.step(&program, &mut state, [0; 2]).unwrap();
    let second = running.step(&program, &mut state, [0; 2]).unwrap();
    assert_eq!((first.output, second.output), (Some(0xabcd_0001), Some(0xabcd_0002)));
    assert!(running.is_done());
}

#[test]
fn fifos_end_a_synchronous_operation_early_and_activate_when_room_comes() {
    let program = program();
    let mut state = state(&program);
    let fifo = Operand::Fifo(FifoId::from_u32(0));
    put(&mut state, 0, &[5, 6, 7]);
    let push = vector("mov32", fifo, &[memory()]);
    let source = Dsd::mem1d(0, 3, 1, false).0;
    let started = start(&program, &mut state, &push, 0, [source, 0, 0]);
    let mut running = VectorState::new(&program, started);
    for _ in 0..2 {
        assert_eq!(running.fifo_check(&program, &mut state), FifoCheck::Ready);
        running.step(&program, &mut state, [0; 2]).unwrap();
    }
    assert_eq!(running.fifo_check(&program, &mut state), FifoCheck::End { complete: false });
    assert_eq!(running.finish(&program, &mut state, false), Ok(0));
    let pop = vector("mov32", memory(), &[fifo]);
    let dest = Dsd::mem1d(100, 2, 1, false).0;
    let started = start(&program, &mut state, &pop, dest, [0; 3]);
    let mut running = VectorState::new(&program, started);
    let stepped = running.step(&program, &mut state, [0; 2]).unwrap();
    assert_eq!(stepped.activate, [Some(9), None]);
    running.step(&program, &mut state, [0; 2]).unwrap();
    assert_eq!(words(&state, 100, 2), [5, 6]);
}

/// Every operation with its operands in memory, from queues, or a scalar in turn: the short way
/// and the general one give the same words and the same memory, also if the rest of an operation
/// goes the general way.
#[test]
fn plain_elements_are_the_general_ones() {
    let program = program();
    let memory = |base: u16, element: u32, stride: i16| {
        let dsd = Dsd::mem1d(base, 8, stride, false);
        Stream::Memory(MemoryStream { dsd, element: element as u8, moved: 0, save: None })
    };
    let word = Stream::Input { queue: 0, color: 1, transform: false };
    let queue = Stream::Output {
        queue: 3,
        color: 2,
        control: false,
        index: 0x1234,
        advance_switch: false,
        transform: false,
    };
    let begin = || {
        let mut state = state(&program);
        let words: Vec<u32> = (0..128).map(|at| (at * 0x0101_4321) ^ 0x3c00_4000).collect();
        put(&mut state, 0, &words);
        state
    };
    let inputs = |at: u32| [at * 0x1000_0003, !at << 7];
    let (mut plain, mut at_once) = (0, 0);
    for op in DsdOp::all() {
        let row = op.row();
        for choice in 0..18 {
            let (to_queue, first) = (choice % 2 == 1, choice / 2);
            let source = |at: usize| match first / [1, 3, 9][at] % 3 {
                0 => memory(64 + 128 * at as u16, row.sources[at].bytes(), 1 + at as i16),
                1 if at < 2 => word,
                _scalar => Stream::Scalar(0x3f80_3c00 + at as u32),
            };
            let start = VectorStart {
                op,
                dest: if to_queue { queue } else { memory(512, row.dest.bytes(), -1) },
                sources: [source(0), source(1), source(2)],
                length: Some(8),
                asynchronous: false,
                microthread: 0,
                activate: None,
                unblock: None,
                priority: None,
                packed: false,
                zero: None,
                on_control: OnControl::Ignore,
                loc: Loc::default(),
            };
            let run = |slow_from: u32| {
                let mut state = begin();
                let mut running = VectorState::new(&program, start.clone());
                let is_plain = running.is_plain();
                let stepped: Vec<Option<u32>> = (0..8)
                    .map(|at| {
                        if at >= slow_from {
                            running.slow_down(&program);
                        }
                        running.step(&program, &mut state, inputs(at)).unwrap().output
                    })
                    .collect();
                (stepped, state.memory().bytes().to_vec(), running.is_done(), is_plain)
            };
            let (general, other, all) = (run(0), run(5), run(8));
            assert_eq!(all, general, "{}, {choice}", row.name);
            assert_eq!(all, other, "{}, {choice}", row.name);
            plain += usize::from(all.3);
            let (mut state, mut out) = (begin(), Vec::new());
            let words = [0, 1].map(|input| (0..8).map(|at| inputs(at)[input]).collect());
            let words: [Vec<u32>; 2] = words;
            let words = words.each_ref().map(|words| &words[..]);
            if SharedStart::from(start).all_at_once(&program, &mut state, words, &mut out) {
                let general: Vec<u32> = general.0.into_iter().flatten().collect();
                assert_eq!(out, general, "{}, {choice}", row.name);
                assert_eq!(state.memory().bytes(), all.1, "{}, {choice}", row.name);
                at_once += 1;
            }
        }
    }
    assert!(plain > 500, "only {plain} were plain");
    assert!(at_once > 400, "only {at_once} were done at once");
}

/// Values at the edges of singles, halves and integers, and in between.
fn edges() -> Vec<u32> {
    let halves = [0, 1, 2, 0x3ff, 0x400, 0x401, 0x3555, 0x3c00, 0x3c01, 0x7bff, 0x7c00, 0x7c01];
    let mut edges: Vec<u32> = halves.iter().flat_map(|&half| [half, half | 0x8000]).collect();
    edges.extend([0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x7f80_0000, 0xff80_0000, 0x7f7f_ffff]);
    edges.extend([0x0080_0000, 0x807f_ffff, 0x3f80_0000, 0xbf80_0001, 0x4049_0fdb, 0x12_3456]);
    // Singles halfway between two halves, and beside.
    for size in [0x3880_0000, 0x387f_f000, 0x3300_0000, 0x3f80_1000, 0x477f_f000, 0x4780_0000] {
        edges.extend([size - 1, size, size + 1, size | 0x8000_0000, size + 0x2000]);
    }
    edges
}

#[test]
fn every_fast_kernel_is_its_row_at_the_edges() {
    use super::plan::{Dest, Place, Plan};
    let edges = edges();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for &a in &edges {
        first.extend(vec![a; edges.len()]);
        second.extend(&edges);
    }
    let mut kernels = 0;
    for op in DsdOp::all().filter(|op| super::kernel::ways(op.0).is_some()) {
        kernels += 1;
        for &third in &edges {
            let mut out = Vec::new();
            let mut plan = Plan {
                row: op.row(),
                op: op.0,
                dest: Dest::Words { words: &mut out, upper: 0 },
                sources: [Place::Words(&first), Place::Words(&second), Place::Value(third)],
                length: first.len() as u32,
                value: 0,
                carry: 0,
                reduces: false,
            };
            plan.fast(&mut []);
            for at in 0..first.len() {
                let sources = [first[at], second[at], third];
                let masked =
                    [0, 1, 2].map(|at| op.row().sources[at].mask(sources[at].into()) as u32);
                let expected = op.row().apply(masked, &mut 0);
                assert_eq!(out[at], expected, "{op} of {sources:x?}");
            }
            if op.row().shape.arity() < 3 {
                break;
            }
        }
    }
    assert!(kernels > 20);
}
