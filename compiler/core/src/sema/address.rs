//! Addresses while code is emitted: a base, a constant offset, perhaps a run-time part.

use dflow_ir::scalar::BinaryOp;
use dflow_ir::ty::Ty;
use dflow_syntax::Span;

use super::module::DeclView;
use super::types::TypeId;
use super::value::{Pointer, PointerBase};
use super::{R, Sema};
use crate::typed::{Expr, ExprKind, HoldIdx, LocalIdx, StmtKind};

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
    /// A parameter that is the address of a value: nobody writes there while the function runs.
    Param(LocalIdx),
    /// A value that was read here: where it lies, or a copy of it.
    Held(Box<Held>),
}

/// A value of several words as it was when it was read.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    hold: HoldIdx,
    /// Where it was.
    source: Address,
    /// It is a variable's value, and nothing has a name for the value itself.
    variable: bool,
}

impl Address {
    pub(crate) fn of_pointer(pointer: &Pointer) -> Address {
        Address { base: AddressBase::Pointer(pointer.base), offset: pointer.offset, index: None }
    }

    pub(crate) fn of_local(local: LocalIdx) -> Address {
        Address { base: AddressBase::Local(local), offset: 0, index: None }
    }

    pub(crate) fn of_param(local: LocalIdx) -> Address {
        Address { base: AddressBase::Param(local), offset: 0, index: None }
    }

    pub(crate) fn of_expr(expr: Expr) -> Address {
        Address { base: AddressBase::Expr(expr), offset: 0, index: None }
    }

    /// The same address some bytes further; as at run time, addresses wrap.
    #[must_use]
    pub(crate) fn plus(mut self, bytes: i64) -> Address {
        self.offset = self.offset.wrapping_add(bytes);
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

    /// Where an array lies that is turned into a slice: a variable itself, not its value.
    #[must_use]
    pub(crate) fn of_variable(self) -> Address {
        match self.base {
            AddressBase::Held(held) if held.variable => {
                joined(held.source, self.offset, self.index)
            }
            base => Address { base, ..self },
        }
    }

    /// Where what is read lies, or lay when it was read.
    #[must_use]
    pub(crate) fn of_home(self) -> Address {
        match self.base {
            AddressBase::Held(held) => joined(held.source, self.offset, self.index).of_home(),
            base => Address { base, ..self },
        }
    }

    /// The value gets a name of its own, as parameters and captures are.
    #[must_use]
    pub(crate) fn named(mut self) -> Address {
        if let AddressBase::Held(held) = &mut self.base {
            held.variable = false;
        }
        self
    }
}

/// Some bytes further, of which some are known at run time only.
fn joined(mut start: Address, offset: i64, index: Option<Expr>) -> Address {
    start.offset = start.offset.wrapping_add(offset);
    start.index = match (start.index, index) {
        (Some(sum), Some(term)) => {
            let (ty, span) = (sum.ty, sum.span);
            Some(Expr { kind: Box::new(ExprKind::Binary(BinaryOp::Add, sum, term)), ty, span })
        }
        (sum, term) => sum.or(term),
    };
    start
}

/// An expression with its type and place.
pub(crate) fn typed(kind: ExprKind, ty: Ty, span: Span) -> Expr {
    Expr { kind: Box::new(kind), ty: Some(ty), span }
}

impl Sema<'_, '_> {
    /// The constant offset that an instruction can hold, and what else has to be added.
    fn split_offset(&self, offset: i64) -> (i32, Option<u64>) {
        let pointer = self.profile().pointer();
        match i32::try_from(offset) {
            Ok(offset) => (offset, None),
            // Narrow addresses wrap: the lower bits are all that counts.
            Err(_) if pointer.bits() <= i32::BITS => (offset as i32, None),
            Err(_) => (0, Some(pointer.mask(offset as u64))),
        }
    }

    /// An address as a pointer expression and a constant offset for loads and stores.
    pub(crate) fn split_address(&mut self, address: &Address, span: Span) -> R<(Expr, i32)> {
        let pointer = self.profile().pointer();
        if let AddressBase::Held(held) = &address.base {
            let whole = joined(held.source.clone(), address.offset, address.index.clone());
            let (source, rest) = self.split_address(&whole, span)?;
            return Ok((part_of(held, address, source, rest, span), rest));
        }
        let (offset, far) = self.split_offset(address.offset);
        let (base, rest, far) = match &address.base {
            AddressBase::Pointer(PointerBase::Address) => {
                let number = pointer.mask(address.offset as u64);
                (typed(ExprKind::Const(number), pointer, span), 0, None)
            }
            AddressBase::Pointer(
                base @ (PointerBase::Global { .. } | PointerBase::Constant(_)),
            ) => {
                let global = self.program_global(*base, span)?;
                (typed(ExprKind::GlobalAddress { global, offset }, pointer, span), 0, far)
            }
            AddressBase::Pointer(PointerBase::Func(func)) => {
                let func = self.program_func(*func, span)?;
                (typed(ExprKind::FuncAddress(func), pointer, span), 0, None)
            }
            AddressBase::Local(local) => {
                let local = ExprKind::LocalAddress { local: *local, offset };
                (typed(local, pointer, span), 0, far)
            }
            AddressBase::Expr(expr) => (expr.clone(), offset, far),
            AddressBase::Param(local) => {
                (typed(ExprKind::Local(*local), pointer, span), offset, far)
            }
            AddressBase::Held(_) => unreachable!("split above"),
        };
        let far = far.map(|bytes| typed(ExprKind::Const(bytes), pointer, span));
        let parts = address.index.iter().cloned().chain(far);
        let sum = |sum, part| typed(ExprKind::Binary(BinaryOp::Add, sum, part), pointer, span);
        Ok((parts.fold(base, sum), rest))
    }

    /// An address as one pointer expression.
    pub(crate) fn address_expr(&mut self, address: &Address, span: Span) -> R<Expr> {
        let pointer = self.profile().pointer();
        if let AddressBase::Held(held) = &address.base {
            let whole = joined(held.source.clone(), address.offset, address.index.clone());
            let source = self.address_expr(&whole, span)?;
            return Ok(part_of(held, address, source, 0, span));
        }
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
            AddressBase::Param(param) => {
                let pointer = self.profile().pointer();
                let local = self.new_scalar(None, pointer);
                let value = typed(ExprKind::Local(param), pointer, span);
                self.emit(StmtKind::Set(local, value), span);
                AddressBase::Param(local)
            }
            other => other,
        };
        let index = address.index.map(|index| self.pin(index, span));
        Address { base, offset: address.offset, index }
    }

    /// The value at an address as it is now, however long it is used.
    pub(crate) fn held(
        &mut self,
        address: Address,
        ty: TypeId,
        mutable: bool,
        span: Span,
    ) -> R<Address> {
        if self.is_lasting(&address, mutable, span)? {
            return Ok(address);
        }
        let (bytes, align) = self.runtime_size(ty, span)?;
        let source = self.address_expr(&address, span)?;
        let hold = self.new_hold();
        self.emit(StmtKind::Hold { hold, source, bytes, align }, span);
        let held = Held { hold, source: address, variable: true };
        Ok(Address { base: AddressBase::Held(Box::new(held)), offset: 0, index: None })
    }

    /// Whether what is at an address stays as it is as long as it has a name: constants, parameters, temporaries.
    fn is_lasting(&mut self, address: &Address, mutable: bool, span: Span) -> R<bool> {
        Ok(match address.base {
            AddressBase::Param(_) | AddressBase::Held(_) => true,
            AddressBase::Local(_) | AddressBase::Pointer(PointerBase::Constant(_)) => !mutable,
            AddressBase::Pointer(PointerBase::Global { module, decl }) => {
                !mutable && matches!(self.decl(module, decl, span)?, DeclView::Const(_))
            }
            AddressBase::Pointer(PointerBase::Func(_) | PointerBase::Address)
            | AddressBase::Expr(_) => false,
        })
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

/// A part of a held value as an expression; `rest` is what is left to add to it.
fn part_of(held: &Held, address: &Address, source: Expr, rest: i32, span: Span) -> Expr {
    let (offset, ty) = (address.offset as i32 - rest, source.ty);
    let index = address.index.clone();
    let kind = ExprKind::Held { hold: held.hold, source, offset, index };
    Expr { kind: Box::new(kind), ty, span }
}
