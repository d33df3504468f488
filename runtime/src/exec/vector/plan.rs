//! A number of elements of a vector operation that are to be done in one go, where all walks
//! over memory have one step.
//!
//! Two ways with one result: [`Plan::naive`] is the meaning, element by element; [`Plan::fast`]
//! works on chunks and is taken only where [`Plan::may_chunk`] allows it.

use dflow_ir::dsd::op::OpRow;

use super::{fast, kernel};
use crate::exec::CodeTrapKind;
use crate::exec::state::PeState;

/// Below this many elements the chunks cost more than they save.
pub(super) const FEW: u32 = 6;

/// A walk with one step: a byte address (16 bits, where it wraps), the step and the size of an
/// element in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) at: u32,
    pub(super) step: i32,
    pub(super) bytes: u32,
}

impl Line {
    /// `count` elements on.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        let way = (self.step as u32).wrapping_mul(count);
        self.at = self.at.wrapping_add(way) & 0xffff;
    }

    /// The address of the next element, and on to the one behind it.
    #[inline(always)]
    fn next(&mut self) -> u64 {
        let at = self.at;
        self.skip(1);
        u64::from(at)
    }
}

/// A source: a walk, a value, or words of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    Memory(Line),
    Value(u32),
    Words(&'a [u32]),
}

/// Where results go.
#[derive(Debug)]
pub(super) enum Dest<'a> {
    /// Nowhere: the last value counts.
    None,
    Memory(Line),
    /// An output queue; `upper` is joined to each.
    Words {
        words: &'a mut Vec<u32>,
        upper: u32,
    },
}

/// Elements to do, with the walks where they begin.
pub(super) struct Plan<'a> {
    pub(super) row: &'static OpRow,
    pub(super) op: u8,
    pub(super) dest: Dest<'a>,
    pub(super) sources: [Place<'a>; 3],
    pub(super) length: u32,
    /// Last value, or the accumulator of a reduction.
    pub(super) value: u32,
    pub(super) carry: u32,
    pub(super) reduces: bool,
}

impl Plan<'_> {
    /// Whether gathering ahead of writing gives what the naive loop gives, in so many bytes of memory.
    pub(super) fn may_chunk(&self, memory: usize) -> bool {
        self.chunks_in().is_some_and(|end| end as usize <= memory)
    }

    /// In how many bytes of memory its elements lie, if gathering ahead of writing gives what the
    /// naive loop gives, and that is no shorter.
    pub(super) fn chunks_in(&self) -> Option<u32> {
        if self.stays() {
            return None;
        }
        let dest = match &self.dest {
            Dest::Memory(line) => Some(Span::of(line, self.length)?),
            Dest::None | Dest::Words { .. } => None,
        };
        let mut end = dest.map_or(0, |span| span.high);
        for source in &self.sources {
            let Place::Memory(line) = source else { continue };
            let span = Span::of(line, self.length)?;
            if dest.is_some_and(|dest| !dest.is_safe_with(&span)) {
                return None;
            }
            end = end.max(span.high);
        }
        u32::try_from(end).ok()
    }

    /// All elements in chunks.
    pub(super) fn fast(&mut self, memory: &mut [u8]) {
        self.runner()(self, memory);
    }

    /// How its elements are done in chunks.
    pub(super) fn runner(&self) -> fast::Runner {
        match kernel::ways(self.op) {
            Some(ways) if self.reduces => ways.fold,
            Some(ways) => ways.each,
            None => fast::table,
        }
    }

    /// Whether all elements read and write the same places.
    fn stays(&self) -> bool {
        let stays = |source: &Place<'_>| match source {
            Place::Memory(line) => line.step == 0,
            Place::Value(_) => true,
            Place::Words(_) => false,
        };
        let dest = match &self.dest {
            Dest::None => true,
            Dest::Memory(line) => line.step == 0,
            Dest::Words { .. } => false,
        };
        dest && self.sources.iter().all(stays)
    }

    /// The meaning: one element after the other.
    pub(super) fn naive(&mut self, state: &mut PeState) -> Result<(), CodeTrapKind> {
        let stays = self.stays();
        for element in 0..self.length {
            let before = (self.value, self.carry);
            let mut values = [0; 3];
            for (value, source) in values.iter_mut().zip(&mut self.sources) {
                *value = match source {
                    Place::Value(value) => *value,
                    Place::Memory(line) => state.memory.load(line.next(), line.bytes)? as u32,
                    Place::Words(words) => match words.split_first() {
                        Some((word, rest)) => {
                            *words = rest;
                            *word
                        }
                        None => 0,
                    },
                };
            }
            if self.reduces {
                values[0] = self.value;
            }
            if state.unmasked != 0 {
                state.raise((self.row.raised)(values))?;
            }
            self.value = self.row.apply(values, &mut self.carry);
            self.keep(state)?;
            // What gave the same as the element before it goes on to do so.
            if stays && element != 0 && before == (self.value, self.carry) {
                break;
            }
        }
        Ok(())
    }

    /// Writes one result.
    fn keep(&mut self, state: &mut PeState) -> Result<(), CodeTrapKind> {
        match &mut self.dest {
            Dest::None => {}
            Dest::Memory(line) => {
                state.memory.store(line.next(), line.bytes, u64::from(self.value))?;
            }
            Dest::Words { words, upper } => words.push(self.value | *upper),
        }
        Ok(())
    }
}

/// Bytes that a line covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    line: Line,
    low: i64,
    high: i64,
}

impl Span {
    /// The span, if it does not begin before the memory.
    #[inline]
    pub(super) fn of(line: &Line, length: u32) -> Option<Span> {
        let first = i64::from(line.at);
        let last = first + i64::from(line.step) * (i64::from(length) - 1).max(0);
        let (low, high) = (first.min(last), first.max(last) + i64::from(line.bytes));
        (low >= 0).then_some(Span { line: *line, low, high })
    }

    /// Whether writing this span never changes an element of `source` that is read later.
    #[inline]
    fn is_safe_with(&self, source: &Span) -> bool {
        let distinct = self.line.step.unsigned_abs() >= self.line.bytes;
        self.is_apart_from(source) || (self == source && distinct)
    }

    /// Whether no byte is in both.
    #[inline]
    pub(super) fn is_apart_from(&self, other: &Span) -> bool {
        self.high <= other.low || other.high <= self.low
    }
}
