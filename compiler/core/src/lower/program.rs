//! Programs: everything around the bodies.

use dflow_ir::func::Signature;
use dflow_ir::inst::{FlagOp, VectorOptions};
use dflow_ir::mesh::{Color, ColorConfig};
use dflow_ir::program::{
    ExportBinding, FuncId, Global, GlobalId, InitialConfig, InitialDsr, InitialFlag,
    LocalColorConfig, Program, QueueBinding, Reloc, SigId, SlotId, Symbol, TaskBinding,
};
use dflow_syntax::Span;
use indexmap::IndexSet;

use super::LocTable;
use super::func;
use super::vector;
use crate::typed;

/// The IR of a checked program.
pub(crate) fn program(typed: &typed::Program, locs: &LocTable<'_>) -> Program {
    let mut signatures = IndexSet::new();
    let funcs = typed.funcs.iter().map(|func| func::func(func, locs, &mut signatures));
    Program {
        name: typed.name.clone(),
        profile: typed.profile,
        slots: typed.slots.iter().copied().collect(),
        globals: typed.globals.iter().map(|global| lower_global(global, locs)).collect(),
        shapes: typed.shapes.iter().cloned().collect(),
        fifos: typed.fifos.iter().copied().collect(),
        funcs: funcs.collect(),
        signatures: signatures.into_iter().collect(),
        tasks: typed.tasks.iter().map(|task| lower_task(*task, locs)).collect(),
        queues: typed.queues.iter().map(|queue| lower_queue(*queue, locs)).collect(),
        control_table: typed.control_table,
        rotations: typed.rotations.clone(),
        initial_flags: typed.initial_flags.iter().map(|&flag| lower_flag(flag, locs)).collect(),
        initial_dsrs: typed.initial_dsrs.iter().map(lower_dsr).collect(),
        initial_config: typed.initial_config.iter().map(|&set| lower_config(set, locs)).collect(),
        colors: typed.colors.iter().map(|color| lower_color(color, locs)).collect(),
        host_links: typed.host_links.iter().map(|&(link, _)| link).collect(),
        exports: typed.exports.iter().map(|&export| lower_export(export)).collect(),
        entry: typed.entry.map(func_id),
    }
}

pub(super) fn global_id(global: typed::GlobalIdx) -> GlobalId {
    GlobalId::from_u32(global.0)
}

pub(super) fn func_id(func: typed::FuncIdx) -> FuncId {
    FuncId::from_u32(func.0)
}

pub(super) fn slot_id(slot: typed::SlotIdx) -> SlotId {
    SlotId::from_u32(slot.0)
}

/// The id of a signature, the same for equal ones.
pub(super) fn signature_id(signatures: &mut IndexSet<Signature>, signature: Signature) -> SigId {
    SigId::from_u32(signatures.insert_full(signature).0 as u32)
}

fn lower_symbol(symbol: typed::Symbol) -> Symbol {
    match symbol {
        typed::Symbol::Global(global) => Symbol::Global(global_id(global)),
        typed::Symbol::Func(func) => Symbol::Func(func_id(func)),
    }
}

fn lower_global(global: &typed::Global, locs: &LocTable<'_>) -> Global {
    let typed::Global { name, size, align, init, relocs, slots, exported, section: _, span } =
        global;
    let relocs = relocs.iter();
    let slots = slots.iter();
    Global {
        name: name.clone(),
        size: *size,
        align: *align,
        init: init.clone(),
        relocs: relocs
            .map(|&(offset, symbol)| Reloc { offset, symbol: lower_symbol(symbol) })
            .collect(),
        slots: slots.map(|&(offset, slot)| (offset, slot_id(slot))).collect(),
        exported: *exported,
        loc: locs.loc(*span),
    }
}

fn lower_task(task: typed::TaskBinding, locs: &LocTable<'_>) -> TaskBinding {
    let typed::TaskBinding { kind, id, func, span } = task;
    TaskBinding { kind, id, func: func_id(func), loc: locs.loc(span) }
}

fn lower_queue(binding: typed::QueueBinding, locs: &LocTable<'_>) -> QueueBinding {
    let typed::QueueBinding {
        input,
        queue,
        color,
        priority,
        control_table,
        further: _,
        span,
        import: _,
    } = binding;
    QueueBinding { input, queue, color, priority, control_table, loc: locs.loc(span) }
}

fn lower_flag((op, id, span): (FlagOp, u8, Span), locs: &LocTable<'_>) -> InitialFlag {
    InitialFlag { op, id, loc: locs.loc(span) }
}

fn lower_dsr(load: &typed::InitialDsr) -> InitialDsr {
    let typed::InitialDsr { dsr, dsd, symbol, options } = load;
    InitialDsr {
        dsr: *dsr,
        dsd: *dsd,
        symbol: symbol.map(global_id),
        // Nothing runs before the start, so there is no run-time index to add.
        options: VectorOptions { index: None, ..vector::options(options, None) },
        save_address: options.save_address,
        single_step: options.single_step,
        xdsr: options.xdsr,
    }
}

fn lower_config((address, value, span): (u16, u16, Span), locs: &LocTable<'_>) -> InitialConfig {
    InitialConfig { address, value, loc: locs.loc(span) }
}

fn lower_color(
    (color, config, span): &(Color, ColorConfig, Span),
    locs: &LocTable<'_>,
) -> LocalColorConfig {
    LocalColorConfig { color: *color, config: config.clone(), loc: locs.loc(*span) }
}

fn lower_export(binding: typed::ExportBinding) -> ExportBinding {
    let typed::ExportBinding { export, symbol, span: _ } = binding;
    ExportBinding { export, symbol: lower_symbol(symbol) }
}
