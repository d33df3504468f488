//! `@load_to_dsr`: descriptors in registers.

use dflow_ir::dsd::{DsrFile, DsrRef};
use dflow_syntax::{Span, codes};

use super::{dsd_arg, dsd_of};
use crate::builtins::Call;
use crate::builtins::args::wrong_type;
use crate::builtins::vector::settings;
use crate::sema::types::{Type, TypeId};
use crate::sema::value::Data;
use crate::sema::{Operand, R, Sema};
use crate::typed::{InitialDsr, Options, StmtKind};

/// `@load_to_dsr(register, descriptor, settings)`: before the start, or as code.
pub(in crate::builtins) fn load_to_dsr(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<Operand> {
    let dsr = register(sema, call)?;
    let common = sema.types.common;
    let allowed = [common.mem1d_dsd, common.mem4d_dsd, common.fabin_dsd, common.fabout_dsd];
    let (dsd, ty, span) = dsd_arg(sema, call.args[1], &allowed, call.name)?;
    check_file(sema, dsr.file, ty, span)?;
    let options = match call.args.get(2) {
        Some(&arg) => settings::read(sema, arg, settings::OF_LOAD, "`@load_to_dsr`")?,
        None => Options::default(),
    };
    if options.save_address && (ty == common.fabin_dsd || ty == common.fabout_dsd) {
        let message = "`.save_address` is for vectors in memory: this one has no address";
        return sema.fail(codes::INVALID_DSD, message, span, "a fabric descriptor");
    }
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

fn register(sema: &mut Sema<'_, '_>, call: Call<'_>) -> R<DsrRef> {
    let (value, span) = sema.arg_value(call.args[0], None)?;
    match value.data {
        Data::Dsr(dsr) => Ok(dsr),
        _ => wrong_type(sema, &value, "a descriptor register", span),
    }
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
