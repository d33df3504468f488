//! The code engines of `exec` and `jit` behind the scheduler's interface.

use std::sync::Arc;

use dflow_ir::loc::Loc;

use super::code::{Code, Element, Fifo, Pe};
use crate::exec::odd::Odd;
use crate::exec::{
    Block, CodeEngine, CodeTrapKind, Each, Entry, FifoCheck, LoadedProgram, PeState, Registers,
    Segment, SharedStart, VectorState,
};
use crate::profile::{During, Phases, Work};

/// Programs with their code, and the PEs' slot values.
pub(crate) struct Programs {
    /// By program.
    pub(crate) loaded: Vec<(Arc<LoadedProgram>, Arc<dyn CodeEngine>)>,
    /// Slot values of all PEs of a program, by program.
    pub(crate) slots: Vec<Vec<u64>>,
    /// Number of each PE among those of its program.
    pub(crate) rank: Vec<u32>,
    /// Who is told what the threads are doing.
    pub(crate) phases: Option<Arc<Phases>>,
}

impl Programs {
    fn program(&self, pe: Pe) -> &LoadedProgram {
        &self.loaded[usize::from(pe.program)].0
    }

    fn slots(&self, pe: Pe) -> &[u64] {
        let all = &self.slots[usize::from(pe.program)];
        if all.is_empty() {
            return &[];
        }
        let count = self.program(pe).program().slots.len();
        let start = self.rank[pe.number as usize] as usize * count;
        all.get(start..start + count).unwrap_or_default()
    }
}

impl Code for Programs {
    type State = PeState;
    type Op = VectorState;

    fn state(&self, pe: Pe) -> PeState {
        PeState::new(self.program(pe))
    }

    fn bytes(&self, pe: Pe) -> u64 {
        self.program(pe).state_bytes() as u64
    }

    fn fetch(&self, state: &PeState) {
        state.fetch();
    }

    fn table_bytes(&self) -> u64 {
        let slots: usize = self.slots.iter().map(|slots| size_of_val(&**slots)).sum();
        (slots + size_of_val(&*self.rank)) as u64
    }

    fn run(
        &self,
        pe: Pe,
        state: &mut PeState,
        entry: Entry<'_>,
        registers: &dyn Registers,
        out: &mut Segment,
    ) {
        let _tasks = During::new(self.phases.as_deref(), Work::Tasks);
        let (program, engine) = &self.loaded[usize::from(pe.program)];
        engine.run_with(program, state, self.slots(pe), entry, registers, out);
    }

    fn run_each(
        &self,
        pe: Pe,
        state: &mut PeState,
        each: Each<'_>,
        registers: &dyn Registers,
        out: &mut Segment,
    ) -> usize {
        let _tasks = During::new(self.phases.as_deref(), Work::Tasks);
        let (program, engine) = &self.loaded[usize::from(pe.program)];
        engine.run_each(program, state, self.slots(pe), each, registers, out)
    }

    fn begin(&self, pe: Pe, _: &mut PeState, start: SharedStart) -> VectorState {
        let _vectors = During::new(self.phases.as_deref(), Work::Vectors);
        VectorState::new(self.program(pe), start)
    }

    fn start(&self, op: &VectorState) -> SharedStart {
        op.shared_start()
    }

    fn fifo(&self, pe: Pe, state: &mut PeState, op: &VectorState) -> Fifo {
        match op.fifo_check(self.program(pe), state) {
            FifoCheck::Ready => Fifo::Ready,
            FifoCheck::Wait => Fifo::Wait,
            FifoCheck::End { complete } => Fifo::End { complete },
            FifoCheck::Fault => Fifo::Fault,
        }
    }

    fn is_plain(&self, op: &VectorState) -> bool {
        op.is_plain()
    }

    fn is_calm(&self, state: &PeState) -> bool {
        state.unmasked == 0
    }

    fn are_apart(&self, ops: &[&VectorState]) -> bool {
        VectorState::are_apart(ops)
    }

    fn is_done(&self, op: &VectorState) -> bool {
        op.is_done()
    }

    fn odd(&self, pe: Pe, state: &mut PeState, op: &VectorState, left: bool) -> Option<Odd> {
        if left {
            return op.odd(self.program(pe));
        }
        let byte = state.memory_mut().take_unwritten()?;
        self.program(pe).odd_read(byte)
    }

    fn progress(&self, op: &VectorState) -> (u32, Option<u32>) {
        (op.done(), op.start().length)
    }

    fn fifo_wait(&self, pe: Pe, state: &PeState, op: &VectorState) -> Option<(u16, bool)> {
        op.fifo_wait(self.program(pe), state)
    }

    fn element(
        &self,
        pe: Pe,
        state: &mut PeState,
        op: &mut VectorState,
        inputs: [u32; 2],
    ) -> Result<Element, CodeTrapKind> {
        let _vectors = During::new(self.phases.as_deref(), Work::Vectors);
        let stepped = op.step(self.program(pe), state, inputs)?;
        Ok(Element { output: stepped.output, activate: stepped.activate, left: stepped.left })
    }

    #[inline]
    fn plain(
        &self,
        pe: Pe,
        state: &mut PeState,
        op: &mut VectorState,
        inputs: [u32; 2],
    ) -> Result<(Option<u32>, bool), CodeTrapKind> {
        let _vectors = During::new(self.phases.as_deref(), Work::Vectors);
        if let Some(output) = op.quick(state, inputs) {
            return Ok((output?, op.is_done()));
        }
        let stepped = op.step(self.program(pe), state, inputs)?;
        Ok((stepped.output, op.is_done()))
    }

    fn block(
        &self,
        pe: Pe,
        state: &mut PeState,
        op: &mut VectorState,
        inputs: [&[u32]; 2],
        count: u32,
        out: &mut Vec<u32>,
    ) -> Block {
        let _vectors = During::new(self.phases.as_deref(), Work::Vectors);
        op.block(self.program(pe), state, inputs, count, out)
    }

    fn all_at_once(
        &self,
        pe: Pe,
        state: &mut PeState,
        start: &SharedStart,
        inputs: [&[u32]; 2],
        out: &mut Vec<u32>,
    ) -> bool {
        let _vectors = During::new(self.phases.as_deref(), Work::Vectors);
        start.all_at_once(self.program(pe), state, inputs, out)
    }

    fn finish(
        &self,
        pe: Pe,
        state: &mut PeState,
        op: &mut VectorState,
        complete: bool,
    ) -> Result<(), CodeTrapKind> {
        let _vectors = During::new(self.phases.as_deref(), Work::Vectors);
        op.finish(self.program(pe), state, complete).map(|_| ())
    }

    fn place(&self, pe: Pe, state: &PeState) -> Option<Loc> {
        self.program(pe).suspended_at(state.suspended_word()?)
    }

    fn read(&self, pe: Pe, state: &mut PeState, address: u32, bytes: u32) -> Option<Vec<u8>> {
        state.prepare(self.program(pe), self.slots(pe));
        let range = state.memory_mut().range(u64::from(address), u64::from(bytes));
        range.ok().map(|bytes| bytes.to_vec())
    }
}
