//! The programs of the engine's benches compute what they say.
#![forbid(unsafe_code)]

use dflow_compiler::{MemoryWorld, Options, compile};
use dflow_ir::image::Image;
use dflow_ir::mesh::Coord;
use dflow_ir::target::TargetId;
use dflow_reference::cg::{self, Shape};
use dflow_runtime::config::{CodeKind, Config, EngineKind, Limits};
use dflow_runtime::machine::{Machine, Running};
use dflow_runtime::outcome::RunEnd;

#[path = "../benches/engine/rows.rs"]
mod rows;

const REDUCE: (&str, &str) = ("reduce.csl", include_str!("../benches/engine/programs/reduce.csl"));

fn image(path: &str, text: &str, params: &[(&str, usize)], target: &str) -> Image {
    let world = MemoryWorld::new().with(path, text).with(REDUCE.0, REDUCE.1);
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.to_string()));
    let target = TargetId::from_name(target).expect("a target");
    let options = Options { params: params.collect(), target, ..Options::default() };
    let compiled = compile(&world, path, options);
    compiled.image.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

fn run(image: &Image) -> Machine<Running> {
    run_on(image, EngineKind::Exact)
}

fn run_on(image: &Image, engine: EngineKind) -> Machine<Running> {
    let config = Config { engine, ..Config::default() };
    let mut machine = Machine::load(image, &config).expect("it is valid").start();
    machine.run(&[], &Limits::default());
    machine
}

/// A variable of every PE, in rows.
fn read(image: &Image, machine: &mut Machine<Running>, shape: Shape, name: &str) -> Vec<f32> {
    let pes = (0..shape.ny).flat_map(|y| (0..shape.nx).map(move |x| (x as u16, y as u16)));
    let mut values = Vec::new();
    for (x, y) in pes {
        let at = Coord { x, y };
        let program = image.program_at(at).expect("every PE has one");
        let globals = &image.programs[program].globals;
        let (id, global) = globals.iter().find(|(_, global)| global.name == name).expect(name);
        let map = &image.memory[program];
        let address = map.globals.iter().find(|(known, _)| *known == id).expect("placed").1;
        let bytes = machine.read_memory(at, address, global.size).expect("inside the memory");
        values.extend(bytes.as_chunks::<4>().0.iter().map(|&raw| f32::from_le_bytes(raw)));
    }
    values
}

const SHAPES: [Shape; 4] = [
    Shape { nx: 4, ny: 3, nz: 12 },
    Shape { nx: 1, ny: 1, nz: 5 },
    Shape { nx: 1, ny: 4, nz: 7 },
    Shape { nx: 5, ny: 1, nz: 2 },
];

fn sizes(shape: Shape) -> Vec<(&'static str, usize)> {
    vec![("width", shape.nx), ("height", shape.ny)]
}

/// As the bench does it, in the small size. What a row counts by its params alone is never 0: of such
/// rows only the end says something.
#[test]
fn every_row_of_the_bench_runs_and_counts_something() {
    for row in rows::ROWS {
        let image = row.image(false);
        let config = Config { engine: EngineKind::Flow, ..Config::default() };
        let mut machine = Machine::load(&image, &config).expect("it is valid").start();
        let end = machine.run(&[], &Limits::default());
        assert!(matches!(end, RunEnd::Idle { .. }), "{}: {end:?}", row.name);
        assert!(row.count(false, &machine.stats()) > 0, "{}", row.name);
    }
}

#[test]
fn conjugate_gradient_is_that_of_plain_code() {
    let text = include_str!("../benches/engine/programs/cg.dfl");
    for (shape, target) in SHAPES.iter().flat_map(|&s| [(s, "wse2"), (s, "wse3")]) {
        let params = [sizes(shape), vec![("n", shape.nz), ("rounds", 3)]].concat();
        let image = image("cg.dfl", text, &params, target);
        let mut machine = run(&image);
        let solved = cg::as_mesh::solve(shape, 3);
        for (name, expected) in [("x", solved.x), ("r", solved.r), ("p", solved.p)] {
            let found = read(&image, &mut machine, shape, name);
            assert_eq!(found, expected, "{name} of {shape:?} on {target}");
        }
    }
}

/// Nearly all iterations are done as rounds that look at no cycles, and nobody can tell.
#[test]
fn iterations_are_repeated() {
    let text = include_str!("../benches/engine/programs/cg.dfl");
    let shape = Shape { nx: 5, ny: 4, nz: 30 };
    let params = [sizes(shape), vec![("n", shape.nz), ("rounds", 40)]].concat();
    let image = image("cg.dfl", text, &params, "wse2");
    let mut exact = run(&image);
    let step = run_on(&image, EngineKind::Step);
    assert!(exact.ways().rounds.count >= 30, "{:?}", exact.ways().rounds);
    assert_eq!((exact.stats(), exact.now()), (step.stats(), step.now()));
    let solved = cg::as_mesh::solve(shape, 40);
    for (name, expected) in [("x", solved.x), ("r", solved.r), ("p", solved.p)] {
        let found = read(&image, &mut exact, shape, name);
        assert_eq!(found, expected, "{name}");
    }
}

/// A PE sends words again and again, times a factor that changes in some rounds.
const FACTORS: &str = r#"
const lane = @get_color(3);

tile end {
  param sends: bool;
  var source = @constants([20]f32, 3.0);
  var sum = @zeros([20]f32);
  var factor: f32 = 1.0;
  var left: u16 = 90;
  const sources = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{20} -> source[i] });
  const sums = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{20} -> sum[i] });
  const in = @get_dsd(fabin_dsd, .{ .extent = 20, .fabric_color = lane, .input_queue = @get_input_queue(2) });
  const out = @get_dsd(fabout_dsd, .{ .extent = 20, .fabric_color = lane, .output_queue = @get_output_queue(3) });
  const go_id: local_task_id = @get_local_task_id(9);

  task go() void {
    if (left == 0) return;
    left -= 1;
    if (sends) {
      factor += @as(f32, left >> 4 & 1);
      @fmuls(out, sources, factor, .{ .async = true, .activate = go_id });
    } else {
      @fadds(sums, sums, in, .{ .async = true, .activate = go_id });
    }
  }

  comptime {
    @bind_local_task(go, go_id);
    @activate(go_id);
    if (@is_arch("wse3")) {
      if (sends) @initialize_queue(@get_output_queue(3), .{ .color = lane });
      if (!sends) @initialize_queue(@get_input_queue(2), .{ .color = lane });
    }
  }
}

layout {
  @set_rectangle(2, 1);
  @set_tile_code(0, 0, end, .{ .sends = false });
  @set_tile_code(1, 0, end, .{ .sends = true });
  @set_color_config(0, 0, lane, .{ .routes = .{ .rx = .{EAST}, .tx = .{RAMP} } });
  @set_color_config(1, 0, lane, .{ .routes = .{ .rx = .{RAMP}, .tx = .{WEST} } });
}

host {}
"#;

/// A tape of so many data tasks is longer than the state of the PEs: rounds are compared before one is taped.
#[test]
fn rounds_of_many_tasks_come_later() {
    let text = include_str!("../benches/engine/programs/words.dfl");
    let params = [("width", 2), ("height", 1), ("n", 256), ("rounds", 60)];
    let image = image("words.dfl", text, &params, "wse2");
    let step = run_on(&image, EngineKind::Step);
    for engine in [EngineKind::Exact, EngineKind::Flow] {
        let machine = run_on(&image, engine);
        let rounds = machine.ways().rounds;
        assert!(2 * rounds.cycles > machine.now(), "{engine:?}: {rounds:?}");
        assert_eq!((machine.stats().tasks, machine.now()), (step.stats().tasks, step.now()));
    }
}

/// Rounds are done with values that are not those of the first one, by either code engine and on any thread.
#[test]
fn rounds_have_values_of_their_own() {
    let factors = (0..90_u16).rev().scan(1.0, |factor, left| {
        *factor += f32::from(left >> 4 & 1);
        Some(*factor)
    });
    let sum = 3.0 * factors.sum::<f32>();
    for target in ["wse2", "wse3"] {
        let image = image("factors.dfl", FACTORS, &[], target);
        let step = run_on(&image, EngineKind::Step);
        for (code, threads, region) in
            [(CodeKind::Jit, 1, 0), (CodeKind::Jit, 2, 1), (CodeKind::Interpreter, 2, 1)]
        {
            let config = Config { code, threads, region, ..Config::default() };
            let what = format!("{target}, {code:?}, {threads} threads");
            let mut machine = Machine::load(&image, &config).expect("it is valid").start();
            machine.run(&[], &Limits::default());
            let rounds = machine.ways().rounds;
            assert!(rounds.count >= 80, "{what}: {rounds:?}");
            assert_eq!((machine.stats(), machine.now()), (step.stats(), step.now()), "{what}");
            let found = read(&image, &mut machine, Shape { nx: 1, ny: 1, nz: 1 }, "sum");
            assert_eq!(found, [sum; 20], "{what}");
        }
    }
}

#[test]
fn flows_through_faces_are_those_of_plain_code() {
    let text = include_str!("../benches/engine/programs/cg.dfl");
    for (shape, joint) in SHAPES.iter().flat_map(|&shape| [(shape, 0), (shape, 1)]) {
        let more = [("n", shape.nz), ("rounds", 12), ("faces", 1), ("solve", 0), ("joint", joint)];
        let image = image("cg.dfl", text, &[&sizes(shape)[..], &more].concat(), "wse2");
        let (p, k) = (cg::columns(shape), cg::coefficients(shape));
        let expected = cg::as_mesh::faces(shape, &p, &k);
        let step = run_on(&image, EngineKind::Step);
        for engine in [EngineKind::Exact, EngineKind::Flow] {
            let mut machine = run_on(&image, engine);
            let found = read(&image, &mut machine, shape, "q");
            assert_eq!(found, expected, "{shape:?}, {engine:?}, joint {joint}");
            assert_eq!(machine.stats().sent, step.stats().sent, "{shape:?}, {engine:?}");
            if engine == EngineKind::Exact {
                assert_eq!((machine.stats(), machine.now()), (step.stats(), step.now()));
            }
            // PEs that wait for each other repeat themselves; one alone is through before that is noticed.
            let (rounds, alone) = (machine.ways().rounds.count, shape.nx * shape.ny == 1);
            assert!(joint == 0 || alone || rounds > 0, "{shape:?}, {engine:?}: {rounds}");
        }
    }
}

#[test]
fn every_pe_knows_the_sum() {
    let text = include_str!("../benches/engine/programs/allreduce.dfl");
    for (shape, target) in SHAPES.iter().flat_map(|&s| [(s, "wse2"), (s, "wse3")]) {
        let image = image("allreduce.dfl", text, &sizes(shape), target);
        let found = read(&image, &mut run(&image), shape, "total");
        let pes = shape.nx * shape.ny;
        assert_eq!(found, vec![pes as f32; pes], "{shape:?} on {target}");
    }
}
