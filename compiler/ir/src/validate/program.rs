//! A program against its target: sizes, ids, bindings, initial state.
//!
//! Users hear of these things when programs are placed; here they guard the engines.

use std::collections::{BTreeMap, BTreeSet};

use super::body::{self, BodyError};
use super::index::{self, IndexError};
use super::{FuncError, mesh};
use crate::dsd::{Dsd, DsdKind, DsrRef, FabricDsd};
use crate::func::{Func, MAX_ALIGN, Signature};
use crate::inst::FlagOp;
use crate::mesh::{Color, Port};
use crate::program::{
    ControlTable, ExportBinding, Fifo, FuncId, Global, GlobalId, HostLink, InitialConfig,
    InitialDsr, InitialFlag, LocalColorConfig, Profile, Program, QueueBinding, Reloc, Rotation,
    Shape, TaskBinding, TaskKind,
};
use crate::registers;
use crate::target::Target;
use crate::ty::Ty;

/// A broken rule in a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// An index in a function.
    #[error(transparent)]
    FuncIndex(Box<FuncError<IndexError>>),
    /// A rule in a function's body.
    #[error(transparent)]
    Body(Box<FuncError<BodyError>>),
    /// An index in a declaration.
    #[error("{what}: {source}")]
    Index {
        /// The declaration.
        what: String,
        /// What is wrong.
        source: IndexError,
    },
    /// A number in a declaration.
    #[error("{what}: {source}")]
    Limit {
        /// The declaration.
        what: String,
        /// What is wrong.
        source: LimitError,
    },
    /// A declaration that breaks a rule of its own.
    #[error("{what}: {rule}")]
    Rule {
        /// The declaration.
        what: String,
        /// The rule.
        rule: &'static str,
    },
}

/// A number beyond what the target, the profile or the format allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {value}, allowed is {low} to {high}")]
pub struct LimitError {
    /// What kind of number.
    pub what: &'static str,
    /// The number.
    pub value: u64,
    /// Least value.
    pub low: u64,
    /// Largest value.
    pub high: u64,
}

/// Largest total of a host program's globals, and of one function's stack slots, in bytes.
const HOST_MEMORY: u64 = 1 << 30;
/// Task ids are 0 to this.
const MAX_TASK: u64 = 63;

/// Limits of a program: its target's, and how much memory it may ask for.
pub(super) struct Limits {
    target: &'static Target,
    memory: u64,
}

type Limited = Result<(), LimitError>;

fn within(what: &'static str, value: u64, low: u64, high: u64) -> Limited {
    if (low..=high).contains(&value) { Ok(()) } else { Err(LimitError { what, value, low, high }) }
}

/// As `within`, for indices below a count that may be 0.
fn below(what: &'static str, value: u64, count: u64) -> Limited {
    if value < count {
        return Ok(());
    }
    Err(LimitError { what, value, low: 0, high: count.saturating_sub(1) })
}

impl Limits {
    pub(super) fn bytes(&self, what: &'static str, value: u64) -> Limited {
        within(what, value, 0, self.memory)
    }

    pub(super) fn align(&self, align: u32) -> Limited {
        within("alignment", u64::from(align), 1, u64::from(MAX_ALIGN))?;
        let low = u64::from(align.next_power_of_two());
        within("alignment", u64::from(align), low, low)
    }

    pub(super) fn local_task(&self, id: u8) -> Limited {
        let (first, last) = (self.target.local_task_first, self.target.local_task_last);
        within("local task id", u64::from(id), u64::from(first), u64::from(last))
    }

    pub(super) fn task(&self, id: u8) -> Limited {
        within("task id", u64::from(id), 0, MAX_TASK)
    }

    /// A color or an input queue, whichever the target blocks by.
    pub(super) fn channel(&self, id: u8) -> Limited {
        match self.target.data_task_by_queue {
            true => self.queue(true, id),
            false => below("color", u64::from(id), Color::COUNT as u64),
        }
    }

    pub(super) fn queue(&self, input: bool, id: u8) -> Limited {
        let (what, queues) = match input {
            true => ("input queue", &self.target.input_queues),
            false => ("output queue", &self.target.output_queues),
        };
        below(what, u64::from(id), queues.len() as u64)
    }

    pub(super) fn microthread(&self, id: u8) -> Limited {
        below("microthread", u64::from(id), u64::from(self.target.microthreads))
    }

    pub(super) fn dsr(&self, dsr: DsrRef) -> Limited {
        let DsrRef { file: _, index } = dsr;
        below("descriptor register", u64::from(index), u64::from(self.target.dsrs))
    }

    pub(super) fn fabric(&self, desc: FabricDsd) -> Limited {
        let FabricDsd {
            input,
            queue,
            color: _,
            control: _,
            indexed: _,
            advance_switch: _,
            packed: _,
            transform: _,
            priority: _,
            zero,
        } = desc;
        within("source to be cleared", u64::from(zero.unwrap_or(0)), 0, 1)?;
        self.queue(input, queue)
    }

    pub(super) fn xdsr(&self, xdsr: Option<u8>) -> Limited {
        let count = u64::from(self.target.xdsrs);
        xdsr.map_or(Ok(()), |number| below("extended register", u64::from(number), count))
    }
}

type Checked = Result<(), ProgramError>;

fn rule(what: impl ToString, rule: &'static str) -> ProgramError {
    ProgramError::Rule { what: what.to_string(), rule }
}

fn ensure(ok: bool, what: impl ToString, text: &'static str) -> Checked {
    if ok { Ok(()) } else { Err(rule(what, text)) }
}

fn limit(what: impl ToString) -> impl FnOnce(LimitError) -> ProgramError {
    move |source| ProgramError::Limit { what: what.to_string(), source }
}

fn missing(what: impl ToString) -> impl FnOnce(IndexError) -> ProgramError {
    move |source| ProgramError::Index { what: what.to_string(), source }
}

/// Checks a program: indices, then bodies, then declarations.
pub(super) fn check(program: &Program, target: &'static Target) -> Checked {
    let memory = match program.profile {
        Profile::Pe => u64::from(target.memory),
        Profile::Host => HOST_MEMORY,
    };
    let limits = Limits { target, memory };
    indices(program)?;
    for (id, func) in &program.funcs {
        body::check(id, func, program, &limits).map_err(ProgramError::Body)?;
    }
    declarations(program, &limits)
}

/// Rule 1, for everything outside bodies too.
fn indices(program: &Program) -> Checked {
    let Program {
        name: _,
        profile: _,
        slots: _,
        globals,
        shapes: _,
        fifos,
        funcs,
        signatures: _,
        tasks,
        queues: _,
        control_table: _,
        rotations: _,
        initial_flags: _,
        initial_dsrs,
        initial_config: _,
        colors: _,
        host_links: _,
        exports,
        entry,
    } = program;
    for (id, global) in globals {
        for reloc in &global.relocs {
            index::symbol(reloc.symbol, program).map_err(missing(id))?;
        }
        for &(_, slot) in &global.slots {
            index::present(slot, &program.slots).map_err(missing(id))?;
        }
    }
    for (id, fifo) in fifos {
        index::present(fifo.buffer, globals).map_err(missing(id))?;
    }
    for task in tasks {
        index::present(task.func, funcs).map_err(missing(task_name(task)))?;
    }
    for global in initial_dsrs.iter().filter_map(|dsr| dsr.symbol) {
        index::present(global, globals).map_err(missing("register"))?;
    }
    for export in exports {
        index::symbol(export.symbol, program).map_err(missing(export_name(export)))?;
    }
    entry.map_or(Ok(()), |id| index::present(id, funcs).map_err(missing("entry")))?;
    funcs
        .iter()
        .try_for_each(|(id, func)| index::func(id, func, program))
        .map_err(ProgramError::FuncIndex)
}

fn declarations(program: &Program, limits: &Limits) -> Checked {
    let Program {
        name: _,
        profile,
        slots: _,
        globals,
        shapes,
        fifos,
        funcs,
        signatures: _,
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
    counts(program)?;
    let mut total = 0;
    for (id, global) in globals {
        self::global(id, global, program, limits)?;
        total += u64::from(global.size);
        limits.bytes("globals in all", total).map_err(limit(id))?;
    }
    shapes.iter().try_for_each(|(id, shape)| self::shape(id, shape))?;
    fifos.values().try_for_each(|fifo| self::fifo(fifo, program, limits))?;
    self::tasks(tasks, funcs, control_table.is_some(), limits)?;
    self::queues(queues, limits)?;
    control_table.iter().try_for_each(self::control_table)?;
    rotations.iter().try_for_each(|rotation| self::rotation(rotation, limits))?;
    initial_flags.iter().try_for_each(|flag| self::flag(flag, limits))?;
    initial_dsrs.iter().try_for_each(|dsr| initial_dsr(dsr, program, limits))?;
    initial_config.iter().try_for_each(|config| self::config(config, limits))?;
    self::colors(colors)?;
    host_links.iter().try_for_each(host_link)?;
    self::exports(exports)?;
    match (profile, entry) {
        (Profile::Host, Some(entry)) => nullary(&funcs[*entry], "entry"),
        (Profile::Host, None) => Err(rule("entry", "a host program has one")),
        (Profile::Pe, None) => Ok(()),
        (Profile::Pe, Some(_)) => Err(rule("entry", "PE programs start by tasks")),
    }
}

/// Numbers of things: what must fit a PE's pointer or a descriptor, and what a host program
/// cannot have.
fn counts(program: &Program) -> Checked {
    let pe_only = [
        ("slots", program.slots.len()),
        ("shapes", program.shapes.len()),
        ("fifos", program.fifos.len()),
        ("tasks", program.tasks.len()),
        ("queues", program.queues.len()),
        ("control table", usize::from(program.control_table.is_some())),
        ("rotations", program.rotations.len()),
        ("flags", program.initial_flags.len()),
        ("registers", program.initial_dsrs.len()),
        ("configuration registers", program.initial_config.len()),
        ("colors", program.colors.len()),
        ("host links", program.host_links.len()),
        ("exports", program.exports.len()),
    ];
    match program.profile {
        Profile::Host => pe_only
            .into_iter()
            .try_for_each(|(what, count)| ensure(count == 0, what, "a host program has none")),
        Profile::Pe => {
            let narrow = usize::from(u16::MAX);
            ensure(program.funcs.len() < narrow, "functions", "too many for a code pointer")?;
            ensure(program.shapes.len() <= narrow, "shapes", "too many for a descriptor")
        }
    }
}

fn global(id: GlobalId, global: &Global, program: &Program, limits: &Limits) -> Checked {
    let Global { name: _, size, align, init, relocs, slots, exported: _, loc: _ } = global;
    limits.bytes("size", u64::from(*size)).map_err(limit(id))?;
    limits.align(*align).map_err(limit(id))?;
    ensure(init.len() as u64 <= u64::from(*size), id, "the initial value is larger than the size")?;
    let pointer = program.profile.pointer().bytes();
    let inside = |offset: u32, bytes: u32| u64::from(offset) + u64::from(bytes) <= u64::from(*size);
    for &Reloc { offset, symbol: _ } in relocs {
        ensure(inside(offset, pointer), id, "an address outside the global")?;
    }
    for &(offset, slot) in slots {
        let bytes = program.slots[slot].bytes();
        ensure(inside(offset, bytes), id, "a slot outside the global")?;
    }
    Ok(())
}

fn shape(id: crate::program::ShapeId, shape: &Shape) -> Checked {
    let Shape { dims } = shape;
    ensure((1..=4).contains(&dims.len()), id, "a shape has 1 to 4 dimensions")
}

fn fifo(fifo: &Fifo, program: &Program, limits: &Limits) -> Checked {
    let Fifo {
        buffer,
        capacity,
        element,
        activate_pop,
        activate_push,
        empty: _,
        full: _,
        priority: _,
        single: _,
    } = *fifo;
    let what = format!("fifo over {buffer}");
    ensure(matches!(element, 2 | 4), &what, "elements have 2 or 4 bytes")?;
    ensure(capacity > 0, &what, "the capacity is 0")?;
    let bytes = u32::from(capacity) * u32::from(element);
    ensure(bytes <= program.globals[buffer].size, &what, "the buffer is too small")?;
    for id in [activate_pop, activate_push].into_iter().flatten() {
        limits.local_task(id).map_err(limit(&what))?;
    }
    Ok(())
}

fn task_name(task: &TaskBinding) -> String {
    let TaskBinding { kind, id, func: _, loc: _ } = task;
    match kind {
        TaskKind::Local => format!("local task {id}"),
        TaskKind::Data => format!("data task {id}"),
        TaskKind::Control => format!("control task {id}"),
    }
}

fn tasks(
    tasks: &[TaskBinding],
    funcs: &cranelift_entity::PrimaryMap<FuncId, Func>,
    control_apart: bool,
    limits: &Limits,
) -> Checked {
    let mut ids = BTreeMap::new();
    for task in tasks {
        let TaskBinding { kind, id, func, loc: _ } = *task;
        let what = task_name(task);
        // One function may have an id in several kinds, but in each only once.
        let apart = control_apart && kind == TaskKind::Control;
        let bound: &mut Vec<(TaskKind, FuncId)> = ids.entry((apart, id)).or_default();
        let free = bound.iter().all(|&(other, known)| known == func && other != kind);
        ensure(free, &what, "another task has this id")?;
        bound.push((kind, func));
        match kind {
            TaskKind::Local => {
                limits.local_task(id).map_err(limit(&what))?;
                payload(&funcs[func].signature(), &what)?;
            }
            TaskKind::Data => {
                limits.channel(id).map_err(limit(&what))?;
                payload(&funcs[func].signature(), &what)?;
            }
            TaskKind::Control => {
                limits.task(id).map_err(limit(&what))?;
                payload(&funcs[func].signature(), &what)?;
            }
        }
    }
    Ok(())
}

fn nullary(func: &Func, what: &str) -> Checked {
    let Signature { params, ret } = func.signature();
    ensure(params.is_empty() && ret.is_none(), what, "the function takes and gives nothing")
}

/// The parameters of a task: parts of a payload of 32 bits (of zero for local tasks).
fn payload(signature: &Signature, what: &str) -> Checked {
    let Signature { params, ret } = signature;
    ensure(ret.is_none(), what, "the function gives nothing")?;
    let fits = match params[..] {
        [] => true,
        [one] => match one {
            Ty::I16 | Ty::F16 | Ty::Bf16 | Ty::I32 | Ty::F32 => true,
            Ty::I8 | Ty::I64 | Ty::F64 => false,
        },
        [low, high] => low.bits() == 16 && high.bits() == 16,
        [_, _, _, ..] => false,
    };
    ensure(fits, what, "the parameters are none, one of 16 or 32 bits, or two of 16")
}

fn queues(queues: &[QueueBinding], limits: &Limits) -> Checked {
    let mut bound = BTreeSet::new();
    for &QueueBinding { input, queue, color, priority: _, control_table, loc: _ } in queues {
        let what = if input { "input queue" } else { "output queue" };
        limits.queue(input, queue).map_err(limit(what))?;
        within("table of control tasks", u64::from(control_table), 0, 7).map_err(limit(what))?;
        // Where channels are colors, an input queue may take several, one per operation.
        let several = input && !limits.target.data_task_by_queue;
        let color = several.then_some(color);
        ensure(bound.insert((input, queue, color)), what, "bound twice")?;
    }
    Ok(())
}

fn control_table(table: &ControlTable) -> Checked {
    let ControlTable { instructions, stride } = *table;
    let what = "control table";
    ensure(matches!(instructions, 2 | 4 | 8), what, "entries have 2, 4 or 8 instructions")?;
    ensure((1..=7).contains(&stride), what, "the stride is 1 to 7")
}

fn rotation(rotation: &Rotation, limits: &Limits) -> Checked {
    let Rotation { id, other, limit: last, initial } = *rotation;
    let what = format!("rotation of data task {id}");
    limits.channel(id).map_err(limit(&what))?;
    limits.task(other).map_err(limit(&what))?;
    ensure(initial <= last, what, "it begins beyond its limit")
}

fn flag(flag: &InitialFlag, limits: &Limits) -> Checked {
    let InitialFlag { op, id, loc: _ } = *flag;
    match op {
        FlagOp::Activate => limits.local_task(id),
        FlagOp::BlockTask | FlagOp::UnblockTask | FlagOp::RaiseTask | FlagOp::LowerTask => {
            limits.task(id)
        }
        FlagOp::BlockChannel
        | FlagOp::UnblockChannel
        | FlagOp::RaiseChannel
        | FlagOp::LowerChannel => limits.channel(id),
        FlagOp::BlockMicrothread | FlagOp::UnblockMicrothread => limits.microthread(id),
        FlagOp::MainPriority => within("priority", u64::from(id), 0, 3),
        FlagOp::FlushInput | FlagOp::EndFlushInput => limits.queue(true, id),
        FlagOp::FlushOutput | FlagOp::EndFlushOutput => limits.queue(false, id),
        FlagOp::TransformMask => within("mask", u64::from(id), 0, 63),
        FlagOp::Exceptions => Ok(()),
        FlagOp::BindInput | FlagOp::BindOutput => {
            return Err(rule("flag", "queues are bound by their declaration before the start"));
        }
        FlagOp::AnswerAhead => {
            return Err(rule("flag", "nothing is answered before the start"));
        }
    }
    .map_err(limit("flag"))
}

fn config(config: &InitialConfig, limits: &Limits) -> Checked {
    let InitialConfig { address, value: _, loc: _ } = config;
    let bank = registers::find(limits.target.id, *address);
    let what = format!("configuration register {address:#06x}");
    ensure(bank.is_some_and(|(bank, _)| bank.writable), what, "there is none to write")
}

fn initial_dsr(initial: &InitialDsr, program: &Program, limits: &Limits) -> Checked {
    let InitialDsr { dsr, dsd, symbol, options, save_address: _, single_step: _, xdsr } = initial;
    let what = format!("register {}{}", dsr.file.name(), dsr.index);
    limits.dsr(*dsr).map_err(limit(&what))?;
    limits.xdsr(*xdsr).map_err(limit(&what))?;
    limits.options(options).map_err(limit(&what))?;
    ensure(options.index.is_none(), &what, "no local can be named here")?;
    descriptor(*dsd, program, limits, &what)?;
    let memory = match dsd.kind() {
        DsdKind::Mem1d | DsdKind::Mem4d | DsdKind::Ring => true,
        DsdKind::Unset | DsdKind::FabIn | DsdKind::FabOut => false,
    };
    ensure(memory || symbol.is_none(), &what, "only memory descriptors have a base")
}

fn descriptor(dsd: Dsd, program: &Program, limits: &Limits, what: &str) -> Checked {
    let known = dsd.kind() != DsdKind::Unset || dsd.0 >> 56 == 0;
    ensure(known, what, "no such kind of descriptor")?;
    match dsd.kind() {
        DsdKind::Unset | DsdKind::Mem1d | DsdKind::Ring => Ok(()),
        DsdKind::Mem4d => index::present(dsd.shape(), &program.shapes).map_err(missing(what)),
        DsdKind::FabIn | DsdKind::FabOut => {
            let color = dsd.color();
            let known = color == Dsd::COLOR_OF_QUEUE || Color::new(color).is_some();
            ensure(known, what, "no such color")?;
            limits.queue(dsd.kind() == DsdKind::FabIn, dsd.queue()).map_err(limit(what))
        }
    }
}

fn colors(colors: &[LocalColorConfig]) -> Checked {
    let mut configured = BTreeSet::new();
    for LocalColorConfig { color, config, loc: _ } in colors {
        let what = format!("{color:?}");
        ensure(configured.insert(*color), &what, "configured twice")?;
        mesh::color_config(config).map_err(|text| rule(what, text))?;
    }
    Ok(())
}

fn host_link(link: &HostLink) -> Checked {
    let HostLink { port, color, to_mesh: _ } = link;
    ensure(*port != Port::Ramp, format!("host link of {color:?}"), "the ramp leads to no host")
}

fn export_name(binding: &ExportBinding) -> String {
    format!("export {}", binding.export)
}

fn exports(exports: &[ExportBinding]) -> Checked {
    let mut bound = BTreeSet::new();
    exports.iter().try_for_each(|binding| {
        let ExportBinding { export, symbol: _ } = binding;
        ensure(bound.insert(*export), export_name(binding), "bound twice")
    })
}
