//! `step` against `exact` on random machines: the same arrivals, task starts, issue slots,
//! counters and ends, for several sizes of regions and numbers of threads.

#![expect(
    clippy::disallowed_methods,
    reason = "the number of random machines can be raised by hand"
)]

use dflow_ir::mesh::{Port, Wavelet};

use super::generate::{Machine, Style, hosted, machine};
use super::script::{Act, Script};
use crate::account::Account;
use crate::config::{EngineKind, HOST_LATENCY, Limits};
use crate::exec::Stream;
use crate::machine::{Goal, LinkId};
use crate::outcome::{Deadlock, RunEnd};
use crate::sched::engine::Engine;
use crate::sched::exact::pace::Pace;
use crate::sched::reached::{self, Reached};
use crate::sched::record::Event;
use crate::stats::Stats;

/// Seeds per generator; set `DFLOW_SEEDS` for longer runs.
pub(super) fn seeds() -> u64 {
    std::env::var("DFLOW_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

/// First seed; `DFLOW_FIRST` starts elsewhere.
pub(super) fn first() -> u64 {
    std::env::var("DFLOW_FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[derive(Debug, PartialEq)]
struct Seen {
    ends: Vec<RunEnd>,
    events: Vec<Event>,
    stats: Stats,
    waiting: Deadlock,
    account: Account,
    received: Vec<(Vec<(u64, Wavelet)>, u64)>,
}

fn run(machine: &Machine, kind: EngineKind, threads: usize, region: u16, pace: Pace) -> Seen {
    let mut engine: Engine<Script> = machine.spec.engine(kind, threads, region);
    engine.pace = pace;
    for (link, cycle, words) in &machine.host {
        assert!(engine.send(LinkId(*link), *cycle, words.iter().copied()));
    }
    let limits = Limits { cycle: 2500, ..Limits::default() };
    let mut ends = Vec::new();
    if let Some(link) = machine.merged.map(LinkId) {
        // A host that sees nothing waits longer each time.
        for (words, later) in [(1, 1), (5, 2), (40, 3)] {
            ends.push(engine.run(&[Goal::Words(link, words)], &limits));
            let takes = (words == 5).then_some(9);
            assert!(engine.allow(link, engine.now + later * HOST_LATENCY, takes));
        }
    } else if let Some((link, _, words)) = machine.host.first() {
        let goals = [Goal::Words(LinkId(link + 1), words.len() as u64 / 2)];
        ends.push(engine.run(&goals, &limits));
        if machine.spec.rooms.get(*link as usize).copied().flatten().is_some() {
            engine.make_room(LinkId(link + 1), engine.now + 100, 1 + words.len() as u64 / 3);
            ends.push(engine.run(&[Goal::Words(LinkId(*link), words.len() as u64)], &limits));
        }
        let again = words.iter().copied();
        assert!(engine.send(LinkId(*link), engine.now + 100, again));
    }
    ends.push(engine.run(&[], &limits));
    let links = 0..machine.spec.links.len() as u32;
    let counts = |engine: &mut Engine<Script>, link| {
        (engine.received(LinkId(link)), engine.counted(LinkId(link)))
    };
    let received = links.map(|link| counts(&mut engine, link)).collect();
    let account = engine.account();
    // A trap ends the run in the middle of a cycle.
    let lost = ends.iter().any(|end| matches!(end, RunEnd::Trap(_)));
    assert!(lost || account.is_balanced(), "{account:?}");
    Seen {
        ends,
        account,
        events: engine.events(),
        stats: engine.stats(),
        waiting: engine.deadlock(),
        received,
    }
}

fn compare(style: Style) {
    for seed in first()..first() + seeds() {
        agree(seed, style);
    }
}

fn agree(seed: u64, style: Style) {
    agree_on(&machine(seed, style), seed);
}

fn agree_on(machine: &Machine, seed: u64) {
    let usual = Pace::default();
    let step = run(machine, EngineKind::Step, 1, 0, usual);
    for (threads, region, pace) in [
        (1, 0, usual),
        (1, 2, usual),
        (2, 2, usual),
        (2, 2, Pace::restless(25)),
        (4, 1, Pace::restless(100)),
        (3, 3, usual),
        (8, 1, Pace::restless(60)),
    ] {
        let exact = run(machine, EngineKind::Exact, threads, region, pace);
        let first = step.events.iter().zip(&exact.events).find(|(step, exact)| step != exact);
        assert_eq!(first, None, "seed {seed}, {threads} threads, regions of {region}");
        let on = format!("seed {seed}, {threads} threads, regions of {region}");
        assert_eq!(step.ends, exact.ends, "{on}");
        assert_eq!(step.stats, exact.stats, "{on}");
        assert_eq!(step.waiting, exact.waiting, "{on}");
        assert_eq!(step.account, exact.account, "{on}");
        assert_eq!(step.received, exact.received, "{on}");
        assert_eq!(step, exact, "{on}");
    }
}

#[test]
fn machines_of_short_transfers_agree() {
    compare(Style { words: 12, wild: 3, plain: false });
}

#[test]
fn machines_of_long_transfers_agree() {
    compare(Style { words: 200, wild: 0, plain: false });
}

#[test]
fn machines_that_talk_to_the_host_agree() {
    for seed in first()..first() + seeds() {
        agree_on(&hosted(seed), seed);
    }
    let reached =
        [Reached::Merged, Reached::Unmerged, Reached::MergeWaits, Reached::Flown, Reached::Landed];
    for what in reached {
        let count = reached::count(what);
        assert!(count > seeds() / 8, "{what:?}: {count} times");
    }
}

/// Likewise, of a machine in which something comes to a core that is ahead alone.
fn agree_behind(seed: u64) {
    let before = reached::count(Reached::Behind);
    agree(seed, Style { words: 12, wild: 3, plain: false });
    assert!(reached::count(Reached::Behind) > before, "seed {seed} is another machine now");
}

/// A control wavelet that nobody hears comes to a core that is ahead alone.
#[test]
fn a_core_ahead_drops_a_wavelet_in_its_cycle() {
    agree_behind(162);
}

/// A color enters teardown at a core that is ahead alone.
#[test]
fn a_core_ahead_knows_of_teardown_in_time() {
    agree_behind(3062);
}

/// A task looks at a register that changes before it begins, at a core that could be ahead alone.
#[test]
fn code_that_looks_at_registers_begins_in_its_cycle() {
    agree(481, Style { words: 12, wild: 3, plain: false });
}

/// Words that a color's one sender has sent, times the cores that it reaches.
fn expected(machine: &Machine, events: &[Event]) -> u64 {
    let reached = |of: u8| {
        let colors = machine.spec.routers.iter().flat_map(|router| &router.colors);
        let ends = colors.filter(|(color, config, _)| {
            color.index() == of && config.route.tx.contains(Port::Ramp)
        });
        ends.count() as u64
    };
    let mut words = 0;
    for event in events {
        let Event::Task { pe, task, .. } = *event else { continue };
        let func = machine.spec.programs[pe as usize].tasks[usize::from(task)].func;
        for act in &machine.spec.acts[pe as usize][func.as_u32() as usize] {
            if let Act::Vector(start) = act
                && let Stream::Output { color, .. } = start.dest
            {
                words += u64::from(start.length.unwrap_or(0)) * reached(color);
            }
        }
    }
    words
}

/// No word is lost or comes twice, and words of a color keep their order: in machines with one
/// sender per color every queue sees rising numbers, as many as were sent.
#[test]
fn words_keep_their_order() {
    let mut words = 0;
    for seed in 0..seeds() {
        let machine = machine(seed, Style { words: 60, wild: 0, plain: true });
        let seen = run(&machine, EngineKind::Exact, 2, 2, Pace::default());
        let mut last: Option<(u32, u8, u32)> = None;
        let mut arrived = 0;
        for event in &seen.events {
            let Event::Arrival { pe, queue, payload, .. } = *event else { continue };
            arrived += 1;
            if let Some((old_pe, old_queue, old)) = last
                && (old_pe, old_queue) == (pe, queue)
            {
                assert!(payload.wrapping_sub(old) < 1 << 16, "seed {seed}");
            }
            last = Some((pe, queue, payload));
        }
        let quiet = matches!(seen.ends.last(), Some(RunEnd::Idle { .. }));
        assert!(quiet && seen.waiting.stuck.is_empty(), "seed {seed}: {:?}", seen.waiting);
        assert_eq!(arrived, expected(&machine, &seen.events), "seed {seed}");
        words += arrived;
    }
    assert!(words > 10 * seeds(), "only {words} words moved");
}

/// The machines are worth comparing.
#[test]
fn the_generators_move_words() {
    let (mut short, mut long) = (Stats::default(), Stats::default());
    for seed in 0..50 {
        let of = |words, wild| {
            let style = Style { words, wild, plain: false };
            run(&machine(seed, style), EngineKind::Exact, 1, 0, Pace::default()).stats
        };
        short.add(&of(12, 3));
        long.add(&of(200, 0));
    }
    assert!(short.delivered > 50 * 20 && short.tasks > 50 * 20, "{short:?}");
    assert!(long.delivered > 50 * 100, "{long:?}");
    assert!(short.filtered > 50 && long.filtered > 50, "{short:?} {long:?}");
}

/// They reach every shortcut of the engine, and every way out of one but that of a channel that
/// gives its links up and that of words whose task is blocked, which `timing` has, and those of steady
/// cores, of those that take turns and of rounds: `steady` and `exchange` have them, and `hears` those of words that
/// start tasks.
#[test]
fn the_generators_reach_the_shortcuts() {
    for seed in 0..100 {
        for style in [
            Style { words: 12, wild: 3, plain: false },
            Style { words: 200, wild: 0, plain: false },
            Style { words: 60, wild: 0, plain: true },
        ] {
            run(&machine(seed, style), EngineKind::Exact, 1, 0, Pace::default());
        }
        run(&hosted(seed), EngineKind::Exact, 1, 0, Pace::default());
    }
    let steady =
        [Reached::Steady, Reached::Joined, Reached::Fed, Reached::Drained, Reached::Disturbed];
    let turns = [Reached::Turns, Reached::Skipped, Reached::Held];
    let heard = [Reached::Heard, Reached::HeardAlike, Reached::HeardOther];
    let others = |what: &Reached| {
        let at_hosts = [
            Reached::Onward,
            Reached::Before,
            Reached::Waiting,
            Reached::Packet,
            Reached::ToldAhead,
        ];
        let elsewhere = [Reached::GivenUp, Reached::Closed];
        !elsewhere.contains(what)
            && !at_hosts.contains(what)
            && !heard.contains(what)
            && !steady.contains(what)
            && !turns.contains(what)
            && !reached::OF_ROUNDS.contains(what)
            && !reached::OF_FLOW.contains(what)
    };
    let all = reached::ALL.into_iter().filter(others);
    let rare = all.filter(|&what| reached::count(what) < 5);
    assert_eq!(rare.map(|what| (what, reached::count(what))).collect::<Vec<_>>(), []);
}

/// What is the same in the engine that approximates cycles: no word is lost or comes twice, a run
/// repeats itself, and machines with one sender per color come to the same end.
#[test]
fn flow_keeps_the_words_and_the_end() {
    let mut sums = [0; 3];
    for seed in first()..first() + seeds() {
        for style in [
            Style { words: 12, wild: 3, plain: false },
            Style { words: 200, wild: 0, plain: false },
            Style { words: 60, wild: 0, plain: true },
        ] {
            let mut machine = machine(seed, style);
            machine.spec.slow = seed % 3 == 0;
            // With more there are few pipes.
            machine.spec.spare = (seed % 5 / 3) as u32;
            let flow = run(&machine, EngineKind::Flow, 1, 0, Pace::default());
            let parts = run(&machine, EngineKind::Flow, 1, 2, Pace::default());
            for (threads, pace) in [(2, Pace::restless(25)), (3, Pace::default())] {
                let on = format!("seed {seed}, {threads} threads");
                assert_eq!(parts, run(&machine, EngineKind::Flow, threads, 2, pace), "{on}");
            }
            if !style.plain {
                continue;
            }
            let exact = run(&machine, EngineKind::Exact, 1, 0, Pace::default());
            let counts = |seen: &Seen| {
                let Stats { delivered, hops, copies, slots, tasks, sent, .. } = seen.stats;
                (delivered, hops, copies, slots, tasks, sent)
            };
            assert_eq!(counts(&flow), counts(&exact), "seed {seed}");
            assert_eq!(counts(&parts), counts(&exact), "seed {seed}, in regions");
            let cycle = |seen: &Seen| match seen.ends.last() {
                Some(RunEnd::Idle { cycle }) => *cycle,
                end => panic!("seed {seed}: {end:?}"),
            };
            let cycles = [cycle(&exact), cycle(&flow), cycle(&parts)];
            sums.iter_mut().zip(cycles).for_each(|(sum, cycles)| *sum += cycles);
        }
    }
    for &what in reached::OF_FLOW {
        // A taker that stops for good is rare.
        let least = if what == Reached::MulticastSettled { 3 } else { 20 };
        assert!(reached::count(what) > least, "{what:?}: {} times", reached::count(what));
    }
    let [exact, flow, parts] = sums;
    assert!(flow.abs_diff(exact) * 50 < exact, "{exact} cycles, {flow} in flow");
    assert!(parts.abs_diff(exact) * 50 < exact, "{exact} cycles, {parts} in flow in regions");
}
