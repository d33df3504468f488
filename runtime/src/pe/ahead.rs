//! A visit to a core all of whose operations flow: nothing there happens slot by slot.
//!
//! The main thread runs ahead: segment after segment up to the end of its task, or to something
//! that it waits for, in one visit. Times are those that the slots would give; acts that others in
//! the core could tell apart from the program's order are applied in their own cycles. Whatever is
//! not common is left to the visit by slots, at the cycle in which it is due.
//!
//! Invariant: the main thread does nothing before `main_from`; what it has done before that is
//! seen by nobody but itself.

use dflow_ir::inst::FlagOp;

use super::code::Code;
use super::core::{Core, Fault, bits};
use super::main::Main;
use super::op::{Op, OpPlan};
use super::plan::PePlan;
use super::share::WHOLE;
use super::visit::Visit;
use crate::exec::{ActKind, SharedStart, SlotAct, Stop};
use crate::fabric::channel::Outlet;
use crate::fabric::ring::NEVER;
use crate::sched::record::MAIN;
use crate::sched::region::Region;
use crate::sched::rounds::Noter;

/// Cycles by which the main thread may run ahead.
pub(super) const AHEAD: u64 = 1 << 12;

/// An act of the main thread that is to be applied in a later cycle, and the task that did it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaterAct {
    pub(crate) at: u64,
    task: u16,
    act: SlotAct,
}

/// Tasks that the main thread has run ahead over: since when, the slots of all, and from when on the
/// last one has them, and of those before it how many. Between these others have slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TasksAhead {
    since: u64,
    slots: u64,
    last: u64,
    before: u64,
}

impl LaterAct {
    /// Notes what is to be applied when.
    pub(super) fn note(&self, noter: &mut Noter<'_>) {
        let LaterAct { at, task, act } = self;
        noter.cycle(*at);
        noter.value((task, act.slot, format!("{:?}", act.what)));
    }

    /// It is to be applied so many cycles later.
    pub(super) fn put_off(&mut self, by: u64) {
        self.at += by;
    }
}

impl TasksAhead {
    /// Notes when the main thread has slots.
    pub(super) fn note(&self, noter: &mut Noter<'_>) {
        let TasksAhead { since, slots, last, before } = self;
        noter.value((slots, before));
        [since, last].into_iter().for_each(|&cycle| noter.cycle(cycle));
    }

    /// Slots of all.
    #[inline]
    pub(super) fn slots(&self) -> u64 {
        self.slots
    }

    /// It has gone over `count` others that have had so many slots each, the first from a cycle on and those
    /// after it a period later each.
    pub(super) fn begin_alike(&mut self, (from, period): (u64, u64), slots: u32, count: u64) {
        let others = count.saturating_sub(1);
        self.last = from + others * period;
        self.before = self.slots + others * u64::from(slots);
        self.slots += count * u64::from(slots);
    }

    /// It goes on to another one, which has slots from cycle `from` on.
    #[inline]
    pub(super) fn begin(&mut self, from: u64) {
        (self.last, self.before) = (from, self.slots);
    }

    /// It has them so many cycles later.
    pub(super) fn put_off(&mut self, by: u64) {
        (self.since, self.last) = (self.since + by, self.last + by);
    }
}

/// How far the main thread came by a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// Its task goes on.
    On,
    /// To the end of its task.
    Through,
    /// What ends the segment is left to the visit by slots.
    Rests,
}

/// Whether a flag says no more than which task may come next.
fn is_for_next(op: FlagOp) -> bool {
    use FlagOp::{BlockChannel, BlockTask, UnblockChannel, UnblockTask};
    matches!(op, BlockChannel | BlockTask | UnblockChannel | UnblockTask)
}

impl<C: Code> Core<C> {
    /// Whether nothing here happens slot by slot.
    #[inline(always)]
    pub(super) fn streams(&self) -> bool {
        let main = match &self.main {
            Main::Idle | Main::Ready { .. } => true,
            Main::Vector(op) => op.flows && (op.stretch.is_on() || !self.crowds_out(op)),
            Main::Counting { .. } | Main::Launch(_) => false,
        };
        main && self.leaving | self.arrived & self.flowing_in | self.sight.controls == 0
            && self.threads.steppers() == 0
            && !self.is_flushing()
            && !self.registers.tears()
    }

    /// Whether an operation that goes by stretches has no way for its words any more on which it could: what
    /// stood on it has been put into routers.
    fn has_lost_its_way(&self, op: &Op<C::Op>) -> bool {
        op.flows
            && op.output.is_some_and(|output| match self.outlet(output.color) {
                Outlet::Pipe(_) | Outlet::Gathered(_) => false,
                Outlet::Unknown
                | Outlet::Routers(_)
                | Outlet::Channel(_)
                | Outlet::Closing(_)
                | Outlet::Merged(_) => true,
            })
    }

    /// The main thread, which has run ahead, gets so many slots fewer on its way.
    pub(super) fn put_off_main(&mut self, late: u64) {
        self.main_from += late;
        match &mut self.main {
            Main::Ready { from, .. } => *from += late,
            Main::Vector(op) if !op.stretch.is_on() => op.from += late,
            Main::Idle | Main::Counting { .. } | Main::Vector(_) | Main::Launch(_) => {}
        }
    }

    /// From which cycle on an operation that comes after the main thread may have slots, being ready from
    /// cycle `t` on: between tasks that the main thread has run ahead over, or when it is through.
    pub(super) fn slots_from(&self, t: u64) -> u64 {
        if t < self.main_from && self.share_ahead(t) < WHOLE / 8 { self.main_from } else { t }
    }

    /// The part of the slots from cycle `t` up to the last task which the main thread has run ahead over
    /// that those before it leave to others; nothing from the last one on.
    fn share_ahead(&self, t: u64) -> u64 {
        let TasksAhead { since, last, before, .. } = self.tasks_ahead;
        if t < since || t >= last {
            0
        } else {
            WHOLE.saturating_sub(before * WHOLE / (last - since))
        }
    }

    /// Whether tasks since the main thread has run ahead, which have had so many slots by a cycle, leave a quarter
    /// of all to others.
    pub(super) fn tasks_leave_slots(&self, slots: u64, by: u64) -> bool {
        4 * slots <= 3 * by.saturating_sub(self.tasks_ahead.since)
    }

    /// Before which cycle the last of `count` elements from cycle `t` on, which come after the main
    /// thread, cannot issue for its tasks.
    pub(super) fn behind_tasks(&self, t: u64, count: u64) -> u64 {
        if t >= self.main_from {
            return 0;
        }
        let share = self.share_ahead(t).max(1);
        let between = self.tasks_ahead.last.saturating_sub(t) * share / WHOLE;
        match count.checked_sub(between) {
            None | Some(0) => t + count * WHOLE / share - 1,
            Some(rest) => self.main_from + rest - 1,
        }
    }

    /// Whether nothing but the main thread is at work, so that nobody minds when its flags change
    /// before it is through.
    fn is_quiet(&self) -> bool {
        !self.threads.any() && self.due.is_empty() && self.later.is_empty()
    }

    /// Whether it is known which task comes next in cycle `t`, when the main thread is through: no
    /// word can start one, or the next one that does is there.
    pub(super) fn knows_next(&self, program: &PePlan, t: u64) -> bool {
        let mut heard = bits(program.heard);
        match (heard.next(), heard.next()) {
            _ if !self.is_quiet() => false,
            _ if !program.hears => true,
            (Some(queue), None) => {
                let channel = self.input(program, queue).channel;
                let has_word = self.inputs.get(queue).is_some_and(|it| it.ring.first() <= t);
                self.channel_blocked >> channel & 1 != 0 || has_word
            }
            _ => false,
        }
    }
}

impl<C: Code> Region<C> {
    /// Visits a core that [`Core::streams`]; when its main thread begins the next task, if that is known.
    pub(super) fn stream(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Result<u64, Fault> {
        self.end_stretches(at, core)?;
        if !core.due.is_empty() {
            self.note_ends(at, core);
            core.complete(at.program, at.t, &mut self.spare)?;
        }
        if !core.later.is_empty() {
            self.apply_later(at, core)?;
        }
        // Before the next task has slots, and after what it has started.
        self.begin_stretches(at, core)?;
        let (ran, next) = self.run_tasks(at, core)?;
        if ran {
            self.begin_stretches(at, core)?;
        }
        if core.acted.acted {
            self.active_until = self.active_until.max(at.t + 1);
        }
        if core.acted.bound {
            self.unblock(at.pe, at.t + 1);
        }
        core.acted.acted = false;
        if !core.streams() && !matches!(core.main, Main::Counting { .. }) {
            self.wakes.core(at.pe, core.main_from.max(at.t + 1));
        }
        // Words may have come before they can be seen.
        for queue in bits(core.arrived & !core.sight.words) {
            let first = core.inputs[queue].ring.first().max(at.t + 1);
            let owned = core.owned_in >> queue & 1 != 0;
            self.wakes.core(at.pe, if owned { first } else { first.max(core.main_from) });
        }
        Ok(next)
    }

    /// Runs tasks: one after the other while nothing but they can say what the next one is; whether
    /// any, and when the next one begins if it is known.
    fn run_tasks(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Result<(bool, u64), Fault> {
        let mut ran = false;
        // One that is ahead lets the others come up first: many tasks in one visit, not one in each.
        let is_ahead = core.main_from > at.t;
        if !is_ahead {
            core.tasks_ahead = TasksAhead { since: at.t, last: at.t, ..TasksAhead::default() };
        }
        loop {
            ran |= matches!(core.main, Main::Ready { .. });
            self.run_ahead(at, core)?;
            if at.program.pulls != 0 && !is_ahead && matches!(core.main, Main::Idle) {
                ran |= self.hear(at, core)?;
            }
            if !matches!(core.main, Main::Idle) {
                return Ok((ran, NEVER));
            }
            let t = self.next_task(at, core);
            if t == NEVER {
                return Ok((ran, NEVER));
            }
            if t > at.t && (is_ahead || !self.may_go_on(at, core, t)) {
                return Ok((ran, t));
            }
            let then = Visit { t, ..*at };
            if at.program.hears {
                self.draw_heard(&then, core);
                core.look(t);
            }
            let Some(from) = self.pick(&then, core) else { return Ok((ran, NEVER)) };
            core.tasks_ahead.begin(from);
        }
    }

    /// Applies acts of the main thread that are due.
    pub(super) fn apply_later(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
    ) -> Result<(), Fault> {
        while let Some(&LaterAct { task, act, .. }) = core.later.front().filter(|it| it.at <= at.t)
        {
            core.later.pop_front();
            self.slot_act(at, core, task, act)?;
        }
        Ok(())
    }

    /// Runs the main thread as far as it goes; whether that was to the end of its task, in one segment that
    /// others see nothing of.
    pub(super) fn run_ahead(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
    ) -> Result<bool, Fault> {
        let mut unseen = true;
        while let Main::Ready { from, next } = core.main {
            let now = from.max(at.t);
            if now > at.t + AHEAD {
                self.wakes.core(at.pe, now);
                return Ok(false);
            }
            let total = self.segment(&Visit { t: now, ..*at }, core, next);
            match self.came_ahead(at, core, (now, total))? {
                Came::On => unseen = false,
                Came::Through => return Ok(unseen && core.segment.acts.is_empty()),
                Came::Rests => return Ok(false),
            }
        }
        Ok(false)
    }

    /// What comes of a segment that has begun in cycle `now` and takes so many slots.
    pub(super) fn came_ahead(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (now, total): (u64, u32),
    ) -> Result<Came, Fault> {
        core.acted.acted = true;
        core.tasks_ahead.slots += u64::from(total);
        let last = now + u64::from(total) - 1 + core.slots_before_main(u64::MAX, now, total.into());
        self.active_until = self.active_until.max(last + 1);
        self.act_ahead(at, core, (now, last));
        core.main_from = last + 1;
        if let Stop::Return = core.segment.stop {
            core.end_task();
            self.count(core, MAIN, now, total.into());
            return Ok(Came::Through);
        }
        if let Stop::Yield | Stop::Clock(_) = core.segment.stop {
            self.stop(&Visit { t: last, ..*at }, core)?;
            self.count(core, MAIN, now, total.into());
            return Ok(Came::On);
        }
        let rest = match std::mem::replace(&mut core.segment.stop, Stop::Return) {
            Stop::Vector(start) => self.begin_ahead(at, last, core, start)?.map(Stop::Vector),
            stop => Some(stop),
        };
        if let Some(stop) = rest {
            self.leave_rest(at, core, (now, last), stop);
            self.rest_now(at, core)?;
            return Ok(Came::Rests);
        }
        self.count(core, MAIN, now, total.into());
        Ok(Came::On)
    }

    /// The acts of a segment in cycles `now` to `last`: activations commute with whatever may come
    /// before them, and so does what decides of the next task where nobody else asks; others wait
    /// for their cycle.
    fn act_ahead(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, (now, last): (u64, u64)) {
        for index in 0..core.segment.acts.len() {
            let act = core.segment.acts[index];
            let cycle = (now + u64::from(act.slot)).min(last);
            let done = match act.what {
                ActKind::Flag { op: FlagOp::Activate, id } => core.activate(at.program, id),
                ActKind::Flag { op, id } if is_for_next(op) && core.is_quiet() => {
                    core.flag(at.program, op, id, cycle).is_ok()
                }
                ActKind::Flag { .. } | ActKind::Write { .. } | ActKind::Odd(_) => false,
            };
            if done {
                continue;
            }
            core.later.push_back(LaterAct { at: cycle, task: core.task, act });
            self.wakes.core(at.pe, cycle.max(at.t + 1));
        }
    }

    /// What ends a segment in cycle `last` is left to the visit by slots.
    fn leave_rest(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (now, last): (u64, u64),
        stop: Stop,
    ) {
        core.segment.stop = stop;
        core.main_from = last;
        let (total, flag) = (core.segment.cycles.max(1), core.segment.acts.len() as u32);
        core.main = Main::Counting { slot: total - 1, total, next: total - 1, flag, asleep: None };
        self.count(core, MAIN, now, u64::from(total) - 1);
        if last > at.t {
            self.wakes.core(at.pe, last);
        }
    }

    /// Does what was left, if it is due now.
    fn rest_now(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Result<(), Fault> {
        if core.main_from > at.t {
            return Ok(());
        }
        self.wakes.core(at.pe, at.t + 1);
        self.issue(at, core)
    }

    /// A vector operation is started in cycle `last`, if all is as is common; if not, nothing is
    /// done and it is given back.
    fn begin_ahead(
        &mut self,
        at: &Visit<'_, C>,
        last: u64,
        core: &mut Core<C>,
        start: SharedStart,
    ) -> Result<Option<SharedStart>, Fault> {
        // Which way its words take may depend on what is yet to be written.
        let writes = |later: &LaterAct| matches!(later.act.what, ActKind::Write { .. });
        if core.later.iter().any(writes) {
            return Ok(Some(start));
        }
        let microthread = start.microthread;
        if start.asynchronous
            && (microthread >= at.program.microthreads || !core.threads.is_free(microthread))
        {
            return Ok(Some(start));
        }
        let Ok(plan) = OpPlan::new(at.program, &core.bound, &start) else { return Ok(Some(start)) };
        if plan.needs.inputs & core.owned_in | plan.needs.output & core.owned_out != 0 {
            return Ok(Some(start));
        }
        let mut op = self.new_operation(at, core, start, plan);
        let begin = last + u64::from(op.asynchronous);
        // One that takes words as they come from routers is not kept from them by what the main thread is yet to do.
        let early = op.asynchronous && begin > at.t && core.is_before_main(op.priority);
        let flows = self.may_flow(at, core, &op);
        if !flows || early && self.pipes_of(at.pe, &mut op).is_none() {
            let start = at.code.start(&op.code);
            self.spare.push(op);
            return Ok(Some(start));
        }
        (op.from, core.main_from) = (begin + 1, begin + 1);
        self.active_until = self.active_until.max(begin + 1);
        let then = Visit { t: begin, ..*at };
        if op.asynchronous {
            self.count(core, MAIN, begin, 1);
            core.main = Main::resume(begin + 1, 1);
            self.launch(&then, core, op)?;
        } else {
            self.start(&then, core, op)?;
        }
        Ok(None)
    }

    /// Begins stretches of all operations that can.
    #[inline(always)]
    fn begin_stretches(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Result<(), Fault> {
        core.begins = NEVER;
        let idle = core.threads.idle() & !core.thread_blocked;
        if idle == 0 && !matches!(core.main, Main::Vector(_)) {
            return Ok(());
        }
        self.begin_idle(at, core, idle)
    }

    /// Likewise, of these microthreads, and of the main thread.
    #[inline(never)]
    fn begin_idle(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        idle: u64,
    ) -> Result<(), Fault> {
        let before = core.before_main().iter().map(|&class| core.threads.class(class));
        let before = before.fold(0, |all, of| all | of) & idle;
        let (mut begun, mut first) = (0, 0);
        for id in bits(before) {
            let began = self.begin_thread(at, core, id)?;
            begun += u64::from(began);
            first |= u64::from(began) << id;
        }
        // An operation that only sends needs nothing but slots and places, and has them first.
        let sends = matches!(&core.main, Main::Vector(op) if op.needs.inputs == 0);
        if sends {
            begun += u64::from(self.begin_main(at, core)?);
        }
        // Code that goes on now takes the slots of those that come after it.
        let goes_on = matches!(core.main, Main::Ready { from, .. } if from <= at.t);
        let after = if goes_on { 0 } else { idle & !before };
        for id in bits(after) {
            let from = core.threads.get(id as u8).map_or(0, |op| op.from);
            if !self.keeps_slots(at, core, from) {
                begun += u64::from(self.begin_thread(at, core, id)?);
            }
        }
        if !sends {
            begun += u64::from(self.begin_main(at, core)?);
        }
        if begun != 0 {
            self.stats.slots += begun;
            self.unshare(core, at.t);
        }
        if first != 0 {
            self.go_before_main(core, first, at.t);
        }
        Ok(())
    }

    /// Likewise, of a microthread; whether it did.
    fn begin_thread(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        id: usize,
    ) -> Result<bool, Fault> {
        let Some(op) = core.threads.get(id as u8) else { return Ok(false) };
        if let Some(until) = self.starves(at.t, core, op) {
            core.begins = core.begins.min(until);
            return Ok(false);
        }
        let Some(mut op) = core.threads.lend(id) else { return Ok(false) };
        let result = self.stretch(at, core, &mut op);
        if core.has_lost_its_way(&op) {
            self.flow_no_more(at, core, &mut op);
        }
        core.threads.give_back(id, op);
        result
    }

    /// Likewise, of the main thread.
    fn begin_main(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Result<bool, Fault> {
        let Main::Vector(op) = &core.main else { return Ok(false) };
        if !op.flows || op.stretch.is_on() {
            return Ok(false);
        }
        if let Some(until) = self.starves(at.t, core, op) {
            core.begins = core.begins.min(until);
            return Ok(false);
        }
        let Main::Vector(mut op) = std::mem::replace(&mut core.main, Main::Idle) else {
            return Ok(false);
        };
        let result = self.stretch(at, core, &mut op);
        if core.has_lost_its_way(&op) {
            self.flow_no_more(at, core, &mut op);
        }
        core.main = Main::Vector(op);
        result
    }

    /// Stretches `of` some microthreads that come before the main thread have begun in cycle `t`: if it has
    /// run ahead, it gets their slots later.
    pub(super) fn go_before_main(&mut self, core: &mut Core<C>, of: u64, t: u64) {
        if of == 0 || core.main_from <= t {
            return;
        }
        self.share(core, t);
        let firsts = u64::from(of.count_ones());
        let late = core.slots_before_main(of, t, core.main_from - t);
        core.put_off_main(firsts + late);
    }
}
