//! Segments, stops and resumes of small programs.

use dflow_ir::builder::FuncBuilder;
use dflow_ir::func::Func;
use dflow_ir::image::MemoryMap;
use dflow_ir::inst::{ClockOp, FlagOp, InstData, Terminator};
use dflow_ir::loc::Loc;
use dflow_ir::program::{FuncId, Profile, Program};
use dflow_ir::scalar::BinaryOp;
use dflow_ir::target::{Target, TargetId};
use dflow_ir::ty::Ty;

use super::Interpreter;
use crate::exec::program::LoadedProgram;
use crate::exec::{
    ActKind, CodeEngine, CodeTrapKind, Entry, PeState, SEGMENT_BUDGET, Segment, SlotAct, Stop,
};

fn load(funcs: Vec<Func>) -> LoadedProgram {
    let mut program = Program::empty("test".to_owned(), Profile::Pe);
    program.funcs = funcs.into_iter().collect();
    let map = MemoryMap { data_end: 64, stack: 256, ..MemoryMap::default() };
    LoadedProgram::new(program, &map, Target::get(TargetId::Wse2))
}

fn start(program: &LoadedProgram, state: &mut PeState, func: u32, args: &[u64]) -> Segment {
    let mut out = Segment::default();
    let entry = Entry::Start { func: FuncId::from_u32(func), args };
    Interpreter.run(program, state, &[], entry, &mut out);
    out
}

fn resume(program: &LoadedProgram, state: &mut PeState, value: u64) -> Segment {
    let mut out = Segment::default();
    Interpreter.run(program, state, &[], Entry::Resume { value }, &mut out);
    out
}

fn function(params: &[Ty], ret: Option<Ty>) -> FuncBuilder {
    FuncBuilder::new("f".to_owned(), params, ret, Loc::default())
}

#[test]
fn a_wait_in_a_nested_call_comes_back_to_where_it_was() {
    let mut inner = function(&[Ty::I16], Some(Ty::I16));
    let time = inner.local(Ty::I64);
    inner.inst(InstData::Clock { op: ClockOp::Read, dst: Some(time) });
    let low = inner.local(Ty::I16);
    inner.inst(InstData::Convert {
        dst: low,
        kind: dflow_ir::scalar::Convert::Truncate,
        src: time,
    });
    let sum = inner.local(Ty::I16);
    let given = inner.param(0);
    inner.inst(InstData::Binary { dst: sum, op: BinaryOp::Add, lhs: low, rhs: given });
    inner.terminate(Terminator::Return(Some(sum)));
    let mut outer = function(&[], None);
    let seven = outer.constant(Ty::I16, 7);
    let got = outer.local(Ty::I16);
    outer.inst(InstData::Call { dst: Some(got), func: FuncId::from_u32(0), args: vec![seven] });
    outer.inst(InstData::Flag { op: FlagOp::Activate, id: got });
    outer.terminate(Terminator::Return(None));
    let program = load(vec![inner.finish(), outer.finish()]);
    let mut state = PeState::new(&program);
    let first = start(&program, &mut state, 1, &[]);
    assert_eq!(first.stop, Stop::Clock(ClockOp::Read));
    let timing = &program.target().timing;
    // Both functions are small enough to stand in place: calls and returns are free.
    assert_eq!(first.cycles, timing.clock_read);
    let second = resume(&program, &mut state, 10);
    assert_eq!(second.stop, Stop::Return);
    let act = SlotAct {
        slot: timing.scalar,
        what: ActKind::Flag { op: FlagOp::Activate, id: 17 },
        loc: Loc::default(),
    };
    assert_eq!(second.acts, [act]);
    assert_eq!(second.cycles, 2 * timing.scalar);
}

#[test]
fn a_long_loop_yields_at_its_back_edge() {
    let mut b = function(&[Ty::I16], None);
    let n = b.param(0);
    let one = b.constant(Ty::I16, 1);
    let (head, end) = (b.block(), b.block());
    b.terminate(Terminator::Jump(head));
    b.switch_to(head);
    b.inst(InstData::Binary { dst: n, op: BinaryOp::Sub, lhs: n, rhs: one });
    b.terminate(Terminator::Branch { cond: n, then: head, otherwise: end });
    b.switch_to(end);
    b.terminate(Terminator::Return(None));
    let mut func = b.finish();
    // The branch wants a truth value; a test of the low byte will do here.
    func.locals[n] = Ty::I8;
    func.locals[one] = Ty::I8;
    let program = load(vec![func]);
    let mut state = PeState::new(&program);
    // The branch back is one that is taken; the last one goes on with the next block.
    let timing = &program.target().timing;
    let turn = timing.scalar + timing.branch_taken;
    let first = start(&program, &mut state, 0, &[200]);
    assert_eq!(first.stop, Stop::Yield);
    assert!(first.cycles >= SEGMENT_BUDGET && first.cycles < SEGMENT_BUDGET + turn);
    let second = resume(&program, &mut state, 0);
    assert_eq!(second.stop, Stop::Return);
    let less = timing.branch_taken - timing.branch_not_taken;
    // So small a function stands in place of its calls: its return is free.
    let total = 200 * turn - less;
    assert_eq!(first.cycles + second.cycles, total);
}

#[test]
fn endless_recursion_is_a_trap() {
    let mut b = function(&[], None);
    b.inst(InstData::Call { dst: None, func: FuncId::from_u32(0), args: Vec::new() });
    b.terminate(Terminator::Return(None));
    let program = load(vec![b.finish()]);
    let mut state = PeState::new(&program);
    let Stop::Trap(trap) = start(&program, &mut state, 0, &[]).stop else {
        panic!("no trap");
    };
    assert_eq!(trap.kind, CodeTrapKind::StackOverflow);
}

#[test]
fn accesses_beyond_the_slab_grow_it_and_beyond_the_memory_trap() {
    let mut b = function(&[Ty::I16, Ty::I32], None);
    let (at, value) = (b.param(0), b.param(1));
    b.inst(InstData::Store { addr: at, offset: 4, src: value });
    b.terminate(Terminator::Return(None));
    let program = load(vec![b.finish()]);
    let mut state = PeState::new(&program);
    assert_eq!(start(&program, &mut state, 0, &[40_000, 9]).stop, Stop::Return);
    assert_eq!(state.memory_mut().load(40_004, 4), Ok(9));
    let Stop::Trap(trap) = start(&program, &mut state, 0, &[49_148, 9]).stop else {
        panic!("no trap");
    };
    assert_eq!(trap.kind, CodeTrapKind::OutsideMemory { address: 49_152, bytes: 4 });
}
