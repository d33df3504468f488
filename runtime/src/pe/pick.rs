//! What starts a task: R8 (b) and (c).

use dflow_ir::loc::Loc;
use dflow_ir::mesh::Color;

use super::code::Code;
use super::core::{Core, Fault, bits};
use super::main::Main;
use super::plan::{InputPlan, NO_TASK, PePlan};
use super::queues::TEARDOWN_TASK;
use super::visit::Visit;
use crate::exec::odd::Odd;
use crate::fabric::control;
use crate::fabric::ring::Slot;
use crate::sched::record::Event;
use crate::sched::region::Region;

/// The task that is bound to a control wavelet's entry point in the table of its queue.
fn control_task(program: &PePlan, input: &InputPlan, word: &Slot) -> Option<u16> {
    let entry = control::entry(word.payload)?;
    let entry = usize::from(entry) + usize::from(input.control_base);
    program.control.get(entry).copied().filter(|&task| task != NO_TASK)
}

impl<C: Code> Core<C> {
    /// The local task that goes first: whether it is raised, and its turn. Ids count from the one
    /// before that picked last, downwards and around.
    #[inline]
    fn first_local(&self) -> Option<(bool, u8)> {
        let ready = self.activated & !self.task_blocked;
        let raised = ready & self.raised_tasks;
        let local = if raised != 0 { raised } else { ready };
        let turned = local.rotate_right(self.picked.into());
        (local != 0).then(|| (raised != 0, 63 - turned.leading_zeros() as u8))
    }

    /// Activates local tasks.
    pub(super) fn activate_bit(&mut self, bit: u64) {
        if self.activated & bit != 0 {
            self.twice = self.twice.and(bit.trailing_zeros() as u8);
        }
        self.activated |= bit;
    }

    /// Activates a local task, if one is bound to the id.
    #[inline]
    pub(super) fn activate(&mut self, program: &PePlan, id: u16) -> bool {
        let bound = program.local.get(usize::from(id)).is_some_and(|&task| task != NO_TASK);
        let bit = u64::from(bound) << (id % 64);
        self.activate_bit(bit);
        bound
    }

    /// A local task is picked.
    #[inline]
    fn begin_local(&mut self, program: &PePlan, id: u8) {
        self.picked = id;
        self.activated &= !(1 << id);
        self.task = program.local[usize::from(id)];
        if usize::from(id) == TEARDOWN_TASK {
            self.registers.begin_teardown();
        }
    }
}

impl<C: Code> Region<C> {
    /// R8 (b): control wavelets that no task hears.
    pub(super) fn drop_unheard(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
    ) -> Result<(), Fault> {
        let (program, t) = (at.program, at.t);
        for queue in bits(core.sight.controls) {
            let Some(head) = core.inputs[queue].ring.visible(t) else { continue };
            let input = core.input(program, queue);
            let heard = control_task(program, &input, head).is_some();
            let owned = core.owned_in >> queue & 1 != 0;
            let blocked = core.channel_blocked >> input.channel & 1 != 0;
            if heard || (if owned { !core.passes_control(queue) } else { blocked }) {
                continue;
            }
            let word = self.take_input(at, core, queue);
            self.spoil_tape();
            self.stats.dropped_controls += 1;
            core.acted.acted = true;
            self.orders.note_command(word.color, t, core.at.number);
            if let (false, Some(color)) = (word.advance, Color::new(word.color)) {
                let (entry, table) = (control::entry(word.payload), input.control_base);
                let odd = Odd::Unheard { color, entry, table };
                self.odd(at.plan, (core.at.number, NO_TASK), odd, Loc::default(), t)?;
            }
        }
        Ok(())
    }

    /// R8 (c) where no word starts a task.
    #[inline]
    pub(super) fn pick_local(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Option<u64> {
        let (_, turn) = core.first_local()?;
        core.begin_local(at.program, turn.wrapping_add(core.picked) % 64);
        Some(self.begin_task(at, core, (None, 0)))
    }

    /// R8 (c): from which cycle on the task that is picked may have slots.
    #[inline]
    pub(super) fn pick(&mut self, at: &Visit<'_, C>, core: &mut Core<C>) -> Option<u64> {
        // Data words of queues that an operation reads start nothing.
        let heads = core.sight.words & (!core.owned_in | core.sight.controls);
        if heads == 0 { self.pick_local(at, core) } else { self.pick_any(at, core, heads) }
    }

    /// R8 (c) with words at the heads of these queues.
    fn pick_any(&mut self, at: &Visit<'_, C>, core: &mut Core<C>, heads: u64) -> Option<u64> {
        let (program, last) = (at.program, core.picked);
        let turn = |id: u8| id.wrapping_sub(last) % 64;
        // (raised, turn, is it local, queue): local tasks go first among equal ids.
        let mut best = core.first_local().map(|(raised, turn)| (raised, turn, true, 0));
        for queue in bits(heads) {
            let Some(head) = core.inputs[queue].ring.head() else { continue };
            let input = &core.bound.inputs(program)[queue];
            let owned = core.owned_in >> queue & 1 != 0;
            let eligible = core.channel_blocked >> input.channel & 1 == 0
                && if head.control {
                    control_task(program, input, head).is_some()
                        && (!owned || core.passes_control(queue))
                } else {
                    !owned && input.task != NO_TASK
                };
            if eligible {
                let raised = core.raised_channels >> input.channel & 1 != 0;
                best = best.max(Some((raised, turn(input.channel), false, queue)));
            }
        }
        let (_, turn, is_local, queue) = best?;
        let id = turn.wrapping_add(last) % 64;
        let (mut word, mut by) = (Slot::default(), None);
        if is_local {
            core.begin_local(program, id);
        } else {
            core.picked = id;
            by = Some(queue);
            word = self.take_input(at, core, queue);
            if let Some(tape) = &mut self.tape {
                tape.word(at.pe, queue);
            }
            if !word.control {
                self.rests(at.plan, at.pe, word.color);
            }
            let input = core.input(program, queue);
            core.task = match control_task(program, &input, &word) {
                Some(task) if word.control => task,
                _ => core.next_in_turn(program, &input),
            };
        }
        Some(self.begin_task(at, core, (by, word.payload)))
    }

    /// The core's task has been picked, with a word of a queue if one is named; from which cycle on it may have slots.
    #[inline]
    pub(super) fn begin_task(
        &mut self,
        at: &Visit<'_, C>,
        core: &mut Core<C>,
        (queue, payload): (Option<usize>, u32),
    ) -> u64 {
        if self.flow {
            self.note_order(at, core, queue);
        }
        if queue.is_none() {
            core.twice = core.twice.without(core.picked, core.activated);
        }
        let from = at.t + at.plan.timing.task_start;
        core.main.set(Main::start(from, payload));
        core.acted.acted = true;
        self.stats.tasks += 1;
        if let Some(refrain) = &mut self.refrain {
            let visit = if self.flow { self.now } else { at.t };
            refrain.note(at.pe, visit, at.t, core.task);
        }
        if let Some(events) = &mut self.events {
            events.push(Event::Task { cycle: at.t, pe: core.at.number, task: core.task });
        }
        from
    }
}
