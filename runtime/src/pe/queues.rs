//! Flushes of queues, and what a program is told of its queues.

use dflow_ir::inst::QueueState;

use super::code::Code;
use super::core::{Core, Outgoing, bits};
use super::plan::{NO_TASK, PePlan};
use crate::fabric::ring::{Ring, Slot};

/// Local task id that flushed queues and colors in teardown activate.
pub(crate) const TEARDOWN_TASK: usize = dflow_ir::target::TEARDOWN_TASK as usize;

/// Flushes of one direction's queues, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flushes {
    /// Asked for.
    pub(super) asked: u16,
    /// Found empty, and not forgotten.
    pub(super) done: u16,
}

impl Flushes {
    /// A queue is to be flushed.
    pub(super) fn ask(&mut self, queue: u16) {
        self.asked |= 1 << (queue & 15);
    }

    /// Forgets that a queue was flushed.
    pub(super) fn end(&mut self, queue: u16) {
        self.done &= !(1 << (queue & 15));
    }
}

impl<C: Code> Core<C> {
    /// Whether a queue is to be flushed that was not empty yet.
    pub(crate) fn is_flushing(&self) -> bool {
        self.flushes[0].asked | self.flushes[1].asked != 0
    }

    /// Queues that were to be flushed and are empty in cycle `t` activate the teardown task.
    pub(super) fn flush(&mut self, program: &PePlan, t: u64) {
        for side in [0, 1] {
            for queue in bits(self.flushes[side].asked.into()) {
                let empty = match side {
                    0 => self.inputs.get(queue).is_none_or(|_| self.input_is_empty(queue, t)),
                    _ => self.outputs.get(queue).is_none_or(|output| output.ring.is_empty()),
                };
                if !empty {
                    continue;
                }
                self.flushes[side].asked &= !(1 << queue);
                self.flushes[side].done |= 1 << queue;
                self.acted.acted = true;
                if program.local[TEARDOWN_TASK] != NO_TASK {
                    self.activated |= 1 << TEARDOWN_TASK;
                }
            }
        }
    }

    /// The answer to a question about the queues in cycle `t`, as bits.
    pub(super) fn queues(&self, program: &PePlan, state: QueueState, t: u64) -> u64 {
        let inputs = 0..program.numbered;
        let outputs = 0..program.outputs.len();
        let set = |queues: std::ops::Range<usize>, holds: &dyn Fn(usize) -> bool| {
            queues.filter(|&queue| holds(queue)).fold(0, |set, queue| set | 1 << queue)
        };
        let in_view = |queue: usize| {
            let depth = program.depths.get(queue).copied().unwrap_or(0);
            let seen = self.inputs.get(queue).map_or(0, |input| input.ring.seen(t));
            (seen, usize::from(depth))
        };
        match state {
            QueueState::InputEmpty => set(inputs, &|queue| self.input_is_empty(queue, t)),
            QueueState::InputFull => set(inputs, &|queue| {
                let (words, depth) = in_view(queue);
                words >= depth
            }),
            QueueState::OutputEmpty => set(outputs, &|queue| {
                self.outputs.get(queue).is_none_or(|output| output.ring.is_empty())
            }),
            QueueState::OutputFull => set(outputs, &|queue| {
                self.outputs
                    .get(queue)
                    .is_some_and(|Outgoing { ring, .. }| ring.places() != 0 && ring.is_full())
            }),
            QueueState::InputFlushed => self.flushes[0].done.into(),
            QueueState::OutputFlushed => self.flushes[1].done.into(),
        }
    }

    /// Puts words that have left an output queue of so many places back, before those that stand there. (A place that would
    /// be free again in the next cycle is free now.)
    pub(crate) fn send_before(&mut self, queue: usize, places: u32, words: Vec<Slot>) {
        let Some(output) = self.outputs.get_mut(queue).filter(|_| !words.is_empty()) else {
            return;
        };
        let color = words.first().map(|word| word.color);
        if let Some(sent) = output.sent.as_mut().filter(|sent| Some(sent.color) == color) {
            sent.words = sent.words.saturating_sub(words.len() as u64);
        }
        output.held = 0;
        let others: Vec<Slot> = output.ring.words().copied().collect();
        output.ring = Ring::new(places);
        self.full &= !(1 << queue);
        words.into_iter().chain(others).for_each(|word| self.send_again(queue, places, word));
    }
}
