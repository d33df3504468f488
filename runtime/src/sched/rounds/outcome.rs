//! What came of code when a round was taped, and what operations start with.
//!
//! Invariants: an outcome is of one program's code; what starts in its place has the same number as long as it is
//! equal, and one of its own if it has other values.

use dflow_ir::cost::Slots;
use dflow_ir::inst::VectorInst;

use super::tape::starts_like;
use crate::exec::{Segment, SharedStart, SlotAct, Stop, VectorArgs};
use crate::pe::bind::Bindings;
use crate::pe::op::{Ends, OpPlan};
use crate::pe::plan::PePlan;

/// "No outcome."
const NONE: u32 = u32::MAX;

/// What an operation starts with. As plain fields: it is written and read again within a few instructions, where the
/// host cannot put together what was written in pieces.
#[derive(Clone, Debug)]
pub(super) struct Start {
    /// What the code came to whose outcome has this number, if it is not something else.
    outcome: u32,
    /// Begun before the first round, or with other values.
    other: Option<Box<(SharedStart, Ends)>>,
}

impl Start {
    /// Something else than came of code when the round was taped.
    pub(super) fn other(start: SharedStart, ends: Ends) -> Start {
        Start { outcome: NONE, other: Some(Box::new((start, ends))) }
    }

    /// What starts, and where words for it come from and go.
    #[inline]
    pub(super) fn of<'a>(&'a self, outcomes: &'a [Outcome]) -> Option<(&'a SharedStart, &'a Ends)> {
        match &self.other {
            None => outcomes.get(self.outcome as usize)?.starts(),
            Some(other) => Some((&other.0, &other.1)),
        }
    }
}

/// Where words for an operation come from and go, if its queues are there.
pub(super) fn ends_of(program: &PePlan, bound: &Bindings, start: &SharedStart) -> Option<Ends> {
    OpPlan::new(program, bound, start).ok().map(|plan| plan.ends)
}

/// Whether an operation has the values that it had when the round was taped.
#[derive(Clone, Copy)]
pub(super) enum Values {
    Same,
    Other,
}

/// What came of code when the round was taped.
pub(super) struct Outcome {
    segment: Segment,
    /// What started since then in its place, with other values: the last one.
    other: Option<SharedStart>,
    /// Where words for what started come from and go, once it has started again.
    ends: Option<Ends>,
}

impl Outcome {
    pub(super) fn new(segment: Segment) -> Outcome {
        Outcome { segment, other: None, ends: None }
    }

    /// What started, if an operation did.
    #[inline]
    fn start(&self) -> Option<&SharedStart> {
        if let Stop::Vector(start) = &self.segment.stop { Some(start) } else { None }
    }

    /// Likewise, with where words for it come from and go, once it has started again.
    #[inline]
    fn starts(&self) -> Option<(&SharedStart, &Ends)> {
        Some((self.start()?, self.ends.as_ref()?))
    }

    /// Whether code took these slots, and did these acts.
    #[inline]
    pub(super) fn took(&self, slots: Slots, acts: &[SlotAct]) -> bool {
        let Segment { cycles, assumed, acts: own, .. } = &self.segment;
        (*cycles, *assumed) == (slots.all, slots.assumed) && own == acts
    }

    /// Whether code stopped like this, without an operation.
    #[inline]
    pub(super) fn stops_with(&self, stop: &Stop) -> bool {
        match (&self.segment.stop, stop) {
            // As most do.
            (Stop::Return, Stop::Return) => true,
            (own, stop) => own == stop,
        }
    }

    /// An operation starts; whether like the one then, and so in what it starts with. It is known again at once the
    /// next time.
    #[inline]
    pub(super) fn comes_to(&mut self, start: &SharedStart) -> Option<Values> {
        let taped = self.start()?;
        if taped.is(start) {
            return Some(Values::Same);
        }
        if self.other.as_ref().is_some_and(|other| other.is(start)) {
            return Some(Values::Other);
        }
        if taped == start {
            // Each thread has starts of its own.
            self.segment.stop = Stop::Vector(start.clone());
            return Some(Values::Same);
        }
        let like = starts_like(taped, start);
        self.other = like.then(|| start.clone());
        like.then_some(Values::Other)
    }

    /// Likewise, of what an instruction starts with these arguments, if that is known.
    #[inline]
    pub(super) fn comes_again(&self, inst: &VectorInst, args: &VectorArgs) -> Option<Values> {
        if self.start()?.is_of(inst, args) {
            return Some(Values::Same);
        }
        let other = self.other.as_ref()?;
        other.is_of(inst, args).then_some(Values::Other)
    }

    /// What a core's operation starts with that has come last; `number`: that of the outcome. No queues are bound but
    /// by the program.
    #[inline]
    pub(super) fn start_with(
        &mut self,
        number: u32,
        values: Values,
        with: (&PePlan, &Bindings),
    ) -> Option<Start> {
        let ends = match self.ends {
            Some(ends) => ends,
            None => self.find_ends(with)?,
        };
        match values {
            Values::Same => {
                #[cfg(test)]
                crate::sched::reached::note(crate::sched::reached::Reached::RoundSame);
                Some(Start { outcome: number, other: None })
            }
            Values::Other => Some(Start::other(self.other.clone()?, ends)),
        }
    }

    /// Finds where words come from and go. Apart, so that nobody looks at what a PE has bound where that is known.
    #[cold]
    #[inline(never)]
    fn find_ends(&mut self, (program, bound): (&PePlan, &Bindings)) -> Option<Ends> {
        self.ends = ends_of(program, bound, self.start()?);
        self.ends
    }
}
