//! A bounded buffer whose words and places carry the cycle from which they may be seen.
//!
//! Invariants: at most `places` words; places behind the pointer are there once a word has come; a
//! slot's stamp is that of its word while it holds one, else the cycle from which the place may be
//! filled. Stamps never fall along the ring. The stamps of the oldest word and of the next place stand
//! beside the slots too: most looks want no more than these.

use super::pattern::Pattern;

/// One slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// First cycle in which the word, or the free place, may be seen.
    pub(crate) stamp: u64,
    /// The word.
    pub(crate) payload: u32,
    /// Its color (output queues may mix them).
    pub(crate) color: u8,
    /// Control wavelet.
    pub(crate) control: bool,
    /// The router of its own PE advances after it. A control wavelet: a router has done what it
    /// commands.
    pub(crate) advance: bool,
    /// One more than the color by which the host sent it, for a word that an operation passes on
    /// from a stream to a stream (spec/time.md, section 8).
    pub(crate) origin: u8,
}

/// The stamp of a place that is not known to become free.
pub(crate) const NEVER: u64 = u64::MAX;

/// The buffer. Up to `N` places lie in it, more behind a pointer.
#[derive(Clone, Debug)]
pub(crate) struct Ring<const N: usize = 0> {
    near: [Slot; N],
    far: Box<[Slot]>,
    /// Stamp of the oldest word; [`NEVER`] without one.
    first: u64,
    /// From which cycle a word can be pushed; [`NEVER`] while it is full.
    free: u64,
    places: u16,
    head: u16,
    len: u16,
    /// Control wavelets among the words.
    controls: u16,
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Ring<N> {
        Ring::new(0)
    }
}

impl<const N: usize> Ring<N> {
    /// An empty buffer.
    pub(crate) fn new(places: u32) -> Ring<N> {
        let mut ring = Ring::unopened(places);
        ring.open();
        ring
    }

    /// The same, without memory for more than `N` places: [`Ring::open`] is called before the first word.
    pub(crate) fn unopened(places: u32) -> Ring<N> {
        let far = Box::default();
        let free = if places == 0 { NEVER } else { 0 };
        let (near, first) = ([Slot::default(); N], NEVER);
        Ring { near, far, first, free, places: places as u16, head: 0, len: 0, controls: 0 }
    }

    #[inline]
    fn slot(&self, index: usize) -> &Slot {
        if N != 0 && usize::from(self.places) <= N { &self.near[index] } else { &self.far[index] }
    }

    /// Has memory for all its places.
    pub(crate) fn open(&mut self) {
        if !self.is_open() {
            self.far = vec![Slot::default(); self.places.into()].into();
        }
    }

    /// Whether a word may come.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        usize::from(self.places) <= N || !self.far.is_empty()
    }

    #[inline]
    fn slot_mut(&mut self, index: usize) -> &mut Slot {
        if N != 0 && usize::from(self.places) <= N {
            &mut self.near[index]
        } else {
            &mut self.far[index]
        }
    }

    /// Number of words.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == self.places
    }

    /// Whether it holds a control wavelet.
    pub(crate) fn is_marked(&self) -> bool {
        self.controls != 0
    }

    /// Number of places.
    pub(crate) fn places(&self) -> usize {
        self.places.into()
    }

    /// Heap bytes, once it has held a word.
    pub(crate) fn bytes(&self) -> usize {
        if usize::from(self.places) <= N { 0 } else { size_of::<Slot>() * self.places() }
    }

    /// From which cycle a word can be pushed; [`NEVER`] while it is full.
    pub(crate) fn free_from(&self) -> u64 {
        self.free
    }

    /// The stamp of the oldest word; [`NEVER`] without one.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The oldest word.
    pub(crate) fn head(&self) -> Option<&Slot> {
        (self.len != 0).then(|| self.slot(usize::from(self.head)))
    }

    /// The oldest word, if it may be seen in cycle `t`.
    pub(crate) fn visible(&self, t: u64) -> Option<&Slot> {
        if self.first <= t { self.head() } else { None }
    }

    /// Number of words that may be seen in cycle `t`.
    pub(crate) fn seen(&self, t: u64) -> usize {
        self.words().take_while(|word| word.stamp <= t).count()
    }

    /// The words, oldest first.
    pub(crate) fn words(&self) -> impl Iterator<Item = &Slot> {
        (0..self.len()).map(|word| self.slot(self.index(word)))
    }

    /// Where the word or the place stands that comes after so many from the oldest word on.
    #[inline]
    fn index(&self, after: usize) -> usize {
        let (at, places) = (usize::from(self.head) + after, usize::from(self.places));
        if at >= places { at - places } else { at }
    }

    /// From which cycles on its places are free, in order.
    fn free_places(&self) -> impl DoubleEndedIterator<Item = u64> {
        let (places, len) = (usize::from(self.places), usize::from(self.len));
        let free = if self.is_open() { len..places } else { 0..0 };
        free.map(|at| self.slot(self.index(at)).stamp)
    }

    /// From which cycles places are free that are not yet in cycle `t`, last one first.
    pub(crate) fn to_come(&self, t: u64) -> impl Iterator<Item = u64> {
        self.free_places().rev().take_while(move |&stamp| stamp > t)
    }

    /// From which cycle the place that was left so many words ago is free, if it still is.
    pub(crate) fn freed(&self, ago: usize) -> Option<u64> {
        let places = usize::from(self.places);
        let still = self.is_open() && ago + self.len() <= places;
        still.then(|| self.slot((usize::from(self.head) + places - ago) % places).stamp)
    }

    /// Appends a word. The caller has asked [`Ring::free_from`].
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot) {
        debug_assert!(!self.is_full() && self.free_from() < slot.stamp);
        let tail = self.tail();
        *self.slot_mut(tail) = slot;
        if self.len == 0 {
            self.first = slot.stamp;
        }
        self.len += 1;
        self.controls += u16::from(slot.control);
        self.free = if self.is_full() { NEVER } else { self.slot(self.tail()).stamp };
    }

    /// A word that has a place comes before those whose stamps are later.
    pub(crate) fn insert(&mut self, slot: Slot) {
        debug_assert!(!self.is_full());
        let tail = self.tail();
        *self.slot_mut(tail) = slot;
        self.len += 1;
        self.controls += u16::from(slot.control);
        for word in (1..self.len()).rev() {
            let (before, after) = (self.index(word - 1), self.index(word));
            let (one, other) = (*self.slot(before), *self.slot(after));
            if one.stamp > other.stamp {
                *self.slot_mut(before) = other;
                *self.slot_mut(after) = one;
            }
        }
        self.first = self.slot(usize::from(self.head)).stamp;
        self.free = if self.is_full() { NEVER } else { self.slot(self.tail()).stamp };
    }

    /// Takes the oldest word; its place may be filled from cycle `free` on.
    #[inline]
    pub(crate) fn pop(&mut self, free: u64) -> Slot {
        debug_assert!(self.len != 0);
        if self.is_full() {
            self.free = free;
        }
        let slot = self.slot_mut(usize::from(self.head));
        let word = *slot;
        slot.stamp = free;
        self.head = if self.head + 1 == self.places { 0 } else { self.head + 1 };
        self.len -= 1;
        self.controls -= u16::from(word.control);
        self.first = if self.len == 0 { NEVER } else { self.slot(usize::from(self.head)).stamp };
        word
    }

    /// The same as a push and a pop while it is empty: a word that can be seen from cycle `from` on, or as soon as it
    /// has a place, and is gone before another one comes. Its place may be filled from cycle `free` on. Its stamp.
    #[inline]
    pub(crate) fn go_through(&mut self, from: u64, free: u64) -> u64 {
        debug_assert!(self.len == 0 && self.is_open());
        let stamp = from.max(self.free + 1);
        let head = usize::from(self.head);
        self.slot_mut(head).stamp = free;
        self.head = if self.head + 1 == self.places { 0 } else { self.head + 1 };
        self.free = self.slot(usize::from(self.head)).stamp;
        stamp
    }

    /// Whether its words are stamped one cycle apart, the last with `word`, and its places too, the
    /// last with `place`; there are some places, and no control wavelets.
    pub(crate) fn is_even(&self, word: u64, place: u64) -> bool {
        let (len, places) = (usize::from(self.len), usize::from(self.places));
        if len == places || self.controls != 0 || !self.is_open() {
            return false;
        }
        (0..places).all(|at| {
            let stamp = self.slot((usize::from(self.head) + at) % places).stamp;
            let (last, end) = if at < len { (word, len) } else { (place, places) };
            stamp + (end - 1 - at) as u64 == last
        })
    }

    /// How many words can be pushed in cycles of a pattern, if nothing is taken.
    pub(crate) fn room(&self, ups: &Pattern) -> u64 {
        (0..).zip(self.free_places()).take_while(|&(at, stamp)| stamp <= ups.after(at)).count()
            as u64
    }

    /// Passes `count` words on: the n-th that comes has its stamp by the first of the functions, and the
    /// place of the n-th that is taken is free from a cycle on by the second, while each finds
    /// a place. As many words stay as are in it, with these payloads.
    pub(crate) fn pass(
        &mut self,
        count: u64,
        like: Slot,
        (stamp, place): (impl Fn(u64) -> u64, impl Fn(u64) -> u64),
        payloads: &mut impl Iterator<Item = u32>,
    ) {
        let (len, places) = (u64::from(self.len), u64::from(self.places));
        if places == 0 {
            return;
        }
        let head = u64::from(self.head);
        for at in count..count + places {
            let slot = self.slot_mut(((head + at) % places) as usize);
            if at < count + len {
                if let Some(new) = at.checked_sub(len) {
                    *slot = Slot { stamp: stamp(new), ..like };
                }
                slot.payload = payloads.next().unwrap_or_default();
            } else if let Some(taken) = at.checked_sub(places) {
                slot.stamp = place(taken);
            }
        }
        self.head = ((head + count) % places) as u16;
        self.first = self.head().map_or(NEVER, |head| head.stamp);
        self.free = if self.is_full() { NEVER } else { self.slot(self.tail()).stamp };
    }

    /// All its stamps are so many cycles later.
    pub(crate) fn put_off(&mut self, by: u64) {
        if self.is_open() {
            for at in 0..self.places() {
                let stamp = &mut self.slot_mut(at).stamp;
                *stamp += if *stamp == NEVER { 0 } else { by };
            }
        }
        for stamp in [&mut self.first, &mut self.free] {
            *stamp += if *stamp == NEVER { 0 } else { by };
        }
    }

    /// The payloads of its words, oldest first.
    pub(crate) fn payloads(&mut self, of: impl Fn(&Slot) -> bool, each: &mut impl FnMut(&mut u32)) {
        for word in 0..self.len() {
            let index = self.index(word);
            let slot = self.slot_mut(index);
            if of(slot) {
                each(&mut slot.payload);
            }
        }
    }

    /// All its stamps are so many cycles later, and its words carry other payloads.
    pub(crate) fn shift(&mut self, by: u64, payloads: &mut impl Iterator<Item = u32>) {
        let (len, places) = (usize::from(self.len), usize::from(self.places));
        for at in 0..places {
            let index = (usize::from(self.head) + at) % places;
            let slot = self.slot_mut(index);
            slot.stamp += by;
            if at < len
                && let Some(payload) = payloads.next()
            {
                slot.payload = payload;
            }
        }
        for stamp in [&mut self.first, &mut self.free] {
            *stamp += if *stamp == NEVER { 0 } else { by };
        }
    }

    fn tail(&self) -> usize {
        self.index(self.len.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_comes_before_those_that_are_seen_later() {
        let word = |stamp| Slot { stamp, payload: stamp as u32, ..Slot::default() };
        let mut ring = Ring::<3>::new(3);
        ring.push(word(1));
        ring.pop(2);
        ring.push(word(5));
        ring.push(word(7));
        ring.insert(Slot { control: true, ..word(6) });
        assert!(ring.is_full() && ring.is_marked());
        assert_eq!((ring.first(), ring.free_from()), (5, NEVER));
        let words: Vec<u32> = (8..11).map(|free| ring.pop(free).payload).collect();
        assert_eq!((words, ring.is_marked()), (vec![5, 6, 7], false));
        let mut ring = Ring::<3>::new(3);
        ring.push(word(7));
        ring.insert(word(3));
        assert_eq!((ring.first(), ring.free_from()), (3, 0));
    }
}
