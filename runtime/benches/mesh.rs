//! The mesh: chain reductions on both schedulers, and loading a whole wafer.

#[path = "../src/sched/tests/chain.rs"]
mod chain;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dflow_ir::mesh::Coord;
use dflow_ir::target::TargetId;
use dflow_runtime::config::{Config, EngineKind, Limits};
use dflow_runtime::machine::Machine;

fn run(image: &dflow_ir::image::Image, config: &Config) -> u64 {
    let machine = Machine::load(image, config).expect("the image is valid");
    let mut machine = machine.start();
    machine.run(&[], &Limits::default());
    machine.stats().delivered
}

/// Words delivered per second, everything included.
fn words(c: &mut Criterion) {
    let mut group = c.benchmark_group("chain");
    group.sample_size(10);
    for (side, words, rounds) in [(16, 32, 8), (64, 64, 4)] {
        let image = chain::image(TargetId::Wse2, side, side, words, rounds);
        for (name, engine, threads) in [
            ("step", EngineKind::Step, 1),
            ("exact", EngineKind::Exact, 1),
            ("exact, 2 threads", EngineKind::Exact, 2),
        ] {
            let config = Config { engine, threads, ..Config::default() };
            group.throughput(Throughput::Elements(run(&image, &config)));
            group.bench_function(format!("{side}x{side} {name}"), |b| {
                b.iter(|| run(&image, &config));
            });
        }
    }
    group.finish();
}

/// A rectangle as large as the fabric, of which one PE is touched.
fn load(c: &mut Criterion) {
    let image = chain::image(TargetId::Wse2, 750, 994, 32, 1);
    let mut group = c.benchmark_group("load");
    group.sample_size(10);
    group.bench_function("745,500 PEs", |b| {
        b.iter(|| {
            let machine = Machine::load(&image, &Config::default()).expect("the image is valid");
            let mut machine = machine.start();
            machine.read_memory(Coord { x: 5, y: 5 }, chain::VECTOR, 4)
        });
    });
    group.finish();
}

/// What the built-by-hand image is worth, so that the bench measures a right result.
fn check(c: &mut Criterion) {
    let image = chain::image(TargetId::Wse2, 4, 1, 8, 2);
    let machine = Machine::load(&image, &Config::default()).expect("the image is valid");
    let mut machine = machine.start();
    machine.run(&[], &Limits::default());
    let bytes = machine.read_memory(Coord { x: 0, y: 0 }, chain::VECTOR, 4);
    let value = bytes.and_then(|bytes| bytes.try_into().ok()).map(f32::from_le_bytes);
    assert_eq!(value, Some(chain::expected(4, 2, 0)));
    let _ = c;
}

criterion_group!(benches, check, words, load);
criterion_main!(benches);
