//! Machines that do the same again and again: `exact` against `step`, and `flow` with rounds against `flow` without.

use std::iter;

use dflow_ir::inst::{FlagOp, Priority};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, ColorConfig, Port, PortSet, Route};
use dflow_ir::program::{InitialFlag, QueueBinding, TaskBinding, TaskKind};
use dflow_ir::target::{Target, TargetId};
use dflow_ir::ty::Ty;

use super::generate::Rng;
use super::random::{first, seeds};
use super::script::{Act, Spec, input, output, vector};
use super::steady::run;
use crate::config::{EngineKind, Limit, Limits};
use crate::exec::{Stream, VectorStart};
use crate::outcome::RunEnd;
use crate::sched::engine::Engine;
use crate::sched::reached::{self, Reached};

const FIRST: u8 = 9;
/// Output queues of a core at most, on all targets.
const OUTPUTS: u8 = 4;

fn flag(op: FlagOp, id: u16) -> Act {
    Act::Flag(op, id)
}

fn begin(spec: &mut Spec, pe: usize, kind: TaskKind, id: u8, params: &[Ty], acts: Vec<Act>) {
    let func = spec.func(pe, "task", params, acts);
    spec.programs[pe].tasks.push(TaskBinding { kind, id, func, loc: Loc::default() });
}

pub(super) fn start(spec: &mut Spec, pe: usize, id: u8) {
    let flag = InitialFlag { op: FlagOp::Activate, id, loc: Loc::default() };
    spec.programs[pe].initial_flags.push(flag);
}

fn route(spec: &mut Spec, pe: usize, color: u8, rx: PortSet, tx: PortSet) {
    let config = ColorConfig { route: Route { rx, tx }, ..ColorConfig::default() };
    let color = Color::new(color).unwrap();
    spec.routers[pe].colors.push((color, config, Loc::default()));
}

fn queue(spec: &mut Spec, pe: usize, is_input: bool, queue: u8, color: u8) {
    let color = Color::new(color).unwrap();
    let binding = QueueBinding::new(is_input, queue, color, Loc::default());
    spec.programs[pe].queues.push(binding);
}

fn asynchronous(start: VectorStart, microthread: u8, activate: Option<u8>) -> VectorStart {
    VectorStart { asynchronous: true, microthread, activate, ..start }
}

pub(super) fn compare(what: &str, spec: &Spec, stops: &[u64]) {
    let silent = Spec { records: false, ..spec.clone() };
    let step = run(&silent, EngineKind::Step, (1, 0), stops);
    for shape in [(1, 0), (1, 1), (2, 1), (3, 2)] {
        let exact = run(&silent, EngineKind::Exact, shape, stops);
        assert_eq!(step, exact, "{what}, {shape:?}");
    }
}

/// What a task ends with is not what it ended with before, from some round on.
#[test]
fn other_ends_of_tasks() {
    for round in 0..30 {
        let mut spec = Spec::new(TargetId::Wse2, 1, 1);
        let memory = vector(Stream::Pointer { address: 0 }, Stream::Scalar(7), 5);
        let vector = Act::Vector(Box::new(asynchronous(memory, 1, None)));
        let since = Act::Since { round, act: Box::new(vector) };
        let join = Act::Join { of: 1, times: 100, id: FIRST };
        begin(&mut spec, 0, TaskKind::Local, FIRST, &[], vec![join, Act::Work(200), since]);
        start(&mut spec, 0, FIRST);
        compare(&format!("round {round}"), &spec, &[40_000]);
    }
}

/// Words of a color leave by two queues.
#[test]
fn two_queues_of_a_color() {
    for seed in first()..first() + seeds().min(300) {
        let mut rng = Rng::new(seed);
        let mut spec = Spec::new(TargetId::Wse2, 2, 1);
        let lengths = [1 + rng.below(40) as u32, 1 + rng.below(40) as u32];
        route(&mut spec, 0, 3, PortSet::one(Port::Ramp), PortSet::one(Port::East));
        route(&mut spec, 1, 3, PortSet::one(Port::West), PortSet::one(Port::Ramp));
        let mut acts = Vec::new();
        for (at, length) in lengths.into_iter().enumerate() {
            let at = at as u8;
            queue(&mut spec, 0, false, at, 3);
            let send = vector(output(at, 3), Stream::Scalar(7), length);
            acts.push(Act::Vector(Box::new(asynchronous(send, at, Some(10 + at)))));
            let join = Act::Join { of: 2, times: 200, id: FIRST };
            begin(&mut spec, 0, TaskKind::Local, 10 + at, &[], vec![join]);
        }
        begin(&mut spec, 0, TaskKind::Local, FIRST, &[], acts);
        start(&mut spec, 0, FIRST);
        queue(&mut spec, 1, true, 2, 3);
        let receive = vector(Stream::Pointer { address: 0 }, input(2, 3), lengths.iter().sum());
        let join = Act::Join { of: 1, times: 200, id: FIRST };
        begin(
            &mut spec,
            1,
            TaskKind::Local,
            FIRST,
            &[],
            vec![Act::Vector(Box::new(receive)), join],
        );
        start(&mut spec, 1, FIRST);
        spec.apart = rng.chance(70);
        spec.records = rng.chance(50);
        let [step, exact] =
            [EngineKind::Step, EngineKind::Exact].map(|kind| run(&spec, kind, (1, 0), &[20_000]));
        assert_eq!(step, exact, "seed {seed}");
    }
}

/// A fault of the emulator in a late round, and one of the program.
#[test]
fn faults_in_late_rounds() {
    for round in [3, 10, 57] {
        for act in [Act::Trap, Act::Panic] {
            let mut spec = Spec::new(TargetId::Wse2, 1, 1);
            spec.records = false;
            let since = Act::Since { round, act: Box::new(act) };
            let join = Act::Join { of: 1, times: 100, id: FIRST };
            begin(&mut spec, 0, TaskKind::Local, FIRST, &[], vec![join, Act::Work(200), since]);
            start(&mut spec, 0, FIRST);
            let ends = [EngineKind::Step, EngineKind::Exact].map(|kind| {
                let mut engine = spec.engine(kind, 1, 0);
                let end = engine.run(&[], &Limits { cycle: 40_000, ..Limits::default() });
                let again = engine.run(&[], &Limits { cycle: 40_000, ..Limits::default() });
                (end, again)
            });
            assert_eq!(ends[0], ends[1], "round {round}");
        }
    }
}

/// A queue gets no more words while others go on, and is waited for at the end.
#[test]
fn a_queue_without_words() {
    let mut spec = Spec::new(TargetId::Wse2, 2, 1);
    route(&mut spec, 0, 3, PortSet::one(Port::Ramp), PortSet::one(Port::East));
    route(&mut spec, 1, 3, PortSet::one(Port::West), PortSet::one(Port::Ramp));
    queue(&mut spec, 0, false, 1, 3);
    queue(&mut spec, 1, true, 2, 3);
    let send = Act::Vector(Box::new(vector(output(1, 3), Stream::Scalar(7), 3)));
    spec.begins(
        1,
        vec![Act::Vector(Box::new(vector(Stream::Pointer { address: 0 }, input(2, 3), 10)))],
    );
    begin(
        &mut spec,
        0,
        TaskKind::Local,
        10,
        &[],
        vec![Act::Work(50), Act::Join { of: 1, times: 100, id: 10 }],
    );
    spec.begins(0, vec![send, flag(FlagOp::Activate, 10)]);
    compare("", &spec, &[20_000]);
}

/// An operation: queue and color that it takes words from, those that it puts words into, its length.
type Piece = (Option<(u8, u8)>, Option<(u8, u8)>, u32);

struct Build {
    rng: Rng,
    spec: Spec,
    size: [usize; 2],
    times: u32,
    /// By PE: operations, and how many queues are used.
    ops: Vec<Vec<Piece>>,
    used_in: Vec<u8>,
    used_out: Vec<u8>,
}

const WAYS: [(Port, Port, [i32; 2]); 4] = [
    (Port::East, Port::West, [1, 0]),
    (Port::West, Port::East, [-1, 0]),
    (Port::South, Port::North, [0, 1]),
    (Port::North, Port::South, [0, -1]),
];

impl Build {
    fn step(&self, pe: usize, way: usize) -> Option<usize> {
        let [width, height] = self.size;
        let [x, y] = [(pe % width) as i32 + WAYS[way].2[0], (pe / width) as i32 + WAYS[way].2[1]];
        let inside = (0..width as i32).contains(&x) && (0..height as i32).contains(&y);
        inside.then(|| y as usize * width + x as usize)
    }

    fn stream(&mut self, color: u8) {
        let count = self.size[0] * self.size[1];
        let mut pe = self.rng.below(count);
        if self.used_out[pe] == OUTPUTS {
            return;
        }
        let source = pe;
        let mut ends = Vec::new();
        let mut port = PortSet::one(Port::Ramp);
        let way = self.rng.below(4);
        let hops = self.rng.below(4);
        for hop in 0..=hops {
            let next = if hop < hops { self.step(pe, way) } else { None };
            let free = self.used_in[pe] < 6;
            let last = next.is_none();
            let ends_here = last || hop > 0 && free && self.rng.chance(30);
            let mut tx = PortSet::default();
            if ends_here {
                ends.push(pe);
                tx = PortSet::one(Port::Ramp);
            }
            if !last {
                tx = tx.with(WAYS[way].0);
            }
            route(&mut self.spec, pe, color, port, tx);
            port = PortSet::one(WAYS[way].1);
            let Some(next) = next else { break };
            pe = next;
        }
        let length = if self.rng.chance(8) { 0 } else { 1 + self.rng.below(14) as u32 };
        let out = self.used_out[source];
        self.used_out[source] += 1;
        queue(&mut self.spec, source, false, out, color);
        self.ops[source].push((None, Some((out, color)), length));
        let data = color >= 16;
        for pe in ends {
            let into = self.used_in[pe] + 1;
            self.used_in[pe] += 1;
            queue(&mut self.spec, pe, true, into, color);
            if data {
                let by_queue = Target::get(self.spec.target).data_task_by_queue;
                let id = if by_queue { into } else { color };
                let mut acts = vec![Act::Work(self.rng.below(6) as u32)];
                if self.rng.chance(20) {
                    let of = 5 + self.rng.below(300) as u32;
                    acts.push(Act::Depends { of, slots: 3 });
                }
                if self.rng.chance(10) {
                    let ops = if self.rng.chance(50) {
                        [FlagOp::RaiseTask, FlagOp::LowerTask]
                    } else {
                        [FlagOp::RaiseChannel, FlagOp::LowerChannel]
                    };
                    acts.push(flag(ops[self.rng.below(2)], id.into()));
                }
                begin(&mut self.spec, pe, TaskKind::Data, id, &[Ty::I32], acts);
            } else {
                self.ops[pe].push((Some((into, color)), None, length));
            }
        }
    }

    /// What happens beside operations, in some rounds.
    fn extras(&mut self, threads: &[u8], acts: &mut Vec<Act>) {
        let wse3 = self.spec.target == TargetId::Wse3;
        let extra = self.rng.below(6);
        for _ in 0..extra {
            let of = 2 + self.rng.below(4) as u32;
            let act = match self.rng.below(9) {
                0 => Act::Every { of, act: Box::new(Act::Work(self.rng.below(9) as u32)) },
                1 => Act::Every {
                    of,
                    act: Box::new(flag(FlagOp::MainPriority, self.rng.below(4) as u16)),
                },
                2 => Act::Every { of, act: Box::new(flag(FlagOp::RaiseTask, 10)) },
                3 => Act::Every { of: of + 1, act: Box::new(flag(FlagOp::LowerTask, 10)) },
                4 if wse3 => flag(FlagOp::BlockMicrothread, threads[0].into()),
                4 => Act::Yield,
                5 => Act::Since {
                    round: self.rng.below(self.times as usize) as u32,
                    act: Box::new(Act::Work(1 + self.rng.below(30) as u32)),
                },
                6 => Act::Yield,
                7 => Act::Since {
                    round: self.rng.below(12) as u32,
                    act: Box::new(Act::Vector(Box::new(asynchronous(
                        vector(
                            Stream::Pointer { address: 0 },
                            Stream::Scalar(7),
                            self.rng.below(5) as u32,
                        ),
                        threads[7],
                        None,
                    )))),
                },
                _ => Act::Depends { of: 3 + self.rng.below(400) as u32, slots: 2 },
            };
            let blocks = matches!(act, Act::Flag(FlagOp::BlockMicrothread, _));
            let place = 1 + self.rng.below(acts.len());
            acts.insert(place, act);
            if blocks {
                acts.push(Act::Work(9));
                acts.push(flag(FlagOp::UnblockMicrothread, threads[0].into()));
            }
        }
    }

    fn tasks(&mut self, pe: usize) {
        let mut ops = std::mem::take(&mut self.ops[pe]);
        // Some relay.
        if self.rng.chance(30) {
            let from = ops.iter().position(|op| op.0.is_some() && op.1.is_none());
            let to = ops.iter().position(|op| op.0.is_none() && op.1.is_some());
            if let (Some(from), Some(to)) = (from, to)
                && ops[to].2 == ops[from].2
            {
                ops[to].0 = ops[from].0;
                ops.remove(from);
            }
        }
        let mut acts = vec![Act::Work(self.rng.below(40) as u32)];
        let (mut parts, mut thread) = (1, 0u8);
        let mut threads: Vec<u8> = (0..8).collect();
        for at in (1..8).rev() {
            threads.swap(at, self.rng.below(at + 1));
        }
        let mut joins = Vec::new();
        while !ops.is_empty() {
            let (from, to, length) = ops.swap_remove(self.rng.below(ops.len()));
            let dest = to.map_or(Stream::Pointer { address: 0 }, |(q, c)| output(q, c));
            let source = from.map_or(Stream::Scalar(9), |(q, c)| input(q, c));
            let mut op = vector(dest, source, length);
            if self.rng.chance(10) {
                op.priority = Some([Priority::High, Priority::Medium][self.rng.below(2)]);
            }
            if thread < 6 && self.rng.chance(75) {
                op = asynchronous(op, threads[usize::from(thread)], Some(10 + thread));
                joins.push(10 + thread);
                thread += 1;
                parts += 1;
            }
            acts.push(Act::Vector(Box::new(op)));
            if self.rng.chance(40) {
                acts.push(Act::Work(self.rng.below(12) as u32));
            }
        }
        self.extras(&threads, &mut acts);
        if self.rng.chance(4) {
            let round = self.rng.below(self.times as usize) as u32;
            acts.push(Act::Since { round, act: Box::new(Act::Trap) });
        }
        let join = Act::Join { of: parts, times: self.times, id: FIRST };
        acts.push(join.clone());
        if self.rng.chance(30) {
            acts.push(Act::Work(self.rng.below(90) as u32));
        }
        begin(&mut self.spec, pe, TaskKind::Local, FIRST, &[], acts);
        for id in joins {
            let acts = vec![Act::Work(self.rng.below(5) as u32), join.clone()];
            begin(&mut self.spec, pe, TaskKind::Local, id, &[], acts);
        }
        start(&mut self.spec, pe, FIRST);
    }
}

fn machine(seed: u64) -> Spec {
    let mut rng = Rng::new(seed);
    let target = if rng.chance(60) { TargetId::Wse2 } else { TargetId::Wse3 };
    let size = [1 + rng.below(4), 1 + rng.below(2)];
    let spec = Spec::new(target, size[0] as u16, size[1] as u16);
    let count = size[0] * size[1];
    let mut build = Build {
        rng,
        spec,
        size,
        times: 20,
        ops: vec![Vec::new(); count],
        used_in: vec![0; count],
        used_out: vec![0; count],
    };
    build.times = 10 + build.rng.below(200) as u32;
    let streams = 1 + build.rng.below(2 * count + 1).min(7);
    for color in 0..streams {
        build.stream(color as u8);
    }
    for color in 0..build.rng.below(3) {
        build.stream(16 + color as u8);
    }
    for pe in 0..count {
        build.tasks(pe);
    }
    build.spec.apart = build.rng.chance(60);
    build.spec.slow = build.rng.chance(10);
    build.spec.spare = build.rng.spare();
    for router in &mut build.spec.routers {
        router.colors.sort_by_key(|(color, ..)| *color);
    }
    build.spec
}

#[test]
fn hostile_rounds_agree() {
    for seed in first()..first() + seeds() / 4 {
        let spec = machine(seed);
        let mut rng = Rng::new(seed + 77);
        let mut stops: Vec<u64> = (0..12).map(|_| 100 + rng.below(14_000) as u64).collect();
        stops.sort_unstable();
        stops.push(20_000);
        let stops = if rng.chance(50) { &stops[..] } else { &stops[12..] };
        compare(&format!("seed {seed}"), &spec, stops);
    }
}

/// `flow` takes the same cycles with rounds as without, for each division into regions; how often rounds began
/// in each.
pub(super) fn compare_flow(what: &str, spec: &Spec, stops: &[u64]) -> [u64; 4] {
    let silent = Spec { records: false, ..spec.clone() };
    let recorded = Spec { records: true, ..spec.clone() };
    [(0, 1), (1, 1), (1, 3), (2, 2)].map(|(region, threads)| {
        let before = reached::count(Reached::Rounds);
        let mut plain = run(&recorded, EngineKind::Flow, (1, region), stops);
        plain.events.clear();
        let rounds = run(&silent, EngineKind::Flow, (threads, region), stops);
        assert_eq!(plain, rounds, "{what}, regions {region}, {threads} threads");
        reached::count(Reached::Rounds) - before
    })
}

#[test]
fn hostile_rounds_of_flow_agree() {
    // The first: a word comes while a core has gone ahead with those of another queue.
    for seed in iter::once(5469).chain(first()..first() + seeds() / 4) {
        let mut rng = Rng::new(seed + 78);
        let mut stops: Vec<u64> = (0..12).map(|_| 100 + rng.below(14_000) as u64).collect();
        stops.sort_unstable();
        stops.push(20_000);
        let stops = if rng.chance(50) { &stops[..] } else { &stops[12..] };
        compare_flow(&format!("seed {seed}"), &machine(seed), stops);
    }
}

/// A word goes round: nobody ever has all the words that it is to hand on.
#[test]
fn words_that_go_round() {
    let mut spec = Spec::new(TargetId::Wse2, 2, 1);
    let (ramp, east, west) =
        (PortSet::one(Port::Ramp), PortSet::one(Port::East), PortSet::one(Port::West));
    route(&mut spec, 0, 3, ramp, east);
    route(&mut spec, 1, 3, west, ramp);
    route(&mut spec, 1, 4, ramp, west);
    route(&mut spec, 0, 4, east, ramp);
    for pe in 0..2 {
        let (sends, takes) = if pe == 0 { (3, 4) } else { (4, 3) };
        queue(&mut spec, pe, false, 1, sends);
        queue(&mut spec, pe, true, 2, takes);
        let (out, into) = (output(1, sends), input(2, takes));
        let memory = Stream::Pointer { address: 0 };
        let mut ops = vec![vector(out, into, 9)];
        if pe == 0 {
            let first = vector(out, Stream::Scalar(7), 1);
            ops = vec![first, vector(out, into, 8), vector(memory, into, 1)];
        }
        let mut acts: Vec<Act> = ops.into_iter().map(|op| Act::Vector(Box::new(op))).collect();
        acts.push(Act::Join { of: 1, times: 60, id: FIRST });
        begin(&mut spec, pe, TaskKind::Local, FIRST, &[], acts);
        start(&mut spec, pe, FIRST);
    }
    compare("", &spec, &[20_000]);
    assert!(reached::count(Reached::ByWords) > 0);
    compare_flow("", &spec, &[20_000]);
}

/// Cores of `flow` run ahead over many tasks in a visit, and repeat themselves from visit to visit, also where one
/// changes in some round. (Where visits to PEs are so far apart that they coincide at no time of the run there are
/// none.)
#[test]
fn tasks_that_run_ahead_go_round() {
    let since = |round, slots| Act::Since { round, act: Box::new(Act::Work(slots)) };
    for (work, changes, goes_round) in
        [([5, 5], None, true), ([5, 8], None, false), ([5, 5], Some(9_000), true)]
    {
        let mut spec = Spec::new(TargetId::Wse2, 2, 1);
        for (pe, slots) in work.into_iter().enumerate() {
            let first = vec![Act::Work(slots), flag(FlagOp::Activate, u16::from(FIRST) + 1)];
            let mut second = vec![Act::Join { of: 1, times: 10_000, id: FIRST }];
            second.extend(changes.filter(|_| pe == 1).map(|round| since(round, 30)));
            begin(&mut spec, pe, TaskKind::Local, FIRST, &[], first);
            begin(&mut spec, pe, TaskKind::Local, FIRST + 1, &[], second);
            start(&mut spec, pe, FIRST);
        }
        let what = format!("{work:?}, {changes:?}");
        let rounds = compare_flow(&what, &spec, &[70_001, 500_000]);
        assert!(rounds.iter().all(|&count| (count != 0) == goes_round), "{what}: {rounds:?}");
    }
}

/// Machines reach what these tests are about, in both engines and with several regions.
#[test]
fn hostile_rounds_are_reached() {
    let (exact, flow) = (EngineKind::Exact, EngineKind::Flow);
    for (kind, region) in [(exact, 0), (exact, 1), (flow, 0), (flow, 1), (flow, 2)] {
        let what = [(Reached::Rounds, 10), (Reached::Round, 100), (Reached::Apart, 10)];
        let before = what.map(|(what, _)| reached::count(what));
        for seed in 0..60 {
            run(&Spec { records: false, ..machine(seed) }, kind, (1, region), &[20_000]);
        }
        for ((what, least), before) in what.into_iter().zip(before) {
            let count = reached::count(what) - before;
            assert!(count >= least, "{kind:?}, regions {region}, {what:?}: {count}");
        }
    }
    use Reached::{
        AtOnce, MadeBehind, RoundAbroad, RoundForked, RoundInChannel, RoundPast, RoundSame,
    };
    for what in [AtOnce, MadeBehind, RoundAbroad, RoundForked, RoundInChannel, RoundPast, RoundSame]
    {
        let count = reached::count(what);
        assert!(count > 10, "{what:?}: {count}");
    }
}

/// Memory that regions hold counts once, however often rounds are looked for.
#[test]
fn looking_for_rounds_holds_no_memory() {
    for every in [2, 3, 5] {
        let mut spec = Spec::new(TargetId::Wse2, 1, 1);
        spec.records = false;
        let slower = Act::Every { of: every, act: Box::new(Act::Work(50)) };
        let join = Act::Join { of: 1, times: 1000, id: FIRST };
        begin(&mut spec, 0, TaskKind::Local, FIRST, &[], vec![join, Act::Work(200), slower]);
        start(&mut spec, 0, FIRST);
        let mut engine = spec.engine(EngineKind::Exact, 1, 0);
        engine.run(&[], &Limits { cycle: 500, ..Limits::default() });
        let memory = 4 * engine.doing().bytes;
        let end = engine.run(&[], &Limits { cycle: 100_000, memory, ..Limits::default() });
        assert_eq!(end, RunEnd::Limit(Limit::Cycles), "every {every}");
    }
}

/// Boxes of operations are used again: their number does not grow with the time.
#[test]
fn operations_hold_no_memory_when_they_have_ended() {
    for kind in [EngineKind::Exact, EngineKind::Flow] {
        for seed in 0..20 {
            let mut engine = Spec { records: false, ..machine(seed) }.engine(kind, 1, 0);
            let bytes = |engine: &mut Engine<_>, cycle| {
                engine.run(&[], &Limits { cycle, ..Limits::default() });
                engine.doing().bytes
            };
            let early = bytes(&mut engine, 5_000);
            let late = bytes(&mut engine, 20_000);
            assert!(late <= 2 * early, "{kind:?}, seed {seed}: {early} bytes, {late} later");
        }
    }
}
