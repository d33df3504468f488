//! Calm cycles: those in which microthreads do plain elements, and words go up the ramp, and
//! nothing else can happen.
//!
//! Most cycles of a core that sends and receives are calm. What makes them so is asked once for
//! several of them; a cycle is then two masks, an element and a departure.

use super::code::Code;
use super::core::{Acted, Core, Fault, bits};
use super::main::Main;
use super::plan::PePlan;
use super::ramp::Known;
use super::visit::Visit;
use crate::fabric::channel::Outlet;
use crate::fabric::ring::NEVER;
use crate::sched::record::MAIN;
use crate::sched::region::Region;
use crate::trap::TrapKind;

impl<C: Code> Core<C> {
    /// The cycle before which nothing but calm cycles can come, as far as the queues allow; none
    /// if the visit's cycle may not be calm.
    #[inline]
    fn calm_until(&self, at: &Visit<'_, C>) -> Option<u64> {
        let until = match &self.main {
            Main::Idle if self.activated & !self.task_blocked == 0 => u64::MAX,
            Main::Ready { from, .. } => *from,
            Main::Launch(op) if !self.threads.is_free(op.microthread) => u64::MAX,
            // It takes one slot per cycle at most.
            Main::Counting { slot, next, .. } if slot < next && self.main_from <= at.t => {
                at.t + u64::from(next - slot)
            }
            Main::Idle | Main::Counting { .. } | Main::Vector(_) | Main::Launch(_) => return None,
        };
        let until = self.due.front().map_or(until, |&(due, _)| until.min(due));
        let quiet = !self.registers.tears() && !self.is_flushing() && self.bound.are_planned();
        (quiet && until > at.t).then_some(until)
    }

    /// Whether it may do anything in cycle `t`, whose queues it has looked at, but send words up the
    /// ramp.
    pub(super) fn may_act(&self, program: &PePlan, t: u64) -> bool {
        let due = self.due.front().is_some_and(|&(due, _)| due <= t);
        if due || self.registers.tears() || self.is_flushing() || self.sight.controls != 0 {
            return true;
        }
        let main = match &self.main {
            Main::Idle => {
                let heard = self.sight.words & program.heard & !self.owned_in;
                self.activated & !self.task_blocked != 0
                    || !self.bound.are_planned()
                    || !self.are_closed(program, heard)
            }
            Main::Ready { from, .. } => *from <= t,
            Main::Counting { slot, next, .. } => {
                return slot >= next || !self.threads.none_of(self.before_main());
            }
            Main::Vector(_) => true,
            Main::Launch(op) => self.threads.is_free(op.microthread),
        };
        main || self.threads.may_issue(self.thread_blocked, self.sight, self.last_thread)
    }

    /// Whether the channels of these queues are blocked, so that their words start nothing.
    pub(super) fn are_closed(&self, program: &PePlan, queues: u64) -> bool {
        let closed = |queue: usize| {
            let channel = program.inputs[queue].channel;
            self.channel_blocked >> channel & 1 != 0
        };
        bits(queues).all(closed)
    }

    /// When the next word comes in view of those that have come down the ramp; [`NEVER`] without one.
    fn next_word(&self) -> u64 {
        let heads = bits(self.arrived & !self.sight.words);
        heads.map(|queue| self.inputs[queue].ring.first()).min().unwrap_or(NEVER)
    }
}

impl<C: Code> Region<C> {
    /// Does the calm cycles of a core from the visit's on, before cycle `end`; whether it is known what
    /// goes up the ramp in the next one.
    pub(super) fn calm_cycles(
        &mut self,
        at: &mut Visit<'_, C>,
        core: &mut Core<C>,
        end: u64,
    ) -> Result<Known, Fault> {
        if self.watch.to_mesh != 0 || at.plan.track {
            return Ok(Known::Yes);
        }
        let mut end = end;
        if self.flow {
            if !self.goes_by_routers(at, core) {
                return Ok(Known::Yes);
            }
            end = end.min(self.next_heard(at, core));
        }
        let Some(until) = core.calm_until(at) else { return Ok(Known::Yes) };
        let Some(running) = core.threads.calm() else { return Ok(Known::Yes) };
        let running = running & !core.thread_blocked;
        // Words that a task waits for; while one runs it is not picked.
        let heard = if matches!(core.main, Main::Idle) { at.program.heard } else { 0 };
        let mut heard = heard & !core.owned_in;
        let counts = matches!(core.main, Main::Counting { .. });
        let main_first = counts && !core.threads.none_of(core.after_main());
        let end = end.min(until);
        while at.t < end {
            core.look(at.t);
            let sight = core.sight;
            if sight.controls != 0 {
                break;
            }
            if sight.words & heard != 0 {
                if !core.are_closed(at.program, sight.words & heard) {
                    break;
                }
                #[cfg(test)]
                crate::sched::reached::note(crate::sched::reached::Reached::Closed);
                // That does not change in calm cycles.
                heard &= !sight.words;
            }
            core.acted = Acted::default();
            let known = self.ascend(at, core);
            if known != Known::Yes {
                return Ok(known);
            }
            let last = core.last_thread;
            let first = core.threads.first_ready(running, sight.words, sight.full, last);
            let ended = match first {
                Some(id) if !main_first => self.calm_slot(at, core, id)?,
                _ if counts => {
                    self.count_calm(at, core);
                    false
                }
                _ => false,
            };
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Calm);
            at.t += 1;
            if core.acted.acted || counts {
                self.active_until = self.active_until.max(at.t);
            }
            if ended {
                break;
            }
            if !core.acted.acted {
                let next = core.next_word();
                if core.leaving != 0 || next >= end || counts {
                    break;
                }
                #[cfg(test)]
                crate::sched::reached::note(crate::sched::reached::Reached::Leapt);
                at.t = at.t.max(next);
                // It is looked at there, whoever does that cycle.
                core.acted.acted = true;
            }
        }
        Ok(Known::Yes)
    }

    /// Whether all words that operations of a core send and take go by routers, and the main thread has not
    /// run ahead, in the `flow` engine.
    fn goes_by_routers(&self, at: &Visit<'_, C>, core: &Core<C>) -> bool {
        core.flowing_in | core.flowing_out == 0
            && core.main_from <= at.t
            && core.stretches() == 0
            && bits(core.owned_in).all(|queue| self.pipe_of(at.pe, queue as u8).is_none())
            && core.threads.iter().filter_map(|op| op.output).all(|output| {
                !matches!(core.outlet(output.color), Outlet::Pipe(_) | Outlet::Closing(_))
            })
    }

    /// A slot of the main thread in which nothing but that comes to pass.
    #[inline]
    fn count_calm(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) {
        self.count(core, MAIN, at.t, 1);
        if let Main::Counting { slot, .. } = &mut core.main {
            *slot += 1;
        }
        core.acted.counted = true;
    }

    /// A microthread's slot; whether its operation has ended.
    #[inline]
    fn calm_slot(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, id: u8) -> Result<bool, Fault> {
        core.last_thread = id;
        core.acted.acted = true;
        if let Some(watch) = &mut core.watched {
            watch.slot(at.t, id);
        }
        self.count(core, id, at.t, 1);
        let ends = core.threads.ends(id);
        let mut words = [0; 2];
        for (word, &queue) in words.iter_mut().zip(ends.inputs()) {
            let (payload, full_of) = core.pop_word(queue.into(), at.t, at.plan.timing.credit);
            *word = payload;
            if let Some(color) = full_of {
                self.place_is_free(at, core, color);
            }
        }
        let Some(op) = core.threads.get_mut(id) else { return Ok(false) };
        if let Some(tape) = &mut self.tape {
            tape.elements(at.pe, op, 1);
        }
        let (output, ended) = match at.code.plain(core.at, &mut core.state, &mut op.code, words) {
            Ok(done) => done,
            Err(kind) => {
                let kind = Box::new(TrapKind::Code(kind));
                return Err(Fault { kind, task: op.task, loc: op.loc, color: None });
            }
        };
        if let (Some(payload), Some(output)) = (output, ends.output) {
            core.send(at, output, payload, 0, ended);
        }
        if ended {
            self.end_calm(at, core, id)?;
        }
        Ok(ended)
    }

    /// A microthread's operation has ended.
    #[inline(never)]
    fn end_calm(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, id: u8) -> Result<(), Fault> {
        let Some(mut op) = core.threads.take(id) else { return Ok(()) };
        let result = self.end_thread(at.plan, at.code, core, at.pe, at.t, &mut op, true);
        core.threads.put(op);
        result
    }
}
