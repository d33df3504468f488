//! Issue slots of instructions: one table for all engines (`spec/time-costs.md`).
//!
//! Vector operations cost their start-up here; slots per element are added where the length is
//! known. Invariant: a cost depends on the instruction and the target only.

use crate::func::{Block, Func};
use crate::inst::{InstData, Operand, Terminator, VectorInst};
use crate::scalar::{BinaryOp, UnaryOp};
use crate::target::Target;

/// Issue slots of an instruction, without a vector operation's elements.
pub fn inst(data: &InstData, func: &Func, target: &Target) -> u32 {
    let timing = &target.timing;
    match data {
        InstData::Const { .. }
        | InstData::Copy { .. }
        | InstData::Slot { .. }
        | InstData::GlobalAddress { .. }
        | InstData::StackAddress { .. }
        | InstData::FuncAddress { .. }
        | InstData::Assert { .. } => 0,
        InstData::Unary { op, .. } => match op {
            UnaryOp::Sqrt => timing.divide,
            UnaryOp::Neg
            | UnaryOp::BitNot
            | UnaryOp::Not
            | UnaryOp::Abs
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Clz
            | UnaryOp::Ctz
            | UnaryOp::Popcnt => timing.scalar,
        },
        InstData::Binary { op, .. } => {
            if divides(*op) {
                timing.divide
            } else {
                timing.scalar
            }
        }
        InstData::CopyMemory { bytes, .. } => {
            bytes.div_ceil(4).saturating_mul(2).saturating_mul(timing.scalar)
        }
        InstData::FillMemory { value, count, .. } => {
            let bytes = u64::from(func.locals[*value].bytes()) * u64::from(*count);
            u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX).saturating_mul(timing.scalar)
        }
        InstData::Call { .. } | InstData::CallIndirect { .. } => timing.scalar + timing.call,
        InstData::Vector(vector) => start_up(vector, target),
        InstData::Convert { .. }
        | InstData::Load { .. }
        | InstData::Store { .. }
        | InstData::MakeMem1d { .. }
        | InstData::MakeMem4d { .. }
        | InstData::MakeFabric { .. }
        | InstData::MakeRing { .. }
        | InstData::DsdMoveBase { .. }
        | InstData::DsdSetBase { .. }
        | InstData::DsdSetExtent { .. }
        | InstData::DsdSetStride { .. }
        | InstData::LoadDsr { .. }
        | InstData::SetDsr { .. }
        | InstData::SetRandom { .. }
        | InstData::Queues { .. }
        | InstData::SetFifoLength { .. }
        | InstData::Flag { .. }
        | InstData::Random { .. }
        | InstData::Clock { .. }
        | InstData::GetConfig { .. }
        | InstData::SetConfig { .. }
        | InstData::Host { .. } => timing.scalar,
    }
}

/// Issue slots of the terminator of `block`: a jump to the block that follows is free.
pub fn terminator(block: Block, end: &Terminator, target: &Target) -> u32 {
    let timing = &target.timing;
    match end {
        Terminator::Jump(to) if to.as_u32() == block.as_u32() + 1 => 0,
        Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Switch { .. } => {
            timing.scalar + timing.branch
        }
        Terminator::Return(_) => timing.scalar,
        Terminator::Unreachable => 0,
    }
}

/// Start-up of a vector operation: dearer if it builds descriptors.
pub fn start_up(vector: &VectorInst, target: &Target) -> u32 {
    let builds = |operand: &Operand| match operand {
        Operand::Memory(_) | Operand::Fabric(_) => true,
        Operand::Dsr(_) | Operand::Fifo(_) | Operand::Scalar(_) | Operand::Pointer(_) => false,
    };
    if builds(&vector.dest) || vector.sources.iter().any(builds) {
        target.timing.vector_descriptors
    } else {
        target.timing.vector_registers
    }
}

fn divides(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Div | BinaryOp::DivS | BinaryOp::DivU | BinaryOp::RemS | BinaryOp::RemU => true,
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl
        | BinaryOp::ShrS
        | BinaryOp::ShrU
        | BinaryOp::Max
        | BinaryOp::Min
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::LtS
        | BinaryOp::LtU
        | BinaryOp::LtF
        | BinaryOp::LeS
        | BinaryOp::LeU
        | BinaryOp::LeF => false,
    }
}
