//! Payloads of control wavelets (spec/mesh.md): an entry point and eight commands.
//!
//! The low 30 bits are a ring: commands of three bits each from bit 22 on, wrapping to bit 0,
//! and the six bits of the entry point from bit 16 on.

use dflow_ir::mesh::wavelet::Command;

const RING: u32 = 0x3fff_ffff;
const COMMANDS: u32 = 0x00ff_ffff;

/// The entry point, unless the payload says "none".
pub(crate) fn entry(payload: u32) -> Option<u8> {
    let entry = (payload >> 16 & 63) as u8;
    (payload >> 31 == 0 && entry != 31).then_some(entry)
}

/// The first command.
pub(crate) fn first(payload: u32) -> Command {
    match payload >> 22 & 3 {
        0 => Command::Nop,
        1 => Command::Advance,
        2 => Command::Reset,
        _ => Command::Teardown,
    }
}

/// Whether the first command hides the wavelet from the core.
pub(crate) fn hidden(payload: u32) -> bool {
    payload >> 24 & 1 != 0
}

/// The payload without its first command.
pub(crate) fn pop(payload: u32) -> u32 {
    let ring = payload & RING;
    let turned = (ring >> 22 | ring << 8) & RING;
    let popped = turned & !COMMANDS | (turned & COMMANDS) >> 3;
    (popped << 22 | popped >> 8) & RING | payload & !RING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_commands_is_read_in_order() {
        // NOP hidden, ADV hidden, then NOPs hidden; no entry point.
        let payload = 0x8b00_9249;
        assert_eq!((first(payload), hidden(payload), entry(payload)), (Command::Nop, true, None));
        let payload = pop(payload);
        assert_eq!((first(payload), hidden(payload)), (Command::Advance, true));
        let seven = (0..7).fold(payload, |payload, _| pop(payload));
        assert_eq!((first(seven), hidden(seven)), (Command::Nop, false));
    }

    #[test]
    fn popping_keeps_the_entry_point() {
        let payload = 40 << 16 | 1 << 22 | 2 << 25;
        assert_eq!((entry(payload), first(payload)), (Some(40), Command::Advance));
        assert_eq!((entry(pop(payload)), first(pop(payload))), (Some(40), Command::Reset));
    }
}
