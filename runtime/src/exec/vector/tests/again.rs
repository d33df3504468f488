//! Operations that are issued again.

use super::*;

#[test]
fn an_operation_issued_again_is_shared_and_another_one_is_not() {
    let program = program();
    let mut state = state(&program);
    let (local, scalar) = (Local::from_u32(0), Operand::Scalar(Local::from_u32(1)));
    let inst = vector("add16", Operand::Fabric(local), &[memory(), scalar]);
    let (inst, source) = (site(&inst), Dsd::mem1d(0, 4, 1, false).0);
    let mut issued = |dest: u64, scalar: u64| {
        let args = VectorArgs { dest, sources: [source, scalar, 0], index: 0 };
        match issue(&program, &mut state, &inst, &args).unwrap().0 {
            Issued::Done { .. } => panic!("done at once"),
            Issued::Starts(start) => start,
        }
    };
    let dest = fabric(false, 4).0;
    let first = issued(dest, 7);
    assert!(issued(dest, 7).is(&first));
    assert_eq!(issued(dest, 8).sources[1], Stream::Scalar(8));
    let other = FabricDsd { queue: 2, color: Color::new(5), ..FabricDsd::default() };
    let other = issued(Dsd::fabric(other, 4).0, 7);
    assert!(matches!(other.dest, Stream::Output { queue: 2, .. }));
}

#[test]
fn what_a_register_holds_is_looked_up_each_time() {
    let program = program();
    let mut state = state(&program);
    let at = dsr(DsrFile::Src1, 0);
    let inst = vector("mov32", Operand::Fabric(Local::from_u32(0)), &[Operand::Dsr(at)]);
    for base in [0, 8] {
        let dsd = Dsd::mem1d(base, 2, 1, false);
        state.load_dsr(at, Dsr { dsd, ..Dsr::default() });
        let started = start(&program, &mut state, &inst, fabric(false, 2).0, [0; 3]);
        assert!(matches!(started.sources[0], Stream::Memory(memory) if memory.dsd == dsd));
    }
}
