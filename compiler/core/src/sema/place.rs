//! Assignable and readable places: variables, fields, elements, pointees.

use std::rc::Rc;

use dflow_ir::scalar::{BinaryOp as IrBinary, Convert};
use dflow_ir::ty::Ty;
use dflow_syntax::ast::{Expr as Ast, ExprId};
use dflow_syntax::{Diagnostic, Span, Symbol, codes};

use super::address::{Address, AddressBase, typed};
use super::module::DeclView;
use super::types::{Repr, Type, TypeId};
use super::value::{Data, FuncRef, ModuleId, Pointer, PointerBase, Value};
use super::{Cell, Operand, R, Sema};
use crate::resolve::Res;
use crate::typed::{Expr, ExprKind, LocalIdx, StmtKind};

/// A place, before it is read or written.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A known value; `home` is where it would be in memory, for those who need an address.
    Const { value: Value, home: Option<Pointer> },
    /// Part of a comptime variable: slot and element path.
    Slot { slot: u32, path: Vec<usize>, ty: TypeId },
    /// A run-time scalar.
    Local { local: LocalIdx, ty: TypeId, mutable: bool },
    /// Memory.
    Memory { address: Address, ty: TypeId, mutable: bool },
    /// A run-time value without a place.
    Value(Operand),
}

impl Sema<'_, '_> {
    /// The place that an expression names.
    pub(crate) fn place(&mut self, id: ExprId) -> R<Place> {
        let file = Rc::clone(&self.frame().file);
        let span = file.file.expr_span(id);
        match file.file.expr(id) {
            Ast::Name(_) => self.name_place(id, span),
            Ast::Field { base, name } => {
                let base = self.place(*base)?;
                self.field_place(base, name.name, span)
            }
            Ast::Index { base, indices } => {
                let base = self.place(*base)?;
                self.index_place(base, indices, span)
            }
            Ast::Deref(base) => {
                let pointer = self.expr(*base, None)?;
                self.deref(pointer, span)
            }
            Ast::Builtin { name, args, .. }
                if args.len() == 2 && self.cx.names.resolve(*name) == "field" =>
            {
                crate::builtins::field_place(self, args, span)
            }
            _ => {
                let operand = self.expr(id, None)?;
                Ok(self.value_place(operand))
            }
        }
    }

    pub(crate) fn value_place(&mut self, operand: Operand) -> Place {
        match operand {
            Operand::Const(value) => Place::Const { value, home: None },
            Operand::Memory { ty, address } => Place::Memory { address, ty, mutable: false },
            other @ (Operand::Scalar { .. } | Operand::Void) => Place::Value(other),
        }
    }

    fn name_place(&mut self, id: ExprId, span: Span) -> R<Place> {
        let res = self.frame().file.res(id);
        match res {
            Res::Local(slot) => self.slot_place(slot, span),
            Res::Decl { scope, decl } => {
                let module = self.module_of_scope(self.frame().module, scope);
                self.decl_place(module, decl, span)
            }
            Res::Prelude(name) => {
                let value = self.prelude(name, span)?;
                Ok(Place::Const { value, home: None })
            }
            Res::None => Err(self
                .cx
                .sink
                .ok()
                .err()
                .unwrap_or_else(|| unreachable!("unresolved names are reported by resolve"))),
        }
    }

    fn slot_place(&mut self, slot: u32, span: Span) -> R<Place> {
        let cell = self.frame().slots[slot as usize].clone();
        match cell {
            Cell::Const(value) => Ok(Place::Const { value, home: None }),
            Cell::Var(value) => Ok(Place::Slot { slot, path: Vec::new(), ty: value.ty }),
            Cell::Scalar { local, ty, mutable } => {
                self.need_runtime(span)?;
                Ok(Place::Local { local, ty, mutable })
            }
            Cell::Memory { address, ty, mutable } => Ok(Place::Memory { address, ty, mutable }),
            Cell::Failed(reported) => Err(reported),
            Cell::Induction(_) => self.fail(
                codes::INVALID_DSD,
                "a tensor access uses its variables in affine index expressions only",
                span,
                "used in another way here",
            ),
            Cell::Empty => self.fail(
                codes::UNINITIALIZED_VALUE,
                "this variable is used before its declaration has run",
                span,
                "used here",
            ),
        }
    }

    fn need_runtime(&mut self, span: Span) -> R<()> {
        if self.is_runtime() {
            return Ok(());
        }
        self.fail(
            codes::NOT_COMPTIME,
            "this value is known only at run time, and is needed at compile time",
            span,
            "a run-time value",
        )
    }

    /// A module's declaration as a place.
    pub(crate) fn decl_place(&mut self, module: ModuleId, decl: u32, span: Span) -> R<Place> {
        let base = PointerBase::Global { module, decl };
        match self.decl(module, decl, span)? {
            DeclView::Const(value) => {
                Ok(Place::Const { value, home: Some(Pointer { base, offset: 0 }) })
            }
            DeclView::Var { ty, .. } => {
                let address = Address::of_pointer(&Pointer { base, offset: 0 });
                Ok(Place::Memory { address, ty, mutable: true })
            }
            DeclView::Func => {
                let func = FuncRef { module, decl };
                let ty = match self.func_decl(func) {
                    Some(decl) if self.is_generic(&decl) => self.types.common.void,
                    _ => self.func_type(func, span)?,
                };
                let value = Value::new(ty, Data::Func(func));
                Ok(Place::Const { value, home: None })
            }
        }
    }

    fn prelude(&mut self, name: Symbol, span: Span) -> R<Value> {
        let text = self.spell(name);
        let direction = ["WEST", "EAST", "SOUTH", "NORTH", "RAMP"];
        if let Some(code) = direction.iter().position(|&known| known == text) {
            return Ok(Value::int(self.types.common.direction, code as i128));
        }
        let ty = match self.types.by_name(&text) {
            Some(ty) => ty,
            None => match (text.as_bytes().first(), text.get(1..).and_then(|n| n.parse().ok())) {
                (Some(b'i'), Some(bits)) => self.types.int(true, bits),
                (Some(b'u'), Some(bits)) => self.types.int(false, bits),
                _ => {
                    return self.fail(
                        codes::NOT_SUPPORTED,
                        format!("the type `{text}` is not supported yet"),
                        span,
                        "used here",
                    );
                }
            },
        };
        Ok(Value::new(self.types.common.type_, Data::Type(ty)))
    }

    /// A member of a place: struct field, module member, enum element, length.
    pub(crate) fn field_place(&mut self, base: Place, name: Symbol, span: Span) -> R<Place> {
        if let Place::Const { value, .. } = &base {
            match value.data {
                Data::Module(module) => return self.module_member(module, name, span),
                Data::Type(ty) => {
                    let value = self.type_member(ty, name, span)?;
                    return Ok(Place::Const { value, home: None });
                }
                _ => {}
            }
        }
        let ty = self.place_type(&base);
        let shared = self.types.shared(ty);
        match shared.as_ref() {
            Type::Struct(info) => {
                let Some(index) = info.fields.iter().position(|&(field, _)| field == name) else {
                    return self.unknown_field(ty, name, span);
                };
                let offset = self.types.field_offset(info, index, self.profile());
                self.element_place(base, index, info.fields[index].1, offset, span)
            }
            Type::Slice { elem } => self.slice_member(base, *elem, name, span),
            Type::Array { .. } if self.cx.names.resolve(name) == "len" => {
                let count = i128::from(self.types.element_count(ty));
                let value = Value::int(self.types.common.comptime_int, count);
                Ok(Place::Const { value, home: None })
            }
            Type::Pointer { many: false, pointee, .. }
                if matches!(self.types.get(*pointee), Type::Struct(_)) =>
            {
                let pointer = self.load(base, span)?;
                let target = self.deref(pointer, span)?;
                self.field_place(target, name, span)
            }
            _ => self.unknown_field(ty, name, span),
        }
    }

    fn unknown_field<T>(&mut self, ty: TypeId, name: Symbol, span: Span) -> R<T> {
        let (ty_name, field) = (self.type_name(ty), self.spell(name));
        let mut diagnostic = Diagnostic::new(
            codes::UNKNOWN_FIELD,
            format!("a value of type `{ty_name}` has no field `{field}`"),
            span,
        )
        .label("asked for here");
        if field == "len" {
            diagnostic = diagnostic.help("the length of an array type is `@element_count(T)`");
        }
        Err(self.report(diagnostic))
    }

    fn type_member(&mut self, ty: TypeId, name: Symbol, span: Span) -> R<Value> {
        if let Type::Enum(info) = self.types.shared(ty).as_ref() {
            if let Some(&(_, value)) = info.elems.iter().find(|&&(elem, _)| elem == name) {
                return Ok(Value::int(ty, value));
            }
        }
        let (ty, field) = (self.type_name(ty), self.spell(name));
        self.fail(
            codes::UNKNOWN_FIELD,
            format!("the type `{ty}` has no member `{field}`"),
            span,
            "asked for here",
        )
    }

    fn slice_member(&mut self, base: Place, elem: TypeId, name: Symbol, span: Span) -> R<Place> {
        let word = self.spell(name);
        let Place::Memory { address, .. } = base else {
            let ty = self.place_type(&base);
            return self.unknown_field(ty, name, span);
        };
        match word.as_str() {
            "len" => {
                let ty = self.types.common.u64;
                Ok(Place::Memory { address: address.plus(8), ty, mutable: false })
            }
            "ptr" => {
                let ty = self.types.pointer(true, false, elem);
                Ok(Place::Memory { address, ty, mutable: false })
            }
            _ => {
                let ty = self.types.intern(Type::Slice { elem });
                self.unknown_field(ty, name, span)
            }
        }
    }

    /// Element `index` at byte `offset` of an aggregate place.
    pub(crate) fn element_place(
        &mut self,
        base: Place,
        index: usize,
        ty: TypeId,
        offset: u64,
        span: Span,
    ) -> R<Place> {
        Ok(match base {
            Place::Const { value, home } => {
                let Some(element) = value.element(index) else {
                    return self.undefined(span);
                };
                let home = home
                    .map(|home| Pointer { base: home.base, offset: home.offset + offset as i64 });
                Place::Const { value: element, home }
            }
            Place::Slot { slot, mut path, ty: _ } => {
                path.push(index);
                Place::Slot { slot, path, ty }
            }
            Place::Memory { address, ty: _, mutable } => {
                Place::Memory { address: address.plus(offset as i64), ty, mutable }
            }
            Place::Local { .. } | Place::Value(_) => {
                return self.fail(codes::UNKNOWN_FIELD, "this value has no parts", span, "here");
            }
        })
    }

    pub(crate) fn undefined<T>(&mut self, span: Span) -> R<T> {
        self.fail(
            codes::UNINITIALIZED_VALUE,
            "this value is read at compile time before it is written",
            span,
            "read here",
        )
    }

    /// `base[indices]`.
    fn index_place(&mut self, base: Place, indices: &[ExprId], span: Span) -> R<Place> {
        let ty = self.place_type(&base);
        match self.types.shared(ty).as_ref() {
            Type::Array { dims, elem } => {
                if dims.len() != indices.len() {
                    let message =
                        format!("{} indices for {} dimensions", indices.len(), dims.len());
                    return self.fail(codes::NOT_INDEXABLE, message, span, "indexed here");
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
                self.offset_element(address, indices, pointee, !constant, span)
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
                self.fail(
                    codes::NOT_INDEXABLE,
                    format!("a value of type `{name}` has no elements"),
                    span,
                    "indexed here",
                )
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
        self.fail(
            codes::TYPE_MISMATCH,
            format!("an index is an integer, this is `{name}`"),
            span,
            "not an integer",
        )
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
                            let message = format!("index {index} of an array of {}", dims[at]);
                            return self.fail(
                                codes::INDEX_OUT_OF_RANGE,
                                message,
                                index_span,
                                "outside the array",
                            );
                        }
                    }
                }
                other => {
                    self.need_runtime(index_span)?;
                    let bytes = scale.saturating_mul(elem_size.unwrap_or(0));
                    let term = self.scaled_index(other, bytes, index_span)?;
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
    fn scaled_index(&mut self, index: Operand, bytes: u64, span: Span) -> R<Expr> {
        let pointer = self.profile().pointer();
        let ty = self.operand_type(&index);
        let signed = self.types.is_signed(ty);
        let machine =
            if ty == self.types.common.comptime_int { pointer } else { self.machine_ty(ty, span)? };
        let expr = match index {
            Operand::Const(value) => self.const_expr(&value, machine, span)?,
            other => self.scalar_of(other, span)?,
        };
        let expr = self.resize(expr, machine, pointer, signed, span);
        if bytes == 1 {
            return Ok(expr);
        }
        let scale = typed(ExprKind::Const(pointer.mask(bytes)), pointer, span);
        Ok(typed(ExprKind::Binary(IrBinary::Mul, expr, scale), pointer, span))
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
        span: Span,
    ) -> R<Place> {
        if indices.len() != 1 {
            return self.fail(codes::NOT_INDEXABLE, "a pointer takes one index", span, "here");
        }
        let (size, _) = self.runtime_size(elem, span)?;
        let index_span = self.expr_span(indices[0]);
        let address = match self.index_operand(indices[0])? {
            Operand::Const(value) if value.prov == 0 => {
                let index = self.fix_int(&value).unwrap_or(0);
                address.plus((index as i64).wrapping_mul(i64::from(size)))
            }
            other => {
                self.need_runtime(index_span)?;
                let term = self.scaled_index(other, u64::from(size), index_span)?;
                let index = self.add_index(address.index.clone(), term, span);
                Address { index: Some(index), ..address }
            }
        };
        Ok(Place::Memory { address, ty: elem, mutable })
    }

    fn slice_element(
        &mut self,
        address: Address,
        elem: TypeId,
        indices: &[ExprId],
        span: Span,
    ) -> R<Place> {
        let (pointer, offset) = self.split_address(&address, span)?;
        let load = ExprKind::Load { address: pointer, offset };
        let base = Address::of_expr(typed(load, Ty::I64, span));
        self.offset_element(base, indices, elem, true, span)
    }

    /// What a pointer points to.
    pub(crate) fn deref(&mut self, pointer: Operand, span: Span) -> R<Place> {
        let ty = self.operand_type(&pointer);
        let Type::Pointer { many: false, constant, pointee } = *self.types.get(ty) else {
            let name = self.type_name(ty);
            return self.fail(
                codes::NOT_A_POINTER,
                format!("a value of type `{name}` cannot be dereferenced"),
                span,
                "dereferenced here",
            );
        };
        let address = self.pointer_address(pointer, span)?;
        Ok(Place::Memory { address, ty: pointee, mutable: !constant })
    }

    /// The address in a pointer value.
    pub(crate) fn pointer_address(&mut self, pointer: Operand, span: Span) -> R<Address> {
        match pointer {
            Operand::Const(Value { data: Data::Pointer(pointer), .. }) => {
                Ok(Address::of_pointer(&pointer))
            }
            Operand::Const(_) => self.undefined(span),
            other => {
                let expr = self.scalar_of(other, span)?;
                Ok(Address::of_expr(expr))
            }
        }
    }

    pub(crate) fn place_type(&self, place: &Place) -> TypeId {
        match place {
            Place::Const { value, .. } => value.ty,
            Place::Slot { ty, .. } | Place::Local { ty, .. } | Place::Memory { ty, .. } => *ty,
            Place::Value(operand) => self.operand_type(operand),
        }
    }

    /// Memory that holds a place's value, and whether it may be written.
    pub(crate) fn memory_of(&mut self, place: Place, span: Span) -> R<(Address, bool)> {
        match place {
            Place::Memory { address, ty: _, mutable } => Ok((address, mutable)),
            Place::Const { home: Some(home), value } if !self.is_private(&home) => {
                self.runtime_size(value.ty, span)?;
                Ok((Address::of_pointer(&home), false))
            }
            Place::Const { home: Some(home), .. } => {
                let base = self.private_constant(home.base, span)?;
                Ok((Address::of_pointer(&Pointer { base, offset: home.offset }), false))
            }
            Place::Const { value, home: None } => Ok((self.constant_address(value, span)?, false)),
            Place::Slot { .. } => {
                let Operand::Const(value) = self.load(place, span)? else {
                    unreachable!("comptime variables hold values")
                };
                Ok((self.constant_address(value, span)?, false))
            }
            Place::Local { .. } | Place::Value(_) => self.fail(
                codes::NO_ADDRESS,
                "this value has no place in memory",
                span,
                "its address is needed here",
            ),
        }
    }

    fn is_private(&self, home: &Pointer) -> bool {
        matches!(home.base, PointerBase::Global { module, .. } if self.is_foreign(module))
    }

    /// This program's copy of another program's constant, made once.
    fn private_constant(&mut self, base: PointerBase, span: Span) -> R<PointerBase> {
        let PointerBase::Global { module, decl } = base else { return Ok(base) };
        if let Some(program) = &self.program {
            if let Some(&known) = program.copies.get(&(module, decl)) {
                return Ok(PointerBase::Constant(known));
            }
        }
        let DeclView::Const(value) = self.decl(module, decl, span)? else {
            return self.not_now(module, decl, span);
        };
        let address = self.constant_address(value, span)?;
        let AddressBase::Pointer(PointerBase::Constant(idx)) = address.base else {
            unreachable!("constants have a constant's address")
        };
        self.program_mut().copies.insert((module, decl), idx);
        Ok(PointerBase::Constant(idx))
    }

    /// Memory for a constant without a name.
    pub(crate) fn constant_address(&mut self, value: Value, span: Span) -> R<Address> {
        if self.program.is_none() {
            return self.fail(
                codes::NO_ADDRESS,
                "a layout has no memory",
                span,
                "an address is needed here",
            );
        }
        self.runtime_size(value.ty, span)?;
        let program = self.program_mut();
        program.constants.push(value);
        let base = PointerBase::Constant((program.constants.len() - 1) as u32);
        Ok(Address::of_pointer(&Pointer { base, offset: 0 }))
    }

    /// Reads a place.
    pub(crate) fn load(&mut self, place: Place, span: Span) -> R<Operand> {
        match place {
            Place::Const { value, .. } => Ok(Operand::Const(value)),
            Place::Slot { slot, path, .. } => {
                let Cell::Var(root) = &self.frame().slots[slot as usize] else {
                    return self.undefined(span);
                };
                let mut value = root.clone();
                for index in path {
                    match value.element(index) {
                        Some(element) => value = element,
                        None => return self.undefined(span),
                    }
                }
                if matches!(value.data, Data::Undef) {
                    return self.undefined(span);
                }
                Ok(Operand::Const(value))
            }
            Place::Local { local, ty, .. } => {
                let machine = self.machine_ty(ty, span)?;
                Ok(Operand::Scalar { ty, expr: typed(ExprKind::Local(local), machine, span) })
            }
            Place::Memory { address, ty, .. } => self.load_memory(address, ty, span),
            Place::Value(operand) => Ok(operand),
        }
    }

    fn load_memory(&mut self, address: Address, ty: TypeId, span: Span) -> R<Operand> {
        if let AddressBase::Pointer(PointerBase::Global { module, decl }) = address.base {
            if self.is_foreign(module) || !self.is_runtime() {
                return self.not_now(module, decl, span);
            }
        }
        self.need_runtime(span)?;
        match self.types.repr(ty, self.profile()) {
            Repr::Scalar(_) => {
                let machine = self.machine_ty(ty, span)?;
                let (address, offset) = self.split_address(&address, span)?;
                let expr = typed(ExprKind::Load { address, offset }, machine, span);
                Ok(Operand::Scalar { ty, expr })
            }
            Repr::Memory { .. } => Ok(Operand::Memory { ty, address }),
            Repr::Void => Ok(Operand::Void),
            Repr::Comptime => {
                let name = self.type_name(ty);
                let message = format!("a value of type `{name}` exists at compile time only");
                self.fail(codes::NOT_COMPTIME, message, span, "read at run time here")
            }
        }
    }

    fn not_now<T>(&mut self, module: ModuleId, decl: u32, span: Span) -> R<T> {
        let name = self.decl_name(module, decl);
        if self.is_foreign(module) {
            return self.fail(
                codes::PRIVATE_STATE,
                format!("`{name}` is a variable of another program"),
                span,
                "not visible here",
            );
        }
        self.fail(
            codes::NOT_COMPTIME,
            format!("`{name}` is a variable: its value is known only at run time"),
            span,
            "needed at compile time here",
        )
    }

    /// Writes an operand of the place's type to it.
    pub(crate) fn store(&mut self, place: Place, value: Operand, span: Span) -> R<()> {
        match place {
            Place::Slot { slot, path, ty } => {
                if self.frame().depth > 0 && self.is_runtime() {
                    return self.fail(
                        codes::NOT_COMPTIME,
                        "a comptime variable is assigned under a run-time condition",
                        span,
                        "whether this happens is known only at run time",
                    );
                }
                let value = self.need_const(value, span)?;
                let value = self.coerce_value(value, ty, span)?;
                self.assign_slot(slot, &path, value, span)
            }
            Place::Local { local, ty, mutable: true } => {
                let value = self.coerce(value, ty, span)?;
                let value = self.scalar_of(value, span)?;
                self.emit(StmtKind::Set(local, value), span);
                Ok(())
            }
            Place::Memory { address, ty, mutable: true } => {
                if let AddressBase::Pointer(PointerBase::Global { module, decl }) = address.base {
                    if self.is_foreign(module) || !self.is_runtime() {
                        return self.not_now(module, decl, span);
                    }
                }
                self.need_runtime(span)?;
                let value = self.coerce(value, ty, span)?;
                self.store_memory(&address, ty, value, span)
            }
            Place::Local { mutable: false, .. }
            | Place::Memory { mutable: false, .. }
            | Place::Const { .. }
            | Place::Value(_) => self.fail(
                codes::NOT_ASSIGNABLE,
                "this cannot be assigned to",
                span,
                "a constant, a parameter or a value without a place",
            ),
        }
    }

    /// Writes a coerced operand to memory.
    pub(crate) fn store_memory(
        &mut self,
        address: &Address,
        ty: TypeId,
        value: Operand,
        span: Span,
    ) -> R<()> {
        match self.types.repr(ty, self.profile()) {
            Repr::Void => Ok(()),
            Repr::Scalar(_) => {
                let value = self.scalar_of(value, span)?;
                let (address, offset) = self.split_address(address, span)?;
                self.emit(StmtKind::Store { address, offset, value }, span);
                Ok(())
            }
            Repr::Memory { .. } => self.store_aggregate(address, ty, value, span),
            Repr::Comptime => {
                let name = self.type_name(ty);
                let message = format!("a value of type `{name}` exists at compile time only");
                self.fail(codes::NOT_COMPTIME, message, span, "stored at run time here")
            }
        }
    }

    fn assign_slot(&mut self, slot: u32, path: &[usize], value: Value, span: Span) -> R<()> {
        let Sema { frames, types, .. } = self;
        let Some(Cell::Var(root)) = frames.last_mut().map(|f| &mut f.slots[slot as usize]) else {
            return self.fail(codes::NOT_ASSIGNABLE, "no variable", span, "assigned here");
        };
        let mut target = root;
        for &index in path {
            spread(types, target);
            let Data::Fields(fields) = &mut target.data else {
                return self.undefined(span);
            };
            match Rc::make_mut(fields).get_mut(index) {
                Some(element) => target = element,
                None => return self.undefined(span),
            }
        }
        *target = value;
        Ok(())
    }
}

/// An array of one value, or one never written, as one of many values.
fn spread(types: &super::types::TypePool, value: &mut Value) {
    let element = match (&value.data, types.get(value.ty)) {
        (Data::Splat(element), _) => (**element).clone(),
        (Data::Undef, Type::Array { elem, .. }) => Value::new(*elem, Data::Undef),
        (Data::Undef, Type::Struct(info)) => {
            let fields = info.fields.iter().map(|&(_, ty)| Value::new(ty, Data::Undef)).collect();
            value.data = Data::Fields(Rc::new(fields));
            return;
        }
        _ => return,
    };
    // Sizes were checked when the array was made.
    let count = types.element_count(value.ty) as usize;
    value.data = Data::Fields(Rc::new(vec![element; count]));
}
