//! A core as `sched::rounds` sees it: its state in time, and how it is some rounds later.

use super::code::Code;
use super::core::{Core, Input, Outgoing};
use super::main::{Main, Next};
use super::op::Op;
use super::sparse::Sparse;
use crate::fabric::channel::Outlet;
use crate::fabric::ring::NEVER;
use crate::sched::rounds::Noter;

impl<C: Code> Core<C> {
    /// Whether it holds no words that are to go out, and works on nothing that commands routers.
    pub(crate) fn is_still(&self) -> bool {
        let mut operations = self.threads.iter().chain(self.main.operation());
        !operations.any(Op::commands)
            && self.outputs.iter().all(|(_, output)| output.ring.is_empty())
    }

    /// Notes its state before a cycle.
    pub(crate) fn note(&self, code: &C, noter: &mut Noter<'_>) {
        // What is left out is a hint, the code's own, `exact`'s while it takes turns, or noted below.
        let Core {
            twice: _,
            until: _,
            alone: _,
            steady,
            busy_visits: _,
            in_turn,
            calm_visits: _,
            patience: _,
            watched: _,
            at: _,
            state,
            inputs,
            outputs,
            arrived: _,
            leaving: _,
            full: _,
            departs: _,
            outlets: _,
            retry: _,
            sight: _,
            main: _,
            main_from,
            tasks_ahead: _,
            later: _,
            task,
            segment: _,
            threads,
            owned_in,
            owned_out,
            flowing_in: _,
            flowing_out: _,
            awaits_pipes: _,
            busy_in: _,
            unshared: _,
            delayed: _,
            steps: _,
            begins: _,
            last_thread,
            picked,
            activated,
            task_blocked,
            channel_blocked,
            thread_blocked,
            raised_tasks,
            raised_channels,
            main_priority,
            flushes: _,
            turns,
            bound,
            transform_mask,
            ramp_down,
            due,
            clock: _,
            registers,
            dead,
            acted: _,
        } = self;
        noter.only(steady.is_none() && in_turn.is_none() && !dead);
        noter.only(bound.are_planned() && !self.is_flushing() && !registers.tears());
        noter.only(code.is_calm(state));
        note_queues(inputs, outputs, noter);
        if noter.flow {
            self.note_flow(noter);
        }
        self.note_main(code, noter);
        for op in threads.iter() {
            noter.value(op.microthread);
            op.note(code, noter);
        }
        noter.from(*main_from);
        noter.value((task, owned_in, owned_out, last_thread, picked));
        noter.value((activated, task_blocked, channel_blocked, thread_blocked));
        noter.value((raised_tasks, raised_channels, *main_priority as u8));
        noter.value((&**turns, transform_mask, ramp_down));
        for (cycle, completion) in due {
            noter.cycle(*cycle);
            noter.value((completion.microthread, completion.activate, completion.task));
            noter.only(completion.unblock.is_none());
        }
    }

    /// Notes what the `flow` engine knows of it besides.
    fn note_flow(&self, noter: &mut Noter<'_>) {
        self.steps.note(noter);
        noter.value((self.flowing_in, self.flowing_out, self.awaits_pipes, self.busy_in));
        noter.value((self.unshared, self.delayed));
        noter.cycle(self.begins);
        noter.stamp(self.main_from);
        if self.main_from > noter.now() {
            self.tasks_ahead.note(noter);
        }
        self.outlets.iter().for_each(|(color, outlet)| note_outlet(color, *outlet, noter));
        self.later.iter().for_each(|act| act.note(noter));
    }

    /// Notes where its main thread stands.
    fn note_main(&self, code: &C, noter: &mut Noter<'_>) {
        match &self.main {
            Main::Idle => noter.value(0),
            Main::Ready { from, next } => {
                match *next {
                    Next::Start { .. } => noter.value(1),
                    Next::Resume { value } => noter.value((5, value)),
                }
                noter.from(*from);
            }
            Main::Counting { slot, total, next: _, flag, asleep } => {
                let passed = asleep.map_or(0, |since| noter.now() - since);
                noter.value((2, u64::from(*slot) + passed, total, flag));
                let acts = self.segment.acts.get(*flag as usize..).unwrap_or_default();
                acts.iter().for_each(|act| noter.value((act.slot, format!("{:?}", act.what))));
                noter.stop(&self.segment.stop);
            }
            Main::Vector(op) => {
                noter.value(3);
                op.note(code, noter);
            }
            Main::Launch(op) => {
                noter.value(4);
                op.note(code, noter);
            }
        }
    }

    /// It is as it was, so many cycles later; counters are taken in the order in which they were noted.
    pub(crate) fn put_off(
        &mut self,
        flow: bool,
        by: u64,
        counters: &mut impl Iterator<Item = u64>,
    ) {
        self.until += by;
        // What has been seen of it is of cycles before.
        self.watched = None;
        self.departs = later(self.departs, by);
        self.main_from = later(self.main_from, by);
        for input in &mut self.inputs {
            input.ring.put_off(by);
            // None has come in a round if none came in the first.
            let came = counters.next().is_some_and(|grown| grown != 0);
            input.last = input.last.map(|last| if came { last + by } else { last });
            input.taken = input.taken.wrapping_add(counters.next().unwrap_or_default() as u32);
        }
        for (_, output) in self.outputs.iter_mut() {
            output.ring.put_off(by);
            output.held = later(output.held, by);
            let count = counters.next().unwrap_or_default();
            if let Some(sent) = &mut output.sent {
                sent.words = sent.words.wrapping_add(count);
            }
        }
        if flow {
            let [since, wanted] = [(); 2].map(|()| counters.next().unwrap_or_default());
            self.steps.put_off(since, wanted);
            self.tasks_ahead.put_off(by);
            self.begins = later(self.begins, by);
        }
        self.later.iter_mut().for_each(|act| act.put_off(by));
        self.threads.iter_mut().for_each(|op| op.put_off(by));
        match &mut self.main {
            Main::Ready { from, .. } => *from += by,
            Main::Counting { asleep: Some(since), .. } => *since += by,
            Main::Vector(op) | Main::Launch(op) => op.put_off(by),
            Main::Idle | Main::Counting { .. } => {}
        }
        for (cycle, _) in &mut self.due {
            *cycle += by;
        }
    }
}

/// Notes what stands in queues.
fn note_queues(inputs: &[Input], outputs: &Sparse<Outgoing>, noter: &mut Noter<'_>) {
    for Input { ring, last, taken, is_read } in inputs {
        noter.ring(ring, true);
        noter.value(is_read);
        noter.counter(last.map_or(0, |last| last + 1));
        noter.counter((*taken).into());
    }
    for (queue, Outgoing { ring, held: _, sent }) in outputs.iter() {
        noter.value(queue);
        noter.ring(ring, false);
        noter.counter(sent.map_or(0, |sent| sent.words));
    }
}

/// Notes the way of a color's words, as the `flow` engine knows it.
fn note_outlet(color: usize, outlet: Outlet, noter: &mut Noter<'_>) {
    match outlet {
        Outlet::Unknown => noter.value((color, 0)),
        Outlet::Routers(_) => noter.value((color, 1)),
        Outlet::Pipe(id) => noter.value((color, 2, id)),
        Outlet::Gathered(sender) | Outlet::Merged(sender) => noter.value((color, 3, sender)),
        Outlet::Closing(_) | Outlet::Channel(_) => noter.only(false),
    }
}

/// A cycle some cycles later, if it comes at all.
fn later(cycle: u64, by: u64) -> u64 {
    if cycle == NEVER { NEVER } else { cycle + by }
}

impl<O> Op<O> {
    /// Notes how it stands.
    fn note<C: Code<Op = O>>(&self, code: &C, noter: &mut Noter<'_>) {
        noter.only(self.is_plain() && !self.has_fifo && !self.commands());
        if noter.flow {
            let Op { flows, by_words, held_up, from, stretch, least, patience, feeds, .. } = self;
            noter.value((flows, by_words, held_up, least, *patience == 0));
            noter.stamp(*from);
            noter.stamp(*patience);
            let known = feeds.known == Some(noter.closed);
            noter.value((known, if known { feeds.pipes } else { [None; 2] }));
            stretch.note(noter);
        }
        noter.value((self.asynchronous, self.microthread, self.needs.inputs, self.needs.output));
        noter.value((self.activate, self.priority as u8, self.ended, self.task));
        noter.value((self.inputs, self.colors, format!("{:?}", self.on_control)));
        noter.value(self.ends.output.map(|output| (output.queue, output.color)));
        noter.only(self.unblock.is_none());
        noter.value(code.progress(&self.code));
    }

    /// It goes on so many cycles later.
    fn put_off(&mut self, by: u64) {
        self.from += by;
        self.patience = if self.patience == 0 { 0 } else { later(self.patience, by) };
        if self.stretch.is_on() {
            self.stretch.put_off(by);
        }
    }
}
