//! Placing a whole wafer: 745,500 PEs with ten colors each.

use criterion::{Criterion, criterion_group, criterion_main};
use dflow_compiler::Wafer;

fn place(c: &mut Criterion) {
    let wafer = Wafer::new(750, 994, 10);
    assert_eq!(wafer.place(), Ok(3), "the plan has no faults");
    let mut group = c.benchmark_group("place");
    group.sample_size(10);
    group.bench_function("wafer, ten colors", |b| b.iter(|| wafer.place()));
    group.finish();
}

criterion_group!(benches, place);
criterion_main!(benches);
