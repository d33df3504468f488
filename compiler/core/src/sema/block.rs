//! Blocks and statements.

use std::rc::Rc;

use dflow_syntax::ast::{
    self, BinaryOp, Block, ExprId, Ident, Stmt as Ast, StmtId, VarDecl, VarKind,
};
use dflow_syntax::{Diagnostic, Span, codes};

use super::address::Address;
use super::control::Wish;
use super::place::Place;
use super::types::{Repr, Type, TypeId};
use super::value::{Data, Value};
use super::{BodyKind, Cell, Flow, Operand, R, Sema};
use crate::typed::{LocalKind, StmtKind};

impl Sema<'_, '_> {
    /// Runs the statements of a block. A failed statement does not hide the faults of the next
    /// ones, as long as no loop repeats them.
    pub(crate) fn block(&mut self, block: &Block) -> R<Flow> {
        let mut failed = None;
        for &stmt in &block.stmts {
            match self.stmt(stmt) {
                Ok(Flow::Next) => {}
                Ok(flow) => {
                    return match failed {
                        None => Ok(flow),
                        Some(reported) => Err(reported),
                    };
                }
                Err(reported) if self.goes_on() => {
                    self.poison(stmt, reported);
                    failed = Some(reported);
                }
                Err(reported) => return Err(reported),
            }
        }
        failed.map_or(Ok(Flow::Next), Err)
    }

    /// Whether the statement after a failed one is looked at: yes where it runs once only, and not
    /// in libraries, which say first what they need.
    fn goes_on(&self) -> bool {
        let frame = self.frame();
        if self.cx.is_library(frame.file.file.id) {
            return false;
        }
        match frame.kind {
            BodyKind::Code { .. } => !frame.comptime || frame.labels.is_empty(),
            BodyKind::Layout | BodyKind::TopLevel => {
                self.frames.len() == 1 && frame.labels.is_empty()
            }
            BodyKind::Value | BodyKind::Inline(_) => false,
        }
    }

    /// Marks what a failed declaration would have declared.
    fn poison(&mut self, stmt: StmtId, reported: dflow_syntax::Reported) {
        let slot = self.frame().file.stmt_slots[stmt.0 as usize][0];
        let file = Rc::clone(&self.frame().file);
        if let (Ast::Var(_), true) = (file.file.stmt(stmt), slot != crate::resolve::NO_SLOT) {
            self.frame_mut().slots[slot as usize] = Cell::Failed(reported);
        }
    }

    fn stmt(&mut self, id: StmtId) -> R<Flow> {
        let file = Rc::clone(&self.frame().file);
        let span = file.file.stmt_span(id);
        self.step(span)?;
        self.frame_mut().looks.stmt(id);
        match file.file.stmt(id) {
            Ast::Error => Err(self.poisoned()),
            Ast::Empty => Ok(Flow::Next),
            Ast::Var(var) => {
                let slot = file.stmt_slots[id.0 as usize][0];
                self.local(var, slot)?;
                Ok(Flow::Next)
            }
            Ast::Expr(expr) => self.expr_stmt(*expr, span),
            Ast::Assign { op, target, value } => {
                self.assign(*op, *target, *value, span)?;
                Ok(Flow::Next)
            }
            Ast::Return(value) => self.return_stmt(*value, span),
            Ast::Break { label, value } => self.break_stmt(*label, *value, span),
            Ast::Continue { label } => self.continue_stmt(*label, span),
            Ast::For { label, inline, iter, elem, index: _, body } => {
                self.new_loop_label(*label)?;
                let slots = file.stmt_slots[id.0 as usize];
                let captures = super::loops::Captures {
                    elem: slots[0],
                    by_pointer: elem.by_pointer,
                    index: slots[1],
                    index_ty: self.types.common.comptime_int,
                };
                self.for_stmt(label.map(|label| label.name), *inline, *iter, captures, *body, span)
            }
            Ast::While { label, inline, cond, step, body } => {
                self.new_loop_label(*label)?;
                self.while_stmt(label.map(|label| label.name), *inline, *cond, *step, *body, span)
            }
            Ast::Comptime(block) => {
                let flow = self.at_comptime(|sema| sema.block(block))?;
                Ok(flow)
            }
        }
    }

    fn new_loop_label(&mut self, label: Option<Ident>) -> R<()> {
        label.map_or(Ok(()), |label| self.unique_label(label))
    }

    /// A statement used as the body of a loop or branch.
    pub(crate) fn body(&mut self, id: StmtId) -> R<Flow> {
        self.stmt(id)
    }

    /// An expression as a statement: control flow inside it is the statement's.
    pub(crate) fn expr_stmt(&mut self, id: ExprId, span: Span) -> R<Flow> {
        let file = Rc::clone(&self.frame().file);
        match file.file.expr(id) {
            ast::Expr::Block { label: None, block } => self.block(block),
            ast::Expr::Block { label: Some(label), block } => {
                self.labeled_stmt(*label, block, span)
            }
            ast::Expr::If { cond, then, otherwise } => self.if_stmt(*cond, *then, *otherwise, span),
            ast::Expr::Switch { subject, prongs } => self.switch_stmt(*subject, prongs, span),
            ast::Expr::Call { .. } => {
                // A call is made for what it does, whatever it gives.
                if let Operand::Scalar { expr, .. } = self.expr(id, None)? {
                    self.emit(StmtKind::Expr(expr), span);
                }
                Ok(Flow::Next)
            }
            other => {
                let is_builtin = matches!(other, ast::Expr::Builtin { .. });
                let operand = self.expr(id, None)?;
                self.discard(operand, is_builtin, span);
                Ok(Flow::Next)
            }
        }
    }

    /// Drops a value; calls and operations are kept for what they do.
    fn discard(&mut self, operand: Operand, is_builtin: bool, span: Span) {
        let ty = self.operand_type(&operand);
        match operand {
            Operand::Scalar { expr, .. } => {
                if !is_builtin {
                    self.unused(ty, span);
                }
                self.emit(StmtKind::Expr(expr), span);
            }
            Operand::Void => {}
            Operand::Memory { .. } if is_builtin => {}
            Operand::Memory { .. } => self.unused(ty, span),
            Operand::Const(value) => match value.data {
                Data::Void | Data::Undef => {}
                Data::Fields(ref fields) if fields.is_empty() => {}
                // Some programs write the type for its value: `else => void`.
                Data::Type(ty) if ty == self.types.common.void => {}
                _ if ty == self.types.common.void || !self.is_runtime() => {}
                _ => self.unused(ty, span),
            },
        }
    }

    fn unused(&mut self, ty: TypeId, span: Span) {
        let name = self.type_name(ty);
        let message = format!("this statement computes a value of type `{name}` and drops it");
        self.report(
            Diagnostic::new(codes::UNUSED_VALUE, message, span)
                .label("assign it, or remove the statement"),
        );
    }

    fn assign(&mut self, op: Option<BinaryOp>, target: ExprId, value: ExprId, span: Span) -> R<()> {
        let place = self.place(target)?;
        if let Place::Memory { address, .. } = &place
            && let Some(taken) = self.address_of_var(address)
        {
            return self.written_behind(taken, span);
        }
        if !changes(&place) {
            return Err(self.not_assignable(target, span));
        }
        let ty = self.place_type(&place);
        let value_span = self.expr_span(value);
        let Some(op) = op else {
            let operand = self.expr(value, Some(ty))?;
            let ty = self.assigned_type(&place, ty, &operand);
            let operand = self.coerce(operand, ty, value_span)?;
            return self.store(retyped(place, ty), operand, span);
        };
        let place = self.pin_place(place, span);
        let early = self.frame().file.is_early(target);
        let old = self.while_early(early, |sema| sema.load(place.clone(), span))?;
        // The count of a shift has a type of its own.
        let wish = match op {
            BinaryOp::Shl | BinaryOp::Shr => Wish { hint: None, wanted: Some(ty) },
            _ => Wish { hint: Some(ty), wanted: None },
        };
        let operand = self.wished(value, wish)?;
        let result = self.binary(op, old, operand, span)?;
        let result = self.coerce(result, ty, value_span)?;
        self.store(place, result, span)
    }

    /// The type that a variable has after an assignment: one declared as `comptime_struct` takes any
    /// struct.
    fn assigned_type(&self, place: &Place, ty: TypeId, operand: &Operand) -> TypeId {
        let Place::Slot { slot, path, .. } = place else { return ty };
        let any = path.is_empty() && self.frame().any_struct.contains(slot);
        let new = self.operand_type(operand);
        match self.types.get(new) {
            Type::Struct(_) if any => new,
            _ => ty,
        }
    }

    /// A local declaration.
    fn local(&mut self, var: &VarDecl, slot: u32) -> R<()> {
        let ty = match var.ty {
            Some(ty) => Some(self.type_expr(ty)?),
            None => None,
        };
        let align = match var.align {
            Some(align) => Some(self.alignment(align)?),
            None => None,
        };
        let known = var.comptime || self.frame().comptime;
        let cell = match var.init {
            Some(init) => {
                let span = self.expr_span(init);
                let operand = if var.comptime {
                    self.at_comptime(|sema| sema.expr(init, ty))?
                } else {
                    self.expr(init, ty)?
                };
                let operand = match ty {
                    Some(ty) => self.coerce(operand, ty, span)?,
                    None => operand,
                };
                self.bind(var, operand, known, span)?
            }
            None => self.uninitialized(var, ty, known)?,
        };
        match (align, &cell) {
            (Some(least), Cell::Memory { address, .. }) => self.align_local(address, least),
            (Some(least), Cell::Const(value)) => {
                self.settle_constant(slot, value.clone(), least, var.name.span)?;
            }
            _ => {}
        }
        if let Cell::Var(_) = cell {
            self.var_declared(slot);
        }
        self.frame_mut().slots[slot as usize] = cell;
        if ty == Some(self.types.common.comptime_struct) && !self.frame().any_struct.contains(&slot)
        {
            self.frame_mut().any_struct.push(slot);
        }
        Ok(())
    }

    fn bind(&mut self, var: &VarDecl, operand: Operand, known: bool, span: Span) -> R<Cell> {
        let constant = var.kind == VarKind::Const;
        match operand {
            Operand::Const(value) if constant => Ok(Cell::Const(value)),
            Operand::Const(value) if known => Ok(Cell::Var(value)),
            Operand::Void if constant || known => Ok(Cell::Const(self.void_value())),
            other if known => {
                let value = self.need_const(other, span)?;
                Ok(Cell::Var(value))
            }
            Operand::Const(value) => {
                let value = self.default_type(value, var.name.span)?;
                let ty = value.ty;
                self.variable_cell(var, ty, Some(Operand::Const(value)), span)
            }
            other => {
                let ty = self.operand_type(&other);
                self.variable_cell(var, ty, Some(other), span)
            }
        }
    }

    fn uninitialized(&mut self, var: &VarDecl, ty: Option<TypeId>, known: bool) -> R<Cell> {
        let Some(ty) = ty else {
            return self.fail(
                codes::MISSING_TYPE,
                "a variable needs a type or a value",
                var.name.span,
                "neither is given",
            );
        };
        if var.kind == VarKind::Const {
            return self.fail(
                codes::MISSING_INITIALIZER,
                "a constant needs a value",
                var.name.span,
                "no value is given",
            );
        }
        if known {
            return Ok(Cell::Var(Value::new(ty, Data::Undef)));
        }
        self.variable_cell(var, ty, None, var.name.span)
    }

    /// A run-time variable: a local if nobody takes its address, else stack memory.
    fn variable_cell(
        &mut self,
        var: &VarDecl,
        ty: TypeId,
        init: Option<Operand>,
        span: Span,
    ) -> R<Cell> {
        let name = Some(self.spell(var.name.name));
        let mutable = var.kind == VarKind::Var;
        match self.types.repr(ty, self.profile()) {
            Repr::Scalar(_) if !self.address_taken(var) => {
                let machine = self.machine_ty(ty, span)?;
                let local = self.new_local(name, LocalKind::Scalar(machine));
                let value = match init {
                    Some(init) => self.scalar_of(init, span)?,
                    None => super::address::typed(crate::typed::ExprKind::Const(0), machine, span),
                };
                if !mutable {
                    self.note_dsd(local, &value);
                }
                self.emit(StmtKind::Set(local, value), span);
                Ok(Cell::Scalar { local, ty, mutable })
            }
            Repr::Scalar(_) | Repr::Memory { .. } => {
                let local = self.new_memory(name, ty, span)?;
                let address = Address::of_local(local);
                if let Some(init) = init {
                    let of_constant = !mutable
                        && matches!(self.types.get(ty), Type::Slice { .. })
                        && matches!(&init, Operand::Memory { address, .. } if self.is_constant_slice(address));
                    self.store_memory(&address, ty, init, span)?;
                    if of_constant {
                        self.note_slice(&address);
                    }
                }
                Ok(Cell::Memory { address, ty, mutable })
            }
            Repr::Void => Ok(Cell::Const(self.void_value())),
            Repr::Comptime => {
                let type_name = self.type_name(ty);
                Err(self.report(
                    Diagnostic::new(
                        codes::NOT_COMPTIME,
                        format!("a run-time variable cannot have type `{type_name}`"),
                        var.name.span,
                    )
                    .label("values of this type exist at compile time only")
                    .help("make it `const` or `comptime var`"),
                ))
            }
        }
    }

    /// Whether `&name` stands anywhere in the file's bodies: then the variable lives in memory.
    /// Coarse (by name), which costs speed only.
    fn address_taken(&self, var: &VarDecl) -> bool {
        self.frame().file.addressed.contains(&var.name.name)
    }

    fn return_stmt(&mut self, value: Option<ExprId>, span: Span) -> R<Flow> {
        let ret = self.frame().ret;
        let operand = match value {
            Some(value) => {
                let operand = self.expr(value, ret)?;
                let value_span = self.expr_span(value);
                Some(match ret {
                    Some(ret) => self.coerce(operand, ret, value_span)?,
                    None => operand,
                })
            }
            None => None,
        };
        let void = self.types.common.void;
        match (&operand, ret) {
            (None, Some(ret)) if ret != void => {
                return self.fail(
                    codes::TYPE_MISMATCH,
                    "the function returns a value",
                    span,
                    "returned without one here",
                );
            }
            (Some(_), None) => {
                return self.fail(
                    codes::MISPLACED_JUMP,
                    "nothing here takes a returned value",
                    span,
                    "no function is around this",
                );
            }
            _ => {}
        }
        if self.frame().comptime {
            return Ok(Flow::Return(operand));
        }
        self.runtime_return(operand, span)
    }

    pub(crate) fn break_stmt(
        &mut self,
        label: Option<Ident>,
        value: Option<ExprId>,
        span: Span,
    ) -> R<Flow> {
        let at = self.find_label(label, span)?;
        let wish = self.frame().labels[at].wish;
        let operand = match value {
            Some(value) => Some((self.wished(value, wish)?, self.expr_span(value))),
            None => None,
        };
        self.leave(at, operand, span)
    }

    fn continue_stmt(&mut self, label: Option<Ident>, span: Span) -> R<Flow> {
        let at = self.find_label(label, span)?;
        self.next_iteration(at, span)
    }
}

/// Whether a place can be assigned to at all.
fn changes(place: &Place) -> bool {
    match place {
        Place::Local { mutable, .. } | Place::Memory { mutable, .. } => *mutable,
        Place::Slot { .. } => true,
        Place::Bits { base, .. } => changes(base),
        Place::Const { .. } | Place::Value(_) => false,
    }
}

/// A place with its type replaced.
fn retyped(place: Place, ty: TypeId) -> Place {
    match place {
        Place::Slot { slot, path, ty: _ } => Place::Slot { slot, path, ty },
        other => other,
    }
}
