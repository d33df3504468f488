//! Wavelets and the commands in a control wavelet's payload.
//!
//! The payload of a control wavelet holds an entry point (bits 16 to 21) and eight commands of
//! three bits, an opcode of two and a flag that hides the wavelet from the compute element. The
//! commands start at bit 22 and go on from bit 29 to bit 0. The low half doubles as data for the
//! control task when at most two commands are used.

use serde::{Deserialize, Serialize};

/// What travels: 32 bits and the control bit (the color is where it travels).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Wavelet {
    /// Payload; the upper half may be an index.
    pub payload: u32,
    /// Carries switch commands and an entry point.
    pub control: bool,
}

/// A switch command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Command {
    /// Nothing.
    Nop,
    /// To the next position.
    Advance,
    /// To position 0.
    Reset,
    /// Suspend the color.
    Teardown,
}

/// A command of a control wavelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ControlCommand {
    /// What the router does.
    pub command: Command,
    /// The wavelet is not delivered to the compute element of that router.
    pub ce_ignore: bool,
}

/// The payload of a control wavelet.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Control(pub u32);

const ENTRY_MASK: u32 = 0x003f_0000;
const NO_ENTRY: u32 = 31;
const NO_ENTRY_BIT: u32 = 1 << 31;
/// The bits that commands occupy, as one ring.
const RING_BITS: u32 = 30;
const FIRST_COMMAND: u32 = 22;

impl Wavelet {
    /// A data wavelet.
    pub fn data_word(payload: u32) -> Wavelet {
        Wavelet { payload, control: false }
    }

    /// A data wavelet of 16 bits with an index.
    pub fn indexed(index: u16, data: u16) -> Wavelet {
        Wavelet::data_word(u32::from(index) << 16 | u32::from(data))
    }

    /// The index: the upper half.
    pub fn index(self) -> u16 {
        (self.payload >> 16) as u16
    }

    /// The 16-bit datum: the lower half.
    pub fn data(self) -> u16 {
        self.payload as u16
    }

    /// The commands, if it is a control wavelet.
    pub fn commands(self) -> Option<Control> {
        self.control.then_some(Control(self.payload))
    }
}

impl Command {
    /// All commands; the index is the opcode.
    pub const ALL: [Command; 4] =
        [Command::Nop, Command::Advance, Command::Reset, Command::Teardown];

    /// The command of an opcode (its low two bits).
    pub fn from_opcode(opcode: u32) -> Command {
        Command::ALL[(opcode & 3) as usize]
    }

    /// The opcode, 0 to 3.
    pub fn opcode(self) -> u32 {
        self as u32
    }
}

impl Control {
    /// Commands per wavelet.
    pub const COMMANDS: usize = 8;

    /// A payload with an entry point (0 to 63; `None` is written as 31) and up to eight commands;
    /// the rest are no-operations that reach the compute element. More than eight are cut.
    pub fn new(entry: Option<u8>, commands: &[ControlCommand]) -> Control {
        let entry = entry.map_or(NO_ENTRY, u32::from) << 16 & ENTRY_MASK;
        commands
            .iter()
            .take(Control::COMMANDS)
            .enumerate()
            .fold(Control(entry), |control, (index, &command)| control.with_command(index, command))
    }

    /// With a 16-bit datum in the low half, over the commands that lie there.
    #[must_use]
    pub fn with_data(self, data: u16) -> Control {
        Control(self.0 & 0xffff_0000 | u32::from(data))
    }

    /// With command `index` (0 to 7; others change nothing) replaced.
    #[must_use]
    pub fn with_command(self, index: usize, command: ControlCommand) -> Control {
        if index >= Control::COMMANDS {
            return self;
        }
        let bits = command.command.opcode() | u32::from(command.ce_ignore) << 2;
        let (mask, bits) = (at(7, index), at(bits, index));
        Control(self.0 & !mask | bits)
    }

    /// Command `index`, 0 to 7; past the last there are no-operations.
    pub fn command(self, index: usize) -> ControlCommand {
        if index >= Control::COMMANDS {
            return ControlCommand { command: Command::Nop, ce_ignore: false };
        }
        let start = (FIRST_COMMAND + 3 * index as u32) % RING_BITS;
        let ring = u64::from(self.0) & ((1 << RING_BITS) - 1);
        let bits = ((ring | ring << RING_BITS) >> start) as u32;
        ControlCommand { command: Command::from_opcode(bits), ce_ignore: bits >> 2 & 1 != 0 }
    }

    /// The control task to be started; 31 in the field or bit 31 mean none.
    pub fn entry(self) -> Option<u8> {
        let entry = (self.0 & ENTRY_MASK) >> 16;
        let none = entry == NO_ENTRY || self.0 & NO_ENTRY_BIT != 0;
        (!none).then_some(entry as u8)
    }

    /// The datum for the control task: the low half.
    pub fn data(self) -> u16 {
        self.0 as u16
    }

    /// Without the first command: the others move up, a no-operation that reaches the compute
    /// element fills the end (assumed). Entry point and the bits above stay.
    #[must_use]
    pub fn pop(self) -> Control {
        (0..Control::COMMANDS)
            .fold(self, |control, index| control.with_command(index, self.command(index + 1)))
    }
}

/// Three bits moved to the place of a command.
fn at(bits: u32, index: usize) -> u32 {
    let start = (FIRST_COMMAND + 3 * index as u32) % RING_BITS;
    let moved = u64::from(bits) << start;
    let ring = (1 << RING_BITS) - 1;
    (moved & ring | moved >> RING_BITS) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hidden(command: Command) -> ControlCommand {
        ControlCommand { command, ce_ignore: true }
    }

    fn seen(command: Command) -> ControlCommand {
        ControlCommand { command, ce_ignore: false }
    }

    /// One command, then hidden no-operations.
    fn first(command: Command) -> [ControlCommand; 8] {
        std::array::from_fn(|index| hidden(if index == 0 { command } else { Command::Nop }))
    }

    #[test]
    fn constants_of_public_programs() {
        assert_eq!(Control::new(None, &[hidden(Command::Teardown)]), Control(0x01df_0000));
        assert_eq!(Control::new(None, &first(Command::Teardown)), Control(0x09df_9249));
        let advance_two = Control::new(Some(0), &[hidden(Command::Advance), hidden(Command::Nop)]);
        assert_eq!(advance_two, Control(5 << 22 | 4 << 25));
        let raw = Control(0x8b00_9249);
        assert_eq!(raw.entry(), None);
        assert_eq!(raw.command(0), hidden(Command::Nop));
        assert_eq!(raw.command(1), hidden(Command::Advance));
        assert!((2..8).all(|index| raw.command(index) == hidden(Command::Nop)));
        assert_eq!(
            Control::new(None, &first(Command::Advance)).command(0),
            hidden(Command::Advance)
        );
        assert_eq!(Control(0x01df_0000).entry(), None);
    }

    #[test]
    fn popping_shifts_the_list() {
        let control = Control::new(Some(40), &[seen(Command::Nop), hidden(Command::Advance)]);
        let popped = control.pop();
        assert_eq!(popped, Control::new(Some(40), &[hidden(Command::Advance)]));
        assert_eq!(popped.pop(), Control::new(Some(40), &[]));
        assert_eq!(Control(0x8b00_9249).pop().0 >> 30, 2);
        assert_eq!(Control(0x8b00_9249).pop().command(7), seen(Command::Nop));
    }

    #[test]
    fn halves_of_a_wavelet() {
        let wavelet = Wavelet::indexed(3, 7);
        assert_eq!((wavelet.index(), wavelet.data(), wavelet.payload), (3, 7, 0x0003_0007));
        assert_eq!(wavelet.commands(), None);
        let control = Control::new(Some(43), &[hidden(Command::Advance)]).with_data(0x1234);
        assert_eq!((control.entry(), control.data()), (Some(43), 0x1234));
        assert_eq!(control.command(0), hidden(Command::Advance));
        assert_eq!(Wavelet { payload: control.0, control: true }.commands(), Some(control));
    }

    proptest! {
        #[test]
        fn commands_round_trip(payload: u32, kinds in proptest::array::uniform8((0u32..4, any::<bool>()))) {
            let commands = kinds.map(|(opcode, ce_ignore)| ControlCommand { command: Command::from_opcode(opcode), ce_ignore });
            let mut control = Control(payload);
            for (index, &command) in commands.iter().enumerate() {
                control = control.with_command(index, command);
            }
            for (index, &command) in commands.iter().enumerate() {
                prop_assert_eq!(control.command(index), command);
                prop_assert_eq!(control.pop().command(index), commands.get(index + 1).copied().unwrap_or(seen(Command::Nop)));
            }
            let others = ENTRY_MASK | 3 << 30;
            prop_assert_eq!(control.0 & others, payload & others);
            prop_assert_eq!(control.pop().0 & others, payload & others);
        }
    }
}
