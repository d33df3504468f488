//! A compilation ends soon after nobody wants it any more, wherever it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dflow_compiler::{Compiled, MemoryWorld, Options, Stage, Stop, compile, dump};

const PROGRAM: &str = r#"
tile worker {
  param x: u16;
  var table = @zeros([8]u16);
  fn sum() u16 {
    var all: u16 = 0;
    inline for (@range(u16, 200)) |i| { all += i * x; }
    return all;
  }
  task main() void { table[0] = sum(); }
  comptime { const id = @get_local_task_id(8); @bind_local_task(main, id); @activate(id); }
}
layout {
  @set_rectangle(70, 70);
  const red = @get_color(3);
  for (@range(u16, 70)) |x| {
    for (@range(u16, 70)) |y| {
      @set_tile_code(x, y, worker, .{ .x = x });
      @set_color_config(x, y, red, .{ .routes = .{ .rx = .{WEST}, .tx = .{EAST} } });
    }
  }
}
"#;

/// Options that end the compilation at the question of a number; and the questions asked so far.
fn ending_at(number: u64) -> (Options, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&asked);
    let stop = Stop(Arc::new(move || counter.fetch_add(1, Ordering::Relaxed) >= number));
    (Options { stop: Some(stop), ..Options::default() }, asked)
}

#[test]
fn whoever_gives_up_has_no_image_and_no_faults() {
    let world = MemoryWorld::new().with("a.dfl", PROGRAM);
    let (options, asked) = ending_at(u64::MAX);
    let whole = compile(&world, "a.dfl", options);
    assert!(whole.image.is_some() && !whole.given_up);
    let questions = asked.load(Ordering::Relaxed);
    assert!(questions > 50, "{questions}");
    // Some in the middle of analysis, and all of the later phases.
    for number in (0..questions).filter(|number| number % 7 == 0 || number + 12 > questions) {
        let (options, asked) = ending_at(number);
        let Compiled { image, diagnostics, given_up, .. } = compile(&world, "a.dfl", options);
        assert!(given_up && image.is_none(), "{number} of {questions}");
        let errors = diagnostics.iter().filter(|one| whole.diagnostics.iter().all(|it| it != *one));
        assert_eq!(errors.count(), 0, "{number} of {questions}");
        assert_eq!(asked.load(Ordering::Relaxed), number + 1, "who has said no is not asked again");
    }
}

#[test]
fn what_is_dumped_is_all_or_nothing() {
    let world = MemoryWorld::new().with("a.dfl", PROGRAM);
    for stage in [Stage::Plan, Stage::Ir, Stage::Layout] {
        let (options, _) = ending_at(3);
        let (text, compiled) = dump(&world, "a.dfl", options, stage);
        assert!(compiled.given_up && text.is_empty(), "{stage:?}");
    }
}

/// A loop without end that looks at nothing else.
#[test]
fn loops_without_end_are_left() {
    let source = "layout { @set_rectangle(1, 1); var i: u32 = 0; while (true) { i = i ^ 1; } }";
    let world = MemoryWorld::new().with("a.dfl", source);
    let (options, _) = ending_at(100);
    assert!(compile(&world, "a.dfl", options).given_up);
}
