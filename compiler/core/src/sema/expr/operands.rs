//! Operands of operators: each has a type of its own, and untyped numbers take that of the other one.

use dflow_syntax::ast::{BinaryOp, Expr as Ast, ExprId};

use crate::resolve::Res;
use crate::sema::control::Wish;
use crate::sema::types::TypeId;
use crate::sema::{Cell, Operand, R, Sema};

/// What an operand may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Something that has a type with a size, or no number.
    Typed,
    /// Maybe an untyped number.
    Untyped,
    /// Maybe a choice between untyped numbers, or made of one.
    Chosen,
}

impl Sema<'_, '_> {
    /// Both operands of an operator, from left to right. What the surroundings want is made of the
    /// result: of operands only untyped numbers take it, and those of branches that have no type
    /// take the other operand's type before.
    pub(super) fn operands(
        &mut self,
        op: BinaryOp,
        lhs: ExprId,
        rhs: ExprId,
        wish: Wish,
    ) -> R<(Operand, Operand)> {
        let around = if op.is_comparison() { None } else { wish.for_untyped() };
        let shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        if shift || self.form(lhs) != Form::Chosen {
            return self.one_by_one(lhs, rhs, around, around);
        }
        self.frame_mut().looks.open();
        let both = match self.type_ahead(rhs, around) {
            Ok(ty) => {
                let beside = ty.filter(|&ty| self.is_sized_number(ty));
                self.one_by_one(lhs, rhs, beside.or(around), around)
            }
            Err(reported) => Err(reported),
        };
        self.frame_mut().looks.close();
        both
    }

    /// Both operands; untyped numbers in the left one take the type `beside`, those in the right one that
    /// of the left operand.
    fn one_by_one(
        &mut self,
        lhs: ExprId,
        rhs: ExprId,
        beside: Option<TypeId>,
        around: Option<TypeId>,
    ) -> R<(Operand, Operand)> {
        let left = self.wished(lhs, Wish { hint: None, wanted: beside })?;
        let ty = self.operand_type(&left);
        let wanted = if self.is_sized_number(ty) { Some(ty) } else { around };
        let right = self.wished(rhs, Wish { hint: None, wanted })?;
        Ok((left, right))
    }

    fn is_sized_number(&self, ty: TypeId) -> bool {
        let common = &self.types.common;
        (self.types.is_int(ty) || self.types.is_float(ty))
            && ty != common.comptime_int
            && ty != common.comptime_float
    }

    /// What an expression may be, as far as its looks tell.
    fn form(&self, id: ExprId) -> Form {
        let frame = self.frame();
        match frame.file.file.expr(id) {
            Ast::Int(_) | Ast::Float(_) | Ast::Field { .. } | Ast::Block { label: None, .. } => {
                Form::Untyped
            }
            Ast::Name(_) => match frame.file.res(id) {
                Res::Local(slot) => match &frame.slots[slot as usize] {
                    Cell::Const(value) | Cell::Var(value) if !self.is_sized_number(value.ty) => {
                        Form::Untyped
                    }
                    _ => Form::Typed,
                },
                Res::Decl { .. } => Form::Untyped,
                Res::None | Res::Prelude(_) => Form::Typed,
            },
            Ast::Block { label: Some(_), .. } => Form::Chosen,
            Ast::If { then, otherwise: Some(otherwise), .. } => {
                self.form_of_choice([*then, *otherwise].into_iter())
            }
            Ast::Switch { prongs, .. } => {
                self.form_of_choice(prongs.iter().map(|prong| prong.body))
            }
            Ast::Unary { operand, .. } => self.form(*operand),
            Ast::Binary { op, .. } if op.is_comparison() => Form::Typed,
            // The right operand is the shorter one of a chain.
            Ast::Binary { lhs, rhs, .. } => match self.form(*rhs) {
                Form::Typed => Form::Typed,
                right => match self.form(*lhs) {
                    Form::Untyped => right,
                    left => left,
                },
            },
            _ => Form::Typed,
        }
    }

    fn form_of_choice(&self, mut branches: impl Iterator<Item = ExprId>) -> Form {
        match branches.any(|id| self.form(id) == Form::Typed) {
            true => Form::Typed,
            false => Form::Chosen,
        }
    }
}
