//! Cores that do nothing but run code, many cycles ahead of their region.
//!
//! Once a segment of code has run, nothing from outside has a say in its slots, nor in which task
//! comes next if words start none. So a core without operations and queues in use does them all in
//! one visit, segment after segment; up to the slot in which one begins that may look at registers
//! (`pe::looks`), which the region's routers change.
//!
//! Invariants: while a core is alone no operation has a queue and no channel is blocked or unblocked,
//! so all that can become of a word is that nobody hears it and it is dropped: that is done in the
//! word's cycle, when the core is ahead of it already, and so it is noted when a color enters teardown.
//! Nobody asks about the core before the run's end, and whatever ends a run is known [`SLACK`] cycles before, less
//! [`LATE`].

use dflow_ir::inst::FlagOp;

use super::code::Code;
use super::core::{Core, Fault};
use super::main::Main;
use super::plan::{NO_TASK, PePlan};
use super::queues::TEARDOWN_TASK;
use super::visit::Visit;
use crate::exec::{ActKind, SlotAct, Stop};
use crate::sched::plan::Plan;
use crate::sched::record::MAIN;
use crate::sched::region::Region;
use crate::sched::run::{LATE, SLACK};

/// Cycles that a core alone may be ahead of its region; `threads` may be apart by two each.
pub(crate) fn reach(threads: usize) -> u64 {
    (SLACK - LATE).saturating_sub(2 * threads as u64)
}

/// Whether an act is the core's own business, and changes nothing about its queues and channels.
#[inline]
fn is_own(program: &PePlan, act: &SlotAct) -> bool {
    match act.what {
        ActKind::Odd(_) => true,
        ActKind::Write { .. } => false,
        ActKind::Flag { op: FlagOp::BlockTask | FlagOp::UnblockTask, id } => {
            program.data.checked_shr(id.into()).is_some_and(|ids| ids & 1 == 0)
        }
        ActKind::Flag { op, .. } => !matches!(
            op,
            FlagOp::BlockChannel
                | FlagOp::UnblockChannel
                | FlagOp::BindInput
                | FlagOp::BindOutput
                | FlagOp::FlushInput
                | FlagOp::FlushOutput
                | FlagOp::EndFlushInput
                | FlagOp::EndFlushOutput
        ),
    }
}

impl PePlan {
    /// Whether nothing but local tasks that tasks activate can start.
    #[inline]
    fn starts_itself(&self) -> bool {
        !self.hears && self.local[TEARDOWN_TASK] == NO_TASK
    }
}

impl<C: Code> Core<C> {
    /// Whether nothing but its code does anything.
    #[inline]
    fn is_alone(&self) -> bool {
        self.owned_in | self.owned_out | self.leaving == 0
            && self.threads.is_empty()
            && self.due.is_empty()
            && !self.is_marked()
            && !self.is_flushing()
            && !self.registers.tears()
    }

    /// Whether what happens in the next slot of the segment in which anything does is its own.
    fn slot_is_own(&self, program: &PePlan, (slot, total, flag): (u32, u32, u32)) -> bool {
        let is_last = slot + 1 == total;
        let acts = self.segment.acts.get(flag as usize..).unwrap_or_default();
        let ends = match self.segment.stop {
            Stop::Return | Stop::Yield | Stop::Clock(_) | Stop::Trap(_) => true,
            Stop::Vector(_) | Stop::Config(_) | Stop::Queues(_) | Stop::Host(_) => !is_last,
        };
        let mut now = acts.iter().take_while(|act| is_last || act.slot <= slot);
        ends && now.all(|act| is_own(program, act))
    }
}

impl<C: Code> Region<C> {
    /// Does cycles of a core from the visit's on for as long as it is alone.
    #[inline]
    pub(super) fn run_alone(
        &mut self,
        at: &mut Visit<'_, C>,
        core: &mut Core<C>,
    ) -> Result<(), Fault> {
        core.alone = false;
        if core.owned_in | core.owned_out | core.leaving != 0 {
            Ok(())
        } else {
            self.go_alone(at, core)
        }
    }

    /// Likewise, of a core none of whose queues is in use.
    #[inline(never)]
    fn go_alone(&mut self, at: &mut Visit<'_, C>, core: &mut Core<C>) -> Result<(), Fault> {
        let end = (at.now + self.alone).min(self.end);
        core.alone = core.is_alone() && at.t < end && !at.plan.strict && self.cuts.is_empty();
        if core.alone { self.cycles_alone(at, core, end) } else { Ok(()) }
    }

    /// Likewise, in cycles before `end`.
    fn cycles_alone(
        &mut self,
        at: &mut Visit<'_, C>,
        core: &mut Core<C>,
        end: u64,
    ) -> Result<(), Fault> {
        while at.t < end {
            match &mut core.main {
                Main::Counting { slot, next, .. } if *slot < *next => {
                    let count = u64::from(*next - *slot).min(end - at.t);
                    *slot += count as u32;
                    self.count(core, MAIN, at.t, count);
                    at.t += count;
                }
                &mut Main::Counting { slot, total, flag, .. } => {
                    if !core.slot_is_own(at.program, (slot, total, flag)) {
                        break;
                    }
                    core.acted.acted = true;
                    self.count(core, MAIN, at.t, 1);
                    self.count_slot(at, core)?;
                    at.t += 1;
                }
                Main::Idle if at.program.starts_itself() => {
                    if self.pick_local(at, core).is_none() {
                        break;
                    }
                    at.t += 1;
                }
                &mut Main::Ready { from, next } => {
                    let begin = from.max(at.t);
                    let looks = at.program.tasks[usize::from(core.task)].looks;
                    if begin >= end || looks && begin != at.now {
                        break;
                    }
                    at.t = begin;
                    let total = self.segment(at, core, next);
                    if !self.whole_segment(at, core, total, end)? {
                        let first = core.segment.acts.first().map_or(u32::MAX, |act| act.slot);
                        let next = first.min(total - 1);
                        core.main.set(Main::Counting {
                            slot: 0,
                            total,
                            next,
                            flag: 0,
                            asleep: None,
                        });
                        continue;
                    }
                }
                Main::Idle | Main::Vector(_) | Main::Launch(_) => break,
            }
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Alone);
            self.active_until = self.active_until.max(at.t);
        }
        Ok(())
    }

    /// All slots of the segment that begins in the visit's cycle, if they are its core's own and
    /// none is in cycle `end` or later; whether they are.
    fn whole_segment(
        &mut self,
        at: &mut Visit<'_, C>,
        core: &mut Core<C>,
        total: u32,
        end: u64,
    ) -> Result<bool, Fault> {
        let (begin, over) = (at.t, at.t + u64::from(total));
        if over > end || !core.slot_is_own(at.program, (total - 1, total, 0)) {
            return Ok(false);
        }
        core.acted.acted = true;
        let mut done = Ok(());
        for index in 0..core.segment.acts.len() {
            let act = core.segment.acts[index];
            // Most are activations, of which `slot_act` would make more.
            if let ActKind::Flag { op: FlagOp::Activate, id } = act.what
                && core.activate(at.program, id)
            {
                continue;
            }
            at.t = (begin + u64::from(act.slot)).min(over - 1);
            done = self.slot_act(at, core, core.task, act);
            if done.is_err() {
                break;
            }
        }
        if done.is_ok() {
            at.t = over - 1;
            match core.segment.stop {
                Stop::Return => core.end_task(),
                _ => done = self.stop(at, core),
            }
        }
        self.count(core, MAIN, begin, at.t + 1 - begin);
        done?;
        at.t = over;
        Ok(true)
    }

    /// What comes to a core that has been through cycle `t` alone: control wavelets that nobody
    /// hears are dropped, and it knows of colors in teardown.
    pub(super) fn note_what_came(&mut self, plan: &Plan, code: &C, pe: u32, t: u64) {
        let Some(mut core) = self.cores[pe as usize].take() else { return };
        if core.alone && (core.is_marked() || core.registers.tears()) {
            #[cfg(test)]
            crate::sched::reached::note(crate::sched::reached::Reached::Behind);
            let program = &plan.programs[usize::from(core.at.program)];
            let at = Visit { plan, program, code, pe, t, now: t };
            let acted = std::mem::take(&mut core.acted);
            // No operation of it is to be completed, so that cannot fail.
            let known = core.complete(program, t, &mut self.spare);
            core.look(t);
            // This fails in strict runs only, in which no core is alone.
            let done = self.drop_unheard(&at, &mut core);
            debug_assert!(known.is_ok() && done.is_ok(), "a core alone cannot trap");
            if core.acted.acted {
                self.active_until = self.active_until.max(t + 1);
                self.wakes.core(pe, t + 1);
            }
            core.acted = acted;
        }
        self.cores[pe as usize] = Some(core);
    }
}
