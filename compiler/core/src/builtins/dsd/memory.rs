//! `@get_dsd` of vectors in memory.

use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::{Distance, computed, distance, element_bytes, known, word};
use crate::builtins::args::Options;
use crate::sema::address::Address;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, DsdValue, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::ExprKind;

const FIELDS: &[&str] =
    &["tensor_access", "base_address", "extent", "stride", "offset", "wavelet_index_offset"];
const WALK: &[&str] = &["base_address", "offset", "stride", "extent"];

/// What the options say about the walk over memory.
struct Walk {
    /// Of a tensor access, or of the options themselves.
    fields: Options,
    indexed: bool,
}

fn walk(sema: &mut Sema<'_, '_>, arg: ExprId, what: &str) -> R<Walk> {
    let options = Options::read(sema, arg, FIELDS, what)?;
    let indexed = options.flag(sema, "wavelet_index_offset")?;
    let Some((value, span)) = options.value(sema, "tensor_access")? else {
        return Ok(Walk { fields: options, indexed });
    };
    let given = options.fields().find(|(name, _, _)| WALK.contains(name));
    if let Some((name, span)) = given.map(|(name, _, span)| (name.to_owned(), span)) {
        let message = format!("`.{name}` is given beside `.tensor_access`, which says it too");
        return sema.fail(codes::INVALID_DSD, message, span, "given twice");
    }
    let fields = Options::of_value(sema, &value, span, WALK, "a tensor access")?;
    Ok(Walk { fields, indexed })
}

/// A `mem1d_dsd`: a value if all parts are known.
pub(super) fn mem1d(sema: &mut Sema<'_, '_>, arg: ExprId, span: Span) -> R<Operand> {
    let walk = walk(sema, arg, "`mem1d_dsd`")?;
    let common = sema.types.common;
    let (extent, extent_span) = required(sema, &walk.fields, "extent", "`mem1d_dsd`")?;
    let extent = single(sema, extent, extent_span)?;
    let extent = sema.coerce(extent, common.u16, extent_span)?;
    let stride = match walk.fields.get("stride") {
        Some((stride, span)) => {
            let stride = single(sema, stride, span)?;
            let stride = sema.coerce(stride, common.i16, span)?;
            check_stride(sema, &stride, span);
            stride
        }
        None => Operand::Const(Value::int(common.i16, 1)),
    };
    let Base { address, bytes, constant } = base(sema, &walk.fields, "`mem1d_dsd`")?;
    let address = match offset(sema, &walk.fields, bytes)? {
        Some(Distance::Known(offset)) => address.plus(offset),
        Some(Distance::Computed(offset)) => {
            let base = sema.address_expr(&address, span)?;
            Address { index: Some(offset), ..Address::of_expr(base) }
        }
        None => address,
    };
    let indexed = walk.indexed;
    if let (Some(base), Operand::Const(extent), Operand::Const(stride)) =
        (address.known(), &extent, &stride)
    {
        let (extent, stride) = (extent.clone(), stride.clone());
        let value = DsdValue::Mem1d { base, extent, stride, indexed, constant };
        return Ok(known(common.mem1d_dsd, value));
    }
    let base = sema.address_expr(&address, span)?;
    let extent = word(sema, extent, span)?;
    let stride = word(sema, stride, span)?;
    let kind = ExprKind::Mem1d { base, extent, stride, indexed, constant };
    Ok(computed(common.mem1d_dsd, kind, span))
}

/// Warns of a known stride that the SDK's 8 bits do not hold.
pub(super) fn check_stride(sema: &mut Sema<'_, '_>, stride: &Operand, span: Span) {
    let Operand::Const(Value { data: Data::Int(stride), .. }) = stride else { return };
    if i8::try_from(*stride).is_err() {
        let message = format!("a stride of {stride} elements: the SDK's have 8 bits");
        sema.report(
            Diagnostic::new(codes::WIDE_STRIDE, message, span)
                .label("-128 to 127 there, 16 bits here"),
        );
    }
}

/// A `circbuf_dsd`: a vector that starts again at its base after `.wraparound` elements, by default
/// those of the array.
pub(super) fn ring(sema: &mut Sema<'_, '_>, arg: ExprId, span: Span) -> R<Operand> {
    let what = "`circbuf_dsd`";
    let fields = Options::read(sema, arg, &["base_address", "extent", "wraparound"], what)?;
    let common = sema.types.common;
    let (extent, extent_span) = required(sema, &fields, "extent", what)?;
    let extent = sema.coerce(extent, common.u16, extent_span)?;
    let Base { address, constant, .. } = base(sema, &fields, what)?;
    let size = array_size(sema, &fields)?;
    let wrap = match (fields.get("wraparound"), size) {
        (Some((wrap, span)), _) => sema.coerce(wrap, common.u16, span)?,
        (None, Some(size)) => Operand::Const(Value::int(common.u16, i128::from(size))),
        (None, None) => {
            let message = "`circbuf_dsd` over a pointer to elements needs `.wraparound`";
            return sema.fail(codes::INVALID_DSD, message, fields.span, "it is not given here");
        }
    };
    if let Operand::Const(value) = &wrap {
        let known = sema.fix_int(value).unwrap_or(0);
        if known == 0 || size.is_some_and(|size| known > i128::from(size)) {
            let most = size.map_or(65_535, i128::from);
            let message = format!("`.wraparound` is {known}, and can be 1 to {most}");
            return sema.fail(codes::VALUE_OUT_OF_RANGE, message, fields.span, "given here");
        }
    }
    let ty = common.circbuf_dsd;
    if let (Some(base), Operand::Const(extent), Operand::Const(wrap)) =
        (address.known(), &extent, &wrap)
    {
        let (extent, wrap) = (extent.clone(), wrap.clone());
        return Ok(known(ty, DsdValue::Ring { base, extent, wrap, constant }));
    }
    let base = sema.address_expr(&address, span)?;
    let (extent, wrap) = (word(sema, extent, span)?, word(sema, wrap, span)?);
    Ok(computed(ty, ExprKind::Ring { base, extent, wrap, constant }, span))
}

/// Elements of the array that the base points to.
fn array_size(sema: &mut Sema<'_, '_>, fields: &Options) -> R<Option<u64>> {
    let (operand, _) = required(sema, fields, "base_address", "`circbuf_dsd`")?;
    let ty = sema.operand_type(&operand);
    let Type::Pointer { pointee, .. } = *sema.types.get(ty) else { return Ok(None) };
    Ok(match sema.types.get(pointee) {
        Type::Array { .. } => Some(sema.types.element_count(pointee)),
        _ => None,
    })
}

/// A `mem4d_dsd`: its shape is known, its base and offset may be run-time ones.
pub(super) fn mem4d(sema: &mut Sema<'_, '_>, arg: ExprId, span: Span) -> R<Operand> {
    let walk = walk(sema, arg, "`mem4d_dsd`")?;
    let dims = shape(sema, &walk, span)?;
    let Base { address, bytes, constant } = base(sema, &walk.fields, "`mem4d_dsd`")?;
    let moved = offset(sema, &walk.fields, bytes)?;
    let address = match moved {
        Some(Distance::Known(offset)) => address.plus(offset),
        Some(Distance::Computed(_)) | None => address,
    };
    let (ty, indexed) = (sema.types.common.mem4d_dsd, walk.indexed);
    let value = match address.known() {
        Some(base) => known(ty, DsdValue::Mem4d { base, dims, indexed, constant }),
        None => {
            let base = sema.address_expr(&address, span)?;
            let shape = sema.shape(&dims);
            computed(ty, ExprKind::Mem4d { base, shape, indexed, constant }, span)
        }
    };
    match moved {
        Some(Distance::Computed(delta)) => {
            let dsd = sema.scalar_of(value, span)?;
            Ok(computed(ty, ExprKind::MoveBase { dsd, delta }, span))
        }
        Some(Distance::Known(_)) | None => Ok(value),
    }
}

/// Extents and plain strides, outermost first.
fn shape(sema: &mut Sema<'_, '_>, walk: &Walk, span: Span) -> R<Vec<(u16, i16)>> {
    let common = sema.types.common;
    let (extents, extent_span) = required(sema, &walk.fields, "extent", "`mem4d_dsd`")?;
    let extents = ints(sema, extents, common.u16, extent_span)?;
    if extents.is_empty() || extents.len() > 4 || extents.contains(&0) {
        let message = "a `mem4d_dsd` has 1 to 4 dimensions, each with at least one element";
        return sema.fail(codes::INVALID_DSD, message, extent_span, "these extents");
    }
    let strides = match walk.fields.get("stride") {
        Some((strides, span)) => ints(sema, strides, common.i16, span)?,
        None => vec![1; extents.len()],
    };
    if strides.len() != extents.len() {
        let message = format!("{} extents and {} strides", extents.len(), strides.len());
        return sema.fail(codes::INVALID_DSD, message, span, "one stride per extent is needed");
    }
    let strides = plain_strides(&extents, &strides);
    let mut dims = Vec::with_capacity(extents.len());
    for (&extent, &stride) in extents.iter().zip(&strides) {
        let (Ok(extent), Ok(stride)) = (u16::try_from(extent), i16::try_from(stride)) else {
            let message = format!("a stride of {stride} elements has more than 16 bits");
            return sema.fail(codes::INVALID_DSD, message, span, "this descriptor");
        };
        dims.push((extent, stride));
    }
    Ok(dims)
}

/// Strides stand innermost first, each as the step that the hardware makes when
/// that dimension advances and all inner ones start again. The plain distance is that step plus
/// what the inner dimensions had covered.
fn plain_strides(extents: &[i128], deltas: &[i128]) -> Vec<i128> {
    let mut covered = 0;
    let mut plain = Vec::with_capacity(deltas.len());
    for (&delta, &extent) in deltas.iter().zip(extents.iter().rev()) {
        let stride = delta + covered;
        covered += (extent - 1) * stride;
        plain.push(stride);
    }
    plain.reverse();
    plain
}

/// An option that must be there.
pub(super) fn required(
    sema: &mut Sema<'_, '_>,
    options: &Options,
    name: &str,
    what: &str,
) -> R<(Operand, Span)> {
    match options.get(name) {
        Some(found) => Ok(found),
        None => {
            let message = format!("{what} needs `.{name}`");
            let diagnostic = Diagnostic::new(codes::INVALID_DSD, message, options.span)
                .label("it is not given here");
            Err(sema.report(match name {
                "extent" => diagnostic.help("write `.extent = n`, the number of elements"),
                "base_address" => diagnostic.help(
                    "write `.tensor_access = |i|{n} -> array[i]`, or `.base_address = &array`",
                ),
                "input_queue" => diagnostic.help("write `.input_queue = @get_input_queue(n)`"),
                "output_queue" => diagnostic.help("write `.output_queue = @get_output_queue(n)`"),
                _ => diagnostic,
            }))
        }
    }
}

/// The elements of a tuple or array; a number counts as one element.
fn list(sema: &mut Sema<'_, '_>, operand: Operand, span: Span) -> R<Vec<Operand>> {
    let ty = sema.operand_type(&operand);
    let count = match sema.types.get(ty) {
        Type::Struct(info) if info.tuple => info.fields.len(),
        Type::Array { .. } => sema.types.element_count(ty) as usize,
        _ => return Ok(vec![operand]),
    };
    let value = sema.need_const(operand, span)?;
    let mut elements = Vec::with_capacity(count.min(4));
    for index in 0..count {
        match value.element(index) {
            Some(element) => elements.push(Operand::Const(element)),
            None => return sema.undefined(span),
        }
    }
    Ok(elements)
}

/// Known integers of a type.
fn ints(sema: &mut Sema<'_, '_>, operand: Operand, ty: TypeId, span: Span) -> R<Vec<i128>> {
    let elements = list(sema, operand, span)?;
    let mut read = Vec::with_capacity(elements.len());
    for element in elements {
        let element = sema.coerce(element, ty, span)?;
        let element = sema.need_const(element, span)?;
        match sema.fix_int(&element) {
            Some(int) => read.push(int),
            None => return sema.undefined(span),
        }
    }
    Ok(read)
}

/// The number of the only dimension.
fn single(sema: &mut Sema<'_, '_>, operand: Operand, span: Span) -> R<Operand> {
    let mut elements = list(sema, operand, span)?;
    match elements.pop() {
        Some(element) if elements.is_empty() => Ok(element),
        last => {
            let count = elements.len() + usize::from(last.is_some());
            Err(sema.report(
                Diagnostic::new(
                    codes::INVALID_DSD,
                    format!("a `mem1d_dsd` has one dimension, {count} are given"),
                    span,
                )
                .label("one number is needed here")
                .help("use `mem4d_dsd` for up to four dimensions"),
            ))
        }
    }
}

/// Where a vector starts.
struct Base {
    address: Address,
    /// Of its elements.
    bytes: i64,
    /// Nobody writes there.
    constant: bool,
}

fn base(sema: &mut Sema<'_, '_>, fields: &Options, what: &str) -> R<Base> {
    let (operand, span) = required(sema, fields, "base_address", what)?;
    let ty = sema.operand_type(&operand);
    match *sema.types.get(ty) {
        Type::Pointer { pointee, constant, .. } => {
            let bytes = pointee_bytes(sema, pointee, span)?;
            Ok(Base { address: sema.pointer_address(operand, span)?, bytes, constant })
        }
        _ => {
            let message =
                format!("the base of a vector is a pointer, this is `{}`", sema.type_name(ty));
            let mut diagnostic =
                Diagnostic::new(codes::INVALID_DSD, message, span).label("no pointer");
            if let Type::Array { .. } = sema.types.get(ty) {
                diagnostic = diagnostic.help("write `&` before the array");
            }
            Err(sema.report(diagnostic))
        }
    }
}

/// Bytes of the elements that a pointer points to: of an array's elements, or of the pointee.
pub(super) fn pointee_bytes(sema: &mut Sema<'_, '_>, pointee: TypeId, span: Span) -> R<i64> {
    let elem = match *sema.types.get(pointee) {
        Type::Array { elem, .. } => elem,
        _ => pointee,
    };
    element_bytes(sema, elem, span)
}

fn offset(sema: &mut Sema<'_, '_>, fields: &Options, bytes: i64) -> R<Option<Distance>> {
    let Some((offset, span)) = fields.get("offset") else { return Ok(None) };
    if let Operand::Const(Value { data: Data::Undef, .. }) = &offset {
        return sema.undefined(span);
    }
    let ty = sema.types.common.i16;
    let offset = sema.coerce(offset, ty, span)?;
    distance(sema, offset, bytes, span).map(Some)
}

#[cfg(test)]
mod tests {
    use super::plain_strides;

    #[test]
    fn delta_strides_become_plain_ones() {
        // All ones: the vector is contiguous.
        assert_eq!(plain_strides(&[3, 4], &[1, 1]), vec![4, 1]);
        assert_eq!(plain_strides(&[2, 3, 4], &[1, 1, 1]), vec![12, 4, 1]);
        // Rows of 10, columns 0 to 3: from the last element of a row 7 more to the next.
        assert_eq!(plain_strides(&[5, 4], &[1, 7]), vec![10, 1]);
    }
}
