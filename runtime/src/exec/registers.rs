//! What is around code that runs: configuration registers as it sees them, words beyond the memory, and whether it
//! goes on past asynchronous operations.
//!
//! Loads and stores through pointers reach registers by their byte address, `@get_config` and
//! `@set_config` by their word address; `ir::registers` says which there are. Invariants: a load
//! sees registers as of the first slot of its segment, and what the segment itself has written
//! before; a write is recorded and takes effect in its slot.

use dflow_ir::cost::Slots;
use dflow_ir::inst::VectorInst;
use dflow_ir::loc::Loc;
use dflow_ir::program::Profile;
use dflow_ir::registers;

use super::program::LoadedProgram;
use super::vector::VectorArgs;
use super::{ActKind, CodeTrapKind, Segment, SharedStart, SlotAct};

/// What is around code that runs.
pub trait Registers {
    /// The register at a word address, if there is one.
    fn read(&self, address: u16) -> Option<u16>;

    /// Whether code goes on at once past the asynchronous operation that starts, as if it had been told that it is
    /// on its way; slots are counted anew then. If not, code stops for it.
    fn pass(&self, _start: &SharedStart, _since: Passing<'_>) -> bool {
        false
    }

    /// Whether code goes on at once past what an instruction starts with these arguments, as [`Registers::pass`] says:
    /// asked first, so that what it starts need not be looked up.
    fn pass_again(&self, _inst: &VectorInst, _args: &VectorArgs, _since: Passing<'_>) -> bool {
        false
    }
}

/// What code did before an asynchronous operation that it may go on past.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    /// Issue slots since the operation before.
    pub slots: Slots,
    /// Acts of the segment, in all.
    pub acts: &'a [SlotAct],
}

/// Registers of a machine that has none: they read as zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRegisters;

impl Registers for NoRegisters {
    fn read(&self, _: u16) -> Option<u16> {
        Some(0)
    }
}

/// The word addresses that an access to `bytes` bytes at byte address `address` covers, if they
/// are registers; `outside` says what is wrong if there is none.
fn words(
    program: &LoadedProgram,
    address: u64,
    bytes: u32,
    outside: CodeTrapKind,
) -> Result<std::ops::Range<u16>, CodeTrapKind> {
    let word = u16::try_from(address / 2).ok().filter(|_| address < 1 << 16);
    let target = program.target().id;
    let known = |&word: &u16| registers::find(target, word).is_some();
    let Some(word) = word.filter(|word| program.program().profile == Profile::Pe && known(word))
    else {
        return Err(outside);
    };
    if !address.is_multiple_of(2) || !bytes.is_multiple_of(2) {
        let why = "is read and written as a whole word";
        return Err(CodeTrapKind::BadRegister { address: word, why });
    }
    let words = word..word + (bytes / 2) as u16;
    match words.clone().find(|word| !known(word)) {
        Some(address) => Err(CodeTrapKind::NoRegister { address }),
        None => Ok(words),
    }
}

/// Loads `bytes` bytes at a byte address outside the memory; `outside` is the trap if no register
/// is there.
pub(crate) fn load(
    program: &LoadedProgram,
    registers: &dyn Registers,
    out: &Segment,
    address: u64,
    bytes: u32,
    outside: CodeTrapKind,
) -> Result<u64, CodeTrapKind> {
    let mut value = 0;
    for (at, word) in words(program, address, bytes, outside)?.enumerate() {
        let own = out.acts.iter().rev().find_map(|act| match act.what {
            ActKind::Write { address, value } if address == word => Some(value),
            ActKind::Write { .. } | ActKind::Flag { .. } | ActKind::Odd(_) => None,
        });
        let found = own.or_else(|| registers.read(word));
        let found = found.ok_or(CodeTrapKind::NoRegister { address: word })?;
        value |= u64::from(found) << (16 * at);
    }
    Ok(value)
}

/// Stores `bytes` bytes at a byte address outside the memory, in slot `slot`.
pub(crate) fn store(
    program: &LoadedProgram,
    out: &mut Segment,
    (address, bytes, value): (u64, u32, u64),
    slot: u32,
    loc: Loc,
    outside: CodeTrapKind,
) -> Result<(), CodeTrapKind> {
    for (at, word) in words(program, address, bytes, outside)?.enumerate() {
        write(program, out, (word, (value >> (16 * at)) as u16), slot, loc)?;
    }
    Ok(())
}

/// Records a write to the register at a word address, in slot `slot`.
pub(crate) fn write(
    program: &LoadedProgram,
    out: &mut Segment,
    (address, value): (u16, u16),
    slot: u32,
    loc: Loc,
) -> Result<(), CodeTrapKind> {
    match registers::find(program.target().id, address) {
        None => Err(CodeTrapKind::NoRegister { address }),
        Some((bank, _)) if !bank.writable => {
            Err(CodeTrapKind::BadRegister { address, why: "can only be read" })
        }
        Some(_) => {
            out.acts.push(SlotAct { slot, what: ActKind::Write { address, value }, loc });
            Ok(())
        }
    }
}
