//! CereSZ as `spec/ceresz.md` says it: blocks of 32 values, quantized, predicted by their
//! predecessor, stored as bit planes of fixed length.
//!
//! Arithmetic on values is in f32, multiply and add rounded separately; whether a value keeps
//! its bound is decided in f64. Method: the CereSZ paper (HPDC'24), with the choices that it
//! leaves open fixed in the spec.

use std::fmt;

#[cfg(test)]
mod tests;

/// Values per block.
pub const BLOCK: usize = 32;
/// Length word of a block that is carried verbatim.
pub const RAW: u32 = 0x8000_0000;
/// Bit of a length word: the block's first level stands apart, in its last word.
pub const APART: u32 = 0x40;
/// First word of a container: "CSZ1" in memory.
pub const MAGIC: u32 = u32::from_le_bytes(*b"CSZ1");
/// Words before the block stream: magic, number of values (two), bound (two).
pub const HEADER: usize = 5;

/// Quantized values lie strictly between this and its negative.
const LIMIT: f32 = 1_073_741_824.0;

/// An absolute error bound, with the two constants that are made from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The bound, in units of the values.
    pub eps: f64,
    /// Distance of two quantized values: 2 eps, rounded once.
    pub step: f32,
    /// 1 / (2 eps), rounded once; 0 for a bound of 0.
    pub recip: f32,
}

impl Bound {
    /// From the bound itself, which is at least 0.
    #[must_use]
    pub fn absolute(eps: f64) -> Bound {
        let recip = if eps == 0.0 { 0.0 } else { (1.0 / (2.0 * eps)) as f32 };
        Bound { eps, step: (2.0 * eps) as f32, recip }
    }

    /// From a share of the range over all finite values of a field.
    #[must_use]
    pub fn relative(rel: f64, field: &[f32]) -> Bound {
        let finite = || field.iter().copied().filter(|value| value.is_finite()).map(f64::from);
        let low = finite().fold(f64::INFINITY, f64::min);
        let high = finite().fold(f64::NEG_INFINITY, f64::max);
        Bound::absolute(if low < high { rel * (high - low) } else { 0.0 })
    }
}

/// How blocks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Bits of a block's length.
    pub bits: usize,
    /// How many blocks have their lengths together, in front of what follows them.
    pub group: usize,
    /// Whether a first level stands apart where that is shorter.
    pub apart: bool,
}

impl Form {
    /// As the paper has it.
    pub const PLAIN: Form = Form { bits: 32, group: 1, apart: false };

    fn length_words(&self, blocks: usize) -> usize {
        (blocks * self.bits).div_ceil(32)
    }

    fn raw(&self) -> u32 {
        1 << (self.bits - 1)
    }
}

/// What is wrong with a stream or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Not a container, or one of another version.
    Magic,
    /// It ends within a block.
    Truncated,
    /// A length word that no compressor writes.
    Length(u32),
    /// Words are left over.
    Trailing,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Magic => write!(f, "not a CereSZ container"),
            Malformed::Truncated => write!(f, "the stream ends within a block"),
            Malformed::Length(word) => write!(f, "{word:#010x} is no length word"),
            Malformed::Trailing => write!(f, "words are left after the last block"),
        }
    }
}

impl std::error::Error for Malformed {}

/// The block stream of a field.
#[must_use]
pub fn compress(field: &[f32], bound: &Bound) -> Vec<u32> {
    compress_as(field, bound, &Form::PLAIN)
}

/// The blocks of a field as a file of some form has them.
#[must_use]
pub fn compress_as(field: &[f32], bound: &Bound, form: &Form) -> Vec<u32> {
    let blocks: Vec<Vec<u32>> = field
        .chunks(BLOCK)
        .map(|chunk| {
            let mut block = [chunk[chunk.len() - 1]; BLOCK];
            block[..chunk.len()].copy_from_slice(chunk);
            compress_block(&block, bound, form.apart)
        })
        .collect();
    let mut words = Vec::new();
    for group in blocks.chunks(form.group) {
        let lengths = words.len();
        words.resize(lengths + form.length_words(group.len()), 0);
        for (k, block) in group.iter().enumerate() {
            let length = if block[0] == RAW { form.raw() } else { block[0] };
            words[lengths + k * form.bits / 32] |= length << (k * form.bits % 32);
            words.extend(&block[1..]);
        }
    }
    words
}

/// The field of `n` values that a block stream holds.
///
/// # Errors
/// The stream is none of a field of that length.
pub fn decompress(words: &[u32], n: usize, bound: &Bound) -> Result<Vec<f32>, Malformed> {
    decompress_as(words, n, bound, &Form::PLAIN)
}

/// The same for blocks as a file of some form has them.
///
/// # Errors
/// They are none of a field of that length.
pub fn decompress_as(
    words: &[u32],
    n: usize,
    bound: &Bound,
    form: &Form,
) -> Result<Vec<f32>, Malformed> {
    let mut field = Vec::new();
    let mut rest = words;
    let mut left = n.div_ceil(BLOCK);
    while left > 0 {
        let count = left.min(form.group);
        let lengths =
            rest.split_at_checked(form.length_words(count)).ok_or(Malformed::Truncated)?;
        rest = lengths.1;
        for k in 0..count {
            let word = lengths.0[k * form.bits / 32] >> (k * form.bits % 32);
            let length = word & (u32::MAX >> (32 - form.bits));
            let length = if length == form.raw() { RAW } else { length };
            if length & APART != 0 && !form.apart {
                return Err(Malformed::Length(length));
            }
            rest = decompress_block(length, rest, bound, &mut field)?;
        }
        left -= count;
    }
    field.truncate(n);
    if rest.is_empty() { Ok(field) } else { Err(Malformed::Trailing) }
}

/// A container: header and block stream.
#[must_use]
pub fn encode(field: &[f32], bound: &Bound) -> Vec<u32> {
    let n = field.len() as u64;
    let eps = bound.eps.to_bits();
    let mut words = vec![MAGIC, n as u32, (n >> 32) as u32, eps as u32, (eps >> 32) as u32];
    words.extend(compress(field, bound));
    words
}

/// The field in a container.
///
/// # Errors
/// It is no container, or its stream does not fit its header.
pub fn decode(words: &[u32]) -> Result<Vec<f32>, Malformed> {
    let &[MAGIC, n0, n1, e0, e1, ref stream @ ..] = words else {
        return Err(Malformed::Magic);
    };
    let n = u64::from(n0) | u64::from(n1) << 32;
    // Every block has a word.
    if n.div_ceil(BLOCK as u64) > stream.len() as u64 {
        return Err(Malformed::Truncated);
    }
    let eps = f64::from_bits(u64::from(e0) | u64::from(e1) << 32);
    decompress(stream, n as usize, &Bound::absolute(eps))
}

fn compress_block(block: &[f32; BLOCK], bound: &Bound, apart: bool) -> Vec<u32> {
    let Some(levels) = quantize(block, bound) else {
        return std::iter::once(RAW).chain(block.map(f32::to_bits)).collect();
    };
    let whole = coded(&levels, 0);
    if !apart {
        return whole;
    }
    let mut split = coded(&levels, levels[0]);
    split[0] |= APART;
    split.push(levels[0] as u32);
    if split.len() < whole.len() { split } else { whole }
}

/// A block whose first level is told from `before`.
fn coded(levels: &[i32; BLOCK], mut before: i32) -> Vec<u32> {
    let steps = levels.map(|level| level - std::mem::replace(&mut before, level));
    let length = steps.iter().map(|step| u32::BITS - step.unsigned_abs().leading_zeros()).max();
    let length = length.unwrap_or(0);
    let mut words = vec![length];
    if length > 0 {
        words.push(gather(|i| steps[i] < 0));
        words.extend((0..length).map(|k| gather(|i| steps[i].unsigned_abs() >> k & 1 != 0)));
    }
    words
}

/// The block as multiples of the step, unless a value cannot be carried that way.
fn quantize(block: &[f32; BLOCK], bound: &Bound) -> Option<[i32; BLOCK]> {
    let mut levels = [0; BLOCK];
    for (level, &value) in levels.iter_mut().zip(block) {
        let scaled = (value * bound.recip + 0.5).floor();
        if !(scaled > -LIMIT && scaled < LIMIT) {
            return None;
        }
        *level = scaled as i32;
        let error = f64::from(restore(*level, bound)) - f64::from(value);
        if error.is_nan() || error.abs() > bound.eps {
            return None;
        }
    }
    Some(levels)
}

fn restore(level: i32, bound: &Bound) -> f32 {
    level as f32 * bound.step
}

/// A word with bit `i` where `bit(i)` holds.
fn gather(bit: impl Fn(usize) -> bool) -> u32 {
    (0..BLOCK).fold(0, |word, i| word | u32::from(bit(i)) << i)
}

/// Reads a block of some length; gives what follows it.
fn decompress_block<'a>(
    length: u32,
    words: &'a [u32],
    bound: &Bound,
    field: &mut Vec<f32>,
) -> Result<&'a [u32], Malformed> {
    if length == RAW {
        let (body, rest) = words.split_at_checked(BLOCK).ok_or(Malformed::Truncated)?;
        field.extend(body.iter().map(|&bits| f32::from_bits(bits)));
        return Ok(rest);
    }
    let planes = length & 31;
    let is_apart = length & APART != 0;
    let take = planes as usize + usize::from(planes > 0) + usize::from(is_apart);
    if length & !(APART | 31) != 0 || take > BLOCK {
        return Err(Malformed::Length(length));
    }
    let (body, rest) = words.split_at_checked(take).ok_or(Malformed::Truncated)?;
    let (&level, body) = match body.split_last() {
        Some(split) if is_apart => split,
        _ => (&0, body),
    };
    let (signs, planes) = body.split_first().map_or((0, body), |(&signs, planes)| (signs, planes));
    let mut level = level as i32;
    for i in 0..BLOCK {
        let size = planes.iter().rev().fold(0, |size, plane| size << 1 | plane >> i & 1) as i32;
        let step = if signs >> i & 1 != 0 { -size } else { size };
        level = level.wrapping_add(step);
        field.push(restore(level, bound));
    }
    Ok(rest)
}
