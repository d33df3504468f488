//! Elements of a vector operation in memory per issue slot (`spec/time-costs.md`).
//!
//! An operation takes a group of elements at a time, as many as the table's width. The group
//! takes as many slots as the ports need for its bits, and as the busiest of the memory's 16-bit
//! banks needs for its accesses: consecutive words lie in consecutive banks, and a bank has one
//! port for reading. Invariant: a function of the row, the target and the operands' first
//! addresses, steps and length.

use super::OpRow;
use crate::cost::Slots;
use crate::target::{Simd, Target};

/// How an operand lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lie {
    /// Byte address of the first element.
    pub address: u16,
    /// Bytes from one element to the next.
    pub step: i16,
    /// Bytes of an element, 2 or 4.
    pub bytes: u8,
}

impl OpRow {
    /// Elements of a group, if nothing but the operation limits it.
    pub fn width(&self, target: &Target) -> u32 {
        match self.width[usize::from(target.simd.column).min(1)] {
            0 => u32::from(target.simd.fmuls_lanes),
            width => u32::from(width),
        }
    }

    /// Issue slots of `length` elements whose operands all lie in memory or are scalars;
    /// `reduces` if all go into one scalar.
    pub fn slots(
        &self,
        target: &Target,
        length: u32,
        dest: Option<Lie>,
        sources: &[Option<Lie>; 3],
        reduces: bool,
    ) -> Slots {
        let (simd, timing) = (&target.simd, &target.timing);
        let width = self.width(target).min(length.max(1));
        let slots = match single(sources, simd) {
            Some(slots) if width == 1 => slots,
            Some(_) | None => group(simd, width, dest, sources),
        };
        let all = if slots == 1 && width == 1 {
            length
        } else {
            (u64::from(length) * u64::from(slots)).div_ceil(u64::from(width)) as u32
        };
        let waits = length.saturating_mul(timing.reduction);
        if reduces && self.dest.is_float() && waits > all {
            let assumed = if target.assumed.timing.reduction > 0 { waits } else { 0 };
            return Slots { all: waits, assumed };
        }
        let by_lanes = self.width[usize::from(simd.column).min(1)] == 0;
        Slots { all, assumed: if by_lanes && target.assumed.fmuls_lanes { all } else { 0 } }
    }
}

/// Slots of a group of one element, the quick way for at most two sources: they conflict if a word of
/// one lies in the bank of a word of the other.
fn single(sources: &[Option<Lie>; 3], simd: &Simd) -> Option<u32> {
    let [first, second, None] = sources else { return None };
    let (Some(first), Some(second)) = (first, second) else { return Some(1) };
    let apart = (first.address / 2).wrapping_sub(second.address / 2) % 8;
    let [one, other] = [first, second].map(|lie| u16::from(lie.bytes) / 2);
    let clash = apart < other || 8 - apart < one;
    (simd.read_bits >= 64).then_some(if clash { 1 + simd.bank_conflict } else { 1 })
}

/// Slots of a group of `width` elements.
fn group(simd: &Simd, width: u32, dest: Option<Lie>, sources: &[Option<Lie>; 3]) -> u32 {
    let (mut read, mut reads, mut slots) = (0u64, 0, 1);
    for source in sources.iter().flatten() {
        read += banks(source, width);
        reads += if source.step == 0 { 1 } else { width } * u32::from(source.bytes) * 8;
        slots = slots.max(odd_stride(source, width));
    }
    slots = slots.max(reads.div_ceil(simd.read_bits)).max(busiest(read, simd.bank_conflict));
    if let Some(dest) = dest {
        slots = slots.max((width * u32::from(dest.bytes) * 8).div_ceil(simd.write_bits));
        slots = slots.max(busiest(banks(&dest, width), simd.bank_conflict));
        slots = slots.max(odd_stride(&dest, width));
    }
    slots
}

/// One in each byte: an access to each of the eight banks.
const EACH: u64 = 0x0101_0101_0101_0101;

/// Accesses of a group of `width` elements to each bank, one byte per bank.
fn banks(lie: &Lie, width: u32) -> u64 {
    let words = u32::from(lie.bytes) / 2;
    let bank = |address: u16| 8 * (u32::from(address / 2) % 8);
    let row = |address: u16, words: u32| {
        let rest = EACH & ((1u64 << (8 * (words % 8))) - 1);
        EACH * u64::from(words / 8) + rest.rotate_left(bank(address))
    };
    if lie.step == 0 {
        return row(lie.address, words);
    }
    if lie.step == i16::from(lie.bytes) {
        return row(lie.address, words * width);
    }
    let step = |at: u32| lie.address.wrapping_add((lie.step as u16).wrapping_mul(at as u16));
    (0..width).map(|at| row(step(at), words)).sum()
}

/// Slots that the bank with most accesses needs.
fn busiest(banks: u64, conflict: u32) -> u32 {
    let most = banks.to_le_bytes().into_iter().max().unwrap_or(0);
    1 + u32::from(most).saturating_sub(1) * conflict
}

/// Strides of 7 and 9 elements and the like give two elements per slot, though their banks are
/// distinct.
fn odd_stride(lie: &Lie, width: u32) -> u32 {
    let (step, bytes) = (i32::from(lie.step), i32::from(lie.bytes.max(1)));
    let stride = step / bytes;
    let odd = stride != 1 && matches!(stride.rem_euclid(8), 1 | 7) && step % bytes == 0;
    if odd { width.div_ceil(2) } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::TargetId;

    #[test]
    fn the_quick_way_gives_the_same() {
        let simd = &Target::get(TargetId::Wse2).simd;
        let lies = |bytes: u8| {
            (0..16u16).map(move |word| Lie { address: word * 2, step: i16::from(bytes), bytes })
        };
        for (one, other) in [(2, 2), (2, 4), (4, 2), (4, 4)] {
            for first in lies(one) {
                for second in lies(other) {
                    let sources = [Some(first), Some(second), None];
                    let dest = Some(first);
                    assert_eq!(single(&sources, simd), Some(group(simd, 1, dest, &sources)));
                }
                let sources = [None, Some(first), None];
                assert_eq!(single(&sources, simd), Some(group(simd, 1, None, &sources)));
            }
        }
    }
}
