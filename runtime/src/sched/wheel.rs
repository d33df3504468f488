//! When to look at which component: a wheel of 64 cycles of bitmaps, and a heap beyond.
//!
//! Invariants: a wake is for a cycle after `base`, the cycle last taken out (or any before it
//! has begun); one that is 64 or more ahead stands in the heap. Waking twice is waking once.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::jit::prefetch;
use crate::pe::core::bits;
use crate::sched::rounds::Noter;

const SLOTS: u64 = 64;
/// Words of summaries that are looked at to foresee what comes.
const SUMMARY: usize = 64;
/// Slots whose bitmaps lie together: what is woken again soon is near in memory.
const NEAR: usize = 8;

/// Pending wakes of a region, or nothing but the latest stamp for an engine that looks always.
#[derive(Debug)]
pub(crate) struct Wakes {
    wheel: Option<Wheel>,
    /// The latest cycle for which anything was woken, of an engine that looks always.
    pub(crate) latest: u64,
    /// By PE, where cores arrange looks of their own that they may put off.
    looks: Vec<Look>,
    /// PEs, as bits, where words that stretches take come at other times than those were told.
    retimed: Box<[u64]>,
    /// Cycles in which cores are looked at unless that is called off, with the PEs.
    ends: BTreeSet<(u64, u32)>,
}

/// What a core waits for: a look that it has arranged, and up to when it was woken by what happened.
#[derive(Clone, Copy, Debug)]
struct Look {
    own: u64,
    told: u64,
    /// The cycle in which it was told last to look: it may be told the same at every visit until then.
    last: u64,
}

#[derive(Debug)]
struct Wheel {
    base: u64,
    /// Slots with any bit, by cycle modulo 64.
    any: u64,
    words: usize,
    /// Words of `filled` per slot.
    summary: usize,
    /// Two bits per PE, its router and its core, which share memory: per group of slots, a word of each of them for
    /// each 32 PEs.
    bits: Box<[[u64; NEAR]]>,
    /// Per slot, a bit per word of `bits` that has any.
    filled: Box<[u64]>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Wakes {
    /// For an engine that looks at everything.
    pub(crate) fn always() -> Wakes {
        Wakes {
            wheel: None,
            latest: 0,
            looks: Vec::new(),
            retimed: Box::default(),
            ends: BTreeSet::new(),
        }
    }

    /// For `count` PEs.
    pub(crate) fn wheel(count: u32) -> Wakes {
        let words = (2 * count as usize).div_ceil(64);
        let bits = vec![[0; NEAR]; words * SLOTS as usize / NEAR].into_boxed_slice();
        let summary = words.div_ceil(64);
        let filled = vec![0; summary * SLOTS as usize].into_boxed_slice();
        let heap = BinaryHeap::new();
        Wakes {
            wheel: Some(Wheel { base: 0, any: 0, words, summary, bits, filled, heap }),
            latest: 0,
            looks: Vec::new(),
            retimed: Box::default(),
            ends: BTreeSet::new(),
        }
    }

    /// Cores arrange looks of their own.
    pub(crate) fn with_looks(&mut self, count: u32) {
        self.looks = vec![Look { own: u64::MAX, told: 0, last: u64::MAX }; count as usize];
        self.retimed = vec![0; count.div_ceil(64) as usize].into_boxed_slice();
    }

    /// Words on their way to a core come at other times than was known.
    #[inline]
    pub(crate) fn retimed(&mut self, pe: u32) {
        if let Some(some) = self.retimed.get_mut(pe as usize / 64) {
            *some |= 1 << (pe % 64);
        }
    }

    /// Whether any did since that was asked last.
    #[inline]
    pub(crate) fn were_retimed(&mut self, pe: u32) -> bool {
        let Some(some) = self.retimed.get_mut(pe as usize / 64) else { return false };
        let before = *some;
        *some &= !(1 << (pe % 64));
        before != *some
    }

    /// Whether only what was woken is looked at.
    pub(crate) fn are_kept(&self) -> bool {
        self.wheel.is_some()
    }

    /// Bytes of the bitmaps.
    pub(crate) fn table_bytes(&self) -> usize {
        self.wheel.as_ref().map_or(0, |wheel| size_of_val(&*wheel.bits))
            + size_of_val(&*self.looks)
            + size_of_val(&*self.retimed)
    }

    /// Looks at a router in cycle `at`.
    #[inline]
    pub(crate) fn router(&mut self, pe: u32, at: u64) {
        match &mut self.wheel {
            Some(wheel) => wheel.wake(2 * pe, at),
            None => self.latest = self.latest.max(at),
        }
    }

    /// Looks at a core in cycle `at`.
    pub(crate) fn core(&mut self, pe: u32, at: u64) {
        if let Some(look) = self.looks.get_mut(pe as usize) {
            look.told = look.told.max(at);
            if std::mem::replace(&mut look.last, at) == at {
                return;
            }
        }
        match &mut self.wheel {
            Some(wheel) => wheel.wake(2 * pe + 1, at),
            None => self.latest = self.latest.max(at),
        }
    }

    /// The look of its own that a core waits for is in cycle `at`, and in no other.
    pub(crate) fn look(&mut self, pe: u32, at: u64) {
        let Some(look) = self.looks.get_mut(pe as usize) else { return };
        let before = std::mem::replace(&mut look.own, at);
        if let Some(wheel) = &mut self.wheel
            && at != before
            && at != u64::MAX
        {
            wheel.wake(2 * pe + 1, at);
        }
    }

    /// Has the host fetch what is known of a core's looks, ahead of its use.
    pub(crate) fn fetch(&self, pe: u32) {
        self.looks.get(pe as usize).into_iter().for_each(prefetch);
    }

    /// Whether a core was to be looked at in cycle `t` only for what has been put off since.
    pub(crate) fn is_put_off(&self, pe: u32, t: u64) -> bool {
        self.looks.get(pe as usize).is_some_and(|look| look.told < t && t < look.own)
    }

    /// Looks at a core in cycle `at`, unless that is called off.
    pub(crate) fn end(&mut self, pe: u32, at: u64) {
        self.ends.insert((at, pe));
    }

    /// Calls that off.
    pub(crate) fn call_off(&mut self, pe: u32, at: u64) {
        self.ends.remove(&(at, pe));
    }

    /// Notes what is to be looked at, where cores arrange looks of their own.
    pub(crate) fn note(&self, noter: &mut Noter<'_>) {
        for Look { own, told, last } in &self.looks {
            [own, told, last].into_iter().for_each(|&cycle| noter.ahead(cycle));
        }
        noter.only(self.ends.is_empty());
        for (at, index) in self.wheel.iter().flat_map(Wheel::all) {
            noter.cycle(at);
            noter.value(index);
        }
    }

    /// All wakes come so many cycles later; none is called off any more.
    pub(crate) fn put_off(&mut self, by: u64) {
        for Look { own, told, last } in &mut self.looks {
            for cycle in [own, told, last].into_iter().filter(|cycle| **cycle != u64::MAX) {
                *cycle += by;
            }
        }
        let ends = std::mem::take(&mut self.ends);
        if let Some(wheel) = &mut self.wheel {
            wheel.put_off(by);
            ends.into_iter().for_each(|(end, pe)| wheel.wake(2 * pe + 1, end + by));
        }
    }

    /// All looks to come: twice the PE for its router and one more for its core.
    pub(crate) fn all(&self) -> impl Iterator<Item = u32> {
        let ends = self.ends.iter().map(|&(_, pe)| 2 * pe + 1);
        self.wheel.iter().flat_map(Wheel::all).map(|(_, index)| index).chain(ends)
    }

    /// Takes out all looks at routers, with their cycles.
    pub(crate) fn take_routers(&mut self) -> Vec<(u32, u64)> {
        let Some(wheel) = &mut self.wheel else { return Vec::new() };
        let (routers, others): (Vec<_>, Vec<_>) =
            wheel.take_all().into_iter().partition(|(_, index)| index % 2 == 0);
        others.into_iter().for_each(|(at, index)| wheel.wake(index, at));
        routers.into_iter().map(|(at, index)| (index / 2, at)).collect()
    }

    /// The next cycle with a wake; the end of time without one.
    pub(crate) fn next(&self) -> u64 {
        let next = self.wheel.as_ref().map_or(u64::MAX, Wheel::next);
        self.ends.first().map_or(next, |&(end, _)| end.min(next))
    }

    /// The first cycle of which the wakes have not been taken out.
    pub(crate) fn base(&self) -> u64 {
        self.wheel.as_ref().map_or(0, |wheel| wheel.base)
    }

    /// Takes out the wakes of cycle `t`, which is [`Wakes::next`]: appends, in order of PEs,
    /// twice the PE for its router and one more for its core.
    pub(crate) fn take(&mut self, t: u64, visits: &mut Vec<u32>) {
        let Some(wheel) = &mut self.wheel else { return };
        while let Some(&(end, pe)) = self.ends.first().filter(|(end, _)| *end <= t) {
            self.ends.pop_first();
            wheel.wake(2 * pe + 1, end);
        }
        wheel.take(t, visits);
    }

    /// Appends up to so many wakes of cycles to come, the next ones first, as far as is known by now.
    pub(crate) fn foresee(&self, count: usize, visits: &mut Vec<u32>) {
        self.wheel.iter().for_each(|wheel| wheel.foresee(count, visits));
    }
}

impl Wheel {
    #[inline]
    fn wake(&mut self, index: u32, at: u64) {
        debug_assert!(at >= self.base);
        if at - self.base < SLOTS {
            let slot = (at % SLOTS) as usize;
            let word = index as usize / 64;
            let bits = &mut self.bits[slot / NEAR * self.words + word][slot % NEAR];
            if *bits == 0 {
                self.any |= 1 << slot;
                self.filled[slot * self.summary + word / 64] |= 1 << (word % 64);
            }
            *bits |= 1 << (index % 64);
        } else {
            self.heap.push(Reverse((at, index)));
        }
    }

    fn next(&self) -> u64 {
        let turned = self.any.rotate_right((self.base % SLOTS) as u32);
        let near =
            if turned == 0 { u64::MAX } else { self.base + u64::from(turned.trailing_zeros()) };
        self.heap.peek().map_or(near, |Reverse((at, _))| near.min(*at))
    }

    /// All wakes, with their cycles, in order.
    fn all(&self) -> Vec<(u64, u32)> {
        let cycles = self.base..self.base + SLOTS;
        let near = cycles.flat_map(|at| self.in_cycle(at).map(move |index| (at, index)));
        let far = self.heap.iter().map(|&Reverse(wake)| wake);
        let mut all: Vec<(u64, u32)> = near.chain(far).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Takes out all wakes, with their cycles, in order.
    fn take_all(&mut self) -> Vec<(u64, u32)> {
        let (base, mut wakes) = (self.base, Vec::new());
        while self.next() != u64::MAX {
            let (next, mut visits) = (self.next(), Vec::new());
            self.take(next, &mut visits);
            wakes.extend(visits.into_iter().map(|visit| (next, visit)));
        }
        self.base = base;
        wakes
    }

    fn put_off(&mut self, by: u64) {
        let wakes = self.take_all();
        self.base += by;
        wakes.into_iter().for_each(|(at, index)| self.wake(index, at + by));
    }

    fn take(&mut self, t: u64, visits: &mut Vec<u32>) {
        self.base = t;
        while let Some(&Reverse((at, index))) = self.heap.peek() {
            if at - t >= SLOTS {
                break;
            }
            self.heap.pop();
            self.wake(index, at);
        }
        let slot = (t % SLOTS) as usize;
        self.any &= !(1 << slot);
        let (group, slot_in) = (slot / NEAR, slot % NEAR);
        let row = &mut self.bits[group * self.words..(group + 1) * self.words];
        let summary = self.summary;
        for (at, filled) in self.filled[slot * summary..(slot + 1) * summary].iter_mut().enumerate()
        {
            for word in bits(std::mem::take(filled)) {
                let word = at * 64 + word;
                let set = std::mem::take(&mut row[word][slot_in]);
                visits.extend(bits(set).map(|bit| (word * 64 + bit) as u32));
            }
        }
        // The next cycle may use this slot again.
        self.base = t + 1;
    }

    fn foresee(&self, count: usize, visits: &mut Vec<u32>) {
        // On the largest meshes it takes as long to look into a cycle as to visit somebody.
        let most = (SUMMARY / self.summary.max(1)).max(1);
        let ahead = bits(self.any.rotate_right((self.base % SLOTS) as u32)).take(most);
        let coming = ahead.flat_map(|ahead| self.in_cycle(self.base + ahead as u64));
        visits.extend(coming.take(count));
    }

    /// The wakes of a cycle that stand in its slot, in order.
    fn in_cycle(&self, at: u64) -> impl Iterator<Item = u32> {
        let slot = (at % SLOTS) as usize;
        let (group, slot_in) = (slot / NEAR, slot % NEAR);
        let row = &self.bits[group * self.words..(group + 1) * self.words];
        let filled = self.filled[slot * self.summary..(slot + 1) * self.summary].iter();
        let words =
            filled.enumerate().flat_map(|(at, &set)| bits(set).map(move |bit| at * 64 + bit));
        words
            .flat_map(move |word| bits(row[word][slot_in]).map(move |bit| (word * 64 + bit) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_off_does_not_come() {
        let mut wakes = Wakes::wheel(8);
        for (pe, at) in [(1, 70), (2, 5), (3, 70), (4, 300)] {
            wakes.end(pe, at);
        }
        wakes.call_off(2, 5);
        wakes.call_off(4, 300);
        let mut visits = Vec::new();
        assert_eq!(wakes.next(), 70);
        wakes.take(70, &mut visits);
        assert_eq!((visits, wakes.next()), (vec![3, 7], u64::MAX));
    }

    #[test]
    fn what_comes_next_is_foreseen_and_left_where_it_is() {
        let mut wakes = Wakes::wheel(70);
        for (pe, at) in [(69, 62), (1, 62), (2, 65), (3, 65), (4, 90), (5, 1000), (6, 63)] {
            wakes.core(pe, at);
        }
        let foreseen = |wakes: &Wakes, count| {
            let mut visits = vec![7];
            wakes.foresee(count, &mut visits);
            visits
        };
        assert_eq!(foreseen(&wakes, 1), [7, 3]);
        let mut visits = Vec::new();
        wakes.take(62, &mut visits);
        assert_eq!(visits, [3, 139]);
        // In the order of cycles, though later ones stand in slots before; what is far is not known yet.
        assert_eq!(foreseen(&wakes, 2), [7, 13, 5]);
        assert_eq!(foreseen(&wakes, 3), [7, 13, 5, 7]);
        assert_eq!(foreseen(&wakes, 9), [7, 13, 5, 7, 9]);
        assert_eq!(wakes.next(), 63);
        assert_eq!(foreseen(&Wakes::always(), 9), [7]);
    }

    #[test]
    fn wakes_come_out_in_order_and_once() {
        let mut wakes = Wakes::wheel(70);
        for at in [0, 3, 3, 63, 64, 65, 1000] {
            wakes.router(69, at);
            wakes.core(1, at);
        }
        let mut seen = Vec::new();
        while wakes.next() != u64::MAX {
            let (t, mut visits) = (wakes.next(), Vec::new());
            wakes.take(t, &mut visits);
            assert_eq!(visits, [3, 138]);
            seen.push(t);
        }
        assert_eq!(seen, [0, 3, 63, 64, 65, 1000]);
    }
}
