//! The random generators of a PE.
//!
//! Each is the shift register `x^23 + x^18 + 1`, advanced 128 steps per word, in the form of most
//! textbooks (Fibonacci, shifted right: tap `n` is bit `23 - n`); a word is its low half (assumed:
//! what is public names polynomial, seed and steps only). All start from the documented seed;
//! generator `n` takes it rotated left by `n` bits, so that they differ (assumed likewise).

const MASK: u32 = (1 << 23) - 1;
const SEED: u32 = 0xdead_beef;

/// As many as any target has.
const COUNT: usize = 4;

/// States of all generators, and which one is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generators {
    bits: [u32; COUNT],
    active: u8,
}

impl Default for Generators {
    fn default() -> Generators {
        let start = |number: usize| SEED.rotate_left(number as u32) & MASK;
        Generators { bits: std::array::from_fn(start), active: 0 }
    }
}

impl Generators {
    /// Chooses generator `id` modulo `count`, the target's number of them.
    pub(crate) fn choose(&mut self, id: u16, count: u8) {
        self.active = (id % u16::from(count.clamp(1, COUNT as u8))) as u8;
    }

    /// The next word of the active one.
    pub(crate) fn next(&mut self) -> u16 {
        let state = &mut self.bits[usize::from(self.active)];
        for _ in 0..128 {
            let new = (*state ^ *state >> 5) & 1;
            *state = *state >> 1 | new << 22;
        }
        *state as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generators_go_their_own_ways() {
        let mut all = Generators::default();
        let first = [all.next(), all.next()];
        all.choose(5, 4);
        let second = [all.next(), all.next()];
        assert_ne!(first, second);
        all.choose(4, 4);
        let third = all.next();
        let mut alone = Generators::default();
        assert_eq!([alone.next(), alone.next(), alone.next()], [first[0], first[1], third]);
    }
}
