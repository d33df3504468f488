//! Mutations: flips, cuts, copies, splices, and words of the language.

use crate::Rng;

/// No input grows beyond this.
const MAX_BYTES: usize = 64 * 1024;

/// A mutant of a random member of the corpus, by one change or up to eight: single ones are more
/// often accepted, and go deeper.
pub(crate) fn mutate(corpus: &[Vec<u8>], words: &[&str], rng: &mut Rng) -> Vec<u8> {
    let mut input = rng.pick(corpus).cloned().unwrap_or_default();
    let changes = if rng.below(2) == 0 { 1 } else { 1 + rng.below(8) };
    for _ in 0..changes {
        change(&mut input, corpus, words, rng);
    }
    input.truncate(MAX_BYTES);
    input
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], rng: &mut Rng) {
    let at = rng.below(input.len() + 1);
    match rng.below(9) {
        0 => flip_bit(input, rng),
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = rng.bits() as u8;
            }
        }
        2 => input.insert(at, rng.bits() as u8),
        3 => {
            let end = (at + 1 + rng.below(32)).min(input.len());
            input.drain(at.min(end)..end);
        }
        4 => repeat_part(input, at, rng),
        5 => splice(input, at, corpus, rng),
        6 => input.truncate(at),
        7 => extreme_number(input, at, rng),
        _ => {
            let word = rng.pick(words).copied().unwrap_or(" ");
            input.splice(at..at, word.bytes());
        }
    }
}

fn flip_bit(input: &mut [u8], rng: &mut Rng) {
    let at = rng.below(input.len());
    if let Some(byte) = input.get_mut(at) {
        *byte ^= 1 << rng.below(8);
    }
}

/// Copies a stretch to another place, perhaps many times: nesting and long chains come of it.
fn repeat_part(input: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    let end = (at + 1 + rng.below(24)).min(input.len());
    let part = input[at.min(end)..end].to_vec();
    let times = if rng.below(8) == 0 { 1 + rng.below(500) } else { 1 };
    if part.len() * times + input.len() <= MAX_BYTES {
        input.splice(at..at, part.repeat(times));
    }
}

fn splice(input: &mut Vec<u8>, at: usize, corpus: &[Vec<u8>], rng: &mut Rng) {
    let Some(other) = rng.pick(corpus) else { return };
    let from = rng.below(other.len() + 1);
    let to = (from + rng.below(200)).min(other.len());
    input.splice(at..at, other[from..to].iter().copied());
}

/// Numbers at the edges of types, as text and as bytes.
fn extreme_number(input: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    const EDGES: [u64; 10] =
        [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 40, u64::MAX];
    let number = rng.pick(&EDGES).copied().unwrap_or(0);
    if rng.below(2) == 0 {
        input.splice(at..at, number.to_string().bytes());
    } else {
        let width = 1 << rng.below(4);
        let end = (at + width).min(input.len());
        input.splice(at.min(end)..end, number.to_le_bytes().into_iter().take(width));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let corpus = vec![b"layout { }".to_vec(), b"fn f() void { }".to_vec()];
        let run = || {
            let mut rng = Rng::new(42);
            (0..2000).map(|_| mutate(&corpus, &["@as"], &mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
        assert!(run().iter().all(|input| input.len() <= MAX_BYTES));
    }
}
