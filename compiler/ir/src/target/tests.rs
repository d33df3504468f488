//! The data files, and the page that is made from them.

#![expect(
    clippy::disallowed_methods,
    reason = "a test compares the page in spec/ with the data files, and writes it on request"
)]

use super::load::parse;
use super::*;

#[test]
fn data_files_are_complete() {
    for id in TargetId::ALL {
        let target = Target::get(id);
        assert_eq!(target.id, id);
        assert_eq!(TargetId::from_name(id.name()), Some(id));
        assert_eq!(target.memory, 48 * 1024);
        assert!(target.input_queues.len() <= 8 && target.output_queues.len() <= 8);
        assert!(usize::from(target.simd.column) < 2);
        let sources = Target::provenance(id);
        assert!(sources.iter().all(|number| !number.source.is_empty()));
        assert!(sources.iter().all(|number| !number.unit.is_empty()));
        assert!(sources.iter().all(|number| !number.source.contains('/')));
        let timing = sources.iter().filter(|number| number.name.starts_with("timing.")).count();
        assert_eq!((sources.len() - timing, timing), (27, 22));
    }
    let names = |id| Target::provenance(id).iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(TargetId::Wse2), names(TargetId::Wse3));
    assert_eq!(TargetId::from_name("wse1"), None);
}

#[test]
fn what_differs_between_the_generations() {
    let (two, three) = (Target::get(TargetId::Wse2), Target::get(TargetId::Wse3));
    assert_eq!((two.timing.hop, three.timing.hop), (1, 2));
    assert_eq!((two.local_task_first, three.local_task_first), (0, 8));
    assert_eq!(three.switch_colors & 1 << 10, 0);
    // A chained reduction advances one PE per 1 + up + hop + down cycles: 6, as measured.
    assert_eq!(1 + two.timing.ramp_up + two.timing.hop + two.timing.ramp_down, 6);
}

#[test]
fn what_is_assumed_stands_apart() {
    let target = Target::get(TargetId::Wse2);
    assert_eq!(target.assumed.timing.call, target.timing.call);
    assert_eq!((target.timing.divide, target.assumed.timing.divide), (50, 0));
    assert!(target.assumed.fmuls_lanes && target.assumed.clock);
    assert!(!Target::get(TargetId::Wse3).assumed.fmuls_lanes);
}

#[test]
fn a_broken_file_is_refused() {
    assert!(parse("{}").is_err());
    let text = include_str!("../../targets/wse2.json");
    assert!(parse(text).is_ok());
    assert!(parse(&text.replace("\"hop\"", "\"hops\"")).is_err());
    assert!(parse(&text.replace("\"measured\"", "\"sure\"")).is_err());
    assert!(parse(&text.replacen("\"unit\"", "\"units\"", 1)).is_err());
}

#[test]
fn numbers_can_be_changed_for_a_sweep() {
    let change = |name: &str, value| Target::custom(TargetId::Wse2, &[(name.to_owned(), value)]);
    assert_eq!(change("hop", 3).expect("known").timing.hop, 3);
    assert_eq!(change("simd.fmuls_lanes", 2).expect("known").simd.fmuls_lanes, 2);
    assert_eq!(change("input_queues", 9).expect("known").input_queues, [9; 8]);
    assert_eq!(change("call", 7).expect("known").assumed.timing.call, 7);
    assert!(std::ptr::eq(change("hop", 3).expect("known"), change("hop", 3).expect("known")));
    assert!(matches!(change("memory", 3), Err(OverrideError::Unknown(_))));
    assert!(matches!(change("timing.hop", 0), Err(OverrideError::Bounds { least: 1, .. })));
}

/// The table says of each number whether it can be changed, and within which bounds: all these, and no others.
#[test]
fn the_table_says_what_can_be_changed() {
    let table = manual();
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut changeable = 0;
    for row in table.lines().skip(2).map(cells) {
        let name = row[1].trim_matches('`').to_owned();
        let change = |value| Target::custom(TargetId::Wse3, &[(name.clone(), value)]);
        let Some((least, most)) = row[5].split_once(" to ") else {
            assert!(
                row[5].is_empty() && matches!(change(1), Err(OverrideError::Unknown(_))),
                "{name}"
            );
            continue;
        };
        let (least, most): (u32, u32) = (least.parse().expect(&name), most.parse().expect(&name));
        assert!(change(least).is_ok() && change(most).is_ok(), "{name}");
        let outside = least.checked_sub(1).or_else(|| most.checked_add(1)).expect("one of them");
        assert!(matches!(change(outside), Err(OverrideError::Bounds { .. })), "{name}");
        changeable += 1;
    }
    assert_eq!(changeable, 28);
}

#[test]
fn the_table_of_constants_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/timing.md");
    let page = std::fs::read_to_string(path).expect("spec/timing.md is there");
    let (head, rest) = page.split_once("<!-- constants -->\n").expect("the mark of the table");
    let (_, tail) = rest.split_once("<!-- end of constants -->").expect("the mark of its end");
    let made = format!("{head}<!-- constants -->\n{}<!-- end of constants -->{tail}", manual());
    if std::env::var_os("UPDATE_SPEC").is_some() {
        std::fs::write(path, &made).expect("spec/timing.md can be written");
        return;
    }
    assert!(page == made, "spec/timing.md is stale: UPDATE_SPEC=1 cargo test -p dflow-ir");
}
