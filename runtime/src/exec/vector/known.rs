//! Common operations that have been issued before: what was found out about them then.
//!
//! A program issues the same instruction with the same descriptors again and again, on many PEs.
//! What follows from these alone (the length, the slots, that all operands stay in their
//! variables, that elements may be done in chunks) is kept per thread, so that no lock is needed;
//! scalars are read anew.
//!
//! Invariant: an entry equals what [`Quick::new`] and the questions after it would give.

use std::cell::RefCell;

use dflow_ir::cost::Slots;
use dflow_ir::inst::VectorInst;

use super::VectorArgs;
use super::quick::Quick;
use crate::exec::CodeTrapKind;
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;

/// Entries per thread.
const ENTRIES: usize = 128;

thread_local! {
    static KNOWN: RefCell<Vec<Option<Entry>>> = const { RefCell::new(Vec::new()) };
}

struct Entry {
    program: u64,
    /// Address of the instruction in its program.
    inst: usize,
    quick: Quick,
}

/// The place of an operation's entry.
#[inline]
fn place(inst: usize, dest: u64) -> usize {
    let mixed = (inst as u64 ^ dest).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize % ENTRIES
}

/// Runs a common operation of which nothing odd is to be told, if it is one.
#[inline]
pub(crate) fn run(
    program: &LoadedProgram,
    state: &mut PeState,
    inst: &VectorInst,
    args: &VectorArgs,
) -> Option<Result<Slots, CodeTrapKind>> {
    let address = std::ptr::from_ref(inst).addr();
    let place = place(address, args.dest);
    KNOWN.with_borrow_mut(|entries| {
        if let Some(Some(entry)) = entries.get(place)
            && (entry.program, entry.inst) == (program.id(), address)
            && entry.quick.is_for(args)
        {
            return Some(entry.quick.run(args, state));
        }
        // What is odd is not kept: it is to be told each time.
        let quick = Quick::new(inst, args)?.look(program)?;
        entries.resize_with(ENTRIES, || None);
        let entry = Entry { program: program.id(), inst: address, quick };
        Some(entries[place].insert(entry).quick.run(args, state))
    })
}
