//! Code in rounds: run, and held against what came of it when the round was taped.

use std::cell::RefCell;

use dflow_ir::cost::Slots;
use dflow_ir::inst::VectorInst;

use super::{Part, Process, Went};
use crate::exec::{Entry, NoRegisters, Passing, Registers, SharedStart, Stop, VectorArgs};
use crate::pe::bind::Bindings;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::pe::plan::PePlan;
use crate::sched::rounds::hand::Hand;
use crate::sched::rounds::outcome::{Outcome, Values};
use crate::sched::rounds::tape::{Enters, Piece};

/// Holds code against its pieces while it runs, and begins the operations that it goes past.
struct Held<'a, C: Code> {
    program: &'a PePlan,
    bound: &'a Bindings,
    /// Those that it has yet to come to.
    pieces: &'a [Piece],
    /// Acts that it has done, up to the operation that it went past last.
    acts: usize,
    outcomes: &'a mut [Outcome],
    hand: &'a mut Hand<C>,
    /// It has looked at a register, as no code did that is on a tape.
    looked: bool,
}

impl<C: Code> Held<'_, C> {
    /// Goes past an operation, if that stands on the tape here.
    #[inline]
    fn pass(
        &mut self,
        since: Passing<'_>,
        comes: impl FnOnce(&mut Outcome) -> Option<Values>,
    ) -> Option<()> {
        let (&Piece { outcome: number, passes }, rest) = self.pieces.split_first()?;
        let thread = passes?;
        let outcome = &mut self.outcomes[number as usize];
        if !outcome.took(since.slots, &since.acts[self.acts..]) {
            return None;
        }
        let values = comes(outcome)?;
        let start = outcome.start_with(number, values, (self.program, self.bound))?;
        self.hand.pass(thread, start);
        (self.pieces, self.acts) = (rest, since.acts.len());
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::RoundPast);
        Some(())
    }
}

impl<C: Code> Registers for RefCell<Held<'_, C>> {
    fn read(&self, address: u16) -> Option<u16> {
        self.borrow_mut().looked = true;
        NoRegisters.read(address)
    }

    fn pass(&self, start: &SharedStart, since: Passing<'_>) -> bool {
        self.borrow_mut().pass(since, |outcome| outcome.comes_to(start)).is_some()
    }

    fn pass_again(&self, inst: &VectorInst, args: &VectorArgs, since: Passing<'_>) -> bool {
        self.borrow_mut().pass(since, |outcome| outcome.comes_again(inst, args)).is_some()
    }
}

impl<C: Code> Part<'_, C> {
    /// Runs code; what comes of the last of a PE's in a round stays with its core, if that looks at it again.
    pub(super) fn code(
        &mut self,
        core: &mut Core<C>,
        process: &mut Process<C>,
        entry: Enters,
        pieces: &[Piece],
        is_last: bool,
    ) -> Went {
        let (pe, hand) = (process.pe, &mut process.hand);
        let program = &self.plan.programs[usize::from(pe.program)];
        let args;
        let entry = match entry {
            Enters::Start { task } => {
                let plan = &program.tasks[usize::from(task)];
                args = plan.args(hand.take_word());
                Entry::Start { func: plan.func, args: &args.0[..usize::from(args.1)] }
            }
            Enters::Resume { value } => Entry::Resume { value: value.into() },
        };
        let (outcomes, bound) = (&mut self.outcomes[..], &core.bound);
        let held =
            RefCell::new(Held { program, bound, pieces, acts: 0, outcomes, hand, looked: false });
        let segment = &mut self.segment;
        self.code.run(pe, &mut core.state, entry, &held, segment);
        let Held { pieces, acts, outcomes, hand, looked, .. } = held.into_inner();
        let (false, &[Piece { outcome: number, .. }]) = (looked, pieces) else {
            return Went::Apart;
        };
        let outcome = &mut outcomes[number as usize];
        let slots = Slots { all: segment.cycles, assumed: segment.assumed };
        if !outcome.took(slots, &segment.acts[acts..]) {
            return Went::Apart;
        }
        let stops = match &segment.stop {
            Stop::Vector(start) => outcome.comes_to(start).and_then(|values| {
                let with = outcome.start_with(number, values, (program, bound))?;
                hand.stop_for(with, start.asynchronous);
                Some(())
            }),
            stop => outcome.stops_with(stop).then_some(()),
        };
        if stops.is_none() {
            return Went::Apart;
        }
        if is_last && process.counts {
            segment.acts.drain(..acts);
            std::mem::swap(&mut core.segment, segment);
        }
        Went::Through
    }
}
