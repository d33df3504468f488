//! Expressions that are types.

use std::rc::Rc;

use dflow_syntax::ast::{EnumElem, Expr as Ast, ExprId, FieldDecl, Param, ParamTy, StructKind};
use dflow_syntax::{Diagnostic, Span, Symbol, codes};

use super::ops;
use super::types::{EnumType, Layout, StructType, Type, TypeId};
use super::value::{Data, Value};
use super::{Cell, Operand, R, Sema};
use crate::resolve::Res;

/// Types that may be nested in each other.
const MAX_DEPTH: u32 = 256;

/// Types that may be part of one, each as often as it stands there.
const MAX_PARTS: u32 = 1 << 16;

/// Elements that a comptime array may have.
pub(crate) const MAX_ELEMENTS: u64 = 1 << 24;

impl Sema<'_, '_> {
    /// Evaluates an expression that must be a type.
    pub(crate) fn type_expr(&mut self, id: ExprId) -> R<TypeId> {
        self.at_comptime(|sema| sema.type_inner(id))
    }

    fn type_inner(&mut self, id: ExprId) -> R<TypeId> {
        let file = Rc::clone(&self.frame().file);
        let span = file.file.expr_span(id);
        match file.file.expr(id) {
            Ast::ArrayType { dims, elem } => self.array_type(dims, *elem, span),
            Ast::PointerType { many, constant, pointee } => {
                // A type that fails may leave it at another number.
                let outer = self.behind_pointer;
                self.behind_pointer = outer + 1;
                let ty = self.pointee(*pointee, span);
                self.behind_pointer = outer;
                let pointee = ty?;
                let ty = self.types.pointer(*many, *constant, pointee);
                self.shallow(ty, span)
            }
            Ast::FnType { is_task, params, ret } => self.fn_type(*is_task, params, *ret),
            Ast::StructType { kind, is_union, fields } => {
                self.struct_type(id, *kind, *is_union, fields, span)
            }
            Ast::EnumType { backing, elems } => self.enum_type(id, *backing, elems, span),
            _ => {
                let operand = self.expr(id, None)?;
                self.type_of_operand(operand, span)
            }
        }
    }

    /// What a pointer type points to; a value behind the star is meant to be followed.
    fn pointee(&mut self, id: ExprId, span: Span) -> R<TypeId> {
        let file = Rc::clone(&self.frame().file);
        let value = matches!(file.file.expr(id), Ast::Name(_)).then(|| file.res(id));
        if !value.is_some_and(|res| self.is_pointer_variable(res, span)) {
            return self.type_inner(id);
        }
        let name = self.source_of(file.file.expr_span(id));
        Err(self.report(
            Diagnostic::new(codes::ZIG_HABIT, "a star in front makes a pointer type", span)
                .label("follows no pointer")
                .help(format!("what `{name}` points to is `{name}.*`")),
        ))
    }

    fn is_pointer_variable(&mut self, res: Res, span: Span) -> bool {
        let ty = match res {
            Res::Local(slot) => match &self.frame().slots[slot as usize] {
                Cell::Scalar { ty, .. } | Cell::Memory { ty, .. } => Some(*ty),
                _ => None,
            },
            Res::Decl { scope, decl } => {
                let module = self.module_of_scope(self.frame().module, scope);
                self.variable_type(module, decl, span).ok().flatten()
            }
            Res::Prelude(_) | Res::None => None,
        };
        ty.is_some_and(|ty| matches!(self.types.get(ty), Type::Pointer { .. }))
    }

    /// The type, unless it is too large to walk.
    pub(crate) fn shallow(&mut self, ty: TypeId, span: Span) -> R<TypeId> {
        let (depth, parts) = self.types.extent(ty);
        if depth > MAX_DEPTH {
            let message = format!("this type is nested more than {MAX_DEPTH} deep");
            return self.fail(codes::NESTING_TOO_DEEP, message, span, "made here");
        }
        if parts > MAX_PARTS {
            let message = format!("this type has more than {MAX_PARTS} parts");
            return self.fail(codes::NESTING_TOO_DEEP, message, span, "made here");
        }
        Ok(ty)
    }

    fn type_of_operand(&mut self, operand: Operand, span: Span) -> R<TypeId> {
        if let Operand::Const(Value { data: Data::Type(ty), .. }) = operand {
            return Ok(ty);
        }
        let ty = self.operand_type(&operand);
        let name = self.type_name(ty);
        let message = format!("a type is needed here, this is a value of type `{name}`");
        self.fail(codes::UNKNOWN_TYPE, message, span, "not a type")
    }

    fn array_type(&mut self, dims: &[ExprId], elem: ExprId, span: Span) -> R<TypeId> {
        if dims.is_empty() {
            let elem = self.type_inner(elem)?;
            return Ok(self.types.intern(Type::Slice { elem }));
        }
        let mut sizes = Vec::with_capacity(dims.len());
        for &dim in dims {
            let operand = self.expr(dim, None)?;
            let size = self.need_int(operand, dim, "the size of an array")?;
            match u64::try_from(size) {
                Ok(size) => sizes.push(size),
                Err(_) => {
                    let span = self.expr_span(dim);
                    let message = format!("an array cannot have {size} elements");
                    return self.fail(codes::INVALID_TYPE, message, span, "this size");
                }
            }
        }
        let elem = self.type_inner(elem)?;
        if matches!(self.types.get(elem), Type::Array { .. }) {
            return self.fail(
                codes::INVALID_TYPE,
                "an array cannot have arrays as elements: write the dimensions together, `[a, b]T`",
                span,
                "array of arrays",
            );
        }
        let count = sizes.iter().try_fold(1u64, |count, &size| count.checked_mul(size));
        match count {
            Some(count) if count <= 1 << 32 => Ok(self.types.array(&sizes, elem)),
            _ => {
                let shown: Vec<String> = sizes.iter().map(u64::to_string).collect();
                self.fail(
                    codes::ARRAY_TOO_LARGE,
                    format!("an array of {} elements fits no memory", shown.join(" x ")),
                    span,
                    "this array",
                )
            }
        }
    }

    fn fn_type(&mut self, is_task: bool, params: &[Param], ret: ExprId) -> R<TypeId> {
        let mut types = Vec::with_capacity(params.len());
        for param in params {
            match param.ty {
                ParamTy::Expr(ty) => types.push(self.type_inner(ty)?),
                ParamTy::Anytype => {
                    return self.fail(
                        codes::INVALID_SIGNATURE,
                        "a function type has no `anytype`",
                        param.span,
                        "this parameter",
                    );
                }
            }
        }
        let ret = self.type_inner(ret)?;
        Ok(self.types.intern(Type::Fn { is_task, params: types.into(), ret }))
    }

    fn struct_type(
        &mut self,
        id: ExprId,
        kind: StructKind,
        is_union: bool,
        fields: &[FieldDecl],
        span: Span,
    ) -> R<TypeId> {
        let layout = match (kind, is_union) {
            (StructKind::Packed, true) => Layout::PackedUnion,
            (StructKind::Packed, false) => Layout::Packed,
            (StructKind::Auto | StructKind::Extern, true) => Layout::Union,
            (StructKind::Auto | StructKind::Extern, false) => Layout::InOrder,
        };
        let outer = std::mem::take(&mut self.behind_pointer);
        let mut types: Vec<(Symbol, TypeId)> = Vec::with_capacity(fields.len());
        for field in fields {
            if types.iter().any(|&(name, _)| name == field.name.name) {
                let name = self.spell(field.name.name);
                let message = format!("the field `{name}` is declared twice");
                return self.fail(codes::DUPLICATE_FIELD, message, field.name.span, "again here");
            }
            let ty = self.type_inner(field.ty)?;
            types.push((field.name.name, ty));
        }
        self.behind_pointer = outer;
        let nominal = Some((self.frame().file.file.id.0, id.0));
        let is_extern = kind == StructKind::Extern;
        let info = StructType { nominal, tuple: false, layout, is_extern, fields: types };
        if info.is_packed() {
            self.check_packed(&info, span)?;
        }
        let ty = Type::Struct(Rc::new(info));
        if self.pending.is_empty() {
            return Ok(self.types.intern(ty));
        }
        let site = self.struct_site(id);
        Ok(match self.pending.remove(&site) {
            Some(pending) => {
                self.completed.insert(site, pending);
                self.types.complete(pending, ty)
            }
            None => self.types.intern(ty),
        })
    }

    /// The type that stands for a struct whose declaration is under way, where a pointer to it is meant.
    pub(crate) fn pending_struct(
        &mut self,
        file: u32,
        init: ExprId,
        module: u32,
    ) -> Option<TypeId> {
        if self.behind_pointer == 0 {
            return None;
        }
        let site = (file, init.0, self.first_alike(module));
        if let Some(&known) = self.pending.get(&site).or_else(|| self.completed.get(&site)) {
            return Some(known);
        }
        let pending = self.types.pending();
        self.pending.insert(site, pending);
        Some(pending)
    }

    /// Where a struct is declared: file, expression, and the first instance whose structs are the same.
    fn struct_site(&mut self, id: ExprId) -> (u32, u32, u32) {
        let frame = self.frame();
        let (file, module) = (frame.file.file.id.0, frame.module.0);
        (file, id.0, self.first_alike(module))
    }

    /// The first instance of the same source with the same params. Structs of others may still be the same; with
    /// pointers to their own kind they are not, as that is known only at their end.
    fn first_alike(&mut self, module: u32) -> u32 {
        let own = &self.modules[module as usize];
        let (source, scope, parent) = (own.source, own.scope, own.parent);
        if parent.is_some() {
            return module;
        }
        let params = self.params_text(module);
        let mut before = 0..module;
        let first = before.find(|&other| {
            let known = &self.modules[other as usize];
            let same = known.source == source && known.scope == scope && known.parent.is_none();
            same && self.params_text(other) == params
        });
        first.unwrap_or(module)
    }

    fn params_text(&mut self, module: u32) -> Vec<(Symbol, String)> {
        let params = self.modules[module as usize].params.clone();
        let texts = params.into_iter().map(|(name, value, _)| (name, self.key_text(&value)));
        texts.collect()
    }

    fn enum_type(
        &mut self,
        id: ExprId,
        backing: Option<ExprId>,
        elems: &[EnumElem],
        span: Span,
    ) -> R<TypeId> {
        let backing = match backing {
            Some(backing) => self.type_inner(backing)?,
            None => self.types.common.u16,
        };
        if !matches!(self.types.get(backing), Type::Int { .. }) {
            let name = self.type_name(backing);
            let message = format!("an enum is backed by a sized integer, not by `{name}`");
            return self.fail(codes::INVALID_TYPE, message, span, "declared here");
        }
        let mut values: Vec<(Symbol, Option<i128>)> = Vec::with_capacity(elems.len());
        for elem in elems {
            if values.iter().any(|&(name, _)| name == elem.name.name) {
                let name = self.spell(elem.name.name);
                let message = format!("the element `{name}` is declared twice");
                return self.fail(codes::DUPLICATE_FIELD, message, elem.name.span, "again here");
            }
            let value = match elem.value {
                Some(value) => {
                    let operand = self.expr(value, Some(backing))?;
                    Some(self.need_int(operand, value, "the value of an enum element")?)
                }
                None => None,
            };
            values.push((elem.name.name, value));
        }
        let taken: Vec<i128> = values.iter().filter_map(|&(_, value)| value).collect();
        let mut next = 0;
        let mut named = Vec::with_capacity(values.len());
        for (name, value) in values {
            let value = value.unwrap_or_else(|| {
                while taken.contains(&next) {
                    next += 1;
                }
                next += 1;
                next - 1
            });
            if let Err((code, message)) = ops::fit(&self.types, backing, value) {
                return self.fail(code, message, span, "an element of this enum");
            }
            if let Some(&(first, _)) = named.iter().find(|&&(_, known)| known == value) {
                let (first, name) = (self.spell(first), self.spell(name));
                let message = format!("`{first}` and `{name}` have the same value, {value}");
                return self.fail(codes::DUPLICATE_CASE, message, span, "elements of one enum");
            }
            named.push((name, value));
        }
        let nominal = (self.frame().file.file.id.0, id.0);
        let info = EnumType { nominal, backing, elems: named };
        Ok(self.types.intern(Type::Enum(Rc::new(info))))
    }
}
