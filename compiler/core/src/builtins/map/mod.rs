//! `@map`: a function called per element, as a loop.
//!
//! Vectors in memory are walked by pointers; elements from the fabric are received into memory
//! of their own, one per iteration. The loop ends when an input that is to be read, or the
//! output, has no element left: inputs before it in the call have been read by then. Invariant:
//! what does not change from element to element is evaluated once, before the loop.

mod fabric;
mod walk;
mod whole;

use dflow_ir::dsd::DsrRef;
use dflow_ir::dsd::op::DsdOp;
use dflow_ir::inst::DsrField;
use dflow_ir::scalar::BinaryOp;
use dflow_ir::ty::Ty;
use dflow_syntax::ast::{ExprId, FnDecl};
use dflow_syntax::{Diagnostic, Span, codes};

use super::Call;
use super::dsd::{constant, element_bytes};
use crate::sema::address::{Address, typed};
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, FuncRef, PointerBase, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{self, Expr, ExprKind, LabelIdx, LocalIdx, Stmt, StmtKind, Vector};
use fabric::Fabric;
use walk::{Limit, Walk};
use whole::Operands;

/// The function that is called.
struct Callback {
    func: FuncRef,
    decl: std::rc::Rc<FnDecl>,
    params: Vec<TypeId>,
    ret: TypeId,
}

/// An input, ready for the loop.
struct Input {
    kind: InputKind,
    span: Span,
}

enum InputKind {
    /// The next element of memory.
    Memory(Walk),
    /// The next element of a queue.
    Fabric(Fabric),
    /// The next element of a register that is stepped through, and where it is put.
    Register { dsr: DsrRef, temp: LocalIdx, ty: TypeId },
    /// The same for each element.
    Same(Operand),
}

enum Output {
    Memory(Walk),
    /// A queue.
    Fabric(Fabric),
    /// A register that is stepped through.
    Register(DsrRef),
    /// A pointer: the last result remains.
    Pointer(Address),
}

impl Output {
    /// How many elements it has, if it asks by itself.
    fn limit(&self) -> Option<&Limit> {
        match self {
            Output::Memory(walk) => Some(&walk.limit),
            Output::Fabric(fabric) => Some(&fabric.limit),
            Output::Pointer(_) | Output::Register(_) => None,
        }
    }
}

/// `@map(callback, inputs…, output)`.
pub(super) fn map(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let callback = callback(sema, call)?;
    let has_result = callback.ret != sema.types.common.void;
    let (given, want) = (call.args.len() - 1, callback.params.len() + usize::from(has_result));
    if given != want {
        let output = if has_result { " and an output" } else { " and no output" };
        let message = format!(
            "this callback takes {} inputs{output}, {given} operands are given",
            callback.params.len()
        );
        return sema.fail(codes::WRONG_ARGUMENT_COUNT, message, call.span, "this call");
    }
    let mut inputs = Vec::with_capacity(callback.params.len());
    for (&arg, &ty) in call.args[1..].iter().zip(&callback.params) {
        inputs.push(input(sema, arg, ty)?);
    }
    let output = match call.args.last() {
        Some(&arg) if has_result => Some(output(sema, arg, callback.ret)?),
        _ => None,
    };
    let walks = inputs.iter().any(|input| !matches!(input.kind, InputKind::Same(_)))
        || matches!(output, Some(Output::Memory(_) | Output::Fabric(_) | Output::Register(_)));
    if !walks {
        let message = "`@map` walks over a vector: none of its operands is a descriptor";
        return sema.fail(codes::INVALID_OPERANDS, message, call.span, "this call");
    }
    let operands = Operands { inputs: &inputs, output: output.as_ref() };
    operands.check(sema, call.span)?;
    emit(sema, &callback, operands, call.span)?;
    Ok(Operand::Void)
}

fn callback(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Callback> {
    let span = sema.expr_span(call.args[0]);
    let operand = sema.expr(call.args[0], None)?;
    let ty = sema.operand_type(&operand);
    let func = match operand {
        Operand::Const(Value { data: Data::Func(func), .. }) => func,
        Operand::Const(Value { data: Data::Pointer(pointer), .. }) => match pointer.base {
            PointerBase::Func(func) => func,
            PointerBase::Global { .. } | PointerBase::Constant(_) | PointerBase::Address => {
                return no_callback(sema, ty, span);
            }
        },
        Operand::Scalar { .. } if is_fn_pointer(sema, ty) => {
            let message = "a callback that is known only at run time is not supported yet";
            return sema.fail(codes::NOT_SUPPORTED, message, span, "this callback");
        }
        Operand::Const(_) | Operand::Scalar { .. } | Operand::Memory { .. } | Operand::Void => {
            return no_callback(sema, ty, span);
        }
    };
    let Some(decl) = sema.func_decl(func) else { return no_callback(sema, ty, span) };
    if decl.is_task {
        let message = "a task is started by its id: it cannot be a callback";
        return sema.fail(codes::TASK_CALLED, message, span, "a task");
    }
    if sema.is_generic(&decl) {
        let message = "a callback with `anytype` or `comptime` parameters is not supported yet: \
                       they do not say which elements the vectors have";
        return sema.fail(codes::NOT_SUPPORTED, message, span, "this callback");
    }
    let ty = sema.func_type(func, span)?;
    let Type::Fn { params, ret, .. } = sema.types.shared(ty).as_ref().clone() else {
        return no_callback(sema, ty, span);
    };
    Ok(Callback { func, decl, params: params.to_vec(), ret })
}

fn is_fn_pointer(sema: &Sema<'_, '_>, ty: TypeId) -> bool {
    match *sema.types.get(ty) {
        Type::Pointer { pointee, .. } => matches!(sema.types.get(pointee), Type::Fn { .. }),
        _ => false,
    }
}

fn no_callback<T>(sema: &mut Sema<'_, '_>, ty: TypeId, span: Span) -> R<T> {
    let message = format!("`@map` calls a function, this is `{}`", sema.type_name(ty));
    sema.fail(codes::NOT_CALLABLE, message, span, "no function")
}

/// Prepares an input for a parameter of type `ty`.
fn input(sema: &mut Sema<'_, '_>, arg: ExprId, ty: TypeId) -> R<Input> {
    let span = sema.expr_span(arg);
    let operand = sema.expr(arg, Some(ty))?;
    let given = sema.operand_type(&operand);
    let common = sema.types.common;
    let kind = if given == common.mem1d_dsd || given == common.mem4d_dsd {
        InputKind::Memory(walk::memory(sema, operand, ty, span)?)
    } else if given == common.fabin_dsd {
        InputKind::Fabric(fabric::prepare(sema, operand, (ty, true), span)?)
    } else if let Operand::Const(Value { data: Data::Dsr(dsr), .. }) = operand {
        element_bytes(sema, ty, span)?;
        constant::stepped(sema, dsr, span);
        if given != common.dsr_src1 {
            let message = "inputs of `@map` are in a `dsr_src1`";
            return sema.fail(codes::INVALID_OPERANDS, message, span, "another register");
        }
        let temp = sema.new_memory(None, ty, span)?;
        InputKind::Register { dsr, temp, ty }
    } else if given == common.fabout_dsd {
        let message = "a `fabout_dsd` is written to: it cannot be an input";
        return sema.fail(codes::INVALID_OPERANDS, message, span, "an input");
    } else {
        refuse(sema, given, span)?;
        InputKind::Same(same(sema, operand, ty, span)?)
    };
    Ok(Input { kind, span })
}

/// An operand that is passed unchanged, evaluated once.
fn same(sema: &mut Sema<'_, '_>, operand: Operand, ty: TypeId, span: Span) -> R<Operand> {
    Ok(match sema.coerce(operand, ty, span)? {
        Operand::Scalar { ty, expr } => Operand::Scalar { ty, expr: sema.pin(expr, span) },
        Operand::Memory { ty, address } => {
            Operand::Memory { ty, address: sema.pin_address(address, span) }
        }
        known @ (Operand::Const(_) | Operand::Void) => known,
    })
}

/// FIFOs.
fn refuse(sema: &mut Sema<'_, '_>, ty: TypeId, span: Span) -> R<()> {
    match sema.types.get(ty) {
        Type::Fifo | Type::DsrFifoDest | Type::DsrFifoSrc1 => {
            let message = "a FIFO cannot be an operand of `@map`";
            sema.fail(codes::INVALID_OPERANDS, message, span, "a FIFO")
        }
        _ => Ok(()),
    }
}

/// Prepares the output for results of type `ty`.
fn output(sema: &mut Sema<'_, '_>, arg: ExprId, ty: TypeId) -> R<Output> {
    let span = sema.expr_span(arg);
    let operand = sema.expr(arg, None)?;
    let given = sema.operand_type(&operand);
    let common = sema.types.common;
    refuse(sema, given, span)?;
    if given == common.mem1d_dsd || given == common.mem4d_dsd {
        constant::check(sema, &operand, span, "the destination")?;
        return walk::memory(sema, operand, ty, span).map(Output::Memory);
    }
    if let Operand::Const(Value { data: Data::Dsr(dsr), .. }) = operand {
        element_bytes(sema, ty, span)?;
        if given != common.dsr_dest {
            let message = "the output of `@map` is in a `dsr_dest`";
            return sema.fail(codes::INVALID_OPERANDS, message, span, "another register");
        }
        constant::stepped(sema, dsr, span);
        return Ok(Output::Register(dsr));
    }
    if given == common.fabout_dsd {
        return fabric::prepare(sema, operand, (ty, false), span).map(Output::Fabric);
    }
    if let Type::Pointer { constant: false, pointee, .. } = *sema.types.get(given)
        && pointee == ty
    {
        let address = sema.pointer_address(operand, span)?;
        return Ok(Output::Pointer(sema.pin_address(address, span)));
    }
    let (given, want) = (sema.type_name(given), sema.type_name(ty));
    Err(sema.report(
        Diagnostic::new(
            codes::TYPE_MISMATCH,
            format!("the output is a vector or a pointer to `{want}`, this is `{given}`"),
            span,
        )
        .label("the last operand takes what the callback returns"),
    ))
}

/// The loop as it is built.
struct Loop {
    label: LabelIdx,
    counter: LocalIdx,
    /// How many elements there are, if somebody has to know.
    total: Option<Expr>,
    /// Two elements share a word.
    packed: bool,
    /// What the loop asks before each iteration.
    cond: Option<Expr>,
    /// Questions that have not been put into code yet.
    pending: Vec<Expr>,
    /// Least known limit asked for so far.
    least: Option<u32>,
    /// Which of the pending questions is about it.
    known_at: Option<usize>,
    span: Span,
}

fn emit(sema: &mut Sema<'_, '_>, callback: &Callback, operands: Operands<'_>, span: Span) -> R<()> {
    let mut state = Loop::new(sema, operands, span);
    restart(sema, operands, callback.ret, span)?;
    if let (true, Some(Output::Fabric(fabric))) = (state.packed, operands.output) {
        fabric.clear(sema);
    }
    sema.open_list();
    sema.frame_mut().depth += 1;
    let result = body(sema, &mut state, callback, operands);
    sema.frame_mut().depth -= 1;
    let body = sema.close_list();
    result?;
    sema.open_list();
    for input in operands.inputs {
        if let InputKind::Memory(walk) = &input.kind {
            walk.advance(sema);
        }
    }
    if let Some(Output::Memory(walk)) = operands.output {
        walk.advance(sema);
    }
    let next = StmtKind::Set(state.counter, state.following());
    sema.emit(next, span);
    let step = sema.close_list();
    let cond = state.cond.clone().unwrap_or_else(|| typed(ExprKind::Const(1), Ty::I8, span));
    sema.emit(StmtKind::While { label: state.label, cond, step, body }, span);
    operands.clear(sema, &state)
}

/// Registers begin at their first element, whatever an earlier `@map` left.
fn restart(sema: &mut Sema<'_, '_>, operands: Operands<'_>, ret: TypeId, span: Span) -> R<()> {
    let read = operands.inputs.iter().filter_map(|input| match input.kind {
        InputKind::Register { dsr, ty, .. } => Some((dsr, ty)),
        InputKind::Memory(_) | InputKind::Fabric(_) | InputKind::Same(_) => None,
    });
    let written = match operands.output {
        Some(Output::Register(dsr)) => Some((*dsr, ret)),
        _ => None,
    };
    for (dsr, ty) in read.chain(written) {
        let bytes = sema.machine_ty(ty, span)?.bytes();
        let value = typed(ExprKind::Const(bytes.into()), Ty::I16, span);
        sema.emit(StmtKind::SetDsr { dsr, field: DsrField::Steps, value }, span);
    }
    Ok(())
}

/// One iteration: read the inputs, call, write the output.
fn body(
    sema: &mut Sema<'_, '_>,
    state: &mut Loop,
    callback: &Callback,
    operands: Operands<'_>,
) -> R<()> {
    let Operands { inputs, output } = operands;
    let mut args = Vec::with_capacity(inputs.len());
    let mut first = true;
    for input in inputs {
        let span = input.span;
        let operand = match &input.kind {
            InputKind::Memory(walk) => {
                state.ask(&walk.limit);
                walk.element(sema, span)?
            }
            InputKind::Fabric(fabric) => {
                state.ask(&fabric.limit);
                state.put(sema, std::mem::replace(&mut first, false));
                fabric.receive(sema, state)?
            }
            InputKind::Register { dsr, temp, ty } => {
                state.put(sema, std::mem::replace(&mut first, false));
                step_in(sema, state, *dsr, (*temp, *ty), span)?
            }
            InputKind::Same(operand) => operand.clone(),
        };
        args.push((operand, span));
    }
    if let Some(limit) = output.and_then(Output::limit) {
        state.ask(limit);
    }
    state.put(sema, first);
    let result = sema.call_with(callback.func, &callback.decl, args, state.span)?;
    match output {
        Some(Output::Register(dsr)) => step_out(sema, state, *dsr, result, callback.ret),
        Some(output) => write(sema, state, output, result, callback.ret),
        None => Ok(()),
    }
}

impl Loop {
    fn new(sema: &mut Sema<'_, '_>, operands: Operands<'_>, span: Span) -> Loop {
        let counter = sema.new_scalar(None, Ty::I32);
        sema.emit(StmtKind::Set(counter, typed(ExprKind::Const(0), Ty::I32, span)), span);
        Loop {
            label: sema.new_label(),
            counter,
            total: operands.total(sema, span),
            packed: operands.packed(),
            cond: None,
            pending: Vec::new(),
            least: None,
            known_at: None,
            span,
        }
    }

    /// Elements done, 32 bits.
    fn count(&self) -> Expr {
        typed(ExprKind::Local(self.counter), Ty::I32, self.span)
    }

    /// One more.
    fn following(&self) -> Expr {
        let one = typed(ExprKind::Const(1), Ty::I32, self.span);
        typed(ExprKind::Binary(BinaryOp::Add, self.count(), one), Ty::I32, self.span)
    }

    /// Whether this element is the last one; none if there is no last one.
    fn is_last(&self) -> Option<Expr> {
        let total = self.total.clone()?;
        let kind = ExprKind::Binary(BinaryOp::Eq, self.following(), total);
        Some(typed(kind, Ty::I8, self.span))
    }

    /// Whether this element is the second one of a word.
    fn is_second(&self) -> Expr {
        let (one, zero) = (ExprKind::Const(1), ExprKind::Const(0));
        let [one, zero] = [one, zero].map(|kind| typed(kind, Ty::I32, self.span));
        let low = typed(ExprKind::Binary(BinaryOp::And, self.count(), one), Ty::I32, self.span);
        typed(ExprKind::Binary(BinaryOp::Ne, low, zero), Ty::I8, self.span)
    }

    /// An operand must have an element left.
    fn ask(&mut self, limit: &Limit) {
        let (limit, is_known) = match limit {
            Limit::Endless => return,
            Limit::Known(count) => {
                if self.least.is_some_and(|least| least <= *count) {
                    return;
                }
                self.least = Some(*count);
                (typed(ExprKind::Const(u64::from(*count)), Ty::I32, self.span), true)
            }
            Limit::Computed(expr) => (expr.clone(), false),
        };
        let less = ExprKind::Binary(BinaryOp::LtU, self.count(), limit);
        let less = typed(less, Ty::I8, self.span);
        match self.known_at.filter(|_| is_known) {
            Some(at) => self.pending[at] = less,
            None => {
                if is_known {
                    self.known_at = Some(self.pending.len());
                }
                self.pending.push(less);
            }
        }
    }

    /// Puts the questions so far into the loop's condition, or into code that leaves it.
    fn put(&mut self, sema: &mut Sema<'_, '_>, in_condition: bool) {
        self.known_at = None;
        let all = self.pending.drain(..).reduce(|a, b| {
            let span = a.span;
            typed(ExprKind::Binary(BinaryOp::And, a, b), Ty::I8, span)
        });
        let Some(all) = all else { return };
        if in_condition {
            self.cond = Some(all);
            return;
        }
        let leave = Stmt { kind: StmtKind::Break(self.label), span: self.span };
        let leave = StmtKind::If { cond: all, then: Vec::new(), otherwise: vec![leave] };
        sema.emit(leave, self.span);
    }
}

/// A vector operation as a question: the loop ends unless it ran to its end.
fn or_leave(sema: &mut Sema<'_, '_>, state: &Loop, vector: Vector, span: Span) {
    let ran = typed(ExprKind::Vector(Box::new(vector)), Ty::I8, span);
    let leave = Stmt { kind: StmtKind::Break(state.label), span };
    sema.emit(StmtKind::If { cond: ran, then: Vec::new(), otherwise: vec![leave] }, span);
}

/// Reads one element through a register.
fn step_in(
    sema: &mut Sema<'_, '_>,
    state: &Loop,
    dsr: DsrRef,
    (temp, ty): (LocalIdx, TypeId),
    span: Span,
) -> R<Operand> {
    let machine = sema.machine_ty(ty, span)?;
    let address = ExprKind::LocalAddress { local: temp, offset: 0 };
    let address = typed(address, sema.profile().pointer(), span);
    let vector = Vector {
        op: move_of(sema, machine, span)?,
        dest: typed::Operand::Pointer(address.clone()),
        sources: vec![typed::Operand::Dsr(dsr)],
        options: typed::Options::default(),
    };
    or_leave(sema, state, vector, span);
    let element = typed(ExprKind::Load { address, offset: 0 }, machine, span);
    Ok(Operand::Scalar { ty, expr: element })
}

/// Writes one element through a register.
fn step_out(
    sema: &mut Sema<'_, '_>,
    state: &Loop,
    dsr: DsrRef,
    result: Operand,
    ty: TypeId,
) -> R<()> {
    let span = state.span;
    let result = sema.coerce(result, ty, span)?;
    let machine = sema.machine_ty(ty, span)?;
    let vector = Vector {
        op: move_of(sema, machine, span)?,
        dest: typed::Operand::Dsr(dsr),
        sources: vec![typed::Operand::Scalar(sema.scalar_of(result, span)?)],
        options: typed::Options::default(),
    };
    or_leave(sema, state, vector, span);
    Ok(())
}

fn write(
    sema: &mut Sema<'_, '_>,
    state: &Loop,
    output: &Output,
    result: Operand,
    ty: TypeId,
) -> R<()> {
    let span = state.span;
    let result = sema.coerce(result, ty, span)?;
    match output {
        Output::Memory(walk) => {
            let value = sema.scalar_of(result, span)?;
            walk.store(sema, value, span);
            Ok(())
        }
        Output::Register(_) => Ok(()),
        Output::Pointer(address) => sema.store_memory(address, ty, result, span),
        Output::Fabric(fabric) => {
            let value = sema.scalar_of(result, span)?;
            fabric.send(sema, state, value)
        }
    }
}

/// The operation that moves elements of a type.
fn move_of(sema: &mut Sema<'_, '_>, ty: Ty, span: Span) -> R<DsdOp> {
    let name = match ty {
        Ty::I16 => "mov16",
        Ty::I32 => "mov32",
        Ty::F16 | Ty::Bf16 => "fmovh",
        Ty::F32 => "fmovs",
        Ty::I8 | Ty::I64 | Ty::F64 => "",
    };
    match DsdOp::by_name(name) {
        Some(op) => Ok(op.on(ty)),
        None => {
            let message = format!("elements of type `{}` do not travel", ty.name());
            sema.fail(codes::INVALID_TYPE, message, span, "used here")
        }
    }
}
