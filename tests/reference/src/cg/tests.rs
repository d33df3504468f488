use super::{Shape, as_mesh, coefficients, columns, native};

const SHAPES: [Shape; 3] =
    [Shape { nx: 4, ny: 3, nz: 40 }, Shape { nx: 1, ny: 1, nz: 2 }, Shape { nx: 2, ny: 5, nz: 33 }];

#[test]
fn both_solvers_agree_but_for_rounding() {
    for shape in SHAPES {
        // Two cells are solved after two iterations; then there is nothing left to divide by.
        let rounds = if shape.nx == 1 { 1 } else { 6 };
        let (x, rr) = native::solve(shape, rounds);
        let mesh = as_mesh::solve(shape, rounds);
        let far = x.iter().zip(&mesh.x).any(|(a, b)| (a - b).abs() > 1e-4);
        assert!(!far, "{shape:?}");
        assert!((rr - f64::from(mesh.rr)).abs() <= 1e-3 * rr + 1e-9, "{rr} {}", mesh.rr);
    }
}

#[test]
fn the_residual_shrinks() {
    let shape = SHAPES[0];
    let first: f32 = columns(shape).iter().map(|r| r * r).sum();
    assert!(as_mesh::solve(shape, 20).rr < first * 1e-6);
}

#[test]
fn both_operators_of_finite_volumes_agree() {
    for shape in SHAPES {
        let (p, k) = (columns(shape), coefficients(shape));
        let mut q = vec![1.0; p.len()];
        native::faces(shape, &p, &k, &mut q);
        assert_eq!(q, as_mesh::faces(shape, &p, &k));
    }
}
