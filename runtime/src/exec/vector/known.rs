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
use crate::exec::dsrs::DsrPlace;
use crate::exec::program::LoadedProgram;
use crate::exec::state::PeState;

/// Entries of each kind per thread.
const ENTRIES: usize = 4096;
/// Instructions of which it is known what they ask: with 256 those of a compressor's PEs pushed each other out.
const SITES: usize = 1024;

thread_local! {
    static KNOWN: RefCell<Known> = const { RefCell::new(Known { sites: Vec::new(), entries: Vec::new() }) };
    static STARTED: RefCell<Vec<Option<(u64, SharedStart)>>> = const { RefCell::new(Vec::new()) };
    static RESOLVED: RefCell<Vec<Option<(u64, SharedStart)>>> = const { RefCell::new(Vec::new()) };
}

/// What is known of instructions, and of operations that they issued.
struct Known {
    sites: Vec<Site>,
    entries: Vec<Option<Entry>>,
}

/// An instruction: its program, and its address there.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Instruction {
    program: u64,
    address: usize,
}

/// What an instruction asks each time.
#[derive(Clone, Copy)]
struct Site {
    of: Instruction,
    /// If any operand stands in a register.
    held: Option<Held>,
    /// Which operands are descriptors of memory, the destination first: ones where one is.
    masks: Described,
}

/// The descriptors of an operation, its destination's first, and zeros for sources of another kind, which
/// may be anything.
type Described = [u64; 4];

/// The registers that operands stand in, the destination's first.
type Held = [Option<DsrPlace>; 4];

struct Entry {
    of: Instruction,
    described: Described,
    quick: Quick,
}

/// The place of what is known of an instruction, or of an operation with such arguments.
#[inline]
fn place(inst: usize, args: u64) -> usize {
    let mixed = (inst as u64 ^ args).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize % ENTRIES
}

impl Instruction {
    #[inline]
    fn new(program: &LoadedProgram, inst: &VectorInst) -> Instruction {
        Instruction { program: program.id(), address: std::ptr::from_ref(inst).addr() }
    }

    /// The place of what is known of it.
    #[inline]
    fn site(self) -> usize {
        place(self.address, 0) % SITES
    }
}

impl Site {
    fn new(of: Instruction, inst: &VectorInst, state: &PeState) -> Site {
        let (mut masks, mut places) = ([0; 4], [None; 4]);
        let operands = std::iter::once(&inst.dest).chain(&inst.sources);
        for ((mask, place), operand) in masks.iter_mut().zip(&mut places).zip(operands) {
            *mask = match *operand {
                Operand::Dsr(at) => {
                    *place = Some(state.dsrs.place(at));
                    u64::MAX
                }
                Operand::Memory(_) => u64::MAX,
                Operand::Fabric(_)
                | Operand::Fifo(_)
                | Operand::Scalar(_)
                | Operand::Pointer(_) => 0,
            };
        }
        let held = places.iter().any(Option::is_some).then_some(places);
        Site { of, held, masks }
    }

    #[inline]
    fn described(&self, args: &VectorArgs) -> Described {
        let ([dest, first, second, third], [a, b, k]) = (self.masks, args.sources);
        [args.dest & dest, a & first, b & second, k & third]
    }
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
    let of = Instruction::new(program, inst);
    KNOWN.with_borrow_mut(|known| {
        let site = match known.sites.get(of.site()) {
            Some(site) if site.of == of => site,
            Some(_) | None => known.meet(of, inst, state),
        };
        let held;
        let args = if let Some(places) = &site.held {
            held = with_registers(state, places, args)?;
            &held
        } else {
            args
        };
        let described = site.described(args);
        if let Some(Some(entry)) = known.entries.get(place_of(of.address, &described, 0))
            && (entry.of, entry.described) == (of, described)
        {
            return Some(entry.quick.run(args, state));
        }
        let quick = known.look((program, of, inst), described, args)?;
        Some(quick.run(args, state))
    })
}

impl Known {
    /// Looks at an instruction for the first time.
    #[inline(never)]
    fn meet(&mut self, of: Instruction, inst: &VectorInst, state: &PeState) -> &Site {
        let site = Site::new(of, inst, state);
        self.sites.resize(SITES, site);
        self.sites[of.site()] = site;
        &self.sites[of.site()]
    }

    /// Looks at an operation for the first time.
    #[inline(never)]
    fn look(
        &mut self,
        (program, of, inst): (&LoadedProgram, Instruction, &VectorInst),
        described: Described,
        args: &VectorArgs,
    ) -> Option<&Quick> {
        // What is odd is not kept: it is to be told each time.
        let quick = Quick::new(inst, args)?.look(program)?;
        self.entries.resize_with(ENTRIES, || None);
        let entry = &mut self.entries[place_of(of.address, &described, 0)];
        Some(&entry.insert(Entry { of, described, quick }).quick)
    }
}

/// The arguments with descriptors in place of the registers that hold them; none if one says more.
#[inline]
fn with_registers(
    state: &PeState,
    [dest, sources @ ..]: &Held,
    args: &VectorArgs,
) -> Option<VectorArgs> {
    let mut held = *args;
    if let Some(at) = *dest {
        held.dest = state.plain_descriptor(at)?.0;
    }
    for (value, place) in held.sources.iter_mut().zip(sources) {
        if let Some(at) = *place {
            *value = state.plain_descriptor(at)?.0;
        }
    }
    Some(held)
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
    inst: &VectorInst,
    args: &VectorArgs,
) -> Option<SharedStart> {
    let address = std::ptr::from_ref(inst).addr();
    STARTED.with_borrow(|entries| {
        let (of, start) = entries.get(place_seen(address, args))?.as_ref()?;
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
