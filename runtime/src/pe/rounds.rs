//! A core as `sched::rounds` sees it: its state in time, and how it is some rounds later.

use super::code::Code;
use super::core::{Core, Input, Outgoing};
use super::main::{Main, Next};
use super::op::Op;
use super::sparse::Sparse;
use crate::fabric::ring::NEVER;
use crate::sched::rounds::Noter;

impl<C: Code> Core<C> {
    /// Notes its state before a cycle.
    pub(crate) fn note(&self, code: &C, noter: &mut Noter) {
        // What is left out is a hint, another engine's, the code's own, or in `note_main`.
        let Core {
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
            later,
            task,
            segment: _,
            threads,
            owned_in,
            owned_out,
            flowing_in: _,
            flowing_out: _,
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
        noter.only(steady.is_none() && in_turn.is_none() && !dead && later.is_empty());
        noter.only(bound.are_planned() && !self.is_flushing() && !registers.tears());
        noter.only(code.is_calm(state));
        note_queues(inputs, outputs, noter);
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

    /// Notes where its main thread stands.
    fn note_main(&self, code: &C, noter: &mut Noter) {
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
    pub(crate) fn put_off(&mut self, by: u64, counters: &mut impl Iterator<Item = u64>) {
        self.until += by;
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
        match &mut self.main {
            Main::Ready { from, .. } => *from += by,
            Main::Counting { asleep: Some(since), .. } => *since += by,
            Main::Idle | Main::Counting { .. } | Main::Vector(_) | Main::Launch(_) => {}
        }
        for (cycle, _) in &mut self.due {
            *cycle += by;
        }
    }
}

/// Notes what stands in queues.
fn note_queues(inputs: &[Input], outputs: &Sparse<Outgoing>, noter: &mut Noter) {
    for Input { ring, last, taken } in inputs {
        noter.ring(ring, true);
        noter.counter(last.map_or(0, |last| last + 1));
        noter.counter((*taken).into());
    }
    for (queue, Outgoing { ring, held: _, sent }) in outputs.iter() {
        noter.value(queue);
        noter.ring(ring, false);
        noter.counter(sent.map_or(0, |sent| sent.words));
    }
}

/// A cycle some cycles later, if it comes at all.
fn later(cycle: u64, by: u64) -> u64 {
    if cycle == NEVER { NEVER } else { cycle + by }
}

impl<O> Op<O> {
    /// Notes how it stands.
    fn note<C: Code<Op = O>>(&self, code: &C, noter: &mut Noter) {
        noter.only(self.is_plain() && !self.has_fifo && !self.commands() && !self.flows);
        noter.value((self.asynchronous, self.microthread, self.needs.inputs, self.needs.output));
        noter.value((self.activate, self.priority as u8, self.ended, self.task));
        noter.value((self.inputs, self.colors));
        noter.value(self.ends.output.map(|output| (output.queue, output.color)));
        noter.only(self.unblock.is_none());
        noter.value(code.progress(&self.code));
    }
}
