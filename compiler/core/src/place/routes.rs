//! Router tables: what the layout and the program of a PE say, merged, conflicts named.

use cranelift_entity::PrimaryMap;
use dflow_ir::image::{ProgramId, RouterConfig};
use dflow_ir::mesh::{Color, ColorConfig, Port, RectMap};
use dflow_ir::target::Target;
use dflow_syntax::{Diagnostic, Reported, Span, codes};
use indexmap::{IndexMap, IndexSet};

use super::filters::Filters;
use super::fold::Folded;
use super::pes::Pes;
use super::{Tile, arrivals, leave, regions, rules};
use crate::lower::LocTable;
use crate::plan::Plan;
use crate::session::Session;

/// A configuration and where it was asked for.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) color: Color,
    pub(super) config: &'a ColorConfig,
    pub(super) span: Span,
}

/// Distinct routers, as lists of requests, and who has which.
pub(super) struct Routes<'a> {
    requests: Vec<Request<'a>>,
    routers: IndexSet<Box<[u32]>>,
    /// Index of each PE's router.
    pub(super) map: RectMap<u32>,
}

impl Routes<'_> {
    /// Colors that some router can hand to its core, as bits.
    pub(super) fn to_cores(&self) -> u32 {
        let to_core =
            |request: &&Request<'_>| leave::transmits(request.config).contains(Port::Ramp);
        self.requests.iter().filter(to_core).fold(0, |all, it| all | 1 << it.color.index())
    }

    /// The routers' tables in their final form.
    pub(super) fn routers(&self, locs: &LocTable<'_>) -> Vec<RouterConfig> {
        let entry = |&request: &u32| {
            let Request { color, config, span } = self.requests[request as usize];
            (color, config.clone(), locs.loc(span))
        };
        let routers = self.routers.iter();
        routers.map(|list| RouterConfig { colors: list.iter().map(entry).collect() }).collect()
    }
}

/// PEs between two questions whether to go on.
const PES_PER_LOOK: u32 = 1 << 12;

/// Merges the requests per PE. Reports colors that are configured twice, configurations that
/// the target cannot hold, notes routes that lead out of the rectangle, and warns of those into a neighbor
/// that does not receive them.
///
/// # Errors
/// The compilation is given up.
pub(super) fn merge<'a>(
    cx: &mut Session<'_>,
    plan: &'a Plan,
    tiles: &PrimaryMap<ProgramId, Tile<'a>>,
    folded: &Folded,
    target: &Target,
) -> Result<Routes<'a>, Reported> {
    let (requests, own) = requests(plan, tiles);
    let gathered = gathered(tiles);
    for &Request { color, config, span } in &requests {
        rules::check(cx, color, config, span, target);
        if !gathered.contains(&color) {
            rules::check_sources(cx, color, config, span, target);
        }
    }
    let by_pe = ByPe::new(plan);
    let mut conflicts = Conflicts::default();
    let mut filters = Filters::default();
    let mut routers: IndexSet<Box<[u32]>> = IndexSet::new();
    let mut of_pe = Vec::with_capacity(plan.rect.area());
    let mut list: Vec<u32> = Vec::new();
    for pe in 0..plan.rect.area() as u32 {
        if pe.is_multiple_of(PES_PER_LOOK) {
            cx.go_on()?;
        }
        list.clear();
        list.extend_from_slice(by_pe.requests(pe));
        if let Some(program) = regions::folded_of(plan, folded, pe) {
            list.extend(own[program].clone());
        }
        list.sort_unstable_by_key(|&request| (requests[request as usize].color, request));
        conflicts.find(&list, &requests, plan, pe);
        let index = match routers.get_index_of(list.as_slice()) {
            Some(index) => index,
            None => routers.insert_full(list.as_slice().into()).0,
        };
        let here = (pe, index as u32);
        filters.look(plan, tiles, folded, target, &requests, &list, here);
        of_pe.push(index as u32);
    }
    cx.go_on()?;
    conflicts.report(cx, &requests);
    filters.report(cx, target);
    leave::note(cx, plan, tiles, folded, &requests, |pe| &routers[of_pe[pe as usize] as usize]);
    arrivals::warn(cx, plan, tiles, folded, &requests, (&routers, &of_pe));
    let map = RectMap::from_grid(plan.rect.width, plan.rect.height, |at| {
        Some(of_pe[plan.index(at) as usize])
    });
    Ok(Routes { requests, routers, map })
}

/// Colors that end at the host: routers merge them on their way (spec/mesh.md, "Routes").
fn gathered(tiles: &PrimaryMap<ProgramId, Tile<'_>>) -> IndexSet<Color> {
    let links = tiles.values().flat_map(|tile| &tile.ir.host_links);
    links.filter(|link| !link.to_mesh).map(|link| link.color).collect()
}

/// All requests: the plan's under their own index, then those of each program as a range.
fn requests<'a>(
    plan: &'a Plan,
    tiles: &PrimaryMap<ProgramId, Tile<'a>>,
) -> (Vec<Request<'a>>, PrimaryMap<ProgramId, std::ops::Range<u32>>) {
    let request = |(color, config, span): &'a (Color, ColorConfig, Span)| Request {
        color: *color,
        config,
        span: *span,
    };
    let mut requests: Vec<Request<'a>> = plan.color_uses.iter().map(request).collect();
    let mut own = PrimaryMap::with_capacity(tiles.len());
    for tile in tiles.values() {
        let start = requests.len() as u32;
        requests.extend(tile.typed.colors.iter().map(request));
        own.push(start..requests.len() as u32);
    }
    (requests, own)
}

/// The plan's requests ordered by PE: those of PE `n` are `list[starts[n]..starts[n + 1]]`.
struct ByPe {
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl ByPe {
    /// A counting sort: ten million requests take a fraction of a second.
    fn new(plan: &Plan) -> ByPe {
        let area = plan.rect.area();
        let inside = || plan.colors.iter().filter(|&&(pe, _)| (pe as usize) < area);
        let mut starts = vec![0_u32; area + 1];
        inside().for_each(|&(pe, _)| starts[pe as usize + 1] += 1);
        for pe in 0..area {
            starts[pe + 1] += starts[pe];
        }
        let mut next = starts.clone();
        let mut list = vec![0; starts[area] as usize];
        for &(pe, request) in inside() {
            let at = &mut next[pe as usize];
            list[*at as usize] = request.0;
            *at += 1;
        }
        ByPe { starts, list }
    }

    fn requests(&self, pe: u32) -> &[u32] {
        let pe = pe as usize;
        &self.list[self.starts[pe] as usize..self.starts[pe + 1] as usize]
    }
}

/// Pairs of requests for one color of one PE.
#[derive(Default)]
struct Conflicts {
    found: IndexMap<(u32, u32), Pes>,
}

impl Conflicts {
    fn find(&mut self, list: &[u32], requests: &[Request<'_>], plan: &Plan, pe: u32) {
        for pair in list.windows(2) {
            let color = |request: u32| requests[request as usize].color;
            if color(pair[0]) == color(pair[1]) {
                let found = self.found.entry((pair[0], pair[1]));
                found.and_modify(Pes::add).or_insert(Pes::one(plan.coord(pe)));
            }
        }
    }

    /// One report per pair of places and color, however many configurations the places made.
    fn report(self, cx: &mut Session<'_>, requests: &[Request<'_>]) {
        let mut places: IndexMap<(Color, Span, Span), Pes> = IndexMap::new();
        for ((first, second), pes) in self.found {
            let (first, second) = (&requests[first as usize], &requests[second as usize]);
            let key = (first.color, first.span, second.span);
            let known = places.entry(key);
            known.and_modify(|all| all.count += pes.count).or_insert(pes);
        }
        for ((color, first, second), pes) in places {
            let library = [first, second].into_iter().find(|&span| cx.in_library(span));
            let number = color.index();
            if let Some(library) = library {
                let path = cx.file_name(library.file);
                let mine = if library == first { second } else { first };
                cx.emit(
                    Diagnostic::new(
                        codes::ROUTE_CONFLICT,
                        format!("color {number} belongs to the library {path}, and is routed again {pes}"),
                        mine,
                    )
                    .label("your route")
                    .secondary(library, "the library's route")
                    .help("use another color"),
                );
                continue;
            }
            let message = format!("color {number} is routed twice {pes}");
            let diagnostic = Diagnostic::new(codes::ROUTE_CONFLICT, message, second);
            cx.emit(if first == second {
                diagnostic
                    .label("this runs more than once for the same PE")
                    .help("configure each color of a PE once")
            } else {
                diagnostic
                    .label("second route")
                    .secondary(first, "first route")
                    .help("give the second stream its own color")
            });
        }
    }
}
