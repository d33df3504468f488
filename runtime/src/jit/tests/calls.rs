//! Calls, stacks and their limits.

use super::*;

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
    let jit = Jit::compile(&program, &mut Shared::default()).unwrap();
    let (mut state, mut out) = (PeState::new(&program), Segment::default());
    let entry = Entry::Start { func: FuncId::from_u32(0), args: &[100] };
    jit.run(&program, &mut state, &[], entry, &mut out);
    let Stop::Trap(trap) = out.stop else { panic!("no trap") };
    assert_eq!(trap.kind, crate::exec::CodeTrapKind::SegmentTooLong);
}

/// A task that adds its argument to what stands in memory, and does something else for one of them.
fn adds_but(other: InstData, at: u64) -> Func {
    let mut b = function(&[Ty::I32], None);
    let (sum, address) = (b.local(Ty::I32), b.constant(Ty::I16, 64));
    b.inst(InstData::Load { dst: sum, addr: address, offset: 0 });
    b.inst(InstData::Binary { dst: sum, op: BinaryOp::Add, lhs: sum, rhs: b.param(0) });
    b.inst(InstData::Store { addr: address, offset: 0, src: sum });
    let (rest, end) = (b.block(), b.block());
    let (is, key) = (b.local(Ty::I8), b.constant(Ty::I32, at));
    b.inst(InstData::Binary { dst: key, op: BinaryOp::Xor, lhs: key, rhs: b.param(0) });
    b.inst(InstData::Convert { dst: is, kind: Convert::Bool, src: key });
    b.terminate(Terminator::Branch { cond: is, then: end, otherwise: rest });
    b.switch_to(rest);
    b.inst(other);
    b.terminate(Terminator::Jump(end));
    b.switch_to(end);
    b.terminate(Terminator::Return(None));
    b.finish()
}

#[test]
fn runs_in_a_row_end_with_the_first_that_comes_to_something_else() {
    let activate = InstData::Flag { op: FlagOp::Activate, id: Local::from_u32(2) };
    let clock = InstData::Clock { op: ClockOp::Enable, dst: None };
    let idle = InstData::Binary {
        dst: Local::from_u32(1),
        op: BinaryOp::Add,
        lhs: Local::from_u32(1),
        rhs: Local::from_u32(1),
    };
    let args: Vec<[u64; 2]> = (10..30).map(|value| [value, 0]).collect();
    for other in [activate, clock, idle] {
        for at in [10, 11, 17, 29, 99] {
            let mut singly = Pair::of(vec![adds_but(other.clone(), at)]);
            let first = singly.start(0, &[5]);
            let mut last = first.clone();
            let mut count = 0;
            for args in &args {
                last = singly.start(0, &args[..1]);
                count += 1;
                if last != first {
                    break;
                }
            }
            assert_eq!(count, if at == 99 { 20 } else { at as usize - 9 });
            let mut pair = Pair::of(vec![adds_but(other.clone(), at)]);
            pair.start(0, &[5]);
            let like = first.slots();
            let each = Each { func: FuncId::from_u32(0), args: &args, count: 1, like };
            let (mut plain, mut native) = (first.clone(), first);
            let (program, slots) = (&pair.program, &pair.slots);
            let state = &mut pair.plain;
            let done = Interpreter.run_each(program, state, slots, each, &Addresses, &mut plain);
            assert_eq!((done, &plain), (count, &last));
            let state = &mut pair.native;
            let done = pair.jit.run_each(program, state, slots, each, &Addresses, &mut native);
            assert_eq!((done, &native), (count, &last));
            pair.compare(&last.stop);
            assert!(pair.native.memory == singly.native.memory, "memory differs");
        }
    }
}
