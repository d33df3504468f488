//! Params that differ on every PE must not cost a compilation per PE.

use dflow_compiler::{Compiled, MemoryWorld, Options, compile};
use dflow_ir::image::Image;
use dflow_syntax::diagnostic::render::{self, Color};

const PROGRAM: &str = r#"
param side: u16 = 10;

tile worker {
  param x: u16;
  param y: u16;
  param settings: comptime_struct;
  const west_edge = x == 0;
  export var place: u32 = @as(u32, y) * 1000 + @as(u32, x);
  export var table = [3]u16{ x, y, x + y };
  var last: u16 = 0;
  task main() void {
    // Decides something: one program for the west edge, one for the others.
    if (west_edge) {
      last = settings.scale * y + 1;
    } else {
      last = settings.scale * x + y;
    }
  }
  comptime {
    @comptime_assert(x < 1000 and y < 1000);
    const id = @get_local_task_id(8);
    @bind_local_task(main, id);
    @activate(id);
  }
}

layout {
  @set_rectangle(side, side);
  for (@range(u16, side)) |x| {
    for (@range(u16, side)) |y| {
      @set_tile_code(x, y, worker, .{ .x = x, .y = y, .settings = .{ .scale = @as(u16, 3) } });
    }
  }
}
"#;

fn image(side: u16) -> Image {
    let world = MemoryWorld::new().with("a.dfl", PROGRAM);
    let params = vec![("side".to_owned(), side.to_string())];
    let Compiled { image, sources, diagnostics, dialect: _, given_up: _ } =
        compile(&world, "a.dfl", Options { params, ..Options::default() });
    let text: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| render::human(&sources, diagnostic, Color::Never))
        .collect();
    image.unwrap_or_else(|| panic!("{}", text.join("\n")))
}

#[test]
fn programs_do_not_grow_with_the_mesh() {
    let small = image(10);
    let large = image(100);
    assert_eq!(large.placement.rect.area(), 10_000);
    assert_eq!(small.programs.len(), 2, "the west edge and the rest");
    assert_eq!(large.programs.len(), small.programs.len());
}

#[test]
fn every_pe_has_its_own_constants() {
    let image = image(100);
    for (id, program) in &image.programs {
        let slots = &image.placement.slots[id];
        let rect = image.placement.rect;
        let pes = rect.coords().filter(|&at| image.program_at(at) == Some(id));
        let per_pe = program.slots.len();
        assert!(per_pe > 0, "coordinates reach data and code");
        for (at, coord) in pes.enumerate() {
            let own = &slots[at * per_pe..(at + 1) * per_pe];
            let place = u64::from(coord.y) * 1000 + u64::from(coord.x);
            assert!(own.contains(&place), "PE ({}, {}) has {own:?}", coord.x, coord.y);
        }
    }
}

#[test]
fn steps_grow_with_the_rectangle() {
    // Ten colors on each PE fit what the rectangle itself adds to the limit.
    const ROUTES: &str = r#"
layout {
  @set_rectangle(75, 99);
  for (@range(u16, 75)) |x| {
    for (@range(u16, 99)) |y| {
      @set_tile_code(x, y);
      for (@range(u16, 10)) |c| {
        const side = if ((x + c) % 2 == 0) WEST else EAST;
        @set_color_config(x, y, @get_color(c), .{ .routes = .{ .rx = .{side}, .tx = .{RAMP} } });
      }
    }
  }
}
"#;
    const ENDLESS: &str = "layout { @set_rectangle(2, 2); while (true) {} }";
    let codes = |text: &str| -> Vec<&str> {
        let world = MemoryWorld::new().with("a.csl", text);
        let options = Options { comptime_steps: 1_000, ..Options::default() };
        let compiled = compile(&world, "a.csl", options);
        compiled.diagnostics.iter().map(|diagnostic| diagnostic.code().id()).collect()
    };
    assert_eq!(codes(ROUTES), Vec::<&str>::new());
    assert_eq!(codes(ENDLESS), ["comptime-limit"]);
}
