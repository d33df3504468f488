//! The engine's rates: a bench per row of the table in `benches/README.md`, on every engine and
//! number of threads of [`ENGINES`], in seconds of processor time over all threads. `DFLOW_BENCH=full` runs the sizes that the table is about.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::Measurement;
use criterion::{BatchSize, BenchmarkGroup, Criterion, SamplingMode, Throughput};
use dflow_ir::image::Image;
use dflow_reference::cg;
use dflow_runtime::config::{Config, EngineKind, Limits};
use dflow_runtime::machine::{Machine, Running};
use dflow_runtime::stats::Stats;

mod cpu;
mod rows;

/// That of `dflowc`: large machines gain from it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use cpu::CpuTime;
use rows::ROWS;

/// The engines that are compared, and on how many threads.
const ENGINES: &[(&str, EngineKind, &[usize])] =
    &[("exact", EngineKind::Exact, &[1, 2]), ("flow", EngineKind::Flow, &[1, 2])];

fn load(image: &Image, engine: EngineKind, threads: usize) -> Machine<Running> {
    let config = Config { engine, threads, ..Config::default() };
    Machine::load(image, &config).expect("the image is valid").start()
}

fn run(mut machine: Machine<Running>) -> (Machine<Running>, Stats) {
    black_box(machine.run(&[], &Limits::default()));
    let stats = machine.stats();
    (machine, stats)
}

fn group<'a>(c: &'a mut Criterion<CpuTime>, name: &str) -> BenchmarkGroup<'a, CpuTime> {
    let mut group = c.benchmark_group(name);
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    group
}

/// Runs after load, per engine and number of threads.
fn emulated(c: &mut Criterion<CpuTime>, full: bool) {
    for row in ROWS {
        let image = row.image(full);
        let mut group = group(c, row.name);
        for &(name, engine, threads) in ENGINES {
            let (_, stats) = run(load(&image, engine, 1));
            group.throughput(Throughput::Elements(row.count(full, &stats)));
            for &threads in threads {
                group.bench_function(format!("{name}, {threads} thread(s)"), |b| {
                    b.iter_batched(|| load(&image, engine, threads), run, BatchSize::PerIteration);
                });
            }
        }
        group.finish();
    }
}

/// The same operations without a mesh.
fn native<M: Measurement>(group: &mut BenchmarkGroup<'_, M>, shape: cg::Shape, rounds: u32) {
    let cells = shape.nx * shape.ny * shape.nz;
    group.throughput(Throughput::Elements(cells as u64 * u64::from(rounds)));
    group.bench_function("cg", |b| b.iter(|| black_box(cg::native::solve(shape, rounds))));
    let (p, k) = (cg::columns(shape), cg::coefficients(shape));
    let mut q = vec![0.0; cells];
    group.bench_function("faces", |b| {
        b.iter(|| (0..rounds).for_each(|_| cg::native::faces(shape, &p, &k, black_box(&mut q))));
    });
}

fn main() {
    let full = std::env::var("DFLOW_BENCH").is_ok_and(|size| size == "full");
    let mut c = Criterion::default().with_measurement(CpuTime).configure_from_args();
    emulated(&mut c, full);
    let side = if full { 64 } else { 16 };
    native(&mut group(&mut c, "native"), cg::Shape { nx: side, ny: side, nz: 900 }, 10);
    c.final_summary();
}
