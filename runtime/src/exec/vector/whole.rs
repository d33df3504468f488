//! Memory-only vector operations, done at once.
//!
//! Two ways with one result: [`naive`] is the meaning, element by element; [`chunked`] gathers,
//! computes and scatters [`CHUNK`] elements at a time and is taken only where no element written
//! can be read later by another (and nothing leaves the memory).

use dflow_ir::dsd::op::OpRow;

use super::fast::{self, CHUNK, Lanes};
use super::running::{reduction, save_address, store_pointer};
use super::walk::Walk;
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;
use crate::exec::{CodeTrapKind, Stream, VectorStart};

/// Runs the operation to its end; issue slots beyond the start-up.
pub(super) fn run(
    program: &LoadedProgram,
    state: &mut PeState,
    start: &VectorStart,
) -> Result<u32, CodeTrapKind> {
    let mut plan = Plan::new(program, start);
    let plain = state.unmasked == 0 && !state.memory.is_tracked();
    if plain && plan.may_chunk(state.memory.bytes().len()) {
        chunked(state, &mut plan);
    } else {
        naive(state, &mut plan)?;
    }
    if let Stream::Pointer { address } = start.dest
        && plan.length > 0
    {
        store_pointer(state, plan.row.dest, address, plan.value)?;
    }
    for stream in std::iter::once(&start.dest).chain(&start.sources) {
        if let Stream::Memory(memory) = stream {
            save_address(program, state, memory, plan.length);
        }
    }
    let in_memory = start.sources.map(|source| matches!(source, Stream::Memory(_)));
    let rate = plan.row.elements_per_slot(program.target(), in_memory);
    Ok(plan.length.div_ceil(rate))
}

/// An operand: a walk, or a value.
#[derive(Clone, Copy, Debug)]
enum Place {
    Memory { walk: Walk, bytes: u8 },
    Value(u32),
}

/// An operation with its walks.
struct Plan {
    row: &'static OpRow,
    op: u8,
    /// `None` for a pointer.
    dest: Option<(Walk, u8)>,
    sources: [Place; 3],
    length: u32,
    /// Last value, or the accumulator of a reduction.
    value: u32,
    carry: u32,
    reduces: bool,
}

impl Plan {
    fn new(program: &LoadedProgram, start: &VectorStart) -> Plan {
        let seed = reduction(start);
        let place = |stream: Stream| match stream {
            Stream::Memory(memory) => {
                Place::Memory { walk: Walk::of(program, &memory), bytes: memory.element }
            }
            Stream::Scalar(value) => Place::Value(value),
            Stream::None
            | Stream::Input { .. }
            | Stream::Output { .. }
            | Stream::Fifo { .. }
            | Stream::Pointer { .. } => Place::Value(0),
        };
        let dest = match place(start.dest) {
            Place::Memory { walk, bytes } => Some((walk, bytes)),
            Place::Value(_) => None,
        };
        Plan {
            row: start.op.row(),
            op: start.op.0,
            dest,
            sources: start.sources.map(place),
            length: start.length.unwrap_or(0),
            value: seed.unwrap_or(0),
            carry: 0,
            reduces: seed.is_some(),
        }
    }

    /// Whether gathering ahead of writing gives what the naive loop gives.
    fn may_chunk(&self, memory: usize) -> bool {
        let mut spans = [None; 3];
        for (span, source) in spans.iter_mut().zip(&self.sources) {
            if let Place::Memory { walk, bytes } = source {
                *span = Some(match Span::of(walk, *bytes, self.length, memory) {
                    Some(span) => span,
                    None => return false,
                });
            }
        }
        let Some((walk, bytes)) = &self.dest else {
            return true;
        };
        let Some(dest) = Span::of(walk, *bytes, self.length, memory) else {
            return false;
        };
        spans.iter().flatten().all(|source| dest.is_safe_with(source))
    }
}

/// Bytes that a linear walk covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u16,
    step: i16,
    bytes: u8,
    low: i64,
    high: i64,
}

impl Span {
    /// The span, if the walk is linear and stays inside `memory` bytes.
    fn of(walk: &Walk, bytes: u8, length: u32, memory: usize) -> Option<Span> {
        let step = walk.linear()?;
        let first = i64::from(walk.address());
        let last = first + i64::from(step) * (i64::from(length) - 1).max(0);
        let (low, high) = (first.min(last), first.max(last) + i64::from(bytes));
        (low >= 0 && high <= memory as i64).then_some(Span {
            start: walk.address(),
            step,
            bytes,
            low,
            high,
        })
    }

    /// Whether writing this span never changes an element of `source` that is read later.
    fn is_safe_with(&self, source: &Span) -> bool {
        let apart = self.high <= source.low || source.high <= self.low;
        let distinct = self.step.unsigned_abs() >= u16::from(self.bytes);
        apart || (self == source && distinct)
    }
}

/// The meaning: one element after the other.
fn naive(state: &mut PeState, plan: &mut Plan) -> Result<(), CodeTrapKind> {
    for _ in 0..plan.length {
        let mut values = [0; 3];
        for (value, source) in values.iter_mut().zip(&mut plan.sources) {
            *value = match source {
                Place::Value(value) => *value,
                Place::Memory { walk, bytes } => {
                    let address = u64::from(walk.address());
                    walk.advance();
                    state.memory.load(address, u32::from(*bytes))? as u32
                }
            };
        }
        if plan.reduces {
            values[0] = plan.value;
        }
        if state.unmasked != 0 {
            state.raise((plan.row.raised)(values))?;
        }
        plan.value = plan.row.apply(values, &mut plan.carry);
        if let Some((walk, bytes)) = &mut plan.dest {
            let address = u64::from(walk.address());
            walk.advance();
            state.memory.store(address, u32::from(*bytes), u64::from(plan.value))?;
        }
    }
    Ok(())
}

/// The same, a chunk at a time.
fn chunked(state: &mut PeState, plan: &mut Plan) {
    let kernel = if plan.reduces { None } else { fast::kernel(plan.op) };
    let mut lanes: [Lanes; 3] = [[0; CHUNK]; 3];
    for (lane, source) in lanes.iter_mut().zip(&plan.sources) {
        if let Place::Value(value) = source {
            lane.fill(*value);
        }
    }
    let mut out: Lanes = [0; CHUNK];
    let mut left = plan.length as usize;
    let memory = state.memory.bytes_mut();
    while left > 0 {
        let count = left.min(CHUNK);
        left -= count;
        for (lane, source) in lanes.iter_mut().zip(&mut plan.sources) {
            if let Place::Memory { walk, bytes } = source {
                fast::gather(memory, walk, *bytes, &mut lane[..count]);
            }
        }
        match kernel {
            Some(kernel) => kernel(&lanes, &mut out),
            None => each(plan, &lanes, &mut out[..count]),
        }
        plan.value = out[count - 1];
        if let Some((walk, bytes)) = &mut plan.dest {
            fast::scatter(memory, walk, *bytes, &out[..count]);
        }
    }
}

/// The row's kernel on each lane, with carry and accumulator.
fn each(plan: &mut Plan, lanes: &[Lanes; 3], out: &mut [u32]) {
    for (at, out) in out.iter_mut().enumerate() {
        let first = if plan.reduces { plan.value } else { lanes[0][at] };
        *out = plan.row.apply([first, lanes[1][at], lanes[2][at]], &mut plan.carry);
        plan.value = *out;
    }
}

#[cfg(test)]
pub(super) fn run_naive(
    program: &LoadedProgram,
    state: &mut PeState,
    start: &VectorStart,
) -> Result<(), CodeTrapKind> {
    let mut plan = Plan::new(program, start);
    naive(state, &mut plan)?;
    if let Stream::Pointer { address } = start.dest
        && plan.length > 0
    {
        store_pointer(state, plan.row.dest, address, plan.value)?;
    }
    for stream in std::iter::once(&start.dest).chain(&start.sources) {
        if let Stream::Memory(memory) = stream {
            save_address(program, state, memory, plan.length);
        }
    }
    Ok(())
}
