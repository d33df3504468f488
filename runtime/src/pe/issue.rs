//! One issue slot: R9 and R10.

use dflow_ir::inst::{MainPriority, OnControl, Priority};

use super::code::{Code, Fifo, Pe};
use super::core::{Core, Fault, Input, Sight};
use super::main::{End, Main};
use super::op::{Needs, Op};
use super::plan::PePlan;
use super::threads::in_turn;
use crate::fabric::ring::{Ring, Slot};
use crate::sched::plan::Plan;
use crate::sched::record::MAIN;
use crate::sched::region::Region;
use crate::trap::TrapKind;

/// Whether an operation can use a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// For an element.
    Element,
    /// A control wavelet ends it.
    Control,
    /// A FIFO is full or empty, which ends it: complete or not.
    Fifo { complete: bool },
    /// A FIFO is full or empty, which must not be.
    Fault,
    /// A word or a place is missing.
    No,
}

/// The two highest bits of the index: what marks a control wavelet that passes as data.
const MARK: u32 = 0xc000_0000;

/// A wavelet as an element of an operation with `.control_transform`.
fn mark(word: Slot, mask: u32) -> u32 {
    if word.control { (word.payload ^ mask) | MARK } else { word.payload & !MARK }
}

impl Sight {
    /// Whether each input that an operation needs has a word, and the output a place.
    pub(super) fn serves(self, needs: Needs) -> bool {
        needs.inputs & !self.words | needs.output & self.full == 0
    }
}

impl<C: Code> Core<C> {
    /// Whether an operation can use the slot of cycle `t`.
    fn readiness(
        (at, state, inputs, outputs): (Pe, &mut C::State, &[Input], &[Ring]),
        code: &C,
        op: &Op<C::Op>,
        t: u64,
    ) -> Readiness {
        if op.ended {
            return Readiness::No;
        }
        if op.has_fifo {
            match code.fifo(at, state, &op.code) {
                Fifo::Ready => {}
                Fifo::Wait => return Readiness::No,
                Fifo::End { complete } => return Readiness::Fifo { complete },
                Fifo::Fault => return Readiness::Fault,
            }
        }
        let mut all = true;
        for &queue in op.inputs.iter().flatten() {
            match inputs[usize::from(queue)].ring.visible(t) {
                Some(_) if op.counts_control() => {}
                Some(head) if head.control && op.transforms => {}
                Some(head) if head.control && op.ignores_control() => all = false,
                Some(head) if head.control => return Readiness::Control,
                Some(_) => {}
                None => all = false,
            }
        }
        let room = op.output.is_none_or(|output| {
            let ring = &outputs[usize::from(output.queue)];
            ring.places() == 0 || ring.free_from() <= t
        });
        if all && room { Readiness::Element } else { Readiness::No }
    }

    /// How the main thread can use the slot of cycle `t`, if it can.
    fn main_ready(&mut self, code: &C, t: u64) -> Option<Readiness> {
        let ready = match &self.main {
            Main::Idle => false,
            Main::Ready { from, .. } => *from <= t,
            Main::Counting { .. } => true,
            Main::Launch(op) => self.threads.is_free(op.microthread),
            Main::Vector(op) if op.until > t => false,
            Main::Vector(op) => {
                if op.is_plain() && self.sight.controls & op.needs.inputs == 0 {
                    return self.sight.serves(op.needs).then_some(Readiness::Element);
                }
                let parts = (self.at, &mut self.state, &*self.inputs, &*self.outputs);
                let ready = Self::readiness(parts, code, op, t);
                return (ready != Readiness::No).then_some(ready);
            }
        };
        ready.then_some(Readiness::Element)
    }

    /// The first ready microthread of a class, in turn.
    fn ready_thread(&mut self, code: &C, class: Priority, t: u64) -> Option<(u8, Readiness)> {
        let running = self.threads.class(class) & !self.thread_blocked;
        for id in in_turn(running, self.last_thread) {
            let (needs, plain) = self.threads.needs(id);
            if plain && self.sight.controls & needs.inputs == 0 {
                if self.sight.serves(needs) {
                    return Some((id, Readiness::Element));
                }
                continue;
            }
            let Some(op) = self.threads.get(id) else { continue };
            let parts = (self.at, &mut self.state, &*self.inputs, &*self.outputs);
            match Self::readiness(parts, code, op, t) {
                Readiness::No => {}
                ready @ (Readiness::Element
                | Readiness::Control
                | Readiness::Fifo { .. }
                | Readiness::Fault) => return Some((id, ready)),
            }
        }
        None
    }
}

impl<C: Code> Region<C> {
    /// Gives the slot of cycle `t` to a thread.
    pub(crate) fn issue(
        &mut self,
        plan: &Plan,
        program: &PePlan,
        code: &C,
        core: &mut Core<C>,
        pe: u32,
        t: u64,
    ) -> Result<(), Fault> {
        let any = core.threads.any();
        let turn = match core.main_priority {
            MainPriority::High => 0,
            MainPriority::MediumHigh | MainPriority::Medium => 1,
            MainPriority::MediumLow => 2,
        };
        let classes = [Priority::High, Priority::Medium, Priority::Low];
        for (at, class) in classes.into_iter().enumerate() {
            if at == turn
                && let Some(ready) = core.main_ready(code, t)
            {
                self.count(core, MAIN, t, 1);
                return self.main_slot(plan, program, code, core, pe, t, ready);
            }
            if any
                && core.threads.class(class) != 0
                && let Some(ready) = core.ready_thread(code, class, t)
            {
                return self.thread_slot(plan, program, code, core, pe, t, ready);
            }
        }
        Ok(())
    }

    /// A microthread's slot.
    #[expect(clippy::too_many_arguments, reason = "split borrows of one core's surroundings")]
    fn thread_slot(
        &mut self,
        plan: &Plan,
        program: &PePlan,
        code: &C,
        core: &mut Core<C>,
        pe: u32,
        t: u64,
        (id, ready): (u8, Readiness),
    ) -> Result<(), Fault> {
        core.last_thread = id;
        core.acted.acted = true;
        self.count(core, id, t, 1);
        let Some(mut op) = core.threads.take(id) else { return Ok(()) };
        if op.flows && ready == Readiness::Element {
            let flowed = self.chunk(plan, code, core, pe, t, &mut op);
            if !matches!(flowed, Ok(false)) {
                core.threads.put(op);
                return flowed.map(|_| ());
            }
            self.draw(core, pe, t, &op);
        }
        let result = match ready {
            Readiness::Fifo { .. } => self.end_thread(plan, code, core, pe, t, &mut op, false),
            Readiness::Element | Readiness::Control | Readiness::Fault | Readiness::No => {
                self.element(plan, program, code, core, pe, t, &mut op, ready).and_then(|ended| {
                    if !ended {
                        return Ok(());
                    }
                    self.end_thread(plan, code, core, pe, t, &mut op, true)
                })
            }
        };
        core.threads.put(op);
        result
    }

    /// A slot of the main thread's vector operation.
    #[expect(clippy::too_many_arguments, reason = "split borrows of one core's surroundings")]
    pub(crate) fn main_element(
        &mut self,
        plan: &Plan,
        program: &PePlan,
        code: &C,
        core: &mut Core<C>,
        pe: u32,
        t: u64,
        mut op: Box<Op<C::Op>>,
        ready: Readiness,
    ) -> Result<(), Fault> {
        core.acted.acted = true;
        if let Readiness::Fifo { complete } = ready {
            let end = End { whole: false, complete };
            return self.end_main(plan, code, core, pe, t, op, end);
        }
        if op.flows && ready == Readiness::Element {
            if self.chunk(plan, code, core, pe, t, &mut op)? {
                core.main = Main::Vector(op);
                return Ok(());
            }
            self.draw(core, pe, t, &op);
        }
        if self.element(plan, program, code, core, pe, t, &mut op, ready)? {
            self.end_main(plan, code, core, pe, t, op, End::WHOLE)
        } else {
            core.main = Main::Vector(op);
            Ok(())
        }
    }

    /// One element, or the control wavelet that ends the operation; whether it has ended.
    #[expect(clippy::too_many_arguments, reason = "split borrows of one core's surroundings")]
    fn element(
        &mut self,
        plan: &Plan,
        program: &PePlan,
        code: &C,
        core: &mut Core<C>,
        pe: u32,
        t: u64,
        op: &mut Op<C::Op>,
        ready: Readiness,
    ) -> Result<bool, Fault> {
        let (task, loc) = (op.task, op.loc);
        let fault = |kind| Fault { kind: Box::new(kind), task, loc, color: None };
        if ready == Readiness::Fault {
            return Err(fault(TrapKind::FifoFault));
        }
        if ready == Readiness::Control {
            self.end_by_control(plan, core, pe, t, op);
            return Ok(true);
        }
        let (mut words, mut origin) = ([0; 2], 0);
        let mut at = 0;
        for source in op.inputs {
            let (Some(queue), Some(word)) = (source, words.get_mut(at)) else { continue };
            at += 1;
            let taken = self.take_input(plan, core, pe, queue.into(), t);
            if op.counts_control() && !taken.control {
                self.rests(plan, pe, taken.color);
                return Ok(false);
            }
            *word = match op.transforms {
                true => mark(taken, core.transform_mask),
                false => taken.payload,
            };
            if self.watch.to_mesh >> taken.color & 1 != 0 {
                match op.output {
                    Some(output) if self.watch.passes(taken.color, output.color) => {
                        origin = taken.color + 1;
                    }
                    Some(_) | None => self.rests(plan, pe, taken.color),
                }
            }
        }
        let done = code
            .element(core.at, &mut core.state, &mut op.code, words)
            .map_err(|kind| fault(TrapKind::Code(kind)))?;
        if (done.left || plan.track)
            && let Some(odd) = code.odd(core.at, &mut core.state, &op.code, done.left)
        {
            self.odd(plan, (core.at.number, task), odd, loc, t)?;
        }
        for id in done.activate.into_iter().flatten() {
            core.flag(program, dflow_ir::inst::FlagOp::Activate, id.into(), t).map_err(fault)?;
        }
        let ended = code.is_done(&op.code);
        if let (Some(payload), Some(output)) = (done.output, op.output) {
            let ring = &mut core.outputs[usize::from(output.queue)];
            if ring.places() == 0 {
                *ring = Ring::new(program.outputs[usize::from(output.queue)].places);
            }
            let advance = output.advance && ended;
            core.leaving |= 1 << output.queue;
            let marked = output.transform && payload & MARK == MARK;
            ring.push(Slot {
                stamp: t + 1,
                payload: if output.transform { payload & !MARK } else { payload },
                color: output.color,
                control: output.control || marked,
                advance,
                origin,
            });
            core.full |= u64::from(ring.is_full()) << output.queue;
        }
        Ok(ended)
    }

    /// A control wavelet ends an operation; the setting says what follows.
    fn end_by_control(
        &mut self,
        plan: &Plan,
        core: &mut Core<C>,
        pe: u32,
        t: u64,
        op: &mut Op<C::Op>,
    ) {
        for queue in op.inputs.into_iter().flatten() {
            let head = core.inputs[usize::from(queue)].ring.visible(t);
            if head.is_some_and(|head| head.control) {
                self.take_input(plan, core, pe, queue.into(), t);
                break;
            }
        }
        match op.on_control {
            OnControl::Ignore | OnControl::Terminate | OnControl::Count => {}
            OnControl::Activate(id) => (op.activate, op.unblock) = (Some(id), None),
            OnControl::Unblock(what) => (op.activate, op.unblock) = (None, Some(what)),
        }
    }
}
