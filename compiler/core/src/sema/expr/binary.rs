//! Operators with two operands: their common type, what they mean, what is known of them.

use std::borrow::Cow;

use dflow_ir::scalar::BinaryOp as Ir;
use dflow_ir::ty::Ty;
use dflow_syntax::ast::{BinaryOp, ExprId};
use dflow_syntax::{Diagnostic, Span, codes};

use super::scalar_of_value;
use crate::sema::address::typed;
use crate::sema::ops;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Arg, Data, Node, Value};
use crate::sema::{Operand, R, Sema};
use crate::typed::{ExprKind, StmtKind};

impl Sema<'_, '_> {
    /// `lhs op rhs`, logical operators apart.
    pub(crate) fn binary(
        &mut self,
        op: BinaryOp,
        lhs: Operand,
        rhs: Operand,
        span: Span,
    ) -> R<Operand> {
        if let (Operand::Const(lhs), Operand::Const(rhs)) = (&lhs, &rhs) {
            return self.binary_values(op, lhs, rhs, span).map(Operand::Const);
        }
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            return self.shift(op, lhs, rhs, span);
        }
        let (lhs, rhs, ty) = self.peers(op, lhs, rhs, span)?;
        self.check_operator(op, ty, span)?;
        let machine = self.machine_ty(ty, span)?;
        let lhs = self.scalar_of(lhs, span)?;
        let rhs = self.scalar_of(rhs, span)?;
        let signed = self.types.is_signed(ty);
        let (ir, swap) = ir_binary(op, machine.is_float(), signed);
        let (lhs, rhs) = if swap { (rhs, lhs) } else { (lhs, rhs) };
        let (result, machine) =
            if op.is_comparison() { (self.types.common.bool, Ty::I8) } else { (ty, machine) };
        let expr = typed(ExprKind::Binary(ir, lhs, rhs), machine, span);
        Ok(Operand::Scalar { ty: result, expr: self.normal(expr, result, span) })
    }

    /// Both operands in one type, at least one of them known at run time only.
    fn peers(
        &mut self,
        op: BinaryOp,
        lhs: Operand,
        rhs: Operand,
        span: Span,
    ) -> R<(Operand, Operand, TypeId)> {
        let (left, right) = (self.operand_type(&lhs), self.operand_type(&rhs));
        if left == right {
            return Ok((lhs, rhs, left));
        }
        let pointer = |ty| matches!(self.types.get(ty), Type::Pointer { .. });
        if !op.is_comparison() && (pointer(left) || pointer(right)) {
            return self.mixed(op, left, right, span);
        }
        let float = self.types.common.comptime_float;
        if left == float && self.types.is_int(right) || right == float && self.types.is_int(left) {
            return self.float_and_int(if left == float { right } else { left }, span);
        }
        match (&lhs, &rhs) {
            (Operand::Const(_), _) => {
                let lhs = self.coerce(lhs, right, span)?;
                Ok((lhs, rhs, right))
            }
            (_, Operand::Const(_)) => {
                let rhs = self.coerce(rhs, left, span)?;
                Ok((lhs, rhs, left))
            }
            _ if self.widens(left, right) => {
                let lhs = self.coerce(lhs, right, span)?;
                Ok((lhs, rhs, right))
            }
            _ if self.widens(right, left) => {
                let rhs = self.coerce(rhs, left, span)?;
                Ok((lhs, rhs, left))
            }
            _ => self.mixed(op, left, right, span),
        }
    }

    /// A float that is written out beside an integer of run time.
    fn float_and_int<T>(&mut self, int: TypeId, span: Span) -> R<T> {
        let name = self.type_name(int);
        let message = format!("the operands are a `{name}` and a `comptime_float`");
        Err(self.report(
            Diagnostic::new(codes::TYPE_MISMATCH, message, span)
                .label("an integer and a float")
                .help("convert the integer, `@as(f32, x)`, or write an integer for the float"),
        ))
    }

    fn mixed<T>(&mut self, op: BinaryOp, left: TypeId, right: TypeId, span: Span) -> R<T> {
        let pointer = |ty| matches!(self.types.get(ty), Type::Pointer { .. });
        let pointers = pointer(left) || pointer(right);
        let behind = |ty| match *self.types.get(ty) {
            Type::Pointer { many: false, pointee, .. } => {
                self.types.is_int(pointee) || self.types.is_float(pointee)
            }
            _ => false,
        };
        let one = behind(left) || behind(right);
        let truth = self.types.common.bool;
        let number = |ty| ty == truth || self.types.is_int(ty) || self.types.is_float(ty);
        let numbers = number(left) && number(right);
        let text = self.types.common.comptime_string;
        let strings = left == text || right == text;
        let (left, right) = (self.type_name(left), self.type_name(right));
        let help = match pointers {
            false if strings => "strings are joined by `@strcat`".to_owned(),
            true if one => "the value that a pointer points to is `pointer.*`".to_owned(),
            true => {
                "pointers do not take arithmetic: index one, `p[i]`, or point elsewhere, `&a[i]`"
                    .to_owned()
            }
            false => format!("convert one side: `@as({left}, …)`"),
        };
        let message = format!("`{}` mixes `{left}` and `{right}`", op.symbol());
        let diagnostic = Diagnostic::new(codes::TYPE_MISMATCH, message, span)
            .label("operands of different types");
        Err(self.report(match pointers || numbers || strings {
            true => diagnostic.help(help),
            false => diagnostic,
        }))
    }

    fn check_operator(&mut self, op: BinaryOp, ty: TypeId, span: Span) -> R<()> {
        let (int, float) = (self.types.is_int(ty), self.types.is_float(ty));
        let equal = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        let fits = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => int || float,
            BinaryOp::Rem
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr => int,
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => int || float,
            BinaryOp::Eq | BinaryOp::Ne => true,
            BinaryOp::And | BinaryOp::Or => ty == self.types.common.bool,
        };
        let comparable = int
            || float
            || self.types.is_id(ty)
            || matches!(
                self.types.get(ty),
                Type::Bool
                    | Type::Enum(_)
                    | Type::Pointer { .. }
                    | Type::Meta
                    | Type::ComptimeString
            );
        if fits && (!equal || comparable) {
            return Ok(());
        }
        let name = self.type_name(ty);
        let message = format!("`{}` does not take values of type `{name}`", op.symbol());
        let diagnostic =
            Diagnostic::new(codes::INVALID_OPERANDS, message, span).label("applied here");
        let help = match self.types.get(ty) {
            Type::ComptimeString if op == BinaryOp::Add => "join strings with `@strcat(a, b)`",
            Type::Bool if op == BinaryOp::BitAnd => "write `and`",
            Type::Bool if op == BinaryOp::BitOr => "write `or`",
            Type::Float(_) if op == BinaryOp::Rem => {
                "for floats it is `x - y * math.floor(x / y)`, with `<math>`"
            }
            _ if self.types.is_dsd(ty) => {
                "descriptors are operands of vector operations, such as `@fadds(to, a, b)`"
            }
            Type::Pointer { .. } => {
                "pointers do not take arithmetic: index one, `p[i]`, or point elsewhere, `&a[i]`"
            }
            _ => return Err(self.report(diagnostic)),
        };
        Err(self.report(diagnostic.help(help)))
    }

    /// Shifts: the count's type is its own.
    fn shift(&mut self, op: BinaryOp, lhs: Operand, rhs: Operand, span: Span) -> R<Operand> {
        let count_ty = self.operand_type(&rhs);
        let ty = self.operand_type(&lhs);
        self.check_operator(op, ty, span)?;
        self.check_operator(op, count_ty, span)?;
        if ty == self.types.common.comptime_int {
            return self.fail(
                codes::MISSING_TYPE,
                "an untyped number is shifted by a count known at run time only",
                span,
                "give the number a type with `@as`",
            );
        }
        self.check_shift(&rhs, span)?;
        let signed = self.types.is_signed(ty);
        let machine = self.machine_ty(ty, span)?;
        let rhs = if count_ty == self.types.common.comptime_int {
            self.coerce(rhs, ty, span)?
        } else {
            rhs
        };
        let count_ty = self.operand_type(&rhs);
        let count_machine = self.machine_ty(count_ty, span)?;
        let lhs = self.scalar_of(lhs, span)?;
        let rhs = self.scalar_of(rhs, span)?;
        let wide = if count_machine.bits() > machine.bits() { count_machine } else { machine };
        // In the wider of the two types the count keeps its value; the result's low bits are
        // those of the narrow shift.
        let lhs = self.resize(lhs, machine, wide, signed, span);
        let rhs = self.resize(rhs, count_machine, wide, false, span);
        let (ir, _) = ir_binary(op, false, signed);
        let expr = typed(ExprKind::Binary(ir, lhs, rhs), wide, span);
        let expr = self.resize(expr, wide, machine, signed, span);
        Ok(Operand::Scalar { ty, expr: self.normal(expr, ty, span) })
    }

    /// A count is not negative: where it is known that is seen, elsewhere its type should say so.
    fn check_shift(&mut self, count: &Operand, span: Span) -> R<()> {
        let ty = self.operand_type(count);
        match count {
            Operand::Const(Value { data: Data::Int(count), prov: 0, .. }) if *count < 0 => {
                let message = format!("shift by {count}, a negative count");
                self.fail(codes::VALUE_OUT_OF_RANGE, message, span, "this shift")
            }
            Operand::Scalar { .. } if self.types.is_signed(ty) => {
                let name = self.type_name(ty);
                let message = format!("the count of a shift is unsigned, this is `{name}`");
                self.report(
                    Diagnostic::new(codes::SHIFT_COUNT, message, span)
                        .label("a negative count shifts everything out")
                        .help("convert it: `@as(u16, …)`"),
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `lhs op rhs` of two known values.
    pub(crate) fn binary_values(
        &mut self,
        op: BinaryOp,
        lhs: &Value,
        rhs: &Value,
        span: Span,
    ) -> R<Value> {
        if let Some(equal) = self.same_value(lhs, rhs) {
            return match op {
                BinaryOp::Eq => Ok(self.bool_value(equal)),
                BinaryOp::Ne => Ok(self.bool_value(!equal)),
                _ => {
                    self.check_operator(op, lhs.ty, span)?;
                    self.mixed(op, lhs.ty, rhs.ty, span)
                }
            };
        }
        let (lhs, rhs, ty) = self.value_peers(op, lhs, rhs, span)?;
        self.check_operator(op, ty, span)?;
        let (Some(a), Some(b)) = (scalar_of_value(&lhs), scalar_of_value(&rhs)) else {
            return self.undefined(span);
        };
        let result = match ops::binary(&self.types, op, ty, a, b) {
            Ok(result) => result,
            Err((code, message)) => {
                let message = format!("`{}` cannot be computed: {message}", op.symbol());
                return self.fail(code, message, span, "computed here");
            }
        };
        let mut prov = 0;
        if let (Some(program), true) = (&mut self.program, lhs.prov != 0 || rhs.prov != 0) {
            let arg = |value: &Value, scalar| match value.prov {
                0 => Arg::Const(scalar),
                node => Arg::Node(node - 1),
            };
            let node = Node::Binary { op, ty, lhs: arg(&lhs, a), rhs: arg(&rhs, b) };
            prov = program.provenance.add(node);
        }
        let ty = if op.is_comparison() { self.types.common.bool } else { ty };
        Ok(Value { ty, data: result.data(), prov })
    }

    /// Equality of values that are no numbers; `None` for numbers.
    fn same_value(&self, lhs: &Value, rhs: &Value) -> Option<bool> {
        match (&lhs.data, &rhs.data) {
            (Data::Str(a), Data::Str(b)) => Some(a == b),
            (Data::Type(a), Data::Type(b)) => Some(a == b),
            (Data::Func(a), Data::Func(b)) => Some(a == b),
            (Data::Pointer(a), Data::Pointer(b)) => Some((a.base, a.offset) == (b.base, b.offset)),
            _ => None,
        }
    }

    /// Both values in one type.
    fn value_peers<'v>(
        &mut self,
        op: BinaryOp,
        lhs: &'v Value,
        rhs: &'v Value,
        span: Span,
    ) -> R<(Cow<'v, Value>, Cow<'v, Value>, TypeId)> {
        let own = Cow::Borrowed;
        if lhs.ty == rhs.ty {
            return Ok((own(lhs), own(rhs), lhs.ty));
        }
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr)
            && self.types.is_int(lhs.ty)
            && self.types.is_int(rhs.ty)
        {
            return Ok((own(lhs), own(rhs), lhs.ty));
        }
        let untyped = |ty: TypeId| {
            ty == self.types.common.comptime_int || ty == self.types.common.comptime_float
        };
        let (left, right) = (untyped(lhs.ty), untyped(rhs.ty));
        let numbers = |a: TypeId, b: TypeId| {
            (self.types.is_int(a) || self.types.is_float(a))
                && (self.types.is_int(b) || self.types.is_float(b))
        };
        if !numbers(lhs.ty, rhs.ty) {
            return self.mixed(op, lhs.ty, rhs.ty, span);
        }
        // An untyped number takes the other side's type; of two untyped ones the float wins.
        let to_left = match (left, right) {
            (false, true) => true,
            (true, false) => false,
            (true, true) => lhs.ty == self.types.common.comptime_float,
            (false, false) => !self.widens(lhs.ty, rhs.ty),
        };
        if to_left {
            let ty = lhs.ty;
            Ok((own(lhs), Cow::Owned(self.coerce_value(rhs.clone(), ty, span)?), ty))
        } else {
            let ty = rhs.ty;
            Ok((Cow::Owned(self.coerce_value(lhs.clone(), ty, span)?), own(rhs), ty))
        }
    }

    /// `and`, `or`: the right side is looked at only if it can matter.
    pub(super) fn logical(
        &mut self,
        and: bool,
        lhs: ExprId,
        rhs: ExprId,
        span: Span,
    ) -> R<Operand> {
        let bool_ty = self.types.common.bool;
        let lhs_span = self.expr_span(lhs);
        let left = self.expr(lhs, Some(bool_ty))?;
        let left = self.coerce(left, bool_ty, lhs_span)?;
        if let Operand::Const(value) = &left {
            let truth = self.fix_bool(value).unwrap_or(false);
            if truth != and {
                return Ok(Operand::Const(self.bool_value(truth)));
            }
            let rhs_span = self.expr_span(rhs);
            let right = self.expr(rhs, Some(bool_ty))?;
            return self.coerce(right, bool_ty, rhs_span);
        }
        let result = self.new_scalar(None, Ty::I8);
        let left = self.scalar_of(left, span)?;
        self.emit(StmtKind::Set(result, left), span);
        self.open_list();
        self.frame_mut().depth += 1;
        let rhs_span = self.expr_span(rhs);
        let right = self
            .expr(rhs, Some(bool_ty))
            .and_then(|right| self.coerce(right, bool_ty, rhs_span))
            .and_then(|right| self.scalar_of(right, rhs_span));
        self.frame_mut().depth -= 1;
        let set = right.map(|right| self.emit(StmtKind::Set(result, right), rhs_span));
        let list = self.close_list();
        set?;
        let cond = typed(ExprKind::Local(result), Ty::I8, span);
        let (then, otherwise) = if and { (list, Vec::new()) } else { (Vec::new(), list) };
        self.emit(StmtKind::If { cond: cond.clone(), then, otherwise }, span);
        Ok(Operand::Scalar { ty: bool_ty, expr: cond })
    }
}

/// The machine operation, and whether its operands are exchanged.
fn ir_binary(op: BinaryOp, float: bool, signed: bool) -> (Ir, bool) {
    let pick = |f, s, u| {
        if float {
            f
        } else if signed {
            s
        } else {
            u
        }
    };
    match op {
        BinaryOp::Add => (Ir::Add, false),
        BinaryOp::Sub => (Ir::Sub, false),
        BinaryOp::Mul => (Ir::Mul, false),
        BinaryOp::Div => (pick(Ir::Div, Ir::DivS, Ir::DivU), false),
        BinaryOp::Rem => (pick(Ir::RemS, Ir::RemS, Ir::RemU), false),
        BinaryOp::BitAnd | BinaryOp::And => (Ir::And, false),
        BinaryOp::BitOr | BinaryOp::Or => (Ir::Or, false),
        BinaryOp::BitXor => (Ir::Xor, false),
        BinaryOp::Shl => (Ir::Shl, false),
        BinaryOp::Shr => (pick(Ir::ShrU, Ir::ShrS, Ir::ShrU), false),
        BinaryOp::Eq => (Ir::Eq, false),
        BinaryOp::Ne => (Ir::Ne, false),
        BinaryOp::Lt => (pick(Ir::LtF, Ir::LtS, Ir::LtU), false),
        BinaryOp::Le => (pick(Ir::LeF, Ir::LeS, Ir::LeU), false),
        BinaryOp::Gt => (pick(Ir::LtF, Ir::LtS, Ir::LtU), true),
        BinaryOp::Ge => (pick(Ir::LeF, Ir::LeS, Ir::LeU), true),
    }
}
