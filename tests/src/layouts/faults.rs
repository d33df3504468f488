//! Layouts that cannot be: what is said, at once or when they are compiled.

use dflow_compiler::builder::{ParamValue, Symbol};

use super::*;

fn builder() -> LayoutBuilder {
    LayoutBuilder::new(TargetId::Wse2)
}

#[test]
fn requests_are_judged_at_once() {
    let mut layout = builder();
    let mut said = Vec::new();
    let r = layout.region("r", "relay.csl", 2, 3).unwrap();
    said.push(error(layout.region("r", "take.csl", 1, 1)));
    said.push(error(layout.region("s", "take.csl", 0, 1)));
    said.push(error(layout.region("s", "take.csl", 1, 100_000)));
    said.push(error(layout.place(r, -1, 0)));
    said.push(error(layout.place(r, 749, 0)));
    said.push(error(layout.color(None, "c", Some(24))));
    let c = layout.color(None, "c", Some(3)).unwrap();
    said.push(error(layout.color(None, "c", Some(4))));
    said.push(error(layout.set_param(r, pe(2, 0), "n", ParamValue::Int(1))));
    let wide = Rect { x: 1, y: 1, width: 2, height: 1 };
    said.push(error(layout.paint(r, wide, c, &[position(&[], &[])])));
    let all = layout.all_of(r);
    said.push(error(layout.paint(r, all, c, &[])));
    said.push(error(layout.paint(r, all, c, &[position(&[], &[]); 5])));
    let symbol = Symbol { name: "x", element: 4, data: &[0; 24], columns: 2, rows: 3 };
    said.push(error(layout.set_symbol(r, &Symbol { element: 8, ..symbol.clone() })));
    said.push(error(layout.set_symbol(r, &Symbol { rows: 4, ..symbol.clone() })));
    said.push(error(layout.set_symbol(r, &Symbol { columns: 3, rows: 2, ..symbol })));
    said.push(error(layout.stack(&[], dflow_compiler::builder::Axis::Vertical, None)));
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn ports_are_judged_at_once() {
    let mut layout = builder();
    let mut said = Vec::new();
    let r = layout.region("r", "relay.csl", 2, 3).unwrap();
    let c = layout.color(None, "c", None).unwrap();
    let d = layout.color(Some(r), "d", None).unwrap();
    let sided = [position(&[Port::West], &[Port::Ramp])];
    let input = PortRequest { positions: &sided, ..request(Flow::In, c, Edge::Left, 6) };
    said.push(error(layout.port(r, &input)));
    let output = PortRequest { positions: &sided, ..request(Flow::Out, c, Edge::Left, 6) };
    said.push(error(layout.port(r, &output)));
    let tall = layout.port(r, &request(Flow::In, c, Edge::Left, 6)).unwrap();
    said.push(error(layout.port(r, &request(Flow::Out, c, Edge::Right, 6))));
    let wide = layout.port(r, &request(Flow::Out, d, Edge::Top, 6)).unwrap();
    said.push(error(layout.connect(tall, wide)));
    said.push(error(layout.connect(wide, tall)));
    said.push(error(layout.stream(tall, Flow::In, None, 1)));
    said.push(error(layout.stream(tall, Flow::Out, None, 1)));
    let (_, input, output) = relay(&mut layout, "s", (5, 5), (Edge::Left, Edge::Right), 5, 1.0);
    let (_, other, _) = relay(&mut layout, "t", (9, 9), (Edge::Left, Edge::Right), 4, 1.0);
    said.push(error(layout.connect(output, other)));
    said.push(error(layout.stream(input, Flow::In, None, 100_000)));
    said.push(error(layout.stream(input, Flow::In, Some((-1, 0)), 1)));
    layout.stream(input, Flow::In, None, 1).unwrap();
    said.push(error(layout.stream(input, Flow::In, None, 1)));
    layout.stream_at((0, 0), c, Flow::In, "").unwrap();
    said.push(error(layout.stream_at((0, 0), c, Flow::In, "")));
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn regions_that_overlap() {
    let mut layout = builder();
    let a = layout.region("a", "tiles.dfl", 3, 3).unwrap();
    layout.at("run.py", 2);
    let b = layout.region("b", "tiles.dfl", 2, 2).unwrap();
    insta::assert_snapshot!("unplaced", refused(&layout));
    layout.place(a, 1, 1).unwrap();
    layout.place(b, 3, 3).unwrap();
    insta::assert_snapshot!("overlap", refused(&layout));
    layout.place(b, 5, 5).unwrap();
    layout.set_size(6, 6);
    insta::assert_snapshot!("outside", refused(&layout));
}

#[test]
fn names_that_the_code_does_not_have() {
    let mut layout = builder();
    let r = layout.region("r", "relay.csl", 1, 1).unwrap();
    let all = layout.all_of(r);
    layout.set_param(r, all, "pluss", ParamValue::Float(1.0)).unwrap();
    layout.set_param(r, all, "words", ParamValue::Int(1)).unwrap();
    insta::assert_snapshot!("param", refused(&layout));
    let mut layout = builder();
    let (_, input, output) = relay(&mut layout, "r", (1, 1), (Edge::Left, Edge::Right), 2, 1.0);
    let (_, _) = (input, output);
    let r = layout.region("g", "tiles.dfl", 1, 1).unwrap();
    layout
        .set_symbol(r, &Symbol { name: "x", element: 4, data: &[0; 4], columns: 1, rows: 1 })
        .unwrap();
    insta::assert_snapshot!("symbol", refused(&layout));
    let mut layout = builder();
    let nine = layout.tile_region("g", "tiles.dfl", "nine", 1, 1).unwrap();
    let all = layout.all_of(nine);
    layout.set_param(nine, all, "more", ParamValue::Int(0)).unwrap();
    layout
        .set_symbol(nine, &Symbol { name: "x", element: 4, data: &[0; 4], columns: 1, rows: 1 })
        .unwrap();
    insta::assert_snapshot!("symbol_size", refused(&layout));
    let mut layout = builder();
    layout.tile_region("g", "tiles.dfl", "ten", 1, 1).unwrap();
    let missing = layout.region("h", "missing.csl", 1, 1).unwrap();
    layout.place(missing, 2, 0).unwrap();
    insta::assert_snapshot!("tile", refused(&layout));
}

#[test]
fn values_that_params_cannot_have() {
    let mut layout = builder();
    let (r, _, _) = relay(&mut layout, "r", (1, 1), (Edge::Left, Edge::Right), 2, 1.0);
    let all = layout.all_of(r);
    layout.set_param(r, all, "n", ParamValue::Int(70_000)).unwrap();
    insta::assert_snapshot!(refused(&layout));
}

#[test]
fn colors_that_clash() {
    let mut layout = builder();
    let r = layout.region("r", "tiles.dfl", 1, 1).unwrap();
    let all = layout.all_of(r);
    let route = [position(&[Port::West], &[Port::East])];
    for name in ["c", "d"] {
        let color = layout.color(None, name, Some(7)).unwrap();
        layout.paint(r, all, color, &route).unwrap();
    }
    insta::assert_snapshot!("clash", refused(&layout));
    let mut layout = builder();
    let r = layout.region("r", "tiles.dfl", 1, 1).unwrap();
    for n in 0..25 {
        let color = layout.color(None, &format!("c{n}"), None).unwrap();
        layout.paint(r, all, color, &route).unwrap();
    }
    insta::assert_snapshot!("exhausted", refused(&layout));
    let mut layout = builder();
    let (_, input, output) = relay(&mut layout, "r", (2, 2), (Edge::Left, Edge::Right), 2, 1.0);
    layout.connect(output, input).unwrap();
    insta::assert_snapshot!("loop", refused(&layout));
    let mut layout = builder();
    let (_, _, output) = relay(&mut layout, "a", (2, 2), (Edge::Left, Edge::Right), 2, 1.0);
    let (_, input, _) = relay(&mut layout, "b", (5, 2), (Edge::Left, Edge::Right), 2, 1.0);
    layout.connect(output, input).unwrap();
    for (region, name, number) in [(0, "tx", 1), (1, "rx", 2)] {
        let region = [layout_region(&layout, "a"), layout_region(&layout, "b")][region];
        layout.color(Some(region), name, Some(number)).unwrap();
    }
    insta::assert_snapshot!("two_numbers", refused(&layout));
}

fn layout_region(layout: &LayoutBuilder, name: &str) -> RegionId {
    layout.region_named(name).expect("the region exists")
}

#[test]
fn switches_need_colors_that_have_them() {
    let mut layout = LayoutBuilder::new(TargetId::Wse3);
    let r = layout.region("r", "tiles.dfl", 1, 1).unwrap();
    let all = layout.all_of(r);
    let turn = [position(&[Port::West], &[Port::East]), position(&[Port::West], &[Port::Ramp])];
    for n in 0..24 {
        let color = layout.color(None, &format!("c{n}"), None).unwrap();
        layout.paint(r, all, color, &turn).unwrap();
    }
    insta::assert_snapshot!(refused(&layout));
}

#[test]
fn connections_without_a_way() {
    let mut layout = builder();
    let (_, _, output) = relay(&mut layout, "a", (0, 0), (Edge::Right, Edge::Left), 2, 1.0);
    let (_, input, _) = relay(&mut layout, "b", (3, 3), (Edge::Left, Edge::Right), 2, 1.0);
    layout.connect(output, input).unwrap();
    insta::assert_snapshot!(refused(&layout));
}

#[test]
fn two_ports_of_a_color_on_one_pe() {
    let mut layout = builder();
    let (r, _, _) = relay(&mut layout, "r", (1, 1), (Edge::Left, Edge::Right), 2, 1.0);
    let rx = color(&mut layout, r, "rx");
    let second = PortRequest { prefix: "_again", ..request(Flow::In, rx, Edge::Top, 2) };
    layout.port(r, &second).unwrap();
    insta::assert_snapshot!(refused(&layout));
}

#[test]
fn streams_at_places_without_a_route() {
    let mut layout = builder();
    let (r, _, _) = relay(&mut layout, "r", (1, 1), (Edge::Left, Edge::Right), 2, 1.0);
    let other = layout.color(None, "other", None).unwrap();
    let rx = color(&mut layout, r, "rx");
    layout.stream_at((1, 1), other, Flow::In, "").unwrap();
    insta::assert_snapshot!("unpainted", refused(&layout));
    let mut layout2 = builder();
    relay(&mut layout2, "r", (1, 1), (Edge::Left, Edge::Right), 2, 1.0);
    layout2.stream_at((0, 0), rx, Flow::In, "").unwrap();
    insta::assert_snapshot!("nowhere", refused(&layout2));
}

/// A way over a region whose code uses a color by number of its own.
#[test]
fn a_way_through_code_that_uses_the_color() {
    let own = "comptime { @set_local_color_config(@get_color(0), .{ .routes = .{ .rx = .{ NORTH }, .tx = .{ SOUTH } } }); }";
    let world = world().with("own.csl", own);
    let mut layout = builder();
    let (_, _, output) = relay(&mut layout, "a", (0, 1), (Edge::Top, Edge::Right), 2, 1.0);
    let (_, input, _) = relay(&mut layout, "b", (4, 1), (Edge::Left, Edge::Right), 2, 1.0);
    layout.connect(output, input).unwrap();
    let wall = layout.region("wall", "own.csl", 1, 4).unwrap();
    layout.place(wall, 2, 0).unwrap();
    layout.set_size(6, 4);
    let tx = layout.region_named("a").unwrap();
    layout.color(Some(tx), "tx", Some(0)).unwrap();
    let Built { compiled, .. } = layout.compile(&world, Options::default());
    let said = compiled.diagnostics.iter();
    let said: String =
        said.map(|said| render::human(&compiled.sources, said, render::Color::Never)).collect();
    insta::assert_snapshot!(said);
}
