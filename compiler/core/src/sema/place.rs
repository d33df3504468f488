//! Assignable and readable places: variables, fields, elements, pointees.

use std::rc::Rc;

use dflow_ir::registers;
use dflow_syntax::ast::{Expr as Ast, ExprId};
use dflow_syntax::{Diagnostic, Span, Symbol, codes};

use super::address::{Address, AddressBase};
use super::module::DeclView;
use super::types::{MAX_BITS, Type, TypeId};
use super::value::{Data, FuncRef, ModuleId, Pointer, PointerBase, Value};
use super::{Cell, Operand, R, Sema};
use crate::dialect::SdkVersion;
use crate::resolve::{Res, ResolvedFile};
use crate::typed::LocalIdx;

/// Directions by their numbers.
pub(crate) const DIRECTIONS: [&str; 5] = ["WEST", "EAST", "SOUTH", "NORTH", "RAMP"];

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
    /// Bits of a packed struct.
    Bits { base: Box<Place>, shift: u32, ty: TypeId },
    /// A run-time value without a place.
    Value(Operand),
}

impl Sema<'_, '_> {
    /// The place that an expression names.
    pub(crate) fn place(&mut self, id: ExprId) -> R<Place> {
        let file = Rc::clone(&self.frame().file);
        let early = file.is_early(id);
        self.while_early(early, |sema| sema.place_of(&file, id))
    }

    fn place_of(&mut self, file: &ResolvedFile, id: ExprId) -> R<Place> {
        let span = file.file.expr_span(id);
        match file.file.expr(id) {
            Ast::Name(_) => self.name_place(id, span),
            Ast::Field { base, name } => {
                let place = self.place(*base)?;
                // A pointer there is read now.
                let early = file.is_early(*base);
                self.while_early(early, |sema| sema.field_place(place, name.name, span))
            }
            Ast::Index { base, indices } => {
                let place = self.place(*base)?;
                let early = file.is_early(*base);
                self.while_early(early, |sema| sema.index_place(place, indices, span))
            }
            Ast::Deref(base) => {
                let pointer = self.expr(*base, None)?;
                self.deref(pointer, span)
            }
            Ast::Builtin { name, args, .. }
                if args.len() == 2 && self.cx.names.resolve(*name) == "field" =>
            {
                let early = file.is_early(args[0]);
                self.while_early(early, |sema| crate::builtins::field_place(sema, args, span))
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
            Res::None => {
                let file = Rc::clone(&self.frame().file);
                let reported = self.files.report_undeclared(self.cx, &file, id);
                Err(reported.unwrap_or_else(|| unreachable!("resolve keeps what it cannot find")))
            }
        }
    }

    fn slot_place(&mut self, slot: u32, span: Span) -> R<Place> {
        let cell = self.frame().slots[slot as usize].clone();
        match cell {
            Cell::Const(value) => {
                let mut homes = self.frame().homes.iter();
                let home = homes.find(|(of, _)| *of == slot).map(|(_, home)| home.clone());
                Ok(Place::Const { value, home })
            }
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

    pub(crate) fn need_runtime(&mut self, span: Span) -> R<()> {
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
        let (module, decl) = self.defined(module, decl, span)?;
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
        if let Some(code) = DIRECTIONS.iter().position(|&known| known == text) {
            return Ok(Value::int(self.types.common.direction, code as i128));
        }
        let ty = match self.types.by_name(&text) {
            Some(ty) => {
                if ty == self.types.common.comptime_struct {
                    let instead = "leave the type out, or name a struct";
                    self.cx.old_spelling("`comptime_struct`", SdkVersion::NEW, instead, span);
                }
                ty
            }
            None => match (text.as_bytes().first(), text.get(1..).and_then(|n| n.parse().ok())) {
                (Some(b'i'), Some(bits)) if bits <= MAX_BITS => self.types.int(true, bits),
                (Some(b'u'), Some(bits)) if bits <= MAX_BITS => self.types.int(false, bits),
                (Some(b'i' | b'u'), _) if text[1..].bytes().all(|byte| byte.is_ascii_digit()) => {
                    let message =
                        format!("integers of more than {MAX_BITS} bits are not supported");
                    return self.fail(codes::NOT_SUPPORTED, message, span, "this type");
                }
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
                if info.is_packed() && !matches!(base, Place::Const { .. } | Place::Slot { .. }) {
                    return Ok(self.bits_place(base, info, index));
                }
                if let Place::Const { value, .. } = &base
                    && let Data::Union(active) = &value.data
                    && active.0 != index
                {
                    return self.inactive(value.clone(), active.0, info.fields[index].1, span);
                }
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

    /// A field of a known union that is not the one with a value: bits of packed ones can be read.
    fn inactive(&mut self, value: Value, active: usize, ty: TypeId, span: Span) -> R<Place> {
        if let Some(value) = self.other_variant(&value, ty) {
            return Ok(Place::Const { value, home: None });
        }
        let field = match self.types.get(value.ty) {
            Type::Struct(info) => info.fields[active].0,
            _ => return self.undefined(span),
        };
        let message = format!("the union's value is in its field `{}`", self.spell(field));
        self.fail(codes::UNINITIALIZED_VALUE, message, span, "read here")
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
        } else if let Some(near) = self.near_field(ty, &field) {
            diagnostic = diagnostic.help(near);
        }
        Err(self.report(diagnostic))
    }

    fn type_member(&mut self, ty: TypeId, name: Symbol, span: Span) -> R<Value> {
        if let Type::Enum(info) = self.types.shared(ty).as_ref()
            && let Some(&(_, value)) = info.elems.iter().find(|&&(elem, _)| elem == name)
        {
            return Ok(Value::int(ty, value));
        }
        let (type_name, field) = (self.type_name(ty), self.spell(name));
        let message = format!("the type `{type_name}` has no member `{field}`");
        let diagnostic =
            Diagnostic::new(codes::UNKNOWN_FIELD, message, span).label("asked for here");
        Err(self.report(match self.near_field(ty, &field) {
            Some(near) => diagnostic.help(near),
            None => diagnostic,
        }))
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
                let home = home.map(|home| home.plus(offset as i64));
                Place::Const { value: element, home }
            }
            Place::Slot { slot, mut path, ty: _ } => {
                path.push(index);
                Place::Slot { slot, path, ty }
            }
            Place::Memory { address, ty: _, mutable } => {
                let address = address.plus(self.reached(offset, span)?);
                Place::Memory { address, ty, mutable }
            }
            Place::Local { .. } | Place::Value(_) | Place::Bits { .. } => {
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
        self.note_register(&address, span);
        Ok(Place::Memory { address, ty: pointee, mutable: !constant })
    }

    /// Notes an access through a pointer to a configuration register, if the address is known.
    fn note_register(&mut self, address: &Address, span: Span) {
        let Some(Pointer { base: PointerBase::Address, offset }) = address.known() else { return };
        let word = u16::try_from(offset / 2).ok();
        if word.and_then(|word| registers::find(self.target.id, word)).is_some() {
            let what = "a pointer to a configuration register";
            let instead = "read it with `@get_config`, write it with `@set_config`";
            self.cx.old_spelling(what, SdkVersion::OLD, instead, span);
        }
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
            Place::Slot { ty, .. }
            | Place::Local { ty, .. }
            | Place::Memory { ty, .. }
            | Place::Bits { ty, .. } => *ty,
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
            Place::Bits { .. } => self.fail(
                codes::NO_ADDRESS,
                "a field of a packed struct has no address",
                span,
                "its address is needed here",
            ),
            Place::Local { .. } | Place::Value(_) => self.fail(
                codes::NO_ADDRESS,
                "this value has no place in memory",
                span,
                "its address is needed here",
            ),
        }
    }

    /// Whether a pointer leads into a constant.
    pub(crate) fn is_constant(&mut self, pointer: &Pointer, span: Span) -> R<bool> {
        Ok(match pointer.base {
            PointerBase::Constant(_) => true,
            PointerBase::Global { module, decl } => {
                matches!(self.decl(module, decl, span)?, DeclView::Const(_))
            }
            PointerBase::Func(_) | PointerBase::Address => false,
        })
    }

    fn is_private(&self, home: &Pointer) -> bool {
        matches!(home.base, PointerBase::Global { module, .. } if self.is_foreign(module))
    }

    /// This program's copy of another program's constant, made once.
    fn private_constant(&mut self, base: PointerBase, span: Span) -> R<PointerBase> {
        let PointerBase::Global { module, decl } = base else { return Ok(base) };
        if let Some(program) = &self.program
            && let Some(&known) = program.copies.get(&(module, decl))
        {
            return Ok(PointerBase::Constant(known));
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
        let home = self.constant_home(value, None, span)?;
        Ok(Address::of_pointer(&home))
    }

    fn constant_home(&mut self, value: Value, align: Option<u32>, span: Span) -> R<Pointer> {
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
        program.constants.push((value, align));
        let base = PointerBase::Constant((program.constants.len() - 1) as u32);
        Ok(Pointer { base, offset: 0 })
    }

    /// Remembers where a local constant with an alignment is, should its address be wanted: what exists only while
    /// compiling, or in code that runs then, has none.
    pub(crate) fn settle_constant(
        &mut self,
        slot: u32,
        value: Value,
        align: u32,
        span: Span,
    ) -> R<()> {
        let exists = self.types.size_align(value.ty, self.profile()).is_some();
        if exists && self.is_runtime() && self.program.is_some() {
            let home = self.constant_home(value, Some(align), span)?;
            let homes = &mut self.frame_mut().homes;
            homes.retain(|(of, _)| *of != slot);
            homes.push((slot, home));
        }
        Ok(())
    }

    pub(crate) fn not_now<T>(&mut self, module: ModuleId, decl: u32, span: Span) -> R<T> {
        let name = self.decl_name(module, decl);
        if self.is_foreign(module) {
            return self.fail(
                codes::PRIVATE_STATE,
                format!("`{name}` is a variable of another program"),
                span,
                "not visible here",
            );
        }
        let own = &self.modules[module.0 as usize];
        let declared =
            self.files.get(own.source).scopes[own.scope as usize].decls[decl as usize].name.span;
        let array = match &own.decls[decl as usize] {
            super::module::DeclState::Var { ty, .. } => {
                matches!(self.types.get(*ty), Type::Array { .. })
            }
            _ => false,
        };
        let message = format!("`{name}` is a variable: its value is known only at run time");
        Err(self.report(
            Diagnostic::new(codes::NOT_COMPTIME, message, span)
                .label("needed at compile time here")
                .secondary(declared, "declared here")
                .help(match array {
                    true => format!("its address is known: `&{name}`"),
                    false => "declare it with `const` or `param`, if it never changes".to_owned(),
                }),
        ))
    }
}
