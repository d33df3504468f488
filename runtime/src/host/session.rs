//! A machine with its host: what requests have in common.
//!
//! Invariants: a request is checked whole before its first word is sent; words are counted per
//! link, so that what has come and what is still to come is always known; commands of a row are
//! executed in the order of the calls.

use std::collections::BTreeMap;

use dflow_ir::image::Image;
use dflow_ir::mesh::{Color, Coord, Port, Rect, Wavelet};

use super::named::{self, Named};
use super::requests::Requests;
use super::stream::Streams;
use super::symbols::Symbols;
use super::wire::{COMMANDS, TO_HOST, TO_MESH, reserved};
use super::{Failure, HostError, Mesh, Region};
use crate::config::{HOST_LATENCY, Limit, Limits};
use crate::machine::{Goal, HostLinkInfo, LinkId};
use crate::outcome::{ConsoleLine, Deadlock, HostWait, RunEnd, StuckPlace, Wait};

/// Cycles that a program has to come to rest after the host's last word.
const SETTLE: u64 = 10_000;

/// Cycles that a program has whose host never waits for anything, unless the limit is lower: a second or so of the
/// machine. Without it a program that never rests would never end.
const UNATTENDED: u64 = 1_000_000_000;

/// A running machine and the host that talks to it.
pub struct Session<M> {
    pub(super) mesh: M,
    pub(super) symbols: Symbols,
    pub(super) limits: Limits,
    pub(super) rows: Vec<Row>,
    pub(super) streams: Streams,
    pub(super) named: Vec<Named>,
    pub(super) requests: Requests,
    /// Whether streams end in finite queues, and wait for each other (see [`Session::finite`]).
    pub(super) finite: bool,
    /// Data words sent by streams into the mesh, by link.
    pub(super) streamed: BTreeMap<LinkId, u64>,
    /// Cycle of the last event that the host has waited for.
    pub(super) seen: u64,
    /// First cycle in which the next act takes effect.
    pub(super) ready: u64,
    /// At most so many words stand before links into the mesh.
    queued: u64,
    /// Holds all PEs with a copy in that nothing has proved to be executed: no fence, no copy out of the same PEs.
    pub(super) open: Option<Region>,
    /// The function that was launched last, unless all PEs have answered.
    pub(super) launched: Option<u32>,
}

/// Links of a row, as far as they are there, and words that have come over the last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    pub(super) commands: Option<LinkId>,
    pub(super) to_mesh: Option<LinkId>,
    pub(super) to_host: Option<LinkId>,
    pub(super) come: u64,
    /// Commands have been sent to it.
    commanded: bool,
}

impl<M: Mesh> Session<M> {
    /// The host of a machine that runs `image`: it keeps as many words of streams as come, and
    /// streams of both directions go on at the same time.
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
                commanded: false,
            })
            .collect();
        Session {
            symbols,
            limits,
            rows,
            streams: Streams::default(),
            named: named::find(&mesh, image),
            requests: Requests::default(),
            finite: false,
            streamed: BTreeMap::new(),
            seen: 0,
            ready: 0,
            queued: 0,
            open: None,
            launched: None,
            mesh,
        }
    }

    /// The host of a machine that runs `image`, with finite queues at the edge and requests one after the other
    /// (spec/memcpy.md, section 6): words to the host wait in the mesh until they are asked for.
    pub fn finite(mesh: M, image: &Image, limits: Limits) -> Session<M> {
        let mut session = Session::new(mesh, image, limits);
        session.finite = true;
        let links: Vec<HostLinkInfo> = session.mesh.links().to_vec();
        for (info, link) in links.into_iter().zip((0..).map(LinkId)) {
            let number = info.color.index();
            let named = session.named.iter().any(|named| named.link() == link);
            let is_stream = !named && ![COMMANDS, TO_HOST, TO_MESH].contains(&number);
            if is_stream {
                session.mesh.watch(info.color, info.to_mesh);
            }
            if is_stream && !info.to_mesh {
                session.mesh.allow(link, 0, Some(0));
            }
        }
        session
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

    /// Takes the lines that PEs have printed, ordered by cycle and PE.
    pub fn printed(&mut self) -> Vec<ConsoleLine> {
        self.mesh.printed()
    }

    /// The machine, the session being over.
    pub fn into_mesh(self) -> M {
        self.mesh
    }

    /// Cycle of the last event that the host has waited for.
    pub fn cycles(&self) -> u64 {
        self.seen
    }

    /// Ends the conversation: what was requested is carried out, and commands that were sent are
    /// executed; if nothing ever was, the mesh runs until nothing moves, for 1,000,000,000 cycles at most.
    ///
    /// # Errors
    /// The run fails.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.flush()?;
        if self.open.is_some() {
            self.fence()
        } else if !self.named.is_empty() {
            self.rest()
        } else if self.seen == 0 {
            let cycle = self.limits.cycle.min(UNATTENDED);
            self.run_within(&[], &Limits { cycle, ..self.limits.clone() })
        } else {
            Ok(())
        }
    }

    /// Lets the mesh come to rest, in 10,000 cycles at most; whether it still works then.
    ///
    /// # Errors
    /// A trap, or a limit other than that of cycles.
    pub fn come_to_rest(&mut self) -> Result<bool, Failure> {
        let end = self.mesh.now().saturating_add(SETTLE).min(self.limits.cycle);
        let limits = Limits { cycle: end, ..self.limits.clone() };
        match self.mesh.run(&[], &limits) {
            RunEnd::Limit(Limit::Cycles) => Ok(true),
            RunEnd::Limit(limit) => Err(Failure::Limit(limit)),
            RunEnd::Trap(trap) => Err(Failure::Trap(trap)),
            RunEnd::Broken(what) => Err(Failure::Broken(what)),
            RunEnd::Reached { .. } | RunEnd::Idle { .. } | RunEnd::Deadlock(_) => Ok(false),
        }
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

    /// Commands are to come, which every PE of their rows will run a task for: what that takes is known by now.
    pub(super) fn foresee(&mut self, region: Region) -> Result<(), Failure> {
        for number in region.row_numbers() {
            let Some(row) = self.rows.get_mut(usize::from(number)) else { continue };
            let known = std::mem::replace(&mut row.commanded, true);
            if !known && !self.mesh.foresee_row(number, self.limits.memory) {
                return Err(Failure::Limit(Limit::Memory));
            }
        }
        Ok(())
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

    pub(super) fn run(&mut self, goals: &[Goal]) -> Result<(), Failure> {
        self.run_within(goals, &self.limits.clone())
    }

    pub(super) fn run_within(&mut self, goals: &[Goal], limits: &Limits) -> Result<(), Failure> {
        match self.mesh.run(goals, limits) {
            RunEnd::Reached { cycle } | RunEnd::Idle { cycle } => {
                self.saw(cycle);
                Ok(())
            }
            RunEnd::Trap(trap) => Err(Failure::Trap(trap)),
            RunEnd::Deadlock(deadlock) => Err(Failure::Deadlock(deadlock)),
            RunEnd::Limit(limit) => Err(Failure::Limit(limit)),
            RunEnd::Broken(what) => Err(Failure::Broken(what)),
        }
    }

    /// The host has seen what happened in a cycle.
    pub(super) fn saw(&mut self, cycle: u64) {
        self.seen = self.seen.max(cycle);
        self.ready = self.seen + HOST_LATENCY;
    }

    /// Links of the rows of a region; `number` is the color to name if one is missing.
    pub(super) fn links<T>(
        &self,
        region: Region,
        choose: impl Fn(&Row) -> Option<T>,
        number: u8,
    ) -> Result<Vec<T>, HostError> {
        region
            .row_numbers()
            .map(|row| {
                let links = self.rows.get(usize::from(row)).and_then(&choose);
                links.ok_or(HostError::NoLink { row, color: reserved(number) })
            })
            .collect()
    }

    /// The link of each row of a region for a streaming color, and the PE it is at.
    pub(super) fn stream_links(
        &self,
        color: Color,
        region: Region,
        to_mesh: bool,
    ) -> Result<Vec<(LinkId, Coord)>, HostError> {
        let links = self.mesh.links();
        let found = |row| {
            row_links(links, row).find(|(_, link)| link.color == color && link.to_mesh == to_mesh)
        };
        region
            .row_numbers()
            .map(|row| {
                let link = found(row).map(|(id, link)| (id, link.at));
                link.ok_or(HostError::NoStream { color, to_mesh })
            })
            .collect()
    }
}

/// A failure with what the host waits for, if it is that nothing moves.
pub(super) fn waiting_for(failure: Failure, wait: impl FnOnce() -> Option<HostWait>) -> Failure {
    match failure {
        Failure::Deadlock(mut deadlock) => {
            deadlock.host_wait = wait();
            if let Some(HostWait::Launch { .. }) = deadlock.host_wait {
                forget_commands(&mut deadlock);
            }
            Failure::Deadlock(deadlock)
        }
        other => other,
    }
}

/// That commands wait on PEs that have not answered the one before goes without saying.
fn forget_commands(deadlock: &mut Deadlock) {
    let commands = reserved(COMMANDS);
    let waits = |wait: &Wait| *wait == Wait::Blocked { color: Some(commands) };
    deadlock.waiters.retain(|waiter| !waits(&waiter.wait));
    deadlock.stuck.retain(|stuck| stuck.color != commands || stuck.place != StuckPlace::Input);
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

/// A region as large as a rectangle that has been checked.
pub(super) fn whole(rect: Rect) -> Region {
    Region::from(rect)
}
