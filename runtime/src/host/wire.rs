//! Words of the protocol: commands, dealing of words to columns, elements as words.
//!
//! Pure functions; `spec/memcpy.md` sections 2 to 4 say what they make.

use dflow_ir::mesh::wavelet::{Command, Control, ControlCommand};
use dflow_ir::mesh::{Color, Wavelet};
use dflow_ir::ty::Ty;

use super::HostError;

/// Color number of words to the mesh.
pub(super) const TO_MESH: u8 = 21;
/// Color number of words to the host.
pub(super) const TO_HOST: u8 = 22;
/// Color number of commands.
pub(super) const COMMANDS: u8 = 23;

/// Most arguments of a command.
pub(super) const MAX_ARGS: usize = 15;

/// The color of one of the numbers above.
pub(super) fn reserved(number: u8) -> Color {
    Color::new(number).expect("reserved numbers are colors")
}

/// What PEs are told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    CopyIn32 = 1,
    CopyIn16 = 2,
    CopyOut = 3,
    Launch = 4,
    Fence = 5,
}

/// A command as words.
pub(super) fn command(operation: Operation, export: u32, args: &[u32]) -> Vec<Wavelet> {
    let header = operation as u32 | (args.len() as u32 & 0xff) << 8 | export << 16;
    std::iter::once(header).chain(args.iter().copied()).map(Wavelet::data_word).collect()
}

/// The argument that names a range of columns.
pub(super) fn columns(first: u16, last: u16) -> u32 {
    u32::from(first) | u32::from(last) << 16
}

/// The control wavelet of one command that no compute element sees.
fn hidden(command: Command) -> Wavelet {
    let control = Control::new(None, &[ControlCommand { command, ce_ignore: true }]);
    Wavelet { payload: control.0, control: true }
}

/// The words of a row for columns `first` and on, `per_column` bytes of elements each (a whole
/// number of words of `bytes` elements), dealt out by its switches.
pub(super) fn deal(
    first: u16,
    row: &[u8],
    per_column: usize,
    bytes: usize,
) -> impl Iterator<Item = Wavelet> {
    let columns = row.chunks_exact(per_column).enumerate();
    let several = usize::from(first) + columns.len() > 1;
    let dealt = columns.flat_map(move |(index, column)| {
        let advance = (index > 0).then(|| hidden(Command::Advance));
        advance.into_iter().chain(words(column, bytes))
    });
    let before = (0..first).map(|_| hidden(Command::Advance));
    before.chain(dealt).chain(several.then(|| hidden(Command::Reset)))
}

/// How elements of a type travel into the mesh: bytes per word.
pub(super) fn bytes_per_word(ty: Ty) -> Result<usize, HostError> {
    match ty {
        Ty::I16 | Ty::F16 => Ok(2),
        Ty::I32 | Ty::F32 | Ty::I64 | Ty::F64 => Ok(4),
        Ty::I8 => Err(HostError::ElementSize(ty)),
    }
}

/// Elements as data wavelets, `bytes` (2 or 4) of them per word, low bits first.
pub(super) fn words(elements: &[u8], bytes: usize) -> impl Iterator<Item = Wavelet> {
    elements.chunks_exact(bytes).map(little_endian).map(Wavelet::data_word)
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// Whether a control wavelet ends a row of a stream: it carries no switch command.
pub(super) fn ends_row(word: Wavelet) -> bool {
    word.control
        && (0..Control::COMMANDS)
            .all(|index| Control(word.payload).command(index).command == Command::Nop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_header_and_its_arguments() {
        let words = command(Operation::CopyOut, 7, &[columns(2, 5), 9]);
        let payloads: Vec<u32> = words.iter().map(|word| word.payload).collect();
        assert_eq!(payloads, [0x0007_0203, 0x0005_0002, 9]);
        assert!(words.iter().all(|word| !word.control));
    }

    #[test]
    fn the_first_column_alone_needs_no_switching() {
        let dealt: Vec<Wavelet> = deal(0, &[1, 0, 2, 0], 4, 2).collect();
        assert_eq!(dealt, [Wavelet::data_word(1), Wavelet::data_word(2)]);
    }

    /// Routers as in section 3 of the protocol: who gets what, and all switches end at position 0.
    #[test]
    fn every_column_gets_its_words() {
        for (columns, first) in [(1, 0), (1, 2), (3, 0), (3, 1), (2, 3)] {
            let row: Vec<u8> =
                (0..columns * 4).map(|i| if i % 2 == 0 { i as u8 } else { 0 }).collect();
            let (mut position, mut got) = ([0; 6], vec![Vec::new(); 6]);
            for word in deal(first, &row, 4, 2) {
                for column in 0..6 {
                    let here = position[column] == 0;
                    if word.control {
                        position[column] =
                            i32::from(Control(word.payload).command(0).command == Command::Advance);
                    } else if here {
                        got[column].push(word.payload as u8);
                    }
                    if here {
                        break;
                    }
                }
            }
            assert_eq!(position, [0; 6]);
            for index in 0..columns {
                let wanted = [row[4 * index], row[4 * index + 2]];
                assert_eq!(got[usize::from(first) + index], wanted);
            }
        }
    }

    #[test]
    fn elements_become_words_low_half_first() {
        let payloads = |bytes| -> Vec<u32> {
            words(&[1, 2, 3, 4, 5, 6, 7, 8], bytes).map(|word| word.payload).collect()
        };
        assert_eq!(payloads(4), [0x0403_0201, 0x0807_0605]);
        assert_eq!(payloads(2), [0x0201, 0x0403, 0x0605, 0x0807]);
        assert_eq!(bytes_per_word(Ty::I8), Err(HostError::ElementSize(Ty::I8)));
    }

    #[test]
    fn a_mark_is_a_control_wavelet_without_a_command() {
        let mark = Wavelet { payload: Control::new(None, &[]).0, control: true };
        assert!(ends_row(mark));
        assert!(!ends_row(hidden(Command::Advance)));
        assert!(!ends_row(Wavelet::data_word(0)));
    }
}
