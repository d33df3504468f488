//! Many elements of operands that are all words and lie one after the other: most of what vectors are.
//!
//! What kinds of operands there are is decided once, so that the loop over elements has none but their loads,
//! the kernel and a store.

use dflow_ir::dsd::op::OpRow;

use super::fast::word;
use super::kernel::Kernel;
use super::plan::{Dest, Place, Plan};

/// Elements of a turn of the loop: four registers of eight each.
const TURN: usize = 32;

/// Where elements of a source are.
trait Source: Copy {
    /// Those of a turn, of which the first is element `from`.
    fn step(self, memory: &[u8], from: usize) -> [u32; TURN];
}

/// From a byte address on.
#[derive(Clone, Copy)]
struct InMemory(usize);

impl Source for InMemory {
    #[inline(always)]
    fn step(self, memory: &[u8], from: usize) -> [u32; TURN] {
        let at = self.0 + 4 * from;
        let mut step = [0; TURN];
        for (to, raw) in step.iter_mut().zip(memory[at..at + 4 * TURN].as_chunks().0) {
            *to = word(*raw);
        }
        step
    }
}

/// Words of a queue.
impl Source for &[u32] {
    #[inline(always)]
    fn step(self, _: &[u8], from: usize) -> [u32; TURN] {
        let mut step = [0; TURN];
        step.copy_from_slice(&self[from..from + TURN]);
        step
    }
}

/// The same value each time.
impl Source for u32 {
    #[inline(always)]
    fn step(self, _: &[u8], _: usize) -> [u32; TURN] {
        [self; TURN]
    }
}

/// Does as many of a plan's elements as whole turns of the loop do; how many.
#[inline(always)]
pub(super) fn whole<K: Kernel, const FUSED: bool>(plan: &mut Plan<'_>, memory: &mut [u8]) -> usize {
    debug_assert!(has_words(plan.row, K::USED));
    let whole = plan.length as usize / TURN * TURN;
    if whole != 0 {
        first::<K, FUSED>(plan, memory, whole);
    }
    whole
}

/// Whether all operands of a row are words.
fn has_words(row: &OpRow, used: [bool; 3]) -> bool {
    let sources = row.sources.iter().zip(used).filter(|(_, used)| *used);
    row.dest.bytes() == 4 && sources.map(|(ty, _)| ty.bytes()).all(|bytes| bytes == 4)
}

#[inline(always)]
fn first<K: Kernel, const FUSED: bool>(plan: &mut Plan<'_>, memory: &mut [u8], count: usize) {
    match plan.sources[0] {
        Place::Memory(line) => {
            second::<K, FUSED>(plan, memory, InMemory(line.at as usize), count);
        }
        Place::Words(words) => second::<K, FUSED>(plan, memory, words, count),
        Place::Value(value) => second::<K, FUSED>(plan, memory, value, count),
    }
}

#[inline(always)]
fn second<K: Kernel, const FUSED: bool>(
    plan: &mut Plan<'_>,
    memory: &mut [u8],
    a: impl Source,
    count: usize,
) {
    match plan.sources[1] {
        Place::Memory(line) if K::USED[1] => {
            third::<K, FUSED>(plan, memory, (a, InMemory(line.at as usize)), count);
        }
        Place::Words(words) if K::USED[1] => {
            third::<K, FUSED>(plan, memory, (a, words), count);
        }
        Place::Value(value) if K::USED[1] => {
            third::<K, FUSED>(plan, memory, (a, value), count);
        }
        Place::Memory(_) | Place::Words(_) | Place::Value(_) => {
            third::<K, FUSED>(plan, memory, (a, 0), count);
        }
    }
}

#[inline(always)]
fn third<K: Kernel, const FUSED: bool>(
    plan: &mut Plan<'_>,
    memory: &mut [u8],
    (a, b): (impl Source, impl Source),
    count: usize,
) {
    match plan.sources[2] {
        Place::Memory(line) if K::USED[2] => {
            each::<K, FUSED>(plan, memory, (a, b, InMemory(line.at as usize)), count);
        }
        Place::Words(words) if K::USED[2] => {
            each::<K, FUSED>(plan, memory, (a, b, words), count);
        }
        Place::Value(value) if K::USED[2] => {
            each::<K, FUSED>(plan, memory, (a, b, value), count);
        }
        Place::Memory(_) | Place::Words(_) | Place::Value(_) => {
            each::<K, FUSED>(plan, memory, (a, b, 0), count);
        }
    }
}

/// The results of a turn. Not a closure, which would not be made for wide instructions.
#[inline(always)]
fn results<K: Kernel, const FUSED: bool>(
    memory: &[u8],
    (a, b, k): (impl Source, impl Source, impl Source),
    from: usize,
) -> [u32; TURN] {
    let (a, b, k) = (a.step(memory, from), b.step(memory, from), k.step(memory, from));
    let mut out = [0; TURN];
    for at in 0..TURN {
        out[at] = K::keep(K::raw::<FUSED>(a[at], b[at], k[at]));
    }
    out
}

/// Does so many elements, a multiple of [`TURN`].
#[inline(always)]
fn each<K: Kernel, const FUSED: bool>(
    plan: &mut Plan<'_>,
    memory: &mut [u8],
    sources: (impl Source, impl Source, impl Source),
    count: usize,
) {
    let steps = (0..count).step_by(TURN);
    let (mut last, all) = (plan.value, plan.length as usize);
    match &mut plan.dest {
        Dest::None => {
            for from in steps {
                last = results::<K, FUSED>(memory, sources, from)[TURN - 1];
            }
        }
        Dest::Memory(line) => {
            let at = line.at as usize;
            for from in steps {
                let out = results::<K, FUSED>(memory, sources, from);
                let to = &mut memory[at + 4 * from..at + 4 * (from + TURN)];
                for (to, word) in to.as_chunks_mut().0.iter_mut().zip(out) {
                    *to = word.to_le_bytes();
                }
                last = out[TURN - 1];
            }
        }
        // Nothing is joined to whole words.
        Dest::Words { words, .. } => {
            words.reserve(all);
            for from in steps {
                let out = results::<K, FUSED>(memory, sources, from);
                words.extend_from_slice(&out);
                last = out[TURN - 1];
            }
        }
    }
    plan.value = last;
}
