//! Many elements at once: how the `flow` engine runs plain operations on pipes.
//!
//! A chunk is a stretch of an operation's elements that issue at an even pace, decided when its
//! first one issues: as many as are on their way and find a place, as fast as the slowest of the
//! sender, the taker, and a fair share of the issue slots. Its data are computed at once.
//!
//! Invariants: an operation in a chunk takes no slot until the chunk is over; chunks of an
//! operation grow, so that what starts beside it gets its share soon.

use super::code::Code;
use super::core::{Core, Fault, bits};
use super::main::{End, Main};
use super::op::Op;
use crate::fabric::channel::{Outlet, Route};
use crate::fabric::pipe::Pipe;
use crate::fabric::ring::Slot;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::trap::TrapKind;

/// Elements of an operation's first chunk beside others, of its chunks beside some that wait, and
/// of its longest.
const FIRST: u32 = 8;
const WAITING: u32 = 32;
/// Cycles in which a word that is on its way counts as there.
const SOON: u64 = 16;
const LONGEST: u32 = 1024;

/// What a chunk may do.
#[derive(Clone, Copy, Debug)]
struct Reach {
    count: usize,
    /// When the last word that it takes is there.
    last: u64,
    /// Cycles per element.
    pace: u64,
    /// Pipes of its inputs, in their order.
    pipes: [Option<u32>; 2],
}

impl<C: Code> Region<C> {
    /// Begins a chunk of an operation in cycle `t`, if it can flow now; whether it did.
    pub(super) fn chunk(
        &mut self,
        plan: &Plan,
        code: &C,
        core: &mut Core<C>,
        pe: u32,
        t: u64,
        op: &mut Op<C::Op>,
    ) -> Result<bool, Fault> {
        let Some(reach) = self.reach(plan, code, core, (pe, t), op) else { return Ok(false) };
        let Reach { count, last, pace, pipes } = reach;
        let paced = t + (count as u64 - 1) * pace;
        let end = paced.max(last);
        let (task, loc) = (op.task, op.loc);
        let mut outputs = Vec::with_capacity(if op.output.is_some() { count } else { 0 });
        let words = pipes.map(|id| match id {
            Some(id) => self.pipes[id as usize].front(count).0,
            None => &[][..],
        });
        let elements = count as u32;
        let block =
            code.block(core.at, &mut core.state, &mut op.code, words, elements, &mut outputs);
        if let Some(trap) = block.trap {
            let kind = Box::new(TrapKind::Code(trap));
            return Err(Fault { kind, task, loc, color: None });
        }
        for id in pipes.into_iter().flatten() {
            self.take_words(plan, id, count, t);
        }
        if let Some(output) = op.output
            && let Outlet::Pipe(id) = core.outlets[usize::from(output.color)]
        {
            self.stats.sent += count as u64;
            self.send_words(plan, id, (t, end), outputs);
            if let Some(Some(sent)) = core.sent.get_mut(usize::from(output.queue)) {
                sent.words += count as u64;
            }
        }
        self.promise(code, core, (pe, t), op, pace);
        self.stats.slots += count as u64 - 1;
        op.chunk = (op.chunk * 2).min(LONGEST);
        op.pace = ((end - t) / (count as u64 - 1).max(1)).max(1);
        op.until = if code.is_done(&op.code) { end } else { end + pace };
        self.active_until = self.active_until.max(end + 1);
        self.wakes.core(pe, op.until.max(t + 1));
        Ok(true)
    }

    /// How far an operation can go now; none if not by chunks.
    fn reach(
        &mut self,
        plan: &Plan,
        code: &C,
        core: &mut Core<C>,
        (pe, t): (u32, u64),
        op: &Op<C::Op>,
    ) -> Option<Reach> {
        if op.needs.inputs & core.arrived != 0 {
            return None;
        }
        let pipes = self.pipes_of(pe, op)?;
        let (done, length) = code.progress(&op.code);
        let left = length.map_or(u32::MAX, |length| length - done);
        let (beside, least) = self.beside(code, core, (pe, t));
        // Whatever runs may start more; and when the first of those beside has ended, the others
        // go faster.
        let most = if matches!(core.main, Main::Idle | Main::Vector(_)) { least } else { op.chunk };
        let mut count = left.min(most).min(LONGEST) as usize;
        let mut pace = beside;
        if let Some(output) = op.output {
            if core.leaving >> output.queue & 1 != 0 {
                return None;
            }
            let queue = usize::from(output.queue);
            let Outlet::Pipe(id) = self.known_outlet(plan, core, pe, output.color, queue) else {
                return None;
            };
            pace = pace.max(self.links_of(id, t));
            let pipe = &mut self.pipes[id as usize];
            let (room, free) = pipe.room();
            count = count.min(room as usize);
            if count > free as usize && pipe.gap() > pace {
                // As fast as the taker, who may soon have more slots to give.
                pace = pipe.gap();
                count = count.min((free + WAITING) as usize);
            }
        }
        let mut last = 0;
        for id in pipes.into_iter().flatten() {
            count = count.min(self.pipes[id as usize].front(count).0.len());
        }
        if count == 0 {
            return None;
        }
        for id in pipes.into_iter().flatten() {
            last = last.max(self.pipes[id as usize].front(count).1 + plan.timing.ramp_down);
        }
        Some(Reach { count, last, pace, pipes })
    }

    /// How many operations share the issue slots with the one that is at work, itself among them,
    /// and the elements that the first of the others to end has left.
    fn beside(&self, code: &C, core: &Core<C>, (pe, t): (u32, u64)) -> (u64, u32) {
        let (mut count, mut least) = (1, u32::MAX);
        for other in core.operations() {
            if other.ended {
                continue;
            }
            if !self.is_active(core, (pe, t), other) {
                least = least.min(WAITING);
                continue;
            }
            count += 1;
            let (done, length) = code.progress(&other.code);
            let mut left = length.map_or(u32::MAX, |length| length - done);
            if let Some(output) = other.output
                && let Outlet::Pipe(id) = core.outlets[usize::from(output.color)]
            {
                left = left.min(self.pipes[id as usize].room().0);
            }
            least = least.min(left.max(FIRST));
        }
        (count, least)
    }

    /// Whether an operation goes on, or will as soon as words that are on their way have come.
    fn is_active(&self, core: &Core<C>, (pe, t): (u32, u64), op: &Op<C::Op>) -> bool {
        if op.until != 0 || core.sight.serves(op.needs) {
            return true;
        }
        let missing = op.needs.inputs & !core.sight.words;
        let comes = |queue: usize| {
            let pipe = self.pipe_of(pe, queue as u8).map(|id| &self.pipes[id as usize]);
            pipe.is_some_and(|pipe| pipe.arrival().is_some_and(|at| at <= t + SOON))
        };
        op.flows && op.needs.output & core.sight.full == 0 && bits(missing).all(comes)
    }

    /// The pipes that an operation's inputs come from, in their order; none if one comes
    /// otherwise.
    fn pipes_of(&self, pe: u32, op: &Op<C::Op>) -> Option<[Option<u32>; 2]> {
        let mut pipes = [None; 2];
        let inputs = op.inputs.into_iter().flatten();
        for (pipe, queue) in pipes.iter_mut().zip(inputs) {
            *pipe = Some(self.pipe_of(pe, queue)?);
        }
        Some(pipes)
    }

    /// The pipe that holds words for a queue.
    fn pipe_of(&self, pe: u32, queue: u8) -> Option<u32> {
        let incoming = &self.incoming.as_ref()?[pe as usize];
        incoming.iter().copied().find(|&id| {
            let pipe = &self.pipes[id as usize];
            pipe.route().queue == Some(queue)
        })
    }

    /// Pipes that use the busiest link of a pipe in cycle `t`, itself among them.
    fn links_of(&self, id: u32, t: u64) -> u64 {
        let others = |link: &u32| {
            let users = self.loads.get(link).map_or(&[][..], Vec::as_slice);
            users.iter().filter(|&&(user, until)| user != id && until > t).count() as u64
        };
        1 + self.pipes[id as usize].shared().iter().map(others).max().unwrap_or(0)
    }

    /// Words of a pipe are on its links until a cycle.
    fn load_links(&mut self, id: u32, (t, until): (u64, u64)) {
        for &link in self.pipes[id as usize].shared() {
            let users = self.loads.entry(link).or_default();
            users.retain(|&(user, until)| user != id && until > t);
            users.push((id, until));
        }
    }

    /// Words of a pipe have been taken from cycle `t` on.
    fn take_words(&mut self, plan: &Plan, id: u32, count: usize, t: u64) {
        let pipe = &mut self.pipes[id as usize];
        let route = pipe.route();
        self.stats.hops += count as u64 * u64::from(route.hops);
        self.stats.delivered += count as u64;
        if let Some(credit) = pipe.take(count) {
            self.wakes.core(route.source, t + credit);
        }
        if let Some(arrival) = self.pipes[id as usize].arrival() {
            self.wakes.core(route.dest, (arrival + plan.timing.ramp_down).max(t + 1));
        }
    }

    /// An operation is bound to take what it has left, as far as nothing else can keep it from
    /// that: its output has places, and words of its other input are there.
    fn promise(
        &mut self,
        code: &C,
        core: &Core<C>,
        (pe, t): (u32, u64),
        op: &Op<C::Op>,
        pace: u64,
    ) {
        let Some(pipes) = self.pipes_of(pe, op) else { return };
        let (done, length) = code.progress(&op.code);
        let mut left = length.map_or(LONGEST, |length| length - done);
        if let Some(output) = op.output {
            left = match core.outlets[usize::from(output.color)] {
                Outlet::Pipe(id) => left.min(self.pipes[id as usize].room().0),
                Outlet::Unknown | Outlet::Routers | Outlet::Channel(_) | Outlet::Closing(_) => 0,
            };
        }
        if let [Some(first), Some(second)] = pipes {
            left = left.min(self.pipes[first as usize].held());
            left = left.min(self.pipes[second as usize].held());
        }
        for id in pipes.into_iter().flatten() {
            self.open_pipe(id, left, pace, t);
        }
    }

    fn open_pipe(&mut self, id: u32, words: u32, pace: u64, t: u64) {
        let pipe = &mut self.pipes[id as usize];
        let source = pipe.route().source;
        if let Some(credit) = pipe.open(words, pace) {
            self.wakes.core(source, t + credit);
        }
    }

    /// An operation that cannot go by a chunk now takes its next words from its queues: those
    /// that are still in pipes come down first.
    pub(super) fn draw(&mut self, core: &mut Core<C>, pe: u32, t: u64, op: &Op<C::Op>) {
        for queue in op.inputs.into_iter().flatten() {
            let ring = &core.inputs[usize::from(queue)].ring;
            let Some(id) = self.pipe_of(pe, queue).filter(|_| ring.is_empty()) else { continue };
            let pipe = &mut self.pipes[id as usize];
            let (route, first) = (pipe.route(), pipe.front(1).0.first().copied());
            let Some(payload) = first else { continue };
            if let Some(credit) = pipe.queue_one() {
                self.wakes.core(route.source, t + credit);
            }
            self.stats.hops += u64::from(route.hops);
            self.stats.delivered += 1;
            let stamp = t.max(ring.free_from() + 1);
            core.inputs[usize::from(queue)].ring.push(Slot {
                stamp,
                payload,
                color: route.color,
                ..Slot::default()
            });
            core.arrived |= 1 << queue;
        }
    }

    /// A word has left an input queue.
    pub(super) fn left_queue(&mut self, pe: u32, queue: usize, t: u64) {
        let Some(id) = self.pipe_of(pe, queue as u8) else { return };
        let source = self.pipes[id as usize].route().source;
        if let Some(credit) = self.pipes[id as usize].leave_queue() {
            self.wakes.core(source, t + credit);
        }
    }

    /// Words go into a pipe.
    pub(super) fn send_words(&mut self, plan: &Plan, id: u32, span: (u64, u64), words: Vec<u32>) {
        let pipe = &mut self.pipes[id as usize];
        let was_empty = pipe.held() == 0;
        let route = pipe.route();
        pipe.push(span, words);
        let arrival = pipe.arrival();
        if span.1 > span.0 {
            self.load_links(id, span);
        }
        let Some(arrival) = arrival.filter(|_| was_empty) else { return };
        let dest = self.cores[route.dest as usize].as_deref();
        let flowing = dest.map_or(0, |core| core.flowing_in);
        if route.queue.is_some_and(|queue| flowing >> queue & 1 != 0) {
            self.wakes.core(route.dest, arrival + plan.timing.ramp_down);
        } else {
            self.wakes.router(route.dest, arrival);
        }
    }

    /// An operation has begun in cycle `t`: whether it goes by chunks.
    pub(super) fn start_flow(
        &mut self,
        plan: &Plan,
        code: &C,
        core: &mut Core<C>,
        (pe, t): (u32, u64),
        op: &mut Op<C::Op>,
    ) {
        let streams = op.needs.inputs | op.needs.output != 0;
        let simple = op.is_plain() && code.is_plain(&op.code) && core.bound.are_planned();
        if !streams || !simple || op.commands() || plan.track {
            return;
        }
        if let Some(output) = op.output {
            let queue = usize::from(output.queue);
            let outlet = self.known_outlet(plan, core, pe, output.color, queue);
            if !matches!(outlet, Outlet::Pipe(_)) {
                return;
            }
        }
        (op.flows, op.chunk) = (true, FIRST);
        core.flowing_in |= op.needs.inputs;
        core.flowing_out |= op.needs.output;
        let (pace, _) = self.beside(code, core, (pe, t));
        self.promise(code, core, (pe, t), op, pace);
        for queue in op.inputs.into_iter().flatten() {
            let Some(id) = self.pipe_of(pe, queue) else { continue };
            if let Some(arrival) = self.pipes[id as usize].arrival() {
                self.wakes.core(pe, (arrival + plan.timing.ramp_down).max(t + 1));
            }
        }
    }

    /// An operation has ended in cycle `t`: what is left comes down word by word.
    pub(super) fn end_flow(&mut self, core: &mut Core<C>, pe: u32, t: u64, op: &mut Op<C::Op>) {
        if !std::mem::take(&mut op.flows) {
            return;
        }
        core.flowing_in &= !op.needs.inputs;
        core.flowing_out &= !op.needs.output;
        for queue in op.inputs.into_iter().flatten() {
            let Some(id) = self.pipe_of(pe, queue) else { continue };
            self.open_pipe(id, 0, 1, t);
            self.wakes.router(pe, t + 1);
        }
    }

    /// What operations that go by chunks see of their pipes in cycle `t`.
    pub(super) fn look_at_pipes(&mut self, plan: &Plan, core: &mut Core<C>, pe: u32, t: u64) {
        for queue in bits(core.flowing_in & !core.arrived) {
            let Some(id) = self.pipe_of(pe, queue as u8) else { continue };
            let arrival = self.pipes[id as usize].arrival();
            let is_there = arrival.is_some_and(|at| at + plan.timing.ramp_down <= t);
            core.sight.words |= u64::from(is_there) << queue;
        }
        core.sight.full |= core.leaving & core.flowing_out;
        for queue in bits(core.flowing_out & !core.leaving) {
            let Some(Some(sent)) = core.sent.get(queue) else { continue };
            let Outlet::Pipe(id) = core.outlets[usize::from(sent.color)] else { continue };
            let pipe = &mut self.pipes[id as usize];
            if pipe.room().0 == 0 {
                pipe.want();
                core.sight.full |= 1 << queue;
            }
        }
    }

    /// Ends chunks that are over in cycle `t`, and operations with them.
    pub(super) fn end_chunks(
        &mut self,
        plan: &Plan,
        code: &C,
        core: &mut Core<C>,
        pe: u32,
        t: u64,
    ) -> Result<(), Fault> {
        for id in bits(core.threads.end_chunks(t)) {
            core.acted.acted = true;
            let Some(mut op) = core.threads.take(id as u8) else { continue };
            let result = if code.is_done(&op.code) {
                self.end_thread(plan, code, core, pe, t, &mut op, true)
            } else {
                Ok(())
            };
            core.threads.put(op);
            result?;
        }
        let Main::Vector(op) = &mut core.main else { return Ok(()) };
        if op.until == 0 || op.until > t {
            return Ok(());
        }
        op.until = 0;
        core.acted.acted = true;
        if !code.is_done(&op.code) {
            return Ok(());
        }
        match std::mem::replace(&mut core.main, Main::Idle) {
            Main::Vector(op) => self.end_main(plan, code, core, pe, t, op, End::WHOLE),
            main => {
                core.main = main;
                Ok(())
            }
        }
    }

    /// Makes a pipe of a way.
    pub(crate) fn new_pipe(&mut self, plan: &Plan, route: Route, depth: u32) -> Outlet {
        let program = plan.program(route.number as usize);
        let input = program.zip(route.queue).map_or(0, |(program, queue)| {
            program.inputs.get(usize::from(queue)).map_or(0, |input| input.places)
        });
        let shared = self.shared_links(plan, &route);
        let pipe = Pipe::new(&plan.timing, route, depth + input, shared);
        self.bytes += size_of::<Pipe>() as u64;
        let id = self.unused.pop().unwrap_or(self.pipes.len() as u32);
        match self.pipes.get_mut(id as usize) {
            Some(old) => *old = pipe,
            None => self.pipes.push(pipe),
        }
        if let Some(incoming) = &mut self.incoming {
            incoming[route.dest as usize].push(id);
        }
        Outlet::Pipe(id)
    }
}
