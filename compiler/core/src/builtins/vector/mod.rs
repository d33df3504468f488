//! Vector operations: one handler for all rows of the table.
//!
//! The row says which operands an operation takes; nothing here knows an operation by name.
//! Invariant: sources leave in the order of the row's kernel.

pub(super) mod odd;
pub(super) mod operand;
pub(super) mod scalar;
pub(super) mod settings;

use dflow_ir::dsd::op::{DsdOp, OpRow, RowState};
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::dsd::constant;
use super::here;
use super::table::Where;
use crate::sema::address::typed;
use crate::sema::{Operand, R, Sema};
use crate::typed::{ExprKind, Options, Vector};
use operand::Given;

/// A vector operation. Its value, whether it ran to its end, is the operation itself as an
/// expression: a statement evaluates it there, any other use takes it as its one operand. Nobody
/// may copy it; code that needs a value twice pins it first, as for calls of pure builtins.
pub(super) fn call(sema: &mut Sema<'_, '_>, op: DsdOp, args: &[ExprId], span: Span) -> R<Operand> {
    let row = op.row();
    check_place(sema, row, span)?;
    let count = row.shape.arity() + 1;
    if args.len() != count && args.len() != count + 1 {
        let settings = if args.len() > count { " and one struct of settings" } else { "" };
        let message =
            format!("`@{}` takes {count} operands{settings}, {} given", row.name, args.len());
        let forms: Vec<String> = row.forms.iter().map(|form| operand::in_words(*form)).collect();
        return Err(sema.report(
            Diagnostic::new(codes::WRONG_ARGUMENT_COUNT, message, span)
                .label("this call")
                .help(format!("it takes {}, the destination first", forms.join(" or "))),
        ));
    }
    let mut given = Vec::with_capacity(count);
    for &arg in &args[..count] {
        let hint = hint(sema, row);
        let read = operand::read(sema, arg, hint)?;
        operand::check_defined(sema, &read)?;
        given.push(read);
    }
    let vector = vector(sema, op, given, args.get(count).copied(), span)?;
    let expr = typed(ExprKind::Vector(Box::new(vector)), Ty::I8, span);
    Ok(Operand::Scalar { ty: sema.types.common.bool, expr })
}

/// An argument that words come from: a fabric input, or a register.
pub(super) fn fabric_input(
    sema: &mut Sema<'_, '_>,
    arg: ExprId,
    span: Span,
) -> R<crate::typed::Operand> {
    let given = operand::read(sema, arg, None)?;
    operand::check_defined(sema, &given)?;
    match given.what {
        operand::What::Fabric { input: true, dsd } => {
            sema.scalar_of(dsd, span).map(crate::typed::Operand::Fabric)
        }
        operand::What::Dsr(dsr) => Ok(crate::typed::Operand::Dsr(dsr)),
        _ => {
            let message = "a fabric input is needed here, or a register that holds one";
            sema.fail(codes::INVALID_OPERANDS, message, span, "not one of them")
        }
    }
}

/// Operations are code of a PE.
fn check_place(sema: &mut Sema<'_, '_>, row: &'static OpRow, span: Span) -> R<()> {
    let place = here(sema);
    if place != Where::CODE {
        let message = format!(
            "`@{}` cannot stand in {}: its place is {}",
            row.name,
            place.name(),
            Where::CODE.name()
        );
        return sema.fail(codes::BUILTIN_CONTEXT, message, span, "used here");
    }
    if let RowState::NotYet(reason) = row.state {
        let message = format!("`@{}` is not supported yet: {reason}", row.name);
        return sema.fail(codes::NOT_SUPPORTED, message, span, "used here");
    }
    Ok(())
}

/// The type that float literals have here.
fn hint(sema: &Sema<'_, '_>, row: &'static OpRow) -> Option<crate::sema::types::TypeId> {
    match row.source_types().last() {
        Some(Ty::F16) => Some(sema.types.common.f16),
        Some(Ty::Bf16) => Some(sema.types.common.bf16),
        Some(Ty::F32) => Some(sema.types.common.f32),
        Some(Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::F64) | None => None,
    }
}

/// A source that a descriptor's `.zero` clears is written to.
fn check_cleared(sema: &mut Sema<'_, '_>, row: &OpRow, given: &[Given]) -> R<()> {
    let Some(chosen) = given.first().and_then(Given::clears) else { return Ok(()) };
    let vectors: Vec<usize> = (1..given.len()).filter(|&at| given[at].is_vector()).collect();
    let Some(cleared) = row.cleared(chosen, &vectors) else { return Ok(()) };
    match &given[cleared].what {
        operand::What::Memory(dsd) => {
            constant::check(sema, dsd, given[cleared].span, "the source that `.zero` clears")
        }
        _ => Ok(()),
    }
}

fn vector(
    sema: &mut Sema<'_, '_>,
    op: DsdOp,
    given: Vec<Given>,
    settings: Option<ExprId>,
    span: Span,
) -> R<Vector> {
    let row = op.row();
    let form = operand::form_of(sema, row, &given, span)?;
    operand::check_sources(sema, &given[1..], span)?;
    let may_wait = given.iter().any(Given::may_wait);
    let may_have_queue = given.iter().any(Given::may_have_queue);
    let types = row.written_types(form);
    odd::elements(sema, row, &given, types)?;
    odd::registers(sema, &given);
    odd::endless(sema, &given, span);
    let no_index = odd::none_is_indexed(row, &given);
    let receives = given[1..].iter().any(Given::may_receive);
    check_cleared(sema, row, &given)?;
    let mut given = given.into_iter();
    let Some(first) = given.next() else { unreachable!("forms have a destination") };
    let dest = operand::destination(sema, row, first)?;
    let mut sources = Vec::with_capacity(given.len());
    for (given, ty) in given.zip(types) {
        sources.push(operand::source(sema, row, given, ty)?);
    }
    if row.swapped(form) {
        sources.swap(0, 1);
    }
    let options = match settings {
        Some(arg) => {
            let what = format!("`@{}`", row.name);
            let options = settings::read(sema, arg, settings::OF_OPERATION, &what)?;
            let span = sema.expr_span(arg);
            odd::index(sema, no_index && settings::has_index(&options), span);
            odd::control(sema, receives || !settings::has_control(&options), span);
            options
        }
        None => Options::default(),
    };
    if options.asynchronous && !may_wait {
        let message = "an asynchronous operation has a fabric descriptor, a register or a FIFO";
        return Err(sema.report(
            Diagnostic::new(codes::INVALID_DSD, message, span)
                .label("this one has none of them")
                .help(
                    "leave out `.async`: an operation on memory is over before the next statement",
                ),
        ));
    }
    if options.asynchronous && !may_have_queue && options.microthread.is_none() {
        let message = "an asynchronous operation without a queue has no microthread";
        let choice = sema.target.microthread_choice;
        let diagnostic = Diagnostic::new(codes::INVALID_DSD, message, span)
            .label("it has neither a fabric descriptor nor a register")
            .help("leave out `.async`: the operation ends when the FIFO is empty or full");
        let choose = "or choose one with `.ut_id`";
        return Err(sema.report(if choice { diagnostic.help(choose) } else { diagnostic }));
    }
    Ok(Vector { op, dest, sources, options })
}
