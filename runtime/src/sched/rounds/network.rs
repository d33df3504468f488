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

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::hand::{Hand, counts, lift, settle};
use super::meeting::{Mail, Meeting};
use super::outcome::Outcome;
use super::part::{NONE, Part, Process, Queue};
use super::switched::{Batch, Kind, Known, Switches, Token, Turns};
use super::tape::{OPERATIONS, Script, Scripts, Tape};
use super::ways::{End, Fifo, Path};
use crate::exec::Segment;
use crate::fabric::channel::Channel;
use crate::pe::code::Code;
use crate::pe::core::bits;
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

/// What a PE sends in a round, with colors.
type Sends = Rc<[(u8, Batch)]>;

/// The PEs and their words, while they are found.
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
                        in_turn: Vec::new(),
                        queues: (0, 0),
                        task: core.task,
                        missing: 0,
                        is_ready: true,
                    });
                }
            }
            process_of.push(of);
        }
        for process in &mut whole.processes {
            let core = regions[process.at.0 as usize].cores[process.at.1 as usize].as_deref()?;
            process.hand = lift(plan, code, core);
        }
        whole.find_ways(regions, &process_of, &scripts)?;
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
            let Some(path) = self.paths.get(fifo.path as usize) else {
                debug_assert_eq!(
                    words.len(),
                    0,
                    "all that has been sent has come where it is taken"
                );
                continue;
            };
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
    fn find_ways(
        &mut self,
        regions: &mut [Region<C>],
        process_of: &[Vec<u32>],
        scripts: &Scripts,
    ) -> Option<()> {
        let turns = scripts.turn_switches();
        let sends = if turns { self.sends(regions, scripts)? } else { Vec::new() };
        let switched = self.find_switched(regions, &sends);
        self.add_paths(regions, process_of, switched)?;
        if is_about_to_leave(regions, switched) {
            return None;
        }
        for color in bits(switched.into()) {
            self.add_switched(regions, process_of, &sends, color as u8)?;
        }
        self.sort_queues();
        Some(())
    }

    /// The colors, as bits, whose switches turn, or whose words have no way as switches stand, where it is known what
    /// PEs send.
    fn find_switched(&self, regions: &mut [Region<C>], sends: &[Sends]) -> u32 {
        let all = sends.iter().flat_map(|sends| sends.iter());
        let turning = all.filter(|(_, batch)| batch.kind != Kind::Words);
        let mut switched = turning.fold(0_u32, |colors, (color, _)| colors | 1 << color);
        for (process, sends) in self.processes.iter().zip(sends) {
            for &(color, _) in &**sends {
                let is_known = switched >> color & 1 != 0;
                if !is_known && Path::find(self.plan, regions, process.at, color).is_none() {
                    switched |= 1 << color;
                }
            }
        }
        switched
    }

    /// What each PE sends in a round: what others send that do the same, where it works on nothing before.
    fn sends(&self, regions: &[Region<C>], scripts: &Scripts) -> Option<Vec<Sends>> {
        let mut known: FxHashMap<(u32, u16), Sends> = FxHashMap::default();
        let mut sends = Vec::with_capacity(self.processes.len());
        for Process { at, pe, script, hand, .. } in &self.processes {
            let same = (*script, pe.program);
            if hand.is_empty()
                && let Some(others) = known.get(&same)
            {
                sends.push(Rc::clone(others));
                continue;
            }
            let core = regions[at.0 as usize].cores[at.1 as usize].as_deref()?;
            let of = Known {
                program: &self.plan.programs[usize::from(pe.program)],
                bound: &core.bound,
                script: scripts.get(*script),
                outcomes: scripts.outcomes(),
            };
            let own: Sends = of.sends(hand)?.into();
            if hand.is_empty() {
                known.insert(same, Rc::clone(&own));
            }
            sends.push(own);
        }
        Some(sends)
    }

    /// Adds the ways of all colors that cores send but for some, with the words on them; none if these are not all words
    /// there are.
    fn add_paths(
        &mut self,
        regions: &mut [Region<C>],
        process_of: &[Vec<u32>],
        but: u32,
    ) -> Option<()> {
        let (mut on_paths, mut in_channels, mut in_pipes) = (0, 0, 0);
        for at in 0..self.processes.len() {
            let source = self.processes[at].at;
            let core = regions[source.0 as usize].cores[source.1 as usize].as_deref()?;
            let colors = core.outlets.iter().map(|(color, _)| color as u8);
            let colors: Vec<u8> = colors.filter(|color| but >> color & 1 == 0).collect();
            for color in colors {
                let Some(path) = Path::find(self.plan, regions, source, color) else { continue };
                for (end, &End { at: place, queue, .. }) in path.ends.iter().enumerate() {
                    let mut words = Fifo::default();
                    path.each_word(regions, end, &mut |word| words.push(*word))?;
                    let process = process_of[place.0 as usize][place.1 as usize];
                    let from = (self.paths.len() as u32, end as u32);
                    let fifo = self.add_queue(process, words, from);
                    self.reads(process, queue, fifo)?;
                    self.processes[at].outputs.push((color, fifo));
                }
                on_paths += path.in_routers(regions);
                in_channels += path.in_channel(regions);
                in_pipes += path.in_pipes(regions);
                self.paths.push(path);
            }
        }
        let routers = regions.iter().flat_map(|region| region.routers.iter().flatten());
        let all: usize = routers.map(|router| router.words()).sum();
        let channels = regions.iter().flat_map(|region| &region.channels);
        let flown: usize = channels.map(Channel::held).sum();
        let pipes = regions.iter().flat_map(|region| &region.pipes);
        let held = pipes.filter(|pipe| !pipe.leads_abroad()).map(|pipe| pipe.held() as usize);
        let are_all = all == on_paths && flown == in_channels;
        (are_all && held.sum::<usize>() == in_pipes).then_some(())
    }

    /// A queue of words for a PE, from an end of a path.
    fn add_queue(&mut self, process: u32, words: Fifo, (path, end): (u32, u32)) -> u32 {
        let (needed, joins, turns) = (0, NONE, None);
        self.fifos.push(Queue { words, needed, process, path, end, joins, turns });
        self.fifos.len() as u32 - 1
    }

    /// A PE reads a queue by one of its input queues; none if it reads another one by that: in which order words of several
    /// senders come is not known.
    fn reads(&mut self, process: u32, queue: u8, fifo: u32) -> Option<()> {
        let input = self.processes[process as usize].inputs.get_mut(usize::from(queue))?;
        (std::mem::replace(input, fifo) == NONE).then_some(())
    }

    /// Adds the ways of a color that switches turn; none if the order of words is not known.
    fn add_switched(
        &mut self,
        regions: &mut [Region<C>],
        process_of: &[Vec<u32>],
        sends: &[Sends],
        color: u8,
    ) -> Option<()> {
        let mut switches = Switches::new(self.plan, regions, color);
        for (sender, process) in self.processes.iter().enumerate() {
            for (number, batch) in (0..).zip(of_color(&sends[sender], color)) {
                switches.send(process.at, Token { sender: sender as u32, number, batch })?;
            }
        }
        let mut into = Vec::new();
        for taker in switches.takers()? {
            let (place, queue) = (taker.at, taker.queue);
            let process = process_of[place.0 as usize][place.1 as usize];
            let path = Path::into_queue(place, queue, color);
            let mut words = Fifo::default();
            path.each_word(regions, 0, &mut |word| words.push(*word))?;
            let fifo = self.add_queue(process, words, (self.paths.len() as u32, 0));
            self.paths.push(path);
            self.reads(process, queue, fifo)?;
            self.add_lanes(process, fifo, &taker.come, &mut into)?;
        }
        into.sort_unstable();
        self.add_outputs(sends, color, &into);
        Some(())
    }

    /// Adds what several senders' words come into before they go on into a queue, in the order in which they come; `into`:
    /// where each batch goes. None if those of a sender do not come in its own order.
    fn add_lanes(
        &mut self,
        process: u32,
        fifo: u32,
        come: &[Token],
        into: &mut Vec<(u32, u32, u32)>,
    ) -> Option<()> {
        let is_one = come.windows(2).all(|pair| pair[0].sender == pair[1].sender);
        // By sender: its lane, and the number of the batch that is the first to come next at the earliest.
        let mut lanes: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
        let mut turns = Vec::with_capacity(come.len());
        for &Token { sender, number, batch } in come {
            let (lane, next) = lanes.entry(sender).or_insert_with(|| {
                let lane =
                    if is_one { fifo } else { self.add_queue(process, Fifo::default(), (NONE, 0)) };
                (lane, 0)
            });
            if number < *next {
                return None;
            }
            *next = number + 1;
            into.push((sender, number, *lane));
            turns.push((*lane, batch.count));
        }
        if !is_one {
            turns.iter().for_each(|&(lane, _)| self.fifos[lane as usize].joins = fifo);
            self.fifos[fifo as usize].turns = Some(Box::new(Turns::new(turns)));
        }
        Some(())
    }

    /// Tells senders where their words of a color go, batch by batch: `into` has senders, numbers and queues, in order.
    fn add_outputs(&mut self, sends: &[Sends], color: u8, into: &[(u32, u32, u32)]) {
        let mut into = into.iter().peekable();
        for (sender, process) in (0..).zip(&mut self.processes) {
            let mut turns = Vec::new();
            for (number, batch) in (0..).zip(of_color(&sends[sender as usize], color)) {
                let mut lanes = Vec::new();
                while let Some((.., lane)) = into.next_if(|it| (it.0, it.1) == (sender, number)) {
                    lanes.push(*lane);
                }
                // Commands go nowhere, all others somewhere.
                if !matches!(batch.kind, Kind::Command(_)) {
                    turns.push((lanes.into_boxed_slice(), batch.count));
                }
            }
            let turns: Turns<Box<[u32]>> = Turns::new(turns);
            match turns.only() {
                Some(lanes) => process.outputs.extend(lanes.iter().map(|&lane| (color, lane))),
                None if turns.now().is_some() => process.in_turn.push((color, turns)),
                None => {}
            }
        }
    }

    /// Has queues of a PE side by side.
    fn sort_queues(&mut self) {
        let mut order: Vec<u32> = (0..self.fifos.len() as u32).collect();
        // What goes on to others is behind those.
        let key = |fifo: &Queue| (fifo.process, fifo.joins != NONE);
        order.sort_by_key(|&fifo| key(&self.fifos[fifo as usize]));
        let mut new = vec![NONE; order.len()];
        for (at, &fifo) in (0..).zip(&order) {
            new[fifo as usize] = at;
        }
        let mut fifos: Vec<Option<Queue>> =
            std::mem::take(&mut self.fifos).into_iter().map(Some).collect();
        self.fifos = order.iter().filter_map(|&fifo| fifos[fifo as usize].take()).collect();
        for fifo in &mut self.fifos {
            let lanes = fifo.turns.iter_mut().flat_map(|turns| turns.each_mut());
            for fifo in lanes.chain([&mut fifo.joins]).filter(|fifo| **fifo != NONE) {
                *fifo = new[*fifo as usize];
            }
        }
        for process in &mut self.processes {
            let outputs = process.outputs.iter_mut().map(|(_, fifo)| fifo);
            let in_turn = process.in_turn.iter_mut().flat_map(|(_, turns)| turns.each_mut());
            let outputs = outputs.chain(in_turn.flat_map(|lanes| lanes.iter_mut()));
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
            for fifo in &mut part.fifos {
                let lanes = fifo.turns.iter_mut().flat_map(|turns| turns.each_mut());
                let joins = lanes.chain([&mut fifo.joins]).filter(|fifo| **fifo != NONE);
                joins.for_each(|fifo| *fifo -= part.first.2);
            }
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

/// Those batches that are of a color.
fn of_color(sends: &Sends, color: u8) -> impl Iterator<Item = Batch> {
    sends.iter().filter(move |(of, _)| *of == color).map(|(_, batch)| *batch)
}

/// Whether words of some colors stand in output queues.
fn is_about_to_leave<C: Code>(regions: &[Region<C>], colors: u32) -> bool {
    let cores = regions.iter().flat_map(|region| region.cores.iter().flatten());
    let outputs = cores.filter(|_| colors != 0).flat_map(|core| core.outputs.iter());
    outputs.flat_map(|(_, output)| output.ring.words()).any(|word| colors >> word.color & 1 != 0)
}
