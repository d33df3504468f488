//! The whole wafer: what it takes to compile and load a program for 750 x 994 PEs, and what a PE
//! costs in memory.
//!
//! `compile` is everything from text to image, `load` everything from the image to the first cycle (native code
//! included). Bytes per PE are those of the resident set beyond that of a small mesh: at load, and after
//! the run. They are printed, as criterion only knows times.
#![forbid(unsafe_code)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group};
use dflow_compiler::{MemoryWorld, Options, compile};
use dflow_ir::image::Image;
use dflow_runtime::config::{Config, Limits};
use dflow_runtime::machine::{Loaded, Machine};
use dflow_runtime::outcome::RunEnd;

/// Name and text.
type Program = (&'static str, &'static str);

const IDLE: Program = ("idle", include_str!("programs/idle.dfl"));
const CLASSES: Program = ("classes", include_str!("programs/classes.dfl"));
const COORDINATES: Program = ("coordinates", include_str!("programs/coordinates.dfl"));
const LARGE: Program = ("large", include_str!("programs/large.dfl"));

/// The whole wafer, and a mesh whose state fits into any computer's memory.
const WAFER: (u16, u16) = (750, 994);
const QUARTER: (u16, u16) = (375, 497);

fn image((name, text): Program, (width, height): (u16, u16)) -> Image {
    let path = format!("{name}.dfl");
    let world = MemoryWorld::new().with(&path, text);
    let params = vec![("width".into(), width.to_string()), ("height".into(), height.to_string())];
    let compiled = compile(&world, &path, Options { params, ..Options::default() });
    compiled.image.expect("it compiles")
}

fn machine(image: &Image) -> Machine<Loaded> {
    Machine::load(image, &Config::default()).expect("it loads")
}

fn compiling(c: &mut Criterion) {
    let mut group = c.benchmark_group("scale/compile");
    group.sample_size(10).throughput(Throughput::Elements(745_500));
    for program in [IDLE, CLASSES, COORDINATES] {
        group.bench_function(program.0, |b| {
            b.iter_with_large_drop(|| image(black_box(program), WAFER));
        });
    }
    group.finish();
}

fn loading(c: &mut Criterion) {
    let mut group = c.benchmark_group("scale/load");
    group.sample_size(10).throughput(Throughput::Elements(745_500));
    for program in [IDLE, CLASSES, COORDINATES] {
        let image = image(program, WAFER);
        group.bench_function(program.0, |b| {
            b.iter_batched(|| (), |()| machine(&image), BatchSize::PerIteration);
        });
    }
    group.finish();
}

/// Bytes of this process that are in memory, as Linux says; nothing is known elsewhere.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Bytes per PE of one program, at load and after the run; what was freed before would hide what is taken, so this
/// is a process of its own.
#[expect(clippy::print_stdout, reason = "criterion has no place for bytes")]
fn memory(program: Program) {
    // What comes once, whatever the mesh: threads, code generator, allocator.
    let mut small = machine(&image(CLASSES, (9, 9))).start();
    assert!(matches!(small.run(&[], &Limits::default()), RunEnd::Idle { .. }));
    let image = image(program, QUARTER);
    let pes = image.placement.rect.area() as f64;
    let Some(before) = resident() else { return };
    let per_pe = |now: Option<u64>| now.unwrap_or(before).saturating_sub(before) as f64 / pes;
    let mut machine = machine(&image).start();
    let loaded = per_pe(resident());
    assert!(matches!(machine.run(&[], &Limits::default()), RunEnd::Idle { .. }));
    let ran = per_pe(resident());
    let (tables, state) = (machine.table_bytes() as f64, machine.state_bytes() as f64);
    println!(
        "scale/memory/{}: {loaded:.0} bytes per PE loaded, {ran:.0} after the run; counted: tables {:.0}, state {:.0}",
        program.0,
        tables / pes,
        state / pes
    );
}

/// Measures each program's memory in a process of its own.
fn memories() {
    let Ok(own) = std::env::current_exe() else { return };
    for (name, _) in PROGRAMS {
        let measured = std::process::Command::new(&own).arg(format!("{ONE}{name}")).status();
        assert!(measured.is_ok_and(|status| status.success()), "{name} is measured");
    }
}

const PROGRAMS: [Program; 4] = [IDLE, CLASSES, COORDINATES, LARGE];

/// How a process is told which program to measure.
const ONE: &str = "--memory=";

criterion_group!(benches, compiling, loading);

fn main() {
    // `cargo test` runs benches once, to see that they work: a wafer is too much for that.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    if let Some(name) = std::env::args().find_map(|arg| arg.strip_prefix(ONE).map(str::to_owned)) {
        return PROGRAMS.into_iter().filter(|(known, _)| *known == name).for_each(memory);
    }
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    if filter.is_none_or(|filter| "scale/memory".contains(&filter)) {
        memories();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
