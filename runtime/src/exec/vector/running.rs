//! A vector operation that runs element by element: what the scheduler steps.
//!
//! Invariants: one element per step; memory and FIFOs change only in [`VectorState::step`] and
//! [`VectorState::finish`]; the caller steps only when the inputs have a word, the output has
//! room and [`VectorState::fifo_check`] says ready.

use dflow_ir::dsd::op::{DsdOp, OpRow, OpShape};
use dflow_ir::inst::{OnControl, Priority, Unblock};
use dflow_ir::loc::Loc;
use dflow_ir::program::{Fifo, FifoAction, FifoId};
use dflow_ir::ty::Ty;

use super::element::PlainElement;
use super::plan::Line;
use super::start::{Fresh, SharedStart};
use super::walk::Walk;
use crate::exec::odd::{self, Odd};
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
    /// Not now: the operation ends early ([`VectorState::finish`] with `false`), and says that it
    /// is `complete` or not.
    End { complete: bool },
    /// Never: the FIFO is not to be found full or empty.
    Fault,
}

/// What one element did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stepped {
    /// Payload for the output queue.
    pub output: Option<u32>,
    /// Local tasks that FIFOs activate (pop, push).
    pub activate: [Option<u8>; 2],
    /// An operand has left the variable that it began in, for the first time.
    pub left: bool,
}

/// A running vector operation.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorState {
    pub(super) start: SharedStart,
    /// Destination, then sources; none while `plain` stands for them.
    pub(super) walks: Option<Box<[Walk; 4]>>,
    pub(super) done: u32,
    pub(super) carry: u32,
    /// Last value, or the accumulator of a reduction.
    pub(super) value: u32,
    pub(super) reduces: bool,
    /// An operand would leave its variable if all elements were done, and has not yet.
    pub(super) may_leave: bool,
    /// How its elements are done, if it is plain.
    pub(super) plain: Option<PlainElement>,
}

impl VectorState {
    /// The operation before its first element.
    pub fn new(program: &LoadedProgram, start: impl Into<SharedStart>) -> VectorState {
        let start = start.into();
        let Fresh { walks, value, reduces, may_leave, plain, .. } = start.fresh(program);
        let walks = if plain.is_some() { None } else { Some(Box::new(*walks)) };
        let (value, reduces, may_leave, plain) = (*value, *reduces, *may_leave, *plain);
        VectorState { start, walks, done: 0, carry: 0, value, reduces, may_leave, plain }
    }

    /// What was started.
    pub fn start(&self) -> &VectorStart {
        &self.start
    }

    /// What was started, to start it again.
    pub(crate) fn shared_start(&self) -> SharedStart {
        self.start.clone()
    }

    /// Input queues that each element takes a word from; the place is the index into
    /// [`VectorState::step`]'s inputs.
    pub fn inputs(&self) -> [Option<u8>; 2] {
        let mut queues = [None; 2];
        let mut next = 0;
        for source in &self.start.sources {
            if let Stream::Input { queue, .. } = source
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

    /// Issue priority, if it names one.
    pub fn priority(&self) -> Option<Priority> {
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
        let count = self.in_next_step() as u16;
        for source in &self.start.sources {
            if let Stream::Fifo { fifo } = *source {
                let pops = count * self.pops(fifo);
                let held = &mut state.fifos[usize::from(fifo)];
                if held.len < pops {
                    held.hit_empty = true;
                    return self.blocked(fifo_data(program, fifo).0.empty);
                }
            }
        }
        if let Stream::Fifo { fifo } = self.start.dest {
            let (data, _) = fifo_data(program, fifo);
            let held = &mut state.fifos[usize::from(fifo)];
            if data.capacity - held.len.min(data.capacity) < count {
                held.hit_full = true;
                return self.blocked(data.full);
            }
        }
        FifoCheck::Ready
    }

    /// The FIFO that does not admit the next element, and whether it is full.
    pub(crate) fn fifo_wait(
        &self,
        program: &LoadedProgram,
        state: &PeState,
    ) -> Option<(u16, bool)> {
        let count = self.in_next_step() as u16;
        let held = |fifo: u16| state.fifos.get(usize::from(fifo)).map_or(0, |held| held.len);
        let empty = self.start.sources.iter().find_map(|source| match *source {
            Stream::Fifo { fifo } if held(fifo) < count * self.pops(fifo) => Some((fifo, false)),
            Stream::Fifo { .. }
            | Stream::None
            | Stream::Memory(_)
            | Stream::Input { .. }
            | Stream::Output { .. }
            | Stream::Scalar(_)
            | Stream::Pointer { .. } => None,
        });
        let Stream::Fifo { fifo } = self.start.dest else { return empty };
        let capacity = fifo_data(program, fifo).0.capacity;
        let full = capacity.saturating_sub(held(fifo)) < count;
        empty.or_else(|| full.then_some((fifo, true)))
    }

    /// Elements of a FIFO that one element of the operation takes: two if both sources are it.
    fn pops(&self, fifo: u16) -> u16 {
        let same = |source: &&Stream| **source == Stream::Fifo { fifo };
        self.start.sources.iter().filter(same).count() as u16
    }

    fn blocked(&self, action: FifoAction) -> FifoCheck {
        match action {
            FifoAction::TestOrSuspend if self.start.asynchronous => FifoCheck::Wait,
            FifoAction::TestOrSuspend => FifoCheck::End { complete: false },
            FifoAction::Terminate => FifoCheck::End { complete: true },
            FifoAction::Suspend => FifoCheck::Wait,
            FifoAction::Fault => FifoCheck::Fault,
        }
    }

    /// Elements that the next step does: two if they share wavelets, but for an odd last one.
    fn in_next_step(&self) -> u32 {
        let left = self.start.length.map_or(2, |length| length.saturating_sub(self.done));
        if self.start.packed { left.min(2) } else { 1 }
    }

    /// Does what one wavelet holds; `inputs` are the payloads taken from [`VectorState::inputs`].
    ///
    /// # Errors
    /// An element lies outside the PE's memory.
    pub fn step(
        &mut self,
        program: &LoadedProgram,
        state: &mut PeState,
        inputs: [u32; 2],
    ) -> Result<Stepped, CodeTrapKind> {
        let mut stepped = Stepped::default();
        if state.unmasked != 0 {
            self.slow_down(program);
        }
        if let Some(plain) = &mut self.plain {
            stepped.output = plain.step(state, inputs)?;
            self.done = self.done.wrapping_add(1);
            return Ok(stepped);
        }
        if self.in_next_step() < 2 {
            self.element(program, state, inputs, &mut stepped)?;
            return Ok(stepped);
        }
        self.element(program, state, inputs, &mut stepped)?;
        let low = stepped.output.take();
        self.element(program, state, inputs.map(|payload| payload >> 16), &mut stepped)?;
        if let (Some(low), Some(high)) = (low, stepped.output) {
            stepped.output = Some(low & 0xffff | high << 16);
        }
        Ok(stepped)
    }

    /// A step the short way, if there is one.
    #[inline]
    pub(crate) fn quick(
        &mut self,
        state: &mut PeState,
        inputs: [u32; 2],
    ) -> Option<Result<Option<u32>, CodeTrapKind>> {
        let plain = self.plain.as_mut().filter(|_| state.unmasked == 0)?;
        let output = plain.step(state, inputs);
        self.done = self.done.wrapping_add(u32::from(output.is_ok()));
        Some(output)
    }

    /// The last value and the carry.
    pub(super) fn last(&self) -> (u32, u32) {
        self.plain.as_ref().map_or((self.value, self.carry), |plain| (plain.value, plain.carry))
    }

    /// Whether its elements are done the short way.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain.is_some()
    }

    /// Has the general step do the rest.
    pub(super) fn slow_down(&mut self, program: &LoadedProgram) {
        let Some(plain) = self.plain.take() else { return };
        (self.carry, self.value) = (plain.carry, plain.value);
        let mut walks = self.start.fresh(program).walks;
        walks.iter_mut().for_each(|walk| walk.skip(self.done as u16));
        self.walks = Some(Box::new(walks));
    }

    /// What it is if an operand leaves its variable.
    pub(crate) fn odd(&self, program: &LoadedProgram) -> Option<Odd> {
        odd::leaves(program, &self.start)
    }

    /// Whether the next element of an operand lies outside of the variable that it began in.
    fn has_left(&self, program: &LoadedProgram) -> bool {
        let streams = std::iter::once(&self.start.dest).chain(&self.start.sources);
        let walks = self.walks.iter().flat_map(|walks| walks.iter());
        streams.zip(walks).any(|(stream, walk)| match stream {
            Stream::Memory(memory) => odd::is_outside(program, memory, walk.address()),
            Stream::None
            | Stream::Input { .. }
            | Stream::Output { .. }
            | Stream::Fifo { .. }
            | Stream::Scalar(_)
            | Stream::Pointer { .. } => false,
        })
    }

    /// The next elements of an operand in memory, if every step is the same.
    pub(super) fn line(&self, operand: usize, element: u8) -> Option<Line> {
        match (&self.plain, &self.walks) {
            (Some(plain), _) => plain.line(operand),
            (None, Some(walks)) => walks[operand].line(element),
            (None, None) => None,
        }
    }

    /// Does one element.
    fn element(
        &mut self,
        program: &LoadedProgram,
        state: &mut PeState,
        inputs: [u32; 2],
        stepped: &mut Stepped,
    ) -> Result<(), CodeTrapKind> {
        if self.may_leave && self.has_left(program) {
            (self.may_leave, stepped.left) = (false, true);
        }
        let row = self.start.op.row();
        let mut values = [0; 3];
        let mut input = 0;
        for (at, source) in self.start.sources.iter().enumerate() {
            values[at] = match *source {
                Stream::None | Stream::Output { .. } | Stream::Pointer { .. } => 0,
                Stream::Scalar(value) => value,
                Stream::Memory(memory) => {
                    let address = next_address(&mut self.walks, at + 1);
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
                    stepped.activate[0] = stepped.activate[0].or(activate);
                    value
                }
            };
        }
        if self.reduces {
            values[0] = self.value;
        }
        if state.unmasked != 0 {
            state.raise((row.raised)(values))?;
        }
        self.value = row.apply(values, &mut self.carry);
        self.done = self.done.wrapping_add(1);
        self.put(program, state, row, stepped)
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
                let address = next_address(&mut self.walks, 0);
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
                let activate = held.push(data, buffer, &mut state.memory, self.value)?;
                stepped.activate[1] = stepped.activate[1].or(activate);
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
        if complete && self.start.fresh(program).leaves_nothing {
            return Ok(1);
        }
        if let Stream::Pointer { address } = self.start.dest
            && complete
            && self.start.on_control != OnControl::Count
        {
            store_pointer(state, self.start.op.row().dest, address, self.value)?;
        }
        if let Some(at) = self.start.zero
            && let Stream::Memory(memory) = self.start.sources[usize::from(at)]
        {
            self.clear(program, state, &memory)?;
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

    /// Writes zeros over what was read of a source.
    fn clear(
        &self,
        program: &LoadedProgram,
        state: &mut PeState,
        memory: &MemoryStream,
    ) -> Result<(), CodeTrapKind> {
        let mut walk = Walk::of(program, memory);
        for _ in 0..self.done {
            state.memory.store(u64::from(walk.address()), u32::from(memory.element), 0)?;
            walk.advance();
        }
        Ok(())
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

/// Address of the next element of an operand, which moves on.
fn next_address(walks: &mut Option<Box<[Walk; 4]>>, operand: usize) -> u64 {
    debug_assert!(walks.is_some(), "they are there while the general step does the elements");
    let Some(walks) = walks else { return 0 };
    let address = walks[operand].address();
    walks[operand].advance();
    address.into()
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
    let mut walk = Walk::of(program, &MemoryStream { dsd: dsr.dsd, moved: dsr.moved, ..*memory });
    if walk.linear().is_some() {
        walk.skip(done as u16);
    } else {
        for _ in 0..done {
            walk.advance();
        }
    }
    match walk.moved() {
        Some(moved) => dsr.moved = moved,
        None => (dsr.dsd, dsr.moved) = (dsr.dsd.with_base(walk.address()), 0),
    }
    state.store_dsr(at, dsr);
}

fn fifo_data(program: &LoadedProgram, fifo: u16) -> (&Fifo, u32) {
    let data = &program.program().fifos[FifoId::from_u32(u32::from(fifo))];
    (data, program.address(data.buffer))
}
