//! A visit to a core: R8, with R11, in one cycle or in several in a row.
//!
//! A core may be ahead of its region. What its router grants in cycle `t` comes in view in
//! `t + ramp_down`, so in cycle `now` of the region all words are known that the core can see up
//! to `now + ramp_down`; and all places on the ramp up to `now + credit`. Nothing else comes from
//! outside. A core does not go ahead over what asks or tells others about itself: code, which may
//! look at registers, questions about queues, writes, the start of an operation that commands
//! routers, a color whose way has not been looked for ([`Region::goes_on`]). In the `flow` engine it goes ahead
//! in calm cycles only, and only while all its words go by routers.
//!
//! Invariants: all cycles of a core before its `until` have passed; what comes to it from outside
//! is stamped `until` or later, or changes nothing before that (`alone`); a wake before `until`
//! tells it nothing new.

use super::code::Code;
use super::core::{Acted, Core, Fault, bits};
use super::main::Main;
use super::plan::PePlan;
use super::ramp::Known;
use super::steady::BUSY;
use crate::fabric::ring::{NEVER, Slot};
use crate::sched::plan::Plan;
use crate::sched::record::{Event, MAIN};
use crate::sched::region::Region;
use crate::trap::Trap;

/// Whom a visit is to, and when.
pub(crate) struct Visit<'a, C: Code> {
    pub(crate) plan: &'a Plan,
    pub(crate) program: &'a PePlan,
    pub(crate) code: &'a C,
    pub(crate) pe: u32,
    /// The core's cycle.
    pub(crate) t: u64,
    /// The region's.
    pub(crate) now: u64,
}

impl<C: Code> Region<C> {
    /// Visits a core in cycle `now`.
    pub(crate) fn visit_core(&mut self, plan: &Plan, code: &C, pe: u32, now: u64) {
        if self.wakes.is_put_off(pe, now) {
            return;
        }
        let Some(core) = self.cores[pe as usize].as_deref() else { return };
        if core.dead || core.until > now {
            if core.alone && core.until > now {
                self.note_what_came(plan, code, pe, now);
            } else if self.flow && !core.dead {
                // What it was to look at may stand there sooner than it knew.
                self.wakes.core(pe, core.until);
            }
            return;
        }
        if core.takes_turns() {
            if self.goes_on_in_turns(plan, code, pe, now) {
                return;
            }
        } else if core.calm_visits >= core.patience
            && !self.flow
            && self.take_turns(plan, code, pe, now)
        {
            return;
        }
        let Some(core) = self.cores[pe as usize].as_deref() else { return };
        if core.is_steady() {
            self.unsteady(plan, code, pe, now);
        } else if core.busy_visits >= BUSY && self.become_steady(plan, code, pe, now) {
            return;
        }
        self.descend(plan, code, pe, now);
        let Some(mut core) = self.cores[pe as usize].take() else { return };
        let program = &plan.programs[usize::from(core.at.program)];
        let mut at = Visit { plan, program, code, pe, t: now, now };
        if self.flow && core.awaits_pipes != 0 {
            self.start_later(&at, &mut core);
        }
        if self.flow && self.visit_streaming(&at, &mut core) {
            // Nobody has put one there: there is none to drop.
            std::mem::forget(self.cores[pe as usize].replace(core));
            return;
        }
        self.settle_until(&mut core, now);
        if let Main::Counting { asleep, .. } = &mut core.main {
            *asleep = None;
        }
        self.cycles(&mut at, &mut core);
        if self.flow {
            self.arrange_look(&at, &mut core, (now, false));
        }
        core.calm_visits = core.calm_visits.saturating_add(1);
        core.busy_visits = if core.acted.acted { core.busy_visits.saturating_add(1) } else { 0 };
        self.cores[pe as usize] = Some(core);
        if self.steady != 0 && self.has_links(pe) {
            self.watch_fed(pe);
        }
    }

    /// The visit to a core whose operations flow, if they do.
    fn visit_streaming(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> bool {
        (core.sight.words, core.sight.controls) = (0, 0);
        // Words that come while the main thread is at something, or waits, leave their senders places.
        if !matches!(core.main, Main::Idle) {
            self.draw_heard(at, core);
        }
        core.look(at.t);
        if !core.streams() {
            return false;
        }
        core.acted = Acted::default();
        let next = self.stream(at, core).unwrap_or_else(|fault| {
            self.fault(at, core, fault);
            NEVER
        });
        core.begins = core.begins.min(next);
        self.arrange_look(at, core, (at.t, next != NEVER));
        true
    }

    /// The cycles of a visit.
    fn cycles(&mut self, at: &mut Visit<'_, C>, core: &mut Core<C>) {
        let mut done = self.run_alone(at, core);
        if at.t == at.now && done.is_ok() {
            self.near_cycles(at, core);
            done = if core.dead { Ok(()) } else { self.run_alone(at, core) };
        }
        if let Err(fault) = done {
            self.fault(at, core, fault);
            at.t += 1;
        }
        core.until = at.t;
        self.doze(at, core);
    }

    /// The cycles that a core may be ahead of its region with others around it.
    fn near_cycles(&mut self, at: &mut Visit<'_, C>, core: &mut Core<C>) {
        let ahead = if core.watched.is_some() { 0 } else { self.ahead };
        let end = (at.now + 1 + ahead).min(self.end);
        loop {
            let from = at.t;
            let done = self.calm_cycles(at, core, end).and_then(|known| {
                let calm = at.t > from || known != Known::Yes;
                match calm {
                    true => Ok(known),
                    // There it goes ahead in calm cycles only.
                    false if self.flow && at.t > at.now => Ok(Known::No),
                    false => self.other_cycle(at, core),
                }
            });
            match done {
                Ok(Known::Yes) => {}
                Ok(known) => {
                    core.acted.acted = known == Known::No || core.may_act(at.program, at.t);
                    #[cfg(test)]
                    note_unknown(core.acted);
                    break;
                }
                Err(fault) => {
                    self.fault(at, core, fault);
                    at.t += 1;
                    break;
                }
            }
            let over = at.t >= end || !core.acted.acted || core.rests(at.t).is_some();
            if over || !self.goes_on(at, core) {
                break;
            }
        }
    }

    /// A cycle that may not be calm, if it is known what goes up the ramp in it.
    fn other_cycle(&mut self, at: &mut Visit<'_, C>, core: &mut Core<C>) -> Result<Known, Fault> {
        core.acted = Acted::default();
        (core.calm_visits, core.watched) = (0, None);
        #[cfg(test)]
        if at.t > at.now {
            crate::sched::reached::note(crate::sched::reached::Reached::Ahead);
        }
        let done = self.core_cycle(at, core)?;
        let Acted { acted, counted, bound } = core.acted;
        if bound {
            self.unblock(at.pe, at.t + 1);
        }
        at.t += u64::from(done == Known::Yes);
        if acted || counted {
            self.active_until = self.active_until.max(at.t);
        }
        Ok(done)
    }

    /// R8 in one cycle, with R11; nothing but that if it is not known what goes up the ramp.
    fn core_cycle(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Result<Known, Fault> {
        if self.flow {
            core.sight.words = 0;
            core.sight.controls = 0;
            self.draw_heard(at, core);
        }
        core.look(at.t);
        if self.flow {
            if core.owned_out & !core.flowing_out != 0 {
                self.look_before_pipes(at, core);
            }
            self.look_at_pipes(at.plan, core, at.pe, at.t);
        }
        let known = self.ascend(at, core);
        if known != Known::Yes {
            return Ok(known);
        }
        if self.flow {
            if core.leaving & core.flowing_out != 0 {
                self.flow_behind(at, core);
            }
            self.end_stretches(at, core)?;
        }
        if !core.due.is_empty() || core.registers.tears() {
            if self.flow {
                self.note_ends(at, core);
            }
            core.complete(at.program, at.t, &mut self.spare)?;
        }
        if !core.later.is_empty() {
            self.apply_later(at, core)?;
        }
        if core.is_flushing() {
            core.flush(at.program, at.t);
        }
        if core.sight.controls != 0 {
            self.drop_unheard(at, core)?;
        }
        if matches!(core.main, Main::Idle) {
            if at.t < core.main_from {
                self.wakes.core(at.pe, core.main_from);
            } else if let Some(from) = self.pick(at, core) {
                self.wakes.core(at.pe, from);
            }
        }
        self.issue(at, core)?;
        Ok(Known::Yes)
    }

    /// Takes the head of an input queue.
    #[inline]
    pub(super) fn take_input(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        queue: usize,
    ) -> Slot {
        let credit = at.plan.timing.credit;
        let (word, was_full) = core.pop(queue, at.t, credit);
        if self.flow {
            self.left_queue(at.pe, queue, at.t);
        }
        if was_full {
            self.place_is_free(at, core, word.color);
        }
        word
    }

    /// A full queue has a place again: a word of this color has been taken.
    #[inline]
    pub(super) fn place_is_free(&mut self, at: &Visit<'_, C>, core: &Core<C>, color: u8) {
        let from = at.t + at.plan.timing.credit;
        if core.bound.are_planned() {
            self.unblock_color(at.pe, color, from);
        } else {
            // What waits for it may be of the color that the queue has been bound to since.
            self.unblock(at.pe, from);
        }
    }

    /// Notes a trap of a core and stops it.
    fn fault(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, fault: Fault) {
        core.dead = true;
        let (plan, t) = (at.plan, at.t);
        let Fault { kind, task, loc, color } = fault;
        let kind = *kind;
        let task = at.program.tasks.get(usize::from(task)).map(|task| task.name.clone());
        let number = core.at.number as usize;
        let (pe, program) = (plan.coord(number), Some(at.program.name.clone()));
        self.active_until = self.active_until.max(t + 1);
        let trap = Trap { kind, pe, program, task, loc, cycle: t, color, sender: None };
        self.note_trap(number, trap);
    }

    /// Counts a slot of a thread.
    pub(crate) fn count(&mut self, core: &Core<C>, thread: u8, cycle: u64, count: u64) {
        self.count_of(core.at.number, thread, cycle, count);
    }

    /// Counts slots of a thread of the PE of this number.
    pub(super) fn count_of(&mut self, pe: u32, thread: u8, cycle: u64, count: u64) {
        self.stats.slots += count;
        if let Some(events) = &mut self.events {
            events.push(Event::Slots { cycle, pe, thread, count });
        }
    }

    /// Catches up the slots before cycle `t` that the main thread counted while nobody looked.
    pub(crate) fn settle_until(&mut self, core: &mut Core<C>, t: u64) {
        let Main::Counting { slot, asleep: Some(since), .. } = &mut core.main else { return };
        let (start, passed) = (*since, t.saturating_sub(*since));
        if passed == 0 {
            return;
        }
        *slot += passed as u32;
        *since = t;
        self.active_until = self.active_until.max(t);
        self.count(core, MAIN, start, passed);
    }

    /// Arranges the next look.
    fn doze(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) {
        let awake = core.acted.acted && core.rests(at.t).is_none();
        if let Some(landing) = self.landings.get_mut(at.pe as usize) {
            landing.awake = awake;
        }
        if awake {
            return self.wakes.core(at.pe, at.t);
        }
        let mut counts = false;
        match &mut core.main {
            // What it has left is due then.
            Main::Counting { .. } if core.main_from > at.t => {
                counts = true;
                self.wakes.core(at.pe, core.main_from);
            }
            Main::Counting { slot, next, asleep, .. } => {
                counts = true;
                *asleep = Some(at.t);
                self.wakes.core(at.pe, at.t + u64::from(*next - *slot));
            }
            Main::Ready { from, .. } if *from > at.t => self.wakes.core(at.pe, *from),
            Main::Idle | Main::Ready { .. } | Main::Vector(_) | Main::Launch(_) => {}
        }
        // Words change nothing for code that runs, unless somebody goes before it.
        let deaf = counts && core.threads.none_of(core.before_main()) && !core.is_marked();
        if deaf {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Deaf);
            return;
        }
        let mut later = self.next_landing(at.plan, core, at.pe, at.t);
        for queue in bits(core.arrived & !core.sight.words) {
            later = later.min(core.inputs[queue].ring.first().max(at.t));
        }
        if later != NEVER {
            self.wakes.core(at.pe, later);
        }
    }

    /// Whether a core may do cycle `t` before its region does.
    fn goes_on(&self, at: &Visit<'_, C>, core: &Core<C>) -> bool {
        let calm = match &core.main {
            Main::Idle | Main::Vector(_) => true,
            Main::Ready { from, .. } => *from > at.t,
            Main::Counting { slot, next, .. } => slot < next,
            Main::Launch(op) => !op.commands(),
        };
        calm && self.cuts.is_empty() && !core.is_flushing()
    }
}

/// For tests: a core stopped where it is not known what goes up its ramp.
#[cfg(test)]
fn note_unknown(acted: Acted) {
    use crate::sched::reached::{self, Reached};
    reached::note(if acted.acted { Reached::Unknown } else { Reached::Told });
}
