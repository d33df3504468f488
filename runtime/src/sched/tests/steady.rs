//! Steady cores of `exact` against `step`: random chains along rows, whose operations seldom begin
//! and end together, and words of others that cross them.

use dflow_ir::inst::{FlagOp, Priority};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, ColorConfig, Port, PortSet, Route};
use dflow_ir::program::{InitialFlag, QueueBinding, TaskBinding, TaskKind};
use dflow_ir::target::{Target, TargetId};
use dflow_ir::ty::Ty;

use super::generate::Rng;
use super::random::{first, seeds};
use super::script::{Act, Script, Spec, input, output, vector};
use crate::config::{EngineKind, Limits};
use crate::exec::{Stream, VectorStart};
use crate::outcome::{Deadlock, RunEnd};
use crate::sched::engine::Engine;
use crate::sched::exact::pace::Pace;
use crate::sched::reached::{self, Reached};
use crate::sched::record::Event;
use crate::stats::Stats;
use crate::ways::Stretches;

/// Queues of chains, and that of others' words.
const IN: u8 = 2;
const OUT: u8 = 3;
const OTHERS: u8 = 5;
/// The first task of each PE.
const FIRST: u8 = 9;

struct Build {
    rng: Rng,
    spec: Spec,
    width: usize,
    height: usize,
}

/// Rows of chains, and a row below them from which words of other colors come.
fn machine(seed: u64) -> Spec {
    let mut rng = Rng::new(seed);
    let target = if rng.chance(60) { TargetId::Wse2 } else { TargetId::Wse3 };
    let (width, height) = (2 + rng.below(8), 1 + rng.below(3));
    let spec = Spec::new(target, width as u16, height as u16 + 1);
    let mut build = Build { rng, spec, width, height };
    for row in 0..height {
        build.chain(row);
    }
    for color in 4..4 + build.rng.below(3.min(width)) as u8 {
        build.other(color);
    }
    for router in &mut build.spec.routers {
        router.colors.sort_by_key(|(color, ..)| *color);
    }
    build.spec
}

impl Build {
    fn route(&mut self, pe: usize, color: u8, rx: Port, tx: Port) {
        let route = Route { rx: PortSet::one(rx), tx: PortSet::one(tx) };
        let config = ColorConfig { route, ..ColorConfig::default() };
        let color = Color::new(color).unwrap();
        self.spec.routers[pe].colors.push((color, config, Loc::default()));
    }

    fn queue(&mut self, pe: usize, is_input: bool, queue: u8, color: u8) {
        let binding =
            QueueBinding::new(is_input, queue, Color::new(color).unwrap(), Loc::default());
        self.spec.programs[pe].queues.push(binding);
    }

    fn task(&mut self, pe: usize, kind: TaskKind, id: u8, params: &[Ty], acts: Vec<Act>) {
        let func = self.spec.func(pe, "task", params, acts);
        self.spec.programs[pe].tasks.push(TaskBinding { kind, id, func, loc: Loc::default() });
    }

    fn begins(&mut self, pe: usize) {
        let flag = InitialFlag { op: FlagOp::Activate, id: FIRST, loc: Loc::default() };
        self.spec.programs[pe].initial_flags.push(flag);
    }

    /// Lengths of operations that move so many words in all, or about so many.
    fn lengths(&mut self, rounds: &[usize]) -> Vec<usize> {
        let total: usize = rounds.iter().sum();
        match self.rng.below(10) {
            0..6 => rounds.to_vec(),
            6 => vec![total],
            7 => {
                let part = 1 + self.rng.below(total);
                vec![part, total - part]
            }
            8 => vec![total + self.rng.below(30)],
            _ => vec![total.saturating_sub(self.rng.below(30)).max(1)],
        }
    }

    /// A chain from the east of a row to the west, from stop to stop.
    fn chain(&mut self, row: usize) {
        let mut stops = vec![self.width - 1];
        while let Some(&last) = stops.last()
            && last != 0
        {
            stops.push(last.saturating_sub(1 + self.rng.below(3)));
        }
        let rounds: Vec<usize> = (0..1 + self.rng.below(3))
            .map(|_| [5, 30, 100, 250][self.rng.below(4)] + self.rng.below(40))
            .collect();
        for (at, &x) in stops.iter().enumerate() {
            let pe = row * self.width + x;
            let (from, to) = ((at + 1) as u8 % 2, at as u8 % 2);
            let (starts, ends) = (at == 0, at + 1 == stops.len());
            if !starts {
                self.route(pe, from, Port::East, Port::Ramp);
                self.queue(pe, true, IN, from);
            }
            if !ends {
                self.route(pe, to, Port::Ramp, Port::West);
                self.queue(pe, false, OUT, to);
                for between in stops[at + 1] + 1..x {
                    self.route(row * self.width + between, to, Port::East, Port::West);
                }
            }
            let source = if starts { Stream::Scalar(7) } else { input(IN, from) };
            let dest = if ends { Stream::Pointer { address: 0 } } else { output(OUT, to) };
            let lengths = self.lengths(&rounds);
            self.operations(pe, &vector(dest, source, 0), &lengths);
        }
    }

    /// A PE does operations one after the other.
    fn operations(&mut self, pe: usize, like: &VectorStart, lengths: &[usize]) {
        for (id, &length) in (FIRST..).zip(lengths) {
            let mut start = VectorStart { length: Some(length as u32), ..like.clone() };
            let next = (usize::from(id - FIRST) + 1 < lengths.len()).then_some(id + 1);
            let mut acts = vec![Act::Work([0, 0, 0, 1, 7, 60][self.rng.below(6)])];
            if self.rng.chance(70) {
                (start.asynchronous, start.microthread) = (true, 1);
                start.activate = next;
                if self.rng.chance(20) {
                    start.priority = Some(Priority::High);
                }
            }
            let flag = next.filter(|_| !start.asynchronous);
            acts.push(Act::Vector(Box::new(start)));
            // Code beside the operation.
            acts.extend(self.rng.chance(20).then_some(Act::Work(90)));
            acts.extend(flag.map(|next| Act::Flag(FlagOp::Activate, next.into())));
            self.task(pe, TaskKind::Local, id, &[], acts);
        }
        self.begins(pe);
    }

    /// Words of another color, up a column and perhaps along a row, to a data task, or to nobody.
    fn other(&mut self, color: u8) {
        let x = usize::from(color - 4) * (self.width / 3);
        let (row, west) = (self.rng.below(self.height), self.rng.below(x.min(2) + 1));
        let sender = self.height * self.width + x;
        let mut acts = Vec::new();
        for _ in 0..1 + self.rng.below(5) {
            acts.push(Act::Work([3, 20, 100, 200][self.rng.below(4)] + self.rng.below(50) as u32));
            let words = 1 + [0, 3, 30][self.rng.below(3)];
            acts.push(Act::Vector(Box::new(vector(output(OUT, color), Stream::Scalar(1), words))));
        }
        self.route(sender, color, Port::Ramp, Port::North);
        self.queue(sender, false, OUT, color);
        self.task(sender, TaskKind::Local, FIRST, &[], acts);
        self.begins(sender);
        for between in row + 1..self.height {
            self.route(between * self.width + x, color, Port::South, Port::North);
        }
        let mut from = Port::South;
        for step in 0..west {
            self.route(row * self.width + x - step, color, from, Port::West);
            from = Port::East;
        }
        let end = row * self.width + x - west;
        self.route(end, color, from, Port::Ramp);
        if self.spec.programs[end].queues.iter().any(|it| it.queue == OTHERS && it.input) {
            return;
        }
        self.queue(end, true, OTHERS, color);
        if self.rng.chance(80) {
            let mut acts = vec![Act::Work(self.rng.below(12) as u32)];
            if self.rng.chance(30) {
                acts.insert(0, Act::Flag(FlagOp::BlockMicrothread, 1));
                acts.push(Act::Flag(FlagOp::UnblockMicrothread, 1));
            }
            let by_queue = Target::get(self.spec.target).data_task_by_queue;
            let id = if by_queue { OTHERS } else { color };
            self.task(end, TaskKind::Data, id, &[Ty::I32], acts);
        }
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    ends: Vec<RunEnd>,
    pub(super) events: Vec<Event>,
    stats: Stats,
    /// What `flow` did by stretches.
    stretches: Stretches,
    waiting: Deadlock,
    hashes: Vec<u32>,
}

pub(super) fn run(
    spec: &Spec,
    kind: EngineKind,
    (threads, region): (usize, u16),
    stops: &[u64],
) -> Seen {
    let mut engine: Engine<Script> = spec.engine(kind, threads, region);
    engine.pace = Pace::restless(40);
    let run = |&cycle| engine.run(&[], &Limits { cycle, ..Limits::default() });
    let ends = stops.iter().map(run).collect();
    assert!(engine.account().is_balanced());
    let mut hashes: Vec<(u32, u32)> = Vec::new();
    for core in engine.regions.iter().flat_map(|region| &region.cores).flatten() {
        hashes.push((core.at.number, core.state.hash));
    }
    hashes.sort_unstable();
    Seen {
        ends,
        events: engine.events(),
        stats: engine.stats(),
        stretches: engine.ways().stretches,
        waiting: engine.deadlock(),
        hashes: hashes.into_iter().map(|(_, hash)| hash).collect(),
    }
}

/// The machine of a seed does the same in all engines.
pub(super) fn agree(seed: u64, spec: &Spec) {
    let mut rng = Rng::new(seed + 1);
    let stops = [50 + rng.below(600) as u64, 700 + rng.below(300) as u64, 4000];
    let stops = if rng.chance(40) { &stops[..] } else { &stops[2..] };
    let step = run(spec, EngineKind::Step, (1, 0), stops);
    let silent = Spec { records: false, ..spec.clone() };
    for (spec, shape) in
        [(spec, (1, 0)), (spec, (1, 3)), (spec, (2, 2)), (&silent, (1, 0)), (&silent, (2, 3))]
    {
        let exact = run(spec, EngineKind::Exact, shape, stops);
        let on = format!("seed {seed}, {shape:?}, recorded: {}", spec.records);
        let first = step.events.iter().zip(&exact.events).find(|(step, exact)| step != exact);
        assert_eq!(first, None, "{on}");
        // A run that is over just before it is stopped may be stopped in one engine and over in the other.
        let stopped = stops.len() - 1;
        if step.ends[..stopped] == exact.ends[..stopped] {
            assert_eq!(step.ends.last(), exact.ends.last(), "{on}");
            assert_eq!(step.waiting, exact.waiting, "{on}");
        }
        assert_eq!(step.stats, exact.stats, "{on}");
        assert_eq!(&step.hashes, &exact.hashes, "{on}");
        let events = if spec.records { step.events.len() } else { 0 };
        assert_eq!(events, exact.events.len(), "{on}");
    }
}

#[test]
fn chains_agree() {
    for seed in first()..first() + seeds() {
        agree(seed, &machine(seed));
    }
}

/// A word that nobody waits for is still under way when a run stops: its last hop counts.
#[test]
fn a_word_is_under_way_when_a_run_stops() {
    for stop in 1..60 {
        let spec = unread(12);
        let run = |kind| run(&spec, kind, (1, 0), &[stop, 4000]);
        let (step, exact) = (run(EngineKind::Step), run(EngineKind::Exact));
        assert_eq!(step.stats, exact.stats, "stopped at {stop}");
        assert_eq!(step.ends.last(), exact.ends.last(), "stopped at {stop}");
        assert_eq!(step.waiting, exact.waiting, "stopped at {stop}");
    }
}

/// So many words go over three links to a PE that reads none.
fn unread(words: u32) -> Spec {
    let spec = Spec::new(TargetId::Wse2, 4, 1);
    let mut build = Build { rng: Rng::new(0), spec, width: 4, height: 1 };
    build.route(3, 0, Port::Ramp, Port::West);
    build.route(2, 0, Port::East, Port::West);
    build.route(1, 0, Port::East, Port::West);
    build.route(0, 0, Port::East, Port::Ramp);
    build.queue(3, false, OUT, 0);
    build.queue(0, true, IN, 0);
    let send = Act::Vector(Box::new(vector(output(OUT, 0), Stream::Scalar(7), words)));
    build.task(3, TaskKind::Local, FIRST, &[], vec![send]);
    build.begins(3);
    build.spec
}

/// They reach what they are about.
#[test]
fn chains_become_steady() {
    for seed in 0..60 {
        run(&machine(seed), EngineKind::Exact, (1, 0), &[4000]);
    }
    for (what, least) in [
        (Reached::Steady, 200),
        (Reached::Joined, 100),
        (Reached::Fed, 500),
        (Reached::Drained, 200),
        (Reached::Disturbed, 50),
    ] {
        assert!(reached::count(what) >= least, "{what:?}: {}", reached::count(what));
    }
}
