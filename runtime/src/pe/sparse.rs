//! Tables of which most PEs use a few entries side by side: at wafer scale memory that is touched for
//! the first time costs more than what is done with it.

use std::ops::{Index, IndexMut};

/// The entries of a table from the first to the last that is in use.
#[derive(Debug)]
pub(crate) struct Sparse<T> {
    from: usize,
    list: Vec<T>,
}

impl<T> Default for Sparse<T> {
    fn default() -> Sparse<T> {
        Sparse { from: 0, list: Vec::new() }
    }
}

impl<T> Sparse<T> {
    /// An entry, if it is there.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.list.get(at.wrapping_sub(self.from))
    }

    /// An entry, if it is there.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.list.get_mut(at.wrapping_sub(self.from))
    }

    /// The first that is there.
    pub(crate) fn first(&self) -> Option<&T> {
        self.list.first()
    }

    /// The entries that are there, in order, with their places.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.list.iter_mut().enumerate().map(|(at, entry)| (self.from + at, entry))
    }

    /// The entries that are there, in order, with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.list.iter().enumerate().map(|(at, entry)| (self.from + at, entry))
    }
}

impl<T: Default> Sparse<T> {
    /// An entry, made if need be, as are those between it and others.
    #[inline]
    pub(crate) fn entry(&mut self, at: usize) -> &mut T {
        if self.get(at).is_none() {
            self.grow(at);
        }
        &mut self[at]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, at: usize) {
        let old = std::mem::take(&mut self.list);
        let end = self.from + old.len();
        let (first, last) =
            if old.is_empty() { (at, at) } else { (at.min(self.from), at.max(end - 1)) };
        let before = if old.is_empty() { 0 } else { self.from - first };
        self.list = Vec::with_capacity(last + 1 - first);
        self.list.resize_with(before, T::default);
        self.list.extend(old);
        self.list.resize_with(last + 1 - first, T::default);
        self.from = first;
    }
}

impl<T> Index<usize> for Sparse<T> {
    type Output = T;

    /// An entry that is there.
    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.list[at.wrapping_sub(self.from)]
    }
}

impl<T> IndexMut<usize> for Sparse<T> {
    /// An entry that is there.
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.list[at.wrapping_sub(self.from)]
    }
}

#[cfg(test)]
mod tests {
    use super::Sparse;

    #[test]
    fn entries_are_made_from_the_first_to_the_last() {
        let mut table = Sparse::<u32>::default();
        assert_eq!(table.get(0), None);
        for (at, entries) in [(5, vec![(5, 5)]), (7, vec![(5, 5), (6, 0), (7, 7)])] {
            *table.entry(at) = at as u32;
            assert_eq!(table.iter().map(|(at, &entry)| (at, entry)).collect::<Vec<_>>(), entries);
        }
        *table.entry(4) = 4;
        *table.entry(6) += 1;
        assert_eq!(
            [3, 4, 5, 6, 7, 8].map(|at| table.get(at).copied()),
            [None, Some(4), Some(5), Some(1), Some(7), None]
        );
    }
}
