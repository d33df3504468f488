//! The memory map of each program: data, stack, an estimate of the code.

use cranelift_entity::PrimaryMap;
use dflow_ir::cost;
use dflow_ir::func::Func;
use dflow_ir::image::{MemoryMap, ProgramId};
use dflow_ir::program::Program;
use dflow_ir::target::Target;
use dflow_syntax::{Diagnostic, codes};

use super::addresses::{Addresses, Clash};
use super::{Tile, stack};
use crate::dump::grouped;
use crate::session::Session;

/// Bytes of stack, if memory allows.
pub(super) const DEFAULT_STACK: u64 = 2048;

/// Bytes of stack that a program gets at least.
pub(super) const LEAST_STACK: u64 = 256;

/// How many of the largest symbols an overflow names.
const NAMED_SYMBOLS: usize = 5;

/// The next multiple of `align`, at least 1.
pub(super) fn align_up(address: u64, align: u64) -> u64 {
    address.next_multiple_of(align.max(1))
}

/// Maps every program; one that does not fit is reported.
pub(super) fn maps(
    cx: &mut Session<'_>,
    tiles: &PrimaryMap<ProgramId, Tile<'_>>,
    target: &Target,
) -> PrimaryMap<ProgramId, MemoryMap> {
    let mut maps = PrimaryMap::with_capacity(tiles.len());
    for tile in tiles.values() {
        let addresses = Addresses::of(tile.typed, &cx.options);
        let sizes = Sizes::of(tile.ir, &addresses, target);
        if let Some(clash) = &addresses.clash {
            report_clash(cx, tile, clash);
        }
        if sizes.total() > u64::from(target.memory) {
            report(cx, tile, &sizes, target);
        }
        maps.push(map(tile.ir, &addresses, &sizes));
    }
    report_unused(cx, tiles);
    maps
}

/// What a program needs, in bytes. Wide enough for any program that can be written.
struct Sizes {
    data_end: u64,
    stack: u64,
    code: u64,
    /// Code may lie in these.
    holes: u64,
}

impl Sizes {
    fn of(program: &Program, addresses: &Addresses, target: &Target) -> Sizes {
        let (data_end, holes) = (addresses.end, addresses.holes);
        let code = instructions(program, target) * u64::from(target.timing.code_bytes);
        let free = u64::from(target.memory)
            .saturating_sub(align_up(data_end, 8) + code.saturating_sub(holes));
        let least = align_up(stack::depth(program).max(LEAST_STACK), 8);
        // Memory that data need is not kept from them for a stack that nobody needs.
        let stack = least.max(DEFAULT_STACK.min(free / 8 * 8));
        Sizes { data_end, stack, code, holes }
    }

    fn total(&self) -> u64 {
        align_up(self.data_end, 8) + self.stack + self.code.saturating_sub(self.holes)
    }
}

/// Instructions of a program's code: what costs no issue slot is part of another instruction (constants,
/// addresses, copies between registers).
fn instructions(program: &Program, target: &Target) -> u64 {
    let count = |func: &Func| {
        let insts = func.insts.values().filter(|inst| cost::inst(inst, func, target) > 0).count();
        let ends = func.blocks.iter();
        let ends = ends.filter(|(at, block)| cost::terminator(*at, &block.terminator, target) > 0);
        (insts + ends.count()) as u64
    };
    program.funcs.values().map(count).sum()
}

fn map(program: &Program, addresses: &Addresses, sizes: &Sizes) -> MemoryMap {
    let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let globals = program.globals.keys().zip(addresses.starts.iter().copied());
    MemoryMap {
        globals: globals.map(|(global, start)| (global, narrow(start))).collect(),
        data_end: narrow(sizes.data_end),
        stack: narrow(sizes.stack),
        code: narrow(sizes.code),
    }
}

fn report(cx: &mut Session<'_>, tile: &Tile<'_>, sizes: &Sizes, target: &Target) {
    let memory = u64::from(target.memory);
    let mut largest: Vec<_> = tile.typed.globals.iter().collect();
    largest.sort_by_key(|global| std::cmp::Reverse(global.size));
    let symbol = |global: &crate::typed::Global| {
        format!("`{}`: {} bytes", global.name, grouped(u64::from(global.size)))
    };
    let message = format!(
        "`{}` does not fit: {} bytes of data, {} of stack and about {} of code are {} more than the {} of a PE",
        tile.ir.name,
        grouped(sizes.data_end),
        grouped(sizes.stack),
        grouped(sizes.code),
        grouped(sizes.total() - memory),
        grouped(memory),
    );
    let place = largest.first().map_or(tile.span, |global| global.span);
    let mut diagnostic = Diagnostic::new(codes::OUT_OF_MEMORY, message, place);
    if let Some(first) = largest.first() {
        diagnostic = diagnostic.label(symbol(first));
    }
    for global in largest.iter().skip(1).take(NAMED_SYMBOLS - 1).filter(|global| global.size > 0) {
        diagnostic = diagnostic.secondary(global.span, symbol(global));
    }
    diagnostic = diagnostic.help(
        "spread the data over more PEs, use smaller elements, or use one array for several purposes",
    );
    cx.emit(diagnostic.frame(tile.pes.frame(place, tile.span)));
}

/// A section that was given an address where something else is.
fn report_clash(cx: &mut Session<'_>, tile: &Tile<'_>, clash: &Clash) {
    let global = |at: crate::typed::GlobalIdx| &tile.typed.globals[at.0 as usize];
    let own = global(clash.global);
    let section = own.section.as_deref().unwrap_or_default();
    let message = match clash.other {
        Some(other) => format!(
            "`{}` of section `{section}` would lie where `{}` is",
            own.name,
            global(other).name
        ),
        None => format!("section `{section}` would begin at address 0, where no variable may be"),
    };
    let mut diagnostic = Diagnostic::new(codes::SECTION_ADDRESS, message, own.span)
        .label("placed here by its section");
    if let Some(other) = clash.other {
        diagnostic = diagnostic.secondary(global(other).span, "there already");
    }
    let help = "give the section another address with --link-section-start-address-bytes";
    cx.emit(diagnostic.help(help).frame(tile.pes.frame(own.span, tile.span)));
}

/// Addresses of sections that no program has.
fn report_unused(cx: &mut Session<'_>, tiles: &PrimaryMap<ProgramId, Tile<'_>>) {
    let globals = || tiles.values().flat_map(|tile| &tile.typed.globals);
    let names = cx.options.sections.iter().map(|(name, _)| name.clone());
    let unused: Vec<String> = names
        .filter(|name| !globals().any(|global| global.section.as_ref() == Some(name)))
        .collect();
    for name in unused {
        let message = format!("section `{name}` is given an address and no variable is in it");
        let help = format!("a variable is with `linksection(\"{name}\")` behind its type");
        cx.emit(Diagnostic::without_place(codes::SECTION_UNUSED, message).help(help));
    }
}
