//! Images on whole machines: both schedulers, both code engines, several threads.

use dflow_ir::mesh::Coord;
use dflow_ir::target::TargetId;

use super::chain;
use crate::config::{CodeKind, Config, EngineKind, Limit, Limits};
use crate::machine::Machine;
use crate::outcome::RunEnd;

const CODES: [CodeKind; 2] = [CodeKind::Interpreter, CodeKind::Jit];

fn configs() -> Vec<Config> {
    let mut all = Vec::new();
    for code in CODES {
        for (engine, threads, region) in
            [(EngineKind::Step, 1, 0), (EngineKind::Exact, 1, 0), (EngineKind::Exact, 3, 2)]
        {
            all.push(Config { engine, code, threads, region, record: true });
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
        ends.push((machine.now(), machine.stats(), machine.events()));
    }
    assert!(ends.iter().all(|end| *end == ends[0]));
    let mut machine = Machine::load(&image, &Config::default()).unwrap().start();
    let limits = Limits { memory: 1000, ..Limits::default() };
    assert_eq!(machine.run(&[], &limits), RunEnd::Limit(Limit::Memory));
}
