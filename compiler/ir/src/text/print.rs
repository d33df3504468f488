//! Programs as text. Every struct is taken apart in full: a new field breaks the build here.

use cranelift_entity::{EntityRef, PrimaryMap};

use super::lex::quote;
use super::names::Word;
use super::print_inst::{self, flag, list};
use crate::func::{BlockData, Func, Local, Signature, StackSlotData};
use crate::loc::Loc;
use crate::mesh::{ColorConfig, Filter, PortSet, Route, Switch, SwitchEntry};
use crate::program::{
    ControlTable, ExportBinding, Fifo, FifoAction, FuncId, Global, GlobalId, HostLink,
    InitialConfig, InitialDsr, InitialFlag, LocalColorConfig, Program, QueueBinding, Reloc,
    Rotation, Shape, Symbol, TaskBinding,
};
use crate::ty::Ty;

/// What a text shows beyond the program itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrintOptions {
    /// Places in the source: ` @file:line:column` behind what has one.
    pub places: bool,
}

impl PrintOptions {
    /// A place, with a space before it, if it is there and wanted.
    pub(super) fn loc(self, loc: Loc) -> String {
        let Loc { file, line, column } = loc;
        if self.places && loc != Loc::default() {
            return format!(" @{file}:{line}:{column}");
        }
        String::new()
    }
}

/// A program as text.
pub fn print_program(program: &Program, options: PrintOptions) -> String {
    let mut out = String::new();
    self::program(&mut out, program, options);
    out
}

/// A function as text, as it stands in its program's.
pub fn print_func(id: FuncId, func: &Func, options: PrintOptions) -> String {
    let mut out = String::new();
    self::func(&mut out, id, func, options);
    out
}

/// Appends a line.
macro_rules! line {
    ($out:expr, $($format:tt)*) => {
        $out.push_str(&format!($($format)*));
        $out.push('\n');
    };
}
pub(super) use line;

pub(super) fn program(out: &mut String, program: &Program, options: PrintOptions) {
    let Program {
        name,
        profile,
        slots,
        globals,
        shapes,
        fifos,
        funcs,
        signatures,
        tasks,
        queues,
        control_table,
        rotations,
        initial_flags,
        initial_dsrs,
        initial_config,
        colors,
        host_links,
        exports,
        entry,
    } = program;
    line!(out, "program {} {} {{", quote(name), profile.word());
    slots.iter().for_each(|(id, ty)| {
        line!(out, "  slot {id}: {ty}");
    });
    globals.iter().for_each(|(id, global)| self::global(out, id, global, options));
    for (id, Shape { dims }) in shapes {
        line!(out, "  shape {id}: {}", list(dims.iter().map(|(n, s)| format!("{n} by {s}"))));
    }
    for (id, fifo) in fifos {
        line!(out, "  fifo {id}: {}", self::fifo(fifo));
    }
    for (id, Signature { params, ret }) in signatures {
        line!(out, "  sig {id}: ({}){}", list(params), result(*ret));
    }
    for TaskBinding { kind, id, func, loc } in tasks {
        line!(out, "  task {} {id} = {func}{}", kind.word(), options.loc(*loc));
    }
    for QueueBinding { input, queue, color, priority, control_table, loc } in queues {
        let side = if *input { "input" } else { "output" };
        let priority = self::priority(*priority);
        let table = match control_table {
            0 => String::new(),
            table => format!(" table={table}"),
        };
        line!(out, "  queue {side} {queue} = {color:?}{priority}{table}{}", options.loc(*loc));
    }
    if let Some(ControlTable { instructions, stride }) = control_table {
        line!(out, "  control_table instructions={instructions} stride={stride}");
    }
    for Rotation { id, other, limit, initial } in rotations {
        line!(out, "  rotation {id} other={other} limit={limit} initial={initial}");
    }
    for InitialFlag { op, id, loc } in initial_flags {
        line!(out, "  flag {} {id}{}", op.word(), options.loc(*loc));
    }
    for dsr in initial_dsrs {
        line!(out, "  register {}", initial_dsr(dsr));
    }
    for InitialConfig { address, value, loc } in initial_config {
        line!(out, "  config {address:#06x} = {value:#06x}{}", options.loc(*loc));
    }
    for LocalColorConfig { color, config, loc } in colors {
        line!(out, "  color {color:?} {}{}", color_config(config), options.loc(*loc));
    }
    for HostLink { port, color, to_mesh } in host_links {
        let direction = if *to_mesh { "to_mesh" } else { "to_host" };
        line!(out, "  host_link {} {color:?} {direction}", port.word());
    }
    for ExportBinding { export, symbol } in exports {
        line!(out, "  export {export} = {}", self::symbol(*symbol));
    }
    if let Some(entry) = entry {
        line!(out, "  entry {entry}");
    }
    for (id, func) in funcs {
        out.push('\n');
        self::func(out, id, func, options);
    }
    line!(out, "}}");
}

fn global(out: &mut String, id: GlobalId, global: &Global, options: PrintOptions) {
    let Global { name, size, align, init, relocs, slots, exported, loc } = global;
    let exported = flag(*exported, "exported");
    let mut text = format!("  global {id} {} size={size} align={align}{exported}", quote(name));
    if !init.is_empty() {
        text += " init=x";
        init.iter().for_each(|byte| text += &format!("{byte:02x}"));
    }
    for &Reloc { offset, symbol } in relocs {
        text += &format!(" reloc {offset} = {}", self::symbol(symbol));
    }
    for (offset, slot) in slots {
        text += &format!(" fill {offset} = {slot}");
    }
    line!(out, "{text}{}", options.loc(*loc));
}

fn symbol(symbol: Symbol) -> String {
    match symbol {
        Symbol::Global(global) => global.to_string(),
        Symbol::Func(func) => func.to_string(),
    }
}

fn priority(priority: Option<crate::inst::Priority>) -> String {
    priority.map_or_else(String::new, |level| format!(" priority={}", level.word()))
}

fn fifo(fifo: &Fifo) -> String {
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
    let mut text = format!("{buffer} capacity={capacity} element={element}");
    if let Some(id) = activate_pop {
        text += &format!(" activate_pop={id}");
    }
    if let Some(id) = activate_push {
        text += &format!(" activate_push={id}");
    }
    for (name, action) in [("empty", empty), ("full", full)] {
        if *action != FifoAction::default() {
            text += &format!(" {name}={}", action.word());
        }
    }
    text + &self::priority(*priority) + &flag(*single, "single")
}

fn initial_dsr(initial: &InitialDsr) -> String {
    let InitialDsr { dsr, dsd, symbol, options, save_address, single_step, xdsr } = initial;
    let base = symbol.map(|global| format!(" base={global}")).unwrap_or_default();
    format!(
        "{} = {:#018x}{base}{}{}{}{}",
        print_inst::dsr(*dsr),
        dsd.0,
        flag(*save_address, "save_address"),
        flag(*single_step, "single_step"),
        print_inst::xdsr(*xdsr),
        print_inst::options(options),
    )
}

fn result(ret: Option<Ty>) -> String {
    ret.map(|ty| format!(" -> {ty}")).unwrap_or_default()
}

/// A color's configuration, without its place.
pub(super) fn color_config(config: &ColorConfig) -> String {
    let ColorConfig { route, switch, filter, teardown, swap_x, swap_y } = config;
    let mut text = format!("route {}", self::route(*route));
    if let Some(Switch { positions, initial, ring, pop }) = switch {
        let positions = list(positions.iter().map(|entry| switch_entry(*entry)));
        text += &format!(" switch [{positions}] initial={initial} pop={}", pop.word());
        text += &flag(*ring, "ring");
    }
    text += &filter.map(self::filter).unwrap_or_default();
    text += &flag(*teardown, "teardown");
    text += &flag(*swap_x, "swap_x");
    text += &flag(*swap_y, "swap_y");
    text
}

fn ports(set: PortSet) -> String {
    let names: Vec<&str> = set.iter().map(|port| port.word()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join("+") }
}

fn route(route: Route) -> String {
    let Route { rx, tx } = route;
    format!("{}>{}", ports(rx), ports(tx))
}

fn switch_entry(entry: Option<SwitchEntry>) -> String {
    match entry {
        None => "invalid".to_owned(),
        Some(SwitchEntry::Rx(set)) => format!("rx {}", ports(set)),
        Some(SwitchEntry::Tx(set)) => format!("tx {}", ports(set)),
        Some(SwitchEntry::Both(route)) => format!("both {}", self::route(route)),
    }
}

fn filter(filter: Filter) -> String {
    let counted = |data, control, filter_control| {
        let (data, control) = (flag(data, "data"), flag(control, "control"));
        format!("{data}{control}{}", flag(filter_control, "filter_control"))
    };
    match filter {
        Filter::Range { min, max } => format!(" range min={min} max={max}"),
        Filter::Counter { data, control, initial, limit, max, filter_control } => {
            let counted = counted(data, control, filter_control);
            format!(" counter initial={initial} limit={limit} max={max}{counted}")
        }
        Filter::Sparse { data, control, initial, limit, limit2, max, filter_control } => {
            let counted = counted(data, control, filter_control);
            let limit2 = limit2.map(|limit2| format!(" limit2={limit2}")).unwrap_or_default();
            format!(" sparse initial={initial} limit={limit} max={max}{limit2}{counted}")
        }
    }
}

/// `v0: i16, v1..v3: i32` from local `from` on.
fn locals(locals: &PrimaryMap<Local, Ty>, from: usize, to: usize) -> Vec<String> {
    let mut runs: Vec<(usize, usize, Ty)> = Vec::new();
    for (local, &ty) in locals.iter().skip(from).take(to - from) {
        match runs.last_mut() {
            Some((_, last, run_ty)) if *run_ty == ty => *last = local.index(),
            Some(_) | None => runs.push((local.index(), local.index(), ty)),
        }
    }
    let run = |(first, last, ty)| match first == last {
        true => format!("v{first}: {ty}"),
        false => format!("v{first}..v{last}: {ty}"),
    };
    runs.into_iter().map(run).collect()
}

fn func(out: &mut String, id: FuncId, func: &Func, options: PrintOptions) {
    let Func { name, params, ret, locals: all, stack_slots, blocks, insts, locs, loc } = func;
    let params = (*params as usize).min(all.len());
    let (head, result) = (locals(all, 0, params), result(*ret));
    line!(out, "  func {id} {} ({}){result} {{{}", quote(name), list(head), options.loc(*loc));
    let rest = locals(all, params, all.len());
    for chunk in rest.chunks(8) {
        line!(out, "    locals {}", list(chunk));
    }
    for (slot, StackSlotData { size, align }) in stack_slots {
        line!(out, "    stack {slot}: size={size} align={align}");
    }
    for (block, BlockData { insts: order, terminator, loc }) in blocks {
        line!(out, "  {block}:");
        for &inst in order {
            let Some(data) = insts.get(inst) else { continue };
            let (text, comment) = (print_inst::inst(func, data), print_inst::comment(func, data));
            line!(out, "    {text}{}{comment}", options.loc(locs[inst]));
        }
        line!(out, "    {}{}", print_inst::terminator(func, terminator), options.loc(*loc));
    }
    line!(out, "  }}");
}
