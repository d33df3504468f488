//! The layout may import modules, but it is no PE: what configures one is an error there.

use dflow_compiler::{MemoryWorld, Options, compile};

fn codes(module: &str, top: &str) -> Vec<&'static str> {
    let tile = "task t() void {} comptime { @bind_local_task(t, @get_local_task_id(9)); }";
    let world = MemoryWorld::new().with("m.csl", module).with("tile.csl", tile).with("a.csl", top);
    let compiled = compile(&world, "a.csl", Options::default());
    compiled.diagnostics.iter().map(|diagnostic| diagnostic.code().id()).collect()
}

const TOP: &str = "const m = @import_module(\"m.csl\"); \
    layout { @set_rectangle(1, 1); const v = m.value; @set_tile_code(0, 0, \"tile.csl\"); }";

#[test]
fn a_module_of_constants_serves_the_layout() {
    let module = "const value: u16 = 3; comptime { @comptime_assert(value == 3); }";
    assert_eq!(codes(module, TOP), [""; 0]);
}

#[test]
fn a_module_that_configures_a_pe_does_not() {
    for module in [
        "const value = 1; task t() void {} comptime { @bind_local_task(t, @get_local_task_id(9)); }",
        "const value = 1; comptime { @activate(@get_local_task_id(9)); }",
        "const value = 1; comptime { @initialize_queue(@get_input_queue(2), .{ .color = @get_color(1) }); }",
        "const value = 1; comptime { @export_symbol(value, \"v\"); }",
        "var buffer: [8]u32; const value = @allocate_fifo(buffer);",
        "fn f() void {} const value = @get_symbol_id(f);",
        "const value = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = @get_color(1) });",
    ] {
        assert_eq!(codes(module, TOP), ["builtin-context"], "{module}");
    }
}
