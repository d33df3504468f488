//! First values of arrays, different on every PE: constants per PE that reach the array.

use dflow_ir::ty::Ty;
use dflow_syntax::{Diagnostic, codes};

use super::LayoutBuilder;
use super::geometry::Ground;
use super::notes::Places;
use crate::plan::TileUse;
use crate::sema::{R, Sema};
use crate::typed::{GlobalIdx, SlotIdx};

/// An array of a program that is given values on some PE.
struct Array {
    global: usize,
    bytes: usize,
}

/// Enters the values of all regions into the plan and the programs.
///
/// # Errors
/// A program does not have the array, or it has another size.
pub(super) fn set(
    sema: &mut Sema<'_, '_>,
    builder: &LayoutBuilder,
    ground: &Ground,
    places: &Places,
) -> R<()> {
    let mut arrays: Vec<Vec<Array>> = sema.layout.programs().iter().map(|_| Vec::new()).collect();
    for (index, region) in builder.regions.iter().enumerate() {
        for symbol in &region.symbols {
            for (at, bytes) in ground.areas[index].coords().zip(&symbol.bytes) {
                let program = program_at(sema, at);
                let found = find(
                    sema,
                    program,
                    &symbol.name,
                    symbol.element,
                    bytes.len(),
                    places.span(symbol.mark),
                )?;
                let known = arrays[program].iter().any(|array| array.global == found);
                if !known {
                    arrays[program].push(Array { global: found, bytes: bytes.len() });
                }
            }
        }
    }
    for (program, arrays) in arrays.iter().enumerate().filter(|(_, arrays)| !arrays.is_empty()) {
        fill(sema, builder, ground, program, arrays);
    }
    Ok(())
}

fn program_at(sema: &Sema<'_, '_>, at: dflow_ir::mesh::Coord) -> usize {
    let plan = &sema.layout.plan;
    let tile = plan.tiles[plan.index(at) as usize];
    let used = tile.and_then(|tile| plan.tile_uses.get_index(tile.tile as usize));
    used.map_or(0, |(program, _)| program.0 as usize)
}

/// The array's number among the program's globals.
fn find(
    sema: &mut Sema<'_, '_>,
    program: usize,
    name: &str,
    element: u32,
    bytes: usize,
    span: dflow_syntax::Span,
) -> R<usize> {
    let program = &sema.layout.programs()[program];
    let Some(index) = program.globals.iter().position(|global| global.name == name) else {
        let known = program.globals.iter().filter(|global| global.exported);
        let known: Vec<String> = known.map(|global| format!("`{}`", global.name)).collect();
        let message = format!("`{}` has no variable `{name}`", program.name);
        let diagnostic = Diagnostic::new(codes::UNKNOWN_NAME, message, span).label("set here");
        return Err(sema.cx.emit(if known.is_empty() {
            diagnostic.help(format!("declare it as `export var {name}: …`"))
        } else {
            diagnostic.help(format!("it exports {}", known.join(", ")))
        }));
    };
    let global = &program.globals[index];
    if global.size as usize == bytes && global.relocs.is_empty() {
        return Ok(index);
    }
    let (size, at) = (global.size, global.span);
    let message = if size as usize == bytes {
        format!("`{name}` holds addresses: it cannot be given values")
    } else {
        format!(
            "`{name}` has {size} bytes on each PE, and is given {bytes}: {} elements of {element} bytes",
            bytes / element as usize
        )
    };
    Err(sema.cx.emit(
        Diagnostic::new(codes::TYPE_MISMATCH, message, span)
            .label("set here")
            .secondary(at, "declared here"),
    ))
}

/// Makes a program's slots: those that it has, then the words of its arrays; and their values on
/// each PE.
fn fill(
    sema: &mut Sema<'_, '_>,
    builder: &LayoutBuilder,
    ground: &Ground,
    program: usize,
    arrays: &[Array],
) {
    let (own, all) = declare(sema, program, arrays);
    let width = u32::from(sema.layout.plan.rect.width).max(1);
    let old = std::mem::take(&mut sema.layout.plan.slots[program]);
    let (mut values, mut block) = (Vec::new(), 0);
    for pe in 0..sema.layout.plan.tiles.len() as u32 {
        let at = dflow_ir::mesh::Coord { x: (pe % width) as u16, y: (pe / width) as u16 };
        let Some(TileUse { tile, slot_block }) = sema.layout.plan.tiles[pe as usize] else {
            continue;
        };
        if program_at(sema, at) != program {
            continue;
        }
        let start = slot_block as usize * own;
        values.extend_from_slice(old.get(start..start + own).unwrap_or_default());
        for array in arrays {
            words(&initial(sema, builder, ground, program, array, at), &mut values);
        }
        sema.layout.plan.tiles[pe as usize] = Some(TileUse { tile, slot_block: block });
        block += 1;
    }
    debug_assert_eq!(values.len(), all * block as usize);
    sema.layout.plan.slots[program] = values;
}

/// Adds slots for the words of arrays; gives the number of slots before and after.
fn declare(sema: &mut Sema<'_, '_>, program: usize, arrays: &[Array]) -> (usize, usize) {
    let program = sema.layout.program_mut(program);
    let own = program.slots.len();
    for array in arrays {
        let global = &mut program.globals[GlobalIdx(array.global as u32).0 as usize];
        global.slots.clear();
        for offset in (0..array.bytes).step_by(4) {
            let ty = if array.bytes - offset >= 4 { Ty::I32 } else { Ty::I16 };
            global.slots.push((offset as u32, SlotIdx(program.slots.len() as u32)));
            program.slots.push(ty);
        }
    }
    (own, program.slots.len())
}

/// The bytes of an array on a PE: the last that were given, else those of the declaration.
fn initial(
    sema: &Sema<'_, '_>,
    builder: &LayoutBuilder,
    ground: &Ground,
    program: usize,
    array: &Array,
    at: dflow_ir::mesh::Coord,
) -> Vec<u8> {
    let global = &sema.layout.programs()[program].globals[array.global];
    let given = ground.region_at(at).and_then(|region| {
        let area = ground.areas[region.0 as usize];
        let local =
            usize::from(at.y - area.y) * usize::from(area.width) + usize::from(at.x - area.x);
        let symbols = builder.get(region).symbols.iter().rev();
        let symbol = symbols.into_iter().find(|symbol| symbol.name == global.name)?;
        symbol.bytes.get(local).cloned()
    });
    given.unwrap_or_else(|| {
        let mut bytes = global.init.clone();
        bytes.resize(array.bytes, 0);
        bytes
    })
}

/// Bytes as 32-bit words, low bytes first; what is left over is one of 16.
fn words(bytes: &[u8], values: &mut Vec<u64>) {
    let little = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
    values.extend(bytes.chunks(4).map(little));
}
