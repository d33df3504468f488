//! A round without times: PEs that do what is on their tapes, and words that go from one to another.
//!
//! What a PE does depends on its own state and on the words that it takes, in their order; so it is
//! of no consequence in which order PEs do it, as long as words are made before they are taken
//! (G. Kahn, "The semantics of a simple language for parallel programming", IFIP 1974, section 2).
//! Each thread does those of some regions ([`Part`]).
//!
//! Several rounds may be done together, each PE going on to the next as soon as it is through with one.
//!
//! Invariants: between rounds that are not done together each PE stands where it stood when the round was taped; a
//! round in which code of any PE differs is as if it had not been.

use std::sync::Arc;

use super::hand::{Hand, counts, lift, settle};
use super::meeting::{Mail, Meeting};
use super::outcome::Outcome;
use super::part::{NONE, Part, Process, Queue};
use super::tape::{OPERATIONS, Script, Scripts, Tape};
use super::ways::{End, Fifo, Path};
use crate::exec::Segment;
use crate::pe::code::Code;
use crate::profile::Work;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::sched::run::Run;

/// Acts of a round that are worth another thread: those of a part take longer than parts take to meet.
const WORTH: usize = if cfg!(test) { 1 } else { 1 << 12 };

/// Rounds that are done together at most, and elements of operations that a PE does in them: so many words may
/// wait for a PE.
const TOGETHER: u64 = 64;
const AHEAD: u64 = 1 << 9;

/// The PEs and their words.
pub(super) struct Network<'a, C: Code> {
    parts: Vec<Part<'a, C>>,
    paths: Vec<Path>,
}

/// Likewise, while they are found.
struct Whole<'a, C: Code> {
    plan: &'a Plan,
    processes: Vec<Process<C>>,
    fifos: Vec<Queue>,
    paths: Vec<Path>,
}

impl<'a, C: Code> Network<'a, C> {
    /// The PEs as they stand, with what each does in a round; none if words have no order. What PEs work
    /// on is put back into their cores by [`Network::end`].
    pub(super) fn new(
        plan: &'a Plan,
        code: &'a C,
        regions: &mut [Region<C>],
        tapes: Vec<Tape>,
        threads: usize,
    ) -> Option<Network<'a, C>> {
        let mut whole = Whole { plan, processes: Vec::new(), fifos: Vec::new(), paths: Vec::new() };
        let (mut process_of, mut scripts) = (Vec::new(), Scripts::default());
        for (region, tape) in tapes.into_iter().enumerate() {
            let numbers = scripts.add_all(&tape);
            let mut of = vec![NONE; numbers.len()];
            for (pe, script) in numbers.into_iter().enumerate() {
                if let Some(core) = regions[region].cores[pe].as_deref() {
                    of[pe] = whole.processes.len() as u32;
                    whole.processes.push(Process {
                        at: (region as u32, pe as u32),
                        pe: core.at,
                        counts: counts(core),
                        script,
                        done: 0,
                        next: 0,
                        elements: [0; OPERATIONS],
                        hand: Hand::empty(),
                        inputs: vec![NONE; core.inputs.len()],
                        outputs: Vec::new(),
                        queues: (0, 0),
                        task: core.task,
                        missing: 0,
                        is_ready: true,
                    });
                }
            }
            process_of.push(of);
        }
        whole.find_paths(regions, &process_of)?;
        for process in &mut whole.processes {
            let core = regions[process.at.0 as usize].cores[process.at.1 as usize].as_deref()?;
            process.hand = lift(plan, code, core);
        }
        let parts = whole.divide(code, regions.len(), scripts, threads);
        Some(Network { parts, paths: whole.paths })
    }

    /// Does rounds, `most` at most and as long as `goes_on` says that the run does; how many.
    pub(super) fn play(
        &mut self,
        run: &Run<'_, C>,
        regions: &mut [Region<C>],
        most: u64,
        goes_on: &(dyn Fn(u64) -> bool + Sync),
    ) -> u64 {
        let meeting = Meeting::new(self.parts.len());
        let mut parts = Vec::new();
        let mut rest = regions;
        for part in &mut self.parts {
            let (own, others) = rest.split_at_mut(part.regions);
            (rest, _) = (others, parts.push((part, own)));
        }
        let meeting = &meeting;
        let play = |(part, own): (&mut Part<'a, C>, &mut [Region<C>])| {
            let _entered = run.phases.map(|phases| phases.enter(part.number));
            run.at(Work::Tasks);
            // Nobody waits for a part that a bug of ours unwinds.
            let rounds = run.guarded(|| part.play(own, most, goes_on, meeting));
            if rounds.is_none() {
                meeting.leave();
            }
            rounds.unwrap_or_default()
        };
        std::thread::scope(|scope| {
            let mut parts = parts.into_iter();
            let first = parts.next();
            for part in parts {
                scope.spawn(move || play(part));
            }
            first.map_or(0, play)
        })
    }

    /// Puts back into cores and buffers what PEs work on and the words on their ways.
    pub(super) fn end(self, regions: &mut [Region<C>]) {
        let fifos = self.parts.iter().flat_map(|part| &part.fifos);
        for fifo in fifos {
            let mut words = fifo.words.words().iter();
            let path = &self.paths[fifo.path as usize];
            let mut put = |word: &mut u32| *word = words.next().copied().unwrap_or(*word);
            let put = path.each_word(regions, fifo.end as usize, &mut put);
            debug_assert!(put.is_some() && words.next().is_none());
        }
        for part in self.parts {
            for process in part.processes.into_iter().flatten() {
                let Process { at, task, hand, .. } = *process;
                if let Some(core) = regions[at.0 as usize].cores[at.1 as usize].as_deref_mut() {
                    core.task = task;
                    settle(part.code, &part.outcomes, core, hand);
                }
            }
        }
    }
}

impl<'a, C: Code> Whole<'a, C> {
    /// Finds the ways of all colors that cores send, and the words on them.
    fn find_paths(&mut self, regions: &mut [Region<C>], process_of: &[Vec<u32>]) -> Option<()> {
        let (mut on_paths, mut in_pipes) = (0, 0);
        for at in 0..self.processes.len() {
            let source = self.processes[at].at;
            let core = regions[source.0 as usize].cores[source.1 as usize].as_deref()?;
            let colors: Vec<u8> = core.outlets.iter().map(|(color, _)| color as u8).collect();
            for color in colors {
                let Some(path) = Path::find(self.plan, regions, source, color) else { continue };
                for (end, &End { at: place, queue, .. }) in path.ends.iter().enumerate() {
                    let process = process_of[place.0 as usize][place.1 as usize];
                    let input =
                        self.processes[process as usize].inputs.get_mut(usize::from(queue))?;
                    if *input != NONE {
                        // Several senders: in which order their words come is not known.
                        return None;
                    }
                    *input = self.fifos.len() as u32;
                    self.processes[at].outputs.push((color, self.fifos.len() as u32));
                    let mut words = Fifo::default();
                    path.each_word(regions, end, &mut |word| words.push(*word))?;
                    let path = self.paths.len() as u32;
                    let end = end as u32;
                    self.fifos.push(Queue { words, needed: 0, process, path, end });
                }
                on_paths += path.in_routers(regions);
                in_pipes += path.in_pipes(regions);
                self.paths.push(path);
            }
        }
        let routers = regions.iter().flat_map(|region| region.routers.iter().flatten());
        let all: usize = routers.map(|router| router.words()).sum();
        let pipes = regions.iter().flat_map(|region| &region.pipes);
        let held = pipes.filter(|pipe| !pipe.leads_abroad()).map(|pipe| pipe.held() as usize);
        (all == on_paths && held.sum::<usize>() == in_pipes).then_some(())?;
        self.sort_queues();
        Some(())
    }

    /// Has queues of a PE side by side.
    fn sort_queues(&mut self) {
        let mut order: Vec<u32> = (0..self.fifos.len() as u32).collect();
        order.sort_by_key(|&fifo| self.fifos[fifo as usize].process);
        let mut new = vec![NONE; order.len()];
        for (at, &fifo) in (0..).zip(&order) {
            new[fifo as usize] = at;
        }
        let mut fifos: Vec<Option<Queue>> =
            std::mem::take(&mut self.fifos).into_iter().map(Some).collect();
        self.fifos = order.iter().filter_map(|&fifo| fifos[fifo as usize].take()).collect();
        for process in &mut self.processes {
            let outputs = process.outputs.iter_mut().map(|(_, fifo)| fifo);
            for fifo in process.inputs.iter_mut().chain(outputs).filter(|fifo| **fifo != NONE) {
                *fifo = new[*fifo as usize];
            }
            // Those of a color in the order of PEs: what is near goes on one after the other.
            process.outputs.sort_unstable();
        }
        for (at, fifo) in (1..).zip(&self.fifos) {
            let queues = &mut self.processes[fifo.process as usize].queues;
            *queues = (if queues.1 == 0 { at - 1 } else { queues.0 }, at);
        }
    }

    /// Deals the PEs and their words to parts, one per thread at most, each with regions of its own.
    fn divide(
        &mut self,
        code: &'a C,
        regions: usize,
        scripts: Scripts,
        threads: usize,
    ) -> Vec<Part<'a, C>> {
        let (scripts, outcomes) = scripts.into_parts();
        let elements = scripts.iter().map(Script::elements).max().unwrap_or_default();
        let together = (AHEAD / elements.max(1)).clamp(1, TOGETHER);
        let scripts: Arc<[Script]> = scripts.into();
        let of = |process: &Process<C>| scripts[process.script as usize].acts.len();
        let acts: usize = self.processes.iter().map(of).sum();
        let count = threads.min(1 + acts / WORTH).clamp(1, regions.max(1));
        let mut of_region = vec![0; regions];
        self.processes.iter().for_each(|process| of_region[process.at.0 as usize] += 1);
        let mut parts = Vec::with_capacity(count);
        let (mut processes, mut fifos) = (
            std::mem::take(&mut self.processes).into_iter(),
            std::mem::take(&mut self.fifos).into_iter(),
        );
        let (all, mut first) = (processes.len(), (0, 0, 0));
        for number in 0..count {
            // Up to its share of all, but one region at least for each that is to come.
            let (from, left) = (first.0 as usize, count - number - 1);
            let mut to = from + 1;
            let mut own: usize = of_region[from..to].iter().sum();
            while to < regions - left
                && (left == 0
                    || first.1 as usize + own + of_region[to] / 2 < all * (number + 1) / count)
            {
                own += of_region[to];
                to += 1;
            }
            let processes: Vec<Process<C>> = processes.by_ref().take(own).collect();
            let queues = processes
                .iter()
                .map(|process| (process.queues.1 - process.queues.0) as usize)
                .sum();
            let fifos: Vec<Queue> = fifos.by_ref().take(queues).collect();
            let next = (to as u32, first.1 + own as u32, first.2 + queues as u32);
            parts.push(Part {
                plan: self.plan,
                code,
                number,
                first,
                together,
                regions: to - from,
                scripts: Arc::clone(&scripts),
                outcomes: outcomes.iter().cloned().map(Outcome::new).collect(),
                processes: processes.into_iter().map(Box::new).map(Some).collect(),
                fifos,
                ready: Vec::new(),
                by_words: false,
                segment: Segment::default(),
                made: Vec::new(),
                spare: Vec::new(),
                out: Vec::new(),
                kept: None,
            });
            first = next;
        }
        let queues: Vec<(u32, u32)> = parts
            .iter()
            .map(|part| (part.first.2, part.first.2 + part.fifos.len() as u32))
            .collect();
        for part in &mut parts {
            part.out = queues.iter().map(|&queues| Mail::to(queues)).collect();
            for process in part.processes.iter_mut().flatten() {
                let own = process.inputs.iter_mut().filter(|fifo| **fifo != NONE);
                own.for_each(|fifo| *fifo -= part.first.2);
                let (from, to) = process.queues;
                if from != to {
                    process.queues = (from - part.first.2, to - part.first.2);
                }
            }
        }
        parts
    }
}
