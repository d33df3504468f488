//! Images on whole machines: both schedulers, both code engines, several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dflow_ir::mesh::Coord;
use dflow_ir::target::TargetId;

use super::chain;
use crate::config::{CodeKind, Config, EngineKind, Limit, Limits, Probe};
use crate::load::LoadError;
use crate::machine::Machine;
use crate::outcome::{RunEnd, Wait};

const CODES: [CodeKind; 2] = [CodeKind::Interpreter, CodeKind::Jit];

fn configs() -> Vec<Config> {
    let mut all = Vec::new();
    for code in CODES {
        for (engine, threads, region) in
            [(EngineKind::Step, 1, 0), (EngineKind::Exact, 1, 0), (EngineKind::Exact, 3, 2)]
        {
            all.push(Config { engine, code, threads, region, record: true, ..Config::default() });
        }
    }
    all
}

#[test]
fn a_row_sums_its_vectors() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        let (width, height, words, rounds) = (6, 3, 20, 4);
        let image = chain::image(target, width, height, words, rounds);
        let mut ends = Vec::new();
        for config in configs() {
            let mut machine = Machine::load(&image, &config).unwrap().start();
            let end = machine.run(&[], &Limits::default());
            assert!(matches!(end, RunEnd::Idle { .. }), "{end:?}");
            for index in 0..words {
                let at = Coord { x: 0, y: 2 };
                let address = chain::VECTOR + 4 * u32::from(index);
                let bytes = machine.read_memory(at, address, 4).unwrap();
                let value = f32::from_le_bytes(bytes.try_into().unwrap());
                assert_eq!(value, chain::expected(width, rounds, index));
            }
            ends.push((end, machine.stats(), machine.events()));
        }
        assert!(ends.iter().all(|end| *end == ends[0]));
    }
}

/// The published chain reduction: words + 6 (PEs - 1) + a constant on wse2.
#[test]
fn a_chain_reduction_takes_the_published_time() {
    let cycles = |pes, words| {
        let image = chain::image(TargetId::Wse2, pes, 1, words, 1);
        let mut machine = Machine::load(&image, &Config::default()).unwrap().start();
        // All PEs fill their vectors in the same time: what is left is the reduction.
        let filled = chain::image(TargetId::Wse2, pes, 1, words, 0);
        let mut other = Machine::load(&filled, &Config::default()).unwrap().start();
        match (machine.run(&[], &Limits::default()), other.run(&[], &Limits::default())) {
            (RunEnd::Idle { cycle }, RunEnd::Idle { cycle: start }) => cycle - start,
            ends => panic!("{ends:?}"),
        }
    };
    let constant = cycles(4, 64) - 64 - 6 * 3;
    assert_eq!(cycles(32, 64), 64 + 6 * 31 + constant);
    assert_eq!(cycles(64, 512), 512 + 6 * 63 + constant);
}

#[test]
fn limits_end_a_run_at_the_same_cycle() {
    let image = chain::image(TargetId::Wse2, 6, 3, 20, 400);
    let mut ends = Vec::new();
    for config in configs() {
        let mut machine = Machine::load(&image, &config).unwrap().start();
        let limits = Limits { cycle: 777, ..Limits::default() };
        assert_eq!(machine.run(&[], &limits), RunEnd::Limit(Limit::Cycles));
        let mut doing = machine.doing();
        assert!(!doing.text(&[]).is_empty());
        // Each engine has its own state.
        doing.bytes = 0;
        ends.push((machine.now(), machine.stats(), machine.events(), doing));
    }
    for end in &ends {
        assert_eq!(*end, ends[0]);
    }
    let mut machine = Machine::load(&image, &Config::default()).unwrap().start();
    let limits = Limits { memory: 1000, ..Limits::default() };
    assert_eq!(machine.run(&[], &limits), RunEnd::Limit(Limit::Memory));
    // Whatever the estimate says, the computer may have no more.
    let mut machine = Machine::load(&image, &Config::default()).unwrap().start();
    let limits = Limits { exhausted: Some(Probe(Arc::new(|| true))), ..Limits::default() };
    assert_eq!(machine.run(&[], &limits), RunEnd::Limit(Limit::Memory));
}

/// An operation in the middle of its work waits for nothing.
#[test]
fn who_works_at_a_limit_does_not_wait() {
    let image = chain::image(TargetId::Wse2, 6, 3, 200, 4);
    for engine in [EngineKind::Step, EngineKind::Exact, EngineKind::Flow] {
        for cycle in (2900..3600).step_by(13) {
            let config = Config { engine, ..Config::default() };
            let mut machine = Machine::load(&image, &config).unwrap().start();
            machine.run(&[], &Limits { cycle, ..Limits::default() });
            let waiting = machine.doing().waiting;
            let fifo = waiting.iter().find(|waiter| matches!(waiter.wait, Wait::Fifo { .. }));
            assert_eq!(fifo, None, "{engine:?}, {cycle}");
        }
    }
}

/// Ten thousand PEs that wait alike are a few lines.
#[test]
fn a_deadlock_of_many_pes_is_a_short_report() {
    let mut image = chain::image(TargetId::Wse2, 100, 100, 8, 1);
    // The easternmost PEs do not start.
    let east =
        image.programs.values_mut().find(|program| program.queues.iter().all(|queue| !queue.input));
    east.unwrap().initial_flags.clear();
    let mut machine = Machine::load(&image, &Config::default()).unwrap().start();
    let end = machine.run(&[], &Limits::default());
    assert!(matches!(end, RunEnd::Idle { .. }), "{end:?}");
    let report = machine.waiting();
    let waiting: usize = report.waiters.iter().map(|waiter| waiter.count).sum();
    assert_eq!(waiting, 99 * 100);
    insta::assert_snapshot!(report, @r"
    nothing can move any more from cycle 160 on
      5000 PEs, (0, 0) to (98, 99), of `chain` in `sum` line 1: waits for a word on color 3 (queue 2); none ever came; should come from (1, 0); in the end (99, 0) does nothing
      4900 PEs, (1, 0) to (97, 99), of `chain` in `sum` line 1: waits for a word on color 2 (queue 2); none ever came; should come from (2, 0); in the end (99, 0) does nothing
    ");
}

#[test]
fn an_interrupt_ends_a_run() {
    let image = chain::image(TargetId::Wse2, 6, 3, 200, 60000);
    for config in configs() {
        let mut machine = Machine::load(&image, &config).unwrap().start();
        let flag = Arc::new(AtomicBool::new(false));
        let limits = Limits { interrupt: Some(flag.clone()), ..Limits::default() };
        let end = std::thread::scope(|scope| {
            let run = scope.spawn(|| machine.run(&[], &limits));
            flag.store(true, Ordering::Relaxed);
            run.join().unwrap()
        });
        assert_eq!(end, RunEnd::Limit(Limit::Interrupted));
    }
}

#[test]
fn an_interrupt_ends_the_making_of_a_machine() {
    let image = chain::image(TargetId::Wse2, 6, 3, 200, 60000);
    let limits = Limits { interrupt: Some(Arc::new(AtomicBool::new(true))), ..Limits::default() };
    for config in configs() {
        let made = Machine::load_within(&image, &config, &limits).map(drop);
        assert_eq!(made, Err(LoadError::Limit(Limit::Interrupted)));
    }
}

/// What never happens costs nothing but the tables; what is touched is counted before it is used.
#[test]
fn idle_pes_cost_their_entries_in_tables() {
    let pes = 100 * 100;
    let mut idle = chain::image(TargetId::Wse2, 100, 100, 8, 1);
    idle.programs.values_mut().for_each(|program| program.initial_flags.clear());
    let mut machine = Machine::load(&idle, &Config::default()).unwrap().start();
    assert!(matches!(machine.run(&[], &Limits::default()), RunEnd::Idle { .. }));
    assert_eq!((machine.stats().touched, machine.state_bytes()), (0, 0));
    assert!(machine.table_bytes() <= 64 * pes, "{} bytes", machine.table_bytes());

    let busy = chain::image(TargetId::Wse2, 100, 100, 8, 1);
    let mut machine = Machine::load(&busy, &Config::default()).unwrap().start();
    let known = machine.state_bytes();
    assert_eq!(machine.stats().touched, pes);
    assert!(matches!(machine.run(&[], &Limits::default()), RunEnd::Idle { .. }));
    let used = machine.state_bytes();
    assert!(known >= used / 2 && used <= 4096 * pes, "{known} bytes ahead, {used} bytes");
}

/// Stacks are made when a function needs one.
#[test]
fn memory_is_made_as_linked() {
    let image = chain::image(TargetId::Wse2, 4, 1, 8, 1);
    for config in configs() {
        let mut machine = Machine::load(&image, &config).unwrap().start();
        assert!(matches!(machine.run(&[], &Limits::default()), RunEnd::Idle { .. }));
        let end = image.memory.values().map(|map| map.data_end + map.stack).max().unwrap();
        // Reading what nobody has used gives zeroes.
        let last = machine.read_memory(Coord { x: 0, y: 0 }, end - 4, 4);
        assert_eq!(last, Some(vec![0; 4]));
    }
}
