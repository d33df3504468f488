//! Memory-only vector operations, done at once.

use super::plan::{Dest, FEW, Place, Plan};
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
    let mut plan = plan(program, start);
    let plain = plan.length >= FEW && state.unmasked == 0 && !state.memory.is_tracked();
    if plain && plan.may_chunk(state.memory.bytes().len()) {
        plan.fast(state.memory.bytes_mut());
    } else {
        plan.naive(state)?;
    }
    end(program, state, start, &plan)?;
    let in_memory = start.sources.map(|source| matches!(source, Stream::Memory(_)));
    let rate = plan.row.elements_per_slot(program.target(), in_memory);
    Ok(plan.length.div_ceil(rate))
}

/// All elements of an operation on memory.
fn plan(program: &LoadedProgram, start: &VectorStart) -> Plan<'static> {
    let seed = reduction(start);
    let place = |stream: &Stream| match stream {
        Stream::Memory(memory) => {
            Place::Memory { walk: Walk::of(program, memory), bytes: memory.element }
        }
        Stream::Scalar(value) => Place::Value(*value),
        Stream::None
        | Stream::Input { .. }
        | Stream::Output { .. }
        | Stream::Fifo { .. }
        | Stream::Pointer { .. } => Place::Value(0),
    };
    let dest = match place(&start.dest) {
        Place::Memory { walk, bytes } => Dest::Memory { walk, bytes },
        Place::Value(_) | Place::Words(_) => Dest::None,
    };
    let [first, second, third] = &start.sources;
    Plan {
        row: start.op.row(),
        op: start.op.0,
        dest,
        sources: [place(first), place(second), place(third)],
        length: start.length.unwrap_or(0),
        value: seed.unwrap_or(0),
        carry: 0,
        reduces: seed.is_some(),
    }
}

/// What is left when all elements are done: a pointer's value, registers that move on.
fn end(
    program: &LoadedProgram,
    state: &mut PeState,
    start: &VectorStart,
    plan: &Plan<'_>,
) -> Result<(), CodeTrapKind> {
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

#[cfg(test)]
pub(super) fn run_naive(
    program: &LoadedProgram,
    state: &mut PeState,
    start: &VectorStart,
) -> Result<(), CodeTrapKind> {
    let mut plan = plan(program, start);
    plan.naive(state)?;
    end(program, state, start, &plan)
}
