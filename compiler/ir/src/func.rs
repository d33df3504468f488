//! Functions: locals, blocks, instructions, places.

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use serde::{Deserialize, Serialize};

use crate::inst::{InstData, Terminator};
use crate::loc::Loc;
use crate::ty::Ty;

/// A mutable scalar variable of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Local(u32);
entity_impl!(Local, "v");

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// An instruction of a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Inst(u32);
entity_impl!(Inst, "inst");

/// A piece of the PE's stack, alive while the function runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StackSlot(u32);
entity_impl!(StackSlot, "ss");

/// Largest alignment of globals and stack slots, in bytes.
pub const MAX_ALIGN: u32 = 64;

/// Size and alignment of a stack slot, in bytes. Contents start as zero at each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackSlotData {
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes, a power of two, at most [`MAX_ALIGN`].
    pub align: u32,
}

/// A basic block: instructions, then one terminator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockData {
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// Where control goes.
    pub terminator: Terminator,
    /// Place of the terminator.
    pub loc: Loc,
}

/// What a function takes and gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signature {
    /// Parameter types.
    pub params: Vec<Ty>,
    /// Result, if any.
    pub ret: Option<Ty>,
}

/// A function. Built by [`crate::builder::FuncBuilder`] only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Func {
    /// Name for reports and dumps: `module.name` or `name`.
    pub name: String,
    /// Parameters: the first `params` locals.
    pub params: u32,
    /// Result type.
    pub ret: Option<Ty>,
    /// Locals; parameters first.
    pub locals: PrimaryMap<Local, Ty>,
    /// Stack slots.
    pub stack_slots: PrimaryMap<StackSlot, StackSlotData>,
    /// Blocks; block 0 is the entry.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Instructions.
    pub insts: PrimaryMap<Inst, InstData>,
    /// Places of instructions.
    pub locs: SecondaryMap<Inst, Loc>,
    /// Place of the declaration.
    pub loc: Loc,
}

impl Func {
    /// The function's signature.
    pub fn signature(&self) -> Signature {
        let params = self.locals.values().take(self.params as usize).copied().collect();
        Signature { params, ret: self.ret }
    }

    /// The entry block.
    pub fn entry(&self) -> Block {
        Block::from_u32(0)
    }
}
