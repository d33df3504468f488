//! Which locals an instruction reads and writes, and where a terminator leads.
//!
//! The one place that knows this; liveness, validation and code generation ask here. Every
//! form is matched in full, so that a new field cannot be forgotten.

use crate::func::{Block, Local};
use crate::inst::{InstData, Operand, Terminator, VectorInst, VectorOptions};

/// What an instruction does with a local.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its value is used.
    Read,
    /// It gets a new value when the instruction has ended.
    Write,
}

impl Operand {
    /// The local it names, if any: a descriptor, a scalar or a pointer.
    pub fn local(self) -> Option<Local> {
        match self {
            Operand::Memory(local)
            | Operand::Fabric(local)
            | Operand::Scalar(local)
            | Operand::Pointer(local) => Some(local),
            Operand::Dsr(_) | Operand::Fifo(_) => None,
        }
    }
}

impl InstData {
    /// Calls `visit` for each local, destinations first.
    pub fn visit_locals(&self, mut visit: impl FnMut(Local, Access)) {
        use Access::{Read, Write};
        match self {
            InstData::Const { dst, bits: _ }
            | InstData::Slot { dst, slot: _ }
            | InstData::GlobalAddress { dst, global: _, offset: _ }
            | InstData::StackAddress { dst, slot: _, offset: _ }
            | InstData::FuncAddress { dst, func: _ }
            | InstData::Random { dst } => visit(*dst, Write),
            InstData::Copy { dst, src }
            | InstData::Unary { dst, op: _, src }
            | InstData::Convert { dst, kind: _, src }
            | InstData::Load { dst, addr: src, offset: _ }
            | InstData::GetConfig { dst, addr: src }
            | InstData::MakeMem4d { dst, base: src, shape: _, indexed: _ }
            | InstData::MakeFabric { dst, desc: _, extent: src } => {
                visit(*dst, Write);
                visit(*src, Read);
            }
            InstData::Binary { dst, op: _, lhs, rhs }
            | InstData::DsdMoveBase { dst, src: lhs, delta: rhs }
            | InstData::DsdSetBase { dst, src: lhs, base: rhs }
            | InstData::DsdSetExtent { dst, src: lhs, extent: rhs }
            | InstData::DsdSetStride { dst, src: lhs, stride: rhs } => {
                visit(*dst, Write);
                visit(*lhs, Read);
                visit(*rhs, Read);
            }
            InstData::MakeMem1d { dst, base, extent, stride, indexed: _ } => {
                visit(*dst, Write);
                visit(*base, Read);
                visit(*extent, Read);
                visit(*stride, Read);
            }
            InstData::Store { addr: first, offset: _, src: second }
            | InstData::Bound { index: first, len: second, what: _ }
            | InstData::SetConfig { addr: first, src: second }
            | InstData::CopyMemory { dst: first, src: second, bytes: _ }
            | InstData::FillMemory { dst: first, value: second, count: _ } => {
                visit(*first, Read);
                visit(*second, Read);
            }
            InstData::Call { dst, func: _, args } => {
                dst.iter().for_each(|&dst| visit(dst, Write));
                args.iter().for_each(|&arg| visit(arg, Read));
            }
            InstData::CallIndirect { dst, callee, sig: _, args } => {
                dst.iter().for_each(|&dst| visit(dst, Write));
                visit(*callee, Read);
                args.iter().for_each(|&arg| visit(arg, Read));
            }
            InstData::Host { op: _, dsts, args } => {
                dsts.iter().for_each(|&dst| visit(dst, Write));
                args.iter().for_each(|&arg| visit(arg, Read));
            }
            InstData::Vector(vector) => visit_vector(vector, visit),
            InstData::MakeRing { dst, base, extent, wrap } => {
                visit(*dst, Write);
                visit(*base, Read);
                visit(*extent, Read);
                visit(*wrap, Read);
            }
            InstData::Queues { dst, state: _ } => visit(*dst, Write),
            InstData::LoadDsr {
                dsr: _,
                dsd,
                options,
                save_address: _,
                single_step: _,
                xdsr: _,
            } => {
                visit(*dsd, Read);
                index_of(options).iter().for_each(|&index| visit(index, Read));
            }
            InstData::Clock { op: _, dst } => dst.iter().for_each(|&dst| visit(dst, Write)),
            InstData::SetFifoLength { fifo: _, write_side: _, length: src }
            | InstData::Flag { op: _, id: src }
            | InstData::SetRandom { id: src }
            | InstData::SetDsr { dsr: _, field: _, value: src }
            | InstData::Assert { cond: src, message: _ } => visit(*src, Read),
        }
    }
}

fn visit_vector(vector: &VectorInst, mut visit: impl FnMut(Local, Access)) {
    let VectorInst { op: _, dest, sources, options, result } = vector;
    result.iter().for_each(|&result| visit(result, Access::Write));
    let operands = std::iter::once(dest).chain(sources);
    operands.filter_map(|operand| operand.local()).for_each(|local| visit(local, Access::Read));
    index_of(options).iter().for_each(|&index| visit(index, Access::Read));
}

fn index_of(options: &VectorOptions) -> Option<Local> {
    let VectorOptions {
        asynchronous: _,
        activate: _,
        unblock: _,
        microthread: _,
        priority: _,
        index,
        on_control: _,
    } = options;
    *index
}

impl Terminator {
    /// The local it reads, if any.
    pub fn read(&self) -> Option<Local> {
        match self {
            Terminator::Branch { cond: value, then: _, otherwise: _ }
            | Terminator::Switch { value, cases: _, otherwise: _ } => Some(*value),
            Terminator::Return(value) => *value,
            Terminator::Jump(_) | Terminator::Unreachable => None,
        }
    }

    /// Calls `visit` for each block it may lead to, in written order.
    pub fn visit_successors(&self, mut visit: impl FnMut(Block)) {
        match self {
            Terminator::Jump(target) => visit(*target),
            Terminator::Branch { cond: _, then, otherwise } => {
                visit(*then);
                visit(*otherwise);
            }
            Terminator::Switch { value: _, cases, otherwise } => {
                cases.iter().for_each(|&(_, target)| visit(target));
                visit(*otherwise);
            }
            Terminator::Return(_) | Terminator::Unreachable => {}
        }
    }

    /// The blocks it may lead to, in written order.
    pub fn successors(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        self.visit_successors(|block| blocks.push(block));
        blocks
    }

    /// Replaces each block it names.
    pub(crate) fn map_blocks(&mut self, map: impl Fn(Block) -> Block) {
        match self {
            Terminator::Jump(target) => *target = map(*target),
            Terminator::Branch { cond: _, then, otherwise } => {
                *then = map(*then);
                *otherwise = map(*otherwise);
            }
            Terminator::Switch { value: _, cases, otherwise } => {
                cases.iter_mut().for_each(|(_, target)| *target = map(*target));
                *otherwise = map(*otherwise);
            }
            Terminator::Return(_) | Terminator::Unreachable => {}
        }
    }
}
