//! The machine: an image, running.
//!
//! A machine's life is a chain of types: loaded, running, stopped. Invariants: its results do
//! not depend on the engine, the code engine or the number of threads; the host acts on it only
//! through links, and what the host sends for something it saw at cycle `t` enters no earlier
//! than `t + HOST_LATENCY`.

use dflow_ir::image::Image;
use dflow_ir::mesh::{Color, Coord, Port, Wavelet};

use crate::config::{Config, Limits};
use crate::load::LoadError;
use crate::outcome::RunEnd;
use crate::stats::Stats;

/// A machine in one state of its life: [`Loaded`], [`Running`] or [`Stopped`].
pub struct Machine<S> {
    state: S,
}

/// Programs are in place, nothing has run.
pub struct Loaded;

/// It runs when told to.
pub struct Running;

/// It will not run any more; its state can be read.
pub struct Stopped;

/// A link between a router and the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostLinkInfo {
    /// The PE.
    pub at: Coord,
    /// Side of its router.
    pub port: Port,
    /// The color.
    pub color: Color,
    /// Whether the host sends.
    pub to_mesh: bool,
}

/// Index into [`Machine::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u32);

/// What a run shall reach on a link that leads to the host, counted from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// So many words, control wavelets included.
    Words(LinkId, u64),
    /// So many control wavelets.
    Controls(LinkId, u64),
}

impl Machine<Loaded> {
    /// Loads an image: checks it, compiles its programs, makes no PE state.
    pub fn load(image: &Image, config: &Config) -> Result<Machine<Loaded>, LoadError> {
        let _ = (image, config);
        unimplemented!()
    }

    /// Starts the clock.
    pub fn start(self) -> Machine<Running> {
        let Loaded = self.state;
        Machine { state: Running }
    }
}

impl Machine<Running> {
    /// The current cycle: where the last run ended.
    pub fn now(&self) -> u64 {
        unimplemented!()
    }

    /// The links to the host, by [`LinkId`]: ordered by row, column, color, port.
    pub fn links(&self) -> &[HostLinkInfo] {
        unimplemented!()
    }

    /// Appends words to the source queue of a link that leads into the mesh. They enter one per
    /// cycle, as credits allow, from `cycle` on. A link that leads out ignores nothing: it is an
    /// error of the caller and returns false.
    pub fn send(
        &mut self,
        link: LinkId,
        cycle: u64,
        words: impl IntoIterator<Item = Wavelet>,
    ) -> bool {
        let _ = (link, cycle, words.into_iter().count());
        unimplemented!()
    }

    /// Runs until all goals hold, or for other reasons (see [`RunEnd`]).
    pub fn run(&mut self, goals: &[Goal], limits: &Limits) -> RunEnd {
        let _ = (goals, limits);
        unimplemented!()
    }

    /// Takes the words that reached the host on a link until now, with their cycles.
    pub fn received(&mut self, link: LinkId) -> Vec<(u64, Wavelet)> {
        let _ = link;
        unimplemented!()
    }

    /// Counters so far.
    pub fn stats(&self) -> Stats {
        unimplemented!()
    }

    /// Ends the machine's life.
    pub fn stop(self) -> Machine<Stopped> {
        let Running = self.state;
        Machine { state: Stopped }
    }
}

impl Machine<Stopped> {
    /// Reads bytes of a PE's memory; `None` outside the rectangle or the PE's memory.
    pub fn read_memory(&self, at: Coord, address: u32, bytes: u32) -> Option<Vec<u8>> {
        let _ = (&self.state, at, address, bytes);
        unimplemented!()
    }
}
