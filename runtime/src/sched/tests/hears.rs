//! Words that start tasks, in the `flow` engine: many of them at once come to what one by one does.

use dflow_ir::inst::{FlagOp, Priority};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, ColorConfig, Port, PortSet, Route};
use dflow_ir::program::{FuncId, InitialFlag, QueueBinding, TaskBinding, TaskKind};
use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;

use super::generate::Rng;
use super::random::{first, seeds};
use super::script::{Act, Script, Spec, output, vector};
use crate::config::{EngineKind, Limits};
use crate::exec::Stream;
use crate::outcome::RunEnd;
use crate::pe::heard::Hears;
use crate::sched::engine::Engine;
use crate::sched::reached::{self, Reached};
use crate::stats::Stats;

/// What a word starts.
fn heard(spec: &mut Spec, rng: &mut Rng, pe: usize) -> FuncId {
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
    if rng.below(12) == 0 {
        // A fault at one of the words.
        acts.push(Act::Join { of: rng.below(9) as u32 + 2, times: 0, id: 0 });
        acts.push(Act::Since { round: rng.below(5) as u32 + 1, act: Box::new(Act::Trap) });
    }
    let params: &[Ty] = match rng.below(5) {
        0 => &[],
        1 => &[Ty::I16, Ty::I16],
        _ => &[Ty::I32],
    };
    spec.func(pe, "heard", params, acts)
}

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
    let before = spec.programs[to].tasks.iter().find(|task| task.kind == TaskKind::Data);
    let before = before.map(|task| task.func);
    // Words of two queues may start tasks of one function.
    let func = before.filter(|_| rng.below(2) == 0).unwrap_or_else(|| heard(spec, rng, to));
    let id = if spec.target == TargetId::Wse3 { queue } else { color };
    if rng.below(5) == 0 {
        let flag = InitialFlag { op: FlagOp::RaiseChannel, id, loc: Loc::default() };
        spec.programs[to].initial_flags.push(flag);
    }
    spec.programs[to].tasks.push(TaskBinding {
        kind: TaskKind::Data,
        id,
        func,
        loc: Loc::default(),
    });
    let mut send = vector(output(queue, color), Stream::Scalar(7), rng.below(90) as u32 + 1);
    if rng.below(4) == 0 {
        send.priority = Some(Priority::High);
    }
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
        let mut channels = spec.programs[pe].tasks.iter().map(|task| u16::from(task.id));
        if let Some(channel) = channels.next_back().filter(|_| rng.below(4) == 0) {
            acts.push(Act::Flag(FlagOp::BlockChannel, channel));
            acts.push(Act::Work(rng.below(200) as u32 + 1));
            acts.push(Act::Flag(FlagOp::UnblockChannel, channel));
        }
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

/// How it ends; if that is by itself, its counters and what its PEs have read too.
type Seen = (RunEnd, Option<(Stats, Vec<u32>)>);

/// Of a row that ends before a cycle.
fn seen(spec: &Spec, (threads, region): (usize, u16), hears: Hears, limit: u64) -> Seen {
    let mut engine: Engine<Script> = spec.engine(EngineKind::Flow, threads, region);
    engine.regions.iter_mut().for_each(|region| region.hears = hears);
    let end = engine.run(&[], &Limits { cycle: limit, ..Limits::default() });
    // Tasks that others see nothing of may be ahead of a fault, or of the limit.
    let RunEnd::Idle { .. } = end else { return (end, None) };
    let cores = engine.regions.iter().flat_map(|region| region.cores.iter().flatten());
    let states = cores.map(|core| core.state.hash).collect();
    let stats = engine.stats();
    (end, Some((stats, states)))
}

/// Where words of one queue alone start tasks, all is the same. Where there are two, which goes first may differ
/// where it depends on when a word comes, and how long tasks take depends on that here; so does what control
/// wavelets say, and one that ends a color's use stops the words behind it.
#[test]
fn many_at_once_come_to_what_one_by_one_does() {
    let (mut sums, mut compared, mut ends) = ([0; 2], 0, [0; 3]);
    for seed in first()..first() + 2 * seeds() {
        let limit = if seed % 8 == 0 { 100 + seed * 37 % 2_000 } else { 100_000 };
        for region in [0, 2] {
            let spec = row(seed, false);
            let singly = seen(&spec, (1, region), Hears::Picked, limit);
            let many = seen(&spec, (1, region), Hears::InRows, limit);
            assert_eq!(many, singly, "seed {seed}, region {region}");
            ends[match many.0 {
                RunEnd::Idle { .. } => 0,
                RunEnd::Limit(_) => 1,
                _ => 2,
            }] += 1;
            let spec = row(seed, true);
            let singly = seen(&spec, (1, region), Hears::Picked, limit);
            let many = seen(&spec, (1, region), Hears::InRows, limit);
            assert_eq!(
                seen(&spec, (2, region), Hears::InRows, limit),
                many,
                "seed {seed}, two threads"
            );
            assert_eq!(
                seen(&spec, (1, region), Hears::Singly, limit),
                many,
                "seed {seed}, no rows"
            );
            let counts = |(_, told): &Seen| {
                let (Stats { delivered, hops, tasks, sent, hidden, .. }, _) = *told.as_ref()?;
                (hidden == 0).then_some((delivered, hops, tasks, sent))
            };
            if let (Some(many), Some(singly)) = (counts(&many), counts(&singly)) {
                compared += 1;
                assert_eq!(many, singly, "seed {seed}, region {region}");
            }
            if let (RunEnd::Idle { cycle: many }, RunEnd::Idle { cycle: singly }) =
                (&many.0, &singly.0)
            {
                sums.iter_mut().zip([many, singly]).for_each(|(sum, cycles)| *sum += cycles);
            }
        }
    }
    assert!(compared > seeds(), "{compared} of {} compared", 4 * seeds());
    assert!(ends.iter().all(|&count| count > 20), "ends of each kind: {ends:?}");
    let [many, singly]: [u64; 2] = sums;
    assert!(many.abs_diff(singly) * 500 < singly, "{many} cycles, {singly} one by one");
    for what in [Reached::Heard, Reached::HeardAlike, Reached::HeardOther] {
        assert!(reached::count(what) > 20, "{what:?}: {} times", reached::count(what));
    }
}
