//! The plan is judged and becomes a placement.
//!
//! Absences first: nothing here evaluates the language, reads source text or knows a library by
//! name; a generation of the machine is known by its limits only. What the layout asked for is
//! kept, nothing is added: a PE without a route for a color has none.
//!
//! Invariants: faults are gathered, all of them, and each is reported once with the places of
//! both parties, however many PEs it happens on. Output follows row-major order of PEs and the
//! order of requests, never an address or a hash. Per-PE work is a few operations: a whole
//! wafer is 745,500 PEs.

mod addresses;
mod arrivals;
mod exports;
mod filters;
mod fold;
mod leave;
mod memory;
mod odd;
mod pes;
mod regions;
mod resources;
mod routes;
mod rules;
mod settings;
mod stack;
mod wafer;
pub(crate) mod wires;

pub(crate) mod dump;

#[cfg(test)]
mod tests;

pub use wafer::Wafer;

use cranelift_entity::PrimaryMap;
use dflow_ir::image::{Export, HostStream, MemoryMap, Placement, ProgramId};
use dflow_ir::program::Program;
use dflow_ir::target::Target;
use dflow_syntax::{Reported, Span};

use crate::lower::LocTable;
use crate::plan::Plan;
use crate::session::Session;
use crate::typed;

use pes::Pes;

/// What placing makes of a plan.
#[derive(Debug)]
pub(crate) struct Placed {
    /// Programs that some PE runs, equal ones once.
    pub(crate) programs: PrimaryMap<ProgramId, Program>,
    /// Their addresses.
    pub(crate) memory: PrimaryMap<ProgramId, MemoryMap>,
    /// Who runs where, and what routers are told.
    pub(crate) placement: Placement,
    /// What the host can name.
    pub(crate) exports: Vec<Export>,
    /// Streams between the host and routers.
    pub(crate) streams: Vec<HostStream>,
}

/// A program on its PEs.
struct Tile<'a> {
    typed: &'a typed::Program,
    ir: &'a Program,
    pes: Pes,
    /// Where its first PE was given the code.
    span: Span,
}

/// Judges the plan and places its programs. `typed` and `programs` are indexed by the plan's
/// [`crate::plan::ProgramIdx`]: the first for places of faults, the second for what runs.
///
/// # Errors
/// All faults of the plan have been reported.
pub(crate) fn place(
    cx: &mut Session<'_>,
    plan: &Plan,
    typed: &[typed::Program],
    programs: &PrimaryMap<ProgramId, Program>,
) -> Result<Placed, Reported> {
    let target = Target::get(cx.options.target);
    cx.go_on()?;
    regions::check(cx, plan, target)?;
    let uses = regions::uses(plan, typed.len());
    let folded = fold::fold(programs, &uses);
    let tiles: PrimaryMap<ProgramId, Tile<'_>> =
        folded.first.values().filter_map(|&index| tile(index, typed, programs, &uses)).collect();
    resources::check(cx, &tiles, target);
    exports::check(cx, plan, &tiles);
    odd::check(cx, &tiles, target);
    settings::check(cx, &tiles);
    cx.go_on()?;
    let memory = memory::maps(cx, &tiles, target);
    cx.go_on()?;
    let routes = routes::merge(cx, plan, &tiles, &folded, target)?;
    resources::check_colors(cx, &tiles, routes.to_cores());
    cx.sink.ok()?;
    let locs = LocTable::new(&cx.sources);
    Ok(Placed {
        programs: tiles.values().map(|tile| tile.ir.clone()).collect(),
        memory,
        placement: Placement {
            rect: plan.rect,
            programs: regions::programs(plan, &folded),
            slots: regions::slots(plan, &folded, programs),
            routers: routes.routers(&locs),
            router_map: routes.map,
        },
        exports: exports::table(plan, &locs),
        streams: plan.streams.clone(),
    })
}

fn tile<'a>(
    index: crate::plan::ProgramIdx,
    typed: &'a [typed::Program],
    programs: &'a PrimaryMap<ProgramId, Program>,
    uses: &[Option<(Pes, Span)>],
) -> Option<Tile<'a>> {
    let (pes, span) = uses.get(index.0 as usize).copied().flatten()?;
    let ir = programs.get(ProgramId::from_u32(index.0))?;
    Some(Tile { typed: typed.get(index.0 as usize)?, ir, pes, span })
}
