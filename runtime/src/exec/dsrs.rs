//! The descriptor registers of a PE: those that its program names, side by side.
//!
//! Invariant: a register that no instruction names is never read; what is put there is let go.

use dflow_ir::dsd::{DsrFile, DsrRef};

use super::state::Dsr;

/// Descriptor registers, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DsrSet(u64);

impl DsrSet {
    /// Adds a register.
    pub(crate) fn add(&mut self, at: DsrRef) {
        self.0 |= bit(at);
    }

    /// How many it has.
    pub(crate) fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Where a register stands among those that it has, which is to be asked once for a program where that counts.
    #[inline]
    pub(crate) fn place_of(self, at: DsrRef) -> DsrPlace {
        // There are no more than 64: nothing stands in the last place.
        DsrPlace(self.place(at).map_or(u8::MAX, |place| place as u8))
    }

    /// Place of a register among those that it has.
    #[inline]
    fn place(self, at: DsrRef) -> Option<usize> {
        let bit = bit(at);
        (self.0 & bit != 0).then(|| (self.0 & (bit - 1)).count_ones() as usize)
    }
}

/// Files take turns: programs use the first registers of each.
#[inline]
fn bit(at: DsrRef) -> u64 {
    let file = match at.file {
        DsrFile::Dest => 0,
        DsrFile::Src0 => 1,
        DsrFile::Src1 => 2,
    };
    1 << ((usize::from(at.index) * DsrFile::ALL.len() + file) % 64)
}

/// Where a register stands among those of a program: the same on all of its PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DsrPlace(u8);

/// The registers of a set, with what they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dsrs {
    named: DsrSet,
    list: Box<[Dsr]>,
}

impl Dsrs {
    /// Registers that hold nothing yet.
    pub(crate) fn new(named: DsrSet) -> Dsrs {
        Dsrs { named, list: vec![Dsr::default(); named.count()].into() }
    }

    /// What the register in a place holds.
    #[inline]
    pub(crate) fn at(&self, place: DsrPlace) -> Option<&Dsr> {
        self.list.get(usize::from(place.0))
    }

    /// What a register holds.
    #[inline]
    pub(crate) fn get(&self, at: DsrRef) -> Option<&Dsr> {
        self.list.get(self.named.place(at)?)
    }

    /// What a register holds.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: DsrRef) -> Option<&mut Dsr> {
        self.list.get_mut(self.named.place(at)?)
    }
}

#[cfg(test)]
mod tests {
    use dflow_ir::target::{Target, TargetId};

    use super::*;

    #[test]
    fn a_set_has_room_for_the_registers_of_every_target() {
        for id in [TargetId::Wse2, TargetId::Wse3] {
            assert!(usize::from(Target::get(id).dsrs) * DsrFile::ALL.len() <= 64);
        }
    }

    #[test]
    fn registers_stand_side_by_side_in_the_order_of_their_numbers() {
        let at = |file, index| DsrRef { file, index };
        let all = [at(DsrFile::Src1, 3), at(DsrFile::Dest, 1), at(DsrFile::Src0, 15)];
        let mut set = DsrSet::default();
        all.iter().for_each(|&at| set.add(at));
        let mut dsrs = Dsrs::new(set);
        for (&at, moved) in all.iter().zip(1..) {
            dsrs.get_mut(at).unwrap().moved = moved;
        }
        assert_eq!(all.map(|at| dsrs.get(at).unwrap().moved), [1, 2, 3]);
        assert_eq!(dsrs.list.iter().map(|dsr| dsr.moved).collect::<Vec<_>>(), [2, 1, 3]);
        for one in all.into_iter().chain([at(DsrFile::Dest, 0)]) {
            assert_eq!(dsrs.at(set.place_of(one)), dsrs.get(one));
        }
        assert_eq!(dsrs.get(at(DsrFile::Dest, 0)), None);
    }
}
