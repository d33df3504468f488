//! Lines of the `flow` engine, flights and merges of `exact`, against routers: the same words, counters, ends and
//! reports, and in `exact` the same cycles.

use std::collections::BTreeSet;

use dflow_ir::inst::FlagOp;
use dflow_ir::loc::Loc;
use dflow_ir::mesh::wavelet::{Command, Control, ControlCommand};
use dflow_ir::mesh::{Color, ColorConfig, Coord, Port, Route, Switch, SwitchEntry, Wavelet};
use dflow_ir::program::{HostLink, InitialFlag, QueueBinding, TaskBinding, TaskKind};
use dflow_ir::target::TargetId;

use super::script::{Act, Script, Spec, input, output, vector};
use super::timing::set;
use crate::account::Account;
use crate::config::{EngineKind, Limits};
use crate::exec::Stream;
use crate::machine::{Goal, HostLinkInfo, LinkId};
use crate::outcome::RunEnd;
use crate::sched::engine::Engine;
use crate::sched::reached::{self, Reached};
use crate::sched::run::LATE;
use crate::ways::Way;

const WIDTH: u16 = 6;

/// A row whose PEs take words of a color that is dealt as color 21 of memcpy is (0), or send to the
/// host (1), after so many cycles.
fn row(target: TargetId, delays: [u32; WIDTH as usize], words: u32, to_mesh: bool) -> Spec {
    let color = Color::new(if to_mesh { 0 } else { 1 }).unwrap();
    let mut spec = Spec::new(target, WIDTH, 1);
    for (pe, delay) in delays.into_iter().enumerate() {
        let last = pe + 1 == usize::from(WIDTH);
        let config = if to_mesh { dealt(last) } else { merged(last) };
        spec.routers[pe].colors.push((color, config, Loc::default()));
        let (queue, number) = (2, color.index());
        let binding = QueueBinding::new(to_mesh, queue, color, Loc::default());
        spec.programs[pe].queues.push(binding);
        let memory = Stream::Pointer { address: 0 };
        let moves = match to_mesh {
            true => vector(memory, input(queue, number), words),
            false => vector(output(queue, number), Stream::Scalar(7), words),
        };
        let acts = vec![Act::Work(delay), Act::Yield, Act::Vector(Box::new(moves))];
        let func = spec.func(pe, "main", &[], acts);
        let task = TaskBinding { kind: TaskKind::Local, id: 9, func, loc: Loc::default() };
        spec.programs[pe].tasks.push(task);
        let flag = InitialFlag { op: FlagOp::Activate, id: 9, loc: Loc::default() };
        spec.programs[pe].initial_flags.push(flag);
    }
    let port = Port::West;
    spec.links.push(HostLinkInfo { at: Coord { x: 0, y: 0 }, port, color, to_mesh });
    spec.programs[0].host_links.push(HostLink { port, color, to_mesh });
    spec
}

fn dealt(last: bool) -> ColorConfig {
    let onward = if last { vec![Port::Ramp] } else { vec![Port::Ramp, Port::East] };
    let east = if last { Port::Ramp } else { Port::East };
    let entry = |port| Some(SwitchEntry::Tx(set(&[port])));
    let positions = [entry(Port::Ramp), entry(east), None];
    ColorConfig {
        route: Route { rx: set(&[Port::West]), tx: set(&onward) },
        switch: Some(Switch { positions, ..Switch::default() }),
        ..ColorConfig::default()
    }
}

fn merged(last: bool) -> ColorConfig {
    let from = if last { vec![Port::Ramp] } else { vec![Port::Ramp, Port::East] };
    ColorConfig {
        route: Route { rx: set(&from), tx: set(&[Port::West]) },
        ..ColorConfig::default()
    }
}

fn hidden(command: Command) -> Wavelet {
    let payload = Control::new(None, &[ControlCommand { command, ce_ignore: true }]).0;
    Wavelet { payload, control: true }
}

/// Blocks for all columns, one after the other, so many times.
fn deal(words: u32, times: u32) -> Vec<Wavelet> {
    let mut all = Vec::new();
    for time in 0..times {
        all.push(hidden(Command::Advance));
        for column in 0..u32::from(WIDTH) {
            all.extend((0..words).map(|word| Wavelet::data_word(time << 16 | column << 8 | word)));
            let last = column + 1 == u32::from(WIDTH);
            all.extend((!last).then(|| hidden(Command::Advance)));
        }
        all.push(hidden(Command::Reset));
    }
    all
}

/// How a run ends, what became of all words, what has been taken; and how many went by lines.
fn outcome(spec: &Spec, kind: EngineKind, words: &[Wavelet]) -> (RunEnd, Account, Vec<u32>, u64) {
    let mut engine: Engine<Script> = spec.engine(kind, 1, 0);
    let mut goals = Vec::new();
    if words.is_empty() {
        goals.push(Goal::Words(LinkId(0), u64::from(WIDTH) * 20));
    } else {
        assert!(engine.send(LinkId(0), 0, words.iter().copied()));
    }
    let end = engine.run(&goals, &Limits { cycle: 9000, ..Limits::default() });
    let cores = engine.regions.iter().flat_map(|region| &region.cores);
    let taken = cores.flatten().map(|core| core.state.hash).collect();
    let account = engine.account();
    assert!(account.is_balanced(), "{account:?}");
    let ways = engine.ways();
    let lines = ways.rows().filter(|(_, way, _)| *way == Way::Line).map(|(.., words)| words);
    (end, account, taken, lines.sum())
}

/// The same of `exact`, which has to be that of `step`.
fn exactly(spec: &Spec, words: &[Wavelet]) -> (RunEnd, Account, Vec<u32>, u64) {
    let (step, exact) =
        (outcome(spec, EngineKind::Step, words), outcome(spec, EngineKind::Exact, words));
    assert_eq!((&step.0, &step.1, &step.2), (&exact.0, &exact.1, &exact.2));
    assert_eq!(step.3, 0);
    exact
}

fn cycle(end: &RunEnd) -> u64 {
    match end {
        RunEnd::Reached { cycle } | RunEnd::Idle { cycle } => *cycle,
        other => panic!("{other:?}"),
    }
}

#[test]
fn dealt_words_come_as_they_do_through_routers() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for delays in [[0; 6], [0, 0, 400, 0, 0, 0], [300, 200, 100, 90, 500, 0], [50; 6]] {
            for (words, times, fixed) in
                [(1, 3, false), (5, 1, true), (20, 2, false), (20, 2, true)]
            {
                let mut spec = row(target, delays, words * times, true);
                if let Some(end) = spec.routers.last_mut().filter(|_| fixed) {
                    // What the last one gets goes nowhere else.
                    end.colors[0].1 = ColorConfig { switch: None, ..dealt(true) };
                }
                let sent = deal(words, times);
                let exact = exactly(&spec, &sent);
                let flow = outcome(&spec, EngineKind::Flow, &sent);
                let place = format!("{target:?} {delays:?} {words} {times}");
                let (here, there) = (cycle(&exact.0), cycle(&flow.0));
                assert!(here.abs_diff(there) <= 4 + here / 50, "{place}: {here} {there}");
                let told = |it: &Account| (it.entered, it.copies, it.hidden, it.taken);
                assert_eq!(told(&exact.1), told(&flow.1), "{place}");
                assert_eq!(exact.2, flow.2, "{place}");
                assert!(exact.3 > 0, "{place}");
                assert_eq!(flow.3, sent.len() as u64, "{place}");
            }
        }
    }
}

/// Blocks of any length, for operations of the main thread and of microthreads, one of which may take fewer words than come,
/// or wait for more.
#[test]
fn packets_come_as_their_words_do_through_routers() {
    let before = reached::count(Reached::Packet);
    let lengths = [(6, 3), (8, 1), (9, 4), (24, 1), (24, 3), (70, 2), (300, 1)];
    for (words, times) in lengths {
        for delays in [[0; 6], [9, 0, 170, 30, 0, 5], [300, 200, 100, 90, 500, 0]] {
            for (at, more) in [(0, 0), (2, -5), (5, -12), (4, -12), (0, -1), (1, 5), (4, 1)] {
                for threads in [false, true] {
                    let takes = words * times;
                    let mut spec = row(TargetId::Wse2, delays, takes, true);
                    for (pe, acts) in spec.acts.iter_mut().enumerate() {
                        for act in &mut acts[0] {
                            let Act::Vector(start) = act else { continue };
                            (start.asynchronous, start.microthread) = (threads, 2);
                            let more = if pe == at { more } else { 0 };
                            start.length = Some(takes.saturating_add_signed(more));
                        }
                    }
                    let sent = deal(words, times);
                    let exact = exactly(&spec, &sent);
                    let flow = outcome(&spec, EngineKind::Flow, &sent);
                    let place = format!("{words} {times} {delays:?} {at} {more} {threads}");
                    let told = |it: &Account| (it.hidden, it.taken, it.entered);
                    assert_eq!(told(&exact.1), told(&flow.1), "{place}");
                    let left = |it: &Account| (it.left.clone(), it.outside.clone());
                    assert_eq!(left(&exact.1), left(&flow.1), "{place}");
                    assert_eq!(exact.2, flow.2, "{place}");
                    let (here, there) = (cycle(&exact.0), cycle(&flow.0));
                    let same = here.abs_diff(there) <= 4 + here / 50;
                    assert!(same || more != 0, "{place}: {here} {there}");
                }
            }
        }
    }
    assert!(reached::count(Reached::Packet) > before + 100);
}

#[test]
fn words_that_a_core_does_not_take_hold_up_the_row_where_they_do_in_exact() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for times in 1..4 {
            // A PE takes fewer words than it is sent.
            let mut spec = row(target, [0; 6], 30 * times, true);
            let short = vector(Stream::Pointer { address: 0 }, input(2, 0), 3);
            spec.acts[3][0] = vec![Act::Vector(Box::new(short))];
            let sent = deal(30, times);
            let exact = exactly(&spec, &sent);
            let flow = outcome(&spec, EngineKind::Flow, &sent);
            assert!(matches!((&exact.0, &flow.0), (RunEnd::Idle { .. }, RunEnd::Idle { .. })));
            assert_eq!((&exact.1.left, &exact.1.outside), (&flow.1.left, &flow.1.outside));
            assert_eq!(exact.1.hidden, flow.1.hidden);
            assert_eq!(exact.2, flow.2);
            assert!(flow.3 > 0);
        }
    }
}

#[test]
fn words_for_all_columns_go_through_routers_and_keep_their_order() {
    let spec = row(TargetId::Wse2, [0, 250, 0, 40, 0, 700], 44, true);
    let spread = |from: u32| (from..from + 12).map(Wavelet::data_word);
    let mut sent: Vec<Wavelet> = spread(900).collect();
    sent.extend(deal(20, 1));
    sent.extend(spread(1900));
    let exact = exactly(&spec, &sent);
    let flow = outcome(&spec, EngineKind::Flow, &sent);
    assert_eq!(exact.2, flow.2);
    assert_eq!((exact.1.taken, exact.1.hidden), (flow.1.taken, flow.1.hidden));
}

#[test]
fn gathered_words_keep_the_link_busy_in_the_same_cycles() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for delays in [[0; 6], [0, 0, 90, 0, 0, 0], [60, 50, 40, 30, 20, 10], [1, 7, 3, 9, 2, 60]] {
            let spec = row(target, delays, 20, false);
            let exact = exactly(&spec, &[]);
            let flow = outcome(&spec, EngineKind::Flow, &[]);
            assert_eq!(cycle(&exact.0), cycle(&flow.0), "{target:?} {delays:?}");
            assert_eq!(exact.1.to_host, flow.1.to_host);
            assert!(exact.3 > 90);
            assert_eq!(flow.3, 120);
        }
    }
}

/// Words that the host is told of ahead are not there before their cycle: runs that end at some of them give those that
/// `exact` gives, and count as many.
#[test]
fn words_that_are_told_ahead_come_when_they_do_in_exact() {
    let before = reached::count(Reached::ToldAhead);
    for delays in [[0; 6], [60, 50, 40, 30, 20, 10], [1, 7, 3, 9, 2, 60]] {
        for goal in [1, 17, 40, 119] {
            let spec = row(TargetId::Wse2, delays, 20, false);
            let run = |kind| {
                let mut engine: Engine<Script> = spec.engine(kind, 1, 0);
                let mut told = Vec::new();
                for goal in [goal, 120] {
                    let end = engine.run(
                        &[Goal::Words(LinkId(0), goal)],
                        &Limits { cycle: 9000, ..Limits::default() },
                    );
                    let counted = engine.counted(LinkId(0));
                    let cycles = engine.received(LinkId(0)).into_iter().map(|(cycle, _)| cycle);
                    told.push((cycle(&end), counted, cycles.collect::<Vec<_>>()));
                }
                told
            };
            assert_eq!(run(EngineKind::Exact), run(EngineKind::Flow), "{delays:?} {goal}");
        }
    }
    assert!(reached::count(Reached::ToldAhead) > before);
}

/// A row whose PEs send `words` words each to the host by a microthread, while code goes on; PE 3 sends a word
/// that moves switches instead, if it does.
fn sending(target: TargetId, words: u32, moves: bool) -> Spec {
    let mut spec = row(target, [0, 9, 40, 150, 3, 70], words, false);
    for pe in 0..usize::from(WIDTH) {
        for act in &mut spec.acts[pe][0] {
            let Act::Vector(start) = act else { continue };
            (start.asynchronous, start.microthread) = (true, 2);
            if let (Stream::Output { advance_switch, .. }, true) =
                (&mut start.dest, moves && pe == 3)
            {
                (*advance_switch, start.length) = (true, Some(1));
            }
        }
        spec.acts[pe][0].extend([Act::Yield, Act::Work(25)]);
    }
    spec
}

/// The words that the host gets, in order of their values, and when the last one comes; the words that went by lines,
/// and stretches.
fn sent(spec: &Spec, kind: EngineKind) -> (Vec<u32>, u64, u64, u64) {
    let mut engine: Engine<Script> = spec.engine(kind, 1, 0);
    let end = engine.run(&[], &Limits { cycle: 9000, ..Limits::default() });
    assert!(matches!(end, RunEnd::Idle { .. }), "{end:?}");
    assert!(engine.account().is_balanced());
    let got = engine.received(LinkId(0));
    let mut words: Vec<u32> = got.iter().map(|(_, word)| word.payload).collect();
    // Each PE counts from a number of its own on.
    let mut come = BTreeSet::new();
    for &word in &words {
        assert!(come.insert(word) && !come.contains(&(word + 1)), "{word} was overtaken");
    }
    words.sort_unstable();
    let ways = engine.ways();
    let lines = ways.rows().filter(|(_, way, _)| *way == Way::Line).map(|(.., words)| words).sum();
    (words, got.last().map_or(0, |(t, _)| *t), lines, ways.stretches.stretches)
}

#[test]
fn what_is_sent_to_the_host_goes_by_stretches() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for (words, most) in [(1, 6), (30, 6), (200, 24)] {
            let spec = sending(target, words, false);
            let exact = sent(&spec, EngineKind::Exact);
            let flow = sent(&spec, EngineKind::Flow);
            assert_eq!(exact.0.len(), 6 * words as usize);
            assert_eq!((&exact.0, exact.1), (&flow.0, flow.1), "{target:?} {words}");
            assert_eq!(flow.2, u64::from(6 * words));
            assert!((6..=most).contains(&flow.3), "{} stretches", flow.3);
        }
    }
}

#[test]
fn a_word_waits_for_its_turn_on_a_line_without_being_looked_at() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        let mut spec = sending(target, 90, false);
        let late = words_each(&spec.acts[3][0], 20);
        spec.acts[3][0] = [vec![Act::Work(150), Act::Yield], late].concat();
        let (exact, before) = (sent(&spec, EngineKind::Exact), reached::count(Reached::Waiting));
        let flow = sent(&spec, EngineKind::Flow);
        assert_eq!((exact.0.len(), &exact.0), (5 * 90 + 20, &flow.0));
        assert!(exact.1.abs_diff(flow.1) <= 1, "{} and {} cycles", exact.1, flow.1);
        assert!(reached::count(Reached::Waiting) > before);
    }
}

/// Code that sends a word each time, instead of as many as it does.
fn words_each(acts: &[Act], times: u32) -> Vec<Act> {
    let sends = acts.iter().find(|act| matches!(act, Act::Vector(_))).cloned();
    let Some(Act::Vector(mut start)) = sends else { panic!("no operation") };
    (start.asynchronous, start.length) = (false, Some(1));
    (0..times).flat_map(|_| [Act::Vector(start.clone()), Act::Yield]).collect()
}

/// Operations of a word each: a PE is held up by its queue and its ramp as it is in `exact`, so that no
/// more words are under way than these have places for.
#[test]
fn short_operations_are_held_up_where_they_are_in_exact() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        let mut spec = sending(target, 1, false);
        spec.acts.iter_mut().for_each(|acts| acts[0] = words_each(&acts[0], 300));
        let (exact, flow) = (sent(&spec, EngineKind::Exact), sent(&spec, EngineKind::Flow));
        assert_eq!(exact.0, flow.0);
        assert!(10 * exact.1.abs_diff(flow.1) <= exact.1, "{} and {} cycles", exact.1, flow.1);
        assert_eq!(flow.2, 1800);
        let mut engine: Engine<Script> = spec.engine(EngineKind::Flow, 1, 0);
        engine.run(&[], &Limits { cycle: 600, ..Limits::default() });
        let under_way = engine.regions[0].gathers.words().count();
        // Queues, ramps and the way; six times as many if nobody were held up.
        assert!((6..=120).contains(&under_way), "{under_way} words");
    }
}

/// A word that moves switches closes the line: what operations have left goes through routers.
#[test]
fn a_line_that_is_closed_takes_no_more_stretches() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        let spec = sending(target, 200, true);
        let exact = sent(&spec, EngineKind::Exact);
        let flow = sent(&spec, EngineKind::Flow);
        assert_eq!(exact.0.len(), 1001);
        assert_eq!(exact.0, flow.0, "{target:?}");
        assert!(exact.1.abs_diff(flow.1) < 8, "{} and {} cycles", exact.1, flow.1);
        assert!((64..900).contains(&flow.2), "{} words by the line", flow.2);
    }
}

/// A run ends at a goal just before the limit: all cycles up to that are over then, and nothing is left for the next one.
#[test]
fn what_has_come_to_rest_rests_at_the_limit() {
    let spec = row(TargetId::Wse2, [0; WIDTH as usize], 3, false);
    let ends = |kind, limit| {
        let mut engine: Engine<Script> = spec.engine(kind, 1, 0);
        let limits = Limits { cycle: limit, ..Limits::default() };
        let first = engine.run(&[Goal::Words(LinkId(0), 18)], &limits);
        (first, engine.run(&[], &limits), engine.account())
    };
    let reached = cycle(&ends(EngineKind::Step, 9000).0);
    // A look at what is merged may be to come for so long in `exact`.
    for limit in reached + LATE..reached + 70 {
        let step = ends(EngineKind::Step, limit);
        assert_eq!(step, ends(EngineKind::Exact, limit), "{limit}");
        assert_eq!(step.1, RunEnd::Idle { cycle: reached }, "{limit}");
    }
}

/// What the host is told late ends a run for all PEs where it does in `step`, also for those that are ahead.
#[test]
fn cores_that_are_alone_stop_where_they_do_in_step() {
    for late in 0..130 {
        let mut spec = row(TargetId::Wse3, [late, 0, 500 + late, 1, 0, 300 + 2 * late], 3, false);
        // These go on for ever.
        for pe in [1, 4] {
            spec.acts[pe][0] = vec![Act::Work(3), Act::Flag(FlagOp::Activate, 9)];
        }
        let seen = |kind| {
            let mut engine: Engine<Script> = spec.engine(kind, 1, 0);
            let mut ends = Vec::new();
            for words in [1, 4, 5, 9, 12] {
                let limits = Limits { cycle: 3000, ..Limits::default() };
                ends.push(engine.run(&[Goal::Words(LinkId(0), words)], &limits));
            }
            (ends, engine.stats(), engine.events(), engine.received(LinkId(0)))
        };
        assert_eq!(seen(EngineKind::Step), seen(EngineKind::Exact), "{late}");
    }
}

/// A row whose PEs take words of a color that all of them get, after so many cycles.
fn fanned(target: TargetId, delays: [u32; WIDTH as usize], words: [u32; WIDTH as usize]) -> Spec {
    let mut spec = row(target, delays, 1, true);
    let color = Color::new(0).unwrap();
    for (pe, words) in words.into_iter().enumerate() {
        let last = pe + 1 == usize::from(WIDTH);
        let ColorConfig { route, .. } = dealt(last);
        let config = ColorConfig { route, ..ColorConfig::default() };
        spec.routers[pe].colors = vec![(color, config, Loc::default())];
        let moves = vector(Stream::Pointer { address: 0 }, input(2, 0), words);
        let delay = delays[pe];
        let moves = Act::Vector(Box::new(moves));
        spec.acts[pe][0] = vec![Act::Work(delay), Act::Yield, moves];
    }
    spec
}

#[test]
fn words_for_all_cores_come_as_they_do_through_routers() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for delays in
            [[0; 6], [0, 0, 400, 0, 0, 0], [300, 200, 100, 90, 500, 0], [9, 50, 2, 7, 3, 1]]
        {
            for words in [1, 7, 90] {
                let spec = fanned(target, delays, [words; 6]);
                let sent: Vec<Wavelet> = (0..words).map(Wavelet::data_word).collect();
                let exact = exactly(&spec, &sent);
                let flow = outcome(&spec, EngineKind::Flow, &sent);
                let (here, there) = (cycle(&exact.0), cycle(&flow.0));
                let place = format!("{target:?} {delays:?} {words}: {here} {there}");
                assert!(here.abs_diff(there) <= 4 + here / 50, "{place}");
                let told = |it: &Account| (it.entered, it.copies, it.taken);
                assert_eq!(told(&exact.1), told(&flow.1), "{place}");
                assert_eq!(exact.2, flow.2, "{place}");
                assert_eq!(flow.3, u64::from(words), "{place}");
            }
        }
    }
}

#[test]
fn words_for_all_that_one_core_does_not_take_hold_up_the_row_where_they_do_in_exact() {
    for target in [TargetId::Wse2, TargetId::Wse3] {
        for delays in [[0; 6], [0, 40, 0, 200, 0, 0]] {
            for takes in [[30, 30, 30, 3, 30, 30], [30, 2, 30, 9, 30, 1], [0; 6], [30; 6]] {
                let spec = fanned(target, delays, takes);
                let mut sent: Vec<Wavelet> = (0..30).map(Wavelet::data_word).collect();
                sent.push(hidden(Command::Nop));
                let exact = exactly(&spec, &sent);
                let flow = outcome(&spec, EngineKind::Flow, &sent);
                let place = format!("{target:?} {delays:?} {takes:?}");
                assert_eq!(exact.2, flow.2, "{place}");
                assert_eq!(exact.1.left, flow.1.left, "{place}");
                assert_eq!(exact.1.outside, flow.1.outside, "{place}");
                assert_eq!(
                    (exact.1.copies, exact.1.taken),
                    (flow.1.copies, flow.1.taken),
                    "{place}"
                );
            }
        }
    }
}
