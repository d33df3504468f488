//! Integers of any width, packed structs and unions: fields are bits of a machine integer.
//!
//! Invariant: an integer narrower than its machine type is kept extended (with its sign, or zeros), so that
//! everything but arithmetic can treat it as the machine type; a packed struct keeps zeros above its fields.

use std::rc::Rc;

use dflow_ir::scalar::{BinaryOp as Ir, Convert};
use dflow_ir::ty::Ty;
use dflow_syntax::{Span, codes};

use super::address::typed;
use super::ops;
use super::place::Place;
use super::types::{Repr, StructType, Type, TypeId};
use super::value::{Data, Scalar, Value};
use super::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind, Stmt, StmtKind};

impl Sema<'_, '_> {
    /// The expression with the bits above an odd integer's width put right.
    pub(crate) fn normal(&self, expr: Expr, ty: TypeId, span: Span) -> Expr {
        let (Type::Int { signed, bits }, Some(machine)) = (self.types.get(ty), expr.ty) else {
            return expr;
        };
        narrowed(expr, u32::from(*bits), *signed, machine, span)
    }

    /// The nearest value of an odd integer's width.
    pub(crate) fn bounded(&mut self, expr: Expr, ty: TypeId, span: Span) -> Expr {
        let (&Type::Int { signed, bits }, Some(machine)) = (self.types.get(ty), expr.ty) else {
            return expr;
        };
        let bits = u32::from(bits);
        if bits >= machine.bits() {
            return expr;
        }
        let local = self.new_scalar(None, machine);
        self.emit(StmtKind::Set(local, expr), span);
        let value = typed(ExprKind::Local(local), machine, span);
        let high =
            constant(low_bits(if signed { bits.saturating_sub(1) } else { bits }), machine, span);
        let less = if signed { Ir::LtS } else { Ir::LtU };
        let mut bound = |low: &Expr, high: &Expr, nearest: &Expr| {
            let cond = ExprKind::Binary(less, low.clone(), high.clone());
            let cond = typed(cond, Ty::I8, span);
            let then = vec![Stmt { kind: StmtKind::Set(local, nearest.clone()), span }];
            self.emit(StmtKind::If { cond, then, otherwise: Vec::new() }, span);
        };
        bound(&high, &value, &high);
        if signed {
            let low = if bits == 0 { 0 } else { u64::MAX << (bits - 1) };
            let low = constant(machine.mask(low), machine, span);
            bound(&value, &low, &low);
        }
        value
    }

    /// Whether values of a type are bits of an integer.
    pub(crate) fn packed_info(&self, ty: TypeId) -> Option<Rc<StructType>> {
        match self.types.get(ty) {
            Type::Struct(info) if info.is_packed() => Some(Rc::clone(info)),
            _ => None,
        }
    }

    /// A field of a packed place that is no comptime value.
    pub(crate) fn bits_place(&self, base: Place, info: &StructType, index: usize) -> Place {
        let shift = self.types.field_shift(info, index, self.profile());
        Place::Bits { base: Box::new(base), shift, ty: info.fields[index].1 }
    }

    /// Reads a field of a packed place.
    pub(crate) fn load_bits(
        &mut self,
        base: Place,
        shift: u32,
        ty: TypeId,
        span: Span,
    ) -> R<Operand> {
        let whole = self.load(base, span)?;
        let whole = self.scalar_of(whole, span)?;
        let expr = self.extract(whole, shift, ty, span)?;
        Ok(Operand::Scalar { ty, expr })
    }

    /// Writes a field of a packed place.
    pub(crate) fn store_bits(
        &mut self,
        base: Place,
        shift: u32,
        ty: TypeId,
        value: Operand,
        span: Span,
    ) -> R<()> {
        let base = self.pin_place(base, span);
        let base_ty = self.place_type(&base);
        let whole = self.load(base.clone(), span)?;
        let whole = self.scalar_of(whole, span)?;
        let Some(machine) = whole.ty else { return self.undefined(span) };
        let value = self.coerce(value, ty, span)?;
        let value = self.scalar_of(value, span)?;
        let width = self.types.bits(ty, self.profile()).unwrap_or(0);
        let field = spread(value, width, shift, machine, span);
        let keep = constant(!(low_bits(width) << shift), machine, span);
        let kept = typed(ExprKind::Binary(Ir::And, whole, keep), machine, span);
        let expr = typed(ExprKind::Binary(Ir::Or, kept, field), machine, span);
        self.store(base, Operand::Scalar { ty: base_ty, expr }, span)
    }

    /// A place whose run-time address is evaluated once.
    pub(crate) fn pin_place(&mut self, place: Place, span: Span) -> Place {
        match place {
            Place::Memory { address, ty, mutable } if self.is_runtime() => {
                let address = self.pin_address(address, span);
                Place::Memory { address, ty, mutable }
            }
            Place::Bits { base, shift, ty } => {
                Place::Bits { base: Box::new(self.pin_place(*base, span)), shift, ty }
            }
            other => other,
        }
    }

    fn extract(&mut self, whole: Expr, shift: u32, ty: TypeId, span: Span) -> R<Expr> {
        let Some(machine) = whole.ty else { return self.undefined(span) };
        let field = self.machine_ty(ty, span)?;
        let width = self.types.bits(ty, self.profile()).unwrap_or(field.bits());
        let by = constant(u64::from(shift), machine, span);
        let expr = match shift {
            0 => whole,
            _ => typed(ExprKind::Binary(Ir::ShrU, whole, by), machine, span),
        };
        let of_width = integer(field);
        let expr = self.resize(expr, machine, of_width, false, span);
        let signed = self.types.is_signed(ty);
        let expr = narrowed(expr, width, signed, of_width, span);
        Ok(match field.is_float() {
            true => typed(ExprKind::Convert(Convert::Bitcast, expr), field, span),
            false => expr,
        })
    }

    /// A packed struct of fields that are not all known.
    pub(crate) fn pack(
        &mut self,
        ty: TypeId,
        parts: Vec<(usize, Operand)>,
        span: Span,
    ) -> R<Operand> {
        let machine = self.machine_ty(ty, span)?;
        let Some(info) = self.packed_info(ty) else { return self.undefined(span) };
        let mut whole = constant(0, machine, span);
        for (index, operand) in parts {
            let field = info.fields[index].1;
            let operand = self.coerce(operand, field, span)?;
            let value = self.scalar_of(operand, span)?;
            let width = self.types.bits(field, self.profile()).unwrap_or(0);
            let shift = self.types.field_shift(&info, index, self.profile());
            let field = spread(value, width, shift, machine, span);
            whole = typed(ExprKind::Binary(Ir::Or, whole, field), machine, span);
        }
        Ok(Operand::Scalar { ty, expr: whole })
    }

    /// The bits of a known value, if its type has such; they decide.
    pub(crate) fn value_bits(&mut self, value: &Value) -> Option<u64> {
        let width = self.types.bits(value.ty, self.profile())?;
        let raw = match (&value.data, self.packed_info(value.ty)) {
            (Data::Undef, _) => 0,
            (Data::Union(active), Some(_)) => self.value_bits(&active.1)?,
            (Data::Fields(fields), Some(info)) => {
                let mut raw = 0;
                for (index, field) in fields.iter().enumerate() {
                    let shift = self.types.field_shift(&info, index, self.profile());
                    raw |= self.value_bits(field)?.checked_shl(shift).unwrap_or(0);
                }
                raw
            }
            _ => match self.fix(value)? {
                Scalar::Int(int) => int as u64,
                Scalar::Float(float) => ops::to_raw(ops::float_ty(&self.types, value.ty), float),
            },
        };
        Some(raw & low_bits(width))
    }

    /// The value of a type that has these bits.
    pub(crate) fn value_of_bits(&mut self, raw: u64, ty: TypeId) -> Option<Value> {
        let width = self.types.bits(ty, self.profile())?;
        let raw = raw & low_bits(width);
        if let Some(info) = self.packed_info(ty) {
            let mut fields = Vec::with_capacity(info.fields.len());
            for (index, &(_, field)) in info.fields.iter().enumerate() {
                let shift = self.types.field_shift(&info, index, self.profile());
                let below = raw.checked_shr(shift).unwrap_or(0);
                fields.push(self.value_of_bits(below, field)?);
            }
            let data = match info.is_union() {
                true => Data::Union(Rc::new((0, fields.into_iter().next()?))),
                false => Data::Fields(Rc::new(fields)),
            };
            return Some(Value::new(ty, data));
        }
        if let Type::Float(_) = self.types.get(ty) {
            let machine = ops::float_ty(&self.types, ty);
            return Some(Value::new(ty, Data::Float(ops::from_raw(machine, raw))));
        }
        Some(Value::int(ty, ops::wrap(&self.types, ty, i128::from(raw))))
    }

    /// Another field of a known packed union than the one that was given.
    pub(crate) fn other_variant(&mut self, value: &Value, ty: TypeId) -> Option<Value> {
        self.packed_info(value.ty)?;
        let raw = self.value_bits(value)?;
        self.value_of_bits(raw, ty)
    }

    /// The field of a known packed union of which another field is given.
    pub(crate) fn packed_part(&mut self, value: &Value, index: usize) -> Option<Value> {
        let info = self.packed_info(value.ty)?;
        matches!(&value.data, Data::Union(_) if is_written(value))
            .then(|| self.other_variant(value, info.fields[index].1))?
    }

    /// A known packed value with another value in a part of it.
    pub(crate) fn with_part(
        &mut self,
        value: &Value,
        path: &[usize],
        part: Value,
    ) -> Option<Value> {
        let [index, rest @ ..] = path else { return Some(part) };
        let info = self.packed_info(value.ty)?;
        let undef = |&(_, ty): &(_, TypeId)| Value::new(ty, Data::Undef);
        let known = value.element(*index).or_else(|| self.packed_part(value, *index));
        let field = known.unwrap_or_else(|| undef(&info.fields[*index]));
        let field = self.with_part(&field, rest, part)?;
        if info.is_union() {
            return self.with_variant(value, &info, *index, field);
        }
        let mut fields = match &value.data {
            Data::Fields(fields) => fields.to_vec(),
            _ => info.fields.iter().map(undef).collect(),
        };
        fields[*index] = field;
        Some(Value::new(value.ty, Data::Fields(Rc::new(fields))))
    }

    /// A known packed union with a value in one of its fields: bits above that stay.
    fn with_variant(
        &mut self,
        union: &Value,
        info: &StructType,
        index: usize,
        field: Value,
    ) -> Option<Value> {
        let bits = |ty| self.types.bits(ty, self.profile()).unwrap_or(0);
        let (width, all) = (bits(field.ty), bits(union.ty));
        let written = matches!(&union.data, Data::Union(_)) && is_written(union);
        if !written || width >= all {
            return Some(Value::new(union.ty, Data::Union(Rc::new((index, field)))));
        }
        let widest = info.fields.iter().position(|&(_, ty)| bits(ty) == all)?;
        let above = self.value_bits(union)? & !low_bits(width);
        let raw = above | self.value_bits(&field)?;
        let value = self.value_of_bits(raw, info.fields[widest].1)?;
        Some(Value::new(union.ty, Data::Union(Rc::new((widest, value)))))
    }

    /// Fails for a packed type whose fields have no bits, or too many.
    pub(crate) fn check_packed(&mut self, info: &StructType, span: Span) -> R<()> {
        let mut total = 0u32;
        for &(_, field) in &info.fields {
            let fits = match self.types.get(field) {
                Type::Struct(inner) => inner.is_packed(),
                _ => !matches!(self.types.repr(field, self.profile()), Repr::Memory { .. }),
            };
            let Some(bits) = self.types.bits(field, self.profile()).filter(|_| fits) else {
                let name = self.type_name(field);
                let message = format!(
                    "a packed struct has no field of type `{name}`: its values are no bits"
                );
                return self.fail(codes::INVALID_TYPE, message, span, "declared here");
            };
            total = if info.is_union() { total.max(bits) } else { total + bits };
        }
        if total <= 64 {
            return Ok(());
        }
        let message = format!("a packed struct has at most 64 bits, this has {total}");
        self.fail(codes::INVALID_TYPE, message, span, "declared here")
    }
}

/// Whether all parts of a packed value have been given.
fn is_written(value: &Value) -> bool {
    match &value.data {
        Data::Undef => false,
        Data::Union(active) => is_written(&active.1),
        Data::Fields(fields) => fields.iter().all(is_written),
        _ => true,
    }
}

/// A mask of the lowest bits.
fn low_bits(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

fn constant(raw: u64, machine: Ty, span: Span) -> Expr {
    typed(ExprKind::Const(machine.mask(raw)), machine, span)
}

/// The integer type of a machine type's width.
fn integer(machine: Ty) -> Ty {
    match machine.bits() {
        8 => Ty::I8,
        16 => Ty::I16,
        32 => Ty::I32,
        _ => Ty::I64,
    }
}

fn narrowed(expr: Expr, bits: u32, signed: bool, machine: Ty, span: Span) -> Expr {
    if bits >= machine.bits() {
        return expr;
    }
    if !signed || bits == 0 {
        let mask = constant(low_bits(bits), machine, span);
        return typed(ExprKind::Binary(Ir::And, expr, mask), machine, span);
    }
    let by = constant(u64::from(machine.bits() - bits), machine, span);
    let high = typed(ExprKind::Binary(Ir::Shl, expr, by.clone()), machine, span);
    typed(ExprKind::Binary(Ir::ShrS, high, by), machine, span)
}

/// The low bits of a scalar at their place in a wider integer.
fn spread(value: Expr, width: u32, shift: u32, machine: Ty, span: Span) -> Expr {
    let from = value.ty.unwrap_or(machine);
    let value = match from.is_float() {
        true => typed(ExprKind::Convert(Convert::Bitcast, value), integer(from), span),
        false => value,
    };
    let value = match from.bits() < machine.bits() {
        true => typed(ExprKind::Convert(Convert::ZeroExtend, value), machine, span),
        false => value,
    };
    let value = narrowed(value, width, false, machine, span);
    let by = constant(u64::from(shift), machine, span);
    match shift {
        0 => value,
        _ => typed(ExprKind::Binary(Ir::Shl, value, by), machine, span),
    }
}
