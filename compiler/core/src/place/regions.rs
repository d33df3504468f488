//! The rectangle, and who runs where in it.

use cranelift_entity::{EntityRef, PrimaryMap};
use dflow_ir::image::ProgramId;
use dflow_ir::mesh::RectMap;
use dflow_ir::program::Program;
use dflow_ir::target::Target;
use dflow_syntax::{Diagnostic, Reported, Span, codes};
use indexmap::IndexMap;

use super::fold::Folded;
use super::pes::Pes;
use crate::plan::{Plan, ProgramIdx, TileUse};
use crate::session::Session;

/// Judges the rectangle and that it is filled.
///
/// # Errors
/// There is no rectangle to place anything in.
pub(super) fn check(cx: &mut Session<'_>, plan: &Plan, target: &Target) -> Result<(), Reported> {
    let Some(span) = plan.rect_span else { return Err(missing_rectangle(cx, plan)) };
    let (columns, rows) = target.max_rect;
    let rect = plan.rect;
    let reaches = |first: u16, n: u16, end: u16| u32::from(first) + u32::from(n) > u32::from(end);
    let leaves = reaches(rect.x, rect.width, columns) || reaches(rect.y, rect.height, rows);
    if rect.area() == 0 || leaves {
        let what = match (rect.area(), rect.x, rect.y) {
            (0, _, _) => "is empty".to_owned(),
            (_, 0, 0) => "does not fit the mesh".to_owned(),
            (_, x, y) => format!("at ({x}, {y}) does not fit the mesh"),
        };
        let message = format!("a rectangle of {} x {} PEs {what}", rect.width, rect.height);
        let name = target.id.name();
        let diagnostic = Diagnostic::new(codes::RECTANGLE_TOO_LARGE, message, span)
            .label(format!("{name} has room for 1 x 1 to {columns} x {rows}"));
        return Err(cx.emit(diagnostic));
    }
    if !plan.sparse {
        check_tiles(cx, plan, span);
    }
    check_outside(cx, plan, span);
    Ok(())
}

fn missing_rectangle(cx: &mut Session<'_>, plan: &Plan) -> Reported {
    let message = "the layout never sets its rectangle";
    let first = plan.tile_uses.first().map(|&(_, span)| span);
    let first = first.or_else(|| plan.color_uses.first().map(|&(_, _, span)| span));
    let diagnostic = match first {
        Some(span) => Diagnostic::new(codes::RECTANGLE_MISSING, message, span)
            .label("a PE of which rectangle?"),
        None => Diagnostic::without_place(codes::RECTANGLE_MISSING, message),
    };
    cx.emit(diagnostic.help("begin the layout block with `@set_rectangle(width, height)`"))
}

fn check_tiles(cx: &mut Session<'_>, plan: &Plan, span: Span) {
    let area = plan.rect.area() as u32;
    let mut missing: Option<Pes> = None;
    for index in (0..area).filter(|&index| tile(plan, index).is_none()) {
        match &mut missing {
            Some(pes) => pes.add(),
            None => missing = Some(Pes::one(plan.coord(index))),
        }
    }
    let Some(pes) = missing else { return };
    cx.emit(
        Diagnostic::new(codes::TILE_MISSING, format!("no code is set {pes}"), span)
            .label("this rectangle")
            .help("give every PE of the rectangle its code with `@set_tile_code`"),
    );
}

/// Requests for PEs that the rectangle does not have: only a plan that was not made by a layout
/// block can hold them.
fn check_outside(cx: &mut Session<'_>, plan: &Plan, rect: Span) {
    let area = plan.rect.area();
    let mut outside: IndexMap<Span, Pes> = IndexMap::new();
    let colors = plan.colors.iter().filter(|&&(pe, _)| pe as usize >= area);
    for &(pe, use_) in colors {
        let Some(&(_, _, span)) = plan.color_uses.get_index(use_.0 as usize) else { continue };
        outside.entry(span).and_modify(Pes::add).or_insert(Pes::one(plan.coord(pe)));
    }
    for used in plan.tiles.iter().enumerate().skip(area) {
        let (pe, Some(tile)) = used else { continue };
        let Some(&(_, span)) = plan.tile_uses.get_index(tile.tile as usize) else { continue };
        outside.entry(span).and_modify(Pes::add).or_insert(Pes::one(plan.coord(pe as u32)));
    }
    for (span, pes) in outside {
        let message = format!("this is outside the rectangle {pes}");
        cx.emit(
            Diagnostic::new(codes::OUTSIDE_RECTANGLE, message, span)
                .secondary(rect, "the rectangle"),
        );
    }
}

fn tile(plan: &Plan, index: u32) -> Option<TileUse> {
    plan.tiles.get(index as usize).copied().flatten()
}

/// The plan's program of a PE.
fn program_of(plan: &Plan, index: u32) -> Option<ProgramIdx> {
    plan.tile_uses.get_index(tile(plan, index)?.tile as usize).map(|&(program, _)| program)
}

/// The folded program of a PE.
pub(super) fn folded_of(plan: &Plan, folded: &Folded, index: u32) -> Option<ProgramId> {
    let program = program_of(plan, index)?;
    folded.of.get(program.0 as usize).copied().flatten()
}

/// Who runs each of the plan's programs, and where the first was given it.
pub(super) fn uses(plan: &Plan, n_programs: usize) -> Vec<Option<(Pes, Span)>> {
    let mut uses: Vec<Option<(Pes, Span)>> = vec![None; n_programs];
    for index in 0..plan.rect.area() as u32 {
        let Some(tile) = tile(plan, index) else { continue };
        let Some(&(program, span)) = plan.tile_uses.get_index(tile.tile as usize) else { continue };
        match uses.get_mut(program.0 as usize) {
            Some(Some((pes, _))) => pes.add(),
            Some(none) => *none = Some((Pes::one(plan.coord(index)), span)),
            None => debug_assert!(false, "tiles name programs"),
        }
    }
    uses
}

/// Program of each PE, as rectangles.
pub(super) fn programs(plan: &Plan, folded: &Folded) -> RectMap<ProgramId> {
    RectMap::from_grid(plan.rect.width, plan.rect.height, |at| {
        folded_of(plan, folded, plan.index(at))
    })
}

/// Slot values of each program, its PEs in row-major order.
pub(super) fn slots(
    plan: &Plan,
    folded: &Folded,
    programs: &PrimaryMap<ProgramId, Program>,
) -> PrimaryMap<ProgramId, Vec<u64>> {
    let mut slots: PrimaryMap<ProgramId, Vec<u64>> =
        folded.first.keys().map(|_| Vec::new()).collect();
    for index in 0..plan.rect.area() as u32 {
        let (Some(tile), Some(program)) = (tile(plan, index), program_of(plan, index)) else {
            continue;
        };
        let Some(id) = folded_of(plan, folded, index) else { continue };
        let n_slots = programs[ProgramId::new(program.0 as usize)].slots.len();
        let start = tile.slot_block as usize * n_slots;
        let block = plan.slots.get(program.0 as usize);
        let block = block.and_then(|values| values.get(start..start + n_slots));
        debug_assert!(n_slots == 0 || block.is_some(), "every PE has its slots");
        slots[id].extend_from_slice(block.unwrap_or_default());
    }
    slots
}
