//! The direct way of common operations against the way of all.

use super::*;

/// An operand as an instruction names it, and its raw value.
fn operand(given: &Given, extent: u16, is_dest: bool, ty: dflow_ir::ty::Ty) -> (Operand, u64) {
    let local = Local::from_u32(0);
    match *given {
        Given::Memory(at, stride) => {
            (Operand::Memory(local), Dsd::mem1d(at, extent, stride, false).0)
        }
        Given::Shape(at) => (Operand::Memory(local), Dsd::mem4d(at, ShapeId::from_u32(0), false).0),
        Given::Scalar(value) if is_dest => (Operand::Pointer(local), u64::from(value % 900)),
        Given::Scalar(value) => (Operand::Scalar(local), ty.mask(value.into())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn the_quick_way_equals_the_way_of_all(
        op in 0..DsdOp::all().count() as u8,
        dest in (given(), 0u16..4),
        sources in [(given(), 0u16..20), (given(), 0u16..4), (given(), 0u16..4)],
        content in proptest::collection::vec(any::<u8>(), BYTES as usize),
        unmasked in prop_oneof![3 => Just(0u8), 1 => any::<u8>()],
    ) {
        let program = program();
        let row = DsdOp(op).row();
        let (dest, dest_value) = operand(&dest.0, dest.1, true, row.dest);
        let mut inst = vector(row.name, dest, &[]);
        let mut args = VectorArgs { dest: dest_value, ..VectorArgs::default() };
        for (at, (given, extent)) in sources.iter().enumerate().take(row.shape.arity()) {
            let (operand, value) = operand(given, *extent, false, row.sources[at]);
            inst.sources.push(operand);
            args.sources[at] = value;
        }
        let mut quick = state(&program);
        quick.memory.bytes_mut().copy_from_slice(&content);
        quick.unmasked = unmasked;
        let mut slow = quick.clone();
        let done = |issued: super::super::IssuedOdd| match issued {
            (Issued::Done { slots, complete }, odd) => (slots, complete, odd),
            (Issued::Starts(start), _) => panic!("started {start:?}"),
        };
        let first = issue(&program, &mut quick, &inst, &args, Loc::default()).map(done);
        let second = super::super::issue_any(&program, &mut slow, &inst, &args, Loc::default()).map(done);
        prop_assert_eq!(&first, &second);
        if first.is_ok() {
            prop_assert_eq!(&quick, &slow);
        }
    }
}
