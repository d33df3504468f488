//! Host operations: types of arguments and results.

use super::body::{Body, BodyError, Checked};
use crate::func::Local;
use crate::program::{HostArg, HostOp};
use crate::ty::{ElementKind, Ty};

const PTR: Ty = Ty::I64;
const LEN: Ty = Ty::I64;
/// x, y, width, height, pointer, length.
const TRANSFER: [Ty; 6] = [Ty::I64, Ty::I64, Ty::I64, Ty::I64, PTR, LEN];

/// Checks a host operation. Exports are looked up when the image is checked.
pub(super) fn check(body: &Body<'_>, op: &HostOp, dsts: &[Local], args: &[Local]) -> Checked {
    let typed = |results: &[Ty], params: &[Ty]| {
        body.all(dsts, results)?;
        body.all(args, params)
    };
    match op {
        HostOp::Input { name: _, ty } | HostOp::Output { name: _, ty }
            if ty.kind == ElementKind::Bool =>
        {
            Err(BodyError::Operand("inputs and outputs are numbers"))
        }
        HostOp::Input { name: _, ty: _ } => typed(&[PTR, LEN], &[]),
        HostOp::HasInput { name: _ } | HostOp::HasSetting { name: _ } => typed(&[Ty::I8], &[]),
        HostOp::Output { name: _, ty: _ } => typed(&[], &[PTR, LEN]),
        HostOp::Setting { name: _, ty } if !ty.is_valid() => {
            Err(BodyError::Operand("a bool is an i8"))
        }
        HostOp::Setting { name: _, ty } => typed(&[ty.ty], &[ty.ty]),
        HostOp::CopyIn { export: _, ty: _ }
        | HostOp::StreamIn { color: _, ty: _ }
        | HostOp::StreamOut { color: _, ty: _ } => typed(&[], &TRANSFER),
        HostOp::CopyOut { export: _, ty: _ } => {
            typed(&[PTR, LEN], &[Ty::I64, Ty::I64, Ty::I64, Ty::I64, LEN])
        }
        HostOp::Launch { export: _ } => body.all(dsts, &[]),
        HostOp::StreamOutRows { color: _, ty: _ } => {
            typed(&[], &[Ty::I64, Ty::I64, Ty::I64, Ty::I64, PTR, LEN, PTR])
        }
        HostOp::Wait => typed(&[], &[]),
        HostOp::Alloc => typed(&[PTR], &[Ty::I64]),
        HostOp::Print { pieces, args: kinds } => {
            body.all(dsts, &[])?;
            format(body, pieces, kinds, args)
        }
        HostOp::Expect { pieces, args: kinds } => {
            body.all(dsts, &[])?;
            let Some((&cond, args)) = args.split_first() else {
                return Err(BodyError::Arguments { found: 0, expected: 1 });
            };
            body.want(cond, Ty::I8)?;
            format(body, pieces, kinds, args)
        }
        HostOp::Cycles | HostOp::Wavelets => typed(&[Ty::I64], &[]),
        HostOp::ClockRate | HostOp::AssumedShare => typed(&[Ty::F64], &[]),
        HostOp::Math(_) => typed(&[Ty::F64], &[Ty::F64]),
    }
}

fn format(body: &Body<'_>, pieces: &[String], kinds: &[HostArg], args: &[Local]) -> Checked {
    if pieces.len() != kinds.len() + 1 {
        return Err(BodyError::Operand("a format has one piece more than arguments"));
    }
    let width = |kind: &HostArg| match kind {
        HostArg::Text => 2,
        HostArg::Signed | HostArg::Unsigned | HostArg::Float | HostArg::Bool => 1,
    };
    let expected = kinds.iter().map(width).sum();
    if args.len() != expected {
        return Err(BodyError::Arguments { found: args.len(), expected });
    }
    let mut rest = args;
    for kind in kinds {
        let (these, others) = rest.split_at(width(kind));
        rest = others;
        match kind {
            HostArg::Signed | HostArg::Unsigned => these
                .iter()
                .try_for_each(|&arg| body.want_if(arg, "an integer", |ty| !ty.is_float()))?,
            HostArg::Float => {
                these.iter().try_for_each(|&arg| body.want_if(arg, "a float", Ty::is_float))?;
            }
            HostArg::Bool => body.all(these, &[Ty::I8])?,
            HostArg::Text => body.all(these, &[PTR, LEN])?,
        }
    }
    Ok(())
}
