//! Limits that end a run in the middle of a cycle.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dflow_ir::target::TargetId;

use super::generate::{Style, hosted, machine};
use super::random::seeds;
use super::script::{Act, Spec};
use crate::config::{EngineKind, Limit, Limits, Probe};
use crate::machine::LinkId;
use crate::outcome::RunEnd;

const ENGINES: [(EngineKind, usize, u16); 5] = [
    (EngineKind::Step, 1, 0),
    (EngineKind::Exact, 1, 0),
    (EngineKind::Exact, 3, 2),
    (EngineKind::Flow, 1, 2),
    (EngineKind::Flow, 3, 2),
];

/// The computer's memory is used up when it is looked at for the `asks`th time.
fn used_up_at(asks: usize) -> Limits {
    let asked = AtomicUsize::new(0);
    let probe = move || asked.fetch_add(1, Ordering::Relaxed) + 1 >= asks;
    Limits { exhausted: Some(Probe(Arc::new(probe))), cycle: 2500, ..Limits::default() }
}

/// Each PE may be the one too many; whoever looks only between cycles lets all of them begin.
#[test]
fn a_cycle_in_which_all_begin_is_not_run_to_its_end() {
    let mut spec = Spec::new(TargetId::Wse2, 40, 40);
    (0..1600).for_each(|pe| spec.begins(pe, vec![Act::Work(7)]));
    let sides = ENGINES.map(|(kind, threads, side)| (kind, threads, 10 * side));
    // Regions that are too small to be looked at for themselves.
    let small = [(EngineKind::Exact, 1, 3), (EngineKind::Exact, 3, 3), (EngineKind::Flow, 1, 3)];
    for (kind, threads, side) in sides.into_iter().chain(small) {
        let begun = (2..2000).find_map(|asks| {
            let mut engine = spec.engine(kind, threads, side);
            assert_eq!(engine.run(&[], &used_up_at(asks)), RunEnd::Limit(Limit::Memory));
            // What is left of the cycle is not made up for.
            assert_eq!(engine.run(&[], &Limits::default()), RunEnd::Limit(Limit::Memory));
            Some(engine.stats().slots).filter(|slots| *slots > 0)
        });
        assert!(begun.is_some_and(|slots| slots < 7 * 400), "{kind:?}, {threads}: {begun:?}");
    }
}

/// Whatever was left undone: no word is lost for the report.
#[test]
fn what_was_left_in_the_middle_of_a_cycle_can_be_told_of() {
    let style = Style { words: 100, wild: 0, plain: false };
    let mut ended = 0;
    for seed in 0..seeds() {
        let machine = if seed % 2 == 0 { machine(seed, style) } else { hosted(seed) };
        for (kind, threads, region) in ENGINES {
            let mut engine = machine.spec.engine(kind, threads, region);
            for (link, cycle, words) in &machine.host {
                assert!(engine.send(LinkId(*link), *cycle, words.iter().copied()));
            }
            let end = engine.run(&[], &used_up_at(2 + (seed * 7 % 90) as usize));
            ended += usize::from(end == RunEnd::Limit(Limit::Memory));
            let account = engine.account();
            let lost = matches!(end, RunEnd::Trap(_));
            assert!(lost || account.is_balanced(), "seed {seed}, {kind:?}, {threads}: {account:?}");
            assert_eq!(engine.doing().cycle, engine.now);
        }
    }
    assert!(ended > seeds() as usize, "{ended}");
}

/// PEs that the host will use are told of only where they were refused, not where memory ended for another reason.
#[test]
fn what_is_foreseen_is_told_where_it_is_refused() {
    let mut spec = Spec::new(TargetId::Wse2, 4, 2);
    (0..8).for_each(|pe| spec.begins(pe, vec![Act::Work(7)]));
    // More PEs than have state: the host's, twice.
    let foreseen = |most| {
        let mut engine = spec.engine(EngineKind::Exact, 1, 0);
        assert!((0..3).all(|call| engine.foresee_row(call % 2, u64::MAX)));
        assert_eq!(engine.foresee_row(1, most), most > 1);
        engine
    };
    assert_eq!(foreseen(1).doing().touched, 16);
    let mut engine = foreseen(u64::MAX);
    assert_eq!(engine.run(&[], &used_up_at(1)), RunEnd::Limit(Limit::Memory));
    let doing = engine.doing();
    assert_eq!((doing.touched, doing.bytes), (engine.stats().touched, engine.bytes()));
    assert_eq!(doing.touched, 8);
}
