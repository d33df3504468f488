//! Known values as code and as bytes.

use dflow_ir::dsd::Dsd;
use dflow_ir::program::{Shape, ShapeId};
use dflow_ir::ty::Ty;
use dflow_syntax::{Span, codes};

use super::address::{Address, typed};
use super::expr::scalar_of_value;
use super::ops;
use super::types::{Repr, Type, TypeId};
use super::value::{Data, DsdValue, Pointer, PointerBase, Value};
use super::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind, SlotIdx, StmtKind, Symbol};

/// A value as initial memory contents.
#[derive(Default)]
pub(crate) struct ImageOf {
    pub(crate) bytes: Vec<u8>,
    pub(crate) relocs: Vec<(u32, Symbol)>,
    pub(crate) slots: Vec<(u32, SlotIdx)>,
}

impl Sema<'_, '_> {
    /// A known scalar as an expression of a machine type.
    pub(crate) fn const_expr(&mut self, value: &Value, machine: Ty, span: Span) -> R<Expr> {
        match &value.data {
            Data::Pointer(pointer) => {
                let address = Address::of_pointer(pointer);
                self.address_expr(&address, span)
            }
            Data::Func(func) => {
                let func = self.program_func(*func, span)?;
                Ok(typed(ExprKind::FuncAddress(func), machine, span))
            }
            Data::Dsd(dsd) => {
                let dsd = std::rc::Rc::clone(dsd);
                self.dsd_expr(&dsd, span)
            }
            Data::Undef => Ok(typed(ExprKind::Const(0), machine, span)),
            Data::Fields(_) | Data::Union(_) if self.packed_info(value.ty).is_some() => {
                let raw = self.value_bits(value).unwrap_or(0);
                Ok(typed(ExprKind::Const(machine.mask(raw)), machine, span))
            }
            _ => {
                let Some(scalar) = scalar_of_value(value) else {
                    let name = self.type_name(value.ty);
                    let message = format!("a value of type `{name}` exists at compile time only");
                    return self.fail(
                        codes::NOT_COMPTIME,
                        message,
                        span,
                        "needed at run time here",
                    );
                };
                if value.prov != 0 {
                    let ty = value.ty;
                    let slot = self.slot_of(value.prov, ty, machine);
                    return Ok(typed(ExprKind::Slot(slot), machine, span));
                }
                Ok(typed(ExprKind::Const(ops::raw_bits(machine, scalar)), machine, span))
            }
        }
    }

    fn slot_of(&mut self, prov: u32, ty: TypeId, machine: Ty) -> SlotIdx {
        let program = self.program_mut();
        let slot = program.provenance.slot(prov - 1, ty);
        if slot as usize == program.typed.slots.len() {
            program.typed.slots.push(machine);
        }
        SlotIdx(slot)
    }

    /// A known descriptor as an expression.
    fn dsd_expr(&mut self, dsd: &DsdValue, span: Span) -> R<Expr> {
        let kind = match dsd {
            DsdValue::Mem1d { base, extent, stride, indexed, constant } => {
                let (indexed, constant) = (*indexed, *constant);
                let base = self.address_expr(&Address::of_pointer(base), span)?;
                let extent = self.const_expr(extent, Ty::I16, span)?;
                let stride = self.const_expr(stride, Ty::I16, span)?;
                ExprKind::Mem1d { base, extent, stride, indexed, constant }
            }
            DsdValue::Mem4d { base, dims, indexed, constant } => {
                let base = self.address_expr(&Address::of_pointer(base), span)?;
                let shape = self.shape(dims);
                ExprKind::Mem4d { base, shape, indexed: *indexed, constant: *constant }
            }
            DsdValue::Fabric { desc, extent } => {
                let extent = self.const_expr(extent, Ty::I16, span)?;
                ExprKind::Fabric { desc: *desc, extent }
            }
            DsdValue::Ring { base, extent, wrap, constant } => {
                let base = self.address_expr(&Address::of_pointer(base), span)?;
                let extent = self.const_expr(extent, Ty::I16, span)?;
                let wrap = self.const_expr(wrap, Ty::I16, span)?;
                ExprKind::Ring { base, extent, wrap, constant: *constant }
            }
        };
        Ok(typed(kind, Ty::I64, span))
    }

    /// A shape of the program, by its number.
    pub(crate) fn shape(&mut self, dims: &[(u16, i16)]) -> u32 {
        let shapes = &mut self.program_mut().typed.shapes;
        let known = shapes.iter().position(|shape| shape.dims == dims);
        known.unwrap_or_else(|| {
            shapes.push(Shape { dims: dims.to_vec() });
            shapes.len() - 1
        }) as u32
    }

    /// A known descriptor packed, with the base it is relative to.
    pub(crate) fn packed_dsd(
        &mut self,
        dsd: &DsdValue,
        span: Span,
    ) -> R<(Dsd, Option<PointerBase>)> {
        let fixed =
            |sema: &mut Self, value: &Value| sema.fix_int(value).map_or(0, |int| int as u16);
        match dsd {
            DsdValue::Mem1d { base, extent, stride, indexed, .. } => {
                let (extent, stride) = (fixed(self, extent), fixed(self, stride) as i16);
                let packed = Dsd::mem1d(base.offset as u16, extent, stride, *indexed);
                Ok((packed, linked(base)))
            }
            DsdValue::Mem4d { base, dims, indexed, .. } => {
                let shape = ShapeId::from_u32(self.shape(dims));
                Ok((Dsd::mem4d(base.offset as u16, shape, *indexed), linked(base)))
            }
            DsdValue::Fabric { desc, extent } => {
                let extent = fixed(self, extent);
                let _ = span;
                Ok((Dsd::fabric(*desc, extent), None))
            }
            DsdValue::Ring { base, extent, wrap, .. } => {
                let (extent, wrap) = (fixed(self, extent), fixed(self, wrap));
                Ok((Dsd::ring(base.offset as u16, extent, wrap), linked(base)))
            }
        }
    }

    /// A known value as the initial contents of memory of a type.
    pub(crate) fn image_of(&mut self, value: &Value, ty: TypeId, span: Span) -> R<ImageOf> {
        let mut image = ImageOf::default();
        let (size, _) = self.runtime_size(ty, span)?;
        if self.is_zero(value) {
            return Ok(image);
        }
        image.bytes = vec![0; size as usize];
        self.write_value(&mut image, 0, value, ty, span)?;
        Ok(image)
    }

    fn is_zero(&self, value: &Value) -> bool {
        value.prov == 0
            && match &value.data {
                Data::Undef | Data::Void | Data::Int(0) => true,
                Data::Float(float) => float.to_bits() == 0,
                Data::Splat(element) => self.is_zero(element),
                Data::Fields(fields) => fields.iter().all(|field| self.is_zero(field)),
                _ => false,
            }
    }

    fn write_value(
        &mut self,
        image: &mut ImageOf,
        at: u64,
        value: &Value,
        ty: TypeId,
        span: Span,
    ) -> R<()> {
        match self.types.repr(ty, self.profile()) {
            Repr::Void => Ok(()),
            Repr::Scalar(machine) => self.write_scalar(image, at, value, machine, span),
            Repr::Memory { .. } => {
                let count = match self.types.get(ty) {
                    Type::Struct(info) => info.fields.len(),
                    _ => self.types.element_count(ty) as usize,
                };
                match &value.data {
                    Data::Undef => return Ok(()),
                    Data::Union(active) => {
                        let elem = active.1.ty;
                        return self.write_value(image, at, &active.1.clone(), elem, span);
                    }
                    _ => {}
                }
                for index in 0..count {
                    let (elem, offset) = self.part(ty, index);
                    let Some(element) = value.element(index) else { return self.undefined(span) };
                    self.write_value(image, at + offset, &element, elem, span)?;
                }
                Ok(())
            }
            Repr::Comptime => {
                let name = self.type_name(ty);
                let message = format!("a value of type `{name}` exists at compile time only");
                self.fail(codes::NOT_COMPTIME, message, span, "needed in memory here")
            }
        }
    }

    fn write_scalar(
        &mut self,
        image: &mut ImageOf,
        at: u64,
        value: &Value,
        machine: Ty,
        span: Span,
    ) -> R<()> {
        let raw = match &value.data {
            Data::Pointer(pointer) => {
                self.write_pointer(image, at, pointer, span)?;
                pointer.offset as u64
            }
            Data::Func(func) => {
                let func = self.program_func(*func, span)?;
                image.relocs.push((at as u32, Symbol::Func(func)));
                0
            }
            Data::Dsd(dsd) => {
                let dsd = std::rc::Rc::clone(dsd);
                let (packed, base) = self.packed_dsd(&dsd, span)?;
                if let Some(base) = base {
                    let global = self.program_global(base, span)?;
                    image.relocs.push((at as u32, Symbol::Global(global)));
                }
                packed.0
            }
            Data::Undef => 0,
            Data::Fields(_) | Data::Union(_) if self.packed_info(value.ty).is_some() => {
                self.value_bits(value).unwrap_or(0)
            }
            _ => {
                let Some(scalar) = scalar_of_value(value) else {
                    let name = self.type_name(value.ty);
                    let message = format!("a value of type `{name}` exists at compile time only");
                    return self.fail(codes::NOT_COMPTIME, message, span, "needed in memory here");
                };
                if value.prov != 0 {
                    let slot = self.slot_of(value.prov, value.ty, machine);
                    image.slots.push((at as u32, slot));
                    0
                } else {
                    ops::raw_bits(machine, scalar)
                }
            }
        };
        let (at, len) = (at as usize, machine.bytes() as usize);
        image.bytes[at..at + len].copy_from_slice(&machine.mask(raw).to_le_bytes()[..len]);
        Ok(())
    }

    fn write_pointer(
        &mut self,
        image: &mut ImageOf,
        at: u64,
        pointer: &Pointer,
        span: Span,
    ) -> R<()> {
        let symbol = match pointer.base {
            PointerBase::Address => return Ok(()),
            PointerBase::Func(func) => Symbol::Func(self.program_func(func, span)?),
            base @ (PointerBase::Global { .. } | PointerBase::Constant(_)) => {
                Symbol::Global(self.program_global(base, span)?)
            }
        };
        image.relocs.push((at as u32, symbol));
        Ok(())
    }

    /// Writes an aggregate operand to memory.
    pub(crate) fn store_aggregate(
        &mut self,
        address: &Address,
        ty: TypeId,
        value: Operand,
        span: Span,
    ) -> R<()> {
        if let Operand::Const(value) = &value {
            if let (Data::Splat(element), Type::Array { elem, .. }) =
                (&value.data, self.types.shared(ty).as_ref())
            {
                return self.fill(address, element, *elem, self.types.element_count(ty), span);
            }
            if let (Data::Fields(fields), Type::Struct(_)) = (&value.data, self.types.get(ty)) {
                // Few and small parts: store them one by one.
                let fields = std::rc::Rc::clone(fields);
                for (index, field) in fields.iter().enumerate() {
                    let (elem, offset) = self.part(ty, index);
                    let place = address.clone().plus(offset as i64);
                    self.store_memory(&place, elem, Operand::Const(field.clone()), span)?;
                }
                return Ok(());
            }
        }
        let (bytes, _) = self.runtime_size(ty, span)?;
        let source = self.aggregate_address(value, span)?;
        let source = self.address_expr(&source, span)?;
        let dest = self.address_expr(address, span)?;
        self.emit(StmtKind::Copy { dest, source, bytes }, span);
        Ok(())
    }

    fn fill(
        &mut self,
        address: &Address,
        element: &Value,
        elem: TypeId,
        count: u64,
        span: Span,
    ) -> R<()> {
        let machine = self.machine_ty(elem, span)?;
        let value = self.const_expr(element, machine, span)?;
        let dest = self.address_expr(address, span)?;
        self.emit(StmtKind::Fill { dest, value, count: count as u32 }, span);
        Ok(())
    }
}

/// The base, if the linker must add its address.
fn linked(pointer: &Pointer) -> Option<PointerBase> {
    match pointer.base {
        PointerBase::Address | PointerBase::Func(_) => None,
        base @ (PointerBase::Global { .. } | PointerBase::Constant(_)) => Some(base),
    }
}
