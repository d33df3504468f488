//! Layouts that are built instead of written: compiled, run on all engines, and what is said of those that
//! cannot be.

mod faults;
mod programs;
mod random;
mod runs;

use dflow_compiler::builder::{
    BuildError, Built, ColorId, Edge, Flow, LayoutBuilder, PortId, PortRequest, RegionId,
    RoutingPosition,
};
use dflow_compiler::{MemoryWorld, Options};
use dflow_ir::image::Image;
use dflow_ir::mesh::{Coord, Port, PortSet, Rect};
use dflow_ir::target::TargetId;
use dflow_runtime::config::{CodeKind, Config, EngineKind, Limits};
use dflow_runtime::host::Session;
use dflow_runtime::machine::{Machine, Running};
use dflow_syntax::diagnostic::render;

/// The sources that regions of these tests run.
fn world() -> MemoryWorld {
    MemoryWorld::new()
        .with("relay.csl", programs::RELAY)
        .with("take.csl", programs::TAKE)
        .with("give.csl", programs::GIVE)
        .with("deal.csl", programs::DEAL)
        .with("tiles.dfl", programs::TILES)
        .with("run.py", "layout = SdkLayout(platform)\nregion.place(0, 0)\n")
}

fn position(input: &[Port], output: &[Port]) -> RoutingPosition {
    let set = |ports: &[Port]| ports.iter().fold(PortSet::EMPTY, |set, &port| set.with(port));
    RoutingPosition { input: set(input), output: set(output) }
}

/// What a port of one position is.
fn request(flow: Flow, color: ColorId, edge: Edge, size: u64) -> PortRequest<'static> {
    const IN: &[RoutingPosition] =
        &[RoutingPosition { input: PortSet::EMPTY, output: PortSet(1 << Port::Ramp as u8) }];
    const OUT: &[RoutingPosition] =
        &[RoutingPosition { input: PortSet(1 << Port::Ramp as u8), output: PortSet::EMPTY }];
    let positions = if flow == Flow::In { IN } else { OUT };
    PortRequest { flow, color, edge, positions, size, prefix: "" }
}

/// A region of one PE with a port on each of two edges, that adds `plus` to what comes through.
fn relay(
    layout: &mut LayoutBuilder,
    name: &str,
    at: (i64, i64),
    edges: (Edge, Edge),
    words: u64,
    plus: f64,
) -> (RegionId, PortId, PortId) {
    use dflow_compiler::builder::ParamValue::{Color, Float, Int};
    let region = layout.region(name, "relay.csl", 1, 1).unwrap();
    let all = layout.all_of(region);
    layout.place(region, at.0, at.1).unwrap();
    let (rx, tx) = (color(layout, region, "rx"), color(layout, region, "tx"));
    layout.set_param(region, all, "n", Int(words.into())).unwrap();
    layout.set_param(region, all, "plus", Float(plus)).unwrap();
    layout.set_param(region, all, "rx", Color(rx)).unwrap();
    layout.set_param(region, all, "tx", Color(tx)).unwrap();
    let input = layout.port(region, &request(Flow::In, rx, edges.0, words)).unwrap();
    let output = layout.port(region, &request(Flow::Out, tx, edges.1, words)).unwrap();
    (region, input, output)
}

fn color(layout: &mut LayoutBuilder, region: RegionId, name: &str) -> ColorId {
    layout.color(Some(region), name, None).unwrap()
}

/// The image of a layout, as it comes back from disk.
fn image(layout: &LayoutBuilder) -> Image {
    let Built { compiled, .. } = layout.compile(&world(), Options::default());
    let said = compiled.diagnostics.iter();
    let said = said.map(|said| render::human(&compiled.sources, said, render::Color::Never));
    let said: String = said.collect();
    let Some(image) = compiled.image else {
        panic!("the layout was refused:\n{said}\n{}", layout.text())
    };
    Image::decode(&image.encode()).expect("images are valid")
}

/// What is said of a layout that is refused.
fn refused(layout: &LayoutBuilder) -> String {
    let Built { compiled, colors } = layout.compile(&world(), Options::default());
    assert!(compiled.image.is_none() && colors.is_empty(), "the layout was accepted");
    let said = compiled.diagnostics.iter();
    said.map(|said| render::human(&compiled.sources, said, render::Color::Never)).collect()
}

/// What is said of a request that is refused at once.
fn error<T>(result: Result<T, BuildError>) -> String {
    result.err().expect("the request was accepted").to_string()
}

/// Every way to run an image; the results must agree.
fn on_all<T: PartialEq + std::fmt::Debug>(
    image: &Image,
    act: impl Fn(Session<Machine<Running>>) -> T,
) -> T {
    let config = |engine, code, threads, region| Config {
        engine,
        code,
        threads,
        region,
        ..Config::default()
    };
    let configs = [
        config(EngineKind::Step, CodeKind::Interpreter, 1, 0),
        config(EngineKind::Exact, CodeKind::Jit, 1, 0),
        config(EngineKind::Exact, CodeKind::Jit, 2, 4),
        config(EngineKind::Exact, CodeKind::Interpreter, 2, 3),
    ];
    let mut results = configs.iter().map(|config| {
        let machine = Machine::load(image, config).expect("the image loads").start();
        act(Session::new(machine, image, Limits { cycle: 1_000_000, ..Limits::default() }))
    });
    let first = results.next().expect("there are ways");
    for other in results {
        assert_eq!(first, other);
    }
    first
}

/// Sends floats, and receives as many as are asked for.
fn through(
    session: &mut Session<Machine<Running>>,
    from: &str,
    words: &[f32],
    to: &str,
    count: u64,
) -> Vec<f32> {
    let (from, to) = (session.named_stream(from).unwrap(), session.named_stream(to).unwrap());
    let bits: Vec<u32> = words.iter().map(|word| word.to_bits()).collect();
    session.send_words(from, &bits).unwrap();
    let reception = session.receive_words(to, count).unwrap();
    let rows = session.complete(reception).unwrap();
    floats(&rows.concat())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.chunks_exact(4);
    words
        .map(|word| f32::from_bits(word.iter().rev().fold(0, |all, &b| all << 8 | u32::from(b))))
        .collect()
}

/// The bytes of a variable of a PE.
fn read(machine: &mut Machine<Running>, image: &Image, at: (u16, u16), name: &str) -> Vec<u8> {
    let at = Coord { x: at.0, y: at.1 };
    let program = image.program_at(at).expect("the PE has a program");
    let globals = &image.programs[program].globals;
    let mut map = image.memory[program].globals.iter();
    let &(global, address) =
        map.find(|(global, _)| globals[*global].name == name).expect("it is there");
    machine.read_memory(at, address, globals[global].size).expect("it can be read")
}

/// One PE of a region.
fn pe(x: u16, y: u16) -> Rect {
    Rect { x, y, width: 1, height: 1 }
}

const TARGETS: [TargetId; 2] = TargetId::ALL;
