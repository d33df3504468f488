//! Struct, tuple and array literals; tensor accesses.

use std::rc::Rc;

use dflow_ir::program::Profile;
use dflow_syntax::ast::{BinaryOp, Expr as Ast, ExprId, FieldInit, Ident, UnaryOp};
use dflow_syntax::{Diagnostic, Span, Symbol, codes};

use super::address::Address;
use super::types::{StructType, Type, TypeId};
use super::value::{Data, Pointer, Value};
use super::{Cell, Operand, R, Sema};

impl Sema<'_, '_> {
    pub(crate) fn struct_literal(
        &mut self,
        fields: &[FieldInit],
        hint: Option<TypeId>,
        span: Span,
    ) -> R<Operand> {
        let wanted = hint.map(|hint| self.types.shared(hint));
        let target = match wanted.as_deref() {
            Some(Type::Struct(info)) if info.nominal.is_some() => Some((hint, Rc::clone(info))),
            _ => None,
        };
        if let Some((Some(ty), info)) = target {
            return self.named_literal(ty, &info, fields, span);
        }
        let mut names: Vec<(Symbol, TypeId)> = Vec::with_capacity(fields.len());
        let mut operands = Vec::with_capacity(fields.len());
        for field in fields {
            self.unique_field(&names, field.name)?;
            let operand = self.expr(field.value, None)?;
            names.push((field.name.name, self.operand_type(&operand)));
            operands.push(operand);
        }
        self.build_struct(names, false, operands, span)
    }

    fn unique_field(&mut self, names: &[(Symbol, TypeId)], name: Ident) -> R<()> {
        if !names.iter().any(|&(known, _)| known == name.name) {
            return Ok(());
        }
        let text = self.spell(name.name);
        let message = format!("the field `{text}` is given twice");
        self.fail(codes::DUPLICATE_FIELD, message, name.span, "again here")
    }

    pub(crate) fn tuple_literal(
        &mut self,
        elems: &[ExprId],
        hint: Option<TypeId>,
        span: Span,
    ) -> R<Operand> {
        let wanted = hint.map(|hint| self.types.shared(hint));
        if let Some(Type::Array { dims, elem }) = wanted.as_deref()
            && dims.len() == 1
            && dims[0] == elems.len() as u64
        {
            let (ty, elem) = (hint.unwrap_or(self.types.common.void), *elem);
            return self.array_of(ty, elem, elems, span);
        }
        let empty = self.cx.names.intern("");
        let mut names = Vec::with_capacity(elems.len());
        let mut operands = Vec::with_capacity(elems.len());
        for &elem in elems {
            let operand = self.expr(elem, None)?;
            names.push((empty, self.operand_type(&operand)));
            operands.push(operand);
        }
        self.build_struct(names, true, operands, span)
    }

    /// An anonymous struct of operands: a value if all are known, else memory.
    fn build_struct(
        &mut self,
        names: Vec<(Symbol, TypeId)>,
        tuple: bool,
        operands: Vec<Operand>,
        span: Span,
    ) -> R<Operand> {
        let ty = self.types.anonymous(names, tuple);
        let ty = self.shallow(ty, span)?;
        self.aggregate(ty, operands, span)
    }

    /// An aggregate of operands that have the element types already.
    fn aggregate(&mut self, ty: TypeId, operands: Vec<Operand>, span: Span) -> R<Operand> {
        if operands.iter().all(|operand| matches!(operand, Operand::Const(_) | Operand::Void)) {
            let mut values = Vec::with_capacity(operands.len());
            for operand in operands {
                values.push(self.need_const(operand, span)?);
            }
            return Ok(Operand::Const(Value::new(ty, Data::Fields(Rc::new(values)))));
        }
        if self.packed_info(ty).is_some() {
            return self.pack(ty, operands.into_iter().enumerate().collect(), span);
        }
        let local = self.new_memory(None, ty, span)?;
        let address = Address::of_local(local);
        for (index, operand) in operands.into_iter().enumerate() {
            let (elem, offset) = self.part(ty, index);
            let operand = self.coerce(operand, elem, span)?;
            self.store_memory(&address.clone().plus(offset as i64), elem, operand, span)?;
        }
        Ok(Operand::Memory { ty, address })
    }

    /// Type and byte offset of part `index` of an aggregate type.
    pub(crate) fn part(&self, ty: TypeId, index: usize) -> (TypeId, u64) {
        let profile: Profile = self.profile();
        match self.types.get(ty) {
            Type::Struct(info) => {
                (info.fields[index].1, self.types.field_offset(info, index, profile))
            }
            Type::Array { elem, .. } => {
                let size = self.types.size_align(*elem, profile).map_or(0, |(size, _)| size);
                (*elem, size * index as u64)
            }
            _ => (ty, 0),
        }
    }

    pub(crate) fn typed_struct(
        &mut self,
        ty: ExprId,
        fields: &[FieldInit],
        span: Span,
    ) -> R<Operand> {
        let ty = self.type_expr(ty)?;
        let shared = self.types.shared(ty);
        let Type::Struct(info) = shared.as_ref() else {
            let name = self.type_name(ty);
            let message = format!("`{name}` is no struct type");
            return self.fail(codes::TYPE_MISMATCH, message, span, "this literal");
        };
        self.named_literal(ty, info, fields, span)
    }

    fn named_literal(
        &mut self,
        ty: TypeId,
        info: &StructType,
        fields: &[FieldInit],
        span: Span,
    ) -> R<Operand> {
        let mut given: Vec<Option<Operand>> = vec![None; info.fields.len()];
        for field in fields {
            let at = info.fields.iter().position(|&(name, _)| name == field.name.name);
            let Some(at) = at else {
                let name = self.spell(field.name.name);
                let near = self.near_field(ty, &name);
                let ty = self.type_name(ty);
                let message = format!("`{ty}` has no field `{name}`");
                let diagnostic = Diagnostic::new(codes::UNKNOWN_FIELD, message, field.name.span)
                    .label("given here");
                return Err(self.report(match near {
                    Some(near) => diagnostic.help(near),
                    None => diagnostic,
                }));
            };
            if given[at].is_some() {
                let name = self.spell(field.name.name);
                let message = format!("the field `{name}` is given twice");
                return self.fail(codes::DUPLICATE_FIELD, message, field.name.span, "again here");
            }
            let want = info.fields[at].1;
            let operand = self.expr(field.value, Some(want))?;
            let value_span = self.expr_span(field.value);
            given[at] = Some(self.coerce(operand, want, value_span)?);
        }
        if info.is_union() {
            let given = given.into_iter().enumerate();
            let given = given.filter_map(|(at, operand)| Some((at, operand?))).collect();
            return self.union_literal(ty, given, span);
        }
        let mut operands = Vec::with_capacity(given.len());
        for (operand, &(name, _)) in given.into_iter().zip(&info.fields) {
            let Some(operand) = operand else {
                let name = self.spell(name);
                let message = format!("the field `{name}` has no value");
                return Err(self.report(
                    Diagnostic::new(codes::MISSING_FIELD, message, span)
                        .label("this literal")
                        .help(format!("add `.{name} = …`")),
                ));
            };
            operands.push(operand);
        }
        self.aggregate(ty, operands, span)
    }

    /// A union with one field given.
    fn union_literal(
        &mut self,
        ty: TypeId,
        mut given: Vec<(usize, Operand)>,
        span: Span,
    ) -> R<Operand> {
        let (Some((index, operand)), true) = (given.pop(), given.is_empty()) else {
            let message = "a union has a value in exactly one of its fields";
            return self.fail(codes::MISSING_FIELD, message, span, "this literal");
        };
        match operand {
            Operand::Const(value) => {
                Ok(Operand::Const(Value::new(ty, Data::Union(Rc::new((index, value))))))
            }
            operand if self.packed_info(ty).is_some() => {
                self.pack(ty, vec![(index, operand)], span)
            }
            operand => {
                let local = self.new_memory(None, ty, span)?;
                let address = Address::of_local(local);
                let (elem, _) = self.part(ty, index);
                self.store_memory(&address, elem, operand, span)?;
                Ok(Operand::Memory { ty, address })
            }
        }
    }

    pub(crate) fn typed_array(&mut self, ty: ExprId, elems: &[ExprId], span: Span) -> R<Operand> {
        let ty = self.type_expr(ty)?;
        let shared = self.types.shared(ty);
        let Type::Array { elem, .. } = shared.as_ref() else {
            let name = self.type_name(ty);
            let message = format!("`{name}` is no array type");
            return self.fail(codes::TYPE_MISMATCH, message, span, "this literal");
        };
        let count = self.types.element_count(ty);
        if count != elems.len() as u64 {
            let message = format!("{} elements for an array of {count}", elems.len());
            return self.fail(codes::TYPE_MISMATCH, message, span, "this literal");
        }
        self.array_of(ty, *elem, elems, span)
    }

    fn array_of(&mut self, ty: TypeId, elem: TypeId, elems: &[ExprId], span: Span) -> R<Operand> {
        let mut operands = Vec::with_capacity(elems.len());
        for &id in elems {
            let operand = self.expr(id, Some(elem))?;
            let elem_span = self.expr_span(id);
            operands.push(self.coerce(operand, elem, elem_span)?);
        }
        self.aggregate(ty, operands, span)
    }

    /// `|i, j|{n, m} -> base[…]`: an anonymous struct with base address, offset, strides (one
    /// per variable, in elements) and extents, as descriptors want it.
    pub(crate) fn tensor_access(
        &mut self,
        id: ExprId,
        vars: &[Ident],
        extents: &[ExprId],
        base: ExprId,
        indices: &[ExprId],
        span: Span,
    ) -> R<Operand> {
        if vars.len() != extents.len() || vars.is_empty() || vars.len() > 4 {
            let message =
                format!("{} variables and {} extents: one each, 1 to 4", vars.len(), extents.len());
            return self.fail(codes::INVALID_DSD, message, span, "this tensor access");
        }
        let mut sizes = Vec::with_capacity(extents.len());
        for &extent in extents {
            let operand = self.expr(extent, None)?;
            let extent_span = self.expr_span(extent);
            if !matches!(operand, Operand::Const(_)) {
                return self.run_time_extent(extent_span);
            }
            sizes.push(self.need_const(operand, extent_span)?);
        }
        let TensorBase { pointer, constant, elem, dims } = self.tensor_base(base, span)?;
        let base_ty = self.types.pointer(true, constant, elem);
        let dims = if dims.is_empty() { vec![0; 1] } else { dims };
        if dims.len() != indices.len() {
            return self.tensor_rank(indices.len(), dims.len(), base, span);
        }
        let first = self.frame().file.tensor_slots[id.0 as usize];
        for at in 0..vars.len() as u32 {
            self.frame_mut().slots[(first + at) as usize] = Cell::Induction(at);
        }
        let mut strides = vec![0i128; vars.len()];
        let mut offset = Value::int(self.types.common.comptime_int, 0);
        for (at, &index) in indices.iter().enumerate() {
            let scale: i128 = dims[at + 1..].iter().map(|&dim| i128::from(dim)).product();
            let affine = self.affine(index, vars.len())?;
            for (stride, coefficient) in strides.iter_mut().zip(&affine.coefficients) {
                *stride += coefficient * scale;
            }
            let scale = Value::int(self.types.common.comptime_int, scale);
            let term = self.binary_values(BinaryOp::Mul, &affine.constant, &scale, span)?;
            offset = self.binary_values(BinaryOp::Add, &offset, &term, span)?;
        }
        let strides = self.steps(&strides, &sizes);
        self.tensor_value(
            Value::new(base_ty, Data::Pointer(Rc::new(pointer))),
            offset,
            &strides,
            sizes,
        )
    }

    fn tensor_rank<T>(&mut self, given: usize, dims: usize, base: ExprId, span: Span) -> R<T> {
        let base_span = self.expr_span(base);
        let name = self.source_of(base_span);
        let plural =
            |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        let message = format!(
            "`{name}` has {}, {} given",
            plural(dims, "dimension", "dimensions"),
            plural(given, "index is", "indices are")
        );
        let diagnostic =
            Diagnostic::new(codes::INVALID_DSD, message, span).label("this tensor access");
        Err(self.report(match (given, dims) {
            (1, 2) => diagnostic.help(format!("one row: `|j|{{columns}} -> {name}[row, j]`")).help(
                format!("the whole, with `mem4d_dsd`: `|i, j|{{rows, columns}} -> {name}[i, j]`"),
            ),
            _ => diagnostic.help("give one index for each dimension of the array"),
        }))
    }

    /// Distances of the induction variables as the steps that the machine makes, innermost first:
    /// a step goes back over what the inner variables have covered.
    fn steps(&mut self, strides: &[i128], extents: &[Value]) -> Vec<i128> {
        let mut covered = 0i128;
        let mut steps = Vec::with_capacity(strides.len());
        for (at, &stride) in strides.iter().enumerate().rev() {
            steps.push(stride.wrapping_sub(covered));
            if at > 0 {
                let extent = self.fix_int(&extents[at]).unwrap_or(1);
                covered = covered.wrapping_add(extent.wrapping_sub(1).wrapping_mul(stride));
            }
        }
        steps
    }

    fn tensor_value(
        &mut self,
        base: Value,
        offset: Value,
        strides: &[i128],
        extents: Vec<Value>,
    ) -> R<Operand> {
        let int = self.types.common.comptime_int;
        let strides: Vec<Value> = strides.iter().map(|&stride| Value::int(int, stride)).collect();
        let (strides, extents) = (self.tuple_value(strides), self.tuple_value(extents));
        let names = ["base_address", "offset", "stride", "extent"];
        let values = vec![base, offset, strides, extents];
        let fields = names.iter().zip(&values);
        let fields: Vec<(Symbol, TypeId)> =
            fields.map(|(name, value)| (self.cx.names.intern(name), value.ty)).collect();
        let ty = self.types.anonymous(fields, false);
        Ok(Operand::Const(Value::new(ty, Data::Fields(Rc::new(values)))))
    }

    /// A tuple of known values.
    pub(crate) fn tuple_value(&mut self, values: Vec<Value>) -> Value {
        let empty = self.cx.names.intern("");
        let ty = self.types.anonymous(values.iter().map(|value| (empty, value.ty)).collect(), true);
        Value::new(ty, Data::Fields(Rc::new(values)))
    }

    fn tensor_base(&mut self, base: ExprId, span: Span) -> R<TensorBase> {
        let place = self.place(base)?;
        let ty = self.place_type(&place);
        match self.types.shared(ty).as_ref() {
            Type::Array { dims, elem } => {
                let (address, _) = self.lasting_memory_of(place, span)?;
                // A descriptor names the memory of a variable, whoever passed its value on.
                match address.of_home().known() {
                    Some(pointer) => Ok(TensorBase {
                        constant: self.is_constant(&pointer, span)?,
                        pointer,
                        elem: *elem,
                        dims: dims.to_vec(),
                    }),
                    None => self.run_time_base(span),
                }
            }
            &Type::Pointer { pointee, constant, .. } => {
                let operand = self.load(place, span)?;
                let Operand::Const(Value { data: Data::Pointer(pointer), .. }) = operand else {
                    return self.run_time_base(span);
                };
                let pointer = (*pointer).clone();
                let (elem, dims) = match self.types.get(pointee) {
                    Type::Array { dims, elem } => (*elem, dims.to_vec()),
                    _ => (pointee, Vec::new()),
                };
                Ok(TensorBase { pointer, constant, elem, dims })
            }
            _ => {
                let name = self.type_name(ty);
                let message = format!("a tensor access walks an array, this is `{name}`");
                self.fail(codes::INVALID_DSD, message, span, "this tensor access")
            }
        }
    }

    fn run_time_extent<T>(&mut self, span: Span) -> R<T> {
        let message = "the extents of a tensor access are known at compile time";
        let help = "write `.base_address = &array, .extent = n`, or `@set_dsd_length(dsd, n)`";
        let diagnostic = Diagnostic::new(codes::NOT_COMPTIME, message, span);
        Err(self.report(diagnostic.label("a run-time value").help(help)))
    }

    fn run_time_base<T>(&mut self, span: Span) -> R<T> {
        self.fail(
            codes::INVALID_DSD,
            "a tensor access needs an array whose address is known at compile time",
            span,
            "its base is known only at run time: use `.base_address` and `.extent`",
        )
    }

    /// An index expression as constant plus coefficients of the induction variables.
    fn affine(&mut self, id: ExprId, vars: usize) -> R<Affine> {
        let file = Rc::clone(&self.frame().file);
        let span = file.file.expr_span(id);
        match file.file.expr(id) {
            Ast::Name(_) => {
                if let crate::resolve::Res::Local(slot) = file.res(id)
                    && let Cell::Induction(var) = self.frame().slots[slot as usize]
                {
                    let mut coefficients = vec![0; vars];
                    coefficients[var as usize] = 1;
                    let constant = Value::int(self.types.common.comptime_int, 0);
                    return Ok(Affine { constant, coefficients });
                }
                self.affine_constant(id, vars)
            }
            Ast::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), lhs, rhs } => {
                let (a, b) = (self.affine(*lhs, vars)?, self.affine(*rhs, vars)?);
                let constant = self.binary_values(*op, &a.constant, &b.constant, span)?;
                let sign = if *op == BinaryOp::Sub { -1 } else { 1 };
                let pairs = a.coefficients.iter().zip(&b.coefficients);
                Ok(Affine { constant, coefficients: pairs.map(|(a, b)| a + sign * b).collect() })
            }
            Ast::Binary { op: BinaryOp::Mul, lhs, rhs } => {
                let (a, b) = (self.affine(*lhs, vars)?, self.affine(*rhs, vars)?);
                self.affine_product(a, b, span)
            }
            Ast::Unary { op: UnaryOp::Neg, operand } => {
                let a = self.affine(*operand, vars)?;
                let zero = Value::int(self.types.common.comptime_int, 0);
                let constant = self.binary_values(BinaryOp::Sub, &zero, &a.constant, span)?;
                Ok(Affine { constant, coefficients: a.coefficients.iter().map(|c| -c).collect() })
            }
            Ast::Builtin { name, args, .. }
                if self.cx.names.resolve(*name) == "as" && args.len() == 2 =>
            {
                self.affine(args[1], vars)
            }
            _ => self.affine_constant(id, vars),
        }
    }

    fn affine_product(&mut self, a: Affine, b: Affine, span: Span) -> R<Affine> {
        let (linear, factor) = if b.coefficients.iter().all(|&c| c == 0) { (a, b) } else { (b, a) };
        if factor.coefficients.iter().any(|&c| c != 0) {
            return Err(self.report(
                Diagnostic::new(
                    codes::INVALID_DSD,
                    "the index is not affine: two induction variables are multiplied",
                    span,
                )
                .label("this product")
                .help("an index is a sum of variables times constants, such as `a[2 * i + 1]`; use a loop for anything else"),
            ));
        }
        let constant =
            self.binary_values(BinaryOp::Mul, &linear.constant, &factor.constant, span)?;
        if linear.coefficients.iter().all(|&c| c == 0) {
            return Ok(Affine { constant, coefficients: linear.coefficients });
        }
        // Strides are part of the descriptor: they must be the same on every PE of a program.
        let factor = self.fix_int(&factor.constant).unwrap_or(0);
        let coefficients = linear.coefficients.iter().map(|c| c * factor).collect();
        Ok(Affine { constant, coefficients })
    }

    fn affine_constant(&mut self, id: ExprId, vars: usize) -> R<Affine> {
        let span = self.expr_span(id);
        let operand = self.expr(id, None)?;
        let value = self.need_const(operand, span)?;
        if !self.types.is_int(value.ty) {
            let name = self.type_name(value.ty);
            let message = format!("an index is an integer, this is `{name}`");
            return self.fail(codes::TYPE_MISMATCH, message, span, "not an integer");
        }
        let int = self.types.common.comptime_int;
        let constant = self.coerce_value(value, int, span)?;
        Ok(Affine { constant, coefficients: vec![0; vars] })
    }
}

/// The array that a tensor access walks.
struct TensorBase {
    pointer: Pointer,
    /// Nobody writes there.
    constant: bool,
    elem: TypeId,
    dims: Vec<u64>,
}

/// `constant + sum(coefficient[i] * variable[i])`.
struct Affine {
    constant: Value,
    coefficients: Vec<i128>,
}
