//! Vector operations that are legal and surely not meant: warnings.

use dflow_ir::dsd::op::{OpRow, OpShape};
use dflow_ir::dsd::{DsrFile, INFINITE};
use dflow_ir::ty::Ty;
use dflow_syntax::{Diagnostic, Span, codes};

use super::operand::{Given, What, element_name};
use crate::sema::types::Type;
use crate::sema::value::{Data, DsdValue, Pointer, PointerBase, Value};
use crate::sema::{Operand, R, Sema};

/// Float arithmetic on arrays whose elements have another size: it reads halves of elements, or two as one. Programs
/// move elements as others on purpose, and keep floats in arrays of integers of their size.
pub(super) fn elements(
    sema: &mut Sema<'_, '_>,
    row: &'static OpRow,
    given: &[Given],
    sources: [Ty; 3],
) -> R<()> {
    if row.shape == OpShape::Move {
        return Ok(());
    }
    let types = std::iter::once(row.dest).chain(sources);
    let mut told = Vec::new();
    for (given, ty) in given.iter().zip(types).filter(|(_, ty)| ty.is_float()) {
        let What::Memory(dsd) = &given.what else { continue };
        let Some(PointerBase::Global { module, decl }) = memory_of(dsd).map(|it| it.base) else {
            continue;
        };
        if told.contains(&(module, decl)) {
            continue;
        }
        let help = "use the operation of this type, or describe another array";
        let takes = (row.name, element_name(ty), help);
        if element_size(sema, dsd, ty, takes, given.span)? {
            told.push((module, decl));
        }
    }
    Ok(())
}

/// Warns if a descriptor that is known here is of an array whose elements have another size than those of a type; with
/// the name of what takes them, of the type, and what to do. Whether it did.
pub(in crate::builtins) fn element_size(
    sema: &mut Sema<'_, '_>,
    dsd: &Operand,
    ty: Ty,
    (taker, elements, help): (&str, &str, &str),
    span: Span,
) -> R<bool> {
    let Some(PointerBase::Global { module, decl }) = memory_of(dsd).map(|it| it.base) else {
        return Ok(false);
    };
    let found = sema.element_of(module, decl, span)?.filter(|(bits, _)| *bits != ty.bits());
    let Some((_, name)) = found else { return Ok(false) };
    let array = sema.decl_name(module, decl);
    let message =
        format!("`@{taker}` takes {elements} here, and `{array}` has elements of type `{name}`");
    sema.report(
        Diagnostic::new(codes::ELEMENT_TYPE, message, span)
            .label("read and written as elements of another size")
            .help(help),
    );
    Ok(true)
}

/// The array that a descriptor known here describes.
fn memory_of(dsd: &Operand) -> Option<Pointer> {
    let Operand::Const(value) = dsd else { return None };
    let Data::Dsd(dsd) = &value.data else { return None };
    match &**dsd {
        DsdValue::Mem1d { base, .. } | DsdValue::Mem4d { base, .. } => Some(base.clone()),
        DsdValue::Fabric { .. } | DsdValue::Ring { .. } => None,
    }
}

/// Whether an operand takes no index, as far as that is known; what is sent has room for one beside 16 bits.
fn takes_no_index(row: &OpRow, given: &Given) -> bool {
    match &given.what {
        What::Memory(Operand::Const(value)) | What::Fabric { dsd: Operand::Const(value), .. } => {
            match &value.data {
                Data::Dsd(dsd) => match &**dsd {
                    DsdValue::Mem1d { indexed, .. } | DsdValue::Mem4d { indexed, .. } => !indexed,
                    DsdValue::Fabric { desc, .. } => {
                        !desc.indexed || !desc.input && row.dest.bits() == 32
                    }
                    DsdValue::Ring { .. } => true,
                },
                _ => false,
            }
        }
        What::Memory(_) | What::Fabric { .. } | What::Dsr(_) => false,
        What::Fifo(_) | What::Pointer { .. } | What::Scalar(_) => true,
    }
}

/// An `.index` that no operand takes.
pub(super) fn index(sema: &mut Sema<'_, '_>, no_operand: bool, span: Span) {
    if no_operand {
        sema.report(
            Diagnostic::new(codes::INDEX_UNUSED, "no operand here takes an `.index`", span)
                .label("the index has no effect")
                .help("make a descriptor with `.wavelet_index_offset = true`; what is sent has an index beside elements of 16 bits"),
        );
    }
}

/// An operation on memory alone without an end.
pub(super) fn endless(sema: &mut Sema<'_, '_>, given: &[Given], span: Span) {
    let Some((dest, sources)) = given.split_first() else { return };
    let mut length = None;
    for operand in sources.iter().chain([dest]) {
        match &operand.what {
            What::Memory(Operand::Const(value)) if length.is_none() => {
                let Some(extent) = extent_of(sema, value) else { return };
                length = Some((extent, operand.span)).filter(|(extent, _)| *extent != 0);
            }
            // Only what is known up to the first length counts.
            What::Memory(_) if length.is_none() => return,
            What::Memory(_) | What::Scalar(_) | What::Pointer { .. } => {}
            What::Fabric { .. } | What::Dsr(_) | What::Fifo(_) => return,
        }
    }
    let Some((_, there)) = length.filter(|(extent, _)| *extent == i128::from(INFINITE)) else {
        return;
    };
    sema.report(
        Diagnostic::new(codes::ENDLESS_OPERATION, "this operation on memory never ends", span)
            .label("ends the run if it is executed")
            .secondary(there, "an extent of 0x7fff is without end")
            .help("give the descriptor the extent that is meant, below 0x7fff"),
    );
}

/// The extent of a known vector of one dimension.
fn extent_of(sema: &mut Sema<'_, '_>, value: &Value) -> Option<i128> {
    let Data::Dsd(dsd) = &value.data else { return None };
    match &**dsd {
        DsdValue::Mem1d { extent, .. } if extent.prov == 0 => sema.fix_int(extent),
        _ => None,
    }
}

/// A `dsr_dest` and a `dsr_src0` of different numbers: the SDK takes them for wse3 alone, where the microthread of an
/// operation is chosen.
pub(super) fn registers(sema: &mut Sema<'_, '_>, given: &[Given]) {
    if sema.target.microthread_choice {
        return;
    }
    let in_file = |given: &Given, file| match given.what {
        What::Dsr(dsr) if dsr.file == file => Some((dsr.index, given.span)),
        _ => None,
    };
    let dest = given.first().and_then(|given| in_file(given, DsrFile::Dest));
    let source = given[1..].iter().find_map(|given| in_file(given, DsrFile::Src0));
    let (Some((dest, there)), Some((source, span))) = (dest, source) else { return };
    if dest == source {
        return;
    }
    let name = sema.target.id.name();
    let message = format!(
        "on {name} a `dsr_dest` and a `dsr_src0` of one operation have one number, here {dest} and {source}"
    );
    sema.report(
        Diagnostic::new(codes::REGISTER_PAIR, message, span)
            .label(format!("register {source}"))
            .secondary(there, format!("register {dest}"))
            .help(format!("load the source into `@get_dsr(dsr_src0, {dest})`")),
    );
}

/// An `.on_control` of what receives nothing.
pub(super) fn control(sema: &mut Sema<'_, '_>, receives: bool, span: Span) {
    if !receives {
        let message = "nothing comes in here from the fabric: `.on_control` has no effect";
        sema.report(
            Diagnostic::new(codes::CONTROL_UNUSED, message, span)
                .label("no control wavelet ends this")
                .help("leave it out, or put it where a `fabin_dsd` is read"),
        );
    }
}

/// Whether no operand of an operation takes an index.
pub(super) fn none_is_indexed(row: &OpRow, given: &[Given]) -> bool {
    given.iter().all(|given| takes_no_index(row, given))
}

impl Sema<'_, '_> {
    /// Bits of the elements of an array of numbers that a module declares, and the name of their type.
    fn element_of(
        &mut self,
        module: crate::sema::value::ModuleId,
        decl: u32,
        span: Span,
    ) -> R<Option<(u32, String)>> {
        let Some(ty) = self.variable_type(module, decl, span)? else { return Ok(None) };
        let Type::Array { elem, .. } = *self.types.get(ty) else { return Ok(None) };
        let bits = match *self.types.get(elem) {
            Type::Int { bits, .. } => u32::from(bits),
            Type::Float(float) => float.ty().bits(),
            _ => return Ok(None),
        };
        Ok(Some((bits, self.type_name(elem))))
    }
}
