//! The operations of the mesh programs, in their order.

use super::{FACES, Shape, columns};

/// State of the solver.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// The solution so far.
    pub x: Vec<f32>,
    /// The residual.
    pub r: Vec<f32>,
    /// The search direction.
    pub p: Vec<f32>,
    /// The residual squared.
    pub rr: f32,
}

/// `rounds` iterations from the right-hand side [`columns`].
pub fn solve(shape: Shape, rounds: u32) -> Solved {
    let r = columns(shape);
    let mut s = Solved { x: vec![0.0; r.len()], p: r.clone(), rr: dot(shape, &r, &r), r };
    for _ in 0..rounds {
        let q = laplacian(shape, &s.p);
        let alpha = s.rr / dot(shape, &s.p, &q);
        for (x, p) in s.x.iter_mut().zip(&s.p) {
            *x = p.mul_add(alpha, *x);
        }
        for (r, q) in s.r.iter_mut().zip(&q) {
            *r = q.mul_add(-alpha, *r);
        }
        let rr = dot(shape, &s.r, &s.r);
        let beta = rr / s.rr;
        for (p, r) in s.p.iter_mut().zip(&s.r) {
            *p = p.mul_add(beta, *r);
        }
        s.rr = rr;
    }
    s
}

/// Products rounded, then summed one after the other in each column, westwards in each row and
/// northwards in the first column.
fn dot(shape: Shape, a: &[f32], b: &[f32]) -> f32 {
    let own = |x, y| {
        let pairs = shape.of(a, x, y).iter().zip(shape.of(b, x, y));
        pairs.fold(0.0_f32, |sum, (a, b)| sum + a * b)
    };
    let row = |y| (0..shape.nx).rev().map(|x| own(x, y)).reduce(|sum, own| own + sum);
    let rows = (0..shape.ny).rev().filter_map(row);
    rows.reduce(|sum, own| own + sum).unwrap_or(0.0)
}

/// Six times each cell less its neighbors: below, above, west, east, north, south.
fn laplacian(shape: Shape, p: &[f32]) -> Vec<f32> {
    let mut q: Vec<f32> = p.iter().map(|p| p * 6.0).collect();
    for_columns(shape, &mut q, |x, y, q| {
        let own = shape.of(p, x, y);
        for k in 1..own.len() {
            q[k] -= own[k - 1];
        }
        for k in 1..own.len() {
            q[k - 1] -= own[k];
        }
        for (x, y) in shape.neighbors(x, y).into_iter().flatten() {
            for (q, p) in q.iter_mut().zip(shape.of(p, x, y)) {
                *q -= p;
            }
        }
    });
    q
}

/// The sum of the flows through the faces of each cell, `coefficients` times the difference.
pub fn faces(shape: Shape, p: &[f32], coefficients: &[f32]) -> Vec<f32> {
    let (mut q, n) = (vec![0.0; p.len()], shape.nz);
    for_columns(shape, &mut q, |x, y, q| {
        let own = shape.of(p, x, y);
        let at = shape.column(x, y) * FACES * n;
        let k = |face: usize| &coefficients[at + face * n..at + (face + 1) * n];
        for z in 0..n - 1 {
            q[z] += (own[z + 1] - own[z]) * k(4)[z];
        }
        for z in 1..n {
            q[z] += (own[z - 1] - own[z]) * k(5)[z];
        }
        for (face, neighbor) in shape.neighbors(x, y).into_iter().enumerate() {
            let Some((x, y)) = neighbor else { continue };
            let other = shape.of(p, x, y);
            for z in 0..n {
                q[z] += (other[z] - own[z]) * k(face)[z];
            }
        }
    });
    q
}

fn for_columns(shape: Shape, q: &mut [f32], mut f: impl FnMut(usize, usize, &mut [f32])) {
    for (at, q) in q.chunks_exact_mut(shape.nz).enumerate() {
        f(at % shape.nx, at / shape.nx, q);
    }
}
