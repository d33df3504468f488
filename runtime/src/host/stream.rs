//! Words to come over streaming colors.
//!
//! Invariants: words of a link, or of a column where columns take turns, go to its receptions in
//! the order in which they were queued; words that nobody waits for yet are kept. A reception
//! ends with its last word, or with the mark of its row.

use std::collections::{BTreeMap, VecDeque};

use dflow_ir::mesh::{Color, Coord, Wavelet};

use super::HostError;
use super::wire::{Columns, ends_row, turn};
use crate::machine::{Goal, LinkId};

/// Names a queued reception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u32);

impl StreamId {
    /// Its number, counted from the start of the session.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The reception of a number.
    pub fn numbered(number: u32) -> StreamId {
        StreamId(number)
    }
}

/// A complete reception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Which.
    pub id: StreamId,
    /// Per row of the region: its elements, column by column, little endian.
    pub rows: Vec<Vec<u8>>,
}

/// What a reception expects of each of its links.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) color: Color,
    /// Whose words, where columns take turns; otherwise the words of a link are one column's.
    pub(super) columns: Option<Columns>,
    pub(super) bytes_per_word: usize,
    pub(super) end: End,
}

/// How the words of a column end.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// After so many words.
    Words(u64),
    /// At a mark, after at most so many words (`capacity` elements).
    Mark { most: u64, capacity: u64 },
}

/// What shall happen to the turns of a link's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Columns `first` to `last` end theirs.
    Advance { first: u16, last: u16 },
    /// Column `by`, which is heard, starts them again.
    Reset { by: u16 },
}

/// What may come over a link now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// So many more words.
    Words(u64),
    /// Any number.
    Any,
}

/// All links that have ever been received from, and receptions that wait.
#[derive(Debug, Default)]
pub(super) struct Streams {
    links: Vec<StreamLink>,
    receptions: Vec<Reception>,
    next: u32,
}

#[derive(Debug)]
struct StreamLink {
    link: LinkId,
    /// Words and control wavelets that have come.
    words: u64,
    controls: u64,
    /// The column that is heard now, and the one that will be when all turns asked for are over.
    heard: u16,
    told: u16,
    /// Ends of turns that were asked for and have not come.
    turns: u64,
    /// Words that nobody waits for yet, by column.
    early: BTreeMap<u16, VecDeque<Wavelet>>,
    /// Reception and row within it, in order.
    queue: VecDeque<(StreamId, usize)>,
}

#[derive(Debug)]
struct Reception {
    id: StreamId,
    expected: Expected,
    first_row: u16,
    rows: Vec<RowState>,
}

#[derive(Debug, Default)]
struct RowState {
    bytes: Vec<u8>,
    /// Columns that are complete.
    columns: u16,
    /// Words of the next one.
    words: u64,
}

impl Streams {
    /// Queues a reception over links of rows from `first_row` on.
    pub(super) fn expect(
        &mut self,
        expected: Expected,
        links: &[LinkId],
        first_row: u16,
    ) -> StreamId {
        let id = StreamId(self.next);
        self.next += 1;
        let rows = links.iter().map(|_| RowState::default()).collect();
        self.receptions.push(Reception { id, expected, first_row, rows });
        if !matches!(expected.end, End::Words(0)) {
            for (row, &link) in links.iter().enumerate() {
                self.link(link).queue.push_back((id, row));
            }
        }
        id
    }

    /// Links with receptions that wait.
    pub(super) fn open_links(&self) -> Vec<LinkId> {
        self.links.iter().filter(|link| !link.queue.is_empty()).map(|link| link.link).collect()
    }

    /// Takes words that have come over a link.
    pub(super) fn feed(
        &mut self,
        link: LinkId,
        words: impl Iterator<Item = Wavelet>,
    ) -> Result<(), HostError> {
        let index = self.link_index(link);
        let Streams { links, receptions, next: _ } = self;
        let link = &mut links[index];
        words.for_each(|word| link.take(word));
        while let Some(&(id, row)) = link.queue.front() {
            let Some(reception) = position(receptions, id).and_then(|it| receptions.get_mut(it))
            else {
                break;
            };
            let early = link.early.entry(reception.column(row).unwrap_or(0)).or_default();
            let Some(word) = early.pop_front() else { break };
            if reception.take(row, word)? {
                link.queue.pop_front();
            }
        }
        Ok(())
    }

    /// What must at least come before the open receptions can be complete, all words that have
    /// come being fed and all turns asked for.
    pub(super) fn goals(&self) -> Vec<Goal> {
        self.goals_up_to(None)
    }

    /// Likewise, of one reception and those before it on its links.
    pub(super) fn goals_of(&self, id: StreamId) -> Vec<Goal> {
        self.goals_up_to(Some(id))
    }

    fn goals_up_to(&self, last: Option<StreamId>) -> Vec<Goal> {
        let mut goals = Vec::new();
        for link in &self.links {
            let wanted = |&(id, _): &(StreamId, usize)| last.is_none_or(|last| id == last);
            let end = link.queue.iter().rposition(wanted).map_or(0, |index| index + 1);
            let (mut words, mut marks, turns) = (0, 0, link.turns);
            for reception in self.front(link).take(end) {
                match reception {
                    (End::Words(all), state) => words += all.saturating_sub(state.words),
                    (End::Mark { .. }, _) => marks += 1,
                }
            }
            if words > 0 {
                goals.push(Goal::Words(link.link, link.words + turns + words));
            }
            if marks > 0 {
                goals.push(Goal::Controls(link.link, link.controls + turns + marks));
            }
        }
        goals
    }

    /// The turns that must be asked for before the open receptions can be complete, with the row
    /// of the link's PE to be found by the caller. Those that came before have all ended.
    pub(super) fn turns(&mut self) -> Vec<(LinkId, Color, Turn)> {
        let mut all = Vec::new();
        let Streams { links, receptions, next: _ } = self;
        for link in links.iter_mut().filter(|link| link.turns == 0) {
            let Some(&(id, row)) = link.queue.front() else { continue };
            let Some(reception) = position(receptions, id).and_then(|it| receptions.get(it)) else {
                continue;
            };
            let Some(column) = reception.column(row) else { continue };
            let color = reception.expected.color;
            if column < link.told {
                all.push((link.link, color, Turn::Reset { by: link.told }));
                (link.told, link.turns) = (0, 1);
            }
            if column > link.told {
                let (first, last) = (link.told, column - 1);
                all.push((link.link, color, Turn::Advance { first, last }));
                link.turns += u64::from(column - first);
                link.told = column;
            }
        }
        all
    }

    /// What may come over the links with receptions that wait.
    pub(super) fn room(&self) -> Vec<(LinkId, Room)> {
        let open = self.links.iter().filter(|link| !link.queue.is_empty());
        open.map(|link| {
            let mut room = Room::Words(0);
            for (end, state) in self.front(link) {
                room = match (room, end) {
                    (Room::Words(words), End::Words(all)) if link.told == 0 && link.turns == 0 => {
                        Room::Words(words + all.saturating_sub(state.words))
                    }
                    (Room::Words(_) | Room::Any, End::Words(_) | End::Mark { .. }) => Room::Any,
                };
            }
            (link.link, room)
        })
        .collect()
    }

    /// The first words that are missing: color, place, how many. `row` tells a link's row.
    pub(super) fn missing(&self, row: impl Fn(LinkId) -> Coord) -> Option<(Color, Coord, u64)> {
        let link = self.links.iter().find(|link| !link.queue.is_empty())?;
        let &(id, index) = link.queue.front()?;
        let reception = self.receptions.get(position(&self.receptions, id)?)?;
        let mut at = row(link.link);
        at.x = reception.column(index).unwrap_or(at.x);
        let words = match reception.expected.end {
            End::Words(all) => all.saturating_sub(reception.rows[index].words),
            End::Mark { .. } => 1,
        };
        Some((reception.expected.color, at, words))
    }

    /// How many words of a reception, and of those before it on its links, are missing, and the first link of which they
    /// are.
    pub(super) fn missing_of(&self, id: StreamId) -> Option<(LinkId, u64)> {
        let goal = self.goals_of(id).into_iter().find_map(|goal| match goal {
            Goal::Words(link, words) => Some((link, words)),
            Goal::Controls(..) => None,
        });
        let (link, words) = goal?;
        let come = self.links.iter().find(|known| known.link == link)?.words;
        Some((link, words.saturating_sub(come)))
    }

    /// Hands over the complete receptions; called when all are.
    pub(super) fn take(&mut self) -> Vec<Finished> {
        let finished = |reception: Reception| Finished {
            id: reception.id,
            rows: reception.rows.into_iter().map(|row| row.bytes).collect(),
        };
        std::mem::take(&mut self.receptions).into_iter().map(finished).collect()
    }

    /// Hands over a reception if it is complete.
    pub(super) fn take_one(&mut self, id: StreamId) -> Option<Finished> {
        let index = position(&self.receptions, id)?;
        if self.links.iter().any(|link| link.queue.iter().any(|(open, _)| *open == id)) {
            return None;
        }
        let Reception { id, rows, .. } = self.receptions.remove(index);
        Some(Finished { id, rows: rows.into_iter().map(|row| row.bytes).collect() })
    }

    /// What a link's receptions wait for: of all of them, or where columns take turns, of the
    /// column that comes next.
    fn front<'s>(&'s self, link: &'s StreamLink) -> impl Iterator<Item = (End, &'s RowState)> {
        let of = |&(id, row): &(StreamId, usize)| {
            let reception = self.receptions.get(position(&self.receptions, id)?)?;
            Some((reception.expected, reception.rows.get(row)?))
        };
        let turns = link.queue.front().and_then(of).is_some_and(|it| it.0.columns.is_some());
        let count = if turns { 1 } else { link.queue.len() };
        let waiting = link.queue.iter().take(count).filter_map(of);
        waiting.map(|(expected, state)| (expected.end, state))
    }

    fn link(&mut self, link: LinkId) -> &mut StreamLink {
        let index = self.link_index(link);
        &mut self.links[index]
    }

    /// Links are kept in the order of their numbers.
    fn link_index(&mut self, link: LinkId) -> usize {
        match self.links.binary_search_by_key(&link, |entry| entry.link) {
            Ok(index) => index,
            Err(index) => {
                let entry = StreamLink {
                    link,
                    words: 0,
                    controls: 0,
                    heard: 0,
                    told: 0,
                    turns: 0,
                    early: BTreeMap::new(),
                    queue: VecDeque::new(),
                };
                self.links.insert(index, entry);
                index
            }
        }
    }
}

/// Receptions are kept in the order of their numbers.
fn position(receptions: &[Reception], id: StreamId) -> Option<usize> {
    receptions.binary_search_by_key(&id, |reception| reception.id).ok()
}

impl StreamLink {
    /// Keeps a word for its column, or notes the end of a turn.
    fn take(&mut self, word: Wavelet) {
        self.words += 1;
        self.controls += u64::from(word.control);
        match turn(word) {
            Some((column, ended)) if self.turns > 0 => {
                self.heard = if ended { column.saturating_add(1) } else { 0 };
                self.turns -= 1;
            }
            Some(_) | None => self.early.entry(self.heard).or_default().push_back(word),
        }
    }
}

impl Reception {
    /// The column whose words come next in a row, where columns take turns.
    fn column(&self, row: usize) -> Option<u16> {
        let columns = self.expected.columns?;
        Some(columns.at(self.rows[row].columns.min(columns.count.saturating_sub(1))))
    }

    /// Takes a word of a row; whether the row is complete.
    fn take(&mut self, row: usize, word: Wavelet) -> Result<bool, HostError> {
        let Expected { color, columns, bytes_per_word, end } = self.expected;
        let count = columns.map_or(1, |columns| columns.count);
        let state = &mut self.rows[row];
        let column_ends = if word.control {
            matches!(end, End::Mark { .. }) && ends_row(word)
        } else {
            state.words += 1;
            state.bytes.extend_from_slice(&word.payload.to_le_bytes()[..bytes_per_word]);
            match end {
                End::Words(all) => state.words == all,
                End::Mark { most, capacity } if state.words > most => {
                    let row = self.first_row + row as u16;
                    return Err(HostError::RowTooLong { color, row, capacity });
                }
                End::Mark { .. } => false,
            }
        };
        if column_ends {
            state.columns += 1;
            state.words = 0;
        }
        Ok(state.columns >= count)
    }
}

#[cfg(test)]
mod tests {
    use dflow_ir::mesh::wavelet::{Command, Control, ControlCommand};

    use super::*;

    const LINK: LinkId = LinkId(3);

    fn color() -> Color {
        Color::new(5).expect("a color")
    }

    fn data(payloads: &[u32]) -> Vec<Wavelet> {
        payloads.iter().copied().map(Wavelet::data_word).collect()
    }

    fn control(command: Command) -> Wavelet {
        let control = Control::new(None, &[ControlCommand { command, ce_ignore: true }]);
        Wavelet { payload: control.0, control: true }
    }

    #[test]
    fn words_go_to_receptions_in_order() {
        let mut streams = Streams::default();
        streams.feed(LINK, data(&[1]).into_iter()).unwrap();
        let first = streams.expect(words(2, 2), &[LINK], 0);
        let second = streams.expect(words(4, 1), &[LINK], 0);
        streams.feed(LINK, [].into_iter()).unwrap();
        assert_eq!(streams.goals(), [Goal::Words(LINK, 3)]);
        streams.feed(LINK, data(&[0x1_0002, 3]).into_iter()).unwrap();
        assert_eq!(streams.goals(), []);
        let rows = |id, bytes: &[u8]| Finished { id, rows: vec![bytes.to_vec()] };
        assert_eq!(streams.take(), [rows(first, &[1, 0, 2, 0]), rows(second, &[3, 0, 0, 0])]);
    }

    #[test]
    fn a_mark_ends_a_row_and_turns_do_not() {
        let mut streams = Streams::default();
        streams.expect(marked(9), &[LINK], 0);
        let mut words = data(&[1]);
        words.push(control(Command::Advance));
        words.extend(data(&[2]));
        streams.feed(LINK, words.into_iter()).unwrap();
        assert_eq!(streams.goals(), [Goal::Controls(LINK, 2)]);
        streams.feed(LINK, [control(Command::Nop)].into_iter()).unwrap();
        assert_eq!(streams.goals(), []);
        assert_eq!(streams.take()[0].rows, [[1, 0, 0, 0, 2, 0, 0, 0]]);
    }

    #[test]
    fn a_row_longer_than_its_room_is_an_error() {
        let mut streams = Streams::default();
        streams.expect(marked(1), &[LINK], 4);
        let error = streams.feed(LINK, data(&[1, 2]).into_iter());
        assert_eq!(error, Err(HostError::RowTooLong { color: color(), row: 4, capacity: 1 }));
    }

    fn words(bytes_per_word: usize, count: u64) -> Expected {
        let end = End::Words(count);
        Expected { color: color(), columns: None, bytes_per_word, end }
    }

    fn marked(capacity: u64) -> Expected {
        let end = End::Mark { most: capacity, capacity };
        Expected { color: color(), columns: None, bytes_per_word: 4, end }
    }

    fn ended(column: u32, advance: bool) -> Wavelet {
        let payload = if advance { 0x015f_0000 } else { 0x019f_0000 } | column;
        Wavelet { payload, control: true }
    }

    #[test]
    fn columns_are_heard_in_turn_and_may_be_ahead() {
        let mut streams = Streams::default();
        let columns = |first| Some(Columns { first, step: 1, count: 2 });
        streams.expect(Expected { columns: columns(1), ..words(4, 1) }, &[LINK], 0);
        let asked = streams.turns();
        assert_eq!(asked, [(LINK, color(), Turn::Advance { first: 0, last: 0 })]);
        assert_eq!(streams.goals(), [Goal::Words(LINK, 2)]);
        // Column 0 was ahead, and column 1 is.
        let mut come = data(&[7]);
        come.push(ended(0, true));
        come.extend(data(&[1, 11]));
        streams.feed(LINK, come.into_iter()).unwrap();
        assert_eq!(streams.turns(), [(LINK, color(), Turn::Advance { first: 1, last: 1 })]);
        let mut come = vec![ended(1, true)];
        come.extend(data(&[2]));
        streams.feed(LINK, come.into_iter()).unwrap();
        assert_eq!(streams.goals(), []);
        assert_eq!(streams.take()[0].rows, [[1, 0, 0, 0, 2, 0, 0, 0]]);
        // What came too early is there; nothing need be asked for.
        streams.expect(Expected { columns: columns(0), ..words(4, 1) }, &[LINK], 0);
        streams.feed(LINK, [].into_iter()).unwrap();
        assert_eq!(streams.turns(), []);
        assert_eq!(streams.take()[0].rows, [[7, 0, 0, 0, 11, 0, 0, 0]]);
        // Back to the first column: the one that is heard starts the turns again.
        streams.expect(Expected { columns: columns(0), ..words(4, 1) }, &[LINK], 0);
        assert_eq!(streams.turns(), [(LINK, color(), Turn::Reset { by: 2 })]);
        assert_eq!(streams.goals(), [Goal::Words(LINK, 8)]);
        let mut come = vec![ended(2, false)];
        come.extend(data(&[8]));
        streams.feed(LINK, come.into_iter()).unwrap();
        assert_eq!(streams.turns(), [(LINK, color(), Turn::Advance { first: 0, last: 0 })]);
    }
}
