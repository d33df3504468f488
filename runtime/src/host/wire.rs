//! Words of the protocol: commands, dealing of words to columns, elements as words.
//!
//! Pure functions; `spec/memcpy.md` sections 2 to 4 say what they make.

use dflow_ir::mesh::wavelet::{Command, Control, ControlCommand};
use dflow_ir::mesh::{Color, Wavelet};

use super::{Elements, HostError};

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
    Turn = 6,
    SpreadIn32 = 7,
    SpreadIn16 = 8,
    Deal = 9,
}

/// Ends the turns of columns before the sender, instead of the sender's own (section 5).
pub(super) const RESET_TURNS: u32 = 1 << 7;

/// The amount in the header of a command whose last argument is the amount.
const GIVEN_AMOUNT: u32 = 0xff;

/// Columns of a row that words are dealt to: every `step`th from `first` on, `count` in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) first: u16,
    pub(super) step: u16,
    pub(super) count: u16,
}

impl Columns {
    pub(super) fn at(self, index: u16) -> u16 {
        self.first + self.step * index
    }

    /// The last column.
    pub(super) fn last(self) -> u16 {
        self.at(self.count.saturating_sub(1))
    }

    /// The first and the last column as an argument.
    fn span(self) -> u32 {
        u32::from(self.first) | u32::from(self.last()) << 16
    }

    /// Whether it is each column from the first to the last.
    fn is_dense(self) -> bool {
        self.step == 1 || self.count == 1
    }

    /// Columns between the one before and column `index`.
    fn gap(self, index: u16) -> u16 {
        if index == 0 { self.first } else { self.step }
    }
}

/// A command as words.
pub(super) fn command(operation: Operation, export: u32, args: &[u32]) -> Vec<Wavelet> {
    encode(operation, export, 0, args)
}

/// A command that concerns columns of a row of `width`, with an amount: elements or 16-bit words per
/// PE, or a stream and what is asked of its turns. No word says what is usual: all columns, a small amount.
pub(super) fn column_command(
    operation: Operation,
    export: u32,
    columns: Columns,
    width: u16,
    amount: u32,
) -> Vec<Wavelet> {
    let is_last = columns.last() == width.saturating_sub(1);
    let mut args = match columns.is_dense() {
        true if columns.first == 0 && is_last => vec![],
        true => vec![columns.span()],
        false => vec![columns.span(), columns.step.into()],
    };
    if amount < GIVEN_AMOUNT {
        return encode(operation, export, amount, &args);
    }
    args.push(amount);
    encode(operation, export, GIVEN_AMOUNT, &args)
}

/// A deal to columns 0 to `last` over a stream without switches is to come.
pub(super) fn deal_command(last: u16, color: Color) -> Vec<Wavelet> {
    let columns = Columns { first: 0, step: 1, count: last + 1 };
    encode(Operation::Deal, 0, color.index().into(), &[columns.span()])
}

fn encode(operation: Operation, export: u32, amount: u32, args: &[u32]) -> Vec<Wavelet> {
    let header = operation as u32 | (args.len() as u32 & 0xf) << 4 | amount << 8 | export << 16;
    std::iter::once(header).chain(args.iter().copied()).map(Wavelet::data_word).collect()
}

/// The control wavelet of one command that no compute element sees.
fn hidden(command: Command) -> Wavelet {
    let control = Control::new(None, &[ControlCommand { command, ce_ignore: true }]);
    Wavelet { payload: control.0, control: true }
}

/// The words of a row dealt out to columns, a block of elements for each, in words of `bytes`
/// bytes, over a stream: switches begin and end at the position towards the core.
pub(super) fn deal<'a>(
    columns: Columns,
    block: impl Fn(u16) -> &'a [u8],
    bytes: usize,
) -> impl Iterator<Item = Wavelet> {
    let several = columns.last() > 0;
    blocks(columns, block, bytes).chain(several.then(|| hidden(Command::Reset)))
}

/// Likewise over the color of copies, whose switches begin and end at the position towards all of
/// the row's `width` columns.
pub(super) fn deal_copies<'a>(
    columns: Columns,
    width: u16,
    block: impl Fn(u16) -> &'a [u8],
    bytes: usize,
) -> impl Iterator<Item = Wavelet> {
    let several = width > 1;
    let begin = several.then(|| hidden(Command::Advance));
    let left = width.saturating_sub(columns.last() + 1);
    let rest = (0..left).map(|_| hidden(Command::Advance));
    let end = rest.chain(several.then(|| hidden(Command::Reset)));
    begin.into_iter().chain(blocks(columns, block, bytes)).chain(end)
}

/// Likewise over a stream without switches: behind the words of each column from 0 on, none for
/// columns that get no block, comes a teardown.
pub(super) fn deal_torn<'a>(
    columns: Columns,
    block: impl Fn(u16) -> &'a [u8],
    bytes: usize,
) -> impl Iterator<Item = Wavelet> {
    (0..columns.count).flat_map(move |index| {
        let before = (1..columns.gap(index)).map(|_| hidden(Command::Teardown));
        let first = (index == 0 && columns.first > 0).then(|| hidden(Command::Teardown));
        let end = std::iter::once(hidden(Command::Teardown));
        first.into_iter().chain(before).chain(words(block(index), bytes)).chain(end)
    })
}

/// Blocks with the advances before each.
fn blocks<'a>(
    columns: Columns,
    block: impl Fn(u16) -> &'a [u8],
    bytes: usize,
) -> impl Iterator<Item = Wavelet> {
    (0..columns.count).flat_map(move |index| {
        let before = (0..columns.gap(index)).map(|_| hidden(Command::Advance));
        before.chain(words(block(index), bytes))
    })
}

/// How elements of a size in bytes travel into the mesh: bytes per word.
pub(super) fn bytes_per_word(elements: Elements) -> Result<usize, HostError> {
    match elements.bytes() {
        2 => Ok(2),
        4 | 8 => Ok(4),
        _ => Err(HostError::ElementSize(elements)),
    }
}

/// Elements as data wavelets, `bytes` (2 or 4) of them per word, low bits first.
pub(super) fn words(elements: &[u8], bytes: usize) -> impl Iterator<Item = Wavelet> {
    elements.chunks_exact(bytes).map(little_endian).map(Wavelet::data_word)
}

fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

/// What a control wavelet on a stream to the host does to turns, if it is the library's: the column
/// that sent it, and whether it ended that column's turn (or else those of columns before it).
pub(super) fn turn(word: Wavelet) -> Option<(u16, bool)> {
    let low = 0xffff;
    let of = |command| word.payload & !low == hidden(command).payload & !low;
    let (advance, reset) = (of(Command::Advance), of(Command::Reset));
    (word.control && (advance || reset)).then_some(((word.payload & low) as u16, advance))
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

    fn payloads(words: &[Wavelet]) -> Vec<u32> {
        assert!(words.iter().all(|word| !word.control));
        words.iter().map(|word| word.payload).collect()
    }

    #[test]
    fn a_command_is_a_header_and_its_arguments() {
        let words = command(Operation::Launch, 7, &[5, 6]);
        assert_eq!(payloads(&words), [0x0007_0024, 5, 6]);
    }

    #[test]
    fn what_is_usual_takes_no_word() {
        let copy = |first, step, count, amount| {
            let columns = Columns { first, step, count };
            payloads(&column_command(Operation::CopyOut, 7, columns, 6, amount))
        };
        assert_eq!(copy(0, 1, 6, 9), [0x0007_0903]);
        assert_eq!(copy(0, 1, 6, 254), [0x0007_fe03]);
        assert_eq!(copy(0, 1, 6, 255), [0x0007_ff13, 255]);
        assert_eq!(copy(2, 1, 4, 9), [0x0007_0913, 0x0005_0002]);
        assert_eq!(copy(0, 2, 3, 9), [0x0007_0923, 0x0004_0000, 2]);
        assert_eq!(copy(0, 5, 2, 300), [0x0007_ff33, 0x0005_0000, 5, 300]);
        assert_eq!(copy(3, 2, 1, 9), [0x0007_0913, 0x0003_0003]);
    }

    #[test]
    fn the_first_column_alone_needs_no_switching() {
        let first = Columns { first: 0, step: 1, count: 1 };
        let wanted = [Wavelet::data_word(1), Wavelet::data_word(2)];
        assert!(deal(first, |_| &[1, 0, 2, 0], 2).eq(wanted));
        assert!(deal_copies(first, 1, |_| &[1, 0, 2, 0], 2).eq(wanted));
    }

    #[test]
    fn a_teardown_follows_each_column() {
        for (count, first, step) in [(1, 0, 1), (1, 3, 1), (2, 0, 1), (2, 1, 3)] {
            let columns = Columns { first, step, count };
            let mut got = vec![0; 9];
            let mut column = 0;
            for word in deal_torn(columns, |_| &[1, 0], 2) {
                if word.control {
                    assert_eq!(Control(word.payload).command(0).command, Command::Teardown);
                    column += 1;
                } else {
                    got[column] += 1;
                }
            }
            assert_eq!(column, usize::from(columns.at(count - 1)) + 1);
            let wanted = |x| u16::from((0..count).any(|index| columns.at(index) == x));
            assert!((0..9).map(wanted).eq(got));
        }
    }

    const WIDTH: usize = 9;

    /// Routers as in section 3 of the protocol. Per position: to the core, to the east.
    fn follow(words: impl Iterator<Item = Wavelet>, ways: &[(bool, bool)]) -> Vec<Vec<u8>> {
        let (mut position, mut got) = ([0; WIDTH], vec![Vec::new(); WIDTH]);
        for word in words {
            for column in 0..WIDTH {
                let (core, east) = ways[position[column]];
                if word.control {
                    let advance = Control(word.payload).command(0).command == Command::Advance;
                    let next = (position[column] + 1).min(ways.len() - 1);
                    position[column] = if advance { next } else { 0 };
                } else if core {
                    got[column].push(word.payload as u8);
                }
                if !east {
                    break;
                }
            }
        }
        assert_eq!(position, [0; WIDTH]);
        got
    }

    /// Who gets what, and all switches end at position 0.
    #[test]
    fn every_column_gets_its_words() {
        for (count, first, step) in
            [(1, 0, 1), (1, 2, 1), (3, 0, 1), (3, 1, 2), (2, 3, 4), (9, 0, 1)]
        {
            let columns = Columns { first, step, count };
            let row: Vec<u8> =
                (0..count * 4).map(|i| if i % 2 == 0 { i as u8 } else { 0 }).collect();
            let block = |index: u16| &row[usize::from(index) * 4..][..4];
            let by_stream = follow(deal(columns, block, 2), &[(true, false), (false, true)]);
            let copies = deal_copies(columns, WIDTH as u16, block, 2);
            let by_copies = follow(copies, &[(true, true), (true, false), (false, true)]);
            let mut wanted = vec![Vec::new(); WIDTH];
            for index in 0..count {
                let at = usize::from(4 * index);
                wanted[usize::from(columns.at(index))] = vec![row[at], row[at + 2]];
            }
            assert_eq!(by_stream, wanted);
            assert_eq!(by_copies, wanted);
        }
    }

    #[test]
    fn elements_become_words_low_half_first() {
        let payloads = |bytes| -> Vec<u32> {
            words(&[1, 2, 3, 4, 5, 6, 7, 8], bytes).map(|word| word.payload).collect()
        };
        assert_eq!(payloads(4), [0x0403_0201, 0x0807_0605]);
        assert_eq!(payloads(2), [0x0201, 0x0403, 0x0605, 0x0807]);
        let bytes = Elements::Bytes(1);
        assert_eq!(bytes_per_word(bytes), Err(HostError::ElementSize(bytes)));
    }

    #[test]
    fn a_mark_is_a_control_wavelet_without_a_command() {
        let mark = Wavelet { payload: Control::new(None, &[]).0, control: true };
        assert!(ends_row(mark));
        assert!(!ends_row(hidden(Command::Advance)));
        assert!(!ends_row(Wavelet::data_word(0)));
    }

    #[test]
    fn turns_name_their_column() {
        let control = |payload| Wavelet { payload, control: true };
        assert_eq!(turn(control(0x015f_0007)), Some((7, true)));
        assert_eq!(turn(control(0x019f_0002)), Some((2, false)));
        assert_eq!(turn(control(0x001f_0002)), None);
        assert_eq!(turn(Wavelet::data_word(0x015f_0007)), None);
    }
}
