//! Plain code on one thread: sweeps are fused where their data allows it, sums run in lanes.

use super::{FACES, Shape, columns};

/// Partial sums of a dot product, so that it becomes SIMD code.
const LANES: usize = 32;

/// `rounds` iterations from the right-hand side [`columns`]; the solution and the residual
/// squared.
pub fn solve(shape: Shape, rounds: u32) -> (Vec<f32>, f64) {
    let mut r = columns(shape);
    let (mut x, mut q, mut p) = (vec![0.0; r.len()], vec![0.0; r.len()], r.clone());
    let zero = vec![0.0; shape.nz];
    let mut rr: f64 = r.chunks_exact(shape.nz).map(|r| f64::from(dot(r, r))).sum();
    for _ in 0..rounds {
        let mut pq = 0.0;
        for (at, q) in q.chunks_exact_mut(shape.nz).enumerate() {
            pq += f64::from(laplacian(shape, &p, at, &zero, q));
        }
        let alpha = (rr / pq) as f32;
        let before = rr;
        rr = advance(shape.nz, [&mut x, &mut r], [&p, &q], alpha);
        let beta = (rr / before) as f32;
        for (p, r) in p.iter_mut().zip(&r) {
            *p = *r + beta * *p;
        }
    }
    (x, rr)
}

/// One column of the operator with constant coefficients; its part of the dot product.
fn laplacian(shape: Shape, p: &[f32], at: usize, zero: &[f32], q: &mut [f32]) -> f32 {
    let (x, y, nz) = (at % shape.nx, at / shape.nx, shape.nz);
    let [w, e, n, s] = shape.neighbors(x, y).map(|at| match at {
        Some((x, y)) => shape.of(p, x, y),
        None => &zero[..nz],
    });
    let c = shape.of(p, x, y);
    let (w, e, n, s, q) = (&w[..nz], &e[..nz], &n[..nz], &s[..nz], &mut q[..nz]);
    for k in 1..nz.max(1) - 1 {
        q[k] = 6.0 * c[k] - c[k - 1] - c[k + 1] - w[k] - e[k] - n[k] - s[k];
    }
    for k in [0, nz - 1] {
        let below = if k > 0 { c[k - 1] } else { 0.0 };
        let above = if k + 1 < nz { c[k + 1] } else { 0.0 };
        q[k] = 6.0 * c[k] - below - above - w[k] - e[k] - n[k] - s[k];
    }
    dot(c, q)
}

/// `x += alpha p`, `r -= alpha q`, and the residual squared.
fn advance(nz: usize, [x, r]: [&mut [f32]; 2], [p, q]: [&[f32]; 2], alpha: f32) -> f64 {
    let own = x.chunks_exact_mut(nz).zip(r.chunks_exact_mut(nz));
    let others = p.chunks_exact(nz).zip(q.chunks_exact(nz));
    own.zip(others).fold(0.0, |sum, ((x, r), (p, q))| {
        x.iter_mut().zip(p).for_each(|(x, p)| *x += alpha * p);
        r.iter_mut().zip(q).for_each(|(r, q)| *r -= alpha * q);
        sum + f64::from(dot(r, r))
    })
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// The operator of finite volumes, as [`super::as_mesh::faces`]: the same operations on each cell
/// in the same order, so that results are equal bit by bit.
pub fn faces(shape: Shape, p: &[f32], coefficients: &[f32], q: &mut [f32]) {
    let n = shape.nz;
    for (at, q) in q.chunks_exact_mut(n).enumerate() {
        let (x, y) = (at % shape.nx, at / shape.nx);
        let own = shape.of(p, x, y);
        let k = &coefficients[at * FACES * n..(at + 1) * FACES * n];
        q.fill(0.0);
        flow(&mut q[..n - 1], &own[..n - 1], &own[1..], &k[4 * n..]);
        flow(&mut q[1..], &own[1..], &own[..n - 1], &k[5 * n + 1..]);
        for (face, neighbor) in shape.neighbors(x, y).into_iter().enumerate() {
            if let Some((x, y)) = neighbor {
                flow(q, own, shape.of(p, x, y), &k[face * n..]);
            }
        }
    }
}

fn flow(q: &mut [f32], own: &[f32], other: &[f32], k: &[f32]) {
    for (((q, own), other), k) in q.iter_mut().zip(own).zip(other).zip(k) {
        *q += (other - own) * k;
    }
}
