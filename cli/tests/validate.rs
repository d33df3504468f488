//! `dflowc validate`: the quick rows, their place in the specification, and sweeps of constants.

use std::process::{Command, Output};

fn dflowc(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dflowc")).args(args).output().expect("dflowc runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn quick_rows_are_inside_and_stand_in_the_specification() {
    let said = dflowc(&["validate", "--quick", "--markdown"]);
    let out = text(&said.stdout);
    assert!(said.status.success(), "{out}{}", text(&said.stderr));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../spec/timing.md");
    let page = std::fs::read_to_string(path).expect("spec/timing.md is there");
    let rows: Vec<&str> = out.lines().filter(|line| line.contains(" %")).collect();
    assert!(rows.len() > 30, "{} rows", rows.len());
    for row in rows {
        assert!(page.contains(row), "not in spec/timing.md (dflowc validate --write): {row}");
    }
}

#[test]
fn rows_are_objects_with_both_numbers() {
    let said = dflowc(&["validate", "--table", "c2", "--quick", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert_eq!((&json["status"], &json["outside"]), (&"success".into(), &0.into()));
    let rows = json["rows"].as_array().expect("rows");
    assert_eq!(rows[0]["published"], 10254.0);
    let two_lanes = rows.iter().find(|row| row["constants"][0] == "fmuls_lanes=2");
    assert_eq!(two_lanes.expect("the other reading")["ours"], 5130.0);
}

#[test]
fn rows_without_an_expectation_are_not_counted_as_met() {
    let said = dflowc(&["validate", "--table", "c2", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    // The other reading of each product, of which nothing is expected.
    let (free, bound): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row["constants"][0] == "fmuls_lanes=2");
    assert_eq!((bound.len(), free.len()), (7, 6));
    assert!(bound.iter().all(|row| row["inside"] == true), "{bound:?}");
    assert!(free.iter().all(|row| row["inside"].is_null()), "{free:?}");
    let counts = ["inside", "outside", "without_expectation"].map(|name| json[name].as_u64());
    assert_eq!(counts, [Some(7), Some(0), Some(6)]);
    let said = text(&dflowc(&["validate", "--table", "c2"]).stderr);
    assert!(said.contains("7 within what is expected of them, 0 outside, 6 without"), "{said}");
}

#[test]
fn vector_instructions_of_wse3_are_within_a_hundredth() {
    let said = dflowc(&["validate", "--table", "c8-vectors", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let bound = rows.iter().filter(|row| row["inside"] == true);
    assert_eq!(
        bound.map(|row| row["family"] == "vector instruction").collect::<Vec<_>>(),
        [true; 8]
    );
    assert_eq!(json["outside"], 0, "{json}");
    // A constant of wse3 alone is in them.
    let slow = ["validate", "--table", "c8-vectors", "--timing", "vector_start=12"];
    assert_eq!(dflowc(&slow).status.code(), Some(1));
}

#[test]
fn products_of_matrices_are_whole_tiles_and_lists() {
    let said = dflowc(&["validate", "--table", "c3", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let ours = |what: &str| {
        let row = rows.iter().find(|row| row["configuration"] == what);
        let row = row.unwrap_or_else(|| panic!("no row {what}"));
        row["ours"].as_f64().expect("a number")
    };
    // What comes in and goes over the fabric is in a part of a whole: 512 + 8192 words.
    let whole = ours("128 x 8 x 64, of 1024 x 1024 on 128 x 8 PEs");
    let part = 512.0 * 2.0 * 128.0;
    assert!(whole > part + 8704.0 && whole < part + 8704.0 + 512.0 * 40.0, "{whole}");
    // Banks are equal: two cycles for each further element of each nonzero.
    let [short, long] = [36, 132].map(|length| ours(&format!("64 nonzeros, rows of {length}")));
    assert_eq!((long - short) / 64.0 / 96.0, 2.0);
    assert_eq!((json["inside"].as_u64(), json["outside"].as_u64()), (Some(8), Some(0)));
}

/// What is published of stencils and can be tried, by configuration.
const STENCILS: &[(&str, f64)] = &[
    ("3 x 3 PEs, wse2", 12.0),
    ("4 x 4 PEs, wse3", 21.0),
    ("2 x 1, wse2", 131.0),
    ("86 x 14, wse3", 5299.0),
    ("60 x 60, wse3", 14907.0),
    ("15 x 15, wse3", 3418.0),
    ("64 x 64, wse2", 71647.0),
    ("64 x 64, wse3", 92532.0),
    ("10 x 10, wse3", 3375.0),
    ("60 x 60, wse3", 111_297.0),
    ("7 x 7, wse2", 2775.0),
    ("radius 3, rounds: 3, wse3", 7253.0),
];

#[test]
fn stencils_are_shown_with_every_radius_and_in_both_readings() {
    let said = dflowc(&["validate", "--table", "c6", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    for &(what, published) in STENCILS {
        let is_it = |row: &&serde_json::Value| {
            row["configuration"] == what && row["published"] == published
        };
        let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("no row {what}: {published}"));
        assert!(row["ours"].as_f64().is_some_and(|ours| ours > 0.0), "{row}");
    }
    let slopes = |constants: serde_json::Value| {
        let is_slope = |row: &&serde_json::Value| {
            row["configuration"].as_str().is_some_and(|what| what.starts_with("each cell"))
                && row["constants"] == constants
        };
        rows.iter().filter(is_slope).map(|row| row["ours"].as_f64()).collect::<Vec<_>>()
    };
    let [one, two] = [slopes(serde_json::json!([])), slopes(serde_json::json!(["fmuls_lanes=2"]))];
    assert_eq!((one.len(), two.len()), (10, 10));
    // A product takes a slot of each cell, or half a slot: two products with radius 1, else one.
    for (at, (one, two)) in one.iter().zip(&two).enumerate() {
        let difference = one.expect("a number") - two.expect("a number");
        let products = if at < 2 { 2.0 } else { 1.0 };
        assert!((difference - products / 2.0).abs() < 0.05, "{at}: {one:?} {two:?}");
    }
}

#[test]
fn a_reading_is_what_its_row_says_whatever_the_user_changes() {
    let args = ["validate", "--table", "c4", "--json", "--timing", "fmuls_lanes=2"];
    let said = dflowc(&args);
    let json: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let [one, two] = [1, 2].map(|lanes| {
        let constant = format!("fmuls_lanes={lanes}");
        let row = rows.iter().find(|row| row["constants"][0] == constant.as_str());
        row.expect("a reading")["ours"].as_f64().expect("a number")
    });
    assert!(one > two + 10.0, "{one} {two}");
    assert_eq!(json["outside"], 0, "{json}");
}

#[test]
fn a_wrong_constant_leaves_the_expected_error() {
    let said = dflowc(&["validate", "--table", "c2", "--timing", "bank_conflict=0"]);
    assert_eq!(said.status.code(), Some(1));
    assert!(text(&said.stdout).contains("outside"), "{}", text(&said.stdout));
    let wrong = dflowc(&["validate", "--timing", "hopp=1"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("timing.hop"), "{}", text(&wrong.stderr));
    let unknown = dflowc(&["validate", "--table", "c99", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&unknown.stdout).expect("JSON");
    assert_eq!((unknown.status.code(), json["status"].as_str()), (Some(2), Some("usage")));
}

#[test]
fn constants_are_listed_with_their_sources() {
    let out = text(&dflowc(&["dump", "--timing"]).stdout);
    assert!(out.contains("| `timing.hop` | 1 | 2 | cycles |"), "{out}");
}
