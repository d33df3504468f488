//! Operands of operators: each has a type of its own, and untyped numbers take that of the other one.

use dflow_syntax::ast::{BinaryOp, Expr as Ast, ExprId};

use crate::resolve::Res;
use crate::sema::control::Wish;
use crate::sema::types::TypeId;
use crate::sema::{Cell, Operand, R, Sema};

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
        let beside = match !shift && self.is_chosen_untyped(lhs) {
            true => self.type_ahead(rhs, around)?.filter(|&ty| self.is_sized_number(ty)),
            false => None,
        };
        let left = self.wished(lhs, Wish { hint: None, wanted: beside.or(around) })?;
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

    /// Whether an expression may be a choice between untyped numbers, as far as its looks tell.
    fn is_chosen_untyped(&self, id: ExprId) -> bool {
        match self.frame().file.file.expr(id) {
            Ast::If { then, otherwise: Some(otherwise), .. } => {
                self.may_be_untyped(*then) && self.may_be_untyped(*otherwise)
            }
            Ast::Switch { prongs, .. } => {
                prongs.iter().all(|prong| self.may_be_untyped(prong.body))
            }
            Ast::Block { label: Some(_), .. } => true,
            Ast::Unary { operand, .. } => self.is_chosen_untyped(*operand),
            Ast::Binary { op, lhs, rhs } => {
                !op.is_comparison()
                    && self.may_be_untyped(*lhs)
                    && self.may_be_untyped(*rhs)
                    && (self.is_chosen_untyped(*lhs) || self.is_chosen_untyped(*rhs))
            }
            _ => false,
        }
    }

    fn may_be_untyped(&self, id: ExprId) -> bool {
        let frame = self.frame();
        match frame.file.file.expr(id) {
            Ast::Int(_) | Ast::Float(_) | Ast::Field { .. } => true,
            Ast::Name(_) => match frame.file.res(id) {
                Res::Local(slot) => match &frame.slots[slot as usize] {
                    Cell::Const(value) | Cell::Var(value) => !self.is_sized_number(value.ty),
                    _ => false,
                },
                Res::Decl { .. } => true,
                Res::None | Res::Prelude(_) => false,
            },
            Ast::Unary { operand, .. } => self.may_be_untyped(*operand),
            Ast::Binary { op, lhs, rhs } => {
                !op.is_comparison() && self.may_be_untyped(*lhs) && self.may_be_untyped(*rhs)
            }
            Ast::Block { label: None, .. } => true,
            _ => self.is_chosen_untyped(id),
        }
    }
}
