//! Typed programs as indented pseudo-code.

use std::fmt::Write;

use dflow_ir::program::{Fifo, FifoAction, HostLink, Profile, Rotation, Shape, TaskKind};

use super::config;
use super::expr::{Names, options};
use super::stmt::{flag_name, stmts};
use crate::typed::{
    ExportBinding, Func, Global, InitialDsr, Local, LocalKind, Program, QueueBinding, Symbol,
    TaskBinding,
};

/// A typed program as text.
pub(crate) fn typed(program: &Program) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_program(&mut text, program);
    text
}

#[expect(clippy::too_many_lines, reason = "one part of a program after the other")]
fn write_program(text: &mut String, program: &Program) -> std::fmt::Result {
    let Program {
        name,
        profile,
        slots,
        globals,
        shapes,
        fifos,
        funcs,
        tasks,
        queues,
        control_table,
        rotations,
        initial_flags,
        initial_dsrs,
        initial_config,
        filter_uses,
        colors,
        host_links,
        exports,
        entry,
    } = program;
    let profile = match profile {
        Profile::Pe => "pe",
        Profile::Host => "host",
    };
    writeln!(text, "program {name} ({profile})")?;
    for (slot, index) in slots.iter().zip(0..) {
        writeln!(text, "slot{index}: {slot}")?;
    }
    globals.iter().try_for_each(|global| write_global(text, program, global))?;
    for (Shape { dims }, index) in shapes.iter().zip(0..) {
        let dims: Vec<String> = dims.iter().map(|(n, step)| format!("{n}*{step}")).collect();
        writeln!(text, "shape{index}: {}", dims.join(" "))?;
    }
    for (fifo, index) in fifos.iter().zip(0..) {
        write_fifo(text, program, fifo, index)?;
    }
    for TaskBinding { kind, id, func, span: _ } in tasks {
        let kind = match kind {
            TaskKind::Local => "local",
            TaskKind::Data => "data",
            TaskKind::Control => "control",
        };
        writeln!(text, "task {kind} {id}: {}", program.func_name(*func))?;
    }
    for QueueBinding {
        input,
        queue,
        color,
        priority,
        control_table,
        further: _,
        span: _,
        import: _,
    } in queues
    {
        let kind = if *input { "input" } else { "output" };
        write!(text, "{kind} queue {queue}: color {}", color.index())?;
        if let Some(priority) = priority {
            write!(text, ", {} priority", format!("{priority:?}").to_lowercase())?;
        }
        if *control_table != 0 {
            write!(text, ", control table {control_table}")?;
        }
        writeln!(text)?;
    }
    if let Some(table) = control_table {
        writeln!(
            text,
            "control table: {} instructions, stride {}",
            table.instructions, table.stride
        )?;
    }
    for Rotation { id, other, limit, initial } in rotations {
        writeln!(text, "data task {id} gives way to {other} after {limit}, from {initial}")?;
    }
    for (op, id, _) in initial_flags {
        writeln!(text, "start {} {id}", flag_name(*op))?;
    }
    initial_dsrs.iter().try_for_each(|load| write_dsr(text, program, load))?;
    for (address, value, _) in initial_config {
        writeln!(text, "config {address:#06x} = {value:#06x}")?;
    }
    for (color, _) in filter_uses {
        writeln!(text, "filter of color {}", color.index())?;
    }
    for (color, color_config, _) in colors {
        writeln!(text, "color {} {}", color.index(), config(color_config))?;
    }
    for (HostLink { port, color, to_mesh }, _) in host_links {
        let way = if *to_mesh { "from" } else { "to" };
        writeln!(text, "color {} {way} the host at {}", color.index(), port.name())?;
    }
    for ExportBinding { export, symbol, span: _ } in exports {
        writeln!(text, "export {export}: {}", program.symbol_name(*symbol))?;
    }
    if let Some(entry) = entry {
        writeln!(text, "entry {}", program.func_name(*entry))?;
    }
    funcs.iter().try_for_each(|func| write_func(text, program, func))
}

impl Program {
    /// Name of a function, for dumps.
    fn func_name(&self, func: crate::typed::FuncIdx) -> &str {
        self.funcs.get(func.0 as usize).map_or("?", |func| func.name.as_str())
    }

    /// Name of a global or function, for dumps.
    fn symbol_name(&self, symbol: Symbol) -> &str {
        match symbol {
            Symbol::Global(global) => {
                self.globals.get(global.0 as usize).map_or("?", |global| global.name.as_str())
            }
            Symbol::Func(func) => self.func_name(func),
        }
    }
}

fn write_global(text: &mut String, program: &Program, global: &Global) -> std::fmt::Result {
    let Global { name, size, align, init, relocs, slots, exported, section, span: _ } = global;
    let exported = if *exported { " exported" } else { "" };
    write!(text, "global {name}: {size} bytes, align {align}{exported}")?;
    if let Some(section) = section {
        write!(text, " in {section:?}")?;
    }
    if !init.is_empty() {
        // Long tables are cut: the dump is for eyes.
        let shown: Vec<String> = init.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
        let rest = if init.len() > 32 { " …" } else { "" };
        write!(text, " = {}{rest}", shown.join(" "))?;
    }
    for (offset, symbol) in relocs {
        write!(text, ", +{offset}: address of {}", program.symbol_name(*symbol))?;
    }
    for (offset, slot) in slots {
        write!(text, ", +{offset}: slot{}", slot.0)?;
    }
    writeln!(text)
}

fn write_fifo(text: &mut String, program: &Program, fifo: &Fifo, index: usize) -> std::fmt::Result {
    let Fifo {
        buffer,
        capacity,
        element,
        activate_pop,
        activate_push,
        empty,
        full,
        priority,
        single,
    } = fifo;
    let buffer = crate::typed::GlobalIdx(buffer.as_u32());
    let buffer = program.symbol_name(Symbol::Global(buffer));
    write!(text, "fifo{index}: {buffer}, {capacity} elements of {element} bytes")?;
    if let Some(id) = activate_pop {
        write!(text, ", pop activates {id}")?;
    }
    if let Some(id) = activate_push {
        write!(text, ", push activates {id}")?;
    }
    for (name, action) in [("empty", empty), ("full", full)] {
        if *action != FifoAction::default() {
            write!(text, ", {name}: {}", format!("{action:?}").to_lowercase())?;
        }
    }
    if let Some(priority) = priority {
        write!(text, ", {} priority", format!("{priority:?}").to_lowercase())?;
    }
    writeln!(text, "{}", if *single { ", one element per wavelet" } else { "" })
}

fn write_dsr(text: &mut String, program: &Program, load: &InitialDsr) -> std::fmt::Result {
    let InitialDsr { dsr, dsd, symbol, options: settings } = load;
    write!(text, "start {}{} = {:#018x}", dsr.file.name(), dsr.index, dsd.0)?;
    if let Some(global) = symbol {
        write!(text, " + address of {}", program.symbol_name(Symbol::Global(*global)))?;
    }
    writeln!(text, "{}", options(settings, &Names::empty(program)))
}

fn write_func(text: &mut String, program: &Program, func: &Func) -> std::fmt::Result {
    let Func { name, params, ret, locals, labels: _, passing: _, body, span: _ } = func;
    let names = Names::of(program, locals);
    let declared = |index: usize, local: &Local| {
        let name = names.local(crate::typed::LocalIdx(index as u32));
        match local.kind {
            LocalKind::Scalar(ty) => format!("{name}: {ty}"),
            LocalKind::Memory { size, align } => format!("{name}: [{size} align {align}]"),
            LocalKind::Within(place) => format!("{name}: in {}", names.local(place)),
        }
    };
    let all: Vec<String> = locals.iter().enumerate().map(|(i, local)| declared(i, local)).collect();
    let (params, vars) = all.split_at((*params as usize).min(all.len()));
    let ret = ret.map_or(String::new(), |ret| format!(" {ret}"));
    writeln!(text, "\nfn {name}({}){ret} {{", params.join(", "))?;
    if !vars.is_empty() {
        writeln!(text, "  var {}", vars.join(", "))?;
    }
    stmts(text, &names, body, 1)?;
    writeln!(text, "}}")
}
