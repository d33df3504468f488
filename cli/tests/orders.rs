//! Where times decide what comes first, as a run of `flow` tells it.
#![forbid(unsafe_code)]

use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// PE 1 waits for words of both neighbors at the same time, and reads the clock when one has come; all send a third color
/// to PE 3, to which PE 4 also sends commands that end an operation.
const PROGRAM: &str = r#"
const red = @get_color(0);
const blue = @get_color(1);
const all = @get_color(2);
const order = @get_color(3);
const go_id = @get_local_task_id(8);

tile left {
  var v = @zeros([4]u32);
  task go() void { @mov32(@get_dsd(fabout_dsd, .{ .fabric_color = red, .extent = 4, .output_queue = @get_output_queue(2) }), @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 4 })); }
  comptime { @bind_local_task(go, go_id); @activate(go_id); }
}
tile between {
  var a = @zeros([4]u32);
  var b = @zeros([4]u32);
  var counted: u64 = 0;
  const one_id = @get_local_task_id(9);
  const two_id = @get_local_task_id(10);
  fn mem(p: *[4]u32) mem1d_dsd { return @get_dsd(mem1d_dsd, .{ .base_address = p, .extent = 4 }); }
  task go() void {
    @mov32(mem(&a), @get_dsd(fabin_dsd, .{ .fabric_color = red, .extent = 4, .input_queue = @get_input_queue(2) }), .{ .async = true, .activate = one_id });
    @mov32(mem(&b), @get_dsd(fabin_dsd, .{ .fabric_color = blue, .extent = 4, .input_queue = @get_input_queue(3) }), .{ .async = true, .activate = two_id });
  }
  task one() void {}
  task two() void { counted = @clock_read(); }
  comptime { @bind_local_task(go, go_id); @bind_local_task(one, one_id); @bind_local_task(two, two_id); @activate(go_id); }
}
tile right {
  var v = @zeros([4]u32);
  task go() void {
    @mov32(@get_dsd(fabout_dsd, .{ .fabric_color = blue, .extent = 4, .output_queue = @get_output_queue(2) }), @get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 4 }));
    @mov32(@get_dsd(fabout_dsd, .{ .fabric_color = all, .extent = 1, .output_queue = @get_output_queue(3) }), 7);
  }
  comptime { @bind_local_task(go, go_id); @activate(go_id); }
}
tile taker {
  var v = @zeros([2]u32);
  var w = @zeros([2]u32);
  task go() void {
    @mov32(@get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = 2 }), @get_dsd(fabin_dsd, .{ .fabric_color = all, .extent = 2, .input_queue = @get_input_queue(2) }));
    @mov32(@get_dsd(mem1d_dsd, .{ .base_address = &w, .extent = 2 }), @get_dsd(fabin_dsd, .{ .fabric_color = order, .extent = 2, .input_queue = @get_input_queue(3) }), .{ .async = true, .on_control = .{ .terminate = true } });
  }
  comptime { @bind_local_task(go, go_id); @activate(go_id); }
}
tile last {
  var turns: u16 = 0;
  task go() void {
    @mov32(@get_dsd(fabout_dsd, .{ .fabric_color = all, .extent = 1, .output_queue = @get_output_queue(2) }), 8);
    for (@range(u16, 100)) |turn| turns += turn;
    @mov32(@get_dsd(fabout_dsd, .{ .fabric_color = order, .extent = 1, .output_queue = @get_output_queue(3), .control = true }), 0);
  }
  comptime { @bind_local_task(go, go_id); @activate(go_id); }
}
layout {
  @set_rectangle(5, 1);
  @set_tile_code(0, 0, left, .{});
  @set_tile_code(1, 0, between, .{});
  @set_tile_code(2, 0, right, .{});
  @set_tile_code(3, 0, taker, .{});
  @set_tile_code(4, 0, last, .{});
  @set_color_config(0, 0, red, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
  @set_color_config(1, 0, red, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });
  @set_color_config(2, 0, blue, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
  @set_color_config(1, 0, blue, .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
  @set_color_config(2, 0, all, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
  @set_color_config(4, 0, all, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
  @set_color_config(3, 0, all, .{ .routes = .{ .rx = .{ WEST, EAST }, .tx = .{ RAMP } } });
  @set_color_config(4, 0, order, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ WEST } } });
  @set_color_config(3, 0, order, .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } } });
}
host {}
"#;

fn run(program: &str, args: &[&str]) -> Output {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("p.dfl"), program).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
    command.current_dir(folder.path()).args(["run", "p.dfl"]).args(args);
    let output = command.output().expect("the tool starts");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    output
}

fn orders(program: &str, engine: &str) -> Value {
    let output = run(program, &["--json", "--stats", "json", "--profile", "--engine", engine]);
    let mut result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["stats"]["orders"], result["profile"]["orders"]);
    result["stats"]["orders"].take()
}

#[test]
fn flow_lists_where_times_decide() {
    for engine in ["step", "exact"] {
        assert_eq!(orders(PROGRAM, engine), json!([]));
    }
    let found = orders(PROGRAM, "flow");
    let known = |what: &str, color: Option<u8>, task: Option<&str>, other: Option<&str>, x: u16| {
        found.as_array().into_iter().flatten().any(|place| {
            place["what"] == what
                && place["color"] == json!(color)
                && place["task"] == json!(task)
                && place["other"] == json!(other)
                && place["pe"] == json!([x, 0])
        })
    };
    assert!(known("tasks", None, Some("two"), Some("one"), 1), "{found}");
    assert!(known("clock", None, Some("two"), None, 1), "{found}");
    assert!(known("senders", Some(2), None, None, 3), "{found}");
    assert!(known("commands", Some(3), None, None, 3), "{found}");
    assert_eq!(found.as_array().map(Vec::len), Some(4), "{found}");
}

#[test]
fn a_profile_shows_them() {
    let output = run(PROGRAM, &["--profile", "--engine", "flow"]);
    let text = String::from_utf8(output.stderr).expect("text");
    let from = text.find("where times decided").expect("a list");
    let lines: Vec<&str> = text[from..].lines().take(5).collect();
    assert_eq!(
        lines,
        [
            "where times decided what came first (data may differ from those of `exact`)",
            "  tasks `two` and `one` of `between`, as on PE (1, 0) in cycle 56",
            "  task `two` of `between` reads the clock or the state of queues, as on PE (1, 0) in cycle 56",
            "  control wavelets of color 3 that end operations, or find none, as on PE (3, 0) in cycle 1341",
            "  words of color 2 from several sides or queues, as on PE (3, 0)",
        ]
    );
}

#[test]
fn an_activation_that_may_be_lost_is_a_place() {
    // Both ends come in the same cycle, and start one task, once.
    let program = PROGRAM.replace(".activate = two_id", ".activate = one_id");
    let found = orders(&program, "flow");
    let one = |place: &Value| {
        place["what"] == "tasks" && place["task"] == "one" && place["other"] == Value::Null
    };
    assert!(found.as_array().into_iter().flatten().any(one), "{found}");
}
