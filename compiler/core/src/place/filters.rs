//! Filters of each PE: not more than its router has, and one where a program asks for its id.

use cranelift_entity::PrimaryMap;
use dflow_ir::image::ProgramId;
use dflow_ir::mesh::Color;
use dflow_ir::target::Target;
use dflow_syntax::{Diagnostic, Span, codes};
use indexmap::{IndexMap, IndexSet};

use super::Tile;
use super::fold::Folded;
use super::pes::Pes;
use super::regions;
use super::routes::Request;
use crate::plan::Plan;
use crate::session::Session;

/// Faults found so far.
#[derive(Default)]
pub(super) struct Filters {
    /// By the place of the first filter that is too much.
    too_many: IndexMap<Span, (usize, Pes)>,
    /// By color and the place that asks.
    missing: IndexMap<(Color, Span), Pes>,
    /// Pairs of router and program that have been looked at and are well.
    well: IndexSet<(u32, u32)>,
}

impl Filters {
    /// Looks at the PE whose router has these requests and number.
    #[expect(clippy::too_many_arguments, reason = "a PE and what is known of it")]
    pub(super) fn look(
        &mut self,
        plan: &Plan,
        tiles: &PrimaryMap<ProgramId, Tile<'_>>,
        folded: &Folded,
        target: &Target,
        requests: &[Request<'_>],
        list: &[u32],
        (pe, router): (u32, u32),
    ) {
        let program = regions::folded_of(plan, folded, pe);
        let key = (router, program.map_or(u32::MAX, |program| program.as_u32()));
        if self.well.contains(&key) {
            return;
        }
        let mut well = true;
        let filtered = || list.iter().filter_map(|&at| requests.get(at as usize));
        let filtered = || filtered().filter(|request| request.config.filter.is_some());
        if let Some(beyond) = filtered().nth(target.filters.into()) {
            well = false;
            let known = self.too_many.entry(beyond.span);
            let one = (filtered().count(), Pes::one(plan.coord(pe)));
            known.and_modify(|(_, pes)| pes.add()).or_insert(one);
        }
        let uses = program.map_or(&[][..], |program| &tiles[program].typed.filter_uses);
        for &(color, span) in uses {
            if !filtered().any(|request| request.color == color) {
                well = false;
                let known = self.missing.entry((color, span));
                known.and_modify(Pes::add).or_insert(Pes::one(plan.coord(pe)));
            }
        }
        if well {
            self.well.insert(key);
        }
    }

    /// Reports what was found.
    pub(super) fn report(self, cx: &mut Session<'_>, target: &Target) {
        let name = target.id.name();
        for (span, (count, pes)) in self.too_many {
            let message = format!(
                "{count} colors have a filter {pes}: a router of {name} has {} filters",
                target.filters
            );
            cx.emit(
                Diagnostic::new(codes::RESOURCE_EXHAUSTED, message, span)
                    .label("one filter too many")
                    .help("let a task look at what it gets instead"),
            );
        }
        for ((color, span), pes) in self.missing {
            let message = format!("color {} has no filter {pes}", color.index());
            cx.emit(
                Diagnostic::new(codes::INVALID_ARGUMENT, message, span)
                    .label("its id is asked for here")
                    .help("give the color a `.filter` on every PE that runs this code"),
            );
        }
    }
}
