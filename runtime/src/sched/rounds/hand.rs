//! What a PE works on in rounds: taken from its core before the first, put back after the last.
//!
//! Invariant: what a core works on before the first round and after the last is the same but for values and
//! elements that are done.

use super::tape::{OF_MAIN, OPERATIONS};
use crate::exec::Stop;
use crate::pe::code::Code;
use crate::pe::core::Core;
use crate::pe::main::{Main, Next};
use crate::pe::op::{Op, OpPlan};
use crate::sched::plan::Plan;

/// What a PE works on.
pub(super) struct Hand<C: Code> {
    pub(super) operations: [Option<Box<Op<C::Op>>>; OPERATIONS],
    /// The operation that code has stopped for and that has not begun, if it has stopped for one; or a box for the
    /// next.
    pub(super) pending: Option<Box<Op<C::Op>>>,
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
}

impl<C: Code> Clone for Hand<C> {
    fn clone(&self) -> Hand<C> {
        let Hand { operations, pending, word, args } = self;
        let (operations, pending) = (operations.clone(), pending.clone());
        Hand { operations, pending, word: *word, args: *args }
    }
}

/// What is known of the operation that a core's code has stopped for.
pub(super) fn op_plan<C: Code>(plan: &Plan, core: &Core<C>) -> Option<OpPlan> {
    let Stop::Vector(start) = &core.segment.stop else { return None };
    let program = &plan.programs[usize::from(core.at.program)];
    OpPlan::new(program, &core.bound, start).ok()
}

/// The operation that code has stopped for is ready to begin.
pub(super) fn begin<C: Code>(code: &C, core: &mut Core<C>, known: OpPlan, hand: &mut Hand<C>) {
    let Stop::Vector(start) = &core.segment.stop else { return };
    let begun = code.begin(core.at, &mut core.state, start.clone());
    let op = Op::new(begun, known, core.task);
    let into = if op.asynchronous { &mut hand.pending } else { &mut hand.operations[OF_MAIN] };
    match into {
        Some(before) => **before = op,
        None => *into = Some(Box::new(op)),
    }
}

/// What a core works on.
pub(super) fn lift<C: Code>(plan: &Plan, code: &C, core: &mut Core<C>) -> Hand<C> {
    let mut operations = [const { None }; OPERATIONS];
    for op in core.threads.iter() {
        operations[usize::from(op.microthread)] = Some(Box::new(op.clone()));
    }
    let mut hand = Hand { operations, pending: None, word: None, args: ([0; 2], 0) };
    match &mut core.main {
        Main::Ready { next: Next::Start { args, count }, .. } => hand.args = (*args, *count),
        Main::Counting { .. } => {
            if let Some(known) = op_plan(plan, core) {
                begin(code, core, known, &mut hand);
            }
        }
        Main::Vector(op) => hand.operations[OF_MAIN] = Some(op.clone()),
        Main::Launch(op) => hand.pending = Some(op.clone()),
        Main::Idle | Main::Ready { .. } => {}
    }
    hand
}

/// An operation goes on with what one has done that was begun in a later round, and is as it is but for that.
fn go_on_with<O>(op: &mut Op<O>, with: Option<Box<Op<O>>>) {
    if let Some(with) = with {
        op.code = with.code;
    }
}

/// Puts back into a core what it works on.
pub(super) fn settle<C: Code>(plan: &Plan, core: &mut Core<C>, hand: Hand<C>) {
    let Hand { mut operations, pending, word, args } = hand;
    for op in core.threads.iter_mut() {
        let with = operations.get_mut(usize::from(op.microthread)).and_then(Option::take);
        go_on_with(op, with);
    }
    let of_main = operations[OF_MAIN].take();
    match &mut core.main {
        Main::Ready { next: Next::Start { args: own, count }, .. } => {
            let program = &plan.programs[usize::from(core.at.program)];
            let task = &program.tasks[usize::from(core.task)];
            (*own, *count) = args;
            if let Some(word) = word
                && let Main::Ready { next: Next::Start { args, count: of }, .. } =
                    Main::<C::Op>::start(task, word, 0)
            {
                (*own, *count) = (args, of);
            }
        }
        Main::Vector(op) => go_on_with(op, of_main),
        Main::Launch(op) => go_on_with(op, pending),
        Main::Idle | Main::Ready { .. } | Main::Counting { .. } => {}
    }
}
