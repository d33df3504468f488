//! Routes into a neighbor that takes nothing from there: legal until a wavelet takes one, so a warning.

use cranelift_entity::PrimaryMap;
use dflow_ir::image::ProgramId;
use dflow_ir::inst::InstData;
use dflow_ir::mesh::{Color, Coord, Port, PortSet};
use dflow_syntax::{Diagnostic, Span, codes};
use indexmap::{IndexMap, IndexSet};

use super::Tile;
use super::fold::Folded;
use super::leave::transmits;
use super::pes::Pes;
use super::regions;
use super::routes::Request;
use crate::plan::Plan;
use crate::session::Session;

/// A route and what meets it: equal for all PEs that the same two places of the source configure.
#[derive(PartialEq, Eq, Hash)]
struct Meeting {
    color: Color,
    /// The way that it takes.
    to: Port,
    span: Span,
    /// The neighbor's route of that color, and the ports that it receives from.
    neighbor: Option<(Span, u8)>,
}

/// Warns of them, once per pair of places in the source. `routers` are the lists of requests, `of_pe` has each PE's.
pub(super) fn warn(
    cx: &mut Session<'_>,
    plan: &Plan,
    tiles: &PrimaryMap<ProgramId, Tile<'_>>,
    folded: &Folded,
    requests: &[Request<'_>],
    (routers, of_pe): (&IndexSet<Box<[u32]>>, &[u32]),
) {
    let reach: Vec<Reach> = requests.iter().map(Reach::of).collect();
    let sides: Vec<u8> = routers.iter().map(|list| sides(list, &reach)).collect();
    let fixed: PrimaryMap<ProgramId, bool> =
        tiles.values().map(|tile| !writes_registers(tile)).collect();
    let is_fixed = |pe| regions::folded_of(plan, folded, pe).is_none_or(|program| fixed[program]);
    // Most pairs of neighbors are alike.
    let mut well: IndexSet<(u32, u32, Port)> = IndexSet::new();
    let mut found: IndexMap<Meeting, (Pes, Coord)> = IndexMap::new();
    let size = (plan.rect.width, plan.rect.height);
    for (pe, &router) in (0..).zip(of_pe) {
        let at = plan.coord(pe);
        for port in PortSet(sides[router as usize]).iter() {
            let Some(next) = at.neighbor(port, size) else { continue };
            let beyond = plan.index(next);
            let other = of_pe[beyond as usize];
            if well.contains(&(router, other, port)) {
                continue;
            }
            let lists = (&*routers[router as usize], &*routers[other as usize]);
            let bad = refused(requests, &reach, lists, port);
            if bad.is_empty() {
                well.insert((router, other, port));
            } else if is_fixed(pe) && is_fixed(beyond) {
                for meeting in bad {
                    let known = found.entry(meeting);
                    known.and_modify(|(pes, _)| pes.add()).or_insert((Pes::one(at), next));
                }
            }
        }
    }
    found.into_iter().for_each(|(meeting, pes)| report(cx, &meeting, pes));
}

/// Where the words of a request may come from and go, in whatever position.
#[derive(Clone, Copy)]
struct Reach {
    rx: u8,
    tx: u8,
    swaps: bool,
}

impl Reach {
    fn of(request: &Request<'_>) -> Reach {
        let positions = request.config.positions();
        let rx = positions.iter().flatten().fold(0, |ports, route| ports | route.rx.0);
        let swaps = request.config.swap_x || request.config.swap_y;
        Reach { rx, tx: transmits(request.config).0, swaps }
    }
}

/// The sides by which a router sends anything to a neighbor.
fn sides(list: &[u32], reach: &[Reach]) -> u8 {
    let ramp = PortSet::one(Port::Ramp).0;
    list.iter().fold(0, |ports, &request| ports | reach[request as usize].tx) & !ramp
}

/// Programs that write registers may change any route while they run.
fn writes_registers(tile: &Tile<'_>) -> bool {
    let mut insts = tile.ir.funcs.values().flat_map(|func| func.insts.values());
    !tile.ir.initial_config.is_empty()
        || insts.any(|inst| matches!(inst, InstData::SetConfig { .. }))
}

/// The colors that one router sends by a port and its neighbor there does not receive.
fn refused(
    requests: &[Request<'_>],
    reach: &[Reach],
    (list, others): (&[u32], &[u32]),
    port: Port,
) -> Vec<Meeting> {
    let of = |request: u32| (&requests[request as usize], reach[request as usize]);
    let entry = port.opposite();
    let sent = list.iter().map(|&request| of(request));
    let sent = sent.filter(|(_, reach)| PortSet(reach.tx).contains(port));
    let refused = sent.filter_map(|(request, _)| {
        let color = request.color;
        let mut pair = others.iter().map(|&other| of(other));
        // A color that swaps may be received as its partner.
        let swaps = pair
            .clone()
            .any(|(other, reach)| reach.swaps && other.color.index() | 1 == color.index() | 1);
        let same = pair.find(|(other, _)| other.color == color);
        let takes = same.is_some_and(|(_, reach)| PortSet(reach.rx).contains(entry));
        (!swaps && !takes).then(|| Meeting {
            color,
            to: port,
            span: request.span,
            neighbor: same.map(|(other, reach)| (other.span, reach.rx)),
        })
    });
    refused.collect()
}

fn report(cx: &mut Session<'_>, meeting: &Meeting, (pes, next): (Pes, Coord)) {
    let Meeting { color, to, span, neighbor } = *meeting;
    let (number, to, from) = (color.index(), to.name(), to.opposite().name());
    let Coord { x, y } = next;
    let message = match neighbor {
        Some(_) => format!(
            "color {number} goes {to} {pes}, and PE ({x}, {y}) there does not receive it from {from}"
        ),
        None => {
            format!("color {number} goes {to} {pes}, and PE ({x}, {y}) there has no route for it")
        }
    };
    let diagnostic = Diagnostic::new(codes::ROUTE_NOT_RECEIVED, message, span);
    let Some((other, rx)) = neighbor else {
        let remedy = format!("give the neighbor a route with {from} in `.rx`, or do not send {to}");
        cx.emit(
            diagnostic.label("a wavelet that takes this route ends the run there").help(remedy),
        );
        return;
    };
    let ports: Vec<&str> = PortSet(rx).iter().map(Port::name).collect();
    let ports = if ports.is_empty() { "nowhere".to_owned() } else { ports.join(", ") };
    let remedy = format!("add {from} to the `.rx` of the neighbor's route, or do not send {to}");
    let diagnostic = match other == span {
        true => {
            diagnostic.label(format!("the neighbor has this route, too, and receives from {ports}"))
        }
        false => diagnostic
            .label("a wavelet that takes this route waits there for ever")
            .secondary(other, format!("the neighbor's route receives from {ports}")),
    };
    cx.emit(diagnostic.help(remedy));
}
