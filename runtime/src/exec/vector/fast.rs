//! Many elements at once: gather a chunk of each source, compute all of it, write it.
//!
//! Taken only where [`Plan::may_chunk`] says that no element written can be read later by another
//! (and nothing leaves the memory). The loops have fixed lengths, so that they become SIMD code.

use super::kernel::Kernel;
use super::plan::{Dest, Line, Place, Plan};
use crate::jit::{Wide, wide};

/// Elements per chunk.
pub(super) const CHUNK: usize = 64;

/// Elements that are computed together.
const STEP: usize = 16;

/// A chunk of raw elements.
pub(super) type Lanes = [u32; CHUNK];

/// Does all elements of a plan on the bytes of a PE's memory.
pub(super) type Runner = fn(&mut Plan<'_>, &mut [u8]);

/// One element after the other, none needing another's result.
pub(super) fn each<K: Kernel>(plan: &mut Plan<'_>, memory: &mut [u8]) {
    wide(Each(plan, memory, std::marker::PhantomData::<K>));
}

/// A reduction.
pub(super) fn fold<K: Kernel>(plan: &mut Plan<'_>, memory: &mut [u8]) {
    wide(Fold(plan, memory, std::marker::PhantomData::<K>));
}

struct Each<'a, 'b, K>(&'a mut Plan<'b>, &'a mut [u8], std::marker::PhantomData<K>);

impl<K: Kernel> Wide for Each<'_, '_, K> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Each(plan, memory, _) = self;
        let mut lanes = plan.lanes();
        let mut out: Lanes = [0; CHUNK];
        let mut left = plan.length as usize;
        while left > 0 {
            let count = left.min(CHUNK);
            left -= count;
            plan.gather(memory, &mut lanes, K::USED, count);
            for step in 0..count.div_ceil(STEP) {
                for at in step * STEP..(step + 1) * STEP {
                    let raw = K::raw::<FUSED>(lanes[0][at], lanes[1][at], lanes[2][at]);
                    out[at] = K::keep(raw);
                }
            }
            plan.put(memory, &out[..count]);
        }
    }
}

struct Fold<'a, 'b, K>(&'a mut Plan<'b>, &'a mut [u8], std::marker::PhantomData<K>);

impl<K: Kernel> Wide for Fold<'_, '_, K> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Fold(plan, memory, _) = self;
        let mut lanes = plan.lanes();
        let mut value = plan.value;
        let mut left = plan.length as usize;
        while left > 0 {
            let count = left.min(CHUNK);
            left -= count;
            plan.gather(memory, &mut lanes, [false, true, false], count);
            for &lane in &lanes[1][..count] {
                value = K::raw::<FUSED>(value, lane, 0);
            }
        }
        plan.value = if plan.length > 0 { K::keep(value) } else { value };
    }
}

/// A row without a kernel of its own here: the table's, with carry and accumulator.
pub(super) fn table(plan: &mut Plan<'_>, memory: &mut [u8]) {
    let mut lanes = plan.lanes();
    let mut out: Lanes = [0; CHUNK];
    let mut left = plan.length as usize;
    while left > 0 {
        let count = left.min(CHUNK);
        left -= count;
        plan.gather(memory, &mut lanes, [true; 3], count);
        for at in 0..count {
            let first = if plan.reduces { plan.value } else { lanes[0][at] };
            out[at] = plan.row.apply([first, lanes[1][at], lanes[2][at]], &mut plan.carry);
            plan.value = out[at];
        }
        plan.put(memory, &out[..count]);
    }
}

impl Plan<'_> {
    /// Chunks of the sources, with the values that do not change filled in.
    #[inline(always)]
    fn lanes(&self) -> [Lanes; 3] {
        let mut lanes: [Lanes; 3] = [[0; CHUNK]; 3];
        for (lane, source) in lanes.iter_mut().zip(&self.sources) {
            if let Place::Value(value) = source
                && *value != 0
            {
                lane.fill(*value);
            }
        }
        lanes
    }

    /// The next elements of the sources that are used.
    #[inline(always)]
    fn gather(&mut self, memory: &[u8], lanes: &mut [Lanes; 3], used: [bool; 3], count: usize) {
        for at in 0..3 {
            if !used[at] {
                continue;
            }
            match &mut self.sources[at] {
                Place::Value(_) => {}
                Place::Memory(line) => gather(memory, line, &mut lanes[at], count),
                Place::Words(words) => {
                    let (now, later) = words.split_at(count);
                    match now.first_chunk() {
                        Some(all) => lanes[at] = *all,
                        None => lanes[at][..count].copy_from_slice(now),
                    }
                    *words = later;
                }
            }
        }
    }

    #[inline(always)]
    fn put(&mut self, memory: &mut [u8], out: &[u32]) {
        if let Some(last) = out.last() {
            self.value = *last;
        }
        match &mut self.dest {
            Dest::None => {}
            Dest::Memory(line) => scatter(memory, line, out),
            Dest::Words { words, upper: 0 } => words.extend_from_slice(out),
            Dest::Words { words, upper } => words.extend(out.iter().map(|value| value | *upper)),
        }
    }
}

/// Reads elements along a line that stays inside `memory`.
#[inline(always)]
fn gather(memory: &[u8], line: &mut Line, lane: &mut Lanes, count: usize) {
    let Line { at, step, bytes } = *line;
    let at = at as usize;
    line.skip(count as u32);
    match (bytes, step) {
        (4, 4) if count == CHUNK => words(&memory[at..at + 4 * CHUNK], lane),
        (4, 4) => words(&memory[at..at + 4 * count], &mut lane[..count]),
        (2, 2) => halves(&memory[at..at + 2 * count], &mut lane[..count]),
        (4, _) => apart(at, step, &mut lane[..count], |at, value| *value = four(memory, at)),
        _ => apart(at, step, &mut lane[..count], |at, value| *value = two(memory, at)),
    }
}

#[inline(always)]
fn words(source: &[u8], lane: &mut [u32]) {
    for (value, raw) in lane.iter_mut().zip(source.as_chunks().0) {
        *value = u32::from_le_bytes(*raw);
    }
}

#[inline(always)]
fn halves(source: &[u8], lane: &mut [u32]) {
    for (value, raw) in lane.iter_mut().zip(source.as_chunks().0) {
        *value = u32::from(u16::from_le_bytes(*raw));
    }
}

/// Writes elements along a line that stays inside `memory`.
#[inline(always)]
fn scatter(memory: &mut [u8], line: &mut Line, out: &[u32]) {
    let (Line { at, step, bytes }, count) = (*line, out.len());
    let at = at as usize;
    line.skip(count as u32);
    match (bytes, step) {
        (4, 4) => {
            let dest = &mut memory[at..at + 4 * count];
            for (raw, value) in dest.as_chunks_mut().0.iter_mut().zip(out) {
                *raw = value.to_le_bytes();
            }
        }
        (2, 2) => {
            let dest = &mut memory[at..at + 2 * count];
            for (raw, value) in dest.as_chunks_mut().0.iter_mut().zip(out) {
                *raw = (*value as u16).to_le_bytes();
            }
        }
        (4, _) => apart(at, step, out, |at, value| {
            memory[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }),
        _ => apart(at, step, out, |at, value| {
            memory[at..at + 2].copy_from_slice(&(*value as u16).to_le_bytes());
        }),
    }
}

/// Elements with the byte addresses of a line.
#[inline(always)]
fn apart<T>(
    first: usize,
    step: i32,
    lane: impl IntoIterator<Item = T>,
    mut f: impl FnMut(usize, T),
) {
    let mut at = first;
    for value in lane {
        f(at, value);
        at = at.wrapping_add_signed(step as isize);
    }
}

#[inline(always)]
fn four(memory: &[u8], at: usize) -> u32 {
    memory[at..].first_chunk().map_or(0, |raw| u32::from_le_bytes(*raw))
}

#[inline(always)]
fn two(memory: &[u8], at: usize) -> u32 {
    memory[at..].first_chunk().map_or(0, |raw| u32::from(u16::from_le_bytes(*raw)))
}
