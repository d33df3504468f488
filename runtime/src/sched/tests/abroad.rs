//! Pipes from one region into another, in the `flow` engine.

use dflow_ir::loc::Loc;
use dflow_ir::mesh::{Color, ColorConfig, Port, PortSet, Route};
use dflow_ir::program::QueueBinding;
use dflow_ir::target::TargetId;

use super::script::{Act, Script, Spec, input, output, vector};
use crate::config::{EngineKind, Limits};
use crate::exec::Stream;
use crate::outcome::RunEnd;
use crate::sched::engine::Engine;

/// The way of a color through the PEs of a mesh of this width: each with the port by which words leave it.
pub(super) fn way(spec: &mut Spec, color: u8, pes: &[(usize, Port)]) {
    let id = Color::new(color).unwrap();
    let mut rx = Port::Ramp;
    for &(pe, tx) in pes {
        let route = Route { rx: PortSet::one(rx), tx: PortSet::one(tx) };
        let config = ColorConfig { route, ..ColorConfig::default() };
        spec.routers[pe].colors.push((id, config, Loc::default()));
        rx = tx.opposite();
    }
}

/// The first PE of a way sends words by it, of which the last one takes some, so many by an operation each.
fn exchange(spec: &mut Spec, color: u8, pes: &[(usize, Port)], (sent, taken): (u32, &[u32])) {
    way(spec, color, pes);
    let (first, last) = (pes[0].0, pes[pes.len() - 1].0);
    for (pe, is_input) in [(first, false), (last, true)] {
        let id = Color::new(color).unwrap();
        spec.programs[pe].queues.push(QueueBinding::new(is_input, color, id, Loc::default()));
    }
    let send = vector(output(color, color), Stream::Scalar(7), sent);
    let take = |&count| vector(Stream::Pointer { address: 0 }, input(color, color), count);
    spec.begins(first, vec![Act::Vector(Box::new(send))]);
    spec.begins(last, taken.iter().map(|count| Act::Vector(Box::new(take(count)))).collect());
}

pub(super) fn ended(engine: &mut Engine<Script>) -> RunEnd {
    engine.run(&[], &Limits { cycle: 4000, ..Limits::default() })
}

pub(super) fn cycle(end: &RunEnd) -> u64 {
    match end {
        RunEnd::Idle { cycle } => *cycle,
        other => panic!("{other:?}"),
    }
}

/// Down a column; and a way that leaves a region of two rows and comes back.
fn specs((sent, taken): (u32, u32)) -> [Spec; 2] {
    let counts = (sent, &[taken][..]);
    let mut down = Spec::new(TargetId::Wse2, 1, 6);
    let south: Vec<(usize, Port)> = (0..5).map(|pe| (pe, Port::South)).collect();
    exchange(&mut down, 3, &[&south[..], &[(5, Port::Ramp)]].concat(), counts);
    let mut back = Spec::new(TargetId::Wse2, 2, 4);
    let round = [(2, Port::South), (4, Port::East), (5, Port::North), (3, Port::Ramp)];
    exchange(&mut back, 3, &round, counts);
    [down, back]
}

#[test]
fn words_that_nobody_takes_stand_over_borders_where_they_do_in_exact() {
    for counts in [(60, 5), (9, 5), (60, 59), (60, 60), (3, 0)] {
        for (which, spec) in specs(counts).iter().enumerate() {
            let mut exact = spec.engine(EngineKind::Exact, 1, 0);
            let expected = cycle(&ended(&mut exact));
            for region in [0, 1, 2, 3] {
                let place = format!("{which} {counts:?} {region}");
                let mut flow = spec.engine(EngineKind::Flow, 1, region);
                let found = cycle(&ended(&mut flow));
                assert!(found.abs_diff(expected) <= 12, "{place}: {found} {expected}");
                assert_eq!(flow.account().left, exact.account().left, "{place}");
                assert_eq!(flow.stats().hops, exact.stats().hops, "{place}");
                assert_eq!(ended(&mut flow), RunEnd::Idle { cycle: found }, "{place}");
                for region in &flow.regions {
                    let mut unused = region.unused.clone();
                    unused.sort_unstable();
                    unused.dedup();
                    assert_eq!(
                        unused.len(),
                        region.unused.len(),
                        "{place}: a number is free twice"
                    );
                }
            }
        }
    }
}

/// In a row that is wide enough for two bands each PE sends to the next one.
#[test]
fn a_row_in_bands_takes_the_same_cycles_for_any_number_of_threads() {
    let width = 70;
    let mut spec = Spec::new(TargetId::Wse3, width, 1);
    for pe in 0..usize::from(width) - 1 {
        let color = 2 + (pe % 2) as u8;
        way(&mut spec, color, &[(pe, Port::East), (pe + 1, Port::Ramp)]);
        for (pe, is_input) in [(pe, false), (pe + 1, true)] {
            let id = Color::new(color).unwrap();
            spec.programs[pe].queues.push(QueueBinding::new(is_input, color, id, Loc::default()));
        }
    }
    for pe in 0..usize::from(width) {
        let (even, odd) = (2 + (pe % 2) as u8, 3 - (pe % 2) as u8);
        let take = vector(Stream::Pointer { address: 0 }, input(odd, odd), 40);
        let send = vector(output(even, even), Stream::Scalar(pe as u32), 40);
        let take = (pe != 0).then(|| Act::Vector(Box::new(take)));
        let send = (pe + 1 != usize::from(width)).then(|| Act::Vector(Box::new(send)));
        spec.begins(pe, take.into_iter().chain(send).collect());
    }
    let outcome = |kind, threads| {
        let mut engine = spec.engine(kind, threads, 0);
        let end = cycle(&ended(&mut engine));
        (end, engine.stats(), engine.regions.len())
    };
    let one = outcome(EngineKind::Flow, 1);
    assert_eq!(one.2, 2);
    for threads in [2, 3, 8] {
        assert_eq!(one, outcome(EngineKind::Flow, threads), "{threads} threads");
    }
    let exact = outcome(EngineKind::Exact, 1);
    assert!(exact.0.abs_diff(one.0) * 50 < exact.0, "{} and {}", exact.0, one.0);
    assert_eq!(exact.1.hops, one.1.hops);
}

/// A sender that finds no places has some from a taker behind a border, which takes few words at a time, before
/// that one is through with what is there.
#[test]
fn places_beyond_a_border_come_back_in_time() {
    for (target, hops) in [(TargetId::Wse2, 1), (TargetId::Wse2, 2), (TargetId::Wse3, 1)] {
        let mut spec = Spec::new(target, 1, hops + 1);
        let south: Vec<(usize, Port)> = (0..hops).map(|pe| (pe.into(), Port::South)).collect();
        exchange(
            &mut spec,
            3,
            &[&south[..], &[(hops.into(), Port::Ramp)]].concat(),
            (200, &[2; 100]),
        );
        let cycles = |engine, region| cycle(&ended(&mut spec.engine(engine, 1, region)));
        let (exact, within) = (cycles(EngineKind::Exact, 0), cycles(EngineKind::Flow, 0));
        assert_eq!((within, cycles(EngineKind::Flow, 1)), (exact, exact), "{target:?} {hops}");
    }
}
