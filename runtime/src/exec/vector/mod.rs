//! Vector operations: from an instruction and a PE's state to done, or to something that runs.
//!
//! Invariants: an operation whose operands all lie in memory is done at once and equals the
//! naive loop over the row's kernel; any other becomes a [`SharedStart`], without an effect on
//! memory until its elements are stepped.

mod apart;
mod block;
mod dense;
mod element;
mod fast;
mod kernel;
mod known;
mod plan;
mod quick;
mod resolve;
mod running;
mod short;
mod site;
mod start;
mod walk;
mod whole;

pub use block::Block;
pub(crate) use known::{run as run_known, started};
pub(crate) use resolve::NO_TASK;
pub use running::{FifoCheck, Stepped, VectorState};
pub(crate) use site::{VectorSite, VectorSites, vectors_of};
pub use start::SharedStart;

use dflow_ir::cost::Slots;
use dflow_ir::inst::{FlagOp, Unblock, VectorInst};

use super::odd::{self, Odd};
use super::program::LoadedProgram;
use super::state::PeState;
use super::{ActKind, CodeTrapKind, Stream, VectorStart};
use crate::profile::Work;

/// Values of a vector instruction's locals, raw; zero where there is none. Generated code writes them in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct VectorArgs {
    /// Of the destination.
    pub(crate) dest: u64,
    /// Of the sources.
    pub(crate) sources: [u64; 3],
    /// Of `.index`, with settings that are known only now.
    pub(crate) index: u64,
}

impl VectorArgs {
    /// Reads the locals that the instruction names.
    pub(crate) fn read(
        inst: &VectorInst,
        mut local: impl FnMut(dflow_ir::func::Local) -> u64,
    ) -> VectorArgs {
        let mut args = VectorArgs::default();
        if let Some(dest) = inst.dest.local() {
            args.dest = local(dest);
        }
        for (value, source) in args.sources.iter_mut().zip(&inst.sources) {
            if let Some(source) = source.local() {
                *value = local(source);
            }
        }
        if let Some(index) = inst.options.index {
            args.index = local(index);
        }
        args
    }
}

/// What issuing a vector operation gave.
pub(crate) enum Issued {
    /// It is done and took this many slots beyond its start-up. It is not complete if a register
    /// that is stepped through has no element left. Its end may start or unblock something, in its last slot.
    Done { slots: Slots, complete: bool, end: Option<ActKind> },
    /// Others can see it.
    Starts(SharedStart),
}

/// What was odd about it, beside.
pub(crate) type IssuedOdd = (Issued, Option<Odd>);

/// Issues a vector operation. The start-up cost is the instruction's static cost.
pub(crate) fn issue(
    program: &LoadedProgram,
    state: &mut PeState,
    site: &VectorSite,
    args: &VectorArgs,
) -> Result<IssuedOdd, CodeTrapKind> {
    if let Some(slots) = known::run(program, state, site, args) {
        return Ok((Issued::Done { slots: slots?, complete: true, end: None }, None));
    }
    match known::started(program, site, args) {
        Some(start) => Ok((Issued::Starts(start), None)),
        None => issue_new(program, state, site, args),
    }
}

/// The same for one of which nothing is known from before.
pub(crate) fn issue_new(
    program: &LoadedProgram,
    state: &mut PeState,
    site: &VectorSite,
    args: &VectorArgs,
) -> Result<IssuedOdd, CodeTrapKind> {
    let inst = &site.inst;
    let Some(start) = resolve::resolve(program, state, inst, args, site.loc)? else {
        return Ok((Issued::Done { slots: Slots::default(), complete: false, end: None }, None));
    };
    resolve::step_registers(state, inst);
    let waits = |stream: &Stream| match stream {
        Stream::Input { .. } | Stream::Output { .. } | Stream::Fifo { .. } => true,
        Stream::None | Stream::Memory(_) | Stream::Scalar(_) | Stream::Pointer { .. } => false,
    };
    if start.asynchronous || waits(&start.dest) || start.sources.iter().any(waits) {
        // It is odd when an element gets there.
        let start = known::share(program, inst, args, start);
        return Ok((Issued::Starts(start), None));
    }
    let odd = odd::leaves(program, &start);
    let _vectors = program.during(Work::Vectors, Work::Tasks);
    let slots = whole::run(program, state, &start)?;
    Ok((Issued::Done { slots, complete: true, end: end_of(&start) }, odd))
}

/// What the end of an operation on memory alone does to tasks and channels.
fn end_of(start: &VectorStart) -> Option<ActKind> {
    let (op, id) = match (start.activate, start.unblock) {
        (Some(id), _) => (FlagOp::Activate, id),
        (None, Some(Unblock::Task(id))) => (FlagOp::UnblockTask, id),
        (None, Some(Unblock::Channel(id))) => (FlagOp::UnblockChannel, id),
        (None, None) => return None,
    };
    Some(ActKind::Flag { op, id: id.into() })
}

#[cfg(test)]
mod tests;
