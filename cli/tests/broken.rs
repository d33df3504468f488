//! Faults of our own, on purpose: how they end and what is said of them. Builds without debug assertions have none.

#![forbid(unsafe_code)]
#![cfg(debug_assertions)]

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// PEs that never rest.
const ENDLESS: &str = "tile t { const id = @get_local_task_id(9); var n: u32 = 0;
  task main() void { n += 1; @activate(id); } comptime { @bind_local_task(main, id); @activate(id); } }
layout { @set_rectangle(8, 8); for (@range(u16, 8)) |x| { for (@range(u16, 8)) |y| { @set_tile_code(x, y, t, .{}); } } }
host {}
test \"t\" {}
";

/// A command of which a thread panics at a place.
fn broken(place: &str, args: &[&str]) -> Output {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("p.dfl"), ENDLESS).expect("a file");
    let mut tool = Command::new(env!("CARGO_BIN_EXE_dflowc"));
    tool.current_dir(folder.path()).args(args).env("DFLOW_PANIC", place);
    tool.output().expect("the tool starts")
}

/// It ends with the code and the words of a fault of ours, and so does its result.
#[track_caller]
fn is_told(place: &str, args: &[&str]) {
    let output = broken(place, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    assert!(output.stdout.is_empty(), "{args:?}");
    for part in ["dflowc: internal-error: ", "a test panics here", "please report this"] {
        assert!(said.contains(part), "{args:?}: no `{part}` in {said}");
    }
    let output = broken(place, &[args, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
    let result: Value = serde_json::from_str(&said).expect("a line of JSON");
    assert_eq!(result["status"], "internal-error", "{args:?}: {said}");
    let message = result["message"].as_str().expect("a message");
    assert!(message.contains("a test panics here"), "{args:?}: {said}");
}

#[test]
fn a_panic_of_a_thread_of_the_mesh_is_told() {
    for engine in ["step", "exact", "flow"] {
        for threads in ["1", "2"] {
            is_told("mesh", &["run", "p.dfl", "--engine", engine, "--threads", threads]);
        }
    }
    let output = broken("mesh", &["run", "p.dfl", "--json", "--stats", "json"]);
    let result: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    assert_eq!(result["stats"]["sim_stop_cause"], "internal-error");
    assert!(result["account"].is_null(), "the state cannot be trusted: {result}");
}

#[test]
fn a_panic_beside_the_mesh_is_told() {
    is_told("host", &["run", "p.dfl"]);
    is_told("host", &["test", "p.dfl"]);
}
