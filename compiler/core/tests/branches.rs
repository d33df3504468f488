//! The type of a choice, and what is said of values that do not fit it.

use dflow_compiler::{Compiled, MemoryWorld, Options, Stage, dump};
use dflow_syntax::diagnostic::render::{self, Color};

/// What is said of a function of a PE that consists of some statements.
fn said(stmts: &str) -> String {
    compiled(stmts, Stage::Image).1
}

/// The text of a stage for it, and what is said.
fn compiled(stmts: &str, stage: Stage) -> (String, String) {
    let code = format!(
        "const N = 1;\nconst Pair = struct {{ a: u32, b: u32 }};\n\
         var x: u32 = 3;\nvar byte: u8 = 7;\nvar arr = [4]u32{{ 1, 2, 3, 4 }};\n\
         var many: [*]u32 = &arr;\nvar out = @zeros([4]u32);\n\
         fn pair() Pair {{ return .{{ .a = x, .b = 5 }}; }}\n\
         fn go() void {{\n{stmts}\n}}\n\
         comptime {{ @export_symbol(go); }}\n"
    );
    let layout = "layout {\n@set_rectangle(1, 1);\n@set_tile_code(0, 0, \"pe.csl\");\n\
                  @export_name(\"go\", fn () void);\n}\n";
    let world = MemoryWorld::new().with("a.csl", layout).with("pe.csl", code);
    let options = Options::default();
    let (text, Compiled { sources, diagnostics, .. }) = dump(&world, "a.csl", options, stage);
    let said = diagnostics.iter().map(|said| render::human(&sources, said, Color::Never));
    (text, said.collect())
}

#[test]
fn literals_and_pointers_to_arrays_take_the_type_that_is_complete() {
    let choices = [
        "blk: { if (x == 3) break :blk pair(); break :blk .{ .a = 1, .b = 2 }; }",
        "blk: { if (x == 3) break :blk .{ .a = 1, .b = 2 }; break :blk pair(); }",
        "if (x == 3) pair() else .{ .a = 1, .b = 2 }",
        "switch (x) { 1 => .{ .a = 1, .b = 2 }, 2 => .{ .a = 3, .b = @as(u32, 4) }, else => pair() }",
    ];
    for choice in choices {
        let text = said(&format!("const r = {choice};\nout[0] = r.a;"));
        assert_eq!(text, "", "{choice}");
    }
    let choices = [
        "blk: { if (x == 3) break :blk many; break :blk &arr; }",
        "if (x == 3) &arr else many",
        "switch (x) { 1 => many, else => &arr }",
    ];
    for choice in choices {
        let text = said(&format!("const r = {choice};\nout[0] = r[1];"));
        assert_eq!(text, "", "{choice}");
    }
}

#[test]
fn a_number_takes_the_widest_type_wherever_it_stands() {
    let choice = "switch (x) { 1 => byte, 2 => @as(i16, 1), else => @as(i32, 2) }";
    assert_eq!(said(&format!("const r = {choice};\nout[0] = @as(u32, r);")), "");
    let text = said("const r = if (x == 3) pair() else x;\nout[0] = r.a;");
    assert!(text.contains("`Pair` is needed here, this is `u32`"), "{text}");
}

#[test]
fn what_does_not_fit_is_marked_where_it_stands() {
    let choices = [
        ("const r = blk: { if (x == 3) break :blk byte; break :blk 300; };", "300"),
        ("const r = blk: { if (x == 3) break :blk 300; break :blk byte; };", "300"),
        ("const r: u8 = blk: { if (x == 3) break :blk 1; break :blk 300; };", "300"),
        ("const r: u8 = blk: { break :blk 300; };", "300"),
        ("const r = blk: { if (x == 3) break :blk x; break :blk pair(); };", "pair()"),
        ("const r = if (x == 3) x else pair();", "pair()"),
        ("const r = switch (x) { 1 => x, 2 => pair(), else => x };", "pair()"),
    ];
    for (choice, value) in choices {
        let text = said(&format!("{choice}\nout[0] = r;"));
        let column = choice.find(value).map_or(0, |at| at + 1);
        assert!(text.contains(&format!("pe.csl:10:{column}")), "{choice}\n{text}");
        let mark = format!(" {} ", "^".repeat(value.len()));
        assert!(text.contains(&mark), "{choice}\n{text}");
    }
}

#[test]
fn long_chains_of_untyped_names_are_looked_at_once() {
    let chain = vec!["N"; 480].join(" + ");
    let stmt = format!("out[0] = {chain} + x;\n");
    let began = std::time::Instant::now();
    assert_eq!(said(&stmt.repeat(20)), "");
    assert!(began.elapsed().as_secs_f32() < 3.0, "{:?}", began.elapsed());
}

/// A right-nested sum of choices, around something.
fn nest(choice: &str, depth: usize, inner: &str) -> String {
    format!("{}{inner}{}", format!("{choice} + (").repeat(depth), ")".repeat(depth))
}

#[test]
fn deep_nests_of_choices_take_the_type_of_what_is_innermost() {
    let choices = [
        "(if (x == 3) 1 else 2)",
        "(blk: { if (x == 3) break :blk 1; const k = 2; break :blk k; })",
        "(switch (x) { 1 => 2, else => 1 })",
    ];
    let began = std::time::Instant::now();
    for choice in choices {
        let sum = nest(choice, 120, "byte");
        let text = said(&format!("const r: u8 = {sum};\nout[0] = r;"));
        assert_eq!(text, "", "{choice}");
        let text = said(&format!("if ({sum} == byte) out[0] = 1;"));
        assert_eq!(text, "", "{choice}");
    }
    let inner = (0..60).fold("byte".to_owned(), |inner, at| {
        format!("(if (x == 3) 1 else 2) + b{at}: {{ const k = 1; break :b{at} {inner}; }}")
    });
    assert_eq!(said(&format!("if ({inner} == byte) out[0] = 1;")), "");
    assert!(began.elapsed().as_secs_f32() < 10.0, "{:?}", began.elapsed());
}

#[test]
fn a_look_ahead_leaves_nothing_behind() {
    let sum = "(if (x == 3) 1 else 2) + blk: { const p = pair(); break :blk p.a; }";
    let (text, said_of_it) = compiled(&format!("out[0] = {sum};"), Stage::Typed);
    assert_eq!(said_of_it, "");
    assert_eq!(text.matches("[8 align 4]").count(), 3, "{text}");
    let written = "comptime var k: i16 = 0;\nout[0] = (if (x == 3) 1 else 2) + blk: { k += 1;\n\
                   break :blk (if (x == 3) 1 else 2) + (d: { k += 1; break :d byte; }); };\n\
                   @comptime_assert(k == 2);";
    assert_eq!(said(written), "");
    // What is looked at in each round has the type that it has there.
    let rounds = "inline for ([3]u16{ 1, 2, 300 }) |n| {\n\
                  out[0] += (if (x == 3) 1 else n) + (if (x == 3) 1 else n) + n; }";
    assert_eq!(said(rounds), "");
}
