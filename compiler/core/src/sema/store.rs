//! Writing to places.

use std::rc::Rc;

use dflow_syntax::{Span, codes};

use super::address::{Address, AddressBase};
use super::place::Place;
use super::type_expr::MAX_ELEMENTS;
use super::types::{Layout, Repr, Type, TypeId};
use super::value::{Data, PointerBase, Value};
use super::{Cell, Operand, R, Sema};
use crate::typed::StmtKind;

impl Sema<'_, '_> {
    /// Writes an operand of the place's type to it.
    pub(crate) fn store(&mut self, place: Place, value: Operand, span: Span) -> R<()> {
        match place {
            Place::Slot { slot, path, ty } => {
                self.var_written(slot, path.is_empty(), span)?;
                let value = self.need_const(value, span)?;
                let value = self.coerce_value(value, ty, span)?;
                match self.packed_around(slot, &path) {
                    Some((depth, ty)) => {
                        let whole = self.known_part(slot, &path[..depth]);
                        let whole = whole.unwrap_or_else(|| Value::new(ty, Data::Undef));
                        let Some(value) = self.with_part(&whole, &path[depth..], value) else {
                            return self.undefined(span);
                        };
                        self.assign_slot(slot, &path[..depth], value, span)
                    }
                    None => self.assign_slot(slot, &path, value, span),
                }
            }
            Place::Local { local, ty, mutable: true } => {
                let value = self.coerce(value, ty, span)?;
                let value = self.scalar_of(value, span)?;
                self.emit(StmtKind::Set(local, value), span);
                Ok(())
            }
            Place::Memory { address, ty, mutable: true } => {
                if let AddressBase::Pointer(PointerBase::Global { module, decl }) = address.base
                    && (self.is_foreign(module) || !self.is_runtime())
                {
                    return self.not_now(module, decl, span);
                }
                self.need_runtime(span)?;
                let value = self.coerce(value, ty, span)?;
                self.store_memory(&address, ty, value, span)
            }
            Place::Bits { base, shift, ty } => self.store_bits(*base, shift, ty, value, span),
            Place::Local { mutable: false, .. }
            | Place::Memory { mutable: false, .. }
            | Place::Const { .. }
            | Place::Value(_) => Err(self.no_variable(span)),
        }
    }

    /// Writes a coerced operand to memory.
    pub(crate) fn store_memory(
        &mut self,
        address: &Address,
        ty: TypeId,
        value: Operand,
        span: Span,
    ) -> R<()> {
        match self.types.repr(ty, self.profile()) {
            Repr::Void => Ok(()),
            Repr::Scalar(_) => {
                let value = self.scalar_of(value, span)?;
                let (address, offset) = self.split_address(address, span)?;
                self.emit(StmtKind::Store { address, offset, value }, span);
                Ok(())
            }
            Repr::Memory { .. } => self.store_aggregate(address, ty, value, span),
            Repr::Comptime => {
                let name = self.type_name(ty);
                let message = format!("a value of type `{name}` exists at compile time only");
                self.fail(codes::NOT_COMPTIME, message, span, "stored at run time here")
            }
        }
    }

    /// How far a path goes to the first packed union around what it leads to.
    fn packed_around(&self, slot: u32, path: &[usize]) -> Option<(usize, TypeId)> {
        let Cell::Var(root) = &self.frame().slots[slot as usize] else { return None };
        let mut ty = root.ty;
        for (depth, &index) in path.iter().enumerate() {
            ty = match self.types.get(ty) {
                Type::Struct(info) if info.layout == Layout::PackedUnion => {
                    return Some((depth, ty));
                }
                Type::Struct(info) => info.fields[index].1,
                Type::Array { elem, .. } => *elem,
                _ => return None,
            };
        }
        None
    }

    pub(crate) fn assign_slot(
        &mut self,
        slot: u32,
        path: &[usize],
        value: Value,
        span: Span,
    ) -> R<()> {
        let mut copied = 0;
        let Sema { frames, types, .. } = self;
        let Some(Cell::Var(root)) = frames.last_mut().map(|f| &mut f.slots[slot as usize]) else {
            return self.fail(codes::NOT_ASSIGNABLE, "no variable", span, "assigned here");
        };
        let mut target = root;
        for &index in path {
            if !is_union(types, target) && !spread(types, target, &mut copied) {
                return self.fail(
                    codes::ARRAY_TOO_LARGE,
                    format!("a compile-time array has at most {MAX_ELEMENTS} elements"),
                    span,
                    "assigned in part here",
                );
            }
            if let (Data::Undef | Data::Union(_), Type::Struct(info)) =
                (&target.data, types.get(target.ty))
                && info.is_union()
            {
                target = activate(target, index, info.fields[index].1);
                continue;
            }
            let Data::Fields(fields) = &mut target.data else {
                return self.undefined(span);
            };
            if Rc::strong_count(fields) > 1 {
                copied += fields.len() as u64;
            }
            match Rc::make_mut(fields).get_mut(index) {
                Some(element) => target = element,
                None => return self.undefined(span),
            }
        }
        *target = value;
        self.charge(copied, span)
    }
}

fn is_union(types: &super::types::TypePool, value: &Value) -> bool {
    matches!(types.get(value.ty), Type::Struct(info) if info.is_union())
}

/// The value in a union's field, which becomes the one that has a value.
fn activate(union: &mut Value, index: usize, ty: TypeId) -> &mut Value {
    if !matches!(&union.data, Data::Union(active) if active.0 == index) {
        union.data = Data::Union(Rc::new((index, Value::new(ty, Data::Undef))));
    }
    match &mut union.data {
        Data::Union(active) => &mut Rc::make_mut(active).1,
        _ => unreachable!("just made"),
    }
}

/// An array of one value, or one never written, as one of many values; false if they are too many.
/// Counts the elements made.
fn spread(types: &super::types::TypePool, value: &mut Value, made: &mut u64) -> bool {
    let element = match (&value.data, types.get(value.ty)) {
        (Data::Splat(element), _) => (**element).clone(),
        (Data::Undef, Type::Array { elem, .. }) => Value::new(*elem, Data::Undef),
        (Data::Undef, Type::Struct(info)) => {
            let fields = info.fields.iter().map(|&(_, ty)| Value::new(ty, Data::Undef)).collect();
            value.data = Data::Fields(Rc::new(fields));
            return true;
        }
        _ => return true,
    };
    let count = types.element_count(value.ty);
    if count > MAX_ELEMENTS {
        return false;
    }
    *made += count;
    value.data = Data::Fields(Rc::new(vec![element; count as usize]));
    true
}
