//! What a PE works on in rounds: taken from its core before the first, put back after the last.
//!
//! Invariant: what a core works on before the first round and after the last is the same but for values and
//! elements that are done.

use super::outcome::{Outcome, Start, ends_of};
use super::tape::{OF_MAIN, OPERATIONS};
use crate::exec::Stop;
use crate::pe::code::{Code, Pe};
use crate::pe::core::Core;
use crate::pe::main::{Main, Next};
use crate::pe::op::Op;
use crate::sched::plan::Plan;

/// An operation and its elements.
#[derive(Clone, Debug)]
pub(super) struct Work<O> {
    pub(super) start: Start,
    /// None while it has not begun: most operations do all elements at once.
    pub(super) code: Option<Box<O>>,
}

impl<O: Clone> Work<O> {
    /// One that has not begun.
    #[inline]
    fn new(start: Start) -> Work<O> {
        Work { start, code: None }
    }

    fn of<C: Code<Op = O>>(code: &C, op: &Op<O>) -> Work<O> {
        let start = Start::other(code.start(&op.code), op.ends);
        Work { code: Some(Box::new(op.code.clone())), ..Work::new(start) }
    }

    /// The operation, begun if it has not.
    #[inline]
    pub(super) fn begun<C: Code<Op = O>>(
        &mut self,
        code: &C,
        at: Pe,
        state: &mut C::State,
        outcomes: &[Outcome],
    ) -> Option<&mut O> {
        if self.code.is_none() {
            let start = self.start.of(outcomes)?.0.clone();
            self.code = Some(Box::new(code.begin(at, state, start)));
        }
        self.code.as_deref_mut()
    }
}

/// What a PE works on.
pub(super) struct Hand<C: Code> {
    pub(super) operations: [Option<Work<C::Op>>; OPERATIONS],
    /// The operation that code has stopped for and that has not begun, if it has stopped for one.
    pub(super) pending: Option<Work<C::Op>>,
    /// The word that starts the next task.
    pub(super) word: Option<u32>,
}

impl<C: Code> Hand<C> {
    /// Nothing.
    pub(super) fn empty() -> Hand<C> {
        let operations = [const { None }; OPERATIONS];
        Hand { operations, pending: None, word: None }
    }

    /// Whether it works on no operation.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_none() && self.operations.iter().all(Option::is_none)
    }

    /// The word that a task starts with; nothing where none does.
    #[inline]
    pub(super) fn take_word(&mut self) -> u32 {
        self.word.take().unwrap_or_default()
    }

    /// The operation that code has stopped for is ready to begin.
    #[inline]
    pub(super) fn stop_for(&mut self, start: Start, asynchronous: bool) {
        let main = &mut self.operations[OF_MAIN];
        let into = if asynchronous { &mut self.pending } else { main };
        *into = Some(Work::new(start));
    }

    /// That operation begins in a microthread.
    #[inline]
    pub(super) fn launch(&mut self, thread: u8) {
        debug_assert!(self.pending.is_some(), "code has stopped for an asynchronous operation");
        self.operations[usize::from(thread)] = self.pending.take();
    }

    /// An asynchronous operation that code goes past begins in a microthread.
    #[inline]
    pub(super) fn pass(&mut self, thread: u8, start: Start) {
        let thread = &mut self.operations[usize::from(thread)];
        // One that had ended before the first round may be there. Known to be empty it is written where it lies.
        if thread.is_some() {
            *thread = None;
        }
        thread.get_or_insert_with(|| Work::new(start));
    }
}

impl<C: Code> Clone for Hand<C> {
    fn clone(&self) -> Hand<C> {
        let Hand { operations, pending, word } = self;
        let (operations, pending) = (operations.clone(), pending.clone());
        Hand { operations, pending, word: *word }
    }
}

/// Whether a core looks again at what came of its last code: only a main thread does that counts slots.
pub(super) fn counts<C: Code>(core: &Core<C>) -> bool {
    matches!(core.main, Main::Counting { .. })
}

/// What a core works on.
pub(super) fn lift<C: Code>(plan: &Plan, code: &C, core: &Core<C>) -> Hand<C> {
    let program = &plan.programs[usize::from(core.at.program)];
    let mut operations = [const { None }; OPERATIONS];
    for op in core.threads.iter() {
        operations[usize::from(op.microthread)] = Some(Work::of(code, op));
    }
    let mut hand = Hand { operations, ..Hand::empty() };
    match &core.main {
        Main::Ready { next: Next::Start { payload }, .. } => hand.word = Some(*payload as u32),
        Main::Counting { .. } => {
            if let Stop::Vector(start) = &core.segment.stop
                && let Some(ends) = ends_of(program, &core.bound, start)
            {
                hand.stop_for(Start::other(start.clone(), ends), start.asynchronous);
            }
        }
        Main::Vector(op) => hand.operations[OF_MAIN] = Some(Work::of(code, op)),
        Main::Launch(op) => hand.pending = Some(Work::of(code, op)),
        Main::Idle | Main::Ready { .. } => {}
    }
    hand
}

/// Puts back into a core what it works on. An operation goes on with what one has done that was begun in a later
/// round, and is as it is but for that.
pub(super) fn settle<C: Code>(
    code: &C,
    outcomes: &[Outcome],
    core: &mut Core<C>,
    mut hand: Hand<C>,
) {
    let Core { at, state, threads, main, .. } = core;
    let mut go_on = |op: &mut Op<C::Op>, with: Option<Work<C::Op>>| {
        let Some(mut with) = with else { return };
        let begun = with.begun(code, *at, state, outcomes);
        debug_assert!(begun.is_some(), "what started is known");
        if let Some(code) = begun {
            op.code = code.clone();
        }
    };
    for op in threads.iter_mut() {
        let with = hand.operations.get_mut(usize::from(op.microthread)).and_then(Option::take);
        go_on(op, with);
    }
    match main {
        Main::Ready { next: Next::Start { payload }, .. } => *payload = hand.take_word().into(),
        Main::Vector(op) => go_on(op, hand.operations[OF_MAIN].take()),
        Main::Launch(op) => go_on(op, hand.pending),
        Main::Idle | Main::Ready { .. } | Main::Counting { .. } => {}
    }
}
