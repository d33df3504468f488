//! Streams by name: words between the host and one router, without any protocol.
//!
//! Invariants: words of a stream keep their order; a send is complete when no more of its words
//! than the stream's buffer holds stand before the mesh; the host takes no more data words than
//! the buffer holds beyond those it was asked to receive. Control wavelets are not handed over and
//! take no room.

use dflow_ir::image::{HostStream, Image};
use dflow_ir::mesh::Wavelet;

use super::session::waiting_for;
use super::stream::{End, Expected, StreamId};
use super::{Failure, HostError, Mesh, Session};
use crate::config::{Limit, Limits};
use crate::machine::{Goal, HostLinkInfo, LinkId};
use crate::outcome::HostWait;

/// Cycles that the mesh is given to come to rest after the last stream.
const REST: u64 = 10_000_000;

/// A stream and what has gone over it.
pub(super) struct Named {
    stream: HostStream,
    link: LinkId,
    /// Words sent so far.
    sent: u64,
}

impl Named {
    /// Its link.
    pub(super) fn link(&self) -> LinkId {
        self.link
    }
}

/// The streams of an image; one whose link the mesh does not have is left out.
pub(super) fn find(mesh: &impl Mesh, image: &Image) -> Vec<Named> {
    let link = |stream: &HostStream| {
        let HostStream { at, port, color, to_mesh, .. } = *stream;
        let wanted = HostLinkInfo { at, port, color, to_mesh };
        let index = mesh.links().iter().position(|link| *link == wanted)?;
        Some(LinkId(index as u32))
    };
    let named =
        |stream: &HostStream| Some(Named { stream: stream.clone(), link: link(stream)?, sent: 0 });
    image.streams.iter().filter_map(named).collect()
}

impl<M: Mesh> Session<M> {
    /// The streams that have names, in the image's order.
    pub fn named_streams(&self) -> impl Iterator<Item = &HostStream> {
        self.named.iter().map(|named| &named.stream)
    }

    /// The number of a stream, to be used in place of its name.
    ///
    /// # Errors
    /// No stream has the name.
    pub fn named_stream(&self, name: &str) -> Result<usize, HostError> {
        let found = self.named.iter().position(|named| named.stream.name == name);
        found.ok_or_else(|| HostError::UnknownStream {
            name: name.to_owned(),
            known: self.named.iter().map(|named| named.stream.name.clone()).collect(),
        })
    }

    /// Queues words for a stream into the mesh. Does not wait.
    ///
    /// # Errors
    /// There is no such stream, it leads to the host, or the memory limit is reached.
    pub fn send_words(&mut self, stream: usize, words: &[u32]) -> Result<(), Failure> {
        let link = self.named_link(stream, true)?;
        self.send(link, &mut words.iter().copied().map(Wavelet::data_word))?;
        self.named[stream].sent += words.len() as u64;
        Ok(())
    }

    /// Waits until the words of a stream have gone, except for those that its buffer holds.
    ///
    /// # Errors
    /// There is no such stream, or the run fails.
    pub fn wait_sent(&mut self, stream: usize) -> Result<(), Failure> {
        let link = self.named_link(stream, true)?;
        let Named { stream: HostStream { buffer, .. }, sent, .. } = &self.named[stream];
        match sent.saturating_sub((*buffer).into()) {
            0 => Ok(()),
            words => {
                let run = self.run(&[Goal::Words(link, words)]);
                run.map_err(|failure| waiting_for(failure, || Some(self.unsent(stream))))
            }
        }
    }

    /// That the host waits for words of a stream to enter the mesh.
    fn unsent(&self, stream: usize) -> HostWait {
        let Named { stream: HostStream { name, buffer, .. }, link, sent } = &self.named[stream];
        let words = sent.saturating_sub(self.mesh().entered(*link));
        HostWait::Send { name: name.clone(), words, buffer: *buffer }
    }

    /// That the host waits for words of a reception.
    fn unreceived(&mut self, id: StreamId) -> Option<HostWait> {
        // What has come since it began to wait is counted, too.
        self.feed().ok()?;
        let (link, words) = self.streams.missing_of(id)?;
        let named = self.named.iter().find(|named| named.link == link)?;
        Some(HostWait::Receive { name: named.stream.name.clone(), words })
    }

    /// Whether [`Session::wait_sent`] would return at once.
    pub fn is_sent(&self, stream: usize) -> bool {
        self.named.get(stream).is_none_or(|named| {
            self.mesh().entered(named.link).saturating_add(named.stream.buffer.into()) >= named.sent
        })
    }

    /// Queues the reception of so many words from a stream. They are handed over by
    /// [`Session::complete`], or by [`Session::wait`].
    ///
    /// # Errors
    /// There is no such stream, or it leads into the mesh.
    pub fn receive_words(&mut self, stream: usize, count: u64) -> Result<StreamId, Failure> {
        let link = self.named_link(stream, false)?;
        self.make_room(link, count);
        let HostStream { color, at, .. } = self.named[stream].stream;
        let (columns, end) = (None, End::Words(count));
        let expected = Expected { color, columns, bytes_per_word: size_of::<u32>(), end };
        Ok(self.streams.expect(expected, &[link], at.y))
    }

    /// Waits until a queued reception is complete and hands it over, as little-endian bytes; empty
    /// if it has been handed over before. Receptions queued before it on its links are complete
    /// then too.
    ///
    /// # Errors
    /// The run fails, or a row is longer than there is room for.
    pub fn complete(&mut self, id: StreamId) -> Result<Vec<Vec<u8>>, Failure> {
        loop {
            self.feed()?;
            if let Some(finished) = self.streams.take_one(id) {
                return Ok(finished.rows);
            }
            let goals = self.streams.goals_of(id);
            if goals.is_empty() {
                return Ok(Vec::new());
            }
            let run = self.run(&goals);
            run.map_err(|failure| waiting_for(failure, || self.unreceived(id)))?;
        }
    }

    /// Whether a queued reception is complete, without waiting.
    ///
    /// # Errors
    /// A row is longer than there is room for.
    pub fn is_complete(&mut self, id: StreamId) -> Result<bool, Failure> {
        self.feed()?;
        Ok(self.streams.goals_of(id).is_empty())
    }

    /// Waits for all words that were sent over streams, then lets the mesh come to rest: until
    /// nothing moves any more, or (if the host has waited for anything) for ten million cycles.
    /// Operations of PEs that never complete are not waited for.
    ///
    /// # Errors
    /// The run fails.
    pub fn rest(&mut self) -> Result<(), Failure> {
        for stream in 0..self.named.len() {
            if self.named[stream].stream.to_mesh {
                self.wait_sent(stream)?;
            }
        }
        let limits = self.limits().clone();
        let end = if self.cycles() == 0 { u64::MAX } else { self.mesh().now() + REST };
        if end >= limits.cycle {
            return self.run(&[]);
        }
        let bounded = Limits { cycle: end, ..limits };
        match self.run_within(&[], &bounded) {
            Err(Failure::Limit(Limit::Cycles)) => Ok(()),
            other => other,
        }
    }

    fn named_link(&self, stream: usize, to_mesh: bool) -> Result<LinkId, HostError> {
        let known = || self.named_streams().map(|stream| stream.name.clone()).collect();
        let missing = || HostError::UnknownStream { name: format!("#{stream}"), known: known() };
        let named = self.named.get(stream).ok_or_else(missing)?;
        if named.stream.to_mesh == to_mesh {
            return Ok(named.link);
        }
        Err(HostError::StreamDirection { name: named.stream.name.clone(), to_mesh: !to_mesh })
    }
}
