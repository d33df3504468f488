//! Faults of our own: a run ends for all threads, says what happened, and is not resumed.

use dflow_ir::inst::FlagOp;
use dflow_ir::target::TargetId;

use super::script::{Act, Spec};
use crate::config::{EngineKind, Limits};
use crate::outcome::RunEnd;
use crate::sched::reached::{self, Reached};

/// PEs that work without end, and one in another band of regions that panics.
fn spec(bad: usize) -> Spec {
    let mut spec = Spec::new(TargetId::Wse2, 6, 6);
    for pe in 0..36 {
        let mut acts: Vec<Act> =
            std::iter::repeat_n([Act::Work(50), Act::Yield], 40).flatten().collect();
        if pe == bad {
            acts.push(Act::Panic);
        }
        let again = Act::Flag(FlagOp::Activate, 9);
        acts.push(again);
        spec.begins(pe, acts);
    }
    spec
}

#[test]
fn a_panic_ends_the_run_for_all_threads() {
    let configs = [
        (EngineKind::Step, 1, 0),
        (EngineKind::Exact, 1, 2),
        (EngineKind::Exact, 3, 2),
        (EngineKind::Exact, 8, 1),
        (EngineKind::Flow, 1, 2),
        (EngineKind::Flow, 2, 2),
        (EngineKind::Flow, 8, 1),
    ];
    for bad in [0, 20, 35] {
        for (engine, threads, region) in configs {
            breaks(&spec(bad), (engine, threads, region));
        }
    }
}

/// A run fails, and the next one says so at once.
fn breaks(spec: &Spec, (engine, threads, region): (EngineKind, usize, u16)) {
    let mut engine = spec.engine(engine, threads, region);
    for _ in 0..2 {
        let end = engine.run(&[], &Limits::default());
        assert_eq!(end, RunEnd::Broken("a test panics here".into()));
    }
}

/// Likewise while a machine is in rounds, which other threads are in, too.
#[test]
fn a_panic_in_rounds_ends_the_run_for_all_threads() {
    for bad in [0, 20, 35] {
        let mut spec = Spec::new(TargetId::Wse2, 6, 6);
        spec.records = false;
        for pe in 0..36 {
            let mut acts = vec![Act::Work(50)];
            if pe == bad {
                acts.push(Act::Since { round: 500, act: Box::new(Act::Panic) });
            }
            acts.push(Act::Join { of: 1, times: 1000, id: 9 });
            spec.begins(pe, acts);
        }
        for engine in [EngineKind::Exact, EngineKind::Flow] {
            let before = reached::count(Reached::Round);
            breaks(&spec, (engine, 1, 2));
            let rounds = reached::count(Reached::Round) - before;
            // In `flow` cores that wait for nobody run ahead instead.
            assert!(rounds > 100 || engine == EngineKind::Flow, "{rounds}");
            breaks(&spec, (engine, 2, 2));
        }
    }
}
