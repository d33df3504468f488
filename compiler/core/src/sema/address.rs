//! Addresses while code is emitted: a base, a constant offset, perhaps a run-time part.

use dflow_ir::scalar::BinaryOp;
use dflow_ir::ty::Ty;
use dflow_syntax::Span;

use super::value::{Pointer, PointerBase};
use super::{R, Sema};
use crate::typed::{Expr, ExprKind, LocalIdx, StmtKind};

/// A place in memory.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) base: AddressBase,
    /// Bytes from the base.
    pub(crate) offset: i64,
    /// Run-time bytes on top, of the pointer type.
    pub(crate) index: Option<Expr>,
}

/// Where an address starts.
#[derive(Clone, Debug)]
pub(crate) enum AddressBase {
    /// Known up to linking.
    Pointer(PointerBase),
    /// A memory local.
    Local(LocalIdx),
    /// A run-time pointer.
    Expr(Expr),
}

impl Address {
    pub(crate) fn of_pointer(pointer: &Pointer) -> Address {
        Address { base: AddressBase::Pointer(pointer.base), offset: pointer.offset, index: None }
    }

    pub(crate) fn of_local(local: LocalIdx) -> Address {
        Address { base: AddressBase::Local(local), offset: 0, index: None }
    }

    pub(crate) fn of_expr(expr: Expr) -> Address {
        Address { base: AddressBase::Expr(expr), offset: 0, index: None }
    }

    /// The same address some bytes further.
    #[must_use]
    pub(crate) fn plus(mut self, bytes: i64) -> Address {
        self.offset += bytes;
        self
    }

    /// The pointer, if nothing of it is known at run time only.
    pub(crate) fn known(&self) -> Option<Pointer> {
        match (&self.base, &self.index) {
            (AddressBase::Pointer(base), None) => {
                Some(Pointer { base: *base, offset: self.offset })
            }
            _ => None,
        }
    }
}

/// An expression with its type and place.
pub(crate) fn typed(kind: ExprKind, ty: Ty, span: Span) -> Expr {
    Expr { kind: Box::new(kind), ty: Some(ty), span }
}

impl Sema<'_, '_> {
    /// An address as a pointer expression and a constant offset for loads and stores.
    pub(crate) fn split_address(&mut self, address: &Address, span: Span) -> R<(Expr, i32)> {
        let pointer = self.profile().pointer();
        let offset = address.offset as i32;
        let (base, rest) = match &address.base {
            AddressBase::Pointer(PointerBase::Address) => {
                (typed(ExprKind::Const(pointer.mask(address.offset as u64)), pointer, span), 0)
            }
            AddressBase::Pointer(
                base @ (PointerBase::Global { .. } | PointerBase::Constant(_)),
            ) => {
                let global = self.program_global(*base, span)?;
                (typed(ExprKind::GlobalAddress { global, offset }, pointer, span), 0)
            }
            AddressBase::Pointer(PointerBase::Func(func)) => {
                let func = self.program_func(*func, span)?;
                (typed(ExprKind::FuncAddress(func), pointer, span), 0)
            }
            AddressBase::Local(local) => {
                (typed(ExprKind::LocalAddress { local: *local, offset }, pointer, span), 0)
            }
            AddressBase::Expr(expr) => (expr.clone(), offset),
        };
        Ok(match &address.index {
            None => (base, rest),
            Some(index) => {
                let sum = ExprKind::Binary(BinaryOp::Add, base, index.clone());
                (typed(sum, pointer, span), rest)
            }
        })
    }

    /// An address as one pointer expression.
    pub(crate) fn address_expr(&mut self, address: &Address, span: Span) -> R<Expr> {
        let pointer = self.profile().pointer();
        let (base, offset) = self.split_address(address, span)?;
        if offset == 0 {
            return Ok(base);
        }
        let offset = typed(ExprKind::Const(pointer.mask(offset as i64 as u64)), pointer, span);
        Ok(typed(ExprKind::Binary(BinaryOp::Add, base, offset), pointer, span))
    }

    /// Evaluates the run-time parts of an address once, into temporaries, so that it can be used
    /// several times.
    pub(crate) fn pin_address(&mut self, address: Address, span: Span) -> Address {
        let base = match address.base {
            AddressBase::Expr(expr) => AddressBase::Expr(self.pin(expr, span)),
            other => other,
        };
        let index = address.index.map(|index| self.pin(index, span));
        Address { base, offset: address.offset, index }
    }

    /// A run-time scalar in a temporary, unless it is one already.
    pub(crate) fn pin(&mut self, expr: Expr, span: Span) -> Expr {
        match *expr.kind {
            ExprKind::Const(_) | ExprKind::Slot(_) | ExprKind::GlobalAddress { .. } => expr,
            _ => {
                let Some(ty) = expr.ty else { return expr };
                let local = self.new_scalar(None, ty);
                self.emit(StmtKind::Set(local, expr), span);
                typed(ExprKind::Local(local), ty, span)
            }
        }
    }
}
