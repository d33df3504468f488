//! Streams by color: words into the mesh, words to the host.
//!
//! Invariant: in a session with finite queues a link to the host takes no more words than a
//! reception asks for, and none while the host waits for its own words to be accepted.

use dflow_ir::mesh::{Color, Coord, Rect};
use dflow_ir::ty::Ty;

use super::copies::share;
use super::session::{Session, waiting_for, whole};
use super::stream::{End, Expected, Finished, Room, StreamId, Turn};
use super::symbols::Style;
use super::wire::{self, Columns, Operation};
use super::{Elements, Failure, HostError, Mesh, Region, Spread};
use crate::config::{HOST_LATENCY, Limit, Limits};
use crate::machine::{Goal, LinkId};
use crate::outcome::{HostWait, RunEnd};

/// Words of a stream that the queues at the edge of a row hold (spec/memcpy.md, section 6).
pub(super) const EDGE_WORDS: u64 = 14;

/// So long the host waits for words that would fit the queues at the edge.
const PATIENCE: u64 = 100 * HOST_LATENCY;

impl<M: Mesh> Session<M> {
    /// Queues words for a streaming color, `data` row by row of the region. If the color's
    /// switches deal words out, a row holds the same number of elements for each of its PEs;
    /// otherwise where they go is the program's own affair. Waits until earlier commands are
    /// executed, not for its own words.
    ///
    /// # Errors
    /// The request does not fit the color, the region or the mesh; or the run fails.
    pub fn stream_in(
        &mut self,
        color: Color,
        rect: Rect,
        ty: Ty,
        data: &[u8],
    ) -> Result<(), Failure> {
        self.stream_spread(color, rect.into(), ty.into(), Spread::Each, data).map(|_| ())
    }

    /// Likewise, with a block of elements for each PE, for each row or for each column; gives the
    /// links that were used.
    ///
    /// # Errors
    /// The request does not fit the color, the region or the mesh; or the run fails.
    pub(super) fn stream_spread(
        &mut self,
        color: Color,
        region: Region,
        elements: Elements,
        spread: Spread,
        data: &[u8],
    ) -> Result<Vec<LinkId>, Failure> {
        let links = self.check_stream_in(color, region, elements, spread, data.len())?;
        let word = wire::bytes_per_word(elements)?;
        let rows = links.len();
        let used: Vec<LinkId> = links.iter().map(|&(link, _)| link).collect();
        if data.is_empty() {
            return Ok(Vec::new());
        }
        let torn = self.begin_deal(color, region, &links)?;
        // Nothing in the mesh orders words of different links.
        if self.open.is_some() {
            self.fence()?;
        }
        for (row, (link, at)) in links.into_iter().enumerate() {
            let dealt = torn || self.symbols.style(at, color) == Style::Dealt;
            let words = if dealt || spread != Spread::Each {
                let block = data.len() / spread.blocks(region);
                let mut columns = region.dealt();
                columns.first -= at.x;
                let of = |column| {
                    let index = spread.block(region, row, column);
                    &data[index * block..][..block]
                };
                if torn {
                    self.send(link, &mut wire::deal_torn(columns, of, word))?;
                } else {
                    self.send(link, &mut wire::deal(columns, of, word))?;
                }
                block * usize::from(region.columns()) / word
            } else {
                let bytes = data.len() / rows;
                self.send(link, &mut wire::words(&data[row * bytes..][..bytes], word))?;
                bytes / word
            };
            *self.streamed.entry(link).or_insert(0) += words as u64;
        }
        Ok(used)
    }

    /// Tells columns of what comes, if a stream has no switches and goes beyond column 0: they must
    /// know before it comes. Whether it is so.
    fn begin_deal(
        &mut self,
        color: Color,
        region: Region,
        links: &[(LinkId, Coord)],
    ) -> Result<bool, Failure> {
        let last = region.dealt().last();
        if last == 0 || !links.iter().any(|&(_, at)| self.symbols.style(at, color) == Style::Closed)
        {
            return Ok(false);
        }
        // The fence behind them goes to all PEs.
        self.foresee(whole(self.symbols.all()))?;
        let command = wire::deal_command(last, color);
        for commands in self.links(region, |row| row.commands, wire::COMMANDS)? {
            self.send(commands, &mut command.iter().copied())?;
        }
        self.fence()?;
        Ok(true)
    }

    /// The links of a stream that fits, and the PEs they are at.
    pub(super) fn check_stream_in(
        &self,
        color: Color,
        region: Region,
        elements: Elements,
        spread: Spread,
        bytes: usize,
    ) -> Result<Vec<(LinkId, Coord)>, HostError> {
        self.symbols.check_region(region)?;
        wire::bytes_per_word(elements)?;
        let links = self.stream_links(color, region, true)?;
        if spread == Spread::Each {
            share(bytes, links.len(), elements)?;
        } else {
            share(bytes, spread.blocks(region), elements)?;
        }
        for &(_, at) in &links {
            match self.symbols.style(at, color) {
                Style::Dealt => {
                    share(bytes, spread.blocks(region), elements)?;
                    let before = region.rect.x.checked_sub(at.x);
                    before.ok_or(HostError::NoStream { color, to_mesh: true })?;
                }
                Style::Closed if region.dealt().last() > 0 => {
                    share(bytes, spread.blocks(region), elements)?;
                }
                Style::Merged | Style::Turns | Style::Plain | Style::Closed => {}
            }
        }
        Ok(links)
    }

    /// Queues the reception of `count` elements in all, an equal share per PE of the region, row
    /// by row. They are handed over by [`Session::wait`].
    ///
    /// # Errors
    /// The request does not fit the color, the region or the mesh.
    pub fn stream_out(
        &mut self,
        color: Color,
        region: impl Into<Region>,
        elements: impl Into<Elements>,
        count: u64,
    ) -> Result<StreamId, Failure> {
        let (region, elements) = (region.into(), elements.into());
        let (links, expected) = self.check_stream_out(color, region, elements, count)?;
        Ok(self.streams.expect(expected, &links, region.rect.y))
    }

    /// The links of a reception that fits, and what it expects of them.
    pub(super) fn check_stream_out(
        &self,
        color: Color,
        region: Region,
        elements: Elements,
        count: u64,
    ) -> Result<(Vec<LinkId>, Expected), HostError> {
        self.symbols.check_region(region)?;
        let bytes_per_word = wire::bytes_per_word(elements)?;
        let links = self.stream_links(color, region, false)?;
        let has = |style| links.iter().any(|&(_, at)| self.symbols.style(at, color) == style);
        if region.columns() > 1 && has(Style::Merged) {
            return Err(HostError::SeveralColumns { color, columns: region.columns() });
        }
        let turns = has(Style::Turns);
        let parts = u64::from(region.rows()) * if turns { region.columns().into() } else { 1 };
        if !count.is_multiple_of(parts) {
            return Err(HostError::Count { elements: count, pes: parts });
        }
        let bytes = (count / parts).saturating_mul(u64::from(elements.bytes()));
        let end = End::Words(bytes / bytes_per_word as u64);
        let columns = turns.then(|| region.dealt());
        let links = links.into_iter().map(|(link, _)| link).collect();
        Ok((links, Expected { color, columns, bytes_per_word, end }))
    }

    /// Queues the reception, per row of the region, of elements until a row mark, at most
    /// `capacity` of them. They are handed over by [`Session::wait`].
    ///
    /// # Errors
    /// The request does not fit the color, the region or the mesh.
    pub fn stream_out_rows(
        &mut self,
        color: Color,
        rect: Rect,
        ty: Ty,
        capacity: u64,
    ) -> Result<StreamId, Failure> {
        let region = Region::from(rect);
        self.symbols.check_region(region)?;
        let bytes_per_word = wire::bytes_per_word(ty.into())?;
        let links = self.stream_links(color, region, false)?;
        let turns = links.iter().any(|&(_, at)| self.symbols.style(at, color) == Style::Turns);
        if turns && rect.width > 1 {
            return Err(HostError::SeveralColumns { color, columns: rect.width }.into());
        }
        let most = capacity.saturating_mul(u64::from(ty.bytes()) / bytes_per_word as u64);
        let end = End::Mark { most, capacity };
        let columns = turns.then(|| region.dealt());
        let links: Vec<LinkId> = links.into_iter().map(|(link, _)| link).collect();
        let expected = Expected { color, columns, bytes_per_word, end };
        Ok(self.streams.expect(expected, &links, rect.y))
    }

    /// Waits until all queued receptions are complete, and hands them over in the order in which
    /// they were queued.
    ///
    /// # Errors
    /// The run fails, or a row is longer than there is room for.
    pub fn wait(&mut self) -> Result<Vec<Finished>, Failure> {
        let mut opened = Vec::new();
        loop {
            self.feed()?;
            self.take_turns()?;
            let goals = self.streams.goals();
            if goals.is_empty() {
                for link in opened {
                    self.mesh.allow(link, self.ready, Some(0));
                }
                return Ok(self.streams.take());
            }
            if self.finite {
                opened = self.open();
            }
            self.run(&goals).map_err(|failure| {
                waiting_for(failure, || {
                    let place = |link: LinkId| self.link_place(link);
                    let (color, at, words) = self.streams.missing(place)?;
                    Some(HostWait::StreamOut { color, at, words })
                })
            })?;
        }
    }

    /// Lets what is asked for leave the mesh; gives the links.
    fn open(&mut self) -> Vec<LinkId> {
        let room = self.streams.room();
        for &(link, room) in &room {
            let words = match room {
                Room::Words(words) => Some(words),
                Room::Any => None,
            };
            self.mesh.allow(link, self.ready, words);
        }
        room.into_iter().map(|(link, _)| link).collect()
    }

    /// Asks columns to end their turns.
    fn take_turns(&mut self) -> Result<(), Failure> {
        for (link, color, turn) in self.streams.turns() {
            let row = self.link_place(link).y;
            let commands = self.rows.get(usize::from(row)).and_then(|row| row.commands);
            let commands = commands.ok_or(HostError::NoStream { color, to_mesh: false })?;
            let (first, last, reset) = match turn {
                Turn::Advance { first, last } => (first, last, 0),
                Turn::Reset { by } => (by, by, wire::RESET_TURNS),
            };
            let columns = Columns { first, step: 1, count: last - first + 1 };
            let (width, what) = (self.symbols.columns(), u32::from(color.index()) | reset);
            let command = wire::column_command(Operation::Turn, 0, columns, width, what);
            self.send(commands, &mut command.into_iter())?;
        }
        Ok(())
    }

    fn link_place(&self, link: LinkId) -> Coord {
        self.mesh.links().get(link.0 as usize).map(|info| info.at).unwrap_or_default()
    }

    /// Waits until the words of streams into the mesh are accepted: at rest, or few enough for the
    /// queues at the edge, once nothing moves or the host has waited long enough.
    pub(super) fn settle(&mut self, links: &[LinkId]) -> Result<(), Failure> {
        let (start, mut slice) = (self.mesh.now(), HOST_LATENCY);
        while self.under_way(links).is_some() {
            let end = (self.mesh.now() + slice).min(self.limits.cycle);
            let limits = Limits { cycle: end, ..self.limits.clone() };
            // A goal that never holds: nothing ends the slice but its last cycle.
            let never = [Goal::Words(LinkId(u32::MAX), 1)];
            let run = self.mesh.run(&never, &limits);
            self.saw(self.mesh.now());
            let left = self.under_way(links);
            let fits = left.is_none_or(|(_, words)| words <= EDGE_WORDS);
            match run {
                RunEnd::Deadlock(_) if fits => return Ok(()),
                RunEnd::Deadlock(deadlock) => {
                    let wait = left.and_then(|left| self.full(left));
                    return Err(waiting_for(Failure::Deadlock(deadlock), || wait));
                }
                RunEnd::Limit(Limit::Cycles) if end < self.limits.cycle => {}
                RunEnd::Limit(limit) => return Err(Failure::Limit(limit)),
                RunEnd::Trap(trap) => return Err(Failure::Trap(trap)),
                RunEnd::Broken(what) => return Err(Failure::Broken(what)),
                RunEnd::Reached { .. } | RunEnd::Idle { .. } => {}
            }
            slice = (2 * slice).min(PATIENCE);
            if fits && self.mesh.now() - start >= PATIENCE {
                return Ok(());
            }
        }
        Ok(())
    }

    /// What the host waits for, so many words of a link being under way.
    fn full(&self, (link, words): (LinkId, u64)) -> Option<HostWait> {
        let info = self.mesh.links().get(link.0 as usize)?;
        let (color, row, room) = (info.color, info.at.y, EDGE_WORDS);
        Some(HostWait::StreamIn { color, row, words, room })
    }

    /// The link of a stream with the most words that are not at rest, and how many they are.
    fn under_way(&self, links: &[LinkId]) -> Option<(LinkId, u64)> {
        let words = |&link: &LinkId| {
            let sent = self.streamed.get(&link).copied().unwrap_or(0);
            (link, sent.saturating_sub(self.mesh.rested(link)))
        };
        let most =
            links.iter().map(words).max_by_key(|&(link, words)| (words, std::cmp::Reverse(link)));
        most.filter(|&(_, words)| words > 0)
    }
}
