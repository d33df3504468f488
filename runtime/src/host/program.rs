//! Runs a host program on a code engine and carries out what it asks for.
//!
//! Invariants: outputs are handed over only when the program has ended well; the program's
//! memory is its own, nothing it holds is trusted.

use dflow_ir::func::Func;
use dflow_ir::inst::InstData;
use dflow_ir::loc::Loc;
use dflow_ir::program::{HostOp, Profile};

use super::env::{HostEnv, Output};
use super::session::Session;
use super::stream::StreamId;
use super::{Failure, HostError, Mesh};
use crate::config::Limit;
use crate::exec::{
    CodeEngine, Entry, HostCall, LoadedProgram, PeState, Segment, Stop, finish_host_call,
};

/// Alignment of what a host program allocates.
const ALIGN: u64 = 64;

/// How a host program ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOutcome {
    /// At its end; outputs have been handed over.
    Done,
    /// At an expectation that does not hold; nothing has been handed over.
    Failed {
        /// The message of the expectation.
        message: String,
        /// Where it stands.
        loc: Loc,
    },
}

/// A host program, running.
pub(super) struct Host<'a, M> {
    pub(super) program: &'a LoadedProgram,
    pub(super) state: PeState,
    pub(super) session: &'a mut Session<M>,
    pub(super) env: &'a mut dyn HostEnv,
    pub(super) outputs: Vec<Output>,
    /// Where receptions go when they are complete.
    pub(super) targets: Vec<(StreamId, Target)>,
    /// First free byte.
    heap: u64,
    /// Bytes that outputs and receptions have taken so far.
    kept: u64,
}

/// Where a complete reception goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// All rows one after the other.
    Rows { ptr: u64 },
    /// Row `r` at `ptr + r * stride`, its number of elements (of `size` bytes) at `counts + 8 r`.
    Counted { ptr: u64, stride: u64, counts: u64, size: u64 },
}

/// Runs a host program to its end.
///
/// # Errors
/// The program asks for what cannot be done, does what is forbidden, or the run of the mesh fails.
pub fn run_program<M: Mesh>(
    program: &LoadedProgram,
    engine: &dyn CodeEngine,
    session: &mut Session<M>,
    env: &mut dyn HostEnv,
) -> Result<HostOutcome, Failure> {
    let outcome = converse(program, engine, session, env);
    session.printed().iter().for_each(|line| env.printed(line));
    outcome
}

fn converse<M: Mesh>(
    program: &LoadedProgram,
    engine: &dyn CodeEngine,
    session: &mut Session<M>,
    env: &mut dyn HostEnv,
) -> Result<HostOutcome, Failure> {
    let entry = program.program().entry;
    let entry = entry.filter(|_| program.program().profile == Profile::Host);
    let func = entry.ok_or(HostError::Program("it has no entry"))?;
    if program.stack().1 > program.memory_limit() {
        return Err(Failure::Limit(Limit::Memory));
    }
    let mut state = PeState::new(program);
    state.prepare(program, &[]);
    let heap = program.stack().1.next_multiple_of(ALIGN);
    // What is behind all that was asked for is nobody's.
    state.memory_mut().set_limit(heap);
    let (outputs, targets) = (Vec::new(), Vec::new());
    let mut host = Host { program, state, session, env, outputs, targets, heap, kept: 0 };
    let mut segment = Segment::default();
    engine.run(program, &mut host.state, &[], Entry::Start { func, args: &[] }, &mut segment);
    loop {
        match std::mem::replace(&mut segment.stop, Stop::Return) {
            Stop::Return => return host.end(),
            Stop::Yield => {
                if let Some(limit) = host.session.limits().outside() {
                    return Err(Failure::Limit(limit));
                }
            }
            Stop::Host(call) => {
                if let Some(limit) = host.session.limits().outside() {
                    return Err(Failure::Limit(limit));
                }
                let failed = host.perform(&call)?;
                host.session.printed().iter().for_each(|line| host.env.printed(line));
                if let Some(failed) = failed {
                    return Ok(failed);
                }
                if host.held() > program.memory_limit() {
                    return Err(Failure::Limit(Limit::Memory));
                }
            }
            Stop::Trap(trap) => return Err(Failure::HostTrap(trap)),
            Stop::Vector(_) | Stop::Clock(_) | Stop::Config(_) | Stop::Queues(_) => {
                return Err(HostError::Program("it does what only PEs do").into());
            }
        }
        engine.run(program, &mut host.state, &[], Entry::Resume { value: 0 }, &mut segment);
    }
}

impl<M: Mesh> Host<'_, M> {
    fn end(self) -> Result<HostOutcome, Failure> {
        self.session.finish()?;
        for output in self.outputs {
            let name = output.name.clone();
            let failed = |reason| HostError::Output { name, reason };
            self.env.output(output).map_err(failed)?;
        }
        Ok(HostOutcome::Done)
    }

    /// Carries out a host operation; gives the outcome if that ends the program.
    fn perform(&mut self, call: &HostCall) -> Result<Option<HostOutcome>, Failure> {
        let program = self.program;
        let invalid = || HostError::Program("it asks for no host operation");
        let func: &Func = program.program().funcs.get(call.func).ok_or_else(invalid)?;
        let inst = func.insts.get(call.inst).ok_or_else(invalid)?;
        let InstData::Host { op, dsts: _, args } = inst else { return Err(invalid().into()) };
        let loc = func.locs[call.inst];
        let format = |host: &Self, pieces: &[String], kinds: &[_], skip: usize| {
            let locals = args.get(skip..).unwrap_or_default();
            let raws = call.args.get(skip..).unwrap_or_default();
            let text = |ptr, len| host.text(ptr, len);
            super::format::format(pieces, kinds, func, locals, raws, text)
        };
        let values = match op {
            HostOp::Print { pieces, args: kinds } => {
                let line = format(self, pieces, kinds, 0);
                self.env.print(&line);
                Vec::new()
            }
            HostOp::Expect { pieces, args: kinds } => {
                if call.args.first().is_none_or(|&held| held & 0xff == 0) {
                    let message = format(self, pieces, kinds, 1);
                    return Ok(Some(HostOutcome::Failed { message, loc }));
                }
                Vec::new()
            }
            _ => self.call(op, &call.args).map_err(|failure| failure.at(loc))?,
        };
        finish_host_call(program, &mut self.state, call, &values);
        Ok(None)
    }

    /// A string of the program's memory; what lies outside is left away.
    fn text(&self, ptr: u64, len: u64) -> String {
        let bytes = self.state.memory().bytes();
        let start = usize::try_from(ptr).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(usize::try_from(len).unwrap_or(0)).min(bytes.len());
        String::from_utf8_lossy(&bytes[start..end]).into_owned()
    }

    /// Zeroed memory of the program, aligned.
    pub(super) fn alloc(&mut self, bytes: u64) -> Result<u64, HostError> {
        let start = self.heap;
        let end = start.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGN));
        let end = end.filter(|&end| self.held_with(end) <= self.program.memory_limit());
        let end = end.ok_or(HostError::Memory { bytes })?;
        let memory = self.state.memory_mut();
        memory.set_limit(end);
        memory.ensure(start, bytes).map_err(|_| HostError::Memory { bytes })?;
        self.heap = end;
        Ok(start)
    }

    /// Bytes of the program and of what is kept for it.
    fn held(&self) -> u64 {
        self.held_with(self.heap)
    }

    /// Likewise, if its own memory ends at `heap`.
    fn held_with(&self, heap: u64) -> u64 {
        heap.saturating_add(self.kept).saturating_add(self.env.kept())
    }

    /// Counts bytes that a request keeps outside of the program's memory: one limit holds for both.
    pub(super) fn keep(&mut self, bytes: u64) -> Result<(), HostError> {
        /// What the request itself takes, roughly.
        const REQUEST: u64 = 256;
        self.kept = self.kept.saturating_add(bytes).saturating_add(REQUEST);
        if self.held() > self.program.memory_limit() {
            Err(HostError::Memory { bytes })
        } else {
            Ok(())
        }
    }

    /// Puts bytes into memory of their own; gives pointer and number of elements.
    pub(super) fn give(&mut self, bytes: &[u8], size: u64) -> Result<Vec<u64>, HostError> {
        let ptr = self.alloc(bytes.len() as u64)?;
        self.write(ptr, bytes);
        Ok(vec![ptr, bytes.len() as u64 / size])
    }

    /// Writes bytes to memory that has been checked.
    pub(super) fn write(&mut self, ptr: u64, bytes: &[u8]) {
        if let Ok(range) = self.state.memory_mut().range(ptr, bytes.len() as u64) {
            range.copy_from_slice(bytes);
        }
    }

    /// A slice of `len` elements of `size` bytes, as a range of memory that is there.
    pub(super) fn slice(&mut self, ptr: u64, len: u64, size: u64) -> Result<&mut [u8], HostError> {
        let outside = || HostError::Slice { ptr, len: len as i64 };
        let bytes = if (len as i64) < 0 { None } else { len.checked_mul(size) };
        let bytes = bytes.ok_or_else(outside)?;
        let used = self.heap;
        let end = ptr.checked_add(bytes).filter(|&end| end <= used);
        end.ok_or_else(outside)?;
        self.state.memory_mut().range(ptr, bytes).map_err(|_| outside())
    }
}
