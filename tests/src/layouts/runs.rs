//! Layouts that work.

use dflow_compiler::builder::{Axis, ParamValue, Symbol};

use super::*;

#[test]
fn words_go_from_the_host_through_regions_and_back() {
    for target in TARGETS {
        let mut layout = LayoutBuilder::new(target);
        let (_, first, between) =
            relay(&mut layout, "a", (3, 2), (Edge::Left, Edge::Right), 20, 1.0);
        let (_, next, last) = relay(&mut layout, "b", (2, 6), (Edge::Top, Edge::Left), 20, 0.25);
        layout.connect(between, next).unwrap();
        let from = layout.stream(first, Flow::In, None, 1024).unwrap();
        let to = layout.stream(last, Flow::Out, None, 1024).unwrap();
        let image = image(&layout);
        let words: Vec<f32> = (0..20).map(|n| n as f32).collect();
        let got = on_all(&image, |mut session| {
            let got = through(&mut session, &from, &words, &to, 20);
            (got, session.cycles())
        });
        assert_eq!(got.0, words.iter().map(|word| word + 1.25).collect::<Vec<_>>());
    }
}

/// A column of PEs with data of their own sends to a row: PE by PE, from north-west on.
#[test]
fn wide_ports_join_pe_by_pe_and_symbols_have_a_block_each() {
    for target in TARGETS {
        let mut layout = LayoutBuilder::new(target);
        let give = layout.region("give", "give.csl", 1, 3).unwrap();
        let take = layout.region("take", "take.csl", 3, 1).unwrap();
        let (all, row) = (layout.all_of(give), layout.all_of(take));
        let (tx, rx) = (color(&mut layout, give, "tx"), color(&mut layout, take, "rx"));
        layout.set_param(give, all, "n", ParamValue::Int(4)).unwrap();
        layout.set_param(give, all, "tx", ParamValue::Color(tx)).unwrap();
        layout.set_param(take, row, "n", ParamValue::Int(4)).unwrap();
        layout.set_param(take, row, "rx", ParamValue::Color(rx)).unwrap();
        let values: Vec<u8> = (0..12).flat_map(|n| (n as f32).to_le_bytes()).collect();
        let symbol = Symbol { name: "have", element: 4, data: &values, columns: 2, rows: 6 };
        layout.set_symbol(give, &symbol).unwrap();
        let out = layout.port(give, &request(Flow::Out, tx, Edge::Right, 12)).unwrap();
        let input = layout.port(take, &request(Flow::In, rx, Edge::Bottom, 12)).unwrap();
        layout.connect(out, input).unwrap();
        // The column's southmost PE is nearest to the row's last: ways do not cross.
        layout.place(give, 1, 6).unwrap();
        layout.place(take, 3, 3).unwrap();
        let image = image(&layout);
        let rows = on_all(&image, |mut session| {
            session.finish().unwrap();
            let mut machine = session.into_mesh();
            (3..6).map(|x| floats(&read(&mut machine, &image, (x, 3), "got"))).collect::<Vec<_>>()
        });
        assert_eq!(rows, [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]);
    }
}

/// A switch per PE: each takes its words, then lets the others' pass.
#[test]
fn painted_switches_deal_words_out() {
    for target in TARGETS {
        let mut layout = LayoutBuilder::new(target);
        let deal = layout.region("deal", "deal.csl", 1, 1).unwrap();
        let take = layout.region("take", "take.csl", 4, 1).unwrap();
        let (one, row) = (layout.all_of(deal), layout.all_of(take));
        let [rx, tx, got] = [(deal, "rx"), (deal, "tx"), (take, "rx")]
            .map(|(of, name)| color(&mut layout, of, name));
        for (name, value) in [("n", 3), ("groups", 4)] {
            layout.set_param(deal, one, name, ParamValue::Int(value)).unwrap();
        }
        layout.set_param(deal, one, "rx", ParamValue::Color(rx)).unwrap();
        layout.set_param(deal, one, "tx", ParamValue::Color(tx)).unwrap();
        layout.set_param(take, row, "n", ParamValue::Int(3)).unwrap();
        layout.set_param(take, row, "rx", ParamValue::Color(got)).unwrap();
        let here = position(&[Port::West], &[Port::Ramp]);
        let on = position(&[Port::West], &[Port::East]);
        layout.paint(take, row, got, &[here, on]).unwrap();
        layout.paint_edge(take, Edge::Right, got, &[here]).unwrap();
        let input = layout.port(deal, &request(Flow::In, rx, Edge::Left, 12)).unwrap();
        let out = layout.port(deal, &request(Flow::Out, tx, Edge::Right, 12)).unwrap();
        let positions = [position(&[], &[Port::Ramp]), position(&[], &[Port::East])];
        let port = PortRequest { positions: &positions, ..request(Flow::In, got, Edge::Left, 12) };
        let row_in = layout.port(take, &port).unwrap();
        layout.connect(out, row_in).unwrap();
        let stream = layout.stream(input, Flow::In, None, 4).unwrap();
        assert_eq!(layout.stack(&[deal, take], Axis::Horizontal, Some((1, 0))), Ok(5));
        let image = image(&layout);
        let rows = on_all(&image, |mut session| {
            let words: Vec<u32> = (0..12).map(|n| (n as f32).to_bits()).collect();
            let number = session.named_stream(&stream).unwrap();
            session.send_words(number, &words).unwrap();
            session.wait_sent(number).unwrap();
            session.finish().unwrap();
            let mut machine = session.into_mesh();
            let done: Vec<u8> =
                (2..6).flat_map(|x| read(&mut machine, &image, (x, 0), "done")).collect();
            assert_eq!(done, [1; 4]);
            (2..6).map(|x| floats(&read(&mut machine, &image, (x, 0), "got"))).collect::<Vec<_>>()
        });
        let wanted: Vec<Vec<f32>> =
            (0..4).map(|x| (0..3).map(|n| (x * 3 + n) as f32).collect()).collect();
        assert_eq!(rows, wanted);
    }
}

/// The neighbor's route leads to the region's edge; the host is joined there or further on.
#[test]
fn a_painted_color_can_be_joined_to_the_host() {
    for target in TARGETS {
        let mut layout = LayoutBuilder::new(target);
        let region = layout.region("r", "relay.csl", 1, 1).unwrap();
        let all = layout.all_of(region);
        let (rx, tx) = (color(&mut layout, region, "rx"), color(&mut layout, region, "tx"));
        for (name, value) in [("rx", rx), ("tx", tx)] {
            layout.set_param(region, all, name, ParamValue::Color(value)).unwrap();
        }
        layout.set_param(region, all, "n", ParamValue::Int(3)).unwrap();
        layout.set_param(region, all, "plus", ParamValue::Int(2)).unwrap();
        layout.paint(region, all, rx, &[position(&[Port::West], &[Port::Ramp])]).unwrap();
        layout.paint(region, all, tx, &[position(&[Port::Ramp], &[Port::East])]).unwrap();
        layout.place(region, 0, 4).unwrap();
        let from = layout.stream_at((0, 4), rx, Flow::In, "words").unwrap();
        let to = layout.stream_at((0, 4), tx, Flow::Out, "words").unwrap();
        assert_eq!((from.as_str(), to.as_str()), ("words_r_rx", "words_r_tx"));
        let image = image(&layout);
        assert_eq!(image.streams[0].at, Coord { x: 0, y: 4 });
        let got =
            on_all(&image, |mut session| through(&mut session, &from, &[1.0, 2.0, 3.0], &to, 3));
        assert_eq!(got, [3.0, 4.0, 5.0]);
    }
}

#[test]
fn a_stream_passes_the_pe_it_is_asked_to() {
    let mut layout = LayoutBuilder::new(TargetId::Wse3);
    let (_, input, output) = relay(&mut layout, "a", (3, 3), (Edge::Left, Edge::Right), 2, 1.0);
    layout.stream(input, Flow::In, Some((1, 7)), 8).unwrap();
    layout.stream(output, Flow::Out, None, 9).unwrap();
    let image = image(&layout);
    let router = *image.placement.router_map.get(Coord { x: 1, y: 7 }).unwrap();
    assert_eq!(image.placement.routers[router as usize].colors.len(), 1);
    assert_eq!((image.streams[0].buffer, image.streams[1].buffer), (8, 9));
}

/// Params that differ from PE to PE do not make programs of their own; the last value holds.
#[test]
fn params_differ_from_pe_to_pe() {
    let mut layout = LayoutBuilder::new(TargetId::Wse2);
    let nine = layout.tile_region("nine", "tiles.dfl", "nine", 3, 2).unwrap();
    let seven = layout.tile_region("seven", "tiles.dfl", "seven", 1, 1).unwrap();
    layout.place(nine, 1, 0).unwrap();
    let all = layout.all_of(nine);
    layout.set_param(nine, all, "more", ParamValue::Int(1)).unwrap();
    layout.set_param(nine, pe(2, 1), "more", ParamValue::Int(100)).unwrap();
    let rest = Rect { x: 0, y: 1, width: 2, height: 1 };
    layout.set_param(nine, rest, "more", ParamValue::Int(10)).unwrap();
    layout
        .set_symbol(seven, &Symbol { name: "x", element: 2, data: &[5, 1], columns: 1, rows: 1 })
        .unwrap();
    let image = image(&layout);
    assert_eq!(image.programs.len(), 2);
    let values = on_all(&image, |session| {
        let mut machine = session.into_mesh();
        let at = [(0, 0), (1, 0), (1, 1), (3, 1)];
        at.map(|at| {
            let bytes = read(&mut machine, &image, at, "x");
            u16::from_le_bytes([bytes[0], bytes[1]])
        })
    });
    assert_eq!(values, [261, 50, 59, 149]);
}

/// What the caller's language calls true is a number; 16-bit arrays of odd length; several regions
/// that share a program, of which one is given values.
#[test]
fn bools_and_arrays_of_shared_programs() {
    let mut layout = LayoutBuilder::new(TargetId::Wse3);
    for (name, x) in [("a", 1), ("b", 3)] {
        let region = layout.region(name, "give.csl", 1, 1).unwrap();
        let all = layout.all_of(region);
        layout.place(region, x, 1).unwrap();
        let tx = layout.color(None, "tx", Some(6)).unwrap();
        layout.set_param(region, all, "tx", ParamValue::Color(tx)).unwrap();
        layout.set_param(region, all, "n", ParamValue::Int(2)).unwrap();
        layout.set_param(region, all, "twice", ParamValue::Int(i128::from(x == 1))).unwrap();
        layout.paint(region, all, tx, &[position(&[Port::Ramp], &[Port::East])]).unwrap();
        layout.stream_at((x, 1), tx, Flow::Out, name).unwrap();
        if name == "b" {
            let data = [9, 0, 8, 0, 7, 0];
            let symbol = Symbol { name: "halves", element: 2, data: &data, columns: 1, rows: 3 };
            layout.set_symbol(region, &symbol).unwrap();
        }
    }
    let image = image(&layout);
    let halves = on_all(&image, |mut session| {
        let (a, b) = (session.named_stream("a_tx").unwrap(), session.named_stream("b_tx").unwrap());
        let first = session.receive_words(a, 4).unwrap();
        let second = session.receive_words(b, 2).unwrap();
        assert_eq!(floats(&session.complete(first).unwrap().concat()), [0.5; 4]);
        assert_eq!(floats(&session.complete(second).unwrap().concat()), [0.5; 2]);
        session.finish().unwrap();
        let mut machine = session.into_mesh();
        [(1, 1), (3, 1)].map(|at| read(&mut machine, &image, at, "halves"))
    });
    assert_eq!(halves, [[1, 0, 2, 0, 3, 0], [9, 0, 8, 0, 7, 0]]);
}

/// The text of the plan: requests have their lines, ways those of their connections.
#[test]
fn the_plan_has_a_text() {
    let mut layout = LayoutBuilder::new(TargetId::Wse2);
    let (_, input, between) = relay(&mut layout, "a", (1, 1), (Edge::Left, Edge::Right), 5, 1.0);
    layout.at("run.py", 2);
    let (_, next, output) = relay(&mut layout, "b", (4, 1), (Edge::Left, Edge::Bottom), 5, 1.0);
    layout.at_no_file();
    layout.connect(between, next).unwrap();
    layout.stream(input, Flow::In, None, 1024).unwrap();
    layout.stream(output, Flow::Out, None, 1024).unwrap();
    let (text, _) = layout.dump(&world(), Options::default(), dflow_compiler::Stage::Plan);
    insta::assert_snapshot!(format!("{}\n{text}", layout.text()));
}

/// Code that names numbers itself: a way goes through it by another color, and (on wse2) a data task
/// does not get the number of a local one.
#[test]
fn numbers_that_code_names_are_avoided() {
    let own = "const c = @get_color(0);\ncomptime { @set_local_color_config(c, .{ .routes = .{ .rx = .{ NORTH }, .tx = .{ SOUTH } } }); }";
    let sum = "param rx: color;\nexport var sum: u32 = 0;\nexport var calls: u16 = 0;\n\
        const id = if (@is_arch(\"wse3\")) @get_data_task_id(@get_input_queue(2)) else @get_data_task_id(rx);\n\
        task word(w: u32) void { sum += w; @activate(@get_local_task_id(LOCAL)); }\n\
        task note() void { calls += 1; }\n\
        comptime { @bind_data_task(word, id); @bind_local_task(note, @get_local_task_id(LOCAL));\n\
        if (@is_arch(\"wse3\")) { @initialize_queue(@get_input_queue(2), .{ .color = rx }); } }";
    for (target, local) in [(TargetId::Wse2, "1"), (TargetId::Wse3, "9")] {
        let world = world().with("own.csl", own).with("sum.csl", sum.replace("LOCAL", local));
        let mut layout = LayoutBuilder::new(target);
        let wall = layout.region("wall", "own.csl", 1, 5).unwrap();
        layout.place(wall, 2, 0).unwrap();
        let region = layout.region("sum", "sum.csl", 1, 1).unwrap();
        layout.place(region, 5, 2).unwrap();
        let all = layout.all_of(region);
        let rx = color(&mut layout, region, "rx");
        layout.set_param(region, all, "rx", ParamValue::Color(rx)).unwrap();
        let input = layout.port(region, &request(Flow::In, rx, Edge::Left, 3)).unwrap();
        let stream = layout.stream(input, Flow::In, Some((0, 2)), 9).unwrap();
        layout.set_size(7, 5);
        let Built { compiled, colors } = layout.compile(&world, Options::default());
        let image = compiled.image.expect("it compiles");
        let number = colors[rx.index()].index();
        assert!(number != 0 && (target == TargetId::Wse3 || number != 1), "{number}");
        let got = on_all(&image, |mut session| {
            let number = session.named_stream(&stream).unwrap();
            session.send_words(number, &[1, 2, 4]).unwrap();
            session.finish().unwrap();
            let mut machine = session.into_mesh();
            ["sum", "calls"].map(|name| read(&mut machine, &image, (5, 2), name)[0])
        });
        assert_eq!(got[0], 7);
        assert!(got[1] > 0);
    }
}
