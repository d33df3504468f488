//! The layout block: rectangle and tile code.

use dflow_ir::mesh::{Coord, Rect};
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::Call;
use super::args::{in_range, wrong_type};
use crate::elaborate::{self, Code};
use crate::sema::types::Type;
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema};
use crate::session::STEPS_PER_PE;

pub(super) fn set_rectangle(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let result = rectangle(sema, call);
    if let Err(reported) = result {
        sema.layout.rectangle_failed = Some(reported);
    }
    result
}

fn rectangle(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    if let Some(first) = sema.layout.plan.rect_span {
        return Err(sema.report(
            Diagnostic::new(codes::RECTANGLE_DUPLICATE, "the rectangle is set twice", call.span)
                .label("second time")
                .secondary(first, "first time"),
        ));
    }
    let mut sides = [0u16; 2];
    for (side, &arg) in sides.iter_mut().zip(call.args) {
        let (value, span) = sema.arg_value(arg, None)?;
        if !sema.types.is_int(value.ty) {
            return wrong_type(sema, &value, "an integer", span);
        }
        let int = sema.fix_int(&value).unwrap_or(0);
        *side = match u16::try_from(int) {
            Ok(side) if side > 0 => side,
            _ => {
                let (width, height) = sema.target.max_rect;
                let name = sema.target.id.name();
                if int <= 0 {
                    let message = format!("a side of {int} PEs: a rectangle has at least one PE");
                    return sema.fail(codes::INVALID_ARGUMENT, message, span, "this side");
                }
                let message = format!("a side of {int} PEs: {name} holds up to {width} x {height}");
                return sema.fail(codes::RECTANGLE_TOO_LARGE, message, span, "this side");
            }
        };
    }
    let (width, height) = sema.target.max_rect;
    if sides[0] > width || sides[1] > height {
        let message = format!(
            "{} x {} PEs: {} holds up to {width} x {height}",
            sides[0],
            sides[1],
            sema.target.id.name()
        );
        return sema.fail(codes::RECTANGLE_TOO_LARGE, message, call.span, "this rectangle");
    }
    let plan = &mut sema.layout.plan;
    plan.rect = Rect { x: 0, y: 0, width: sides[0], height: sides[1] };
    plan.rect_span = Some(call.span);
    plan.tiles = vec![None; plan.rect.area()];
    sema.step_limit += sema.layout.plan.rect.area() as u64 * STEPS_PER_PE;
    Ok(sema.void_operand())
}

pub(super) fn get_rectangle(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    if sema.layout.plan.rect_span.is_none() {
        if let Some(reported) = sema.layout.rectangle_failed {
            return Err(reported);
        }
        let message = "the rectangle is not set yet";
        return sema.fail(codes::RECTANGLE_MISSING, message, call.span, "asked for here");
    }
    let rect = sema.layout.plan.rect;
    let sizes = |sema: &mut Sema<'_, '_>, width: u16, height: u16| {
        let u16_ty = sema.types.common.u16;
        let (w, h) = (sema.symbol("width"), sema.symbol("height"));
        let ty = sema.types.anonymous(vec![(w, u16_ty), (h, u16_ty)], false);
        let fields =
            vec![Value::int(u16_ty, i128::from(width)), Value::int(u16_ty, i128::from(height))];
        Value::new(ty, Data::Fields(std::rc::Rc::new(fields)))
    };
    let own = sizes(sema, rect.width, rect.height);
    let fabric = sizes(sema, rect.width, rect.height);
    let offsets = sizes(sema, rect.x, rect.y);
    let (Data::Fields(own_fields), u16_ty) = (&own.data, sema.types.common.u16) else {
        unreachable!("made as a struct")
    };
    let mut fields = own_fields.as_ref().clone();
    let names = ["width", "height", "fabric", "offsets"].map(|name| sema.symbol(name));
    let types = [u16_ty, u16_ty, fabric.ty, offsets.ty];
    let ty = sema.types.anonymous(names.into_iter().zip(types).collect(), false);
    fields.push(fabric);
    fields.push(offsets);
    Ok(Operand::Const(Value::new(ty, Data::Fields(std::rc::Rc::new(fields)))))
}

/// A PE inside the rectangle.
pub(super) fn coordinates(sema: &mut Sema<'_, '_>, x: ExprId, y: ExprId) -> R<Coord> {
    let (x_value, x_span) = sema.arg_value(x, None)?;
    let (y_value, y_span) = sema.arg_value(y, None)?;
    let (first, last) = (i128::from(i32::MIN), i128::from(i32::MAX));
    let x = in_range(sema, &x_value, first, last, "a coordinate", x_span)?;
    let y = in_range(sema, &y_value, first, last, "a coordinate", y_span)?;
    let rect = sema.layout.plan.rect;
    let Some(set) = sema.layout.plan.rect_span else {
        if let Some(reported) = sema.layout.rectangle_failed {
            return Err(reported);
        }
        return Err(sema.report(
            Diagnostic::new(codes::RECTANGLE_MISSING, "no rectangle has been set", x_span)
                .label("a PE is named here")
                .help("begin the layout block with `@set_rectangle(width, height);`"),
        ));
    };
    if x < 0 || y < 0 || x >= i128::from(rect.width) || y >= i128::from(rect.height) {
        let message = format!(
            "PE ({x}, {y}) is outside the rectangle of {} x {} PEs",
            rect.width, rect.height
        );
        let diagnostic = Diagnostic::new(codes::OUTSIDE_RECTANGLE, message, x_span.to(y_span))
            .label("this PE")
            .secondary(set, "the rectangle is set here");
        let (width, height) = (i128::from(rect.width), i128::from(rect.height));
        let swapped = (0..width).contains(&y) && (0..height).contains(&x);
        return Err(sema.report(match swapped {
            true => diagnostic.help("x, the column, comes first, then y, the row"),
            false => diagnostic.help(format!(
                "columns are 0 to {}, rows 0 to {}",
                rect.width - 1,
                rect.height - 1
            )),
        }));
    }
    Ok(Coord { x: x as u16, y: y as u16 })
}

pub(super) fn set_tile_code(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let at = coordinates(sema, call.args[0], call.args[1])?;
    if let Some(first) = elaborate::tile_span(sema, at) {
        let message = format!("PE ({}, {}) is given code twice", at.x, at.y);
        return Err(sema.report(match first == call.span {
            true => Diagnostic::new(codes::TILE_DUPLICATE, message, call.span)
                .label("this runs more than once for the same PE")
                .help("look at the coordinates: does each round of the loops name another PE?"),
            false => Diagnostic::new(codes::TILE_DUPLICATE, message, call.span)
                .label("second code")
                .secondary(first, "first code")
                .help("give each PE its code once: leave this PE out of one of the two"),
        }));
    }
    let code = code_of(sema, call)?;
    let params = match call.args.get(3) {
        Some(&arg) => {
            let (value, span) = sema.arg_value(arg, None)?;
            Some(struct_value(sema, value, span)?)
        }
        None => None,
    };
    let span = call.args.get(3).map_or(call.span, |&arg| sema.expr_span(arg));
    elaborate::place_tile(sema, at, code, params, span, call.span)?;
    Ok(sema.void_operand())
}

fn struct_value(sema: &mut Sema<'_, '_>, value: Value, span: Span) -> R<Value> {
    match sema.types.get(value.ty) {
        Type::Struct(info) if !info.tuple || info.fields.is_empty() => Ok(value),
        _ => wrong_type(sema, &value, "a struct of params", span),
    }
}

/// The file or tile block that a call names; neither means the file itself.
fn code_of(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Code> {
    let module = sema.frame().module;
    let source = sema.modules[module.0 as usize].source;
    let Some(&arg) = call.args.get(2) else {
        return Ok(Code { source, scope: 0, parent: None });
    };
    let (value, span) = sema.arg_value(arg, None)?;
    match &value.data {
        Data::Tile(home, scope) => {
            let source = sema.modules[home.0 as usize].source;
            Ok(Code { source, scope: *scope, parent: Some(*home) })
        }
        Data::Str(path) => {
            let path = String::from_utf8_lossy(path).into_owned();
            let Sema { files, cx, .. } = sema;
            let source = files.import(cx, source, &path, span)?;
            Ok(Code { source, scope: 0, parent: None })
        }
        _ => wrong_type(sema, &value, "a tile's name or a path", span),
    }
}
