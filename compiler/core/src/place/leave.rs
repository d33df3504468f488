//! Routes that lead out of the rectangle: legal until a wavelet takes one, so a note.

use cranelift_entity::PrimaryMap;
use dflow_ir::image::ProgramId;
use dflow_ir::mesh::{Color, ColorConfig, Coord, Port, PortSet};
use dflow_syntax::{Diagnostic, Span, codes};
use indexmap::IndexMap;

use super::fold::Folded;
use super::pes::Pes;
use super::routes::Request;
use super::{Tile, regions};
use crate::plan::Plan;
use crate::session::Session;

/// What one place sends out of the rectangle.
struct Leaving {
    color: Color,
    port: Port,
    pes: Pes,
}

/// Notes them, once per place in the source. `router` gives the requests of a PE.
pub(super) fn note<'r>(
    cx: &mut Session<'_>,
    plan: &Plan,
    tiles: &PrimaryMap<ProgramId, Tile<'_>>,
    folded: &Folded,
    requests: &[Request<'_>],
    router: impl Fn(u32) -> &'r [u32],
) {
    let mut places: IndexMap<Span, Leaving> = IndexMap::new();
    for at in border(plan) {
        let pe = plan.index(at);
        let outside = outside(plan, at);
        let program = regions::folded_of(plan, folded, pe);
        for &request in router(pe) {
            let Request { color, config, span } = requests[request as usize];
            let leaves = transmits(config).0 & outside.0;
            let ports = PortSet(leaves).iter();
            let port = ports.into_iter().find(|&port| {
                let streamed = plan
                    .streams
                    .iter()
                    .any(|stream| (stream.at, stream.port, stream.color) == (at, port, color));
                !streamed && !is_linked(tiles, program, color, port)
            });
            let Some(port) = port else { continue };
            let place = places.entry(span);
            place.and_modify(|leaving| leaving.pes.add()).or_insert(Leaving {
                color,
                port,
                pes: Pes::one(at),
            });
        }
    }
    for (span, Leaving { color, port, pes }) in places {
        let message =
            format!("color {} leaves the rectangle to the {} {pes}", color.index(), port.name());
        cx.emit(
            Diagnostic::new(codes::ROUTE_LEAVES_RECTANGLE, message, span)
                .label("a wavelet that takes this route is gone")
                .help("a run warns of the first one; `--strict` ends with it"),
        );
    }
}

/// The PEs at the edges, row by row.
fn border(plan: &Plan) -> impl Iterator<Item = Coord> {
    let (width, height) = (plan.rect.width, plan.rect.height);
    (0..height).flat_map(move |y| {
        let inner = y > 0 && y + 1 < height;
        let step = if inner { usize::from(width.saturating_sub(1)).max(1) } else { 1 };
        (0..width).step_by(step).map(move |x| Coord { x, y })
    })
}

/// The ports of a PE that lead out.
fn outside(plan: &Plan, at: Coord) -> PortSet {
    let mut ports = PortSet::EMPTY;
    let edges = [
        (at.x == 0, Port::West),
        (at.x + 1 == plan.rect.width, Port::East),
        (at.y + 1 == plan.rect.height, Port::South),
        (at.y == 0, Port::North),
    ];
    for (_, port) in edges.into_iter().filter(|&(is_edge, _)| is_edge) {
        ports = ports.with(port);
    }
    ports
}

/// The ports that a color is sent to in some position.
pub(super) fn transmits(config: &ColorConfig) -> PortSet {
    let positions = config.positions();
    let routes = positions.iter().flatten();
    PortSet(routes.fold(0, |ports, route| ports | route.tx.0))
}

/// Whether the host is at the other end.
fn is_linked(
    tiles: &PrimaryMap<ProgramId, Tile<'_>>,
    program: Option<ProgramId>,
    color: Color,
    port: Port,
) -> bool {
    let links = program.map(|program| tiles[program].ir.host_links.as_slice());
    links.unwrap_or_default().iter().any(|link| link.port == port && link.color == color)
}
