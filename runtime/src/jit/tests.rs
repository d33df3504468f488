//! Generated code against the interpreter: what runs both side by side. The tests are below, by
//! construct.

mod any;
mod calls;
mod memory;
mod random;
mod scalar;
mod shared;
mod visible;

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

use super::{Jit, Shared};
use crate::exec::interp::Interpreter;
use crate::exec::program::LoadedProgram;
use crate::exec::{
    ActKind, CodeEngine, CodeTrapKind, ConfigRead, Each, Entry, FifoCheck, PeState, Registers,
    Segment, Stop, VectorStart, VectorState, finish_host_call,
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
        Pair::load(Pair::loaded(program))
    }

    fn loaded(program: Program) -> LoadedProgram {
        let map = MemoryMap { data_end: 1024, stack: 512, ..MemoryMap::default() };
        LoadedProgram::new(program, &map, Target::get(TargetId::Wse2))
    }

    fn load(program: LoadedProgram) -> Pair {
        Pair::with(program, &mut Shared::default())
    }

    fn with(program: LoadedProgram, shared: &mut Shared) -> Pair {
        let jit = Jit::compile(&program, shared).unwrap();
        let (plain, native) = (PeState::new(&program), PeState::new(&program));
        let slots = (0..program.program().slots.len() as u64).map(|at| at * 77 + 5).collect();
        Pair { program, jit, plain, native, slots }
    }

    fn of(funcs: Vec<Func>) -> Pair {
        Pair::sharing(funcs, &mut Shared::default())
    }

    fn sharing(funcs: Vec<Func>, shared: &mut Shared) -> Pair {
        let mut program = Program::empty("test".to_owned(), Profile::Pe);
        program.funcs = funcs.into_iter().collect();
        Pair::with(Pair::loaded(program), shared)
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
        let (mut base, mut kept) = (0, 0);
        loop {
            let word = plain.frames[base as usize];
            assert_eq!(word, native.frames[kept as usize]);
            let func = FuncId::from_u32((word >> 32) as u32);
            let plan = self.program.plan(func);
            let points = &self.program.suspension().funcs[func].points;
            for local in &points[(word as u32 - 1) as usize].live {
                let [first, second] = [base, kept].map(|base| (base + plan.word(*local)) as usize);
                assert_eq!(plain.frames[first], native.frames[second], "{func} {local} {word:#x}");
            }
            assert_eq!(base == plain.top, kept == native.top);
            if base == plain.top {
                return;
            }
            base += plan.frame_words;
            kept += plan.kept_words;
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
                    finish_host_call(&self.program, &mut self.plain, call, &values);
                    finish_host_call(&self.program, &mut self.native, call, &values);
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
