//! Filters of colors: `.filter` of a configuration, `@get_filter_id`, `@dfilt`.

use dflow_ir::dsd::op::DsdOp;
use dflow_ir::inst::OnControl;
use dflow_ir::mesh::Filter;
use dflow_ir::ty::Ty;
use dflow_syntax::{Diagnostic, Span, codes};

use super::args::Options;
use super::queue::color_value;
use super::vector::settings;
use super::{Call, vector};
use crate::sema::address::typed;
use crate::sema::value::Value;
use crate::sema::{Operand, R, Sema};
use crate::typed::{self, ExprKind, Vector};

const ALL: &[&str] = &[
    "kind",
    "count_data",
    "count_control",
    "init_counter",
    "limit1",
    "limit2",
    "max_counter",
    "filter_control",
    "min_idx",
    "max_idx",
    "fast_mode",
];

const KINDS: &[&str] = &["counter", "sparse_counter", "range"];

/// What filters of a kind look at. `.fast_mode` makes no difference here.
fn fields_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "range" => &["kind", "min_idx", "max_idx", "fast_mode"],
        "counter" => &[
            "kind",
            "count_data",
            "count_control",
            "init_counter",
            "limit1",
            "max_counter",
            "filter_control",
            "fast_mode",
        ],
        _sparse => &[
            "kind",
            "count_data",
            "count_control",
            "init_counter",
            "limit1",
            "limit2",
            "max_counter",
            "filter_control",
            "fast_mode",
        ],
    }
}

/// Reads a filter.
pub(super) fn filter_of(sema: &mut Sema<'_, '_>, value: &Value, span: Span) -> R<Filter> {
    let options = Options::of_value(sema, value, span, ALL, "a filter")?;
    let Some((kind, kind_span)) = options.value(sema, "kind")? else {
        return Err(sema.report(
            Diagnostic::new(codes::MISSING_FIELD, "a filter needs `.kind`", span)
                .label("not given here")
                .help("write `.kind = .{ .range = true }`, or `counter`, or `sparse_counter`"),
        ));
    };
    let kind = settings::choice(sema, &kind, kind_span, KINDS, "a filter's `.kind`")?;
    let known = fields_of(kind);
    let strange = options.fields().find(|(name, _, _)| !known.contains(name));
    if let Some((name, _, span)) = strange {
        let message = format!("a filter of kind `{kind}` has no option `.{name}`");
        let listed: Vec<String> = known[1..].iter().map(|name| format!("`.{name}`")).collect();
        return Err(sema.report(
            Diagnostic::new(codes::UNKNOWN_OPTION, message, span)
                .label("given here")
                .help(format!("it has {}", listed.join(", "))),
        ));
    }
    options.flag(sema, "fast_mode")?;
    let number = |sema: &mut Sema<'_, '_>, name| -> R<Option<u16>> {
        Ok(options.int(sema, name, 0, 0xffff)?.map(|int| int as u16))
    };
    if kind == "range" {
        let min = number(sema, "min_idx")?.unwrap_or(0);
        let max = number(sema, "max_idx")?.unwrap_or(0);
        if min > max {
            let message = "a range filter whose `.min_idx` is above its `.max_idx` lets nothing by";
            idle(sema, message, "no index is in this range", span);
        }
        return Ok(Filter::Range { min, max });
    }
    let data = options.flag(sema, "count_data")?;
    let control = options.flag(sema, "count_control")?;
    if !data && !control {
        let message = "a filter that counts neither data nor control wavelets stays as it begins";
        idle(sema, message, "write `.count_data = true`, or `.count_control = true`", span);
    }
    let filter_control = options.flag(sema, "filter_control")?;
    let initial = number(sema, "init_counter")?.unwrap_or(0);
    let limit = number(sema, "limit1")?.unwrap_or(0);
    let max = number(sema, "max_counter")?.unwrap_or(0);
    if kind == "counter" {
        return Ok(Filter::Counter { data, control, initial, limit, max, filter_control });
    }
    let limit2 = number(sema, "limit2")?;
    Ok(Filter::Sparse { data, control, initial, limit, limit2, max, filter_control })
}

/// Warns of a filter that does the same with all words.
fn idle(sema: &mut Sema<'_, '_>, message: &str, label: &str, span: Span) {
    sema.report(Diagnostic::new(codes::FILTER_IDLE, message, span).label(label));
}

/// `@get_filter_id(color)`: placing sees to it that the color has a filter there.
pub(super) fn get_filter_id(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    sema.need_program(call.span)?;
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let color = color_value(sema, &value, span)?;
    sema.program_mut().typed.filter_uses.push((color, call.span));
    let id = Value::int(sema.types.common.u16, color.index().into());
    Ok(Operand::Const(id))
}

/// `@dfilt(input, settings)`: takes data off a queue until so many control wavelets have come.
pub(super) fn dfilt(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let span = sema.expr_span(call.args[0]);
    let Some(op) = DsdOp::by_name("mov32") else { unreachable!("a row of the table") };
    let source = vector::fabric_input(sema, call.args[0], span)?;
    let allowed = &["async", "activate", "unblock", "priority", "ut_id"];
    let mut options = settings::read(sema, call.args[1], allowed, "`@dfilt`")?;
    if !options.asynchronous {
        let span = sema.expr_span(call.args[1]);
        return Err(sema.report(
            Diagnostic::new(codes::INVALID_ARGUMENT, "`@dfilt` is always asynchronous", span)
                .label("without `.async`")
                .help("write `.{ .async = true }`"),
        ));
    }
    options.on_control = OnControl::Count;
    // Nothing is kept of the words: the destination is never written.
    let nowhere = typed(ExprKind::Const(0), Ty::I16, call.span);
    let dest = typed::Operand::Pointer(nowhere);
    let vector = Vector { op, dest, sources: vec![source], options };
    let expr = typed(ExprKind::Vector(Box::new(vector)), Ty::I8, call.span);
    Ok(Operand::Scalar { ty: sema.types.common.bool, expr })
}
