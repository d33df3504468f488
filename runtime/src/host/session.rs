//! A machine with its host: copies, launches and streams.
//!
//! Invariants: a request is checked whole before its first word is sent; words are counted per
//! link, so that what has come and what is still to come is always known; commands of a row are
//! executed in the order of the calls.

use dflow_ir::image::Image;
use dflow_ir::mesh::{Color, Coord, Port, Rect, Wavelet};
use dflow_ir::ty::Ty;

use super::named::{self, Named};
use super::stream::{Finished, StreamId, Streams};
use super::symbols::{Style, Symbols};
use super::wire::{self, COMMANDS, Operation, TO_HOST, TO_MESH, reserved};
use super::{Failure, HostError, Mesh};
use crate::config::{HOST_LATENCY, Limit, Limits};
use crate::machine::{Goal, HostLinkInfo, LinkId};
use crate::outcome::RunEnd;

/// Most 16-bit words of a copy per PE: one more would mean "without end" to a descriptor.
const MAX_EXTENT: u64 = dflow_ir::dsd::INFINITE as u64 - 1;

/// A running machine and the host that talks to it.
pub struct Session<M> {
    mesh: M,
    symbols: Symbols,
    limits: Limits,
    rows: Vec<Row>,
    pub(super) streams: Streams,
    pub(super) named: Vec<Named>,
    /// Cycle of the last event that the host has waited for.
    seen: u64,
    /// First cycle in which the next act takes effect.
    ready: u64,
    /// At most so many words stand before links into the mesh.
    queued: u64,
    /// Commands have been sent that no fence or copy has followed.
    unfenced: bool,
}

/// Links of a row, as far as they are there, and words that have come over the last.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    commands: Option<LinkId>,
    to_mesh: Option<LinkId>,
    to_host: Option<LinkId>,
    come: u64,
}

impl<M: Mesh> Session<M> {
    /// The host of a machine that runs `image`.
    pub fn new(mesh: M, image: &Image, limits: Limits) -> Session<M> {
        let symbols = Symbols::new(image);
        let find =
            |row: u16, number: u8, to_mesh: bool| west_link(&mesh, row, reserved(number), to_mesh);
        let rows = (0..symbols.rows())
            .map(|row| Row {
                commands: find(row, COMMANDS, true),
                to_mesh: find(row, TO_MESH, true),
                to_host: find(row, TO_HOST, false),
                come: 0,
            })
            .collect();
        Session {
            symbols,
            limits,
            rows,
            streams: Streams::default(),
            named: named::find(&mesh, image),
            seen: 0,
            ready: 0,
            queued: 0,
            unfenced: false,
            mesh,
        }
    }

    /// What can be named.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The limits of runs.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The machine.
    pub fn mesh(&self) -> &M {
        &self.mesh
    }

    /// The machine, the session being over.
    pub fn into_mesh(self) -> M {
        self.mesh
    }

    /// Cycle of the last event that the host has waited for.
    pub fn cycles(&self) -> u64 {
        self.seen
    }

    /// Copies elements into the memory behind an exported pointer: `data` holds the same number
    /// of elements for each PE of the region, row by row. Does not wait.
    ///
    /// # Errors
    /// The request does not fit the symbol, the region or the mesh.
    pub fn copy_in(&mut self, export: u32, rect: Rect, ty: Ty, data: &[u8]) -> Result<(), Failure> {
        self.symbols.check_copy(export, rect, ty, true)?;
        let word = wire::bytes_per_word(ty)?;
        let per_pe = share(data.len(), rect.area(), ty)?;
        check_extent(per_pe as u64 / word as u64, per_pe, ty)?;
        let links = self.links(rect, |row| row.commands.zip(row.to_mesh), TO_MESH)?;
        if per_pe == 0 {
            return Ok(());
        }
        let operation = if word == 2 { Operation::CopyIn16 } else { Operation::CopyIn32 };
        let args = [columns(rect), (per_pe / word) as u32];
        let row_bytes = per_pe * usize::from(rect.width);
        for ((commands, to_mesh), row) in links.into_iter().zip(data.chunks_exact(row_bytes)) {
            self.send(commands, &mut wire::command(operation, export, &args).into_iter())?;
            self.send(to_mesh, &mut wire::deal(rect.x, row, per_pe, word))?;
        }
        self.unfenced = true;
        Ok(())
    }

    /// Copies `count` elements per PE of a region out of the memory behind an exported pointer,
    /// row by row. Waits for them.
    ///
    /// # Errors
    /// The request does not fit the symbol, the region or the mesh; or the run fails.
    pub fn copy_out(
        &mut self,
        export: u32,
        rect: Rect,
        ty: Ty,
        count: u64,
    ) -> Result<Vec<u8>, Failure> {
        self.symbols.check_copy(export, rect, ty, false)?;
        let halves = count.saturating_mul(u64::from(ty.bytes() / 2));
        if halves > MAX_EXTENT {
            return Err(HostError::TooMany { elements: count }.into());
        }
        let links = self.links(rect, |row| row.commands.zip(row.to_host), TO_HOST)?;
        if halves == 0 {
            return Ok(Vec::new());
        }
        for (commands, _) in links {
            let args = [columns(rect), halves as u32];
            self.send(commands, &mut wire::command(Operation::CopyOut, export, &args).into_iter())?;
        }
        self.unfenced = false;
        self.gather(rect, halves as usize)
    }

    /// Calls an exported function on all PEs, with raw argument values, and waits until all have
    /// answered.
    ///
    /// # Errors
    /// The request does not fit the symbol or the mesh; or the run fails.
    pub fn launch(&mut self, export: u32, args: &[u64]) -> Result<(), Failure> {
        self.symbols.check_launch(export, args.len())?;
        let all = self.symbols.all();
        let links = self.links(all, |row| row.commands.zip(row.to_host), COMMANDS)?;
        let words: Vec<u32> = args.iter().map(|&arg| arg as u32).collect();
        for (commands, _) in links {
            self.send(commands, &mut wire::command(Operation::Launch, export, &words).into_iter())?;
        }
        self.fence()
    }

    /// Waits until every PE has executed all commands so far.
    ///
    /// # Errors
    /// The mesh has no links to the host; or the run fails.
    pub fn fence(&mut self) -> Result<(), Failure> {
        let all = self.symbols.all();
        let links = self.links(all, |row| row.commands.zip(row.to_host), COMMANDS)?;
        for (commands, _) in links {
            self.send(commands, &mut wire::command(Operation::Fence, 0, &[]).into_iter())?;
        }
        self.unfenced = false;
        self.gather(all, 1).map(|_| ())
    }

    /// Queues words for a streaming color, `data` row by row of the region. If the color's
    /// switches deal words out, a row holds the same number of elements for each of its PEs;
    /// otherwise where they go is the program's own affair. Does not wait.
    ///
    /// # Errors
    /// The request does not fit the color, the region or the mesh.
    pub fn stream_in(
        &mut self,
        color: Color,
        rect: Rect,
        ty: Ty,
        data: &[u8],
    ) -> Result<(), Failure> {
        self.symbols.check_region(rect)?;
        let word = wire::bytes_per_word(ty)?;
        let links = self.stream_links(color, rect, true)?;
        let row_bytes = share(data.len(), links.len(), ty)?;
        let columns = usize::from(rect.width);
        if row_bytes == 0 {
            return Ok(());
        }
        let mut first = Vec::with_capacity(links.len());
        for &(_, at) in &links {
            first.push(match self.symbols.style(at, color) {
                Style::Dealt => Some(self.first_column(rect, at, row_bytes, color, ty)?),
                Style::Merged | Style::Plain => None,
            });
        }
        for (((link, _), row), first) in
            links.into_iter().zip(data.chunks_exact(row_bytes)).zip(first)
        {
            match first {
                Some(first) => {
                    self.send(link, &mut wire::deal(first, row, row_bytes / columns, word))?;
                }
                None => self.send(link, &mut wire::words(row, word))?,
            }
        }
        Ok(())
    }

    /// Queues the reception of `count` elements in all, an equal share per PE of the region, row
    /// by row. They are handed over by [`Session::wait`].
    ///
    /// # Errors
    /// The request does not fit the color, the region or the mesh.
    pub fn stream_out(
        &mut self,
        color: Color,
        rect: Rect,
        ty: Ty,
        count: u64,
    ) -> Result<StreamId, Failure> {
        self.symbols.check_region(rect)?;
        let word = wire::bytes_per_word(ty)?;
        let links = self.stream_links(color, rect, false)?;
        let merged = |&(_, at): &(LinkId, Coord)| self.symbols.style(at, color) == Style::Merged;
        if rect.width > 1 && links.iter().any(merged) {
            return Err(HostError::SeveralColumns { color, columns: rect.width }.into());
        }
        let rows = u64::from(rect.height);
        if !count.is_multiple_of(rows) {
            return Err(HostError::Count { elements: count, pes: rows }.into());
        }
        let per_row = count / rows;
        let words = per_row.saturating_mul(u64::from(ty.bytes()) / word as u64);
        let links: Vec<LinkId> = links.into_iter().map(|(link, _)| link).collect();
        Ok(self.streams.expect_words(color, &links, rect.y, word, words))
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
        self.symbols.check_region(rect)?;
        let word = wire::bytes_per_word(ty)?;
        let links = self.stream_links(color, rect, false)?;
        let links: Vec<LinkId> = links.into_iter().map(|(link, _)| link).collect();
        let words = capacity.saturating_mul(u64::from(ty.bytes()) / word as u64);
        Ok(self.streams.expect_rows(color, &links, rect.y, word, words, capacity))
    }

    /// Waits until all queued receptions are complete, and hands them over in the order in which
    /// they were queued.
    ///
    /// # Errors
    /// The run fails, or a row is longer than there is room for.
    pub fn wait(&mut self) -> Result<Vec<Finished>, Failure> {
        loop {
            self.feed()?;
            let goals = self.streams.goals();
            if goals.is_empty() {
                return Ok(self.streams.take());
            }
            self.run(&goals)?;
        }
    }

    /// Hands words that have come to the receptions that wait for them.
    pub(super) fn feed(&mut self) -> Result<(), HostError> {
        for link in self.streams.open_links() {
            let words = self.mesh.received(link);
            self.streams.feed(link, words.into_iter().map(|(_, word)| word))?;
        }
        Ok(())
    }

    /// The host takes so many data words more over a stream.
    pub(super) fn make_room(&mut self, link: LinkId, words: u64) {
        self.mesh.make_room(link, self.ready, words);
    }

    /// Ends the conversation: commands that were sent are executed; without any, the mesh runs
    /// until nothing moves.
    ///
    /// # Errors
    /// The run fails.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if self.unfenced {
            self.fence()
        } else if !self.named.is_empty() {
            self.rest()
        } else if self.seen == 0 {
            self.run(&[])
        } else {
            Ok(())
        }
    }

    /// The first column of a region that a row's words are dealt to, counted from the link.
    fn first_column(
        &self,
        rect: Rect,
        at: Coord,
        row_bytes: usize,
        color: Color,
        ty: Ty,
    ) -> Result<u16, HostError> {
        share(row_bytes, rect.width.into(), ty)?;
        rect.x.checked_sub(at.x).ok_or(HostError::NoStream { color, to_mesh: true })
    }

    /// Queues words. A host that never waits may not queue more than the memory limit allows.
    pub(super) fn send(
        &mut self,
        link: LinkId,
        words: &mut dyn Iterator<Item = Wavelet>,
    ) -> Result<(), Failure> {
        let mut count = 0;
        let sent = self.mesh.send(link, self.ready, &mut words.inspect(|_| count += 1));
        debug_assert!(sent, "links into the mesh were chosen");
        self.queued += count;
        let most = self.limits.memory / size_of::<(u64, Wavelet)>() as u64;
        if self.queued > most {
            // Some of them may have gone since.
            self.queued = self.mesh.queued();
        }
        if self.queued > most { Err(Failure::Limit(Limit::Memory)) } else { Ok(()) }
    }

    pub(super) fn run(&mut self, goals: &[Goal]) -> Result<(), Failure> {
        self.run_within(goals, &self.limits.clone())
    }

    pub(super) fn run_within(&mut self, goals: &[Goal], limits: &Limits) -> Result<(), Failure> {
        match self.mesh.run(goals, limits) {
            RunEnd::Reached { cycle } | RunEnd::Idle { cycle } => {
                self.seen = self.seen.max(cycle);
                self.ready = self.seen + HOST_LATENCY;
                Ok(())
            }
            RunEnd::Trap(trap) => Err(Failure::Trap(trap)),
            RunEnd::Deadlock(deadlock) => Err(Failure::Deadlock(deadlock)),
            RunEnd::Limit(limit) => Err(Failure::Limit(limit)),
        }
    }

    /// Waits for so many 16-bit words of every PE of a region on the color to the host, and sorts
    /// them by row and column.
    fn gather(&mut self, rect: Rect, per_pe: usize) -> Result<Vec<u8>, Failure> {
        let links = self.links(rect, |row| row.to_host, TO_HOST)?;
        let per_row = per_pe as u64 * u64::from(rect.width);
        let mut goals = Vec::with_capacity(links.len());
        for (row, &link) in self.rows[rows_of(rect)].iter_mut().zip(&links) {
            row.come += per_row;
            goals.push(Goal::Words(link, row.come));
        }
        self.run(&goals)?;
        let mut bytes = vec![0; 2 * per_pe * rect.area()];
        let rows = bytes.chunks_exact_mut(2 * per_pe * usize::from(rect.width));
        for ((row, &link), number) in rows.zip(&links).zip(rect.y..) {
            let words = self.mesh.received(link);
            sort_row(row, words, rect.x, per_pe)
                .ok_or(HostError::Unexpected { row: number, color: reserved(TO_HOST) })?;
        }
        Ok(bytes)
    }

    /// Links of the rows of a region; `number` is the color to name if one is missing.
    fn links<T>(
        &self,
        rect: Rect,
        choose: impl Fn(&Row) -> Option<T>,
        number: u8,
    ) -> Result<Vec<T>, HostError> {
        let rows = self.rows[rows_of(rect)].iter().zip(rect.y..);
        rows.map(|(links, row)| {
            choose(links).ok_or(HostError::NoLink { row, color: reserved(number) })
        })
        .collect()
    }

    /// The link of each row of a region for a streaming color, and the PE it is at.
    fn stream_links(
        &self,
        color: Color,
        rect: Rect,
        to_mesh: bool,
    ) -> Result<Vec<(LinkId, Coord)>, HostError> {
        let links = self.mesh.links();
        let found = |row| {
            row_links(links, row).find(|(_, link)| link.color == color && link.to_mesh == to_mesh)
        };
        (rect.y..rect.y + rect.height)
            .map(|row| {
                let link = found(row).map(|(id, link)| (id, link.at));
                link.ok_or(HostError::NoStream { color, to_mesh })
            })
            .collect()
    }
}

/// The links of a row; all links are ordered by row.
fn row_links(links: &[HostLinkInfo], row: u16) -> impl Iterator<Item = (LinkId, &HostLinkInfo)> {
    let start = links.partition_point(|link| link.at.y < row);
    let numbered = (start as u32..).map(LinkId).zip(&links[start..]);
    numbered.take_while(move |(_, link)| link.at.y == row)
}

/// The link of a color on the west side of a row.
fn west_link(mesh: &impl Mesh, row: u16, color: Color, to_mesh: bool) -> Option<LinkId> {
    let at = Coord { x: 0, y: row };
    let wanted = HostLinkInfo { at, port: Port::West, color, to_mesh };
    row_links(mesh.links(), row).find(|(_, link)| **link == wanted).map(|(id, _)| id)
}

fn rows_of(rect: Rect) -> std::ops::Range<usize> {
    usize::from(rect.y)..usize::from(rect.y) + usize::from(rect.height)
}

fn columns(rect: Rect) -> u32 {
    wire::columns(rect.x, rect.x + (rect.width - 1))
}

/// Bytes per PE when `bytes` are shared equally.
fn share(bytes: usize, pes: usize, ty: Ty) -> Result<usize, HostError> {
    let size = ty.bytes() as usize;
    if bytes.is_multiple_of(size * pes) {
        Ok(bytes / pes)
    } else {
        Err(HostError::Count { elements: (bytes / size) as u64, pes: pes as u64 })
    }
}

fn check_extent(words: u64, bytes: usize, ty: Ty) -> Result<(), HostError> {
    if words > MAX_EXTENT {
        return Err(HostError::TooMany { elements: bytes as u64 / u64::from(ty.bytes()) });
    }
    Ok(())
}

/// Puts the words of a row at their columns' places; `None` if a word is not for any of them.
fn sort_row(row: &mut [u8], words: Vec<(u64, Wavelet)>, first: u16, per_pe: usize) -> Option<()> {
    let mut come = vec![0; row.len() / (2 * per_pe)];
    for (_, word) in words {
        let column = usize::from(word.index().checked_sub(first)?);
        let index = come.get_mut(column).filter(|index| **index < per_pe && !word.control)?;
        let at = 2 * (column * per_pe + *index);
        row.get_mut(at..at + 2)?.copy_from_slice(&word.data().to_le_bytes());
        *index += 1;
    }
    Some(())
}
