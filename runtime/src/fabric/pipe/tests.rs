use super::{JOINED, Pipe};
use crate::fabric::channel::Route;
use crate::fabric::router::RAMP;
use crate::sched::plan::Latencies;
use dflow_ir::target::{Target, TargetId};

/// A pipe of a hop, to a core or to the host; and the cycles that its words are on their way.
fn pipe(link: Option<u32>) -> (Pipe, u64) {
    let timing = Latencies::new(&Target::get(TargetId::Wse2).timing);
    let (entry, hops) = (RAMP, 1);
    let route = Route {
        source: 0,
        entry,
        dest: 1,
        region: 0,
        borders: 0,
        link,
        number: 1,
        color: 0,
        port: 0,
        hops,
        queue: Some(2),
    };
    let way = 1 + timing.ramp_up + timing.hop;
    (Pipe::new(&timing, route, (8, 0), None, Box::default()), way)
}

fn times(pipe: &Pipe) -> Vec<u64> {
    pipe.arrivals().map(|(time, _)| time).collect()
}

#[test]
fn short_stretches_in_a_row_are_one_packet_and_keep_their_times() {
    let (mut pipe, way) = pipe(None);
    for (start, end, count) in [(0, 3, 4), (4, 4, 1), (5, 9, 3), (10, 10, 1), (11, 11, 1)] {
        pipe.push((start, end), vec![7; count]);
    }
    let sent: Vec<u64> = [0, 1, 2, 3, 4, 5, 7, 9, 10, 11].iter().map(|t| t + way).collect();
    assert_eq!(times(&pipe), sent);
    // Some are taken; the last stretch grows, and ends later than was known.
    pipe.take(6);
    pipe.push((12, 14), vec![7; 3]);
    pipe.retime(13, 16);
    let rest: Vec<u64> = [7, 9, 10, 11, 12, 14, 16].iter().map(|t| t + way).collect();
    assert_eq!(times(&pipe), rest);
    assert_eq!((pipe.front(99).len(), pipe.held()), (7, 7));
}

#[test]
fn a_single_word_that_has_joined_others_keeps_its_time() {
    let (mut pipe, way) = pipe(None);
    (0..5).for_each(|t| drop(pipe.push((t, t), vec![7])));
    pipe.retime(5, 14);
    pipe.push((15, 16), vec![7; 2]);
    let sent: Vec<u64> = (0..5).map(|t| t + way).collect();
    assert_eq!(times(&pipe), sent);
    assert_eq!(pipe.take(5).1, 4 + way);
    assert_eq!(times(&pipe), [15 + way, 16 + way]);
}

#[test]
fn what_leaves_later_or_is_long_or_for_the_host_is_a_packet_of_its_own() {
    let (mut near, _) = pipe(None);
    near.push((0, 0), vec![1]);
    near.push((2, 2), vec![2]);
    assert_eq!(near.front(99), [1]);
    let (mut long, _) = pipe(None);
    long.push((0, 0), vec![1]);
    long.push((1, JOINED), vec![2; JOINED as usize]);
    assert_eq!(long.front(99), [1]);
    let (mut host, _) = pipe(Some(0));
    host.push((0, 0), vec![1]);
    host.push((1, 1), vec![2]);
    assert_eq!(host.front(99), [1]);
}

/// The first word goes through the input queue in cycle `t`, at a visit in cycle `now`.
fn pass_one(pipe: &mut Pipe, t: u64, now: u64) {
    pipe.queue_one();
    pipe.leave_queue(t, now);
}

#[test]
fn words_that_pass_at_once_leave_what_they_leave_one_by_one() {
    for (count, period, wanted) in
        [(1, 0, None), (5, 6, None), (9, 1, Some(4)), (10, 12, Some(7)), (10, 5, Some(99))]
    {
        for before in 0..3 {
            let made = || {
                let (mut pipe, _) = pipe(None);
                pipe.push((0, 20), vec![7; 12]);
                pipe.open(before, 30);
                // Those that were taken before, and when.
                (0..before).for_each(|word| pass_one(&mut pipe, 40 + 3 * u64::from(word), 40));
                wanted.into_iter().for_each(|wanted| pipe.want(wanted));
                pipe
            };
            let (mut singly, mut at_once) = (made(), made());
            let mut told = None;
            for word in 0..count {
                let t = 60 + word * period;
                pass_one(&mut singly, t, 50);
                let free = wanted.is_none_or(|wanted| singly.room() >= wanted);
                told = told.or(free.then_some(t));
            }
            let last = 60 + (count - 1) * period;
            let (when, _) = at_once.pass(count as u32, (60, period), 50);
            assert_eq!(when, told.unwrap_or(last), "{count} words, {before} before");
            assert_eq!(format!("{at_once:?}"), format!("{singly:?}"));
        }
    }
}

#[test]
fn the_source_is_told_with_the_word_that_makes_a_place_for_its_last() {
    for (more, count) in [(1, 1), (3, 9), (5, 5), (4, 12), (7, 3)] {
        let made = || {
            let (mut pipe, _) = pipe(None);
            let sent = pipe.room() + more;
            pipe.open(more, 30);
            pipe.push((0, 40), vec![7; sent as usize]);
            pipe.want_place(u64::from(sent));
            assert!(pipe.credit().is_none());
            pipe
        };
        let (mut singly, mut at_once) = (made(), made());
        let mut told = None;
        for word in 0..count {
            pass_one(&mut singly, 60 + 2 * word, 60);
            told = told.or(singly.credit().map(|_| 60 + 2 * word));
        }
        assert_eq!(told.is_some(), count >= u64::from(more), "{count} of {more}");
        let (when, _) = at_once.pass(count as u32, (60, 2), 60);
        assert_eq!(when, told.unwrap_or(60 + 2 * (count - 1)), "{count} of {more}");
        assert_eq!(at_once.credit().is_some(), told.is_some());
    }
}

#[test]
fn words_that_follow_are_not_waited_for() {
    let (mut pipe, _) = pipe(None);
    let sent = pipe.room() + 4;
    pipe.open(9, 30);
    pipe.push((0, 40), vec![7; sent as usize]);
    pipe.want_place(u64::from(sent));
    pipe.push((41, 45), vec![7; 5]);
    pass_one(&mut pipe, 60, 60);
    assert!(pipe.credit().is_some());
}

#[test]
fn the_next_place_is_known_from_what_is_taken_or_bound_to_be() {
    let (mut pipe, _) = pipe(None);
    let places = pipe.places();
    let later = u64::from(pipe.credit) + 1;
    let takes_from_30 = |_: Route, t: u64| t.max(30);
    pipe.push((0, u64::from(places) - 1), vec![7; places as usize]);
    assert_eq!((pipe.room(), pipe.placed_by(1000)), (0, None));
    // An operation is bound to take them, but has not begun.
    pipe.open(9, 20);
    assert_eq!((pipe.room(), pipe.next_place(takes_from_30)), (9, 30 + later));
    pipe.push((60, 60), vec![7]);
    assert_eq!(pipe.next_place(takes_from_30), 31 + later);
    // It has taken three, in cycles 40, 41 and 42.
    let (end, ..) = pipe.take(3);
    pipe.drain((end, 3), 40);
    assert_eq!(pipe.next_place(takes_from_30), 41 + later);
    let placed = [39, 40, 41, 42].map(|taken| pipe.placed_by(taken + later));
    assert_eq!(placed, [0, 1, 2, 3].map(|taken| Some(taken + u64::from(places))));
    // Whether it goes on is not known.
    assert_eq!(pipe.placed_by(43 + later), None);
}

#[test]
fn a_stretch_that_has_not_begun_begins_later() {
    let (mut pipe, way) = pipe(None);
    pipe.push((10, 13), vec![7; 4]);
    pipe.bend(4, 4, 9, 29);
    assert_eq!(times(&pipe), [30 + way; 4]);
    pipe.retime(4, 36);
    assert_eq!(times(&pipe), [30, 32, 34, 36].map(|t| t + way));
}
