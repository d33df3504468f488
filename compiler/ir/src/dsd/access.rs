//! From a memory descriptor to its sequence of byte addresses.
//!
//! An [`Access`] is a small value that stands at one element and moves forward: by one, or by
//! many at once. Addresses wrap at 16 bits as the machine's do; whether they lie in memory is
//! judged at the act. Moving past the last element goes on in the outermost dimension, since
//! another operand may be what decides the length of an operation.
//!
//! Invariant: the sequence is that of nested loops over the dimensions, the last one fastest.

use cranelift_entity::PrimaryMap;

use super::{Dsd, DsdKind};
use crate::program::{Shape, ShapeId};

/// Dimensions of a mem4d descriptor at most.
pub const MAX_DIMS: usize = 4;

/// A position in a vector in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Elements from here to the last.
    remaining: u32,
    /// Byte address of the element.
    address: u16,
    /// Index of the outermost dimension.
    outermost: u8,
    /// Dimensions, innermost first.
    dims: [Dim; MAX_DIMS],
}

/// A dimension and where in it we are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Dim {
    /// Elements; at least 1. The outermost dimension has no end.
    extent: u16,
    /// Elements behind us, below `extent`; unused in the outermost dimension.
    position: u16,
    /// Bytes from element to element, wrapping.
    step: u16,
}

impl Access {
    /// Stands at the first element of a memory descriptor; an element has `element_bytes` bytes,
    /// which scales the strides. `None` for other kinds of descriptors, unknown shapes, and
    /// shapes of no or more than four dimensions.
    pub fn new(
        dsd: Dsd,
        element_bytes: u16,
        shapes: &PrimaryMap<ShapeId, Shape>,
    ) -> Option<Access> {
        let mut access = Access {
            remaining: 0,
            address: dsd.base(),
            outermost: 0,
            dims: [Dim::default(); MAX_DIMS],
        };
        match dsd.kind() {
            DsdKind::Mem1d => {
                access.remaining = u32::from(dsd.extent());
                access.dims[0] = Dim::new(dsd.extent(), dsd.stride(), element_bytes);
            }
            DsdKind::Mem4d => {
                let shape = shapes.get(dsd.shape())?;
                access.outermost = u8::try_from(shape.dims.len().checked_sub(1)?).ok()?;
                access.remaining = u32::try_from(shape.count()).unwrap_or(u32::MAX);
                for (index, &(extent, stride)) in shape.dims.iter().rev().enumerate() {
                    *access.dims.get_mut(index)? = Dim::new(extent, stride, element_bytes);
                }
            }
            DsdKind::Unset | DsdKind::FabIn | DsdKind::FabOut | DsdKind::Ring => return None,
        }
        Some(access)
    }

    /// Byte address of the element we stand at (after the last: of the one that would follow in
    /// the outermost dimension, which is where a register that saves its address stands).
    #[inline]
    pub fn address(&self) -> u16 {
        self.address
    }

    /// Elements from here to the last; from [`Access::new`] on, the vector's length.
    #[inline]
    pub fn remaining(&self) -> u32 {
        self.remaining
    }

    /// Steps to the next element.
    #[inline]
    pub fn advance(&mut self) {
        self.remaining = self.remaining.saturating_sub(1);
        if self.outermost == 0 {
            self.address = self.address.wrapping_add(self.dims[0].step);
        } else {
            self.carry();
        }
    }

    fn carry(&mut self) {
        for (index, dim) in self.dims.iter_mut().enumerate() {
            self.address = self.address.wrapping_add(dim.step);
            dim.position += 1;
            if index == usize::from(self.outermost) {
                dim.position = 0;
                return;
            }
            if dim.position < dim.extent {
                return;
            }
            dim.position = 0;
            self.address = self.address.wrapping_sub(dim.step.wrapping_mul(dim.extent));
        }
    }

    /// Steps over `count` elements at once.
    pub fn advance_by(&mut self, count: u32) {
        self.remaining = self.remaining.saturating_sub(count);
        let mut count = count;
        for dim in &mut self.dims[..usize::from(self.outermost)] {
            let position = u64::from(dim.position) + u64::from(count);
            // An extent is at least 1, so the quotient is no larger than the dividend was.
            count = (position / u64::from(dim.extent)) as u32;
            let position = (position % u64::from(dim.extent)) as u16;
            let moved = position.wrapping_sub(dim.position);
            self.address = self.address.wrapping_add(moved.wrapping_mul(dim.step));
            dim.position = position;
        }
        let step = self.dims[usize::from(self.outermost)].step;
        self.address = self.address.wrapping_add((count as u16).wrapping_mul(step));
    }

    /// The elements ahead that lie in one line: how many (from this one on, at least 1 while
    /// any remain) and the bytes from one to the next, wrapping. For loops over whole lines.
    #[inline]
    pub fn line(&self) -> (u32, u16) {
        let dim = self.dims[0];
        let length = match self.outermost {
            0 => self.remaining,
            _ => self.remaining.min(u32::from(dim.extent - dim.position)),
        };
        (length, dim.step)
    }
}

impl Dim {
    fn new(extent: u16, stride: i16, element_bytes: u16) -> Dim {
        let step = (stride as u16).wrapping_mul(element_bytes);
        Dim { extent: extent.max(1), position: 0, step }
    }
}

impl Iterator for Access {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        if self.remaining == 0 {
            return None;
        }
        let address = self.address;
        self.advance();
        Some(address)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shapes(dims: Vec<(u16, i16)>) -> PrimaryMap<ShapeId, Shape> {
        let mut shapes = PrimaryMap::new();
        shapes.push(Shape { dims });
        shapes
    }

    fn mem4d(base: u16) -> Dsd {
        Dsd::mem4d(base, ShapeId::from_u32(0), false)
    }

    /// The model: nested loops.
    fn addresses(base: u16, element: u16, dims: &[(u16, i16)]) -> Vec<u16> {
        let mut found = vec![i64::from(base)];
        for &(extent, stride) in dims {
            let step = i64::from(stride) * i64::from(element);
            found = found
                .into_iter()
                .flat_map(|start| (0..i64::from(extent)).map(move |i| start + i * step))
                .collect();
        }
        found.into_iter().map(|address| address as u16).collect()
    }

    fn dims() -> impl Strategy<Value = Vec<(u16, i16)>> {
        proptest::collection::vec((0u16..7, any::<i16>()), 1..=4)
    }

    proptest! {
        #[test]
        fn mem4d_is_nested_loops(base: u16, wide: bool, dims in dims()) {
            let element = if wide { 4 } else { 2 };
            let access = Access::new(mem4d(base), element, &shapes(dims.clone())).unwrap();
            let model = addresses(base, element, &dims);
            prop_assert_eq!(access.remaining() as usize, model.len());
            prop_assert_eq!(access.collect::<Vec<_>>(), model);
        }

        #[test]
        fn mem1d_is_a_loop(base: u16, extent in 0u16..300, stride: i16) {
            let access = Access::new(Dsd::mem1d(base, extent, stride, false), 2, &PrimaryMap::new()).unwrap();
            prop_assert_eq!(access.collect::<Vec<_>>(), addresses(base, 2, &[(extent, stride)]));
        }

        #[test]
        fn a_leap_is_many_steps(base: u16, dims in dims(), first in 0u32..50, count in 0u32..3000) {
            let mut stepped = Access::new(mem4d(base), 4, &shapes(dims)).unwrap();
            stepped.advance_by(first);
            let mut leapt = stepped;
            leapt.advance_by(count);
            (0..count).for_each(|_| stepped.advance());
            prop_assert_eq!(leapt, stepped);
        }

        #[test]
        fn lines_cover_the_vector(base: u16, dims in dims()) {
            let mut access = Access::new(mem4d(base), 2, &shapes(dims.clone())).unwrap();
            let mut found = Vec::new();
            while access.remaining() > 0 {
                let (length, step) = access.line();
                prop_assert!(length > 0);
                found.extend((0..length).map(|i| access.address().wrapping_add((i as u16).wrapping_mul(step))));
                access.advance_by(length);
            }
            prop_assert_eq!(found, addresses(base, 2, &dims));
        }
    }

    #[test]
    fn the_end_is_one_past_the_outermost_dimension() {
        let mut access = Access::new(mem4d(100), 2, &shapes(vec![(3, 10), (4, 1)])).unwrap();
        access.advance_by(12);
        assert_eq!((access.address(), access.remaining()), (160, 0));
        access.advance();
        assert_eq!((access.address(), access.remaining()), (162, 0));
    }

    #[test]
    fn other_descriptors_have_no_addresses() {
        assert_eq!(Access::new(Dsd::default(), 2, &PrimaryMap::new()), None);
        assert_eq!(Access::new(mem4d(0), 2, &PrimaryMap::new()), None);
        assert_eq!(Access::new(mem4d(0), 2, &shapes(vec![])), None);
        assert_eq!(Access::new(mem4d(0), 2, &shapes(vec![(1, 1); 5])), None);
        let huge = shapes(vec![(u16::MAX, 1); 4]);
        assert_eq!(Access::new(mem4d(0), 2, &huge).unwrap().remaining(), u32::MAX);
        assert!(size_of::<Access>() <= 32);
    }
}
