//! Many steps of a vector operation at once: of a running one, or all of one.
//!
//! Invariant: memory, registers, FIFOs, results and what is told are those of as many calls of
//! [`VectorState::step`], bit by bit.

use super::plan::{Dest, FEW, Place, Plan};
use super::running::VectorState;
use super::start::SharedStart;
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;
use crate::exec::{CodeTrapKind, Stream};

/// What a block of steps gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Steps done.
    pub done: u32,
    /// Local tasks that FIFOs activate by the last step (pop, push).
    pub activate: [Option<u8>; 2],
    /// An operand has left the variable that it began in, by the last step, for the first time.
    pub left: bool,
    /// The step after the last one traps.
    pub trap: Option<CodeTrapKind>,
}

impl Block {
    /// Whether something happened that the caller must see before more steps are done.
    fn ends(&self) -> bool {
        self.left || self.activate.iter().any(Option::is_some)
    }
}

impl SharedStart {
    /// Does all elements and ends the operation, if nothing but these comes of it; if not, nothing is
    /// done. Whether it did. `inputs` have a word for each; payloads for the output queue are appended
    /// to `out`.
    pub(crate) fn all_at_once(
        &self,
        program: &LoadedProgram,
        state: &mut PeState,
        inputs: [&[u32]; 2],
        out: &mut Vec<u32>,
    ) -> bool {
        let fresh = self.fresh(program);
        // What is plain stays in its variables.
        let (Some(mut plain), Some(count)) = (fresh.plain, self.length) else { return false };
        if !fresh.leaves_nothing || state.unmasked != 0 || state.memory.is_tracked() {
            return false;
        }
        let memory = state.memory.bytes_mut();
        if plain.move_words(memory, inputs, count, out) {
            return true;
        }
        if fresh.chunks_in.is_none_or(|end| end as usize > memory.len()) {
            return false;
        }
        if count < FEW {
            for at in 0..count as usize {
                let words = inputs.map(|words| words.get(at).copied().unwrap_or(0));
                let step = plain.step(state, words);
                debug_assert!(step.is_ok(), "all elements lie in the memory");
                out.extend(step.ok().flatten());
            }
            return true;
        }
        plain.plan(inputs, count, out).fast(memory);
        true
    }
}

impl VectorState {
    /// Does up to `count` steps; fewer if the operation is done, if an input has no more words, if
    /// a FIFO does not admit the next step, and after a step that has something to tell. The
    /// caller has asked [`VectorState::fifo_check`] for the first step. `inputs` are the payloads
    /// of [`VectorState::inputs`], a word per step; payloads for the output queue are appended to
    /// `out`, one per step.
    pub fn block(
        &mut self,
        program: &LoadedProgram,
        state: &mut PeState,
        inputs: [&[u32]; 2],
        count: u32,
        out: &mut Vec<u32>,
    ) -> Block {
        let used = match &self.plain {
            Some(plain) => plain.words(),
            None => self.inputs().into_iter().flatten().count(),
        };
        let words = inputs[..used].iter().map(|words| words.len() as u32);
        let count = words.fold(count, u32::min);
        match self.at_once(state, inputs, count, out) {
            Some(done) => Block { done, ..Block::default() },
            None => self.steps(program, state, inputs, count, out),
        }
    }

    /// Step by step.
    fn steps(
        &mut self,
        program: &LoadedProgram,
        state: &mut PeState,
        inputs: [&[u32]; 2],
        count: u32,
        out: &mut Vec<u32>,
    ) -> Block {
        let mut block = Block::default();
        while block.done < count && !self.is_done() && !block.ends() {
            if block.done > 0 && self.fifo_wait(program, state).is_some() {
                break;
            }
            let at = block.done as usize;
            let words = inputs.map(|words| words.get(at).copied().unwrap_or(0));
            match self.step(program, state, words) {
                Ok(stepped) => {
                    out.extend(stepped.output);
                    (block.activate, block.left) = (stepped.activate, stepped.left);
                    block.done += 1;
                }
                Err(trap) => {
                    block.trap = Some(trap);
                    break;
                }
            }
            if state.memory.is_tracked() {
                break;
            }
        }
        block
    }

    /// All steps as a copy or in chunks, where that gives the same; how many.
    fn at_once(
        &mut self,
        state: &mut PeState,
        inputs: [&[u32]; 2],
        count: u32,
        out: &mut Vec<u32>,
    ) -> Option<u32> {
        let odd = self.may_leave || state.unmasked != 0 || state.memory.is_tracked();
        if odd {
            return None;
        }
        let left = self.start.length.map_or(u32::MAX, |length| length.saturating_sub(self.done));
        if let Some(plain) = &mut self.plain
            && plain.move_words(state.memory.bytes_mut(), inputs, count.min(left), out)
        {
            let count = count.min(left);
            self.done = self.done.wrapping_add(count);
            return Some(count);
        }
        if count < FEW {
            return None;
        }
        if self.start.packed {
            let count = count.min(1 << 16);
            return self.in_pairs(state, inputs, left.min(2 * count), out);
        }
        let count = count.min(left);
        self.elements(state, inputs, count, out)?;
        Some(count)
    }

    /// The same where two elements share a word: the low half is the first; how many steps.
    fn in_pairs(
        &mut self,
        state: &mut PeState,
        inputs: [&[u32]; 2],
        elements: u32,
        out: &mut Vec<u32>,
    ) -> Option<u32> {
        let steps = elements.div_ceil(2);
        let [first, second] = inputs.map(|words| {
            let words = words.iter().take(steps as usize);
            words.flat_map(|word| [word & 0xffff, word >> 16]).collect::<Vec<u32>>()
        });
        let mut single = Vec::new();
        self.elements(state, [&first, &second], elements, &mut single)?;
        let (pairs, last) = single.as_chunks();
        out.extend(pairs.iter().map(|[low, high]| low & 0xffff | high << 16));
        out.extend(last);
        Some(steps)
    }

    /// Elements in chunks, one word each, where that gives the same.
    fn elements(
        &mut self,
        state: &mut PeState,
        inputs: [&[u32]; 2],
        count: u32,
        out: &mut Vec<u32>,
    ) -> Option<()> {
        let mut plan = match &self.plain {
            Some(plain) => plain.plan(inputs, count, out),
            None => self.plan(inputs, count, out)?,
        };
        let bytes = state.memory.bytes().len();
        let all_may = self.start.known_fresh().and_then(|fresh| fresh.chunks_in);
        if all_may.is_none_or(|end| end as usize > bytes) && !plan.may_chunk(bytes) {
            return None;
        }
        plan.fast(state.memory.bytes_mut());
        let (value, carry) = (plan.value, plan.carry);
        self.done = self.done.wrapping_add(count);
        if let Some(plain) = &mut self.plain {
            plain.skip(count as u16);
            (plain.value, plain.carry) = (value, carry);
            return Some(());
        }
        let streams = std::iter::once(&self.start.dest).chain(&self.start.sources);
        for (walk, stream) in self.walks.iter_mut().flat_map(|walks| walks.iter_mut()).zip(streams)
        {
            if let Stream::Memory(_) = stream {
                walk.skip(count as u16);
            }
        }
        (self.value, self.carry) = (value, carry);
        Some(())
    }

    /// The next `count` elements of one that is not plain; none with FIFOs, or with walks of several steps.
    fn plan<'a>(
        &self,
        inputs: [&'a [u32]; 2],
        count: u32,
        out: &'a mut Vec<u32>,
    ) -> Option<Plan<'a>> {
        let row = self.start.op.row();
        let dest = match self.start.dest {
            Stream::Memory(memory) => Dest::Memory(self.line(0, memory.element)?),
            Stream::Output { index, .. } => {
                let upper = if row.dest.bytes() == 2 { u32::from(index) << 16 } else { 0 };
                Dest::Words { words: out, upper }
            }
            Stream::Fifo { .. } => return None,
            Stream::None | Stream::Input { .. } | Stream::Scalar(_) | Stream::Pointer { .. } => {
                Dest::None
            }
        };
        let (mut sources, mut input) = ([Place::Value(0); 3], 0);
        for (at, source) in self.start.sources.iter().enumerate() {
            sources[at] = match *source {
                Stream::None | Stream::Output { .. } | Stream::Pointer { .. } => Place::Value(0),
                Stream::Scalar(value) => Place::Value(value),
                Stream::Memory(memory) => Place::Memory(self.line(at + 1, memory.element)?),
                Stream::Input { .. } => {
                    input += 1;
                    Place::Words(&inputs[input - 1][..count as usize])
                }
                Stream::Fifo { .. } => return None,
            };
        }
        let (value, carry) = self.last();
        let reduces = self.reduces;
        Some(Plan { row, op: self.start.op.0, dest, sources, length: count, value, carry, reduces })
    }
}
