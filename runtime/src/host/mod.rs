//! The host: copies, launches and streams over links, and the programs that ask for them.
//!
//! The protocol is `spec/memcpy.md`. Absences first: nothing here touches a PE's state; whatever
//! reaches the mesh goes through [`Mesh::send`], whatever comes back came over a link. Nothing is
//! printed, opened or read from the environment: the caller's [`HostEnv`] does that. Invariants:
//! everything is checked before a word is sent; no value that a program computes can panic the
//! host; what is done because of something seen in cycle `t` takes effect at `t + HOST_LATENCY`.

mod calls;
mod copies;
mod env;
mod error;
mod format;
mod inspect;
mod launches;
mod math;
mod named;
mod program;
mod region;
mod requests;
mod run;
mod session;
mod stream;
mod streaming;
mod symbols;
#[cfg(test)]
mod tests;
mod wire;

pub use env::{HostEnv, Input, Output};
pub use error::{Failure, HostError};
pub use program::{HostOutcome, run_program};
pub use region::{Elements, Region, Spread};
pub use requests::{Request, Ticket};
pub use run::{Aftermath, Figures, Run, RunError, run_image, run_measured};
pub use session::Session;
pub use stream::{Finished, StreamId};
pub use symbols::Symbols;

use dflow_ir::mesh::{Color, Coord, Wavelet};

use crate::config::Limits;
use crate::machine::{Goal, HostLinkInfo, LinkId, Machine, Running};
use crate::outcome::{ConsoleLine, RunEnd};
use crate::stats::Stats;

/// What the host needs of a running machine.
pub trait Mesh {
    /// The current cycle.
    fn now(&self) -> u64;

    /// The links to the host, by [`LinkId`].
    fn links(&self) -> &[HostLinkInfo];

    /// Appends words to a link into the mesh; they enter from `cycle` on. False if the link leads
    /// out of the mesh.
    fn send(&mut self, link: LinkId, cycle: u64, words: &mut dyn Iterator<Item = Wavelet>) -> bool;

    /// The host takes so many data words more over a stream that leads to it, from `cycle` on.
    fn make_room(&mut self, link: LinkId, cycle: u64, words: u64);

    /// Words that have entered the mesh over a stream.
    fn entered(&self, link: LinkId) -> u64;

    /// Limits a link to the host (see [`Machine::allow`]).
    fn allow(&mut self, link: LinkId, cycle: u64, words: Option<u64>) -> bool;

    /// Watches the streams of a color (see [`Machine::watch`]).
    fn watch(&mut self, color: Color, to_mesh: bool);

    /// Words of a watched link into the mesh that have come to rest.
    fn rested(&self, link: LinkId) -> u64;

    /// Bytes of a PE's memory; `None` outside the rectangle or the PE's memory.
    fn read(&mut self, at: Coord, address: u32, bytes: u32) -> Option<Vec<u8>>;

    /// Words that have not entered the mesh yet. Looks at every PE.
    fn queued(&self) -> u64;

    /// Each PE of a row will be used (see [`Machine::foresee_row`]).
    fn foresee_row(&mut self, row: u16, most: u64) -> bool;

    /// Runs until all goals hold.
    fn run(&mut self, goals: &[Goal], limits: &Limits) -> RunEnd;

    /// Takes the words that have come over a link.
    fn received(&mut self, link: LinkId) -> Vec<(u64, Wavelet)>;

    /// Takes the lines that PEs have printed, ordered by cycle and PE.
    fn printed(&mut self) -> Vec<ConsoleLine>;

    /// Counters so far.
    fn stats(&self) -> Stats;
}

impl Mesh for Machine<Running> {
    fn now(&self) -> u64 {
        Machine::now(self)
    }

    fn links(&self) -> &[HostLinkInfo] {
        Machine::links(self)
    }

    fn send(&mut self, link: LinkId, cycle: u64, words: &mut dyn Iterator<Item = Wavelet>) -> bool {
        Machine::send(self, link, cycle, words)
    }

    fn make_room(&mut self, link: LinkId, cycle: u64, words: u64) {
        Machine::make_room(self, link, cycle, words);
    }

    fn entered(&self, link: LinkId) -> u64 {
        Machine::entered(self, link)
    }

    fn allow(&mut self, link: LinkId, cycle: u64, words: Option<u64>) -> bool {
        Machine::allow(self, link, cycle, words)
    }

    fn watch(&mut self, color: Color, to_mesh: bool) {
        Machine::watch(self, color, to_mesh);
    }

    fn rested(&self, link: LinkId) -> u64 {
        Machine::rested(self, link)
    }

    fn read(&mut self, at: Coord, address: u32, bytes: u32) -> Option<Vec<u8>> {
        self.read_memory(at, address, bytes)
    }

    fn queued(&self) -> u64 {
        Machine::queued(self)
    }

    fn foresee_row(&mut self, row: u16, most: u64) -> bool {
        Machine::foresee_row(self, row, most)
    }

    fn run(&mut self, goals: &[Goal], limits: &Limits) -> RunEnd {
        Machine::run(self, goals, limits)
    }

    fn received(&mut self, link: LinkId) -> Vec<(u64, Wavelet)> {
        Machine::received(self, link)
    }

    fn printed(&mut self) -> Vec<ConsoleLine> {
        Machine::printed(self)
    }

    fn stats(&self) -> Stats {
        Machine::stats(self)
    }
}
