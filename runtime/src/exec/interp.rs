//! The interpreter: the plain meaning of the IR, one instruction at a time.
//!
//! Invariants: safe code only; total on validated programs; frames live in [`PeState`], so a
//! suspended main thread leaves nothing behind here. Generated code is held to this file.

mod vector;

use dflow_ir::cost::Slots;
use dflow_ir::dsd::{Dsd, late};
use dflow_ir::func::{Block, Func, Inst, Local};
use dflow_ir::inst::{FlagOp, InstData, Terminator};
use dflow_ir::program::FuncId;
use dflow_ir::scalar::{self, exception};
use dflow_ir::ty::Ty;

use super::program::{CodeAt, FuncPlan, LoadedProgram};
use super::state::{Dsr, FRAME_LIMIT, PeState};
use super::vector::NO_TASK;
use super::{
    ActKind, CodeEngine, CodeTrap, CodeTrapKind, ConfigRead, Entry, HostCall, Registers,
    SEGMENT_BUDGET, SEGMENT_LIMIT, Segment, SlotAct, Stop, registers,
};

/// The interpreter. It has no state of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interpreter;

impl CodeEngine for Interpreter {
    fn run_with(
        &self,
        program: &LoadedProgram,
        state: &mut PeState,
        slots: &[u64],
        entry: Entry<'_>,
        registers: &dyn Registers,
        out: &mut Segment,
    ) {
        out.clear();
        state.prepare(program, slots);
        let around = Around { slots, registers };
        let stop = match entry {
            Entry::Start { func, args } => start(program, state, around, func, args, out),
            Entry::Resume { value } => resume(program, state, around, value, out),
        };
        out.stop = stop;
    }
}

/// A function in the middle of its work.
#[derive(Clone, Copy)]
struct Activation {
    func: FuncId,
    /// First word of its frame.
    base: u32,
    block: Block,
    /// Index of the next instruction.
    next: u32,
}

/// What code of a PE sees beside its state.
#[derive(Clone, Copy)]
struct Around<'a> {
    slots: &'a [u64],
    registers: &'a dyn Registers,
}

struct Run<'a> {
    program: &'a LoadedProgram,
    state: &'a mut PeState,
    around: Around<'a>,
    out: &'a mut Segment,
    func: &'a Func,
    plan: &'a FuncPlan,
    at: Activation,
    callers: Vec<Activation>,
}

/// What an instruction did to control.
enum Flow {
    Next,
    Stop(Stop),
}

fn start(
    program: &LoadedProgram,
    state: &mut PeState,
    around: Around<'_>,
    func: FuncId,
    args: &[u64],
    out: &mut Segment,
) -> Stop {
    state.sp = program.stack().0;
    let mut run = Run::new(program, state, around, out, func);
    let loc = run.func.loc;
    match run.enter(func, 0, args) {
        Ok(()) => run.go(),
        Err(kind) => Stop::Trap(CodeTrap { kind, loc }),
    }
}

fn resume(
    program: &LoadedProgram,
    state: &mut PeState,
    around: Around<'_>,
    value: u64,
    out: &mut Segment,
) -> Stop {
    let top = state.top;
    let mut base = 0;
    let mut callers = Vec::new();
    loop {
        let word = state.frames[base as usize];
        let func = FuncId::from_u32((word >> 32) as u32);
        let plan = program.plan(func);
        let CodeAt { block, index } = plan.places[(word as u32 - 1) as usize];
        let at = Activation { func, base, block, next: index };
        if base < top {
            callers.push(Activation { next: index + 1, ..at });
            base += plan.frame_words;
            continue;
        }
        let mut run = Run::new(program, state, around, out, func);
        run.at = at;
        run.callers = callers;
        return run.go_on(value);
    }
}

impl<'a> Run<'a> {
    fn new(
        program: &'a LoadedProgram,
        state: &'a mut PeState,
        around: Around<'a>,
        out: &'a mut Segment,
        func: FuncId,
    ) -> Run<'a> {
        let body = &program.program().funcs[func];
        let at = Activation { func, base: 0, block: body.entry(), next: 0 };
        let plan = program.plan(func);
        Run { program, state, around, out, func: body, plan, at, callers: Vec::new() }
    }

    /// Makes the frame of a call at `base` and goes to its first instruction.
    fn enter(&mut self, func: FuncId, base: u32, args: &[u64]) -> Result<(), CodeTrapKind> {
        let body = &self.program.program().funcs[func];
        let plan = self.program.plan(func);
        if base + plan.frame_words > FRAME_LIMIT {
            return Err(CodeTrapKind::StackOverflow);
        }
        if self.out.cycles > SEGMENT_LIMIT {
            return Err(CodeTrapKind::SegmentTooLong);
        }
        self.state.reserve_frames(base + plan.frame_words);
        let frame = &mut self.state.frames[base as usize..(base + plan.frame_words) as usize];
        frame.fill(0);
        frame[0] = u64::from(func.as_u32()) << 32;
        let params = body.locals.values().take(body.params as usize);
        for (at, (&arg, ty)) in args.iter().zip(params).enumerate() {
            frame[plan.word(Local::from_u32(at as u32)) as usize] = ty.mask(arg);
        }
        let (slots, previous) = enter_stack(self.program, self.state, plan)?;
        let frame = &mut self.state.frames[base as usize..];
        frame[1] = slots;
        frame[2] = previous;
        self.at = Activation { func, base, block: body.entry(), next: 0 };
        self.func = body;
        self.plan = plan;
        Ok(())
    }

    fn local(&self, local: Local) -> u64 {
        self.state.frames[(self.at.base + self.plan.word(local)) as usize]
    }

    fn set(&mut self, local: Local, value: u64) {
        let raw = self.ty(local).mask(value);
        self.state.frames[(self.at.base + self.plan.word(local)) as usize] = raw;
    }

    fn ty(&self, local: Local) -> Ty {
        self.func.locals[local]
    }

    /// Address of a memory access.
    fn address(&self, addr: Local, offset: i32) -> u64 {
        self.program.pointer().mask(self.local(addr).wrapping_add(i64::from(offset) as u64))
    }

    /// Continues after the act that stopped the innermost function.
    fn go_on(&mut self, value: u64) -> Stop {
        let insts = &self.func.blocks[self.at.block].insts;
        let Some(&inst) = insts.get(self.at.next as usize) else {
            // A yield: the terminator is still to be done.
            self.at.next += 1;
            return self.go();
        };
        self.at.next += 1;
        match &self.func.insts[inst] {
            InstData::Vector(vector) => {
                if let Some(result) = vector.result {
                    self.set(result, value);
                }
            }
            InstData::Clock { op: _, dst: Some(dst) }
            | InstData::GetConfig { dst, addr: _ }
            | InstData::Queues { dst, state: _ } => {
                self.set(*dst, value);
            }
            _ => {}
        }
        self.go()
    }

    /// Runs to the next visible act.
    fn go(&mut self) -> Stop {
        loop {
            let insts = &self.func.blocks[self.at.block].insts;
            let done = match insts.get(self.at.next as usize) {
                Some(&inst) => {
                    self.at.next += 1;
                    self.spend(self.plan.inst_cost[inst]);
                    self.inst(inst).map_err(|kind| (kind, self.func.locs[inst]))
                }
                None => self.end().map_err(|kind| (kind, self.func.blocks[self.at.block].loc)),
            };
            if self.state.memory.is_tracked() {
                self.tell_unwritten();
            }
            match done {
                Ok(Flow::Next) => {}
                Ok(Flow::Stop(stop)) => return stop,
                Err((kind, loc)) => return Stop::Trap(CodeTrap { kind, loc }),
            }
        }
    }

    /// Records that an instruction has read what nothing has written.
    fn tell_unwritten(&mut self) {
        let Some(byte) = self.state.memory.take_unwritten() else { return };
        let Some(odd) = self.program.odd_read(byte) else { return };
        let inst = self.at.next.checked_sub(1);
        let insts = &self.func.blocks[self.at.block].insts;
        let inst = inst.and_then(|at| insts.get(at as usize));
        let loc = inst.map_or(self.func.loc, |&inst| self.func.locs[inst]);
        let slot = self.out.cycles.saturating_sub(1);
        self.out.acts.push(SlotAct { slot, what: ActKind::Odd(odd), loc });
    }

    /// The slot that an instruction belongs to, its cost being counted already.
    fn slot(&self, inst: Inst) -> u32 {
        self.out.cycles.wrapping_sub(self.plan.inst_cost[inst].all)
    }

    fn spend(&mut self, slots: Slots) {
        self.out.cycles = self.out.cycles.wrapping_add(slots.all);
        self.out.assumed = self.out.assumed.wrapping_add(slots.assumed);
    }

    /// Marks every frame with where it stands and stops.
    fn suspend(&mut self, index: u32, stop: Stop) -> Flow {
        self.state.frames[self.at.base as usize] =
            u64::from(self.at.func.as_u32()) << 32 | u64::from(index);
        self.state.top = self.at.base;
        Flow::Stop(stop)
    }

    /// The terminator. `next` one past it means that the yield before it is over.
    fn end(&mut self) -> Result<Flow, CodeTrapKind> {
        let block = self.at.block;
        let data = &self.func.blocks[block];
        let yields = self.plan.resume_end[block];
        let fresh = self.at.next as usize == data.insts.len();
        if fresh && yields != 0 && self.out.cycles >= SEGMENT_BUDGET {
            return Ok(self.suspend(yields, Stop::Yield));
        }
        self.spend(self.plan.end_cost[block]);
        #[cfg(test)]
        super::seen::end(&data.terminator);
        let to = match &data.terminator {
            Terminator::Jump(to) => *to,
            Terminator::Branch { cond, then, otherwise } => {
                let to = if self.local(*cond) != 0 { *then } else { *otherwise };
                if to.as_u32() != block.as_u32() + 1 {
                    self.spend(self.plan.taken);
                }
                to
            }
            Terminator::Switch { value, cases, otherwise } => {
                let value = self.local(*value);
                let case = cases.iter().find(|(case, _)| *case == value);
                case.map_or(*otherwise, |&(_, block)| block)
            }
            Terminator::Return(value) => {
                return Ok(self.leave(value.map(|local| self.local(local))));
            }
            Terminator::Unreachable => return Err(CodeTrapKind::Unreachable),
        };
        self.at.block = to;
        self.at.next = 0;
        Ok(Flow::Next)
    }

    /// Returns to the caller.
    fn leave(&mut self, value: Option<u64>) -> Flow {
        if self.plan.stack_bytes > 0 {
            self.state.sp = self.state.frames[self.at.base as usize + 2];
        }
        let Some(caller) = self.callers.pop() else {
            return Flow::Stop(Stop::Return);
        };
        self.at = caller;
        self.func = &self.program.program().funcs[caller.func];
        self.plan = self.program.plan(caller.func);
        let inst = self.func.blocks[caller.block].insts[caller.next as usize - 1];
        let dst = match &self.func.insts[inst] {
            InstData::Call { dst, .. } | InstData::CallIndirect { dst, .. } => *dst,
            _ => None,
        };
        if let (Some(dst), Some(value)) = (dst, value) {
            self.set(dst, value);
        }
        Flow::Next
    }

    fn call(&mut self, inst: Inst, func: FuncId, args: &[Local]) -> Flow {
        let args: Vec<u64> = args.iter().map(|&arg| self.local(arg)).collect();
        let word = u64::from(self.at.func.as_u32()) << 32;
        self.state.frames[self.at.base as usize] = word | u64::from(self.plan.resume_inst[inst]);
        let base = self.at.base + self.plan.frame_words;
        let caller = self.at;
        if let Err(kind) = self.enter(func, base, &args) {
            let loc = self.program.program().funcs[func].loc;
            return Flow::Stop(Stop::Trap(CodeTrap { kind, loc }));
        }
        self.callers.push(caller);
        Flow::Next
    }

    /// The exceptions of a scalar instruction, before it is done.
    #[inline]
    fn watch(&self, inst: Inst) -> Result<(), CodeTrapKind> {
        if self.state.unmasked == 0 {
            return Ok(());
        }
        let raised = raised(self.func, inst, |local| self.local(local));
        self.state.raise(raised)
    }

    #[expect(clippy::too_many_lines, reason = "one arm per instruction")]
    fn inst(&mut self, inst: Inst) -> Result<Flow, CodeTrapKind> {
        let func = self.func;
        #[cfg(test)]
        super::seen::inst(&func.insts[inst]);
        match &func.insts[inst] {
            InstData::Const { dst, bits } => self.set(*dst, *bits),
            InstData::Slot { dst, slot } => {
                self.set(*dst, self.around.slots[slot.as_u32() as usize])
            }
            InstData::Copy { dst, src } => self.set(*dst, self.local(*src)),
            InstData::Unary { dst, op, src } => {
                self.watch(inst)?;
                self.set(*dst, scalar::unary(*op, self.ty(*src), self.local(*src)));
            }
            InstData::Binary { dst, op, lhs, rhs } => {
                self.watch(inst)?;
                let (left, right) = (self.local(*lhs), self.local(*rhs));
                let value = scalar::binary(*op, self.ty(*lhs), left, right);
                self.set(*dst, value.map_err(|_| CodeTrapKind::DivideByZero)?);
            }
            InstData::Convert { dst, kind, src } => {
                self.watch(inst)?;
                let (from, to) = (self.ty(*src), self.ty(*dst));
                self.set(*dst, scalar::convert(*kind, from, to, self.local(*src)));
            }
            InstData::Load { dst, addr, offset } => {
                let address = self.address(*addr, *offset);
                let bytes = self.ty(*dst).bytes();
                let value = match self.state.memory.load(address, bytes) {
                    Ok(value) => value,
                    Err(outside) => registers::load(
                        self.program,
                        self.around.registers,
                        self.out,
                        address,
                        bytes,
                        outside,
                    )?,
                };
                self.set(*dst, value);
            }
            InstData::Store { addr, offset, src } => {
                let address = self.address(*addr, *offset);
                let (bytes, value) = (self.ty(*src).bytes(), self.local(*src));
                if let Err(outside) = self.state.memory.store(address, bytes, value) {
                    let (slot, loc) = (self.slot(inst), self.func.locs[inst]);
                    let access = (address, bytes, value);
                    registers::store(self.program, self.out, access, slot, loc, outside)?;
                }
            }
            InstData::CopyMemory { dst, src, bytes } => {
                let (to, from) = (self.local(*dst), self.local(*src));
                self.state.memory.copy(to, from, u64::from(*bytes))?;
            }
            InstData::FillMemory { dst, value, count } => {
                let (bytes, raw) = (self.ty(*value).bytes(), self.local(*value));
                self.state.memory.fill(self.local(*dst), bytes, raw, *count)?;
            }
            InstData::GlobalAddress { dst, global, offset } => {
                let address = u64::from(self.program.address(*global));
                self.set(*dst, address.wrapping_add(i64::from(*offset) as u64));
            }
            InstData::StackAddress { dst, slot, offset } => {
                let base = self.state.frames[self.at.base as usize + 1];
                let within = u64::from(self.plan.slot_offsets[slot.as_u32() as usize]);
                let address = base.wrapping_add(within);
                self.set(*dst, address.wrapping_add(i64::from(*offset) as u64));
            }
            InstData::FuncAddress { dst, func } => self.set(*dst, u64::from(func.as_u32()) + 1),
            InstData::Call { dst: _, func, args } => return Ok(self.call(inst, *func, args)),
            InstData::CallIndirect { dst: _, callee, sig, args } => {
                let pointer = self.local(*callee);
                let func = self.program.callee(pointer, *sig);
                let func = func.ok_or(CodeTrapKind::BadCall { pointer })?;
                return Ok(self.call(inst, func, args));
            }
            InstData::MakeMem1d { dst, base, extent, stride, indexed } => {
                let base = self.local(*base) as u16;
                let (extent, stride) = (self.local(*extent) as u16, self.local(*stride) as i16);
                self.set(*dst, Dsd::mem1d(base, extent, stride, *indexed).0);
            }
            InstData::MakeMem4d { dst, base, shape, indexed } => {
                let base = self.local(*base) as u16;
                self.set(*dst, Dsd::mem4d(base, *shape, *indexed).0);
            }
            InstData::MakeFabric { dst, desc, extent } => {
                let extent = self.local(*extent) as u16;
                self.set(*dst, Dsd::fabric(*desc, extent).0);
            }
            InstData::MakeRing { dst, base, extent, wrap } => {
                let [base, extent, wrap] = [*base, *extent, *wrap].map(|it| self.local(it) as u16);
                self.set(*dst, Dsd::ring(base, extent, wrap).0);
            }
            InstData::DsdMoveBase { dst, src, delta } => {
                let (dsd, delta) = (Dsd(self.local(*src)), self.local(*delta) as u16);
                self.set(*dst, dsd.with_base(dsd.base().wrapping_add(delta)).0);
            }
            InstData::DsdSetBase { dst, src, base } => {
                let base = self.local(*base) as u16;
                self.set(*dst, Dsd(self.local(*src)).with_base(base).0);
            }
            InstData::DsdSetExtent { dst, src, extent } => {
                let extent = self.local(*extent) as u16;
                self.set(*dst, Dsd(self.local(*src)).with_extent(extent).0);
            }
            InstData::DsdSetStride { dst, src, stride } => {
                let stride = self.local(*stride) as i16;
                self.set(*dst, Dsd(self.local(*src)).with_stride(stride).0);
            }
            InstData::Vector(_) => return self.vector(inst),
            InstData::LoadDsr { dsr, dsd, options, save_address, single_step, xdsr } => {
                let word = options.index.map(|index| self.local(index));
                let settings = late::settings(*options, word.unwrap_or(0));
                let settings = settings.ok_or(CodeTrapKind::BadVector(NO_TASK))?;
                let loaded = Dsr {
                    dsd: Dsd(self.local(*dsd)),
                    options: dflow_ir::inst::VectorOptions { index: None, ..settings },
                    index: word.and_then(late::index),
                    save_address: *save_address,
                    single_step: *single_step,
                    xdsr: *xdsr,
                    moved: 0,
                    steps: 0,
                };
                self.state.load_dsr(*dsr, loaded);
            }
            InstData::SetDsr { dsr, field, value } => {
                let value = self.local(*value) as u16;
                self.state.set_dsr(*dsr, *field, value)?;
            }
            InstData::SetFifoLength { fifo, write_side, length } => {
                let length = self.local(*length) as u16;
                self.state.set_fifo_length(*fifo, *write_side, length);
            }
            InstData::Flag { op: FlagOp::Exceptions, id } => {
                self.state.unmasked = self.local(*id) as u8;
            }
            InstData::Flag { op, id } => {
                let (op, id, loc) = (*op, self.local(*id) as u16, self.func.locs[inst]);
                let slot = self.slot(inst);
                self.out.acts.push(SlotAct { slot, what: ActKind::of_flag(op, id), loc });
            }
            InstData::Random { dst } => {
                let value = self.state.random();
                self.set(*dst, u64::from(value));
            }
            InstData::SetConfig { addr, src } => {
                let access = (self.local(*addr) as u16, self.local(*src) as u16);
                let (slot, loc) = (self.slot(inst), self.func.locs[inst]);
                registers::write(self.program, self.out, access, slot, loc)?;
            }
            InstData::GetConfig { dst: _, addr } => {
                let read = ConfigRead { address: self.local(*addr) as u16, loc: func.locs[inst] };
                return Ok(self.suspend(self.plan.resume_inst[inst], Stop::Config(read)));
            }
            InstData::SetRandom { id } => {
                let id = self.local(*id) as u16;
                self.state.generators.choose(id, self.program.target().generators);
            }
            InstData::Queues { dst: _, state } => {
                return Ok(self.suspend(self.plan.resume_inst[inst], Stop::Queues(*state)));
            }
            InstData::Clock { op, dst: _ } => {
                return Ok(self.suspend(self.plan.resume_inst[inst], Stop::Clock(*op)));
            }
            InstData::Assert { cond, message } => {
                if self.local(*cond) == 0 {
                    return Err(CodeTrapKind::Assertion(message.clone()));
                }
            }
            InstData::Bound { index, len, what } => {
                let (at, end) = (self.local(*index), self.local(*len));
                if at >= end {
                    return Err(CodeTrapKind::outside(*what, at, end, self.ty(*index)));
                }
            }
            InstData::Host { op: _, dsts, args } => {
                let args = args.iter().map(|&arg| self.local(arg)).collect();
                let call = HostCall { func: self.at.func, inst, args, dsts: dsts.clone() };
                return Ok(self.suspend(self.plan.resume_inst[inst], Stop::Host(call)));
            }
        }
        Ok(Flow::Next)
    }
}

/// Bits of the exceptions that a scalar instruction raises on these operands.
pub(crate) fn raised(func: &Func, inst: Inst, value: impl Fn(Local) -> u64) -> u8 {
    let ty = |local: Local| func.locals[local];
    match func.insts[inst] {
        InstData::Unary { op, src, .. } => exception::unary(op, ty(src), value(src)),
        InstData::Binary { op, lhs, rhs, .. } => {
            exception::binary(op, ty(lhs), value(lhs), value(rhs))
        }
        InstData::Convert { dst, kind, src } => {
            exception::convert(kind, ty(src), ty(dst), value(src))
        }
        _ => 0,
    }
}

/// Takes a function's stack slots from the PE's stack and zeroes them: their base, and the stack
/// pointer to go back to.
pub(crate) fn enter_stack(
    program: &LoadedProgram,
    state: &mut PeState,
    plan: &FuncPlan,
) -> Result<(u64, u64), CodeTrapKind> {
    let previous = state.sp;
    if plan.stack_bytes == 0 {
        return Ok((0, 0));
    }
    let base = previous.next_multiple_of(u64::from(plan.stack_align));
    let end = base + u64::from(plan.stack_bytes);
    if end > program.stack().1 {
        return Err(CodeTrapKind::StackOverflow);
    }
    state.memory.range(base, u64::from(plan.stack_bytes))?.fill(0);
    state.sp = end;
    Ok((base, previous))
}

#[cfg(test)]
mod tests;
