//! One issue slot: R9 and R10.

use dflow_ir::inst::{FlagOp, MainPriority, OnControl, Priority};

use super::code::{Code, Element, Fifo, Pe};
use super::core::{Core, Fault, Input, Outgoing, Sight};
use super::main::{End, Main};
use super::op::{Ends, Needs, Op, Output};
use super::sparse::Sparse;
use super::threads::in_turn;
use super::visit::Visit;
use crate::fabric::ring::Slot;
use crate::sched::record::MAIN;
use crate::sched::region::Region;
use crate::trap::TrapKind;

/// Whether an operation can use a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// For an element.
    Element,
    /// For an element of an operation of which [`Op::is_plain`] holds: words in, a word out.
    Plain,
    /// A control wavelet ends it.
    Control,
    /// A FIFO is full or empty, which ends it: complete or not.
    Fifo { complete: bool },
    /// A FIFO is full or empty, which must not be.
    Fault,
    /// A word or a place is missing.
    No,
}

/// Classes of microthreads, those that are served first before others.
const CLASSES: [Priority; 3] = [Priority::High, Priority::Medium, Priority::Low];

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
    /// Whether an operation can use the slot of cycle `t`; `full`: output queues that are known to have no place.
    fn readiness(
        (at, state, inputs, outputs): (Pe, &mut C::State, &[Input], &Sparse<Outgoing>),
        code: &C,
        op: &Op<C::Op>,
        (t, full): (u64, u64),
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
        let room = op.needs.output & full == 0
            && op.output.is_none_or(|output| {
                let ring = outputs.get(usize::from(output.queue));
                ring.is_none_or(|Outgoing { ring, .. }| ring.places() == 0 || ring.free_from() <= t)
            });
        if all && room { Readiness::Element } else { Readiness::No }
    }

    /// The classes of microthreads that come before the main thread.
    pub(super) fn before_main(&self) -> &'static [Priority] {
        match self.main_priority {
            MainPriority::High => &[],
            MainPriority::MediumHigh | MainPriority::Medium => &CLASSES[..1],
            MainPriority::MediumLow => &CLASSES[..2],
        }
    }

    /// The classes of microthreads that come after it.
    pub(super) fn after_main(&self) -> &'static [Priority] {
        &CLASSES[self.before_main().len()..]
    }

    /// Whether microthreads of a class come before the main thread.
    pub(super) fn is_before_main(&self, class: Priority) -> bool {
        let turn = Priority::High as usize - class as usize;
        turn < self.before_main().len()
    }

    /// How the main thread can use the slot of cycle `t`, if it can.
    fn main_ready(&mut self, code: &C, t: u64) -> Option<Readiness> {
        let ready = match &self.main {
            Main::Idle => false,
            Main::Ready { from, .. } => *from <= t,
            Main::Counting { .. } => true,
            Main::Launch(op) => self.threads.is_free(op.microthread),
            Main::Vector(op) if op.stretch.is_on() => false,
            Main::Vector(op) => {
                if op.is_plain() && self.sight.controls & op.needs.inputs == 0 {
                    return self.sight.serves(op.needs).then_some(Readiness::Plain);
                }
                let parts = (self.at, &mut self.state, &*self.inputs, &self.outputs);
                let ready = Self::readiness(parts, code, op, (t, self.sight.full));
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
                    return Some((id, Readiness::Plain));
                }
                continue;
            }
            let Some(op) = self.threads.get(id) else { continue };
            let parts = (self.at, &mut self.state, &*self.inputs, &self.outputs);
            match Self::readiness(parts, code, op, (t, self.sight.full)) {
                Readiness::No => {}
                ready @ (Readiness::Element
                | Readiness::Plain
                | Readiness::Control
                | Readiness::Fifo { .. }
                | Readiness::Fault) => return Some((id, ready)),
            }
        }
        None
    }
}

impl<C: Code> Region<C> {
    /// Gives the slot of the visit's cycle to a thread.
    pub(super) fn issue(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Result<(), Fault> {
        let any = core.threads.any();
        let turn = core.before_main().len();
        for (class_turn, class) in CLASSES.into_iter().enumerate() {
            if class_turn == turn && at.t < core.main_from {
                // It is the main thread's, which has run ahead.
                self.wakes.core(at.pe, core.main_from);
                return Ok(());
            }
            if class_turn == turn
                && let Some(ready) = core.main_ready(at.code, at.t)
            {
                self.count(core, MAIN, at.t, 1);
                return self.main_slot(at, core, ready);
            }
            if any
                && core.threads.class(class) != 0
                && let Some(ready) = core.ready_thread(at.code, class, at.t)
            {
                return self.thread_slot(at, core, ready);
            }
        }
        Ok(())
    }

    /// A microthread's slot.
    fn thread_slot(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (id, ready): (u8, Readiness),
    ) -> Result<(), Fault> {
        core.acted.acted = true;
        if self.flow && core.threads.steps(id) && !core.steps.take() {
            return Ok(());
        }
        core.last_thread = id;
        self.count(core, id, at.t, 1);
        if ready == Readiness::Plain && !self.flow {
            if !self.plain_element(at, core, Some(id), core.threads.ends(id))? {
                return Ok(());
            }
            let Some(mut op) = core.threads.take(id) else { return Ok(()) };
            let result = self.end_thread(at.plan, at.code, core, at.pe, at.t, &mut op, true);
            core.threads.put(op);
            return result;
        }
        let Some(mut op) = core.threads.take(id) else { return Ok(()) };
        if op.flows && ready == Readiness::Plain {
            op.takes_any_room();
            let flowed = self.stretch(at, core, &mut op);
            if !matches!(flowed, Ok(false)) {
                let is_first = core.is_before_main(op.priority);
                core.threads.put(op);
                self.unshare(core, at.t);
                self.go_before_main(core, u64::from(is_first) << id, at.t);
                return flowed.map(|_| ());
            }
            self.draw(at, core, &op);
        }
        if core.main_from > at.t && core.is_before_main(op.priority) {
            core.put_off_main(1);
        }
        let result = match ready {
            Readiness::Fifo { .. } => {
                self.end_thread(at.plan, at.code, core, at.pe, at.t, &mut op, false)
            }
            Readiness::Element
            | Readiness::Plain
            | Readiness::Control
            | Readiness::Fault
            | Readiness::No => self.element(at, core, &mut op, ready).and_then(|ended| {
                if !ended {
                    return Ok(());
                }
                self.end_thread(at.plan, at.code, core, at.pe, at.t, &mut op, true)
            }),
        };
        core.threads.put(op);
        result
    }

    /// A slot of the main thread's vector operation.
    pub(super) fn main_element(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        ready: Readiness,
    ) -> Result<(), Fault> {
        core.acted.acted = true;
        if ready == Readiness::Plain
            && !self.flow
            && let Main::Vector(op) = &core.main
        {
            let ends = op.ends;
            if !self.plain_element(at, core, None, ends)? {
                return Ok(());
            }
            let Main::Vector(op) = std::mem::replace(&mut core.main, Main::Idle) else {
                return Ok(());
            };
            return self.end_main(at.plan, at.code, core, at.pe, at.t, op, End::WHOLE);
        }
        let Main::Vector(mut op) = std::mem::replace(&mut core.main, Main::Idle) else {
            return Ok(());
        };
        if let Readiness::Fifo { complete } = ready {
            let end = End { whole: false, complete };
            return self.end_main(at.plan, at.code, core, at.pe, at.t, op, end);
        }
        if op.flows && ready == Readiness::Plain {
            op.takes_any_room();
            if self.stretch(at, core, &mut op)? {
                core.main = Main::Vector(op);
                self.unshare(core, at.t);
                return Ok(());
            }
            self.draw(at, core, &op);
        }
        if self.flow && self.go_onward(at, core, &mut op)? {
            core.main = Main::Vector(op);
            self.unshare(core, at.t);
            return Ok(());
        }
        if self.flow {
            self.delay(core, (at.t, 0), 1, 1);
        }
        if self.element(at, core, &mut op, ready)? {
            self.end_main(at.plan, at.code, core, at.pe, at.t, op, End::WHOLE)
        } else {
            core.main = Main::Vector(op);
            Ok(())
        }
    }

    /// One element of a plain operation, of a microthread or of the main thread, where it is;
    /// whether the operation has ended.
    fn plain_element(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        thread: Option<u8>,
        ends: Ends,
    ) -> Result<bool, Fault> {
        let (mut words, mut origin) = ([0; 2], 0);
        for (word, &queue) in words.iter_mut().zip(ends.inputs()) {
            let taken = self.take_input(at, core, queue.into());
            *word = taken.payload;
            if self.watch.to_mesh != 0 {
                origin = self.passed_on(at, taken.color, ends.output).unwrap_or(origin);
            }
        }
        let op = match (&mut core.main, thread) {
            (Main::Vector(op), None) => &mut **op,
            (_, thread) => match core.threads.get_mut(thread.unwrap_or_default()) {
                Some(op) => op,
                None => return Ok(false),
            },
        };
        let done = self.compute(at, (core.at, &mut core.state), op, words)?;
        let ended = at.code.is_done(&op.code);
        if let (Some(payload), Some(output)) = (done.output, ends.output) {
            core.send(at, output, payload, origin, ended);
        }
        Ok(ended)
    }

    /// Does an element of an operation with the words of its fabric inputs.
    fn compute(
        &mut self,
        at: &Visit<'_, C>,
        (pe, state): (Pe, &mut C::State),
        op: &mut Op<C::Op>,
        words: [u32; 2],
    ) -> Result<Element, Fault> {
        let (task, loc) = (op.task, op.loc);
        if let Some(tape) = &mut self.tape {
            tape.elements(at.pe, op, 1);
        }
        let done = at.code.element(pe, state, &mut op.code, words).map_err(|kind| {
            let kind = Box::new(TrapKind::Code(kind));
            Fault { kind, task, loc, color: None }
        })?;
        if (done.left || at.plan.track)
            && let Some(odd) = at.code.odd(pe, state, &op.code, done.left)
        {
            self.odd(at.plan, (pe.number, task), odd, loc, at.t)?;
        }
        Ok(done)
    }

    /// A word of a stream that an operation takes: none if it has come to rest, else what the
    /// word carries that the operation sends on for it.
    fn passed_on(&mut self, at: &Visit<'_, C>, color: u8, output: Option<Output>) -> Option<u8> {
        if self.watch.to_mesh >> color & 1 == 0 {
            return None;
        }
        if output.is_some_and(|output| self.watch.passes(color, output.color)) {
            return Some(color + 1);
        }
        self.rests(at.plan, at.pe, color);
        None
    }

    /// One element, or the control wavelet that ends the operation; whether it has ended.
    fn element(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        op: &mut Op<C::Op>,
        ready: Readiness,
    ) -> Result<bool, Fault> {
        let (task, loc) = (op.task, op.loc);
        let fault = |kind| Fault { kind: Box::new(kind), task, loc, color: None };
        if ready == Readiness::Fault {
            return Err(fault(TrapKind::FifoFault));
        }
        if ready == Readiness::Control {
            self.end_by_control(at, core, op);
            return Ok(true);
        }
        let (mut words, mut origin) = ([0; 2], 0);
        for (word, &queue) in words.iter_mut().zip(op.ends.inputs()) {
            let taken = self.take_input(at, core, queue.into());
            if op.counts_control() && !taken.control {
                self.rests(at.plan, at.pe, taken.color);
                return Ok(false);
            }
            *word = match op.transforms {
                true => mark(taken, core.transform_mask),
                false => taken.payload,
            };
            origin = self.passed_on(at, taken.color, op.output).unwrap_or(origin);
        }
        let done = self.compute(at, (core.at, &mut core.state), op, words)?;
        for id in done.activate.into_iter().flatten() {
            core.flag(at.program, FlagOp::Activate, id.into(), at.t).map_err(fault)?;
        }
        let ended = at.code.is_done(&op.code);
        if let (Some(payload), Some(output)) = (done.output, op.output) {
            core.send(at, output, payload, origin, ended);
        }
        Ok(ended)
    }

    /// A control wavelet ends an operation; the setting says what follows.
    fn end_by_control(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, op: &mut Op<C::Op>) {
        for queue in op.inputs.into_iter().flatten() {
            let head = core.inputs[usize::from(queue)].ring.visible(at.t);
            if head.is_some_and(|head| head.control) {
                self.spoil_tape();
                let word = self.take_input(at, core, queue.into());
                self.orders.note_command(word.color, at.t, core.at.number);
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

impl<C: Code> Core<C> {
    /// Puts the result of an element into its output queue; `last`: the operation has ended.
    #[inline]
    pub(super) fn send(
        &mut self,
        at: &Visit<'_, C>,
        output: Output,
        payload: u32,
        origin: u8,
        last: bool,
    ) {
        let queue = usize::from(output.queue);
        let word = output.slot(at.t + 1, payload, origin, last);
        self.push(queue, at.program.outputs[queue].places, word);
    }
}

impl Output {
    /// The word that carries a result in cycle `stamp`; `last`: the operation has ended.
    #[inline]
    pub(super) fn slot(self, stamp: u64, payload: u32, origin: u8, last: bool) -> Slot {
        let marked = self.transform && payload & MARK == MARK;
        Slot {
            stamp,
            payload: if self.transform { payload & !MARK } else { payload },
            color: self.color,
            control: self.control || marked,
            advance: self.advance && last,
            origin,
        }
    }
}
