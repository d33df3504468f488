//! Words that start tasks, in the `flow` engine: many of them at once come to what one by one does.

use dflow_ir::inst::FlagOp;
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, ColorConfig, Port, PortSet, Route};
use dflow_ir::program::{QueueBinding, TaskBinding, TaskKind};
use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;

use super::generate::Rng;
use super::random::{first, seeds};
use super::script::{Act, Script, Spec, output, vector};
use crate::config::{EngineKind, Limits};
use crate::exec::Stream;
use crate::outcome::RunEnd;
use crate::sched::engine::Engine;
use crate::sched::reached::{self, Reached};
use crate::stats::Stats;

/// A color leads from a PE so many to the east, where its words start tasks.
fn stream(spec: &mut Spec, rng: &mut Rng, color: u8, from: usize, hops: usize) -> Vec<Act> {
    let to = from + hops;
    if to >= usize::from(spec.width) {
        return Vec::new();
    }
    let id = Color::new(color).unwrap();
    for pe in from..=to {
        let rx = if pe == from { Port::Ramp } else { Port::West };
        let tx = if pe == to { Port::Ramp } else { Port::East };
        let route = Route { rx: PortSet::one(rx), tx: PortSet::one(tx) };
        let config = ColorConfig { route, ..ColorConfig::default() };
        spec.routers[pe].colors.push((id, config, Loc::default()));
    }
    let queue = color - 2;
    for (pe, is_input) in [(from, false), (to, true)] {
        spec.programs[pe].queues.push(QueueBinding::new(is_input, queue, id, Loc::default()));
    }
    let mut acts = vec![Act::Work(rng.below(9) as u32 + 1)];
    if rng.below(3) == 0 {
        acts.push(Act::Depends { of: rng.below(6) as u32 + 2, slots: rng.below(20) as u32 + 1 });
    }
    if rng.below(6) == 0 {
        acts.push(Act::Yield);
        acts.push(Act::Work(2));
    }
    if rng.below(6) == 0 {
        acts.push(Act::Flag(FlagOp::Activate, 14));
    }
    let params: &[Ty] = if rng.below(4) == 0 { &[] } else { &[Ty::I32] };
    let func = spec.func(to, "heard", params, acts);
    let id = if spec.target == TargetId::Wse3 { queue } else { color };
    spec.programs[to].tasks.push(TaskBinding {
        kind: TaskKind::Data,
        id,
        func,
        loc: Loc::default(),
    });
    let mut send = vector(output(queue, color), Stream::Scalar(7), rng.below(90) as u32 + 1);
    if rng.below(4) != 0 {
        (send.asynchronous, send.microthread) = (true, queue);
        return vec![Act::Vector(Box::new(send))];
    }
    // Control wavelets between words, which stand in one queue.
    let mut mark = vector(output(queue, color), Stream::Scalar(7), 1);
    if let Stream::Output { control, .. } = &mut mark.dest {
        *control = true;
    }
    let all = [&send, &mark, &send, &mark, &send];
    all.map(|start| Act::Vector(Box::new(start.clone()))).to_vec()
}

/// A row of PEs that send words to those behind them; each hears one queue, or two.
fn row(seed: u64, both: bool) -> Spec {
    let mut rng = Rng::new(seed);
    let target = if rng.below(2) == 0 { TargetId::Wse2 } else { TargetId::Wse3 };
    let width = rng.below(6) + 2;
    let mut spec = Spec::new(target, width as u16, 1);
    spec.records = false;
    for pe in 0..width {
        let mut acts = vec![Act::Work(rng.below(40) as u32 + 1)];
        acts.extend(stream(&mut spec, &mut rng, 2 + (pe % 2) as u8, pe, 1));
        if both && rng.below(2) == 0 {
            acts.extend(stream(&mut spec, &mut rng, 4 + (pe % 3) as u8, pe, 2));
        }
        if rng.below(2) == 0 {
            acts.push(Act::Work(rng.below(300) as u32 + 1));
        }
        spec.begins(pe, acts);
        let func = spec.func(pe, "local", &[], vec![Act::Work(5)]);
        let (kind, id, loc) = (TaskKind::Local, 14, Loc::default());
        spec.programs[pe].tasks.push(TaskBinding { kind, id, func, loc });
    }
    spec
}

/// The cycle of its end, its counters, and what its PEs have read.
type Seen = (u64, Stats, Vec<u32>);

fn seen(spec: &Spec, threads: usize, region: u16, singly: bool) -> Seen {
    let mut engine: Engine<Script> = spec.engine(EngineKind::Flow, threads, region);
    engine.regions.iter_mut().for_each(|region| region.hears_singly = singly);
    let end = engine.run(&[], &Limits { cycle: 100_000, ..Limits::default() });
    let RunEnd::Idle { cycle } = end else { panic!("{end:?}") };
    let cores = engine.regions.iter().flat_map(|region| region.cores.iter().flatten());
    let states = cores.map(|core| core.state.hash).collect();
    (cycle, engine.stats(), states)
}

/// Where words of one queue alone start tasks, all is the same. Where there are two, which goes first may differ
/// where it depends on when a word comes, and how long tasks take depends on that here; so does what control
/// wavelets say, and one that ends a color's use stops the words behind it.
#[test]
fn many_at_once_come_to_what_one_by_one_does() {
    let (mut sums, mut compared) = ([0; 2], 0);
    for seed in first()..first() + 2 * seeds() {
        for region in [0, 2] {
            let spec = row(seed, false);
            let singly = seen(&spec, 1, region, true);
            assert_eq!(seen(&spec, 1, region, false), singly, "seed {seed}, region {region}");
            let spec = row(seed, true);
            let singly = seen(&spec, 1, region, true);
            let many = seen(&spec, 1, region, false);
            assert_eq!(seen(&spec, 2, region, false), many, "seed {seed}, two threads");
            let counts = |(_, stats, _): &Seen| {
                let Stats { delivered, hops, tasks, sent, .. } = *stats;
                (delivered, hops, tasks, sent)
            };
            if many.1.hidden == 0 && singly.1.hidden == 0 {
                compared += 1;
                assert_eq!(counts(&many), counts(&singly), "seed {seed}, region {region}");
            }
            sums.iter_mut().zip([many.0, singly.0]).for_each(|(sum, cycles)| *sum += cycles);
        }
    }
    assert!(compared > seeds(), "{compared} of {} compared", 4 * seeds());
    let [many, singly] = sums;
    assert!(many.abs_diff(singly) * 500 < singly, "{many} cycles, {singly} one by one");
    for what in [Reached::Heard, Reached::HeardAlike, Reached::HeardOther] {
        assert!(reached::count(what) > 20, "{what:?}: {} times", reached::count(what));
    }
}
