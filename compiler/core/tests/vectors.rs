//! Descriptors, vector operations, registers, FIFOs and `@map`: what is made of them, and what
//! is said against wrong ones.

use dflow_compiler::{Compiled, MemoryWorld, Options, Stage, dump};
use dflow_ir::target::TargetId;
use dflow_syntax::diagnostic::render::{self, Color};

/// The typed form of a tile, or what is said about it.
fn check(target: TargetId, tile: &str) -> (String, Vec<String>, String) {
    let text = format!(
        "tile worker {{\n{tile}\n}}\nlayout {{\n  @set_rectangle(1, 1);\n  @set_tile_code(0, 0, worker, .{{}});\n}}\n"
    );
    let world = MemoryWorld::new().with("a.dfl", text);
    let options = Options { target, ..Options::default() };
    let (typed, Compiled { sources, diagnostics, .. }) =
        dump(&world, "a.dfl", options.clone(), Stage::Typed);
    if diagnostics.is_empty() {
        let (_, image) = dump(&world, "a.dfl", options, Stage::Image);
        assert!(image.diagnostics.is_empty(), "{:?}", image.diagnostics);
    }
    let codes = diagnostics.iter().map(|diagnostic| diagnostic.code().id().to_owned()).collect();
    let report: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| render::human(&sources, diagnostic, Color::Never))
        .collect();
    (typed, codes, report.join("\n"))
}

/// Runs `code` in a local task after `decls`.
fn task(decls: &str, code: &str) -> String {
    format!(
        "{decls}\ntask main() void {{\n{code}\n}}\ncomptime {{\n  const id = @get_local_task_id(8);\n  @bind_local_task(main, id);\n  @activate(id);\n}}"
    )
}

fn typed(decls: &str, code: &str) -> String {
    let (typed, _, report) = check(TargetId::Wse2, &task(decls, code));
    assert!(report.is_empty(), "{report}");
    typed
}

/// The code of the first report.
fn fault(decls: &str, code: &str) -> (String, String) {
    let (_, codes, report) = check(TargetId::Wse2, &task(decls, code));
    (codes.first().cloned().unwrap_or_default(), report)
}

const ARRAYS: &str = "
var a = @zeros([16]f32);
var b = @zeros([4, 8]f32);
var h = @zeros([16]i16);
var w = @zeros([16]u32);
var s: f32 = 0.0;
var n: u16 = 3;
const x = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> a[2 * i + 1] });
const y = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 4, .offset = 2 });
const m = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{4, 3} -> b[i, 2 * j + 1] });
const hx = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> h[i] });
const wx = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> w[i] });
const in_color = @get_color(3);
const out_color = @get_color(4);
const in = @get_dsd(fabin_dsd, .{ .extent = 8, .fabric_color = in_color, .input_queue = @get_input_queue(2) });
const out = @get_dsd(fabout_dsd, .{ .extent = 8, .fabric_color = out_color, .output_queue = @get_output_queue(3) });
";

#[test]
fn descriptors_and_operations() {
    let text = typed(
        ARRAYS,
        "
  var d = x;
  @fadds(x, y, y);
  @fmacs(m, m, x, s);
  @fmaxs(&s, s, x);
  @add16(hx, hx, 40000);
  @add16(hx, -1, hx);
  @mov32(wx, s);
  @faddhs(x, @as(f16, 2.0), y);
  @fmovs(out, in, .{ .async = true });
  d = @increment_dsd_offset(d, 2, f32);
  d = @set_dsd_length(d, n);
  d = @set_dsd_stride(y, -1);
  d = @set_dsd_base_addr(d, b);
  @fmovs(@set_dsd_length(out, n), d);
  const done = @fmovs(&s, in);
  if (done) { s = 1.0; }
",
    );
    for line in [
        "@fadds(memory mem1d(&a+4, 8:i16, 2:i16), memory mem1d(&a+8, 4:i16, 1:i16),",
        "@fmacs(memory mem4d(&b+4, shape0), memory mem4d(&b+4, shape0),",
        "@fmaxs(*&s, load.f32(&s), memory",
        "memory mem1d(&h, 8:i16, 1:i16), 40000:i16)",
        "bitcast.i32(load.f32(&s))",
        // The kernel takes the wide operand first.
        "memory mem1d(&a+8, 4:i16, 1:i16), 2:f16)",
        "fabric fabin(queue 2, 8:i16)) async",
        "d = move_base(d, 8:i16)",
        "d = set_extent(d, load.i16(&n))",
        "d = mem1d(&a+8, 4:i16, 65535:i16)",
        "d = set_base(d, &b)",
        "fabric fabout(queue 3, color 4, load.i16(&n))",
        "done = @fmovs(*&s,",
        "shape0: 4*8 3*2",
        "input queue 2: color 3",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn registers_and_fifos() {
    let text = typed(
        &format!(
            "{ARRAYS}
const fifo = @allocate_fifo(w);
const dest = @get_dsr(dsr_dest, 1);
const src = @get_dsr(dsr_src1, 1);
comptime {{ @load_to_dsr(dest, x, .{{ .save_address = true }}); }}"
        ),
        "
  @load_to_dsr(src, in, .{ .async = true, .activate = main });
  @mov32(fifo, in, .{ .async = true });
  @mov32(out, fifo, .{ .async = true, .unblock = out_color, .priority = .{ .high = true } });
  @fmovs(dest, src, .{ .async = true });
  @set_fifo_read_length(fifo, n);
",
    );
    for line in [
        "fifo0: w, 16 elements of 4 bytes",
        "start dest1 = 0x0100000200080004 + address of a save_address",
        "src11 = fabin(queue 2, 8:i16) async activate=8",
        "@mov32(fifo0, fabric",
        "fifo0) async unblock=channel 4 priority=high",
        "@fmovs(dest1, src11) async",
        "fifo0 read length = load.i16(&n)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn maps() {
    let text = typed(
        &format!(
            "{ARRAYS}
fn scale(value: f32, by: f32) f32 {{ return value * by; }}
fn sum(value: f32, acc: *f32) f32 {{ return value + acc.*; }}
fn count(value: i16) void {{ n += @as(u16, value); }}
inline fn half(value: f32) f32 {{ if (value < 0.0) {{ return 0.0; }} return value / 2.0; }}"
        ),
        "
  @map(scale, x, 2.0, x);
  @map(scale, m, s, y);
  @map(sum, @set_dsd_length(x, n), &s, &s);
  @map(count, hx);
  @map(scale, in, s, out);
  @map(half, x, y);
",
    );
    for line in [
        // The shortest operand ends the loop.
        "while lt_u(t9, 4:i32) {",
        "t15 = mul(truncate.i16(shr_u(t13, 32:i64)), 4:i16)",
        "t18 = sum(t17, &s)",
        "@fmovs(*&t23, fabric t22)",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn one_target_takes_two_inputs_the_other_one() {
    let decls = "
const one = @get_color(3);
const two = @get_color(4);
var a = @zeros([8]f32);
const x = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{8} -> a[i] });
const first = @get_dsd(fabin_dsd, .{ .extent = 8, .fabric_color = one, .input_queue = @get_input_queue(2) });
const second = @get_dsd(fabin_dsd, .{ .extent = 8, .fabric_color = two, .input_queue = @get_input_queue(3) });";
    let tile = task(decls, "@fadds(x, first, second);");
    let (_, codes, report) = check(TargetId::Wse2, &tile);
    assert!(codes.is_empty(), "{report}");
    let (_, codes, report) = check(TargetId::Wse3, &tile);
    assert_eq!(codes, ["wrong-target"], "{report}");
    let bound = "comptime { @initialize_queue(@get_input_queue(2), .{ .color = one }); }";
    let decls = format!("{decls}\n{bound}");
    let tile = task(&decls, "@fmovs(x, first, .{ .async = true, .ut_id = @get_ut_id(5) });");
    let (typed, _, report) = check(TargetId::Wse3, &tile);
    assert!(report.is_empty(), "{report}");
    assert!(typed.contains("microthread=5"), "{typed}");
}

#[test]
fn parts_that_differ_between_pes_share_one_program() {
    let text = "
tile worker {
  param x: u16;
  var a = @zeros([32]f32);
  const part = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = x + 1 });
  task main() void {
    const tail = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> a[i + x] });
    @fadds(part, part, 1.0);
    @fadds(tail, tail, 1.0);
  }
  comptime { @bind_local_task(main, @get_local_task_id(8)); }
}
layout {
  @set_rectangle(20, 1);
  for (@range(u16, 20)) |x| @set_tile_code(x, 0, worker, .{ .x = x });
}
";
    let world = MemoryWorld::new().with("a.dfl", text);
    let compiled = dflow_compiler::compile(&world, "a.dfl", Options::default());
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    assert_eq!(compiled.image.map(|image| image.programs.len()), Some(1));
}

#[test]
fn wrong_ones_are_refused() {
    for (code, want, words) in [
        ("@fadds(x, y);", "wrong-argument-count", "takes 3 operands"),
        ("@fadds(&s, x, x);", "invalid-operands", "(pointer, vector, vector)"),
        ("@fadds(x, s, s);", "invalid-operands", "(vector, scalar, scalar)"),
        ("@fmovs(in, x);", "invalid-operands", "`fabin_dsd`"),
        ("@fmovs(x, out);", "invalid-operands", "`fabout_dsd`"),
        ("@fmovs(x, y, .{ .async = true });", "invalid-dsd", "asynchronous"),
        ("@fmovs(x, y, .{ .asnc = true });", "unknown-option", "asnc"),
        ("@fmovs(x, a);", "invalid-operands", "no operand"),
        ("@fnorms(&s, s);", "not-supported", "normalized"),
        ("@fmovs(&n, x);", "type-mismatch", "`f32`"),
        ("@add16(hx, hx, 70000);", "value-out-of-range", "70000"),
        ("@fadds(x, x, n);", "type-mismatch", "`f32`"),
        ("@fmovs(x, y, .{ .ut_id = 3 });", "wrong-target", "ut_id"),
        ("const d = @get_dsd(mem1d_dsd, .{ .base_address = &a });", "invalid-dsd", "`.extent`"),
        (
            "const d = @get_dsd(mem1d_dsd, .{ .base_address = a, .extent = 3 });",
            "invalid-dsd",
            "write `&`",
        ),
        (
            "const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i, j|{2, 2} -> b[i, j] });",
            "invalid-dsd",
            "one dimension",
        ),
        (
            "const d = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{2} -> a[i], .extent = 3 });",
            "invalid-dsd",
            "beside",
        ),
        (
            "const d = @get_dsd(mem1d_dsd, .{ .base_address = &a, .extent = 70000 });",
            "value-out-of-range",
            "70000",
        ),
        ("const d = @set_dsd_length(m, 3);", "type-mismatch", "`mem4d_dsd`"),
        (
            "const d = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = in_color, .input_queue = @get_output_queue(2) });",
            "wrong-queue",
            "other direction",
        ),
        ("@map(s, x, x);", "not-callable", "function"),
        ("@map(main, x);", "task-called", "task"),
    ] {
        let (got, report) = fault(ARRAYS, code);
        assert_eq!(got, want, "{code}\n{report}");
        assert!(report.contains(words), "{code}\n{report}");
    }
}
