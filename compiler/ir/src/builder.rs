//! The only way to build a function; keeps rules 1 and 2 by construction.

use cranelift_entity::{PrimaryMap, SecondaryMap};

use crate::func::{Block, BlockData, Func, Local, StackSlot, StackSlotData};
use crate::inst::{InstData, Terminator};
use crate::loc::Loc;
use crate::ty::Ty;

/// Builds one function. A block is filled from its creation or [`FuncBuilder::switch_to`] until
/// it gets its terminator; blocks without one end as unreachable.
pub struct FuncBuilder {
    func: Func,
    current: Block,
    terminated: Vec<bool>,
    loc: Loc,
}

impl FuncBuilder {
    /// Starts a function; its parameters become the first locals, block 0 is current.
    pub fn new(name: String, params: &[Ty], ret: Option<Ty>, loc: Loc) -> FuncBuilder {
        let mut locals = PrimaryMap::new();
        for &ty in params {
            locals.push(ty);
        }
        let func = Func {
            name,
            params: params.len() as u32,
            ret,
            locals,
            stack_slots: PrimaryMap::new(),
            blocks: PrimaryMap::new(),
            insts: PrimaryMap::new(),
            locs: SecondaryMap::new(),
            loc,
        };
        let mut builder =
            FuncBuilder { func, current: Block::from_u32(0), terminated: Vec::new(), loc };
        builder.current = builder.block();
        builder
    }

    /// Parameter `index`.
    pub fn param(&self, index: usize) -> Local {
        debug_assert!(index < self.func.params as usize);
        Local::from_u32(index as u32)
    }

    /// A new local.
    pub fn local(&mut self, ty: Ty) -> Local {
        self.func.locals.push(ty)
    }

    /// Type of a local.
    pub fn ty(&self, local: Local) -> Ty {
        self.func.locals[local]
    }

    /// A new stack slot.
    pub fn stack_slot(&mut self, size: u32, align: u32) -> StackSlot {
        self.func.stack_slots.push(StackSlotData { size, align })
    }

    /// A new, empty block.
    pub fn block(&mut self) -> Block {
        self.terminated.push(false);
        self.func.blocks.push(BlockData {
            insts: Vec::new(),
            terminator: Terminator::Unreachable,
            loc: self.loc,
        })
    }

    /// Makes a block current.
    pub fn switch_to(&mut self, block: Block) {
        self.current = block;
    }

    /// Whether the current block has its terminator: what follows cannot be reached.
    pub fn is_terminated(&self) -> bool {
        self.terminated[self.current.as_u32() as usize]
    }

    /// Sets the place of what follows.
    pub fn at(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// Appends an instruction; dropped if the block is terminated.
    pub fn inst(&mut self, data: InstData) {
        if self.is_terminated() {
            return;
        }
        let inst = self.func.insts.push(data);
        self.func.locs[inst] = self.loc;
        self.func.blocks[self.current].insts.push(inst);
    }

    /// Ends the current block; without effect if it has ended.
    pub fn terminate(&mut self, terminator: Terminator) {
        if self.is_terminated() {
            return;
        }
        self.terminated[self.current.as_u32() as usize] = true;
        let block = &mut self.func.blocks[self.current];
        block.terminator = terminator;
        block.loc = self.loc;
    }

    /// A new local holding a constant.
    pub fn constant(&mut self, ty: Ty, bits: u64) -> Local {
        let dst = self.local(ty);
        self.inst(InstData::Const { dst, bits: ty.mask(bits) });
        dst
    }

    /// The function, without blocks that nothing reaches, its blocks in creation order and its
    /// instructions numbered in block order.
    pub fn finish(self) -> Func {
        let Func { name, params, ret, locals, stack_slots, blocks, insts, locs, loc } = self.func;
        let reached = reached_blocks(&blocks);
        let mut number = SecondaryMap::<Block, Block>::with_default(Block::from_u32(0));
        let kept = blocks.keys().filter(|&block| reached[block]);
        kept.enumerate().for_each(|(index, block)| number[block] = Block::from_u32(index as u32));
        let mut func = Func {
            name,
            params,
            ret,
            locals,
            stack_slots,
            blocks: PrimaryMap::with_capacity(blocks.len()),
            insts: PrimaryMap::with_capacity(insts.len()),
            locs: SecondaryMap::new(),
            loc,
        };
        let mut taken: SecondaryMap<_, _> = SecondaryMap::new();
        insts.into_iter().for_each(|(inst, data)| taken[inst] = Some(data));
        for (_, mut data) in blocks.into_iter().filter(|(block, _)| reached[*block]) {
            for inst in &mut data.insts {
                let Some(moved) = taken[*inst].take() else { continue };
                let renumbered = func.insts.push(moved);
                func.locs[renumbered] = locs[*inst];
                *inst = renumbered;
            }
            data.terminator.map_blocks(|target| number[target]);
            func.blocks.push(data);
        }
        func
    }
}

/// Which blocks control can reach from block 0.
fn reached_blocks(blocks: &PrimaryMap<Block, BlockData>) -> SecondaryMap<Block, bool> {
    let mut reached = SecondaryMap::new();
    let mut work = vec![Block::from_u32(0)];
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut reached[block], true) {
            blocks[block].terminator.visit_successors(|target| work.push(target));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_reaches_is_dropped_and_the_rest_is_numbered_in_block_order() {
        let mut b = FuncBuilder::new("f".to_owned(), &[], None, Loc::default());
        let (dead, last) = (b.block(), b.block());
        b.switch_to(last);
        b.at(Loc { file: 0, line: 2, column: 1 });
        b.constant(Ty::I16, 2);
        b.terminate(Terminator::Return(None));
        b.switch_to(dead);
        b.constant(Ty::I16, 3);
        b.terminate(Terminator::Jump(dead));
        b.switch_to(Block::from_u32(0));
        b.at(Loc { file: 0, line: 1, column: 1 });
        b.constant(Ty::I16, 1);
        b.terminate(Terminator::Jump(last));
        b.inst(InstData::Random { dst: Local::from_u32(0) });
        let func = b.finish();
        assert_eq!(func.blocks.len(), 2);
        assert_eq!(func.blocks[func.entry()].terminator, Terminator::Jump(Block::from_u32(1)));
        let bits: Vec<InstData> = func.insts.values().cloned().collect();
        let constant = |local, bits| InstData::Const { dst: Local::from_u32(local), bits };
        assert_eq!(bits, [constant(2, 1), constant(0, 2)]);
        let lines: Vec<u32> = func.insts.keys().map(|inst| func.locs[inst].line).collect();
        assert_eq!(lines, [1, 2]);
    }
}
