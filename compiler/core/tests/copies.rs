//! Arrays and structs that are passed or captured are copied where what they were read from may be written, and
//! nowhere else: copies take cycles, and memory of a PE.

use dflow_compiler::{MemoryWorld, Options, Stage, dump};

const BEFORE: &str = r"
tile pe {
  const pair = struct { a: i16, b: i16 };
  var v = @zeros([8]i16);
  var w = @zeros([8]i16);
  var s = @zeros([4]i16);
  var pairs: [3]pair;
  var p: *i16 = &s[1];
  var out: i16 = 0;
  const to_v = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> v[i] });
  const to_w = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> w[i] });
  const dest = @get_dsr(dsr_dest, 1);
  const sent = @get_dsd(fabout_dsd, .{ .fabric_color = @get_color(2), .extent = 8, .output_queue = @get_output_queue(2) });

  fn read(a: [8]i16) i16 { return a[1]; }
  fn on(a: [8]i16) i16 { out = read(a); return out; }
  fn writes_v(a: [8]i16) i16 { v[0] = 1; return a[0]; }
  fn writes_w(a: [8]i16) i16 { w[0] = 1; return a[0]; }
  fn calls(a: [8]i16) i16 { return writes_v(w) + a[0]; }
  fn stores(a: [8]i16) i16 { p.* = 1; return a[0]; }
  fn moves(a: [8]i16) i16 { @mov16(to_w, to_v); return a[0]; }
  fn moves_register(a: [8]i16) i16 { @mov16(dest, to_w); return a[0]; }
  // An operation that goes on when the function has ended reads what was passed, not a copy on the stack.
  fn sends(a: [8]i16) i16 {
    const d = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 8 });
    @mov16(sent, d, .{ .async = true });
    @mov16(dest, to_w);
    return a[0];
  }
  fn sends_on(a: [8]i16) i16 { out = 1; return sends(a); }
  fn short(a: [4]i16) i16 { p.* = 1; return a[0]; }
  fn one(e: pair) i16 { return e.a; }
  fn made() [8]i16 { return v; }
  inline fn inner(a: [8]i16) i16 { w[2] = 1; return a[0] + a[7]; }

  task go() void {
";

const AFTER: &str = r"
  }
  comptime { @bind_local_task(go, @get_local_task_id(8)); @activate(@get_local_task_id(8)); }
}
layout {
  @set_rectangle(1, 1);
  @set_tile_code(0, 0, pe, .{});
}
";

/// Copies in a task with a body.
fn copies(body: &str) -> usize {
    let world = MemoryWorld::new().with("a.dfl", format!("{BEFORE}{body}{AFTER}"));
    let (text, compiled) = dump(&world, "a.dfl", Options::default(), Stage::Typed);
    assert!(compiled.diagnostics.is_empty(), "{body}: {:?}", compiled.diagnostics);
    let (_, task) = text.split_once("\nfn go(").expect("the task");
    let task = task.split("\nfn ").next().unwrap_or(task);
    task.lines().filter(|line| line.trim_start().starts_with("copy ")).count()
}

#[test]
fn what_nobody_writes_is_not_copied() {
    for body in [
        "out = read(v);",
        "out = on(v);",
        "out = writes_v(w);",
        "out = writes_w(v);",
        // Nobody has the address of `v`, so a store through a pointer does not meet it.
        "out = stores(v);",
        "out = moves(v);",
        "out = inner(v);",
        "out = sends(v); @load_to_dsr(dest, to_v);",
        "out = sends_on(v); @load_to_dsr(dest, to_v);",
        "out = writes_v(made());",
        "out = writes_v([8]i16{ out, 1, 2, 3, 4, 5, 6, 7 });",
        "const c = [8]i16{ 0, 1, 2, 3, 4, 5, 6, 7 }; out = writes_v(c);",
        "for (pairs) |e| { out += e.a + one(e); }",
        // Used for the last time before it is written.
        "for (pairs) |e, i| { pairs[i].b = one(e); }",
        "for (pairs) |e, i| { pairs[i] = pair{ .a = e.b, .b = e.a }; pairs[i].a = 1; }",
        "for (@range(i16, 2)) |i| { out = read(v); v[i] = out; }",
    ] {
        // A struct that is assigned is copied, whatever there was to decide.
        let assigned = body.matches("] = pair").count();
        assert_eq!(copies(body), assigned, "{body}");
    }
}

#[test]
fn what_may_be_written_is_copied_once() {
    for body in [
        "out = writes_v(v);",
        "out = calls(v);",
        "out = writes_w(w);",
        "out = moves(w);",
        "out = moves_register(v); @load_to_dsr(dest, to_v);",
        "out = short(s);",
        "out = inner(w);",
        "const f = &writes_v; out = if (out > 0) f(v) else 0;",
        "for (pairs) |e| { pairs[1].a = 9; out += e.a + e.b; }",
        "for (pairs) |e, i| { for (@range(i16, 2)) |_| { out += one(e); pairs[i].a = 9; } }",
        "const q = &pairs[0]; for (pairs) |e| { q.a = 9; out += one(e); }",
    ] {
        assert_eq!(copies(body), 1, "{body}");
    }
}
