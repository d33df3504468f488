//! Where `flow` comes to other data than `exact`, it says so.

use dflow_ir::mesh::Wavelet;

use super::generate::{Machine, Style, machine};
use super::random::{first, seeds};
use super::script::Script;
use crate::account::Account;
use crate::config::{EngineKind, Limits};
use crate::machine::LinkId;
use crate::order::OrderPlace;
use crate::outcome::{RunEnd, Wait};
use crate::sched::engine::Engine;

/// What a run comes to, but for its cycles.
#[derive(Debug, PartialEq)]
struct Data {
    tasks: u64,
    sent: u64,
    delivered: u64,
    received: Vec<Vec<Wavelet>>,
    left: Account,
}

fn run(machine: &Machine, kind: EngineKind, threads: usize) -> Option<(Data, Vec<OrderPlace>)> {
    let mut engine: Engine<Script> = machine.spec.engine(kind, threads, 2);
    for (link, cycle, words) in &machine.host {
        assert!(engine.send(LinkId(*link), *cycle, words.iter().copied()));
    }
    match engine.run(&[], &Limits { cycle: 20_000, ..Limits::default() }) {
        RunEnd::Idle { .. } => {}
        _ => return None,
    }
    let words = |link| engine.received(LinkId(link)).into_iter().map(|(_, word)| word).collect();
    let received = (0..machine.spec.links.len() as u32).map(words).collect();
    let (stats, mut left) = (engine.stats(), Account { cycle: 0, ..engine.account() });
    left.remarks.iter_mut().for_each(|remark| remark.cycle = 0);
    for waiter in &mut left.waiters {
        if let Wait::Receive { last, .. } = &mut waiter.wait {
            *last = None;
        }
    }
    let data =
        Data { tasks: stats.tasks, sent: stats.sent, delivered: stats.delivered, received, left };
    Some((data, engine.orders()))
}

#[test]
fn data_of_random_machines_differ_only_where_times_decide() {
    let (mut differ, mut without) = (0_u64, 0_u64);
    for seed in first()..first() + seeds() {
        for plain in [false, true] {
            let mut machine = machine(seed, Style { words: 30, wild: 0, plain });
            // What an operation reads, no other writes.
            machine.spec.apart = true;
            let Some((exact, none)) = run(&machine, EngineKind::Exact, 1) else { continue };
            assert_eq!(none, []);
            let Some((flow, orders)) = run(&machine, EngineKind::Flow, 1) else { continue };
            assert_eq!(run(&machine, EngineKind::Flow, 3), run(&machine, EngineKind::Flow, 1));
            without += u64::from(orders.is_empty());
            differ += u64::from(exact != flow);
            if orders.is_empty() {
                assert_eq!(exact, flow, "seed {seed}, {plain}");
            }
        }
    }
    assert!(
        differ * 500 > seeds() && without * 4 > seeds(),
        "{differ} differ, {without} without places"
    );
}
