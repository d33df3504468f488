//! What a PE works on in rounds: taken from its core before the first, put back after the last.
//!
//! Invariant: what a core works on before the first round and after the last is the same but for values and
//! elements that are done.

use super::tape::{OF_MAIN, OPERATIONS};
use crate::exec::{SharedStart, Stop};
use crate::pe::code::{Code, Pe};
use crate::pe::core::Core;
use crate::pe::main::{Main, Next};
use crate::pe::op::{Ends, Op, OpPlan};
use crate::pe::plan::{PePlan, TaskPlan};
use crate::sched::plan::Plan;

/// An operation: its elements, and where words for them come from and go.
#[derive(Clone, Debug)]
pub(super) struct Work<O> {
    pub(super) start: SharedStart,
    /// None while it has not begun: most operations do all elements at once.
    pub(super) code: Option<O>,
    /// It has done so, and has no more to do than to end. Never so between rounds.
    pub(super) is_over: bool,
    pub(super) ends: Ends,
}

impl<O: Clone> Work<O> {
    fn of<C: Code<Op = O>>(code: &C, op: &Op<O>) -> Box<Work<O>> {
        let start = code.start(op.code.clone());
        Box::new(Work { start, code: Some(op.code.clone()), is_over: false, ends: op.ends })
    }

    /// The operation, begun if it has not.
    #[inline]
    pub(super) fn begun<C: Code<Op = O>>(
        &mut self,
        code: &C,
        at: Pe,
        state: &mut C::State,
    ) -> &mut O {
        debug_assert!(!self.is_over);
        self.code.get_or_insert_with(|| code.begin(at, state, self.start.clone()))
    }
}

/// What a PE works on.
pub(super) struct Hand<C: Code> {
    pub(super) operations: [Option<Box<Work<C::Op>>>; OPERATIONS],
    /// The operation that code has stopped for and that has not begun, if it has stopped for one.
    pub(super) pending: Option<Box<Work<C::Op>>>,
    /// The word that starts the next task, or its arguments.
    pub(super) word: Option<u32>,
    pub(super) args: ([u64; 2], u8),
}

impl<C: Code> Hand<C> {
    /// Nothing.
    pub(super) fn empty() -> Hand<C> {
        let operations = [const { None }; OPERATIONS];
        Hand { operations, pending: None, word: None, args: ([0; 2], 0) }
    }

    /// The arguments that a task starts with, and how many.
    #[inline]
    pub(super) fn take_args(&mut self, task: &TaskPlan) -> ([u64; 2], u8) {
        if task.params.is_empty() {
            // As most are.
            self.word = None;
            return ([0; 2], 0);
        }
        let args = std::mem::take(&mut self.args);
        match self.word.take().map(|word| Main::<C::Op>::start(task, word, 0)) {
            Some(Main::Ready { next: Next::Start { args, count }, .. }) => (args, count),
            _ => args,
        }
    }

    /// The operation that code has stopped for is ready to begin.
    #[inline]
    pub(super) fn stop_for(
        &mut self,
        start: SharedStart,
        begins: Begins,
        over: &mut Vec<Box<Work<C::Op>>>,
    ) {
        let main = &mut self.operations[OF_MAIN];
        let into = if begins.asynchronous { &mut self.pending } else { main };
        put(into, (start, begins.ends), over);
    }

    /// That operation begins in a microthread.
    #[inline]
    pub(super) fn launch(&mut self, thread: u8, over: &mut Vec<Box<Work<C::Op>>>) {
        let thread = &mut self.operations[usize::from(thread)];
        over.extend(std::mem::replace(thread, self.pending.take()));
    }

    /// The asynchronous operation that code has gone past begins in a microthread.
    #[inline]
    pub(super) fn pass(
        &mut self,
        thread: u8,
        start: SharedStart,
        begins: Begins,
        over: &mut Vec<Box<Work<C::Op>>>,
    ) {
        put(&mut self.operations[usize::from(thread)], (start, begins.ends), over);
    }
}

impl<C: Code> Clone for Hand<C> {
    fn clone(&self) -> Hand<C> {
        let Hand { operations, pending, word, args } = self;
        let (operations, pending) = (operations.clone(), pending.clone());
        Hand { operations, pending, word: *word, args: *args }
    }
}

/// How an operation begins that code has stopped for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begins {
    asynchronous: bool,
    ends: Ends,
}

impl Begins {
    /// What a core's start says, if its queues are there.
    pub(super) fn new<C: Code>(
        program: &PePlan,
        core: &Core<C>,
        start: &SharedStart,
    ) -> Option<Begins> {
        let OpPlan { asynchronous, ends, .. } = OpPlan::new(program, &core.bound, start).ok()?;
        Some(Begins { asynchronous, ends })
    }
}

/// An operation that has not begun, in the box of one that is over.
#[inline]
fn put<O>(
    into: &mut Option<Box<Work<O>>>,
    (start, ends): (SharedStart, Ends),
    over: &mut Vec<Box<Work<O>>>,
) {
    match into.take().or_else(|| over.pop()) {
        Some(mut before) => {
            (before.start, before.code) = (start, None);
            (before.is_over, before.ends) = (false, ends);
            *into = Some(before);
        }
        None => *into = Some(Box::new(Work { start, code: None, is_over: false, ends })),
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
        Main::Ready { next: Next::Start { args, count }, .. } => hand.args = (*args, *count),
        Main::Counting { .. } => {
            if let Stop::Vector(start) = &core.segment.stop
                && let Some(begins) = Begins::new(program, core, start)
            {
                hand.stop_for(start.clone(), begins, &mut Vec::new());
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
pub(super) fn settle<C: Code>(plan: &Plan, code: &C, core: &mut Core<C>, mut hand: Hand<C>) {
    let Core { at, state, threads, main, task, .. } = core;
    let mut go_on = |op: &mut Op<C::Op>, with: Option<Box<Work<C::Op>>>| {
        if let Some(mut with) = with {
            op.code = with.begun(code, *at, state).clone();
        }
    };
    for op in threads.iter_mut() {
        let with = hand.operations.get_mut(usize::from(op.microthread)).and_then(Option::take);
        go_on(op, with);
    }
    match main {
        Main::Ready { next: Next::Start { args, count }, .. } => {
            let program = &plan.programs[usize::from(at.program)];
            (*args, *count) = hand.take_args(&program.tasks[usize::from(*task)]);
        }
        Main::Vector(op) => go_on(op, hand.operations[OF_MAIN].take()),
        Main::Launch(op) => go_on(op, hand.pending),
        Main::Idle | Main::Ready { .. } | Main::Counting { .. } => {}
    }
}
