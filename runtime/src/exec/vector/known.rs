//! Operations that have been issued before: what was found out about them then.
//!
//! A program issues the same instruction with the same descriptors again and again, on many PEs.
//! What follows from these alone (the length, the slots, that all operands stay in their
//! variables, that elements may be done in chunks) is kept per thread, so that no lock is needed;
//! scalars of what is done at once are read anew, and so are registers that hold no more than a
//! descriptor.
//!
//! Invariants: an entry equals what [`Quick::new`] and the questions after it would give, or
//! [`resolve`](super::resolve); other registers and FIFOs, which a PE's state says, have none.

use std::cell::RefCell;

use dflow_ir::cost::Slots;
use dflow_ir::inst::{Operand, VectorInst};

use super::VectorArgs;
use super::quick::Quick;
use super::start::SharedStart;
use crate::exec::CodeTrapKind;
use crate::exec::VectorStart;
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;

/// Entries of each kind per thread.
const ENTRIES: usize = 4096;

thread_local! {
    static KNOWN: RefCell<Vec<Option<Entry>>> = const { RefCell::new(Vec::new()) };
    static STARTED: RefCell<Vec<Option<(u64, SharedStart)>>> = const { RefCell::new(Vec::new()) };
    static RESOLVED: RefCell<Vec<Option<(u64, SharedStart)>>> = const { RefCell::new(Vec::new()) };
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
    if inst.options.asynchronous {
        return None;
    }
    let held;
    let args = if has_registers(inst) {
        held = with_registers(state, inst, args)?;
        &held
    } else {
        args
    };
    let address = std::ptr::from_ref(inst).addr();
    let place = place(address, descriptors(inst, args));
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

/// What tells the descriptors of an operation from those of others: sources of another kind may be anything.
#[inline]
fn descriptors(inst: &VectorInst, args: &VectorArgs) -> u64 {
    let sources = inst.sources.iter().zip(args.sources);
    sources.fold(args.dest, |all, (operand, value)| match operand {
        Operand::Memory(_) | Operand::Dsr(_) => all.rotate_left(16) ^ value,
        Operand::Fabric(_) | Operand::Fifo(_) | Operand::Scalar(_) | Operand::Pointer(_) => all,
    })
}

/// Whether an operand stands in a register.
#[inline]
fn has_registers(inst: &VectorInst) -> bool {
    let held = |operand: &Operand| matches!(operand, Operand::Dsr(_));
    held(&inst.dest) || inst.sources.iter().any(held)
}

/// The arguments with descriptors in place of the registers that hold them; none if one says more.
fn with_registers(state: &PeState, inst: &VectorInst, args: &VectorArgs) -> Option<VectorArgs> {
    let mut held = *args;
    let values = std::iter::once(&mut held.dest).chain(&mut held.sources);
    for (operand, value) in std::iter::once(&inst.dest).chain(&inst.sources).zip(values) {
        if let Operand::Dsr(at) = *operand {
            *value = state.plain_descriptor(at)?.0;
        }
    }
    Some(held)
}

/// The place of the entry of an operation that others can see.
#[inline]
fn place_of(inst: usize, args: &VectorArgs) -> usize {
    let [first, second, third] = args.sources;
    place(inst, args.dest ^ first.rotate_left(16) ^ second.rotate_left(32) ^ third ^ args.index)
}

/// An operation that others can see, if it was issued before.
#[inline]
pub(crate) fn started(
    program: &LoadedProgram,
    inst: &VectorInst,
    args: &VectorArgs,
) -> Option<SharedStart> {
    let address = std::ptr::from_ref(inst).addr();
    STARTED.with_borrow(|entries| {
        let (of, start) = entries.get(place_of(address, args))?.as_ref()?;
        (*of == program.id() && start.is_of(inst, args)).then(|| start.clone())
    })
}

/// What an operation has been resolved to, which is kept: if its arguments say it all, not to be
/// resolved again; if not, for PEs that come to the same.
pub(super) fn share(
    program: &LoadedProgram,
    inst: &VectorInst,
    args: &VectorArgs,
    start: VectorStart,
) -> SharedStart {
    let held = |operand: &Operand| matches!(operand, Operand::Dsr(_) | Operand::Fifo(_));
    let says_all = !std::iter::once(&inst.dest).chain(&inst.sources).any(held);
    let (program, address) = (program.id(), std::ptr::from_ref(inst).addr());
    let place = place_of(address, args);
    if !says_all {
        return RESOLVED.with_borrow_mut(|entries| {
            entries.resize_with(ENTRIES, || None);
            match &mut entries[place] {
                Some((of, known)) if *of == program && **known == start => known.clone(),
                entry => entry.insert((program, SharedStart::from(start))).1.clone(),
            }
        });
    }
    let start = SharedStart::of(start, inst, args);
    STARTED.with_borrow_mut(|entries| {
        entries.resize_with(ENTRIES, || None);
        entries[place] = Some((program, start.clone()));
    });
    start
}
