//! The plan as text.

use std::fmt::Write;

use dflow_ir::image::{ExportKind, HostStream};
use dflow_ir::mesh::{Coord, Rect, RectMap};
use dflow_syntax::SourceMap;

use super::{config, rect};
use crate::plan::{Plan, PlanExport};

/// Slot values are listed up to this many PEs of a program.
const LISTED_SLOT_BLOCKS: usize = 64;

/// What the layout asked for, with the places; `names` are those of the programs.
pub(crate) fn plan(plan: &Plan, names: &[String], sources: &SourceMap) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_plan(&mut text, plan, names, sources);
    text
}

fn write_plan(
    text: &mut String,
    plan: &Plan,
    names: &[String],
    sources: &SourceMap,
) -> std::fmt::Result {
    let Plan {
        rect: rectangle,
        rect_span,
        tiles: _,
        tile_uses: _,
        slots: _,
        colors: _,
        color_uses: _,
        exports,
        params,
        memcpy,
        streams,
        sparse: _,
    } = plan;
    let place = rect_span.map_or("nowhere".to_owned(), |span| sources.place(span));
    let (x, y) = (rectangle.x, rectangle.y);
    writeln!(text, "plan {}x{} at ({x},{y}), {place}", rectangle.width, rectangle.height)?;
    for (name, value) in params {
        writeln!(text, "param {name} = {value}")?;
    }
    if let Some(memcpy) = memcpy {
        let list = |colors: &[dflow_ir::mesh::Color]| {
            colors.iter().map(|color| color.index().to_string()).collect::<Vec<_>>().join(" ")
        };
        writeln!(text, "memcpy h2d [{}] d2h [{}]", list(&memcpy.h2d), list(&memcpy.d2h))?;
    }
    for HostStream { name, at, port, color, to_mesh, buffer } in streams {
        let direction = if *to_mesh { "from" } else { "to" };
        write!(text, "stream {name}: color {} {direction} the host, ", color.index())?;
        writeln!(text, "{} side of ({},{}), buffer {buffer}", port.name(), at.x, at.y)?;
    }
    write_tiles(text, plan, names, sources)?;
    write_slots(text, plan, names)?;
    write_colors(text, plan, sources)?;
    for (PlanExport { name, kind, type_name, span }, id) in exports.iter().zip(0..) {
        let mutable = match kind {
            ExportKind::Pointer { mutable: true, .. }
            | ExportKind::Scalar { mutable: true, .. } => " mutable",
            ExportKind::Pointer { .. }
            | ExportKind::Scalar { .. }
            | ExportKind::Function { .. } => "",
        };
        writeln!(text, "export {id} {name}: {type_name}{mutable}, {}", sources.place(*span))?;
    }
    Ok(())
}

fn write_tiles(
    text: &mut String,
    plan: &Plan,
    names: &[String],
    sources: &SourceMap,
) -> std::fmt::Result {
    let (width, height) = (plan.rect.width, plan.rect.height);
    let tile = |at: Coord| plan.tiles.get(plan.index(at) as usize).copied().flatten();
    let map = RectMap::from_grid(width, height, |at| tile(at).map(|tile| tile.tile));
    for ((program, span), index) in plan.tile_uses.iter().zip(0..) {
        let name = names.get(program.0 as usize).map_or("?", String::as_str);
        write!(text, "tile {name}, {}:", sources.place(*span))?;
        for (area, _) in map.entries.iter().filter(|&&(_, tile)| tile == index) {
            write!(text, " {}", rect(*area))?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn write_slots(text: &mut String, plan: &Plan, names: &[String]) -> std::fmt::Result {
    for ((values, name), program) in plan.slots.iter().zip(names).zip(0..) {
        let blocks = plan.tiles.iter().flatten().filter(|tile| {
            let uses = plan.tile_uses.get_index(tile.tile as usize);
            uses.is_some_and(|(used, _)| used.0 == program)
        });
        let n_blocks = blocks.count();
        if values.is_empty() || n_blocks == 0 {
            continue;
        }
        let n_slots = values.len() / n_blocks;
        write!(text, "slots {name}: {n_blocks} PEs x {n_slots}")?;
        if n_blocks <= LISTED_SLOT_BLOCKS {
            for block in values.chunks(n_slots.max(1)) {
                let block: Vec<String> = block.iter().map(u64::to_string).collect();
                write!(text, " [{}]", block.join(" "))?;
            }
        }
        writeln!(text)?;
    }
    Ok(())
}

fn write_colors(text: &mut String, plan: &Plan, sources: &SourceMap) -> std::fmt::Result {
    let mut uses: Vec<Vec<u32>> = vec![Vec::new(); plan.color_uses.len()];
    for &(pe, request) in &plan.colors {
        if let Some(pes) = uses.get_mut(request.0 as usize) {
            pes.push(pe);
        }
    }
    for ((color, color_config, span), mut pes) in plan.color_uses.iter().zip(uses) {
        pes.sort_unstable();
        write!(text, "color {} {}, ", color.index(), config(color_config))?;
        write!(text, "{}:", sources.place(*span))?;
        areas(plan, &pes).iter().try_for_each(|&area| write!(text, " {}", rect(area)))?;
        writeln!(text)?;
    }
    Ok(())
}

/// A sorted list of PEs as rectangles. Looks at the part of the mesh that they span only, since
/// a plan may hold a request per PE.
fn areas(plan: &Plan, pes: &[u32]) -> Vec<Rect> {
    let places = || pes.iter().map(|&pe| plan.coord(pe));
    let (Some(left), Some(right)) = (places().map(|at| at.x).min(), places().map(|at| at.x).max())
    else {
        return Vec::new();
    };
    let (Some(top), Some(bottom)) = (places().map(|at| at.y).min(), places().map(|at| at.y).max())
    else {
        return Vec::new();
    };
    let map = RectMap::from_grid(right - left + 1, bottom - top + 1, |at| {
        let at = Coord { x: at.x + left, y: at.y + top };
        pes.binary_search(&plan.index(at)).is_ok().then_some(())
    });
    let rects = map.entries.iter();
    rects.map(|(area, ())| Rect { x: area.x + left, y: area.y + top, ..*area }).collect()
}
