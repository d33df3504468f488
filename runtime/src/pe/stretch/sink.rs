//! Where the words of stretches go: into pipes, or by lines to the host.
//!
//! All cycles of words that go by a line are known when their stretch begins, and stay: slots that others
//! of the core take later change when it ends, not when they come (spec/flow.md, section 3).

use super::{Core, Op, Reach, Words};
use crate::pe::code::Code;
use crate::pe::visit::Visit;
use crate::sched::region::Region;
use crate::ways::Way;

/// Stretches may begin so many cycles ahead where nobody waits for their words but the host.
const SOON_TO_LINE: u64 = 64;
/// Stretches of operations with one word left may begin so many cycles ahead: these leave all slots to others, and have
/// to wait for their turn, which each PE of a wafer's row or column has within that time.
const SOON_WAITING: u64 = 1024;

/// Where the words of a stretch go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pe) enum Sink {
    Pipe(u32),
    /// A sender's line to the host.
    Line(u32),
}

impl<C: Code> Region<C> {
    /// How far an operation can go that takes words from nowhere, has `count` elements left and sends them by
    /// a sender's line to the host, `begin` being when it has slots.
    pub(super) fn reach_line(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
        (sender, count, begin): (u32, usize, u64),
    ) -> Option<Reach> {
        let Some((most, from)) = self.line_takes(sender) else {
            self.flow_no_more(at, core, op);
            return None;
        };
        let soon = if count == 1 && from > begin { SOON_WAITING } else { SOON_TO_LINE };
        let begin = begin.max(from);
        if begin > at.t + soon {
            core.begins = core.begins.min(begin);
            return None;
        }
        #[cfg(test)]
        if begin > at.t + SOON_TO_LINE {
            crate::sched::reached::note(crate::sched::reached::Reached::Waiting);
        }
        let count = count.min(most as usize);
        let after_main = !core.is_before_main(op.priority);
        let floor = if after_main { core.behind_tasks(begin, count as u64) } else { 0 };
        let (inputs, output) = ([None; 2], Some(Sink::Line(sender)));
        (count != 0).then_some(Reach { begin, floor, leaves: 0, count, inputs, output })
    }

    /// An operation goes word by word from now on: its words have to go through routers.
    #[cold]
    pub(in crate::pe) fn flow_no_more(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
    ) {
        self.end_flow(at.plan, core, (at.pe, at.t), op);
        if op.needs.inputs != 0 {
            // Words have stayed in their pipes for it.
            self.draw(at, core, op);
            self.unblock(at.pe, at.t.max(self.now) + 1);
        }
        self.wakes.core(at.pe, at.t + 1);
    }

    /// The words of a stretch that begins in cycle `t`, if it sends any, go where they go, the first one
    /// not before cycle `leaves`.
    pub(super) fn send_stretch(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
        sink: Option<Sink>,
        (t, leaves, count): (u64, u64, u64),
        mut words: Vec<u32>,
    ) {
        let (Some(output), Some(sink)) = (op.output, sink) else {
            return self.buffers.push(words);
        };
        self.stats.sent += count;
        if let Some(sent) = &mut core.outputs[usize::from(output.queue)].sent {
            sent.words += count;
        }
        let bound = op.stretch.bound();
        match sink {
            Sink::Pipe(pipe) => {
                self.ways.count(output.color, Way::Stretch, count);
                // Beside others it keeps its share of the slots until it waits.
                let beside = core.threads.any_beside(op);
                let places = if beside { 0 } else { self.places_from(pipe, count) };
                op.stretch.floor = bound.max(places).max(self.slowed(pipe, (t, count), bound));
                let until = (t + count - 1).max(op.stretch.bound());
                let first = t.max(leaves);
                let last = until.max(first + count - 1);
                let end = self.send_words(at.plan, pipe, (first, last), words);
                op.stretch.output = Some(Words::new(pipe, end, until));
            }
            Sink::Line(sender) => {
                self.ways.count(output.color, Way::Line, count);
                self.spoil_tape();
                let slots = words.drain(..).map(|payload| output.slot(0, payload, 0, false));
                let last = self.send_to_line(&at.plan.timing, sender, slots, (t, bound));
                op.stretch.floor = bound.max(last);
                self.buffers.push(words);
            }
        }
    }
}
