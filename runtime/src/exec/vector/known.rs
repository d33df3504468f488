//! Operations that have been issued before: what was found out about them then.
//!
//! A program issues the same instruction with the same descriptors again and again, on many PEs.
//! What follows from these alone (the length, the slots, that all operands stay in their
//! variables, that elements may be done in chunks) is kept: of the first operation with its instruction,
//! of others per thread, so that no lock is needed. Scalars of what is done at once are read anew, and so are
//! registers that hold no more than a descriptor.
//!
//! Invariants: an entry equals what [`Quick::new`] and the questions after it would give, or
//! [`resolve`](super::resolve); other registers and FIFOs, which a PE's state says, have none.

use std::cell::RefCell;
use std::fmt::{self, Debug, Formatter};

use dflow_ir::cost::Slots;
use dflow_ir::inst::{Operand, VectorInst};

use super::VectorArgs;
use super::quick::Quick;
use super::site::{Described, VectorSite};
use super::start::SharedStart;
use crate::exec::CodeTrapKind;
use crate::exec::VectorStart;
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;
use crate::profile::Work;

/// Entries of each kind per thread.
const ENTRIES: usize = 4096;

thread_local! {
    static OTHERS: RefCell<Vec<Option<Other>>> = const { RefCell::new(Vec::new()) };
    static STARTED: RefCell<Vec<Option<(u64, SharedStart)>>> = const { RefCell::new(Vec::new()) };
    static RESOLVED: RefCell<Vec<Option<(u64, SharedStart)>>> = const { RefCell::new(Vec::new()) };
}

/// A common operation, by its descriptors.
pub(super) struct Entry {
    described: Described,
    quick: Quick,
}

impl Entry {
    /// Runs it; issue slots beyond the start-up.
    #[inline]
    fn run(&self, args: &VectorArgs, state: &mut PeState) -> Result<Slots, CodeTrapKind> {
        // The slots are read here: a host that finds them behind all that was written waits until that is through.
        self.quick.run(args, state).map(|()| self.quick.slots)
    }
}

impl Debug for Entry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("described", &self.described).finish_non_exhaustive()
    }
}

/// Whether descriptors are the same, looked at one by one: a host that loads two at once that were stored one by one, as
/// they have just been, waits until they are through.
#[inline]
fn are_same(these: &Described, those: &Described) -> bool {
    these.iter().zip(those).fold(0, |differ, (this, that)| differ | (this ^ that)) == 0
}

/// One of an instruction that has issued another one before.
struct Other {
    /// The program, and the address of the instruction there.
    of: (u64, usize),
    entry: Entry,
}

/// The place of what is known of an operation of an instruction.
#[inline]
fn place(inst: usize, args: u64) -> usize {
    let mixed = (inst as u64 ^ args).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize % ENTRIES
}

/// Runs a common operation of which nothing odd is to be told, if it is one.
#[inline]
pub(crate) fn run(
    program: &LoadedProgram,
    state: &mut PeState,
    site: &VectorSite,
    args: &VectorArgs,
) -> Option<Result<Slots, CodeTrapKind>> {
    if site.is_asynchronous() {
        return None;
    }
    let held;
    let args = if site.is_held() {
        held = site.with_registers(state, args)?;
        &held
    } else {
        args
    };
    let described = site.described(args);
    let _vectors = program.during(Work::Vectors, Work::Tasks);
    match site.first.get() {
        Some(first) if are_same(&first.described, &described) => Some(first.run(args, state)),
        Some(_) | None => run_other(program, state, site, (described, args)),
    }
}

/// Likewise, one that is not known to be the first that its instruction issued.
#[inline(never)]
fn run_other(
    program: &LoadedProgram,
    state: &mut PeState,
    site: &VectorSite,
    (described, args): (Described, &VectorArgs),
) -> Option<Result<Slots, CodeTrapKind>> {
    let of = (program.id(), std::ptr::from_ref(&site.inst).addr());
    let place = place_of(of.1, &described, 0);
    OTHERS.with_borrow_mut(|others| {
        if let Some(Some(other)) = others.get(place)
            && other.of == of
            && are_same(&other.entry.described, &described)
        {
            return Some(other.entry.run(args, state));
        }
        // What is odd is not kept: it is to be told each time.
        let quick = Quick::new(&site.inst, args)?.look(program)?;
        let entry = Entry { described, quick };
        let done = entry.run(args, state);
        // There may be a first one already.
        if let Err(entry) = site.first.set(Box::new(entry)) {
            others.resize_with(ENTRIES, || None);
            others[place] = Some(Other { of, entry: *entry });
        }
        Some(done)
    })
}

/// The place of the entry of an operation: its destination, its sources, and what else counts.
#[inline]
fn place_of(inst: usize, [dest, first, second, third]: &[u64; 4], index: u64) -> usize {
    place(inst, dest ^ first.rotate_left(16) ^ second.rotate_left(32) ^ third ^ index)
}

/// The place of the entry of an operation that others can see.
#[inline]
fn place_seen(inst: usize, args: &VectorArgs) -> usize {
    let [first, second, third] = args.sources;
    place_of(inst, &[args.dest, first, second, third], args.index)
}

/// An operation that others can see, if it was issued before.
#[inline]
pub(crate) fn started(
    program: &LoadedProgram,
    site: &VectorSite,
    args: &VectorArgs,
) -> Option<SharedStart> {
    let address = std::ptr::from_ref(&site.inst).addr();
    STARTED.with_borrow(|entries| {
        let (of, start) = entries.get(place_seen(address, args))?.as_ref()?;
        (*of == program.id() && start.is_of(&site.inst, args)).then(|| start.clone())
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
    let place = place_seen(address, args);
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
