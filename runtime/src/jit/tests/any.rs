//! Random programs, and that they reach everything.

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_run_alike_on_both_engines(seed in any::<u64>()) {
        let program = random::program(seed);
        let last = program.funcs.len() as u32 - 1;
        let mut pair = Pair::new(program);
        pair.finish(last, &[seed & 0xff, seed >> 8, seed >> 16]);
        pair.finish(last, &[3, 1, seed]);
    }
}

fn linked(program: Program) -> LoadedProgram {
    let target = Target::get(TargetId::Wse2);
    if program.profile == Profile::Host {
        return LoadedProgram::host(program, target).with_memory_limit(1 << 20);
    }
    let mut map = MemoryMap { data_end: 64, stack: 1024, ..MemoryMap::default() };
    for (id, global) in &program.globals {
        let at = map.data_end.next_multiple_of(global.align.max(1));
        map.globals.push((id, at));
        map.data_end = at + global.size;
    }
    LoadedProgram::new(program, &map, target)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn generated_programs_run_alike_on_both_engines(
        numbers in proptest::collection::vec(any::<u32>(), 0..300),
        args in [any::<u64>(), any::<u64>(), any::<u64>()],
    ) {
        let program = dflow_ir::generate::program(&numbers);
        let last = program.funcs.len() as u32 - 1;
        Pair::load(linked(program)).finish(last, &args);
        for exhibit in [
            dflow_ir::generate::exhibit(&numbers),
            dflow_ir::generate::host_exhibit(&numbers),
        ] {
            let count = exhibit.funcs.len() as u32;
            let mut pair = Pair::load(linked(exhibit));
            for func in 0..count {
                pair.finish(func, &args);
            }
        }
    }
}

/// The programs of the tests above, a fixed number of them: no form of instruction is left out.
#[test]
fn every_form_of_instruction_runs_on_both_engines() {
    let mut seed = 7u32;
    for round in 0..100u64 {
        let numbers: Vec<u32> = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 7
        })
        .take(120)
        .collect();
        let program = random::program(round);
        let last = program.funcs.len() as u32 - 1;
        Pair::new(program).finish(last, &[round, 2, 3]);
        for program in [
            dflow_ir::generate::program(&numbers),
            dflow_ir::generate::exhibit(&numbers),
            dflow_ir::generate::host_exhibit(&numbers),
        ] {
            let count = program.funcs.len() as u32;
            let mut pair = Pair::load(linked(program));
            for func in 0..count {
                pair.finish(func, &[round, 5, 1]);
            }
        }
    }
    fifo_lengths_and_unreachable_code();
    assert_eq!(crate::exec::seen::missing(), [""; 0]);
}

/// Both sides of a FIFO get a length; then comes a block that nothing may reach.
fn fifo_lengths_and_unreachable_code() {
    let mut program = dflow_ir::generate::program(&[]);
    program.fifos.push(Fifo {
        buffer: GlobalId::from_u32(0),
        capacity: 8,
        element: 2,
        activate_pop: None,
        activate_push: None,
        empty: FifoAction::default(),
        full: FifoAction::default(),
        priority: None,
        single: false,
    });
    let mut b = function(&[], None);
    for (length, write_side) in [(3, true), (2, false)] {
        let length = b.constant(Ty::I16, length);
        b.inst(InstData::SetFifoLength { fifo: FifoId::from_u32(0), write_side, length });
    }
    b.terminate(Terminator::Unreachable);
    let func = program.funcs.push(b.finish());
    let mut pair = Pair::load(linked(program));
    let segments = pair.finish(func.as_u32(), &[]);
    assert!(
        matches!(&segments[0].stop, Stop::Trap(trap) if trap.kind == CodeTrapKind::Unreachable)
    );
    let fifo = &pair.native.fifos[0];
    assert_eq!((fifo.write_length, fifo.read_length), (3, 2));
}

/// How often each kind of segment end comes up: a generator that traps at once tests nothing.
#[test]
fn random_programs_reach_every_kind_of_stop() {
    let mut counts = [0; 6];
    for seed in 0..400u64 {
        let program = random::program(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let last = program.funcs.len() as u32 - 1;
        for segment in Pair::new(program).finish(last, &[seed, 2, 3]) {
            let kind = match segment.stop {
                Stop::Return => 0,
                Stop::Vector(_) => 1,
                Stop::Clock(_) | Stop::Queues(_) => 2,
                Stop::Yield => 3,
                Stop::Trap(_) => 4,
                Stop::Config(_) => 5,
                Stop::Host(_) => continue,
            };
            counts[kind] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count >= 10), "{counts:?}");
}
