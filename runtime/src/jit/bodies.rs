//! The work of the helpers, in safe code on the same functions as the interpreter.

use dflow_ir::cost::Slots;
use dflow_ir::dsd::{Dsd, late};
use dflow_ir::func::{Block, Inst};
use dflow_ir::inst::{FlagOp, InstData, VectorOptions};
use dflow_ir::loc::Loc;
use dflow_ir::program::FuncId;
use dflow_ir::scalar::{self, BinaryOp, Convert, UnaryOp};
use dflow_ir::ty::Ty;

use super::context::Parts;
use super::helpers::{DONE, STOPPED, TRAPPED};
use crate::exec::state::Dsr;
use crate::exec::vector::{self, Issued, VectorArgs, VectorSite};
use crate::exec::{
    ActKind, CodeTrap, CodeTrapKind, ConfigRead, HostCall, Passing, SharedStart, SlotAct, Stop,
    interp, registers,
};

/// What the trap helper is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrapCode {
    DivideByZero,
    Assertion,
    /// The place is a block's end.
    Unreachable,
    /// The place is the function.
    StackOverflow,
    /// The place is the function.
    SegmentTooLong,
}

const TRAP_CODES: [TrapCode; 5] = [
    TrapCode::DivideByZero,
    TrapCode::Assertion,
    TrapCode::Unreachable,
    TrapCode::StackOverflow,
    TrapCode::SegmentTooLong,
];

/// Flag operations in the order of their codes.
pub(super) const FLAG_OPS: [FlagOp; 21] = [
    FlagOp::Activate,
    FlagOp::BlockTask,
    FlagOp::UnblockTask,
    FlagOp::BlockChannel,
    FlagOp::UnblockChannel,
    FlagOp::BlockMicrothread,
    FlagOp::UnblockMicrothread,
    FlagOp::RaiseTask,
    FlagOp::LowerTask,
    FlagOp::RaiseChannel,
    FlagOp::LowerChannel,
    FlagOp::MainPriority,
    FlagOp::FlushInput,
    FlagOp::FlushOutput,
    FlagOp::EndFlushInput,
    FlagOp::EndFlushOutput,
    FlagOp::TransformMask,
    FlagOp::Exceptions,
    FlagOp::BindInput,
    FlagOp::BindOutput,
    FlagOp::AnswerAhead,
];

// Generated code has `FlagOp as i64`.
const _: () = {
    let mut at = 0;
    while at < FLAG_OPS.len() {
        assert!(FLAG_OPS[at] as usize == at);
        at += 1;
    }
};

fn inst_of<'a>(parts: &Parts<'a>, func: u32, inst: u32) -> &'a InstData {
    &parts.program.program().funcs[FuncId::from_u32(func)].insts[Inst::from_u32(inst)]
}

/// Where an instruction stands in the source: asked for only where that is told.
fn loc_of(parts: &Parts<'_>, func: u32, inst: u32) -> Loc {
    parts.program.program().funcs[FuncId::from_u32(func)].locs[Inst::from_u32(inst)]
}

#[cold]
fn fail_at(parts: &mut Parts<'_>, kind: CodeTrapKind, (func, inst): (u32, u32)) -> u32 {
    let loc = loc_of(parts, func, inst);
    fail(parts, kind, loc)
}

fn fail(parts: &mut Parts<'_>, kind: CodeTrapKind, loc: Loc) -> u32 {
    parts.out.stop = Stop::Trap(CodeTrap { kind, loc });
    TRAPPED
}

fn settle(parts: &mut Parts<'_>, done: Result<(), CodeTrapKind>, at: (u32, u32)) -> u32 {
    match done {
        Ok(()) => DONE,
        Err(kind) => fail_at(parts, kind, at),
    }
}

/// Marks the innermost frame, which is now to be written, and stops.
fn stop(parts: &mut Parts<'_>, func: u32, frame: u64, stop: Stop) -> u32 {
    let base = frame as u32 / 8;
    let words = parts.program.plan(FuncId::from_u32(func)).kept_words;
    parts.state.reserve_frames(base + words);
    parts.state.top = base;
    parts.out.stop = stop;
    STOPPED
}

/// A load outside the slab: the value is in `result`.
pub(super) fn load(parts: &mut Parts<'_>, address: u64, bytes: u32, func: u32, inst: u32) -> u32 {
    let value = match parts.state.memory.load(address, bytes) {
        Ok(value) => Ok(value),
        Err(outside) => {
            let (registers, out) = (parts.registers, &*parts.out);
            registers::load(parts.program, registers, out, address, bytes, outside)
        }
    };
    match value {
        Ok(value) => {
            *parts.result = value;
            DONE
        }
        Err(kind) => fail_at(parts, kind, (func, inst)),
    }
}

/// A store outside the slab.
pub(super) fn store(
    parts: &mut Parts<'_>,
    address: u64,
    value: u64,
    bytes: u32,
    func: u32,
    inst: u32,
) -> u32 {
    let done = match parts.state.memory.store(address, bytes, value) {
        Ok(()) => Ok(()),
        Err(outside) => {
            let (slot, access) = (slot(parts, func, inst), (address, bytes, value));
            let loc = loc_of(parts, func, inst);
            registers::store(parts.program, parts.out, access, slot, loc, outside)
        }
    };
    settle(parts, done, (func, inst))
}

/// The slot that an instruction belongs to, its cost being counted already.
fn slot(parts: &Parts<'_>, func: u32, inst: u32) -> u32 {
    let plan = parts.program.plan(FuncId::from_u32(func));
    (*parts.cycles as u32).wrapping_sub(plan.inst_cost[Inst::from_u32(inst)].all)
}

/// Records a write to a configuration register.
pub(super) fn set_config(
    parts: &mut Parts<'_>,
    address: u64,
    value: u64,
    func: u32,
    inst: u32,
) -> u32 {
    let loc = loc_of(parts, func, inst);
    let (slot, access) = (slot(parts, func, inst), (address as u16, value as u16));
    let done = registers::write(parts.program, parts.out, access, slot, loc);
    settle(parts, done, (func, inst))
}

/// Stops for the read of a configuration register.
pub(super) fn get_config(
    parts: &mut Parts<'_>,
    address: u64,
    func: u32,
    inst: u32,
    frame: u64,
) -> u32 {
    let read = ConfigRead { address: address as u16, loc: loc_of(parts, func, inst) };
    stop(parts, func, frame, Stop::Config(read))
}

pub(super) fn outside_array(
    parts: &mut Parts<'_>,
    index: u64,
    len: u64,
    func: u32,
    inst: u32,
) -> u32 {
    let body = &parts.program.program().funcs[FuncId::from_u32(func)];
    let InstData::Bound { index: local, len: _, what } = body.insts[Inst::from_u32(inst)] else {
        return fail_at(parts, CodeTrapKind::Unreachable, (func, inst));
    };
    let kind = CodeTrapKind::outside(what, index, len, body.locals[local]);
    fail_at(parts, kind, (func, inst))
}

pub(super) fn trap(parts: &mut Parts<'_>, kind: u32, func: u32, at: u32) -> u32 {
    let body = &parts.program.program().funcs[FuncId::from_u32(func)];
    let (kind, loc) = match TRAP_CODES[kind as usize] {
        TrapCode::DivideByZero => (CodeTrapKind::DivideByZero, body.locs[Inst::from_u32(at)]),
        TrapCode::Assertion => {
            let inst = Inst::from_u32(at);
            let message = match &body.insts[inst] {
                InstData::Assert { message, .. } => message.clone(),
                _ => String::new(),
            };
            (CodeTrapKind::Assertion(message), body.locs[inst])
        }
        TrapCode::Unreachable => (CodeTrapKind::Unreachable, body.blocks[Block::from_u32(at)].loc),
        TrapCode::StackOverflow => (CodeTrapKind::StackOverflow, body.loc),
        TrapCode::SegmentTooLong => (CodeTrapKind::SegmentTooLong, body.loc),
    };
    fail(parts, kind, loc)
}

pub(super) fn vector(parts: &mut Parts<'_>, func: u32, number: u32, frame: u64) -> u32 {
    let (Some(site), Some(args)) = (parts.program.vectors().get(func, number), parts.vector_args())
    else {
        return fail(parts, CodeTrapKind::Unreachable, Loc::default());
    };
    if site.is_asynchronous() && parts.registers.pass_again(&site.inst, args, since(parts)) {
        return vector_passed(parts);
    }
    // Most are known; what the others give is larger.
    match vector::run_known(parts.program, parts.state, site, args) {
        Some(Ok(slots)) => vector_done(parts, slots, true),
        Some(Err(kind)) => fail(parts, kind, site.loc),
        None => vector_seen(parts, site, args, frame),
    }
}

/// Issues one that others may see, or of which nothing is known.
#[inline(never)]
fn vector_seen(parts: &mut Parts<'_>, site: &VectorSite, args: &VectorArgs, frame: u64) -> u32 {
    let func = site.func.as_u32();
    if let Some(start) = vector::started(parts.program, site, args) {
        return vector_starts(parts, (func, frame), start);
    }
    let issued = vector::issue_new(parts.program, parts.state, site, args);
    if let Ok((_, Some(odd))) = issued {
        let slot = (*parts.cycles as u32).saturating_sub(1);
        parts.out.acts.push(SlotAct { slot, what: ActKind::Odd(odd), loc: site.loc });
    }
    match issued.map(|(issued, _)| issued) {
        Ok(Issued::Done { slots, complete, end }) => {
            let done = vector_done(parts, slots, complete);
            if let Some(what) = end {
                let slot = (*parts.cycles as u32).saturating_sub(1);
                parts.out.acts.push(SlotAct { slot, what, loc: site.loc });
            }
            done
        }
        Ok(Issued::Starts(start)) => vector_starts(parts, (func, frame), start),
        Err(kind) => fail(parts, kind, site.loc),
    }
}

/// Others can see a vector operation: code goes on past it, or stops.
#[inline]
fn vector_starts(parts: &mut Parts<'_>, (func, frame): (u32, u64), start: SharedStart) -> u32 {
    if !parts.registers.pass(&start, since(parts)) {
        return stop(parts, func, frame, Stop::Vector(start));
    }
    vector_passed(parts)
}

/// What code has done before an operation.
#[inline]
fn since<'a>(parts: &'a Parts<'_>) -> Passing<'a> {
    Passing { slots: Slots::unpacked(*parts.cycles), acts: &parts.out.acts }
}

/// Code goes on past a vector operation.
#[inline]
fn vector_passed(parts: &mut Parts<'_>) -> u32 {
    *parts.cycles = 0;
    vector_done(parts, Slots::default(), true)
}

/// A vector operation took these slots, and is complete or not.
#[inline]
fn vector_done(parts: &mut Parts<'_>, slots: Slots, complete: bool) -> u32 {
    *parts.cycles = parts.cycles.wrapping_add(slots.packed());
    *parts.result = complete.into();
    DONE
}

pub(super) fn clock(parts: &mut Parts<'_>, func: u32, inst: u32, frame: u64) -> u32 {
    let InstData::Clock { op, dst: _ } = inst_of(parts, func, inst) else {
        return fail_at(parts, CodeTrapKind::Unreachable, (func, inst));
    };
    stop(parts, func, frame, Stop::Clock(*op))
}

pub(super) fn queues(parts: &mut Parts<'_>, func: u32, inst: u32, frame: u64) -> u32 {
    let InstData::Queues { dst: _, state } = inst_of(parts, func, inst) else {
        return fail_at(parts, CodeTrapKind::Unreachable, (func, inst));
    };
    stop(parts, func, frame, Stop::Queues(*state))
}

pub(super) fn host(parts: &mut Parts<'_>, func: u32, inst: u32, frame: u64) -> u32 {
    let InstData::Host { op: _, dsts, args } = inst_of(parts, func, inst) else {
        return fail_at(parts, CodeTrapKind::Unreachable, (func, inst));
    };
    let call = HostCall {
        func: FuncId::from_u32(func),
        inst: Inst::from_u32(inst),
        args: parts.args[..args.len()].to_vec(),
        dsts: dsts.clone(),
    };
    stop(parts, func, frame, Stop::Host(call))
}

pub(super) fn pause(parts: &mut Parts<'_>, func: u32, frame: u64) -> u32 {
    stop(parts, func, frame, Stop::Yield)
}

/// `what` is the operation's code, and the id in its low half. Called without a guard: it must not
/// panic, nor move what the context points at.
pub(super) fn flag(
    parts: &mut Parts<'_>,
    what: u32,
    slot: u32,
    file: u32,
    line: u32,
    column: u32,
) -> u32 {
    let loc = Loc { file, line, column };
    let Some(&op) = FLAG_OPS.get(what as usize >> 16) else {
        return fail(parts, CodeTrapKind::Unreachable, loc);
    };
    let what = ActKind::of_flag(op, what as u16);
    parts.out.acts.push(SlotAct { slot, what, loc });
    DONE
}

pub(super) fn unmask(parts: &mut Parts<'_>, bits: u32) -> u32 {
    parts.state.unmasked = bits as u8;
    DONE
}

/// Whether a scalar instruction on these operands raises an exception that is not masked.
pub(super) fn watch(parts: &mut Parts<'_>, first: u64, second: u64, func: u32, inst: u32) -> u32 {
    if parts.state.unmasked == 0 {
        return DONE;
    }
    let body = &parts.program.program().funcs[FuncId::from_u32(func)];
    let at = Inst::from_u32(inst);
    let second_of = match body.insts[at] {
        InstData::Binary { lhs, rhs, .. } if lhs != rhs => Some(rhs),
        _ => None,
    };
    let value = |local| if second_of == Some(local) { second } else { first };
    let done = parts.state.raise(interp::raised(body, at, value));
    settle(parts, done, (func, inst))
}

pub(super) fn random(parts: &mut Parts<'_>) -> u32 {
    u32::from(parts.state.random())
}

pub(super) fn set_random(parts: &mut Parts<'_>, id: u32) -> u32 {
    parts.state.generators.choose(id as u16, parts.program.target().generators);
    DONE
}

pub(super) fn copy(parts: &mut Parts<'_>, dst: u64, src: u64, func: u32, inst: u32) -> u32 {
    let bytes = match inst_of(parts, func, inst) {
        InstData::CopyMemory { bytes, .. } => u64::from(*bytes),
        _ => 0,
    };
    let done = parts.state.memory.copy(dst, src, bytes);
    settle(parts, done, (func, inst))
}

pub(super) fn fill(parts: &mut Parts<'_>, dst: u64, value: u64, func: u32, inst: u32) -> u32 {
    let InstData::FillMemory { dst: _, value: local, count } = inst_of(parts, func, inst) else {
        return fail_at(parts, CodeTrapKind::Unreachable, (func, inst));
    };
    let ty = parts.program.program().funcs[FuncId::from_u32(func)].locals[*local];
    let done = parts.state.memory.fill(dst, ty.bytes(), value, *count);
    settle(parts, done, (func, inst))
}

pub(super) fn load_dsr(parts: &mut Parts<'_>, dsd: u64, index: u64, func: u32, inst: u32) -> u32 {
    let InstData::LoadDsr { dsr, dsd: _, options, save_address, single_step, xdsr } =
        inst_of(parts, func, inst)
    else {
        return fail_at(parts, CodeTrapKind::Unreachable, (func, inst));
    };
    let Some(settings) = late::settings(*options, index) else {
        return fail_at(parts, CodeTrapKind::BadVector(vector::NO_TASK), (func, inst));
    };
    let loaded = Dsr {
        dsd: Dsd(dsd),
        options: VectorOptions { index: None, ..settings },
        index: options.index.and_then(|_| late::index(index)),
        save_address: *save_address,
        single_step: *single_step,
        xdsr: *xdsr,
        moved: 0,
        steps: 0,
    };
    parts.state.load_dsr(*dsr, loaded);
    DONE
}

pub(super) fn set_dsr(parts: &mut Parts<'_>, value: u64, func: u32, inst: u32) -> u32 {
    let InstData::SetDsr { dsr, field, value: _ } = inst_of(parts, func, inst) else {
        return fail_at(parts, CodeTrapKind::Unreachable, (func, inst));
    };
    match parts.state.set_dsr(*dsr, *field, value as u16) {
        Ok(()) => DONE,
        Err(kind) => fail_at(parts, kind, (func, inst)),
    }
}

pub(super) fn fifo_length(parts: &mut Parts<'_>, length: u64, func: u32, inst: u32) -> u32 {
    let InstData::SetFifoLength { fifo, write_side, length: _ } = inst_of(parts, func, inst) else {
        return fail_at(parts, CodeTrapKind::Unreachable, (func, inst));
    };
    parts.state.set_fifo_length(*fifo, *write_side, length as u16);
    DONE
}

pub(super) fn enter_stack(parts: &mut Parts<'_>, func: u32) -> u32 {
    let func = FuncId::from_u32(func);
    parts.state.sp = *parts.sp;
    match interp::enter_stack(parts.program, parts.state, parts.program.plan(func)) {
        Ok((base, _)) => {
            *parts.result = base;
            *parts.sp = parts.state.sp;
            DONE
        }
        Err(kind) => {
            let loc = parts.program.program().funcs[func].loc;
            fail(parts, kind, loc)
        }
    }
}

pub(super) fn callee(parts: &mut Parts<'_>, pointer: u64, func: u32, inst: u32) -> u32 {
    let found = match inst_of(parts, func, inst) {
        InstData::CallIndirect { sig, .. } => parts.program.callee(pointer, *sig),
        _ => None,
    };
    match found {
        Some(found) => {
            *parts.result = u64::from(found.as_u32());
            DONE
        }
        None => fail_at(parts, CodeTrapKind::BadCall { pointer }, (func, inst)),
    }
}

pub(super) fn unary(_: &mut Parts<'_>, op: u32, ty: u32, src: u64) -> u64 {
    scalar::unary(UnaryOp::ALL[op as usize], Ty::ALL[ty as usize], src)
}

/// No operation that comes here divides integers, so there always is a result.
pub(super) fn binary(_: &mut Parts<'_>, op: u32, ty: u32, lhs: u64, rhs: u64) -> u64 {
    scalar::binary(BinaryOp::ALL[op as usize], Ty::ALL[ty as usize], lhs, rhs).unwrap_or(0)
}

/// `types` is the source's code plus 8 times the result's.
pub(super) fn convert(_: &mut Parts<'_>, kind: u32, types: u32, src: u64) -> u64 {
    let (from, to) = (Ty::ALL[types as usize % 8], Ty::ALL[types as usize / 8]);
    scalar::convert(Convert::ALL[kind as usize], from, to, src)
}
