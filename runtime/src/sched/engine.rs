//! A machine's mutable part: regions, links to the host, the host's clock.
//!
//! Invariants: between runs all regions have run the same cycles, those before `frontier`; the
//! host's clock `now` is at most that, and more than `frontier - HOST_LATENCY`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dflow_ir::mesh::{Color, Coord, Wavelet};

use super::borders;
use super::exact::pace::Pace;
use super::orders;
use super::plan::Plan;
use super::record::{Event, MAIN, normalize};
use super::region::{Region, Watch};
use super::rounds;
use super::run::{LinkState, Run, lock};
use super::wheel::Wakes;
use super::{account, doing, exact, report, step};
use crate::account::Account;
use crate::config::{Config, EngineKind, Limit, Limits};
use crate::doing::Doing;
use crate::fabric::channel::Channel;
use crate::fabric::channel::Outlet;
use crate::fabric::router::{Dealing, Source};
use crate::fabric::settle::settle_pipes;
use crate::machine::{Goal, LinkId};
use crate::order::OrderPlace;
use crate::outcome::{ConsoleLine, Deadlock, RunEnd};
use crate::pe::alone;
use crate::pe::code::{Code, Pe};
use crate::pe::core::Core;
use crate::pe::main::Main;
use crate::profile::Phases;
use crate::stats::Stats;
use crate::trap::Trap;
use crate::ways::Ways;

/// PEs made ready between two looks at the clock.
const PES_PER_LOOK: usize = 1 << 10;

/// PEs, and the bytes that their state takes.
#[derive(Clone, Copy, Debug, Default)]
struct Needed {
    pes: u64,
    bytes: u64,
}

/// The mutable part, with what it needs.
pub(crate) struct Engine<C: Code> {
    pub(crate) plan: Plan,
    pub(crate) code: C,
    pub(crate) regions: Vec<Region<C>>,
    links: Vec<Mutex<LinkState>>,
    kind: EngineKind,
    threads: usize,
    /// Who works.
    pub(super) pace: Pace,
    pub(crate) now: u64,
    frontier: u64,
    /// Nothing could happen any more when the last run ended.
    is_still: bool,
    /// What a fault of ours said that ended a run: nothing can be run any more.
    broken: Option<String>,
    /// Which limit ended a run, maybe in the middle of a cycle: nothing can be run any more.
    left_off: Option<Limit>,
    /// PEs that commands of the host will use, and what their state will take.
    foreseen: Needed,
    /// They were too many: what they would have taken.
    refused: Option<Needed>,
    /// Who is told what the threads are doing.
    phases: Option<Arc<Phases>>,
    /// Time that all runs took.
    pub(crate) run_time: Duration,
}

impl<C: Code> Engine<C> {
    /// A machine at cycle 0. The plan's region side is that of the configuration, or the whole
    /// rectangle for the step engine.
    ///
    /// # Errors
    /// The time was up, or somebody outside wanted no machine any more.
    pub(crate) fn new(
        plan: Plan,
        code: C,
        config: &Config,
        limits: &Limits,
    ) -> Result<Engine<C>, Limit> {
        let wakes = match config.engine {
            EngineKind::Step => |_| Wakes::always(),
            EngineKind::Exact | EngineKind::Flow => Wakes::wheel,
        };
        let mut regions: Vec<Region<C>> =
            (0..plan.regions()).map(|id| Region::new(&plan, id, wakes)).collect();
        for region in &mut regions {
            region.flow = config.engine == EngineKind::Flow;
            if region.flow {
                region.wakes.with_looks(region.cores.len() as u32);
                // No channel ends anywhere.
                region.landings = Vec::new();
            }
            if config.engine != EngineKind::Step {
                region.ahead = plan.timing.ahead();
            }
            if config.engine == EngineKind::Exact {
                region.alone = alone::reach(config.threads);
            }
        }
        for (number, &program) in plan.program_of.iter().enumerate() {
            if number.is_multiple_of(PES_PER_LOOK)
                && let Some(limit) = limits.outside()
            {
                return Err(limit);
            }
            let program = plan.programs.get(usize::from(program));
            if program.is_some_and(|it| it.starts || !it.config.is_empty()) {
                let at = plan.coord(number);
                let (region, pe) = plan.locate(at.x.into(), at.y.into());
                let region = &mut regions[region as usize];
                region.core(&plan, &code, pe);
                region.configure(&plan, pe);
                region.wakes.core(pe, 0);
            }
        }
        for (link, room) in plan.rooms.iter().enumerate() {
            let (Some(room), info) = (*room, plan.links[link]) else { continue };
            if !info.to_mesh {
                let (region, _) = plan.locate(info.at.x.into(), info.at.y.into());
                regions[region as usize].make_room(link as u32, 0, room);
                regions[region as usize].routed |= 1 << info.color.index();
            }
        }
        let links = plan.links.iter().map(|_| Mutex::default()).collect();
        let (kind, threads) = (config.engine, config.threads);
        Ok(Engine {
            plan,
            code,
            regions,
            links,
            kind,
            threads,
            pace: Pace::default(),
            now: 0,
            frontier: 0,
            is_still: false,
            broken: None,
            left_off: None,
            foreseen: Needed::default(),
            refused: None,
            phases: config.profile.clone(),
            run_time: Duration::ZERO,
        })
    }

    /// Appends words to a source queue; false if the link does not lead into the mesh. A color
    /// without a route there is a trap.
    pub(crate) fn send(
        &mut self,
        link: LinkId,
        cycle: u64,
        words: impl IntoIterator<Item = Wavelet>,
    ) -> bool {
        let Some(&info) = self.plan.links.get(link.0 as usize) else { return false };
        let (x, y) = (info.at.x.into(), info.at.y.into());
        let (region, pe) = self.plan.locate(x, y);
        if !info.to_mesh {
            return false;
        }
        let cycle = cycle.max(self.frontier);
        let region = &mut self.regions[region as usize];
        let counted = self.plan.rooms.get(link.0 as usize).copied().flatten().is_some();
        let router = region.router(&self.plan, pe);
        let known = router.sources.iter().position(|source| source.link == link.0);
        let index = known.unwrap_or_else(|| {
            let (color, port) = (info.color.index(), info.port as u8);
            let words = VecDeque::new();
            let (dealing, outlet) = (Dealing::Unknown, Outlet::Unknown);
            let link = link.0;
            let source = Source { link, color, port, words, next: 0, counted, dealing, outlet };
            router.sources.push(source);
            router.sources.len() - 1
        });
        let source = &mut router.sources[index];
        let was_empty = source.words.is_empty();
        source.words.extend(words.into_iter().map(|word| (cycle, word)));
        if was_empty && !source.words.is_empty() {
            region.wakes.router(pe, cycle);
        }
        true
    }

    /// The host takes so many words more over a stream that leads to it, from a cycle on.
    pub(crate) fn make_room(&mut self, link: LinkId, cycle: u64, words: u64) {
        let Some(&info) = self.plan.links.get(link.0 as usize) else { return };
        let (region, pe) = self.plan.locate(info.at.x.into(), info.at.y.into());
        let cycle = cycle.max(self.frontier);
        let region = &mut self.regions[region as usize];
        region.unmerge(&self.plan, link.0, self.frontier);
        region.make_room(link.0, cycle, words);
        region.route_host_words(1 << info.color.index());
        if region.routers[pe as usize].is_some() {
            region.unblock(pe, cycle);
        }
    }

    /// Lets so many more words leave by a link from `cycle` on, or as many as come; false if the
    /// link does not lead out of the mesh.
    pub(crate) fn allow(&mut self, link: LinkId, cycle: u64, words: Option<u64>) -> bool {
        let Some(&info) = self.plan.links.get(link.0 as usize) else { return false };
        if info.to_mesh {
            return false;
        }
        let (x, y) = (info.at.x.into(), info.at.y.into());
        let (region, pe) = self.plan.locate(x, y);
        let from = cycle.max(self.frontier);
        let region = &mut self.regions[region as usize];
        region.unmerge(&self.plan, link.0, self.frontier);
        region.set_room(link.0, from, words);
        region.route_host_words(1 << info.color.index());
        if region.routers[pe as usize].is_some() {
            region.unblock(pe, from);
        }
        true
    }

    /// Counts, from now on, words of streams by these colors that come to rest. Those on their way into the mesh go
    /// through routers, where each is seen.
    pub(crate) fn watch(&mut self, color: Color, to_mesh: bool) {
        for region in &mut self.regions {
            let Watch { to_mesh: into, to_host: out, .. } = &mut region.watch;
            *(if to_mesh { into } else { out }) |= 1 << color.index();
            if to_mesh {
                region.route_host_words(1 << color.index());
            }
        }
    }

    /// Words sent by a link that have come to rest.
    pub(crate) fn rested(&self, link: LinkId) -> u64 {
        let Some(info) = self.plan.links.get(link.0 as usize) else { return 0 };
        let key = (info.at.y, info.color.index());
        let counts = self.regions.iter().filter_map(|region| region.watch.rested.get(&key));
        counts.sum()
    }

    /// Words in all source queues.
    pub(crate) fn queued(&self) -> u64 {
        let routers = self.regions.iter().flat_map(|region| region.routers.iter().flatten());
        routers.flat_map(|router| &router.sources).map(|source| source.words.len() as u64).sum()
    }

    /// Before which cycle words come that have left the mesh by now.
    fn left_before(&self) -> u64 {
        self.frontier + self.plan.timing.hop
    }

    /// Words of a link that have been counted.
    pub(crate) fn counted(&self, link: LinkId) -> u64 {
        let state = self.links.get(link.0 as usize);
        state.map_or(0, |state| lock(state).words_before(self.left_before()))
    }

    /// Takes what has reached the host.
    pub(crate) fn received(&mut self, link: LinkId) -> Vec<(u64, Wavelet)> {
        let state = self.links.get(link.0 as usize);
        state.map(|state| lock(state).take_before(self.left_before())).unwrap_or_default()
    }

    /// Runs (see [`RunEnd`]).
    pub(crate) fn run(&mut self, goals: &[Goal], limits: &Limits) -> RunEnd {
        if let Some(what) = &self.broken {
            return RunEnd::Broken(what.clone());
        }
        if let Some(limit) = self.left_off {
            return RunEnd::Limit(limit);
        }
        let begun = Instant::now();
        let end = self.run_guarded(goals, limits);
        self.run_time += begun.elapsed();
        end
    }

    fn run_guarded(&mut self, goals: &[Goal], limits: &Limits) -> RunEnd {
        let phases = self.phases.clone();
        let mut run = Run::new(&self.plan, &self.code, limits, &self.links, self.now, goals);
        run.phases = phases.as_deref();
        let trapped = self.regions.iter().any(|region| region.trap.is_some());
        let reached = run.goals_reached();
        let passed = reached.filter(|&cycle| cycle <= self.frontier);
        if trapped || passed.is_some() {
            return self.end(passed, None, self.frontier, true);
        }
        if let Some(cycle) = reached {
            // The word that was last has left, and is still to come.
            run.stop_after(cycle);
        }
        let quiet = match self.kind {
            EngineKind::Step => {
                let _entered = run.phases.map(|phases| phases.enter(0));
                let (region, frontier) = (&mut self.regions[0], self.frontier);
                run.guarded(|| step::run(&run, region, frontier)).unwrap_or(true)
            }
            EngineKind::Exact | EngineKind::Flow => {
                if !self.plan.record && !self.plan.track {
                    rounds::listen(&mut self.regions);
                }
                run_awake(&run, &mut self.regions, self.threads, &mut self.pace)
            }
        };
        if let Some(what) = run.broken() {
            self.broken = Some(what.clone());
            return RunEnd::Broken(what);
        }
        let (reached, aborted, stop) = (run.goals_reached(), run.limit(), run.stop());
        self.left_off = aborted;
        // A word that comes after the last cycle is the next run's.
        let in_time = reached.filter(|&cycle| cycle <= stop);
        let limit = aborted.or((!quiet || in_time != reached).then_some(Limit::Cycles));
        self.end(in_time, limit, stop, goals.is_empty())
    }

    /// Judges how a run ended that ran up to `stop`, or earlier for a limit or because nothing
    /// could happen any more.
    fn end(&mut self, reached: Option<u64>, limit: Option<Limit>, stop: u64, idle: bool) -> RunEnd {
        self.is_still = false;
        let trap = self.regions.iter().filter_map(|region| region.trap.as_ref());
        let trap = trap.min_by_key(|(pe, trap)| (trap.cycle, *pe)).map(|(_, trap)| trap.clone());
        if let Some(cycle) = reached
            && trap.as_ref().is_none_or(|trap| cycle <= trap.cycle)
        {
            self.advance(cycle, stop);
            return RunEnd::Reached { cycle: self.now };
        }
        if let Some(trap) = trap {
            self.advance(trap.cycle, stop);
            let sender = report::sender(&self.plan, &self.regions, &trap);
            return RunEnd::Trap(Trap { sender: sender.map(Box::new), ..trap });
        }
        let active = self.regions.iter().map(|region| region.active_until).max().unwrap_or(0);
        match limit {
            Some(Limit::Cycles) => {
                self.advance(stop, stop);
                RunEnd::Limit(Limit::Cycles)
            }
            Some(limit) => {
                self.advance(active, active);
                RunEnd::Limit(limit)
            }
            None => {
                self.advance(active, active);
                self.is_still = true;
                if idle {
                    RunEnd::Idle { cycle: self.now }
                } else {
                    RunEnd::Deadlock(Box::new(self.deadlock()))
                }
            }
        }
    }

    fn advance(&mut self, now: u64, frontier: u64) {
        self.now = self.now.max(now);
        self.frontier = self.frontier.max(frontier).max(self.now);
    }

    /// Who waits for what and which words stand where; why nothing moves, if nothing moves.
    pub(crate) fn deadlock(&self) -> Deadlock {
        let when = (self.now, self.is_still);
        report::deadlock(&self.plan, &self.code, &self.regions, when)
    }

    /// Each PE of a row will be used: whether the state of all of which that is known takes no more than so many bytes.
    /// If not, nothing is run any more.
    pub(crate) fn foresee_row(&mut self, row: u32, most: u64) -> bool {
        let first = self.plan.number(0, row);
        let programs = self.plan.program_of.iter().skip(first).take(self.plan.width as usize);
        for (number, &program) in (first as u32..).zip(programs) {
            if program != u16::MAX {
                let bytes = size_of::<Core<C>>() as u64 + self.code.bytes(Pe { number, program });
                self.foreseen.pes += 1;
                self.foreseen.bytes += bytes;
            }
        }
        let fits = self.foreseen.bytes <= most;
        if !fits {
            self.left_off = Some(Limit::Memory);
            self.refused = Some(self.foreseen);
        }
        fits
    }

    /// What the PEs are doing. Where the run has ended before they had state, that counts which they would have had.
    pub(crate) fn doing(&self) -> Doing {
        let held = || Needed { pes: self.stats().touched, bytes: self.bytes() };
        let needed = self.refused.unwrap_or_else(held);
        Doing {
            cycle: self.now,
            touched: needed.pes,
            bytes: needed.bytes,
            busy: doing::busy(&self.plan, &self.code, &self.regions),
            waiting: self.deadlock().waiters,
        }
    }

    /// Threads that its regions give work to.
    pub(crate) fn threads(&self) -> usize {
        let columns = self.plan.columns() as usize;
        let rows = (self.plan.regions() as usize).checked_div(columns).unwrap_or(0);
        match self.kind {
            EngineKind::Step => 1,
            EngineKind::Exact | EngineKind::Flow => borders::bands(self.threads, columns, rows),
        }
    }

    /// Bytes of tables with an entry per PE.
    pub(crate) fn table_bytes(&self) -> u64 {
        let regions: usize = self.regions.iter().map(Region::table_bytes).sum();
        self.plan.table_bytes() as u64 + self.code.table_bytes() + regions as u64
    }

    /// Bytes of state, estimated.
    pub(crate) fn bytes(&self) -> u64 {
        self.regions.iter().map(|region| region.bytes).sum()
    }

    /// What became of every word, and what was odd.
    pub(crate) fn account(&self) -> Account {
        account::account(&self.plan, &self.regions, &self.stats(), self.deadlock())
    }

    /// Counters so far, for the cycles that all regions have run.
    pub(crate) fn stats(&self) -> Stats {
        let mut all = Stats::default();
        for region in &self.regions {
            all.add(&region.stats);
            all.slots += region.uncounted(self.frontier).map(|(_, _, count)| count).sum::<u64>();
        }
        all
    }

    /// By which ways words went.
    pub(crate) fn ways(&self) -> Ways {
        let mut all = Ways::default();
        self.regions.iter().for_each(|region| all.add(&region.ways));
        all
    }

    /// Where times decided what came first; nothing but in `flow`.
    pub(crate) fn orders(&self) -> Vec<OrderPlace> {
        if self.kind == EngineKind::Flow {
            orders::places(&self.plan, &self.regions)
        } else {
            Vec::new()
        }
    }

    /// Takes the lines that PEs have printed, ordered by cycle and PE.
    pub(crate) fn printed(&mut self) -> Vec<ConsoleLine> {
        let lines = self.regions.iter_mut().flat_map(|region| region.printed.drain(..));
        let mut lines: Vec<ConsoleLine> = lines.collect();
        lines.sort_by_key(|line| (line.cycle, line.at.y, line.at.x));
        lines
    }

    /// What happened so far, if it was kept; ordered.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut all = Vec::new();
        for region in &self.regions {
            let Some(events) = &region.events else { continue };
            all.extend(events);
            let thread = MAIN;
            let slots = region.uncounted(self.frontier);
            all.extend(slots.map(|(pe, cycle, count)| Event::Slots { cycle, pe, thread, count }));
        }
        normalize(all)
    }

    /// Bytes of a PE's memory.
    pub(crate) fn read(&mut self, at: Coord, address: u32, bytes: u32) -> Option<Vec<u8>> {
        let (x, y) = (u32::from(at.x), u32::from(at.y));
        if x >= self.plan.width || y >= self.plan.height {
            return None;
        }
        self.plan.program(self.plan.number(x, y))?;
        let (region, pe) = self.plan.locate(x, y);
        let core = self.regions[region as usize].core(&self.plan, &self.code, pe);
        self.code.read(core.at, &mut core.state, address, bytes)
    }
}

/// Runs all regions, and rounds of theirs, up to the run's end; whether nothing can happen any more.
fn run_awake<C: Code>(
    run: &Run<'_, C>,
    regions: &mut [Region<C>],
    threads: usize,
    pace: &mut Pace,
) -> bool {
    loop {
        let quiet = advance(run, regions, threads, pace);
        let pause = run.stop();
        if !run.goes_on() || quiet {
            debug_assert!(run.broken().is_some() || regions.iter().all(Region::has_been_cut));
            return quiet;
        }
        let _entered = run.phases.map(|phases| phases.enter(0));
        let mut on = |regions: &mut [Region<C>], cycle| {
            run.pause_at(cycle);
            let quiet = advance(run, regions, threads, pace);
            run.goes_on() && !quiet
        };
        // Code runs in rounds, too.
        let done = run.guarded(|| rounds::repeat(run, regions, pause, threads, &mut on));
        if done.is_none() {
            return true;
        }
    }
}

/// Runs all regions up to the run's stop and puts words where routers see them; whether nothing can happen any
/// more. Where words were put may be what something waited for that goes by routers: then it goes on.
fn advance<C: Code>(
    run: &Run<'_, C>,
    regions: &mut [Region<C>],
    threads: usize,
    pace: &mut Pace,
) -> bool {
    loop {
        let quiet = advance_once(run, regions, threads, pace);
        let is_over = run.broken().is_some() || run.aborted();
        if !quiet || is_over || regions.iter().all(|region| region.next() == u64::MAX) {
            return quiet;
        }
    }
}

/// Likewise, once.
fn advance_once<C: Code>(
    run: &Run<'_, C>,
    regions: &mut [Region<C>],
    threads: usize,
    pace: &mut Pace,
) -> bool {
    let (plan, code) = (run.plan, run.code);
    exact::run(run, regions, threads, pace);
    let is_quiet = |regions: &[Region<C>]| regions.iter().all(|it| it.next() == u64::MAX);
    let mut quiet = is_quiet(regions);
    if run.broken().is_none() {
        let end = run.end();
        // All cycles before the end have passed, and nobody has what he waits for.
        let is_limited =
            run.stop() == end && end != u64::MAX && !run.aborted() && run.goals_reached().is_none();
        let pauses = run.stop() < end && !run.aborted() && !quiet;
        for region in regions.iter_mut() {
            if is_limited {
                region.pass_merges(plan, end);
            }
            let rests = is_limited && region.looks_for_nothing(plan, end);
            let next = if rests { u64::MAX } else { region.next() };
            region.cut_all(plan, code, (next, run.stop()), pauses);
            run.after_cycle(region);
        }
        if is_limited {
            regions.iter_mut().for_each(|region| region.drop_idle_looks(plan, code, end));
        }
        // Nobody knows before a cycle has passed without an event.
        let active = regions.iter().map(|region| region.active_until).max().unwrap_or(0);
        // Words that nobody waits for may still be under way, if the run was stopped.
        let before = std::mem::replace(&mut quiet, is_quiet(regions) && active < end);
        debug_assert!(quiet || !before || run.stop() != u64::MAX);
        if quiet {
            // What the host does next is part of cycles that have passed without an event.
            regions.iter_mut().for_each(|region| region.rest_from(active));
            regions.iter_mut().for_each(|region| region.settle_packets(plan, code));
            settle_pipes(plan, code, regions);
            regions.iter_mut().for_each(|region| region.settle_lines(plan));
            regions.iter_mut().for_each(|region| region.settle_leaps(plan));
        }
    }
    quiet
}

impl<C: Code> Region<C> {
    /// Whether no channel holds words.
    fn has_been_cut(&self) -> bool {
        self.channels.iter().all(Channel::is_empty)
    }

    /// Slots before cycle `t` that main threads counted while nobody looked: PE, first, count.
    fn uncounted(&self, t: u64) -> impl Iterator<Item = (u32, u64, u64)> {
        self.cores.iter().flatten().filter_map(move |core| match core.main {
            Main::Counting { asleep: Some(since), .. } if since < t => {
                Some((core.at.number, since, t - since))
            }
            _ => None,
        })
    }
}
