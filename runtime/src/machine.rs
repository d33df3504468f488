//! The machine: an image, running.
//!
//! A machine's life is a chain of types: loaded, running, stopped. Invariants: its results do
//! not depend on the engine, the code engine or the number of threads; the host acts on it only
//! through links, and what the host sends for something it saw at cycle `t` enters no earlier
//! than `t + HOST_LATENCY`.

use std::marker::PhantomData;

use dflow_ir::image::Image;
use dflow_ir::mesh::{Color, Coord, Port, Wavelet};

use crate::account::Account;
use crate::config::{Config, Limits};
use crate::doing::Doing;
use crate::load::{self, LoadError};
use crate::order::OrderPlace;
use crate::outcome::{ConsoleLine, Deadlock, RunEnd};
use crate::pe::exec::Programs;
use crate::sched::engine::Engine;
pub use crate::sched::record::Event;
use crate::stats::Stats;
use crate::ways::Ways;

/// A machine in one state of its life: [`Loaded`], [`Running`] or [`Stopped`].
pub struct Machine<S> {
    engine: Box<Engine<Programs>>,
    state: PhantomData<S>,
}

/// Programs are in place, nothing has run.
#[derive(Debug)]
pub enum Loaded {}

/// It runs when told to.
#[derive(Debug)]
pub enum Running {}

/// It will not run any more; its state can be read.
#[derive(Debug)]
pub enum Stopped {}

impl<S> std::fmt::Debug for Machine<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("now", &self.engine.now).finish_non_exhaustive()
    }
}

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

/// What a run shall reach on a link that leads to the host, or on a stream that leads into the
/// mesh (where words count as they enter), counted from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// So many words, control wavelets included.
    Words(LinkId, u64),
    /// So many control wavelets.
    Controls(LinkId, u64),
}

impl Machine<Loaded> {
    /// Loads an image: checks it, compiles its programs, makes no PE state.
    ///
    /// # Errors
    /// The image is not valid, or uses a feature that is not supported yet.
    pub fn load(image: &Image, config: &Config) -> Result<Machine<Loaded>, LoadError> {
        Machine::load_within(image, config, &Limits::default())
    }

    /// Loads an image as [`Machine::load`] does, unless a limit of time or somebody outside ends it: of `limits` that
    /// counts and nothing else.
    ///
    /// # Errors
    /// The image is not valid, or uses a feature that is not supported yet; or one of these limits ended it.
    pub fn load_within(
        image: &Image,
        config: &Config,
        limits: &Limits,
    ) -> Result<Machine<Loaded>, LoadError> {
        load::check(image, config)?;
        Machine::load_checked(image, config, limits)
    }

    /// Loads an image that has been checked.
    pub(crate) fn load_checked(
        image: &Image,
        config: &Config,
        limits: &Limits,
    ) -> Result<Machine<Loaded>, LoadError> {
        load::go_on(limits)?;
        let rect = image.placement.rect;
        let config = config.settled(u64::from(rect.width) * u64::from(rect.height));
        let (plan, programs) = load::load(image, &config, limits)?;
        let engine = Engine::new(plan, programs, &config, limits).map_err(LoadError::Limit)?;
        let engine = Box::new(engine);
        Ok(Machine { engine, state: PhantomData })
    }

    /// Starts the clock.
    pub fn start(self) -> Machine<Running> {
        Machine { engine: self.engine, state: PhantomData }
    }
}

impl Machine<Running> {
    /// The current cycle: where the last run ended.
    pub fn now(&self) -> u64 {
        self.engine.now
    }

    /// The links to the host, by [`LinkId`]: ordered by row, column, color, port.
    pub fn links(&self) -> &[HostLinkInfo] {
        &self.engine.plan.links
    }

    /// Appends words to the source queue of a link that leads into the mesh. They enter one per
    /// cycle, as credits allow, from `cycle` on (or from the first cycle that has not been run).
    /// False if the link does not lead into the mesh: nothing is sent.
    pub fn send(
        &mut self,
        link: LinkId,
        cycle: u64,
        words: impl IntoIterator<Item = Wavelet>,
    ) -> bool {
        self.engine.send(link, cycle, words)
    }

    /// The host takes so many data words more over a stream that leads to it, from `cycle` on.
    /// Over other links it takes whatever comes.
    pub fn make_room(&mut self, link: LinkId, cycle: u64, words: u64) {
        let bound = self.engine.plan.rooms.get(link.0 as usize).copied().flatten();
        if bound.is_some() {
            self.engine.make_room(link, cycle, words);
        }
    }

    /// Words that have come over a link to the host, or have entered the mesh over a stream.
    pub fn entered(&self, link: LinkId) -> u64 {
        self.engine.counted(link)
    }

    /// Limits a link to the host: from `cycle` on it takes so many more words, the rest wait in
    /// the mesh. `None`: as many as come, which is how links start. False if the link leads into
    /// the mesh.
    pub fn allow(&mut self, link: LinkId, cycle: u64, words: Option<u64>) -> bool {
        self.engine.allow(link, cycle, words)
    }

    /// Counts, from now on, the words of a color's links into the mesh that come to rest there,
    /// or (for `to_mesh` false) lets words that operations pass on to this color count only when
    /// they reach the host.
    pub fn watch(&mut self, color: Color, to_mesh: bool) {
        self.engine.watch(color, to_mesh);
    }

    /// Words of a watched link into the mesh that have come to rest: taken by a task, stored in
    /// memory, sent on by the program, or back at the host.
    pub fn rested(&self, link: LinkId) -> u64 {
        self.engine.rested(link)
    }

    /// Words in all source queues, which have no bound of their own. Looks at every PE.
    pub fn queued(&self) -> u64 {
        self.engine.queued()
    }

    /// Each PE of a row will be used: whether the state of all of which that is known takes no more than so many
    /// bytes. If not, the machine is not run any more. A row is told once.
    pub fn foresee_row(&mut self, row: u16, most: u64) -> bool {
        self.engine.foresee_row(row.into(), most)
    }

    /// Runs until all goals hold, or for other reasons (see [`RunEnd`]).
    pub fn run(&mut self, goals: &[Goal], limits: &Limits) -> RunEnd {
        self.engine.run(goals, limits)
    }

    /// Takes the words that reached the host on a link until now, with their cycles.
    pub fn received(&mut self, link: LinkId) -> Vec<(u64, Wavelet)> {
        self.engine.received(link)
    }

    /// Ends the machine's life.
    pub fn stop(self) -> Machine<Stopped> {
        Machine { engine: self.engine, state: PhantomData }
    }
}

impl<S> Machine<S> {
    /// Counters so far.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// By which ways words went, and why.
    pub fn ways(&self) -> Ways {
        self.engine.ways()
    }

    /// Where times decided what came first (`flow`), ordered.
    pub fn orders(&self) -> Vec<OrderPlace> {
        self.engine.orders()
    }

    /// Takes the lines that PEs have printed, ordered by cycle and PE.
    pub fn printed(&mut self) -> Vec<ConsoleLine> {
        self.engine.printed()
    }

    /// Who waits for what, and which words stand where. Empty if nothing does.
    pub fn waiting(&self) -> Deadlock {
        self.engine.deadlock()
    }

    /// Functions that were compiled to native code for it.
    pub fn compiled_functions(&self) -> usize {
        let programs = self.engine.code.loaded.iter();
        programs.map(|(_, engine)| engine.compiled()).sum()
    }

    /// Threads that work on it: no more than its parts, and fewer than were asked for where ways
    /// that cross from one thread's part to another's would cost more than threads gain.
    pub fn threads(&self) -> usize {
        self.engine.threads()
    }

    /// Time that its runs took on this computer.
    pub fn run_time(&self) -> std::time::Duration {
        self.engine.run_time
    }

    /// Bytes of the tables that every PE has, whether anything happens on it or not.
    pub fn table_bytes(&self) -> u64 {
        self.engine.table_bytes()
    }

    /// Bytes of the state of touched PEs once they have run, estimated: what the memory limit is about.
    pub fn state_bytes(&self) -> u64 {
        self.engine.bytes()
    }

    /// What it was doing when its last run ended.
    pub fn doing(&self) -> Doing {
        self.engine.doing()
    }

    /// What became of every word, and what was odd.
    pub fn account(&self) -> Account {
        self.engine.account()
    }

    /// What happened so far, if [`Config::record`] asked for it, ordered by PE and kind.
    pub fn events(&self) -> Vec<Event> {
        self.engine.events()
    }

    /// Reads bytes of a PE's memory; `None` outside the rectangle or the PE's memory.
    pub fn read_memory(&mut self, at: Coord, address: u32, bytes: u32) -> Option<Vec<u8>> {
        self.engine.read(at, address, bytes)
    }
}
