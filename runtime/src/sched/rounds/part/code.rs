//! Code in rounds: run, and held against what came of it when the round was taped.

use dflow_ir::cost::Slots;

use super::{Part, Went};
use crate::exec::{Entry, Passed, Segment, SharedStart, SlotAct, Stop};
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::pe::plan::PePlan;
use crate::sched::rounds::hand::{Begins, counts};
use crate::sched::rounds::tape::{Enters, Piece, starts_like};

/// What came of code.
pub(in crate::sched::rounds) struct Outcome {
    segment: Segment,
    /// How the operation begins that it stopped for, where the program says which queues are where.
    begins: Option<Begins>,
}

impl Outcome {
    pub(in crate::sched::rounds) fn new(segment: Segment) -> Outcome {
        Outcome { segment, begins: None }
    }

    /// Whether code took these slots, and did these acts.
    fn took(&self, slots: Slots, acts: &[SlotAct]) -> bool {
        let Segment { cycles, assumed, acts: own, .. } = &self.segment;
        (*cycles, *assumed) == (slots.all, slots.assumed) && own == acts
    }

    /// Whether it came to an operation like this, which is known again at once the next time.
    fn comes_to(&mut self, start: &SharedStart) -> bool {
        let Stop::Vector(own) = &mut self.segment.stop else { return false };
        if own.is(start) {
            return true;
        }
        let like = starts_like(own, start);
        if like {
            *own = start.clone();
        }
        like
    }

    /// How a core's operation begins that its code has come to here. No queues are bound but by the program.
    fn begins<C: Code>(&mut self, program: &PePlan, core: &Core<C>) -> Option<Begins> {
        let Stop::Vector(start) = &self.segment.stop else { return None };
        if self.begins.is_none() {
            self.begins = Begins::new(program, core, start);
        }
        self.begins
    }
}

impl<C: Code> Part<'_, C> {
    /// Runs code; what comes of the last of a PE's in a round stays with its core, if that looks at it again.
    pub(super) fn code(
        &mut self,
        core: &mut Core<C>,
        at: usize,
        entry: Enters,
        pieces: &[Piece],
        is_last: bool,
    ) -> Went {
        let hand = &mut self.processes[at].hand;
        let program = &self.plan.programs[usize::from(core.at.program)];
        let args;
        let entry = match entry {
            Enters::Start { task } => {
                let plan = &program.tasks[usize::from(task)];
                args = hand.take_args(plan);
                Entry::Start { func: plan.func, args: &args.0[..usize::from(args.1)] }
            }
            Enters::Resume { value } => Entry::Resume { value: value.into() },
        };
        let segment = &mut self.segment;
        self.ahead.most = pieces.len() - 1;
        self.code.run(core.at, &mut core.state, entry, &self.ahead, segment);
        let passed = self.ahead.passed();
        if passed.len() + 1 != pieces.len() {
            passed.clear();
            return Went::Apart;
        }
        let mut acts = 0;
        for (Passed { slots, acts: to, start }, piece) in passed.drain(..).zip(pieces) {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::RoundPast);
            let outcome = &mut self.outcomes[piece.outcome as usize];
            if !outcome.comes_to(&start) || !outcome.took(slots, &segment.acts[acts..to]) {
                return Went::Apart;
            }
            acts = to;
            let Some(begins) = outcome.begins(program, core) else { return Went::Apart };
            let Some(thread) = piece.passes else { return Went::Apart };
            hand.pass(thread, start, begins, &mut self.over);
        }
        if acts != 0 {
            segment.acts.drain(..acts);
        }
        let outcome = &mut self.outcomes[pieces[pieces.len() - 1].outcome as usize];
        let slots = Slots { all: segment.cycles, assumed: segment.assumed };
        let took = outcome.took(slots, &segment.acts);
        let is = match &segment.stop {
            Stop::Vector(start) => outcome.comes_to(start),
            stop => outcome.segment.stop == *stop,
        };
        if !took || !is {
            return Went::Apart;
        }
        if is_last && counts(core) {
            std::mem::swap(&mut core.segment, segment);
            segment.stop = core.segment.stop.clone();
        }
        if let Stop::Vector(start) = std::mem::replace(&mut segment.stop, Stop::Return) {
            let Some(begins) = outcome.begins(program, core) else { return Went::Apart };
            hand.stop_for(start, begins, &mut self.over);
        }
        Went::Through
    }
}
