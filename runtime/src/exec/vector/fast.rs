//! Kernels on chunks of lanes, in a form that compilers turn into SIMD code.
//!
//! Each equals its row's kernel on every lane (a property test holds them together). A row
//! without one goes element by element.

use std::sync::OnceLock;

use dflow_ir::dsd::op::DsdOp;

use super::walk::Walk;

/// Elements per chunk.
pub(crate) const CHUNK: usize = 64;

/// A chunk of raw elements.
pub(crate) type Lanes = [u32; CHUNK];

/// Computes all lanes of a chunk.
pub(crate) type LaneKernel = fn(&[Lanes; 3], &mut Lanes);

/// The chunk kernel of a row, if it has one.
pub(super) fn kernel(op: u8) -> Option<LaneKernel> {
    static KERNELS: OnceLock<Vec<Option<LaneKernel>>> = OnceLock::new();
    let kernels = KERNELS.get_or_init(|| DsdOp::all().map(|op| by_name(op.row().name)).collect());
    kernels.get(usize::from(op)).copied().flatten()
}

fn by_name(name: &str) -> Option<LaneKernel> {
    Some(match name {
        "fadds" => |l, out| each(l, out, |a, b, _| add(a, b)),
        "fsubs" => |l, out| each(l, out, |a, b, _| single(f32::from_bits(a) - f32::from_bits(b))),
        "fmuls" => |l, out| each(l, out, |a, b, _| single(f32::from_bits(a) * f32::from_bits(b))),
        "fmacs" => crate::jit::fused_multiply_add().unwrap_or(unfused_multiply_add),
        "fnegs" => |l, out| each(l, out, |a, _, _| a ^ 0x8000_0000),
        "fabss" => |l, out| each(l, out, |a, _, _| a & 0x7fff_ffff),
        "fmovs" | "mov32" => |l, out| each(l, out, |a, _, _| a),
        "mov16" | "fmovh" => |l, out| each(l, out, |a, _, _| a & 0xffff),
        "add16" => |l, out| each(l, out, |a, b, _| a.wrapping_add(b) & 0xffff),
        "sub16" => |l, out| each(l, out, |a, b, _| a.wrapping_sub(b) & 0xffff),
        "and16" => |l, out| each(l, out, |a, b, _| a & b & 0xffff),
        "or16" => |l, out| each(l, out, |a, b, _| (a | b) & 0xffff),
        "xor16" => |l, out| each(l, out, |a, b, _| (a ^ b) & 0xffff),
        "fnegh" => |l, out| each(l, out, |a, _, _| (a ^ 0x8000) & 0xffff),
        "fabsh" => |l, out| each(l, out, |a, _, _| a & 0x7fff),
        _ => return None,
    })
}

#[inline(always)]
fn each(lanes: &[Lanes; 3], out: &mut Lanes, f: impl Fn(u32, u32, u32) -> u32) {
    let [first, second, third] = lanes;
    for at in 0..CHUNK {
        out[at] = f(first[at], second[at], third[at]);
    }
}

#[inline(always)]
fn add(a: u32, b: u32) -> u32 {
    single(f32::from_bits(a) + f32::from_bits(b))
}

/// Raw bits, with the one NaN.
#[inline(always)]
fn single(value: f32) -> u32 {
    if value.is_nan() { 0x7fc0_0000 } else { value.to_bits() }
}

/// Multiply-add on hosts without a fused instruction.
pub(super) fn unfused_multiply_add(lanes: &[Lanes; 3], out: &mut Lanes) {
    each(lanes, out, multiply_add);
}

/// `a + b * k` with one rounding, without a fused instruction: the product is exact in double
/// precision, the sum is rounded to odd there (its error from the two-sum of Knuth decides),
/// and rounding an odd double to single rounds right (Boldo and Melquiond, 2008).
#[inline(always)]
fn multiply_add(a: u32, b: u32, k: u32) -> u32 {
    let product = f64::from(f32::from_bits(b)) * f64::from(f32::from_bits(k));
    let addend = f64::from(f32::from_bits(a));
    let sum = product + addend;
    let shadow = sum - product;
    let error = (product - (sum - shadow)) + (addend - shadow);
    let bits = sum.to_bits();
    let inexact = error != 0.0 && sum.is_finite() && bits & 1 == 0;
    let away = (error > 0.0) == (sum > 0.0);
    let odd = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    single(f64::from_bits(if inexact { odd } else { bits }) as f32)
}

/// Reads elements along a walk that stays inside `memory`.
pub(super) fn gather(memory: &[u8], walk: &mut Walk, bytes: u8, lane: &mut [u32]) {
    let count = lane.len();
    if walk.linear() == Some(i16::from(bytes)) {
        let at = usize::from(walk.address());
        let source = &memory[at..at + count * usize::from(bytes)];
        walk.skip(count as u16);
        if bytes == 4 {
            for (value, raw) in lane.iter_mut().zip(source.as_chunks::<4>().0) {
                *value = u32::from_le_bytes(*raw);
            }
        } else {
            for (value, raw) in lane.iter_mut().zip(source.as_chunks::<2>().0) {
                *value = u32::from(u16::from_le_bytes(*raw));
            }
        }
        return;
    }
    for value in lane {
        let at = usize::from(walk.address());
        let raw = &memory[at..at + usize::from(bytes)];
        *value = raw.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
        walk.advance();
    }
}

/// Writes elements along a walk that stays inside `memory`.
pub(super) fn scatter(memory: &mut [u8], walk: &mut Walk, bytes: u8, out: &[u32]) {
    let count = out.len();
    if walk.linear() == Some(i16::from(bytes)) {
        let at = usize::from(walk.address());
        let dest = &mut memory[at..at + count * usize::from(bytes)];
        walk.skip(count as u16);
        if bytes == 4 {
            for (raw, value) in dest.as_chunks_mut::<4>().0.iter_mut().zip(out) {
                *raw = value.to_le_bytes();
            }
        } else {
            for (raw, value) in dest.as_chunks_mut::<2>().0.iter_mut().zip(out) {
                *raw = (*value as u16).to_le_bytes();
            }
        }
        return;
    }
    for value in out {
        let at = usize::from(walk.address());
        memory[at..at + usize::from(bytes)]
            .copy_from_slice(&value.to_le_bytes()[..usize::from(bytes)]);
        walk.advance();
    }
}
