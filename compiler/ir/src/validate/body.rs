//! Rules 2 to 5 and 8 in function bodies: types of instructions and terminators, profiles.
//!
//! Relies on [`super::index`].

use super::program::{LimitError, Limits};
use super::{FuncError, Place, host, vector};
use crate::func::{Func, Local, StackSlotData};
use crate::inst::{ClockOp, InstData, Terminator};
use crate::program::{FuncId, Profile, Program};
use crate::scalar::{BinaryOp, Convert, UnaryOp};
use crate::ty::Ty;

/// A broken rule in a function body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// A local of another type than the instruction asks for.
    #[error("{local} is {found}, {expected} was expected")]
    Type {
        /// The local.
        local: Local,
        /// Its type.
        found: Ty,
        /// What the instruction asks for.
        expected: String,
    },
    /// A conversion that is none.
    #[error("no such conversion from {from} to {to}")]
    Convert {
        /// Source type.
        from: Ty,
        /// Destination type.
        to: Ty,
    },
    /// Bits above the type's width.
    #[error("{bits:#x} is not the raw form of an {ty}")]
    Raw {
        /// The bits.
        bits: u64,
        /// The type.
        ty: Ty,
    },
    /// An instruction of the other profile.
    #[error("not an instruction of {0} programs")]
    Profile(&'static str),
    /// Other arguments than the callee has parameters.
    #[error("{found} arguments, {expected} were expected")]
    Arguments {
        /// Number given.
        found: usize,
        /// Number expected.
        expected: usize,
    },
    /// Other results than the operation gives.
    #[error("{0}")]
    Result(&'static str),
    /// Two cases of a switch have the same value.
    #[error("two cases for {0}")]
    DoubleCase(u64),
    /// An operand where it cannot stand.
    #[error("{0}")]
    Operand(&'static str),
    /// A number beyond the target's limits.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Where a body is checked: its function, its program, the limits.
pub(super) struct Body<'a> {
    pub(super) func: &'a Func,
    pub(super) program: &'a Program,
    pub(super) limits: &'a Limits,
}

pub(super) type Checked = Result<(), BodyError>;

/// Checks one function.
pub(super) fn check(
    id: FuncId,
    func: &Func,
    program: &Program,
    limits: &Limits,
) -> Result<(), Box<FuncError<BodyError>>> {
    let fault = |at, source| Box::new(FuncError { func: id, name: func.name.clone(), at, source });
    let body = Body { func, program, limits };
    body.stack().map_err(|source| fault(None, source))?;
    for (block, data) in &func.blocks {
        for &inst in &data.insts {
            body.inst(&func.insts[inst])
                .map_err(|source| fault(Some(Place { block, inst: Some(inst) }), source))?;
        }
        body.terminator(&data.terminator)
            .map_err(|source| fault(Some(Place { block, inst: None }), source))?;
    }
    Ok(())
}

impl Body<'_> {
    pub(super) fn ty(&self, local: Local) -> Ty {
        self.func.locals[local]
    }

    pub(super) fn want(&self, local: Local, expected: Ty) -> Checked {
        self.want_if(local, expected.name(), |ty| ty == expected)
    }

    pub(super) fn want_if(&self, local: Local, expected: &str, ok: impl Fn(Ty) -> bool) -> Checked {
        let found = self.ty(local);
        if ok(found) {
            return Ok(());
        }
        Err(BodyError::Type { local, found, expected: expected.to_owned() })
    }

    fn int(&self, local: Local) -> Checked {
        self.want_if(local, "an integer", |ty| !ty.is_float())
    }

    fn float(&self, local: Local) -> Checked {
        self.want_if(local, "a float", Ty::is_float)
    }

    pub(super) fn pointer(&self, local: Local) -> Checked {
        self.want(local, self.program.profile.pointer())
    }

    pub(super) fn all(&self, locals: &[Local], types: &[Ty]) -> Checked {
        if locals.len() != types.len() {
            return Err(BodyError::Arguments { found: locals.len(), expected: types.len() });
        }
        locals.iter().zip(types).try_for_each(|(&local, &ty)| self.want(local, ty))
    }

    fn only(&self, profile: Profile) -> Checked {
        match (profile == self.program.profile, self.program.profile) {
            (true, _) => Ok(()),
            (false, Profile::Pe) => Err(BodyError::Profile("PE")),
            (false, Profile::Host) => Err(BodyError::Profile("host")),
        }
    }

    fn stack(&self) -> Checked {
        let mut total = 0;
        for StackSlotData { size, align } in self.func.stack_slots.values() {
            self.limits.align(*align)?;
            total += u64::from(*size) + u64::from(*align);
            self.limits.bytes("stack slots", total)?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "one arm per instruction")]
    fn inst(&self, inst: &InstData) -> Checked {
        match inst {
            InstData::Const { dst, bits } => raw(*bits, self.ty(*dst)),
            InstData::Slot { dst, slot } => {
                self.only(Profile::Pe)?;
                self.want(*dst, self.program.slots[*slot])
            }
            InstData::Copy { dst, src } => self.want(*src, self.ty(*dst)),
            InstData::Unary { dst, op, src } => self.unary(*dst, *op, *src),
            InstData::Binary { dst, op, lhs, rhs } => self.binary(*dst, *op, *lhs, *rhs),
            InstData::Convert { dst, kind, src } => convert(*kind, self.ty(*src), self.ty(*dst)),
            InstData::Load { dst: _, addr, offset: _ }
            | InstData::Store { addr, offset: _, src: _ } => self.pointer(*addr),
            InstData::CopyMemory { dst, src, bytes } => {
                self.pointer(*dst)?;
                self.pointer(*src)?;
                Ok(self.limits.bytes("bytes copied", u64::from(*bytes))?)
            }
            InstData::FillMemory { dst, value, count } => {
                self.pointer(*dst)?;
                let bytes = u64::from(*count) * u64::from(self.ty(*value).bytes());
                Ok(self.limits.bytes("bytes filled", bytes)?)
            }
            InstData::GlobalAddress { dst, global: _, offset: _ }
            | InstData::StackAddress { dst, slot: _, offset: _ }
            | InstData::FuncAddress { dst, func: _ } => self.pointer(*dst),
            InstData::Call { dst, func, args } => {
                let signature = self.program.funcs[*func].signature();
                self.call(*dst, args, &signature.params, signature.ret)
            }
            InstData::CallIndirect { dst, callee, sig, args } => {
                self.pointer(*callee)?;
                let signature = &self.program.signatures[*sig];
                self.call(*dst, args, &signature.params, signature.ret)
            }
            InstData::MakeMem1d { dst, base, extent, stride, indexed: _ } => {
                self.descriptor(&[*dst], &[*extent, *stride])?;
                self.pointer(*base)
            }
            InstData::MakeMem4d { dst, base, shape: _, indexed: _ } => {
                self.descriptor(&[*dst], &[])?;
                self.pointer(*base)
            }
            InstData::MakeFabric { dst, desc, extent } => {
                self.descriptor(&[*dst], &[*extent])?;
                Ok(self.limits.fabric(*desc)?)
            }
            InstData::MakeRing { dst, base, extent, wrap } => {
                self.descriptor(&[*dst], &[*base, *extent, *wrap])
            }
            InstData::DsdMoveBase { dst, src, delta: word }
            | InstData::DsdSetBase { dst, src, base: word }
            | InstData::DsdSetExtent { dst, src, extent: word }
            | InstData::DsdSetStride { dst, src, stride: word } => {
                self.descriptor(&[*dst, *src], &[*word])
            }
            InstData::Vector(vector) => {
                self.only(Profile::Pe)?;
                vector::check(self, vector)
            }
            InstData::LoadDsr { dsr, dsd, options, save_address: _, single_step: _, xdsr } => {
                self.descriptor(&[*dsd], &[])?;
                self.limits.dsr(*dsr)?;
                self.limits.xdsr(*xdsr)?;
                vector::options(self, options)
            }
            InstData::SetDsr { dsr, field: _, value } => {
                self.descriptor(&[], &[*value])?;
                Ok(self.limits.dsr(*dsr)?)
            }
            InstData::SetFifoLength { fifo: _, write_side: _, length: word }
            | InstData::Flag { op: _, id: word }
            | InstData::SetRandom { id: word }
            | InstData::Queues { dst: word, state: _ }
            | InstData::Random { dst: word } => self.descriptor(&[], &[*word]),
            InstData::GetConfig { dst: first, addr: second }
            | InstData::SetConfig { addr: first, src: second } => {
                self.descriptor(&[], &[*first, *second])
            }
            InstData::Clock { op, dst } => {
                self.only(Profile::Pe)?;
                self.clock(*op, *dst)
            }
            InstData::Assert { cond, message: _ } => self.want(*cond, Ty::I8),
            InstData::Bound { index, len, what: _ } => {
                self.int(*index)?;
                self.want(*len, self.ty(*index))
            }
            InstData::Host { op, dsts, args } => {
                self.only(Profile::Host)?;
                host::check(self, op, dsts, args)
            }
        }
    }

    /// An instruction of PE programs over packed descriptors and words.
    fn descriptor(&self, descriptors: &[Local], words: &[Local]) -> Checked {
        self.only(Profile::Pe)?;
        descriptors.iter().try_for_each(|&local| self.want(local, Ty::I64))?;
        words.iter().try_for_each(|&local| self.want(local, Ty::I16))
    }

    fn unary(&self, dst: Local, op: UnaryOp, src: Local) -> Checked {
        match op {
            UnaryOp::Neg | UnaryOp::Abs => {}
            UnaryOp::BitNot | UnaryOp::Clz | UnaryOp::Ctz | UnaryOp::Popcnt => self.int(src)?,
            UnaryOp::Not => self.want(src, Ty::I8)?,
            UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil => self.float(src)?,
        }
        self.want(dst, self.ty(src))
    }

    fn binary(&self, dst: Local, op: BinaryOp, lhs: Local, rhs: Local) -> Checked {
        match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Eq | BinaryOp::Ne => {}
            BinaryOp::Div | BinaryOp::Max | BinaryOp::Min | BinaryOp::LtF | BinaryOp::LeF => {
                self.float(lhs)?;
            }
            BinaryOp::DivS
            | BinaryOp::DivU
            | BinaryOp::RemS
            | BinaryOp::RemU
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::ShrS
            | BinaryOp::ShrU
            | BinaryOp::LtS
            | BinaryOp::LtU
            | BinaryOp::LeS
            | BinaryOp::LeU => self.int(lhs)?,
        }
        self.want(rhs, self.ty(lhs))?;
        self.want(dst, if op.is_comparison() { Ty::I8 } else { self.ty(lhs) })
    }

    fn call(&self, dst: Option<Local>, args: &[Local], params: &[Ty], ret: Option<Ty>) -> Checked {
        self.all(args, params)?;
        match (dst, ret) {
            (Some(dst), Some(ret)) => self.want(dst, ret),
            (Some(_), None) => Err(BodyError::Result("the callee has no result")),
            (None, Some(_) | None) => Ok(()),
        }
    }

    fn clock(&self, op: ClockOp, dst: Option<Local>) -> Checked {
        match (op.reads(), dst) {
            (true, Some(dst)) => self.want(dst, Ty::I64),
            (true, None) => Err(BodyError::Result("a clock read needs a destination")),
            (false, None) => Ok(()),
            (false, Some(_)) => Err(BodyError::Result("only a clock read has a result")),
        }
    }

    fn terminator(&self, terminator: &Terminator) -> Checked {
        match terminator {
            Terminator::Jump(_) | Terminator::Unreachable => Ok(()),
            Terminator::Branch { cond, then: _, otherwise: _ } => self.want(*cond, Ty::I8),
            Terminator::Switch { value, cases, otherwise: _ } => {
                self.int(*value)?;
                let mut values: Vec<u64> = cases.iter().map(|&(value, _)| value).collect();
                values.iter().try_for_each(|&case| raw(case, self.ty(*value)))?;
                values.sort_unstable();
                match values.windows(2).find(|pair| pair[0] == pair[1]) {
                    Some(pair) => Err(BodyError::DoubleCase(pair[0])),
                    None => Ok(()),
                }
            }
            Terminator::Return(value) => match (value, self.func.ret) {
                (None, None) => Ok(()),
                (Some(value), Some(ret)) => self.want(*value, ret),
                (None, Some(_)) => Err(BodyError::Result("the function has a result")),
                (Some(_), None) => Err(BodyError::Result("the function has no result")),
            },
        }
    }
}

pub(super) fn raw(bits: u64, ty: Ty) -> Checked {
    if ty.mask(bits) == bits { Ok(()) } else { Err(BodyError::Raw { bits, ty }) }
}

fn convert(kind: Convert, from: Ty, to: Ty) -> Checked {
    let ok = match kind {
        Convert::Truncate => !from.is_float() && !to.is_float() && to.bits() < from.bits(),
        Convert::SignExtend | Convert::ZeroExtend => {
            !from.is_float() && !to.is_float() && to.bits() > from.bits()
        }
        Convert::Bitcast => from.bits() == to.bits(),
        Convert::FloatFromSigned | Convert::FloatFromUnsigned => !from.is_float() && to.is_float(),
        Convert::SignedFromFloat | Convert::UnsignedFromFloat => from.is_float() && !to.is_float(),
        Convert::FloatFromFloat => from.is_float() && to.is_float() && from != to,
        Convert::Bool => to == Ty::I8,
    };
    if ok { Ok(()) } else { Err(BodyError::Convert { from, to }) }
}
