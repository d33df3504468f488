//! Where regions lie, and what is painted on each PE.

use std::collections::BTreeMap;

use dflow_ir::mesh::{Coord, Rect};
use dflow_ir::target::Target;
use dflow_syntax::{Diagnostic, Reported, codes};

use super::LayoutBuilder;
use super::notes::{Mark, Places};
use super::requests::{ColorId, PortDef, Region, RegionId, RoutingPosition};
use crate::place::wires::Cells;
use crate::session::Session;

/// PEs beyond the last region, to the east and to the south, for wires to go around it.
const MARGIN: u16 = 2;

/// No region, no route.
const NONE: u32 = u32::MAX;

/// The mesh with its regions.
pub(super) struct Ground {
    pub(super) size: (u16, u16),
    /// Region of each PE, row by row.
    owner: Vec<u32>,
    /// Place of each region.
    pub(super) areas: Vec<Rect>,
}

impl Ground {
    /// Places all regions; one without a place is at (0, 0).
    ///
    /// # Errors
    /// Regions overlap or leave the mesh.
    pub(super) fn new(
        cx: &mut Session<'_>,
        builder: &LayoutBuilder,
        places: &Places,
    ) -> Result<Ground, Reported> {
        let area = |region: &Region| {
            let (Coord { x, y }, (width, height)) = (region.at.unwrap_or_default(), region.size);
            Rect { x, y, width, height }
        };
        let areas: Vec<Rect> = builder.regions.iter().map(area).collect();
        let size = size(builder, &areas);
        let count = usize::from(size.0) * usize::from(size.1);
        let mut ground = Ground { size, owner: vec![NONE; count], areas };
        let mut failed = None;
        for index in 0..ground.areas.len() {
            if let Err(reported) = ground.claim(cx, builder, places, index) {
                failed = Some(reported);
            }
        }
        failed.map_or(Ok(ground), Err)
    }

    fn claim(
        &mut self,
        cx: &mut Session<'_>,
        builder: &LayoutBuilder,
        places: &Places,
        index: usize,
    ) -> Result<(), Reported> {
        let (area, region) = (self.areas[index], &builder.regions[index]);
        let reaches =
            |first: u16, side: u16, end: u16| first.checked_add(side).is_none_or(|last| last > end);
        if reaches(area.x, area.width, self.size.0) || reaches(area.y, area.height, self.size.1) {
            let message = format!(
                "region `{}` at ({}, {}) with {} x {} PEs leaves the mesh of {} x {} PEs",
                region.name, area.x, area.y, area.width, area.height, self.size.0, self.size.1
            );
            let span = places.span(region.mark);
            return Err(cx.emit(Diagnostic::new(codes::OUTSIDE_RECTANGLE, message, span)));
        }
        for at in area.coords() {
            let cell = self.index(at);
            let other = self.owner[cell];
            if other != NONE {
                let other = &builder.regions[other as usize];
                return Err(overlap(cx, places, other, region, at));
            }
            self.owner[cell] = index as u32;
        }
        Ok(())
    }

    /// The region of a PE.
    pub(super) fn region_at(&self, at: Coord) -> Option<RegionId> {
        let owner = self.owner.get(self.index(at)).copied().filter(|&owner| owner != NONE)?;
        (at.x < self.size.0).then_some(RegionId(owner))
    }

    /// All PEs that run code.
    pub(super) fn code(&self) -> Cells {
        let mut cells = Cells::none(self.size);
        self.areas.iter().for_each(|area| cells.insert_all(*area));
        cells
    }

    /// An area of a region in coordinates of the mesh.
    pub(super) fn absolute(&self, region: usize, area: Rect) -> Rect {
        let Rect { x, y, .. } = self.areas[region];
        Rect { x: x + area.x, y: y + area.y, ..area }
    }

    /// The PEs of a port, from north-west on.
    pub(super) fn port_pes(&self, port: &PortDef) -> Vec<Coord> {
        let index = port.region.0 as usize;
        let Rect { width, height, .. } = self.areas[index];
        self.absolute(index, port.edge.of((width, height))).coords().collect()
    }

    pub(super) fn index(&self, at: Coord) -> usize {
        usize::from(at.y) * usize::from(self.size.0) + usize::from(at.x)
    }
}

/// As given, or what the regions and streams need.
fn size(builder: &LayoutBuilder, areas: &[Rect]) -> (u16, u16) {
    if let Some(size) = builder.size {
        return size;
    }
    let (columns, rows) = Target::get(builder.target).max_rect;
    let vias = builder.joints.iter().filter_map(super::wires::via);
    let ends = areas.iter().map(|area| (area.x + area.width, area.y + area.height));
    let ends = ends.chain(vias.map(|at| (at.x + 1, at.y + 1)));
    let most = ends.fold((1, 1), |most: (u16, u16), end| (most.0.max(end.0), most.1.max(end.1)));
    ((most.0 + MARGIN).min(columns), (most.1 + MARGIN).min(rows))
}

fn overlap(
    cx: &mut Session<'_>,
    places: &Places,
    first: &Region,
    second: &Region,
    at: Coord,
) -> Reported {
    let message = format!(
        "PE ({}, {}) belongs to two regions, `{}` and `{}`",
        at.x, at.y, first.name, second.name
    );
    let unplaced = [first, second].into_iter().find(|region| region.at.is_none());
    let diagnostic = Diagnostic::new(codes::TILE_DUPLICATE, message, places.span(second.mark))
        .label("second region")
        .secondary(places.span(first.mark), "first region");
    cx.emit(match unplaced {
        Some(region) => diagnostic
            .help(format!("`{}` was never placed, so it is at (0, 0): place it", region.name)),
        None => diagnostic.help("place one of them elsewhere"),
    })
}

/// What routes each color of each PE.
pub(super) struct Painted<'b> {
    /// Positions and the request that gave them.
    pub(super) routes: Vec<(&'b [RoutingPosition], Mark)>,
    /// Per color that is painted at all: index into `routes`, per PE of the mesh.
    of: BTreeMap<ColorId, Vec<u32>>,
}

impl<'b> Painted<'b> {
    /// Paints in the order of requests, then ports over them.
    ///
    /// # Errors
    /// Two ports of one color share a PE.
    pub(super) fn new(
        cx: &mut Session<'_>,
        builder: &'b LayoutBuilder,
        ground: &Ground,
        places: &Places,
    ) -> Result<Painted<'b>, Reported> {
        let mut painted = Painted { routes: Vec::new(), of: BTreeMap::new() };
        for (index, region) in builder.regions.iter().enumerate() {
            for paint in &region.paints {
                let id = painted.route(&paint.positions, paint.mark);
                let area = ground.absolute(index, paint.area);
                area.coords().for_each(|at| {
                    painted.put(ground, paint.color, at, id);
                });
            }
        }
        let first_port = painted.routes.len() as u32;
        for port in &builder.ports {
            let id = painted.route(&port.positions, port.mark);
            for at in ground.port_pes(port) {
                let before = painted.put(ground, port.color, at, id);
                if before != NONE && before >= first_port {
                    let first = painted.routes[before as usize].1;
                    return Err(two_ports(cx, builder, places, port, first, at));
                }
            }
        }
        Ok(painted)
    }

    fn route(&mut self, positions: &'b [RoutingPosition], mark: Mark) -> u32 {
        self.routes.push((positions, mark));
        (self.routes.len() - 1) as u32
    }

    fn put(&mut self, ground: &Ground, color: ColorId, at: Coord, route: u32) -> u32 {
        let cells = self.of.entry(color).or_insert_with(|| vec![NONE; ground.owner.len()]);
        std::mem::replace(&mut cells[ground.index(at)], route)
    }

    /// Colors that are painted, in order.
    pub(super) fn colors(&self) -> impl Iterator<Item = ColorId> {
        self.of.keys().copied()
    }

    /// How a PE routes a color, and who said so.
    pub(super) fn get(
        &self,
        ground: &Ground,
        color: ColorId,
        at: Coord,
    ) -> Option<(&'b [RoutingPosition], Mark)> {
        let route = *self.of.get(&color)?.get(ground.index(at))?;
        (route != NONE).then(|| self.routes[route as usize])
    }
}

fn two_ports(
    cx: &mut Session<'_>,
    builder: &LayoutBuilder,
    places: &Places,
    port: &PortDef,
    first: Mark,
    at: Coord,
) -> Reported {
    let message = format!(
        "color `{}` has two ports on PE ({}, {})",
        builder.color_name(port.color),
        at.x,
        at.y
    );
    cx.emit(
        Diagnostic::new(codes::ROUTE_CONFLICT, message, places.span(port.mark))
            .label("second port")
            .secondary(places.span(first), "first port")
            .help("give the second port a color of its own"),
    )
}
