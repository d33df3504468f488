//! The main thread: section 4 of spec/time.md.

use dflow_ir::cost::Slots;
use dflow_ir::mesh::Color;
use dflow_ir::ty::Ty;

use super::code::Code;
use super::core::{Completion, Core, Fault, Sent, bits};
use super::issue::Readiness;
use super::op::{Op, OpPlan};
use super::plan::{NO_TASK, TaskPlan};
use super::registers::{View, view};
use super::visit::Visit;
use crate::exec::{
    ActKind, CodeTrap, CodeTrapKind, ConfigRead, Each, Entry, SharedStart, SlotAct, Stop,
};
use crate::fabric::channel::Outlet;
use crate::fabric::router::Router;
use crate::sched::plan::Plan;
use crate::sched::region::Region;
use crate::trap::TrapKind;
use crate::ways::Why;

/// Where the main thread stands.
#[derive(Debug)]
pub(crate) enum Main<O> {
    /// No task runs.
    Idle,
    /// The next segment begins with the first slot from cycle `from` on.
    Ready { from: u64, next: Next },
    /// Slots of the segment are spent: `slot` is the next one of `total`; `next` is the next one
    /// in which something happens (a flag operation, the stop). Nobody looks while `asleep`.
    Counting { slot: u32, total: u32, next: u32, flag: u32, asleep: Option<u64> },
    /// A synchronous vector operation.
    Vector(Box<Op<O>>),
    /// An asynchronous one waits for its slot and its microthread.
    Launch(Box<Op<O>>),
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// All elements were done, or a control wavelet came.
    pub(crate) whole: bool,
    /// What its value says.
    pub(crate) complete: bool,
}

impl End {
    /// All elements were done.
    pub(crate) const WHOLE: End = End { whole: true, complete: true };
}

/// How the next segment begins. Both carry a number of one size, so that it is handed on in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// At the start of the task, with the word that it starts with.
    Start { payload: u64 },
    /// After an act.
    Resume { value: u64 },
}

impl TaskPlan {
    /// The arguments that a word becomes, and how many.
    #[inline]
    pub(crate) fn args(&self, payload: u32) -> ([u64; 2], u8) {
        let mut args = [0; 2];
        if self.params.is_empty() {
            return (args, 0);
        }
        let halves = [u64::from(payload), u64::from(payload >> 16)];
        let both = self.params.len() == 2;
        for ((arg, &ty), &half) in args.iter_mut().zip(&self.params).zip(&halves) {
            *arg = if both { Ty::I16.mask(half) } else { ty.mask(half) };
        }
        (args, self.params.len().min(2) as u8)
    }
}

impl<O> Main<O> {
    /// A task that was picked, with its word.
    #[inline]
    pub(super) fn start(from: u64, payload: u32) -> Main<O> {
        Main::Ready { from, next: Next::Start { payload: payload.into() } }
    }

    /// Becomes another one. There is nothing to drop where no operation was, as nearly always.
    #[inline]
    pub(super) fn set(&mut self, to: Main<O>) {
        const { assert!(!std::mem::needs_drop::<Next>()) };
        match self {
            Main::Vector(_) | Main::Launch(_) => *self = to,
            Main::Idle | Main::Ready { .. } | Main::Counting { .. } => {
                std::mem::forget(std::mem::replace(self, to));
            }
        }
    }

    /// The vector operation that it is at, or waits to launch.
    #[inline]
    pub(super) fn operation(&self) -> Option<&Op<O>> {
        match self {
            Main::Vector(op) | Main::Launch(op) => Some(op),
            Main::Idle | Main::Ready { .. } | Main::Counting { .. } => None,
        }
    }

    pub(super) fn resume(from: u64, value: u64) -> Main<O> {
        Main::Ready { from, next: Next::Resume { value } }
    }
}

impl<C: Code> Region<C> {
    /// One slot of the main thread, which it has been given.
    pub(super) fn main_slot(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ready: Readiness,
    ) -> Result<(), Fault> {
        match core.main {
            Main::Idle => Ok(()),
            Main::Counting { .. } => self.count_slot(at, core),
            Main::Ready { next, .. } => {
                let total = self.segment(at, core, next);
                core.main.set(Main::Counting { slot: 0, total, next: 0, flag: 0, asleep: None });
                core.acted.acted = true;
                self.count_slot(at, core)
            }
            Main::Vector(_) => self.main_element(at, core, ready),
            Main::Launch(_) => {
                let main = std::mem::replace(&mut core.main, Main::resume(at.t + 1, 1));
                let Main::Launch(op) = main else { return Ok(()) };
                core.acted.acted = true;
                self.launch(at, core, op)
            }
        }
    }

    /// Runs code up to its next act; the slots that it takes.
    #[inline]
    pub(super) fn segment(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, next: Next) -> u32 {
        if run_segment(at, core, self.routers[at.pe as usize].as_deref(), next) {
            self.spoil_tape();
        }
        let total = core.segment.cycles.max(1);
        if let Some(tape) = &mut self.tape {
            tape.segment(at.pe, core.at, core.task, next, &core.segment);
        }
        let assumed = core.segment.assumed;
        self.takes_slots(core, at.t, (total, assumed));
        total
    }

    /// A segment takes so many slots from cycle `t` on, and so many of them are assumed.
    #[inline]
    pub(super) fn takes_slots(&mut self, core: &mut Core<C>, t: u64, slots: (u32, u32)) {
        self.take_slots_evenly(core, (t, 0), 1, slots);
    }

    /// `count` segments do, the first from cycle `t` on and the others `period` cycles later each.
    #[inline]
    pub(super) fn take_slots_evenly(
        &mut self,
        core: &mut Core<C>,
        (t, period): (u64, u64),
        count: u64,
        (total, assumed): (u32, u32),
    ) {
        if self.flow && core.stretches() != 0 {
            self.delay(core, (t, period), count, total.into());
        }
        self.stats.assumed += count * u64::from(assumed);
    }

    /// One counted slot.
    pub(super) fn count_slot(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
    ) -> Result<(), Fault> {
        let Main::Counting { slot, total, mut flag, .. } = core.main else { return Ok(()) };
        let is_last = slot + 1 == total;
        while let Some(&act) = core.segment.acts.get(flag as usize)
            && (is_last || act.slot <= slot)
        {
            flag += 1;
            self.slot_act(at, core, core.task, act)?;
        }
        if is_last {
            core.acted.acted = true;
            return self.stop(at, core);
        }
        let next_flag = core.segment.acts.get(flag as usize).map_or(u32::MAX, |it| it.slot);
        let next = next_flag.clamp(slot + 1, total - 1);
        core.main.set(Main::Counting { slot: slot + 1, total, next, flag, asleep: None });
        core.acted.counted = true;
        Ok(())
    }

    /// What takes effect in a slot of its own.
    pub(super) fn slot_act(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        task: u16,
        act: SlotAct,
    ) -> Result<(), Fault> {
        let SlotAct { slot: _, what, loc } = act;
        let done = match what {
            ActKind::Odd(odd) => {
                return self.odd(at.plan, (core.at.number, task), odd, loc, at.t);
            }
            ActKind::Flag { op, id } => core.flag(at.program, op, id, at.t),
            ActKind::Write { address, value } => {
                match core.write_own(at.plan, at.program, address, value, at.t) {
                    Some(done) => done,
                    None => {
                        let done = self.write_register(at.plan, at.pe, at.t, address, value);
                        core.close_pipes(self.rewritten);
                        done
                    }
                }
            }
        };
        core.acted.acted = true;
        done.map_err(|kind| Fault { kind: Box::new(kind), task, loc, color: None })
    }

    /// The act at the end of a segment.
    pub(super) fn stop(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Result<(), Fault> {
        let (task, program, t) = (core.task, at.program, at.t);
        let fault = |kind: CodeTrapKind, loc| {
            Err(Fault { kind: Box::new(TrapKind::Code(kind)), task, loc, color: None })
        };
        core.main.set(Main::resume(t + 1, 0));
        match std::mem::replace(&mut core.segment.stop, Stop::Return) {
            Stop::Return => core.end_task(),
            Stop::Yield => {}
            Stop::Clock(op) => {
                let value = core.clock.act(op, t);
                core.main = Main::resume(t + 1, value);
            }
            Stop::Queues(state) => {
                let value = core.queues(program, state, t);
                core.main = Main::resume(t + 1, value);
            }
            Stop::Config(ConfigRead { address, loc }) => {
                let router = self.routers[at.pe as usize].as_deref();
                let Some(value) = view(at.plan, core, router, t).look(address) else {
                    return fault(CodeTrapKind::NoRegister { address }, loc);
                };
                core.main = Main::resume(t + 1, value.into());
            }
            Stop::Trap(CodeTrap { kind, loc }) => return fault(kind, loc),
            Stop::Host(_) => {
                let loc = program.tasks[usize::from(task)].loc;
                return fault(CodeTrapKind::Unreachable, loc);
            }
            Stop::Vector(start) => return self.begin(at, core, start),
        }
        Ok(())
    }

    /// A vector operation begins after the visit's slot.
    fn begin(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        start: SharedStart,
    ) -> Result<(), Fault> {
        let (task, program, loc) = (core.task, at.program, start.loc);
        let fault = |kind| Fault { kind: Box::new(kind), task, loc, color: None };
        let plan = OpPlan::new(program, &core.bound, &start).map_err(fault)?;
        let op = self.new_operation(at, core, start, plan);
        if op.asynchronous {
            if op.microthread >= program.microthreads {
                return Err(fault(TrapKind::BadId { id: op.microthread.into() }));
            }
            core.main = Main::Launch(op);
            return Ok(());
        }
        self.start(at, core, op)
    }

    /// A synchronous operation takes its queues.
    pub(super) fn start(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        mut op: Box<Op<C::Op>>,
    ) -> Result<(), Fault> {
        self.claim(at, core, &mut op)?;
        if at.code.is_done(&op.code) {
            self.end_main(at.plan, at.code, core, at.pe, at.t, op, End::WHOLE)
        } else {
            core.main = Main::Vector(op);
            Ok(())
        }
    }

    /// An operation takes its queues; what commands routers on its way goes through all of them.
    fn claim(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
    ) -> Result<(), Fault> {
        if let Some(output) = op.output.filter(|_| op.commands()) {
            self.close_gather(at.pe, output.color);
            self.close_merge(at.pe, output.color);
            let outlet = core.outlets.entry(output.color.into());
            match *outlet {
                Outlet::Pipe(id) | Outlet::Closing(id) => *outlet = Outlet::Closing(id),
                Outlet::Gathered(_) => {}
                Outlet::Unknown | Outlet::Routers(_) | Outlet::Channel(_) | Outlet::Merged(_) => {
                    let old = std::mem::replace(outlet, Outlet::Routers(Why::Commands));
                    core.retry &= !(1 << output.color);
                    self.cut_later(at.plan, old);
                }
            }
        } else if let Some(output) = op.output
            && let Outlet::Closing(id) = core.outlet(output.color)
        {
            self.reopen(at.plan, core, (output.queue, output.color), id);
        } else if let Some(output) = op.output
            && core.retry >> output.color & 1 != 0
        {
            core.look_again(output.color);
        }
        core.claim(op)?;
        if self.flow {
            if core.threads.is_empty() {
                core.steps.begin();
            }
            self.start_flow(at, core, op);
        }
        Ok(())
    }

    /// An asynchronous operation takes its microthread.
    pub(super) fn launch(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        mut op: Box<Op<C::Op>>,
    ) -> Result<(), Fault> {
        self.tape_launch(at, core, &op);
        self.claim(at, core, &mut op)?;
        if at.code.is_done(&op.code) {
            self.end_thread(at.plan, at.code, core, at.pe, at.t, &mut op, true)?;
        }
        core.registers.starts(op.input_mask(), op.priority);
        let quick = at.code.is_plain(&op.code);
        core.threads.launch(op, quick);
        Ok(())
    }

    /// A synchronous operation has ended in cycle `t`.
    #[expect(clippy::too_many_arguments, reason = "split borrows of one core's surroundings")]
    pub(crate) fn end_main(
        &mut self,
        plan: &Plan,
        code: &C,
        core: &mut Core<C>,
        pe: u32,
        t: u64,
        mut op: Box<Op<C::Op>>,
        end: End,
    ) -> Result<(), Fault> {
        core.owned_in &= !op.input_mask();
        core.owned_out &= !op.output_mask();
        core.main = Main::resume(t + 1, end.complete.into());
        let done = self.finish(plan, code, core, pe, t, &mut op, end.whole, None);
        self.spare.push(op);
        done
    }

    /// An operation that starts, in a box: one that was used of late, which the host still has at hand.
    #[inline]
    pub(super) fn new_operation(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        start: SharedStart,
        plan: OpPlan,
    ) -> Box<Op<C::Op>> {
        if let (Some(output), true) = (plan.output, self.flow) {
            self.note_sender(core, output);
        }
        let code = at.code.begin(core.at, &mut core.state, start);
        let op = Op::new(code, plan, core.task);
        match self.spare.pop() {
            Some(mut spare) => {
                *spare = op;
                spare
            }
            None => {
                self.bytes += size_of::<Op<C::Op>>() as u64;
                Box::new(op)
            }
        }
    }

    /// A microthread's operation has ended in cycle `t`.
    #[expect(clippy::too_many_arguments, reason = "split borrows of one core's surroundings")]
    pub(crate) fn end_thread(
        &mut self,
        plan: &Plan,
        code: &C,
        core: &mut Core<C>,
        pe: u32,
        t: u64,
        op: &mut Op<C::Op>,
        whole: bool,
    ) -> Result<(), Fault> {
        let id = op.microthread;
        self.finish(plan, code, core, pe, t, op, whole, Some(id))
    }

    /// Writes back what an operation leaves and arranges its completion.
    #[expect(clippy::too_many_arguments, reason = "split borrows of one core's surroundings")]
    fn finish(
        &mut self,
        plan: &Plan,
        code: &C,
        core: &mut Core<C>,
        pe: u32,
        t: u64,
        op: &mut Op<C::Op>,
        whole: bool,
        microthread: Option<u8>,
    ) -> Result<(), Fault> {
        op.ended = true;
        if let Some(tape) = &mut self.tape {
            tape.finish(pe, op, whole);
        }
        if op.flows {
            self.end_flow(plan, core, (pe, t), op);
        } else {
            core.awaits_pipes &= !op.needs.inputs;
        }
        let (task, loc) = (op.task, op.loc);
        let fault = |kind| Fault { kind: Box::new(TrapKind::Code(kind)), task, loc, color: None };
        code.finish(core.at, &mut core.state, &mut op.code, whole).map_err(fault)?;
        let (activate, unblock) = (op.activate, op.unblock);
        if microthread.is_some() || activate.is_some() || unblock.is_some() {
            let due = t + plan.timing.completion;
            let completion = Completion { microthread, activate, unblock, task, loc };
            if core.due.is_empty() {
                // Most have one at a time.
                core.due.reserve_exact(1);
            }
            // Those of a thread that runs ahead are known before others.
            match core.due.iter().rposition(|(other, _)| *other <= due) {
                Some(place) if place + 1 < core.due.len() => {
                    core.due.insert(place + 1, (due, completion));
                }
                Some(_) => core.due.push_back((due, completion)),
                None => core.due.push_front((due, completion)),
            }
            if due > self.now {
                self.wakes.core(pe, due);
            }
        }
        Ok(())
    }
}

impl<C: Code> Core<C> {
    /// The task that ran has returned.
    #[inline]
    pub(super) fn end_task(&mut self) {
        self.main.set(Main::Idle);
        self.task = NO_TASK;
    }

    /// An operation takes its queues.
    fn claim(&mut self, op: &Op<C::Op>) -> Result<(), Fault> {
        let clash = |queue: u8, input: bool, other: dflow_ir::loc::Loc| Fault {
            kind: Box::new(TrapKind::QueueBusy { input, queue, other }),
            task: op.task,
            loc: op.loc,
            color: op.color(queue, input).and_then(Color::new),
        };
        for input in [true, false] {
            let (mine, used) = if input {
                (op.input_mask(), self.owned_in)
            } else {
                (op.output_mask(), self.owned_out)
            };
            let both = mine & used;
            if both != 0 {
                let mask = |other: &Op<C::Op>| {
                    if input { other.input_mask() } else { other.output_mask() }
                };
                let other = self.threads.iter().find(|other| mask(other) & both != 0);
                let loc = other.map(|other| other.loc).unwrap_or_default();
                return Err(clash(both.trailing_zeros() as u8, input, loc));
            }
        }
        self.owned_in |= op.input_mask();
        for queue in bits(op.input_mask()) {
            self.inputs.get_mut(queue).into_iter().for_each(|input| input.is_read = true);
        }
        self.owned_out |= op.output_mask();
        if let Some(output) = op.output {
            let (queue, color) = (output.queue, output.color);
            let sent = &mut self.outputs.entry(queue.into()).sent;
            let before = sent.filter(|sent| sent.color == color);
            let words = before.map_or(0, |sent| sent.words);
            *sent = Some(Sent { color, task: op.task, loc: op.loc, words });
        }
        Ok(())
    }
}

/// Runs the core's task from its start with each of these arguments, as long as each run comes to its end in
/// exactly so many slots, without an act ([`Code::run_each`]).
pub(super) fn run_alike<C: Code>(
    visit: &Visit<'_, C>,
    core: &mut Core<C>,
    router: Option<&Router>,
    (args, count): (&[[u64; 2]], usize),
    like: Slots,
) -> usize {
    let Core { at, state, segment, task, registers, clock, bound, .. } = core;
    let (plan, program, number) = (visit.plan, visit.program, at.number as usize);
    let clock = (*clock, visit.t);
    let view = View::new((plan, number), router, registers, clock, (program, bound));
    let each = Each { func: program.tasks[usize::from(*task)].func, args, count, like };
    visit.code.run_each(*at, state, each, &view, segment)
}

/// Runs code up to its next act, the result of which stands in the core's segment; whether it looked at registers.
#[inline]
fn run_segment<C: Code>(
    visit: &Visit<'_, C>,
    core: &mut Core<C>,
    router: Option<&Router>,
    next: Next,
) -> bool {
    let Core { at, state, segment, task, registers, clock, bound, .. } = core;
    let (plan, program, code) = (visit.plan, visit.program, visit.code);
    let number = at.number as usize;
    let clock = (*clock, visit.t);
    let view = View::new((plan, number), router, registers, clock, (program, bound));
    segment.acts.clear();
    (segment.cycles, segment.assumed) = (0, 0);
    match next {
        Next::Start { payload } => {
            let task = &program.tasks[usize::from(*task)];
            let (args, count) = task.args(payload as u32);
            let (func, args) = (task.func, &args[..usize::from(count)]);
            code.run(*at, state, Entry::Start { func, args }, &view, segment);
        }
        Next::Resume { value } => {
            code.run(*at, state, Entry::Resume { value }, &view, segment);
        }
    }
    view.has_been_seen()
}
