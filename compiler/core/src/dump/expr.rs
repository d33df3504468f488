//! Expressions as text: `add(load.i16(p, 4), 1:i16)`.

use std::collections::BTreeSet;
use std::fmt::Write;

use dflow_ir::inst::{ClockOp, OnControl, Priority, Unblock};
use dflow_ir::ty::Ty;

use crate::typed::{
    Expr, ExprKind, FuncIdx, GlobalIdx, Local, LocalIdx, Operand, Options, Program, Vector,
};

/// What locals and globals are called in one function.
pub(super) struct Names<'p> {
    program: &'p Program,
    locals: Vec<String>,
}

impl<'p> Names<'p> {
    /// Locals under their own name; a name that is taken gets its number.
    pub(super) fn of(program: &'p Program, locals: &[Local]) -> Names<'p> {
        let mut taken = BTreeSet::new();
        let names = locals.iter().enumerate().map(|(index, local)| match &local.name {
            None => format!("t{index}"),
            Some(name) if taken.insert(name.as_str()) => name.clone(),
            Some(name) => format!("{name}.{index}"),
        });
        Names { program, locals: names.collect() }
    }

    /// Outside of functions.
    pub(super) fn empty(program: &'p Program) -> Names<'p> {
        Names::of(program, &[])
    }

    pub(super) fn local(&self, local: LocalIdx) -> &str {
        self.locals.get(local.0 as usize).map_or("?", String::as_str)
    }

    fn global(&self, global: GlobalIdx) -> &str {
        self.program.globals.get(global.0 as usize).map_or("?", |global| global.name.as_str())
    }

    fn func(&self, func: FuncIdx) -> &str {
        self.program.funcs.get(func.0 as usize).map_or("?", |func| func.name.as_str())
    }

    /// An expression.
    pub(super) fn expr(&self, expr: &Expr) -> String {
        let mut text = String::new();
        // Operator chains are as deep as they are long: openings on the way down, the other
        // operands on the way back.
        let mut closings = Vec::new();
        let mut inner = expr;
        while let Some((opening, first, closing)) = self.link(inner) {
            text.push_str(&opening);
            closings.push(closing);
            inner = first;
        }
        text.push_str(&self.simple(inner));
        closings.iter().rev().for_each(|closing| text.push_str(closing));
        text
    }

    /// A list of expressions.
    pub(super) fn list(&self, exprs: &[Expr]) -> String {
        exprs.iter().map(|expr| self.expr(expr)).collect::<Vec<_>>().join(", ")
    }

    /// The opening, first operand and closing of an operation that forms chains.
    fn link<'e>(&self, expr: &'e Expr) -> Option<(String, &'e Expr, String)> {
        let ty = expr.ty.map_or("none", Ty::name);
        match &*expr.kind {
            ExprKind::Load { address, offset } => {
                Some((format!("load.{ty}("), address, closing(*offset)))
            }
            ExprKind::Unary(op, operand) => {
                Some((format!("{}(", lower(op)), operand, ")".to_owned()))
            }
            ExprKind::Binary(op, lhs, rhs) => {
                Some((format!("{}(", lower(op)), lhs, format!(", {})", self.expr(rhs))))
            }
            ExprKind::Convert(kind, operand) => {
                Some((format!("{}.{ty}(", lower(kind)), operand, ")".to_owned()))
            }
            ExprKind::Bound(what, index, len) => {
                Some((format!("bound.{}(", lower(what)), index, format!(", {})", self.expr(len))))
            }
            ExprKind::Const(_)
            | ExprKind::Slot(_)
            | ExprKind::Local(_)
            | ExprKind::GlobalAddress { .. }
            | ExprKind::LocalAddress { .. }
            | ExprKind::Held { .. }
            | ExprKind::FuncAddress(_)
            | ExprKind::Call { .. }
            | ExprKind::CallIndirect { .. }
            | ExprKind::Mem1d { .. }
            | ExprKind::Mem4d { .. }
            | ExprKind::Fabric { .. }
            | ExprKind::Ring { .. }
            | ExprKind::Queues(_)
            | ExprKind::MoveBase { .. }
            | ExprKind::SetBase { .. }
            | ExprKind::SetExtent { .. }
            | ExprKind::SetStride { .. }
            | ExprKind::Vector(_)
            | ExprKind::Random
            | ExprKind::GetConfig(_)
            | ExprKind::ClockRead(_) => None,
        }
    }

    fn simple(&self, expr: &Expr) -> String {
        let pair = |name: &str, first: &Expr, second: &Expr| {
            format!("{name}({}, {})", self.expr(first), self.expr(second))
        };
        match &*expr.kind {
            ExprKind::Const(bits) => constant(expr.ty, *bits),
            ExprKind::Slot(slot) => format!("slot{}", slot.0),
            ExprKind::Local(local) => self.local(*local).to_owned(),
            ExprKind::GlobalAddress { global, offset } => {
                format!("&{}{}", self.global(*global), signed(*offset))
            }
            ExprKind::LocalAddress { local, offset } => {
                format!("&{}{}", self.local(*local), signed(*offset))
            }
            ExprKind::Held { hold, source, .. } => {
                format!("hold{}({})", hold.0, self.expr(source))
            }
            ExprKind::FuncAddress(func) => format!("&{}", self.func(*func)),
            ExprKind::Call { func, args } => format!("{}({})", self.func(*func), self.list(args)),
            ExprKind::CallIndirect { callee, params: _, args } => {
                format!("({})({})", self.expr(callee), self.list(args))
            }
            ExprKind::Mem1d { base, extent, stride, indexed, .. } => {
                let (base, extent) = (self.expr(base), self.expr(extent));
                format!("mem1d({base}, {extent}, {}{})", self.expr(stride), flag(*indexed))
            }
            ExprKind::Mem4d { base, shape, indexed, .. } => {
                format!("mem4d({}, shape{shape}{})", self.expr(base), flag(*indexed))
            }
            ExprKind::Fabric { desc, extent } => {
                let kind = if desc.input { "fabin" } else { "fabout" };
                let control = if desc.control { ", control" } else { "" };
                let advance = if desc.advance_switch { ", advance_switch" } else { "" };
                let queue = desc.queue;
                let color = desc
                    .color
                    .map_or_else(String::new, |color| format!(", color {}", color.index()));
                let indexed = flag(desc.indexed);
                let packed = if desc.packed { ", packed" } else { "" };
                let extent = self.expr(extent);
                format!("{kind}(queue {queue}{color}, {extent}{control}{advance}{packed}{indexed})")
            }
            ExprKind::Ring { base, extent, wrap, .. } => {
                format!("ring({}, {}, {})", self.expr(base), self.expr(extent), self.expr(wrap))
            }
            ExprKind::Queues(state) => format!("queues({state:?})"),
            ExprKind::MoveBase { dsd, delta } => pair("move_base", dsd, delta),
            ExprKind::SetBase { dsd, base, .. } => pair("set_base", dsd, base),
            ExprKind::SetExtent { dsd, extent } => pair("set_extent", dsd, extent),
            ExprKind::SetStride { dsd, stride } => pair("set_stride", dsd, stride),
            ExprKind::Vector(vector) => self.vector(vector),
            ExprKind::Random => "random()".to_owned(),
            ExprKind::ClockRead(ClockOp::Read) => "clock()".to_owned(),
            ExprKind::ClockRead(op) => format!("clock({op:?})"),
            ExprKind::GetConfig(addr) => format!("config({})", self.expr(addr)),
            ExprKind::Load { .. }
            | ExprKind::Unary(_, _)
            | ExprKind::Binary(_, _, _)
            | ExprKind::Convert(_, _)
            | ExprKind::Bound(_, _, _) => self.expr(expr),
        }
    }

    fn vector(&self, vector: &Vector) -> String {
        let Vector { op, dest, sources, options: settings } = vector;
        let operands = std::iter::once(dest).chain(sources);
        let operands: Vec<String> = operands.map(|operand| self.operand(operand)).collect();
        format!("@{}({}){}", op.row().name, operands.join(", "), options(settings, self))
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Memory(dsd) => format!("memory {}", self.expr(dsd)),
            Operand::Fabric(dsd) => format!("fabric {}", self.expr(dsd)),
            Operand::Dsr(dsr) => format!("{}{}", dsr.file.name(), dsr.index),
            Operand::Fifo(fifo) => format!("fifo{fifo}"),
            Operand::Scalar(value) => self.expr(value),
            Operand::Pointer(address) => format!("*{}", self.expr(address)),
        }
    }
}

/// Settings that are not the default, each with a space before it.
pub(super) fn options(options: &Options, names: &Names<'_>) -> String {
    let Options {
        asynchronous,
        activate,
        unblock,
        microthread,
        priority,
        index,
        on_control,
        save_address,
        single_step,
        xdsr,
    } = options;
    let mut text = String::new();
    let flags =
        [(asynchronous, " async"), (save_address, " save_address"), (single_step, " single_step")];
    flags.iter().filter(|(set, _)| **set).for_each(|(_, name)| text.push_str(name));
    if let Some(number) = xdsr {
        add(&mut text, &format!("xdsr={number}"));
    }
    if let Some(id) = activate {
        add(&mut text, &format!("activate={id}"));
    }
    if let Some(unblock) = unblock {
        add(&mut text, &format!("unblock={}", unblock_text(*unblock)));
    }
    if let Some(id) = microthread {
        add(&mut text, &format!("microthread={id}"));
    }
    match priority {
        None => {}
        Some(Priority::Low) => add(&mut text, "priority=low"),
        Some(Priority::Medium) => add(&mut text, "priority=medium"),
        Some(Priority::High) => add(&mut text, "priority=high"),
    }
    if let Some(index) = index {
        add(&mut text, &format!("index={}", names.expr(index)));
    }
    match on_control {
        OnControl::Ignore => {}
        OnControl::Terminate => add(&mut text, "on_control=terminate"),
        OnControl::Count => add(&mut text, "on_control=count"),
        OnControl::Activate(id) => add(&mut text, &format!("on_control=activate {id}")),
        OnControl::Unblock(unblock) => {
            add(&mut text, &format!("on_control=unblock {}", unblock_text(*unblock)));
        }
    }
    text
}

fn add(text: &mut String, part: &str) {
    text.push(' ');
    text.push_str(part);
}

fn unblock_text(unblock: Unblock) -> String {
    match unblock {
        Unblock::Task(id) => format!("task {id}"),
        Unblock::Channel(id) => format!("channel {id}"),
    }
}

/// An operator's name in lower case with underscores: `LtS` is `lt_s`.
fn lower(op: &impl std::fmt::Debug) -> String {
    let name = format!("{op:?}");
    let mut text = String::new();
    for (index, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && index > 0 {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

fn closing(offset: i32) -> String {
    if offset == 0 { ")".to_owned() } else { format!(", {offset})") }
}

fn signed(offset: i32) -> String {
    if offset == 0 { String::new() } else { format!("{offset:+}") }
}

fn flag(indexed: bool) -> &'static str {
    if indexed { ", indexed" } else { "" }
}

fn constant(ty: Option<Ty>, bits: u64) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match ty {
        Some(ty @ Ty::Bf16) => {
            write!(text, "{}:{ty}", half::bf16::from_bits(bits as u16))
        }
        Some(ty @ Ty::F16) => {
            write!(text, "{}:{ty}", half::f16::from_bits(bits as u16))
        }
        Some(ty @ Ty::F32) => write!(text, "{}:{ty}", f32::from_bits(bits as u32)),
        Some(ty @ Ty::F64) => write!(text, "{}:{ty}", f64::from_bits(bits)),
        Some(ty @ (Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64)) => write!(text, "{bits}:{ty}"),
        None => write!(text, "{bits}"),
    };
    text
}
