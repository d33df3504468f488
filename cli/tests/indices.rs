//! Indices outside of arrays, reads of what nothing has written and traps of a host block: what is said, and where.
//!
//! Programs are written one line each, so that the line that is to blame is known: the code of
//! the PE stands on line 5, the host block on line 3 of a program that has nothing else.

#![forbid(unsafe_code)]

mod programs;

use programs::{dflowc, ends, host, program};

#[test]
fn the_host_block_can_trap_too() {
    let zero = host("var z: u64 = 0; @print(\"{}\", .{7 / z});");
    ends(&zero, &[], 3, &["trap in the host block: p.dfl:3:", "integer division by zero"]);
    let index = host("var z: [4]u64; var i: u64 = 4; z[i] = 3; @print(\"{}\", .{z[0]});");
    let wanted = ["trap in the host block: p.dfl:3:", "index 4 is outside an array of 4 elements"];
    ends(&index, &[], 3, &wanted);
    let slice = host("var i: i32 = -1; const z = @alloc(u64, 4); @print(\"{}\", .{z[i]});");
    let wanted = ["trap in the host block: p.dfl:3:", "index -1 is outside an array of 4 elements"];
    ends(&slice, &[], 3, &wanted);
    // Behind a pointer: also where memory would suffice.
    for far in [40, 20] {
        let code = format!("const z = @alloc(u64, 4).ptr; var i: u64 = 1 << {far}; z[i] = 3;");
        let wanted = ["trap in the host block: p.dfl:3:", "outside the memory"];
        ends(&host(&code), &[], 3, &wanted);
    }
}

#[test]
fn indices_are_looked_at_when_asked_for_and_cycles_stay_the_same() {
    // Half of an array: what is behind it is there.
    let code = "var all: [8]u16; const a: *[4]u16 = @ptrcast(*[4]u16, &all); fn go() void { \
        var i: i16 = 0; while (i < LAST) : (i += 1) { a.*[i] += 1; } sys.unblock_cmd_stream(); }";
    let (good, bad) = (program(&code.replace("LAST", "4")), program(&code.replace("LAST", "5")));
    let cycles = |args: &[&str]| {
        let output = dflowc(&good, &[args, &["--stats", "json"]].concat());
        let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        stats["cycle_count"].as_u64().expect("a count")
    };
    assert_eq!(cycles(&[]), cycles(&["--check-bounds"]));
    assert_eq!(dflowc(&bad, &[]).status.code(), Some(0));
    ends(&bad, &["--check-bounds"], 3, &["p.dfl:5:", "index 4 is outside an array of 4 elements"]);
    let below = program(&code.replace("LAST", "4").replace("= 0;", "= -1;"));
    ends(&below, &["--check-bounds"], 3, &["p.dfl:5:", "index -1 is outside an array"]);
}

#[test]
fn reads_of_what_nothing_has_written_are_told_when_asked_for() {
    let source =
        program("var a: u32; var b: u32; fn go() void { b = a; sys.unblock_cmd_stream(); }");
    let said = |args: &[&str]| {
        let output = dflowc(&source, args);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).contains("`a` is read at byte 0")
    };
    assert!(!said(&[]));
    assert!(said(&["--track-uninitialized"]));
    assert!(said(&["--track-uninitialised"]), "the old spelling");
}

#[test]
fn arrays_longer_than_addresses_reach_are_looked_at_too() {
    let code = "var all: [8]u8; const long: *[65536]u8 = @ptrcast(*[65536]u8, &all); var i: i16 = FIRST; \
        fn go() void { long.*[i] = 1; sys.unblock_cmd_stream(); }";
    let inside = program(&code.replace("FIRST", "3"));
    assert_eq!(dflowc(&inside, &["--check-bounds"]).status.code(), Some(0));
    let below = program(&code.replace("FIRST", "-1"));
    let wanted = ["p.dfl:5:", "index -1 is outside an array of 65536 elements"];
    ends(&below, &["--check-bounds"], 3, &wanted);
}

#[test]
fn a_slice_is_the_one_that_it_was_before_its_index() {
    let source = "fn other(p: *[]u32, with: []u32) u32 { p.* = with; return 6; }\n";
    let replaced = "var s = @alloc(u32, 4); const t = @alloc(u32, 8); s[other(&s, t)] = 7;";
    let wanted = ["p.dfl:3:", "index 6 is outside an array of 4 elements"];
    ends(&host(replaced).replace("tile t {}\n", &format!("tile t {{}} {source}")), &[], 3, &wanted);
    let kept = "var s = @alloc(u32, 8); const t = @alloc(u32, 2); s[other(&s, t)] = 7;";
    let source = host(kept).replace("tile t {}\n", &format!("tile t {{}} {source}"));
    assert_eq!(dflowc(&source, &[]).status.code(), Some(0));
}
