//! Exchanges between neighbors, of `exact` against `step`: on every PE up to four microthreads send
//! and four receive, so they take turns, and words wait in all queues.

use dflow_ir::inst::{FlagOp, Priority};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, ColorConfig, Port, PortSet, Route};
use dflow_ir::program::{InitialFlag, QueueBinding, TaskBinding, TaskKind};
use dflow_ir::target::{Target, TargetId};
use dflow_ir::ty::Ty;

use super::generate::Rng;
use super::random::{first, seeds};
use super::rounds::compare_flow;
use super::script::{Act, Spec, input, output, vector};
use super::steady::{agree, run};
use crate::config::EngineKind;
use crate::exec::{Stream, VectorStart};
use crate::sched::reached::{self, Reached};

/// By direction: the port by which words leave, and the place of the neighbor that gets them.
const WAYS: [(Port, [i32; 2]); 4] =
    [(Port::East, [1, 0]), (Port::West, [-1, 0]), (Port::South, [0, 1]), (Port::North, [0, -1])];

/// The first color of other words.
const OTHERS: u8 = 16;

/// The task that starts all; those that follow have the next numbers.
const FIRST: u8 = 9;

/// The task that ends a round.
const JOIN: u8 = 29;

/// Words that PEs of a parity send in a direction.
fn lane(way: usize, parity: usize) -> u8 {
    (2 * way + parity) as u8
}

struct Build {
    rng: Rng,
    spec: Spec,
    size: [usize; 2],
    style: Style,
    /// Lengths of both rounds, for most operations.
    lengths: [u32; 2],
    /// How often all is done.
    times: u32,
}

/// How machines differ.
#[derive(Clone, Copy)]
struct Style {
    /// Most columns and rows, and the longest operation.
    size: [usize; 2],
    words: usize,
    /// Chances that a PE sends to its neighbor, that an end has its own length, that an operation comes
    /// before others, and that words of others come to a PE, in percent.
    joined: usize,
    longer: usize,
    high: usize,
    others: usize,
    /// A PE receives from one neighbor after the other, as solvers do, while words from all wait.
    in_row: bool,
    /// Chance that a PE begins late, and whether each way has its own lengths.
    late: usize,
    own_lengths: bool,
    /// How often all is done again, and how often it takes longer once, in percent.
    times: usize,
    falters: usize,
}

/// What is common to most.
const PLAIN: Style = Style {
    size: [5, 5],
    words: 100,
    joined: 100,
    longer: 0,
    high: 1,
    others: 0,
    in_row: false,
    late: 0,
    own_lengths: false,
    times: 1,
    falters: 0,
};

/// All kinds of things meet.
const MIXED: Style = Style { size: [5, 4], words: 100, joined: 85, longer: 15, high: 10, ..PLAIN };

/// Cores have time to take turns, and now and then something ends them.
const LONG: Style =
    Style { size: [6, 5], words: 350, joined: 98, longer: 4, high: 1, others: 10, ..PLAIN };

/// Neighbors wait for each other, and microthreads of a core do not move as many words.
const WAITING: Style =
    Style { size: [5, 5], words: 250, joined: 95, longer: 4, in_row: true, ..PLAIN };

/// PEs have few neighbors, which begin and end at other times.
const SPARSE: Style = Style { joined: 45, late: 40, own_lengths: true, ..LONG };

/// All is done again and again.
const ROUNDS: Style =
    Style { size: [3, 3], words: 12, joined: 90, times: 40, falters: 20, late: 20, ..PLAIN };

fn machine(seed: u64, style: Style) -> Spec {
    let mut rng = Rng::new(seed);
    let target = if rng.chance(60) { TargetId::Wse2 } else { TargetId::Wse3 };
    let size = style.size.map(|most| 1 + rng.below(most));
    let spec = Spec::new(target, size[0] as u16, size[1] as u16);
    let mut build = Build { rng, spec, size, style, lengths: [0; 2], times: 1 };
    build.times = 1 + build.rng.below(style.times) as u32;
    build.lengths = build.new_lengths();
    // Which PE sends in which direction, and how much.
    let count = size[0] * size[1];
    let mut operations = vec![Vec::new(); count];
    for pe in 0..count {
        for way in 0..WAYS.len() {
            let joined = build.rng.chance(style.joined);
            if let Some(to) = build.neighbor(pe, way).filter(|_| joined) {
                build.join((pe, to), way, &mut operations);
            }
        }
    }
    for (pe, operations) in operations.into_iter().enumerate() {
        build.tasks(pe, operations);
    }
    build.spec.apart = true;
    build.spec.slow = build.rng.chance(10);
    build.spec.spare = build.rng.spare();
    for router in &mut build.spec.routers {
        router.colors.sort_by_key(|(color, ..)| *color);
    }
    build.spec
}

impl Build {
    fn neighbor(&self, pe: usize, way: usize) -> Option<usize> {
        let [width, height] = self.size;
        let [x, y] = [(pe % width) as i32 + WAYS[way].1[0], (pe / width) as i32 + WAYS[way].1[1]];
        let inside = (0..width as i32).contains(&x) && (0..height as i32).contains(&y);
        inside.then(|| y as usize * width + x as usize)
    }

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

    /// Lengths of both rounds.
    fn new_lengths(&mut self) -> [u32; 2] {
        let words = self.style.words;
        [10 + self.rng.below(words) as u32, 1 + self.rng.below(words / 2) as u32]
    }

    /// Lengths of both rounds at one end; seldom not those of the other end.
    fn lengths(&mut self) -> [u32; 2] {
        let mut lengths = self.lengths;
        if self.rng.chance(self.style.longer) {
            lengths[self.rng.below(2)] += self.rng.below(40) as u32;
        }
        lengths
    }

    /// A PE sends to its neighbor in a direction.
    fn join(
        &mut self,
        (from, to): (usize, usize),
        way: usize,
        operations: &mut [Vec<[VectorStart; 2]>],
    ) {
        let color = lane(way, (from % self.size[0] + from / self.size[0]) % 2);
        let port = WAYS[way].0;
        self.route(from, color, Port::Ramp, port);
        self.route(to, color, WAYS[way ^ 1].0, Port::Ramp);
        let (out, into) = (way as u8, 4 + way as u8);
        self.queue(from, false, out, color);
        self.queue(to, true, into, color);
        let start = |dest: Stream, source: Stream, microthread: u8, length: u32| VectorStart {
            asynchronous: true,
            microthread,
            ..vector(dest, source, length)
        };
        if self.style.own_lengths {
            self.lengths = self.new_lengths();
        }
        let lengths = self.lengths();
        operations[from]
            .push(lengths.map(|length| start(output(out, color), Stream::Scalar(7), out, length)));
        let lengths = self.lengths();
        let memory = Stream::Pointer { address: 0 };
        operations[to].push(lengths.map(|length| start(memory, input(into, color), into, length)));
    }

    /// All operations begin in one task, in any order; when one is over its second round follows.
    fn tasks(&mut self, pe: usize, mut operations: Vec<[VectorStart; 2]>) {
        let most = if self.rng.chance(self.style.late) { 60 } else { 30 };
        let mut acts = vec![Act::Work(self.rng.below(most) as u32)];
        let mut next = FIRST;
        let parts = operations.len() as u32;
        let times = self.times;
        if self.rng.chance(self.style.falters) {
            let (round, slots) = (self.rng.below(times as usize) as u32, self.rng.below(40) as u32);
            acts.push(Act::Falters { round, slots });
        }
        if self.style.in_row {
            acts.extend(self.receives_in_row(pe, &mut operations, &mut next));
        }
        while !operations.is_empty() {
            let [mut begins, mut follows] =
                operations.swap_remove(self.rng.below(operations.len()));
            next += 1;
            if self.rng.chance(self.style.high) {
                begins.priority = Some(Priority::High);
            }
            begins.activate = Some(next);
            acts.push(Act::Vector(Box::new(begins)));
            let pause = [0, 0, 5, 50][self.rng.below(4)];
            if self.style.times > 1 {
                follows.activate = Some(JOIN);
            }
            self.task(pe, next, vec![Act::Work(pause), Act::Vector(Box::new(follows))]);
        }
        if let Some(to) = self.neighbor(pe, 0).filter(|_| self.rng.chance(self.style.others)) {
            acts.extend(self.others(pe, to));
        }
        self.task(pe, FIRST, acts);
        if self.style.times > 1 {
            let join = Act::Join { of: parts, times: self.times, id: FIRST };
            let acts = vec![Act::Work(self.rng.below(9) as u32), join];
            self.task(pe, JOIN, acts);
        }
        let flag = InitialFlag { op: FlagOp::Activate, id: FIRST, loc: Loc::default() };
        self.spec.programs[pe].initial_flags.push(flag);
    }

    /// What begins the first operation that receives; the others follow, the second rounds last.
    fn receives_in_row(
        &mut self,
        pe: usize,
        operations: &mut Vec<[VectorStart; 2]>,
        next: &mut u8,
    ) -> Option<Act> {
        let receives = operations.extract_if(.., |rounds| rounds[0].microthread >= 4);
        let rounds: Vec<[VectorStart; 2]> = receives.collect();
        let [first, second] = [0, 1].map(|round| rounds.iter().map(move |it| it[round].clone()));
        let mut begins = None;
        for mut start in first.chain(second).rev() {
            // Each is begun by the task that follows the one before it.
            if begins.is_some() {
                start.activate = Some(*next);
            }
            *next += 1;
            let act = Act::Vector(Box::new(start));
            let pause = [0, 0, 5, 50][self.rng.below(4)];
            self.task(pe, *next, vec![Act::Work(pause), act.clone()]);
            begins = Some(act);
        }
        begins
    }

    /// Words from a PE to its neighbor's data task, some time later.
    fn others(&mut self, from: usize, to: usize) -> [Act; 2] {
        let color = OTHERS + (from % 2) as u8;
        self.route(from, color, Port::Ramp, Port::East);
        self.route(to, color, Port::West, Port::Ramp);
        self.queue(from, false, 4, color);
        self.queue(to, true, 0, color);
        let by_queue = Target::get(self.spec.target).data_task_by_queue;
        let acts = vec![Act::Work(self.rng.below(12) as u32)];
        let func = self.spec.func(to, "others", &[Ty::I32], acts);
        let id = if by_queue { 0 } else { color };
        let task = TaskBinding { kind: TaskKind::Data, id, func, loc: Loc::default() };
        self.spec.programs[to].tasks.push(task);
        let words = 1 + self.rng.below(4) as u32;
        let sent = vector(output(4, color), Stream::Scalar(1), words);
        [Act::Work(100 + self.rng.below(900) as u32), Act::Vector(Box::new(sent))]
    }

    fn task(&mut self, pe: usize, id: u8, acts: Vec<Act>) {
        let func = self.spec.func(pe, "task", &[], acts);
        let task = TaskBinding { kind: TaskKind::Local, id, func, loc: Loc::default() };
        self.spec.programs[pe].tasks.push(task);
    }
}

fn all_agree(style: Style) {
    for seed in first()..first() + seeds() {
        agree(seed, &machine(seed, style));
    }
}

#[test]
fn exchanges_agree() {
    all_agree(MIXED);
}

#[test]
fn long_exchanges_agree() {
    all_agree(LONG);
}

#[test]
fn waiting_exchanges_agree() {
    all_agree(WAITING);
}

#[test]
fn sparse_exchanges_agree() {
    all_agree(SPARSE);
}

#[test]
fn exchanges_in_rounds_agree() {
    all_agree(ROUNDS);
}

#[test]
fn exchanges_in_rounds_of_flow_agree() {
    for seed in first()..first() + seeds() / 4 {
        compare_flow(&format!("seed {seed}"), &machine(seed, ROUNDS), &[3000, 20_000]);
    }
}

/// They reach what they are about.
#[test]
fn exchanges_are_calm() {
    for seed in 0..60 {
        run(&machine(seed, MIXED), EngineKind::Exact, (1, 0), &[4000]);
    }
    for (what, least) in [(Reached::Calm, 100_000), (Reached::Wanted, 100)] {
        assert!(reached::count(what) >= least, "{what:?}: {}", reached::count(what));
    }
}

/// Those in which cores take turns.
#[test]
fn exchanges_take_turns() {
    for seed in 0..60 {
        let mut machine = machine(seed, LONG);
        machine.records = seed % 2 == 0;
        run(&machine, EngineKind::Exact, (1, 0), &[4000]);
    }
    for (what, least) in [(Reached::Turns, 100), (Reached::Skipped, 100), (Reached::Held, 30)] {
        assert!(reached::count(what) >= least, "{what:?}: {}", reached::count(what));
    }
}

/// Those that do the same again and again.
#[test]
fn exchanges_repeat() {
    for seed in 0..100 {
        let machine = Spec { records: false, ..machine(seed, ROUNDS) };
        run(&machine, EngineKind::Exact, (1, 0), &[20_000]);
    }
    for (what, least) in [(Reached::Rounds, 10), (Reached::Round, 100), (Reached::Apart, 10)] {
        assert!(reached::count(what) >= least, "{what:?}: {}", reached::count(what));
    }
}
