//! Loops: unrolled or run at compile time, or emitted.

use std::rc::Rc;

use dflow_ir::scalar::BinaryOp as Ir;
use dflow_ir::ty::Ty;
use dflow_syntax::ast::{Expr as Ast, ExprId, StmtId};
use dflow_syntax::{Span, Symbol, codes};

use super::address::{Address, typed};
use super::control::Wish;
use super::counting::{Walk, known_bound, rounds};
use super::place::Place;
use super::types::{Type, TypeId};
use super::value::{Data, RangeValue, Value};
use super::vars::Behind;
use super::{BodyKind, Cell, Flow, Label, Operand, R, Sema, ops};
use crate::resolve::NO_SLOT;
use crate::typed::{Expr, ExprKind, LabelIdx, LocalIdx, StmtKind};

/// Where a loop's captures go.
#[derive(Clone, Copy)]
pub(crate) struct Captures {
    pub(crate) elem: u32,
    pub(crate) by_pointer: bool,
    pub(crate) index: u32,
    /// The type of the index where the loop runs while compiling.
    pub(crate) index_ty: TypeId,
}

/// Bounds of an emitted counting loop.
struct Counting {
    start: Operand,
    stop: Operand,
    step: Value,
    ty: TypeId,
}

impl Sema<'_, '_> {
    pub(crate) fn for_stmt(
        &mut self,
        name: Option<Symbol>,
        inline: bool,
        iter: ExprId,
        captures: Captures,
        body: StmtId,
        span: Span,
    ) -> R<Flow> {
        if self.is_runtime()
            && !inline
            && let Some(counting) = self.runtime_range(iter)?
        {
            return self.emit_counting(name, counting, captures, body, span);
        }
        let place = self.place(iter)?;
        let ty = self.place_type(&place);
        let iter_span = self.expr_span(iter);
        let emitted = self.is_runtime() && !inline;
        let counted = !inline && self.is_function_for_pes();
        match self.types.shared(ty).as_ref() {
            Type::Range(elem) => {
                let Operand::Const(Value { data: Data::Range(range), .. }) =
                    self.load(place, iter_span)?
                else {
                    return self.undefined(iter_span);
                };
                if emitted {
                    let counting = Counting {
                        start: Operand::Const(range.start.clone()),
                        stop: Operand::Const(range.stop.clone()),
                        step: range.step.clone(),
                        ty: *elem,
                    };
                    return self.emit_counting(name, counting, captures, body, span);
                }
                let known = |bound: &Value| known_bound(&Operand::Const(bound.clone()));
                let rounds = known(&range.step)
                    .and_then(|step| rounds(known(&range.start), known(&range.stop), step));
                let captures = self.captures(captures, counted, rounds);
                self.unroll_range(name, &range, *elem, captures, body, span)
            }
            Type::Array { elem, .. } if emitted => {
                let count = self.types.element_count(ty);
                let (address, mutable) = self.memory_of(place, iter_span)?;
                let address = self.pin_address(address, iter_span);
                let stop = Value::int(self.index_type(None), i128::from(count));
                let items = Items { address, elem: *elem, mutable, stop: Operand::Const(stop) };
                self.emit_items(name, items, captures, body, span)
            }
            Type::Slice { elem } => self.emit_slice(name, place, *elem, captures, body, span),
            Type::Array { .. } => {
                let rounds = i128::from(self.types.element_count(ty));
                let captures = self.captures(captures, counted, Some(rounds));
                self.unroll_array(name, place, captures, body, span)
            }
            Type::Struct(info) if info.tuple => {
                self.unroll_array(name, place, captures, body, span)
            }
            _ => {
                let type_name = self.type_name(ty);
                let message = format!("`for` goes over arrays and ranges, this is `{type_name}`");
                self.fail(codes::TYPE_MISMATCH, message, iter_span, "not iterable")
            }
        }
    }

    /// The captures of a loop that runs now. In a function that may run on a PE too the index has the type that it
    /// has there.
    fn captures(&self, captures: Captures, counted: bool, rounds: Option<i128>) -> Captures {
        match counted {
            true => Captures { index_ty: self.index_type(rounds), ..captures },
            false => captures,
        }
    }

    /// Whether this is the body of a function that PEs may run too; it runs now.
    fn is_function_for_pes(&self) -> bool {
        let frame = self.frame();
        frame.ret.is_some() && matches!(frame.kind, BodyKind::Value | BodyKind::TopLevel)
    }

    /// The type of an index: the same for a loop of a function, whether it runs while compiling or not.
    fn index_type(&self, rounds: Option<i128>) -> TypeId {
        let common = self.types.common;
        match rounds {
            _ if self.is_host() => common.i64,
            Some(rounds) if rounds > 1 << 32 => common.u64,
            Some(rounds) if rounds > 1 << 16 => common.u32,
            Some(_) | None => common.u16,
        }
    }

    /// A `@range(…)` written in the loop head, whose bounds may be known at run time only.
    fn runtime_range(&mut self, iter: ExprId) -> R<Option<Counting>> {
        let file = Rc::clone(&self.frame().file);
        let Ast::Builtin { name, args, .. } = file.file.expr(iter) else { return Ok(None) };
        if self.cx.names.resolve(*name) != "range" || !matches!(args.len(), 2 | 4) {
            return Ok(None);
        }
        let ty = self.range_type(args[0])?;
        let mut operands = Vec::new();
        for &arg in &args[1..] {
            let span = self.expr_span(arg);
            let operand = self.expr(arg, Some(ty))?;
            operands.push(self.coerce(operand, ty, span)?);
        }
        if operands.len() == 1 {
            let stop = operands.remove(0);
            let start = Operand::Const(Value::int(ty, 0));
            return Ok(Some(Counting { start, stop, step: Value::int(ty, 1), ty }));
        }
        let span = self.expr_span(args[3]);
        let step = operands.remove(2);
        let step = match step {
            Operand::Const(step) => step,
            Operand::Scalar { .. } | Operand::Memory { .. } | Operand::Void => {
                return self.fail(
                    codes::NOT_SUPPORTED,
                    "the step of a range must be known at compile time",
                    span,
                    "known at run time only",
                );
            }
        };
        let stop = operands.remove(1);
        Ok(Some(Counting { start: operands.remove(0), stop, step, ty }))
    }

    /// What is known of a counter's walk.
    fn walk(&mut self, counting: &Counting, span: Span) -> R<Walk> {
        let Counting { start, stop, step, ty } = counting;
        let machine = self.machine_ty(*ty, span)?;
        let Some(step) = self.fix_int(step).filter(|&step| step != 0) else {
            let message = "the step of a range cannot be 0";
            return self.fail(codes::VALUE_OUT_OF_RANGE, message, span, "this loop");
        };
        let Some(range) = ops::int_range(&self.types, *ty) else {
            unreachable!("ranges are of integers, those at run time of sized ones")
        };
        let (start, stop) = (known_bound(start), known_bound(stop));
        Ok(Walk { start, stop, step, machine, signed: self.types.is_signed(*ty), range })
    }

    /// Emits a loop over a counter.
    fn emit_counting(
        &mut self,
        name: Option<Symbol>,
        counting: Counting,
        captures: Captures,
        body: StmtId,
        span: Span,
    ) -> R<Flow> {
        let walk = self.walk(&counting, span)?;
        let Counting { start, stop, step, ty } = counting;
        let machine = walk.machine;
        let counter = self.new_scalar(None, machine);
        let start = self.scalar_of(start, span)?;
        self.emit(StmtKind::Set(counter, start), span);
        let stop = self.scalar_of(stop, span)?;
        let stop = self.pin(stop, span);
        let step = self.const_expr(&step, machine, span)?;
        let current = typed(ExprKind::Local(counter), machine, span);
        let begins = walk.before(current.clone(), stop.clone(), span);
        let next = typed(ExprKind::Binary(Ir::Add, current.clone(), step), machine, span);
        let index_ty = self.index_type(rounds(walk.start, walk.stop, walk.step));
        let index = self.iteration_index(captures, index_ty, span)?;
        let mut step = vec![set(counter, next, span)];
        step.extend(index.map(|(_, step)| step));
        let elem = ElemCell::Cell(Cell::Scalar { local: counter, ty, mutable: false });
        let index = index_cell(self, captures);
        if !walk.may_wrap() {
            let head = Head { cond: begins, goes_on: None, step };
            return self.emit_loop(name, head, captures, elem, index, body, span);
        }
        // The end is asked for ahead of the step: behind it the counter may have wrapped.
        let goes_on = Some(walk.goes_on(current, stop, span));
        let head = Head { cond: typed(ExprKind::Const(1), Ty::I8, span), goes_on, step };
        if walk.is_known() {
            return self.emit_loop(name, head, captures, elem, index, body, span);
        }
        self.open_list();
        let flow = self.emit_loop(name, head, captures, elem, index, body, span);
        let then = self.close_list();
        self.emit(StmtKind::If { cond: begins, then, otherwise: Vec::new() }, span);
        flow
    }

    /// The counter of iterations, if the loop captures one that is not its element.
    fn iteration_index(
        &mut self,
        captures: Captures,
        ty: TypeId,
        span: Span,
    ) -> R<Option<(LocalIdx, crate::typed::Stmt)>> {
        if captures.index == NO_SLOT {
            return Ok(None);
        }
        let machine = self.machine_ty(ty, span)?;
        let local = self.new_scalar(None, machine);
        let zero = typed(ExprKind::Const(0), machine, span);
        self.emit(StmtKind::Set(local, zero), span);
        let one = typed(ExprKind::Const(1), machine, span);
        let current = typed(ExprKind::Local(local), machine, span);
        let next = typed(ExprKind::Binary(Ir::Add, current, one), machine, span);
        self.frame_mut().slots[captures.index as usize] =
            Cell::Scalar { local, ty, mutable: false };
        Ok(Some((local, set(local, next, span))))
    }

    fn emit_slice(
        &mut self,
        name: Option<Symbol>,
        place: Place,
        elem: TypeId,
        captures: Captures,
        body: StmtId,
        span: Span,
    ) -> R<Flow> {
        let (slice, _) = self.memory_of(place, span)?;
        let (pointer, offset) = self.split_address(&slice, span)?;
        let pointer = typed(ExprKind::Load { address: pointer, offset }, Ty::I64, span);
        let pointer = self.pin(pointer, span);
        let (length, offset) = self.split_address(&slice.plus(8), span)?;
        let length = typed(ExprKind::Load { address: length, offset }, Ty::I64, span);
        let stop = Operand::Scalar { ty: self.types.common.i64, expr: length };
        let items = Items { address: Address::of_expr(pointer), elem, mutable: true, stop };
        self.emit_items(name, items, captures, body, span)
    }

    /// Emits a loop over elements in memory.
    fn emit_items(
        &mut self,
        name: Option<Symbol>,
        items: Items,
        captures: Captures,
        body: StmtId,
        span: Span,
    ) -> R<Flow> {
        let pointer = self.profile().pointer();
        let (size, _) = self.runtime_size(items.elem, span)?;
        let counter = self.new_scalar(None, pointer);
        self.emit(StmtKind::Set(counter, typed(ExprKind::Const(0), pointer, span)), span);
        let stop = self.scalar_of(items.stop, span)?;
        let stop = self.pin(stop, span);
        let current = typed(ExprKind::Local(counter), pointer, span);
        let cond = typed(ExprKind::Binary(Ir::LtU, current.clone(), stop), Ty::I8, span);
        let one = typed(ExprKind::Const(1), pointer, span);
        let next = typed(ExprKind::Binary(Ir::Add, current.clone(), one), pointer, span);
        let scale = typed(ExprKind::Const(u64::from(size)), pointer, span);
        let bytes = typed(ExprKind::Binary(Ir::Mul, current, scale), pointer, span);
        let index = match items.address.index {
            None => bytes,
            Some(index) => typed(ExprKind::Binary(Ir::Add, index, bytes), pointer, span),
        };
        let address = Address { index: Some(index), ..items.address };
        let index = if captures.index == NO_SLOT {
            None
        } else {
            Some(Cell::Scalar { local: counter, ty: self.index_type(None), mutable: false })
        };
        let mutable = items.mutable && captures.by_pointer;
        let elem = if captures.by_pointer {
            let ty = self.types.pointer(false, !mutable, items.elem);
            ElemCell::Pointer { address, ty }
        } else {
            ElemCell::Copy { address, ty: items.elem, mutable: items.mutable }
        };
        let head = Head { cond, goes_on: None, step: vec![set(counter, next, span)] };
        self.emit_loop(name, head, captures, elem, index, body, span)
    }

    /// Emits the loop itself: captures are set at the start of each iteration.
    #[expect(clippy::too_many_arguments, reason = "the parts of one loop")]
    fn emit_loop(
        &mut self,
        name: Option<Symbol>,
        head: Head,
        captures: Captures,
        elem: ElemCell,
        index: Option<Cell>,
        body: StmtId,
        span: Span,
    ) -> R<Flow> {
        let label = self.open_loop(name);
        self.open_list();
        if let (Some(index), true) = (index, captures.index != NO_SLOT) {
            self.frame_mut().slots[captures.index as usize] = index;
        }
        let bound = if captures.elem == NO_SLOT {
            Ok(())
        } else {
            self.bind_elem(captures.elem, elem, span)
        };
        let flow = bound.and_then(|()| self.body(body));
        let stmts = self.close_list();
        let Head { cond, goes_on, mut step } = head;
        if let Some(goes_on) = goes_on {
            step.insert(0, leave_unless(goes_on, label, span));
        }
        self.close_loop(label, flow, cond, step, stmts, span)
    }

    fn bind_elem(&mut self, slot: u32, elem: ElemCell, span: Span) -> R<()> {
        let cell = match elem {
            ElemCell::Cell(cell) => cell,
            ElemCell::Pointer { address, ty } => {
                let expr = self.address_expr(&address, span)?;
                let machine = self.profile().pointer();
                let local = self.new_scalar(None, machine);
                self.emit(StmtKind::Set(local, expr), span);
                Cell::Scalar { local, ty, mutable: false }
            }
            ElemCell::Copy { address, ty, mutable } => {
                let place = Place::Memory { address, ty, mutable };
                match self.load(place, span)? {
                    Operand::Scalar { ty, expr } => {
                        let machine = self.machine_ty(ty, span)?;
                        let local = self.new_scalar(None, machine);
                        self.emit(StmtKind::Set(local, expr), span);
                        Cell::Scalar { local, ty, mutable: false }
                    }
                    Operand::Memory { ty, address } => {
                        Cell::Memory { address: address.named(), ty, mutable: false }
                    }
                    Operand::Const(value) => Cell::Const(value),
                    Operand::Void => Cell::Const(self.void_value()),
                }
            }
        };
        self.frame_mut().slots[slot as usize] = cell;
        Ok(())
    }

    /// Opens a run-time loop: its label is there from the start.
    fn open_loop(&mut self, name: Option<Symbol>) -> LabelIdx {
        let label = self.new_label();
        let depth = self.frame().depth;
        self.frame_mut().labels.push(Label {
            name,
            is_loop: true,
            on_break: Some(label),
            on_continue: Some(label),
            loop_continue: true,
            result: None,
            wish: Wish::NONE,
            given: Vec::new(),
            marker: None,
            behind_break: Behind::default(),
            behind_continue: Behind::default(),
            depth,
        });
        self.frame_mut().depth += 1;
        label
    }

    fn close_loop(
        &mut self,
        label: LabelIdx,
        flow: R<Flow>,
        cond: Expr,
        step: Vec<crate::typed::Stmt>,
        body: Vec<crate::typed::Stmt>,
        span: Span,
    ) -> R<Flow> {
        self.frame_mut().depth -= 1;
        self.frame_mut().labels.pop();
        flow?;
        self.emit(StmtKind::While { label, cond, step, body }, span);
        Ok(Flow::Next)
    }

    pub(crate) fn while_stmt(
        &mut self,
        name: Option<Symbol>,
        inline: bool,
        cond: ExprId,
        step: Option<StmtId>,
        body: StmtId,
        span: Span,
    ) -> R<Flow> {
        if self.is_runtime() && !inline {
            return self.emit_while(name, cond, step, body, span);
        }
        let index_ty = self.types.common.comptime_int;
        let captures = Captures { elem: NO_SLOT, by_pointer: false, index: NO_SLOT, index_ty };
        let mut unrolling = self.open_unrolled(name, captures, body, span);
        loop {
            match self.condition(cond) {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return self.close_unrolled(unrolling),
                Ok(Err(_)) => {
                    let cond_span = self.expr_span(cond);
                    self.close_unrolled(unrolling)?;
                    return self.fail(
                        codes::NOT_COMPTIME,
                        "the condition of this loop must be known at compile time",
                        cond_span,
                        "known at run time only",
                    );
                }
                Err(reported) => {
                    self.close_unrolled(unrolling)?;
                    return Err(reported);
                }
            }
            let value = self.void_value();
            if let Some(flow) = self.iteration(&mut unrolling, value)? {
                return Ok(flow);
            }
            if let Some(step) = step {
                self.body(step)?;
            }
        }
    }

    fn emit_while(
        &mut self,
        name: Option<Symbol>,
        cond: ExprId,
        step: Option<StmtId>,
        body: StmtId,
        span: Span,
    ) -> R<Flow> {
        let label = self.open_loop(name);
        self.open_list();
        let head = self.condition(cond);
        let head_stmts = self.close_list();
        let result = head.and_then(|head| {
            let head = match head {
                Ok(truth) => typed(ExprKind::Const(u64::from(truth)), Ty::I8, span),
                Err(expr) => expr,
            };
            self.open_list();
            let flow = self.body(body);
            let stmts = self.close_list();
            self.open_list();
            let stepped = step.map_or(Ok(Flow::Next), |step| self.body(step));
            let steps = self.close_list();
            flow?;
            stepped?;
            Ok((head, stmts, steps))
        });
        let (head, stmts, steps) = match result {
            Ok(parts) => parts,
            Err(reported) => {
                self.frame_mut().depth -= 1;
                self.frame_mut().labels.pop();
                return Err(reported);
            }
        };
        if head_stmts.is_empty() {
            return self.close_loop(label, Ok(Flow::Next), head, steps, stmts, span);
        }
        // The condition needs statements of its own: they run at the start of each iteration.
        let mut body = head_stmts;
        body.push(leave_unless(head, label, span));
        body.extend(stmts);
        let always = typed(ExprKind::Const(1), Ty::I8, span);
        self.close_loop(label, Ok(Flow::Next), always, steps, body, span)
    }

    /// The type of a range's elements, as it is written in `@range`.
    pub(crate) fn range_type(&mut self, arg: ExprId) -> R<TypeId> {
        let ty = self.type_expr(arg)?;
        if self.types.is_int(ty) {
            return Ok(ty);
        }
        let (name, span) = (self.type_name(ty), self.expr_span(arg));
        let message = format!("a range is of integers, not of `{name}`");
        self.fail(codes::INVALID_ARGUMENT, message, span, "no integer type")
    }

    /// A range as a value; used by `@range`.
    pub(crate) fn range_value(
        &mut self,
        elem: TypeId,
        start: Value,
        stop: Value,
        step: Value,
    ) -> Value {
        let ty = self.types.intern(Type::Range(elem));
        Value::new(ty, Data::Range(Rc::new(RangeValue { start, stop, step })))
    }
}

/// Elements in memory that an emitted loop walks.
struct Items {
    address: Address,
    elem: TypeId,
    mutable: bool,
    stop: Operand,
}

/// What an emitted loop asks ahead of a round, and behind it ahead of its step.
struct Head {
    cond: Expr,
    goes_on: Option<Expr>,
    step: Vec<crate::typed::Stmt>,
}

/// What the element capture of an emitted loop is.
enum ElemCell {
    Cell(Cell),
    Copy { address: Address, ty: TypeId, mutable: bool },
    Pointer { address: Address, ty: TypeId },
}

/// Leaves a loop unless a condition holds.
fn leave_unless(cond: Expr, label: LabelIdx, span: Span) -> crate::typed::Stmt {
    let leave = crate::typed::Stmt { kind: StmtKind::Break(label), span };
    let kind = StmtKind::If { cond, then: Vec::new(), otherwise: vec![leave] };
    crate::typed::Stmt { kind, span }
}

fn set(local: LocalIdx, value: Expr, span: Span) -> crate::typed::Stmt {
    crate::typed::Stmt { kind: StmtKind::Set(local, value), span }
}

/// The index capture's cell as [`Sema::iteration_index`] has set it.
fn index_cell(sema: &Sema<'_, '_>, captures: Captures) -> Option<Cell> {
    (captures.index != NO_SLOT).then(|| sema.frame().slots[captures.index as usize].clone())
}
