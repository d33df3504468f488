//! Where the time went: rows that name what was done.

#![forbid(unsafe_code)]

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// The result of a run with a profile.
fn profiled(args: &[&str]) -> Value {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_dflowc"));
    let tool = tool.arg("run").args(args).args(["--json", "--profile", "--stats", "json"]);
    let output = tool.output().expect("the tool starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).expect("a line of JSON")
}

/// The seconds of a row.
fn seconds(result: &Value, what: &str) -> f64 {
    let rows = result["profile"]["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["what"] == what);
    row.and_then(|row| row["seconds"].as_f64()).unwrap_or_else(|| panic!("no row `{what}`"))
}

/// In rounds, too: operations in memory, which code does at once, and those with words.
#[test]
fn the_share_of_vector_operations_grows_with_their_length() {
    let cg =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/reference/benches/engine/programs/cg.dfl");
    let share = |engine: &str, n: &str, rounds: &str| {
        let settings = ["--set", "width=8", "--set", "height=8", "--set", n, "--set", rounds];
        let args = [&[cg, "--threads", "1", "--engine", engine], &settings[..]].concat();
        let result = profiled(&args);
        assert!(result["stats"]["rounds"]["rounds"].as_u64() > Some(50), "{}", result["stats"]);
        let vectors = seconds(&result, "vector operations");
        let others =
            ["tasks", "cores (schedule)", "fabric (routers)"].map(|it| seconds(&result, it));
        vectors / (vectors + others.iter().sum::<f64>())
    };
    let (short, long) = (share("flow", "n=9", "rounds=400"), share("flow", "n=900", "rounds=200"));
    assert!(long > 0.6 && long > short + 0.2, "{short}, {long}");
}

/// What is made before the run, and what moves between the host and the mesh.
#[test]
fn code_and_copies_have_their_own_rows() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("p.dfl").display().to_string();
    let source = r#"const memcpy = @import_module("<memcpy/get_params>", .{ .width = 1, .height = 1 });
tile t { param memcpy_params: comptime_struct;
  const sys = @import_module("<memcpy/memcpy>", memcpy_params);
  var a: [8000]u32; var p: [*]u32 = &a; comptime { @export_symbol(p, "p"); } }
layout { @set_rectangle(1, 1); @set_tile_code(0, 0, t, .{ .memcpy_params = memcpy.get_params(0) });
  @export_name("p", [*]u32, true); }
host { var v: [8000]u32; for (@range(u32, 100)) |i| { @copy_in("p", @all(), &v); }
  const w = @copy_out("p", @all(), 8000); @print("{}", .{w.len}); }
"#;
    std::fs::write(&path, source).expect("a file");
    let made = profiled(&[&path, "--code", "jit"]);
    assert!(seconds(&made, "JIT") > 0.0 && seconds(&made, "loading") > 0.0, "{}", made["profile"]);
    assert!(seconds(&made, "host copies") > 0.0, "{}", made["profile"]);
    let read = profiled(&[&path, "--code", "interpreter"]);
    assert!(seconds(&read, "JIT") < seconds(&made, "JIT") / 10.0, "{}", read["profile"]);
}
