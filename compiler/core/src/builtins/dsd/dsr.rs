//! Registers: descriptors loaded into them, and changed in them.

use dflow_ir::dsd::{DsrFile, DsrRef};
use dflow_ir::inst::DsrField;
use dflow_syntax::ast::ExprId;
use dflow_syntax::{Diagnostic, Span, codes};

use super::change::address_arg;
use super::{constant, dsd_arg, dsd_of, number, word};
use crate::builtins::Call;
use crate::builtins::args::wrong_type;
use crate::builtins::vector::{operand, settings};
use crate::sema::types::{Type, TypeId};
use crate::sema::value::{Data, DsdValue};
use crate::sema::{Operand, R, Sema};
use crate::typed::{InitialDsr, Options, StmtKind};

/// Settings of loads that need an extended register.
const OF_EXTENDED: &[&str] = &["save_address", "single_step"];

/// `@load_to_dsr(register, descriptor, settings)`: before the start, or as code. Up to release
/// 1.4 it took vectors of several dimensions too, and chose their further registers.
pub(in crate::builtins) fn load_to_dsr(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let common = sema.types.common;
    let allowed = [common.mem1d_dsd, common.mem4d_dsd, common.fabin_dsd, common.fabout_dsd];
    load(sema, call, &allowed, [1, 2], settings::OF_LOAD, None)
}

/// `@load_to_dsr_xdsr(register, extended register, descriptor, settings)`.
pub(in crate::builtins) fn load_to_dsr_xdsr(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let allowed = [sema.types.common.circbuf_dsd];
    let xdsr = extended(sema, call)?;
    load(sema, call, &allowed, [2, 3], OF_EXTENDED, Some(xdsr))
}

/// `@load_to_dsr_xdsr_sr(register, extended register, stride registers, descriptor, settings)`.
pub(in crate::builtins) fn load_to_dsr_xdsr_sr(
    sema: &mut Sema<'_, '_>,
    call: Call<'_>,
) -> R<Operand> {
    let allowed = [sema.types.common.mem4d_dsd];
    let xdsr = extended(sema, call)?;
    let given = stride_registers(sema, call.args[2])?;
    let (dsd, _, span) = dsd_arg(sema, call.args[3], &allowed, call.name)?;
    let needed = match dsd_of(&dsd) {
        Some(DsdValue::Mem4d { dims, .. }) => strides_needed(&dims),
        _ => 3,
    };
    if given != needed {
        let plural = if needed == 1 { "" } else { "s" };
        let message =
            format!("this descriptor needs {needed} stride register{plural}, {given} given");
        return Err(sema.report(
            Diagnostic::new(codes::INVALID_ARGUMENT, message, sema.expr_span(call.args[2]))
                .label("these registers")
                .secondary(span, "this descriptor"),
        ));
    }
    load(sema, call, &allowed, [3, 4], OF_EXTENDED, Some(xdsr))
}

/// Stride registers of a known descriptor: none for the innermost dimension, and none for the
/// second one if the innermost is contiguous.
fn strides_needed(dims: &[(u16, i16)]) -> usize {
    let further = dims.len().saturating_sub(1);
    let contiguous = dims.last().is_some_and(|&(_, stride)| stride == 1);
    if contiguous { further.saturating_sub(1) } else { further }
}

fn extended(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<u8> {
    let ty = sema.types.common.xdsr;
    Ok(sema.arg_id(call.args[1], &[ty], "an extended register (`xdsr`)")?.0)
}

/// Number of stride registers in a tuple; each stands there once.
fn stride_registers(sema: &mut Sema<'_, '_>, arg: ExprId) -> R<usize> {
    let (value, span) = sema.arg_value(arg, None)?;
    let sr = sema.types.common.sr;
    let mut seen = Vec::new();
    if let Type::Struct(info) = sema.types.shared(value.ty).as_ref() {
        for at in 0..info.fields.len() {
            let register = value.element(at).filter(|element| element.ty == sr);
            let Some(id) = register.and_then(|register| sema.fix_int(&register)) else {
                return wrong_type(sema, &value, "a tuple of stride registers (`sr`)", span);
            };
            if seen.contains(&id) {
                let message = format!("stride register {id} is given twice");
                return sema.fail(codes::INVALID_ARGUMENT, message, span, "in this tuple");
            }
            seen.push(id);
        }
        return Ok(seen.len());
    }
    wrong_type(sema, &value, "a tuple of stride registers (`sr`)", span)
}

/// A load: the descriptor and the settings are the arguments at these places.
fn load(
    sema: &mut Sema<'_, '_>,
    call: Call<'_>,
    allowed: &[TypeId],
    [descriptor, settings_at]: [usize; 2],
    fields: &[&'static str],
    xdsr: Option<u8>,
) -> R<Operand> {
    let dsr = register(sema, call)?;
    let common = sema.types.common;
    let (dsd, ty, span) = dsd_arg(sema, call.args[descriptor], allowed, call.name)?;
    check_file(sema, dsr.file, ty, span)?;
    let options = match call.args.get(settings_at) {
        Some(&arg) => settings::read(sema, arg, fields, &format!("`@{}`", call.name))?,
        None => Options::default(),
    };
    let options = Options { xdsr, ..options };
    if options.save_address && (ty == common.fabin_dsd || ty == common.fabout_dsd) {
        let message = "`.save_address` is for vectors in memory: this one has no address";
        return sema.fail(codes::INVALID_DSD, message, span, "a fabric descriptor");
    }
    if options.asynchronous && !(ty == common.fabin_dsd || ty == common.fabout_dsd) {
        let message = "asynchronous settings are for fabric descriptors: this is one of memory";
        return sema.fail(codes::INVALID_DSD, message, span, "loaded here");
    }
    operand::note_queue(sema, &dsd, span);
    constant::loaded(sema, dsr, &dsd, span)?;
    constant::load(sema, dsr, options.single_step, call.span);
    if sema.is_runtime() {
        let dsd = sema.scalar_of(dsd, span)?;
        sema.emit(StmtKind::LoadDsr { dsr, dsd, options }, call.span);
        return Ok(Operand::Void);
    }
    let Some(dsd) = dsd_of(&dsd) else { return sema.undefined(span) };
    let (dsd, base) = sema.packed_dsd(&dsd, span)?;
    let symbol = match base {
        Some(base) => Some(sema.program_global(base, span)?),
        None => None,
    };
    sema.program_mut().typed.initial_dsrs.push(InitialDsr { dsr, dsd, symbol, options });
    Ok(sema.void_operand())
}

/// The register in the first argument; one that holds a FIFO is not for loads.
fn register(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<DsrRef> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    let common = sema.types.common;
    let Data::Dsr(dsr) = value.data else {
        return wrong_type(sema, &value, "a descriptor register", span);
    };
    sema.need_program(span)?;
    let holds_fifo = sema.program_mut().fifo_registers.contains_key(&dsr);
    if holds_fifo || value.ty == common.dsr_fifo_dest || value.ty == common.dsr_fifo_src1 {
        let message = "this register holds a FIFO: nothing else is loaded into it";
        return sema.fail(codes::INVALID_ARGUMENT, message, span, "this register");
    }
    Ok(dsr)
}

/// `@set_dsr_base_addr(register, array or pointer)`.
pub(in crate::builtins) fn set_dsr_base(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let dsr = register(sema, call)?;
    let (address, constant) = address_arg(sema, call.args[1])?;
    constant::based(sema, dsr, constant, sema.expr_span(call.args[1]))?;
    let value = sema.address_expr(&address, call.span)?;
    sema.emit(StmtKind::SetDsr { dsr, field: DsrField::Base, value }, call.span);
    Ok(Operand::Void)
}

/// `@set_dsr_length(register, elements)`.
pub(in crate::builtins) fn set_dsr_length(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let dsr = register(sema, call)?;
    let ty = sema.types.common.u16;
    let (length, span) = number(sema, call.args[1], ty)?;
    let value = word(sema, length, span)?;
    sema.emit(StmtKind::SetDsr { dsr, field: DsrField::Extent, value }, call.span);
    Ok(Operand::Void)
}

/// Inputs are sources, outputs are destinations, vectors in memory are either.
fn check_file(sema: &mut Sema<'_, '_>, file: DsrFile, ty: TypeId, span: Span) -> R<()> {
    let message = match (sema.types.get(ty), file) {
        (Type::FabinDsd, DsrFile::Dest) => "a `fabin_dsd` is a source: no `dsr_dest` holds it",
        (Type::FaboutDsd, DsrFile::Src0 | DsrFile::Src1) => {
            "a `fabout_dsd` is a destination: only a `dsr_dest` holds it"
        }
        _ => return Ok(()),
    };
    sema.fail(codes::INVALID_DSD, message, span, "loaded here")
}
