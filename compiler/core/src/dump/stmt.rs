//! Statements as text, indented by two per level.

use std::fmt::{Result, Write};

use dflow_ir::inst::FlagOp;

use super::expr::{Names, options};
use crate::typed::{Stmt, StmtKind};

/// Statements at a depth.
pub(super) fn stmts(text: &mut String, names: &Names<'_>, stmts: &[Stmt], depth: usize) -> Result {
    stmts.iter().try_for_each(|stmt| write_stmt(text, names, stmt, depth))
}

fn write_stmt(text: &mut String, names: &Names<'_>, stmt: &Stmt, depth: usize) -> Result {
    let line = match &stmt.kind {
        StmtKind::If { .. } => return ladder(text, names, stmt, depth),
        StmtKind::While { label, cond, step, body } => {
            indent(text, depth)?;
            writeln!(text, "label{}: while {} {{", label.0, names.expr(cond))?;
            stmts(text, names, body, depth + 1)?;
            if !step.is_empty() {
                line_at(text, depth, "} step {")?;
                stmts(text, names, step, depth + 1)?;
            }
            return line_at(text, depth, "}");
        }
        StmtKind::Block { label, body } => {
            line_at(text, depth, &format!("label{}: {{", label.0))?;
            stmts(text, names, body, depth + 1)?;
            return line_at(text, depth, "}");
        }
        StmtKind::Switch { value, cases, otherwise } => {
            line_at(text, depth, &format!("switch {} {{", names.expr(value)))?;
            for (values, body) in cases {
                let values: Vec<String> = values.iter().map(u64::to_string).collect();
                line_at(text, depth, &format!("{} =>", values.join(", ")))?;
                stmts(text, names, body, depth + 1)?;
            }
            line_at(text, depth, "else =>")?;
            stmts(text, names, otherwise, depth + 1)?;
            return line_at(text, depth, "}");
        }
        StmtKind::Expr(expr) => names.expr(expr),
        StmtKind::Set(local, value) => format!("{} = {}", names.local(*local), names.expr(value)),
        StmtKind::Store { address, offset, value } => {
            let ty = value.ty.map_or("none", |ty| ty.name());
            let offset = if *offset == 0 { String::new() } else { format!(", {offset}") };
            format!("store.{ty}({}{offset}) = {}", names.expr(address), names.expr(value))
        }
        StmtKind::Copy { dest, source, bytes } => {
            format!("copy {bytes} bytes to {} from {}", names.expr(dest), names.expr(source))
        }
        StmtKind::Hold { hold, source, bytes, align: _ } => {
            format!("hold{} = {bytes} bytes at {}", hold.0, names.expr(source))
        }
        StmtKind::Fill { dest, value, count } => {
            format!("fill {} with {count} times {}", names.expr(dest), names.expr(value))
        }
        StmtKind::Break(label) => format!("break label{}", label.0),
        StmtKind::Continue(label) => format!("continue label{}", label.0),
        StmtKind::Return(None) => "return".to_owned(),
        StmtKind::Return(Some(value)) => format!("return {}", names.expr(value)),
        StmtKind::Flag { op, id } => format!("{} {}", flag_name(*op), names.expr(id)),
        StmtKind::LoadDsr { dsr, dsd, options: settings } => {
            let (file, index) = (dsr.file.name(), dsr.index);
            format!("{file}{index} = {}{}", names.expr(dsd), options(settings, names))
        }
        StmtKind::SetDsr { dsr, field, value } => {
            let (file, index) = (dsr.file.name(), dsr.index);
            format!("{file}{index} {} = {}", format!("{field:?}").to_lowercase(), names.expr(value))
        }
        StmtKind::SetRandom(id) => format!("random generator = {}", names.expr(id)),
        StmtKind::SetFifoLength { fifo, write_side, length } => {
            let side = if *write_side { "write" } else { "read" };
            format!("fifo{fifo} {side} length = {}", names.expr(length))
        }
        StmtKind::SetConfig { addr, value } => {
            format!("config({}) = {}", names.expr(addr), names.expr(value))
        }
        StmtKind::Clock(op) => format!("clock {op:?}").to_lowercase(),
        StmtKind::Assert { cond, message } => format!("assert {} {message:?}", names.expr(cond)),
        StmtKind::Host { op, dests, args } => {
            let dests: Vec<&str> = dests.iter().map(|&dest| names.local(dest)).collect();
            let dests = if dests.is_empty() { String::new() } else { dests.join(", ") + " = " };
            format!("{dests}host {op:?} ({})", names.list(args))
        }
    };
    line_at(text, depth, &line)
}

/// `if … else if … else`, as long as it may be.
fn ladder(text: &mut String, names: &Names<'_>, stmt: &Stmt, depth: usize) -> Result {
    let mut rung = stmt;
    indent(text, depth)?;
    while let StmtKind::If { cond, then, otherwise } = &rung.kind {
        writeln!(text, "if {} {{", names.expr(cond))?;
        stmts(text, names, then, depth + 1)?;
        match otherwise.as_slice() {
            [] => break,
            [next] if matches!(next.kind, StmtKind::If { .. }) => {
                indent(text, depth)?;
                write!(text, "}} else ")?;
                rung = next;
            }
            _ => {
                line_at(text, depth, "} else {")?;
                stmts(text, names, otherwise, depth + 1)?;
                break;
            }
        }
    }
    line_at(text, depth, "}")
}

/// What an activation state change is called.
pub(super) fn flag_name(op: FlagOp) -> &'static str {
    match op {
        FlagOp::Activate => "activate",
        FlagOp::BlockTask => "block task",
        FlagOp::UnblockTask => "unblock task",
        FlagOp::BlockChannel => "block channel",
        FlagOp::UnblockChannel => "unblock channel",
        FlagOp::BlockMicrothread => "block microthread",
        FlagOp::UnblockMicrothread => "unblock microthread",
        FlagOp::RaiseTask => "raise task",
        FlagOp::LowerTask => "lower task",
        FlagOp::RaiseChannel => "raise channel",
        FlagOp::LowerChannel => "lower channel",
        FlagOp::MainPriority => "main priority",
        FlagOp::FlushInput => "flush input",
        FlagOp::FlushOutput => "flush output",
        FlagOp::EndFlushInput => "end flush of input",
        FlagOp::EndFlushOutput => "end flush of output",
        FlagOp::TransformMask => "transform mask",
        FlagOp::Exceptions => "exceptions",
        FlagOp::BindInput => "bind input",
        FlagOp::BindOutput => "bind output",
        FlagOp::AnswerAhead => "answer ahead",
    }
}

fn indent(text: &mut String, depth: usize) -> Result {
    (0..depth).try_for_each(|_| write!(text, "  "))
}

fn line_at(text: &mut String, depth: usize, line: &str) -> Result {
    indent(text, depth)?;
    writeln!(text, "{line}")
}
