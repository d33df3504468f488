//! Random machines: meshes, routes with fan-out, switches and several senders, and task
//! programs that send, receive, relay, count, and set each other's flags.

mod hosted;

use dflow_ir::inst::{FlagOp, OnControl, Priority, Unblock};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{
    Color, ColorConfig, Coord, Filter, PopMode, Port, PortSet, Route, Switch, SwitchEntry, Wavelet,
};
use dflow_ir::program::{FuncId, HostLink, InitialFlag, QueueBinding, TaskBinding, TaskKind};
use dflow_ir::registers::{self, BankKind};
use dflow_ir::target::{TEARDOWN_TASK, Target, TargetId};
use dflow_ir::ty::Ty;

use super::script::{Act, Spec, input, output, vector};
use crate::exec::{Stream, VectorStart};
use crate::machine::HostLinkInfo;

pub(super) use self::hosted::hosted;

/// A small generator of numbers: a counter, mixed.
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// With a chance of `percent`.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Places of links beside those that a word per cycle takes: mostly none.
    pub(super) fn spare(&mut self) -> u32 {
        self.pick(&[0, 0, 0, 0, 1, 2, 7, 64])
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// How machines differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Longest transfer.
    pub(super) words: usize,
    /// Chance of what may end in a trap, in percent.
    pub(super) wild: usize,
    /// Every color has one sender, no switch and a data task at each end.
    pub(super) plain: bool,
}

/// A machine, and what the host sends: link, cycle, words.
pub(super) struct Machine {
    pub(super) spec: Spec,
    pub(super) host: Vec<(u32, u64, Vec<Wavelet>)>,
    /// The link to the host of words that are merged.
    pub(super) merged: Option<u32>,
}

struct Build<'a> {
    rng: &'a mut Rng,
    style: Style,
    spec: Spec,
    /// Colors that reach each PE's core, and that its core may send.
    down: Vec<Vec<u8>>,
    up: Vec<Vec<u8>>,
}

/// A random machine.
pub(super) fn machine(seed: u64, style: Style) -> Machine {
    let rng = &mut Rng::new(seed);
    let target = if rng.chance(50) { TargetId::Wse2 } else { TargetId::Wse3 };
    let (width, height) = (1 + rng.below(6), 1 + rng.below(5));
    let spec = Spec::new(target, width as u16, height as u16);
    let none = vec![Vec::new(); width * height];
    let mut build = Build { rng, style, spec, down: none.clone(), up: none };
    for color in 0..2 + build.rng.below(if style.plain { 5 } else { 7 }) as u8 {
        build.color(color * 2 + 1);
        if !style.plain && build.rng.chance(20) {
            // The other color of the pair, for swaps.
            build.color(color * 2);
        }
    }
    for pe in 0..width * height {
        build.program(pe);
    }
    let host = build.host();
    Machine { spec: build.spec, host, merged: None }
}

impl Build<'_> {
    fn neighbor(&self, pe: usize, port: Port) -> Option<usize> {
        let (width, height) = (i32::from(self.spec.width), i32::from(self.spec.height));
        let (dx, dy) = port.step();
        let (x, y) = (pe as i32 % width + dx, pe as i32 / width + dy);
        (x >= 0 && x < width && y >= 0 && y < height).then_some((y * width + x) as usize)
    }

    /// A tree of routes of one color, grown from a root.
    fn color(&mut self, color: u8) {
        let count = self.down.len();
        let root = self.rng.below(count);
        let mut routes: Vec<Option<Route>> = vec![None; count];
        routes[root] = Some(Route { rx: PortSet::one(Port::Ramp), tx: PortSet::EMPTY });
        self.up[root].push(color);
        let mut tips = vec![root];
        for _ in 0..1 + self.rng.below(count + 2) {
            let at = self.rng.pick(&tips);
            let port = self.rng.pick(&[Port::West, Port::East, Port::South, Port::North]);
            let Some(next) = self.neighbor(at, port) else { continue };
            if routes[next].is_some() {
                continue;
            }
            routes[next] = Some(Route { rx: PortSet::one(port.opposite()), tx: PortSet::EMPTY });
            let route = routes[at].as_mut().unwrap();
            route.tx = route.tx.with(port);
            tips.push(next);
            if self.rng.chance(30) {
                tips.remove(0);
            }
        }
        for (pe, route) in routes.into_iter().enumerate() {
            let Some(mut route) = route else { continue };
            let is_end = route.tx.is_empty();
            if is_end || (pe != root && self.rng.chance(30)) {
                route.tx = route.tx.with(Port::Ramp);
            }
            if route.tx.contains(Port::Ramp) {
                self.down[pe].push(color);
            }
            let mut config = ColorConfig { route, ..ColorConfig::default() };
            if !self.style.plain {
                self.vary(pe, color, &mut config);
            }
            let color = Color::new(color).unwrap();
            self.spec.routers[pe].colors.push((color, config, Loc::default()));
        }
        for router in &mut self.spec.routers {
            router.colors.sort_by_key(|(color, ..)| *color);
        }
    }

    /// Makes a route less simple: more senders, odd ports, switches.
    fn vary(&mut self, pe: usize, color: u8, config: &mut ColorConfig) {
        let merges = !Target::get(self.spec.target).single_rx || self.style.words < 20;
        if merges && self.rng.chance(20) && !config.route.rx.contains(Port::Ramp) {
            config.route.rx = config.route.rx.with(Port::Ramp);
            self.up[pe].push(color);
        }
        if self.rng.below(1000) < self.style.wild {
            let port = self.rng.pick(&Port::ALL);
            config.route.tx = config.route.tx.with(port);
        }
        self.odd(pe, color, config);
        if !self.rng.chance(25) {
            return;
        }
        let mut switch = Switch {
            ring: self.rng.chance(60),
            pop: self.rng.pick(&[
                PopMode::None,
                PopMode::Always,
                PopMode::OnAdvance,
                PopMode::OnAdvanceOrNop,
            ]),
            ..Switch::default()
        };
        let count = 1 + self.rng.below(3);
        for entry in switch.positions.iter_mut().take(count) {
            // A part of the ports in use: no word leaves the tree.
            let part = |set: PortSet, bits: usize| PortSet(set.0 & bits as u8);
            let (rx, tx) = (config.route.rx.with(Port::Ramp), config.route.tx);
            let bits = self.rng.below(32);
            *entry = Some(match self.rng.below(3) {
                0 => SwitchEntry::Rx(part(rx, bits)),
                1 => SwitchEntry::Tx(part(tx, bits)),
                _ => SwitchEntry::Both(Route { rx, tx: part(tx, bits | 16) }),
            });
        }
        switch.initial = self.rng.below(count + 1) as u8;
        config.switch = Some(switch);
    }

    /// Filters, teardown, swaps.
    fn odd(&mut self, pe: usize, color: u8, config: &mut ColorConfig) {
        let number = |rng: &mut Rng| rng.below(6) as u16;
        let (initial, limit, max) = (number(self.rng), number(self.rng), number(self.rng));
        let [data, control, filter_control] = [80, 40, 20].map(|chance| self.rng.chance(chance));
        config.filter = match self.rng.below(30) {
            0 => Some(Filter::Range { min: 0, max: 0x8000 + initial * 1000 }),
            1 => Some(Filter::Counter { data, control, initial, limit, max, filter_control }),
            2 => Some(Filter::Sparse {
                data,
                control,
                initial,
                limit,
                limit2: self.rng.chance(50).then_some(3),
                max,
                filter_control,
            }),
            _ => None,
        };
        config.teardown = self.rng.chance(2);
        let mut colors = self.spec.routers[pe].colors.iter();
        let paired = colors.any(|(other, ..)| other.index() == color ^ 1);
        if paired && Target::get(self.spec.target).color_swap {
            (config.swap_x, config.swap_y) = (self.rng.chance(40), self.rng.chance(40));
        }
    }

    /// A write or a read of a register of one of the PE's colors.
    fn register(&mut self, pe: usize) -> Option<Act> {
        let target = self.spec.target;
        let colors = &self.spec.routers[pe].colors;
        if colors.is_empty() {
            return None;
        }
        let (color, config, _) = &colors[self.rng.below(colors.len())];
        let at = |kind, index| registers::address(target, kind, index);
        let color_word = |word| at(BankKind::Color, 8 * u16::from(color.index()) + word);
        let bits = self.rng.below(1 << 16) as u16;
        if config.filter.is_some() && self.rng.chance(30) {
            let word = self.rng.below(3) as u16;
            let address = at(BankKind::Filter, 4 * u16::from(color.index()) + word)?;
            return Some(Act::Write(address, bits & 7));
        }
        let (route, switch, is_two) = match at(BankKind::Route, color.index().into()) {
            Some(route) => (route, at(BankKind::Switch, color.index().into())?, true),
            None => (color_word(0)?, color_word(4)?, false),
        };
        Some(match self.rng.below(4) {
            0 => {
                let address = if bits & 1 == 0 { route } else { switch };
                if bits & 2 == 0 { Act::Read(address) } else { Act::Look(address) }
            }
            // No further position, so that no word leaves the tree.
            1 if is_two => Act::Write(switch, bits & 0x7000 | 0x0555),
            1 | 2 if !is_two => Act::Write(switch, bits & 0x1f),
            _ if is_two => {
                let ports = u16::from(config.route.tx.0) | u16::from(config.route.rx.0) << 5;
                // Now and then with swaps.
                let mask = if bits & 0xe000 == 0 { 0x3c00 } else { 0x3000 };
                Act::Write(route, ports | bits & mask)
            }
            _ => Act::Read(switch),
        })
    }

    /// Tasks and queues of a PE.
    fn program(&mut self, pe: usize) {
        let target = Target::get(self.spec.target);
        let by_queue = target.data_task_by_queue;
        // (queue, color, has a data task)
        let mut queues: Vec<(u8, u8, bool)> = Vec::new();
        let down = self.down[pe].clone();
        for (color, queue) in down.into_iter().zip(0u8..8) {
            let data = self.style.plain || self.rng.chance(40);
            let has_queue = by_queue || !data || self.rng.chance(60);
            if has_queue {
                let loc = Loc::default();
                let color = Color::new(color).unwrap();
                self.spec.programs[pe].queues.push(QueueBinding::new(true, queue, color, loc));
            }
            if data {
                let acts = if self.style.plain { Vec::new() } else { self.acts(pe, &[], 2) };
                let kinds: [&[Ty]; 4] = [&[], &[Ty::I32], &[Ty::I16], &[Ty::I16, Ty::I16]];
                let params = kinds[if self.style.plain { 0 } else { self.rng.below(4) }];
                let func = self.spec.func(pe, "data", params, acts);
                let id = if by_queue { queue } else { color };
                self.task(pe, TaskKind::Data, id, func);
            }
            if has_queue {
                queues.push((queue, color, data));
            }
        }
        for entry in [40, 43] {
            if self.rng.chance(50) {
                let acts = self.acts(pe, &[], 2);
                let func = self.spec.func(pe, "control", &[Ty::I16], acts);
                self.task(pe, TaskKind::Control, entry, func);
            }
        }
        if !self.style.plain && self.rng.chance(50) {
            let acts = (0..4).filter_map(|_| self.register(pe)).collect();
            let func = self.spec.func(pe, "torn", &[], acts);
            self.task(pe, TaskKind::Local, TEARDOWN_TASK, func);
        }
        let read: Vec<(u8, u8, bool)> = queues.into_iter().filter(|queue| !queue.2).collect();
        for id in if self.style.plain { 24..25 } else { 24..28 } {
            let length = 1 + self.rng.below(5);
            let acts = if self.style.plain { self.sends(pe) } else { self.acts(pe, &read, length) };
            let func = self.spec.func(pe, "local", &[], acts);
            self.task(pe, TaskKind::Local, id, func);
            let loc = Loc::default();
            if self.rng.chance(50) {
                let flag = InitialFlag { op: FlagOp::Activate, id, loc };
                self.spec.programs[pe].initial_flags.push(flag);
            } else if self.rng.chance(20) {
                let flag = InitialFlag { op: FlagOp::BlockTask, id, loc };
                self.spec.programs[pe].initial_flags.push(flag);
            }
        }
    }

    fn task(&mut self, pe: usize, kind: TaskKind, id: u8, func: FuncId) {
        self.spec.programs[pe].tasks.push(TaskBinding { kind, id, func, loc: Loc::default() });
    }

    /// Sends of every color that starts here.
    fn sends(&mut self, pe: usize) -> Vec<Act> {
        let up = self.up[pe].clone();
        let mut acts = Vec::new();
        for color in up {
            let words = 1 + self.rng.below(self.style.words);
            let queue = color / 2 % 6;
            let mut start = vector(output(queue, color), Stream::Scalar(0), words as u32);
            (start.asynchronous, start.microthread) = (true, queue);
            // Others may have used its links before.
            if self.rng.chance(40) {
                acts.push(Act::Work(self.rng.pick(&[20, 90, 300])));
            }
            acts.push(Act::Vector(Box::new(start)));
        }
        acts
    }

    fn acts(&mut self, pe: usize, read: &[(u8, u8, bool)], count: usize) -> Vec<Act> {
        (0..self.rng.below(count + 1)).map(|_| self.act(pe, read)).collect()
    }

    fn act(&mut self, pe: usize, read: &[(u8, u8, bool)]) -> Act {
        match self.rng.below(13) {
            10 => self.register(pe).unwrap_or(Act::Work(1)),
            0 | 1 => Act::Work(self.rng.pick(&[0, 1, 2, 5, 20, 90, 300])),
            2 => Act::Flag(FlagOp::Activate, self.local()),
            3 => {
                let op = self.rng.pick(&[
                    FlagOp::BlockTask,
                    FlagOp::UnblockTask,
                    FlagOp::BlockChannel,
                    FlagOp::UnblockChannel,
                    FlagOp::UnblockChannel,
                    FlagOp::BlockMicrothread,
                    FlagOp::UnblockMicrothread,
                    FlagOp::UnblockMicrothread,
                ]);
                let id = if self.rng.chance(50) { self.local() } else { self.rng.below(8) as u16 };
                Act::Flag(op, id)
            }
            4 if self.rng.chance(50) => Act::Yield,
            4 => self.core_act(),
            _ => match self.transfer(pe, read) {
                Some(start) => Act::Vector(Box::new(start)),
                None => Act::Work(3),
            },
        }
    }

    fn local(&mut self) -> u16 {
        let wild = self.rng.below(1000) < self.style.wild;
        24 + self.rng.below(if wild { 8 } else { 4 }) as u16
    }

    /// Priorities and flushes; now and then another color for a queue.
    fn core_act(&mut self) -> Act {
        let op = self.rng.pick(&[
            FlagOp::RaiseTask,
            FlagOp::LowerTask,
            FlagOp::RaiseChannel,
            FlagOp::LowerChannel,
            FlagOp::MainPriority,
            FlagOp::FlushInput,
            FlagOp::FlushOutput,
            FlagOp::EndFlushInput,
            FlagOp::EndFlushOutput,
            FlagOp::BindInput,
            FlagOp::BindOutput,
        ]);
        let id = match op {
            FlagOp::RaiseTask | FlagOp::LowerTask => self.local(),
            FlagOp::MainPriority => self.rng.below(4) as u16,
            FlagOp::BindInput | FlagOp::BindOutput if self.rng.chance(80) => {
                return Act::Work(1);
            }
            FlagOp::BindInput | FlagOp::BindOutput => {
                (self.rng.below(6) | self.rng.below(8) << 8) as u16
            }
            _ => self.rng.below(6) as u16,
        };
        Act::Flag(op, id)
    }

    /// A send, a receive or a relay.
    fn transfer(&mut self, pe: usize, read: &[(u8, u8, bool)]) -> Option<VectorStart> {
        let up = self.up[pe].clone();
        let words = self.rng.below(self.style.words + 1) as u32;
        let source = (!read.is_empty()).then(|| self.rng.pick(read));
        let color = (!up.is_empty()).then(|| self.rng.pick(&up));
        // Queues keep to one kind of use, so that operations rarely clash: odd input queues are
        // relayed to one output queue, and an output queue is one microthread's.
        let relay = source.filter(|source| source.0 % 2 == 1);
        let mut start = match (relay, color, source) {
            (Some((queue, from, _)), Some(color), _) => {
                let out = queue % 6;
                let mut start = vector(output(out, color), input(queue, from), words);
                (start.asynchronous, start.microthread) = (true, out);
                start
            }
            (None, Some(color), _) if source.is_none() || self.rng.chance(50) => {
                let out = [0, 2, 4][usize::from(color) % 3];
                let mut dest = output(out, color);
                if self.rng.chance(25) {
                    dest = Stream::Output {
                        queue: out,
                        color,
                        control: true,
                        index: 0,
                        advance_switch: self.rng.chance(30),
                        transform: false,
                    };
                } else if self.rng.chance(10) {
                    dest = Stream::Output {
                        queue: out,
                        color,
                        control: false,
                        index: 0,
                        advance_switch: true,
                        transform: false,
                    };
                }
                let mut start = vector(dest, Stream::Scalar(0), words);
                (start.asynchronous, start.microthread) = (out != 4, out);
                start
            }
            (_, _, Some((queue, from, _))) => {
                let dest = Stream::Pointer { address: 0 };
                let mut start = vector(dest, input(queue, from), words);
                (start.asynchronous, start.microthread) = (queue % 4 != 2, queue);
                start
            }
            (_, _, None) => return None,
        };
        start.priority = self.rng.pick(&[
            None,
            Some(Priority::Low),
            Some(Priority::Medium),
            Some(Priority::High),
        ]);
        if self.rng.chance(40) {
            start.activate = Some(self.local() as u8);
        } else if self.rng.chance(20) {
            start.unblock = Some(Unblock::Task(self.local() as u8));
        }
        start.on_control = match self.rng.below(6) {
            0 => OnControl::Terminate,
            1 => OnControl::Activate(self.local() as u8),
            2 => OnControl::Unblock(Unblock::Channel(self.rng.below(8) as u8)),
            _ => OnControl::Ignore,
        };
        Some(start)
    }

    /// Joins a row's ends to the host on a color of its own.
    fn host(&mut self) -> Vec<(u32, u64, Vec<Wavelet>)> {
        let mut sent = Vec::new();
        let (width, height) = (usize::from(self.spec.width), usize::from(self.spec.height));
        if self.style.plain || !self.rng.chance(40) {
            return sent;
        }
        let color = Color::new(20).unwrap();
        for row in 0..height {
            for x in 0..width {
                let route = Route { rx: PortSet::one(Port::West), tx: PortSet::one(Port::East) };
                let config = ColorConfig { route, ..ColorConfig::default() };
                let pe = row * width + x;
                self.spec.routers[pe].colors.push((color, config, Loc::default()));
            }
            for (x, port, to_mesh) in [(0, Port::West, true), (width - 1, Port::East, false)] {
                let at = Coord { x: x as u16, y: row as u16 };
                self.spec.links.push(HostLinkInfo { at, port, color, to_mesh });
                let link = HostLink { port, color, to_mesh };
                self.spec.programs[row * width + x].host_links.push(link);
            }
            // Some hosts take no more than they have room for, and count what enters.
            let bounded = self.rng.chance(50);
            let rooms = [1, 5].map(|least| bounded.then(|| least + self.rng.below(40) as u64));
            self.spec.rooms.extend(rooms);
            let count = self.rng.below(60) as u32;
            let words = (0..count).map(|payload| Wavelet { payload, control: false });
            // Links are ordered by PE and port: two per row.
            sent.push((2 * row as u32, self.rng.below(400) as u64, words.collect()));
        }
        sent
    }
}
