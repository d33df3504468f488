//! Rule 1: indices in range, blocks reached, instructions numbered in block order.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

use super::{FuncError, Place};
use crate::func::{Block, Func, Inst};
use crate::inst::{InstData, Operand, VectorInst};
use crate::program::{FuncId, Program, Symbol};

/// An index that points at nothing, or an order that is not kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// Points at nothing.
    #[error("there is no {0}")]
    Missing(String),
    /// More parameters than locals.
    #[error("{params} parameters, but {locals} locals")]
    Params {
        /// Parameters claimed.
        params: u32,
        /// Locals there.
        locals: usize,
    },
    /// A function without a block.
    #[error("there is no block0")]
    NoBlocks,
    /// Instructions are numbered in block order and belong to one block each.
    #[error(
        "instructions are not numbered in block order: {found} stands where inst{expected} should"
    )]
    Order {
        /// The number expected.
        expected: usize,
        /// The instruction found.
        found: String,
    },
    /// Nothing leads to a block.
    #[error("nothing leads to {0}")]
    Unreached(Block),
    /// Too many of something.
    #[error("more than {limit} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// Limits that keep analyses of what comes from disk in bounds.
const MAX_LOCALS: usize = 1 << 20;
const MAX_BLOCKS: usize = 1 << 18;
/// Blocks times locals: bits of liveness.
const MAX_FLOW: usize = 1 << 32;

pub(super) fn present<K: EntityRef + std::fmt::Display, V>(
    key: K,
    map: &PrimaryMap<K, V>,
) -> Result<(), IndexError> {
    if map.is_valid(key) { Ok(()) } else { Err(IndexError::Missing(key.to_string())) }
}

pub(super) fn symbol(symbol: Symbol, program: &Program) -> Result<(), IndexError> {
    match symbol {
        Symbol::Global(global) => present(global, &program.globals),
        Symbol::Func(func) => present(func, &program.funcs),
    }
}

/// Checks a function's indices.
pub(super) fn func(
    id: FuncId,
    func: &Func,
    program: &Program,
) -> Result<(), Box<FuncError<IndexError>>> {
    let fault = |at, source| Box::new(FuncError { func: id, name: func.name.clone(), at, source });
    head(func).map_err(|source| fault(None, source))?;
    let mut expected = 0;
    for (block, data) in &func.blocks {
        for &inst in &data.insts {
            let at = Some(Place { block, inst: Some(inst) });
            in_order(inst, &mut expected, func).map_err(|source| fault(at, source))?;
            self::inst(&func.insts[inst], func, program).map_err(|source| fault(at, source))?;
        }
        terminator(block, func)
            .map_err(|source| fault(Some(Place { block, inst: None }), source))?;
    }
    if expected != func.insts.len() {
        let found = "the end".to_owned();
        return Err(fault(None, IndexError::Order { expected, found }));
    }
    reached(func).map_err(|source| fault(None, source))
}

fn head(func: &Func) -> Result<(), IndexError> {
    let (locals, blocks) = (func.locals.len(), func.blocks.len());
    if func.params as usize > locals {
        return Err(IndexError::Params { params: func.params, locals });
    }
    if blocks == 0 {
        return Err(IndexError::NoBlocks);
    }
    for (count, limit, what) in [
        (locals, MAX_LOCALS, "locals"),
        (blocks, MAX_BLOCKS, "blocks"),
        (locals.saturating_mul(blocks), MAX_FLOW, "locals times blocks"),
    ] {
        if count > limit {
            return Err(IndexError::TooMany { what, limit });
        }
    }
    Ok(())
}

fn in_order(inst: Inst, expected: &mut usize, func: &Func) -> Result<(), IndexError> {
    if inst.index() != *expected {
        return Err(IndexError::Order { expected: *expected, found: inst.to_string() });
    }
    present(inst, &func.insts)?;
    *expected += 1;
    Ok(())
}

fn terminator(block: Block, func: &Func) -> Result<(), IndexError> {
    let terminator = &func.blocks[block].terminator;
    terminator.read().map_or(Ok(()), |local| present(local, &func.locals))?;
    terminator.successors().into_iter().try_for_each(|target| present(target, &func.blocks))
}

fn reached(func: &Func) -> Result<(), IndexError> {
    let mut reached = SecondaryMap::<Block, bool>::new();
    let mut work = vec![func.entry()];
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut reached[block], true) {
            func.blocks[block].terminator.visit_successors(|target| work.push(target));
        }
    }
    match func.blocks.keys().find(|&block| !reached[block]) {
        Some(block) => Err(IndexError::Unreached(block)),
        None => Ok(()),
    }
}

fn inst(inst: &InstData, func: &Func, program: &Program) -> Result<(), IndexError> {
    let mut locals = Ok(());
    inst.visit_locals(|local, _| {
        if locals.is_ok() {
            locals = present(local, &func.locals);
        }
    });
    locals?;
    match inst {
        InstData::Slot { dst: _, slot } => present(*slot, &program.slots),
        InstData::GlobalAddress { dst: _, global, offset: _ } => present(*global, &program.globals),
        InstData::StackAddress { dst: _, slot, offset: _ } => present(*slot, &func.stack_slots),
        InstData::FuncAddress { dst: _, func } | InstData::Call { dst: _, func, args: _ } => {
            present(*func, &program.funcs)
        }
        InstData::CallIndirect { dst: _, callee: _, sig, args: _ } => {
            present(*sig, &program.signatures)
        }
        InstData::MakeMem4d { dst: _, base: _, shape, indexed: _ } => {
            present(*shape, &program.shapes)
        }
        InstData::Vector(vector) => self::vector(vector, program),
        InstData::SetFifoLength { fifo, write_side: _, length: _ } => {
            present(*fifo, &program.fifos)
        }
        InstData::Const { .. }
        | InstData::Copy { .. }
        | InstData::Unary { .. }
        | InstData::Binary { .. }
        | InstData::Convert { .. }
        | InstData::Load { .. }
        | InstData::Store { .. }
        | InstData::CopyMemory { .. }
        | InstData::FillMemory { .. }
        | InstData::MakeMem1d { .. }
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
        | InstData::Flag { .. }
        | InstData::Random { .. }
        | InstData::Clock { .. }
        | InstData::GetConfig { .. }
        | InstData::SetConfig { .. }
        | InstData::Assert { .. }
        | InstData::Bound { .. }
        | InstData::Host { .. } => Ok(()),
    }
}

fn vector(vector: &VectorInst, program: &Program) -> Result<(), IndexError> {
    let VectorInst { op: _, dest, sources, options: _, result: _ } = vector;
    std::iter::once(dest).chain(sources).try_for_each(|operand| match operand {
        Operand::Fifo(fifo) => present(*fifo, &program.fifos),
        Operand::Memory(_)
        | Operand::Fabric(_)
        | Operand::Dsr(_)
        | Operand::Scalar(_)
        | Operand::Pointer(_) => Ok(()),
    })
}
