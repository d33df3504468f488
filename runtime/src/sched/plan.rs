//! The machine's immutable part: geometry, programs, routers, links to the host.
//!
//! Invariant: nothing here changes during a run; all threads share it. PEs are numbered row by
//! row over the program's rectangle; a region numbers its own PEs likewise.

use std::collections::BTreeMap;

use dflow_ir::mesh::{Coord, Port};
use dflow_ir::target::TargetId;

use crate::fabric::plan::RouterPlan;
use crate::fabric::router::RAMP;
use crate::machine::HostLinkInfo;
use crate::pe::plan::PePlan;

/// The shared, immutable part.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) target: TargetId,
    /// Width and height of a region.
    pub(crate) extent: (u32, u32),
    /// Colors whose words may go from one region to another, as bits.
    pub(crate) crossing: u32,
    pub(crate) timing: Latencies,
    pub(crate) programs: Vec<PePlan>,
    /// Program of each PE; `u16::MAX` for none.
    pub(crate) program_of: Vec<u16>,
    pub(crate) routers: Vec<RouterPlan>,
    /// Router plan of each PE.
    pub(crate) router_of: Vec<u32>,
    /// Links to the host, ordered by (PE, color, port).
    pub(crate) links: Vec<HostLinkInfo>,
    /// Per link: how many words the host's end holds; `None` where there is no bound.
    pub(crate) rooms: Vec<Option<u64>>,
    /// Whether events are kept.
    pub(crate) record: bool,
    /// Whether what is odd is a trap.
    pub(crate) strict: bool,
    /// Whether reads of what nothing has written are odd.
    pub(crate) track: bool,
}

/// Latencies and capacities (spec/time.md, section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Latencies {
    pub(crate) hop: u64,
    pub(crate) credit: u64,
    pub(crate) ramp_up: u64,
    pub(crate) ramp_down: u64,
    pub(crate) task_start: u64,
    pub(crate) completion: u64,
    pub(crate) link_places: u32,
    pub(crate) ramp_places: u32,
}

/// Cycles that neighboring threads may be apart where latencies are shorter.
const APART: u64 = 4;

impl Latencies {
    /// From the target's data; every latency is at least one cycle (R1).
    pub(crate) fn new(timing: &dflow_ir::target::Timing) -> Latencies {
        let [hop, credit, up, down] =
            [timing.hop, timing.credit, timing.ramp_up, timing.ramp_down].map(|it| it.max(1));
        Latencies {
            hop: hop.into(),
            credit: credit.into(),
            ramp_up: up.into(),
            ramp_down: down.into(),
            task_start: timing.task_start.max(1).into(),
            completion: timing.completion.max(1).into(),
            link_places: hop + credit + timing.router_spare,
            ramp_places: up + credit,
        }
    }
}

impl Latencies {
    /// Places of a router's buffer at a port.
    pub(crate) fn places_at(&self, port: u8) -> u32 {
        if port == RAMP { self.ramp_places } else { self.link_places }
    }

    /// Cycles after which one region may know at the earliest what another one does.
    pub(crate) fn lead(&self) -> u64 {
        self.hop.min(self.credit)
    }

    /// The same of what goes by pipes over so many borders: a word goes up the ramp before it goes over
    /// a link, and a place comes back over the ramp, a link and the ramp. No more than threads may be apart.
    pub(crate) fn lead_of_pipes(&self, borders: u32) -> u64 {
        let first = (self.ramp_up + self.hop).min(3 * self.credit).min(self.lead().max(APART));
        first + u64::from(borders.saturating_sub(1)) * self.lead()
    }

    /// Cycles that a core may be ahead of its region (`pe::visit`): what its router grants in the
    /// region's next cycle comes in view later.
    pub(crate) fn ahead(&self) -> u64 {
        self.ramp_down.min(2 * self.credit)
    }
}

impl Plan {
    /// Whether any color has more than one switch position somewhere, as routers are configured.
    pub(crate) fn has_switches(&self) -> bool {
        self.routers.iter().flat_map(|router| &router.colors).any(|row| row.positions > 1)
    }

    /// Routers know of which colors the programs of their PEs may write registers: those with the same configuration
    /// become several where that differs.
    pub(crate) fn note_written(&mut self) {
        let (programs, routers) = (&self.programs, &mut self.routers);
        let mut known = BTreeMap::new();
        for (router, &program) in self.router_of.iter_mut().zip(&self.program_of) {
            let written = programs.get(usize::from(program)).map_or(0, |program| program.written);
            if written == 0 {
                continue;
            }
            *router = *known.entry((*router, written)).or_insert_with_key(|&(router, written)| {
                let plan = RouterPlan { written, ..routers[router as usize].clone() };
                routers.push(plan);
                routers.len() as u32 - 1
            });
        }
    }

    /// Regions per row.
    pub(crate) fn columns(&self) -> u32 {
        self.width.div_ceil(self.extent.0)
    }

    /// Regions in all.
    pub(crate) fn regions(&self) -> u32 {
        self.columns() * self.height.div_ceil(self.extent.1)
    }

    /// Region of a PE, and the PE's number in it.
    pub(crate) fn locate(&self, x: u32, y: u32) -> (u32, u32) {
        let (across, down) = self.extent;
        let (column, row) = (x / across, y / down);
        let width = across.min(self.width - column * across);
        let local = (y % down) * width + x % across;
        (row * self.columns() + column, local)
    }

    /// Bytes of what has an entry per PE.
    pub(crate) fn table_bytes(&self) -> usize {
        size_of_val(&*self.program_of) + size_of_val(&*self.router_of)
    }

    /// Number of a PE.
    pub(crate) fn number(&self, x: u32, y: u32) -> usize {
        (y * self.width + x) as usize
    }

    /// Place of a PE.
    pub(crate) fn coord(&self, number: usize) -> Coord {
        let number = number as u32;
        Coord { x: (number % self.width) as u16, y: (number / self.width) as u16 }
    }

    /// The neighbor in a direction, if it is in the rectangle.
    pub(crate) fn neighbor(&self, x: u32, y: u32, port: Port) -> Option<(u32, u32)> {
        let (dx, dy) = port.step();
        let x = x.checked_add_signed(dx).filter(|&x| x < self.width)?;
        let y = y.checked_add_signed(dy).filter(|&y| y < self.height)?;
        Some((x, y))
    }

    /// The program of a PE.
    pub(crate) fn program(&self, pe: usize) -> Option<&PePlan> {
        self.programs.get(usize::from(*self.program_of.get(pe)?))
    }

    /// Whether a PE has links to the host.
    pub(crate) fn has_links(&self, pe: usize) -> bool {
        let number = |link: &HostLinkInfo| self.number(link.at.x.into(), link.at.y.into());
        let first = self.links.partition_point(|link| number(link) < pe);
        self.links.get(first).is_some_and(|link| number(link) == pe)
    }

    /// The link that joins a PE's port to the host on a color.
    pub(crate) fn link(&self, pe: usize, port: Port, color: u8) -> Option<u32> {
        let key = |link: &HostLinkInfo| {
            let at = self.number(link.at.x.into(), link.at.y.into());
            (at, link.color.index(), link.port)
        };
        self.links.binary_search_by_key(&(pe, color, port), key).ok().map(|index| index as u32)
    }
}
