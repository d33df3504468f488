//! Elements of arrays, pointers, slices and tuples.

use dflow_ir::inst::Bounded;
use dflow_ir::program::Profile;
use dflow_ir::scalar::{BinaryOp as IrBinary, Convert};
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::address::{Address, typed};
use super::place::Place;
use super::types::{Type, TypeId};
use super::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind};

/// How many elements there are where an index points.
enum Len {
    /// Nobody knows.
    None,
    Known(u64),
    /// A run-time value of the pointer type.
    Held(Expr),
}

impl Sema<'_, '_> {
    /// `base[indices]`.
    pub(crate) fn index_place(&mut self, base: Place, indices: &[ExprId], span: Span) -> R<Place> {
        let ty = self.place_type(&base);
        match self.types.shared(ty).as_ref() {
            Type::Array { dims, elem } => {
                if dims.len() != indices.len() {
                    let (given, needed) = (indices.len(), dims.len());
                    let many = if given == 1 { "index" } else { "indices" };
                    let dimensions = if needed == 1 { "dimension" } else { "dimensions" };
                    let message = format!("{given} {many} for {needed} {dimensions}");
                    let mut diagnostic =
                        Diagnostic::new(codes::NOT_INDEXABLE, message, span).label("indexed here");
                    if given < needed {
                        let places = ["i", "j", "k", "l"];
                        let shown = places.get(..needed).unwrap_or(&places).join(", ");
                        let help = format!("write all in one pair of brackets: `[{shown}]`");
                        diagnostic = diagnostic.help(help);
                    }
                    return Err(self.report(diagnostic));
                }
                let mut operands = Vec::with_capacity(indices.len());
                for &index in indices {
                    operands.push((self.index_operand(index)?, self.expr_span(index)));
                }
                self.array_element(base, dims, *elem, operands, span)
            }
            Type::Pointer { many: true, constant, pointee } => {
                let (constant, pointee) = (*constant, *pointee);
                let pointer = self.load(base, span)?;
                let address = self.pointer_address(pointer, span)?;
                self.offset_element(address, indices, pointee, !constant, Len::None, span)
            }
            Type::Pointer { many: false, pointee, .. }
                if matches!(self.types.get(*pointee), Type::Array { .. }) =>
            {
                let pointer = self.load(base, span)?;
                let target = self.deref(pointer, span)?;
                self.index_place(target, indices, span)
            }
            Type::Slice { elem } => {
                let elem = *elem;
                let Place::Memory { address, .. } = base else {
                    return self.fail(codes::NOT_INDEXABLE, "no such slice", span, "here");
                };
                self.slice_element(address, elem, indices, span)
            }
            Type::Struct(info) if info.tuple => self.tuple_element(base, indices, span),
            _ => {
                let name = self.type_name(ty);
                let message = format!("a value of type `{name}` has no elements");
                let diagnostic =
                    Diagnostic::new(codes::NOT_INDEXABLE, message, span).label("indexed here");
                let is_type = ty == self.types.common.type_;
                Err(self.report(match self.types.is_dsd(ty) {
                    true => diagnostic.help("index the array that the descriptor is about"),
                    false if is_type => {
                        diagnostic.help("the sizes of an array stand in front: `[3]i16`")
                    }
                    false => diagnostic,
                }))
            }
        }
    }

    fn tuple_element(&mut self, base: Place, indices: &[ExprId], span: Span) -> R<Place> {
        let ty = self.place_type(&base);
        let shared = self.types.shared(ty);
        let Type::Struct(info) = shared.as_ref() else { unreachable!("asked for tuples only") };
        let operand = self.expr(indices[0], None)?;
        let index = self.need_int(operand, indices[0], "the index of a tuple")?;
        match usize::try_from(index).ok().filter(|&i| i < info.fields.len() && indices.len() == 1) {
            Some(index) => {
                let offset = self.types.field_offset(info, index, self.profile());
                self.element_place(base, index, info.fields[index].1, offset, span)
            }
            None => self.fail(
                codes::INDEX_OUT_OF_RANGE,
                format!("index {index} of a tuple with {} elements", info.fields.len()),
                span,
                "outside the tuple",
            ),
        }
    }

    /// An index: an integer, known or not.
    fn index_operand(&mut self, index: ExprId) -> R<Operand> {
        let operand = self.expr(index, None)?;
        let ty = self.operand_type(&operand);
        if self.types.is_int(ty) {
            return Ok(operand);
        }
        let (name, span) = (self.type_name(ty), self.expr_span(index));
        let message = format!("an index is an integer, this is `{name}`");
        let diagnostic =
            Diagnostic::new(codes::TYPE_MISMATCH, message, span).label("not an integer");
        let source = self.source_of(span);
        Err(self.report(match self.types.is_float(ty) {
            true => diagnostic.help(format!("convert it: `@as(u16, {source})`")),
            false => diagnostic,
        }))
    }

    fn outside<T>(&mut self, index: i128, dim: u64, span: Span) -> R<T> {
        let elements = if dim == 1 { "element" } else { "elements" };
        let message = format!("index {index} is outside an array of {dim} {elements}");
        let diagnostic =
            Diagnostic::new(codes::INDEX_OUT_OF_RANGE, message, span).label("outside the array");
        Err(self.report(match dim {
            0 => diagnostic,
            _ => diagnostic.help(format!("the last index is {}", dim - 1)),
        }))
    }

    fn array_element(
        &mut self,
        base: Place,
        dims: &[u64],
        elem: TypeId,
        operands: Vec<(Operand, Span)>,
        span: Span,
    ) -> R<Place> {
        let elem_size = self.types.size_align(elem, self.profile()).map(|(size, _)| size);
        if self.is_runtime() {
            let all =
                dims.iter().fold(elem_size.unwrap_or(0), |size, dim| size.saturating_mul(*dim));
            self.reached(all, span)?;
        }
        let mut known: u64 = 0;
        let mut runtime: Option<Expr> = None;
        for (at, (operand, index_span)) in operands.into_iter().enumerate() {
            let scale: u64 = dims[at + 1..].iter().product();
            match operand {
                Operand::Const(value) if value.prov == 0 || !self.can_index(&base) => {
                    let index = self.fix_int(&value).unwrap_or(0);
                    match u64::try_from(index).ok().filter(|&index| index < dims[at]) {
                        Some(index) => known += index * scale,
                        None => {
                            return self.outside(index, dims[at], index_span);
                        }
                    }
                }
                other => {
                    self.need_runtime(index_span)?;
                    let bytes = scale.saturating_mul(elem_size.unwrap_or(0));
                    let term = self.scaled_index(other, bytes, Len::Known(dims[at]), index_span)?;
                    runtime = Some(self.add_index(runtime, term, span));
                }
            }
        }
        let offset = known.saturating_mul(elem_size.unwrap_or(0));
        let Some(index) = runtime else {
            return self.element_place(base, known as usize, elem, offset, span);
        };
        let (address, mutable) = self.memory_of(base, span)?;
        let mut address = address.plus(offset as i64);
        address.index = Some(self.add_index(address.index, index, span));
        Ok(Place::Memory { address, ty: elem, mutable })
    }

    /// A distance in bytes, if addresses go so far.
    pub(crate) fn reached(&mut self, bytes: u64, span: Span) -> R<i64> {
        match i64::try_from(bytes) {
            Ok(bytes) => Ok(bytes),
            Err(_) => {
                let message = "this is part of a value of more bytes than addresses reach";
                self.fail(codes::ARRAY_TOO_LARGE, message, span, "in no memory")
            }
        }
    }

    /// Whether run-time indexing of a place is possible without fixing a per-PE index.
    fn can_index(&self, base: &Place) -> bool {
        self.is_runtime() && !matches!(base, Place::Slot { .. })
    }

    fn add_index(&mut self, sum: Option<Expr>, term: Expr, span: Span) -> Expr {
        let pointer = self.profile().pointer();
        match sum {
            None => term,
            Some(sum) => typed(ExprKind::Binary(IrBinary::Add, sum, term), pointer, span),
        }
    }

    /// `index * bytes` in the pointer type.
    fn scaled_index(&mut self, index: Operand, bytes: u64, len: Len, span: Span) -> R<Expr> {
        let pointer = self.profile().pointer();
        let ty = self.operand_type(&index);
        let signed = self.types.is_signed(ty);
        let machine =
            if ty == self.types.common.comptime_int { pointer } else { self.machine_ty(ty, span)? };
        let expr = match index {
            Operand::Const(value) => self.const_expr(&value, machine, span)?,
            other => self.scalar_of(other, span)?,
        };
        let expr = self.bounded_index(expr, signed, len, span);
        let from = expr.ty.unwrap_or(machine);
        let expr = self.resize(expr, from, pointer, signed, span);
        if bytes == 1 {
            return Ok(expr);
        }
        let scale = typed(ExprKind::Const(pointer.mask(bytes)), pointer, span);
        Ok(typed(ExprKind::Binary(IrBinary::Mul, expr, scale), pointer, span))
    }

    /// An index as wide as a pointer or as it was, whichever is more, held against the length where that is asked
    /// for: always on the host, where it takes no cycles.
    fn bounded_index(&mut self, index: Expr, signed: bool, len: Len, span: Span) -> Expr {
        let pointer = self.profile().pointer();
        let ty = index.ty.unwrap_or(pointer);
        let reach = if signed { u64::MAX } else { ty.mask(u64::MAX) };
        let asked = self.profile() == Profile::Host || self.cx.options.check_bounds;
        if !asked || matches!(len, Len::Known(len) if reach < len) {
            return index;
        }
        let wide = match len {
            // No index that is negative is below it by mistake.
            Len::Known(len) if pointer.mask(len) != len => Ty::I64,
            _ if ty.bits() < pointer.bits() => pointer,
            _ => ty,
        };
        let index = self.resize(index, ty, wide, signed, span);
        let len = match len {
            Len::None => return index,
            Len::Known(len) => typed(ExprKind::Const(wide.mask(len)), wide, span),
            Len::Held(len) => len,
        };
        let what = if signed { Bounded::Signed } else { Bounded::Unsigned };
        typed(ExprKind::Bound(what, index, len), wide, span)
    }

    /// An integer expression in another width.
    pub(crate) fn resize(
        &mut self,
        expr: Expr,
        from: Ty,
        to: Ty,
        signed: bool,
        span: Span,
    ) -> Expr {
        let kind = match from.bits().cmp(&to.bits()) {
            std::cmp::Ordering::Equal => return expr,
            std::cmp::Ordering::Greater => Convert::Truncate,
            std::cmp::Ordering::Less if signed => Convert::SignExtend,
            std::cmp::Ordering::Less => Convert::ZeroExtend,
        };
        typed(ExprKind::Convert(kind, expr), to, span)
    }

    fn offset_element(
        &mut self,
        address: Address,
        indices: &[ExprId],
        elem: TypeId,
        mutable: bool,
        len: Len,
        span: Span,
    ) -> R<Place> {
        if indices.len() != 1 {
            return self.fail(codes::NOT_INDEXABLE, "a pointer takes one index", span, "here");
        }
        let (size, _) = self.runtime_size(elem, span)?;
        let index_span = self.expr_span(indices[0]);
        let address = match self.index_operand(indices[0])? {
            Operand::Const(value) if value.prov == 0 && matches!(len, Len::None) => {
                let index = self.fix_int(&value).unwrap_or(0);
                address.plus((index as i64).wrapping_mul(i64::from(size)))
            }
            other => {
                self.need_runtime(index_span)?;
                let term = self.scaled_index(other, u64::from(size), len, index_span)?;
                let index = self.add_index(address.index.clone(), term, span);
                Address { index: Some(index), ..address }
            }
        };
        Ok(Place::Memory { address, ty: elem, mutable })
    }

    pub(crate) fn slice_element(
        &mut self,
        address: Address,
        elem: TypeId,
        indices: &[ExprId],
        span: Span,
    ) -> R<Place> {
        let (pointer, offset) = self.split_address(&address, span)?;
        let pointer = if repeatable(&pointer) { pointer } else { self.pin(pointer, span) };
        let len = ExprKind::Load { address: pointer.clone(), offset: offset + 8 };
        let len = typed(len, Ty::I64, span);
        let load = typed(ExprKind::Load { address: pointer, offset }, Ty::I64, span);
        // Both as they are before the index is evaluated.
        let (load, len) = match self.early {
            true => (self.pin(load, span), self.pin(len, span)),
            false => (load, len),
        };
        let (base, len) = (Address::of_expr(load), Len::Held(len));
        let mutable = !self.is_constant_slice(&address);
        self.offset_element(base, indices, elem, mutable, len, span)
    }
}

/// Whether an expression can stand twice: it calls nothing, and does nothing.
fn repeatable(expr: &Expr) -> bool {
    match &*expr.kind {
        ExprKind::Const(_)
        | ExprKind::Slot(_)
        | ExprKind::Local(_)
        | ExprKind::GlobalAddress { .. }
        | ExprKind::LocalAddress { .. }
        | ExprKind::FuncAddress(_) => true,
        ExprKind::Load { address: part, .. }
        | ExprKind::Unary(_, part)
        | ExprKind::Convert(_, part) => repeatable(part),
        ExprKind::Binary(_, first, second) | ExprKind::Bound(_, first, second) => {
            repeatable(first) && repeatable(second)
        }
        ExprKind::Held { source, index, .. } => {
            repeatable(source) && index.as_ref().is_none_or(repeatable)
        }
        ExprKind::Call { .. }
        | ExprKind::CallIndirect { .. }
        | ExprKind::Mem1d { .. }
        | ExprKind::Mem4d { .. }
        | ExprKind::Fabric { .. }
        | ExprKind::Ring { .. }
        | ExprKind::MoveBase { .. }
        | ExprKind::SetBase { .. }
        | ExprKind::SetExtent { .. }
        | ExprKind::SetStride { .. }
        | ExprKind::Vector(_)
        | ExprKind::Random
        | ExprKind::ClockRead(_)
        | ExprKind::GetConfig(_)
        | ExprKind::Queues(_) => false,
    }
}
