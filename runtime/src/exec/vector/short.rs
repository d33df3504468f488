//! Short operations on words of memory that lie one after the other: what is around the elements takes
//! longer than they do, so nothing is asked here that descriptors say.
//!
//! Invariant: the same as [`Plan::fast`] gives. All elements are computed before the first is written,
//! the last ones twice where their number is no multiple of a step, but no fewer than that.

use std::marker::PhantomData;

use super::fast::word;
use super::kernel::{self, Kernel};
use super::plan::{Dest, Line, Place, Plan};
use crate::jit::{Wide, wide};

/// Elements that are computed together.
const STEP: usize = 8;

/// Elements of a short operation, at most.
const MOST: u32 = 4 * STEP as u32;

/// Does the elements of such an operation on the bytes of a PE's memory, with values in place of the
/// sources that do not lie there.
pub(super) type Runner = fn(&Short, &[u64; 3], &mut [u8]);

/// Where the operands of a short operation lie.
#[derive(Clone, Copy)]
pub(super) struct Short {
    runner: Runner,
    /// Byte addresses of the first elements; sources that are values have none.
    dest: u16,
    sources: [Option<u16>; 3],
    count: u8,
}

impl Short {
    /// An operation that may be done in chunks, if it is a short one.
    pub(super) fn of(plan: &Plan<'_>) -> Option<Short> {
        let runner = kernel::ways(plan.op)?.short?;
        let Dest::Memory(dest) = &plan.dest else { return None };
        if !(1..=MOST).contains(&plan.length) {
            return None;
        }
        let mut sources = [None; 3];
        for (at, source) in sources.iter_mut().zip(&plan.sources) {
            *at = match source {
                Place::Memory(line) => Some(first_of(line)?),
                Place::Value(_) => None,
                Place::Words(_) => return None,
            };
        }
        Some(Short { runner, dest: first_of(dest)?, sources, count: plan.length as u8 })
    }

    /// Does its elements.
    #[inline]
    pub(super) fn run(&self, values: &[u64; 3], memory: &mut [u8]) {
        (self.runner)(self, values, memory);
    }
}

/// The address of the first element of a line of words one after the other.
fn first_of(line: &Line) -> Option<u16> {
    if line.is_dense() { u16::try_from(line.at).ok() } else { None }
}

/// One element after the other, none needing another's result.
pub(super) fn each<K: Kernel>(short: &Short, values: &[u64; 3], memory: &mut [u8]) {
    wide(Each(short, values, memory, PhantomData::<K>));
}

struct Each<'a, K>(&'a Short, &'a [u64; 3], &'a mut [u8], PhantomData<K>);

impl<K: Kernel> Wide for Each<'_, K> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Each(short, values, memory, _) = self;
        if usize::from(short.count) < STEP {
            few::<K, FUSED>(short, values, memory);
        } else if usize::from(short.count) <= 2 * STEP {
            steps::<K, FUSED, 2>(short, values, memory);
        } else {
            steps::<K, FUSED, 4>(short, values, memory);
        }
    }
}

/// Does the elements in so many steps.
#[inline(always)]
fn steps<K: Kernel, const FUSED: bool, const STEPS: usize>(
    short: &Short,
    values: &[u64; 3],
    memory: &mut [u8],
) {
    let last = usize::from(short.count) - STEP;
    let mut out = [[0; STEP]; STEPS];
    for (step, out) in out.iter_mut().enumerate() {
        let from = (step * STEP).min(last);
        let a = source(K::USED[0], short.sources[0], values[0], memory, from);
        let b = source(K::USED[1], short.sources[1], values[1], memory, from);
        let k = source(K::USED[2], short.sources[2], values[2], memory, from);
        for at in 0..STEP {
            out[at] = K::keep(K::raw::<FUSED>(a[at], b[at], k[at]));
        }
    }
    for (step, out) in out.iter().enumerate() {
        let at = usize::from(short.dest) + 4 * (step * STEP).min(last);
        let to = &mut memory[at..at + 4 * STEP];
        for (to, word) in to.as_chunks_mut().0.iter_mut().zip(out) {
            *to = word.to_le_bytes();
        }
    }
}

/// Does the elements where they are fewer than a step.
#[inline(always)]
fn few<K: Kernel, const FUSED: bool>(short: &Short, values: &[u64; 3], memory: &mut [u8]) {
    let mut out = [0; STEP];
    let out = &mut out[..usize::from(short.count)];
    for (at, out) in out.iter_mut().enumerate() {
        let one = |source: usize| match short.sources[source] {
            Some(first) if K::USED[source] => {
                let from = usize::from(first) + 4 * at;
                memory[from..from + 4].first_chunk().map_or(0, |raw| word(*raw))
            }
            Some(_) | None => values[source] as u32,
        };
        *out = K::keep(K::raw::<FUSED>(one(0), one(1), one(2)));
    }
    let at = usize::from(short.dest);
    let to = &mut memory[at..at + 4 * out.len()];
    for (to, word) in to.as_chunks_mut().0.iter_mut().zip(out) {
        *to = word.to_le_bytes();
    }
}

/// The elements of a step, of which the first is element `from`, of a source.
#[inline(always)]
fn source(used: bool, at: Option<u16>, value: u64, memory: &[u8], from: usize) -> [u32; STEP] {
    let Some(at) = at.filter(|_| used) else { return [value as u32; STEP] };
    let at = usize::from(at) + 4 * from;
    let mut step = [0; STEP];
    for (to, raw) in step.iter_mut().zip(memory[at..at + 4 * STEP].as_chunks().0) {
        *to = word(*raw);
    }
    step
}
