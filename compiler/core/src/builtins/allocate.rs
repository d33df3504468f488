//! Resources by need: a color for the layout, queues and task ids for a program.
//!
//! Invariants: what has been named by number before is not given; ids are given from the high
//! numbers down, since people count from below, and those that memcpy holds come last. A number that
//! is named later all the same is found where both are used: by placing, with both places.

use std::collections::BTreeMap;

use dflow_ir::mesh::Color;
use dflow_syntax::{Diagnostic, Span, codes};

use super::Call;
use crate::sema::types::TypeId;
use crate::sema::value::Value;
use crate::sema::{Operand, R, Sema};

/// What numbers are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resource {
    /// Of the layout.
    Color,
    /// Of a program.
    InputQueue,
    /// Of a program.
    OutputQueue,
    /// Of a program.
    LocalTask,
}

/// Numbers that are taken, by program (0 is the layout).
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Bit sets.
    named: BTreeMap<(u32, Resource), u64>,
    /// Colors that the layout was given, and where.
    given: Vec<(u8, Span)>,
}

impl Taken {
    fn note(&mut self, owner: u32, resource: Resource, number: u8) {
        *self.named.entry((owner, resource)).or_default() |=
            1_u64.checked_shl(number.into()).unwrap_or(0);
    }

    fn of(&self, owner: u32, resource: Resource) -> u64 {
        self.named.get(&(owner, resource)).copied().unwrap_or(0)
    }
}

/// Remembers a number that was named. A color that the layout was given before is a fault.
pub(super) fn named(
    sema: &mut Sema<'_, '_>,
    resource: Resource,
    number: i128,
    span: Span,
) -> R<()> {
    let Ok(number) = u8::try_from(number) else { return Ok(()) };
    let owner = sema.layout.current_owner;
    sema.layout.taken.note(owner, resource, number);
    if resource != Resource::Color || owner != 0 {
        return Ok(());
    }
    let Some(&(_, first)) = sema.layout.taken.given.iter().find(|(given, _)| *given == number)
    else {
        return Ok(());
    };
    let free = free_colors(sema);
    let message =
        format!("color {number} is named here, and `@allocate_color` has given it already");
    Err(sema.report(
        Diagnostic::new(codes::RESOURCE_EXHAUSTED, message, span)
            .label("second owner")
            .secondary(first, "first owner")
            .help(format!("name colors before any is allocated; free now are {free}")),
    ))
}

fn free_colors(sema: &Sema<'_, '_>) -> String {
    let taken = sema.layout.taken.of(0, Resource::Color);
    let free = (0..Color::COUNT).filter(|n| taken >> n & 1 == 0).map(|n| n.to_string());
    let free: Vec<String> = free.collect();
    if free.is_empty() { "none".to_owned() } else { free.join(", ") }
}

/// Colors of memcpy come last.
pub(super) fn color(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let ty = sema.types.common.color;
    let order = (0..21).rev().chain(21..Color::COUNT as u8);
    let number = allocate(sema, Resource::Color, order, "color", call.span)?;
    sema.layout.taken.given.push((number, call.span));
    Ok(Operand::Const(Value::int(ty, number.into())))
}

pub(super) fn input_queue(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (ty, count) = (sema.types.common.input_queue, sema.target.input_queues.len() as u8);
    in_program(sema, call, Resource::InputQueue, ty, (0..count).rev().collect(), "input queue")
}

pub(super) fn output_queue(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (ty, count) = (sema.types.common.output_queue, sema.target.output_queues.len() as u8);
    in_program(sema, call, Resource::OutputQueue, ty, (0..count).rev().collect(), "output queue")
}

/// Those of memcpy come last.
pub(super) fn local_task_id(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let (first, last) = (sema.target.local_task_first, sema.target.local_task_last);
    let ty = sema.types.common.local_task_id;
    let order = (first..27.min(last + 1)).rev().chain(27..=last).collect();
    in_program(sema, call, Resource::LocalTask, ty, order, "local task id")
}

fn in_program(
    sema: &mut Sema<'_, '_>,
    call: Call<'_>,
    resource: Resource,
    ty: TypeId,
    order: Vec<u8>,
    what: &str,
) -> R<Operand> {
    sema.need_program(call.span)?;
    let number = allocate(sema, resource, order.into_iter(), what, call.span)?;
    Ok(Operand::Const(Value::int(ty, number.into())))
}

fn allocate(
    sema: &mut Sema<'_, '_>,
    resource: Resource,
    mut order: impl Iterator<Item = u8>,
    what: &str,
    span: Span,
) -> R<u8> {
    let owner = sema.layout.current_owner;
    let taken = sema.layout.taken.of(owner, resource);
    let Some(number) = order.find(|&number| taken >> number & 1 == 0) else {
        let message = format!("no {what} is left: all numbers are named or given already");
        return Err(sema.report(
            Diagnostic::new(codes::RESOURCE_EXHAUSTED, message, span)
                .label("one more is asked for"),
        ));
    };
    sema.layout.taken.note(owner, resource, number);
    Ok(number)
}
