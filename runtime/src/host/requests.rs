//! Requests that are carried out later, in the order in which they were made.
//!
//! Invariants: a request is checked when it is made; it is carried out when somebody waits for it
//! or for a later one; requests do not overlap.

use std::collections::{BTreeMap, VecDeque};

use dflow_ir::mesh::Color;

use super::session::Session;
use super::{Elements, Failure, HostError, Mesh, Region, Spread};
use crate::config::Limit;

/// What a host can ask for without waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Elements into the memory behind an exported pointer; the array holds the blocks of
    /// `spread` one after the other, PEs row by row.
    CopyIn {
        /// The pointer.
        export: u32,
        /// PEs.
        region: Region,
        /// Its elements.
        elements: Elements,
        /// Who gets which block.
        spread: Spread,
        /// The array, little endian.
        data: Vec<u8>,
    },
    /// `count` elements per PE out of the memory behind an exported pointer.
    CopyOut {
        /// The pointer.
        export: u32,
        /// PEs.
        region: Region,
        /// Its elements.
        elements: Elements,
        /// Per PE.
        count: u64,
    },
    /// A call on all PEs, with raw argument values.
    Launch {
        /// The function.
        export: u32,
        /// As many as it has parameters.
        args: Vec<u64>,
    },
    /// Words on a color.
    StreamIn {
        /// The color.
        color: Color,
        /// PEs.
        region: Region,
        /// One per word, or two words each for 64 bits.
        elements: Elements,
        /// Who gets which block.
        spread: Spread,
        /// The array, little endian.
        data: Vec<u8>,
    },
    /// `count` elements per PE on a color.
    StreamOut {
        /// The color.
        color: Color,
        /// PEs.
        region: Region,
        /// One per word, or two words each for 64 bits.
        elements: Elements,
        /// Per PE.
        count: u64,
    },
}

/// Names a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(u64);

/// Requests that wait, and results that nobody has taken.
#[derive(Debug, Default)]
pub(super) struct Requests {
    waiting: VecDeque<(Ticket, Request)>,
    results: BTreeMap<Ticket, Vec<u8>>,
    next: u64,
    /// Bytes that both hold.
    bytes: u64,
}

impl<M: Mesh> Session<M> {
    /// Makes a request, to be carried out after those made before. Does not wait.
    ///
    /// # Errors
    /// It does not fit the symbol, the color, the region or the mesh.
    pub fn submit(&mut self, request: Request) -> Result<Ticket, Failure> {
        self.check(&request)?;
        if let Request::CopyIn { data, .. } | Request::StreamIn { data, .. } = &request {
            self.requests.bytes = self.requests.bytes.saturating_add(data.len() as u64);
        }
        if self.requests.bytes > self.limits.memory {
            return Err(Failure::Limit(Limit::Memory));
        }
        let ticket = Ticket(self.requests.next);
        self.requests.next += 1;
        self.requests.waiting.push_back((ticket, request));
        Ok(ticket)
    }

    /// Carries out the requests up to this one; gives the elements that came, PEs row by row
    /// (none for requests that bring none).
    ///
    /// # Errors
    /// The run fails, or the result has been taken before.
    pub fn wait_for(&mut self, ticket: Ticket) -> Result<Vec<u8>, Failure> {
        while self.requests.waiting.front().is_some_and(|(first, _)| *first <= ticket) {
            self.perform_next()?;
        }
        let result = self.requests.results.remove(&ticket).ok_or(HostError::NoRequest)?;
        self.requests.bytes = self.requests.bytes.saturating_sub(result.len() as u64);
        Ok(result)
    }

    /// Whether a request has been carried out.
    pub fn is_done(&self, ticket: Ticket) -> bool {
        let first = self.requests.waiting.front().map_or(self.requests.next, |(first, _)| first.0);
        ticket.0 < first
    }

    /// Carries out all requests made so far. Results stay until they are taken.
    ///
    /// # Errors
    /// The run fails.
    pub fn flush(&mut self) -> Result<(), Failure> {
        while !self.requests.waiting.is_empty() {
            self.perform_next()?;
        }
        Ok(())
    }

    fn check(&self, request: &Request) -> Result<(), HostError> {
        match request {
            Request::CopyIn { export, region, elements, spread, data } => {
                self.check_copy_in(*export, *region, *elements, *spread, data.len()).map(|_| ())
            }
            Request::CopyOut { export, region, elements, count } => {
                self.check_copy_out(*export, *region, *elements, *count).map(|_| ())
            }
            Request::Launch { export, args } => self.symbols.check_launch(*export, args),
            Request::StreamIn { color, region, elements, spread, data } => {
                let bytes = data.len();
                self.check_stream_in(*color, *region, *elements, *spread, bytes).map(|_| ())
            }
            Request::StreamOut { color, region, elements, count } => {
                let all = count.saturating_mul(region.area() as u64);
                self.check_stream_out(*color, *region, *elements, all).map(|_| ())
            }
        }
    }

    fn perform_next(&mut self) -> Result<(), Failure> {
        let Some((ticket, request)) = self.requests.waiting.pop_front() else { return Ok(()) };
        let result = self.perform(request)?;
        self.requests.bytes = self.requests.bytes.saturating_add(result.len() as u64);
        self.requests.results.insert(ticket, result);
        Ok(())
    }

    fn perform(&mut self, request: Request) -> Result<Vec<u8>, Failure> {
        match request {
            Request::CopyIn { export, region, elements, spread, data } => {
                self.requests.bytes = self.requests.bytes.saturating_sub(data.len() as u64);
                self.copy_spread(export, region, elements, spread, &data)?;
            }
            Request::CopyOut { export, region, elements, count } => {
                return self.copy_out(export, region, elements, count);
            }
            Request::Launch { export, args } => self.launch(export, &args)?,
            Request::StreamIn { color, region, elements, spread, data } => {
                self.requests.bytes = self.requests.bytes.saturating_sub(data.len() as u64);
                let links = self.stream_spread(color, region, elements, spread, &data)?;
                if self.finite {
                    self.settle(&links)?;
                }
            }
            Request::StreamOut { color, region, elements, count } => {
                let all = count.saturating_mul(region.area() as u64);
                let id = self.stream_out(color, region, elements, all)?;
                let finished = self.wait()?;
                let rows = finished.into_iter().find(|finished| finished.id == id);
                return Ok(rows.map(|finished| finished.rows.concat()).unwrap_or_default());
            }
        }
        Ok(Vec::new())
    }
}
