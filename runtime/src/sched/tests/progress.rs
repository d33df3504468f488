//! What is told while a run goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use dflow_ir::inst::FlagOp;
use dflow_ir::target::TargetId;

use super::script::{Act, Spec};
use crate::config::{EngineKind, Limit, Limits, Progress, Pulse};
use crate::outcome::RunEnd;
use crate::sched::reached::{self, Reached};

/// PEs of which each uses about all of its slots, by such acts.
fn busy(acts: &[Act]) -> Spec {
    let mut spec = Spec::new(TargetId::Wse2, 6, 6);
    spec.records = false;
    (0..36).for_each(|pe| spec.begins(pe, acts.to_vec()));
    spec
}

/// The slots per cycle that are told last, after a while.
fn told(spec: &Spec, kind: EngineKind) -> f64 {
    let last = Arc::new(Mutex::new((0, Pulse::default())));
    let (note, flag) = (Arc::clone(&last), Arc::new(AtomicBool::new(false)));
    let interrupt = Some(Arc::clone(&flag));
    let progress = Progress(Arc::new(move |pulse| {
        let mut last = note.lock().unwrap();
        *last = (last.0 + 1, *pulse);
        flag.store(last.0 == 2, Ordering::Relaxed);
    }));
    let mut engine = spec.engine(kind, 1, 0);
    let end = engine.run(&[], &Limits { interrupt, progress: Some(progress), ..Limits::default() });
    assert_eq!(end, RunEnd::Limit(Limit::Interrupted));
    let (_, pulse) = *last.lock().unwrap();
    pulse.slots as f64 / pulse.cycle as f64
}

#[test]
fn all_cores_that_compute_are_told_to() {
    let again = busy(&[Act::Work(500), Act::Flag(FlagOp::Activate, 9)]);
    let rounds = busy(&[Act::Work(500), Act::Join { of: 1, times: u32::MAX, id: 9 }]);
    for engine in [EngineKind::Step, EngineKind::Exact, EngineKind::Flow] {
        for spec in [&again, &rounds] {
            let busy = told(spec, engine);
            assert!((30.0..40.0).contains(&busy), "{engine:?}: {busy}");
        }
    }
    assert!(reached::count(Reached::Round) > 0);
}
