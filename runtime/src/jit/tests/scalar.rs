//! Scalar operations on every type.

use super::*;

const SAMPLES: [u64; 14] = [
    0,
    1,
    2,
    7,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
];

fn samples(ty: Ty) -> Vec<u64> {
    let mut all: Vec<u64> = SAMPLES.iter().map(|&raw| ty.mask(raw)).collect();
    let floats = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        0.1,
        3e4,
        -7e4,
        2.5e9,
        1e19,
        -1e19,
        1e300,
        1e-42,
        1e-310,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    if ty.is_float() {
        all.extend(floats.map(|value| {
            dflow_ir::scalar::convert(Convert::FloatFromFloat, Ty::F64, ty, f64::to_bits(value))
        }));
        // Signaling and negative NaNs.
        all.extend([0x7c01, 0xfe00, 0x7f80_0001, 0xffc0_0000].map(|raw| ty.mask(raw)));
        all.push(ty.mask(0xfff0_0000_0000_0001));
    }
    all.sort_unstable();
    all.dedup();
    all
}

pub(super) fn allowed_unary(op: UnaryOp, ty: Ty) -> bool {
    match op {
        UnaryOp::Neg | UnaryOp::Abs => true,
        UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil => ty.is_float(),
        UnaryOp::Not => ty == Ty::I8,
        UnaryOp::BitNot | UnaryOp::Clz | UnaryOp::Ctz | UnaryOp::Popcnt => !ty.is_float(),
    }
}

pub(super) fn allowed_binary(op: BinaryOp, ty: Ty) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Eq | BinaryOp::Ne => true,
        BinaryOp::Div | BinaryOp::Max | BinaryOp::Min | BinaryOp::LtF | BinaryOp::LeF => {
            ty.is_float()
        }
        BinaryOp::DivS
        | BinaryOp::DivU
        | BinaryOp::RemS
        | BinaryOp::RemU
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl
        | BinaryOp::ShrS
        | BinaryOp::ShrU
        | BinaryOp::LtS
        | BinaryOp::LtU
        | BinaryOp::LeS
        | BinaryOp::LeU => !ty.is_float(),
    }
}

#[test]
fn every_scalar_operation_on_every_type_and_edge_value() {
    let mut funcs = Vec::new();
    let mut kinds = Vec::new();
    for ty in Ty::ALL {
        for op in UnaryOp::ALL.into_iter().filter(|&op| allowed_unary(op, ty)) {
            let mut b = function(&[ty, ty], None);
            let dst = b.local(ty);
            let src = b.param(0);
            b.inst(InstData::Unary { dst, op, src });
            stores(&mut b, 64, dst);
            b.terminate(Terminator::Return(None));
            funcs.push(b.finish());
            kinds.push(ty);
        }
        for op in BinaryOp::ALL.into_iter().filter(|&op| allowed_binary(op, ty)) {
            let mut b = function(&[ty, ty], None);
            let dst = b.local(if op.is_comparison() { Ty::I8 } else { ty });
            let (lhs, rhs) = (b.param(0), b.param(1));
            b.inst(InstData::Binary { dst, op, lhs, rhs });
            stores(&mut b, 64, dst);
            b.terminate(Terminator::Return(None));
            funcs.push(b.finish());
            kinds.push(ty);
        }
        for (kind, to) in Convert::ALL.into_iter().flat_map(|kind| Ty::ALL.map(|to| (kind, to))) {
            let mut b = function(&[ty, ty], None);
            let dst = b.local(to);
            let src = b.param(0);
            b.inst(InstData::Convert { dst, kind, src });
            stores(&mut b, 64, dst);
            b.terminate(Terminator::Return(None));
            funcs.push(b.finish());
            kinds.push(ty);
        }
    }
    let mut pair = Pair::of(funcs);
    for (func, ty) in kinds.into_iter().enumerate() {
        let samples = samples(ty);
        for &left in &samples {
            for &right in &samples {
                let segment = pair.start(func as u32, &[left, right]);
                assert!(matches!(segment.stop, Stop::Return | Stop::Trap(_)));
            }
        }
    }
}
