//! Names for the host: declared by the layout, bound by programs.

use std::collections::BTreeMap;

use cranelift_entity::PrimaryMap;
use dflow_ir::image::{Export, ExportKind, ProgramId};
use dflow_syntax::{Diagnostic, codes};

use super::Tile;
use crate::lower::LocTable;
use crate::plan::{Plan, PlanExport};
use crate::session::Session;
use crate::typed::ExportBinding;

/// Judges that every export is bound by some program, and by none twice.
pub(super) fn check(cx: &mut Session<'_>, plan: &Plan, tiles: &PrimaryMap<ProgramId, Tile<'_>>) {
    let mut resolved = vec![false; plan.exports.len()];
    for tile in tiles.values() {
        let mut bound: BTreeMap<u32, &ExportBinding> = BTreeMap::new();
        for binding in &tile.typed.exports {
            if let Some(resolved) = resolved.get_mut(binding.export as usize) {
                *resolved = true;
            }
            match bound.get(&binding.export) {
                Some(first) => bound_twice(cx, plan, tile, first, binding),
                None => {
                    bound.insert(binding.export, binding);
                }
            }
        }
    }
    for (export, _) in plan.exports.iter().zip(resolved).filter(|(_, resolved)| !resolved) {
        unresolved(cx, export);
    }
}

fn unresolved(cx: &mut Session<'_>, export: &PlanExport) {
    let PlanExport { name, kind, type_name: _, span } = export;
    let symbol = match kind {
        ExportKind::Pointer { .. } => "a pointer",
        ExportKind::Scalar { .. } => "a variable",
        ExportKind::Function { .. } => "a function",
    };
    cx.emit(
        Diagnostic::new(
            codes::EXPORT_UNDEFINED,
            format!("`{name}` is declared for the host and no program exports it"),
            *span,
        )
        .label("the declaration")
        .help(format!(
            "export {symbol} as `{name}` with `@export_symbol` in the program that has it"
        )),
    );
}

fn bound_twice(
    cx: &mut Session<'_>,
    plan: &Plan,
    tile: &Tile<'_>,
    first: &ExportBinding,
    second: &ExportBinding,
) {
    let name = plan.exports.get(second.export as usize).map_or("", |export| export.name.as_str());
    cx.emit(
        Diagnostic::new(
            codes::EXPORT_DUPLICATE,
            format!("`{name}` is exported twice by one program"),
            second.span,
        )
        .label("second export")
        .secondary(first.span, "first export")
        .frame(tile.pes.frame(second.span, tile.span)),
    );
}

/// The image's table of exports; indices are the plan's.
pub(super) fn table(plan: &Plan, locs: &LocTable<'_>) -> Vec<Export> {
    let exports = plan.exports.iter();
    exports
        .map(|PlanExport { name, kind, type_name: _, span }| Export {
            name: name.clone(),
            kind: kind.clone(),
            loc: locs.loc(*span),
        })
        .collect()
}
