//! A vector operation that runs element by element: what the scheduler steps.
//!
//! Invariants: one element per step; memory and FIFOs change only in [`VectorState::step`] and
//! [`VectorState::finish`]; the caller steps only when the inputs have a word, the output has
//! room and [`VectorState::fifo_check`] says ready.

use dflow_ir::dsd::op::{DsdOp, OpRow, OpShape};
use dflow_ir::inst::{OnControl, Priority, Unblock};
use dflow_ir::loc::Loc;
use dflow_ir::program::{Fifo, FifoId};
use dflow_ir::ty::Ty;

use super::walk::Walk;
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;
use crate::exec::{CodeTrapKind, MemoryStream, Stream, VectorStart};

/// Whether the FIFOs of an operation let its next element happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FifoCheck {
    /// Yes, or there is no FIFO.
    Ready,
    /// Not now: an asynchronous operation waits.
    Wait,
    /// Not now: a synchronous operation ends early ([`VectorState::finish`] with `false`).
    End,
}

/// What one element did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// Payload for the output queue.
    pub output: Option<u32>,
    /// Local tasks that FIFOs activate (pop, push).
    pub activate: [Option<u8>; 2],
}

/// A running vector operation.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorState {
    start: VectorStart,
    /// Destination, then sources.
    walks: [Walk; 4],
    done: u32,
    carry: u32,
    /// Last value, or the accumulator of a reduction.
    value: u32,
    reduces: bool,
}

impl VectorState {
    /// The operation before its first element.
    pub fn new(program: &LoadedProgram, start: VectorStart) -> VectorState {
        let walk = |stream: &Stream| match stream {
            Stream::Memory(memory) => Walk::new(program, memory.dsd, memory.element),
            Stream::None
            | Stream::Input { .. }
            | Stream::Output { .. }
            | Stream::Fifo { .. }
            | Stream::Scalar(_)
            | Stream::Pointer { .. } => Walk::default(),
        };
        let [first, second, third] = start.sources;
        let walks = [walk(&start.dest), walk(&first), walk(&second), walk(&third)];
        let (value, reduces) = match reduction(&start) {
            Some(seed) => (seed, true),
            None => (0, false),
        };
        VectorState { start, walks, done: 0, carry: 0, value, reduces }
    }

    /// What was started.
    pub fn start(&self) -> &VectorStart {
        &self.start
    }

    /// Input queues that each element takes a word from; the place is the index into
    /// [`VectorState::step`]'s inputs.
    pub fn inputs(&self) -> [Option<u8>; 2] {
        let mut queues = [None; 2];
        let mut next = 0;
        for source in &self.start.sources {
            if let Stream::Input { queue, color: _ } = source
                && next < 2
            {
                queues[next] = Some(*queue);
                next += 1;
            }
        }
        queues
    }

    /// Output queue that each element puts a word into.
    pub fn output(&self) -> Option<u8> {
        match self.start.dest {
            Stream::Output { queue, .. } => Some(queue),
            Stream::None
            | Stream::Memory(_)
            | Stream::Input { .. }
            | Stream::Fifo { .. }
            | Stream::Scalar(_)
            | Stream::Pointer { .. } => None,
        }
    }

    /// Elements done.
    pub fn done(&self) -> u32 {
        self.done
    }

    /// Whether all elements are done; true from the start if there are none.
    pub fn is_done(&self) -> bool {
        self.start.length == Some(self.done)
    }

    /// Row of the operation table.
    pub fn op(&self) -> DsdOp {
        self.start.op
    }

    /// Issue priority.
    pub fn priority(&self) -> Priority {
        self.start.priority
    }

    /// What a control wavelet on the input does.
    pub fn on_control(&self) -> OnControl {
        self.start.on_control
    }

    /// Local task activated on completion.
    pub fn activate(&self) -> Option<u8> {
        self.start.activate
    }

    /// Unblocked on completion.
    pub fn unblock(&self) -> Option<Unblock> {
        self.start.unblock
    }

    /// Where in the source.
    pub fn loc(&self) -> Loc {
        self.start.loc
    }

    /// Whether the FIFOs admit the next element. A FIFO found empty or full remembers it.
    pub fn fifo_check(&self, program: &LoadedProgram, state: &mut PeState) -> FifoCheck {
        let blocked = if self.start.asynchronous { FifoCheck::Wait } else { FifoCheck::End };
        for source in &self.start.sources {
            if let Stream::Fifo { fifo } = *source {
                let held = &mut state.fifos[usize::from(fifo)];
                if held.len == 0 {
                    held.hit_empty = true;
                    return blocked;
                }
            }
        }
        if let Stream::Fifo { fifo } = self.start.dest {
            let (data, _) = fifo_data(program, fifo);
            let held = &mut state.fifos[usize::from(fifo)];
            if held.len >= data.capacity {
                held.hit_full = true;
                return blocked;
            }
        }
        FifoCheck::Ready
    }

    /// Does one element; `inputs` are the payloads taken from [`VectorState::inputs`].
    ///
    /// # Errors
    /// An element lies outside the PE's memory.
    pub fn step(
        &mut self,
        program: &LoadedProgram,
        state: &mut PeState,
        inputs: [u32; 2],
    ) -> Result<Stepped, CodeTrapKind> {
        let row = self.start.op.row();
        let mut stepped = Stepped::default();
        let mut values = [0; 3];
        let mut input = 0;
        for (at, source) in self.start.sources.iter().enumerate() {
            values[at] = match *source {
                Stream::None | Stream::Output { .. } | Stream::Pointer { .. } => 0,
                Stream::Scalar(value) => value,
                Stream::Memory(memory) => {
                    let walk = &mut self.walks[at + 1];
                    let address = u64::from(walk.address());
                    walk.advance();
                    state.memory.load(address, u32::from(memory.element))? as u32
                }
                Stream::Input { .. } => {
                    input += 1;
                    row.sources[at].mask(u64::from(inputs[input - 1])) as u32
                }
                Stream::Fifo { fifo } => {
                    let (data, buffer) = fifo_data(program, fifo);
                    let held = &mut state.fifos[usize::from(fifo)];
                    let (value, activate) = held.pop(data, buffer, &mut state.memory)?;
                    stepped.activate[0] = activate;
                    value
                }
            };
        }
        if self.reduces {
            values[0] = self.value;
        }
        self.value = row.apply(values, &mut self.carry);
        self.done = self.done.wrapping_add(1);
        self.put(program, state, row, &mut stepped)?;
        Ok(stepped)
    }

    fn put(
        &mut self,
        program: &LoadedProgram,
        state: &mut PeState,
        row: &OpRow,
        stepped: &mut Stepped,
    ) -> Result<(), CodeTrapKind> {
        match self.start.dest {
            Stream::Memory(memory) => {
                let address = u64::from(self.walks[0].address());
                self.walks[0].advance();
                let bytes = u32::from(memory.element);
                state.memory.store(address, bytes, u64::from(self.value))?;
            }
            Stream::Output { index, .. } => {
                let narrow = row.dest.bytes() == 2;
                let upper = if narrow { u32::from(index) << 16 } else { 0 };
                stepped.output = Some(self.value | upper);
            }
            Stream::Fifo { fifo } => {
                let (data, buffer) = fifo_data(program, fifo);
                let held = &mut state.fifos[usize::from(fifo)];
                stepped.activate[1] = held.push(data, buffer, &mut state.memory, self.value)?;
            }
            Stream::None | Stream::Input { .. } | Stream::Scalar(_) | Stream::Pointer { .. } => {}
        }
        Ok(())
    }

    /// Ends the operation: stores a pointer's value, moves registers past what was covered, and
    /// gives the value to resume with: `complete`, whether it ran to its end.
    ///
    /// # Errors
    /// The pointer leads outside the PE's memory.
    pub fn finish(
        &self,
        program: &LoadedProgram,
        state: &mut PeState,
        complete: bool,
    ) -> Result<u64, CodeTrapKind> {
        if let Stream::Pointer { address } = self.start.dest
            && complete
        {
            store_pointer(state, self.start.op.row().dest, address, self.value)?;
        }
        for stream in std::iter::once(&self.start.dest).chain(&self.start.sources) {
            if let Stream::Memory(memory) = stream {
                save_address(program, state, memory, self.done);
            }
        }
        if !complete && let Some(length) = self.start.length {
            self.keep_rest(state, length.saturating_sub(self.done) as u16);
        }
        Ok(u64::from(complete))
    }

    /// After an early end, a FIFO side that had a length keeps the rest.
    fn keep_rest(&self, state: &mut PeState, rest: u16) {
        if let Stream::Fifo { fifo } = self.start.dest {
            let held = &mut state.fifos[usize::from(fifo)];
            if held.write_length != 0 {
                held.write_length = rest;
            }
        }
        for source in &self.start.sources {
            if let Stream::Fifo { fifo } = *source {
                let held = &mut state.fifos[usize::from(fifo)];
                if held.read_length != 0 {
                    held.read_length = rest;
                }
            }
        }
    }
}

/// The accumulator's first value, if the operation is a reduction.
pub(super) fn reduction(start: &VectorStart) -> Option<u32> {
    match (start.op.row().shape, start.dest, start.sources[0]) {
        (OpShape::Reduce, Stream::Pointer { .. }, Stream::Scalar(seed)) => Some(seed),
        _ => None,
    }
}

pub(super) fn store_pointer(
    state: &mut PeState,
    ty: Ty,
    address: u16,
    value: u32,
) -> Result<(), CodeTrapKind> {
    state.memory.store(u64::from(address), ty.bytes(), u64::from(value))
}

/// Moves a register that saves its address past `done` elements: whole outermost steps for a
/// descriptor of several dimensions.
pub(super) fn save_address(
    program: &LoadedProgram,
    state: &mut PeState,
    memory: &MemoryStream,
    done: u32,
) {
    let Some(at) = memory.save else {
        return;
    };
    let mut dsr = state.dsr(at);
    let mut walk = Walk::new(program, dsr.dsd, memory.element);
    if walk.linear().is_some() {
        walk.skip(done as u16);
    } else {
        for _ in 0..done {
            walk.advance();
        }
    }
    dsr.dsd = dsr.dsd.with_base(walk.address());
    state.load_dsr(at, dsr);
}

fn fifo_data(program: &LoadedProgram, fifo: u16) -> (&Fifo, u32) {
    let data = &program.program().fifos[FifoId::from_u32(u32::from(fifo))];
    (data, program.address(data.buffer))
}
