//! Reading what lies at a place.

use dflow_syntax::{Span, codes};

use super::address::{Address, AddressBase, typed};
use super::place::Place;
use super::types::{Repr, TypeId};
use super::value::{Data, PointerBase, Value};
use super::{Cell, Operand, R, Sema};
use crate::typed::ExprKind;

impl Sema<'_, '_> {
    /// What lies at a place. If something comes after it that may change it, it is read here and kept.
    pub(crate) fn load(&mut self, place: Place, span: Span) -> R<Operand> {
        let stays = !self.early || matches!(place, Place::Local { mutable: false, .. });
        let operand = self.load_when_used(place, span)?;
        match operand {
            operand if stays => Ok(operand),
            Operand::Scalar { ty, expr } => Ok(Operand::Scalar { ty, expr: self.pin(expr, span) }),
            // What an aggregate holds is kept apart (`crate::hold`).
            Operand::Memory { .. } | Operand::Const(_) | Operand::Void => Ok(operand),
        }
    }

    fn load_when_used(&mut self, place: Place, span: Span) -> R<Operand> {
        match place {
            Place::Const { value, .. } => Ok(Operand::Const(value)),
            Place::Slot { slot, path, .. } => {
                self.var_is_settled(slot, span)?;
                let value = self.slot_part(slot, &path, span)?;
                if matches!(value.data, Data::Undef) {
                    return self.undefined(span);
                }
                Ok(Operand::Const(value))
            }
            Place::Local { local, ty, .. } => {
                let machine = self.machine_ty(ty, span)?;
                Ok(Operand::Scalar { ty, expr: typed(ExprKind::Local(local), machine, span) })
            }
            Place::Memory { address, ty, mutable } => self.load_memory(address, ty, mutable, span),
            Place::Bits { base, shift, ty } => self.load_bits(*base, shift, ty, span),
            Place::Value(operand) => Ok(operand),
        }
    }

    /// The value in a part of a comptime variable, perhaps none yet.
    pub(crate) fn slot_part(&mut self, slot: u32, path: &[usize], span: Span) -> R<Value> {
        match self.known_part(slot, path) {
            Some(value) => Ok(value),
            None => self.undefined(span),
        }
    }

    /// Likewise; none if nothing has been written to what it is a part of.
    pub(crate) fn known_part(&mut self, slot: u32, path: &[usize]) -> Option<Value> {
        let Cell::Var(root) = &self.frame().slots[slot as usize] else { return None };
        let mut value = root.clone();
        for &index in path {
            value = value.element(index).or_else(|| self.packed_part(&value, index))?;
        }
        Some(value)
    }

    fn load_memory(
        &mut self,
        address: Address,
        ty: TypeId,
        mutable: bool,
        span: Span,
    ) -> R<Operand> {
        if let AddressBase::Pointer(PointerBase::Global { module, decl }) = address.base
            && (self.is_foreign(module) || !self.is_runtime())
        {
            return self.not_now(module, decl, span);
        }
        self.need_runtime(span)?;
        match self.types.repr(ty, self.profile()) {
            Repr::Scalar(_) => {
                let machine = self.machine_ty(ty, span)?;
                let (address, offset) = self.split_address(&address, span)?;
                let expr = typed(ExprKind::Load { address, offset }, machine, span);
                Ok(Operand::Scalar { ty, expr })
            }
            Repr::Memory { .. } => {
                let address = self.held(address, ty, mutable, span)?;
                Ok(Operand::Memory { ty, address })
            }
            Repr::Void => Ok(Operand::Void),
            Repr::Comptime => {
                let name = self.type_name(ty);
                let message = format!("a value of type `{name}` exists at compile time only");
                self.fail(codes::NOT_COMPTIME, message, span, "read at run time here")
            }
        }
    }
}
