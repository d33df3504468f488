//! Copies, launches and streams.

use dflow_ir::mesh::{Port, Rect};
use dflow_ir::ty::Ty;
use proptest::prelude::*;

use super::model::{Echo, FUNCTION, LONGS, SAY, STREAM_IN, STREAM_OUT, WORDS};
use super::{color, rect, session};
use crate::config::HOST_LATENCY;
use crate::host::{Failure, HostError, Request};

fn refused<T: std::fmt::Debug>(result: Result<T, Failure>) -> HostError {
    match result {
        Err(Failure::Host { error, .. }) => error,
        other => panic!("not refused: {other:?}"),
    }
}

/// Regions of a mesh of 5 x 4 PEs.
fn regions() -> impl Strategy<Value = Rect> {
    (0..5u16, 0..4u16)
        .prop_flat_map(|(x, y)| (Just(x), Just(y), 1..=5 - x, 1..=4 - y))
        .prop_map(|(x, y, width, height)| rect(x, y, width, height))
}

proptest! {
    #[test]
    fn what_is_copied_in_is_copied_out(region in regions(), count in 0..6usize, wide: bool) {
        let mut host = session(5, 4, Echo::Silent);
        let (export, ty, size) = if wide { (LONGS, Ty::F32, 4) } else { (WORDS, Ty::I16, 2) };
        let data: Vec<u8> = (0..region.area() * count * size).map(|i| (i * 7 + 1) as u8).collect();
        host.copy_in(export, region, ty, &data).unwrap();
        let back = host.copy_out(export, region, ty, count as u64).unwrap();
        prop_assert_eq!(&back, &data);
        for at in rect(0, 0, 5, 4).coords().filter(|&at| !region.contains(at)) {
            let pe = &host.mesh().pes[usize::from(at.y)][usize::from(at.x)];
            prop_assert!(pe.memory[export as usize].is_empty());
        }
        // A region inside the region, after another copy.
        host.copy_in(export, region, ty, &data).unwrap();
        let corner = Rect { width: 1, height: 1, ..region };
        let back = host.copy_out(export, corner, ty, count as u64).unwrap();
        prop_assert_eq!(&back[..], &data[..count * size]);
    }
}

#[test]
fn a_launch_reaches_every_pe_and_waits_for_all() {
    let mut host = session(3, 2, Echo::Silent);
    host.launch(FUNCTION, &[0xfffe, 0x3f80_0000]).unwrap();
    for pe in host.mesh().pes.iter().flatten() {
        assert_eq!(pe.launches, [(FUNCTION, vec![0xfffe, 0x3f80_0000])]);
    }
    assert_eq!(host.cycles(), 10 + 6);
}

#[test]
fn a_bool_is_0_or_1() {
    let mut host = session(1, 1, Echo::Silent);
    host.launch(SAY, &[255, 1]).unwrap();
    host.launch(SAY, &[0, 0]).unwrap();
    let wrong = |value| HostError::Bool { name: "say".into(), number: 2, value };
    assert_eq!(refused(host.launch(SAY, &[1, 2])), wrong(2));
    let args = vec![1, 256];
    assert_eq!(refused(host.submit(Request::Launch { export: SAY, args })), wrong(256));
    assert_eq!(host.mesh().pes[0][0].launches, [(SAY, vec![255, 1]), (SAY, vec![0, 0])]);
}

#[test]
fn an_argument_has_the_bits_of_its_type() {
    let mut host = session(1, 1, Echo::Silent);
    let mut message = |export, args: &[u64]| refused(host.launch(export, args)).to_string();
    let short = "argument 1 of `say` is of type u8: 256 has more than 8 bits";
    assert_eq!(message(SAY, &[256, 1]), short);
    let word = "argument 1 of `go` is of type u16: 70000 has more than 16 bits";
    assert_eq!(message(FUNCTION, &[70_000, 0]), word);
    // What is cut off on its way to the word would be lost in silence.
    let long = "argument 2 of `go` is of type f32: 4294967296 has more than 32 bits";
    assert_eq!(message(FUNCTION, &[0, 1 << 32]), long);
    let args = vec![u64::MAX, 0];
    let error = refused(host.submit(Request::Launch { export: FUNCTION, args }));
    let minus = HostError::Range {
        name: "go".into(),
        number: 1,
        ty: "u16".into(),
        bits: 16,
        value: u64::MAX,
    };
    assert_eq!(error, minus);
    assert!(host.mesh().sent_at.is_empty());
    host.launch(FUNCTION, &[0xffff, 0xffff_ffff]).unwrap();
    host.launch(SAY, &[255, 0]).unwrap();
}

#[test]
fn what_follows_something_seen_takes_effect_a_latency_later() {
    let mut host = session(1, 1, Echo::Silent);
    host.launch(FUNCTION, &[0, 0]).unwrap();
    let seen = host.cycles();
    host.copy_in(WORDS, rect(0, 0, 1, 1), Ty::I16, &[1, 0]).unwrap();
    assert_eq!(host.mesh().sent_at, [0, 0, seen + HOST_LATENCY, seen + HOST_LATENCY]);
}

#[test]
fn the_end_waits_for_what_was_sent() {
    let mut host = session(2, 1, Echo::Silent);
    host.copy_in(WORDS, rect(1, 0, 1, 1), Ty::I16, &[5, 0]).unwrap();
    host.finish().unwrap();
    assert_eq!(host.mesh().pes[0][1].memory[WORDS as usize], [5, 0]);
}

#[test]
fn streams_come_back_in_order() {
    let mut host = session(3, 2, Echo::LastColumn);
    let last = rect(2, 0, 1, 2);
    let data: Vec<u8> = [1u32, 2, 3, 4].iter().flat_map(|word| word.to_le_bytes()).collect();
    host.stream_in(color(STREAM_IN), last, Ty::I32, &data).unwrap();
    let first = host.stream_out(color(STREAM_OUT), last, Ty::I32, 2).unwrap();
    let second = host.stream_out(color(STREAM_OUT), last, Ty::I16, 2).unwrap();
    let done = host.wait().unwrap();
    assert_eq!(done.iter().map(|done| done.id).collect::<Vec<_>>(), [first, second]);
    assert_eq!(done[0].rows, [[2, 0, 0, 0], [4, 0, 0, 0]]);
    assert_eq!(done[1].rows, [[3, 0], [5, 0]]);
    assert_eq!(host.wait().unwrap(), []);
}

#[test]
fn marks_end_rows() {
    let mut host = session(2, 2, Echo::Marked);
    let all = rect(0, 0, 2, 2);
    let data: Vec<u8> = (0..8u16).flat_map(u16::to_le_bytes).collect();
    host.stream_in(color(STREAM_IN), all, Ty::I16, &data).unwrap();
    host.stream_out_rows(color(STREAM_OUT), all, Ty::I16, 9).unwrap();
    let done = host.wait().unwrap();
    assert_eq!(done[0].rows, [[1, 0, 2, 0, 3, 0, 4, 0], [5, 0, 6, 0, 7, 0, 8, 0]]);
}

/// Without switches that deal, a row's words go in as they are.
#[test]
fn a_stream_of_its_own_gets_its_rows_in_order() {
    let mut image = super::image(2, 2);
    let config = &mut image.placement.routers[0].colors[0].1;
    config.switch = None;
    config.route.tx = config.route.tx.with(Port::East);
    let mesh = super::Model::new(2, 2, Echo::Marked);
    let mut host = super::Session::new(mesh, &image, crate::config::Limits::default());
    let data: Vec<u8> = (0..6u16).flat_map(u16::to_le_bytes).collect();
    host.stream_in(color(STREAM_IN), rect(1, 0, 1, 2), Ty::I16, &data).unwrap();
    host.stream_out_rows(color(STREAM_OUT), rect(1, 0, 1, 2), Ty::I16, 3).unwrap();
    let done = host.wait().unwrap();
    assert_eq!(done[0].rows, [[1, 0, 2, 0, 3, 0], [4, 0, 5, 0, 6, 0]]);
}

#[test]
fn waiting_for_words_that_nobody_sends_is_a_deadlock() {
    let mut host = session(1, 1, Echo::Silent);
    host.stream_out(color(STREAM_OUT), rect(0, 0, 1, 1), Ty::I32, 1).unwrap();
    assert!(matches!(host.wait(), Err(Failure::Deadlock(_))));
}

#[test]
fn a_row_that_is_too_long_is_an_error() {
    let mut host = session(1, 1, Echo::Marked);
    let one = rect(0, 0, 1, 1);
    host.stream_in(color(STREAM_IN), one, Ty::I32, &[0; 8]).unwrap();
    host.stream_out_rows(color(STREAM_OUT), one, Ty::I32, 1).unwrap();
    let error = refused(host.wait());
    assert_eq!(error, HostError::RowTooLong { color: color(STREAM_OUT), row: 0, capacity: 1 });
}

#[test]
fn requests_are_checked_before_anything_is_sent() {
    let mut host = session(3, 2, Echo::Silent);
    let all = rect(0, 0, 3, 2);
    let messages = [
        refused(host.symbols().find("wrods").map_err(Failure::from)),
        refused(host.copy_in(FUNCTION, all, Ty::I16, &[0; 12])),
        refused(host.copy_in(WORDS, all, Ty::F16, &[0; 12])),
        refused(host.copy_in(WORDS, all, Ty::I16, &[0; 14])),
        refused(host.copy_in(WORDS, rect(2, 0, 2, 1), Ty::I16, &[0; 4])),
        refused(host.copy_in(WORDS, rect(0, 0, 1, 1), Ty::I16, &[0; 70_000])),
        refused(host.copy_in(3, all, Ty::I32, &[0; 24])),
        refused(host.copy_in(4, all, Ty::I32, &[0; 24])),
        refused(host.copy_in(5, all, Ty::I8, &[0; 6])),
        refused(host.copy_in(99, all, Ty::I8, &[0; 6])),
        refused(host.copy_out(WORDS, all, Ty::I16, u64::MAX)),
        refused(host.launch(FUNCTION, &[1])),
        refused(host.launch(WORDS, &[])),
        refused(host.stream_in(color(STREAM_OUT), all, Ty::I32, &[0; 24])),
        refused(host.stream_out(color(STREAM_IN), all, Ty::I32, 6)),
        refused(host.stream_out(color(STREAM_OUT), all, Ty::I32, 6)),
        refused(host.stream_out(color(STREAM_OUT), rect(0, 0, 1, 2), Ty::I32, 5)),
    ];
    let text: Vec<String> = messages.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(text.join("\n"));
    assert!(host.mesh().sent_at.is_empty());
}

#[test]
fn a_mesh_without_links_is_named() {
    let mesh = super::Model::new(2, 1, Echo::Silent);
    let mut image = super::image(2, 1);
    image.placement.rect.height = 2;
    let mut host = super::Session::new(mesh, &image, crate::config::Limits::default());
    let error = refused(host.fence());
    assert_eq!(error, HostError::NoLink { row: 1, color: color(23) });
}
