//! What the scheduler asks of whatever runs code.

use dflow_ir::loc::Loc;

use crate::exec::odd::Odd;
use crate::exec::{Block, CodeTrapKind, Each, Entry, Registers, Segment, SharedStart, each_like};

/// Names a PE to the code engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pe {
    /// Its number.
    pub(crate) number: u32,
    /// Its program.
    pub(crate) program: u16,
}

/// Runs code of tasks and elements of vector operations.
pub(crate) trait Code: Sync {
    /// What code sees of one PE.
    type State: Clone + Send;
    /// A running vector operation.
    type Op: Clone + Send;

    /// State of a PE on which nothing has run.
    fn state(&self, pe: Pe) -> Self::State;

    /// Estimated bytes of that state once it is used.
    fn bytes(&self, pe: Pe) -> u64;

    /// Has the host fetch what of a PE's state stands elsewhere, ahead of its use.
    fn fetch(&self, state: &Self::State) {
        let _ = state;
    }

    /// Bytes of what has an entry per PE.
    fn table_bytes(&self) -> u64 {
        0
    }

    /// Runs a segment.
    fn run(
        &self,
        pe: Pe,
        state: &mut Self::State,
        entry: Entry<'_>,
        registers: &dyn Registers,
        out: &mut Segment,
    );

    /// [`CodeEngine::run_each`](crate::exec::CodeEngine::run_each) on a PE's state.
    fn run_each(
        &self,
        pe: Pe,
        state: &mut Self::State,
        each: Each<'_>,
        registers: &dyn Registers,
        out: &mut Segment,
    ) -> usize {
        each_like(each, out, |entry, out| {
            out.clear();
            self.run(pe, state, entry, registers, out);
        })
    }

    /// Begins a vector operation. It leaves the PE's state as it is: code may have gone on before.
    fn begin(&self, pe: Pe, state: &mut Self::State, start: SharedStart) -> Self::Op;

    /// What an operation was begun with.
    fn start(&self, op: &Self::Op) -> SharedStart;

    /// Whether the operation's FIFOs allow another element.
    fn fifo(&self, pe: Pe, state: &mut Self::State, op: &Self::Op) -> Fifo;

    /// Whether its elements are only words, memory and scalars, one after the other.
    fn is_plain(&self, op: &Self::Op) -> bool;

    /// Whether elements of plain operations cannot trap now.
    fn is_calm(&self, state: &Self::State) -> bool {
        let _ = state;
        true
    }

    /// Whether plain operations that run side by side come to the same in whatever order their elements are
    /// done: none writes where another reads or writes.
    fn are_apart(&self, ops: &[&Self::Op]) -> bool;

    /// Whether all elements are done.
    fn is_done(&self, op: &Self::Op) -> bool;

    /// Elements that it has done, and how many it is to do (`None`: without end).
    fn progress(&self, op: &Self::Op) -> (u32, Option<u32>);

    /// The FIFO that does not let it go on now, and whether that is full.
    fn fifo_wait(&self, pe: Pe, state: &Self::State, op: &Self::Op) -> Option<(u16, bool)>;

    /// What was odd about the last element of an operation; `left`: it left its variable.
    fn odd(&self, pe: Pe, state: &mut Self::State, op: &Self::Op, left: bool) -> Option<Odd>;

    /// Does one element with the words of its fabric inputs, in the order of the sources.
    fn element(
        &self,
        pe: Pe,
        state: &mut Self::State,
        op: &mut Self::Op,
        inputs: [u32; 2],
    ) -> Result<Element, CodeTrapKind>;

    /// Does one element of an operation whose FIFOs do not matter; the word for the output queue,
    /// and whether all elements are done. Nothing else may come of it: no operand can leave its
    /// variable if [`Code::is_plain`] holds.
    fn plain(
        &self,
        pe: Pe,
        state: &mut Self::State,
        op: &mut Self::Op,
        inputs: [u32; 2],
    ) -> Result<(Option<u32>, bool), CodeTrapKind> {
        let element = self.element(pe, state, op, inputs)?;
        Ok((element.output, self.is_done(op)))
    }

    /// Does up to `count` elements at once: the same as so many calls of [`Code::element`]. Fewer
    /// if the operation is done, an input has no more words, FIFOs do not allow the next one (the
    /// caller has asked [`Code::fifo`] for the first), and after one that has something to tell.
    /// `inputs` are the words of its fabric inputs, one per element; words for the output queue
    /// are appended to `out`.
    fn block(
        &self,
        pe: Pe,
        state: &mut Self::State,
        op: &mut Self::Op,
        inputs: [&[u32]; 2],
        count: u32,
        out: &mut Vec<u32>,
    ) -> Block;

    /// Does all elements of an operation and ends it, as [`Code::begin`], [`Code::block`] and
    /// [`Code::finish`] would, if nothing comes of it but its elements, nor of its end; if not, nothing
    /// is done. Whether it did; `inputs` have words for all of them.
    fn all_at_once(
        &self,
        pe: Pe,
        state: &mut Self::State,
        start: &SharedStart,
        inputs: [&[u32]; 2],
        out: &mut Vec<u32>,
    ) -> bool {
        let _ = (pe, state, start, inputs, out);
        false
    }

    /// Writes back what an ended operation leaves (registers, the pointed-to result); it is not
    /// `complete` if a FIFO ended it.
    fn finish(
        &self,
        pe: Pe,
        state: &mut Self::State,
        op: &mut Self::Op,
        complete: bool,
    ) -> Result<(), CodeTrapKind>;

    /// Where suspended code stands, if that is known.
    fn place(&self, pe: Pe, state: &Self::State) -> Option<Loc> {
        let _ = (pe, state);
        None
    }

    /// Bytes of the PE's memory.
    fn read(&self, pe: Pe, state: &mut Self::State, address: u32, bytes: u32) -> Option<Vec<u8>>;
}

/// What FIFOs say to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fifo {
    /// Go on (or there is none).
    Ready,
    /// Full or empty: not now.
    Wait,
    /// Full or empty: the operation ends, and says that it is `complete` or not.
    End { complete: bool },
    /// Full or empty, which must not be.
    Fault,
}

/// What an element gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    /// Word for the output queue.
    pub(crate) output: Option<u32>,
    /// Local tasks that its FIFOs activate.
    pub(crate) activate: [Option<u8>; 2],
    /// An operand has left the variable that it began in.
    pub(crate) left: bool,
}
