//! How fast `ceresz` is compiled and emulated, next to the same algorithm in native code.
//!
//! `emulate` times a whole run (machine, compression, decompression, checks); `native` times
//! the two codec halves alone, on one thread. Ratios of the two are quoted in the notes.
#![forbid(unsafe_code)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dflow_compiler::{MemoryWorld, Options, compile};
use dflow_ir::image::Image;
use dflow_runtime::config::{CodeKind, Config, EngineKind, Limits};
use dflow_runtime::host::{HostEnv, HostOutcome, Input, Output, run_image};

mod native;

/// A run with one input, whose outputs are dropped.
struct Field(Vec<u8>);

impl HostEnv for Field {
    fn has_input(&self, name: &str) -> bool {
        name == "field"
    }

    fn input(&mut self, _: &str) -> Result<Input, String> {
        Ok(Input { bytes: self.0.clone(), ty: None })
    }

    fn setting(&self, _: &str) -> Option<String> {
        None
    }

    fn output(&mut self, output: Output) -> Result<(), String> {
        black_box(output);
        Ok(())
    }

    fn print(&mut self, line: &str) {
        black_box(line);
    }
}

fn program(rows: u16, cols: u16) -> Image {
    let source = dflow_stdlib::PROGRAMS.iter().find(|program| program.name == "ceresz");
    let source = source.expect("ceresz comes with the tool");
    let world = MemoryWorld::new().with(source.path, source.text);
    let params = vec![("rows".into(), rows.to_string()), ("cols".into(), cols.to_string())];
    let compiled = compile(&world, source.path, Options { params, ..Options::default() });
    compiled.image.expect("it compiles")
}

/// Smooth values with a little noise.
fn field(n: usize) -> Vec<f32> {
    let mut seed = 7_u32;
    let mut value = 0.0_f32;
    (0..n)
        .map(|i| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let noise = (seed >> 8) as f32 / 16_777_216.0 - 0.5;
            value += if i / 400 % 2 == 0 { 0.01 } else { -0.01 };
            value + noise * 0.004
        })
        .collect()
}

fn compiling(c: &mut Criterion) {
    let mut group = c.benchmark_group("ceresz/compile");
    group.sample_size(10);
    for side in [1, 16, 64] {
        group.bench_function(format!("{side}x{side}"), |b| b.iter(|| program(side, side)));
    }
    group.finish();
}

fn emulating(c: &mut Criterion) {
    let mut group = c.benchmark_group("ceresz/emulate 16x16");
    group.sample_size(10);
    let image = program(16, 16);
    let host = image.host.as_ref().expect("it has a host block");
    for (name, n, engine, code) in [
        ("exact, jit", 1 << 18, EngineKind::Exact, CodeKind::Jit),
        ("flow, jit", 1 << 18, EngineKind::Flow, CodeKind::Jit),
        ("exact, interpreter", 1 << 16, EngineKind::Exact, CodeKind::Interpreter),
        ("step, jit", 1 << 14, EngineKind::Step, CodeKind::Jit),
        ("exact, jit, as step", 1 << 14, EngineKind::Exact, CodeKind::Jit),
    ] {
        let bytes: Vec<u8> = field(n).iter().flat_map(|value| value.to_le_bytes()).collect();
        let config = Config { engine, code, threads: 1, ..Config::default() };
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |b| {
            b.iter_batched(
                || Field(bytes.clone()),
                |mut env| {
                    let run = run_image(&image, host, &config, &Limits::default(), &mut env);
                    assert_eq!(run.expect("it runs").outcome, HostOutcome::Done);
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn native_code(c: &mut Criterion) {
    let mut group = c.benchmark_group("ceresz/native");
    let values = field(1 << 20);
    group.throughput(Throughput::Bytes(4 << 20));
    let mut words = Vec::new();
    group.bench_function("compress", |b| {
        b.iter(|| {
            words.clear();
            native::compress(&values, 500.0, &mut words);
        });
    });
    let mut restored = Vec::new();
    group.bench_function("decompress", |b| {
        b.iter(|| {
            restored.clear();
            native::decompress(&words, 0.002, &mut restored);
        });
    });
    assert!(values.iter().zip(&restored).all(|(a, b)| (a - b).abs() <= 0.00101));
    group.finish();
}

criterion_group!(benches, compiling, emulating, native_code);
criterion_main!(benches);
