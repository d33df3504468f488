//! Words to come over streaming colors.
//!
//! Invariants: words of a link go to its receptions in the order in which they were queued;
//! words that nobody waits for yet are kept. A reception ends with its last word, or with the
//! mark of its row.

use std::collections::VecDeque;

use dflow_ir::mesh::{Color, Wavelet};

use super::HostError;
use super::wire::ends_row;
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
    /// Per row of the region: its elements, little endian.
    pub rows: Vec<Vec<u8>>,
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
    /// Words that nobody waits for yet.
    early: VecDeque<Wavelet>,
    /// Reception and row within it, in order.
    queue: VecDeque<(StreamId, usize)>,
}

#[derive(Debug)]
struct Reception {
    id: StreamId,
    color: Color,
    first_row: u16,
    bytes_per_word: usize,
    rows: Vec<RowState>,
    end: End,
}

#[derive(Debug, Default)]
struct RowState {
    bytes: Vec<u8>,
    words: u64,
    done: bool,
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// After so many words.
    Words(u64),
    /// At a mark, after at most so many words (`capacity` elements).
    Mark { most: u64, capacity: u64 },
}

impl Streams {
    /// Queues `words` data words per row.
    pub(super) fn expect_words(
        &mut self,
        color: Color,
        links: &[LinkId],
        first_row: u16,
        bytes_per_word: usize,
        words: u64,
    ) -> StreamId {
        self.expect(color, links, first_row, bytes_per_word, End::Words(words))
    }

    /// Queues data words until a mark, at most `most`, per row.
    pub(super) fn expect_rows(
        &mut self,
        color: Color,
        links: &[LinkId],
        first_row: u16,
        bytes_per_word: usize,
        most: u64,
        capacity: u64,
    ) -> StreamId {
        self.expect(color, links, first_row, bytes_per_word, End::Mark { most, capacity })
    }

    fn expect(
        &mut self,
        color: Color,
        links: &[LinkId],
        first_row: u16,
        bytes_per_word: usize,
        end: End,
    ) -> StreamId {
        let id = StreamId(self.next);
        self.next += 1;
        let done = matches!(end, End::Words(0));
        let rows = links.iter().map(|_| RowState { done, ..RowState::default() }).collect();
        self.receptions.push(Reception { id, color, first_row, bytes_per_word, rows, end });
        if !done {
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
        for word in words {
            link.words += 1;
            link.controls += u64::from(word.control);
            link.early.push_back(word);
        }
        while let Some(&(id, row)) = link.queue.front() {
            let Some(word) = link.early.pop_front() else { break };
            let reception = position(receptions, id).and_then(|index| receptions.get_mut(index));
            if reception.map_or(Ok(true), |reception| reception.take(row, word))? {
                link.queue.pop_front();
            }
        }
        Ok(())
    }

    /// What must at least come before the open receptions can be complete, all words that have
    /// come being fed.
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
            let (mut words, mut marks) = (0, 0);
            for &(id, row) in link.queue.iter().take(end) {
                let index = position(&self.receptions, id);
                let Some(reception) = index.and_then(|index| self.receptions.get(index)) else {
                    continue;
                };
                match reception.end {
                    End::Words(all) => words += all.saturating_sub(reception.rows[row].words),
                    End::Mark { .. } => marks += 1,
                }
            }
            if words > 0 {
                goals.push(Goal::Words(link.link, link.words + words));
            }
            if marks > 0 {
                goals.push(Goal::Controls(link.link, link.controls + marks));
            }
        }
        goals
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
        if !self.receptions[index].rows.iter().all(|row| row.done) {
            return None;
        }
        let Reception { id, rows, .. } = self.receptions.remove(index);
        Some(Finished { id, rows: rows.into_iter().map(|row| row.bytes).collect() })
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
                let (early, queue) = (VecDeque::new(), VecDeque::new());
                let entry = StreamLink { link, words: 0, controls: 0, early, queue };
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

impl Reception {
    /// Takes a word of a row; whether the row is complete.
    fn take(&mut self, row: usize, word: Wavelet) -> Result<bool, HostError> {
        let state = &mut self.rows[row];
        if word.control {
            state.done = matches!(self.end, End::Mark { .. }) && ends_row(word);
            return Ok(state.done);
        }
        state.words += 1;
        state.bytes.extend_from_slice(&word.payload.to_le_bytes()[..self.bytes_per_word]);
        match self.end {
            End::Words(all) => state.done = state.words == all,
            End::Mark { most, capacity } if state.words > most => {
                let row = self.first_row + row as u16;
                return Err(HostError::RowTooLong { color: self.color, row, capacity });
            }
            End::Mark { .. } => {}
        }
        Ok(state.done)
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
        let first = streams.expect_words(color(), &[LINK], 0, 2, 2);
        let second = streams.expect_words(color(), &[LINK], 0, 4, 1);
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
        streams.expect_rows(color(), &[LINK], 0, 4, 9, 9);
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
        streams.expect_rows(color(), &[LINK], 4, 4, 1, 1);
        let error = streams.feed(LINK, data(&[1, 2]).into_iter());
        assert_eq!(error, Err(HostError::RowTooLong { color: color(), row: 4, capacity: 1 }));
    }
}
