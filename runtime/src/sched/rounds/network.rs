//! A round without times: PEs that do what is on their tapes, and words that go from one to another.
//!
//! What a PE does depends on its own state and on the words that it takes, in their order; so it is
//! of no consequence in which order PEs do it, as long as words are made before they are taken
//! (G. Kahn, "The semantics of a simple language for parallel programming", IFIP 1974, section 2).
//!
//! Invariants: between rounds each PE stands where it stood when the round was taped; what code comes
//! to is held against the tape, and a round in which it differs is as if it had not been.

use std::collections::VecDeque;

use super::tape::{Act, OF_MAIN, OPERATIONS, Tape, is_like};
use super::ways::{Fifo, Path, Place};
use crate::exec::{Entry, NoRegisters, Segment, Stop};
use crate::jit::prefetch;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::pe::main::{Main, Next};
use crate::pe::op::{Op, OpPlan};
use crate::sched::plan::Plan;
use crate::sched::region::Region;

/// Turns of PEs after which limits are looked at.
const CHECK: u32 = 1 << 12;

/// Acts of a PE that are fetched ahead.
const ACTS: usize = 6;

/// "No queue of words."
const NONE: u32 = u32::MAX;

/// The PEs and their words.
pub(super) struct Network<'a, C: Code> {
    plan: &'a Plan,
    code: &'a C,
    /// What came of code, by region.
    outcomes: Vec<Vec<Outcome>>,
    nodes: Vec<Node<C>>,
    fifos: Vec<Queue>,
    paths: Vec<Path>,
    /// PEs that may go on.
    ready: VecDeque<u32>,
    /// Operations take words as they come. If not, they wait for all that they need for what they do next: there
    /// is less to look at.
    by_words: bool,
    /// A buffer for words.
    made: Vec<u32>,
    kept: Option<Kept<C>>,
}

/// Words for an input queue of a PE.
#[derive(Clone, Debug)]
struct Queue {
    words: Fifo,
    /// So many words are waited for, if any.
    needed: u32,
    /// Who takes them, and by which path they come.
    node: u32,
    path: u32,
    end: (Place, u8),
}

/// What came of code.
struct Outcome {
    segment: Segment,
    /// What is known of the operation that it stopped for, by program.
    known: Vec<(u16, OpPlan)>,
}

impl Outcome {
    /// What is known of the operation that a core's code has stopped for, which is like this.
    fn known<C: Code>(&mut self, plan: &Plan, core: &Core<C>) -> Option<OpPlan> {
        let program = core.at.program;
        if let Some((_, known)) = self.known.iter().find(|(of, _)| *of == program) {
            return Some(*known);
        }
        let known = op_plan(plan, core)?;
        self.known.push((program, known));
        Some(known)
    }
}

/// A PE.
struct Node<C: Code> {
    at: Place,
    acts: Vec<Act>,
    /// The next act, and how many of its elements are done.
    next: usize,
    elements: [u32; OPERATIONS],
    hand: Hand<C>,
    /// Queues of words by input queue, and those that words of a color go into.
    inputs: Vec<u32>,
    outputs: Vec<(u8, u32)>,
    /// The first of its own queues of words, and the one behind the last.
    queues: (u32, u32),
    /// The task that it ran when it was taped.
    task: u16,
    /// Queues whose words it waits for.
    missing: u32,
    /// It is among those that may go on, or through.
    is_ready: bool,
    is_through: bool,
}

/// What a PE works on.
struct Hand<C: Code> {
    operations: [Option<Box<Op<C::Op>>>; OPERATIONS],
    /// The operation that code has stopped for and that has not begun, if it has stopped for one.
    pending: Option<Box<Op<C::Op>>>,
    /// The word that starts the next task, or its arguments.
    word: Option<u32>,
    args: ([u64; 2], u8),
}

impl<C: Code> Clone for Hand<C> {
    fn clone(&self) -> Hand<C> {
        let Hand { operations, pending, word, args } = self;
        let (operations, pending) = (operations.clone(), pending.clone());
        Hand { operations, pending, word: *word, args: *args }
    }
}

/// How things stood after a round.
struct Kept<C: Code> {
    rounds: u64,
    cores: Vec<(C::State, Segment, Hand<C>)>,
    words: Vec<Fifo>,
}

/// How far a PE came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    Through,
    /// It waits for words.
    Waits,
    /// It came to something else than is on its tape.
    Apart,
}

impl<'a, C: Code> Network<'a, C> {
    /// The PEs as they stand, with what each does in a round; none if words have no order. What PEs work
    /// on is put back into their cores by [`Network::end`].
    pub(super) fn new(
        plan: &'a Plan,
        code: &'a C,
        regions: &mut [Region<C>],
        tapes: Vec<Tape>,
    ) -> Option<Network<'a, C>> {
        let mut network = Network {
            plan,
            code,
            outcomes: Vec::new(),
            nodes: Vec::new(),
            fifos: Vec::new(),
            paths: Vec::new(),
            ready: VecDeque::new(),
            by_words: false,
            made: Vec::new(),
            kept: None,
        };
        let mut node_of = Vec::new();
        for (region, tape) in tapes.into_iter().enumerate() {
            let mut of = vec![NONE; tape.tracks.len()];
            for (pe, track) in tape.tracks.into_iter().enumerate() {
                if let Some(core) = regions[region].cores[pe].as_deref() {
                    of[pe] = network.nodes.len() as u32;
                    network.nodes.push(Node {
                        at: (region as u32, pe as u32),
                        acts: track.acts,
                        next: 0,
                        elements: [0; OPERATIONS],
                        hand: Hand {
                            operations: [const { None }; OPERATIONS],
                            pending: None,
                            word: None,
                            args: ([0; 2], 0),
                        },
                        inputs: vec![NONE; core.inputs.len()],
                        outputs: Vec::new(),
                        queues: (0, 0),
                        task: core.task,
                        missing: 0,
                        is_ready: false,
                        is_through: false,
                    });
                }
            }
            node_of.push(of);
            let outcome = |segment| Outcome { segment, known: Vec::new() };
            network.outcomes.push(tape.outcomes.into_iter().map(outcome).collect());
        }
        network.find_paths(regions, &node_of)?;
        for node in &mut network.nodes {
            let core = regions[node.at.0 as usize].cores[node.at.1 as usize].as_deref_mut()?;
            node.hand = lift(plan, code, core);
        }
        Some(network)
    }

    /// Finds the ways of all colors that cores send, and the words on them.
    fn find_paths(&mut self, regions: &mut [Region<C>], node_of: &[Vec<u32>]) -> Option<()> {
        let (mut on_paths, mut in_pipes) = (0, 0);
        for at in 0..self.nodes.len() {
            let source = self.nodes[at].at;
            let core = regions[source.0 as usize].cores[source.1 as usize].as_deref()?;
            let colors: Vec<u8> = core.outlets.iter().map(|(color, _)| color as u8).collect();
            for color in colors {
                let Some(path) = Path::find(self.plan, regions, source, color) else { continue };
                for &end in &path.ends {
                    let (place, queue) = end;
                    let node = node_of[place.0 as usize][place.1 as usize];
                    let input = self.nodes[node as usize].inputs.get_mut(usize::from(queue))?;
                    if *input != NONE {
                        // Several senders: in which order their words come is not known.
                        return None;
                    }
                    *input = self.fifos.len() as u32;
                    self.nodes[at].outputs.push((color, self.fifos.len() as u32));
                    let mut words = Fifo::default();
                    path.each_word(regions, end, &mut |word| words.extend(&[*word]))?;
                    let path = self.paths.len() as u32;
                    self.fifos.push(Queue { words, needed: 0, node, path, end });
                }
                on_paths += path.in_routers(regions);
                in_pipes += path.in_pipe(regions);
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
        order.sort_by_key(|&fifo| self.fifos[fifo as usize].node);
        let mut new = vec![NONE; order.len()];
        for (at, &fifo) in (0..).zip(&order) {
            new[fifo as usize] = at;
        }
        let mut fifos: Vec<Option<Queue>> =
            std::mem::take(&mut self.fifos).into_iter().map(Some).collect();
        self.fifos = order.iter().filter_map(|&fifo| fifos[fifo as usize].take()).collect();
        for node in &mut self.nodes {
            let outputs = node.outputs.iter_mut().map(|(_, fifo)| fifo);
            for fifo in node.inputs.iter_mut().chain(outputs).filter(|fifo| **fifo != NONE) {
                *fifo = new[*fifo as usize];
            }
        }
        for (at, fifo) in (1..).zip(&self.fifos) {
            let queues = &mut self.nodes[fifo.node as usize].queues;
            *queues = (if queues.1 == 0 { at - 1 } else { queues.0 }, at);
        }
    }

    /// Does rounds, `most` at most and as long as `goes_on` says that the run does; how many.
    pub(super) fn play(
        &mut self,
        regions: &mut [Region<C>],
        most: u64,
        goes_on: &dyn Fn(u64) -> bool,
    ) -> u64 {
        let (mut rounds, mut keep) = (0, 0);
        while rounds < most && goes_on(rounds) {
            if rounds == keep {
                self.keep(regions, rounds);
                // What is done again for a round that differs is an eighth of all at most.
                keep = rounds + 1 + rounds / 8;
            }
            if self.round(regions, &|| goes_on(rounds)) {
                #[cfg(test)]
                crate::sched::reached::note(crate::sched::reached::Reached::Round);
                rounds += 1;
                continue;
            }
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Apart);
            let since = self.restore(regions);
            // A run that is to end at once does so.
            let again = if goes_on(since) { rounds - since } else { 0 };
            for _ in 0..again {
                let same = self.round(regions, &|| true);
                debug_assert!(same);
            }
            return since + again;
        }
        rounds
    }

    /// Does a round; whether it came to what is on the tapes, and was not left off.
    fn round(&mut self, regions: &mut [Region<C>], goes_on: &dyn Fn() -> bool) -> bool {
        self.ready.clear();
        for (at, node) in self.nodes.iter_mut().enumerate() {
            (node.next, node.elements) = (0, [0; OPERATIONS]);
            (node.missing, node.is_ready, node.is_through) = (0, true, false);
            self.ready.push_back(at as u32);
        }
        self.fifos.iter_mut().for_each(|fifo| fifo.needed = 0);
        let (mut open, mut looks) = (self.nodes.len(), 0_u32);
        while let Some(at) = self.next(open) {
            looks += 1;
            if looks.is_multiple_of(CHECK) && !goes_on() {
                return false;
            }
            self.nodes[at as usize].is_ready = false;
            self.fetch(regions);
            match self.go(regions, at as usize) {
                Went::Through => {
                    self.nodes[at as usize].is_through = true;
                    open -= 1;
                }
                Went::Waits => {}
                Went::Apart => return false,
            }
        }
        open == 0
    }

    /// The next PE that goes on, if `open` of them are not through.
    fn next(&mut self, open: usize) -> Option<u32> {
        if self.ready.is_empty() && open != 0 && !self.by_words {
            // They wait for each other: they are to hand on what they have, from now on.
            self.by_words = true;
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::ByWords);
            for (at, node) in (0..).zip(&mut self.nodes) {
                if !node.is_through {
                    (node.missing, node.is_ready) = (0, true);
                    self.ready.push_back(at);
                }
            }
        }
        self.ready.pop_front()
    }

    /// Has the host fetch what the PEs that go on next look at, ahead of their turns.
    fn fetch(&self, regions: &[Region<C>]) {
        if let Some(&soon) = self.ready.get(1) {
            prefetch(&self.nodes[soon as usize]);
        }
        let Some(&next) = self.ready.front() else { return };
        let node = &self.nodes[next as usize];
        let (from, to) = node.queues;
        self.fifos[from as usize..to as usize].iter().for_each(prefetch);
        node.inputs.first().into_iter().for_each(prefetch);
        node.outputs.first().into_iter().for_each(prefetch);
        let acts = &node.acts[node.next..];
        acts.iter().take(ACTS).step_by(ACTS - 1).for_each(prefetch);
        let core = regions[node.at.0 as usize].cores[node.at.1 as usize].as_deref();
        if let Some(core) = core {
            prefetch(&core.state);
            prefetch(&core.segment);
        }
        for op in node.hand.operations.iter().flatten() {
            prefetch(&**op);
        }
    }

    /// Does what a PE can do.
    fn go(&mut self, regions: &mut [Region<C>], at: usize) -> Went {
        let (region, pe) = self.nodes[at].at;
        let Some(mut core) = regions[region as usize].cores[pe as usize].take() else {
            return Went::Apart;
        };
        let mut went = Went::Through;
        while went == Went::Through
            && let Some(&act) = self.nodes[at].acts.get(self.nodes[at].next)
        {
            went = match act {
                Act::Elements { .. } => self.all_elements(&mut core, at),
                _ => self.act(&mut core, at, act),
            };
            if went == Went::Through {
                self.nodes[at].next += 1;
            }
        }
        regions[region as usize].cores[pe as usize] = Some(core);
        went
    }

    fn act(&mut self, core: &mut Core<C>, at: usize, act: Act) -> Went {
        let node = &mut self.nodes[at];
        match act {
            Act::Start { task, outcome } => {
                core.task = task;
                let program = &self.plan.programs[usize::from(core.at.program)];
                let plan = &program.tasks[usize::from(task)];
                if let Some(word) = node.hand.word.take()
                    && let Main::Ready { next: Next::Start { args, count }, .. } =
                        Main::<C::Op>::start(plan, word, 0)
                {
                    node.hand.args = (args, count);
                }
                let (args, count) = std::mem::take(&mut node.hand.args);
                let args = &args[..usize::from(count)];
                self.segment(core, at, Entry::Start { func: plan.func, args }, outcome)
            }
            Act::Resume { value, outcome } => {
                self.segment(core, at, Entry::Resume { value: value.into() }, outcome)
            }
            Act::Word { queue } => {
                let fifo = node.inputs.get(usize::from(queue)).copied().unwrap_or(NONE);
                let Some(fifo) = self.fifos.get_mut(fifo as usize) else { return Went::Apart };
                let Some(&word) = fifo.words.words().first() else {
                    (fifo.needed, node.missing) = (1, 1);
                    return Went::Waits;
                };
                fifo.words.take(1);
                node.hand.word = Some(word);
                Went::Through
            }
            Act::Launch { thread } => {
                let Hand { operations, pending, .. } = &mut node.hand;
                // The box of one that is over is for the next.
                std::mem::swap(&mut operations[usize::from(thread)], pending);
                Went::Through
            }
            Act::Elements { .. } => Went::Apart,
            Act::Finish { operation, whole } => {
                let Some(op) = &mut node.hand.operations[usize::from(operation)] else {
                    return Went::Apart;
                };
                op.ended = true;
                match self.code.finish(core.at, &mut core.state, &mut op.code, whole) {
                    Ok(()) => Went::Through,
                    Err(_) => Went::Apart,
                }
            }
        }
    }

    fn segment(&mut self, core: &mut Core<C>, at: usize, entry: Entry<'_>, outcome: u32) -> Went {
        let segment = &mut core.segment;
        segment.acts.clear();
        (segment.cycles, segment.assumed) = (0, 0);
        self.code.run(core.at, &mut core.state, entry, &NoRegisters, segment);
        let node = &mut self.nodes[at];
        let outcome = &mut self.outcomes[node.at.0 as usize][outcome as usize];
        if !is_like(&outcome.segment, segment) {
            return Went::Apart;
        }
        if let Some(known) = outcome.known(self.plan, core) {
            begin(self.code, core, known, &mut node.hand);
        }
        Went::Through
    }

    /// Does elements of operations that have nothing to do with each other, as far as they have words; the next
    /// act is the last of theirs if all are done.
    fn all_elements(&mut self, core: &mut Core<C>, at: usize) -> Went {
        let first = self.nodes[at].next;
        loop {
            let (mut last, mut waits, mut any) = (first, false, false);
            self.nodes[at].missing = 0;
            while let Some(&Act::Elements { operation, beside, count }) =
                self.nodes[at].acts.get(last)
                && (last == first || beside)
            {
                let before = self.nodes[at].elements[usize::from(operation)];
                let Some(done) = self.elements(core, at, operation, count - before) else {
                    return Went::Apart;
                };
                self.nodes[at].elements[usize::from(operation)] += done;
                (waits, any) = (waits | (before + done < count), any | (done != 0));
                last += 1;
            }
            if !waits {
                let node = &mut self.nodes[at];
                (node.next, node.elements) = (last - 1, [0; OPERATIONS]);
                return Went::Through;
            }
            // One may have waited for words of another.
            if !any {
                return Went::Waits;
            }
        }
    }

    /// Does elements of an operation, if it has the words for all of them, or as far as it has; how many, if
    /// nothing else comes of it.
    fn elements(
        &mut self,
        core: &mut Core<C>,
        at: usize,
        operation: u8,
        mut count: u32,
    ) -> Option<u32> {
        let node = &mut self.nodes[at];
        let op = node.hand.operations[usize::from(operation)].as_mut()?;
        let (mut inputs, all) = ([NONE; 2], count);
        for (input, &queue) in inputs.iter_mut().zip(op.ends.inputs()) {
            *input = node.inputs.get(usize::from(queue)).copied().unwrap_or(NONE);
            let fifo = self.fifos.get_mut(*input as usize)?;
            let there = fifo.words.len() as u32;
            fifo.needed = 0;
            if there < all {
                fifo.needed = if self.by_words { there + 1 } else { all };
                node.missing += 1;
                count = if self.by_words { count.min(there) } else { 0 };
            }
        }
        if count == 0 {
            return Some(0);
        }
        let words = inputs
            .map(|input| self.fifos.get(input as usize).map_or(&[][..], |it| it.words.words()));
        let made = &mut self.made;
        made.clear();
        let block = self.code.block(core.at, &mut core.state, &mut op.code, words, count, made);
        if block.trap.is_some() || block.done != count {
            return None;
        }
        let output = op.ends.output;
        for input in inputs.into_iter().filter(|&input| input != NONE) {
            self.fifos[input as usize].words.take(count as usize);
        }
        if let Some(output) = output {
            self.send(at, output.color)?;
        }
        Some(count)
    }

    /// The words that were made go to all queues that words of a color go to.
    fn send(&mut self, at: usize, color: u8) -> Option<()> {
        let mut ends = 0;
        for end in 0..self.nodes[at].outputs.len() {
            let (of, into) = self.nodes[at].outputs[end];
            if of != color {
                continue;
            }
            ends += 1;
            let Queue { words: fifo, node, needed, .. } = &mut self.fifos[into as usize];
            fifo.extend(&self.made);
            // Who goes on now looks again.
            if *needed == 0 || fifo.len() < *needed as usize || *node as usize == at {
                continue;
            }
            *needed = 0;
            let reader = &mut self.nodes[*node as usize];
            reader.missing = reader.missing.saturating_sub(1);
            if (reader.missing == 0 || self.by_words) && !reader.is_ready && !reader.is_through {
                reader.is_ready = true;
                self.ready.push_back(*node);
            }
        }
        (ends != 0).then_some(())
    }

    /// Keeps how things stand.
    fn keep(&mut self, regions: &[Region<C>], rounds: u64) {
        let core =
            |node: &Node<C>| regions[node.at.0 as usize].cores[node.at.1 as usize].as_deref();
        let Some(kept) = &mut self.kept else {
            let cores = self.nodes.iter().filter_map(|node| {
                let core = core(node)?;
                Some((core.state.clone(), core.segment.clone(), node.hand.clone()))
            });
            let words = self.fifos.iter().map(|fifo| fifo.words.clone()).collect();
            self.kept = Some(Kept { rounds, cores: cores.collect(), words });
            return;
        };
        // In the memory of the one before.
        kept.rounds = rounds;
        for (node, (state, segment, hand)) in self.nodes.iter().zip(&mut kept.cores) {
            if let Some(core) = core(node) {
                state.clone_from(&core.state);
                (*segment, *hand) = (core.segment.clone(), node.hand.clone());
            }
        }
        for (fifo, words) in self.fifos.iter().zip(&mut kept.words) {
            words.copy(&fifo.words);
        }
    }

    /// All is as it was kept; after how many rounds that was.
    fn restore(&mut self, regions: &mut [Region<C>]) -> u64 {
        let Some(Kept { rounds, cores, words }) = self.kept.take() else { return 0 };
        for (node, (state, segment, hand)) in self.nodes.iter_mut().zip(cores) {
            let core = regions[node.at.0 as usize].cores[node.at.1 as usize].as_deref_mut();
            if let Some(core) = core {
                (core.state, core.segment) = (state, segment);
            }
            node.hand = hand;
        }
        for (fifo, words) in self.fifos.iter_mut().zip(words) {
            fifo.words = words;
        }
        rounds
    }

    /// Puts back into cores and buffers what PEs work on and the words on their ways.
    pub(super) fn end(self, regions: &mut [Region<C>]) {
        for fifo in &self.fifos {
            let mut words = fifo.words.words().iter();
            let path = &self.paths[fifo.path as usize];
            let mut put = |word: &mut u32| *word = words.next().copied().unwrap_or(*word);
            let put = path.each_word(regions, fifo.end, &mut put);
            debug_assert!(put.is_some() && words.next().is_none());
        }
        for node in self.nodes {
            let core = regions[node.at.0 as usize].cores[node.at.1 as usize].as_deref_mut();
            if let Some(core) = core {
                core.task = node.task;
                settle(self.plan, core, node.hand);
            }
        }
    }
}

/// What is known of the operation that a core's code has stopped for.
fn op_plan<C: Code>(plan: &Plan, core: &Core<C>) -> Option<OpPlan> {
    let Stop::Vector(start) = &core.segment.stop else { return None };
    let program = &plan.programs[usize::from(core.at.program)];
    OpPlan::new(program, &core.bound, start).ok()
}

/// The operation that code has stopped for is ready to begin.
fn begin<C: Code>(code: &C, core: &mut Core<C>, known: OpPlan, hand: &mut Hand<C>) {
    let Stop::Vector(start) = &core.segment.stop else { return };
    let begun = code.begin(core.at, &mut core.state, start.clone());
    let op = Op::new(begun, known, core.task);
    let into = if op.asynchronous { &mut hand.pending } else { &mut hand.operations[OF_MAIN] };
    match into {
        Some(before) => **before = op,
        None => *into = Some(Box::new(op)),
    }
}

/// What a core works on.
fn lift<C: Code>(plan: &Plan, code: &C, core: &mut Core<C>) -> Hand<C> {
    let mut operations = [const { None }; OPERATIONS];
    for op in core.threads.iter() {
        operations[usize::from(op.microthread)] = Some(Box::new(op.clone()));
    }
    let mut hand = Hand { operations, pending: None, word: None, args: ([0; 2], 0) };
    match &mut core.main {
        Main::Ready { next: Next::Start { args, count }, .. } => hand.args = (*args, *count),
        Main::Counting { .. } => {
            if let Some(known) = op_plan(plan, core) {
                begin(code, core, known, &mut hand);
            }
        }
        Main::Vector(op) => hand.operations[OF_MAIN] = Some(op.clone()),
        Main::Launch(op) => hand.pending = Some(op.clone()),
        Main::Idle | Main::Ready { .. } => {}
    }
    hand
}

/// An operation goes on with what one has done that was begun in a later round, and is as it is but for that.
fn go_on_with<O>(op: &mut Op<O>, with: Option<Box<Op<O>>>) {
    if let Some(with) = with {
        op.code = with.code;
    }
}

/// Puts back into a core what it works on.
fn settle<C: Code>(plan: &Plan, core: &mut Core<C>, hand: Hand<C>) {
    let Hand { mut operations, pending, word, args } = hand;
    for op in core.threads.iter_mut() {
        let with = operations.get_mut(usize::from(op.microthread)).and_then(Option::take);
        go_on_with(op, with);
    }
    let of_main = operations[OF_MAIN].take();
    match &mut core.main {
        Main::Ready { next: Next::Start { args: own, count }, .. } => {
            let program = &plan.programs[usize::from(core.at.program)];
            let task = &program.tasks[usize::from(core.task)];
            (*own, *count) = args;
            if let Some(word) = word
                && let Main::Ready { next: Next::Start { args, count: of }, .. } =
                    Main::<C::Op>::start(task, word, 0)
            {
                (*own, *count) = (args, of);
            }
        }
        Main::Vector(op) => go_on_with(op, of_main),
        Main::Launch(op) => go_on_with(op, pending),
        Main::Idle | Main::Ready { .. } | Main::Counting { .. } => {}
    }
}
