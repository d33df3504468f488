//! Spellings that programs of all ages use, each against the plain one.

use dflow_compiler::{Compiled, MemoryWorld, Options, Stage, dump};
use dflow_syntax::diagnostic::render::{self, Color};

/// The text of a stage, and what is said.
fn text(
    world: &MemoryWorld,
    root: &str,
    stage: Stage,
    params: &[(&str, &str)],
) -> (String, String) {
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let options = Options { params: params.collect(), ..Options::default() };
    let (text, Compiled { sources, diagnostics, .. }) = dump(world, root, options, stage);
    let said = diagnostics.iter().map(|said| render::human(&sources, said, Color::Never));
    (text, said.collect())
}

/// Configurations of a plan, without places in the source.
fn configs(config: &str, params: &[(&str, &str)]) -> String {
    let program = format!(
        "param red: color;\nconst bits = @import_module(\"<directions>\");\n\
         const Pop = struct {{ always_pop: bool }};\n\
         layout {{\n@set_rectangle(1, 1);\n@set_tile_code(0, 0, \"pe.csl\");\n\
         @set_color_config(0, 0, red, {config});\n}}\n"
    );
    let world = MemoryWorld::new().with("a.csl", program).with("pe.csl", "");
    let (image, said) = text(&world, "a.csl", Stage::Image, params);
    assert!(!said.contains("error"), "{said}");
    let lines = image.lines().filter(|line| line.contains("color")).map(|line| {
        let end = line.find(" @").or_else(|| line.find(" !")).unwrap_or(line.len());
        line[..end].to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn routes_and_positions_as_bits_are_those_of_directions() {
    let bits = configs(
        ".{ .routes = bits.RX_WEST | bits.TX_RAMP | bits.TX_EAST, .switches = .{ \
         .pos1 = bits.dirToTxBits(EAST), .pos2 = bits.dirToRxBits(RAMP), .pos3 = 0, \
         .current_switch_pos = 1, .pop_mode = Pop{ .always_pop = true } } }",
        &[("red", "4")],
    );
    let names = configs(
        ".{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP, EAST } }, .switches = .{ \
         .pos1 = .{ .tx = EAST }, .pos2 = .{ .rx = RAMP }, .pos3 = .{ .invalid = true }, \
         .current_switch_pos = 1, .pop_mode = .{ .always_pop = true } } }",
        &[("red", "4")],
    );
    assert!(bits.contains("color4"), "{bits}");
    assert_eq!(bits, names);
}

#[test]
fn a_color_by_number_must_be_one() {
    let world = MemoryWorld::new().with(
        "a.csl",
        "param red: color;\nlayout {\n@set_rectangle(1, 1);\n@set_tile_code(0, 0);\n\
         @set_color_config(0, 0, red, .{ .routes = .{} });\n}\n",
    );
    let (_, said) = text(&world, "a.csl", Stage::Plan, &[("red", "24")]);
    assert!(said.contains("error[param-value]"), "{said}");
    let (_, said) = text(&world, "a.csl", Stage::Plan, &[("red", "east")]);
    assert!(said.contains("error[param-value]"), "{said}");
}

#[test]
fn a_matrix_is_many_elements() {
    let world = MemoryWorld::new().with(
        "a.csl",
        "var m = @zeros([3, 4]f32);\nexport var p: [*]f32 = &m;\nexport var q: [*]const f32 = &m;\n\
         layout {\n@set_rectangle(1, 1);\n@set_tile_code(0, 0);\n}\n",
    );
    let (typed, said) = text(&world, "a.csl", Stage::Typed, &[]);
    assert_eq!(said, "");
    assert_eq!(typed.matches("address of m").count(), 2, "{typed}");
}

#[test]
fn modules_are_looked_for_beside_the_importer_then_beside_the_top_file() {
    let layout = "layout {\n@set_rectangle(1, 1);\n@set_tile_code(0, 0, \"parts/pe.csl\");\n}\n";
    let pe = "const near = @import_module(\"number.csl\");\n\
              const far = @import_module(\"parts/other.csl\");\n\
              export var sum: u16 = 10 * near.value + far.value;\n";
    let world = MemoryWorld::new()
        .with("top/a.csl", layout)
        .with("top/parts/pe.csl", pe)
        .with("top/parts/number.csl", "const value: u16 = 1;\n")
        .with("top/number.csl", "const value: u16 = 9;\n")
        .with("top/parts/other.csl", "const value: u16 = 2;\n");
    let (typed, said) = text(&world, "top/a.csl", Stage::Typed, &[]);
    assert_eq!(said, "");
    assert!(typed.contains("= 0c 00"), "{typed}");
    let world = world.with("top/parts/pe.csl", "const none = @import_module(\"none.csl\");\n");
    let (_, said) = text(&world, "top/a.csl", Stage::Typed, &[]);
    assert!(said.contains("`top/parts/none.csl` cannot be read"), "{said}");
}

#[test]
fn a_pointer_to_structs_is_exported_as_words() {
    let world = MemoryWorld::new().with(
        "a.csl",
        "const Triple = struct { i: u16, j: u16, x: f32 };\nconst Pair = struct { i: u16, j: u16, k: u16 };\n\
         var t: [3]Triple;\nvar p: [3]Pair;\nvar t_ptr: [*]Triple = &t;\nvar p_ptr: [*]Pair = &p;\n\
         comptime {\n@export_symbol(t_ptr, \"t\");\n@export_symbol(p_ptr, \"p\");\n}\n\
         layout {\n@set_rectangle(1, 1);\n@set_tile_code(0, 0);\n\
         @export_name(\"t\", [*]Triple, true);\n@export_name(\"p\", [*]Pair, true);\n}\n",
    );
    let (image, said) = text(&world, "a.csl", Stage::Image, &[]);
    assert_eq!(said, "");
    let exports: Vec<&str> = image.lines().filter(|line| line.contains("export")).collect();
    assert!(exports.iter().any(|line| line.contains("\"t\" pointer i32")), "{exports:?}");
    assert!(exports.iter().any(|line| line.contains("\"p\" pointer i16")), "{exports:?}");
}

#[test]
fn descriptors_that_name_a_color_only_get_queues() {
    let world = MemoryWorld::new().with(
        "a.csl",
        "var v = @zeros([4]u32);\nvar n: u16 = 0;\n\
         const memory = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{4} -> v[i] });\n\
         fn in(comptime c: u16) fabin_dsd {\n\
         return @get_dsd(fabin_dsd, .{ .extent = 4, .fabric_color = @get_color(c) });\n}\n\
         task main() void {\n@mov32(memory, in(3));\n@mov32(memory, in(4));\n@mov32(memory, in(3));\n\
         @mov32(@get_dsd(fabout_dsd, .{ .extent = 4, .fabric_color = @get_color(5) }), memory);\n\
         @mov32(@get_dsd(fabout_dsd, .{ .extent = 4, .fabric_color = @get_color(6) }), memory);\n\
         switch (n) {\n0 => @mov32(memory, 0),\nelse => void\n}\n}\n\
         comptime {\n@bind_local_task(main, @get_local_task_id(8));\n@activate(@get_local_task_id(8));\n}\n\
         layout {\n@set_rectangle(1, 1);\n@set_tile_code(0, 0);\n}\n",
    );
    let (typed, said) = text(&world, "a.csl", Stage::Typed, &[]);
    assert!(!said.contains("error"), "{said}");
    let places = [
        "fabin(queue 7,",
        "fabin(queue 6,",
        "fabout(queue 5, color 5,",
        "fabout(queue 4, color 6,",
    ];
    for place in places {
        assert!(typed.contains(place), "{place} is missing:\n{typed}");
    }
    assert_eq!(typed.matches("fabin(queue").count(), 2, "one per color:\n{typed}");
}
