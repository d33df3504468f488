//! Elements of plain operations: what most streams are, with everything decided at the start.
//!
//! Plain is: vectors in memory of one dimension that stay in their variable, words of queues, and
//! scalars; a wavelet per element; no accumulator. The result is that of the general step (a
//! property test holds both together).

use std::ops::Range;

use dflow_ir::dsd::op::{DsdOp, OpShape};

use crate::exec::state::PeState;
use crate::exec::{CodeTrapKind, Stream, VectorStart};

use super::plan::{Dest, Line, Place, Plan};
use super::walk::Walk;

/// One element, ready to be done again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PlainElement {
    op: DsdOp,
    feeds: [Feed; 3],
    /// Sources up to the last one that is used, and those of them that are words.
    used: u8,
    words: u8,
    sink: Sink,
    /// It moves words as they are.
    moves: bool,
    pub(super) carry: u32,
    /// The last result.
    pub(super) value: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Feed {
    Scalar(u32),
    /// Payload of one of the two words, cut to so many bits.
    Word {
        at: u8,
        mask: u32,
    },
    Vector(Vector),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sink {
    /// The payload, with these upper bits.
    Word {
        upper: u32,
    },
    Vector(Vector),
}

/// A vector in memory of elements of two or four bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Vector {
    address: u16,
    step: u16,
    wide: bool,
}

impl Vector {
    fn new(walk: &Walk, element: u8) -> Option<Vector> {
        let step = walk.linear()? as u16;
        let wide = match element {
            2 => false,
            4 => true,
            _byte => return None,
        };
        Some(Vector { address: walk.address(), step, wide })
    }

    fn skip(&mut self, count: u16) {
        self.address = self.address.wrapping_add(self.step.wrapping_mul(count));
    }

    /// The bytes of so many words, if they lie one after the other.
    #[inline]
    fn dense(&self, count: usize) -> Option<Range<usize>> {
        let first = usize::from(self.address);
        (self.wide && self.step == 4).then_some(first..first + 4 * count)
    }

    fn line(&self) -> Line {
        let (step, bytes) = (self.step as i16, if self.wide { 4 } else { 2 });
        Line { at: self.address.into(), step: step.into(), bytes }
    }

    /// The address of the next element.
    fn next(&mut self) -> u64 {
        let address = self.address;
        self.address = address.wrapping_add(self.step);
        address.into()
    }
}

impl Feed {
    /// The value of the next element.
    #[inline]
    fn next(&mut self, state: &mut PeState, inputs: [u32; 2]) -> Result<u32, CodeTrapKind> {
        match self {
            Feed::Scalar(value) => Ok(*value),
            Feed::Word { at, mask } => Ok(inputs[usize::from(*at)] & *mask),
            Feed::Vector(vector) => {
                let (wide, address) = (vector.wide, vector.next());
                state.memory.load_word(address, wide)
            }
        }
    }
}

impl PlainElement {
    /// An operation that is plain.
    pub(super) fn new(start: &VectorStart, walks: &[Walk; 4]) -> Option<PlainElement> {
        let row = start.op.row();
        let mut words = 0;
        let mut feeds = [Feed::Scalar(0); 3];
        for (at, source) in start.sources.iter().enumerate() {
            feeds[at] = match *source {
                Stream::None => Feed::Scalar(0),
                Stream::Scalar(value) => Feed::Scalar(value),
                Stream::Memory(memory) => {
                    Feed::Vector(Vector::new(&walks[at + 1], memory.element)?)
                }
                Stream::Input { .. } => {
                    words += 1;
                    let mask = row.sources[at].mask(u64::from(u32::MAX)) as u32;
                    Feed::Word { at: words - 1, mask }
                }
                Stream::Output { .. } | Stream::Fifo { .. } | Stream::Pointer { .. } => {
                    return None;
                }
            };
        }
        let sink = match start.dest {
            Stream::Memory(memory) => Sink::Vector(Vector::new(&walks[0], memory.element)?),
            Stream::Output { index, .. } => {
                let upper = if row.dest.bytes() == 2 { u32::from(index) << 16 } else { 0 };
                Sink::Word { upper }
            }
            Stream::None
            | Stream::Input { .. }
            | Stream::Fifo { .. }
            | Stream::Scalar(_)
            | Stream::Pointer { .. } => return None,
        };
        let last = start.sources.iter().rposition(|source| *source != Stream::None);
        let (used, op) = (last.map_or(0, |last| last as u8 + 1), start.op);
        let moves = row.shape == OpShape::Move && row.dest.bytes() == 4;
        let (carry, value) = (0, 0);
        let plain = PlainElement { op, feeds, used, words, sink, moves, carry, value };
        (!start.packed).then_some(plain)
    }

    /// The next `count` elements, if these are words that go as they are between a queue and a vector without
    /// gaps in these bytes of memory; whether they are.
    #[inline]
    pub(super) fn move_words(
        &mut self,
        memory: &mut [u8],
        inputs: [&[u32]; 2],
        count: u32,
        out: &mut Vec<u32>,
    ) -> bool {
        if !self.moves {
            return false;
        }
        let count = count as usize;
        let last = match (&mut self.feeds[0], &mut self.sink) {
            (Feed::Vector(from), Sink::Word { .. }) => {
                let Some(range) = from.dense(count) else { return false };
                let Some(elements) = memory.get(range) else { return false };
                out.extend(elements.as_chunks().0.iter().map(|raw| u32::from_le_bytes(*raw)));
                from.skip(count as u16);
                out.last().copied().filter(|_| count != 0)
            }
            (Feed::Word { at, .. }, Sink::Vector(into)) => {
                let words = &inputs[usize::from(*at)][..count];
                let Some(range) = into.dense(count) else { return false };
                let Some(elements) = memory.get_mut(range) else { return false };
                for (raw, word) in elements.as_chunks_mut().0.iter_mut().zip(words) {
                    *raw = word.to_le_bytes();
                }
                into.skip(count as u16);
                words.last().copied()
            }
            (Feed::Scalar(_) | Feed::Word { .. } | Feed::Vector(_), _) => return false,
        };
        self.value = last.unwrap_or(self.value);
        true
    }

    /// `count` elements on, which something else has done.
    pub(super) fn skip(&mut self, count: u16) {
        for feed in &mut self.feeds {
            if let Feed::Vector(vector) = feed {
                vector.skip(count);
            }
        }
        if let Sink::Vector(vector) = &mut self.sink {
            vector.skip(count);
        }
    }

    /// Words that each element takes.
    pub(super) fn words(&self) -> usize {
        self.words.into()
    }

    /// In how many bytes of memory so many elements lie, if they may be done in chunks, and so may any part of
    /// them: what is apart stays so, and what is the same moves on alike.
    pub(super) fn chunks_in(&self, count: u32) -> Option<u32> {
        self.plan([&[]; 2], count, &mut Vec::new()).chunks_in()
    }

    /// The next `count` elements; `inputs` has as many words for each input.
    #[inline]
    pub(super) fn plan<'a>(
        &self,
        inputs: [&'a [u32]; 2],
        count: u32,
        out: &'a mut Vec<u32>,
    ) -> Plan<'a> {
        let sources = self.feeds.each_ref().map(|feed| match feed {
            Feed::Scalar(value) => Place::Value(*value),
            Feed::Word { at, .. } => Place::Words(inputs[usize::from(*at)]),
            Feed::Vector(vector) => Place::Memory(vector.line()),
        });
        let dest = match self.sink {
            Sink::Word { upper } => Dest::Words { words: out, upper },
            Sink::Vector(vector) => Dest::Memory(vector.line()),
        };
        let (row, op) = (self.op.row(), self.op.0);
        let (value, carry) = (self.value, self.carry);
        Plan { row, op, dest, sources, length: count, value, carry, reduces: false }
    }

    /// The next elements of an operand in memory.
    pub(super) fn line(&self, operand: usize) -> Option<Line> {
        match (operand.checked_sub(1).map(|source| self.feeds[source]), self.sink) {
            (Some(Feed::Vector(vector)), _) | (None, Sink::Vector(vector)) => Some(vector.line()),
            (Some(Feed::Scalar(_) | Feed::Word { .. }), _) | (None, Sink::Word { .. }) => None,
        }
    }

    /// Does one element; the word that it sends, if it sends one.
    ///
    /// # Errors
    /// An element lies outside the PE's memory.
    #[inline(always)]
    pub(super) fn step(
        &mut self,
        state: &mut PeState,
        inputs: [u32; 2],
    ) -> Result<Option<u32>, CodeTrapKind> {
        let [first, second, third] = &mut self.feeds;
        let mut values = [first.next(state, inputs)?, 0, 0];
        if self.used > 1 {
            values[1] = second.next(state, inputs)?;
        }
        if self.used > 2 {
            values[2] = third.next(state, inputs)?;
        }
        let value =
            if self.moves { values[0] } else { self.op.row().apply(values, &mut self.carry) };
        self.value = value;
        match &mut self.sink {
            Sink::Word { upper } => Ok(Some(value | *upper)),
            Sink::Vector(vector) => {
                let (wide, address) = (vector.wide, vector.next());
                state.memory.store_word(address, wide, value)?;
                Ok(None)
            }
        }
    }
}
