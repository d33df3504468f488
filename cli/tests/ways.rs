//! What `dflowc run --profile` says of the ways that words went, and why.

#![forbid(unsafe_code)]

use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

/// What is not plain in a row of PEs, the first of which sends eight words to the last.
#[derive(Clone, Copy)]
struct Row {
    width: u16,
    /// Further members of the sender's descriptor, and of the configuration of those between and the last.
    sender: &'static str,
    middle: &'static str,
    last: &'static str,
    /// Where those between receive from and send to.
    rx: &'static str,
    tx: &'static str,
    /// Code of those between, and more of the layout.
    code: &'static str,
    layout: &'static str,
}

const PLAIN: Row = Row {
    width: 3,
    sender: "",
    middle: "",
    last: "",
    rx: "WEST",
    tx: "EAST",
    code: "",
    layout: "",
};

/// Tasks of both PEs that start themselves a hundred times.
const AGAIN: &str = "var times: u32 = 0;
  task go() void { times += 1; if (times < 100) { @activate(go_id); } @mov32(";

impl Row {
    fn source(self) -> String {
        let (last_x, Row { width, sender, middle, last, rx, tx, code, layout }) =
            (self.width - 1, self);
        format!(
            r#"const red = @get_color(2);
const blue = @get_color(3);
const go_id = @get_local_task_id(9);
tile sender {{
  const out = @get_dsd(fabout_dsd, .{{ .extent = 8, .fabric_color = red, .output_queue = @get_output_queue(2){sender} }});
  task go() void {{ @mov32(out, @as(u32, 5), .{{ .async = true }}); }}
  comptime {{ @bind_local_task(go, go_id); @activate(go_id); }}
}}
tile middle {{ {code} }}
tile taker {{
  var kept = @zeros([8]u32);
  const mem = @get_dsd(mem1d_dsd, .{{ .tensor_access = |i|{{8}} -> kept[i] }});
  const in = @get_dsd(fabin_dsd, .{{ .extent = 8, .fabric_color = red, .input_queue = @get_input_queue(2) }});
  task go() void {{ @mov32(mem, in, .{{ .async = true }}); }}
  comptime {{ @bind_local_task(go, go_id); @activate(go_id); }}
}}
layout {{
  @set_rectangle({width}, 1);
  @set_tile_code(0, 0, sender, .{{}});
  for (@range(u16, 1, {last_x}, 1)) |x| {{
    @set_tile_code(x, 0, middle, .{{}});
    @set_color_config(x, 0, red, .{{ .routes = .{{ .rx = .{{ {rx} }}, .tx = .{{ {tx} }} }}{middle} }});
  }}
  @set_tile_code({last_x}, 0, taker, .{{}});
  @set_color_config(0, 0, red, .{{ .routes = .{{ .rx = .{{ RAMP }}, .tx = .{{ EAST }} }} }});
  @set_color_config({last_x}, 0, red, .{{ .routes = .{{ .rx = .{{ WEST }}, .tx = .{{ RAMP }} }}{last} }});
  {layout}
}}
host {{}}
"#
        )
    }

    /// Runs it: color, way, why, words of each row; and what went by stretches.
    fn ways(self, args: &[&str]) -> (Vec<Value>, Value) {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("p.dfl"), self.source()).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
        let always = ["run", "p.dfl", "--json", "--stats", "json", "--profile"];
        command.current_dir(folder.path()).args(always).args(args);
        let output = command.output().expect("the tool starts");
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(output.status.code(), Some(0), "{result}");
        assert_eq!(result["stats"]["ways"], result["profile"]["ways"]);
        assert_eq!(result["stats"]["stretches"], result["profile"]["stretches"]);
        let rows = result["profile"]["ways"].as_array().expect("rows");
        (rows.clone(), result["profile"]["stretches"].clone())
    }

    /// All its words go one way.
    #[track_caller]
    fn goes(self, args: &[&str], way: &str, why: Option<&str>) {
        let (rows, _) = self.ways(args);
        assert_eq!(rows, [json!({ "color": 2, "words": 8, "way": way, "why": why })]);
    }
}

#[test]
fn words_that_are_only_handed_on_take_a_channel_or_a_pipe() {
    PLAIN.goes(&["--engine", "exact"], "channel", None);
    PLAIN.goes(&["--engine", "step"], "routers", Some("engine"));
    let long = Row { width: 16, ..PLAIN };
    long.goes(&["--engine", "exact", "--threads", "1"], "channel", None);
    // Two threads would only make its way longer, unless there is more to do.
    long.goes(&["--engine", "exact", "--threads", "2"], "channel", None);
    let code = "task rest() void {} comptime { @bind_local_task(rest, go_id); }";
    let busy = Row { code, ..long };
    busy.goes(&["--engine", "exact", "--threads", "2"], "routers", Some("crosses a region"));
    PLAIN.goes(&["--engine", "flow"], "pipe, in stretches", None);
    let (_, stretches) = PLAIN.ways(&["--engine", "exact"]);
    assert_eq!(stretches["operations"], 0);
    let (_, stretches) = PLAIN.ways(&["--engine", "flow"]);
    assert_eq!(
        (&stretches["operations"], &stretches["operations_in_stretches"]),
        (&2.into(), &2.into())
    );
    let taken = stretches["words_taken_in_stretches"].as_u64();
    assert!(taken.is_some_and(|taken| (1..=8).contains(&taken)), "{stretches}");
}

#[test]
fn each_reason_for_routers_is_told() {
    let switch = ", .switches = .{ .pos1 = .{ .tx = RAMP } }";
    let filter = ", .filter = .{ .kind = .{ .range = true }, .min_idx = 0, .max_idx = 1 }";
    let takes = "const in = @get_dsd(fabin_dsd, .{ .extent = 8, .fabric_color = red, .input_queue = @get_input_queue(2) });
        var kept = @zeros([8]u32);
        const mem = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> kept[i] });
        task go() void { @mov32(mem, in, .{ .async = true }); }
        comptime { @bind_local_task(go, go_id); @activate(go_id); }";
    let writes = "const colors = @import_module(\"<tile_config>\").color_config;
        task go() void { colors.reset_routes(blue, .{ .rx = RAMP, .tx = EAST }); }
        comptime { @bind_local_task(go, go_id); }";
    let rows = [
        (Row { middle: switch, ..PLAIN }, "switch"),
        (Row { last: filter, ..PLAIN }, "filter"),
        (Row { sender: ", .advance_switch = true", ..PLAIN }, "commands"),
        (Row { rx: "WEST, RAMP", ..PLAIN }, "several senders"),
        (Row { tx: "RAMP, EAST", code: takes, ..PLAIN }, "fan-out"),
        (Row { code: writes, ..PLAIN }, "configured at run time"),
    ];
    for (row, why) in rows {
        for engine in ["exact", "flow"] {
            row.goes(&["--engine", engine], "routers", Some(why));
        }
    }
}

/// A program that writes registers of another color, or of the console, leaves a color its way.
#[test]
fn registers_of_other_colors_are_no_reason() {
    let other = "const colors = @import_module(\"<tile_config>\").color_config;
        task go() void { colors.reset_routes(@get_color(6), .{ .rx = RAMP, .tx = EAST }); }
        comptime { @bind_local_task(go, go_id); }";
    let console = "const print = @import_module(\"<simprint>\");
        task go() void { print.print_string(\"here\"); }
        comptime { @bind_local_task(go, go_id); }";
    for code in [other, console] {
        let row = Row { code, ..PLAIN };
        row.goes(&["--engine", "exact"], "channel", None);
        row.goes(&["--engine", "flow"], "pipe, in stretches", None);
    }
}

/// Two colors may use a link: it belongs to the one that sends, as long as the other does not.
#[test]
fn a_shared_link_is_no_reason_while_one_sends() {
    let layout =
        "@set_color_config(1, 0, blue, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } });
        @set_color_config(2, 0, blue, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });";
    let row = Row { layout, ..PLAIN };
    row.goes(&["--engine", "exact"], "channel", None);
    row.goes(&["--engine", "flow"], "pipe, in stretches", None);
}

/// Most of what a program does again and again is done in rounds.
#[test]
fn repetitions_are_told() {
    let source = Row { width: 2, ..PLAIN }.source();
    let source =
        source.replace("task go() void { @mov32(", AGAIN).replace(", .{ .async = true }", "");
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("p.dfl"), source).expect("a file");
    let [step, exact] = ["step", "exact"].map(|engine| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
        command.current_dir(folder.path()).args(["run", "p.dfl", "--json", "--stats", "json"]);
        let output =
            command.args(["--profile", "--engine", engine]).output().expect("the tool starts");
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(output.status.code(), Some(0), "{result}");
        assert_eq!(result["stats"]["rounds"], result["profile"]["rounds"]);
        result["stats"].clone()
    });
    for field in ["cycle_count", "ce_cycles", "tasks", "hops", "wavelets_delivered"] {
        assert_eq!(step[field], exact[field], "{field}");
    }
    assert_eq!(step["rounds"], json!({ "rounds": 0, "cycles": 0 }));
    let rounds = &exact["rounds"];
    let [count, cycles, all] = [&rounds["rounds"], &rounds["cycles"], &exact["cycle_count"]]
        .map(|number| number.as_u64().unwrap_or(0));
    assert!(count >= 10 && cycles % count == 0, "{rounds}");
    assert!(2 * cycles > all && cycles < all, "{rounds} of {all}");
}

/// A solver of the library does its iterations in rounds: words of its sums come to a queue in an order that switches make, and
/// (`paper`) columns go to two neighbors in turn. With the host's commands in between.
#[test]
fn a_solver_goes_in_rounds() {
    let run = |variant: &str, engine: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
        let sizes = ["nx=5", "ny=4", "nz=4", "iterations=60"].map(|size| ["--set", size]);
        command.args(["run", "cg", "--json", "--stats", "json", "--engine", engine]);
        command.args(sizes.as_flattened()).args(["--set", &format!("variant={variant}")]);
        let output = command.output().expect("the tool starts");
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(output.status.code(), Some(0), "{result}");
        result["stats"].clone()
    };
    for variant in ["fast", "paper"] {
        let [step, exact, flow] = ["step", "exact", "flow"].map(|engine| run(variant, engine));
        for field in ["cycle_count", "ce_cycles", "tasks", "hops", "wavelets_delivered"] {
            assert_eq!(step[field], exact[field], "{variant}, {field}");
        }
        for field in ["tasks", "wavelets_delivered"] {
            assert_eq!(step[field], flow[field], "{variant}, {field}");
        }
        for stats in [exact, flow] {
            let count = stats["rounds"]["rounds"].as_u64().unwrap_or(0);
            assert!(count >= 50, "{variant}: {stats}");
        }
    }
}

/// Reads by a pointer, which leads to a variable at first, and from a late repetition on to the cycle counter.
const LOOKS: &str = "const go_id = @get_local_task_id(9);
tile pe {
  var own: u16 = 3;
  var places = @zeros([2]u16);
  var times: u16 = 0;
  var sum: u16 = 0;
  task go() void {
    if (times == 0) {
      @clock_enable();
      places[0] = @bitcast(u16, &own);
      places[1] = 2 * 0x7f68;
    }
    sum += @bitcast(*u16, places[times >> 6]).*;
    times += 1;
    if (times < 100) {
      @activate(go_id);
    } else {
      // How long it takes says what has been read.
      var left: u16 = sum;
      while (left > 0) left -= 1;
    }
  }
  comptime { @bind_local_task(go, go_id); @activate(go_id); }
}
layout { @set_rectangle(1, 1); @set_tile_code(0, 0, pe, .{}); }
host {}";

/// What may look at registers goes in rounds until it does.
#[test]
fn a_look_at_a_register_ends_rounds() {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("p.dfl"), LOOKS).expect("a file");
    let [step, exact, flow] = ["step", "exact", "flow"].map(|engine| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
        command.current_dir(folder.path()).args(["run", "p.dfl", "--json", "--stats", "json"]);
        let output = command.args(["--engine", engine]).output().expect("the tool starts");
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(output.status.code(), Some(0), "{result}");
        result["stats"].clone()
    });
    for field in ["cycle_count", "ce_cycles", "tasks"] {
        assert_eq!([&step[field]; 2], [&exact[field], &flow[field]], "{field}");
    }
    let count = exact["rounds"]["rounds"].as_u64().unwrap_or(0);
    assert!((20..62).contains(&count), "{exact}");
}
