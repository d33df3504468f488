//! What `dflowc run` states of a run's cost: seconds with what they rest on, and the fields of `--stats json`.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A PE sends 64 words to the next one, by an operation on each.
const PAIR: &str = r"const red = @get_color(2);
const go_id = @get_local_task_id(9);
tile pe {
  param first: bool;
  var kept = @zeros([64]u32);
  const mem = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{64} -> kept[i] });
  const out = @get_dsd(fabout_dsd, .{ .extent = 64, .fabric_color = red, .output_queue = @get_output_queue(2) });
  const in = @get_dsd(fabin_dsd, .{ .extent = 64, .fabric_color = red, .input_queue = @get_input_queue(2) });
  task go() void {
    if (first) { @mov32(out, mem, .{ .async = true }); } else { @mov32(mem, in, .{ .async = true }); }
  }
  comptime { @bind_local_task(go, go_id); @activate(go_id); }
}
layout {
  @set_rectangle(2, 1);
  @set_tile_code(0, 0, pe, .{ .first = true });
  @set_tile_code(1, 0, pe, .{ .first = false });
  @set_color_config(0, 0, red, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
  @set_color_config(1, 0, red, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
}
host {}
";

/// Runs a program, of the library or that one: the result as JSON.
fn run(program: &str, args: &[&str]) -> Value {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("p.dfl"), PAIR).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
    command.current_dir(folder.path()).args(["run", program, "--json"]).args(args);
    let output = command.output().expect("the tool starts");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{result}");
    result
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The share of assumed cycles, in whole per cent.
fn percent(told: &Value) -> i64 {
    let share = number(&told["assumed_cycles"]) / number(&told["charged_cycles"]);
    (100.0 * share).round() as i64
}

#[test]
fn seconds_have_one_clock_and_say_what_they_rest_on() {
    for (args, clock) in
        [(&[][..], 850_000_000u64), (&["--timing", "clock_hz=1_100_000_000"], 1_100_000_000)]
    {
        for engine in ["step", "exact", "flow"] {
            let always = ["--stats", "json", "--engine", engine];
            let result = run("p.dfl", &[&always, args].concat());
            let (report, stats) = (&result["report"], &result["stats"]);
            assert_eq!((&report["clock_hz"], &stats["clock_hz"]), (&json!(clock), &json!(clock)));
            // Read back from text, a number may be off by its last bit.
            let is_that = |seconds, cycles| {
                let wanted = number(cycles) / clock as f64;
                (number(seconds) - wanted).abs() < 1e-12 * wanted
            };
            assert!(is_that(&stats["emulated_time"], &stats["cycle_count"]), "{stats}");
            assert!(is_that(&report["emulated_seconds"], &report["cycles"]), "{report}");
            let assumed = (&report["clock_assumed"], &stats["clock_assumed"]);
            // Who gives the clock knows it.
            assert_eq!(assumed, (&json!(args.is_empty()), &json!(args.is_empty())));
            for told in [report, stats] {
                let (all, part) =
                    (number(&told["charged_cycles"]), number(&told["assumed_cycles"]));
                assert!(0.0 < part && part < all, "{told}");
            }
            // Two tasks have started, in two cycles each.
            assert_eq!(
                number(&stats["charged_cycles"]),
                number(&stats["ce_cycles"]) + 4.0,
                "{stats}"
            );
            assert_eq!(percent(report), percent(stats));
        }
    }
}

/// Programs that print seconds or rates print the share that the report has.
#[test]
fn host_programs_that_state_rates_state_the_share_of_assumed_cycles() {
    let small = ["--set", "nx=3", "--set", "ny=2", "--set", "nz=4", "--set", "iterations=2000"];
    let field = ["--set", "cols=2", "--set", "rows=1", "--set", "steps=0", "--set", "abs=0.5"];
    for (program, args) in [("cg", &small[..]), ("ceresz", &field)] {
        let result = run(program, args);
        let printed = result["printed"].as_array().expect("lines");
        let lines: Vec<&str> = printed.iter().filter_map(Value::as_str).collect();
        let told = lines
            .iter()
            .find_map(|line| line.strip_suffix(" % of charged cycles rest on assumed constants"));
        let told: i64 =
            told.and_then(|share| share.parse().ok()).unwrap_or_else(|| panic!("{lines:#?}"));
        assert!(told > 0 && (told - percent(&result["report"])).abs() <= 1, "{lines:#?}");
        for line in lines.iter().filter(|line| line.contains("GB/s") || line.contains(" ms ")) {
            assert!(line.contains(" at 850 MHz (assumed)"), "{line}");
        }
    }
}

/// The fields are those that are documented, in any engine.
#[test]
fn every_field_of_the_statistics_is_documented() {
    let page = include_str!("../../spec/stats.md");
    let (_, rest) = page.split_once("## 1.").expect("the first section");
    let (section, _) = rest.split_once("## 2.").expect("the second one");
    let first_cells =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let documented: BTreeSet<&str> =
        first_cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')).collect();
    for engine in ["step", "exact", "flow"] {
        let result = run("p.dfl", &["--stats", "json", "--engine", engine]);
        let fields = result["stats"].as_object().expect("fields");
        let fields: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
        assert_eq!(fields, documented);
    }
}

/// What `flow` approximated, and that other engines have approximated nothing.
#[test]
fn statistics_say_what_flow_approximated() {
    let stats = |engine| run("p.dfl", &["--stats", "json", "--engine", engine])["stats"].clone();
    let flow = stats("flow");
    let done = &flow["stretches"];
    assert_eq!(
        (&done["operations"], &done["operations_in_stretches"]),
        (&json!(2), &json!(2)),
        "{done}"
    );
    assert_eq!(done["elements_in_stretches"], 128, "{done}");
    assert_eq!(done["words_taken_in_stretches"], 64, "{done}");
    assert!(number(&done["stretches"]) >= 2.0, "{done}");
    let way = json!({ "color": 2, "words": 64, "way": "pipe, in stretches", "why": null });
    assert_eq!((&flow["engine"], &flow["ways"]), (&json!("flow"), &json!([way])));
    assert_eq!(flow["orders"], json!([]), "times decided nothing");
    for engine in ["step", "exact"] {
        let stats = stats(engine);
        let none = stats["stretches"]
            .as_object()
            .expect("fields")
            .values()
            .all(|count| *count == json!(0));
        assert!(none && stats["rounds"] == json!({ "rounds": 0, "cycles": 0 }), "{stats}");
        assert_eq!(stats["wavelets_delivered"], flow["wavelets_delivered"]);
    }
}
