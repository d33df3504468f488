//! Builtins: one row each, one handler each.
//!
//! [`table::ROWS`] says what a builtin is called, what it takes, where it may stand and who does
//! it; vector operations have their rows in `ir::dsd::op` and one handler here. A handler gets
//! the analysis and the unevaluated arguments.

pub(crate) mod allocate;
mod args;
mod color;
mod config;
mod dsd;
mod estimate;
mod export;
mod filter;
mod host;
mod ids;
mod layout;
mod map;
mod old;
mod queue;
mod structs;
mod table;
mod task;
mod teardown;
mod values;
mod vector;
mod wse3;

use dflow_ir::dsd::op::DsdOp;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, Symbol, codes};

use crate::resolve::edit_distance;
use crate::sema::types::TypeId;
use crate::sema::{BodyKind, Operand, R, Sema};
pub(crate) use dsd::constant::Registers;
pub(crate) use queue::color_value;
pub(crate) use structs::field_place;
pub(crate) use table::manual;
use table::{ROWS, Row, Where};
pub(crate) use task::finish_early;

/// A call of a builtin.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    pub(crate) name: &'static str,
    pub(crate) args: &'c [ExprId],
    pub(crate) span: Span,
    /// Type that the surroundings want.
    pub(crate) hint: Option<TypeId>,
}

/// What a handler is.
pub(crate) type Handler = fn(&mut Sema<'_, '_>, Call<'_>) -> R<Operand>;

/// What a name behind `@` means.
#[derive(Clone, Copy)]
pub(crate) enum Builtin {
    Vector(DsdOp),
    Row(&'static Row),
    Unknown,
}

/// The meaning of a name, found once per name.
fn look_up(sema: &mut Sema<'_, '_>, name: Symbol) -> Builtin {
    if let Some(&known) = sema.builtins.get(&name) {
        return known;
    }
    let text = sema.cx.names.resolve(name);
    let found = match (DsdOp::by_name(text), ROWS.binary_search_by(|row| row.name.cmp(text))) {
        (Some(op), _) => Builtin::Vector(op.on(sema.cx.options.half)),
        (None, Ok(at)) => Builtin::Row(&ROWS[at]),
        (None, Err(_)) => Builtin::Unknown,
    };
    sema.builtins.insert(name, found);
    found
}

/// Whether a builtin is called so.
#[cfg(test)]
pub(crate) fn is_builtin(name: &str) -> bool {
    ROWS.binary_search_by(|row| row.name.cmp(name)).is_ok()
}

/// Calls a builtin: the single way in.
pub(crate) fn call(
    sema: &mut Sema<'_, '_>,
    name: Symbol,
    name_span: Span,
    args: &[ExprId],
    span: Span,
    hint: Option<TypeId>,
) -> R<Operand> {
    let row = match look_up(sema, name) {
        Builtin::Vector(op) => return vector::call(sema, op, args, span),
        Builtin::Row(row) => row,
        Builtin::Unknown => {
            let text = sema.spell(name);
            return unknown(sema, &text, name_span);
        }
    };
    check_place(sema, row, name_span)?;
    check_count(sema, row, args.len(), span)?;
    (row.handler)(sema, Call { name: row.name, args, span, hint })
}

fn unknown<T>(sema: &mut Sema<'_, '_>, text: &str, span: Span) -> R<T> {
    let mut diagnostic =
        Diagnostic::new(codes::UNKNOWN_BUILTIN, format!("there is no builtin `@{text}`"), span)
            .label("not a builtin");
    let habit = table::HABITS.iter().find(|(name, _)| *name == text);
    let known = ROWS.iter().map(|row| row.name).chain(DsdOp::all().map(|op| op.row().name));
    let near = known
        .map(|name| (edit_distance(name, text), name))
        .filter(|&(distance, _)| distance <= 2 && distance * 2 < text.len())
        .min();
    diagnostic = match (habit, near) {
        (Some((_, instead)), _) => diagnostic.help(format!("write {instead}")),
        (None, Some((_, near))) => diagnostic.help(format!("did you mean `@{near}`?")),
        (None, None) => diagnostic,
    };
    Err(sema.report(diagnostic))
}

/// Where the analysis stands, as a set of one.
fn here(sema: &Sema<'_, '_>) -> Where {
    let frame = sema.frame();
    match (&frame.kind, frame.comptime) {
        (BodyKind::Layout, _) => Where::LAYOUT,
        (BodyKind::TopLevel, _) => Where::TOP,
        (BodyKind::Value, _) => Where::VALUE,
        (BodyKind::Code { .. } | BodyKind::Inline(_), true) => Where::VALUE,
        (BodyKind::Code { .. } | BodyKind::Inline(_), false) if sema.is_host() => Where::HOST,
        (BodyKind::Code { .. } | BodyKind::Inline(_), false) => Where::CODE,
    }
}

fn check_place(sema: &mut Sema<'_, '_>, row: &Row, span: Span) -> R<()> {
    let place = here(sema);
    if row.place.contains(place) {
        // What stands only at a program's top level or in its code needs the program.
        let anywhere = row.place.contains(Where::LAYOUT) || row.place.contains(Where::VALUE);
        return if anywhere { Ok(()) } else { sema.need_program(span) };
    }
    let message = format!(
        "`@{}` cannot stand in {}: its place is {}",
        row.name,
        place.name(),
        row.place.names()
    );
    let diagnostic = Diagnostic::new(codes::BUILTIN_CONTEXT, message, span).label("used here");
    let elsewhere = if place == Where::CODE { table::IN_CODE } else { &[] };
    let elsewhere = elsewhere.iter().chain(table::ELSEWHERE);
    let instead = elsewhere.into_iter().find(|(name, _)| *name == row.name);
    Err(sema.report(match instead {
        Some((_, help)) if place != Where::HOST => diagnostic.help(*help),
        _ => diagnostic,
    }))
}

fn check_count(sema: &mut Sema<'_, '_>, row: &Row, count: usize, span: Span) -> R<()> {
    let (low, high) = row.args;
    if count >= low && count <= high {
        return Ok(());
    }
    let want = match (low, high) {
        (low, high) if low == high => counted(low),
        (low, usize::MAX) => format!("at least {}", counted(low)),
        (low, high) => format!("{low} to {}", counted(high)),
    };
    let message = format!("`@{}` takes {want}, {count} given", row.name);
    sema.fail(codes::WRONG_ARGUMENT_COUNT, message, span, "this call")
}

/// `1 argument`, `2 arguments`.
pub(crate) fn counted(count: usize) -> String {
    format!("{count} argument{}", if count == 1 { "" } else { "s" })
}
