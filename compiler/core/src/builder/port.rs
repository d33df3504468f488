//! Requests about ports, connections and streams.

use dflow_ir::mesh::{Coord, Port, PortSet};
use dflow_ir::target::Target;

use super::region::check_positions;
use super::requests::{
    BuildError, ColorId, Edge, Flow, Joint, PortDef, PortId, RegionId, RoutingPosition, Stream,
};
use super::{LayoutBuilder, MAX_BUFFER};

type Built<T> = Result<T, BuildError>;

/// What a new port is.
#[derive(Clone, Copy, Debug)]
pub struct PortRequest<'a> {
    /// Into the region or out of it.
    pub flow: Flow,
    /// Its color.
    pub color: ColorId,
    /// The edge whose PEs it is made of.
    pub edge: Edge,
    /// Routes on those PEs, without the side that leads out: it is filled in.
    pub positions: &'a [RoutingPosition],
    /// Words that go through the whole port; ports that are connected have the same.
    pub size: u64,
    /// Distinguishes ports of one color.
    pub prefix: &'a str,
}

impl LayoutBuilder {
    /// A port over all PEs of an edge of a region.
    ///
    /// # Errors
    /// The region has such a port already, or a position names the side that the port fills in.
    pub fn port(&mut self, region: RegionId, request: &PortRequest<'_>) -> Built<PortId> {
        let PortRequest { flow, color, edge, positions, size, prefix } = *request;
        check_positions(positions)?;
        let (of, own) = (&self.get(region).name, &self.colors[color.index()].name);
        let name = format!("{of}_{own}{prefix}");
        if self.ports.iter().any(|port| port.name == name) {
            return Err(BuildError::new(format!("region `{of}` has a port `{name}` already"))
                .help("give the second one a prefix of its own"));
        }
        let positions: Vec<RoutingPosition> =
            positions.iter().map(|position| filled(position, flow, edge)).collect::<Built<_>>()?;
        let way = match flow {
            Flow::In => "into",
            Flow::Out => "out of",
        };
        let routes: Vec<String> = positions.iter().map(RoutingPosition::text).collect();
        let (edge_name, color_name) = (edge.name(), self.color_name(color));
        let mark = self.notes.add(format!(
            "// port {name}: {way} the {edge_name} edge of {of}, color {color_name}, {size} words, {}",
            routes.join(", then ")
        ));
        let joined = None;
        self.ports.push(PortDef { name, region, flow, color, edge, positions, size, joined, mark });
        Ok(PortId((self.ports.len() - 1) as u32))
    }

    /// Sends what leaves one port into another, PE by PE from north-west on.
    ///
    /// # Errors
    /// The first is no output port or the second no input port, one of them is connected already, or
    /// their words or PEs differ in number.
    pub fn connect(&mut self, from: PortId, to: PortId) -> Built<()> {
        for (port, flow) in [(from, Flow::Out), (to, Flow::In)] {
            self.check_flow(port, flow)?;
            self.check_free(port)?;
        }
        let (first, second) = (self.port_def(from), self.port_def(to));
        let (names, sizes) = ((&first.name, &second.name), (first.size, second.size));
        if sizes.0 != sizes.1 {
            return Err(BuildError::new(format!(
                "ports `{}` and `{}` cannot be connected: {} words leave the one, {} enter the other",
                names.0, names.1, sizes.0, sizes.1
            ))
            .help("give both ports the same data size"));
        }
        let counts = (self.port_width(from), self.port_width(to));
        if counts.0 != counts.1 {
            return Err(BuildError::new(format!(
                "ports `{}` and `{}` cannot be connected: the one has {} PEs, the other {}",
                names.0, names.1, counts.0, counts.1
            ))
            .help("join them through a region that deals words out or gathers them"));
        }
        let mark = self.notes.add(format!("// connect {} to {}", names.0, names.1));
        self.ports[from.0 as usize].joined = Some(mark);
        self.ports[to.0 as usize].joined = Some(mark);
        self.joints.push(Joint::Connect { from, to, mark });
        Ok(())
    }

    /// Joins a port of one PE to the host, by way of PE `via` if one is given; gives the stream's
    /// name. `flow` is the direction that the caller means: `In` is from the host.
    ///
    /// # Errors
    /// The port has the other direction, more than one PE, or a connection; the buffer is too large; or
    /// the mesh does not have the PE.
    pub fn stream(
        &mut self,
        port: PortId,
        flow: Flow,
        via: Option<(i64, i64)>,
        buffer: u32,
    ) -> Built<String> {
        self.check_flow(port, flow)?;
        self.check_free(port)?;
        let via = via.map(|(x, y)| self.mesh_coord(x, y)).transpose()?;
        let name = self.port_def(port).name.clone();
        let count = self.port_width(port);
        if count != 1 {
            return Err(BuildError::new(format!(
                "port `{name}` has {count} PEs: a stream of the host has one"
            ))
            .help("put a region between them that deals words out or gathers them"));
        }
        check_buffer(&name, buffer)?;
        let through = via.map(|at| format!(" by way of ({}, {})", at.x, at.y)).unwrap_or_default();
        let (way, _) = direction(flow);
        let mark =
            self.notes.add(format!("// stream {name}: {way} the host{through}, buffer {buffer}"));
        self.ports[port.0 as usize].joined = Some(mark);
        let stream = Stream { name: name.clone(), flow, buffer, mark };
        self.joints.push(Joint::Stream { port, via, stream });
        Ok(name)
    }

    /// Joins a color of a PE to the host, at the side that its painted route leads to; gives the
    /// stream's name.
    ///
    /// # Errors
    /// The mesh does not have the PE, or the name is taken.
    pub fn stream_at(
        &mut self,
        at: (i64, i64),
        color: ColorId,
        flow: Flow,
        prefix: &str,
    ) -> Built<String> {
        let at = self.mesh_coord(at.0, at.1)?;
        let own = self.color_name(color);
        let name = if prefix.is_empty() { own } else { format!("{prefix}_{own}") };
        let mut taken = self.joints.iter().filter_map(Joint::stream);
        if taken.any(|stream| stream.name == name) {
            return Err(BuildError::new(format!("a stream `{name}` exists already"))
                .help("give the second one a prefix of its own"));
        }
        let (way, text) = direction(flow);
        let mark =
            self.notes.add(format!("// stream {name}: {way} the host {text} ({}, {})", at.x, at.y));
        let stream = Stream { name: name.clone(), flow, buffer: super::BUFFER, mark };
        self.joints.push(Joint::StreamAt { at, color, stream });
        Ok(name)
    }

    /// The port's name.
    #[must_use]
    pub fn port_name(&self, port: PortId) -> &str {
        &self.port_def(port).name
    }

    pub(super) fn port_def(&self, port: PortId) -> &PortDef {
        &self.ports[port.0 as usize]
    }

    /// Number of PEs of a port.
    pub(super) fn port_width(&self, port: PortId) -> usize {
        let PortDef { region, edge, .. } = self.port_def(port);
        edge.of(self.region_size(*region)).area()
    }

    fn check_flow(&self, port: PortId, flow: Flow) -> Built<()> {
        let def = self.port_def(port);
        if def.flow == flow {
            return Ok(());
        }
        let (is, wanted) = match flow {
            Flow::In => ("an output port", "an input port"),
            Flow::Out => ("an input port", "an output port"),
        };
        Err(BuildError::new(format!("`{}` is {is}, and {wanted} is needed here", def.name)))
    }

    fn check_free(&self, port: PortId) -> Built<()> {
        let def = self.port_def(port);
        if def.joined.is_none() {
            return Ok(());
        }
        Err(BuildError::new(format!("port `{}` is connected already", def.name))
            .help("a port has one connection; to reach several regions, send words on from one"))
    }

    fn mesh_coord(&self, x: i64, y: i64) -> Built<Coord> {
        let (columns, rows) = Target::get(self.target).max_rect;
        if (0..i64::from(columns)).contains(&x) && (0..i64::from(rows)).contains(&y) {
            return Ok(Coord { x: x as u16, y: y as u16 });
        }
        Err(BuildError::new(format!("PE ({x}, {y}) is not in the mesh of {columns} x {rows} PEs")))
    }
}

/// A position of a port with the side that leads out.
fn filled(position: &RoutingPosition, flow: Flow, edge: Edge) -> Built<RoutingPosition> {
    let RoutingPosition { input, output } = *position;
    let out = PortSet::one(edge.side());
    let (given, word, other) = match flow {
        Flow::In => (input, "input", "outputs"),
        Flow::Out => (output, "output", "inputs"),
    };
    if !given.is_empty() {
        let side: Vec<&str> = given.iter().map(Port::name).collect();
        return Err(BuildError::new(format!(
            "a position of an {word} port names {word} {}",
            side.join(" and ")
        ))
        .help(format!("name {other} only: the {} edge is the {word}", edge.name())));
    }
    Ok(match flow {
        Flow::In => RoutingPosition { input: out, output },
        Flow::Out => RoutingPosition { input, output: out },
    })
}

fn direction(flow: Flow) -> (&'static str, &'static str) {
    match flow {
        Flow::In => ("from", "into"),
        Flow::Out => ("to", "out of"),
    }
}

fn check_buffer(name: &str, buffer: u32) -> Built<()> {
    if buffer <= MAX_BUFFER {
        return Ok(());
    }
    Err(BuildError::new(format!(
        "stream `{name}` has a buffer of {buffer} words: {MAX_BUFFER} is the most"
    )))
}
