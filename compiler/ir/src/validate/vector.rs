//! Vector operations against their row: arity, operand positions, element types, options.

use super::body::{Body, BodyError, Checked};
use super::program::LimitError;
use crate::dsd::DsrFile;
use crate::dsd::op::{OpRow, OpShape, TABLE};
use crate::inst::{OnControl, Operand, Priority, Unblock, VectorInst, VectorOptions};
use crate::ty::Ty;

/// Checks a vector operation.
pub(super) fn check(body: &Body<'_>, vector: &VectorInst) -> Checked {
    let VectorInst { op, dest, sources, options, result } = vector;
    let Some(row) = TABLE.get(usize::from(op.0)) else {
        return Err(BodyError::Operand("there is no such vector operation"));
    };
    let expected = row.shape.arity();
    if sources.len() != expected {
        return Err(BodyError::Arguments { found: sources.len(), expected });
    }
    self::dest(body, row, *dest, sources)?;
    sources.iter().zip(row.sources).try_for_each(|(&operand, ty)| source(body, operand, ty))?;
    self::sources(row.shape, sources)?;
    result.map_or(Ok(()), |result| body.want(result, Ty::I8))?;
    self::options(body, options)
}

/// The destination: a vector that is written, or a pointer where the shape has such a form.
fn dest(body: &Body<'_>, row: &OpRow, dest: Operand, sources: &[Operand]) -> Checked {
    match dest {
        Operand::Memory(local) | Operand::Fabric(local) => body.want(local, Ty::I64)?,
        Operand::Fifo(_) => {}
        Operand::Dsr(dsr) => {
            body.limits.dsr(dsr)?;
            if dsr.file == DsrFile::Src1 {
                return Err(BodyError::Operand("a src1 register is no destination"));
            }
        }
        Operand::Scalar(_) => return Err(BodyError::Operand("a scalar is no destination")),
        Operand::Pointer(local) => {
            body.pointer(local)?;
            return pointer_form(row.shape, sources);
        }
    }
    match row.shape {
        OpShape::Scale | OpShape::Normalize => {
            Err(BodyError::Operand("the operation writes through a pointer"))
        }
        OpShape::Move
        | OpShape::Unary
        | OpShape::Binary
        | OpShape::Reduce
        | OpShape::MulAdd
        | OpShape::Convert
        | OpShape::Shift
        | OpShape::Carry => Ok(()),
    }
}

fn pointer_form(shape: OpShape, sources: &[Operand]) -> Checked {
    match shape {
        OpShape::Move
        | OpShape::Unary
        | OpShape::Convert
        | OpShape::Scale
        | OpShape::Normalize => Ok(()),
        OpShape::Reduce => match sources {
            [Operand::Scalar(_), second] if !is_scalar(*second) => Ok(()),
            _not_a_reduction => {
                Err(BodyError::Operand("a reduction takes a scalar, then a vector"))
            }
        },
        OpShape::Binary | OpShape::MulAdd | OpShape::Shift | OpShape::Carry => {
            Err(BodyError::Operand("the operation has no form that writes through a pointer"))
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

/// Which sources may be scalars.
fn sources(shape: OpShape, sources: &[Operand]) -> Checked {
    let scalars = sources.iter().filter(|operand| is_scalar(**operand)).count();
    match shape {
        OpShape::Move | OpShape::Unary | OpShape::Convert => Ok(()),
        OpShape::Binary | OpShape::Reduce | OpShape::Shift | OpShape::Carry => {
            if scalars < sources.len() {
                return Ok(());
            }
            Err(BodyError::Operand("one source must be a vector"))
        }
        OpShape::MulAdd => match sources {
            [first, second, third]
                if !is_scalar(*first) && !is_scalar(*second) && is_scalar(*third) =>
            {
                Ok(())
            }
            _other_order => {
                Err(BodyError::Operand("multiply-add takes two vectors, then a scalar"))
            }
        },
        OpShape::Scale | OpShape::Normalize => {
            if scalars == sources.len() {
                return Ok(());
            }
            Err(BodyError::Operand("the operation takes scalars"))
        }
    }
}

fn is_scalar(operand: Operand) -> bool {
    match operand {
        Operand::Scalar(_) => true,
        Operand::Memory(_)
        | Operand::Fabric(_)
        | Operand::Dsr(_)
        | Operand::Fifo(_)
        | Operand::Pointer(_) => false,
    }
}

/// Options of a vector operation or a register load.
pub(super) fn options(body: &Body<'_>, options: &VectorOptions) -> Checked {
    body.limits.options(options)?;
    options.index.map_or(Ok(()), |index| body.want(index, Ty::I16))
}

impl super::program::Limits {
    /// Options, but for the index.
    pub(super) fn options(&self, options: &VectorOptions) -> Result<(), LimitError> {
        let VectorOptions {
            asynchronous: _,
            activate,
            unblock,
            microthread,
            priority: Priority::Low | Priority::Medium | Priority::High,
            index: _,
            on_control,
        } = options;
        activate.map_or(Ok(()), |id| self.local_task(id))?;
        unblock.map_or(Ok(()), |unblock| self.unblock(unblock))?;
        microthread.map_or(Ok(()), |id| self.microthread(id))?;
        match on_control {
            OnControl::Ignore | OnControl::Terminate => Ok(()),
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
