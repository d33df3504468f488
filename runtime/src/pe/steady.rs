//! Steady cores: those that do an element of the same operation in every cycle, taking a word and
//! sending one, as in chains of reductions and in streams. Nobody looks at them.
//!
//! A core becomes steady in a cycle in which that operation alone can use its slots, the words that it
//! takes come from a steady core (or it takes none), and those that it sends go over a link
//! that is even and whose receiver has taken a word in every cycle of late (`fabric::link`). So chains become
//! steady from their sources on. What it does is done when somebody wants to know
//! ([`Region::advance`]): the elements of many cycles as a block. It stops being steady
//! ([`Region::unsteady`]) with the last element but one, or when anything else comes to pass: a wake, a word
//! from elsewhere, a receiver that takes no word in some cycle, a cut. If it sends no more, its receiver is steady for
//! as long as words are under way. Nothing runs ahead: all is as of the region's cycle.
//!
//! Invariants: a steady core has been through the cycles before `done`; its queues, and those at the
//! other ends of its links, are as `fabric::link` says; its sender is steady, or `end` is
//! not after the last of the words under way; its receiver is steady, or does an element in
//! every cycle and is looked at after each visit ([`Region::watch_fed`]). A word that goes up a ramp, and a
//! place that becomes free, are seen elsewhere in the next cycle at the earliest, so it is soon enough when
//! the cycle is over.

use super::code::Code;
use super::core::{Core, bits};
use super::main::Main;
use super::op::{Ends, Op, Output};
use crate::fabric::channel::{Outlet, Route};
use crate::fabric::link::Link;
use crate::sched::plan::Plan;
use crate::sched::record::MAIN;
use crate::sched::region::Region;

/// Visits in a row in which a core did something in every cycle, before it is worth a look.
pub(super) const BUSY: u8 = 3;
/// Fewest elements that are put off, and most: that also bounds how many cores in a row
/// [`Region::advance`] calls itself for.
const LEAST: u64 = 16;
const MOST: u64 = 1 << 12;

/// What a steady core does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steady {
    /// It has been through the cycles before.
    done: u64,
    /// It is looked at then.
    end: u64,
    /// The operation's microthread, or the main thread.
    thread: u8,
    input: Option<u32>,
    output: Option<u32>,
}

/// The operation that alone can use slots.
struct Sole {
    thread: u8,
    input: Option<u8>,
    output: Option<Output>,
    left: u64,
}

impl<C: Code> Core<C> {
    /// The operation that alone can use the slots as long as words come to no other queue, if it is
    /// made of plain elements with a queue at least.
    fn sole(&self, code: &C) -> Option<Sole> {
        let (thread, op) = match &self.main {
            Main::Vector(op) if !self.threads.any() => (MAIN, &**op),
            Main::Idle if self.activated & !self.task_blocked == 0 => self.sole_thread()?,
            Main::Launch(op) if !self.threads.is_free(op.microthread) => self.sole_thread()?,
            Main::Idle
            | Main::Vector(_)
            | Main::Ready { .. }
            | Main::Counting { .. }
            | Main::Launch(_) => return None,
        };
        let plain = op.is_plain() && code.is_plain(&op.code) && !op.commands() && !op.ended;
        let quiet = self.due.is_empty()
            && self.bound.are_planned()
            && !self.registers.tears()
            && !self.is_flushing();
        // A word that waits elsewhere, or goes up the ramp from elsewhere.
        let others = self.arrived & !op.needs.inputs | self.leaving & !op.needs.output;
        let Ends { output, .. } = op.ends;
        let input = match *op.ends.inputs() {
            [] => None,
            [queue] => Some(queue),
            _ => return None,
        };
        let (done, length) = code.progress(&op.code);
        let left = length.map_or(MOST, |length| u64::from(length - done)).min(MOST);
        let fits = left >= LEAST && (input.is_some() || output.is_some());
        let calm = plain && quiet && others | self.sight.controls == 0 && code.is_calm(&self.state);
        (calm && fits).then_some(Sole { thread, input, output, left })
    }

    /// Whether nobody looks at what it does in every cycle.
    pub(crate) fn is_steady(&self) -> bool {
        self.steady.is_some()
    }

    /// The microthread that issued last, if all others wait for words.
    fn sole_thread(&self) -> Option<(u8, &Op<C::Op>)> {
        let running = self.threads.calm()? & !self.thread_blocked;
        let id = self.last_thread;
        let others = running & !(1 << id);
        let waits = bits(others).all(|other| self.threads.needs(other as u8).0.inputs != 0);
        let op = self.threads.get(id).filter(|_| running >> id & 1 != 0 && waits)?;
        Some((id, op))
    }

    /// The cycle before which it has been through all, and the words that it has taken from a queue.
    fn taken(&self, queue: Option<u8>) -> (u64, u32) {
        let queue = usize::from(queue.unwrap_or_default());
        (self.until, self.inputs.get(queue).map_or(0, |input| input.taken))
    }
}

impl<C: Code> Region<C> {
    /// A core that is about to be visited in cycle `now` becomes steady, if all is as it must be.
    pub(super) fn become_steady(&mut self, plan: &Plan, code: &C, pe: u32, now: u64) -> bool {
        let Some(core) = self.cores[pe as usize].as_deref_mut() else { return false };
        core.busy_visits = 0;
        if core.until != now || self.flow || self.watch.to_mesh != 0 || plan.track {
            return false;
        }
        let Some(sole) = core.sole(code) else { return false };
        core.busy_visits = BUSY - 1;
        let outlet = sole.output.map(|output| core.outlet(output.color));
        let output = match outlet {
            Some(Outlet::Channel(id)) => Some(id),
            Some(_) => return false,
            None => None,
        };
        if !self.cuts.is_empty() || !self.is_at_peace(pe, sole.input) {
            return false;
        }
        let input = self.landings[pe as usize].sole(sole.input).flatten();
        if !input.is_none_or(|id| self.may_join(plan, code, (id, pe), now)) {
            return false;
        }
        let queue = sole.output.map_or(0, |output| output.queue);
        if !output.is_none_or(|id| self.may_feed(plan, code, (id, queue), now)) {
            return false;
        }
        if let Some(id) = input {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Joined);
            self.join_link(id);
        }
        if let Some(id) = output {
            self.open_link(id, queue, now);
        }
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::Steady);
        // What ends the operation is not put off.
        let end = now + sole.left - 1;
        self.landings[pe as usize].awake = false;
        self.wakes.end(pe, end);
        self.steady += 1;
        if let Some(core) = self.cores[pe as usize].as_deref_mut() {
            let steady = Steady { done: now, end, thread: sole.thread, input, output };
            core.steady = Some(Box::new(steady));
        }
        true
    }

    /// Whether no words but those for a queue come to a core.
    fn is_at_peace(&self, pe: u32, queue: Option<u8>) -> bool {
        let router = self.routers[pe as usize].as_deref();
        let sole = self.landings.get(pe as usize).and_then(|landing| landing.sole(queue));
        sole.is_some() && !router.is_some_and(|router| router.is_busy())
    }

    /// Whether a core may become steady that takes the words of a channel.
    fn may_join(&mut self, plan: &Plan, code: &C, (id, pe): (u32, u32), now: u64) -> bool {
        let Some(link) = self.channels[id as usize].link.as_deref() else { return false };
        let (fed, output) = (link.is_fed(), link.output);
        if !fed || now == 0 {
            return false;
        }
        self.descend(plan, code, pe, now - 1);
        let visible =
            self.cores[pe as usize].as_deref().zip(self.channels[id as usize].route().queue);
        self.landings[pe as usize].is_at(now)
            && visible
                .is_some_and(|(core, queue)| core.inputs[usize::from(queue)].ring.first() <= now)
            && self.is_even(plan, id, output, now)
    }

    /// Whether a core may become steady that sends by a channel.
    fn may_feed(&mut self, plan: &Plan, code: &C, (id, output): (u32, u8), now: u64) -> bool {
        let channel = &self.channels[id as usize];
        let route = channel.route();
        let dest = self.cores[route.dest as usize].as_deref();
        let awake = dest.is_some_and(|core| core.steady.is_none() && !core.dead);
        if channel.link.is_some() || route.dest == route.source || !awake || now == 0 {
            return false;
        }
        if !self.is_at_peace(route.dest, route.queue) {
            return false;
        }
        self.descend(plan, code, route.dest, now - 1);
        self.landings[route.dest as usize].awake && self.is_even(plan, id, output, now)
    }

    /// Does what a steady core does before cycle `t`.
    pub(crate) fn advance(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let steady =
            self.cores[pe as usize].as_deref().and_then(|core| core.steady.as_deref().copied());
        let Some(steady) = steady.filter(|steady| steady.done < t) else { return };
        let mut words = self.buffers.pop().unwrap_or_default();
        if let Some(id) = steady.input {
            self.words_of(plan, code, (id, pe), (steady.done, t), &mut words);
        }
        let Some(core) = self.cores[pe as usize].as_deref_mut() else { return };
        let count = t - steady.done;
        let mut sent = self.buffers.pop().unwrap_or_default();
        let op = match &mut core.main {
            Main::Vector(op) if steady.thread == MAIN => Some(&mut **op),
            _ => core.threads.get_mut(steady.thread),
        };
        if let Some(op) = op {
            let inputs = [&words[..], &[]];
            if let Some(tape) = &mut self.tape {
                tape.elements(pe, op, count as u32);
            }
            let block =
                code.block(core.at, &mut core.state, &mut op.code, inputs, count as u32, &mut sent);
            debug_assert!(block.trap.is_none() && u64::from(block.done) == count);
        }
        if let Some(it) = &mut core.steady {
            it.done = t;
        }
        core.until = t;
        let number = core.at.number;
        self.count_of(number, steady.thread, steady.done, count);
        self.active_until = self.active_until.max(t);
        if let Some(link) = steady.output.and_then(|id| self.channels[id as usize].link.as_mut()) {
            link.send(&sent);
        }
        for mut buffer in [words, sent] {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// The words that a steady core takes in cycles `from` to `t`.
    fn words_of(
        &mut self,
        plan: &Plan,
        code: &C,
        (id, pe): (u32, u32),
        (from, t): (u64, u64),
        words: &mut Vec<u32>,
    ) {
        let channel = &mut self.channels[id as usize];
        let (route, count) = (channel.route(), (t - from) as usize);
        let Some(link) = &mut channel.link else { return };
        if link.sender {
            if link.words.len() < count {
                self.advance(plan, code, route.source, t);
            }
            if let Some(link) = &mut self.channels[id as usize].link {
                link.words.take(count, words);
            }
            return;
        }
        let since = link.since.max(from);
        link.words.take((since.min(t) - from) as usize, words);
        link.since = link.since.max(t);
        let queue = usize::from(route.queue.unwrap_or_default());
        for cycle in since..t {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Drained);
            self.descend_now(plan, code, pe, cycle);
            let Some(core) = self.cores[pe as usize].as_deref_mut() else { return };
            debug_assert!(core.inputs[queue].ring.first() <= cycle);
            words.push(core.pop(queue, cycle, plan.timing.credit).0.payload);
        }
    }

    /// A core is steady no more from cycle `t` on; the caller has it visited then.
    pub(crate) fn unsteady(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let steady =
            self.cores[pe as usize].as_deref().and_then(|core| core.steady.as_deref().copied());
        let Some(steady) = steady else { return };
        #[cfg(test)]
        if t < steady.end {
            crate::sched::reached::note(crate::sched::reached::Reached::Disturbed);
        }
        self.wakes.call_off(pe, steady.end);
        if let Some(id) = steady.input {
            let channel = &self.channels[id as usize];
            let (source, joint) = (channel.route().source, channel.link.as_deref());
            if joint.is_some_and(|link| link.sender) {
                self.advance(plan, code, source, t);
            }
        }
        self.advance(plan, code, pe, t);
        if let Some(id) = steady.input {
            self.leave_link(id, t, false);
        }
        if let Some(id) = steady.output {
            self.feed_link(plan, code, id, t);
            self.leave_link(id, t, true);
        }
        self.steady -= 1;
        if let Some(core) = self.cores[pe as usize].as_deref_mut() {
            core.steady = None;
            core.busy_visits = 0;
            core.until = t;
        }
    }

    /// One of the ends of a link is steady no more from cycle `t` on.
    fn leave_link(&mut self, id: u32, t: u64, sender: bool) {
        let Some((sends, takes)) =
            self.channels[id as usize].link.as_deref().map(|it| (it.sender, it.receiver))
        else {
            return;
        };
        if !(sends && takes) {
            let channel = &mut self.channels[id as usize];
            channel.link = None;
            self.landings[channel.route().dest as usize].links -= 1;
            return;
        }
        let under_way = self.settle_link(id, t);
        let channel = &mut self.channels[id as usize];
        let Route { dest, queue, .. } = channel.route();
        if let Some(link) = &mut channel.link {
            (link.sender, link.receiver) = (!sender, sender);
            link.taken = self.cores[dest as usize].as_deref().map_or((t, 0), |it| it.taken(queue));
        }
        if !sender {
            return;
        }
        if let Some(core) = self.cores[dest as usize].as_deref_mut()
            && let Some(steady) = &mut core.steady
            && steady.end > t + under_way
        {
            self.wakes.call_off(dest, steady.end);
            steady.end = t + under_way;
            self.wakes.end(dest, steady.end);
        }
    }

    /// The sender of a channel's words is steady from cycle `now` on.
    fn open_link(&mut self, id: u32, output: u8, now: u64) {
        let route = self.channels[id as usize].route();
        let dest = self.cores[route.dest as usize].as_deref();
        let taken = dest.map_or((now, 0), |dest| dest.taken(route.queue));
        self.channels[id as usize].link = Some(Box::new(Link::new(output, now, taken)));
        self.landings[route.dest as usize].links += 1;
    }

    /// A core whose words a steady one may send has been visited.
    pub(super) fn watch_fed(&mut self, pe: u32) {
        let Some(landing) = self.landings.get(pe as usize) else { return };
        let Some(core) = self.cores[pe as usize].as_deref() else { return };
        let mut stalls = core.dead || !landing.awake;
        let mut fed = false;
        for id in landing.channels() {
            let channel = &mut self.channels[id as usize];
            let queue = channel.route().queue;
            let Some(link) = channel.link.as_deref_mut().filter(|link| link.is_fed()) else {
                continue;
            };
            let (before, now) =
                (std::mem::replace(&mut link.taken, core.taken(queue)), core.taken(queue));
            fed = true;
            stalls |= u64::from(now.1.wrapping_sub(before.1)) != now.0 - before.0;
        }
        if fed && stalls {
            self.disturbed.push(pe);
        }
    }

    /// Those that are steady at a PE at which something else comes to pass: the PE's core, and then
    /// the senders of its words.
    fn next_disturbed(&self, pe: u32) -> Option<u32> {
        let is_steady = |pe: u32| {
            let core = self.cores[pe as usize].as_deref();
            core.is_some_and(Core::is_steady)
        };
        if is_steady(pe) {
            return Some(pe);
        }
        let mut ends = self.landings.get(pe as usize)?.channels();
        ends.find_map(|id| {
            let channel = &self.channels[id as usize];
            let fed = channel.link.as_deref().is_some_and(Link::is_fed);
            fed.then_some(channel.route().source)
        })
    }

    /// What was disturbed is steady no more from cycle `t` on, before which all have passed.
    pub(crate) fn disturb(&mut self, plan: &Plan, code: &C, t: u64) {
        let mut disturbed = std::mem::take(&mut self.disturbed);
        for pe in disturbed.drain(..) {
            if self.cores[pe as usize].as_deref().is_some_and(Core::takes_turns) {
                self.wake_up(plan, code, pe, t);
            }
            while let Some(steady) = self.next_disturbed(pe) {
                self.unsteady(plan, code, steady, t);
                self.wakes.core(steady, t);
            }
        }
        self.disturbed = disturbed;
    }

    /// A router is about to be visited in cycle `now`; `busy`: it holds words. Whether that has been
    /// done: a source waits for a place in a channel from which a steady core takes words.
    pub(crate) fn visit_steady(
        &mut self,
        plan: &Plan,
        code: &C,
        (pe, busy): (u32, bool),
        now: u64,
    ) -> bool {
        if !busy {
            let steady =
                self.cores[pe as usize].as_deref().and_then(|core| core.steady.as_deref().copied());
            let Some(steady) = steady else { return false };
            let link = steady.input.and_then(|id| self.channels[id as usize].link.as_deref());
            if link.is_some_and(|link| !link.sender) {
                self.advance(plan, code, pe, now);
                self.descend_now(plan, code, pe, now);
            }
            return true;
        }
        while let Some(steady) = self.next_disturbed(pe) {
            self.unsteady(plan, code, steady, now);
            self.woken.push(steady);
        }
        false
    }

    /// A channel is about to be cut in cycle `t`.
    pub(crate) fn leave_channel(&mut self, plan: &Plan, code: &C, id: u32, t: u64) {
        let channel = &self.channels[id as usize];
        if channel.link.is_none() && channel.rhythm.is_none() {
            return;
        }
        let route = channel.route();
        for pe in [route.source, route.dest] {
            self.wake_up(plan, code, pe, t);
        }
    }

    /// No core is steady, or takes turns, any more from cycle `t` on.
    pub(crate) fn leave_all(&mut self, plan: &Plan, code: &C, t: u64) {
        for pe in 0..self.cores.len() as u32 {
            if self.steady == 0 && self.turning == 0 {
                return;
            }
            let Some(core) = self.cores[pe as usize].as_deref() else { continue };
            let (was_steady, took_turns) = (core.is_steady(), core.takes_turns());
            self.wake_up(plan, code, pe, t);
            let Some(core) = self.cores[pe as usize].as_deref_mut() else { continue };
            // Nothing has come to pass: it is looked at at once.
            if was_steady {
                core.busy_visits = BUSY;
            }
            if took_turns {
                core.calm_visits = core.patience;
            }
        }
    }

    /// A core is not steady, and takes no turns, any more from cycle `t` on, in which it is visited.
    fn wake_up(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let Some(core) = self.cores[pe as usize].as_deref() else { return };
        if core.takes_turns() {
            self.leave_turns(plan, code, pe, t);
        } else if core.is_steady() {
            self.unsteady(plan, code, pe, t);
        } else {
            return;
        }
        self.wakes.core(pe, t);
    }
}
