//! Many elements at once: gather a chunk of each source, compute all of it, write it.
//!
//! Taken only where [`Plan::may_chunk`] says that no element written can be read later by another
//! (and nothing leaves the memory). The loops have fixed lengths, so that they become SIMD code.

use super::dense;
use super::kernel::Kernel;
use super::plan::{Dest, Line, Place, Plan};
use crate::jit::{Wide, wide};

/// Elements per chunk.
pub(super) const CHUNK: usize = 64;

/// Elements that are computed together.
const STEP: usize = 16;

/// An element as it lies in memory, little end first, with zeros above those of two bytes.
type Raw = [u8; 4];

/// A chunk of elements.
type Lanes = [Raw; CHUNK];

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
        if K::WORDS && plan.is_dense() {
            let from = dense::whole::<K, FUSED>(plan, memory);
            return rest::<K, FUSED>(plan, memory, from);
        }
        let mut lanes = plan.lanes();
        let mut out: Lanes = [[0; 4]; CHUNK];
        let (whole, rest) = parts(plan.length);
        for part in whole {
            let lanes = plan.view(memory, &mut lanes, K::USED, part);
            results::<K, FUSED>(lanes, &mut out, CHUNK / STEP);
            plan.put(memory, &out, part);
        }
        if let Some(part) = rest {
            let lanes = plan.view(memory, &mut lanes, K::USED, part);
            results::<K, FUSED>(lanes, &mut out, part.count.div_ceil(STEP));
            plan.put(memory, &out, part);
        }
        plan.value = last(&out, plan.length).unwrap_or(plan.value);
    }
}

/// The elements from number `from` on, all of words that lie one after the other: a step at a time, where they lie.
#[inline(always)]
fn rest<K: Kernel, const FUSED: bool>(plan: &mut Plan<'_>, memory: &mut [u8], mut from: usize) {
    let length = plan.length as usize;
    let (mut out, mut last) = ([0; STEP], None);
    while from < length {
        let count = (length - from).min(STEP);
        let [first, second, third] = &plan.sources;
        let none = [0; STEP];
        let a = if K::USED[0] { first.step(memory, from, count) } else { none };
        let b = if K::USED[1] { second.step(memory, from, count) } else { none };
        let k = if K::USED[2] { third.step(memory, from, count) } else { none };
        for at in 0..STEP {
            out[at] = K::keep(K::raw::<FUSED>(a[at], b[at], k[at]));
        }
        plan.dest.put(memory, &out, from, count);
        last = Some(out[count - 1]);
        from += STEP;
    }
    if let Some(last) = last {
        plan.value = last;
    }
}

/// The results of a chunk, or of its first steps.
#[inline(always)]
fn results<K: Kernel, const FUSED: bool>([a, b, k]: [&Lanes; 3], out: &mut Lanes, steps: usize) {
    for step in 0..steps {
        for at in step * STEP..(step + 1) * STEP {
            let raw = K::raw::<FUSED>(word(a[at]), word(b[at]), word(k[at]));
            out[at] = K::keep(raw).to_le_bytes();
        }
    }
}

struct Fold<'a, 'b, K>(&'a mut Plan<'b>, &'a mut [u8], std::marker::PhantomData<K>);

impl<K: Kernel> Wide for Fold<'_, '_, K> {
    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Fold(plan, memory, _) = self;
        let used = [false, true, false];
        let mut lanes = plan.lanes();
        let mut value = plan.value;
        let (whole, rest) = parts(plan.length);
        for part in whole {
            let [_, elements, _] = plan.view(memory, &mut lanes, used, part);
            for element in elements {
                value = K::raw::<FUSED>(value, word(*element), 0);
            }
        }
        if let Some(part) = rest {
            let [_, elements, _] = plan.view(memory, &mut lanes, used, part);
            for element in &elements[..part.count] {
                value = K::raw::<FUSED>(value, word(*element), 0);
            }
        }
        plan.value = if plan.length > 0 { K::keep(value) } else { value };
    }
}

/// A row without a kernel of its own here: the table's, with carry and accumulator.
pub(super) fn table(plan: &mut Plan<'_>, memory: &mut [u8]) {
    let mut lanes = plan.lanes();
    let mut out: Lanes = [[0; 4]; CHUNK];
    let (mut value, mut carry) = (plan.value, plan.carry);
    let (whole, rest) = parts(plan.length);
    for part in whole.chain(rest) {
        let [a, b, k] = plan.view(memory, &mut lanes, [true; 3], part);
        for (((out, a), b), k) in out[..part.count].iter_mut().zip(a).zip(b).zip(k) {
            let first = if plan.reduces { value } else { word(*a) };
            value = plan.row.apply([first, word(*b), word(*k)], &mut carry);
            *out = value.to_le_bytes();
        }
        plan.put(memory, &out, part);
    }
    (plan.value, plan.carry) = (value, carry);
}

/// Elements of a plan: the number of the first, and how many.
#[derive(Clone, Copy)]
struct Part {
    from: usize,
    count: usize,
}

impl Part {
    /// Whether it is a chunk and not the rest.
    #[inline(always)]
    fn is_whole(self) -> bool {
        self.count == CHUNK
    }
}

/// The chunks of so many elements, and their rest. They are done in two loops, so that the count of the
/// first is a constant there: that halves the instructions per element.
#[inline(always)]
fn parts(length: u32) -> (impl Iterator<Item = Part>, Option<Part>) {
    let (chunks, rest) = (length as usize / CHUNK, length as usize % CHUNK);
    let whole = (0..chunks).map(|at| Part { from: at * CHUNK, count: CHUNK });
    (whole, (rest != 0).then_some(Part { from: chunks * CHUNK, count: rest }))
}

/// The last of so many results, the last chunk of which is in `out`.
fn last(out: &Lanes, length: u32) -> Option<u32> {
    let last = length.checked_sub(1)? as usize;
    Some(word(out[last % CHUNK]))
}

/// A chunk of words as it would lie in memory.
#[inline(always)]
fn lay(words: &[u32; CHUNK]) -> Lanes {
    let mut lane: Lanes = [[0; 4]; CHUNK];
    let steps = lane.as_chunks_mut::<STEP>().0.iter_mut().zip(words.as_chunks::<STEP>().0);
    for (raw, words) in steps {
        *raw = words.map(u32::to_le_bytes);
    }
    lane
}

#[inline(always)]
pub(super) fn word(raw: Raw) -> u32 {
    u32::from_le_bytes(raw)
}

impl Plan<'_> {
    /// Whether all elements in memory are words that lie one after the other.
    #[inline(always)]
    fn is_dense(&self) -> bool {
        let dest = match &self.dest {
            Dest::Memory(line) => line.is_dense(),
            Dest::None | Dest::Words { .. } => true,
        };
        let dense = |source: &Place<'_>| match source {
            Place::Memory(line) => line.is_dense(),
            Place::Value(_) | Place::Words(_) => true,
        };
        dest && self.sources.iter().all(dense)
    }

    /// Chunks of the sources, with the values that do not change filled in.
    #[inline(always)]
    fn lanes(&self) -> [Lanes; 3] {
        let mut lanes: [Lanes; 3] = [[[0; 4]; CHUNK]; 3];
        for (lane, source) in lanes.iter_mut().zip(&self.sources) {
            if let Place::Value(value) = source
                && *value != 0
            {
                lane.fill(value.to_le_bytes());
            }
        }
        lanes
    }

    /// Elements of the sources that are used, where they lie or gathered in lanes.
    #[inline(always)]
    fn view<'l>(
        &self,
        memory: &'l [u8],
        [a, b, k]: &'l mut [Lanes; 3],
        used: [bool; 3],
        part: Part,
    ) -> [&'l Lanes; 3] {
        let [first, second, third] = &self.sources;
        [
            if used[0] { first.view(memory, a, part) } else { a },
            if used[1] { second.view(memory, b, part) } else { b },
            if used[2] { third.view(memory, k, part) } else { k },
        ]
    }

    /// Puts results where they go.
    #[inline(always)]
    fn put(&mut self, memory: &mut [u8], out: &Lanes, part: Part) {
        match &mut self.dest {
            Dest::None => {}
            Dest::Memory(line) if part.is_whole() && line.is_dense() => {
                let elements = memory[line.from(part).at as usize..].as_chunks_mut().0;
                if let Some(chunk) = elements.first_chunk_mut() {
                    *chunk = *out;
                }
            }
            Dest::Memory(line) => scatter(memory, line.from(part), &out[..part.count]),
            Dest::Words { words, upper: 0 } => {
                words.extend(out[..part.count].iter().map(|raw| word(*raw)));
            }
            Dest::Words { words, upper } => {
                words.extend(out[..part.count].iter().map(|raw| word(*raw) | *upper));
            }
        }
    }
}

impl Dest<'_> {
    /// Puts the first results of a step, which begins with element `from`, where they go, densely.
    #[inline(always)]
    fn put(&mut self, memory: &mut [u8], out: &[u32; STEP], from: usize, count: usize) {
        match self {
            Dest::None => {}
            Dest::Memory(line) => {
                let at = line.at as usize + 4 * from;
                let (to, raw) = (&mut memory[at..at + 4 * count], out.map(u32::to_le_bytes));
                match to.first_chunk_mut::<{ 4 * STEP }>() {
                    Some(step) => step.copy_from_slice(raw.as_flattened()),
                    None => to.copy_from_slice(&raw.as_flattened()[..4 * count]),
                }
            }
            // Nothing is joined to whole words.
            Dest::Words { words, .. } => words.extend_from_slice(&out[..count]),
        }
    }
}

impl Place<'_> {
    /// The elements of a step, which begins with element `from`: of those after the first ones nothing
    /// is said.
    #[inline(always)]
    fn step(&self, memory: &[u8], from: usize, count: usize) -> [u32; STEP] {
        match self {
            Place::Value(value) => [*value; STEP],
            Place::Memory(line) => {
                let elements = memory[line.at as usize + 4 * from..].as_chunks().0;
                match elements.first_chunk::<STEP>() {
                    Some(step) => step.map(word),
                    None => {
                        let mut step = [[0; 4]; STEP];
                        step[..count].copy_from_slice(&elements[..count]);
                        step.map(word)
                    }
                }
            }
            Place::Words(words) => {
                let words = &words[from..from + count];
                match words.first_chunk::<STEP>() {
                    Some(step) => *step,
                    None => {
                        let mut step = [0; STEP];
                        step[..count].copy_from_slice(words);
                        step
                    }
                }
            }
        }
    }

    /// Elements, where they lie or gathered in a lane.
    #[inline(always)]
    fn view<'l>(&self, memory: &'l [u8], lane: &'l mut Lanes, part: Part) -> &'l Lanes {
        match self {
            Place::Value(_) => {}
            Place::Memory(line) => {
                let line = line.from(part);
                let elements = memory[line.at as usize..].as_chunks().0;
                let dense = part.is_whole() && line.is_dense();
                match elements.first_chunk().filter(|_| dense) {
                    Some(chunk) => return chunk,
                    None => gather(memory, line, &mut lane[..part.count]),
                }
            }
            Place::Words(words) => {
                let words = &words[part.from..part.from + part.count];
                match words.first_chunk::<CHUNK>() {
                    Some(words) => *lane = lay(words),
                    None => {
                        for (raw, word) in lane.iter_mut().zip(words) {
                            *raw = word.to_le_bytes();
                        }
                    }
                }
            }
        }
        lane
    }
}

impl Line {
    /// Whether its elements are words that lie one after the other.
    #[inline(always)]
    pub(super) fn is_dense(&self) -> bool {
        (self.bytes, self.step) == (4, 4)
    }

    /// It, from the first element of a part on.
    #[inline(always)]
    fn from(mut self, part: Part) -> Line {
        self.skip(part.from as u32);
        self
    }
}

/// Reads elements along a line that stays inside `memory`.
#[inline(never)]
fn gather(memory: &[u8], line: Line, lane: &mut [Raw]) {
    let Line { at, step, bytes } = line;
    let (at, count) = (at as usize, lane.len());
    match (bytes, step) {
        (4, 4) => lane.as_flattened_mut().copy_from_slice(&memory[at..at + 4 * count]),
        (2, 2) => {
            let halves = memory[at..at + 2 * count].as_chunks().0;
            for (raw, half) in lane.iter_mut().zip(halves) {
                *raw = u32::from(u16::from_le_bytes(*half)).to_le_bytes();
            }
        }
        (4, _) => apart(at, step, lane, |at, raw| *raw = four(memory, at)),
        _ => apart(at, step, lane, |at, raw| *raw = two(memory, at)),
    }
}

/// Writes elements along a line that stays inside `memory`.
#[inline(never)]
fn scatter(memory: &mut [u8], line: Line, out: &[Raw]) {
    let Line { at, step, bytes } = line;
    let (at, count) = (at as usize, out.len());
    match (bytes, step) {
        (4, 4) => memory[at..at + 4 * count].copy_from_slice(out.as_flattened()),
        (2, 2) => {
            let dest = &mut memory[at..at + 2 * count];
            for (half, raw) in dest.as_chunks_mut().0.iter_mut().zip(out) {
                *half = [raw[0], raw[1]];
            }
        }
        (4, _) => apart(at, step, out, |at, raw| memory[at..at + 4].copy_from_slice(raw)),
        _ => apart(at, step, out, |at, raw| memory[at..at + 2].copy_from_slice(&raw[..2])),
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
fn four(memory: &[u8], at: usize) -> Raw {
    memory[at..].first_chunk().copied().unwrap_or_default()
}

#[inline(always)]
fn two(memory: &[u8], at: usize) -> Raw {
    memory[at..].first_chunk().map_or([0; 4], |&[low, high]| [low, high, 0, 0])
}
