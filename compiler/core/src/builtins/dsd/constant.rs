//! Destinations that lead to constants, and what else is known of registers when the whole program is.
//!
//! A descriptor is constant if it was made over a constant, or through a pointer to constants. Of one that went
//! through a variable or a parameter of run time this is forgotten, and of a register that holds
//! vectors for both uses (`dsr_src0`) only what is certain is told: that all that is ever loaded
//! into it is constant, and that it is a destination.

use dflow_ir::dsd::{DsrFile, DsrRef};
use dflow_syntax::{Diagnostic, Span, codes};

use crate::sema::value::{Data, DsdValue};
use crate::sema::{Operand, R, Sema};
use crate::typed::{Expr, ExprKind};

/// What was loaded into registers, and what they are used for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    /// Register, whether for single steps, where.
    loads: Vec<(DsrRef, bool, Span)>,
    /// Operands of `@map`.
    stepped: Vec<(DsrRef, Span)>,
    // Those that may be destinations.
    /// Register, whether a constant, where.
    loaded: Vec<(DsrRef, bool, Span)>,
    written: Vec<(DsrRef, Span)>,
}

/// Refuses a descriptor that is written through and leads to a constant; `role` is what it is for the operation.
pub(in crate::builtins) fn check(
    sema: &mut Sema<'_, '_>,
    dsd: &Operand,
    span: Span,
    role: &str,
) -> R<()> {
    if !sema.leads_to_constant(dsd, span)? {
        return Ok(());
    }
    Err(sema.report(refused(span).label(role)))
}

fn refused(span: Span) -> Diagnostic {
    let message = "the vector lies in a constant and cannot be written to";
    Diagnostic::new(codes::NOT_ASSIGNABLE, message, span)
        .help("describe a `var`; a pointer to elements that are written is without `const`")
}

/// A descriptor is loaded into a register.
pub(super) fn loaded(sema: &mut Sema<'_, '_>, dsr: DsrRef, dsd: &Operand, span: Span) -> R<()> {
    let constant = sema.leads_to_constant(dsd, span)?;
    based(sema, dsr, constant, span)
}

/// A register gets a base, of a constant or not.
pub(super) fn based(sema: &mut Sema<'_, '_>, dsr: DsrRef, constant: bool, span: Span) -> R<()> {
    match dsr.file {
        DsrFile::Dest if constant => {
            Err(sema.report(refused(span).label("in a register for destinations")))
        }
        DsrFile::Dest | DsrFile::Src1 => Ok(()),
        DsrFile::Src0 => {
            sema.program_mut().registers.loaded.push((dsr, constant, span));
            Ok(())
        }
    }
}

/// A register is a destination.
pub(in crate::builtins) fn written(sema: &mut Sema<'_, '_>, dsr: DsrRef, span: Span) {
    if dsr.file == DsrFile::Src0 {
        sema.program_mut().registers.written.push((dsr, span));
    }
}

/// A descriptor is loaded into a register, for single steps or not.
pub(super) fn load(sema: &mut Sema<'_, '_>, dsr: DsrRef, single_step: bool, span: Span) {
    sema.program_mut().registers.loads.push((dsr, single_step, span));
}

/// A register is an operand of `@map`.
pub(in crate::builtins) fn stepped(sema: &mut Sema<'_, '_>, dsr: DsrRef, span: Span) {
    sema.program_mut().registers.stepped.push((dsr, span));
}

impl Sema<'_, '_> {
    /// Reports operands of `@map` in registers that are never loaded for single steps.
    pub(crate) fn check_steps(&mut self) {
        let Some(program) = &mut self.program else { return };
        let loads = std::mem::take(&mut program.registers.loads);
        for (dsr, span) in std::mem::take(&mut program.registers.stepped) {
            let mut of_register = loads.iter().filter(|(into, _, _)| *into == dsr).peekable();
            let Some(&&(_, _, load)) = of_register.peek() else { continue };
            if of_register.any(|(_, single_step, _)| *single_step) {
                continue;
            }
            let message = "`@map` steps through this register, and it is not loaded for that";
            self.report(
                Diagnostic::new(codes::INVALID_OPERANDS, message, span)
                    .label("an operand of `@map`")
                    .secondary(load, "loaded here")
                    .help("load it with `.single_step = true`"),
            );
        }
    }

    /// Reports destinations in registers that hold nothing but constants.
    pub(crate) fn check_registers(&mut self) {
        let Some(program) = &mut self.program else { return };
        let Registers { loaded, written, .. } = std::mem::take(&mut program.registers);
        for (dsr, span) in written {
            let mut loads = loaded.iter().filter(|(into, _, _)| *into == dsr).peekable();
            let Some(&&(_, _, load)) = loads.peek() else { continue };
            if loads.all(|(_, constant, _)| *constant) {
                let diagnostic = refused(span).label("the destination");
                self.report(diagnostic.secondary(load, "this register gets the constant here"));
            }
        }
    }

    /// Whether a descriptor is known to lead to memory that nobody writes.
    fn leads_to_constant(&mut self, dsd: &Operand, span: Span) -> R<bool> {
        match dsd {
            Operand::Const(value) => match &value.data {
                Data::Dsd(dsd) => match &**dsd {
                    DsdValue::Mem1d { base, constant, .. }
                    | DsdValue::Mem4d { base, constant, .. }
                    | DsdValue::Ring { base, constant, .. } => {
                        Ok(*constant || self.is_constant(base, span)?)
                    }
                    DsdValue::Fabric { .. } => Ok(false),
                },
                _ => Ok(false),
            },
            Operand::Scalar { expr, .. } => Ok(self.is_constant_dsd(expr)),
            Operand::Memory { .. } | Operand::Void => Ok(false),
        }
    }

    /// The same of an expression.
    pub(crate) fn is_constant_dsd(&mut self, dsd: &Expr) -> bool {
        match dsd.kind.as_ref() {
            ExprKind::Mem1d { constant, .. }
            | ExprKind::Mem4d { constant, .. }
            | ExprKind::Ring { constant, .. }
            | ExprKind::SetBase { constant, .. } => *constant,
            ExprKind::MoveBase { dsd, .. }
            | ExprKind::SetExtent { dsd, .. }
            | ExprKind::SetStride { dsd, .. } => self.is_constant_dsd(dsd),
            ExprKind::Local(local) => self.is_constant_view(*local),
            _ => false,
        }
    }
}
