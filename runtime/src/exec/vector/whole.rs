//! Memory-only vector operations, done at once.
//!
//! [`naive`] is the meaning, element by element. Where every walk has one step a [`Plan`] gives
//! the same.

use dflow_ir::cost::Slots;

use super::plan::{Dest, FEW, Place, Plan};
use super::running::{reduction, save_address, store_pointer};
use super::walk::Walk;
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;
use crate::exec::{CodeTrapKind, MemoryStream, Stream, VectorStart};

/// Runs the operation to its end; issue slots beyond the start-up.
pub(super) fn run(
    program: &LoadedProgram,
    state: &mut PeState,
    start: &VectorStart,
) -> Result<Slots, CodeTrapKind> {
    let length = start.length.unwrap_or(0);
    let plain = length >= FEW && state.unmasked == 0 && !state.memory.is_tracked();
    let plan = if plain { plan(program, start) } else { None };
    let fits = |plan: &Plan<'_>| plan.may_chunk(state.memory.bytes().len());
    let value = if let Some(mut plan) = plan.filter(fits) {
        plan.fast(state.memory.bytes_mut());
        plan.value
    } else {
        naive(program, state, start)?
    };
    end(program, state, start, value)?;
    Ok(slots(program, start, length))
}

/// Issue slots of an operation's `length` elements.
fn slots(program: &LoadedProgram, start: &VectorStart, length: u32) -> Slots {
    let lie = |stream: &Stream| match stream {
        Stream::Memory(memory) => Some(Walk::of(program, memory).lie(memory.element)),
        Stream::None
        | Stream::Input { .. }
        | Stream::Output { .. }
        | Stream::Fifo { .. }
        | Stream::Scalar(_)
        | Stream::Pointer { .. } => None,
    };
    let sources = start.sources.each_ref().map(lie);
    let reduces = reduction(start).is_some();
    start.op.row().slots(program.target(), length, lie(&start.dest), &sources, reduces)
}

/// All elements of an operation on memory, if its walks have one step each.
fn plan(program: &LoadedProgram, start: &VectorStart) -> Option<Plan<'static>> {
    let seed = reduction(start);
    let line = |memory: &MemoryStream| Walk::of(program, memory).line(memory.element);
    let mut sources = [Place::Value(0); 3];
    for (place, stream) in sources.iter_mut().zip(&start.sources) {
        match stream {
            Stream::Memory(memory) => *place = Place::Memory(line(memory)?),
            Stream::Scalar(value) => *place = Place::Value(*value),
            Stream::None
            | Stream::Input { .. }
            | Stream::Output { .. }
            | Stream::Fifo { .. }
            | Stream::Pointer { .. } => {}
        }
    }
    let dest = match &start.dest {
        Stream::Memory(memory) => Dest::Memory(line(memory)?),
        Stream::None
        | Stream::Input { .. }
        | Stream::Output { .. }
        | Stream::Fifo { .. }
        | Stream::Scalar(_)
        | Stream::Pointer { .. } => Dest::None,
    };
    Some(Plan {
        row: start.op.row(),
        op: start.op.0,
        dest,
        sources,
        length: start.length.unwrap_or(0),
        value: seed.unwrap_or(0),
        carry: 0,
        reduces: seed.is_some(),
    })
}

/// One element after the other; the last value.
fn naive(
    program: &LoadedProgram,
    state: &mut PeState,
    start: &VectorStart,
) -> Result<u32, CodeTrapKind> {
    let walk = |stream: &Stream| match stream {
        Stream::Memory(memory) => Some((Walk::of(program, memory), u32::from(memory.element))),
        Stream::None
        | Stream::Input { .. }
        | Stream::Output { .. }
        | Stream::Fifo { .. }
        | Stream::Scalar(_)
        | Stream::Pointer { .. } => None,
    };
    let (row, seed) = (start.op.row(), reduction(start));
    let mut walks = start.sources.each_ref().map(walk);
    let scalars = start.sources.map(|source| match source {
        Stream::Scalar(value) => value,
        Stream::None
        | Stream::Memory(_)
        | Stream::Input { .. }
        | Stream::Output { .. }
        | Stream::Fifo { .. }
        | Stream::Pointer { .. } => 0,
    });
    let mut dest = walk(&start.dest);
    let (mut value, mut carry) = (seed.unwrap_or(0), 0);
    for _ in 0..start.length.unwrap_or(0) {
        let mut values = scalars;
        for (value, walk) in values.iter_mut().zip(&mut walks) {
            if let Some((walk, bytes)) = walk {
                *value = state.memory.load(u64::from(walk.address()), *bytes)? as u32;
                walk.advance();
            }
        }
        if seed.is_some() {
            values[0] = value;
        }
        if state.unmasked != 0 {
            state.raise((row.raised)(values))?;
        }
        value = row.apply(values, &mut carry);
        if let Some((walk, bytes)) = &mut dest {
            state.memory.store(u64::from(walk.address()), *bytes, u64::from(value))?;
            walk.advance();
        }
    }
    Ok(value)
}

/// What is left when all elements are done: a pointer's value, registers that move on.
fn end(
    program: &LoadedProgram,
    state: &mut PeState,
    start: &VectorStart,
    value: u32,
) -> Result<(), CodeTrapKind> {
    let length = start.length.unwrap_or(0);
    if let Stream::Pointer { address } = start.dest
        && length > 0
    {
        store_pointer(state, start.op.row().dest, address, value)?;
    }
    for stream in std::iter::once(&start.dest).chain(&start.sources) {
        if let Stream::Memory(memory) = stream {
            save_address(program, state, memory, length);
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) fn run_naive(
    program: &LoadedProgram,
    state: &mut PeState,
    start: &VectorStart,
) -> Result<(), CodeTrapKind> {
    let value = naive(program, state, start)?;
    end(program, state, start, value)
}
