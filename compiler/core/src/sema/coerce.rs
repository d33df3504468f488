//! Implicit conversions, and `@as`.

use std::rc::Rc;

use dflow_ir::scalar::Convert;
use dflow_ir::ty::Ty;
use dflow_syntax::{Diagnostic, Span, codes};

use super::address::{Address, AddressBase, typed};
use super::expr::scalar_of_value;
use super::ops;
use super::types::{Repr, StructType, Type, TypeId};
use super::value::{Data, FuncRef, Node, Pointer, PointerBase, Value};
use super::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind, StmtKind};

impl Sema<'_, '_> {
    /// An operand as another type, if the language converts by itself.
    pub(crate) fn coerce(&mut self, operand: Operand, to: TypeId, span: Span) -> R<Operand> {
        let from = self.operand_type(&operand);
        if from == to {
            return Ok(operand);
        }
        if let (Some(count), true) = (self.slice_of_array(from, to), self.is_runtime()) {
            return self.slice_from(operand, count, to, span);
        }
        match operand {
            Operand::Const(value) => self.coerce_value(value, to, span).map(Operand::Const),
            Operand::Scalar { expr, .. } if self.widens(from, to) => {
                let expr = self.widen(expr, from, to, span)?;
                Ok(Operand::Scalar { ty: to, expr })
            }
            Operand::Scalar { expr, .. } if self.pointer_converts(from, to) => {
                Ok(Operand::Scalar { ty: to, expr })
            }
            Operand::Memory { address, .. } if self.same_layout(from, to) => {
                Ok(Operand::Memory { ty: to, address })
            }
            Operand::Scalar { .. } | Operand::Memory { .. } | Operand::Void => {
                self.mismatch(from, to, span)
            }
        }
    }

    /// Whether a value of one type may stand for one of another, as far as types tell: numbers widen,
    /// pointers become more general ones, literals of structs the struct or array that is meant.
    pub(crate) fn becomes(&self, from: TypeId, to: TypeId) -> bool {
        if from == to || self.widens(from, to) || self.pointer_converts(from, to) {
            return true;
        }
        match (self.types.get(from), self.types.get(to)) {
            (Type::Struct(from), Type::Struct(to)) => {
                from.nominal.is_none() && to.nominal.is_some()
            }
            (Type::Struct(from), Type::Array { dims, .. }) => {
                from.tuple && **dims == [from.fields.len() as u64]
            }
            _ => self.slice_of_array(from, to).is_some(),
        }
    }

    /// Number of elements, if `from` points to an array of a slice's elements.
    fn slice_of_array(&self, from: TypeId, to: TypeId) -> Option<u64> {
        let (Type::Pointer { many: false, pointee, .. }, Type::Slice { elem }) =
            (self.types.get(from), self.types.get(to))
        else {
            return None;
        };
        match self.types.get(*pointee) {
            Type::Array { dims, elem: own } if dims.len() == 1 && own == elem => Some(dims[0]),
            _ => None,
        }
    }

    /// A slice over the array that a pointer points to.
    fn slice_from(&mut self, pointer: Operand, count: u64, to: TypeId, span: Span) -> R<Operand> {
        let ty = self.operand_type(&pointer);
        let constant = matches!(self.types.get(ty), Type::Pointer { constant: true, .. });
        let address = self.pointer_address(pointer, span)?;
        let pointer = self.address_expr(&address, span)?;
        let length = typed(ExprKind::Const(count), Ty::I64, span);
        let slice = self.new_slice(pointer, length, to, span)?;
        if let (true, Operand::Memory { address, .. }) = (constant, &slice) {
            self.note_slice(address);
        }
        Ok(slice)
    }

    /// A slice of a pointer and a length.
    pub(crate) fn new_slice(
        &mut self,
        pointer: Expr,
        length: Expr,
        ty: TypeId,
        span: Span,
    ) -> R<Operand> {
        let local = self.new_memory(None, ty, span)?;
        let address = Address::of_local(local);
        for (offset, value) in [(0, pointer), (8, length)] {
            let (address, offset) = self.split_address(&address.clone().plus(offset), span)?;
            self.emit(StmtKind::Store { address, offset, value }, span);
        }
        Ok(Operand::Memory { ty, address })
    }

    pub(crate) fn mismatch<T>(&mut self, from: TypeId, to: TypeId, span: Span) -> R<T> {
        let (from_name, to_name) = (self.type_name(from), self.type_name(to));
        let mut diagnostic = Diagnostic::new(
            codes::TYPE_MISMATCH,
            format!("`{to_name}` is needed here, this is `{from_name}`"),
            span,
        )
        .label("of the wrong type");
        let number = |ty| self.types.is_int(ty) || self.types.is_float(ty);
        let common = self.types.common;
        if from == common.comptime_float && self.types.is_int(to) {
            diagnostic = diagnostic.help("write an integer: a float does not become one by itself");
        } else if to == common.comptime_float || to == common.comptime_int {
            diagnostic = diagnostic
                .help("values of run time have a type with a size: use `f32`, say, or `i16`");
        } else if number(from) && number(to) {
            let value = self.source_of(span);
            diagnostic = diagnostic.help(format!("convert it: `@as({to_name}, {value})`"));
        } else if self.points_to(from, to) {
            let value = self.source_of(span);
            diagnostic = diagnostic.help(format!("take its address: `&{value}`"));
        } else if self.is_one_of(from, to) {
            let value = self.source_of(span);
            diagnostic = diagnostic.help(format!(
                "make it an array of one element, or write `@ptrcast({to_name}, {value})`"
            ));
        } else if to == common.bool && self.types.is_int(from) {
            let value = self.source_of(span);
            diagnostic = diagnostic.help(format!("compare it: `{value} != 0`"));
        } else if self.reads_as(from, to) {
            let value = self.source_of(span);
            diagnostic = diagnostic.help(format!(
                "to read the same bits as another type: `@ptrcast({to_name}, {value})`"
            ));
        }
        Err(self.report(diagnostic))
    }

    /// Whether the address of a value is what the pointer type wants.
    fn points_to(&self, from: TypeId, to: TypeId) -> bool {
        let Type::Pointer { pointee, .. } = *self.types.get(to) else { return false };
        let elem = match self.types.get(from) {
            Type::Array { elem, .. } => Some(*elem),
            _ => None,
        };
        pointee == from || elem == Some(pointee)
    }

    /// Whether a pointer to one is given for one to many, and may be.
    fn is_one_of(&self, from: TypeId, to: TypeId) -> bool {
        match (self.types.get(from), self.types.get(to)) {
            (
                Type::Pointer { many: false, constant, pointee },
                Type::Pointer { many: true, constant: keeps, pointee: wanted },
            ) => pointee == wanted && (*keeps || !constant),
            _ => false,
        }
    }

    /// Whether both point to numbers, of different types, and `to` does not write what `from` may not.
    fn reads_as(&self, from: TypeId, to: TypeId) -> bool {
        let target = |ty: TypeId| match *self.types.get(ty) {
            Type::Pointer { pointee, constant, .. } => match *self.types.get(pointee) {
                Type::Array { elem, .. } => Some((elem, constant)),
                _ => Some((pointee, constant)),
            },
            _ => None,
        };
        let number = |ty: TypeId| self.types.is_int(ty) || self.types.is_float(ty);
        match (target(from), target(to)) {
            (Some((elem, constant)), Some((wanted, keeps))) => {
                number(elem) && number(wanted) && elem != wanted && (keeps || !constant)
            }
            _ => false,
        }
    }

    /// An expression as it is written, if it is short.
    pub(crate) fn source_of(&self, span: Span) -> String {
        let text = self.cx.sources.slice(span);
        let short = !text.is_empty() && text.len() <= 40 && !text.contains(['\n', '`']);
        if short { text.to_owned() } else { "…".to_owned() }
    }

    /// Anonymous structs whose run-time fields lie alike.
    fn same_layout(&self, from: TypeId, to: TypeId) -> bool {
        match (self.types.get(from), self.types.get(to)) {
            (Type::Struct(a), Type::Struct(b)) => a.nominal.is_none() && a.fields == b.fields,
            _ => false,
        }
    }

    /// Whether a pointer of one type may stand for another.
    fn pointer_converts(&self, from: TypeId, to: TypeId) -> bool {
        let (
            Type::Pointer { many, constant, pointee },
            Type::Pointer { many: to_many, constant: to_constant, pointee: to_pointee },
        ) = (self.types.get(from), self.types.get(to))
        else {
            return false;
        };
        if *constant && !*to_constant {
            return false;
        }
        if matches!(self.types.get(*to_pointee), Type::AnyOpaque) {
            return true;
        }
        if pointee == to_pointee {
            return many == to_many;
        }
        match (many, to_many) {
            (false, true) => match self.types.get(*pointee) {
                Type::Array { elem, .. } => elem == to_pointee,
                _ => false,
            },
            (false, false) => match self.types.get(*to_pointee) {
                Type::Array { dims, elem } => **dims == [1] && elem == pointee,
                _ => false,
            },
            (true, _) => false,
        }
    }

    /// A known value as another type.
    pub(crate) fn coerce_value(&mut self, value: Value, to: TypeId, span: Span) -> R<Value> {
        if value.ty == to {
            return Ok(value);
        }
        let (from_shared, to_shared) = (self.types.shared(value.ty), self.types.shared(to));
        match (from_shared.as_ref(), to_shared.as_ref()) {
            (Type::Int { .. } | Type::ComptimeInt, Type::Int { .. } | Type::ComptimeInt)
            | (Type::ComptimeInt, Type::Float(_) | Type::ComptimeFloat)
            | (Type::ComptimeFloat, Type::Float(_)) => self.convert_value(value, to, true, span),
            (Type::Float(_), Type::Float(_)) if self.widens(value.ty, to) => {
                self.convert_value(value, to, true, span)
            }
            (Type::Struct(_), Type::ComptimeStruct) => Ok(value),
            (Type::Struct(info), Type::Struct(target)) if info.nominal.is_none() => {
                self.coerce_struct(value, info, target, to, span)
            }
            (Type::Struct(info), Type::Array { dims, elem })
                if info.tuple && dims.len() == 1 && dims[0] == info.fields.len() as u64 =>
            {
                self.coerce_tuple(&value, info.fields.len(), *elem, to, span)
            }
            (Type::Fn { .. }, Type::Pointer { pointee, constant, .. }) if *pointee == value.ty => {
                if !constant {
                    let (from, to) = (self.type_name(value.ty), self.type_name(to));
                    let message = format!("`{to}` is needed here, this is `*const {from}`");
                    return self.fail(
                        codes::TYPE_MISMATCH,
                        message,
                        span,
                        "a function is constant",
                    );
                }
                match value.data {
                    Data::Func(func) => {
                        let pointer = self.func_pointer(func, value.ty, span)?;
                        Ok(Value { ty: to, ..pointer })
                    }
                    _ => self.undefined(span),
                }
            }
            (Type::Pointer { .. }, Type::Pointer { .. }) if self.pointer_converts(value.ty, to) => {
                Ok(Value { ty: to, ..value })
            }
            (Type::Pointer { .. }, &Type::Pointer { many, pointee, constant: false })
                if let Data::Pointer(pointer) = &value.data
                    && let Some(taken) = self.address_of_var(&Address::of_pointer(pointer))
                    && let reader = self.types.pointer(many, true, pointee)
                    && self.pointer_converts(value.ty, reader) =>
            {
                self.written_behind(taken, span)
            }
            _ if matches!(value.data, Data::Undef) => Ok(Value { ty: to, ..value }),
            _ => self.mismatch(value.ty, to, span),
        }
    }

    fn coerce_struct(
        &mut self,
        value: Value,
        info: &StructType,
        target: &StructType,
        to: TypeId,
        span: Span,
    ) -> R<Value> {
        if target.is_union() {
            return self.coerce_union(&value, info, target, to, span);
        }
        if info.fields.is_empty() && target.fields.is_empty() {
            return Ok(Value { ty: to, ..value });
        }
        let longer = info.tuple && info.fields.len() > target.fields.len();
        if longer || info.tuple != target.tuple && !info.fields.is_empty() {
            return self.mismatch(value.ty, to, span);
        }
        if let Some(&(extra, _)) = info
            .fields
            .iter()
            .find(|(name, _)| !info.tuple && !target.fields.iter().any(|(known, _)| known == name))
        {
            let (name, ty) = (self.spell(extra), self.type_name(to));
            let message = format!("`{ty}` has no field `{name}`");
            return self.fail(codes::UNKNOWN_FIELD, message, span, "given here");
        }
        let mut fields = Vec::with_capacity(target.fields.len());
        for (at, &(name, ty)) in target.fields.iter().enumerate() {
            let from = if info.tuple {
                (at < info.fields.len()).then_some(at)
            } else {
                info.fields.iter().position(|&(known, _)| known == name)
            };
            let Some(element) = from.and_then(|from| value.element(from)) else {
                let (name, ty) = (self.spell(name), self.type_name(to));
                let message = format!("the field `{name}` of `{ty}` has no value");
                return self.fail(codes::MISSING_FIELD, message, span, "not given here");
            };
            fields.push(self.coerce_value(element, ty, span)?);
        }
        Ok(Value::new(to, Data::Fields(Rc::new(fields))))
    }

    fn coerce_union(
        &mut self,
        value: &Value,
        info: &StructType,
        target: &StructType,
        to: TypeId,
        span: Span,
    ) -> R<Value> {
        let [(name, _)] = info.fields[..] else { return self.mismatch(value.ty, to, span) };
        let index = target.fields.iter().position(|&(known, _)| known == name);
        let (Some(index), Some(element)) = (index, value.element(0)) else {
            return self.mismatch(value.ty, to, span);
        };
        let element = self.coerce_value(element, target.fields[index].1, span)?;
        Ok(Value::new(to, Data::Union(Rc::new((index, element)))))
    }

    fn coerce_tuple(
        &mut self,
        value: &Value,
        count: usize,
        elem: TypeId,
        to: TypeId,
        span: Span,
    ) -> R<Value> {
        let mut fields = Vec::with_capacity(count);
        for index in 0..count {
            let Some(element) = value.element(index) else { return self.undefined(span) };
            fields.push(self.coerce_value(element, elem, span)?);
        }
        Ok(Value::new(to, Data::Fields(Rc::new(fields))))
    }

    /// A function as the value of a pointer.
    pub(crate) fn func_pointer(&mut self, func: FuncRef, ty: TypeId, span: Span) -> R<Value> {
        if let Type::Fn { is_task: true, .. } = self.types.get(ty) {
            return self.fail(
                codes::NO_ADDRESS,
                "a task has no address: it is started by its id",
                span,
                "taken here",
            );
        }
        if self.func_decl(func).is_some_and(|decl| decl.inline) {
            let message = "an `inline` function has no address: it exists where it is called";
            return self.fail(codes::NO_ADDRESS, message, span, "taken here");
        }
        let pointer = self.types.pointer(false, true, ty);
        let base = PointerBase::Func(func);
        Ok(Value::new(pointer, Data::Pointer(Rc::new(Pointer { base, offset: 0 }))))
    }

    /// A numeric conversion of a known value.
    pub(crate) fn convert_value(
        &mut self,
        value: Value,
        to: TypeId,
        implicit: bool,
        span: Span,
    ) -> R<Value> {
        let Some(scalar) = scalar_of_value(&value) else {
            if matches!(value.data, Data::Undef) {
                return Ok(Value { ty: to, ..value });
            }
            return self.mismatch(value.ty, to, span);
        };
        let from = value.ty;
        let result = match ops::convert(&self.types, from, to, implicit, scalar) {
            Ok(result) => result,
            Err((code, message)) => {
                return self.unfit(to, code, message, scalar, span);
            }
        };
        // A node that has no value for another PE fails the guards and slots that use it there.
        let prov = self.derive(&value, |arg| Node::Convert { from, to, implicit, arg });
        Ok(Value { ty: to, data: result.data(), prov })
    }

    /// A value that its type does not hold.
    fn unfit<T>(
        &mut self,
        to: TypeId,
        code: dflow_syntax::Code,
        message: String,
        scalar: super::value::Scalar,
        span: Span,
    ) -> R<T> {
        let name = self.type_name(to);
        let range = ops::int_range(&self.types, to);
        let (super::value::Scalar::Int(value), Some((low, high))) = (scalar, range) else {
            return self.fail(code, format!("as `{name}`: {message}"), span, "this value");
        };
        let message = format!("{value} does not fit `{name}`, which holds {low} to {high}");
        let mut diagnostic = Diagnostic::new(code, message, span).label("this value");
        let wider = [("u16", 16, false), ("i16", 15, true), ("u32", 32, false), ("i32", 31, true)];
        let holds = |&&(_, bits, signed): &&(&str, u32, bool)| {
            let least = if signed { -(1_i128 << bits) } else { 0 };
            let near = (1_i128 << bits) > high / 2;
            near && (signed || low == 0) && value >= least && value < 1_i128 << bits
        };
        if let Some((wider, _, _)) = wider.iter().find(holds).filter(|_| high > 1) {
            diagnostic = diagnostic.help(format!("`{wider}` holds it"));
        }
        Err(self.report(diagnostic))
    }

    /// An untyped number gets a type for a variable: none is guessed for integers.
    pub(crate) fn default_type(&mut self, value: Value, span: Span) -> R<Value> {
        let common = self.types.common;
        if value.ty != common.comptime_int && value.ty != common.comptime_float {
            return Ok(value);
        }
        let name = self.type_name(value.ty);
        Err(self.report(
            Diagnostic::new(
                codes::MISSING_TYPE,
                format!("a run-time variable cannot have type `{name}`"),
                span,
            )
            .label("its value is an untyped number")
            .help(match value.ty == common.comptime_float {
                true => "give the variable a type, such as `: f32`",
                false => "give the variable a type, such as `: i16`",
            }),
        ))
    }

    /// `@as(to, operand)`.
    pub(crate) fn convert(&mut self, operand: Operand, to: TypeId, span: Span) -> R<Operand> {
        let from = self.operand_type(&operand);
        if from == to {
            return Ok(operand);
        }
        if let Operand::Const(value) = operand {
            return self.as_value(value, to, span).map(Operand::Const);
        }
        if let (Type::Enum(_), Type::Enum(_)) = (self.types.get(from), self.types.get(to)) {
            return self.between_enums(from, to, span);
        }
        let (source, dest) = match (self.numeric(from), self.numeric(to)) {
            (Some(source), Some(dest)) => (source, dest),
            _ => return self.coerce(operand, to, span),
        };
        self.machine_ty(to, span)?;
        let signed = self.types.is_signed(from);
        let expr = self.scalar_of(operand, span)?;
        let kind = if to == self.types.common.bool {
            Convert::Bool
        } else {
            match (source.is_float(), dest.is_float()) {
                (true, true) => Convert::FloatFromFloat,
                (true, false) if self.types.is_signed(to) => Convert::SignedFromFloat,
                (true, false) => Convert::UnsignedFromFloat,
                (false, true) if signed => Convert::FloatFromSigned,
                (false, true) => Convert::FloatFromUnsigned,
                (false, false) => {
                    let expr = self.resize(expr, source, dest, signed, span);
                    return Ok(Operand::Scalar { ty: to, expr: self.normal(expr, to, span) });
                }
            }
        };
        if source == dest && source.is_float() {
            return Ok(Operand::Scalar { ty: to, expr });
        }
        let expr = typed(ExprKind::Convert(kind, expr), dest, span);
        let expr = match kind {
            Convert::SignedFromFloat | Convert::UnsignedFromFloat => self.bounded(expr, to, span),
            _ => expr,
        };
        Ok(Operand::Scalar { ty: to, expr })
    }

    /// Machine type of numbers, bools and enums.
    fn numeric(&self, ty: TypeId) -> Option<Ty> {
        match self.types.get(ty) {
            Type::Bool | Type::Int { .. } | Type::Float(_) | Type::Enum(_) => {
                match self.types.repr(ty, self.profile()) {
                    Repr::Scalar(machine) => Some(machine),
                    Repr::Void | Repr::Memory { .. } | Repr::Comptime => None,
                }
            }
            _ => None,
        }
    }

    fn as_value(&mut self, value: Value, to: TypeId, span: Span) -> R<Value> {
        let countable = |types: &super::types::TypePool, ty: TypeId| {
            matches!(
                types.get(ty),
                Type::Bool
                    | Type::Int { .. }
                    | Type::ComptimeInt
                    | Type::Float(_)
                    | Type::ComptimeFloat
                    | Type::Enum(_)
            )
        };
        if !countable(&self.types, value.ty) || !countable(&self.types, to) {
            return self.coerce_value(value, to, span);
        }
        if let Type::Enum(info) = self.types.shared(to).as_ref() {
            if let Type::Enum(_) = self.types.get(value.ty) {
                return self.between_enums(value.ty, to, span);
            }
            let Some(int) = self.fix_int(&value) else { return self.mismatch(value.ty, to, span) };
            if !info.elems.iter().any(|&(_, known)| known == int) {
                let name = self.type_name(to);
                let message = format!("{int} is no element of `{name}`");
                return self.fail(codes::VALUE_OUT_OF_RANGE, message, span, "this value");
            }
            return Ok(Value::int(to, int));
        }
        self.convert_value(value, to, false, span)
    }

    /// Enums become each other only by way of a number.
    fn between_enums<T>(&mut self, from: TypeId, to: TypeId, span: Span) -> R<T> {
        let (from, to) = (self.type_name(from), self.type_name(to));
        let message = format!("an element of `{from}` does not become one of `{to}` by itself");
        let text = self.source_of(span);
        Err(self.report(
            Diagnostic::new(codes::TYPE_MISMATCH, message, span)
                .label("of another enum")
                .help(format!("go by its number: `@as({to}, @get_int({text}))`")),
        ))
    }

    /// Where a slice of an array may point: a variable itself; of a value that has a name, which nobody may write, a
    /// copy.
    pub(crate) fn sliceable(&mut self, address: Address, ty: TypeId, span: Span) -> R<Address> {
        let address = address.of_variable();
        if !matches!(address.base, AddressBase::Param(_) | AddressBase::Held(_)) {
            return Ok(address);
        }
        let copy = Address::of_local(self.new_memory(None, ty, span)?);
        self.store_aggregate(&copy, ty, Operand::Memory { ty, address }, span)?;
        Ok(copy)
    }

    /// The address of an aggregate operand, for copies and calls.
    pub(crate) fn aggregate_address(&mut self, operand: Operand, span: Span) -> R<Address> {
        match operand {
            Operand::Memory { address, .. } => Ok(address),
            Operand::Const(value) => self.constant_address(value, span),
            Operand::Scalar { ty, .. } => {
                let name = self.type_name(ty);
                let message = format!("a value of type `{name}` is no aggregate");
                self.fail(codes::TYPE_MISMATCH, message, span, "needed in memory here")
            }
            Operand::Void => {
                self.fail(codes::TYPE_MISMATCH, "this has no value", span, "a value is needed here")
            }
        }
    }
}
