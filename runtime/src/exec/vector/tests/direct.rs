//! The direct way of common operations against the way of all.

use super::super::issue_new;
use super::super::plan::{Dest, Line, Place, Plan};
use super::super::short::Short;
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

/// Whether an operand stands in a register, and with what.
#[derive(Clone, Copy, Debug)]
struct Held(Option<Dsr>);

fn held() -> impl Strategy<Value = Held> {
    let plain = Dsr::default();
    prop_oneof![
        2 => Just(Held(None)),
        4 => Just(Held(Some(plain))),
        1 => Just(Held(Some(Dsr { save_address: true, ..plain }))),
        1 => Just(Held(Some(Dsr { single_step: true, ..plain }))),
        1 => Just(Held(Some(Dsr { index: Some(3), ..plain }))),
        1 => Just(Held(Some(Dsr { moved: 1, ..plain }))),
        1 => Just(Held(Some(Dsr { xdsr: Some(0), ..plain }))),
    ]
}

/// Puts an operand's descriptor into a register, if it is to stand in one.
fn hold(
    state: &mut PeState,
    file: DsrFile,
    index: u8,
    how: Option<Dsr>,
    (operand, value): (&mut Operand, &mut u64),
) {
    if let (Some(dsr), Operand::Memory(_)) = (how, &*operand) {
        let at = DsrRef { file, index };
        state.load_dsr(at, Dsr { dsd: Dsd(std::mem::take(value)), ..dsr });
        *operand = Operand::Dsr(at);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn the_quick_way_equals_the_way_of_all(
        op in 0..DsdOp::all().count() as u8,
        dest in (given(), 0u16..4),
        sources in [(given(), 0u16..36), (given(), 0u16..4), (given(), 0u16..4)],
        content in proptest::collection::vec(any::<u8>(), BYTES as usize),
        unmasked in prop_oneof![3 => Just(0u8), 1 => any::<u8>()],
        held in [held(), held(), held(), held()],
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
        let Held(dest_held) = held[0];
        hold(&mut quick, DsrFile::Dest, 0, dest_held, (&mut inst.dest, &mut args.dest));
        for (at, operand) in inst.sources.iter_mut().enumerate() {
            let Held(how) = held[at + 1];
            let value = &mut args.sources[at];
            hold(&mut quick, DsrFile::Src1, at as u8, how, (operand, value));
        }
        quick.unmasked = unmasked;
        let mut slow = quick.clone();
        let done = |issued: super::super::IssuedOdd| match issued {
            (Issued::Done { slots, complete, end }, odd) => (slots, complete, end, odd),
            (Issued::Starts(start), _) => panic!("started {start:?}"),
        };
        let site = site(&inst);
        // Issued again it is known.
        for _ in 0..2 {
            let first = issue(&program, &mut quick, &site, &args).map(done);
            let second = issue_new(&program, &mut slow, &site, &args).map(done);
            prop_assert_eq!(&first, &second);
            if first.is_err() {
                return Ok(());
            }
            prop_assert_eq!(&quick, &slow);
        }
    }
}

#[test]
fn elements_that_all_lie_in_one_place_follow_one_another() {
    for op in (0..DsdOp::all().count() as u8).map(DsdOp) {
        let row = op.row();
        for (word, value) in [(0u32, 3u32), (0x4049_0fdb, 0x3f80_0000), (0xffff_ff85, 1)] {
            // What is known is known of an instruction of a program.
            let program = program();
            let mut inst = vector(row.name, memory(), &[]);
            let place = Dsd::mem1d(440, 37, 0, false).0;
            let mut args = VectorArgs { dest: place, ..VectorArgs::default() };
            let operands = [(memory(), place), (Operand::Scalar(Local::from_u32(1)), value.into())];
            for at in 0..row.shape.arity() {
                let (operand, value) = operands[at.min(1)];
                inst.sources.push(operand);
                args.sources[at] = value;
            }
            let mut quick = state(&program);
            put(&mut quick, 440, &[word]);
            let mut slow = quick.clone();
            let site = site(&inst);
            let quickly = issue(&program, &mut quick, &site, &args);
            let slowly = issue_new(&program, &mut slow, &site, &args);
            let told = |issued: Result<super::super::IssuedOdd, _>| match issued {
                Ok((Issued::Done { slots, complete, end }, odd)) => Ok((slots, complete, end, odd)),
                Ok((Issued::Starts(start), _)) => panic!("started {start:?}"),
                Err(kind) => Err(kind),
            };
            assert_eq!(told(quickly), told(slowly), "{}", row.name);
            assert!(
                quick == slow,
                "{} {:?} {:?}",
                row.name,
                words(&quick, 440, 1),
                words(&slow, 440, 1)
            );
        }
    }
}

#[test]
fn elements_in_one_place_end_when_they_change_nothing() {
    let program = program();
    let mut state = state(&program);
    put(&mut state, 440, &[0x1234]);
    let line = Line { at: 440, step: 0, bytes: 2 };
    let op = DsdOp::by_name("clz").unwrap();
    let value = Place::Value(0);
    let mut plan = Plan {
        row: op.row(),
        op: op.0,
        dest: Dest::Memory(line),
        sources: [Place::Memory(line), value, value],
        // One by one this would take a minute.
        length: u32::MAX,
        value: 0,
        carry: 0,
        reduces: false,
    };
    assert_eq!(plan.chunks_in(), None);
    plan.naive(&mut state).unwrap();
    // 12 is the number whose leading zeros it is.
    assert_eq!(words(&state, 440, 1), [12]);
}

#[test]
fn short_operations_have_a_way_of_their_own() {
    let program = program();
    let op = DsdOp::by_name("fadds").unwrap();
    for count in 1u32..40 {
        let mut plan = Plan {
            row: op.row(),
            op: op.0,
            dest: Dest::Memory(Line { at: 404, step: 4, bytes: 4 }),
            sources: [
                Place::Memory(Line { at: 404, step: 4, bytes: 4 }),
                Place::Value(2f32.to_bits()),
                Place::Value(0),
            ],
            length: count,
            value: 0,
            carry: 0,
            reduces: false,
        };
        assert!(plan.chunks_in().is_some());
        let short = Short::of(&plan);
        assert_eq!(short.is_some(), (1..=32).contains(&count), "{count}");
        let Some(short) = short else { continue };
        let mut state = state(&program);
        let values: Vec<u32> = (0..count).map(|at| (at as f32).to_bits()).collect();
        put(&mut state, 404, &values);
        let mut other = state.clone();
        short.run(&[0, u64::from(2f32.to_bits()), 0], state.memory.bytes_mut());
        plan.fast(other.memory.bytes_mut());
        assert_eq!(state, other, "{count}");
        let first = [2f32.to_bits(), 3f32.to_bits()];
        assert_eq!(words(&state, 404, count.min(2) as usize), first[..count.min(2) as usize]);
    }
}
