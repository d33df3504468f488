//! Colors that must be one, ways between ports, numbers: from requests to the planner and back.

use dflow_ir::image::HostStream;
use dflow_ir::mesh::{Color, ColorConfig, Coord, Port, PortSet, Rect, Route, Switch, SwitchEntry};
use dflow_ir::target::Target;
use dflow_syntax::{Diagnostic, Reported, codes};

use super::LayoutBuilder;
use super::geometry::{Ground, Painted};
use super::notes::{Mark, Places};
use super::requests::{ColorId, Flow, Joint, ParamValue, RoutingPosition, Stream};
use crate::place::wires::{self, Cells, End, Fault, Laid, Net, Request, Wire};
use crate::session::Session;

/// The PE that a stream is asked to pass.
pub(super) fn via(joint: &Joint) -> Option<Coord> {
    match joint {
        Joint::Connect { .. } => None,
        Joint::Stream { via, .. } => *via,
        Joint::StreamAt { at, .. } => Some(*at),
    }
}

/// Everything that routers are told.
pub(super) struct Routed {
    /// Per color: its number.
    pub(super) colors: Vec<Color>,
    /// Per color: its net.
    pub(super) net_of: Vec<usize>,
    /// Per net: whether its number was given, and the PEs that use it.
    pub(super) nets: Vec<(bool, Cells)>,
    /// PE, number, configuration and the request it comes from.
    pub(super) configs: Vec<(Coord, Color, ColorConfig, Mark)>,
    /// PEs that wires go through: number, net, request.
    pub(super) crossed: Vec<(Coord, Color, usize, Mark)>,
    /// Streams of the host.
    pub(super) streams: Vec<HostStream>,
}

/// What the planner is asked, and whose wires they are.
struct Asked {
    request: Request,
    /// Net of each color.
    net_of: Vec<usize>,
    /// Joint of each wire.
    joints: Vec<usize>,
}

/// Routes and numbers everything.
///
/// # Errors
/// Colors clash, no color is left, or a wire finds no way.
pub(super) fn route(
    cx: &mut Session<'_>,
    builder: &LayoutBuilder,
    ground: &Ground,
    painted: &Painted<'_>,
    places: &Places,
    avoid: &[u32],
) -> Result<Routed, Reported> {
    let mut asked = ask(cx, builder, ground, painted, places)?;
    for (net, avoid) in asked.request.nets.iter_mut().zip(avoid) {
        net.avoid = *avoid;
    }
    let wired = match wires::plan(&asked.request) {
        Ok(wired) => wired,
        Err(fault) => return Err(report(cx, builder, &asked, places, &fault)),
    };
    let colors: Vec<Color> = asked.net_of.iter().map(|&net| wired.colors[net]).collect();
    let nets = asked.request.nets.iter().map(|net| (net.fixed.is_some(), net.cells.clone()));
    let mut routed = Routed {
        colors,
        net_of: asked.net_of.clone(),
        nets: nets.collect(),
        configs: Vec::new(),
        crossed: Vec::new(),
        streams: Vec::new(),
    };
    for color in painted.colors() {
        for area in &ground.areas {
            for at in area.coords() {
                if let Some((positions, mark)) = painted.get(ground, color, at) {
                    let number = routed.colors[color.index()];
                    routed.configs.push((at, number, config(positions), mark));
                }
            }
        }
    }
    for (index, laid) in wired.wires.iter().enumerate() {
        let joint = &builder.joints[asked.joints[index]];
        let net = asked.request.wires[index].net;
        lay(&mut routed, joint, laid, (wired.colors[net], net));
    }
    Ok(routed)
}

fn lay(routed: &mut Routed, joint: &Joint, laid: &Laid, (color, net): (Color, usize)) {
    for &(at, route) in &laid.routes {
        let config = ColorConfig { route, ..ColorConfig::default() };
        routed.configs.push((at, color, config, joint.mark()));
        routed.crossed.push((at, color, net, joint.mark()));
    }
    if let (Some((at, port)), Some(stream)) = (laid.host, joint.stream()) {
        let Stream { name, flow, buffer, mark: _ } = stream;
        let to_mesh = *flow == Flow::In;
        let name = name.clone();
        routed.streams.push(HostStream { name, at, port, color, to_mesh, buffer: *buffer });
    }
}

/// Positions as a route and a switch: each entry says what differs from the one before.
fn config(positions: &[RoutingPosition]) -> ColorConfig {
    let route = |position: &RoutingPosition| Route { rx: position.input, tx: position.output };
    let Some((first, rest)) = positions.split_first() else { return ColorConfig::default() };
    let mut entries = [None; 3];
    let mut before = route(first);
    for (slot, position) in entries.iter_mut().zip(rest) {
        let next = route(position);
        *slot = Some(match (next.rx == before.rx, next.tx == before.tx) {
            (true, _) => SwitchEntry::Tx(next.tx),
            (false, true) => SwitchEntry::Rx(next.rx),
            (false, false) => SwitchEntry::Both(next),
        });
        before = next;
    }
    let switch = (!rest.is_empty()).then(|| Switch { positions: entries, ..Switch::default() });
    ColorConfig { route: route(first), switch, ..ColorConfig::default() }
}

fn ask(
    cx: &mut Session<'_>,
    builder: &LayoutBuilder,
    ground: &Ground,
    painted: &Painted<'_>,
    places: &Places,
) -> Result<Asked, Reported> {
    let net_of = nets(builder);
    let count = net_of.iter().max().map_or(0, |last| last + 1);
    let empty = Net { fixed: None, switched: false, avoid: 0, cells: Cells::none(ground.size) };
    let mut nets = vec![empty; count];
    fix(cx, builder, places, &net_of, &mut nets)?;
    for color in painted.colors() {
        let net = &mut nets[net_of[color.index()]];
        for area in &ground.areas {
            for at in area.coords() {
                let Some((positions, _)) = painted.get(ground, color, at) else { continue };
                net.switched |= positions.len() > 1;
                net.cells.insert(at);
            }
        }
    }
    two_uses(cx, builder, ground, painted, places, &net_of)?;
    for (index, region) in builder.regions.iter().enumerate() {
        for param in &region.params {
            if let ParamValue::Color(color) = param.value {
                let area = ground.absolute(index, param.area);
                nets[net_of[color.index()]].cells.insert_all(area);
            }
        }
    }
    let (mut wires, mut joints) = (Vec::new(), Vec::new());
    for (index, joint) in builder.joints.iter().enumerate() {
        let ends = ends(cx, builder, ground, painted, places, joint)?;
        for (color, from, to) in ends {
            wires.push(Wire { net: net_of[color.index()], from, to });
            joints.push(index);
        }
    }
    let switch_colors = Target::get(builder.target).switch_colors;
    let request = Request { size: ground.size, code: ground.code(), switch_colors, nets, wires };
    Ok(Asked { request, net_of, joints })
}

/// The net of each color: ports that are connected have one color.
fn nets(builder: &LayoutBuilder) -> Vec<usize> {
    let mut parent: Vec<usize> = (0..builder.colors.len()).collect();
    let find = |parent: &[usize], mut color: usize| {
        while parent[color] != color {
            color = parent[color];
        }
        color
    };
    for joint in &builder.joints {
        let Joint::Connect { from, to, .. } = joint else { continue };
        let ends = [from, to].map(|port| builder.port_def(*port).color.index());
        let (a, b) = (find(&parent, ends[0]), find(&parent, ends[1]));
        let (first, second) = (a.min(b), a.max(b));
        parent[second] = first;
    }
    let mut numbers = vec![usize::MAX; parent.len()];
    let mut next = 0;
    (0..parent.len())
        .map(|color| {
            let root = find(&parent, color);
            if numbers[root] == usize::MAX {
                numbers[root] = next;
                next += 1;
            }
            numbers[root]
        })
        .collect()
}

/// Numbers that colors were given, per net.
fn fix(
    cx: &mut Session<'_>,
    builder: &LayoutBuilder,
    places: &Places,
    net_of: &[usize],
    nets: &mut [Net],
) -> Result<(), Reported> {
    let mut given: Vec<Option<usize>> = vec![None; nets.len()];
    for (index, def) in builder.colors.iter().enumerate() {
        let (Some(color), net) = (def.fixed, net_of[index]) else { continue };
        match given[net].replace(index) {
            Some(other) if builder.colors[other].fixed != def.fixed => {
                let (first, second) = (&builder.colors[other], def);
                let number = |color: Option<Color>| color.map_or(0, Color::index);
                let message = format!(
                    "ports of colors {} and {} are connected: a route does not change the color",
                    number(first.fixed),
                    number(second.fixed)
                );
                return Err(cx.emit(
                    Diagnostic::new(codes::ROUTE_CONFLICT, message, places.span(second.mark))
                        .label("one color")
                        .secondary(places.span(first.mark), "the other")
                        .help("leave the number of one of them out"),
                ));
            }
            _ => nets[net].fixed = Some(color),
        }
    }
    Ok(())
}

/// Two colors of one net on one PE: the connections make them one, and the PE routes both.
fn two_uses(
    cx: &mut Session<'_>,
    builder: &LayoutBuilder,
    ground: &Ground,
    painted: &Painted<'_>,
    places: &Places,
    net_of: &[usize],
) -> Result<(), Reported> {
    let colors: Vec<ColorId> = painted.colors().collect();
    for (index, &second) in colors.iter().enumerate() {
        let same = |first: &&ColorId| net_of[first.index()] == net_of[second.index()];
        for &first in colors[..index].iter().filter(same) {
            for at in ground.areas.iter().flat_map(|area| area.coords()) {
                let routes = |color| painted.get(ground, color, at);
                let (Some((_, old)), Some((_, new))) = (routes(first), routes(second)) else {
                    continue;
                };
                let message = format!(
                    "colors `{}` and `{}` are one, because ports of theirs are connected, and PE ({}, {}) routes both",
                    builder.color_name(first),
                    builder.color_name(second),
                    at.x,
                    at.y
                );
                return Err(cx.emit(
                    Diagnostic::new(codes::ROUTE_CONFLICT, message, places.span(new))
                        .label("second route")
                        .secondary(places.span(old), "first route")
                        .help("send words on through a region whose two ports have colors of their own"),
                ));
            }
        }
    }
    Ok(())
}

/// The wires of a joint.
fn ends(
    cx: &mut Session<'_>,
    builder: &LayoutBuilder,
    ground: &Ground,
    painted: &Painted<'_>,
    places: &Places,
    joint: &Joint,
) -> Result<Vec<(ColorId, End, End)>, Reported> {
    match joint {
        Joint::Connect { from, to, .. } => {
            let (from, to) = (builder.port_def(*from), builder.port_def(*to));
            let pairs = ground.port_pes(from).into_iter().zip(ground.port_pes(to));
            let (out, side) = (from.edge.side(), to.edge.side());
            Ok(pairs.map(|(a, b)| (from.color, End::Side(a, out), End::Side(b, side))).collect())
        }
        Joint::Stream { port, via, stream } => {
            let port = builder.port_def(*port);
            let side = port.edge.side();
            let pes = ground.port_pes(port).into_iter();
            Ok(pes.map(|at| to_host(port.color, at, side, *via, stream.flow)).collect())
        }
        Joint::StreamAt { at, color, stream } => {
            let side = outer_side(ground, painted, *at, *color, stream.flow);
            let Some(side) = side else {
                return Err(no_side(cx, builder, ground, places, *at, *color, stream));
            };
            Ok(vec![to_host(*color, *at, side, None, stream.flow)])
        }
    }
}

fn to_host(
    color: ColorId,
    at: Coord,
    side: Port,
    via: Option<Coord>,
    flow: Flow,
) -> (ColorId, End, End) {
    match flow {
        Flow::In => (color, End::Host(via), End::Side(at, side)),
        Flow::Out => (color, End::Side(at, side), End::Host(via)),
    }
}

/// The side by which a PE's painted route of a color leaves its region; one at an edge of the mesh
/// is taken before others.
fn outer_side(
    ground: &Ground,
    painted: &Painted<'_>,
    at: Coord,
    color: ColorId,
    flow: Flow,
) -> Option<Port> {
    let region = ground.region_at(at)?;
    let (positions, _) = painted.get(ground, color, at)?;
    let set = positions.iter().fold(0, |set, position| {
        set | match flow {
            Flow::In => position.input.0,
            Flow::Out => position.output.0,
        }
    });
    let area: Rect = ground.areas[region.0 as usize];
    let sides = PortSet(set).iter().filter(|&side| side != Port::Ramp);
    let beyond = |side: Port| {
        let (dx, dy) = side.step();
        let (x, y) = (i32::from(at.x) + dx, i32::from(at.y) + dy);
        let inside = |n: i32, end: u16| (0..i32::from(end)).contains(&n);
        if !inside(x, ground.size.0) || !inside(y, ground.size.1) {
            return Some(0);
        }
        let outside = !area.contains(Coord { x: x as u16, y: y as u16 });
        outside.then_some(1)
    };
    sides
        .filter_map(|side| Some((beyond(side)?, side)))
        .min_by_key(|&(rank, _)| rank)
        .map(|(_, side)| side)
}

fn no_side(
    cx: &mut Session<'_>,
    builder: &LayoutBuilder,
    ground: &Ground,
    places: &Places,
    at: Coord,
    color: ColorId,
    stream: &Stream,
) -> Reported {
    let (x, y, color) = (at.x, at.y, builder.color_name(color));
    let message = match ground.region_at(at) {
        None => format!("stream `{}` is at PE ({x}, {y}), which belongs to no region", stream.name),
        Some(_) => {
            let way = if stream.flow == Flow::In { "come into" } else { "leave" };
            format!("no route of color `{color}` lets words {way} the region at PE ({x}, {y})")
        }
    };
    let help = format!("paint `{color}` there with a side that is at the region's edge");
    cx.emit(
        Diagnostic::new(codes::INVALID_ROUTE, message, places.span(stream.mark))
            .label("this stream")
            .help(help),
    )
}

fn report(
    cx: &mut Session<'_>,
    builder: &LayoutBuilder,
    asked: &Asked,
    places: &Places,
    fault: &Fault,
) -> Reported {
    let first_of = |net: usize| asked.net_of.iter().position(|&of| of == net).unwrap_or(0);
    let name = |net: usize| builder.color_name(ColorId(first_of(net) as u32));
    let span = |net: usize| places.span(builder.colors[first_of(net)].mark);
    match fault {
        Fault::NoPath { wire } => {
            let joint = &builder.joints[asked.joints[*wire]];
            no_path(cx, asked, places, joint, *wire)
        }
        Fault::Clash { nets: (first, second), color, at } => {
            let message = format!(
                "color {} is given to `{}` and to `{}`, which meet on PE ({}, {})",
                color.index(),
                name(*first),
                name(*second),
                at.x,
                at.y
            );
            cx.emit(
                Diagnostic::new(codes::ROUTE_CONFLICT, message, span(*second))
                    .label("second owner")
                    .secondary(span(*first), "first owner")
                    .help("leave the number of one of them out: a free one is found"),
            )
        }
        Fault::NoColor { net, taken, at } => {
            let message = format!(
                "no color is left for `{}` on PE ({}, {}) and elsewhere",
                name(*net),
                at.x,
                at.y
            );
            let owners =
                taken.iter().map(|(color, other)| format!("{} `{}`", color.index(), name(*other)));
            let owners: Vec<String> = owners.collect();
            let mut diagnostic = Diagnostic::new(codes::RESOURCE_EXHAUSTED, message, span(*net))
                .label("this color")
                .help(format!("taken are {}", owners.join(", ")));
            let switched = asked.request.nets[*net].switched;
            let free = (0..Color::COUNT as u8)
                .filter(|n| taken.iter().all(|(color, _)| color.index() != *n));
            let free: Vec<String> = free.map(|n| n.to_string()).collect();
            if switched && !free.is_empty() {
                diagnostic = diagnostic.help(format!(
                    "colors {} are free and have no switch, which `{}` needs",
                    free.join(", "),
                    name(*net)
                ));
            }
            cx.emit(diagnostic)
        }
    }
}

fn no_path(
    cx: &mut Session<'_>,
    asked: &Asked,
    places: &Places,
    joint: &Joint,
    wire: usize,
) -> Reported {
    let Wire { net: _, from, to } = asked.request.wires[wire];
    let end = |end: End| match end {
        End::Side(at, side) => format!("the {} side of PE ({}, {})", side.name(), at.x, at.y),
        End::Host(Some(at)) => format!("the host by way of PE ({}, {})", at.x, at.y),
        End::Host(None) => "the host".to_owned(),
    };
    let message = format!("no way leads from {} to {}", end(from), end(to));
    cx.emit(
        Diagnostic::new(codes::NO_PATH, message, places.span(joint.mark()))
            .label("asked for here")
            .help("a way cannot cross PEs that use its color or have no color left: place the regions further apart, or use other edges"),
    )
}
