//! `@get_dsd` of vectors that come from the fabric or go there.

use dflow_ir::dsd::{Dsd, FabricDsd};
use dflow_ir::mesh::Color;
use dflow_ir::scalar::BinaryOp;
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::memory::required;
use super::{computed, known, word};
use crate::builtins::args::Options;
use crate::builtins::vector::settings::{self, choice};
use crate::builtins::{old, queue};
use crate::dialect::QueueBinding;
use crate::sema::address::typed;
use crate::sema::value::DsdValue;
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind};

const INPUT: &[&str] =
    &["extent", "input_queue", "fabric_color", "priority", "simd_mode", "control_transform"];
const OUTPUT: &[&str] = &[
    "extent",
    "output_queue",
    "fabric_color",
    "control",
    "wavelet_index_offset",
    "advance_switch",
    "priority",
    "simd_mode",
    "zero",
    "control_transform",
];
/// Modes of both generations and all releases.
pub(super) const MODES: &[&str] = &["simd_off", "simd_32", "simd_64", "simd_32_or_64", "simd_max"];

/// A `fabin_dsd` or `fabout_dsd`; its extent may be a run-time one.
pub(super) fn make(sema: &mut Sema<'_, '_>, input: bool, arg: ExprId, span: Span) -> R<Operand> {
    let (what, allowed) = if input { ("`fabin_dsd`", INPUT) } else { ("`fabout_dsd`", OUTPUT) };
    let options = Options::read(sema, arg, allowed, what)?;
    if sema.program.is_none() {
        let message = "a layout has no queues: make this descriptor in the code of a PE";
        return sema.fail(codes::BUILTIN_CONTEXT, message, span, "made here");
    }
    let common = sema.types.common;
    let ty = if input { common.fabin_dsd } else { common.fabout_dsd };
    let (extent, extent_span) = required(sema, &options, "extent", what)?;
    let extent = sema.coerce(extent, common.u16, extent_span)?;
    let late = late_channel(sema, &options, input)?;
    let (queue, color) = match &late {
        Some(_) => (0, None),
        None => {
            let queue = queue_of(sema, &options, input, what)?;
            (queue, color_of(sema, &options, input, queue)?)
        }
    };
    let desc = FabricDsd {
        input,
        queue,
        color,
        control: options.flag(sema, "control")?,
        indexed: options.flag(sema, "wavelet_index_offset")?,
        advance_switch: options.flag(sema, "advance_switch")?,
        packed: packed(sema, &options, span)?,
        transform: options.flag(sema, "control_transform")?,
        priority: settings::priority(sema, &options)?,
        zero: zero(sema, &options)?,
    };
    if let (Operand::Const(extent), None) = (&extent, &late) {
        return Ok(known(ty, DsdValue::Fabric { desc, extent: extent.clone() }));
    }
    let extent = word(sema, extent, extent_span)?;
    let made = computed(ty, ExprKind::Fabric { desc, extent }, span);
    let Some(base) = late else { return Ok(made) };
    let dsd = sema.scalar_of(made, span)?;
    Ok(computed(ty, ExprKind::SetBase { dsd, base, constant: false }, span))
}

/// Queue and color as a descriptor holds them ([`dflow_ir::dsd::Dsd`]), if one of them is known only
/// at run time and counts: where queues are bound, theirs is the color.
fn late_channel(sema: &mut Sema<'_, '_>, options: &Options, input: bool) -> R<Option<Expr>> {
    let common = sema.types.common;
    let (name, want) = match input {
        true => ("input_queue", common.input_queue),
        false => ("output_queue", common.output_queue),
    };
    let by_queue = input || sema.target.output_queue_bound;
    let (queue, color) = (options.get(name), options.get("fabric_color"));
    let is_late =
        |given: &Option<(Operand, Span)>| matches!(given, Some((Operand::Scalar { .. }, _)));
    if !is_late(&queue) && (by_queue || !is_late(&color)) {
        return Ok(None);
    }
    let Some((queue, span)) = queue else { return Ok(None) };
    let queue = sema.coerce(queue, want, span)?;
    let queue = sema.scalar_of(queue, span)?;
    let color = match color {
        _ if by_queue => typed(ExprKind::Const(u64::from(Dsd::COLOR_OF_QUEUE)), Ty::I16, span),
        Some((operand, span)) if is_late(&Some((operand.clone(), span))) => {
            let operand = sema.coerce(operand, common.color, span)?;
            sema.scalar_of(operand, span)?
        }
        Some((operand, span)) => {
            let value = sema.need_const(operand, span)?;
            let color = queue::color_value(sema, &value, span)?;
            typed(ExprKind::Const(color.index().into()), Ty::I16, span)
        }
        None => {
            let message = "a queue that is known only at run time needs a `.fabric_color` here";
            return sema.fail(codes::INVALID_DSD, message, span, "this queue");
        }
    };
    let eight = typed(ExprKind::Const(8), Ty::I16, span);
    let color = typed(ExprKind::Binary(BinaryOp::Shl, color, eight), Ty::I16, span);
    Ok(Some(typed(ExprKind::Binary(BinaryOp::Or, queue, color), Ty::I16, span)))
}

fn queue_of(sema: &mut Sema<'_, '_>, options: &Options, input: bool, what: &str) -> R<u8> {
    let common = sema.types.common;
    let (name, want, other) = if input {
        ("input_queue", common.input_queue, common.output_queue)
    } else {
        ("output_queue", common.output_queue, common.input_queue)
    };
    let colored = options.get("fabric_color").is_some();
    if options.get(name).is_none() && colored && !sema.target.output_queue_bound {
        return default_queue(sema, options, input, name);
    }
    let (operand, span) = required(sema, options, name, what)?;
    let value = sema.need_const(operand, span)?;
    if value.ty == other {
        let message = format!("`.{name}` of {what} is a queue of the other direction");
        return Err(sema.report(
            Diagnostic::new(codes::WRONG_QUEUE, message, span).label("this queue").help(format!(
                "write `@get_{name}(n)`: {} words through it",
                if input { "the PE receives" } else { "the PE sends" }
            )),
        ));
    }
    match sema.fix_int(&value) {
        Some(queue) if value.ty == want => Ok(queue as u8),
        _ => old::queue_number(sema, &value, input, span),
    }
}

/// The queue of a descriptor that names a color only, as older programs do: the highest that no
/// other color has. Outputs share queues when there are more colors than queues.
fn default_queue(sema: &mut Sema<'_, '_>, options: &Options, input: bool, name: &str) -> R<u8> {
    let Some((value, span)) = options.value(sema, "fabric_color")? else {
        return sema.undefined(options.span);
    };
    let color = queue::color_value(sema, &value, span)?;
    let found = if input {
        // Without a free one, the queue that old compilers chose; each operation binds it.
        let by_operation = sema.cx.dialect.queue_binding == QueueBinding::ByOperation;
        queue::free_input(sema, color).or(by_operation.then_some(0))
    } else {
        sema.need_program(options.span)?;
        let colors = &mut sema.program_mut().without_queue;
        let at = colors.iter().position(|&known| known == color).unwrap_or(colors.len());
        if at == colors.len() {
            colors.push(color);
        }
        // Queue 0 is the host's.
        let usable = sema.target.output_queues.len().saturating_sub(1).max(1);
        u8::try_from(usable - at % usable).ok()
    };
    let Some(queue) = found else {
        let message = format!(
            "every input queue has another color: no queue is left for color {}",
            color.index()
        );
        return sema.fail(codes::QUEUE_CLASH, message, options.span, "names no queue");
    };
    sema.report(
        Diagnostic::new(codes::DEPRECATED, "this descriptor names no queue", options.span)
            .label(format!("gets queue {queue}"))
            .help(format!("name one: `.{name} = @get_{name}({queue})`")),
    );
    Ok(queue)
}

/// The color of a descriptor that sends where queues are not bound. Elsewhere the queue decides,
/// when an operation begins: it may be bound after the descriptor is made, or never if nothing
/// uses it. A color that is named there binds a queue that nothing else binds.
fn color_of(
    sema: &mut Sema<'_, '_>,
    options: &Options,
    input: bool,
    queue: u8,
) -> R<Option<Color>> {
    let by_queue = input || sema.target.output_queue_bound;
    match options.get("fabric_color") {
        Some((Operand::Scalar { ty, .. }, _)) if by_queue && ty == sema.types.common.color => {
            Ok(None)
        }
        Some((operand, span)) => {
            let value = sema.need_const(operand, span)?;
            let color = queue::color_value(sema, &value, span)?;
            let named = !by_queue || queue::bind_implicitly(sema, input, queue, color, span)?;
            Ok(named.then_some(color))
        }
        None if by_queue => Ok(None),
        None => queue::output_color(sema, queue, options.span).map(Some),
    }
}

/// Whether two elements of 16 bits may share a wavelet: as `.simd_mode` says, else as the programs
/// of the chosen SDK release expect.
fn packed(sema: &mut Sema<'_, '_>, options: &Options, span: Span) -> R<bool> {
    let Some((value, mode_span)) = options.value(sema, "simd_mode")? else {
        return Ok(sema.packs_by_default(span));
    };
    Ok(choice(sema, &value, mode_span, MODES, "`.simd_mode`")? != "simd_off")
}

/// Which vector source is cleared at the end.
fn zero(sema: &mut Sema<'_, '_>, options: &Options) -> R<Option<u8>> {
    let Some((value, span)) = options.value(sema, "zero")? else { return Ok(None) };
    let sources = ["first_source", "second_source"];
    let chosen = choice(sema, &value, span, &sources, "`.zero`")?;
    Ok(Some(u8::from(chosen == "second_source")))
}
