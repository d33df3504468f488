//! Lists that are empty on nearly all PEs: a pointer there, and no memory.

use std::ops::{Deref, DerefMut};

/// A list that is empty nearly everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::box_collection, reason = "a list costs three words where there is none")]
pub(crate) struct Rare<T>(Option<Box<Vec<T>>>);

impl<T> Rare<T> {
    /// Appends an item.
    pub(crate) fn push(&mut self, item: T) {
        self.0.get_or_insert_default().push(item);
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Rare<T> {
        Rare(None)
    }
}

impl<T> FromIterator<T> for Rare<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Rare<T> {
        let items: Vec<T> = items.into_iter().collect();
        Rare((!items.is_empty()).then(|| Box::new(items)))
    }
}

impl<T> Deref for Rare<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl<T> DerefMut for Rare<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.as_deref_mut().map_or(&mut [], Vec::as_mut_slice)
    }
}

impl<'a, T> IntoIterator for &'a mut Rare<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

impl<'a, T> IntoIterator for &'a Rare<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
