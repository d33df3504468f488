//! How deep the stack of a program can get.

use std::collections::BTreeSet;

use cranelift_entity::SecondaryMap;
use dflow_ir::func::Func;
use dflow_ir::inst::InstData;
use dflow_ir::program::{FuncId, Program, Symbol};

/// Bytes of stack slots on the deepest chain of calls.
///
/// An indirect call counts as a call of the deepest function whose address is taken. Recursion
/// has no bound here: each function of a cycle counts once, and a deeper one traps when it runs.
pub(super) fn depth(program: &Program) -> u64 {
    let pointed = address_taken(program);
    let mut walk = Walk { program, pointed, state: SecondaryMap::new() };
    program.funcs.keys().map(|func| walk.depth(func)).max().unwrap_or(0)
}

#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Unknown,
    Open,
    Known(u64),
}

struct Walk<'p> {
    program: &'p Program,
    pointed: Vec<FuncId>,
    state: SecondaryMap<FuncId, State>,
}

impl Walk<'_> {
    /// Post-order without recursion: call chains may be as long as the program.
    fn depth(&mut self, root: FuncId) -> u64 {
        let mut work = vec![root];
        while let Some(&func) = work.last() {
            match self.state[func] {
                State::Unknown => {
                    self.state[func] = State::Open;
                    let callees = self.callees(func);
                    let unknown = callees.into_iter().filter(|&callee| self.is_unknown(callee));
                    work.extend(unknown);
                }
                State::Open => {
                    let callees = self.callees(func);
                    let deepest = callees.into_iter().map(|callee| self.known(callee)).max();
                    let own = frame(&self.program.funcs[func]);
                    self.state[func] = State::Known(own + deepest.unwrap_or(0));
                    work.pop();
                }
                State::Known(_) => {
                    work.pop();
                }
            }
        }
        self.known(root)
    }

    fn is_unknown(&self, func: FuncId) -> bool {
        matches!(self.state[func], State::Unknown)
    }

    /// The depth below a function; an open one is a cycle and counts no second time.
    fn known(&self, func: FuncId) -> u64 {
        match self.state[func] {
            State::Known(depth) => depth,
            State::Unknown | State::Open => 0,
        }
    }

    fn callees(&self, func: FuncId) -> BTreeSet<FuncId> {
        let mut callees = BTreeSet::new();
        for inst in self.program.funcs[func].insts.values() {
            if let InstData::Call { dst: _, func, args: _ } = inst {
                callees.insert(*func);
            } else if let InstData::CallIndirect { .. } = inst {
                callees.extend(&self.pointed);
            }
        }
        callees
    }
}

/// Functions that an indirect call may reach.
fn address_taken(program: &Program) -> Vec<FuncId> {
    let insts = program.funcs.values().flat_map(|func| func.insts.values());
    let in_code = insts.filter_map(|inst| {
        if let InstData::FuncAddress { dst: _, func } = inst { Some(*func) } else { None }
    });
    let relocs = program.globals.values().flat_map(|global| &global.relocs);
    let in_data = relocs.filter_map(|reloc| match reloc.symbol {
        Symbol::Func(func) => Some(func),
        Symbol::Global(_) => None,
    });
    let all: BTreeSet<FuncId> = in_code.chain(in_data).collect();
    all.into_iter().collect()
}

/// Bytes of a function's stack slots, with what aligning them may cost.
fn frame(func: &Func) -> u64 {
    let mut end = 0;
    let mut widest = 1;
    for slot in func.stack_slots.values() {
        let align = u64::from(slot.align.max(1));
        widest = widest.max(align);
        end = super::memory::align_up(end, align) + u64::from(slot.size);
    }
    if end == 0 { 0 } else { super::memory::align_up(end, 8) + widest.saturating_sub(8) }
}
