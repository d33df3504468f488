//! Symbols of a program: what `export`, `extern` and `linkname` say.
//!
//! All files of a program share them. Invariants: one declaration exports a symbol, and all that
//! name it are of one kind and one type.

use std::collections::BTreeMap;

use dflow_syntax::ast::{Storage, VarKind};
use dflow_syntax::{Diagnostic, Span, codes};

use super::module::DeclView;
use super::types::{Type, TypeId};
use super::value::{FuncRef, ModuleId, PointerBase};
use super::{R, Sema};
use crate::resolve::{Decl, DeclKind};

/// A declaration that belongs to a symbol.
#[derive(Clone, Copy)]
struct Member {
    module: ModuleId,
    decl: u32,
    storage: Storage,
    /// `fn`, `const` or `var`.
    kind: &'static str,
    span: Span,
}

impl Sema<'_, '_> {
    /// A declaration's name in symbol tables: what `linkname` says, or its own; one without a
    /// storage class has the name of its module in front.
    pub(crate) fn symbol_name(&mut self, module: ModuleId, decl: u32) -> R<String> {
        let own = &self.modules[module.0 as usize];
        let file = self.files.get(own.source);
        let declared = &file.scopes[own.scope as usize].decls[decl as usize];
        let (linkname, storage) = words(declared);
        if let Some(linkname) = linkname {
            let (name, _) = self.in_module(module, declared.frame, |sema| {
                sema.arg_string(linkname, "the name of a symbol, as a string")
            })?;
            return Ok(name);
        }
        Ok(match storage {
            Storage::None => self.qualified(module, declared.name.name),
            Storage::Export | Storage::Extern => self.spell(declared.name.name),
        })
    }

    /// Where a declaration is defined: an `extern` one by what this program exports under its name.
    pub(crate) fn defined(
        &mut self,
        module: ModuleId,
        decl: u32,
        span: Span,
    ) -> R<(ModuleId, u32)> {
        let own = &self.modules[module.0 as usize];
        let file = self.files.get(own.source);
        let declared = &file.scopes[own.scope as usize].decls[decl as usize];
        if words(declared).1 != Storage::Extern {
            return Ok((module, decl));
        }
        let symbol = self.symbol_name(module, decl)?;
        for member in self.members(Storage::Export) {
            if self.symbol_name(member.module, member.decl)? == symbol {
                return Ok((member.module, member.decl));
            }
        }
        Err(self.report(
            Diagnostic::new(
                codes::UNRESOLVED_EXTERN,
                format!("nothing of this program exports `{symbol}`"),
                span,
            )
            .label("needed here")
            .secondary(declared.name.span, "declared here without a definition")
            .help("define it with `export` in a file of the program"),
        ))
    }

    /// Keeps what the program's files export, and looks at what their symbols have in common.
    pub(crate) fn link_symbols(&mut self) -> R<()> {
        let mut symbols: BTreeMap<String, Vec<Member>> = BTreeMap::new();
        let mut result = Ok(());
        for storage in [Storage::Export, Storage::Extern] {
            for member in self.members(storage) {
                result = self.exportable(&member).and(result);
                let name = self.symbol_name(member.module, member.decl)?;
                symbols.entry(name).or_default().push(member);
            }
        }
        for (name, members) in &symbols {
            result = self.agree(name, members).and(result);
        }
        for member in self.members(Storage::None) {
            let name = self.symbol_name(member.module, member.decl)?;
            if let Some(known) = symbols.get(&name) {
                let message = format!("`{name}` is a symbol of other files too");
                let help = "write `export` or `extern` here too, or give it another name";
                result = self.clash(message, &member, &known[0], help).and(result);
            }
        }
        result
    }

    /// Declarations of the program being built: exported, external, or plain ones with a
    /// `linkname` or in the program's own file.
    fn members(&self, storage: Storage) -> Vec<Member> {
        let mut members = Vec::new();
        // A program's modules are made one after the other.
        let others = self.modules.iter().rposition(|own| self.layout.current_owner != own.owner);
        let first = others.map_or(0, |at| at + 1);
        for (at, own) in self.modules.iter().enumerate().skip(first) {
            let file = self.files.get(own.source);
            for (decl, declared) in file.scopes[own.scope as usize].decls.iter().enumerate() {
                let (linkname, found) = words(declared);
                let plain = storage == Storage::None && linkname.is_none();
                let Some(kind) = kind(declared) else { continue };
                if found != storage || plain && !own.prefix.is_empty() {
                    continue;
                }
                let (module, span) = (ModuleId(at as u32), declared.name.span);
                members.push(Member { module, decl: decl as u32, storage, kind, span });
            }
        }
        members
    }

    /// All declarations of a symbol are of one kind and type, and one of them defines it.
    fn agree(&mut self, name: &str, members: &[Member]) -> R<()> {
        let Some((first, rest)) = members.split_first() else { return Ok(()) };
        for other in rest {
            if other.storage == Storage::Export && first.storage == Storage::Export {
                let message = format!("`{name}` is exported twice");
                let help = "give one of them another name with `linkname`";
                return self.symbol_error(codes::EXPORT_DUPLICATE, message, other, first, help);
            }
            if other.kind != first.kind {
                let message =
                    format!("`{name}` is a `{}` here and a `{}` there", other.kind, first.kind);
                return self.clash(message, other, first, "declare it alike in all files");
            }
            let (ty, expected) = (self.member_type(other)?, self.member_type(first)?);
            if ty != expected {
                let (ty, expected) = (self.type_name(ty), self.type_name(expected));
                let message = format!("`{name}` has the type `{ty}` here and `{expected}` there");
                return self.clash(message, other, first, "declare it alike in all files");
            }
        }
        Ok(())
    }

    fn clash(&mut self, message: String, here: &Member, there: &Member, help: &str) -> R<()> {
        self.symbol_error(codes::EXPORT_MISMATCH, message, here, there, help)
    }

    fn symbol_error(
        &mut self,
        code: dflow_syntax::Code,
        message: String,
        here: &Member,
        there: &Member,
        help: &str,
    ) -> R<()> {
        Err(self.report(
            Diagnostic::new(code, message, here.span)
                .label("this declaration")
                .secondary(there.span, "the other one")
                .help(help),
        ))
    }

    fn member_type(&mut self, member: &Member) -> R<TypeId> {
        match self.decl(member.module, member.decl, member.span)? {
            DeclView::Const(value) => Ok(value.ty),
            DeclView::Var { ty, .. } => Ok(ty),
            DeclView::Func => {
                let func = FuncRef { module: member.module, decl: member.decl };
                self.func_type(func, member.span)
            }
        }
    }

    /// The types of symbols are those of memory; what is exported stays even if nothing uses it.
    fn exportable(&mut self, member: &Member) -> R<()> {
        let ty = self.member_type(member)?;
        let refused = match self.types.shared(ty).as_ref() {
            Type::Fn { params, ret, .. } if member.kind == "fn" => {
                let void = self.types.common.void;
                let all = params.iter().chain(Some(ret).filter(|&&ret| ret != void)).copied();
                all.collect::<Vec<_>>().into_iter().find(|&ty| !self.is_exportable(ty))
            }
            _ => Some(ty).filter(|&ty| !self.is_exportable(ty)),
        };
        if let Some(ty) = refused {
            let message = format!("a symbol cannot have the type `{}`", self.type_name(ty));
            return Err(self.report(
                Diagnostic::new(codes::INVALID_TYPE, message, member.span)
                    .label("declared here")
                    .help("numbers, bools, colors, enums, arrays of them, pointers, and structs that are `extern` or `packed` are for symbols"),
            ));
        }
        if member.storage == Storage::Export {
            let Member { module, decl, span, .. } = *member;
            if member.kind == "fn" {
                self.program_func(FuncRef { module, decl }, span)?;
            } else {
                self.program_global(PointerBase::Global { module, decl }, span)?;
            }
        }
        Ok(())
    }

    fn is_exportable(&self, ty: TypeId) -> bool {
        match self.types.get(ty) {
            Type::Void
            | Type::ComptimeInt
            | Type::ComptimeFloat
            | Type::ComptimeString
            | Type::ComptimeStruct
            | Type::Meta
            | Type::Module
            | Type::Tile
            | Type::Range(_)
            | Type::Direction
            | Type::Mem1dDsd
            | Type::Mem4dDsd
            | Type::CircbufDsd
            | Type::FabinDsd
            | Type::FaboutDsd
            | Type::DsrDest
            | Type::DsrSrc0
            | Type::DsrSrc1
            | Type::DsrFifoDest
            | Type::DsrFifoSrc1
            | Type::Xdsr
            | Type::Sr
            | Type::Fifo
            | Type::Rect
            | Type::Slice { .. }
            | Type::Fn { .. }
            | Type::Pending(_) => false,
            Type::Array { elem, .. } => self.is_exportable(*elem),
            Type::Pointer { pointee, .. } => match self.types.get(*pointee) {
                Type::Fn { .. } | Type::AnyOpaque => true,
                _ => self.is_exportable(*pointee),
            },
            Type::Bool
            | Type::Int { .. }
            | Type::Float(_)
            | Type::Color
            | Type::DataTaskId
            | Type::LocalTaskId
            | Type::ControlTaskId
            | Type::InputQueue
            | Type::OutputQueue
            | Type::UtId
            | Type::AnyOpaque
            | Type::Enum(_) => true,
            Type::Struct(info) => info.is_extern || info.is_packed(),
        }
    }
}

/// The `linkname` and storage class of a declaration.
fn words(declared: &Decl) -> (Option<dflow_syntax::ast::ExprId>, Storage) {
    match &declared.kind {
        DeclKind::Var(var) => (var.linkname, var.storage),
        DeclKind::Fn(func) => (func.linkname, func.storage),
        DeclKind::Tile(_) => (None, Storage::None),
    }
}

fn kind(declared: &Decl) -> Option<&'static str> {
    match &declared.kind {
        DeclKind::Var(var) => match var.kind {
            VarKind::Const => Some("const"),
            VarKind::Var => Some("var"),
            VarKind::Param => None,
        },
        DeclKind::Fn(_) => Some("fn"),
        DeclKind::Tile(_) => None,
    }
}
