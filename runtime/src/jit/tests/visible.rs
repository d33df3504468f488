//! Acts that others can see: vector operations, the host, configuration registers.

use std::cell::RefCell;

use dflow_ir::cost::Slots;

use super::*;
use crate::exec::{Passing, SharedStart, VectorArgs};

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

/// Code that goes on past an operation does what it does when it is told that that is on its way.
#[test]
fn code_goes_on_past_operations() {
    const COUNT: usize = 4;
    let mut b = function(&[], None);
    let (five, one) = (b.constant(Ty::I16, 5), b.constant(Ty::I16, 1));
    let (input, memory, result) = (b.local(Ty::I64), b.local(Ty::I64), b.local(Ty::I8));
    let desc = FabricDsd { input: true, queue: 2, color: Color::new(4), ..FabricDsd::default() };
    b.inst(InstData::MakeFabric { dst: input, desc, extent: five });
    for number in 0..COUNT {
        let base = b.constant(Ty::I16, 100 + 20 * number as u64);
        b.inst(InstData::MakeMem1d {
            dst: memory,
            base,
            extent: five,
            stride: one,
            indexed: false,
        });
        b.inst(InstData::Flag { op: FlagOp::Activate, id: base });
        let options = VectorOptions {
            asynchronous: true,
            microthread: Some(number as u8),
            ..VectorOptions::default()
        };
        b.inst(InstData::Vector(Box::new(VectorInst {
            op: dflow_ir::dsd::op::DsdOp::by_name("mov32").unwrap(),
            dest: Operand::Memory(memory),
            sources: vec![Operand::Fabric(input)],
            options,
            result: Some(result),
        })));
        stores(&mut b, 64 + number as u64, result);
        b.inst(InstData::Random { dst: base });
    }
    b.terminate(Terminator::Return(None));
    let mut pair = Pair::of(vec![b.finish()]);
    let mut pieces = vec![pair.start(0, &[])];
    while !matches!(pieces[pieces.len() - 1].stop, Stop::Return) {
        pieces.push(pair.resume(1));
    }
    assert_eq!(pieces.len(), COUNT + 1);
    let memory = pair.plain.memory().bytes().to_vec();
    for (most, is_known) in (0..=COUNT + 1).flat_map(|most| [(most, false), (most, true)]) {
        let starts = || pieces.iter().map(|piece| &piece.stop);
        let known = starts().filter_map(|stop| match stop {
            Stop::Vector(start) if is_known => Some(start.clone()),
            _ => None,
        });
        let (first, second) = (Ahead::new(most, known.clone()), Ahead::new(most, known));
        let entry = Entry::Start { func: FuncId::from_u32(0), args: &[] };
        let (mut plain, mut native) = (Segment::default(), Segment::default());
        let (program, slots) = (&pair.program, &pair.slots);
        Interpreter.run_with(program, &mut pair.plain, slots, entry, &first, &mut plain);
        pair.jit.run_with(program, &mut pair.native, slots, entry, &second, &mut native);
        let (mut from, passed) = (0, first.passed.into_inner());
        assert_eq!((&plain, &passed), (&native, &second.passed.into_inner()));
        assert_eq!(passed.len(), most.min(COUNT));
        for (piece, Passed { slots, acts, start, again }) in pieces.iter().zip(&passed) {
            assert_eq!((piece.cycles, piece.assumed), (slots.all, slots.assumed));
            assert_eq!(piece.acts, plain.acts[from..*acts]);
            assert_eq!(piece.stop, Stop::Vector(start.clone()));
            assert_eq!(*again, is_known);
            from = *acts;
        }
        plain.acts.drain(..from);
        assert_eq!(plain, pieces[passed.len()]);
        pair.compare(&plain.stop);
        while !matches!(plain.stop, Stop::Return) {
            plain = pair.resume(1);
        }
        assert_eq!(pair.plain.memory().bytes(), memory);
    }
}

/// An operation that code has gone past.
#[derive(Debug, PartialEq)]
struct Passed {
    slots: Slots,
    acts: usize,
    start: SharedStart,
    /// It was told by its instruction and arguments.
    again: bool,
}

/// Lets code go past so many asynchronous operations at most.
struct Ahead {
    most: usize,
    known: Vec<SharedStart>,
    passed: RefCell<Vec<Passed>>,
}

impl Ahead {
    fn new(most: usize, known: impl Iterator<Item = SharedStart>) -> Ahead {
        Ahead { most, known: known.collect(), passed: RefCell::default() }
    }

    fn go_past(&self, start: &SharedStart, since: Passing<'_>, again: bool) -> bool {
        let mut passed = self.passed.borrow_mut();
        let goes = start.asynchronous && passed.len() < self.most;
        if goes {
            let (slots, acts, start) = (since.slots, since.acts.len(), start.clone());
            passed.push(Passed { slots, acts, start, again });
        }
        goes
    }
}

impl Registers for Ahead {
    fn read(&self, address: u16) -> Option<u16> {
        Addresses.read(address)
    }

    fn pass(&self, start: &SharedStart, since: Passing<'_>) -> bool {
        self.go_past(start, since, false)
    }

    fn pass_again(&self, inst: &VectorInst, args: &VectorArgs, since: Passing<'_>) -> bool {
        let others = VectorArgs { dest: !args.dest, ..*args };
        assert!(!self.known.iter().any(|start| start.is_of(inst, &others)), "it is of others too");
        let known = self.known.iter().find(|start| start.is_of(inst, args));
        known.is_some_and(|start| self.go_past(start, since, true))
    }
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
    assert_eq!(
        pair.plain.suspended_local(pair.program.plan(FuncId::from_u32(0)), both),
        Some(seen.into())
    );
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
