//! Code in rounds: run, and held against what came of it when the round was taped.

use std::cell::RefCell;

use dflow_ir::cost::Slots;
use dflow_ir::inst::VectorInst;

use super::{Part, Process, Went};
use crate::exec::{
    Entry, NoRegisters, Passing, Registers, Segment, SharedStart, SlotAct, Stop, VectorArgs,
};
use crate::pe::bind::Bindings;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::pe::op::Ends;
use crate::pe::plan::PePlan;
use crate::sched::rounds::hand::{Begins, Hand, Start};
use crate::sched::rounds::tape::{Enters, Piece, starts_like};

/// What came of code when the round was taped.
pub(in crate::sched::rounds) struct Outcome {
    segment: Segment,
    /// What started since then in its place, with other values: the last one.
    other: Option<SharedStart>,
    /// How the operation begins that it stopped for, where the program says which queues are where.
    begins: Option<Begins>,
}

impl Outcome {
    pub(in crate::sched::rounds) fn new(segment: Segment) -> Outcome {
        Outcome { segment, other: None, begins: None }
    }

    /// What started, if an operation did.
    #[inline]
    fn start(&self) -> Option<&SharedStart> {
        if let Stop::Vector(start) = &self.segment.stop { Some(start) } else { None }
    }

    /// Likewise, with where words for it come from and go, if it has started again since then.
    #[inline]
    pub(in crate::sched::rounds) fn starts(&self) -> Option<(&SharedStart, &Ends)> {
        Some((self.start()?, &self.begins.as_ref()?.ends))
    }

    /// Whether code took these slots, and did these acts.
    #[inline]
    fn took(&self, slots: Slots, acts: &[SlotAct]) -> bool {
        let Segment { cycles, assumed, acts: own, .. } = &self.segment;
        (*cycles, *assumed) == (slots.all, slots.assumed) && own == acts
    }

    /// An operation starts; whether like the one then, and so in what it starts with. One with other values is known
    /// again at once the next time.
    #[inline]
    fn comes_to(&mut self, start: &SharedStart) -> Option<Values> {
        let taped = self.start()?;
        if taped.is(start) {
            return Some(Values::Same);
        }
        if self.other.as_ref().is_none_or(|other| !other.is(start)) {
            if !starts_like(taped, start) {
                return None;
            }
            self.other = Some(start.clone());
        }
        Some(Values::Other)
    }

    /// Likewise, of what an instruction starts with these arguments, if that is known.
    #[inline]
    fn comes_again(&self, inst: &VectorInst, args: &VectorArgs) -> Option<Values> {
        if self.start()?.is_of(inst, args) {
            return Some(Values::Same);
        }
        let other = self.other.as_ref()?;
        other.is_of(inst, args).then_some(Values::Other)
    }

    /// What the operation starts with that has come last; `number`: that of the outcome.
    #[inline]
    fn start_with(&self, number: u32, values: Values) -> Option<Start> {
        match values {
            Values::Same => Some(Start::taped(number)),
            Values::Other => Some(Start::other(self.other.clone()?, self.begins?.ends)),
        }
    }

    /// Whether a core's operation that its code has come to here is asynchronous, if its queues are there. No queues
    /// are bound but by the program.
    #[inline]
    fn is_asynchronous(&mut self, program: &PePlan, bound: &Bindings) -> Option<bool> {
        if self.begins.is_none() {
            self.begins = Begins::new(program, bound, self.start()?);
        }
        self.begins.as_ref().map(|begins| begins.asynchronous)
    }
}

/// Whether an operation has the values that it had when the round was taped.
#[derive(Clone, Copy)]
enum Values {
    Same,
    Other,
}

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
        outcome.is_asynchronous(self.program, self.bound)?;
        self.hand.pass(thread, outcome.start_with(number, values)?);
        (self.pieces, self.acts) = (rest, since.acts.len());
        #[cfg(test)]
        crate::sched::reached::note(crate::sched::reached::Reached::RoundPast);
        Some(())
    }
}

impl<C: Code> Registers for RefCell<Held<'_, C>> {
    fn read(&self, address: u16) -> Option<u16> {
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
                args = hand.take_args(plan);
                Entry::Start { func: plan.func, args: &args.0[..usize::from(args.1)] }
            }
            Enters::Resume { value } => Entry::Resume { value: value.into() },
        };
        let (outcomes, bound) = (&mut self.outcomes[..], &core.bound);
        let held = RefCell::new(Held { program, bound, pieces, acts: 0, outcomes, hand });
        let segment = &mut self.segment;
        self.code.run(pe, &mut core.state, entry, &held, segment);
        let Held { pieces, acts, outcomes, hand, .. } = held.into_inner();
        let &[Piece { outcome: number, .. }] = pieces else { return Went::Apart };
        let outcome = &mut outcomes[number as usize];
        let slots = Slots { all: segment.cycles, assumed: segment.assumed };
        if !outcome.took(slots, &segment.acts[acts..]) {
            return Went::Apart;
        }
        match &segment.stop {
            // As most do.
            Stop::Return if matches!(outcome.segment.stop, Stop::Return) => {}
            Stop::Vector(start) => {
                let start = outcome.comes_to(start).and_then(|values| {
                    let asynchronous = outcome.is_asynchronous(program, bound)?;
                    Some((outcome.start_with(number, values)?, asynchronous))
                });
                let Some((start, asynchronous)) = start else { return Went::Apart };
                hand.stop_for(start, asynchronous);
            }
            stop if outcome.segment.stop == *stop => {}
            _ => return Went::Apart,
        }
        if is_last && process.counts {
            segment.acts.drain(..acts);
            std::mem::swap(&mut core.segment, segment);
        }
        Went::Through
    }
}
