//! Bodies of the functions that a program needs.

use dflow_ir::ty::Ty;
use dflow_syntax::ast::FnDecl;
use dflow_syntax::codes;

use super::address::{Address, AddressBase, typed};
use super::module::Module;
use super::program::{Emitter, FuncKey};
use super::types::Repr;
use super::value::{FuncRef, ModuleId};
use super::{BodyKind, Cell, Flow, Operand, R, Sema, TraceStep};
use crate::typed::{ExprKind, FuncIdx, LocalIdx, LocalKind, Passing, StmtKind};

impl Sema<'_, '_> {
    /// Analyzes the bodies of all functions asked for, until there are none left.
    pub(crate) fn analyze_pending(&mut self) -> R<()> {
        let mut result = Ok(());
        while let Some((idx, key)) = self.program_mut().pending.pop_front() {
            if let Err(reported) = self.analyze_func(idx, &key) {
                result = Err(reported);
            }
        }
        result
    }

    fn analyze_func(&mut self, idx: FuncIdx, key: &FuncKey) -> R<()> {
        let func = key.func;
        let Some(decl) = self.func_decl(func) else { return Ok(()) };
        let Some(body) = &decl.body else { return self.external(&decl, decl.name.span) };
        let frame = self.decl_frame(func);
        let outer = self.program_mut().emitter.replace(Emitter::default());
        let mut way = self.program_mut().ways.remove(&idx).unwrap_or_default();
        way.extend(self.import_step(func.module, &way));
        let trace = std::mem::replace(&mut self.trace, way);
        let frames = std::mem::take(&mut self.frames);
        self.open_list();
        let result = self.func_body(func, &decl, body, frame, key);
        let stmts = self.close_list();
        self.frames = frames;
        self.trace = trace;
        let emitter = std::mem::replace(&mut self.program_mut().emitter, outer);
        let (params, ret, mut passing) = result?;
        let emitter = emitter.unwrap_or_default();
        passing.holds = emitter.holds;
        let name = self.qualified(func.module, decl.name.name);
        self.program_mut().typed.funcs[idx.0 as usize] = crate::typed::Func {
            name,
            params,
            ret,
            locals: emitter.locals,
            labels: emitter.labels,
            passing,
            body: stmts,
            span: decl.name.span,
        };
        Ok(())
    }

    /// Which import made a module that is not the only instance of its file, unless the way tells.
    fn import_step(&self, module: ModuleId, way: &[TraceStep]) -> Option<TraceStep> {
        let made = &self.modules[module.0 as usize];
        let span = made.imported?;
        let file = self.files.get(made.source).file.id;
        let is_other = |other: &Module| {
            other.source == made.source && other.imported.is_some_and(|import| import != span)
        };
        let told =
            |step: &TraceStep| matches!(step, TraceStep::Instance { .. }) && step.span() == span;
        let tell = !self.cx.is_library(file) && self.modules.iter().any(is_other);
        (tell && !way.iter().any(told)).then_some(TraceStep::Instance { file, span, pe: None })
    }

    fn func_body(
        &mut self,
        func: FuncRef,
        decl: &FnDecl,
        body: &dflow_syntax::ast::Block,
        frame: u32,
        key: &FuncKey,
    ) -> R<(u32, Option<Ty>, Passing)> {
        self.push_frame(func.module, frame, false, BodyKind::Code { result: None })?;
        let pointer = self.profile().pointer();
        // The result's address comes first, but whether there is one is known only after the
        // parameters: its type may depend on them.
        let hidden = self.new_scalar(None, pointer);
        let mut cells = Vec::with_capacity(key.types.len());
        let mut params = 0;
        for (at, (&ty, value)) in key.types.iter().zip(&key.values.0).enumerate() {
            let name = decl.params[at].name.map(|name| self.spell(name.name));
            let span = decl.params[at].span;
            cells.push(match value {
                Some(value) => Cell::Const(value.clone()),
                None => match self.types.repr(ty, self.profile()) {
                    Repr::Void => Cell::Const(self.void_value()),
                    Repr::Scalar(_) => {
                        let machine = self.machine_ty(ty, span)?;
                        params += 1;
                        let local = self.new_scalar(name, machine);
                        Cell::Scalar { local, ty, mutable: false }
                    }
                    Repr::Memory { .. } | Repr::Comptime => {
                        params += 1;
                        let local = self.new_scalar(name, pointer);
                        Cell::Memory { address: Address::of_param(local), ty, mutable: false }
                    }
                },
            });
        }
        for (at, cell) in cells.into_iter().enumerate() {
            self.frame_mut().slots[at] = cell;
        }
        let ret = self.type_expr(decl.ret)?;
        self.frame_mut().ret = Some(ret);
        let (has_result, machine) = match self.types.repr(ret, self.profile()) {
            Repr::Void => (false, None),
            Repr::Scalar(_) => (false, Some(self.machine_ty(ret, decl.name.span)?)),
            Repr::Memory { .. } => (true, None),
            Repr::Comptime => {
                let name = self.type_name(ret);
                let message = format!("a run-time function cannot return `{name}`");
                return self.fail(codes::NOT_COMPTIME, message, decl.name.span, "this function");
            }
        };
        if has_result {
            self.frame_mut().kind = BodyKind::Code { result: Some(hidden) };
        } else {
            self.drop_hidden();
        }
        let passing = Passing { result: has_result, values: self.value_params(), holds: 0 };
        self.spill_params(decl)?;
        let flow = self.block(body)?;
        if ret != self.types.common.void && !matches!(flow, Flow::Diverges) && !ends(self, &flow) {
            return self.no_value(decl);
        }
        Ok((params + u32::from(has_result), machine, passing))
    }

    /// Without an aggregate result there is no hidden parameter: locals move down by one.
    fn drop_hidden(&mut self) {
        let emitter = self.program_mut().emitter.as_mut();
        if let Some(emitter) = emitter {
            emitter.locals.remove(0);
        }
        for cell in &mut self.frame_mut().slots {
            match cell {
                Cell::Scalar { local, .. } => local.0 -= 1,
                Cell::Memory { address, .. } => {
                    if let AddressBase::Param(local) = &mut address.base {
                        local.0 -= 1;
                    }
                }
                Cell::Empty
                | Cell::Const(_)
                | Cell::Var(_)
                | Cell::Induction(_)
                | Cell::Failed(_) => {}
            }
        }
    }

    /// Parameters that are addresses of values.
    fn value_params(&self) -> Vec<LocalIdx> {
        let slots = self.frame().slots.iter();
        let params = slots.filter_map(|cell| match cell {
            Cell::Memory { address: Address { base: AddressBase::Param(local), .. }, .. } => {
                Some(*local)
            }
            _ => None,
        });
        params.collect()
    }

    /// Scalar parameters whose address is taken move to memory.
    fn spill_params(&mut self, decl: &FnDecl) -> R<()> {
        for (at, param) in decl.params.iter().enumerate() {
            let Some(name) = param.name else { continue };
            let Cell::Scalar { local, ty, .. } = self.frame().slots[at].clone() else { continue };
            if !self.frame().file.addressed.contains(&name.name) {
                continue;
            }
            let (size, align) = self.runtime_size(ty, param.span)?;
            let machine = self.machine_ty(ty, param.span)?;
            let text = self.spell(name.name);
            let memory = self.new_local(Some(text), LocalKind::Memory { size, align });
            let address = Address::of_local(memory);
            let value = typed(ExprKind::Local(local), machine, param.span);
            self.store_memory(&address, ty, Operand::Scalar { ty, expr: value }, param.span)?;
            self.frame_mut().slots[at] = Cell::Memory { address, ty, mutable: false };
        }
        Ok(())
    }
}

/// Whether a function body that did not leave by emitted code has returned all the same, such
/// as `while (true)` without a way out.
fn ends(sema: &Sema<'_, '_>, flow: &Flow) -> bool {
    let endless =
        sema.program.as_ref().and_then(|program| program.emitter.as_ref()).is_some_and(|emitter| {
            match emitter.stmts.last().and_then(|list| list.last()).map(|stmt| &stmt.kind) {
                Some(StmtKind::While { label, cond, step, body }) => {
                    let always = matches!(*cond.kind, ExprKind::Const(1));
                    always && !leaves(body, *label) && !leaves(step, *label)
                }
                _ => false,
            }
        });
    matches!(flow, Flow::Return(_)) || endless
}

/// Whether a break to a label stands in a list of statements.
fn leaves(stmts: &[crate::typed::Stmt], label: crate::typed::LabelIdx) -> bool {
    stmts.iter().any(|stmt| {
        matches!(stmt.kind, StmtKind::Break(target) if target == label)
            || stmt.bodies().into_iter().any(|body| leaves(body, label))
    })
}
