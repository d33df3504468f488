//! Vector operations against their row: arity, operand positions, element types, options.

use super::body::{Body, BodyError, Checked};
use super::program::LimitError;
use crate::dsd::DsrFile;
use crate::dsd::op::{Form, RowState};
use crate::inst::{OnControl, Operand, Priority, Unblock, VectorInst, VectorOptions};
use crate::ty::Ty;

/// Checks a vector operation.
pub(super) fn check(body: &Body<'_>, vector: &VectorInst) -> Checked {
    let VectorInst { op, dest, sources, options, result } = vector;
    let Some(row) = op.get() else {
        return Err(BodyError::Operand("there is no such vector operation"));
    };
    match row.state {
        RowState::Full | RowState::Assumed(_) => {}
        RowState::NotYet(reason) => return Err(BodyError::Operand(reason)),
    }
    let expected = row.shape.arity();
    if sources.len() != expected {
        return Err(BodyError::Arguments { found: sources.len(), expected });
    }
    if !row.forms.iter().any(|&form| takes(form, *dest, sources)) {
        return Err(BodyError::Operand("the operation has no form with these operands"));
    }
    self::dest(body, *dest)?;
    sources.iter().zip(row.sources).try_for_each(|(&operand, ty)| source(body, operand, ty))?;
    result.map_or(Ok(()), |result| body.want(result, Ty::I8))?;
    self::options(body, options)
}

/// Whether the operands are of the kinds that a form takes.
fn takes(form: Form, dest: Operand, sources: &[Operand]) -> bool {
    let operands = std::iter::once(dest).chain(sources.iter().copied());
    form.arity() == sources.len()
        && form.letters().chars().zip(operands).all(|(letter, operand)| match operand {
            Operand::Memory(_) | Operand::Fabric(_) | Operand::Dsr(_) | Operand::Fifo(_) => {
                matches!(letter, 'd' | 's')
            }
            Operand::Scalar(_) => matches!(letter, 'k' | 'i'),
            Operand::Pointer(_) => letter == 'p',
        })
}

fn dest(body: &Body<'_>, dest: Operand) -> Checked {
    match dest {
        Operand::Memory(local) | Operand::Fabric(local) => body.want(local, Ty::I64),
        Operand::Pointer(local) => body.pointer(local),
        Operand::Fifo(_) => Ok(()),
        Operand::Scalar(_) => Err(BodyError::Operand("a scalar is no destination")),
        Operand::Dsr(dsr) => {
            body.limits.dsr(dsr)?;
            match dsr.file {
                DsrFile::Dest | DsrFile::Src0 => Ok(()),
                DsrFile::Src1 => Err(BodyError::Operand("a src1 register is no destination")),
            }
        }
    }
}

fn source(body: &Body<'_>, operand: Operand, element: Ty) -> Checked {
    match operand {
        Operand::Memory(local) | Operand::Fabric(local) => body.want(local, Ty::I64),
        Operand::Fifo(_) => Ok(()),
        Operand::Scalar(local) => body.want(local, element),
        Operand::Pointer(_) => Err(BodyError::Operand("a pointer is no source")),
        Operand::Dsr(dsr) => {
            body.limits.dsr(dsr)?;
            match dsr.file {
                DsrFile::Src0 | DsrFile::Src1 => Ok(()),
                DsrFile::Dest => Err(BodyError::Operand("a dest register is no source")),
            }
        }
    }
}

/// Options of a vector operation or a register load.
pub(super) fn options(body: &Body<'_>, options: &VectorOptions) -> Checked {
    body.limits.options(options)?;
    let fits = |ty| matches!(ty, Ty::I16 | Ty::I64);
    options.index.map_or(Ok(()), |index| body.want_if(index, "i16 or i64", fits))
}

impl super::program::Limits {
    /// Options, but for the index.
    pub(super) fn options(&self, options: &VectorOptions) -> Result<(), LimitError> {
        let VectorOptions {
            asynchronous: _,
            activate,
            unblock,
            microthread,
            priority: None | Some(Priority::Low | Priority::Medium | Priority::High),
            index: _,
            on_control,
        } = options;
        activate.map_or(Ok(()), |id| self.local_task(id))?;
        unblock.map_or(Ok(()), |unblock| self.unblock(unblock))?;
        microthread.map_or(Ok(()), |id| self.microthread(id))?;
        match on_control {
            OnControl::Ignore | OnControl::Terminate | OnControl::Count => Ok(()),
            OnControl::Activate(id) => self.local_task(*id),
            OnControl::Unblock(unblock) => self.unblock(*unblock),
        }
    }

    fn unblock(&self, unblock: Unblock) -> Result<(), LimitError> {
        match unblock {
            Unblock::Task(id) => self.task(id),
            Unblock::Channel(id) => self.channel(id),
        }
    }
}
