//! Instructions and terminators as text, one line each.

use std::fmt::Display;

use super::lex::quote;
use super::names::Word;
use super::print_image::element;
use crate::dsd::{DsrRef, FabricDsd};
use crate::func::{Func, Local};
use crate::inst::{InstData, OnControl, Operand, Terminator, Unblock, VectorInst, VectorOptions};
use crate::program::{HostArg, HostOp};
use crate::ty::Ty;

/// Items between commas.
pub(super) fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

/// A word if a flag is set, with a space before it.
pub(super) fn flag(set: bool, word: &str) -> String {
    if set { format!(" {word}") } else { String::new() }
}

/// The type of a local as a suffix; nothing for a local that is not there.
fn suffix(func: &Func, local: Local) -> String {
    func.locals.get(local).map(|ty| format!(".{ty}")).unwrap_or_default()
}

/// A constant: integers in decimal with sign, large ones and floats as raw bits.
fn constant(ty: Option<Ty>, bits: u64) -> String {
    match ty {
        Some(ty @ (Ty::I8 | Ty::I16 | Ty::I32)) if ty.mask(bits) == bits => {
            let shift = 64 - ty.bits();
            ((bits << shift).cast_signed() >> shift).to_string()
        }
        Some(Ty::I64) if bits < 1 << 32 => bits.to_string(),
        Some(Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::F16 | Ty::F32 | Ty::F64 | Ty::Bf16)
        | None => {
            format!("{bits:#x}")
        }
    }
}

/// What stands behind an instruction for the eye: the value of a float constant.
pub(super) fn comment(func: &Func, inst: &InstData) -> String {
    let InstData::Const { dst, bits } = inst else { return String::new() };
    match func.locals.get(*dst) {
        Some(Ty::F16) => format!(" ; {:?}", half::f16::from_bits(*bits as u16)),
        Some(Ty::Bf16) => format!(" ; {:?}", half::bf16::from_bits(*bits as u16)),
        Some(Ty::F32) => format!(" ; {:?}", f32::from_bits(*bits as u32)),
        Some(Ty::F64) => format!(" ; {:?}", f64::from_bits(*bits)),
        Some(Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64) | None => String::new(),
    }
}

/// `+8`, `-8` or nothing.
fn offset(offset: i32) -> String {
    if offset == 0 { String::new() } else { format!("{offset:+}") }
}

fn address(base: impl Display, by: i32) -> String {
    format!("[{base}{}]", offset(by))
}

fn assign(dst: Option<Local>) -> String {
    dst.map(|dst| format!("{dst} = ")).unwrap_or_default()
}

/// An instruction, without its place.
#[expect(clippy::too_many_lines, reason = "one arm per instruction")]
pub(super) fn inst(func: &Func, inst: &InstData) -> String {
    match inst {
        InstData::Const { dst, bits } => {
            let ty = func.locals.get(*dst).copied();
            format!("{dst} = const{} {}", suffix(func, *dst), constant(ty, *bits))
        }
        InstData::Slot { dst, slot } => format!("{dst} = slot{} {slot}", suffix(func, *dst)),
        InstData::Copy { dst, src } => format!("{dst} = copy{} {src}", suffix(func, *dst)),
        InstData::Unary { dst, op, src } => {
            format!("{dst} = {}{} {src}", op.word(), suffix(func, *src))
        }
        InstData::Binary { dst, op, lhs, rhs } => {
            format!("{dst} = {}{} {lhs}, {rhs}", op.word(), suffix(func, *lhs))
        }
        InstData::Convert { dst, kind, src } => {
            format!("{dst} = {}{} {src}", kind.word(), suffix(func, *dst))
        }
        InstData::Load { dst, addr, offset } => {
            format!("{dst} = load{} {}", suffix(func, *dst), address(addr, *offset))
        }
        InstData::Store { addr, offset, src } => {
            format!("store{} {}, {src}", suffix(func, *src), address(addr, *offset))
        }
        InstData::CopyMemory { dst, src, bytes } => {
            format!("copy_memory [{dst}], [{src}], {bytes}")
        }
        InstData::FillMemory { dst, value, count } => {
            format!("fill_memory{} [{dst}], {value}, {count}", suffix(func, *value))
        }
        InstData::GlobalAddress { dst, global, offset } => {
            format!("{dst} = address {}", address(global, *offset))
        }
        InstData::StackAddress { dst, slot, offset } => {
            format!("{dst} = address {}", address(slot, *offset))
        }
        InstData::FuncAddress { dst, func } => format!("{dst} = address [{func}]"),
        InstData::Call { dst, func, args } => {
            format!("{}call {func}({})", assign(*dst), list(args))
        }
        InstData::CallIndirect { dst, callee, sig, args } => {
            format!("{}call_indirect {callee} {sig}({})", assign(*dst), list(args))
        }
        InstData::MakeMem1d { dst, base, extent, stride, indexed } => {
            let indexed = flag(*indexed, "indexed");
            format!("{dst} = mem1d {base}, {extent}, {stride}{indexed}")
        }
        InstData::MakeMem4d { dst, base, shape, indexed } => {
            format!("{dst} = mem4d {base}, {shape}{}", flag(*indexed, "indexed"))
        }
        InstData::MakeFabric { dst, desc, extent } => format!("{dst} = {} {extent}", fabric(*desc)),
        InstData::MakeRing { dst, base, extent, wrap } => {
            format!("{dst} = ring {base}, {extent}, {wrap}")
        }
        InstData::DsdMoveBase { dst, src, delta } => format!("{dst} = move_base {src}, {delta}"),
        InstData::DsdSetBase { dst, src, base } => format!("{dst} = set_base {src}, {base}"),
        InstData::DsdSetExtent { dst, src, extent } => {
            format!("{dst} = set_extent {src}, {extent}")
        }
        InstData::DsdSetStride { dst, src, stride } => {
            format!("{dst} = set_stride {src}, {stride}")
        }
        InstData::Vector(inst) => vector(inst),
        InstData::LoadDsr { dsr, dsd, options, save_address, single_step, xdsr } => format!(
            "load_dsr {}, {dsd}{}{}{}{}",
            self::dsr(*dsr),
            flag(*save_address, "save_address"),
            flag(*single_step, "single_step"),
            self::xdsr(*xdsr),
            self::options(options)
        ),
        InstData::SetDsr { dsr, field, value } => {
            format!("set_dsr {} {}, {value}", self::dsr(*dsr), field.word())
        }
        InstData::SetFifoLength { fifo, write_side, length } => {
            let side = if *write_side { "write" } else { "read" };
            format!("fifo_length {fifo} {side}, {length}")
        }
        InstData::Flag { op, id } => format!("{} {id}", op.word()),
        InstData::Random { dst } => format!("{dst} = random"),
        InstData::GetConfig { dst, addr } => format!("{dst} = get_config {addr}"),
        InstData::SetConfig { addr, src } => format!("set_config {addr}, {src}"),
        InstData::SetRandom { id } => format!("set_random {id}"),
        InstData::Queues { dst, state } => format!("{dst} = queues {}", state.word()),
        InstData::Clock { op, dst } => format!("{}clock {}", assign(*dst), op.word()),
        InstData::Assert { cond, message } => format!("assert {cond}, {}", quote(message)),
        InstData::Bound { index, len, what } => format!("bound {} {index}, {len}", what.word()),
        InstData::Host { op, dsts, args } => {
            let results = if dsts.is_empty() { String::new() } else { list(dsts) + " = " };
            format!("{results}host {} ({})", host(op), list(args))
        }
    }
}

fn fabric(desc: FabricDsd) -> String {
    let FabricDsd {
        input,
        queue,
        color,
        control,
        indexed,
        advance_switch,
        packed,
        transform,
        priority,
        zero,
    } = desc;
    let priority = priority.map_or_else(String::new, |level| format!(" priority={}", level.word()));
    let zero = zero.map_or_else(String::new, |source| format!(" zero={source}"));
    let color = color.map_or_else(String::new, |color| format!(" {color:?}"));
    format!(
        "{} queue={queue}{color}{}{}{}{}{}{priority}{zero} extent",
        if input { "fabin" } else { "fabout" },
        flag(control, "control"),
        flag(indexed, "indexed"),
        flag(advance_switch, "advance_switch"),
        flag(packed, "packed"),
        flag(transform, "transform"),
    )
}

/// The extended register of a load.
pub(super) fn xdsr(xdsr: Option<u8>) -> String {
    xdsr.map_or_else(String::new, |number| format!(" xdsr={number}"))
}

/// A register: file and number.
pub(super) fn dsr(dsr: DsrRef) -> String {
    format!("{} {}", dsr.file.name(), dsr.index)
}

fn operand(operand: Operand) -> String {
    match operand {
        Operand::Memory(local) => format!("memory {local}"),
        Operand::Fabric(local) => format!("fabric {local}"),
        Operand::Dsr(register) => dsr(register),
        Operand::Fifo(fifo) => fifo.to_string(),
        Operand::Scalar(local) => format!("scalar {local}"),
        Operand::Pointer(local) => format!("pointer {local}"),
    }
}

fn vector(inst: &VectorInst) -> String {
    let VectorInst { op, dest, sources, options, result } = inst;
    let operands = std::iter::once(dest).chain(sources).map(|&each| operand(each));
    let name = op.get().map_or_else(|| format!("op{}", op.0), |_| op.to_string());
    format!("{}vector {name} {}{}", assign(*result), list(operands), self::options(options))
}

/// Options that differ from the default, each with a space before it.
pub(super) fn options(options: &VectorOptions) -> String {
    let VectorOptions { asynchronous, activate, unblock, microthread, priority, index, on_control } =
        options;
    let mut text = flag(*asynchronous, "async");
    if let Some(id) = activate {
        text += &format!(" activate={id}");
    }
    if let Some(what) = unblock {
        text += &format!(" unblock={}", self::unblock(*what));
    }
    if let Some(id) = microthread {
        text += &format!(" microthread={id}");
    }
    if let Some(priority) = priority {
        text += &format!(" priority={}", priority.word());
    }
    if let Some(local) = index {
        text += &format!(" index={local}");
    }
    match on_control {
        OnControl::Ignore => {}
        OnControl::Terminate => text += " on_control=terminate",
        OnControl::Count => text += " on_control=count",
        OnControl::Activate(id) => text += &format!(" on_control=activate {id}"),
        OnControl::Unblock(what) => {
            text += &format!(" on_control=unblock {}", self::unblock(*what));
        }
    }
    text
}

fn unblock(what: Unblock) -> String {
    match what {
        Unblock::Task(id) => format!("task {id}"),
        Unblock::Channel(id) => format!("channel {id}"),
    }
}

fn host(op: &HostOp) -> String {
    match op {
        HostOp::Input { name, ty } => format!("input {} {}", quote(name), element(*ty)),
        HostOp::HasInput { name } => format!("has_input {}", quote(name)),
        HostOp::Output { name, ty } => format!("output {} {}", quote(name), element(*ty)),
        HostOp::Setting { name, ty } => format!("setting {} {}", quote(name), element(*ty)),
        HostOp::HasSetting { name } => format!("has_setting {}", quote(name)),
        HostOp::CopyIn { export, ty } => format!("copy_in {export} {ty}"),
        HostOp::CopyOut { export, ty } => format!("copy_out {export} {ty}"),
        HostOp::Launch { export } => format!("launch {export}"),
        HostOp::StreamIn { color, ty } => format!("stream_in {color:?} {ty}"),
        HostOp::StreamOut { color, ty } => format!("stream_out {color:?} {ty}"),
        HostOp::StreamOutRows { color, ty } => format!("stream_out_rows {color:?} {ty}"),
        HostOp::Wait => "wait".to_owned(),
        HostOp::Alloc => "alloc".to_owned(),
        HostOp::Print { pieces, args } => format!("print {}", format_text(pieces, args)),
        HostOp::Expect { pieces, args } => format!("expect {}", format_text(pieces, args)),
        HostOp::Cycles => "cycles".to_owned(),
        HostOp::ClockRate => "clock_rate".to_owned(),
        HostOp::AssumedShare => "assumed_share".to_owned(),
        HostOp::Wavelets => "wavelets".to_owned(),
        HostOp::Math(function) => format!("math {}", function.word()),
    }
}

fn format_text(pieces: &[String], args: &[HostArg]) -> String {
    let pieces = list(pieces.iter().map(|piece| quote(piece)));
    format!("[{pieces}] [{}]", list(args.iter().map(|arg| arg.word())))
}

/// A terminator, without its place.
pub(super) fn terminator(func: &Func, terminator: &Terminator) -> String {
    match terminator {
        Terminator::Jump(target) => format!("jump {target}"),
        Terminator::Branch { cond, then, otherwise } => {
            format!("branch {cond}, {then}, {otherwise}")
        }
        Terminator::Switch { value, cases, otherwise } => {
            let cases = list(cases.iter().map(|(case, target)| format!("{case}: {target}")));
            format!("switch{} {value}, [{cases}], {otherwise}", suffix(func, *value))
        }
        Terminator::Return(None) => "return".to_owned(),
        Terminator::Return(Some(value)) => format!("return {value}"),
        Terminator::Unreachable => "unreachable".to_owned(),
    }
}
