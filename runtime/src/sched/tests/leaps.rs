//! Leaps of the `flow` engine, against `exact`: the same words in the same order, counters, ends and reports.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::wavelet::Command;
use dflow_ir::mesh::{Color, ColorConfig, Coord, Port, Route, Switch, SwitchEntry};
use dflow_ir::program::{HostLink, QueueBinding};
use dflow_ir::target::TargetId;

use super::script::{Act, Script, Spec, control, input, output, vector};
use super::timing::set;
use crate::account::Account;
use crate::config::{EngineKind, Limits};
use crate::exec::Stream;
use crate::machine::{HostLinkInfo, LinkId};
use crate::outcome::RunEnd;
use crate::sched::engine::Engine;
use crate::sched::reached::{self, Reached};

const WIDTH: u16 = 70;

/// A row whose PEs send so many words to the first one (or, `turned`, to the last one), which takes `taken` of
/// them: a router turns into a way through behind the last word of its PE.
fn row(target: TargetId, delay: impl Fn(u32) -> u32, words: u32, taken: u32, turned: bool) -> Spec {
    let color = Color::new(3).unwrap();
    let mut spec = Spec::new(target, WIDTH, 1);
    let (onward, behind) = if turned { (Port::East, Port::West) } else { (Port::West, Port::East) };
    for pe in 0..usize::from(WIDTH) {
        let far = if turned { WIDTH as usize - 1 - pe } else { pe } as u32;
        let is_root = far == 0;
        let is_last = far + 1 == u32::from(WIDTH);
        let route = match is_root {
            true => Route { rx: set(&[behind]), tx: set(&[Port::Ramp]) },
            false => Route { rx: set(&[Port::Ramp]), tx: set(&[onward]) },
        };
        let through = [Some(SwitchEntry::Rx(set(&[behind]))), None, None];
        let switch = Switch { positions: through, ..Switch::default() };
        let switch = (!is_root && !is_last).then_some(switch);
        let config = ColorConfig { route, switch, ..ColorConfig::default() };
        spec.routers[pe].colors.push((color, config, Loc::default()));
        spec.programs[pe].queues.push(QueueBinding::new(is_root, 2, color, Loc::default()));
        let mut moves = match is_root {
            true => vector(Stream::Pointer { address: 0 }, input(2, 3), taken),
            false => vector(output(2, 3), Stream::Scalar(0), words),
        };
        if let Stream::Output { advance_switch, .. } = &mut moves.dest {
            *advance_switch = !is_last;
        }
        // Words tell who sent them.
        let first = vector(Stream::Pointer { address: 0 }, Stream::Scalar(0), 100 * far + 1);
        let acts = [Act::Vector(Box::new(first)), Act::Work(delay(far)), Act::Yield];
        let acts = acts.into_iter().chain([Act::Vector(Box::new(moves))]).collect();
        spec.begins(pe, acts);
    }
    spec
}

/// A row whose PEs send so many words each to the host, by the first one, after words of its own.
fn to_host(target: TargetId, delay: impl Fn(u32) -> u32, words: u32) -> Spec {
    let mut spec = row(target, delay, words, 0, false);
    let (color, port) = (Color::new(3).unwrap(), Port::West);
    let through = [Some(SwitchEntry::Rx(set(&[Port::East]))), None, None];
    spec.routers[0].colors[0].1 = ColorConfig {
        route: Route { rx: set(&[Port::Ramp]), tx: set(&[port]) },
        switch: Some(Switch { positions: through, ..Switch::default() }),
        ..ColorConfig::default()
    };
    spec.programs[0].queues = vec![QueueBinding::new(false, 2, color, Loc::default())];
    let mut moves = vector(output(2, 3), Stream::Scalar(0), words);
    if let Stream::Output { advance_switch, .. } = &mut moves.dest {
        *advance_switch = true;
    }
    spec.acts[0][0] = vec![Act::Vector(Box::new(moves))];
    let at = Coord { x: 0, y: 0 };
    spec.links.push(HostLinkInfo { at, port, color, to_mesh: false });
    spec.programs[0].host_links.push(HostLink { port, color, to_mesh: false });
    spec
}

/// Likewise, twice: a control wavelet of the last one turns all switches back behind its words. The first one has its
/// words late, when those of others are ready.
fn to_host_again(target: TargetId, delay: impl Fn(u32) -> u32, words: u32) -> Spec {
    let mut spec = to_host(target, &delay, words);
    for pe in 0..usize::from(WIDTH) {
        if let Some(switch) = &mut spec.routers[pe].colors[0].1.switch {
            switch.ring = true;
        }
        let again = if pe == 0 { 500 } else { delay(pe as u32) / 100 };
        let is_last = pe + 1 == usize::from(WIDTH);
        let acts = &mut spec.acts[pe][0];
        let sends = acts.pop().unwrap();
        let turns = if is_last { turn_back() } else { Vec::new() };
        let work = [Act::Work(again), Act::Yield];
        acts.extend([sends.clone()].into_iter().chain(turns).chain(work).chain([sends]));
    }
    spec
}

/// The last PE of a row sends so many words, commands for nobody and words, of which the first one takes some.
fn commanded(
    target: TargetId,
    (before, commands, after): (u32, usize, u32),
    taken: u32,
    turned: bool,
) -> Spec {
    let mut spec = row(target, |_| 0, 0, taken, turned);
    let behind = if turned { Port::West } else { Port::East };
    let from_core = [Some(SwitchEntry::Rx(set(&[Port::Ramp]))), None, None];
    for pe in 0..usize::from(WIDTH) {
        let far = if turned { WIDTH as usize - 1 - pe } else { pe };
        let config = &mut spec.routers[pe].colors[0].1;
        if let Some(switch) = &mut config.switch {
            config.route.rx = set(&[behind]);
            switch.positions = from_core;
        }
        if far == 0 {
            continue;
        }
        let sends = |words| Act::Vector(Box::new(vector(output(2, 3), Stream::Scalar(0), words)));
        let acts = &mut spec.acts[pe][0];
        acts.pop();
        if far + 1 == usize::from(WIDTH) {
            acts.push(sends(before));
            (0..commands).for_each(|_| acts.extend(commands_routers(Command::Nop)));
            acts.push(sends(after));
        }
    }
    spec
}

/// A control wavelet that moves switches on.
fn turn_back() -> Vec<Act> {
    commands_routers(Command::Advance)
}

/// A control wavelet for routers.
fn commands_routers(command: Command) -> Vec<Act> {
    let commands = |hash: &u32| control(hash + 1) >> 22 & 7 == 4 | command as u32;
    let hash = (0..).find(commands).unwrap();
    let mut turns = vector(output(2, 3), Stream::Scalar(0), 1);
    if let Stream::Output { control, .. } = &mut turns.dest {
        *control = true;
    }
    vec![Act::Hash(hash), Act::Vector(Box::new(turns))]
}

/// How a run ends, what became of all words, and what the cores have read.
fn outcome(spec: &Spec, kind: EngineKind, region: u16) -> (RunEnd, Account, Vec<u32>) {
    let mut engine: Engine<Script> = spec.engine(kind, 1, region);
    let end = engine.run(&[], &Limits { cycle: 100_000, ..Limits::default() });
    let leaps = engine.regions.iter().map(|region| region.leaps.count());
    // One in each region, up to its border.
    let expected = if kind == EngineKind::Flow { engine.regions.len() } else { 0 };
    assert_eq!(leaps.sum::<usize>(), expected);
    let cores = engine.regions.iter().flat_map(|region| &region.cores);
    let taken = cores.flatten().map(|core| core.state.hash).collect();
    let account = engine.account();
    assert!(account.is_balanced(), "{account:?}");
    (end, account, taken)
}

fn cycle(end: &RunEnd) -> u64 {
    match end {
        RunEnd::Idle { cycle } => *cycle,
        other => panic!("{other:?}"),
    }
}

/// Delays by the distance from the root, so that PEs are ready at once, in turn, in reverse, mixed, or in turn long
/// after one another.
fn delays() -> [fn(u32) -> u32; 5] {
    [
        |far| 9000 - 100 * far,
        |far| 9000 - 90 * far,
        |far| 9000 - 110 * far,
        |far| 9000 - 100 * far + far * 37 % 50,
        |far| 9000 - 60 * far,
    ]
}

#[test]
fn words_that_leap_come_as_they_do_from_router_to_router() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for (delay, turned) in delays().into_iter().flat_map(|it| [(it, false), (it, true)]) {
            for (words, region) in [(1, 0), (2, 0), (30, 0), (1, 16), (2, 16), (30, 16)] {
                let spec = row(target, delay, words, words * u32::from(WIDTH - 1), turned);
                let exact = outcome(&spec, EngineKind::Exact, 0);
                let flow = outcome(&spec, EngineKind::Flow, region);
                let (here, there) = (cycle(&exact.0), cycle(&flow.0));
                let place = format!("{target:?} {turned} {words} {region}: {here} {there}");
                assert!(here.abs_diff(there) <= 4 + here / 100, "{place}");
                assert_eq!(exact.2, flow.2, "{place}");
                let told = |it: &Account| (it.sent, it.copies, it.taken);
                assert_eq!(told(&exact.1), told(&flow.1), "{place}");
            }
        }
    }
}

#[test]
fn words_that_leap_to_the_host_come_as_they_do_from_router_to_router() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for (delay, words) in delays().into_iter().flat_map(|it| [(it, 1), (it, 25)]) {
            let run = |kind| {
                let mut engine: Engine<Script> = to_host(target, delay, words).engine(kind, 1, 0);
                let end = engine.run(&[], &Limits { cycle: 100_000, ..Limits::default() });
                let account = engine.account();
                assert!(account.is_balanced(), "{account:?}");
                let words: Vec<(u64, u32)> = engine
                    .received(LinkId(0))
                    .into_iter()
                    .map(|(cycle, word)| (cycle, word.payload))
                    .collect();
                let leaps = engine.regions.iter().map(|region| region.leaps.count());
                assert_eq!(leaps.sum::<usize>(), usize::from(kind == EngineKind::Flow));
                (cycle(&end), engine.stats().hops, words)
            };
            let (exact, flow) = (run(EngineKind::Exact), run(EngineKind::Flow));
            assert_eq!(exact.2.len() as u32, words * u32::from(WIDTH));
            assert_eq!(exact, flow, "{target:?} {words}");
        }
    }
    assert!(reached::count(Reached::Onward) > 50);
    assert!(reached::count(Reached::Before) > 50);
}

#[test]
fn words_of_the_next_round_do_not_leap_past_what_turns_the_switches_back() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for (delay, words) in delays().into_iter().flat_map(|it| [(it, 2), (it, 25)]) {
            let run = |kind| {
                let spec = to_host_again(target, delay, words);
                let mut engine: Engine<Script> = spec.engine(kind, 1, 0);
                let end = engine.run(&[], &Limits { cycle: 100_000, ..Limits::default() });
                let words = engine.received(LinkId(0)).into_iter();
                let words: Vec<u32> = words.map(|(_, word)| word.payload).collect();
                (cycle(&end), engine.stats().hops, words)
            };
            let (exact, flow) = (run(EngineKind::Exact), run(EngineKind::Flow));
            assert_eq!(exact.2.len() as u32, 2 * words * u32::from(WIDTH) + 1);
            assert_eq!((exact.1, exact.2), (flow.1, flow.2), "{target:?} {words}");
            assert!(exact.0.abs_diff(flow.0) <= exact.0 / 50, "{} {}", exact.0, flow.0);
        }
    }
}

/// In both engines the same words have come, are left and have been sent.
fn stand_alike(spec: &Spec, region: u16, place: &str) {
    let exact = outcome(spec, EngineKind::Exact, 0);
    let flow = outcome(spec, EngineKind::Flow, region);
    assert_eq!(exact.2, flow.2, "{place}");
    assert_eq!(exact.1.left, flow.1.left, "{place}");
    assert_eq!(exact.1.sent, flow.1.sent, "{place}");
}

#[test]
fn words_that_the_root_does_not_take_stand_where_they_do_in_exact() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for (delay, turned) in delays().into_iter().flat_map(|it| [(it, false), (it, true)]) {
            for (words, taken, region) in
                [(1, 20, 0), (2, 9, 0), (30, 100, 0), (30, 1, 0), (2, 9, 16), (30, 100, 16)]
            {
                let spec = row(target, delay, words, taken, turned);
                let place = format!("{target:?} {turned} {words} {taken} {region}");
                stand_alike(&spec, region, &place);
            }
        }
    }
}

#[test]
fn what_follows_words_that_wait_finds_the_places_that_they_leave() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for (taken, turned, region) in
            [(0, false, 0), (0, true, 0), (10, false, 0), (10, true, 0), (0, false, 16)]
        {
            for sends in [(4, 1, 300), (130, 3, 20), (136, 1, 5), (138, 4, 5), (300, 1, 5)] {
                let spec = commanded(target, sends, taken, turned);
                let place = format!("{target:?} {sends:?} {taken} {turned} {region}");
                stand_alike(&spec, region, &place);
            }
        }
    }
}
