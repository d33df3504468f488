//! Calls: run now, expanded in place, or emitted.

use dflow_syntax::ast::{Expr as Ast, ExprId, FnDecl, ParamTy};
use dflow_syntax::{Diagnostic, Span, codes};

use super::address::{Address, typed};
use super::program::{FuncKey, KeyValues};
use super::types::{Repr, Type, TypeId};
use super::value::{Data, FuncRef, Value};
use super::{BodyKind, Cell, Flow, Inlined, Operand, R, Sema, TraceStep};
use crate::typed::{Expr, ExprKind, FuncIdx, StmtKind};

impl Sema<'_, '_> {
    pub(crate) fn call(&mut self, callee: ExprId, args: &[ExprId], span: Span) -> R<Operand> {
        let place = self.place(callee)?;
        if let super::place::Place::Const { value: Value { data: Data::Func(func), .. }, .. } =
            place
        {
            return self.call_func(func, args, span);
        }
        let ty = self.place_type(&place);
        let target = match self.types.get(ty) {
            Type::Pointer { pointee, .. } => *pointee,
            _ => ty,
        };
        let shared = self.types.shared(target);
        let Type::Fn { params, ret, is_task: false } = shared.as_ref() else {
            return self.not_callable(ty, callee);
        };
        let early = self.frame().file.is_early(callee);
        let pointer = self.while_early(early, |sema| sema.load(place, span))?;
        if let Operand::Const(Value { data: Data::Pointer(known), .. }) = &pointer
            && let super::value::PointerBase::Func(func) = known.base
        {
            return self.call_func(func, args, span);
        }
        self.call_pointer(pointer, params, *ret, args, span)
    }

    fn not_callable<T>(&mut self, ty: TypeId, callee: ExprId) -> R<T> {
        let (name, span) = (self.type_name(ty), self.expr_span(callee));
        let message = format!("a value of type `{name}` cannot be called");
        let diagnostic = Diagnostic::new(codes::NOT_CALLABLE, message, span).label("called here");
        Err(self.report(match ty == self.types.common.type_ {
            true => diagnostic.help("convert a value with `@as(T, value)`"),
            false => diagnostic,
        }))
    }

    fn call_pointer(
        &mut self,
        pointer: Operand,
        params: &[TypeId],
        ret: TypeId,
        args: &[ExprId],
        span: Span,
    ) -> R<Operand> {
        self.check_count(params.len(), args.len(), span)?;
        let mut machine = Vec::new();
        let mut values = Vec::new();
        let result = self.result_argument(ret, span)?;
        if let Some(address) = &result {
            machine.push(self.profile().pointer());
            values.push(self.address_expr(address, span)?);
        }
        for (&arg, &ty) in args.iter().zip(params) {
            let arg_span = self.expr_span(arg);
            let operand = self.expr(arg, Some(ty))?;
            let operand = self.coerce(operand, ty, arg_span)?;
            if let Some(expr) = self.argument(operand, ty, arg_span)? {
                machine.extend(expr.ty);
                values.push(expr);
            }
        }
        let callee = self.scalar_of(pointer, span)?;
        let kind = ExprKind::CallIndirect { callee, params: machine, args: values };
        self.finish_call(kind, ret, result, span)
    }

    /// Memory for an aggregate result.
    fn result_argument(&mut self, ret: TypeId, span: Span) -> R<Option<Address>> {
        match self.types.repr(ret, self.profile()) {
            Repr::Memory { .. } => {
                let local = self.new_memory(None, ret, span)?;
                Ok(Some(Address::of_local(local)))
            }
            Repr::Void | Repr::Scalar(_) | Repr::Comptime => Ok(None),
        }
    }

    /// An argument as a scalar: aggregates by address, void not at all.
    fn argument(&mut self, operand: Operand, ty: TypeId, span: Span) -> R<Option<Expr>> {
        match self.types.repr(ty, self.profile()) {
            Repr::Void => Ok(None),
            Repr::Scalar(_) => self.scalar_of(operand, span).map(Some),
            Repr::Memory { .. } => {
                let address = self.aggregate_address(operand, span)?;
                self.address_expr(&address, span).map(Some)
            }
            Repr::Comptime => {
                let name = self.type_name(ty);
                let message = format!("a value of type `{name}` exists at compile time only");
                self.fail(codes::NOT_COMPTIME, message, span, "passed at run time here")
            }
        }
    }

    fn finish_call(
        &mut self,
        kind: ExprKind,
        ret: TypeId,
        result: Option<Address>,
        span: Span,
    ) -> R<Operand> {
        let ty = match self.types.repr(ret, self.profile()) {
            Repr::Scalar(machine) => Some(machine),
            Repr::Void | Repr::Memory { .. } | Repr::Comptime => None,
        };
        let call = Expr { kind: Box::new(kind), ty, span };
        match ty {
            Some(machine) => {
                // A call happens where it stands, whatever its value is used for.
                let local = self.new_scalar(None, machine);
                self.emit(StmtKind::Set(local, call), span);
                Ok(Operand::Scalar { ty: ret, expr: typed(ExprKind::Local(local), machine, span) })
            }
            None => {
                self.emit(StmtKind::Expr(call), span);
                Ok(match result {
                    Some(address) => Operand::Memory { ty: ret, address },
                    None => Operand::Void,
                })
            }
        }
    }

    fn check_count(&mut self, want: usize, got: usize, span: Span) -> R<()> {
        if want == got {
            return Ok(());
        }
        let message = format!("{}, {got} given", crate::builtins::counted(want));
        self.fail(codes::WRONG_ARGUMENT_COUNT, message, span, "this call")
    }

    fn check_func_count(&mut self, decl: &FnDecl, name: &str, got: usize, span: Span) -> R<()> {
        let want = decl.params.len();
        if want == got {
            return Ok(());
        }
        let message = format!("`{name}` takes {}, {got} given", crate::builtins::counted(want));
        let diagnostic = Diagnostic::new(codes::WRONG_ARGUMENT_COUNT, message, span)
            .label("this call")
            .secondary(decl.name.span, "declared here");
        let missing = decl.params.get(got..).unwrap_or_default().iter();
        let names: Vec<String> = missing
            .filter(|param| !param.optional)
            .filter_map(|param| param.name)
            .map(|name| format!("`{}`", self.spell(name.name)))
            .collect();
        Err(self.report(match names.is_empty() {
            true => diagnostic,
            false => diagnostic.help(format!("give {} too", names.join(" and "))),
        }))
    }

    /// A call of a known function.
    pub(crate) fn call_func(&mut self, func: FuncRef, args: &[ExprId], span: Span) -> R<Operand> {
        let Some(decl) = self.func_decl(func) else {
            return self.fail(codes::NOT_CALLABLE, "this is no function", span, "called here");
        };
        let name = self.spell(decl.name.name);
        if decl.is_task {
            return Err(self.report(
                Diagnostic::new(
                    codes::TASK_CALLED,
                    format!("`{name}` is a task: it cannot be called"),
                    span,
                )
                .label("called here")
                .help("bind it to a task id and `@activate` that, or make it a `fn`"),
            ));
        }
        let left_out = decl.params.get(args.len()..).unwrap_or_default();
        if left_out.is_empty() || !left_out.iter().all(|param| param.optional) {
            self.check_func_count(&decl, &name, args.len(), span)?;
        }
        let mut operands = Vec::with_capacity(args.len());
        let hints = self.param_hints(func, &decl);
        for ((&arg, param), hint) in args.iter().zip(&decl.params).zip(hints) {
            let arg_span = self.expr_span(arg);
            let operand = if param.comptime && self.is_runtime() {
                self.at_comptime(|sema| sema.expr(arg, hint))?
            } else {
                self.expr(arg, hint)?
            };
            operands.push((operand, arg_span));
        }
        operands.resize_with(decl.params.len(), || (self.void_operand(), span));
        self.call_with(func, &decl, operands, span)
    }

    /// Parameter types that are known before the arguments are, for literals.
    fn param_hints(&mut self, func: FuncRef, decl: &FnDecl) -> Vec<Option<TypeId>> {
        let plain = !self.is_generic(decl);
        if !plain {
            return vec![None; decl.params.len()];
        }
        match self.func_type(func, decl.name.span) {
            Ok(ty) => match self.types.get(ty) {
                Type::Fn { params, .. } => params.iter().map(|&ty| Some(ty)).collect(),
                _ => vec![None; decl.params.len()],
            },
            Err(_) => vec![None; decl.params.len()],
        }
    }

    /// A call with analyzed arguments.
    pub(crate) fn call_with(
        &mut self,
        func: FuncRef,
        decl: &FnDecl,
        args: Vec<(Operand, Span)>,
        span: Span,
    ) -> R<Operand> {
        if !self.is_runtime() {
            return self.call_now(func, decl, args, span);
        }
        if decl.inline {
            return self.call_inline(func, decl, args, span);
        }
        if self.returns_comptime(func, decl) {
            return self.at_comptime(|sema| sema.call_now(func, decl, args, span));
        }
        self.call_emitted(func, decl, args, span)
    }

    /// Whether the result type exists at compile time only, as far as one can tell without the
    /// arguments.
    fn returns_comptime(&mut self, func: FuncRef, decl: &FnDecl) -> bool {
        if self.is_generic(decl) {
            let file = self.files.get(self.modules[func.module.0 as usize].source);
            let Ast::Name(name) = file.file.expr(decl.ret) else { return false };
            let name = self.spell(*name);
            return matches!(
                name.as_str(),
                "type" | "comptime_int" | "comptime_float" | "comptime_string" | "comptime_struct"
            );
        }
        let Ok(ty) = self.func_type(func, decl.name.span) else { return false };
        let Type::Fn { ret, .. } = *self.types.get(ty) else { return false };
        self.types.repr(ret, self.profile()) == Repr::Comptime
    }

    /// Binds parameters in a new frame: types may depend on earlier parameters.
    fn bind_params(
        &mut self,
        decl: &FnDecl,
        args: Vec<(Operand, Span)>,
        mut cell: impl FnMut(&mut Self, usize, Operand, TypeId, Span) -> R<Cell>,
    ) -> R<()> {
        for (at, (param, (operand, span))) in decl.params.iter().zip(args).enumerate() {
            let (operand, ty) = match param.ty {
                ParamTy::Expr(ty) => {
                    let ty = self.type_expr(ty)?;
                    (self.coerce(operand, ty, span)?, ty)
                }
                ParamTy::Anytype => {
                    let ty = self.operand_type(&operand);
                    (operand, ty)
                }
            };
            let ty = if ty == self.types.common.comptime_struct {
                self.operand_type(&operand)
            } else {
                ty
            };
            let cell = cell(self, at, operand, ty, span)?;
            self.frame_mut().slots[at] = cell;
        }
        let ret = self.type_expr(decl.ret)?;
        self.frame_mut().ret = Some(ret);
        Ok(())
    }

    /// Runs a function at compile time.
    pub(crate) fn call_now(
        &mut self,
        func: FuncRef,
        decl: &FnDecl,
        args: Vec<(Operand, Span)>,
        span: Span,
    ) -> R<Operand> {
        let kind = match self.frame().kind {
            BodyKind::Layout => BodyKind::Layout,
            BodyKind::TopLevel => BodyKind::TopLevel,
            BodyKind::Value | BodyKind::Code { .. } | BodyKind::Inline(_) => BodyKind::Value,
        };
        let Some(body) = &decl.body else {
            return self.external(decl, span);
        };
        let frame = self.decl_frame(func);
        self.push_frame(func.module, frame, true, kind)?;
        self.trace.push(TraceStep::Call { name: decl.name.name, span });
        let result = self.run_now(decl, body, args);
        self.trace.pop();
        self.frames.pop();
        result
    }

    pub(crate) fn external<T>(&mut self, decl: &FnDecl, span: Span) -> R<T> {
        let name = self.spell(decl.name.name);
        self.fail(
            codes::NOT_SUPPORTED,
            format!("`{name}` is declared `extern`: external functions are not supported yet"),
            span,
            "called here",
        )
    }

    fn run_now(
        &mut self,
        decl: &FnDecl,
        body: &dflow_syntax::ast::Block,
        args: Vec<(Operand, Span)>,
    ) -> R<Operand> {
        self.bind_params(decl, args, |sema, _, operand, _, span| {
            sema.need_const(operand, span).map(Cell::Const)
        })?;
        let flow = self.block(body)?;
        let void = self.types.common.void;
        match (flow, self.frame().ret) {
            (Flow::Return(Some(operand)), _) => Ok(operand),
            (_, Some(ret)) if ret != void => self.no_value(decl),
            _ => Ok(self.void_operand()),
        }
    }

    pub(crate) fn no_value<T>(&mut self, decl: &FnDecl) -> R<T> {
        let name = self.spell(decl.name.name);
        let message = format!("`{name}` can end without returning a value");
        Err(self.report(
            Diagnostic::new(codes::MISSING_RETURN, message, decl.name.span)
                .label("this function")
                .help("end every way through it with `return value;`, also where no `else` is written"),
        ))
    }

    /// Expands an inline function where it is called.
    fn call_inline(
        &mut self,
        func: FuncRef,
        decl: &FnDecl,
        args: Vec<(Operand, Span)>,
        span: Span,
    ) -> R<Operand> {
        let Some(body) = &decl.body else { return self.external(decl, span) };
        let mut pinned = Vec::with_capacity(args.len());
        for (operand, arg_span) in args {
            let operand = match operand {
                Operand::Scalar { ty, expr } => {
                    Operand::Scalar { ty, expr: self.pin(expr, arg_span) }
                }
                other => other,
            };
            pinned.push((operand, arg_span));
        }
        let kind = BodyKind::Inline(Inlined { label: None, result: None });
        let frame = self.decl_frame(func);
        self.push_frame(func.module, frame, false, kind)?;
        self.trace.push(TraceStep::Call { name: decl.name.name, span });
        self.open_list();
        let result = self.run_inline(decl, body, pinned, span);
        self.trace.pop();
        self.frames.pop();
        result
    }

    fn run_inline(
        &mut self,
        decl: &FnDecl,
        body: &dflow_syntax::ast::Block,
        args: Vec<(Operand, Span)>,
        span: Span,
    ) -> R<Operand> {
        let flow = self
            .bind_params(decl, args, |sema, _, operand, ty, span| {
                sema.operand_cell(operand, ty, span)
            })
            .and_then(|()| self.block(body));
        let BodyKind::Inline(inlined) = self.frame().kind.clone() else {
            unreachable!("an inline frame stays one")
        };
        let direct = match flow {
            Ok(Flow::Return(operand)) => Some(operand.unwrap_or(Operand::Void)),
            Ok(_) => None,
            Err(reported) => {
                self.close_list();
                return Err(reported);
            }
        };
        let result = match (direct, inlined.result) {
            (Some(operand), Some(result)) => {
                self.write_result(result, operand, span)?;
                None
            }
            (direct, _) => direct,
        };
        let stmts = self.close_list();
        match inlined.label {
            Some(label) => self.emit(StmtKind::Block { label, body: stmts }, span),
            None => self.append(stmts),
        }
        match (result, inlined.result) {
            (Some(operand), _) => Ok(operand),
            (None, Some(result)) => self.read_result(result, span),
            (None, None) => match self.frame().ret {
                Some(ret) if ret != self.types.common.void => self.no_value(decl),
                _ => Ok(Operand::Void),
            },
        }
    }

    /// A parameter that stands for an operand.
    fn operand_cell(&mut self, operand: Operand, ty: TypeId, span: Span) -> R<Cell> {
        Ok(match operand {
            Operand::Const(value) => Cell::Const(value),
            Operand::Scalar { ty, expr } => {
                let machine = self.machine_ty(ty, span)?;
                let local = self.new_scalar(None, machine);
                self.note_dsd(local, &expr);
                self.emit(StmtKind::Set(local, expr), span);
                Cell::Scalar { local, ty, mutable: false }
            }
            Operand::Memory { address, .. } => {
                Cell::Memory { address: address.named(), ty, mutable: false }
            }
            Operand::Void => Cell::Const(self.void_value()),
        })
    }

    /// Emits a call of a specialized function.
    fn call_emitted(
        &mut self,
        func: FuncRef,
        decl: &FnDecl,
        args: Vec<(Operand, Span)>,
        span: Span,
    ) -> R<Operand> {
        self.trace.push(TraceStep::Call { name: decl.name.name, span });
        let special = self.specialize(func, decl, args);
        self.trace.pop();
        let (key, args, ret) = special?;
        if self.types.repr(ret, self.profile()) == Repr::Comptime {
            return self.at_comptime(|sema| sema.call_now(func, decl, args, span));
        }
        let result = self.result_argument(ret, span)?;
        let mut values = Vec::with_capacity(args.len() + 1);
        if let Some(address) = &result {
            values.push(self.address_expr(address, span)?);
        }
        for ((operand, arg_span), (&ty, known)) in
            args.into_iter().zip(key.types.iter().zip(&key.comptime))
        {
            if known.is_empty() {
                values.extend(self.argument(operand, ty, arg_span)?);
            }
        }
        let name = self.spell(decl.name.name);
        self.check_versions(func, &name, span)?;
        let idx = self.specialized_for(key, decl, span);
        self.finish_call(ExprKind::Call { func: idx, args: values }, ret, result, span)
    }

    /// The function for a key. What is wrong in one that depends on its arguments is reported with
    /// the way to the first call.
    fn specialized_for(&mut self, key: FuncKey, decl: &FnDecl, span: Span) -> FuncIdx {
        let known = self.program_mut().funcs.contains_key(&key);
        let idx = self.specialized(key);
        if !known && self.is_generic(decl) {
            let shown = self.trace.len().saturating_sub(super::MAX_FRAMES);
            let mut way = self.trace[shown..].to_vec();
            way.push(TraceStep::Call { name: decl.name.name, span });
            self.program_mut().ways.insert(idx, way);
        }
        idx
    }

    /// Key, coerced arguments and result type of a call.
    #[expect(clippy::type_complexity, reason = "three results of one walk over the parameters")]
    fn specialize(
        &mut self,
        func: FuncRef,
        decl: &FnDecl,
        args: Vec<(Operand, Span)>,
    ) -> R<(FuncKey, Vec<(Operand, Span)>, TypeId)> {
        let frame = self.decl_frame(func);
        let mut key =
            FuncKey { func, comptime: Vec::new(), types: Vec::new(), values: KeyValues::default() };
        let mut bound = Vec::with_capacity(args.len());
        // Conversions of the arguments are code of the caller.
        self.push_frame(func.module, frame, false, BodyKind::Value)?;
        let outcome = self.bind_params(decl, args, |sema, at, operand, ty, span| {
            let comptime_only = sema.types.repr(ty, sema.profile()) == Repr::Comptime;
            let known = decl.params[at].comptime || comptime_only;
            key.types.push(ty);
            if known {
                let value = sema.need_const(operand, span)?;
                let value = sema.fix_deep(&value);
                key.comptime.push(sema.key_text(&value));
                key.values.0.push(Some(value.clone()));
                bound.push((Operand::Const(value.clone()), span));
                return Ok(Cell::Const(value));
            }
            key.comptime.push(String::new());
            key.values.0.push(None);
            // Types of later parameters may ask for this one's type, never for its value.
            let cell = Cell::Const(Value::new(ty, Data::Undef));
            bound.push((operand, span));
            Ok(cell)
        });
        let ret = self.frame().ret;
        self.frames.pop();
        outcome?;
        let ret = ret.unwrap_or(self.types.common.void);
        Ok((key, bound, ret))
    }

    /// A value's spelling as part of a key: equal values, and only they, have the same.
    pub(crate) fn key_text(&self, value: &Value) -> String {
        format!("{:?}", (value.ty, &value.data))
    }
}
