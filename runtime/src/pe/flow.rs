//! Operations whose elements need not be looked at one by one: how the `flow` engine runs plain
//! operations on pipes.
//!
//! Such an operation goes by stretches ([`stretch`](super::stretch)). What is here: when it does,
//! what it promises to those who send to it, and how words come out of pipes otherwise.

use super::code::Code;
use super::core::{Core, Input, bits};
use super::main::Main;
use super::op::{Feeds, Op, Output};
use super::visit::Visit;
use crate::fabric::channel::{Outlet, Route};
use crate::fabric::pipe::{End, Inflow, Pipe};
use crate::fabric::ring::Slot;
use crate::fabric::router::RAMP;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::ways::Why;

/// Pipes for which a region makes room before it has any.
const MOST_AT_ONCE: usize = 1 << 16;
/// Words that an operation has at least for which a multicast is made.
const COPIED: u32 = 16;

/// Most elements of a stretch.
pub(crate) const LONGEST: u32 = 1 << 14;

impl<C: Code> Core<C> {
    /// Words of some colors, as bits, go into no pipe any more.
    pub(crate) fn close_pipes(&mut self, colors: u32) {
        for color in bits(colors.into()) {
            if let Some(outlet) = self.outlets.get_mut(color)
                && let Outlet::Pipe(id) = *outlet
            {
                *outlet = Outlet::Closing(id);
            }
        }
    }
}

impl<C: Code> Region<C> {
    /// The pipes that an operation's inputs come from, in their order; none if one comes
    /// otherwise.
    #[inline]
    pub(super) fn pipes_of(&self, pe: u32, op: &mut Op<C::Op>) -> Option<[Option<u32>; 2]> {
        if op.feeds.known == Some(self.closed) {
            return Some(op.feeds.pipes);
        }
        self.find_pipes(pe, op)
    }

    #[inline(never)]
    fn find_pipes(&self, pe: u32, op: &mut Op<C::Op>) -> Option<[Option<u32>; 2]> {
        let mut pipes = [None; 2];
        let inputs = op.inputs.into_iter().flatten();
        for (pipe, queue) in pipes.iter_mut().zip(inputs) {
            *pipe = Some(self.pipe_of(pe, queue)?);
        }
        op.feeds = Feeds { pipes, known: Some(self.closed) };
        Some(pipes)
    }

    /// Queues of an operation's inputs, and the pipes that hold words for them, as far as they have one.
    #[inline]
    fn feeds_of(&self, pe: u32, op: &Op<C::Op>) -> [Option<(u8, u32)>; 2] {
        let (mut feeds, known) = ([None; 2], op.feeds.known == Some(self.closed));
        for (at, &queue) in op.ends.inputs().iter().enumerate() {
            let pipe = if known { op.feeds.pipes[at] } else { self.pipe_of(pe, queue) };
            feeds[at] = pipe.map(|id| (queue, id));
        }
        feeds
    }

    /// The pipe that holds words for a queue.
    pub(crate) fn pipe_of(&self, pe: u32, queue: u8) -> Option<u32> {
        let incoming = &self.incoming.as_ref()?[pe as usize];
        incoming.iter().find(|inflow| inflow.queue == Some(queue)).map(|inflow| inflow.pipe)
    }

    /// An operation is bound to take what it has left, as far as nothing else can keep it from
    /// that: its output has places, and words of its other input are there.
    pub(super) fn promise(&mut self, at: &Visit<'_, C>, core: &Core<C>, op: &mut Op<C::Op>) {
        if op.needs.inputs == 0 {
            return;
        }
        let Some(pipes) = self.pipes_of(at.pe, op) else { return };
        let (done, length) = at.code.progress(&op.code);
        let mut left = length.map_or(LONGEST, |length| length - done);
        if let Some(output) = op.output {
            left = match core.outlet(output.color) {
                Outlet::Pipe(id) => left.min(self.room_of(id)),
                Outlet::Unknown
                | Outlet::Routers(_)
                | Outlet::Channel(_)
                | Outlet::Closing(_)
                | Outlet::Gathered(_)
                | Outlet::Merged(_) => 0,
            };
        }
        if let [Some(first), Some(second)] = pipes {
            left = left.min(self.pipes[first as usize].at_hand());
            left = left.min(self.pipes[second as usize].at_hand());
        }
        for id in pipes.into_iter().flatten() {
            self.open_pipe(id, left, at.t.max(self.now).max(op.from));
        }
    }

    /// From which cycle on the operation that words for a queue of a PE are promised to takes them, being ready from cycle
    /// `t` on.
    pub(crate) fn takes_from(&self, pe: u32, queue: u8, t: u64) -> u64 {
        let Some(core) = self.cores[pe as usize].as_deref() else { return t };
        let op = core.threads.iter().find(|op| op.needs.inputs >> queue & 1 != 0);
        let after_main = op.is_some_and(|op| !core.is_before_main(op.priority));
        if after_main { core.slots_from(t) } else { t }
    }

    fn open_pipe(&mut self, id: u32, words: u32, t: u64) {
        self.pipes[id as usize].open(words, t);
        if words != 0 {
            self.wake_sender(id, t);
        } else {
            self.tell_sender(id, None);
        }
    }

    /// An operation that does not go by a stretch now takes its next words from its queues. Words that
    /// have stayed in their pipes come down first, as far as they would stand in the queues by now; while there are others
    /// they stay, so that it goes by a stretch when it has taken these.
    pub(super) fn draw(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, op: &Op<C::Op>) {
        for queue in bits(op.needs.inputs & !core.arrived) {
            self.draw_queue(at, core, queue);
        }
    }

    /// The first word of a pipe leaves it for the input queue in cycle `t`.
    pub(crate) fn leave_pipe(&mut self, id: u32, t: u64) -> Slot {
        let pipe = &mut self.pipes[id as usize];
        let (Route { color, .. }, links) = (pipe.route(), pipe.links());
        let payload = pipe.front(1).first().copied().unwrap_or_default();
        let buffer = pipe.queue_one();
        self.keep_buffer(buffer);
        self.wake_sender(id, t);
        self.stats.hops += u64::from(links);
        Slot { stamp: t, payload, color, ..Slot::default() }
    }

    /// A word has left an input queue.
    pub(super) fn left_queue(&mut self, pe: u32, queue: usize, t: u64) {
        let Some(id) = self.pipe_of(pe, queue as u8) else { return };
        self.pipes[id as usize].leave_queue(t, self.now);
        self.wake_sender(id, t);
    }

    /// Words that leave their operation in a span of cycles go into a pipe; the number of the one
    /// after them.
    pub(crate) fn send_words(
        &mut self,
        plan: &Plan,
        id: u32,
        span: (u64, u64),
        words: Vec<u32>,
    ) -> u64 {
        if !self.pipes[id as usize].others().is_empty() {
            self.send_copies(plan, id, span, &words);
        }
        let pipe = &mut self.pipes[id as usize];
        if pipe.leads_abroad() {
            return self.send_abroad(id, span, words);
        }
        let was_empty = pipe.held() == 0;
        let route = pipe.route();
        let (end, buffer) = pipe.push(span, words);
        let arrival = pipe.arrival();
        self.keep_buffer(buffer);
        let Some(arrival) = arrival.filter(|_| was_empty) else { return end };
        // Words that have waited for more places may have left before.
        let arrival = arrival.max(self.now + 1);
        if route.link.is_some() {
            self.wakes.router(route.dest, span.1.max(arrival));
            return end;
        }
        let to_itself = route.dest == route.source && route.entry == RAMP;
        if to_itself || !self.stays(plan, route.dest, route.number, route.queue) {
            self.wakes.router(route.dest, arrival);
        }
        // Its own core is out on a visit.
        if to_itself || self.takes(plan, route.dest, route.queue) {
            let seen = arrival + plan.timing.ramp_down;
            self.wakes.core(route.dest, seen.max(self.hears_from(route.dest, route.queue)));
        }
        end
    }

    /// Keeps a buffer for other words, if there are not as many as PEs: those that come from other
    /// regions are used by nobody there.
    pub(crate) fn keep_buffer(&mut self, buffer: Option<Vec<u32>>) {
        if self.buffers.len() < self.cores.len() {
            self.buffers.extend(buffer);
        }
    }

    /// Whether an operation of a PE waits for words from a pipe to a queue, to take them by stretches, or
    /// they start data tasks.
    fn takes(&self, plan: &Plan, pe: u32, queue: Option<u8>) -> bool {
        let core = self.cores[pe as usize].as_deref();
        let pulls = |core: &Core<C>| plan.programs[usize::from(core.at.program)].pulls;
        let waits = |core: &Core<C>| core.flowing_in & !core.busy_in | pulls(core) & !core.owned_in;
        core.zip(queue).is_some_and(|(core, queue)| waits(core) >> queue & 1 != 0)
    }

    /// Whether words for a queue of a PE stay in their pipe until an operation takes them: nobody
    /// sees whether they stand in the queue.
    pub(crate) fn stays(&self, plan: &Plan, pe: u32, number: u32, queue: Option<u8>) -> bool {
        let Some(queue) = queue else { return false };
        let Some(program) = plan.program(number as usize) else { return false };
        match self.cores[pe as usize].as_deref() {
            // A core that a word makes is made by its router.
            None => program.quiet >> queue & 1 != 0,
            Some(core) if !core.bound.are_planned() || core.is_flushing() => false,
            Some(core) => {
                let stay = (program.quiet | program.pulls) & !core.owned_in;
                (core.flowing_in | stay) >> queue & 1 != 0
            }
        }
    }

    /// Whether an operation can go by stretches.
    pub(super) fn may_flow(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &Op<C::Op>,
    ) -> bool {
        let streams = op.needs.inputs | op.needs.output != 0;
        let simple = op.is_plain() && at.code.is_plain(&op.code) && core.bound.are_planned();
        if !streams || !simple || op.commands() || at.plan.track {
            return false;
        }
        op.output.is_none_or(|output| match self.way_of(at, core, op, output) {
            Outlet::Pipe(_) => true,
            Outlet::Gathered(sender) => op.needs.inputs == 0 && self.line_takes(sender).is_some(),
            Outlet::Unknown
            | Outlet::Routers(_)
            | Outlet::Channel(_)
            | Outlet::Closing(_)
            | Outlet::Merged(_) => false,
        })
    }

    /// The way of an operation's words. Those that routers copy get a pipe to each core once there are some more of
    /// them: to make that takes as long as some words through a router.
    fn way_of(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &Op<C::Op>,
        Output { color, queue, .. }: Output,
    ) -> Outlet {
        let outlet = self.known_outlet(at.plan, core, at.pe, color, queue.into());
        if outlet != Outlet::Routers(Why::FanOut) {
            return outlet;
        }
        let (done, length) = at.code.progress(&op.code);
        if length.is_some_and(|length| length - done < COPIED) {
            return outlet;
        }
        let depth = at.program.outputs[usize::from(queue)].places;
        let Some(multicast) = self.multicast(at.plan, at.pe, (color, depth)) else { return outlet };
        *core.outlets.entry(color.into()) = multicast;
        multicast
    }

    /// An operation has begun: it goes by stretches if it can.
    pub(super) fn start_flow(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, op: &mut Op<C::Op>) {
        self.ways.stretches.operations += u64::from(op.needs.inputs | op.needs.output != 0);
        self.go_by_stretches(at, core, op);
    }

    /// An operation that may take its first word goes by stretches, if it can.
    pub(super) fn go_by_stretches(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
    ) {
        let soon = at.t.max(self.now + 1);
        let may_flow = self.may_flow(at, core, op);
        if !may_flow || self.pipes_of(at.pe, op).is_none() {
            if op.needs.inputs != 0 {
                self.draw(at, core, op);
                self.unblock(at.pe, soon);
            }
            if may_flow {
                core.awaits_pipes |= op.needs.inputs;
            }
            return;
        }
        op.flows = true;
        self.ways.stretches.flowing += 1;
        core.flowing_in |= op.needs.inputs;
        core.flowing_out |= op.needs.output;
        self.promise(at, core, op);
        for (_, id) in self.feeds_of(at.pe, op).into_iter().flatten() {
            if let Some(arrival) = self.pipes[id as usize].arrival() {
                core.begins = core.begins.min((arrival + at.plan.timing.ramp_down).max(soon));
            }
        }
    }

    /// Operations that take words one by one, as no pipe led to their queues when they began, go by stretches from
    /// now on if one does.
    pub(super) fn start_later(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) {
        let found = bits(core.awaits_pipes)
            .filter(|&queue| self.pipe_of(at.pe, queue as u8).is_some())
            .fold(0, |found, queue| found | 1 << queue);
        if found == 0 {
            return;
        }
        let waits =
            |op: &Op<C::Op>| !op.flows && !op.held_up && !op.ended && op.needs.inputs & found != 0;
        if let Main::Vector(op) = &core.main
            && waits(op)
            && let Main::Vector(mut op) = std::mem::replace(&mut core.main, Main::Idle)
        {
            core.awaits_pipes &= !op.needs.inputs;
            self.go_by_stretches(at, core, &mut op);
            core.main = Main::Vector(op);
        }
        let ops: Vec<u8> =
            core.threads.iter().filter(|op| waits(op)).map(|op| op.microthread).collect();
        for id in ops {
            let Some(mut op) = core.threads.take(id) else { continue };
            core.awaits_pipes &= !op.needs.inputs;
            self.go_by_stretches(at, core, &mut op);
            core.threads.put(op);
        }
    }

    /// An operation has ended in cycle `t`: what is left comes down word by word.
    pub(super) fn end_flow(
        &mut self,
        plan: &Plan,
        core: &mut Core<C>,
        (pe, t): (u32, u64),
        op: &mut Op<C::Op>,
    ) {
        op.flows = false;
        let t = t.max(self.now);
        core.flowing_in &= !op.needs.inputs;
        core.flowing_out &= !op.needs.output;
        if op.needs.inputs == 0 {
            return;
        }
        for (queue, id) in self.feeds_of(pe, op).into_iter().flatten() {
            self.open_pipe(id, 0, t);
            let quiet = plan.programs[usize::from(core.at.program)].quiet >> queue & 1 != 0;
            if !quiet && self.pipes[id as usize].held() != 0 {
                self.wakes.router(pe, t + 1);
            }
        }
    }

    /// What operations that go by stretches see of their pipes in cycle `t`.
    pub(super) fn look_at_pipes(&mut self, plan: &Plan, core: &mut Core<C>, pe: u32, t: u64) {
        for queue in bits(core.flowing_in & !core.arrived) {
            let Some(id) = self.pipe_of(pe, queue as u8) else { continue };
            let Some(arrival) = self.pipes[id as usize].arrival() else { continue };
            let from = arrival + plan.timing.ramp_down;
            core.sight.words |= u64::from(from <= t) << queue;
            if from > t {
                core.begins = core.begins.min(from);
            }
        }
        // One that goes word by word for the sake of others keeps its pace.
        let goes_on = match &core.main {
            Main::Vector(op) if op.by_words && !op.stretch.is_on() => op.needs.output,
            _ => 0,
        };
        core.sight.full |= core.leaving & core.flowing_out & !goes_on;
        let out = core.flowing_out & !core.leaving;
        // What is in a stretch wants places when that is over.
        let mut waits = out;
        if out != 0 {
            for id in bits(core.stretches()) {
                let on = core.streamed(id).filter(|op| op.stretch.over() > t);
                waits &= !on.map_or(0, |op| op.needs.output);
            }
        }
        for queue in bits(out) {
            let Some(sent) = core.outputs.get(queue).and_then(|output| output.sent) else {
                continue;
            };
            let Outlet::Pipe(id) = core.outlet(sent.color) else { continue };
            if self.room_of(id) == 0 {
                if waits >> queue & 1 != 0 {
                    self.each_pipe(id, |pipe| pipe.want(0));
                }
                core.sight.full |= 1 << queue;
            }
        }
    }

    /// What commanded routers on a way has left it, if it has: its pipe takes words again.
    pub(super) fn reopen(
        &mut self,
        plan: &Plan,
        core: &mut Core<C>,
        (queue, color): (u8, u8),
        id: u32,
    ) {
        if !self.pipes[id as usize].others().is_empty() {
            if !self.is_way_used(id) {
                // Copies of commands and of words are not told apart in time: all of them go by routers from now on.
                self.end_multicast(id);
                *core.outlets.entry(color.into()) = Outlet::Routers(Why::FanOut);
            }
            return;
        }
        let route = self.pipes[id as usize].route();
        let routed = route.link.is_some() && self.routed >> color & 1 != 0
            || self.rewritten >> color & 1 != 0;
        let waits = self.pipes[id as usize].is_used()
            || core.outputs.get(usize::from(queue)).is_some_and(|output| !output.ring.is_empty());
        // What stands in routers of another region cannot be seen.
        if !routed
            && !waits
            && route.borders == 0
            && self.is_clear(plan, &route)
            && let Some(queued) = self.words_at_end(&route, Some(core))
        {
            self.pipes[id as usize].begin_behind(queued);
            *core.outlets.entry(color.into()) = Outlet::Pipe(id);
        }
    }

    /// Makes a pipe of a way, between an output queue of so many places and a queue that has so many words.
    pub(crate) fn new_pipe(
        &mut self,
        plan: &Plan,
        route: Route,
        (depth, queued): (u32, u32),
    ) -> Outlet {
        let input = self.input_places(plan, &route);
        let shared = self.number_links(self.shared_links(plan, &route));
        let is_abroad = route.region != self.id;
        let end = is_abroad.then_some(End::Sender);
        let mut pipe = Pipe::new(&plan.timing, route, (depth, input), end, shared);
        if !is_abroad {
            pipe.begin_behind(queued);
        }
        let id = self.add_pipe(pipe);
        if is_abroad {
            self.tell_opened(id, depth + input);
        }
        Outlet::Pipe(id)
    }

    /// Words in the queue at the end of a way, none of another region; not if a control wavelet is among them: those
    /// behind it wait for whoever hears it. `sender`: the core at its beginning, which is on a visit.
    pub(crate) fn words_at_end(&self, route: &Route, sender: Option<&Core<C>>) -> Option<u32> {
        if route.region != self.id {
            return Some(0);
        }
        let sender = sender.filter(|_| route.dest == route.source);
        let core = sender.or(self.cores[route.dest as usize].as_deref());
        let input =
            core.zip(route.queue).and_then(|(core, queue)| core.inputs.get(usize::from(queue)));
        input.map_or(Some(0), |Input { ring, .. }| (!ring.is_marked()).then_some(ring.len() as u32))
    }

    /// Places of the queue at the end of a way.
    pub(crate) fn input_places(&self, plan: &Plan, route: &Route) -> u32 {
        let program = plan.program(route.number as usize);
        program.zip(route.queue).map_or(0, |(program, queue)| {
            program.inputs.get(usize::from(queue)).map_or(0, |input| input.places)
        })
    }

    /// The numbers of links that may be shared, given as four times the PE and the port.
    pub(crate) fn number_links(&mut self, mut links: Box<[u32]>) -> Box<[u32]> {
        for link in &mut links {
            let next = self.links.len() as u32;
            *link = *self.links.entry(*link).or_insert(next);
        }
        self.loads.resize_with(self.links.len(), Vec::new);
        links
    }

    /// Adds a pipe, or its end.
    pub(crate) fn add_pipe(&mut self, pipe: Pipe) -> u32 {
        let (route, abroad) = (pipe.route(), pipe.leads_abroad());
        let id = self.keep_pipe(pipe);
        if let Some(incoming) = self.incoming.as_mut().filter(|_| !abroad) {
            incoming[route.dest as usize].push(Inflow { pipe: id, queue: route.queue });
            // Operations may have waited for it.
            self.wakes.core(route.dest, self.now + 1);
        }
        id
    }

    /// Keeps a pipe of whose end nobody is told.
    pub(crate) fn keep_pipe(&mut self, pipe: Pipe) -> u32 {
        let id = self.unused.pop().unwrap_or(self.pipes.len() as u32);
        match self.pipes.get_mut(id as usize) {
            Some(old) => *old = pipe,
            None => {
                self.bytes += pipe.bytes();
                if self.pipes.len() == self.pipes.capacity() {
                    // A pipe for each core is usual. Memory that is not used is not touched; what grows is touched anew.
                    let more = self.pipes.len().max(self.cores.len().min(MOST_AT_ONCE));
                    self.pipes.reserve_exact(more);
                }
                self.pipes.push(pipe);
            }
        }
        id
    }
}
