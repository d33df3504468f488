//! Finds ways for wires across the mesh, and a color for each net.
//!
//! A *net* is what must have one color everywhere: the colors of ports that are joined. A *wire* leads
//! from the side of a PE to the side of another, or to the host beyond an edge. Absences first:
//! nothing here knows the language, regions or ports by name; nothing is random, and order comes from
//! the order of nets and wires alone.
//!
//! Invariants: wires of a net never meet, nor a PE that uses the net's color; wires of nets that
//! meet have different colors; no PE needs more colors than there are. Ways prefer PEs without code
//! and PEs that few wires cross.

mod cells;
mod colors;
mod path;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use dflow_ir::mesh::{Color, Coord, Port, PortSet, Route};

pub(crate) use cells::Cells;
use path::{Search, Way};

/// What must have one color.
#[derive(Clone, Debug)]
pub(crate) struct Net {
    /// The number that it must have, if it must.
    pub(crate) fixed: Option<Color>,
    /// It needs a switch somewhere.
    pub(crate) switched: bool,
    /// Numbers that it should not have (bit set): code on its PEs uses them.
    pub(crate) avoid: u32,
    /// PEs that use it, apart from its wires.
    pub(crate) cells: Cells,
}

/// An end of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A side of a PE.
    Side(Coord, Port),
    /// The host, at an edge of the mesh; by way of a PE, if one is named.
    Host(Option<Coord>),
}

/// One word wide, from where words come to where they go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    /// Index of its net.
    pub(crate) net: usize,
    /// Where words come from.
    pub(crate) from: End,
    /// Where they go.
    pub(crate) to: End,
}

/// A wire's way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Laid {
    /// The PEs between its ends, in the order of words, with the route of each.
    pub(crate) routes: Vec<(Coord, Route)>,
    /// Where it is joined to the host: the PE and the side.
    pub(crate) host: Option<(Coord, Port)>,
}

/// What the planner is asked.
pub(crate) struct Request {
    /// Columns and rows of the mesh.
    pub(crate) size: (u16, u16),
    /// PEs that run code.
    pub(crate) code: Cells,
    /// Colors that have switches (bit set).
    pub(crate) switch_colors: u32,
    /// The nets.
    pub(crate) nets: Vec<Net>,
    /// The wires.
    pub(crate) wires: Vec<Wire>,
}

/// What it answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wired {
    /// Per wire.
    pub(crate) wires: Vec<Laid>,
    /// Per net.
    pub(crate) colors: Vec<Color>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Every way of a wire is taken.
    NoPath {
        /// The wire.
        wire: usize,
    },
    /// Two nets with the same number meet on a PE.
    Clash {
        /// Their indices.
        nets: (usize, usize),
        /// Their number.
        color: Color,
        /// The first PE.
        at: Coord,
    },
    /// No number is left for a net.
    NoColor {
        /// Its index.
        net: usize,
        /// Nets that it meets, with their numbers, ordered by number.
        taken: Vec<(Color, usize)>,
        /// A PE where it meets one of them.
        at: Coord,
    },
}

/// Lays all wires and numbers all nets.
///
/// # Errors
/// The first wire without a way, or the first net without a color.
pub(crate) fn plan(request: &Request) -> Result<Wired, Fault> {
    let mut nets: Vec<Cells> = request.nets.iter().map(|net| net.cells.clone()).collect();
    let mut search = Search::new(request, &nets);
    let mut laid = vec![Laid::default(); request.wires.len()];
    let mut joined = BTreeSet::new();
    for (net, taken) in nets.iter_mut().enumerate() {
        let of_net = |&wire: &usize| request.wires[wire].net == net;
        let mut order: Vec<usize> = (0..request.wires.len()).filter(of_net).collect();
        // Short wires have the least choice.
        order.sort_by_key(|&wire| length(&request.wires[wire]));
        lay_net(request, &mut search, taken, &order, &mut joined, &mut laid)?;
    }
    let colors = colors::choose(request, &nets)?;
    Ok(Wired { wires: laid, colors })
}

/// Lays the wires of a net. One that finds no way goes first in the next round.
fn lay_net(
    request: &Request,
    search: &mut Search,
    taken: &mut Cells,
    order: &[usize],
    joined: &mut BTreeSet<(Coord, Port)>,
    laid: &mut [Laid],
) -> Result<(), Fault> {
    let (own, before) = (taken.clone(), joined.clone());
    let mut order = order.to_vec();
    for _ in 0..=2 * order.len() {
        let mut failed = None;
        for (index, &wire) in order.iter().enumerate() {
            let Some(way) = lay(request, search, taken, joined, wire) else {
                failed = Some(index);
                break;
            };
            way.routes.iter().for_each(|(at, _)| taken.insert(*at));
            joined.extend(way.host);
            laid[wire] = way;
        }
        let Some(index) = failed else {
            let routes = order.iter().flat_map(|&wire| &laid[wire].routes);
            routes.for_each(|(at, _)| search.cross(*at));
            return Ok(());
        };
        if index == 0 {
            return Err(Fault::NoPath { wire: order[0] });
        }
        (*taken, *joined) = (own.clone(), before.clone());
        let wire = order.remove(index);
        order.insert(0, wire);
    }
    Err(Fault::NoPath { wire: order[0] })
}

/// The way of one wire around what its net has taken.
fn lay(
    request: &Request,
    search: &mut Search,
    taken: &Cells,
    joined: &BTreeSet<(Coord, Port)>,
    wire: usize,
) -> Option<Laid> {
    let Wire { net: _, from, to } = request.wires[wire];
    match (from, to) {
        (End::Side(from, out), End::Side(to, side)) => {
            let (first, last) = (search.step(from, out)?, search.step(to, side)?);
            if first == to && last == from {
                return Some(Laid::default());
            }
            let way = search.between(taken, first, last)?;
            Some(Laid { routes: routes(&way, out.opposite(), side.opposite()), host: None })
        }
        (End::Side(at, side), End::Host(via)) => {
            let (way, host) = to_host(search, taken, joined, at, side, via)?;
            let out = host.1;
            Some(Laid { routes: routes(&way, side.opposite(), out), host: Some(host) })
        }
        (End::Host(via), End::Side(at, side)) => {
            let (way, host) = to_host(search, taken, joined, at, side, via)?;
            let backwards: Way = way.into_iter().rev().collect();
            let entry = host.1;
            Some(Laid { routes: routes(&backwards, entry, side.opposite()), host: Some(host) })
        }
        (End::Host(_), End::Host(_)) => None,
    }
}

/// The PEs from the side of a PE to an edge, and where the host is joined.
fn to_host(
    search: &mut Search,
    taken: &Cells,
    joined: &BTreeSet<(Coord, Port)>,
    at: Coord,
    side: Port,
    via: Option<Coord>,
) -> Option<(Way, (Coord, Port))> {
    let Some(first) = search.step(at, side) else {
        // The side is at the edge itself.
        return via.is_none().then(|| (Vec::new(), (at, side)));
    };
    let Some(via) = via else { return search.edge_from(taken, joined, first) };
    let mut way = search.between(taken, first, via)?;
    way.pop();
    let mut rest = taken.clone();
    way.iter().for_each(|at| rest.insert(*at));
    let (tail, host) = search.edge_from(&rest, joined, via)?;
    way.extend(tail);
    Some((way, host))
}

/// The routes along a way that is entered by one port and left by another.
fn routes(way: &[Coord], entry: Port, exit: Port) -> Vec<(Coord, Route)> {
    let toward = |from: Coord, to: Coord| {
        let ports = [Port::West, Port::East, Port::South, Port::North].into_iter();
        let steps = ports.map(|port| (port, port.step()));
        let (dx, dy) = (i32::from(to.x) - i32::from(from.x), i32::from(to.y) - i32::from(from.y));
        steps.into_iter().find(|&(_, step)| step == (dx, dy)).map_or(Port::Ramp, |(port, _)| port)
    };
    let mut rx = entry;
    let mut routes = Vec::with_capacity(way.len());
    for (index, &at) in way.iter().enumerate() {
        let tx = way.get(index + 1).map_or(exit, |&next| toward(at, next));
        routes.push((at, Route { rx: PortSet::one(rx), tx: PortSet::one(tx) }));
        rx = tx.opposite();
    }
    routes
}

/// How far apart the ends are; those at the host come last.
fn length(wire: &Wire) -> u32 {
    match (wire.from, wire.to) {
        (End::Side(a, _), End::Side(b, _)) => {
            u32::from(a.x.abs_diff(b.x)) + u32::from(a.y.abs_diff(b.y))
        }
        (End::Host(_), _) | (_, End::Host(_)) => u32::MAX,
    }
}
