//! Many elements at once: gather a chunk of each source, compute all of it, write it.
//!
//! Taken only where [`Plan::may_chunk`] says that no element written can be read later by another
//! (and nothing leaves the memory). The loops have fixed lengths, so that they become SIMD code.

use super::kernel::Kernel;
use super::plan::{Dest, Place, Plan};
use super::walk::Walk;
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
            plan.gather(memory, &mut lanes, count);
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
            plan.gather(memory, &mut lanes, count);
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
        plan.gather(memory, &mut lanes, count);
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

    #[inline(always)]
    fn gather(&mut self, memory: &[u8], lanes: &mut [Lanes; 3], count: usize) {
        for (lane, source) in lanes.iter_mut().zip(&mut self.sources) {
            match source {
                Place::Value(_) => {}
                Place::Memory { walk, bytes } => gather(memory, walk, *bytes, &mut lane[..count]),
                Place::Words(words) => {
                    let (now, later) = words.split_at(count);
                    lane[..count].copy_from_slice(now);
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
            Dest::Memory { walk, bytes } => scatter(memory, walk, *bytes, out),
            Dest::Words { words, upper: 0 } => words.extend_from_slice(out),
            Dest::Words { words, upper } => words.extend(out.iter().map(|value| value | *upper)),
        }
    }
}

/// Reads elements along a linear walk that stays inside `memory`.
#[inline(always)]
fn gather(memory: &[u8], walk: &mut Walk, bytes: u8, lane: &mut [u32]) {
    let (at, count) = (usize::from(walk.address()), lane.len());
    let step = walk.linear().unwrap_or(0);
    walk.skip(count as u16);
    match (bytes, step) {
        (4, 4) => {
            let source = &memory[at..at + 4 * count];
            for (value, raw) in lane.iter_mut().zip(source.as_chunks().0) {
                *value = u32::from_le_bytes(*raw);
            }
        }
        (2, 2) => {
            let source = &memory[at..at + 2 * count];
            for (value, raw) in lane.iter_mut().zip(source.as_chunks().0) {
                *value = u32::from(u16::from_le_bytes(*raw));
            }
        }
        (4, _) => apart(at, step, lane, |at, value| *value = four(memory, at)),
        _ => apart(at, step, lane, |at, value| *value = two(memory, at)),
    }
}

/// Writes elements along a linear walk that stays inside `memory`.
#[inline(always)]
fn scatter(memory: &mut [u8], walk: &mut Walk, bytes: u8, out: &[u32]) {
    let (at, count) = (usize::from(walk.address()), out.len());
    let step = walk.linear().unwrap_or(0);
    walk.skip(count as u16);
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

/// Elements with the byte addresses of a walk with a constant step.
#[inline(always)]
fn apart<T>(
    first: usize,
    step: i16,
    lane: impl IntoIterator<Item = T>,
    mut f: impl FnMut(usize, T),
) {
    let mut at = first;
    for value in lane {
        f(at, value);
        at = at.wrapping_add_signed(isize::from(step));
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
