//! Faults of our own: a run ends for all threads, says what happened, and is not resumed.

use dflow_ir::inst::FlagOp;
use dflow_ir::target::TargetId;

use super::script::{Act, Spec};
use crate::config::{EngineKind, Limits};
use crate::outcome::RunEnd;

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
    ];
    for bad in [0, 20, 35] {
        for (engine, threads, region) in configs {
            let mut engine = spec(bad).engine(engine, threads, region);
            for _ in 0..2 {
                let end = engine.run(&[], &Limits::default());
                assert_eq!(end, RunEnd::Broken("a test panics here".into()));
            }
        }
    }
}
