//! Conjugate gradient on a box of cells without a matrix, and an operator of finite volumes: what
//! the mesh programs of the benches are held against.
//!
//! [`as_mesh`] does every operation in the order of the mesh program, so that results are equal
//! bit by bit; [`native`] is the same mathematics as fast as plain code does it on one thread.
//! Cells beyond the box are zero; z is the fastest dimension, then y.

pub mod as_mesh;
pub mod native;
#[cfg(test)]
mod tests;

/// Extents of a box of cells; none is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Columns of PEs.
    pub nx: usize,
    /// Rows of PEs.
    pub ny: usize,
    /// Cells per PE.
    pub nz: usize,
}

/// Coefficient arrays per column of cells: the four neighbors (west, east, north, south), above,
/// below.
pub const FACES: usize = 6;

impl Shape {
    /// Where the column of a PE begins, in columns.
    fn column(self, x: usize, y: usize) -> usize {
        y * self.nx + x
    }

    /// A PE's column of cells.
    fn of(self, field: &[f32], x: usize, y: usize) -> &[f32] {
        let at = self.column(x, y) * self.nz;
        &field[at..at + self.nz]
    }

    /// The columns beside a PE's: west, east, north, south.
    fn neighbors(self, x: usize, y: usize) -> [Option<(usize, usize)>; 4] {
        [
            x.checked_sub(1).map(|x| (x, y)),
            (x + 1 < self.nx).then_some((x + 1, y)),
            y.checked_sub(1).map(|y| (x, y)),
            (y + 1 < self.ny).then_some((x, y + 1)),
        ]
    }
}

/// The pseudo-random numbers that a PE begins with.
struct Noise(u32);

impl Noise {
    fn of(shape: Shape, x: usize, y: usize) -> Noise {
        Noise(12345 + shape.column(x, y) as u32)
    }

    /// From 0 to below 1.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as f32 / 16_777_216.0
    }
}

/// The right-hand side: a field of noise between -1/2 and 1/2.
pub fn columns(shape: Shape) -> Vec<f32> {
    let pes = (0..shape.ny).flat_map(|y| (0..shape.nx).map(move |x| (x, y)));
    pes.flat_map(|(x, y)| {
        let mut noise = Noise::of(shape, x, y);
        (0..shape.nz).map(move |_| noise.next() - 0.5)
    })
    .collect()
}

/// Coefficients of the faces, from 1/2 to below 3/2: [`FACES`] arrays per column.
pub fn coefficients(shape: Shape) -> Vec<f32> {
    let pes = (0..shape.ny).flat_map(|y| (0..shape.nx).map(move |x| (x, y)));
    pes.flat_map(|(x, y)| {
        let mut noise = Noise::of(shape, x, y);
        (0..shape.nz).for_each(|_| _ = noise.next());
        (0..FACES * shape.nz).map(move |_| noise.next() + 0.5)
    })
    .collect()
}
