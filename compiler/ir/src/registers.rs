//! Configuration registers of a PE: which words of its address space are not memory.
//!
//! One table for the compiler (checks of known addresses), for code (loads and stores through
//! pointers, `@get_config`, `@set_config`) and for `spec/registers.md`. A *bank* is a run of
//! registers of one kind. Addresses count 16-bit words; the byte address is twice that.
//! Invariant: banks of a target do not overlap and lie above its memory.

use crate::target::TargetId;

/// What the registers of a bank hold. The index of a register within its bank is explained at
/// each kind; `spec/registers.md` gives the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BankKind {
    /// Position 0, swaps, pop mode and teardown of a color. Index: the color.
    Route,
    /// Positions 1 to 3, ring mode and current position of a color. Index: the color.
    Switch,
    /// Eight words per color: receive and transmit ports of positions 0 to 3, then the state.
    /// Index: eight times the color, plus the word.
    Color,
    /// Colors that entered teardown before the teardown task began. Index: 0 for colors 0 to 15,
    /// 1 for the others.
    Teardown,
    /// Input queues of wse2. Index: the queue.
    Input,
    /// The cycle counter. Index: 0 for its low word, to 2.
    Clock,
    /// Whether the cycle counter runs.
    ClockControl,
    /// Four words per color: counter, limit, maximum and state of its filter. Index: four times
    /// the color, plus the word.
    Filter,
    /// A character written here is text for the user.
    Console,
    /// The color of an output queue, where queues belong to colors. Index: the queue.
    Output,
}

/// Lowest bit of the color in a register of [`BankKind::Output`].
pub const OUTPUT_COLOR_SHIFT: u16 = 4;

/// A run of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bank {
    /// What they hold.
    pub kind: BankKind,
    /// For messages: "a color's route".
    pub name: &'static str,
    /// Word address of the first.
    pub first: u16,
    /// How many.
    pub count: u16,
    /// The compiler sets them up itself: `@get_config` and `@set_config` do not touch them before
    /// the start.
    pub reserved: bool,
    /// Code may write them.
    pub writable: bool,
}

/// Words per color of [`BankKind::Color`].
pub const COLOR_WORDS: u16 = 8;

/// Words per color of [`BankKind::Filter`].
pub const FILTER_WORDS: u16 = 4;

const fn bank(
    kind: BankKind,
    name: &'static str,
    (first, count): (u16, u16),
    reserved: bool,
    writable: bool,
) -> Bank {
    Bank { kind, name, first, count, reserved, writable }
}

const TEARDOWN: Bank = bank(BankKind::Teardown, "colors in teardown", (0x7f60, 2), false, false);
const CLOCK_CONTROL: Bank =
    bank(BankKind::ClockControl, "the cycle counter's switch", (0x7f64, 1), true, true);
const CLOCK: Bank = bank(BankKind::Clock, "the cycle counter", (0x7f68, 3), true, true);
const FILTER: Bank = bank(BankKind::Filter, "a color's filter", (0x7e00, 96), true, true);

const CONSOLE: Bank = bank(BankKind::Console, "the console", (0x7f70, 1), false, true);

const WSE2: &[Bank] = &[
    FILTER,
    bank(BankKind::Route, "a color's route", (0x7f20, 24), true, true),
    bank(BankKind::Switch, "a color's switch", (0x7f40, 24), true, true),
    bank(BankKind::Input, "an input queue", (0x7f58, 8), true, true),
    TEARDOWN,
    CLOCK_CONTROL,
    CLOCK,
    CONSOLE,
];

const OUTPUT: Bank = bank(BankKind::Output, "an output queue's color", (0x7b80, 8), true, true);

const WSE3: &[Bank] = &[
    OUTPUT,
    bank(BankKind::Color, "a color's route and switch", (0x7d00, 192), true, true),
    FILTER,
    TEARDOWN,
    CLOCK_CONTROL,
    CLOCK,
    CONSOLE,
];

/// The banks of a target, by address.
pub fn banks(target: TargetId) -> &'static [Bank] {
    match target {
        TargetId::Wse2 => WSE2,
        TargetId::Wse3 => WSE3,
    }
}

/// The bank that a word address lies in, and the index there.
pub fn find(target: TargetId, address: u16) -> Option<(&'static Bank, u16)> {
    let mut banks = banks(target).iter();
    let bank = banks.find(|bank| address >= bank.first && address - bank.first < bank.count)?;
    Some((bank, address - bank.first))
}

/// Word address of a register, if the target has it.
pub fn address(target: TargetId, kind: BankKind, index: u16) -> Option<u16> {
    let bank = banks(target).iter().find(|bank| bank.kind == kind && index < bank.count)?;
    Some(bank.first + index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    #[test]
    fn banks_lie_apart_and_above_the_memory() {
        for id in TargetId::ALL {
            assert!(address(id, BankKind::Teardown, 1).is_some());
            let end = |bank: &Bank| u32::from(bank.first) + u32::from(bank.count);
            for pair in banks(id).windows(2) {
                assert!(end(&pair[0]) <= u32::from(pair[1].first), "{pair:?}");
            }
            for bank in banks(id) {
                assert!(u32::from(bank.first) * 2 >= Target::get(id).memory);
                assert!(end(bank) <= 1 << 15, "{bank:?}");
            }
        }
    }

    #[test]
    fn addresses_and_indices_are_inverse() {
        assert_eq!(address(TargetId::Wse2, BankKind::Route, 3), Some(0x7f23));
        assert_eq!(address(TargetId::Wse2, BankKind::Color, 3), None);
        let (bank, index) = find(TargetId::Wse2, 0x7f43).unwrap();
        assert_eq!((bank.kind, index), (BankKind::Switch, 3));
        assert_eq!(find(TargetId::Wse2, 0x7f38), None);
        assert_eq!(find(TargetId::Wse3, 0x7f23), None);
    }
}
