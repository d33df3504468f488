//! Latencies that have been published, and single rules, held by hand.

use dflow_ir::inst::{FlagOp, Unblock};
use dflow_ir::loc::Loc;
use dflow_ir::mesh::{
    Color, ColorConfig, Coord, Port, PortSet, Route, Switch, SwitchEntry, Wavelet,
};
use dflow_ir::program::{HostLink, InitialFlag, QueueBinding, TaskBinding, TaskKind};
use dflow_ir::target::TargetId;
use dflow_ir::ty::Ty;

use super::script::{Act, Spec, input, output, vector};
use crate::config::{EngineKind, Limits};
use crate::exec::{Stream, VectorStart};
use crate::machine::{Goal, HostLinkInfo, LinkId};
use crate::outcome::{Chain, RunEnd, Wait, Waiter};
use crate::sched::reached::{self, Reached};
use crate::sched::record::Event;
use crate::trap::TrapKind;

fn color(index: u8) -> Color {
    Color::new(index).unwrap()
}

pub(super) fn set(ports: &[Port]) -> PortSet {
    ports.iter().fold(PortSet::EMPTY, |set, &port| set.with(port))
}

fn route(spec: &mut Spec, pe: usize, of: u8, rx: &[Port], tx: &[Port]) {
    let config =
        ColorConfig { route: Route { rx: set(rx), tx: set(tx) }, ..ColorConfig::default() };
    spec.routers[pe].colors.push((color(of), config, Loc::default()));
}

fn bind(spec: &mut Spec, pe: usize, queue: u8, of: u8) {
    let binding = QueueBinding::new(true, queue, color(of), Loc::default());
    spec.programs[pe].queues.push(binding);
}

/// A local task that runs from the start.
fn starts(spec: &mut Spec, pe: usize, id: u8, acts: Vec<Act>) {
    local(spec, pe, id, acts);
    let flag = InitialFlag { op: FlagOp::Activate, id, loc: Loc::default() };
    spec.programs[pe].initial_flags.push(flag);
}

fn local(spec: &mut Spec, pe: usize, id: u8, acts: Vec<Act>) {
    let func = spec.func(pe, "main", &[], acts);
    let task = TaskBinding { kind: TaskKind::Local, id, func, loc: Loc::default() };
    spec.programs[pe].tasks.push(task);
}

fn send(queue: u8, of: u8, words: u32) -> Act {
    Act::Vector(Box::new(vector(output(queue, of), Stream::Scalar(7), words)))
}

fn receive(queue: u8, of: u8, words: u32) -> Act {
    Act::Vector(Box::new(vector(Stream::Pointer { address: 0 }, input(queue, of), words)))
}

/// Runs to the end on both engines, which must agree.
fn run(spec: &Spec) -> (RunEnd, Vec<Event>) {
    let mut step = spec.engine(EngineKind::Step, 1, 0);
    let end = step.run(&[], &Limits::default());
    let events = step.events();
    for (threads, region) in [(1, 0), (3, 1)] {
        let mut exact = spec.engine(EngineKind::Exact, threads, region);
        assert_eq!(exact.run(&[], &Limits::default()), end);
        assert_eq!(exact.events(), events);
        assert_eq!(exact.stats(), step.stats());
    }
    (end, events)
}

/// Slots of the element kind of a PE's main thread: the last run of them.
fn last_slot(events: &[Event], of: u32) -> u64 {
    let slots = events.iter().filter_map(|event| match *event {
        Event::Slots { cycle, pe, count, .. } if pe == of => Some(cycle + count - 1),
        Event::Slots { .. } | Event::Arrival { .. } | Event::Task { .. } => None,
    });
    slots.max().unwrap()
}

fn one_hop(target: TargetId, words: u32) -> Vec<Event> {
    let mut spec = Spec::new(target, 2, 1);
    route(&mut spec, 0, 3, &[Port::Ramp], &[Port::East]);
    route(&mut spec, 1, 3, &[Port::West], &[Port::Ramp]);
    bind(&mut spec, 1, 2, 3);
    starts(&mut spec, 0, 9, vec![send(2, 3, words)]);
    starts(&mut spec, 1, 9, vec![receive(2, 3, words)]);
    run(&spec).1
}

fn arrivals(events: &[Event]) -> Vec<u64> {
    let cycle = |event: &Event| match *event {
        Event::Arrival { cycle, .. } => Some(cycle),
        Event::Slots { .. } | Event::Task { .. } => None,
    };
    events.iter().filter_map(cycle).collect()
}

#[test]
fn a_hop_from_issue_to_issue_takes_six_cycles() {
    // Start: pick 0, code 2 (one slot), element 3; six later it can be used.
    let events = one_hop(TargetId::Wse2, 1);
    assert_eq!(arrivals(&events), [3 + 6]);
    assert_eq!(last_slot(&events, 1), 9 + 1);
}

/// Two colors that use a link one after the other have it as channels; at the same time, one is cut.
#[test]
fn colors_take_turns_on_a_link() {
    let counts = |pause: u32| {
        let mut spec = Spec::new(TargetId::Wse2, 3, 1);
        route(&mut spec, 0, 1, &[Port::Ramp], &[Port::East]);
        route(&mut spec, 1, 1, &[Port::West], &[Port::East]);
        route(&mut spec, 1, 3, &[Port::Ramp], &[Port::East]);
        for of in [1, 3] {
            route(&mut spec, 2, of, &[Port::West], &[Port::Ramp]);
            bind(&mut spec, 2, of, of);
        }
        starts(&mut spec, 0, 9, vec![send(2, 1, 40), Act::Work(400), send(2, 1, 40)]);
        starts(&mut spec, 1, 9, vec![Act::Work(pause), send(2, 3, 40)]);
        let mut from_west = vector(Stream::Pointer { address: 0 }, input(1, 1), 80);
        (from_west.asynchronous, from_west.microthread) = (true, 1);
        starts(&mut spec, 2, 9, vec![Act::Vector(Box::new(from_west)), receive(3, 3, 40)]);
        let all = [Reached::Claimed, Reached::GivenUp, Reached::Trespass];
        let before = all.map(reached::count);
        run(&spec);
        std::array::from_fn(|at| reached::count(all[at]) - before[at])
    };
    let [claimed, given_up, trespasses] = counts(200);
    assert_eq!((claimed, given_up, trespasses), (3, 2, 0));
    let [.., trespasses] = counts(20);
    assert!(trespasses > 0);
}

#[test]
fn eight_words_over_a_hop_take_nineteen_cycles_on_wse3() {
    let events = one_hop(TargetId::Wse3, 8);
    let first_issue = 3;
    // From the first issue to the last word in view, as published.
    assert_eq!(arrivals(&events).last(), Some(&(first_issue + 19)));
}

#[test]
fn a_long_stream_keeps_one_word_per_cycle() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        let arrivals = arrivals(&one_hop(target, 100));
        assert_eq!(arrivals.last().unwrap() - arrivals[0], 99);
    }
}

#[test]
fn a_chain_of_relays_adds_six_cycles_per_pe() {
    let words = 32;
    let mut spec = Spec::new(TargetId::Wse2, 4, 1);
    // Two colors alternate, as in a chain reduction.
    for pe in 0..4u8 {
        let (to_left, from_right) = (2 + pe % 2, 2 + (pe + 1) % 2);
        let at = usize::from(pe);
        if pe > 0 {
            route(&mut spec, at, to_left, &[Port::Ramp], &[Port::West]);
        }
        if pe < 3 {
            route(&mut spec, at, from_right, &[Port::East], &[Port::Ramp]);
            bind(&mut spec, at, 2, from_right);
        }
        let act = match pe {
            0 => receive(2, from_right, words),
            3 => send(2, to_left, words),
            _ => Act::Vector(Box::new(vector(output(2, to_left), input(2, from_right), words))),
        };
        starts(&mut spec, at, 9, vec![act]);
    }
    let (_, events) = run(&spec);
    let done: Vec<u64> = (0..4).map(|pe| last_slot(&events, pe)).collect();
    assert_eq!(done, [done[3] + 18, done[3] + 12, done[3] + 6, done[3]]);
    assert_eq!(done[3], 3 + u64::from(words));
}

#[test]
fn completion_to_code_takes_three_cycles() {
    let mut spec = Spec::new(TargetId::Wse2, 2, 1);
    route(&mut spec, 0, 3, &[Port::Ramp], &[Port::East]);
    route(&mut spec, 1, 3, &[Port::West], &[Port::Ramp]);
    bind(&mut spec, 1, 2, 3);
    starts(&mut spec, 1, 9, vec![receive(2, 3, 1)]);
    let mut start = vector(output(2, 3), Stream::Scalar(1), 1);
    (start.asynchronous, start.microthread, start.activate) = (true, 2, Some(10));
    starts(&mut spec, 0, 9, vec![Act::Vector(Box::new(start))]);
    local(&mut spec, 0, 10, vec![]);
    let (_, events) = run(&spec);
    // Code 2, launch 3, element 4 (the main thread's last slot too takes one: 5), completion 5 or
    // later: the task that was waiting for it is picked at 6.
    let slots: Vec<(u64, u8)> = events
        .iter()
        .filter_map(|event| match *event {
            Event::Slots { cycle, pe: 0, thread, .. } => Some((cycle, thread)),
            Event::Slots { .. } | Event::Arrival { .. } | Event::Task { .. } => None,
        })
        .collect();
    let main = crate::sched::record::MAIN;
    // Main: segment 2, launch 3, segment with the return 4; the microthread has slot 5,
    // completes at 6 and the task's code runs at 8.
    assert_eq!(slots, [(2, main), (5, 2), (8, main)]);
}

#[test]
fn data_tasks_take_words_one_by_one() {
    let mut spec = Spec::new(TargetId::Wse2, 2, 1);
    route(&mut spec, 0, 3, &[Port::Ramp], &[Port::East]);
    route(&mut spec, 1, 3, &[Port::West], &[Port::Ramp]);
    starts(&mut spec, 0, 9, vec![send(2, 3, 20)]);
    let func = spec.func(1, "take", &[Ty::I32], vec![Act::Work(4)]);
    let task = TaskBinding { kind: TaskKind::Data, id: 3, func, loc: Loc::default() };
    spec.programs[1].tasks.push(task);
    let (end, events) = run(&spec);
    let picks: Vec<u64> = events
        .iter()
        .filter_map(|event| match *event {
            Event::Task { cycle, pe: 1, .. } => Some(cycle),
            Event::Task { .. } | Event::Arrival { .. } | Event::Slots { .. } => None,
        })
        .collect();
    let expected: Vec<u64> = (0..20).map(|word| 9 + 6 * word).collect();
    assert_eq!(picks, expected);
    assert!(matches!(end, RunEnd::Idle { .. }));
}

/// Words of a data task that is blocked wait, and operations go on as without them.
#[test]
fn words_of_a_blocked_task_hold_nothing_up() {
    let mut spec = Spec::new(TargetId::Wse2, 2, 1);
    for of in [3, 4] {
        route(&mut spec, 0, of, &[Port::Ramp], &[Port::East]);
        route(&mut spec, 1, of, &[Port::West], &[Port::Ramp]);
    }
    starts(&mut spec, 0, 9, vec![send(2, 3, 2), send(3, 4, 40)]);
    bind(&mut spec, 1, 4, 4);
    let receive = VectorStart {
        asynchronous: true,
        microthread: 4,
        unblock: Some(Unblock::Channel(3)),
        ..vector(Stream::Pointer { address: 0 }, input(4, 4), 40)
    };
    starts(&mut spec, 1, 9, vec![Act::Vector(Box::new(receive))]);
    let func = spec.func(1, "take", &[Ty::I32], vec![Act::Work(4)]);
    let task = TaskBinding { kind: TaskKind::Data, id: 3, func, loc: Loc::default() };
    spec.programs[1].tasks.push(task);
    let flag = InitialFlag { op: FlagOp::BlockChannel, id: 3, loc: Loc::default() };
    spec.programs[1].initial_flags.push(flag);
    let before = reached::count(Reached::Closed);
    let (end, events) = run(&spec);
    assert!(reached::count(Reached::Closed) > before + 5);
    let picks = events.iter().filter(|event| matches!(event, Event::Task { pe: 1, .. })).count();
    assert_eq!((picks, end), (3, RunEnd::Idle { cycle: 64 }));
}

#[test]
fn a_control_wavelet_switches_after_it_has_passed() {
    // Position 0 keeps words on PE 1, position 1 sends them on to PE 2.
    let mut spec = Spec::new(TargetId::Wse2, 3, 1);
    route(&mut spec, 0, 3, &[Port::Ramp], &[Port::East]);
    let switch = Switch {
        positions: [Some(SwitchEntry::Tx(set(&[Port::East]))), None, None],
        ..Switch::default()
    };
    let route_1 = Route { rx: set(&[Port::West]), tx: set(&[Port::Ramp]) };
    let config = ColorConfig { route: route_1, switch: Some(switch), ..ColorConfig::default() };
    spec.routers[1].colors.push((color(3), config, Loc::default()));
    route(&mut spec, 2, 3, &[Port::West], &[Port::Ramp]);
    for pe in [1, 2] {
        bind(&mut spec, pe, 2, 3);
        starts(&mut spec, pe, 9, vec![receive(2, 3, 3)]);
    }
    let advance = Stream::Output {
        queue: 2,
        color: 3,
        control: true,
        index: 0,
        advance_switch: false,
        transform: false,
    };
    let mut control = vector(advance, Stream::None, 1);
    // The script sends its hash; a control word of PE 0 starts as 1: NOP. Use a relay of a host
    // word instead.
    control.sources[0] = input(2, 4);
    route(&mut spec, 0, 4, &[Port::West], &[Port::Ramp]);
    bind(&mut spec, 0, 2, 4);
    spec.links.push(HostLinkInfo {
        at: Coord { x: 0, y: 0 },
        port: Port::West,
        color: color(4),
        to_mesh: true,
    });
    let link = HostLink { port: Port::West, color: color(4), to_mesh: true };
    spec.programs[0].host_links.push(link);
    starts(&mut spec, 0, 9, vec![send(2, 3, 3), Act::Vector(Box::new(control)), send(2, 3, 3)]);
    for kind in [EngineKind::Step, EngineKind::Exact] {
        let mut engine = spec.engine(kind, 1, 0);
        // ADV, hidden, no entry point; the relay adds one to it, which is bit 0 of a late command.
        let payload = 31 << 16 | 1 << 22 | 1 << 24;
        assert!(engine.send(LinkId(0), 0, [Wavelet { payload, control: false }]));
        let end = engine.run(&[], &Limits::default());
        assert!(matches!(end, RunEnd::Idle { .. }), "{end:?}");
        let per_pe = |pe: u32, events: &[Event]| {
            events
                .iter()
                .filter(|event| matches!(event, Event::Arrival { pe: at, .. } if *at == pe))
                .count()
        };
        let events = engine.events();
        assert_eq!((per_pe(1, &events), per_pe(2, &events)), (3, 3));
        assert!(engine.deadlock().waiters.is_empty());
    }
}

#[test]
fn a_host_without_room_takes_no_word() {
    let mut spec = Spec::new(TargetId::Wse2, 1, 1);
    route(&mut spec, 0, 5, &[Port::West], &[Port::East]);
    for (port, to_mesh) in [(Port::West, true), (Port::East, false)] {
        spec.links.push(HostLinkInfo { at: Coord { x: 0, y: 0 }, port, color: color(5), to_mesh });
        spec.programs[0].host_links.push(HostLink { port, color: color(5), to_mesh });
    }
    spec.rooms = vec![Some(4), Some(4)];
    for kind in [EngineKind::Step, EngineKind::Exact] {
        let mut engine = spec.engine(kind, 1, 0);
        let words = (0..20).map(|payload| Wavelet { payload, control: payload == 2 });
        assert!(engine.send(LinkId(0), 0, words));
        // Four words and a control wavelet come to the host, two words wait in
        // the router's buffer.
        let end = engine.run(&[Goal::Words(LinkId(1), 6)], &Limits::default());
        assert!(matches!(end, RunEnd::Deadlock(_)), "{end:?}");
        assert_eq!((engine.counted(LinkId(0)), engine.counted(LinkId(1))), (7, 5));
        engine.make_room(LinkId(1), engine.now + 100, 10);
        let end = engine.run(&[Goal::Words(LinkId(0), 17)], &Limits::default());
        assert!(matches!(end, RunEnd::Reached { .. }), "{end:?}");
        engine.make_room(LinkId(1), engine.now, 5);
        assert!(matches!(engine.run(&[], &Limits::default()), RunEnd::Idle { .. }));
        assert_eq!(engine.received(LinkId(1)).len(), 20);
    }
}

#[test]
fn the_host_sends_and_receives_with_credits() {
    let mut spec = Spec::new(TargetId::Wse3, 2, 2);
    let east = |pe| (pe % 2 == 1, pe);
    for row in 0..2u16 {
        for pe in [row * 2, row * 2 + 1].map(usize::from) {
            route(&mut spec, pe, 5, &[Port::West], &[Port::East]);
        }
        let ends = [(0, Port::West, true), (1, Port::East, false)];
        for (x, port, to_mesh) in ends {
            spec.links.push(HostLinkInfo {
                at: Coord { x, y: row },
                port,
                color: color(5),
                to_mesh,
            });
            let link = HostLink { port, color: color(5), to_mesh };
            spec.programs[usize::from(row * 2 + x)].host_links.push(link);
        }
    }
    assert!(east(1).0);
    let mut ends = Vec::new();
    for (kind, threads, region) in
        [(EngineKind::Step, 1, 0), (EngineKind::Exact, 1, 0), (EngineKind::Exact, 2, 1)]
    {
        let mut engine = spec.engine(kind, threads, region);
        let words = (0..50).map(|payload| Wavelet { payload, control: payload == 49 });
        assert!(engine.send(LinkId(0), 10, words.clone()));
        assert!(engine.send(LinkId(2), 5, words));
        let goals = [Goal::Words(LinkId(1), 20), Goal::Controls(LinkId(3), 1)];
        let first = engine.run(&goals, &Limits::default());
        let count = engine.received(LinkId(1)).len();
        let late =
            engine.send(LinkId(0), engine.now + 100, [Wavelet { payload: 1, control: false }]);
        let second = engine.run(&[Goal::Words(LinkId(1), 51)], &Limits::default());
        let third = engine.run(&[Goal::Words(LinkId(1), 52)], &Limits::default());
        ends.push((first, count, late, second, third, engine.received(LinkId(1)), engine.stats()));
    }
    assert_eq!(ends[0], ends[1]);
    assert_eq!(ends[0], ends[2]);
    // First word: enters at 5, two hops later at the host; the 50th 49 later.
    assert_eq!(ends[0].0, RunEnd::Reached { cycle: 5 + 3 * 2 + 49 });
    assert!(matches!(ends[0].4, RunEnd::Deadlock(_)));
}

#[test]
fn a_deadlock_says_who_waits_and_who_should_send() {
    let mut spec = Spec::new(TargetId::Wse2, 8, 1);
    route(&mut spec, 0, 3, &[Port::Ramp], &[Port::East]);
    for pe in 1..8 {
        let tx: &[Port] = if pe < 7 { &[Port::Ramp, Port::East] } else { &[Port::Ramp] };
        route(&mut spec, pe, 3, &[Port::West], tx);
        bind(&mut spec, pe, 2, 3);
        starts(&mut spec, pe, 9, vec![receive(2, 3, 2)]);
    }
    starts(&mut spec, 0, 9, vec![send(2, 3, 1)]);
    let (end, _) = run(&spec);
    assert!(matches!(end, RunEnd::Idle { .. }));
    let mut engine = spec.engine(EngineKind::Exact, 1, 0);
    engine.run(&[], &Limits::default());
    let report = engine.deadlock();
    let waiters: Vec<(usize, &Wait)> =
        report.waiters.iter().map(|waiter| (waiter.count, &waiter.wait)).collect();
    let senders = vec![Coord { x: 0, y: 0 }];
    let chain = Chain::Idle(Coord { x: 0, y: 0 });
    let wait = Wait::Receive {
        color: color(3),
        queue: 2,
        last: Some(9),
        senders,
        stands: None,
        sent: Some(1),
        // These programs know what is left, not what is done.
        done: 0,
        length: Some(1),
        filtered: 0,
        chain,
    };
    // The programs differ here, so nothing is folded; each names the sender.
    assert_eq!(waiters.len(), 7);
    assert_eq!(waiters[0], (1, &wait));
    assert!(report.to_string().lines().count() <= 6, "{report}");
}

/// Two PEs that hand a word to and fro: while it is under way both wait, and neither is to blame.
#[test]
fn who_waits_at_a_limit_is_part_of_no_circle() {
    let mut spec = Spec::new(TargetId::Wse2, 2, 1);
    let ways = [(0, 3, Port::East, Port::West, 1), (1, 4, Port::West, Port::East, 0)];
    for (from, of, out, back, to) in ways {
        route(&mut spec, from, of, &[Port::Ramp], &[out]);
        route(&mut spec, to, of, &[back], &[Port::Ramp]);
        bind(&mut spec, to, 2, of);
    }
    let again = Act::Flag(FlagOp::Activate, 9);
    starts(&mut spec, 0, 9, vec![send(2, 3, 1), receive(2, 4, 1), again.clone()]);
    starts(&mut spec, 1, 9, vec![receive(2, 3, 1), send(2, 4, 1), again]);
    for engine in [EngineKind::Step, EngineKind::Exact, EngineKind::Flow] {
        let mut both = 0;
        for cycle in 200..240 {
            let mut engine = spec.engine(engine, 1, 0);
            engine.run(&[], &Limits { cycle, ..Limits::default() });
            let waiting = engine.doing().waiting;
            both += usize::from(waiting.len() == 2);
            for Waiter { wait, .. } in waiting {
                let is_open = matches!(wait, Wait::Receive { chain: Chain::Open, .. });
                assert!(is_open, "{cycle}: {wait}");
            }
        }
        assert!(both > 0, "{engine:?}");
    }
}

#[test]
fn forbidden_acts_trap_with_their_cycle() {
    let mut spec = Spec::new(TargetId::Wse2, 2, 1);
    route(&mut spec, 0, 3, &[Port::Ramp], &[Port::West]);
    starts(&mut spec, 0, 9, vec![send(2, 3, 1)]);
    assert!(matches!(run(&spec).0, RunEnd::Idle { .. }), "a word may leave the rectangle");

    spec.routers[0].colors.clear();
    route(&mut spec, 0, 3, &[Port::Ramp], &[Port::East]);
    let RunEnd::Trap(trap) = run(&spec).0 else { panic!("no trap") };
    assert_eq!((trap.kind, trap.pe.x), (TrapKind::NoRoute { from: Port::West }, 1));

    spec.acts[0][0] = vec![Act::Work(3), Act::Flag(FlagOp::Activate, 12)];
    let RunEnd::Trap(trap) = run(&spec).0 else { panic!("no trap") };
    assert_eq!((trap.kind, trap.cycle), (TrapKind::UnboundTask { id: 12 }, 5));

    let mut start = vector(output(2, 3), Stream::Scalar(1), 1000);
    (start.asynchronous, start.microthread) = (true, 2);
    spec.acts[0][0] = vec![Act::Vector(Box::new(start)), send(2, 3, 1)];
    route(&mut spec, 1, 3, &[Port::West], &[]);
    let RunEnd::Trap(trap) = run(&spec).0 else { panic!("no trap") };
    let loc = Loc::default();
    assert_eq!(trap.kind, TrapKind::QueueBusy { input: false, queue: 2, other: loc });
}
