//! What host and test blocks can do, as host operations of the IR.
//!
//! A slice is 16 bytes of memory: pointer, then length in elements. A rectangle is four 64-bit
//! numbers: x, y, width, height. Invariant: an operation's arguments are of the types that
//! [`HostOp`] says; sizes known now have been checked, the others are checked when it runs.

mod numbers;
mod print;
mod transfer;

use dflow_ir::program::HostOp;
use dflow_ir::scalar::BinaryOp;
use dflow_ir::ty::Ty;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Span, codes};

use super::Call;
use super::args::in_range;
use crate::sema::address::{Address, typed};
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind, Stmt, StmtKind};

pub(crate) use numbers::{
    assumed_share, clock_rate, cos, cycles, exp, has_input, has_setting, input, log, log10, output,
    setting, sin, wavelets,
};
pub(crate) use print::{expect, print};
pub(crate) use transfer::{
    all, copy_in, copy_out, launch, rect, stream_in, stream_out, stream_out_rows, wait,
};

/// Most elements that can be asked for at once; beyond it sizes in bytes could wrap around.
const MOST: i64 = 1 << 40;

/// A 64-bit constant.
fn word(value: i64, span: Span) -> Expr {
    typed(ExprKind::Const(value as u64), Ty::I64, span)
}

fn binary(op: BinaryOp, lhs: Expr, rhs: Expr, span: Span) -> Expr {
    let ty = if op.is_comparison() { Ty::I8 } else { Ty::I64 };
    typed(ExprKind::Binary(op, lhs, rhs), ty, span)
}

fn load(address: Expr, offset: i32, span: Span) -> Expr {
    typed(ExprKind::Load { address, offset }, Ty::I64, span)
}

/// Emits an operation; gives its results.
fn perform(
    sema: &mut Sema<'_, '_>,
    op: HostOp,
    results: &[Ty],
    args: Vec<Expr>,
    span: Span,
) -> Vec<Expr> {
    let dests: Vec<_> = results.iter().map(|&ty| sema.new_scalar(None, ty)).collect();
    let values = dests.iter().zip(results);
    let values = values.map(|(&dest, &ty)| typed(ExprKind::Local(dest), ty, span)).collect();
    sema.emit(StmtKind::Host { op, dests, args }, span);
    values
}

/// An operation with one scalar result.
fn perform_one(
    sema: &mut Sema<'_, '_>,
    op: HostOp,
    ty: TypeId,
    args: Vec<Expr>,
    span: Span,
) -> R<Operand> {
    let machine = sema.machine_ty(ty, span)?;
    let mut values = perform(sema, op, &[machine], args, span);
    match values.pop() {
        Some(expr) => Ok(Operand::Scalar { ty, expr }),
        None => Ok(Operand::Void),
    }
}

/// Emits a check: unless `cond` holds, the run or test ends with a message.
fn ensure(
    sema: &mut Sema<'_, '_>,
    cond: Expr,
    op: HostOp,
    args: Vec<Expr>,
    before: Vec<Stmt>,
    span: Span,
) {
    let mut failed = before;
    let mut all = vec![typed(ExprKind::Const(0), Ty::I8, span)];
    all.extend(args);
    failed.push(Stmt { kind: StmtKind::Host { op, dests: Vec::new(), args: all }, span });
    sema.emit(StmtKind::If { cond, then: Vec::new(), otherwise: failed }, span);
}

/// The same for a message with unsigned numbers between its pieces.
fn ensure_sizes(sema: &mut Sema<'_, '_>, cond: Expr, pieces: &[&str], args: Vec<Expr>, span: Span) {
    let pieces = pieces.iter().map(|&piece| piece.to_owned()).collect();
    let kinds = vec![dflow_ir::program::HostArg::Signed; args.len()];
    ensure(sema, cond, HostOp::Expect { pieces, args: kinds }, args, Vec::new(), span);
}

/// A number of elements, a coordinate or a size, as 64 bits; and its value if it is known.
fn size_of(
    sema: &mut Sema<'_, '_>,
    operand: Operand,
    what: &str,
    span: Span,
) -> R<(Expr, Option<i64>)> {
    if let Operand::Const(value) = &operand {
        let known = in_range(sema, value, 0, i128::from(MOST), what, span)? as i64;
        return Ok((word(known, span), Some(known)));
    }
    let ty = sema.operand_type(&operand);
    if !sema.types.is_int(ty) {
        let name = sema.type_name(ty);
        let message = format!("{what} is an integer, this is `{name}`");
        return sema.fail(codes::TYPE_MISMATCH, message, span, "of the wrong type");
    }
    let (machine, signed) = (sema.machine_ty(ty, span)?, sema.types.is_signed(ty));
    let expr = sema.scalar_of(operand, span)?;
    let expr = sema.resize(expr, machine, Ty::I64, signed, span);
    Ok((sema.pin(expr, span), None))
}

fn size_arg(sema: &mut Sema<'_, '_>, arg: ExprId, what: &str) -> R<(Expr, Option<i64>)> {
    let span = sema.expr_span(arg);
    let operand = sema.expr(arg, None)?;
    size_of(sema, operand, what, span)
}

/// A slice in parts.
struct Slice {
    ptr: Expr,
    len: Expr,
    elem: TypeId,
    /// What it was made of cannot be written to.
    constant: bool,
}

/// A slice, an array or a pointer to an array, as a slice in parts.
fn slice_of(sema: &mut Sema<'_, '_>, operand: Operand, span: Span) -> R<Slice> {
    let ty = sema.operand_type(&operand);
    let shared = sema.types.shared(ty);
    let constant = matches!(operand, Operand::Const(_));
    match shared.as_ref() {
        Type::Slice { elem } => {
            let Operand::Memory { address, .. } = operand else { return sema.undefined(span) };
            // Both parts are read at once.
            let address = address.of_variable();
            let constant = sema.is_constant_slice(&address);
            let (address, offset) = sema.split_address(&address, span)?;
            let address = sema.pin(address, span);
            let (ptr, len) = (load(address.clone(), offset, span), load(address, offset + 8, span));
            let (ptr, len) = (sema.pin(ptr, span), sema.pin(len, span));
            Ok(Slice { ptr, len, elem: *elem, constant })
        }
        Type::Array { elem, .. } => {
            let address = sema.aggregate_address(operand, span)?;
            let address = sema.sliceable(address, ty, span)?;
            array_slice(sema, &address, ty, *elem, constant, span)
        }
        &Type::Pointer { many: false, constant, pointee } => {
            let Type::Array { elem, .. } = *sema.types.get(pointee) else {
                return no_slice(sema, ty, span);
            };
            let address = sema.pointer_address(operand, span)?;
            array_slice(sema, &address, pointee, elem, constant, span)
        }
        _ => no_slice(sema, ty, span),
    }
}

fn no_slice<T>(sema: &mut Sema<'_, '_>, ty: TypeId, span: Span) -> R<T> {
    let name = sema.type_name(ty);
    let message = format!("a slice or an array is needed here, this is `{name}`");
    sema.fail(codes::HOST_TYPE, message, span, "no slice")
}

fn array_slice(
    sema: &mut Sema<'_, '_>,
    address: &Address,
    ty: TypeId,
    elem: TypeId,
    constant: bool,
    span: Span,
) -> R<Slice> {
    let ptr = sema.address_expr(address, span)?;
    let ptr = sema.pin(ptr, span);
    let len = word(sema.types.element_count(ty) as i64, span);
    Ok(Slice { ptr, len, elem, constant })
}

fn slice_arg(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<(Slice, Span)> {
    let span = sema.expr_span(arg);
    let operand = sema.expr(arg, None)?;
    Ok((slice_of(sema, operand, span)?, span))
}

/// A slice that is written to.
fn target_arg(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<(Slice, Span)> {
    let (slice, span) = slice_arg(sema, arg)?;
    if slice.constant {
        let message = "this array is a constant and cannot be written to";
        return sema.fail(codes::NOT_ASSIGNABLE, message, span, "words would arrive here");
    }
    Ok((slice, span))
}

/// A slice of `elem`, in fresh memory.
fn new_slice(
    sema: &mut Sema<'_, '_>,
    elem: TypeId,
    ptr: Expr,
    len: Expr,
    span: Span,
) -> R<Operand> {
    let ty = sema.types.intern(Type::Slice { elem });
    sema.new_slice(ptr, len, ty, span)
}

/// `@alloc(T, n)`.
pub(crate) fn alloc(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let elem = sema.type_expr(call.args[0])?;
    let elem_span = sema.expr_span(call.args[0]);
    let (size, _) = sema.runtime_size(elem, elem_span)?;
    let (count, known) = size_arg(sema, call.args[1], "the number of elements")?;
    let span = call.span;
    if known.is_none() {
        let fits = binary(BinaryOp::LeU, count.clone(), word(MOST, span), span);
        let pieces = ["`@alloc` of ", " elements"];
        ensure_sizes(sema, fits, &pieces, vec![count.clone()], span);
    }
    let bytes = binary(BinaryOp::Mul, count.clone(), word(i64::from(size), span), span);
    let mut results = perform(sema, HostOp::Alloc, &[Ty::I64], vec![bytes], span);
    let ptr = results.pop().unwrap_or_else(|| word(0, span));
    new_slice(sema, elem, ptr, count, span)
}

/// `@slice(s, from, to)`.
pub(crate) fn slice(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let span = call.span;
    let (slice, _) = slice_arg(sema, call.args[0])?;
    let (from, _) = size_arg(sema, call.args[1], "the start of a slice")?;
    let (to, _) = size_arg(sema, call.args[2], "the end of a slice")?;
    let (size, _) = sema.runtime_size(slice.elem, span)?;
    let ordered = binary(BinaryOp::LeU, from.clone(), to.clone(), span);
    let inside = binary(BinaryOp::LeU, to.clone(), slice.len.clone(), span);
    let both = typed(ExprKind::Binary(BinaryOp::And, ordered, inside), Ty::I8, span);
    let pieces = ["`@slice` from ", " to ", " of ", " elements"];
    ensure_sizes(sema, both, &pieces, vec![from.clone(), to.clone(), slice.len], span);
    let start = binary(BinaryOp::Mul, from.clone(), word(i64::from(size), span), span);
    let ptr = binary(BinaryOp::Add, slice.ptr, start, span);
    let len = binary(BinaryOp::Sub, to, from, span);
    let part = new_slice(sema, slice.elem, ptr, len, span)?;
    if let (true, Operand::Memory { address, .. }) = (slice.constant, &part) {
        sema.note_slice(address);
    }
    Ok(part)
}

/// A comptime string argument; names are plain text.
fn name_arg(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<(String, Span)> {
    sema.arg_string(arg, "a name as a string")
}

/// The value of a known rectangle, number or the like, if the operand is one.
fn known(operand: &Operand) -> Option<&Value> {
    match operand {
        Operand::Const(value) if !matches!(value.data, Data::Undef) => Some(value),
        Operand::Const(_) | Operand::Scalar { .. } | Operand::Memory { .. } | Operand::Void => None,
    }
}
