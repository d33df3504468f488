//! Sets of a router's lanes.

/// Lanes, as bits: those of most routers are in the first word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lanes {
    first: u64,
    rest: u64,
}

impl Lanes {
    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.first | self.rest == 0
    }

    /// Whether a lane is one of them.
    #[inline]
    pub(super) fn has(self, lane: u8) -> bool {
        let word = if lane < 64 { self.first } else { self.rest };
        word >> (lane % 64) & 1 != 0
    }

    /// A lane is one of them.
    #[inline]
    pub(super) fn add(&mut self, lane: u8) {
        *self.word(lane) |= 1 << (lane % 64);
    }

    /// A lane is none of them.
    #[inline]
    pub(super) fn remove(&mut self, lane: u8) {
        *self.word(lane) &= !(1 << (lane % 64));
    }

    /// Takes one out, the least first.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<u8> {
        if self.first != 0 {
            let lane = self.first.trailing_zeros();
            self.first &= self.first - 1;
            return Some(lane as u8);
        }
        if self.rest == 0 {
            return None;
        }
        let lane = self.rest.trailing_zeros();
        self.rest &= self.rest - 1;
        Some(64 + lane as u8)
    }

    /// Those of them that are not among others.
    #[inline]
    pub(super) fn without(self, others: Lanes) -> Lanes {
        Lanes { first: self.first & !others.first, rest: self.rest & !others.rest }
    }

    /// Those of them that are not among others, as bits, as far as they are among the first 64.
    #[inline]
    pub(super) fn first_without(self, others: Lanes) -> u64 {
        self.first & !others.first
    }

    /// Whether all are among the first 64.
    #[inline]
    pub(super) fn are_few(self) -> bool {
        self.rest == 0
    }

    #[inline]
    fn word(&mut self, lane: u8) -> &mut u64 {
        if lane < 64 { &mut self.first } else { &mut self.rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_come_out_in_order() {
        let mut lanes = Lanes::default();
        for lane in [119, 3, 64, 63, 3, 0] {
            lanes.add(lane);
        }
        lanes.remove(64);
        let mut others = Lanes::default();
        others.add(3);
        assert!(lanes.has(119) && lanes.has(63) && !lanes.has(64) && !lanes.has(55));
        let mut left = lanes.without(others);
        assert_eq!(lanes.first_without(others), 1 << 63 | 1);
        assert!(!lanes.are_few() && others.are_few());
        let order: Vec<u8> = std::iter::from_fn(|| left.pop()).collect();
        assert_eq!((order, left.is_empty()), (vec![0, 63, 119], true));
    }
}
