//! Expressions: operators and the dispatch by kind.

mod binary;
mod operands;

use std::rc::Rc;

use dflow_ir::scalar::{Convert, UnaryOp as IrUnary};
use dflow_syntax::ast::{BinaryOp, Expr as Ast, ExprId, UnaryOp};
use dflow_syntax::{Diagnostic, Span, codes};

use super::address::typed;
use super::control::Wish;
use super::ops;
use super::place::Place;
use super::types::{Type, TypeId};
use super::value::{Arg, Data, Node, Scalar, Value};
use super::{Cell, Operand, R, Sema};
use crate::builtins;
use crate::resolve::{Res, ResolvedFile};
use crate::typed::{Expr, ExprKind};

impl Sema<'_, '_> {
    /// Analyzes an expression. `hint` is the type that the surroundings want, for literals and
    /// untyped results; the result may still need [`Sema::coerce`].
    pub(crate) fn expr(&mut self, id: ExprId, hint: Option<TypeId>) -> R<Operand> {
        let file = Rc::clone(&self.frame().file);
        let span = file.file.expr_span(id);
        self.step(span)?;
        let wanted = self.wanted.take();
        if let Res::Local(slot) = file.res(id)
            && let Cell::Const(value) = &self.frame().slots[slot as usize]
        {
            return Ok(Operand::Const(value.clone()));
        }
        let early = file.is_early(id);
        let operand =
            self.while_early(early, |sema| sema.expr_of(&file, id, Wish { hint, wanted }, span))?;
        match operand {
            // What it is made of has been kept; what a builtin, a block or an inline function gives may be read yet.
            Operand::Scalar { ty, expr } if early && is_made_elsewhere(file.file.expr(id)) => {
                Ok(Operand::Scalar { ty, expr: self.pin(expr, span) })
            }
            // A value, not the variable that it was read from.
            Operand::Memory { ty, address } if is_made_of_statements(file.file.expr(id)) => {
                Ok(Operand::Memory { ty, address: address.named() })
            }
            operand => Ok(operand),
        }
    }

    /// Does something; what it reads is kept or not, for what comes after it.
    pub(crate) fn while_early<T>(&mut self, early: bool, read: impl FnOnce(&mut Self) -> T) -> T {
        let around = std::mem::replace(&mut self.early, early);
        let done = read(self);
        self.early = around;
        done
    }

    fn expr_of(&mut self, file: &ResolvedFile, id: ExprId, wish: Wish, span: Span) -> R<Operand> {
        let Wish { hint, .. } = wish;
        match file.file.expr(id) {
            Ast::Error => Err(self.poisoned()),
            Ast::Int(value) => self.int_literal(*value, span),
            Ast::Float(value) => Ok(Operand::Const(Value::new(
                self.types.common.comptime_float,
                Data::Float(*value),
            ))),
            Ast::Str(bytes) => {
                let data = Data::Str(bytes.as_slice().into());
                Ok(Operand::Const(Value::new(self.types.common.comptime_string, data)))
            }
            Ast::Bool(value) => Ok(Operand::Const(self.bool_value(*value))),
            Ast::Name(_) | Ast::Field { .. } | Ast::Index { .. } | Ast::Deref(_) => {
                let place = self.place(id)?;
                self.load(place, span)
            }
            Ast::Builtin { name, name_span, args } => {
                builtins::call(self, *name, *name_span, args, span, wish.for_untyped())
            }
            Ast::Call { callee, args } => self.call(*callee, args, span),
            Ast::Unary { op: UnaryOp::AddressOf, operand } => self.address_of(*operand, span),
            Ast::Unary { op, operand } => self.unary(*op, *operand, wish, span),
            Ast::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), lhs, rhs } => {
                self.logical(*op == BinaryOp::And, *lhs, *rhs, span)
            }
            Ast::Binary { op, lhs, rhs } => {
                let (lhs, rhs) = self.operands(*op, *lhs, *rhs, wish)?;
                self.binary(*op, lhs, rhs, span)
            }
            Ast::Comptime(inner) => {
                let operand = self.at_comptime(|sema| sema.wished(*inner, wish))?;
                self.need_const(operand, span).map(Operand::Const)
            }
            Ast::Block { label, block } => self.block_expr(*label, block, wish, span),
            Ast::If { cond, then, otherwise } => self.if_expr(*cond, *then, *otherwise, wish, span),
            Ast::Switch { subject, prongs } => self.switch_expr(*subject, prongs, wish, span),
            Ast::StructLiteral { fields } => self.struct_literal(fields, hint, span),
            Ast::TupleLiteral { elems } => self.tuple_literal(elems, hint, span),
            Ast::TypedStruct { ty, fields } => self.typed_struct(*ty, fields, span),
            Ast::TypedArray { ty, elems } => self.typed_array(*ty, elems, span),
            Ast::ArrayType { .. }
            | Ast::PointerType { .. }
            | Ast::FnType { .. }
            | Ast::StructType { .. }
            | Ast::EnumType { .. } => {
                let ty = self.type_expr(id)?;
                Ok(Operand::Const(Value::new(self.types.common.type_, Data::Type(ty))))
            }
            Ast::TensorAccess { vars, extents, base, indices } => {
                self.tensor_access(id, vars, extents, *base, indices, span)
            }
            Ast::Asm => {
                let message =
                    "`asm` is not supported: the instructions of the machine are not published";
                self.fail(codes::NOT_SUPPORTED, message, span, "used here")
            }
        }
    }

    /// The proof of an error that has been reported already.
    pub(crate) fn poisoned(&mut self) -> dflow_syntax::Reported {
        match self.cx.sink.ok() {
            Err(reported) => reported,
            Ok(()) => self.cx.emit(Diagnostic::without_place(
                codes::INTERNAL_ERROR,
                "a part of the program could not be read and nothing was said",
            )),
        }
    }

    fn int_literal(&mut self, value: u128, span: Span) -> R<Operand> {
        match i128::try_from(value) {
            Ok(value) => Ok(Operand::Const(Value::int(self.types.common.comptime_int, value))),
            Err(_) => self.fail(
                codes::INTEGER_TOO_LARGE,
                "this integer has more than 127 bits",
                span,
                "too large",
            ),
        }
    }

    fn address_of(&mut self, operand: ExprId, span: Span) -> R<Operand> {
        let place = self.place(operand)?;
        let ty = self.place_type(&place);
        if let Place::Const { value: Value { data: Data::Func(func), .. }, .. } = &place {
            return self.func_pointer(*func, ty, span).map(Operand::Const);
        }
        if let Place::Local { .. } | Place::Value(_) | Place::Bits { .. } = place {
            return self.fail(
                codes::NO_ADDRESS,
                match place {
                    Place::Bits { .. } => "a field of a packed struct has no address",
                    _ => "this value has no place in memory",
                },
                span,
                "its address is taken here",
            );
        }
        let (address, mutable) = self.lasting_memory_of(place, span)?;
        let pointer = self.types.pointer(false, !mutable, ty);
        self.address_operand(address, pointer, span)
    }

    /// An address as a pointer operand: known if it can be.
    pub(crate) fn address_operand(
        &mut self,
        address: super::address::Address,
        pointer: TypeId,
        span: Span,
    ) -> R<Operand> {
        if let Some(known) = address.known() {
            return Ok(Operand::Const(Value::new(pointer, Data::Pointer(Rc::new(known)))));
        }
        let expr = self.address_expr(&address, span)?;
        Ok(Operand::Scalar { ty: pointer, expr })
    }

    fn unary(&mut self, op: UnaryOp, operand: ExprId, wish: Wish, span: Span) -> R<Operand> {
        let operand = self.wished(operand, Wish { hint: None, wanted: wish.for_untyped() })?;
        let ty = self.operand_type(&operand);
        let fits = match op {
            UnaryOp::Neg => self.types.is_int(ty) || self.types.is_float(ty),
            UnaryOp::Not => ty == self.types.common.bool,
            UnaryOp::BitNot => self.types.is_int(ty),
            UnaryOp::AddressOf => false,
        };
        if !fits {
            return self.wrong_operand(op, ty, span);
        }
        if let Operand::Const(value) = operand {
            return self.unary_value(op, &value, span).map(Operand::Const);
        }
        let machine = self.machine_ty(ty, span)?;
        let expr = self.scalar_of(operand, span)?;
        let ir = match op {
            UnaryOp::Neg | UnaryOp::AddressOf => IrUnary::Neg,
            UnaryOp::Not => IrUnary::Not,
            UnaryOp::BitNot => IrUnary::BitNot,
        };
        let expr = typed(ExprKind::Unary(ir, expr), machine, span);
        Ok(Operand::Scalar { ty, expr: self.normal(expr, ty, span) })
    }

    fn wrong_operand<T>(&mut self, op: UnaryOp, ty: TypeId, span: Span) -> R<T> {
        let name = self.type_name(ty);
        let message = format!("`{}` does not take a value of type `{name}`", op.symbol());
        let help = match op {
            UnaryOp::Not if self.types.is_int(ty) => {
                Some("compare it, `x == 0`, or write `~x` for its bits")
            }
            UnaryOp::BitNot if ty == self.types.common.bool => Some("write `!`"),
            _ => None,
        };
        let diagnostic =
            Diagnostic::new(codes::INVALID_OPERANDS, message, span).label("applied here");
        Err(self.report(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }))
    }

    fn unary_value(&mut self, op: UnaryOp, value: &Value, span: Span) -> R<Value> {
        let Some(scalar) = scalar_of_value(value) else { return self.undefined(span) };
        let result = match ops::unary(&self.types, op, value.ty, scalar) {
            Ok(result) => result,
            Err((code, message)) => return self.fail(code, message, span, "computed here"),
        };
        let prov = self.derive(value, |arg| Node::Unary { op, ty: value.ty, arg });
        Ok(Value { ty: value.ty, data: result.data(), prov })
    }

    /// The provenance of something computed from one value.
    pub(crate) fn derive(&mut self, from: &Value, node: impl FnOnce(Arg) -> Node) -> u32 {
        match (&mut self.program, from.prov) {
            (_, 0) | (None, _) => 0,
            (Some(program), prov) => program.provenance.add(node(Arg::Node(prov - 1))),
        }
    }

    /// A scalar operand as an expression of its own type.
    pub(crate) fn scalar_of(&mut self, operand: Operand, span: Span) -> R<Expr> {
        match operand {
            Operand::Scalar { expr, .. } => Ok(expr),
            Operand::Const(value) => {
                let machine = self.machine_ty(value.ty, span)?;
                self.const_expr(&value, machine, span)
            }
            Operand::Memory { ty, .. } => {
                let name = self.type_name(ty);
                let message = format!("a value of type `{name}` is no scalar");
                self.fail(codes::TYPE_MISMATCH, message, span, "needed as a scalar here")
            }
            Operand::Void => {
                self.fail(codes::TYPE_MISMATCH, "this has no value", span, "a value is needed here")
            }
        }
    }

    /// A condition: a bool, known or as an expression.
    pub(crate) fn condition(&mut self, id: ExprId) -> R<Result<bool, Expr>> {
        let (span, bool_ty) = (self.expr_span(id), self.types.common.bool);
        let operand = self.expr(id, Some(bool_ty))?;
        match self.coerce(operand, bool_ty, span)? {
            Operand::Const(value) => match self.fix_bool(&value) {
                Some(truth) => Ok(Ok(truth)),
                None => self.undefined(span),
            },
            other => self.scalar_of(other, span).map(Err),
        }
    }

    /// The known value of an operand.
    pub(crate) fn need_const(&mut self, operand: Operand, span: Span) -> R<Value> {
        match operand {
            Operand::Const(value) => Ok(value),
            Operand::Void => Ok(self.void_value()),
            Operand::Scalar { .. } | Operand::Memory { .. } => self.fail(
                codes::NOT_COMPTIME,
                "this value is known only at run time, and is needed at compile time",
                span,
                "a run-time value",
            ),
        }
    }

    /// A known integer that decides something.
    pub(crate) fn need_int(&mut self, operand: Operand, id: ExprId, what: &str) -> R<i128> {
        let span = self.expr_span(id);
        let value = self.need_const(operand, span)?;
        if self.types.is_int(value.ty)
            && let Some(int) = self.fix_int(&value)
        {
            return Ok(int);
        }
        let name = self.type_name(value.ty);
        let message = format!("{what} is an integer, this is `{name}`");
        self.fail(codes::TYPE_MISMATCH, message, span, "not an integer")
    }

    /// Whether run-time values of `from` become `to` by themselves without loss.
    pub(crate) fn widens(&self, from: TypeId, to: TypeId) -> bool {
        match (self.types.get(from), self.types.get(to)) {
            (Type::Int { signed: a, bits: x }, Type::Int { signed: b, bits: y }) => {
                y > x && (a == b || *b)
            }
            (Type::Float(a), Type::Float(b)) => b.ty().bits() > a.ty().bits(),
            _ => false,
        }
    }

    /// A widening conversion of a run-time scalar.
    pub(crate) fn widen(&mut self, expr: Expr, from: TypeId, to: TypeId, span: Span) -> R<Expr> {
        let (source, dest) = (self.machine_ty(from, span)?, self.machine_ty(to, span)?);
        if source.is_float() {
            return Ok(typed(ExprKind::Convert(Convert::FloatFromFloat, expr), dest, span));
        }
        let signed = self.types.is_signed(from);
        Ok(self.resize(expr, source, dest, signed, span))
    }
}

/// The scalar in a value.
pub(crate) fn scalar_of_value(value: &Value) -> Option<Scalar> {
    match value.data {
        Data::Int(int) => Some(Scalar::Int(int)),
        Data::Float(float) => Some(Scalar::Float(float)),
        _ => None,
    }
}

/// Whether an expression's value is made elsewhere: by statements, or by a builtin.
fn is_made_elsewhere(expr: &Ast) -> bool {
    is_made_of_statements(expr) || matches!(expr, Ast::Builtin { .. })
}

fn is_made_of_statements(expr: &Ast) -> bool {
    matches!(expr, Ast::Call { .. } | Ast::Block { .. } | Ast::If { .. } | Ast::Switch { .. })
}
