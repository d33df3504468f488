//! Module instances: a file or tile with given params, and its declarations on demand.

use std::rc::Rc;

use dflow_ir::func::MAX_ALIGN;
use dflow_syntax::ast::{Expr as Ast, ExprId, FnDecl, ParamTy, Storage, VarDecl, VarKind};
use dflow_syntax::{Diagnostic, Reported, Span, Symbol, codes};

use super::types::{Type, TypeId};
use super::value::{Data, FuncRef, ModuleId, Value};
use super::{BodyKind, Cell, Frame, Operand, R, Sema};
use crate::load::SourceIdx;
use crate::resolve::{Body, DeclKind, nearest};

/// A file or tile with its params.
pub(crate) struct Module {
    pub(crate) source: SourceIdx,
    /// Scope of the file: 0, or a tile block.
    pub(crate) scope: u32,
    /// The file's instance, for tile blocks.
    pub(crate) parent: Option<ModuleId>,
    /// Put before names in reports; empty for programs' own modules.
    pub(crate) prefix: String,
    pub(crate) params: Vec<(Symbol, Value, Span)>,
    /// The `@import_module` that made it, if one did.
    pub(crate) imported: Option<Span>,
    pub(crate) decls: Vec<DeclState>,
    /// Which program it belongs to: 0 is the layout.
    pub(crate) owner: u32,
}

/// How far a declaration is.
#[derive(Clone, Debug)]
pub(crate) enum DeclState {
    Todo,
    Busy,
    Const(Value),
    Var { ty: TypeId, init: Option<Value> },
    Failed(Reported),
}

/// What a declaration is, once evaluated.
#[derive(Clone, Debug)]
pub(crate) enum DeclView {
    Const(Value),
    Var { ty: TypeId, init: Option<Value> },
    Func,
}

impl Sema<'_, '_> {
    /// A new instance. Params that the module does not have are warned of.
    pub(crate) fn instantiate(
        &mut self,
        source: SourceIdx,
        scope: u32,
        parent: Option<ModuleId>,
        prefix: String,
        params: Vec<(Symbol, Value, Span)>,
    ) -> ModuleId {
        let file = self.files.get(source);
        let count = file.scopes[scope as usize].decls.len();
        let owner = self.layout.current_owner;
        let id = ModuleId(self.modules.len() as u32);
        self.modules.push(Module {
            source,
            scope,
            parent,
            prefix,
            params,
            imported: None,
            decls: vec![DeclState::Todo; count],
            owner,
        });
        id
    }

    /// Whether a module's state belongs to another program than the one being built.
    pub(crate) fn is_foreign(&self, module: ModuleId) -> bool {
        self.modules[module.0 as usize].owner != self.layout.current_owner
    }

    /// The instance that a name of `scope` belongs to, seen from `module`.
    pub(crate) fn module_of_scope(&self, module: ModuleId, scope: u32) -> ModuleId {
        let own = &self.modules[module.0 as usize];
        if own.scope == scope { module } else { own.parent.unwrap_or(module) }
    }

    /// The declaration's index in a module, by name.
    pub(crate) fn member(&self, module: ModuleId, name: Symbol) -> Option<u32> {
        let own = &self.modules[module.0 as usize];
        let file = self.files.get(own.source);
        file.scopes[own.scope as usize].by_name.get(&name).copied()
    }

    pub(crate) fn decl_name(&self, module: ModuleId, decl: u32) -> String {
        let own = &self.modules[module.0 as usize];
        let file = self.files.get(own.source);
        self.spell(file.scopes[own.scope as usize].decls[decl as usize].name.name)
    }

    /// Alignment, `export` and place of a global's declaration.
    pub(crate) fn global_attributes(
        &mut self,
        module: ModuleId,
        decl: u32,
    ) -> R<(Option<u32>, bool, Span)> {
        let own = &self.modules[module.0 as usize];
        let file = self.files.get(own.source);
        let declared = &file.scopes[own.scope as usize].decls[decl as usize];
        let DeclKind::Var(var) = &declared.kind else { return Ok((None, false, declared.span)) };
        let exported = var.storage == Storage::Export;
        let Some(align) = var.align else { return Ok((None, exported, declared.span)) };
        let frame = declared.frame;
        let align = self.in_module(module, frame, |sema| sema.alignment(align))?;
        Ok((Some(align), exported, declared.span))
    }

    /// What `align(…)` says, in bytes.
    pub(crate) fn alignment(&mut self, align: ExprId) -> R<u32> {
        let value = self.at_comptime(|sema| {
            let operand = sema.expr(align, None)?;
            sema.need_int(operand, align, "an alignment")
        })?;
        match u32::try_from(value) {
            Ok(align) if align.is_power_of_two() && align <= MAX_ALIGN => Ok(align),
            _ => {
                let message =
                    format!("{value} is no alignment: a power of two up to {MAX_ALIGN} is");
                let span = self.expr_span(align);
                self.fail(codes::INVALID_ALIGNMENT, message, span, "this alignment")
            }
        }
    }

    /// The `linksection` of a global's declaration.
    pub(crate) fn section(&mut self, module: ModuleId, decl: u32) -> R<Option<String>> {
        let own = &self.modules[module.0 as usize];
        let file = self.files.get(own.source);
        let declared = &file.scopes[own.scope as usize].decls[decl as usize];
        let DeclKind::Var(var) = &declared.kind else { return Ok(None) };
        let (Some(section), frame) = (var.linksection, declared.frame) else { return Ok(None) };
        let (name, _) = self.in_module(module, frame, |sema| {
            sema.arg_string(section, "the name of a section, as a string")
        })?;
        Ok(Some(name))
    }

    /// Runs comptime work in a frame of a module.
    pub(crate) fn in_module<T>(
        &mut self,
        module: ModuleId,
        slots: u32,
        work: impl FnOnce(&mut Self) -> R<T>,
    ) -> R<T> {
        self.push_frame(module, slots, true, BodyKind::Value)?;
        let result = work(self);
        self.frames.pop();
        result
    }

    /// Opens a frame; calls nested too deep end here.
    pub(crate) fn push_frame(
        &mut self,
        module: ModuleId,
        slots: u32,
        comptime: bool,
        kind: BodyKind,
    ) -> R<()> {
        let file = self.files.get(self.modules[module.0 as usize].source);
        if self.frames.len() >= self.cx.options.comptime_depth as usize {
            let here = Span::new(file.file.id, 0, 0);
            let span = self.trace.last().map_or(here, super::TraceStep::span);
            let limit = self.cx.options.comptime_depth;
            return self.fail(
                codes::RECURSION_LIMIT,
                format!("more than {limit} calls are nested at compile time"),
                span,
                "the innermost call",
            );
        }
        self.frames.push(Frame {
            module,
            file,
            slots: vec![Cell::Empty; slots as usize],
            comptime,
            kind,
            ret: None,
            labels: Vec::new(),
            depth: 0,
            any_struct: Vec::new(),
            vars: super::vars::Vars::default(),
            looks: super::peek::Looks::default(),
            homes: Vec::new(),
        });
        Ok(())
    }

    /// Evaluates a declaration, once.
    pub(crate) fn decl(&mut self, module: ModuleId, decl: u32, span: Span) -> R<DeclView> {
        let own = &self.modules[module.0 as usize];
        match &own.decls[decl as usize] {
            DeclState::Const(value) => return Ok(DeclView::Const(value.clone())),
            DeclState::Var { ty, init } => {
                return Ok(DeclView::Var { ty: *ty, init: init.clone() });
            }
            DeclState::Failed(reported) => return Err(*reported),
            DeclState::Busy => {
                if let Some(ty) = self.struct_under_way(module, decl) {
                    return Ok(DeclView::Const(Value::new(
                        self.types.common.type_,
                        Data::Type(ty),
                    )));
                }
                return self.on_itself(module, decl, span);
            }
            DeclState::Todo => {}
        }
        let file = self.files.get(own.source);
        let scope = own.scope;
        let declared = &file.scopes[scope as usize].decls[decl as usize];
        let result = match &declared.kind {
            DeclKind::Fn(_) => return Ok(DeclView::Func),
            DeclKind::Tile(inner) => {
                let value = Value::new(self.types.common.tile, Data::Tile(module, *inner));
                Ok(DeclState::Const(value))
            }
            DeclKind::Var(var) => {
                self.modules[module.0 as usize].decls[decl as usize] = DeclState::Busy;
                // A declaration's own evaluation starts a new story.
                let trace = std::mem::take(&mut self.trace);
                self.busy.push((module, decl, span));
                let result = self.variable(module, var, declared.frame, span);
                self.busy.pop();
                self.trace = trace;
                result
            }
        };
        let state = match result {
            Ok(state) => state,
            Err(reported) => DeclState::Failed(reported),
        };
        if let DeclState::Const(Value { data: Data::Type(ty), .. }) = state {
            self.types.declare(ty, declared.name.name);
        }
        self.modules[module.0 as usize].decls[decl as usize] = state.clone();
        match state {
            DeclState::Const(value) => Ok(DeclView::Const(value)),
            DeclState::Var { ty, init } => Ok(DeclView::Var { ty, init }),
            DeclState::Failed(reported) => Err(reported),
            DeclState::Todo | DeclState::Busy => unreachable!("just evaluated"),
        }
    }

    /// The struct that a declaration makes, while it is evaluated.
    pub(crate) fn struct_under_way(&mut self, module: ModuleId, decl: u32) -> Option<TypeId> {
        let own = &self.modules[module.0 as usize];
        let file = self.files.get(own.source);
        let DeclKind::Var(var) = &file.scopes[own.scope as usize].decls[decl as usize].kind else {
            return None;
        };
        let init = var.init.filter(|_| var.kind == VarKind::Const)?;
        match file.file.expr(init) {
            Ast::StructType { .. } => self.pending_struct(file.file.id.0, init, module.0),
            _ => None,
        }
    }

    fn variable(
        &mut self,
        module: ModuleId,
        var: &VarDecl,
        slots: u32,
        used: Span,
    ) -> R<DeclState> {
        let given = self.modules[module.0 as usize]
            .params
            .iter()
            .find(|(name, _, _)| *name == var.name.name)
            .cloned();
        // The first instance is the layout's own.
        let text = self.given.iter().find(|given| module.0 == 0 && given.name == var.name.name);
        let text = text.cloned();
        self.in_module(module, slots, |sema| {
            let ty = match var.ty {
                Some(ty) => Some(sema.type_expr(ty)?),
                None => None,
            };
            if let Some(align) = var.align {
                sema.alignment(align)?;
            }
            if var.kind == VarKind::Param {
                if let Some(text) = text {
                    return crate::params::value(sema, &text, ty, var.name.span)
                        .map(DeclState::Const);
                }
                if let Some((_, value, span)) = given
                    .filter(|(_, value, _)| !(sema.is_left_out(value.ty, ty) && var.init.is_some()))
                {
                    return sema.param_value(var, value, ty, span).map(DeclState::Const);
                }
                if var.init.is_none() {
                    return sema.missing_param(module, var, used);
                }
            }
            sema.initialized(var, ty)
        })
    }

    /// Whether `{}` is given for a param that is declared to be something else.
    fn is_left_out(&self, given: TypeId, declared: Option<TypeId>) -> bool {
        let void = self.types.common.void;
        given == void && declared.is_some_and(|declared| declared != void)
    }

    /// A given param as its declared type; colors may be given by their numbers.
    fn param_value(
        &mut self,
        var: &VarDecl,
        value: Value,
        ty: Option<TypeId>,
        span: Span,
    ) -> R<Value> {
        let Some(ty) = ty else { return Ok(value) };
        if self.never_converts(value.ty, ty) {
            return self.param_mismatch(var, value.ty, ty, span);
        }
        if ty == self.types.common.color && self.types.is_int(value.ty) {
            let color = crate::builtins::color_value(self, &value, span)?;
            return Ok(Value::int(ty, color.index().into()));
        }
        self.coerce_value(value, ty, span)
    }

    /// Whether no value of one plain type becomes one of the other.
    fn never_converts(&self, from: TypeId, to: TypeId) -> bool {
        let common = &self.types.common;
        let number = |ty| self.types.is_int(ty) || self.types.is_float(ty);
        self.types.is_float(from) && self.types.is_int(to)
            || number(from) && to == common.bool
            || from == common.bool && number(to)
            || from == common.comptime_string && to != from
    }

    fn param_mismatch<T>(&mut self, var: &VarDecl, from: TypeId, to: TypeId, span: Span) -> R<T> {
        let (name, from) = (self.spell(var.name.name), self.type_name(from));
        let message =
            format!("param `{name}` has type `{}`, and is given a `{from}`", self.type_name(to));
        Err(self.report(
            Diagnostic::new(codes::TYPE_MISMATCH, message, span)
                .label("given here")
                .secondary(var.name.span, "declared here"),
        ))
    }

    fn missing_param<T>(&mut self, module: ModuleId, var: &VarDecl, used: Span) -> R<T> {
        let name = self.spell(var.name.name);
        let options = &self.cx.options;
        let flag = options.params_from.written(&name, "…");
        let given = options.params.iter().map(|(name, _)| name.as_str());
        let misspelt = nearest(&name, given).map(str::to_owned).filter(|_| module.0 == 0);
        let library = self.cx.in_library(var.name.span);
        let import = self.modules[module.0 as usize].imported.filter(|_| library);
        if let Some(import) = import {
            let path = self.cx.file_name(var.name.span.file);
            return Err(self.report(
                Diagnostic::new(
                    codes::MISSING_PARAM,
                    format!("param `{name}` of {path} has no value"),
                    import,
                )
                .label("imported here")
                .secondary(var.name.span, "declared without a default")
                .help(format!("import it with its params, `@import_module(path, params)`: `.{name}` is one of them")),
            ));
        }
        let help = match (misspelt, module.0) {
            (Some(given), _) => format!("`{given}` is given: is it `{name}` that is meant?"),
            (None, 0) => format!("give it a value: `{flag}`"),
            (None, _) => format!("give it: `.{name} = …` where this code is placed or imported"),
        };
        Err(self.report(
            Diagnostic::new(codes::MISSING_PARAM, format!("param `{name}` has no value"), used)
                .label("used here")
                .secondary(var.name.span, "declared without a default")
                .help(help),
        ))
    }

    /// The import that made the module being analyzed, if a place in it is in a library and the import
    /// is not.
    pub(crate) fn library_import(&self, place: Span) -> Option<Span> {
        let import = self.modules[self.frame().module.0 as usize].imported?;
        (self.cx.in_library(place) && !self.cx.in_library(import)).then_some(import)
    }

    fn initialized(&mut self, var: &VarDecl, ty: Option<TypeId>) -> R<DeclState> {
        let value = match var.init {
            Some(init) => {
                let span = self.expr_span(init);
                let operand = self.expr(init, ty)?;
                let value = self.need_const(operand, span)?;
                Some(match ty {
                    Some(ty) => self.coerce_value(value, ty, span)?,
                    None => value,
                })
            }
            None => None,
        };
        if let (Some(ty), None, Storage::Export | Storage::Extern) = (ty, &value, var.storage) {
            return Ok(DeclState::Var { ty, init: None });
        }
        if var.kind != VarKind::Var {
            return match value {
                Some(value) => Ok(DeclState::Const(value)),
                None => self.fail(
                    codes::MISSING_INITIALIZER,
                    "a constant needs a value",
                    var.name.span,
                    "no value is given",
                ),
            };
        }
        match (ty, value) {
            (Some(ty), init) => Ok(DeclState::Var { ty, init }),
            (None, Some(Value { data: Data::Module(_), .. })) => {
                let name = self.spell(var.name.name);
                Err(self.report(
                    Diagnostic::new(
                        codes::NOT_COMPTIME,
                        "a module exists at compile time only",
                        var.name.span,
                    )
                    .label("a variable of run time")
                    .help(format!("bind it to a constant: `const {name} = @import_module(…);`")),
                ))
            }
            (None, Some(value)) => {
                let value = self.default_type(value, var.name.span)?;
                Ok(DeclState::Var { ty: value.ty, init: Some(value) })
            }
            (None, None) => self.fail(
                codes::MISSING_TYPE,
                "a variable needs a type or a value",
                var.name.span,
                "neither is given",
            ),
        }
    }

    /// The type of a variable that a module declares; none of what is no variable.
    pub(crate) fn variable_type(
        &mut self,
        module: ModuleId,
        decl: u32,
        span: Span,
    ) -> R<Option<TypeId>> {
        Ok(match self.decl(module, decl, span)? {
            DeclView::Var { ty, .. } => Some(ty),
            DeclView::Const(_) | DeclView::Func => None,
        })
    }

    /// A function's declaration and the file it stands in.
    pub(crate) fn func_decl(&self, func: FuncRef) -> Option<Rc<FnDecl>> {
        let own = &self.modules[func.module.0 as usize];
        self.files.get(own.source).func(own.scope, func.decl).cloned()
    }

    /// Slots of a declaration's body.
    pub(crate) fn decl_frame(&self, func: FuncRef) -> u32 {
        let own = &self.modules[func.module.0 as usize];
        self.files.get(own.source).scopes[own.scope as usize].decls[func.decl as usize].frame
    }

    /// Whether parameters are all plain run-time ones.
    pub(crate) fn is_generic(&self, decl: &FnDecl) -> bool {
        decl.params.iter().any(|param| param.comptime || param.ty == ParamTy::Anytype)
    }

    /// Type of a function that is not generic.
    pub(crate) fn func_type(&mut self, func: FuncRef, span: Span) -> R<TypeId> {
        let Some(decl) = self.func_decl(func) else {
            return self.fail(codes::NOT_CALLABLE, "this is no function", span, "used here");
        };
        if self.is_generic(&decl) {
            let name = self.spell(decl.name.name);
            return self.fail(
                codes::NOT_CALLABLE,
                format!("`{name}` has comptime parameters: it can only be called"),
                span,
                "used as a value here",
            );
        }
        // A function named like a type that it speaks of: its own type would be needed first.
        let here = (func.module, func.decl);
        if self.busy.iter().any(|&(module, decl, _)| (module, decl) == here) {
            return self.on_itself(func.module, func.decl, span);
        }
        let slots = self.decl_frame(func);
        self.busy.push((func.module, func.decl, span));
        let types = self.in_module(func.module, slots, |sema| {
            let mut params = Vec::new();
            for param in &decl.params {
                if let ParamTy::Expr(ty) = param.ty {
                    params.push(sema.type_expr(ty)?);
                }
            }
            Ok((params, sema.type_expr(decl.ret)?))
        });
        self.busy.pop();
        let (params, ret) = types?;
        Ok(self.types.intern(Type::Fn { is_task: decl.is_task, params: params.into(), ret }))
    }

    /// Runs the top-level comptime blocks of a module, imports first.
    pub(crate) fn run_top_level(&mut self, module: ModuleId) -> R<()> {
        let own = &self.modules[module.0 as usize];
        let (file, scope) = (self.files.get(own.source), own.scope);
        let mut result = Ok(());
        for (idx, decl) in file.scopes[scope as usize].decls.iter().enumerate() {
            if decl.imports
                && matches!(decl.kind, DeclKind::Var(_))
                && let Err(reported) = self.decl(module, idx as u32, decl.name.span)
            {
                result = Err(reported);
            }
        }
        for body in &file.scopes[scope as usize].comptime {
            if let Err(reported) = self.run_body(module, body, BodyKind::TopLevel) {
                result = Err(reported);
            }
        }
        result
    }

    /// Evaluates the declarations of the program's modules that allocate FIFOs.
    pub(crate) fn allocate_fifos(&mut self) -> R<()> {
        for number in 0..self.modules.len() {
            let own = &self.modules[number];
            if own.owner != self.layout.current_owner {
                continue;
            }
            let (file, scope) = (self.files.get(own.source), own.scope);
            for (idx, decl) in file.scopes[scope as usize].decls.iter().enumerate() {
                if decl.allocates && matches!(decl.kind, DeclKind::Var(_)) {
                    self.decl(ModuleId(number as u32), idx as u32, decl.name.span)?;
                }
            }
        }
        Ok(())
    }

    /// Runs a whole block at comptime.
    pub(crate) fn run_body(&mut self, module: ModuleId, body: &Body, kind: BodyKind) -> R<()> {
        self.push_frame(module, body.frame, true, kind)?;
        let result = self.block(&body.block);
        self.frames.pop();
        result.map(|_| ())
    }

    /// A member of a module value, as an operand.
    pub(crate) fn module_member(
        &mut self,
        module: ModuleId,
        name: Symbol,
        span: Span,
    ) -> R<super::place::Place> {
        let Some(decl) = self.member(module, name) else {
            return self.unknown_member(module, name, span);
        };
        self.decl_place(module, decl, span)
    }

    pub(crate) fn void_operand(&self) -> Operand {
        Operand::Const(self.void_value())
    }
}
