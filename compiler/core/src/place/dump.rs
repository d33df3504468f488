//! The mesh as a picture: who runs where, what each color does, where memory went.

use std::fmt::{Result, Write};

use cranelift_entity::EntityRef;
use dflow_ir::image::{Image, MemoryMap, ProgramId};
use dflow_ir::mesh::{Color, ColorConfig, Coord, Rect, RectMap};
use dflow_ir::target::Target;
use indexmap::IndexSet;

use crate::dump::{config, grouped, rect};

/// Larger meshes are listed by rectangles.
const DRAWN: (u16, u16) = (64, 32);

/// How many rectangles a line lists.
const LISTED_RECTS: usize = 64;

/// The layout of an image as text.
pub(crate) fn picture(image: &Image) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_picture(&mut text, image);
    text
}

/// The routes of an image as text: which program is where, and what each color does.
pub(crate) fn routes(image: &Image) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_routes(&mut text, image);
    text
}

fn write_picture(text: &mut String, image: &Image) -> Result {
    write_routes(text, image)?;
    image.programs.keys().try_for_each(|program| write_memory(text, image, program))
}

fn write_routes(text: &mut String, image: &Image) -> Result {
    let Rect { x, y, width, height } = image.placement.rect;
    let n_programs = image.programs.len();
    let plural = if n_programs == 1 { "program" } else { "programs" };
    write!(text, "mesh {width}x{height}, {n_programs} {plural}")?;
    if (x, y) != (0, 0) {
        write!(text, ", at ({x},{y})")?;
    }
    writeln!(text)?;
    let is_drawn = width <= DRAWN.0 && height <= DRAWN.1;
    if is_drawn {
        write_cells(text, image)?;
    }
    write_programs(text, image, is_drawn)?;
    write_colors(text, image)
}

/// `A` to `Z`, then `AA` and so on.
fn label(program: ProgramId) -> String {
    let mut number = program.index() + 1;
    let mut letters = Vec::new();
    while number > 0 {
        number -= 1;
        letters.push(char::from(b'A' + (number % 26) as u8));
        number /= 26;
    }
    letters.iter().rev().collect()
}

fn label_width(image: &Image) -> usize {
    image.programs.keys().next_back().map_or(1, |last| label(last).len())
}

/// One cell per PE, a dot where none is placed.
fn write_cells(text: &mut String, image: &Image) -> Result {
    let Rect { x: _, y: _, width, height } = image.placement.rect;
    let cells = grid(&image.placement.programs, width, height);
    let wide = label_width(image);
    for row in cells.chunks(usize::from(width).max(1)) {
        write!(text, " ")?;
        for cell in row {
            let name = cell.map_or(".".to_owned(), label);
            write!(text, " {name:wide$}")?;
        }
        let end = text.trim_end_matches(' ').len();
        text.truncate(end);
        writeln!(text)?;
    }
    Ok(())
}

/// A map's values PE by PE in row-major order.
fn grid<T: Copy>(map: &RectMap<T>, width: u16, height: u16) -> Vec<Option<T>> {
    let mut cells = vec![None; usize::from(width) * usize::from(height)];
    for (at, &value) in map.iter_pes().filter(|(at, _)| at.x < width && at.y < height) {
        cells[index(at, width)] = Some(value);
    }
    cells
}

fn index(at: Coord, width: u16) -> usize {
    usize::from(at.y) * usize::from(width) + usize::from(at.x)
}

fn write_programs(text: &mut String, image: &Image, is_drawn: bool) -> Result {
    let areas: Vec<u64> = image.programs.keys().map(|program| area(image, program)).collect();
    let pes: Vec<String> = areas.iter().map(|&area| grouped(area)).collect();
    let words: Vec<String> =
        image.memory.values().map(|map| grouped(used(map).div_ceil(2))).collect();
    let longest = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or(0);
    let name = image.programs.values().map(|program| program.name.chars().count()).max();
    let (name, wide) = (name.unwrap_or(0), label_width(image));
    let (pes_wide, words_wide) = (longest(&pes), longest(&words));
    for (id, program) in &image.programs {
        let (pe, word) = (&pes[id.index()], &words[id.index()]);
        let unit = if areas[id.index()] == 1 { "PE " } else { "PEs" };
        let (label, title) = (label(id), &program.name);
        write!(text, "{label:wide$}  {title:name$}  {pe:>pes_wide$} {unit}  ")?;
        writeln!(text, "{word:>words_wide$} words")?;
        if !is_drawn {
            let entries = image.placement.programs.entries.iter();
            let rects = entries.filter(|&&(_, program)| program == id).map(|&(area, _)| area);
            write!(text, "  ")?;
            write_rects(text, &rects.collect::<Vec<_>>())?;
            writeln!(text)?;
        }
    }
    Ok(())
}

fn write_rects(text: &mut String, rects: &[Rect]) -> Result {
    rects.iter().take(LISTED_RECTS).try_for_each(|&area| write!(text, " {}", rect(area)))?;
    match rects.len().saturating_sub(LISTED_RECTS) {
        0 => Ok(()),
        more => write!(text, " and {more} more"),
    }
}

fn area(image: &Image, program: ProgramId) -> u64 {
    let entries = image.placement.programs.entries.iter();
    entries.filter(|&&(_, other)| other == program).map(|(rect, _)| rect.area() as u64).sum()
}

fn used(map: &MemoryMap) -> u64 {
    u64::from(map.data_end).next_multiple_of(8) + u64::from(map.stack) + u64::from(map.code)
}

fn write_colors(text: &mut String, image: &Image) -> Result {
    let Rect { x: _, y: _, width, height } = image.placement.rect;
    let routers = grid(&image.placement.router_map, width, height);
    for number in 0..Color::COUNT as u8 {
        let Some(color) = Color::new(number) else { continue };
        let mut configs: IndexSet<&ColorConfig> = IndexSet::new();
        let of_router: Vec<Option<usize>> = image
            .placement
            .routers
            .iter()
            .map(|router| {
                let entry = router.colors.iter().find(|&&(other, _, _)| other == color);
                entry.map(|(_, config, _)| configs.insert_full(config).0)
            })
            .collect();
        if configs.is_empty() {
            continue;
        }
        let map = RectMap::from_grid(width, height, |at| {
            of_router.get(routers[index(at, width)]? as usize).copied().flatten()
        });
        if map.entries.is_empty() {
            continue;
        }
        write!(text, "color {number:<2}")?;
        for (area, index) in map.entries.iter().take(LISTED_RECTS) {
            let config = configs.get_index(*index).map_or(String::new(), |found| config(found));
            write!(text, "  {} {config}", rect(*area))?;
        }
        match map.entries.len().saturating_sub(LISTED_RECTS) {
            0 => writeln!(text)?,
            more => writeln!(text, "  and {more} more")?,
        }
    }
    Ok(())
}

fn write_memory(text: &mut String, image: &Image, id: ProgramId) -> Result {
    let (program, map) = (&image.programs[id], &image.memory[id]);
    let MemoryMap { globals, data_end, stack, code } = map;
    let memory = u64::from(Target::get(image.target).memory);
    let free = memory.saturating_sub(used(map));
    write!(text, "memory of {} {}: ", label(id), program.name)?;
    write!(text, "data to {}, stack {}, ", grouped((*data_end).into()), grouped((*stack).into()))?;
    writeln!(text, "code about {}, free {}", grouped((*code).into()), grouped(free))?;
    for (global, address) in globals {
        let global = &program.globals[*global];
        let size = grouped(global.size.into());
        writeln!(text, "  {address:>6}  {size:>8}  {}", global.name)?;
    }
    Ok(())
}
