//! Builtins of values, structs, modules, exports and host blocks: what they give, and what they
//! say when they are misused.

use dflow_compiler::{MemoryWorld, Options, compile};

/// Codes and messages of a program of one PE, whose top file is `text`.
fn said(world: MemoryWorld, text: &str) -> Vec<(&'static str, String)> {
    let world = world.with("main.dfl", text);
    let compiled = compile(&world, "main.dfl", Options { tests: true, ..Options::default() });
    let lines = compiled.diagnostics.iter();
    lines.map(|line| (line.code().id(), line.message().to_owned())).collect()
}

fn program(items: &str, tile: &str, host: &str) -> String {
    format!(
        "{items}\ntile t {{ {tile} }}\nlayout {{ @set_rectangle(2, 3);\n\
         for (@range(u16, 2)) |x| {{ for (@range(u16, 3)) |y| {{ @set_tile_code(x, y, t, .{{}}); }} }}\n\
         @export_name(\"data\", [*]f32, true); @export_name(\"count\", u16, false);\n\
         @export_name(\"go\", fn(i16, f32, bool, u32) void); }}\n\
         host {{ {host} }}\n"
    )
}

const EXPORTS: &str = "var data = @zeros([8]f32); var data_ptr: [*]f32 = &data; const count: u16 = 8; var seen: u32 = 0;\n\
    fn go(a: i16, b: f32, c: bool, d: u32) void { if (c) { data[0] = b + @as(f32, a); seen = d; } }\n\
    comptime { @export_symbol(data_ptr, \"data\"); @export_symbol(count); @export_symbol(go); }\n";

fn tile(code: &str) -> String {
    format!("{EXPORTS} {code}")
}

/// Fails unless a tile's code compiles.
fn fine(code: &str) {
    let text = program("", &tile(code), "");
    assert_eq!(said(MemoryWorld::new(), &text), [], "{text}");
}

/// Fails unless comptime statements in a tile run without a word.
fn holds(statements: &str) {
    fine(&format!("comptime {{ {statements} }}"));
}

/// The one error of a tile's code.
fn wrong(code: &str, id: &str) -> String {
    let text = program("", &tile(code), "");
    let said = said(MemoryWorld::new(), &text);
    assert!(said.len() == 1 && said[0].0 == id, "{id} expected: {said:?}\n{text}");
    said[0].1.clone()
}

fn host_fine(code: &str) {
    let text = program("", &tile(""), code);
    assert_eq!(said(MemoryWorld::new(), &text), [], "{text}");
}

fn host_wrong(code: &str, id: &str) -> String {
    let text = program("", &tile(""), code);
    let said = said(MemoryWorld::new(), &text);
    assert!(said.len() == 1 && said[0].0 == id, "{id} expected: {said:?}\n{text}");
    said[0].1.clone()
}

#[test]
fn shifts_are_those_of_the_width() {
    for (shift, result) in [
        ("@as(u100, 1) << 70", "1 << 70"),
        ("@as(u100, 3) << 99", "1 << 99"),
        ("@as(u100, 1) << 100", "0"),
        ("@as(u126, 1) << 125", "1 << 125"),
        ("@as(i126, 1) << 125", "-(1 << 125)"),
        ("@as(i126, -1) << 64", "-(1 << 64)"),
        ("@as(u64, 1) << 64", "0"),
        ("@as(u64, 3) << 63", "1 << 63"),
        ("@as(u16, 1) << 5_000_000_000", "0"),
        ("@as(u100, 1 << 99) >> 99", "1"),
        ("@as(i100, -1) >> 120", "-1"),
    ] {
        holds(&format!("@comptime_assert(({shift}) == {result});"));
    }
}

#[test]
fn conversions_and_bits_are_known() {
    holds(
        "@comptime_assert(@as(i16, -3.7) == -3); @comptime_assert(@as(u8, @as(u16, 0x1234)) == 0x34);",
    );
    holds("@comptime_assert(@as(bool, 2)); @comptime_assert(@as(f32, 3) == 3.0);");
    holds("@comptime_assert(@bitcast(u32, @as(f32, 1.0)) == 0x3f800000);");
    holds(
        "@comptime_assert(@bitcast(f32, 0x40000000) == 2.0); @comptime_assert(@bitcast(i16, @as(u16, 0xffff)) == -1);",
    );
    holds("@comptime_assert(@sqrt(@as(f32, 9.0)) == 3.0); @comptime_assert(@sqrt(2) > 1.41);");
    wrong("comptime { const x = @bitcast(u32, @as(u16, 1)); }", "invalid-argument");
    wrong("comptime { const x = @bitcast(u32, \"abc\"); }", "invalid-argument");
    wrong("comptime { const x = @sqrt(-1.0); }", "value-out-of-range");
    wrong("comptime { const x = @sqrt(true); }", "type-mismatch");
}

#[test]
fn arrays_and_their_types() {
    holds(
        "const T = [3, 4]i16; @comptime_assert(@element_count(T) == 12); @comptime_assert(@rank(T) == 2);",
    );
    holds("const d = @dimensions([3, 4]i16); @comptime_assert(d[0] == 3 and d[1] == 4);");
    holds("@comptime_assert(@is_same_type(@element_type([3]f16), @fp16()));");
    holds("const c = @constants([5]u32, 7); @comptime_assert(c[4] == 7);");
    holds("const z = @zeros([1000000000]u32); @comptime_assert(z[999999999] == 0);");
    wrong("comptime { const z = @zeros([3]bool); }", "invalid-argument");
    wrong("comptime { const z = @rank(u16); }", "invalid-argument");
}

#[test]
fn strings_and_ranges() {
    holds("@comptime_assert(@strlen(@strcat(\"ab\", \"cde\", @get_string_from_byte(33))) == 6);");
    holds(
        "@comptime_assert(@strcat(\"a\", \"b\") == \"ab\"); const a = @get_array(\"hi\"); @comptime_assert(a[1] == 105);",
    );
    holds(
        "const r = @range(i16, 3, 9, 2); @comptime_assert(@range_start(r) == 3 and @range_stop(r) == 9 and @range_step(r) == 2);",
    );
    wrong("comptime { const r = @range(i16, 0, 4, 0); }", "value-out-of-range");
    wrong("comptime { const r = @range(i16, 0, 4); }", "wrong-argument-count");
    wrong("comptime { const r = @range(f32, 4); }", "invalid-argument");
    wrong("comptime { const s = @strlen(3); }", "type-mismatch");
    wrong(
        "fn f(n: u16) void { const r = @range(u16, n); } comptime { @export_symbol(f, \"f\"); }",
        "not-comptime",
    );
}

#[test]
fn questions_of_types() {
    fine(
        "fn twice(x: anytype) @type_of(x) { return x + x; }\n\
          fn f(n: u16) void { seen = @as(u32, twice(n)); data[0] = twice(data[1]); const T = @type_of(data[n]); const y: T = 2.0; data[2] = y; }\n\
          comptime { @activate(@get_local_task_id(9)); @bind_local_task(k, @get_local_task_id(9)); } task k() void { f(3); }",
    );
    holds(
        "@comptime_assert(@is_same_type(@type_of(data), [8]f32)); @comptime_assert(@is_comptime()); @comptime_assert(@is_arch(\"wse2\"));",
    );
    wrong("comptime { const a = @is_arch(\"wse9\"); }", "invalid-argument");
}

#[test]
fn assertions_and_output() {
    assert_eq!(
        wrong("comptime { @comptime_assert(1 > 2, \"one is less\"); }", "assertion-failed"),
        "assertion failed: one is less"
    );
    wrong("comptime { @assert(false); }", "assertion-failed");
    wrong(
        "task k(n: u16) void { @comptime_assert(n > 2); } comptime { @bind_data_task(k, @get_data_task_id(@get_color(1))); }",
        "not-comptime",
    );
    let printed = wrong(
        "comptime { @comptime_print(\"n\", 3, .{ .a = true, .b = \"x\" }, [2]u8{ 1, 2 }, f32, @zeros([4]i16)); }",
        "comptime-output",
    );
    assert_eq!(printed, "n 3 .{ .a = true, .b = \"x\" } [2]u8{ 1, 2 } f32 [4]i16{ 0, … }");
}

#[test]
fn structs_by_name() {
    holds(
        "const s = @concat_structs(.{ .a = 1 }, .{ .b = 2 }); @comptime_assert(s.a + s.b == 3); @comptime_assert(@has_field(s, \"b\") and !@has_field(s, \"c\"));",
    );
    holds(
        "const s = @concat_structs(.{ 1 }, .{ 2, 3 }); @comptime_assert(s[2] == 3); const e = @concat_structs(.{}, .{ .a = 1 }); @comptime_assert(@field(e, \"a\") == 1);",
    );
    holds(
        "var s: struct { a: u16, b: u16 } = .{ .a = 1, .b = 2 }; @field(s, \"b\") = 7; @comptime_assert(s.b == 7);",
    );
    wrong("comptime { const s = @concat_structs(.{ .a = 1 }, .{ .a = 2 }); }", "duplicate-field");
    wrong("comptime { const s = @concat_structs(.{ .a = 1 }, .{ 2 }); }", "type-mismatch");
    wrong("comptime { const s = @field(.{ .a = 1 }, \"b\"); }", "unknown-field");
}

#[test]
fn modules_are_instances() {
    let world = || {
        MemoryWorld::new()
            .with("lib/m.csl", "param n: u16; param o = 3; const twice = 2 * n + o; var state: u16 = n; const deep = @import_module(\"d.csl\");")
            .with("lib/d.csl", "const k = 5;")
            .with("a.csl", "const b = @import_module(\"b.csl\");")
            .with("b.csl", "const a = @import_module(\"a.csl\");")
    };
    let items = "const m = @import_module(\"lib/m.csl\", .{ .n = 4 }); const m2 = @import_module(\"lib/m.csl\", .{ .n = 5, .o = 0 });";
    let tile = "comptime { @comptime_assert(m.twice == 11 and m2.twice == 10 and m.deep.k == 5); @comptime_assert(@has_field(m, \"twice\")); }";
    let text = program(items, &format!("{EXPORTS} {tile}"), "");
    assert_eq!(said(world(), &text), []);
    let extra = "const m = @import_module(\"lib/m.csl\", .{ .n = 4, .q = 1 });";
    let told =
        said(world(), &program(extra, &format!("{EXPORTS} comptime {{ const x = m.twice; }}"), ""));
    assert_eq!(told, [("unknown-param", "the module has no param `q`".to_owned())]);
    let cycle = said(
        world(),
        &program(
            "const a = @import_module(\"a.csl\");",
            &format!("{EXPORTS} comptime {{ const x = a.b; }}"),
            "",
        ),
    );
    assert!(cycle.len() == 1 && cycle[0].0 == "import-cycle", "{cycle:?}");
    let missing = said(
        world(),
        &program(
            "const a = @import_module(\"x.csl\");",
            &format!("{EXPORTS} comptime {{ const x = a.b; }}"),
            "",
        ),
    );
    assert!(missing.len() == 1 && missing[0].0 == "file-not-found", "{missing:?}");
}

#[test]
fn exports_are_checked() {
    fine(
        "var args = @zeros([15]u32); fn run(id: u16) void { @launch_export(id, &args); const p = @get_tensor_ptr(id); p[1] = @get_symbol_value(u16, @get_symbol_id(count)); }\n\
          task k() void { if (@has_exported_tensors()) run(@get_symbol_id(\"go\")); } comptime { @bind_local_task(k, @get_local_task_id(9)); }",
    );
    wrong("comptime { @export_symbol(count); }", "export-duplicate");
    wrong("var v = @zeros([3]u16); comptime { @export_symbol(v, \"v\"); }", "invalid-type");
    wrong("comptime { @export_symbol(3, \"v\"); }", "invalid-argument");
    wrong("task k() void {} comptime { @export_symbol(k); }", "invalid-argument");
    wrong("fn f() void {} comptime { @export_symbol(f); }", "unresolved-export");
    wrong(
        "var x: u16 = 1; task k() void { const a = @get_symbol_id(x); } comptime { @bind_local_task(k, @get_local_task_id(9)); }",
        "unresolved-export",
    );
    let twice = program("", &tile(""), "").replace(
        "@export_name(\"count\", u16, false);",
        "@export_name(\"count\", u16, false); @export_name(\"count\", u16, false);",
    );
    let told = said(MemoryWorld::new(), &twice);
    assert!(told.len() == 1 && told[0].0 == "export-duplicate", "{told:?}");
    let flag = program("", &tile(""), "").replace("u16, false", "u16");
    let told = said(MemoryWorld::new(), &flag);
    assert!(told[0].0 == "wrong-argument-count", "{told:?}");
    let wide = program("", &tile(""), "").replace("fn(i16, f32, bool, u32) void", "fn(u64) void");
    let told = said(MemoryWorld::new(), &wide);
    assert!(told[0].0 == "invalid-signature", "{told:?}");
}

#[test]
fn host_code_moves_words() {
    host_fine(
        "const a = if (@has_input(\"a\")) @input(\"a\", f32) else @alloc(f32, 48);\n\
         @copy_in(\"data\", @all(), a); @launch(\"go\", 1, 2.5, true, 7);\n\
         var v = @zeros([8]f32); @copy_in(\"data\", .{ .x = 1, .y = 2, .w = 1, .h = 1 }, &v);\n\
         const n = @setting(\"n\", u64, 8); const r = @rect(0, 0, 2, 1);\n\
         const back = @copy_out(\"data\", r, n); @output(\"back\", @slice(back, 0, n));\n\
         @print(\"{} of {} {{}} {} {} {}\", .{ back[0], back.len, \"text\", 3, 1.5 });\n\
         for (back) |e, i| @expect(e == @as(f32, i), \"at {}: {}\", .{ i, e });\n\
         @expect(back.len == n); @print(\"done\"); @wait();\n\
         @print(\"{} {} {} {}\", .{ @cycles(), @clock_rate(), @wavelets(), @log10(@sqrt(@as(f64, n))) });",
    );
    host_fine(
        "const c = @get_color(3); const words = @alloc(u32, 64); const counts = @alloc(i64, 3);\n\
         var y: u64 = 0; while (y < 3) : (y += 1) { @stream_in(c, .{ .x = 0, .y = y, .w = 1, .h = 1 }, @slice(words, 0, y)); }\n\
         @stream_out(c, @all(), words); @stream_out_rows(c, .{ .x = 1, .y = 0, .w = 1, .h = 3 }, words, 20, counts); @wait();",
    );
}

#[test]
fn host_code_is_checked() {
    host_wrong("var v = @zeros([8]u32); @copy_in(\"data\", @all(), &v);", "host-type");
    host_wrong("const b = @copy_out(\"count\", @all(), 1);", "host-type");
    host_wrong("@launch(\"data\");", "host-type");
    host_wrong("@launch(\"og\");", "host-symbol");
    host_wrong("@launch(\"go\", 1);", "wrong-argument-count");
    host_wrong("@launch(\"go\", 70000, 1.0, true, 1);", "value-out-of-range");
    host_wrong(
        "const b = @copy_out(\"data\", .{ .x = 1, .y = 0, .w = 2, .h = 1 }, 1);",
        "outside-rectangle",
    );
    host_wrong("const b = @copy_out(\"data\", .{ .x = 1, .y = 0, .w = 1 }, 1);", "missing-field");
    host_wrong(
        "const b = @copy_out(\"data\", .{ .x = 1, .y = 0, .w = 1, .q = 1 }, 1);",
        "unknown-option",
    );
    host_wrong("const b = @copy_out(\"data\", 3, 1);", "type-mismatch");
    host_wrong("@print(\"{} {}\", .{ 1 });", "wrong-argument-count");
    host_wrong("@print(\"{\", .{});", "invalid-argument");
    host_wrong("const x = @input(\"a\", bool);", "host-type");
    host_wrong("@output(\"a\", 3);", "host-type");
    host_wrong("const x = @pe_coord_x();", "builtin-context");
    host_wrong(
        "const a: [4]u32 = @zeros([4]u32); @stream_out(@get_color(1), @all(), &a);",
        "not-assignable",
    );
}

#[test]
fn counts_of_shifts() {
    for op in ["1 << -1", "@as(u16, 1) << -1", "0 << -1", "1 >> -1"] {
        let message = wrong(&format!("comptime {{ const x = {op}; }}"), "value-out-of-range");
        assert!(message.ends_with("shift by -1, a negative count"), "{op}: {message}");
    }
    let message = wrong("comptime { const x = 1 << 127; }", "comptime-overflow");
    assert!(message.ends_with("the result has more than 127 bits"), "{message}");
    holds("@comptime_assert(@as(u16, 1) << 16 == 0); @comptime_assert(1 << 126 > 0);");
}

#[test]
fn ranges_end_at_the_greatest_number() {
    holds(
        "comptime var rounds: u16 = 0;\n\
         for (@range(comptime_int, 0, 0x7fffffffffffffffffffffffffffffff,\n\
             0x7ffffffffffffffffffffffffffffffe)) |i| rounds += 1;\n\
         @comptime_assert(rounds == 2);",
    );
}
