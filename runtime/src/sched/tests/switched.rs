//! Machines that do the same again and again, by ways that switches turn: `exact` against `step`, and `flow` with rounds
//! against `flow` without.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, ColorConfig, PopMode, Port, PortSet, Route, Switch, SwitchEntry};
use dflow_ir::program::{QueueBinding, TaskBinding, TaskKind};
use dflow_ir::target::TargetId;

use super::generate::Rng;
use super::random::{first, seeds};
use super::rounds::{compare, compare_flow};
use super::script::{Act, Spec, input, output, vector};
use crate::exec::Stream;
use crate::sched::reached::{self, Reached};

/// The task that begins a round.
const FIRST: u8 = 9;

/// Commands for routers alone: to advance, to go back to the first position.
const ADVANCE: u32 = 1 << 31 | 1 << 24 | 1 << 22;
const RESET: u32 = 1 << 31 | 1 << 24 | 2 << 22;

/// A switch with a second position.
fn turns_to(position: SwitchEntry, ring: bool) -> Switch {
    Switch { positions: [Some(position), None, None], ring, ..Switch::default() }
}

struct Build {
    rng: Rng,
    spec: Spec,
    width: usize,
    /// What PEs do in a round, and the input and output queues that they use.
    acts: Vec<Vec<Act>>,
    queues: Vec<[u8; 2]>,
}

impl Build {
    fn new(seed: u64) -> Build {
        let mut rng = Rng::new(seed);
        let target = if rng.chance(60) { TargetId::Wse2 } else { TargetId::Wse3 };
        let width = 2 + rng.below(4);
        let mut spec = Spec::new(target, width as u16, 1);
        spec.records = false;
        Build { rng, spec, width, acts: vec![Vec::new(); width], queues: vec![[1, 0]; width] }
    }

    /// An empty one of a size.
    fn of((width, height): (u16, u16)) -> Build {
        let count = usize::from(width * height);
        let spec = Spec { records: false, ..Spec::new(TargetId::Wse2, width, height) };
        let (acts, queues) = (vec![Vec::new(); count], vec![[1, 0]; count]);
        Build { spec, width: count, acts, queues, ..Build::new(5) }
    }

    fn color(&mut self, pe: usize, color: u8, (rx, tx): (Port, Port), switch: Option<Switch>) {
        let [rx, tx] = [rx, tx].map(PortSet::one);
        let config = ColorConfig { route: Route { rx, tx }, switch, ..ColorConfig::default() };
        let color = Color::new(color).unwrap();
        self.spec.routers[pe].colors.push((color, config, Loc::default()));
    }

    fn queue(&mut self, pe: usize, is_input: bool, color: u8) -> u8 {
        let next = &mut self.queues[pe][usize::from(!is_input)];
        let queue = *next;
        *next += 1;
        let binding =
            QueueBinding::new(is_input, queue, Color::new(color).unwrap(), Loc::default());
        self.spec.programs[pe].queues.push(binding);
        queue
    }

    /// A PE sends so many words; its router turns behind them, if it is to.
    fn send(&mut self, pe: usize, (queue, color): (u8, u8), words: u32, turns: bool) {
        let mut dest = output(queue, color);
        if let Stream::Output { advance_switch, .. } = &mut dest {
            *advance_switch = turns;
        }
        // By one operation, or two of which the last one turns it.
        if words > 1 && !turns && self.rng.chance(30) {
            let first = vector(dest, Stream::Scalar(5), 1);
            self.acts[pe].push(Act::Vector(Box::new(first)));
            return self.send(pe, (queue, color), words - 1, turns);
        }
        let all = vector(dest, Stream::Scalar(pe as u32), words);
        self.acts[pe].push(Act::Vector(Box::new(all)));
        if self.rng.chance(30) {
            let work = self.rng.below(20) as u32;
            self.acts[pe].push(Act::Work(work));
        }
    }

    /// A PE sends a command.
    fn command(&mut self, pe: usize, (queue, color): (u8, u8), payload: u32) {
        let mut dest = output(queue, color);
        if let Stream::Output { control, .. } = &mut dest {
            *control = true;
        }
        let command = vector(dest, Stream::Scalar(payload), 1);
        self.acts[pe].push(Act::Vector(Box::new(command)));
    }

    fn receive(&mut self, pe: usize, from: (u8, u8), words: u32) {
        let all = vector(Stream::Pointer { address: 0 }, input(from.0, from.1), words);
        self.acts[pe].push(Act::Vector(Box::new(all)));
    }

    /// What a control wavelet loses at a switch: in most machines nothing, so that it tells all routers the same.
    fn pop(&mut self) -> PopMode {
        let all = [PopMode::Always, PopMode::OnAdvance, PopMode::OnAdvanceOrNop];
        if self.rng.chance(85) { PopMode::None } else { all[self.rng.below(3)] }
    }

    /// All but the first PE send to it, one after the other; the last one turns the routers of the others back.
    fn gather(&mut self, color: u8) {
        let words = 1 + self.rng.below(9) as u32;
        let into = self.queue(0, true, color);
        self.color(0, color, (Port::East, Port::Ramp), None);
        let pieces = if self.rng.chance(50) { 1 } else { self.width - 1 };
        for _ in 0..pieces {
            let count = words * (self.width - 1) as u32 / pieces as u32;
            self.receive(0, (into, color), count);
        }
        for pe in 1..self.width {
            let is_last = pe + 1 == self.width;
            let turn = SwitchEntry::Rx(PortSet::one(Port::East));
            let switch = Switch { pop: self.pop(), ..turns_to(turn, false) };
            self.color(pe, color, (Port::Ramp, Port::West), (!is_last).then_some(switch));
            let by = (self.queue(pe, false, color), color);
            self.send(pe, by, words, !is_last);
            if is_last && self.width > 2 {
                self.command(pe, by, RESET);
            }
        }
    }

    /// A PE sends to its neighbors in turn; what follows the words to each turns its router, and that of one that takes
    /// from two.
    fn alternate(&mut self, color: u8) {
        let words = 1 + self.rng.below(12) as u32;
        let pe = 1 + self.rng.below(self.width - 2);
        let by = (self.queue(pe, false, color), color);
        let turn = SwitchEntry::Tx(PortSet::one(Port::West));
        let switch = Switch { pop: self.pop(), ..turns_to(turn, true) };
        self.color(pe, color, (Port::Ramp, Port::East), Some(switch));
        for _ in 0..2 {
            self.send(pe, by, words, false);
            self.command(pe, by, ADVANCE);
        }
        for (end, from) in [(pe - 1, Port::East), (pe + 1, Port::West)] {
            let into = self.queue(end, true, color);
            self.color(end, color, (from, Port::Ramp), None);
            self.receive(end, (into, color), words);
        }
    }

    /// The first PE tells all others when it is through: between rounds there is a time without words.
    fn meet(&mut self, color: u8) {
        self.acts[0].push(Act::Work(200));
        let by = (self.queue(0, false, color), color);
        self.send(0, by, 1, false);
        self.color(0, color, (Port::Ramp, Port::East), None);
        for pe in 1..self.width {
            let into = self.queue(pe, true, color);
            self.receive(pe, (into, color), 1);
            self.color(pe, color, (Port::West, Port::Ramp), None);
            if pe + 1 < self.width
                && let Some((_, config, _)) = self.spec.routers[pe].colors.last_mut()
            {
                config.route.tx = config.route.tx.with(Port::East);
            }
        }
    }

    /// What is none of that: in some round something else, or more work in some.
    fn extras(&mut self) {
        let pe = self.rng.below(self.width);
        let act = match self.rng.below(4) {
            0 => Act::Since { round: 30, act: Box::new(Act::Work(9)) },
            1 => Act::Every { of: 3, act: Box::new(Act::Work(7)) },
            2 => Act::Depends { of: 40, slots: 3 },
            _ => Act::Yield,
        };
        let at = self.rng.below(self.acts[pe].len() + 1);
        self.acts[pe].insert(at, act);
    }

    /// The first PE and the last one do their rounds, the others nothing.
    fn build_ends(mut self, times: u32) -> Spec {
        self.acts[0].push(Act::Work(300));
        let ends = [0, self.width - 1];
        self.build_those(times, &ends)
    }

    fn build(self, times: u32) -> Spec {
        let all: Vec<usize> = (0..self.width).collect();
        self.build_those(times, &all)
    }

    fn build_those(mut self, times: u32, those: &[usize]) -> Spec {
        for router in &mut self.spec.routers {
            router.colors.sort_by_key(|(color, ..)| *color);
        }
        for &pe in those {
            let mut acts = std::mem::take(&mut self.acts[pe]);
            acts.push(Act::Join { of: 1, times, id: FIRST });
            acts.push(Act::Work(self.rng.below(60) as u32));
            let func = self.spec.func(pe, "task", &[], acts);
            let (kind, id, loc) = (TaskKind::Local, FIRST, Loc::default());
            self.spec.programs[pe].tasks.push(TaskBinding { kind, id, func, loc });
            super::rounds::start(&mut self.spec, pe, FIRST);
        }
        self.spec
    }
}

fn machine(seed: u64) -> Spec {
    let mut build = Build::new(seed);
    if build.rng.chance(70) {
        build.gather(3);
    }
    if build.width > 2 && build.rng.chance(60) {
        build.alternate(4);
    }
    if build.width > 2 && build.rng.chance(20) {
        build.alternate(6);
    }
    if build.rng.chance(85) {
        build.meet(8);
    }
    if build.rng.chance(40) {
        build.extras();
    }
    let times = 20 + build.rng.below(80) as u32;
    build.build(times)
}

#[test]
fn rounds_of_switched_ways_agree() {
    let reached =
        || [Reached::RoundJoined, Reached::RoundInTurn, Reached::Apart].map(reached::count);
    let before = reached();
    for seed in first()..first() + seeds() / 4 {
        let mut rng = Rng::new(seed + 79);
        let mut stops: Vec<u64> = (0..4).map(|_| 100 + rng.below(6000) as u64).collect();
        stops.sort_unstable();
        stops.push(20_000);
        let stops = if rng.chance(50) { &stops[..] } else { &stops[4..] };
        let spec = machine(seed);
        compare(&format!("seed {seed}"), &spec, stops);
        compare_flow(&format!("seed {seed}"), &spec, stops);
    }
    assert!(reached().into_iter().zip(before).all(|(now, before)| now > before));
}

/// Ways of switches go in rounds, in both engines.
#[test]
fn switched_ways_go_in_rounds() {
    for (what, act) in
        [("gather", Build::gather as fn(&mut Build, u8)), ("alternate", Build::alternate)]
    {
        let mut build = Build::of((4, 1));
        act(&mut build, 3);
        build.meet(8);
        let spec = build.build(100);
        let before = reached::count(Reached::Rounds);
        compare(what, &spec, &[20_000]);
        assert!(reached::count(Reached::Rounds) > before, "{what}");
        let rounds = compare_flow(what, &spec, &[20_000]);
        assert!(rounds.iter().all(|&count| count > 0), "{what}: {rounds:?}");
    }
}

/// Words fork, and come to the same core by two ways, one behind the other.
#[test]
fn words_that_meet_again() {
    let both = PortSet::one(Port::East).with(Port::South);
    for words in [1, 7, 40] {
        let mut build = Build::of((2, 2));
        let by = (build.queue(0, false, 3), 3);
        build.send(0, by, words, false);
        build.command(0, by, ADVANCE);
        build.color(0, 3, (Port::Ramp, Port::East), None);
        build.spec.routers[0].colors[0].1.route.tx = both;
        build.color(1, 3, (Port::West, Port::South), None);
        build.color(2, 3, (Port::North, Port::East), None);
        let turn = SwitchEntry::Rx(PortSet::one(Port::West));
        build.color(3, 3, (Port::North, Port::Ramp), Some(turns_to(turn, true)));
        let into = build.queue(3, true, 3);
        build.receive(3, (into, 3), 2 * words);
        let spec = build.build_ends(40);
        compare(&format!("{words} words"), &spec, &[30_000]);
        compare_flow(&format!("{words} words"), &spec, &[30_000]);
    }
}

/// A sender's words come by two ways to one core, the later ones first.
#[test]
fn words_that_overtake() {
    let mut build = Build::of((2, 2));
    let by = (build.queue(0, false, 3), 3);
    // To the east, then to the south; the core takes from the west before it takes from the north.
    let turns =
        [SwitchEntry::Tx(PortSet::one(Port::South)), SwitchEntry::Rx(PortSet::one(Port::North))];
    let [first, last] = turns.map(|turn| turns_to(turn, true));
    for _ in 0..2 {
        build.send(0, by, 2, false);
        build.command(0, by, ADVANCE);
    }
    build.color(0, 3, (Port::Ramp, Port::East), Some(first));
    build.color(1, 3, (Port::West, Port::South), None);
    build.color(2, 3, (Port::North, Port::East), None);
    build.color(3, 3, (Port::West, Port::Ramp), Some(last));
    let into = build.queue(3, true, 3);
    build.receive(3, (into, 3), 4);
    let spec = build.build_ends(40);
    compare("", &spec, &[30_000]);
    compare_flow("", &spec, &[30_000]);
}
