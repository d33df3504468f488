//! How runs end: every trap, deadlock and limit is one short report with the right exit code.
//!
//! Programs are written one line each, so that the line that is to blame is known: the code of
//! the PE stands on line 5, the host block on line 13.

#![forbid(unsafe_code)]

mod programs;

use std::process::Command;

use tempfile::TempDir;

use programs::{dflowc, ends, host, program};

/// A vector of four words, and a descriptor that sends them on color 3.
const SEND: &str = "var a: [4]u32; \
    const m = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> a[i] }); \
    const c = @get_color(3); const q = @get_output_queue(2); \
    const out = @get_dsd(fabout_dsd, .{ .fabric_color = c, .extent = 4, .output_queue = q }); ";

#[test]
fn traps_of_code_name_the_line_and_the_task() {
    let on_pe = ["PE (0, 0)", "task `memcpy.on_command`", "p.dfl:5:"];
    for (code, what) in [
        ("var x: u16 = 0; fn go() void { x = 5 / x; }", "division by zero"),
        ("var x: i16 = 0; fn go() void { x = 5 % x; }", "division by zero"),
        ("var x: u16 = 0; fn go() void { @assert(x == 1); }", "`x == 1` does not hold"),
        ("var a: [4]u16; var i: u16 = 30000; fn go() void { a[i] = 1; }", "outside the memory"),
        (
            "var x: u16 = 0; fn f(n: u16) u16 { return f(n + 1) + x; } fn go() void { x = f(0); }",
            "stack overflow",
        ),
        ("const id = @get_local_task_id(9); fn go() void { @activate(id); }", "task id 9"),
    ] {
        ends(&program(code), &[], 3, &[&on_pe[..], &["trap: ", what]].concat());
    }
}

#[test]
fn words_that_cannot_go_on_name_who_sent_them() {
    let sender =
        ["trap: p.dfl:5:", "color 3", "last sent by PE (0, 0) in `memcpy.on_command` line 5"];
    let routed = "comptime { @set_local_color_config(c, \
        .{ .routes = .{ .rx = .{RAMP}, .tx = .{EAST} } }); } ";
    let go = "fn go() void { @mov32(out, m); sys.unblock_cmd_stream(); }";
    let outside = program(&[SEND, routed, go].concat());
    let left = ["trap: ", "color 3", "left the program's rectangle to the EAST", "PE (0, 0)"];
    ends(&outside, &["--strict"], 3, &left);
    let nowhere = program(&[SEND, go].concat());
    ends(&nowhere, &[], 3, &[&sender[..], &["has no route here"]].concat());
}

#[test]
fn two_operations_on_a_queue_name_both_lines() {
    let loops = "comptime { @set_local_color_config(c, \
        .{ .routes = .{ .rx = .{RAMP}, .tx = .{RAMP} } }); } ";
    let go = "fn go() void { @mov32(out, m, .{ .async = true });\n@mov32(out, m); }";
    let wanted = ["trap: p.dfl:6:", "color 3", "output queue 2 is still used", "(line 5)"];
    ends(&program(&[SEND, loops, go].concat()), &[], 3, &wanted);
}

#[test]
fn deadlocks_name_who_waits_and_the_host() {
    let forgotten = program("fn go() void {}");
    let wanted = [
        "deadlock: ",
        "launch of `go` (p.dfl:5)",
        "PE (0, 0) never called unblock_cmd_stream",
        "the host waits at p.dfl:13",
        "launch of `go` (p.dfl:5) has not been answered: PE (0, 0) never called unblock_cmd_stream",
    ];
    ends(&forgotten, &[], 3, &wanted);
    let waiting = program(
        "var a: [4]u32; const c = @get_color(3); const q = @get_input_queue(2); \
         comptime { @set_local_color_config(c, .{ .routes = .{ .rx = .{WEST}, .tx = .{RAMP} } }); } \
         const in = @get_dsd(fabin_dsd, .{ .fabric_color = c, .extent = 4, .input_queue = q }); \
         const m = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> a[i] }); \
         fn go() void { @mov32(m, in); sys.unblock_cmd_stream(); }",
    );
    let wanted =
        ["PE (0, 0) of `t` in `memcpy.on_command` p.dfl:5", "a word on color 3", "none ever came"];
    ends(&waiting, &[], 3, &wanted);
}

#[test]
fn limits_end_with_exit_code_four() {
    let endless = program("var x: u16 = 0; fn go() void { while (true) { x += 1; } }");
    let limit = "the cycle limit of 20,000 was reached (--max-cycles)";
    let busy = "PE (0, 0) of `t` in `memcpy.on_command` p.dfl:5: computes";
    ends(&endless, &["--max-cycles", "20000"], 4, &[limit, busy]);
    ends_everywhere(&endless, &["--max-cycles", "20000"], 4, &[limit, busy]);
    ends(&endless, &["--max-cycles", "0"], 4, &["the cycle limit of 0 was reached"]);
    let late = dflowc(&endless, &["--timeout", "0.2"]);
    let said = String::from_utf8_lossy(&late.stderr).into_owned();
    assert_eq!(late.status.code(), Some(4), "{said}");
    assert!(said.contains("the time limit was reached at cycle"), "{said}");
    let short = host("@print(\"here\", .{});");
    // Reached before or while the program is compiled.
    ends(&short, &["--timeout", "0"], 4, &["the time limit was reached at cycle 0 (--timeout)"]);
    ends(&short, &["--max-memory", "1"], 4, &["the memory limit was reached"]);
    let large = host("var z = @alloc(u64, 100000); @print(\"{}\", .{z[0]});");
    ends(&large, &["--max-memory", "1200000"], 4, &["beyond its limit"]);
}

/// A row of PEs with arrays, without memcpy; the code stands on line 3, the host block on line 6.
fn row(width: u16, code: &str, routes: &str) -> String {
    format!(
        r#"const c = @get_color(3);
tile t {{ param x: u16; const id = @get_local_task_id(9);
  {code}
  comptime {{ @bind_local_task(main, id); @activate(id); }} }}
layout {{ @set_rectangle({width}, 1); for (@range(u16, {width})) |x| {{ @set_tile_code(x, 0, t, .{{ .x = x }}); {routes} }} }}
host {{ }}
"#
    )
}

/// Each engine, with one and with two threads, ends so and says all of `wanted` in six lines at most.
#[track_caller]
fn ends_everywhere(source: &str, args: &[&str], code: i32, wanted: &[&str]) {
    for engine in ["step", "exact", "flow"] {
        for threads in ["1", "2"] {
            let all = [args, &["--engine", engine, "--threads", threads]].concat();
            let output = dflowc(source, &all);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let report = said.find("dflowc: ").map_or("", |at| &said[at..]);
            assert_eq!(output.status.code(), Some(code), "{all:?}: {said}");
            for part in wanted {
                assert!(said.contains(part), "{all:?}: no `{part}` in {said}");
            }
            assert!(report.lines().count() <= 6, "{all:?}: {said}");
        }
    }
}

/// A run with one, and with three threads, must say the same.
fn ends_with_threads(source: &str, args: &[&str], code: i32, wanted: &[&str]) {
    ends(source, args, code, wanted);
    ends(source, &[args, &["--threads", "3"]].concat(), code, wanted);
}

#[test]
fn what_does_not_fit_into_memory_is_refused_before_it_is_touched() {
    let large = row(64, "var a = @zeros([10000]u32); task main() void { a[1] = 1; }", "");
    let wanted = ["the memory limit was reached at cycle 0", "64 PEs", "1.0 MiB (--max-memory)"];
    ends_with_threads(&large, &["--max-memory", "1M"], 4, &wanted);
    ends_with_threads(&large, &["--max-memory", "8M"], 0, &[]);
    ends_everywhere(&large, &["--max-memory", "1M"], 4, &wanted);
}

/// A fence, here the one at the end, goes to rows that no copy has concerned.
#[test]
fn a_fence_is_refused_before_its_first_word() {
    let source = r#"const memcpy = @import_module("<memcpy/get_params>", .{ .width = 2, .height = 40 });
tile t {
  param memcpy_params;
  const sys = @import_module("<memcpy/memcpy>", memcpy_params);
  var a = @zeros([10000]f32);
  var p: [*]f32 = &a;
  comptime { @export_symbol(p, "a"); }
}
layout {
  @set_rectangle(2, 40);
  for (@range(u16, 2)) |x| { for (@range(u16, 40)) |y| {
    @set_tile_code(x, y, t, .{ .memcpy_params = memcpy.get_params(x) });
  } }
  @export_name("a", [*]f32, true);
}
host { var one = @zeros([2]f32); @copy_in("a", @rect(0, 0, 2, 1), &one); }
"#;
    let wanted = ["the memory limit was reached at cycle 0: ", "1.0 MiB (--max-memory)"];
    ends(source, &["--max-memory", "1M"], 4, &wanted);
    ends(source, &["--max-memory", "32M"], 0, &[]);
}

/// A row of PEs with large arrays, each of which wakes the next one.
fn growing(width: u16) -> String {
    // Each PE wakes the next one, and takes its memory only then.
    let code = "var a = @zeros([8000]u32); \
        const out = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = @get_output_queue(2) }); \
        const in = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = c, .input_queue = @get_input_queue(2) }); \
        task main() void { if (x == 0) { @mov32(out, 1); } } task come(w: u32) void { a[1] = w; }";
    let source = row(
        width,
        code,
        "@set_color_config(x, 0, c, .{ .routes = .{ \
        .rx = .{ if (x == 0) RAMP else WEST }, .tx = .{ if (x == 0) EAST else RAMP } } });",
    );
    // Only the first PE starts by itself; the others are touched when words come.
    let source = source.replace(
        "@activate(id);",
        "if (x == 0) @activate(id); if (x > 0) \
        @bind_data_task(come, @get_data_task_id(c));",
    );
    let last = width - 1;
    source.replace(
        ".tx = .{ if (x == 0) EAST else RAMP }",
        &format!(
            ".tx = if (x == 0) .{{ EAST }} else if (x == {last}) .{{ RAMP }} else .{{ RAMP, EAST }}"
        ),
    )
}

#[test]
fn memory_that_grows_in_a_run_ends_it() {
    let limit = ["the memory limit was reached", "(--max-memory)"];
    ends_with_threads(&growing(100), &["--max-memory", "1M"], 4, &limit);
    ends_with_threads(&growing(100), &["--max-memory", "32M"], 0, &[]);
    ends_everywhere(&growing(100), &["--max-memory", "1M"], 4, &limit);
    ends_everywhere(&growing(100), &["--max-memory", "32M"], 0, &[]);
}

/// A limit is kept to where it is small, too, and whoever does the work.
#[test]
fn memory_grows_by_a_quarter_beyond_its_limit_at_most() {
    let source = growing(600);
    for engine in ["step", "exact", "flow"] {
        for threads in ["1", "2"] {
            let args = ["--max-memory", "8M", "--stats", "json", "--engine", engine, "--threads"];
            let output = dflowc(&source, &[&args[..], &[threads]].concat());
            let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(stats["sim_stop_cause"], "memory-limit");
            let bytes = stats["state_bytes"].as_u64().expect("a number");
            assert!((8 << 20..10 << 20).contains(&bytes), "{engine}, {threads}: {bytes}");
        }
    }
}

#[test]
fn a_flood_that_nobody_reads_is_a_report() {
    let code = "const out = @get_dsd(fabout_dsd, .{ .extent = 60000, .fabric_color = c, .output_queue = @get_output_queue(2) }); \
        task main() void { if (x == 0) { while (true) { @mov32(out, 1); } } }";
    let source = row(
        3,
        code,
        "@set_color_config(x, 0, c, .{ .routes = .{ \
        .rx = .{ if (x == 0) RAMP else WEST }, .tx = .{ if (x == 2) RAMP else EAST } } });",
    );
    let output = dflowc(&source, &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("waits for room to send on color 3"), "{said}");
    ends_with_threads(&source, &[], 0, &[]);
    ends_everywhere(&source, &[], 0, &["note: at the end, ", "waits for room to send on color 3"]);
}

#[test]
fn a_mesh_that_never_rests_ends_at_the_limit_of_a_host_that_never_waits() {
    let source = row(1, "var n: u16 = 0; task main() void { while (true) { n += 1; } }", "");
    let wanted =
        ["the cycle limit of 5,000 was reached", "PE (0, 0) of `t` in `main` p.dfl:3: computes"];
    ends_with_threads(&source, &["--max-cycles", "5000"], 4, &wanted);
    ends_everywhere(&source, &["--max-cycles", "5000"], 4, &wanted);
}

#[test]
fn an_endless_input_is_refused() {
    let reads = host("const v = @input(\"v\", u8); @print(\"{}\", .{v.len});");
    let output = dflowc(&reads, &["--input", "v=/dev/zero:u8", "--max-memory", "1M"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is no plain file and goes on beyond"), "{said}");
}

/// A file without its data on disk.
fn sparse(folder: &TempDir, bytes: u64) -> String {
    let path = folder.path().join("sparse.bin");
    std::fs::File::create(&path).and_then(|file| file.set_len(bytes)).expect("a file");
    path.display().to_string()
}

#[test]
fn an_input_that_memory_does_not_hold_is_refused_unread() {
    let folder = TempDir::new().expect("a folder");
    let reads = host("const v = @input(\"v\", f32); @print(\"{}\", .{v.len});");
    for (gib, most) in [(8, "16G"), (64, "190G")] {
        let input = format!("v={}:f32", sparse(&folder, gib << 30));
        let output = dflowc(&reads, &["--input", &input, "--max-memory", most]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("of which a run holds 3 copies"), "{said}");
    }
    let input = format!("v={}:f32", sparse(&folder, 1 << 10));
    let output = dflowc(&reads, &["--input", &input, "--max-memory", "16G"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().next(), Some("256"));
}

#[test]
fn a_program_may_ask_for_the_type_of_an_input() {
    let folder = TempDir::new().expect("a folder");
    let asks = host(
        "@print(\"{} {} {}\", .{ @has_input(\"v\"), @has_input(\"v:f32\"), @has_input(\"v:f64\") });",
    );
    let path = sparse(&folder, 64);
    let input = |dtype: &str| format!("v={path}{dtype}");
    for (dtype, printed) in
        [("", "true false false"), (":f32", "true true false"), (":f64", "true false true")]
    {
        let output = dflowc(&asks, &["--input", &input(dtype)]);
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().next(), Some(printed));
    }
    let output = dflowc(&asks, &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().next(), Some("false false false"));
}

/// <allreduce/plan> says what it cannot do, and of what.
#[test]
fn a_plan_names_what_does_not_fit() {
    let colors = ".colors = .{ @get_color(0), @get_color(1), @get_color(2) }";
    for (asked, said) in [
        (".pace = 2".to_owned(), "pace is 1 or at least 10, not 2"),
        (format!(".algorithm = kinds.algorithm.ring, {colors}"), "the PEs of a ring need 3 colors"),
    ] {
        let source = format!(
            "const kinds = @import_module(\"<allreduce/kinds>\");\n\
             const plan = @import_module(\"<allreduce/plan>\", .{{ .width = 3, .length = 13, {asked} }});\n"
        ) + &host("@print(\"{}\", .{ plan.reduce_cycles });");
        for target in ["wse2", "wse3"] {
            let output = dflowc(&source, &["--target", target]);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(errors.contains(said) && errors.contains("\n1 error"), "{errors}");
        }
    }
}

#[test]
fn a_field_of_doubles_is_refused_with_the_way_out() {
    let folder = TempDir::new().expect("a folder");
    let input = format!("field={}:f64", sparse(&folder, 512));
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
        command.args(["run", "ceresz", "--set", "rows=1", "--input", &input]).args(more);
        command.output().expect("the tool starts")
    };
    let output = run(&[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("--set cast=f32"), "{said}");
    let output = run(&["--set", "cast=f32"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("bound 0 holds for all 64 values"), "{said}");
}

/// A param that only the host block reads is known, and an image has it as it was written.
#[test]
fn params_of_the_host_block_are_named() {
    let source = "const mode = enum(u8) { slow, fast };\nparam how: mode = mode.slow; param often: bool = true; param to: direction = WEST;\n".to_owned()
        + &host("const east = to == EAST; if (often and how == mode.fast and east) @print(\"fast\", .{});");
    let output = dflowc(&source, &["--set", "why=1"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("has no param or setting `why`; it has how, often, to"), "{said}");
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("p.dfl"), source).expect("a file");
    let tool = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dflowc"));
        command.args(args).output().expect("the tool starts")
    };
    tool(&[
        "build",
        &path("p.dfl"),
        "-o",
        &path("p.dfi"),
        "--set",
        "how=1",
        "--set",
        "often=1",
        "--set",
        "to=EAST",
    ]);
    let settings = ["--set", "how=fast", "--set", "often=true", "--set", "to=EAST"];
    let same = tool(&[&["run", &path("p.dfi")], &settings[..]].concat());
    assert_eq!(String::from_utf8_lossy(&same.stdout), "fast\n");
    let other = tool(&["run", &path("p.dfi"), "--set", "how=slow"]);
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(
        said.contains("the image was built with how=fast: give it as it stands there"),
        "{said}"
    );
}

#[test]
fn a_host_block_cannot_queue_without_end() {
    let copies = program("var a: [64]u32; var p: [*]u32 = &a; fn go() void {}")
        .replace("@export_symbol(go);", "@export_symbol(go); @export_symbol(p, \"p\");")
        .replace("@export_name(\"go\"", "@export_name(\"p\", [*]u32, true); @export_name(\"go\"")
        .replace(
            "@launch(\"go\");",
            "var v: [64]u32; while (true) { @copy_in(\"p\", @all(), &v); }",
        );
    ends(&copies, &["--max-memory", "20M"], 4, &["the memory limit was reached"]);
    let outputs = host("var v: [64]u32; while (true) { @output(\"v\", &v); }");
    ends(&outputs, &["--max-memory", "20M"], 4, &["beyond its limit"]);
}

/// Walks two elements past the end of its array.
const PAST: &str = "var a: [4]u32; var b: [4]u32; \
    const m = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 6 }); \
    fn go() void { @mov32(m, 7); b[0] = 1; sys.unblock_cmd_stream(); }";

#[test]
fn what_is_odd_is_told_and_a_trap_when_strict() {
    let source = program(PAST);
    let output = dflowc(&source, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("warning: p.dfl:5: a vector operation walks past the end of `a`"),
        "{said}"
    );
    assert!(!said.contains("wavelets\n"), "{said}");
    ends(&source, &["--strict"], 3, &["trap: p.dfl:5:", "past the end of `a`", "PE (0, 0)"]);
    let json = dflowc(&source, &["--json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(value["account"]["warnings"].as_array().map(Vec::len), Some(1));
    assert_eq!(value["account"]["notes"], serde_json::json!([]));
    assert_eq!(value["account"]["wavelets"]["left"], 0);
}

#[test]
fn what_is_odd_is_told_of_a_run_that_fails_too() {
    let clobbered = PAST.replace("var b: [4]u32;", "").replace("b[0] = 1;", "@assert(false);");
    let output = dflowc(&program(&clobbered), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("warning: p.dfl:5: a vector operation walks past"), "{said}");
}

#[test]
fn the_account_is_told_if_asked_for() {
    let source = program("fn go() void { sys.unblock_cmd_stream(); }");
    let quiet = String::from_utf8_lossy(&dflowc(&source, &[]).stderr).into_owned();
    assert!(!quiet.contains("note:") && !quiet.contains("  sent"), "{quiet}");
    let told = String::from_utf8_lossy(&dflowc(&source, &["--account"]).stderr).into_owned();
    assert!(told.contains("wavelets\n  sent      1 by PEs, 2 by the host"), "{told}");
    let hangs = program("fn go() void {}");
    let told = String::from_utf8_lossy(&dflowc(&hangs, &["--account"]).stderr).into_owned();
    assert!(told.contains("wavelets\n  sent      0 by PEs, 2 by the host"), "{told}");
    assert!(told.contains("dflowc: deadlock"), "{told}");
}

#[test]
fn lines_printed_after_the_hosts_last_word_are_shown() {
    let code = "const out = @import_module(\"<simprint>\"); var n: u16 = 0; \
        task late() void { n += 1; out.print_string(\"late\\n\"); \
        if (n < 6) @activate(@get_local_task_id(9)); } \
        comptime { @bind_local_task(late, @get_local_task_id(9)); } \
        fn go() void { @activate(@get_local_task_id(9)); sys.unblock_cmd_stream(); }";
    let output = dflowc(&program(code), &[]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(printed.matches("late").count(), 6, "{printed}{said}");
}

#[test]
fn statistics_say_how_a_run_ended() {
    let busy = "var n: u16 = 0; task main() void { while (true) { n += 1; } }";
    let done = "var n: u16 = 0; task main() void { n = 1; }";
    for (code, args, cause) in [
        (done, &[][..], "done"),
        (busy, &["--max-cycles", "5000"], "cycle-limit"),
        (busy, &["--timeout", "0.1"], "time-limit"),
        ("var n: u16 = 0; task main() void { n = 1 / n; }", &[], "trap"),
    ] {
        for engine in ["step", "exact", "flow"] {
            let stats = ["--stats", "json", "--engine", engine];
            let output = dflowc(&row(3, code, ""), &[args, &stats].concat());
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let stats: serde_json::Value = serde_json::from_str(&said).expect("a line of JSON");
            assert_eq!(stats["sim_stop_cause"], cause, "{said}");
            assert_eq!((&stats["fabric_x"], &stats["fabric_y"]), (&3.into(), &1.into()));
            assert_eq!(
                (&stats["hwtile_count"], &stats["simulated_tile_count"]),
                (&3.into(), &3.into())
            );
            assert_eq!(stats["engine"], engine);
            if cause == "cycle-limit" {
                assert_eq!(stats["cycle_count"], 5000, "{said}");
                // Each core computes in all cycles but those before its task starts.
                assert!(stats["idle_ce_cycles"].as_u64().is_some_and(|idle| idle < 20), "{said}");
            }
        }
    }
}

#[test]
fn statistics_and_profile_are_part_of_the_result_or_files() {
    let source = row(2, "var n: u16 = 0; task main() void { n = 1; }", "");
    let output = dflowc(&source, &["--json", "--stats", "json", "--profile"]);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["stats"]["sim_stop_cause"], "done");
    let rows = result["profile"]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 10);
    let shares: f64 = rows.iter().filter_map(|row| row["share"].as_f64()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    let plain: serde_json::Value =
        serde_json::from_slice(&dflowc(&source, &["--json"]).stdout).expect("JSON");
    assert!(plain["stats"].is_null() && plain["profile"].is_null());

    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("stats.json");
    let place = format!("json={}", file.display());
    let output = dflowc(&source, &["--stats", &place, "--profile", "--threads", "3"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("where the time went") && said.contains("front end"), "{said}");
    assert!(output.stdout.is_empty());
    let text = std::fs::read_to_string(file).expect("a file");
    assert!(text.contains("\"cycle_count\""), "{text}");
}

/// Unasked, a mesh has as many threads as it is worth and the computer has cores; the result is the same.
#[test]
fn large_meshes_take_more_threads_than_one() {
    let run = |height: u16, args: &[&str]| {
        let source = format!(
            "tile t {{ const id = @get_local_task_id(9); var n: u32 = 0; task main() void {{ n += 1; }} \
               comptime {{ @bind_local_task(main, id); @activate(id); }} }} \
             layout {{ @set_rectangle(32, {height}); for (@range(u16, 32)) |x| \
               for (@range(u16, {height})) |y| @set_tile_code(x, y, t, .{{}}); }} host {{ }}"
        );
        let output = dflowc(&source, &[&["--stats", "json"], args].concat());
        let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (stats["threads"].as_u64(), stats["cycle_count"].as_u64())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let (small, large) = (run(31, &[]), run(32, &[]));
    assert_eq!((small.0, large.0), (Some(1), Some(cores.min(2))));
    assert_eq!(run(32, &["--threads", "1"]), (Some(1), large.1));
    assert_eq!(run(32, &["--threads", "4"]), (Some(4), large.1));
}

/// Compilation follows the number of different programs: coordinates as params, which decide at the
/// edges and are data elsewhere.
#[test]
fn compiled_functions_do_not_grow_with_the_mesh() {
    let code = "const edge = x == 0; var place: u32 = @as(u32, x) * 7; \
        fn later() void { place += 1; } task main() void { if (edge) { place = 1; } else { later(); } }";
    let counts = |width: u16| {
        let output = dflowc(&row(width, code, ""), &["--stats", "json"]);
        let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(stats["simulated_tile_count"], width);
        (stats["programs"].clone(), stats["compiled_functions"].clone())
    };
    assert_eq!(counts(3), (2.into(), 3.into()), "the first PE needs one function, the others two");
    assert_eq!(counts(700), counts(3));
}
